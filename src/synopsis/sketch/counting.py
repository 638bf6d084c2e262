"""Counting: ticks of rows into counts by place, day, stratum and fine bin, in one pass of machine code.

What `Tallies.of`, `Meetings.of` and `even_choice` do for rows at once is done here row by row, onto counts that are
there already. Rows of a place come day after day as a rule, so that a row finds its day where the last one of its place
did; the stratum and the span are those of the day.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.stretches import ABSENT_LEVEL, Levels
from synopsis.sketch.tallies import DAY_US
from synopsis.sketch.ticks import ABSENT_TICK, MOST_TICKS

#: Odd numbers without a pattern, to mix bits with: those of `budget.even_choice`.
_GOLDEN, _ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)

_29, _32 = np.uint64(29), np.uint64(32)

#: What is known of a day of a place.
DAY_PLACE, DAY, DAY_STRATUM, DAY_SPAN, DAY_ROWS = range(5)

#: Of what there are so many.
DAYS, STRATA, SPANS, KEPT = range(4)

#: Rows that are taken through each step at once: so few that what is known of them stays in the fastest cache.
_AT_ONCE = 2_048


@compiled
def _spot(one: int, two: int, table: Integers) -> np.int64:
    """Where two numbers are first looked for in a table of a power of two."""
    mixed = (np.uint64(one) * _GOLDEN ^ np.uint64(two)) * _ODD
    return np.int64((mixed ^ mixed >> _29 ^ mixed >> _32) & np.uint64(table.size - 1))


@compiled
def _found(one: int, two: int, table: Integers, keys: Integers, count: int) -> int:
    """The number of a pair: the one that it has, or the next one, which is `count`. There is room for it."""
    at = _spot(one, two, table)
    while table[at] >= 0:
        if keys[0, table[at]] == one and keys[1, table[at]] == two:
            return int(table[at])
        at = (at + 1) & (table.size - 1)
    table[at], keys[0, count], keys[1, count] = count, one, two
    return count


@compiled
def placed(
    latitude: Integers, longitude: Integers, start: int, place: Integers, table: Integers, places: Integers, count: int
) -> tuple[int, int]:
    """The number of the place of each row from `start` on, given the bits of its position: until there is room for no
    more places. Returns the rows that have one, and the places known.
    """
    for row in range(start, latitude.size):
        if row > start and latitude[row] == latitude[row - 1] and longitude[row] == longitude[row - 1]:
            place[row] = place[row - 1]
            continue
        if count == places.shape[1]:
            return row, count
        found = _found(latitude[row], longitude[row], table, places, count)
        place[row], count = found, max(count, found + 1)
    return latitude.size, count


@compiled
def ticked(
    values: Floats, origin: float, step: float, atoms: Floats, packed: NDArray[np.uint16], position: int
) -> None:
    """The tick of each value, as `Ticks.of`, into its position among those that are packed together, rows x 4."""
    for row in range(values.size):
        value = values[row]
        if np.isnan(value):
            packed[row, position] = ABSENT_TICK
            continue
        steps = np.floor((value - origin) / step)
        tick = np.int64(min(steps, MOST_TICKS)) if steps > 0.0 else 0
        for at in range(atoms.size):
            tick += np.int64(value >= atoms[at]) + np.int64(value > atoms[at])
        packed[row, position] = min(tick, ABSENT_TICK - 1)


@compiled
def filed(numbers: Integers, table: Integers) -> None:
    """Pairs that are all different, 2 x pairs, into an empty table."""
    for number in range(numbers.shape[1]):
        at = _spot(numbers[0, number], numbers[1, number], table)
        while table[at] >= 0:
            at = (at + 1) & (table.size - 1)
        table[at] = number


@compiled
def _turn(latitude: int, longitude: int, slot: int) -> np.uint64:
    """`even_choice` of a row in a slot of time, but for what its codes add."""
    turn = np.uint64(longitude) * _GOLDEN
    turn = np.uint64(latitude) ^ (turn ^ turn >> _29) * _ODD
    turn *= _GOLDEN
    return (turn ^ turn >> _29) * _ODD + np.uint64(slot) * _GOLDEN


@compiled
def _dated(
    start: int,
    end: int,
    place: Integers,
    local_us: Integers,
    group: Integers,
    cell: Integers,
    first_day: int,
    period_of: Integers,
    span_period_of: Integers,
    last: Integers,
    day_table: Integers,
    days: Integers,
    stratum_table: Integers,
    strata: Integers,
    span_table: Integers,
    spans: Integers,
    counts: Integers,
    number: NDArray[np.uint32],
    stratum: NDArray[np.uint32],
    span: NDArray[np.uint32],
) -> int:
    """The numbers of the days of rows, with their strata and spans, and how many have one: those that found room."""
    for row in range(start, end):
        here, day = place[row], local_us[row] // DAY_US
        if last[here, 0] != day or last[here, 1] < 0:
            full = counts[DAYS] == days.shape[1] or counts[STRATA] == strata.shape[1]
            if full or counts[SPANS] == spans.shape[1]:
                return row - start
            at = _found(here, day, day_table, days, counts[DAYS])
            if at == counts[DAYS]:
                days[DAY_STRATUM, at] = _found(
                    group[here], period_of[day - first_day], stratum_table, strata, counts[STRATA]
                )
                days[DAY_SPAN, at] = _found(
                    cell[here], span_period_of[day - first_day], span_table, spans, counts[SPANS]
                )
                days[DAY_ROWS, at] = 0
                counts[DAYS] += 1
                counts[STRATA] = max(counts[STRATA], days[DAY_STRATUM, at] + 1)
                counts[SPANS] = max(counts[SPANS], days[DAY_SPAN, at] + 1)
            last[here, 0], last[here, 1] = day, at
        at = last[here, 1]
        days[DAY_ROWS, at] += 1
        number[row - start], stratum[row - start], span[row - start] = at, days[DAY_STRATUM, at], days[DAY_SPAN, at]
    return end - start


@compiled
def _meet(rows: int, one: Codes, other: Codes, width: int, span: NDArray[np.uint32], met: Codes, size: int) -> None:
    """Set a bit for the joint bins of two features of each row, among the bytes of its span; most are set already."""
    for row in range(rows):
        bit = one[row] * width + other[row]
        at, own = span[row] * size + (bit >> 3), np.uint8(128 >> (bit & 7))
        if not met[at] & own:
            met[at] |= own


@compiled
def counted(
    start: int,
    end: int,
    place: Integers,
    latitude: Integers,
    longitude: Integers,
    local_us: Integers,
    ticks: NDArray[np.uint16],
    code_of: Codes,
    tick_rows: Integers,
    level_of: Levels,
    group: Integers,
    cell: Integers,
    first_day: int,
    period_of: Integers,
    span_period_of: Integers,
    last: Integers,
    day_table: Integers,
    days: Integers,
    day_sums: Integers,
    stratum_table: Integers,
    strata: Integers,
    mass: NDArray[np.uint32],
    span_table: Integers,
    spans: Integers,
    joint_of: Codes,
    pair_start: Integers,
    width: Integers,
    met: NDArray[np.uint8],
    slot_us: int,
    regular: bool,
    everything: bool,
    threshold: np.uint64,
    timed: bool,
    kept_day: Integers,
    kept_us: Integers,
    kept_codes: Codes,
    counts: Integers,
) -> int:
    """Rows from start to end onto what is counted already; returns the first row for which there was no room.

    `counts` says how many days, strata, spans and kept rows there are. `ticks` are integers x rows x 4, `code_of` and
    `tick_rows` features x ticks, `mass` features x strata x fine codes, `last` places x day and its number. `day_sums`
    are of levels, features x days x (values, sum, sum of squares), where `level_of` has those of ticks. `met` has the
    bytes of all spans for which there is room, pair of features by pair.
    """
    features, joints = code_of.shape[0], joint_of.shape[0]
    number, stratum = np.empty(_AT_ONCE, np.uint32), np.empty(_AT_ONCE, np.uint32)
    span = np.empty(_AT_ONCE, np.uint32)
    codes, joint = np.empty((features, _AT_ONCE), np.uint8), np.empty((joints, _AT_ONCE), np.uint8)
    while start < end:
        rows = _dated(
            start,
            min(start + _AT_ONCE, end),
            place,
            local_us,
            group,
            cell,
            first_day,
            period_of,
            span_period_of,
            last,
            day_table,
            days,
            stratum_table,
            strata,
            span_table,
            spans,
            counts,
            number,
            stratum,
            span,
        )
        for feature in range(features):
            packed, at, table = ticks[feature // ticks.shape[2]], feature % ticks.shape[2], code_of[feature]
            own, all_rows, coded = mass[feature], tick_rows[feature], codes[feature]
            for row in range(rows):
                tick = packed[start + row, at]
                code = table[tick]
                all_rows[tick] += 1
                own[stratum[row], code] += 1
                coded[row] = code
            if level_of.shape[0]:
                heights, sums = level_of[feature], day_sums[feature]
                for row in range(rows):
                    level = np.int64(heights[packed[start + row, at]])
                    if level != ABSENT_LEVEL:
                        at_day = number[row]
                        sums[at_day, 0] += 1
                        sums[at_day, 1] += level
                        sums[at_day, 2] += level * level
            if feature < joints:
                for row in range(rows):
                    joint[feature, row] = joint_of[feature, coded[row]]
        pair = 0
        for one in range(joints):
            for other in range(one + 1, joints):
                begin, past = pair_start[pair] * spans.shape[1], pair_start[pair + 1] * spans.shape[1]
                size = pair_start[pair + 1] - pair_start[pair]
                _meet(rows, joint[one], joint[other], width[other], span, met[begin:past], size)
                pair += 1
        for row in range(rows):
            us = local_us[start + row]
            if not everything:
                turn = _turn(latitude[start + row], longitude[start + row], us // slot_us)
                if not regular:
                    mixed = np.uint64(us)
                    for feature in range(features):
                        mixed = (mixed ^ np.uint64(codes[feature, row])) * _GOLDEN
                        mixed ^= mixed >> _32
                    turn += mixed * _ODD
                if turn >= threshold:
                    continue
            to = counts[KEPT]
            kept_day[to], kept_us[to] = number[row], us if timed else us // DAY_US * DAY_US
            for feature in range(features):
                kept_codes[to, feature] = codes[feature, row]
            counts[KEPT] = to + 1
        if rows < min(_AT_ONCE, end - start):
            return start + rows
        start += rows
    return end
