"""Moving objects: each row at a place of its own, in a sketch of cells whose paths know where in them they were."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import synopsis as syn
from synopsis.core.errors import NotKept

pytestmark = pytest.mark.spark

HOUR_US = 3_600_000_000
COUNT = 40_000
FEATURES = ("altitude", "speed")


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Forty vehicles that wander over Europe for ten days; one of them lost its altimeter."""
    random = np.random.default_rng(5)
    vehicle = random.integers(0, 40, COUNT)
    turn = np.sort(random.uniform(0.0, 240.0, COUNT))
    latitude = 45.0 + 8.0 * np.sin(turn / 30.0 + vehicle) + random.normal(0.0, 0.3, COUNT)
    longitude = 8.0 + 12.0 * np.cos(turn / 50.0 + 2.0 * vehicle) + random.normal(0.0, 0.3, COUNT)
    altitude = np.where(vehicle == 7, np.nan, 9_000.0 + 3_000.0 * np.sin(turn + vehicle) + random.normal(0, 200, COUNT))
    speed = np.round(180.0 + altitude / 100.0 + random.normal(0.0, 15.0, COUNT), 1)
    instants = (turn * HOUR_US).astype(np.int64) + 1_700_000_000_000_000
    return pa.table(
        {"lat": latitude, "lon": longitude, "ts": pa.array(instants, pa.timestamp("us", "UTC"))}
        | {"altitude": pa.array(altitude, from_pandas=True), "speed": pa.array(np.where(vehicle == 7, 200.0, speed))}
    )


