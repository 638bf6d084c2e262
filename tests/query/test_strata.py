"""Whatever the rows of strata are, the statistics of those that a condition selects lie in their intervals.

Hypothesis makes small strata of rows with missing values, bins of their own in every stratum, counts known more or less
well, scopes that cut through them, and trees of conditions; the truth is computed row by row. And intervals are no
wider than need be: small cases are compared with everything that could be, others are worked out by hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synopsis.query.histograms import Histogram, Strata
from synopsis.query.predicates import EVERYTHING, And, Between, Condition, IsNull, Not, Or
from synopsis.query.strata import Interval, Selection

Rows = NDArray[np.float64]  #: rows x features, NaN being absent

FEATURES = 3
SHARES = (0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0)


# --- the truth, row by row --------------------------------------------------------------------------------------------


def truth_of(condition: Condition, row: NDArray[np.float64]) -> bool | None:
    """What SQL says: true, false or unknown."""
    match condition:
        case Between():
            value = row[condition.feature]
            if math.isnan(value):
                return None
            above = value >= condition.low if condition.low_closed else value > condition.low
            below = value <= condition.high if condition.high_closed else value < condition.high
            return bool(above and below)
        case IsNull():
            return math.isnan(row[condition.feature])
        case Not():
            inner = truth_of(condition.condition, row)
            return None if inner is None else not inner
        case And() | Or():
            decisive = isinstance(condition, Or)
            parts = [truth_of(part, row) for part in condition.conditions]
            return decisive if decisive in parts else None if None in parts else not decisive


@dataclass(frozen=True)
class World:
    """Rows, which of them are in scope, and what the sketch knows of them."""

    rows: list[Rows]  #: of each stratum
    in_scope: list[NDArray[np.bool_]]
    strata: Strata
    histograms: dict[int, Histogram]

    def selected(self, group: int, condition: Condition) -> Rows:
        """The rows of a group that are in scope and satisfy the condition."""
        rows = [np.empty((0, FEATURES))]
        for number in np.flatnonzero(self.strata.group == group):
            rows.append(self.rows[number][self.in_scope[number]])
        joined = np.concatenate(rows)
        return joined[[truth_of(condition, row) is True for row in joined]]


# --- random worlds ----------------------------------------------------------------------------------------------------


def binned(
    values: NDArray[np.float64], bins: int, loose: int, random: np.random.Generator
) -> list[NDArray[np.generic]]:
    """A histogram of one stratum, in the order of Histogram's fields: its own edges, counts more or less known."""
    present = values[~np.isnan(values)]
    grid = np.unique([*present, *random.choice([-1.5, 0.0, 0.5], 2)])
    edges = np.sort(random.choice(grid, min(int(random.integers(0, bins)), grid.size), replace=False))
    code = np.searchsorted(edges, present, side=random.choice(["left", "right"]))
    count, used = np.bincount(code, minlength=bins), edges.size + 1
    low, high = random.choice([-9.0, 7.0], (2, bins))  # the ends of what is surely empty do not matter
    low[:used], high[:used] = [grid[0] - 0.5, *edges], [*edges, grid[-1] + 0.5]
    for number in np.flatnonzero(count):
        inner = present[code == number]
        low[number] = random.choice([low[number], inner.min()])
        high[number] = random.choice([high[number], inner.max()])
    absent = values.size - present.size
    off = random.integers(0, loose + 1, (2, bins + 1))
    least = np.maximum(count - off[0, :bins], 0)
    most = count + np.where(np.arange(bins) < used, off[1, :bins], 0)
    return [least, most, np.array(max(absent - off[0, bins], 0)), np.array(absent + off[1, bins]), low, high]


