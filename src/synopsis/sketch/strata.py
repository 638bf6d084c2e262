"""Strata: a group of places x a period, whose rows share bins; exact counts of days and bins, and paths beside them.

This is the paper's tree turned inside out. A row's path is its stratum, its place, its day and one bin for every
feature; bins hold equal mass within the stratum, smaller towards the tails, where a few values carry much of the
spread. All rows are counted, by place and day and by bin; only an even part of the paths is kept, and the counts say
what each of them stands for.

Days come in **runs**: days of one place, one after the other. Arrays here are plain; `blocks` packs them. Strata are
sorted by place, then period; runs follow their strata, days their runs, paths their days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch import foretelling, stretches, tilts
from synopsis.sketch.compiled import Later
from synopsis.sketch.evenly import Turns, turns
from synopsis.sketch.lumps import Lumps
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import ABSENT, Codes, Scales
from synopsis.sketch.stretches import Stretching
from synopsis.sketch.tallies import DAY_US, Tallies
from synopsis.sketch.tilts import Tilts

if TYPE_CHECKING:
    from synopsis.sketch import decoding
else:
    decoding = Later("synopsis.sketch.decoding")

Flags = NDArray[np.bool_]

#: A fine bin that holds more of a stratum's rows than this gets a bin of its own.
ATOM_SHARE = 0.2

#: Mass of the outermost bins and of their neighbours, in fair shares: a tail of equal mass would be far too wide.
TAIL_SHARES = (0.15, 0.5)

#: Microseconds that no instant is away from 1970.
EVER = 1 << 62

#: A run goes on over so many days without rows; after more, another begins.
LONGEST_GAP = 30


@dataclass(frozen=True)
class Strata:
    """Strata with their runs, days, bins and paths."""

    period: Integers  #: strata: ordinal of the period
    starts: Codes  #: features x strata x bins: the first fine code of each bin; those not used follow the last
    ends: Codes  #: features x strata x bins: one past the last fine code that may have rows; of those not used `starts`
    counts: Integers  #: features x strata x (bins + 1): rows in each bin, and absent
    tilt: Tilts  #: features x strata x bins: slope of the density within each bin
    run_offset: Integers  #: strata + 1: where each stratum's runs begin
    run_place: Integers  #: runs: position of the place in the sketch's table
    run_first: Integers  #: runs: ordinal of the first day
    run_days: Integers  #: runs: days
    run_turn: Turns  #: runs: at which turn their place begins (`evenly`), by which lattices of stretches are shifted
    day_rows: Integers  #: days: rows
    day_kept: Integers  #: days: paths
    codes: Codes  #: features x paths: bins, or their number where absent
    stretches: tuple[Integers, ...] = ()  #: features: stretches.FACTS x stretches; () where none are kept
    lengths: tuple[int, ...] = ()  #: features: days of their stretches
    stretching: Stretching | None = None  #: how stretches of all features are told; None where none are kept
    even: bool = False  #: whether paths come at even steps of their place's time

    @property
    def bins(self) -> int:
        """How many bins a feature has at most, in any stratum."""
        return int(self.starts.shape[2])

    @property
    def features(self) -> int:
        """How many features a path has."""
        return int(self.starts.shape[0])

    def __len__(self) -> int:
        return int(self.period.size)

    @property
    def rows(self) -> Integers:
        """Strata: all rows."""
        return np.add.reduceat(self.day_rows, self.day_offset[:-1]) if len(self) else np.empty(0, np.int64)

    @cached_property
    def day_offset(self) -> Integers:
        """Strata + 1: where each stratum's days begin."""
        return _ends(self.run_days)[self.run_offset]

    @cached_property
    def day(self) -> Integers:
        """Days: ordinal of each."""
        before = _ends(self.run_days)[:-1]
        return np.repeat(self.run_first - before, self.run_days) + np.arange(self.day_rows.size)

    @property
    def day_place(self) -> Integers:
        """Days: the place of each."""
        return np.repeat(self.run_place, self.run_days)

    def covered(self, chosen: NDArray[np.bool_], begin_us: int | None, end_us: int | None) -> Floats:
        """Days, in UTC: the part of each that lies in a span of time, 0 at places that are not chosen."""
        begin, end = -EVER if begin_us is None else begin_us, EVER if end_us is None else end_us
        return decoding.covered(self.run_place, self.run_first, self.run_days, self.day_rows.size, chosen, begin, end)

    @cached_property
    def shared_place(self) -> Integers | None:
        """Days: the place of each; None where no stratum has several places."""
        return self.day_place if decoding.is_shared(self.run_offset, self.run_place) else None

    @cached_property
    def path_offset(self) -> Integers:
        """Strata + 1: where each stratum's paths begin."""
        return _ends(self.day_kept)[self.day_offset]

    @cached_property
    def stretch_offsets(self) -> tuple[Integers, ...]:
        """Features: where the days of each stretch begin, and where those of the last end; () where none are kept."""
        stratum = np.repeat(np.arange(len(self)), np.diff(self.day_offset))
        known = {days: stretches.offsets(stratum, self.day_place, self.day, days) for days in set(self.lengths)}
        return tuple(known[days] for days in self.lengths)

    @cached_property
    def stretch_shifts(self) -> tuple[Floats, ...]:
        """Features: by which part of a step the lattice of each stretch is shifted, where values vary."""
        turn = np.repeat(self.run_turn, self.run_days)
        known = {
            days: stretches.shifted(turn[offset[:-1]], self.day[offset[:-1]] // days)
            for days, offset in zip(self.lengths, self.stretch_offsets, strict=True)
        }
        return tuple(known[days] for days in self.lengths)

    def take(self, which: slice | NDArray[np.bool_]) -> Strata:
        """Some of the strata, with their runs, days and paths."""
        if isinstance(which, slice):
            parts = (slice(int(offset[which.start]), int(offset[which.stop])) for offset in self._offsets)
            return self._picked(which, *parts)
        found = (np.flatnonzero(np.repeat(which, np.diff(each))) for each in self._offsets)
        return self._picked(np.flatnonzero(which), *found)

    @property
    def _offsets(self) -> tuple[Integers, ...]:
        """Strata + 1: where runs, days, paths and stretches of every feature begin."""
        known = {
            days: np.searchsorted(offset, self.day_offset)
            for days, offset in zip(self.lengths, self.stretch_offsets, strict=True)
        }
        return self.run_offset, self.day_offset, self.path_offset, *(known[days] for days in self.lengths)

    def _picked(self, strata: Any, runs: Any, days: Any, paths: Any, *stretched: Any) -> Strata:
        return Strata(
            period=self.period[strata],
            starts=self.starts[:, strata],
            ends=self.ends[:, strata],
            counts=self.counts[:, strata],
            tilt=self.tilt[:, strata],
            run_offset=_ends(np.diff(self.run_offset)[strata]),
            run_place=self.run_place[runs],
            run_first=self.run_first[runs],
            run_days=self.run_days[runs],
            run_turn=self.run_turn[runs],
            day_rows=self.day_rows[days],
            day_kept=self.day_kept[days],
            codes=self.codes[:, paths],
            stretches=tuple(facts[:, which] for facts, which in zip(self.stretches, stretched, strict=True)),
            lengths=self.lengths,
            stretching=self.stretching,
            even=self.even,
        )

    @classmethod
    def joined(cls, parts: Sequence[Strata]) -> Strata:
        """Strata of several blocks side by side."""
        if len(parts) == 1:
            return parts[0]

        def chained(name: str, axis: int = 0) -> NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts], axis=axis)

        return cls(
            **{name: chained(name) for name in ("period", "run_place", "run_first", "run_days", "run_turn")},
            **{name: chained(name) for name in ("day_rows", "day_kept")},
            **{name: chained(name, 1) for name in ("starts", "ends", "counts", "tilt", "codes")},
            stretches=tuple(
                np.concatenate(each, axis=1) for each in zip(*(part.stretches for part in parts), strict=True)
            ),
            lengths=parts[0].lengths,
            stretching=parts[0].stretching,
            run_offset=_ends(np.concatenate([np.diff(part.run_offset) for part in parts])),
            even=all(part.even for part in parts),
        )


