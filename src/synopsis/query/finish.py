"""Finishing: from the statistics of groups to an answer: arithmetic, HAVING, order, limit, columns.

It does not matter who computed the statistics, strands or strata and paths.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.query.answer import Answer, BinKeys, BucketKeys, CellKeys, Column
from synopsis.query.arithmetic import combined, constant, present
from synopsis.query.binding import (
    Binned,
    Compared,
    Computed,
    Every,
    Fails,
    Having,
    Keyed,
    Membership,
    Operand,
    Plan,
    Predicted,
    Source,
    Statistic,
)
from synopsis.query.predictions import Prediction, predicted
from synopsis.query.tree import CellKey
from synopsis.query.values import Values
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Floats, Integers

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
    keys: Mapping[Keyed, Integers]  #: cells, ordinals of buckets, numbers of bins
    values: Mapping[Statistic, Values]
    binned: Mapping[Binned, tuple[Floats, Floats]] = field(default_factory=dict)  #: the ends of bins
    memberships: Mapping[Membership, Values] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  #: what goes with memberships

    def rows_of(self, other: Found) -> NDArray[np.intp]:
        """Where each of these groups stands in another answer with the same keys; -1 where it has none."""
        if not self.keys:
            return np.zeros(self.size, np.intp)
        both = [np.append(self.keys[key], other.keys[key]) for key in self.keys]
        names, number = np.unique(np.stack(both, axis=1), axis=0, return_inverse=True)
        mine, theirs = np.split(number.reshape(-1), [self.size])
        at = np.full(len(names), -1, np.intp)
        at[theirs] = np.arange(other.size)
        return np.asarray(at[mine])

    def prediction(self, asked: Predicted) -> Prediction:
        """What the moments of every group lead to expect of a feature, given others."""
        known = {(each.function, each.features): self.values[each].estimate for each in asked.moments}
        return predicted(asked.target, asked.predictors, asked.at, lambda moment: known[moment])

    def of(self, operand: Operand) -> Values:
        """A column of numbers."""
        if isinstance(operand, Statistic):
            return self.values[operand]
        if isinstance(operand, Membership):
            return self.memberships[operand]
        if isinstance(operand, Computed) and operand.operator == "present":
            return present(self.of(operand.left))
        if isinstance(operand, Computed):
            return combined(operand.operator, self.of(operand.left), self.of(operand.right))
        if isinstance(operand, Predicted):
            return self.prediction(operand).values
        return constant(operand, self.size)


def finish(asked: Plan, found: Found, layout: Layout) -> Answer:
    """The answer to a plan whose statistics are known. Cost: proportional to groups times columns, and a sort."""
    rows = np.arange(found.size)
    if asked.having is not None:
        rows = np.flatnonzero(_truth(asked.having, found)[0])
    if asked.order:
        rows = rows[sorted_rows([(_sortable(source, found)[rows], descending) for source, descending in asked.order])]
    rows = rows[: asked.limit]
    columns = {name: _column(source, found, rows, layout) for name, source in asked.columns}
    fits = [_fit(name, source, found) for name, source in asked.columns if isinstance(source, Predicted)]
    return Answer(columns, notes=(*asked.notes, *found.notes, *fits))


def _fit(name: str, source: Predicted, found: Found) -> str:
    """How good a fit is, or why there is none: refused where it is all that was asked for."""
    prediction = found.prediction(source)
    if prediction.why_not is not None and found.size == 1 and not found.keys:
        raise BadQuery(f"{name} has too little to go on: {prediction.why_not}")
    known = ~np.isnan(prediction.fit)
    if not known.any():
        return f"{name}: no group has enough to go on"
    explained, rows = prediction.fit[known], prediction.rows[known]
    return f"{name}: explains {np.median(explained):.0%} of the variance, from {int(np.median(rows)):,} rows" + (
        " (medians of all groups)" if known.sum() > 1 else ""
    )


def sorted_rows(keys: Sequence[tuple[NDArray[Any], bool]]) -> NDArray[np.intp]:
    """Rows in the order of some keys, the leading one first, each perhaps descending; what is undefined comes last."""
    columns = []
    for key, descending in reversed(keys):  # NumPy takes the leading key last
        if descending and key.dtype.kind == "U":
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
        columns.append(-key if descending else key)  # NaN is its own negative, and sorted behind everything
    return np.lexsort(columns)


def true_of(comparison: str, left: Values, right: Values) -> tuple[Booleans, Booleans]:
    """Where estimates make a comparison true, and where false; what is undefined is neither."""
    one, other = (each.estimate.astype(np.float64) for each in (left, right))
    known = ~np.isnan(one) & ~np.isnan(other)
    holds = np.asarray(_COMPARISONS[comparison](one, other))
    return known & holds, known & ~holds


def _sortable(source: Source, found: Found) -> NDArray[Any]:
    if isinstance(source, Binned):
        return found.binned[source][0]  # NaN for rows without the feature
    return found.keys[source] if isinstance(source, Keyed) else found.of(source).estimate


def _column(source: Source, found: Found, rows: NDArray[np.intp], layout: Layout) -> Column:
    if isinstance(source, Statistic) or not isinstance(source, Keyed):
        return found.of(source).take(rows)
    key = found.keys[source][rows]
    if isinstance(source, CellKey):
        return CellKeys(geohash.to_text(key, source.length))
    if isinstance(source, Binned):
        low, high = found.binned[source]
        return BinKeys(low[rows], high[rows])
    span, zone = Bucket.parse(source.span), layout.zone if source.zone is None else Zone.named(source.zone)
    return BucketKeys(span.starts_us(key, zone), source.zone or layout.timezone, span.ends_us(key, zone))


def _truth(condition: Having, found: Found) -> tuple[Booleans, Booleans]:
    """Of which groups the estimates make a condition true, and of which false; what is undefined is neither."""
    if isinstance(condition, Compared):
        return true_of(condition.comparison, found.of(condition.left), found.of(condition.right))
    if isinstance(condition, Fails):
        true, false = _truth(condition.condition, found)
        return false, true
    parts = [_truth(part, found) for part in condition.conditions]
    true, false = np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])
    if isinstance(condition, Every):
        return np.logical_and.reduce(true), np.logical_or.reduce(false)
    return np.logical_or.reduce(true), np.logical_and.reduce(false)
