"""Ends of ranges among values that many rows have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from synopsis.query import influences
from synopsis.query.bins import cuts_of, on_axis
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.scales import Scales

RANDOM = np.random.default_rng(5)
COUNT = 40_000
#: Flight levels and what lies between them: every level has more rows than a fine bin.
LEVELS = 330.25 + 1_000.5 * np.arange(30)
HEIGHTS = np.where(RANDOM.random(COUNT) < 0.7, RANDOM.choice(LEVELS, COUNT), RANDOM.uniform(0.0, 30_000.0, COUNT))
#: Whole numbers, and fractions of some rows.
SPEEDS = np.where(RANDOM.random(COUNT) < 0.8, np.round(RANDOM.normal(250, 60, COUNT)), RANDOM.normal(250, 60, COUNT))


def axis_of(values: np.ndarray) -> MassAxis:
    return MassAxis.of(Scales.fit(values[None, :]), 0)


def share(axis: MassAxis, low: float, high: float) -> float:
    return float(np.diff(on_axis(axis, ((low, high),))).sum()) / float(axis.mass[-1])


@pytest.mark.parametrize("level", LEVELS[[0, 7, 18, 29]])
def test_a_value_that_many_rows_have_is_within_a_range_that_ends_there_and_outside_one_that_ends_before(level):
    """However many there are of such values: 30 here, which no ticks of their own would hold."""
    axis = axis_of(HEIGHTS)
    assert axis.step == 0.0
    beside = 0.002  # what shares a tick with it
    assert share(axis, level, math.inf) == pytest.approx((level <= HEIGHTS).mean(), abs=beside)
    assert share(axis, math.nextafter(level, math.inf), math.inf) == pytest.approx((level < HEIGHTS).mean(), abs=beside)
    assert share(axis, -math.inf, level) == pytest.approx((level >= HEIGHTS).mean(), abs=beside)
    assert share(axis, -math.inf, math.nextafter(level, 0.0)) == pytest.approx((level > HEIGHTS).mean(), abs=beside)


def test_a_value_of_many_digits_is_told_from_the_next_one():
    """Nobody writes so many, but a program may; kept are fewer."""
    value = math.sqrt(200.0)
    axis = axis_of(np.where(RANDOM.random(COUNT) < 0.3, value, RANDOM.normal(14.0, 3.0, COUNT)))
    at = int(np.argmax(np.diff(axis.mass)))
    assert axis.low[at] == axis.high[at] == pytest.approx(value)
    above = {share(axis, low, math.inf) for low in (value, math.nextafter(value, 0.0))}
    beyond = share(axis, math.nextafter(value, math.inf), math.inf)
    assert len(above) == 1
    assert above.pop() - beyond == pytest.approx((axis.mass[at + 1] - axis.mass[at]) / axis.mass[-1])


@pytest.mark.parametrize("around", [0.0, 101_325.0, 1.7e9])
def test_values_far_from_nothing_are_told_apart_as_others_are(around):
    """Bins may be narrower than what is kept of a value: then a range is off by two of 250 at most."""
    values = around + RANDOM.normal(0.0, 5e-3 + around * 1e-9, COUNT)
    axis = axis_of(values)
    for place in (0.1, 0.35, 0.5, 0.8):
        end = float(np.quantile(values, place))
        assert share(axis, -math.inf, end) == pytest.approx(place, abs=0.01)
        assert share(axis, end, math.inf) == pytest.approx(1.0 - place, abs=0.01)


def test_values_that_mostly_lie_on_a_narrow_grid_are_taken_to_lie_there():
    axis = axis_of(SPEEDS)
    assert axis.step == 1.0
    assert share(axis, 200.0, 280.0) == pytest.approx(((SPEEDS >= 200) & (SPEEDS <= 280)).mean(), abs=0.003)


def test_a_grid_that_is_coarse_beside_what_most_rows_have_is_not_taken_unless_nearly_all_lie_on_it():
    """Of values between 0 and 8, every other one a whole number, fractions are not to be rounded to whole ones."""
    values = RANDOM.gamma(4.0, 1.0, COUNT)
    assert axis_of(np.where(RANDOM.random(COUNT) < 0.6, np.round(values), values)).step <= 0.05
    assert axis_of(np.where(RANDOM.random(COUNT) < 0.98, np.round(values), values)).step == 1.0


def test_a_finer_grid_that_holds_all_is_taken_before_a_coarser_one_that_holds_most():
    values = np.round(RANDOM.normal(250, 60, COUNT), 1)
    assert axis_of(np.where(RANDOM.random(COUNT) < 0.7, np.round(values), values)).step == 0.1


def test_an_end_beside_the_grid_leaves_open_what_may_lie_between():
    """Who asks for 200.3 and more may know of a row with 200.4: as much is open as lies within that part of a step."""
    axis = axis_of(SPEEDS)
    on_it, beside = cuts_of(axis, ((200.0, 280.0),)), cuts_of(axis, ((200.3, 280.0),))
    more = set(beside) - set(on_it)
    assert len(more) == 1
    (begin, after, left_open) = more.pop()
    assert begin <= axis.below(200.5, included=False) < after
    wide = max(1.0, float(np.diff([axis.low, axis.high], axis=0)[0][axis.mass.searchsorted(begin)]))
    assert left_open == pytest.approx(0.2 / wide / influences.LUMPS)
    high = set(cuts_of(axis, ((200.0, 279.8),))) - set(on_it)
    assert [each[1] for each in high] == [pytest.approx(axis.below(279.5, included=True))]
