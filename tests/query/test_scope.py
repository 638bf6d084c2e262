"""Scopes against single positions: prefixes finer than the cells, half-open edges, and fractions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.grid import geohash
from synopsis.query.regions import Region
from synopsis.query.scope import Selection, select
from synopsis.query.scoping import Scope
from synopsis.query.shapes import NOWHERE, Box, Polygon
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands


def strands(positions: list[tuple[float, float]], instants_us: list[int] | None = None, bits: int = 10) -> Strands:
    latitude, longitude = np.array(positions).T
    times = np.array(instants_us if instants_us is not None else [0] * len(positions), np.int64)
    return Strands.of(Layout(("x",), bits, "1y"), latitude, longitude, times, np.zeros((1, times.size)))


def sizes(selection: Selection) -> tuple[int, int]:
    return selection.inside_size, selection.cut.size


def geohash_of(latitude: float, longitude: float, length: int) -> str:
    return str(geohash.to_text(geohash.encode(latitude, longitude, 5 * length), length))


def test_a_station_is_inside_its_own_prefix_of_any_length_and_outside_all_others() -> None:
    station = strands([(48.8584, 2.2945)] * 3)
    for length in range(1, 13):
        own = geohash_of(48.8584, 2.2945, length)
        assert sizes(select(Scope((own,)), station)) == (1, 0)
        for other in set(geohash.ALPHABET) - {own[-1]}:
            assert sizes(select(Scope((own[:-1] + other,)), station)) == (0, 0)


def test_positions_on_the_north_or_east_edge_belong_to_the_next_cell() -> None:
    south, west, north, east = (float(edge) for edge in geohash.decode(geohash.parse("u0m")[0], 15))
    within = strands([(south, west), (np.nextafter(north, -90), np.nextafter(east, -180))])
    assert sizes(select(Scope(("u0m",)), within)) == (1, 0)
    on_the_edge = strands([(south, west), (north, west)])
    assert sizes(select(Scope(("u0m",)), on_the_edge)) == (0, 1)
    beyond = strands([(north, west), (north, west)])
    assert sizes(select(Scope(("u0m",)), beyond)) == (0, 0)


def test_the_pole_and_the_dateline_belong_to_the_last_cells() -> None:
    corner = strands([(90.0, 180.0), (89.9, 179.9)])
    assert sizes(select(Scope(("zzz",)), corner)) == (1, 0)


@given(
    st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(1, 8)), min_size=1, max_size=4),
    st.integers(1, 40),
)
def test_no_row_in_scope_is_left_out_and_none_outside_is_taken_whole(
    positions: list[tuple[float, float]], chosen: list[tuple[int, int]], bits: int
) -> None:
    sketch = strands(positions, bits=bits)
    prefixes = tuple(geohash_of(*positions[which % len(positions)], length) for which, length in chosen)
    outermost = tuple(p for p in set(prefixes) if not any(p != q and p.startswith(q) for q in prefixes))
    selection = select(Scope(tuple(sorted(outermost))), sketch)
    inside, cut = set(np.arange(len(sketch))[selection.inside].tolist()), set(selection.cut.tolist())
    assert not inside & cut
    cell_of = geohash.encode(*np.array(positions).T, bits)
    for strand, cell in enumerate(sketch.cell.tolist()):
        own = [geohash_of(*place, 12) for place, home in zip(positions, cell_of.tolist(), strict=True) if home == cell]
        matches = [any(text.startswith(prefix) for prefix in prefixes) for text in own]
        if strand in inside:
            assert all(matches)
        elif strand not in cut:
            assert not any(matches)


TRIANGLE = Polygon("POLYGON ((-20 -20, 60 -10, 0 50, -20 -20))")
latitudes = st.one_of(st.sampled_from([-90.0, 0.0, 11.25, 45.0, 90.0]), st.floats(-90, 90))
longitudes = st.one_of(st.sampled_from([-180.0, 0.0, 11.25, 45.0, 180.0]), st.floats(-180, 180))
boxes = st.tuples(latitudes, longitudes, latitudes, longitudes).map(
    lambda sides: Box(min(sides[0], sides[2]), sides[1], max(sides[0], sides[2]), sides[3])
)


@given(
    st.lists(st.tuples(latitudes, longitudes), min_size=1, max_size=12),
    st.lists(st.one_of(boxes, st.just(TRIANGLE)), min_size=1, max_size=3),
    st.none() | st.tuples(st.integers(0, 11), st.integers(1, 4)),
    st.integers(1, 40),
)
def test_no_row_in_all_shapes_is_left_out_and_none_outside_one_is_taken_whole(
    positions: list[tuple[float, float]], shapes: list[Region], chosen: tuple[int, int] | None, bits: int
) -> None:
    sketch = strands(positions, bits=bits)
    prefix = None if chosen is None else geohash_of(*positions[chosen[0] % len(positions)], chosen[1])
    selection = select(Scope(None if prefix is None else (prefix,), shapes=tuple(shapes)), sketch)
    inside, cut = set(np.arange(len(sketch))[selection.inside].tolist()), selection.cut.tolist()
    assert not inside & set(cut)
    assert cut == sorted(cut)
    assert selection.fraction.size == len(cut)
    assert np.all((selection.fraction >= 0) & (selection.fraction <= 1))
    latitude, longitude = np.array(positions).T
    held = np.logical_and.reduce([shape.holds(latitude, longitude) for shape in shapes])
    if prefix is not None:
        held &= np.array([geohash_of(*position, 12).startswith(prefix) for position in positions])
    cell_of = geohash.encode(latitude, longitude, bits)
    for strand, cell in enumerate(sketch.cell.tolist()):
        matches = held[cell_of == cell]
        if strand in inside:
            assert matches.all()
        elif strand not in cut:
            assert not matches.any()
        elif prefix is None and np.unique(np.array(positions)[cell_of == cell], axis=0).shape[0] == 1:
            raise AssertionError("a station is never cut by a shape")


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=6), st.integers(-60, 60), st.integers(-60, 60))
def test_a_strand_is_inside_a_range_of_time_with_all_its_instants_and_out_with_none(
    instants_us: list[int], from_us: int, until_us: int
) -> None:
    sketch = strands([(1.0, 1.0)] * len(instants_us), [instant + 10_000 for instant in instants_us])
    inside, cut = sizes(select(Scope(None, from_us + 10_000, until_us + 10_000), sketch))
    within = [from_us <= instant < until_us for instant in instants_us]
    if inside:
        assert all(within)
    elif not cut:
        assert not any(within)
    elif until_us > from_us:
        assert not all(within)


def test_the_fraction_of_a_cut_strand_is_its_share_of_time_and_area() -> None:
    south, west, north, east = (float(edge) for edge in geohash.decode(geohash.parse("u0m")[0], 15))
    centre = (south + north) / 2, (west + east) / 2
    wide = strands([centre, (centre[0] + (north - south), centre[1])], [0, 1000])
    in_place = select(Scope(("u0m",)), wide)
    assert in_place.fraction == pytest.approx([0.5])
    in_time = select(Scope(None, 250, None), wide)
    assert in_time.fraction == pytest.approx([0.75])
    in_both = select(Scope(("u0m",), 250, 500), wide)
    assert in_both.fraction == pytest.approx([0.125])


def test_without_conditions_all_strands_are_one_slice_that_copies_nothing() -> None:
    assert select(Scope(), strands([(1.0, 1.0), (50.0, 50.0)])).inside == slice(0, 2)


def test_the_fraction_of_a_strand_cut_by_shapes_is_its_share_of_the_tight_box() -> None:
    wide = strands([(0.5, 0.5), (4.5, 8.5)], [0, 1000])
    half, quarter = Box(0.5, 0.5, 4.5, 4.5), Box(0.5, 0.5, 2.5, 4.5)
    assert select(Scope(shapes=(half,)), wide).fraction == pytest.approx([0.5])
    assert select(Scope(shapes=(half, quarter)), wide).fraction == pytest.approx([0.125])
    assert select(Scope(None, 250, 500, (half,)), wide).fraction == pytest.approx([0.125])
    below = Polygon("POLYGON ((0.5 0.5, 8.5 0.5, 8.5 4.5, 0.5 0.5))")
    assert select(Scope(shapes=(below,)), wide).fraction == pytest.approx([0.5], abs=0.1)


def test_shapes_that_hold_everything_leave_one_slice_and_those_that_hold_nothing_leave_none() -> None:
    sketch = strands([(1.0, 1.0), (50.0, 50.0)])
    assert select(Scope(shapes=(Box(),)), sketch).inside == slice(0, 2)
    assert sizes(select(Scope(shapes=(Box(), NOWHERE)), sketch)) == (0, 0)
    assert sizes(select(Scope(("zzz",), shapes=(Box(),)), sketch)) == (0, 0)


def test_a_sketch_without_strands_has_none_in_any_shape() -> None:
    nothing = Strands.of(Layout(("x",), 10, "1y"), *np.empty((2, 0)), np.empty(0, np.int64), np.empty((1, 0)))
    assert sizes(select(Scope(shapes=(Box(), TRIANGLE)), nothing)) == (0, 0)
