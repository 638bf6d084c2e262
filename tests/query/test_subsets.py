"""The excess over a level and the largest mean, against all subsets of small sets of values."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.query.runs import Runs
from synopsis.query.subsets import Parts, largest_means
from synopsis.sketch.moments import Moments

values = st.one_of(
    st.floats(-1e6, 1e6),
    st.sampled_from([-1.0, 0.0, 1.0, 1e-9, 300.0]),
    st.integers(-300, 300).map(lambda number: 273.15 + number / 100),
)
parts = st.lists(values, min_size=1, max_size=6)


def parts_of(lists: list[list[float]]) -> Parts:
    return Parts.of(Runs.single(np.arange(len(lists)), len(lists)), Moments.joined([Moments.of(x) for x in lists]))


@given(st.lists(parts, min_size=1, max_size=3), values)
def test_the_excess_is_never_below_what_the_values_exceed_a_level_by(lists: list[list[float]], level: float) -> None:
    above, below = parts_of(lists).excess(np.array([[level], [-level]]))[:, 0]
    everything = np.concatenate(lists)
    assert above >= np.maximum(everything - level, 0.0).sum()
    assert below >= np.maximum(level - everything, 0.0).sum()


@given(parts, values)
def test_the_excess_is_exact_where_all_values_lie_on_one_side(numbers: list[float], level: float) -> None:
    if min(numbers) < level < max(numbers):
        level = max(numbers)
    above = parts_of([numbers]).excess(np.array([[level], [-level]]))[0, 0]
    scale = len(numbers) * max(abs(level), *(abs(number) for number in numbers))
    assert above == pytest.approx(np.maximum(np.array(numbers) - level, 0.0).sum(), abs=1e-10 * scale + 1e-140)


@given(parts, st.lists(values, min_size=2, max_size=2))
def test_the_excess_falls_as_the_level_rises(numbers: list[float], levels: list[float]) -> None:
    low, high = sorted(levels)
    known = parts_of([numbers])
    assert known.excess(np.array([[low], [0.0]]))[0, 0] >= known.excess(np.array([[high], [0.0]]))[0, 0]


@given(parts, st.lists(parts, min_size=1, max_size=2))
def test_no_subset_has_a_larger_mean_than_the_largest(inside: list[float], lists: list[list[float]]) -> None:
    known, cut = parts_of(lists), np.concatenate(lists)
    mean, top = np.mean(inside), max(max(inside), cut.max())
    bottom = min(min(inside), cut.min())
    largest, least = largest_means(
        np.array([float(len(inside))]), np.array([[mean], [-mean]]), np.array([[top], [-bottom]]), known.excess
    )[:, 0]
    slack = 1e-12 * max(abs(top), abs(bottom))
    means = [np.mean([*inside, *subset]) for size in range(cut.size + 1) for subset in combinations(cut.tolist(), size)]
    assert max(means) <= largest + slack
    assert min(means) >= -least - slack


def test_the_largest_mean_is_found_and_not_only_bounded() -> None:
    """Half of the cut values are 1 and half are -1: the chord is exact, and taking all the ones is best."""
    known = parts_of([[1.0, -1.0] * 50])
    largest = largest_means(np.array([50.0]), np.zeros((2, 1)), np.ones((2, 1)), known.excess)
    assert largest[:, 0] == pytest.approx([0.5, 0.5], rel=1e-6)


def test_outliers_do_not_spoil_the_search() -> None:
    """One value of a billion among values near zero: the bracket is wide, and its end is still found closely."""
    known = parts_of([[0.0] * 999 + [1e9]])
    largest = largest_means(np.array([1e6]), np.zeros((2, 1)), np.array([[1e9], [0.0]]), known.excess)[0, 0]
    assert largest == pytest.approx(1e9 / (1e6 + 1), rel=1e-3)


def test_many_groups_are_searched_at_once() -> None:
    rng = np.random.default_rng(4)
    lists = [rng.normal(group, 1.0 + group, 30).tolist() for group in range(40)]
    moments = Moments.joined([Moments.of(numbers) for numbers in lists])
    together = Parts.of(Runs.of(np.arange(40), np.arange(40), 40), moments)
    count, mean = np.full(40, 20.0), np.arange(40.0)
    top = np.stack([np.maximum(moments.high, mean), -np.minimum(moments.low, mean)])
    largest = largest_means(count, np.stack([mean, -mean]), top, together.excess)
    for group in range(40):
        alone = largest_means(
            count[:1],
            np.array([[mean[group]], [-mean[group]]]),
            top[:, group : group + 1],
            parts_of([lists[group]]).excess,
        )
        assert largest[:, group] == pytest.approx(alone[:, 0], rel=1e-5)
