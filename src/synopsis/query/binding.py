"""Binding: a question meets a layout and becomes a plan, in which names are positions and times are instants.

The WHERE clause is parted in two: what its ANDs say of place and time is the scope, and all the rest is a condition on
features. An OR or a NOT can therefore hold features only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final

from synopsis.core.errors import BadQuery, NotKept, UnknownFeature, nearest
from synopsis.grid.zones import Zone
from synopsis.query import predicates, tree
from synopsis.query.naming import find
from synopsis.query.predicates import EVERYTHING
from synopsis.query.shapes import Box, Circle, Polygon, Shape, together
from synopsis.query.spelling import question_of
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    BucketKey,
    CellKey,
    Condition,
    Expression,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    GroupIs,
    InBox,
    InCells,
    Key,
    Name,
    Near,
    Not,
    Number,
    OnFeature,
    Or,
    Place,
    Placed,
    Question,
    TimeIs,
    Within,
)
from synopsis.sketch.layout import Layout

#: Words for the coordinates of a position, and whether each is a latitude.
_COORDINATES: Final = {"lat": True, "latitude": True, "lon": False, "longitude": False}


@dataclass(frozen=True, slots=True)
class Statistic(Placed):
    """A function and the positions of its features in the layout, ascending."""

    function: str
    features: tuple[int, ...] = ()
    share: float | None = None  #: of a quantile: how much of the rows lies below it, 0 to 1


@dataclass(frozen=True, slots=True)
class Computed:
    """One of + - * / of statistics and numbers."""

    operator: str
    left: Operand
    right: Operand


Operand = Statistic | Computed | float
Source = Statistic | Computed | CellKey | BucketKey


@dataclass(frozen=True, slots=True)
class Compared:
    """Numbers of a group compared."""

    left: Operand
    comparison: str
    right: Operand


@dataclass(frozen=True, slots=True)
class Every:
    """All of these hold."""

    conditions: tuple[Having, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Any of these holds."""

    conditions: tuple[Having, ...]


@dataclass(frozen=True, slots=True)
class Fails:
    """The condition is false."""

    condition: Having


Having = Compared | Every | Some | Fails


@dataclass(frozen=True, slots=True)
class Scope:
    """Which part of space and time is asked for."""

    prefixes: tuple[str, ...] | None = None  #: geohashes of which none holds another; None: everywhere
    from_us: int | None = None  #: the first instant that counts
    until_us: int | None = None  #: the first instant that counts no more
    shapes: tuple[Shape, ...] = ()  #: all of which hold the positions that count


@dataclass(frozen=True)
class Plan:
    """A question bound to a layout."""

    columns: tuple[tuple[str, Source], ...]  #: name of each and where it comes from
    scope: Scope
    groups: tuple[Key, ...]
    order: tuple[tuple[Source, bool], ...]  #: what to sort by, and whether descending
    limit: int | None
    condition: predicates.Condition = EVERYTHING  #: an And of all that WHERE says of features
    condition_place: Place | None = field(default=None, compare=False, repr=False)  #: of its first part
    having: Having | None = None  #: which groups are in the answer

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """All statistics that the answer needs, each once."""
        operands: list[Operand] = [source for _, source in self.columns if not isinstance(source, CellKey | BucketKey)]
        operands += [source for source, _ in self.order if not isinstance(source, CellKey | BucketKey)]
        conditions = [] if self.having is None else [self.having]
        while conditions:
            match conditions.pop():
                case Compared(left=left, right=right):
                    operands += [left, right]
                case Fails(condition=condition):
                    conditions.append(condition)
                case Every(conditions=parts) | Some(conditions=parts):
                    conditions += parts
        found: dict[Statistic, None] = {}
        operands.reverse()
        while operands:
            operand = operands.pop()
            if isinstance(operand, Statistic):
                found[operand] = None
            elif isinstance(operand, Computed):
                operands += [operand.right, operand.left]
        return tuple(found)


@lru_cache(maxsize=1024)
def plan(text: str, layout: Layout) -> Plan:
    """The plan of a question in SQL or as JSON; one that was asked before costs a look-up."""
    return bind(question_of(text), layout)


def bind(question: Question, layout: Layout) -> Plan:
    """The plan of a question; it refuses names that the sketch does not know. Cost: in proportion to its parts.

    >>> bind(question_of("SELECT MEAN(rh) WHERE time < '1970-01-02'"), Layout(("temp", "rh"), 20, "1mo")).columns
    (('MEAN(rh)', Statistic(function='mean', features=(1,), share=None)),)
    """
    columns = tuple((item.name, _source(item.expression, layout)) for item in question.items)
    placed, rest = _parted(question.scope, layout)
    return Plan(
        columns,
        _scope(placed, layout),
        question.groups,
        tuple((_ordered(order.by, columns, question.groups, layout), order.descending) for order in question.order),
        question.limit,
        predicates.And(tuple(_predicate(part, layout) for part in rest)) if rest else EVERYTHING,
        rest[0].place if rest else None,
        None if question.having is None else _having(question.having, layout),
    )


# --- columns ----------------------------------------------------------------------------------------------------------


