"""Whatever the source, its order and its batches: the sketch is that of the rows, each of them counted once."""

from __future__ import annotations

import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import synopsis as syn
from synopsis import demo
from synopsis.core.errors import BudgetTooSmall
from synopsis.core.spec import MOST_FEATURES, Spec
from synopsis.grid.zones import Zone
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Moments
from synopsis.sketch.strands import Strands
from synopsis.spark import aggregate
from synopsis.spark import session as sessions
from synopsis.store.store import Store
from synopsis.testing.rows import Rows
from synopsis.testing.strategies import close

pytestmark = pytest.mark.usefixtures("spark")

ROWS = Rows.of_stations(400)
SPEC = Spec("lat", "lon", "ts", ROWS.features, exact_at=(4, "1mo"), memory="1MB")
LAYOUT = Layout(ROWS.features, 20, "1mo")


def build(source, to, spec=SPEC, **options):
    return syn.build(source, spec, to, progress=False, **options)


def strands_at(place) -> Strands:
    return syn.open(place).strands


def test_every_kind_of_source_gives_the_strands_of_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    for part in range(3):
        pq.write_table(ROWS.table().slice(part * 150, 150), folder / f"{part}.parquet")
    expected = ROWS.strands(LAYOUT)
    sources = {"files": folder, "pandas": ROWS.table().to_pandas(), "spark": spark.createDataFrame(ROWS.table())}
    for name, source in sources.items():
        report = build(source, tmp_path / name)
        found = strands_at(tmp_path / name)
        assert close(found, expected), name
        assert (report.rows, report.rejected, report.missing) == (len(ROWS), 0, {})
        assert (report.leaves, report.sketch_bytes) == (len(expected), found.nbytes)
        assert report.grain == "geohash 4 x 1mo"
    assert int(syn.open(tmp_path / "files").query("SELECT COUNT(*)")["COUNT(*)"].estimate) == len(ROWS)


def test_days_and_times_are_those_of_the_zone(tmp_path: Path) -> None:
    """Naive times around every change of clock in one year, on an island whose clocks change by half an hour."""
    zone = Zone.named("Australia/Lord_Howe")
    wall = np.arange(np.datetime64("2024-01-01", "us"), np.datetime64("2025-01-01", "us"), np.timedelta64(47, "m"))
    instants = zone.to_utc(wall.astype(np.int64))
    count = wall.size
    table = pa.table(
        {"lat": np.full(count, -31.5), "lon": np.full(count, 159.1), "ts": wall, "x": np.arange(float(count))}
    )
    spec = Spec("lat", "lon", "ts", ["x"], exact_at=(4, "1d"), timezone="Australia/Lord_Howe")
    build(table, tmp_path / "w.syn", spec)
    layout = Layout(("x",), 20, "1d", "Australia/Lord_Howe")
    place = np.full(count, -31.5), np.full(count, 159.1)
    expected = Strands.of(layout, *place, instants, np.arange(float(count))[None, :])
    assert len(expected) == 366
    assert close(strands_at(tmp_path / "w.syn"), expected)


def exact_spreads(values: list[float], others: list[float]) -> tuple[Fraction, Fraction, Fraction]:
    """Sums of squared distances of both, and of their products, in exact arithmetic."""
    one, two = [Fraction(value) for value in values], [Fraction(value) for value in others]
    left, right = ([each - sum(side) / len(side) for each in side] for side in (one, two))
    return (
        sum((x * x for x in left), Fraction()),
        sum((y * y for y in right), Fraction()),
        sum((x * y for x, y in zip(left, right, strict=True)), Fraction()),
    )


