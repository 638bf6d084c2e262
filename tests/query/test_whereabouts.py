"""Moving objects in memory, over dateline and pole: whatever is asked for, what is certain holds.

DuckDB answers the same questions from all rows.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.query.test_paths import holds

from synopsis.grid import geohash
from synopsis.query.evaluate import ask
from synopsis.query.language import read
from synopsis.query.shapes import EARTH_KM
from synopsis.query.spelling import to_json
from synopsis.sketch import blocks
from synopsis.sketch.budget import even_choice, tallied, whereabouts
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.layout import Layout
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.strands import Strands
from synopsis.sketch.strata import from_tallies
from synopsis.sketch.summary import Summary, cut

FEATURES = ("height", "speed")
DAY_US = 86_400_000_000
BEGIN_US = 1_700_006_400_000_000  # 2023-11-15
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROWS = 6_000


class Tracks:
    """Rows of objects that wander around a centre, their summary, and their table in DuckDB."""

    def __init__(self, lat: float, lon: float, place_bits: int, region_bits: int | None, kept: float) -> None:
        random = np.random.default_rng(7)
        turn, number = np.sort(random.uniform(0.0, 6.0, ROWS)), random.integers(0, 12, ROWS)
        self.lat = np.clip(lat + 8.0 * np.sin(turn + number) + random.normal(0, 0.3, ROWS), -90.0, 90.0)
        self.lon = (lon + 20.0 * np.cos(turn * 2 + number) + random.normal(0, 0.3, ROWS) + 180.0) % 360.0 - 180.0
        self.lat[:3], self.lon[:3] = [90.0, -90.0, 0.0], [180.0, -180.0, 180.0]  # the ends of the map
        us = BEGIN_US + (turn * DAY_US).astype(np.int64) // 1000 * 1000
        height = np.where(number == 3, np.nan, np.round(1_000 + 500 * np.sin(turn) + random.normal(0, 50, ROWS)))
        values = np.stack((height, random.lognormal(3, 0.5, ROWS)))
        layout = PathLayout(1_200, 31, kept, 1, False, region_bits, place_bits)
        every = np.concatenate((values, whereabouts(self.lat, self.lon, us, place_bits)))
        scales = Scales.fit(every)
        ticked = [scales.code_of_tick(k)[scales.ticks[k].of(every[k])] for k in range(len(every))]
        fine = np.stack(ticked)
        tallies = tallied(self.lat, self.lon, us, fine, even_choice(self.lat, self.lon, us, fine, layout), layout)
        strata = from_tallies(scales, tallies, layout.bins)
        contexts = Contexts.fit(strata.codes, layout.bins)
        packed = tuple(blocks.closed(strata.take(run), contexts) for run in cut(strata))
        self.summary = Summary(layout, tallies.latitude, tallies.longitude, scales, contexts, packed)
        self.layout = Layout(FEATURES, 20, "1d")
        cells = geohash.to_text(geohash.encode(self.lat, self.lon, 40), 8)
        columns = {name: pa.array(each, mask=np.isnan(each)) for name, each in zip(FEATURES, values, strict=True)}
        self.connection = duckdb.connect(config={"threads": 1})
        table = pa.table({"us": us, "lat": self.lat, "lon": self.lon, "cell": cells} | columns)
        self.connection.register("given", table)
        self.connection.execute("CREATE TABLE rows AS SELECT * FROM given")

    def query(self, question):
        return ask(Strands.empty(self.layout), question, self.summary)

    def truth(self, columns, where="true"):
        return self.connection.execute(f"SELECT {columns} FROM rows WHERE {where}").fetchall()


TRACKS = {
    "mid-latitudes": Tracks(45.0, 8.0, 12, 5, 0.4),
    "dateline": Tracks(-10.0, 175.0, 10, None, 1.0),
    "pole": Tracks(86.0, -170.0, 12, 1, 0.1),
    "no paths": Tracks(20.0, 0.0, 8, 5, 0.0),
}
STATISTICS = {
    "COUNT(*)": "count(*)",
    "COUNT(height)": "count(height)",
    "SUM(speed)": "sum(speed)",
    "MEAN(height)": "avg(height)",
    "MIN(height)": "min(height)",
    "MAX(speed)": "max(speed)",
    "MEDIAN(speed)": "median(speed)",
    "MAX(speed) - MIN(speed)": "max(speed) - min(speed)",
}


@st.composite
def scopes(draw):
    """A part of space and what it means: around the data or anywhere, over the dateline, a single position."""
    data = TRACKS[draw(st.sampled_from(list(TRACKS)))]
    at = draw(st.integers(0, ROWS - 1))
    lat, lon = round(float(data.lat[at]), 3), round(float(data.lon[at]), 3)
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return data, "lat >= -90", "true"
    if kind == 1:
        cell = str(geohash.to_text(geohash.encode([lat], [lon], 40), 8)[0])[: draw(st.integers(1, 5))]
        return data, f"location LIKE '{cell}%'", f"cell LIKE '{cell}%'"
    if kind == 2:
        high, wide = draw(st.floats(0.0, 40.0)), draw(st.floats(0.0, 90.0))
        south, north = max(round(lat - high / 2, 3), -90.0), min(round(lat + high, 3), 90.0)
        west, east = round((lon - wide / 2 + 180) % 360 - 180, 3), round((lon + wide + 180) % 360 - 180, 3)
        along = f"(lon >= {west} {'AND' if west <= east else 'OR'} lon <= {east})"
        return data, f"BOX({south}, {west}, {north}, {east})", f"lat BETWEEN {south} AND {north} AND {along}"
    if kind == 3:
        km = draw(st.sampled_from([0.0, 3.0, 250.0, 4_000.0, 19_999.0]))
        half = (
            f"pow(sin(radians(lat - ({lat})) / 2), 2) + "
            f"cos(radians({lat})) * cos(radians(lat)) * pow(sin(radians(lon - ({lon})) / 2), 2)"
        )
        return data, f"NEAR({lat}, {lon}, {km})", f"2 * {EARTH_KM} * asin(sqrt(least(1, {half}))) <= {km}"
    return data, f"lat < {lat} AND lon >= {lon}", f"lat < {lat} AND lon >= {lon}"


@st.composite
def times(draw):
    step = draw(st.sampled_from([DAY_US, DAY_US // 24, 1_234_567]))
    one, two = sorted(BEGIN_US - DAY_US + draw(st.integers(0, 8 * DAY_US // step)) * step for _ in range(2))
    texts = [(EPOCH + timedelta(microseconds=each)).strftime("%Y-%m-%dT%H:%M:%S.%fZ") for each in (one, two)]
    return f" AND time >= '{texts[0]}' AND time < '{texts[1]}'", f" AND us >= {one} AND us < {two}"


CONDITIONS = st.sampled_from(
    ["", " AND height > 1200", " AND (height BETWEEN 700 AND 1300 OR height IS NULL) AND NOT speed < 20"]
)


@given(scope=scopes(), when=st.just(("", "")) | times(), condition=CONDITIONS)
@settings(max_examples=300)
def test_whatever_part_is_asked_for_what_is_certain_holds(scope, when, condition):
    data, asked, meant = scope
    text = f"SELECT {', '.join(STATISTICS)} WHERE {asked}{when[0]}{condition}"
    answer = data.query(text)
    truths = data.truth(", ".join(STATISTICS.values()), f"{meant}{when[1]}{condition}")[0]
    for name, truth in zip(STATISTICS, truths, strict=True):
        assert holds(answer[name], truth), f"{name}: {answer[name]} for {truth}"
    spelled = data.query(to_json(read(text)))
    for name in STATISTICS:
        assert str(spelled[name]) == str(answer[name])


@pytest.mark.parametrize("name", ["mid-latitudes", "dateline"])
@pytest.mark.parametrize("length", [1, 2])
def test_cells_and_days_hold_their_rows(name, length):
    data = TRACKS[name]
    text = f"SELECT CELL({length}) AS c, BUCKET('1d') AS b, COUNT(*) AS n, MIN(speed) AS m"
    rows = data.query(f"{text} GROUP BY CELL({length}), BUCKET('1d')").rows
    keys = f"substr(cell, 1, {length}), us // {DAY_US}"
    truths = data.connection.execute(f"SELECT {keys}, count(*), min(speed) FROM rows GROUP BY 1, 2").fetchall()
    known = {(cell, day): rest for cell, day, *rest in truths}
    found = {(row["c"], (row["b"] - EPOCH) // timedelta(days=1)): row for row in rows}
    assert set(found) == set(known)
    for key, row in found.items():
        assert (row["n"].estimate, row["n"].guarantee) == (known[key][0], "exact")
        assert holds(row["m"], known[key][1])


@pytest.mark.parametrize("name", list(TRACKS))
def test_hours_hold_their_rows(name):
    data = TRACKS[name]
    answer = data.query("SELECT BUCKET('6h') AS b, COUNT(*) AS n WHERE height > 900 GROUP BY BUCKET('6h')")
    known = dict(
        data.connection.execute(
            f"SELECT us // {DAY_US // 4}, count(*) FROM rows WHERE height > 900 GROUP BY 1"
        ).fetchall()
    )
    found = {(row["b"] - EPOCH) // timedelta(hours=6): row["n"] for row in answer}
    assert set(known) <= set(found)
    for bucket, value in found.items():
        assert holds(value, known.get(bucket, 0))


def test_cells_finer_than_those_that_are_kept_are_answered_by_coarser_ones():
    data = TRACKS["mid-latitudes"]
    answer = data.query("SELECT CELL(3) AS c, COUNT(*) AS n GROUP BY CELL(3)")
    assert answer.rows == data.query("SELECT CELL(2) AS c, COUNT(*) AS n GROUP BY CELL(2)").rows
    assert answer.notes == ("CELL(3) is finer than what this sketch keeps: CELL(2) stands in",)


def test_estimates_follow_positions_within_cells():
    """A box of a fraction of a cell: the paths in it tell, not the share of its area."""
    data = TRACKS["dateline"]
    for at in range(100, ROWS, 500):
        south, west = round(float(data.lat[at]) - 1.0, 2), round(float(data.lon[at]) - 1.0, 2)
        truth = data.truth("count(*)", f"lat BETWEEN {south} AND {south + 2} AND lon BETWEEN {west} AND {west + 2}")[0][
            0
        ]
        value = data.query(f"SELECT COUNT(*) WHERE BOX({south}, {west}, {south + 2}, {min(west + 2, 180.0)})")[
            "COUNT(*)"
        ]
        assert value.estimate == pytest.approx(truth, rel=0.5, abs=12)


@pytest.mark.parametrize("name", ["mid-latitudes", "pole"])
@pytest.mark.parametrize("condition", ["", " AND height > 1200 AND speed < 25"])
def test_intervals_at_95_hold_about_as_often_as_they_say(name, condition):
    """In boxes that cut cells and times that cut days; nothing is said of scopes with fewer than 20 rows."""
    data, random = TRACKS[name], np.random.default_rng(3)
    asked = {
        "COUNT(*)": "count(*)",
        "MEAN(speed)": "avg(speed)",
        "STD(speed)": "stddev_pop(speed)",
        "MEDIAN(height)": "median(height)",
        "CORRELATION(height, speed)": "corr(height, speed)",
    }
    held: dict[str, list[bool]] = {each: [] for each in asked}
    for _ in range(150):
        at, high, wide = int(random.integers(ROWS)), *random.uniform(2.0, 30.0, 2)
        south, north = max(data.lat[at] - high, -90.0), min(data.lat[at] + high, 90.0)
        west, east = max(data.lon[at] - wide, -180.0), min(data.lon[at] + wide, 180.0)
        one, two = np.sort(random.integers(0, 6 * 24, 2) * (DAY_US // 24) + BEGIN_US).tolist()
        texts = [(EPOCH + timedelta(microseconds=each)).strftime("%Y-%m-%dT%H:%M:%SZ") for each in (one, two)]
        box = f"BOX({south!s}, {west!s}, {north!s}, {east!s}) AND time >= '{texts[0]}' AND time < '{texts[1]}'"
        meant = (
            f"lat BETWEEN {south!s} AND {north!s} AND lon BETWEEN {west!s} AND {east!s} AND us >= {one} AND us < {two}"
        )
        truths = data.truth(", ".join(asked.values()), meant + condition)[0]
        if truths[0] < 20:
            continue
        answer = data.query(f"SELECT {', '.join(asked)} WHERE {box}{condition}")
        for each, truth in zip(asked, truths, strict=True):
            value = answer[each]
            if value.p95 is None:
                assert value.guarantee == "exact"
                continue
            slack = 0.5 if each == "COUNT(*)" else 1e-9
            held[each].append(value.p95[0] - slack <= truth <= value.p95[1] + slack)
    for each, those in held.items():
        assert len(those) > 40, each
        assert np.mean(those) > 0.88, (each, np.mean(those), len(those))
    assert not all(all(those) for those in held.values())  # as they would if they were as wide as what is certain
