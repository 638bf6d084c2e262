"""Streams: ranks of paths as few bits, each by how often it follows the one before; any stream is read by itself.

A general compressor packs a block as a whole, and a question that needs one stratum of it unpacks all. Here the paths
of a stratum are streams of their own, at most `LAP` paths each and one for every feature, so that only what is in
scope is decoded. A stream is one large number, as asymmetric numeral systems have it (Duda 2013, in the way of
ranges): coding a rank multiplies it by one over the rank's share, so that likely ranks take a fraction of a bit; what
does not fit into 32 bits goes out in words of 16. The number begins as nothing, and so a stream costs hardly more than
its ranks.

Shares are those of all ranks that follow the same rank, the first of a stream following 0. They are rounded to steps
of a twelfth of an octave, one byte each, for paths that nobody has seen when they are settled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Integers
from synopsis.sketch.scales import Codes

if TYPE_CHECKING:
    from synopsis.sketch import encoding
else:
    encoding = Later("synopsis.sketch.encoding")

Words = NDArray[np.uint16]
Shares = NDArray[np.uint16]

#: Paths of a stream: where strata have more, coding is done for so many side by side.
LAP: Final = 1_024

#: Ranks beyond which those that follow each are too many to know apart.
MOST_BEFORE: Final = 32

#: Bits of a word, and the least number that another rank is decoded from while there are words left.
WORD: Final = 16
FLOOR: Final = 1 << WORD

#: Steps of an octave to which shares are rounded: a 24th of an octave off on either side costs nobody a thousandth.
_STEPS: Final = 12


@dataclass(frozen=True)
class Odds:
    """How likely each rank is after each other, of every feature."""

    levels: Codes  #: features x ranks before x ranks: logarithms of shares; one rank before where they make no matter

    @classmethod
    def of(cls, ranks: Codes, symbols: int) -> Odds:
        """The odds of these ranks, features x paths, in their order. Cost is proportional to ranks."""
        before = symbols if symbols <= MOST_BEFORE else 1
        levels = np.zeros((len(ranks), before, symbols), np.uint8)
        most = _octaves(symbols) * _STEPS
        for feature, own in enumerate(ranks):
            follows = own[:-1].astype(np.int64) if before > 1 else np.zeros(max(own.size - 1, 0), np.int64)
            seen = np.bincount(follows * symbols + own[1:], minlength=before * symbols).reshape(before, symbols)
            # Where little was seen, ranks are as likely as they are anywhere.
            usual = np.bincount(own, minlength=symbols) + 0.5
            counts = seen + usual / usual.sum()
            shares = counts / counts.sum(axis=1, keepdims=True)
            levels[feature] = np.clip(np.rint((np.log2(shares) + _octaves(symbols)) * _STEPS), 0, most)
        return cls(levels)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.levels.nbytes

    @property
    def bits(self) -> int:
        """Shares are parts of two to the power of this."""
        return _octaves(self.levels.shape[2])

    @cached_property
    def shares(self) -> Shares:
        """Features x ranks before x (ranks + 1): where the share of each begins among all, and the last one ends."""
        whole = 1 << self.bits
        found = np.zeros((*self.levels.shape[:2], self.levels.shape[2] + 1), np.uint16)
        for feature, rows in enumerate(self.levels):
            for before, levels in enumerate(rows):
                weight = np.rint(np.exp2(levels / _STEPS)).astype(np.int64)
                share = np.maximum(weight * whole // weight.sum(), 1)
                while (over := int(share.sum()) - whole) > 0:  # each has some, and so the others have less
                    most = np.argsort(-share, kind="stable")[: min(over, int((share > 1).sum()))]
                    share[most] -= 1
                share[np.argmax(share)] -= over
                found[feature, before, 1:] = np.cumsum(share)
        return found


def _octaves(symbols: int) -> int:
    """From the least share to all: enough for as many ranks. Two fewer are as fast, and take 0.4% more bytes."""
    return 10 if symbols <= MOST_BEFORE else 12


def laps(paths: Integers) -> Integers:
    """The paths of streams, given those of strata: all streams of a stratum but its last are full.

    >>> laps(np.array([3, 0, 2_500])).tolist()
    [3, 1024, 1024, 452]
    """
    many = -(-paths // LAP)
    found = np.full(many.sum(), LAP, np.int64)
    last = np.cumsum(many)[many > 0] - 1
    found[last] = paths[many > 0] - (many[many > 0] - 1) * LAP
    return found


@dataclass(frozen=True)
class _Turns:
    """Streams side by side: turn by turn, the ranks of all that are as long, the longest first."""

    order: Integers  #: streams, the longest first
    active: Integers  #: turns: how many streams have so many ranks
    begin: Integers  #: turns: where their ranks begin
    place: Integers  #: paths: where each stands

    @classmethod
    def of(cls, sizes: Integers) -> _Turns:
        order = np.argsort(-sizes, kind="stable")
        longest = int(sizes.max(initial=0))
        active = sizes.size - np.searchsorted(np.sort(sizes), np.arange(longest), side="right")
        begin = np.cumsum(active) - active
        rank = np.empty(sizes.size, np.int64)
        rank[order] = np.arange(sizes.size)
        turn = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return cls(order, active, begin, begin[turn] + np.repeat(rank, sizes))


def encoded(odds: Odds, ranks: Codes, sizes: Integers) -> tuple[list[Words], Integers]:
    """The words of every feature's streams, one after the other, and features x streams: how many words each has.

    Ranks are features x paths, sizes the paths of each stream. Cost: proportional to ranks.
    """
    lengths, found = np.zeros((len(ranks), sizes.size), np.int64), []
    for own, shares, length in zip(np.ascontiguousarray(ranks), odds.shares, lengths, strict=True):
        words = np.empty(own.size + 2 * sizes.size, np.uint16)
        begin = encoding.streamed(own, sizes, shares, odds.bits, words, length)
        found.append(words[begin:].copy())
    return found, lengths


def decoded(odds: Odds, features: list[int], words: list[Words], lengths: Integers, sizes: Integers) -> Codes:
    """The ranks of these features, given the words of each, features x streams: how many are of each, and their paths.

    The plain way. Cost: as that of encoding.
    """
    turns, bits = _Turns.of(sizes), odds.bits
    row, order = np.arange(len(features))[:, None], turns.order
    shares = odds.shares[features].astype(np.int64)
    rank_of = np.repeat(
        np.tile(np.arange(shares.shape[2] - 1, dtype=np.uint8), shares.shape[0] * shares.shape[1]),
        np.diff(shares, axis=2).reshape(-1),
    ).reshape(len(features), shares.shape[1], 1 << bits)
    flat = np.concatenate([*words, np.zeros(1, np.uint16)]).astype(np.int64)
    end = np.cumsum(lengths.reshape(-1)).reshape(lengths.shape)
    at, end = (end - lengths)[:, order], end[:, order]
    number, before = np.zeros(at.shape, np.int64), np.zeros(at.shape, np.intp)
    found = np.empty((len(features), turns.place.size), np.uint8)

    def filled(many: int) -> None:
        known, place = number[:, :many], at[:, :many]
        lacks = (known < FLOOR) & (place < end[:, :many])
        number[:, :many] = np.where(lacks, known << WORD | flat[np.where(lacks, place, -1)], known)
        at[:, :many] += lacks

    for _ in range(2):
        filled(sizes.size)
    for turn, many in enumerate(turns.active.tolist()):
        known, follows = number[:, :many], before[:, :many]
        slot = known & ((1 << bits) - 1)
        rank = rank_of[row, follows, slot]
        start, stop = shares[row, follows, rank], shares[row, follows, rank.astype(np.intp) + 1]
        number[:, :many] = (stop - start) * (known >> bits) + slot - start
        filled(many)
        if shares.shape[1] > 1:
            before[:, :many] = rank
        found[:, turns.begin[turn] : turns.begin[turn] + many] = rank
    return found[:, turns.place]
