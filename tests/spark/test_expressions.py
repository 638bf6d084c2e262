"""Spark's expressions say the same as the grid, on every edge that we could think of."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.spark import expressions, jobs

BITS = (5, 6, 15, 20, 31, 45, 59, 60)
SPANS = ("1s", "90s", "1m", "7m", "15m", "1h", "5h", "6h", "1d", "3d", "1w", "2w", "1mo", "5mo", "1q", "1y", "10y")
ZONES = ("UTC", "America/Sao_Paulo", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Paris")


@pytest.fixture(autouse=True)
def settings(spark: SparkSession):
    """What a build sets."""
    with jobs.settings(spark):
        yield


def frame_of(spark: SparkSession, **columns: pa.Array | np.ndarray) -> DataFrame:
    return spark.createDataFrame(pa.table(columns))


def column(frame: DataFrame, *expressions_: sf.Column) -> list[np.ndarray]:
    """Each expression's values in the order of column `at`, in one job."""
    selected = frame.select("at", *(each.alias(f"c{k}") for k, each in enumerate(expressions_)))
    table = selected.toArrow().sort_by("at")
    return [table[f"c{k}"].to_numpy() for k in range(len(expressions_))]


def edges(reach: float, random: np.random.Generator) -> np.ndarray:
    """Edges of cells of many sizes, and the doubles on both sides of each; all of them within reach."""
    bits = random.integers(0, 31, 400)
    steps = np.concatenate([[0.0, 1.0], random.integers(0, 2**bits + 1) / 2.0**bits])
    edge = steps * 2 * reach - reach
    near = [edge]
    for way in (-np.inf, np.inf):
        step = edge
        for _ in range(3):
            step = np.nextafter(step, way)
            near.append(step)
    return np.clip(np.concatenate(near), -reach, reach)


def test_cells_are_those_of_geohash_and_a_row_without_a_place_has_none(spark: SparkSession) -> None:
    random = np.random.default_rng(1)
    latitude = np.concatenate([edges(90.0, random), random.uniform(-90, 90, 3_000), [90, -90, 0.0, -0.0, 5e-324]])
    longitude = np.concatenate(
        [edges(180.0, random), random.uniform(-180, 180, 3_000), [180, -180, 0.0, -0.0, -5e-324]]
    )
    frame = frame_of(
        spark,
        at=np.arange(latitude.size + 2),
        latitude=pa.array([*latitude, None, 1.0]),
        longitude=pa.array([*longitude, 1.0, None]),
    )
    names = frame.columns
    for bits in BITS:
        frame = expressions.with_cell(frame, bits, f"cell_{bits}")
        names.append(f"cell_{bits}")
    assert frame.columns == names
    found = column(frame, *(sf.col(f"cell_{bits}") for bits in BITS))
    for bits, cells in zip(BITS, found, strict=True):
        np.testing.assert_array_equal(cells[:-2], geohash.encode(latitude, longitude, bits), f"{bits} bits")
        assert np.isnan(cells[-2:]).all()


def instants_around_changes() -> np.ndarray:
    """Instants of two centuries, those beside every change of clock since 1900, and those beside midnights."""
    random = np.random.default_rng(2)
    first, last = (int(datetime(year, 1, 2, tzinfo=UTC).timestamp()) * 10**6 for year in (1901, 2099))
    changes = np.concatenate([Zone.named(zone).changes_us for zone in ZONES[1:]])
    changes = changes[(changes > first) & (changes < last)]
    day_us = 86_400 * 10**6
    midnights = np.arange(first // day_us, last // day_us, 97) * day_us
    beside = np.array([-3_600 * 10**6, -1_800 * 10**6, -1, 0, 1, 1_800 * 10**6, 3_600 * 10**6])
    all_of_them = [random.integers(first, last, 2_000), (changes[:, None] + beside).ravel(), midnights, midnights - 1]
    return np.concatenate([*all_of_them, [-1, 0, 1]])


@pytest.mark.parametrize("zone", ZONES)
def test_buckets_are_those_of_the_calendar(spark: SparkSession, zone: str) -> None:
    instants = instants_around_changes()
    frame = frame_of(spark, at=np.arange(instants.size), instant_us=instants)
    spans = [Bucket.parse(text) for text in SPANS]
    found = column(frame, *(sf.expr(expressions.bucket("instant_us", span, zone)) for span in spans))
    for span, ordinals in zip(spans, found, strict=True):
        np.testing.assert_array_equal(ordinals, span.ordinals(instants, Zone.named(zone)), f"{span} in {zone}")


def test_buckets_reach_from_year_1_to_year_9999(spark: SparkSession) -> None:
    instants = np.array([expressions.EARLIEST_US, expressions.LATEST_US, -62_000_000_000_000_000])
    frame = frame_of(spark, at=np.arange(instants.size), instant_us=instants)
    spans = [Bucket.parse(text) for text in SPANS]
    for span, found in zip(
        spans, column(frame, *(sf.expr(expressions.bucket("instant_us", s, "UTC")) for s in spans)), strict=True
    ):
        np.testing.assert_array_equal(found, span.ordinals(instants), str(span))


def micros(text: str) -> int:
    """Microseconds since 1970 of an ISO text that names its zone."""
    return int(np.datetime64(datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None), "us").astype(np.int64))


