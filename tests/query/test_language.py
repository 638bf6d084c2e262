"""The language is tested by what it prints: golden files hold questions, each followed by its tree or its refusal.

A file whose expectations are out of date is written anew by `python tests/query/test_language.py`; read the difference.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from synopsis.core.errors import BadQuery, UnknownFeature
from synopsis.query.binding import bind
from synopsis.query.language import read
from synopsis.query.tree import Asked, Question
from synopsis.sketch.layout import Layout

GOLDEN = Path(__file__).parent / "golden"
LAYOUT = Layout(("temp_c", "rh", "PM2.5"), bits=20, bucket="1mo")


def pairs(path: Path) -> list[tuple[str, str]]:
    """The questions of a file and what is expected of each."""
    found = []
    for block in path.read_text().strip("\n").split("\n\n"):
        lines = block.split("\n")
        question = "\n".join(line[2:] for line in lines if line.startswith(">"))
        found.append((question, "\n".join(line for line in lines if not line.startswith(">"))))
    return found


def bound(tree: Asked) -> None:
    """Bind a question, and those that it joins."""
    for part in [tree] if isinstance(tree, Question) else [each.question for each in getattr(tree, "sources", ())]:
        bind(part, LAYOUT)


def printed(question: str) -> str:
    try:
        tree = read(question)
        bound(tree)
    except BadQuery as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return str(tree)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        pytest.param(*pair, id=f"{path.stem}-{number}")
        for path in sorted(GOLDEN.glob("*.txt"))
        for number, pair in enumerate(pairs(path), 1)
    ],
)
def test_a_question_prints_as_its_golden_file_says(question: str, expected: str) -> None:
    assert printed(question) == expected


def test_a_question_read_twice_is_the_same_tree() -> None:
    assert read("SELECT COUNT(*) -- once") is read("SELECT COUNT(*) -- once")


def test_questions_that_ask_the_same_are_equal_wherever_their_words_stand() -> None:
    assert read("SELECT MEAN(rh) AS m") == read("SELECT\n  AVG(rh) AS m")
    assert read("SELECT MEAN(rh) AS m") != read("SELECT MEAN(temp_c) AS m")


def test_contains_is_a_function_only_where_it_is_called() -> None:
    asked = read("SELECT MEAN(contains), CONTAINS (contains = 1, rh = 2, dew = 3) AS all WHERE contains > 4")
    assert str(asked) == (
        "select mean(contains) as 'MEAN(contains)'\n"
        "select contains(contains = 1.0 and rh = 2.0 and dew = 3.0) as 'all'\n"
        "scope contains > 4.0"
    )


def test_a_thousand_conditions_are_read() -> None:
    question = read("SELECT COUNT(*) WHERE " + " AND ".join(["location LIKE 'dj%'"] * 1000))
    assert bind(question, LAYOUT).parts[0].scope.prefixes == ("dj",)


def test_thousands_of_geohashes_joined_by_or_are_a_list_of_them() -> None:
    question = read("SELECT COUNT(*) WHERE " + " OR ".join(["location LIKE 'dj%'", "location = 'dn'"] * 1500))
    assert bind(question, LAYOUT).parts[0].scope.prefixes == ("dj", "dn")


def test_every_example_of_the_page_on_the_language_is_read_and_bound(repository: Path) -> None:
    text = (repository / "docs" / "language.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    questions = [question for block in blocks for question in block.split(";") if question.strip()]
    assert len(questions) >= 4
    for question in questions:
        bound(read(question))


def test_a_question_nested_beyond_reason_is_refused_and_not_a_crash() -> None:
    with pytest.raises(BadQuery, match="nested too deeply"):
        read("SELECT " + "(" * 5000 + "1" + ")" * 5000)


@pytest.mark.parametrize(
    ("question", "error", "line", "column"),
    [
        ("SELECT COUNT(*),\n  MEAN(humidity)", UnknownFeature, 2, 8),
        ("SELECT MEDIAN(rh),\n  QUANTILE(rh, 2)", BadQuery, 2, 16),
        ("SELECT COUNT(*) WHERE rh > 80\n  AND rg > 80", UnknownFeature, 2, 7),
        ("SELECT COUNT(*)\nWHERE rh = 1 AND\n  WITHIN('POLYGON ((0 0, 1 1))')", BadQuery, 3, 10),
        ("SELECT COUNT(*)\nWHERE NOT (-1 < rh OR\n  -'1' < rh)", BadQuery, 3, 3),
        ("SELECT MEAN(rh)\n  FRM a b c", BadQuery, 2, 7),
    ],
)
def test_a_refusal_points_at_line_and_column(question: str, error: type[BadQuery], line: int, column: int) -> None:
    with pytest.raises(error) as caught:
        bind(read(question), LAYOUT)
    assert (caught.value.line, caught.value.column) == (line, column)


if __name__ == "__main__":
    for golden in sorted(GOLDEN.glob("*.txt")):
        blocks = []
        for text, _ in pairs(golden):
            asked = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
            blocks.append(f"{asked}\n{printed(text)}")
        golden.write_text("\n\n".join(blocks) + "\n")
