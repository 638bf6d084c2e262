"""Whichever way rows are split, and in whichever order the parts meet: their tallies are those of all rows."""

from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from synopsis.grid import geohash
from synopsis.sketch import tallies
from synopsis.sketch.scales import ABSENT
from synopsis.sketch.tallies import DAY_US, Tallies, numbered, periods

#: Few places, so that parts share some; zeros of both signs are one place, and bits of negative numbers lie far apart.
LATITUDES = np.array([0.0, -0.0, -33.5, 51.25, 51.25, 90.0, -90.0])
LONGITUDES = np.array([0.0, 0.0, 151.2, -0.5, 179.9, 180.0, -180.0])


@st.composite
def all_rows(draw, most=60):
    """Rows of some places before and after 1970, several at one instant among them: the arguments of `Tallies.of`."""
    count = draw(st.integers(1, most))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    place = random.integers(0, len(LATITUDES), count)
    instants = random.integers(-draw(st.integers(0, 400)), 401, count) * (DAY_US // 4)
    if draw(st.booleans()):
        instants = instants + random.integers(0, 10**6, count)
    fine = random.choice([0, 1, 7, 249, ABSENT], (draw(st.integers(1, 3)), count)).astype(np.uint8)
    kept = random.random(count) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    months, bits = draw(st.sampled_from([1, 12])), draw(st.sampled_from([None, 1, 3, 5]))
    return LATITUDES[place], LONGITUDES[place], periods(instants, months), instants, fine, kept, bits


def taken(rows, which):
    latitude, longitude, period, instants, fine, kept, bits = rows
    return latitude[which], longitude[which], period[which], instants[which], fine[:, which], kept[which], bits


def same(one, two):
    """Every array equal, and of the same kind."""
    for each in fields(Tallies):
        left, right = getattr(one, each.name), getattr(two, each.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, each.name
        assert np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right, each.name


@given(rows=all_rows(), data=st.data())
def test_parts_in_any_order_and_grouping_join_to_the_tallies_of_all_rows(rows, data):
    count = rows[0].size
    part = np.array(data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)))
    parts = [
        Tallies.of(*taken(rows, part == number)) for number in data.draw(st.permutations(np.unique(part).tolist()))
    ]
    expected = Tallies.of(*rows)
    same(Tallies.joined(parts), expected)
    cut = data.draw(st.integers(1, len(parts)))
    same(Tallies.joined([Tallies.joined(parts[:cut]), *parts[cut:]]), expected)


@given(rows=all_rows(), data=st.data())
def test_the_order_of_rows_does_not_show(rows, data):
    order = np.array(data.draw(st.permutations(range(rows[0].size))))
    same(Tallies.of(*taken(rows, order)), Tallies.of(*rows))


@given(rows=all_rows())
def test_every_row_is_counted_once_in_its_place_period_day_and_bin(rows):
    latitude, longitude, period, instants, fine, kept, bits = rows
    made = Tallies.of(*rows)
    assert (made.mass.sum(axis=2) == np.bincount(made.day_stratum, made.day_rows)).all()
    strata = list(zip(made.group, made.period, strict=True))
    assert len(set(strata)) == len(strata)
    assert sorted(strata) == strata
    places = list(zip(made.latitude, made.longitude, strict=True))
    place = np.array([places.index(each) for each in zip(latitude, longitude, strict=True)])
    group = place if bits is None else geohash.encode(latitude, longitude, bits)
    for number, (which, when) in enumerate(strata):
        mine = (group == which) & (period == when)
        days, rows_of_day = np.unique(np.stack((place[mine], instants[mine] // DAY_US)), axis=1, return_counts=True)
        here, there = made.day_stratum == number, made.kept_stratum == number
        assert np.array_equal(np.stack((made.day_place[here], made.day[here])), days)
        assert np.array_equal(made.day_rows[here], rows_of_day)
        for feature, codes in enumerate(fine):
            assert np.array_equal(made.mass[feature, number], np.bincount(codes[mine], minlength=256))
        paths = sorted(zip(place[mine & kept], instants[mine & kept], strict=True))
        assert list(zip(made.kept_place[there], made.kept_us[there], strict=True)) == paths


@given(rows=all_rows(), data=st.data())
def test_tallies_of_some_places_and_of_the_others_join_to_all(rows, data):
    whole = Tallies.of(*rows)
    places = whole.latitude.size
    group = np.array(data.draw(st.lists(st.integers(0, 2), min_size=places, max_size=places)))
    if rows[-1] is not None:  # places of one group stay together
        group = geohash.encode(whole.latitude, whole.longitude, rows[-1]) % 3
    names, parts = zip(*whole.parted(group), strict=True)
    assert list(names) == np.unique(group).tolist()
    assert sum(part.latitude.size for part in parts) == places
    assert sum(part.period.size for part in parts) == whole.period.size
    same(Tallies.joined(parts), whole)
    for number, part in zip(np.unique(group), parts, strict=True):
        chosen = group == number
        mine = np.isin(rows[0] + 1j * rows[1], (whole.latitude + 1j * whole.longitude)[chosen])
        same(Tallies.joined([part]), Tallies.of(*taken(rows, mine)))


@given(st.integers(-(10**6), 10**6), st.sampled_from([1, 3, 12, 1_200]))
def test_a_period_begins_with_its_first_month(day, months):
    """Before 1970 as after it."""
    date = np.datetime64(day, "D")
    month = int(date.astype("datetime64[M]").astype(np.int64))
    assert periods(np.array([day * DAY_US]), months)[0] == month // months


@given(st.data(), st.sampled_from([2, 50, 10**6, 2**62]), st.sampled_from([2, 50, 2**62]))
def test_pairs_are_numbered_alike_whether_they_lie_close_or_far_apart(data, wide, deep):
    count = data.draw(st.integers(0, 40))
    first, second = (
        np.array(data.draw(st.lists(st.integers(-size, size), min_size=count, max_size=count)), np.int64)
        for size in (wide, deep)
    )
    (one, two), number = numbered(first, second)
    assert list(zip(one.tolist(), two.tolist(), strict=True)) == sorted(
        set(zip(first.tolist(), second.tolist(), strict=True))
    )
    assert np.array_equal(one[number], first)
    assert np.array_equal(two[number], second)


@given(rows=all_rows())
def test_places_of_one_hash_are_told_apart(rows):
    mixing, tallies._ODD = tallies._ODD, 0  # latitude does not count any more
    try:
        clashing = Tallies.of(*rows)
    finally:
        tallies._ODD = mixing
    same(clashing, Tallies.of(*rows))
