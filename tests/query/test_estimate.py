import math

import numpy as np
import pytest
from tests.query.single import single

from synopsis.query.bins import _highest_step, _lowest_step
from synopsis.query.covers import Covers
from synopsis.query.inference import student
from synopsis.query.mixtures import around, mixed
from synopsis.query.predicates import EVERYTHING, And, Between, IsNull, Not, Or, positive
from synopsis.query.sampled import Sample
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import Strata, fitted

BINS = 15


def rows(count=20_000):
    """Two places, thirty days: a reading on a grid of 0.1, one with an atom and a tail, one often absent."""
    random = np.random.default_rng(7)
    place = np.sort(random.integers(0, 2, count))
    day = random.integers(0, 30, count)
    order = np.lexsort((day, place))
    grid = np.round(random.normal(20, 5, count) + 3 * place, 1)
    rain = np.where(random.random(count) < 0.8, 0.0, np.round(random.lognormal(0, 1.5, count), 1))
    absent = np.where(random.random(count) < 0.3, np.nan, grid * 0.5 + random.normal(size=count))
    values = np.stack((grid, rain, absent))
    return place[order], day[order], values[:, order]


PLACE, DAY, VALUES = rows()
SCALES = Scales.fit(VALUES)


def estimates(condition=EVERYTHING, share=1.0, covered=None):
    kept = np.random.default_rng(1).random(PLACE.size) < share
    strata = fitted(SCALES, PLACE, DAY // 15, DAY, SCALES.codes(VALUES), kept, BINS)
    whole = np.ones(strata.day_rows.size) if covered is None else covered(strata)
    return single(Sample(strata, SCALES, (0, 1, 2), Covers.whole(whole)), positive(condition))


def holds(condition):
    match condition:
        case Between():
            values = VALUES[condition.feature]
            below = values <= condition.high if condition.high_closed else values < condition.high
            return (values >= condition.low) & below
        case IsNull():
            return np.isnan(VALUES[condition.feature])
        case And():
            return np.logical_and.reduce([PLACE >= 0, *(holds(part) for part in condition.conditions)])
        case Or():
            return np.logical_or.reduce([holds(part) for part in condition.conditions])


def between(feature, low, high):
    return Between(feature, low, high, True, False)


def test_all_rows_are_counted_and_their_mean_is_near():
    found = estimates()
    assert found.count() == pytest.approx(PLACE.size)
    for feature in range(3):
        present = VALUES[feature][~np.isnan(VALUES[feature])]
        numbers = found.of(feature)
        assert numbers.count == pytest.approx(present.size)
        assert numbers.average == pytest.approx(present.mean(), abs=0.02 * present.std())
        assert numbers.deviation == pytest.approx(present.std(), rel=0.05)
        assert numbers.quantile(0.5) == pytest.approx(np.quantile(present, 0.5), abs=0.05 * present.std())


def test_an_equality_with_an_atom_is_exact_where_all_paths_are_kept():
    assert estimates(Between(1, 0.0, 0.0)).count() == pytest.approx((VALUES[1] == 0.0).sum())


@pytest.mark.parametrize(
    "condition",
    [
        between(0, 15.0, 22.3),
        between(0, -math.inf, 18.0),
        between(1, 0.5, 9.0),
        IsNull(2),
        And((between(0, 12.0, 25.0), between(1, 0.0, 1.0))),
        Or((between(0, 5.0, 12.0), IsNull(2))),
        And((between(0, 15.0, 30.0), between(2, 8.0, 12.0))),
    ],
)
def test_conditions_take_their_share(condition):
    truth = holds(condition)
    found = estimates(condition, share=0.5)
    assert found.count() == pytest.approx(truth.sum(), rel=0.06)
    numbers = found.of(0)
    assert numbers.average == pytest.approx(VALUES[0, truth].mean(), abs=0.06 * VALUES[0].std())


def test_a_negation_leaves_absent_values_out():
    inside, outside = estimates(between(2, 8.0, 12.0)), estimates(Not(between(2, 8.0, 12.0)))
    assert inside.count() + outside.count() == pytest.approx((~np.isnan(VALUES[2])).sum(), rel=1e-6)


def test_a_part_of_the_days_is_a_part_of_the_rows():
    found = estimates(covered=lambda strata: (strata.day < 10).astype(float), share=0.3)
    assert found.count() == pytest.approx((DAY < 10).sum())
    assert found.of(0).average == pytest.approx(VALUES[0, DAY < 10].mean(), abs=0.03 * VALUES[0].std())


def test_days_without_paths_are_stood_for_by_others():
    found = estimates(share=0.002)
    assert found.count() == pytest.approx(PLACE.size)


def test_related_features_correlate_and_others_do_not():
    present = ~np.isnan(VALUES[2])
    truth = np.corrcoef(VALUES[0, present], VALUES[2, present])[0, 1]
    assert estimates(share=0.5).correlation(0, 2) == pytest.approx(truth, abs=0.03)
    assert abs(estimates(share=0.5).correlation(0, 1)) < 0.1


def test_exact_counts_take_the_paths_luck_out():
    truth = (VALUES[0] < 18.0).sum()
    few = estimates(between(0, -math.inf, 18.0), share=0.02)
    assert few.count() == pytest.approx(truth, rel=0.01)  # twenty times fewer paths, and hardly less exact


def test_a_condition_that_no_path_satisfies_is_answered_by_independent_features():
    odd = And((between(0, -math.inf, 9.0), between(1, 5.0, 6.0)))
    found = next(each for share in (0.02, 0.01, 0.005, 0.002) if not (each := estimates(odd, share=share))._live.total)
    assert 0 < found.count() < PLACE.size / found.sample.paths.weight.size
    numbers = found.of(0)
    assert numbers.average < 9.0
    assert numbers.average_p95[0] <= numbers.average <= numbers.average_p95[1] <= 9.0
    assert not math.isnan(found.of(1).quantile(0.5))


def test_values_of_other_days_are_not_thought_to_be_in_scope():
    early, random = DAY < 15, np.random.default_rng(3)
    values = np.where(early, 10.0, 30.0) + random.normal(0, 1, DAY.size)
    scales, kept = Scales.fit(values[None]), random.random(DAY.size) < 0.05
    strata = fitted(scales, PLACE, DAY // 30, DAY, scales.codes(values[None]), kept, BINS)
    sample = Sample(strata, scales, (0,), Covers.whole((strata.day < 3).astype(float), None, strata.day_kept))
    assert single(sample, positive(EVERYTHING)).of(0).count == pytest.approx((DAY < 3).sum())
    late = single(sample, positive(Between(0, 29.5)))
    assert late.count() < 10  # what the paths of all days lack is lacking in days that have such paths


def test_nothing_in_scope_gives_no_number():
    found = estimates(covered=lambda strata: np.zeros(strata.day_rows.size))
    assert found.count() == 0
    assert math.isnan(found.of(0).average)
    assert math.isnan(found.of(0).quantile(0.5))
    assert math.isnan(found.correlation(0, 1))


@pytest.mark.parametrize("number", [21.1, float(np.float32(21.1)), -3.2, 0.0])
def test_bounds_near_a_grid_value_mean_it(number):
    step = round(number / 0.1)
    assert _lowest_step(number, 0.1) == step
    assert _lowest_step(math.nextafter(number, math.inf), 0.1) == step + 1
    assert _highest_step(number, 0.1) == step
    assert _highest_step(math.nextafter(number, -math.inf), 0.1) == step - 1
    assert _lowest_step(number + 0.03, 0.1) == step + 1


# --- what else there is to ask ----------------------------------------------------------------------------------------


def test_sums_variances_and_covariances_agree_with_means_deviations_and_correlations():
    found = estimates(between(0, 12.0, 25.0), share=0.3)
    numbers = found.of(0)
    assert numbers.sum == pytest.approx(numbers.average * numbers.count)
    assert numbers.variance == pytest.approx(numbers.deviation**2)
    truth = holds(between(0, 12.0, 25.0)) & ~np.isnan(VALUES[2])
    assert found.covariance(0, 2) == pytest.approx(np.cov(VALUES[[0, 2]][:, truth], bias=True)[0, 1], rel=0.1)
    assert estimates(share=0.5).covariance(0, 0) == pytest.approx(VALUES[0].var(), rel=0.05)


def test_a_sum_goes_with_the_better_count():
    condition = between(1, 0.0, 0.3)  # exact counts tell how many rows that are, paths only about
    found = estimates(condition, share=0.02)
    assert found.of(0).sum == pytest.approx(found.of(0).average * found.count())


def test_a_place_out_of_many_is_answered_as_if_it_were_alone():
    alone = PLACE == 1
    kept = np.random.default_rng(1).random(PLACE.size) < 0.2
    fine, clause = SCALES.codes(VALUES), positive(And((between(0, 15.0, 24.0), between(1, 0.0, 2.0))))
    both = fitted(SCALES, PLACE, DAY // 15, DAY, fine, kept, BINS)
    one = fitted(SCALES, PLACE[alone], DAY[alone] // 15, DAY[alone], fine[:, alone], kept[alone], BINS)
    days = (both.day < 20) * (both.day_place == 1).astype(float)
    wide, narrow = (
        single(Sample(strata, SCALES, (0, 1, 2), Covers.whole(covered)), clause)
        for strata, covered in ((both, days), (one, (one.day < 20).astype(float)))
    )
    assert wide.count() == pytest.approx(narrow.count())
    assert wide.count_p95() == pytest.approx(narrow.count_p95())
    assert wide.of(2).average_p95 == pytest.approx(narrow.of(2).average_p95)
    assert wide.correlation(0, 2) == pytest.approx(narrow.correlation(0, 2))


def test_axes_are_filled_and_used_again():
    strata = fitted(SCALES, PLACE, DAY // 15, DAY, SCALES.codes(VALUES), np.ones(PLACE.size, bool), BINS)
    axes = {}
    whole = np.ones(strata.day_rows.size)
    first, second = (
        single(Sample(strata, SCALES, (0, 1, 2), Covers.whole(whole), axes), positive(EVERYTHING)) for _ in range(2)
    )
    assert first.of(0).average == second.of(0).average
    assert list(axes) == [0]
    assert first.sample.bins(0).axis is second.sample.bins(0).axis


@pytest.mark.parametrize(
    "condition",
    [
        And((Or((between(0, 10.0, 18.0), between(1, 1.0, 9.0))), Or((IsNull(2), between(2, 8.0, 12.0))))),
        Or((And((between(0, 10.0, 18.0), between(1, 0.0, 0.1))), And((between(0, 22.0, 40.0), IsNull(2))))),
    ],
)
def test_conditions_may_be_nested(condition):
    found, truth = estimates(condition, share=0.5), holds(condition)
    assert found.count() == pytest.approx(truth.sum(), rel=0.06)
    low, high = found.count_p95()
    assert low <= truth.sum() <= high


# --- intervals --------------------------------------------------------------------------------------------------------

ASKED = [
    EVERYTHING,
    between(0, 15.0, 22.3),
    between(0, 21.03, 21.07),
    Between(1, 0.0, 0.0),
    Or((between(2, 8.0, 12.0), IsNull(2))),
    And((between(0, 12.0, 25.0), between(1, 0.0, 1.0))),
    And((between(0, 12.0, 25.0), between(1, 0.5, 9.0), between(2, 8.0, 12.0))),
    Or((between(0, 5.0, 12.0), IsNull(2))),
]
COVERED = [
    None,
    lambda strata: (strata.day < 10).astype(float),
    lambda strata: np.clip(strata.day - 3.3, 0.0, 1.0) * (strata.day < 12),
    lambda strata: (strata.day == 5) * 0.4,
]


def answers(found, one=0, two=2, share=0.3):
    """Every statistic with its interval."""
    numbers = found.of(one)
    return {
        "count": (found.count(), found.count_p95()),
        "values": (numbers.count, numbers.count_p95),
        "sum": (numbers.sum, numbers.sum_p95),
        "mean": (numbers.average, numbers.average_p95),
        "variance": (numbers.variance, numbers.variance_p95),
        "deviation": (numbers.deviation, numbers.deviation_p95),
        "quantile": (numbers.quantile(share), numbers.quantile_p95(share)),
        "correlation": (found.correlation(one, two), found.correlation_p95(one, two)),
        "covariance": (found.covariance(one, two), found.covariance_p95(one, two)),
    }


@pytest.mark.parametrize("condition", ASKED)
@pytest.mark.parametrize("covered", COVERED)
@pytest.mark.parametrize("share", [0.0, 0.002, 0.2, 1.0])
def test_estimates_lie_in_their_intervals(condition, covered, share):
    found = estimates(condition, share, covered)
    for one, two in ((0, 2), (2, 1), (1, 1)):
        for name, (estimate, (low, high)) in answers(found, one, two).items():
            assert math.isnan(estimate) or low <= estimate <= high, name
    assert math.isfinite(sum(found.count_p95()) + found.count())


def true_answers(truth, one=0, two=2, share=0.3):
    first = VALUES[one, truth & ~np.isnan(VALUES[one])]
    both = VALUES[[one, two]][:, truth & ~np.isnan(VALUES[one]) & ~np.isnan(VALUES[two])]
    return {
        "count": truth.sum(),
        "values": first.size,
        "sum": first.sum(),
        "mean": first.mean(),
        "variance": first.var(),
        "deviation": first.std(),
        "quantile": np.quantile(first, share),
        "correlation": np.corrcoef(both)[0, 1],
        "covariance": np.cov(both, bias=True)[0, 1],
    }


def test_about_95_of_100_intervals_hold_the_truth():
    random = np.random.default_rng(3)
    kept = random.random((20, PLACE.size)) < 0.2
    fine, held = SCALES.codes(VALUES), {}
    for chance in kept:
        strata = fitted(SCALES, PLACE, DAY // 15, DAY, fine, chance, BINS)
        for _ in range(6):
            first, length = random.integers(0, 20), random.integers(2, 10)
            low, high = np.sort(random.normal(20, 5, 2))
            options = (EVERYTHING, between(0, low - 1, high + 1), between(1, 0.0, 1.0), between(2, low / 2, 99.0))
            picked = tuple(options[which] for which in random.choice(4, random.integers(1, 4), replace=False))
            truth = holds(And(picked)) & (first <= DAY) & (first + length > DAY)
            if truth.sum() < 50:
                continue
            covered = ((strata.day >= first) & (strata.day < first + length)).astype(float)
            found = answers(single(Sample(strata, SCALES, (0, 1, 2), Covers.whole(covered)), positive(And(picked))))
            for name, true in true_answers(truth).items():
                start, end = found[name][1]
                held.setdefault(name, []).append(start - 1e-6 * abs(true) <= true <= end + 1e-6 * abs(true))
    assert min(map(len, held.values())) > 80
    assert all(np.mean(each) >= 0.88 for each in held.values()), {name: np.mean(each) for name, each in held.items()}


def test_more_paths_make_narrower_intervals():
    condition = And((between(0, 12.0, 25.0), between(1, 0.5, 9.0)))
    few, many = estimates(condition, share=0.05), estimates(condition, share=0.8)
    for name, (_, (low, high)) in answers(many).items():
        wide = answers(few)[name][1]
        assert high - low < wide[1] - wide[0], name


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("condition", [EVERYTHING, between(2, 8.0, 12.0)])
def test_intervals_of_quantiles_end_on_the_grid(condition, share):
    low, high = estimates(condition, share=0.1).of(0).quantile_p95(share)
    for end in (low, high):
        assert end * 10 == pytest.approx(round(end * 10), abs=1e-6)


def test_a_quantile_whose_rank_stays_within_one_value_has_an_interval_of_that_value():
    rain = estimates(between(2, 8.0, 12.0), share=0.1).of(1)  # four of five rows are 0
    assert rain.quantile_p95(0.5) == (0.0, 0.0)
    low, high = rain.quantile_p95(0.8)
    assert low == 0.0 < high


def test_what_one_end_of_a_quantiles_interval_leaves_over_the_other_need_not_have():
    # A rank within one value, 1.8 errors from its upper end and far from its lower one: 96% of the probability.
    ends, reached, slope, offset = mixed(np.array([0.0]), np.array([10.0]), np.array([10.0]), np.array([0, 1]))
    axis = (np.linspace(0.0, 10.0, 11), np.arange(10) - 0.5, np.arange(10) + 0.5, 1.0)

    def found(place, error):
        half, none = np.array([1.959964 * error]), np.zeros(1)
        own = (np.array([place]), np.array([np.floor(place)]), np.array([True]), none, none, none)
        low, high = around(ends, reached, slope, offset, *axis, place / 10, half, none, *own)
        return low[0], high[0]

    assert found(4.82, 0.01) == (4, 4)
    assert found(4.85, 0.01) == (4, 5)  # 1.5 errors: 93%
    assert found(4.5, 0.026) == (4, 4)  # 1.92 errors on either side: 94.5%, which is nearer than 97.3%
    assert found(4.5, 0.03) == (3, 4)  # 1.67 errors: 90.4%, and 95.2% with one value more
    assert found(4.5, 0.025) == (4, 4)  # 2 errors: 95.4%


def test_correlations_reach_to_what_bins_hide():
    random, size = np.random.default_rng(5), 40_000
    shared = random.normal(size=size)
    values = np.stack((shared + 0.3 * random.normal(size=size), shared + 0.3 * random.normal(size=size)))
    scales, none = Scales.fit(values), np.zeros(size, np.int64)
    strata = fitted(scales, none, none, none, scales.codes(values), np.ones(size, bool), 4)
    found = single(Sample(strata, scales, (0, 1), Covers.whole(np.ones(1))), positive(EVERYTHING))
    true, (low, high) = np.corrcoef(values)[0, 1], found.correlation_p95(0, 1)
    assert found.correlation(0, 1) < true - 0.02  # means of four bins vary together less than values do
    assert low <= true <= high
    true, (low, high) = np.cov(values, bias=True)[0, 1], found.covariance_p95(0, 1)
    assert low <= true <= high


def test_students_quantiles_are_near_the_printed_ones():
    for paths, printed in ((3, 4.303), (5, 2.776), (11, 2.228), (31, 2.042), (1e9, 1.960)):
        assert student(paths) == pytest.approx(printed, rel=0.04)


# --- little to go by --------------------------------------------------------------------------------------------------


def test_without_strata_there_is_nothing():
    none = np.empty(0, np.int64)
    strata = Strata(
        period=none,
        starts=np.empty((3, 0, BINS), np.uint8),
        ends=np.empty((3, 0, BINS), np.uint8),
        counts=np.empty((3, 0, BINS + 1), np.int64),
        tilt=np.empty((3, 0, BINS), np.int8),
        run_offset=np.zeros(1, np.int64),
        run_place=none,
        run_first=none,
        run_days=none,
        run_turn=np.empty(0, np.uint64),
        day_rows=none,
        day_kept=none,
        codes=np.empty((3, 0), np.uint8),
    )
    for condition in ASKED:
        found = single(Sample(strata, SCALES, (0, 1, 2), Covers.whole(np.empty(0))), positive(condition))
        assert found.count() == 0
        assert found.count_p95() == (0, 0)
        assert all(
            math.isnan(each) for name, (each, _) in answers(found).items() if name not in ("count", "values", "sum")
        )


@pytest.mark.parametrize("condition", ASKED[:2] + ASKED[3:6])
def test_without_paths_features_are_independent(condition):
    found, truth = estimates(condition, share=0.0), holds(condition)
    assert found.count() == pytest.approx(truth.sum(), rel=0.05)  # as these are, or counts are exact
    assert found.of(1).average == pytest.approx(VALUES[1, truth].mean(), abs=0.05 * VALUES[1].std())
    expected = true_answers(truth)
    for name, (_, (low, high)) in answers(found).items():
        assert low - 0.01 * abs(expected[name]) <= expected[name] <= high + 0.01 * abs(expected[name]), name


def test_a_scope_whose_days_have_no_path_hears_those_of_other_days():
    kept = DAY != 7
    strata = fitted(SCALES, PLACE, DAY // 15, DAY, SCALES.codes(VALUES), kept, BINS)
    condition = And((between(0, 12.0, 25.0), between(1, 0.0, 1.0)))
    found = single(
        Sample(strata, SCALES, (0, 1, 2), Covers.whole((strata.day == 7).astype(float))), positive(condition)
    )
    truth = holds(condition) & (DAY == 7)
    assert found.count() == pytest.approx(truth.sum(), rel=0.1)
    low, high = found.count_p95()
    assert low <= truth.sum() <= high
    assert found.of(2).average == pytest.approx(np.nanmean(VALUES[2, truth]), abs=0.2 * np.nanstd(VALUES[2]))


def test_a_feature_that_is_always_absent_has_no_numbers():
    values = VALUES.copy()
    values[2] = np.nan
    scales = Scales.fit(values)
    kept = np.random.default_rng(1).random(PLACE.size) < 0.2
    strata = fitted(scales, PLACE, DAY // 15, DAY, scales.codes(values), kept, BINS)
    whole = np.ones(strata.day_rows.size)
    for condition, count in ((IsNull(2), PLACE.size), (Between(2), 0), (EVERYTHING, PLACE.size)):
        found = single(Sample(strata, scales, (0, 1, 2), Covers.whole(whole)), positive(condition))
        assert found.count() == pytest.approx(count)
        assert math.isnan(found.of(2).average)
        assert found.of(2).sum == 0
        assert math.isnan(found.correlation(0, 2))
        assert found.count_p95()[1] < math.inf


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_a_feature_of_one_value_has_one_bin_and_no_spread(share):
    values = np.stack((VALUES[0], np.full(PLACE.size, 7.5), VALUES[2]))
    scales = Scales.fit(values)
    kept = np.random.default_rng(1).random(PLACE.size) < share
    strata = fitted(scales, PLACE, DAY // 15, DAY, scales.codes(values), kept, BINS)
    whole = np.ones(strata.day_rows.size)
    clause = positive(And((Between(1, 7.5, 7.5), Between(0))))
    found = single(Sample(strata, scales, (0, 1, 2), Covers.whole(whole)), clause)
    assert found.count() == pytest.approx(PLACE.size)
    numbers = found.of(1)
    assert (numbers.average, numbers.quantile(0.9)) == pytest.approx((7.5, 7.5))
    assert numbers.deviation == pytest.approx(0.0, abs=1e-3)
    assert math.isnan(found.correlation(0, 1)) or abs(found.correlation(0, 1)) < 0.1
    for name, (estimate, (low, high)) in answers(found, 1, 0).items():
        assert math.isnan(estimate) or low <= estimate <= high, name


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize(
    "condition",
    [Between(0, 5.0, 4.0), Or(()), And((Between(0, 5.0, 4.0), between(1, 0.0, 9.0))), And((Or(()), IsNull(2)))],
)
def test_what_nothing_satisfies_is_counted_as_nothing(condition, share):
    found = estimates(condition, share)
    assert found.count() == 0
    assert found.count_p95()[0] == 0
    assert math.isnan(found.of(0).average)
    assert math.isnan(found.of(0).quantile_p95(0.5)[0])
    assert found.of(0).sum_p95 == (0, 0)
