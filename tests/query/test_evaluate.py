"""Whole questions against the raw rows: exact where no strand is cut, certain intervals that hold where one is.

The rows hold what went wrong elsewhere: kelvin offsets, a feature that is always negative, a constant, rain that is
mostly zero, missing values, a pair that is opposed and a pair that is independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery, NotKept
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.query.answer import Answer
from synopsis.query.binding import bind
from synopsis.query.evaluate import ask, of_strands
from synopsis.query.finish import finish
from synopsis.query.language import read
from synopsis.query.tree import Question
from synopsis.query.values import Value
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands

FEATURES = ("kelvin", "depth", "constant", "rain", "opposed", "alone")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START_US = int((datetime(2024, 9, 20, tzinfo=UTC) - EPOCH).total_seconds()) * 1_000_000
DAYS = 60  # over the end of summer time in Paris


@dataclass(frozen=True, repr=False)
class Data:
    """Rows, and the strands made of them."""

    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    instants_us: NDArray[np.int64]
    values: NDArray[np.float64]
    strands: Strands

    @property
    def layout(self) -> Layout:
        return self.strands.layout

    def geohashes(self, length: int) -> NDArray[np.str_]:
        return geohash.to_text(geohash.encode(self.latitude, self.longitude, 5 * length), length)

    def feature(self, name: str) -> NDArray[np.float64]:
        return self.values[FEATURES.index(name)]


def made(bits: int, bucket: str, timezone: str = "UTC", seed: int = 0, rows: int = 1500) -> Data:
    """Some stations, some positions all over, some on the very edges of cells; times by the hour and in between."""
    rng = np.random.default_rng(seed)
    stations = rng.uniform([-40, -75], [60, 75], (12, 2))
    edges = np.array([[0.0, 0.0], [45.0, 45.0], [90.0, 180.0], [-90.0, -180.0], [11.25, 0.0], [5.625, 11.25]])
    roaming = rng.uniform([-89, -179], [89, 179], (20, 2))
    places = np.concatenate([stations, edges, roaming])[rng.integers(0, 38, rows)]
    places[: rows // 4] = stations[0] + rng.normal(0, 0.05, (rows // 4, 2))
    hours = rng.integers(0, 24 * DAYS, rows) * 3_600_000_000
    instants_us = START_US + np.where(rng.random(rows) < 0.5, hours, rng.integers(0, DAYS * 86_400_000_000, rows))
    kelvin = 285 + 10 * rng.normal(size=rows)
    values = np.stack(
        [
            kelvin,
            -50 - rng.gamma(2, 30, rows),
            np.full(rows, 273.15),
            np.where(rng.random(rows) < 0.8, 0.0, rng.gamma(1, 4, rows)),
            -3 * kelvin + rng.normal(size=rows),
            rng.normal(size=rows),
        ]
    )
    values[rng.random(values.shape) < 0.1] = math.nan
    values[5, : rows // 3] = math.nan
    layout = Layout(FEATURES, bits, bucket, timezone)
    latitude, longitude = places.T
    return Data(latitude, longitude, instants_us, values, Strands.of(layout, latitude, longitude, instants_us, values))


# --- the truth --------------------------------------------------------------------------------------------------------


def of_one(statistic: Callable[[NDArray[np.float64]], float]) -> Callable[..., float | None]:
    def of(numbers: NDArray[np.float64]) -> float | None:
        present = numbers[~np.isnan(numbers)]
        return float(statistic(present)) if present.size else None

    return of


def covariance(one: NDArray[np.float64], two: NDArray[np.float64]) -> float | None:
    both = ~np.isnan(one) & ~np.isnan(two)
    if not both.any():
        return None
    first, second = one[both] - one[both][0], two[both] - two[both][0]  # so that constants leave no noise
    return float(((first - first.mean()) * (second - second.mean())).mean())


def correlation(one: NDArray[np.float64], two: NDArray[np.float64]) -> float | None:
    both = ~np.isnan(one) & ~np.isnan(two)
    if not both.any() or np.ptp(one[both]) == 0 or np.ptp(two[both]) == 0:
        return None
    scale = math.sqrt((covariance(one[both], one[both]) or 0) * (covariance(two[both], two[both]) or 0))
    return float(np.clip((covariance(one, two) or 0.0) / scale, -1.0, 1.0))


TRUTHS: dict[str, Callable[..., float | None]] = {
    "COUNT": lambda numbers: int((~np.isnan(numbers)).sum()),
    "SUM": of_one(math.fsum),
    "MEAN": of_one(lambda x: math.fsum(x) / x.size),
    "VAR": of_one(lambda x: np.var(x - x[0])),
    "STD": of_one(lambda x: np.std(x - x[0])),
    "MIN": of_one(np.min),
    "MAX": of_one(np.max),
    "COVARIANCE": covariance,
    "CORRELATION": correlation,
}
OF_TWO = ("COVARIANCE", "CORRELATION")


def agrees(value: Value, truth: float | None, scale: float) -> None:
    """A value says of the truth what its guarantee promises."""
    if value.guarantee == "exact":
        assert value.low == value.estimate == value.high
        if truth is None:
            assert value.estimate is None
        else:
            assert value.estimate == pytest.approx(truth, rel=1e-9, abs=1e-12 * scale)
        return
    assert value.guarantee == "certain"
    if value.estimate is None or value.low is None or value.high is None:
        assert truth is None
        return
    assert value.low <= value.estimate <= value.high
    if truth is not None:
        assert value.low <= truth <= value.high


# --- random questions -------------------------------------------------------------------------------------------------

DATASETS = [
    made(20, "1mo"),
    made(10, "1d", "Europe/Paris", seed=1),
    made(17, "6h", "America/Sao_Paulo", seed=2),
    made(25, "1w", "Asia/Kolkata", seed=3),
]


def written(instant_us: int) -> str:
    return (EPOCH + timedelta(microseconds=instant_us)).isoformat()


COMPARISONS = {"<": np.less, "<=": np.less_equal, "=": np.equal, ">=": np.greater_equal, ">": np.greater}


@dataclass(frozen=True)
class Asked:
    """A question in pieces."""

    dataset: int
    statistics: list[tuple[str, list[str]]]
    prefixes: list[str]
    times: list[tuple[str, int]]
    keys: list[str]
    corners: list[tuple[float, float]]  #: of a box if there are two, of a polygon if there are three

    @property
    def data(self) -> Data:
        return DATASETS[self.dataset]

    @property
    def text(self) -> str:
        columns = ", ".join(f"{name}({', '.join(features)})" for name, features in self.statistics)
        conditions = [f"time {comparison} '{written(instant_us)}'" for comparison, instant_us in self.times]
        if len(self.prefixes) == 1:
            conditions.append(f"location LIKE '{self.prefixes[0]}%'")
        elif self.prefixes:
            conditions.append("location IN ({})".format(", ".join(f"'{prefix}'" for prefix in self.prefixes)))
        if len(self.corners) == 2:
            (south, west), (north, east) = self.corners
            conditions.append(f"BOX({south!r}, {west!r}, {north!r}, {east!r})")
        elif self.corners:
            conditions.append(f"WITHIN('{shapely.to_wkt(self.polygon, rounding_precision=-1)}')")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT COUNT(*), {columns}{where}" + (f" GROUP BY {', '.join(self.keys)}" if self.keys else "")

    @property
    def polygon(self) -> shapely.Polygon:
        return shapely.Polygon([(longitude, latitude) for latitude, longitude in self.corners])

    def scope(self) -> list[bool]:
        """Whether each row is in scope."""
        within = np.ones(self.data.instants_us.size, bool)
        for comparison, instant_us in self.times:
            within &= COMPARISONS[comparison](self.data.instants_us, instant_us)
        if self.prefixes:
            texts = self.data.geohashes(12).tolist()
            within &= np.array([any(text.startswith(prefix) for prefix in self.prefixes) for text in texts])
        latitude, longitude = self.data.latitude, self.data.longitude
        if len(self.corners) == 2:
            (south, west), (north, east) = self.corners
            over = np.logical_or if west > east else np.logical_and
            within &= (latitude >= south) & (latitude <= north) & over(longitude >= west, longitude <= east)
        elif self.corners:
            within &= shapely.contains(self.polygon, shapely.points(longitude, latitude))
        return list(within.tolist())

    def groups(self) -> list[tuple[object, ...]]:
        """The group of each row, by its keys."""
        found: list[list[object]] = []
        for key in self.keys:
            if key.startswith("CELL"):
                found.append(list(self.data.geohashes(int(key[5])).tolist()))
            else:
                bucket, zone = Bucket.parse(key[8:-2]), self.data.layout.zone
                starts_us = bucket.starts_us(bucket.ordinals(self.data.instants_us, zone), zone)
                found.append([EPOCH + timedelta(microseconds=start) for start in starts_us.tolist()])
        return list(zip(*found, strict=True)) if found else [()] * self.data.instants_us.size


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    dataset = draw(st.integers(0, len(DATASETS) - 1))
    data = DATASETS[dataset]
    feature = st.sampled_from(FEATURES)
    statistic = st.one_of(
        st.tuples(st.sampled_from(sorted(set(TRUTHS) - set(OF_TWO))), st.lists(feature, min_size=1, max_size=1)),
        st.tuples(st.sampled_from(OF_TWO), st.lists(feature, min_size=2, max_size=2)),
    )
    place = st.tuples(st.integers(0, data.instants_us.size - 1), st.integers(1, 7))
    instant = st.one_of(
        st.sampled_from(data.instants_us[:50].tolist()),
        st.integers(-2, DAYS * 24 + 2).map(lambda hour: START_US + hour * 3_600_000_000),
    )
    cell = st.integers(1, 6).map("CELL({})".format)
    bucket = st.sampled_from(["1h", "6h", "1d", "1w", "1mo", "1q", "5d", "90m"]).map("BUCKET('{}')".format)
    keys = st.one_of(st.tuples(), st.tuples(cell), st.tuples(bucket), st.tuples(cell, bucket), st.tuples(bucket, cell))
    places = data.geohashes(7)
    rows = draw(st.lists(st.integers(0, data.instants_us.size - 1), max_size=3))
    corners = [(float(data.latitude[row]), float(data.longitude[row])) for row in rows if len(rows) > 1]
    if len(corners) == 2 and corners[0][0] > corners[1][0]:
        corners.reverse()
    if len(corners) == 3:
        assume(shapely.Polygon(corners).is_valid and shapely.Polygon(corners).area > 0)
    return Asked(
        dataset,
        draw(st.lists(statistic, min_size=1, max_size=4, unique_by=repr)),
        [str(places[row])[:length] for row, length in draw(st.lists(place, max_size=3))],
        draw(st.lists(st.tuples(st.sampled_from(sorted(COMPARISONS)), instant), max_size=2)),
        list(draw(keys)),
        corners,
    )


def as_asked(strands: Strands, text: str) -> Answer:
    """The answer with buckets as fine as asked, however strands lie across them."""
    asked = bind(cast("Question", read(text)), strands.layout)
    return finish(asked, of_strands(strands, asked), strands.layout)


@given(questions())
@settings(max_examples=400, deadline=None)
def test_any_question_is_answered_as_its_rows_would(question: Asked) -> None:
    data, keys = question.data, question.keys
    # Cells so fine that a strand lies in several are answered by coarser ones.
    assume(not any(note.startswith("CELL") for note in ask(data.strands, question.text).notes))
    answer = as_asked(data.strands, question.text)
    rows_of: dict[tuple[object, ...], list[int]] = {}
    for row, (group, in_scope) in enumerate(zip(question.groups(), question.scope(), strict=True)):
        if in_scope:
            rows_of.setdefault(group, []).append(row)
    found = {tuple(row[key] for key in keys): row for row in answer.rows}
    assert len(found) == len(answer)
    assert list(found) == sorted(found)
    assert set(rows_of) <= set(found)
    assert keys or len(found) == 1
    for group, row in found.items():
        rows = rows_of.get(group, [])
        agrees(row["COUNT(*)"], len(rows), 0.0)
        for name, features in question.statistics:
            columns = [data.feature(feature)[rows] for feature in features]
            scale = float(np.nansum(np.abs(columns[0]))) if name == "SUM" else 1.0
            agrees(row[f"{name}({', '.join(features)})"], TRUTHS[name](*columns), scale)


# --- named questions --------------------------------------------------------------------------------------------------

WEATHER = DATASETS[0]


def test_statistics_of_whole_strands_equal_those_of_duckdb() -> None:
    names = [f'"{feature}"' for feature in FEATURES]
    table = pa.table(
        {
            "cell": WEATHER.geohashes(4),
            "month": (WEATHER.instants_us // 1_000_000).astype("datetime64[s]").astype("datetime64[M]").astype("int64"),
        }
        | {feature: pa.array(WEATHER.feature(feature), mask=np.isnan(WEATHER.feature(feature))) for feature in FEATURES}
    )
    functions = {
        "COUNT": "count",
        "SUM": "sum",
        "MEAN": "avg",
        "VAR": "var_pop",
        "STD": "stddev_pop",
        "MIN": "min",
        "MAX": "max",
    }
    ours = [f"{name}({feature})" for feature in names for name in functions]
    theirs = [f"{name}({feature})" for feature in names for name in functions.values()]
    ours += ["COVARIANCE(kelvin, opposed)", "CORRELATION(kelvin, opposed)", "CORRELATION(rain, alone)"]
    theirs += ["covar_pop(kelvin, opposed)", "corr(kelvin, opposed)", "corr(rain, alone)"]
    with duckdb.connect() as connection:
        connection.register("observed", table)
        expected = connection.execute(
            f"SELECT cell, month, {', '.join(theirs)} FROM observed GROUP BY cell, month ORDER BY cell, month"
        ).fetchall()
    answer = ask(WEATHER.strands, f"SELECT {', '.join(ours)} GROUP BY CELL(4), BUCKET('1mo')")
    assert len(answer) == len(expected) > 50
    for row, (cell, month, *truths) in zip(answer.rows, expected, strict=True):
        assert row["CELL(4)"] == cell
        assert row["BUCKET('1mo')"] == datetime(1970 + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        for column, truth in zip(ours, truths, strict=True):
            value = row[column]
            assert value.guarantee == "exact"
            if truth is None or math.isnan(truth):
                assert value.estimate is None
            elif not (column.startswith(("VAR", "STD")) and "constant" in column):
                assert value.estimate == pytest.approx(truth, rel=1e-9, abs=1e-10)


def test_an_always_negative_feature_has_a_negative_maximum() -> None:
    value = ask(WEATHER.strands, "SELECT MAX(depth)")["MAX(depth)"]
    assert value.estimate == np.nanmax(WEATHER.feature("depth")) < 0
    assert value.guarantee == "exact"


def test_opposed_features_correlate_negatively_and_independent_ones_hardly() -> None:
    answer = ask(
        WEATHER.strands, "SELECT CORRELATION(kelvin, opposed) AS against, CORRELATION(opposed, alone) AS apart"
    )
    assert answer["against"].estimate < -0.99
    assert abs(answer["apart"].estimate) < 0.15


def test_a_constant_has_no_variance_and_correlates_with_nothing() -> None:
    answer = ask(WEATHER.strands, "SELECT VAR(constant), STD(constant), CORRELATION(constant, kelvin), MEAN(constant)")
    assert ask(WEATHER.strands, "SELECT COVARIANCE(constant, depth) AS c")["c"] == Value(0.0, 0.0, 0.0, "exact")
    assert answer["VAR(constant)"].estimate == answer["STD(constant)"].estimate == 0.0
    assert answer["CORRELATION(constant, kelvin)"].estimate is None
    assert answer["MEAN(constant)"].estimate == pytest.approx(273.15, rel=1e-12)


def test_a_feature_with_itself_has_its_variance_for_covariance_and_correlates_fully() -> None:
    answer = ask(WEATHER.strands, "SELECT COVARIANCE(rain, rain), VAR(rain), CORRELATION(rain, rain)")
    assert answer["COVARIANCE(rain, rain)"].estimate == answer["VAR(rain)"].estimate
    assert answer["CORRELATION(rain, rain)"].estimate == pytest.approx(1.0)


def test_nothing_in_scope_is_one_row_that_counts_zero_exactly() -> None:
    answer = ask(WEATHER.strands, "SELECT COUNT(*), COUNT(rain), SUM(rain), MEAN(rain) WHERE time < '1900-01-01'")
    assert len(answer) == 1
    assert answer["COUNT(*)"] == Value(0, 0, 0, "exact")
    assert answer["COUNT(rain)"] == Value(0, 0, 0, "exact")
    assert answer["SUM(rain)"] == answer["MEAN(rain)"] == Value(None, None, None, "exact")


def test_an_empty_range_of_time_selects_nothing_even_of_strands_that_span_it() -> None:
    answer = ask(WEATHER.strands, "SELECT COUNT(*) WHERE time >= '2024-10-20' AND time < '2024-10-10'")
    assert answer["COUNT(*)"] == Value(0, 0, 0, "exact")


def test_an_empty_sketch_answers_too() -> None:
    nothing = Strands.empty(WEATHER.layout)
    assert ask(nothing, "SELECT COUNT(*) WHERE location LIKE 'u0%'")["COUNT(*)"] == Value(0, 0, 0, "exact")
    assert ask(nothing, "SELECT COUNT(*) WHERE location LIKE 'u0abcd%'".replace("abcd", "bcd1"))["COUNT(*)"].high == 0
    assert len(ask(nothing, "SELECT MEAN(rain) GROUP BY CELL(3), BUCKET('1h') ORDER BY MEAN(rain)")) == 0
    assert len(ask(nothing, "SELECT MEAN(rain) GROUP BY CELL(3)")) == 0


def test_overlapping_prefixes_count_once() -> None:
    once = ask(WEATHER.strands, "SELECT COUNT(*) WHERE location IN ('s', 'u')")["COUNT(*)"].estimate
    twice = ask(WEATHER.strands, "SELECT COUNT(*) WHERE location IN ('s', 'u', 's', 'u0', 's00')")["COUNT(*)"].estimate
    assert once == twice > 0


def test_conditions_of_one_kind_intersect() -> None:
    narrow = ask(WEATHER.strands, "SELECT COUNT(*) WHERE location LIKE 's%' AND location IN ('s00', 'u')")
    assert narrow["COUNT(*)"] == ask(WEATHER.strands, "SELECT COUNT(*) WHERE location LIKE 's00%'")["COUNT(*)"]
    none = ask(WEATHER.strands, "SELECT COUNT(*) WHERE location LIKE 's%' AND location LIKE 'u%'")
    assert none["COUNT(*)"] == Value(0, 0, 0, "exact")


def test_times_without_a_zone_are_in_that_of_the_sketch() -> None:
    paris = DATASETS[1].strands
    local = ask(paris, "SELECT COUNT(*) WHERE time < '2024-10-01'")["COUNT(*)"]
    assert local.guarantee == "exact"  # a whole number of days in Paris
    assert local == ask(paris, "SELECT COUNT(*) WHERE time < '2024-09-30T22:00Z'")["COUNT(*)"]
    assert local == ask(paris, "SELECT COUNT(*) WHERE time < '2024-10-01 00:00 Europe/Paris'")["COUNT(*)"]
    assert ask(paris, "SELECT COUNT(*) WHERE time < '2024-10-01T00:00Z'")["COUNT(*)"].guarantee == "certain"


def test_between_is_closed_and_less_is_not() -> None:
    last = written(int(WEATHER.instants_us.max()))
    closed = ask(WEATHER.strands, f"SELECT COUNT(*) WHERE time BETWEEN '2024-01-01' AND '{last}'")["COUNT(*)"]
    assert closed == Value(WEATHER.instants_us.size, WEATHER.instants_us.size, WEATHER.instants_us.size, "exact")
    opened = ask(WEATHER.strands, f"SELECT COUNT(*) WHERE time >= '2024-01-01' AND time < '{last}'")["COUNT(*)"]
    assert opened.low < WEATHER.instants_us.size


# --- groups, order, limit ---------------------------------------------------------------------------------------------


def test_groups_come_in_the_order_of_their_keys_the_first_leading() -> None:
    cells_first = ask(WEATHER.strands, "SELECT COUNT(*) GROUP BY CELL(1), BUCKET('1mo')").rows
    keys = [(row["CELL(1)"], row["BUCKET('1mo')"]) for row in cells_first]
    assert keys == sorted(keys)
    buckets_first = ask(WEATHER.strands, "SELECT COUNT(*) GROUP BY BUCKET('1mo'), CELL(1)").rows
    assert [(row["BUCKET('1mo')"], row["CELL(1)"]) for row in buckets_first] == sorted((b, c) for c, b in keys)


def test_order_by_puts_undefined_values_last_either_way() -> None:
    for direction in ("ASC", "DESC"):
        rows = ask(
            WEATHER.strands, f"SELECT MEAN(alone) AS m GROUP BY CELL(4), BUCKET('1mo') ORDER BY m {direction}"
        ).rows
        means = [row["m"].estimate for row in rows]
        defined = [mean for mean in means if mean is not None]
        assert 0 < len(defined) < len(means)
        assert means[: len(defined)] == sorted(defined, reverse=direction == "DESC")


def test_order_by_takes_aliases_aggregates_not_selected_and_keys() -> None:
    by_alias = ask(WEATHER.strands, "SELECT COUNT(*) AS n GROUP BY CELL(2) ORDER BY N DESC, CELL(2) DESC LIMIT 5").rows
    by_text = ask(WEATHER.strands, "SELECT COUNT(*) AS n GROUP BY CELL(2) ORDER BY COUNT(*) DESC, CELL(2) DESC").rows
    assert by_alias == by_text[:5]
    counts = [(-row["n"].estimate, row["CELL(2)"]) for row in by_text]
    assert [count for count, _ in counts] == sorted(count for count, _ in counts)
    ties = [cell for count, cell in counts if count == counts[-1][0]]
    assert len(ties) > 1
    assert ties == sorted(ties, reverse=True)
    unselected = ask(WEATHER.strands, "SELECT CELL(2) GROUP BY CELL(2) ORDER BY MAX(kelvin)").rows
    warmest = ask(WEATHER.strands, "SELECT CELL(2), MAX(kelvin) AS top GROUP BY CELL(2) ORDER BY top").rows
    assert [row["CELL(2)"] for row in unselected] == [row["CELL(2)"] for row in warmest]


def test_limit_zero_leaves_the_columns_and_no_rows() -> None:
    answer = ask(WEATHER.strands, "SELECT COUNT(*) GROUP BY CELL(2) LIMIT 0")
    assert (len(answer), answer.columns, answer.rows) == (0, ["CELL(2)", "COUNT(*)"], [])


def test_a_bucket_key_is_a_datetime_in_the_zone_of_the_sketch() -> None:
    first = ask(DATASETS[1].strands, "SELECT COUNT(*) GROUP BY BUCKET('1mo')").rows[0]["BUCKET('1mo')"]
    assert first.isoformat() == "2024-09-01T00:00:00+02:00"
    assert str(first.tzinfo) == "Europe/Paris"


def test_buckets_that_strands_lie_across_are_certain_and_add_up_at_most() -> None:
    weeks = as_asked(WEATHER.strands, "SELECT COUNT(*) GROUP BY BUCKET('1w')").rows
    counts = [row["COUNT(*)"] for row in weeks]
    assert "certain" in {count.guarantee for count in counts}
    assert sum(count.low for count in counts) < WEATHER.instants_us.size < sum(count.high for count in counts)
    assert sum(count.estimate for count in counts) == pytest.approx(WEATHER.instants_us.size, rel=0.02)


def test_cells_finer_than_the_sketch_are_told_apart_where_boxes_allow_it() -> None:
    latitude, longitude = np.array([10.1, 10.1, 10.9]), np.array([20.1, 20.1, 20.1])
    instants_us = np.arange(3)
    values = np.zeros((1, 3))
    coarse = Strands.of(Layout(("rain",), 15, "1d"), latitude, longitude, instants_us, values)
    one = Strands.of(Layout(("rain",), 15, "1d"), latitude[:2], longitude[:2], instants_us[:2], values[:, :2])
    row = ask(one, "SELECT COUNT(*) GROUP BY CELL(7)").rows[0]
    assert row["CELL(7)"] == geohash.to_text(geohash.encode(10.1, 20.1, 35), 7)
    assert row["COUNT(*)"] == Value(2, 2, 2, "exact")
    coarser = ask(coarse, "SELECT COUNT(*) GROUP BY CELL(7)")
    assert coarser.notes == ("CELL(7) is finer than what this sketch keeps: CELL(3) stands in",)
    assert [row["CELL(7)"] for row in coarser] == [
        row["CELL(3)"] for row in ask(coarse, "SELECT CELL(3) GROUP BY CELL(3)")
    ]
    with pytest.raises(NotKept, match=r"line 1, column 26: CELL\(7\) is finer .* ask for CELL\(3\), or without strict"):
        ask(coarse, "SELECT COUNT(*) GROUP BY CELL(7)", strict=True)


def test_buckets_finer_than_the_sketch_are_answered_by_its_own_with_start_and_end() -> None:
    answer = ask(WEATHER.strands, "SELECT BUCKET('1s') AS t, COUNT(*) AS n GROUP BY BUCKET('1s') ORDER BY t DESC")
    months = ask(WEATHER.strands, "SELECT BUCKET('1mo') AS t, COUNT(*) AS n GROUP BY BUCKET('1mo') ORDER BY t DESC")
    assert answer.rows == months.rows
    assert answer.notes == ("BUCKET('1s') is finer than what this sketch keeps: BUCKET('1mo') stands in",)
    assert answer.notes[0] in repr(answer)
    table = answer.to_arrow()
    assert table["t end"].to_pylist()[1:] == table["t"].to_pylist()[:-1]
    with pytest.raises(NotKept, match=r"BUCKET\('1s'\) is finer .* ask for BUCKET\('1mo'\), or without strict"):
        ask(WEATHER.strands, "SELECT COUNT(*) GROUP BY BUCKET('1s')", strict=True)


def test_buckets_of_another_zone_that_would_explode_are_refused_naming_the_finest() -> None:
    asked = bind(cast("Question", read("SELECT COUNT(*) GROUP BY BUCKET('1s')")), WEATHER.strands.layout)
    with pytest.raises(NotKept, match=r"BUCKET\('1s'\) would cut .* the finest bucket that remains is BUCKET\('1mo'\)"):
        of_strands(WEATHER.strands, asked)


def test_buckets_of_another_zone_cut_strands_and_hold_their_rows() -> None:
    answer = ask(WEATHER.strands, "SELECT BUCKET('1mo', 'Pacific/Auckland') AS m, COUNT(*) AS n GROUP BY m")
    local = pa.array(WEATHER.instants_us, pa.timestamp("us", "UTC")).to_pandas().dt.tz_convert("Pacific/Auckland")
    truth = local.groupby([local.dt.year, local.dt.month]).size()
    assert [(row["m"].year, row["m"].month) for row in answer] == list(truth.index)
    assert all(row["n"].low <= true <= row["n"].high for row, true in zip(answer, truth, strict=True))
    assert {row["n"].guarantee for row in answer} == {"certain"}
    assert answer.rows[0]["m"].tzinfo is not None


@pytest.mark.parametrize(
    ("times", "quarters"),
    [
        # The same quarter of the clock twice, with another one between.
        (["00:20", "00:40", "01:20"], {"02:15": 2, "02:30": 1}),
        # Clocks went back between the first row and the second, so the second has the earliest quarter of all.
        (["00:40", "01:05", "01:50"], {"02:00": 1, "02:30": 1, "02:45": 1}),
        # The latest quarter is that of the first row.
        (["00:50", "01:05"], {"02:00": 1, "02:45": 1}),
    ],
)
def test_the_hour_that_happens_twice_is_cut_and_never_lost(times: list[str], quarters: dict[str, int]) -> None:
    instants_us = np.array([f"2024-10-27T{time}" for time in times], dtype="datetime64[us]").astype(np.int64)
    layout, size = Layout(("rain",), 20, "1d", "Europe/Paris"), len(times)
    strands = Strands.of(layout, np.full(size, 48.8), np.full(size, 2.3), instants_us, np.zeros((1, size)))
    rows = as_asked(strands, "SELECT COUNT(*) GROUP BY BUCKET('15m')").rows
    by_clock = {row["BUCKET('15m')"].strftime("%H:%M"): row["COUNT(*)"] for row in rows}
    for quarter, count in quarters.items():
        assert by_clock[quarter].low <= count <= by_clock[quarter].high


def test_a_question_that_is_neither_text_nor_an_object_is_refused_clearly() -> None:
    with pytest.raises(BadQuery, match="text in SQL"):
        ask(WEATHER.strands, ["SELECT COUNT(*)"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "line", "column", "why"),
    [
        ("SELECT COUNT(*) WHERE rain > 1", 1, 23, "a condition on rain"),
        ("SELECT COUNT(*) WHERE lat > 3 AND\n  NOT (kelvin IS NULL OR rain = 1)", 2, 3, "a condition on kelvin"),
        ("SELECT COUNT(*),\n MEDIAN(depth)", 2, 2, "a quantile of depth"),
        ("SELECT COUNT(*) GROUP BY CELL(2) ORDER BY QUANTILE(rain, 0.9)", 1, 43, "a quantile of rain"),
    ],
)
def test_what_needs_paths_is_refused_by_a_sketch_of_strands(question: str, line: int, column: int, why: str) -> None:
    with pytest.raises(NotKept, match=f"need paths, which this sketch does not keep: ask .* without {why}") as caught:
        ask(WEATHER.strands, question)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_box_around_everything_and_the_halves_of_the_globe_are_answered_exactly() -> None:
    whole = ask(WEATHER.strands, "SELECT COUNT(*), SUM(rain) WHERE BOX(-90, -180, 90, 180)")
    assert whole.rows == ask(WEATHER.strands, "SELECT COUNT(*), SUM(rain)").rows
    halves = [ask(WEATHER.strands, f"SELECT COUNT(*) WHERE {where}")["COUNT(*)"] for where in ("lat < 0", "lat >= 0")]
    assert [half.guarantee for half in halves] == ["exact", "exact"]
    assert sum(half.estimate for half in halves) == whole["COUNT(*)"].estimate


def test_a_place_that_no_position_lies_in_counts_zero_exactly() -> None:
    for where in ("lat > 90", "lon BETWEEN 10 AND 5", "WITHIN('POLYGON ((0 -80, 1e-9 -80, 0 -79.999999999, 0 -80))')"):
        count = ask(WEATHER.strands, f"SELECT COUNT(*) WHERE {where}")["COUNT(*)"]
        assert (count.estimate, count.guarantee) == (0, "exact")
