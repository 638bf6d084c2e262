"""Weighing: which paths are in scope, for how many rows each stands, and how probably a row like it is selected.

The machine code of `sampled` and `estimate`, whose docstrings tell what is computed. All groups of a question are
computed in one call. A **slot** is a stratum in a group: slots of one group stand side by side, and so do its paths;
an `offset` says where those of each group begin. Tables are slots x bins, with one more column for absent values where
they say so.
"""

from __future__ import annotations

import numpy as np

from synopsis.query.inference import NORMAL
from synopsis.sketch import decoding
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import Flags

#: Of the few paths more that strata are thought to have, those that are as usual where others speak for a stratum. With
#: none a place follows a single other one in all it does; with a quarter, days of twenty places err half as much more.
_AS_USUAL = 1 / 16

#: The share of a day that rows fill which may share an instant.
_INSTANT = 1e-9

# --- days and paths ---------------------------------------------------------------------------------------------------


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
def _path_starts(day_kept: Integers) -> Integers:
    """Days: where the paths of each begin."""
    starts, at = np.empty(day_kept.size, np.int64), 0
    for day in range(day_kept.size):
        starts[day] = at
        at += day_kept[day]
    return starts


@compiled
def _beside(day_rows: Integers, day_kept: Integers, day: int, even: bool) -> float:
    """What a path stands for beside others of its stratum: where paths come at even steps of time, as much as any.

    How many of these a day has goes with the hours that they are of. Otherwise a day's rows are shared by its paths.
    """
    return 1.0 if even else day_rows[day] / max(day_kept[day], 1)


@compiled
def _scale(
    day_rows: Integers, day_kept: Integers, day: Integers, share: Floats, begin: int, end: int, even: bool
) -> float:
    """By how much more a path stands for rows, so that those in scope are stood for, those of days without one, too."""
    wanted = stood_for = 0.0
    for each in range(begin, end):
        if share[each] > 0.0:
            wanted += day_rows[day[each]] * share[each]
            stood_for += day_kept[day[each]] * _beside(day_rows, day_kept, day[each], even) * share[each]
    return wanted / stood_for if stood_for > 0.0 else 0.0


