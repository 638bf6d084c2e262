"""The numbers of one feature, as paths tell them: statistics of the values that it has in the rows of every group.

What these rows are, `estimate` knows. Where nothing is demanded of rows, stretches tell count, mean and variance
better, where there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from synopsis.query.bins import Bins
from synopsis.query.predicates import Leaf, Ranges
from synopsis.query.sampled import NONE, Stretched
from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags

if TYPE_CHECKING:
    from synopsis.query import contents, influences, intervals, mixtures
    from synopsis.query.estimate import Estimates
else:
    contents, influences, intervals, mixtures = (
        Later(f"synopsis.query.{name}") for name in ("contents", "influences", "intervals", "mixtures")
    )

Interval = tuple[Floats, Floats]  #: groups

NO_TABLE: Floats = np.empty((0, 0))
_NO_FLAGS: Flags = np.empty(0, np.bool_)


@dataclass(frozen=True)
class Numbers:
    """The numbers of one feature: rows in every bin, and what their values are: slots x bins."""

    tables: Floats  #: share, mean, noise and leaning
    mass: Floats  #: rows in each bin
    count: Floats  #: groups: rows that have the feature
    average: Floats  #: groups: MEAN; NaN where there is nothing
    variance: Floats  #: groups: VARIANCE, of all rows; NaN where there is nothing
    bins: Bins
    ranges: Ranges  #: what the condition leaves of the feature
    estimates: Estimates
    feature: int
    by_bins: Sequence[Floats]  #: count, mean and variance as bins alone tell them
    told: Stretched | None  #: what stretches tell, where there are any and nothing is demanded of rows
    _places: dict[float, Floats] = field(default_factory=dict)  #: of quantiles that were asked for

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
    def sum(self) -> Floats:
        """SUM; 0 where there is nothing. The count of rows is better known than the paths' masses tell."""
        whole = self.estimates
        if not whole._exact(self.feature) and isinstance(whole._clause, Leaf):
            return contents.sums(self.count, self.average, self._heard, whole.count(), whole._live.total)
        return contents.sums(self.count, self.average, _NO_FLAGS, NONE, NONE)

    @cached_property
    def deviation(self) -> Floats:
        """STD."""
        return np.sqrt(self.variance)

    def quantile(self, share: float) -> Floats:
        """QUANTILE of the mixture of all bins, found on the mass axis. Cost: a sort of the bins in use."""
        return np.asarray(self._at(share)[1])

    def _at(self, share: float) -> Floats:
        """Where on the mass axis a share of the rows is reached, and the values there; NaN where there is nothing."""
        if share not in self._places:
            given = (*self._mixture, *self.bins.of_values, share)
            if 0.0 < share < 1.0:
                self._places[share] = mixtures.valued(*given)
            else:
                self._places[share] = mixtures.outermost(*given, *self._known_ends)
        return self._places[share]

    @property
    def _known_ends(self) -> Interval:
        """Between which places on the mass axis rows are known to be in scope."""
        whole, sample = self.estimates, self.estimates.sample
        counts = sample.strata.counts[sample.position(self.feature)]
        return self.bins.known_ends(counts, sample.covered, self.share, exact=whole._exact(self.feature))

    @cached_property
    def _mixture(self) -> mixtures.Mixture:
        return self.bins.mixture(self.mass, self.ranges)

    @property
    def flat(self) -> tuple[Floats, Floats, Floats, Integers]:
        """The values as flat pieces of the mass axis: where each begins and ends, how many rows lie in it; where the
        pieces of groups begin."""
        return self.bins.flat(self.mass, self.ranges)

    # --- intervals ----------------------------------------------------------------------------------------------------

    @cached_property
    def _extremes(self) -> Interval:
        """The lowest and the highest value that there may be, by the exact counts."""
        sample, within = self.estimates.sample, (-np.inf, np.inf)
        if self.ranges:
            within = (self.ranges[0][0], self.ranges[-1][1])
        counts = sample.strata.counts[sample.position(self.feature)]
        return self.bins.ends(counts, sample.covered, self.share, within)

    @property
    def _heard(self) -> Flags:
        """Groups: whether any path says anything: otherwise all that is possible is in an interval."""
        whole = self.estimates
        return whole.sample.heard if whole._exact(self.feature) else whole._heard

    @property
    def _all_heard(self) -> bool:
        """Whether that is so for every group."""
        whole = self.estimates
        return whole.sample.all_heard if whole._exact(self.feature) else whole._all_heard

    @cached_property
    def _given(self) -> tuple[Any, ...]:
        """What the error of any statistic depends on, in the order in which `influences` takes it.

        Where exact counts help, the paths' luck was taken out.
        """
        whole, sample, feature = self.estimates, self.estimates.sample, self.feature
        chances, untouched, uncovered = sample.no_chances, NO_TABLE, NONE
        if whole._exact(feature):
            chances, untouched, uncovered = sample.chances(feature), sample.untouched(feature), 1.0 - sample.covered
        numbers = (self.tables, *self.by_bins, sample.expected(feature), self.mass)
        paths = (sample.codes(feature), whole._live.column, *chances)
        return *numbers, *paths, untouched, uncovered, *whole._about

    def _errors(self, statistic: int) -> Interval:
        """Half of the interval of a statistic, and to which side bins below nothing were cut off for."""
        told = self.told
        if told is None:
            half, skew, _ = influences.of_numbers(statistic, 0.0, NO_TABLE, *self._given)
            return half, skew
        own = self.count, self.average, self.variance
        half = told.errors(statistic, *own, self.estimates.sample.expected(self.feature))
        if told.tells.all():
            return half, np.zeros(half.size)
        others, skew, _ = influences.of_numbers(statistic, 0.0, NO_TABLE, *self._given)
        return np.where(told.tells, half, others), np.where(told.tells, 0.0, skew)

    @cached_property
    def count_p95(self) -> Interval:
        """Between which numbers the count of values lies. Cost: that of another condition."""
        low, high = self.estimates.also(Leaf(self.feature)).count_p95()
        return np.minimum(low, self.count), np.maximum(high, self.count)

    @cached_property
    def average_p95(self) -> Interval:
        """Between which numbers the mean lies, in 95 of 100 questions."""
        known = (self.count, self.average, *self._errors(influences.AVERAGE), *self._extremes, self._heard)
        low, high = intervals.average(*known)
        return low, high

    @cached_property
    def sum_p95(self) -> Interval:
        """Between which numbers the sum lies."""
        whole, own = self.estimates, (self.count, self.average, self.sum)
        if whole._anything:
            errors = self._errors(influences.TOTAL)
            low, high = intervals.plain_total(*own, *errors, whole.sample.edge, self._heard)
        else:
            held = self.count if whole._exact(self.feature) else whole._live.total
            ends = (*whole.count_p95(), *self.average_p95)
            low, high = intervals.total_of(*own, whole.count(), *ends, held, whole._live.worth)
        if not self._all_heard:
            least, most = intervals.unheard_total(self.count, self.sum, whole.count_p95()[1], *self._extremes)
            low, high = np.where(self._heard, low, least), np.where(self._heard, high, most)
        return low, high

    @cached_property
    def variance_p95(self) -> Interval:
        """Between which numbers the variance lies."""
        known = (self.count, self.variance, *self._errors(influences.VARIANCE), *self._extremes, self._heard)
        low, high = intervals.variance(*known)
        return low, high

    @cached_property
    def deviation_p95(self) -> Interval:
        """Between which numbers the deviation lies."""
        low, high = intervals.roots(*self.variance_p95, self.deviation)
        return low, high

    def quantile_p95(self, share: float) -> Interval:
        """Between which numbers the quantile lies: those of the shares that its own may be mistaken for."""
        at = self._at(share)
        whole, below = self.estimates, self.bins.below(at[0])
        half, skew, tells = influences.of_numbers(influences.QUANTILE, share, below, *self._given)
        extremes = (self._heard, *((NONE, NONE) if self._all_heard else self._extremes))
        mixture, unseen = self._mixture, np.zeros(half.size)
        if not whole._exact(self.feature):
            expected, slots = whole.sample.expected(self.feature), whole.sample.slots.offset
            known = (self.mass, expected, self.share, self.by_bins[0], tells, slots)
            is_doubted, doubted, unseen = mixtures.doubted(*known)
            mixture = self.bins.mixture(doubted, self.ranges) if is_doubted else mixture
        about: tuple[Any, ...] = (share, half, skew, at[0], at[1], *extremes, unseen)
        low, high = mixtures.around(*mixture, *self.bins.of_values, *about)
        return low, high
