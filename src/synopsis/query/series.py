"""Series: means of buckets on their grid, and those of other places beside them.

What comes to a place is often elsewhere before, as weather is, so a forecast may look there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import UTC, Zone
from synopsis.query.seasons import Calendar, Floats, Integers, Regular, recent_means

_FENCE: Final = 3.0  #: ranges between the 5% and 95% quantiles beyond them, outside of which values are drawn in
_LEAST: Final = 14  #: buckets with values that another place needs


def gridded(
    starts_us: ArrayLike, values: ArrayLike, counts: ArrayLike, bucket: Bucket, zone: Zone
) -> tuple[Integers, Floats, Floats]:
    """Every bucket from the first to the last: its ordinal, its value or NaN, and how much that weighs."""
    given, numbers = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    ordinals = bucket.ordinals(starts_us, zone)
    if not ordinals.size:
        return ordinals, given, numbers
    there = np.isfinite(given) & (numbers > 0)
    times = np.arange(ordinals.min(), ordinals.max() + 1)
    series, weights = np.full(times.size, np.nan), np.zeros(times.size)
    places = (ordinals - times[0])[there]
    series[places] = given[there]
    if there.any():  # the mean of few values is less certain; that of many is as uncertain as the weather
        weights[places] = np.minimum(numbers[there] / np.median(numbers[there]), 1.0)
    return times, series, weights


def fenced_in(series: Floats) -> tuple[Floats, int]:
    """Values far outside drawn in to a fence, so that one wrong value bends no season; and how many there were."""
    low, high = np.nanquantile(series, (0.05, 0.95))
    if low == high:  # mostly one value, as of rain: nothing tells what is far outside
        return series, 0
    reach = _FENCE * (high - low)
    tame = np.clip(series, low - reach, high + reach)
    return tame, int(np.sum(np.isfinite(series) & (tame != series)))


@dataclass(frozen=True, eq=False)
class Beside:
    """Series of other places, on one grid of buckets: what comes here is often there before."""

    times: Integers
    series: Floats  #: (places, buckets), NaN where there is no value
    weights: Floats
    calendar: Calendar
    _found: dict[tuple[int, int, int], tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, series: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]], bucket: Bucket, zone: Zone = UTC) -> Beside:
        """Of starts, values and counts of each place, as `forecast` takes them; places without values are left out."""
        grids = [gridded(*each, bucket, zone) for each in series]
        grids = [grid for grid in grids if np.isfinite(grid[1]).any()]
        first = min((int(times[0]) for times, _, _ in grids), default=0)
        last = max((int(times[-1]) for times, _, _ in grids), default=-1)
        values, weights = (np.full((len(grids), last + 1 - first), empty) for empty in (np.nan, 0.0))
        for place, (times, own, weighed) in enumerate(grids):
            at = slice(int(times[0]) - first, int(times[-1]) + 1 - first)
            values[place, at], weights[place, at] = own, weighed
        return cls(np.arange(first, last + 1), values, weights, Calendar.of(bucket))

    def latest(self, times: Integers, used: int) -> tuple[Floats, Floats]:
        """(buckets, places), twice: the latest anomalies, from the seasons and from where they were of late.

        In deviations; seasons are told from the first `used` buckets of `times`, and those of a place that has hardly a
        value there are not: it has zeros. Cost: a fit of seasons for each place, once for the same buckets.
        """
        key = (int(times[0]), times.size, used)
        if key not in self._found:
            nothing = np.zeros((times.size, 0))
            pairs = [(nothing, nothing), *(self._of_place(place, times, used) for place in range(len(self.series)))]
            usual, of_late = (np.column_stack(each) for each in zip(*pairs, strict=True))
            self._found[key] = usual, of_late
        return self._found[key]

    def _of_place(self, place: int, times: Integers, used: int) -> tuple[Floats, Floats]:
        there = (times >= self.times[0]) & (times <= self.times[-1])
        series, weights = np.full(times.size, np.nan), np.zeros(times.size)
        at = times[there] - self.times[0]
        series[there], weights[there] = self.series[place, at], self.weights[place, at]
        if np.isfinite(series[:used]).sum() < _LEAST:
            return np.zeros(times.size), np.zeros(times.size)
        series, _ = fenced_in(series)
        regular = Regular.of(times[:used], series[:used], weights[:used], self.calendar)
        anomalies = series - regular.at(times, trend=False)
        deviation = float(np.nanstd(anomalies[:used]))
        windows = self.calendar.windows
        now, of_late = recent_means(anomalies / (deviation or 1.0), (windows[0], windows[-1])).T
        return now, now - of_late