def test_no_digits_are_lost_however_far_the_numbers_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against exact arithmetic: kelvin, pascal, offsets that differ by station, heavy tails, constants."""
    again: list[int] = []
    real = aggregate._again
    monkeypatch.setattr(aggregate, "_again", lambda *a: (again.append(len(a[2])), real(*a))[1])
    random = np.random.default_rng(6)
    count = 480
    station = np.arange(count) % 6
    noise = random.normal(size=(4, count))
    columns = {
        "kelvin": 290.0 + 5.0 * noise[0],
        "pascal": 101_325.0 + 200.0 * noise[1] + noise[0],
        "offset": 1e6 * (1 + station) + 1e-3 * noise[2],
        "negative": -1e9 - 100.0 * station + 1e-2 * noise[2] + 1e-2 * noise[3],
        "tail": np.where(random.random(count) < 0.9, 0.0, 1e8 * noise[3]),
        "constant": 1 / 3 + station,
    }
    table = pa.table(
        {"lat": 10.0 * station, "lon": np.zeros(count), "ts": pa.array([0] * count, pa.timestamp("us", "UTC"))}
        | columns
    )
    build(table, tmp_path / "w.syn", Spec("lat", "lon", "ts", list(columns), exact_at=(4, "1mo")))
    assert again == [6]  # every strand lies far from the pivot in some feature
    found = strands_at(tmp_path / "w.syn")
    assert found.rows.tolist() == [80] * 6
    names = list(columns)
    for position in range(6):
        mine = 10.0 * station == found.cells.south[position]
        values = {name: column[mine].tolist() for name, column in columns.items()}
        for feature, name in enumerate(names):
            spread = exact_spreads(values[name], values[name])[0]
            mean = sum(map(Fraction, values[name])) / 80
            assert abs(Fraction(float(found.moments.spread[feature, position])) - spread) <= spread * Fraction(1e-9), (
                name
            )
            assert abs(Fraction(float(found.moments.mean[feature, position])) - mean) <= abs(mean) * Fraction(1e-12), (
                name
            )
        for pair, (one, two) in enumerate(found.layout.pairs):
            left, right, cross = exact_spreads(values[names[one]], values[names[two]])
            slack = 1e-9 * float(left) ** 0.5 * float(right) ** 0.5
            assert abs(float(found.comoments.cross[pair, position]) - float(cross)) <= slack, (names[one], names[two])


def test_any_split_into_batches_in_any_order_is_one_build(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    part = random.integers(0, 3, len(ROWS))
    place = tmp_path / "w.syn"
    for batch in random.permutation(3):
        report = build(ROWS.take(part == batch).table(), place, batch=f"batch {batch}")
        assert report.rows == int((part == batch).sum())
    assert close(strands_at(place), ROWS.strands(LAYOUT))
    assert {batch.id: batch.rows for batch in Store(place).batches()} == {
        f"batch {batch}": int((part == batch).sum()) for batch in range(3)
    }


def test_the_same_batch_twice_changes_nothing(tmp_path: Path) -> None:
    """By its name, or without one by what is known of its files and of a table's content."""
    file, place = tmp_path / "rows.parquet", tmp_path / "w.syn"
    half = ROWS.take(np.arange(200))
    pq.write_table(half.table(), file)
    assert not build(file, place).repeated
    version = Store(place).require_state().version
    before = sorted(path.name for path in place.rglob("*"))
    for source, batch in ((file, None), (str(file), None), ([file, file], None)):
        report = build(source, place, batch=batch)
        assert (report.repeated, report.rows, report.leaves) == (True, 0, len(half.strands(LAYOUT)))
        assert "is in the sketch already; nothing was changed" in str(report)
    assert Store(place).require_state().version == version
    assert sorted(path.name for path in place.rglob("*")) == before
    assert close(strands_at(place), half.strands(LAYOUT))
    pq.write_table(ROWS.take(np.arange(200, 400)).table(), file)  # the same name, another content
    assert build(file, place).rows == 200
    assert close(strands_at(place), ROWS.strands(LAYOUT))
    table = ROWS.table().slice(0, 10)
    assert [build(table, place).repeated for _ in range(2)] == [False, True]
    assert [build(ROWS.table(), place, batch="named").repeated for _ in range(2)] == [False, True]
    assert int(strands_at(place).rows.sum()) == 400 + 10 + 400


