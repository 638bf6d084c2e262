"""Bounds: the statistics of one feature over groups of strands, each with an interval that always holds the truth.

Of every group some strands lie inside the scope with all their rows, and some are cut: they contribute an unknown
subset of theirs. Without cut strands a statistic is exact. With them

- COUNT lies between that of the inside and that of all;
- SUM and MEAN are bounded by what a subset can do at most (`subsets`);
- MIN and MAX can only be moved outwards by cut strands, and no further than their extremes;
- the squared distances behind VAR and STD never shrink when values are added, so they lie between those of the inside
  and those of all; the variance is at most a quarter of the squared range, too (Popoviciu, 1935).

The estimate takes each cut strand with the fraction of it that the scope is thought to cover.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.query.runs import Runs
from synopsis.query.subsets import ROUNDING, Parts, largest_means
from synopsis.query.values import CERTAIN, EXACT, Values
from synopsis.sketch.moments import Floats, Integers, Moments

#: Distances below this share of the mean are rounding, not spread: a few units in the last place.
NOISE: Final = 2.0**-48
#: Share by which kept squared distances may be off by rounding: what the design promises of them.
SPREAD_ROUNDING: Final = 1e-9


def var_slack(var: Floats, scale: Floats) -> Floats:
    """By how much a variance of values of that magnitude may be off: means are kept to the last place of the values."""
    noise = NOISE * scale
    return SPREAD_ROUNDING * var + noise * (np.sqrt(var) + noise)


@dataclass(frozen=True, eq=False)
class Groups:
    """Where the parts of each group are: strands inside, strands cut, and how much of each cut one is in scope."""

    inside: Runs
    cut: Runs
    fraction: Floats  #: of each cut part, 0 to 1

    def keep_cut(self, mask: NDArray[np.bool_]) -> Groups:
        """Without the cut parts that hold nothing of what is asked."""
        if mask.all():
            return self
        return Groups(self.inside, self.cut.keep(mask), self.fraction[mask])


def counted(groups: Groups, rows: Integers) -> Values:
    """COUNT: of rows, or of the values of a feature. Cost: one pass over the parts."""
    inside = groups.inside.sum(rows[groups.inside.positions])
    if not groups.cut.parts:
        return Values(inside, inside, inside, np.full(inside.size, EXACT, np.int8))
    cut = rows[groups.cut.positions]
    high = inside + groups.cut.sum(cut)
    expected = inside + np.rint(groups.cut.sum(cut * groups.fraction)).astype(np.int64)
    guarantee = np.where(high == inside, EXACT, CERTAIN).astype(np.int8)
    return Values(np.minimum(expected, high), inside, high, guarantee)


class Numbers:
    """One feature's values over groups. Everything is gathered and computed when first needed, and once.

    `moments` holds the feature's moments of all strands; cost is proportional to the parts, not to the strands.
    """

    def __init__(self, groups: Groups, moments: Moments) -> None:
        self._moments = moments
        self._groups = groups.keep_cut(moments.count[groups.cut.positions] > 0) if groups.cut.parts else groups
        self._inside, self._cut = self._groups.inside, self._groups.cut

    # --- the statistics -----------------------------------------------------------------------------------------------

    def count(self) -> Values:
        """How many values there are."""
        return counted(self._groups, self._moments.count)

    def sum(self) -> Values:
        """Their sum, none for no values."""
        estimate = np.where(self._is_empty, np.nan, self._sum_inside)
        if not self._cut.parts:
            return self._exactly(estimate)
        cut = self._cut_moments
        most, least = self._parts.excess(np.zeros((2, self._cut.size)))
        positions = self._inside.positions
        slack = ROUNDING * self._inside.sum(np.abs(self._moments.count[positions] * self._moments.mean[positions]))
        low, high = self._sum_inside - slack - least, self._sum_inside + slack + most
        return Values.bounded(estimate + self._cut.sum(self._weight * cut.mean), low, high, self._is_exact)

    def mean(self) -> Values:
        """Their mean."""
        if not self._cut.parts:
            return self._exactly(self._mean_expected)
        low, high = self._range
        count = self._count_inside.astype(np.float64)
        mean = np.where(count > 0, self._mean_inside, high)
        both = np.stack([mean, np.where(count > 0, -self._mean_inside, -low)])
        # Groups without cut parts have an empty excess; their search ends where it begins.
        top = np.where(self._is_exact, both, np.stack([high, -low]))
        most, least = largest_means(count, both, top, self._parts.excess)
        slack = ROUNDING * np.maximum(np.abs(low), np.abs(high))
        return Values.bounded(self._mean_expected, -least - slack, most + slack, self._is_exact)

    def var(self) -> Values:
        """The mean of their squared distances from the mean."""
        estimate = self._spread_expected / self._defined(self._count_expected)
        if not self._cut.parts:
            return self._exactly(estimate)
        low, high = self._range
        count = np.maximum(self._count_inside, 1)
        scale = np.maximum(np.abs(low), np.abs(high))
        most = np.minimum(self._spread_all / count, 0.25 * (high - low) ** 2)
        least = self._spread_inside / np.maximum(self._count_all, 1)
        low, high = np.maximum(least - var_slack(least, scale), 0.0), most + var_slack(most, scale)
        return Values.bounded(estimate, low, high, self._is_exact)

    def std(self) -> Values:
        """The root of `var`."""
        var = self.var()
        return Values(np.sqrt(var.estimate), np.sqrt(var.low), np.sqrt(var.high), var.guarantee)

    def max(self) -> Values:
        """The greatest of them."""
        inside = self._inside.max(self._moments.high[self._inside.positions])
        if not self._cut.parts:
            return self._exactly(np.where(self._is_empty, np.nan, inside))
        cut = self._cut_moments
        least = np.where(self._count_inside > 0, inside, self._cut.min(cut.low))
        return self._extreme(least, np.maximum(inside, self._cut.max(cut.high)), toward_high=True)

    def min(self) -> Values:
        """The least of them."""
        inside = self._inside.min(self._moments.low[self._inside.positions])
        if not self._cut.parts:
            return self._exactly(np.where(self._is_empty, np.nan, inside))
        cut = self._cut_moments
        most = np.where(self._count_inside > 0, inside, self._cut.max(cut.high))
        return self._extreme(np.minimum(inside, self._cut.min(cut.low)), most, toward_high=False)

    # --- what they are made of ----------------------------------------------------------------------------------------

    def _extreme(self, low: Floats, high: Floats, toward_high: bool) -> Values:
        """An extreme is known for sure where cut strands cannot move it; where they can, they are likely to."""
        estimate = np.where(self._is_empty, np.nan, high if toward_high else low)
        unmoved = (low == high) & (self._count_inside > 0)
        return Values.bounded(estimate, low, high, self._is_exact | unmoved)

    def _exactly(self, estimate: Floats) -> Values:
        return Values(estimate, estimate, estimate, np.full(estimate.size, EXACT, np.int8))

    @staticmethod
    def _defined(count: Floats) -> Floats:
        """A count to divide by: NaN instead of 0, so that what is undefined comes out as NaN."""
        return np.where(count > 0, count, np.nan)

    @cached_property
    def _count_inside(self) -> Integers:
        return self._inside.sum(self._moments.count[self._inside.positions])

    @cached_property
    def _count_all(self) -> Integers:
        return self._count_inside + self._cut.sum(self._cut_moments.count)

    @cached_property
    def _is_empty(self) -> NDArray[np.bool_]:
        return np.asarray((self._count_all if self._cut.parts else self._count_inside) == 0)

    @cached_property
    def _is_exact(self) -> NDArray[np.bool_]:
        """The groups without a cut value."""
        return np.asarray(self._count_all == self._count_inside)

    @cached_property
    def _sum_inside(self) -> Floats:
        positions = self._inside.positions
        return self._inside.sum(self._moments.count[positions] * self._moments.mean[positions])

    @cached_property
    def _mean_inside(self) -> Floats:
        return self._sum_inside / np.maximum(self._count_inside, 1)

    @cached_property
    def _spread_inside(self) -> Floats:
        return self._spread_about(self._mean_inside, self._count_inside)

    def _spread_about(self, mean: Floats, count: Integers) -> Floats:
        """Squared distances of the inside values from `mean`, which is theirs."""
        positions = self._inside.positions
        distance = self._moments.mean[positions] - self._inside.spread_out(mean)
        spread = self._inside.sum(
            self._moments.spread[positions] + self._moments.count[positions] * distance * distance
        )
        return np.where(spread <= count * (NOISE * mean) ** 2, 0.0, spread)

    @cached_property
    def _cut_moments(self) -> Moments:
        return self._moments.take(np.asarray(self._cut.positions))

    @cached_property
    def _parts(self) -> Parts:
        return Parts.of(self._cut, self._cut_moments)

    @cached_property
    def _range(self) -> tuple[Floats, Floats]:
        """The least and the greatest value of all, inside or cut; 0 where there is none."""
        positions, cut = self._inside.positions, self._cut_moments
        low = np.minimum(self._inside.min(self._moments.low[positions]), self._cut.min(cut.low))
        high = np.maximum(self._inside.max(self._moments.high[positions]), self._cut.max(cut.high))
        return np.where(self._is_empty, 0.0, low), np.where(self._is_empty, 0.0, high)

    @cached_property
    def _spread_all(self) -> Floats:
        """Squared distances of all values, inside and cut, from their common mean."""
        cut, count = self._cut_moments, np.maximum(self._count_all, 1)
        mean = (self._sum_inside + self._cut.sum(cut.count * cut.mean)) / count
        distance = cut.mean - self._cut.spread_out(mean)
        outside = self._cut.sum(cut.spread + cut.count * distance * distance)
        return self._spread_inside + self._count_inside * (self._mean_inside - mean) ** 2 + outside

    # Estimates take each cut part with its weight.

    @cached_property
    def _weight(self) -> Floats:
        # Never quite nothing, so that a group of slivers still has a mean.
        return np.maximum(self._groups.fraction, 1e-9) * self._cut_moments.count

    @cached_property
    def _count_expected(self) -> Floats:
        inside = self._count_inside.astype(np.float64)
        return inside + self._cut.sum(self._weight) if self._cut.parts else inside

    @cached_property
    def _mean_expected(self) -> Floats:
        total = self._sum_inside
        if self._cut.parts:
            total = total + self._cut.sum(self._weight * self._cut_moments.mean)
        return total / self._defined(self._count_expected)

    @cached_property
    def _spread_expected(self) -> Floats:
        if not self._cut.parts:
            return self._spread_inside
        cut, mean = self._cut_moments, np.where(self._is_empty, 0.0, self._mean_expected)
        distance = cut.mean - self._cut.spread_out(mean)
        outside = self._cut.sum(self._weight * (cut.spread / cut.count + distance * distance))
        between = self._count_inside * (self._mean_inside - mean) ** 2
        return np.asarray(self._spread_inside + between + outside)


def outlying(numbers: Numbers, away: float) -> Values:
    """How many values lie further from the mean than so many deviations, at most Chebyshev's (1867) share of them.

    How values are spread is not known: the estimate is that of normal ones. Extremes tell of one on either side.
    """
    count, mean, deviation = numbers.count(), numbers.mean(), numbers.std()
    least, most = numbers.min(), numbers.max()
    high = np.minimum(np.floor(count.high / away**2), count.high).astype(np.int64)
    reach = away * deviation.estimate
    exact = (mean.guarantee == EXACT) & (deviation.guarantee == EXACT)
    with np.errstate(invalid="ignore"):
        beyond = (most.estimate > mean.estimate + reach).astype(np.int64) + (least.estimate < mean.estimate - reach)
    low = np.minimum(np.where(exact, beyond, 0), high).astype(np.int64)
    usual = np.rint(count.estimate * math.erfc(away / math.sqrt(2.0))).astype(np.int64)
    estimate = np.clip(usual, low, high)
    return Values(estimate, low, high, np.where(low == high, EXACT, CERTAIN).astype(np.int8))
