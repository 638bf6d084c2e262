"""Strata: statistics of the rows that a condition selects, from histograms alone, with intervals that always hold.

A **stratum** is a place x a period. Of it are known how many rows it has, how many of them are surely in the scope and
how many more may be, and of each feature how many of its values lie in each of a few bins, between bounds. Which row
has which values together is not known. So the rows for which each part of a condition holds are counted between bounds,
and these are combined as Fréchet (1935) has it: of n rows, a and b of which have two properties, at least a + b - n and
at most min(a, b) have both.

The statistics of a feature rest on two extreme arrangements of the selected rows, one with values as high as can be and
one as low as can be (`sides`, a mirror image of each other). In each, going from the best bin to the worst,

    rows taken up to here <= rows that these bins can hold
                          <= all rows taken - rows that the bins beyond cannot lose

and the bins beyond lose at most as many rows as the scope and the other predicates may refuse. Of the rows taken, some
**must** be, because so many are surely selected, the others **may** be. An upper bound of any statistic follows:

- SUM takes every row that must be, and of the others those above zero;
- MEAN takes of the others those above itself (Dinkelbach, 1967);
- MIN is at most the worst bin that must be taken from, in the stratum where it is lowest;
- QUANTILE is at least v only if more than (1 - q) (n - 1) of the n rows are, which can be had only if
  must(v) + q may(v) > (1 - q) (must - 1), for the rows at v or above: a quantile of weighted bins.

Counts are float64 inside: exact up to 2^53, and NumPy multiplies them with values without converting.

One group whose counts are exact, which is what most questions are about, goes to `arrangements`, where the same is
computed in machine code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synopsis.query.covers import Slots
from synopsis.query.predicates import (
    EVERYTHING,
    EVERYWHERE,
    AllOf,
    Clause,
    Condition,
    Leaf,
    Ranges,
    parted,
    positive,
    reachable,
)
from synopsis.query.runs import Runs
from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import Strata as KeptStrata

if TYPE_CHECKING:
    from synopsis.query import arrangements
else:
    arrangements = Later("synopsis.query.arrangements")

#: Share of the magnitudes by which sums of values may be off by rounding, here and in whoever checks them.
ROUNDING: Final = 1e-9
_ROUNDING_OF_RANKS: Final = 1e-15  #: share of the rows by which a rank may be off: a few units in the last place
_CLOSE_ENOUGH: Final = 1e-5  #: of the way to the best value: where the search for a mean stops
_MOST_STEPS: Final = 50
_CELLS: Final = 256  #: of values, in which a quantile is sought first
_NO_WIDTH: Final = 1e-300  #: what is narrower is not parted into cells
_BEST, _WORST, _COUNT, _SUM, _MEAN, _EITHER = range(6)  #: facts of a side in `arrangements`


class Interval(NamedTuple):
    """Where the truth lies, per group; NaN where there surely is none."""

    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Strata:
    """Strata side by side, by group: how many rows each has, has surely in scope, and may have in scope besides."""

    total: Integers
    inside: Integers
    cut: Integers
    group: Integers  #: ascending
    groups: int

    @classmethod
    def of(cls, slots: Slots) -> Strata:
        """The strata of a summary that have rows in scope."""
        return cls(slots.whole, slots.inside, slots.cut, slots.group, slots.groups)

    @cached_property
    def runs(self) -> Runs:
        """The strata of each group."""
        return Runs.of(slice(0, self.total.size), self.group, self.groups)

    def sum(self, values: Floats) -> Floats:
        """The sum over each group."""
        return np.array([values.sum()]) if self.groups == 1 else self.runs.sum(values)


@dataclass(frozen=True, eq=False)
class Histogram:
    """One feature's values in each stratum: bins x strata, ascending bins that at most touch.

    Bins have finite ends, which do not matter where a bin is surely empty. Where all counts are exact, pass the same
    array as `least` and `most`: nothing is computed twice then.
    """

    least: Integers | Floats
    most: Integers | Floats
    absent_least: Integers | Floats
    absent_most: Integers | Floats
    low: Floats  #: every value of the bin is at least this
    high: Floats  #: and at most this

    @classmethod
    def kept(cls, strata: KeptStrata, position: int, scales: Scales, feature: int, chosen: Integers) -> Histogram:
        """What the chosen strata of a summary count of a feature, which stands at `position` in them."""
        own = (strata.starts[position], strata.ends[position], strata.counts[position], chosen)
        ends = (scales.quantizers[feature].edges, float(scales.low[feature]), float(scales.high[feature]))
        rows, low, high = arrangements.binned(*(*own, *ends))
        counts, absent = rows[:-1], rows[-1]
        return cls(counts, counts, absent, absent, low, high)

    @cached_property
    def at_least(self) -> Floats:
        """`least` to compute with."""
        return self.least.astype(np.float64, copy=False)

    @cached_property
    def at_most(self) -> Floats:
        """`most` to compute with; the same array as `at_least` where all is exact."""
        return self.at_least if self.most is self.least else self.most.astype(np.float64, copy=False)

    @cached_property
    def present(self) -> tuple[Floats, Floats]:
        """The sum of the bins of each stratum, of their least and of their most."""
        least = self.at_least.sum(axis=0)
        return least, least if self.most is self.least else self.at_most.sum(axis=0)

    @property
    def is_exact(self) -> bool:
        """Whether all counts are."""
        return self.most is self.least and self.absent_most is self.absent_least

    def tightened(self, total: Floats) -> tuple[Floats, Floats]:
        """`least` and `most` as the other bins and the total leave them."""
        least, most = self.at_least, self.at_most
        if most is least:
            return least, most
        spare = self.present[1] + self.absent_most - total
        missing = total - self.present[0] - self.absent_least
        return np.maximum(least, most - spare), np.minimum(most, least + missing)


class Histograms(dict[int, Histogram]):
    """Histograms by feature of some strata of a summary, made when they are first asked for."""

    def __init__(self, strata: KeptStrata, scales: Scales, features: tuple[int, ...], chosen: Integers) -> None:
        super().__init__()
        self._strata, self._scales, self._features, self._chosen = strata, scales, features, chosen

    def __missing__(self, feature: int) -> Histogram:
        position = self._features.index(feature)
        found = Histogram.kept(self._strata, position, self._scales, feature, self._chosen)
        self[feature] = found
        return found


# --- for how many rows a condition holds ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Covered:
    """How ranges of values cover the bins of a histogram, as numbers to multiply with: 1 and 0."""

    histogram: Histogram
    ranges: Ranges

    @cached_property
    def ends(self) -> Floats:
        """The ranges as an array."""
        return _ends(self.ranges)

    @cached_property
    def within(self) -> Floats:
        """Which bins lie in the ranges with all their values."""
        lows, highs = self.histogram.low, self.histogram.high
        return self._any([(lows >= low) & (highs <= high) for low, high in self.ranges])

    @cached_property
    def touched(self) -> Floats:
        """Which bins may have a value in the ranges."""
        lows, highs = self.histogram.low, self.histogram.high
        return self._any([(highs >= low) & (lows <= high) for low, high in self.ranges])

    def clipped(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of each bin that lie in the ranges; any number where there is none."""
        lows, highs = self.histogram.low, self.histogram.high
        # Bins are finite: a range that begins or ends at the wrong infinity has none of them.
        ranges = [(low, high) for low, high in self.ranges if low < np.inf and high > -np.inf]
        clipped = [(np.maximum(lows, low), np.minimum(highs, high)) for low, high in ranges] or [(lows, highs)]
        if len(clipped) == 1:
            return clipped[0]
        low = reduce(np.minimum, (np.where(low <= high, low, np.inf) for low, high in clipped))
        high = reduce(np.maximum, (np.where(low <= high, high, -np.inf) for low, high in clipped))
        return np.where(low <= high, low, 0.0), np.where(low <= high, high, 0.0)

    def _any(self, masks: list[NDArray[np.bool_]]) -> Floats:
        if not masks:
            return np.zeros(self.histogram.low.shape)
        return reduce(np.logical_or, masks).astype(np.float64)


