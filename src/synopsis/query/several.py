"""Several: the statistics of a group whose rows lie in several parts of the question, from those of its pieces.

No row is in two pieces, so counts and sums add up, moments are pooled, and distributions are mixed. What is certain is
computed over the strata of all pieces side by side. Errors of different pieces have nothing to do with each other: at
95% they are added as squares, each by what it would change the whole by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from synopsis.query.binding import Statistic
from synopsis.query.pieces import Piece, bounded, nothing, share_of
from synopsis.query.predicates import Between, Not
from synopsis.query.strata import JoinedValues
from synopsis.query.values import Value

_ROUNDING: Final = 1e-9  #: share of its size by which a mean may be off

_Sides = tuple[float, float] | None  #: how far down and up an estimate may be off at 95%, where that is known


def statistic(pieces: Sequence[Piece], asked: Statistic) -> Value:
    """One statistic of a group. Cost: that of each piece, and of a few moments more where there are several."""
    live = [piece for piece in pieces if not piece.is_empty]
    if not live:
        return nothing(asked)
    if asked.function == "outliers":
        return _outliers(live, asked)
    return live[0].statistic(asked) if len(live) == 1 else _Pooled(live).statistic(asked)


def _outliers(pieces: Sequence[Piece], asked: Statistic) -> Value:
    """Values further from the mean than so many deviations; there are never more than Chebyshev's (1867) share."""
    assert asked.away is not None
    counts = statistic(pieces, Statistic("count", asked.features))
    mean, deviation = (float(statistic(pieces, Statistic(name, asked.features))) for name in ("mean", "std"))
    assert counts.high is not None
    if not counts.high or math.isnan(mean) or math.isnan(deviation):
        return Value(0, 0, int(counts.high), "certain") if counts.high else Value(0, 0, 0, "exact")
    feature = asked.features[0]
    reach = asked.away * deviation + _ROUNDING * abs(mean)  # where all values are one, none is far from itself
    near = Not(Between(feature, mean - reach, mean + reach))
    far = [piece.but(near) for piece in pieces]
    # Where none is seen, as many as independent features let expect would be too many: few rows are outliers.
    found = sum(float(each.statistic(Statistic("count", rounded=False, by_paths=not each.is_of_one))) for each in far)
    most = min(math.floor(counts.high / asked.away**2), counts.high)
    return bounded(found, 0.0, float(most), None, whole=True)


