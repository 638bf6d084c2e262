"""Decoding: the plain bytes of many frames become the strata that are wanted, in one pass.

What `blocks.opened` does block by block and for all strata is done here for all blocks at once, and only for strata
that have a place and a day in scope.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch import ranking, reading
from synopsis.sketch.columns import COLUMNS as APART
from synopsis.sketch.columns import SIZE_BITS
from synopsis.sketch.compiled import compiled
from synopsis.sketch.days import SHARE_BITS, WEEK
from synopsis.sketch.evenly import GOLDEN, MIXED
from synopsis.sketch.moments import Integers
from synopsis.sketch.reading import COLUMNS, HEADS, KIND, PLACE, ROWS, Bytes, Unsigned
from synopsis.sketch.scales import Codes
from synopsis.sketch.streams import LAP, Shares
from synopsis.sketch.stretches import FACTS, ODD, PLANES
from synopsis.sketch.tallies import DAY_US
from synopsis.sketch.tilts import CUTS, STEPS, Tilts

#: How the paths of days are known: as so many, from the turn of their place and day, or as one for each row.
COUNTED, BY_TURN, ALL = range(3)


@compiled
def _turn(latitude: Unsigned, longitude: Unsigned) -> Unsigned:
    """At which turn the days of a place begin, as `evenly.turns` has it."""
    turn = longitude * GOLDEN
    turn = (latitude ^ (turn ^ turn >> Unsigned(29)) * MIXED) * GOLDEN
    return (turn ^ turn >> Unsigned(29)) * MIXED


@compiled
def _by_week(
    plain: Bytes,
    place: int,
    first: int,
    told: int,
    turn: Unsigned,
    below: Unsigned,
    days: int,
    rows: Integers,
    kept: Integers,
) -> int:
    """Write down the rows of the days of a run and how many of them have paths, where a week is a byte, from some place
    on, as `days.opened` has it; all paths together. Where there is no room to write, they are only counted.
    """
    paths, at, each, is_counted = 0, first % WEEK, 0, told == COUNTED
    turn += Unsigned(first) * GOLDEN
    while each < days:
        bits = int(plain[place + at // WEEK]) >> at % WEEK
        for _ in range(min(WEEK - at % WEEK, days - each)):
            own = bits & 1
            stays = own if told == ALL or turn < below else 0
            if rows.size:
                rows[each] = own
                kept[each] = kept[each] if is_counted else stays
            paths += stays
            bits, turn, each, at = bits >> 1, turn + GOLDEN, each + 1, at + 1
    return paths


@compiled
def _weeks(first: int, days: int) -> int:
    """The weeks that a run reaches into."""
    return (first % WEEK + days + WEEK - 1) // WEEK


@compiled
def _heads(
    plain: Bytes, joined: Bytes, parts: Integers, per_block: int, place_low: Integers
) -> tuple[Integers, Integers]:
    """Period, runs and streams of all strata of blocks, the last where they are told; place, first day and days of all
    runs."""
    strata = runs = 0
    for block in range(place_low.size):
        part = block * per_block
        strata += parts[part, ROWS if parts[part, KIND] >= APART else COLUMNS]
        runs += parts[part + 1, ROWS if parts[part + 1, KIND] >= APART else COLUMNS]
    keys, found, at, to = np.zeros((3, strata), np.int64), np.empty((3, runs), np.int64), 0, 0
    for block in range(place_low.size):
        for part in range(block * per_block, block * per_block + 2):
            is_apart, is_keys = parts[part, KIND] >= APART, part == block * per_block
            table, begin = keys if is_keys else found, at if is_keys else to
            end = begin + parts[part, ROWS if is_apart else COLUMNS]
            for row in range(3 if is_apart else parts[part, ROWS]):
                own = table[row, begin:end]
                if is_apart:
                    reading.line(joined, parts, part, row, own)
                else:
                    for each in range(own.size):
                        own[each] = reading.number(plain, parts, part, row, each)
            if is_keys:
                at = end
            else:
                for each in range(to, end):
                    found[0, each] += place_low[block]
                to = end
    return keys, found


@compiled
def _sizes(
    plain: Bytes,
    parts: Integers,
    per_block: int,
    keys: Integers,
    runs: Integers,
    weekly: NDArray[np.bool_],
    told: Integers,
    below: NDArray[np.uint64],
    latitude: NDArray[np.uint64],
    longitude: NDArray[np.uint64],
    chosen: NDArray[np.bool_],
    first_day: int,
    last_day: int,
) -> Integers:
    """Strata of all blocks: runs, days, paths, whether a run is at a chosen place within the days, weeks, and streams.

    Paths that are columns are not counted yet.
    """
    sizes, nobody = np.zeros((keys.shape[1], 6), np.int64), np.empty(0, np.int64)
    at = run = 0
    for block in range(told.size):
        part = block * per_block
        rows, is_apart = part + 2, parts[part, KIND] >= APART
        day = week = 0
        for _ in range(parts[part, ROWS if is_apart else COLUMNS]):
            own = sizes[at]
            own[0] = keys[1, at]
            for each in range(run, run + own[0]):
                place, first, length = runs[0, each], runs[1, each], runs[2, each]
                if is_apart:
                    pass
                elif told[block] == COUNTED:
                    own[2] += reading.total(plain, parts, rows + 1, day, day + length)
                elif weekly[block]:
                    turn = _turn(latitude[place], longitude[place])
                    began = parts[rows, PLACE] + week
                    own[2] += _by_week(plain, began, first, told[block], turn, below[block], length, nobody, nobody)
                elif told[block] == ALL:
                    own[2] += reading.total(plain, parts, rows, day, day + length)
                else:
                    turn = _turn(latitude[place], longitude[place])
                    for later in range(length):
                        if turn + Unsigned(first + later) * GOLDEN < below[block]:
                            own[2] += reading.number(plain, parts, rows, 0, day + later)
                weeks = _weeks(first, length)
                day, week = day + length, week + weeks
                own[1], own[4] = own[1] + length, own[4] + weeks
                if chosen[place] and first <= last_day and first + length > first_day:
                    own[3] = 1
            own[5] = keys[2, at] if is_apart else (own[2] + LAP - 1) // LAP
            run, at = run + own[0], at + 1
    return sizes


@compiled
def _days_apart(joined: Bytes, place: int, is_counted: bool, rows: Integers, kept: Integers) -> None:
    """The rows of a stratum's days, and their paths where these are counted, as `days.opened_apart` has them."""
    group, at = Unsigned(SIZE_BITS), Unsigned(8 * place)
    most, at = reading.told_apart(joined, at + group, reading.size_of(joined, at))
    many, at = reading.told_apart(joined, at + group, reading.size_of(joined, at))
    for day in range(rows.size):
        rows[day] = most
    if many:
        fewer, day = np.empty(many, np.int64), -1
        bits, at = reading.size_of(joined, at), at + group
        for each in range(many):
            gap, at = reading.told_apart(joined, at, bits)
            day += gap + 1
            fewer[each] = day
        bits, at = reading.size_of(joined, at), at + group
        for each in range(many):
            lacks, at = reading.told_apart(joined, at, bits)
            rows[fewer[each]] -= lacks + 1
    if is_counted:
        share, at = reading.told_apart(joined, at + group, reading.size_of(joined, at))
        bits, at = reading.size_of(joined, at), at + group
        for day in range(rows.size):
            more, at = reading.told_apart(joined, at, bits)
            kept[day] = ((more >> 1) ^ -(more & 1)) + ((rows[day] * share + (1 << SHARE_BITS - 1)) >> SHARE_BITS)