def _ends(sizes: Integers) -> Integers:
    """Where parts of these sizes begin, and where the last one ends."""
    ends = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def fitted(
    scales: Scales, place: Integers, period: Integers, day: Integers, fine: Codes, kept: NDArray[np.bool_], bins: int
) -> Strata:
    """Strata of rows in memory, from their fine codes; `kept` says whose paths stay. The plain way."""
    number = place.astype(np.float64)
    tallies = Tallies.of(number, number, period, day * DAY_US, fine, kept)
    given, places = tallies.latitude.astype(np.int64), np.arange(number.max(initial=-1.0) + 1.0)
    day_place, kept_place = given[tallies.day_place], given[tallies.kept_place]
    named = replace(tallies, latitude=places, longitude=places, day_place=day_place, kept_place=kept_place)
    return from_tallies(scales, named, bins)


def from_tallies(
    scales: Scales, tallies: Tallies, bins: int, stretching: Stretching | None = None, there: Lumps | None = None
) -> Strata:
    """Strata with bins of their own, from the counts of fine codes, and with stretches where these are kept.

    Strata of which rows are `there` already get bins of all rows, and counts of the new ones. Cost is proportional to
    strata times fine bins, and to kept rows, times features.
    """
    parts = [binned(tallies.mass[feature], scales, feature, bins, there) for feature in range(len(tallies.mass))]
    stratum, place, day = tallies.day_stratum, tallies.day_place, tallies.day
    runs = Runs.of(stratum, place, day, tallies.period.size)
    # Kept rows stand in the order of days, and each of them has a day.
    kept_day = tallies.kept_us // DAY_US
    changes = [each[1:] != each[:-1] for each in (tallies.kept_stratum, tallies.kept_place, kept_day)]
    begins = np.flatnonzero(np.append(True, changes[0] | changes[1] | changes[2])) if kept_day.size else kept_day
    key = _flat(stratum, tallies.day_place, day, tallies)
    own = _flat(tallies.kept_stratum[begins], tallies.kept_place[begins], kept_day[begins], tallies)
    kept = np.zeros(day.size, np.int64)
    kept[np.searchsorted(key, own)] = np.diff(np.append(begins, kept_day.size))
    made = Strata(
        period=tallies.period,
        starts=np.stack([part.starts for part in parts]),
        ends=np.stack([part.ends for part in parts]),
        counts=np.stack([part.counts for part in parts]),
        tilt=np.stack([part.tilt for part in parts]),
        run_offset=runs.offset,
        run_place=runs.place,
        run_first=runs.first,
        run_days=runs.days,
        run_turn=turns(tallies.latitude, tallies.longitude)[runs.place],
        day_rows=runs.of_all(tallies.day_rows),
        day_kept=runs.of_all(kept),
        codes=np.stack(
            [part.bin_of[tallies.kept_stratum, codes] for part, codes in zip(parts, tallies.kept_codes, strict=True)]
        ),
    )
    return made if stretching is None else foretelling.stretched(made, scales, stretching, tallies.stretched)


