"""Weighing: which paths are in scope, for how many rows each stands, and how probably a row like it is selected.

The machine code of `estimate` and `bins`, whose docstrings tell what is computed. Tables are strata x bins, with one
more column for absent values where they say so; strata are those in scope, numbered; `chosen` says which they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import TILT_LIMIT, TILT_STEPS

Tilts = NDArray[np.int8]

_TILT = TILT_LIMIT / TILT_STEPS

# --- days and paths ---------------------------------------------------------------------------------------------------


@compiled
def in_scope(
    day_offset: Integers, day_rows: Integers, day_kept: Integers, covered: Floats
) -> tuple[Integers, Floats, Integers, Integers, int, bool]:
    """Strata in scope: which they are, their rows in scope, all their rows and paths; paths in scope; any day cut?"""
    strata, size, paths, cut = day_offset.size - 1, 0, 0, False
    chosen, rows = np.empty(strata, np.int64), np.empty(strata)
    whole, kept = np.empty(strata, np.int64), np.empty(strata, np.int64)
    for stratum in range(strata):
        found, wanted, every, own = False, 0.0, 0, 0
        for day in range(day_offset[stratum], day_offset[stratum + 1]):
            every += day_rows[day]
            own += day_kept[day]
            if covered[day] > 0.0 and day_rows[day] > 0:
                found = True
                wanted += day_rows[day] * covered[day]
                paths += day_kept[day]
                cut = cut or covered[day] < 1.0
        if found:
            chosen[size], rows[size], whole[size], kept[size] = stratum, wanted, every, own
            size += 1
    return chosen[:size], rows[:size], whole[:size], kept[:size], paths, cut


@compiled
def _scale(rows: Floats, day_kept: Integers, begin: int) -> float:
    """By how much a path stands for rows on days without a path as well, given the rows that are wanted by day."""
    wanted = stood_for = 0.0
    for each in range(rows.size):
        wanted += rows[each]
        if day_kept[begin + each] > 0:
            stood_for += rows[each]
    return wanted / stood_for if stood_for > 0.0 else 0.0


@compiled
def paths_of(
    day_offset: Integers,
    day_rows: Integers,
    day_kept: Integers,
    covered: Floats,
    chosen: Integers,
    size: int,
    cut: bool,
    factor: Floats,
    lean: Floats,
    place: Integers,
) -> tuple[Positions, Positions, Floats, Floats, Positions]:
    """Paths of days in scope: column, stratum, weight; part of its day in scope, where days are cut; place, if given.

    Where there is a `factor` by stratum, all days count, with so much of their rows.
    """
    column, number = np.empty(size, np.int32), np.empty(size, np.int32)
    weight, part = np.empty(size), np.empty(size if cut else 0)
    where = np.empty(size if place.size else 0, np.int32)
    at = to = turn = 0
    for stratum in range(day_offset.size - 1):
        begin, end = day_offset[stratum], day_offset[stratum + 1]
        if turn == chosen.size or chosen[turn] != stratum:
            for day in range(begin, end):
                at += day_kept[day]
            continue
        rows = np.empty(end - begin)
        for day in range(begin, end):
            if factor.size:
                rows[day - begin] = day_rows[day] * factor[turn]
            else:
                rows[day - begin] = day_rows[day] * covered[day] if covered[day] > 0.0 else 0.0
        scale = _scale(rows, day_kept, begin)
        for day in range(begin, end):
            kept = day_kept[day]
            if kept and (factor.size or (covered[day] > 0.0 and day_rows[day] > 0)):
                own = rows[day - begin] / kept * scale
                for each in range(kept):
                    column[to], number[to] = at + each, turn
                    if cut:
                        part[to] = covered[day]
                    weight[to] = own * lean[at + each] if lean.size else own
                    if place.size:
                        where[to] = place[day]
                    to += 1
            at += kept
        turn += 1
    return column[:to], number[:to], weight[:to], part[: to if cut else 0], where[: to if place.size else 0]


@compiled
def luck_of(
    day_offset: Integers,
    day_rows: Integers,
    day_kept: Integers,
    covered: Floats,
    chosen: Integers,
    rows: Floats,
    whole: Integers,
    kept: Integers,
    lean: Floats,
) -> tuple[Positions, Positions, Floats, Floats, Floats]:
    """All paths of the strata: column, stratum, weight in scope, weight in the whole stratum, reach."""
    size = 0
    for each in range(kept.size):
        size += kept[each]
    column, number = np.empty(size, np.int32), np.empty(size, np.int32)
    weight, whole_weight, reach = np.empty(size), np.empty(size), np.empty(size)
    at = to = turn = 0
    for stratum in range(day_offset.size - 1):
        begin, end = day_offset[stratum], day_offset[stratum + 1]
        if turn == chosen.size or chosen[turn] != stratum:
            for day in range(begin, end):
                at += day_kept[day]
            continue
        wanted, every = np.empty(end - begin), np.empty(end - begin)
        for day in range(begin, end):
            every[day - begin] = day_rows[day]
            wanted[day - begin] = day_rows[day] * covered[day] if covered[day] > 0.0 else 0.0
        inner, outer = _scale(wanted, day_kept, begin), _scale(every, day_kept, begin)
        share, unseen = rows[turn] / whole[turn], 1.0 - kept[turn] / whole[turn]
        for day in range(begin, end):
            own = max(day_kept[day], 1)
            in_all, inside = every[day - begin] / own * outer, wanted[day - begin] / own * inner
            for _ in range(day_kept[day]):
                weight[to] = inside * lean[at] if lean.size else inside
                column[to], number[to], whole_weight[to] = at, turn, in_all
                reach[to] = (weight[to] - share * in_all) ** 2 * unseen
                at += 1
                to += 1
        turn += 1
    return column, number, weight, whole_weight, reach


# --- bins -------------------------------------------------------------------------------------------------------------


@compiled
def _ends(starts: Codes, top: Codes, stratum: int, each: int) -> tuple[int, int]:
    """The fine codes from which and up to which a bin reaches."""
    end = starts[stratum, each + 1] if each + 1 < starts.shape[1] else top[stratum]
    return int(starts[stratum, each]), int(end)


@compiled
def _below(mass: float, left: float, right: float, tilt: float) -> float:
    """The share of a bin below a place on the mass axis."""
    width = right - left
    u = (min(max(mass, left), right) - left) / (width if width > 0.0 else 1.0)
    return u + tilt * (u * u - u)


@compiled
def shares(
    starts: Codes, top: Codes, tilt: Tilts, chosen: Integers, mass: Floats, ranges: Floats, nulls: float
) -> Floats:
    """Bins and absent: how much of each lies in ranges of the mass axis."""
    bins = starts.shape[1]
    table = np.zeros((chosen.size, bins + 1))
    for number in range(chosen.size):
        stratum = chosen[number]
        for each in range(bins):
            begin, end = _ends(starts, top, stratum, each)
            left, right, slope = mass[begin], mass[end], tilt[stratum, each] * _TILT
            share = 0.0
            for pair in range(ranges.shape[0]):
                share += _below(ranges[pair, 1], left, right, slope) - _below(ranges[pair, 0], left, right, slope)
            table[number, each] = share
        table[number, bins] = nulls
    return table


@compiled
def below(starts: Codes, top: Codes, tilt: Tilts, chosen: Integers, mass: Floats, place: float) -> Floats:
    """Bins: how much of each lies below a place on the mass axis."""
    table = np.empty((chosen.size, starts.shape[1]))
    for number in range(chosen.size):
        for each in range(starts.shape[1]):
            begin, end = _ends(starts, top, chosen[number], each)
            table[number, each] = _below(place, mass[begin], mass[end], tilt[chosen[number], each] * _TILT)
    return table


@compiled
def reached(
    starts: Codes, top: Codes, counts: Integers, chosen: Integers, covered: Floats, share: Floats
) -> tuple[int, int]:
    """The first fine code that counted rows in scope may have, and one past the last; equal where there are none."""
    lowest, highest = 1 << 30, -1
    for number in range(chosen.size):
        stratum = chosen[number]
        for each in range(starts.shape[1]):
            if covered[number] * counts[stratum, each] * share[number, each] > 0.0:
                begin, end = _ends(starts, top, stratum, each)
                lowest, highest = min(lowest, begin), max(highest, end)
    return (lowest, highest) if highest >= 0 else (0, 0)


@compiled
def pieces(
    starts: Codes, top: Codes, tilt: Tilts, chosen: Integers, axis: Floats, mass: Floats, ranges: Floats
) -> tuple[Floats, Floats, Floats]:
    """Bins with a slope as flat pieces: where each begins and ends on the mass axis, and its mass.

    A bin has two, one either side of its middle; where one range cuts it, all of its mass is within the range.
    """
    low, high, weight = np.empty(2 * mass.size), np.empty(2 * mass.size), np.empty(2 * mass.size)
    at = 0
    for number in range(chosen.size):
        for each in range(starts.shape[1]):
            own = mass[number, each]
            if not own > 0.0:
                continue
            begin, end = _ends(starts, top, chosen[number], each)
            left, right = axis[begin], axis[end]
            if ranges.shape[0] == 1:
                low[at], weight[at] = max(left, ranges[0, 0]), own
                high[at] = max(min(right, ranges[0, 1]), low[at])
                at += 1
                continue
            middle, upper = (left + right) / 2, 0.5 + tilt[chosen[number], each] * _TILT / 4
            low[at], high[at], weight[at] = left, max(middle, left), own * (1 - upper)
            low[at + 1], high[at + 1], weight[at + 1] = middle, max(right, middle), own * upper
            at += 2
    return low[:at], high[:at], weight[:at]


# --- the clause -------------------------------------------------------------------------------------------------------

#: A clause is a list of steps, in postfix order: k >= 0 is its k-th leaf, ALL - 2n an AND of the n parts before it,
#: ANY - 2n an OR of them.
ALL, ANY = -1, -2


@compiled
def probabilities(
    steps: Integers, tables: Floats, rows: Integers, codes: Codes, column: Positions, stratum: Positions
) -> Floats:
    """Paths: how probably a row like it satisfies a clause, bins being independent within it.

    `tables` are leaves x strata x (bins and absent), `rows` say where the codes of their features stand.
    """
    held, stack = np.empty(column.size), np.empty(steps.size)
    for path in range(column.size):
        top = 0
        for step in steps:
            if step >= 0:
                stack[top] = tables[step, stratum[path], codes[rows[step], column[path]]]
                top += 1
                continue
            parts = (-step - 1) >> 1
            some, product = (-step - 1) & 1 == 0, 1.0
            for part in range(top - parts, top):
                product *= stack[part] if some else 1.0 - stack[part]
            top -= parts
            stack[top] = product if some else 1.0 - product
            top += 1
        held[path] = stack[0]
    return held


@compiled
def _openness(steps: Integers, tables: Floats, rows: Integers, codes: Codes, whole: Positions, real: Floats) -> None:
    """Live paths: how far a row's being selected is open, and how far that hangs on two open questions at once."""
    p, a, j = np.empty(steps.size), np.empty(steps.size), np.empty(steps.size)
    for path in range(whole.shape[1]):
        column, stratum, top = whole[1, path], whole[2, path], 0
        for step in steps:
            if step >= 0:
                share = tables[step, stratum, codes[rows[step], column]]
                share = min(max(share, 0.0), 1.0)
                p[top], a[top], j[top] = share, np.sqrt(share * (1.0 - share)), 0.0
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
    codes: Codes,
    column: Positions,
    stratum: Positions,
    weight: Floats,
    held: Floats,
) -> tuple[Positions, Floats, float, float]:
    """The paths that may satisfy the clause: which they are, column and stratum; then of each

    weight, probability, mass, and how far being selected is open, once and twice. Then the sum of the masses, and how
    many paths of equal weight would tell as much (Kish 1965).
    """
    size = 0
    for path in range(held.size):
        size += held[path] != 0.0
    whole, real = np.empty((3, size), np.int32), np.empty((5 if steps.size else 3, size))
    at, total, square = 0, 0.0, 0.0
    for path in range(held.size):
        if held[path] != 0.0:
            mass = weight[path] * held[path]
            whole[0, at], whole[1, at], whole[2, at] = path, column[path], stratum[path]
            real[0, at], real[1, at], real[2, at] = weight[path], held[path], mass
            total, square = total + mass, square + mass * mass
            at += 1
    if steps.size:
        _openness(steps, tables, rows, codes, whole, real)
    return whole, real, total, total * total / square if total > 0.0 else 0.0