@compiled
def _stretched(
    runs: Integers,
    first: int,
    many: int,
    days: int,
    turns: NDArray[np.uint64],
    offset: Integers,
    shift: NDArray[np.float64],
    to: int,
) -> int:
    """Where among the days of a stratum its stretches begin, written down from `to` on; one past the last.

    They end with their days and with their place, and go on over a gap between two runs. Given the turns of runs, also
    by how much the lattice of each is shifted, as `stretches.shifted` has it.
    """
    begin, place, last = 0, -1, 0
    for run in range(first, first + many):
        own, day, length = runs[0, run], runs[1, run], runs[2, run]
        for each in range(length):
            number = (day + each) // days
            if own != place or number != last:
                mixed = (turns[run - first] ^ Unsigned(number) * ODD) * MIXED
                mixed = (mixed ^ mixed >> Unsigned(32)) * GOLDEN
                offset[to], shift[to] = begin + each, float(mixed >> Unsigned(11)) / 2.0**53 - 0.5
                to += 1
            place, last = own, number
        begin += length
    return to


@compiled
def _stretches(runs: Integers, first: int, many: int, days: int) -> int:
    """How many stretches a stratum has."""
    found, place, last = 0, -1, 0
    for run in range(first, first + many):
        begin, end = runs[1, run] // days, (runs[1, run] + runs[2, run] - 1) // days
        found += end - begin + (runs[0, run] != place or begin != last)
        place, last = runs[0, run], end
    return found


