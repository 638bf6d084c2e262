"""Tallies: rows counted by stratum, place, day and fine bin, with the rows whose paths stay; what executors exchange.

Tallies add: those of any parts of the rows, in any order, join to those of all rows. Bins are chosen only when all are
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.sketch import stretches
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.stretches import Levels, Stretching, StretchSums

DAY_US = 86_400_000_000

#: Months of a period that holds all time, and of those that may be chosen, each of which holds whole shorter ones.
EVERYTHING = 1_200
PERIODS = (1, 3, 6, 12, 24, 48, EVERYTHING)

#: Fine codes, absent among them.
SYMBOLS = 256

#: Keys are numbered by a table that has up to so many places for each of them.
_DENSE = 4

#: Odd numbers without a pattern, to mix bits with.
_GOLDEN, _ODD = np.uint64(0x9E3779B97F4A7C15), 0x2545F4914F6CDD1D


@dataclass(frozen=True)
class Tallies:
    """Counts by stratum, and kept rows. Places are sorted, strata by group and period.

    A stratum is a period of a group of places: of all in one cell of `region_bits`, or of a single place.
    """

    region_bits: int | None  #: None: every place is a group
    timed: bool  #: whether rows know their time of day, and not just their day
    latitude: Floats  #: places
    longitude: Floats
    group: Integers  #: strata: the cell, or the position of the place
    period: Integers
    mass: NDArray[np.uint32]  #: features x strata x fine codes: rows
    day_stratum: Integers  #: days on which places have rows, by stratum, place and day
    day_place: Integers
    day: Integers
    day_rows: Integers
    kept_stratum: Integers  #: kept rows, by stratum, place and time
    kept_place: Integers
    kept_us: Integers  #: local time
    kept_codes: Codes  #: features x kept rows
    stretched: tuple[StretchSums, ...]  #: of every length that features have; none where none are kept

    @classmethod
    def of(
        cls,
        latitude: Floats,
        longitude: Floats,
        period: Integers,
        local_us: Integers,
        fine: Codes,
        kept: NDArray[np.bool_],
        region_bits: int | None = None,
        timed: bool = True,
        levels: Levels | None = None,
        stretching: Stretching | None = None,
    ) -> Tallies:
        """The tallies of rows in any order, with stretches where levels are given, features x rows.

        Cost: two sorts of the rows, and a pass over their codes, and over their levels.
        """
        lat, lon, place = distinct_places(latitude, longitude)
        stratum_key, stratum = numbered(groups(lat, lon, region_bits)[place], period)
        run_key, run = numbered(stratum, place)
        day_key, at = numbered(run, local_us // DAY_US)
        mass = np.stack(
            [
                np.bincount(stratum * SYMBOLS + codes, minlength=len(stratum_key[0]) * SYMBOLS).astype(np.uint32)
                for codes in fine
            ]
        )
        day_stratum, day_place = run_key[0][day_key[0]], run_key[1][day_key[0]]
        stretched: tuple[StretchSums, ...] = ()
        if levels is not None and stretching is not None:
            day_sums = stretches.summed(levels, at, len(day_key[0]))
            stretched = StretchSums.of_days(stretching, day_stratum, day_place, day_key[1], day_sums)
        order = np.flatnonzero(kept)
        order = order[in_order(run[order], local_us[order], fine[:, order], timed)]
        return cls(
            region_bits,
            timed,
            lat,
            lon,
            *stratum_key,
            mass.reshape(len(fine), -1, SYMBOLS),
            day_stratum,
            day_place,
            day_key[1],
            np.bincount(at, minlength=len(day_key[0])),
            stratum[order],
            place[order],
            local_us[order],
            fine[:, order],
            stretched,
        )

    @classmethod
    def joined(cls, parts: Sequence[Tallies]) -> Tallies:
        """All of them added up. Cost: proportional to strata and kept rows, which are sorted anew."""
        sizes = np.cumsum([0, *(part.latitude.size for part in parts)])
        lat, lon, place_of = distinct_places(
            np.concatenate([part.latitude for part in parts]), np.concatenate([part.longitude for part in parts])
        )
        bits, timed = parts[0].region_bits, parts[0].timed

        def chained(name: str) -> NDArray[np.int64]:
            return np.concatenate([getattr(part, name) for part in parts])

        def places(name: str) -> Integers:
            moved = [getattr(part, name) + size for part, size in zip(parts, sizes, strict=False)]
            return np.asarray(place_of[np.concatenate(moved)])

        keys, stratum_of = numbered(places("group") if bits is None else chained("group"), chained("period"))
        before = np.cumsum([0, *(part.period.size for part in parts)])

        def strata(name: str) -> Integers:
            moved = [getattr(part, name) + size for part, size in zip(parts, before, strict=False)]
            return np.asarray(stratum_of[np.concatenate(moved)])

        mass = np.zeros((len(parts[0].mass), len(keys[0]), SYMBOLS), np.uint32)
        for part, start in zip(parts, before, strict=False):  # strata of one part are all different
            mass[:, stratum_of[start : start + part.period.size]] += part.mass
        run_key, run = numbered(strata("day_stratum"), places("day_place"))
        day_key, at = numbered(run, chained("day"))
        rows = np.bincount(at, chained("day_rows"), len(day_key[0])).astype(np.int64)
        parts_of = zip(parts, before, sizes, strict=False)
        moved = [
            [each.moved(stratum_of[stratum:], place_of[place:]) for each in part.stretched]
            for part, stratum, place in parts_of
        ]
        kept, kept_place, kept_us = strata("kept_stratum"), places("kept_place"), chained("kept_us")
        codes = np.concatenate([part.kept_codes for part in parts], axis=1)
        order = in_order(numbered(kept, kept_place)[1], kept_us, codes, timed)
        return cls(
            bits,
            timed,
            lat,
            lon,
            *keys,
            mass,
            run_key[0][day_key[0]],
            run_key[1][day_key[0]],
            day_key[1],
            rows,
            kept[order],
            kept_place[order],
            kept_us[order],
            codes[:, order],
            tuple(StretchSums.joined(each) for each in zip(*moved, strict=True)),
        )

    def parted(self, part: Integers) -> Iterator[tuple[int, Tallies]]:
        """The tallies of each part of the places, given its number for each place; no group has places in two parts.

        Cost: a pass over all, and one over those of each part.
        """
        names, part = np.unique(part, return_inverse=True)
        of_stratum = np.empty(self.period.size, np.int64)
        of_stratum[self.day_stratum] = part[self.day_place]
        places, place_number = _parted(part, names.size)
        strata, stratum_number = _parted(of_stratum, names.size)
        days, _ = _parted(part[self.day_place], names.size)
        rows, _ = _parted(part[self.kept_place], names.size)
        stretched = [_parted(part[each.place], names.size)[0] for each in self.stretched]
        each = zip(names.tolist(), places, strata, days, rows, strict=True)
        for at, (name, here, own, day, row) in enumerate(each):
            of_lengths = zip(self.stretched, stretched, strict=True)
            yield (
                name,
                Tallies(
                    self.region_bits,
                    self.timed,
                    self.latitude[here],
                    self.longitude[here],
                    place_number[self.group[own]] if self.region_bits is None else self.group[own],
                    self.period[own],
                    self.mass[:, own],
                    stratum_number[self.day_stratum[day]],
                    place_number[self.day_place[day]],
                    self.day[day],
                    self.day_rows[day],
                    stratum_number[self.kept_stratum[row]],
                    place_number[self.kept_place[row]],
                    self.kept_us[row],
                    self.kept_codes[:, row],
                    tuple(length.take(which[at]).moved(stratum_number, place_number) for length, which in of_lengths),
                ),
            )


def _parted(part: Integers, parts: int) -> tuple[list[NDArray[np.intp]], Integers]:
    """Which things are in each part, and the number of each in its own."""
    kind = np.uint16 if parts <= np.iinfo(np.uint16).max else np.int64
    order = np.argsort(part.astype(kind), kind="stable")  # NumPy counts numbers of 16 bits, and sorts others
    ends = np.cumsum(np.bincount(part, minlength=parts))
    number = np.empty(order.size, np.int64)
    number[order] = np.arange(order.size) - np.append(0, ends)[part[order]]
    return np.split(order, ends[:-1]), number


def groups(latitude: Floats, longitude: Floats, region_bits: int | None) -> Integers:
    """The group of each place: its number, or its cell."""
    if region_bits is None:
        return np.arange(latitude.size)
    return geohash.encode(latitude, longitude, region_bits)


def periods(local_us: Integers, months: int) -> Integers:
    """The period of each instant of local time: so many months, counted from 1970. The calendar is asked by days."""
    if not local_us.size:
        return local_us
    day = local_us // DAY_US
    first, last = int(day.min()), int(day.max())
    if last - first < local_us.size:
        return _periods(np.arange(first, last + 1), months)[day - first]
    return _periods(day, months)


def _periods(day: Integers, months: int) -> Integers:
    return np.asarray(day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) // months)


def in_order(run: Integers, local_us: Integers, codes: Codes, timed: bool) -> NDArray[np.intp]:
    """The order of kept rows: by run and time, and then in one that does not show in which order they came.

    Rows of one instant are mixed, so that neighbours differ as rows do; where only the day is known, rows are sorted by
    their codes, which packs them smallest.
    """
    if not timed:
        return np.lexsort((*codes, local_us, run))
    order = _by_two(run, local_us)
    same = (np.diff(run[order]) == 0) & (np.diff(local_us[order]) == 0)
    if same.any():  # hardly ever at stations
        among = np.flatnonzero(np.append(same, False) | np.append(False, same))
        rows = order[among]
        order[among] = rows[np.lexsort((_mixed(codes[:, rows]), local_us[rows], run[rows]))]
    return order


def _by_two(first: Integers, second: Integers) -> NDArray[np.intp]:
    """The order by one number and then by another; one sort where both together make a number."""
    if not first.size:
        return np.empty(0, np.intp)
    low, least = int(first.min()), int(second.min())
    high, width = int(first.max()), int(second.max()) - least + 1
    if high - low <= np.iinfo(np.uint16).max:  # counted, not sorted, which is all where rows came in the order of time
        order = np.argsort((first - low).astype(np.uint16), kind="stable")
        first_of, second_of = first[order], second[order]
        if not ((second_of[1:] < second_of[:-1]) & (first_of[1:] == first_of[:-1])).any():
            return order
    if (high - low + 1) * width < 2**62:
        return np.argsort((first - low) * width + (second - least))
    return np.lexsort((second, first))


def _mixed(codes: Codes) -> NDArray[np.uint64]:
    """A number for the codes of each row, as if by chance."""
    mixed = np.zeros(codes.shape[1], np.uint64)
    for row in codes:
        mixed = (mixed ^ row) * _GOLDEN
        mixed ^= mixed >> np.uint64(32)
    return mixed


def distinct_places(latitude: Floats, longitude: Floats) -> tuple[Floats, Floats, Integers]:
    """The different positions, sorted by latitude and longitude, and which of them each is."""
    # Zero has two signs and one place.
    lat_bits, lon_bits = (latitude + 0.0).view(np.int64), (longitude + 0.0).view(np.int64)
    with np.errstate(over="ignore"):
        _, number = _unique(lat_bits * np.int64(_ODD) ^ lon_bits)
    lat_key, lon_key = (np.empty(int(number.max(initial=-1)) + 1, np.int64) for _ in range(2))
    lat_key[number], lon_key[number] = lat_bits, lon_bits
    if not (np.array_equal(lat_key[number], lat_bits) and np.array_equal(lon_key[number], lon_bits)):
        (lat_key, lon_key), number = numbered(lat_bits, lon_bits)  # two places of one hash
    lat, lon = lat_key.view(np.float64), lon_key.view(np.float64)
    order = np.lexsort((lon, lat))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return lat[order], lon[order], rank[number]


def numbered(first: Integers, second: Integers) -> tuple[tuple[Integers, Integers], Integers]:
    """The different pairs, sorted, and the number of each pair. Cost: a table of the pairs, and a sort of the few."""
    if not first.size:
        return (first, second), first
    base, low = int(first.min()), int(second.min())
    width = int(second.max()) - low + 1
    if (int(first.max()) - base + 1) * width < 2**62:
        keys, number = _unique((first - base) * width + (second - low))
        return (keys // width + base, keys % width + low), number
    one, first_number = _unique(first)
    two, second_number = _unique(second)
    keys, number = _unique(first_number * two.size + second_number)
    return (one[keys // two.size], two[keys % two.size]), number


def _unique(keys: Integers) -> tuple[Integers, Integers]:
    """As np.unique with its inverse: by a table where keys lie close together, else by hashing the few among many."""
    low, high = (int(keys.min()), int(keys.max())) if keys.size else (0, -1)
    if high - low < _DENSE * keys.size:
        beyond = keys - low
        seen = np.zeros(high - low + 1, np.bool_)
        seen[beyond] = True
        return np.flatnonzero(seen) + low, (np.cumsum(seen) - 1)[beyond]
    encoded = pa.array(keys).dictionary_encode()
    found = encoded.dictionary.to_numpy()
    order = np.argsort(found)
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return found[order], rank[encoded.indices.to_numpy()]
