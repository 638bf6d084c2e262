"""Scoping: what WHERE means to a layout: disjoint parts of space and time, each with a condition on features.

Names become positions, wall times become instants. A clause without ORs and NOTs that join places or times with
features is one part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from synopsis.core.errors import BadQuery, NotKept, UnknownFeature
from synopsis.grid.zones import Zone
from synopsis.query import predicates
from synopsis.query import terms as terms_of
from synopsis.query.predicates import EVERYTHING
from synopsis.query.regions import EVERYWHERE, Both, Cells, Region, either, outside
from synopsis.query.shapes import NOWHERE, Box, Circle, Polygon, together
from synopsis.query.terms import MOST_TERMS, NOTHING, InRegion, InTimes, Spans, Where, beyond, terms
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    Condition,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    GroupIs,
    InBox,
    InCells,
    Name,
    Near,
    Not,
    OnFeature,
    Or,
    Placed,
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


@dataclass(frozen=True)
class Part:
    """A piece of space and time, and what features must fulfil there, as an And."""

    scope: Scope = Scope()
    condition: predicates.Condition = EVERYTHING

    @cached_property
    def features(self) -> frozenset[int]:
        """What the condition is on."""
        return predicates.features_of(self.condition)


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


def parts_of(where: Where) -> tuple[Part, ...]:
    """The disjoint parts of space and time that a condition asks for, at least one, be it empty."""
    parts = [
        Part(_scope(term.regions, *span), _conjunction(term.condition)) for term in terms(where) for span in term.spans
    ]
    if len(parts) > MOST_TERMS:
        raise BadQuery(f"the times asked for have more than {MOST_TERMS} gaps; ask for fewer ranges at a time")
    return tuple(parts) or (Part(Scope(shapes=(NOWHERE,))),)


def part_of(condition: Condition, layout: Layout) -> Part | None:
    """The one part of a plain AND, in one pass, as `parts_of` has it; None where it takes more to tell.

    Plain are places, times, and whatever is of features alone. Cost: in proportion to the conditions.
    """
    regions: dict[Region, None] = {}
    features: list[predicates.Condition] = []
    begin: int | None = None
    end: int | None = None
    for each in condition.conditions if isinstance(condition, And) else (condition,):
        found = terms_of.folded(where_of(each, layout))
        if isinstance(found, InRegion):
            regions[found.region] = None
        elif isinstance(found, predicates.Condition):
            features.append(found)
        elif isinstance(found, InTimes) and len(found.spans) == 1:
            ((after, until),) = found.spans
            begin, end = terms_of.later(begin, after), terms_of.earlier(end, until)
        else:
            return None
    is_empty = begin is not None and end is not None and begin >= end
    if is_empty or NOTHING in features or sum(type(region) is Cells for region in regions) > 1:
        return None
    if any(region == NOWHERE or isinstance(region, Both) for region in regions):
        return None
    whole = terms_of.every(features) if features else EVERYTHING
    return Part(_scope((region for region in regions if region != EVERYWHERE), begin, end), _conjunction(whole))


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
    return And(tuple(part for part in conjuncts(condition) if next(on_features(part, layout), None) is None))


def conjuncts(condition: Condition) -> Iterator[Condition]:
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


def where_of(condition: Condition, layout: Layout) -> Where:
    """A condition with names as positions and times as instants."""
    if type(condition) is FeatureIs and not _is_coordinate(condition.name, layout):  # as most are
        return _comparison(condition, feature_of(condition.name, layout))
    match condition:
        case And():
            return terms_of.All(tuple(where_of(part, layout) for part in condition.conditions))
        case Or():
            return terms_of.Any(tuple(where_of(part, layout) for part in condition.conditions))
        case Not():
            return terms_of.No(where_of(condition.condition, layout))
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
