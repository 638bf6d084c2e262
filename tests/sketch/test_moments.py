import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch.moments import Comoments, Moments
from synopsis.testing.strategies import readings

START = np.array([0])


def pooled(kind, parts):
    return kind.joined(parts).pooled(START)


@given(st.lists(st.lists(readings, max_size=6), min_size=1, max_size=6))
def test_pooled_moments_are_those_of_all_values(parts):
    got = pooled(Moments, [Moments.of(part) for part in parts])
    values = np.array([value for part in parts for value in part if not math.isnan(value)])
    assert got.count[0] == values.size
    if values.size:
        assert got.low[0] == values.min()
        assert got.high[0] == values.max()
        assert got.mean[0] == pytest.approx(values.mean(), rel=1e-12, abs=1e-12)
        assert got.spread[0] == pytest.approx(((values - values.mean()) ** 2).sum(), rel=1e-9, abs=1e-7)


@given(st.lists(st.lists(st.tuples(readings, readings), max_size=6), min_size=1, max_size=6))
def test_pooled_comoments_are_those_of_all_pairs(parts):
    got = pooled(Comoments, [Comoments.of([p[0] for p in part], [p[1] for p in part]) for part in parts])
    both = np.array([pair for part in parts for pair in part if not any(map(math.isnan, pair))]).reshape(-1, 2)
    assert got.count[0] == len(both)
    if len(both):
        one, two = (both - both.mean(axis=0)).T
        assert got.cross[0] == pytest.approx((one * two).sum(), rel=1e-9, abs=1e-6)


def test_equal_values_have_no_spread_however_they_are_pooled():
    parts = [Moments.of([960.1] * count) for count in (1, 7, 3, 11)]
    assert pooled(Moments, parts).spread[0] == 0.0


def test_the_spread_of_pascals_keeps_its_digits():
    noise = np.random.default_rng(1).normal(0, 0.5, 100_000)
    parts = [Moments.of(100_000_000.0 + part) for part in np.split(noise, 100)]
    exact = ((noise - noise.mean()) ** 2).sum()
    shifted = 100_000_000.0 + noise  # what the values themselves lost on their way there is not the pooling's fault
    assert pooled(Moments, parts).spread[0] == pytest.approx(((shifted - shifted.mean()) ** 2).sum(), rel=1e-9)
    assert pooled(Moments, parts).spread[0] == pytest.approx(exact, rel=1e-6)


def test_the_highest_of_all_negative_values_is_negative():
    assert pooled(Moments, [Moments.of([-7.0, -3.0]), Moments.of([-5.0])]).high[0] == -3.0


def test_independent_values_have_a_small_correlation_and_falling_ones_a_negative_one():
    random = np.random.default_rng(2)
    one, two = random.normal(size=(2, 10_000))
    independent, falling = Comoments.of(one, two), Comoments.of(one, -one)

    def correlation(pair):
        return pair.cross[0] / math.sqrt(pair.first_spread[0] * pair.second_spread[0])

    assert abs(correlation(independent)) < 0.05
    assert correlation(falling) == pytest.approx(-1.0)
