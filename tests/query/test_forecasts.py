"""Forecasts of generated series: values, intervals, refusals. Real ones are measured in benches/forecast.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synopsis.core.errors import BadQuery
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.query.forecasts import Forecast, forecast, levelled

DAY, DAY_US = Bucket("d"), 86_400_000_000


def daily(values: Any, horizon: int, **more: Any) -> Forecast:
    series = np.asarray(values, dtype=np.float64)
    return forecast(np.arange(series.size) * DAY_US, series, np.ones(series.size), horizon, DAY, **more)


def weeks(size: int, random: np.random.Generator, slope: float = 0.0, noise: float = 1.0) -> np.ndarray:
    """A sine over the week, a trend, and noise of which half is there the day after."""
    days, shocks = np.arange(size), random.normal(0, noise, size)
    for day in range(1, size):
        shocks[day] += 0.5 * shocks[day - 1]
    return np.asarray(10 + 3 * np.sin(days / 7 * 2 * np.pi) + slope * days + shocks)


def error(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.sqrt(np.mean((found - true) ** 2)))


# --- values -----------------------------------------------------------------------------------------------------------


def test_a_week_and_a_trend_go_on() -> None:
    days = np.arange(214)
    series = 10 + 3 * np.sin(days / 7 * 2 * np.pi) + 0.1 * days
    found = daily(series[:200], 14)
    assert error(found.values, series[200:]) < 0.2
    assert "week" in found.said[0]
    assert any(sentence.startswith("trend: +0.09") for sentence in found.said)


def test_errors_are_smaller_than_those_of_repeating_a_week() -> None:
    ours, naive = [], []
    for seed in range(30):
        series = weeks(150, np.random.default_rng(seed), slope=0.05)
        ours.append(error(daily(series[:136], 14).values, series[136:]))
        naive.append(error(np.tile(series[129:136], 2), series[136:]))
    assert np.mean(ours) < 0.85 * np.mean(naive)


def test_a_year_is_a_season_once_it_has_been_seen() -> None:
    days, random = np.arange(900), np.random.default_rng(1)
    series = 15 + 10 * np.cos(days / 365.2425 * 2 * np.pi) + random.normal(0, 1, days.size)
    found = daily(series[:800], 100)
    assert "year" in found.said[0]
    assert error(found.values, series[800:]) < 1.3


def test_less_than_a_year_tells_that_a_season_may_be_missed() -> None:
    found = daily(weeks(200, np.random.default_rng(2)), 7)
    assert "less than a year is known: a season of the year would be missed" in found.said


def test_noise_has_no_season() -> None:
    named = [daily(np.random.default_rng(seed).normal(0, 1, 300), 7).said[0] for seed in range(20)]
    assert named.count("no season was found") >= 15


def test_hours_follow_the_day() -> None:
    hours, random = np.arange(24 * 21), np.random.default_rng(3)
    series = 15 + 8 * np.cos((hours - 15) / 24 * 2 * np.pi) + random.normal(0, 0.5, hours.size)
    found = forecast(hours[:-24] * 3_600_000_000, series[:-24], np.ones(hours.size - 24), 24, Bucket("h"))
    assert "day" in found.said[0]
    assert error(found.values, series[-24:]) < 1.0


def test_months_follow_the_year() -> None:
    months, random = np.arange(60), np.random.default_rng(4)
    series = 15 - 10 * np.cos(months / 12 * 2 * np.pi) + random.normal(0, 0.5, months.size)
    starts = Bucket("mo").starts_us(months[:48])
    found = forecast(starts, series[:48], np.ones(48), 12, Bucket("mo"))
    assert found.said[0] == "seasons: year"
    assert error(found.values, series[48:]) < 1.5


@pytest.mark.parametrize("text", ["1y", "1q", "1w", "5h", "7m", "2d"])
def test_buckets_of_any_length_are_forecast(text: str) -> None:
    bucket, random = Bucket.parse(text), np.random.default_rng(5)
    starts = bucket.starts_us(np.arange(40))
    found = forecast(starts, random.normal(5, 1, 40), np.ones(40), 5, bucket)
    low, high = found.interval(0.9)
    assert np.isfinite([low, found.values, high]).all()
    assert found.starts_us.tolist() == bucket.starts_us(np.arange(40, 45)).tolist()


def test_buckets_begin_where_the_calendar_of_the_zone_says() -> None:
    paris = Zone.named("Europe/Paris")
    ordinals = np.arange(19_770, 19_810)  # in the night to 31 March 2024 clocks went forward
    found = forecast(DAY.starts_us(ordinals, paris), np.sin(ordinals), np.ones(40), 3, DAY, paris)
    assert found.starts_us.tolist() == DAY.starts_us(np.arange(19_810, 19_813), paris).tolist()


# --- gaps, constants, spikes ------------------------------------------------------------------------------------------


def test_a_bucket_left_out_is_nan_or_has_no_values_alike() -> None:
    series = weeks(120, np.random.default_rng(6))
    gone = np.array([5, 40, 41, 42, 118])
    stays = np.setdiff1d(np.arange(120), gone)
    nan, counts = series.copy(), np.ones(120)
    nan[gone], counts[gone] = np.nan, 0
    days = np.arange(120) * DAY_US
    found = [
        forecast(days[stays], series[stays], np.ones(stays.size), 7, DAY),
        forecast(days, nan, np.ones(120), 7, DAY),
        forecast(days, series, counts, 7, DAY),
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other.values, found[0].values)
        np.testing.assert_allclose(other.interval(0.9), found[0].interval(0.9))
    assert "buckets without values: 5" in found[0].said


def test_a_third_of_days_missing_costs_little() -> None:
    whole, gappy = [], []
    for seed in range(20):
        random = np.random.default_rng(seed)
        series = weeks(200, random)
        holes = np.where(random.random(186) < 1 / 3, np.nan, series[:186])
        whole.append(error(daily(series[:186], 14).values, series[186:]))
        gappy.append(error(daily(holes, 14).values, series[186:]))
    assert np.mean(gappy) < 1.15 * np.mean(whole)


def test_a_constant_stays_and_its_interval_has_no_width() -> None:
    found = daily(np.full(40, 7.5), 5)
    low, high = found.interval(0.95)
    assert found.values.tolist() == low.tolist() == high.tolist() == [7.5] * 5
    assert found.said[0].startswith("every value so far is 7.5")


def test_rain_after_a_dry_half_year_is_forecast_with_finite_intervals() -> None:
    rain = np.zeros(200)
    rain[150::7] = 5.0
    found = daily(rain, 14)
    low, high = found.interval(0.9)
    assert np.isfinite([low, found.values, high]).all()
    assert high.max() > 2


def test_a_long_silence_at_the_start_is_no_harm() -> None:
    series = weeks(300, np.random.default_rng(20))
    silent = series.copy()
    silent[1:250] = np.nan
    low, high = daily(silent, 7).interval(0.9)
    assert np.isfinite([low, high]).all()
    assert (high - low).max() < 20


def test_the_hours_of_one_week_are_no_season_of_the_week() -> None:
    random = np.random.default_rng(21)
    series = np.repeat(random.normal(0, 1, 35), 24) + random.normal(0, 0.1, 35 * 24)  # every day has its weather
    found = forecast(np.arange(35 * 24) * 3_600_000_000, series, np.ones(35 * 24), 24, Bucket("h"))
    assert "week" not in found.said[0]


def test_a_wrong_value_bends_nothing() -> None:
    series = weeks(200, np.random.default_rng(7))
    spiked = series.copy()
    spiked[150] = 1e7
    clean, found = daily(series, 7), daily(spiked, 7)
    assert error(found.values, clean.values) < 1.0
    assert "values far outside the others, drawn in before fitting: 1" in found.said


def test_what_never_was_negative_is_not_expected_to_be() -> None:
    random = np.random.default_rng(8)
    rain = np.where(random.random(400) < 0.7, 0.0, random.exponential(4, 400))
    found = daily(rain, 30)
    low, high = found.interval(0.95)
    assert found.values.min() >= 0
    assert low.min() == 0
    assert high.max() > 4
    assert daily(rain - 1, 30).interval(0.95)[0].min() < 0


def test_a_forecast_is_as_likely_exceeded_as_not_where_most_days_are_dry() -> None:
    random = np.random.default_rng(9)
    dry, wet = (np.where(random.random(600) < share, 0.0, random.exponential(4, 600)) for share in (0.8, 0.0))
    ours, means = daily(dry[:560], 30), np.mean(dry)
    assert ours.values.mean() < 0.15 * means
    np.testing.assert_allclose(ours.means, means, rtol=0.5)
    above = dry[560:590] > ours.values
    assert np.abs(dry[560:590] - ours.values).mean() < np.abs(dry[560:590] - ours.means).mean()
    assert above.mean() < 0.5
    median = np.median(wet[:560])
    assert abs(daily(wet[:560], 30).values.mean() - median) < 0.3 * median < abs(np.mean(wet) - median)


def showers(random: np.random.Generator, dry: float, size: int = 600) -> np.ndarray:
    """Rain on one day after the other or on none: wet days follow wet ones."""
    wet, chances = np.zeros(size, dtype=bool), random.random(size)
    for day in range(1, size):
        wet[day] = chances[day] < (0.6 if wet[day - 1] else 0.4 * (1 - dry) / dry)
    return np.where(wet, random.exponential(4, size), 0.0)


@pytest.mark.parametrize("residue", [0.0, 1e-17, 1e-7])
def test_what_comes_most_days_is_forecast_exactly(residue: float) -> None:
    for seed in range(10):
        rain = showers(np.random.default_rng(seed), 0.8) + residue
        rain[-14:] = residue
        assert daily(rain, 30).values.tolist() == [0.0] * 30


def test_a_chance_of_dry_days_is_as_large_as_their_share_and_larger_after_dry_ones() -> None:
    after_dry, after_wet = [], []
    for seed in range(20):
        rain = showers(np.random.default_rng(seed), 0.7)
        wet = np.flatnonzero(rain > 0)
        for end, found in ((wet[-1] + 1, after_wet), (np.flatnonzero(rain == 0)[-1] + 1, after_dry)):
            found.append(daily(rain[:end], 30).chances)
    np.testing.assert_allclose(np.mean(after_dry, axis=0)[10:], 0.7, atol=0.1)
    assert np.mean(after_dry, axis=0)[0] > np.mean(after_wet, axis=0)[0] + 0.1
    assert (daily(showers(np.random.default_rng(1), 0.7) + 1, 30).chances == 0).all()


def test_the_order_in_which_buckets_are_given_does_not_matter() -> None:
    series, order = weeks(100, np.random.default_rng(9)), np.random.default_rng(9).permutation(100)
    shuffled = forecast(order * DAY_US, series[order], np.ones(100), 7, DAY)
    assert shuffled.values.tolist() == daily(series, 7).values.tolist()


def test_the_same_series_has_the_same_forecast() -> None:
    series = weeks(300, np.random.default_rng(10))
    one, other = daily(series, 30), daily(series, 30)
    assert one.values.tolist() == other.values.tolist()
    assert one.interval(0.9)[0].tolist() == other.interval(0.9)[0].tolist()
    assert one.said == other.said


@pytest.mark.parametrize(("factor", "offset"), [(1.0, 300.0), (1000.0, 0.0), (1e-3, -5.0), (1e-9, 0.0)])
def test_units_do_not_matter(factor: float, offset: float) -> None:
    series = weeks(200, np.random.default_rng(11)) - 100
    plain, other = daily(series, 14), daily(series * factor + offset - 1e4 * factor, 14)
    back = (other.values - offset) / factor + 1e4
    np.testing.assert_allclose(back, plain.values, atol=1e-4)


# --- intervals --------------------------------------------------------------------------------------------------------


def held(generated: Any, horizon: int, level: float, seeds: int) -> float:
    inside = []
    for seed in range(seeds):
        series = generated(np.random.default_rng(seed))
        low, high = daily(series[:-horizon], horizon).interval(level)
        inside.append((low <= series[-horizon:]) & (series[-horizon:] <= high))
    return float(np.mean(inside))


def drifting(random: np.random.Generator) -> np.ndarray:
    return np.cumsum(random.normal(0, 1, 300)) + random.normal(0, 1, 300)


def heavy(random: np.random.Generator) -> np.ndarray:
    return np.asarray(20 + random.standard_t(3, 400))


def skewed(random: np.random.Generator) -> np.ndarray:
    return np.asarray(np.exp(weeks(400, random, noise=0.5) / 4))


GENERATED = {
    "weeks": lambda random: weeks(300, random),
    "trends": lambda random: weeks(250, random, slope=0.05),
    "short": lambda random: weeks(60, random),
    "drifting": drifting,
    "heavy": heavy,
    "skewed": skewed,
}


@pytest.mark.parametrize("name", GENERATED)
def test_intervals_at_90_percent_hold_about_as_often(name: str) -> None:
    assert 0.85 <= held(GENERATED[name], 14, 0.9, 80) <= 0.97


def test_intervals_at_95_percent_hold_more_often() -> None:
    assert 0.91 <= held(GENERATED["weeks"], 14, 0.95, 80) <= 0.995


def test_a_higher_level_is_wider_and_values_lie_inside() -> None:
    found = daily(weeks(200, np.random.default_rng(12)), 30)
    (low, high), (lower, higher) = found.interval(0.9), found.interval(0.95)
    assert (lower <= low).all()
    assert (low <= found.values).all()
    assert (found.values <= high).all()
    assert (high <= higher).all()


def test_what_drifts_is_less_certain_further_ahead() -> None:
    low, high = daily(drifting(np.random.default_rng(13)), 30).interval(0.9)
    assert (high - low)[25:].mean() > 2 * (high - low)[:2].mean()


def test_a_wild_season_has_wider_intervals_than_a_calm_one() -> None:
    days, random = np.arange(1_100), np.random.default_rng(14)
    series = random.normal(0, 1, days.size) * (1.5 + np.cos(days / 365.2425 * 2 * np.pi))
    (calm_low, calm_high), (low, high) = (
        daily(series[: 365 * 2 + 170], 14).interval(0.9),
        daily(series, 14).interval(0.9),
    )
    assert (high - low).mean() > 2 * (calm_high - calm_low).mean()


def dusty(random: np.random.Generator, size: int = 700) -> np.ndarray:
    """Days that multiply those before: the higher, the wilder."""
    logs, shocks = np.zeros(size), random.normal(0, 0.4, size)
    for day in range(1, size):
        logs[day] = 0.8 * logs[day - 1] + shocks[day]
    return np.asarray(50 * np.exp(logs))


def test_a_high_forecast_is_less_certain_than_a_low_one_where_it_was_so_before() -> None:
    wider, steady = [], []
    for seed in range(20):
        dust, logs = dusty(np.random.default_rng(seed)), np.log(dusty(np.random.default_rng(seed)))
        high, low = 500 + int(np.argmax(dust[500:])), 500 + int(np.argmin(dust[500:]))
        for series, found in ((dust, wider), (logs, steady)):
            widths = [np.diff(daily(series[: end + 1], 2).interval(0.9), axis=0)[0, 0] for end in (high, low)]
            found.append(widths[0] / widths[1])
    assert np.median(wider) > 2.5
    assert 0.8 < np.median(steady) < 1.25


def test_errors_of_the_values_widen_intervals() -> None:
    series = weeks(200, np.random.default_rng(15), noise=0.1)
    low, high = daily(series, 7, errors=np.full(200, 2.0)).interval(0.95)
    assert ((high - low) > 2 * 1.95 * 2.0).all()
    assert ((high - low) < 2 * 1.97 * 2.5).all()


@pytest.mark.parametrize("dry", [0.6, 0.8])
def test_intervals_of_what_cannot_be_less_hold_no_more_than_they_say(dry: float) -> None:
    inside = []
    for seed in range(150):
        rain = showers(np.random.default_rng(seed), dry)
        low, high = daily(rain[:-14], 14).interval(0.9)
        assert (low == 0).all()
        inside.append(rain[-14:] <= high)
    assert 0.85 <= np.mean(inside) <= 0.92  # 0.94 where as much is left for what lies below


def test_a_higher_level_is_wider_and_values_lie_inside_where_many_days_are_dry() -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        alike = np.where(random.random(600) < 0.35, 0.0, random.normal(10, 0.5, 600))  # the median is above the mean
        for found in (daily(showers(random, 0.5), 30), daily(alike, 30)):
            intervals = [found.interval(level) for level in (0.4, 0.9, 0.95)]
            assert all((low <= found.values).all() and (found.values <= high).all() for low, high in intervals)
            assert (intervals[1][1] <= intervals[2][1]).all()


@pytest.mark.parametrize("level", [0.0, 1.0, 90.0, -0.5])
def test_a_level_is_a_share(level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        daily(weeks(60, np.random.default_rng(16)), 7).interval(level)


def test_the_fit_tells_what_can_be_told_from_what_can_not() -> None:
    random = np.random.default_rng(17)
    clear, noise = daily(weeks(300, random, noise=0.2), 14).fit, daily(random.normal(0, 1, 300), 14).fit
    assert clear.explained > 0.9
    assert noise.explained < 0.1
    assert noise.skill > 0.2  # repeating noise doubles it


# --- levels -----------------------------------------------------------------------------------------------------------


def test_levelled_values_have_the_means_of_their_spans() -> None:
    random = np.random.default_rng(18)
    values, counts, spans = random.normal(0, 1, 90), random.integers(1, 9, 90), np.repeat((0, 1, 2), 30)
    shifted = levelled(values, counts, spans, [5.0, -1.0, 2.0])
    means = [np.average(shifted[spans == span], weights=counts[spans == span]) for span in range(3)]
    np.testing.assert_allclose(means, [5.0, -1.0, 2.0])
    np.testing.assert_allclose(np.diff(shifted[:30]), np.diff(values[:30]))


def test_dry_days_stay_dry_when_their_month_is_to_come_down() -> None:
    random = np.random.default_rng(19)
    rain = np.where(random.random(90) < 0.7, 0.0, random.exponential(4, 90))
    rain[3] = -1e-9  # by rounding
    counts, spans = random.integers(1, 9, 90), np.repeat((0, 1, 2), 30)
    shifted = levelled(rain, counts, spans, [0.2, 50.0, 0.0])
    means = [np.average(shifted[spans == span], weights=counts[spans == span]) for span in range(3)]
    np.testing.assert_allclose(means, [0.2, 50.0, 0.0], atol=1e-12)
    assert (shifted[:30] == 0).tolist() == (rain[:30] <= 0).tolist()
    assert shifted.min() == 0


def test_dry_days_stay_dry_when_their_month_is_to_go_up() -> None:
    rain = np.array([0.0, 0.0, 1e-9, 4.0, 0.0, 2.0, 0.0, 0.0, 0.0])
    counts, spans = np.array([24, 24, 24, 12, 24, 24, 24, 24, 24]), np.repeat((0, 1, 2), 3)
    raised = levelled(rain, counts, spans, [0.5, 2.5, 1e-7])
    assert raised[3:].tolist() == [5.5, 0.0, 3.5, 0.0, 0.0, 0.0]
    assert raised[:3].tolist() == [0.5] * 3  # a month that rained, and no day that did


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "horizon", "sentence"),
    [
        (0, 7, "a forecast needs 14 buckets of 1d with values and there are 0; ask for more time, a larger place or"),
        (13, 1, "a forecast needs 14 buckets of 1d with values and there are 13; ask for more time, a larger place or"),
        (20, 11, "20 buckets of 1d with values tell at most 10 ahead, not 11; forecast less far, or ask for more time"),
        (20, 0, "a forecast is of 1 bucket or more, not 0; ask for example FORECAST(x, '1d')"),
    ],
)
def test_too_little_to_go_on_is_refused_with_a_remedy(size: int, horizon: int, sentence: str) -> None:
    with pytest.raises(BadQuery) as refusal:
        daily(np.arange(size), horizon)
    assert str(refusal.value).startswith(sentence)


def test_a_few_values_in_a_long_time_are_refused() -> None:
    days = np.arange(20) * 100
    with pytest.raises(BadQuery, match=r"only 20 of 1901 buckets of 1d have values.*longer buckets or a larger place"):
        forecast(days * DAY_US, np.sin(days), np.ones(20), 5, DAY)


@pytest.mark.parametrize("size", [14, 15, 17, 20, 27, 28, 29, 31])
def test_the_shortest_series_have_finite_forecasts(size: int) -> None:
    found = daily(weeks(size, np.random.default_rng(size)), size // 2)
    low, high = found.interval(0.9)
    assert np.isfinite([low, found.values, high]).all()
    assert (low < high).all()
