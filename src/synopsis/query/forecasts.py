"""Forecasts: the next buckets of a series of means, with intervals that its own past has tested.

A series is parted into what returns (seasons of the day, the week and the year, as far as it is long enough to show
them), a trend as strong as its evidence, and what is left, the anomalies. Two views tell how anomalies go on, and the
forecast lies between them: one expects them to return to the trend, the other to stay near where they were of late.
Both are regressions of the anomaly k buckets ahead on means over the last 1, 2, 3, 7, ... buckets, one for each k, as
in Corsi's heterogeneous autoregression (2009). Where series of other places are known, the next few buckets are
regressed on the latest anomalies there, too: weather travels, and means of a sketch that err each by itself err less
together.

Intervals suppose no distribution. The same procedure is run on earlier parts of the series, and the errors that it made
there, k buckets ahead, are the errors to expect: conformal prediction, as far as the future is like the past. Errors
are measured in units of how much anomalies spread at that time of the year, and grow with what is expected as they did
before: of dust, a high forecast is off by more than a low one.

Dry days have exactly the least value that there can be. How often that came after such expectations tells its chance:
from a half on it is the forecast. An interval that begins there leaves out nothing below, and so all of it above.

benches/forecast.py measures it, and tells what else was tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from synopsis.core.errors import BadQuery
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import UTC, Zone
from synopsis.query.seasons import Calendar, Regular, recent_means
from synopsis.query.series import Beside, fenced_in, gridded

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST: Final = 14  #: buckets with values that a forecast needs
LEAST_EACH: Final = 2  #: buckets with values that it needs for each bucket ahead
LEAST_SHARE: Final = 0.05  #: of all buckets that must have values
NEAR: Final = 7  #: buckets ahead that other places are asked about

_RECENT: Final = 3_000  #: buckets that regressions of anomalies, and rehearsals, look back
_ENOUGH: Final = 20_000  #: errors that an interval is read from; of more, every so many are taken
_FOLDS: Final = 6  #: earlier ends of the series at which the procedure is fitted anew
_START: Final = 8  #: buckets before the first of these ends
_RIDGE: Final = 0.02  #: of the variance of anomalies, as a penalty on the weights of recent means
_PRIOR: Final = 20  #: buckets that this penalty counts at least
_ELSEWHERE: Final = 4.0  #: how much more these are penalised, for each bucket ahead
_LEAST_PENALTY: Final = 1e-12  #: of the recent means' own squares, so that there is one solution where all is alike
_SHARPEST: Final = 0.3  #: the least size of errors at a level, as a share of the usual
_FEW: Final = 100  #: errors below which both directions are taken to be alike
_CAUTION: Final = 0.5  #: intervals widen by this over the number of errors that do not overlap
_HARDLY: Final = 5.0  #: errors that do not overlap, with which half of how sizes follow the level is believed
_ROUNDING: Final = 1e-6  #: of the largest value; what lies below 0 by less is 0


@dataclass(frozen=True, slots=True)
class Fit:
    """How well the same procedure did on earlier parts of the series; NaN where nothing tells."""

    explained: float  #: the share of variance explained one bucket ahead: 1 is all, below 0 worse than the mean
    skill: float  #: 1 - absolute error / that of the value a season before, over all buckets ahead: above 0 is better


@dataclass(frozen=True, eq=False)
class Forecast:
    """The next buckets of a series; `interval` tells how far off they may be."""

    starts_us: Integers  #: first instants of the buckets
    values: Floats  #: as likely exceeded as not
    means: Floats  #: of what may come
    fit: Fit
    said: tuple[str, ...]  #: sentences: what the forecast builds on
    errors: Floats  #: (times, buckets ahead): earlier errors in units of `spreads`, NaN where no value came
    expected: Floats  #: (times, buckets ahead): the values that had been forecast then
    spreads: Floats
    least: float  #: below which no value is expected
    chances: Floats  #: that it is exactly this
    unsure: float  #: the usual standard error of the values of the series themselves

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Lows and highs that hold each value with that chance, as far as the future is like the past.

        As many values lie below as above, but where the low is the least that there can be: none do. There the high is
        the quantile at `level`. Cost: a sort of about half of the errors for each bucket ahead.
        """
        if not 0 < level < 1:
            raise ValueError(f"the level of an interval lies between 0 and 1, as 0.9 does, not {level}")
        shares = ((1 - level) / 2, level, (1 + level) / 2)
        found = [_off(self.errors, self.expected, self.means, ahead, shares) for ahead in range(self.means.size)]
        wider = np.array([widened for _, widened in found])
        below, above_all, above = np.array([off for off, _ in found]).T
        beside = NormalDist().inv_cdf((1 + level) / 2) * self.unsure
        low = self.means - np.hypot(np.minimum(below * wider, 0.0) * self.spreads, beside)
        at_least = (low <= self.least) | (self.chances >= shares[0])
        above = np.where(at_least, above_all, above)
        high = self.means + np.hypot(np.maximum(above * wider, 0.0) * self.spreads, beside)
        return np.where(at_least, self.least, low), np.maximum(high, self.values)


