"""Paths are weighed, and intervals found, in machine code as they are in NumPy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.query.plain.estimate import Estimates as PlainEstimates
from tests.query.single import single

from synopsis.query import intervals
from synopsis.query.covers import Covers
from synopsis.query.estimate import Estimates
from synopsis.query.predicates import EVERYTHING, And, Between, IsNull, Not, Or, positive
from synopsis.query.sampled import Sample
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import Strata, fitted

BINS = 15
CONDITIONS = (
    EVERYTHING,
    Between(0, 15.0, 22.3),
    Between(1, 0.5, 9.0, high_closed=False),
    Not(Between(0, 18.0, 19.0)),
    IsNull(2),
    And((Between(0, 15.0, 22.3), Between(1, 0.0, 0.0))),
    And((Between(0, 15.0), Between(2, 3.0, 9.7), Not(IsNull(1)))),
    Or((Between(0, 15.0, 17.3), IsNull(2), And((Between(0, 21.0), Between(1, 0.25))))),
    And((Between(0, 90.0, 99.0), Between(1, 0.0, 0.0))),
)


def world(seed: int) -> tuple[Strata, Scales, np.ndarray, np.ndarray | None]:
    """Strata, of which some have several places, days in scope, some of them cut, and how paths lean."""
    random = np.random.default_rng(seed)
    count = int(random.choice([60, 3_000]))
    place, day = (
        np.sort(random.integers(0, 4, count)),
        random.integers(0, 30, count) + 70 * random.integers(0, 3, count),
    )
    order = np.lexsort((day, place))
    grid = np.round(random.normal(20, 5, count) + 3 * place, 1)
    rain = np.where(random.random(count) < 0.8, 0.0, np.round(random.lognormal(0, 1.5, count), 1))
    absent = np.where(random.random(count) < 0.3, np.nan, grid * 0.5 + random.normal(size=count))
    values = np.stack((grid, rain, absent))
    scales = Scales.fit(values)
    kept = random.random(count) < random.choice([0.0, 0.02, 0.2, 1.0])
    codes = scales.codes(values[:, order])
    strata = fitted(scales, place[order], day[order] // 100, day[order], codes, kept, BINS)
    strata = replace(strata, even=seed % 4 < 2)
    if seed % 2:
        strata = replace(strata, run_place=np.arange(strata.run_place.size))
    covered = random.choice([0.0, 0.3, 1.0], strata.day_rows.size, p=random.dirichlet(np.ones(3)))
    lean = random.random(strata.codes.shape[1]) + 0.5 if seed % 3 == 0 else None
    if lean is not None and seed % 2:  # few paths are of the hours in scope, or none
        lean *= random.random(lean.size) < (0.0 if seed % 5 == 0 else 0.4)
    covered = np.ones(covered.size) if seed % 5 == 0 else covered
    if lean is not None:  # a day that is wholly in scope has all its paths there
        lean = np.where(np.repeat(covered < 1.0, strata.day_kept), lean, 1.0)
    return strata, scales, covered, lean


def answers(estimates) -> dict[str, float | tuple[float, float]]:
    """Every statistic, with its interval."""
    found = {"count": estimates.count(), "count_p95": estimates.count_p95()}
    for feature in range(3):
        numbers = estimates.of(feature)
        for name in ("count", "sum", "average", "variance", "deviation"):
            found[f"{name} {feature}"] = getattr(numbers, name)
            if name != "variance" or np.all(numbers.variance > 0):
                found[f"{name}_p95 {feature}"] = getattr(numbers, f"{name}_p95")
        for share in (0.0, 0.3, 0.5, 1.0):
            found[f"quantile {feature} {share}"] = numbers.quantile(share)
            if 0.0 < share < 1.0:  # paths do not tell how sure extremes are
                found[f"quantile_p95 {feature} {share}"] = numbers.quantile_p95(share)
    for one, two in ((0, 1), (0, 2), (1, 2)):
        for name in ("covariance", "correlation"):
            found[f"{name} {one} {two}"] = getattr(estimates, name)(one, two)
            found[f"{name}_p95 {one} {two}"] = getattr(estimates, f"{name}_p95")(one, two)
    return found


def alike(one: float, other: float, scale: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other)) or abs(one - other) <= 1e-9 * scale


@pytest.mark.parametrize("seed", range(30))
def test_every_statistic_is_that_of_numpy(seed: int) -> None:
    strata, scales, covered, lean = world(seed)
    for condition in CONDITIONS:
        pace = (0.0, 0.02, 1.0)[seed % 3]
        asked = (strata, scales, (0, 1, 2), covered, positive(condition), None, lean, pace)
        sample = Sample(strata, scales, (0, 1, 2), Covers.whole(covered, lean, strata.day_kept), pace=pace)
        found, wanted = answers(single(sample, positive(condition))), answers(PlainEstimates(*asked))
        assert found.keys() == wanted.keys()
        for name, value in wanted.items():
            ends, own = np.atleast_1d(value), np.ravel(found[name])
            scale = float(np.max(np.abs(ends[np.isfinite(ends)]), initial=1e-6))
            assert all(alike(*pair, scale) for pair in zip(own, ends, strict=True)), (name, condition, own, ends)


@pytest.mark.parametrize("seed", range(12))
def test_groups_side_by_side_are_answered_as_each_alone(seed: int) -> None:
    strata, scales, covered, lean = world(seed)
    covers, _ = Covers.whole(covered, lean, strata.day_kept).parted(strata.day_place * 3 + strata.day % 3)
    for condition in CONDITIONS:
        together = answers(Estimates(Sample(strata, scales, (0, 1, 2), covers), positive(condition)))
        for group in range(covers.groups):
            sample = Sample(strata, scales, (0, 1, 2), covers.only(group, group + 1))
            alone = answers(Estimates(sample, positive(condition)))
            for name, value in ((name, value) for name, value in alone.items() if name in together):
                own, ends = np.atleast_2d(together[name])[:, group], np.ravel(value)
                scale = float(np.max(np.abs(ends[np.isfinite(ends)]), initial=1e-6))
                assert all(alike(*pair, scale) for pair in zip(own, ends, strict=True)), (name, condition, own, ends)


def test_pairs_know_the_means_of_rows_that_have_both() -> None:
    strata, scales, _, _ = world(0)
    found = Estimates(
        Sample(strata, scales, (0, 1, 2), Covers.whole(np.ones(strata.day_rows.size))), positive(EVERYTHING)
    )
    pair = found._pair(0, 2)
    assert pair.mean_x == pytest.approx(found.also(positive(Not(IsNull(2)))).of(0).average, rel=0.05)
    assert pair.mean_y == pytest.approx(found.of(2).average, rel=0.05)


def test_paths_at_even_steps_weigh_alike_and_others_by_the_rows_of_their_day() -> None:
    day = np.repeat(np.arange(10), 24)
    values = np.arange(240.0)[None]
    kept = np.arange(240) % 5 == 0  # four or five a day
    scales = Scales.fit(values)
    whole = fitted(scales, np.zeros_like(day), np.zeros_like(day), day, scales.codes(values), kept, BINS)
    covered = np.where(np.arange(10) < 7, 1.0, 0.0)
    for even in (True, False):
        strata = replace(whole, even=even)
        weight = Sample(strata, scales, (0,), Covers.whole(covered, None, strata.day_kept)).paths.weight
        by_day = np.repeat(24 / strata.day_kept[:7], strata.day_kept[:7])
        assert np.allclose(weight, 7 * 24 / strata.day_kept[:7].sum() if even else by_day)
        assert weight.sum() == pytest.approx(7 * 24)


def a_place_of_hours(days: int, values: np.ndarray, kept: np.ndarray) -> tuple[Strata, Scales]:
    """One place with 24 rows a day."""
    day = np.repeat(np.arange(days), 24)
    scales = Scales.fit(values)
    return fitted(scales, np.zeros_like(day), np.zeros_like(day), day, scales.codes(values), kept, BINS), scales


@pytest.mark.parametrize(
    ("pace", "low", "high"), [(1 / 24, 11, 13), (1 / 1440, 0, 24), (0.0, 0, 24), (1 / 32, 12 - 5, 12 + 5)]
)
def test_rows_of_a_cut_day_are_in_scope_as_far_as_their_pace_spreads_them(pace: float, low: float, high: float) -> None:
    strata, scales = a_place_of_hours(3, np.arange(72.0)[None], np.ones(72, np.bool_))
    covers = Covers.whole(np.array([0.0, 0.5, 0.0]), None, strata.day_kept)
    found = single(Sample(strata, scales, (0,), covers, pace=pace), positive(EVERYTHING))
    assert found.count() == 12
    assert found.count_p95() == pytest.approx((low, high))


def test_intervals_reach_to_the_side_of_their_bins_on_which_selected_rows_lie() -> None:
    random = np.random.default_rng(3)
    value = np.round(random.lognormal(3.0, 1.0, 24 * 200), 1)
    strata, scales = a_place_of_hours(200, np.stack((value, value + 1.0)), np.ones(value.size, np.bool_))
    sample = Sample(strata, scales, (0, 1), Covers.whole(np.ones(200), None, strata.day_kept))
    end = float(np.quantile(value, 0.97))
    for condition, is_low in ((Between(1, 0.0, end + 1.0), True), (Between(1, end + 1.0, 1e6), False)):
        numbers = single(sample, positive(condition)).of(0)
        chosen = value[value <= end] if is_low else value[value >= end]
        low, high = numbers.average_p95
        assert low <= chosen.mean() <= high
        assert (numbers.average - low > high - numbers.average) is is_low
        assert numbers.deviation_p95[0] <= chosen.std() <= numbers.deviation_p95[1]


def test_a_deviation_beyond_what_its_range_allows_does_not_tell_how_small_it_is() -> None:
    known = (np.ones(2), np.array([9.0, 4.0]), np.full(2, 0.1), np.zeros(2), np.zeros(2), np.full(2, 5.0))
    low, high = intervals.variance(*known, np.ones(2, np.bool_))
    assert low[0] == 0.0  # no five values between 0 and 5 vary by 9
    assert high[0] == 9.0
    assert 3.8 < low[1] < high[1] < 4.2


def test_a_deviation_that_few_rows_make_may_be_nothing_without_them() -> None:
    known = (np.ones(2), np.array([4.0, 4.0]), np.array([7.0, 1.0]), np.zeros(2), np.zeros(2), np.full(2, 50.0))
    low, high = intervals.variance(*known, np.ones(2, np.bool_))
    assert low[0] == 0.0
    assert low[1] == pytest.approx(4.0 / 1.25)
    assert tuple(high) == (11.0, 5.0)


def test_what_is_foretold_of_a_side_is_expected_in_part_and_may_be_nothing_or_all_of_it() -> None:
    known = (np.ones(1), np.zeros(1), np.full(1, 0.1), np.ones(1), np.full(1, -9.0), np.full(1, 9.0))
    low, high = intervals.average(*known, np.ones(1, np.bool_))
    assert -0.5 < low[0] <= 0.0
    assert 1.0 < high[0] < 2.0


def test_intervals_of_quantiles_reach_beyond_what_few_paths_have_seen() -> None:
    random = np.random.default_rng(8)
    value, other = np.round(random.normal(50, 10, 24 * 60), 1), random.random(24 * 60)
    strata, scales = a_place_of_hours(60, np.stack((value, other)), np.arange(value.size) % 97 == 0)
    sample = Sample(strata, scales, (0, 1), Covers.whole(np.ones(60), None, strata.day_kept))
    few, some = (single(sample, positive(Between(1, 0.0, end))).of(0) for end in (0.1, 1.0))
    assert 0 < np.sum(other[::97] <= 0.1) < 5
    seen = value[::97][other[::97] <= 0.1]
    assert few.quantile_p95(0.9)[1] > seen.max() + 5
    assert few.quantile_p95(0.1)[0] < seen.min() - 5
    assert some.quantile_p95(0.5)[1] < 60