@lru_cache(maxsize=256)
def _demanded(clause: Clause, feature: int) -> tuple[Leaf, Clause, Leaf]:
    """What a clause demands of a feature alone, everything else, and what both leave of the feature."""
    own, others = parted(clause, feature)
    return own, others, own & reachable(others, feature)


@lru_cache(maxsize=256)
def _ends(ranges: Ranges) -> Floats:
    return np.array(ranges, np.float64).reshape(-1, 2)


class Selection:
    """The rows that are in scope and satisfy a condition.

    Cost: a pass over the bins of the strata for each leaf of the condition, and a few for each statistic of a feature.
    """

    def __init__(self, strata: Strata, histograms: Mapping[int, Histogram], condition: Condition = EVERYTHING) -> None:
        self.strata, self._histograms, self._clause = strata, histograms, positive(condition)
        self.total = strata.total.astype(np.float64)
        self._leaves: dict[Leaf, tuple[_Covered, Floats, Floats]] = {}
        self._values: dict[int, SelectedValues] = {}

    def count(self) -> Interval:
        """COUNT(*): how many they are."""
        least, most = self.held(self._clause)
        if self.strata.groups == 1:
            scope = (self.total, self.strata.inside, self.strata.cut)
            ends = arrangements.counted(*(*scope, least, most))
            return Interval(np.array(ends[:1]), np.array(ends[1:]))
        low = np.maximum(self.strata.inside + least - self.total, 0.0)
        high = np.minimum(self.strata.inside + self.strata.cut, most)
        return Interval(self.strata.sum(low), self.strata.sum(high))

    def values(self, feature: int) -> SelectedValues:
        """What they have of a feature."""
        if feature not in self._values:
            demanded = _demanded(self._clause, feature)
            self._values[feature] = SelectedValues(self, self._histograms[feature], *demanded)
        return self._values[feature]

    def held(self, clause: Clause) -> tuple[Floats, Floats]:
        """For how many rows of each stratum a clause holds, in scope or not."""
        if isinstance(clause, Leaf):
            return self.leaf(clause)[1:]
        if not clause.parts:
            nothing = np.zeros(self.total.size)
            return (self.total, self.total) if isinstance(clause, AllOf) else (nothing, nothing)
        parts = [self.held(part) for part in clause.parts]
        if isinstance(clause, AllOf):
            refused = reduce(np.add, (self.total - least for least, _ in parts), np.zeros(self.total.size))
            return np.maximum(self.total - refused, 0.0), reduce(np.minimum, (most for _, most in parts), self.total)
        none = np.zeros(self.total.size)
        most = reduce(np.add, (most for _, most in parts), none)
        return reduce(np.maximum, (least for least, _ in parts), none), np.minimum(most, self.total)

    def leaf(self, leaf: Leaf) -> tuple[_Covered, Floats, Floats]:
        """How a leaf covers its feature's bins, and for how many rows it holds."""
        if leaf not in self._leaves:
            covered = _Covered(self._histograms[leaf.feature], leaf.ranges)
            self._leaves[leaf] = (covered, *self._held_by_leaf(leaf, covered))
        return self._leaves[leaf]

    def _held_by_leaf(self, leaf: Leaf, covered: _Covered) -> tuple[Floats, Floats]:
        """Bins within the ranges count with their least, bins that touch them with their most.

        The total may say more: what is not among the most that can be outside is inside.
        """
        histogram = covered.histogram
        if histogram.is_exact:
            counts, absent = histogram.at_least, histogram.absent_least.astype(np.float64, copy=False)
            ends = covered.histogram.low, covered.histogram.high, covered.ends
            return arrangements.held_by_leaf(counts, absent, *ends, leaf.nulls, self.total)
        least, most = within_least, touched_most = histogram.present
        touched_least, within_most = least, most
        if leaf.ranges != EVERYWHERE:
            within_least = _over_bins(histogram.at_least, covered.within)
            touched_most = _over_bins(histogram.at_most, covered.touched)
            is_exact = histogram.at_most is histogram.at_least
            within_most = within_least if is_exact else _over_bins(histogram.at_most, covered.within)
            touched_least = touched_most if is_exact else _over_bins(histogram.at_least, covered.touched)
        outside_least, outside_most = least - touched_least, most - within_most
        if leaf.nulls:
            within_least, touched_most = within_least + histogram.absent_least, touched_most + histogram.absent_most
        else:
            outside_least, outside_most = outside_least + histogram.absent_least, outside_most + histogram.absent_most
        return np.maximum(within_least, self.total - outside_most), np.minimum(touched_most, self.total - outside_least)