@compiled
def _facts(plain: Bytes, parts: Integers, part: int, first: int, found: Integers, begin: int, end: int) -> None:
    """What is kept of some stretches of a feature, from the first of the block on, as `stretches.opened` has it."""
    at, row = parts[part, PLACE] + first - begin, 0
    for fact in range(FACTS):
        for each in range(begin, end):
            found[fact, each] = 0
        for plane in range(PLANES[fact]):
            own = at + row * parts[part, COLUMNS]
            for each in range(begin, end):
                found[fact, each] |= np.int64(plain[own + each]) << 8 * plane
            row += 1
        for each in range(begin, end):
            found[fact, each] = (found[fact, each] >> 1) ^ -(found[fact, each] & 1)


@compiled
def _bins_of(
    plain: Bytes, parts: Integers, part: int, stratum: int, starts: Codes, ends: Codes, tilt: Tilts, counts: Integers
) -> None:
    """The bins of a stratum, from a table of bytes."""
    table, columns, bins = parts[part, PLACE] + stratum, parts[part, COLUMNS], starts.size
    end = int(plain[table])
    for each in range(bins):
        start, shape = end, int(np.int8(plain[table + (bins + 1 + each) * columns]))
        end += plain[table + (each + 1) * columns]
        _put(starts, ends, tilt, each, start, end, shape)
    for each in range(bins + 1):
        count = 0
        for row in range(2 * bins + 1 + each, parts[part, ROWS], bins + 1):
            count = count << 8 | plain[table + row * columns]
        counts[each] = count


@compiled
def _bins_apart(joined: Bytes, place: int, starts: Codes, ends: Codes, tilt: Tilts, counts: Integers) -> None:
    """The same, from a column of numbers that begins at some byte."""
    at, bins, group = Unsigned(8 * place), starts.size, Unsigned(SIZE_BITS)
    end, at = reading.told_apart(joined, at + group, reading.size_of(joined, at))
    bits, at = reading.size_of(joined, at), at + group
    for each in range(bins):
        starts[each] = end
        wide, at = reading.told_apart(joined, at, bits)
        end += wide
    bits, at = reading.size_of(joined, at), at + group
    for each in range(bins):
        shape, at = reading.told_apart(joined, at, bits)
        _put(
            starts, ends, tilt, each, int(starts[each]), int(starts[each + 1]) if each + 1 < bins else end,
            (shape >> 1) ^ -(shape & 1),
        )  # fmt: skip
    bits, at = reading.size_of(joined, at), at + group
    for each in range(bins):
        counts[each], at = reading.told_apart(joined, at, bits)
    counts[bins], at = reading.told_apart(joined, at + group, reading.size_of(joined, at))


@compiled
def _put(starts: Codes, ends: Codes, tilt: Tilts, each: int, start: int, end: int, shape: int) -> None:
    """Write down a bin, given where the next one begins, as `tilts.read` has it."""
    is_cut = shape > STEPS
    starts[each], tilt[each] = start, 0 if is_cut else shape
    ends[each] = start - (start - end >> CUTS[shape - STEPS - 1]) if is_cut else end


