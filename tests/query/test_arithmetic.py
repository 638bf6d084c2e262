"""Arithmetic of statistics, HAVING, and features compared with statistics: intervals hold, DuckDB says the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.query.test_paths import KEPT, PLAIN, holds

from synopsis.core.errors import BadQuery
from synopsis.query.arithmetic import combined, constant
from synopsis.query.values import CERTAIN, P95, Values

NUMBERS = st.floats(-1e6, 1e6).map(lambda number: number + 0.0)  # without a zero below zero


@st.composite
def intervals(draw):
    """A certain value, and a truth that lies in its interval."""
    low, truth, high = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    estimate = draw(st.floats(low, high))
    return Values(*(np.array([each]) for each in (estimate, low, high)), np.array([CERTAIN], np.int8)), truth


@given(one=intervals(), other=intervals(), operator=st.sampled_from("+-*/"))
def test_what_is_certain_of_the_parts_is_certain_of_the_result(one, other, operator):
    (left, x), (right, y) = one, other
    with np.errstate(all="ignore"):
        truth = {"+": x + y, "-": x - y, "*": x * y, "/": x / y if y else math.nan}[operator]
    value = combined(operator, left, right)[0]
    assert operator == "/" or value.guarantee == "certain"
    if value.guarantee == "certain" and value.estimate is not None and math.isfinite(truth):
        slack = 1e-9 * max(abs(truth), abs(value.low), abs(value.high))
        assert value.low - slack <= truth <= value.high + slack
        assert value.low <= value.estimate <= value.high
    if operator == "/" and right.low[0] <= 0 <= right.high[0]:
        assert value.guarantee == "heuristic"


def test_exact_parts_make_an_exact_result_and_the_weakest_part_says_what_it_promises():
    three, two = constant(3.0, 1), constant(2.0, 1)
    assert str(combined("/", three, two)[0]) == "1.5 exact"
    assert combined("/", three, constant(0.0, 1))[0].estimate is None
    likely = Values(np.array([1.0]), np.array([0.5]), np.array([2.0]), np.array([P95], np.int8))
    assert combined("*", likely, three)[0].guarantee == "p95"
    sure = Values(
        np.array([1.0]), np.array([0.0]), np.array([9.0]), np.array([CERTAIN], np.int8), np.array([[0.9, 1.1]])
    )
    value = combined("-", sure, three)[0]
    assert (value.low, value.high, value.guarantee) == (-3.0, 6.0, "certain")
    assert value.p95 == pytest.approx((-2.1, -1.9))


def of_rows(estimate: float, low: float, high: float, p95: tuple[float, float]) -> Values:
    numbers = (np.array([float(each)]) for each in (estimate, low, high))
    return Values(*numbers, np.array([CERTAIN], np.int8), np.array([p95], np.float64))


def test_a_share_of_rows_of_which_none_is_expected_is_a_number_all_the_same():
    value = combined("share", of_rows(0, 0, 3, (0, 2)), of_rows(0, 0, 4, (0, 3)))[0]
    assert (value.low, value.estimate, value.high, value.guarantee) == (0.0, 0.5, 1.0, "certain")
    assert value.p95 == (0.0, 1.0)
    nothing = combined("share", of_rows(0, 0, 0, (0, 0)), of_rows(0, 0, 0, (0, 0)))[0]
    assert nothing.estimate is None


def test_a_share_at_95_percent_adds_errors_of_part_and_whole_as_squares():
    value = combined("share", of_rows(30, 0, 100, (24, 36)), of_rows(100, 50, 200, (80, 120)))[0]
    assert value.estimate == 0.3
    assert value.p95 == pytest.approx((0.3 - math.hypot(0.06, 0.06), 0.3 + math.hypot(0.06, 0.06)))
    rare = combined("share", of_rows(0.4, 0, 100, (0.2, 2.5)), of_rows(100, 50, 200, (80, 120)))[0]
    assert rare.p95[0] == 0.0  # rows are whole, and there may be none


EXPRESSIONS = {
    "MAX(temp) - MIN(temp)": "max(temp) - min(temp)",
    "COUNT(half) / COUNT(*)": "count(half) / count(*)",
    "(MEAN(temp) * 9 / 5) + 32": "avg(temp) * 9 / 5 + 32",
    "-SUM(rain) + 2 * COUNT(*)": "-sum(rain) + 2 * count(*)",
    "COUNT(*) / (COUNT(*) - COUNT(*))": "null",
}


@pytest.mark.parametrize("data", list(KEPT))
@pytest.mark.parametrize("where", ["true", "temp > 12.3", "rain = 0 AND half IS NOT NULL"])
def test_arithmetic_of_answers_holds_the_truth(data, where):
    condition = "" if where == "true" else f" WHERE {where}"
    answer = KEPT[data].query(f"SELECT {', '.join(EXPRESSIONS)}{condition}")
    truths = KEPT[data].truth(", ".join(EXPRESSIONS.values()), where)[0]
    for name, truth in zip(EXPRESSIONS, truths, strict=True):
        value = answer[name]
        assert (value.guarantee in ("exact", "certain")) == (truth is not None), name
        assert holds(value, truth), f"{name}: {value} for {truth}"


def test_having_keeps_the_groups_whose_estimates_fulfil_it():
    text = "SELECT CELL(3) AS c, COUNT(*) AS n, MAX(temp) - MIN(temp) AS r GROUP BY CELL(3)"
    rows = PLAIN.query(text).rows
    for having, kept in {
        "r > 28": lambda row: row["r"].estimate > 28,
        "NOT (r > 28 OR n < 10)": lambda row: not (row["r"].estimate > 28 or row["n"].estimate < 10),
        "MAX(temp) - MIN(temp) BETWEEN 20 AND 28": lambda row: 20 <= row["r"].estimate <= 28,
        "COUNT(*) / 0 > 1": lambda row: False,
        "NOT COUNT(*) / 0 > 1": lambda row: False,
    }.items():
        found = PLAIN.query(f"{text} HAVING {having}").rows
        assert [row["c"] for row in found] == [row["c"] for row in rows if kept(row)], having
    assert len(PLAIN.query(f"{text} HAVING n > 0 ORDER BY r DESC LIMIT 2")) == 2


THRESHOLDS = {
    "temp > MEAN(temp) + STD(temp)": "temp > (SELECT avg(temp) + stddev_pop(temp) FROM rows WHERE {scope})",
    "temp < MEAN(temp)": "temp < (SELECT avg(temp) FROM rows WHERE {scope})",
    "NOT (rain <= MAX(rain) / 2)": "NOT (rain <= (SELECT max(rain) / 2 FROM rows WHERE {scope}))",
    "temp BETWEEN QUANTILE(temp, 0.25) AND QUANTILE(temp, 0.75)": "temp BETWEEN "
    "(SELECT quantile_cont(temp, 0.25) FROM rows WHERE {scope}) AND "
    "(SELECT quantile_cont(temp, 0.75) FROM rows WHERE {scope})",
    "COUNT(*) / 100000 < temp AND rain > 0": "(SELECT count(*) / 100000 FROM rows WHERE {scope}) < temp AND rain > 0",
}
SCOPES = {
    "": "true",
    "time >= '2024-01-25' AND time < '2024-02-03T07:00' AND ": "us >= 1706140800000000 AND us < 1706943600000000",
}
ASKED = {
    "COUNT(*)": "count(*)",
    "COUNT(half)": "count(half)",
    "SUM(temp)": "sum(temp)",
    "MEAN(half)": "avg(half)",
    "MIN(rain)": "min(rain)",
    "MAX(temp)": "max(temp)",
    "MEDIAN(temp)": "median(temp)",
}


@pytest.mark.parametrize("data", [0.01, 0.3, 1.0, "shared bins"])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("where", THRESHOLDS)
def test_features_compared_with_statistics_of_the_scope(data, scope, where):
    meant = THRESHOLDS[where].format(scope=SCOPES[scope])
    answer = KEPT[data].query(f"SELECT {', '.join(ASKED)} WHERE {scope}{where}")
    truths = KEPT[data].truth(", ".join(ASKED.values()), f"{SCOPES[scope]} AND {meant}")[0]
    for name, truth in zip(ASKED, truths, strict=True):
        value = answer[name]
        assert value.guarantee in ("exact", "certain"), name
        assert holds(value, truth), f"{name}: {value} for {truth}"
    if data == 1.0:
        assert answer["COUNT(*)"].estimate == pytest.approx(truths[0], rel=0.1, abs=30)


def test_groups_are_compared_with_the_statistic_of_the_whole_scope():
    rows = PLAIN.query(
        "SELECT CELL(3) AS c, COUNT(*) AS n WHERE temp > MEAN(temp) GROUP BY CELL(3) ORDER BY n DESC"
    ).rows
    estimates = [row["n"].estimate for row in rows]
    assert estimates == sorted(estimates, reverse=True)
    whole = PLAIN.query("SELECT COUNT(*) AS n WHERE temp > MEAN(temp)")["n"].estimate
    assert sum(estimates) == pytest.approx(whole, abs=3)


def test_compared_with_nothing_no_row_is_selected():
    answer = PLAIN.query("SELECT COUNT(*), MEAN(rain) WHERE time < '1990-01-01' AND temp > MEAN(temp)")
    assert answer["COUNT(*)"].estimate == 0
    assert answer["MEAN(rain)"].estimate is None


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("temp = MEAN(temp)", "by <, <=, >= or >"),
        ("MEAN(temp) > 3", "HAVING"),
        ("temp > MEAN(wind)", "wind"),
        ("temp > MEAN(temp) + rain", "not a statistic"),
        ("lat > MEAN(temp)", "statistics"),
        ("temp IN (MEAN(temp))", "number or a statistic"),
    ],
)
def test_what_cannot_be_compared_is_refused(where, why):
    with pytest.raises(BadQuery, match=why):
        PLAIN.query(f"SELECT COUNT(*) WHERE {where}")
