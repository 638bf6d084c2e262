"""What goes straight to machine code is answered as by those who take questions of any kind, bit by bit."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.query.questions import Ground, Questions, spelled
from tests.query.test_paths import KEPT, PLAIN, Data

import synopsis.query.straight as way
from synopsis.core.errors import UnknownFeature
from synopsis.query.evaluate import answer_of, asked_of
from synopsis.query.language import read
from synopsis.query.relation import Relation
from synopsis.query.scoping import part_of, parts_of, where_of
from synopsis.query.straight import answered
from synopsis.query.thresholds import thresholds
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands

COLUMNS = (
    "COUNT(*), MEAN(temp), STD(temp), VAR(temp), SUM(temp), MIN(temp), MAX(temp), QUANTILE(temp, 0.25), MEDIAN(temp), "
    "CORRELATION(temp, rain)",
    "CORRELATION(rain, half) AS r, MEAN(half), COUNT(*) AS rows, MAX(half)",
    "MEAN(rain)",
    "QUANTILE(rain, 0.9), COUNT(*)",
    "CORRELATION(half, temp)",
)
SCOPES = (
    "",
    " WHERE time >= '2024-01-25' AND time < '2024-02-03 07:30:00'",
    " WHERE BOX(-60, -170, 60, 20) AND time < '2024-02-10'",
    " WHERE location LIKE 'm%' AND temp > 12",
    " WHERE lat > -20 AND rain > 0 AND temp BETWEEN 5 AND 18",
    " WHERE temp > 8 AND (rain = 0 OR rain > 2) AND NOT (half < 30)",
    " WHERE rain > 0.5 AND half IS NULL AND time >= '2024-01-30'",
    " WHERE location LIKE 'u%' AND temp > 3",
    " WHERE temp > 8 AND rain = 0 AND time >= '2024-01-12' AND time < '2024-01-20 05:00:00'",
    " WHERE temp > 8 AND rain > 5000 AND time < '2024-01-20'",
    " WHERE half > 7000",
    " WHERE time >= '2031-01-01'",
    " WHERE time > '2024-02-01' AND time < '2024-01-01'",
    " WHERE (half >= 30 AND half < 42 OR half IS NULL) AND NEAR(0, 0, 9000)",
    " WHERE WITHIN('POLYGON ((-170 -60, 170 -60, 0 80, -170 -60))') AND temp <> 10.5",
)
SHAPES = {
    "plain": PLAIN,
    "many blocks": Data(places=9, parts=3, strata_of_a_block=2),
    "shared bins": Data(places=12, region_bits=4, strata_of_a_block=3),
    "few paths": KEPT[0.01],
}


def relation_of(data: Data) -> Relation:
    return Relation(Strands.empty(data.layout), data.summary)


def laid_open(answer) -> dict[str, tuple[str, ...]]:
    """Columns with all their numbers, bit by bit."""
    found = {}
    for name in answer.columns:
        column = answer.column(name)
        numbers = (column.estimate, column.low, column.high, column.guarantee, column.p95)
        found[name] = tuple(f"{each.dtype} {each.tolist()}" for each in numbers)
    return found


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("shape", SHAPES)
def test_straight_answers_are_those_of_the_long_way(shape: str, columns: str, scope: str) -> None:
    relation, text = relation_of(SHAPES[shape]), f"SELECT {columns}{scope}"
    straight = answered(relation, text)
    if straight is None:  # no path tells
        assert shape == "few paths" or scope
        return
    assert laid_open(straight) == laid_open(answer_of(relation, read(text), text))
    assert laid_open(asked_of(relation, text)) == laid_open(straight)


def test_most_plain_questions_go_straight() -> None:
    relation = relation_of(PLAIN)
    texts = [f"SELECT {columns}{scope}" for columns in COLUMNS for scope in SCOPES]
    assert sum(answered(relation, text) is not None for text in texts) >= len(texts) - 2


GROUND = Ground(
    PLAIN.latitude[::97],
    PLAIN.longitude[::97],
    PLAIN.us[::97],
    {name: values[~np.isnan(values)][::50] for name, values in zip(PLAIN.layout.features, PLAIN.values, strict=True)},
)


@given(st.integers(0, 2**32))
@settings(max_examples=120, deadline=None)
def test_random_questions_that_go_straight_are_answered_as_by_the_long_way(seed: int) -> None:
    chance = np.random.default_rng(seed)
    asked = Questions(GROUND, chance, depth=2).question()
    text, relation = spelled(asked), relation_of(PLAIN)
    straight = answered(relation, text)
    if straight is not None:
        assert laid_open(straight) == laid_open(answer_of(relation, read(text), text))


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_the_part_of_a_plain_condition_is_the_one_that_terms_make(seed: int) -> None:
    asked = Questions(GROUND, np.random.default_rng(seed), depth=2)
    condition = asked._scope()
    if thresholds(condition):
        return
    part = part_of(condition, PLAIN.layout)
    if part is not None:
        assert parts_of(where_of(condition, PLAIN.layout)) == (part,)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MEAN(temp) GROUP BY CELL(1)",
        "SELECT MEAN(temp) + 1",
        "SELECT MEAN(temp), MEAN(rain)",
        "SELECT COUNT(*)",
        "SELECT MEAN(temp) LIMIT 1",
        "SELECT MEAN(temp) FROM other",
        "SELECT MEAN(temp) FILTER (WHERE rain > 0)",
        "SELECT MEAN(temp) WHERE temp > MEAN(temp)",
        "SELECT MEAN(temp) WHERE BOX(0, 0, 1, 1) OR temp > 5",
        "SELECT temp",
    ],
)
def test_what_is_not_plain_takes_the_long_way(text: str) -> None:
    assert answered(relation_of(PLAIN), text) is None


def test_a_part_under_a_condition_and_clocks_of_other_zones_take_the_long_way() -> None:
    text = "SELECT MEAN(temp)"
    whole = relation_of(PLAIN)
    assert answered(whole, text) is not None
    assert (
        answered(Relation(whole.strands, whole.summary, read("SELECT MEAN(temp) WHERE rain > 0").scope), text) is None
    )
    layout = Layout(PLAIN.layout.features, 20, "1d", "Europe/Paris")
    assert answered(Relation(Strands.empty(layout), PLAIN.summary), text) is None
    assert answered(Relation(whole.strands), text) is None


def test_a_name_that_is_not_known_is_refused_with_its_place() -> None:
    with pytest.raises(UnknownFeature, match="line 1, column 13"):
        asked_of(relation_of(PLAIN), "SELECT MEAN(tmp)")


def test_a_question_put_twice_at_other_places_of_a_text_is_refused_where_it_stands() -> None:
    relation = relation_of(PLAIN)
    asked_of(relation, "SELECT MEAN(temp)")
    for blanks in (1, 5):
        with pytest.raises(UnknownFeature, match=f"column {12 + blanks}"):
            asked_of(relation, f"SELECT{' ' * blanks}MEAN(wind)")


def test_threads_that_ask_at_once_get_the_same_answers() -> None:
    relation = relation_of(PLAIN)
    texts = [f"SELECT {COLUMNS[0]}{scope}" for scope in SCOPES] * 8
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: laid_open(asked_of(relation, text)), texts))
    for text, each in zip(texts, found, strict=True):
        assert each == laid_open(asked_of(relation_of(PLAIN), text)), text


def test_routes_go_with_their_sketch() -> None:
    relation = relation_of(KEPT[0.3])
    assert answered(relation, "SELECT MEAN(temp)") is not None
    gone = ref(relation)
    assert relation in way._ROUTES
    del relation
    gc.collect()
    assert gone() is None