@dataclass(frozen=True)
class Runs:
    """Days that have rows, as runs: days of one place, one after the other, with short gaps between them."""

    offset: Integers  #: strata + 1: where each stratum's runs begin
    place: Integers
    first: Integers  #: the first day of each
    days: Integers
    at: Integers  #: days given: where each stands among those of all runs

    @classmethod
    def of(cls, stratum: Integers, place: Integers, day: Integers, strata: int) -> Runs:
        """The runs of days in the order of stratum, place and time."""
        new = np.ones(day.size, np.bool_)
        new[1:] = (stratum[1:] != stratum[:-1]) | (place[1:] != place[:-1]) | (day[1:] - day[:-1] > LONGEST_GAP)
        first = np.flatnonzero(new)
        last = np.append(first[1:], day.size) - 1
        days = day[last] - day[first] + 1
        at = day + np.repeat(_ends(days)[:-1] - day[first], last - first + 1)
        return cls(np.searchsorted(stratum[first], np.arange(strata + 1)), place[first], day[first], days, at)

    def of_all(self, numbers: Integers) -> Integers:
        """Numbers of the days given, as those of all days of the runs; 0 of the others."""
        found = np.zeros(int(self.days.sum()), np.int64)
        found[self.at] = numbers
        return found


def _flat(stratum: Integers, place: Integers, day: Integers, tallies: Tallies) -> Integers:
    """Stratum, place and day as one number, in the order of the three."""
    low, high = (int(tallies.day.min()), int(tallies.day.max())) if tallies.day.size else (0, 0)
    places = int(tallies.day_place.max()) + 1 if tallies.day_place.size else 1
    return np.asarray((stratum * places + place) * (high - low + 1) + (day - low))


def bin_codes(strata: Strata, position: int) -> tuple[Integers, Integers]:
    """Strata x bins: the first fine code of each bin, and one past its last; equal where a bin is not used."""
    return strata.starts[position].astype(np.int64), strata.ends[position].astype(np.int64)


def bin_ranges(strata: Strata, scales: Scales, feature: int, position: int | None = None) -> tuple[Floats, Floats]:
    """Strata x bins: the lowest and the highest value that each bin can hold; NaN where a bin is not used.

    `position` says where the feature stands, when only some were opened.
    """
    low, high = scales.ranges(feature)
    starts, ends = bin_codes(strata, feature if position is None else position)
    used = ends > starts
    return (
        np.where(used, low[np.minimum(starts, low.size - 1)], np.nan),
        np.where(used, high[np.clip(ends - 1, 0, low.size - 1)], np.nan),
    )


@dataclass(frozen=True)
class Binned:
    """One feature's bins in every stratum."""

    starts: Codes
    ends: Codes
    tilt: Tilts
    bin_of: Codes  #: strata x fine codes, absent among them
    counts: Integers  #: strata x (bins + 1)


