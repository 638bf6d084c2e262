"""Density: a smooth curve through weighted values, so that mass can be read off and shared out evenly.

A Gaussian kernel density estimate with the bandwidth of Silverman (1986, equation 3.31), computed by binning the values
on a lattice and convolving once (Silverman 1982; linear binning after Jones & Lotwick 1984). Stretches that no kernel
reaches are folded away before the lattice is laid, so that heavy tails cost as much as their values, not their range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Bandwidth = float | Literal["silverman"]

CELLS_PER_BANDWIDTH = 8  #: lattice cells; the error of a cumulative mass stays near 1/1000 of one kernel's mass
REACH = 6  #: bandwidths after which a kernel ends; 2e-9 of a Gaussian lies beyond
_TAIL = REACH * CELLS_PER_BANDWIDTH


def _kernel() -> Floats:
    """The mass of one Gaussian in each lattice cell around its centre."""
    borders = (np.arange(2 * _TAIL + 2) - _TAIL - 0.5) / CELLS_PER_BANDWIDTH
    cumulative = np.array([0.5 * (1.0 + math.erf(border / math.sqrt(2.0))) for border in borders])
    masses = np.diff(cumulative)
    return np.asarray(masses / masses.sum(), dtype=np.float64)


_KERNEL = _kernel()


def distinct(values: ArrayLike, weights: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """The different finite values in order, and the weight of each; a weight of zero or less does not count.

    >>> distinct([2.0, 1.0, float("nan"), 2.0])
    (array([1., 2.]), array([1., 2.]))
    """
    points = np.asarray(values, dtype=np.float64).ravel()
    if weights is None:  # counting sorts values, and not also where they were
        points, counts = np.unique(points[np.isfinite(points)], return_counts=True)
        return points, counts.astype(np.float64)
    mass = np.asarray(weights, dtype=np.float64).ravel()
    if mass.size != points.size:
        raise ValueError(f"{points.size} values came with {mass.size} weights; give one weight to each value")
    counted = np.isfinite(points) & (mass > 0.0)
    if counted.all() and (points[1:] > points[:-1]).all():  # they are different, and in order
        return points, mass
    points, place = np.unique(points[counted], return_inverse=True)
    return points, np.bincount(place, mass[counted], minlength=points.size).astype(np.float64)


def silverman(values: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Silverman's bandwidth: 0.9 min(deviation, interquartile range / 1.34) / n^(1/5).

    Weights are numbers of observations, so n is their sum. Where more than half of the mass is one value, and the
    quartiles say nothing, the deviation decides alone. A constant has bandwidth 0.

    >>> round(silverman([1.0, 2.0, 3.0, 4.0]), 4)
    0.7626
    """
    points, mass = distinct(values, weights)
    if points.size < 2:
        return 0.0
    scale = float(np.abs(points).max())  # squares of the largest doubles would overflow
    scaled, total = points / scale, mass.sum()
    mean = np.dot(scaled, mass) / total
    deviation = math.sqrt(np.dot((scaled - mean) ** 2, mass) / total)
    lower, upper = scaled[np.searchsorted(np.cumsum(mass), [0.25 * total, 0.75 * total])]
    spread = min(deviation, (upper - lower) / 1.34) or deviation
    return float(0.9 * spread * total**-0.2 * scale)


