"""Pieces: the statistics of rows in one part of space and time that fulfil one condition.

Exact counts give what is certain, paths give estimates and intervals at 95%.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from synopsis.query import strata as certain
from synopsis.query.binding import Statistic
from synopsis.query.estimate import Estimates, Numbers
from synopsis.query.opened import Covered, Opened
from synopsis.query.predicates import And, Condition, IsNull, Leaf, Not, positive
from synopsis.query.values import Value


class Piece:
    """The rows of a group that lie in one part of the question; what their statistics share is computed once."""

    def __init__(self, opened: Opened, covered: Covered | None, condition: Condition) -> None:
        self._opened, self._strata, self._covered, self._condition = opened, opened.strata, covered, condition
        self._known: dict[int, Numbers] = {}

    def but(self, condition: Condition) -> Piece:
        """Those of its rows that fulfil a further condition on features that are open."""
        return Piece(self._opened, self._covered, And((self._condition, condition)))

    @property
    def is_of_one(self) -> bool:
        """Whether its condition is on a single feature, whose bins are counted."""
        return isinstance(positive(self._condition), Leaf)

    @property
    def is_empty(self) -> bool:
        """Whether no stratum has rows of it."""
        return self._strata is None

    def statistic(self, asked: Statistic) -> Value:
        """One statistic with its interval."""
        if self._strata is None:
            return nothing(asked)
        if asked.function == "count":
            return self._count(asked)
        if asked.function in _OF_ONE:
            return self._of_one(asked)
        return self._of_spread(asked)

    def _count(self, asked: Statistic) -> Value:
        if len(asked.features) == 2:  # rows that have both
            return self.but(Not(IsNull(asked.features[1])))._count(replace(asked, features=asked.features[:1]))
        interval = self.selection.values(asked.features[0]).count() if asked.features else self.selection.count()
        low, high = float(interval.low[0]), float(interval.high[0])
        estimate = low
        p95 = None
        if low < high:
            estimates = self.estimates
            counted = self.numbers(asked.features[0]) if asked.features else estimates
            estimate = self.numbers(asked.features[0]).count if asked.features else estimates.count()
            estimate = estimates.count_by_paths() if asked.by_paths else estimate
            p95 = self._at_95(counted, "count_p95")
        return bounded(estimate, low, high, p95, whole=asked.rounded or low == high)

    def _of_one(self, asked: Statistic) -> Value:
        feature = asked.features[0]
        values = self.selection.values(feature)
        interval = (
            values.quantile(share_of(asked)) if asked.function == "quantile" else getattr(values, asked.function)()
        )
        low, high = float(interval.low[0]), float(interval.high[0])
        if math.isnan(low) or math.isnan(high):
            return Value(None, None, None, "certain")
        numbers = self.numbers(feature)
        estimate = _OF_ONE[asked.function](numbers, asked)
        p95 = None
        if asked.function in _WITH_P95 and asked.share not in (0.0, 1.0):  # paths do not tell of extremes
            arguments = (share_of(asked),) if asked.function == "quantile" else ()
            p95 = self._at_95(numbers, _WITH_P95[asked.function], *arguments)
        if math.isnan(estimate):
            estimate = (low + high) / 2
        return bounded(estimate, low, high, p95)

    def _of_spread(self, asked: Statistic) -> Value:
        """STD, VAR, COVARIANCE and CORRELATION: from the paths, in 95 of 100 questions."""
        first, second = asked.features[0], asked.features[-1]
        if asked.function in ("std", "var") or (asked.function == "covariance" and first == second):
            name = "deviation" if asked.function == "std" else "variance"
            numbers = self.numbers(first)
            estimate, p95 = getattr(numbers, name), self._at_95(numbers, f"{name}_p95")
        elif first == second:
            deviation = self.numbers(first).deviation
            estimate, p95 = (1.0 if deviation > 0 else math.nan), (1.0, 1.0)
        else:
            estimate = getattr(self.estimates, asked.function)(first, second)
            p95 = self._at_95(self.estimates, f"{asked.function}_p95", first, second)
        if math.isnan(estimate):
            return Value(None, None, None, "heuristic")
        if p95 is None:
            return Value(estimate, None, None, "heuristic")
        low, high = min(p95[0], estimate), max(p95[1], estimate)
        return Value(estimate, low, high, "p95", (low, high))

    def _at_95(self, source: Any, name: str, *arguments: Any) -> tuple[float, float] | None:
        """An interval at 95%, where paths can tell.

        It takes paths in the order of time, which moving objects have not, and features whose values lie within the
        ends that bins were fitted to.
        """
        if self._opened.is_beyond_paths:
            return None
        found = getattr(source, name)
        low, high = found(*arguments) if callable(found) else found
        return None if math.isnan(low) or math.isnan(high) else (float(low), float(high))

    @cached_property
    def estimates(self) -> Estimates:
        """What paths say."""
        assert self._strata is not None
        assert self._covered is not None
        opened = self._opened
        covered, clause = self._covered, positive(self._condition)
        scales = opened.summary.scales
        return Estimates(self._strata, scales, opened.features, covered.share, clause, lean=covered.lean)

    def numbers(self, feature: int) -> Numbers:
        """What paths say of a feature."""
        if feature not in self._known:
            self._known[feature] = self.estimates.of(feature)
        return self._known[feature]

    @cached_property
    def selection(self) -> certain.Selection:
        """What exact counts say."""
        strata, opened = self._strata, self._opened
        assert strata is not None
        assert self._covered is not None
        histograms = certain.Histograms(strata, opened.summary.scales, opened.features)
        return certain.Selection(certain.Strata.kept(strata, self._covered.share), histograms, self._condition)


def nothing(asked: Statistic) -> Value:
    """A statistic of no rows at all."""
    return Value(0, 0, 0, "exact") if asked.is_count else Value(None, None, None, "exact")


def share_of(asked: Statistic) -> float:
    """The share of a quantile."""
    assert asked.share is not None
    return asked.share


_OF_ONE: Final[dict[str, Callable[[Any, Statistic], float]]] = {
    "sum": lambda numbers, _: numbers.sum,
    "mean": lambda numbers, _: numbers.average,
    "min": lambda numbers, _: numbers.quantile(0.0),
    "max": lambda numbers, _: numbers.quantile(1.0),
    "quantile": lambda numbers, asked: numbers.quantile(share_of(asked)),
}

_WITH_P95: Final = {"sum": "sum_p95", "mean": "average_p95", "quantile": "quantile_p95"}


def bounded(estimate: float, low: float, high: float, p95: tuple[float, float] | None, *, whole: bool = False) -> Value:
    """An estimate put inside its certain interval, and a narrower one at 95% where there is one."""
    if low == high:
        exact = int(low) if whole else low
        return Value(exact, exact, exact, "exact" if whole else "certain")
    estimate = min(max(estimate, low), high)
    if whole:
        estimate, low, high = round(estimate), round(low), round(high)
    if p95 is not None:
        p95 = (max(min(p95[0], estimate), low), min(max(p95[1], estimate), high))
    return Value(estimate, low, high, "certain", p95)