@compiled
def _scale_of_all(day_rows: Integers, day_kept: Integers, begin: int, end: int, even: bool) -> float:
    """The same of all days of a stratum."""
    wanted = stood_for = 0.0
    for where in range(begin, end):
        wanted += day_rows[where]
        stood_for += day_kept[where] * _beside(day_rows, day_kept, where, even)
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
    place: Integers,
    even: bool,
) -> tuple[Positions, Positions, Floats, Floats, Positions, Integers]:
    """Paths of days in scope: column, slot, weight; part of its day in scope, where days are cut; place, if given.

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
    starts, begins, to = _path_starts(day_kept), np.zeros(offset.size, np.int64), 0
    for group in range(offset.size - 1):
        first, reached = to, 0.0
        for slot in range(offset[group], offset[group + 1]):
            scale = _scale(day_rows, day_kept, day, share, begin[slot], end[slot], even)
            for each in range(begin[slot], end[slot]):
                where = day[each]
                if not (day_kept[where] and share[each] > 0.0 and day_rows[where] > 0):
                    continue
                own = _beside(day_rows, day_kept, where, even) * share[each] * scale
                for path in range(day_kept[where]):
                    column[to], number[to] = starts[where] + path, slot
                    weight[to] = own * lean[lean_start[each] + path] if lean.size else own
                    reached += weight[to]
                    if cut:
                        part[to] = share[each]
                    if place.size:
                        where_at[to] = place[where]
                    to += 1
        if reached == 0.0:
            to = first
            for slot in range(offset[group], offset[group + 1]):
                left, right = day_offset[stratum[slot]], day_offset[stratum[slot] + 1]
                scale = _scale_of_all(day_rows, day_kept, left, right, even) * covered[slot]
                for where in range(left, right):
                    own = _beside(day_rows, day_kept, where, even) * scale
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
def luck_of(
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
    covered: Floats,
    lean: Floats,
    lean_start: Integers,
    even: bool,
    effect: float,
) -> tuple[Positions, Positions, Positions, Floats, Floats, Floats, Integers]:
    """All paths of the strata of groups that are not covered whole, in runs of equal weight: their first column, how
    many they are, slot, weight in scope, weight in the whole stratum, reach; where groups begin.

    A run is a day, or a path where paths lean.
    """
    size, longest = 0, 0
    partly = np.zeros(offset.size - 1, np.bool_)
    for group in range(offset.size - 1):
        own = 0
        for slot in range(offset[group], offset[group + 1]):
            days = day_offset[stratum[slot] + 1] - day_offset[stratum[slot]]
            own += kept[slot] if lean.size else min(kept[slot], days)
            partly[group] = partly[group] or covered[slot] != 1.0
            longest = max(longest, days)
        size += own if partly[group] else 0
    column, many, number = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    weight, in_all, reach = np.empty(size), np.empty(size), np.empty(size)
    starts, begins, entry = _path_starts(day_kept), np.zeros(offset.size, np.int64), np.empty(longest, np.int64)
    to = 0
    for group in range(offset.size - 1):
        for slot in range(offset[group], offset[group + 1] if partly[group] else offset[group]):
            left, right = day_offset[stratum[slot]], day_offset[stratum[slot] + 1]
            for each in range(right - left):
                entry[each] = -1
            for each in range(begin[slot], end[slot]):
                entry[day[each] - left] = each
            inner = _scale(day_rows, day_kept, day, share, begin[slot], end[slot], even)
            outer = _scale_of_all(day_rows, day_kept, left, right, even)
            unseen = effect * (1.0 - kept[slot] / whole[slot])
            for where in range(left, right):
                own, each, more = day_kept[where], entry[where - left], 0.0
                if not own:
                    continue
                beside = _beside(day_rows, day_kept, where, even)
                less = beside * outer
                if each >= 0 and share[each] > 0.0:
                    more = beside * share[each] * inner
                leans = lean.size > 0 and each >= 0
                for path in range(own if leans else 1):
                    found = more * lean[lean_start[each] + path] if leans else more
                    column[to], many[to], number[to] = starts[where] + path, 1 if leans else own, slot
                    weight[to], in_all[to] = found, less
                    reach[to] = (found - less * covered[slot]) ** 2 * unseen
                    to += 1
        begins[group + 1] = to
    return column[:to], many[:to], number[:to], weight[:to], in_all[:to], reach[:to], begins


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


# --- the clause -------------------------------------------------------------------------------------------------------


@compiled
def _held(
    steps: Integers, tables: Floats, rows: Integers, codes: Codes, column: int, stratum: int, stack: Floats
) -> float:
    """How probably a row like a path satisfies a clause (`programs`), bins being independent within it."""
    top = 0
    for step in steps:
        if step >= 0:
            stack[top] = tables[step, stratum, codes[rows[step], column]]
            top += 1
            continue
        parts = (-step - 1) >> 1
        some, product = (-step - 1) & 1 == 0, 1.0
        for part in range(top - parts, top):
            product *= stack[part] if some else 1.0 - stack[part]
        top -= parts
        stack[top] = product if some else 1.0 - product
        top += 1
    return float(stack[0])


@compiled
def probabilities(
    steps: Integers, tables: Floats, rows: Integers, codes: Codes, column: Positions, stratum: Positions
) -> Floats:
    """Paths: how probably a row like it satisfies a clause.

    `tables` are leaves x strata x (bins and absent), `rows` say where the codes of their features stand.
    """
    held, stack = np.empty(column.size), np.empty(steps.size)
    for path in range(column.size):
        held[path] = _held(steps, tables, rows, codes, column[path], stratum[path], stack)
    return held


@compiled
def _openness(steps: Integers, tables: Floats, rows: Integers, codes: Codes, whole: Positions, real: Floats) -> None:
    """Live paths: how far a row's being selected is open, and how far that hangs on two open questions at once."""
    p, a, j = np.empty(steps.size), np.empty(steps.size), np.empty(steps.size)
    for path in range(whole.shape[1]):
        column, stratum, top = whole[1, path], whole[2, path], 0
        if real[1, path] == 1.0:  # all of it is settled, as it is of most
            real[3, path], real[4, path] = 0.0, 0.0
            continue
        for step in steps:
            if step >= 0:
                share = tables[step, stratum, codes[rows[step], column]]
                share = min(max(share, 0.0), 1.0)
                p[top], a[top], j[top] = share, np.sqrt(share * (1.0 - share)) if 0.0 < share < 1.0 else 0.0, 0.0
                top += 1
                continue
            parts = (-step - 1) >> 1
            some = (-step - 1) & 1 == 0
            held, one, two = 1.0, 0.0, 0.0
            for part in range(top - parts, top):
                own = p[part] if some else 1.0 - p[part]
                two = two * own + held * j[part] + one * a[part]
                one = one * own + held * a[part]
                held *= own
            top -= parts
            p[top], a[top], j[top] = held if some else 1.0 - held, one, two
            top += 1
        real[3, path], real[4, path] = a[0], j[0]


