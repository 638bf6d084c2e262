"""What is kept of stretches is what their rows are, to a step; in any order of rows, through blocks and thinning."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synopsis.sketch import blocks, stretches
from synopsis.sketch.budget import even_choice, tallied
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.foretelling import foretold, told
from synopsis.sketch.gathering import Gathering
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.shelf import Shelf
from synopsis.sketch.strata import Strata, from_tallies
from synopsis.sketch.stretches import Stretching
from synopsis.sketch.summary import Summary, cut
from synopsis.sketch.tallies import DAY_US, Tallies

HOUR_US = 3_600_000_000


def rows(places=5, days=70, seed=3):
    """Hourly rows of some places with gaps: dry and wet days, and a feature that is mostly missing."""
    random = np.random.default_rng(seed)
    latitude, longitude = random.uniform(-60, 60, places), random.uniform(-170, 170, places)
    place, hour = (each.ravel() for each in np.meshgrid(np.arange(places), np.arange(days * 24), indexing="ij"))
    there = (random.random(place.size) < 0.8) & ~((place == 1) & (hour // 24 > 9) & (hour // 24 < 55))
    place, hour = place[there], hour[there]
    warm = np.round(290 + place + 6 * np.sin(hour / 4) + random.normal(0, 2, place.size), 1)
    rain = np.where(random.random(place.size) < 0.9, 0.0, random.lognormal(0, 1, place.size))
    rain[(place == 3) & (hour // 24 > 19)] = 0.0  # a drought
    rare = np.where(random.random(place.size) < 0.95, np.nan, warm - 280)
    return latitude[place], longitude[place], hour * HOUR_US - 40 * DAY_US, np.stack((warm, rain, rare))


ROWS = rows()
SCALES = Scales.fit(ROWS[3])
DAYS = (10, 3, 10)
LAYOUT = PathLayout(1, 15, 0.3, HOUR_US, True, stretching=replace(Stretching.of(SCALES, 10), days=DAYS))
PLACES = tuple(np.array(each) for each in zip(*sorted(set(zip(*ROWS[:2], strict=True))), strict=True))
TICKS = np.stack([ticks.of(row) for ticks, row in zip(SCALES.ticks, ROWS[3], strict=True)])


def tallies_of(which=slice(None), layout=LAYOUT):
    latitude, longitude, local_us = (each[which] for each in ROWS[:3])
    fine = np.stack([SCALES.code_of_tick(feature)[TICKS[feature, which]] for feature in range(3)])
    tables = layout.stretching.levels_of_ticks(SCALES)
    levels = np.stack([table[ticks] for table, ticks in zip(tables, TICKS[:, which], strict=True)])
    kept = even_choice(latitude, longitude, local_us, fine, layout)
    return tallied(latitude, longitude, local_us, fine, kept, layout, levels)


def strata_of(tallies, layout=LAYOUT):
    return from_tallies(SCALES, tallies, layout.bins, layout.stretching)


def same(one, two):
    return len(one) == len(two) and all(map(np.array_equal, one, two))


WHOLE = strata_of(tallies_of())
CONTEXTS = Contexts.fit(WHOLE.codes, 15)


def read(strata):
    """Features: values, mean and deviation of stretches, in the units of features."""
    stretching, found = strata.stretching, []
    for feature, (count, mean, deviation) in enumerate(told(strata, stretches.running(SCALES, stretching))):
        scale = stretching.unit[feature] / stretches.LEVELS
        found.append((count, stretching.centre[feature] + mean * scale, deviation * scale))
    return found


def plainly_foretold(strata):
    """As `foretold`, by NumPy."""
    bins, found = strata.bins, []
    day = np.repeat(np.arange(strata.day_rows.size), strata.day_kept)
    of_path = np.repeat(np.arange(len(strata)), np.diff(strata.path_offset))
    for feature, axis in enumerate(stretches.running(SCALES, strata.stretching)):
        offset = strata.stretch_offsets[feature]
        stretch = np.repeat(np.arange(offset.size - 1), np.diff(offset))[day]
        of_stretch = np.searchsorted(strata.day_offset, offset[:-1], side="right") - 1
        begin, end = strata.starts[feature].astype(np.int64), strata.ends[feature].astype(np.int64)
        in_bin = (axis[1:, end] - axis[1:, begin]) / np.maximum(axis[0, end] - axis[0, begin], 1e-300)
        present = strata.codes[feature] < bins
        values = np.zeros((4, present.size))
        values[0], values[1] = 1.0, present
        values[2:, present] = in_bin[:, of_path[present], strata.codes[feature][present]]
        told = np.stack([np.bincount(stretch, own, offset.size - 1) for own in values])
        usual = np.stack([np.bincount(of_path, own, len(strata)) for own in values])[:, of_stretch]
        seen = stretches.SEEN * (usual / np.maximum(usual[0], 1.0))
        more = stretches.USUAL * (usual / np.maximum(usual[1], 1.0))
        paths = told[0] + seen[0]
        absent = np.where(paths > 0.0, 1.0 - (told[1] + seen[1]) / np.maximum(paths, 1e-300), 0.0)
        absent *= np.add.reduceat(strata.day_rows, offset[:-1])
        mean, square = (told[2:] + more[2:]) / np.maximum(told[1] + more[1], 1e-300)
        deviation = np.sqrt(np.maximum(square - mean * mean, 0.0))
        is_still = (told[1] > 0) & (told[3] < 1e-3 * told[1])
        found.append((absent, mean, np.where(is_still, stretches.STILL, deviation)))
    return found


def truth(strata):
    """The same of the rows themselves."""
    latitude, longitude, local_us, values = ROWS
    places = sorted(set(zip(latitude, longitude, strict=True)))
    place = np.array([places.index(each) for each in zip(latitude, longitude, strict=True)])
    day = local_us // DAY_US
    month = (local_us.astype("datetime64[us]")).astype("datetime64[M]").astype(np.int64)
    found = []
    for row, days, offset in zip(values, strata.lengths, strata.stretch_offsets, strict=True):
        stratum = np.searchsorted(strata.day_offset, offset[:-1], side="right") - 1
        known = np.full((3, offset.size - 1), np.nan)
        for number, begin in enumerate(offset[:-1]):
            own = (place == strata.day_place[begin]) & (day // days == strata.day[begin] // days)
            present = row[own & (month == strata.period[stratum[number]]) & ~np.isnan(row)]
            known[0, number] = present.size
            if present.size:
                known[1:, number] = present.mean(), present.std()
        found.append(known)
    return found


@pytest.mark.parametrize("feature", range(3))
def test_counts_of_values_are_exact_and_means_and_deviations_are_a_step_off_at_most(feature):
    count, mean, deviation = read(WHOLE)[feature]
    true_count, true_mean, true_deviation = truth(WHOLE)[feature]
    assert np.array_equal(count, true_count)
    unit = LAYOUT.stretching.unit[feature]
    step = stretches.STEP * unit / np.sqrt(np.maximum(true_count, 1))
    level = unit / stretches.LEVELS + 1e-3  # and what ticks round
    some = true_count > 0
    assert (np.abs(mean - true_mean)[some] <= (step / 2 + level)[some]).all()
    assert (np.abs(deviation - true_deviation)[some] <= (step / 2 + 3 * level)[some]).all()


def test_a_still_stretch_is_what_it_is_exactly():
    _, mean, deviation = read(WHOLE)[1]
    true_count, true_mean, true_deviation = truth(WHOLE)[1]
    still = (true_count > 0) & (true_mean == 0.0) & (true_deviation == 0.0)
    assert still.sum() > 3
    assert (mean[still] == 0.0).all()
    assert (deviation[still] == 0.0).all()


def test_machine_code_foretells_what_numpy_does():
    few = replace(LAYOUT, kept=0.01)  # strata and stretches without any path
    for strata in (WHOLE, WHOLE.take(slice(2, 5)), strata_of(tallies_of(layout=few), few)):
        axes = stretches.running(SCALES, LAYOUT.stretching)
        for feature, wanted in enumerate(plainly_foretold(strata)):
            assert np.array_equal(foretold(strata, feature, axes[feature]), wanted)


def test_errors_of_dry_stretches_do_not_add_up():
    count, mean, _ = read(WHOLE)[1]
    total, error = (count * mean).sum(), np.abs(count * (mean - truth(WHOLE)[1][1]))
    assert abs(total - np.nansum(ROWS[3][1])) < 0.5 * np.nansum(error)


@given(seed=st.integers(0, 1 << 30), parts=st.integers(1, 5))
@settings(max_examples=10)
def test_rows_in_any_order_and_grouping_give_the_same_stretches(seed, parts):
    order = np.random.default_rng(seed).permutation(ROWS[2].size)
    joined = Tallies.joined([tallies_of(each) for each in np.array_split(order, parts)])
    assert same(strata_of(joined).stretches, WHOLE.stretches)


def test_machine_code_gathers_the_same_sums():
    gathering = Gathering(LAYOUT, SCALES, None)
    shifted = TICKS.astype(np.int64) << (16 * np.arange(3))[:, None]
    packed = [np.bitwise_or.reduce(shifted, axis=0)]
    assert gathering.add(*ROWS[:3], packed) == ROWS[2].size
    gathered, plain = gathering.tallies(), tallies_of()
    assert [each.days for each in gathered.stretched] == [3, 10]
    for one, two in zip(gathered.stretched, plain.stretched, strict=True):
        assert (one.days, one.features) == (two.days, two.features)
        for name in ("stratum", "place", "number", "sums"):
            assert np.array_equal(getattr(one, name), getattr(two, name)), name


def test_parts_of_tallies_have_their_own_stretches():
    whole = tallies_of()
    parts = [part for _, part in whole.parted(np.arange(whole.latitude.size) % 2)]
    assert same(strata_of(Tallies.joined(parts)).stretches, WHOLE.stretches)


@pytest.mark.parametrize("features", [[0, 1, 2], [2, 0], [1]])
def test_blocks_bring_stretches_back_however_they_are_opened(features):
    closed = [blocks.closed(WHOLE.take(slice(at, at + 4)), CONTEXTS) for at in range(0, len(WHOLE) - 3, 4)]
    plain = Strata.joined([blocks.opened(each, CONTEXTS, features, PLACES, LAYOUT.stretching) for each in closed])
    some = WHOLE.take(slice(0, len(closed) * 4))
    assert same(plain.stretches, [some.stretches[feature] for feature in features])
    chosen = np.ones(5, np.bool_)
    chosen[2] = False
    fast = Shelf.of(closed, CONTEXTS, PLACES).opened(features, chosen, -30, -5, stretching=LAYOUT.stretching)
    there = np.isin(plain.period, fast.period) & chosen[plain.run_place[plain.run_offset[:-1]]]
    wanted = plain.take(there)
    assert fast.lengths == wanted.lengths == tuple(DAYS[feature] for feature in features)
    for name in ("stretches", "stretch_offsets", "stretch_shifts"):
        assert same(getattr(fast, name), getattr(wanted, name)), name
    assert np.unique(fast.stretch_shifts[0]).size == fast.stretch_shifts[0].size


@given(st.lists(st.tuples(*[st.integers(-(1 << 22), 1 << 22)] * 3), max_size=30))
def test_facts_come_back_from_their_frame(facts):
    numbers = np.array(facts, np.int64).reshape(-1, 3).T
    assert np.array_equal(stretches.opened(stretches.closed(numbers)), numbers)


@pytest.mark.parametrize("share", [0.5, 0.03, 0.0])
def test_thinning_changes_no_stretch_however_often(share):
    packed = tuple(blocks.closed(WHOLE.take(run), CONTEXTS) for run in cut(WHOLE))
    summary = Summary(LAYOUT, *PLACES, SCALES, CONTEXTS, packed)
    before = read(WHOLE)
    for _ in range(4):
        summary = summary.thinned(share)
        after = read(Strata.joined(summary.opened(range(3))))
        for one, two in zip(before, after, strict=True):
            assert np.array_equal(one[0], two[0])
            np.testing.assert_allclose(np.stack(one)[:, one[0] > 0], np.stack(two)[:, one[0] > 0], atol=1e-6)


def test_a_summary_of_some_features_keeps_their_stretches():
    packed = tuple(blocks.closed(WHOLE.take(run), CONTEXTS) for run in cut(WHOLE))
    summary = Summary(LAYOUT, *PLACES, SCALES, CONTEXTS, packed)
    part = summary.of_strata(summary.opened([2, 0]), [2, 0])
    assert part.layout.stretching == LAYOUT.stretching.of_features([2, 0])
    assert same(Strata.joined(part.opened([0, 1])).stretches, [WHOLE.stretches[2], WHOLE.stretches[0]])


def test_a_stretching_comes_back_from_plain_values():
    assert PathLayout.from_dict(LAYOUT.to_dict()) == LAYOUT
    assert PathLayout.from_dict(replace(LAYOUT, stretching=None).to_dict()).stretching is None


def test_features_that_never_vary_or_never_come_have_a_unit():
    values = np.stack((np.full(50, 7.0), np.full(50, np.nan), np.arange(50.0)))
    stretching = Stretching.of(Scales.fit(values), 5)
    assert all(unit > 0 and np.isfinite(unit) for unit in stretching.unit)
    assert np.isfinite(stretching.centre).all()