@compiled
def decoded(
    plain: Bytes,
    joined: Bytes,
    frames: Integers,
    which: Integers,
    shares: Shares,
    bits: int,
    rank_of: Codes,
    share_of: NDArray[np.uint32],
    place_low: Integers,
    weekly: NDArray[np.bool_],
    told: Integers,
    below: NDArray[np.uint64],
    latitude: NDArray[np.uint64],
    longitude: NDArray[np.uint64],
    chosen: NDArray[np.bool_],
    first_day: int,
    last_day: int,
    features: Integers,
    needed: Integers,
    parents: Integers,
    centres: Codes,
    code_of: Codes,
    bins: int,
    stretch_days: Integers,
    in_scope_only: bool,
) -> tuple[tuple[Any, ...], Integers, Integers, Integers, Integers, NDArray[np.float64], Integers]:
    """The fields of `Strata`, in its order, of all strata in scope; then where their days begin, all days; and of the
    features that are wanted with stretches of so many days what is kept of these, where their days begin, by how much
    their lattices are shifted, and how many there are.

    Frames are those of the blocks `which`, so many bytes each, `joined`; what of them is packed is also given `plain`.
    A block has HEADS, a part with the bins of each feature, one with the stretches of each that has any, one with how
    many words the streams of every feature have, and the ranks of the features that are `needed` to find the
    codes, parents first, where they are not in streams: `words` tells where these begin. Tables of ranks are those of
    all features, or else made of their shares.
    With `in_scope_only` no stream is read behind the last path of a day in scope: codes of others are 0. Where no path
    is in scope, which are those that others speak for, all are read.
    """
    tables = features.size + stretch_days.size
    parts, words, _ = reading.parted(joined, frames, tables, needed.size)
    per_block = parts.shape[0] // which.size
    place_low, weekly, told, below = (
        reading.taken(place_low, which),
        reading.taken(weekly, which),
        reading.taken(told, which),
        reading.taken(below, which),
    )
    keys_of, runs_of = _heads(plain, joined, parts, per_block, place_low)
    days_known = (weekly, told, below, latitude, longitude)
    sizes = _sizes(plain, parts, per_block, keys_of, runs_of, *days_known, chosen, first_day, last_day)
    strata = runs = days = paths = 0
    for each in range(sizes.shape[0]):
        if sizes[each, 3]:
            strata, runs, days = strata + 1, runs + sizes[each, 0], days + sizes[each, 1]
    period = np.empty(strata, np.int64)
    run_offset, day_offset, day_of = (
        np.zeros(strata + 1, np.int64),
        np.zeros(strata + 1, np.int64),
        np.empty(days, np.int64),
    )
    run_place, run_first, run_days = np.empty(runs, np.int64), np.empty(runs, np.int64), np.empty(runs, np.int64)
    run_turn = np.zeros(runs, np.uint64)
    day_rows, day_kept = np.empty(days, np.int64), np.empty(days, np.int64)
    reached_by, heard = np.empty(strata, np.int64), 0  # of strata: paths up to the last in scope; paths in scope

    # days
    seen = run = to = to_run = to_day = 0
    for block in range(place_low.size):
        keys, day, week = block * per_block, 0, 0
        is_apart = parts[keys, KIND] >= APART
        column = reading.first(joined, parts, keys + 2, 0) if is_apart else 0
        for stratum in range(parts[keys, ROWS if is_apart else COLUMNS]):
            own_day, own_week, own = to_day, week, sizes[seen]
            if own[3]:
                period[to] = keys_of[0, seen]
                own_rows, own_kept = day_rows[to_day : to_day + own[1]], day_kept[to_day : to_day + own[1]]
                if is_apart:
                    _days_apart(joined, column, told[block] == COUNTED, own_rows, own_kept)
                begins_at = reached = 0
                for each in range(run, run + own[0]):
                    place, first_of, long = runs_of[0, each], runs_of[1, each], runs_of[2, each]
                    run_place[to_run], run_first[to_run], run_days[to_run] = place, first_of, long
                    turn = _turn(latitude[place], longitude[place])
                    run_turn[to_run] = turn
                    for later in range(long):
                        day_of[own_day + later] = first_of + later
                    if not is_apart:
                        begun = day + own_day - to_day
                        for later in range(long):
                            if not weekly[block]:
                                day_rows[own_day + later] = reading.number(plain, parts, keys + 2, 0, begun + later)
                            if told[block] == COUNTED:
                                day_kept[own_day + later] = reading.number(plain, parts, keys + 3, 0, begun + later)
                        if weekly[block]:
                            _by_week(
                                plain, parts[keys + 2, PLACE] + own_week, first_of, told[block], turn, below[block],
                                long, day_rows[own_day : own_day + long], day_kept[own_day : own_day + long],
                            )  # fmt: skip
                    if told[block] != COUNTED and (is_apart or not weekly[block]):
                        for later in range(long):
                            stays = told[block] == ALL or turn + Unsigned(first_of + later) * GOLDEN < below[block]
                            day_kept[own_day + later] = day_rows[own_day + later] if stays else 0
                    if in_scope_only and chosen[place]:
                        begins, past = max(first_day - first_of, 0), min(last_day - first_of + 1, long)
                        for later in range(begins, past):
                            heard += own_kept[begins_at + later]
                        reached = begins_at + past if begins < past else reached
                    begins_at += long
                    to_run, own_day, own_week = to_run + 1, own_day + long, own_week + _weeks(first_of, long)
                if is_apart:
                    for each in range(own_kept.size):
                        own[2] += own_kept[each]
                reached_by[to] = 0
                for each in range(reached):
                    reached_by[to] += own_kept[each]
                to, to_day, paths = to + 1, to_day + own[1], paths + own[2]
                run_offset[to], day_offset[to] = to_run, to_day
            if is_apart:
                column += reading.length(joined, parts[keys + 2, PLACE], stratum, parts[keys + 2, KIND] > APART)
            seen, run, day, week = seen + 1, run + own[0], day + own[1], week + own[4]

    # bins, paths and stretches
    of_stretches = stretch_days.size
    stretches, stretch_offset = (
        np.empty((of_stretches, FACTS, days), np.int64),
        np.zeros((of_stretches, days + 1), np.int64),
    )
    stretch_shift, stretched, stretch = (
        np.empty((of_stretches, days)),
        np.zeros(of_stretches, np.int64),
        np.zeros(of_stretches, np.int64),
    )
    starts = np.empty((features.size, strata, bins), np.uint8)
    ends = np.empty((features.size, strata, bins), np.uint8)
    counts = np.empty((features.size, strata, bins + 1), np.int64)
    tilt = np.empty((features.size, strata, bins), np.int8)
    known = np.empty((needed.size, paths), np.uint8)
    row_of, nobody = np.full(parents.shape[0], -1, np.int64), np.empty(0, np.uint8)
    for row in range(needed.size):
        row_of[needed[row]] = row
    before, is_kept = shares.shape[1], rank_of.size > 0
    if not is_kept:
        rank_of, share_of = ranking.ranks_of(shares, needed, bits)
    tables_of = (rank_of, share_of, Unsigned(shares.shape[2] - 1), Unsigned(bits))
    at, length = np.empty(needed.size, np.int64), np.empty(needed.size, np.int64)
    table = np.empty(needed.size, np.int64)
    for row in range(needed.size):
        table[row] = before * (needed[row] if is_kept else row)
    apart = np.empty(features.size, np.int64)
    seen = run = to = to_day = to_path = 0
    for block in range(place_low.size):
        keys, lengths = block * per_block, block * per_block + HEADS + tables
        is_apart = parts[lengths, KIND] >= APART
        streams = parts[lengths, ROWS] if is_apart else parts[lengths, ROWS] // parents.shape[0]
        path = lap = 0
        stretch[:] = 0
        lengths_of = np.empty((needed.size, streams), np.int64)
        for row in range(needed.size):
            at[row] = words[block * needed.size + row]
            if is_apart:
                reading.line(joined, parts, lengths, needed[row], lengths_of[row])
            else:
                for each in range(streams):
                    lengths_of[row, each] = reading.number(plain, parts, lengths, needed[row] * streams + each, 0)
        for feature in range(features.size):
            apart[feature] = reading.first(joined, parts, keys + HEADS + feature, 0)
        for stratum in range(parts[keys, ROWS if parts[keys, KIND] >= APART else COLUMNS]):
            own_size = sizes[seen]
            for row in range(needed.size if own_size[3] and not streams else 0):
                there, ranks = parts[lengths + 1 + row, PLACE] + path, known[row, to_path : to_path + own_size[2]]
                for each in range(ranks.size):
                    ranks[each] = plain[there + each]
            for begin in range(to_path, to_path + own_size[5] * LAP if streams else to_path, LAP):
                for row in range(needed.size):
                    length[row] = lengths_of[row, lap]
                if own_size[3]:
                    end = min(begin + LAP, to_path + (reached_by[to] if heard else own_size[2]))
                    ranking.ranked(joined, at, length, tables_of, table, before, known, begin, end)
                for row in range(needed.size):
                    at[row] += 2 * length[row]
                lap += 1
            if own_size[3]:
                for feature in range(features.size):
                    own = keys + HEADS + feature
                    bins_of = (starts[feature, to], ends[feature, to], tilt[feature, to], counts[feature, to])
                    if parts[own, KIND] >= APART:
                        _bins_apart(joined, apart[feature], *bins_of)
                    else:
                        _bins_of(plain, parts, own, stratum, *bins_of)
                end_path, last_path = to_path + own_size[2], to_path + (reached_by[to] if heard else own_size[2])
                for row in range(needed.size):
                    feature, first, second = needed[row], nobody, nobody
                    if parents[feature, 0] >= 0:
                        first = known[row_of[parents[feature, 0]], to_path:last_path]
                    if parents[feature, 1] >= 0:
                        second = known[row_of[parents[feature, 1]], to_path:last_path]
                    ranking.coded(known[row, to_path:last_path], first, second, centres[feature], code_of)
                    for each in range(last_path, end_path):
                        known[row, each] = 0
                turns = run_turn[run_offset[to] : run_offset[to + 1]]
                for number in range(of_stretches):
                    begin, own_offset = stretched[number], stretch_offset[number]
                    until = _stretched(
                        runs_of, run, own_size[0], stretch_days[number], turns, own_offset, stretch_shift[number], begin
                    )
                    for each in range(begin, until):
                        own_offset[each] += to_day
                    own = keys + HEADS + features.size + number
                    _facts(plain, parts, own, stretch[number], stretches[number], begin, until)
                    stretch[number], stretched[number] = stretch[number] + until - begin, until
                to, to_day, to_path = to + 1, to_day + own_size[1], end_path
            else:
                for number in range(of_stretches):
                    stretch[number] += _stretches(runs_of, run, own_size[0], stretch_days[number])
            for feature in range(features.size):
                own = keys + HEADS + feature
                if parts[own, KIND] >= APART:
                    apart[feature] += reading.length(joined, parts[own, PLACE], stratum, parts[own, KIND] > APART)
            seen, run, path = seen + 1, run + own_size[0], path + own_size[2]
    codes = np.empty((features.size, paths), np.uint8)
    for feature in range(features.size):
        given, found = known[row_of[features[feature]]], codes[feature]
        for each in range(paths):
            found[each] = given[each]
    for number in range(of_stretches):
        stretch_offset[number, stretched[number]] = to_day
    fields = (
        period, starts, ends, counts, tilt, run_offset, run_place, run_first, run_days, run_turn, day_rows, day_kept,
        codes,
    )  # fmt: skip
    return fields, day_offset, day_of, stretches, stretch_offset, stretch_shift, stretched


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


@compiled
def is_shared(run_offset: Integers, run_place: Integers) -> bool:
    """Whether any stratum has several places."""
    for stratum in range(run_offset.size - 1):
        for run in range(run_offset[stratum] + 1, run_offset[stratum + 1]):
            if run_place[run] != run_place[run - 1]:
                return True
    return False