def forecast(
    starts_us: ArrayLike,
    values: ArrayLike,
    counts: ArrayLike,
    horizon: int,
    bucket: Bucket,
    zone: Zone = UTC,
    errors: ArrayLike = 0.0,
    beside: Beside | None = None,
) -> Forecast:
    """The `horizon` buckets after the last one of a series, which may have gaps: buckets left out, NaN, or of 0 values.

    `errors` are standard errors of the values, where these are estimates: intervals are of the truth, and widen by
    them. Estimates are smoother than the truth, so that their own past does not tell it. `beside` are series of other
    places, of which no bucket after the last one of this series is looked at.
    Cost: seven fits, each of about 40 x (n + horizon x min(n, 3,000)) multiplications; 15 ms for 30 after n = 1,000,
    and as much again with eight places beside.

    >>> days = np.arange(140)
    >>> found = forecast(days * 86_400_000_000, 20 + 5.0 * (days % 7 == 6), np.ones(140), 7, Bucket("d"))
    >>> found.values.round()
    array([20., 20., 20., 20., 20., 20., 25.])
    >>> found.said[0]
    'seasons: week'
    """
    times, series, weights = gridded(starts_us, values, counts, bucket, zone)
    known = series[np.isfinite(series)]
    _refuse(known.size, times.size, horizon, bucket)
    ahead = times[-1] + 1 + np.arange(horizon)
    starts = bucket.starts_us(ahead, zone)
    squared = np.square(np.asarray(errors, dtype=np.float64))
    unsure = float(np.sqrt(np.mean(squared[np.isfinite(squared)]))) if np.isfinite(squared).any() else 0.0
    if known.min() == known.max():
        said = (f"every value so far is {known[0]:g}, and so is the forecast: nothing tells how it may change",)
        nothing, same = np.zeros((1, horizon)), np.full((1, horizon), known[0])
        return Forecast(
            starts, same[0], same[0], Fit(1.0, 0.0), said, nothing, same, nothing[0], -np.inf, nothing[0], unsure
        )
    calendar = Calendar.of(bucket)
    tame, fenced = fenced_in(series)
    known_so_far = _Known(times, tame, weights, calendar, beside)
    regular, views = known_so_far.views(times.size, horizon)
    rehearsal = Rehearsal.of(known_so_far, series, horizon, regular.spread(times))
    shares = rehearsal.shares
    least = 0.0 if known.min() >= 0 else -np.inf
    expected = sum(share * view.ahead(np.array([times.size - 1]))[0] for share, view in zip(shares, views, strict=True))
    means, spreads = np.maximum(expected, least), regular.spread(ahead)
    past = np.maximum(np.tensordot(shares, rehearsal.views, 1), least)
    off = (rehearsal.came - past) / rehearsal.spreads
    middle = np.array([_off(off, past, means, bucket_ahead, (0.5,))[0][0] for bucket_ahead in range(horizon)])
    it_came = rehearsal.came <= least + _ROUNDING * float(known.max())
    chances = np.array([_chance(it_came, off, past, means, bucket_ahead) for bucket_ahead in range(horizon)])
    return Forecast(
        starts,
        np.where(chances >= 0.5, least, np.maximum(means + middle * spreads, least)),
        means,
        rehearsal.fit(past, np.maximum(past + middle * rehearsal.spreads, least)),
        _sentences(regular, fenced, times.size - known.size),
        off,
        past,
        spreads,
        least,
        chances,
        unsure,
    )


