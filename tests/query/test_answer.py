"""Answers as rows, as one value, as Arrow and pandas, as text and as HTML."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, datetime
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.query.answer import Answer, AsOf, BucketKeys, CellKeys
from synopsis.query.values import CERTAIN, EXACT, GUARANTEES, HEURISTIC, P95, Value, Values

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
#: A guess without an interval, one with an interval at 95%, and what is known at 95% anyway.
UNSURE = Values(
    np.array([0.31, 0.5, 0.7]),
    np.array([math.nan, math.nan, 0.6]),
    np.array([math.nan, math.nan, 0.9]),
    np.array([HEURISTIC, HEURISTIC, P95], np.int8),
    np.array([[math.nan, math.nan], [0.4, 0.6], [0.6, 0.9]]),
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


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Pacific/Kiritimati"])
def test_buckets_that_reach_beyond_the_calendar_are_shown_as_far_as_it_goes(zone: str) -> None:
    """Rows of the years 1 and 9999 have decades that begin in year 0 and end in year 10000; days do so by the zone."""
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999  # of UTC's calendar
    starts = np.array([first - 86_400_000_000, first, last - 3_600_000_000, last])
    keys = BucketKeys(starts, zone, starts + 86_400_000_000)
    answer = Answer({"CELL(1)": CellKeys(np.array(list("abcd"))), "b": keys, "n": COUNTS.take(np.array([0, 1, 0, 1]))})
    shown = [row["b"] for row in answer.rows]
    assert shown == sorted(shown)
    assert (shown[0].year, shown[-1].year) == (1, 9999)  # type: ignore[union-attr]
    listed = answer.to_arrow().to_pylist()
    assert [row["b"] for row in listed] == shown
    assert all(row["b"] <= row["b end"] for row in listed)
    assert "9999-12-31" in str(answer)


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


def test_a_guess_has_no_interval_in_rows_arrow_and_text() -> None:
    answer = Answer({"x": UNSURE})
    assert [row["x"] for row in answer.rows] == [
        Value(0.31, None, None, "heuristic"),
        Value(0.5, None, None, "heuristic", (0.4, 0.6)),
        Value(0.7, 0.6, 0.9, "p95", (0.6, 0.9)),
    ]
    table = answer.to_arrow()
    assert table["x"].to_pylist() == [0.31, 0.5, 0.7]
    assert table["x low"].to_pylist() == [None, None, 0.6]
    assert table["x high"].to_pylist() == [None, None, 0.9]
    assert table["x p95 high"].to_pylist() == [None, 0.6, 0.9]
    assert repr(answer).splitlines()[2:] == ["0.31 heuristic", "0.5 heuristic, 0.4..0.6 p95", "0.7 in 0.6..0.9 p95"]


def test_whatever_takes_arrow_takes_an_answer() -> None:
    assert pa.table(GROUPED).equals(GROUPED.to_arrow())
    assert pa.RecordBatchReader.from_stream(GROUPED).read_all().equals(GROUPED.to_arrow())


def test_arrow_comes_in_the_schema_that_is_asked_for() -> None:
    own = GROUPED.to_arrow().schema
    large = pa.schema([field.with_type(pa.large_string()) if field.type == pa.string() else field for field in own])
    assert pa.RecordBatchReader.from_stream(GROUPED, large).read_all().schema == large


def test_duckdb_asks_an_answer() -> None:
    with duckdb.connect(config={"threads": 1}) as duck:
        duck.register("answer", GROUPED)
        found = duck.execute(
            'SELECT "CELL(2)", "COUNT(*)", "COUNT(*) low" FROM answer WHERE "MEAN(temp_c)" IS NULL'
        ).fetchall()
        assert found == [("7n", 3, 3)]
        assert duck.execute("SELECT count(*) FROM answer").fetchone() == (2,)


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


class Page(HTMLParser):
    """Whether tags close in order, and what the cells of a table say and how they are aligned."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[tuple[str, str, str]] = []  #: tag, style, text
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("th", "td"):
            self.cells.append((tag, dict(attrs).get("style") or "", ""))
        if tag == "br":
            self.handle_data(" | ")
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"th", "td"} & set(self.open):
            tag, style, text = self.cells[-1]
            self.cells[-1] = (tag, style, text + data)


def test_html_has_numbers_on_the_right_with_their_promise_beneath() -> None:
    right = "text-align: right"
    assert Page(GROUPED._repr_html_()).cells == [
        ("th", "", "CELL(2)"),
        ("th", "", "BUCKET('1d')"),
        ("th", right, "COUNT(*)"),
        ("th", right, "MEAN(temp_c)"),
        ("td", "", "6g"),
        ("td", "", "2025-03-01 00:00:00-03:00"),
        ("td", right, "1,204 | 1,180..1,260 certain"),
        ("td", right, "23.41 | exact"),
        ("td", "", "7n"),
        ("td", "", "2025-03-02 00:00:00-03:00"),
        ("td", right, "3 | exact"),
        ("td", right, "none | exact"),
    ]
    guesses = [text for tag, _, text in Page(Answer({"x": UNSURE})._repr_html_()).cells if tag == "td"]
    assert guesses == ["0.31 | heuristic", "0.5 | heuristic, 0.4..0.6 p95", "0.7 | 0.6..0.9 p95"]


