"""Entities in Spark builds: who was where and when, in spans that fit their share of the budget."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import synopsis as syn
from synopsis.core.errors import BadSpec
from synopsis.sketch.layout import Layout
from synopsis.sketch.members import SHARE, Opened, grains_from
from synopsis.spark import members, session
from synopsis.store.store import Store
from synopsis.testing.members import members_of

pytestmark = pytest.mark.spark

COUNT, DAY_US = 30_000, 86_400_000_000
SPEC = syn.Spec("lat", "lon", "ts", ("speed", "load"), entity="vehicle", memory="1500KB")


def drawn(seed: int, vehicles: range) -> pa.Table:
    """Vehicles that keep to a region of Europe each, for sixty days; some rows do not say whose they are."""
    random = np.random.default_rng(seed)
    vehicle = random.integers(vehicles.start, vehicles.stop, COUNT)
    home = np.random.default_rng(7).uniform((38.0, -9.0), (60.0, 28.0), (5_000, 2))[vehicle]
    names = [None if lost else f"truck {each}" for each, lost in zip(vehicle, random.random(COUNT) < 0.02, strict=True)]
    return pa.table(
        {
            "vehicle": pa.array(names, pa.string()),
            "lat": home[:, 0] + random.normal(0.0, 0.4, COUNT),
            "lon": home[:, 1] + random.normal(0.0, 0.4, COUNT),
            "ts": pa.array(random.integers(0, 60 * DAY_US, COUNT), pa.timestamp("us", "UTC")),
            "speed": random.gamma(4.0, 15.0, COUNT),
            "load": np.round(random.normal(12.0, 4.0, COUNT), 1),
        }
    )


FIRST, SECOND = drawn(1, range(700)), drawn(2, range(600, 2_600))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("members") / "fleet.syn"
    report = syn.build(FIRST, SPEC, place, batch="first", progress=False)
    assert report.sketch_bytes <= SPEC.memory
    return place


def counted(tables: list[pa.Table], condition: str = "true") -> int:
    rows = pa.concat_tables(tables)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", rows)
        found = connection.execute(f"SELECT count(DISTINCT vehicle) FROM rows WHERE {condition}").fetchall()
    return int(found[0][0])


EAST = "lat >= 45 AND lat < 90 AND lon >= 0 AND lon < 45"  #: geohash u


def test_entities_of_a_build_are_counted_and_found(place: Path) -> None:
    database = syn.open(place)
    answer = database.query(
        "SELECT CARDINALITY(vehicle) AS n, CARDINALITY(vehicle) FILTER (WHERE location LIKE 'u%') AS east, "
        "CONTAINS(vehicle = 'truck 17') AS one, CONTAINS('truck 4000') AS none, "
        "COMMON(vehicle, location LIKE 'u%', location LIKE 'g%') AS both"
    )
    assert answer["n"].estimate == counted([FIRST])
    assert answer["east"].estimate == counted([FIRST], EAST)
    assert (answer["one"].estimate, answer["none"].high) == (1, 0)
    west = "lat >= 45 AND lat < 90 AND lon >= -45 AND lon < 0"
    both = counted([FIRST], EAST) + counted([FIRST], west) - counted([FIRST], f"({EAST}) OR ({west})")
    assert answer["both"].estimate == both


def test_members_are_part_of_the_budget_and_of_what_is_told(place: Path) -> None:
    database = syn.open(place)
    members_bytes = database.info()["members"]["bytes"]
    assert 0 < members_bytes <= SPEC.memory * SHARE
    assert database.nbytes <= SPEC.memory
    told = database.info()["members"]
    assert told["entity"] == "vehicle"
    assert told["spans"] > 4
    assert 0 < told["false_positive_rate"] < 0.01
    assert "vehicle" in str(told)


def test_spark_makes_the_members_that_are_made_in_the_plain_way(place: Path) -> None:
    """Through another path than the build: the spans of rows in memory, and their sketches, by another program."""
    store = Store(place)
    found = store.members(store.require_state())
    named = FIRST.filter(pa.compute.is_valid(FIRST["vehicle"]))
    instants = named["ts"].cast(pa.int64()).to_numpy()
    plain = members_of(
        found.spans.layout, named["lat"].to_numpy(), named["lon"].to_numpy(), instants, named["vehicle"].to_pylist()
    )
    shared = np.flatnonzero(np.isin(found.spans.cell * 100_000 + found.spans.bucket,
                                    plain.spans.cell * 100_000 + plain.spans.bucket))  # fmt: skip
    assert shared.size == len(plain.spans)
    mine, theirs = Opened(found), Opened(plain)
    bits = min(found.marks.bits, plain.marks.bits)
    assert [each.tolist() for each in found.take(shared).marks.cut(bits).sets] == [
        each.tolist() for each in plain.marks.cut(bits).sets
    ]
    for at, other in enumerate(shared):
        assert mine.entities_in(np.array([other])) == theirs.entities_in(np.array([at]))


def test_a_second_batch_adds_its_entities_once(tmp_path: Path) -> None:
    place = tmp_path / "two.syn"
    for table, batch in ((FIRST, "first"), (SECOND, "second"), (FIRST, "first")):
        syn.build(table, SPEC, place, batch=batch, progress=False)
    database = syn.open(place)
    assert database.nbytes <= SPEC.memory
    for condition, where in (("true", "location LIKE '%'"), (EAST, "location LIKE 'u%'")):
        truth = counted([FIRST, SECOND], condition)
        value = database.query(f"SELECT CARDINALITY(vehicle) AS n WHERE {where}")["n"]
        assert value.low <= truth <= value.high
    for vehicle in (3, 650, 2_500):
        assert database.query(f"SELECT CONTAINS('truck {vehicle}') AS c")["c"].estimate == 1
    nameless = syn.Spec("lat", "lon", "ts", SPEC.features, memory=SPEC.memory)
    with pytest.raises(BadSpec, match="names no entity; give the column that says who observed, as entity='vehicle'"):
        syn.build(SECOND, nameless, place, batch="third", progress=False)


def test_a_promised_grain_has_members_too_and_they_give_way_to_it(tmp_path: Path) -> None:
    roomy = syn.Spec("lat", "lon", "ts", SPEC.features, entity="vehicle", memory="2MB", exact_at=(2, "1mo"))
    syn.build(FIRST, roomy, tmp_path / "roomy.syn", progress=False)
    database = syn.open(tmp_path / "roomy.syn")
    assert database.query("SELECT CARDINALITY(vehicle) AS n")["n"].estimate == counted([FIRST])
    assert database.query("SELECT COUNT(*) AS n")["n"].estimate == COUNT
    strands = database.strands.nbytes
    tight = syn.Spec("lat", "lon", "ts", SPEC.features, entity="vehicle", memory=strands + 10, exact_at=(2, "1mo"))
    syn.build(FIRST, tight, tmp_path / "tight.syn", progress=False)
    database = syn.open(tmp_path / "tight.syn")
    assert database.nbytes <= strands + 10
    assert database.relation.members is None


def test_a_saved_sketch_keeps_its_members(place: Path, tmp_path: Path) -> None:
    database = syn.open(place)
    database.save(tmp_path / "copy.syn")
    copy = syn.open(tmp_path / "copy.syn")
    text = "SELECT CARDINALITY(vehicle) AS n, CONTAINS('truck 17') AS c"
    assert [copy.query(text)[name] for name in "nc"] == [database.query(text)[name] for name in "nc"]


def test_other_programs_read_the_members_of_a_sketch(place: Path) -> None:
    """Spark's own functions read what the store holds."""
    spark = session.session()
    rows = spark.read.parquet(*(str(file) for file in (place / "members").glob("*.parquet")))
    estimate = rows.selectExpr("hll_sketch_estimate(hll_union_agg(counts)) AS n").first()["n"]
    assert estimate == pytest.approx(counted([FIRST]), rel=0.08)


