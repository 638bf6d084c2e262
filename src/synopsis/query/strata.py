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
computed in machine code; all else goes to `sides`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synopsis.query.histograms import Histogram, Histograms, Sides, Strata
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
from synopsis.query.programs import demands_of
from synopsis.query.sides import Side, differences, over_bins
from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Floats, Integers

if TYPE_CHECKING:
    from synopsis.query import arrangements
else:
    arrangements = Later("synopsis.query.arrangements")


class Interval(NamedTuple):
    """Where the truth lies, per group; NaN where there surely is none."""

    low: Floats
    high: Floats


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
def _ends(ranges: Ranges) -> Floats:
    return np.array(ranges, np.float64).reshape(-1, 2)


class Held:
    """For how many rows of each stratum a clause holds, and all that it demands."""

    def __init__(self, strata: Strata, histograms: Mapping[int, Histogram], clause: Clause) -> None:
        self.strata, self._histograms, self.clause = strata, histograms, clause
        self._leaves: dict[Leaf, tuple[_Covered, Floats, Floats]] = {}

    @cached_property
    def total(self) -> Floats:
        """Strata: all rows."""
        return self.strata.total.astype(np.float64)

    @property
    def plain(self) -> Histograms | None:
        """The histograms where they are a summary's, whose counts are exact, and there is one group."""
        return self._histograms if self.strata.groups == 1 and isinstance(self._histograms, Histograms) else None

    def known(self, feature: int) -> tuple[Floats, Floats, Sides] | None:
        """What machine code finds of a feature at once, where it serves."""
        plain = self.plain
        return None if plain is None else plain.selected(self.strata, demands_of(self.clause, feature))

    def demanded(self, feature: int) -> Demanded:
        """How many rows have a value and may be refused, by stratum."""
        own, others = parted(self.clause, feature)
        reach = own & reachable(others, feature)
        covered, own_least, own_most = self.leaf(own)
        others_least, others_most = self.rows(others)
        if reach != own:
            covered, _, own_most = self.leaf(reach)
        scope = (self.total, self.strata.inside, self.strata.cut)
        left = arrangements.left(*scope, own_least, own_most, others_least, others_most)
        return Demanded(self._histograms[feature], covered, *left)

    def rows(self, clause: Clause) -> tuple[Floats, Floats]:
        """For how many rows of each stratum a clause holds, in scope or not."""
        if isinstance(clause, Leaf):
            return self.leaf(clause)[1:]
        if not clause.parts:
            nothing = np.zeros(self.total.size)
            return (self.total, self.total) if isinstance(clause, AllOf) else (nothing, nothing)
        parts = [self.rows(part) for part in clause.parts]
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
            within_least = over_bins(histogram.at_least, covered.within)
            touched_most = over_bins(histogram.at_most, covered.touched)
            is_exact = histogram.at_most is histogram.at_least
            within_most = within_least if is_exact else over_bins(histogram.at_most, covered.within)
            touched_least = touched_most if is_exact else over_bins(histogram.at_least, covered.touched)
        outside_least, outside_most = least - touched_least, most - within_most
        if leaf.nulls:
            within_least, touched_most = within_least + histogram.absent_least, touched_most + histogram.absent_most
        else:
            outside_least, outside_most = outside_least + histogram.absent_least, outside_most + histogram.absent_most
        return np.maximum(within_least, self.total - outside_most), np.minimum(touched_most, self.total - outside_least)


class Selection:
    """The rows that are in scope and satisfy a condition.

    Cost: a pass over the bins of the strata for each leaf of the condition, and a few for each statistic of a feature.
    """

    def __init__(self, strata: Strata, histograms: Mapping[int, Histogram], condition: Condition = EVERYTHING) -> None:
        # Values know of what holds, not of the selection: all of it is gone with the last who asks.
        self._held, self._values = Held(strata, histograms, positive(condition)), dict[int, SelectedValues]()

    def count(self) -> Interval:
        """COUNT(*): how many they are."""
        held, strata = self._held, self._held.strata
        if (plain := held.plain) is not None:
            known = next((each.known for each in self._values.values()), None)
            rows = plain.selected(strata, demands_of(held.clause, None))[0] if known is None else known[0]
            return Interval(rows[arrangements.ROWS_LOW, None], rows[arrangements.ROWS_HIGH, None])
        least, most = held.rows(held.clause)
        low = np.maximum(strata.inside + least - held.total, 0.0)
        high = np.minimum(strata.inside + strata.cut, most)
        return Interval(strata.sum(low), strata.sum(high))

    def values(self, feature: int) -> SelectedValues:
        """What they have of a feature."""
        if feature not in self._values:
            self._values[feature] = SelectedValues(self._held, feature)
        return self._values[feature]


# --- the statistics of a feature --------------------------------------------------------------------------------------


class Demanded(NamedTuple):
    """What a condition leaves of a feature."""

    histogram: Histogram
    covered: _Covered
    refused: Floats  #: strata: rows that the scope and what is demanded of others may refuse
    least: Floats  #: strata: values
    most: Floats