@compiled
def _at(totals: Floats, total: int, mass: Floats, place: float) -> float:
    """A running total at any place on the mass axis."""
    begin, end = 0, mass.size - 1
    if place <= mass[begin]:
        return float(totals[total, begin])
    if place >= mass[end]:
        return float(totals[total, end])
    while end - begin > 1:
        middle = (begin + end) >> 1
        if mass[middle] <= place:
            begin = middle
        else:
            end = middle
    slope = (totals[total, end] - totals[total, begin]) / (mass[end] - mass[begin])
    return float(slope * (place - mass[begin]) + totals[total, begin])


@compiled
def measured(
    starts: Codes, top: Codes, tilt: Tilts, chosen: Integers, mass: Floats, totals: Floats, ranges: Floats
) -> Floats:
    """Bins: the share in the ranges, the mean and the variance of the values there, and room for one table more.

    `totals` run over values, squares, and both times their place on the axis.
    """
    bins, grown = starts.shape[1], np.empty(4)
    tables = np.zeros((4, chosen.size, bins))
    lower, upper = np.empty((ranges.shape[0], 4)), np.empty((ranges.shape[0], 4))
    for pair in range(ranges.shape[0]):
        for total in range(4):
            lower[pair, total] = _at(totals, total, mass, ranges[pair, 0])
            upper[pair, total] = _at(totals, total, mass, ranges[pair, 1])
    for number in range(chosen.size):
        stratum = chosen[number]
        for each in range(bins):
            begin, end = _ends(starts, top, stratum, each)
            left, right, slope = mass[begin], mass[end], tilt[stratum, each] * _TILT
            width = right - left if right > left else 1.0
            flat, turned = (1.0 - slope - 2.0 * slope * left / width) / width, 2.0 * slope / (width * width)
            share = first = second = 0.0
            for pair in range(ranges.shape[0]):
                low, high = ranges[pair, 0], ranges[pair, 1]
                share += _below(high, left, right, slope) - _below(low, left, right, slope)
                whole = low <= 0.0 and high >= mass[-1]
                if not whole and not (right > low and left < high):
                    continue
                for total in range(4):
                    grown[total] = totals[total, end] if whole or right <= high else upper[pair, total]
                    grown[total] -= totals[total, begin] if whole or left >= low else lower[pair, total]
                first += flat * grown[0] + turned * grown[2]
                second += flat * grown[1] + turned * grown[3]
            tables[0, number, each] = share
            if share > 0.0:
                mean = first / share
                tables[1, number, each] = mean
                tables[2, number, each] = max(second / share - mean * mean, 0.0)
    return tables


