"""Binding: a question meets a layout and becomes a plan, in which names are positions and times are instants.

The WHERE clause becomes disjoint parts: in each, a piece of space and time is the scope, and the rest is a condition on
features. A clause without ORs and NOTs that join places or times with features is one part.
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
from synopsis.query import terms as terms_of
from synopsis.query.naming import find
from synopsis.query.predicates import EVERYTHING
from synopsis.query.predictions import moments_of
from synopsis.query.regions import Cells, Region, either, outside
from synopsis.query.shapes import NOWHERE, Box, Circle, Polygon, together
from synopsis.query.terms import MOST_TERMS, InRegion, InTimes, Spans, Where, beyond, terms
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    BinKey,
    BucketKey,
    CellKey,
    ColumnOf,
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
class Scope:
    """Which piece of space and time is asked for."""

    prefixes: tuple[str, ...] | None = None  #: geohashes of which none holds another; None: everywhere
    from_us: int | None = None  #: the first instant that counts
    until_us: int | None = None  #: the first instant that counts no more
    shapes: tuple[Region, ...] = ()  #: all of which hold the positions that count


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of space and time, and what features must fulfil there, as an And."""

    scope: Scope = Scope()
    condition: predicates.Condition = EVERYTHING


@dataclass(frozen=True, slots=True)
class Statistic(Placed):
    """A function and the positions of its features in the layout, ascending."""

    function: str
    features: tuple[int, ...] = ()
    share: float | None = None  #: of a quantile: how much of the rows lies below it, 0 to 1
    only: tuple[Part, ...] | None = None  #: the rows that it is of, where they are not all of a group
    away: float | None = None  #: of outliers: how many standard deviations

    @property
    def is_count(self) -> bool:
        """Whether it is a whole number of rows, 0 where there are none."""
        return self.function in ("count", "outliers")


@dataclass(frozen=True, slots=True)
class Computed:
    """One of + - * / of statistics and numbers."""

    operator: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Binned:
    """Ranges of a feature's values as a group key."""

    feature: int
    width: float | None = None


@dataclass(frozen=True, slots=True)
class Predicted:
    """A feature where others have these values, by least squares."""

    target: int
    predictors: tuple[int, ...]
    at: tuple[float, ...]
    only: tuple[Part, ...] | None = None

    @property
    def moments(self) -> tuple[Statistic, ...]:
        """The statistics that it is made of."""
        found = moments_of(self.target, self.predictors)
        return tuple(Statistic(function, features, only=self.only) for function, features in found)


Operand = Statistic | Computed | Predicted | float
Keyed = CellKey | BucketKey | Binned
Source = Statistic | Computed | Predicted | Keyed


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


@dataclass(frozen=True)
class Plan:
    """A question bound to a layout."""

    columns: tuple[tuple[str, Source], ...]  #: name of each and where it comes from
    parts: tuple[Part, ...]  #: which rows are asked for; no row is in two parts
    groups: tuple[Keyed, ...]
    order: tuple[tuple[Source, bool], ...]  #: what to sort by, and whether descending
    limit: int | None
    condition_place: Place | None = field(default=None, compare=False, repr=False)  #: of the first on features
    having: Having | None = None  #: which groups are in the answer
    notes: tuple[str, ...] = ()  #: what is answered otherwise than asked
    cut: str | None = None  #: "keep" or "drop": what the scope cuts counts whole, or not at all

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """All statistics that the answer needs, each once."""
        operands: list[Operand] = [source for _, source in self.columns if not isinstance(source, Keyed)]
        operands += [source for source, _ in self.order if not isinstance(source, Keyed)]
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
            elif isinstance(operand, Predicted):
                found |= dict.fromkeys(operand.moments)
        return tuple(found)

    @property
    def has_conditions(self) -> bool:
        """Whether features must fulfil anything, anywhere."""
        return any(part.condition != EVERYTHING for part in self.parts)


@lru_cache(maxsize=1024)
def plan(question: Question, layout: Layout, text: str) -> Plan:
    """The plan of a question; one that was asked before, in the same words, costs a look-up."""
    return bind(question, layout)


def bind(question: Question, layout: Layout) -> Plan:
    """The plan of a question; it refuses names that the sketch does not know. Cost: in proportion to its parts.

    >>> from synopsis.query.language import read
    >>> bind(read("SELECT MEAN(rh) WHERE time < '1970-01-02'"), Layout(("temp", "rh"), 20, "1mo")).columns
    (('MEAN(rh)', Statistic(function='mean', features=(1,), share=None, only=None, away=None)),)
    """
    where = _where(question.scope, layout)
    columns = tuple((item.name, _source(item.expression, layout, where)) for item in question.items)
    named = (part for part in _conjuncts(question.scope) if next(on_features(part, layout), None) is not None)
    first = next(named, None)
    return Plan(
        columns,
        _parts(where),
        tuple(_keyed(key, layout) for key in question.groups),
        tuple(
            (_ordered(order.by, columns, question.groups, layout, where), order.descending) for order in question.order
        ),
        question.limit,
        first.place if first else None,
        None if question.having is None else _having(question.having, layout, where),
    )


