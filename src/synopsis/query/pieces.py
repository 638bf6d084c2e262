"""Pieces: the statistics of rows in parts of space and time that fulfil one condition, a column for all groups at once.

Exact counts give what is certain, paths give estimates and intervals at 95%.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synopsis.query.binding import Statistic
from synopsis.query.covers import Covers, Slots
from synopsis.query.estimate import Estimates
from synopsis.query.feature_numbers import Numbers
from synopsis.query.histograms import Histograms
from synopsis.query.histograms import Strata as Scope
from synopsis.query.opened import Opened
from synopsis.query.predicates import And, Condition, IsNull, Leaf, Not, positive, reachable
from synopsis.query.sampled import Sample
from synopsis.query.strata import Selection
from synopsis.query.telling import Told, tell
from synopsis.query.values import EXACT, Values
from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Floats
from synopsis.sketch.strata import Strata

if TYPE_CHECKING:
    from synopsis.query import intervals
else:
    intervals = Later("synopsis.query.intervals")


class Scoped:
    """Places and days of groups, whatever is demanded of their rows: bins and further conditions share it."""

    def __init__(self, opened: Opened, covers: Covers) -> None:
        assert opened.strata is not None
        self.opened, self.covers = opened, covers
        self.kept: Strata = opened.strata
        self.slots = Slots.of(opened.strata, covers)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.covers.groups

    @cached_property
    def sample(self) -> Sample:
        """Their paths."""
        own = (self.kept, self.opened.summary.scales, self.opened.features)
        pace = self.opened.summary.layout.pace
        return Sample(*own, self.covers, slots=self.slots, pace=pace, effects=self.opened.effects)

    @cached_property
    def strata(self) -> Scope:
        """Their rows, as exact counts tell."""
        return Scope.of(self.slots)

    @cached_property
    def histograms(self) -> Histograms:
        """What exact counts say of features."""
        own = (self.kept, self.opened.summary.scales, self.opened.features)
        return Histograms(*own, self.slots.stratum)


class Pieces:
    """The rows of groups that lie in one part of the question; what their statistics share is computed once.

    Cost: proportional to the strata and paths in scope, of all groups; no more calls for many groups than for one.
    """

    def __init__(self, scoped: Scoped, condition: Condition, whole: Pieces | None = None) -> None:
        """`whole` are the pieces that these are a part of, for their condition is narrower."""
        self.scoped, self._condition, self._whole = scoped, condition, whole
        self._known: dict[int, Numbers] = {}
        self._told: dict[Statistic, Told] = {}

    def at_once(self, asked: tuple[Statistic, ...]) -> dict[Statistic, Values] | None:
        """All these statistics at once, where that can be; else as much is found out as can be for each by itself."""
        scoped, opened = self.scoped, self.scoped.opened
        own = (opened.summary.scales, opened.features, scoped.kept, scoped.covers, scoped.slots)
        likely, pace = not opened.is_beyond_paths, opened.summary.layout.pace
        heard = tell(asked, positive(self._condition), *own, likely, pace, opened.effects)
        if heard is None:
            return None
        if self.groups == 1 and len(heard.topic.statistics) == len(asked):
            known = self.selection.values(heard.topic.feature).known
            if known is not None and known[1].size:
                return heard.settled(*known)
        self._told = heard.told
        return None

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.scoped.groups

    def but(self, condition: Condition) -> Pieces:
        """Those of the rows that fulfil a further condition on features that are open."""
        return Pieces(self.scoped, And((self._condition, condition)), self)

    @property
    def is_of_one(self) -> bool:
        """Whether the condition is on a single feature, whose bins are counted."""
        return isinstance(positive(self._condition), Leaf)

    def only(self, group: int) -> Pieces:
        """The rows of one group."""
        if self.groups == 1:
            return self
        return Pieces(Scoped(self.scoped.opened, self.scoped.covers.only(group, group + 1)), self._condition)

    def statistic(self, asked: Statistic) -> Values:
        """One statistic of every group with its interval."""
        if asked.function == "count":
            return self._count(asked)
        if asked.function in _OF_ONE:
            return self._of_one(asked)
        return self._of_spread(asked)

    def _count(self, asked: Statistic) -> Values:
        if len(asked.features) == 2:  # rows that have both
            return self.but(Not(IsNull(asked.features[1])))._count(replace(asked, features=asked.features[:1]))
        low, high = self.selection.values(asked.features[0]).count() if asked.features else self.selection.count()
        if not (low < high).any():
            return counted(low, low, high, None, asked)
        if asked.features:
            numbers = self.numbers(asked.features[0])
            return counted(numbers.count, low, high, self._at_95(numbers, "count_p95"), asked)
        if asked in self._told:
            estimate, p95 = self._told[asked]
            return counted(estimate, low, high, p95, asked)
        count = self.estimates.count_by_paths() if asked.by_paths else self.estimates.count()
        return counted(count, low, high, self._at_95(self.estimates, "count_p95"), asked)

    def _of_one(self, asked: Statistic) -> Values:
        feature = asked.features[0]
        values = self.selection.values(feature)
        low, high = (
            values.quantile(share_of(asked)) if asked.function == "quantile" else getattr(values, asked.function)()
        )
        if asked in self._told:
            estimate, p95 = self._told[asked]
            return bounded(estimate, low, high, None if asked.share in (0.0, 1.0) else p95)
        numbers, p95 = self.numbers(feature), None
        estimate = _OF_ONE[asked.function](numbers, asked)
        if asked.function in _WITH_P95 and asked.share not in (0.0, 1.0):  # paths do not tell of extremes
            arguments = (share_of(asked),) if asked.function == "quantile" else ()
            p95 = self._at_95(numbers, _WITH_P95[asked.function], *arguments)
        return bounded(estimate, low, high, p95)

    def _of_spread(self, asked: Statistic) -> Values:
        """STD, VAR, COVARIANCE and CORRELATION: from the paths, in 95 of 100 questions."""
        first, second = asked.features[0], asked.features[-1]
        if asked.function in ("std", "var") or (asked.function == "covariance" and first == second):
            return self._of_one_spread(asked, first)
        if asked in self._told:
            return guessed(*self._told[asked])
        if first == second:
            estimate = np.where(self.numbers(first).deviation > 0, 1.0, np.nan)
            return guessed(estimate, (estimate, estimate))
        estimate = getattr(self.estimates, asked.function)(first, second)
        return guessed(estimate, self._at_95(self.estimates, f"{asked.function}_p95", first, second))

    def _of_one_spread(self, asked: Statistic, feature: int) -> Values:
        """STD and VAR: no more than half the way from the least to the greatest value allows."""
        if asked in self._told:
            estimate, p95 = self._told[asked]
        else:
            name, numbers = "deviation" if asked.function == "std" else "variance", self.numbers(feature)
            estimate, p95 = getattr(numbers, name), self._at_95(numbers, f"{name}_p95")
        values = self.selection.values(feature)
        reach = (values.max()[1] - values.min()[0]) / 2.0
        found = intervals.capped(
            np.stack((estimate, *(p95 or ()))), reach if asked.function == "std" else reach * reach
        )
        return guessed(found[0], None if p95 is None else (found[1], found[2]))

    def _at_95(self, source: Any, name: str, *arguments: Any) -> tuple[Floats, Floats] | None:
        """Intervals at 95%, where paths can tell: it takes features whose values lie within the ends that bins were
        fitted to.
        """
        if self.scoped.opened.is_beyond_paths:
            return None
        found = getattr(source, name)
        low, high = found(*arguments) if callable(found) else found
        return low, high

    @cached_property
    def estimates(self) -> Estimates:
        """What paths say."""
        clause = positive(self._condition)
        return Estimates(self.scoped.sample, clause) if self._whole is None else self._whole.estimates.narrowed(clause)

    def numbers(self, feature: int) -> Numbers:
        """What paths say of a feature."""
        if feature not in self._known:
            self._known[feature] = self.estimates.of(feature)
        return self._known[feature]

    def alone(self, feature: int) -> Numbers:
        """What exact counts say of a feature, whatever is demanded of the others: for where no path tells."""
        return Estimates(self.scoped.sample, reachable(positive(self._condition), feature)).of(feature)

    @cached_property
    def selection(self) -> Selection:
        """What exact counts say."""
        return Selection(self.scoped.strata, self.scoped.histograms, self._condition)


def share_of(asked: Statistic) -> float:
    """The share of a quantile."""
    assert asked.share is not None
    return asked.share


_OF_ONE: Final[dict[str, Callable[[Numbers, Statistic], Floats]]] = {
    "sum": lambda numbers, _: numbers.sum,
    "mean": lambda numbers, _: numbers.average,
    "min": lambda numbers, _: numbers.quantile(0.0),
    "max": lambda numbers, _: numbers.quantile(1.0),
    "quantile": lambda numbers, asked: numbers.quantile(share_of(asked)),
}

_UNKNOWN: Final = (np.empty(0), np.empty(0))

_WITH_P95: Final = {"sum": "sum_p95", "mean": "average_p95", "quantile": "quantile_p95"}


# --- values -----------------------------------------------------------------------------------------------------------


def nothing(asked: Statistic, groups: int) -> Values:
    """A statistic of no rows at all."""
    kind = np.int64 if asked.is_count and asked.rounded else np.float64
    numbers = np.full((3, groups), 0 if asked.is_count else np.nan, kind)
    return Values(numbers[0], numbers[1], numbers[2], np.full(groups, EXACT, np.int8), np.full((groups, 2), np.nan))


def bounded(
    estimate: Floats,
    low: Floats,
    high: Floats,
    p95: tuple[Floats, Floats] | None = None,
    *,
    whole: bool = False,
    counts: bool = False,
) -> Values:
    """Estimates put inside their certain intervals, and narrower ones at 95% where there are any.

    Where an end is NaN, there is no value; where there is no estimate, it is the middle. Counts whose ends are one are
    exact.
    """
    found, guarantee = intervals.bounded(estimate, low, high, *(p95 or _UNKNOWN), whole, counts)
    numbers = found[:3].astype(np.int64) if whole else found
    return Values(numbers[0], numbers[1], numbers[2], guarantee, found[3:].T)


def counted(estimate: Floats, low: Floats, high: Floats, p95: tuple[Floats, Floats] | None, asked: Statistic) -> Values:
    """Rows counted: whole numbers, exact where both ends are one, unless what they are for needs them as they are."""
    return bounded(estimate, low, high, p95, whole=asked.rounded, counts=True)


def guessed(estimate: Floats, p95: tuple[Floats, Floats] | None) -> Values:
    """Estimates with intervals at 95% alone, where there are any."""
    likely, guarantee = intervals.guessed(estimate, *(p95 or _UNKNOWN))
    return Values(estimate, likely[:, 0], likely[:, 1], guarantee, likely)
