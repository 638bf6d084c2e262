"""What lies in a part of a bin: means within it, and variances that do not hang on how far from 0 values lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synopsis.query import intervals, slices

FINE = 8
SHARES = np.array([0.05, 0.1, 0.2, 0.15, 0.1, 0.2, 0.15, 0.05])
MASS = np.append(0.0, np.cumsum(SHARES))


def measured(offset: float, begin: float, end: float, tilt: int, bins: int = 2) -> np.ndarray:
    """Share, mean and variance in a range of the mass axis, of bins of some fine bins each, all as steep as that."""
    mean = offset + np.arange(FINE) + 0.5
    square, middle = mean**2 + 1.0 / 12.0, (MASS[1:] + MASS[:-1]) / 2
    sums = (SHARES * mean, SHARES * square)
    totals = (*sums, *(each * middle for each in sums), SHARES / 12.0)
    running = np.stack([np.append(0.0, np.cumsum(total)) for total in totals])
    edges = np.linspace(0, FINE, bins + 1).astype(np.uint8)
    slopes = np.full((1, bins), tilt, np.int8)
    given_ranges = np.array([[begin, end]])
    return slices.measured(edges[None, :-1], edges[None, 1:], slopes, np.array([0]), MASS, running, given_ranges)


@given(st.floats(0.0, 0.9), st.floats(0.01, 0.5), st.integers(-3, 3), st.sampled_from([1, 2, 4, 8]))
@example(5.960464477539063e-08, 0.5, 0, 2)  # a sliver of the second bin
@example(5.960464477539063e-08, 0.5, 3, 2)
def test_a_narrow_range_of_values_far_from_zero_varies_no_more_than_one_near_it(
    begin: float, width: float, tilt: int, bins: int
) -> None:
    end = min(begin + width, float(MASS[-1]))
    near, far = (measured(offset, begin, end, tilt, bins) for offset in (0.0, 1000.0))
    there = near[0] > 1e-9  # less is rounding
    assert near[0] == pytest.approx(far[0])
    assert far[1][there] - 1000.0 == pytest.approx(near[1][there], abs=1e-6)
    assert far[2][there] == pytest.approx(near[2][there], abs=1e-5)
    first, last = np.searchsorted(MASS, (begin, end), side="right") - 1
    assert (near[1][there] >= first - 1e-9).all()
    assert (near[1][there] <= last + 1.0 + 1e-9).all()


def test_nothing_is_above_what_it_can_be_and_what_is_unknown_stays_so() -> None:
    found = intervals.capped(np.array([[1.0, 5.0, np.nan, 5.0]]), np.array([2.0, 2.0, 2.0, np.nan]))
    assert found[0] == pytest.approx([1.0, 2.0, np.nan, 5.0], nan_ok=True)
