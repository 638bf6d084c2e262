"""Densities: how the values of a feature are spread in a group, as a curve (Silverman 1986).

What paths and counts say of the values is a mass in each fine bin of the feature. Rows lie flat within a fine bin, and
a normal kernel smooths them: the curve is a sum of differences of the kernel's distribution function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from synopsis.core.errors import BadQuery
from synopsis.query.feature_numbers import Numbers
from synopsis.query.inference import standing
from synopsis.query.pieces import Pieces
from synopsis.sketch.moments import Floats

#: Points of a curve.
POINTS: Final = 201

#: Bandwidths beyond the outermost values that a curve reaches.
_BEYOND: Final = 3.0


def curve(pieces: Sequence[Pieces], feature: int, bandwidth: float | None) -> tuple[Floats, Floats] | None:
    """Values and the density there, of about unit area, of one group; None where there is nothing.

    Without a bandwidth, Silverman's rule of thumb. Where there may be rows and no path tells of them, features are
    taken to be independent. Cost: the fine bins of the feature times the points.
    """
    numbers = [found for each in pieces if (found := each.numbers(feature)).count[0] > 0]
    if not numbers:
        possible = [each for each in pieces if each.selection.values(feature).count()[1][0] > 0]
        numbers = [found for each in possible if (found := each.alone(feature)).count[0] > 0]
    if not numbers:
        return None
    low, high, mass = _fine(numbers)
    mass = mass / mass.sum()
    middle = (low + high) / 2
    mean = float(mass @ middle)
    deviation = math.sqrt(max(float(mass @ ((middle - mean) ** 2 + (high - low) ** 2 / 12)), 0.0))
    width = bandwidth or _silverman(middle, mass, deviation, sum(float(each.count[0]) for each in numbers))
    if not width > 0.0:  # all values are one
        return np.array([mean]), np.array([math.inf])
    if not math.isfinite(float(high[-1] - low[0]) + 2.0 * _BEYOND * width):
        raise BadQuery(
            f"a bandwidth of {width:g} reaches beyond the largest number; give one nearer to how values spread"
        )
    points = np.linspace(low[0] - _BEYOND * width, high[-1] + _BEYOND * width, POINTS)
    ends = (points[:, None] - np.stack((low, high))[:, None, :]) / width
    below = standing(ends)
    length = high - low
    flat = (below[0] - below[1]) / np.where(length > 0, length, 1.0)
    point = np.exp(-0.5 * ends[0] ** 2) / (width * math.sqrt(2 * math.pi))
    return points, np.where(length > 0, flat, point) @ mass


def _fine(numbers: Sequence[Numbers]) -> tuple[Floats, Floats, Floats]:
    """The fine bins that have mass: their lowest and highest value, and the mass of all pieces in each."""
    axis = numbers[0].bins.axis
    total = np.zeros(axis.low.size)
    for each in numbers:
        begin, end, mass, _ = each.flat
        total += np.diff(_reached(axis.mass, begin, end, mass))
    used = total > 1e-12 * total.sum()
    return axis.low[used], axis.high[used], total[used]


def _reached(edges: Floats, begin: Floats, end: Floats, mass: Floats) -> Floats:
    """How much of flat pieces lies below each edge."""
    width = end - begin
    order_begin, order_end = np.argsort(begin), np.argsort(end)
    density = np.where(width > 0, mass / np.where(width > 0, width, 1.0), 0.0)

    def before(ends: Floats, order: np.ndarray) -> tuple[Floats, Floats, Floats]:
        """Of the pieces that begin, or end, before each edge: sums of density, of density x end, of point masses."""
        at = np.searchsorted(ends[order], edges, side="left")
        sums = (density[order], density[order] * ends[order], np.where(width > 0, 0.0, mass)[order])
        return tuple(np.append(0.0, np.cumsum(each))[at] for each in sums)  # type: ignore[return-value]

    slope, offset, points = before(begin, order_begin)
    slope_past, offset_past, _ = before(end, order_end)
    return np.asarray((slope - slope_past) * edges - (offset - offset_past) + points)


def _silverman(middle: Floats, mass: Floats, deviation: float, count: float) -> float:
    """Silverman's rule of thumb: 0.9 of the lesser of deviation and interquartile range / 1.34, by n^(-1/5)."""
    reached = np.cumsum(mass)
    quarter, three = (middle[min(int(np.searchsorted(reached, share)), middle.size - 1)] for share in (0.25, 0.75))
    spread = min(deviation, (three - quarter) / 1.34) or deviation
    return float(0.9 * spread * max(count, 1.0) ** -0.2)
