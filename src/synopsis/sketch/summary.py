"""The summary: packed strata of all places within one layout, with what is needed to read them.

A summary is a set of blocks. Two of the same layout add: strata of one group and period join (`joining`), others come
to stand side by side; and one that has grown too large is thinned: an even part of its paths stays, that which would
have been chosen at once where slots tell which (`hours`), and the exact counts say as before what each of them stands
for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.sketch import blocks, foretelling, joining, thinning
from synopsis.sketch.blocks import Block
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.effects import PATHS, Effects
from synopsis.sketch.evenly import Evenly
from synopsis.sketch.lumps import Lumps
from synopsis.sketch.meetings import Meetings
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.shelf import Shelf
from synopsis.sketch.strata import Strata
from synopsis.sketch.tallies import EVERYTHING, Tallies, distinct_places, groups, numbered

#: Paths of a block: enough to pack well, few enough to be opened in a fraction of a millisecond.
BLOCK_PATHS = 12_000

#: Strata of a block, where there are few paths.
BLOCK_STRATA = 1_024

#: Bins of a feature: as few as serve, and more where all paths stay anyhow.
BINS = (15, 23, 31, 47, 63)

#: Bytes of stretches, in those that paths may have, beyond which longer ones leave more to paths.
_MOST_STRETCHES = 0.5

#: Days of the longest stretches.
_MOST_DAYS = 180

#: A span with any day in it.
_ANY_DAY = (-1 << 40, 1 << 40)

#: Part of the bytes for paths that is aimed at when they are thinned.
_AIMED = 0.99

#: Features of a moving object's path behind its own: latitude, longitude, local time of day.
WHEREABOUTS = 3

_NONE = np.empty(0, np.int64)

#: Bits of a position's geohash, by which places are sorted, so that neighbours stand together.
ORDER_BITS = 50


@dataclass(frozen=True)
class Summary:
    """Blocks, and what they share. A block's places are positions in `latitude` and `longitude`."""

    layout: PathLayout
    latitude: Floats
    longitude: Floats
    scales: Scales
    contexts: Contexts
    blocks: tuple[Block, ...]
    meetings: Meetings | None = None  #: which bins of two features ever met; None where there is no room for them
    effects: Effects | None = None  #: how far paths err, beside what neighbours tell; None where it was not learnt

    @property
    def nbytes(self) -> int:
        """Bytes of all frames and arrays."""
        shared = self.latitude.nbytes + self.longitude.nbytes + self.scales.nbytes + self.contexts.nbytes
        return shared + sum(block.nbytes for block in self.blocks) + self._meetings_bytes

    @property
    def _meetings_bytes(self) -> int:
        return 0 if self.meetings is None else self.meetings.nbytes

    @property
    def strata(self) -> int:
        """How many strata there are."""
        return sum(block.strata for block in self.blocks)

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return sum(block.rows for block in self.blocks)

    @property
    def paths(self) -> int:
        """How many paths are kept."""
        return sum(block.kept for block in self.blocks)

    @property
    def grain(self) -> str:
        """The layout in words."""
        kept = f"{self.layout.bins} bins, {self.layout.kept:.1%} of the paths"
        places = f"{self.latitude.size:,} {'cells' if self.layout.moving else 'places'} x {self.span}, {kept}"
        bits, spell = self.layout.region_bits, self.layout.spell
        shared = places if bits is None else f"{places}, bins shared by cells of {bits} bits"
        return shared if spell == 1 else f"{shared}, rows counted by spells of {spell} days"

    @property
    def span(self) -> str:
        """The length of a period in words."""
        return in_words(self.layout.months)

    @property
    def parts(self) -> dict[str, int]:
        """Bytes by part."""
        return {
            "places": self.latitude.nbytes + self.longitude.nbytes,
            "scales": self.scales.nbytes,
            "contexts": self.contexts.nbytes,
            "days": sum(len(block.head) for block in self.blocks),
            "bins": sum(len(frame) for block in self.blocks for frame in block.bins),
            "paths": sum(len(frame) for block in self.blocks for frame in block.paths),
            "stretches": sum(len(frame) for block in self.blocks for frame in block.stretches),
            "meetings": self._meetings_bytes,
        }

    def beside(self, other: Summary) -> Summary:
        """Both side by side; their layouts, scales and contexts are the same, their places may be."""
        size = self.latitude.size
        return replace(
            self,
            latitude=np.concatenate((self.latitude, other.latitude)),
            longitude=np.concatenate((self.longitude, other.longitude)),
            blocks=(*self.blocks, *(block.moved(size) for block in other.blocks)),
            meetings=self._met_with(other),
        )

    def __add__(self, other: Summary) -> Summary:
        """Both as one: strata of one group and period join where those of `other` were made to (`lumps`).

        Blocks in which nothing changes stay as they are. Cost: proportional to the others, whose paths are packed
        again.
        """
        places = _Places.of(self, other)
        of_self, of_other = self._keys(places.first, places), other._keys(places.second, places)
        into = _matched(of_self, of_other)
        changed = np.zeros(len(self.blocks), np.bool_)
        changed[of_self.block[into >= 0]] = True
        for number, block in enumerate(self.blocks):
            changed[number] |= not places.stays(block)
        parts = [self._at(places.first, block) for block, now in zip(self.blocks, changed, strict=True) if now]
        news = [other._at(places.second, block) for block in other.blocks]
        if parts and news:
            new, there = Strata.joined(news), Strata.joined(parts)
            into = into[changed[of_self.block]]
            made = joining.joined(there, new, into, self.scales, timed=not self.layout.moving)
            effects = self._rounded_again(there, new, made, other.rows)
        elif parts or news:
            made, effects = Strata.joined(parts or news), self.effects
        else:
            return replace(self, meetings=self._met_with(other))
        even = self.layout.evenly(places.latitude, places.longitude)
        closed = [blocks.closed(made.take(run), self.contexts, even) for run in cut(made)]
        kept = [
            block.moved(int(places.first[block.place_low]) - block.place_low)
            for block, now in zip(self.blocks, changed, strict=True)
            if not now
        ]
        return replace(
            self,
            layout=replace(self.layout, clocked=self.layout.clocked and other.layout.clocked),
            latitude=places.latitude,
            longitude=places.longitude,
            blocks=tuple(sorted((*kept, *closed), key=lambda block: (block.place_low, block.period_low))),
            meetings=self._met_with(other),
            effects=effects,
        )

    def _rounded_again(self, there: Strata, new: Strata, made: Strata, rows: int) -> Effects | None:
        """What is known of errors, now that stretches that are there have taken up so many new rows."""
        if self.effects is None or made.stretching is None:
            return self.effects
        before, more, after = ([each.size - 1.0 for each in strata.stretch_offsets] for strata in (there, new, made))
        part = min(float(made.rows.sum()) / max(self.rows + rows, 1), 1.0)
        return self.effects.rounded_again(before, more, after, part)

    def _met_with(self, other: Summary) -> Meetings | None:
        return None if self.meetings is None or other.meetings is None else self.meetings + other.meetings

    def _at(self, place: Integers, block: Block) -> Strata:
        """The strata of one block with all features, whose places have these numbers."""
        strata = self.opened_block(block, range(len(self.scales.quantizers)))
        return replace(strata, run_place=place[strata.run_place])

    def _keys(self, place: Integers, places: _Places) -> _Keys:
        """Group and period of every stratum, and its block; places have these numbers."""
        found = [blocks.keys(block) for block in self.blocks] or [(_NONE, _NONE)]
        period, own = (np.concatenate(each) for each in zip(*found, strict=True))
        where = place[own]
        bits = self.layout.region_bits
        group = where if bits is None else groups(places.latitude, places.longitude, bits)[where]
        return _Keys(group, period, np.repeat(np.arange(len(found)), [each[0].size for each in found]))

    @property
    def only_bins(self) -> Summary:
        """The same without paths, stretches and meetings: what a batch has to know that is to be added (`lumps`)."""
        return replace(self, blocks=tuple(map(blocks.without_paths, self.blocks)), meetings=None)

    def lumps(self, tallies: Tallies) -> Lumps | None:
        """The bins of strata that tallies are of; None where there are none. Where several are, the one with most rows.

        Cost: proportional to strata, and to the bins of blocks that have some of them.
        """
        places = _Places.of(self, tallies)
        keys = self._keys(places.first, places)
        group = places.second[tallies.group] if self.layout.region_bits is None else tallies.group
        into = _matched(keys, _Keys(group, tallies.period, np.zeros_like(tallies.period)))
        known = np.unique(keys.block[into >= 0])
        if not known.size:
            return None
        opened = [blocks.bins(self.blocks[number], self.contexts) for number in known.tolist()]
        found = blocks.Bins(*(np.concatenate(each, axis=1) for each in zip(*opened, strict=True)))
        stratum = into[np.isin(keys.block, known)]
        rows = found.counts[0].sum(axis=1)
        order = np.lexsort((-rows, stratum))
        order = order[stratum[order] >= 0]
        order = order[np.diff(stratum[order], prepend=-1) != 0]
        starts, ends, counts, tilt = found.starts, found.ends, found.counts, found.tilt
        return Lumps(stratum[order], starts[:, order], ends[:, order], counts[:, order], tilt[:, order])

    def opened(self, features: Sequence[int]) -> list[Strata]:
        """The strata of every block, with these features."""
        return [self.opened_block(block, features) for block in self.blocks]

    def opened_block(self, block: Block, features: Sequence[int]) -> Strata:
        """The strata of one block, with these features."""
        return blocks.opened(block, self.contexts, features, self._where, self.layout.stretching)

    @property
    def _where(self) -> tuple[Floats, Floats]:
        return self.latitude, self.longitude

    def adds_to(self, other: Summary) -> bool:
        """Whether both have the same layout, scales and contexts, so that they add up."""
        return (
            replace(self.layout, kept=other.layout.kept) == other.layout
            and self.scales.same(other.scales)
            and self.contexts.same(other.contexts)
        )

    def of_strata(self, parts: Sequence[Strata], features: Sequence[int]) -> Summary:
        """A summary of some of these strata, whose features are those of the summary in this order.

        Places that have no strata any more are left out, and meetings, which are not told apart by strata. Cost:
        proportional to the strata, which are packed again.
        """
        every = tuple(features) == tuple(range(len(self.scales.quantizers)))
        contexts = self.contexts
        if parts and not every:
            contexts = Contexts.fit(np.concatenate([part.codes for part in parts], axis=1), self.layout.bins)
        whole = Strata.joined(parts) if parts else None
        used = np.empty(0, np.int64) if whole is None else np.unique(whole.run_place)
        closed: tuple[Block, ...] = ()
        if whole is not None:
            moved = replace(whole, run_place=np.searchsorted(used, whole.run_place))
            even = self.layout.evenly(self.latitude[used], self.longitude[used])
            closed = tuple(blocks.closed(moved.take(run), contexts, even) for run in cut(moved))
        stretching = None if self.layout.stretching is None else self.layout.stretching.of_features(features)
        return replace(
            self,
            layout=replace(self.layout, stretching=stretching),
            latitude=self.latitude[used],
            longitude=self.longitude[used],
            scales=self.scales.of_features(features),
            contexts=contexts,
            blocks=closed,
            meetings=None,
            effects=None if self.effects is None else self.effects.of_features(features),
        )

    def opened_within(
        self,
        features: Sequence[int],
        chosen: NDArray[np.bool_],
        first_day: int,
        last_day: int,
        *,
        stretched: bool = True,
    ) -> Strata | None:
        """The strata that have a chosen place and a day in a span, of all blocks, with these features.

        `stretched` says whether stretches are wanted, where there are any.
        """
        stretching = self.layout.stretching if stretched else None
        given = (features, chosen, first_day, last_day)
        return self.shelf.opened(*given, even=self.layout.even, stretching=stretching)

    @cached_property
    def shelf(self) -> Shelf:
        """The blocks as questions open them."""
        return Shelf.of(self.blocks, self.contexts, self._where)

    @property
    def learnt(self) -> Summary:
        """The summary, knowing how far its paths err. Cost: that of a question about a quarter of a million paths."""
        if self.layout.moving or not self.paths:
            return replace(self, effects=None)
        some = replace(self, blocks=self.blocks[:: -(-self.paths // PATHS)])
        everywhere = np.ones(self.latitude.size, np.bool_)
        strata = some.opened_within(range(len(self.scales.quantizers)), everywhere, *_ANY_DAY)
        if strata is None:
            return replace(self, effects=None)
        rounded = () if self.effects is None or strata.stretching is None else self.effects.rounded
        return replace(self, effects=replace(Effects.of(strata, self.scales), rounded=rounded))

    def thinned(self, share: float) -> Summary:
        """The summary with this share of its paths. Cost: proportional to all of it."""
        everything = range(len(self.scales.quantizers))
        kept = [self._thinned(block, self.opened_block(block, everything), share) for block in self.blocks]
        return replace(self, layout=replace(self.layout, kept=self.layout.kept * share), blocks=tuple(kept))

    def _thinned(self, block: Block, strata: Strata, share: float) -> Block:
        even, stretching = None, self.layout.stretching
        if block.share is not None and replace(self.layout, kept=0.0).evenly(*self._where):  # days go on to tell
            even = Evenly(*self._where, block.share * share)
        found = thinning.thinned(strata, self.layout, share, even)
        if stretching is not None:
            found = foretelling.restretched(found, strata, self.scales, stretching)
        return blocks.closed(found, self.contexts, even)

    def rebinned(self, bins: int) -> Summary:
        """The summary with so many bins, fewer than now; each holds whole ones. Cost: proportional to all of it."""
        everything = range(len(self.scales.quantizers))
        parts = [joining.rebinned(self.opened_block(block, everything), self.scales, bins) for block in self.blocks]
        contexts = Contexts.fit(np.concatenate([part.codes for part in parts], axis=1), bins)
        even = self.layout.evenly(*self._where)
        closed = tuple(blocks.closed(part, contexts, even) for part in parts)
        return replace(self, layout=replace(self.layout, bins=bins), contexts=contexts, blocks=closed)

    def rescaled(self, scales: Scales) -> Summary:
        """The summary told by scales that know more rows. Cost: proportional to all of it, which is packed again."""
        everything, even = range(len(self.scales.quantizers)), self.layout.evenly(*self._where)
        opened = (self.opened_block(block, everything) for block in self.blocks)
        told = (joining.rescaled(strata, self.scales, scales) for strata in opened)
        closed = tuple(blocks.closed(strata, self.contexts, even) for strata in told)
        return replace(self, scales=scales, blocks=closed)

    def lengthened(self) -> Summary:
        """The summary with stretches of twice the days, as far as these may be so long, or else without any.

        Cost: proportional to all of it.
        """
        stretching, effects = self.layout.stretching, self.effects
        if stretching is not None:
            is_longer = [2 * each <= _MOST_DAYS for each in stretching.days]
            days = tuple(2 * each if longer else each for each, longer in zip(stretching.days, is_longer, strict=True))
            stretching = replace(stretching, days=days) if any(is_longer) else None
            effects = effects and effects.put_together(is_longer)
        everything, even = range(len(self.scales.quantizers)), self.layout.evenly(*self._where)
        opened = (self.opened_block(block, everything) for block in self.blocks)
        longer = (joining.lengthened(strata, self.scales, stretching) for strata in opened)
        closed = (blocks.closed(strata, self.contexts, even) for strata in longer)
        return replace(self, layout=replace(self.layout, stretching=stretching), blocks=tuple(closed), effects=effects)

    def within(self, memory: int) -> Summary:
        """The summary in so many bytes, or as few as there can be.

        First with fewer bins, if there are more than serve where not all paths stay; then, by turns, with longer
        stretches and fewer paths; and at last without meetings.
        """
        found = self
        while found.nbytes > memory:
            layout, parts = found.layout, found.parts
            room = memory - (found.nbytes - parts["paths"])
            if layout.bins > BINS[0] and not layout.moving:
                found = found.rebinned(max(bins for bins in BINS if bins < layout.bins))
            elif layout.stretching is not None and parts["stretches"] > _MOST_STRETCHES * room:
                found = found.lengthened()
            elif found.paths:
                found = found.thinned(max(room / parts["paths"] * _AIMED, 0.0))
            else:
                return replace(found, meetings=None)
        return found


class _Keys(NamedTuple):
    """Strata: by what they join, and where they are."""

    group: Integers
    period: Integers
    block: Integers


def _matched(keys: _Keys, others: _Keys) -> Integers:
    """Which of the others, no two of which are alike, each is like; -1: none."""
    size = keys.group.size
    _, number = numbered(np.concatenate((keys.group, others.group)), np.concatenate((keys.period, others.period)))
    found = np.full(int(number.max(initial=-1)) + 1, -1)
    found[number[size:]] = np.arange(others.group.size)
    return np.asarray(found[number[:size]])


@dataclass(frozen=True)
class _Places:
    """The places of two, each once, neighbours together."""

    latitude: Floats
    longitude: Floats
    first: Integers  #: places of the one: where each is
    second: Integers  #: places of the other

    @classmethod
    def of(cls, one: Summary, other: Summary | Tallies) -> _Places:
        """Cost: places are sorted."""
        latitude, longitude, number = distinct_places(
            np.concatenate((one.latitude, other.latitude)), np.concatenate((one.longitude, other.longitude))
        )
        order = np.argsort(place_order(latitude, longitude), kind="stable")
        rank = np.empty(order.size, np.int64)
        rank[order] = np.arange(order.size)
        own = rank[number]
        return cls(latitude[order], longitude[order], own[: one.latitude.size], own[one.latitude.size :])

    def stays(self, block: Block) -> bool:
        """Whether the places of a block of the one are what they were, one after the other."""
        own = self.first[block.place_low : block.place_high + 1]
        return bool((np.diff(own) == 1).all())


def in_words(months: int) -> str:
    """So many months, in words.

    >>> [in_words(months) for months in (1, 12, EVERYTHING)]
    ['1 month', '12 months', 'all time']
    """
    return "all time" if months >= EVERYTHING else "1 month" if months == 1 else f"{months} months"


def place_order(latitude: Floats, longitude: Floats) -> NDArray[np.int64]:
    """A key by which places are sorted, neighbours together: the geohash of each."""
    return geohash.encode(latitude, longitude, ORDER_BITS)


def cut(strata: Strata) -> list[slice]:
    """Runs of strata that make good blocks: whole strata, each run with a few thousand paths."""
    paths = np.diff(strata.path_offset)
    number = np.maximum(
        (np.cumsum(paths) - 1) // BLOCK_PATHS if paths.size else paths, np.arange(paths.size) // BLOCK_STRATA
    )
    starts = np.flatnonzero(np.append(True, number[1:] != number[:-1])) if paths.size else np.empty(0, np.int64)
    ends = np.append(starts[1:], paths.size)
    return [slice(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]
