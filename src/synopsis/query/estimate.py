"""Estimates: what kept paths say about a scope and a condition, each standing for the rows that its day counted.

A path knows its bins, not its values. Within a bin rows are spread as all rows are, but for a slope: a condition that
cuts a bin takes a share of it, and a path counts by the product of its shares. Where exact counts tell how lucky the
paths of a stratum were in a feature's bins, that luck is taken out again.

How far an estimate may be off is told by its influences: what one row more would change it by. Three things are not
known. Rows without a path: paths are chosen evenly, so neighbours tell how much rows differ (Wolter 2007, successive
differences). Where in its bin a row lies. And which rows of a day belong to a scope that cuts the day.

What is done path by path and bin by bin is in `weighing` and `influences`, in machine code.
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from synopsis.query.bins import Bins
from synopsis.query.inference import NORMAL, Interval, dot, student, within
from synopsis.query.predicates import AllOf, Clause, Leaf, Ranges, all_of, parted, reachable
from synopsis.sketch.compiled import Later
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes, Scales
from synopsis.sketch.strata import Strata

if TYPE_CHECKING:
    from synopsis.query import influences, mixtures, weighing
else:
    weighing, influences, mixtures = (
        Later(f"synopsis.query.{name}") for name in ("weighing", "influences", "mixtures")
    )

#: What is missing from a covariance, in the most that rows may vary together within their bins: a value follows the
#: other feature's bin, too.
_UNSEEN = 2.0

#: Paths with which a bin is thought to have begun, in scope as often as all are: half of one to three do as well.
_STEADY = 2.0

_NONE: Floats = np.empty(0)
_NOBODY: Positions = np.empty(0, np.int32)
_NOWHERE: Integers = np.empty(0, np.int64)
_NO_TABLE: Floats = np.empty((0, 0))


class _Paths(NamedTuple):
    """Paths of the days in scope: where their codes stand, in which of the chosen strata, and for how many rows."""

    column: Positions
    stratum: Positions
    weight: Floats
    part: Floats  #: of their day that is in scope; empty where days are never cut
    place: Positions  #: empty where no stratum has several


class _Live(NamedTuple):
    """The paths that may satisfy the clause."""

    which: Positions
    column: Positions
    stratum: Positions
    weight: Floats
    held: Floats  #: how probably a row like it does
    mass: Floats  #: rows that it stands for and that do
    once: Floats  #: how far being selected is open; empty where there is no clause
    twice: Floats  #: how far that hangs on two open questions at once
    total: float  #: of all masses
    worth: float  #: how many paths of equal weight would tell as much


class _Luck(NamedTuple):
    """All paths of strata that are partly in scope."""

    column: Positions
    stratum: Positions
    weight: Floats  #: in scope
    whole: Floats  #: in the whole stratum
    reach: Floats  #: by how much the squared error grows for each unit of difference between neighbouring paths


#: Reach of paths; positions, strata, weights, probabilities and worth of live ones, how far they are open, once and
#: twice, and in lumps; parts of days and places of paths. In this order `influences` takes them.
_About = tuple[Floats, Positions, Positions, Floats, Floats, float, Floats, Floats, Floats, Floats, Positions]


class Estimates:
    """Paths in scope, weighed; statistics when asked for.

    Cost: a pass over the days opened, then proportional to the paths of the strata in scope. Where exact counts suffice
    (no condition or one on a single feature, whole strata), no path is touched.
    """

    def __init__(
        self,
        strata: Strata,
        scales: Scales,
        features: tuple[int, ...],
        covered: Floats,
        clause: Clause,
        axes: MutableMapping[int, MassAxis] | None = None,
        lean: Floats | None = None,
    ) -> None:
        """`features` says which feature stands where; `covered` is the share of each day that is in scope.

        `lean` says how much rather each path is in scope than the others of its day: 1 in the mean of a day.
        `axes` are the mass axes of features, to be filled and used again; without them the last scales' are kept.
        """
        self._strata, self._features, self._clause = strata, features, clause
        self._scales, self._axes, self._days_covered, self._lean = scales, axes, covered, lean
        # Numbers know their estimates: held weakly, all of it goes with the last that asks.
        self._numbers: dict[int, ref[Numbers]] = {}
        self._pairs: dict[tuple[int, int], _Pair] = {}
        self._known: dict[int, Bins] = {}
        self._tables: dict[Leaf, Floats] = {}
        self._expectations: dict[int, Floats] = {}
        self._corrections: dict[int, Floats] = {}
        self._anything = isinstance(clause, AllOf) and not clause.parts
        self._days = (strata.day_offset, strata.day_rows, strata.day_kept, covered)
        self._chosen, self._rows, self._whole, self._kept, self._paths_in_scope, self._cut = weighing.in_scope(
            *self._days
        )
        self._total, self._covered = float(self._rows.sum()), self._rows / self._whole

    # --- paths --------------------------------------------------------------------------------------------------------

    @cached_property
    def _paths(self) -> _Paths:
        """Paths of the days in scope. Strata without one are stood for by all others.

        Where the whole scope has none, all paths of its strata speak for it, whatever their day.
        """
        place, lean = self._strata.shared_place, _NONE if self._lean is None else self._lean
        place = _NOWHERE if place is None else place
        own = (*self._days, self._chosen)
        found = _Paths(*weighing.paths_of(*(*own, self._paths_in_scope, self._cut, _NONE, lean, place)))
        if not (reached := float(found.weight.sum())):
            size = int(self._kept.sum())
            found = _Paths(*weighing.paths_of(*(*own, size, False, self._covered, _NONE, _NOWHERE)))
            reached = float(found.weight.sum())
        if reached > 0:
            np.multiply(found.weight, self._total / reached, out=found.weight)
        return found

    @property
    def _stray(self) -> bool:
        """Whether paths of other days have to speak for those in scope."""
        return not self._paths_in_scope

    def standing_for(self) -> tuple[Integers, Floats]:
        """The paths that may satisfy the clause, by position, and how many rows each stands for."""
        return self._live.column.astype(np.int64), self._live.mass

    @cached_property
    def _silent(self) -> bool:
        """Whether no path tells of rows that satisfy the clause, so that features are taken to be independent."""
        return not self._paths.weight.size or not self._live.total > 0.0

    def _alone(self, clause: Clause) -> Floats:
        """Strata: the share of rows that satisfy the clause, by the exact counts of independent features."""
        if isinstance(clause, Leaf):
            return np.asarray((self._counts(clause.feature) * self._shares(clause)).sum(axis=1) / self._whole)
        some, share = isinstance(clause, AllOf), np.ones(self._rows.size)
        for part in clause.parts:
            share *= self._alone(part) if some else 1.0 - self._alone(part)
        return share if some else 1.0 - share

    def _at_most(self, clause: Clause) -> tuple[Floats, Floats]:
        """Strata: rows that satisfy the clause, at least and at most, however features go together (Frechet 1935)."""
        if isinstance(clause, Leaf):
            all_rows = (self._counts(clause.feature) * self._shares(clause)).sum(axis=1)
            return np.maximum(all_rows - (self._whole - self._rows), 0.0), np.minimum(all_rows, self._rows)
        some = isinstance(clause, AllOf)
        low = high = np.asarray(self._rows * float(some), np.float64)
        for part in clause.parts:
            least, most = self._at_most(part)
            if some:
                low, high = np.maximum(low + least - self._rows, 0.0), np.minimum(high, most)
            else:
                low, high = np.maximum(low, least), np.minimum(high + most, self._rows)
        return low, high

    @cached_property
    def _luck(self) -> _Luck:
        if (self._covered == 1.0).all():
            return _Luck(_NOBODY, _NOBODY, _NONE, _NONE, _NONE)
        lean = _NONE if self._lean is None else self._lean
        return _Luck(*weighing.luck_of(*self._days, self._chosen, self._rows, self._whole, self._kept, lean))

    @cached_property
    def _program(self) -> tuple[Integers, Floats, Integers]:
        """The clause in steps, a table for every leaf, and where the codes of its feature stand."""
        steps, leaves = _steps(self._clause)
        tables = np.empty((len(leaves), self._rows.size, self._strata.bins + 1))
        for number, leaf in enumerate(leaves):
            tables[number] = self._shares(leaf)
        return steps, tables, np.array([self._position(leaf.feature) for leaf in leaves], np.int64)

    @cached_property
    def _held(self) -> Floats:
        """Paths: the probability that a row like it satisfies the clause."""
        paths = self._paths
        if self._anything:
            return np.ones(paths.weight.size)
        return weighing.probabilities(*self._program, self._strata.codes, paths.column, paths.stratum)

    @cached_property
    def _live(self) -> _Live:
        paths = self._paths
        own = (paths.column, paths.stratum, paths.weight, self._held)
        whole, real, total, worth = weighing.alive(*(*self._program, self._strata.codes, *own))
        joint = () if len(real) == 5 else (_NONE, _NONE)
        return _Live._make((*whole, *real, *joint, total, worth))

    @cached_property
    def _lumps(self) -> Floats:
        """Ends of the condition's ranges x live paths: rows that are on either side of an end, nobody knows.

        All of a fine bin may have one value, at all places the same.
        """
        live, found = self._live, []
        for leaf in _leaves(self._clause):
            for cut in self.bins(leaf.feature).cuts(leaf.ranges):
                own = (self._codes(leaf.feature), live.column, live.stratum, live.weight, live.mass)
                found.append(weighing.lumped(cut, self._shares(leaf), *own))
        return np.stack(found) if found else _NO_TABLE

    def _shares(self, leaf: Leaf) -> Floats:
        """Strata x (bins and absent): how much of each satisfies the leaf."""
        if leaf not in self._tables:
            self._tables[leaf] = self.bins(leaf.feature).shares(leaf.ranges, nulls=leaf.nulls)
        return self._tables[leaf]

    def _position(self, feature: int) -> int:
        return self._features.index(feature)

    def _codes(self, feature: int) -> Codes:
        """All paths: the bin of a feature."""
        return np.asarray(self._strata.codes[self._position(feature)])

    def bins(self, feature: int) -> Bins:
        """The bins of a feature in the strata that are in scope."""
        if feature not in self._known:
            if self._axes is None:
                axis = _axis(_Same(self._scales), feature)
            elif (found := self._axes.get(feature)) is None:
                axis = self._axes[feature] = MassAxis.of(self._scales, feature)
            else:
                axis = found
            self._known[feature] = Bins.of(self._strata, self._position(feature), axis, self._chosen)
        return self._known[feature]

    def _counts(self, feature: int) -> Integers:
        return np.asarray(self._strata.counts[self._position(feature)][self._chosen])

    def _expected(self, feature: int) -> Floats:
        """Strata x (bins and absent): rows in scope that the exact counts lead to expect."""
        if feature not in self._expectations:
            counts = self._strata.counts[self._position(feature)]
            self._expectations[feature] = weighing.counted(counts, self._chosen, self._covered)
        return self._expectations[feature]

    def _corrected(self, feature: int) -> Floats:
        """Strata x (bins and absent): rows in scope, the paths' luck taken out as far as the exact counts tell.

        Where paths of the whole stratum hold too few of a bin, so do probably those in scope, by as much as they are of
        the paths there: a bin that is rare in scope has few rows to lack.
        """
        return np.maximum(self._untouched(feature), 0.0)

    def _untouched(self, feature: int) -> Floats:
        """The same with bins that come out below nothing, as chance has it."""
        if feature not in self._corrections:
            table, luck = self._expected(feature), self._luck
            if luck.weight.size:
                usual, codes = _STEADY * self._whole / np.maximum(self._kept, 1), self._codes(feature)
                table = weighing.lucky(table, self._covered, usual, codes, *luck[:4])
            self._corrections[feature] = table
        return self._corrections[feature]

    # --- statistics ---------------------------------------------------------------------------------------------------

    def count(self) -> float:
        """Rows in scope that satisfy the clause."""
        return self._count

    def count_by_paths(self) -> float:
        """The same by paths alone, and one more whose features are independent, so that parts and wholes err alike."""
        if self._anything:
            return self._total
        paths, alone = self._paths.weight.size, float((self._rows * self._alone(self._clause)).sum())
        return (paths * self._live.total + alone) / (paths + 1) if paths else alone

    @cached_property
    def _count(self) -> float:
        if self._anything:
            return self._total
        if isinstance(self._clause, Leaf):
            return float((self._corrected(self._clause.feature) * self._shares(self._clause)).sum())
        return self._unseen if self._silent else self._live.total

    @property
    def _unseen(self) -> float:
        """Rows that satisfy the clause though no path does: as many as independent features let expect (m), but with
        w rows to a path hardly more than w: 1 / (1/m + 1/w), the mean of m and no path seen by Bayes (Gamma, shape 1).
        """
        alone, paths = float((self._rows * self._alone(self._clause)).sum()), self._paths.weight.size
        usual = self._total / paths if paths else math.inf
        return alone / (1.0 + alone / usual) if usual > 0.0 else 0.0

    def of(self, feature: int) -> Numbers:
        """The numbers of one feature in scope."""
        known = self._numbers[feature]() if feature in self._numbers else None
        if known is not None:
            return known
        bins, own = self.bins(feature), reachable(self._clause, feature)
        counted, paths = _NO_TABLE, (_NOBODY, _NOBODY, _NONE)
        if self._exact(feature):
            counted = self._corrected(feature)
        elif self._silent:
            counted = self._expected(feature) * self._alone(parted(self._clause, feature)[1])[:, None]
        else:
            paths = self._live.column, self._live.stratum, self._live.mass
        given = (bins.on_axis(own.ranges), counted, self._codes(feature), *paths)
        found = Numbers(*weighing.numbered(*(*bins.parts, *given)), bins, own.ranges, self, feature)
        self._numbers[feature] = ref(found)
        return found

    def _exact(self, feature: int) -> bool:
        """Whether the clause demands nothing of other features, so that the exact counts of bins help."""
        return self._anything or (isinstance(self._clause, Leaf) and self._clause.feature == feature)

    def correlation(self, one: int, two: int) -> float:
        """CORRELATION of two features where both are present; bins are independent within a path."""
        return self._pair(one, two).correlation

    def covariance(self, one: int, two: int) -> float:
        """COVARIANCE of two features where both are present."""
        return self._pair(one, two).covariance

    def _pair(self, one: int, two: int) -> _Pair:
        if (one, two) not in self._pairs:
            self._pairs[one, two] = self._paired(one, two)
        return self._pairs[one, two]

    def _paired(self, one: int, two: int) -> _Pair:
        first, second = self.of(one), self.of(two)
        if self._silent:
            return _independent(first, second)
        codes, tables = (self._codes(one), self._codes(two)), (first.tables, second.tables)
        both = (*codes, *tables, first.average, second.average, self._live.column)
        found = influences.paired(*(*both, self._live.stratum, self._live.mass))
        total, covariance, square, other, inner, outer, above_x, above_y = found.tolist()
        if not total > 0:
            return _Pair(0.0, math.nan, math.nan, math.nan)
        means = (first.average + above_x, second.average + above_y)
        return _Pair(total, covariance, square, other, inner, outer, *means, (found, *both))

    # --- intervals ----------------------------------------------------------------------------------------------------

    def count_p95(self) -> Interval:
        """Between which numbers the count lies, in 95 of 100 questions. Cost: like that of counting."""
        return self._count_p95

    @cached_property
    def _count_p95(self) -> Interval:
        count, total = self.count(), self._total
        if self._anything:
            return within(count, max(count - self._edge, 0.0), count + self._edge)
        if not self._paths.weight.size:
            low, high = (float(each.sum()) for each in self._at_most(self._clause))
            return within(count, max(low - self._edge, 0.0), high + self._edge)
        paths, held = self._paths, self._held
        met, reach, skew = held, self._reach, 0.0
        if isinstance(self._clause, Leaf):
            feature, shares, luck = self._clause.feature, self._shares(self._clause), self._luck
            met, reach = weighing.gathered(shares, self._codes(feature), luck.column, luck.stratum), luck.reach
            skew = float((np.minimum(self._untouched(feature), 0.0) * shares).sum())
        rate, live = count / max(total, 1.0), self._live
        given = (met, reach, held, paths.weight, rate, paths.part, paths.place, live.weight, live.twice, self._lumps)
        chosen, rest, usual = influences.of_count(*given)
        usual = usual / total if total > 0 else 0.0  # what a row that is rarely met stands for
        doubt = influences.DOUBT
        each = (chosen + doubt * usual**2) / (count + doubt * usual) if usual > 0 else 0.0
        rest += (self._edge * rate / NORMAL) ** 2
        t = NORMAL
        # Few rows vary as much as their number is: the interval is Wilson's (1927), wider upwards.
        middle = count + t * t * each / 2
        half = math.sqrt(t * t * each * count + (t * t * each / 2) ** 2 + t * t * max(rest, 0.0))
        low = 0.0 if self._silent and not isinstance(self._clause, Leaf) else middle - half + skew
        return within(count, max(low, 0.0), min(middle + half, total + self._edge))

    def also(self, leaf: Leaf) -> Estimates:
        """The same scope with one demand more."""
        clause = all_of((self._clause, leaf))
        known = (self._strata, self._scales, self._features, self._days_covered)
        return Estimates(*known, clause, self._axes, self._lean)

    @property
    def probability(self) -> Floats:
        """Paths of the days in scope: the probability that a row like it satisfies the clause."""
        return self._held

    @cached_property
    def _edge(self) -> float:
        """Rows more or less that there may be because days are cut: one row a place at either end.

        Rows come at regular times, alike at all places: ends are independent, places are not.
        """
        if not self._cut:
            return 0.0
        part, all_rows = self._days_covered, self._strata.day_rows
        at = np.flatnonzero((part > 0.0) & (part < 1.0) & (all_rows > 0))
        rows = all_rows[at] * np.maximum(part[at], 1.0 - part[at])
        _, end = np.unique(self._strata.day[at], return_inverse=True)
        return float(np.sqrt((np.bincount(end, np.minimum(rows, 1.0)) ** 2).sum()))

    @cached_property
    def _reach(self) -> Floats:
        """Paths: by how much the squared error grows for each unit of difference between neighbouring paths."""
        weight = self._paths.weight
        return weight * self._total if self._stray else influences.reaches(weight, self._paths.part)

    @cached_property
    def _about(self) -> _About:
        """What the error of any statistic depends on."""
        live, paths = self._live, self._paths
        known = (self._reach, live.which, live.stratum, live.weight, live.held, live.worth)
        return *known, live.once, live.twice, self._lumps, paths.part, paths.place

    def _half(self, square: float, chosen: float, freedom: float) -> float:
        worth = self._live.worth
        return student(min(worth, freedom + 1.0) if chosen > 0 else worth) * math.sqrt(square)

    def correlation_p95(self, one: int, two: int) -> Interval:
        """Between which numbers the correlation lies, by Fisher's transformation."""
        pair = self._pair(one, two)
        r = pair.correlation
        if math.isnan(r) or not pair.told:
            return (-1.0, 1.0) if self._rows.size else (math.nan, math.nan)
        half = self._half(*influences.of_pair(*(r, *pair.told, *self._about))) / max(1.0 - r * r, 1e-3)
        middle, unseen = math.atanh(min(max(r, -1 + 1e-9), 1 - 1e-9)), pair.unseen / math.sqrt(pair.square * pair.other)
        unseen *= _UNSEEN
        low, high = math.tanh(middle - half) + min(r, 0.0) * unseen, math.tanh(middle + half) + max(r, 0.0) * unseen
        return within(r, max(low, -1.0), min(high, 1.0))

    def covariance_p95(self, one: int, two: int) -> Interval:
        """Between which numbers the covariance lies."""
        pair = self._pair(one, two)
        r = pair.correlation
        if not pair.total > 0:
            return math.nan, math.nan
        if not pair.told:
            most = math.sqrt(pair.square * pair.other)
            return within(pair.covariance, -most, most)
        half = self._half(*influences.of_pair(*(math.nan, *pair.told, *self._about)))
        low, high = pair.covariance - half, pair.covariance + half
        if not math.isnan(r):
            low, high = low + _UNSEEN * min(r, 0.0) * pair.unseen, high + _UNSEEN * max(r, 0.0) * pair.unseen
        return within(pair.covariance, low, high)


