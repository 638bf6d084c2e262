"""A question as JSON and in SQL is one tree: golden files hold both spellings, and Hypothesis every other tree.

Files of JSON and the published schema are written anew by `python tests/query/test_spelling.py`; read the difference.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from synopsis.core.errors import BadQuery, UnknownFeature
from synopsis.query.binding import Plan, bind
from synopsis.query.evaluate import ask
from synopsis.query.language import read
from synopsis.query.plain import CLAUSES, COMPARISONS, KEYS, OPERATORS, TIMES, WORDS, to_json, with_keys, written
from synopsis.query.schema import schema
from synopsis.query.spelling import canonical, from_json, question_of
from synopsis.query.tree import (
    FUNCTIONS,
    Aggregate,
    And,
    Arithmetic,
    Asked,
    BinKey,
    BucketKey,
    CellKey,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    GroupIs,
    InBox,
    InCells,
    Item,
    Join,
    Moment,
    Name,
    Near,
    Not,
    Number,
    Operand,
    Or,
    Order,
    Question,
    SetOf,
    TimeIs,
    Within,
    has_set,
)
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands

REPOSITORY = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
SCHEMA = REPOSITORY / "docs" / "question.schema.json"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.sql"))
LAYOUT = Layout(("temp_c", "rh", "wind_ms", "PM2.5", 'a "b"', "*", *WORDS), bits=20, bucket="1mo")
VALIDATOR = Draft202012Validator(schema())


def sql(name: str) -> str:
    return (GOLDEN / f"{name}.sql").read_text(encoding="utf-8")


def plain(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return found


def laid_out(question: dict[str, Any]) -> str:
    """JSON with one line for each clause."""
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(part)}" for key, part in question.items()) + "\n}\n"


def planned(question: Asked) -> list[Plan] | str:
    """The plans of a question and of what it joins, or why it has none."""
    joined = question.sources if isinstance(question, Join) else ()
    try:
        return [
            bind(each, LAYOUT)
            for each in [question, *(source.question for source in joined)]
            if isinstance(each, Question)
        ]
    except BadQuery as refusal:
        return refusal.why


# --- golden files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_both_spellings_of_a_question_are_one_tree(name: str) -> None:
    tree = read(sql(name))
    assert from_json(plain(name)) == tree
    assert from_json((GOLDEN / f"{name}.json").read_text(encoding="utf-8")) == tree
    assert to_json(tree) == plain(name)


@pytest.mark.parametrize("name", NAMES)
def test_both_spellings_of_a_question_have_one_plan(name: str) -> None:
    assert planned(from_json(plain(name))) == planned(read(sql(name)))


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_file_follows_the_schema(name: str) -> None:
    VALIDATOR.validate(plain(name))


def test_there_are_golden_files_of_the_whole_grammar() -> None:
    assert len(NAMES) >= 15
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(NAMES)
    texts = "".join(json.dumps(plain(name)) for name in NAMES)
    words = {*FUNCTIONS, *OPERATORS, *COMPARISONS, *TIMES, *WORDS, "between", "in", "is", "as", "descending", "limit"}
    assert {word for word in words if f'"{word}": ' not in texts} == set()


# --- the schema -------------------------------------------------------------------------------------------------------


def test_the_published_schema_is_up_to_date_and_a_schema() -> None:
    Draft202012Validator.check_schema(schema())
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema()


COUNT: list[Any] = [{"count": "*"}]

#: What a schema can see, the path and the sentence.
BROKEN: list[tuple[Any, str]] = [
    ([], 'the question: takes an object such as {"select": [{"count": "*"}]}, found a list'),
    ({}, 'the question: takes an object such as {"select": [{"count": "*"}]}, found an empty object'),
    ({"where": {"location": "dj"}}, 'nothing is selected; ask for example {"select": [{"count": "*"}]}'),
    (
        {"select": COUNT, "were": {"location": "dj"}},
        "there is no clause 'were'; did you mean 'where'? there are select, where, group_by, having, order_by, limit",
    ),
    ({"select": []}, "select: takes a list of a statistic such as"),
    ({"select": "COUNT(*)"}, "found 'COUNT(*)'"),
    ({"select": ["rh"]}, "select[0]: takes a statistic such as"),
    ({"select": [{"maen": "rh"}]}, "select[0]: there is no function 'maen'; did you mean 'mean'? there are count, sum"),
    ({"select": [{"median": "rh"}]}, "select[0]: there is no function 'median'; did you mean 'quantile'? there are"),
    ({"select": [{"avg": "rh"}]}, "did you mean 'mean'?"),
    ({"select": [{"mean": "rh", "max": "rh"}]}, "select[0]: takes a statistic such as"),
    ({"select": [{"as": "n"}]}, "select[0]: takes a statistic such as"),
    ({"select": [{"mean": "rh", "as": 3}]}, "select[0].as: takes the name of a column, found 3"),
    ({"select": [{"mean": ["rh"]}]}, "select[0].mean: takes the name of a feature, found a list"),
    ({"select": [{"mean": None}]}, "select[0].mean: takes the name of a feature, found null"),
    ({"select": [{"count": ["rh"]}]}, "select[0].count: takes the name of a feature, found a list"),
    ({"select": [{"correlation": "rh"}]}, "select[0].correlation: takes two features, as in"),
    ({"select": [{"correlation": ["rh"]}]}, "select[0].correlation: takes two features, as in"),
    ({"select": [{"correlation": ["rh", 3]}]}, "select[0].correlation[1]: takes the name of a feature, found 3"),
    ({"select": [{"quantile": "rh"}]}, "select[0].quantile: takes a feature and a share from 0 to 1"),
    ({"select": [{"quantile": ["rh", 90]}]}, "select[0].quantile[1]: takes a share from 0 to 1, found 90"),
    ({"select": [{"quantile": ["rh", True]}]}, "select[0].quantile[1]: takes a share from 0 to 1, found true"),
    ({"select": [{"+": [{"mean": "rh"}]}]}, 'select[0]["+"]: takes a list of numbers and statistics'),
    ({"select": [{"+": [{"mean": "rh"}, "1"]}]}, 'select[0]["+"][1]: takes a number or a statistic such as'),
    ({"select": [{"+": [{"cell": 4}, 1]}]}, 'select[0]["+"][0]: takes a number or a statistic such as'),
    ({"select": COUNT, "group_by": {"cell": 4}}, "group_by: takes a list such as"),
    (
        {"select": COUNT, "group_by": [{"mean": "rh"}]},
        'group_by[0]: takes {"cell": 4}, {"bucket": "1mo"} and {"bin": "temp_c"}',
    ),
    ({"select": COUNT, "group_by": [{"cell": 0}]}, "group_by[0].cell: takes a geohash length from 1 to 12, found 0"),
    ({"select": COUNT, "group_by": [{"cell": True}]}, "group_by[0].cell: takes a geohash length from 1 to 12"),
    ({"select": COUNT, "group_by": [{"cell": 3}, {"cell": 4}]}, "group_by[1]: there is a cell already, and only one"),
    ({"select": COUNT, "group_by": [{"bucket": 1}]}, "group_by[0].bucket: takes a span of time such as '1mo', found 1"),
    ({"select": COUNT, "where": []}, "where: takes a condition such as"),
    ({"select": COUNT, "where": {}}, "where: takes a condition such as"),
    (
        {"select": COUNT, "where": {"location": "dj", "rh": {">": 8}}},
        "one at a time, found 'location', 'rh'; join them by and, in a list",
    ),
    ({"select": COUNT, "where": {"and": {"location": "dj"}}}, "where.and: takes a list of conditions, found an object"),
    ({"select": COUNT, "where": {"or": []}}, "where.or: takes a list of conditions, found none"),
    ({"select": COUNT, "where": {"locaton": "dj"}}, "found 'dj'; did you mean 'location'?"),
    (
        {"select": COUNT, "where": {"location": []}},
        "where.location: takes a geohash or a list of geohashes, found none",
    ),
    ({"select": COUNT, "where": {"location": ["dj", 3]}}, "where.location[1]: takes a geohash, found 3"),
    ({"select": COUNT, "where": {"location": "da"}}, "where.location: 'a' in 'da' is not a geohash character"),
    ({"select": COUNT, "where": {"time": "2025-01-01"}}, "where.time: takes a range such as"),
    (
        {"select": COUNT, "where": {"time": {"form": "2025-01-01"}}},
        "where.time: there is no comparison 'form'; did you mean 'from'? there are from, after, until, through, at",
    ),
    (
        {"select": COUNT, "where": {"and": [{"location": "dj"}, {"time": {"from": 1735689600}}]}},
        "where.and[1].time.from: takes a time such as '2025-03-01T12:30', found 1735689600",
    ),
    (
        {"select": COUNT, "where": {"time": {"from": "2025-01-01", "after": "2025-01-01"}}},
        "one comparison, or a lower and an upper bound; join others by and",
    ),
    ({"select": COUNT, "where": {"time": {"at": "2025-01-01", "until": "2025-01-02"}}}, "where.time: takes"),
    ({"select": COUNT, "where": {"tiem": {"from": "2025-01-01"}}}, "where.tiem: there is no comparison 'from'"),
    ({"select": COUNT, "where": {"rh": 80}}, "where.rh: takes a comparison such as"),
    ({"select": COUNT, "where": {"rh": {">": "80"}}}, 'where.rh[">"]: takes a number or a statistic'),
    ({"select": COUNT, "where": {"rh": {">": True}}}, "found true"),
    ({"select": COUNT, "where": {"rh": {"=": None}}}, 'what is absent is {"is": null}, found null'),
    ({"select": COUNT, "where": {"rh": {"!=": 3}}}, "there is no comparison '!='; did you mean '<>'? there are <, <="),
    (
        {"select": COUNT, "where": {"rh": {"=": {"mean": "rh"}}}},
        "with a statistic a feature compares by <, <=, >= or >",
    ),
    ({"select": COUNT, "where": {"rh": {">": 1, ">=": 2}}}, "where.rh: takes"),
    ({"select": COUNT, "where": {"rh": {"between": [1, 2], "<": 3}}}, "where.rh: takes"),
    ({"select": COUNT, "where": {"rh": {"between": [1]}}}, "where.rh.between: takes two numbers, the lower one first"),
    ({"select": COUNT, "where": {"rh": {"in": []}}}, "where.rh.in: takes a list of numbers, found none"),
    ({"select": COUNT, "where": {"PM2.5": {"in": [1, "2"]}}}, "where[\"PM2.5\"].in[1]: takes a number, found '2'"),
    ({"select": COUNT, "where": {"rh": {"is": False}}}, "where.rh.is: takes null, found false"),
    ({"select": COUNT, "where": {"feature": {"and": 3}}}, "where.feature.and: takes a comparison such as"),
    ({"select": COUNT, "where": {"box": [48, 2, 49, 3]}}, "where.box: takes an object of south, west, north, east"),
    ({"select": COUNT, "where": {"box": {"south": 48, "west": 2, "north": 49}}}, "where.box: takes south, west"),
    (
        {"select": COUNT, "where": {"box": {"south": 48, "west": 2, "north": 49, "eats": 3}}},
        "where.box: there is no part 'eats'; did you mean 'east'? there are south, west, north, east",
    ),
    (
        {"select": COUNT, "where": {"box": {"south": 48, "west": 2, "north": 91, "east": 3}}},
        "where.box: north of a box must lie in -90..90, found 91",
    ),
    ({"select": COUNT, "where": {"within": 3}}, "where.within: takes GeoJSON, or well-known text such as"),
    ({"select": COUNT, "where": {"near": {"lat": 91, "lon": 0, "km": 1}}}, "where.near.lat: lies in -90..90, found 91"),
    ({"select": COUNT, "where": {"near": {"lat": 0, "lon": 0, "km": -1}}}, "where.near.km: a distance is not negative"),
    ({"select": COUNT, "having": {"rh": {">": 3}}}, "there are <, <=, =, <>, >=, >, and, or, not"),
    ({"select": COUNT, "having": {"and": []}}, "having.and: takes a list of a condition on groups"),
    ({"select": COUNT, "having": {">": [{"count": "*"}]}}, 'having[">"]: takes two to compare'),
    ({"select": COUNT, "having": {">": ["n", 3]}}, 'having[">"][0]: takes a number or a statistic such as'),
    ({"select": COUNT, "order_by": "n"}, "order_by: takes a list such as"),
    ({"select": COUNT, "order_by": [3]}, "order_by[0]: takes a statistic such as"),
    ({"select": COUNT, "order_by": [{"mean": "rh", "as": "n"}]}, "order_by[0]: takes a statistic such as"),
    ({"select": COUNT, "order_by": [{"descending": 3}]}, "order_by[0].descending: takes a statistic such as"),
    ({"select": COUNT, "limit": 1.5}, "limit: takes a whole number of rows, found 1.5"),
    ({"select": COUNT, "limit": True}, "limit: takes a whole number of rows, found true"),
    ({"select": COUNT, "limit": -1}, "limit: takes a whole number of rows, found -1"),
    ({"select": COUNT, "limit": None}, "limit: takes a whole number of rows, found null"),
]

#: What only the reader knows.
MEANINGLESS: list[tuple[Any, str]] = [
    ({"select": [*COUNT, *COUNT]}, "select[1]: two columns are named 'COUNT(*)'; name one by as"),
    ({"select": [{"cell": 3}]}, "select[0]: CELL(3) is not grouped by; add it to group_by"),
    ({"select": COUNT, "group_by": [{"bucket": "1 fortnight"}]}, "group_by[0].bucket: no unit of time 'fortnight'"),
    ({"select": COUNT, "where": {"time": {"from": "2025-13-01"}}}, "where.time.from: '2025-13-01' is not a time"),
    ({"select": COUNT, "where": {"time": {"at": "2025-01-01 Europe/Pariss"}}}, "where.time.at: no time zone"),
    ({"select": COUNT, "where": {"within": "POINT (1 2)"}}, "where.within: WITHIN takes a POLYGON or MULTIPOLYGON"),
    ({"select": COUNT, "where": {"rh": {">": {"+": [1, 2]}}}}, "not arithmetic of numbers alone"),
    ({"select": COUNT, "where": {"rh": {">": math.nan}}}, 'where.rh[">"]: takes a number or a statistic'),
    ({"select": COUNT, "where": {"rh": {">": -math.inf}}}, 'where.rh[">"]: -inf is beyond the largest number'),
    ({"select": COUNT, "where": {"rh": {">": 10**400}}}, 'where.rh[">"]: a number of 1329 bits is beyond the largest'),
    ({"select": COUNT, "where": {"\ud800": {">": 1}}}, 'where["\\ud800"]: takes the name of a feature'),
    (
        {"select": COUNT, "where": {"box": {"south": 5, "west": 2, "north": 4, "east": 3}}},
        "where.box: south of a box must not exceed its north, found 5 and 4",
    ),
    ({"select": [{"mean": "x" * 1000}, {"mean": "x" * 1000}]}, "select[1]: two columns are named 'MEAN(xxx"),
]


@pytest.mark.parametrize(("question", "sentence"), [*BROKEN, *MEANINGLESS])
def test_what_is_wrong_is_refused_in_a_sentence_that_names_its_path(question: Any, sentence: str) -> None:
    with pytest.raises(BadQuery) as caught:
        from_json(question)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 400
    with pytest.raises(BadQuery) as again:
        from_json(json.dumps(question))
    assert str(again.value) == str(caught.value)


@pytest.mark.parametrize("question", [question for question, _ in BROKEN])
def test_what_is_wrong_does_not_follow_the_schema(question: Any) -> None:
    assert not VALIDATOR.is_valid(question)


# --- every tree -------------------------------------------------------------------------------------------------------

names = st.one_of(st.sampled_from([*LAYOUT.features, "", "order", "select", 'x"y']), st.text(max_size=8)).map(Name)
numbers = st.one_of(st.integers(-200, 200).map(float), st.floats(allow_nan=False, allow_infinity=False)).map(
    lambda number: number + 0.0
)
shares = st.floats(0.0, 1.0).map(lambda share: share + 0.0)
spans = st.sampled_from(["1d", "1mo", "6h", "1w", "2q"])
cells = st.integers(1, 12).map(CellKey)
buckets = st.builds(BucketKey, spans, st.sampled_from([None, "UTC", "Asia/Tokyo"]))
bins = st.builds(BinKey, names, st.none() | st.floats(1e-3, 1e3))
simple = st.one_of(
    st.builds(FeatureIs, names, st.sampled_from(["<", ">="]), numbers),
    st.builds(FeatureNull, names),
    st.sampled_from([InCells(("dj",)), Or((InCells(("u",)), Not(FeatureNull(Name("rh")))))]),
)
of_others = st.lists(st.tuples(names, numbers), min_size=2, max_size=4, unique_by=lambda pair: pair[0].text.lower())
aggregates = st.builds(
    lambda aggregate, only: replace(aggregate, only=only),
    st.one_of(
        st.just(Aggregate("count")),
        st.builds(Aggregate, st.just("quantile"), st.tuples(names), shares),
        st.builds(
            lambda function, condition: Aggregate(function, condition=condition),
            st.sampled_from(["probability", "frequency", "contains"]),
            simple,
        ),
        st.builds(lambda name, away: Aggregate("outliers", (name,), numbers=(away,)), names, st.floats(0.1, 9.0)),
        of_others.map(
            lambda found: Aggregate(
                "predict", tuple(name for name, _ in found), numbers=tuple(number for _, number in found[1:])
            )
        ),
        *(
            st.builds(Aggregate, st.just(function), st.tuples(*[names] * max(counts)))
            for function, counts in FUNCTIONS.items()
            if counts != (0,) and function not in ("quantile", "outliers", "predict")
        ),
    ),
    st.none() | simple,
)
sets = st.builds(
    lambda found, only: replace(found, only=only),
    st.one_of(
        st.builds(SetOf, st.just("cardinality"), names),
        st.one_of(st.tuples(cells), st.tuples(buckets, bins)).map(lambda keys: SetOf("cardinality", keys=keys)),
        st.builds(lambda name, text: SetOf("contains", name, text=text), st.none() | names, st.text(max_size=8)),
        st.builds(
            lambda function, name, scopes: SetOf(function, name, scopes=scopes),
            st.sampled_from(["common", "only"]),
            names,
            st.tuples(simple, simple),
        ),
    ),
    st.none() | simple,
)
operands: st.SearchStrategy[Operand] = st.recursive(
    st.one_of(aggregates, sets, numbers.map(Number)),
    lambda inner: st.builds(Arithmetic, st.sampled_from(OPERATORS), inner, inner),
    max_leaves=6,
)


def has_statistic(operand: Operand) -> bool:
    if isinstance(operand, Arithmetic):
        return has_statistic(operand.left) or has_statistic(operand.right)
    return isinstance(operand, Aggregate)


def is_threshold(operand: Operand) -> bool:
    return has_statistic(operand) and not has_set(operand)


statistics = operands.filter(lambda operand: not isinstance(operand, Number))
thresholds = st.one_of(numbers, operands.filter(is_threshold))
first_us, last_us = ((end - datetime(1970, 1, 1)) // timedelta(microseconds=1) for end in (datetime.min, datetime.max))
zones = st.sampled_from([None, "UTC", "Europe/Paris", "America/Port-au-Prince", "Etc/GMT+5"])
moments = st.one_of(
    st.builds(Moment, st.integers(first_us, last_us), zones),
    st.builds(Moment, st.integers(-(10**5), 10**5).map(lambda minutes: minutes * 60_000_000), zones),
    st.builds(Moment, st.integers(first_us - 86_399_999_999, last_us + 86_399_999_999), st.just("UTC")),
)
geohashes = st.text("0123456789bcdefghjkmnpqrstuvwxyz", min_size=1, max_size=12)
latitudes, longitudes = (st.floats(-reach, reach).map(lambda degrees: degrees + 0.0) for reach in (90.0, 180.0))
boxes = st.builds(
    lambda ends, west, east: InBox(min(ends), west, max(ends), east),
    st.tuples(latitudes, latitudes),
    longitudes,
    longitudes,
)
conditions = st.recursive(
    st.one_of(
        st.lists(geohashes, min_size=1, max_size=3).map(lambda found: InCells(tuple(found))),
        boxes,
        st.builds(Near, latitudes, longitudes, st.floats(0.0, 1e5).map(lambda km: km + 0.0)),
        st.sampled_from(["POLYGON ((0 0, 10 0, 0 10, 0 0))", "polygon((1 1, 2 1, 2 2, 1 1))"]).map(Within),
        st.builds(TimeIs, st.sampled_from(["<", "<=", "=", "<>", ">=", ">"]), moments),
        st.builds(FeatureIs, names, st.sampled_from(["<", "<=", ">=", ">"]), thresholds),
        st.builds(FeatureIs, names, st.sampled_from(["=", "<>"]), numbers),
        st.builds(FeatureBetween, names, thresholds, thresholds),
        st.builds(FeatureIn, names, st.lists(numbers, min_size=1, max_size=3).map(tuple)),
        st.builds(FeatureNull, names),
    ),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, max_size=3).map(lambda found: And(tuple(found))),
        st.lists(inner, min_size=1, max_size=3).map(lambda found: Or(tuple(found))),
    ),
    max_leaves=8,
)
group_conditions = st.recursive(
    st.builds(GroupIs, operands, st.sampled_from(COMPARISONS), operands),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda found: And(tuple(found))),
        st.lists(inner, min_size=1, max_size=3).map(lambda found: Or(tuple(found))),
    ),
    max_leaves=4,
)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Any tree that a question can be read into."""
    groups = tuple(
        draw(
            st.one_of(
                st.just(()),
                st.tuples(cells),
                st.tuples(buckets),
                st.tuples(bins),
                st.permutations([draw(cells), draw(buckets), draw(bins)]),
            )
        )
    )
    expressions: st.SearchStrategy[Any] = st.one_of(statistics, st.sampled_from(groups) if groups else statistics)
    chosen = [
        Item(draw(st.one_of(st.just(written(expression)), st.text(max_size=5))), expression)
        for expression in draw(st.lists(expressions, min_size=1, max_size=4))
    ]
    items = with_keys({item.name: item for item in chosen}.values(), groups)
    named = {item.name for item in items}
    if len(named) < len(items):
        items = with_keys([Item("only", Aggregate("count"))], groups)
    orders = st.builds(Order, st.one_of(names, statistics, cells, buckets), st.booleans())
    return Question(
        items,
        draw(conditions),
        groups,
        tuple(draw(st.lists(orders, max_size=3))),
        draw(st.none() | st.integers(0, 10**20)),
        draw(st.none() | group_conditions),
    )


