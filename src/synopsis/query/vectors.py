"""Vectors: small steps over whole arrays that NumPy has a word for, and numba takes seconds to compile that word.

They serve `told`, in machine code.
"""

from __future__ import annotations

import numpy as np

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.strata import Flags


@compiled
def arange(size: int) -> Positions:
    """Positions, one after the other."""
    found = np.empty(size, np.int32)
    for each in range(size):
        found[each] = each
    return found


@compiled
def ones(size: int) -> Floats:
    """So many times one."""
    found = np.empty(size)
    for each in range(size):
        found[each] = 1.0
    return found


@compiled
def flags(size: int, flag: bool) -> Flags:
    """So many times a flag."""
    found = np.empty(size, np.bool_)
    for each in range(size):
        found[each] = flag
    return found


@compiled
def row(features: Integers, feature: int) -> int:
    """Where a feature stands among those that are opened."""
    for row in range(features.size):
        if features[row] == feature:
            return row
    return -1


@compiled
def kept(table: Floats) -> Floats:
    """A table without what is below nothing."""
    found = np.empty(table.shape)
    for slot in range(table.shape[0]):
        for each in range(table.shape[1]):
            found[slot, each] = max(table[slot, each], 0.0)
    return found


@compiled
def either(
    first: Flags, numbers: tuple[Floats, Floats, Floats], others: tuple[Floats, Floats, Floats]
) -> tuple[Floats, Floats, Floats]:
    """Count, mean and variance of each group, from the `first` or from the others."""
    found = (others[0].copy(), others[1].copy(), others[2].copy())
    for group in range(first.size):
        if first[group]:
            found[0][group], found[1][group], found[2][group] = (
                numbers[0][group], numbers[1][group], numbers[2][group],
            )  # fmt: skip
    return found


@compiled
def put(found: Floats, estimate: Floats, low: Floats, high: Floats) -> None:
    """Write down estimates of groups, and intervals where there are any."""
    for group in range(estimate.size):
        found[0, group] = estimate[group]
        found[1, group] = low[group] if low.size else np.nan
        found[2, group] = high[group] if low.size else np.nan
