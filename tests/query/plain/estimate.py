"""Estimates: what kept paths say about a scope and a condition, each standing for the rows that its day counted.

A path knows its bins, not its values. Within a bin rows are spread as all rows are, but for a slope: a condition that
cuts a bin takes a share of it, and a path counts by the product of its shares. Where exact counts tell how lucky the
paths of a stratum were in a feature's bins, that luck is taken out again.

How far an estimate may be off is told by its influences: what one row more would change it by. Three things are not
known. Rows without a path: paths are chosen evenly, so neighbours tell how much rows differ (Wolter 2007, successive
differences). Where in its bin a row lies. And which rows of a day belong to a scope that cuts the day.
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from tests.query.plain.bins import LUMPS, Bins
from tests.query.plain.inference import NORMAL, Interval, differing, dot, student, within
from tests.query.plain.inference import worth as worth_of
from tests.query.plain.mixtures import ROUNDING, Mixture, interpolated, mixed

from synopsis.query.predicates import AllOf, Clause, Leaf, Ranges, all_of, parted, reachable
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes, Scales
from synopsis.sketch.strata import Strata

#: So many paths' worth of doubt: few paths that look alike are weighed up with how rows differ without the condition.
_DOUBT = 1.0

#: Rows come in runs (an hour is like the next): within a bin squared errors are so many times larger than by chance.
_RUNS = 2.0

#: Places that share bins lie apart within them: by this part of what it would be if all rows of a place were alike; and
#: of values by all of it, times the share of a place's rows that lie in one bin, squared.
_APART, _GATHERED = 0.25, 1.0

#: Within a bin rows are spread as all rows are, but for a slope of seven steps: by this part of what it would be if all
#: of a stratum's rows in a cut bin were on one side; and by this part if those of all strata were on the same one.
_FORM, _FORM_OF_ALL = 0.02, 0.0003

#: Of a rank it is so much less: quantiles are asked for where rows are many, so that bins are narrow.
_RANKS = 0.5

#: Rows of a stratum that lie in one fine bin lie together within it: by this part of what it would be if they were one.
_LEAN = 0.05

#: The part of a day that is in scope differs from the whole day by this, in standard deviations of the day's rows.
_HOURS = 0.3

#: Features go together within their bins as well, which paths do not tell: the correlation that is allowed for.
_TOGETHER = 0.4

#: Of products of two features, whose sides nothing foretells, so much of that.
_PAIRED = 0.5

#: Rows that satisfy a condition lie on one side of the bins of what is asked about, and of the bins that it cuts: what
#: the former foretell is so many times as much.
_SIDES = 2.0

#: Products of distances have heavy tails, of which paths see too little: (co)variances are off by so much more.
_TAILS = 1.4

#: Correlations, in which the same tails stand above and below, by less.
_CORRELATED = 1.15

#: Of what a correlation lacks if values go together in a straight line within bins, it may be off by so much.
_LACKING = 0.9
_TOWARDS_NOTHING = 0.15

#: No count with a condition is known better than this part of it.
_SURE = 1e-4

#: Of a skew so much is expected, and it may be off by so much.
_SKEWED, _UNSURE = 0.6, 0.9

#: Of a quantile that fewer paths than this tell, intervals reach beyond what these have seen: to this share of it.
_FEW, _EXTREME = 16.0, 0.025


class _Paths(NamedTuple):
    """Some of the paths: where their codes stand, in which of the chosen strata, and for how many rows."""

    columns: Integers | slice
    stratum: Integers
    weight: Floats


class _Days(NamedTuple):
    """Some days of the chosen strata."""

    stratum: Integers
    rows: Floats  #: that are wanted
    kept: Integers
    first: Integers  #: the first path
    part: Floats  #: of the day that is wanted
    leaning: Floats  #: how many of its paths are wanted, for each unit of that part
    even: bool

    def weights(self, strata: int) -> Floats:
        """What a path of each day stands for: all of a stratum alike where they come at even steps, or the day's rows.

        And its part of the rows on days without a path.
        """
        own = self.part if self.even else self.rows / np.maximum(self.kept, 1)
        wanted, stood_for = (np.bincount(self.stratum, each, strata) for each in (self.rows, self.leaning * own))
        scale = np.divide(wanted, stood_for, out=np.zeros(strata), where=stood_for > 0)
        return np.asarray(own * scale.take(self.stratum))

    def paths(self, weight: Floats) -> _Paths:
        """The paths of these days, and of each the weight that is given by day."""
        total = int(self.kept.sum())
        if not total:
            return _Paths(slice(0, 0), np.empty(0, np.intp), np.empty(0))
        start, end = int(self.first[0]), int(self.first[-1] + self.kept[-1])
        if end - start == total:
            index: Integers | slice = slice(start, end)
        else:
            index = np.repeat(self.first - (np.cumsum(self.kept) - self.kept), self.kept) + np.arange(total)
        return _Paths(index, np.repeat(self.stratum, self.kept), np.repeat(weight, self.kept))


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
        pace: float = 1.0,
    ) -> None:
        """`features` says which feature stands where; `covered` is the share of each day that is in scope.

        `lean` says how much rather each path is in scope than the others of its day: 1 in the mean of a day.
        `axes` are the mass axes of features, to be filled and used again; without them the last scales' are kept.
        """
        self._strata, self._features, self._clause = strata, features, clause
        self._scales, self._axes, self._days_covered, self._lean, self._pace = scales, axes, covered, lean, pace
        # Numbers know their estimates: held weakly, all of it goes with the last that asks.
        self._numbers: WeakValueDictionary[int, Numbers] = WeakValueDictionary()
        self._pairs: dict[tuple[int, int], _Pair] = {}
        self._known: dict[int, Bins] = {}
        self._tables: dict[Leaf, Floats] = {}
        self._corrections: dict[int, Floats] = {}
        self._keys: dict[int, Integers] = {}
        self._live_codes: dict[int, Codes] = {}
        self._within = within = np.flatnonzero((covered > 0.0) & (strata.day_rows > 0))
        lengths = np.diff(np.searchsorted(within, strata.day_offset))
        self._which = np.flatnonzero(lengths)
        self._chosen: Integers | slice = slice(None) if self._which.size == len(strata) else self._which
        stratum = np.repeat(np.arange(self._which.size), lengths[self._chosen])
        self._part = covered[within]
        kept, rows, first = strata.day_kept[within], strata.day_rows[within] * self._part, self._first_paths(within)
        leaning = kept.astype(np.float64)
        if lean is not None:
            reached = np.append(0.0, np.cumsum(lean))
            leaning = reached[first + kept] - reached[first]
            if strata.even and not leaning.any():  # hours of stations without a path: all of a day speak alike
                self._lean, leaning = None, kept.astype(np.float64)
        self._days = _Days(stratum, rows, kept, first, self._part, leaning, strata.even)
        self._rows = np.bincount(stratum, rows, self._which.size)
        self._covered = self._rows / self._whole

    # --- paths --------------------------------------------------------------------------------------------------------

    @cached_property
    def _span(self) -> slice:
        """The days from the first stratum in scope to the last."""
        if not self._which.size:
            return slice(0, 0)
        offset = self._strata.day_offset
        return slice(int(offset[self._which[0]]), int(offset[self._which[-1] + 1]))

    @cached_property
    def _last_paths(self) -> Integers:
        """Days of the span: one past the last path of each."""
        kept = self._strata.day_kept
        ends = np.cumsum(kept[self._span])
        ends += kept[: self._span.start].sum()
        return np.asarray(ends)

    def _first_paths(self, days: Integers) -> Integers:
        """The first path of each of these days."""
        return np.asarray(self._last_paths[days - self._span.start] - self._strata.day_kept[days])

    @cached_property
    def _whole(self) -> Integers:
        """Strata: all rows, in scope or not."""
        if not self._which.size:
            return np.empty(0, np.int64)
        begins = self._strata.day_offset[self._which[0] : self._which[-1] + 1] - self._span.start
        rows = np.add.reduceat(self._strata.day_rows[self._span], begins)
        return np.asarray(rows[self._which - self._which[0]])

    @cached_property
    def _paths(self) -> _Paths:
        """Paths of the days in scope. Strata without one are stood for by all others.

        Where the whole scope has none, all paths of its strata speak for it, whatever their day.
        """
        found = self._leaning(self._days.paths(self._days.weights(self._rows.size)))
        if not found.weight.any():
            days = self._all_days
            days = days._replace(rows=days.rows * self._covered[days.stratum])
            found = days.paths(days.weights(self._rows.size))
        reached = found.weight.sum()
        return found._replace(weight=found.weight * (self._rows.sum() / reached)) if reached > 0 else found

    def _leaning(self, paths: _Paths) -> _Paths:
        """Paths of days in scope, those weighed more that are rather in scope themselves."""
        return paths if self._lean is None else paths._replace(weight=paths.weight * self._lean[paths.columns])

    @cached_property
    def _positions(self) -> Integers:
        """All days of the chosen strata, by position."""
        lengths = np.diff(self._strata.day_offset)[self._chosen]
        before = np.cumsum(lengths) - lengths
        return np.repeat(self._strata.day_offset[self._which] - before, lengths) + np.arange(int(lengths.sum()))

    @cached_property
    def _all_days(self) -> _Days:
        """All days of the chosen strata, with all their rows."""
        strata, which = self._strata, self._positions
        stratum = np.repeat(np.arange(self._which.size), np.diff(strata.day_offset)[self._chosen])
        rows = strata.day_rows[which].astype(np.float64)
        kept = strata.day_kept[which]
        return _Days(stratum, rows, kept, self._first_paths(which), np.ones(rows.size), kept, strata.even)

    @property
    def _silent(self) -> bool:
        """Whether no path tells of rows that satisfy the clause, so that features are taken to be independent."""
        return not self._paths.weight.size or not float(self._mass.sum()) > 0.0

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
    def _luck(self) -> _Paths:
        """All paths of strata that are partly in scope: weight in scope less the part of all weight that is covered."""
        if (self._covered == 1.0).all():
            return _Paths(slice(0, 0), np.empty(0, np.intp), np.empty(0))
        days, size = self._all_days, self._rows.size
        weight = days.weights(size) * -self._covered.take(days.stratum)
        inside = np.searchsorted(self._positions, self._within)
        if self._lean is None:
            weight[inside] += self._days.weights(size)
            return days.paths(weight)
        own = np.zeros(weight.size)
        own[inside] = self._days.weights(size)
        everywhere, within = days.paths(weight), self._leaning(days.paths(own))
        return everywhere._replace(weight=everywhere.weight + within.weight)

    @cached_property
    def _held(self) -> Floats:
        """Paths: the probability that a row like it satisfies the clause."""
        return self._probability(self._clause)

    @cached_property
    def _live(self) -> tuple[_Paths, Floats]:
        """The paths that may satisfy the clause, and their probabilities."""
        if self._anything:
            return self._paths, np.ones(self._paths.weight.size)
        paths, held = self._paths, self._held
        live = np.flatnonzero(held)
        if live.size == held.size:
            return paths, held
        index = live + paths.columns.start if isinstance(paths.columns, slice) else paths.columns[live]
        return _Paths(index, paths.stratum[live], paths.weight[live]), held[live]

    @cached_property
    def _mass(self) -> Floats:
        """Live paths: rows that each stands for and that satisfy the clause."""
        paths, held = self._live
        return paths.weight * held

    @cached_property
    def _worth(self) -> float:
        """How many live paths of equal weight would tell as much."""
        return worth_of(self._mass)

    @cached_property
    def _joint(self) -> tuple[Floats, Floats]:
        """Live paths: how far a row's being selected is open, and how far that hangs on two open questions at once."""
        _, once, twice = self._openness(self._clause)
        return once, twice

    def _openness(self, clause: Clause) -> tuple[Floats, Floats, Floats]:
        """Probability, and the parts of it that one or two of the clause's leaves leave open."""
        if isinstance(clause, Leaf):
            table = np.clip(self._shares(clause), 0.0, 1.0)
            held = table.take(self._live_key(clause.feature))
            return held, np.sqrt(table * (1.0 - table)).take(self._live_key(clause.feature)), np.zeros(held.size)
        some = isinstance(clause, AllOf)
        size = self._live[0].weight.size
        held, once, twice = np.ones(size), np.zeros(size), np.zeros(size)
        for part in clause.parts:
            p, a, j = self._openness(part)
            p = p if some else 1.0 - p
            held, once, twice = held * p, once * p + held * a, twice * p + held * j + once * a
        return held if some else 1.0 - held, once, twice

    @cached_property
    def _lumps(self) -> list[tuple[Integers, Floats]]:
        """Rows that are on either side of an end of the condition's ranges, nobody knows: which live paths, how many.

        All of a fine bin may have one value, at all places the same.
        """
        found = []
        paths, held = self._live
        for leaf in _leaves(self._clause):
            cuts = self.bins(leaf.feature).cuts(leaf.ranges)
            if not cuts or not held.size:
                continue
            key = self._live_key(leaf.feature)
            others = np.divide(self._mass, np.maximum(self._shares(leaf).take(key), 1e-3))
            for cut in cuts:
                amount = _padded(cut).take(key)
                which = np.flatnonzero(amount)
                found.append((which, amount[which] * np.minimum(others[which], paths.weight[which])))
        return found

    @property
    def _anything(self) -> bool:
        return isinstance(self._clause, AllOf) and not self._clause.parts

    def _probability(self, clause: Clause) -> Floats:
        """Of each path, bins being independent within it."""
        if isinstance(clause, Leaf):
            table = self._shares(clause)
            return table.take(self._key(self._paths, clause.feature))
        some = isinstance(clause, AllOf)
        held = np.ones(self._paths.weight.size)
        for part in clause.parts:
            found = self._probability(part)
            held *= found if some else 1.0 - found
        return held if some else 1.0 - held

    def _shares(self, leaf: Leaf) -> Floats:
        """Strata x (bins and absent): how much of each satisfies the leaf."""
        if leaf not in self._tables:
            self._tables[leaf] = table = np.empty((self._rows.size, self._strata.bins + 1))
            table[:, :-1] = self.bins(leaf.feature).shares(leaf.ranges)
            table[:, -1] = leaf.nulls
        return self._tables[leaf]

    def _codes(self, paths: _Paths, feature: int) -> Codes:
        return np.asarray(self._strata.codes[self._features.index(feature)][paths.columns])

    def _key(self, paths: _Paths, feature: int) -> Integers:
        """Where the bin of each path stands in a table of strata x (bins and absent)."""
        return np.asarray(paths.stratum * (self._strata.bins + 1) + self._codes(paths, feature))

    def _live_key(self, feature: int) -> Integers:
        """The same of live paths, found once."""
        if feature not in self._keys:
            codes = self._live_codes[feature] = self._codes(self._live[0], feature)
            self._keys[feature] = self._live[0].stratum * (self._strata.bins + 1) + codes
        return self._keys[feature]

    def bins(self, feature: int) -> Bins:
        """The bins of a feature in the strata that are in scope."""
        if feature not in self._known:
            if self._axes is None:
                axis = _axis(_Same(self._scales), feature)
            elif (found := self._axes.get(feature)) is None:
                axis = self._axes[feature] = MassAxis.of(self._scales, feature)
            else:
                axis = found
            self._known[feature] = Bins.of(self._strata, self._features.index(feature), axis, self._chosen)
        return self._known[feature]

    def _counts(self, feature: int) -> Integers:
        return np.asarray(self._strata.counts[self._features.index(feature)][self._chosen])

    def _table(self, key: Integers, weight: Floats) -> Floats:
        """Strata x (bins and absent): what the paths there weigh."""
        width = self._strata.bins + 1
        return np.asarray(np.bincount(key, weight, self._rows.size * width), np.float64).reshape(-1, width)

    def _corrected(self, feature: int) -> Floats:
        """Strata x (bins and absent): rows in scope, the paths' luck taken out as far as the exact counts tell.

        Where paths of the whole stratum hold too few of a bin, so do probably those in scope, by as much as they are of
        the paths there: a bin that is rare in scope has few rows to lack.
        """
        return np.maximum(self._untouched(feature), 0.0)

    def _untouched(self, feature: int) -> Floats:
        """The same with bins that come out below nothing, as chance has it."""
        if feature not in self._corrections:
            table = self._covered[:, None] * self._counts(feature)
            if self._luck.weight.size:
                table = self._lucky(table, self._key(self._luck, feature))
            self._corrections[feature] = table
        return self._corrections[feature]

    def _lucky(self, expected: Floats, key: Integers) -> Floats:
        days, covered = self._all_days, self._covered[:, None]
        kept = np.bincount(self._luck.stratum, minlength=self._rows.size)
        usual = 2.0 * (self._rows / self._covered / np.maximum(kept, 1))[:, None]
        every = self._table(key, days.paths(days.weights(self._rows.size)).weight)
        inside = self._table(key, self._luck.weight) + covered * every
        table = inside + (inside + covered * usual) / (every + usual) * (expected / covered - every)
        heard = (inside > 1e-9).any(axis=1)
        table = _summing(np.where(heard[:, None], table, expected), expected)
        if heard.all() or not heard.any():
            return table
        seen, usually = np.maximum(table[heard], 0.0).sum(axis=0), expected[heard].sum(axis=0)
        beside = usual.mean() / 16 * usually / usually.sum()
        more = np.where(usually > 0.0, (seen + beside) / np.where(usually > 0.0, usually + beside, 1.0), 1.0)
        return np.where(heard[:, None], table, _summing(expected * more, expected))

    # --- statistics ---------------------------------------------------------------------------------------------------

    def count(self) -> float:
        """Rows in scope that satisfy the clause."""
        if self._anything:
            return float(self._rows.sum())
        if isinstance(self._clause, Leaf):
            return float((self._corrected(self._clause.feature) * self._shares(self._clause)).sum())
        return self._unseen if self._silent else float(self._mass.sum())

    @property
    def _unseen(self) -> float:
        alone, paths = float((self._rows * self._alone(self._clause)).sum()), self._paths.weight.size
        return alone if not paths else 1.0 / (1.0 / alone + paths / float(self._rows.sum())) if alone else 0.0

    def of(self, feature: int) -> Numbers:
        """The numbers of one feature in scope."""
        known = self._numbers.get(feature)
        if known is not None:
            return known
        bins, own = self.bins(feature), reachable(self._clause, feature)
        share = self._shares(own)[:, :-1]
        weight, first, second = bins.sums(own.ranges)
        is_there = (share > 0.0) & (weight > 0.0)
        some = np.where(is_there, weight, 1.0)
        mean = np.where(is_there, first / some, 0.0)
        square = np.where(is_there, second / some, 0.0)
        variance = np.maximum(square - mean**2, 0.0)
        if self._exact(feature):
            mass = self._corrected(feature)[:, :-1] * share
        elif self._silent:
            others = self._alone(parted(self._clause, feature)[1])
            mass = self._covered[:, None] * self._counts(feature)[:, :-1] * share * others[:, None]
        else:
            mass = self._table(self._live_key(feature), self._mass)[:, :-1]
        found = Numbers(mass, mean, variance, share, bins, own.ranges, self, feature)
        self._numbers[feature] = found
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
        at, beside = self._live_key(one), self._live_key(two)
        bins = self._strata.bins
        present = (self._live_codes[one] < bins) & (self._live_codes[two] < bins)
        weight = self._mass * present
        total = float(weight.sum())
        if not total > 0:
            return _Pair(0.0, math.nan, math.nan, math.nan)
        x, y = (_padded(each.mean - each.average).take(key) for each, key in ((first, at), (second, beside)))
        wx, wy = weight * x, weight * y
        mx, my = wx.sum() / total, wy.sum() / total
        s = dot(weight, _padded(first.noise).take(at)) / total
        t = dot(weight, _padded(second.noise).take(beside)) / total
        spread = (max(dot(wx, x) / total - mx**2, 0.0) + s, max(dot(wy, y) / total - my**2, 0.0) + t)
        return _Pair(total, dot(wx, y) / total - mx * my, *spread, s, t, x - mx, y - my, present)

    # --- intervals ----------------------------------------------------------------------------------------------------

    def count_p95(self) -> Interval:
        """Between which numbers the count lies, in 95 of 100 questions. Cost: like that of counting."""
        count, total = self.count(), float(self._rows.sum())
        if self._anything:
            return within(count, max(count - self._edge, 0.0), count + self._edge)
        if not self._paths.weight.size:
            low, high = (float(each.sum()) for each in self._at_most(self._clause))
            return within(count, max(low - self._edge, 0.0), high + self._edge)
        paths, held = self._paths, self._held
        reach, met, skew = self._reach, held, 0.0
        if isinstance(self._clause, Leaf):
            feature, shares = self._clause.feature, self._shares(self._clause)
            reach, met = self._luck_reach, shares.take(self._key(self._luck, feature))
            skew = float((np.minimum(self._untouched(feature), 0.0) * shares).sum())
        chosen, _ = differing(reach, met)
        usual = float(reach.sum()) / total if total > 0 else 0.0  # what a row that is rarely met stands for
        each = (chosen + _DOUBT * usual**2) / (count + _DOUBT * usual) if usual > 0 else 0.0
        rest = self._in_bins(paths, held * (1.0 - held)) + self._of_hours(paths, held - count / max(total, 1.0), None)
        rest += (self._edge * count / max(total, 1.0) / NORMAL) ** 2 + (_SURE * count) ** 2
        rest += self._formed(paths, paths.weight * np.sqrt(held * (1.0 - held)))
        rest += (_TOGETHER * dot(self._live[0].weight, self._joint[1])) ** 2
        rest += LUMPS**2 * sum(float(amount.sum()) ** 2 for _, amount in self._lumps)
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
        return Estimates(*known, clause, self._axes, self._lean, self._pace)

    @property
    def probability(self) -> Floats:
        """Paths of the days in scope: the probability that a row like it satisfies the clause."""
        return self._held

    @cached_property
    def _path_part(self) -> Floats | None:
        """Paths: the share of their day that is in scope; None where days are never cut, or each path knows it.

        Where a station's paths know their hours, how well: by how much of the day its rows fill.
        """
        if not self._cut.size or self._stray:
            return None
        part = self._part
        if self._lean is not None and self._lean.size:
            if not self._strata.even:
                return None
            filled = np.minimum(self._strata.day_rows[self._within] * (self._pace or 1.0), 1.0)
            part = np.where(part < 1.0, filled, 1.0)
        return np.repeat(part, self._days.kept)

    @cached_property
    def _stray(self) -> bool:
        """Whether paths of other days have to speak for those in scope."""
        return not self._days.kept.any()

    @cached_property
    def _cut(self) -> Integers:
        """Days that are partly in scope."""
        return np.flatnonzero(self._part < 1.0)

    @cached_property
    def _edge(self) -> float:
        """Rows more or less that there may be because days are cut.

        Rows come alike at all places: ends are independent, places are not.
        """
        if not self._cut.size:
            return 0.0
        part, at = self._part[self._cut], self._within[self._cut]
        rows = self._strata.day_rows[at]
        if self._lean is not None and self._lean.size and not self._strata.even:
            return self._leaning_edge(part, rows, self._strata.day_kept[at], self._days.first[self._cut])
        filled = np.clip(rows * self._pace, 1e-9, 1.0)
        least, most = np.maximum(part + filled - 1.0, 0.0) / filled, np.minimum(part / filled, 1.0)
        off = np.minimum(rows * np.maximum(part, 1.0 - part), 1.0 + rows * np.maximum(part - least, most - part))
        _, end = np.unique(self._strata.day[at], return_inverse=True)
        return float(np.sqrt((np.bincount(end, off) ** 2).sum()))

    def _leaning_edge(self, part: Floats, rows: Integers, kept: Integers, first: Integers) -> float:
        """The same where paths know how far they are in scope; of a day without one, the share is a guess."""
        assert self._lean is not None
        column = np.repeat(first - np.cumsum(kept) + kept, kept) + np.arange(kept.sum())
        held = np.minimum(np.repeat(part, kept) * self._lean[column], 1.0)
        weight = np.repeat(rows / np.maximum(kept, 1), kept)
        step = np.diff(held, prepend=held[:1])
        square = weight * np.maximum(weight - 1.0, 0.0) * step**2 / 2 + weight * held * (1.0 - held)
        guessed = (rows**2 * part * (1.0 - part))[kept == 0]
        return NORMAL * math.sqrt(square.sum() + guessed.sum())

    @cached_property
    def _reach(self) -> Floats:
        """Paths: by how much the squared error grows for each unit of difference between neighbouring paths."""
        weight = self._paths.weight
        if self._stray:
            return weight * float(self._rows.sum())
        part = 1.0 if self._path_part is None else self._path_part
        return np.where(weight - part > ROUNDING * weight, weight * (weight - part), 0.0)

    @cached_property
    def _live_reach(self) -> Floats:
        return self._reach if self._live[0] is self._paths else self._reach[self._alive]

    @cached_property
    def _alive(self) -> Integers:
        return np.flatnonzero(self._held)

    def _spread_out(self, values: Floats) -> Floats:
        """Values of live paths beside 0 for all others."""
        if self._live[0] is self._paths:
            return values
        spread = np.zeros(self._paths.weight.size)
        spread[self._alive] = values
        return spread

    def _formed(self, paths: _Paths, rows: Floats) -> float:
        """Squared error because bins are not as they are taken to be, in a stratum or in all of them."""
        found = 0.0
        for sign in (1.0, -1.0):
            own = np.maximum(sign * rows, 0.0)
            found += _FORM_OF_ALL * float(own.sum()) ** 2
            found += _FORM * float((np.bincount(paths.stratum, own) ** 2).sum())
        return found

    def _in_bins(
        self,
        paths: _Paths,
        noise: Floats,
        alive: Integers | None = None,
        uncovered: Floats | None = None,
        features: tuple[int, ...] = (),
    ) -> float:
        """Squared error because nobody knows where in their bins rows lie, `noise` being the variance of each.

        Where places share bins, rows of one place lie on one side of a bin rather than all over it: of values of
        `features` the more, the more of them lie in one bin.
        """
        error = _RUNS * dot(paths.weight, noise)
        if self._path_place is not None:
            place = self._path_place if alive is None else self._path_place[alive]
            noise = noise if uncovered is None else noise * uncovered.take(paths.stratum)
            apart = np.bincount(place, paths.weight * np.sqrt(noise))
            gathered = [self._gathered(place, feature)[: apart.size] for feature in features]
            part = np.max(gathered, axis=0, initial=0.0) if gathered else math.sqrt(_APART / _GATHERED)
            error += _GATHERED * float(((apart * part) ** 2).sum())
        return error

    def _gathered(self, place: Integers, feature: int) -> Floats:
        """Places: the sum of the squared shares that bins have of their live rows."""
        self._live_key(feature)
        codes, bins = self._live_codes[feature].astype(np.int64), self._strata.bins
        there = codes < bins
        places = int(place.max(initial=-1)) + 1
        table = np.bincount(place[there] * bins + codes[there], self._mass[there], places * bins).reshape(-1, bins)
        total = table.sum(axis=1)
        return np.where(total > 0, (table**2).sum(axis=1) / np.where(total > 0, total, 1.0) ** 2, 1.0)

    @cached_property
    def _path_place(self) -> Integers | None:
        """Paths: the place of each, numbered; None where no stratum has several."""
        place, first = self._strata.run_place, np.zeros(self._strata.run_place.size, np.bool_)
        first[self._strata.run_offset[:-1]] = True
        if self._stray or not ((place[1:] != place[:-1]) & ~first[1:]).any():
            return None
        _, number = np.unique(self._strata.day_place[self._within], return_inverse=True)
        return np.repeat(number, self._days.kept)

    def _of_hours(self, paths: _Paths, influence: Floats, alive: Integers | None) -> float:
        """Squared error because nobody knows which rows of a cut day are in scope."""
        if self._path_part is None:
            return 0.0
        part = self._path_part if alive is None else self._path_part[alive]
        which = np.flatnonzero(part < 1.0)
        if not which.size:
            return 0.0
        size = paths.weight[which] * np.sqrt(1.0 / part[which] - 1.0)
        total = float(size.sum())
        return _HOURS**2 * total * dot(size, influence[which] ** 2) / 2

    @cached_property
    def _luck_reach(self) -> Floats:
        """The same where the paths' luck is taken out."""
        luck, days = self._luck, self._all_days
        if not luck.weight.size:
            return luck.weight
        unseen = 1.0 - np.bincount(days.stratum, days.kept, self._rows.size) / self._whole
        reach = luck.weight**2 * unseen.take(luck.stratum)
        inside = luck.weight + days.paths(days.weights(self._rows.size) * self._covered.take(days.stratum)).weight
        inside = np.where(inside > 1e-9, inside, 0.0)
        silent = np.bincount(luck.stratum, inside, self._rows.size) == 0.0
        if inside.any():  # they speak for strata without a path, too
            part, rows = inside / inside.sum(), self._rows[silent]
            reach = reach + rows.sum() ** 2 * part**2 + (rows**2).sum() * part
        return reach

    def _half(
        self,
        influence: Floats,
        noise: Floats,
        usual: float,
        luck: Floats | None = None,
        leant: float = 0.0,
        is_rank: bool = False,
        is_settled: bool = False,
        aside: Floats | None = None,
        present: NDArray[np.bool_] | Floats | None = None,
        features: tuple[int, ...] = (),
        tell: float | None = None,
    ) -> float:
        """Half the width of a statistic's interval, given by what a row like each live path would change it by.

        `noise` is the variance of that within its bins, `usual` its mean square without the condition. `luck` is the
        influence of all paths of the strata, where their luck was taken out of the statistic; `leant` the squared error
        if all rows of a fine bin in a stratum had one value; `aside` is the noise of which no side is foretold. Live
        paths that are not `present` tell nothing; `tell` is how many paths do.
        """
        paths, held = self._live
        mean = held * influence
        rest = np.maximum(held * (noise + influence * influence) - mean * mean, 0.0)
        reach, worth, uncovered = self._live_reach, self._worth if tell is None else tell, None
        if luck is None:
            chosen, freedom = differing(self._reach, self._spread_out(mean))
        else:
            chosen, freedom = differing(self._luck_reach, luck)
            uncovered = 1.0 - self._covered
            reach = reach * uncovered.take(paths.stratum)
        if present is not None:
            worth, reach = min(worth_of(self._mass * present), worth), reach * present
        chosen = (worth * chosen + _DOUBT * usual * dot(reach, held * held)) / (worth + _DOUBT)
        alive = None if paths is self._paths else self._alive
        together = 0.0
        if not self._anything:
            once, twice = self._joint
            together = abs(dot(paths.weight, twice * influence))
            together += dot(paths.weight, once * np.sqrt(noise if aside is None else aside))
        lumps = sum(dot(amount, influence[which]) ** 2 for which, amount in self._lumps)
        hours = self._of_hours(paths, mean, alive)
        in_bins = self._in_bins(paths, rest, alive, uncovered if is_settled else None, features)
        open_part = rest if is_rank else held * (1.0 - held) * influence**2
        sign = np.where((influence > 0.0) | is_rank, 1.0, -1.0)
        in_bins += self._formed(paths, sign * paths.weight * np.sqrt(open_part)) * (_RANKS if is_rank else 1.0)
        square = chosen + in_bins + hours + (_TOGETHER * together) ** 2 + LUMPS**2 * lumps
        square += _LEAN * leant
        return student(min(worth, freedom + 1.0) if chosen > 0 else worth) * math.sqrt(square)

    def correlation_p95(self, one: int, two: int) -> Interval:
        """Between which numbers the correlation lies, by Fisher's transformation."""
        pair = self._pair(one, two)
        r = pair.correlation
        if math.isnan(r) or not pair.x.size:
            return (-1.0, 1.0) if self._rows.size else (math.nan, math.nan)
        x, y = pair.x / math.sqrt(pair.square), pair.y / math.sqrt(pair.other)
        vx = _padded(self.of(one).noise).take(self._live_key(one)) / pair.square
        vy = _padded(self.of(two).noise).take(self._live_key(two)) / pair.other
        influence = _CORRELATED * (x * y - r * (x * x + vx + y * y + vy) / 2) * pair.present / pair.total
        noise = (vx * (y - r * x) ** 2 + vy * (x - r * y) ** 2 + vx * vy) * pair.present / pair.total**2
        about = {"aside": _PAIRED**2 * noise, "present": pair.present, "features": (one, two)}
        half = self._half(influence, noise, (1.0 - r * r) ** 2 / pair.total**2, **about)
        half /= max(1.0 - r * r, 1e-3)
        middle = math.atanh(min(max(r, -1 + 1e-9), 1 - 1e-9))
        unseen = math.atanh(min(max(r * (1.0 + pair.unseen), -1 + 1e-4), 1 - 1e-4)) - middle
        unseen = unseen if unseen * r > 0 else 0.0
        half = math.hypot(half, _LACKING * unseen)
        middle += unseen * max(pair.seen, 0.0) / 2
        lean = _TOWARDS_NOTHING * min(max(middle, -half), half)
        return within(r, math.tanh(middle - half - lean), math.tanh(middle + half - lean))

    def covariance_p95(self, one: int, two: int) -> Interval:
        """Between which numbers the covariance lies."""
        pair = self._pair(one, two)
        r = pair.correlation
        if not pair.total > 0:
            return math.nan, math.nan
        if not pair.x.size:
            most = math.sqrt(pair.square * pair.other)
            return within(pair.covariance, -most, most)
        vx = _padded(self.of(one).noise).take(self._live_key(one))
        vy = _padded(self.of(two).noise).take(self._live_key(two))
        x, y = pair.x, pair.y
        influence = _TAILS * (x * y - pair.covariance) * pair.present / pair.total
        noise = (vx * y * y + vy * x * x + vx * vy) * pair.present / pair.total**2
        about = {"aside": _PAIRED**2 * noise, "present": pair.present, "features": (one, two)}
        half, unseen = self._half(influence, noise, pair.square * pair.other / pair.total**2, **about), 0.0
        if not math.isnan(r):
            most = max(math.sqrt(pair.square * pair.other) - abs(pair.covariance), 0.0)
            unseen = min(max(pair.covariance * pair.unseen, -most), most)
        seen = max(pair.seen, 0.0) if unseen else 0.0
        middle, half = pair.covariance + unseen * seen / 2, math.hypot(half, _LACKING * unseen)
        return within(pair.covariance, middle - half, middle + half)