def trees() -> st.SearchStrategy[Condition]:
    """Trees of conditions on a few features, with ends on whole numbers and between them."""
    features = st.integers(0, FEATURES - 1)
    halves = st.integers(-9, 9).map(lambda half: half / 2)
    lows, highs = st.one_of(st.just(-math.inf), halves), st.one_of(halves, st.just(math.inf))
    leaves = st.one_of(
        st.builds(Between, features, lows, highs, st.booleans(), st.booleans()), st.builds(IsNull, features)
    )

    def grown(children: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        several = st.lists(children, max_size=3).map(tuple)
        return st.one_of(st.builds(Not, children), st.builds(And, several), st.builds(Or, several))

    return st.one_of(st.just(And()), leaves, st.recursive(leaves, grown, max_leaves=5))


@dataclass(frozen=True)
class Making:
    """How to make a world, but for chance."""

    strata: int
    groups: int
    most_rows: int
    bins: int
    spread: int  #: values are the whole numbers from -spread to spread, times `step`, plus `offset`
    offset: float
    step: float
    missing: float  #: share of values
    whole: float  #: share of strata that the scope holds with all their rows
    loose: int  #: by how much counts may be off

    def scaled(self, condition: Condition) -> Condition:
        """A condition on whole numbers, as one on the values."""
        match condition:
            case Between():
                low, high = (self.offset + self.step * end for end in (condition.low, condition.high))
                return Between(condition.feature, low, high, condition.low_closed, condition.high_closed)
            case IsNull():
                return condition
            case Not():
                return Not(self.scaled(condition.condition))
            case And() | Or():
                return type(condition)(tuple(map(self.scaled, condition.conditions)))

    def world(self, random: np.random.Generator) -> World:
        """One of the worlds."""
        rows = []
        for size in random.integers(0, self.most_rows + 1, self.strata):
            values = self.offset + self.step * random.integers(-self.spread, self.spread + 1, (size, FEATURES))
            rows.append(np.where(random.random(values.shape) < self.missing, np.nan, values))
        # Of each row: 0 out of scope, 1 surely in it, 2 perhaps and in truth not, 3 perhaps and in truth.
        roles = [np.where(random.random() < self.whole, 1, random.integers(0, 4, len(part))) for part in rows]
        strata = Strata(
            np.array([len(part) for part in rows]),
            np.array([np.sum(role == 1) for role in roles]),
            np.array([np.sum(role >= 2) for role in roles]),
            np.sort(random.integers(0, self.groups, len(rows))),
            self.groups,
        )
        histograms = {}
        for feature in range(FEATURES):
            each = [binned(part[:, feature], self.bins, self.loose, random) for part in rows]
            least, most, *rest = (np.stack(arrays, axis=-1) for arrays in zip(*each, strict=True))
            histograms[feature] = Histogram(least, most if self.loose else least, *rest)
        return World(rows, [np.isin(role, (1, 3)) for role in roles], strata, histograms)


makings = st.builds(
    Making,
    strata=st.integers(1, 4),
    groups=st.integers(1, 3),
    most_rows=st.sampled_from([1, 2, 4, 12]),
    bins=st.integers(1, 5),
    spread=st.integers(0, 5),
    offset=st.sampled_from([0.0, 0.0, 0.0, 273.15, 101325.0, -1e6]),
    step=st.sampled_from([1.0, 1.0, 0.01, 1e-6]),
    missing=st.sampled_from([0.0, 0.2, 0.6]),
    whole=st.sampled_from([0.0, 0.5, 1.0]),
    loose=st.sampled_from([0, 0, 1, 3]),
)
seeds = st.integers(0, 2**32)


# --- always -----------------------------------------------------------------------------------------------------------


def holds(interval: Interval, group: int, truth: float) -> bool:
    return bool(interval.low[group] <= truth <= interval.high[group])


@pytest.mark.slow
@settings(max_examples=2500, deadline=None)
@given(makings, trees(), st.sampled_from(SHARES), st.integers(0, FEATURES - 1), seeds)
def test_the_truth_always_lies_in_the_interval(
    making: Making, tree: Condition, share: float, feature: int, seed: int
) -> None:
    condition, random = making.scaled(tree), np.random.default_rng(seed)
    for _ in range(3):
        check(making.world(random), condition, share, feature)


def check(world: World, condition: Condition, share: float, feature: int) -> None:
    selection = Selection(world.strata, world.histograms, condition)
    rows, values = selection.count(), selection.values(feature)
    count, mean, quantile = values.count(), values.mean(), values.quantile(share)
    for group in range(world.strata.groups):
        selected = world.selected(group, condition)
        assert holds(rows, group, len(selected))
        truth = selected[~np.isnan(selected[:, feature]), feature]
        assert holds(count, group, truth.size)
        assert math.isnan(mean.low[group]) == (count.high[group] == 0)
        if truth.size:
            assert holds(values.sum(), group, truth.sum())
            assert holds(mean, group, truth.mean())
            assert holds(values.min(), group, truth.min())
            assert holds(values.max(), group, truth.max())
            assert holds(quantile, group, np.quantile(truth, share))


@settings(max_examples=150, deadline=None)
@given(makings, trees(), st.sampled_from(SHARES), seeds)
def test_groups_do_not_see_each_other(making: Making, tree: Condition, share: float, seed: int) -> None:
    world, condition = making.world(np.random.default_rng(seed)), making.scaled(tree)
    together = answers(world.strata, world.histograms, condition, share)
    for group in range(world.strata.groups):
        mask = world.strata.group == group
        total, inside, cut = (getattr(world.strata, name)[mask] for name in ("total", "inside", "cut"))
        alone = Strata(total, inside, cut, np.zeros(mask.sum(), np.int64), 1)
        histograms = {
            feature: Histogram(*(getattr(histogram, field.name)[..., mask] for field in fields(Histogram)))
            for feature, histogram in world.histograms.items()
        }
        for every, one in zip(together, answers(alone, histograms, condition, share), strict=True):
            np.testing.assert_allclose([end[group] for end in every], [end[0] for end in one], rtol=1e-8, atol=1e-8)


def answers(
    strata: Strata, histograms: dict[int, Histogram], condition: Condition = EVERYTHING, share: float = 0.5
) -> list[Interval]:
    """COUNT, SUM, MEAN, MIN, MAX and QUANTILE of the first feature."""
    values = Selection(strata, histograms, condition).values(0)
    return [values.count(), values.sum(), values.mean(), values.min(), values.max(), values.quantile(share)]


def test_no_strata_have_nothing() -> None:
    none, bins = np.empty(0, np.int64), np.empty((4, 0))
    histogram = Histogram(bins.astype(np.int64), bins.astype(np.int64), none, none, bins, bins)
    count, *others = answers(Strata(none, none, none, none, 2), {0: histogram})
    np.testing.assert_array_equal(count, 0.0)
    np.testing.assert_array_equal(others, np.nan)


# --- no wider than need be --------------------------------------------------------------------------------------------


@st.composite
def cut_parts(draw: st.DrawFn) -> tuple[list[int], int, int]:
    """The rows of a stratum, how many are surely in scope, and how many more may be."""
    rows = draw(st.lists(st.integers(-3, 3), min_size=1, max_size=4))
    inside = draw(st.integers(0, len(rows)))
    return rows, inside, draw(st.integers(0, len(rows) - inside))


@settings(max_examples=200, deadline=None)
@given(st.lists(cut_parts(), min_size=1, max_size=2), st.sampled_from(SHARES))
@example([([0, 0, 0], 3, 0), ([-1], 0, 1)], 1 / 3)
def test_one_feature_known_by_value_is_bounded_as_closely_as_can_be(
    made: list[tuple[list[int], int, int]], share: float
) -> None:
    """Every choice of rows that the scope allows is tried; quantiles are bounded by the two values around them."""
    inside, cut = (np.array(numbers) for numbers in list(zip(*made, strict=True))[1:])
    absent = np.zeros(len(made), np.int64)
    strata = Strata(np.array([len(rows) for rows, _, _ in made]), inside, cut, absent, 1)
    atoms = np.repeat(np.arange(-3.0, 4.0)[:, None], len(made), axis=1)
    counts = np.array([[rows.count(value) for rows, _, _ in made] for value in range(-3, 4)])
    found = answers(strata, {0: Histogram(counts, counts, absent, absent, atoms, atoms)}, share=share)

    choices = [
        [chosen for size in range(sure, sure + perhaps + 1) for chosen in combinations(rows, size)]
        for rows, sure, perhaps in made
    ]
    worlds = [values for parts in product(*choices) if (values := [value for part in parts for value in part])]
    if not worlds:
        assert np.isnan(found[1:]).all()
        return
    each = [[function(values) for values in worlds] for function in (np.sum, np.mean, np.min, np.max)]
    expected = [(min(truths), max(truths)) for truths in each]
    numbers = np.array(found[1:])[..., 0]
    np.testing.assert_allclose(numbers[:-1], expected, rtol=1e-4, atol=1e-4)
    # A share of a third may fall on a row or just beside it, as rounding has it.
    shares = [min(max(share + step, 0.0), 1.0) for step in (-1e-12, 0.0, 1e-12)]
    lower = [min(np.quantile(values, each, method="lower") for values in worlds) for each in shares]
    higher = [max(np.quantile(values, each, method="higher") for values in worlds) for each in shares]
    assert min(lower) - 1e-4 <= numbers[-1, 0] <= lower[1] + 1e-4
    assert higher[1] - 1e-4 <= numbers[-1, 1] <= max(higher) + 1e-4


def uniform(strata: int, bins: int, rows: int) -> Histogram:
    """Bins 0..1, 1..2 and so on with as many rows each, in every stratum."""
    counts, absent = np.full((bins, strata), rows), np.zeros(strata, np.int64)
    low = np.repeat(np.arange(float(bins))[:, None], strata, axis=1)
    return Histogram(counts, counts, absent, absent, low, np.nextafter(low + 1.0, 0.0))


def scope(strata: int, rows: int, inside: int | None = None, cut: int = 0) -> Strata:
    """Strata of as many rows each in one group, wholly in scope if not told otherwise."""
    ones = np.ones(strata, np.int64)
    return Strata(rows * ones, rows * ones if inside is None else inside * ones, cut * ones, 0 * ones, 1)


def ends(interval: Interval) -> tuple[float, float]:
    return float(interval.low[0]), float(interval.high[0])


def test_rows_of_whole_strata_are_counted_exactly() -> None:
    selection = Selection(scope(3, 40), {0: uniform(3, 4, 10)})
    assert ends(selection.count()) == ends(selection.values(0).count()) == (120, 120)


def test_a_predicate_on_edges_of_bins_is_counted_exactly() -> None:
    inner = Between(0, 1.0, 3.0, high_closed=False)
    for condition, expected in ((inner, 60), (Not(inner), 60), (And((inner, Between(0, 2.0))), 30)):
        assert ends(Selection(scope(3, 40), {0: uniform(3, 4, 10)}, condition).count()) == (expected, expected)


def test_a_predicate_that_cuts_a_bin_is_as_wide_as_that_bin() -> None:
    assert ends(Selection(scope(3, 40), {0: uniform(3, 4, 10)}, Between(0, 1.5)).count()) == (60, 90)


def test_one_feature_asked_twice_is_one_predicate() -> None:
    histograms = {0: uniform(3, 4, 10)}
    either = Or((Between(0, 1.0, 1.5, high_closed=False), Between(0, 1.5, 3.0, high_closed=False)))
    assert ends(Selection(scope(3, 40), histograms, either).count()) == (60, 60)
    both = And((Between(0, high=1.5, high_closed=False), Between(0, 2.0)))
    assert ends(Selection(scope(3, 40), histograms, both).count()) == (0, 0)


def test_two_predicates_are_bounded_as_frechet_has_it() -> None:
    both = And((Between(0, 1.0), Between(1, 2.0)))
    histograms = {0: uniform(1, 4, 10), 1: uniform(1, 4, 10)}
    assert ends(Selection(scope(1, 40), histograms, both).count()) == (10, 20)
    either = Or((Between(0, 1.0), Between(1, 2.0)))
    assert ends(Selection(scope(1, 40), histograms, either).count()) == (30, 40)


def test_the_mean_of_whole_strata_is_as_wide_as_their_bins() -> None:
    values = Selection(scope(3, 40), {0: uniform(3, 4, 10)}).values(0)
    assert ends(values.mean()) == pytest.approx((1.5, 2.5), abs=1e-7)
    assert ends(values.sum()) == pytest.approx((180.0, 300.0), abs=1e-5)
    assert ends(values.quantile(0.5)) == pytest.approx((1.0, 3.0), abs=1e-7)
    assert ends(values.min()) == pytest.approx((0.0, 1.0))
    assert ends(values.max()) == pytest.approx((3.0, 4.0))


def test_a_scope_of_all_rows_but_one_moves_the_mean_by_one_row() -> None:
    low, high = ends(Selection(scope(1, 40, inside=39), {0: uniform(1, 4, 10)}).values(0).mean())
    assert low == pytest.approx((60 - 3) / 39, abs=1e-7)
    assert high == pytest.approx((100 - 1) / 39, abs=1e-7)


def test_counts_that_are_off_are_held_together_by_the_total() -> None:
    exact = uniform(1, 4, 10)
    loose = Histogram(exact.least - 2, exact.most + 5, exact.absent_least, exact.absent_most, exact.low, exact.high)
    # Every bin has 8 rows, and the 8 rows that are left are where they do most, 7 in a bin at most.
    assert ends(Selection(scope(1, 40), {0: loose}, Between(0, 3.0)).count()) == (8, 15)
    assert ends(Selection(scope(1, 40), {0: loose}, Between(0, 1.0)).count()) == (25, 32)
    assert ends(Selection(scope(1, 40), {0: loose}).values(0).mean()) == pytest.approx(
        ((15 * 0 + 9 * 1 + 8 * 2 + 8 * 3) / 40, (8 * 1 + 8 * 2 + 9 * 3 + 15 * 4) / 40), abs=1e-7
    )


def test_a_condition_on_the_feature_itself_clips_its_values() -> None:
    values = Selection(scope(1, 40), {0: uniform(1, 4, 10)}, Or((Between(0, 0.25, 0.5), Between(0, 2.5)))).values(0)
    assert ends(values.min()) == pytest.approx((0.25, 4.0))
    assert ends(values.max()) == pytest.approx((3.0, 4.0))
    assert ends(values.count()) == (10, 30)