def test_html_is_escaped() -> None:
    risky = Answer({"<b>": CellKeys(np.array(["6g"]))})
    assert "<th>&lt;b&gt;</th>" in risky._repr_html_()
    assert "<b>" not in risky._repr_html_()


@given(st.text(min_size=1))
def test_no_name_breaks_the_html(name: str) -> None:
    answer = Answer({name: CellKeys(np.array(["<i>"])), f"{name} of values": UNSURE.take(slice(0, 1))})
    assert len(Page(answer._repr_html_()).cells) == 4


def test_an_answer_without_rows_keeps_its_columns() -> None:
    empty = Answer({"CELL(2)": CellKeys(np.empty(0, "U2")), "COUNT(*)": COUNTS.take(slice(0, 0))})
    assert (len(empty), empty.rows, empty.columns) == (0, [], ["CELL(2)", "COUNT(*)"])
    assert empty.to_arrow().num_rows == 0
    assert repr(empty).splitlines()[0] == "CELL(2)  COUNT(*)"


def test_an_answer_travels_between_processes() -> None:
    assert pickle.loads(pickle.dumps(GROUPED)).rows == GROUPED.rows
    assert pickle.loads(pickle.dumps(GROUPED.stamped(0.5, AsOf(3)))).as_of == AsOf(3)


def test_an_answer_says_how_long_it_took_and_what_it_is_of_once_it_is_told() -> None:
    assert (GROUPED.elapsed, GROUPED.as_of) == (None, None)
    stamped = GROUPED.stamped(0.25, AsOf(3, datetime(2025, 3, 1, 12, 30, tzinfo=UTC)))
    assert (stamped.elapsed, str(stamped.as_of)) == (0.25, "commit 3, rows up to 2025-03-01 12:30:00+00:00")
    assert stamped.rows == GROUPED.rows
    assert str(AsOf(7)) == "commit 7"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Value(23.41, 23.41, 23.41, "exact"), "23.41 exact"),
        (Value(1204, 1180, 1260, "certain"), "1,204 in 1,180..1,260 certain"),
        (Value(None, None, None, "exact"), "none exact"),
        (Value(0.31, None, None, "heuristic"), "0.31 heuristic"),
        (Value(0.31, None, None, "heuristic", (0.25, 0.5)), "0.31 heuristic, 0.25..0.5 p95"),
        (Value(0.31, 0.3, 0.4, "heuristic", (0.25, 0.5)), "0.31 in 0.3..0.4 heuristic, 0.25..0.5 p95"),
        (Value(12, 3, 40, "certain", (10, 15)), "12 in 3..40 certain, 10..15 p95"),
        (Value(1.5, 1.0, 2.0, "p95", (1.0, 2.0)), "1.5 in 1..2 p95"),
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


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (Value(5.0, 5.0, 5.0, "exact"), 0.0),
        (Value(5.0, 0.0, 9.0, "certain"), None),
        (Value(5.0, 0.0, 9.0, "certain", (4.02, 5.98)), 0.5),
        (Value(5.0, 4.02, 5.98, "p95", (4.02, 5.98)), 0.5),
        (Value(5.0, 4.02, 5.98, "p95"), 0.5),
        (Value(5.0, None, None, "heuristic"), None),
        (Value(None, None, None, "exact"), None),
        (Value(None, None, None, "heuristic"), None),
    ],
)
def test_the_standard_error_is_known_where_the_interval_at_95_is(value: Value, error: float | None) -> None:
    assert value.error == (None if error is None else pytest.approx(error))


@st.composite
def columns(draw: st.DrawFn) -> Values:
    """Values as evaluation makes them: an estimate inside its interval, or a guess that may have none."""
    numbers = st.floats(-1e9, 1e9)
    rows = []
    for word in draw(st.lists(st.sampled_from(GUARANTEES), min_size=1, max_size=5)):
        low, estimate, high = sorted(draw(st.tuples(numbers, numbers, numbers)))
        if draw(st.booleans()):
            estimate = low = high = math.nan
        elif word == "exact":
            low = high = estimate
        elif word == "heuristic" and draw(st.booleans()):
            low = high = math.nan
        rows.append((estimate, low, high, GUARANTEES.index(word)))
    estimate, low, high, guarantee = (np.array(each) for each in zip(*rows, strict=True))
    return Values(estimate, low, high, guarantee.astype(np.int8))


@given(columns())
def test_rows_arrow_and_text_tell_the_same_of_any_values(values: Values) -> None:
    answer = Answer({"x": values})
    told = [(value.estimate, value.low, value.high, value.guarantee) for value in (row["x"] for row in answer)]
    assert told == [tuple(row.values()) for row in answer.to_arrow().to_pylist()]
    assert [line.rstrip() for line in repr(answer).splitlines()[2:]] == [str(row["x"]) for row in answer]
    for value in (row["x"] for row in answer):
        assert (value.low is None) == (value.high is None)
        assert (value.low is not None) or value.estimate is None or value.guarantee == "heuristic"
        assert str(value).startswith(value.number)
        assert str(value).endswith(value.promise)
        assert value.guarantee in value.promise
