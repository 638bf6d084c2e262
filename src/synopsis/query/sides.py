"""Sides: the rows of strata with values as high as can be, bin by bin, and what follows from them.

`strata` tells why. This serves all groups and counts that are known between bounds; where one group has exact counts,
`arrangements` computes the same in machine code.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.query.histograms import Strata
from synopsis.query.runs import Runs
from synopsis.sketch.moments import Floats

#: Share of the magnitudes by which sums of values may be off by rounding, here and in whoever checks them.
ROUNDING: Final = 1e-9
ROUNDING_OF_RANKS: Final = 1e-15  #: share of the rows by which a rank may be off: a few units in the last place
CLOSE_ENOUGH: Final = 1e-5  #: of the way to the best value: where the search for a mean stops
MOST_STEPS: Final = 50
CELLS: Final = 256  #: of values, in which a quantile is sought first
NO_WIDTH: Final = 1e-300  #: what is narrower is not parted into cells


def over_bins(counts: Floats, values: Floats) -> Floats:
    """The sum of counts x values over the bins of each stratum."""
    return np.asarray(np.einsum("bs,bs->s", counts, values))


def differences(so_far: Floats) -> Floats:
    """What each bin adds to those before it; np.diff with `prepend` would copy twice."""
    differences = np.empty_like(so_far)
    differences[0] = so_far[0]
    np.subtract(so_far[1:], so_far[:-1], out=differences[1:])
    return differences


class Side:
    """The rows of each stratum with values as high as can be, and what follows from them: upper bounds per group.

    Arrays are bins x strata, the best bin first. Groups without rows get a bound that means nothing.
    """

    def __init__(self, strata: Strata, values: Floats, must: Floats, either: Floats) -> None:
        self._strata, self._runs = strata, strata.runs
        self._values, self._must, self._either = values, must, either

    @cached_property
    def best(self) -> Floats:
        """At least their greatest value."""
        return self._finite(self._runs.max(np.where(self._either > 0.0, self._values, -np.inf).max(axis=0)))

    @cached_property
    def worst(self) -> Floats:
        """At least their least value."""
        worst = self._runs.min(np.where(self._must > 0.0, self._values, np.inf).min(axis=0))
        return np.where(np.isinf(worst), self.best, worst)

    def sum(self) -> Floats:
        """At least their sum."""
        may = self._runs.sum(over_bins(self._may, np.maximum(self._values, 0.0)))
        slack = ROUNDING * self._runs.sum(over_bins(self._either, np.abs(self._values)))
        # Where no row must be taken, one is all the same: without, there would be no sum.
        only_negative = (self._count == 0.0) & (self.best < 0.0)
        return np.where(only_negative, self.best, self._fixed + may) + slack

    def mean(self, scale: Floats) -> Floats:
        """At least their mean, where no value is larger than `scale` in magnitude.

        The gain over a level, of the rows that must be taken and of the others above it, falls as the level rises, and
        convexly. So Newton's steps climb to the level without gain, which is never further away than the gain that is
        left, shared among the rows that must be taken. Where none must be, the best row alone has the largest mean.
        """
        runs, is_sought, slack = self._runs, self._count > 0.0, ROUNDING * scale
        count, products = np.maximum(self._count, 1.0), self._may * self._values
        taken, total = count + runs.sum(self._may.sum(axis=0)), self._fixed + runs.sum(products.sum(axis=0))
        level = np.where(is_sought, np.maximum(self._fixed / count, total / taken), self.best)
        for _ in range(MOST_STEPS):
            above = (self._values > runs.spread_out(level)).astype(np.float64)
            taken = count + runs.sum(over_bins(self._may, above))
            total = self._fixed + runs.sum(over_bins(products, above))
            gain = np.where(is_sought, np.maximum(total - level * taken, 0.0) / count, 0.0)
            if np.all(gain <= slack + CLOSE_ENOUGH * (self.best - level)):
                break
            level = np.where(is_sought, np.maximum(total / taken, level), level)
        return np.asarray(np.minimum(level + gain, self.best) + slack)

    def quantile(self, share: float, above: float, floor: Floats) -> Floats:
        """At least their quantile, with that share of the rows below it and the rest `above`; none is below `floor`.

        Bins are counted by cells of values first; only those of the cell in which the quantile lies are sorted.
        """
        groups, runs = self._strata.groups, self._runs
        cells = max(1, min(CELLS, CELLS * CELLS // max(groups, 1)))
        width = self.best - floor
        density = np.divide(cells - 1, width, out=np.zeros(groups), where=width > NO_WIDTH)
        place = (runs.spread_out(self.best) - self._values) * runs.spread_out(density)
        cell = np.clip(place, 0, cells - 1, out=place).astype(np.intp)
        index = (cell + self._strata.group * cells).ravel()
        must, either = (
            np.bincount(index, rows.ravel(), groups * cells).reshape(groups, cells)
            for rows in (self._must, self._either)
        )
        must_so_far, either_so_far = must.cumsum(axis=1), either.cumsum(axis=1)
        needed = above * (self._count - 1.0)

        def is_reached(must: Floats, either: Floats, needed: Floats) -> NDArray[np.bool_]:
            return np.asarray((must + share * (either - must) > needed) & (either > 0.0))

        found = is_reached(must_so_far, either_so_far, needed[:, None]).argmax(axis=1)
        before = np.arange(groups), found
        which = np.flatnonzero((cell == runs.spread_out(found)) & (self._either > 0.0))
        group, values = self._strata.group[which % self._strata.group.size], self._values.ravel()[which]
        order = np.lexsort((-values, group))
        inner = Runs.of(slice(0, which.size), group[order], groups)
        which, values = which[order], values[order]
        must_here = _running(inner, self._must.ravel()[which], (must_so_far - must)[before])
        either_here = _running(inner, self._either.ravel()[which], (either_so_far - either)[before])
        reached = is_reached(must_here, either_here, inner.spread_out(needed))
        level = self._finite(inner.max(np.where(reached, values, -np.inf)))
        # Off by a share of a rank is off by a share of the way to the next value.
        ranks = ROUNDING_OF_RANKS * runs.sum(self._either.sum(axis=0))
        return np.minimum(level + ROUNDING * np.abs(level) + ranks * width, self.best)

    # --- what they share ----------------------------------------------------------------------------------------------

    @cached_property
    def _may(self) -> Floats:
        return self._either - self._must

    @cached_property
    def _count(self) -> Floats:
        """How many rows must be taken."""
        return self._runs.sum(self._must.sum(axis=0))

    @cached_property
    def _fixed(self) -> Floats:
        """The sum of the rows that must be taken."""
        return self._runs.sum(over_bins(self._must, self._values))

    @staticmethod
    def _finite(values: Floats) -> Floats:
        """0 where there are no rows."""
        return np.where(np.isinf(values), 0.0, values)


def _running(runs: Runs, rows: Floats, before: Floats) -> Floats:
    """Cumulative sums over each run, beginning with what is before it."""
    total = np.cumsum(rows)
    return total + runs.spread_out(before) - np.repeat((total - rows)[runs.starts], runs.lengths)