@given(questions())
def test_every_tree_survives_json(question: Question) -> None:
    text = json.dumps(to_json(question), allow_nan=False)
    assert from_json(text) == question
    assert to_json(from_json(text)) == to_json(question)
    VALIDATOR.validate(json.loads(text))


plain_names = st.one_of(st.sampled_from([*LAYOUT.features, "select", "order", "temp", "température", "a b"])).map(Name)


@given(st.sampled_from([*FUNCTIONS]), plain_names, plain_names, shares)
@example("mean", Name("true"), Name("rh"), 0.5)
def test_a_column_without_a_name_is_named_as_sql_would(function: str, one: Name, two: Name, share: float) -> None:
    expression = Aggregate(function, (one, two)[: max(FUNCTIONS[function])], share if function == "quantile" else None)
    if function in ("outliers", "predict"):
        assume(function != "predict" or one.text.lower() != two.text.lower())
        expression = replace(expression, numbers=(share + 0.5,))
    elif FUNCTIONS[function] == (0,):
        expression = replace(expression, condition=FeatureBetween(one, 0.0, share), only=Not(FeatureNull(two)))
    assert read(f"SELECT {written(expression)}").items == (Item(written(expression), expression),)


@given(sets)
@example(SetOf("contains", Name("location"), text="x"))
@example(SetOf("contains", Name("time"), text="2025-01-01"))
@example(SetOf("common", Name("temp_c"), scopes=(FeatureIs(Name("IF"), "<", 0.0), InCells(("dj",)))))
def test_a_set_without_a_name_is_named_as_sql_would(expression: SetOf) -> None:
    assert read(f"SELECT {written(expression)}").items == (Item(written(expression), expression),)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ({"mean": "temp_c"}, "MEAN(temp_c)"),
        ({"count": "*"}, "COUNT(*)"),
        ({"quantile": ["PM2.5", 0.9]}, 'QUANTILE("PM2.5", 0.9)'),
        ({"mean": "temp"}, "MEAN(temp)"),
        ({"mean": "select"}, 'MEAN("select")'),
        ({"cell": 4}, "CELL(4)"),
        ({"bucket": "1 month"}, "BUCKET('1mo')"),
        ({"-": [{"max": "rh"}, {"min": "rh"}]}, "MAX(rh) - MIN(rh)"),
        ({"/": [{"+": [{"max": "rh"}, {"min": "rh"}]}, 2]}, "(MAX(rh) + MIN(rh)) / 2"),
        ({"-": [{"max": "rh"}, {"*": [2, {"std": "rh"}]}, 1]}, "MAX(rh) - 2 * STD(rh) - 1"),
        ({"-": [{"max": "rh"}, {"-": [{"min": "rh"}, 1]}]}, "MAX(rh) - (MIN(rh) - 1)"),
        ({"*": [{"/": [{"max": "rh"}, 2]}, {"/": [1, {"min": "rh"}]}]}, "MAX(rh) / 2 * (1 / MIN(rh))"),
    ],
)
def test_the_default_name_of_a_column_is_what_sql_would_write(expression: dict[str, Any], name: str) -> None:
    keys = [expression] if set(expression) & {"cell", "bucket"} else []
    question: dict[str, Any] = {"select": [expression]} | ({"group_by": keys} if keys else {})
    assert from_json(question).items[0].name == name
    group = f" GROUP BY {name}" if keys else ""
    assert read(f"SELECT {name}{group}") == from_json(question)


