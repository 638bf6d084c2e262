"""Mixtures: the distribution of values that lie flat in many overlapping pieces, and its quantiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers


class Mixture(NamedTuple):
    """The distribution function of a mixture: straight lines between ends, and the mass reached at each."""

    ends: Floats
    reached: Floats
    slope: Floats  #: beyond each end


def mixed(low: Floats, high: Floats, mass: Floats) -> Mixture:
    """A mixture of flat pieces and points. Cost: a sort."""
    ends = np.empty(2 * low.size)
    ends[: low.size], ends[low.size :] = low, high
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
    at, last = 0, ends.size - 1
    while at < last:  # the first end at which so much is reached
        middle = (at + last) >> 1
        if reached[middle] < wanted:
            at = middle + 1
        else:
            last = middle
    before = max(at - 1, 0)
    gap = ends[at] - ends[before]
    rise = slope[before] * gap
    part = (wanted - reached[before]) / rise if rise > 0.0 else 1.0
    return float(ends[before] + gap * min(max(part, 0.0), 1.0))
