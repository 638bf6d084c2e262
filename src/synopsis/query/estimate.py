"""Estimates: what kept paths say about a scope and a condition, each standing for the rows that its day counted.

A path knows its bins, not its values. Within a bin rows are spread as all rows are, but for a slope: a condition that
cuts a bin takes a share of it, and a path counts by the product of its shares. Where exact counts tell how lucky the
paths of a stratum were in a feature's bins, that luck is taken out again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synopsis.query.predicates import AllOf, AnyOf, Clause, Leaf, Ranges, reachable
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes, Scales
from synopsis.sketch.strata import TILT_LIMIT, TILT_STEPS, Strata, bin_codes

#: A number this close to a grid value, in steps, is that value.
_NEAR = 1e-3


@dataclass(frozen=True)
class Bins:
    """The bins of one feature in every stratum: strata x bins, as runs of the mass axis with a slope."""

    axis: MassAxis
    starts: Integers  #: fine codes
    ends: Integers
    tilt: Floats  #: the density at u in 0..1 of a bin's mass is 1 + tilt (2u - 1)

    @classmethod
    def of(cls, strata: Strata, position: int, scales: Scales, feature: int) -> Bins:
        """The bins of the feature that stands at `position` in these strata."""
        tilt = strata.tilt[position] * (TILT_LIMIT / TILT_STEPS)
        return cls(MassAxis.of(scales, feature), *bin_codes(strata, position), tilt)

    def on_axis(self, ranges: Ranges) -> list[tuple[float, float]]:
        """Closed ranges of values as ranges of the mass axis, in order."""
        step = self.axis.step
        if not step:
            edges = [(low, high) for low, high in ranges]
        else:
            steps = ((_lowest_step(low, step) - 0.5, _highest_step(high, step) + 0.5) for low, high in ranges)
            edges = [(low * step, high * step) for low, high in steps]
        found = ((self.axis.below(low, included=False), self.axis.below(high, included=True)) for low, high in edges)
        return [(low, high) for low, high in found if high > low]

    def shares(self, ranges: Ranges) -> tuple[Floats, Floats, Floats]:
        """Of each bin: the share in the ranges, and the sums of values and of squares there (times the share)."""
        axis = self.axis
        left, right = axis.mass[self.starts], axis.mass[self.ends]
        width = np.where(right > left, right - left, 1.0)
        share, first, second = (np.zeros(left.shape) for _ in range(3))
        for low, high in self.on_axis(ranges):
            begin, end = np.clip(low, left, right), np.clip(high, left, right)
            u, v = (begin - left) / width, (end - left) / width
            share += v - u + self.tilt * (v**2 - v - u**2 + u)
            for sums, flat, moment in (
                (first, axis.first, axis.first_moment),
                (second, axis.second, axis.second_moment),
            ):
                total, turned = (self._between(running, low, high) for running in (flat, moment))
                sums += ((1 - self.tilt) * total + 2 * self.tilt * (turned - left * total) / width) / width
        return share, first, second

    def _between(self, running: Floats, low: float, high: float) -> Floats:
        """What a running total grows by over the part of each bin that lies in a range of the axis."""
        left, right = self.axis.mass[self.starts], self.axis.mass[self.ends]
        lower = np.where(left >= low, running[self.starts], self.axis.at(running, low))
        upper = np.where(right <= high, running[self.ends], self.axis.at(running, high))
        return np.where((right > low) & (left < high), upper - lower, 0.0)


class Estimates:
    """Paths in scope, weighed; statistics when asked for. Cost: proportional to the paths of the strata opened."""

    def __init__(
        self, strata: Strata, scales: Scales, features: tuple[int, ...], covered: Floats, clause: Clause
    ) -> None:
        """`features` says which feature stands where; `covered` is the share of each day that is in scope."""
        self._strata, self._scales, self._features, self._clause = strata, scales, features, clause
        self._stratum = np.repeat(np.arange(len(strata)), np.diff(strata.path_offset))
        self._weight = self._weights(covered)
        self._probability = self._weight * self._held(clause)
        rows = strata.day_rows * covered
        whole = strata.rows
        in_scope = np.bincount(np.repeat(np.arange(len(strata)), np.diff(strata.day_offset)), rows, len(strata))
        self._covered = np.divide(in_scope, whole, out=np.zeros(len(strata)), where=whole > 0)

    def _weights(self, covered: Floats) -> Floats:
        """Rows that each path stands for: its day's rows in scope, shared by the day's paths.

        Days without a path are stood for by the other days of their stratum, strata without one by all others.
        """
        strata = self._strata
        rows = strata.day_rows * covered
        by_day = np.divide(rows, strata.day_kept, out=np.zeros(rows.size), where=strata.day_kept > 0)
        weight = np.repeat(by_day, strata.day_kept)
        size = len(strata)
        wanted = np.bincount(np.repeat(np.arange(size), np.diff(strata.day_offset)), rows, size)
        stood_for = np.bincount(self._stratum, weight, size)
        scale = np.divide(wanted, stood_for, out=np.zeros(size), where=stood_for > 0)
        reached = (wanted * (stood_for > 0)).sum()
        return weight * scale[self._stratum] * (wanted.sum() / reached if reached > 0 else 0.0)

    def _held(self, clause: Clause) -> Floats:
        """The probability that each path's row satisfies the clause, bins being independent within a path."""
        if isinstance(clause, Leaf):
            return self._gathered(self._shares(clause), clause.feature)
        parts = [self._held(part) for part in clause.parts]
        if isinstance(clause, AllOf):
            return np.asarray(np.prod(parts, axis=0)) if parts else np.ones(self._weight.size)
        assert isinstance(clause, AnyOf)
        return (
            np.asarray(1.0 - np.prod([1.0 - part for part in parts], axis=0)) if parts else np.zeros(self._weight.size)
        )

    def _shares(self, leaf: Leaf) -> Floats:
        """Strata x (bins and absent): how much of each satisfies the leaf."""
        share = self._bins(leaf.feature).shares(leaf.ranges)[0]
        return np.append(share, np.full((len(share), 1), float(leaf.nulls)), axis=1)

    def _gathered(self, table: Floats, feature: int) -> Floats:
        return np.asarray(table[self._stratum, self._codes(feature)])

    def _codes(self, feature: int) -> Codes:
        return np.asarray(self._strata.codes[self._features.index(feature)])

    def _bins(self, feature: int) -> Bins:
        return Bins.of(self._strata, self._features.index(feature), self._scales, feature)

    def _masses(self, feature: int, weight: Floats) -> Floats:
        """Strata x (bins and absent): what the paths there weigh."""
        width = self._strata.bins + 1
        key = self._stratum * width + self._codes(feature)
        return np.asarray(np.bincount(key, weight, len(self._strata) * width), np.float64).reshape(-1, width)

    def _corrected(self, feature: int) -> Floats:
        """Strata x (bins and absent): rows in scope, the paths' luck taken out as far as the exact counts tell.

        Where paths of the whole stratum hold too few of a bin, so do probably those in scope, which are a part of them.
        """
        everywhere = self._weights(np.ones(self._strata.day_rows.size))
        luck = self._strata.counts[self._features.index(feature)] - self._masses(feature, everywhere)
        return np.asarray(np.maximum(self._masses(feature, self._weight) + self._covered[:, None] * luck, 0.0))

    def count(self) -> float:
        """Rows in scope that satisfy the clause."""
        if isinstance(self._clause, Leaf):
            return float((self._corrected(self._clause.feature) * self._shares(self._clause)).sum())
        return float(self._probability.sum())

    def of(self, feature: int) -> Numbers:
        """The numbers of one feature in scope."""
        bins = self._bins(feature)
        own = reachable(self._clause, feature)
        share, first, second = bins.shares(own.ranges)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, square = np.nan_to_num(first / share), np.nan_to_num(second / share)
        variance = np.maximum(square - mean**2, 0.0)
        lone = not isinstance(self._clause, Leaf) and not self._clause.parts
        if lone or (isinstance(self._clause, Leaf) and self._clause.feature == feature):
            mass = self._corrected(feature)[:, :-1] * share
        else:
            mass = self._masses(feature, self._probability)[:, :-1]
        return Numbers(mass, mean, variance, bins, own.ranges)

    def correlation(self, one: int, two: int) -> float:
        """CORRELATION of two features where both are present; bins are independent within a path."""
        first, second = self.of(one), self.of(two)
        left, right = self._codes(one), self._codes(two)
        both = (left < self._strata.bins) & (right < self._strata.bins) & (self._probability > 0)
        weight, stratum = self._probability[both], self._stratum[both]
        if not weight.sum() > 0:
            return math.nan
        at, beside = (stratum, left[both]), (stratum, right[both])
        x, y = first.mean[at], second.mean[beside]
        x, y = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
        spread = (weight * (x**2 + first.variance[at])).sum() * (weight * (y**2 + second.variance[beside])).sum()
        return float(np.clip((weight * x * y).sum() / np.sqrt(spread), -1, 1)) if spread > 0 else math.nan