# --- columns ----------------------------------------------------------------------------------------------------------


def _source(expression: Expression, layout: Layout, where: Where) -> Source:
    if isinstance(expression, Key):
        return _keyed(expression, layout)
    found = _operand(expression, layout, where)
    assert not isinstance(found, float)  # reading lets no bare number through
    return found


def _keyed(key: Key, layout: Layout) -> Keyed:
    return Binned(feature_of(key.name, layout), key.width) if isinstance(key, BinKey) else key


def _operand(operand: tree.Operand, layout: Layout, where: Where) -> Operand:
    match operand:
        case Number():
            return operand.value
        case ColumnOf():
            raise BadQuery(f"{operand} is a column of a question that is joined, and nothing is", *operand.where)
        case Arithmetic():
            left, right = (_operand(each, layout, where) for each in (operand.left, operand.right))
            return Computed(operand.operator, left, right)
        case Aggregate():
            named = tuple(feature_of(name, layout) for name in operand.arguments)
            features = tuple(sorted(named))
            if operand.only is not None:
                where = terms_of.All((where, _filter(operand.only, layout)))
            only = None if operand.only is None else _parts(where)
            if operand.function.endswith("_samp"):
                return _of_sample(operand, features, only)
            if operand.condition is not None:
                held = _parts(terms_of.All((where, _filter(operand.condition, layout))))
                some, every = Statistic("count", only=held), Statistic("count", only=only)
                return Computed("share", replace(some, place=operand.place), replace(every, place=operand.place))
            if operand.function == "predict":
                if len(set(named)) < len(named):
                    raise BadQuery("PREDICT takes every feature once", *operand.where)
                return Predicted(named[0], named[1:], operand.numbers, only)
            away = operand.numbers[0] if operand.function == "outliers" else None
            return Statistic(operand.function, features, operand.share, only, away, place=operand.place)


def _of_sample(operand: Aggregate, features: tuple[int, ...], only: tuple[Part, ...] | None) -> Operand:
    """A statistic that divides by n - 1: that which divides by n, times n / (n - 1)."""
    count = Statistic("count", tuple(dict.fromkeys(features)), only=only, place=operand.place)
    function = "covariance" if operand.function == "covariance_samp" else "var"
    spread = Computed("*", Statistic(function, features, only=only, place=operand.place), count)
    found = Computed("/", spread, Computed("-", count, 1.0))
    return Computed("root", found, 1.0) if operand.function == "std_samp" else found


def _filter(condition: Condition, layout: Layout) -> Where:
    try:
        return _where(condition, layout)
    except NotKept as problem:
        why = "FILTER compares features with numbers; statistics to compare with go in WHERE"
        raise BadQuery(why, problem.line, problem.column) from problem


def _having(condition: Condition, layout: Layout, where: Where) -> Having:
    match condition:
        case GroupIs():
            left, right = (_operand(each, layout, where) for each in (condition.left, condition.right))
            return Compared(left, condition.comparison, right)
        case Not():
            return Fails(_having(condition.condition, layout, where))
        case And() | Or():
            parts = tuple(_having(part, layout, where) for part in condition.conditions)
            return Every(parts) if isinstance(condition, And) else Some(parts)
    raise BadQuery("HAVING compares statistics of groups; places, times and features go in WHERE", *condition.where)


def feature_of(name: Name, layout: Layout) -> int:
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
    by: Expression | Name,
    columns: tuple[tuple[str, Source], ...],
    groups: tuple[Key, ...],
    layout: Layout,
    where: Where,
) -> Source:
    """What ORDER BY means: a column by its name, a group key, or a statistic, selected or not."""
    if isinstance(by, Name):
        names = [name for name, _ in columns]
        found = find(by.text, names)
        if found is None:
            hint = nearest(by.text, tuple(names)) or ";"
            raise BadQuery(f"ORDER BY names no column {by.text!r}{hint} there are {', '.join(names)}", *by.where)
        return dict(columns)[found]
    if isinstance(by, Key) and by not in groups:
        raise BadQuery("ORDER BY takes a key only when GROUP BY has it", *by.where)
    return _source(by, layout, where)


# --- what is in scope -------------------------------------------------------------------------------------------------


def _parts(where: Where) -> tuple[Part, ...]:
    """The disjoint parts of space and time that a condition asks for, at least one, be it empty."""
    parts = [
        Part(_scope(term.regions, *span), _conjunction(term.condition)) for term in terms(where) for span in term.spans
    ]
    if len(parts) > MOST_TERMS:
        raise BadQuery(f"the times asked for have more than {MOST_TERMS} gaps; ask for fewer ranges at a time")
    return tuple(parts) or (Part(Scope(shapes=(NOWHERE,))),)


