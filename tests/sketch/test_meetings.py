"""Meetings tell of every two bins whether a row ever had both, whatever the order of rows and batches."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.test_summaries import made

from synopsis.grid import geohash
from synopsis.sketch.joints import ENOUGH, JOINTS, Grain, folded, starts_of
from synopsis.sketch.meetings import KEYS, Meetings, cells_of, planned
from synopsis.sketch.scales import ABSENT, Scales
from synopsis.sketch.tallies import DAY_US, EVERYTHING, periods
from synopsis.store.summaries import from_table, to_table
from synopsis.testing.laws import MergeLaws

FEATURES = 4
COUNT = 6_000


def rows(count=COUNT, seed=0):
    """Positions, local times and values of a few hundred places: related, mostly zero, often absent, of few values."""
    random = np.random.default_rng(seed)
    place = random.integers(0, 300, count)
    where = np.random.default_rng(1)
    latitude, longitude = where.uniform(-40, 40, 300)[place], where.uniform(-60, 60, 300)[place]
    local_us = random.integers(-200 * DAY_US, 500 * DAY_US, count)
    warm = np.round(15 + latitude / 4 + random.normal(0, 5, count), 1)
    rain = np.where(random.random(count) < 0.8, 0.0, random.lognormal(0, 2, count))
    related = np.where(random.random(count) < 0.5, np.nan, 2 * warm + random.normal(size=count))
    return latitude, longitude, local_us, np.stack((warm, rain, related, random.integers(0, 5, count)))


SCALES = Scales.fit(rows()[3])


def grain(bits=10, months=1, joints=32) -> Grain:
    return Grain(bits, months, starts_of(SCALES, FEATURES, joints))


def met(some_rows, own: Grain) -> Meetings:
    latitude, longitude, local_us, values = some_rows
    return Meetings.of(own, latitude, longitude, local_us, SCALES.codes(values))


def taken(some_rows, which):
    return tuple(each[..., which] for each in some_rows)


WHOLE = met(rows(), grain())
SUMMARY = made()


def same(one: Meetings, two: Meetings) -> bool:
    return (
        one.grain == two.grain
        and all(np.array_equal(getattr(one, name), getattr(two, name)) for name in KEYS)
        and all(np.array_equal(one.met(*pair), two.met(*pair)) for pair in one.grain.pairs)
    )


def through_bytes(meetings: Meetings) -> Meetings:
    found = from_table(to_table(replace(SUMMARY, meetings=meetings)))
    assert found is not None
    assert found.meetings is not None
    return found.meetings


@st.composite
def some(draw) -> Meetings:
    """The meetings of some rows, in any of a few grains that nest."""
    chosen = rows(draw(st.integers(0, 40)), draw(st.integers(0, 5)))
    levels = folded(starts_of(SCALES, FEATURES, JOINTS[-1]), SCALES)
    own = Grain(
        draw(st.sampled_from([0, 5, 20])), draw(st.sampled_from([1, 3, EVERYTHING])), draw(st.sampled_from(levels))
    )
    return met(chosen, own)


class TestLaws(MergeLaws):
    """The finest grain is that of nothing: adding it coarsens nothing."""

    summaries = some()
    empty = met(rows(0), Grain(20, 1, starts_of(SCALES, FEATURES, JOINTS[-1])))
    same = staticmethod(same)
    round_trip = staticmethod(through_bytes)


# --- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "months", "joints"), [(10, 1, 32), (0, EVERYTHING, 250), (5, 3, 16), (20, 12, 24)])
def test_two_bins_met_where_a_row_has_both_and_nowhere_else(bits: int, months: int, joints: int) -> None:
    own = grain(bits, months, joints)
    latitude, longitude, local_us, values = rows()
    found = met(rows(), own)
    span = list(zip(cells_of(latitude, longitude, bits).tolist(), periods(local_us, months).tolist(), strict=True))
    number = {key: at for at, key in enumerate(zip(found.cell.tolist(), found.period.tolist(), strict=True))}
    assert set(number) == set(span)
    codes = SCALES.codes(values)
    joint = [own.joint(feature)[codes[feature]] for feature in range(FEATURES)]
    for one, other in combinations(range(FEATURES), 2):
        expected = np.zeros((len(found), own.sizes[one], own.sizes[other]), bool)
        expected[[number[key] for key in span], joint[one], joint[other]] = True
        assert np.array_equal(found.met(one, other), expected)
        assert np.array_equal(found.met(other, one), expected.transpose(0, 2, 1))


def test_spans_know_their_first_and_their_last_day() -> None:
    latitude, longitude, local_us, _ = rows()
    own = cells_of(latitude, longitude, 10) * 1_000 + periods(local_us, 1)
    for at in range(0, len(WHOLE), 7):
        days = local_us[own == WHOLE.cell[at] * 1_000 + WHOLE.period[at]] // DAY_US
        assert (WHOLE.first_day[at], WHOLE.last_day[at]) == (days.min(), days.max())


def test_values_that_many_rows_share_and_absent_ones_have_joint_bins_of_their_own() -> None:
    for joints in JOINTS:
        own = grain(joints=joints)
        dry = own.joint(1)[SCALES.codes(np.zeros((FEATURES, 1)))[1]]
        assert (own.joint(1) == dry).sum() == 1
        assert (own.joint(2)[ABSENT] == own.joint(2)).sum() == 1
        fine = [quantizer.bins for quantizer in SCALES.quantizers]
        assert all(size - 1 >= min(joints, bins) for size, bins in zip(own.sizes, fine, strict=True))


def test_the_ranges_of_joint_bins_hold_the_values_of_their_rows() -> None:
    own, values = grain(), rows()[3]
    codes = SCALES.codes(values)
    for feature in range(FEATURES):
        there = ~np.isnan(values[feature])
        joint = own.joint(feature)[codes[feature][there]]
        low, high = own.ranges(SCALES, feature)
        assert low.size == own.sizes[feature] - 1
        assert (low[joint] <= values[feature][there]).all()
        assert (values[feature][there] <= high[joint]).all()
        assert (high[:-1] <= low[1:]).all()


# --- coarser ----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(st.sampled_from([0, 5, 10]), st.sampled_from([1, 3, 12, EVERYTHING]), st.integers(0, 9))
def test_folding_gives_what_rows_would_have_given(bits: int, months: int, level: int) -> None:
    levels = folded(WHOLE.grain.starts, SCALES)
    coarser = Grain(bits, months, levels[level % len(levels)])
    assert same(WHOLE.coarsened(coarser), met(rows(), coarser))


def test_folding_halves_joint_bins_and_keeps_those_of_shared_values() -> None:
    levels = folded(starts_of(SCALES, FEATURES, JOINTS[-1]), SCALES)
    assert max(map(len, levels[0])) <= 16
    for coarse, fine in pairwise(levels):
        for feature, (few, many) in enumerate(zip(coarse, fine, strict=True)):
            assert {*few} <= {*many}
            assert len(few) >= len(many) // 2
            assert (
                Grain(0, 1, coarse).joint(1) == Grain(0, 1, coarse).joint(1)[SCALES.codes(np.zeros((4, 1)))[1]]
            ).sum() == 1
            assert few[0] == 0, feature


@pytest.mark.parametrize("share", [1.0, 0.6, 0.2, 0.05, 0.01])
def test_meetings_are_folded_until_they_fit(share: float) -> None:
    room = int(WHOLE.nbytes * share)
    found = WHOLE.within(room, SCALES)
    if found is None:
        assert share < 0.05
        return
    assert found.nbytes <= room
    assert same(found, WHOLE.coarsened(found.grain))
    assert (found is WHOLE) == (share == 1.0)


def test_there_are_none_where_none_fit() -> None:
    assert WHOLE.within(60, SCALES) is None


# --- planning ---------------------------------------------------------------------------------------------------------


def planned_for(room: int, count: int = COUNT, factor: float = 1.0, features: int = FEATURES):
    latitude, longitude, local_us, values = rows(count)
    return planned(SCALES, latitude, longitude, local_us, SCALES.codes(values)[:features], factor, room)


def test_what_is_planned_fits_and_more_room_is_used() -> None:
    sizes = []
    for room in (2_000, 8_000, 40_000, 200_000, 2_000_000):
        found = planned_for(room)
        assert found is not None
        made = met(rows(), found.grain)
        assert made.nbytes <= room * 1.1
        assert abs(found.nbytes - made.nbytes) <= 0.3 * made.nbytes
        sizes.append(made.nbytes)
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_a_sample_foretells_the_meetings_of_all_rows() -> None:
    latitude, longitude, local_us, values = rows(64_000)
    some_of = slice(None, None, 8)
    where = latitude[some_of], longitude[some_of], local_us[some_of]
    for room in (10_000, 100_000):
        found = planned(SCALES, *where, SCALES.codes(values)[:, some_of], 8.0, room)
        assert found is not None
        whole = Meetings.of(found.grain, latitude, longitude, local_us, SCALES.codes(values))
        assert 0.6 < found.nbytes / whole.nbytes < 1.6


def test_enough_bins_come_before_spans_and_spans_before_more_bins() -> None:
    fine = [quantizer.bins for quantizer in SCALES.quantizers]
    little, some_room, much = (planned_for(room) for room in (3_000, 30_000, 10_000_000))
    for found in (some_room, much):
        assert all(len(each) >= min(ENOUGH, bins) for each, bins in zip(found.grain.starts, fine, strict=True))
    assert little.grain.bits < much.grain.bits == 20
    assert much.grain.months == 1
    assert max(much.grain.sizes) > 200


def test_one_feature_meets_nothing_and_no_room_holds_nothing() -> None:
    assert planned_for(1_000_000, features=1) is None
    assert planned_for(1_000_000, count=0) is None
    assert planned_for(50) is None


def test_cells_of_no_bits_are_everywhere() -> None:
    latitude, longitude, _, _ = rows(50)
    assert not cells_of(latitude, longitude, 0).any()
    assert np.array_equal(cells_of(latitude, longitude, 10), geohash.encode(latitude, longitude, 10))


def test_some_spans_are_taken() -> None:
    which = WHOLE.cell == WHOLE.cell[0]
    few = WHOLE.take(which)
    rest = WHOLE.take(~which)
    assert len(few) == which.sum()
    assert same(few + rest, WHOLE)
