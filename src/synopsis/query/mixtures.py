"""Mixtures: the distribution of values that lie flat in many overlapping pieces, and its quantiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synopsis.query.slices import around as fine_bins
from synopsis.query.slices import values
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags

#: Share of the mass by which it may be off by rounding.
ROUNDING = 1e-12


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
    """Put positions in the order of their values, by merging runs that are twice as long each time."""
    size, width = order.size, 1
    while width < size:
        for left in range(0, size, 2 * width):
            middle, right = min(left + width, size), min(left + 2 * width, size)
            one, other = left, middle
            for to in range(left, right):
                if one < middle and (other >= right or values[order[one]] <= values[order[other]]):
                    spare[to] = order[one]
                    one += 1
                else:
                    spare[to] = order[other]
                    other += 1
        for to in range(size):
            order[to] = spare[to]
        width *= 2


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
def interpolated(ends: Floats, reached: Floats, slope: Floats, offset: Integers, share: Floats) -> Floats:
    """Groups: a quantile of each, NaN where there is nothing."""
    found = np.full(offset.size - 1, np.nan)
    for group in range(offset.size - 1):
        first, last = offset[group], offset[group + 1] - 1
        if last < first or np.isnan(share[group]):
            continue
        # Where so much is reached and nothing follows for a while, rounding does not decide on which side it is.
        wanted, at = share[group] * reached[last] * (1.0 - ROUNDING if share[group] < 1.0 else 1.0), first
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
        found[group] = ends[before] + gap * min(max(part, 0.0), 1.0)
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
    place = interpolated(ends, reached, slope, offset, np.full(offset.size - 1, share))
    value = values(mass, low, high, step, place)
    for group in range(place.size):
        found[0, group], found[1, group] = place[group], value[group]
    return found


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
) -> tuple[Floats, Floats]:
    """Groups: between which values a quantile lies, given by how much its share may be mistaken.

    Where in its fine bin a value lies is not known, which matters where the interval does not reach beyond it; where no
    path is heard, all that is possible is in the interval.
    """
    least, most = np.empty(half.size), np.empty(half.size)
    for group in range(half.size):
        # Too many rows below: the quantile lies higher than it seems, and the other way round.
        more = min(min(skew[group], 0.0) - half[group], 0.0)
        fewer = max(max(skew[group], 0.0) + half[group], 0.0)
        least[group] = min(max(share + more, 0.0), 1.0)
        most[group] = min(max(share + fewer, 0.0), 1.0)
    least = interpolated(ends, reached, slope, offset, least)
    most = interpolated(ends, reached, slope, offset, most)
    least, most = fine_bins(mass, low, high, step, least, most, place)
    for group in range(half.size):
        if not heard[group]:
            least[group], most[group] = lowest[group], highest[group]
        if value[group] < least[group] or np.isnan(value[group]):
            least[group] = value[group]
        if value[group] > most[group] or np.isnan(value[group]):
            most[group] = value[group]
    return least, most