def test_rows_without_any_entity_count_none(tmp_path: Path) -> None:
    nobody = FIRST.slice(0, 500).set_column(0, "vehicle", pa.nulls(500, pa.string()))
    syn.build(nobody, SPEC, tmp_path / "nobody.syn", progress=False)
    database = syn.open(tmp_path / "nobody.syn")
    assert database.query("SELECT CARDINALITY(vehicle) AS n")["n"].estimate == 0
    assert database.query("SELECT CONTAINS('truck 1') AS c")["c"].high == 0


def test_grains_tell_of_places_and_of_times() -> None:
    """Neither are all spans used up for cells, nor all for days."""
    counts = {
        each: {20: 400, 15: 200, 10: 60, 5: 4, 1: 2}[each.bits] * {"1d": 60, "1mo": 2, "1q": 1}.get(each.bucket, 1)
        for each in grains_from(Layout((), 20, "1d"))
    }
    assert members._grain(counts, 10_000_000).grain == "geohash 2 x 1d"
    assert members._grain(counts, 100_000).grain == "geohash 1 x 1d"
    assert members._grain(counts, 1).grain == "1-bit cell x 1000y"


def test_buckets_too_short_for_the_time_that_rows_span_are_not_tried() -> None:
    grains = grains_from(Layout((), 20, "1h"))
    month_us, century_us = 30 * DAY_US, 36_524 * DAY_US
    assert members._worthwhile(grains, 0, month_us) == grains
    assert {each.bucket for each in members._worthwhile(grains, 0, century_us)} == {"1mo", "1q", "1y", "1000y"}
    assert {each.bucket for each in members._worthwhile(grains, -(2**62), 2**62)} == {"1000y"}
