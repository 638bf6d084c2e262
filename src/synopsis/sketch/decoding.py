"""Decoding: the plain bytes of many frames become the strata that are wanted, in one pass.

What `blocks.opened` does block by block and for all strata is done here for all blocks at once, and only for strata
that have a place and a day in scope. Numbers stand in the bytes as `packing` put them there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.tallies import DAY_US

Bytes = NDArray[np.uint8]

#: Parts of a block before those of its features: keys, runs, days.
HEADS = 3

#: Parts of a feature's bins: widths, tilts, counts.
BINS = 3


@compiled
def _number(plain: Bytes, kind: int, begin: int, position: int) -> int:
    """The number at a position of a part that begins somewhere; kinds as in `packing`: unsigned, then signed."""
    if kind == 0:
        return int(plain[begin + position])
    size = 1 << (kind & 3)
    at = begin + position * size
    found = np.int64(plain[at])
    for byte in range(1, size):
        found |= np.int64(plain[at + byte]) << (8 * byte)
    if kind >= 4 and size < 8 and found >> (8 * size - 1):
        found -= np.int64(1) << (8 * size)
    return int(found)


@compiled
def _kept(
    plain: Bytes,
    parts: Integers,
    per_block: int,
    place_low: Integers,
    chosen: NDArray[np.bool_],
    first_day: int,
    last_day: int,
) -> tuple[NDArray[np.bool_], int, int, int]:
    """Which strata of all blocks have a run at a chosen place from the first day to the last, and what they hold."""
    strata = 0
    for block in range(place_low.size):
        strata += parts[block * per_block, 3]
    keep = np.zeros(strata, np.bool_)
    at = runs = days = paths = 0
    for block in range(place_low.size):
        keys, run, day = parts[block * per_block], parts[block * per_block + 1], parts[block * per_block + 2]
        run_at = day_at = 0
        for stratum in range(keys[3]):
            own_runs = _number(plain, keys[0], keys[1], keys[3] + stratum)
            own_days = 0
            for each in range(run_at, run_at + own_runs):
                place = _number(plain, run[0], run[1], each) + place_low[block]
                first = _number(plain, run[0], run[1], run[3] + each)
                length = _number(plain, run[0], run[1], 2 * run[3] + each)
                own_days += length
                if chosen[place] and first <= last_day and first + length > first_day:
                    keep[at] = True
            if keep[at]:
                runs, days = runs + own_runs, days + own_days
                for each in range(day_at, day_at + own_days):
                    paths += _number(plain, day[0], day[1], day[3] + each)
            run_at, day_at, at = run_at + own_runs, day_at + own_days, at + 1
    return keep, runs, days, paths


@compiled
def decoded(
    plain: Bytes,
    parts: Integers,
    per_block: int,
    place_low: Integers,
    chosen: NDArray[np.bool_],
    first_day: int,
    last_day: int,
    features: Integers,
    needed: Integers,
    parents: Integers,
    centres: Codes,
    code_of: Codes,
    bins: int,
) -> tuple[Any, ...]:
    """The fields of `Strata`, in its order, of all strata in scope.

    A part has a kind, a place in `plain`, rows and columns; a block has HEADS, BINS for each feature, and one part for
    each of the features that are `needed` to find the codes, parents first.
    """
    keep, runs, days, paths = _kept(plain, parts, per_block, place_low, chosen, first_day, last_day)
    strata = keep.sum()
    period = np.empty(strata, np.int64)
    starts = np.empty((features.size, strata, bins), np.uint8)
    top = np.empty((features.size, strata), np.uint8)
    counts = np.empty((features.size, strata, bins + 1), np.int64)
    tilt = np.empty((features.size, strata, bins), np.int8)
    run_offset = np.zeros(strata + 1, np.int64)
    run_place, run_first, run_days = np.empty(runs, np.int64), np.empty(runs, np.int64), np.empty(runs, np.int64)
    day_rows, day_kept = np.empty(days, np.int64), np.empty(days, np.int64)
    known = np.empty((needed.size, paths), np.uint8)
    row_of = np.full(parents.shape[0], -1, np.int64)
    for row in range(needed.size):
        row_of[needed[row]] = row
    seen = to = to_run = to_day = to_path = 0
    for block in range(place_low.size):
        first_part = block * per_block
        keys, run, day = parts[first_part], parts[first_part + 1], parts[first_part + 2]
        run_at = day_at = path_at = 0
        for stratum in range(keys[3]):
            own_runs = _number(plain, keys[0], keys[1], keys[3] + stratum)
            own_days = own_paths = 0
            for each in range(run_at, run_at + own_runs):
                own_days += _number(plain, run[0], run[1], 2 * run[3] + each)
            for each in range(day_at, day_at + own_days):
                own_paths += _number(plain, day[0], day[1], day[3] + each)
            if keep[seen]:
                period[to] = _number(plain, keys[0], keys[1], stratum)
                for each in range(own_runs):
                    run_place[to_run + each] = _number(plain, run[0], run[1], run_at + each) + place_low[block]
                    run_first[to_run + each] = _number(plain, run[0], run[1], run[3] + run_at + each)
                    run_days[to_run + each] = _number(plain, run[0], run[1], 2 * run[3] + run_at + each)
                for each in range(own_days):
                    day_rows[to_day + each] = _number(plain, day[0], day[1], day_at + each)
                    day_kept[to_day + each] = _number(plain, day[0], day[1], day[3] + day_at + each)
                for feature in range(features.size):
                    own = first_part + HEADS + BINS * feature
                    width, slope, count = parts[own], parts[own + 1], parts[own + 2]
                    end = 0
                    for each in range(bins):
                        end += _number(plain, width[0], width[1], each * width[3] + stratum)
                        starts[feature, to, each] = end
                        tilt[feature, to, each] = _number(plain, slope[0], slope[1], each * slope[3] + stratum)
                        counts[feature, to, each] = _number(plain, count[0], count[1], each * count[3] + stratum)
                    top[feature, to] = end + _number(plain, width[0], width[1], bins * width[3] + stratum)
                    counts[feature, to, bins] = _number(plain, count[0], count[1], bins * count[3] + stratum)
                for row in range(needed.size):
                    feature = needed[row]
                    begin = parts[first_part + HEADS + BINS * features.size + row, 1] + path_at
                    one, two = parents[feature, 0], parents[feature, 1]
                    if one < 0:
                        for each in range(own_paths):
                            known[row, to_path + each] = plain[begin + each]
                        continue
                    table, other = centres[feature], row_of[one]
                    second = row_of[two] if two >= 0 else -1
                    for each in range(own_paths):
                        beside = known[second, to_path + each] if second >= 0 else np.uint8(0)
                        centre = table[known[other, to_path + each], beside]
                        known[row, to_path + each] = code_of[centre, plain[begin + each]]
                to_run, to_day, to_path, to = to_run + own_runs, to_day + own_days, to_path + own_paths, to + 1
                run_offset[to] = to_run
            run_at, day_at, path_at, seen = run_at + own_runs, day_at + own_days, path_at + own_paths, seen + 1
    codes = np.empty((features.size, paths), np.uint8)
    for feature in range(features.size):
        codes[feature] = known[row_of[features[feature]]]
    return period, starts, top, counts, tilt, run_offset, run_place, run_first, run_days, day_rows, day_kept, codes


@compiled
def covered(
    run_place: Integers,
    run_first: Integers,
    run_days: Integers,
    days: int,
    chosen: NDArray[np.bool_],
    begin_us: int,
    end_us: int,
) -> NDArray[np.float64]:
    """Days: the part of each that lies in a span of time, 0 at places that are not chosen."""
    share, at = np.zeros(days), 0
    for run in range(run_place.size):
        if chosen[run_place[run]]:
            for each in range(run_days[run]):
                first = (run_first[run] + each) * DAY_US
                part = (min(first + DAY_US, end_us) - max(first, begin_us)) / DAY_US
                share[at + each] = min(max(part, 0.0), 1.0)
        at += run_days[run]
    return share
