"""Inference: what a part of the rows tells about all of them, and how far that may be off."""

from __future__ import annotations

import numpy as np

from synopsis.sketch.moments import Floats

Interval = tuple[float, float]

#: 97.5% of a normal distribution lie below this.
NORMAL = 1.959964


def within(estimate: float, low: float, high: float) -> Interval:
    """An interval that holds its estimate."""
    return min(low, estimate), max(high, estimate)


def worth(mass: Floats) -> float:
    """How many paths of equal weight would tell as much (Kish 1965)."""
    total = float(mass.sum())
    return total * total / dot(mass, mass) if total > 0 else 0.0


def student(paths: float) -> float:
    """97.5% of Student's distribution, of so many paths, lie below this (Abramowitz & Stegun 26.7.5).

    >>> round(student(11.0), 2), round(student(1e6), 2)
    (2.23, 1.96)
    """
    z, freedom = NORMAL, max(paths - 1.0, 2.0)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def dot(one: Floats, other: Floats) -> float:
    """The sum of products, without the threads that BLAS would start for it: they cost more than they save."""
    return float(np.einsum("i,i->", one, other))


#: The fourth moment of differences is so many squares, where tails are heavy (three if they were normal).
FOURTH = 2.0


def differing(reach: Floats, values: Floats) -> tuple[float, float]:
    """The squared error of a total, by how much neighbouring paths differ, and how many paths' word that is.

    Wolter (2007), 8.2; Satterthwaite (1946).
    """
    step = values[1:] - values[:-1]
    step *= step
    squares = np.multiply(reach[1:], step, out=step)
    total, fourth = float(squares.sum()), dot(squares, squares)
    return total / 2, FOURTH * total * total / fourth if fourth > 0 else 0.0
