"""Series on their grids, and those beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import UTC
from synopsis.query.forecasts import Forecast, forecast
from synopsis.query.series import Beside, fenced_in, gridded

DAY, DAY_US = Bucket("d"), 86_400_000_000


def days(size: int, first: int = 0) -> np.ndarray:
    return (first + np.arange(size)) * DAY_US


def of(*series: Any, first: int = 0) -> Beside:
    return Beside.of([(days(len(each), first), each, np.ones(len(each))) for each in series], DAY)


def ahead(series: np.ndarray, beside: Beside | None, horizon: int = 10) -> Forecast:
    return forecast(days(series.size), series, np.ones(series.size), horizon, DAY, beside=beside)


def a_day_later(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise that lasts a little, and what it was a day before, with some of its own."""
    random = np.random.default_rng(seed)
    there = random.normal(0, 1, size + 1)
    for day in range(1, size + 1):
        there[day] += 0.3 * there[day - 1]
    return 20 + there[:-1] + random.normal(0, 0.2, size), 5 + 3 * there[1:]


def test_a_grid_has_every_bucket_and_gaps_are_nan_without_weight() -> None:
    times, series, weights = gridded([0, 3 * DAY_US, DAY_US], [1.0, 4.0, 2.0], [2, 4, 2], DAY, UTC)
    np.testing.assert_array_equal(times, np.arange(4))
    np.testing.assert_array_equal(series, [1, 2, np.nan, 4])
    np.testing.assert_array_equal(weights, [1, 1, 0, 1])


def test_values_far_outside_are_drawn_in_and_counted() -> None:
    series = np.append(np.linspace(0, 1, 100), [np.nan, 50.0])
    tame, number = fenced_in(series)
    assert number == 1
    assert tame[-1] < 5
    np.testing.assert_array_equal(tame[:100], series[:100])
    assert np.isnan(tame[100])


def test_what_is_elsewhere_a_day_before_is_foreseen() -> None:
    with_it, alone = [], []
    for seed in range(12):
        here, there = a_day_later(400, seed)
        came = here[399]
        with_it.append(ahead(here[:399], of(here[:399], there[:399])).values[0] - came)
        alone.append(ahead(here[:399], None).values[0] - came)
    assert np.mean(np.square(with_it)) < 0.3 * np.mean(np.square(alone))


def test_intervals_are_narrower_where_more_is_foreseen_and_still_hold() -> None:
    held, narrower = [], []
    for seed in range(40):
        here, there = a_day_later(300, seed)
        known, alone = ahead(here[:299], of(here[:299], there[:299])), ahead(here[:299], None)
        low, high = known.interval(0.9)
        held.append(low[0] <= here[299] <= high[0])
        narrower.append((high - low)[0] / np.subtract(*alone.interval(0.9)[::-1])[0])
    assert 0.75 <= np.mean(held) <= 1.0
    assert np.mean(narrower) < 0.6


def test_nothing_that_comes_later_elsewhere_is_looked_at() -> None:
    here, there = a_day_later(300, 1)
    later = there.copy()
    later[250:] += 1_000.0
    one, other = (ahead(here[:250], of(here, each)) for each in (there, later))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.errors, other.errors)


def test_units_of_other_places_do_not_matter() -> None:
    here, there = a_day_later(300, 2)
    one, other = (ahead(here, of(here, each)) for each in (there, 1e6 * there - 4e7))
    np.testing.assert_allclose(one.values, other.values, rtol=1e-8)


@pytest.mark.parametrize("beside", [Beside.of([], DAY), of(np.full(300, np.nan))])
def test_no_place_beside_is_as_none(beside: Beside) -> None:
    here, _ = a_day_later(300, 3)
    np.testing.assert_allclose(ahead(here, beside).values, ahead(here, None).values, rtol=1e-12)


@pytest.mark.parametrize("other", [np.full(300, 7.0), np.append(np.full(295, np.nan), np.arange(5.0))])
def test_a_place_that_tells_nothing_changes_nothing(other: np.ndarray) -> None:
    here, _ = a_day_later(300, 3)
    np.testing.assert_allclose(ahead(here, of(other)).values, ahead(here, None).values, rtol=1e-6)


def test_places_that_begin_later_or_end_earlier_are_taken_for_what_they_have() -> None:
    here, there = a_day_later(300, 4)
    beside = Beside.of([(days(150, 100), there[100:250], np.ones(150)), (days(300), here, np.ones(300))], DAY)
    found = ahead(here, beside)
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.interval(0.9)).all()


def test_far_ahead_other_places_tell_nothing() -> None:
    here, there = a_day_later(300, 5)
    near, alone = (ahead(here, beside, 30).values for beside in (of(here, there), None))
    assert abs(near - alone)[0] > 0.05
    assert abs(near - alone)[7:].max() < 0.05