def levelled(values: ArrayLike, counts: ArrayLike, spans: ArrayLike, means: ArrayLike) -> Floats:
    """Values shifted so that together they have the means that are known of longer spans.

    A sketch tells a month better than its days, whose estimates lean towards the usual: without this, seasons are too
    flat. Where no value is below 0, dry days stay dry: values of a span that is too high are scaled instead, and of one
    that is too low those above 0 are shifted, if there are any. `spans` number the `means`. A span without values or
    mean stays as it is. Cost: a few passes.

    >>> levelled([1.0, 3.0, 5.0], [1, 1, 2], [0, 0, 1], [4.0, np.nan])
    array([3., 5., 5.])
    >>> levelled([0.0, 4.0, 5.0], [1, 1, 2], [0, 0, 1], [1.0, 6.0])
    array([0., 2., 6.])
    >>> levelled([0.0, 4.0, 5.0], [1, 1, 2], [0, 0, 1], [3.0, 6.0])
    array([0., 6., 6.])
    """
    given, numbers = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    within, wanted = np.asarray(spans, dtype=np.int64), np.asarray(means, dtype=np.float64)
    there = np.isfinite(given) & (numbers > 0)
    rounding = _ROUNDING * float(given[there].max()) if there.any() else 0.0
    never = there.any() and given[there].min() >= -rounding
    if never:
        given, wanted = (np.where(each <= rounding, 0.0, each) for each in (given, wanted))
    sums = np.bincount(within[there], (given * numbers)[there], minlength=wanted.size)
    weights = np.bincount(within[there], numbers[there], minlength=wanted.size)
    known = (weights > 0) & np.isfinite(wanted)
    means_now = sums / np.where(known, weights, 1.0)
    scaled = known & never & (means_now > wanted)
    factors = np.where(scaled, wanted / np.where(scaled, means_now, 1.0), 1.0)
    wet = np.bincount(within[there], (numbers * (given > 0))[there], minlength=wanted.size)
    bearing = np.where(wet > 0, wet, weights) if never else weights
    shifts = np.where(known & ~scaled, (wanted - means_now) * weights / np.where(known, bearing, 1.0), 0.0)
    dry = never & (given == 0) & (wet > 0)[within]
    return np.asarray(given * factors[within] + np.where(dry, 0.0, shifts[within]), dtype=np.float64)


def _refuse(known: int, spanned: int, horizon: int, bucket: Bucket) -> None:
    if horizon < 1:
        raise BadQuery(f"a forecast is of 1 bucket or more, not {horizon}; ask for example FORECAST(x, '{bucket}')")
    if known < LEAST:
        raise BadQuery(
            f"a forecast needs {LEAST} buckets of {bucket} with values and there are {known}; "
            "ask for more time, a larger place or shorter buckets"
        )
    if known < LEAST_EACH * horizon:
        raise BadQuery(
            f"{known} buckets of {bucket} with values tell at most {known // LEAST_EACH} ahead, not {horizon}; "
            "forecast less far, or ask for more time"
        )
    if known < LEAST_SHARE * spanned:
        raise BadQuery(
            f"only {known} of {spanned} buckets of {bucket} have values, which does not tell what follows what; "
            "ask for longer buckets or a larger place"
        )


def _sentences(regular: Regular, fenced: int, missing: int) -> tuple[str, ...]:
    seasons = [name for name in ("day", "week") if getattr(regular, name).any()]
    seasons += ["year"] if regular.level.size > 1 else []
    said = [f"seasons: {', '.join(seasons)}" if seasons else "no season was found"]
    if regular.slope:
        said.append(f"trend: {regular.slope:+.3g} a bucket, which tires ahead")
    if regular.calendar.year >= 2 and regular.level.size == 1:
        said.append("less than a year is known: a season of the year would be missed")
    if missing:
        said.append(f"buckets without values: {missing}")
    if fenced:
        said.append(f"values far outside the others, drawn in before fitting: {fenced}")
    return tuple(said)


# --- anomalies --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """How anomalies go on: from each bucket, the ones ahead."""

    regular: Floats  #: of all buckets and those ahead of the last
    level: Floats  #: that anomalies are measured from, as known in each bucket
    means: Floats  #: (buckets, windows and places): recent anomalies from there, and the latest of other places
    slopes: Floats  #: (windows and places, buckets ahead)

    @classmethod
    def of(
        cls,
        regular: Floats,
        series: Floats,
        used: int,
        windows: tuple[int, ...],
        horizon: int,
        stay: bool,
        elsewhere: Floats | None = None,
    ) -> View:
        """Told from the first `used` buckets; anomalies return to nothing or `stay` where they were of late.

        `elsewhere` (buckets, places) are the latest anomalies of other places, in deviations.
        """
        anomalies = series - regular[: series.size]
        means = recent_means(anomalies, tuple(window for window in windows if 4 * window <= used) or (1,))
        level = means[:, -1].copy() if stay else np.zeros(series.size)
        if stay:
            means = means[:, :-1] - level[:, None]
        recent = slice(max(used - _RECENT, 0), used)
        slopes = _regressed(means[recent], anomalies[recent], level[recent], horizon)
        if elsewhere is not None:
            own, near = means.shape[1], min(horizon, NEAR)
            means = np.column_stack((means, elsewhere * float(np.nanstd(anomalies[recent]))))
            slopes = np.concatenate((slopes, np.zeros((elsewhere.shape[1], horizon))))
            slopes[:, :near] = _regressed(means[recent], anomalies[recent], level[recent], near, own)
        return cls(regular, level, means, slopes)

    def ahead(self, origins: Integers) -> Floats:
        """(origins, buckets ahead): what is expected, seen from each bucket."""
        later = origins[:, None] + 1 + np.arange(self.slopes.shape[1])
        expected: Floats = self.regular[later] + self.level[origins, None] + self.means[origins] @ self.slopes
        return expected


