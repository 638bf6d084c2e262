"""Covers: which part of which days every group of a question has.

A day may be in several groups, and in part: an hour takes a share of it. Whatever is not named is not in scope.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags, Strata

if TYPE_CHECKING:
    from synopsis.query import weighing
else:
    weighing = Later("synopsis.query.weighing")


def _none() -> Floats:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Covers:
    """Days of groups, those of each side by side and ascending.

    >>> covers, keys = Covers.whole(np.array([1.0, 0.0, 0.5])).parted(np.array([7, 7, 3]))
    >>> covers.day, covers.share, covers.offset, keys
    (array([2, 0]), array([0.5, 1. ]), array([0, 1, 2]), array([3, 7]))
    """

    day: Integers  #: positions in the strata that are opened
    share: Floats  #: of the day that is in the group
    offset: Integers  #: groups + 1: where the days of each begin
    lean: Floats = field(
        default_factory=_none
    )  #: paths of these days: how much rather each is in scope than the others; empty: all alike
    kept: Integers | None = None  #: how many paths each of these days has, where they may lean

    @classmethod
    def whole(cls, share: Floats, lean: Floats | None = None, day_kept: Integers | None = None) -> Covers:
        """All days as one group. Paths that lean need to be told how many each day has."""
        ends = np.array([0, share.size])
        return cls(np.arange(share.size), share, ends, _none() if lean is None else lean, day_kept)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.offset.size - 1

    def speaking(self, strata: Strata) -> tuple[Floats, Flags]:
        """How paths lean, and groups: whether they know which part of their day they are of."""
        given = (self.day, self.share, strata.day_kept, self.lean, self.lean_start, self.offset, strata.even)
        lean, timed = weighing.speaking(*given)
        return lean, timed

    @cached_property
    def lean_start(self) -> Integers:
        """Days: where the paths of each begin that lean."""
        return np.empty(0, np.int64) if not self.lean.size or self.kept is None else np.cumsum(self.kept) - self.kept

    def parted(self, key: Integers) -> tuple[Covers, Integers]:
        """Days in scope by a key of each: groups are the keys that occur, ascending. Cost: a sort."""
        there = np.flatnonzero(self.share > 0.0)
        order = there[np.argsort(key[there], kind="stable")]
        ordered = key[order]
        begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if order.size else order
        return self._picked(order, np.append(begins, order.size)), ordered[begins]

    def only(self, first: int, last: int) -> Covers:
        """Some of the groups, one after the other."""
        begin, end = self.offset[first], self.offset[last]
        return self._picked(np.arange(begin, end), self.offset[first : last + 1] - begin)

    def _picked(self, entries: Integers, offset: Integers) -> Covers:
        lean, kept = _none(), None if self.kept is None else self.kept[entries]
        if self.lean.size and kept is not None:
            before = np.cumsum(kept) - kept
            lean = self.lean[np.repeat(self.lean_start[entries] - before, kept) + np.arange(kept.sum())]
        return Covers(self.day[entries], self.share[entries], offset, lean, kept)

    @classmethod
    def beside(cls, parts: list[Covers]) -> Covers:
        """All days of several covers, as one group of days that may come again; some may lean and others not."""
        day, share = (np.concatenate([getattr(part, name) for part in parts]) for name in ("day", "share"))
        kept = [part.kept for part in parts if part.kept is not None]
        known, lean = np.concatenate(kept) if len(kept) == len(parts) else None, _none()
        if any(part.lean.size for part in parts):
            each = zip(parts, kept, strict=True)
            lean = np.concatenate([part.lean if part.lean.size else np.ones(own.sum()) for part, own in each])
        return cls(day, share, np.array([0, day.size]), lean, known)


class Slots(NamedTuple):
    """Strata that have rows in scope, by group."""

    stratum: Integers
    whole: Integers  #: all rows
    kept: Integers  #: all paths
    inside: Integers  #: rows of days that are wholly in scope
    cut: Integers  #: rows of days that are partly
    begin: Integers  #: where its days begin and end in the covers
    end: Integers
    rows: Floats  #: in scope
    offset: Integers  #: groups + 1: where the slots of each begin
    paths: Integers  #: groups: how many paths the days in scope have
    days_cut: Integers  #: groups: how many days are partly in scope

    @classmethod
    def of(cls, strata: Strata, covers: Covers) -> Slots:
        """The strata of groups."""
        given = (strata.day_offset, strata.day_rows, strata.day_kept, covers.day, covers.share, covers.offset)
        whole, rows, offset, facts = weighing.in_scope(*given)
        return cls._make((*whole, rows, offset, *facts))

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.offset.size - 1

    @property
    def group(self) -> Integers:
        """Slots: the group of each."""
        if self.groups == 1:
            return np.zeros(self.rows.size, np.int64)
        return np.repeat(np.arange(self.groups), np.diff(self.offset))
