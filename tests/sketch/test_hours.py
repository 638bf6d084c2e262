"""When on its day a path was is told by place and slot alone; nothing is kept of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sketch.test_summary import BINS, HOUR_US, made, same_counts

from synopsis.sketch import hours
from synopsis.sketch.budget import even_choice
from synopsis.sketch.evenly import threshold
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.summary import Summary
from synopsis.sketch.tallies import DAY_US

PLACES, DAYS = 7, 40
LAYOUT = PathLayout(months=1, bins=BINS, kept=0.2, slot_us=HOUR_US, regular=True)


def rows(there=1.0, slot_us=HOUR_US, seed=0):
    """Rows at even steps of time, some of them missing; a feature that tells the hour, and one that tells nothing."""
    random = np.random.default_rng(seed)
    latitude, longitude = random.uniform(-60, 60, PLACES), random.uniform(-170, 170, PLACES)
    slots = DAYS * DAY_US // slot_us
    place, slot = (
        each.ravel() for each in np.meshgrid(np.arange(PLACES), np.arange(slots) - slots // 2, indexing="ij")
    )
    stays = random.random(place.size) < there
    place, local_us = place[stays], slot[stays] * slot_us
    hour = local_us % DAY_US / HOUR_US
    return latitude[place], longitude[place], local_us, np.stack((hour, random.normal(size=hour.size), hour * 0.5))


def times_of_paths(some_rows, layout):
    """When each path was, in the order in which they are kept."""
    latitude, longitude, local_us, _ = some_rows
    kept = even_choice(latitude, longitude, local_us, np.zeros((1, local_us.size), np.uint8), layout)
    summary = made(some_rows, layout)
    place = {pair: at for at, pair in enumerate(zip(summary.latitude, summary.longitude, strict=True))}
    number = np.array([place[pair] for pair in zip(latitude[kept], longitude[kept], strict=True)])
    period = np.array([str(np.datetime64(int(each), "us"))[:7] for each in local_us[kept]])
    return summary, local_us[kept][np.lexsort((local_us[kept], period, number))]


def leaning(summary, begin_us, end_us):
    """How paths lean in a span of time, all strata side by side; and the part of its day that each stands for."""
    lean, parts = [], []
    for strata in summary.opened([0]):
        share = strata.covered(np.ones(summary.latitude.size, np.bool_), begin_us, end_us)
        runs = (strata.run_turn, strata.run_first, strata.run_days, strata.day_kept)
        lean.append(hours.leaning(*runs, share, begin_us, end_us, *summary.layout.hours))
        parts.append(np.repeat(share, strata.day_kept))
    part = np.concatenate(parts)
    return np.where(part > 0.0, np.concatenate(lean), 0.0), part  # of other days nobody asks


@given(
    st.integers(-DAYS * 12, DAYS * 12 - 2),
    st.integers(1, 90),
    st.sampled_from([0.05, 0.3, 0.9, 1.0]),
    st.sampled_from([HOUR_US, 3 * HOUR_US, HOUR_US // 6]),
)
@settings(max_examples=25, deadline=None)
def test_where_no_row_is_missing_each_path_knows_its_slot(first_hour, long_hours, kept, slot_us):
    layout = replace(LAYOUT, kept=kept, slot_us=slot_us)
    summary, times = times_of_paths(rows(slot_us=slot_us), layout)
    begin, end = first_hour * HOUR_US, (first_hour + long_hours) * HOUR_US
    lean, part = leaning(summary, begin, end)
    held = np.clip((np.minimum(times + slot_us, end) - np.maximum(times, begin)) / slot_us, 0.0, 1.0)
    assert np.allclose(lean * part, held)


def test_where_rows_are_missing_paths_are_spread_over_the_slots_that_have_some():
    summary, times = times_of_paths(rows(there=0.8), LAYOUT)
    off = []
    for begin in np.arange(-4 * 24, 4 * 24) * HOUR_US:
        lean, part = leaning(summary, begin, begin + HOUR_US)
        told = np.flatnonzero((lean * part > 0.5) & (part > 0.0))
        off += np.abs(times[told] - begin).tolist()
    assert len(off) == (np.abs(times // DAY_US + 0.5) < 4).sum()  # each path of these days is told of one hour
    assert np.mean(off) < 2 * HOUR_US  # by chance it would be 8 hours
    assert np.median(off) == 0


def test_days_that_are_not_cut_are_told_alike():
    summary, _ = times_of_paths(rows(), LAYOUT)
    lean, part = leaning(summary, -3 * DAY_US, 5 * DAY_US)
    assert (lean == part).all()
    assert set(part.tolist()) == {0.0, 1.0}


@given(st.floats(0.0, 1.0), st.floats(0.1, 1.0))
@settings(max_examples=20, deadline=None)
def test_what_is_thinned_is_what_would_have_been_chosen_at_once(share, kept):
    layout = replace(LAYOUT, kept=kept)
    thin = made(rows(), layout).thinned(share)
    once = made(rows(), replace(layout, kept=kept * share))
    same_counts(thin, once)
    for one, other in zip(thin.opened([0, 1, 2]), once.opened([0, 1, 2]), strict=True):
        assert np.array_equal(one.day_kept, other.day_kept)
        assert np.array_equal(one.codes, other.codes)


def test_thinning_by_turns_is_thinning_at_once():
    whole = made(rows(), replace(LAYOUT, kept=0.8))
    twice, once = whole.thinned(0.5).thinned(0.4), whole.thinned(0.2)
    assert [block.paths for block in twice.blocks] == [block.paths for block in once.blocks]


@pytest.mark.parametrize(
    "layout",
    [
        replace(LAYOUT, regular=False),
        replace(LAYOUT, place_bits=12),
        replace(LAYOUT, slot_us=DAY_US),
        replace(LAYOUT, slot_us=1_000_000),
        replace(LAYOUT, spell=30),
        replace(LAYOUT, clocked=False),
    ],
    ids=["irregular", "moving", "daily", "every second", "spells", "thinned by an older release"],
)
def test_nothing_is_told_where_slots_do_not_tell(layout):
    assert layout.hours is None
    assert LAYOUT.hours == (HOUR_US, threshold(LAYOUT.kept))


def test_sketches_of_older_releases_tell_no_hours():
    plain = LAYOUT.to_dict()
    assert PathLayout.from_dict(plain).hours == LAYOUT.hours
    del plain["clocked"]
    assert PathLayout.from_dict(plain).hours is None


def test_what_is_added_to_a_sketch_of_an_older_release_tells_no_hours_either():
    early, late = (tuple(each[..., which] for each in rows()) for which in (rows()[2] < 0, rows()[2] >= 0))
    older = made(early, replace(LAYOUT, clocked=False))
    both: Summary = older + made(late, LAYOUT, older.contexts)
    assert both.rows == rows()[2].size
    assert both.layout.hours is None
