"""Conditions on features from text to clause: they select the rows that DuckDB selects by the same text."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synopsis.query.binding import Statistic, bind, plan
from synopsis.query.language import read
from synopsis.query.predicates import (
    EVERYTHING,
    AllOf,
    And,
    Between,
    Clause,
    Condition,
    IsNull,
    Leaf,
    Not,
    Or,
    positive,
)
from synopsis.query.scoping import Scope
from synopsis.query.tree import Place
from synopsis.sketch.layout import Layout

LAYOUT = Layout(("temp_c", "rh", "PM2.5"), bits=20, bucket="1mo")
Row = tuple[float | None, ...]


def condition(where: str) -> Condition:
    return bind(read(f"SELECT COUNT(*) WHERE {where}"), LAYOUT).parts[0].condition


def holds(clause: Clause, row: Row) -> bool:
    if isinstance(clause, Leaf):
        value = row[clause.feature]
        return clause.nulls if value is None else any(low <= value <= high for low, high in clause.ranges)
    parts = (holds(part, row) for part in clause.parts)
    return all(parts) if isinstance(clause, AllOf) else any(parts)


# --- random conditions ------------------------------------------------------------------------------------------------

GRID = (-2.0, -1.5, -1.0, 0.0, 0.5, 1.0, 2.0)
features = st.sampled_from(["temp_c", "rh", '"PM2.5"', "RH", "Temp_C", "(rh)"])
#: Numbers as people write them; long ones with an exponent, as DuckDB reads others as decimals of its own.
numbers = st.one_of(
    st.sampled_from(
        ["0", "1", "-1", "+2", "- 2", "0.5", ".5", "-1.5", "1e0", "-15E-1", "(1)", "-(2)", "2.0", "-0", "20e-1"]
    ),
    st.floats(-3, 3).map(lambda number: f"{number!r}" if "e" in f"{number!r}" else f"{number!r}e0"),
)
comparisons = st.sampled_from(["<", "<=", "=", "==", "<>", "!=", ">=", ">"])
leaves = st.one_of(
    st.tuples(features, comparisons, numbers).map(" ".join),
    st.tuples(numbers, comparisons, features).map(" ".join),
    st.tuples(features, st.sampled_from(["BETWEEN", "NOT BETWEEN"]), numbers, st.just("AND"), numbers).map(" ".join),
    st.tuples(features, st.sampled_from(["IN", "NOT IN"]), st.lists(numbers, min_size=1, max_size=3)).map(
        lambda parts: f"{parts[0]} {parts[1]} ({', '.join(parts[2])})"
    ),
    st.tuples(features, st.sampled_from(["IS NULL", "IS NOT NULL"])).map(" ".join),
)
#: Joined without parentheses, too: which of AND, OR and NOT binds closest is a matter of the language.
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(" ".join),
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map("({0[0]}) {0[1]} ({0[2]})".format),
        inner.map("NOT {}".format),
        inner.map("NOT ({})".format),
        inner.map("({})".format),
    ),
    max_leaves=10,
)
values = st.one_of(st.none(), st.sampled_from([*GRID, -0.0, math.inf, -math.inf]), st.floats(-3, 3))
rows = st.lists(st.tuples(values, values, values), min_size=1, max_size=25)


def test_any_condition_selects_the_rows_that_duckdb_selects_by_the_same_text() -> None:
    with duckdb.connect() as connection:

        @given(conditions, rows)
        @settings(max_examples=500, deadline=None)
        def agree(where: str, observed: list[Row]) -> None:
            columns = zip(LAYOUT.features, zip(*observed, strict=True), strict=True)
            table = pa.table({name: pa.array(column, pa.float64()) for name, column in columns})
            connection.register("observed", table.append_column("row", pa.array(range(len(observed)))))
            found = connection.execute(f"SELECT row FROM observed WHERE {where} ORDER BY row").fetchall()
            clause = positive(condition(where))
            assert [at for at, row in enumerate(observed) if holds(clause, row)] == [at for (at,) in found]

        agree()


@given(conditions)
def test_parentheses_and_double_negation_change_nothing(where: str) -> None:
    assert positive(condition(f"(({where}))")) == positive(condition(where))
    assert positive(condition(f"NOT (NOT ({where}))")) == positive(condition(where))


# --- what binding makes of them ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "bound"),
    [
        ("rh < 1", Between(1, high=1.0, high_closed=False)),
        ("rh <= 1", Between(1, high=1.0)),
        ("rh = 1", Between(1, 1.0, 1.0)),
        ("rh <> 1", Not(Between(1, 1.0, 1.0))),
        ("rh >= 1", Between(1, low=1.0)),
        ("1 < rh", Between(1, low=1.0, low_closed=False)),
        ('"PM2.5" BETWEEN -2 AND 1e1', Between(2, -2.0, 10.0)),
        ("rh NOT BETWEEN 2 AND 1", Not(Between(1, 2.0, 1.0))),
        ("rh IN (1, 2)", Or((Between(1, 1.0, 1.0), Between(1, 2.0, 2.0)))),
        ("rh IS NULL", IsNull(1)),
        ("rh IS NOT NULL", Not(IsNull(1))),
        ("rh = 1 OR (temp_c = 2 AND rh = 3)", Or((Between(1, 1, 1), And((Between(0, 2, 2), Between(1, 3, 3)))))),
    ],
)
def test_a_comparison_is_a_condition_on_the_position_of_its_feature(where: str, bound: Condition) -> None:
    assert condition(where) == And((bound,))


def test_place_and_time_go_to_the_scope_and_features_to_the_condition() -> None:
    text = "SELECT COUNT(*) WHERE rh > 1 AND (location = 'dj' AND (time < '1970-01-02' AND\n temp_c IS NULL))"
    bound = bind(read(text), LAYOUT)
    assert bound.parts[0].scope == Scope(prefixes=("dj",), until_us=86_400_000_000)
    assert bound.parts[0].condition == And((Between(1, 1.0, low_closed=False), IsNull(0)))
    assert bound.condition_place == Place(1, 23)


def test_without_a_condition_on_features_everything_is_selected() -> None:
    for where in ("", " WHERE location = 'dj'", " WHERE location LIKE '%' OR rh > 3"):
        bound = bind(read(f"SELECT COUNT(*){where}"), LAYOUT)
        assert (bound.parts[0].condition, bound.condition_place) == (EVERYTHING, None)


def test_a_quantile_is_bound_with_its_share_and_a_median_is_one() -> None:
    text = (
        "SELECT QUANTILE(rh, 0.9), MEDIAN(rh), PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY temp_c) ORDER BY MEDIAN(RH)"
    )
    bound = bind(read(text), LAYOUT)
    assert [source for _, source in bound.columns] == [
        Statistic("quantile", (1,), 0.9),
        Statistic("quantile", (1,), 0.5),
        Statistic("quantile", (0,), 0.25),
    ]
    assert bound.order == ((Statistic("quantile", (1,), 0.5), False),)


def test_plans_that_ask_the_same_are_equal_and_a_question_asked_twice_is_bound_once() -> None:
    text = "SELECT MEDIAN(rh) AS m WHERE rh > 1 AND BOX(1, 2, 3, 4)"
    found = plan(read(text), LAYOUT, text)
    assert plan(read(text), LAYOUT, text) is found
    other = "SELECT\n PERCENTILE(rh, .5) AS m WHERE\n 1 < rh AND box(1, 2, 3.0, 4)"
    same = plan(read(other), LAYOUT, other)
    assert found == same
    assert found is not same  # they point at different places
    assert hash(found) == hash(same)


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_thousands_of_conditions_on_features_are_read_bound_and_printed(word: str) -> None:
    where = f" {word} ".join(f"rh <> {number}" for number in range(3000))
    question = read(f"SELECT COUNT(*) WHERE {where}")
    assert str(question).count("rh <>") == 3000
    found = condition(where)
    parts = found if word == "AND" else found.conditions[0]  # type: ignore[union-attr]
    assert len(parts.conditions) == 3000  # type: ignore[union-attr]
    assert isinstance(positive(found), Leaf)
