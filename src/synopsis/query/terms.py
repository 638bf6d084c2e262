"""Terms: a condition of any shape, parted into disjoint pieces of space and time, each with a condition on features.

A sketch knows places and times by themselves, and features by themselves. So a condition that joins them by ORs and
NOTs is parted: a place or a time that stands in it is either held or not, which makes two cases, in each of which the
condition says less (Shannon's expansion). What says something of places alone, or of times alone, stays in one piece.
A row fulfils the condition if it fulfils one term, and it never fulfils two.

Places and times are known of every row. Features may be absent, and SQL's third truth value is theirs alone: NOT is
left to `predicates` wherever features are concerned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from synopsis.core.errors import BadQuery
from synopsis.query import predicates
from synopsis.query.predicates import EVERYTHING
from synopsis.query.regions import EVERYWHERE, Both, Cells, Region, both, either, outside
from synopsis.query.shapes import NOWHERE

Span = tuple[int | None, int | None]  #: the first instant, and the first one that is no more; None: no end
Spans = tuple[Span, ...]  #: ascending, with time between neighbours

ALWAYS: Final[Spans] = ((None, None),)
NOTHING: Final = predicates.Or()

#: Terms that one question may have: each is answered by itself.
MOST_TERMS: Final = 256


@dataclass(frozen=True, slots=True)
class InRegion:
    """The position lies in a region."""

    region: Region


@dataclass(frozen=True, slots=True)
class InTimes:
    """The time lies in one of some spans."""

    spans: Spans


@dataclass(frozen=True, slots=True)
class All:
    """All of these hold."""

    parts: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Any of these holds."""

    parts: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class No:
    """This is false."""

    part: Where


Where = InRegion | InTimes | predicates.Condition | All | Any | No
_Known = InRegion | InTimes


@dataclass(frozen=True, slots=True)
class Term:
    """A piece of space and time, and what features must fulfil there."""

    regions: tuple[Region, ...] = ()  #: all of which hold the positions
    spans: Spans = ALWAYS
    condition: predicates.Condition = EVERYTHING

    def __and__(self, other: Term) -> Term:
        regions = (*self.regions, *(region for region in other.regions if region not in self.regions))
        return Term(regions, meet(self.spans, other.spans), every((self.condition, other.condition)))

    @property
    def is_empty(self) -> bool:
        """Whether it surely holds no row."""
        if not self.spans or self.condition == NOTHING or NOWHERE in self.regions:
            return True
        cells = [region for region in self.regions if isinstance(region, Cells)]
        return any(one.apart(other) for at, one in enumerate(cells) for other in cells[:at])


def terms(where: Where) -> tuple[Term, ...]:
    """The disjoint terms of a condition, one for a plain AND. Cost: doubles with each place or time in a mixed OR.

    >>> from synopsis.query.regions import Cells
    >>> for term in terms(Any((InRegion(Cells(("u",))), predicates.IsNull(0)))):
    ...     print(term.regions, term.condition)
    (Cells(prefixes=('u',)),) And(conditions=())
    (Outside(region=Cells(prefixes=('u',))),) IsNull(feature=0)
    """
    found: list[Term] = []
    for term in _cases(folded(where), Term()):
        found.append(term)
        if len(found) > MOST_TERMS:
            raise BadQuery(
                f"places, times and features are joined by OR and NOT in more than {MOST_TERMS} ways; "
                "ask one question for each side of an OR"
            )
    return tuple(found)


def _cases(where: Where, so_far: Term) -> Iterator[Term]:
    """What a condition leaves of a term, in disjoint terms that are not empty."""
    match where:
        case All():
            # What is of one kind comes first: it may leave nothing to look at.
            first, *rest = sorted(where.parts, key=lambda part: isinstance(part, All | Any | No))
            for term in _cases(first, so_far):
                yield from _cases(All(tuple(rest)), term) if rest else (term,)
        case Any() | No():
            known = _first_known(where)
            assert known is not None  # what names no place and no time is a condition on features by now
            for holds, part in ((True, known), (False, folded(No(known)))):
                for term in _cases(part, so_far):
                    yield from _cases(folded(_given(where, known, holds)), term)
        case _:
            term = so_far & _term(where)
            if not term.is_empty:
                yield term


def _term(where: Where) -> Term:
    if isinstance(where, InRegion):
        return Term(regions=where.region.parts if isinstance(where.region, Both) else (where.region,))
    if isinstance(where, InTimes):
        return Term(spans=where.spans)
    assert isinstance(where, predicates.Condition)
    return Term(condition=where)


def _first_known(where: Where) -> _Known | None:
    """The first place or time that a condition names."""
    stack = [where]
    while stack:
        part = stack.pop()
        match part:
            case InRegion() | InTimes():
                return part
            case All() | Any():
                stack += reversed(part.parts)
            case No():
                stack.append(part.part)
    return None


def _given(where: Where, known: _Known, holds: bool) -> Where:
    """The condition where it is known whether a place or time is held."""
    if where == known:
        return EVERYTHING if holds else NOTHING
    match where:
        case All():
            return All(tuple(_given(part, known, holds) for part in where.parts))
        case Any():
            return Any(tuple(_given(part, known, holds) for part in where.parts))
        case No():
            return No(_given(where.part, known, holds))
    return where


