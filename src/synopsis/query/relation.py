"""Relations: a sketch, or a part of one, as questions see it; parts are selected and merged.

A selection takes the strands or strata that its condition touches, and the features that it names. What it touches only
in part it cannot cut: so the condition goes with the part, and every question put to it is answered under that
condition, with the intervals that this has. `cut="keep"` takes what is touched whole and `cut="drop"` leaves it out,
which makes a sketch without a condition on places and times, one that merges with others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from synopsis.core.errors import BadQuery, NotKept
from synopsis.query.binding import Plan, bind
from synopsis.query.opened import Opened, days_of
from synopsis.query.runs import picked
from synopsis.query.scope import select
from synopsis.query.scoping import feature_of, on_features
from synopsis.query.thresholds import thresholds
from synopsis.query.tree import EVERYTHING, Aggregate, And, Condition, Item, Question, Selection
from synopsis.sketch.layout import Layout
from synopsis.sketch.members import Members
from synopsis.sketch.strands import Strands
from synopsis.sketch.summary import WHEREABOUTS, Summary

CUTS = (None, "keep", "drop")


@dataclass(frozen=True, eq=False)
class Relation:
    """Strands or a summary, and the condition that goes with every question."""

    strands: Strands
    summary: Summary | None = None
    where: Condition = EVERYTHING
    members: Members | None = None  #: who was where and when, of the whole

    @property
    def layout(self) -> Layout:
        """Its features, grain and zone."""
        return self.strands.layout

    @property
    def rows(self) -> int:
        """How many rows its strands or strata count, whatever its condition leaves of them."""
        return int(self.strands.rows.sum()) if self.summary is None else self.summary.rows

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in memory."""
        own = self.strands.nbytes if self.summary is None else self.summary.nbytes
        return own + (0 if self.members is None else self.members.nbytes)


def under(where: Condition, condition: Condition) -> Condition:
    """Both conditions."""
    if where == And():
        return condition
    return where if condition == And() else And((where, condition))


def check_numbers(condition: Condition) -> None:
    """Refuse statistics to compare with where no question is answered."""
    if thresholds(condition):
        raise BadQuery("statistics to compare with stand in questions of statistics; compare with a number here")


def selected(whole: Relation, asked: Selection, cut: str | None = None) -> Relation:
    """A part of a relation. Cost: proportional to the strands in scope, or to the strata in it."""
    if cut not in CUTS:
        raise BadQuery(f"cut is 'keep' or 'drop', or None, not {cut!r}")
    check_numbers(asked.scope)
    layout, where = whole.layout, under(whole.where, asked.scope)
    features = tuple(sorted({feature_of(name, layout) for name in asked.features})) or tuple(
        range(len(layout.features))
    )
    plan = bind(Question((Item("rows", Aggregate("count")),), where), layout)
    named = [feature_of(part.name, layout) for part in on_features(where, layout)]
    if whole.summary is None:
        if plan.has_conditions:
            raise NotKept(
                "conditions on features need paths, which this sketch does not keep: select by place and time"
            )
        strands, is_whole = _of_strands(whole.strands, plan, cut)
        members, is_free = _of_members(whole.members, plan, is_whole, cut)
        return Relation(strands.of_features(features), None, And() if is_free else where, members)
    features = tuple(sorted({*features, *named}))  # a condition goes with its features
    summary, is_whole = _of_summary(whole.summary, layout, plan, features, cut)
    narrow = replace(layout, features=tuple(layout.features[at] for at in features))
    members, is_free = _of_members(whole.members, plan, is_whole, cut)
    if is_free:
        where = _of_features(where, layout)
    return Relation(Strands.empty(narrow), summary, where, members)


