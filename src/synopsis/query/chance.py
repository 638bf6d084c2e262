"""Chance: how far the paths of strata are from what exact counts say, and how much of it a group has.

The machine code of `sampled` and `estimate`, whose docstrings tell what is computed. A group that has a part of a
stratum is told by all of its paths: those in scope by what they weigh, the others by what the whole stratum lacks or
exceeds. To list them all for every group takes groups x paths. Where a group has few of its strata's paths, only those
are listed: the group is **brief**. What there is of all paths then is gathered once for all groups: what they weigh in
each bin, and how often each two bins follow each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synopsis.query.weighing import beside, path_starts, scale_of, scale_of_all
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import Flags

#: Fewer groups are not worth gathering for, nor are features with more bins (and one for absent values).
_GROUPS, _BINS = 4, 32

#: A brief group has so many times fewer paths than its strata, and these so many paths for each two bins.
_FEWER, _PAIRS = 4, 0.5

#: The fourth moment of differences is so many squares, where tails are heavy (three if they were normal).
FOURTH = 2.0


@compiled
def is_brief(kept: Integers, offset: Integers, in_scope: Integers, bins: int) -> Flags:
    """Groups: whether their paths in scope are so few of their strata's that these are better gathered than listed."""
    groups = offset.size - 1
    found = np.zeros(groups, np.bool_)
    for group in range(groups if groups >= _GROUPS and bins <= _BINS else 0):
        every, slots = 0, offset[group + 1] - offset[group]
        for slot in range(offset[group], offset[group + 1]):
            every += kept[slot]
        found[group] = every > _PAIRS * bins * bins * slots and every >= _FEWER * in_scope[group]
    return found


@compiled
def runs_of(
    day_offset: Integers,
    day_rows: Integers,
    day_kept: Integers,
    day: Integers,
    share: Floats,
    stratum: Integers,
    begin: Integers,
    end: Integers,
    offset: Integers,
    whole: Integers,
    kept: Integers,
    in_scope: Integers,
    covered: Floats,
    lean: Floats,
    lean_start: Integers,
    even: bool,
    effect: float,
    bins: int,
) -> tuple[Positions, Positions, Positions, Floats, Floats, Floats, Integers, Floats, Floats]:
    """All paths of the strata of groups that are not covered whole, in runs of equal weight: their first column, how
    many they are, slot, weight in scope, weight in the whole stratum, reach; where groups begin.

    A run is a day, or a path where paths of a day lean. Of brief groups these are the paths in scope. Then strata: by
    how much more a path stands for all rows; and slots: how far others reach, for each unit of their squared weight, or
    -1 where there are none. Both are empty where no group is brief.
    Cost: paths of brief groups, and paths of the strata of each other one.
    """
    groups = offset.size - 1
    size, longest, any_brief = 0, 0, False
    partly, brief = np.zeros(groups, np.bool_), is_brief(kept, offset, in_scope, bins)
    for group in range(groups):
        listed, longest_own = 0, 0
        for slot in range(offset[group], offset[group + 1]):
            days = day_offset[stratum[slot] + 1] - day_offset[stratum[slot]]
            partly[group] = partly[group] or covered[slot] != 1.0
            listed += kept[slot] if lean.size else min(kept[slot], days)
            longest_own = max(longest_own, days)
        if partly[group]:
            any_brief = any_brief or brief[group]
            longest = max(longest, 0 if brief[group] else longest_own)
            size += in_scope[group] if brief[group] else listed
    column, many, number = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    weight, in_all, reach = np.empty(size), np.empty(size), np.empty(size)
    starts, begins, entry = path_starts(day_kept), np.zeros(groups + 1, np.int64), np.empty(longest, np.int64)
    any_leans = lean.size > 0
    outer, rest = np.full(day_offset.size - 1, -1.0), np.full(stratum.size if any_brief else 0, -1.0)
    to = 0
    for group in range(groups):
        heard = silent = squares = 0.0
        for slot in range(offset[group], offset[group + 1] if partly[group] else offset[group]):
            left, right = day_offset[stratum[slot]], day_offset[stratum[slot] + 1]
            if outer[stratum[slot]] < 0.0:
                outer[stratum[slot]] = scale_of_all(day_rows, day_kept, left, right, even)
            inner = scale_of(day_rows, day_kept, day, share, begin[slot], end[slot], lean, lean_start, even)
            unseen, rows = effect * (1.0 - kept[slot] / whole[slot]), covered[slot] * whole[slot]
            if inner > 0.0:
                heard += rows
            else:
                silent, squares = silent + rows, squares + rows * rows
            if brief[group]:
                rest[slot] = covered[slot] ** 2 * unseen
                left, right = begin[slot], end[slot]
            else:
                for each in range(right - left):
                    entry[each] = -1
                for each in range(begin[slot], end[slot]):
                    entry[day[each] - left] = each
            for at in range(left, right):
                where, each = (day[at], at) if brief[group] else (at, entry[at - left])
                own, more = day_kept[where], 0.0
                if not own or (brief[group] and not share[each] > 0.0):
                    continue
                own_weight = beside(day_rows, day_kept, where, even)
                less = own_weight * outer[stratum[slot]]
                if each >= 0 and share[each] > 0.0:
                    more = own_weight * share[each] * inner
                leans = any_leans and more > 0.0 and share[each] < 1.0
                for path in range(own if leans else 1):
                    found = more * lean[lean_start[each] + path] if leans else more
                    column[to], many[to], number[to] = starts[where] + path, 1 if leans else own, slot
                    weight[to], in_all[to] = found, less
                    reach[to] = (found - less * covered[slot]) ** 2 * unseen
                    to += 1
        begins[group + 1] = to
        if silent > 0.0 and heard > 0.0:
            _speak(begins[group], to, weight, reach, heard, silent, squares)
    outer = outer[: outer.size if any_brief else 0]
    return column[:to], many[:to], number[:to], weight[:to], in_all[:to], reach[:to], begins, outer, rest


