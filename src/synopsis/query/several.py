"""Several: the statistics of groups whose rows lie in several parts of the question, from those of their pieces.

No row is in two pieces, so counts and sums add up, moments are pooled, and distributions are mixed. What is certain is
computed over the strata of all pieces side by side. Errors of different pieces have nothing to do with each other: at
95% they are added as squares, each by what it would change the whole by. Arrays are parts x groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from synopsis.query.binding import Statistic
from synopsis.query.pieces import Pieces, bounded, counted, guessed, nothing, share_of
from synopsis.query.predicates import Between, Not
from synopsis.query.strata import JoinedValues
from synopsis.query.values import EXACT, Values
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags

_ROUNDING: Final = 1e-9  #: share of its size by which a mean may be off


@dataclass(frozen=True, eq=False)
class Owned:
    """Pieces, and which group of an answer each of their own groups belongs to; -1 where it has no rows of any."""

    pieces: Pieces
    group: Integers


def statistic(parts: Sequence[Owned], groups: int, asked: Statistic) -> Values:
    """One statistic of all groups. Cost: that of each part, and of a few moments more where there are several."""
    if asked.function == "outliers":
        return _outliers(parts, groups, asked)
    if len(parts) == 1 and parts[0].group.size == groups:  # its own groups, in their order
        return parts[0].pieces.statistic(asked)
    found, size = nothing(asked, groups), np.zeros(groups, np.int64)
    for part in parts:
        size[part.group[part.group >= 0]] += 1
    for part in parts:
        own = (part.group >= 0) & (size[part.group] == 1)
        if own.any():
            _put(found, part.group[own], part.pieces.statistic(asked).take(np.flatnonzero(own)))
    several = np.flatnonzero(size > 1)
    if several.size:
        number = np.full(groups + 1, -1)  # the last is where nothing belongs
        number[several] = np.arange(several.size)
        pooled = _Pooled([Owned(part.pieces, number[part.group]) for part in parts], several.size)
        _put(found, several, pooled.statistic(asked))
    return found


def _put(found: Values, at: Integers, values: Values) -> None:
    """Values where they belong."""
    assert found.p95 is not None
    assert values.p95 is not None
    found.estimate[at], found.low[at], found.high[at] = values.estimate, values.low, values.high
    found.guarantee[at], found.p95[at] = values.guarantee, values.p95


def _outliers(parts: Sequence[Owned], groups: int, asked: Statistic) -> Values:
    """Values further from the mean than so many deviations; there are never more than Chebyshev's (1867) share.

    Each group has ends of its own, and is counted by itself.
    """
    assert asked.away is not None
    feature = asked.features[0]
    most = statistic(parts, groups, Statistic("count", asked.features)).high.astype(np.float64)
    mean, deviation = (statistic(parts, groups, Statistic(each, asked.features)).estimate for each in ("mean", "std"))
    known = (most > 0) & ~np.isnan(mean) & ~np.isnan(deviation)
    found = np.zeros(groups)
    for part in parts:
        for own in np.flatnonzero((part.group >= 0) & known[part.group]):
            group = int(part.group[own])
            # Where all values are one, none is far from itself.
            reach = asked.away * float(deviation[group]) + _ROUNDING * abs(float(mean[group]))
            near = Not(Between(feature, float(mean[group]) - reach, float(mean[group]) + reach))
            far = part.pieces.only(int(own)).but(near)
            # Where none is seen, as many as independent features let expect would be too many: few rows are outliers.
            count = Statistic("count", rounded=False, by_paths=not far.is_of_one)
            found[group] += float(far.statistic(count).estimate[0])
    return bounded(found, np.zeros(groups), np.where(known, np.minimum(most // asked.away**2, most), most), whole=True)


class _Each(NamedTuple):
    """One statistic of all parts: parts x groups."""

    number: Floats  #: NaN where there is none
    down: Floats  #: how far down and up it may be off at 95%; NaN where that is not known, 0 where there is nothing
    up: Floats
    low: Floats
    high: Floats

    def sides(self, by: Floats) -> tuple[Floats, Floats]:
        """By how much it may move something that it moves by so much."""
        return np.where(by >= 0, self.down * by, -self.up * by), np.where(by >= 0, self.up * by, -self.down * by)


class _Pooled:
    """Pieces pooled; every group has several."""

    def __init__(self, parts: Sequence[Owned], groups: int) -> None:
        self._parts, self._groups = parts, groups
        self._known: dict[Statistic, _Each] = {}

    def statistic(self, asked: Statistic) -> Values:
        with np.errstate(invalid="ignore", divide="ignore"):
            if asked.function == "count":
                return self._count(asked)
            if asked.function in ("sum", "mean", "min", "max", "quantile"):
                return self._of_one(asked)
            return self._of_spread(asked)

    def _each(self, function: str, features: tuple[int, ...], by_paths: bool = False) -> _Each:
        asked = Statistic(function, features, rounded=False, by_paths=by_paths)
        if asked not in self._known:
            shape, is_count = (len(self._parts), self._groups), function == "count"
            number = np.zeros(shape) if is_count else np.full(shape, np.nan)
            down, up, low, high = (np.zeros(shape) for _ in range(4))
            for at, part in enumerate(self._parts):
                own = np.flatnonzero(part.group >= 0)
                if own.size:
                    to, found = part.group[own], part.pieces.statistic(asked).take(own)
                    number[at, to], low[at, to], high[at, to] = found.estimate, found.low, found.high
                    down[at, to], up[at, to] = _sides(found)
            self._known[asked] = _Each(number, down, up, low, high)
        return self._known[asked]

    def _count(self, asked: Statistic) -> Values:
        each = self._each("count", asked.features, asked.by_paths)
        estimate = each.number.sum(axis=0)
        sides = _added((each.down, each.up))
        return counted(estimate, each.low.sum(axis=0), each.high.sum(axis=0), _around(estimate, sides), asked)

    def _of_one(self, asked: Statistic) -> Values:
        feature = asked.features[0]
        values = JoinedValues(
            [(part.pieces.selection.values(feature), part.group) for part in self._parts], self._groups
        )
        if asked.function == "quantile":
            return bounded(self._quantile(feature, share_of(asked)), *values.quantile(share_of(asked)))
        low, high = getattr(values, asked.function)()
        if asked.function in ("min", "max"):
            pick = np.fmin if asked.function == "min" else np.fmax
            return bounded(pick.reduce(self._each(asked.function, asked.features).number, axis=0), low, high)
        estimate, sides = self._sum(feature) if asked.function == "sum" else self._mean(feature)
        return bounded(estimate, low, high, _around(estimate, sides))

    def _sum(self, feature: int) -> tuple[Floats, tuple[Floats, Floats]]:
        each = self._each("sum", (feature,))
        return np.nansum(each.number, axis=0), _added((each.down, each.up))

    def _moments(self, feature: int) -> tuple[_Each, _Each, Floats]:
        """Counts and means of the pieces, and the count of all, NaN where there is nothing."""
        counts = self._each("count", (feature,))
        total = counts.number.sum(axis=0)
        return counts, self._each("mean", (feature,)), np.where(total > 0, total, np.nan)

    def _mean(self, feature: int) -> tuple[Floats, tuple[Floats, Floats]]:
        counts, means, total = self._moments(feature)
        mean = (counts.number * _number(means)).sum(axis=0) / total
        away = np.where(np.isnan(means.number), 0.0, means.number - mean)
        return mean, _added(means.sides(counts.number / total), counts.sides(away / total))

    def _quantile(self, feature: int, share: float) -> Floats:
        """The quantile of all values, on the axis that the pieces share."""
        from synopsis.query.mixtures import interpolated, mixed  # machine code, which is loaded when it is needed

        flat, groups = [], []
        for part in self._parts:
            numbers = part.pieces.numbers(feature)
            *pieces, offset = numbers.flat
            group = np.repeat(part.group, np.diff(offset))
            kept = np.flatnonzero(group >= 0)
            flat.append([each[kept] for each in pieces])
            groups.append(group[kept])
        group = np.concatenate(groups)
        order = np.argsort(group, kind="stable")
        low, high, mass = (np.concatenate(each)[order] for each in zip(*flat, strict=True))
        offset = np.searchsorted(group[order], np.arange(self._groups + 1))
        return numbers.bins.values(interpolated(*mixed(low, high, mass, offset), np.full(self._groups, share)))

    def _of_spread(self, asked: Statistic) -> Values:
        first, second = asked.features[0], asked.features[-1]
        least, most = 0.0, np.inf
        if asked.function in ("std", "var") or (asked.function == "covariance" and first == second):
            estimate, sides = self._varying(first, first)
            if asked.function == "std":
                estimate = np.maximum(estimate, 0.0)
                estimate, sides = np.sqrt(estimate), _of_root(estimate, sides)
        elif asked.function == "covariance":
            estimate, sides = self._varying(first, second)
            least = -np.inf
        else:
            estimate, sides = self._correlation(first, second)
            least, most = -1.0, 1.0
        low, high = _around(estimate, sides)
        low, high = np.maximum(low, np.minimum(least, estimate)), np.minimum(high, np.maximum(most, estimate))
        return guessed(estimate, (low, high))

    def _varying(self, one: int, two: int) -> tuple[Floats, tuple[Floats, Floats]]:
        """The (co)variance, from the moments of the pieces."""
        counts, xs, total = self._moments(one)
        ys = xs if one == two else self._each("mean", (two,))
        each = self._each("var", (one,)) if one == two else self._each("covariance", (one, two))
        weights = counts.number / total
        x, y = ((weights * _number(means)).sum(axis=0) for means in (xs, ys))
        dx, dy = (np.where(np.isnan(means.number), 0.0, means.number - middle) for means, middle in ((xs, x), (ys, y)))
        squares = _number(each) + dx * dy
        varying = (weights * squares).sum(axis=0)
        sides = [each.sides(weights), counts.sides((squares - varying) / total)]
        return varying, _added(*sides, xs.sides(weights * dy), ys.sides(weights * dx))

    def _correlation(self, one: int, two: int) -> tuple[Floats, tuple[Floats, Floats]]:
        square, other = self._varying(one, one)[0], self._varying(two, two)[0]
        varies = (square > 0.0) & (other > 0.0)
        if one == two:
            found = np.where(varies, 1.0, np.nan)
            return found, (found - 1.0, found - 1.0)
        varying, sides = self._varying(one, two)
        scale = np.where(varies, np.sqrt(square * other), np.nan)
        return np.clip(varying / scale, -1.0, 1.0), (sides[0] / scale, sides[1] / scale)


def _number(each: _Each) -> Floats:
    return np.where(np.isnan(each.number), 0.0, each.number)


def _sides(found: Values) -> tuple[Floats, Floats]:
    """How far down and up values may be off at 95%; NaN where that is not known."""
    assert found.p95 is not None
    sure: Flags = np.isnan(found.estimate) | (found.guarantee == EXACT) | (found.low == found.high)
    down, up = found.estimate - found.p95[:, 0], found.p95[:, 1] - found.estimate
    return np.where(sure, 0.0, down), np.where(sure, 0.0, up)


def _added(*sides: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Errors that have nothing to do with each other, of all parts."""
    down, up = (np.sqrt(sum((side**2).sum(axis=0) for side in each)) for each in zip(*sides, strict=True))
    return down, up


def _of_root(square: Floats, sides: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    root = np.sqrt(square)
    return root - np.sqrt(np.maximum(square - sides[0], 0.0)), np.sqrt(square + sides[1]) - root


def _around(estimate: Floats, sides: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return estimate - sides[0], estimate + sides[1]