def test_a_promise_that_does_not_fit_names_the_bytes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither at a new place nor in a sketch, whose rejects stay readable too."""
    needed = ROWS.strands(LAYOUT).nbytes
    rows = ROWS.table().to_pandas()
    rows.loc[:2, "lat"] = np.nan
    small = replace_memory(SPEC, needed // 2)
    with pytest.raises(
        BudgetTooSmall, match=rf"exact_at=\(4, '1mo'\) takes [\d,]+ bytes and memory is {needed // 2:,}"
    ):
        build(rows, tmp_path / "new.syn", small)
    assert not (tmp_path / "new.syn").exists()
    place = tmp_path / "old.syn"
    build(rows[:100], place, small)
    state, files = Store(place).require_state(), sorted(place.rglob("*"))
    with pytest.raises(BudgetTooSmall) as told:
        build(rows[100:].assign(lat=rows.lat[100:].where(rows.index[100:] > 105)), place, small)
    assert sorted(place.rglob("*")) == files
    assert Store(place).require_state() == state
    assert told.value.needed_bytes > needed // 2
    build(rows[100:], place, replace_memory(SPEC, needed))
    assert close(strands_at(place), ROWS.take(rows.lat.notna().to_numpy()).strands(LAYOUT))
    assert syn.open(place).rejects().num_rows == 3


#: Each row at a place of its own: too many for paths in a few thousand bytes.
MOVING = replace(ROWS, latitude=ROWS.latitude * (1.0 - 1e-9 * np.arange(len(ROWS))))


def replace_memory(spec: Spec, memory: int) -> Spec:
    return Spec.from_dict(spec.to_dict() | {"memory": memory})


def test_the_planner_picks_a_grain_that_fits_and_later_batches_coarsen_it(tmp_path: Path) -> None:
    """Where there is no room for paths; by nesting: every statistic of coarser strands is still that of the rows."""
    place = tmp_path / "w.syn"
    spec = Spec("lat", "lon", "ts", ROWS.features, precision=6, bucket="6h", memory=4_000)
    grains, rows = [], 0
    for part in (slice(0, 60), slice(60, 150), slice(150, 400)):
        report = build(MOVING.table().slice(part.start, part.stop - part.start), place, spec)
        grains.append(report.grain)
        assert report.sketch_bytes <= spec.memory
        found, rows = strands_at(place), part.stop
        assert close(found, MOVING.take(np.arange(rows)).strands(found.layout))
    assert len(set(grains)) > 1
    first, last = (Layout(ROWS.features, int(grain[8]) * 5, grain.split(" x ")[1]) for grain in (grains[0], grains[-1]))
    assert first.nests_in(last)
    with pytest.raises(BudgetTooSmall, match=r"the coarsest layout \(geohash \d x 1y\) takes [\d,]+ bytes"):
        build(MOVING.table(), tmp_path / "tiny.syn", replace_memory(spec, 100))
    assert not (tmp_path / "tiny.syn").exists()


@pytest.mark.parametrize("count", [1, pytest.param(MOST_FEATURES, marks=pytest.mark.slow)])
def test_one_feature_has_no_pairs_and_sixty_three_have_them_all(tmp_path: Path, count: int) -> None:
    rows = Rows.of_stations(60, tuple(f"f{number}" for number in range(count)))
    build(rows.table(), tmp_path / "w.syn", Spec("lat", "lon", "ts", rows.features, exact_at=(1, "1y")))
    assert close(strands_at(tmp_path / "w.syn"), rows.strands(Layout(rows.features, 5, "1y")))


def test_a_year_of_real_flights(tmp_path: Path) -> None:
    rows = demo.flights()
    features = ("dep_delay", "arr_delay", "air_time", "distance")
    spec = Spec("lat", "lon", "time", features, precision=3, exact_at=(3, "1mo"), memory="2MB")
    report = build(rows, tmp_path / "flights.syn", spec)
    known = rows[rows.lat.notna()]
    assert (report.rows, report.rejected) == (len(known), 7_602)
    assert report.reasons == {"no place": 7_602}
    instants = known.time.to_numpy("datetime64[us]").astype(np.int64)
    layout = Layout(features, 15, "1mo")
    values = known[list(features)].to_numpy(np.float64).T
    expected = Strands.of(layout, known.lat.to_numpy(), known.lon.to_numpy(), instants, values)
    assert close(strands_at(tmp_path / "flights.syn"), expected)
    rejects = syn.open(tmp_path / "flights.syn").rejects()
    assert rejects.num_rows == 7_602
    assert set(rejects["reason"].to_pylist()) == {"no place"}
    assert '"dest":"BQN"' in rejects["row"][0].as_py() or '"dest":' in rejects["row"][0].as_py()


@pytest.mark.slow
def test_air_quality_in_wide_and_in_long_form(shared_data: Path, tmp_path: Path) -> None:
    """Mostly missing, forty years, and in long form several instruments at one place and day."""
    wide = pd.read_parquet(shared_data / "us_air_daily_wide.parquet")
    features = ("co_conc", "o3_conc", "pm25_conc", "so2_conc")
    spec = Spec("lat", "lon", "date", features, exact_at=(3, "1y"), entity="aqs_site_id")
    build(shared_data / "us_air_daily_wide.parquet", tmp_path / "wide.syn", spec)
    assert close(strands_at(tmp_path / "wide.syn"), _strands(wide, features))
    long = pd.read_parquet(shared_data / "us_air_daily_long.parquet")
    names = ("Carbon monoxide", "Ozone", "PM2.5 - Local Conditions", "Lead (TSP) LC")
    spec = Spec(
        "lat",
        "lon",
        "date",
        names,
        exact_at=(3, "1y"),
        name_column="aqs_parameter_desc",
        value_column="conc",
        entity="aqs_site_id",
    )
    build(shared_data / "us_air_daily_long.parquet", tmp_path / "long.syn", spec)
    keys = ["aqs_site_id", "lat", "lon", "date"]
    mine = long[long.aqs_parameter_desc.isin(names)].sort_values("conc")
    turn = mine.groupby([*keys, "aqs_parameter_desc"]).cumcount().rename("turn")
    assert turn.max() > 0
    pivoted = mine.assign(turn=turn).pivot(index=[*keys, "turn"], columns="aqs_parameter_desc", values="conc")
    found = strands_at(tmp_path / "long.syn")
    assert close(found, _strands(pivoted.reset_index(), names))
    assert int(found.moments.count.sum()) == len(mine)


def _strands(rows: pd.DataFrame, features: tuple[str, ...]) -> Strands:
    instants = rows.date.to_numpy("datetime64[us]").astype(np.int64)
    values = rows[list(features)].to_numpy(np.float64).T
    return Strands.of(Layout(features, 15, "1y"), rows.lat.to_numpy(), rows.lon.to_numpy(), instants, values)


def test_a_build_leaves_no_trace_in_the_session_or_on_the_machine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings, threads, temporary files; and a frame's own session lives on."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    theirs.conf.set("spark.sql.caseSensitive", "false")
    before = {row.key: row.value for row in theirs.sql("SET").collect()}
    threads = set(threading.enumerate())
    pq.write_table(ROWS.table(), tmp_path / "rows.parquet")
    build(
        theirs.read.parquet(str(tmp_path / "rows.parquet")),
        tmp_path / "frame.syn",
        conf={"spark.sql.shuffle.partitions": "3"},
    )
    assert {row.key: row.value for row in theirs.sql("SET").collect()} == before
    assert theirs.range(3).count() == 3
    assert close(strands_at(tmp_path / "frame.syn"), ROWS.strands(LAYOUT))
    settings = {row.key: row.value for row in spark.sql("SET").collect()}
    build(ROWS.table(), tmp_path / "table.syn", conf={"spark.sql.shuffle.partitions": "3"})
    assert {row.key: row.value for row in spark.sql("SET").collect()} == settings
    assert sessions.running() is spark
    assert set(threading.enumerate()) <= threads
    assert list((tmp_path / "temporary").iterdir()) == []
    names = [path.name for path in (tmp_path / "table.syn").rglob("*.parquet")]
    assert sorted(names) == sorted(Store(tmp_path / "table.syn").require_state().files)


def test_two_threads_build_at_once_in_one_session(spark: SparkSession, tmp_path: Path) -> None:
    """Whichever is done first leaves the other the settings that it needs."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        parts = [ROWS.table().slice(0, 30), ROWS.table().slice(30)]
        texts = [part.set_column(3, "ts", part["ts"].cast(pa.timestamp("us")).cast(pa.string())) for part in parts]
        with ThreadPoolExecutor(2) as pool:
            reports = list(pool.map(lambda part: build(part, tmp_path / "w.syn"), texts))
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert [report.rows for report in reports] == [30, 370]
    assert close(strands_at(tmp_path / "w.syn"), ROWS.strands(LAYOUT))


