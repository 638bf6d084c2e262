"""Tallies: rows counted by place, period, day and fine bin, with the rows whose paths stay; what executors exchange.

Tallies add: those of any parts of the rows, in any order, join to those of all rows. Bins are chosen only when all are
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes

DAY_US = 86_400_000_000

#: Fine codes, absent among them.
SYMBOLS = 256


@dataclass(frozen=True)
class Tallies:
    """Counts by stratum (a place and a period), and kept rows. Places are sorted, strata by place and period."""

    latitude: Floats  #: places
    longitude: Floats
    place: Integers  #: strata: position of the place
    period: Integers
    mass: NDArray[np.uint32]  #: features x strata x fine codes: rows
    day_stratum: Integers  #: days on which there are rows, by stratum and day
    day: Integers
    day_rows: Integers
    kept_stratum: Integers  #: kept rows, by stratum and time
    kept_us: Integers  #: local time
    kept_codes: Codes  #: features x kept rows

    @classmethod
    def of(
        cls,
        latitude: Floats,
        longitude: Floats,
        period: Integers,
        local_us: Integers,
        fine: Codes,
        kept: NDArray[np.bool_],
    ) -> Tallies:
        """The tallies of rows in any order. Cost: two sorts of the rows, and a pass over their codes."""
        lat, lon, place = _places(latitude, longitude)
        day = local_us // DAY_US
        stratum_key, stratum = _numbered(place, period)
        day_key, at = _numbered(stratum, day)
        mass = np.stack(
            [
                np.bincount(stratum * SYMBOLS + codes, minlength=len(stratum_key[0]) * SYMBOLS).astype(np.uint32)
                for codes in fine
            ]
        )
        order = np.flatnonzero(kept)
        order = order[_in_order(stratum[order], local_us[order], fine[:, order])]
        return cls(
            lat,
            lon,
            *stratum_key,
            mass.reshape(len(fine), -1, SYMBOLS),
            *day_key,
            np.bincount(at, minlength=len(day_key[0])),
            stratum[order],
            local_us[order],
            fine[:, order],
        )

    @classmethod
    def joined(cls, parts: Sequence[Tallies]) -> Tallies:
        """All of them added up. Cost: proportional to strata and kept rows, which are sorted anew."""
        sizes = np.cumsum([0, *(part.latitude.size for part in parts)])
        lat, lon, place_of = _places(
            np.concatenate([part.latitude for part in parts]), np.concatenate([part.longitude for part in parts])
        )
        place = place_of[np.concatenate([part.place + size for part, size in zip(parts, sizes, strict=False)])]
        keys, stratum_of = _numbered(place, np.concatenate([part.period for part in parts]))
        before = np.cumsum([0, *(part.place.size for part in parts)])

        def strata(name: str) -> Integers:
            moved = [getattr(part, name) + size for part, size in zip(parts, before, strict=False)]
            return np.asarray(stratum_of[np.concatenate(moved)])

        mass = np.zeros((len(parts[0].mass), len(keys[0]), SYMBOLS), np.uint32)
        for part, start in zip(parts, before, strict=False):  # strata of one part are all different
            mass[:, stratum_of[start : start + part.place.size]] += part.mass
        day_key, at = _numbered(strata("day_stratum"), np.concatenate([part.day for part in parts]))
        rows = np.bincount(at, np.concatenate([part.day_rows for part in parts]), len(day_key[0])).astype(np.int64)
        kept, kept_us = strata("kept_stratum"), np.concatenate([part.kept_us for part in parts])
        codes = np.concatenate([part.kept_codes for part in parts], axis=1)
        order = _in_order(kept, kept_us, codes)
        return cls(lat, lon, *keys, mass, *day_key, rows, kept[order], kept_us[order], codes[:, order])

    def of_places(self, chosen: NDArray[np.bool_]) -> Tallies:
        """The tallies of some places."""
        strata, number = chosen[self.place], np.cumsum(chosen) - 1
        stratum_number = np.cumsum(strata) - 1
        days, rows = strata[self.day_stratum], strata[self.kept_stratum]
        return Tallies(
            self.latitude[chosen],
            self.longitude[chosen],
            number[self.place[strata]],
            self.period[strata],
            self.mass[:, strata],
            stratum_number[self.day_stratum[days]],
            self.day[days],
            self.day_rows[days],
            stratum_number[self.kept_stratum[rows]],
            self.kept_us[rows],
            self.kept_codes[:, rows],
        )


def periods(local_us: Integers, months: int) -> Integers:
    """The period of each instant of local time: so many months, counted from 1970."""
    return local_us.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64) // months


def _in_order(stratum: Integers, local_us: Integers, codes: Codes) -> NDArray[np.intp]:
    """The order of kept rows: by stratum and time, and then in one that does not show in which order they came.

    Rows of one instant are mixed, so that neighbours differ as rows do; where rows have no time, they are sorted by
    their codes, which packs them smallest.
    """
    if local_us.size and local_us.min() < local_us.max():
        mixed = np.zeros(local_us.size, np.uint64)
        for row in codes:
            mixed = (mixed ^ row) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        return np.lexsort((mixed, local_us, stratum))
    return np.lexsort((*codes, stratum))


def _places(latitude: Floats, longitude: Floats) -> tuple[Floats, Floats, Integers]:
    """The different positions, sorted by latitude and longitude, and which of them each is."""
    # Zero has two signs and one place.
    (lat_key, lon_key), number = _numbered((latitude + 0.0).view(np.int64), (longitude + 0.0).view(np.int64))
    lat, lon = lat_key.view(np.float64), lon_key.view(np.float64)
    order = np.lexsort((lon, lat))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return lat[order], lon[order], rank[number]


def _numbered(first: Integers, second: Integers) -> tuple[tuple[Integers, Integers], Integers]:
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
    """As np.unique with its inverse, by hashing: there are few different keys among many."""
    encoded = pa.array(keys).dictionary_encode()
    found = encoded.dictionary.to_numpy()
    order = np.argsort(found)
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return found[order], rank[encoded.indices.to_numpy()]