def _regressed(means: Floats, anomalies: Floats, level: Floats, horizon: int, own: int | None = None) -> Floats:
    """(windows, buckets ahead): the weights of recent means for each bucket ahead, by ridge regressions all at once.

    From the column `own` on, means are of other places, whose penalty grows with the number of buckets ahead.
    """
    later = sliding_window_view(np.append(anomalies[1:], np.full(horizon, np.nan)), horizon)
    known = np.isfinite(later)
    wanted = np.where(known, later - level[:, None], 0.0)
    width = means.shape[1]
    products = (means[:, :, None] * means[:, None, :]).reshape(-1, width * width)
    squares = (known.T.astype(np.float64) @ products).reshape(horizon, width, width)
    penalty = _RIDGE * float(np.nanvar(anomalies)) * (known.sum(0) + _PRIOR) + np.finfo(np.float64).tiny
    penalty = penalty + _LEAST_PENALTY * np.trace(squares, axis1=1, axis2=2)
    farther = np.ones((horizon, width))
    farther[:, own or width :] = _ELSEWHERE * np.arange(1, horizon + 1)[:, None]
    penalties = (penalty[:, None] * farther)[:, :, None] * np.eye(width)
    found = np.linalg.solve(squares + penalties, (wanted.T @ means)[:, :, None])
    return np.asarray(found[:, :, 0].T, dtype=np.float64)


# --- the past as a test -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
    """A series on its grid, and those beside it."""

    times: Integers
    tame: Floats
    weights: Floats
    calendar: Calendar
    beside: Beside | None

    def views(self, used: int, horizon: int) -> tuple[Regular, tuple[View, View]]:
        """What the first `used` buckets tell: one view around the trend, one that stays near the latest level."""
        times, calendar = self.times, self.calendar
        regular = Regular.of(times[:used], self.tame[:used], self.weights[:used], calendar)
        every = np.arange(times[0], times[-1] + 1 + horizon)
        elsewhere = (None, None) if self.beside is None else self.beside.latest(times, used)
        returning, staying = (
            View.of(regular.at(every, not stay), self.tame, used, calendar.windows, horizon, stay, latest)
            for stay, latest in zip((False, True), elsewhere, strict=True)
        )
        return regular, (returning, staying)


