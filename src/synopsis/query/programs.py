"""Programs: clauses as lists of steps, as machine code takes them.

In postfix order, k >= 0 is the k-th leaf, ALL - 2n an AND of the n parts before it, ANY - 2n an OR of them.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from synopsis.query.predicates import EVERYWHERE, AllOf, Clause, Leaf, Ranges, parted, reachable
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags

ALL: Final = -1
ANY: Final = -2

#: Questions come again, and their statistics share conditions.
_REMEMBERED: Final = 512


def leaves_of(clause: Clause) -> list[Leaf]:
    """The leaves of a clause, some perhaps several times."""
    return [clause] if isinstance(clause, Leaf) else [leaf for part in clause.parts for leaf in leaves_of(part)]


def steps_of(clause: Clause, leaves: dict[Leaf, int]) -> list[int]:
    """The steps of a clause; leaves that are not yet among the numbered ones are added to them.

    >>> one, two = Leaf(0), Leaf(1)
    >>> steps_of(AllOf((one, AllOf((two, one)))), {})
    [0, 1, 0, -5, -5]
    """
    if isinstance(clause, Leaf):
        return [leaves.setdefault(clause, len(leaves))]
    steps = [step for part in clause.parts for step in steps_of(part, leaves)]
    return [*steps, (ALL if isinstance(clause, AllOf) else ANY) - 2 * len(clause.parts)]


def plain_leaves(clause: Clause) -> tuple[Leaf, ...] | None:
    """The leaves of a clause that is one of them, an AND of some, or nothing at all; None of any other clause."""
    if type(clause) is Leaf:
        return (clause,)
    if type(clause) is AllOf and len(clause.parts) != 1 and all(type(part) is Leaf for part in clause.parts):
        return clause.parts  # type: ignore[return-value]  # all of them are leaves
    return None


def others_of(clause: Clause, feature: int, leaves: dict[Leaf, int]) -> list[int]:
    """The steps of what a clause demands of other features; leaves that are not yet numbered are added."""
    plain = plain_leaves(clause)
    if plain is None:
        return steps_of(parted(clause, feature)[1], leaves)
    kept = [leaves.setdefault(leaf, len(leaves)) for leaf in plain if leaf.feature != feature]
    return kept if len(kept) == 1 else [*kept, ALL - 2 * len(kept)]


def left_of(clause: Clause, feature: int) -> Ranges:
    """The values of a feature that a row can have for which the clause holds."""
    plain = plain_leaves(clause)
    if plain is None:
        return reachable(clause, feature).ranges
    return next((leaf.ranges for leaf in plain if leaf.feature == feature), EVERYWHERE)


class Program(NamedTuple):
    """A clause in steps."""

    steps: Integers  #: none where everything satisfies it
    leaves: tuple[Leaf, ...]
    demanded: Integers  #: the leaves without which nothing satisfies it


@lru_cache(maxsize=_REMEMBERED)
def program_of(clause: Clause) -> Program:
    """The program of a clause."""
    numbers: dict[Leaf, int] = {}
    steps = [] if isinstance(clause, AllOf) and not clause.parts else steps_of(clause, numbers)
    alone = clause.parts if isinstance(clause, AllOf) else (clause,)
    demanded = [numbers[part] for part in alone if isinstance(part, Leaf)]
    return Program(np.array(steps, np.int64), tuple(numbers), np.array(demanded, np.int64))


class Demands(NamedTuple):
    """A clause in steps, and what it demands of one feature and of the others; leaves are ranges of values."""

    steps: Integers
    others: Integers  #: steps of what is demanded of other features
    own: int  #: the leaf that is demanded of this feature alone; none without a feature
    reach: int  #: the leaf of what both leave of it
    features: Integers  #: leaves
    offset: Integers  #: leaves + 1: where the ranges of each begin
    ranges: Floats
    nulls: Flags  #: leaves


@lru_cache(maxsize=_REMEMBERED)
def demands_of(clause: Clause, feature: int | None) -> Demands:
    """What a clause demands of a feature, if any."""
    numbers: dict[Leaf, int] = {}
    steps, rest, first, last = steps_of(clause, numbers), list[int](), -1, -1
    if feature is not None:
        rest = others_of(clause, feature, numbers)
        first, last = (numbers.setdefault(leaf, len(numbers)) for leaf in _own(clause, feature))
    ends = [0, *accumulate(len(leaf.ranges) for leaf in numbers)]
    return Demands(
        np.array(steps, np.int64),
        np.array(rest, np.int64),
        first,
        last,
        np.array([leaf.feature for leaf in numbers], np.int64),
        np.array(ends, np.int64),
        np.array([pair for leaf in numbers for pair in leaf.ranges], np.float64).reshape(-1, 2),
        np.array([leaf.nulls for leaf in numbers], np.bool_),
    )


def _own(clause: Clause, feature: int) -> tuple[Leaf, Leaf]:
    """What a clause demands of a feature that is present, and what is left of that by all the rest."""
    if plain_leaves(clause) is not None:  # other leaves leave everything
        own = Leaf(feature, left_of(clause, feature))
        return own, own
    alone, others = parted(clause, feature)
    return alone, alone & reachable(others, feature)