@pytest.fixture(scope="module")
def database(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> syn.Database:
    place = tmp_path_factory.mktemp("moving") / "moving.syn"
    spec = syn.Spec("lat", "lon", "ts", FEATURES, memory=150_000)
    report = syn.build(rows, spec, place, progress=False)
    assert report.sketch_bytes <= spec.memory
    assert "cells" in report.grain
    return syn.open(place)


def truth_of(rows: pa.Table, condition: str) -> tuple[float, ...]:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("rows", rows)
    select = "count(*), avg(altitude), min(speed), max(speed), sum(altitude), quantile_cont(speed, 0.3)"
    return tuple(connection.execute(f"SELECT {select} FROM rows WHERE {condition}").fetchall()[0])


SCOPES = {
    "everywhere": ("true", "true"),
    "a geohash": ("location LIKE 'u0%'", "lat >= 45 AND lat < 50.625 AND lon >= 0 AND lon < 11.25"),
    "a box": ("BOX(42.5, 3.25, 47.75, 12.5)", "lat BETWEEN 42.5 AND 47.75 AND lon BETWEEN 3.25 AND 12.5"),
    "a range of latitude": ("lat >= 46.0", "lat >= 46.0"),
}
TIMES = {"always": "", "five days": " AND time >= '2023-11-16T05:30:00Z' AND time < '2023-11-21T01:15:00Z'"}
CONDITIONS = (
    "",
    " AND altitude > 9500",
    " AND (altitude BETWEEN 7000 AND 9000 OR altitude IS NULL) AND NOT speed < 220",
)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_certain_intervals_hold_and_estimates_are_near(
    database: syn.Database, rows: pa.Table, scope: str, time: str, condition: str
) -> None:
    asked, meant = SCOPES[scope]
    where = asked.replace("true", "lat >= -90") + TIMES[time] + condition
    known = truth_of(rows, meant + TIMES[time].replace("time", "ts") + condition)
    answer = database.query(
        "SELECT COUNT(*), MEAN(altitude), MIN(speed), MAX(speed), SUM(altitude), QUANTILE(speed, 0.3) WHERE " + where
    )
    for value, truth in zip(answer.rows[0].values(), known, strict=True):
        assert value.guarantee in ("exact", "certain")
        slack = 1e-9 * abs(truth)
        assert value.low - slack <= truth <= value.high + slack
        assert value.low <= value.estimate <= value.high
    count, mean = answer["COUNT(*)"].estimate, answer["MEAN(altitude)"].estimate
    assert count == pytest.approx(known[0], rel=0.1, abs=20)
    assert mean == pytest.approx(known[1], abs=300.0)


def test_polygons_take_the_paths_that_they_hold_of_cells_that_they_cut(database: syn.Database, rows: pa.Table) -> None:
    answer = database.query("SELECT COUNT(*), MAX(speed) WHERE WITHIN('POLYGON ((0 40, 20 40, 20 52, 0 40))')")
    shape = "lon < 20 AND lat > 40 AND (lat - 40) < lon * 12 / 20 AND lon > 0"
    truth = truth_of(rows, shape)
    assert answer["COUNT(*)"].low <= truth[0] <= answer["COUNT(*)"].high
    assert answer["MAX(speed)"].low <= truth[3] <= answer["MAX(speed)"].high
    assert answer["COUNT(*)"].estimate == pytest.approx(truth[0], rel=0.05)


def test_buckets_of_time_add_up_and_cells_too_fine_are_answered_by_coarser_ones(database: syn.Database) -> None:
    answer = database.query("SELECT COUNT(*) AS n WHERE altitude > 9000 GROUP BY BUCKET('1d')")
    whole = database.query("SELECT COUNT(*) AS n WHERE altitude > 9000")["n"].estimate
    assert sum(row["n"].estimate for row in answer.rows) == pytest.approx(whole, rel=0.05)
    coarser = database.query("SELECT CELL(9) AS c, COUNT(*) AS n GROUP BY CELL(9)")
    assert "CELL(9) is finer than what this sketch keeps" in coarser.notes[0]
    assert sum(row["n"].estimate for row in coarser) == COUNT
    with pytest.raises(NotKept, match="without strict"):
        database.query("SELECT COUNT(*) GROUP BY CELL(9)", strict=True)


def test_hours_of_moving_objects_add_up(database: syn.Database) -> None:
    answer = database.query("SELECT BUCKET('6h') AS b, COUNT(*) AS n, MAX(speed) AS m GROUP BY BUCKET('6h')")
    assert len(answer) == 4 * 11  # of the first and the last day nobody knows which hours were empty
    assert sum(row["n"].estimate for row in answer.rows) == pytest.approx(COUNT, rel=0.01)
    assert {row["n"].guarantee for row in answer.rows} == {"certain"}


def test_days_and_cells_without_a_condition_are_exact(database: syn.Database, rows: pa.Table) -> None:
    for span, unit in (("1d", "day"), ("1mo", "month")):
        answer = database.query(f"SELECT BUCKET('{span}') AS b, COUNT(*) AS n GROUP BY BUCKET('{span}')")
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", rows)
        known = connection.execute(f"SELECT date_trunc('{unit}', ts), count(*) FROM rows GROUP BY 1 ORDER BY 1")
        assert [(row["b"], row["n"].estimate) for row in answer.rows] == known.fetchall()
        assert {row["n"].guarantee for row in answer.rows} == {"exact"}
    cells = database.query("SELECT CELL(1) AS c, COUNT(*) AS n GROUP BY CELL(1)").rows
    assert sum(row["n"].estimate for row in cells) == COUNT
    assert {row["n"].guarantee for row in cells} == {"exact"}


def test_a_second_batch_beyond_the_first_is_counted(rows: pa.Table, tmp_path: Path) -> None:
    spec = syn.Spec("lat", "lon", "ts", FEATURES, memory=80_000)
    early = rows.slice(0, COUNT // 2)
    syn.build(early, spec, tmp_path / "m.syn", batch="early", progress=False)
    report = syn.build(rows.slice(COUNT // 2), spec, tmp_path / "m.syn", batch="late", progress=False)
    assert report.sketch_bytes <= spec.memory
    database = syn.open(tmp_path / "m.syn")
    known = truth_of(rows, "ts >= '2023-11-20T00:00:00Z' AND altitude < 8000")
    answer = database.query("SELECT COUNT(*), MIN(speed) WHERE time >= '2023-11-20T00:00:00Z' AND altitude < 8000")
    assert answer["COUNT(*)"].low <= known[0] <= answer["COUNT(*)"].high
    assert answer["MIN(speed)"].low <= known[2] <= answer["MIN(speed)"].high
    assert database.query("SELECT COUNT(*)")["COUNT(*)"].estimate == COUNT