#: A text, and what it means in UTC and in Sao Paulo (two or three hours behind, midnight of 2018-11-04 skipped).
TEXTS = {
    "2025-01-15T10:00:00Z": ("2025-01-15T10:00:00Z", "2025-01-15T10:00:00Z"),
    "2025-01-15 10:00:00Z": ("2025-01-15T10:00:00Z", "2025-01-15T10:00:00Z"),
    "2025-01-15T10:00:00+02:00": ("2025-01-15T08:00:00Z", "2025-01-15T08:00:00Z"),
    "2025-01-15 10:00:00+02:00": ("2025-01-15T08:00:00Z", "2025-01-15T08:00:00Z"),
    "2025-01-15T10:00:00-0530": ("2025-01-15T15:30:00Z", "2025-01-15T15:30:00Z"),
    "2025-01-15T10:00:00+02": ("2025-01-15T08:00:00Z", "2025-01-15T08:00:00Z"),
    "2025-01-15 10:00:00 +02:00": ("2025-01-15T08:00:00Z", "2025-01-15T08:00:00Z"),
    "2025-01-15 10:00:00 UTC": ("2025-01-15T10:00:00Z", "2025-01-15T10:00:00Z"),
    "2025-01-15 10:00:00 GMT+2": ("2025-01-15T08:00:00Z", "2025-01-15T08:00:00Z"),
    "2025-07-15 10:00:00 Europe/Paris": ("2025-07-15T08:00:00Z", "2025-07-15T08:00:00Z"),
    "2025-01-15T10:00:00 Etc/GMT+5": ("2025-01-15T15:00:00Z", "2025-01-15T15:00:00Z"),
    "2025-01-15T10:00:00.25Z": ("2025-01-15T10:00:00.250000Z", "2025-01-15T10:00:00.250000Z"),
    "2025-01-15T10:00Z": ("2025-01-15T10:00:00Z", "2025-01-15T10:00:00Z"),
    "2025-01-15 10:00+02:00": ("2025-01-15T08:00:00Z", "2025-01-15T08:00:00Z"),
    "2025-01-15T10:00-0530": ("2025-01-15T15:30:00Z", "2025-01-15T15:30:00Z"),
    "2025-01-15t10:00:00z": ("2025-01-15T10:00:00Z", "2025-01-15T10:00:00Z"),
    "2025-01-15t10:00": ("2025-01-15T10:00:00Z", "2025-01-15T13:00:00Z"),
    "2025-01-15T10:00:00,25Z": ("2025-01-15T10:00:00.250000Z", "2025-01-15T10:00:00.250000Z"),
    "2025-01-15 10:00:00,25": ("2025-01-15T10:00:00.250000Z", "2025-01-15T13:00:00.250000Z"),
    "20250115T100000Z": ("2025-01-15T10:00:00Z", "2025-01-15T10:00:00Z"),
    "20250115T1000": ("2025-01-15T10:00:00Z", "2025-01-15T13:00:00Z"),
    "20250115T100000.5+0200": ("2025-01-15T08:00:00.500000Z", "2025-01-15T08:00:00.500000Z"),
    "2025-01-15T10:00:00": ("2025-01-15T10:00:00Z", "2025-01-15T13:00:00Z"),
    " 2025-01-15 10:00:00 ": ("2025-01-15T10:00:00Z", "2025-01-15T13:00:00Z"),
    "2025-01-15 10:00": ("2025-01-15T10:00:00Z", "2025-01-15T13:00:00Z"),
    "2025-01-15 10:00:00.123456789": ("2025-01-15T10:00:00.123456Z", "2025-01-15T13:00:00.123456Z"),
    "2025-01-15": ("2025-01-15T00:00:00Z", "2025-01-15T03:00:00Z"),
    "2025-1-5": ("2025-01-05T00:00:00Z", "2025-01-05T03:00:00Z"),
    "2025-01": ("2025-01-01T00:00:00Z", "2025-01-01T03:00:00Z"),
    "2025": ("2025-01-01T00:00:00Z", "2025-01-01T03:00:00Z"),
    "1960-12-31T23:59:59": ("1960-12-31T23:59:59Z", "1961-01-01T02:59:59Z"),
    "2018-11-04": ("2018-11-04T00:00:00Z", "2018-11-04T03:00:00Z"),
    "2018-02-17 23:30": ("2018-02-17T23:30:00Z", "2018-02-18T01:30:00Z"),
    "12:30": None,
    "T12:30": None,
    "9:30:00": None,
    "2025-02-30": None,
    "2025-01-15 25:00:00": None,
    "15/01/2025 10:00": None,
    "20250115": None,
    "2025-01-15T10:00X": None,
    "20251315T100000Z": None,
    "now": None,
    "": None,
    "yesterday": None,
}


