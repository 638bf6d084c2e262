"""Histograms: how many rows strata have in scope, and how many of a feature's values lie in each of a few bins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from synopsis.core.hashing import Itself
from synopsis.query.covers import Slots
from synopsis.query.programs import Demands
from synopsis.query.runs import Runs
from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import Strata as KeptStrata

if TYPE_CHECKING:
    from synopsis.query import arrangements
else:
    arrangements = Later("synopsis.query.arrangements")

Sides = tuple[Floats, Floats, Floats, Integers]  #: as `arrangements.arranged` has them


@dataclass(frozen=True, eq=False)
class Strata:
    """Strata side by side, by group: how many rows each has, has surely in scope, and may have in scope besides."""

    total: Integers
    inside: Integers
    cut: Integers
    group: Integers  #: ascending
    groups: int

    @classmethod
    def of(cls, slots: Slots) -> Strata:
        """The strata of a summary that have rows in scope."""
        return cls(slots.whole, slots.inside, slots.cut, slots.group, slots.groups)

    @cached_property
    def runs(self) -> Runs:
        """The strata of each group."""
        return Runs.of(slice(0, self.total.size), self.group, self.groups)

    def sum(self, values: Floats) -> Floats:
        """The sum over each group."""
        return np.array([values.sum()]) if self.groups == 1 else self.runs.sum(values)


@dataclass(frozen=True, eq=False)
class Histogram:
    """One feature's values in each stratum: bins x strata, ascending bins that at most touch.

    Bins have finite ends, which do not matter where a bin is surely empty. Where all counts are exact, pass the same
    array as `least` and `most`: nothing is computed twice then.
    """

    least: Integers | Floats
    most: Integers | Floats
    absent_least: Integers | Floats
    absent_most: Integers | Floats
    low: Floats  #: every value of the bin is at least this
    high: Floats  #: and at most this

    @classmethod
    def kept(cls, strata: KeptStrata, position: int, scales: Scales, feature: int, chosen: Integers) -> Histogram:
        """What the chosen strata of a summary count of a feature, which stands at `position` in them."""
        own = (strata.starts[position], strata.ends[position], strata.counts[position], chosen)
        ends = np.array((scales.low[feature], scales.high[feature]), np.float64)
        rows, low, high = arrangements.binned(*own, scales.quantizers[feature].edges, ends)
        counts, absent = rows[:-1], rows[-1]
        return cls(counts, counts, absent, absent, low, high)

    @cached_property
    def at_least(self) -> Floats:
        """`least` to compute with."""
        return self.least.astype(np.float64, copy=False)

    @cached_property
    def at_most(self) -> Floats:
        """`most` to compute with; the same array as `at_least` where all is exact."""
        return self.at_least if self.most is self.least else self.most.astype(np.float64, copy=False)

    @cached_property
    def present(self) -> tuple[Floats, Floats]:
        """The sum of the bins of each stratum, of their least and of their most."""
        least = self.at_least.sum(axis=0)
        return least, least if self.most is self.least else self.at_most.sum(axis=0)

    @property
    def is_exact(self) -> bool:
        """Whether all counts are."""
        return self.most is self.least and self.absent_most is self.absent_least

    def tightened(self, total: Floats) -> tuple[Floats, Floats]:
        """`least` and `most` as the other bins and the total leave them."""
        least, most = self.at_least, self.at_most
        if most is least:
            return least, most
        spare = self.present[1] + self.absent_most - total
        missing = total - self.present[0] - self.absent_least
        return np.maximum(least, most - spare), np.minimum(most, least + missing)


class Histograms(dict[int, Histogram]):
    """Histograms by feature of some strata of a summary, made when they are first asked for."""

    def __init__(self, strata: KeptStrata, scales: Scales, features: tuple[int, ...], chosen: Integers) -> None:
        super().__init__()
        self._strata, self._scales, self._features, self._chosen = strata, scales, features, chosen

    def __missing__(self, feature: int) -> Histogram:
        position = self._features.index(feature)
        found = Histogram.kept(self._strata, position, self._scales, feature, self._chosen)
        self[feature] = found
        return found

    def selected(self, scope: Strata, demands: Demands) -> tuple[Floats, Floats, Sides]:
        """What the strata of one group tell of the rows that a clause selects, and of a feature's values in them."""
        kept, rows = self._strata, (scope.total, scope.inside, scope.cut)
        own = (kept.starts, kept.ends, kept.counts, np.array(self._features), self._chosen, *rows)
        return arrangements.selected(*demands, *own, *fine_bins(Itself(self._scales)))


@lru_cache(maxsize=16)
def fine_bins(same: Itself[Scales]) -> tuple[Floats, Integers, Floats]:
    """Of every feature: the edges between fine bins, how many they are; the lowest and the highest value."""
    scales = same.value
    sizes = np.array([each.edges.size for each in scales.quantizers], np.int64)
    edges = np.zeros((sizes.size, int(sizes.max(initial=0))))
    for feature, quantizer in enumerate(scales.quantizers):
        edges[feature, : sizes[feature]] = quantizer.edges
    return edges, sizes, np.stack((scales.low, scales.high), axis=1).astype(np.float64)
