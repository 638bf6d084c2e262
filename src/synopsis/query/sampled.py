"""Samples: paths of the days in scope, each standing for the rows that its day counted, whatever is asked of them.

Nothing here hangs on a condition on features: groups by bins, terms of a condition and further demands share it. What
is done path by path and bin by bin is in `weighing` and `influences`, in machine code.
"""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from synopsis.query.bins import Bins
from synopsis.query.predicates import Leaf, Ranges
from synopsis.sketch.compiled import Later
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes, Scales
from synopsis.sketch.strata import Strata

if TYPE_CHECKING:
    from synopsis.query import influences, weighing
else:
    weighing, influences = (Later(f"synopsis.query.{name}") for name in ("weighing", "influences"))

NONE: Floats = np.empty(0)
NOBODY: Positions = np.empty(0, np.int32)
NOWHERE: Integers = np.empty(0, np.int64)

#: Tables of strata x bins that are kept for the next who asks: those of a condition, not those of all groups.
_REMEMBERED = 16

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(dict[K, V], Generic[K, V]):
    """What was asked for last, and not much of it.

    >>> recent = Recent[str, int]()
    >>> for number in range(40):
    ...     recent[str(number)] = number
    >>> len(recent), "39" in recent
    (16, True)
    """

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= _REMEMBERED:
            del self[next(iter(self))]
        super().__setitem__(key, value)


class Paths(NamedTuple):
    """Paths of the days in scope: where their codes stand, in which of the chosen strata, and for how many rows."""

    column: Positions
    stratum: Positions
    weight: Floats
    part: Floats  #: of their day that is in scope; empty where days are never cut
    place: Positions  #: empty where no stratum has several


class Luck(NamedTuple):
    """All paths of strata that are partly in scope: weight in scope less the part of all weight that is covered."""

    column: Positions
    stratum: Positions
    weight: Floats
    reach: Floats  #: by how much the squared error grows for each unit of difference between neighbouring paths


class Live(NamedTuple):
    """The paths that may satisfy a clause."""

    which: Positions
    column: Positions
    stratum: Positions
    weight: Floats
    held: Floats  #: how probably a row like it does
    mass: Floats  #: rows that it stands for and that do
    once: Floats  #: how far being selected is open; empty where there is no clause
    twice: Floats  #: how far that hangs on two open questions at once
    total: float  #: of all masses
    worth: float  #: how many paths of equal weight would tell as much (Kish 1965)