def test_coarsening_leaves_no_files_that_no_commit_names(tmp_path: Path) -> None:
    place = tmp_path / "w.syn"
    spec = Spec("lat", "lon", "ts", ROWS.features, precision=4, bucket="1d", memory=7_000)
    build(MOVING.table().slice(0, 60), place, spec)
    first = set(Store(place).require_state().files)
    build(MOVING.table().slice(60), place, spec)
    state = Store(place).require_state()
    assert {path.name for path in (place / "sketch").glob("*.parquet")} == first | set(state.files)
    assert first.isdisjoint(state.files)


def test_one_strand_of_many_rows_keeps_its_moments(tmp_path: Path, spark: SparkSession) -> None:
    """Rows enough that rounding of plain sums would show."""
    frame = spark.range(200_000).selectExpr(
        "0.5D AS lat", "0.5D AS lon", "timestamp_seconds(id) AS ts", "300 + pmod(id * 7919, 1009) / 1000D AS x"
    )
    build(frame, tmp_path / "w.syn", Spec("lat", "lon", "ts", ["x"], exact_at=(1, "1y")))
    numbers = 300 + (np.arange(200_000) * 7919 % 1009) / 1000
    expected = Moments.of(numbers)
    found = strands_at(tmp_path / "w.syn").moments
    np.testing.assert_allclose(found.mean[0], expected.mean, rtol=1e-14)
    np.testing.assert_allclose(found.spread[0], expected.spread, rtol=1e-9)
