"""Boxes, polygons and circles against single positions, as DuckDB, NumPy and Shapely see one geometry."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery
from synopsis.query.binding import bind
from synopsis.query.language import read
from synopsis.query.scoping import Scope
from synopsis.query.shapes import EARTH_KM, NOWHERE, Box, Circle, Polygon, Shape, checked, together
from synopsis.sketch.layout import Layout

LAYOUT = Layout(("temp_c",), bits=20, bucket="1mo")
Positions = list[tuple[float, float]]


def degrees(reach: float) -> st.SearchStrategy[float]:
    """Coordinates, often the very same ones, and on the edges of the map."""
    return st.one_of(st.sampled_from([-reach, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, reach]), st.floats(-reach, reach))


positions = st.tuples(degrees(90.0), degrees(180.0))
clusters = st.lists(st.lists(positions, min_size=1, max_size=4), min_size=1, max_size=6)
near = st.tuples(*[st.integers(-4, 4).map(lambda half: half / 2)] * 2)
near_clusters = st.lists(st.lists(near, min_size=1, max_size=4), min_size=1, max_size=6)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    south, north = sorted(draw(st.tuples(degrees(90.0), degrees(90.0))))
    west, east = draw(st.tuples(degrees(180.0), degrees(180.0)))
    return Box(south, west, north, east)


@st.composite
def polygons(draw: st.DrawFn) -> Polygon:
    """Polygons with corners on a small grid, so that positions fall on them and on their edges; some have a hole."""
    corners = st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=3, max_size=6, unique=True)
    geometry = shapely.Polygon(draw(corners))
    assume(geometry.is_valid and geometry.area > 0)
    if draw(st.booleans()):
        geometry = geometry.difference(shapely.Polygon(draw(corners)).buffer(0))
    if draw(st.booleans()):
        geometry = geometry.union(shapely.box(3, 3, 4, 4))
    assume(geometry.geom_type in ("Polygon", "MultiPolygon") and not geometry.is_empty)
    return Polygon(checked(shapely.to_wkt(geometry, rounding_precision=-1)))


def sides(groups: list[Positions]) -> tuple[NDArray[np.float64], ...]:
    """The tight boxes of some positions each: south, west, north, east."""
    low, high = [np.min(group, axis=0) for group in groups], [np.max(group, axis=0) for group in groups]
    return (*np.array(low).T, *np.array(high).T)


def held(shape: Shape, places: Positions) -> list[bool]:
    """What the shape says of these positions."""
    latitude, longitude = np.array(places).reshape(-1, 2).T
    return list(shape.holds(latitude, longitude).tolist())


def examined(shape: Shape, groups: list[Positions]) -> None:
    """What `covers` and `share` say of tight boxes agrees with what `holds` says of the positions in them."""
    tight = sides(groups)
    inside, touched = shape.covers(*tight)
    share = shape.share(*tight)
    assert inside.dtype == touched.dtype == np.bool_
    assert not np.any(inside & ~touched)
    assert np.all((share >= 0.0) & (share <= 1.0))
    for at, (south, west, north, east) in enumerate(zip(*tight, strict=True)):
        grid = [(lat, lon) for lat in np.linspace(south, north, 5) for lon in np.linspace(west, east, 5)]
        within = held(shape, [*groups[at], *((float(lat), float(lon)) for lat, lon in grid)])
        if inside[at]:
            assert all(within)
            assert share[at] == pytest.approx(1.0)
        if not touched[at]:
            assert not any(within)
        if (south, west) == (north, east):
            assert inside[at] == touched[at] == within[0]


# --- boxes ------------------------------------------------------------------------------------------------------------


@given(boxes(), st.lists(positions, min_size=1))
def test_a_box_holds_the_positions_between_its_sides_and_on_them(box: Box, places: Positions) -> None:
    def between(longitude: float) -> bool:
        if box.west > box.east:
            return longitude >= box.west or longitude <= box.east
        return box.west <= longitude <= box.east

    assert held(box, places) == [box.south <= lat <= box.north and between(lon) for lat, lon in places]


@given(boxes(), clusters)
def test_a_box_covers_tight_boxes_as_it_holds_their_positions(box: Box, groups: list[Positions]) -> None:
    examined(box, groups)


def test_nothing_holds_no_position_and_meets_no_box() -> None:
    examined(NOWHERE, [[(0.0, 0.0)], [(-90.0, -180.0), (90.0, 180.0)]])
    assert not any(held(NOWHERE, [(0.0, 0.0), (90.0, 180.0)]))
    assert not NOWHERE.covers(*sides([[(-90.0, -180.0), (90.0, 180.0)]]))[1].any()


def test_the_share_of_a_box_is_that_of_its_area_on_both_sides_of_the_dateline() -> None:
    tight = sides([[(0.0, 0.0), (10.0, 10.0)], [(0.0, -180.0), (10.0, 180.0)]])
    assert Box(5.0, 5.0, 20.0, 20.0).share(*tight) == pytest.approx([0.25, 5 * 15 / 3600])
    assert Box(0.0, 170.0, 10.0, -170.0).share(*tight) == pytest.approx([0.0, 20 / 360])


def test_a_box_without_edges_meets_nothing() -> None:
    missing = (np.array([np.nan]),) * 4
    assert [part.tolist() for part in Box().covers(*missing)] == [[False], [False]]


FORMS = ("{} < {}", "{} <= {}", "{} = {}", "{} >= {}", "{} > {}", "{1} < {0}", "{1} >= {0}", "{} BETWEEN -1 AND {}")
NUMBERS = ("-180", "180", "-90", "90", "0", "0.5", "-1e0", "250", "-9.1e1", "5e-324")


def test_ranges_of_coordinates_and_boxes_select_the_rows_that_duckdb_selects() -> None:
    words = {"lat": "lat", "LATITUDE": "lat", "lon": "lon", "longitude": "lon"}
    comparisons = st.tuples(st.sampled_from(FORMS), st.sampled_from(sorted(words)), st.sampled_from(NUMBERS))
    with duckdb.connect() as connection:

        @given(st.lists(comparisons, min_size=1, max_size=4), boxes(), st.lists(positions, min_size=1, max_size=20))
        @settings(deadline=None)
        def agree(asked: list[tuple[str, str, str]], box: Box, places: Positions) -> None:
            south, west, north, east = (f"{side!r}" for side in (box.south, box.west, box.north, box.east))
            ours = [form.format(name, value) for form, name, value in asked]
            ours.append(f"BOX({south}, {west}, {north}, {east})")
            theirs = [form.format(words[name], value) for form, name, value in asked]
            theirs.append(f"lat BETWEEN '{south}'::DOUBLE AND '{north}'::DOUBLE")
            joined = "OR" if box.west > box.east else "AND"
            theirs.append(f"(lon >= '{west}'::DOUBLE {joined} lon <= '{east}'::DOUBLE)")
            scope = bind(read(f"SELECT COUNT(*) WHERE {' AND '.join(ours)}"), LAYOUT).parts[0].scope
            latitude, longitude = np.array(places).T
            within = np.logical_and.reduce([shape.holds(latitude, longitude) for shape in scope.shapes])
            table = pa.table({"row": np.arange(len(places)), "lat": latitude, "lon": longitude})
            connection.register("places", table)
            found = connection.execute(f"SELECT row FROM places WHERE {' AND '.join(theirs)} ORDER BY row").fetchall()
            assert np.flatnonzero(within).tolist() == [row for (row,) in found]

        agree()


def test_ranges_become_one_box_and_boxes_over_the_dateline_stay() -> None:
    where = "lat > 1 AND lon <= 5 AND BOX(-10, -10, 10, 10) AND BOX(-20, 170, 20, -5) AND BOX(-20, 170, 20, -5)"
    assert bind(read(f"SELECT COUNT(*) WHERE {where}"), LAYOUT).parts[0].scope == Scope(
        shapes=(Box(float(np.nextafter(1.0, 2.0)), -10.0, 10.0, 5.0), Box(-20.0, 170.0, 20.0, -5.0))
    )


def test_an_empty_range_of_longitude_does_not_run_over_the_dateline() -> None:
    for where in ("lon > 10 AND lon < 5", "lon > 200", "lon < -200", "lon BETWEEN 10 AND 5", "lon > 180"):
        assert bind(read(f"SELECT COUNT(*) WHERE {where}"), LAYOUT).parts[0].scope.shapes == (NOWHERE,)


def test_a_feature_called_lat_is_a_feature() -> None:
    plan = bind(read("SELECT COUNT(*) WHERE lat > 1 AND lon < 2"), Layout(("Lat",), bits=20, bucket="1mo"))
    assert plan.parts[0].scope.shapes == (Box(east=float(np.nextafter(2.0, 1.0))),)
    assert len(plan.parts[0].condition.conditions) == 1  # type: ignore[union-attr]


# --- polygons ---------------------------------------------------------------------------------------------------------


@given(polygons(), st.lists(near, min_size=1))
def test_a_polygon_holds_the_positions_that_shapely_finds_in_it_one_by_one(polygon: Polygon, places: Positions) -> None:
    geometry = shapely.from_wkt(polygon.text)
    assert held(polygon, places) == [geometry.contains(shapely.Point(lon, lat)) for lat, lon in places]


@given(polygons(), near_clusters)
def test_a_polygon_covers_tight_boxes_as_it_holds_their_positions(polygon: Polygon, groups: list[Positions]) -> None:
    examined(polygon, groups)


@given(polygons(), near_clusters)
def test_a_polygon_cuts_no_more_boxes_than_it_must(polygon: Polygon, groups: list[Positions]) -> None:
    geometry = shapely.from_wkt(polygon.text)
    tight = sides(groups)
    inside, touched = polygon.covers(*tight)
    for at, (south, west, north, east) in enumerate(zip(*tight, strict=True)):
        if south < north and west < east:
            box = shapely.box(west, south, east, north)
            assert inside[at] == geometry.contains_properly(box)
            assert touched[at] == geometry.intersects(box)


def test_the_boundary_of_a_polygon_is_outside_and_so_are_its_holes() -> None:
    ring = Polygon("POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (3 3, 6 3, 6 6, 3 6, 3 3))")
    assert held(ring, [(0.0, 4.0), (9.0, 9.0), (4.0, 4.0), (3.0, 4.0), (1.0, 1.0)]) == [False] * 4 + [True]
    inside, touched = ring.covers(*sides([[(1, 1), (2, 8)], [(1, 1), (8, 8)], [(4, 4), (5, 5)], [(1, 1), (1, 8)]]))
    assert inside.tolist() == [True, False, False, True]
    assert touched.tolist() == [True, True, False, True]


def test_the_share_of_a_polygon_is_about_that_of_the_area() -> None:
    triangle = Polygon("POLYGON ((0 0, 8 0, 0 8, 0 0))")
    assert triangle.share(*sides([[(0, 0), (8, 8)], [(0, 0), (1, 1)], [(7, 7), (8, 8)]])) == pytest.approx(
        [0.5, 1.0, 0.0], abs=0.1
    )


def test_shapes_are_values_that_travel() -> None:
    for shape in (Box(1.0, 2.0, 3.0, 4.0), Polygon("POLYGON ((0 0, 8 0, 0 8, 0 0))")):
        assert pickle.loads(pickle.dumps(shape)) == shape
        assert len({shape, pickle.loads(pickle.dumps(shape))}) == 1
        assert together([shape, shape]) == (shape,)


def test_shapely_is_not_loaded_until_a_polygon_is_asked_for() -> None:
    program = (
        "import sys; from synopsis.query.language import read; read('SELECT COUNT(*) WHERE BOX(1, 2, 3, 4)'); "
        "assert 'shapely' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- circles ----------------------------------------------------------------------------------------------------------


def kilometres(lat: float, lon: float, lats: NDArray[np.float64], lons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Great-circle distances by the angle between vectors."""

    def vectors(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.float64]:
        phi, along = np.radians(latitude), np.radians(longitude)
        return np.stack((np.cos(phi) * np.cos(along), np.cos(phi) * np.sin(along), np.sin(phi)), axis=-1)

    one, others = vectors(np.array([lat]), np.array([lon])), vectors(lats, lons)
    cross = np.linalg.norm(np.cross(one, others), axis=-1)
    return np.asarray(np.arctan2(cross, (one * others).sum(axis=-1)) * EARTH_KM)


