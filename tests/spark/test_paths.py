"""Sketches of strata and paths, built by Spark and asked at random: what is certain holds against the rows, always.

DuckDB answers the same questions from all rows. Few sketches are built, and each is asked many questions.
"""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import synopsis as syn
from synopsis.core.errors import BudgetTooSmall, NotKept, RowsRejected
from synopsis.core.spec import Spec
from synopsis.database import Database
from synopsis.grid import geohash
from synopsis.query.values import Value
from synopsis.sketch.scales import Scales
from synopsis.sketch.ticks import ABSENT_TICK, Ticks
from synopsis.spark import paths
from synopsis.spark.paths import ticked
from synopsis.store.files import new_attempt, write_file
from synopsis.store.store import Store
from synopsis.store.summaries import SCHEMA

pytestmark = pytest.mark.usefixtures("spark")

FEATURES = ("temp", "rain", "half", "tail")
HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def us(text: str) -> int:
    return int(np.datetime64(text, "us").astype(np.int64))


def stations(seed: int, places: int, start: str, days: int) -> pd.DataFrame:
    """Hourly rows with gaps: on a grid of 0.1, mostly zero, half absent and related, heavy-tailed."""
    random = np.random.default_rng(seed)
    latitude, longitude = random.uniform(35, 60, places), random.uniform(-10, 30, places)
    place, hour = (each.ravel() for each in np.meshgrid(np.arange(places), np.arange(days * 24), indexing="ij"))
    there = random.random(place.size) < 0.95
    place, hour = place[there], hour[there]
    count = place.size
    season = 8 * np.sin(hour / 24 / 58) + 4 * np.sin(hour / 24 * 2 * np.pi)
    temp = np.round(5 + place * 0.7 + season + random.normal(0, 3, count), 1)
    return pd.DataFrame(
        {
            "lat": latitude[place],
            "lon": longitude[place],
            "ts": pd.to_datetime(us(start) + hour * HOUR_US, unit="us", utc=True),
            "temp": temp,
            "rain": np.where(random.random(count) < 0.85, 0.0, random.lognormal(0, 1.5, count)),
            "half": np.where(random.random(count) < 0.5, np.nan, 100 - 2 * temp + random.normal(0, 5, count)),
            "tail": random.standard_t(1.5, count) * 10,
        }
    )


def spec(memory: int | str, features: tuple[str, ...] = FEATURES, timezone: str = "UTC") -> Spec:
    return Spec("lat", "lon", "ts", features, memory=memory, timezone=timezone)


def build(rows: pd.DataFrame, place: Path, made: Spec, **options):
    return syn.build(pa.Table.from_pandas(rows, preserve_index=False), made, place, progress=False, **options)


# --- the truth --------------------------------------------------------------------------------------------------------

OF_ONE = {
    "COUNT": "count({0})",
    "SUM": "sum({0})",
    "MEAN": "avg({0})",
    "MIN": "min({0})",
    "MAX": "max({0})",
    "STD": "stddev_pop({0})",
    "VAR": "var_pop({0})",
}
OF_TWO = {"CORRELATION": "corr({0}, {1})", "COVARIANCE": "covar_pop({0}, {1})"}


class Rows:
    """Rows to ask in DuckDB."""

    def __init__(self, frame: pd.DataFrame, timezone: str = "UTC") -> None:
        self.frame = frame
        latitude, longitude = (frame[name].to_numpy(np.float64) for name in ("lat", "lon"))
        local = frame.ts.dt.tz_convert(timezone).dt.tz_localize(None)
        table = pa.Table.from_pandas(frame.drop(columns="ts"), preserve_index=False)  # NaN becomes null
        table = table.append_column("us", pa.array(frame.ts.to_numpy("datetime64[us]").astype(np.int64)))
        table = table.append_column("local_us", pa.array(local.to_numpy("datetime64[us]").astype(np.int64)))
        cells = geohash.to_text(geohash.encode(latitude, longitude, 40), 8)
        self.places = sorted(set(zip(latitude.tolist(), longitude.tolist(), cells.tolist(), strict=True)))
        number = {place[:2]: at for at, place in enumerate(self.places)}
        table = table.append_column("cell", pa.array(cells.tolist()))
        table = table.append_column(
            "place", pa.array([number[each] for each in zip(latitude.tolist(), longitude.tolist(), strict=True)])
        )
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.register("given", table)
        self.connection.execute("CREATE TABLE rows AS SELECT * FROM given")

    def answers(self, columns: list[str], where: str, group: str = "") -> list[tuple]:
        query = f"SELECT {', '.join(columns)} FROM rows WHERE {where} {group}"
        return self.connection.execute(query).fetchall()


def truth_of(statistic: str) -> str:
    """A statistic in the words of DuckDB."""
    if statistic == "COUNT(*)":
        return "count(*)"
    name, inside = statistic[:-1].split("(")
    arguments = inside.split(", ")
    if name == "QUANTILE":
        return f"quantile_cont({arguments[0]}, {arguments[1]})"
    return (OF_ONE | OF_TWO)[name].format(*arguments)


# --- random questions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A question and the same condition for DuckDB."""

    statistics: list[str]
    asked: str
    meant: str

    @property
    def text(self) -> str:
        return f"SELECT {', '.join(self.statistics)}" + (f" WHERE {self.asked}" if self.asked else "")


