"""Mixtures: the distribution of values that lie flat in many overlapping pieces, and its quantiles."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from synopsis.query.inference import NORMAL
from synopsis.query.influences import LUMPS
from synopsis.query.slices import reached as reached_by
from synopsis.query.slices import value_at
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags

#: Share of the mass by which it may be off by rounding.
ROUNDING = 1e-12

#: Of a quantile that fewer paths than this tell, intervals reach beyond what these have seen.
FEW = 16.0

#: To this share of what they have not seen, at either end.
EXTREME = 0.025

#: Of so many rows that are expected, some are there as likely as not.
EVEN_ODDS = math.log(2.0)

#: Ranks that differ by less are one: what is at the very end of a fine bin belongs to it.
NEAR = 1e-9


class Mixture(NamedTuple):
    """The distribution functions of groups: straight lines between ends, and the mass reached at each."""

    ends: Floats
    reached: Floats
    slope: Floats  #: beyond each end
    offset: Integers  #: where those of each group begin


def mixed(low: Floats, high: Floats, mass: Floats, offset: Integers) -> Mixture:
    """Mixtures of flat pieces and points, those of each group side by side. Cost: a sort."""
    return Mixture(*running(low, high, mass, offset))


@compiled
def _order(values: Floats, order: Integers, spare: Integers) -> None:
    """Put positions in the order of their values, by merging the runs that are in order already, two by two.

    Pieces of one stratum come in order. Cost: a pass over all positions, as often as runs can be halved.
    """
    size, runs = order.size, 0
    begins = np.empty(size + 1, np.int64)
    for at in range(size):
        if at == 0 or values[order[at - 1]] > values[order[at]]:
            begins[runs] = at
            runs += 1
    begins[runs] = size
    while runs > 1:
        merged = 0
        for run in range(0, runs, 2):
            left, middle, right = begins[run], begins[run + 1], begins[min(run + 2, runs)]
            one, other = left, middle
            for to in range(left, right):
                if one < middle and (other >= right or values[order[one]] <= values[order[other]]):
                    spare[to] = order[one]
                    one += 1
                else:
                    spare[to] = order[other]
                    other += 1
            begins[merged] = left
            merged += 1
        begins[merged] = size
        runs = merged
        for to in range(size):
            order[to] = spare[to]


@compiled
def running(low: Floats, high: Floats, mass: Floats, offset: Integers) -> tuple[Floats, Floats, Floats, Integers]:
    """The ends of pieces in order, the mass reached and the slope at each, and where those of groups begin."""
    size = 2 * low.size
    ends, reached, slope, begins = np.empty(size), np.empty(size), np.empty(size), np.empty(offset.size, np.int64)
    order, spare, values = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    begins[0] = 0
    for group in range(offset.size - 1):
        first, past = 2 * offset[group], 2 * offset[group + 1]
        begins[group + 1] = past
        for each in range(offset[group], offset[group + 1]):  # at one place, all begin before any ends
            values[2 * each], values[2 * each + 1] = low[each], high[each]
            order[offset[group] + each], order[offset[group + 1] + each] = 2 * each, 2 * each + 1
        _order(values, order[first:past], spare[first:past])
        jumped = grown = steep = 0.0
        for at in range(first, past):
            piece, begins_here = order[at] >> 1, order[at] & 1 == 0
            width = high[piece] - low[piece]
            ends[at] = values[order[at]]
            if at > first:
                grown += steep * (ends[at] - ends[at - 1])
            if width > 0.0:
                steep += mass[piece] / width if begins_here else -(mass[piece] / width)
            elif begins_here:
                jumped += mass[piece]
            reached[at], slope[at] = jumped + grown, steep
    return ends, reached, slope, begins


@compiled
def _at(ends: Floats, reached: Floats, slope: Floats, first: int, past: int, share: float) -> float:
    """A quantile of one group, NaN where there is nothing."""
    last = past - 1
    if last < first or np.isnan(share):
        return np.nan
    # Where so much is reached and nothing follows for a while, rounding does not decide on which side it is.
    wanted, at = share * reached[last] * (1.0 - ROUNDING if share < 1.0 else 1.0), first
    while at < last:  # the first end at which so much is reached
        middle = (at + last) >> 1
        if reached[middle] < wanted:
            at = middle + 1
        else:
            last = middle
    before = max(at - 1, first)
    gap = ends[at] - ends[before]
    rise = slope[before] * gap
    part = (wanted - reached[before]) / rise if rise > 0.0 else 1.0
    return float(ends[before] + gap * min(max(part, 0.0), 1.0))


@compiled
def interpolated(ends: Floats, reached: Floats, slope: Floats, offset: Integers, share: Floats) -> Floats:
    """Groups: a quantile of each, NaN where there is nothing."""
    found = np.empty(offset.size - 1)
    for group in range(offset.size - 1):
        found[group] = _at(ends, reached, slope, offset[group], offset[group + 1], share[group])
    return found


@compiled
def valued(
    ends: Floats,
    reached: Floats,
    slope: Floats,
    offset: Integers,
    mass: Floats,
    low: Floats,
    high: Floats,
    step: float,
    share: float,
) -> Floats:
    """Groups: where on the mass axis a quantile of each lies, and its value."""
    found = np.empty((2, offset.size - 1))
    for group in range(offset.size - 1):
        found[0, group] = _at(ends, reached, slope, offset[group], offset[group + 1], share)
        found[1, group] = value_at(mass, low, high, step, found[0, group])
    return found


@compiled
def outermost(
    ends: Floats,
    reached: Floats,
    slope: Floats,
    offset: Integers,
    mass: Floats,
    low: Floats,
    high: Floats,
    step: float,
    share: float,
    first: Floats,
    last: Floats,
) -> Floats:
    """Groups: as `valued`, of the least value (`share` 0) or the greatest (1).

    That beyond which so many rows are expected that there are some as likely as not; or where rows are known to be
    (`first` and `last`), if that is further out.
    """
    found = np.empty((2, offset.size - 1))
    for group in range(offset.size - 1):
        begin, past = offset[group], offset[group + 1]
        part = min(EVEN_ODDS / reached[past - 1], 0.5) if past > begin and reached[past - 1] > 0.0 else 0.0
        if share > 0.0:
            place = max(_at(ends, reached, slope, begin, past, 1.0 - part), last[group])
        else:
            place = min(_at(ends, reached, slope, begin, past, part), first[group])
        found[0, group] = place
        found[1, group] = value_at(mass, low, high, step, place)
    return found


@compiled
def doubted(
    mass: Floats, expected: Floats, share: Floats, count: Floats, tells: Floats, offset: Integers
) -> tuple[bool, Floats, Floats]:
    """Whether any group has few paths; bins: their mass as if one path more had been seen, and like all rows; groups:
    the part that it has.
    """
    table, part, is_any = mass, np.zeros(count.size), False
    for group in range(count.size):
        if not (count[group] > 0.0 and 0.0 < tells[group] < FEW):
            continue
        total = 0.0
        for slot in range(offset[group], offset[group + 1]):
            for each in range(mass.shape[1]):
                total += expected[slot, each] * share[slot, each]
        if not total > 0.0:
            continue
        if not is_any:
            table, is_any = mass.copy(), True
        part[group] = 1.0 / (tells[group] + 1.0)
        for slot in range(offset[group], offset[group + 1]):
            for each in range(mass.shape[1]):
                own = expected[slot, each] * share[slot, each] * (count[group] / total)
                table[slot, each] = (1.0 - part[group]) * mass[slot, each] + part[group] * own
    return is_any, table, part


@compiled
def _reached_at(ends: Floats, reached: Floats, slope: Floats, first: int, past: int, place: float) -> float:
    """The share of a group's mass below a place."""
    begin, end = first, past
    while begin < end:  # the first end beyond the place
        middle = (begin + end) >> 1
        if ends[middle] <= place:
            begin = middle + 1
        else:
            end = middle
    if begin == first:
        return 0.0
    mass = reached[begin - 1] + (slope[begin - 1] * (place - ends[begin - 1]) if begin < past else 0.0)
    return float(mass / reached[past - 1])


