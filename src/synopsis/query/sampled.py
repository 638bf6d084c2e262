"""Samples: paths of the days in scope, each standing for the rows that its day counted, whatever is asked of them.

All groups of a question that are parts of space and time are one sample. A **slot** is a stratum in a group; slots and
paths of one group stand side by side. Nothing here hangs on a condition on features: groups by bins, terms of a
condition and further demands share it. What is done path by path is in `weighing`, `chance` and `influences`, bin by
bin in `contents`, in machine code.
"""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from synopsis.core.hashing import Itself
from synopsis.query.bins import Bins
from synopsis.query.covers import Covers, Slots
from synopsis.query.predicates import Leaf, Ranges
from synopsis.sketch import stretches
from synopsis.sketch.compiled import Later
from synopsis.sketch.effects import Effects
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes, Scales
from synopsis.sketch.strata import Flags, Strata
from synopsis.sketch.stretches import Stretching

if TYPE_CHECKING:
    from synopsis.query import chance, contents, influences, recalled, stretched, weighing
else:
    weighing, chance, contents, influences, recalled, stretched = (
        Later(f"synopsis.query.{name}")
        for name in ("weighing", "chance", "contents", "influences", "recalled", "stretched")
    )

NONE: Floats = np.empty(0)
NOBODY: Positions = np.empty(0, np.int32)
NOWHERE: Integers = np.empty(0, np.int64)

#: What there is of all paths of strata, where all that matter are listed.
_OF_NOBODY: tuple[Any, ...] = (
    NOWHERE,
    np.empty((0, 0)),
    np.empty((2, 0, 0)),
    np.empty((0, 2), np.int64),
    np.empty((0, 2)),
)

#: Paths with which a bin is thought to have begun, in scope as often as all are: half of one to three do as well.
STEADY = 2.0

#: Effects that were learnt are taken to this power and so many times: chosen for intervals to hold in 96 of 100.
LEARNT, EVEN = 0.6, 1.15

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
    """Paths of the days in scope: where their codes stand, in which slot, and for how many rows."""

    column: Positions
    slot: Positions
    weight: Floats
    part: Floats  #: of their day that is in scope; empty where days are never cut
    place: Positions  #: empty where no stratum has several, -1 where paths of other days have to speak
    offset: Integers  #: groups + 1: where the paths of each begin


class Luck(NamedTuple):
    """All paths of groups that are partly in scope, in runs of equal weight; of brief ones, those in scope."""

    column: Positions  #: of the first
    many: Positions
    slot: Positions
    weight: Floats  #: in scope
    whole: Floats  #: in the whole stratum
    reach: Floats  #: by how much the squared error grows for each unit of difference between neighbouring paths
    offset: Integers
    scale: Floats  #: strata: by how much more a path stands for all rows
    rest: Floats  #: slots: how far others reach, for each unit of their squared weight; -1 where all are listed


class Live(NamedTuple):
    """The paths that may satisfy a clause."""

    which: Positions
    column: Positions
    slot: Positions
    weight: Floats
    held: Floats  #: how probably a row like it does
    mass: Floats  #: rows that it stands for and that do
    once: Floats  #: how far being selected is open; empty where there is no clause
    twice: Floats  #: how far that hangs on two open questions at once
    offset: Integers  #: groups + 1
    total: Floats  #: groups: of all masses
    worth: Floats  #: groups: how many paths of equal weight would tell as much