@dataclass(frozen=True)
class Rehearsal:
    """What the same procedure would have said before, beside what came: (origins, buckets ahead)."""

    came: Floats
    views: Floats  #: (views, origins, buckets ahead)
    naive: Floats  #: the value a season before
    spreads: Floats  #: NaN beyond the series

    @classmethod
    def of(
        cls,
        known: _Known,
        series: Floats,
        horizon: int,
        spreads: Floats,
    ) -> Rehearsal:
        """Fit at a few ends in the second half of the values, and forecast from each bucket until the next end."""
        size, seen = series.size, np.cumsum(np.isfinite(series))
        half = int(np.searchsorted(seen, max(seen[-1] // 2, _START))) + 1
        ends = np.unique(np.linspace(max(half, size - _RECENT), size - 1, _FOLDS + 1).astype(np.int64))
        views, origins = [], []
        for used, until in pairwise(ends):
            _, (returning, staying) = known.views(int(used), horizon)
            froms = np.arange(used - 1, until - 1)
            views.append(np.stack((returning.ahead(froms), staying.ahead(froms))))
            origins.append(froms)
        froms = np.concatenate(origins)
        ahead = np.arange(1, horizon + 1)
        nothing, later = np.full(horizon, np.nan), froms[:, None] + ahead
        came, units = (np.append(each, nothing)[later] for each in (series, spreads))
        season = known.calendar.season
        seasons_back = -(-ahead // season) * season
        before = later - seasons_back
        naive = np.where(before >= 0, known.tame[np.maximum(before, 0)], np.nan)
        return cls(came, np.concatenate(views, axis=1), naive, units)

    @property
    def shares(self) -> Floats:
        """How much each view counts: the worse one the less, by its mean squared error squared."""
        known = np.isfinite(self.came)
        if not known.any():
            return np.full(2, 0.5)
        errors = np.array([np.mean(((view - self.came) / self.spreads)[known] ** 2) for view in self.views])
        worth = errors[::-1] ** 2 + np.finfo(np.float64).tiny
        shares: Floats = worth / worth.sum()
        return shares

    def fit(self, means: Floats, medians: Floats) -> Fit:
        """How good forecasts were."""
        variance = np.nanvar(self.came[:, 0]) if np.isfinite(self.came[:, 0]).any() else 0.0
        both = np.isfinite(self.came) & np.isfinite(self.naive)
        usual = np.mean(np.abs(self.came - self.naive)[both]) if both.any() else 0.0
        return Fit(
            float(1 - np.nanmean((self.came - means)[:, 0] ** 2) / variance) if variance > 0 else np.nan,
            float(1 - np.mean(np.abs(self.came - medians)[both]) / usual) if usual > 0 else np.nan,
        )


def _off(
    errors: Floats, expected: Floats, means: Floats, ahead: int, shares: tuple[float, ...]
) -> tuple[Floats, float]:
    """By how much values so many buckets ahead lie above their mean: quantiles, in units of spread.

    Errors of nearly the same number of buckets ahead are pooled. Those of forecasts that overlap tell much the same, so
    that few of them are few indeed: also, by how much an interval is to be widened for that.
    """
    near, there = _pooled(errors, ahead)
    known, apart = near[there], _apart(errors, ahead)
    size = 1.0
    if known.size >= _FEW:
        sizes, size = _sizes(known, _pooled(expected, ahead)[0][there], float(means[ahead]), apart)
        known = known / sizes
    elif known.size == 0:  # a series so short that nothing came that far ahead: take all, and be cautious
        known = errors[np.isfinite(errors)]
    if known.size < _FEW:
        known = np.concatenate((known, -known))
    return np.quantile(known, shares, method="weibull") * size, 1 + _CAUTION / apart


def _chance(it_came: NDArray[np.bool_], errors: Floats, expected: Floats, means: Floats, ahead: int) -> float:
    """The chance of the least value so many buckets ahead: a line through how often it came by what was expected.

    By its rank, not its level: a forecast far above all others says little more than one above most.
    """
    _, there = _pooled(errors, ahead)
    came, before = (_pooled(each, ahead)[0][there] for each in (it_came, expected))
    if came.size < _FEW or not came.any():
        return 0.0
    often, order = came.astype(np.float64), np.sort(before)
    every = np.append(before, means[ahead])
    ranks = (np.searchsorted(order, every, "left") + np.searchsorted(order, every, "right")) / 2
    slope, _, here = _line(often, ranks[:-1], float(ranks[-1]), _apart(errors, ahead))
    return min(max(float(often.mean()) + slope * here, 0.0), 1.0)


def _sizes(errors: Floats, expected: Floats, value: float, apart: float) -> tuple[Floats, float]:
    """How large errors were by what was expected, beside the usual size, and how large that of `value` should be."""
    usual = float(np.abs(errors).mean())
    if usual == 0:
        return np.ones(errors.size), 1.0
    slope, levels, here = _line(np.abs(errors) / usual, expected, value, apart)
    return np.maximum(1 + slope * levels, _SHARPEST), max(1 + slope * here, _SHARPEST)


def _line(numbers: Floats, expected: Floats, value: float, apart: float) -> tuple[float, Floats, float]:
    """How numbers grow with what was expected, as steeply as so many of them that lie `apart` make likely.

    Also the levels of what was expected, in deviations from its mean, and that of `value`, no further out than these.
    """
    deviation = float(expected.std())
    if deviation == 0:
        return 0.0, np.zeros(numbers.size), 0.0
    levels = (expected - expected.mean()) / deviation
    slope = float(levels @ numbers) / numbers.size * apart / (apart + _HARDLY)
    here = min(max((value - float(expected.mean())) / deviation, float(levels.min())), float(levels.max()))
    return slope, levels, here


def _pooled(numbers: NDArray[Any], ahead: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Numbers of nearly so many buckets ahead, so many of the times as are enough, and which of them are known."""
    near = numbers[:, max(ahead - ahead // 4, 0) : ahead + ahead // 4 + 1]
    near = near[:: near.size // _ENOUGH | 1]  # odd, which meets every hour of the day
    return near, np.isfinite(near)


def _apart(errors: Floats, ahead: int) -> float:
    """How many earlier errors so many buckets ahead do not overlap."""
    return max(float(np.isfinite(errors[:, ahead]).sum()) / (ahead + 1), 1.0)
