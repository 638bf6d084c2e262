"""Straight: a plain question to a summary, from its words to its values without a stop.

Most questions ask for statistics of one feature, perhaps its correlation with another, of all rows of one part of space
and time. What `paths`, `pieces` and `telling` do for groups and parts of any kind, step by step, comes down to one call
of machine code for these (`followed`). A **route** holds what hangs on the question alone, so that a question that
comes again costs this call and little more. Most routes are found at a `glance`, others from the tree of the question.
It puts together what the others call one by one, so answers are the same, bit by bit; whatever is not so plain, or has
no path that tells, is left to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from synopsis.core.errors import NotKept, SynopsisError
from synopsis.core.hashing import Itself
from synopsis.query.answer import Answer
from synopsis.query.binding import Statistic, bind
from synopsis.query.bins import is_beyond
from synopsis.query.finish import Found
from synopsis.query.glance import Held, Seen, named, seen
from synopsis.query.histograms import fine_bins
from synopsis.query.meetings import FEW, sharpened
from synopsis.query.opened import Places, days_of, held, places_of
from synopsis.query.pieces import nothing
from synopsis.query.predicates import positive
from synopsis.query.programs import demands_of
from synopsis.query.quick import column_of
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
from synopsis.sketch.spells import slowed_end
from synopsis.sketch.strata import EVER
from synopsis.sketch.summary import Summary

if TYPE_CHECKING:
    from synopsis.query import followed, leaves, told
else:
    followed, leaves, told = (Later(f"synopsis.query.{name}") for name in ("followed", "leaves", "told"))

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
    text: str
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
    features = named(layout.features)

    @lru_cache(maxsize=_REMEMBERED)
    def statistic(column: str) -> Statistic | None:
        """What a column asks for, where it is a statistic; who knows nothing of it leaves it to be refused."""
        item = column_of(column)
        try:
            source = None if item is None else bind(Question((item,)), layout).columns[0][1]
        except SynopsisError:
            return None
        return source if isinstance(source, Statistic) and source.only is None else None

    @lru_cache(maxsize=_REMEMBERED)
    def heading(columns: tuple[str, ...]) -> Heading | None:
        asked = [each for column in columns if (each := statistic(column)) is not None]
        return None if len(asked) < len(columns) else Heading.of(columns, asked)

    @lru_cache(maxsize=_REMEMBERED)
    def route(text: str) -> Route | None:
        if ground is None:
            return None
        glanced = seen(text, features)
        own = None if glanced is None else heading(glanced.columns)
        if glanced is not None and own is not None:
            return _glanced(own, glanced, text, ground, summary, layout)
        return _found(text, ground, summary, layout)

    return route


def _glanced(heading: Heading, seen: Seen, text: str, ground: Ground, summary: Summary, layout: Layout) -> Route:
    """The route of a question that a glance took in. Cost: in proportion to its conditions."""
    feature, other = heading.topic.feature, heading.topic.other
    asked: tuple[Any, ...] = (*_laid_open(seen.leaves), feature, other, *ground.axes)
    clause, demands = leaves.laid_out(*asked)
    kind = (told.ANYTHING, told.LEAF)[len(seen.leaves)] if len(seen.leaves) < 2 else told.OTHER
    where = (ground.places, seen.prefixes, seen.shapes)
    named_features = {each[0] for each in seen.leaves}
    given = (where, (seen.begin, seen.end), named_features, (kind, *clause), demands)
    return _route(heading, *given, text, ground, summary, layout)


def _laid_open(leaves: tuple[Held, ...]) -> tuple[Any, ...]:
    """Leaves as machine code takes them."""
    features, nulls, offset = list[int](), list[bool](), [0]
    ranges, beyond = list[tuple[float, float]](), list[tuple[bool, bool]]()
    for feature, own, may_be_absent in leaves:
        features.append(feature)
        nulls.append(may_be_absent)
        ranges += own
        beyond += [(is_beyond(low), is_beyond(-high)) for low, high in own]
        offset.append(len(ranges))
    return (
        np.array(features, np.int64),
        np.array(nulls, np.bool_),
        np.array(offset, np.int64),
        np.array(ranges, np.float64).reshape(-1, 2),
        np.array(beyond, np.bool_).reshape(-1, 2),
    )


def _found(text: str, ground: Ground, summary: Summary, layout: Layout) -> Route | None:
    """The route of a question, from its tree."""
    asked = question_of(text)
    if not isinstance(asked, Question) or asked.groups or asked.order or asked.having is not None:
        return None
    if asked.sketch is not None or asked.limit is not None:
        return None
    heading = _heading(Itself(asked.items), layout)
    try:
        part = None if heading is None else _only_part(asked.scope, layout)
    except NotKept:  # a threshold, which is asked for by itself
        return None
    if heading is None or part is None:
        return None
    begin, end, clause = part.scope.from_us, part.scope.until_us, positive(part.condition)
    if begin is not None and end is not None and begin >= end:
        return None
    known = clause_of(ground.same, clause, heading.topic.feature, heading.topic.other)
    demands = tuple(demands_of(clause, heading.topic.feature))
    where = (ground.places, part.scope.prefixes, part.scope.shapes)
    given = (where, (begin, end), part.features, known, demands)
    return _route(heading, *given, text, ground, summary, layout)


def _only_part(scope: Condition, layout: Layout) -> Part | None:
    """The part of space and time that a condition asks for; None where there are several."""
    part = part_of(scope, layout)
    parts = parts_of(where_of(scope, layout)) if part is None else (part,)
    return parts[0] if len(parts) == 1 else None


class Heading(NamedTuple):
    """What the columns of a plain question ask for."""

    columns: tuple[tuple[str, int, bool], ...]
    topic: Topic

    @classmethod
    def of(cls, names: Iterable[str], asked: Sequence[Statistic]) -> Heading | None:
        """That of columns by name, where machine code tells them all at once."""
        statistics = tuple(dict.fromkeys(asked))
        topic = topic_of(statistics)
        if topic is None or len(topic.statistics) != len(statistics):
            return None
        position = {each: at for at, each in enumerate(topic.statistics)}
        named = zip(names, asked, strict=True)
        return cls(tuple((name, position[each], each.function == "count") for name, each in named), topic)

    @property
    def features(self) -> tuple[int, ...]:
        """All that statistics are of."""
        return (self.topic.feature,) if self.topic.other < 0 else (self.topic.feature, self.topic.other)


@lru_cache(maxsize=_REMEMBERED)
def _heading(items: Itself[tuple[Item, ...]], layout: Layout) -> Heading | None:
    """What these columns ask for, where machine code tells it all at once."""
    asked = bind(Question(items.value), layout)
    columns = [(name, source) for name, source in asked.columns if isinstance(source, Statistic) and not source.only]
    if len(columns) < len(asked.columns) or not columns:
        return None
    return Heading.of(*zip(*columns, strict=True))


class Ground(NamedTuple):
    """What hangs on the sketch alone."""

    same: Itself[Scales]
    places: Places
    axes: tuple[Any, ...]
    fine_bins: tuple[Any, ...]
    rhythm: tuple[Any, ...]
    hours: tuple[int, np.uint64]
    plain_levels: tuple[Any, ...]  #: where stretches tell nothing
    levels: tuple[Any, ...]
    widened: frozenset[int]  #: features of which paths are no ground for intervals at 95%

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
            summary.layout.hours or (0, np.uint64(0)),
            (*levels_of(same, None), effects),
            (*levels_of(same, summary.layout.stretching), effects),
            frozenset(filter(summary.scales.is_widened, range(len(summary.scales.quantizers)))),
        )


def _route(
    heading: Heading,
    where: tuple[Places, tuple[str, ...] | None, tuple[Region, ...]],
    span: tuple[int | None, int | None],
    named: Iterable[int],
    clause: tuple[Any, ...],
    demands: tuple[Any, ...],
    text: str,
    ground: Ground,
    summary: Summary,
    layout: Layout,
) -> Route:
    """The route to what is asked of one part of space and time, under a condition on the named features."""
    topic, (begin, end) = heading.topic, span
    # Stretches tell nothing of rows that fulfil a condition.
    is_free = clause[0] == told.ANYTHING
    stretching = summary.layout.stretching if is_free else None
    features, spell = sorted({*named, *heading.features}), summary.layout.spell
    of_stretches = {} if stretching is None else {topic.feature: stretching.days[topic.feature]}
    wanted = summary.shelf.wanted(features, [of_stretches.get(each, 0) for each in features])
    likely = ground.widened.isdisjoint(features)
    return Route(
        heading.columns,
        topic,
        where,
        wanted,
        days_of(layout, begin, end, spell),
        (-EVER if begin is None else slowed_end(begin, spell), EVER if end is None else slowed_end(end, spell)),
        (
            (topic.wanted, topic.shares, likely, *clause, *ground.axes, wanted.positions),
            ground.rhythm,
            ground.hours,
            ground.plain_levels if stretching is None else ground.levels,
            demands,
            ground.fine_bins,
        ),
        text,
        layout,
        not is_free,
        # Counts of bins, which tell how lucky paths in scope are, know nothing of several features at once.
        clause[0] == told.OTHER,
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
    asked = question_of(route.text)
    assert isinstance(asked, Question)
    found = sharpened(Found(1, {}, values), bind(asked, route.layout), summary, route.layout)
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
