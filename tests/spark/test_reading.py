"""Rows that tasks read themselves: the same ticks and the same sketch as of rows that Spark reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.spark.test_footers import HOURS, RANDOM, SPEC, rows, written

import synopsis as syn
from synopsis.sketch import counting
from synopsis.sketch.ticks import ABSENT_TICK, Ticks
from synopsis.spark import footers, paths, reading
from synopsis.spark.footers import Group
from synopsis.spark.reading import Reader
from synopsis.store import summaries


@pytest.mark.parametrize(
    "ticks", [Ticks(-3.0, 0.01), Ticks(0.0, 1e-4, (0.0, 0.5, 2.0)), Ticks(5.0, 1e-300), Ticks(-1e9, 1e5, (7.0,))]
)
def test_ticks_in_machine_code_are_those_of_numpy(ticks: Ticks) -> None:
    edges = ticks.origin + ticks.step * np.arange(-3.0, 70_000.0, 7.0)
    values = np.concatenate(
        (edges, np.nextafter(edges, -np.inf), RANDOM.normal(size=5_000), ticks.atoms, [np.nan, 1e150])
    )
    packed = np.full((values.size, 4), 77, np.uint16)
    counting.ticked(values, ticks.origin, ticks.step, np.array(ticks.atoms, np.float64), packed, 2)
    assert np.array_equal(packed[:, 2], ticks.of(values))
    assert (packed[:, [0, 1, 3]] == 77).all()


def test_a_batch_becomes_positions_times_and_ticks_and_rows_without_a_place_are_left_out(tmp_path: Path) -> None:
    table = pa.table(
        {
            "lat": pa.array([1.5, np.nan, 2.5], pa.float32()),
            "lon": [3, 4, 5],
            "ts": pa.array([10, 20, 30], pa.timestamp("ms")),
            "x": pa.array([1.0, 2.0, None]),
            "n": pa.array([7, 8, 9], pa.int16()),
        }
    )
    told = footers.told(written(tmp_path, table, row_group_size=2), table.column_names)
    assert told is not None
    reader = Reader((told.groups,), ("lat", "lon", "ts", "x", "n"), (Ticks(0.0, 0.5), Ticks(0.0, 1.0)), 100)
    found = pa.Table.from_batches(reader.rows(iter([pa.record_batch({"id": [0]})])))
    assert found["latitude"].to_pylist() == [1.5, 2.5]
    assert found["longitude"].to_pylist() == [3.0, 5.0]
    assert found["local_us"].to_pylist() == [10_000, 30_000]
    ticks = found["ticks_0"].to_numpy().view(np.uint16).reshape(-1, 4)
    assert ticks.tolist() == [[2, 7, 0, 0], [ABSENT_TICK, 9, 0, 0]]


@pytest.mark.parametrize(
    ("sizes", "at_once", "tasks"), [([100] * 10, 2, 2), ([5], 4, 1), ([1, 1, 30_000_000, 1], 1, 3)]
)
def test_every_row_group_has_one_task(sizes: list[int], at_once: int, tasks: int) -> None:
    found = [Group("file", at, size) for at, size in enumerate(sizes)]
    dealt = reading.dealt(found, at_once)
    assert [group for task in dealt for group in task] == found
    assert all(dealt)
    assert len(dealt) <= max(tasks, at_once)


KINDS = {
    "usual": {},
    "single precision": {"x": pa.array(RANDOM.normal(size=HOURS.size), pa.float32())},
    "whole numbers": {"x": pa.array(HOURS % 50, pa.int16(), mask=HOURS % 9 == 0), "lat": 40 + np.repeat([0, 1], 480)},
    "milliseconds": {"ts": pa.array(HOURS * 3_600_000, pa.timestamp("ms"))},
    "with a zone": {"ts": pa.array(HOURS * 3_600_000_000, pa.timestamp("us", "America/Lima"))},
    "no values": {"x": pa.nulls(HOURS.size, pa.float64())},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_sketch_is_that_of_rows_which_spark_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    table, readers = rows(**KINDS[kind]), []
    files = written(tmp_path, table.slice(0, 300), table.slice(300), row_group_size=70)

    def seen(*given: Any) -> Reader:
        readers.append(given)
        return Reader(*given)

    monkeypatch.setattr(paths, "Reader", seen)
    syn.build(files, SPEC, tmp_path / "own.syn", progress=False)
    assert readers
    read = len(readers)
    syn.build(spark.read.parquet(*files), SPEC, tmp_path / "sparks.syn", progress=False)
    assert len(readers) == read
    own, sparks = (syn.open(tmp_path / name).summary for name in ("own.syn", "sparks.syn"))
    assert summaries.to_table(own).equals(summaries.to_table(sparks))


def test_columns_whose_names_have_dots_are_read(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"a.b": [1.0], "a": [2.0], "ts": pa.array([0], pa.timestamp("us"))}), tmp_path / "f.parquet"
    )
    told = footers.told([str(tmp_path / "f.parquet")], ["a.b", "a", "ts"])
    assert told is not None
    task = told.groups
    reader = Reader((task,), ("a.b", "a", "ts", "a"), (Ticks(0.0, 1.0),), 10)
    (found,) = reader.rows(iter([pa.record_batch({"id": [0]})]))
    assert (found["latitude"].to_pylist(), found["longitude"].to_pylist()) == ([1.0], [2.0])
