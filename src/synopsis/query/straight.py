"""Straight: a plain question to a summary, from its words to its values without a stop.

Most questions ask for statistics of one feature, perhaps its correlation with another, of all rows of one part of space
and time. What `paths`, `pieces` and `telling` do for groups and parts of any kind, step by step, comes down to six
calls of machine code for these. A **route** holds what hangs on the question alone, so that a question that comes again
costs these calls and little more. The calls are those that the others make, so answers are the same, bit by bit;
whatever is not so plain, or has no path that tells, is left to them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from synopsis.core.errors import NotKept
from synopsis.core.hashing import Itself
from synopsis.query.answer import Answer, Column
from synopsis.query.binding import Statistic, bind
from synopsis.query.histograms import fine_bins
from synopsis.query.meetings import FEW
from synopsis.query.opened import Places, days_of, held, places_of
from synopsis.query.pieces import nothing
from synopsis.query.predicates import EVERYTHING, positive
from synopsis.query.programs import Demands, demands_of
from synopsis.query.regions import Region
from synopsis.query.relation import Relation
from synopsis.query.sampled import NONE, NOWHERE, effects_of
from synopsis.query.scoping import Part, part_of
from synopsis.query.spelling import question_of
from synopsis.query.telling import Topic, axes_of, clause_of, levels_of, topic_of
from synopsis.query.tree import And, Item, Question
from synopsis.query.values import Values
from synopsis.sketch.compiled import Later
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Floats
from synopsis.sketch.scales import Scales
from synopsis.sketch.shelf import Wanted
from synopsis.sketch.strata import EVER
from synopsis.sketch.summary import Summary

if TYPE_CHECKING:
    from synopsis.query import arrangements, settled, told, weighing
else:
    arrangements, settled, told, weighing = (
        Later(f"synopsis.query.{name}") for name in ("arrangements", "settled", "told", "weighing")
    )

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
    told: tuple[Any, ...]  #: statistics, clause, mass axes and features, in the order in which `told` takes them
    rhythm: tuple[Any, ...]  #: whether paths come at even steps of time, and at which pace rows do
    levels: tuple[Any, ...]  #: of stretches, and effects of the choice of paths
    demands: Demands
    fine_bins: tuple[Any, ...]
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
            part = None if heading is None else part_of(asked.scope, layout)
        except NotKept:  # a threshold, which is asked for by itself
            return None
        return None if heading is None or part is None else route_of(heading, part, ground, summary, layout)

    return route


class Heading(NamedTuple):
    """What the columns of a plain question ask for."""

    columns: tuple[tuple[str, int, bool], ...]
    topic: Topic
    features: frozenset[int]


@lru_cache(maxsize=_REMEMBERED)
def _heading(items: Itself[tuple[Item, ...]], layout: Layout) -> Heading | None:
    """What these columns ask for, where machine code tells it all at once."""
    asked = bind(Question(items.value), layout)
    columns = [(name, source) for name, source in asked.columns if isinstance(source, Statistic) and not source.only]
    topic = topic_of(asked.statistics)
    if len(columns) < len(asked.columns) or topic is None or len(topic.statistics) != len(asked.statistics):
        return None
    position = {each: at for at, each in enumerate(topic.statistics)}
    return Heading(
        tuple((name, position[each], each.function == "count") for name, each in columns), topic, asked.features
    )


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
    features, clause = sorted(part.features | heading.features), positive(part.condition)
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
        (topic.wanted, topic.shares, likely, *known, *ground.axes, wanted.positions),
        ground.rhythm,
        ground.plain_levels if stretching is None else ground.levels,
        demands_of(clause, topic.feature),
        ground.fine_bins,
        not is_free,
        # Counts of bins, which tell how lucky paths in scope are, know nothing of several features at once.
        known[0] == told.OTHER,
    )


def _followed(route: Route, summary: Summary) -> Answer | None:
    """The answer that a route leads to."""
    topic, chosen = route.topic, held(*route.where)
    strata = summary.shelf.decoded(route.wanted, chosen, *route.days, route.in_scope_only)
    if strata is None:
        return Answer({name: nothing(topic.statistics[at], 1) for name, at, _ in route.columns})
    (
        _, starts, ends, counts, tilt, run_offset, run_place, run_first, run_days, _,
        day_rows, day_kept, codes, day_offset, ordinal, stretches, stretch_offset, stretch_shift, stretch_count,
    ) = strata  # fmt: skip
    slots, rows, offset, (in_scope, days_cut), day, share, whole_scope, place = weighing.all_in_scope(
        run_offset, run_place, run_first, run_days, day_offset, day_rows, day_kept, chosen, *route.span_us
    )
    stratum, total, kept, inside, cut, begin, end = slots
    given: tuple[Any, ...] = (
        *(*route.told, starts, ends, tilt, counts, codes),
        *(ordinal, day_offset, day_rows, day_kept, place, *route.rhythm),
        *(day, share, whole_scope, NONE, NOWHERE),
        *(stratum, total, kept, begin, end, rows, offset, in_scope, days_cut),
        *(stretches, stretch_offset, stretch_shift, stretch_count, *route.levels),
    )
    is_heard, found = told.tell(*given)
    if not is_heard:
        return None
    exact = (starts, ends, counts, route.wanted.positions, stratum, total, inside, cut, *route.fine_bins)
    all_rows, facts, sides = arrangements.selected(*route.demands, *exact)
    numbers, promised = settled.settled(topic.settling, found, topic.shares_of, all_rows, facts, *sides)
    if route.unmet:
        for _, at, is_whole in route.columns:
            if is_whole and int(numbers[at, 1]) == 0 and int(numbers[at, 0]) <= FEW and int(numbers[at, 2]) > 0:
                return None  # meetings may yet deny them
    return Answer(partial(_columns, route.columns, numbers, promised))


def _columns(
    asked: tuple[tuple[str, int, bool], ...], numbers: Floats, promised: NDArray[np.int8]
) -> dict[str, Column]:
    """The columns of an answer, when someone looks at them."""
    found: dict[str, Column] = {}
    for name, at, is_whole in asked:
        own = numbers[at, :3].astype(np.int64) if is_whole else numbers[at]
        found[name] = Values(own[:1], own[1:2], own[2:3], promised[at : at + 1], numbers[at : at + 1, 3:])
    return found