def _over_bins(counts: Floats, values: Floats) -> Floats:
    """The sum of counts x values over the bins of each stratum."""
    return np.asarray(np.einsum("bs,bs->s", counts, values))


# --- the statistics of a feature --------------------------------------------------------------------------------------


class SelectedValues:
    """The values of one feature in the rows that are selected.

    `own` is what the condition demands of this feature alone, `others` everything else, `reach` what both leave of it.
    """

    def __init__(self, selection: Selection, histogram: Histogram, own: Leaf, others: Clause, reach: Leaf) -> None:
        self._strata, self._total = selection.strata, selection.total
        self._histogram = histogram
        self._covered, own_least, own_most = selection.leaf(own)
        others_least, others_most = selection.held(others)
        if reach != own:
            self._covered, _, own_most = selection.leaf(reach)
        self._refused, self._least, self._most = arrangements.left(
            *(self._total, self._strata.inside, self._strata.cut),
            *(own_least, own_most, others_least, others_most),
        )

    def count(self) -> Interval:
        """COUNT(x): how many values there are."""
        return self._counted

    @cached_property
    def _counted(self) -> Interval:
        return Interval(self._strata.sum(self._least), self._strata.sum(self._most))

    def sum(self) -> Interval:
        """SUM(x)."""
        return self._stated(_SUM, _SUM) or self._between(*(side.sum() for side in self._sides))

    def mean(self) -> Interval:
        """MEAN(x)."""
        if (known := self._stated(_MEAN, _MEAN)) is not None:
            return known
        floor, ceiling = (side.best for side in self._sides)
        scale = np.maximum(np.abs(floor), np.abs(ceiling))
        return self._between(*(side.mean(scale) for side in self._sides))

    def min(self) -> Interval:
        """MIN(x)."""
        if (known := self._stated(_BEST, _WORST)) is not None:
            return known
        down, up = self._sides
        return self._between(down.best, up.worst)

    def max(self) -> Interval:
        """MAX(x)."""
        if (known := self._stated(_WORST, _BEST)) is not None:
            return known
        down, up = self._sides
        return self._between(down.worst, up.best)

    def quantile(self, share: float) -> Interval:
        """QUANTILE(x, share), interpolated linearly between neighbouring values."""
        if self._arranged is not None:
            return self._arranged.quantile(share)
        down, up = self._sides
        return self._between(down.quantile(1.0 - share, share, -up.best), up.quantile(share, 1.0 - share, -down.best))

    def _between(self, down: Floats, up: Floats) -> Interval:
        is_empty = self.count().high == 0.0
        return Interval(np.where(is_empty, np.nan, 0.0 - down), np.where(is_empty, np.nan, up))

    @cached_property
    def _arranged(self) -> _Arranged | None:
        """Both sides in machine code, where there is one group with values, whose counts are exact."""
        histogram = self._histogram
        if not histogram.is_exact or self._strata.groups != 1 or self.count().high[0] == 0.0:
            return None
        low, high, ends = histogram.low, histogram.high, self._covered.ends
        return _Arranged(
            arrangements.arranged(histogram.at_least, low, high, ends, self._refused, self._least, self._most)
        )

    def _stated(self, down: int, up: int) -> Interval | None:
        return None if self._arranged is None else self._arranged.between(down, up)

    @cached_property
    def _sides(self) -> tuple[_Side, _Side]:
        """The feature's negative and the feature: an upper bound for the one, negated, is a lower one for the other."""
        histogram, covered = self._histogram, self._covered
        least, most = histogram.tightened(self._total)
        low, high, sure, may_be = histogram.low, histogram.high, least, most
        if covered.ranges != EVERYWHERE:
            low, high = covered.clipped()
            sure, may_be = least * covered.within, most * covered.touched

        # Row b of each has the sum of the b lowest bins. A product with a triangle is faster than a cumulative sum.
        triangle = np.tri(len(most) + 1, len(most), -1)
        forced = triangle @ sure
        room = forced if may_be is sure else triangle @ may_be
        down, up = room[1:], room[-1] - room[:-1]
        if most is not least:
            rows = forced if sure is least else triangle @ least
            present = self._total - histogram.absent_least
            down = np.minimum(down, rows[1:] + (present - rows[-1]))
            np.minimum(up, present - rows[:-1], out=up)
        kept_down, kept_up = (forced[-1] - self._refused) - forced[1:], forced[:-1] - self._refused
        return self._side(-low, down, kept_down), self._side(high[::-1].copy(), up[::-1], kept_up[::-1])

    def _side(self, values: Floats, room: Floats, kept: Floats) -> _Side:
        """An arrangement, given for each bin from the best on how many rows fit so far, and how many stay beyond."""
        np.maximum(kept, 0.0, out=kept)
        must, either = np.minimum(room, self._least - kept), np.minimum(room, self._most - kept)
        return _Side(self._strata, values, _differences(must), _differences(either))