@compiled
def _place(mass: Floats, low: Floats, high: Floats, value: float) -> float:
    """Where on the mass axis a value lies that no row has."""
    begin, end = 0, high.size - 1
    while begin < end:  # the first fine bin that does not end below it
        middle = (begin + end) >> 1
        if high[middle] < value:
            begin = middle + 1
        else:
            end = middle
    width = high[begin] - low[begin]
    part = (value - low[begin]) / width if width > 0.0 else (1.0 if value > low[begin] else 0.0)
    return float(mass[begin] + min(max(part, 0.0), 1.0) * (mass[begin + 1] - mass[begin]))


@compiled
def _tail(distance: float) -> float:
    """The share of a normal distribution that lies beyond so many deviations."""
    return math.erfc(distance / np.sqrt(2.0)) / 2.0


@compiled
def _beyond(tail: float) -> float:
    """So many deviations that this share of a normal distribution lies beyond them (Abramowitz & Stegun 26.2.23)."""
    tail = min(max(tail, 1e-12), 0.5)
    t = np.sqrt(-2.0 * np.log(tail))
    found = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    for _ in range(2):  # Newton's steps, to the last digits
        found += (_tail(found) - tail) * np.sqrt(2.0 * np.pi) * np.exp(found * found / 2.0)
    return float(found)