@dataclass
class Questioner:
    """Makes questions of all kinds about some rows."""

    rows: Rows
    features: tuple[str, ...]
    random: np.random.Generator
    quantiles: dict[str, np.ndarray] = field(default_factory=dict)

    def number(self, feature: str) -> float:
        """A value of the feature, one near it, or one on a grid."""
        if feature not in self.quantiles:
            values = self.rows.frame[feature].dropna().to_numpy(np.float64)
            self.quantiles[feature] = values if values.size else np.zeros(1)
        value = float(self.random.choice(self.quantiles[feature]))
        kind = self.random.integers(4)
        return [value, round(value, 1), round(value), value * 1.01 + 0.003][kind]

    def predicate(self, depth: int = 0) -> str:
        feature = str(self.random.choice(self.features))
        one, two = sorted((self.number(feature), self.number(feature)))
        kinds = [
            f"{feature} {self.random.choice(['<', '<=', '>', '>=', '=', '<>'])} {one!r}",
            f"{feature} BETWEEN {one!r} AND {two!r}",
            f"{feature} NOT BETWEEN {one!r} AND {two!r}",
            f"{feature} IN ({one!r}, {two!r})",
            f"{feature} IS {self.random.choice(['', 'NOT '])}NULL",
        ]
        chosen = int(self.random.choice(len(kinds) + 2, p=[0.3, 0.2, 0.05, 0.1, 0.1, 0.15, 0.1]))
        if chosen < len(kinds):
            return kinds[chosen]
        if chosen == len(kinds) and depth < 2:
            return f"({self.predicate(depth + 1)} OR {self.predicate(depth + 1)})"
        return f"NOT ({self.predicate(depth + 1)})" if depth < 2 else kinds[0]

    def where_it_is(self) -> tuple[str, str]:
        latitude, longitude, cell = self.rows.places[self.random.integers(len(self.rows.places))]
        kind = self.random.integers(5)
        size = float(self.random.choice([0.01, 5.0, 20.0]))
        if kind == 0:
            return "", "true"
        if kind == 1:
            prefix = cell[: int(self.random.integers(1, 6))]
            return f"location LIKE '{prefix}%'", f"cell LIKE '{prefix}%'"
        if kind == 2:
            _, _, other = self.rows.places[self.random.integers(len(self.rows.places))]
            return (
                f"location IN ('{cell[:3]}', '{other[:4]}')",
                f"(cell LIKE '{cell[:3]}%' OR cell LIKE '{other[:4]}%')",
            )
        if kind == 3:
            south, west, north, east = latitude - size, longitude - size, latitude + size, longitude + size
            box = f"lat BETWEEN {south!r} AND {north!r} AND lon BETWEEN {west!r} AND {east!r}"
            return f"BOX({south!r}, {west!r}, {north!r}, {east!r})", box
        corners = [(longitude - size, latitude - size), (longitude + 2 * size, latitude), (longitude, latitude + size)]
        polygon = shapely.Polygon([(lon, float(np.clip(lat, -89, 89))) for lon, lat in corners])
        held = [at for at, (lat, lon, _) in enumerate(self.rows.places) if shapely.contains_xy(polygon, lon, lat)]
        return (
            f"WITHIN('{shapely.to_wkt(polygon, rounding_precision=-1)}')",
            f"place IN ({', '.join(map(str, held)) or -1})",
        )

    def when(self, whole: bool = False) -> tuple[str, str]:
        """Whole days in UTC, or any instants; sometimes nothing is there."""
        first, last = self.rows.frame.ts.min(), self.rows.frame.ts.max()
        span_us = int((last - first) / timedelta(microseconds=1)) + 2 * DAY_US
        kind = 1 if whole else self.random.integers(5)
        if kind == 0:
            return "", "true"
        one, two = sorted(int(each) for each in self.random.integers(0, span_us, 2))
        base = int((first.to_pydatetime() - EPOCH) / timedelta(microseconds=1)) - DAY_US
        one, two = base + one, base + two
        if kind in (1, 2):
            one, two = (each // DAY_US * DAY_US for each in (one, two))
        if kind == 3:
            two = one + int(self.random.integers(1, 3 * HOUR_US))
        texts = [(EPOCH + timedelta(microseconds=each)).strftime("%Y-%m-%dT%H:%M:%S.%fZ") for each in (one, two)]
        return f"time >= '{texts[0]}' AND time < '{texts[1]}'", f"us >= {one} AND us < {two}"

    def statistics(self) -> list[str]:
        one, two = (str(each) for each in self.random.choice(self.features, 2))
        pool = [f"{name}({one})" for name in OF_ONE] + [f"{name}({one}, {two})" for name in OF_TWO]
        pool += [f"QUANTILE({one}, {share})" for share in (0.0, 0.05, 0.5, 0.9, 1.0)]
        return ["COUNT(*)", *dict.fromkeys(self.random.choice(pool, 4).tolist())]

    def question(self) -> Question:
        parts = [self.where_it_is(), self.when()]
        parts += [(each, each) for each in (self.predicate() for _ in range(self.random.integers(4)))]
        return Question(
            self.statistics(),
            " AND ".join(asked for asked, _ in parts if asked),
            " AND ".join(f"({meant})" for _, meant in parts),
        )


# --- the exam ---------------------------------------------------------------------------------------------------------


@dataclass
class Exam:
    """What answers got wrong, and how often intervals at 95% held."""

    wrong: list[str] = field(default_factory=list)
    tried: int = 0
    held: int = 0

    def value(self, found: Value, truth: float | None, where: str) -> None:
        truth = None if truth is None or math.isnan(truth) else float(truth)
        if found.estimate is None or found.low is None or found.high is None:
            if found.guarantee in ("exact", "certain") and truth is not None:
                self.wrong.append(f"{where}: {found} for {truth}")
            return
        if not found.low <= found.estimate <= found.high:
            self.wrong.append(f"{where}: estimate outside, {found}")
        if truth is None:
            return
        slack = 1e-9 * max(abs(truth), abs(found.low), abs(found.high))
        inside = found.low - slack <= truth <= found.high + slack
        if found.guarantee in ("exact", "certain") and not inside:
            self.wrong.append(f"{where}: {found} misses {truth!r}")
        if found.guarantee == "exact" and abs(found.estimate - truth) > slack:
            self.wrong.append(f"{where}: {found} is not {truth!r}")
        likely = (found.low, found.high) if found.guarantee == "p95" else found.p95
        if likely is not None:
            self.tried += 1
            self.held += likely[0] - slack <= truth <= likely[1] + slack

    def question(self, database: Database, rows: Rows, question: Question) -> None:
        truths = rows.answers([truth_of(each) for each in question.statistics], question.meant)[0]
        answer = database.query(question.text)
        for statistic, truth in zip(question.statistics, truths, strict=True):
            self.value(answer[statistic], truth, f"{statistic} of {question.text}")

    def passed(self, least: float = 0.85) -> None:
        assert not self.wrong, f"{len(self.wrong)} wrong, among them:\n" + "\n".join(self.wrong[:8])
        assert self.tried == 0 or self.held / self.tried >= least, f"{self.held} of {self.tried} held"


def examine(database: Database, rows: Rows, count: int, seed: int, features: tuple[str, ...] = FEATURES) -> Exam:
    questioner, exam = Questioner(rows, features, np.random.default_rng(seed)), Exam()
    for _ in range(count):
        exam.question(database, rows, questioner.question())
    return exam


def examine_groups(
    database: Database, rows: Rows, keys: list[str], where: tuple[str, str] = ("", "true"), feature: str = "temp"
) -> None:
    """Every group of the rows is in the answer, and all its certain intervals hold."""
    statistics = ["COUNT(*)", f"COUNT({feature})", f"MEAN({feature})", f"MAX({feature})", f"SUM({feature})"]
    names = [f"key{at}" for at in range(len(keys))]
    selected = [f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]
    condition = f" WHERE {where[0]}" if where[0] else ""
    answer = database.query(f"SELECT {', '.join(selected + statistics)}{condition} GROUP BY {', '.join(keys)}")
    known = ", ".join(KEYS[key] for key in keys)
    truths = {
        row[: len(keys)]: row[len(keys) :]
        for row in rows.answers([known, *map(truth_of, statistics)], where[1], f"GROUP BY {known}")
    }
    exam = Exam()
    found = {}
    for row in answer:
        key = tuple(ordinal(asked, row[name]) for asked, name in zip(keys, names, strict=True))
        assert key not in found
        found[key] = row
        for statistic, truth in zip(statistics, truths.get(key, (0, 0, None, None, None)), strict=True):
            exam.value(row[statistic], truth, f"{statistic} of {key}")
    exam.passed(least=0.0)
    assert set(truths) <= set(found)
    if not where[0]:
        assert all(row["COUNT(*)"].guarantee == "exact" for row in found.values())
        assert sum(row["COUNT(*)"].estimate for row in found.values()) == len(rows.frame)


#: Group keys as DuckDB computes them.
KEYS = {
    "CELL(2)": "substr(cell, 1, 2)",
    "CELL(4)": "substr(cell, 1, 4)",
    "BUCKET('2d')": f"CAST(floor(local_us / {2 * DAY_US}) AS BIGINT)",
    "BUCKET('1d')": f"CAST(floor(local_us / {DAY_US}) AS BIGINT)",
    "BUCKET('1mo')": "strftime(make_timestamp(local_us), '%Y-%m')",
    "BUCKET('1y')": "year(make_timestamp(local_us))",
}


def ordinal(asked: str, key: object) -> object:
    if not isinstance(key, datetime):
        return key
    if "mo" in asked:
        return key.strftime("%Y-%m")
    wall = (key.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    return wall // (2 * DAY_US if "2d" in asked else DAY_US)


# --- ticks ------------------------------------------------------------------------------------------------------------


def kinds() -> dict[str, np.ndarray]:
    """Values of many kinds, absent ones among them."""
    random = np.random.default_rng(5)
    count = 600
    normal = random.normal(size=count)
    grid = np.round(20 + 6 * normal, 1)
    found = {
        "smooth": normal,
        "grid": grid,
        "float32": grid.astype(np.float32).astype(np.float64),
        "rain": np.where(random.random(count) < 0.8, 0.0, np.abs(normal)),
        "atoms": np.where(random.random(count) < 0.8, random.choice([1.5, 2.25, np.pi], count), normal),
        "tail": random.standard_cauchy(count) * 1e6,
        "orders": 10.0 ** random.uniform(-300, 300, count),
        "subnormal": random.uniform(0, 1e-309, count),
        "constant": np.full(count, 21.7),
        "absent": np.full(count, np.nan),
    }
    return {name: np.where(random.random(count) < 0.05, np.nan, values) for name, values in found.items()}


def test_spark_and_numpy_give_every_value_the_same_tick(spark: SparkSession) -> None:
    columns, ticks = {}, {}
    for name, values in kinds().items():
        with np.errstate(all="ignore"):
            ticks[name] = Scales.fit(values[None, :]).ticks[0]
        edges = ticks[name].origin + np.arange(90) * ticks[name].step
        places = np.concatenate((values, edges, ticks[name].atoms, [0.0, -0.0, 1.7e308, -1.7e308, 5e-324, -5e-324]))
        near = np.concatenate((places, np.nextafter(places, np.inf), np.nextafter(places, -np.inf)))
        columns[name] = np.resize(near[~np.isinf(near)], 2_400)
    ticks["wide"] = Ticks(-1.7e308, 5e303, (0.0, 1.0))
    columns["wide"] = np.resize(np.array([-1.7e308, -1.0, -0.0, 0.0, 5e-324, 1.0, 1e300, 1.7e308, np.nan]), 2_400)
    _assert_same_ticks(spark, columns, ticks, {})
    # Where no value lies too far out, Spark counts in whole numbers.
    near, ends = {}, {}
    for name, values in columns.items():
        with np.errstate(all="ignore"):
            far = ~(np.abs(values / 2 - ticks[name].origin / 2) < 2.0**60 * ticks[name].step)
        near[name] = np.where(far, np.nan, values)
        ends[name] = float(np.nanmin(near[name], initial=0.0)), float(np.nanmax(near[name], initial=0.0))
    _assert_same_ticks(spark, near, ticks, ends)


def _assert_same_ticks(spark: SparkSession, columns: dict, ticks: dict, ends: dict) -> None:
    table = pa.table({name: pa.array(values, mask=np.isnan(values)) for name, values in columns.items()})
    frame = spark.createDataFrame(table).select(
        *(sf.expr(ticked(name, ticks[name], *ends.get(name, ()))).alias(name) for name in columns)
    )
    found = frame.toArrow()
    for name, values in columns.items():
        expected = ticks[name].of(values)
        there = found[name].to_numpy()
        assert np.array_equal(np.sort(there), np.sort(expected)), name
        assert (there == ABSENT_TICK).sum() == np.isnan(values).sum(), name
    assert found.schema.types == [pa.int64()] * len(columns)


# --- sketches that grow -----------------------------------------------------------------------------------------------

MEMORY = 36_000


@dataclass(frozen=True)
class Stage:
    """A sketch after a batch, the rows that it holds, and what the build said."""

    database: Database
    rows: Rows
    report: syn.Report


def later() -> pd.DataFrame:
    """Other times of some of the places and of new ones; values beyond all ends; seven rows without place or time."""
    first = stations(0, 20, "2024-01-01", 60)
    known = first[first.lat.isin(first.lat.unique()[:10])].iloc[::3]
    known = known.assign(ts=known.ts + pd.Timedelta(days=60), temp=known.temp + 15.0, tail=known["tail"] * 10)
    new = stations(9, 5, "2024-02-20", 20)
    new = new.assign(rain=new.rain - 3.0, half=-5.0)
    return pd.concat([known, new], ignore_index=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paths") / "w.syn"


@pytest.fixture(scope="module")
def grown(spark: SparkSession, place: Path) -> list[Stage]:
    """Three batches: new places and rejected rows in the second, the instants of the first again in the third."""
    second = later()
    lost = second.iloc[:7].assign(lat=[None, 99.0, math.nan, 5.0, 5.0, 5.0, 5.0], ts=[*second.ts[:6], pd.NaT])
    lost.loc[lost.index[3:6], "lon"] = [181.0, math.nan, math.inf]
    third = stations(0, 20, "2024-01-01", 60).iloc[::5].assign(half=200.0)
    stages, rows = [], []
    for number, (batch, aside) in enumerate(((stations(0, 20, "2024-01-01", 60), None), (second, lost), (third, None))):
        rows.append(batch)
        given = batch if aside is None else pd.concat([batch, aside], ignore_index=True)
        report = build(given, place, spec(MEMORY), batch=f"batch {number}")
        stages.append(Stage(syn.open(place), Rows(pd.concat(rows, ignore_index=True)), report))
    return stages


@pytest.fixture(scope="module")
def exams(grown: list[Stage]) -> list[Exam]:
    """What each stage answers to its own questions."""
    return [examine(stage.database, stage.rows, 120, seed=seed) for seed, stage in enumerate(grown)]


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_whatever_is_asked_what_is_certain_holds_after_every_batch(exams: list[Exam], stage: int) -> None:
    exams[stage].passed(least=0.0)


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_intervals_at_95_mostly_hold_after_every_batch(exams: list[Exam], stage: int) -> None:
    """After the second, too, whose values reach beyond the ends of the first."""
    exams[stage].passed()


def test_the_budget_holds_after_every_batch_and_only_a_part_of_the_paths_stays(grown: list[Stage]) -> None:
    for stage in grown:
        assert stage.report.kind == "strata"
        assert stage.report.sketch_bytes == stage.database.nbytes <= MEMORY
        assert stage.database.rows == len(stage.rows.frame)
        summary = stage.database.summary
        assert summary is not None
        assert 0.01 < summary.paths / summary.rows < 0.95
    first = grown[0].database.summary
    assert first is not None
    assert first.latitude.size == 20  # each station by itself


def test_rows_without_place_or_time_are_set_aside_and_counted(grown: list[Stage], place: Path) -> None:
    assert [stage.report.rejected for stage in grown] == [0, 7, 0]
    assert grown[1].report.rows == len(later())
    assert grown[2].database.rejects().num_rows == 7
    assert sum(grown[1].report.reasons.values()) == 7
    strict = stations(3, 1, "2024-01-01", 1).assign(lat=np.nan)
    strict.loc[0, "lat"] = 1.0
    with pytest.raises(RowsRejected):
        build(strict, place, spec(MEMORY), strict=True)


def test_every_batch_learns_anew_how_far_paths_err(grown: list[Stage]) -> None:
    learnt = [stage.database.summary.effects for stage in grown if stage.database.summary is not None]
    assert None not in learnt
    assert len({each.shares for each in learnt if each is not None}) == 3
    assert all(0.2 <= each.shares <= 5.0 for each in learnt if each is not None)


def test_the_same_batch_twice_changes_nothing(grown: list[Stage], place: Path) -> None:
    report = build(later(), place, spec(MEMORY), batch="batch 1")
    assert (report.repeated, report.rows, report.kind) == (True, 0, "strata")
    assert report.sketch_bytes == grown[2].report.sketch_bytes
    assert syn.open(place).rows == len(grown[2].rows.frame)


@pytest.mark.parametrize("stage", [0, 2])
def test_whole_days_without_predicates_are_counted_exactly(grown: list[Stage], stage: int) -> None:
    now = grown[stage]
    questioner = Questioner(now.rows, FEATURES, np.random.default_rng(8))
    for _ in range(40):
        (here, meant_here), (when, meant_when) = questioner.where_it_is(), questioner.when(whole=True)
        found = now.database.query(f"SELECT COUNT(*) WHERE {' AND '.join(each for each in (here, when) if each)}")
        truth = now.rows.answers(["count(*)"], f"{meant_here} AND {meant_when}")[0][0]
        value = found["COUNT(*)"]
        assert (value.estimate, value.low, value.high, value.guarantee) == (truth, truth, truth, "exact")


@pytest.mark.parametrize(
    ("stage", "where", "keys"),
    [
        (0, "", ["CELL(2)"]),
        (0, "", ["CELL(4)", "BUCKET('1mo')"]),
        (0, "", ["BUCKET('1d')"]),
        (0, "temp > 8 AND (rain = 0 OR half IS NULL)", ["CELL(4)", "BUCKET('1mo')"]),
        (0, "temp > 8 AND (rain = 0 OR half IS NULL)", ["BUCKET('2d')"]),
        (2, "", ["CELL(4)", "BUCKET('1mo')"]),
        (2, "", ["BUCKET('1d')"]),
        (2, "", ["BUCKET('2d')"]),
        (2, "NOT (tail BETWEEN -5 AND 5)", ["CELL(2)"]),
        (2, "NOT (tail BETWEEN -5 AND 5)", ["BUCKET('1d')"]),
    ],
    ids=str,
)
def test_groups_have_their_rows(grown: list[Stage], keys: list[str], where: str, stage: int) -> None:
    examine_groups(grown[stage].database, grown[stage].rows, keys, (where, where or "true"))


def test_groups_are_ordered_and_cut(grown: list[Stage]) -> None:
    database, rows = grown[0].database, grown[0].rows
    text = "SELECT CELL(4) AS cell, COUNT(*) AS n, MEAN(temp) AS warm GROUP BY CELL(4)"
    every = database.query(text).rows
    assert [row["cell"] for row in every] == sorted(row["cell"] for row in every)
    assert len(every) == len({cell[:4] for _, _, cell in rows.places})
    warmest = database.query(f"{text} ORDER BY warm DESC LIMIT 3").rows
    expected = sorted(every, key=lambda row: -row["warm"].estimate)[:3]
    assert [row["cell"] for row in warmest] == [row["cell"] for row in expected]
    last = database.query(f"{text} ORDER BY cell DESC LIMIT 1").rows
    assert [row["cell"] for row in last] == [every[-1]["cell"]]
    most = database.query(f"{text} ORDER BY COUNT(half) DESC, cell LIMIT 100").rows
    assert len(most) == len(every)
    assert len(database.query(f"{text} LIMIT 0")) == 0
    undefined = database.query(
        "SELECT BUCKET('1d') AS day, MEAN(half) AS m WHERE half > 140 GROUP BY BUCKET('1d') ORDER BY m"
    ).rows
    there = [row["m"].estimate is not None for row in undefined]
    assert there == sorted(there, reverse=True)


@pytest.mark.parametrize(
    "where",
    [
        "location LIKE 'zz%'",
        "BOX(-80, 100, -70, 110)",
        "time < '1990-01-01'",
        "time >= '2030-01-01'",
        "time >= '2024-02-01' AND time < '2024-01-01'",
        "WITHIN('POLYGON ((0 -80, 1 -80, 0 -79, 0 -80))')",
        "lat BETWEEN 3 AND 2",
    ],
)
def test_a_scope_without_rows_has_none_for_certain(grown: list[Stage], where: str) -> None:
    statistics = ["COUNT(*)", "COUNT(temp)", "SUM(temp)", "MEAN(rain)", "MIN(half)", "MAX(tail)", "STD(temp)"]
    statistics += ["VAR(rain)", "CORRELATION(temp, half)", "COVARIANCE(temp, rain)", "QUANTILE(temp, 0.5)"]
    for database in (grown[0].database, grown[2].database):
        answer = database.query(f"SELECT {', '.join(statistics)} WHERE {where} AND temp > 0")
        assert [answer[name].estimate for name in statistics] == [0, 0] + [None] * 9
        assert len(database.query(f"SELECT COUNT(*) WHERE {where} GROUP BY BUCKET('1d')")) == 0


@pytest.mark.parametrize(
    "where", ["temp > 500", "temp < 5 AND temp > 6", "rain IN (-77)", "NOT (rain IS NULL OR rain IS NOT NULL)"]
)
def test_a_condition_that_no_value_can_meet_selects_nothing_for_certain(grown: list[Stage], where: str) -> None:
    answer = grown[0].database.query(f"SELECT COUNT(*), COUNT(temp), MEAN(temp), MAX(rain), STD(temp) WHERE {where}")
    assert (answer["COUNT(*)"].low, answer["COUNT(*)"].high, answer["COUNT(*)"].guarantee) == (0, 0, "exact")
    assert answer["COUNT(temp)"].high == 0
    for name in ("MEAN(temp)", "MAX(rain)", "STD(temp)"):
        assert answer[name].estimate is None, name


# --- odd sketches -----------------------------------------------------------------------------------------------------

ODD = ("temp", "constant", "absent", "tail")


def one_place() -> pd.DataFrame:
    """One place in São Paulo, before 1970: clocks skip a midnight in November and repeat an hour in March."""
    rows = stations(4, 1, "1967-10-20", 140)
    rows = rows.assign(lat=-23.5, lon=-46.6, constant=273.15, absent=np.nan)
    return rows[["lat", "lon", "ts", *ODD]].astype({"absent": "float64"})


@pytest.fixture(scope="module")
def odd(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    place, zone = tmp_path_factory.mktemp("odd") / "w.syn", "America/Sao_Paulo"
    report = build(one_place(), place, spec(24_000, ODD, zone))
    return Stage(syn.open(place), Rows(one_place(), zone), report)


def test_one_place_before_1970_in_a_zone_whose_clocks_change(odd: Stage) -> None:
    assert odd.report.kind == "strata"
    examine(odd.database, odd.rows, 120, seed=3, features=ODD).passed()


@pytest.mark.parametrize(
    ("keys", "where"),
    [
        (["BUCKET('1d')"], ""),
        (["BUCKET('1mo')"], ""),
        (["BUCKET('2d')"], "temp > 8"),
        (["BUCKET('1d')"], "absent IS NULL AND tail < 3"),
    ],
    ids=str,
)
def test_buckets_are_those_of_the_zone(odd: Stage, keys: list[str], where: str) -> None:
    examine_groups(odd.database, odd.rows, keys, (where, where or "true"))


def test_a_constant_and_an_absent_feature(odd: Stage) -> None:
    rows = len(odd.rows.frame)
    text = "SELECT COUNT(constant), MEAN(constant), MIN(constant), MAX(constant), SUM(constant), STD(constant)"
    answer = odd.database.query(text + ", QUANTILE(constant, 0.3)")
    assert answer["COUNT(constant)"].estimate == rows
    for name in ("MEAN(constant)", "MIN(constant)", "MAX(constant)", "QUANTILE(constant, 0.3)"):
        assert answer[name].estimate == pytest.approx(273.15, rel=1e-9), name
        assert answer[name].high - answer[name].low <= 1e-6, name
    assert answer["SUM(constant)"].estimate == pytest.approx(273.15 * rows, rel=1e-9)
    assert answer["STD(constant)"].estimate == pytest.approx(0.0, abs=1e-3)
    absent = odd.database.query(
        "SELECT COUNT(absent), MEAN(absent), MAX(absent), STD(absent), CORRELATION(absent, temp)"
    )
    assert (absent["COUNT(absent)"].estimate, absent["COUNT(absent)"].guarantee) == (0, "exact")
    for name in ("MEAN(absent)", "MAX(absent)", "STD(absent)", "CORRELATION(absent, temp)"):
        assert absent[name].estimate is None, name
    assert odd.database.query("SELECT COUNT(*) WHERE absent IS NULL")["COUNT(*)"].estimate == rows
    assert odd.database.query("SELECT COUNT(*) WHERE NOT absent > 3")["COUNT(*)"].high == 0
    assert odd.database.query("SELECT COUNT(*) WHERE constant = 273.15")["COUNT(*)"].estimate == rows


def test_a_sketch_of_one_row(spark: SparkSession, tmp_path: Path) -> None:
    row = stations(1, 1, "2024-05-05T05:00", 1).iloc[:1].assign(half=7.5)
    report = build(row, tmp_path / "w.syn", spec("100KB"))
    assert (report.rows, report.leaves, report.kind) == (1, 1, "strata")
    database = syn.open(tmp_path / "w.syn")
    examine(database, Rows(row), 40, seed=5).passed()
    answer = database.query("SELECT COUNT(*), MEAN(temp), MIN(tail), MAX(tail), QUANTILE(half, 0.5)")
    assert answer["COUNT(*)"].estimate == 1
    assert answer["MEAN(temp)"].estimate == pytest.approx(row.temp.iloc[0])
    assert answer["MIN(tail)"].estimate == answer["MAX(tail)"].estimate == row["tail"].iloc[0]
    assert answer["QUANTILE(half, 0.5)"].estimate == 7.5


@pytest.mark.parametrize("most", [1_000_000, 2_000])
def test_of_few_places_with_many_rows_one_is_looked_at_where_none_is_drawn(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Years of minutes: the rows of a place that are drawn for scales do not tell how many days it has."""
    rows = stations(9, 4, "2024-01-01", 200)
    build(rows, tmp_path / "drawn.syn", spec(20_000))
    monkeypatch.setattr(paths, "_PLACE_ROWS", 0)
    monkeypatch.setattr(paths, "_SCALE_ROWS", 500)
    monkeypatch.setattr(paths, "_MOST_PLACE_ROWS", most)
    build(rows, tmp_path / "none.syn", spec(20_000))
    drawn, none = (syn.open(tmp_path / name) for name in ("drawn.syn", "none.syn"))
    assert none.summary is not None
    assert not none.summary.layout.moving
    assert none.summary.latitude.size == drawn.summary.latitude.size == 4
    assert none.summary.layout.kept == pytest.approx(drawn.summary.layout.kept, rel=0.5)
    whole = "SELECT COUNT(*) WHERE time >= '2024-02-01' AND time < '2024-03-01'"
    assert none.query(whole)["COUNT(*)"].guarantee == "exact"
    assert none.query(whole)["COUNT(*)"].estimate == drawn.query(whole)["COUNT(*)"].estimate


def test_a_place_of_which_only_some_rows_are_drawn_is_asked_for_whole() -> None:
    rows = stations(9, 4, "2024-01-01", 20)
    names = {"latitude": rows.lat, "longitude": rows.lon, "local_us": np.arange(len(rows)) * HOUR_US}
    flags = {"in_scales": np.ones(len(rows), bool), "in_places": np.zeros(len(rows), bool)}
    table = pa.table({name: np.asarray(each) for name, each in {**names, **flags, "value_0": rows.temp}.items()})
    ends = {"low": np.array([-50.0]), "high": np.array([50.0])}
    (made,) = paths._probed(iter(table.to_batches()), **ends, memory=60_000, room=0, rows=4 * len(rows))
    place = pickle.loads(made["plan"][0].as_py())
    assert (place.latitude, place.longitude) == (rows.lat.iloc[0], rows.lon.iloc[0])
    assert place.share == pytest.approx(0.25, abs=0.02)
    assert place.first_us == 0
    assert f"<= {place.last_us}L" in place.rows_of_it("local_us", 4 * len(rows))
    until = int(place.rows_of_it("local_us", round(2_000_000 / place.share)).split("<= ")[1].split("L")[0])
    assert until == pytest.approx(place.last_us / 2, rel=1e-4)


def test_two_builds_at_once_both_land(spark: SparkSession, tmp_path: Path) -> None:
    """The second one finds the layout of the first, or takes its turn."""
    parts = [stations(seed, 4, "2024-01-01", 20) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda part: build(part, tmp_path / "w.syn", spec(24_000)), parts))
    assert [report.rows for report in reports] == [len(part) for part in parts]
    database = syn.open(tmp_path / "w.syn")
    assert database.rows == sum(map(len, parts))
    assert database.nbytes <= 24_000
    examine(database, Rows(pd.concat(parts, ignore_index=True)), 60, seed=6).passed()


def test_a_budget_too_small_for_anything_is_refused_with_its_bytes(spark: SparkSession, tmp_path: Path) -> None:
    rows = stations(1, 20, "2024-01-01", 2)
    with pytest.raises(BudgetTooSmall, match=r"takes [\d,]+ bytes and memory is 90"):
        build(rows, tmp_path / "w.syn", spec(90))
    assert not (tmp_path / "w.syn").exists()


def test_the_memory_that_a_refusal_names_is_enough_though_strands_would_take_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = stations(2, 40, "2001-01-01", 20)
    rows = rows.assign(lat=rows.lat * 3 - 130, lon=rows.lon * 8 - 80, ts=over_years(rows.ts))
    with pytest.raises(BudgetTooSmall, match="the smallest sketch takes") as told:
        build(rows, tmp_path / "w.syn", spec(4_000))
    assert not (tmp_path / "w.syn").exists()
    report = build(rows, tmp_path / "w.syn", spec(told.value.needed_bytes))
    assert report.kind == "strata"
    assert 4_000 < report.sketch_bytes <= told.value.needed_bytes


def over_years(times: pd.Series) -> pd.Series:
    """Days become months: as many years of strands as there can be."""
    return times.min() + (times - times.min()) * 200


def test_a_budget_too_small_for_paths_keeps_strands_that_say_so(spark: SparkSession, tmp_path: Path) -> None:
    rows = stations(1, 20, "2024-01-01", 2)
    report = build(rows, tmp_path / "w.syn", spec(3_000))
    assert (report.kind, report.rows) == ("strands", len(rows))
    assert report.sketch_bytes <= 3_000
    database = syn.open(tmp_path / "w.syn")
    assert database.query("SELECT COUNT(*)")["COUNT(*)"].estimate == len(rows)
    with pytest.raises(NotKept, match="paths, which this sketch does not keep"):
        database.query("SELECT COUNT(*) WHERE temp > 3")


# --- real rows --------------------------------------------------------------------------------------------------------


def test_four_years_of_american_weather_in_eighty_thousand_bytes(
    spark: SparkSession, shared_data: Path, tmp_path: Path
) -> None:
    source, features = shared_data / "us_weather_daily_1990_1993.parquet", ("Precip", "TDP", "Tmax", "Tmin")
    made = Spec("lat", "lon", "date", features, memory=80_000)
    report = syn.build(source, made, tmp_path / "w.syn", progress=False)
    assert report.sketch_bytes <= 80_000
    frame = pd.read_parquet(source).rename(columns={"date": "ts"}).drop(columns="id")
    frame = frame.assign(ts=frame.ts.dt.tz_localize("UTC"))
    database = syn.open(tmp_path / "w.syn")
    assert database.rows == len(frame)
    examine(database, Rows(frame), 60, seed=7, features=features).passed()


def test_a_summary_stays_though_another_build_has_put_its_own_just_before_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the other one put is no commit's, and what ours put is no longer the last of its table."""
    rows = pa.table({"lat": [1.0, 2.0] * 30, "lon": [3.0, 4.0] * 30, "ts": list(range(60)), "x": np.arange(60.0)})
    spec = Spec("lat", "lon", "ts", ["x"], time_unit="s")
    place, commit = tmp_path / "w.syn", Store.commit

    def overtaken(store: Store, *arguments: Any, **named: Any) -> bool:
        other = new_attempt()
        store.put_summary(
            write_file(pa.table({"part": [], "facts": [], "frames": []}, SCHEMA), store.paths_place, other)
        )
        return commit(store, *arguments, **named)

    monkeypatch.setattr(Store, "commit", overtaken)
    syn.build(rows, spec, place, batch="first", progress=False)
    monkeypatch.undo()
    assert syn.open(place).query("SELECT COUNT(*)")["COUNT(*)"].estimate == 60
    syn.build(rows, spec, place, batch="second", progress=False)
    assert syn.open(place).query("SELECT COUNT(*)")["COUNT(*)"].estimate == 120


# --- spells -----------------------------------------------------------------------------------------------------------


def sparse(seed: int, start: str, days: int) -> pd.DataFrame:
    """Sixty sites that report about every other day, by chance, some of them before 1970."""
    random = np.random.default_rng(seed)
    sites = np.random.default_rng(1).uniform((36, -9), (43, 3), (60, 2))
    place, day = np.nonzero(random.random((60, days)) < 0.5)
    temp = np.round(15 + 8 * np.sin(day / 58) + place * 0.1 + random.normal(0, 3, day.size), 1)
    half = np.where(random.random(day.size) < 0.5, np.nan, 100 - 2 * temp + random.normal(0, 5, day.size))
    tail = random.standard_t(1.5, day.size) * 10
    when = pd.to_datetime(us(start) + day * DAY_US, unit="us", utc=True)
    rain = np.where(random.random(day.size) < 0.85, 0.0, random.lognormal(0, 1.5, day.size))
    columns = {"ts": when, "temp": temp, "rain": rain, "half": half, "tail": tail}
    return pd.DataFrame({"lat": sites[place, 0], "lon": sites[place, 1], **columns})


@pytest.fixture(scope="module", params=["UTC", "America/Sao_Paulo"])
def spelled(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> list[Stage]:
    """Days do not fit; a second batch goes on from the middle of the first."""
    place, rows, stages = tmp_path_factory.mktemp("spells") / "w.syn", [], []
    for batch in (sparse(2, "1968-03-01", 2_000), sparse(3, "1971-01-01", 1_500)):
        rows.append(batch)
        report = build(batch, place, spec(18_000, timezone=request.param), batch=f"batch {len(rows)}")
        stages.append(Stage(syn.open(place), Rows(pd.concat(rows, ignore_index=True), request.param), report))
    return stages


@pytest.mark.parametrize("stage", [0, 1])
def test_where_days_do_not_fit_what_is_certain_holds_by_spells(spelled: list[Stage], stage: int) -> None:
    database, rows = spelled[stage].database, spelled[stage].rows
    assert database.summary is not None
    assert not database.summary.layout.moving
    assert database.summary.layout.spell > 1
    assert spelled[stage].report.sketch_bytes == database.nbytes <= 18_000
    examine(database, rows, 120, seed=4).passed()


def test_whole_spells_are_counted_exactly_and_a_microsecond_less_is_not(spelled: list[Stage]) -> None:
    database, rows = spelled[1].database, spelled[1].rows
    assert database.summary is not None
    spell_us = database.summary.layout.spell * DAY_US
    epoch_day = us("1971-01-01") // spell_us * spell_us
    first, last = (
        int(pd.Timestamp(midnight, unit="us").tz_localize(database.layout.timezone).timestamp()) * 1_000_000
        for midnight in (epoch_day, epoch_day + 2 * spell_us)
    )
    for off in (0, 1, -1, DAY_US):
        for begin, end in ((first + off, last), (first, last + off)):
            texts = [(EPOCH + timedelta(microseconds=each)).strftime("%Y-%m-%dT%H:%M:%S.%fZ") for each in (begin, end)]
            found = database.query(f"SELECT COUNT(*) WHERE time >= '{texts[0]}' AND time < '{texts[1]}'")["COUNT(*)"]
            truth = rows.answers(["count(*)"], f"us >= {begin} AND us < {end}")[0][0]
            assert found.low <= truth <= found.high
            assert found.guarantee == ("certain" if off else "exact")


@pytest.mark.parametrize("keys", [["CELL(4)"], ["CELL(2)"]], ids=str)
def test_groups_of_places_are_exact_by_spells(spelled: list[Stage], keys: list[str]) -> None:
    examine_groups(spelled[1].database, spelled[1].rows, keys)


def test_buckets_that_cut_spells_are_certain_and_shorter_ones_are_answered_by_spells(spelled: list[Stage]) -> None:
    database, rows = spelled[1].database, spelled[1].rows
    assert database.summary is not None
    spell = database.summary.layout.spell
    truths = dict(rows.answers([KEYS["BUCKET('1y')"], "count(*)"], "true", "GROUP BY ALL"))
    found = database.query("SELECT BUCKET('1y') AS year, COUNT(*) AS n GROUP BY year").rows
    assert set(truths) <= {row["year"].year for row in found}
    for row in found:
        assert row["n"].low <= truths.get(row["year"].year, 0) <= row["n"].high
    days = database.query("SELECT BUCKET('1d') AS day, COUNT(*) AS n GROUP BY day")
    assert any(f"BUCKET('{spell}d') stands in" in note for note in days.notes)
    own = f"CAST(floor(local_us / {spell * DAY_US}) AS BIGINT)"
    counted = [count for _, count in rows.answers([own, "count(*)"], "true", f"GROUP BY {own} ORDER BY {own}")]
    assert [(row["n"].estimate, row["n"].guarantee) for row in days] == [(count, "exact") for count in counted]


def test_a_part_of_a_sketch_of_spells_answers_as_the_whole(spelled: list[Stage]) -> None:
    database = spelled[1].database
    where = "BOX(37, -8, 42, 2) AND time >= '1970-05-05' AND time < '1971-02-20'"
    part = database.select(f"SELECT temp WHERE {where}")
    whole = database.query(f"SELECT COUNT(*), MEAN(temp), SUM(temp) WHERE {where}")
    assert 0 < part.rows < database.rows
    for name, value in part.query("SELECT COUNT(*), MEAN(temp), SUM(temp)").rows[0].items():
        own = (value.estimate, value.low, value.high, *value.p95)
        assert own == pytest.approx((whole[name].estimate, whole[name].low, whole[name].high, *whole[name].p95))


def test_a_forecast_of_buckets_that_are_shorter_than_spells_is_refused_with_a_remedy(spelled: list[Stage]) -> None:
    database = spelled[1].database
    assert database.summary is not None
    with pytest.raises(NotKept, match=rf"FORECAST\(temp, '1y', '{database.summary.layout.spell}d'\)"):
        database.query("SELECT FORECAST(temp, '7d')")


def test_what_sketches_of_spells_tell_beside_answers(spelled: list[Stage]) -> None:
    database, rows = spelled[1].database, spelled[1].rows
    assert database.summary is not None
    spells = f"spells of {database.summary.layout.spell} days"
    assert database.info()["exact"]["count"] == f"places x {spells}"
    assert spells in str(database.explain("SELECT COUNT(*) WHERE time < '1970-05-05'"))
    drawn = database.synthesize(rows=500, where="time >= '1970-05-05' AND time < '1970-05-25'").to_pandas()
    assert drawn["ts"].between(pd.Timestamp("1970-05-04", tz="UTC"), pd.Timestamp("1970-05-26", tz="UTC")).all()
    assert len(rows.frame) == database.rows