class _Arranged:
    """Both sides of one group whose counts are exact: values, rows that must be taken, rows that must or may be."""

    def __init__(self, rows: tuple[Floats, Floats, Floats, Integers]) -> None:
        self._rows = rows

    @classmethod
    def joined(cls, parts: Sequence[_Arranged]) -> _Arranged:
        """Arrangements of different strata as one."""
        sizes = np.sum([part._rows[3] for part in parts], axis=0)
        joined = np.empty((3, 2, int(sizes.max())))
        for side in range(2):
            for at, array in enumerate(joined[:, side]):
                own = [part._rows[at][side, : part._rows[3][side]] for part in parts]
                np.concatenate(own, out=array[: sizes[side]])
        return cls((joined[0], joined[1], joined[2], sizes))

    @cached_property
    def _facts(self) -> Floats:
        return arrangements.facts(*self._rows, ROUNDING, _CLOSE_ENOUGH, _MOST_STEPS)

    def between(self, down: int, up: int) -> Interval:
        """What is a fact of either side."""
        return Interval(0.0 - self._facts[0, down, None], self._facts[1, up, None])

    def quantile(self, share: float) -> Interval:
        """QUANTILE, as `_Side` has it."""
        lows, highs = self._facts[:, _BEST].tolist()
        return Interval(
            np.array([0.0 - self._at_most(0, 1.0 - share, share, -highs)]),
            np.array([self._at_most(1, share, 1.0 - share, -lows)]),
        )

    def _at_most(self, side: int, share: float, above: float, floor: float) -> float:
        best, _, count, _, _, either = self._facts[side].tolist()
        values, must, rows, sizes = self._rows
        size = sizes[side]
        taken = (values[side, :size], must[side, :size], rows[side, :size])
        needed = above * (count - 1.0)
        level = arrangements.quantile(*(*taken, best, floor, share, needed, _CELLS, _NO_WIDTH))
        return float(min(level + ROUNDING * abs(level) + _ROUNDING_OF_RANKS * either * (best - floor), best))