@compiled
def _speak(begin: int, end: int, weight: Floats, reach: Floats, heard: float, silent: float, squares: float) -> None:
    """Let the paths of a group reach as far as they have to speak for the rows of strata without one.

    These go with the others, and so share their chance; and each is as unlike any other as two are: `squares` are those
    of their rows.
    """
    for run in range(begin, end):
        part = weight[run] / heard
        reach[run] += silent * silent * part * part + squares * part


@compiled
def gathered(
    codes: Codes,
    bins: int,
    day_offset: Integers,
    day_rows: Integers,
    day_kept: Integers,
    stratum: Integers,
    even: bool,
    outer: Floats,
    rest: Floats,
) -> tuple[Integers, Floats, Floats, Integers, Floats]:
    """What there is of all paths of strata that brief groups have a part of. Slots: which of them, or -1. Of each:
    weight by bin; squares of weights, and squares of these, of paths that follow one of another bin, whichever is the
    first of both; their first column and the one after the last; the squares of the first weight, and of all.

    Cost: their paths once, and squared bins of each.
    """
    seat, seats = np.full(day_offset.size - 1, -1, np.int64), 0
    taken = np.full(rest.size, -1, np.int64)
    for slot in range(rest.size):
        if rest[slot] >= 0.0 and seat[stratum[slot]] < 0:
            seat[stratum[slot]] = seats
            seats += 1
        if rest[slot] >= 0.0:
            taken[slot] = seat[stratum[slot]]
    every, pairs = np.zeros((seats, bins)), np.zeros((2, seats, bins * (bins - 1) // 2))
    ends, squares = np.zeros((seats, 2), np.int64), np.zeros((seats, 2))
    at = 0
    for number in range(seat.size if seats else 0):
        here, begin = seat[number], at
        for where in range(day_offset[number], day_offset[number + 1]):
            own = day_kept[where]
            if here >= 0 and own:
                less = beside(day_rows, day_kept, where, even) * outer[number]
                square = less * less
                squares[here, 1] += own * square
                if at == begin:
                    squares[here, 0] = square
                for path in range(at, at + own):
                    code = codes[path]
                    every[here, code] += less
                    if path > begin and codes[path - 1] != code:
                        low, high = int(min(code, codes[path - 1])), int(max(code, codes[path - 1]))
                        pairs[0, here, high * (high - 1) // 2 + low] += square
                        pairs[1, here, high * (high - 1) // 2 + low] += square * square
            at += own
        if here >= 0:
            ends[here, 0], ends[here, 1] = begin, at
    return taken, every, pairs, ends, squares


@compiled
def weighed(shape: tuple[int, int], codes: Codes, luck: Any, of_all: Any) -> tuple[Floats, Floats]:
    """Slots x (bins and absent): what paths in scope weigh, and what all of the stratum do."""
    column, many, slot, weight, whole = luck[0], luck[1], luck[2], luck[3], luck[4]
    taken, every = of_all[0], of_all[1]
    inside, everywhere = np.zeros(shape), np.zeros(shape)
    for number in range(taken.size):
        for each in range(shape[1] if taken[number] >= 0 else 0):
            everywhere[number, each] = every[taken[number], each]
    for run in range(column.size):
        number = slot[run]
        is_listed = not taken.size or taken[number] < 0
        for path in range(column[run], column[run] + many[run]):
            inside[number, codes[path]] += weight[run]
            if is_listed:
                everywhere[number, codes[path]] += whole[run]
    return inside, everywhere


@compiled
def reached(luck: Any, of_all: Any, slots: Integers, group: int) -> float:
    """How far all paths of a group reach together."""
    many, whole, reach, offset, rest = luck[1], luck[4], luck[5], luck[6], luck[8]
    taken, squares, found = of_all[0], of_all[4], 0.0
    for slot in range(slots[group], slots[group + 1] if taken.size else slots[group]):
        if taken[slot] >= 0:
            found += rest[slot] * squares[taken[slot], 1]
    for run in range(offset[group], offset[group + 1]):
        slot = luck[2][run]
        known = whole[run] * whole[run] * rest[slot] if taken.size and taken[slot] >= 0 else 0.0
        found += (reach[run] - known) * many[run]
    return found


@compiled
def differing(table: Floats, codes: Codes, luck: Any, of_all: Any, slots: Integers, group: int) -> tuple[float, float]:
    """The squared error of a total, by how much neighbouring paths differ, and how many paths' word that is.

    The table says what each path is, by its slot and bin.
    """
    begin, end, taken = luck[6][group], luck[6][group + 1], of_all[0]
    if taken.size and slots[group] < slots[group + 1] and taken[slots[group]] >= 0:
        total, fourth = _briefly(table, codes, luck, of_all, slots[group], slots[group + 1], begin, end)
    else:
        total, fourth = _one_by_one(table, codes, luck[0], luck[1], luck[2], luck[5], begin, end)
    return total / 2, FOURTH * total * total / fourth if fourth > 0.0 else 0.0


@compiled
def _one_by_one(
    table: Floats,
    codes: Codes,
    column: Positions,
    many: Positions,
    slot: Positions,
    reach: Floats,
    begin: int,
    end: int,
) -> tuple[float, float]:
    """Squares of steps, and their squares, as far as they reach, where all paths are listed."""
    total = fourth = before = 0.0
    is_first = True
    for run in range(begin, end):
        squares = fourths = 0.0
        for path in range(column[run], column[run] + many[run]):
            value = table[slot[run], codes[path]]
            step = 0.0 if is_first else value - before
            square = step * step
            squares, fourths, before, is_first = squares + square, fourths + square * square, value, False
        total += reach[run] * squares
        fourth += reach[run] * reach[run] * fourths
    return total, fourth


@compiled
def _briefly(
    table: Floats, codes: Codes, luck: Any, of_all: Any, first_slot: int, last_slot: int, run: int, end: int
) -> tuple[float, float]:
    """The same where only paths in scope are listed: all of a stratum as if none of them were, and then these."""
    column, many, of_slot, whole, reach, rest = luck[0], luck[1], luck[2], luck[4], luck[5], luck[8]
    taken, pairs, ends, squares = of_all[0], of_all[2], of_all[3], of_all[4]
    total = fourth = before = 0.0
    is_first = True
    for slot in range(first_slot, last_slot):
        here, pair = taken[slot], 0
        first, stop = ends[here, 0], ends[here, 1]
        if first == stop:
            continue
        opening = 0.0 if is_first else (table[slot, codes[first]] - before) ** 2
        second, third = squares[here, 0] * opening, (squares[here, 0] * opening) ** 2
        for high in range(1, table.shape[1]):
            for low in range(high):
                step = table[slot, high] - table[slot, low]
                square = step * step
                second += pairs[0, here, pair] * square
                third += pairs[1, here, pair] * (square * square)
                pair += 1
        total, fourth = total + rest[slot] * second, fourth + rest[slot] * rest[slot] * third
        while run < end and of_slot[run] == slot:
            known = whole[run] * whole[run] * rest[slot]
            for path in range(column[run], column[run] + many[run]):
                square = opening
                if path > first:
                    square = (table[slot, codes[path]] - table[slot, codes[path - 1]]) ** 2
                total += (reach[run] - known) * square
                fourth += (reach[run] * reach[run] - known * known) * (square * square)
            run += 1
        before, is_first = table[slot, codes[stop - 1]], False
    return max(total, 0.0), max(fourth, 0.0)
