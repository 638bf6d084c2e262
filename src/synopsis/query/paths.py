"""Questions to a summary: which strata are in scope, what their paths say, and what their counts make certain.

A place is in scope or not, and so is a day, but for the first and the last of a range of time, which may be cut. Only
the blocks that hold such places and days are opened, and only the frames of the features that the question names. The
cells that stand for places of moving objects may be cut, too: `whereabouts` tells how much of them is in scope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery, NotKept
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.query import strata as certain
from synopsis.query.binding import Plan, Scope, Statistic
from synopsis.query.estimate import Estimates
from synopsis.query.finish import Found
from synopsis.query.predicates import Between, Condition, IsNull, Not, positive
from synopsis.query.tree import BucketKey, CellKey
from synopsis.query.values import CERTAIN, EXACT, HEURISTIC, P95, Value, Values
from synopsis.query.whereabouts import Whereabouts
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Strata
from synopsis.sketch.summary import Summary
from synopsis.sketch.tallies import DAY_US

_DAY: Final = Bucket.parse("1d")

#: The share of a day that a bucket shorter than a day takes at most: no such bucket holds one whole.
_ALMOST: Final = 1.0 - 1e-9

#: Days in any span of time.
_MOST_DAYS: Final = 1 << 40

#: Days that local time may be away from UTC, and clocks that are set back may reach beyond.
_ZONES_REACH: Final = 3

#: Groups that one answer may have: each is evaluated by itself.
_MOST_GROUPS: Final = 10_000


def of_summary(summary: Summary, layout: Layout, asked: Plan) -> Found:
    """The statistics of a bound question.

    Cost: proportional to the strata and paths in the blocks that are touched, and to the groups.
    """
    opened = _Opened.of(summary, layout, asked)
    groups = list(_groups(opened, asked))
    values = {
        each: _gathered([group.statistic(each) for group in groups], is_count=each.function == "count")
        for each in asked.statistics
    }
    cells, buckets = (np.array([getattr(each, name) for each in groups], np.int64) for name in ("cell", "bucket"))
    return Found(len(groups), cells, buckets, values)


def touched(summary: Summary, layout: Layout, asked: Plan) -> dict[str, Any]:
    """What a question looks at: blocks, bytes, places, days, paths. Cost: that of opening what it touches."""
    opened = _Opened.of(summary, layout, asked)
    before = np.append(0, np.cumsum(opened.chosen))
    looked_at = [each for each in summary.blocks if before[each.place_high + 1] > before[each.place_low]]
    needed = summary.contexts.needed(set(opened.features))
    sizes = [
        len(block.head) + sum(len(block.bins[f]) for f in opened.features) + sum(len(block.paths[f]) for f in needed)
        for block in looked_at
    ]
    facts: dict[str, Any] = {
        "blocks": len(looked_at),
        "blocks in all": len(summary.blocks),
        "packed bytes": sum(sizes),
        "features opened": ", ".join(layout.features[each] for each in needed if each < len(layout.features)),
    }
    if opened.strata is None:
        return facts | dict.fromkeys(("places", "places cut", "strata", "days", "days cut", "rows", "paths"), 0)
    strata, covered = opened.strata, opened.covered(opened.begin_us, opened.end_us).share
    there = (covered > 0.0) & (strata.day_rows > 0)
    places, own = strata.day_place, opened.whereabouts
    return facts | {
        "places": int(np.unique(places[there]).size),
        "places cut": 0 if own is None else int(np.unique(places[there & ~own.inside[places]]).size),
        "strata": len(strata),
        "days": int(there.sum()),
        "days cut": int((there & (covered < 1.0)).sum()),
        "rows": int(strata.day_rows[there].sum()),
        "paths": int(strata.day_kept[there].sum()),
    }


def _features(condition: Condition) -> set[int]:
    if isinstance(condition, Between | IsNull):
        return {condition.feature}
    parts = (condition.condition,) if isinstance(condition, Not) else condition.conditions
    return set().union(*map(_features, parts))


# --- what is in scope -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Covered:
    """How much of each day is in scope, and how much rather each path of it than the others."""

    share: Floats  #: days
    lean: Floats | None = None  #: paths; None: all of a day alike

    def but(self, days: NDArray[np.bool_]) -> _Covered:
        """Of these days only."""
        return replace(self, share=np.where(days, self.share, 0.0))


@dataclass(frozen=True)
class _Opened:
    """Strata with places and days in scope."""

    summary: Summary
    layout: Layout
    features: tuple[int, ...]
    strata: Strata | None  #: None where nothing is in scope
    chosen: NDArray[np.bool_]  #: places
    begin_us: int | None
    end_us: int | None
    whereabouts: Whereabouts | None = None  #: of moving objects

    @classmethod
    def of(cls, summary: Summary, layout: Layout, asked: Plan) -> _Opened:
        """The strata of all places in scope that have days in scope, with the features that the question names."""
        scope = asked.scope
        named = {*_features(asked.condition), *(feature for each in asked.statistics for feature in each.features)}
        features = tuple(sorted(named)) or (0,)
        begin, end = scope.from_us, scope.until_us
        whereabouts = Whereabouts.of(summary, layout, scope) if summary.layout.moving else None
        chosen = _places(summary, scope) if whereabouts is None else whereabouts.touched
        if whereabouts is not None:
            timed = begin is not None or end is not None
            features += whereabouts.features(timed or any(isinstance(key, BucketKey) for key in asked.groups))
        strata = None
        if begin is None or end is None or begin < end:
            strata = summary.opened_within(features, chosen, *_days(layout, begin, end))
        return cls(summary, layout, features, strata, chosen, begin, end, whereabouts)

    def within(self, places: NDArray[np.bool_]) -> _Opened:
        """The same, of some places only."""
        assert self.strata is not None
        chosen = self.chosen & places
        keep = np.logical_or.reduceat(chosen[self.strata.run_place], self.strata.run_offset[:-1])
        return replace(self, chosen=chosen, strata=self.strata if keep.all() else self.strata.take(keep))

    @cached_property
    def is_beyond_paths(self) -> bool:
        """Whether paths are no ground for intervals at 95%."""
        scales = self.summary.scales
        return self.summary.layout.moving or any(scales.is_widened(feature) for feature in self.features)

    def covered(self, begin: int | None, end: int | None) -> _Covered:
        """What of each day and place in scope lies in a span of time."""
        strata = self.strata
        assert strata is not None
        if self.layout.timezone == "UTC":
            share = strata.covered(self.chosen, begin, end)
        else:
            share = np.where(self.chosen[strata.day_place], _covered(strata, self.layout, begin, end), 0.0)
        if self.whereabouts is None:
            return _Covered(share)
        starts = day_us(strata.day, self.layout)
        return _Covered(*self.whereabouts.within(strata, self.features, share, starts, begin, end))


def _places(summary: Summary, scope: Scope) -> NDArray[np.bool_]:
    """Which places are in scope. Cost: a pass over the places for every geohash and shape."""
    chosen = np.ones(summary.latitude.size, np.bool_)
    if scope.prefixes is not None:
        chosen = geohash.within(scope.prefixes, summary.latitude, summary.longitude)
    for shape in scope.shapes:
        chosen &= shape.holds(summary.latitude, summary.longitude)
    return chosen


def day_us(day: Integers, layout: Layout) -> Integers:
    """The first instant of each day."""
    if layout.timezone == "UTC":
        return day * DAY_US
    return _DAY.starts_us(day, layout.zone)


def _past_us(day: Integers, layout: Layout) -> Integers:
    """The instant from which on nothing falls into each day any more; clocks may go back over midnight."""
    if layout.timezone == "UTC":
        return (day + 1) * DAY_US
    return _DAY.reach_us(day, layout.zone)


def _days(layout: Layout, begin: int | None, end: int | None) -> tuple[int, int]:
    """The first and the last day with an instant in a span of time."""
    first = -_MOST_DAYS if begin is None else begin // DAY_US
    last = _MOST_DAYS if end is None else (end - 1) // DAY_US
    if layout.timezone == "UTC":
        return first, last
    near = np.arange(-_ZONES_REACH, _ZONES_REACH + 1)
    if begin is not None:
        first = int(first + near[_past_us(first + near, layout) > begin][0])
    if end is not None:
        last = int(last + near[day_us(last + near, layout) < end][-1])
    return first, last


def _covered(strata: Strata, layout: Layout, begin: int | None, end: int | None) -> Floats:
    if begin is None and end is None:
        return np.ones(strata.day_rows.size)
    first, last = day_us(strata.day, layout), _past_us(strata.day, layout)
    left = first if begin is None else np.maximum(first, begin)
    right = last if end is None else np.minimum(last, end)
    return np.asarray(np.clip((right - left) / (last - first), 0.0, 1.0))


# --- groups -----------------------------------------------------------------------------------------------------------


def _groups(opened: _Opened, asked: Plan) -> Iterator[_Group]:
    """The groups of the answer in the order of their keys; without GROUP BY one, even when it is empty."""
    strata = opened.strata
    if not asked.groups:
        covered = None if strata is None else opened.covered(opened.begin_us, opened.end_us)
        yield _Group(opened, covered, asked.condition)
        return
    if strata is None:
        return
    length = next((key.length for key in asked.groups if isinstance(key, CellKey)), None)
    span = next((Bucket.parse(key.span) for key in asked.groups if not isinstance(key, CellKey)), None)
    cell = _cells(opened.summary, length)
    made = 0
    for each in np.unique(cell[opened.chosen]):
        own = opened if length is None else opened.within(cell == each)
        for bucket, covered in _buckets(own, span):
            assert own.strata is not None
            if not (covered.share * own.strata.day_rows).any():
                continue
            made += 1
            if made > _MOST_GROUPS:
                raise BadQuery(f"the answer has more than {_MOST_GROUPS:,} groups; ask for coarser ones or for less")
            yield _Group(own, covered, asked.condition, int(each), bucket)


def _cells(summary: Summary, length: int | None) -> Integers:
    """The cell of each place, by the length of its geohash."""
    if length is None:
        return np.zeros(summary.latitude.size, np.int64)
    bits, known = length * geohash.BITS_PER_CHARACTER, summary.layout.place_bits
    if known is not None and bits > known:
        longest = known // geohash.BITS_PER_CHARACTER
        remedy = f"ask for CELL({longest})" if longest else "ask cell by cell, location LIKE 'u0%'"
        raise NotKept(f"GROUP BY CELL({length}) needs places, and this sketch keeps cells of {known} bits: {remedy}")
    return geohash.encode(summary.latitude, summary.longitude, bits)


def _buckets(opened: _Opened, span: Bucket | None) -> Iterator[tuple[int, _Covered]]:
    """The buckets of these strata within the scope, each with the share of every day that lies in it."""
    begin, end, layout, strata = opened.begin_us, opened.end_us, opened.layout, opened.strata
    assert strata is not None
    if span is None or span.encloses(_DAY):  # a day lies in one bucket, whatever clocks do
        covered = opened.covered(begin, end)
        if span is None:
            yield 0, covered
            return
        own = span.ordinals(day_us(strata.day, layout), layout.zone)
        for ordinal in np.unique(own[(strata.day_rows > 0) & (covered.share > 0.0)]):
            yield int(ordinal), covered.but(own == ordinal)
        return
    days = strata.day[strata.day_rows > 0]
    ends_us = day_us(days.min(), layout), _past_us(days.max(), layout) - 1
    first, last = (int(ordinal) for ordinal in span.ordinals(np.array(ends_us, np.int64), layout.zone))
    ordinals = np.arange(first, last + 1)
    starts, reach = span.starts_us(ordinals, layout.zone), span.reach_us(ordinals, layout.zone)
    for ordinal, left, right in zip(ordinals, starts, reach, strict=True):
        inner = int(left) if begin is None else max(int(left), begin)
        outer = int(right) if end is None else min(int(right), end)
        if inner < outer:
            covered = opened.covered(inner, outer)
            # A day that the bucket holds whole by its instants may still have rows of the hour that came twice.
            yield int(ordinal), replace(covered, share=np.minimum(covered.share, _ALMOST))


class _Group:
    """One group being answered; what its statistics share is computed once."""

    def __init__(
        self, opened: _Opened, covered: _Covered | None, condition: Condition, cell: int = 0, bucket: int = 0
    ) -> None:
        self._opened, self._strata, self._covered, self._condition = opened, opened.strata, covered, condition
        self._known: dict[int, Any] = {}
        self.cell, self.bucket = cell, bucket

    def statistic(self, asked: Statistic) -> Value:
        """One statistic with its interval."""
        if self._strata is None:
            return Value(0, 0, 0, "exact") if asked.function == "count" else Value(None, None, None, "exact")
        if asked.function == "count":
            return self._count(asked)
        if asked.function in _OF_ONE:
            return self._of_one(asked)
        return self._of_spread(asked)

    def _count(self, asked: Statistic) -> Value:
        interval = self._selection.values(asked.features[0]).count() if asked.features else self._selection.count()
        low, high = float(interval.low[0]), float(interval.high[0])
        estimate = low
        p95 = None
        if low < high:
            estimates = self._estimates
            estimate = self._numbers(asked.features[0]).count if asked.features else estimates.count()
            counted = self._numbers(asked.features[0]) if asked.features else estimates
            p95 = self._at_95(counted, "count_p95")
        return _value(estimate, low, high, p95, whole=True)

    def _of_one(self, asked: Statistic) -> Value:
        feature = asked.features[0]
        values = self._selection.values(feature)
        interval = values.quantile(_share(asked)) if asked.function == "quantile" else getattr(values, asked.function)()
        low, high = float(interval.low[0]), float(interval.high[0])
        if math.isnan(low) or math.isnan(high):
            return Value(None, None, None, "certain")
        numbers = self._numbers(feature)
        estimate = _OF_ONE[asked.function](numbers, asked)
        p95 = None
        if asked.function in _WITH_P95 and asked.share not in (0.0, 1.0):  # paths do not tell of extremes
            arguments = (_share(asked),) if asked.function == "quantile" else ()
            p95 = self._at_95(numbers, _WITH_P95[asked.function], *arguments)
        if math.isnan(estimate):
            estimate = (low + high) / 2
        return _value(estimate, low, high, p95)

    def _of_spread(self, asked: Statistic) -> Value:
        """STD, VAR, COVARIANCE and CORRELATION: from the paths, in 95 of 100 questions."""
        first, second = asked.features[0], asked.features[-1]
        if asked.function in ("std", "var") or (asked.function == "covariance" and first == second):
            name = "deviation" if asked.function == "std" else "variance"
            numbers = self._numbers(first)
            estimate, p95 = getattr(numbers, name), self._at_95(numbers, f"{name}_p95")
        elif first == second:
            deviation = self._numbers(first).deviation
            estimate, p95 = (1.0 if deviation > 0 else math.nan), (1.0, 1.0)
        else:
            estimate = getattr(self._estimates, asked.function)(first, second)
            p95 = self._at_95(self._estimates, f"{asked.function}_p95", first, second)
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
    def _estimates(self) -> Estimates:
        assert self._strata is not None
        assert self._covered is not None
        opened = self._opened
        covered, clause = self._covered, positive(self._condition)
        scales = opened.summary.scales
        return Estimates(self._strata, scales, opened.features, covered.share, clause, lean=covered.lean)

    def _numbers(self, feature: int) -> Any:
        if feature not in self._known:
            self._known[feature] = self._estimates.of(feature)
        return self._known[feature]

    @cached_property
    def _selection(self) -> certain.Selection:
        strata, opened = self._strata, self._opened
        assert strata is not None
        assert self._covered is not None
        histograms = certain.Histograms(strata, opened.summary.scales, opened.features)
        return certain.Selection(certain.Strata.kept(strata, self._covered.share), histograms, self._condition)


def _share(asked: Statistic) -> float:
    assert asked.share is not None
    return asked.share


_OF_ONE: Final[dict[str, Callable[[Any, Statistic], float]]] = {
    "sum": lambda numbers, _: numbers.sum,
    "mean": lambda numbers, _: numbers.average,
    "min": lambda numbers, _: numbers.quantile(0.0),
    "max": lambda numbers, _: numbers.quantile(1.0),
    "quantile": lambda numbers, asked: numbers.quantile(_share(asked)),
}

_WITH_P95: Final = {"sum": "sum_p95", "mean": "average_p95", "quantile": "quantile_p95"}


def _value(estimate: float, low: float, high: float, p95: tuple[float, float] | None, *, whole: bool = False) -> Value:
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


# --- the answer -------------------------------------------------------------------------------------------------------


_WORDS: Final = {"exact": EXACT, "certain": CERTAIN, "p95": P95, "heuristic": HEURISTIC}


def _gathered(values: list[Value], *, is_count: bool) -> Values:
    nothing = (math.nan, math.nan)
    table = np.array(
        [(each.estimate, each.low, each.high, *(each.p95 or nothing)) for each in values],  # None becomes NaN
        np.float64,
    ).reshape(-1, 5)
    words = np.array([_WORDS[value.guarantee] for value in values], np.int8)
    numbers: NDArray[Any] = table[:, :3]
    if is_count:
        numbers = np.array([(each.estimate, each.low, each.high) for each in values], np.int64).reshape(-1, 3)
    return Values(numbers[:, 0], numbers[:, 1], numbers[:, 2], words, table[:, 3:])
