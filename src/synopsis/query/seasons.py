"""Seasons: what returns in a series, the day, the week and the year, and its trend.

A season counts as far as the series is long enough to show it. Effects are shrunk as James and Stein (1961) do, and a
trend is as strong as its evidence. What is left are anomalies, and how large these usually are has a season, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import MICROSECONDS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DAY_S: Final = 86_400
_YEAR_S: Final = 365.2425 * _DAY_S
_CYCLES: Final = 4  #: days or weeks that must have passed before they count as seasons
_WINDOWS: Final = (1, 2, 3, 7, 14, 30)  #: buckets back that anomalies are averaged over
_TOUCH: Final = 0.002  #: penalty on waves and trends, as a share of their own size
_TWICE: Final = 2.0  #: how often chance is subtracted from the effects of a season
_DOUBT: Final = 4.0  #: how often the squared standard error is subtracted from a squared trend
_SHARPEST: Final = 0.3  #: the least spread at a time of the year, as a share of the usual
_LEAST_SPREAD: Final = 1e-9  #: the least spread at all, as a share of the deviation


@dataclass(frozen=True, slots=True)
class Calendar:
    """How many buckets make a day and a year."""

    day: int  #: 0 where that is no whole number
    year: float

    @classmethod
    def of(cls, bucket: Bucket) -> Calendar:
        """The calendar of buckets of one length.

        >>> Calendar.of(Bucket("h", 6)), Calendar.of(Bucket("mo"))
        (Calendar(day=4, year=1460.97), Calendar(day=0, year=12.0))
        """
        if bucket.months is not None:
            return cls(0, 12 / bucket.months)
        width_s = bucket.width_us // MICROSECONDS
        return cls(_DAY_S // width_s if _DAY_S % width_s == 0 else 0, _YEAR_S / width_s)

    @property
    def season(self) -> int:
        """What a naive forecast repeats: a day, a week of days, a year of anything longer."""
        return self.day if self.day > 1 else 7 if self.day == 1 else max(round(self.year), 1)

    @property
    def windows(self) -> tuple[int, ...]:
        """Buckets back that anomalies are averaged over."""
        if self.day < 4:
            return _WINDOWS
        return tuple(sorted({1, 2, 3, self.day // 4, self.day, 3 * self.day, 7 * self.day}))

    def harmonics(self, spanned: int) -> int:
        """Waves of a year that a series of that many buckets tells: two from two years on, one from one."""
        return min(2 if spanned >= 2 * self.year else 1 if spanned >= self.year else 0, int(self.year / 2.5))

    def waves(self, times: Integers, count: int) -> Floats:
        """(buckets, 1 + 2 x count): a one, then cosine and sine of each wave."""
        angles = 2 * np.pi / self.year * np.outer(times, np.arange(1, count + 1))
        pairs = np.stack((np.cos(angles), np.sin(angles)), axis=2).reshape(times.size, 2 * count)
        return np.column_stack((np.ones(times.size), pairs))

    def part_of_day(self, times: Integers) -> Integers:
        return times % self.day

    def day_of_week(self, times: Integers) -> Integers:
        return times // self.day % 7


@dataclass(frozen=True)
class Regular:
    """What returns in a series, and its trend, told from its first buckets."""

    calendar: Calendar
    day: Floats  #: effects of the parts of a day; empty where there is no such season
    week: Floats  #: effects of the days of a week
    level: Floats  #: without a trend: the level, then cosine and sine of each wave of the year
    around: Floats  #: the same around the trend
    slope: float  #: a bucket
    spreads: Floats  #: usual size of anomalies: the level, and a wave of the year
    end: tuple[float, int]  #: the middle and the last of the buckets that this was told from

    @classmethod
    def of(cls, times: Integers, series: Floats, weights: Floats, calendar: Calendar) -> Regular:
        """Cost: a few passes, and a regression on at most six columns."""
        rest, known = series.copy(), np.isfinite(series)
        day = week = np.empty(0)
        if calendar.day > 1 and times.size >= _CYCLES * calendar.day:
            day = _effects(rest, calendar.part_of_day(times), calendar.day, calendar.day)
            rest = rest - day[calendar.part_of_day(times)]
        if calendar.day and times.size >= _CYCLES * 7 * calendar.day:
            days, means = _days(times // calendar.day, rest)  # the hours of a day are alike: seven days are seven
            week = _effects(means, days % 7, 7, 7)
            rest = rest - week[calendar.day_of_week(times)]
        waves = calendar.waves(times, calendar.harmonics(times.size))[known]
        end = (float(times[0] + times[-1]) / 2, int(times[-1]))
        passed = _passed(times, end)[known]
        rest, weighed = rest[known], weights[known]
        slope = _slope(waves, passed, rest, weighed)
        level, around = _ridge(waves, rest, weighed), _ridge(waves, rest - slope * passed, weighed)
        sizes = np.abs(rest - slope * passed - waves @ around)
        spreads = _ridge(waves[:, :3], sizes, weighed)
        spreads[0] = max(spreads[0], _LEAST_SPREAD * float(np.std(series[known])))  # a series without any anomaly
        return cls(calendar, day, week, level, around, slope, spreads, end)

    def at(self, times: Integers, trend: bool) -> Floats:
        """The regular part of each bucket, around the trend or without it."""
        found = self._waves(times, self.around if trend else self.level)
        if trend:
            found = found + self.slope * _passed(times, self.end)
        if self.day.size:
            found = found + self.day[self.calendar.part_of_day(times)]
        return found + self.week[self.calendar.day_of_week(times)] if self.week.size else found

    def spread(self, times: Integers) -> Floats:
        """How large anomalies usually are at that time of the year: winters are wilder than summers."""
        found: Floats = np.maximum(self._waves(times, self.spreads), _SHARPEST * self.spreads[0])
        return np.maximum(found, np.finfo(np.float64).tiny)

    def _waves(self, times: Integers, sizes: Floats) -> Floats:
        found: Floats = self.calendar.waves(times, sizes.size // 2) @ sizes
        return found


def _effects(series: Floats, parts: Integers, count: int, window: int) -> Floats:
    """How far the parts of a cycle lie from the mean around them, shrunk by as much as chance alone explains."""
    centred = np.append(series, np.full(window // 2, np.nan))
    off = series - recent_means(centred, (window,))[window // 2 :, 0]
    off[: window // 2], off[series.size - window // 2 :] = np.nan, np.nan
    known = np.isfinite(off)
    times = np.bincount(parts[known], minlength=count)
    if times.min() < 2:
        return np.zeros(count)
    effects = np.bincount(parts[known], off[known], minlength=count) / times
    effects -= effects.mean()
    chance = np.mean((off[known] - effects[parts[known]]) ** 2) * np.sum(1 / times)
    found = np.sum(effects**2)
    # James and Stein subtract chance once; twice, what is not there is nearly never found (measured).
    return effects * max(0.0, 1 - _TWICE * chance / found) if found > 0 else effects


def _days(days: Integers, series: Floats) -> tuple[Integers, Floats]:
    """Every day, and its mean or NaN."""
    known = np.isfinite(series)
    places = days - days[0]
    counts = np.bincount(places[known], minlength=int(places[-1]) + 1)
    sums = np.bincount(places[known], series[known], minlength=counts.size)
    return days[0] + np.arange(counts.size), np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _passed(times: Integers, end: tuple[float, int]) -> Floats:
    """Buckets since the middle; beyond the last, a trend tires: ever less of a bucket passes, a quarter in all."""
    middle, last = end
    tired = (last - middle) / 2 + 1
    beyond = np.maximum(times - last, 0)
    return np.minimum(times, last) - middle + tired * -np.expm1(-beyond / tired)


def _slope(waves: Floats, passed: Floats, values: Floats, weights: Floats) -> float:
    """The trend, a bucket, shrunk by its doubt; neighbours that are alike count as fewer."""
    both = np.column_stack((waves, passed))
    found = _ridge(both, values, weights)
    slope, left = float(found[-1]), values - both @ found
    variance = float(np.mean(left**2))
    if variance == 0 or slope == 0:
        return slope
    alike = min(max(float(np.mean(left[1:] * left[:-1])) / variance, 0.0), 0.97)
    doubt = variance * (1 + alike) / (1 - alike) / float(np.sum(passed**2))
    return slope * max(0.0, 1 - _DOUBT * doubt / slope**2)


def _ridge(columns: Floats, values: Floats, weights: Floats) -> Floats:
    """Weighted least squares with a touch of a penalty on all but the level, where columns tell the same."""
    weighed = columns * weights[:, None]
    squares = weighed.T @ columns
    penalty = np.append(0.0, _TOUCH * np.diag(squares)[1:])
    return np.asarray(np.linalg.solve(squares + np.diag(penalty), weighed.T @ values), dtype=np.float64)


def recent_means(series: Floats, windows: tuple[int, ...]) -> Floats:
    """(buckets, windows): the mean of the last few values; where there is none, that of the next longer window.

    >>> recent_means(np.array([1.0, np.nan, 4.0]), (1, 2))
    array([[1., 1.],
           [1., 1.],
           [4., 4.]])
    """
    known = np.isfinite(series)
    sums = np.concatenate(([0.0], np.cumsum(np.where(known, series, 0.0))))
    counts = np.concatenate(([0], np.cumsum(known)))
    last = np.arange(1, series.size + 1)
    found, wider = np.empty((series.size, len(windows))), np.zeros(series.size)
    for column in range(len(windows) - 1, -1, -1):
        first = np.maximum(last - windows[column], 0)
        number = counts[last] - counts[first]
        wider = np.where(number > 0, (sums[last] - sums[first]) / np.maximum(number, 1), wider)
        found[:, column] = wider
    return found
