"""Answers as grids of xarray and as polygons of GeoJSON."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from synopsis.core.errors import BadQuery
from synopsis.grid import geohash
from synopsis.query.answer import Answer, BucketKeys, CellKeys
from synopsis.query.values import CERTAIN, EXACT, GUARANTEES, HEURISTIC, P95, Values

xarray = pytest.importorskip("xarray")

DAY_US = 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WORDS = {word: number for number, word in enumerate(GUARANTEES)}


def counts(*numbers: int) -> Values:
    """Counts that are exact."""
    return Values(*(np.array(numbers, np.int64) for _ in range(3)), np.full(len(numbers), EXACT, np.int8))


def means(size: int) -> Values:
    """Means 0.5, 1.5, ... that are certain, but for the second, which is a guess."""
    estimate = np.arange(size) + 0.5
    guess = np.arange(size) == 1
    low, high = (np.where(guess, math.nan, estimate + step) for step in (-1.0, 1.0))
    guarantee = np.where(guess, HEURISTIC, CERTAIN).astype(np.int8)
    return Values(estimate, low, high, guarantee, np.stack((estimate - 0.25, estimate + 0.25), axis=1))


def cells(*texts: str) -> CellKeys:
    return CellKeys(np.array(texts))


def days(*ordinals: int, timezone: str = "UTC") -> BucketKeys:
    return BucketKeys(np.array(ordinals, np.int64) * DAY_US, timezone)


@st.composite
def grouped(draw: st.DrawFn) -> Answer:
    """Any rows by cells of one length and by days, in any order."""
    length = draw(st.integers(1, 3))
    key = st.tuples(st.integers(0, 32**length - 1), st.integers(-400, 20_000))
    keys = draw(st.lists(key, max_size=12, unique=True))
    texts = geohash.to_text(np.array([cell for cell, _ in keys], np.int64), length)
    ordinals = [day for _, day in keys]
    zone = draw(st.sampled_from(["UTC", "America/Sao_Paulo", "Asia/Kathmandu"]))
    number = counts(*draw(st.lists(st.integers(0, 10**9), min_size=len(keys), max_size=len(keys))))
    return Answer({"c": CellKeys(texts), "t": days(*ordinals, timezone=zone), "n": number, "m": means(len(keys))})


def middle(cell: str) -> tuple[float, float]:
    south, west, north, east = (float(edge) for edge in geohash.decode(*geohash.parse(cell)))
    return (south + north) / 2, (west + east) / 2


def instant(when: datetime) -> np.datetime64:
    return np.datetime64((when - EPOCH) // timedelta(microseconds=1), "us")


# --- xarray -----------------------------------------------------------------------------------------------------------


def test_cells_become_a_grid_of_latitudes_and_longitudes_with_nothing_between_them() -> None:
    data = Answer({"CELL(1)": cells("s", "e", "u"), "n": counts(7, 8, 9)}).to_xarray()
    assert dict(data.sizes) == {"lat": 2, "lon": 2}
    assert data["lat"].values.tolist() == [22.5, 67.5]
    assert data["lon"].values.tolist() == [-22.5, 22.5]
    np.testing.assert_array_equal(data["n"].values, [[8.0, 7.0], [math.nan, 9.0]])
    assert float(data["n_low"].sel(lat=60, lon=20, method="nearest")) == 9.0
    assert data["lat"].attrs["units"] == "degrees_north"
    assert data["lon"].attrs["standard_name"] == "longitude"


def test_rows_between_the_outermost_cells_are_there_even_when_none_of_them_has_a_cell() -> None:
    data = Answer({"c": cells("s00", "s0z"), "n": counts(1, 2)}).to_xarray()
    steps = np.diff(data["lat"].values), np.diff(data["lon"].values)
    assert dict(data.sizes) == {"lat": 4, "lon": 8}
    assert all(np.ptp(step) == 0.0 for step in steps)
    assert int(data["n"].count()) == 2


def test_buckets_become_times_in_order_and_in_utc() -> None:
    starts = BucketKeys(np.array([1_740_798_000_000_000 + DAY_US, 1_740_798_000_000_000]), "America/Sao_Paulo")
    data = Answer({"t": starts, "n": counts(2, 1)}).to_xarray()
    assert data["n"].dims == ("time",)
    assert data["time"].values.tolist() == [datetime(2025, 3, 1, 3), datetime(2025, 3, 2, 3)]
    assert data["n"].values.tolist() == [1.0, 2.0]
    assert "America/Sao_Paulo" in data["time"].attrs["long_name"]


def test_every_statistic_has_its_interval_and_its_guarantee_beside_it() -> None:
    data = Answer({"t": days(0, 1, 2), "m": means(3)}).to_xarray()
    assert list(data.data_vars) == ["m", "m_low", "m_high", "m_guarantee", "m_p95_low", "m_p95_high"]
    np.testing.assert_array_equal(data["m_low"].values, [-0.5, math.nan, 1.5])
    np.testing.assert_array_equal(data["m_p95_high"].values, [0.75, 1.75, 2.75])
    assert data["m_guarantee"].values.tolist() == [CERTAIN, HEURISTIC, CERTAIN]
    assert data["m_guarantee"].dtype == np.int8
    meanings = data["m_guarantee"].attrs["flag_meanings"].split()
    assert dict(zip(meanings, data["m_guarantee"].attrs["flag_values"].tolist(), strict=True)) == WORDS


def test_points_without_a_row_have_no_guarantee() -> None:
    data = Answer({"c": cells("s", "e", "u"), "n": counts(7, 8, 9)}).to_xarray()
    assert data["n_guarantee"].values.tolist() == [[EXACT, EXACT], [-1, EXACT]]


@given(grouped())
def test_every_row_is_found_at_its_cell_and_time_and_nothing_else_is_there(answer: Answer) -> None:
    data = answer.to_xarray()
    assert data["n"].dims == ("time", "lat", "lon")
    assert int(data["n"].count()) == int(data["m"].count()) == len(answer)
    assert int((data["n_guarantee"] >= 0).sum()) == len(answer)
    for row in answer.rows:
        latitude, longitude = middle(row["c"])
        point = data.sel(time=instant(row["t"]), lat=latitude, lon=longitude)
        assert float(point["n"]) == row["n"].estimate
        assert (float(point["m"]), int(point["m_guarantee"])) == (row["m"].estimate, WORDS[row["m"].guarantee])
        low = float(point["m_low"])
        assert math.isnan(low) if row["m"].low is None else low == row["m"].low


def test_an_answer_without_rows_is_a_dataset_without_points() -> None:
    empty = Answer({"c": CellKeys(np.empty(0, "U3")), "t": days(), "n": counts()})
    assert dict(empty.to_xarray().sizes) == {"time": 0, "lat": 0, "lon": 0}


def test_a_dataset_needs_keys() -> None:
    with pytest.raises(BadQuery, match=r"needs a cell or a bucket in each row; ask as in SELECT CELL\(3\)"):
        Answer({"n": counts(1)}).to_xarray()


def test_a_dataset_needs_every_key_of_the_groups() -> None:
    with pytest.raises(BadQuery, match="select all keys that GROUP BY names"):
        Answer({"c": cells("6g", "6g"), "n": counts(1, 2)}).to_xarray()


def test_a_grid_that_would_be_mostly_empty_and_huge_is_refused() -> None:
    with pytest.raises(BadQuery, match=r"around the 2 rows .* has [\d,]+ points.*coarser CELL"):
        Answer({"c": cells("000000000000", "zzzzzzzzzzzz"), "n": counts(1, 2)}).to_xarray()


@pytest.mark.parametrize("names", [("n", "n_low"), ("lat",), ("n", "n_guarantee")])
def test_two_variables_of_one_name_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(BadQuery, match=f"would be called '{names[-1]}'; give the column another name with AS"):
        Answer({"c": cells("6g"), **{name: counts(1) for name in names}}).to_xarray()


def test_without_xarray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r"pip install 'synopsis\[xarray\]'"):
        Answer({"c": cells("6g"), "n": counts(1)}).to_xarray()


# --- GeoJSON ----------------------------------------------------------------------------------------------------------


def test_a_row_becomes_a_polygon_with_its_statistics() -> None:
    (feature,) = Answer({"CELL(3)": cells("ezs"), "n": counts(5), "m": means(1)}).to_geojson()["features"]
    assert feature == {
        "type": "Feature",
        "geometry": {
            "type": "Polygon",
            "coordinates": [
                [[-5.625, 42.1875], [-4.21875, 42.1875], [-4.21875, 43.59375], [-5.625, 43.59375], [-5.625, 42.1875]]
            ],
        },
        "properties": {
            "CELL(3)": "ezs",
            "n": 5,
            "n low": 5,
            "n high": 5,
            "n guarantee": "exact",
            "m": 0.5,
            "m low": -0.5,
            "m high": 1.5,
            "m guarantee": "certain",
            "m p95 low": 0.25,
            "m p95 high": 0.75,
        },
    }


@given(grouped())
def test_polygons_are_the_cells_counter_clockwise_and_closed_and_the_rest_is_json(answer: Answer) -> None:
    found = json.loads(json.dumps(answer.to_geojson(), allow_nan=False))
    assert found["type"] == "FeatureCollection"
    assert len(found["features"]) == len(answer)
    for feature, row in zip(found["features"], answer.rows, strict=True):
        (ring,) = feature["geometry"]["coordinates"]
        assert ring[0] == ring[-1]
        south, west, north, east = (float(edge) for edge in geohash.decode(*geohash.parse(row["c"])))
        polygon = shapely.Polygon(ring)
        assert polygon.exterior.is_ccw
        assert polygon.equals(shapely.box(west, south, east, north))
        told = feature["properties"]
        assert (told["c"], datetime.fromisoformat(told["t"])) == (row["c"], row["t"])
        assert told["t"] == row["t"].isoformat()
        value = row["m"]
        assert [told[f"m{part}"] for part in ("", " low", " high", " guarantee")] == [
            value.estimate,
            value.low,
            value.high,
            value.guarantee,
        ]


def test_bounds_without_end_are_null() -> None:
    open_ended = Values(np.array([1.0]), np.array([0.0]), np.array([math.inf]), np.array([P95], np.int8))
    (feature,) = Answer({"c": cells("6g"), "v": open_ended}).to_geojson()["features"]
    assert (feature["properties"]["v low"], feature["properties"]["v high"]) == (0.0, None)


def test_polygons_need_cells() -> None:
    with pytest.raises(BadQuery, match=r"needs a cell in each row; ask as in SELECT CELL\(3\)"):
        Answer({"t": days(0), "n": counts(1)}).to_geojson()


def test_an_answer_without_rows_is_a_collection_of_nothing() -> None:
    empty = Answer({"c": CellKeys(np.empty(0, "U3")), "n": counts()})
    assert empty.to_geojson() == {"type": "FeatureCollection", "features": []}
