"""Covers agree with looking at every cell of the globe, one after the other."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synopsis.grid.cover import CUT, DISJOINT, INSIDE, Box, cover_box, relation
from synopsis.grid.geohash import decode, encode, parse


def degrees(reach: float) -> st.SearchStrategy[float]:
    """Mostly edges of cells and their next floats: that is where covers go wrong."""
    edges = st.integers(-16, 16).map(lambda part: part * reach / 16)
    nudged = st.tuples(edges, st.sampled_from([-reach, reach])).map(lambda pair: math.nextafter(*pair))
    return edges | nudged | st.floats(-reach, reach)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    south, north = sorted((draw(degrees(90.0)), draw(degrees(90.0))))
    return Box(south, draw(degrees(180.0)), north, draw(degrees(180.0)))


def holds(box: Box, latitude: float, longitude: float) -> bool:
    """Whether a position lies in the box: the definition."""
    if box.west <= box.east:
        along = box.west <= longitude <= box.east
    else:
        along = longitude >= box.west or longitude <= box.east
    return box.south <= latitude <= box.north and along


def look_at_every_cell(box: Box, bits: int) -> tuple[list[int], list[int]]:
    inner, border = [], []
    for cell in range(2**bits):
        south, west, north, east = (float(edge) for edge in decode(cell, bits))
        meets_rows = box.south <= box.north and south <= box.north and (box.south < north or box.south == north == 90)
        meets, within = False, False
        for first, last in [(box.west, box.east)] if box.west <= box.east else [(box.west, 180), (-180, box.east)]:
            meets |= west <= last and (first < east or first == east == 180)
            within |= first <= west and east <= last
        if meets_rows and meets:
            (inner if within and box.south <= south and north <= box.north else border).append(cell)
    return inner, border


GLOBE = Box(-90.0, -180.0, 90.0, 180.0)


@given(boxes(), st.integers(1, 8))
@example(Box(0.0, 10.0, 40.0, 9.0), 4)  # begins and ends in one column, the long way round
@example(Box(0.0, 180.0, 40.0, -180.0), 5)  # the dateline alone, under both its names
@example(Box(90.0, 0.0, 90.0, 0.0), 6)
@example(GLOBE, 7)
def test_a_cover_is_what_looking_at_every_cell_finds(box: Box, bits: int) -> None:
    cover = cover_box(box, bits)
    assert (cover.inner.tolist(), cover.border.tolist()) == look_at_every_cell(box, bits)


@given(boxes(), st.integers(1, 12), degrees(90.0), degrees(180.0))
def test_no_position_escapes_a_cover(box: Box, bits: int, latitude: float, longitude: float) -> None:
    cover = cover_box(box, bits)
    cell = int(encode(latitude, longitude, bits))
    if cell in cover.inner:
        assert holds(box, latitude, longitude)
    if cell not in cover.inner and cell not in cover.border:
        assert not holds(box, latitude, longitude)


def test_the_whole_globe_has_no_border() -> None:
    cover = cover_box(GLOBE, 10)
    assert cover.inner.tolist() == list(range(1024))
    assert cover.border.size == 0


@pytest.mark.parametrize(
    ("latitude", "longitude"), [(48.85, 2.35), (90.0, 180.0), (-90.0, -180.0), (0.0, 0.0), (-1e-17, -1e-17)]
)
def test_a_point_is_covered_by_its_own_cell_however_small(latitude: float, longitude: float) -> None:
    cover = cover_box(Box(latitude, longitude, latitude, longitude), 60)
    assert cover.inner.size == 0
    assert cover.border.tolist() == [int(encode(latitude, longitude, 60))]


def test_a_line_is_all_border() -> None:
    cover = cover_box(Box(0.0, -180.0, 0.0, 180.0), 10)
    assert cover.inner.size == 0
    assert len(cover.border) == 32


def test_a_box_made_of_whole_cells_touches_the_next_ones_because_it_is_closed() -> None:
    south, west, north, east = (float(edge) for edge in decode(parse("ezs")[0], 15))
    cover = cover_box(Box(south, west, north, east), 15)
    assert cover.inner.tolist() == [parse("ezs")[0]]
    assert cover.border.tolist() == sorted(parse(text)[0] for text in ("ezt", "ezu", "ezv"))


def test_a_box_over_the_dateline_is_its_two_halves() -> None:
    whole = cover_box(Box(-20.0, 170.0, -10.0, -170.0), 20)
    west = cover_box(Box(-20.0, 170.0, -10.0, 180.0), 20)
    east = cover_box(Box(-20.0, -180.0, -10.0, -170.0), 20)
    assert whole.inner.tolist() == sorted([*west.inner.tolist(), *east.inner.tolist()])
    assert whole.border.tolist() == sorted([*west.border.tolist(), *east.border.tolist()])


def test_a_cover_beyond_the_limit_is_refused_before_it_is_made() -> None:
    with pytest.raises(ValueError, match=r"60 bits takes 1,152,921,504,606,846,976 cells, .* use fewer bits"):
        cover_box(GLOBE, 60)
    assert len(cover_box(GLOBE, 10, limit=1024).inner) == 1024
    with pytest.raises(ValueError, match=r"takes 1,024 cells, more than 1,023: use fewer bits"):
        cover_box(GLOBE, 10, limit=1023)


@pytest.mark.parametrize(
    ("edges", "complaint"),
    [
        ((-91.0, 0.0, 0.0, 0.0), "south of a box"),
        ((0.0, -181.0, 0.0, 0.0), "west of a box"),
        ((0.0, 0.0, math.nan, 0.0), "north of a box"),
        ((0.0, 0.0, 0.0, 180.1), "east of a box"),
        ((10.0, 0.0, 5.0, 0.0), "south of a box must not exceed its north, found 10 and 5"),
    ],
)
def test_a_box_off_the_globe_or_upside_down_is_refused(
    edges: tuple[float, float, float, float], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Box(*edges)


@given(st.lists(st.tuples(degrees(90.0), degrees(180.0)), min_size=1, max_size=5), boxes())
def test_a_relation_tells_the_truth_about_the_positions_in_a_box(
    positions: list[tuple[float, float]], query: Box
) -> None:
    latitude, longitude = np.array(positions).T
    found = relation(latitude.min(), longitude.min(), latitude.max(), longitude.max(), query)
    inside = [holds(query, *position) for position in positions]
    assert found != INSIDE or all(inside)
    assert found != DISJOINT or not any(inside)


@given(st.lists(boxes().filter(lambda box: box.west <= box.east), max_size=8), boxes())
def test_a_relation_is_as_sharp_as_the_edges_of_a_box_allow(stored: list[Box], query: Box) -> None:
    def expected(box: Box) -> int:
        corners = [(y, x) for y in (box.south, box.north) for x in (box.west, box.east)]
        gap = query.east < query.west and box.west <= query.east and box.east >= query.west  # spans what is left out
        if all(holds(query, *corner) for corner in corners) and not gap:
            return INSIDE
        # Two closed boxes meet where some pair of their edges does.
        meets = any(
            holds(query, y, x) and box.south <= y <= box.north and box.west <= x <= box.east
            for y in (box.south, box.north, query.south, query.north)
            for x in (box.west, box.east, query.west, query.east)
        )
        return CUT if meets else DISJOINT

    found = relation(
        [box.south for box in stored],
        [box.west for box in stored],
        [box.north for box in stored],
        [box.east for box in stored],
        query,
    )
    assert found.dtype == np.int8
    assert found.tolist() == [expected(box) for box in stored]


def test_an_empty_box_is_disjoint_from_everything() -> None:
    assert relation([math.nan], [math.nan], [math.nan], [math.nan], GLOBE).tolist() == [DISJOINT]


def test_covers_are_sorted_so_that_they_can_be_searched() -> None:
    cover = cover_box(Box(-30.0, 100.0, 40.0, -100.0), 14)
    for cells in (cover.inner, cover.border):
        assert all(one < next_one for one, next_one in pairwise(cells.tolist()))
