"""Straight: a plain question to a summary, from its words to its values without a stop.

Most questions ask for statistics of one feature, perhaps its correlation with another, of all rows of one part of space
and time. What `paths`, `pieces` and `telling` do for groups and parts of any kind, step by step, comes down to one call
of machine code for these (`followed`). A **route** holds what hangs on the question alone, so that a question that
comes again costs this call and little more. It puts together what the others call one by one, so answers are the same,
bit by bit; whatever is not so plain, or has no path that tells, is left to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from synopsis.core.errors import NotKept
from synopsis.core.hashing import Itself
from synopsis.query.answer import Answer
from synopsis.query.binding import Plan, Statistic, bind
from synopsis.query.finish import Found
from synopsis.query.histograms import fine_bins
from synopsis.query.meetings import FEW, sharpened
from synopsis.query.opened import Places, days_of, held, places_of
from synopsis.query.pieces import nothing
from synopsis.query.predicates import EVERYTHING, positive
from synopsis.query.programs import demands_of
from synopsis.query.regions import Region
from synopsis.query.relation import Relation
from synopsis.query.sampled import effects_of
from synopsis.query.scoping import Part, part_of, parts_of, where_of
from synopsis.query.spelling import question_of
from synopsis.query.telling import Topic, axes_of, clause_of, levels_of, topic_of
from synopsis.query.tree import And, Condition, Item, Question
from synopsis.query.values import Values
from synopsis.sketch.compiled import Later
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Floats
from synopsis.sketch.scales import Scales
from synopsis.sketch.shelf import Wanted
from synopsis.sketch.strata import EVER
from synopsis.sketch.summary import Summary

if TYPE_CHECKING:
    from synopsis.query import followed, told
else:
    followed, told = (Later(f"synopsis.query.{name}") for name in ("followed", "told"))

#: Routes that are remembered of a sketch, a few kilobytes each.
_REMEMBERED: Final = 512


class Route(NamedTuple):
    """What a plain question asks of a summary."""

    columns: tuple[tuple[str, int, bool], ...]  #: name, which statistic of the topic, and whether it is whole rows
    topic: Topic
    where: tuple[Places, tuple[str, ...] | None, tuple[Region, ...]]  #: which places are in scope
    wanted: Wanted
    days: tuple[int, int]  #: the first and the last with an instant in scope
    span_us: tuple[int, int]
    given: tuple[tuple[Any, ...], ...]  #: what `followed` takes of the question, from what is asked to the fine bins
    asked: Plan  #: what the columns ask for, of no part yet
    part: Part
    layout: Layout
    unmet: bool  #: whether meetings may know better how many rows there are
    in_scope_only: bool  #: whether no path tells anything but those in scope


#: Routes by sketch; they go with it.
_ROUTES: Final[WeakKeyDictionary[Relation, Callable[[str], Route | None]]] = WeakKeyDictionary()


def answered(relation: Relation, text: str) -> Answer | None:
    """The answer to a plain question; None where it is not plain, or needs more than paths and counts tell at once.

    Cost: proportional to the paths of the strata in scope.
    """
    summary = relation.summary
    if summary is None:
        return None
    known = _ROUTES.get(relation)
    if known is None:
        known = _ROUTES[relation] = _routes(summary, relation.layout, relation.where == And())
    route = known(text)
    return None if route is None else _followed(route, summary)


def _routes(summary: Summary, layout: Layout, whole: bool) -> Callable[[str], Route | None]:
    """Who finds routes in a sketch, and remembers them; a part of one that is under a condition has none."""
    plain = whole and not summary.layout.moving and layout.timezone == "UTC"
    ground = Ground.of(summary) if plain else None

    @lru_cache(maxsize=_REMEMBERED)
    def route(text: str) -> Route | None:
        asked = question_of(text) if ground is not None else None
        if not isinstance(asked, Question) or asked.groups or asked.order or asked.having is not None:
            return None
        if asked.sketch is not None or asked.limit is not None or ground is None:
            return None
        heading = _heading(Itself(asked.items), layout)
        try:
            part = None if heading is None else _only_part(asked.scope, layout)
        except NotKept:  # a threshold, which is asked for by itself
            return None
        return None if heading is None or part is None else route_of(heading, part, ground, summary, layout)

    return route


def _only_part(scope: Condition, layout: Layout) -> Part | None:
    """The part of space and time that a condition asks for; None where there are several."""
    part = part_of(scope, layout)
    parts = parts_of(where_of(scope, layout)) if part is None else (part,)
    return parts[0] if len(parts) == 1 else None


class Heading(NamedTuple):
    """What the columns of a plain question ask for."""

    columns: tuple[tuple[str, int, bool], ...]
    topic: Topic
    asked: Plan  #: of no part yet


@lru_cache(maxsize=_REMEMBERED)
def _heading(items: Itself[tuple[Item, ...]], layout: Layout) -> Heading | None:
    """What these columns ask for, where machine code tells it all at once."""
    asked = bind(Question(items.value), layout)
    columns = [(name, source) for name, source in asked.columns if isinstance(source, Statistic) and not source.only]
    topic = topic_of(asked.statistics)
    if len(columns) < len(asked.columns) or topic is None or len(topic.statistics) != len(asked.statistics):
        return None
    position = {each: at for at, each in enumerate(topic.statistics)}
    return Heading(tuple((name, position[each], each.function == "count") for name, each in columns), topic, asked)


class Ground(NamedTuple):
    """What hangs on the sketch alone."""

    same: Itself[Scales]
    places: Places
    axes: tuple[Any, ...]
    fine_bins: tuple[Any, ...]
    rhythm: tuple[Any, ...]
    plain_levels: tuple[Any, ...]  #: where stretches tell nothing
    levels: tuple[Any, ...]

    @classmethod
    def of(cls, summary: Summary) -> Ground:
        """The ground of a summary."""
        same, effects = Itself(summary.scales), effects_of(summary.effects, len(summary.scales.quantizers))
        return cls(
            same,
            places_of(summary),
            axes_of(same),
            fine_bins(same),
            (summary.layout.even, summary.layout.pace),
            (*levels_of(same, None), effects),
            (*levels_of(same, summary.layout.stretching), effects),
        )


def route_of(heading: Heading, part: Part, ground: Ground, summary: Summary, layout: Layout) -> Route | None:
    """The route to what is asked of one part of space and time. Cost: in proportion to its conditions."""
    topic, begin, end = heading.topic, part.scope.from_us, part.scope.until_us
    if begin is not None and end is not None and begin >= end:
        return None
    # Stretches tell nothing of rows that fulfil a condition.
    is_free = part.condition == EVERYTHING
    stretching = summary.layout.stretching if is_free else None
    features, clause = sorted(part.features | heading.asked.features), positive(part.condition)
    of_stretches = {} if stretching is None else {topic.feature: stretching.days[topic.feature]}
    wanted = summary.shelf.wanted(features, [of_stretches.get(each, 0) for each in features])
    known = clause_of(ground.same, clause, topic.feature, topic.other)
    # Of features that are widened paths are no ground for intervals at 95%.
    likely = not any(summary.scales.is_widened(feature) for feature in wanted.features)
    return Route(
        heading.columns,
        topic,
        (ground.places, part.scope.prefixes, part.scope.shapes),
        wanted,
        days_of(layout, begin, end),
        (-EVER if begin is None else begin, EVER if end is None else end),
        (
            (topic.wanted, topic.shares, likely, *known, *ground.axes, wanted.positions),
            ground.rhythm,
            ground.plain_levels if stretching is None else ground.levels,
            tuple(demands_of(clause, topic.feature)),
            ground.fine_bins,
        ),
        heading.asked,
        part,
        layout,
        not is_free,
        # Counts of bins, which tell how lucky paths in scope are, know nothing of several features at once.
        known[0] == told.OTHER,
    )


def _followed(route: Route, summary: Summary) -> Answer | None:
    """The answer that a route leads to."""
    topic, chosen = route.topic, held(*route.where)
    blocks = summary.shelf.given(route.wanted, chosen, *route.days, route.in_scope_only)
    outcome = followed.EMPTY
    if blocks is not None:
        of_columns = (route.wanted.positions, topic.settling, topic.shares_of)
        given: tuple[Any, ...] = (blocks, chosen, route.span_us, *route.given, *of_columns)
        outcome, numbers, promised = followed.followed(*given)
    if outcome == followed.EMPTY:
        return Answer({name: nothing(topic.statistics[at], 1) for name, at, _ in route.columns})
    if outcome == followed.UNHEARD:
        return None
    if route.unmet and any(is_whole and _may_be_none(numbers[at]) for _, at, is_whole in route.columns):
        return _met(route, summary, numbers, promised)
    return Answer(partial(_columns, route.columns, numbers, promised))


def _may_be_none(count: Floats) -> bool:
    """Whether a count is of few rows, of which there may be none."""
    return int(count[1]) == 0 and int(count[0]) <= FEW and int(count[2]) > 0


def _met(route: Route, summary: Summary, numbers: Floats, promised: NDArray[np.int8]) -> Answer:
    """The answer where meetings may know better how many rows there are."""
    statistics, own = route.topic.statistics, _columns(route.columns, numbers, promised)
    values: dict[Statistic, Values] = {statistics[at]: own[name] for name, at, _ in route.columns}
    found = sharpened(Found(1, {}, values), replace(route.asked, parts=(route.part,)), summary, route.layout)
    return Answer({name: found.values[statistics[at]] for name, at, _ in route.columns})


def _columns(
    asked: tuple[tuple[str, int, bool], ...], numbers: Floats, promised: NDArray[np.int8]
) -> dict[str, Values]:
    """The columns of an answer, when someone looks at them."""
    found: dict[str, Values] = {}
    for name, at, is_whole in asked:
        own = numbers[at, :3].astype(np.int64) if is_whole else numbers[at]
        found[name] = Values(own[:1], own[1:2], own[2:3], promised[at : at + 1], numbers[at : at + 1, 3:])
    return found