@dataclass(frozen=True)
class Numbers:
    """The numbers of one feature: rows in every bin, and what their values are: strata x bins."""

    mass: Floats
    mean: Floats
    variance: Floats
    bins: Bins
    ranges: Ranges  #: what the condition leaves of the feature

    @cached_property
    def count(self) -> float:
        """Rows that have the feature."""
        return float(self.mass.sum())

    @cached_property
    def average(self) -> float:
        """MEAN; NaN where there is nothing."""
        return float((self.mass * self.mean).sum() / self.count) if self.count > 0 else math.nan

    @cached_property
    def deviation(self) -> float:
        """STD."""
        if not self.count > 0:
            return math.nan
        return math.sqrt((self.mass * (self.variance + (self.mean - self.average) ** 2)).sum() / self.count)

    def quantile(self, share: float) -> float:
        """QUANTILE of the mixture of all bins, found on the mass axis. Cost: a sort of the bins in use."""
        if not self.count > 0:
            return math.nan
        used = self.mass > 0
        axis = self.bins.axis
        low, high = axis.mass[self.bins.starts[used]], axis.mass[self.bins.ends[used]]
        middle, mass, upper = (low + high) / 2, self.mass[used], 0.5 + self.bins.tilt[used] / 4
        pieces = [(low, middle, mass * (1 - upper)), (middle, high, mass * upper)]
        cut = self.bins.on_axis(self.ranges)
        if len(cut) == 1:  # a range that cuts a bin leaves some of its mass, all of it within the range
            pieces = [(np.maximum(low, cut[0][0]), np.minimum(high, cut[0][1]), mass)]
        begin, end, weight = (np.concatenate(part) for part in zip(*pieces, strict=True))
        return axis.value(_mixture_quantile(begin, np.maximum(end, begin), weight, share))