circles = st.builds(
    Circle, degrees(90.0), degrees(180.0), st.one_of(st.sampled_from([0.0, 5.0, 800.0, 10_007.5, 25_000.0]))
)


@given(circle=circles, where=st.lists(positions, min_size=1, max_size=20))
def test_a_circle_holds_what_is_near(circle: Circle, where: Positions) -> None:
    lat, lon = np.array(where).T
    away = kilometres(circle.lat, circle.lon, lat, lon)
    held = circle.holds(lat, lon)
    sure = np.abs(away - circle.km) > 1e-5
    assert np.array_equal(held[sure], (away <= circle.km)[sure])


@given(circle=circles, groups=clusters, seed=st.integers(0, 99))
@settings(max_examples=400)
def test_circles_cover_boxes_surely(circle: Circle, groups: list[Positions], seed: int) -> None:
    """Positions all over the boxes, their corners and edges among them, over dateline and poles."""
    south, west, north, east = sides(groups)
    inside, touched = circle.covers(south, west, north, east)
    random = np.random.default_rng(seed)
    up, along = random.random((2, 200, 1))
    up[:40], along[20:60] = np.round(up[:40]), np.round(along[20:60])
    lat, lon = south + up * (north - south), west + along * (east - west)
    held = circle.holds(lat, lon)
    assert held[:, inside].all()
    assert not held[:, ~touched].any()
    assert (touched | ~inside).all()


