"""Members add up: whatever the order, the grouping and the grain, spans hold the same entities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synopsis.sketch.layout import Layout
from synopsis.sketch.marks import HASH_BITS, Marks, hash_of
from synopsis.sketch.members import Members, Opened, grains_from
from synopsis.store.members import from_table, to_table
from synopsis.testing.members import members_of

DAYS = Layout((), 20, "1d")
DAY_US = 86_400_000_000
COUNT = 3_000


def drawn(count: int = COUNT, entities: int = 150, seed: int = 0) -> tuple:
    random = np.random.default_rng(seed)
    latitude, longitude = random.uniform(40.0, 60.0, count), random.uniform(-10.0, 20.0, count)
    return latitude, longitude, random.integers(0, 90 * DAY_US, count), random.integers(0, entities, count)


LATITUDE, LONGITUDE, INSTANTS, VEHICLE = drawn()


def of(which: np.ndarray, layout: Layout = DAYS) -> Members:
    return members_of(
        layout, LATITUDE[which], LONGITUDE[which], INSTANTS[which], [f"v{each}" for each in VEHICLE[which]]
    )


EVERY = np.arange(COUNT)
LITTLE = 3_600  #: bytes
WHOLE = of(EVERY)


def told(members: Members) -> list[tuple]:
    """What every span has: keys, rows, how many entities and cells, and which marks."""
    spans, opened = members.spans, Opened(members)
    return [
        (
            *(int(each[at]) for each in (spans.cell, spans.bucket, spans.rows)),
            opened.entities_in(np.array([at])),
            round(opened.cells_in(np.array([at])).estimate),
            opened.marks_of(np.array([at])).tolist(),
        )
        for at in range(len(spans))
    ]


@pytest.mark.parametrize("layout", [Layout((), 10, "1d"), Layout((), 20, "1mo"), Layout((), 5, "1y")])
def test_coarser_spans_are_those_of_the_rows_at_the_coarser_grain(layout: Layout) -> None:
    coarser, plain = WHOLE.coarsened(layout), of(EVERY, layout)
    assert [each[:4] for each in told(coarser)] == [each[:4] for each in told(plain)]
    assert [each[5] for each in told(coarser)] == [each[5] for each in told(plain)]
    for one, other in zip(told(coarser), told(plain), strict=True):
        assert one[4] == pytest.approx(other[4], rel=0.05, abs=1)


@settings(max_examples=15)
@given(st.integers(1, 9), st.integers(0, 99))
def test_batches_in_any_order_and_grouping_are_one(step: int, seed: int) -> None:
    months, some = Layout((), 10, "1mo"), EVERY[:: 5 * step]
    batch = np.random.default_rng(seed).integers(0, 3, some.size)
    a, b, c = (of(some[batch == each], months) for each in range(3))
    bits = min(each.marks.bits for each in (a, b, c))
    plain = of(some, months)
    for sum_of in (a + b + c, c + (b + a), (b + c) + a):
        assert sum_of.marks.bits == bits
        assert [each[:4] for each in told(sum_of)] == [each[:4] for each in told(plain)]
        shortened = plain.marks.cut(bits)
        assert [each.tolist() for each in sum_of.marks.sets] == [each.tolist() for each in shortened.sets]


def test_batches_of_different_grains_meet_at_the_finest_in_which_both_nest() -> None:
    one, other = of(EVERY[::2], Layout((), 20, "1mo")), of(EVERY[1::2], Layout((), 10, "1d"))
    assert (one + other).spans.layout == (other + one).spans.layout == Layout((), 10, "1mo")
    assert told(one + other) == told(other + one)


@pytest.mark.parametrize("room", [300_000, 60_000, 12_000, 6_000])
def test_members_take_no_more_bytes_than_there_is_room_for(room: int) -> None:
    found = WHOLE.within(room)
    assert found is not None
    assert found.nbytes <= room
    assert found.spans.layout in grains_from(DAYS)
    everywhere = np.arange(len(found.spans))
    assert Opened(found).entities_in(everywhere).estimate == np.unique(VEHICLE).size


def test_a_small_room_has_no_marks_and_none_at_all_no_members() -> None:
    assert WHOLE.within(LITTLE).marks is None
    assert WHOLE.within(100) is None


def test_members_come_back_from_a_table_as_they_were() -> None:
    again = from_table(to_table(WHOLE))
    assert told(again) == told(WHOLE)
    assert (again.entity, again.cell_bits, again.spans.layout) == (WHOLE.entity, WHOLE.cell_bits, WHOLE.spans.layout)
    without = WHOLE.within(LITTLE)
    assert from_table(to_table(without)).marks is None
    assert from_table(to_table(WHOLE).slice(0, 0)) is None


def test_taking_spans_keeps_their_members() -> None:
    which = np.array([0, 5, 17])
    assert told(WHOLE.take(which)) == [told(WHOLE)[at] for at in which]


# --- marks ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.sets(st.integers(0, 2**HASH_BITS - 1), max_size=40), max_size=6))
def test_marks_come_back_as_they_were(sets: list[set[int]]) -> None:
    plain = [np.array(sorted(each), np.uint32) for each in sets]
    marks = Marks.plain(plain, HASH_BITS)
    assert [each.tolist() for each in marks.sets] == [each.tolist() for each in plain]


def test_every_name_of_a_set_has_its_mark_there_and_few_others_do() -> None:
    names = [f"station {at}" for at in range(2_000)]
    marks = Marks.of([np.array(sorted(map(hash_of, names)), np.uint32)])
    there = set(marks.sets[0].tolist())
    assert all(marks.mark(name) in there for name in names)
    wrong = sum(marks.mark(f"nobody {at}") in there for at in range(100_000)) / 100_000
    assert wrong == pytest.approx(marks.rate(len(there)), rel=0.2)
    assert marks.rate(len(there)) < 1 / 256
