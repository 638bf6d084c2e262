"""Shelves: blocks side by side, and what opening some of them for a question takes, made once.

A question names places, days and features. Of the blocks that hold such places it opens the days, the bins of these
features, and the streams of the strata in scope alone, all blocks in one call of machine code (`decoding`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.blocks import Block
from synopsis.sketch.columns import BEHIND, is_columns
from synopsis.sketch.compiled import Later
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.evenly import Turns, threshold
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.packing import plain_bytes
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import Strata
from synopsis.sketch.stretches import Stretching
from synopsis.sketch.tilts import Tilts

if TYPE_CHECKING:
    from synopsis.sketch import decoding, ranking, reading
else:
    decoding, ranking, reading = (Later(f"synopsis.sketch.{name}") for name in ("decoding", "ranking", "reading"))

#: All frames of a block: its head, bins, paths and stretches.
Frames = tuple[bytes, ...]

#: Choices of features that are remembered, a kilobyte each.
_REMEMBERED: Final = 256

#: Tables of ranks are kept where they take no more than this part of the frames; else each question makes its own.
_TABLES: Final = 0.2

#: What is plain where nothing is packed.
_NOTHING: Final = np.empty(0, np.uint8)


class Wanted(NamedTuple):
    """Features that a question names, and those that are needed to find their codes, parents first."""

    features: tuple[int, ...]
    needed: tuple[int, ...]
    positions: Integers  #: the features as an array
    all_positions: Integers  #: the needed as an array
    stretched: Integers  #: which of the features are wanted with their stretches
    stretch_days: Integers  #: and how long these are
    frames: Integers  #: which of the frames of a block
    picked: Callable[[Frames], Frames]  #: these of all frames

    @classmethod
    def of(cls, features: Sequence[int], days: Sequence[int], contexts: Contexts) -> Wanted:
        """What these features need, whose stretches have so many days; 0 where they are not wanted."""
        needed, all_features = contexts.needed(set(features)), len(contexts.parents)
        words = 1 + all_features
        bins, paths = [1 + each for each in features], [words, *(words + 1 + each for each in needed)]
        stretched = [at for at, own in enumerate(days) if own]
        stretches = [words + 1 + all_features + features[at] for at in stretched]
        frames = [0, *bins, *stretches, *paths]
        return cls(
            tuple(features),
            tuple(needed),
            np.array(features, np.int64),
            np.array(needed, np.int64),
            np.array(stretched, np.int64),
            np.array([days[at] for at in stretched], np.int64),
            np.array(frames),
            itemgetter(*frames),
        )

    @property
    def parts(self) -> tuple[int, int]:
        """How many frames of a block are tables, and how many are words or lines."""
        return len(self.features) + self.stretched.size, len(self.needed)


class Decoded(NamedTuple):
    """Strata as they come from machine code: what `Strata` begins with, in its order, then what it would find out."""

    period: Integers
    starts: Codes
    ends: Codes
    counts: Integers
    tilt: Tilts
    run_offset: Integers
    run_place: Integers
    run_first: Integers
    run_days: Integers
    run_turn: Turns
    day_rows: Integers
    day_kept: Integers
    codes: Codes
    day_offset: Integers
    day: Integers
    stretches: Integers  #: features with stretches x FACTS x as many as there are at most
    stretch_offset: Integers  #: the same features x one more
    stretch_shift: Floats
    stretch_count: Integers  #: of each of these features

    def strata(self, wanted: Wanted, stretching: Stretching | None, *, even: bool) -> Strata:
        """The same as strata."""
        many = self.stretch_count.tolist()
        facts = tuple(own[:, :size] for own, size in zip(self.stretches, many, strict=True))
        lengths = tuple(wanted.stretch_days.tolist())
        found = Strata(*self[:13], facts, lengths, stretching=stretching if lengths else None, even=even)
        offsets = tuple(own[: size + 1] for own, size in zip(self.stretch_offset, many, strict=True))
        shifts = tuple(own[:size] for own, size in zip(self.stretch_shift, many, strict=True))
        vars(found).update(day_offset=self.day_offset, day=self.day, stretch_offsets=offsets, stretch_shifts=shifts)
        return found


@dataclass(frozen=True, eq=False)
class Shelf:
    """Blocks, and arrays of what is known of each: blocks along them."""

    frames: Sequence[Frames]
    contexts: Contexts
    sizes: Integers  #: blocks x frames: bytes
    is_packed: NDArray[np.bool_]  #: blocks x frames: whether it has to be unpacked as a whole
    place_low: Integers
    place_high: Integers
    weekly: NDArray[np.bool_]
    told: Integers  #: how it is known which days have paths
    below: NDArray[np.uint64]
    latitude: NDArray[np.uint64]  #: places, as bits
    longitude: NDArray[np.uint64]

    @classmethod
    def of(cls, blocks: Sequence[Block], contexts: Contexts, where: tuple[Floats, Floats]) -> Shelf:
        """A shelf of blocks; `where` are all places."""
        frames = [(block.head, *block.bins, *block.paths, *block.stretches) for block in blocks]
        return cls(
            frames,
            contexts,
            np.array([[*map(len, each)] for each in frames], np.int64).reshape(len(blocks), -1 if blocks else 0),
            np.array([_packed(block) for block in blocks], np.bool_).reshape(len(blocks), -1 if blocks else 0),
            np.array([block.place_low for block in blocks], np.int64),
            np.array([block.place_high for block in blocks], np.int64),
            np.array([block.weekly for block in blocks], np.bool_),
            np.array([_told(block.share) for block in blocks], np.int64),
            np.array([threshold(block.share or 0.0) for block in blocks], np.uint64),
            where[0].view(np.uint64),
            where[1].view(np.uint64),
        )

    def wanted(self, features: Sequence[int], days: Sequence[int] = ()) -> Wanted:
        """What these features need, with stretches of so many days; 0 where they are not wanted."""
        known, key = self._wanted, (tuple(features), tuple(days))
        if key not in known:
            if len(known) >= _REMEMBERED:
                known.clear()
            known[key] = Wanted.of(*key, self.contexts)
        return known[key]

    @cached_property
    def _wanted(self) -> dict[tuple[tuple[int, ...], tuple[int, ...]], Wanted]:
        return {}

    @cached_property
    def _known(self) -> tuple[Any, ...]:
        """What machine code is told of all blocks: shares of ranks, and the tables made of them, where these are small
        beside the frames; then what is known of each block, and of places.
        """
        shares, bits = self.contexts.odds.shares, self.contexts.odds.bits
        features, before, _ = shares.shape
        is_kept = features * before << bits <= _TABLES * self.sizes.sum()
        tables = ranking.ranks_of(shares, np.arange(features if is_kept else 0), bits)
        blocks = (self.place_low, self.weekly, self.told, self.below, self.latitude, self.longitude)
        return shares, bits, *tables, *blocks

    @cached_property
    def _parents(self) -> tuple[Any, ...]:
        """What makes codes of ranks. Arrays that nobody may write to would be looked at more closely at every call."""
        contexts = self.contexts
        return contexts.parents.copy(), contexts.centres.copy(), contexts.code_table, contexts.bins

    def given(
        self,
        wanted: Wanted,
        chosen: NDArray[np.bool_],
        first_day: int,
        last_day: int,
        in_scope_only: bool = False,
    ) -> tuple[Any, ...] | None:
        """What `decoding` takes to open all blocks that have a chosen place; None where there are none.

        With `in_scope_only` paths behind the last in scope are not read. Cost: proportional to the bytes of the frames.
        """
        places = (self.place_low, self.place_high)
        which, sizes, is_packed = reading.looked_up(chosen, *places, self.sizes, self.is_packed, wanted.frames)
        if not which.size:
            return None
        picked, all_frames = wanted.picked, self.frames
        frames: list[bytes] = []
        for number in which.tolist():
            frames += picked(all_frames[number])
        frames.append(BEHIND)
        joined, plain = np.frombuffer(bytearray().join(frames), np.uint8), _NOTHING  # one that may be written to
        if is_packed:
            plain = plain_bytes(*reading.packs(joined, sizes, *wanted.parts))
        return (
            plain,
            joined,
            sizes,
            which,
            *self._known,
            chosen,
            first_day,
            last_day,
            wanted.positions,
            wanted.all_positions,
            *self._parents,
            wanted.stretch_days,
            in_scope_only,
        )

    def decoded(
        self,
        wanted: Wanted,
        chosen: NDArray[np.bool_],
        first_day: int,
        last_day: int,
        in_scope_only: bool = False,
    ) -> Decoded | None:
        """The strata of all blocks that have a chosen place and a day in a span; None where there are none.

        Cost: proportional to the bytes of the frames of days and bins that are opened, and to the paths of the strata.
        """
        given = self.given(wanted, chosen, first_day, last_day, in_scope_only)
        if given is None:
            return None
        fields, *others = decoding.decoded(*given)
        return Decoded(*fields, *others) if fields[0].size else None

    def opened(
        self,
        features: Sequence[int],
        chosen: NDArray[np.bool_],
        first_day: int,
        last_day: int,
        *,
        even: bool = False,
        stretching: Stretching | None = None,
    ) -> Strata | None:
        """The same as strata. `even` says whether their paths come at even steps of time, `stretching` how stretches
        are told, if at all."""
        days = () if stretching is None else tuple(stretching.days[feature] for feature in features)
        wanted = self.wanted(features, days)
        found = self.decoded(wanted, chosen, first_day, last_day)
        return None if found is None else found.strata(wanted, stretching, even=even)


def _told(share: float | None) -> int:
    """How the paths of days are known, given the share of the rows whose paths stay where days tell which."""
    if share is None:
        return decoding.COUNTED
    return decoding.ALL if share >= 1.0 else decoding.BY_TURN


def _packed(block: Block) -> list[bool]:
    """Frames: whether each has to be unpacked as a whole; words of streams, and columns, do not."""
    lengths, *words = block.paths
    tables = (block.keys, *block.bins)
    return [
        *(not is_columns(frame) for frame in tables),
        lengths != b"" and not is_columns(lengths),
        *([lengths == b""] * len(words)),
        *([True] * len(block.stretches)),
    ]