def merged(one: Relation, other: Relation) -> Relation:
    """Both together: rows that are in both count twice, as in any sum of sketches."""
    if one.where != other.where:
        raise BadQuery(
            "these parts of sketches are under different conditions, which cannot be kept in one; "
            "select them with cut='keep' or cut='drop', or ask both by a JOIN"
        )
    if (one.summary is None) != (other.summary is None):
        raise BadQuery("one of these sketches keeps strands and the other paths; build both with the same spec")
    if one.layout.features != other.layout.features or one.layout.timezone != other.layout.timezone:
        raise BadQuery("these sketches have different features or zones; select the same features of both")
    members = None if one.members is None or other.members is None else one.members + other.members
    if one.summary is None or other.summary is None:
        if one.layout != other.layout:
            raise BadQuery(f"strands of {one.layout.grain} and {other.layout.grain} do not add; build both alike")
        return Relation(one.strands + other.strands, None, one.where, members)
    if not one.summary.adds_to(other.summary):
        raise BadQuery(
            "paths add up only within one layout: these were built apart; build the second into the first, "
            "with syn.build(..., to=...), or ask both by a JOIN"
        )
    return Relation(one.strands, one.summary.beside(other.summary), one.where, members)


def _of_features(where: Condition, layout: Layout) -> Condition:
    """What the ANDs of a condition say of features alone."""
    parts = where.conditions if isinstance(where, And) else (where,)
    kept = []
    for part in parts:
        if isinstance(part, And):
            part = _of_features(part, layout)
            if part == And():
                continue
        elif next(on_features(part, layout), None) is None:
            continue
        kept.append(part)
    return kept[0] if len(kept) == 1 else And(tuple(kept))


def _of_strands(strands: Strands, plan: Plan, cut: str | None) -> tuple[Strands, bool]:
    """The strands in scope, and whether they lie in it whole."""
    inside, touched = (np.zeros(len(strands), np.bool_) for _ in range(2))
    for part in plan.parts:
        found = select(part.scope, strands)
        inside[found.inside] = True
        touched[found.inside] = touched[found.cut] = True
    chosen = inside if cut == "drop" else touched
    return strands.take(chosen), bool((inside == touched).all())


def _of_members(members: Members | None, plan: Plan, is_whole: bool, cut: str | None) -> tuple[Members | None, bool]:
    """The members in scope, and whether the part is free of a condition on places and times.

    Those of whole spans stay without one. Where the scope cuts a span, all stay and so does the condition; `cut` leaves
    no condition, and then nobody knows who was in the rest of that span.
    """
    is_free = is_whole or cut is not None
    if members is None or not is_free:
        return members, is_free
    found = [select(part.scope, members.spans) for part in plan.parts]
    if any(each.cut.size for each in found):
        return (None, True) if cut else (members, False)
    inside = np.unique(np.concatenate([picked(each.inside, np.arange(each.inside_size)) for each in found]))
    return members.take(inside), True


def _of_summary(
    summary: Summary, layout: Layout, plan: Plan, features: tuple[int, ...], cut: str | None
) -> tuple[Summary, bool]:
    """The strata in scope with some of their features, and whether they lie in it whole."""
    first = len(layout.features)
    columns = (*features, *(range(first, first + WHEREABOUTS) if summary.layout.moving else ()))
    parts = [Opened.around(summary, layout, part.scope) for part in plan.parts]
    spell = summary.layout.spell
    spans = [days_of(layout, part.begin_us, part.end_us, spell) for part in parts]
    chosen = np.logical_or.reduce([part.chosen for part in parts])
    strata = summary.opened_within(columns, chosen, min(first for first, _ in spans), max(last for _, last in spans))
    if strata is None:
        return summary.of_strata((), columns), True
    opened = (replace(part, strata=strata, features=columns) for part in parts)
    share = np.sum([part.covered(part.begin_us, part.end_us).share for part in opened], axis=0)
    rows, reached, touched = (
        np.add.reduceat(strata.day_rows * is_meant, strata.day_offset[:-1])
        for is_meant in (True, share >= 1.0, share > 0.0)
    )
    is_whole = rows == reached
    kept = is_whole if cut == "drop" else touched > 0
    of_kept = summary.of_strata((strata.take(kept),) if kept.any() else (), columns)
    return of_kept, bool(is_whole[touched > 0].all())