def _differences(so_far: Floats) -> Floats:
    """What each bin adds to those before it; np.diff with `prepend` would copy twice."""
    differences = np.empty_like(so_far)
    differences[0] = so_far[0]
    np.subtract(so_far[1:], so_far[:-1], out=differences[1:])
    return differences


class _Side:
    """The rows of each stratum with values as high as can be, and what follows from them: upper bounds per group.

    Arrays are bins x strata, the best bin first. Groups without rows get a bound that means nothing.
    """

    def __init__(self, strata: Strata, values: Floats, must: Floats, either: Floats) -> None:
        self._strata, self._runs = strata, strata.runs
        self._values, self._must, self._either = values, must, either

    @cached_property
    def best(self) -> Floats:
        """At least their greatest value."""
        return self._finite(self._runs.max(np.where(self._either > 0.0, self._values, -np.inf).max(axis=0)))

    @cached_property
    def worst(self) -> Floats:
        """At least their least value."""
        worst = self._runs.min(np.where(self._must > 0.0, self._values, np.inf).min(axis=0))
        return np.where(np.isinf(worst), self.best, worst)

    def sum(self) -> Floats:
        """At least their sum."""
        may = self._runs.sum(_over_bins(self._may, np.maximum(self._values, 0.0)))
        slack = ROUNDING * self._runs.sum(_over_bins(self._either, np.abs(self._values)))
        # Where no row must be taken, one is all the same: without, there would be no sum.
        only_negative = (self._count == 0.0) & (self.best < 0.0)
        return np.where(only_negative, self.best, self._fixed + may) + slack

    def mean(self, scale: Floats) -> Floats:
        """At least their mean, where no value is larger than `scale` in magnitude.

        The gain over a level, of the rows that must be taken and of the others above it, falls as the level rises, and
        convexly. So Newton's steps climb to the level without gain, which is never further away than the gain that is
        left, shared among the rows that must be taken. Where none must be, the best row alone has the largest mean.
        """
        runs, is_sought, slack = self._runs, self._count > 0.0, ROUNDING * scale
        count, products = np.maximum(self._count, 1.0), self._may * self._values
        taken, total = count + runs.sum(self._may.sum(axis=0)), self._fixed + runs.sum(products.sum(axis=0))
        level = np.where(is_sought, np.maximum(self._fixed / count, total / taken), self.best)
        for _ in range(_MOST_STEPS):
            above = (self._values > runs.spread_out(level)).astype(np.float64)
            taken = count + runs.sum(_over_bins(self._may, above))
            total = self._fixed + runs.sum(_over_bins(products, above))
            gain = np.where(is_sought, np.maximum(total - level * taken, 0.0) / count, 0.0)
            if np.all(gain <= slack + _CLOSE_ENOUGH * (self.best - level)):
                break
            level = np.where(is_sought, np.maximum(total / taken, level), level)
        return np.asarray(np.minimum(level + gain, self.best) + slack)

    def quantile(self, share: float, above: float, floor: Floats) -> Floats:
        """At least their quantile, with that share of the rows below it and the rest `above`; none is below `floor`.

        Bins are counted by cells of values first; only those of the cell in which the quantile lies are sorted.
        """
        groups, runs = self._strata.groups, self._runs
        cells = max(1, min(_CELLS, _CELLS * _CELLS // max(groups, 1)))
        width = self.best - floor
        density = np.divide(cells - 1, width, out=np.zeros(groups), where=width > _NO_WIDTH)
        place = (runs.spread_out(self.best) - self._values) * runs.spread_out(density)
        cell = np.clip(place, 0, cells - 1, out=place).astype(np.intp)
        index = (cell + self._strata.group * cells).ravel()
        must, either = (
            np.bincount(index, rows.ravel(), groups * cells).reshape(groups, cells)
            for rows in (self._must, self._either)
        )
        must_so_far, either_so_far = must.cumsum(axis=1), either.cumsum(axis=1)
        needed = above * (self._count - 1.0)

        def is_reached(must: Floats, either: Floats, needed: Floats) -> NDArray[np.bool_]:
            return np.asarray((must + share * (either - must) > needed) & (either > 0.0))

        found = is_reached(must_so_far, either_so_far, needed[:, None]).argmax(axis=1)
        before = np.arange(groups), found
        which = np.flatnonzero((cell == runs.spread_out(found)) & (self._either > 0.0))
        group, values = self._strata.group[which % self._strata.group.size], self._values.ravel()[which]
        order = np.lexsort((-values, group))
        inner = Runs.of(slice(0, which.size), group[order], groups)
        which, values = which[order], values[order]
        must_here = _running(inner, self._must.ravel()[which], (must_so_far - must)[before])
        either_here = _running(inner, self._either.ravel()[which], (either_so_far - either)[before])
        reached = is_reached(must_here, either_here, inner.spread_out(needed))
        level = self._finite(inner.max(np.where(reached, values, -np.inf)))
        # Off by a share of a rank is off by a share of the way to the next value.
        ranks = _ROUNDING_OF_RANKS * runs.sum(self._either.sum(axis=0))
        return np.minimum(level + ROUNDING * np.abs(level) + ranks * width, self.best)

    # --- what they share ----------------------------------------------------------------------------------------------

    @cached_property
    def _may(self) -> Floats:
        return self._either - self._must

    @cached_property
    def _count(self) -> Floats:
        """How many rows must be taken."""
        return self._runs.sum(self._must.sum(axis=0))

    @cached_property
    def _fixed(self) -> Floats:
        """The sum of the rows that must be taken."""
        return self._runs.sum(_over_bins(self._must, self._values))

    @staticmethod
    def _finite(values: Floats) -> Floats:
        """0 where there are no rows."""
        return np.where(np.isinf(values), 0.0, values)


def _running(runs: Runs, rows: Floats, before: Floats) -> Floats:
    """Cumulative sums over each run, beginning with what is before it."""
    total = np.cumsum(rows)
    return total + runs.spread_out(before) - np.repeat((total - rows)[runs.starts], runs.lengths)


class JoinedValues(SelectedValues):
    """The values of one feature in several selections of no row in common, stratum beside stratum, by group."""

    def __init__(self, parts: Sequence[tuple[SelectedValues, Integers]], groups: int) -> None:
        """Parts, each with the group that its own groups belong to, or -1 where they belong to none."""
        self._parts = parts
        group = np.concatenate([own[part._strata.group] for part, own in parts])
        kept = np.flatnonzero(group >= 0)
        self._order = kept[np.argsort(group[kept], kind="stable")]
        total, inside, cut = (
            np.concatenate([getattr(part._strata, name) for part, _ in parts])[self._order]
            for name in ("total", "inside", "cut")
        )
        self._strata = Strata(total, inside, cut, group[self._order], groups)

    @cached_property
    def _arranged(self) -> _Arranged | None:
        """Both sides in machine code, where all parts with values of the one group have them."""
        if self._strata.groups != 1 or any(part._strata.groups != 1 for part, _ in self._parts):
            return None
        parts = [part._arranged for part, own in self._parts if own[0] >= 0 and part.count().high[0] > 0.0]
        known = [part for part in parts if part is not None]
        return _Arranged.joined(known) if known and len(known) == len(parts) else None

    @cached_property
    def _counted(self) -> Interval:
        low, high = np.zeros(self._strata.groups), np.zeros(self._strata.groups)
        for part, own in self._parts:
            for side, each in zip((low, high), part.count(), strict=True):
                side[own[own >= 0]] += each[own >= 0]
        return Interval(low, high)

    @cached_property
    def _sides(self) -> tuple[_Side, _Side]:
        down, up = zip(*(part._sides for part, _ in self._parts), strict=True)
        return self._beside(down), self._beside(up)

    def _beside(self, sides: Sequence[_Side]) -> _Side:
        """Arrangements of different strata as one; where some have fewer bins, nothing lies in the rest."""
        bins = max(len(side._values) for side in sides)

        def joined(arrays: Iterable[Floats]) -> Floats:
            padded = [np.pad(array, ((0, bins - len(array)), (0, 0))) for array in arrays]
            return np.concatenate(padded, axis=1)[:, self._order]

        return _Side(
            self._strata,
            joined(side._values for side in sides),
            joined(side._must for side in sides),
            joined(side._either for side in sides),
        )