class Sample:
    """Strata and paths in scope, weighed; what is not asked for is not computed.

    Cost: a pass over the days opened, then proportional to the paths of the strata in scope.
    """

    def __init__(
        self,
        strata: Strata,
        scales: Scales,
        features: tuple[int, ...],
        covered: Floats,
        axes: MutableMapping[int, MassAxis] | None = None,
        lean: Floats | None = None,
    ) -> None:
        """`features` says which feature stands where; `covered` is the share of each day that is in scope.

        `lean` says how much rather each path is in scope than the others of its day: 1 in the mean of a day.
        `axes` are the mass axes of features, to be filled and used again; without them the last scales' are kept.
        """
        self.strata, self._features, self._scales, self._axes = strata, features, scales, axes
        self.days_covered, self._lean = covered, NONE if lean is None else lean
        self._known: dict[int, Bins] = {}
        self._expectations: dict[int, Floats] = {}
        self._corrections: dict[int, Floats] = {}
        self._tables: Recent[Leaf, Floats] = Recent()
        self._measures: Recent[tuple[int, Ranges], Floats] = Recent()
        self._days = (strata.day_offset, strata.day_rows, strata.day_kept, covered)
        #: Strata in scope: which they are, their rows in scope, all their rows, all their paths. How many paths the
        #: days in scope have, and whether any of these days is cut.
        self.chosen, self.rows, self.whole, self._kept, self._in_scope, self.cut = weighing.in_scope(*self._days)
        self.total, self.covered = float(self.rows.sum()), self.rows / self.whole

    # --- paths --------------------------------------------------------------------------------------------------------

    @cached_property
    def paths(self) -> Paths:
        """Paths of the days in scope. Strata without one are stood for by all others.

        Where the whole scope has none, all paths of its strata speak for it, whatever their day.
        """
        place = self.strata.shared_place
        place = NOWHERE if place is None else place
        own = (*self._days, self.chosen)
        found = Paths(*weighing.paths_of(*(*own, self._in_scope, self.cut, NONE, self._lean, place)))
        if not (reached := float(found.weight.sum())):
            size = int(self._kept.sum())
            found = Paths(*weighing.paths_of(*(*own, size, False, self.covered, NONE, NOWHERE)))
            reached = float(found.weight.sum())
        if reached > 0:
            np.multiply(found.weight, self.total / reached, out=found.weight)
        return found

    @cached_property
    def all_alive(self) -> Live:
        """All of the paths, where nothing is demanded of them."""
        paths = self.paths
        total, square = float(paths.weight.sum()), float(np.square(paths.weight).sum())
        which, held = np.arange(paths.weight.size, dtype=np.int32), np.ones(paths.weight.size)
        own = (which, paths.column, paths.stratum, paths.weight, held, paths.weight)
        return Live(*own, NONE, NONE, total, total * total / square if total > 0.0 else 0.0)

    @cached_property
    def luck(self) -> Luck:
        """How lucky the paths of strata that are partly in scope were."""
        if (self.covered == 1.0).all():
            return Luck(NOBODY, NOBODY, NONE, NONE)
        own = (*self._days, self.chosen, self.rows, self.whole, self._kept)
        return Luck(*weighing.luck_of(*(*own, self._lean)))

    @cached_property
    def reach(self) -> Floats:
        """Paths: by how much the squared error grows for each unit of difference between neighbouring paths."""
        weight = self.paths.weight
        # Where paths of other days have to speak for those in scope, they all may.
        return influences.reaches(weight, self.paths.part) if self._in_scope else weight * self.total

    @cached_property
    def edge(self) -> float:
        """Rows more or less that there may be because days are cut: one row a place at either end.

        Rows come at regular times, alike at all places: ends are independent, places are not.
        """
        if not self.cut:
            return 0.0
        part, all_rows = self.days_covered, self.strata.day_rows
        at = np.flatnonzero((part > 0.0) & (part < 1.0) & (all_rows > 0))
        rows = all_rows[at] * np.maximum(part[at], 1.0 - part[at])
        _, end = np.unique(self.strata.day[at], return_inverse=True)
        return float(np.sqrt((np.bincount(end, np.minimum(rows, 1.0)) ** 2).sum()))

    # --- bins ---------------------------------------------------------------------------------------------------------

    def position(self, feature: int) -> int:
        """Where a feature stands."""
        return self._features.index(feature)

    def codes(self, feature: int) -> Codes:
        """All paths: the bin of a feature."""
        return np.asarray(self.strata.codes[self.position(feature)])

    def bins(self, feature: int) -> Bins:
        """The bins of a feature in the strata that are in scope."""
        if feature not in self._known:
            if self._axes is None:
                axis = _axis(_Same(self._scales), feature)
            elif (found := self._axes.get(feature)) is None:
                axis = self._axes[feature] = MassAxis.of(self._scales, feature)
            else:
                axis = found
            self._known[feature] = Bins.of(self.strata, self.position(feature), axis, self.chosen)
        return self._known[feature]

    def shares(self, leaf: Leaf) -> Floats:
        """Strata x (bins and absent): how much of each satisfies the leaf."""
        if (found := self._tables.get(leaf)) is None:
            found = self._tables[leaf] = self.bins(leaf.feature).shares(leaf.ranges, nulls=leaf.nulls)
        return found

    def measured(self, feature: int, ranges: Ranges) -> Floats:
        """Share of each bin in ranges of values, and the mean and the variance of the values there: 3 tables."""
        if (found := self._measures.get((feature, ranges))) is None:
            found = self._measures[feature, ranges] = self.bins(feature).measured(ranges)
        return found

    def counts(self, feature: int) -> Integers:
        """Strata x (bins and absent): all rows."""
        return np.asarray(self.strata.counts[self.position(feature)][self.chosen])

    def expected(self, feature: int) -> Floats:
        """Strata x (bins and absent): rows in scope that the exact counts lead to expect."""
        if feature not in self._expectations:
            counts = self.strata.counts[self.position(feature)]
            self._expectations[feature] = weighing.counted(counts, self.chosen, self.covered)
        return self._expectations[feature]

    def corrected(self, feature: int) -> Floats:
        """Strata x (bins and absent): rows in scope, the paths' luck taken out as far as the exact counts tell.

        Where paths of the whole stratum hold too few of a bin, so do probably those in scope, which are a part of them.
        """
        return np.maximum(self.untouched(feature), 0.0)

    def untouched(self, feature: int) -> Floats:
        """The same with bins that come out below nothing, as chance has it."""
        if feature not in self._corrections:
            table, luck = self.expected(feature), self.luck
            if luck.weight.size:
                table = weighing.lucky(table, self.codes(feature), luck.column, luck.stratum, luck.weight)
            self._corrections[feature] = table
        return self._corrections[feature]


class _Same:
    """Scales, equal only to themselves."""

    def __init__(self, scales: Scales) -> None:
        self.scales = scales

    def __hash__(self) -> int:
        return id(self.scales)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.scales is self.scales


@lru_cache(maxsize=256)
def _axis(same: _Same, feature: int) -> MassAxis:
    return MassAxis.of(same.scales, feature)
