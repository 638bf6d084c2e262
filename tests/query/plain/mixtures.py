"""Mixtures: the distribution of values that lie flat in many overlapping pieces, and its quantiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from synopsis.sketch.moments import Floats

#: Share of the mass by which it may be off by rounding.
ROUNDING = 1e-12


class Mixture(NamedTuple):
    """The distribution function of a mixture: straight lines between ends, and the mass reached at each."""

    ends: Floats
    reached: Floats
    slope: Floats  #: beyond each end


def mixed(low: Floats, high: Floats, mass: Floats) -> Mixture:
    """A mixture of flat pieces and points."""
    flat = high > low
    density = np.where(flat, mass / np.where(flat, high - low, 1.0), 0.0)
    ends = np.concatenate((low, high))
    order = np.argsort(ends)
    ends = ends[order]
    slope = np.cumsum(np.concatenate((density, -density))[order])
    jumps = np.concatenate((np.where(flat, 0.0, mass), np.zeros(mass.size)))[order]
    reached = np.cumsum(jumps)
    reached[1:] += np.cumsum(slope[:-1] * np.diff(ends))
    return Mixture(ends, reached, slope)


def interpolated(mixture: Mixture, share: Floats) -> Floats:
    """The quantiles of a mixture."""
    ends, reached, slope = mixture
    wanted = share * reached[-1] * np.where(share < 1.0, 1.0 - ROUNDING, 1.0)
    at = np.clip(np.searchsorted(reached, wanted), 0, ends.size - 1)
    before = np.maximum(at - 1, 0)
    gap = ends[at] - ends[before]
    rise = slope[before] * gap
    part = np.divide(wanted - reached[before], rise, out=np.ones(rise.size), where=rise > 0)
    return np.asarray(ends[before] + gap * np.clip(part, 0.0, 1.0))