@compiled
def numbered(
    starts: Codes,
    top: Codes,
    tilt: Tilts,
    chosen: Integers,
    axis: Floats,
    totals: Floats,
    ranges: Floats,
    counted: Floats,
    codes: Codes,
    column: Positions,
    stratum: Positions,
    weight: Floats,
) -> tuple[Floats, float, float, float]:
    """The numbers of a feature in ranges, by bin: share, mean, variance and mass; count, mean and variance of all.

    The mass is what is `counted` in each bin, or else what paths there weigh.
    """
    tables, bins = measured(starts, top, tilt, chosen, axis, totals, ranges), starts.shape[1]
    if counted.size:
        for number in range(chosen.size):
            for each in range(bins):
                tables[3, number, each] = counted[number, each] * tables[0, number, each]
    else:
        for path in range(column.size):
            if codes[column[path]] < bins:
                tables[3, stratum[path], codes[column[path]]] += weight[path]
    count = total = spread = 0.0
    for number in range(chosen.size):
        for each in range(bins):
            count += tables[3, number, each]
            total += tables[3, number, each] * tables[1, number, each]
    if not count > 0.0:
        return tables, count, np.nan, np.nan
    average = total / count
    for number in range(chosen.size):
        for each in range(bins):
            away = tables[1, number, each] - average
            spread += tables[3, number, each] * (tables[2, number, each] + away * away)
    return tables, count, average, spread / count


