"""Pairs: covariance and correlation of two features over groups of strands, with intervals that always hold the truth.

The scatter matrix of some rows (squared distances of each feature, and the products of both) never shrinks when rows
are added: what is added is positive semidefinite. So the scatter of the inside with any subset of the cut rows is that
of the inside plus some X with 0 <= X <= D, in Loewner's order, where D is what all cut rows would add. Over all such X
the product entry of X runs from (d12 - sqrt(d11 d22)) / 2 to (d12 + sqrt(d11 d22)) / 2: write X as R Y R with R the
root of D and 0 <= Y <= 1, and the entry is a trace of Y with a matrix of rank two that has these eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synopsis.query.bounds import NOISE, SPREAD_ROUNDING, Groups, var_slack
from synopsis.query.runs import Runs
from synopsis.query.values import Values
from synopsis.sketch.moments import Comoments, Floats, Moments


@dataclass(frozen=True, eq=False)
class Scatter:
    """How rows scatter about their common mean, per group; counts may be expected ones."""

    count: Floats
    first_mean: Floats
    second_mean: Floats
    first: Floats  #: sum of squared distances of the first feature
    second: Floats
    cross: Floats  #: sum of products of both distances

    @classmethod
    def of(cls, runs: Runs, comoments: Comoments, fraction: Floats | float = 1.0) -> Scatter:
        """Parts pooled by group, each taken with its fraction (Chan, Golub & LeVeque, 1983)."""
        weight = np.asarray(comoments.count * fraction, np.float64)
        count = runs.sum(weight)
        divisor = np.where(count > 0, count, 1.0)
        first_mean = runs.sum(weight * comoments.first_mean) / divisor
        second_mean = runs.sum(weight * comoments.second_mean) / divisor
        first = comoments.first_mean - runs.spread_out(first_mean)
        second = comoments.second_mean - runs.spread_out(second_mean)
        return cls(
            count,
            first_mean,
            second_mean,
            runs.sum(comoments.first_spread * fraction + weight * first * first),
            runs.sum(comoments.second_spread * fraction + weight * second * second),
            runs.sum(comoments.cross * fraction + weight * first * second),
        )

    def __add__(self, other: Scatter) -> Scatter:
        count = self.count + other.count
        share = other.count / np.where(count > 0, count, 1.0)
        first, second = other.first_mean - self.first_mean, other.second_mean - self.second_mean
        between = self.count * share
        return Scatter(
            count,
            self.first_mean + share * first,
            self.second_mean + share * second,
            self.first + other.first + between * first * first,
            self.second + other.second + between * second * second,
            self.cross + other.cross + between * first * second,
        )

    def at_least(self, mean: Floats, spread: Floats) -> Floats:
        """What is left of squared distances when rounding is taken off."""
        count = np.maximum(self.count, 1.0)
        return np.maximum(spread - count * var_slack(spread / count, np.abs(mean)), 0.0)

    @property
    def cross_slack(self) -> Floats:
        """By how much the sum of products may be off: means are kept to the last place of the values."""
        scatter = _both_roots(self.first, self.second)
        shift = np.abs(self.first_mean) * np.sqrt(self.second) + np.abs(self.second_mean) * np.sqrt(self.first)
        return np.asarray(SPREAD_ROUNDING * scatter + NOISE * np.sqrt(self.count) * shift)

    @property
    def is_flat(self) -> NDArray[np.bool_]:
        """Groups in which a feature does not vary at all, but for rounding."""
        first = self.first <= self.count * (NOISE * self.first_mean) ** 2
        return np.asarray(first | (self.second <= self.count * (NOISE * self.second_mean) ** 2))


class PairedNumbers:
    """Two features' values over groups, where both are present. Cost is proportional to the parts.

    `first` and `second` hold the moments of each feature, for their ranges.
    """

    def __init__(self, groups: Groups, comoments: Comoments, first: Moments, second: Moments) -> None:
        self._groups = groups.keep_cut(comoments.count[groups.cut.positions] > 0) if groups.cut.parts else groups
        self._comoments = comoments
        self._features = first, second

    def covariance(self) -> Values:
        """The mean product of both distances from their means."""
        expected, inside, everything = self._expected, self._inside, self._all
        # What does not vary covaries with nothing: rounding must not make something up.
        cross = np.where(everything.is_flat, 0.0, expected.cross)
        estimate = cross / np.where(expected.count > 0, expected.count, np.nan)
        if not self._groups.cut.parts:
            return Values.bounded(estimate, estimate, estimate, self._is_exact)
        low, high = self._cross
        least_count, most_count = np.maximum(inside.count, 1.0), np.maximum(everything.count, 1.0)
        # The product of both deviations bounds it too, and each deviation is at most half a range.
        limit = _both_roots(self._most_var(everything.first, 0), self._most_var(everything.second, 1))
        low = np.maximum(low / np.where(low < 0, least_count, most_count), -limit)
        high = np.minimum(high / np.where(high > 0, least_count, most_count), limit)
        return Values.bounded(estimate, low, high, self._is_exact)

    def correlation(self) -> Values:
        """The covariance in units of both deviations, -1 to 1; none where a feature does not vary."""
        expected, inside, everything = self._expected, self._inside, self._all
        scale = _both_roots(expected.first, expected.second)
        estimate = expected.cross / np.where(everything.is_flat | (scale == 0), np.nan, scale)
        if not self._groups.cut.parts:
            estimate = np.clip(estimate, -1.0, 1.0)
            return Values.bounded(estimate, estimate, estimate, self._is_exact)
        estimate = np.where(np.isnan(estimate) & ~everything.is_flat, 0.0, estimate)
        low, high = self._cross
        least = _both_roots(
            inside.at_least(inside.first_mean, inside.first), inside.at_least(inside.second_mean, inside.second)
        )
        most = _both_roots(everything.first, everything.second) + everything.cross_slack

        def outward(cross: Floats, sign: float) -> Floats:
            """At least the largest of sign * correlation."""
            scale = np.where(sign * cross > 0, np.where(inside.is_flat, 0.0, least), most)
            return np.where(scale > 0, np.clip(sign * cross / np.where(scale > 0, scale, 1.0), -1.0, 1.0), 1.0)

        low, high = -outward(low, -1.0), outward(high, 1.0)
        return Values.bounded(np.clip(estimate, -1.0, 1.0), low, high, self._is_exact)

    @cached_property
    def _inside(self) -> Scatter:
        runs = self._groups.inside
        return Scatter.of(runs, self._comoments.take(runs.positions))

    @cached_property
    def _cut_comoments(self) -> Comoments:
        return self._comoments.take(np.asarray(self._groups.cut.positions))

    @cached_property
    def _cut(self) -> Scatter:
        return Scatter.of(self._groups.cut, self._cut_comoments)

    @cached_property
    def _all(self) -> Scatter:
        return self._inside + self._cut if self._groups.cut.parts else self._inside

    @cached_property
    def _expected(self) -> Scatter:
        if not self._groups.cut.parts:
            return self._inside
        return self._inside + Scatter.of(self._groups.cut, self._cut_comoments, np.maximum(self._groups.fraction, 1e-9))

    @cached_property
    def _is_exact(self) -> NDArray[np.bool_]:
        return np.asarray(self._all.count == self._inside.count)

    @cached_property
    def _cross(self) -> tuple[Floats, Floats]:
        """The least and the largest sum of products."""
        # What all cut rows would add: their own scatter and that between the two means, so that nothing is subtracted.
        nothing = np.zeros(self._groups.cut.size)
        added = replace(self._inside, first=nothing, second=nothing, cross=nothing) + self._cut
        reach = _both_roots(added.first, added.second)
        slack = self._all.cross_slack
        middle = self._inside.cross + 0.5 * added.cross
        return middle - 0.5 * reach - slack, middle + 0.5 * reach + slack

    def _most_var(self, spread: Floats, side: int) -> Floats:
        """At least the variance of one feature in any subset: by what all would scatter, and by the range."""
        moments, inside, cut = self._features[side], self._groups.inside, self._groups.cut
        low = np.minimum(inside.min(moments.low[inside.positions]), cut.min(moments.low[cut.positions]))
        high = np.maximum(inside.max(moments.high[inside.positions]), cut.max(moments.high[cut.positions]))
        low, high = np.where(high >= low, low, 0.0), np.where(high >= low, high, 0.0)
        var = np.minimum(spread / np.maximum(self._inside.count, 1.0), 0.25 * (high - low) ** 2)
        return np.asarray(var + var_slack(var, np.maximum(np.abs(low), np.abs(high))))


def _both_roots(first: Floats, second: Floats) -> Floats:
    """The root of a product, which may itself be beyond what a double holds: 1e150 has a square that just fits."""
    return np.asarray(np.sqrt(first) * np.sqrt(second))
