"""Footers: what Parquet files tell of their columns without being read: rows, nulls, least and greatest values.

They serve in place of a pass over all rows where nothing in them speaks against a row. Two things they do not tell:
NaN, which is among neither the ends nor the nulls, and whether they are true. So rows are counted when they are read,
and whoever finds another number goes back to the pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.parquet

#: Instants from 1900 on: those before may have been written in another calendar, which Spark sets right as it reads.
_EARLIEST_US: Final = -2_208_988_800_000_000

#: Microseconds of the units of times that are read as they are.
_UNITS: Final = {"us": 1, "ms": 1_000}


@dataclass(frozen=True)
class Told:
    """What all row groups of some files tell of a column."""

    kind: pa.DataType
    low: float  #: times in microseconds, whole ones; +inf where there are no values
    high: float
    values: int  #: that are not null

    def __add__(self, other: Told) -> Told:
        return Told(self.kind, min(self.low, other.low), max(self.high, other.high), self.values + other.values)

    def within(self, least: float, most: float) -> bool:
        """Whether there are values, and all lie between these."""
        return least <= self.low <= self.high <= most


@dataclass(frozen=True)
class Group:
    """A row group of a file."""

    path: str
    number: int
    rows: int


@dataclass(frozen=True)
class Footers:
    """The row groups of files, in their order, and what they tell of some columns."""

    groups: tuple[Group, ...]
    columns: dict[str, Told]

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(group.rows for group in self.groups)


def told(paths: Sequence[str], names: Sequence[str]) -> Footers | None:
    """What the files tell of these columns; None where one of them does not tell all, or is of another type.

    Cost: one footer a file, and what it tells of each row group and column.
    """
    if any(f"/{name}=" in path for path in paths for name in names):  # Spark takes such a column from the path
        return None
    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(lambda path: _of_file(path, names), paths))
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or any(len({part.columns[name].kind for part in known}) > 1 for name in names):
        return None
    columns = {name: reduce(Told.__add__, (part.columns[name] for part in known)) for name in names}
    return Footers(tuple(group for part in known for group in part.groups), columns)


def _of_file(path: str, names: Sequence[str]) -> Footers | None:
    try:
        facts = pyarrow.parquet.read_metadata(path)
        schema = facts.schema.to_arrow_schema()
    except (pa.ArrowException, OSError):  # Spark will say what is wrong with it
        return None
    columns = [facts.schema.column(at).path for at in range(facts.num_columns)]
    found = {}
    for name in names:
        if columns.count(name) != 1 or schema.names.count(name) != 1:
            return None
        of_column = _of_column(facts, columns.index(name), schema.field(name).type)
        if of_column is None:
            return None
        found[name] = of_column
    sizes = [facts.row_group(at).num_rows for at in range(facts.num_row_groups)]
    return Footers(tuple(Group(path, at, size) for at, size in enumerate(sizes)), found)


def _of_column(facts: pyarrow.parquet.FileMetaData, at: int, kind: pa.DataType) -> Told | None:
    """A column of numbers, or of times that are no earlier than 1900."""
    is_time = pa.types.is_timestamp(kind) and kind.unit in _UNITS
    if not (is_time or pa.types.is_signed_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)):
        return None
    found = Told(kind, math.inf, -math.inf, 0)
    for group in range(facts.num_row_groups):
        column = facts.row_group(group).column(at)
        known, rows = column.statistics, facts.row_group(group).num_rows
        if known is None or not known.has_null_count:
            return None
        if known.null_count == rows:
            continue
        if not known.has_min_max or not known.min_raw <= known.max_raw:  # not true of NaN, which some write
            return None
        scale = _UNITS[kind.unit] if is_time else 1
        # Of zero, one end has one sign and the other the other.
        low, high = (end * scale if is_time else float(end) + 0.0 for end in (known.min_raw, known.max_raw))
        found += Told(kind, low, high, rows - known.null_count)
    return None if is_time and found.low < _EARLIEST_US else found
