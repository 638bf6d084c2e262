"""Weighing: which days and paths are in scope, and for how many rows each path stands.

The machine code of `sampled`, whose docstring tells what is computed. All groups of a question are computed in one
call. A **slot** is a stratum in a group: slots of one group stand side by side, and so do its paths; an `offset` says
where those of each group begin.
"""

from __future__ import annotations

import numpy as np

from synopsis.query.inference import NORMAL
from synopsis.sketch import decoding
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.strata import Flags

#: The share of a day that rows fill which may share an instant.
_INSTANT = 1e-9


@compiled
def _stratum_of(day_offset: Integers, day: int) -> int:
    """The stratum that a day belongs to."""
    begin, end = 0, day_offset.size - 1
    while end - begin > 1:
        middle = (begin + end) >> 1
        if day_offset[middle] <= day:
            begin = middle
        else:
            end = middle
    return begin


@compiled
def in_scope(
    day_offset: Integers, day_rows: Integers, day_kept: Integers, day: Integers, share: Floats, offset: Integers
) -> tuple[Integers, Floats, Integers, Integers]:
    """Slots with rows in scope, given the part of days that each group has.

    Whole numbers of each: stratum, all rows, all paths, rows of days that are wholly in scope, rows of days that are
    partly, where its days begin and end. Rows in scope. Where the slots of groups begin. Of each group: paths in scope,
    and how many of its days are cut.
    """
    strata, groups = day_offset.size - 1, offset.size - 1
    every, own = np.zeros(strata, np.int64), np.zeros(strata, np.int64)
    for stratum in range(strata):
        for where in range(day_offset[stratum], day_offset[stratum + 1]):
            every[stratum] += day_rows[where]
            own[stratum] += day_kept[where]
    most = min(day.size, groups * strata)
    slots, rows = np.zeros((7, most), np.int64), np.zeros(most)
    begins, facts = np.zeros(groups + 1, np.int64), np.zeros((2, groups), np.int64)
    size = 0
    for group in range(groups):
        last = -1
        stratum = _stratum_of(day_offset, day[offset[group]]) if offset[group] < offset[group + 1] else 0
        for each in range(offset[group], offset[group + 1]):
            where, part = day[each], share[each]
            while day_offset[stratum + 1] <= where:
                stratum += 1
            if part > 0.0 and day_rows[where] > 0:
                if stratum != last:
                    slots[0, size], slots[1, size], slots[2, size] = stratum, every[stratum], own[stratum]
                    slots[5, size] = each
                    last = stratum
                    size += 1
                rows[size - 1] += day_rows[where] * part
                slots[3 if part >= 1.0 else 4, size - 1] += day_rows[where]
                slots[6, size - 1] = each + 1
                facts[0, group] += day_kept[where]
                facts[1, group] += part < 1.0
        begins[group + 1] = size
    return slots[:, :size], rows[:size], begins, facts


@compiled
def all_in_scope(
    run_offset: Integers,
    run_place: Integers,
    run_first: Integers,
    run_days: Integers,
    day_offset: Integers,
    day_rows: Integers,
    day_kept: Integers,
    chosen: Flags,
    begin_us: int,
    end_us: int,
) -> tuple[Integers, Floats, Integers, Integers, Integers, Floats, Integers, Integers]:
    """The same of all strata as one group, at chosen places in a span of time.

    Then what was given: all days, the part of each that is in scope, and where the group begins and ends. At last the
    places of days, where some stratum has several.
    """
    days = day_rows.size
    share = decoding.covered(run_place, run_first, run_days, days, chosen, begin_us, end_us)
    day, offset = np.empty(days, np.int64), np.zeros(2, np.int64)
    offset[1] = days
    for each in range(days):
        day[each] = each
    place, at = np.empty(days if decoding.is_shared(run_offset, run_place) else 0, np.int64), 0
    for run in range(run_place.size if place.size else 0):
        for each in range(at, at + run_days[run]):
            place[each] = run_place[run]
        at += run_days[run]
    slots, rows, begins, facts = in_scope(day_offset, day_rows, day_kept, day, share, offset)
    return slots, rows, begins, facts, day, share, offset, place


@compiled
def path_starts(day_kept: Integers) -> Integers:
    """Days: where the paths of each begin."""
    starts, at = np.empty(day_kept.size, np.int64), 0
    for day in range(day_kept.size):
        starts[day] = at
        at += day_kept[day]
    return starts


@compiled
def beside(day_rows: Integers, day_kept: Integers, day: int, even: bool) -> float:
    """What a path stands for beside others of its stratum: where paths come at even steps of time, as much as any.

    How many of these a day has goes with the hours that they are of. Otherwise a day's rows are shared by its paths.
    """
    return 1.0 if even else day_rows[day] / max(day_kept[day], 1)


@compiled
def leaning(lean: Floats, lean_start: Integers, each: int, paths: int) -> float:
    """How many of the paths of a day that is cut are in scope, for each unit of its part that is."""
    found = 0.0
    for path in range(lean_start[each], lean_start[each] + paths):
        found += lean[path]
    return found


