"""Sums: what Spark adds up natively of the rows of one strand with the same features present, made into strands.

Rows are grouped by strand and by which features are present, so that one set of sums serves every pair: the products
of a pair where both are present are the sums of the groups that have both. Values are shifted by a pivot before they
are squared, so that kelvin and pascal lose no digits; where a strand lies so far from the pivot that digits were lost
all the same, it is named, to be summed again around its own means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Comoments, Floats, Integers, Moments
from synopsis.sketch.strands import Cells, Strands

#: Relative error of a spread beyond which a strand is summed again: half of what is promised.
TOLERANCE = 5e-10


def products(features: int) -> list[tuple[int, int]]:
    """The products that are summed, squares included, in their order.

    >>> products(2)
    [(0, 0), (0, 1), (1, 1)]
    """
    return list(combinations_with_replacement(range(features), 2))


@dataclass(frozen=True)
class Sums:
    """Sums of groups of rows: one group has one cell, one bucket, one pattern of present features."""

    cell: Integers
    bucket: Integers
    present: Integers  #: bit f is set where feature f is present
    rows: Integers
    first_us: Integers
    last_us: Integers
    south: Floats
    west: Floats
    north: Floats
    east: Floats
    low: Floats  #: features x groups; anything where absent
    high: Floats
    total: Floats  #: features x groups: sums of shifted values
    product: Floats  #: products x groups: sums of products of shifted values
    pivot: Floats  #: features x 1, or features x groups: what values were shifted by

    def strands(self, layout: Layout) -> Strands:
        """The strands of these groups. Cost is proportional to groups times pairs."""
        bits = np.arange(len(layout.features), dtype=np.int64)[:, None]
        present = (self.present >> bits) & 1 == 1
        count = np.where(present, self.rows, 0)
        shift = np.where(present, self.total / self.rows, 0.0)
        index = {pair: position for position, pair in enumerate(products(len(layout.features)))}
        squares = self._squares
        low, high = np.where(present, self.low, np.inf), np.where(present, self.high, -np.inf)
        spread = np.where(present & (low < high), np.maximum(squares - self.rows * shift**2, 0.0), 0.0)
        mean = np.where(present, np.clip(self.pivot + shift, low, high), 0.0)
        moments = Moments(count, mean, spread, low, high)

        one = np.array([pair[0] for pair in layout.pairs], np.int64)
        two = np.array([pair[1] for pair in layout.pairs], np.int64)
        both = present[one] & present[two]
        cross = self.product[[index[pair] for pair in layout.pairs]] - self.rows * shift[one] * shift[two]
        varies = both & (spread[one] > 0) & (spread[two] > 0)
        comoments = Comoments(
            count=np.where(both, self.rows, 0),
            first_mean=np.where(both, mean[one], 0.0),
            second_mean=np.where(both, mean[two], 0.0),
            first_spread=np.where(both, spread[one], 0.0),
            second_spread=np.where(both, spread[two], 0.0),
            cross=np.where(varies, cross, 0.0),
        )
        cells = Cells.of(self.cell, self.south, self.west, self.north, self.east)
        keys = (self.cell, self.bucket, self.rows, self.first_us, self.last_us)
        return Strands(layout, cells, *keys, moments, comoments).pooled()

    @property
    def _squares(self) -> Floats:
        width = len(self.total)
        return self.product[[position for position, (i, j) in enumerate(products(width)) if i == j]]


def lost_digits(strands: Strands, sums: Sequence[Sums]) -> NDArray[np.bool_]:
    """Which strands, made of these sums, lie so far from the pivot that their spread lost digits.

    A spread is a difference of sums of shifted squares. Adding n of them one by one is wrong by u sqrt(n) / 3 of their
    sum in the mean, u being the unit of rounding; three times that is feared here. Cost: proportional to groups.
    """
    squares = np.zeros_like(strands.moments.spread.T)
    for part in sums:
        np.add.at(squares, strands.positions(part.cell, part.bucket), part._squares.T)
    error = np.finfo(np.float64).eps / 2 * np.sqrt(strands.rows) * squares.T
    varies = strands.moments.low < strands.moments.high
    return np.asarray((varies & (error > TOLERANCE * strands.moments.spread)).any(axis=0))
