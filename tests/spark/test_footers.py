"""What Parquet files tell of their columns, and that a sketch is the same whether they told it or a pass did."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import synopsis as syn
from synopsis.core.errors import RowsRejected
from synopsis.core.spec import Spec
from synopsis.spark import footers, statistics
from synopsis.store import summaries

HOURS = np.arange(24 * 40) % (24 * 20)
RANDOM = np.random.default_rng(7)
SPEC = Spec("lat", "lon", "ts", ("x", "y"), memory=20_000)


def rows(**other: Any) -> pa.Table:
    """Two stations, twenty days."""
    station = np.repeat([0, 1], 24 * 20)
    columns = {
        "lat": 40.0 + station,
        "lon": -3.0 - station,
        "ts": np.datetime64("2024-03-01", "us") + HOURS * np.timedelta64(1, "h"),
        "x": RANDOM.normal(size=HOURS.size).round(2),
        "y": pa.array(RANDOM.exponential(size=HOURS.size), mask=RANDOM.random(HOURS.size) < 0.1),
    }
    return pa.table(columns | other)


def written(place: Path, *tables: pa.Table, **options: Any) -> list[str]:
    paths = [place / f"{at}.parquet" for at in range(len(tables))]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path, **options)
    return [str(path) for path in paths]


def test_files_tell_rows_ends_and_nulls(tmp_path: Path) -> None:
    one, two = (
        pa.table({"x": pa.array([1.5, None, -2.0]), "n": [3, 4, 5], "t": pa.array([1, 2, 3], pa.timestamp("ms"))}),
        pa.table({"x": pa.array([None, None], pa.float64()), "n": [9, -1], "t": pa.array([0, 7], pa.timestamp("ms"))}),
    )
    found = footers.told(written(tmp_path, one, two, row_group_size=2), ["x", "n", "t"])
    assert found is not None
    assert found.rows == 5
    told = [(each.low, each.high, each.values) for each in found.columns.values()]
    assert told == [(-2.0, 1.5, 2), (-1.0, 9.0, 5), (0, 7_000, 5)]


def test_a_column_without_values_has_no_ends(tmp_path: Path) -> None:
    found = footers.told(written(tmp_path, pa.table({"x": pa.array([None], pa.float64())})), ["x"])
    assert found is not None
    assert (found.columns["x"].low, found.columns["x"].high, found.columns["x"].values) == (math.inf, -math.inf, 0)
    assert not found.columns["x"].within(-1e9, 1e9)


@pytest.mark.parametrize(
    "column",
    [
        ["text"],
        [True],
        pa.array([1], pa.timestamp("ns")),
        pa.array([1], pa.uint64()),
        [{"x": 1.0}],
        [[1.0]],
        [math.nan],
    ],
)
def test_of_other_columns_they_tell_nothing(tmp_path: Path, column: Any) -> None:
    assert footers.told(written(tmp_path, pa.table({"x": column})), ["x"]) is None


def test_they_tell_nothing_where_they_differ_or_say_too_little(tmp_path: Path) -> None:
    table = pa.table({"x": [1.0]})
    assert footers.told(written(tmp_path, table, pa.table({"x": [1]})), ["x"]) is None
    assert footers.told(written(tmp_path, table), ["z"]) is None
    assert footers.told(written(tmp_path, table, write_statistics=False), ["x"]) is None
    of_1800 = pa.table({"x": pa.array([-5_364_662_400_000_000], pa.timestamp("us"))})
    assert footers.told(written(tmp_path, of_1800), ["x"]) is None
    (tmp_path / "x=3").mkdir()
    assert footers.told(written(tmp_path / "x=3", table), ["x"]) is None
    assert footers.told([str(tmp_path / "none.parquet")], ["x"]) is None


NOT_A_NUMBER = pa.array(np.where(np.arange(HOURS.size) % 100 == 3, np.nan, 1.0 + HOURS % 7))


@pytest.mark.parametrize(
    ("other", "passes", "rejected", "missing"),
    [
        pytest.param({}, 0, 0, {}, id="told"),
        pytest.param({"x": NOT_A_NUMBER}, 0, 0, {"x": 10}, id="a value that is no number"),
        pytest.param({"x": np.where(HOURS == 5, np.inf, HOURS)}, 1, 0, {"x": 2}, id="an infinite one"),
        pytest.param({"lat": NOT_A_NUMBER}, 1, 10, {}, id="a place that is no number"),
        pytest.param({"lat": np.where(HOURS == 3, 91.0, 40.0)}, 1, 2, {}, id="a place out of range"),
        pytest.param({"lat": np.where(HOURS == 3, 40.0, np.nan)}, 1, 958, {}, id="hardly a place"),
    ],
)
def test_the_sketch_is_that_of_a_pass(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    other: dict[str, Any],
    passes: int,
    rejected: int,
    missing: dict[str, int],
) -> None:
    table, seen, counted = rows(**other), [], statistics.counted
    monkeypatch.setattr(statistics, "counted", lambda *given: seen.append(1) or counted(*given))
    half = table.num_rows // 2
    files = written(tmp_path, table.slice(0, half), table.slice(half), row_group_size=100)
    report = syn.build(files, SPEC, tmp_path / "told.syn", progress=False)
    assert (len(seen), report.rejected, report.missing) == (passes, rejected, missing)
    usual = syn.build(spark.read.parquet(*files), SPEC, tmp_path / "passed.syn", progress=False)
    assert len(seen) == passes + 1
    assert (usual.rows, usual.rejected, usual.missing) == (report.rows, rejected, missing)
    told, passed = (syn.open(tmp_path / name).summary for name in ("told.syn", "passed.syn"))
    assert summaries.to_table(told).equals(summaries.to_table(passed))
    assert told.scales.values.tolist() == passed.scales.values.tolist()


def test_a_strict_build_refuses_what_only_reading_finds(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(RowsRejected):
        syn.build(rows(lat=NOT_A_NUMBER), SPEC, tmp_path / "w.syn", strict=True, progress=False)
    assert not (tmp_path / "w.syn").exists()


def test_what_lies_beyond_the_ends_of_a_sketch_is_counted_by_a_pass(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, counted = [], statistics.counted
    monkeypatch.setattr(statistics, "counted", lambda *given: seen.append(1) or counted(*given))
    for turn, (factor, passes) in enumerate([(1.0, 0), (0.5, 0), (50.0, 1)]):
        table = rows(x=np.linspace(-2.0, 2.0, HOURS.size) * factor, y=HOURS % 9 * min(factor, 1.0))
        syn.build(table, SPEC, tmp_path / "w.syn", batch=str(turn), progress=False)
        assert len(seen) == passes
    found = syn.open(tmp_path / "w.syn").summary
    assert found is not None
    assert found.scales.values.tolist() == [3 * HOURS.size] * 2
    assert found.scales.beyond[0] > 0
