"""Mixtures: the distribution of values that lie flat in many overlapping pieces, and its quantiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synopsis.query.weighing import Tilts, bin_ends
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import TILT_LIMIT, TILT_STEPS

_TILT = TILT_LIMIT / TILT_STEPS


class Mixture(NamedTuple):
    """The distribution function of a mixture: straight lines between ends, and the mass reached at each."""

    ends: Floats
    reached: Floats
    slope: Floats  #: beyond each end


@compiled
def pieces(
    starts: Codes, top: Codes, tilt: Tilts, chosen: Integers, axis: Floats, mass: Floats, ranges: Floats
) -> tuple[Floats, Floats, Floats]:
    """Bins with a slope as flat pieces: where each begins and ends on the mass axis, and its mass.

    A bin has two, one either side of its middle; where one range cuts it, all of its mass is within the range.
    """
    size = 2 * np.count_nonzero(mass > 0.0)
    low, high, weight = np.empty(size), np.empty(size), np.empty(size)
    at = 0
    for number in range(chosen.size):
        for each in range(starts.shape[1]):
            own = mass[number, each]
            if not own > 0.0:
                continue
            begin, end = bin_ends(starts, top, chosen[number], each)
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


def mixed(low: Floats, high: Floats, mass: Floats) -> Mixture:
    """A mixture of flat pieces and points. Cost: a sort."""
    ends = np.concatenate((low, high))
    return Mixture(*_running(ends, np.argsort(ends), mass))


@compiled
def _running(ends: Floats, order: Integers, mass: Floats) -> tuple[Floats, Floats, Floats]:
    """Ends in order, and the mass reached and the slope at each; the first half of the ends are beginnings."""
    sorted_ends, reached, slope = np.empty(ends.size), np.empty(ends.size), np.empty(ends.size)
    jumped = grown = steep = 0.0
    for at in range(ends.size):
        piece = order[at] % mass.size
        begins, width = order[at] < mass.size, ends[piece + mass.size] - ends[piece]
        sorted_ends[at] = ends[order[at]]
        if at:
            grown += steep * (sorted_ends[at] - sorted_ends[at - 1])
        if width > 0.0:
            steep += mass[piece] / width if begins else -(mass[piece] / width)
        elif begins:
            jumped += mass[piece]
        reached[at], slope[at] = jumped + grown, steep
    return sorted_ends, reached, slope


@compiled
def interpolated(ends: Floats, reached: Floats, slope: Floats, share: float) -> float:
    """A quantile of a mixture."""
    wanted = share * reached[-1]
    at = min(np.searchsorted(reached, wanted), ends.size - 1)
    before = max(at - 1, 0)
    gap = ends[at] - ends[before]
    rise = slope[before] * gap
    part = (wanted - reached[before]) / rise if rise > 0.0 else 1.0
    return float(ends[before] + gap * min(max(part, 0.0), 1.0))
