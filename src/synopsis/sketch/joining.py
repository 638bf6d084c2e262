"""Joining: strata that came in several batches become one where they are of one group and period, without the rows.

Those that came last know the bins of those that were there (`lumps`), so that each bin that was there lies within one
of theirs. Then rows and paths of days, rows of bins and sums of stretches add up, and paths keep their place: in the
order of time by day, and by their codes within a day where nothing more is known of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch import foretelling, stretches, tilts
from synopsis.sketch.evenly import Turns
from synopsis.sketch.lumps import Lumps
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Integers
from synopsis.sketch.scales import ABSENT, Codes, Scales
from synopsis.sketch.strata import Runs, Strata, binned
from synopsis.sketch.stretches import Stretching

#: More than any fine code.
_BEYOND = 512


def joined(there: Strata, new: Strata, into: Integers, scales: Scales, *, timed: bool) -> Strata:
    """Both as one, sorted by place and period; `into` says which of the new strata each that is there joins, -1: none.

    Places are positions in one table. A stratum whose bins do not lie within those of the one that it would join stays
    beside it. `timed` says whether paths of a day are in the order of time. Cost: proportional to all strata, days and
    paths, which are sorted.
    """
    into, table = _nested(there, new, into)
    alone = into < 0
    target = np.where(alone, len(new) + np.cumsum(alone) - 1, into)
    period = np.concatenate((new.period, there.period[alone]))
    first = np.full(period.size, np.iinfo(np.int64).max)
    np.minimum.at(first, target, _first_place(there))
    np.minimum.at(first, np.arange(len(new)), _first_place(new))
    order = np.lexsort((period, first))
    number = np.empty(order.size, np.int64)
    number[order] = np.arange(order.size)
    parts = (_Entries.of(there, number[target]), _Entries.of(new, number[: len(new)]))
    whole = _Entries.joined(parts)
    day_order, begins = whole.sorted_days()
    days = day_order[begins]
    runs = Runs.of(whole.stratum[days], whole.place[days], whole.day[days], order.size)
    rows, kept = (np.add.reduceat(each[day_order], begins) for each in (whole.rows, whole.kept))
    codes = np.concatenate((_recoded(there, table), new.codes), axis=1)
    of_day = np.empty(day_order.size, np.int64)
    of_day[day_order] = np.arange(day_order.size) if timed else np.cumsum(np.isin(np.arange(day_order.size), begins))
    of_path = np.repeat(of_day, whole.kept)
    paths = np.argsort(of_path, kind="stable") if timed else np.lexsort((*codes, of_path))

    def chained(name: str) -> NDArray[Any]:
        return np.concatenate((getattr(new, name), getattr(there, name)[:, alone]), axis=1)[:, order]

    made = Strata(
        period=period[order],
        starts=chained("starts"),
        ends=chained("ends"),
        counts=_counts(there, new, table, target, order),
        tilt=chained("tilt"),
        run_offset=runs.offset,
        run_place=runs.place,
        run_first=runs.first,
        run_days=runs.days,
        run_turn=_turns(there, new)[runs.place],
        day_rows=runs.of_all(rows),
        day_kept=runs.of_all(kept),
        codes=np.ascontiguousarray(codes[:, paths]),
        lengths=new.lengths,
        stretching=new.stretching,
        even=new.even,
    )
    return made if made.stretching is None else _stretched(made, (there, new), (number[target], number), scales)


def rebinned(strata: Strata, scales: Scales, bins: int) -> Strata:
    """The same strata with fewer bins, each of which holds whole ones of those that were.

    Cost: proportional to strata times fine bins, and to paths.
    """
    lumps = Lumps(np.arange(len(strata)), strata.starts, strata.ends, strata.counts, strata.tilt)
    none = np.zeros((len(strata), ABSENT + 1), np.uint32)
    parts = [binned(none, scales, feature, bins, lumps) for feature in range(strata.features)]
    fewer = replace(
        strata,
        starts=np.stack([part.starts for part in parts]),
        ends=np.stack([part.ends for part in parts]),
        tilt=np.stack([part.tilt for part in parts]),
        counts=np.stack([part.counts for part in parts]),
    )
    same = np.arange(len(strata))
    _, table = _nested(strata, fewer, same)
    made = replace(fewer, counts=_counts(strata, fewer, table, same, same), codes=_recoded(strata, table))
    return made if made.stretching is None else _stretched(made, (strata,), (same,), scales)


def rescaled(strata: Strata, scales: Scales, new_scales: Scales) -> Strata:
    """The same strata, slopes within bins and stretches told by scales that know more rows.

    Cost: proportional to strata times fine bins, and to paths where stretches are kept.
    """
    same = np.arange(len(strata))
    lumps = Lumps(same, strata.starts, strata.ends, strata.counts, strata.tilt)
    ends, slopes = [], []
    for feature in range(strata.features):
        none = np.zeros((len(strata), scales.quantizers[feature].bins), np.int64)
        _, spread = lumps.with_rows(feature, none, MassAxis.of(scales, feature))
        starts, top = strata.starts[feature].astype(np.int64), strata.ends[feature].max(axis=1).astype(np.int64)
        following = np.concatenate((starts[:, 1:], top[:, None]), axis=1)
        found = tilts.fitted(MassAxis.of(new_scales, feature), starts, following, spread)
        ends.append(found[0].astype(np.uint8))
        slopes.append(found[1])
    made = replace(strata, ends=np.stack(ends), tilt=np.stack(slopes))
    return made if made.stretching is None else _stretched(made, (strata,), (same,), scales, new_scales)


def lengthened(strata: Strata, scales: Scales, stretching: Stretching | None) -> Strata:
    """The same strata with longer stretches, each of which holds whole ones, or with none."""
    if stretching is None:
        return replace(strata, stretching=None, lengths=(), stretches=())
    longer = replace(strata, stretching=stretching, lengths=stretching.days)
    return _stretched(longer, (strata,), (np.arange(len(strata)),), scales)


def _nested(there: Strata, new: Strata, into: Integers) -> tuple[Integers, Codes]:
    """Which strata join which, and features x strata x (bins + 1): the bin that each bin becomes; the same where none.

    A bin that is there becomes the last new one that begins no later, and has to end no later than that.
    """
    features, bins = there.features, new.bins
    table = np.tile(np.arange(there.bins + 1, dtype=np.uint8), (features, len(there), 1))
    asked = np.flatnonzero(into >= 0)
    table[:, asked, there.bins] = bins
    fits = np.ones(asked.size, np.bool_)
    row = np.arange(asked.size)[:, None]
    for feature in range(features):
        starts, ends = (each[feature][asked].astype(np.int64) for each in (there.starts, there.ends))
        begins, final = (each[feature][into[asked]].astype(np.int64) for each in (new.starts, new.ends))
        found = np.searchsorted(
            (begins + _BEYOND * row).reshape(-1), (starts + _BEYOND * row).reshape(-1), side="right"
        )
        number = np.clip(found.reshape(starts.shape) - 1 - bins * row, -1, bins - 1)
        used = ends > starts
        fits &= (~used | ((number >= 0) & (ends <= final[row, number]))).all(axis=1)
        table[feature, asked, : there.bins] = np.where(used, number, 0)
    dropped = asked[~fits]
    table[:, dropped] = np.arange(there.bins + 1, dtype=np.uint8)
    joins = into.copy()
    joins[dropped] = -1
    return joins, table


def _recoded(strata: Strata, table: Codes) -> Codes:
    """Features x paths: the bins that those of all paths become."""
    stratum = np.repeat(np.arange(len(strata)), np.diff(strata.path_offset))
    return np.stack([own[stratum, codes] for own, codes in zip(table, strata.codes, strict=True)])


def _counts(there: Strata, new: Strata, table: Codes, target: Integers, order: Integers) -> Integers:
    """Features x strata x (bins + 1): rows of both."""
    found = np.zeros((there.features, order.size, new.bins + 1), np.int64)
    found[:, : len(new)] = new.counts
    for feature, own in enumerate(found):
        np.add.at(own, (np.broadcast_to(target[:, None], table[feature].shape), table[feature]), there.counts[feature])
    return found[:, order]


def _turns(*parts: Strata) -> Turns:
    """Places of strata: at which turn each begins."""
    found = np.zeros(max(int(part.run_place.max(initial=-1)) for part in parts) + 1, np.uint64)
    for part in parts:
        found[part.run_place] = part.run_turn
    return found


def _first_place(strata: Strata) -> Integers:
    return np.minimum.reduceat(strata.run_place, strata.run_offset[:-1]) if len(strata) else np.empty(0, np.int64)


@dataclass(frozen=True)
class _Entries:
    """Days that have rows, of strata in their new numbers."""

    stratum: Integers
    place: Integers
    day: Integers
    rows: Integers
    kept: Integers

    @classmethod
    def of(cls, strata: Strata, number: Integers) -> _Entries:
        has = np.flatnonzero(strata.day_rows)
        stratum = np.repeat(number[: len(strata)], np.diff(strata.day_offset))
        return cls(*(each[has] for each in (stratum, strata.day_place, strata.day, strata.day_rows, strata.day_kept)))

    @classmethod
    def joined(cls, parts: tuple[_Entries, ...]) -> _Entries:
        names = ("stratum", "place", "day", "rows", "kept")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def sorted_days(self) -> tuple[NDArray[np.intp], Integers]:
        """The order by stratum, place and day, and where in it a day begins that may have come in several batches."""
        order = np.lexsort((self.day, self.place, self.stratum))
        changes = [np.diff(each[order], prepend=-1) != 0 for each in (self.stratum, self.place, self.day)]
        changes[2][:1] = True
        return order, np.flatnonzero(changes[0] | changes[1] | changes[2])


def _stretched(
    made: Strata,
    parts: tuple[Strata, ...],
    numbers: tuple[Integers, ...],
    scales: Scales,
    new_scales: Scales | None = None,
) -> Strata:
    """The same strata with the stretches of these parts, whose strata have these numbers, told by new scales if any."""
    assert made.stretching is not None
    axes = stretches.running(scales, made.stretching)
    lengths = made.stretching.lengths.items()
    keys = {days: _keys(made, features[0], np.arange(len(made)), days, made) for days, features in lengths}
    total = [np.zeros((stretches.FACTS, keys[days].size)) for days in made.lengths]
    for part, number in zip(parts, numbers, strict=True):
        for feature, (sums, days) in enumerate(zip(foretelling.sums_of(part, axes), made.lengths, strict=True)):
            at = np.searchsorted(keys[days], _keys(part, feature, number, days, made))
            there = np.flatnonzero(sums[0] > 0)
            for own, more in zip(total[feature], sums, strict=True):
                own += np.bincount(at[there], more[there], own.size)
    axes = axes if new_scales is None else stretches.running(new_scales, made.stretching)
    return foretelling.kept(made, total, axes)


def _keys(strata: Strata, feature: int, number: Integers, days: int, whole: Strata) -> Integers:
    """Stretches of a feature: stratum, place and time of each as one number, in the order of the three."""
    begin = strata.stretch_offsets[feature][:-1]
    stratum = np.repeat(number[: len(strata)], np.diff(strata.day_offset))[begin]
    places = int(whole.run_place.max(initial=0)) + 1
    low, high = (int(end) // days for end in (whole.day.min(initial=0), whole.day.max(initial=0)))
    return np.asarray((stratum * places + strata.day_place[begin]) * (high - low + 1) + strata.day[begin] // days - low)
