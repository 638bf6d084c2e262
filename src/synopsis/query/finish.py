"""Finishing: from the statistics of groups to an answer: arithmetic, HAVING, order, limit, columns.

It does not matter who computed the statistics, strands or strata and paths.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.query.answer import Answer, BucketKeys, CellKeys, Column
from synopsis.query.arithmetic import combined, constant
from synopsis.query.binding import Compared, Computed, Every, Fails, Having, Operand, Plan, Source, Statistic
from synopsis.query.tree import BucketKey, CellKey
from synopsis.query.values import Values
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Integers

Booleans = NDArray[np.bool_]

_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "<>": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


@dataclass(frozen=True, eq=False)
class Found:
    """The groups of an answer in the order of their keys, and their statistics."""

    size: int
    cells: Integers | None  #: if grouped by cells
    buckets: Integers | None  #: ordinals, if grouped by buckets
    values: Mapping[Statistic, Values]

    def of(self, operand: Operand) -> Values:
        """A column of numbers."""
        if isinstance(operand, Statistic):
            return self.values[operand]
        if isinstance(operand, Computed):
            return combined(operand.operator, self.of(operand.left), self.of(operand.right))
        return constant(operand, self.size)


def finish(asked: Plan, found: Found, layout: Layout) -> Answer:
    """The answer to a plan whose statistics are known. Cost: proportional to groups times columns, and a sort."""
    rows = np.arange(found.size)
    if asked.having is not None:
        rows = np.flatnonzero(_truth(asked.having, found)[0])
    if asked.order:
        # NumPy takes the leading key last, and sorts NaN, which is its own negative, behind everything.
        keys = [
            -_sortable(source, found)[rows] if descending else _sortable(source, found)[rows]
            for source, descending in reversed(asked.order)
        ]
        rows = rows[np.lexsort(keys)]
    rows = rows[: asked.limit]
    return Answer({name: _column(source, found, rows, layout) for name, source in asked.columns})


def _sortable(source: Source, found: Found) -> NDArray[Any]:
    if not isinstance(source, CellKey | BucketKey):
        return found.of(source).estimate
    key = found.cells if isinstance(source, CellKey) else found.buckets
    assert key is not None  # binding lets only grouped keys through
    return key


def _column(source: Source, found: Found, rows: NDArray[np.intp], layout: Layout) -> Column:
    if not isinstance(source, CellKey | BucketKey):
        return found.of(source).take(rows)
    key = _sortable(source, found)[rows]
    if isinstance(source, CellKey):
        return CellKeys(geohash.to_text(key, source.length))
    return BucketKeys(Bucket.parse(source.span).starts_us(key, layout.zone), layout.timezone)


def _truth(condition: Having, found: Found) -> tuple[Booleans, Booleans]:
    """Of which groups the estimates make a condition true, and of which false; what is undefined is neither."""
    if isinstance(condition, Compared):
        left, right = (found.of(each).estimate.astype(np.float64) for each in (condition.left, condition.right))
        known = ~np.isnan(left) & ~np.isnan(right)
        holds = np.asarray(_COMPARISONS[condition.comparison](left, right))
        return known & holds, known & ~holds
    if isinstance(condition, Fails):
        true, false = _truth(condition.condition, found)
        return false, true
    parts = [_truth(part, found) for part in condition.conditions]
    true, false = np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])
    if isinstance(condition, Every):
        return np.logical_and.reduce(true), np.logical_or.reduce(false)
    return np.logical_or.reduce(true), np.logical_and.reduce(false)
