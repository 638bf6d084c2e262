"""Meetings: which bins of two features ever met in one row, a bit for each two, for spans of cell and period.

A combination of values whose bins never met was surely not there. Where it has two features, and a scope takes whole
spans, bins that met did so in a row of that scope: nothing is wrong but what lies within a bin. Bits unite: coarser
spans and bins are made of finer ones, batches add up, in any order.

A bitmap of which a share p is set takes H(p) bits for each bit at best; zstd comes near that, or below it where
neighbours are alike. A Bloom filter that is wrong for 1% takes 9.6 bits for every combination that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.sketch.joints import CELLS, JOINTS, Grain, folded, settled, starts_of
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.packing import packed, unpacked
from synopsis.sketch.scales import Codes, Scales
from synopsis.sketch.tallies import DAY_US, numbered, periods

#: What spans are known by, and between which days they have rows.
KEYS: Final = ("cell", "period", "first_day", "last_day")

#: The share of the budget that meetings may take.
SHARE: Final = 1 / 50

#: Rows whose bits are set at once: so many that what is computed of them stays in the cache.
_ROWS_AT_ONCE: Final = 1 << 16

#: Bits are hardly ever packed to less than one in so many.
_PACKED: Final = 10

#: Features whose pairs are tried when meetings are planned.
_TRIED: Final = 4


@dataclass(frozen=True, eq=False)
class Meetings:
    """Spans in the order of their keys, and for every pair of features a frame: spans x joint bins of both, as bits."""

    grain: Grain
    cell: Integers
    period: Integers
    first_day: Integers  #: of each span: local days
    last_day: Integers
    frames: tuple[bytes, ...]

    @classmethod
    def of(cls, grain: Grain, latitude: Floats, longitude: Floats, local_us: Integers, fine: Codes) -> Meetings:
        """The meetings of rows with these fine codes, features x rows. Cost: a pass over the rows for every pair."""
        day = local_us // DAY_US
        (cell, period), span = numbered(cells_of(latitude, longitude, grain.bits), periods(local_us, grain.months))
        first, last = (np.full(cell.size, end) for end in (np.iinfo(np.int64).max, np.iinfo(np.int64).min))
        np.minimum.at(first, span, day)
        np.maximum.at(last, span, day)
        joint = [grain.joint(feature)[fine[feature]].astype(np.int32) for feature in range(len(grain.starts))]
        span = span.astype(np.int32 if cell.size * max(grain.sizes, default=0) ** 2 < 2**31 else np.int64)
        frames = []
        for one, height in enumerate(grain.sizes):
            met = [np.zeros((cell.size, height * width), np.bool_) for width in grain.sizes[one + 1 :]]
            for start in range(0, span.size, _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                base = span[rows] * height + joint[one][rows]
                for other, bits in enumerate(met, one + 1):
                    bits.reshape(-1)[base * grain.sizes[other] + joint[other][rows]] = True
            frames += [packed(np.packbits(bits, axis=1)) for bits in met]
        return cls(grain, cell, period, first, last, tuple(frames))

    @classmethod
    def joined(cls, parts: Sequence[Meetings]) -> Meetings:
        """All of them together, at the finest grain that all nest in. Cost: in proportion to their bits."""
        grain = reduce(Grain.common, (part.grain for part in parts))
        parts = [part.coarsened(grain) for part in parts]
        if len(parts) == 1:
            return parts[0]
        cell, period, first, last = (np.concatenate([getattr(part, name) for part in parts]) for name in KEYS)

        def bits(at: int) -> NDArray[np.uint8]:
            return np.concatenate([unpacked(part.frames[at]) for part in parts])

        return _united(grain, cell, period, first, last, bits)

    def __add__(self, other: Meetings) -> Meetings:
        return Meetings.joined((self, other))

    def __len__(self) -> int:
        return int(self.cell.size)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        keys = sum(getattr(self, name).nbytes for name in KEYS)
        return int(self.grain.nbytes + keys + sum(map(len, self.frames)))

    def met(self, one: int, other: int, spans: Integers | None = None) -> NDArray[np.bool_]:
        """Spans, or some of them, x joint bins of one feature x those of another. Cost: in proportion to these."""
        if one > other:
            return self.met(other, one, spans).transpose(0, 2, 1)
        height, width = self.grain.sizes[one], self.grain.sizes[other]
        rows = unpacked(self.frames[self.grain.pairs.index((one, other))])
        rows = rows if spans is None else rows[spans]
        bits = np.unpackbits(rows, axis=1, count=height * width)
        return bits.view(np.bool_).reshape(len(rows), height, width)

    def take(self, which: Integers | NDArray[np.bool_]) -> Meetings:
        """Those of some spans."""
        keys = {name: getattr(self, name)[which] for name in KEYS}
        return replace(self, **keys, frames=tuple(packed(unpacked(frame)[which]) for frame in self.frames))

    def coarsened(self, grain: Grain) -> Meetings:
        """The same in a grain that this one nests in. Cost: in proportion to the bits."""
        if grain == self.grain:
            return self
        cell, period = self.cell >> (self.grain.bits - grain.bits), self.period // (grain.months // self.grain.months)

        def bits(at: int) -> NDArray[np.uint8]:
            if grain.starts == self.grain.starts:
                return unpacked(self.frames[at])
            one, other = grain.pairs[at]
            rows, columns = (grain.merged(self.grain, feature) for feature in (one, other))
            fewer = np.logical_or.reduceat(self.met(one, other), rows, axis=1)
            fewer = np.logical_or.reduceat(fewer, columns, axis=2)
            return np.packbits(fewer.reshape(len(self), rows.size * columns.size), axis=1)

        return _united(grain, cell, period, self.first_day, self.last_day, bits)

    def within(self, room: int, scales: Scales) -> Meetings | None:
        """In the best grain that takes no more than so many bytes; None where none does.

        Cost: in proportion to the bits, for each of a few grains in turn.
        """
        if self.nbytes <= room:
            return self
        known = {self.grain.starts: self}

        def fitting(grain: Grain) -> Meetings | None:
            if not _may_fit(grain, self.grain, self.cell, self.period, room):
                return None
            if grain.starts not in known:  # bins are folded once, for all spans
                known[grain.starts] = self.coarsened(replace(self.grain, starts=grain.starts))
            found = known[grain.starts].coarsened(grain)
            return found if found.nbytes <= room else None

        levels = folded(self.grain.starts, scales)
        return settled(self.grain, levels, self.cell, self.period, scales, fitting)


def cells_of(latitude: Floats, longitude: Floats, bits: int) -> Integers:
    """The cell of each position; of no bits, everywhere."""
    return geohash.encode(latitude, longitude, CELLS[0]) >> (CELLS[0] - bits)


def _may_fit(grain: Grain, finest: Grain, cell: Integers, period: Integers, room: int) -> bool:
    """Whether the bits of spans of another grain may be packed to so many bytes."""
    keys = cell >> (finest.bits - grain.bits), period // (grain.months // finest.months)
    return bool(numbered(*keys)[0][0].size * grain.cells / 8 <= room * _PACKED)


def _united(
    grain: Grain,
    cell: Integers,
    period: Integers,
    first_day: Integers,
    last_day: Integers,
    bits: Callable[[int], NDArray[np.uint8]],
) -> Meetings:
    """Spans of the same key as one, given the bits of every pair, spans x bytes."""
    keys, number = numbered(cell, period)
    order = np.argsort(number, kind="stable")
    starts = np.searchsorted(number[order], np.arange(keys[0].size))
    if not starts.size:
        return Meetings(grain, *keys, first_day, last_day, tuple(packed(bits(at)) for at in range(len(grain.pairs))))
    return Meetings(
        grain,
        *keys,
        np.minimum.reduceat(first_day[order], starts),
        np.maximum.reduceat(last_day[order], starts),
        tuple(packed(np.bitwise_or.reduceat(bits(at)[order], starts, axis=0)) for at in range(len(grain.pairs))),
    )


# --- planning ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planned:
    """The grain in which meetings are gathered, and the bytes that they will take."""

    grain: Grain
    nbytes: int


def planned(
    scales: Scales, latitude: Floats, longitude: Floats, local_us: Integers, fine: Codes, factor: float, room: int
) -> Planned | None:
    """The best grain for so many bytes, from some rows of all places; None where none is coarse enough.

    `factor` says how many rows there are for each of these. Cost: in proportion to the rows, for each of some grains.
    """
    if len(fine) < 2 or not local_us.size or not room:
        return None
    finest = Grain(CELLS[0], 1, ())
    levels = list(dict.fromkeys(starts_of(scales, len(fine), joints) for joints in JOINTS))
    where = latitude, longitude, local_us
    (cell, period), _ = numbered(cells_of(latitude, longitude, finest.bits), periods(local_us, 1))

    def fitting(grain: Grain) -> Planned | None:
        if not _may_fit(grain, finest, cell, period, room):
            return None
        expected = _expected(grain, where, fine, factor)
        return Planned(grain, int(expected)) if expected <= room else None

    return settled(finest, levels, cell, period, scales, fitting)


def _expected(grain: Grain, where: tuple[Floats, Floats, Integers], fine: Codes, factor: float) -> float:
    """The bytes of all rows' meetings: those of some features of these rows, grown as they do when rows double.

    Each time they double, there is less that is new: by as much less as the last time.
    """
    chosen = np.unique(np.linspace(0, len(fine) - 1, _TRIED).astype(np.int64))
    few = replace(grain, starts=tuple(grain.starts[feature] for feature in chosen))
    latitude, longitude, local_us = where

    def size(step: int) -> float:
        rows = slice(None, None, step)
        return float(
            np.log2(Meetings.of(few, latitude[rows], longitude[rows], local_us[rows], fine[chosen, rows]).nbytes)
        )

    quarter, half, whole = size(4), size(2), size(1)
    slower = np.clip((whole - half) / max(half - quarter, 1e-9), 0.0, 1.0)
    doubled = np.log2(factor)
    grown = (whole - half) * slower * (doubled if slower == 1.0 else (1.0 - slower**doubled) / (1.0 - slower))
    return float(2.0 ** (whole + grown) * grain.cells / few.cells)