def test_texts_mean_what_iso_says_in_the_zone_of_the_spec(spark: SparkSession) -> None:
    frame = frame_of(spark, at=np.arange(len(TEXTS)), text=pa.array(list(TEXTS)))
    read = [
        expressions.instant(sf.col("text"), st.StringType(), timezone=zone, unit=None)
        for zone in ("UTC", "America/Sao_Paulo")
    ]
    rows = frame.select("text", *(each.alias(f"c{k}") for k, each in enumerate(read))).collect()
    expected = {text: tuple(map(micros, meant)) if meant else (None, None) for text, meant in TEXTS.items()}
    assert {row.text: (row.c0, row.c1) for row in rows} == expected


def test_times_of_every_type_are_the_same_instants(spark: SparkSession) -> None:
    """Wall clocks are read in the zone of the spec, instants are not; clocks that skip and repeat hours included."""
    texts = ["1950-06-01T12:00", "2018-11-04T00:30", "2018-02-17T23:30", "2025-01-15T10:00", "1969-12-31T23:59"]
    wall = np.array([np.datetime64(text, "us") for text in texts])
    frame = frame_of(
        spark,
        at=np.arange(len(texts)),
        wall=pa.array(wall),
        zoned=pa.array(wall.astype(np.int64), pa.timestamp("us", "Asia/Kolkata")),
        day=pa.array(wall.astype("datetime64[D]")),
        naive=wall.astype(np.int64) * 1_000,
    ).withColumn("ntz", sf.col("wall").cast("timestamp_ntz"))
    assert dict(frame.dtypes).items() >= {"ntz": "timestamp_ntz", "zoned": "timestamp", "day": "date"}.items()
    for name in ("UTC", "America/Sao_Paulo", "Australia/Lord_Howe"):
        zone = Zone.named(name)
        ntz, zoned, day, naive = column(
            frame,
            expressions.instant(sf.col("ntz"), st.TimestampNTZType(), timezone=name, unit=None),
            expressions.instant(sf.col("zoned"), st.TimestampType(), timezone=name, unit=None),
            expressions.instant(sf.col("day"), st.DateType(), timezone=name, unit=None),
            expressions.instant(sf.col("naive"), st.LongType(), timezone=name, unit="ns", naive=True),
        )
        local = wall.astype(np.int64)
        np.testing.assert_array_equal(ntz, zone.to_utc(local))
        np.testing.assert_array_equal(naive, zone.to_utc(local))
        np.testing.assert_array_equal(zoned, local)
        np.testing.assert_array_equal(
            day, zone.to_utc(wall.astype("datetime64[D]").astype("datetime64[us]").astype(np.int64))
        )