@compiled
def alive(
    steps: Integers,
    tables: Floats,
    rows: Integers,
    demanded: Integers,
    codes: Codes,
    which: Positions,
    column: Positions,
    stratum: Positions,
    weight: Floats,
    offset: Integers,
) -> tuple[Positions, Floats, Integers, Floats]:
    """Those of some paths that may satisfy the clause: which they are, column and slot; then of each

    weight, probability, mass, and how far being selected is open, once and twice. Then where those of groups begin, and
    what they are worth.
    Most paths end at a leaf that is `demanded` of all.
    """
    probability, stack = np.empty(column.size), np.empty(steps.size)
    # What was demanded last is new where these paths are those of a wider clause.
    screen = demanded[-1] if demanded.size else 0
    own, table = codes[rows[screen] if rows.size else 0], tables[screen] if rows.size else np.empty((0, 0))
    is_product = 0 < demanded.size == rows.size and steps.size <= rows.size + 1  # nothing but leaves in an AND
    if is_product:  # as most clauses are: no fork, which the processor would guess wrong
        for path in range(column.size):
            probability[path] = tables[0, stratum[path], codes[rows[0], column[path]]]
        for leaf in range(1, tables.shape[0]):
            own, table = codes[rows[leaf]], tables[leaf]
            for path in range(column.size):
                probability[path] *= table[stratum[path], own[column[path]]]
    for path in range(column.size if not is_product else 0):
        where, number, held = column[path], stratum[path], 1.0
        if demanded.size:
            held = table[number, own[where]]
            for turn in range(demanded.size - 1):
                if held == 0.0:
                    break
                held = tables[demanded[turn], number, codes[rows[demanded[turn]], where]]
        probability[path] = _held(steps, tables, rows, codes, where, number, stack) if held != 0.0 else 0.0
    living, size, begins = np.empty(column.size, np.int64), 0, np.zeros(offset.size, np.int64)
    for group in range(offset.size - 1):
        for path in range(offset[group], offset[group + 1]):
            living[size] = path
            size += probability[path] != 0.0
        begins[group + 1] = size
    whole, real = np.empty((3, size), np.int32), np.empty((5, size))
    for at in range(size):
        path = living[at]
        held = probability[path]
        whole[0, at], whole[1, at], whole[2, at] = which[path], column[path], stratum[path]
        real[0, at], real[1, at], real[2, at] = weight[path], held, weight[path] * held
    _openness(steps, tables, rows, codes, whole, real)
    return whole, real, begins, worths(real[2], begins)


# --- bins -------------------------------------------------------------------------------------------------------------


@compiled
def numbered(
    tables: Floats,
    counted: Floats,
    is_counted: Flags,
    codes: Codes,
    column: Positions,
    stratum: Positions,
    weight: Floats,
    offset: Integers,
    paths: Integers,
) -> tuple[Floats, Floats, Floats, Floats]:
    """The numbers of a feature, by what was measured of its bins: mass by bin; count, mean and variance of groups.

    The mass is what is `counted` in each bin, or else what paths there weigh.
    """
    bins, groups = tables.shape[2], offset.size - 1
    mass = np.zeros((tables.shape[1], bins))
    count, average, variance = np.zeros(groups), np.full(groups, np.nan), np.full(groups, np.nan)
    for group in range(groups):
        begin, end = offset[group], offset[group + 1]
        if is_counted[group]:
            for slot in range(begin, end):
                for each in range(bins):
                    mass[slot, each] = counted[slot, each] * tables[0, slot, each]
        else:
            for path in range(paths[group], paths[group + 1]):
                if codes[column[path]] < bins:
                    mass[stratum[path], codes[column[path]]] += weight[path]
        size = total = spread = 0.0
        for slot in range(begin, end):
            for each in range(bins):
                size += mass[slot, each]
                total += mass[slot, each] * tables[1, slot, each]
        count[group] = size
        if not size > 0.0:
            continue
        mean = total / size
        for slot in range(begin, end):
            for each in range(bins):
                away = tables[1, slot, each] - mean
                spread += mass[slot, each] * (tables[2, slot, each] + away * away)
        average[group], variance[group] = mean, spread / size
    return mass, count, average, variance


@compiled
def added(values: Floats, offset: Integers) -> Floats:
    """Groups: the sum over their slots."""
    total = np.zeros(offset.size - 1)
    for group in range(offset.size - 1):
        for slot in range(offset[group], offset[group + 1]):
            total[group] += values[slot]
    return total


