"""Independence: what exact counts tell where no path satisfies a clause: features are taken to be independent.

The machine code of `told` for groups in which no path is heard; `estimate` does the same in NumPy.
"""

from __future__ import annotations

import numpy as np

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers


@compiled
def leaf_shares(tables: Floats, counts: Integers, rows: Integers, stratum: Integers, whole: Integers) -> Floats:
    """Leaves x slots: the share of rows that satisfy each, by the exact counts."""
    found = np.empty((tables.shape[0], stratum.size))
    for leaf in range(tables.shape[0]):
        for slot in range(stratum.size):
            held = 0.0
            for each in range(tables.shape[2]):
                held += counts[rows[leaf], stratum[slot], each] * tables[leaf, slot, each]
            found[leaf, slot] = held / whole[slot]
    return found


@compiled
def alone(steps: Integers, shares: Floats) -> Floats:
    """Slots: the share of rows that satisfy a clause, given that of its leaves, of independent features."""
    found, stack = np.empty(shares.shape[1]), np.empty(max(steps.size, 1))
    for slot in range(shares.shape[1]):
        top, stack[0] = 0, 1.0
        for step in steps:
            if step >= 0:
                stack[top] = shares[step, slot]
                top += 1
                continue
            parts, is_all, product = (-step - 1) >> 1, (-step - 1) & 1 == 0, 1.0
            for part in range(top - parts, top):
                product *= stack[part] if is_all else 1.0 - stack[part]
            top -= parts
            stack[top] = product if is_all else 1.0 - product
            top += 1
        found[slot] = stack[0]
    return found


@compiled
def unseen(alone: Floats, rows: Floats, begin: int, end: int, paths: int) -> float:
    """Rows of a group that satisfy a clause though no path does, as `Estimates._unseen` has them."""
    expected = total = 0.0
    for slot in range(begin, end):
        expected, total = expected + rows[slot] * alone[slot], total + rows[slot]
    return expected / (1.0 + expected * paths / total) if expected > 0.0 else 0.0


@compiled
def rows_of_bins(expected: Floats, alone: Floats) -> Floats:
    """Slots x (bins and absent): rows where what is demanded of others has nothing to do with them."""
    found = np.empty(expected.shape)
    for slot in range(expected.shape[0]):
        for each in range(expected.shape[1]):
            found[slot, each] = expected[slot, each] * alone[slot]
    return found


@compiled
def correlated(
    one_mass: Floats,
    two_mass: Floats,
    one_mean: Floats,
    two_mean: Floats,
    begin: int,
    end: int,
    one: float,
    two: float,
    one_variance: float,
    two_variance: float,
) -> float:
    """The correlation of features that vary together from stratum to stratum only, for all that is known."""
    bins, total, mx, my, covariance = one_mass.shape[1], 0.0, 0.0, 0.0, 0.0
    weight, x, y = np.empty(end - begin), np.empty(end - begin), np.empty(end - begin)
    for slot in range(begin, end):
        first = second = one_away = two_away = 0.0
        for each in range(bins):
            first, second = first + one_mass[slot, each], second + two_mass[slot, each]
            one_away += one_mass[slot, each] * (one_mean[slot, each] - one)
            two_away += two_mass[slot, each] * (two_mean[slot, each] - two)
        at, weight[slot - begin] = slot - begin, min(first, second)
        x[at], y[at] = one_away / max(first, 1e-300), two_away / max(second, 1e-300)
        total, mx, my = total + weight[at], mx + weight[at] * x[at], my + weight[at] * y[at]
    if not (total > 0.0 and one_variance * two_variance > 0.0):
        return np.nan
    for at in range(weight.size):
        covariance += weight[at] * (x[at] - mx / total) * (y[at] - my / total)
    return float(min(max(covariance / total / np.sqrt(one_variance * two_variance), -1.0), 1.0))