class _Pooled:
    """Pieces pooled."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces

    def statistic(self, asked: Statistic) -> Value:
        if asked.function == "count":
            return self._count(asked)
        if asked.function in ("sum", "mean", "min", "max", "quantile"):
            return self._of_one(asked)
        return self._of_spread(asked)

    def _each(self, function: str, features: tuple[int, ...]) -> list[Value]:
        return [piece.statistic(Statistic(function, features)) for piece in self._pieces]

    def _count(self, asked: Statistic) -> Value:
        values = [piece.statistic(asked) for piece in self._pieces]
        estimate, low, high = (float(sum(getattr(v, name) for v in values)) for name in ("estimate", "low", "high"))
        p95 = _around(estimate, _added(map(_sides, values)))
        return bounded(estimate, low, high, p95, whole=asked.rounded or low == high)

    def _of_one(self, asked: Statistic) -> Value:
        feature = asked.features[0]
        values = JoinedValues([piece.selection.values(feature) for piece in self._pieces])
        quantile = asked.function == "quantile"
        interval = values.quantile(share_of(asked)) if quantile else getattr(values, asked.function)()
        low, high = float(interval.low[0]), float(interval.high[0])
        if math.isnan(low) or math.isnan(high):
            return Value(None, None, None, "certain")
        p95 = None
        if quantile:
            estimate = self._quantile(feature, share_of(asked))
        elif asked.function in ("min", "max"):
            found = [
                value.estimate for value in self._each(asked.function, asked.features) if value.estimate is not None
            ]
            estimate = float(min(found) if asked.function == "min" else max(found)) if found else math.nan
        else:
            estimate, sides = self._sum(feature) if asked.function == "sum" else self._mean(feature)
            p95 = _around(estimate, sides)
        return bounded((low + high) / 2 if math.isnan(estimate) else estimate, low, high, p95)

    def _sum(self, feature: int) -> tuple[float, _Sides]:
        values = [value for value in self._each("sum", (feature,)) if value.estimate is not None]
        return sum(map(float, values)), _added(map(_sides, values))

    def _moments(self, feature: int) -> tuple[list[Value], list[Value], float]:
        """Counts and means of the pieces, and the count of all."""
        counts = self._each("count", (feature,))
        return counts, self._each("mean", (feature,)), sum(map(float, counts))

    def _mean(self, feature: int) -> tuple[float, _Sides]:
        counts, means, total = self._moments(feature)
        if not total > 0:
            return math.nan, None
        mean = sum(float(n) * _number(m) for n, m in zip(counts, means, strict=True)) / total
        sides = [
            part
            for n, m in zip(counts, means, strict=True)
            for part in (_scaled(_sides(m), float(n) / total), _scaled(_sides(n), (_number(m, mean) - mean) / total))
        ]
        return mean, _added(sides)

    def _quantile(self, feature: int, share: float) -> float:
        """The quantile of all values, on the axis that the pieces share."""
        from synopsis.query.mixtures import interpolated, mixed  # machine code, which is loaded when it is needed

        numbers = [piece.numbers(feature) for piece in self._pieces]
        numbers = [each for each in numbers if each.count > 0]
        if not numbers:
            return math.nan
        low, high, mass = (np.concatenate(part) for part in zip(*(each.flat for each in numbers), strict=True))
        return numbers[0].bins.axis.value(float(interpolated(*mixed(low, high, mass), share)))

    def _of_spread(self, asked: Statistic) -> Value:
        first, second = asked.features[0], asked.features[-1]
        if asked.function in ("std", "var") or (asked.function == "covariance" and first == second):
            estimate, sides = self._varying(first, first)
            if asked.function == "std" and estimate >= 0.0:
                estimate, sides = math.sqrt(estimate), _of_root(estimate, sides)
        elif asked.function == "covariance":
            estimate, sides = self._varying(first, second)
        else:
            estimate, sides = self._correlation(first, second)
        if math.isnan(estimate):
            return Value(None, None, None, "heuristic")
        p95 = _around(estimate, sides)
        if p95 is None:
            return Value(estimate, None, None, "heuristic")
        ends = {"correlation": (-1.0, 1.0), "covariance": (-math.inf, math.inf)}.get(asked.function, (0.0, math.inf))
        low, high = max(p95[0], min(ends[0], estimate)), min(p95[1], max(ends[1], estimate))
        return Value(estimate, low, high, "p95", (low, high))

    def _varying(self, one: int, two: int) -> tuple[float, _Sides]:
        """The (co)variance, from the moments of the pieces."""
        counts, xs, total = self._moments(one)
        ys = xs if one == two else self._each("mean", (two,))
        if not total > 0:
            return math.nan, None
        each = self._each("var", (one,)) if one == two else self._each("covariance", (one, two))
        weights = [float(count) / total for count in counts]
        x, y = (sum(w * _number(m) for w, m in zip(weights, means, strict=True)) for means in (xs, ys))
        away = [(_number(a, x) - x, _number(b, y) - y) for a, b in zip(xs, ys, strict=True)]
        squares = [_number(v) + dx * dy for v, (dx, dy) in zip(each, away, strict=True)]
        varying = sum(w * square for w, square in zip(weights, squares, strict=True))
        sides: list[_Sides] = []
        for at, (dx, dy) in enumerate(away):
            sides += [_scaled(_sides(each[at]), weights[at])]
            sides += [_scaled(_sides(counts[at]), (squares[at] - varying) / total)]
            sides += [_scaled(_sides(xs[at]), weights[at] * dy), _scaled(_sides(ys[at]), weights[at] * dx)]
        return varying, _added(sides)

    def _correlation(self, one: int, two: int) -> tuple[float, _Sides]:
        square, other = self._varying(one, one)[0], self._varying(two, two)[0]
        if not (square > 0.0 and other > 0.0):
            return math.nan, None
        if one == two:
            return 1.0, (0.0, 0.0)
        varying, sides = self._varying(one, two)
        scale = math.sqrt(square * other)
        return min(max(varying / scale, -1.0), 1.0), _scaled(sides, 1.0 / scale)


def _number(value: Value, otherwise: float = 0.0) -> float:
    return otherwise if value.estimate is None else float(value.estimate)


def _sides(value: Value) -> _Sides:
    """How far down and up a value may be off at 95%."""
    if value.estimate is None or value.guarantee == "exact" or value.low == value.high:
        return 0.0, 0.0
    if value.p95 is None:
        return None
    return value.estimate - value.p95[0], value.p95[1] - value.estimate


def _scaled(sides: _Sides, by: float) -> _Sides:
    if sides is None:
        return None
    down, up = sides
    return (down * by, up * by) if by >= 0 else (-up * by, -down * by)


def _added(sides: Iterable[_Sides]) -> _Sides:
    found = list(sides)
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return math.hypot(*(down for down, _ in known)), math.hypot(*(up for _, up in known))


def _of_root(square: float, sides: _Sides) -> _Sides:
    if sides is None:
        return None
    root = math.sqrt(square)
    return root - math.sqrt(max(square - sides[0], 0.0)), math.sqrt(square + sides[1]) - root


def _around(estimate: float, sides: _Sides) -> tuple[float, float] | None:
    return None if sides is None or math.isnan(estimate) else (estimate - sides[0], estimate + sides[1])
