"""What is read quickly is read into the same tree as through sqlglot, places included; what is wrong is left to it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.query.questions import Ground, Questions, spelled
from tests.query.test_fuzz import TEXTS, mutated
from tests.query.test_language import GOLDEN, pairs

from synopsis.core.errors import BadQuery
from synopsis.query.language import parsed, read
from synopsis.query.quick import plainly

PLAIN = (
    "SELECT COUNT(*), MEAN(temp_c), STD(temp_c), CORRELATION(temp_c, rh), QUANTILE(temp_c, 0.25), SUM(temp_c), "
    "MIN(temp_c), MAX(temp_c) WHERE BOX(-12.5, -70.25, 3.0, -60) AND time >= '2025-01-03 04:05:06' AND time < "
    "'2025-02-01' AND rh >= 40.5 AND rh < 1e2 AND (wind_ms < 1.5 OR wind_ms >= 2.5) AND NOT (gust > -3)",
    "select count(*) where location like '6g%' and (rh between -5 and 20 or rh is null)",
    "SELECT avg(rh) AS mean_rh, MEDIAN(rh) WHERE NOT rh IN (1, 2.5, -3) AND rh IS NOT NULL AND location IN ('6g', 'u')",
    "SELECT COUNT(*)\n  WHERE time BETWEEN '2025-01-01' AND '2025-01-02'\n    AND NEAR(48.86, 2.35, 50)\n  OR rh <> 5",
    "SELECT CELL(3), COUNT(*) WHERE WITHIN('POLYGON ((0 0, 9 0, 0 9, 0 0))') GROUP BY CELL(3), BUCKET('1mo')",
    "SELECT COUNT(*) WHERE location = '6g' OR location LIKE '6F%' OR location IN ('u0', 'u1')",
    "SELECT COUNT(*) WHERE location LIKE '%' OR rh > 5",
    "SELECT COUNT(rh)WHERE rh<-5 AND rh>=-9",
    "SELECT PROBABILITY(rh > 80 AND NOT temp_c < 5) WHERE location LIKE '6g%'",
    "SELECT FREQUENCY(temp_c = 21, rh BETWEEN 80 AND 90), CONTAINS(temp_c = 21), contains ( rh = 1 OR rh = 2 ) AS one",
    "SELECT CONTAINS('A652'), CONTAINS(station = 'A652') AS there WHERE time > '2025-01-01'",
    "SELECT PREDICT(rh, temp_c = 20, wind_ms = -3.5), OUTLIERS(rh, 3) WHERE gust > 1",
    "SELECT CELL(3) AS cell, COUNT(*) AS n GROUP BY cell ORDER BY n DESC, CELL(3) LIMIT 5",
    "SELECT BUCKET('1d'), MEAN(rh) GROUP BY BUCKET('1d')\nORDER BY MEAN(rh) asc LIMIT 12",
    "SELECT MEAN(temp), CORRELATION(percent, temp) AS index, PREDICT(index, temp = 3), PROBABILITY(percent > 5 AND NOT "
    "temp < 3) WHERE temp > 5 AND NOT index < 3 AND (percent IS NULL OR temp BETWEEN 2 AND 3 OR index IN (1, 2))",
    "SELECT MEAN(rh) AS temp ORDER BY temp",
    "SELECT CARDINALITY(station), cardinality( CELL(3) ) AS cells, CARDINALITY(BUCKET('1d'), CELL(2)) WHERE rh > 5",
    "SELECT CARDINALITY(station)\nWHERE location LIKE '6g%'",
    "SELECT DENSITY(temp_c)",
    "SELECT density( temp_c , 0.5 ) AS curve WHERE BOX(-12.5, -70.25, 3.0, -60) GROUP BY CELL(2)",
    "SELECT FORECAST(temp_c, '7d') WHERE location LIKE '6g%' AND time < '2025-02-01'",
    "SELECT FORECAST(rh, '2d', '1h')\n  WHERE NOT temp_c > 5\n  GROUP BY CELL(3)",
    "SELECT *",
    "SELECT * WHERE NEAR(48.86, 2.35, 50) AND time >= '2025-01-03'",
    "select temp_c , rh where rh > 5 or location = '6g'",
    "SELECT temp_c",
    "SELECT MIN ( rh ) WHERE ((rh = 0)) AND NOT NOT rh != -0.0",
)
VALUES = {"temp_c": np.array([-3.5, 0.0, 21.25]), "rh": np.array([0.0, 55.5, 100.0])}
GROUND = Ground(
    np.array([-89.9, 0.0, 48.86]), np.array([-180.0, 2.35, 179.5]), np.array([0, 86_400_000_000, 10**15]), VALUES
)


def laid_open(part: Any) -> Any:
    """A tree with what comparisons leave out, which is where parts stand in the text."""
    if is_dataclass(part):
        own = {field.name: laid_open(getattr(part, field.name)) for field in fields(part)}
        return type(part).__name__, own
    return tuple(map(laid_open, part)) if isinstance(part, tuple) else repr(part)


def reads_as_sqlglot(text: str) -> bool:
    """Whether it is read quickly; if so, it must be read rightly."""
    found = plainly(text)
    if found is None:
        return False
    assert laid_open(found) == laid_open(parsed(text)), text
    return True


@pytest.mark.parametrize("text", PLAIN)
def test_plain_questions_are_read_quickly_and_alike(text: str) -> None:
    assert reads_as_sqlglot(text)
    assert read(text) == plainly(text)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_golden_questions_are_read_alike_or_left_to_sqlglot(path: Any) -> None:
    for question, _ in pairs(path):
        reads_as_sqlglot(question)


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_random_questions_of_the_language_are_read_alike(seed: int) -> None:
    chance = np.random.default_rng(seed)
    reads_as_sqlglot(spelled(Questions(GROUND, chance).question(), chance))


@given(st.sampled_from((*PLAIN, *TEXTS)), st.integers(0, 2**32), st.integers(1, 4))
@example("SELECT COUNT(*) WHERE rh <- 5", 0, 0)
@example("SELECT COUNT(*) WHERE rh > 5 -- a comment", 0, 0)
@example("SELECT COUNT(*) WHERE location LIKE 'it''s'", 0, 0)
@example("SELECT COUNT(*) WHERE rh > 1_000", 0, 0)
@example("SELECT COUNT(*) WHERE rh > 5.", 0, 0)
@example("SELECT COUNT(*) WHERE rh > 1e999", 0, 0)
@example("SELECT MEAN(date), MEAN(case), MEAN(if), MEAN(temp) WHERE left > 5", 0, 0)
@settings(max_examples=500, deadline=None)
def test_what_sqlglot_refuses_is_never_read_quickly(text: str, seed: int, steps: int) -> None:
    text = mutated(text, seed, steps)
    try:
        parsed(text)
    except BadQuery:
        assert plainly(text) is None, text
    else:
        reads_as_sqlglot(text)


def test_of_random_questions_without_arithmetic_many_are_read_quickly() -> None:
    drawn = (spelled(Questions(GROUND, np.random.default_rng(seed)).question()) for seed in range(200))
    assert sum(map(reads_as_sqlglot, drawn)) > 20


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MEAN(rh) / 2",
        "SELECT MEAN(rh) WHERE rh > MEAN(rh)",
        "SELECT MEAN(rh) ORDER BY MEAN(rh) NULLS FIRST",
        "SELECT MEAN(rh) ORDER BY left",
        "SELECT MEAN(rh) LIMIT 1.5",
        "SELECT PREDICT(rh, rh = 5)",
        "SELECT PREDICT(rh)",
        "SELECT OUTLIERS(rh, 0)",
        "SELECT OUTLIERS(rh)",
        "SELECT DENSITY(rh, 0)",
        "SELECT DENSITY(rh), COUNT(*)",
        "SELECT DENSITY(rh) LIMIT 5",
        "SELECT FORECAST(rh)",
        "SELECT FORECAST(rh, 'soon')",
        "SELECT FORECAST(rh, '7d') GROUP BY BUCKET('1d')",
        "SELECT CARDINALITY(CELL(2), CELL(3))",
        "SELECT CARDINALITY(MEAN(rh))",
        "SELECT rh, COUNT(*)",
        "SELECT rh GROUP BY CELL(2)",
        "SELECT *, rh",
        "SELECT left WHERE rh > 5",
        "SELECT PROBABILITY(rh > 5, rh < 2)",
        "SELECT PROBABILITY()",
        "SELECT CONTAINS(location = 'A652')",
        "SELECT COUNT(*) AS n GROUP BY n",
        "SELECT rh FROM weather",
        "SELECT COUNT(*) WHERE 5 < rh",
        "SELECT COUNT(*), COUNT(*)",
        "SELECT COUNT(*) GROUP BY CELL(13)",
        'SELECT MEAN("PM2.5")',
        "SELECT CORRELATION(rh)",
        "SELECT QUANTILE(rh, 1.5)",
        "SELECT COUNT(*) WHERE time > 'yesterday'",
        "SELECT COUNT(*) WHERE BOX(9, 0, 1, 2)",
        "SELECT COUNT(*) WHERE " + "(" * 3000 + "rh > 1" + ")" * 3000,
        "",
    ],
    ids=lambda text: text[:40],
)
def test_what_is_not_plain_is_left_to_sqlglot(text: str) -> None:
    assert plainly(text) is None
