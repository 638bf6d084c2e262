import math

import numpy as np
import pytest

from synopsis.query.estimate import Estimates, _highest_step, _lowest_step
from synopsis.query.predicates import EVERYTHING, And, Between, IsNull, Not, Or, positive
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import fitted

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
    return Estimates(strata, SCALES, (0, 1, 2), whole, positive(condition))


def holds(condition):
    match condition:
        case Between():
            return (VALUES[condition.feature] >= condition.low) & (VALUES[condition.feature] < condition.high)
        case IsNull():
            return np.isnan(VALUES[condition.feature])
        case And():
            return np.logical_and.reduce([holds(part) for part in condition.conditions])
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
