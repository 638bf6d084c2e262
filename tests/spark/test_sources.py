"""The same rows in whatever form they come are the same observations."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from synopsis.core.errors import BadSource, BadSpec, EmptySource, NotNumeric, UnknownColumn
from synopsis.core.spec import Spec
from synopsis.grid.zones import Zone
from synopsis.spark import jobs, sources
from synopsis.spark.observations import REASONS, Observations, observations
from synopsis.testing.rows import Rows

ROWS = Rows.of_stations(150)
TABLE = ROWS.table()
SPEC = Spec(lat="lat", lon="lon", time="ts", features=ROWS.features)
SAO_PAULO = "America/Sao_Paulo"


@pytest.fixture(autouse=True)
def settings(spark: SparkSession):
    """What a build sets."""
    with jobs.settings(spark):
        yield


def columns_of(observed: Observations) -> dict[str, np.ndarray]:
    """The accepted rows in order of time, absent values as NaN; and `bad`, the count of bad values by feature."""
    table = observed.frame.toArrow()
    accepted = table.filter(pa.compute.equal(table["reason"], 0)).sort_by(
        [("instant_us", "ascending"), ("latitude", "ascending")]
    )
    numbers = [name for name in table.column_names if "given" not in name and name != "entity"]
    found = {name: accepted[name].to_numpy().astype(np.float64) for name in numbers}
    found |= {name: accepted[name].to_numpy() for name in table.column_names if name == "entity"}
    found["instant_us"] = accepted["instant_us"].to_numpy()
    given = [accepted[f"given_{k}"].to_numpy() for k in range(len(observed.features))]
    found["bad"] = np.array([np.sum(given[k] & np.isnan(found[f"value_{k}"])) for k in range(len(observed.features))])
    return found


def read(spark: SparkSession, source: sources.Source, spec: Spec = SPEC) -> dict[str, np.ndarray]:
    with sources.opened(spark, sources.located(source)) as opened:
        return columns_of(observations(opened, spec))


def check(found: dict[str, np.ndarray], rows: Rows = ROWS) -> None:
    order = np.lexsort((rows.latitude, rows.instants_us))
    expected = rows.take(order)
    np.testing.assert_array_equal(found["instant_us"], expected.instants_us)
    np.testing.assert_array_equal(found["latitude"], expected.latitude)
    np.testing.assert_array_equal(found["longitude"], expected.longitude)
    for position, values in enumerate(expected.values):
        np.testing.assert_array_equal(found[f"value_{position}"], values)
    assert found["bad"].tolist() == [0] * len(rows.features)


def write_parts(folder: Path) -> list[Path]:
    """The rows in three Parquet files."""
    folder.mkdir()
    paths = [folder / f"{name}.parquet" for name in ("a", "b", "c")]
    for path, start in zip(paths, (0, 50, 100), strict=True):
        pq.write_table(TABLE.slice(start, 50), path)
    return paths


def replaced(name: str, column: pa.Array | np.ndarray) -> pa.Table:
    return TABLE.set_column(TABLE.column_names.index(name), name, pa.array(column))


def wall_clock(zone: str) -> np.ndarray:
    return Zone.named(zone).to_local(ROWS.instants_us)


def test_parquet_in_one_file_several_a_folder_a_glob_and_a_list(spark: SparkSession, tmp_path: Path) -> None:
    paths = write_parts(tmp_path / "rows")
    (tmp_path / "rows" / "_SUCCESS").touch()
    (tmp_path / "rows" / ".hidden").touch()
    one = tmp_path / "one.parquet"
    pq.write_table(TABLE, one)
    for source in (str(one), paths, tmp_path / "rows", f"{tmp_path}/ro*/*.parquet"):
        check(read(spark, source))


def test_a_file_that_is_named_twice_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    paths = write_parts(tmp_path / "rows")
    link = tmp_path / "link.parquet"
    link.symlink_to(paths[0])
    check(read(spark, [*paths, paths[1], tmp_path / "rows", f"{tmp_path}/rows/../rows/c.parquet", link]))


def test_files_may_have_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    """None of them is an escape or a glob, and so none brings in its neighbour a1."""
    pq.write_table(TABLE, tmp_path / "a1.parquet")
    names = ("a b", "é", "a%20b", "a[1]", "a{1,2}", "a*?", "a#b", "a\\b", "a+b,c", "100%")
    for name in names:
        (tmp_path / name).mkdir()
        pq.write_table(TABLE.slice(0, 1), tmp_path / name / f"{name}.parquet")
    paths = [tmp_path / name / f"{name}.parquet" for name in names]
    with sources.opened(spark, sources.located(paths)) as opened:
        assert opened.frame.count() == len(names)


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kolkata"])
def test_nanosecond_parquet(spark: SparkSession, tmp_path: Path, zone: str | None) -> None:
    """Times with a zone are instants; those without are the wall clock of the spec's zone, as in microseconds."""
    clock = wall_clock(SAO_PAULO) if zone is None else ROWS.instants_us
    for unit, scale in (("ns", 1_000), ("us", 1)):
        path = tmp_path / f"{unit}.parquet"
        pq.write_table(replaced("ts", pa.array(clock * scale, pa.timestamp(unit, zone))), path)
        check(read(spark, path, Spec("lat", "lon", "ts", ROWS.features, timezone=SAO_PAULO)))