class SelectedValues:
    """The values of one feature in the rows that are selected."""

    known: tuple[Floats, Floats, Sides] | None = None  #: what machine code found of them, where it serves

    def __init__(self, held: Held, feature: int) -> None:
        self._held, self._feature, self._strata = held, feature, held.strata
        self.known = held.known(feature)

    @cached_property
    def _demanded(self) -> Demanded:
        return self._held.demanded(self._feature)

    def count(self) -> Interval:
        """COUNT(x): how many values there are."""
        return self._counted

    @cached_property
    def _counted(self) -> Interval:
        if self.known is not None:
            rows = self.known[0]
            return Interval(rows[arrangements.VALUES_LOW, None], rows[arrangements.VALUES_HIGH, None])
        return Interval(self._strata.sum(self._demanded.least), self._strata.sum(self._demanded.most))

    def sum(self) -> Interval:
        """SUM(x)."""
        return self._stated(arrangements.SUM, arrangements.SUM) or self._between(*(side.sum() for side in self._sides))

    def mean(self) -> Interval:
        """MEAN(x)."""
        if (known := self._stated(arrangements.MEAN, arrangements.MEAN)) is not None:
            return known
        floor, ceiling = (side.best for side in self._sides)
        scale = np.maximum(np.abs(floor), np.abs(ceiling))
        return self._between(*(side.mean(scale) for side in self._sides))

    def min(self) -> Interval:
        """MIN(x)."""
        if (known := self._stated(arrangements.BEST, arrangements.WORST)) is not None:
            return known
        down, up = self._sides
        return self._between(down.best, up.worst)

    def max(self) -> Interval:
        """MAX(x)."""
        if (known := self._stated(arrangements.WORST, arrangements.BEST)) is not None:
            return known
        down, up = self._sides
        return self._between(down.worst, up.best)

    def quantile(self, share: float) -> Interval:
        """QUANTILE(x, share), interpolated linearly between neighbouring values."""
        if self._is_void:
            return _nothing()
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
        if self.known is not None:
            _, facts, rows = self.known
            return _Arranged(rows, facts) if facts.size else None
        if self._strata.groups != 1:
            return None
        histogram, covered, *left = self._demanded
        if not histogram.is_exact or self.count().high[0] == 0.0:
            return None
        return _Arranged(arrangements.arranged(histogram.at_least, histogram.low, histogram.high, covered.ends, *left))

    @property
    def _is_void(self) -> bool:
        """Whether machine code found that there is no value."""
        return self.known is not None and not self.known[1].size

    def _stated(self, down: int, up: int) -> Interval | None:
        if self._is_void:
            return _nothing()
        return None if self._arranged is None else self._arranged.between(down, up)

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        """The feature's negative and the feature: an upper bound for the one, negated, is a lower one for the other."""
        histogram, covered, refused = self._demanded[:3]
        total = self._held.total
        least, most = histogram.tightened(total)
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
            present = total - histogram.absent_least
            down = np.minimum(down, rows[1:] + (present - rows[-1]))
            np.minimum(up, present - rows[:-1], out=up)
        kept_down, kept_up = (forced[-1] - refused) - forced[1:], forced[:-1] - refused
        return self._side(-low, down, kept_down), self._side(high[::-1].copy(), up[::-1], kept_up[::-1])

    def _side(self, values: Floats, room: Floats, kept: Floats) -> Side:
        """An arrangement, given for each bin from the best on how many rows fit so far, and how many stay beyond."""
        np.maximum(kept, 0.0, out=kept)
        least, most = self._demanded[3:]
        must, either = np.minimum(room, least - kept), np.minimum(room, most - kept)
        return Side(self._strata, values, differences(must), differences(either))


def _nothing() -> Interval:
    """Of one group without a value."""
    return Interval(np.full(1, np.nan), np.full(1, np.nan))


class _Arranged:
    """Both sides of one group whose counts are exact: values, rows that must be taken, rows that must or may be."""

    def __init__(self, rows: Sides, facts: Floats | None = None) -> None:
        self._rows = rows
        self._facts = arrangements.facts(*rows) if facts is None else facts
        self._down, self._up = 0.0 - self._facts[0], self._facts[1]

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

    def between(self, down: int, up: int) -> Interval:
        """What is a fact of either side."""
        return Interval(self._down[down : down + 1], self._up[up : up + 1])

    def quantile(self, share: float) -> Interval:
        """QUANTILE, as `Side` has it."""
        ends = arrangements.quantile(*self._rows, self._facts, share)
        return Interval(ends[:1], ends[1:])


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
    def _sides(self) -> tuple[Side, Side]:
        down, up = zip(*(part._sides for part, _ in self._parts), strict=True)
        return self._beside(down), self._beside(up)

    def _beside(self, sides: Sequence[Side]) -> Side:
        """Arrangements of different strata as one; where some have fewer bins, nothing lies in the rest."""
        bins = max(len(side._values) for side in sides)

        def joined(arrays: Iterable[Floats]) -> Floats:
            padded = [np.pad(array, ((0, bins - len(array)), (0, 0))) for array in arrays]
            return np.concatenate(padded, axis=1)[:, self._order]

        return Side(
            self._strata,
            joined(side._values for side in sides),
            joined(side._must for side in sides),
            joined(side._either for side in sides),
        )
