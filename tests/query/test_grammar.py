"""The whole language at random: sketches agree with DuckDB, whatever is asked and however it is spelled.

Few sketches are built, and each is asked many questions, whose seeds are fixed; benches/grammar.py asks far more, and
replays one by its seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from tests.query.exam import Exam, Tally
from tests.query.grounds import Data, flights, moving, stations
from tests.query.oracle import Oracle
from tests.query.questions import Questions, spelled

import synopsis as syn
from synopsis.query.language import read
from synopsis.query.plain import to_json
from synopsis.query.spelling import from_json

pytestmark = pytest.mark.spark

QUESTIONS = 80
DATA = {"stations": stations, "flights": lambda: flights(months=2), "moving": moving}
#: Every term of a condition is evaluated by itself, and so is every bin that is grouped by: few leave time for more.
MOST_GROUPS = {"summary": 12, "strands": 60}
SKETCHES = (
    ("stations", "summary"),
    ("stations", "strands"),
    ("flights", "summary"),
    ("flights", "strands"),
    ("moving", "summary"),
)


@pytest.fixture(scope="module", autouse=True)
def _spark() -> Iterator[None]:
    """One session for all sketches; it ends before that of other tests begins."""
    from synopsis.spark import session

    session.session(conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    yield
    session.stop()


@pytest.fixture(scope="module")
def data() -> dict[str, Data]:
    return {name: make() for name, make in DATA.items()}


@pytest.fixture(scope="module", params=SKETCHES, ids=" ".join)
def tally(request: Any, data: dict[str, Data], tmp_path_factory: pytest.TempPathFactory) -> Tally:
    """What came of all questions to a sketch beside its rows."""
    name, kind = request.param
    place = tmp_path_factory.mktemp("grammar") / f"{name}-{kind}.syn"
    report = syn.build(data[name].table, data[name].spec(kind), place, progress=False)
    assert report.rows == len(data[name].table)
    oracle, tally = Oracle(data[name]), Tally()
    exam = Exam(syn.open(place), oracle, data[name].ground(kind, most_groups=MOST_GROUPS[kind]), depth=2)
    for seed in range(QUESTIONS):
        exam.examine(seed, tally)
    oracle.close()
    return tally


def told(tally: Tally) -> str:
    """What went wrong, to be read and replayed."""
    return "\n".join(tally.problems[:5])


def test_no_question_fails_and_few_are_refused(tally: Tally) -> None:
    assert tally.questions == QUESTIONS
    assert not tally.failed, told(tally)
    assert tally.refused <= QUESTIONS // 10, tally.refusals


def test_what_is_exact_is_what_the_rows_give(tally: Tally) -> None:
    assert tally.values > 10 * QUESTIONS
    assert not tally.wrong_exact, told(tally)


def test_what_is_certain_holds_the_truth_and_the_estimate(tally: Tally) -> None:
    assert not tally.certain_misses, told(tally)
    assert not tally.outside, told(tally)


def test_groups_are_those_that_rows_fall_into_in_the_order_of_their_keys(tally: Tally) -> None:
    assert not tally.wrong_groups, told(tally)
    assert not tally.unordered


def test_having_order_and_limit_go_by_the_estimates_of_all_groups(tally: Tally) -> None:
    assert not tally.wrong_order, told(tally)


def test_sql_and_json_are_read_and_answered_alike(tally: Tally) -> None:
    assert not tally.spellings, told(tally)


def test_groups_asked_by_themselves_are_answered_alike(tally: Tally) -> None:
    assert tally.alone > QUESTIONS
    assert not tally.alone_apart, "\n".join(tally.notes[:5])


def test_every_spelling_of_a_question_is_read_as_the_same_tree(data: dict[str, Data], repository: Path) -> None:
    schema = json.loads((repository / "docs" / "question.schema.json").read_text(encoding="utf-8"))
    valid = jsonschema.Draft202012Validator(schema)
    ground = data["stations"].ground("summary")
    for seed in range(600):
        random = np.random.default_rng(seed)
        question = Questions(ground, random).question()
        text, plain = spelled(question, random), to_json(question)
        assert read.__wrapped__(spelled(question)) == question
        assert read.__wrapped__(text) == question, text
        assert from_json(json.dumps(plain)) == question, text
        if seed % 10 == 0:
            valid.validate(plain)
