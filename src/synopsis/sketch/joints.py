"""Joint bins: the runs of fine bins, and the spans of cell and period, for which it is kept which bins met.

A joint bin is a run of neighbouring fine bins. A fine bin that many rows share, as no rain does, is a joint bin of its
own, and rows without the feature have one, behind all others. Two neighbouring joint bins make a coarser one, and so do
cells and periods: what is kept can be folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, TypeVar

import numpy as np

from synopsis.sketch.members import worth
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import ABSENT, MOST_FINE, Codes, Scales
from synopsis.sketch.tallies import PERIODS, SYMBOLS

#: Joint bins of a feature at the least, but for features with fewer fine bins.
JOINTS: Final = (16, 24, 32, 48, 64, 96, 128, MOST_FINE)

#: Joint bins that are worth more than spans, and those that are not folded any more.
ENOUGH, _FEWEST = 32, 16

#: Bits of the cells of spans, finest first.
CELLS: Final = (20, 15, 10, 5, 0)

#: Share of a feature's values from which on a fine bin is a joint bin of its own.
_SHARED_BY_MANY: Final = 1 / 16

Starts = tuple[bytes, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Grain:
    """The size of spans, and the first fine code of every joint bin of each feature."""

    bits: int
    months: int
    starts: Starts

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Joint bins of every feature, that of rows without it among them."""
        return tuple(len(starts) + 1 for starts in self.starts)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Two features each, in the order in which they are kept."""
        return tuple(combinations(range(len(self.starts)), 2))

    @property
    def cells(self) -> int:
        """Combinations of two joint bins, of all pairs."""
        return sum(self.sizes[one] * self.sizes[other] for one, other in self.pairs)

    @property
    def nbytes(self) -> int:
        """Bytes of all starts."""
        return sum(map(len, self.starts))

    def joint(self, feature: int) -> Codes:
        """The joint bin of every fine code of a feature."""
        starts = np.frombuffer(self.starts[feature], np.uint8)
        table = (np.searchsorted(starts, np.arange(SYMBOLS), side="right") - 1).astype(np.uint8)
        table[ABSENT] = starts.size
        return table

    def ranges(self, scales: Scales, feature: int) -> tuple[Floats, Floats]:
        """The lowest and the highest value that each joint bin of a feature can hold, but for rows without it."""
        low, high = scales.ranges(feature)
        starts = np.frombuffer(self.starts[feature], np.uint8)
        return low[starts], high[np.append(starts[1:], low.size) - 1]

    def common(self, other: Grain) -> Grain:
        """The finest grain that both nest in."""
        starts = zip(self.starts, other.starts, strict=True)
        both = tuple(bytes(sorted({*mine} & {*theirs})) for mine, theirs in starts)
        return Grain(min(self.bits, other.bits), math.lcm(self.months, other.months), both)

    def merged(self, finer: Grain, feature: int) -> Integers:
        """Where each joint bin of a feature begins among those of a finer grain."""
        own, theirs = (np.frombuffer(each.starts[feature], np.uint8) for each in (self, finer))
        return np.append(np.searchsorted(theirs, own), theirs.size)


# --- choosing ---------------------------------------------------------------------------------------------------------


def starts_of(scales: Scales, features: int, joints: int) -> Starts:
    """Where joint bins begin: at least so many of each of the first features, if it has as many fine bins."""
    return tuple(_evenly(scales, feature, joints) for feature in range(features))


def folded(starts: Starts, scales: Scales) -> list[Starts]:
    """These joint bins and coarser ones, coarsest first: each has two of the next, but for those of shared values."""
    levels = [starts]
    while max(map(len, starts)) > _FEWEST:
        halved = tuple(_halved(each, scales, feature) for feature, each in enumerate(starts))
        if halved == starts:
            break
        levels.append(starts := halved)
    return levels[::-1]


def settled(
    finest: Grain,
    levels: Sequence[Starts],
    cell: Integers,
    period: Integers,
    scales: Scales,
    made: Callable[[Grain], T | None],
) -> T | None:
    """What is made of the best grain that the spans of one can be put in; None where nothing is made of any.

    At least 32 joint bins are best, then spans that tell more of places and times, then finer bins. `levels` are joint
    bins, coarsest first; `made` gives None for a grain that is too fine. Cost: that of what is made of some dozen
    grains.
    """
    enough = next((at for at, starts in enumerate(levels) if _are_enough(starts, scales)), len(levels) - 1)
    spans = _spans(finest, cell, period)
    for level in range(enough, -1, -1):
        for bits, months in spans:
            found = made(Grain(bits, months, levels[level]))
            if found is not None:
                for finer in levels[enough + 1 :] if level == enough else ():
                    better = made(Grain(bits, months, finer))
                    if better is None:
                        break
                    found = better
                return found
    return None


def _are_enough(starts: Starts, scales: Scales) -> bool:
    fine = (quantizer.bins for quantizer in scales.quantizers)
    return all(len(each) >= min(ENOUGH, bins) for each, bins in zip(starts, fine, strict=False))


def _spans(finest: Grain, cell: Integers, period: Integers) -> list[tuple[int, int]]:
    """Bits and months of all spans that those of a grain nest in, those that tell most first; alike ones once."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for bits in (finest.bits, *(each for each in CELLS if each < finest.bits)):
        cells = np.unique(cell >> (finest.bits - bits)).size
        for months in (each for each in PERIODS if not each % finest.months):
            times = np.unique(period // (months // finest.months)).size
            found.setdefault((cells, times), (bits, months))
    return [found[size] for size in sorted(found, key=lambda size: worth(*size), reverse=True)]


def _evenly(scales: Scales, feature: int, joints: int) -> bytes:
    fine = scales.quantizers[feature].bins
    return bytes(sorted({*range(0, fine, max(fine // joints, 1))} | _fixed(scales, feature)))


def _halved(starts: bytes, scales: Scales, feature: int) -> bytes:
    fixed = _fixed(scales, feature)
    return bytes(sorted({0, *[start for start in starts if start not in fixed][::2]} | fixed & {*starts}))


def _fixed(scales: Scales, feature: int) -> set[int]:
    """Where fine bins that many rows share begin and end."""
    many = np.flatnonzero(scales.masses[feature] >= _SHARED_BY_MANY)
    return {int(code) for code in (*many, *(many + 1)) if code < scales.quantizers[feature].bins}
