"""Binning: the values of a feature as group keys, BIN(x) and BIN(x, width).

BIN(x) has bins of about equal numbers of rows over the whole sketch, BIN(x, 5) bins of that width, one of which begins
at 0. A bin holds its lower end and not its upper one, but for the last of BIN(x), which has both. Rows without the
feature are a group of their own, behind all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from synopsis.core.errors import BadQuery
from synopsis.query.binding import Binned
from synopsis.query.pieces import Scoped
from synopsis.query.predicates import Between, Condition, IsNull
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import bin_ranges

#: The number of the group without the feature: behind all others.
ABSENT: Final = 2**62

#: Bins of BIN(x).
_EVEN: Final = 10

#: Bins that one feature may have in an answer.
_MOST_BINS: Final = 10_000


@dataclass(frozen=True)
class Binning:
    """The bins of one feature, by number."""

    scales: Scales
    key: Binned

    @cached_property
    def edges(self) -> Floats:
        """The ends of bins with about equal numbers of rows, each of which is a value that fine bins begin with."""
        feature = self.key.feature
        low, high = self.scales.low[feature], self.scales.high[feature]
        mass = np.append(0.0, np.cumsum(self.scales.masses[feature].astype(np.float64)))
        wanted = np.arange(1, _EVEN) * mass[-1] / _EVEN
        starts = self.scales.ranges(feature)[0]
        inner = starts[np.clip(np.searchsorted(mass, wanted), 0, starts.size - 1)]
        return np.unique(np.concatenate(([low], inner[(inner > low) & (inner < high)], [high])))

    def ends(self, number: Integers) -> tuple[Floats, Floats]:
        """The lower and the upper end of bins; NaN for the group without the feature."""
        absent = number == ABSENT
        known = np.where(absent, 0, number)
        if self.key.width is not None:
            low, high = known * self.key.width, (known + 1) * self.key.width
        else:
            edges = self.edges
            low, high = edges[known], edges[np.minimum(known + 1, edges.size - 1)]
        return np.where(absent, np.nan, low), np.where(absent, np.nan, high)

    def conditions(self, scoped: Scoped) -> Iterator[tuple[int, Condition]]:
        """The bins that rows in scope may have, each with what their feature fulfils."""
        feature, width = self.key.feature, self.key.width
        lows, highs = self._reach(scoped)
        if lows.size:
            if width is None:
                numbers = np.arange(max(self.edges.size - 1, 1))
            else:
                first, last = math.floor(lows.min() / width) - 1, math.floor(highs.max() / width) + 1
                if last - first > _MOST_BINS:
                    raise BadQuery(f"BIN would have more than {_MOST_BINS:,} bins; give it a larger width")
                numbers = np.arange(first, last + 1)
            for number, low, high in zip(numbers, *self.ends(numbers), strict=True):
                closed = width is None and number == numbers[-1]
                if bool(np.any((highs >= low) & ((lows <= high) if closed else (lows < high)))):
                    yield int(number), Between(feature, float(low), float(high), high_closed=closed)
        yield ABSENT, IsNull(feature)

    def _reach(self, scoped: Scoped) -> tuple[Floats, Floats]:
        """The ends of all bins of strata in scope that have rows."""
        strata, position = scoped.kept, scoped.opened.features.index(self.key.feature)
        touched = np.zeros(len(strata), np.bool_)
        touched[scoped.slots.stratum] = True
        low, high = bin_ranges(strata, self.scales, self.key.feature, position)
        used = (strata.counts[position][:, :-1] > 0) & touched[:, None] & ~np.isnan(low)
        return low[used], high[used]