def binned(tallied: NDArray[np.uint32], scales: Scales, feature: int, bins: int, there: Lumps | None = None) -> Binned:
    """Bins of one feature for rows by stratum and fine code, and for those that are there; counts of the former.

    Cost: proportional to strata times fine bins.
    """
    fine, axis = scales.quantizers[feature].bins, MassAxis.of(scales, feature)
    mass = tallied[:, :fine].astype(np.int64)
    lumps, spread = (mass, mass) if there is None else there.with_rows(feature, mass, axis)
    begins = _begins(lumps, bins)
    starts, following = _compacted(begins, spread, bins)
    bin_of = np.full(tallied.shape, bins, np.uint8)
    bin_of[:, :fine] = np.maximum(np.cumsum(begins, axis=1) - 1, 0)
    key = (np.arange(len(mass))[:, None] * bins + bin_of[:, :fine]).reshape(-1)
    counts = np.bincount(key, mass.reshape(-1), len(mass) * bins).reshape(-1, bins)
    ends, tilt = tilts.fitted(axis, starts, following, spread)
    counts = np.concatenate((counts, tallied[:, ABSENT:].astype(np.float64)), axis=1).astype(np.int64)
    return Binned(starts.astype(np.uint8), ends.astype(np.uint8), tilt, bin_of, counts)


def _begins(mass: Integers, bins: int) -> NDArray[np.bool_]:
    """Strata x fine bins: where a bin begins, so that bins hold equal mass but for atoms and tails."""
    strata, fine_bins = mass.shape
    rows = mass.sum(axis=1, keepdims=True)
    atoms = _heaviest(mass, (bins - 1) // 2) & (mass > ATOM_SHARE * rows)
    rest = np.where(atoms, 0, mass)
    total = np.maximum(rest.sum(axis=1, keepdims=True), 1)
    middle = (np.cumsum(rest, axis=1) - rest / 2) / total  # ascending along a row
    # Each atom takes a bin, and may cut another in two.
    shares = _thresholds(bins)[bins - 2 * atoms.sum(axis=1)]
    flat = (middle + 2 * np.arange(strata)[:, None]).reshape(-1)
    wanted = shares + 2 * np.arange(strata)[:, None]
    reached = np.searchsorted(flat, wanted.reshape(-1)).reshape(shares.shape) - fine_bins * np.arange(strata)[:, None]
    marks = np.zeros((strata, fine_bins + 1), np.bool_)
    np.put_along_axis(marks, np.clip(reached, 0, fine_bins), True, axis=1)
    marks[:, :-1] |= atoms
    marks[:, 1:] |= atoms
    marks[:, 0] = True
    # A bin begins at the next fine bin that holds anything.
    run, holds = np.cumsum(marks[:, :-1], axis=1), mass > 0
    before = np.maximum.accumulate(np.where(holds, run, 0), axis=1)
    before = np.concatenate((np.zeros((strata, 1), before.dtype), before[:, :-1]), axis=1)
    few = np.count_nonzero(mass, axis=1, keepdims=True) <= bins  # then each fine bin that holds anything has its own
    return np.where(few, holds, holds & (run > before))


def _heaviest(mass: Integers, count: int) -> NDArray[np.bool_]:
    """Strata x fine bins: those with the most rows, so many in each stratum."""
    found, least = np.zeros(mass.shape, np.bool_), max(mass.shape[1] - count, 0)
    if mass.shape[1]:
        np.put_along_axis(found, np.argpartition(mass, least, axis=1)[:, least:], True, axis=1)
    return found


def _thresholds(bins: int) -> Floats:
    """Row k: the cumulative masses at which k bins part, smaller towards the tails; the rest is out of reach."""
    table = np.full((bins + 1, bins), 1.5)
    for count in range(1, bins + 1):
        shares = np.ones(count)
        for position, share in enumerate(TAIL_SHARES):
            if count > 3 * (position + 1):
                shares[position] = shares[-1 - position] = share
        table[count, : count - 1] = np.cumsum(shares)[:-1] / shares.sum()
    return table


def _compacted(begins: NDArray[np.bool_], mass: Integers | Floats, bins: int) -> tuple[Integers, Integers]:
    """Where bins begin and the next ones do, by stratum; one past the last fine code seen where there is none."""
    holds = mass > 0
    top = np.where(holds.any(axis=1), mass.shape[1] - np.argmax(holds[:, ::-1], axis=1), 0)
    starts = np.repeat(top[:, None], bins, axis=1)
    stratum, code = np.nonzero(begins)
    position = np.cumsum(begins, axis=1)[stratum, code] - 1
    starts[stratum, position] = code
    return starts, np.concatenate((starts[:, 1:], top[:, None]), axis=1)
