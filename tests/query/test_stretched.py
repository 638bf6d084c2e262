"""What stretches tell in machine code is what NumPy makes of them, and what rows are where scopes are whole."""

import numpy as np
import pytest
from tests.query.plain import stretched as plain

from synopsis.query import recalled, stretched
from synopsis.query.covers import Covers
from synopsis.query.estimate import Estimates
from synopsis.query.predicates import EVERYWHERE, AllOf
from synopsis.query.sampled import Sample
from synopsis.sketch import stretches
from synopsis.sketch.budget import even_choice, tallied
from synopsis.sketch.foretelling import told
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import from_tallies
from synopsis.sketch.stretches import Stretching

HOUR_US = 3_600_000_000
PLACES, DAYS = 6, 60


def made():
    random = np.random.default_rng(8)
    latitude, longitude = random.uniform(-60, 60, PLACES), random.uniform(-170, 170, PLACES)
    place, hour = (each.ravel() for each in np.meshgrid(np.arange(PLACES), np.arange(DAYS * 24), indexing="ij"))
    slow = np.cumsum(random.normal(0, 0.4, (PLACES, DAYS * 24)), axis=1).ravel()
    warm = 101_325.0 + 5 * np.sin(hour * np.pi / 12) + slow + random.normal(0, 1, hour.size)
    rain = np.where(random.random(hour.size) < 0.9, 0.0, random.lognormal(0, 1, hour.size))
    values = np.stack((warm, np.where(random.random(hour.size) < 0.3, np.nan, rain)))
    scales = Scales.fit(values)
    layout = PathLayout(3, 15, 0.25, HOUR_US, True, stretching=Stretching.of(scales, 10))
    fine = scales.codes(values)
    where = latitude[place], longitude[place], hour * HOUR_US
    ticks = [each.of(row) for each, row in zip(scales.ticks, values, strict=True)]
    levels = np.stack([table[own] for table, own in zip(layout.stretching.levels_of_ticks(scales), ticks, strict=True)])
    kept = even_choice(*where, fine, layout)
    strata = from_tallies(scales, tallied(*where, fine, kept, layout, levels), 15, layout.stretching)
    order = np.lexsort((longitude, latitude))
    rank = np.argsort(order)
    return strata, scales, values, rank[place], hour // 24


STRATA, SCALES, VALUES, PLACE, DAY = made()


def sample_of(share):
    return Sample(STRATA, SCALES, (0, 1), Covers.whole(share))


def rows_in(share):
    """Which rows lie in days that are wholly in scope."""
    whole = {
        (int(place), int(day))
        for place, day, part in zip(STRATA.day_place, STRATA.day, share, strict=True)
        if part == 1.0
    }
    return np.array([(int(place), int(day)) in whole for place, day in zip(PLACE, DAY, strict=True)])


@pytest.mark.parametrize("feature", [0, 1])
def test_machine_code_reads_what_numpy_reads(feature):
    sample = sample_of(np.ones(STRATA.day_rows.size))
    found, offset = sample.stretched(feature, sample.measured(feature, EVERYWHERE))._found
    axes = stretches.running(SCALES, STRATA.stretching)
    count, mean, deviation = told(STRATA, axes)[feature]
    scale = STRATA.stretching.unit[feature] / stretches.LEVELS
    mean, deviation = mean * scale, deviation * scale
    wanted = np.stack((count, count * mean, count * (mean**2 + deviation**2)), axis=1)
    assert np.allclose(found[:, recalled.WHOLE : recalled.WHOLE + 3], wanted, rtol=1e-12, atol=1e-9)
    assert offset.tolist() == [0, STRATA.stretch_offsets[feature].size - 1]


@pytest.mark.parametrize("feature", [0, 1])
def test_scopes_of_whole_stretches_are_as_their_rows_are(feature):
    share = np.where((STRATA.day >= 10) & (STRATA.day < 50), 1.0, 0.0)
    numbers = Estimates(sample_of(share), AllOf(())).of(feature)
    values = VALUES[feature][rows_in(share)]
    values = values[~np.isnan(values)]
    assert numbers.count[0] == values.size
    spread = values.std()
    assert abs(numbers.average[0] - values.mean()) < 0.05 * stretches.STEP * spread
    assert abs(numbers.deviation[0] - spread) < 0.05 * stretches.STEP * spread
    for low, high, true in (
        (*numbers.average_p95, values.mean()),
        (*numbers.sum_p95, values.sum()),
        (*numbers.deviation_p95, spread),
    ):
        assert low[0] <= true <= high[0]


def test_cut_stretches_are_told_better_than_by_bins_and_hold_at_95_percent():
    random, better, held = np.random.default_rng(5), [], []
    for _ in range(60):
        first = random.integers(0, 50)
        share = np.where((STRATA.day >= first) & (STRATA.day < first + random.integers(3, 10)), 1.0, 0.0)
        share *= np.isin(STRATA.day_place, random.choice(PLACES, 3, replace=False))
        numbers = Estimates(sample_of(share), AllOf(())).of(0)
        values = VALUES[0][rows_in(share)]
        better.append((abs(numbers.average[0] - values.mean()), abs(numbers.by_bins[1][0] - values.mean())))
        low, high = numbers.average_p95
        held.append(low[0] <= values.mean() <= high[0])
    ours, by_bins = np.mean(better, axis=0)
    assert ours < 0.8 * by_bins
    assert np.mean(held) >= 0.85


