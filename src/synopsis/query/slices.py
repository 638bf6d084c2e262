"""Slices: what of the bins of a feature lies in ranges of its mass axis, and what the values there are.

The machine code of `bins`, whose docstrings tell what is computed. Tables are slots x bins, with one more column for
absent values where they say so; `chosen` says which stratum each slot is.
"""

from __future__ import annotations

import numpy as np

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.tilts import STEPS, Tilts

_TILT = 1.0 / STEPS


@compiled
def _below(mass: float, left: float, right: float, tilt: float) -> float:
    """The share of a bin below a place on the mass axis."""
    width = right - left
    u = (min(max(mass, left), right) - left) / (width if width > 0.0 else 1.0)
    return u + tilt * (u * u - u)


@compiled
def _between(low: float, high: float, left: float, right: float, tilt: float) -> float:
    """The share of a bin between two places; most bins lie wholly between them, or not at all."""
    if right <= low or left >= high or left >= right:
        return 0.0
    if low <= left and right <= high:
        return 1.0
    return _below(high, left, right, tilt) - _below(low, left, right, tilt)


@compiled
def shares(
    starts: Codes, ends: Codes, tilt: Tilts, chosen: Integers, mass: Floats, ranges: Floats, nulls: float
) -> Floats:
    """Bins and absent: how much of each lies in ranges of the mass axis."""
    bins = starts.shape[1]
    table = np.zeros((chosen.size, bins + 1))
    for number in range(chosen.size):
        stratum = chosen[number]
        for each in range(bins):
            begin, end = starts[stratum, each], ends[stratum, each]
            left, right, slope = mass[begin], mass[end], tilt[stratum, each] * _TILT
            share = 0.0
            for pair in range(ranges.shape[0]):
                share += _between(ranges[pair, 0], ranges[pair, 1], left, right, slope)
            table[number, each] = share
        table[number, bins] = nulls
    return table


@compiled
def below(
    starts: Codes, ends: Codes, tilt: Tilts, chosen: Integers, mass: Floats, offset: Integers, place: Floats
) -> Floats:
    """Bins: how much of each lies below a place on the mass axis, one for each group."""
    table = np.empty((chosen.size, starts.shape[1]))
    for group in range(offset.size - 1):
        for slot in range(offset[group], offset[group + 1]):
            for each in range(starts.shape[1]):
                begin, end = starts[chosen[slot], each], ends[chosen[slot], each]
                slope = tilt[chosen[slot], each] * _TILT
                table[slot, each] = _below(place[group], mass[begin], mass[end], slope)
    return table


@compiled
def between(starts: Codes, ends: Codes, tilt: Tilts, chosen: Integers, mass: Floats, low: float, high: float) -> Floats:
    """Bins: how much of each lies between two places on the mass axis."""
    table = np.empty((chosen.size, starts.shape[1]))
    for number in range(chosen.size):
        for each in range(starts.shape[1]):
            begin, end = starts[chosen[number], each], ends[chosen[number], each]
            table[number, each] = _between(low, high, mass[begin], mass[end], tilt[chosen[number], each] * _TILT)
    return table


@compiled
def extremes(
    starts: Codes,
    ends: Codes,
    chosen: Integers,
    offset: Integers,
    low: Floats,
    high: Floats,
    counts: Integers,
    covered: Floats,
    share: Floats,
    least_of_all: float,
    greatest_of_all: float,
) -> tuple[Floats, Floats]:
    """Groups: the least and the greatest value that counted rows in scope may have; infinite where there are none."""
    least, greatest = np.full(offset.size - 1, -np.inf), np.full(offset.size - 1, np.inf)
    for group in range(offset.size - 1):
        lowest, highest = 1 << 30, -1
        for slot in range(offset[group], offset[group + 1]):
            stratum = chosen[slot]
            for each in range(starts.shape[1]):
                if covered[slot] * counts[stratum, each] * share[slot, each] > 0.0:
                    begin, end = starts[stratum, each], ends[stratum, each]
                    lowest, highest = min(lowest, begin), max(highest, end)
        if highest > lowest:
            least[group] = max(low[lowest], least_of_all)
            greatest[group] = min(high[highest - 1], greatest_of_all)
    return least, greatest


