"""Sources: whatever holds observations, as one Spark frame.

A path, a glob, a folder, a list of them (Parquet, CSV, JSON lines), a pandas frame, an Arrow table, or a Spark frame.
A source is located first, which needs no Spark: what is not there is said at once. Its fingerprint is the same for the
same content, so that building twice from the same files counts them once.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import re
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_schema

from synopsis.core.errors import BadSource, EmptySource

if TYPE_CHECKING:
    import pandas

Source = Union[
    str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], "pandas.DataFrame", pa.Table, DataFrame
]

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")


@dataclass(frozen=True)
class Files:
    """Files of one format."""

    paths: tuple[str, ...]
    kind: str
    base: str | None = None  #: folder below which parts of paths such as year=2025 are columns
    nanoseconds: frozenset[str] = frozenset()  #: times that Parquet keeps in nanoseconds: Spark reads integers
    naive: frozenset[str] = frozenset()  #: those of them that name no zone
    uneven: bool = False  #: not all files have the same columns
    disguised: Mapping[str, str] = field(default_factory=dict)  #: columns that Parquet keeps as integers: what they are


@dataclass(frozen=True)
class Located:
    """A source that is there."""

    name: str  #: for messages
    fingerprint: str  #: the same for the same content, as far as that can be told
    content: DataFrame | pa.Table | Files


@dataclass(frozen=True)
class Opened:
    """A source as a frame, with what the frame alone does not tell."""

    frame: DataFrame
    is_text: bool = False  #: CSV and JSON: numbers may arrive as texts
    naive_nanoseconds: frozenset[str] = frozenset()  #: integers that count local nanoseconds
    nanoseconds: frozenset[str] = frozenset()  #: integers that count nanoseconds, local or not
    disguised: Mapping[str, str] = field(default_factory=dict)  #: integers that are neither numbers nor epochs
    footed: tuple[str, ...] = ()  #: Parquet files on this machine that hold just its rows, all with the same columns


def located(source: Source) -> Located:
    """Find the source, or say what is wrong with it. Reads a table in memory, and the schema of each Parquet file."""
    if isinstance(source, DataFrame):
        return Located("the Spark frame", uuid.uuid4().hex, source)
    if isinstance(source, pa.Table | pa.RecordBatch) or hasattr(source, "__dataframe__"):
        table = _arrow(source)
        if not table.num_columns or not table.num_rows:
            raise EmptySource("the table")
        return Located("the table", _content_fingerprint(table), table)
    return _files(source)


@contextmanager
def opened(spark: SparkSession, source: Located) -> Iterator[Opened]:
    """The source as a frame, for as long as the block lasts."""
    if isinstance(source.content, DataFrame):
        yield Opened(source.content)
    elif isinstance(source.content, Files):
        yield _read(spark, source.content, source.name)
    else:
        with _spooled(spark, source.content) as spooled:
            yield spooled


def _arrow(source: Any) -> pa.Table:
    """An Arrow table that Spark can read: times in microseconds, texts instead of categories."""
    try:
        if isinstance(source, pa.RecordBatch):
            table = pa.Table.from_batches([source])
        elif isinstance(source, pa.Table):
            table = source
        elif type(source).__module__.startswith("pandas."):
            table = pa.Table.from_pandas(source, preserve_index=False)
        else:  # polars and others that speak Arrow
            table = pa.table(source)
        for position, column in enumerate(table.schema):
            known = _known_to_spark(table.column(position))
            if not _fits_a_file(known.type):
                raise BadSource(
                    f"column {column.name!r} is {column.type}, which Parquet does not hold; cast it, or leave it out"
                )
            if known.type != column.type:
                table = table.set_column(position, column.name, known)
    except BadSource:
        raise
    except (pa.ArrowException, ValueError, TypeError) as problem:
        why = str(problem).splitlines()[0]
        raise BadSource(f"the table does not turn into Arrow columns ({why}); give each column one type") from None
    return table


def _known_to_spark(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return _floored(column).cast(pa.timestamp("us", kind.tz))
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "pandas.period":  # integers that count hours, days or months
            return _known_to_spark(pa.chunked_array([pa.array(column.to_pandas().dt.to_timestamp())]))
        return _known_to_spark(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return _known_to_spark(pa.compute.run_end_decode(column))
    if pa.types.is_duration(kind):  # Parquet keeps integers of them, which would pass for numbers and for epochs
        return column.cast(pa.int64()).cast(pa.string())
    if pa.types.is_dictionary(kind):
        return _known_to_spark(column.cast(kind.value_type))
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_time(kind) or pa.types.is_decimal256(kind):
        return column.cast(pa.string())
    return column


def _fits_a_file(kind: pa.DataType) -> bool:
    """Whether Parquet can hold a column of this type: asked of a file without rows."""
    if pa.types.is_primitive(kind) and not pa.types.is_interval(kind):
        return True
    try:
        pyarrow.parquet.write_table(pa.table({"column": pa.array([], kind)}), io.BytesIO())
    except pa.ArrowException:
        return False
    return True


def _floored(nanoseconds: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole microseconds at or before these times; a cast would round those before 1970 up."""
    whole = nanoseconds.cast(pa.int64())
    towards_zero = pa.compute.divide(whole, 1_000)
    passed = pa.compute.greater(pa.compute.multiply(towards_zero, 1_000), whole)
    return pa.compute.subtract(towards_zero, passed.cast(pa.int64()))


