"""Rows that are counted batch by batch in machine code tell what NumPy tells of all of them at once."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch.budget import even_choice, tallied, whereabouts
from synopsis.sketch.fine import FineSums
from synopsis.sketch.gathering import PER_INTEGER, Gathering
from synopsis.sketch.joints import Grain, starts_of
from synopsis.sketch.meetings import KEYS, Meetings
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.tallies import DAY_US, Tallies
from synopsis.sketch.ticks import ABSENT_TICK

#: Zeros of both signs are one place; some lie at the ends of the globe.
LATITUDES = np.array([0.0, -0.0, -33.5, 51.25, 51.25, 90.0, -90.0, 12.0])
LONGITUDES = np.array([0.0, 0.0, 151.2, -0.5, 179.9, 180.0, -180.0, -73.4])


class Rows:
    """Rows of some places before and after 1970, in the layout of stations or of moving objects."""

    def __init__(self, seed: int, count: int, layout: PathLayout, features: int, *, met: bool, far: bool) -> None:
        random = np.random.default_rng(seed)
        place = random.integers(0, len(LATITUDES), count)
        self.latitude, self.longitude = LATITUDES[place], LONGITUDES[place]
        if layout.place_bits is not None:
            self.latitude = np.clip(self.latitude + random.uniform(-1, 1, count), -90, 90)
        reach = 3_000 if far else 40
        self.local_us = random.integers(-reach * 24, reach * 24, count) * (DAY_US // 24)
        if random.random() < 0.5:
            self.local_us = np.sort(self.local_us)
        values = random.normal(0, 3, (features, count)).round(1)
        values[random.random(values.shape) < 0.1] = np.nan
        if layout.place_bits is not None:
            own = whereabouts(self.latitude, self.longitude, self.local_us, layout.place_bits)
            values = np.concatenate((values, own))
        self.layout, self.scales = layout, Scales.fit(values, 30)
        self.ticks = np.stack([ticks.of(row) for ticks, row in zip(self.scales.ticks, values, strict=True)])
        self.fine = np.stack([self.scales.code_of_tick(k)[row] for k, row in enumerate(self.ticks)])
        self.grain = Grain(5, 3, starts_of(self.scales, features, 16)) if met else None

    def gathered(self, cuts: list[int]) -> Gathering:
        made = Gathering(self.layout, self.scales, self.grain)
        missing = -len(self.ticks) % PER_INTEGER
        padded = np.pad(self.ticks, ((0, missing), (0, 0))).reshape(-1, PER_INTEGER, self.local_us.size)
        packed = sum(padded[:, at] << (16 * at) for at in range(PER_INTEGER))
        for begin, end in zip([0, *cuts], [*cuts, self.local_us.size], strict=True):
            own = slice(begin, end)
            taken = made.add(
                self.latitude[own], self.longitude[own], self.local_us[own], [row[own].copy() for row in packed]
            )
            assert taken == end - begin
        return made


def layouts() -> st.SearchStrategy[PathLayout]:
    kept, regular = st.sampled_from([0.0, 0.3, 0.9, 1.0]), st.booleans()
    months, region = st.sampled_from([1, 12, 1_200]), st.sampled_from([None, 1, 10])
    slot = st.sampled_from([1_000_000, 3_600_000_000])
    stations = st.builds(PathLayout, months, st.just(15), kept, slot, regular, region)
    moving = st.builds(PathLayout, months, st.just(15), kept, st.just(1), st.just(False), st.just(1), st.just(8))
    return st.one_of(stations, moving)


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 3_000),
    layout=layouts(),
    features=st.integers(2, 6),
    met=st.booleans(),
    far=st.booleans(),
    data=st.data(),
)
def test_what_is_gathered_in_batches_is_what_numpy_makes_of_all_rows(seed, count, layout, features, met, far, data):
    rows = Rows(seed, count, layout, features, met=met, far=far)
    made = rows.gathered(sorted(data.draw(st.lists(st.integers(0, count), max_size=4))))
    where = rows.latitude, rows.longitude, rows.local_us
    kept = even_choice(*where, rows.fine, layout)
    expected, found = tallied(*where, rows.fine, kept, layout), made.tallies()
    for each in fields(Tallies):
        left, right = getattr(expected, each.name), getattr(found, each.name)
        assert np.array_equal(left, right), each.name
        assert not isinstance(left, np.ndarray) or left.dtype == right.dtype, each.name
    counts = np.stack([np.bincount(row, minlength=ABSENT_TICK + 1) for row in rows.ticks])
    for mine, theirs in zip(made.sums().numbers, FineSums.of(rows.scales, counts).numbers, strict=True):
        assert np.array_equal(mine, theirs)
    if rows.grain is None:
        assert made.meetings() is None
        return
    ours, oracle = made.meetings(), Meetings.of(rows.grain, *where, rows.fine)
    assert ours.frames == oracle.frames
    assert all(np.array_equal(getattr(ours, name), getattr(oracle, name)) for name in KEYS)


@pytest.mark.parametrize("most_bytes", [1 << 16, 1 << 22])
def test_gathering_takes_no_more_rows_when_it_is_full_and_parts_join_to_all(most_bytes):
    """Each row is at a place of its own, and so in a stratum of its own."""
    random = np.random.default_rng(7)
    count = 20_000
    layout = PathLayout(1, 15, 0.5, 1_000_000, True)
    rows = Rows(7, count, layout, 4, met=True, far=True)
    rows.latitude, rows.longitude = random.uniform(-90, 90, count), random.uniform(-180, 180, count)
    packed = sum(rows.ticks[at] << (16 * at) for at in range(PER_INTEGER))
    parts, start = [], 0
    while start < count:
        made = Gathering(layout, rows.scales, rows.grain, most_bytes)
        own = slice(start, None)
        start += made.add(rows.latitude[own], rows.longitude[own], rows.local_us[own], [packed[own]])
        # Arrays double, and a batch of rows may be kept whole.
        assert made.rows * 4 * 256 * 4 < 2 * max(most_bytes, 1 << 20)
        parts.append(made)
    assert len(parts) > 1
    where = rows.latitude, rows.longitude, rows.local_us
    expected = tallied(*where, rows.fine, even_choice(*where, rows.fine, layout), layout)
    found = Tallies.joined([part.tallies() for part in parts])
    for each in fields(Tallies):
        assert np.array_equal(getattr(expected, each.name), getattr(found, each.name)), each.name
    assert (
        Meetings.joined([part.meetings() for part in parts]).frames == Meetings.of(rows.grain, *where, rows.fine).frames
    )


@pytest.mark.parametrize("spell", [10, 90])
def test_rows_are_gathered_by_the_slow_clock_of_spells_and_meetings_by_real_days(spell):
    layout = PathLayout(1_200, 15, 0.3, DAY_US // spell, True, 10, spell=spell)
    rows = Rows(11, 2_000, layout, 4, met=True, far=True)
    made, slow = rows.gathered([700]), rows.local_us // spell
    where = rows.latitude, rows.longitude, slow
    expected, found = tallied(*where, rows.fine, even_choice(*where, rows.fine, layout), layout), made.tallies()
    for each in fields(Tallies):
        assert np.array_equal(getattr(expected, each.name), getattr(found, each.name)), each.name
    met, day = made.meetings(), rows.local_us // DAY_US
    assert met.first_day.min() in range(day.min() - spell + 1, day.min() + 1)
    assert met.last_day.max() in range(day.max(), day.max() + spell)
