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
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from synopsis.query.bins import Bins
from synopsis.query.inference import NORMAL, Interval, dot, student, within
from synopsis.query.predicates import AllOf, Clause, Leaf, Ranges, all_of, parted, reachable
from synopsis.query.sampled import NOBODY, NONE, Live, Sample
from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Floats, Integers, Positions

if TYPE_CHECKING:
    from synopsis.query import influences, mixtures, weighing
else:
    weighing, influences, mixtures = (
        Later(f"synopsis.query.{name}") for name in ("weighing", "influences", "mixtures")
    )

#: What is missing from a covariance, in the most that rows may vary together within their bins: a value follows the
#: other feature's bin, too.
_UNSEEN = 2.0

_NO_TABLE: Floats = np.empty((0, 0))

#: Reach of paths; positions, strata, weights, probabilities and worth of live ones, how far they are open, once and
#: twice, and in lumps; parts of days and places of paths. In this order `influences` takes them.
_About = tuple[Floats, Positions, Positions, Floats, Floats, float, Floats, Floats, Floats, Floats, Positions]


class Estimates:
    """Statistics of the rows that satisfy a clause, when asked for.

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

    @property
    def _silent(self) -> bool:
        """Whether no path tells how features go together, so that they are taken to be independent."""
        return not self.sample.paths.weight.size and not self._anything and not isinstance(self._clause, Leaf)

    def _alone(self, clause: Clause) -> Floats:
        """Strata: the share of rows that satisfy the clause, by the exact counts of independent features."""
        if isinstance(clause, Leaf):
            return np.asarray(
                (self.sample.counts(clause.feature) * self.sample.shares(clause)).sum(axis=1) / self.sample.whole
            )
        some, share = isinstance(clause, AllOf), np.ones(self.sample.rows.size)
        for part in clause.parts:
            share *= self._alone(part) if some else 1.0 - self._alone(part)
        return share if some else 1.0 - share

    def _at_most(self, clause: Clause) -> tuple[Floats, Floats]:
        """Strata: rows that satisfy the clause, at least and at most, however features go together (Frechet 1935)."""
        if isinstance(clause, Leaf):
            all_rows = (self.sample.counts(clause.feature) * self.sample.shares(clause)).sum(axis=1)
            return np.maximum(all_rows - (self.sample.whole - self.sample.rows), 0.0), np.minimum(
                all_rows, self.sample.rows
            )
        some = isinstance(clause, AllOf)
        low = high = np.asarray(self.sample.rows * float(some), np.float64)
        for part in clause.parts:
            least, most = self._at_most(part)
            if some:
                low, high = np.maximum(low + least - self.sample.rows, 0.0), np.minimum(high, most)
            else:
                low, high = np.maximum(low, least), np.minimum(high + most, self.sample.rows)
        return low, high

    @cached_property
    def _program(self) -> tuple[Integers, Floats, Integers, Integers]:
        """The clause in steps, a table for every leaf, where the codes of its feature stand, and the leaves without
        which no row satisfies it."""
        steps, leaves, demanded = _steps(self._clause)
        tables = np.empty((len(leaves), self.sample.rows.size, self.sample.strata.bins + 1))
        for number, leaf in enumerate(leaves):
            tables[number] = self.sample.shares(leaf)
        return steps, tables, np.array([self.sample.position(leaf.feature) for leaf in leaves], np.int64), demanded

    @cached_property
    def _live(self) -> Live:
        if self._anything:
            return self.sample.all_alive
        among = self._among or self.sample.all_alive
        own = (self.sample.strata.codes, among.which, among.column, among.stratum, among.weight)
        whole, real, total, worth = weighing.alive(*(*self._program, *own))
        return Live._make((*whole, *real, total, worth))

    @cached_property
    def _lumps(self) -> Floats:
        """Ends of the condition's ranges x live paths: rows that are on either side of an end, nobody knows.

        All of a fine bin may have one value, at all places the same.
        """
        live, found = self._live, []
        for leaf in _leaves(self._clause):
            for cut in self.sample.bins(leaf.feature).cuts(leaf.ranges):
                own = (self.sample.codes(leaf.feature), live.column, live.stratum, live.weight, live.mass)
                found.append(weighing.lumped(cut, self.sample.shares(leaf), *own))
        return np.stack(found) if found else _NO_TABLE

    # --- statistics ---------------------------------------------------------------------------------------------------

    def count(self) -> float:
        """Rows in scope that satisfy the clause."""
        return self._count

    @cached_property
    def _count(self) -> float:
        if self._anything:
            return self.sample.total
        if isinstance(self._clause, Leaf):
            return float((self.sample.corrected(self._clause.feature) * self.sample.shares(self._clause)).sum())
        return float((self.sample.rows * self._alone(self._clause)).sum() if self._silent else self._live.total)

    def of(self, feature: int) -> Numbers:
        """The numbers of one feature in scope."""
        known = self._numbers[feature]() if feature in self._numbers else None
        if known is not None:
            return known
        sample, own = self.sample, reachable(self._clause, feature)
        counted, paths = _NO_TABLE, (NOBODY, NOBODY, NONE)
        if self._exact(feature):
            counted = sample.corrected(feature)
        elif not sample.paths.weight.size:
            counted = sample.expected(feature) * self._alone(parted(self._clause, feature)[1])[:, None]
        else:
            paths = self._live.column, self._live.stratum, self._live.mass
        tables = sample.measured(feature, own.ranges)
        numbers = weighing.numbered(*(tables, counted, sample.codes(feature), *paths))
        found = Numbers(tables, *numbers, sample.bins(feature), own.ranges, self, feature)
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
        if not self.sample.paths.weight.size:
            return _independent(first, second)
        codes, tables = (self.sample.codes(one), self.sample.codes(two)), (first.tables, second.tables)
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
        count, total = self.count(), self.sample.total
        if self._anything:
            return within(count, max(count - self.sample.edge, 0.0), count + self.sample.edge)
        if not self.sample.paths.weight.size:
            low, high = (float(each.sum()) for each in self._at_most(self._clause))
            return within(count, max(low - self.sample.edge, 0.0), high + self.sample.edge)
        sample, live, rate = self.sample, self._live, count / max(total, 1.0)
        paths, met, reach, skew = sample.paths, NONE, sample.reach, 0.0
        if isinstance(self._clause, Leaf):
            feature, shares, luck = self._clause.feature, sample.shares(self._clause), sample.luck
            met, reach = weighing.gathered(shares, sample.codes(feature), luck.column, luck.stratum), luck.reach
            skew = float((np.minimum(sample.untouched(feature), 0.0) * shares).sum())
        given = (
            met,
            reach,
            live.which,
            live.weight,
            live.held,
            live.twice,
            rate,
            paths.weight,
            paths.part,
            paths.place,
        )
        chosen, rest, usual = influences.of_count(isinstance(self._clause, Leaf), *given, self._lumps)
        usual = usual / total if total > 0 else 0.0  # what a row that is rarely met stands for
        doubt = influences.DOUBT
        each = (chosen + doubt * usual**2) / (count + doubt * usual) if usual > 0 else 0.0
        rest += (self.sample.edge * rate / NORMAL) ** 2
        t = NORMAL
        # Few rows vary as much as their number is: the interval is Wilson's (1927), wider upwards.
        middle = count + t * t * each / 2
        half = math.sqrt(t * t * each * count + (t * t * each / 2) ** 2 + t * t * max(rest, 0.0))
        return within(count, max(middle - half + skew, 0.0), min(middle + half, total + self.sample.edge))

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
        return weighing.probabilities(steps, tables, rows, self.sample.strata.codes, paths.column, paths.stratum)

    @cached_property
    def _about(self) -> _About:
        """What the error of any statistic depends on."""
        live, paths = self._live, self.sample.paths
        known = (self.sample.reach, live.which, live.stratum, live.weight, live.held, live.worth)
        return *known, live.once, live.twice, self._lumps, paths.part, paths.place

    def _half(self, square: float, chosen: float, freedom: float) -> float:
        worth = self._live.worth
        return student(min(worth, freedom + 1.0) if chosen > 0 else worth) * math.sqrt(square)

    def correlation_p95(self, one: int, two: int) -> Interval:
        """Between which numbers the correlation lies, by Fisher's transformation."""
        pair = self._pair(one, two)
        r = pair.correlation
        if math.isnan(r) or not pair.told:
            return (-1.0, 1.0) if self.sample.rows.size else (math.nan, math.nan)
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
def _steps(clause: Clause) -> tuple[Integers, tuple[Leaf, ...], Integers]:
    """A clause as `weighing` takes it, its leaves, and the positions of those without which nothing satisfies it."""
    anything, leaves = isinstance(clause, AllOf) and not clause.parts, _leaves(clause)
    alone = [part for part in (clause.parts if isinstance(clause, AllOf) else (clause,)) if isinstance(part, Leaf)]
    demanded = np.array([leaves.index(leaf) for leaf in alone], np.int64)
    return np.array([] if anything else _postfix(clause, 0), np.int64), tuple(leaves), demanded


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


