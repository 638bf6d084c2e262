"""What a glance takes in leads the same way as the tree of the question, array by array; the rest is left to it."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.query.questions import Questions, spelled
from tests.query.test_fuzz import mutated
from tests.query.test_paths import PLAIN
from tests.query.test_straight import COLUMNS, GROUND, SCOPES, relation_of

import synopsis.query.straight as way
from synopsis.core.errors import SynopsisError
from synopsis.query.glance import named, seen
from synopsis.query.language import read
from synopsis.query.straight import Ground, Route, answered

FEATURES = named(PLAIN.layout.features)
RELATION = relation_of(PLAIN)
SUMMARY = PLAIN.summary
TEXTS = (
    "SELECT MEAN(temp)",
    "select mean(temp), Count(*) where Location Like 'U%' and temp >= 5 and temp < 12.5",
    "SELECT MEAN(temp)WHERE temp>5 AND rain<-1e-3",
    "SELECT COUNT(*), MAX(rain) WHERE time = '2024-01-12' AND time <= '2024-01-13T04:05:06Z'",
    "SELECT COUNT(*), MAX(rain) WHERE time > '2024-01-12 00:00:00.25' AND time < '2024-02-13'",
    "SELECT COUNT(*), MAX(rain) WHERE location = 'm' AND BOX(-60, 170, 60, -20) AND rain = -0.0",
    "SELECT COUNT(*), MAX(rain) WHERE WITHIN('POLYGON ((-170 -60, 170 -60, 0 80, -170 -60))') AND temp != 10.5",
    "SELECT STD(rain) WHERE NEAR(0, 0, 9000) AND half IS NULL AND rain IS NOT NULL",
    "SELECT STD(rain) WHERE (half BETWEEN 30 AND 42 OR half IS NULL) AND NOT (temp > 3 AND temp <= 7 OR temp = 9)",
    "SELECT STD(rain) WHERE ((temp > 3)) AND NOT temp < 5 AND temp <> 6 AND half >= 7 AND half < 7",
    "SELECT STD(rain) WHERE temp BETWEEN 5 AND 3 AND rain > 1",
    "SELECT STD(rain) WHERE half IS NULL AND half IS NOT NULL",
    "SELECT STD(rain)\n  WHERE temp > 3\n    AND rain > 1\n",
    "SELECT MEAN(temp), QUANTILE(temp, 0.25), CORRELATION(temp, rain), SUM(temp) WHERE rain > 5000 AND temp > 0",
)
LEFT = (
    "SELECT MEAN(temp) WHERE time < '2024-01-12' AND time > '2024-01-12'",
    "SELECT MEAN(temp) WHERE time <> '2024-01-12'",
    "SELECT MEAN(temp) WHERE time < '2024-01-12' AND time < '2024-01-12 05:00 Europe/Paris'",
    "SELECT MEAN(temp) WHERE location LIKE '%' AND temp > 3",
    "SELECT MEAN(temp) WHERE location LIKE 'm%' AND location LIKE 'mq%'",
    "SELECT MEAN(temp) WHERE BOX(0, 0, 9, 9) AND NEAR(0, 0, 9)",
    "SELECT MEAN(temp) WHERE BOX(-90, -180, 90, 180) AND temp > 3",
    "SELECT MEAN(temp) WHERE temp > 3 OR rain > 1",
    "SELECT MEAN(temp) WHERE (temp > 3 OR rain > 1)",
    "SELECT MEAN(temp) WHERE NOT half IS NULL",
    "SELECT MEAN(temp) WHERE lat > 3",
    "SELECT MEAN(temp) WHERE 3 < temp",
    "SELECT MEAN(temp) WHERE temp IN (1, 2)",
    "SELECT MEAN(temp), MEAN(temp)",
    "SELECT MEAN(temp) AS warm",
    "SELECT MEAN(temp) FROM other WHERE temp > 3",
    "SELECT MEAN(temp) WHERE temp > 3 -- and more",
)
WRONG = (
    "SELECT MEAN(temp) WHERE",
    "SELECT MEAN(temp) WHERE AND temp > 3",
    "SELECT MEAN(temp) WHERE temp > 3 AND",
    "SELECT MEAN(temp) WHERE temp > 3 temp < 5",
    "SELECT MEAN(temp) WHERE temp > 3andrain > 5",
    "SELECT MEAN(temp) WHEREtemp > 3",
    "SELECT MEAN(temp) WHERE (temp > 3",
    "SELECT MEAN(temp) WHERE temp > 3)",
    "SELECT MEAN(temp) WHERE temp > 'much'",
    "SELECT MEAN(temp) WHERE temp > 1e999",
    "SELECT MEAN(temp) WHERE wind > 3",
    "SELECT MEAN(temp) WHERE time > '2024-13-01'",
    "SELECT MEAN(temp) WHERE location LIKE 'a%'",
    "SELECT MEAN(temp) WHERE location = ''",
    "SELECT MEAN(temp) WHERE BOX(9, 0, 0, 9)",
    "SELECT MEAN(temp) WHERE NEAR(95, 0, 9)",
    "SELECT MEAN(temp) WHERE NEAR(5, 0, -9)",
    "SELECT MEAN(temp) WHERE WITHIN('POLYGON ((0 0))')",
    "SELECT MEAN(wind) WHERE temp > 3",
    "SELECT QUANTILE(temp, 1.5) WHERE temp > 3",
    "SELECT MEAN(temp, rain) WHERE temp > 3",
    "SELECT MEAN() WHERE temp > 3",
)


def laid_open(part: Any) -> Any:
    """Arrays with their types and all their numbers, tuples with all their parts."""
    if isinstance(part, tuple):
        return tuple(map(laid_open, part))
    return (part.dtype.str, part.shape, part.tobytes()) if isinstance(part, np.ndarray) else part


def outcome(way_of: Any) -> Any:
    """What comes of a text: a route laid open, none, or what is wrong with it."""
    try:
        found: Route | None = way_of()
    except SynopsisError as wrong:
        return type(wrong), str(wrong)
    return None if found is None else laid_open(tuple(found))


def leads_as_its_tree(text: str) -> bool:
    """Whether a glance takes in a text; if so, it must take it in rightly."""
    with contextlib.suppress(SynopsisError):
        answered(RELATION, text)
    glanced = outcome(lambda: way._ROUTES[RELATION].__wrapped__(text))
    assert glanced == outcome(lambda: way._found(text, Ground.of(SUMMARY), SUMMARY, PLAIN.layout)), text
    return seen(text, FEATURES) is not None


@pytest.mark.parametrize("text", [*TEXTS, *(f"SELECT {columns}{scope}" for columns in COLUMNS for scope in SCOPES)])
def test_plain_questions_lead_as_their_trees(text: str) -> None:
    assert leads_as_its_tree(text) or text not in TEXTS


@pytest.mark.parametrize("text", [*LEFT, *WRONG])
def test_what_is_not_plain_or_wrong_is_left_to_the_tree(text: str) -> None:
    leads_as_its_tree(text)
    if text in LEFT:
        assert seen(text, FEATURES) is None


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_random_questions_of_the_language_lead_as_their_trees(seed: int) -> None:
    chance = np.random.default_rng(seed)
    leads_as_its_tree(spelled(Questions(GROUND, chance, depth=2).question(), chance))


@given(st.sampled_from((*TEXTS, *LEFT)), st.integers(0, 2**32), st.integers(1, 4))
@example("SELECT MEAN(temp) WHERE temp <- 5", 0, 0)
@example("SELECT MEAN(temp) WHERE temp > 5.", 0, 0)
@example("SELECT MEAN(temp) WHERE temp > 1_000", 0, 0)
@example("SELECT MEAN(temp) WHERE location = 'it''s'", 0, 0)
@settings(max_examples=500, deadline=None)
def test_texts_with_mistakes_lead_as_their_trees(text: str, seed: int, steps: int) -> None:
    text = mutated(text, seed, steps)
    leads_as_its_tree(text)
    try:
        read(text)
    except SynopsisError:
        with pytest.raises(SynopsisError):
            answered(RELATION, text)


def random_question(chance: np.random.Generator) -> str:
    """A plain question with conditions of every kind."""
    names = list(FEATURES)
    numbers = [round(float(chance.normal(0, 20)), int(chance.integers(0, 4))) for _ in range(2)]
    name, low, high = chance.choice(names), min(numbers), max(numbers)
    one = (
        f"{name} {chance.choice(['<', '<=', '=', '<>', '!=', '>=', '>'])} {low}",
        f"({name} < {low} OR {name} >= {high})",
        f"{name} >= {low} AND {name} < {high}",
        f"NOT ({name} BETWEEN {low} AND {high})",
        f"({name} IS NULL OR {name} > {low})",
        f"{name} IS NOT NULL",
        f"time >= '2024-01-{int(chance.integers(1, 20)):02}'",
        f"time < '2024-02-{int(chance.integers(1, 20)):02} 05:30'",
    )
    conditions = " AND ".join(chance.choice(one, int(chance.integers(1, 5))))
    return f"SELECT {chance.choice(COLUMNS[2:])}, COUNT(*) WHERE {conditions}".replace(", COUNT(*), COUNT(*)", "")


@given(st.integers(0, 2**32))
@settings(max_examples=500, deadline=None)
def test_conditions_of_every_kind_lead_as_their_trees(seed: int) -> None:
    leads_as_its_tree(random_question(np.random.default_rng(seed)))


def test_most_plain_conditions_are_taken_in() -> None:
    drawn = [random_question(np.random.default_rng(seed)) for seed in range(200)]
    assert sum(seen(text, FEATURES) is not None for text in drawn) > 150


def test_features_that_are_words_of_sql_are_left_to_the_tree() -> None:
    assert named(("temp", "left", "case", "rain")) == {"temp": 0, "rain": 3}