@compiled
def gathered(table: Floats, codes: Codes, column: Positions, stratum: Positions) -> Floats:
    """Paths: what a table says of their bins; 0 where they are absent and it has no column for that."""
    values = np.zeros(column.size)
    for path in range(column.size):
        code = codes[column[path]]
        if code < table.shape[1]:
            values[path] = table[stratum[path], code]
    return values


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
    stratum: Positions,
    weight: Floats,
    whole: Floats,
) -> Floats:
    """Bins and absent: what paths in scope weigh there, and their part of the rows that all paths there lack or exceed.

    That part is the share of the bin's paths that is in scope, of them and a few more (`usual` rows) as all are. Of a
    stratum without a path in scope nothing more is known than what is expected.
    """
    table, every = np.zeros(expected.shape), np.zeros(expected.shape)
    for path in range(column.size):
        number, code = stratum[path], codes[column[path]]
        table[number, code] += weight[path]
        every[number, code] += whole[path]
    for number in range(expected.shape[0]):
        if not table[number].any():
            table[number] = expected[number]
            continue
        wanted = found = 0.0
        for each in range(expected.shape[1]):
            part = (table[number, each] + covered[number] * usual[number]) / (every[number, each] + usual[number])
            table[number, each] += part * (expected[number, each] / covered[number] - every[number, each])
            wanted += expected[number, each]
            found += max(table[number, each], 0.0)
        for each in range(expected.shape[1]):
            table[number, each] *= wanted / found if found > 0.0 else 1.0
    return table
