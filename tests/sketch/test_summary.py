"""A summary thinned, added or made to fit counts the same rows as before; only paths go, and they go evenly."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synopsis.sketch import blocks
from synopsis.sketch.budget import even_choice
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.joints import Grain, starts_of
from synopsis.sketch.meetings import Meetings
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import from_tallies
from synopsis.sketch.summary import Summary, cut
from synopsis.sketch.tallies import DAY_US, EVERYTHING, Tallies, periods

BINS = 15
HOUR_US = 3_600_000_000
COUNTS = ("period", "starts", "ends", "counts", "tilt", "run_offset", "run_place", "run_first", "run_days", "day_rows")


def rows(places=9, days=50, seed=0):
    """Hourly rows with gaps: positions, local times and three features, one of them often absent."""
    random = np.random.default_rng(seed)
    latitude, longitude = random.uniform(-60, 60, places), random.uniform(-170, 170, places)
    place, hour = (each.ravel() for each in np.meshgrid(np.arange(places), np.arange(days * 24), indexing="ij"))
    there = random.random(place.size) < 0.9
    place, hour = place[there], hour[there]
    warm = np.round(15 + place + random.normal(0, 5, place.size), 1)
    rain = np.where(random.random(place.size) < 0.8, 0.0, random.lognormal(0, 2, place.size))
    related = np.where(random.random(place.size) < 0.5, np.nan, 2 * warm + random.normal(size=place.size))
    return latitude[place], longitude[place], hour * HOUR_US, np.stack((warm, rain, related))


VALUES = rows()[3]
SCALES = Scales.fit(VALUES)


def made(some_rows, layout, contexts=None):
    """Their summary, in the plain way."""
    latitude, longitude, local_us, values = some_rows
    fine = SCALES.codes(values)
    kept = even_choice(latitude, longitude, local_us, fine, layout)
    tallies = Tallies.joined([Tallies.of(latitude, longitude, periods(local_us, layout.months), local_us, fine, kept)])
    strata = from_tallies(SCALES, tallies, layout.bins)
    contexts = contexts or Contexts.fit(strata.codes, layout.bins)
    packed = tuple(blocks.closed(strata.take(run), contexts) for run in cut(strata))
    return Summary(
        layout=layout,
        latitude=tallies.latitude,
        longitude=tallies.longitude,
        scales=SCALES,
        contexts=contexts,
        blocks=packed,
    )


LAYOUT = PathLayout(months=1, bins=BINS, kept=0.5, slot_us=HOUR_US, regular=True)
WHOLE = made(rows(), LAYOUT)
#: Whose slots do not tell which paths there are, so that every so many of them stay (`test_hours` has the others).
UNTOLD = made(rows(), replace(LAYOUT, clocked=False))


def paths_by_place(summary):
    found = np.zeros(summary.latitude.size, np.int64)
    for strata in summary.opened([0]):
        np.add.at(found, strata.day_place, strata.day_kept)
    return found


def same_counts(one, two):
    for left, right in zip(one.opened([0, 1, 2]), two.opened([0, 1, 2]), strict=True):
        for name in COUNTS:
            assert np.array_equal(getattr(left, name), getattr(right, name)), name


def test_a_summary_counts_every_row_and_keeps_its_share_of_the_paths():
    assert WHOLE.rows == VALUES.shape[1]
    assert abs(WHOLE.paths / WHOLE.rows - 0.5) < 0.01
    assert WHOLE.nbytes == sum(WHOLE.parts.values())
    share = paths_by_place(WHOLE) / np.array([(rows()[0] == lat).sum() for lat in WHOLE.latitude])
    assert np.abs(share - 0.5).max() < 0.03


@pytest.mark.parametrize("whole", [WHOLE, UNTOLD], ids=["slots tell", "slots do not tell"])
@given(share=st.floats(0.0, 1.0))
@settings(max_examples=40)
def test_thinning_keeps_the_share_of_every_place_and_changes_no_count(whole, share):
    thin = whole.thinned(share)
    same_counts(thin, whole)
    assert thin.rows == whole.rows
    assert thin.layout.kept == pytest.approx(0.5 * share)
    before, after = paths_by_place(whole), paths_by_place(thin)
    # Of slots that are told as many stay, give or take one; but here a tenth of the rows are missing.
    off = 1.0 + 1e-9 * before if whole is UNTOLD else 4.0 * np.sqrt(0.1 * before)
    assert (np.abs(after - share * before) <= off).all()
    assert thin.paths == after.sum()


@pytest.mark.parametrize("whole", [WHOLE, UNTOLD], ids=["slots tell", "slots do not tell"])
@given(share=st.floats(0.05, 0.95))
@settings(max_examples=20)
def test_paths_that_stay_are_spread_over_time(whole, share):
    """Of the paths of any run of days so many stay, give or take one; and each is as it was."""
    thin = whole.thinned(share)
    for before, after in zip(whole.opened([0, 1, 2]), thin.opened([0, 1, 2]), strict=True):
        drift = np.cumsum(after.day_kept) - share * np.cumsum(before.day_kept)
        off = 1.0 + 1e-6 if whole is UNTOLD else 4.0 * np.sqrt(0.1 * before.day_kept.sum())
        assert np.ptp(np.append(0.0, drift)) <= off
        assert (after.day_kept <= before.day_kept).all()
        position = 0
        for column in after.codes.T:  # a subsequence of the paths before
            while not np.array_equal(before.codes[:, position], column):
                position += 1
            position += 1


def test_all_or_none_of_the_paths():
    everything, nothing = WHOLE.thinned(1.0), WHOLE.thinned(0.0)
    assert everything.blocks == WHOLE.blocks
    assert nothing.paths == 0
    same_counts(nothing, WHOLE)


def test_thinning_twice_is_thinning_by_the_product():
    twice, once = UNTOLD.thinned(0.5).thinned(0.4), UNTOLD.thinned(0.2)
    assert twice.layout.kept == pytest.approx(once.layout.kept)
    assert np.abs(paths_by_place(twice) - paths_by_place(once)).max() <= 2


@given(st.floats(0.0, 1.2))
@settings(max_examples=40)
def test_a_summary_within_memory_fits_and_wastes_little(part):
    bare = WHOLE.thinned(0.0).nbytes
    memory = int(bare + part * (WHOLE.nbytes - bare))
    found = WHOLE.within(memory)
    assert found.nbytes <= memory
    same_counts(found, WHOLE)
    if memory >= WHOLE.nbytes:
        assert found is WHOLE
    else:
        assert found.nbytes >= memory - 0.1 * (WHOLE.nbytes - bare) - 200


@pytest.mark.timeout(10)
@pytest.mark.parametrize("short", [1, 10, 10_000])
def test_where_not_even_the_counts_fit_no_path_stays(short):
    """It ends, and the caller sees that it does not fit."""
    bare = WHOLE.thinned(0.0)
    found = WHOLE.within(bare.nbytes - short)
    assert found.paths == 0
    assert found.nbytes == bare.nbytes
    same_counts(found, WHOLE)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("short", [1, 10, 10_000])
def test_a_summary_without_paths_that_does_not_fit_stays_as_it_is(short):
    """As when a batch more is added to one that had no room for paths."""
    bare = WHOLE.thinned(0.0)
    found = bare.within(bare.nbytes - short)
    assert found.paths == 0
    same_counts(found, WHOLE)


def test_meetings_count_and_go_only_when_no_path_is_left():
    latitude, longitude, local_us, values = rows()
    grain = Grain(0, EVERYTHING, starts_of(SCALES, 3, 16))
    whole = replace(WHOLE, meetings=Meetings.of(grain, latitude, longitude, local_us, SCALES.codes(values)))
    assert whole.nbytes == sum(whole.parts.values()) == WHOLE.nbytes + whole.meetings.nbytes
    bare = whole.thinned(0.0).nbytes
    assert whole.within(bare).meetings is whole.meetings
    assert whole.within(bare).paths == 0
    assert whole.within(bare - 1).meetings is None
    assert (whole + whole).meetings.nbytes == whole.meetings.nbytes
    assert (whole + WHOLE).meetings is None


# --- adding -----------------------------------------------------------------------------------------------------------


def parted(parts, seed=1):
    """The rows in parts, some of whose places are the same."""
    latitude, longitude, local_us, values = rows()
    part = np.random.default_rng(seed).integers(0, parts, local_us.size)
    which = (part == number for number in range(parts))
    return [made((latitude[w], longitude[w], local_us[w], values[:, w]), LAYOUT, WHOLE.contexts) for w in which]


def strata_of(summary):
    """Everything that a summary holds, whatever the order: one entry a stratum, without the number of its place."""
    found = []
    for strata in summary.opened([0, 1, 2]):
        for at in range(len(strata)):
            one = strata.take(slice(at, at + 1))
            place = tuple(zip(summary.latitude[one.run_place], summary.longitude[one.run_place], strict=True))
            arrays = ((each.name, getattr(one, each.name)) for each in fields(one) if each.name != "run_place")
            found.append(
                (place, int(one.period[0]), tuple((name, np.asarray(array).tobytes()) for name, array in arrays))
            )
    return sorted(found)


def test_sums_hold_every_row_and_path_in_any_order_and_grouping():
    one, two, three = parted(3)
    whole = one + two + three
    assert whole.rows == WHOLE.rows
    assert whole.paths == one.paths + two.paths + three.paths == WHOLE.paths
    expected = strata_of(whole)
    assert len(expected) == one.strata + two.strata + three.strata
    for other in (one + (two + three), three + one + two, (two + three) + one):
        assert strata_of(other) == expected
    assert sorted(strata_of(one) + strata_of(two) + strata_of(three)) == expected


def test_blocks_know_their_places_after_adding():
    whole = sum(parted(3)[1:], parted(3)[0])
    for block, strata in zip(whole.blocks, whole.opened([0]), strict=True):
        assert (block.place_low, block.place_high) == (strata.run_place.min(), strata.run_place.max())
        assert (block.period_low, block.period_high) == (strata.period.min(), strata.period.max())
    days = np.concatenate([strata.day for strata in whole.opened([0])])
    assert days.max() == rows()[2].max() // DAY_US


def test_a_sum_is_thinned_and_fits_as_any_other():
    whole = sum(parted(3)[1:], parted(3)[0])
    memory = whole.thinned(0.3).nbytes
    found = whole.within(memory)
    assert found.nbytes <= memory
    assert found.rows == WHOLE.rows
    same_counts(found, whole)


def test_a_layout_comes_back_from_plain_values():
    assert PathLayout.from_dict(LAYOUT.to_dict()) == LAYOUT