@contextmanager
def _spooled(spark: SparkSession, table: pa.Table) -> Iterator[Opened]:
    """A table in memory as a frame: through a file, which keeps times with and without zone apart.

    Executors on other machines see no file of ours: there Spark ships the rows itself.
    """
    if not (spark.sparkContext.master or "").startswith("local"):
        yield Opened(_shipped(spark, table))
        return
    with tempfile.TemporaryDirectory(prefix="synopsis-") as folder:
        file = Path(folder, "rows.parquet")
        pyarrow.parquet.write_table(table, file, compression="zstd", row_group_size=128 * 1024)
        yield Opened(spark.read.parquet(_address(str(file))), footed=(str(file),))


def _shipped(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table in memory as a frame that holds its rows; times without a zone stay what they are."""
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def _files(source: Any) -> Located:
    asked = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(asked, Sequence) or not all(isinstance(path, str | os.PathLike) for path in asked):
        raise BadSource(
            f"a source of type {type(source).__name__}; give a path, a glob, a list of paths, a pandas frame, "
            "an Arrow table or a Spark frame"
        )
    if not asked:
        raise EmptySource("an empty list of paths")
    found = [(file, base) for path in asked for file, base in _expand(os.fspath(path))]
    name = os.fspath(asked[0]) if len(asked) == 1 else f"{len(asked)} paths"
    if not found:
        raise EmptySource(name)
    paths = tuple(sorted({_whole(file) for file, _ in found}))  # a file that is named twice counts once
    kinds = {_format(path) for path in paths}
    if len(kinds) > 1:
        raise BadSource(f"{name} mixes {' and '.join(sorted(kinds))}; build from one format, then from the other")
    kind, base = kinds.pop(), _partitioned(found)
    fingerprint = _file_fingerprint(paths)
    return Located(name, fingerprint, _parquet(paths, base) if kind == "parquet" else Files(paths, kind, base))


def _expand(path: str) -> list[tuple[str, str | None]]:
    """The files that a path, folder or glob names, each with the folder that was asked for.

    An address with a scheme is left to Spark.
    """
    if not path:
        raise BadSource("a path that is empty; give a file, a folder or a glob")
    if "://" in path:
        return [(path, None)]
    if Path(path).is_dir():
        if Path(path, "_delta_log").is_dir():
            raise BadSource(
                f"{path} is a Delta table, and some of its files may be of the past; give a Spark frame of it"
            )
        found = [file for file in sorted(Path(path).rglob("*")) if file.is_file()]
        return [(str(file), path) for file in found if not _hidden(file.relative_to(path))]
    if Path(path).exists():
        return [(path, None)]
    matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    if not matches:
        raise BadSource(f"no file at {path}; check the path, or give a glob such as 'rows/*.parquet'")
    fixed = os.path.dirname(re.split(r"[*?\[]", path, maxsplit=1)[0])  # noqa: PTH120 - what goes before the glob is text
    return [(file, fixed) for match in matches for file, _ in _expand(match)]


def _hidden(inside: Path) -> bool:
    return any(part.startswith((".", "_")) for part in inside.parts)


def _whole(path: str) -> str:
    return path if "://" in path else str(Path(path).resolve())


def _partitioned(found: list[tuple[str, str | None]]) -> str | None:
    """The folder below which all files lie in folders such as year=2025/month=1, of the same columns."""
    bases = {base for _, base in found}
    if len(bases) > 1 or None in bases:
        return None
    base = _whole(bases.pop() or ".")
    folders = [Path(_whole(file)).parent for file, _ in found]
    if not all(folder.is_relative_to(base) for folder in folders):  # links lead elsewhere
        return None
    inside = [folder.relative_to(base).parts for folder in folders]
    columns = {tuple(part.partition("=")[0] for part in parts) for parts in inside}
    if columns == {()} or len(columns) > 1 or not all("=" in part for parts in inside for part in parts):
        return None
    return base


def _format(file: str) -> str:
    bare = Path(file.rstrip("/"))
    while bare.suffix.lower() in _PACKED:
        bare = bare.with_suffix("")
    known = _FORMATS.get(bare.suffix.lower())
    if known is None:
        raise BadSource(f"{file} has no ending we know; name it .parquet, .csv, .json or .jsonl")
    if ":" in bare.name:
        raise BadSource(f"{file} has a colon in its name, which Spark cannot read; rename it")
    return known


def _address(path: str) -> str:
    """A path as Spark takes it: as it stands, but for what would be a glob."""
    return path if "://" in path else "file://" + re.sub(r"([{}\[\]*?\\])", r"\\\1", path)


def _read(spark: SparkSession, files: Files, name: str) -> Opened:
    reader = spark.read if files.base is None else spark.read.option("basePath", _address(files.base))
    addresses = [_address(path) for path in files.paths]
    if files.kind == "csv":
        # Everything as text: one word among the numbers must not turn a column into something else.
        frame = reader.csv(addresses, header=True, inferSchema=False, enforceSchema=False)
    elif files.kind == "json":
        frame = reader.json(addresses)
        if frame.columns == ["_corrupt_record"]:
            raise BadSource(f"{name} is not JSON lines; write one object a line")
    else:
        frame = reader.option("mergeSchema", str(files.uneven).lower()).parquet(*addresses)
    if not frame.columns:
        raise EmptySource(name)
    is_footed = files.kind == "parquet" and not files.uneven and not any("://" in path for path in files.paths)
    footed = files.paths if is_footed else ()
    return Opened(frame, files.kind != "parquet", files.naive, files.nanoseconds, files.disguised, footed)


def _parquet(paths: tuple[str, ...], base: str | None) -> Files:
    """Parquet files, and what Spark does not tell of their times.

    Spark looks at one file and reads all others as if they were the same: integers that count nanoseconds in one file
    and microseconds in the next would pass for the same times.
    """
    local = [path for path in paths if "://" not in path]
    with ThreadPoolExecutor() as pool:
        schemas = dict(zip(local, pool.map(_schema, local), strict=True))
    first: dict[str, tuple[str, tuple[bool, bool]]] = {}
    for path, schema in schemas.items():
        for column in schema:
            if pa.types.is_time(column.type) or pa.types.is_float16(column.type):
                raise BadSource(
                    f"{path} keeps {column.name!r} as {column.type}, which Spark does not read; "
                    "cast it, or leave it out"
                )
            if pa.types.is_timestamp(column.type):
                facts = column.type.unit == "ns", column.type.tz is None
                other, known = first.setdefault(column.name, (path, facts))
                if known != facts:
                    raise BadSource(
                        f"{path} and {other} keep {column.name!r} in different ways (nanoseconds, or a zone); "
                        "build from one, then from the other"
                    )
    fine = {name: naive for name, (_, (is_fine, naive)) in first.items() if is_fine}
    uneven = len({frozenset(schema.names) for schema in schemas.values()}) > 1
    naive = frozenset(name for name in fine if fine[name])
    disguised = {each.name: kind for schema in schemas.values() for each in schema if (kind := _disguise(each))}
    return Files(paths, "parquet", base, frozenset(fine), naive, uneven, disguised)


def _disguise(column: pa.Field) -> str | None:
    """What a column is that Parquet keeps as integers which are no numbers; None for all others."""
    if pa.types.is_duration(column.type):
        return str(column.type)
    named = (column.metadata or {}).get(b"ARROW:extension:name", b"").decode()  # where pandas is not there to tell
    name = column.type.extension_name if isinstance(column.type, pa.BaseExtensionType) else named
    return name if name == "pandas.period" else None


def _schema(file: str) -> pa.Schema:
    try:
        return pyarrow.parquet.read_schema(file)
    except (pa.ArrowException, OSError) as problem:
        raise BadSource(f"{file} is not Parquet ({str(problem).splitlines()[0]}); mend it or leave it out") from None


def _file_fingerprint(files: tuple[str, ...]) -> str:
    """Names, sizes and times of change of the files: another content has another fingerprint."""
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        if "://" in file:
            return uuid.uuid4().hex  # what lies behind an address may have changed: never the same
        facts = Path(file).stat()
        digest.update(f"{file}|{facts.st_size}|{facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _content_fingerprint(table: pa.Table) -> str:
    class Sink(io.RawIOBase):
        def __init__(self) -> None:
            self.digest = hashlib.blake2b(digest_size=16)

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            view = memoryview(data).cast("B")
            self.digest.update(view)
            return len(view)

    sink = Sink()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), table.schema) as stream:
        stream.write_table(table.combine_chunks(), max_chunksize=1 << 20)
    return sink.digest.hexdigest()


def type_of(frame: DataFrame, name: str) -> st.DataType:
    """The type of a column that is there."""
    return frame.schema[name].dataType