@compiled
def scale_of(
    day_rows: Integers,
    day_kept: Integers,
    day: Integers,
    share: Floats,
    begin: int,
    end: int,
    lean: Floats,
    lean_start: Integers,
    even: bool,
) -> float:
    """By how much more a path stands for rows, so that those in scope are stood for, those of days without one, too."""
    wanted = stood_for = 0.0
    leans = lean.size > 0
    for each in range(begin, end):
        if share[each] > 0.0:
            wanted += day_rows[day[each]] * share[each]
            own = float(day_kept[day[each]])
            if leans and share[each] < 1.0:
                own = leaning(lean, lean_start, each, day_kept[day[each]])
            stood_for += own * beside(day_rows, day_kept, day[each], even) * share[each]
    return wanted / stood_for if stood_for > 0.0 else 0.0


@compiled
def scale_of_all(day_rows: Integers, day_kept: Integers, begin: int, end: int, even: bool) -> float:
    """The same of all days of a stratum."""
    wanted = stood_for = 0.0
    for where in range(begin, end):
        wanted += day_rows[where]
        stood_for += day_kept[where] * beside(day_rows, day_kept, where, even)
    return wanted / stood_for if stood_for > 0.0 else 0.0


@compiled
def paths_of(
    day_offset: Integers,
    day_rows: Integers,
    day_kept: Integers,
    day: Integers,
    share: Floats,
    stratum: Integers,
    begin: Integers,
    end: Integers,
    offset: Integers,
    in_scope: Integers,
    kept: Integers,
    covered: Floats,
    total: Floats,
    cut: bool,
    lean: Floats,
    lean_start: Integers,
    timed: Flags,
    place: Integers,
    even: bool,
    pace: float,
) -> tuple[Positions, Positions, Floats, Floats, Positions, Integers]:
    """Paths of days in scope: column, slot, weight; part of its day in scope, where days are `cut`, or how well it is
    known whether it is, where paths know their hours (`timed`); place, if given.

    Where a group has none, all paths of its strata speak for it, whatever their day, and have no place. The weights of
    a group are those of its rows. At last, where the paths of groups begin.
    """
    size = 0
    for group in range(offset.size - 1):
        stray = 0
        for slot in range(offset[group], offset[group + 1]):
            stray += kept[slot]
        size += in_scope[group] if in_scope[group] and not lean.size else max(in_scope[group], stray)
    column, number, weight = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size)
    part, where_at = np.empty(size if cut else 0), np.empty(size if place.size else 0, np.int32)
    starts, begins, to = path_starts(day_kept), np.zeros(offset.size, np.int64), 0
    for group in range(offset.size - 1):
        first, reached = to, 0.0
        for slot in range(offset[group], offset[group + 1]):
            scale = scale_of(day_rows, day_kept, day, share, begin[slot], end[slot], lean, lean_start, even)
            for each in range(begin[slot], end[slot]):
                where = day[each]
                if not (day_kept[where] and share[each] > 0.0 and day_rows[where] > 0):
                    continue
                own = beside(day_rows, day_kept, where, even) * share[each] * scale
                for path in range(day_kept[where]):
                    column[to], number[to] = starts[where] + path, slot
                    weight[to] = own * lean[lean_start[each] + path] if lean.size else own
                    reached += weight[to]
                    if cut:
                        part[to] = share[each]
                        if timed[group]:  # where rows are missing, nobody knows which
                            is_open = even and pace > 0.0 and share[each] < 1.0
                            part[to] = min(day_rows[where] * pace, 1.0) if is_open else 1.0
                    if place.size:
                        where_at[to] = place[where]
                    to += 1
        if reached == 0.0:
            to = first
            for slot in range(offset[group], offset[group + 1]):
                left, right = day_offset[stratum[slot]], day_offset[stratum[slot] + 1]
                scale = scale_of_all(day_rows, day_kept, left, right, even) * covered[slot]
                for where in range(left, right):
                    own = beside(day_rows, day_kept, where, even) * scale
                    for path in range(day_kept[where]):
                        column[to], number[to], weight[to] = starts[where] + path, slot, own
                        reached += own
                        if cut:
                            part[to] = 1.0
                        if place.size:
                            where_at[to] = -1
                        to += 1
        if reached > 0.0:
            scale = total[group] / reached
            for path in range(first, to):
                weight[path] *= scale
        begins[group + 1] = to
    return column[:to], number[:to], weight[:to], part[: to if cut else 0], where_at[: to if place.size else 0], begins