def test_files_that_keep_times_in_different_ways_are_refused_by_name(tmp_path: Path) -> None:
    kinds = {"us": pa.timestamp("us", "UTC"), "ns": pa.timestamp("ns", "UTC"), "naive": pa.timestamp("us")}
    for name, kind in kinds.items():
        pq.write_table(pa.table({"ts": pa.array([0], kind)}), tmp_path / f"{name}.parquet")
    for other in ("ns", "naive"):
        with pytest.raises(BadSource, match=rf"us\.parquet and .*{other}\.parquet keep 'ts' in different ways"):
            sources.located([tmp_path / "us.parquet", tmp_path / f"{other}.parquet"])


def test_files_need_not_all_have_every_column(spark: SparkSession, tmp_path: Path) -> None:
    halves = TABLE.slice(0, 75), TABLE.slice(75)
    pq.write_table(halves[0].drop_columns(["rain"]), tmp_path / "a.parquet")
    pq.write_table(halves[1], tmp_path / "b.parquet")
    found = read(spark, tmp_path)
    order = np.lexsort((ROWS.latitude, ROWS.instants_us))
    np.testing.assert_array_equal(found["value_2"], np.where(order < 75, np.nan, ROWS.values[2][order]))


def test_folders_that_name_columns_give_them(spark: SparkSession, tmp_path: Path) -> None:
    for station in range(7):
        for half in (0, 1):
            folder = tmp_path / "rows" / f"station={station}" / f"half={half}"
            folder.mkdir(parents=True)
            mine = (ROWS.station == station) & (np.arange(len(ROWS)) % 2 == half)
            pq.write_table(TABLE.filter(pa.array(mine)).drop_columns(["station"]), folder / "part.parquet")
    spec = Spec("lat", "lon", "ts", ["station", "half"])
    for source in (tmp_path / "rows", f"{tmp_path}/rows/*/*/part.parquet", f"{tmp_path}/rows/*"):
        found = read(spark, source, spec)
        order = np.lexsort((ROWS.latitude, ROWS.instants_us))
        np.testing.assert_array_equal(found["value_0"], ROWS.station[order])
        np.testing.assert_array_equal(found["value_1"], np.arange(len(ROWS))[order] % 2)


