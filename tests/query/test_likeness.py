"""An order of likeness: all rows, like ones side by side, so that even steps along it lose little."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from synopsis.query.likeness import ordered_by_likeness

ROWS, FEATURES = 4_096, 3
RANDOM = np.random.default_rng(1)
VALUES = RANDOM.normal(size=(FEATURES, ROWS)) * np.array([[1.0], [100.0], [0.01]])


@given(
    arrays.arrays(
        np.float64, st.tuples(st.integers(1, 3), st.integers(0, 40)), elements=st.floats(-1e6, 1e6) | st.just(np.nan)
    ),
    st.integers(0, 50),
)
def test_every_row_has_one_place_in_the_order(values, parts):
    order = ordered_by_likeness(values, parts, np.random.default_rng(0))
    assert sorted(order) == list(range(values.shape[1]))


def test_rows_of_a_part_are_alike_in_every_feature_whatever_its_unit():
    parts = VALUES[:, ordered_by_likeness(VALUES, 512, RANDOM)].reshape(FEATURES, 512, -1)
    within = parts.std(axis=2).mean(axis=1) / VALUES.std(axis=1)
    assert within == pytest.approx(np.full(FEATURES, within.mean()), rel=0.1)
    assert within.max() < 0.3  # eight cuts a feature leave an eighth of its mass


def test_missing_values_stand_beside_each_other():
    values = VALUES.copy()
    values[0, : ROWS // 4] = np.nan
    missing = np.isnan(values[0, ordered_by_likeness(values, 64, RANDOM)]).reshape(64, -1).mean(axis=1)
    assert ((missing == 0) | (missing == 1)).mean() > 0.9


@pytest.mark.parametrize("of", [lambda x: x[0], lambda x: x[1] ** 2, lambda x: x[0] * x[2], lambda x: np.abs(x[2])])
def test_means_of_even_steps_differ_less_from_the_truth_than_those_of_a_random_part(of):
    truth, step, found = of(VALUES).mean(), 8, {"steps": [], "chance": []}
    for seed in range(40):
        random = np.random.default_rng(seed)
        order = ordered_by_likeness(VALUES, ROWS // step, random)
        found["steps"].append(of(VALUES[:, order[random.integers(step) :: step]]).mean())
        found["chance"].append(of(VALUES[:, random.permutation(ROWS)[: ROWS // step]]).mean())
    off = {how: np.sqrt(np.mean(np.square(np.array(means) - truth))) for how, means in found.items()}
    assert off["steps"] < 0.8 * off["chance"]


def test_rows_that_are_all_alike_are_in_random_order():
    same, again, other = (
        ordered_by_likeness(np.ones((2, 100)), 4, np.random.default_rng(seed)).tolist() for seed in (1, 1, 2)
    )
    assert same == again
    assert same != other
    assert same != sorted(same)
