"""Blocks: strata of neighbouring places, packed into frames that are opened when a question needs them.

A block is what is held in memory, stored, moved and cached. Opening one costs time proportional to its strata and days,
and to the paths of those strata that are in scope; only the frames of the features asked for are opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from synopsis.sketch import columns, days, streams, stretches, tilts
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.evenly import Evenly, turns
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.packing import packed, roughly, unpacked
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import Strata
from synopsis.sketch.streams import Odds
from synopsis.sketch.stretches import Stretching
from synopsis.sketch.tilts import Tilts

#: How much more streams may take, which need not be opened whole.
_QUICKER: Final = 1.02

#: The same for bins: in brazil it makes 2% less of them when it takes its time, so that columns are no longer then.
_LESS: Final = 0.98

#: Part of what a general compressor makes in a hurry below which it need not take its time: in six data sets there was
#: no block of which it then made less than streams do.
_PLAINLY_LESS: Final = 0.95

#: How much more days may take that need not be opened whole, as a part of what paths take.
_SPARE: Final = 0.01

#: Bytes of the sizes of all heads but the last, which stand before them.
_SIZES: Final = 12

#: No places.


@dataclass(frozen=True)
class Block:
    """Packed strata."""

    place_low: int  #: the first and the last place in it, by their positions in the sketch's table
    place_high: int
    period_low: int
    period_high: int
    kept: int  #: how many paths it has
    share: float | None  #: of the rows, whose paths stay, where days tell which; None where these are counted
    weekly: bool  #: whether days are bits of weeks
    #: Keys, runs, rows of days, and paths of days where these are counted; or keys, runs, and days, all as columns.
    head: bytes
    bins: tuple[bytes, ...]  #: a frame a feature
    #: A frame with the words that streams have, features x streams, then words, a feature each; or nothing, then ranks.
    paths: tuple[bytes, ...]
    stretches: tuple[bytes, ...] = ()  #: a frame a feature, where they are kept

    def moved(self, places: int) -> Block:
        """The same block, its places so many positions later."""
        return replace(self, place_low=self.place_low + places, place_high=self.place_high + places)

    @property
    def strata(self) -> int:
        """How many strata it has."""
        keys = self.keys
        return columns.Reading(keys).rows if columns.is_columns(keys) else int(unpacked(keys).shape[1])

    @property
    def rows(self) -> int:
        """How many rows it counted."""
        heads = self._heads
        if columns.is_columns(heads[0]):
            many, (_, _, length) = columns.opened_lines(heads[0])[1], columns.opened_lines(heads[1])
            of_strata = np.add.reduceat(length, np.cumsum(many) - many)
            return int(days.opened_apart(heads[2], self.share is None, of_strata)[0].sum())
        plain = unpacked(heads[2])
        return int((np.unpackbits(plain) if self.weekly else plain).sum())

    @property
    def keys(self) -> bytes:
        """The frame of what is known of strata."""
        return self._heads[0]

    @property
    def _heads(self) -> tuple[bytes, ...]:
        """The packed keys of strata, of runs, rows of days, and paths of days or nothing."""
        sizes = [int.from_bytes(self.head[at : at + 4], "little") for at in range(0, _SIZES, 4)]
        ends = np.cumsum((_SIZES, *sizes)).tolist()
        return tuple(self.head[begin:end] for begin, end in pairwise((*ends, len(self.head))))

    @property
    def nbytes(self) -> int:
        """Bytes of all frames."""
        return len(self.head) + sum(sum(map(len, frames)) for frames in (self.bins, self.paths, self.stretches))


def closed(strata: Strata, contexts: Contexts, evenly: Evenly | None = None) -> Block:
    """Strata as a block; which days have paths may be known `evenly`."""
    low = int(strata.run_place.min())
    paths = _closed_paths(contexts.ranks(strata.codes), np.diff(strata.path_offset), contexts.odds)
    bins = _closed_bins(strata)
    # Where something else has to be unpacked for every question, days may be as well.
    is_quick = paths[0] and all(map(columns.is_columns, bins))
    head, share = _closed_head(strata, low, evenly, sum(map(len, paths)) if is_quick else 0)
    return Block(
        low,
        int(strata.run_place.max()),
        int(strata.period.min()),
        int(strata.period.max()),
        int(strata.day_kept.sum()),
        share,
        days.is_weekly(strata.day_rows),
        head,
        bins,
        paths,
        tuple(map(stretches.closed, strata.stretches)) if strata.stretching is not None else (),
    )


def _closed_head(strata: Strata, low: int, evenly: Evenly | None, streams_bytes: int) -> tuple[bytes, float | None]:
    """Keys, runs and days of strata, and the share of rows with paths where days tell these.

    As columns, unless that takes too much beside streams of so many bytes. Without streams they cannot be: paths before
    a stratum have to be counted then, to know where its own begin.
    """
    keys, place = np.stack((strata.period, np.diff(strata.run_offset))), strata.run_place - low
    runs = np.stack((place, strata.run_first, strata.run_days))
    rows = days.closed(strata.day_rows, strata.run_first, strata.run_days)
    paths, share = days.closed_paths(strata.day_kept, strata.day_rows, strata.day_place, strata.day, evenly)
    found = _joined_head(packed(keys), packed(runs), rows, paths)
    if streams_bytes:
        laps = -(-np.diff(strata.path_offset) // streams.LAP)
        kept = strata.day_kept if share is None else None
        lines = (columns.closed_lines(np.stack((*keys, laps))), columns.closed_lines(runs))
        parts = (*lines, days.apart(strata.day_rows, kept, np.diff(strata.day_offset)))
        apart = _joined_head(*parts, b"")
        if all(parts) and len(apart) <= len(found) + _SPARE * streams_bytes:
            return apart, share
    return found, share


def _joined_head(*parts: bytes) -> bytes:
    return b"".join((*(len(each).to_bytes(4, "little") for each in parts[:-1]), *parts))


def _closed_paths(ranks: Codes, paths: Integers, odds: Odds) -> tuple[bytes, ...]:
    """Streams, unless a general compressor makes less of the ranks, as where they repeat, or strata have few paths."""
    words, lengths = streams.encoded(odds, ranks, streams.laps(paths))
    in_streams = (_closed_lengths(lengths), *(each.astype("<u2").tobytes() for each in words))
    size = sum(map(len, in_streams))
    if size <= _PLAINLY_LESS * sum(map(roughly, ranks)):
        return in_streams
    in_frames = (b"", *(packed(each) for each in ranks))
    return in_streams if size <= _QUICKER * sum(map(len, in_frames)) else in_frames


def _closed_lengths(lengths: Integers) -> bytes:
    """Features x streams: how many words each has."""
    plain = packed(lengths.reshape(-1))
    apart = columns.closed_lines(lengths) if lengths.size else b""
    return apart if apart and len(apart) <= len(plain) + 2 * _SPARE * lengths.sum() else plain


def opened(
    block: Block,
    contexts: Contexts,
    features: Sequence[int],
    where: tuple[Floats, Floats],
    stretching: Stretching | None = None,
) -> Strata:
    """The strata of a block, with bins, paths and stretches of these features only, in this order.

    `where` are all places, by which stretches are told, and which days have paths where days tell that.
    """
    heads, counted = block._heads, None
    if columns.is_columns(heads[0]):
        (period, runs, _), (place, first, lengths) = (columns.opened_lines(head) for head in heads[:2])
        of_strata = np.add.reduceat(lengths, np.cumsum(runs) - runs)
        day_rows, counted = days.opened_apart(heads[2], block.share is None, of_strata)
    else:
        (period, runs), (place, first, lengths) = (unpacked(head).astype(np.int64) for head in heads[:2])
        day_rows = days.opened(heads[2], block.weekly, first, lengths)
        counted = unpacked(heads[3])[0].astype(np.int64) if block.share is None else None
    if block.share is None:
        assert counted is not None
        day_kept = counted
    else:
        ordinal = np.arange(day_rows.size) - np.repeat(np.cumsum(lengths) - lengths - first, lengths)
        of_day = np.repeat(place + block.place_low, lengths)
        day_kept = Evenly(*where, block.share).paths(of_day, ordinal, day_rows)
    of_features = [_opened_bins(block.bins[feature], contexts.bins) for feature in features]
    run_offset = np.append(0, np.cumsum(runs))
    path_offset = np.append(0, np.cumsum(day_kept))[np.append(0, np.cumsum(lengths))[run_offset]]
    known: dict[int, Codes] = {}
    needed = contexts.needed(set(features))
    for feature, ranks in zip(needed, _opened_ranks(block, contexts, needed, np.diff(path_offset)), strict=True):
        known[feature] = contexts.code_of(feature, ranks, known)
    days_of = () if stretching is None or not block.stretches else stretching.days
    return Strata(
        period=period,
        starts=np.stack([each.starts for each in of_features]),
        ends=np.stack([each.ends for each in of_features]),
        counts=np.stack([each.counts for each in of_features]),
        tilt=np.stack([each.tilt for each in of_features]),
        run_offset=run_offset,
        run_place=place + block.place_low,
        run_first=first,
        run_days=lengths,
        run_turn=turns(*where)[place + block.place_low],
        day_rows=day_rows,
        day_kept=day_kept,
        codes=np.stack([known[feature] for feature in features]),
        stretches=tuple(stretches.opened(block.stretches[feature]) for feature in features if days_of),
        lengths=tuple(days_of[feature] for feature in features if days_of),
        stretching=stretching,
    )


class Bins(NamedTuple):
    """The bins of some strata, without their days and paths."""

    starts: Codes
    ends: Codes
    counts: Integers
    tilt: Tilts


def keys(block: Block) -> tuple[Integers, Integers]:
    """The period of every stratum, and one of its places, by which its group is known. Cost: proportional to runs."""
    of_strata, of_runs = block._heads[:2]
    if columns.is_columns(of_strata):
        (period, runs, _), (place, _, _) = columns.opened_lines(of_strata), columns.opened_lines(of_runs)
    else:
        (period, runs), (place, _, _) = (unpacked(head).astype(np.int64) for head in (of_strata, of_runs))
    return period, place[np.cumsum(runs) - runs] + block.place_low


def bins(block: Block, contexts: Contexts) -> Bins:
    """The bins of all features, features x strata. Cost: proportional to strata."""
    opened_bins = (_opened_bins(frame, contexts.bins) for frame in block.bins)
    return Bins(*(np.stack(each) for each in zip(*opened_bins, strict=True)))


def without_paths(block: Block) -> Block:
    """The same block, of which only `keys` and `bins` can be asked."""
    return replace(block, kept=0, paths=(), stretches=())


def _opened_ranks(block: Block, contexts: Contexts, features: list[int], paths: Integers) -> Codes:
    """Features x paths: the ranks of these features, given the paths of strata."""
    if not block.paths[0]:
        return np.stack([unpacked(block.paths[1 + feature]) for feature in features])
    if columns.is_columns(block.paths[0]):
        lengths = columns.opened_lines(block.paths[0])
    else:
        lengths = unpacked(block.paths[0]).astype(np.int64).reshape(len(block.paths) - 1, -1)
    words = [np.frombuffer(block.paths[1 + feature], "<u2") for feature in features]
    return streams.decoded(contexts.odds, features, words, lengths[features], streams.laps(paths))


def _closed_bins(strata: Strata) -> tuple[bytes, ...]:
    """Columns of numbers, a frame a feature, unless a general compressor makes less of all, as where strata are alike.

    It is given tables of bytes, widths, tilts and counts, counts by the byte, the highest first: bins change little
    from stratum to stratum, so strata run along the last axis, differences along the first.
    """
    tables, apart = [], []
    for starts, ends, tilt, own in zip(strata.starts, strata.ends, strata.tilt, strata.counts, strict=True):
        begins, numbers = tilts.numbered(starts, ends, tilt)
        widths, counts = np.diff(begins.T.astype(np.int16), axis=0, prepend=0).astype(np.uint8), own.T
        many = (int(counts.max(initial=0)).bit_length() + 7) // 8
        planes = [(counts >> (8 * byte)).astype(np.uint8) for byte in range(many - 1, -1, -1)]
        tables.append(np.concatenate((widths, numbers.T.view(np.uint8), *planes)))
        wide, shapes = widths.astype(np.int64), columns.turned(numbers.T.astype(np.int64))
        apart.append(columns.closed([wide[:1], wide[1:], shapes, counts[:-1], counts[-1:]]))
    size = sum(map(len, apart))
    if all(apart) and size <= _LESS * sum(map(roughly, tables)):
        return tuple(apart)
    in_frames = tuple(map(packed, tables))
    return tuple(apart) if all(apart) and size <= _QUICKER * sum(map(len, in_frames)) else in_frames


def _opened_bins(frame: bytes, bins: int) -> Bins:
    if columns.is_columns(frame):
        reading = columns.Reading(frame)
        first, wide, shapes, own, absent = (reading.group(size) for size in (1, bins, bins, bins, 1))
        widths, numbers = np.concatenate((first, wide)), columns.straightened(shapes).astype(np.int8)
        counts = np.concatenate((own, absent)).T
    else:
        table = unpacked(frame)
        widths, numbers = table[: bins + 1], table[bins + 1 : 2 * bins + 1].view(np.int8)
        counts = np.zeros((table.shape[1], bins + 1), np.int64)
        for plane in table[2 * bins + 1 :].reshape(-1, bins + 1, table.shape[1]):
            counts = counts << 8 | plane.T
    starts, ends, tilt = tilts.read(np.cumsum(widths, axis=0, dtype=np.uint8).T, numbers.T)
    return Bins(starts, ends, counts, tilt)