class Sample:
    """Strata and paths in scope, weighed; what is not asked for is not computed.

    Cost: a pass over the days opened, then proportional to the paths of the strata in scope, of all groups.
    """

    def __init__(
        self,
        strata: Strata,
        scales: Scales,
        features: tuple[int, ...],
        covers: Covers,
        axes: MutableMapping[int, MassAxis] | None = None,
        slots: Slots | None = None,
        pace: float = 1.0,
        effects: Floats | None = None,
    ) -> None:
        """`features` says which feature stands where, `pace` is that of a layout, `effects` as `effects_of` has them.

        `axes` are the mass axes of features, to be filled and used again; without them the last scales' are kept.
        """
        self.strata, self._features, self._scales, self._axes, self._covers = strata, features, scales, axes, covers
        self._pace, self.effects = pace, effects_of(None, len(scales.quantizers)) if effects is None else effects
        self._known: dict[int, Bins] = {}
        self._expectations: dict[int, Floats] = {}
        self._corrections: dict[int, Floats] = {}
        self._gathered: dict[int, tuple[Any, ...]] = {}
        self._tables: Recent[Leaf, Floats] = Recent()
        self._measures: Recent[tuple[int, Ranges], Floats] = Recent()
        self.slots = Slots.of(strata, covers) if slots is None else slots
        self.covered = self.slots.rows / self.slots.whole
        self.total = weighing.added(self.slots.rows, self.slots.offset)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.slots.groups

    def added(self, values: Floats) -> Floats:
        """The sum over the slots of each group."""
        return weighing.added(values, self.slots.offset)

    # --- paths --------------------------------------------------------------------------------------------------------

    @cached_property
    def _given(self) -> tuple[Any, ...]:
        """Days, covers and slots, in the order in which `weighing` takes them."""
        strata, covers, slots = self.strata, self._covers, self.slots
        days = (strata.day_offset, strata.day_rows, strata.day_kept, covers.day, covers.share)
        return *days, slots.stratum, slots.begin, slots.end, slots.offset

    @cached_property
    def paths(self) -> Paths:
        """Paths of the days in scope. Strata without one are stood for by all others.

        Where a group has none, all paths of its strata speak for it, whatever their day.
        """
        slots, covers, place = self.slots, self._covers, self.strata.shared_place
        lean, timed = self._speaking
        cut = bool(((slots.days_cut > 0) & (self.strata.even | ~timed)).any())
        known = (slots.paths, slots.kept, self.covered, self.total, cut)
        known_days = (NOWHERE if place is None else place, self.strata.even, self._pace)
        leaning = (lean, covers.lean_start, timed)
        return Paths(*weighing.paths_of(*(*self._given, *known, *leaning, *known_days)))

    @cached_property
    def _speaking(self) -> tuple[Floats, Flags]:
        """How paths lean, and groups: whether they know which part of their day they are of."""
        return self._covers.speaking(self.strata)

    @cached_property
    def heard(self) -> Flags:
        """Groups: whether any path speaks for them."""
        return np.diff(self.paths.offset) > 0

    @cached_property
    def all_heard(self) -> bool:
        """Whether some path speaks for every group."""
        return bool(self.heard.all())

    @cached_property
    def which(self) -> Positions:
        """Paths: the position of each."""
        return np.arange(self.paths.weight.size, dtype=np.int32)

    @cached_property
    def all_alive(self) -> Live:
        """All of the paths, where nothing is demanded of them."""
        paths = self.paths
        own = (self.which, paths.column, paths.slot, paths.weight, np.ones(paths.weight.size), paths.weight)
        return Live(*own, NONE, NONE, paths.offset, *weighing.worths(paths.weight, paths.offset))

    @property
    def no_luck(self) -> Luck:
        """Of no paths."""
        return Luck(NOBODY, NOBODY, NOBODY, NONE, NONE, NONE, np.zeros(self.groups + 1, np.int64), NONE, NONE)

    @cached_property
    def luck(self) -> Luck:
        """How lucky the paths of groups that are partly in scope were."""
        slots, covers = self.slots, self._covers
        if (self.covered == 1.0).all():
            return self.no_luck
        lean = self._speaking[0]
        known = (slots.whole, slots.kept, slots.paths, self.covered, lean, covers.lean_start, self.strata.even)
        return Luck(*chance.runs_of(*(*self._given, *known, self.effects[0], self.strata.counts.shape[2])))

    @property
    def no_chances(self) -> tuple[Any, Any]:
        """As `chances`, of no paths."""
        return tuple(self.no_luck), _OF_NOBODY

    def chances(self, feature: int) -> tuple[Any, Any]:
        """The luck, and what there is of all paths of strata of which it does not list all."""
        luck, strata = self.luck, self.strata
        if not luck.rest.size:
            return tuple(luck), _OF_NOBODY
        if feature not in self._gathered:
            days = (strata.counts.shape[2], strata.day_offset, strata.day_rows, strata.day_kept, self.slots.stratum)
            self._gathered[feature] = chance.gathered(self.codes(feature), *days, strata.even, luck.scale, luck.rest)
        return tuple(luck), self._gathered[feature]

    @cached_property
    def reach(self) -> Floats:
        """Paths: by how much the squared error grows for each unit of difference between neighbouring paths."""
        paths = self.paths
        own = (paths.weight, paths.part, paths.offset, self.slots.paths, self.total)
        return influences.reaches(*own, self.effects[0])

    @property
    def reach_as_told(self) -> Floats:
        """The same as neighbours tell it: what was learnt of shares and means does not hold for products."""
        paths = self.paths
        return influences.reaches(paths.weight, paths.part, paths.offset, self.slots.paths, self.total, 1.0)

    @cached_property
    def edge(self) -> Floats:
        """Groups: rows more or less that there may be because days are cut.

        Rows come alike at all places: ends are independent, places are not. Those of stations fill their days evenly.
        """
        if not self.slots.days_cut.any():
            return np.zeros(self.groups)
        strata, covers = self.strata, self._covers
        if covers.lean.size and not strata.even:
            of_paths = (covers.lean, covers.lean_start, covers.offset)
            return weighing.leaning_edges(strata.day_rows, strata.day_kept, covers.day, covers.share, *of_paths)
        own = (strata.day, strata.day_rows, covers.day, covers.share, self.slots.days_cut, covers.offset)
        return weighing.edges(*own, self._pace)

    def stretched(self, feature: int, tables: Floats) -> Stretched | None:
        """What stretches tell of a feature, given what its bins measure; None where there are none."""
        stretching = self.strata.stretching
        return None if stretching is None else Stretched(self, feature, tables, stretching)

    def rounded(self, feature: int) -> float:
        """How often stretches of a feature have been rounded."""
        return float(self.effects[1 + self.effects.size // 2 + feature])

    # --- bins ---------------------------------------------------------------------------------------------------------

    def position(self, feature: int) -> int:
        """Where a feature stands."""
        return self._features.index(feature)

    def codes(self, feature: int) -> Codes:
        """All paths: the bin of a feature."""
        return np.asarray(self.strata.codes[self.position(feature)])

    def bins(self, feature: int) -> Bins:
        """The bins of a feature in all slots."""
        if feature not in self._known:
            if self._axes is None:
                axis = _axis(Itself(self._scales), feature)
            elif (found := self._axes.get(feature)) is None:
                axis = self._axes[feature] = MassAxis.of(self._scales, feature)
            else:
                axis = found
            self._known[feature] = Bins.of(self.strata, self.position(feature), axis, self.slots)
        return self._known[feature]

    def shares(self, leaf: Leaf) -> Floats:
        """Slots x (bins and absent): how much of each satisfies the leaf."""
        if (found := self._tables.get(leaf)) is None:
            found = self._tables[leaf] = self.bins(leaf.feature).shares(leaf.ranges, nulls=leaf.nulls)
        return found

    def measured(self, feature: int, ranges: Ranges) -> Floats:
        """Share of each bin in ranges of values, mean and variance of the values there, and leaning: 4 tables."""
        if (found := self._measures.get((feature, ranges))) is None:
            found = self._measures[feature, ranges] = self.bins(feature).measured(ranges)
        return found

    def counts(self, feature: int) -> Integers:
        """Slots x (bins and absent): all rows."""
        return np.asarray(self.strata.counts[self.position(feature)][self.slots.stratum])

    def expected(self, feature: int) -> Floats:
        """Slots x (bins and absent): rows in scope that the exact counts lead to expect."""
        if feature not in self._expectations:
            counts = self.strata.counts[self.position(feature)]
            self._expectations[feature] = contents.counted(counts, self.slots.stratum, self.covered)
        return self._expectations[feature]

    def corrected(self, feature: int) -> Floats:
        """Slots x (bins and absent): rows in scope, the paths' luck taken out as far as the exact counts tell.

        Where paths of the whole stratum hold too few of a bin, so do probably those in scope, by as much as they are of
        the paths there: a bin that is rare in scope has few rows to lack.
        """
        return np.maximum(self.untouched(feature), 0.0)

    def untouched(self, feature: int) -> Floats:
        """The same with bins that come out below nothing, as chance has it."""
        if feature not in self._corrections:
            table, luck = self.expected(feature), self.luck
            if luck.weight.size:
                usual = STEADY * self.slots.whole / np.maximum(self.slots.kept, 1)
                inside, every = chance.weighed(table.shape, self.codes(feature), *self.chances(feature))
                table = contents.lucky(table, self.covered, usual, inside, every, self.slots.offset)
            self._corrections[feature] = table
        return self._corrections[feature]


class Stretched:
    """Stretches of a feature with rows in scope, and what they tell of it."""

    def __init__(self, sample: Sample, feature: int, tables: Floats, stretching: Stretching) -> None:
        strata, covers, slots, row = sample.strata, sample._covers, sample.slots, sample.position(feature)
        lean, timed = sample._speaking
        self._centre, axis = stretching.centre[feature], _running(Itself(sample._scales), stretching)[feature]
        given: tuple[Any, ...] = (
            *(np.ascontiguousarray(strata.stretches[row]), strata.stretch_offsets[row], strata.stretch_shifts[row]),
            *(self._centre, stretching.unit[feature], axis),
            *(strata.starts[row], strata.ends[row], strata.codes[row], tables),
            *(strata.day_offset, strata.day_rows, strata.day_kept, covers.day, covers.share),
            *(slots.stratum, slots.begin, slots.end, slots.offset, lean, covers.lean_start),
        )
        self._found = recalled.gathered(*given)
        recalled.often_rounded(self._found[0], sample.rounded(feature))
        #: Groups that stretches tell of; of some hours of a day they tell little, and paths that know their hours much.
        self.tells = weighing.mostly_whole(strata.day_rows, covers.day, covers.share, covers.offset, timed)
        self._about: tuple[Any, ...] = (strata.codes[row], tables)
        self._days: tuple[Any, ...] = (
            *(strata.day_kept, strata.day_rows, covers.day, covers.share),
            *(slots.begin, slots.end, slots.offset, timed, sample.effects[1 + feature]),
        )

    @cached_property
    def numbers(self) -> tuple[Floats, Floats, Floats]:
        """Groups: how many values there are, their mean and variance."""
        return stretched.numbers(*self._found, self._centre)

    def errors(self, statistic: int, count: Floats, average: Floats, variance: Floats, expected: Floats) -> Floats:
        """Groups: half of the interval at 95% of a statistic."""
        known: tuple[Any, ...] = (count, average, variance, expected)
        return stretched.errors(statistic, *self._found, self._centre, *self._about, *known, *self._days)


@lru_cache(maxsize=16)
def effects_of(learnt: Effects | None, features: int) -> Floats:
    """By how much squared errors are larger than neighbouring paths tell: with conditions, and of each feature's mean;
    and than what is rounded once has, of each feature.

    What was learnt holds in part: of shares and means of all rows, which conditions leave some of.
    """
    found = np.ones(1 + 2 * features)
    if learnt is not None:
        found[0] = EVEN * learnt.shares**LEARNT
        if learnt.means:
            found[1 : 1 + features] = EVEN * np.array(learnt.means) ** LEARNT
        if learnt.rounded:
            found[1 + features :] = learnt.rounded
    return found


@lru_cache(maxsize=16)
def _running(same: Itself[Scales], stretching: Stretching) -> list[Floats]:
    return stretches.running(same.value, stretching)


@lru_cache(maxsize=256)
def _axis(same: Itself[Scales], feature: int) -> MassAxis:
    return MassAxis.of(same.value, feature)
