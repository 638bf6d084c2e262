"""Estimates: what kept paths say about a scope and a condition, each standing for the rows that its day counted.

A path knows its bins, not its values. Within a bin rows are spread as all rows are, but for a slope: a condition that
cuts a bin takes a share of it, and a path counts by the product of its shares. Where exact counts tell how lucky the
paths of a stratum were in a feature's bins, that luck is taken out again.

How far an estimate may be off is told by its influences: what one row more would change it by. Three things are not
known. Rows without a path: paths are chosen evenly, so neighbours tell how much rows differ (Wolter 2007, successive
differences). Where in its bin a row lies. And which rows of a day belong to a scope that cuts the day.

What is done path by path and bin by bin is in machine code: in `clauses` and `contents`, errors in `influences` and
`correlations`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from synopsis.query.feature_numbers import NO_TABLE, Interval, Numbers
from synopsis.query.predicates import AllOf, Clause, Leaf, all_of, parted, reachable
from synopsis.query.programs import leaves_of, program_of
from synopsis.query.sampled import NOBODY, NONE, Live, Sample
from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags

if TYPE_CHECKING:
    from synopsis.query import clauses, contents, correlations, influences, intervals, mixtures, weighing
else:
    weighing, clauses, contents, influences, correlations, intervals, mixtures = (
        Later(f"synopsis.query.{name}")
        for name in ("weighing", "clauses", "contents", "influences", "correlations", "intervals", "mixtures")
    )

#: In the order in which `influences` takes it: reach of paths; positions, slots, weights, probabilities and worth of
#: live ones, how far they are open, once and twice, and in lumps; parts of days and places of paths; where the slots,
#: paths and live paths of groups begin.
_About = tuple[Any, ...]


class Estimates:
    """Statistics of the rows of every group that satisfy a clause, when asked for: a number for each group.

    Cost: proportional to the paths of the sample for the clause, to those that may satisfy it for each statistic. Where
    exact counts suffice (no condition or one on a single feature, whole strata), no path is touched.
    """

    def __init__(self, sample: Sample, clause: Clause, among: Live | None = None) -> None:
        """`among` are paths that include all which may satisfy the clause."""
        self.sample, self._clause, self._among = sample, clause, among
        # Numbers know their estimates: held weakly, all of it goes with the last that asks.
        self._numbers: dict[int, ref[Numbers]] = {}
        self._pairs: dict[tuple[int, int], _Pair] = {}
        self._anything = isinstance(clause, AllOf) and not clause.parts

    # --- paths --------------------------------------------------------------------------------------------------------

    def standing_for(self) -> tuple[Integers, Floats]:
        """The paths that may satisfy the clause, by position, and how many rows each stands for."""
        return self._live.column.astype(np.int64), self._live.mass

    @cached_property
    def _heard(self) -> Flags:
        """Groups: whether any path tells of rows that satisfy the clause; else features are taken to be independent."""
        return weighing.heard(self.sample.paths.offset, self._live.total)

    @cached_property
    def _all_heard(self) -> bool:
        """Whether that is so for every group."""
        return bool(self._heard.all())

    def _alone(self, clause: Clause) -> Floats:
        """Slots: the share of rows that satisfy the clause, by the exact counts of independent features."""
        if isinstance(clause, Leaf):
            return np.asarray(
                (self.sample.counts(clause.feature) * self.sample.shares(clause)).sum(axis=1) / self.sample.slots.whole
            )
        some, share = isinstance(clause, AllOf), np.ones(self.sample.slots.rows.size)
        for part in clause.parts:
            share *= self._alone(part) if some else 1.0 - self._alone(part)
        return share if some else 1.0 - share

    def _at_most(self, clause: Clause) -> tuple[Floats, Floats]:
        """Slots: rows that satisfy the clause, at least and at most, however features go together (Frechet 1935)."""
        if isinstance(clause, Leaf):
            all_rows = (self.sample.counts(clause.feature) * self.sample.shares(clause)).sum(axis=1)
            return np.maximum(all_rows - (self.sample.slots.whole - self.sample.slots.rows), 0.0), np.minimum(
                all_rows, self.sample.slots.rows
            )
        some = isinstance(clause, AllOf)
        low = high = np.asarray(self.sample.slots.rows * float(some), np.float64)
        for part in clause.parts:
            least, most = self._at_most(part)
            if some:
                low, high = np.maximum(low + least - self.sample.slots.rows, 0.0), np.minimum(high, most)
            else:
                low, high = np.maximum(low, least), np.minimum(high + most, self.sample.slots.rows)
        return low, high

    @cached_property
    def _program(self) -> tuple[Integers, Floats, Integers, Integers]:
        """The clause in steps, a table for every leaf, where the codes of its feature stand, and the leaves without
        which no row satisfies it."""
        steps, leaves, demanded = program_of(self._clause)
        tables = np.empty((len(leaves), self.sample.slots.rows.size, self.sample.strata.bins + 1))
        for number, leaf in enumerate(leaves):
            tables[number] = self.sample.shares(leaf)
        return steps, tables, np.array([self.sample.position(leaf.feature) for leaf in leaves], np.int64), demanded

    @cached_property
    def _live(self) -> Live:
        if self._anything:
            return self.sample.all_alive
        among, paths = self._among, self.sample.paths
        if among is None:
            own = (self.sample.which, paths.column, paths.slot, paths.weight, paths.offset)
        else:
            own = (among.which, among.column, among.slot, among.weight, among.offset)
        whole, real, offset, totals = clauses.alive(*(*self._program, self.sample.strata.codes, *own))
        return Live._make((*whole, *real, offset, *totals))

    @cached_property
    def _lumps(self) -> Floats:
        """Ends of the condition's ranges x live paths: rows that are on either side of an end, nobody knows.

        All of a fine bin may have one value, at all places the same.
        """
        live, found = self._live, []
        for leaf in leaves_of(self._clause):
            for cut in self.sample.bins(leaf.feature).cuts(leaf.ranges):
                own = (self.sample.codes(leaf.feature), live.column, live.slot, live.weight, live.mass)
                found.append(contents.lumped(cut, self.sample.shares(leaf), *own))
        return np.stack(found) if found else NO_TABLE

    # --- statistics ---------------------------------------------------------------------------------------------------

    def count(self) -> Floats:
        """Rows in scope that satisfy the clause."""
        return self._count

    def count_by_paths(self) -> Floats:
        """The same by paths alone, and one more whose features are independent, so that parts and wholes err alike."""
        if self._anything:
            return self.sample.total
        paths, alone = np.diff(self.sample.paths.offset), self._expected
        return np.where(paths > 0, (paths * self._live.total + alone) / (paths + 1), alone)

    @property
    def _expected(self) -> Floats:
        """Rows that satisfy the clause where features are independent."""
        return self.sample.added(self.sample.slots.rows * self._alone(self._clause))

    @cached_property
    def _count(self) -> Floats:
        sample = self.sample
        if self._anything:
            return sample.total
        if isinstance(self._clause, Leaf):
            known = (sample.untouched(self._clause.feature), sample.shares(self._clause), sample.slots.offset)
            return contents.weighed(*known, 1.0)
        if self._all_heard:
            return self._live.total
        return np.where(self._heard, self._live.total, self._unseen)

    @property
    def _unseen(self) -> Floats:
        """Rows that satisfy the clause though no path does: as many as independent features let expect (m), but with
        w rows to a path hardly more than w: 1 / (1/m + 1/w), the mean of m and no path seen by Bayes (Gamma, shape 1).
        """
        alone, paths = self._expected, np.diff(self.sample.paths.offset)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(alone > 0.0, alone / (1.0 + alone * paths / self.sample.total), 0.0)

    def of(self, feature: int) -> Numbers:
        """The numbers of one feature in scope."""
        known = self._numbers[feature]() if feature in self._numbers else None
        if known is not None:
            return known
        sample, own = self.sample, reachable(self._clause, feature)
        counted, is_counted, live = NO_TABLE, np.zeros(sample.groups, np.bool_), (NOBODY, NOBODY, NONE)
        offset = np.zeros(sample.groups + 1, np.int64)
        if self._exact(feature):
            counted, is_counted = sample.corrected(feature), ~is_counted
        else:
            if not self._all_heard:
                is_counted = ~self._heard
                counted = sample.expected(feature) * self._alone(parted(self._clause, feature)[1])[:, None]
            live, offset = (self._live.column, self._live.slot, self._live.mass), self._live.offset
        tables = sample.measured(feature, own.ranges)
        given = (counted, is_counted, sample.codes(feature), *live, sample.slots.offset, offset)
        mass, *numbers = contents.numbered(*(tables, *given))
        told = sample.stretched(feature, tables) if self._anything else None
        best = numbers
        if told is not None:
            best = [np.where(told.tells, *each) for each in zip(told.numbers, numbers, strict=True)]
        about = (sample.bins(feature), own.ranges, self, feature, tuple(numbers), told)
        found = Numbers(tables, mass, best[0], best[1], best[2], *about)
        self._numbers[feature] = ref(found)
        return found

    def _exact(self, feature: int) -> bool:
        """Whether the clause demands nothing of other features, so that the exact counts of bins help."""
        return self._anything or (isinstance(self._clause, Leaf) and self._clause.feature == feature)

    def correlation(self, one: int, two: int) -> Floats:
        """CORRELATION of two features where both are present; bins are independent within a path."""
        return self._pair(one, two).correlation

    def covariance(self, one: int, two: int) -> Floats:
        """COVARIANCE of two features where both are present."""
        return self._pair(one, two).covariance

    def _pair(self, one: int, two: int) -> _Pair:
        if (one, two) not in self._pairs:
            self._pairs[one, two] = self._paired(one, two)
        return self._pairs[one, two]

    def _paired(self, one: int, two: int) -> _Pair:
        first, second, sample = self.of(one), self.of(two), self.sample
        if not self._heard.any():
            return _independent(first, second)
        codes, tables = (sample.codes(one), sample.codes(two)), (first.tables, second.tables)
        both = (*codes, *tables, first.average, second.average, self._live.column)
        found = correlations.paired(*both, self._live.slot, self._live.mass, self._live.offset)
        means = (first.average + found[6], second.average + found[7])
        told = _Pair._make((*found[:6], *means, (found, *both)))
        return told if self._all_heard else told.where(self._heard, _independent(first, second))

    # --- intervals ----------------------------------------------------------------------------------------------------

    def count_p95(self) -> Interval:
        """Between which numbers the count lies, in 95 of 100 questions. Cost: like that of counting."""
        return self._count_p95

    @cached_property
    def _count_p95(self) -> Interval:
        count, sample = self.count(), self.sample
        if self._anything:
            return np.maximum(count - sample.edge, 0.0), count + sample.edge
        live, paths, chances = self._live, sample.paths, sample.no_chances
        met, codes, skew = NO_TABLE, sample.strata.codes[0], np.zeros(sample.groups)
        if isinstance(self._clause, Leaf):
            feature, met = self._clause.feature, sample.shares(self._clause)
            codes, chances = sample.codes(feature), sample.chances(feature)
            skew = contents.weighed(sample.untouched(feature), met, sample.slots.offset, -1.0)
        of_luck = (met, codes, *chances, sample.slots.offset, sample.reach)
        of_paths = (live.which, live.slot, live.weight, live.held, live.twice, paths.weight, paths.part, paths.place)
        offsets, known = (self._lumps, paths.offset, live.offset), (count, sample.total, sample.edge, skew)
        low, high = influences.of_count(*(*of_luck, *of_paths, *offsets, *known))
        if not isinstance(self._clause, Leaf) and not self._all_heard:
            low = np.where(self._heard, low, 0.0)
        if not sample.all_heard:
            least, most = (sample.added(each) for each in self._at_most(self._clause))
            low = np.where(sample.heard, low, np.minimum(np.maximum(least - sample.edge, 0.0), count))
            high = np.where(sample.heard, high, np.maximum(most + sample.edge, count))
        return low, high

    def also(self, leaf: Leaf) -> Estimates:
        """The same scope with one demand more."""
        return self.narrowed(all_of((self._clause, leaf)))

    def narrowed(self, clause: Clause) -> Estimates:
        """The same scope with a clause that demands all that this one does: its paths are among these."""
        return Estimates(self.sample, clause, None if self._anything else self._live)

    @property
    def probability(self) -> Floats:
        """Paths of the days in scope: the probability that a row like it satisfies the clause."""
        paths = self.sample.paths
        if self._anything:
            return np.ones(paths.weight.size)
        steps, tables, rows, _ = self._program
        return clauses.probabilities(steps, tables, rows, self.sample.strata.codes, paths.column, paths.slot)

    @cached_property
    def _about(self) -> _About:
        """What the error of any statistic depends on."""
        live, sample = self._live, self.sample
        known = (sample.reach, live.which, live.slot, live.weight, live.held, live.worth, live.once, live.twice)
        offsets = (sample.slots.offset, sample.paths.offset, live.offset)
        return *known, self._lumps, sample.paths.part, sample.paths.place, *offsets

    @property
    def _about_pairs(self) -> _About:
        """The same of two features: what was learnt of the choice of paths holds for one."""
        return self.sample.reach_as_told, *self._about[1:]

    def correlation_p95(self, one: int, two: int) -> Interval:
        """Between which numbers the correlation lies."""
        pair = self._pair(one, two)
        r, half = pair.correlation, NONE
        if pair.told:
            half = correlations.of_pair(r, *pair.told, *self._about_pairs)
        known = (pair.within, pair.beyond, pair.square, pair.other, self.sample.slots.offset)
        low, high = intervals.correlation(r, half, *known)
        return low, high

    def covariance_p95(self, one: int, two: int) -> Interval:
        """Between which numbers the covariance lies."""
        pair = self._pair(one, two)
        r, most = pair.correlation, np.sqrt(pair.square * pair.other)
        low, high = -most, most
        if pair.told:
            half = correlations.of_pair(np.full(r.size, np.nan), *pair.told, *self._about_pairs)
            unseen, heard = pair.unseen, self._heard
            middle = pair.covariance + unseen * np.fmax(pair.seen, 0.0) / 2
            reach = np.hypot(half, intervals.LACKING * unseen)
            low, high = np.where(heard, middle - reach, low), np.where(heard, middle + reach, high)
        known = pair.total > 0
        low, high = np.minimum(low, pair.covariance), np.maximum(high, pair.covariance)
        return np.where(known, low, np.nan), np.where(known, high, np.nan)


class _Pair(NamedTuple):
    """Two features where both are present, by group."""

    total: Floats  #: rows
    covariance: Floats
    square: Floats  #: variances
    other: Floats
    within: Floats  #: the part of the variances that lies within bins
    beyond: Floats
    mean_x: Floats
    mean_y: Floats
    told: tuple[Any, ...] = ()  #: what `correlations.paired` found, and of what; empty where no path tells

    @property
    def unseen(self) -> Floats:
        """What the covariance lacks because values are taken to be the means of their bins."""
        most = np.maximum(np.sqrt(self.square * self.other) - np.abs(self.covariance), 0.0)
        return np.asarray(np.clip(self.covariance * (1.0 / np.fmax(self.seen, intervals.SEEN) - 1.0), -most, most))

    @property
    def seen(self) -> Floats:
        """The part of the covariance that bins tell, if values go together in a straight line."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((1.0 - self.within / self.square) * (1.0 - self.beyond / self.other))

    @property
    def correlation(self) -> Floats:
        """NaN where a feature does not vary."""
        return intervals.correlated(self.covariance, self.square, self.other)

    def where(self, heard: Flags, other: _Pair) -> _Pair:
        """This where paths tell, the other where none does."""
        numbers = zip(self[:8], other[:8], strict=True)
        return _Pair._make((*(np.where(heard, mine, theirs) for mine, theirs in numbers), self.told))


def _independent(one: Numbers, two: Numbers) -> _Pair:
    """Two features that vary together from stratum to stratum only, for all that is known."""
    sample = one.estimates.sample
    group = sample.slots.group
    weight = np.minimum(one.mass.sum(axis=1), two.mass.sum(axis=1))
    total = sample.added(weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y = (
            (each.mass * (each.mean - each.average[group, None])).sum(axis=1)
            / np.maximum(each.mass.sum(axis=1), 1e-300)
            for each in (one, two)
        )
        mx, my = sample.added(weight * x) / total, sample.added(weight * y) / total
        covariance = sample.added(weight * (x - mx[group]) * (y - my[group])) / total
    known, nothing = total > 0, np.zeros(total.size)
    numbers = (covariance, one.variance, two.variance)
    varied = (np.where(known, each, np.nan) for each in numbers)
    return _Pair._make((total, *varied, nothing, nothing, one.average + mx, two.average + my, ()))