@dataclass(frozen=True)
class Numbers:
    """The numbers of one feature: rows in every bin, and what their values are: strata x bins."""

    tables: Floats  #: share, mean and noise
    mass: Floats  #: rows in each bin
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
        counts = whole.sample.strata.counts[whole.sample.position(self.feature)]
        ends = self.bins.ends(counts, whole.sample.covered, self.share)
        if ends is None:
            return -math.inf, math.inf
        low, high = (self.ranges[0][0], self.ranges[-1][1]) if self.ranges else (-math.inf, math.inf)
        return max(ends[0], low), min(ends[1], high)

    @property
    def _unheard(self) -> bool:
        """Whether no path says anything: then all that is possible is in an interval."""
        return not self.estimates.sample.paths.weight.size

    @cached_property
    def _given(self) -> tuple[Any, ...]:
        """What the error of any statistic depends on, in the order in which `influences` takes it.

        Where exact counts help, the paths' luck was taken out.
        """
        whole, feature = self.estimates, self.feature
        luck, untouched, uncovered = (NOBODY, NOBODY, NONE), _NO_TABLE, NONE
        if whole._exact(feature):
            untouched, uncovered = whole.sample.untouched(feature), 1.0 - whole.sample.covered
            luck = whole.sample.luck.column, whole.sample.luck.stratum, whole.sample.luck.reach
        numbers = (self.tables, self.count, self.average, self.variance, whole.sample.expected(feature))
        return *numbers, whole.sample.codes(feature), whole._live.column, *luck, untouched, uncovered, *whole._about

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
            edge = whole.sample.edge * abs(self.average)
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
