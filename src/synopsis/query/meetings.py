"""Combinations of values: whether a row may have had them, by which bins ever met in the spans that a scope touches.

A condition becomes combinations: of each feature the joint bins that hold an allowed value. A span can have such a row
only if every two of its bins met there; it surely has one where two bins met all of whose values are allowed. A group
without a span that can has no row, and one that holds a whole span which surely has one has a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.query.binding import Binned, Computed, Plan, Statistic
from synopsis.query.finish import Found
from synopsis.query.opened import Opened, day_us, past_us
from synopsis.query.predicates import EVERYTHING, AnyOf, Clause, Leaf, positive
from synopsis.query.scoping import Part
from synopsis.query.tree import BucketKey, CellKey
from synopsis.query.values import EXACT, Values, written
from synopsis.sketch.layout import Layout
from synopsis.sketch.meetings import Meetings, cells_of
from synopsis.sketch.moments import Integers
from synopsis.sketch.scales import Scales
from synopsis.sketch.summary import Summary

Booleans = NDArray[np.bool_]
Combination = dict[int, Leaf]  #: what each feature must fulfil, all at once

#: Combinations that a condition may become.
_MOST: Final = 64

#: Rows that a count may have which may be none.
FEW: Final = 10

_EVER: Final = np.iinfo(np.int64)


def sharpened(found: Found, asked: Plan, summary: Summary, layout: Layout) -> Found:
    """Counts of rows, 0 where no span that a group touches can have one, and what CONTAINS of values promises.

    Of no rows there is no statistic.

    Counts of more than a few rows stay as they are, unless it is asked whether there are any. Cost: in proportion to
    the bits of the pairs of features that a condition names, and to groups times spans.
    """
    values, notes = dict(found.values), []
    for each in found.values:
        if each.function != "count":
            continue
        parts, is_looked_for = each.only or asked.parts, each in asked.looked_for
        if any(part.condition == EVERYTHING for part in parts):
            continue
        if not is_looked_for and not ((values[each].low == 0) & (values[each].estimate <= FEW)).any():
            continue
        looked = None if summary.meetings is None else Looked(found, asked, parts, summary, summary.meetings, layout)
        if looked is not None:
            values[each] = _between(values[each], looked.may, looked.sure & (not each.features))
            if not each.features:
                values |= _of_no_rows(values, each)
        if is_looked_for:
            notes.append(f"{_name(asked, each)}: no is sure; {_UNKNOWN if looked is None else looked.meaning}")
    return replace(found, values=values, notes=(*found.notes, *notes))


def _of_no_rows(values: dict[Statistic, Values], count: Statistic) -> dict[Statistic, Values]:
    """What is told of the rows that are counted, with nothing where there surely are none."""
    none, found = values[count].high == 0, {}
    for each, told in values.items():
        if none.any() and each.only == count.only and each.function != "count":
            estimate, low, high = (np.where(none, np.nan, own) for own in (told.estimate, told.low, told.high))
            p95 = None if told.p95 is None else np.where(none[:, None], np.nan, told.p95)
            found[each] = Values(estimate, low, high, np.where(none, EXACT, told.guarantee).astype(np.int8), p95)
    return found


def _name(asked: Plan, count: Statistic) -> str:
    """The column that asks whether there are any."""
    names = (name for name, source in asked.columns if isinstance(source, Computed) and source.left == count)
    return next(names, "CONTAINS")


def _between(count: Values, may: Booleans, sure: Booleans) -> Values:
    """Counts of rows where there may be some, and surely are some."""
    high = np.where(may, count.high, 0)
    low = np.minimum(np.maximum(count.low, sure), high)
    exact = low == high
    p95 = None
    if count.p95 is not None:
        p95 = np.where(exact[:, None], np.nan, np.clip(count.p95, low[:, None], high[:, None]))
    guarantee = np.where(exact, EXACT, count.guarantee).astype(np.int8)
    return Values(np.clip(count.estimate, low, high), low, high, guarantee, p95)


@dataclass(frozen=True, eq=False)
class Verdict:
    """Which of some spans can have a row for which a clause holds, and which surely have one."""

    meetings: Meetings
    scales: Scales
    clause: Clause
    spans: Integers
    known: dict[tuple[int, int], Booleans] = field(default_factory=dict)  #: pairs whose bits are unpacked

    @cached_property
    def combinations(self) -> list[Combination] | None:
        """What the clause allows, one or the other; None where it would be too many."""
        return _combinations(self.clause)

    @cached_property
    def may(self) -> Booleans:
        """Spans that can."""
        if self.combinations is None:
            return np.ones(self.spans.size, np.bool_)
        found = np.zeros(self.spans.size, np.bool_)
        for each in self.combinations:
            allowed = {feature: self.allowed(leaf) for feature, leaf in each.items()}
            found |= self._met(allowed)
        return found

    @cached_property
    def sure(self) -> Booleans:
        """Spans that surely do: where more than two features must meet, nobody knows."""
        found = np.zeros(self.spans.size, np.bool_)
        for each in self.combinations or ():
            if 1 <= len(each) <= 2:
                found |= self._met({feature: self.covered(leaf) for feature, leaf in each.items()})
        return found

    def allowed(self, leaf: Leaf) -> Booleans:
        """The joint bins of a feature that hold an allowed value."""
        low, high = self.meetings.grain.ranges(self.scales, leaf.feature)
        held = [(low <= end) & (high >= begin) for begin, end in leaf.ranges]
        return np.append(np.logical_or.reduce([np.zeros(low.size, np.bool_), *held]), leaf.nulls)

    def covered(self, leaf: Leaf) -> Booleans:
        """The joint bins of a feature all of whose values are allowed."""
        low, high = self.meetings.grain.ranges(self.scales, leaf.feature)
        held = [(begin <= low) & (high <= end) for begin, end in leaf.ranges]
        return np.append(np.logical_or.reduce([np.zeros(low.size, np.bool_), *held]), leaf.nulls)

    def _met(self, bins: dict[int, Booleans]) -> Booleans:
        """Spans in which some of these bins met, of each two features."""
        found = np.ones(self.spans.size, np.bool_)
        if len(bins) == 1:
            feature = next(iter(bins))
            other = (feature + 1) % len(self.meetings.grain.sizes)
            bins = bins | {other: np.ones(self.meetings.grain.sizes[other], np.bool_)}
        for one, other in combinations(sorted(bins), 2):
            if (one, other) not in self.known:
                self.known[one, other] = self.meetings.met(one, other, self.spans)
            found &= self.known[one, other][:, bins[one]][:, :, bins[other]].any(axis=(1, 2))
        return found


def _combinations(clause: Clause) -> list[Combination] | None:
    """A clause as one AND or another, each of leaves of different features; None where there are too many."""
    if isinstance(clause, Leaf):
        return [{clause.feature: clause}]
    parts: list[list[Combination]] = []
    for part in clause.parts:
        known = _combinations(part)
        if known is None:
            return None
        parts.append(known)
    if isinstance(clause, AnyOf):
        found = [each for part in parts for each in part]
        return found if len(found) <= _MOST else None
    return [_joined(each) for each in product(*parts)] if math.prod(map(len, parts)) <= _MOST else None


def _joined(parts: tuple[Combination, ...]) -> Combination:
    """All of some combinations at once."""
    both: Combination = {}
    for part in parts:
        for feature, leaf in part.items():
            both[feature] = both[feature] & leaf if feature in both else leaf
    return both


@dataclass(frozen=True, eq=False)
class Spans:
    """Groups x spans: which spans a part of a question touches, group by group, and which it holds whole."""

    found: Found
    asked: Plan
    part: Part
    summary: Summary
    meetings: Meetings
    layout: Layout

    @cached_property
    def touched(self) -> Booleans:
        """Spans with a place and a day in the group."""
        return self._places[0] & self._times[0]

    @cached_property
    def inside(self) -> Booleans:
        """Spans all of whose places and days are in the group."""
        return self._places[1] & self._times[1]

    @cached_property
    def _places(self) -> tuple[Booleans, Booleans]:
        """Groups x spans, by their places alone. Cost: in proportion to places, and to groups times spans."""
        summary = self.summary
        around = Opened.around(summary, self.layout, self.part.scope)
        whole = around.chosen if around.whereabouts is None else around.whereabouts.inside
        cells, span_cell = np.unique(self.meetings.cell, return_inverse=True)
        place_cell = cells_of(summary.latitude, summary.longitude, self.meetings.grain.bits)
        cell = np.searchsorted(cells, place_cell)
        key = next((key for key in self.asked.groups if isinstance(key, CellKey)), None)
        own, group = np.zeros(place_cell.size, np.int64), np.zeros(self.found.size, np.int64)
        if key is not None:
            names, group = np.unique(self.found.keys[key], return_inverse=True)
            bits = key.length * geohash.BITS_PER_CHARACTER
            where = geohash.encode(summary.latitude, summary.longitude, bits)
            own = np.searchsorted(names, where)
            own[~np.isin(where, names)] = -1
        size = int(group.max(initial=0)) + 1
        places = np.bincount(cell, minlength=cells.size)
        touched, held = np.zeros((2, size, cells.size), np.int64)
        for table, which in ((touched, around.chosen), (held, whole)):
            there = which & (own >= 0)
            np.add.at(table, (own[there], cell[there]), 1)
        return (touched > 0)[group][:, span_cell], (held == places)[group][:, span_cell]

    @cached_property
    def _times(self) -> tuple[Booleans, Booleans]:
        """Groups x spans, by their days alone."""
        scope = self.part.scope
        begin = np.full((self.found.size, 1), _EVER.min if scope.from_us is None else scope.from_us)
        end = np.full((self.found.size, 1), _EVER.max if scope.until_us is None else scope.until_us)
        first, past = day_us(self.meetings.first_day, self.layout), past_us(self.meetings.last_day, self.layout)
        surely = begin, end
        key = next((key for key in self.asked.groups if isinstance(key, BucketKey)), None)
        if key is not None:
            span, zone = Bucket.parse(key.span), self.layout.zone if key.zone is None else Zone.named(key.zone)
            number: Integers = self.found.keys[key][:, None]
            begin, end = np.maximum(begin, span.starts_us(number, zone)), np.minimum(end, span.reach_us(number, zone))
            # Where clocks go back, buckets share instants with their neighbours.
            before, after = span.reach_us(number - 1, zone), span.starts_us(number + 1, zone)
            surely = np.maximum(begin, before), np.minimum(end, after)
        return (first < end) & (past > begin), (first >= surely[0]) & (past <= surely[1])


@dataclass(frozen=True, eq=False)
class Looked:
    """What is known of the rows that some parts of a question ask for."""

    found: Found
    asked: Plan
    parts: tuple[Part, ...]
    summary: Summary
    meetings: Meetings
    layout: Layout

    @cached_property
    def may(self) -> Booleans:
        """Groups that may have such a row."""
        held = (spans.touched[:, verdict.spans] & verdict.may for verdict, spans in self._parts)
        return np.asarray(np.logical_or.reduce([each.any(axis=1) for each in held]))

    @cached_property
    def sure(self) -> Booleans:
        """Groups that surely have one; which bin of a group it is in is a condition more, and not known."""
        if any(isinstance(key, Binned) for key in self.asked.groups):
            return np.zeros(self.found.size, np.bool_)
        found = np.zeros(self.found.size, np.bool_)
        for verdict, spans in self._parts:
            inside = spans.inside[:, verdict.spans]
            if inside.any():
                found |= (inside & verdict.sure).any(axis=1)
        return found

    @cached_property
    def _parts(self) -> list[tuple[Verdict, Spans]]:
        found = []
        for part in self.parts:
            spans = Spans(self.found, self.asked, part, self.summary, self.meetings, self.layout)
            touched = np.flatnonzero(spans.touched.any(axis=0))
            found.append((Verdict(self.meetings, self.summary.scales, positive(part.condition), touched), spans))
        return found

    @property
    def meaning(self) -> str:
        """What a yes means."""
        verdicts = [verdict for verdict, _ in self._parts]
        told = [each for verdict in verdicts for each in verdict.combinations or ()]
        if any(verdict.combinations is None for verdict in verdicts):
            return _UNKNOWN
        if any(len(each) > 2 for each in told):
            return _EACH_TWO
        bins = f"the same bins as one of {len(told)} combinations"
        if told and all(each == told[0] for each in told):
            bins = (
                f"the same bins, {' and '.join(_range(verdicts[0], each, self.layout) for each in told[0].values())},"
            )
        touched = np.logical_or.reduce([spans.touched.any(axis=0) for _, spans in self._parts])
        cut = np.logical_or.reduce([(spans.touched & ~spans.inside).any(axis=0) for _, spans in self._parts])
        meaning = f"yes means that a row lay in {bins} in the {touched.sum():,} spans touched"
        if not cut.any():
            return f"{meaning}, which is wrong for 0% of bins that did not meet there"
        return (
            f"{meaning}, of which {cut.sum():,} are cut, where it may lie outside of what is asked: no rate is stated"
        )


_UNKNOWN: Final = "yes means that the counts of each feature leave room for such a row, and no rate is stated"
_EACH_TWO: Final = (
    "yes means that each two of its features lay in the same bins in a row of a span touched, "
    "which need not be the same row, and no rate is stated"
)


def _range(verdict: Verdict, leaf: Leaf, layout: Layout) -> str:
    """The bins that a feature is asked for, as the values that they hold."""
    name, allowed = layout.features[leaf.feature], verdict.allowed(leaf)
    low, high = verdict.meetings.grain.ranges(verdict.scales, leaf.feature)
    if not allowed[:-1].any():
        return f"no {name}"
    told = f"{written(float(low[allowed[:-1]].min()))}..{written(float(high[allowed[:-1]].max()))} of {name}"
    return f"{told} or none" if allowed[-1] else told