def _leaves(clause: Clause) -> list[Leaf]:
    """The leaves of a clause."""
    return [clause] if isinstance(clause, Leaf) else [leaf for part in clause.parts for leaf in _leaves(part)]


@lru_cache(maxsize=256)
def _steps(clause: Clause) -> tuple[Integers, tuple[Leaf, ...]]:
    """A clause as `weighing` takes it, and its leaves."""
    anything = isinstance(clause, AllOf) and not clause.parts
    return np.array([] if anything else _postfix(clause, 0), np.int64), tuple(_leaves(clause))


def _postfix(clause: Clause, before: int) -> list[int]:
    """The steps of a clause, so many leaves having come before."""
    if isinstance(clause, Leaf):
        return [before]
    steps: list[int] = []
    for part in clause.parts:
        steps += _postfix(part, before)
        before += len(_leaves(part))
    return [*steps, (weighing.ALL if isinstance(clause, AllOf) else weighing.ANY) - 2 * len(clause.parts)]


class _Pair(NamedTuple):
    """Two features where both are present."""

    total: float  #: rows
    covariance: float
    square: float  #: variances
    other: float
    within: float = 0.0  #: the part of the variances that lies within bins
    beyond: float = 0.0
    mean_x: float = math.nan
    mean_y: float = math.nan
    told: tuple[Any, ...] = ()  #: what `influences.paired` found, and of what; empty where no path tells

    @property
    def unseen(self) -> float:
        """The most that they may vary together within their bins, which paths do not tell."""
        return math.sqrt(self.within * self.beyond)

    @property
    def correlation(self) -> float:
        """NaN where a feature does not vary."""
        spread = self.square * self.other
        return min(max(self.covariance / math.sqrt(spread), -1.0), 1.0) if spread > 0 else math.nan


