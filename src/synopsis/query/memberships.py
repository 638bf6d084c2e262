"""Memberships: how many different ones there are, who is here and there, and whether one is here at all.

Entities are counted by the members of whole spans. What the scope cuts is in the interval: of entities there are at
least those of the spans inside, and at most those of all that are touched. Keys such as cells and bins are groups of
a question of their own, and those that surely or perhaps have rows are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from datasketches import theta_a_not_b, theta_intersection
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery, NotKept, UnknownFeature
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.query.binding import Binned, Keyed, Membership, Plan, Statistic
from synopsis.query.filters import alone
from synopsis.query.finish import Found
from synopsis.query.groups import Grouping, group
from synopsis.query.predicates import EVERYTHING
from synopsis.query.runs import Runs, picked
from synopsis.query.scope import select
from synopsis.query.scoping import Part
from synopsis.query.tree import BucketKey, CellKey
from synopsis.query.values import CERTAIN, P95, Values
from synopsis.sketch.layout import Layout
from synopsis.sketch.members import Count, Members, Opened
from synopsis.sketch.moments import Integers
from synopsis.sketch.strands import Strands

Answering = Callable[[Plan], Found]
Planning = Callable[[Plan], Plan]

_COUNT: Final = Statistic("count")


@dataclass(frozen=True, eq=False)
class Asking:
    """A question that counts entities or keys, and who answers it."""

    asked: Plan
    layout: Layout
    members: Members | None
    planned: Planning
    answering: Answering

    def found(self) -> Found:
        """All statistics of the question, and its memberships. Cost: that of a question more for each of these."""
        main = self.answering(alone(self.asked, self.asked.parts, list(self.asked.statistics)))
        values: dict[Membership, Values] = {}
        notes: list[str] = []
        for each in self.asked.memberships:
            values[each] = self._keys(each, main) if each.keys else self._entities(each, main, notes)
        return replace(main, memberships=values, notes=tuple(notes))

    # --- keys ---------------------------------------------------------------------------------------------------------

    def _keys(self, each: Membership, main: Found) -> Values:
        """How many different keys have rows."""
        inner = tuple(key for key in self.asked.groups if not any(_is_finer(own, key) for own in each.keys)) + each.keys
        if any(_are_alike(one, other) for at, one in enumerate(inner) for other in inner[:at]):
            raise BadQuery("CARDINALITY counts keys within groups: they are finer than those of GROUP BY", *each.where)
        parts = each.scopes[0] if each.scopes else self.asked.parts
        wanted = replace(alone(self.asked, parts, [_COUNT]), groups=inner, notes=())
        plan = self.planned(wanted)
        if plan.groups != inner:
            if self._has_cells(each.keys):
                return self._counted(each, main, Opened.cells_in)
            raise NotKept(f"{plan.notes[0].split(':')[0]}; ask for coarser ones", *each.where)
        found = self.answering(plan)
        rows = Found(found.size, {key: _within(found, key) for key in self.asked.groups}, {}).rows_of(main)
        there = (rows >= 0) & ~_without(found)
        count = found.values[_COUNT]

        def counted(sure: NDArray[Any]) -> Integers:
            return np.bincount(rows[there & (sure > 0)], minlength=main.size).astype(np.int64)

        low, high = counted(count.low), counted(count.high)
        return Values.bounded(counted(count.estimate), low, high, low == high)

    def _has_cells(self, keys: tuple[Keyed, ...]) -> bool:
        """Whether members count the very cells that are asked for."""
        bits = [key.length * geohash.BITS_PER_CHARACTER for key in keys if isinstance(key, CellKey)]
        return self.members is not None and len(keys) == 1 and bits == [self.members.cell_bits]

    # --- entities -----------------------------------------------------------------------------------------------------

    def _entities(self, each: Membership, main: Found, notes: list[str]) -> Values:
        members = self._kept(each)
        if each.function == "cardinality":
            return self._counted(each, main, Opened.entities_in)
        if each.function == "contains":
            return self._contained(each, members, main, notes)
        sides, opened = [self._sides(parts, each, main, members) for parts in each.scopes], Opened(members)
        counts = [
            _between(*(_in_common if each.function == "common" else _in_first)(opened, [side[at] for side in sides]))
            for at in range(main.size)
        ]
        return _values(counts)

    def _kept(self, each: Membership) -> Members:
        """The members, if there are any and they are called so."""
        if self.members is None:
            raise NotKept(
                "this sketch does not keep who was where; build it with Spec(entity=...), naming the column that says "
                "who observed",
                *each.where,
            )
        if each.name is not None and each.name.lower() not in (self.members.entity.lower(), "entity"):
            raise UnknownFeature(each.name, (*self.layout.features, self.members.entity), *each.where)
        return self.members

    def _counted(self, each: Membership, main: Found, count: Callable[[Opened, Integers], Count]) -> Values:
        members = self._kept(each) if not each.keys else self.members
        assert members is not None
        parts = each.scopes[0] if each.scopes else self.asked.parts
        found, opened = [], Opened(members)
        for side in self._sides(parts, each, main, members):
            least = count(opened, side.inside)
            most = count(opened, side.touched) if side.is_cut else least
            middle = least.estimate + side.part(most.estimate) * (most.estimate - least.estimate)
            found.append(Count(middle, least.low, most.high))
        return _values(found)

    def _contained(self, each: Membership, members: Members, main: Found, notes: list[str]) -> Values:
        """Whether an entity may have been there: no is sure."""
        if members.marks is None:
            raise NotKept(
                "this sketch has no room for the marks of its entities; build it with more memory", *each.where
            )
        assert each.text is not None
        mark = members.marks.mark(each.text)
        parts = each.scopes[0] if each.scopes else self.asked.parts
        there = np.zeros(main.size, np.int64)
        largest, opened, sides = 0, Opened(members), self._sides(parts, each, main, members)
        for at, side in enumerate(sides):
            marks = opened.marks_of(side.touched)
            largest = max(largest, marks.size)
            where = np.searchsorted(marks, mark)
            there[at] = where < marks.size and marks[where] == mark
        rate = members.marks.rate(largest)
        spans = " in the spans that the scope cuts" if any(side.is_cut for side in sides) else ""
        wrong = f"a yes is wrong for {rate:.2%} of entities not there{spans}"
        notes.append(f"CONTAINS({each.text!r}): no is sure, and {wrong}")
        return Values(there, np.zeros_like(there), there, np.full(main.size, CERTAIN, np.int8))

    def _sides(self, parts: tuple[Part, ...], each: Membership, main: Found, members: Members) -> list[_Side]:
        """What each group of the answer has of the spans."""
        if any(part.condition != EVERYTHING for part in parts) or any(isinstance(k, Binned) for k in self.asked.groups):
            raise NotKept(
                "entities are kept by place and time: ask without conditions on features and without BIN", *each.where
            )
        grouping = group(replace(self.asked, parts=parts), members.spans)
        rows = main.rows_of(Found(grouping.size, grouping.keys, {}))
        inside, cut = (_by_group(runs) for runs in (grouping.groups.inside, grouping.groups.cut))
        share, by_time = _shares(grouping), self._cuts_time_only(parts, members.spans)
        nothing = _Side(np.empty(0, np.int64), np.empty(0, np.int64), 0.0, None)
        return [
            _Side(
                inside[row],
                np.union1d(inside[row], cut[row]),
                float(share[row]),
                int(members.spans.rows[cut[row]].sum()) if by_time else None,
            )
            if row >= 0
            else nothing
            for row in rows
        ]

    def _cuts_time_only(self, parts: tuple[Part, ...], spans: Strands) -> bool:
        """Whether places are whole cells of spans."""
        keys = [key.length * geohash.BITS_PER_CHARACTER for key in self.asked.groups if isinstance(key, CellKey)]
        ever = (replace(part.scope, from_us=None, until_us=None) for part in parts)
        return all(bits <= spans.layout.bits for bits in keys) and not any(
            select(each, spans).cut.size for each in ever
        )


class _Side(NamedTuple):
    """Spans of a group."""

    inside: Integers
    touched: Integers  #: with those inside
    share: float  #: of those that are cut that is thought to be in scope
    rows: int | None  #: of those that are cut, where it is time that cuts them

    @property
    def is_cut(self) -> bool:
        return self.touched.size > self.inside.size

    def part(self, number: float) -> float:
        """Which part of so many in the spans touched is thought to be in scope.

        Of places, as many as of space. In a part of the time one is seen that has rows there: whoever has many rows is
        seen almost surely.
        """
        each = 1.0 if self.rows is None else max(self.rows / max(number, 1.0), 1.0)
        return float(1.0 - (1.0 - self.share) ** each)


def _by_group(runs: Runs) -> list[Integers]:
    """The positions of every group."""
    positions = picked(runs.positions, np.arange(runs.parts))
    return np.split(positions, np.cumsum(np.bincount(runs.groups, minlength=runs.size))[:-1])


def _shares(grouping: Grouping) -> NDArray[np.float64]:
    """How much of the spans that are cut is thought to be in scope, in the mean of each group."""
    groups, share = grouping.groups.cut.groups, grouping.groups.fraction
    count = np.bincount(groups, minlength=grouping.size)
    return np.bincount(groups, share, grouping.size) / np.maximum(count, 1)


def _values(counts: list[Count]) -> Values:
    """Whole numbers of entities, with intervals at 95%."""
    estimate, low, high = (np.array([getattr(each, side) for each in counts]) for side in ("estimate", "low", "high"))
    low, high = np.ceil(low - 1e-6).astype(np.int64), np.floor(high + 1e-6).astype(np.int64)
    middle = np.clip(np.round(estimate).astype(np.int64), low, np.maximum(high, low))
    return Values(middle, low, np.maximum(high, low), np.full(len(counts), P95, np.int8))


# --- several scopes ---------------------------------------------------------------------------------------------------


def _in_common(members: Opened, sides: list[_Side]) -> tuple[Count, Count]:
    """Entities in all scopes: of the spans inside at least, of those touched at most."""

    def shared(which: Literal[0, 1]) -> Count:
        both = theta_intersection()
        for side in sides:
            both.update(members.sample_of(side[which]))
        return Count.of_sample(both.get_result())

    return shared(0), shared(1)


def _in_first(members: Opened, sides: list[_Side]) -> tuple[Count, Count]:
    """Entities in the first scope and none of the others."""

    def rest(which: Literal[0, 1]) -> Count:
        here = members.sample_of(sides[0][which])
        others = [side.inside if which else side.touched for side in sides[1:]]
        there = members.sample_of(np.unique(np.concatenate(others)))
        return Count.of_sample(theta_a_not_b().compute(here, there))

    return rest(0), rest(1)


def _between(least: Count, most: Count) -> Count:
    return Count((least.estimate + most.estimate) / 2, min(least.low, most.low), max(least.high, most.high))


# --- keys within keys -------------------------------------------------------------------------------------------------


def _is_finer(own: Keyed, outer: Keyed) -> bool:
    """Whether a key that is counted tells the group's key: cells within cells, days within months."""
    if isinstance(own, CellKey) and isinstance(outer, CellKey):
        return own.length >= outer.length
    if isinstance(own, BucketKey) and isinstance(outer, BucketKey):
        return own.zone == outer.zone and Bucket.parse(outer.span).encloses(Bucket.parse(own.span))
    return own == outer


def _are_alike(one: Keyed, other: Keyed) -> bool:
    """Whether a question can have only one of two keys."""
    same_feature = isinstance(one, Binned) and isinstance(other, Binned) and one.feature == other.feature
    return same_feature or (type(one) is type(other) and not isinstance(one, Binned))


def _within(found: Found, outer: Keyed) -> Integers:
    """The group's key of every group that is counted."""
    if outer in found.keys:
        return found.keys[outer]
    own = next(key for key in found.keys if _is_finer(key, outer))
    if isinstance(own, CellKey) and isinstance(outer, CellKey):
        step = geohash.BITS_PER_CHARACTER
        return geohash.parents(found.keys[own], own.length * step, outer.length * step)
    assert isinstance(own, BucketKey)
    assert isinstance(outer, BucketKey)
    return Bucket.parse(own.span).coarsen(found.keys[own], Bucket.parse(outer.span))


def _without(found: Found) -> NDArray[np.bool_]:
    """Which groups are those of rows that lack a feature: they have no bin."""
    lacking = np.zeros(found.size, np.bool_)
    for low, _ in found.binned.values():
        lacking |= np.isnan(low)
    return lacking
