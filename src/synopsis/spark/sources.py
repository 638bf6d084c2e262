"""Sources: whatever holds observations, as one Spark frame.

A path, a glob, a folder, a list of them (Parquet, CSV, JSON lines), a pandas frame, an Arrow table, or a Spark frame.
Files also give a fingerprint, so that building twice from the same files counts them once.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

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
class Opened:
    """A source as a frame, with what the frame alone does not tell."""

    frame: DataFrame
    name: str  #: for messages
    fingerprint: str  #: the same for the same content, as far as that can be told
    is_text: bool = False  #: CSV: numbers and times arrive as texts
    naive_nanoseconds: frozenset[str] = field(default_factory=frozenset)  #: integers that count local nanoseconds
    nanoseconds: frozenset[str] = field(default_factory=frozenset)  #: integers that count nanoseconds, local or not


@contextmanager
def opened(spark: SparkSession, source: Source) -> Iterator[Opened]:
    """The source as a frame, for as long as the block lasts."""
    if isinstance(source, DataFrame):
        yield Opened(source, "the Spark frame", uuid.uuid4().hex)
    elif isinstance(source, pa.Table | pa.RecordBatch) or hasattr(source, "__dataframe__"):
        table = _arrow(source)
        if not table.num_columns or not table.num_rows:
            raise EmptySource("the table")
        with _spooled(spark, table) as frame:
            yield Opened(frame, "the table", _content_fingerprint(table))
    else:
        yield _files(spark, source)


def _arrow(source: Any) -> pa.Table:
    """An Arrow table that Spark can read: times in microseconds, texts instead of categories."""
    if isinstance(source, pa.RecordBatch):
        table = pa.Table.from_batches([source])
    elif isinstance(source, pa.Table):
        table = source
    else:
        table = pa.Table.from_pandas(source, preserve_index=False)
    for position, column in enumerate(table.schema):
        kind = column.type
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            kind = pa.timestamp("us", kind.tz)
        elif pa.types.is_dictionary(kind):
            kind = kind.value_type
        if kind != column.type:
            table = table.set_column(position, column.name, table.column(position).cast(kind, safe=False))
    return table


@contextmanager
def _spooled(spark: SparkSession, table: pa.Table) -> Iterator[DataFrame]:
    """A table in memory as a frame: through a file, which keeps times with and without zone apart.

    Executors on other machines see no file of ours: there Spark ships the rows itself.
    """
    if not (spark.sparkContext.master or "").startswith("local"):
        yield spark.createDataFrame(table)
        return
    with tempfile.TemporaryDirectory(prefix="synopsis-") as folder:
        file = Path(folder, "rows.parquet")
        pyarrow.parquet.write_table(table, file, compression="zstd", row_group_size=128 * 1024)
        yield spark.read.parquet(file.as_uri())


def _files(spark: SparkSession, source: Any) -> Opened:
    asked = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(asked, Sequence) or not all(isinstance(path, str | os.PathLike) for path in asked):
        raise BadSource(
            f"a source of type {type(source).__name__}; give a path, a glob, a list of paths, a pandas frame, "
            "an Arrow table or a Spark frame"
        )
    if not asked:
        raise EmptySource("an empty list of paths")
    files = [file for path in asked for file in _expand(os.fspath(path))]
    name = os.fspath(asked[0]) if len(asked) == 1 else f"{len(asked)} paths"
    if not files:
        raise EmptySource(name)
    formats = {_format(file) for file in files}
    if len(formats) > 1:
        raise BadSource(f"{name} mixes {' and '.join(sorted(formats))}; build from one format, then from the other")
    return _read(spark, files, formats.pop(), name)


def _expand(path: str) -> list[str]:
    """The files that a path, folder or glob names, sorted; an address with a scheme is left to Spark."""
    if "://" in path:
        return [path]
    if Path(path).is_dir():
        found = [str(file) for file in sorted(Path(path).rglob("*")) if file.is_file()]
        return [file for file in found if not any(part[0] in "._" for part in Path(file).relative_to(path).parts)]
    if Path(path).exists():
        return [path]
    matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    if not matches:
        raise BadSource(f"no file at {path}; check the path, or give a glob such as 'rows/*.parquet'")
    return [file for match in matches for file in _expand(match)]


def _format(file: str) -> str:
    bare = Path(file.rstrip("/"))
    while bare.suffix.lower() in _PACKED:
        bare = bare.with_suffix("")
    known = _FORMATS.get(bare.suffix.lower())
    if known is None:
        raise BadSource(f"{file} has no ending we know; name it .parquet, .csv, .json or .jsonl")
    return known


def _read(spark: SparkSession, files: list[str], kind: str, name: str) -> Opened:
    addresses = [file if "://" in file else Path(file).resolve().as_uri() for file in files]
    fingerprint = _file_fingerprint(files)
    if kind == "csv":
        # Everything as text: one word among the numbers must not turn a column into something else.
        frame = spark.read.csv(addresses, header=True, inferSchema=False, enforceSchema=False)
        return Opened(frame, name, fingerprint, is_text=True)
    if kind == "json":
        frame = spark.read.json(addresses)
        if frame.columns == ["_corrupt_record"]:
            raise BadSource(f"{name} is not JSON lines; write one object a line")
        return Opened(frame, name, fingerprint)
    nanoseconds, naive = _nanosecond_columns([file for file in files if "://" not in file])
    return Opened(spark.read.parquet(*addresses), name, fingerprint, False, naive, nanoseconds)


def _nanosecond_columns(files: list[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Time columns that Parquet keeps in nanoseconds, which Spark reads as integers; and those without a zone."""
    found: dict[str, bool] = {}
    for file in files[:1]:
        try:
            schema = pyarrow.parquet.read_schema(file)
        except (pa.ArrowInvalid, OSError) as problem:
            raise BadSource(f"{file} is not Parquet ({str(problem).splitlines()[0]})") from None
        found |= {
            column.name: column.type.tz is None
            for column in schema
            if pa.types.is_timestamp(column.type) and column.type.unit == "ns"
        }
    return frozenset(found), frozenset(name for name, naive in found.items() if naive)


def _file_fingerprint(files: list[str]) -> str:
    """Names, sizes and times of change of the files: another content has another fingerprint."""
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        if "://" in file:
            return uuid.uuid4().hex  # what lies behind an address may have changed: never the same
        facts = Path(file).stat()
        digest.update(f"{Path(file).resolve()}|{facts.st_size}|{facts.st_mtime_ns}\n".encode())
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