# --- what says something of one kind alone ----------------------------------------------------------------------------


def folded(where: Where) -> Where:
    """The condition with whatever is of places alone, of times alone or of features alone in one piece."""
    match where:
        case No():
            return _refused(folded(where.part))
        case All() | Any():
            return _together(where, list(_flat(where)))
    return where


def _refused(part: Where) -> Where:
    match part:
        case InRegion():
            return InRegion(outside(part.region))
        case InTimes():
            return InTimes(beyond(part.spans))
        case All() | Any():
            return No(part)
        case No():
            return part.part
    if part in (EVERYTHING, NOTHING):
        return NOTHING if part == EVERYTHING else EVERYTHING
    return predicates.Not(part)


def _flat(where: All | Any) -> Iterator[Where]:
    """The folded parts, without ANDs in ANDs and ORs in ORs."""
    for part in where.parts:
        own = folded(part)
        if isinstance(own, All | Any) and type(own) is type(where):
            yield from own.parts
        else:
            yield own


def _together(where: All | Any, parts: list[Where]) -> Where:
    is_all = isinstance(where, All)
    regions = tuple(dict.fromkeys(part.region for part in parts if isinstance(part, InRegion)))
    times = [part.spans for part in parts if isinstance(part, InTimes)]
    features = [part for part in parts if isinstance(part, predicates.Condition)]
    mixed = [part for part in parts if isinstance(part, All | Any | No)]
    found: list[Where] = []
    if regions:
        regions = tuple(region for region in regions if region != (EVERYWHERE if is_all else NOWHERE))
        found.append(InRegion(both(regions) if is_all else either(regions)))
    if times:
        spans = ALWAYS if is_all else ()
        for each in times:
            spans = meet(spans, each) if is_all else joined((*spans, *each))
        found.append(InTimes(spans))
    if features:
        found.append(every(features) if is_all else _any(features))
    found += mixed
    if len(found) != 1:
        # What holds always, or never, decides or says nothing.
        neutral, decisive = (_sure(True), _sure(False)) if is_all else (_sure(False), _sure(True))
        if any(part in decisive for part in found):
            return NOTHING if is_all else EVERYTHING
        found = [part for part in found if part not in neutral]
    if not found:
        return EVERYTHING if is_all else NOTHING
    return found[0] if len(found) == 1 else All(tuple(found)) if is_all else Any(tuple(found))


def _sure(holds: bool) -> tuple[Where, ...]:
    if holds:
        return EVERYTHING, InRegion(EVERYWHERE), InTimes(ALWAYS)
    return NOTHING, InRegion(NOWHERE), InTimes(())


def every(conditions: Iterable[predicates.Condition]) -> predicates.Condition:
    """The AND of conditions on features, flat."""
    flat = [part for each in conditions for part in (each.conditions if isinstance(each, predicates.And) else (each,))]
    if NOTHING in flat:
        return NOTHING
    return flat[0] if len(flat) == 1 else predicates.And(tuple(flat))


def _any(conditions: Iterable[predicates.Condition]) -> predicates.Condition:
    flat = [part for each in conditions for part in (each.conditions if isinstance(each, predicates.Or) else (each,))]
    if EVERYTHING in flat:
        return EVERYTHING
    return flat[0] if len(flat) == 1 else predicates.Or(tuple(flat))


# --- spans of time ----------------------------------------------------------------------------------------------------


def meet(first: Spans, second: Spans) -> Spans:
    """What lies in both.

    >>> meet(((None, 5), (8, 9)), ((3, None),))
    ((3, 5), (8, 9))
    """
    if first == ALWAYS or second == ALWAYS:
        return second if first == ALWAYS else first
    both_of = ((later(a, c), earlier(b, d)) for a, b in first for c, d in second)
    return tuple(sorted((span for span in both_of if not _is_empty(span)), key=_start))


def joined(spans: Spans) -> Spans:
    """What lies in any of these, in any order.

    >>> joined(((8, None), (None, 3), (3, 5)))
    ((None, 5), (8, None))
    """
    found: list[Span] = []
    for begin, end in sorted((span for span in spans if not _is_empty(span)), key=_start):
        if found and (found[-1][1] is None or begin is None or begin <= found[-1][1]):
            last = found[-1][1]
            found[-1] = (found[-1][0], None if last is None or end is None else max(last, end))
        else:
            found.append((begin, end))
    return tuple(found)


def beyond(spans: Spans) -> Spans:
    """What lies in none of these.

    >>> beyond(((3, 5),))
    ((None, 3), (5, None))
    """
    if not spans:
        return ALWAYS
    gaps: list[Span] = [(before[1], after[0]) for before, after in pairwise(spans)]
    first: list[Span] = [] if spans[0][0] is None else [(None, spans[0][0])]
    last: list[Span] = [] if spans[-1][1] is None else [(spans[-1][1], None)]
    return (*first, *gaps, *last)


def _start(span: Span) -> tuple[bool, int]:
    return (span[0] is not None, span[0] or 0)


def _is_empty(span: Span) -> bool:
    return span[0] is not None and span[1] is not None and span[0] >= span[1]


def later(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else max(one, other)


def earlier(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else min(one, other)
