"""Files of a table: written whole under a name of their own, visible only once a commit names them."""

from __future__ import annotations

import io
import uuid
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet


@dataclass(frozen=True)
class Written:
    """A file that lies in a table's folder and waits for its commit."""

    name: str
    size_bytes: int
    rows: int


def folder(place: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The file system and the path of a local path or an object-store address."""
    return pyarrow.fs.FileSystem.from_uri(place) if "://" in place else (pyarrow.fs.LocalFileSystem(), place)


def new_attempt() -> str:
    """A name for one attempt to add a batch: a number of twelve hexadecimal digits, which a table's log can hold."""
    return uuid.uuid4().hex[:12]


def write_file(table: pa.Table, place: str, attempt: str) -> Written:
    """One Parquet file in the table's folder; `attempt` in its name tells which build left it."""
    buffer = io.BytesIO()
    # Numbers that hardly repeat: dictionaries of them cost twice the time and a quarter of the bytes.
    pyarrow.parquet.write_table(table, buffer, compression="zstd", use_dictionary=False)
    name = f"part-{attempt}-{uuid.uuid4().hex[:12]}.parquet"
    system, path = folder(place)
    system.create_dir(path, recursive=True)
    with system.open_output_stream(f"{path}/{name}", compression=None) as stream:
        stream.write(buffer.getbuffer())
    return Written(name, buffer.tell(), table.num_rows)


def read_files(place: str, names: list[str], schema: pa.Schema) -> pa.Table:
    """The rows of these files, one after the other."""
    system, path = folder(place)
    tables = [pyarrow.parquet.read_table(f"{path}/{name}", filesystem=system, schema=schema) for name in names]
    return pa.concat_tables(tables) if tables else schema.empty_table()