def test_a_folder_named_like_a_column_does_not_hide_the_column(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "rain=5"
    folder.mkdir()
    pq.write_table(TABLE, folder / "rows.parquet")
    check(read(spark, folder / "rows.parquet"))
    check(read(spark, folder))


def csv_times(zone: str | None = None) -> list[str]:
    if zone is None:
        return [(datetime(1970, 1, 1) + timedelta(microseconds=int(us))).isoformat() + "Z" for us in ROWS.instants_us]
    return [(datetime(1970, 1, 1) + timedelta(microseconds=int(us))).isoformat(" ") for us in wall_clock(zone)]


def test_csv_plain_and_packed(spark: SparkSession, tmp_path: Path) -> None:
    table = replaced("ts", csv_times())
    pyarrow.csv.write_csv(table.slice(0, 75), tmp_path / "a.csv")
    pyarrow.csv.write_csv(table.slice(75), tmp_path / "b.csv")
    with gzip.open(tmp_path / "c.csv.gz", "wb") as packed:
        packed.write((tmp_path / "b.csv").read_bytes())
    check(read(spark, [tmp_path / "a.csv", tmp_path / "b.csv"]))
    check(read(spark, [tmp_path / "a.csv", tmp_path / "c.csv.gz"]))


def test_csv_without_zones_is_read_in_the_zone_of_the_spec(spark: SparkSession, tmp_path: Path) -> None:
    pyarrow.csv.write_csv(replaced("ts", csv_times(SAO_PAULO)), tmp_path / "a.csv")
    check(read(spark, tmp_path / "a.csv", Spec("lat", "lon", "ts", ROWS.features, timezone=SAO_PAULO)))


@pytest.mark.parametrize(("unit", "scale"), [("s", 1e-6), ("ms", 1e-3), ("ns", 1_000)])
def test_epochs_among_texts_are_found_out_or_told(spark: SparkSession, tmp_path: Path, unit: str, scale: float) -> None:
    """Modern times tell their unit by their size; times near 1970 must be told. Some writers give exponents."""
    later = replace(ROWS, instants_us=ROWS.instants_us + 1_700_000_000 * 10**6)
    for rows, told in ((later, None), (ROWS, unit)):
        epochs = rows.instants_us * scale if scale >= 1 else rows.instants_us / round(1 / scale)
        pyarrow.csv.write_csv(rows.table().set_column(3, "ts", pa.array(epochs)), tmp_path / "a.csv")
        check(read(spark, tmp_path / "a.csv", Spec("lat", "lon", "ts", rows.features, time_unit=told)), rows)


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    lines = (json.dumps(row) + "\n" for row in replaced("ts", csv_times()).to_pylist())
    (tmp_path / "rows.jsonl").write_text("".join(lines))
    check(read(spark, tmp_path / "rows.jsonl"))


def test_pandas_arrow_and_spark_frames(spark: SparkSession) -> None:
    frame = TABLE.to_pandas()
    frame["station"] = frame["station"].astype(str).astype("category")
    frame.index = pd.Index(np.arange(len(frame)) + 5, name="rain")  # an index is no column
    kinds = {
        kind: frame.assign(ts=frame["ts"].astype(kind))
        for kind in ("datetime64[ns, UTC]", "datetime64[ms, Asia/Kolkata]")
    }
    whole = ROWS.instants_us // 1_000 * 1_000
    coarse = replace(ROWS, instants_us=whole)
    check(read(spark, kinds["datetime64[ns, UTC]"]))
    check(read(spark, kinds["datetime64[ms, Asia/Kolkata]"]), coarse)
    check(read(spark, TABLE))
    check(read(spark, TABLE.combine_chunks().to_batches()[0]))
    check(read(spark, spark.createDataFrame(TABLE)))
    naive = frame.assign(ts=wall_clock(SAO_PAULO).astype("datetime64[us]"))
    check(read(spark, naive, Spec("lat", "lon", "ts", ROWS.features, timezone=SAO_PAULO)))


def test_a_table_that_is_shipped_to_far_executors_keeps_its_times(spark: SparkSession) -> None:
    both = pa.table({"naive": pa.array([0], pa.timestamp("us")), "zoned": pa.array([0], pa.timestamp("us", "UTC"))})
    assert sources._shipped(spark, both).dtypes == [("naive", "timestamp_ntz"), ("zoned", "timestamp")]
    assert [
        str(cell)
        for cell in sources._shipped(spark, both).selectExpr("string(naive)", "unix_micros(zoned)").first() or ()
    ] == ["1970-01-01 00:00:00", "0"]


def test_nanoseconds_before_1970_are_cut_down_as_in_files(spark: SparkSession, tmp_path: Path) -> None:
    nanoseconds = pa.array([-1, -999, -1_000, -1_001, 1, 999, None], pa.timestamp("ns", "UTC"))
    table = pa.table({"lat": [0.0] * 7, "lon": [0.0] * 7, "ts": nanoseconds, "x": [1.0] * 7})
    pq.write_table(table, tmp_path / "a.parquet")
    spec = Spec("lat", "lon", "ts", ["x"])
    for source in (table, table.to_pandas(), tmp_path / "a.parquet"):
        assert read(spark, source, spec)["instant_us"].tolist() == [-2, -1, -1, -1, 0, 0]


def long_rows(rows: Rows = ROWS) -> pa.Table:
    """One row for each feature that is present, in random order, and rows of a feature that nobody asks for."""
    feature, row = np.nonzero(~np.isnan(rows.values))
    names = np.array(rows.features)[feature]
    order = np.random.default_rng(1).permutation(row.size)
    table = rows.table().select(["station", "lat", "lon", "ts"]).take(pa.array(row[order]))
    table = table.append_column("what", pa.array(names[order])).append_column(
        "is", pa.array(rows.values[feature, row][order])
    )
    return pa.concat_tables([table, table.slice(0, 5).set_column(4, "what", pa.array(["noise"] * 5))])


LONG = Spec("lat", "lon", "ts", ROWS.features, entity="station", name_column="what", value_column="is")


def test_long_rows_are_the_same_observations_as_wide_ones(spark: SparkSession, tmp_path: Path) -> None:
    """A row of which nothing is present leaves no trace in long form."""
    some = ROWS.take(~np.isnan(ROWS.values).all(axis=0))
    check(read(spark, long_rows(), LONG), some)
    table = long_rows()
    texts = pa.compute.strftime(table["ts"], format="%Y-%m-%dT%H:%M:%S")
    pyarrow.csv.write_csv(table.set_column(3, "ts", texts), tmp_path / "long.csv")
    found = read(spark, tmp_path / "long.csv", LONG)
    check(found, some)


def test_no_value_of_long_rows_is_lost_and_missing_ones_add_none(spark: SparkSession) -> None:
    """At one time: two values of a, one of b and a missing one; at the next only a missing value."""
    long = pa.table(
        {
            "station": ["s"] * 6,
            "lat": [1.0] * 6,
            "lon": [2.0] * 6,
            "ts": pa.array([0, 0, 0, 0, 0, 7], pa.timestamp("us", "UTC")),
            "what": ["a", "a", "b", "b", "a", "a"],
            "is": [5.0, 6.0, 7.0, None, None, None],
        }
    )
    spec = Spec("lat", "lon", "ts", ["a", "b"], entity="station", name_column="what", value_column="is")
    found = read(spark, long, spec)
    assert found["instant_us"].tolist() == [0, 0, 7]
    values = [value for value in found["value_0"].tolist() if value == value]
    assert sorted(values) == [5.0, 6.0]
    assert [value for value in found["value_1"].tolist() if value == value] == [7.0]
    assert found["entity"].tolist() == ["s"] * 3
    together = found["value_0"][~np.isnan(found["value_1"])]
    assert together.tolist() == [5.0]


def test_a_name_that_long_rows_never_hold_is_refused_but_for_a_later_batch(spark: SparkSession) -> None:
    spec = Spec("lat", "lon", "ts", [*ROWS.features, "rian"], name_column="what", value_column="is")
    with sources.opened(spark, sources.located(long_rows())) as opened:
        with pytest.raises(UnknownColumn, match=r"column 'what' never holds 'rian'; did you mean 'rain'\?"):
            observations(opened, spec)
        found = columns_of(observations(opened, spec, begun=True))
        assert np.isnan(found["value_3"]).all()
        clashing = Spec("lat", "lon", "ts", ["lat"], name_column="what", value_column="is")
        with pytest.raises(BadSpec, match="'lat' is also the column of a place"):
            observations(opened, clashing)


def test_names_of_long_rows_may_be_numbers(spark: SparkSession) -> None:
    """Parameters are often codes, such as 88101 for fine dust."""
    table = pa.table(
        {"lat": [1.0] * 3, "lon": [2.0] * 3, "ts": pa.array([0, 0, 1], pa.timestamp("us"))}
        | {"code": [88101, 42602, 88101], "is": [7.0, 8.0, 9.0]}
    )
    spec = Spec("lat", "lon", "ts", ["88101", "42602"], name_column="code", value_column="is")
    found = read(spark, table, spec)
    np.testing.assert_array_equal(found["value_0"], [7.0, 9.0])
    np.testing.assert_array_equal(found["value_1"], [8.0, np.nan])
    with pytest.raises(UnknownColumn, match=r"column 'code' never holds 'dust'; it holds 42602, 88101"):
        read(spark, table, Spec("lat", "lon", "ts", ["dust"], name_column="code", value_column="is"))


def test_features_may_have_odd_names_and_columns_may_be_called_like_ours(spark: SparkSession, tmp_path: Path) -> None:
    names = (
        "a.b",
        "a b",
        "a`b",
        'a"b',
        "a'b",
        "Temp",
        "temp",
        "cell",
        "reason",
        "__reason",
        "__latitude",
        "value_0",
        "given_0",
        "é",
    )
    values = {name: pa.array([float(k), np.nan]) for k, name in enumerate(names)}
    table = pa.table({"__instant": pa.array([0, 1]), "latitude": [1.0, 91.0], "bucket": [2.0, 2.0]} | values)
    spec = Spec("latitude", "bucket", "__instant", names, time_unit="s")
    pq.write_table(table, tmp_path / "odd.parquet")
    pyarrow.csv.write_csv(table.drop_columns(['a"b']), tmp_path / "odd.csv")
    without = Spec("latitude", "bucket", "__instant", [name for name in names if name != 'a"b'], time_unit="s")
    for source, asked in (
        (table, spec),
        (tmp_path / "odd.parquet", spec),
        (spark.createDataFrame(table), spec),
        (tmp_path / "odd.csv", without),
    ):
        with sources.opened(spark, sources.located(source)) as opened:
            observed = observations(opened, asked)
            found = columns_of(observed)
            assert [found[f"value_{k}"].tolist() for k in range(len(asked.features))] == [
                [float(names.index(name))] for name in asked.features
            ]
            (aside,) = observed.rejected().collect()
            assert REASONS[aside.reason] == "place out of range"
            assert '"__reason":' in aside.row
            assert '"latitude":' in aside.row


def test_numbers_of_every_type_are_doubles(spark: SparkSession) -> None:
    frame = spark.range(2).select(
        sf.lit(1.5).alias("lat"),
        sf.lit(2).cast("tinyint").alias("lon"),
        sf.lit("2025-01-01").cast("date").alias("ts"),
        (sf.col("id") + 0.25).cast("decimal(20,5)").alias("decimal"),
        (sf.col("id") == 1).alias("boolean"),
        sf.col("id").cast("smallint").alias("small"),
        (sf.col("id") * 0.5).cast("float").alias("float"),
        (sf.col("id") + 2**53 + 1).alias("large"),
    )
    spec = Spec("lat", "lon", "ts", ["decimal", "boolean", "small", "float", "large"])
    found = read(spark, frame, spec)
    assert sorted(zip(*(found[f"value_{k}"].tolist() for k in range(5)), strict=True)) == [
        (0.25, 0.0, 0.0, 0.0, float(2**53 + 1)),
        (1.25, 1.0, 1.0, 0.5, float(2**53 + 2)),
    ]


def test_arrow_columns_that_spark_does_not_know_do_no_harm(spark: SparkSession) -> None:
    table = TABLE.append_column("time of day", pa.array([1] * len(ROWS), pa.time64("us")))
    table = table.append_column("half", pa.array(np.ones(len(ROWS), np.float16)))
    check(read(spark, table))
    found = read(spark, table, Spec("lat", "lon", "ts", ["half"]))
    assert found["value_0"].tolist() == [1.0] * len(ROWS)


def test_periods_are_times_and_no_epochs(spark: SparkSession) -> None:
    """Arrow keeps them as integers that count hours: they must not pass for seconds."""
    hours = pd.to_datetime(ROWS.instants_us // 3_600_000_000, unit="h")
    frame = TABLE.to_pandas().assign(ts=hours.to_period("h"))
    rows = replace(ROWS, instants_us=ROWS.instants_us // 3_600_000_000 * 3_600_000_000)
    check(read(spark, frame), rows)
    check(read(spark, pa.Table.from_pandas(frame, preserve_index=False)), rows)


def test_durations_are_no_numbers(spark: SparkSession) -> None:
    frame = TABLE.to_pandas()
    dry = frame.rain.fillna(0)  # of NaN pandas rounds what it never wrote, and may warn of it
    waits = frame.assign(rain=pd.to_timedelta(dry, unit="s"))
    with pytest.raises(NotNumeric, match="column 'rain' is string, not a number; cast it"):
        read(spark, waits)
    without = Spec("lat", "lon", "ts", ["temperature"])
    assert len(read(spark, waits, without)["instant_us"]) == len(ROWS)
    with pytest.raises(NotNumeric, match="column 'lat' is string"):
        read(spark, frame.assign(lat=pd.to_timedelta(1, unit="s")))


def test_periods_and_durations_in_files_are_told_from_integers(spark: SparkSession, tmp_path: Path) -> None:
    """Parquet keeps both as plain integers, and Arrow's schema beside them says what they are."""
    hours = pd.to_datetime(ROWS.instants_us // 3_600_000_000, unit="h")
    frame = TABLE.to_pandas().assign(hour=hours.to_period("h"), wait=pd.to_timedelta(5, unit="s"))
    frame.to_parquet(tmp_path / "rows.parquet")
    check(read(spark, tmp_path / "rows.parquet"))  # nobody asks for them
    for spec, told in (
        (Spec("lat", "lon", "hour", ["rain"]), r"column 'hour' holds pandas\.period, in a file as integers; cast it"),
        (Spec("lat", "lon", "ts", ["wait"]), r"column 'wait' holds duration\[.s\], in a file as integers; cast it"),
    ):
        with pytest.raises(BadSource, match=told):
            read(spark, tmp_path / "rows.parquet", spec)


def test_columns_that_no_file_can_hold_are_decoded_or_refused_by_name(spark: SparkSession) -> None:
    runs = pa.RunEndEncodedArray.from_arrays([len(ROWS)], [5.0])
    found = read(spark, TABLE.append_column("runs", runs), Spec("lat", "lon", "ts", ["runs"]))
    assert found["value_0"].tolist() == [5.0] * len(ROWS)
    spans = pa.array([pa.MonthDayNano([1, 2, 3])] * len(ROWS))
    with pytest.raises(
        BadSource, match=r"column 'span' is month_day_nano_interval, which .*; cast it, or leave it out"
    ):
        sources.located(TABLE.append_column("span", spans))


def test_columns_of_one_name_that_nobody_asks_for_do_no_harm(spark: SparkSession) -> None:
    frame = spark.createDataFrame(TABLE)
    twice = frame.select("*", sf.lit(1).alias("station"), sf.lit(100.0).alias("lat2"))
    with sources.opened(spark, sources.located(twice)) as opened:
        assert observations(opened, SPEC).rejected().count() == 0
        with pytest.raises(BadSource, match="2 columns named 'station'; rename all but one"):
            observations(opened, Spec("lat", "lon", "ts", ["station"]))


def test_texts_that_only_java_takes_for_numbers_are_bad_values(spark: SparkSession, tmp_path: Path) -> None:
    """Java writes literals as 1d and 2.5f; in a table they are a day, a floor, or anything."""
    values = ("1.5", "1d", "2D", "3f", "4.5F", "1e3", "inf")
    (tmp_path / "a.csv").write_text("lat,lon,ts,x\n" + "".join(f"1,2,2025-01-01,{value}\n" for value in values))
    found = read(spark, tmp_path / "a.csv", Spec("lat", "lon", "ts", ["x"]))
    assert sorted(found["value_0"][~np.isnan(found["value_0"])].tolist()) == [1.5, 1000.0]
    assert found["bad"].tolist() == [5]
    (tmp_path / "b.csv").write_text("lat,lon,ts,x\n1,2,2025-01-01,7d\n")
    with pytest.raises(NotNumeric, match="column 'x' is text"):
        read(spark, tmp_path / "b.csv", Spec("lat", "lon", "ts", ["x"]))


def test_texts_that_are_no_numbers_are_bad_values_and_blanks_are_missing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        'lat,lon,ts,x\n1,2,2025-01-01,3.5\n1,2,2025-01-02,n/a\n1,2,2025-01-03,\n1,2,2025-01-04,""\n'
        "1,2,2025-01-05, 4 \n1,2,2025-01-06,NaN\n1,2,2025-01-07,-inf\n1,2,2025-01-08,1e200\n1,2,2025-01-09,   \n"
    )
    (tmp_path / "b.jsonl").write_text(
        '{"lat": 1, "lon": "2", "ts": "2025-01-01", "x": 3.5}\n{"lat": 1, "lon": 2, "ts": "2025-01-02", "x": "n/a"}\n'
    )
    found = read(spark, tmp_path / "a.csv", Spec("lat", "lon", "ts", ["x"]))
    np.testing.assert_array_equal(found["value_0"], [3.5] + [np.nan] * 3 + [4.0] + [np.nan] * 4)
    assert found["bad"].tolist() == [4]
    found = read(spark, tmp_path / "b.jsonl", Spec("lat", "lon", "ts", ["x"]))
    np.testing.assert_array_equal(found["value_0"], [3.5, np.nan])
    assert found["bad"].tolist() == [1]


def test_every_reason_against_a_row_is_told(spark: SparkSession, tmp_path: Path) -> None:
    nan, inf = float("nan"), float("inf")
    places = [(None, 1.0), (1.0, None), (nan, 1.0), (1.0, -inf), (90.0000001, 1.0), (1.0, -180.0000001), (90.0, -180.0)]
    table = pa.table(
        {
            "lat": pa.array([place[0] for place in places], pa.float64()),
            "lon": pa.array([place[1] for place in places], pa.float64()),
            "ts": pa.array([0] * len(places), pa.timestamp("us", "UTC")),
            "x": [1.0] * len(places),
        }
    )
    spec = Spec("lat", "lon", "ts", ["x"])

    def reasons(source: sources.Source, spec: Spec) -> list[str | None]:
        with sources.opened(spark, sources.located(source)) as opened:
            observed = observations(opened, spec).frame.toArrow().sort_by("value_0")
            assert all(
                place is None
                for place, reason in zip(observed["latitude"].to_pylist(), observed["reason"].to_pylist(), strict=True)
                if reason
            )
            return [REASONS.get(code) for code in observed["reason"].to_pylist()]

    table = table.set_column(3, "x", pa.array(np.arange(7.0)))
    lost, unsound, outside = "no place", "place not a finite number", "place out of range"
    assert reasons(table, spec) == [lost, lost, unsound, unsound, outside, outside, None]
    absent, unreadable, never = "no time", "time unreadable", "time out of range"
    rows = ["2025-01-01", "", "soon", "12:30", "12025-01-01", "-0004-01-01", "9999-12-31 23:59:59.999999"]
    lines = [f"1,2,{time},{x}\n" for x, time in enumerate(rows)]
    (tmp_path / "a.csv").write_text("lat,lon,ts,x\n" + "".join(lines) + "word,2,2025-01-01,7\n,2,2025-01-01,8\n")
    expected = [None, absent, unreadable, unreadable, never, never, None, unsound, lost]
    assert reasons(tmp_path / "a.csv", spec) == expected
    epochs = [1_700_000_000.0, None, nan, inf, 1e18, -1e18, -62_135_596_800.0]
    numbers = table.set_column(2, "ts", pa.array(epochs, pa.float64()))
    numbers = numbers.set_column(0, "lat", pa.array([1.0] * 7)).set_column(1, "lon", pa.array([1.0] * 7))
    assert reasons(numbers, Spec("lat", "lon", "ts", ["x"], time_unit="s")) == [
        None,
        absent,
        absent,
        never,
        never,
        never,
        None,
    ]
    texts = "".join(f"1,2,{time},{x}\n" for x, time in enumerate(["1700000000", "1700000000.5", "", "soon", "9" * 15]))
    (tmp_path / "b.csv").write_text("lat,lon,ts,x\n" + texts)
    assert reasons(tmp_path / "b.csv", spec) == [None, None, absent, unreadable, never]


def test_columns_that_cannot_serve_are_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    table = TABLE.append_column("name", pa.array(["x"] * len(ROWS))).append_column("list", pa.array([[1]] * len(ROWS)))

    def refused(error: type[Exception], match: str, source: sources.Source, spec: Spec) -> None:
        with pytest.raises(error, match=match), sources.opened(spark, sources.located(source)) as opened:
            observations(opened, spec)

    refused(
        UnknownColumn,
        r"no column 'temprature'; did you mean 'temperature'\? it has station, lat",
        table,
        Spec("lat", "lon", "ts", ["temprature"]),
    )
    refused(UnknownColumn, "no column 'Lat'", table, Spec("Lat", "lon", "ts", ["rain"]))
    refused(UnknownColumn, "no column 'who'", table, Spec("lat", "lon", "ts", ["rain"], entity="who"))
    refused(
        NotNumeric,
        "column 'name' is string, not a number; cast it, or name another",
        table,
        Spec("lat", "lon", "ts", ["name"]),
    )
    refused(NotNumeric, "column 'list' is array<bigint>", table, Spec("lat", "lon", "ts", ["list"]))
    refused(NotNumeric, "column 'name' is string", table, Spec("name", "lon", "ts", ["rain"]))
    refused(
        BadSource, "time column 'list' is array<bigint>; give timestamps", table, Spec("lat", "lon", "list", ["rain"])
    )
    pyarrow.csv.write_csv(table.drop_columns(["list"]), tmp_path / "a.csv")
    refused(NotNumeric, "column 'name' is text", tmp_path / "a.csv", Spec("lat", "lon", "ts", ["name"]))
    refused(
        NotNumeric,
        "column 'name' is text",
        tmp_path / "a.csv",
        Spec("lat", "lon", "ts", ["rain"], name_column="station", value_column="name"),
    )


def test_what_is_not_there_or_not_readable_is_said_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "mixed").mkdir()
    pq.write_table(TABLE, tmp_path / "mixed" / "a.parquet")
    (tmp_path / "mixed" / "b.csv").write_text("lat\n")
    (tmp_path / "not.parquet").write_bytes(b"PAR1 or so")
    pq.write_table(pa.table({"at": pa.array([1], pa.time64("us"))}), tmp_path / "clock.parquet")
    pq.write_table(pa.table({"x": pa.array(np.ones(1, np.float16))}), tmp_path / "half.parquet")
    (tmp_path / "notes.txt").touch()
    (tmp_path / "10:00.csv").touch()
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    cases = [
        (BadSource, r"no file at .*absent\.csv; check the path", tmp_path / "absent.csv"),
        (BadSource, "no file at", f"{tmp_path}/absent*.csv"),
        (EmptySource, "empty holds no rows", tmp_path / "empty"),
        (EmptySource, "an empty list of paths", []),
        (EmptySource, "the table holds no rows", TABLE.slice(0, 0)),
        (EmptySource, "the table holds no rows", pd.DataFrame()),
        (BadSource, "mixes csv and parquet; build from one format, then from the other", tmp_path / "mixed"),
        (BadSource, r"not\.parquet is not Parquet .*; mend it or leave it out", tmp_path / "not.parquet"),
        (
            BadSource,
            r"clock\.parquet keeps 'at' as time64\[us\], which Spark does not read; cast",
            tmp_path / "clock.parquet",
        ),
        (
            BadSource,
            r"half\.parquet keeps 'x' as halffloat, which Spark does not read; cast it",
            tmp_path / "half.parquet",
        ),
        (BadSource, r"notes\.txt has no ending we know", tmp_path / "notes.txt"),
        (BadSource, "has a colon in its name", tmp_path / "10:00.csv"),
        (BadSource, "table is a Delta table", tmp_path / "table"),
        (BadSource, "a source of type int; give a path", 7),
        (BadSource, "a source of type list; give a path", [TABLE]),
        (BadSource, "does not turn into Arrow columns", pd.DataFrame({"x": [1, "one"]})),
        (BadSource, "does not turn into Arrow columns", pd.DataFrame([[1, 2]], columns=["x", "x"])),
    ]
    for error, match, source in cases:
        with pytest.raises(error, match=match):
            sources.located(source)


def test_the_same_content_has_the_same_fingerprint(tmp_path: Path) -> None:
    paths = write_parts(tmp_path / "rows")
    files = sources.located(paths).fingerprint
    assert sources.located([*reversed(paths), paths[0]]).fingerprint == files
    assert sources.located(tmp_path / "rows").fingerprint == files
    assert sources.located(paths[:2]).fingerprint != files
    facts = paths[0].stat()
    pq.write_table(TABLE.slice(0, 50), paths[0])
    os.utime(paths[0], ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    assert sources.located(paths).fingerprint != files
    table = sources.located(TABLE).fingerprint
    assert sources.located(pa.concat_tables([TABLE.slice(0, 9), TABLE.slice(9)])).fingerprint == table
    assert sources.located(TABLE.slice(1)).fingerprint != table
    frame = TABLE.to_pandas()
    assert sources.located(frame).fingerprint == sources.located(frame.copy()).fingerprint
