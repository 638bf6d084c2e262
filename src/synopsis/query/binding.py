"""Binding: a question meets a layout and becomes a plan, in which names are positions and times are instants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from synopsis.core.errors import BadQuery, NotKept, UnknownFeature, nearest
from synopsis.grid.zones import Zone
from synopsis.query.language import read
from synopsis.query.naming import find
from synopsis.query.tree import (
    Aggregate,
    And,
    BucketKey,
    CellKey,
    Condition,
    Expression,
    InCells,
    Key,
    Name,
    OnFeature,
    Question,
    TimeIs,
)
from synopsis.sketch.layout import Layout

_POSITION_WORDS: Final = ("lat", "lon", "latitude", "longitude")


@dataclass(frozen=True, slots=True)
class Statistic:
    """A function and the positions of its features in the layout, ascending."""

    function: str
    features: tuple[int, ...] = ()


Source = Statistic | CellKey | BucketKey


@dataclass(frozen=True, slots=True)
class Scope:
    """Which part of space and time is asked for."""

    prefixes: tuple[str, ...] | None = None  #: geohashes of which none holds another; None: everywhere
    from_us: int | None = None  #: the first instant that counts
    until_us: int | None = None  #: the first instant that counts no more


@dataclass(frozen=True, slots=True)
class Plan:
    """A question bound to a layout."""

    columns: tuple[tuple[str, Source], ...]  #: name of each and where it comes from
    scope: Scope
    groups: tuple[Key, ...]
    order: tuple[tuple[Source, bool], ...]  #: what to sort by, and whether descending
    limit: int | None


@lru_cache(maxsize=1024)
def plan(text: str, layout: Layout) -> Plan:
    """The plan of a question in SQL; one that was asked before costs a look-up."""
    return bind(read(text), layout)


def bind(question: Question, layout: Layout) -> Plan:
    """The plan of a question; it refuses what the sketch did not keep.

    >>> bind(read("SELECT MEAN(rh) WHERE time < '1970-01-02'"), Layout(("temp", "rh"), 20, "1mo")).columns
    (('MEAN(rh)', Statistic(function='mean', features=(1,))),)
    """
    columns = tuple((item.name, _source(item.expression, layout)) for item in question.items)
    return Plan(
        columns,
        _scope(question.scope, layout),
        question.groups,
        tuple((_ordered(order.by, columns, question.groups, layout), order.descending) for order in question.order),
        question.limit,
    )


# --- columns ----------------------------------------------------------------------------------------------------------


def _source(expression: Expression, layout: Layout) -> Source:
    if not isinstance(expression, Aggregate):
        return expression
    return Statistic(expression.function, tuple(sorted(_feature(name, layout) for name in expression.arguments)))


def _feature(name: Name, layout: Layout) -> int:
    """The position of a feature; capitals are forgiven in unquoted names, as SQL does."""
    if name.text in layout.features:
        return layout.features.index(name.text)
    alike = [at for at, known in enumerate(layout.features) if known.lower() == name.text.lower()]
    if len(alike) == 1 and not name.quoted:
        return alike[0]
    raise UnknownFeature(name.text, layout.features, *name.where)


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
    if not isinstance(by, Aggregate) and by not in groups:
        raise BadQuery("ORDER BY takes a cell or a bucket only when GROUP BY has it", *by.where)
    return _source(by, layout)


# --- scope ------------------------------------------------------------------------------------------------------------


def _scope(condition: Condition, layout: Layout) -> Scope:
    if isinstance(condition, And):
        scope = Scope()
        for part in condition.conditions:
            scope = _both(scope, _scope(part, layout))
        return scope
    if isinstance(condition, InCells):
        return Scope(prefixes=_outermost(condition.prefixes))
    if isinstance(condition, TimeIs):
        return _times(condition, layout)
    raise _refusal(condition, layout)


def _times(condition: TimeIs, layout: Layout) -> Scope:
    zone = Zone.named(condition.moment.zone or layout.timezone)
    instant_us = int(zone.to_utc(condition.moment.local_us))
    after = instant_us + (condition.comparison == ">")
    until = instant_us + (condition.comparison in ("<=", "="))
    return Scope(
        from_us=after if condition.comparison in (">", ">=", "=") else None,
        until_us=until if condition.comparison in ("<", "<=", "=") else None,
    )


def _refusal(condition: OnFeature, layout: Layout) -> BadQuery:
    name = condition.name
    if name.text.lower() in _POSITION_WORDS and name.text not in layout.features:
        return BadQuery(f"ranges of {name.text} are not in this release; use location LIKE 'dj%'", *name.where)
    feature = layout.features[_feature(name, layout)]
    return NotKept(
        "predicates on features need paths, which this sketch does not keep: "
        f"ask by location and time, without a condition on {feature}",
        *condition.where,
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