def test_epochs_of_every_unit_and_type_are_the_same_instants(spark: SparkSession) -> None:
    """A double beside a whole microsecond means that microsecond; whole numbers are cut down, before 1970 too."""
    random = np.random.default_rng(3)
    instants = np.concatenate([random.integers(-(10**15), 2 * 10**15, 2_000), [-1, 0, 1, 1_735_689_600_123_457]])
    per_unit = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
    columns: dict[str, pa.Array] = {"at": pa.array(np.arange(instants.size))}
    reads = []
    for unit, size in per_unit.items():
        columns[f"double_{unit}"] = pa.array(instants / size)
        reads.append(expressions.instant(sf.col(f"double_{unit}"), st.DoubleType(), timezone="UTC", unit=unit))
        exact = [Decimal(int(instant)) / Decimal(str(size)) for instant in instants]
        columns[f"decimal_{unit}"] = pa.array(exact, pa.decimal128(28, 9))
        kind = st.DecimalType(28, 9)
        reads.append(expressions.instant(sf.col(f"decimal_{unit}"), kind, timezone="UTC", unit=unit))
    columns["whole_us"], columns["whole_ns"] = pa.array(instants), pa.array(instants * 1_000 + 999)
    reads += [expressions.instant(sf.col(f"whole_{u}"), st.LongType(), timezone="UTC", unit=u) for u in ("us", "ns")]
    found = column(spark.createDataFrame(pa.table(columns)), *reads)
    for values in found:
        np.testing.assert_array_equal(values, instants)


def test_epochs_of_whole_seconds_and_milliseconds_fit_any_integer_type(spark: SparkSession) -> None:
    frame = frame_of(spark, at=np.arange(3), s=pa.array([0, -1, 2**31 - 1], pa.int32()), ms=np.array([0, -1, 10**12]))
    seconds, millis = column(
        frame,
        expressions.instant(sf.col("s"), st.IntegerType(), timezone="UTC", unit="s"),
        expressions.instant(sf.col("ms"), st.LongType(), timezone="UTC", unit="ms"),
    )
    assert seconds.tolist() == [0, -1_000_000, (2**31 - 1) * 1_000_000]
    assert millis.tolist() == [0, -1_000, 10**15]


def test_epochs_beyond_the_calendar_have_no_instant(spark: SparkSession) -> None:
    numbers = [2**63 - 1, -(2**63), 253_402_400_000, -62_135_600_000]
    frame = frame_of(spark, at=np.arange(4), whole=pa.array(numbers), real=pa.array([np.inf, -np.inf, np.nan, 1e300]))
    for name, kind in (("whole", st.LongType()), ("real", st.DoubleType())):
        read = expressions.instant(sf.col(name), kind, timezone="UTC", unit="s")
        assert [row[0] for row in frame.select(read).collect()] == [None] * 4


def test_a_column_is_found_by_its_exact_name(spark: SparkSession) -> None:
    frame = frame_of(spark, **{"a.b": [1], "a b": [2], "a`b": [3], "A b": [4]})
    assert frame.select(*(expressions.named(name) for name in frame.columns)).first() == (1, 2, 3, 4)


def test_a_type_that_is_no_time_is_refused() -> None:
    with pytest.raises(TypeError, match="boolean"):
        expressions.instant(sf.lit(True), st.BooleanType(), timezone="UTC", unit=None)


def test_dates_of_java_and_python_agree_on_the_day(spark: SparkSession) -> None:
    days = [date(1901, 1, 1), date(1582, 10, 15), date(2024, 2, 29), date(9999, 12, 31)]
    frame = frame_of(spark, at=np.arange(len(days)), day=pa.array(days))
    (found,) = column(frame, expressions.instant(sf.col("day"), st.DateType(), timezone="UTC", unit=None))
    assert found.tolist() == [(day - date(1970, 1, 1)).days * 86_400 * 10**6 for day in days]