def _leaves(clause: Clause) -> list[Leaf]:
    """The leaves of a clause."""
    return [clause] if isinstance(clause, Leaf) else [leaf for part in clause.parts for leaf in _leaves(part)]


class _Pair(NamedTuple):
    """Two features where both are present."""

    total: float  #: rows
    covariance: float
    square: float  #: variances
    other: float
    within: float = 0.0  #: the part of the variances that lies within bins
    beyond: float = 0.0
    x: Floats = np.empty(0)  #: live paths: distances from the means; none where no path tells
    y: Floats = np.empty(0)
    present: NDArray[np.bool_] | Floats = np.empty(0)

    @property
    def unseen(self) -> float:
        """What a covariance lacks because values are taken to be the means of their bins, in parts of itself."""
        return 1.0 / max(self.seen, 1e-3) - 1.0

    @property
    def seen(self) -> float:
        """The part of a covariance that bins tell, if values go together in a straight line."""
        return (1.0 - self.within / self.square) * (1.0 - self.beyond / self.other)

    @property
    def correlation(self) -> float:
        """NaN where a feature does not vary."""
        spread = self.square * self.other
        return float(np.clip(self.covariance / math.sqrt(spread), -1, 1)) if spread > 0 else math.nan


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
    x, y = x - dot(weight, x) / total, y - dot(weight, y) / total
    return _Pair(total, dot(weight * x, y) / total, one.variance, two.variance)