def _lowest_step(low: float, step: float) -> float:
    """The number of steps of the lowest grid value in a closed range that begins at `low`.

    Grid values may have come as float32, and so may the number somebody compares with: near a grid value, it is meant.
    """
    steps = low / step
    if not math.isfinite(steps):
        return steps
    nearest = round(steps)
    if abs(steps - nearest) > _NEAR:
        return math.ceil(steps)
    below = math.nextafter(low, -math.inf)  # v > a begins at the next number after a
    return nearest + _plainer(below, low)


def _highest_step(high: float, step: float) -> float:
    """The number of steps of the highest grid value in a closed range that ends at `high`."""
    return -_lowest_step(-high, step)


def _plainer(one: float, other: float) -> bool:
    """Whether a person or a float32 column would rather have written the first of two neighbouring numbers.

    >>> _plainer(21.1, math.nextafter(21.1, 99.0)), _plainer(math.nextafter(21.1, 0.0), 21.1)
    (True, False)
    """
    single = [float(np.float32(number)) == number for number in (one, other)]
    if single[0] != single[1]:
        return single[0]
    return len(repr(one)) < len(repr(other))


def _mixture_quantile(low: Floats, high: Floats, mass: Floats, share: float) -> float:
    """The quantile of a mixture of flat pieces and points."""
    flat = high > low
    density = np.where(flat, mass / np.where(flat, high - low, 1.0), 0.0)
    ends = np.concatenate((low, high))
    order = np.argsort(ends, kind="stable")
    ends = ends[order]
    slope = np.cumsum(np.concatenate((density, -density))[order])
    jumps = np.concatenate((np.where(flat, 0.0, mass), np.zeros(mass.size)))[order]
    reached = np.cumsum(jumps)
    reached[1:] += np.cumsum(slope[:-1] * np.diff(ends))
    wanted = share * reached[-1]
    at = int(np.searchsorted(reached, wanted))
    if at == 0 or at >= ends.size:
        return float(ends[min(at, ends.size - 1)])
    gap = ends[at] - ends[at - 1]
    rise = slope[at - 1] * gap
    return float(ends[at - 1] + (gap * min((wanted - reached[at - 1]) / rise, 1.0) if rise > 0 else gap))