@pytest.mark.parametrize(
    ("circle", "box", "expected"),
    [
        (Circle(89.9, 0.0, 50.0), (89.8, -180.0, 90.0, 180.0), (True, True)),  # the pole lies in it
        (Circle(89.0, 0.0, 500.0), (85.0, 170.0, 86.0, 175.0), (False, False)),
        (Circle(89.0, 0.0, 700.0), (85.0, 170.0, 86.0, 175.0), (True, True)),  # beyond the pole
        (Circle(0.0, 179.5, 120.0), (-0.1, -180.0, 0.1, -179.6), (True, True)),  # beyond the dateline
        (Circle(0.0, 0.0, 20_016.0), (-90.0, -180.0, 90.0, 180.0), (True, True)),
        (Circle(50.0, 8.0, 100.0), (49.0, 5.0, 51.0, 11.0), (False, True)),  # the box holds the circle
    ],
)
def test_circles_know_dateline_and_poles(circle: Circle, box: tuple[float, ...], expected: tuple[bool, bool]) -> None:
    found = circle.covers(*(np.array([side]) for side in box))
    assert tuple(bool(each[0]) for each in found) == expected


def test_a_question_names_a_circle() -> None:
    asked = bind(read("SELECT COUNT(*) WHERE NEAR(48.86, -2.35, 50) AND temp_c > 3"), LAYOUT)
    assert asked.parts[0].scope == Scope(shapes=(Circle(48.86, -2.35, 50.0),))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NEAR(1, 2)", "NEAR takes latitude"),
        ("NEAR(91, 2, 3)", "-90..90"),
        ("NEAR(1, 200, 3)", "-180..180"),
        ("NEAR(1, 2, -3)", "not negative"),
        ("NEAR(lat, 2, 3)", "NEAR takes latitude"),
        ("NEAR(1, 2, 1e999)", "not negative"),
    ],
)
def test_a_circle_that_cannot_be_is_refused_where_it_stands(text: str, why: str) -> None:
    with pytest.raises(BadQuery, match=re.escape(why)) as refused:
        read(f"SELECT COUNT(*) WHERE {text}")
    assert (refused.value.line, refused.value.column) == (1, 23)