def _source(expression: Expression, layout: Layout) -> Source:
    if isinstance(expression, CellKey | BucketKey):
        return expression
    found = _operand(expression, layout)
    assert not isinstance(found, float)  # reading lets no bare number through
    return found


def _operand(operand: tree.Operand, layout: Layout) -> Operand:
    match operand:
        case Number():
            return operand.value
        case Arithmetic():
            return Computed(operand.operator, _operand(operand.left, layout), _operand(operand.right, layout))
        case Aggregate():
            features = sorted(_feature(name, layout) for name in operand.arguments)
            return Statistic(operand.function, tuple(features), operand.share, place=operand.place)


def _having(condition: Condition, layout: Layout) -> Having:
    match condition:
        case GroupIs():
            left, right = (_operand(each, layout) for each in (condition.left, condition.right))
            return Compared(left, condition.comparison, right)
        case Not():
            return Fails(_having(condition.condition, layout))
        case And() | Or():
            parts = tuple(_having(part, layout) for part in condition.conditions)
            return Every(parts) if isinstance(condition, And) else Some(parts)
    raise BadQuery("HAVING compares statistics of groups; places, times and features go in WHERE", *condition.where)


def _feature(name: Name, layout: Layout) -> int:
    """The position of a feature; capitals are forgiven in unquoted names, as SQL does."""
    if name.text in layout.features:
        return layout.features.index(name.text)
    alike = _alike(name, layout)
    if len(alike) == 1 and not name.quoted:
        return alike[0]
    raise UnknownFeature(name.text, layout.features, *name.where)


def _alike(name: Name, layout: Layout) -> list[int]:
    """Features of that name but for capitals."""
    return [at for at, known in enumerate(layout.features) if known.lower() == name.text.lower()]


def _ordered(
    by: Expression | Name, columns: tuple[tuple[str, Source], ...], groups: tuple[Key, ...], layout: Layout
) -> Source:
    """What ORDER BY means: a column by its name, a group key, or a statistic, selected or not."""
    if isinstance(by, Name):
        names = [name for name, _ in columns]
        found = find(by.text, names)
        if found is None:
            hint = nearest(by.text, tuple(names)) or ";"
            raise BadQuery(f"ORDER BY names no column {by.text!r}{hint} there are {', '.join(names)}", *by.where)
        return dict(columns)[found]
    if isinstance(by, CellKey | BucketKey) and by not in groups:
        raise BadQuery("ORDER BY takes a cell or a bucket only when GROUP BY has it", *by.where)
    return _source(by, layout)


# --- what is in scope -------------------------------------------------------------------------------------------------

_Scoping = InCells | TimeIs | InBox | Within | Near | FeatureIs | FeatureBetween


def _parted(condition: Condition, layout: Layout) -> tuple[list[_Scoping], list[Condition]]:
    """What the ANDs of a WHERE clause say of place and time, and what they say of features."""
    placed: list[_Scoping] = []
    rest: list[Condition] = []
    for part in _conjuncts(condition):
        if isinstance(part, InCells | TimeIs | InBox | Within | Near):
            placed.append(part)
        elif isinstance(part, OnFeature) and _is_coordinate(part.name, layout):
            if isinstance(part, FeatureIn | FeatureNull) or (isinstance(part, FeatureIs) and part.comparison == "<>"):
                raise BadQuery(f"{part.name} takes <, <=, =, >=, > and BETWEEN", *part.where)
            placed.append(part)
        else:
            rest.append(part)
    return placed, rest


def placed(condition: Condition, layout: Layout) -> Condition:
    """What a WHERE clause says of place and time."""
    return And(tuple(_parted(condition, layout)[0]))


def _conjuncts(condition: Condition) -> Iterator[Condition]:
    """The parts of nested ANDs, left to right."""
    stack = [condition]
    while stack:
        part = stack.pop()
        if isinstance(part, And):
            stack += reversed(part.conditions)
        else:
            yield part


def _is_coordinate(name: Name, layout: Layout) -> bool:
    """Whether a name means the latitude or longitude, which it does only if no feature is called so."""
    return name.text.lower() in _COORDINATES and not _alike(name, layout)


def _scope(conditions: Iterable[_Scoping], layout: Layout) -> Scope:
    """The part of space and time for which all of these hold."""
    scope = Scope()
    shapes: list[Shape] = []
    for part in conditions:
        match part:
            case InCells():
                scope = _both(scope, Scope(prefixes=_outermost(part.prefixes)))
            case TimeIs():
                scope = _both(scope, _times(part, layout))
            case InBox():
                shapes.append(Box(part.south, part.west, part.north, part.east))
            case Within():
                shapes.append(Polygon(part.text))
            case Near():
                shapes.append(Circle(part.latitude, part.longitude, part.km))
            case FeatureIs() | FeatureBetween():
                shapes.append(_range(part))
    return replace(scope, shapes=together(shapes))


