"""How memory is shared out between stretches and paths."""

from dataclasses import replace

import numpy as np
import pytest

from synopsis.sketch.budget import MOVING_BINS, PLACES, Probe, _cost, _together, chosen
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.tallies import DAY_US, EVERYTHING


def probe(present, seed=4):
    """Daily rows of some places for four years, whose features are there as often as that, each for itself."""
    random = np.random.default_rng(seed)
    place, day = (each.ravel() for each in np.meshgrid(np.arange(6), np.arange(1_461), indexing="ij"))
    season = np.sin(day / 58.0)
    values = season + random.normal(size=(3, place.size))
    values[random.random(values.shape) > present] = np.nan
    where = random.uniform(-60, 60, 6)[place], random.uniform(-170, 170, 6)[place]
    scales = Scales.fit(values)
    return Probe(*where, day * DAY_US, scales.codes(values), scales, 1.0)


def planned(rows, memory, present=1.0):
    cost = _cost(rows, PathLayout(EVERYTHING, 15, 0.2, DAY_US, True))
    return cost, cost.stretched(rows, int(memory * cost.counts))


@pytest.mark.parametrize(("present", "found"), [(1.0, 1.0), (0.25, 0.25)])
def test_features_are_together_as_often_as_rows_have_both(present, found):
    assert _together(probe(present)) == pytest.approx(found, abs=0.02)


def test_one_feature_is_always_together_with_itself():
    rows = probe(0.5)
    assert _together(replace(rows, fine=rows.fine[:1])) == 1.0


def test_more_memory_makes_shorter_stretches_and_leaves_most_of_it_to_paths():
    rows, days = probe(1.0), []
    for memory in (1.6, 3.0, 6.0):
        cost, found = planned(rows, memory)
        days.append(max(found.layout.stretching.days) if found.layout.stretching else np.inf)
        assert found.stretches <= 0.35 * (memory - 1.0) * cost.counts
    assert days == sorted(days, reverse=True)
    assert days[-1] < np.inf


def test_where_all_paths_stay_stretches_are_as_short_as_there_is_room_for():
    rows = probe(1.0)
    _, found = planned(rows, 40.0)
    assert max(found.layout.stretching.days) == 5


def test_rows_that_seldom_have_two_features_give_more_room_to_stretches():
    parts = []
    for present in (1.0, 0.3):
        rows = probe(present)
        cost, found = planned(rows, 3.0)
        parts.append(found.stretches / (2.0 * cost.counts))
    assert parts[1] > parts[0]


def test_where_cells_are_as_large_as_half_the_globe_memory_still_goes_into_bins_and_paths():
    random = np.random.default_rng(6)  # storms of fifty years: hardly a cell and day has two rows
    where, day = random.uniform((0, -100), (60, 0), (8_000, 2)).T, np.sort(random.integers(0, 18_000, 8_000))
    values = np.stack((*where, random.normal(size=8_000), random.gamma(2.0, size=8_000)))
    scales = Scales.fit(values, 120)
    rows = Probe(*where, day * DAY_US, scales.codes(values), scales, 1.0)
    found = {memory: chosen(None, lambda: rows, lambda bits: rows, memory) for memory in (20_000, 40_000, 60_000)}
    for memory, cost in found.items():
        assert cost.layout.place_bits == PLACES[-1]
        assert cost.layout.bins > MOVING_BINS[-1]
        assert cost.counts + cost.layout.kept * cost.rows * cost.a_path > 0.8 * memory or cost.layout.kept == 1.0
    assert found[60_000].layout.bins >= 63


def test_stations_whose_days_take_most_of_the_memory_are_still_told_apart():
    random = np.random.default_rng(7)  # each day is there or not by chance, which takes many bytes
    place, day = np.nonzero(random.random((60, 2_000)) < 0.5)
    where = random.uniform(36, 43, 60)[place], random.uniform(-9, 3, 60)[place]
    values = random.normal(size=(3, place.size))
    scales = Scales.fit(values, 60)
    rows = Probe(*where, day * DAY_US, scales.codes(values), scales, 1.0)
    shared = _cost(rows, PathLayout(EVERYTHING, 15, 0.05, DAY_US, True, 1))
    for part in (0.7, 0.85):
        found = chosen(rows, lambda: rows, lambda bits: pytest.fail("not as moving objects"), int(shared.counts / part))
        assert found.layout.place_bits is None
        assert 0.0 < found.layout.kept < 1.0


def test_rows_of_many_years_that_have_all_features_leave_scarce_memory_to_paths():
    random = np.random.default_rng(8)
    place, day = (each.ravel() for each in np.meshgrid(np.arange(6), np.arange(16_000), indexing="ij"))
    where = random.uniform(36, 43, 6)[place], random.uniform(-9, 3, 6)[place]
    values = random.normal(size=(3, place.size)) + np.sin(day / 58.0)
    scales = Scales.fit(values, 60)
    rows = Probe(*where, day * DAY_US, scales.codes(values), scales, 1.0)
    cost = _cost(rows, PathLayout(EVERYTHING, 15, 0.05, DAY_US, True, 15))
    found = [cost.stretched(rows, int(cost.counts + part * cost.rows * cost.a_path)) for part in (0.08, 0.2)]
    assert [each.layout.stretching is None for each in found] == [True, False]


def test_stations_whose_days_do_not_fit_are_counted_by_longer_spells_the_less_memory_there_is():
    random = np.random.default_rng(9)
    place, day = np.nonzero(random.random((60, 4_000)) < 0.5)
    where = random.uniform(36, 43, 60)[place], random.uniform(-9, 3, 60)[place]
    values = random.normal(size=(3, place.size))
    scales = Scales.fit(values, 40)
    rows = Probe(*where, day * DAY_US, scales.codes(values), scales, 1.0)
    spells = []
    for memory in (60_000, 24_000, 17_000, 11_000):
        found = chosen(rows, lambda: rows, lambda bits: pytest.fail("not as moving objects"), memory)
        assert 0.0 < found.layout.kept < 1.0
        assert found.counts < 0.9 * memory
        spells.append(found.layout.spell)
    assert spells[0] == 1
    assert spells == sorted(spells)
    assert spells[-1] > spells[1] > 1
