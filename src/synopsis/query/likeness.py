"""Likeness: an order of rows in which those that are alike stand side by side.

Rows are parted in halves, and these again, each at the middle of the feature in which its rows differ most (a k-d tree,
Bentley 1975), in deviations of that feature. Every other half runs backwards, so that neighbours across a middle are
alike, too. Even steps along this order take a part of the rows that has as many of every kind as all of them have: its
means differ less from theirs than those of a random part do, whatever they are of.
"""

from __future__ import annotations

import numpy as np

from synopsis.sketch.moments import Floats, Integers

#: A missing value is so many deviations below the least one: like others that are missing, and unlike the rest.
_APART = 1.0


def ordered_by_likeness(values: Floats, parts: int, random: np.random.Generator) -> Integers:
    """Positions of rows (features x rows) in an order of at least so many parts of like rows; ties are in random order.

    Cost: sorting the rows once for every halving, the binary logarithm of `parts`.
    """
    size = values.shape[1]
    order = np.asarray(random.permutation(size), np.int64)
    scaled = _scaled(values)[:, order]
    part = np.zeros(size, np.int64)
    for level in range(max(int(np.ceil(np.log2(max(min(parts, size), 1)))), 0)):
        number = 1 << level
        rows = np.bincount(part, minlength=number)
        key = scaled[_widest(scaled, part, rows)[part], np.arange(size)]
        sorting = np.lexsort((np.where(part % 2, -key, key), part))
        order, scaled, part = order[sorting], scaled[:, sorting], part[sorting]
        rank = np.arange(size) - (np.cumsum(rows) - rows)[part]
        middle = (rows + (random.random(number) < 0.5)) // 2  # the odd one goes either way
        part = 2 * part + (rank >= middle[part])
    return order


def _scaled(values: Floats) -> Floats:
    """Values in deviations of their features; those missing below all others."""
    missing = np.isnan(values)
    present = np.where(missing, 0.0, values)
    count = np.maximum((~missing).sum(axis=1, keepdims=True), 1)
    centred = np.where(missing, 0.0, values - present.sum(axis=1, keepdims=True) / count)
    deviation = np.sqrt(np.square(centred).sum(axis=1, keepdims=True) / count)
    scaled = centred / np.where(deviation > 0, deviation, 1.0)
    return np.where(missing, scaled.min(axis=1, keepdims=True, initial=0.0) - _APART, scaled)


def _widest(scaled: Floats, part: Integers, rows: Integers) -> Integers:
    """Parts: the feature of the largest variance."""
    safe = np.maximum(rows, 1)
    variance = [
        np.bincount(part, value**2, rows.size) / safe - np.square(np.bincount(part, value, rows.size) / safe)
        for value in scaled
    ]
    return np.asarray(np.argmax(variance, axis=0), np.int64)
