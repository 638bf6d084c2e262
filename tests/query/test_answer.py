"""Answers as rows, as one value, as Arrow and pandas, and as text."""

from __future__ import annotations

import math
import pickle
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from synopsis.query.answer import Answer, BucketKeys, CellKeys
from synopsis.query.values import CERTAIN, EXACT, Value, Values

COUNTS = Values(np.array([1204, 3]), np.array([1180, 3]), np.array([1260, 3]), np.array([CERTAIN, EXACT], np.int8))
MEANS = Values(*(np.array([23.41, math.nan]) for _ in range(3)), np.array([EXACT, EXACT], np.int8))
MIDNIGHT_US = 1_740_798_000_000_000  # 2025-03-01 in Sao Paulo

GROUPED = Answer(
    {
        "CELL(2)": CellKeys(np.array(["6g", "7n"])),
        "BUCKET('1d')": BucketKeys(np.array([MIDNIGHT_US, MIDNIGHT_US + 86_400_000_000]), "America/Sao_Paulo"),
        "COUNT(*)": COUNTS,
        "MEAN(temp_c)": MEANS,
    }
)
SINGLE = Answer({"COUNT(*)": COUNTS.take(slice(0, 1)), "MEAN(temp_c)": MEANS.take(slice(0, 1))})


def test_rows_hold_values_and_plain_keys() -> None:
    first, second = GROUPED.rows
    assert first == {
        "CELL(2)": "6g",
        "BUCKET('1d')": datetime(2025, 3, 1, tzinfo=ZoneInfo("America/Sao_Paulo")),
        "COUNT(*)": Value(1204, 1180, 1260, "certain"),
        "MEAN(temp_c)": Value(23.41, 23.41, 23.41, "exact"),
    }
    assert second["MEAN(temp_c)"] == Value(None, None, None, "exact")
    assert isinstance(first["COUNT(*)"].estimate, int)  # type: ignore[union-attr]
    assert (list(GROUPED), len(GROUPED)) == (GROUPED.rows, 2)


def test_one_row_gives_its_values_by_column() -> None:
    assert SINGLE["MEAN(temp_c)"].estimate == 23.41
    assert SINGLE["mean( TEMP_C )"] is not None
    assert SINGLE["count(*)"].high == 1260


def test_columns_that_differ_only_in_capitals_are_told_apart() -> None:
    answer = Answer({"MEAN(a)": MEANS.take(slice(0, 1)), "MEAN(A)": COUNTS.take(slice(0, 1))})
    assert answer["MEAN(a)"].estimate == 23.41
    with pytest.raises(KeyError, match=r"it has MEAN\(a\), MEAN\(A\)"):
        answer["mean(a)"]


def test_a_column_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(KeyError, match=r"no column 'SUM\(rain\)' in this answer; it has COUNT\(\*\), MEAN\(temp_c\)"):
        SINGLE["SUM(rain)"]


def test_many_rows_have_no_single_value() -> None:
    with pytest.raises(ValueError, match=r"this answer has 2 rows.*answer\.rows"):
        GROUPED["COUNT(*)"]


def test_arrow_has_four_columns_a_statistic_and_typed_keys() -> None:
    table = GROUPED.to_arrow()
    assert table.column_names[:6] == [
        "CELL(2)",
        "BUCKET('1d')",
        "COUNT(*)",
        "COUNT(*) low",
        "COUNT(*) high",
        "COUNT(*) guarantee",
    ]
    assert table.schema.field("CELL(2)").type == pa.string()
    assert table.schema.field("BUCKET('1d')").type == pa.timestamp("us", "America/Sao_Paulo")
    assert table.schema.field("COUNT(*)").type == pa.int64()
    assert table.schema.field("MEAN(temp_c) low").type == pa.float64()
    assert table["COUNT(*) guarantee"].to_pylist() == ["certain", "exact"]
    assert table["MEAN(temp_c)"].to_pylist() == [23.41, None]
    assert table["BUCKET('1d')"].to_pylist()[0] == GROUPED.rows[0]["BUCKET('1d')"]


def test_pandas_gets_the_same_columns() -> None:
    frame = GROUPED.to_pandas()
    assert frame["COUNT(*) high"].tolist() == [1260, 3]
    assert str(frame["BUCKET('1d')"].dtype) == "datetime64[us, America/Sao_Paulo]"


def test_the_text_is_a_table() -> None:
    assert repr(GROUPED).splitlines() == [
        "CELL(2)  BUCKET('1d')               COUNT(*)                       MEAN(temp_c)",
        "-------  -------------------------  -----------------------------  ------------",
        "6g       2025-03-01 00:00:00-03:00  1,204 in 1,180..1,260 certain  23.41 exact",
        "7n       2025-03-02 00:00:00-03:00  3 exact                        none exact",
    ]


def test_long_answers_are_cut_short_as_text_and_say_so() -> None:
    long = Answer({"CELL(2)": CellKeys(np.array(["6g"] * 1050))})
    assert repr(long).splitlines()[-1] == "... and 1,010 more rows"
    assert len(repr(long).splitlines()) == 43
    assert "... and 1,010 more rows" in long._repr_html_()


def test_html_is_escaped() -> None:
    risky = Answer({"<b>": CellKeys(np.array(["6g"]))})
    assert "<th>&lt;b&gt;</th>" in risky._repr_html_()
    assert "<b>" not in risky._repr_html_()


def test_an_answer_without_rows_keeps_its_columns() -> None:
    empty = Answer({"CELL(2)": CellKeys(np.empty(0, "U2")), "COUNT(*)": COUNTS.take(slice(0, 0))})
    assert (len(empty), empty.rows, empty.columns) == (0, [], ["CELL(2)", "COUNT(*)"])
    assert empty.to_arrow().num_rows == 0
    assert repr(empty).splitlines()[0] == "CELL(2)  COUNT(*)"


def test_an_answer_travels_between_processes() -> None:
    assert pickle.loads(pickle.dumps(GROUPED)).rows == GROUPED.rows


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Value(23.41, 23.41, 23.41, "exact"), "23.41 exact"),
        (Value(1204, 1180, 1260, "certain"), "1,204 in 1,180..1,260 certain"),
        (Value(None, None, None, "exact"), "none exact"),
        (Value(0.5, 0.25, 1e-7 + 0.5, "p95"), "0.5 in 0.25..0.5 p95"),
        (Value(123456.789, 1e5, 2e15, "certain"), "123,456.8 in 100,000.0..2e+15 certain"),
    ],
)
def test_a_value_prints_for_people(value: Value, text: str) -> None:
    assert str(value) == text
    assert repr(value) == f"Value({text})"


def test_a_value_is_a_number_where_one_is_wanted() -> None:
    assert float(Value(1204, 1180, 1260, "certain")) == 1204.0
    assert math.isnan(float(Value(None, None, None, "certain")))