@dataclass(frozen=True, slots=True, eq=False)
class Density:
    """How mass is spread over the line: `cumulative` mass, 0 to 1, at `knots`, straight in between.

    >>> density = Density.of([0.0], bandwidth=1.0)
    >>> round(float(density.cdf(1.0)), 3), round(float(density.inverse(0.841)), 2), round(float(density.pdf(0.0)), 3)
    (0.841, 1.0, 0.399)
    """

    knots: Floats
    cumulative: Floats
    bandwidth: float

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        bandwidth: Bandwidth = "silverman",
        bounded: bool = False,
    ) -> Self:
        """The density of weighted values.

        `bounded` means that nothing lies outside the values given: kernels that would spill over the lowest or highest
        value are mirrored back (rain below zero, humidity above a hundred).
        """
        points, mass = distinct(values, weights)
        if points.size == 0:
            raise ValueError("a density needs at least one finite value with a positive weight")
        width = silverman(points, mass) if bandwidth == "silverman" else float(bandwidth)
        if not 0.0 <= width < math.inf:
            raise ValueError(f"bandwidth {bandwidth!r} is no width; give 0 or more, or 'silverman'")
        # A kernel no wider than a few of the doubles around it cannot be drawn.
        width = max(width, 1024.0 * float(np.spacing(np.abs(points).max())), 1e-150)
        if not bounded:
            return cls(*_smoothed(points, mass, width), width)
        low, high = points[0], points[-1]
        below, above = points <= low + REACH * width, points >= high - REACH * width
        mirrored = distinct(
            np.concatenate([2.0 * low - points[below], points, 2.0 * high - points[above]]),
            np.concatenate([mass[below], mass, mass[above]]),
        )
        knots, cumulative = _smoothed(*mirrored, width)
        first, last = np.interp([low, high], knots, cumulative)
        inside = (knots > low) & (knots < high)
        knots = np.concatenate([[low], knots[inside], [high]])
        cumulative = np.concatenate([[first], cumulative[inside], [last]])
        share = (cumulative - first) / (last - first) if last > first else np.array([0.0, 1.0])
        return cls(knots, share, width)

    def cdf(self, x: ArrayLike) -> Floats:
        """The share of the mass at or below `x`."""
        return np.asarray(np.interp(np.asarray(x, dtype=np.float64), self.knots, self.cumulative))

    def inverse(self, mass: ArrayLike) -> Floats:
        """The value at or below which this share of the mass lies."""
        return np.asarray(np.interp(np.asarray(mass, dtype=np.float64), self.cumulative, self.knots))

    def pdf(self, x: ArrayLike) -> Floats:
        """Mass per unit of value at `x`."""
        widths = np.diff(self.knots)
        drawn = widths > 0.0
        heights = np.diff(self.cumulative)[drawn] / widths[drawn]
        centres = (self.knots[:-1] + 0.5 * widths)[drawn]
        place = np.asarray(x, dtype=np.float64)
        inside = (place >= self.knots[0]) & (place <= self.knots[-1])
        if heights.size == 0:
            return np.where(inside, math.inf, 0.0)
        return np.where(inside, np.interp(place, centres, heights), 0.0)


def _smoothed(points: Floats, mass: Floats, width: float) -> tuple[Floats, Floats]:
    """Knots and cumulative mass of Gaussians of one width at sorted points."""
    step = width / CELLS_PER_BANDWIDTH
    gaps = np.diff(points) / step
    # The middle of a wide gap, out of every kernel's reach, becomes one cell.
    wide = np.flatnonzero(gaps > 2 * _TAIL + 1)
    gaps[wide] = 2 * _TAIL + 1
    places = np.concatenate([[0.0], np.cumsum(gaps)]) + _TAIL + 1

    cell = np.floor(places).astype(np.int64)
    part = places - cell
    cells = int(cell[-1]) + _TAIL + 3
    masses = np.bincount(cell, mass * (1.0 - part), minlength=cells)
    masses += np.bincount(cell + 1, mass * part, minlength=cells)
    cumulative = np.concatenate([[0.0], np.cumsum(np.convolve(masses, _KERNEL, mode="same"))])

    # From places on the folded lattice back to values.
    reach = REACH * width
    folded = np.concatenate([[0.0], places, places[wide] + _TAIL, places[wide + 1] - _TAIL, [places[-1] + _TAIL + 3]])
    values = np.concatenate(
        [
            [points[0] - (_TAIL + 1) * step],
            points,
            points[wide] + reach,
            points[wide + 1] - reach,
            [points[-1] + (_TAIL + 3) * step],
        ]
    )
    order = np.argsort(folded, kind="stable")
    knots = np.interp(np.arange(cells + 1) - 0.5, folded[order], np.maximum.accumulate(values[order]))
    return knots, cumulative / cumulative[-1]
