"""Bad input: mutated questions and random bytes are answered, or refused in a sentence; nothing else happens."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.query.test_evaluate import WEATHER
from tests.query.test_paths import PLAIN

from synopsis.core.errors import BadQuery
from synopsis.query.answer import Answer
from synopsis.query.evaluate import asked_of
from synopsis.query.explain import explain
from synopsis.query.relation import Relation
from synopsis.sketch.strands import Strands

GOLDEN = Path(__file__).parent / "golden"
LAYOUT = replace(PLAIN.layout, features=("temp_c", "rh", "PM2.5"))
PATHS = Relation(Strands.empty(LAYOUT), PLAIN.summary)
STRANDS = Relation(WEATHER.strands)

TEXTS = [path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.sql"))]
PLAINS = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(GOLDEN.glob("*.json"))]
VOCABULARY = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AND OR NOT IN IS NULL BETWEEN LIKE AS JOIN USING ON FILTER DISTINCT OVER
( ) , ; ' " * + - / = <> < > >= <= . : -- /* */ % {} [] 0 -1 1e308 1e999 NaN CASE UNION WITH EXISTS ALL CAST INTERVAL
COUNT(*) MEAN(rh) QUANTILE(rh,0.5) CELL(3) BUCKET('1mo') BIN(rh) BIN(rh,5) BOX(1,2,3,4) NEAR(0,0,9) TRUE FALSE
time location lat lon temp_c rh '2025-01-01' '6g%' é
"""
WORDS = [*VOCABULARY.split(), "WITHIN('POLYGON((0 0,9 0,0 9,0 0))')", "\x00", "\U0001f600"]
VALUES: list[Any] = [None, True, 0, -1, 0.5, 1e308, "", "*", "rh", "6g", "2025-01-01", [], {}, [1, 2], {"rh": {">": 1}}]

#: Seconds and bytes that no short question may take; generous, for machines are shared.
LONGEST, MOST = 20.0, 500_000_000


def is_answered_or_refused(relation: Relation, question: Any) -> None:
    began = time.monotonic()
    told = "answered"
    try:
        found = asked_of(relation, question)
        if isinstance(found, Answer):
            assert all(len(found.column(name)) == len(found) for name in found.columns)
            assert repr(found)
    except BadQuery as refusal:
        told = str(refusal)
    assert 0 < len(told.strip()) < 2_000
    assert "Traceback" not in told
    assert time.monotonic() - began < LONGEST


def mutated(text: str, seed: int, steps: int) -> str:
    """A text with slices deleted, doubled, swapped and words put in."""
    chance = random.Random(seed)
    for _ in range(steps):
        at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        to = min(to, at + chance.choice((1, 3, 20)))
        match chance.randrange(5):
            case 0:
                text = text[:at] + text[to:]
            case 1:
                text = text[:to] + text[at:to] + text[to:]
            case 2:
                text = text[:at] + f" {chance.choice(WORDS)} " + text[to:]
            case 3:
                text = text[:at] + text[at:to].swapcase() + text[to:]
            case _:
                words = text.split(" ")
                chance.shuffle(words[: chance.randrange(len(words)) + 1])
                one, two = chance.randrange(len(words)), chance.randrange(len(words))
                words[one], words[two] = words[two], words[one]
                text = " ".join(words)
    return text


def twisted(plain: Any, chance: random.Random) -> Any:
    """Plain values with one of them replaced, renamed, wrapped or taken away."""
    if isinstance(plain, dict) and plain and chance.random() < 0.8:
        key = chance.choice(list(plain))
        copy = dict(plain)
        match chance.randrange(5):
            case 0:
                del copy[key]
            case 1:
                copy[chance.choice([*WORDS, "mean", "and", "cell", "from", "on"])] = copy.pop(key)
            case _:
                copy[key] = twisted(copy[key], chance)
        return copy
    if isinstance(plain, list) and plain and chance.random() < 0.8:
        at = chance.randrange(len(plain))
        return [*plain[:at], twisted(plain[at], chance), *plain[at + chance.randrange(2) :]]
    return chance.choice([*VALUES, [plain], {"not": plain}, {"and": [plain, plain]}])


@given(st.sampled_from(TEXTS), st.integers(0, 2**32), st.integers(1, 6))
@settings(max_examples=400, deadline=None)
def test_a_mutated_question_is_answered_or_refused_in_a_sentence(text: str, seed: int, steps: int) -> None:
    is_answered_or_refused(PATHS, mutated(text, seed, steps))


@given(st.sampled_from(PLAINS), st.integers(0, 2**32), st.integers(1, 4))
@settings(max_examples=400, deadline=None)
def test_a_twisted_question_as_json_is_answered_or_refused_in_a_sentence(plain: Any, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    for _ in range(steps):
        plain = twisted(plain, chance)
    is_answered_or_refused(PATHS, plain)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))))
@settings(max_examples=400, deadline=None)
def test_random_bytes_are_refused_in_a_sentence(given: bytes) -> None:
    text = given.decode("utf-8", "surrogateescape")
    for question in (text, f"SELECT {text}", f"SELECT COUNT(*) WHERE {text}", f'{{"select": {text}}}'):
        is_answered_or_refused(STRANDS, question)
    is_answered_or_refused(STRANDS, given)


@given(st.sampled_from(TEXTS), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_explaining_a_mutated_question_tells_how_or_refuses(text: str, seed: int) -> None:
    try:
        told = str(explain(PATHS, mutated(text, seed, 1)))
    except BadQuery as refusal:
        told = str(refusal)
    assert told.strip()


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) WHERE " + " OR ".join(f"(NEAR({at}, {at}, 100) AND rh > {at})" for at in range(60)),
        "SELECT COUNT(*) WHERE " + " OR ".join(f"time = '2024-01-{at % 28 + 1:02}T0{at % 9}:00'" for at in range(999)),
        "SELECT COUNT(*) WHERE location IN (" + ", ".join(f"'{at:x}'" for at in range(10)) + ")",
        "SELECT COUNT(*) WHERE " + "NOT " * 80 + "rh > 3",
        "SELECT " + ", ".join(f"MEAN(rh) + {at} AS m{at}" for at in range(500)),
        "SELECT COUNT(*) GROUP BY BIN(temp_c, 1e-300)",
        "SELECT COUNT(*) GROUP BY BIN(temp_c, 1e300)",
        "SELECT COUNT(*) GROUP BY BUCKET('1s', 'Asia/Tokyo')",
        "SELECT COUNT(*) GROUP BY BUCKET('9999y')",
        "SELECT COUNT(*) WHERE time > '0001-01-01' OR time < '9999-12-31T23:59:59.999999'",
        "SELECT COUNT(*) WHERE WITHIN('{\"type\": \"Polygon\"}')",
        "SELECT COUNT(*) WHERE WITHIN('{\"type\": \"FeatureCollection\", \"features\": []}')",
        "SELECT COUNT(*) WHERE WITHIN('" + "{" * 3000 + "')",
    ],
    ids=lambda question: question[:60],
)  # fmt: skip
def test_large_and_strange_questions_are_answered_or_refused_within_bounds(question: str) -> None:
    tracemalloc.start()
    try:
        is_answered_or_refused(PATHS, question)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