def _conjunction(condition: predicates.Condition) -> predicates.Condition:
    return condition if isinstance(condition, predicates.And) else predicates.And((condition,))


def _scope(regions: Iterable[Region], from_us: int | None, until_us: int | None) -> Scope:
    prefixes: tuple[str, ...] | None = None
    shapes: list[Region] = []
    for region in regions:
        if isinstance(region, Cells):
            prefixes = _shared(prefixes, region.prefixes)
        else:
            shapes.append(region)
    return Scope(prefixes, from_us, until_us, together(shapes))


def placed(condition: Condition, layout: Layout) -> Condition:
    """What the ANDs of a WHERE clause say of place and time alone."""
    return And(tuple(part for part in _conjuncts(condition) if next(on_features(part, layout), None) is None))


def _conjuncts(condition: Condition) -> Iterator[Condition]:
    """The parts of nested ANDs, left to right."""
    stack = [condition]
    while stack:
        part = stack.pop()
        if isinstance(part, And):
            stack += reversed(part.conditions)
        else:
            yield part


def on_features(condition: Condition, layout: Layout) -> Iterator[OnFeature]:
    """The comparisons of features within a condition, left to right."""
    stack = [condition]
    while stack:
        part = stack.pop()
        if isinstance(part, And | Or):
            stack += reversed(part.conditions)
        elif isinstance(part, Not):
            stack.append(part.condition)
        elif isinstance(part, OnFeature) and not _is_coordinate(part.name, layout):
            yield part


def _is_coordinate(name: Name, layout: Layout) -> bool:
    """Whether a name means the latitude or longitude, which it does only if no feature is called so."""
    return name.text.lower() in _COORDINATES and not _alike(name, layout)


def _where(condition: Condition, layout: Layout) -> Where:
    """A condition with names as positions and times as instants."""
    match condition:
        case And():
            return terms_of.All(tuple(_where(part, layout) for part in condition.conditions))
        case Or():
            return terms_of.Any(tuple(_where(part, layout) for part in condition.conditions))
        case Not():
            return terms_of.No(_where(condition.condition, layout))
        case InCells():
            return InRegion(Cells(_outermost(condition.prefixes)))
        case InBox():
            return InRegion(Box(condition.south, condition.west, condition.north, condition.east))
        case Within():
            return InRegion(Polygon(condition.text))
        case Near():
            return InRegion(Circle(condition.latitude, condition.longitude, condition.km))
        case TimeIs():
            return InTimes(_times(condition, layout))
        case GroupIs():
            raise BadQuery("WHERE chooses rows, not groups: statistics are compared in HAVING", *condition.where)
        case _:
            if _is_coordinate(condition.name, layout):
                return InRegion(_of_coordinate(condition))
            return _comparison(condition, feature_of(condition.name, layout))


def _of_coordinate(condition: OnFeature) -> Region:
    """The positions whose latitude or longitude is as asked; none is absent."""
    is_latitude = _COORDINATES[condition.name.text.lower()]
    match condition:
        case FeatureNull():
            return NOWHERE
        case FeatureIn():
            return either(tuple(_range(is_latitude, number, number) for number in condition.numbers))
        case FeatureBetween():
            return _range(is_latitude, *(_plain(end, condition) for end in (condition.low, condition.high)))
        case FeatureIs():
            low, high, number = -math.inf, math.inf, _plain(condition.number, condition)
            if condition.comparison == "<>":
                return outside(_range(is_latitude, number, number))
            if condition.comparison in ("=", ">=", ">"):  # beyond a strict comparison the next number begins
                low = number if condition.comparison != ">" else math.nextafter(number, math.inf)
            if condition.comparison in ("=", "<=", "<"):
                high = number if condition.comparison != "<" else math.nextafter(number, -math.inf)
            return _range(is_latitude, low, high)


def _range(is_latitude: bool, low: float, high: float) -> Box:
    """The box of a range of latitude or longitude."""
    whole = Box()
    if is_latitude:
        return Box.ranges(south=max(low, whole.south), north=min(high, whole.north))
    return Box.ranges(west=max(low, whole.west), east=min(high, whole.east))


def _times(condition: TimeIs, layout: Layout) -> Spans:
    zone = Zone.named(condition.moment.zone or layout.timezone)
    instant_us = int(zone.to_utc(condition.moment.local_us))
    if condition.comparison == "<>":
        return beyond(((instant_us, instant_us + 1),))
    after = instant_us + (condition.comparison == ">")
    until = instant_us + (condition.comparison in ("<=", "="))
    return (
        (
            after if condition.comparison in (">", ">=", "=") else None,
            until if condition.comparison in ("<", "<=", "=") else None,
        ),
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
