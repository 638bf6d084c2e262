"""Days come back from their frames, and tell by themselves which paths stay where a place reports once a day."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch import blocks, days
from synopsis.sketch.budget import even_choice, tallied
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.evenly import Evenly
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import Strata, from_tallies
from synopsis.sketch.summary import Summary, cut
from synopsis.sketch.tallies import DAY_US, EVERYTHING

RUNS = st.lists(
    st.tuples(st.integers(-5_000, 5_000), st.lists(st.integers(0, 3), min_size=1, max_size=40)), min_size=1, max_size=8
)


@given(RUNS, st.booleans())
def test_rows_of_days_come_back_from_their_frame(runs, seldom):
    rows = np.concatenate([np.array(each) for _, each in runs])
    rows = np.minimum(rows, 1) if seldom else rows
    first, length = np.array([begin for begin, _ in runs]), np.array([len(each) for _, each in runs])
    again = days.opened(days.closed(rows, first, length), days.is_weekly(rows), first, length)
    assert np.array_equal(again, rows)


@given(RUNS, st.booleans(), st.integers(0, 4))
def test_days_of_strata_come_back_from_their_columns(runs, counted, seed):
    sizes = np.array([len(each) for _, each in runs])
    rows = np.concatenate([np.array(each) for _, each in runs]) * 8
    kept = np.random.default_rng(seed).integers(0, rows + 1) if counted else None
    again, paths = days.opened_apart(days.apart(rows, kept, sizes), counted, sizes)
    assert np.array_equal(again, rows)
    assert (paths is None) == (kept is None)
    assert kept is None or np.array_equal(paths, kept)


def test_weeks_that_are_alike_take_next_to_nothing():
    rows = np.tile([1, 0, 0], 2_000)
    assert len(days.closed(rows, np.array([4]), np.array([rows.size]))) < 60


def daily(regular=True, seed=5):
    """A summary of places that report at most once a day, before 1970 as well."""
    random = np.random.default_rng(seed)
    latitude, longitude = random.uniform(-60, 60, 9), random.uniform(-170, 170, 9)
    place, day = (each.ravel() for each in np.meshgrid(np.arange(9), np.arange(-300, 400), indexing="ij"))
    there = random.random(place.size) < 0.7
    place, day = place[there], day[there]
    values = random.normal(size=(2, place.size))
    layout = PathLayout(EVERYTHING, 15, 0.2, DAY_US, regular)
    scales = Scales.fit(values)
    fine, where = scales.codes(values), (latitude[place], longitude[place], day * DAY_US)
    tallies = tallied(*where, fine, even_choice(*where, fine, layout), layout)
    strata = from_tallies(scales, tallies, layout.bins)
    contexts, even = Contexts.fit(strata.codes, 15), layout.evenly(tallies.latitude, tallies.longitude)
    packed = tuple(blocks.closed(strata.take(run), contexts, even) for run in cut(strata))
    return Summary(layout, tallies.latitude, tallies.longitude, scales, contexts, packed), strata


@pytest.mark.parametrize("regular", [True, False])
def test_days_of_daily_places_tell_their_paths(regular):
    summary, strata = daily(regular)
    assert all((block.share is not None) == regular and block.weekly for block in summary.blocks)
    assert summary.paths == strata.codes.shape[1]
    assert summary.rows == strata.day_rows.sum()
    found = Strata.joined(summary.opened([0, 1]))
    chosen = np.arange(9) % 3 != 1
    fast = summary.opened_within([0, 1], chosen, -1 << 40, 1 << 40)
    wanted = strata.take(chosen[strata.run_place[strata.run_offset[:-1]]])
    for name in ("day_rows", "day_kept", "codes", "run_place", "run_first"):
        assert np.array_equal(getattr(found, name), getattr(strata, name)), name
        assert np.array_equal(getattr(fast, name), getattr(wanted, name)), name


def test_days_go_on_to_tell_their_paths_when_these_are_thinned():
    summary, strata = daily()
    thin = summary.thinned(0.5).thinned(0.6)
    assert thin.layout.kept == pytest.approx(0.06)
    assert all(block.share == pytest.approx(0.06) for block in thin.blocks)
    assert thin.paths == pytest.approx(0.06 * strata.day_rows.sum(), rel=0.1)
    left = Strata.joined(thin.opened([0, 1]))
    assert (left.day_kept <= strata.day_kept).all()
    stays = np.repeat(left.day_kept > 0, strata.day_kept)
    assert np.array_equal(left.codes, strata.codes[:, stays])


def test_paths_that_are_not_as_days_tell_are_counted():
    summary, strata = daily()
    odd = Evenly(summary.latitude, summary.longitude, 0.3)
    block = blocks.closed(strata, summary.contexts, odd)
    assert block.share is None
    again = blocks.opened(block, summary.contexts, [0, 1], (summary.latitude, summary.longitude))
    assert np.array_equal(again.day_kept, strata.day_kept)


def test_where_all_paths_stay_every_row_has_one():
    summary, strata = daily()
    whole = Evenly(summary.latitude, summary.longitude, 1.0)
    place, day = strata.day_place, strata.day
    assert np.array_equal(whole.paths(place, day, strata.day_rows), strata.day_rows)
