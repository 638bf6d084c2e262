"""Gathering: what some of the rows tell, counted batch by batch, until it is passed on as tallies, meetings and sums.

Rows come as ticks. They are counted in machine code, on arrays that grow with the places, days and strata met, and only
the rows that are kept stay: their tallies and meetings are those that `Tallies.of` and `Meetings.of` make of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.sketch.compiled import Later
from synopsis.sketch.fine import FineSums
from synopsis.sketch.joints import Grain
from synopsis.sketch.meetings import Meetings, cells_of
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.packing import packed
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.spells import slowed
from synopsis.sketch.stretches import FACTS, StretchSums
from synopsis.sketch.tallies import DAY_US, SYMBOLS, Tallies, groups, in_order, periods
from synopsis.sketch.ticks import ABSENT_TICK

if TYPE_CHECKING:
    from synopsis.sketch import counting
else:
    counting = Later("synopsis.sketch.counting")

#: Ticks in one integer.
PER_INTEGER = 4

#: Bytes that are gathered before they are passed on.
MOST_BYTES = 1 << 28

#: Numbers of things for which there is room at first.
_FEW = 1 << 8

#: Days by which the calendar is asked for more than is needed.
_DAYS_MORE = 366


class _Numbered:
    """Pairs with numbers, in the order in which they came, and whatever else is known of each; found by a table."""

    def __init__(self, rows: int) -> None:
        self.known = np.zeros((rows, _FEW), np.int64)
        self.table = np.full(2 * _FEW, -1)

    def grow(self, count: int) -> None:
        """Room for twice as many. Cost: proportional to the pairs."""
        self.known = _longer(self.known, axis=1)
        self.table = np.full(2 * self.known.shape[1], -1)
        counting.filed(self.known[:2, :count], self.table)


class Gathering:
    """Rows of one partition as counts, and those that are kept."""

    def __init__(self, layout: PathLayout, scales: Scales, grain: Grain | None, most_bytes: int = MOST_BYTES) -> None:
        self.layout, self.scales, self.grain, self._most = layout, scales, grain, most_bytes
        features = len(scales.ticks)
        self._code_of = np.stack([scales.code_of_tick(feature) for feature in range(features)])
        joints = range(len(grain.starts)) if grain else ()
        sizes = np.array(grain.sizes if grain else (), np.int64)
        self._joint_of = np.stack([grain.joint(each) for each in joints]) if grain else np.empty((0, SYMBOLS), np.uint8)
        self._width = sizes
        # Each pair of features from a byte of its own on, as `packbits` would leave them.
        bytes_of = [(int(sizes[one] * sizes[other]) + 7) // 8 for one, other in (grain.pairs if grain else ())]
        self._pair_start = np.cumsum([0, *bytes_of])
        self._tick_rows = np.zeros((features, ABSENT_TICK + 1), np.int64)
        self._places = _Numbered(2)
        self._group, self._cell = np.zeros(_FEW, np.int64), np.zeros(_FEW, np.int64)
        self._last = np.full((_FEW, 2), -1)
        self._days, self._strata, self._spans = _Numbered(5), _Numbered(2), _Numbered(2)
        self._mass = np.zeros((features, _FEW, SYMBOLS), np.uint32)
        stretching, no_levels = layout.stretching, np.empty((0, ABSENT_TICK + 1), np.int32)
        self._level_of = no_levels if stretching is None else np.stack(stretching.levels_of_ticks(scales))
        self._day_sums = np.zeros((len(self._level_of), _FEW, FACTS), np.int64)
        self._met = np.zeros(_FEW * int(self._pair_start[-1]), np.uint8)
        self._kept_day, self._kept_us = np.empty(0, np.int64), np.empty(0, np.int64)
        self._kept_codes = np.empty((0, features), np.uint8)
        self._counts = np.zeros(4, np.int64)  # days, strata, spans, kept rows
        self._place_count = 0
        self._first_day, self._period_of, self._span_period_of = 0, np.empty(0, np.int64), np.empty(0, np.int64)
        self.rows = 0

    def add(self, latitude: Floats, longitude: Floats, local_us: Integers, packed_ticks: Sequence[Integers]) -> int:
        """Rows more, as far as there is room; how many were taken. Ticks are packed four to an integer.

        Cost: a pass over the rows, and one over each two features of each where meetings are kept.
        """
        if not local_us.size:
            return 0
        local_us = slowed(local_us, self.layout.spell)
        bits = _bits(latitude), _bits(longitude)
        ticks = np.stack(packed_ticks).view(np.uint16).reshape(len(packed_ticks), -1, PER_INTEGER)
        place = self._placed(latitude, longitude, bits)
        self._ask_calendar(local_us)
        self._make_room(local_us.size)
        layout, start = self.layout, 0
        threshold = np.uint64(layout.kept * 2.0**64) if layout.kept < 1.0 else np.uint64(0)
        while True:
            start = counting.counted(
                start,
                local_us.size,
                place,
                *bits,
                local_us,
                ticks,
                self._code_of,
                self._tick_rows,
                self._level_of,
                self._group,
                self._cell,
                self._first_day,
                self._period_of,
                self._span_period_of,
                self._last,
                self._days.table,
                self._days.known,
                self._day_sums,
                self._strata.table,
                self._strata.known,
                self._mass,
                self._spans.table,
                self._spans.known,
                self._joint_of,
                self._pair_start,
                self._width,
                self._met,
                layout.slot_us,
                layout.regular,
                layout.kept >= 1.0,
                threshold,
                layout.place_bits is None,
                self._kept_day,
                self._kept_us,
                self._kept_codes,
                self._counts,
            )
            if start == local_us.size or self.full:
                self.rows += start
                return int(start)
            self._grow()

    @property
    def full(self) -> bool:
        """Whether it is time to pass on what is gathered."""
        days, strata, spans, kept = (int(count) for count in self._counts)
        size = strata * self._mass[:, 0].nbytes + spans * int(self._pair_start[-1])
        size += days * (self._days.known[:, 0].nbytes + self._day_sums[:, 0].nbytes) + kept * (
            16 + self._kept_codes.shape[1]
        )
        return size >= self._most

    def _placed(self, latitude: Floats, longitude: Floats, bits: tuple[Integers, Integers]) -> Integers:
        """The number of each row's place; moving objects stand in cells, by their south-western corners."""
        bits_of_places = self.layout.place_bits
        if bits_of_places is not None:
            cells = geohash.encode(latitude, longitude, bits_of_places)
            south, west, _, _ = geohash.decode(cells, bits_of_places)
            bits = _bits(south), _bits(west)
        place, start, before = np.empty(latitude.size, np.int64), 0, self._place_count
        while True:
            start, self._place_count = counting.placed(
                *bits, start, place, self._places.table, self._places.known, self._place_count
            )
            if start == latitude.size:
                break
            self._places.grow(self._place_count)
            self._group, self._cell = _longer(self._group), _longer(self._cell)
            self._last = np.concatenate((self._last, np.full_like(self._last, -1)))
        if self._place_count > before:
            new = slice(before, self._place_count)
            where = _degrees(self._places.known[0, new]), _degrees(self._places.known[1, new])
            region = self.layout.region_bits
            self._group[new] = np.arange(new.start, new.stop) if region is None else groups(*where, region)
            if self.grain is not None:
                self._cell[new] = cells_of(*where, self.grain.bits)
        return place

    def _ask_calendar(self, local_us: Integers) -> None:
        """Know the periods of all days of these rows. Cost: proportional to the days between the first and the last."""
        first, last = int(local_us.min()) // DAY_US, int(local_us.max()) // DAY_US
        size = self._period_of.size
        if size and self._first_day <= first and last < self._first_day + size:
            return
        if size:
            first, last = min(first, self._first_day), max(last, self._first_day + size - 1)
        days = np.arange(first - _DAYS_MORE, last + _DAYS_MORE) * DAY_US
        self._first_day, self._period_of = first - _DAYS_MORE, periods(days, self.layout.months)
        real = days * self.layout.spell
        self._span_period_of = periods(real, self.grain.months) if self.grain else self._period_of

    def _make_room(self, rows: int) -> None:
        """Room for so many kept rows more."""
        kept = int(self._counts[3])
        if self._kept_us.size >= kept + rows:
            return
        more = 2 * kept + rows - self._kept_us.size
        self._kept_day, self._kept_us = (
            np.concatenate((each, np.empty(more, np.int64))) for each in (self._kept_day, self._kept_us)
        )
        more_codes = np.empty((more, self._kept_codes.shape[1]), np.uint8)
        self._kept_codes = np.concatenate((self._kept_codes, more_codes))

    def _grow(self) -> None:
        """Room for twice as many of whatever fills its arrays."""
        days, strata, spans, _ = (int(count) for count in self._counts)
        if days == self._days.known.shape[1]:
            self._days.grow(days)
            self._day_sums = _longer(self._day_sums, axis=1)
        if strata == self._strata.known.shape[1]:
            self._strata.grow(strata)
            self._mass = _longer(self._mass, axis=1)
        if spans == self._spans.known.shape[1]:
            self._spans.grow(spans)
            longer = (_longer(each) for each in self._met_of_pairs())
            self._met = np.concatenate([each.reshape(-1) for each in (*longer, np.empty(0, np.uint8))])

    def _met_of_pairs(self) -> list[NDArray[np.uint8]]:
        """For each pair of features, spans x bytes."""
        room = self._met.size // max(int(self._pair_start[-1]), 1)
        ends = (self._pair_start[1:-1] * room).tolist()
        return [each.reshape(room, -1) for each in np.split(self._met, ends)] if self._met.size else []

    # --- passing on ---------------------------------------------------------------------------------------------------

    def tallies(self) -> Tallies:
        """The tallies of all rows added. Cost: proportional to strata and days, and to kept rows, which are sorted."""
        days, strata, _, kept = (int(count) for count in self._counts)
        layout, timed = self.layout, self.layout.place_bits is None
        latitude, longitude = (_degrees(bits) for bits in self._places.known[:, : self._place_count])
        places, rank = _ranked(longitude, latitude)
        group, period = self._strata.known[:, :strata]
        group = rank[group] if layout.region_bits is None else group
        stratum_order, stratum_rank = _ranked(period, group)
        known = self._days.known[:, :days]
        day_stratum, day_place = stratum_rank[known[counting.DAY_STRATUM]], rank[known[counting.DAY_PLACE]]
        day_order = np.lexsort((known[counting.DAY], day_place, day_stratum))
        day, kept_us, codes = self._kept_day[:kept], self._kept_us[:kept], self._kept_codes[:kept]
        # Runs are numbered in the order of stratum and place, in which days are.
        changes = np.diff(day_stratum[day_order], prepend=-1) | np.diff(day_place[day_order], prepend=-1)
        run = np.empty(days, np.int64)
        run[day_order] = np.cumsum(changes != 0) - 1
        order = in_order(run[day], kept_us, codes.T, timed)
        day = day[order]
        of_days = day_stratum[day_order], day_place[day_order], known[counting.DAY, day_order]
        stretched: tuple[StretchSums, ...] = ()
        if layout.stretching is not None:
            stretched = StretchSums.of_days(layout.stretching, *of_days, self._day_sums[:, day_order])
        return Tallies(
            layout.region_bits,
            timed,
            latitude[places],
            longitude[places],
            group[stratum_order],
            period[stratum_order],
            self._mass[:, stratum_order],
            *of_days,
            known[counting.DAY_ROWS, day_order],
            day_stratum[day],
            day_place[day],
            kept_us[order],
            np.ascontiguousarray(codes[order].T),
            stretched,
        )

    def sums(self) -> FineSums:
        """Rows and sums in every fine bin."""
        return FineSums.of(self.scales, self._tick_rows)

    def meetings(self) -> Meetings | None:
        """Which bins of two features met. Cost: in proportion to the bits."""
        if self.grain is None:
            return None
        days, _, spans, _ = (int(count) for count in self._counts)
        cell, period = self._spans.known[:, :spans]
        order, rank = _ranked(period, cell)
        span, day = rank[self._days.known[counting.DAY_SPAN, :days]], self._days.known[counting.DAY, :days]
        first, last = (np.full(spans, end) for end in (np.iinfo(np.int64).max, np.iinfo(np.int64).min))
        spell = self.layout.spell
        np.minimum.at(first, span, day * spell)
        np.maximum.at(last, span, day * spell + spell - 1)
        frames = tuple(packed(met[order]) for met in self._met_of_pairs())
        return Meetings(self.grain, cell[order], period[order], first, last, frames)


def _bits(degrees: Floats) -> Integers:
    """The bits of positions; zero has two signs and one place."""
    return (degrees + 0.0).view(np.int64)


def _degrees(bits: Integers) -> Floats:
    return np.ascontiguousarray(bits).view(np.float64)


def _longer(array: NDArray[Any], axis: int = 0) -> NDArray[Any]:
    """Twice as long, with zeros."""
    return np.concatenate((array, np.zeros_like(array)), axis=axis)


def _ranked(second: NDArray[Any], first: NDArray[Any]) -> tuple[NDArray[np.intp], Integers]:
    """The order by one number and then by another, and the place of each in it."""
    order = np.lexsort((second, first))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return order, rank
