"""Inference: what a part of the rows tells about all of them, and how far that may be off."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from synopsis.sketch.moments import Floats

Interval = tuple[float, float]

#: 97.5% of a normal distribution lie below this.
NORMAL = 1.959964


def within(estimate: float, low: float, high: float) -> Interval:
    """An interval that holds its estimate."""
    return min(low, estimate), max(high, estimate)


def student(paths: float, level: float = 0.95) -> float:
    """The middle part of Student's distribution, of so many paths, that holds so much of it lies between this and its
    negative (Abramowitz & Stegun 26.7.5).

    >>> round(student(11.0), 2), round(student(1e6), 2), round(student(1e6, 0.9), 3)
    (2.23, 1.96, 1.645)
    """
    z, freedom = NORMAL if level == 0.95 else NormalDist().inv_cdf((1 + level) / 2), max(paths - 1.0, 2.0)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def dot(one: Floats, other: Floats) -> float:
    """The sum of products, without the threads that BLAS would start for it: they cost more than they save."""
    return float(np.einsum("i,i->", one, other))


def standing(normal: Floats) -> Floats:
    """The share of a normal distribution that lies below each number (Abramowitz & Stegun 26.2.17)."""
    size = np.abs(normal)
    t = 1.0 / (1.0 + 0.2316419 * size)
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    upper = np.exp(-0.5 * size * size) / np.sqrt(2 * np.pi) * series
    return np.asarray(np.clip(np.where(normal > 0, 1.0 - upper, upper), 1e-9, 1.0 - 1e-9))