@compiled
def _lumped(
    ends: Floats,
    reached: Floats,
    slope: Floats,
    first: int,
    past: int,
    mass: Floats,
    low: Floats,
    high: Floats,
    step: float,
    share: float,
    place: float,
) -> float:
    """The error of a rank because rows of the fine bin that it lies in may have one value; 0 where all have.

    The more values of a grid lie in the fine bin, the fewer rows have any of them.
    """
    code = max(min(reached_by(mass, place), low.size) - 1, 0)
    values = (high[code] - low[code]) / step + 1.0 if step > 0.0 else 2.0
    if values < 2.5 and step > 0.0:
        return 0.0
    below = _reached_at(ends, reached, slope, first, past, mass[code])
    size = _reached_at(ends, reached, slope, first, past, mass[code + 1]) - below
    return float(LUMPS * np.sqrt(max((share - below) * (below + size - share), 0.0) * min(2.0 / values, 1.0)))


@compiled
def _end(
    ends: Floats,
    reached: Floats,
    slope: Floats,
    first: int,
    past: int,
    mass: Floats,
    low: Floats,
    high: Floats,
    step: float,
    extreme: float,
    rank: float,
) -> float:
    """The value that a share of the rows lies below, which is no nearer to none or all of them than an extreme one."""
    rank = min(max(rank, extreme), 1.0 - extreme)
    return value_at(mass, low, high, step, _at(ends, reached, slope, first, past, rank))


@compiled
def around(
    ends: Floats,
    reached: Floats,
    slope: Floats,
    offset: Integers,
    mass: Floats,
    low: Floats,
    high: Floats,
    step: float,
    share: float,
    half: Floats,
    skew: Floats,
    place: Floats,
    value: Floats,
    heard: Flags,
    lowest: Floats,
    highest: Floats,
    unseen: Floats,
) -> tuple[Floats, Floats]:
    """Groups: between which values a quantile lies, given by how much its share may be mistaken.

    On a grid those values around the estimate that have 95% of the probability, as nearly as may be: a value at an end
    is in the interval if what is beyond it and half of its own probability are more than is to be left out (Lancaster
    1961). Where no path is heard, all that is possible is in the interval. `unseen` is the part of the rows that stands
    for what few paths have not seen, if any.
    """
    least, most = np.empty(half.size), np.empty(half.size)
    for group in range(half.size):
        first, past = offset[group], offset[group + 1]
        if past == first or np.isnan(place[group]):
            least[group] = most[group] = value[group]
        elif not heard[group]:
            least[group], most[group] = lowest[group], highest[group]
        else:
            mixture, axis = (ends, reached, slope, first, past), (mass, low, high, step)
            lumped = _lumped(*mixture, *axis, share, place[group])
            # Too many rows below: the quantile lies higher than it seems, and the other way round.
            # As much as is foretold and no more: a rank that is off by more would soon be none.
            middle = share + skew[group] / 2
            error = np.sqrt((max(half[group], 0.0) ** 2 + (skew[group] / 2) ** 2) / NORMAL**2 + lumped * lumped)
            extreme = EXTREME * unseen[group] + NEAR
            least[group] = min(_end(*mixture, *axis, extreme, middle - NORMAL * error), value[group])
            most[group] = max(_end(*mixture, *axis, extreme, middle + NORMAL * error), value[group])
            if step > 0.0 and error > 0.0:
                is_low_first, left_over = value[group] - least[group] > most[group] - value[group], 0.025
                for turn in range(2):
                    sign = -1.0 if is_low_first == (turn == 0) else 1.0
                    end = _end(*mixture, *axis, extreme, middle + sign * _beyond(left_over) * error)
                    end = min(end, value[group]) if sign < 0.0 else max(end, value[group])
                    inner = _reached_at(*mixture, _place(mass, low, high, end - sign * step / 2))
                    outer = _reached_at(*mixture, _place(mass, low, high, end + sign * step / 2))
                    beyond, own = _tail(sign * (outer - middle) / error), _tail(sign * (inner - middle) / error)
                    if end != value[group] and (beyond + own) / 2 < left_over:
                        end, beyond = _end(*mixture, *axis, NEAR, inner - sign * NEAR), own
                        end = min(end, value[group]) if sign < 0.0 else max(end, value[group])
                    if sign < 0.0:
                        least[group] = end
                    else:
                        most[group] = end
                    left_over = max(0.05 - beyond, 0.005)
        if value[group] < least[group] or np.isnan(value[group]):
            least[group] = value[group]
        if value[group] > most[group] or np.isnan(value[group]):
            most[group] = value[group]
    return least, most