def _independent(one: Numbers, two: Numbers) -> _Pair:
    """Two features that vary together from stratum to stratum only, for all that is known."""
    weight = np.minimum(one.mass.sum(axis=1), two.mass.sum(axis=1))
    total = float(weight.sum())
    if not total > 0:
        return _Pair(0.0, math.nan, math.nan, math.nan)
    x, y = (
        (each.mass * (each.mean - each.average)).sum(axis=1) / np.maximum(each.mass.sum(axis=1), 1e-300)
        for each in (one, two)
    )
    mx, my = dot(weight, x) / total, dot(weight, y) / total
    covariance = dot(weight * (x - mx), y - my) / total
    means = (one.average + mx, two.average + my)
    return _Pair(total, covariance, one.variance, two.variance, 0.0, 0.0, *means)


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


@dataclass(frozen=True)
class Numbers:
    """The numbers of one feature: rows in every bin, and what their values are: strata x bins."""

    tables: Floats  #: share, mean, noise and mass
    count: float  #: rows that have the feature
    average: float  #: MEAN; NaN where there is nothing
    variance: float  #: VARIANCE, of all rows; NaN where there is nothing
    bins: Bins
    ranges: Ranges  #: what the condition leaves of the feature
    estimates: Estimates
    feature: int

    @property
    def share(self) -> Floats:
        """How much of each bin the condition leaves."""
        return np.asarray(self.tables[0])

    @property
    def mean(self) -> Floats:
        """Of the values in each bin."""
        return np.asarray(self.tables[1])

    @property
    def noise(self) -> Floats:
        """The variance of the values in each bin."""
        return np.asarray(self.tables[2])

    @property
    def mass(self) -> Floats:
        """Rows in each bin."""
        return np.asarray(self.tables[3])

    @cached_property
    def sum(self) -> float:
        """SUM; 0 where there is nothing. The count of rows is better known than the paths' masses tell."""
        if not self.count > 0:
            return 0.0
        whole = self.estimates
        if whole._exact(self.feature) or not isinstance(whole._clause, Leaf) or self._unheard:
            return self.average * self.count
        return self.average * self.count * whole.count() / whole._live.total

    @cached_property
    def deviation(self) -> float:
        """STD."""
        return math.sqrt(self.variance)

    def quantile(self, share: float) -> float:
        """QUANTILE of the mixture of all bins, found on the mass axis. Cost: a sort of the bins in use."""
        if not self.count > 0:
            return math.nan
        return self.bins.axis.value(mixtures.interpolated(*self._mixture, share))

    @cached_property
    def _mixture(self) -> mixtures.Mixture:
        return self.bins.mixture(self.mass, self.ranges)

    @property
    def flat(self) -> tuple[Floats, Floats, Floats]:
        """The values as flat pieces of the mass axis: where each begins and ends, and how many rows lie in it."""
        return self.bins.flat(self.mass, self.ranges)

    # --- intervals ----------------------------------------------------------------------------------------------------

    @cached_property
    def _extremes(self) -> Interval:
        """The lowest and the highest value that there may be, by the exact counts."""
        whole = self.estimates
        counts = whole._strata.counts[whole._position(self.feature)]
        ends = self.bins.ends(counts, whole._covered, self.share)
        if ends is None:
            return -math.inf, math.inf
        low, high = (self.ranges[0][0], self.ranges[-1][1]) if self.ranges else (-math.inf, math.inf)
        return max(ends[0], low), min(ends[1], high)

    @property
    def _unheard(self) -> bool:
        """Whether no path says anything: then all that is possible is in an interval."""
        whole = self.estimates
        return not whole._paths.weight.size or (whole._silent and not whole._exact(self.feature))

    @cached_property
    def _given(self) -> tuple[Any, ...]:
        """What the error of any statistic depends on, in the order in which `influences` takes it.

        Where exact counts help, the paths' luck was taken out.
        """
        whole, feature = self.estimates, self.feature
        luck, untouched, uncovered = (_NOBODY, _NOBODY, _NONE), _NO_TABLE, _NONE
        if whole._exact(feature):
            untouched, uncovered = whole._untouched(feature), 1.0 - whole._covered
            luck = whole._luck.column, whole._luck.stratum, whole._luck.reach
        numbers = (self.tables, self.count, self.average, self.variance, whole._expected(feature))
        return *numbers, whole._codes(feature), whole._live.column, *luck, untouched, uncovered, *whole._about

    def _sides(self, estimate: float, statistic: int, rank: float = 0.0, left: Floats = _NO_TABLE) -> Interval:
        """The interval of a statistic: either side by its error, one by what bins below nothing were cut off for."""
        square, chosen, freedom, skew = influences.of_numbers(statistic, rank, left, *self._given)
        half = self.estimates._half(square, chosen, freedom)
        return within(estimate, estimate - half + min(skew, 0.0), estimate + half + max(skew, 0.0))

    @cached_property
    def count_p95(self) -> Interval:
        """Between which numbers the count of values lies. Cost: that of another condition."""
        return within(self.count, *self.estimates.also(Leaf(self.feature)).count_p95())

    @cached_property
    def average_p95(self) -> Interval:
        """Between which numbers the mean lies, in 95 of 100 questions."""
        if not self.count > 0:
            return math.nan, math.nan
        lowest, highest = self._extremes
        if self._unheard:
            return within(self.average, lowest, highest)
        low, high = self._sides(self.average, influences.AVERAGE)
        return within(self.average, max(low, lowest), min(high, highest))

    @cached_property
    def sum_p95(self) -> Interval:
        """Between which numbers the sum lies."""
        if not self.count > 0:
            return 0.0, 0.0
        whole = self.estimates
        if self._unheard:
            ends = [count * value for count in (0.0, self.count, whole.count_p95()[1]) for value in self._extremes]
            return within(self.sum, min(ends), max(ends))
        if whole._anything:
            low, high = self._sides(self.sum, influences.TOTAL)
            edge = whole._edge * abs(self.average)
            return low - edge, high + edge
        # A sum is a count times a mean, and their errors have little to do with each other.
        low, high = (abs(each - whole.count()) / whole.count() for each in whole.count_p95())
        mean = max(abs(each - self.average) for each in self.average_p95) * self.count
        down, up = (math.hypot(mean, side * abs(self.sum)) for side in ((low, high) if self.sum >= 0 else (high, low)))
        return within(self.sum, self.sum - down, self.sum + up)

    @cached_property
    def variance_p95(self) -> Interval:
        """Between which numbers the variance lies."""
        if not self.count > 0:
            return math.nan, math.nan
        if self._unheard:
            return within(self.variance, 0.0, (self._extremes[1] - self._extremes[0]) ** 2 / 4)
        low, high = self._sides(self.variance, influences.VARIANCE)
        # Variances are off by a factor: what is a part below is as much above.
        return self.variance**2 / (2 * self.variance - low) if self.variance > 0 else 0.0, high

    @cached_property
    def deviation_p95(self) -> Interval:
        """Between which numbers the deviation lies."""
        low, high = self.variance_p95
        return within(self.deviation, math.sqrt(low), math.sqrt(high))

    def quantile_p95(self, share: float) -> Interval:
        """Between which numbers the quantile lies: those of the shares that its own may be mistaken for."""
        if not self.count > 0:
            return math.nan, math.nan
        if self._unheard:
            return within(self.quantile(share), *self._extremes)
        axis = self.bins.axis
        mixture = self._mixture
        at = mixtures.interpolated(*mixture, share)
        # Too many rows below: the quantile lies higher than it seems, and the other way round.
        more, fewer = self._sides(0.0, influences.QUANTILE, share, self.bins.below(at))
        low, high = (mixtures.interpolated(*mixture, min(max(share + each, 0.0), 1.0)) for each in (more, fewer))
        last = axis.low.size - 1  # where a value lies in its fine bin is not known
        first = min(max(int(axis.mass.searchsorted(low, side="right")) - 1, 0), last)
        final = min(max(int(axis.mass.searchsorted(high)) - 1, 0), last)
        return within(axis.value(at), float(axis.low[first]), float(axis.high[final]))