@compiled
def known_ends(
    starts: Codes,
    ends: Codes,
    chosen: Integers,
    offset: Integers,
    axis: Floats,
    counts: Integers,
    covered: Floats,
    share: Floats,
    exact: bool,
) -> tuple[Floats, Floats]:
    """Groups: the first and the last place on the mass axis at which rows are known to be in scope; infinite where
    none are. Of strata that are in scope whole, bins of which all is selected have the rows that were counted.
    """
    first, last = np.full(offset.size - 1, np.inf), np.full(offset.size - 1, -np.inf)
    for group in range(offset.size - 1):
        for slot in range(offset[group], offset[group + 1] if exact else offset[group]):
            stratum = chosen[slot]
            for each in range(starts.shape[1] if covered[slot] >= 1.0 else 0):
                if counts[stratum, each] > 0 and share[slot, each] >= 1.0:
                    first[group] = min(first[group], axis[starts[stratum, each]])
                    last[group] = max(last[group], axis[ends[stratum, each]])
    return first, last


@compiled
def pieces(
    starts: Codes,
    ends: Codes,
    tilt: Tilts,
    chosen: Integers,
    axis: Floats,
    offset: Integers,
    mass: Floats,
    ranges: Floats,
) -> tuple[Floats, Floats, Floats, Integers]:
    """Bins with a slope as flat pieces: where each begins and ends on the mass axis, and its mass; where groups begin.

    A bin has two, one either side of its middle; where one range cuts it, all of its mass is within the range.
    """
    low, high, weight = np.empty(2 * mass.size), np.empty(2 * mass.size), np.empty(2 * mass.size)
    at, begins = 0, np.zeros(offset.size, np.int64)
    for group in range(offset.size - 1):
        for slot in range(offset[group], offset[group + 1]):
            for each in range(starts.shape[1]):
                own = mass[slot, each]
                if not own > 0.0:
                    continue
                begin, end = starts[chosen[slot], each], ends[chosen[slot], each]
                left, right = axis[begin], axis[end]
                if ranges.shape[0] == 1:
                    low[at], weight[at] = max(left, ranges[0, 0]), own
                    high[at] = max(min(right, ranges[0, 1]), low[at])
                    at += 1
                    continue
                middle, upper = (left + right) / 2, 0.5 + tilt[chosen[slot], each] * _TILT / 4
                low[at], high[at], weight[at] = left, max(middle, left), own * (1 - upper)
                low[at + 1], high[at + 1], weight[at + 1] = middle, max(right, middle), own * upper
                at += 2
        begins[group + 1] = at
    return low[:at], high[:at], weight[:at], begins


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
def reached(mass: Floats, place: float) -> int:
    """How many ends of fine bins lie below a place on the mass axis, or at it."""
    begin, end = 0, mass.size
    while begin < end:
        middle = (begin + end) >> 1
        if mass[middle] <= place:
            begin = middle + 1
        else:
            end = middle
    return begin


