"""An explanation counts what a question touches, and says why an interval is as wide as it is."""

from __future__ import annotations

import numpy as np
import pytest
from tests.query.test_paths import KEPT, PLAIN

from synopsis.core.errors import BadQuery
from synopsis.query.explain import explain
from synopsis.query.relation import Relation
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands


def told(text, data=PLAIN):
    return explain(Relation(Strands.empty(data.layout), data.summary), text).facts


def test_what_is_touched_is_counted():
    facts = told("SELECT MEAN(temp) WHERE time >= '2024-01-25' AND time < '2024-02-03T07:00'")["touched"]
    assert facts["places"] == "5"
    assert facts["days"] == "50"
    assert facts["days cut"] == "5"
    assert facts["features opened"] == "temp"
    one_of_many = told("SELECT COUNT(*) WHERE NEAR(0, 0, 3000)", KEPT["blocks"])["touched"]
    assert int(one_of_many["blocks"]) < int(one_of_many["blocks in all"])


@pytest.mark.parametrize(
    ("text", "column", "why"),
    [
        ("SELECT COUNT(*)", "COUNT(*)", "exact"),
        ("SELECT COUNT(*) WHERE time < '2024-01-28T07:00'", "COUNT(*)", "days are cut"),
        ("SELECT COUNT(*) WHERE temp > 12.3", "COUNT(*)", "known by bins"),
        ("SELECT MEAN(temp) AS m", "m", "15 of a feature"),
        ("SELECT COUNT(*) WHERE temp > MEAN(temp)", "COUNT(*)", "a path stands for"),
        ("SELECT MAX(temp) - MIN(temp) AS r GROUP BY CELL(3)", "r", "certain"),
    ],
)
def test_each_column_says_what_is_in_the_way_of_more(text, column, why):
    assert why in told(text)["columns"][column]


def test_stages_are_timed_and_the_whole_is_text():
    found = explain(Relation(Strands.empty(PLAIN.layout), PLAIN.summary), "SELECT COUNT(*) WHERE BOX(-9, -9, 9, 9)")
    assert list(found.facts["times"]) == ["parse", "plan", "evaluate", "finish"]
    assert "scope      a box, all times" in str(found)


def test_a_scope_without_rows_is_explained_too():
    facts = told("SELECT MEAN(temp) WHERE time < '1990-01-01'")
    assert facts["touched"]["rows"] == facts["touched"]["paths"] == "0"


def test_strands_are_inside_or_cut():
    layout = Layout(("temp",), 20, "1d")
    us = np.arange(48) * 3_600_000_000
    strands = Strands.of(layout, np.full(48, 9.0), np.full(48, 8.0), us, np.arange(48.0)[None, :])
    facts = explain(Relation(strands), "SELECT MEAN(temp), COUNT(*) WHERE time < '1970-01-02T12:00'").facts
    assert facts["touched"] == {"strands": "2", "inside": "1", "cut": "1"}
    assert "1 strands are cut" in facts["columns"]["MEAN(temp)"]
    assert explain(Relation(strands), "SELECT MEAN(temp)").facts["columns"]["MEAN(temp)"] == "exact"


def test_a_bad_question_is_refused_as_ever():
    with pytest.raises(BadQuery):
        told("SELECT MEAN(wind)")
