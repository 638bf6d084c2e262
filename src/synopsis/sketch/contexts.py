"""Contexts: what a feature's bin is likely to be, given the bins of two others, so that paths pack smaller.

Dew point follows from temperature and humidity, gusts follow the wind. For every pair of bins of its two parents a
feature has a centre, its median bin there (or absent); a code becomes its rank by distance from that centre, and ranks
are mostly small. `streams` packs them by their odds. Parents stand before their children, so that codes come back
feature by feature, all paths at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.moments import Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.streams import Odds

_NOBODY = -1

#: Codes beyond which tables of pairs would cost more than they spare.
_MOST_SYMBOLS = 32

#: Paths looked at to find parents and centres.
_SAMPLE = 50_000


@dataclass(frozen=True)
class Contexts:
    """Two parents a feature, the centre for every pair of their bins, and the odds of ranks."""

    parents: NDArray[np.int64]  #: features x 2: positions of earlier features, or -1
    centres: Codes  #: features x codes of the first parent x codes of the second
    odds: Odds

    @classmethod
    def fit(cls, codes: Codes, bins: int) -> Contexts:
        """The parents that make ranks smallest, found greedily: the best one, then the best to go with it.

        Cost: features squared times the paths looked at.
        """
        features, symbols = len(codes), bins + 1
        if symbols > _MOST_SYMBOLS:
            nobody = np.full((features, 2), _NOBODY, np.int64)
            return cls(nobody, np.zeros((features, 1, 1), np.uint8), Odds.of(codes, symbols))
        sample = codes[:, :: max(codes.shape[1] // _SAMPLE, 1)]
        parents = np.full((features, 2), _NOBODY, np.int64)
        centres = np.zeros((features, symbols, symbols), np.uint8)
        for feature in range(features):
            best, bits = centres[feature], _entropy(sample[feature])
            for turn in range(2):
                tried = [(_NOBODY, bits, best)]
                for other in range(feature):
                    pair = np.array([other, _NOBODY] if turn == 0 else [parents[feature, 0], other])
                    table = _centres(sample, feature, pair, symbols)
                    tried.append((other, _entropy(_ranked(sample, feature, pair, table)), table))
                chosen, fewer, table = min(tried, key=lambda each: each[1])
                if fewer > bits - 0.02:  # not worth a table
                    break
                parents[feature, turn], bits, best = chosen, fewer, table
            centres[feature] = best
        return cls.between(codes, parents, centres)

    @classmethod
    def between(cls, codes: Codes, parents: NDArray[np.int64], centres: Codes) -> Contexts:
        """These parents and centres, with the odds that the codes of paths tell, which stand in the order of time."""
        return cls(parents, centres, Odds.of(_ranks(codes, parents, centres), centres.shape[1]))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.parents.nbytes + self.centres.nbytes + self.odds.nbytes

    @property
    def bins(self) -> int:
        """How many bins a feature has at most."""
        return int(self.odds.levels.shape[2]) - 1

    def same(self, other: Contexts) -> bool:
        """Whether both make the same of codes."""
        pairs = ((self.parents, other.parents), (self.centres, other.centres), (self.odds.levels, other.odds.levels))
        return all(np.array_equal(one, two) for one, two in pairs)

    def ranks(self, codes: Codes) -> Codes:
        """Codes, features x paths, as ranks. Cost is proportional to codes."""
        return _ranks(codes, self.parents, self.centres)

    def needed(self, features: set[int]) -> list[int]:
        """These features and all that their codes depend on, parents first."""
        wanted = set(features)
        for feature in range(len(self.parents) - 1, -1, -1):
            if feature in wanted:
                wanted |= self._parents[feature]
        return sorted(wanted)

    @cached_property
    def _parents(self) -> list[set[int]]:
        return [{parent for parent in pair if parent != _NOBODY} for pair in self.parents.tolist()]

    @property
    def code_table(self) -> Codes:
        """Centre x rank: the code."""
        return _tables(self.centres.shape[1])[1]

    def code_of(self, feature: int, ranks: Codes, known: dict[int, Codes]) -> Codes:
        """The codes of one feature from its ranks, its parents' codes being known."""
        if self.parents[feature, 0] == _NOBODY:
            return ranks
        first, second = _pair(known, self.parents[feature], ranks.size)
        centre = _looked_up(self.centres[feature], first, second)
        return _looked_up(_tables(self.centres.shape[1])[1], centre, ranks)


def _ranks(codes: Codes, parents: NDArray[np.int64], centres: Codes) -> Codes:
    """Features x paths: the rank of each code."""
    return np.stack(
        [
            codes[feature] if pair[0] == _NOBODY else _ranked(codes, feature, pair, centres[feature])
            for feature, pair in enumerate(parents)
        ]
    )


def _looked_up(table: Codes, row: Codes, column: Codes) -> Codes:
    """Entries of a square table; one index of 16 bits is six times as fast as two of 8."""
    at = row.astype(np.uint16)
    at *= table.shape[1]
    at += column
    return np.asarray(table.reshape(-1).take(at))


def _pair(codes: Codes | dict[int, Codes], parents: Integers, size: int) -> tuple[Codes, Codes]:
    nothing = np.zeros(size, np.uint8)
    first, second = (codes[int(parent)] if parent != _NOBODY else nothing for parent in parents)
    return first, second


def _ranked(codes: Codes, feature: int, parents: Integers, centres: Codes) -> Codes:
    centre = _looked_up(centres, *_pair(codes, parents, codes.shape[1]))
    return _looked_up(_tables(centres.shape[0])[0], centre, codes[feature])


def _centres(codes: Codes, feature: int, parents: Integers, symbols: int) -> Codes:
    """The median bin for every pair of the parents' bins, or absent where most are."""
    first, second = _pair(codes, parents, codes.shape[1])
    key = (first.astype(np.int64) * symbols + second) * symbols + codes[feature]
    counts = np.bincount(key, minlength=symbols**3).reshape(symbols, symbols, symbols)
    reached = np.cumsum(counts[..., :-1], axis=-1)
    median = np.argmax(2 * reached >= np.maximum(reached[..., -1:], 1), axis=-1)
    return np.where(2 * counts[..., -1] > counts.sum(axis=-1), symbols - 1, median).astype(np.uint8)


@lru_cache(maxsize=64)
def _tables(symbols: int) -> tuple[Codes, Codes]:
    """Centre x code to rank, and centre x rank to code. Absent, the last code, ranks last, or first as a centre."""
    code = np.arange(symbols)
    distance = np.abs(code[:, None] - code[None, :]) * 2 + (code[None, :] > code[:, None])
    distance[:, -1] = 2 * symbols
    distance[-1] = code  # after an absent centre: absent first, then in order
    distance[-1, -1] = -1
    order = np.argsort(distance, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(code, order.shape), axis=1)
    return ranks.astype(np.uint8), order.astype(np.uint8)


def _entropy(codes: NDArray[np.integer]) -> float:
    """Bits a code, if each were packed by itself."""
    counts = np.bincount(codes)
    share = counts[counts > 0] / codes.size
    return float(-(share * np.log2(share)).sum())
