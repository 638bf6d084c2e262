"""Certain intervals hold for every subset of the rows of cut strands, and exact values are those of the rows.

Hypothesis makes groups of small strands, some inside and some cut, with missing values, offsets, constants and atoms;
every statistic of every subset of the cut rows must lie in its interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synopsis.query.bounds import Groups, Numbers, counted
from synopsis.query.pairs import PairedNumbers
from synopsis.query.runs import Runs
from synopsis.query.values import CERTAIN, EXACT, Value, Values
from synopsis.sketch.moments import Comoments, Moments

Rows = NDArray[np.float64]  #: two features x rows, NaN being absent


@dataclass(frozen=True)
class Group:
    """The strands of one group, as rows."""

    inside: list[Rows]
    cut: list[Rows]
    fraction: list[float]

    def subsets(self) -> Iterator[Rows]:
        """The inside with every subset of the cut rows."""
        cut = np.concatenate([np.empty((2, 0)), *self.cut], axis=1)
        inside = np.concatenate([np.empty((2, 0)), *self.inside], axis=1)
        for taken in product((False, True), repeat=cut.shape[1]):
            yield np.concatenate([inside, cut[:, np.array(taken, bool)]], axis=1)


@st.composite
def strands(draw: st.DrawFn, offset: float, step: float, most: int) -> Rows:
    """A few rows on a grid around an offset (so that ties and constants happen), some values missing."""
    number = st.one_of(st.none(), st.integers(-4, 4), st.integers(-1000, 1000))
    rows = draw(st.lists(st.tuples(number, number), min_size=1, max_size=most))
    return np.array([[math.nan if x is None else offset + step * x for x in row] for row in rows]).T


@st.composite
def groups(draw: st.DrawFn) -> list[Group]:
    offset = draw(st.sampled_from([0.0, 0.0, 273.15, 101325.0, -1e6]))
    step = draw(st.sampled_from([1.0, 0.01, 1e-6]))
    made = []
    for _ in range(draw(st.integers(1, 3))):
        inside = draw(st.lists(strands(offset, step, 4), max_size=3))
        cut = draw(st.lists(strands(offset, step, 3), max_size=2))
        fraction = [draw(st.floats(0.0, 1.0)) for _ in cut]
        made.append(Group(inside, cut, fraction))
    return made


def laid_out(made: list[Group]) -> tuple[Groups, list[Rows]]:
    """The groups as runs over a list of strands."""
    rows: list[Rows] = []
    runs = []
    for side in ("inside", "cut"):
        positions, numbers = [], []
        for number, group in enumerate(made):
            for strand in getattr(group, side):
                positions.append(len(rows))
                numbers.append(number)
                rows.append(strand)
        runs.append(Runs.of(np.array(positions, np.int64), np.array(numbers, np.int64), len(made)))
    fraction = np.array([share for group in made for share in group.fraction], np.float64)
    return Groups(*runs, fraction), rows


def moments(rows: list[Rows], feature: int) -> Moments:
    return Moments.joined([Moments.empty(0), *(Moments.of(strand[feature]) for strand in rows)])


def numbers(made: list[Group], feature: int = 0) -> Numbers:
    placed, rows = laid_out(made)
    return Numbers(placed, moments(rows, feature))


def paired(made: list[Group]) -> PairedNumbers:
    placed, rows = laid_out(made)
    comoments = Comoments.joined([Comoments.empty(0), *(Comoments.of(*strand) for strand in rows)])
    return PairedNumbers(placed, comoments, moments(rows, 0), moments(rows, 1))


def present(rows: Rows) -> Rows:
    return rows[0][~np.isnan(rows[0])]


def complete(rows: Rows) -> Rows:
    """The rows that have both, from the first of them on."""
    both = rows[:, ~np.isnan(rows).any(axis=0)]
    return both - both[:, :1]


def covariance(rows: Rows) -> float:
    both = complete(rows)
    return float(((both[0] - both[0].mean()) * (both[1] - both[1].mean())).mean()) if both.size else math.nan


def correlation(rows: Rows) -> float:
    both = complete(rows)
    if not both.shape[1] or both[0].min() == both[0].max() or both[1].min() == both[1].max():
        return math.nan
    return float(np.clip(covariance(rows) / (both[0].std() * both[1].std()), -1.0, 1.0))


def of_values(statistic: Callable[[Rows], float]) -> Callable[[Rows], float]:
    return lambda rows: float(statistic(present(rows))) if present(rows).size else math.nan


TRUTHS: dict[str, Callable[[Rows], float]] = {
    "count": lambda rows: float(present(rows).size),
    "sum": of_values(math.fsum),
    "mean": of_values(lambda x: math.fsum(x) / x.size),
    "var": of_values(lambda x: np.var(x - x[0])),  # differences are exact where variances are small
    "std": of_values(lambda x: np.std(x - x[0])),
    "min": of_values(np.min),
    "max": of_values(np.max),
    "covariance": covariance,
    "correlation": correlation,
}


def computed(made: list[Group], name: str) -> Values:
    source = paired(made) if name in ("covariance", "correlation") else numbers(made)
    return getattr(source, name)()  # type: ignore[no-any-return]


def rounding(name: str, rows: Rows, truth: float) -> float:
    """What float64 takes from an exact statistic: 1e-9 of it, and what the last place of values does.

    It shows in distances, and in sums of values that cancel, which may be added in any order.
    """
    place = 2e-15 * float(np.nanmax(np.abs(rows), initial=0.0))
    both = complete(rows)
    first, second = (float(feature.std()) if feature.size else 0.0 for feature in both)
    shift = {
        "sum": rows.shape[-1] * place,
        "mean": place,
        "var": math.sqrt(abs(truth)) * place,
        "std": place,
        "covariance": (first + second) * place,
        "correlation": place / first + place / second if first and second else 0.0,
    }
    return 1e-9 * abs(truth) + 4 * shift.get(name, 0.0)


@pytest.mark.parametrize("name", TRUTHS)
@given(made=groups())
@settings(max_examples=150, deadline=None)
def test_every_subset_lies_in_the_interval(name: str, made: list[Group]) -> None:
    found = computed(made, name)
    for number, group in enumerate(made):
        low, high = found.low[number], found.high[number]
        for rows in group.subsets():
            truth = TRUTHS[name](rows)
            if math.isnan(truth):
                continue
            slack = rounding(name, rows, truth) if found.guarantee[number] == EXACT else 0.0
            assert low - slack <= truth <= high + slack


@pytest.mark.parametrize("name", TRUTHS)
@given(made=groups())
@settings(max_examples=60, deadline=None)
def test_an_estimate_lies_in_its_interval_and_is_defined_when_something_is(name: str, made: list[Group]) -> None:
    found = computed(made, name)
    for number, group in enumerate(made):
        estimate, low, high = found.estimate[number], found.low[number], found.high[number]
        if math.isnan(estimate):
            assert math.isnan(low)
            assert math.isnan(high)
            everything = list(group.subsets())[-1]
            assert math.isnan(TRUTHS[name](everything))
        else:
            assert low <= estimate <= high


@pytest.mark.parametrize("name", TRUTHS)
@given(made=groups())
@settings(max_examples=60, deadline=None)
def test_a_group_without_cut_strands_is_exact_and_one_with_them_is_not_called_so(name: str, made: list[Group]) -> None:
    found = computed(made, name)
    for number, group in enumerate(made):
        truths = [TRUTHS[name](rows) for rows in group.subsets()]
        if not group.cut:
            assert found.guarantee[number] == EXACT
            rows = next(group.subsets())
            assert found.estimate[number] == pytest.approx(
                truths[0], rel=0, abs=rounding(name, rows, truths[0]), nan_ok=True
            )
        if found.guarantee[number] == EXACT:
            assert np.array_equal(found.low[number], found.high[number], equal_nan=True)
            defined = [truth for truth in truths if not math.isnan(truth)]
            assert defined == pytest.approx([truths[-1]] * len(defined), rel=1e-6, abs=1e-6)
        else:
            assert found.guarantee[number] == CERTAIN


def whole(*strands: list[float]) -> list[Rows]:
    return [np.array([strand, strand]) for strand in strands]


def test_count_of_rows_runs_from_the_inside_to_all_and_guesses_by_fraction() -> None:
    placed, _ = laid_out([Group(whole([1.0, 2.0]), whole([3.0] * 10), [0.3]), Group(whole([1.0]), [], [])])
    rows = counted(placed, np.array([2, 1, 10]))
    assert rows.estimate.tolist() == [5, 1]
    assert (rows.low.tolist(), rows.high.tolist()) == ([2, 1], [12, 1])
    assert rows.guarantee.tolist() == [CERTAIN, EXACT]


def test_a_cut_strand_without_values_of_the_feature_leaves_it_exact() -> None:
    silent = np.array([[math.nan, math.nan], [1.0, 2.0]])
    made = [Group(whole([4.0, 6.0]), [silent], [0.5])]
    assert numbers(made).mean().guarantee.tolist() == [EXACT]
    assert numbers(made, feature=1).mean().guarantee.tolist() == [CERTAIN]
    assert paired(made).covariance().guarantee.tolist() == [EXACT]


def test_an_extreme_that_cut_strands_cannot_move_is_exact() -> None:
    made = [Group(whole([0.0, 10.0]), whole([4.0, 5.0]), [0.5])]
    assert (numbers(made).min().estimate[0], numbers(made).max().estimate[0]) == (0.0, 10.0)
    assert numbers(made).min().guarantee.tolist() == numbers(made).max().guarantee.tolist() == [EXACT]


def test_an_extreme_that_may_not_exist_is_never_called_exact() -> None:
    value = numbers([Group([], whole([4.0]), [0.5])]).max()[0]
    assert value == Value(4.0, 4.0, 4.0, "certain")


def test_a_sum_of_values_of_one_sign_is_bounded_by_all_of_them() -> None:
    total = numbers([Group(whole([1.0, 2.0]), whole([3.0, 4.0]), [0.5])]).sum()
    assert (total.low[0], total.high[0]) == (pytest.approx(3.0), pytest.approx(10.0))
    assert total.estimate[0] == pytest.approx(6.5)
    all_negative = numbers([Group(whole([-1.0, -2.0]), whole([-3.0, -4.0]), [0.5])]).sum()
    assert (all_negative.low[0], all_negative.high[0]) == (pytest.approx(-10.0), pytest.approx(-3.0))


def test_a_sum_of_nothing_but_rain_is_never_negative() -> None:
    total = numbers([Group([], whole([0.0, 0.0], [0.0, 3.5]), [0.5, 0.5])]).sum()
    assert total.low[0] == 0.0
    assert total.high[0] == pytest.approx(3.5)


def test_nothing_has_a_count_of_zero_and_no_other_statistic() -> None:
    nothing = [Group([], [], [])]
    assert numbers(nothing).count()[0].estimate == 0
    for name in TRUTHS:
        if name != "count":
            value = computed(nothing, name)[0]
            assert (value.estimate, value.low, value.high, value.guarantee) == (None, None, None, "exact")


def test_constants_of_any_offset_have_no_variance_and_no_correlation() -> None:
    constant = [Group(whole([273.15] * 3, [273.15] * 7, [273.15]), [], [])]
    assert numbers(constant).var()[0].estimate == 0.0
    assert numbers(constant).std()[0].estimate == 0.0
    assert paired(constant).correlation()[0].estimate is None
    cut = numbers([Group(whole([273.15] * 3), whole([273.15] * 5), [0.4])]).std()[0]
    assert (cut.estimate, cut.low, cut.high) == (0.0, 0.0, pytest.approx(0.0, abs=1e-11))


def test_a_correlation_can_be_minus_one() -> None:
    opposed = [np.array([[1.0, 2.0, 4.0], [5.0, 4.0, 2.0]]), np.array([[9.0, 0.0], [-3.0, 6.0]])]
    value = paired([Group(opposed, [], [])]).correlation()[0]
    assert value.estimate == pytest.approx(-1.0)
    assert value.low == value.estimate


@pytest.mark.parametrize("sizes", [(1e148, 1e15), (1e148, 1e148), (1e-130, 1e-60), (1e-130, 1e140)], ids=str)
def test_correlations_of_very_large_and_very_small_numbers_are_those_of_any(sizes: tuple[float, float]) -> None:
    """Products of squares of such numbers are beyond what a double holds, on one side or the other."""
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(2, 32)) * np.array(sizes)[:, None]
    whole_rows = [Group([rows[:, :7], rows[:, 7:]], [], [])]
    assert paired(whole_rows).correlation()[0].estimate == pytest.approx(TRUTHS["correlation"](rows), rel=1e-9)
    made = Group([rows[:, :30]], [rows[:, 30:]], [0.5])
    for name, found in (("covariance", paired([made]).covariance()), ("correlation", paired([made]).correlation())):
        assert found.low[0] <= found.estimate[0] <= found.high[0]
        assert found.high[0] - found.low[0] < (1.0 if name == "correlation" else sizes[0] * sizes[1])
        assert all(found.low[0] <= TRUTHS[name](subset) <= found.high[0] for subset in made.subsets())


def test_a_small_cut_leaves_narrow_intervals() -> None:
    """A tenth of the rows is cut: intervals that are certain and useless would fail here."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(2, 1100))
    rows[1] = 0.8 * rows[0] + 0.6 * rows[1]
    made = [Group([rows[:, :1000]], [rows[:, 1000:]], [0.5])]
    mean, var, link = numbers(made).mean()[0], numbers(made).var()[0], paired(made).correlation()[0]
    assert mean.high is not None
    assert mean.low is not None
    assert mean.high - mean.low < 0.12
    assert var.high is not None
    assert var.low is not None
    assert var.high - var.low < 0.25
    assert link.low is not None
    assert link.low > 0.6