@compiled
def measured(
    starts: Codes, ends: Codes, tilt: Tilts, chosen: Integers, mass: Floats, totals: Floats, ranges: Floats
) -> Floats:
    """Bins: the share in the ranges, the mean and the variance of the values there, and how far its fine bins lean.

    That is the variance of the mean of a bin if all rows of each of its fine bins had one value there. `totals` run
    over values, squares, both times their place on the axis, and variances in fine bins. A fine bin that is cut has its
    mean and variance in either part. Means are of the weights that fine bins have, which is not quite the share where a
    bin slopes: what lies far from 0 would seem to vary by the difference.
    """
    bins, grown = starts.shape[1], np.empty(4)
    tables = np.zeros((4, chosen.size, bins))
    lower, upper = np.empty((ranges.shape[0], 4)), np.empty((ranges.shape[0], 4))
    places = np.empty((1, mass.size))  # the same of places, every fine bin at its middle
    for code in range(mass.size):
        places[0, code] = mass[code] * mass[code] / 2.0
    lower_place, upper_place = np.empty(ranges.shape[0]), np.empty(ranges.shape[0])
    lower_code, upper_code = np.empty(ranges.shape[0], np.int64), np.empty(ranges.shape[0], np.int64)
    for pair in range(ranges.shape[0]):
        lower_code[pair] = reached(mass, ranges[pair, 0]) - 1
        upper_code[pair] = reached(mass, ranges[pair, 1]) - 1
        if upper_code[pair] > 0 and mass[upper_code[pair]] == ranges[pair, 1]:  # it ends with the fine bin before
            upper_code[pair] -= 1
        lower_place[pair] = _at(places, 0, mass, ranges[pair, 0])
        upper_place[pair] = _at(places, 0, mass, ranges[pair, 1])
        for total in range(4):
            lower[pair, total] = _at(totals, total, mass, ranges[pair, 0])
            upper[pair, total] = _at(totals, total, mass, ranges[pair, 1])
    for number in range(chosen.size):
        stratum = chosen[number]
        for each in range(bins):
            begin, end = starts[stratum, each], ends[stratum, each]
            left, right, slope = mass[begin], mass[end], tilt[stratum, each] * _TILT
            width = right - left if right > left else 1.0
            flat, turned = (1.0 - slope - 2.0 * slope * left / width) / width, 2.0 * slope / (width * width)
            share = weight = first = second = 0.0
            for pair in range(ranges.shape[0]):
                low, high = ranges[pair, 0], ranges[pair, 1]
                share += _between(low, high, left, right, slope)
                whole = low <= 0.0 and high >= mass[-1]
                if not whole and not (right > low and left < high):
                    continue
                to_end, from_begin = whole or right <= high, whole or left >= low
                length = (right if to_end else high) - (left if from_begin else low)
                first_code, last_code = (
                    begin if from_begin else lower_code[pair],
                    end - 1 if to_end else upper_code[pair],
                )
                weight += flat * length
                if first_code == last_code and not (to_end and from_begin):
                    # A part of one fine bin: of a small one, running totals would differ by their rounding.
                    part = length / (mass[first_code + 1] - mass[first_code])
                    for total in range(4):
                        grown[total] = part * (totals[total, first_code + 1] - totals[total, first_code])
                    weight += turned * part * (places[0, first_code + 1] - places[0, first_code])
                else:
                    for total in range(4):
                        grown[total] = totals[total, end] if to_end else upper[pair, total]
                        grown[total] -= totals[total, begin] if from_begin else lower[pair, total]
                    place = places[0, end] if to_end else upper_place[pair]
                    weight += turned * (place - (places[0, begin] if from_begin else lower_place[pair]))
                first += flat * grown[0] + turned * grown[2]
                second += flat * grown[1] + turned * grown[3]
            tables[0, number, each] = share
            if end > begin:
                tables[3, number, each] = (totals[4, end] - totals[4, begin]) / (width * (end - begin))
            if share > 0.0 and weight > 0.0:
                mean = first / weight
                tables[1, number, each] = mean
                tables[2, number, each] = max(second / weight - mean * mean, 0.0)
    return tables


@compiled
def value_at(mass: Floats, low: Floats, high: Floats, step: float, place: float) -> float:
    """The value that so much of the mass axis lies below, on the grid where there is one; NaN where none is asked."""
    if np.isnan(place):
        return np.nan
    code = min(max(reached(mass, place) - 1, 0), low.size - 1)
    part = (place - mass[code]) / (mass[code + 1] - mass[code])
    value = low[code] + min(max(part, 0.0), 1.0) * (high[code] - low[code])
    return float(np.rint(value / step) * step if step else value)


@compiled
def values(mass: Floats, low: Floats, high: Floats, step: float, place: Floats) -> Floats:
    """The same of several."""
    found = np.empty(place.size)
    for each in range(place.size):
        found[each] = value_at(mass, low, high, step, place[each])
    return found
