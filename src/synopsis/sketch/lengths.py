"""Lengths: how many days the stretches of each feature are to have, found from some rows of whole places.

A scope that cuts a stretch knows its total, and paths tell how far one part differs from the other. What is left is
off, for rain far more than for temperature, since paths hardly tell which days have it. So features that are off by
much for the bytes that shorter stretches would take get shorter ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.stretches import FACTS, LENGTHS, LEVELS, SHORT, Levels, summed
from synopsis.sketch.tallies import numbered

#: Lengths that a feature may have, shortest first.
ALL_LENGTHS: Final = (*SHORT, *LENGTHS)

#: By which power of their number the bytes of stretches that are not still grow: short ones have less to tell.
GROWTH: Final = 0.7

#: What is thought to be off in stretches of a day beside those of two: half of scopes are of whole days.
_OF_A_DAY: Final = 0.25

#: Deviations that matter to nobody.
_TINY: Final = 1e-12


@dataclass(frozen=True)
class Cut:
    """Sums of days, of all rows and of those with a path, from which follows how far off cut stretches are."""

    place: Integers  #: days, by place and time
    day: Integers
    sums: Integers  #: features x days x FACTS, of levels
    kept: Integers

    @classmethod
    def of(cls, place: Integers, day: Integers, levels: Levels, kept: NDArray[np.bool_]) -> Cut:
        """Those of rows, with their levels, features x rows, some of which have paths. Cost: two passes over rows."""
        key, number = numbered(place, day)
        days, stays = key[0].size, np.flatnonzero(kept)
        return cls(*key, summed(levels, number, days), summed(levels[:, stays], number[stays], days))

    def off(self, days: int) -> Floats:
        """Features: by how much sums and squares of a part of a stretch are off, root mean square, in deviations.

        Stretches are cut in the middle, and their parts differ as their paths do, as far as that serves. Cost:
        proportional to the days.
        """
        if days == 1:
            return _OF_A_DAY * self.off(2)
        stretch = self._stretches(days)
        key, size = 2 * stretch + (self.day % days >= days // 2), 2 * (int(stretch.max(initial=-1)) + 1)
        found = np.zeros(len(self.sums))
        for feature, both in enumerate(zip(self.sums, self.kept, strict=True)):
            (count, *moments), (held, *of_paths) = (_by_part(each, key, size) for each in both)
            share = count[0] * count[1] / np.maximum(count.sum(axis=0), 1.0)
            for power, (of_rows, known) in enumerate(zip(moments, of_paths, strict=True), 1):
                truly, seemingly = _apart(of_rows, count), _apart(known, held)
                most = max(float((share * seemingly) @ seemingly), 1e-300)
                trust = np.clip((share * truly) @ seemingly / most, 0.0, 1.0)
                off = share * (truly - trust * seemingly) / float(LEVELS) ** power
                found[feature] += np.sqrt((off**2).mean()) / power if off.size else 0.0
        return found

    def moving(self, days: int) -> Integers:
        """Features: how many stretches of so many days are not still. Cost: proportional to the days."""
        begins = np.flatnonzero(np.diff(self._stretches(days), prepend=-1))
        sums = np.add.reduceat(self.sums, begins, axis=1) if begins.size else self.sums
        return np.asarray((sums[:, :, 2] != 0).sum(axis=1))

    def _stretches(self, days: int) -> Integers:
        """Days: the number of the stretch of each."""
        changes = (np.diff(self.place) != 0) | (np.diff(self.day // days) != 0)
        return np.append(0, np.cumsum(changes))[: self.day.size]


def _by_part(sums: Integers, key: Integers, size: int) -> tuple[Floats, ...]:
    """(values, sum, sum of squares around the mean of a stretch) x parts x stretches."""
    parts = [np.bincount(key, sums[:, fact], size).reshape(-1, 2).T for fact in range(FACTS)]
    count, total, square = np.asarray(parts, np.float64)
    mean = total.sum(axis=0) / np.maximum(count.sum(axis=0), 1.0)
    return count, total, square - mean * (2.0 * total - mean * count)


def _apart(sums: Floats, count: Floats) -> Floats:
    """Stretches: by how much the means of both parts differ; 0 where one has no values."""
    early, late = sums / np.maximum(count, 1.0)
    return np.where((count > 0.0).all(axis=0), late - early, 0.0)


def share_off(off: Mapping[int, Floats], lengths: Sequence[int], longest: int) -> float:
    """How far answers are off with these lengths of features, in what they are with the longest for all."""
    return (sum(float(off[days][at]) for at, days in enumerate(lengths)) + _TINY) / (float(off[longest].sum()) + _TINY)


def dealt(
    longest: int, off: Mapping[int, Floats], bytes_of: Mapping[int, Floats], loss: Callable[[float, float], float]
) -> tuple[int, ...]:
    """Features: the length of each, at most the `longest`.

    By length and feature: how far answers are `off`, and the bytes of stretches. The feature that a shorter length
    lessens the loss of most gets it, until none does.
    `loss` is that of errors, in those of the longest for all features, and of bytes.
    """
    found = [longest] * off[longest].size

    def of(lengths: list[int]) -> float:
        return loss(share_off(off, lengths, longest), sum(float(bytes_of[days][at]) for at, days in enumerate(lengths)))

    best = of(found)
    while True:
        others = [
            [*found[:at], shorter, *found[at + 1 :]]
            for at, days in enumerate(found)
            for shorter in ALL_LENGTHS
            if shorter < days
        ]
        least, other = min(((of(each), each) for each in others), default=(np.inf, found))
        if not least < best:
            return tuple(found)
        best, found = least, other