@compiled
def edges(
    ordinal: Integers,
    day_rows: Integers,
    day: Integers,
    share: Floats,
    days_cut: Integers,
    offset: Integers,
    pace: float,
) -> Floats:
    """Groups: rows more or less that there may be because days are cut.

    Rows that follow each other at this pace (a share of the day) fill a part of the day, and nobody knows which: what
    is in scope takes any of it that it may. One row a place more may lie at either end. Places are alike on one day
    (`ordinal`), ends are independent.
    """
    edge = np.zeros(offset.size - 1)
    for group in range(offset.size - 1):
        if not days_cut[group]:
            continue
        first, last = ordinal[day[offset[group]]], ordinal[day[offset[group]]]
        for each in range(offset[group], offset[group + 1]):
            first, last = min(first, ordinal[day[each]]), max(last, ordinal[day[each]])
        rows = np.zeros(last - first + 1)
        for each in range(offset[group], offset[group + 1]):
            where, part = day[each], share[each]
            if 0.0 < part < 1.0 and day_rows[where] > 0:
                filled = min(max(day_rows[where] * pace, _INSTANT), 1.0)
                least, most = max(part + filled - 1.0, 0.0) / filled, min(part / filled, 1.0)
                off = 1.0 + day_rows[where] * max(part - least, most - part)
                rows[ordinal[where] - first] += min(day_rows[where] * max(part, 1.0 - part), off)
        square = 0.0
        for at in range(rows.size):
            square += rows[at] * rows[at]
        edge[group] = np.sqrt(square)
    return edge


@compiled
def leaning_edges(
    day_rows: Integers,
    day_kept: Integers,
    day: Integers,
    share: Floats,
    lean: Floats,
    lean_start: Integers,
    offset: Integers,
) -> Floats:
    """The same where paths know how far they are in scope: rows beside them are as far, as neighbours differ by chance.

    Of a day without a path the share is a guess, which may be all wrong.
    """
    edge = np.zeros(offset.size - 1)
    for group in range(offset.size - 1):
        square, before, is_first = 0.0, 0.0, True
        for each in range(offset[group], offset[group + 1]):
            rows, own, part = float(day_rows[day[each]]), day_kept[day[each]], share[each]
            if not 0.0 < part < 1.0:
                continue
            if not own:
                square += rows * rows * part * (1.0 - part)
                continue
            weight = rows / own
            for path in range(own):
                held = min(part * lean[lean_start[each] + path], 1.0)
                step, before, is_first = 0.0 if is_first else held - before, held, False
                square += weight * max(weight - 1.0, 0.0) * step * step / 2.0 + weight * held * (1.0 - held)
        edge[group] = NORMAL * np.sqrt(square)
    return edge


@compiled
def speaking(
    day: Integers,
    share: Floats,
    day_kept: Integers,
    lean: Floats,
    lean_start: Integers,
    offset: Integers,
    even: bool,
) -> tuple[Floats, Flags]:
    """How paths lean, and groups: whether they know which part of their day they are of.

    Of a station's hours in which no path lies, the others of these days have to speak, all of a day alike.
    """
    timed = np.empty(offset.size - 1, np.bool_)
    for group in range(timed.size):
        timed[group] = lean.size > 0
    if not lean.size or not even:
        return lean, timed
    all_timed = True
    for group in range(timed.size):
        reached = 0.0
        for each in range(offset[group], offset[group + 1]):
            if share[each] >= 1.0:
                reached += day_kept[day[each]]
            elif share[each] > 0.0:
                reached += leaning(lean, lean_start, each, day_kept[day[each]])
        timed[group] = reached > 0.0
        all_timed = all_timed and timed[group]
    if all_timed:
        return lean, timed
    found = lean.copy()
    for group in range(timed.size):
        for each in range(offset[group], offset[group] if timed[group] else offset[group + 1]):
            for path in range(lean_start[each], lean_start[each] + day_kept[day[each]]):
                found[path] = 1.0
    return found, timed


@compiled
def mostly_whole(day_rows: Integers, day: Integers, share: Floats, offset: Integers, timed: Flags) -> Flags:
    """Groups: whether no more rows in scope are of days that are cut than of whole ones, or paths know no hours."""
    found = np.empty(timed.size, np.bool_)
    for group in range(timed.size):
        whole = partly = 0.0
        for each in range(offset[group], offset[group + 1]):
            if share[each] >= 1.0:
                whole += day_rows[day[each]]
            else:
                partly += day_rows[day[each]] * share[each]
        found[group] = not timed[group] or partly <= whole
    return found


@compiled
def added(values: Floats, offset: Integers) -> Floats:
    """Groups: the sum over their slots."""
    total = np.zeros(offset.size - 1)
    for group in range(offset.size - 1):
        for slot in range(offset[group], offset[group + 1]):
            total[group] += values[slot]
    return total


@compiled
def worths(weight: Floats, offset: Integers) -> Floats:
    """Groups: the sum of the weights, and how many paths of equal weight would tell as much (Kish 1965)."""
    found = np.zeros((2, offset.size - 1))
    for group in range(offset.size - 1):
        total = square = 0.0
        for path in range(offset[group], offset[group + 1]):
            total += weight[path]
            square += weight[path] * weight[path]
        found[0, group], found[1, group] = total, total * total / square if total > 0.0 else 0.0
    return found


@compiled
def heard(offset: Integers, total: Floats) -> Flags:
    """Groups: whether there are paths, of any weight."""
    found = np.empty(total.size, np.bool_)
    for group in range(total.size):
        found[group] = offset[group + 1] > offset[group] and total[group] > 0.0
    return found