def test_parts_of_a_cut_stretch_add_up_to_it():
    early, late = (np.where(each, 1.0, 0.0) for each in (STRATA.day < 33, STRATA.day >= 33))
    counts, sums = [], []
    for share in (early, late, np.ones(STRATA.day_rows.size)):
        numbers = Estimates(sample_of(share), AllOf(())).of(1)
        counts.append(numbers.count[0])
        sums.append(numbers.count[0] * numbers.average[0])
    assert counts[0] + counts[1] == pytest.approx(counts[2], rel=1e-3)
    assert sums[0] + sums[1] == pytest.approx(sums[2], rel=0.02)


def test_days_are_counted_from_before_1970_on():
    nowhere, days = np.zeros(4, np.int64), np.array([-11, -10, -1, 0])
    assert stretches.offsets(nowhere, nowhere, days, 10).tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("feature", [0, 1])
def test_numbers_of_cut_stretches_are_those_of_numpy(feature):
    random = np.random.default_rng(11)
    for _ in range(20):
        first, days = random.integers(0, 55), random.integers(1, 30)
        share = np.where((STRATA.day >= first) & (STRATA.day < first + days), 1.0, 0.0)
        share *= np.isin(STRATA.day_place, random.choice(PLACES, random.integers(1, PLACES + 1), replace=False))
        share[STRATA.day == first] *= random.choice([1.0, 0.3])
        sample = sample_of(share)
        told = sample.stretched(feature, sample.measured(feature, EVERYWHERE))
        wanted = plain.numbers(told._found[0], told._centre)
        assert np.allclose([each[0] for each in told.numbers], wanted, rtol=1e-9)


@pytest.mark.parametrize("feature", [0, 1])
def test_chance_is_what_numpy_makes_of_neighbouring_paths(feature):
    sample = sample_of(np.where(STRATA.day < 33, 1.0, 0.0))
    found, _ = sample.stretched(feature, sample.measured(feature, EVERYWHERE))._found
    axis = stretches.running(SCALES, STRATA.stretching)[feature]
    starts, ends, codes = STRATA.starts[feature], STRATA.ends[feature], STRATA.codes[feature]
    day = np.repeat(np.arange(STRATA.day.size), STRATA.day_kept)
    stratum = np.repeat(np.arange(len(STRATA)), np.diff(STRATA.path_offset))
    for each in range(len(STRATA)):
        held = (stratum == each) & (codes < STRATA.bins)
        begin, end = starts[each][codes[held]].astype(int), ends[each][codes[held]].astype(int)
        level, square = (axis[1:, end] - axis[1:, begin]) / (axis[0, end] - axis[0, begin])
        wanted = plain.chances(level, square, np.searchsorted(STRATA.stretch_offsets[feature], day[held], side="right"))
        told = found[found[:, 6] == each][:, recalled.CHANCES + 1 : recalled.CHANCES + 3]
        assert np.allclose(told, wanted, rtol=1e-6)


def test_a_part_has_no_more_squares_than_the_whole_whatever_bins_say():
    found = np.zeros((1, recalled.FACTS))
    found[0, 2:6] = 100.0, 10.0, 50.0, 5.0  # rows and paths, all and in scope
    found[0, recalled.WHOLE : recalled.WHOLE + 3] = 100.0, 0.0, 100.0
    found[0, recalled.PATHS : recalled.PATHS + 3] = 10.0, 0.0, 9_000.0  # a bin that reaches far beyond the values
    found[0, recalled.INSIDE : recalled.INSIDE + 3] = 5.0, 0.0, 8_995.0
    found[0, recalled.CHANCES : recalled.CHANCES + 3] = 1.0
    count, _, variance = stretched.numbers(found, np.array([0, 1]), 0.0)
    assert count[0] == 50.0
    assert variance[0] == 2.0


def test_paths_that_differ_by_chance_alone_are_not_followed():
    random = np.random.default_rng(3)
    noise, slow = random.normal(0, 1, 400), np.repeat(random.normal(0, 1, 40), 10) + random.normal(0, 0.1, 400)
    by_chance, by_weather = (plain.chances(each, each**2, np.arange(400) // 50)[0] for each in (noise, slow))
    assert by_chance > 4.0
    assert by_weather < 0.5


def test_what_all_stretches_have_in_common_is_off_in_all_of_them():
    one = np.zeros(recalled.FACTS)
    one[2:6] = 100.0, 10.0, 50.0, 5.0
    one[recalled.WHOLE : recalled.WHOLE + 3] = 100.0, 0.0, 100.0
    one[recalled.PATHS : recalled.PATHS + 3] = 10.0, 0.0, 10.0
    one[recalled.INSIDE : recalled.INSIDE + 3] = 5.0, 0.0, 5.0
    one[recalled.CHANCES : recalled.CHANCES + 3] = 8.0
    halves = []
    for many in (1, 100):
        found = np.tile(one, (many, 1))
        nothing, none = np.zeros(0, np.int64), np.zeros(0)
        about = (np.zeros(0, np.uint8), np.zeros((4, 1, 1)), *(np.array([each]) for each in (50.0 * many, 0.0, 1.0)))
        days = (
            np.zeros((1, 1)),
            nothing,
            nothing,
            nothing,
            none,
            *([np.zeros(1, np.int64)] * 2),
            np.array([0, 1]),
            np.zeros(1, np.bool_),
        )
        halves.append([stretched.errors(0, found, np.array([0, many]), 0.0, *about, *days, by)[0] for by in (1.0, 4.0)])
    (alone, twice), (together, _) = halves
    assert together > 1.2 * alone / 10.0  # a hundred that were independent would be off by a tenth
    assert twice == pytest.approx(2.0 * alone)  # four times the squares that neighbours tell
