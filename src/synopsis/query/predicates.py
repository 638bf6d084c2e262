"""Predicates: a condition on features, turned into sets of values that are asked for and never refused.

SQL's logic has three values, and a row is selected only where the condition is true: a comparison with an absent value
is unknown, and so is its negation. Negations are therefore carried down to the comparisons first (De Morgan's laws hold
in Kleene's logic, too), where NOT v BETWEEN a AND b means "present and outside". What is left is ANDs and ORs of
**leaves**: a feature, the ranges that its value may lie in, and whether it may be absent. Leaves of one feature that
meet in an AND or an OR become one leaf.

Values are float64, so v > a is v >= the next number after a: all ranges are closed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Final

from synopsis.core.hashing import Hashed

Ranges = tuple[tuple[float, float], ...]  #: closed, ascending, with at least one number between neighbours

EVERYWHERE: Final[Ranges] = ((-math.inf, math.inf),)

#: Questions come again, and their statistics share conditions.
_REMEMBERED: Final = 512

# --- what is asked ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Between(Hashed):
    """The value of a feature lies in a range. Unknown where it is absent."""

    feature: int
    low: float = -math.inf
    high: float = math.inf
    low_closed: bool = True
    high_closed: bool = True

    __hash__ = Hashed.__hash__

    def __post_init__(self) -> None:
        if math.isnan(self.low) or math.isnan(self.high):
            raise ValueError(f"a range from {self.low} to {self.high} has no order")


@dataclass(frozen=True, slots=True)
class IsNull(Hashed):
    """The feature is absent. Never unknown."""

    feature: int

    __hash__ = Hashed.__hash__


@dataclass(frozen=True, slots=True)
class Not(Hashed):
    """The condition is false."""

    condition: Condition

    __hash__ = Hashed.__hash__


@dataclass(frozen=True, slots=True)
class And(Hashed):
    """All of these hold; nothing in it means everything."""

    conditions: tuple[Condition, ...] = ()

    __hash__ = Hashed.__hash__


@dataclass(frozen=True, slots=True)
class Or(Hashed):
    """Any of these holds; nothing in it means nothing."""

    conditions: tuple[Condition, ...] = ()

    __hash__ = Hashed.__hash__


Condition = Between | IsNull | Not | And | Or

EVERYTHING: Final = And()


def features_of(condition: Condition) -> frozenset[int]:
    """The features that a condition names."""
    if isinstance(condition, Between | IsNull):
        return frozenset((condition.feature,))
    parts = (condition.condition,) if isinstance(condition, Not) else condition.conditions
    return frozenset[int]().union(*map(features_of, parts))


# --- what is left of it when nothing is refused -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leaf(Hashed):
    """A feature has a value in the ranges, or is absent where `nulls` allows it."""

    feature: int
    ranges: Ranges = EVERYWHERE
    nulls: bool = False

    __hash__ = Hashed.__hash__

    def __and__(self, other: Leaf) -> Leaf:
        return Leaf(self.feature, meet(self.ranges, other.ranges), self.nulls and other.nulls)

    def __or__(self, other: Leaf) -> Leaf:
        return Leaf(self.feature, join(self.ranges + other.ranges), self.nulls or other.nulls)


@dataclass(frozen=True, slots=True)
class AllOf(Hashed):
    """All parts hold; no two are leaves of one feature."""

    parts: tuple[Clause, ...] = ()

    __hash__ = Hashed.__hash__


@dataclass(frozen=True, slots=True)
class AnyOf(Hashed):
    """At least one part holds; no two are leaves of one feature."""

    parts: tuple[Clause, ...] = ()

    __hash__ = Hashed.__hash__


Clause = Leaf | AllOf | AnyOf


@lru_cache(maxsize=_REMEMBERED)
def positive(condition: Condition, negated: bool = False) -> Clause:
    """The clause that holds where the condition is true (where it is false, if negated).

    >>> positive(Not(And((Between(0, 1.0, 2.0), IsNull(1)))))
    AnyOf(parts=(Leaf(feature=0, ranges=((-inf, 0.9999999999999999), (2.0000000000000004, inf)), nulls=False), \
Leaf(feature=1, ranges=((-inf, inf),), nulls=False)))
    """
    match condition:
        case Not():
            return positive(condition.condition, not negated)
        case IsNull():
            return Leaf(condition.feature, EVERYWHERE if negated else (), not negated)
        case Between():
            ranges = _closed(condition)
            return Leaf(condition.feature, outside(ranges) if negated else ranges)
        case And() | Or():
            parts = [positive(part, negated) for part in condition.conditions]
            return all_of(parts) if isinstance(condition, And) != negated else any_of(parts)


def all_of(parts: Iterable[Clause]) -> Clause:
    """The AND of clauses, with leaves of one feature intersected."""
    merged = _merged(AllOf, parts, Leaf.__and__)
    return merged[0] if len(merged) == 1 else AllOf(merged)


def any_of(parts: Iterable[Clause]) -> Clause:
    """The OR of clauses, with leaves of one feature united."""
    merged = _merged(AnyOf, parts, Leaf.__or__)
    return merged[0] if len(merged) == 1 else AnyOf(merged)


def _merged(
    kind: type[AllOf] | type[AnyOf], parts: Iterable[Clause], merge: Callable[[Leaf, Leaf], Leaf]
) -> tuple[Clause, ...]:
    leaves: dict[int, Leaf] = {}
    others: list[Clause] = []
    for part in parts:
        for inner in part.parts if isinstance(part, kind) else (part,):
            if isinstance(inner, Leaf):
                known = leaves.get(inner.feature)
                leaves[inner.feature] = inner if known is None else merge(known, inner)
            else:
                others.append(inner)
    return (*leaves.values(), *others)


@lru_cache(maxsize=_REMEMBERED)
def parted(clause: Clause, feature: int) -> tuple[Leaf, Clause]:
    """The clause with "the feature is present" added, as what it demands of that feature alone and all the rest."""
    own, others = Leaf(feature), []
    for part in clause.parts if isinstance(clause, AllOf) else (clause,):
        if isinstance(part, Leaf) and part.feature == feature:
            own = own & part
        else:
            others.append(part)
    return own, all_of(others)


@lru_cache(maxsize=_REMEMBERED)
def reachable(clause: Clause, feature: int) -> Leaf:
    """The values of a feature that a row can have for which the clause holds.

    >>> reachable(AnyOf((Leaf(0, ((1.0, 2.0),)), AllOf((Leaf(0, ((5.0, 6.0),)), Leaf(1))))), 0)
    Leaf(feature=0, ranges=((1.0, 2.0), (5.0, 6.0)), nulls=False)
    """
    match clause:
        case Leaf():
            return clause if clause.feature == feature else Leaf(feature, nulls=True)
        case AllOf():
            parts = (reachable(part, feature) for part in clause.parts)
            return reduce(Leaf.__and__, parts, Leaf(feature, nulls=True))
        case AnyOf():
            return reduce(Leaf.__or__, (reachable(part, feature) for part in clause.parts), Leaf(feature, ()))


# --- ranges -----------------------------------------------------------------------------------------------------------


def _closed(asked: Between) -> Ranges:
    low = asked.low if asked.low_closed else math.nextafter(asked.low, math.inf)
    high = asked.high if asked.high_closed else math.nextafter(asked.high, -math.inf)
    # No number lies above infinity: nextafter stays there.
    beyond = (not asked.low_closed and asked.low == math.inf) or (not asked.high_closed and asked.high == -math.inf)
    return ((low, high),) if low <= high and not beyond else ()


def meet(first: Ranges, second: Ranges) -> Ranges:
    """What lies in both.

    >>> meet(((0.0, 2.0), (3.0, 9.0)), ((1.0, 4.0),))
    ((1.0, 2.0), (3.0, 4.0))
    """
    both = ((max(a, c), min(b, d)) for a, b in first for c, d in second)
    return tuple(sorted((low, high) for low, high in both if low <= high))


def join(ranges: Ranges) -> Ranges:
    """What lies in any of these, in any order.

    >>> join(((3.0, 9.0), (0.0, 2.0), (1.0, 2.5)))
    ((0.0, 2.5), (3.0, 9.0))
    """
    joined: list[tuple[float, float]] = []
    for low, high in sorted(ranges):
        if joined and low <= math.nextafter(joined[-1][1], math.inf):
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


def outside(ranges: Ranges) -> Ranges:
    """What lies in none of these, which are disjoint and ascending.

    >>> outside(((0.0, math.inf),))
    ((-inf, -5e-324),)
    """
    ends = [math.nextafter(high, math.inf) for _, high in ranges if high < math.inf]
    starts = [math.nextafter(low, -math.inf) for low, _ in ranges if low > -math.inf]
    lows = ends if ranges and ranges[0][0] == -math.inf else [-math.inf, *ends]
    highs = starts if ranges and ranges[-1][1] == math.inf else [*starts, math.inf]
    return tuple(zip(lows, highs, strict=True))
