"""Seasons and trends of generated series, apart from what follows them."""

from __future__ import annotations

import numpy as np

from synopsis.grid.buckets import Bucket
from synopsis.query.seasons import Calendar, Regular

DAYS = Calendar.of(Bucket("d"))


def regular(series: np.ndarray, calendar: Calendar = DAYS) -> Regular:
    return Regular.of(np.arange(series.size), series, np.ones(series.size), calendar)


def test_what_a_naive_forecast_repeats_is_a_day_a_week_or_a_year() -> None:
    seasons = [Calendar.of(bucket).season for bucket in (Bucket("h"), Bucket("d"), Bucket("w"), Bucket("mo"))]
    assert seasons == [24, 7, 52, 12]


def test_a_year_has_waves_once_it_has_passed() -> None:
    assert [DAYS.harmonics(days) for days in (364, 366, 730, 731, 5_000)] == [0, 1, 1, 2, 2]
    assert Calendar.of(Bucket("mo", 6)).harmonics(100) == 0


def test_effects_of_a_week_are_those_that_the_series_has() -> None:
    effects = np.array([0.0, 0, 0, 0, 0, 3, 4]) - 1
    found = regular(20 + effects[np.arange(140) % 7])
    np.testing.assert_allclose(found.week, effects, atol=1e-9)
    assert found.slope == 0 or abs(found.slope) < 1e-6


def test_chance_is_no_week_and_no_trend() -> None:
    random = np.random.default_rng(1)
    found = [regular(random.normal(0, 1, 300)) for _ in range(40)]
    assert np.mean([each.week.any() for each in found]) < 0.1
    assert np.mean([each.slope != 0 for each in found]) < 0.2


def test_a_trend_tires_beyond_the_end() -> None:
    found = regular(5 + 0.1 * np.arange(200))
    near, far, farther = found.at(np.array([199, 209, 2_000]), trend=True)
    assert 0.8 < far - near < 1.0
    assert farther - near < 0.1 * 200 / 4 + 0.1


def test_the_regular_part_has_the_seasons_with_and_without_the_trend() -> None:
    days = np.arange(800)
    series = 15 + 10 * np.cos(days / 365.2425 * 2 * np.pi)
    found = regular(series)
    for trend in (True, False):
        np.testing.assert_allclose(found.at(days, trend), series, atol=0.2)


def test_spreads_follow_the_year() -> None:
    days = np.arange(1_461)
    wild = 2 + np.cos(days / 365.2425 * 2 * np.pi)
    found = regular(np.random.default_rng(1).normal(0, wild))
    winter, summer = found.spread(np.array([1_461, 1_461 + 183]))
    assert 2 < winter / summer < 4.5


def test_a_series_without_anomalies_has_a_spread_all_the_same() -> None:
    assert (regular(np.arange(100) % 7 * 1.0).spread(np.arange(100)) > 0).all()
