"""What paths tell in one call is what they tell statistic by statistic."""

import numpy as np
import pytest
from tests.query.test_weighing import CONDITIONS, world

from synopsis.query.binding import Statistic
from synopsis.query.covers import Covers, Slots
from synopsis.query.estimate import Estimates
from synopsis.query.predicates import positive
from synopsis.query.sampled import Sample, effects_of
from synopsis.query.telling import tell, topic_of
from synopsis.sketch.effects import Effects

FEATURES = (0, 1, 2)


def asked(one: int, two: int) -> tuple[Statistic, ...]:
    """Everything that can be asked for at once."""
    of_one = [Statistic(name, (one,)) for name in ("mean", "sum", "std", "var", "min", "max")]
    quantiles = [Statistic("quantile", (one,), share=share) for share in (0.05, 0.5, 1.0)]
    pair = Statistic("correlation", (min(one, two), max(one, two)))
    return (Statistic("count"), *of_one, *quantiles, pair)


def by_itself(estimates: Estimates, statistic: Statistic):
    """A statistic as it is found when it is asked for alone, and its interval if it has one."""
    if statistic.function == "count":
        return estimates.count(), estimates.count_p95()
    if statistic.function == "correlation":
        return estimates.correlation(*statistic.features), estimates.correlation_p95(*statistic.features)
    numbers = estimates.of(statistic.features[0])
    if statistic.function in ("min", "max"):
        return numbers.quantile(float(statistic.function == "max")), None
    if statistic.function == "quantile":
        found = numbers.quantile(statistic.share)
        return found, numbers.quantile_p95(statistic.share) if statistic.share < 1.0 else None
    name = {"mean": "average", "std": "deviation", "var": "variance"}.get(statistic.function, statistic.function)
    return getattr(numbers, name), getattr(numbers, f"{name}_p95")


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("condition", CONDITIONS)
def test_all_at_once_is_what_each_is_by_itself(seed, condition):
    strata, scales, covered, lean = world(seed)
    covers = Covers.whole(covered, lean, strata.day_kept)
    if seed % 4 == 1:  # groups, as many as there are places
        covers, _ = covers.parted(strata.day_place % 3)
    slots, clause = Slots.of(strata, covers), positive(condition)
    one, two = ((0, 1), (1, 2), (2, 0))[seed % 3]
    statistics = asked(one, two)
    pace = (0.0, 0.02, 1.0)[seed % 3]
    effects = None if seed % 2 else effects_of(Effects(0.5, (0.3, 1.0, 4.0), (1.0, 2.5, 5.0)), 3)
    estimates = Estimates(Sample(strata, scales, FEATURES, covers, slots=slots, pace=pace, effects=effects), clause)
    heard = tell(statistics, clause, scales, FEATURES, strata, covers, slots, True, pace, effects)
    if heard is None:  # somewhere there is no path
        assert covers.groups == 0 or not estimates.sample.all_heard
        return
    assert set(heard.told) == set(statistics)
    for each, (estimate, p95) in heard.told.items():
        wanted, interval = by_itself(estimates, each)
        np.testing.assert_allclose(estimate, wanted, rtol=1e-9, atol=1e-12, err_msg=str(each))
        for mine, theirs in zip(p95 or (), interval or (), strict=False):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12, err_msg=str(each))


def test_what_is_not_asked_for_is_not_told():
    strata, scales, covered, _ = world(10)
    covers = Covers.whole(covered)
    slots = Slots.of(strata, covers)
    statistics = (Statistic("count", (1,)), Statistic("mean", (0,)), Statistic("sum", (2,)), Statistic("std", (0,)))
    heard = tell(statistics, positive(CONDITIONS[1]), scales, FEATURES, strata, covers, slots, False)
    assert {each: p95 for each, (_, p95) in heard.told.items()} == {statistics[1]: None, statistics[3]: None}


def test_without_a_statistic_of_a_feature_there_is_nothing_to_tell():
    assert topic_of((Statistic("count"), Statistic("covariance", (0, 1)), Statistic("correlation", (1, 1)))) is None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_correlation_alone_is_told_as_beside_others(seed, condition):
    strata, scales, covered, lean = world(seed)
    covers = Covers.whole(covered, lean, strata.day_kept)
    given = (positive(condition), scales, FEATURES, strata, covers, Slots.of(strata, covers), True, 0.02)
    pair = Statistic("correlation", (0, 2))
    alone, beside = tell((pair,), *given), tell(asked(0, 2), *given)
    assert (alone is None) == (beside is None)
    if alone is not None:
        assert list(alone.told) == [pair]
        np.testing.assert_array_equal(np.stack(alone.told[pair][1]), np.stack(beside.told[pair][1]))
        np.testing.assert_array_equal(alone.told[pair][0], beside.told[pair][0])