def _padded(table: Floats) -> Floats:
    """A table of strata x bins with a column for absent values."""
    padded = np.zeros((table.shape[0], table.shape[1] + 1))
    padded[:, :-1] = table
    return padded


class _Same:
    """Scales, equal only to themselves."""

    def __init__(self, scales: Scales) -> None:
        self.scales = scales

    def __hash__(self) -> int:
        return id(self.scales)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.scales is self.scales


def _summing(table: Floats, wanted: Floats) -> Floats:
    """The table with rows that sum to others', whatever is below nothing."""
    found, sums = (np.maximum(each, 0.0).sum(axis=1, keepdims=True) for each in (table, wanted))
    return np.asarray(table * np.where(found > 0.0, sums / np.where(found > 0.0, found, 1.0), 1.0))


@lru_cache(maxsize=256)
def _axis(same: _Same, feature: int) -> MassAxis:
    return MassAxis.of(same.scales, feature)


@dataclass(frozen=True)
class Numbers:
    """The numbers of one feature: rows in every bin, and what their values are: strata x bins."""

    mass: Floats
    mean: Floats
    noise: Floats  #: the variance of the values in each bin
    share: Floats  #: how much of each bin the condition leaves
    bins: Bins
    ranges: Ranges  #: what the condition leaves of the feature
    estimates: Estimates
    feature: int

    @cached_property
    def count(self) -> float:
        """Rows that have the feature."""
        return float(self.mass.sum())

    @cached_property
    def sum(self) -> float:
        """SUM; 0 where there is nothing. The count of rows is better known than the paths' masses tell."""
        if not self.count > 0:
            return 0.0
        whole = self.estimates
        if whole._exact(self.feature) or not isinstance(whole._clause, Leaf) or self._unheard:
            return self.average * self.count
        return self.average * self.count * whole.count() / float(whole._mass.sum())

    @cached_property
    def average(self) -> float:
        """MEAN; NaN where there is nothing."""
        return float((self.mass * self.mean).sum() / self.count) if self.count > 0 else math.nan

    @cached_property
    def variance(self) -> float:
        """VARIANCE, of all rows; NaN where there is nothing."""
        if not self.count > 0:
            return math.nan
        return float((self.mass * (self.noise + (self.mean - self.average) ** 2)).sum() / self.count)

    @cached_property
    def deviation(self) -> float:
        """STD."""
        return math.sqrt(self.variance)

    def quantile(self, share: float) -> float:
        """QUANTILE of the mixture of all bins, found on the mass axis. Cost: a sort of the bins in use."""
        if not self.count > 0:
            return math.nan
        if share in (0.0, 1.0):
            return self.bins.axis.value(self._outermost(share))
        return self.bins.axis.value(float(interpolated(self._mixture, np.array([share]))[0]))

    def _outermost(self, share: float) -> float:
        """Where the least or the greatest value lies: as likely as not beyond it, or where rows are known to be."""
        whole, axis = self.estimates, self.bins.axis
        part = min(math.log(2.0) / self.count, 0.5)
        at = float(interpolated(self._mixture, np.array([part if share == 0.0 else 1.0 - part]))[0])
        known = (whole._counts(self.feature)[:, :-1] > 0) & (self.share >= 1.0) & (whole._covered >= 1.0)[:, None]
        if not whole._exact(self.feature) or not known.any():
            return at
        low, high = axis.mass[self.bins.starts[known]].min(), axis.mass[self.bins.ends[known]].max()
        return min(at, low) if share == 0.0 else max(at, high)

    @cached_property
    def _mixture(self) -> Mixture:
        used = self.mass > 0
        axis = self.bins.axis
        low, high = axis.mass[self.bins.starts[used]], axis.mass[self.bins.ends[used]]
        middle, mass, upper = (low + high) / 2, self.mass[used], 0.5 + self.bins.tilt[used] / 4
        pieces = [(low, middle, mass * (1 - upper)), (middle, high, mass * upper)]
        cut = self.bins.on_axis(self.ranges)
        if len(cut) == 1:  # a range that cuts a bin leaves some of its mass, all of it within the range
            pieces = [(np.maximum(low, cut[0][0]), np.minimum(high, cut[0][1]), mass)]
        begin, end, weight = (np.concatenate(part) for part in zip(*pieces, strict=True))
        return mixed(begin, np.maximum(end, begin), weight)

    # --- intervals ----------------------------------------------------------------------------------------------------

    def _taken(self, table: Floats) -> Floats:
        """Live paths: what a table of strata x bins says of their bins, 0 where absent."""
        return _padded(table).take(self.estimates._live_key(self.feature))

    @cached_property
    def _expected(self) -> Floats:
        """Strata x bins: rows that the exact counts alone lead to expect."""
        whole = self.estimates
        return whole._covered[:, None] * whole._counts(self.feature)[:, :-1] * self.share

    def _half(self, influence: Floats, noise: Floats, leaning: Floats, aside: Floats, *kind: bool) -> float:
        """Half the width of the interval of a statistic with these influences and their variances: strata x bins."""
        weight, whole, luck = self._expected, self.estimates, None
        total = weight.sum()
        usual = float((weight * (influence**2 + noise)).sum() / total) if total > 0 else 0.0
        if whole._exact(self.feature):
            luck = _padded(influence * self.share).take(whole._key(whole._luck, self.feature))
        part = min(self.count / total, 1.0) if total > 0 else 0.0
        leant = float((weight**2 * leaning).sum()) * part**2
        everyone, present = float(whole._mass.sum()), float(self._present.sum())
        usual *= present / everyone if everyone > 0 else 1.0
        known, own = (self._taken(influence), self._taken(noise), usual, luck, leant), self._taken(aside)
        return whole._half(*known, *kind, own, features=(self.feature,), tell=self._tell)

    @property
    def _present(self) -> Floats:
        """Live paths: the rows that they stand for, if they have the feature."""
        whole = self.estimates
        whole._live_key(self.feature)
        return whole._mass * (whole._live_codes[self.feature] < whole._strata.bins)

    @property
    def _tell(self) -> float:
        """How many paths tell anything: those that have the feature."""
        own = self._present
        return min(worth_of(own), self.estimates._worth) if (own > 0).any() else self.estimates._worth

    @cached_property
    def _extremes(self) -> Interval:
        """The lowest and the highest value that there may be, by the exact counts."""
        used = self._expected > 0.0
        if not used.any():
            return -math.inf, math.inf
        axis, low, high = self.bins.axis, -math.inf, math.inf
        if self.ranges:
            low, high = self.ranges[0][0], self.ranges[-1][1]
        lowest, highest = axis.low[self.bins.starts[used].min()], axis.high[self.bins.ends[used].max() - 1]
        return max(float(lowest), low), min(float(highest), high)

    @property
    def _unheard(self) -> bool:
        """Whether no path says anything: then all that is possible is in an interval."""
        whole = self.estimates
        return not whole._paths.weight.size or (whole._silent and not whole._exact(self.feature))

    def _sided(self, by: Floats, steepest: float = 1.0) -> float:
        """What a statistic is off by because rows that satisfy a condition lie on one side of their bins.

        Strata x bins: by how much it changes if a row moves by one deviation of its bin. No line is steeper than one
        that moves rows by so many.
        """
        rows = self._expected.sum(axis=0)
        there = np.flatnonzero(rows > 0)
        if self.estimates._exact(self.feature) or there.size < 2:
            return 0.0
        rows, rate = rows[there], self.mass.sum(axis=0)[there] / rows[there]
        middle = np.cumsum(rows) - rows / 2
        at = np.arange(there.size)
        low, high = np.maximum(at - 1, 0), np.minimum(at + 1, there.size - 1)
        change = (rate[high] - rate[low]) / (middle[high] - middle[low]) * rows / np.sqrt(12.0)
        most = np.maximum(np.minimum(rate, 1.0 - rate), 0.0) * steepest
        shift = (self._expected * by).sum(axis=0)[there]
        return _SIDES * float((np.clip(change, -most, most) * shift).sum())

    def _sides(
        self,
        estimate: float,
        influence: Floats,
        noise: Floats,
        leaning: Floats,
        by: Floats,
        aside: Floats | None = None,
        away: float = 0.0,
    ) -> Interval:
        """The interval of a statistic: either side by its error, one by what bins below nothing were cut off for, or by
        where in their bins the rows lie that are selected."""
        half = self._half(
            influence, noise, leaning, np.zeros(noise.shape) if aside is None else aside, False, aside is None
        )
        skew = self._skew(influence - away, by)  # how many rows there are is known
        reach = math.hypot(half, _UNSURE * skew)
        return estimate + _SKEWED * skew - reach, estimate + _SKEWED * skew + reach

    def _skew(self, influence: Floats, by: Floats, steepest: float = 1.0) -> float:
        if self.estimates._exact(self.feature):
            below = np.minimum(self.estimates._untouched(self.feature)[:, :-1], 0.0)
            return float((below * self.share * influence).sum())
        return self._sided(by, steepest)

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
        noise, leaning = (each / self.count**2 for each in (self.noise, self.bins.leaning))
        by = np.sqrt(self.noise) / self.count
        low, high = self._sides(self.average, (self.mean - self.average) / self.count, noise, leaning, by)
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
            by = np.sqrt(self.noise)
            low, high = self._sides(self.sum, self.mean, self.noise, self.bins.leaning, by, away=self.average)
            edge = whole._edge * abs(self.average)
            return low - edge, high + edge
        # A sum is a count times a mean, and their errors have little to do with each other.
        low, high = (abs(each - whole.count()) / whole.count() for each in whole.count_p95())
        held = self.count if whole._exact(self.feature) else float(whole._mass.sum())
        lacking = max(held - self.count, 0.0) / self.count / max(whole._worth, 1.0)
        absent = NORMAL * math.sqrt(lacking * max(1.0 - whole._worth / max(whole.count(), 1.0), 0.0))
        low, high = math.hypot(low, absent), math.hypot(high, absent)
        low, high = (low, high) if self.sum >= 0 else (high, low)
        means = (abs(each - self.average) * self.count for each in self.average_p95)
        down, up = (math.hypot(mean, side * self.sum) for mean, side in zip(means, (low, high), strict=True))
        return within(self.sum, self.sum - down, self.sum + up)

    @cached_property
    def variance_p95(self) -> Interval:
        """Between which numbers the variance lies."""
        if not self.count > 0:
            return math.nan, math.nan
        most = (self._extremes[1] - self._extremes[0]) ** 2 / 4
        if self._unheard or self.variance > most:
            return within(self.variance, 0.0, most)
        away = self.mean - self.average
        influence = _TAILS * (away**2 + self.noise - self.variance) / self.count
        noise, leaning = (
            (4 * away**2 * each + 2 * each**2) / self.count**2 for each in (self.noise, self.bins.leaning)
        )
        by, aside = 2 * away * np.sqrt(self.noise) / self.count, 2 * self.noise**2 / self.count**2
        low, high = self._sides(self.variance, influence, noise, leaning, by, aside)
        # Variances are off by a factor: what is a part below is as much above; if that is much, few rows make them.
        part = (self.variance - low) / self.variance if self.variance > 0 else math.inf
        return self.variance * max(min(1.0 / (1.0 + part), 1.0 - part / 1.5), 0.0) if self.variance > 0 else 0.0, high

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
        at = float(interpolated(self._mixture, np.array([share]))[0])
        left = self.bins.below(at)
        # Too many rows below: the quantile lies higher than it seems, and the other way round.
        influence, noise, nothing = (share - left) / self.count, left * (1 - left) / self.count**2, np.zeros(left.shape)
        skew = self._skew(influence, math.sqrt(3.0) * left * (1 - left) / self.count, 1.0 / math.sqrt(3.0))
        half = self._half(influence, noise, nothing, nothing, True, True)
        mixture, extreme = self._doubted
        extreme += 1e-9
        error = math.hypot(half / NORMAL, skew / 2 / NORMAL, self._lumped(mixture, share, at))
        middle, value = share + skew / 2, axis.value(at)

        def end(rank: float, extreme: float = extreme) -> float:
            wanted = np.clip([rank], extreme, 1.0 - extreme)
            return axis.value(float(interpolated(mixture, wanted)[0]))

        def tail(place: float, side: int) -> float:
            """How probable it is that the quantile lies further out than a value that is between those of the grid."""
            distance = side * (self._standing(mixture, axis.below(place, included=True)) - middle)
            return math.erfc(distance / error / math.sqrt(2.0)) / 2

        ends = {side: end(middle + side * NORMAL * error) for side in (-1, 1)}
        if axis.step and error > 0.0:
            # What one end has of the 5% left over, the other need not have; the further one comes first.
            left_over = 0.025
            for side in (-1, 1) if value - min(ends[-1], value) > max(ends[1], value) - value else (1, -1):
                found = end(middle - side * NormalDist().inv_cdf(left_over) * error)
                found = side * max(side * found, side * value)
                inner, outer = found - side * axis.step / 2, found + side * axis.step / 2
                beyond, own = tail(outer, side), tail(inner, side)
                if found != value and (beyond + own) / 2 < left_over:
                    standing = self._standing(mixture, axis.below(inner, included=True))
                    found, beyond = end(standing - side * 1e-9, 1e-9), own
                ends[side], left_over = side * max(side * found, side * value), max(0.05 - beyond, 0.005)
        return within(value, ends[-1], ends[1])

    @cached_property
    def _doubted(self) -> tuple[Mixture, float]:
        """The mixture as if one path more had been seen that is like all rows, where few were; and what is extreme."""
        total, tell = float(self._expected.sum()), self._tell
        if self.estimates._exact(self.feature) or not (total > 0 and 0 < tell < _FEW):
            return self._mixture, 0.0
        part = 1.0 / (tell + 1.0)
        mass = (1.0 - part) * self.mass + part * self._expected * (self.count / total)
        return replace(self, mass=mass)._mixture, _EXTREME * part

    @staticmethod
    def _standing(mixture: Mixture, place: float) -> float:
        """The share of the rows below a place on the mass axis."""
        ends, reached, _ = mixture
        return float(np.interp(place, ends, reached) / reached[-1])

    def _lumped(self, mixture: Mixture, share: float, place: float) -> float:
        """The error of a rank because rows of the fine bin that it lies in may have one value."""
        axis = self.bins.axis
        code = min(max(int(np.searchsorted(axis.mass, place, side="right")) - 1, 0), axis.low.size - 1)
        values = (axis.high[code] - axis.low[code]) / axis.step + 1.0 if axis.step else 2.0
        if axis.step and values < 2.5:
            return 0.0
        below, above = (self._standing(mixture, float(axis.mass[code + each])) for each in (0, 1))
        return LUMPS * math.sqrt(max((share - below) * (above - share), 0.0) * min(2.0 / values, 1.0))
