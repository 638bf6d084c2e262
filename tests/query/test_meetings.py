"""Combinations of values: a no is always right, and so is a yes where bins and spans are asked for whole.

DuckDB answers the same questions from all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from tests.query.test_paths import DAY_US, FEATURES, Data
from tests.query.test_whereabouts import BEGIN_US, TRACKS, Tracks

from synopsis.grid import geohash
from synopsis.query.evaluate import asked_of
from synopsis.query.relation import Relation
from synopsis.sketch.joints import Grain, starts_of
from synopsis.sketch.meetings import Meetings
from synopsis.sketch.strands import Strands
from synopsis.sketch.tallies import EVERYTHING

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Asked:
    """Rows, and their sketch with meetings and without."""

    data: Data | Tracks
    features: tuple[str, ...]
    values: np.ndarray
    cells: np.ndarray
    grain: Grain
    relation: Relation

    @classmethod
    def of(cls, data: Data | Tracks, bits: int, months: int, joints: int) -> Asked:
        features = data.layout.features
        columns = f"us, lat, lon, {'local_us' if isinstance(data, Data) else 'us'}, {', '.join(features)}"
        found = np.array(data.truth(columns), np.float64).T
        values, summary = found[4:], data.summary
        codes = summary.scales.of_features(range(len(features))).codes(values)
        grain = Grain(bits, months, starts_of(summary.scales, len(features), joints))
        met = Meetings.of(grain, found[1], found[2], found[3].astype(np.int64), codes)
        cells = geohash.to_text(geohash.encode(found[1], found[2], 40), 8)
        relation = Relation(Strands.empty(data.layout), replace(summary, meetings=met))
        return cls(data, features, values, cells, grain, relation)

    def ask(self, text: str):
        return asked_of(self.relation, text)

    def blind(self, text: str):
        """The answer without meetings."""
        return asked_of(replace(self.relation, summary=replace(self.relation.summary, meetings=None)), text)

    def is_there(self, values: list[str], where: str) -> bool:
        held = " AND ".join(f"({each})" for each in [*values, where])
        return self.data.truth("count(*)", held)[0][0] > 0


STATIONS = Asked.of(Data(places=14, hours=75 * 24), 10, 1, 32)
GROUNDS = {
    "stations": STATIONS,
    "large cells": Asked.of(Data(places=14, hours=75 * 24, kept=0.0, region_bits=1), 0, 3, 250),
    "another zone": Asked.of(Data(places=6, hours=75 * 24, timezone="America/Sao_Paulo"), 15, 1, 16),
    "moving": Asked.of(TRACKS["mid-latitudes"], 10, 1, 32),
    "dateline": Asked.of(TRACKS["dateline"], 5, EVERYTHING, 64),
    "pole": Asked.of(TRACKS["pole"], 12, 1, 128),
}


def instant(us: int) -> str:
    return (EPOCH + timedelta(microseconds=us)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def combination(ground: Asked, random: np.random.Generator, most: int = 3) -> list[str]:
    """Ranges of one to three features: narrow, wide or a single value, around values that occur; or an absent one."""
    chosen = random.permutation(len(ground.features))[: random.integers(1, most + 1)]
    parts = []
    for feature in chosen:
        name, values = ground.features[feature], ground.values[feature]
        values = values[~np.isnan(values)]
        middle, spread = float(random.choice(values)), float(values.std())
        width = float(random.choice([0.0, 0.02, 0.1, 0.5])) * spread
        parts.append(
            [
                f"{name} BETWEEN {middle - width!r} AND {middle + width!r}",
                f"{name} >= {float(np.quantile(values, random.uniform(0.9, 1.0)))!r}",
                f"{name} < {float(np.quantile(values, random.uniform(0.0, 0.1)))!r}",
                f"{name} IS NULL",
                f"{name} IN ({middle!r}, {float(random.choice(values))!r})",
                f"NOT {name} >= {middle!r}",
            ][random.choice(6, p=[0.4, 0.2, 0.15, 0.05, 0.1, 0.1])]
        )
    return parts


def scope(ground: Asked, random: np.random.Generator) -> tuple[str, str]:
    """Places and times as a question has them, and as DuckDB does."""
    asked, meant = ["lat >= -90"], ["true"]
    if random.random() < 0.7:
        cell = str(random.choice(ground.cells))[: random.integers(1, 5)]
        asked, meant = [f"location LIKE '{cell}%'"], [f"cell LIKE '{cell}%'"]
    if random.random() < 0.6:
        first, last = ground.data.truth("min(us), max(us)")[0]
        step = int(random.choice([DAY_US, DAY_US // 24, 1_234_567]))
        one, two = sorted(int(random.integers(first - DAY_US, last + DAY_US)) // step * step for _ in range(2))
        asked.append(f"time >= '{instant(one)}' AND time < '{instant(two)}'")
        meant.append(f"us >= {one} AND us < {two}")
    return " AND ".join(asked), " AND ".join(meant)


# --- a no is sure -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(GROUNDS))
def test_no_combination_that_is_there_is_ever_denied(name: str) -> None:
    ground, random = GROUNDS[name], np.random.default_rng(7)
    absent = noes = blind = 0
    for _ in range(150):
        values, (where, meant) = combination(ground, random), scope(ground, random)
        there = ground.is_there(values, meant)
        text = f"SELECT CONTAINS({', '.join(values)}) AS c WHERE {where}"
        value = ground.ask(text)["c"]
        assert value.low <= there <= value.high, text
        assert value.estimate == value.high
        assert (value.guarantee == "exact") == (value.low == value.high)
        absent, noes = absent + (not there), noes + (value.estimate == 0)
        blind += ground.blind(text)["c"].estimate == 0
    assert absent > 30
    assert noes > blind


def test_ors_and_nots_of_features_are_denied_only_where_all_their_sides_are() -> None:
    random = np.random.default_rng(8)
    denied = 0
    for at in range(100):
        sides = [" AND ".join(combination(STATIONS, random, most=2)) for _ in range(3)]
        condition = [f"({sides[0]}) OR ({sides[1]})", f"({sides[0]} OR {sides[1]}) AND ({sides[2]})"][at % 2]
        where, meant = scope(STATIONS, random)
        there = STATIONS.is_there([condition], meant)
        answer = STATIONS.ask(f"SELECT CONTAINS({condition}) AS c, COUNT(*) AS n WHERE {where} AND ({condition})")
        assert answer["c"].low <= there <= answer["c"].high, condition
        truth = STATIONS.data.truth("count(*)", f"({condition}) AND {meant}")[0][0]
        assert answer["n"].low <= truth <= answer["n"].high
        denied += answer["c"].estimate == 0
    assert denied > 3


def test_groups_are_denied_each_by_itself() -> None:
    random = np.random.default_rng(9)
    keys = {"CELL(2)": "substr(cell, 1, 2)", "BUCKET('1mo')": "strftime(make_timestamp(us), '%Y-%m')"}
    denied = 0
    for _ in range(12):
        values, (where, meant) = combination(STATIONS, random), scope(STATIONS, random)
        held = " AND ".join(values)
        truth = {
            row[:2]: row[2] > 0
            for row in STATIONS.data.truth(
                f"{', '.join(keys.values())}, count(*) FILTER (WHERE {held})", meant, "GROUP BY 1, 2"
            )
        }
        answer = STATIONS.ask(
            f"SELECT CELL(2) AS cell, BUCKET('1mo') AS month, CONTAINS({', '.join(values)}) AS c WHERE {where} "
            "GROUP BY cell, month"
        )
        for row in answer:
            there = truth.pop((row["cell"], row["month"].strftime("%Y-%m")), False)
            assert row["c"].low <= there <= row["c"].high
            denied += row["c"].estimate == 0
        assert not truth
    assert denied > 20


def test_groups_by_bins_keep_their_word() -> None:
    answer = STATIONS.ask("SELECT BIN(temp, 10) AS b, CONTAINS(half < 20, rain > 1) AS c, COUNT(*) AS n GROUP BY b")
    for row in answer:
        if row["b"] is None or row["b"].low is None:
            continue
        bin_ = f"temp >= {row['b'].low} AND temp < {row['b'].high}"
        there = STATIONS.is_there(["half < 20", "rain > 1"], bin_)
        assert row["c"].low <= there <= row["c"].high


# --- and so is a yes, of whole bins and spans -------------------------------------------------------------------------


def test_two_features_are_told_exactly_at_the_grain_of_joint_bins_and_whole_spans() -> None:
    random, grain, scales = np.random.default_rng(10), STATIONS.grain, STATIONS.relation.summary.scales
    prefixes = ["", *sorted({str(cell)[:length] for cell in STATIONS.cells for length in (1, 2)})]
    months = ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01", "2024-05-01"]
    seen = set()
    for _ in range(400):
        values = []
        for feature in random.permutation(3)[: random.integers(1, 3)]:
            low, high = grain.ranges(scales, int(feature))
            first = int(random.integers(low.size))
            last = min(first + int(random.integers(3)), low.size - 1)
            values.append(f"{FEATURES[feature]} BETWEEN {float(low[first])!r} AND {float(high[last])!r}")
        prefix, (one, two) = random.choice(prefixes), sorted(random.choice(len(months), 2, replace=False))
        times = f"time >= '{months[one]}' AND time < '{months[two]}'"
        begin, end = (int(np.datetime64(months[at], "us").astype(np.int64)) for at in (one, two))
        where = f"location LIKE '{prefix}%' AND {times}"
        there = STATIONS.is_there(values, f"cell LIKE '{prefix}%' AND us >= {begin} AND us < {end}")
        answer = STATIONS.ask(f"SELECT CONTAINS({', '.join(values)}) AS c WHERE {where}")
        assert (answer["c"].estimate, answer["c"].low, answer["c"].high) == (there, there, there), values
        assert answer["c"].guarantee == "exact"
        assert "which is wrong for 0% of bins that did not meet there" in answer.notes[0]
        seen.add(there)
    assert seen == {False, True}


# --- what a yes means -------------------------------------------------------------------------------------------------


def test_the_note_names_the_bins_and_says_where_the_scope_cuts() -> None:
    grain, scales = STATIONS.grain, STATIONS.relation.summary.scales
    answer = STATIONS.ask("SELECT CONTAINS(temp BETWEEN 20 AND 21, rain = 0) AS c")
    low, high = grain.ranges(scales, 0)
    touched = (low <= 21) & (high >= 20)
    assert answer.notes == (
        f"c: no is sure; yes means that a row lay in the same bins, {low[touched].min():g}..{high[touched].max():g} "
        f"of temp and 0..0 of rain, in the {len(STATIONS.relation.summary.meetings)} spans touched, "
        "which is wrong for 0% of bins that did not meet there",
    )
    cut = STATIONS.ask("SELECT CONTAINS(temp > 20, half IS NULL) AS c WHERE time < '2024-02-10'")
    assert "and no half, in the " in cut.notes[0]
    assert "are cut, where it may lie outside of what is asked: no rate is stated" in cut.notes[0]


def test_the_note_states_no_rate_for_three_features_and_without_meetings() -> None:
    text = "SELECT CONTAINS(temp > 20, rain > 1, half > 3) AS c"
    assert "each two of its features lay in the same bins" in STATIONS.ask(text).notes[0]
    assert STATIONS.ask(text).notes[0].endswith("no rate is stated")
    assert "leave room for such a row, and no rate is stated" in STATIONS.blind(text).notes[0]


def test_frequencies_and_counts_of_what_never_met_are_exactly_none() -> None:
    text = "temp > 30, half > 40"
    condition = text.replace(", ", " AND ")
    answer = STATIONS.ask(f"SELECT FREQUENCY({text}) AS f, COUNT(*) FILTER (WHERE {condition}) AS n")
    assert STATIONS.blind(f"SELECT FREQUENCY({text}) AS f")["f"].high > 0
    for name in ("f", "n"):
        value = answer[name]
        assert (value.estimate, value.low, value.high, value.guarantee, value.p95) == (0, 0, 0, "exact", None)


def test_of_rows_that_are_surely_none_nothing_is_told() -> None:
    columns = "CELL(1) AS c, COUNT(*) AS n, MEAN(half) AS m, STD(temp) AS s, MEDIAN(half) AS q"
    text = f"SELECT {columns} WHERE {{}} GROUP BY CELL(1)"
    never = STATIONS.ask(text.format("temp > 30 AND half > 40"))
    assert len(never) > 0
    for row in never:
        assert (row["n"].estimate, row["n"].guarantee) == (0, "exact")
        assert [str(row[name]) for name in ("m", "s", "q")] == ["none exact"] * 3
    some = STATIONS.ask(text.format("temp > 30 AND half > 10"))
    assert all(row["m"].estimate is not None for row in some if row["n"].estimate > 0)
    assert any(row["n"].estimate > 0 for row in some)


def test_a_part_of_a_sketch_and_a_sum_without_meetings_answer_as_before() -> None:
    part = STATIONS.ask("SELECT temp, half WHERE time >= '2024-02-01'")
    assert part.summary.meetings is None
    assert asked_of(part, "SELECT CONTAINS(temp > 30, half > 40) AS c")["c"].estimate == 1
    assert (STATIONS.relation.summary.beside(STATIONS.data.summary)).meetings is None
    both = STATIONS.relation.summary.beside(STATIONS.relation.summary)
    assert both.meetings is not None
    assert len(both.meetings) == len(STATIONS.relation.summary.meetings)


def test_a_day_that_the_scope_cuts_is_touched_whole() -> None:
    """The scope ends within the first day of moving rows: days are what spans know."""
    ground = GROUNDS["moving"]
    answer = ground.ask(f"SELECT CONTAINS(speed > 0) AS c WHERE time < '{instant(BEGIN_US + DAY_US // 2)}'")
    assert answer["c"].high == 1
    assert "cut" in answer.notes[0]