@compiled
def weighed(table: Floats, shares: Floats, offset: Integers, sign: float) -> Floats:
    """Groups: the rows of bins times the share of each that counts; of bins above nothing, or below it, by the sign."""
    total = np.zeros(offset.size - 1)
    for group in range(offset.size - 1):
        for slot in range(offset[group], offset[group + 1]):
            own = 0.0
            for each in range(table.shape[1]):
                if table[slot, each] * sign > 0.0:
                    own += table[slot, each] * shares[slot, each]
            total[group] += own
    return total


@compiled
def sums(count: Floats, average: Floats, heard: Flags, rows: Floats, total: Floats) -> Floats:
    """Groups: the sum of values, 0 where there are none; where paths are heard, of so many rows as are known better."""
    found = np.zeros(count.size)
    for group in range(count.size):
        if count[group] > 0.0:
            found[group] = average[group] * count[group]
            if heard.size and heard[group]:
                found[group] = found[group] * rows[group] / total[group]
    return found


@compiled
def lumped(
    cut: Floats, shares: Floats, codes: Codes, column: Positions, stratum: Positions, weight: Floats, mass: Floats
) -> Floats:
    """Paths: rows that are on either side of an end that cuts a fine bin, nobody knows, by what of each bin is."""
    amount = np.zeros(column.size)
    for path in range(column.size):
        code, number = codes[column[path]], stratum[path]
        if code < cut.shape[1]:
            others = mass[path] / max(shares[number, code], 1e-3)
            amount[path] = cut[number, code] * min(others, weight[path])
    return amount


@compiled
def counted(counts: Integers, chosen: Integers, covered: Floats) -> Floats:
    """Bins and absent: rows that the exact counts lead to expect in scope."""
    table = np.empty((chosen.size, counts.shape[1]))
    for number in range(chosen.size):
        for each in range(counts.shape[1]):
            table[number, each] = covered[number] * counts[chosen[number], each]
    return table


@compiled
def lucky(
    expected: Floats,
    covered: Floats,
    usual: Floats,
    codes: Codes,
    column: Positions,
    many: Positions,
    slot: Positions,
    weight: Floats,
    whole: Floats,
    offset: Integers,
) -> Floats:
    """Bins and absent: what paths in scope weigh there, and their part of the rows that all paths there lack or exceed.

    That part is the share of the bin's paths that is in scope, of them and a few more (`usual` rows) as all are. A
    stratum without a path in scope has what is expected of it, bin by bin as much more or less as the others of its
    group: a warm day is one at all places. Paths come in runs.
    """
    table, every = np.zeros(expected.shape), np.zeros(expected.shape)
    heard = np.zeros(expected.shape[0], np.bool_)
    for run in range(column.size):
        for path in range(column[run], column[run] + many[run]):
            table[slot[run], codes[path]] += weight[run]
            every[slot[run], codes[path]] += whole[run]
    for number in range(expected.shape[0]):
        reached = 0.0
        for each in range(expected.shape[1]):
            reached += abs(table[number, each])
        heard[number] = reached > 0.0
        if not heard[number]:
            for each in range(expected.shape[1]):
                table[number, each] = expected[number, each]
            continue
        wanted = found = 0.0
        for each in range(expected.shape[1]):
            part = (table[number, each] + covered[number] * usual[number]) / (every[number, each] + usual[number])
            table[number, each] += part * (expected[number, each] / covered[number] - every[number, each])
            wanted += expected[number, each]
            found += max(table[number, each], 0.0)
        for each in range(expected.shape[1]):
            table[number, each] *= wanted / found if found > 0.0 else 1.0
    for group in range(offset.size - 1):
        _follow(table, expected, usual, heard, offset[group], offset[group + 1])
    return table


@compiled
def _follow(table: Floats, expected: Floats, usual: Floats, heard: Flags, begin: int, end: int) -> None:
    """Let strata without a path go with those of their group that have some, and that are a little more as usual."""
    bins, silent, more = expected.shape[1], 0, 0.0
    found, wanted = np.zeros(bins), np.zeros(bins)
    for number in range(begin, end):
        silent += not heard[number]
        more += _AS_USUAL * usual[number] / (end - begin)
        for each in range(bins if heard[number] else 0):
            found[each] += max(table[number, each], 0.0)
            wanted[each] += expected[number, each]
    if silent == 0 or silent == end - begin:
        return
    of_heard = 0.0
    for each in range(bins):
        of_heard += wanted[each]
    for number in range(begin, end):
        if heard[number]:
            continue
        rows = total = 0.0
        for each in range(bins):
            beside = more * wanted[each] / of_heard
            rows += expected[number, each]
            if wanted[each] > 0.0:
                table[number, each] *= (found[each] + beside) / (wanted[each] + beside)
            total += table[number, each]
        for each in range(bins):
            table[number, each] *= rows / total if total > 0.0 else 1.0
