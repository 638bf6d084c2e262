"""Meetings in Spark builds: those of all rows, however they are parted, after every batch, within their share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.sketch.test_meetings import same
from tests.spark.test_paths import FEATURES, Rows, later, spec, stations

import synopsis as syn
from synopsis.sketch.meetings import SHARE, Meetings
from synopsis.sketch.summary import Summary

pytestmark = pytest.mark.usefixtures("spark")

MEMORY = 400_000
FIRST, SECOND = stations(0, 20, "2024-01-01", 60), later()
BOTH = pd.concat([FIRST, SECOND], ignore_index=True)


def build(rows: pd.DataFrame, place: Path, memory: int = MEMORY, **options):
    return syn.build(pa.Table.from_pandas(rows, preserve_index=False), spec(memory), place, progress=False, **options)


def kept(database: syn.Database) -> tuple[Summary, Meetings]:
    assert database.summary is not None
    assert database.summary.meetings is not None
    return database.summary, database.summary.meetings


def of_rows(rows: pd.DataFrame, summary: Summary, grain) -> Meetings:
    """The meetings of rows in memory, by ticks as executors have them."""
    values = rows[list(FEATURES)].to_numpy(np.float64).T
    scales = summary.scales
    ticks = [scales.ticks[k].of(values[k]) for k in range(len(FEATURES))]
    fine = np.stack([scales.code_of_tick(k)[ticks[k]] for k in range(len(FEATURES))])
    us = rows.ts.to_numpy("datetime64[us]").astype(np.int64)
    return Meetings.of(grain, rows.lat.to_numpy(), rows.lon.to_numpy(), us, fine)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("meetings") / "w.syn"


@pytest.fixture(scope="module")
def databases(spark: SparkSession, place: Path) -> list[syn.Database]:
    """The sketch after one batch and after two, the second of which has values beyond all ends of the first."""
    found = []
    for name, batch in (("first", FIRST), ("second", SECOND)):
        build(batch, place, batch=name)
        found.append(syn.open(place))
    return found


@pytest.mark.parametrize("stage", [0, 1])
def test_meetings_are_those_of_all_rows_within_their_share(databases: list[syn.Database], stage: int) -> None:
    summary, met = kept(databases[stage])
    assert same(met, of_rows((FIRST, BOTH)[stage], summary, met.grain))
    assert len(met) > 1
    assert met.nbytes <= MEMORY * SHARE
    assert summary.nbytes == sum(summary.parts.values()) <= MEMORY
    assert summary.parts["meetings"] == met.nbytes
    told = databases[stage].info()["meetings"]
    assert (told["spans"], told["bytes"]) == (len(met), met.nbytes)
    assert list(told["bins"]) == list(FEATURES)
    assert told["grain"].startswith(f"cells of {met.grain.bits} bits x ")


@pytest.mark.parametrize("stage", [0, 1])
def test_combinations_are_never_denied_where_they_are(databases: list[syn.Database], stage: int) -> None:
    rows, random = Rows((FIRST, BOTH)[stage]), np.random.default_rng(stage)
    denied = 0
    for _ in range(60):
        chosen = random.choice(FEATURES, random.integers(2, 4), replace=False)
        parts = []
        for name in chosen:
            values = rows.frame[name].dropna().to_numpy()
            middle, width = float(random.choice(values)), float(np.ptp(np.quantile(values, [0.25, 0.75])))
            width *= float(random.choice([0.0, 0.02, 0.1]))
            parts.append(f"{name} BETWEEN {middle - width!r} AND {middle + width!r}")
        there = rows.answers(["count(*)"], " AND ".join(parts))[0][0] > 0
        value = databases[stage].query(f"SELECT CONTAINS({', '.join(parts)}) AS c")["c"]
        assert value.low <= there <= value.high, parts
        denied += value.estimate == 0
    assert denied > 0


def test_a_part_is_saved_without_meetings_and_the_whole_with_them(
    databases: list[syn.Database], tmp_path: Path
) -> None:
    _, met = kept(databases[1])
    again = databases[1].query("SELECT *")
    again.save(tmp_path / "part.syn")
    opened = syn.open(tmp_path / "part.syn")
    assert opened.summary is not None
    assert opened.summary.meetings is None
    assert "meetings" not in opened.info()
    text = "SELECT CONTAINS(temp > 30, half > 90) AS c"
    assert opened.query(text)["c"].high >= databases[1].query(text)["c"].high
    assert same(kept(syn.open(databases[1].info()["place"]))[1], met)


def test_less_memory_folds_meetings(spark: SparkSession, tmp_path: Path) -> None:
    build(FIRST, tmp_path / "a.syn", batch="first")
    _, fine = kept(syn.open(tmp_path / "a.syn"))
    less = int(fine.nbytes / SHARE) - 10_000
    build(SECOND, tmp_path / "a.syn", memory=less, batch="second")
    summary, coarse = kept(syn.open(tmp_path / "a.syn"))
    assert coarse.grain != fine.grain
    assert coarse.nbytes <= less * SHARE
    assert summary.nbytes <= less
    assert same(coarse, of_rows(BOTH, summary, coarse.grain))


def test_one_feature_meets_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.Table.from_pandas(FIRST, preserve_index=False)
    syn.build(table, spec(MEMORY, ("temp",)), tmp_path / "one.syn", progress=False)
    database = syn.open(tmp_path / "one.syn")
    assert database.summary is not None
    assert database.summary.meetings is None
    assert database.query("SELECT CONTAINS(temp > 100) AS c")["c"].estimate == 0


def test_moving_objects_have_spans_of_whole_cells(spark: SparkSession, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    count = 20_000
    turn = np.sort(random.uniform(0, 20, count))
    rows = pd.DataFrame(
        {
            "lat": 45 + 8 * np.sin(turn) + random.normal(0, 0.5, count),
            "lon": 8 + 20 * np.cos(turn) + random.normal(0, 0.5, count),
            "ts": pd.to_datetime((turn * 86_400_000_000).astype(np.int64), unit="us", utc=True),
            "height": np.round(1_000 + 500 * np.sin(turn) + random.normal(0, 50, count)),
            "speed": random.lognormal(3, 0.5, count),
        }
    )
    made = replace(spec(MEMORY), features=("height", "speed"))
    syn.build(pa.Table.from_pandas(rows, preserve_index=False), made, tmp_path / "m.syn", progress=False)
    database = syn.open(tmp_path / "m.syn")
    summary, met = kept(database)
    assert summary.layout.place_bits is not None
    assert met.grain.bits <= summary.layout.place_bits
    assert len(met.grain.starts) == 2
    frame = Rows(rows)
    for low in range(400, 1_700, 100):
        parts = [f"height BETWEEN {low} AND {low + 20}", "speed > 60"]
        there = frame.answers(["count(*)"], " AND ".join(parts))[0][0] > 0
        value = database.query(f"SELECT CONTAINS({', '.join(parts)}) AS c")["c"]
        assert value.low <= there <= value.high