def _range(condition: FeatureIs | FeatureBetween) -> Box:
    """The box of a range of latitude or longitude; beyond a strict comparison the next number begins."""
    if isinstance(condition, FeatureBetween):
        low, high = (_plain(end, condition) for end in (condition.low, condition.high))
    else:
        low, high, number = -math.inf, math.inf, _plain(condition.number, condition)
        if condition.comparison in ("=", ">=", ">"):
            low = number if condition.comparison != ">" else math.nextafter(number, math.inf)
        if condition.comparison in ("=", "<=", "<"):
            high = number if condition.comparison != "<" else math.nextafter(number, -math.inf)
    whole = Box()
    if _COORDINATES[condition.name.text.lower()]:
        return Box.ranges(south=max(low, whole.south), north=min(high, whole.north))
    return Box.ranges(west=max(low, whole.west), east=min(high, whole.east))


def _times(condition: TimeIs, layout: Layout) -> Scope:
    zone = Zone.named(condition.moment.zone or layout.timezone)
    instant_us = int(zone.to_utc(condition.moment.local_us))
    after = instant_us + (condition.comparison == ">")
    until = instant_us + (condition.comparison in ("<=", "="))
    return Scope(
        from_us=after if condition.comparison in (">", ">=", "=") else None,
        until_us=until if condition.comparison in ("<", "<=", "=") else None,
    )


def _both(one: Scope, other: Scope) -> Scope:
    return Scope(
        _shared(one.prefixes, other.prefixes),
        max((bound for bound in (one.from_us, other.from_us) if bound is not None), default=None),
        min((bound for bound in (one.until_us, other.until_us) if bound is not None), default=None),
    )


def _outermost(prefixes: Iterable[str]) -> tuple[str, ...]:
    """Geohashes without those that another one of them holds, sorted."""
    kept: list[str] = []
    for prefix in sorted(set(prefixes)):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return tuple(kept)


def _shared(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Geohashes of the places that lie in both."""
    if one is None or other is None:
        return other if one is None else one

    def within(prefix: str, larger: frozenset[str]) -> bool:
        return any(prefix[:length] in larger for length in range(1, len(prefix) + 1))

    left, right = frozenset(one), frozenset(other)
    return _outermost([prefix for prefix in one if within(prefix, right)] + [p for p in other if within(p, left)])


# --- what the features must fulfil ------------------------------------------------------------------------------------


def _predicate(condition: Condition, layout: Layout, within: str = "") -> predicates.Condition:
    """A condition on features by position, `within` naming the OR or NOT that it stands in."""
    match condition:
        case And(conditions=()):  # location LIKE '%'
            raise _misplaced(condition, "places", within)
        case And():
            return predicates.And(tuple(_predicate(part, layout, within) for part in condition.conditions))
        case Or():
            return predicates.Or(tuple(_predicate(part, layout, "OR") for part in condition.conditions))
        case Not():
            return predicates.Not(_predicate(condition.condition, layout, "NOT"))
        case InCells() | InBox() | Within() | Near():
            raise _misplaced(condition, "places", within)
        case TimeIs():
            raise _misplaced(condition, "times", within)
        case GroupIs():
            raise BadQuery("WHERE chooses rows, not groups: statistics are compared in HAVING", *condition.where)
        case _:
            if _is_coordinate(condition.name, layout):
                raise _misplaced(condition, "places", within)
            return _comparison(condition, _feature(condition.name, layout))


def _comparison(condition: OnFeature, feature: int) -> predicates.Condition:
    match condition:
        case FeatureNull():
            return predicates.IsNull(feature)
        case FeatureBetween():
            return predicates.Between(feature, _plain(condition.low, condition), _plain(condition.high, condition))
        case FeatureIn():
            return predicates.Or(tuple(predicates.Between(feature, number, number) for number in condition.numbers))
        case FeatureIs():
            number = _plain(condition.number, condition)
            if condition.comparison in ("=", "<>"):
                equal = predicates.Between(feature, number, number)
                return equal if condition.comparison == "=" else predicates.Not(equal)
            closed = condition.comparison in ("<=", ">=")
            if condition.comparison.startswith("<"):
                return predicates.Between(feature, high=number, high_closed=closed)
            return predicates.Between(feature, low=number, low_closed=closed)


def _plain(end: float | Aggregate | Arithmetic, condition: Placed) -> float:
    """A number; where a statistic stands, nobody has found out yet what it is."""
    if isinstance(end, Aggregate | Arithmetic):
        raise NotKept("statistics to compare with need paths, which this sketch does not keep", *condition.where)
    return end


def _misplaced(condition: Placed, kind: str, within: str) -> BadQuery:
    """That an OR or a NOT holds a place or a time."""
    remedies = {
        ("places", "OR"): "ask for all places in one location IN ('dj', 'dn') or one WITHIN('MULTIPOLYGON (...)'), "
        "or ask one question for each side",
        ("places", "NOT"): "name the places that remain, as in location IN ('dj', 'dn')",
        ("times", "OR"): "ask one question for each range of time",
        ("times", "NOT"): "name the times that remain, as in time < '2025-03-01'",
    }
    joins = "OR joins" if within == "OR" else "NOT takes"
    return BadQuery(f"{joins} features only, not {kind}; {remedies[kind, within]}", *condition.where)