# --- whatever it is ---------------------------------------------------------------------------------------------------

words = st.sampled_from(
    [
        *CLAUSES,
        *KEYS,
        *FUNCTIONS,
        *OPERATORS,
        *COMPARISONS,
        *TIMES,
        *WORDS,
        *["as", "descending", "between", "in", "is", "rh", "*", "dj"],
    ]
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.just(10**400), words, st.text(), st.just("\ud800")
)
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(words | st.text(), inner, max_size=3)),
    max_leaves=12,
)


def steps(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all parts of a value."""
    yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from steps(part, (*path, key))


@st.composite
def mutations(draw: st.DrawFn) -> Any:
    """A golden file of which a few parts are replaced, left out, doubled or called otherwise."""
    whole = [plain(draw(st.sampled_from(NAMES)))]
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([path for path in steps(whole) if path]))
        parent: Any = whole
        for step in path[:-1]:
            parent = parent[step]
        change = draw(st.sampled_from(["replace", "wrap", "leave out", "rename", "add"]))
        if change == "replace":
            parent[path[-1]] = draw(anything)
        elif change == "wrap":
            parent[path[-1]] = draw(st.sampled_from([[parent[path[-1]]], {draw(words): parent[path[-1]]}]))
        elif change == "leave out" and len(path) > 1:
            del parent[path[-1]]
        elif isinstance(parent, dict):
            parent[draw(words)] = parent[path[-1]] if change == "add" else parent.pop(path[-1])
        elif len(path) > 1:
            parent.append(draw(anything))
    return whole[0]


@given(st.one_of(anything, mutations()))
def test_whatever_is_given_is_read_or_refused_and_what_is_read_follows_the_schema(question: Any) -> None:
    for given_as in (question, json.dumps(question)):
        try:
            tree = from_json(given_as)
        except BadQuery:
            continue
        assert from_json(to_json(tree)) == tree
        VALIDATOR.validate(question)


@given(st.one_of(st.text(), st.text('{}[]":,.-+0123456789eE truefalsn\\u ')))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    with pytest.raises(BadQuery):
        from_json("{" + text)


def nested(depth: int, of: str) -> dict[str, Any]:
    condition: dict[str, Any] = {"rh": {">": 1}}
    for _ in range(depth):
        condition = {"not": condition} if of == "not" else {of: [condition]}
    return {"select": COUNT, "where": condition}


@pytest.mark.parametrize("of", ["not", "and", "or"])
@pytest.mark.parametrize("depth", [300, 3000, 100_000])
def test_a_question_nested_beyond_reason_is_refused_and_not_a_crash(of: str, depth: int) -> None:
    with pytest.raises(BadQuery, match="nested too deeply"):
        from_json(nested(depth, of))
    with pytest.raises(BadQuery, match="nested too deeply"):
        from_json(canonical(nested(depth, of)))
    text = '{"select": [{"count": "*"}], "where": ' + '{"not": ' * depth + '{"rh": {">": 1}}' + "}" * depth + "}"
    with pytest.raises(BadQuery, match="nested too deeply"):
        from_json(text)


def test_a_question_nested_as_deeply_as_sql_can_be_is_read() -> None:
    deep = from_json(nested(90, "and"))
    assert from_json(to_json(deep)) == deep
    bind(deep, LAYOUT)


def test_a_question_within_itself_is_refused() -> None:
    condition: dict[str, Any] = {}
    condition["not"] = condition
    with pytest.raises(BadQuery, match="nested too deeply"):
        canonical({"select": COUNT, "where": condition})


def test_thousands_of_conditions_and_operands_are_read() -> None:
    where = {"and": [{"rh": {">": number}} for number in range(5000)]}
    total = {"+": [{"mean": "rh"}, *range(50)]}
    question = from_json({"select": [{**total, "as": "total"}], "where": where})
    assert to_json(question) == {"select": [{**total, "as": "total"}], "where": where}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"select": [{"count": "*"}],}', "line 1, column"),
        ('{"select":\n  [{"count" "*"}]}', "line 2, column 13: this is not JSON: expecting ':' delimiter"),
        ('{"select": [{"count": "*"}], "limit": 1, "limit": 2}', "'limit' stands twice in one object"),
        ('{"select": [{"count": "*"}], "limit": ' + "9" * 5000 + "}", "a number is beyond the largest number"),
        ('{"select": [{"count": "*"}], "where": {"rh": {"<": 1e999}}}', "inf is beyond the largest number"),
        ('{"select": [{"count": "*"}], "where": {"rh": {"<": NaN}}}', "found NaN"),
        ("[]", "found a list"),
        ("", "this is not JSON"),
    ],
)
def test_text_that_is_not_json_is_refused_by_line_and_column(text: str, sentence: str) -> None:
    with pytest.raises(BadQuery) as caught:
        from_json(text)
    assert sentence in str(caught.value)


def test_numbers_of_numpy_tuples_and_other_mappings_are_taken() -> None:
    given_as = MappingProxyType(
        {
            "select": ({"quantile": ("rh", np.float32(0.5))},),
            "where": {"rh": {">": np.int64(80), "<": np.float64(90.5)}},
            "group_by": [{"cell": np.int8(4)}],
            "limit": np.uint16(3),
        }
    )
    question = from_json(given_as)
    assert question == read("SELECT QUANTILE(rh, 0.5) WHERE rh > 80 AND rh < 90.5 GROUP BY CELL(4) LIMIT 3")
    assert from_json(canonical(given_as)) == question


# --- where questions are taken ----------------------------------------------------------------------------------------


def test_a_question_has_one_text_however_its_keys_are_ordered() -> None:
    one = {"select": COUNT, "where": {"rh": {">": 1, "<": 2}}, "limit": 3}
    two = {"limit": 3, "where": {"rh": {"<": 2, ">": 1}}, "select": COUNT}
    assert canonical(one) == canonical(two)
    assert canonical("SELECT COUNT(*)") == "SELECT COUNT(*)"


@pytest.mark.parametrize("question", [None, 3, b"SELECT COUNT(*)", [], ("SELECT",)])
def test_a_question_is_a_text_or_an_object(question: Any) -> None:
    with pytest.raises(BadQuery, match="a question is a text in SQL, or an object as JSON, not"):
        canonical(question)


STRANDS = Strands.of(
    LAYOUT,
    np.array([48.0, 48.1, -15.0]),
    np.array([2.0, 2.1, -47.0]),
    np.array([0, 86_400_000_000, 0]),
    np.arange(3.0 * len(LAYOUT.features)).reshape(-1, 3),
)
ASKED: dict[str, Any] = {
    "select": [{"mean": "rh"}, {"count": "*", "as": "n"}],
    "where": {"location": ["u0", "6v"]},
    "group_by": [{"cell": 2}],
    "order_by": [{"descending": "n"}],
}


def test_a_question_as_json_is_answered_as_the_same_in_sql_is() -> None:
    chosen = "SELECT MEAN(rh), COUNT(*) AS n WHERE location IN ('u0', '6v')"
    answer = ask(STRANDS, f"{chosen} GROUP BY CELL(2) ORDER BY n DESC")
    assert str(ask(STRANDS, ASKED)) == str(ask(STRANDS, "\n " + json.dumps(ASKED))) == str(answer)
    assert len(answer) == 2


def test_plans_of_questions_as_json_are_kept() -> None:
    reordered = dict(reversed(ASKED.items()))
    texts = canonical(ASKED), canonical(reordered)
    assert texts[0] == texts[1]
    assert question_of(texts[0]) is question_of(texts[1])


def test_every_example_of_json_on_the_page_of_the_language_is_read_and_follows_the_schema(repository: Path) -> None:
    text = (repository / "docs" / "language.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        planned(from_json(block))
        VALIDATOR.validate(json.loads(block))


def test_names_in_json_forgive_capitals_as_unquoted_ones_do() -> None:
    assert (
        bind(from_json({"select": [{"mean": "RH"}]}), LAYOUT).columns == bind(read("SELECT MEAN(RH)"), LAYOUT).columns
    )
    with pytest.raises(UnknownFeature, match="did you mean 'rh'"):
        bind(from_json({"select": COUNT, "where": {"rg": {">": 3}}}), LAYOUT)


if __name__ == "__main__":
    for name in NAMES:
        (GOLDEN / f"{name}.json").write_text(laid_out(to_json(read(sql(name)))), encoding="utf-8")
    SCHEMA.write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")
