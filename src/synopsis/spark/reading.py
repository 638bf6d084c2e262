"""Reading: rows of Parquet files as ticks, where a task's Python may take them from the files as Arrow reads them.

Spark hands over rows one by one, and that costs more than all that is made of them. It plans and runs the tasks here as
well, and each reads some row groups of its own. Only where `footers` have told that there is nothing to be decided of a
row: columns are numbers, times are instants, ends are in range. All else is read by Spark alone, and what comes of both
is the same, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from synopsis.sketch.compiled import Later
from synopsis.sketch.gathering import PER_INTEGER
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.ticks import Ticks
from synopsis.spark.footers import Group

if TYPE_CHECKING:
    from synopsis.sketch import counting
else:
    counting = Later("synopsis.sketch.counting")

#: Rows of a task, where there are more than its session runs at once.
_ROWS_OF_A_TASK: Final = 10_000_000

_MICROSECONDS: Final = {"us": 1, "ms": 1_000}


@dataclass(frozen=True)
class Reader:
    """How a task reads its part of the files: which groups are its own, and which columns become what."""

    tasks: tuple[tuple[Group, ...], ...]
    names: tuple[str, ...]  #: latitude, longitude, time, and features
    ticks: tuple[Ticks, ...]  #: of the features
    batch_rows: int

    def rows(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the tasks with these numbers: positions, local times, and ticks, four to an integer.

        Rows without a place are left out. Cost: a pass over the columns.
        """
        for task in (number for batch in numbers for number in batch["id"].to_pylist()):
            for group in self.tasks[task]:
                with pyarrow.parquet.ParquetFile(group.path) as file:
                    wanted: dict[str, Any] = {"row_groups": [group.number], "columns": list(dict.fromkeys(self.names))}
                    for batch in file.iter_batches(self.batch_rows, use_threads=False, **wanted):
                        yield self._ticked(batch)

    def _ticked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        (latitude, longitude), time = (_doubles(batch[name]) for name in self.names[:2]), batch[self.names[2]]
        known = ~(np.isnan(latitude) | np.isnan(longitude))
        integers = -(-len(self.ticks) // PER_INTEGER)
        packed = np.zeros((integers, batch.num_rows, PER_INTEGER), np.uint16)
        for feature, (name, ticks) in enumerate(zip(self.names[3:], self.ticks, strict=True)):
            to = packed[feature // PER_INTEGER], feature % PER_INTEGER
            counting.ticked(_doubles(batch[name]), ticks.origin, ticks.step, np.array(ticks.atoms, np.float64), *to)
        columns: list[NDArray[Any]] = [latitude, longitude, _micros(time), *packed.view(np.int64)[:, :, 0]]
        columns = columns if known.all() else [each[known] for each in columns]
        names = ["latitude", "longitude", "local_us", *(f"ticks_{at}" for at in range(integers))]
        return pa.RecordBatch.from_arrays([pa.array(each) for each in columns], names)


def dealt(found: Sequence[Group], at_once: int) -> tuple[tuple[Group, ...], ...]:
    """Row groups as tasks of about as many rows, neighbours together: as many as run at once, or more of many rows.

    >>> [len(task) for task in dealt([Group("a", at, 100) for at in range(5)], 2)]
    [2, 3]
    """
    rows = np.array([group.rows for group in found], np.int64)
    total = int(rows.sum())
    many = min(max(at_once, -(-total // _ROWS_OF_A_TASK)), len(found))
    middle = np.cumsum(rows) - rows / 2
    task = np.minimum((middle * many / max(total, 1)).astype(np.int64), many - 1)
    parts = (
        tuple(group for group, own in zip(found, task.tolist(), strict=True) if own == each) for each in range(many)
    )
    return tuple(part for part in parts if part)


def _doubles(column: pa.Array) -> Floats:
    """Numbers as doubles; NaN where there is none."""
    return np.ascontiguousarray(column.to_numpy(zero_copy_only=False), np.float64)


def _micros(column: pa.Array) -> Integers:
    """Times that are all there, as microseconds."""
    return np.asarray(column.view(pa.int64()).to_numpy() * _MICROSECONDS[column.type.unit])
