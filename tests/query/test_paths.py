"""Questions to a summary in memory: zones whose clocks change, groups, orders, few paths or none, blocks of any size.

DuckDB answers the same questions from all rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synopsis.core.errors import BadQuery, NotKept, UnknownFeature
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.query.binding import bind
from synopsis.query.evaluate import ask
from synopsis.query.finish import finish
from synopsis.query.language import read
from synopsis.query.paths import of_summary
from synopsis.sketch import blocks
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.layout import Layout
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.strands import Strands
from synopsis.sketch.strata import from_tallies
from synopsis.sketch.summary import Summary
from synopsis.sketch.tallies import Tallies, periods

FEATURES = ("temp", "rain", "half")
HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Data:
    """Rows, the summary made of them, and their table in DuckDB."""

    def __init__(
        self,
        places: int = 5,
        start: str = "2024-01-20",
        hours: int = 30 * 24,
        kept: float = 0.3,
        timezone: str = "UTC",
        parts: int = 1,
        strata_of_a_block: int = 1_000,
        step_us: int = HOUR_US,
        averages: float = 0.0,
        warmth: float = 10.0,
        region_bits: int | None = None,
    ) -> None:
        random = np.random.default_rng(2)
        latitude, longitude = random.uniform(-60, 60, places), random.uniform(-170, 170, places)
        place, hour = (each.ravel() for each in np.meshgrid(np.arange(places), np.arange(hours), indexing="ij"))
        begin = pd.Timestamp(start, tz=timezone).tz_convert("UTC").tz_localize(None).to_datetime64()
        self.us = begin.astype("datetime64[us]").astype(np.int64) + hour * step_us
        local = pd.DatetimeIndex(self.us.astype("datetime64[us]"), tz="UTC").tz_convert(timezone).tz_localize(None)
        self.local_us = local.to_numpy("datetime64[us]").astype(np.int64)
        temp = np.round(warmth + 3 * place + random.normal(0, 4, place.size), 1)
        temp = np.where(random.random(place.size) < averages, temp + 0.05, temp)  # of two readings
        rain = np.where(random.random(place.size) < 0.8, 0.0, random.lognormal(0, 1.5, place.size))
        half = np.where(random.random(place.size) < 0.5, np.nan, 50 - temp + random.normal(size=place.size))
        self.values = np.stack((temp, rain, half))
        self.latitude, self.longitude = latitude[place], longitude[place]
        self.layout = Layout(FEATURES, 20, "1d", timezone)
        self.summary = self._summary(kept, parts, strata_of_a_block, region_bits)
        cells = geohash.to_text(geohash.encode(self.latitude, self.longitude, 40), 8)
        columns = {name: pa.array(each, mask=np.isnan(each)) for name, each in zip(FEATURES, self.values, strict=True)}
        where = {"us": self.us, "local_us": self.local_us, "lat": self.latitude, "lon": self.longitude, "cell": cells}
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.register("given", pa.table(where | columns))
        self.connection.execute("CREATE TABLE rows AS SELECT * FROM given")

    def __len__(self) -> int:
        return int(self.us.size)

    def _summary(self, kept: float, parts: int, size: int, region_bits: int | None) -> Summary:
        """The parts' summaries side by side, each in blocks of so many strata."""
        random = np.random.default_rng(3)
        scales = Scales.fit(self.values)
        tables = [scales.code_of_tick(feature)[scales.ticks[feature].of(self.values[feature])] for feature in range(3)]
        fine, part = np.stack(tables), random.integers(0, parts, len(self))  # by ticks, as executors do
        keep = random.random(len(self)) < kept
        layout = PathLayout(months=1, bins=15, kept=kept, slot_us=HOUR_US, regular=True, region_bits=region_bits)
        contexts, whole = None, None
        for number in range(parts):
            own = part == number
            period = periods(self.local_us, 1)
            where = self.latitude[own], self.longitude[own]
            tallies = Tallies.of(*where, period[own], self.local_us[own], fine[:, own], keep[own], region_bits)
            strata = from_tallies(scales, tallies, 15)
            contexts = contexts or Contexts.fit(strata.codes, 15)
            runs = [slice(at, min(at + size, len(strata))) for at in range(0, len(strata), size)]
            made = Summary(
                layout=layout,
                latitude=tallies.latitude,
                longitude=tallies.longitude,
                scales=scales,
                contexts=contexts,
                blocks=tuple(blocks.closed(strata.take(run), contexts) for run in runs),
            )
            whole = made if whole is None else whole + made
        return whole

    def remade(self):
        """The same with a summary of the values as they are now."""
        self.summary = self._summary(0.3, 1, 1_000, None)
        return self

    def query(self, text):
        return ask(Strands.empty(self.layout), text, self.summary)

    def as_asked(self, text):
        """The answer with buckets as fine as asked, though the summary keeps days."""
        asked = bind(read(text), self.layout)
        return finish(asked, of_summary(self.summary, self.layout, asked), self.layout)

    def truth(self, columns, where="true", rest=""):
        return self.connection.execute(f"SELECT {columns} FROM rows WHERE {where} {rest}").fetchall()


PLAIN = Data()


def holds(value, truth):
    """Whether a value says of the truth what it promises, and its estimate lies inside."""
    if value.estimate is None:
        return truth is None or value.guarantee not in ("exact", "certain")
    if value.guarantee == "heuristic":
        return value.low is None and value.high is None
    if not value.low <= value.estimate <= value.high:
        return False
    if truth is None or value.guarantee not in ("exact", "certain"):
        return True
    slack = 1e-9 * max(abs(truth), abs(value.low), abs(value.high))
    return value.low - slack <= truth <= value.high + slack


# --- rows are counted -------------------------------------------------------------------------------------------------


def test_all_rows_are_counted_without_naming_a_feature():
    value = PLAIN.query("SELECT COUNT(*)")["COUNT(*)"]
    assert (value.estimate, value.low, value.high, value.guarantee) == (len(PLAIN),) * 3 + ("exact",)


@pytest.mark.parametrize("key", ["CELL(1)", "CELL(3)", "BUCKET('1d')", "BUCKET('1mo')", "BUCKET('1y')"])
def test_groups_are_counted_without_naming_a_feature(key):
    rows = PLAIN.query(f"SELECT {key} AS k, COUNT(*) AS n GROUP BY {key}").rows
    assert sum(row["n"].estimate for row in rows) == len(PLAIN)
    assert {row["n"].guarantee for row in rows} == {"exact"}


def test_counts_of_features_without_a_condition_are_exact_over_whole_periods():
    answer = PLAIN.query("SELECT COUNT(temp), COUNT(half), COUNT(rain)")
    for feature, values in zip(FEATURES, PLAIN.values, strict=True):
        value = answer[f"COUNT({feature})"]
        assert (value.estimate, value.guarantee) == (int((~np.isnan(values)).sum()), "exact")


def test_an_unknown_feature_is_refused():
    with pytest.raises(UnknownFeature):
        PLAIN.query("SELECT MEAN(wind)")


# --- what is certain holds, with many paths or none -------------------------------------------------------------------

KEPT = {kept: Data(kept=kept) for kept in (0.0, 0.01, 0.3, 1.0)} | {
    "parts": Data(parts=3),
    "blocks": Data(strata_of_a_block=1),
    "shared bins": Data(places=9, region_bits=2),
    "shared bins, few paths": Data(places=9, region_bits=1, kept=0.01),
}
STATISTICS = {
    "COUNT(*)": "count(*)",
    "COUNT(half)": "count(half)",
    "SUM(temp)": "sum(temp)",
    "MEAN(half)": "avg(half)",
    "MIN(rain)": "min(rain)",
    "MAX(temp)": "max(temp)",
    "QUANTILE(temp, 0.25)": "quantile_cont(temp, 0.25)",
    "MEDIAN(rain)": "median(rain)",
    "STD(temp)": "stddev_pop(temp)",
    "VAR(half)": "var_pop(half)",
    "COVARIANCE(temp, half)": "covar_pop(temp, half)",
    "CORRELATION(temp, half)": "corr(temp, half)",
}
NUMBERS = st.sampled_from([-3.0, 0.0, 0.05, 0.1, 1.0, 9.9, 10.0, 10.05, 17.3, 25.0, 40.0, 1e6])


@st.composite
def predicates(draw, depth=0):
    feature, low, high = draw(st.sampled_from(FEATURES)), draw(NUMBERS), draw(NUMBERS)
    kind = draw(st.integers(0, 4 if depth >= 2 else 7))
    if kind >= 5:
        one, two = draw(predicates(depth + 1)), draw(predicates(depth + 1))
        return {5: f"NOT ({one})", 6: f"({one} OR {two})", 7: f"({one} AND {two})"}[kind]
    return [
        f"{feature} {draw(st.sampled_from(['<', '<=', '=', '<>', '>=', '>']))} {low}",
        f"{feature} BETWEEN {low} AND {high}",
        f"{feature} IN ({low}, {high})",
        f"{feature} IS NULL",
        f"{feature} IS NOT NULL",
    ][kind]


@st.composite
def times(draw):
    """Whole days, hours, or any instants, in the 40 days around the rows."""
    step = draw(st.sampled_from([DAY_US, HOUR_US, 1_234_567]))
    begin = int(PLAIN.us.min()) - 5 * DAY_US
    one, two = sorted(begin + draw(st.integers(0, 40 * DAY_US // step)) * step for _ in range(2))
    texts = [(EPOCH + timedelta(microseconds=each)).strftime("%Y-%m-%dT%H:%M:%S.%fZ") for each in (one, two)]
    return f"time >= '{texts[0]}' AND time < '{texts[1]}'", f"us >= {one} AND us < {two}"


@given(data=st.sampled_from(list(KEPT)), where=predicates(), when=st.none() | times())
@settings(max_examples=300)
def test_whatever_is_asked_what_is_certain_holds(data, where, when):
    asked, meant = when or ("", "true")
    answer = KEPT[data].query(f"SELECT {', '.join(STATISTICS)} WHERE {where}" + (f" AND {asked}" if asked else ""))
    truths = KEPT[data].truth(", ".join(STATISTICS.values()), f"({where}) AND {meant}")[0]
    for name, truth in zip(STATISTICS, truths, strict=True):
        assert holds(answer[name], truth), f"{name}: {answer[name]} for {truth}"


@given(when=times())
def test_times_without_a_condition_are_counted_and_exactly_where_days_are_whole(when):
    truth = PLAIN.truth("count(*)", when[1])[0][0]
    value = PLAIN.query(f"SELECT COUNT(*), MEAN(temp) WHERE {when[0]}")["COUNT(*)"]
    assert holds(value, truth)
    if when[0].count("T00:00:00.000000") == 2:
        assert (value.estimate, value.guarantee) == (truth, "exact")


def test_values_half_way_between_those_of_a_grid_are_counted_on_their_side():
    """Some readings are averages of two, and lie where ticks begin."""
    data = Data(averages=0.04, warmth=-5.0)
    wrong = []
    for number in np.unique(data.values[0]):
        for comparison in ("<", "<=", "="):
            truth = data.truth("count(*)", f"temp {comparison} {float(number)!r}")[0][0]
            value = data.query(f"SELECT COUNT(*) WHERE temp {comparison} {float(number)!r}")["COUNT(*)"]
            if not holds(value, truth):
                wrong.append(f"temp {comparison} {number}: {value} for {truth}")
    assert not wrong, f"{len(wrong)} wrong, among them {wrong[:4]}"


def test_blocks_of_any_size_give_the_same_answers():
    one, two = KEPT[0.3], KEPT["blocks"]
    assert len(two.summary.blocks) > len(one.summary.blocks)
    for where in ("temp > 12", "rain = 0 AND half IS NOT NULL", "time >= '2024-01-25' AND time < '2024-02-03T07:00'"):
        text = f"SELECT {', '.join(STATISTICS)} WHERE {where}"
        for name in STATISTICS:
            left, right = (each.query(text)[name] for each in (one, two))
            assert left.guarantee == right.guarantee
            assert [left.estimate, left.low, left.high] == pytest.approx([right.estimate, right.low, right.high])


def test_an_instant_is_a_scope():
    instant = (EPOCH + timedelta(microseconds=int(PLAIN.us[100]))).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    value = PLAIN.query(f"SELECT COUNT(*), MAX(temp) WHERE time = '{instant}'")["COUNT(*)"]
    assert value.low <= 5 <= value.high
    assert value.estimate <= 24 * 5


@pytest.mark.parametrize(
    ("quantile", "end"), [("QUANTILE(temp, 0.0)", "MIN(temp)"), ("QUANTILE(temp, 1)", "MAX(temp)")]
)
def test_the_outermost_quantiles_promise_what_the_ends_do(quantile, end):
    """Rows without a path may lie further out than all that have one: nothing is known at 95%."""
    answer = PLAIN.query(f"SELECT {quantile}, {end} WHERE rain > 0.3")
    assert (answer[quantile].low, answer[quantile].high) == pytest.approx((answer[end].low, answer[end].high))
    assert answer[quantile].p95 == answer[end].p95


# --- zones ------------------------------------------------------------------------------------------------------------

#: Rows around changes of clocks: a skipped and a repeated midnight, a day of 25 hours at the end, a change at 00:01.
ZONES = {
    "skipped midnight": Data(timezone="America/Sao_Paulo", start="2018-10-25", hours=20 * 24),
    "repeated hour before midnight": Data(timezone="America/Sao_Paulo", start="2018-02-05", hours=20 * 24),
    "25 hours, the last day": Data(timezone="Europe/Berlin", start="2024-10-20", hours=7 * 24 + 25),
    "23 hours, the last day": Data(timezone="Europe/Berlin", start="2024-03-25", hours=6 * 24 + 23),
    "a minute past midnight": Data(
        timezone="America/St_Johns", start="2010-10-25", hours=20 * 48, step_us=HOUR_US // 2
    ),
    "half an hour": Data(timezone="Australia/Lord_Howe", start="2024-03-20", hours=30 * 24),
    "before 1970": Data(timezone="America/Sao_Paulo", start="1967-10-25", hours=20 * 24),
}
WIDTHS = {"1d": DAY_US, "6h": DAY_US // 4, "1h": HOUR_US}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("span", ["1h", "6h", "1d"])
@pytest.mark.parametrize("where", ["", "temp > 15"])
def test_every_bucket_with_rows_is_answered_and_holds_them(zone, span, where):
    data, width = ZONES[zone], WIDTHS[span]
    condition = f" WHERE {where}" if where else ""
    asked = f"SELECT BUCKET('{span}') AS b, COUNT(*) AS n, MAX(temp) AS t{condition} GROUP BY BUCKET('{span}')"
    answer = data.as_asked(asked)
    bucket = f"CAST(floor(local_us / {width}) AS BIGINT)"
    truths = data.truth(f"{bucket}, count(*), max(temp)", where or "true", f"GROUP BY {bucket}")
    truths = {ordinal: rest for ordinal, *rest in truths}
    found = {}
    for row in answer:
        wall = (row["b"].replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
        found[wall // width] = row
    assert len(found) == len(answer)
    assert set(truths) <= set(found)
    for ordinal, row in found.items():
        count, largest = truths.get(ordinal, (0, None))
        assert holds(row["n"], count), (row["b"], row["n"], count)
        assert holds(row["t"], largest), (row["b"], row["t"], largest)
        if span == "1d" and not where:
            assert row["n"].guarantee == "exact"


@pytest.mark.parametrize("zone", ZONES)
def test_days_of_the_zone_are_whole(zone):
    """Asked for by the dates of the zone; each row belongs to one of two halves."""
    data = ZONES[zone]
    days = np.unique(data.local_us // DAY_US)
    for day in days[1:]:
        text = str(np.datetime64(int(day), "D"))
        before, after = (data.query(f"SELECT COUNT(*), MAX(temp) WHERE time {sign} '{text}'") for sign in ("<", ">="))
        if zone == "a minute past midnight" and text == "2010-11-07":  # that midnight came twice: nobody knows
            assert before["COUNT(*)"].guarantee == after["COUNT(*)"].guarantee == "certain"
            continue
        assert before["COUNT(*)"].guarantee == after["COUNT(*)"].guarantee == "exact"
        assert before["COUNT(*)"].estimate + after["COUNT(*)"].estimate == len(data)


@pytest.mark.parametrize("zone", ZONES)
def test_instants_part_rows_whatever_clocks_say(zone):
    """Each hour and half hour, in UTC: those around changes of clocks among them."""
    data = ZONES[zone]
    for instant in np.unique(data.us)[::3]:
        text = (EPOCH + timedelta(microseconds=int(instant))).strftime("%Y-%m-%dT%H:%M:%SZ")
        truth = int((data.us < instant).sum())
        value = data.query(f"SELECT COUNT(*), MAX(temp) WHERE time < '{text}'")["COUNT(*)"]
        assert holds(value, truth), (text, value, truth)


# --- groups and their order -------------------------------------------------------------------------------------------


def test_groups_come_by_key_and_by_what_is_asked():
    text = "SELECT CELL(3) AS c, BUCKET('1mo') AS b, COUNT(*) AS n, MEAN(temp) AS m GROUP BY CELL(3), BUCKET('1mo')"
    rows = PLAIN.query(text).rows
    keys = [(row["c"], row["b"]) for row in rows]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys) == 10
    by_mean = PLAIN.query(f"{text} ORDER BY m DESC").rows
    assert [row["m"].estimate for row in by_mean] == sorted((row["m"].estimate for row in rows), reverse=True)
    by_both = PLAIN.query(f"{text} ORDER BY n, c DESC LIMIT 4").rows
    assert [row["n"].estimate for row in by_both] == sorted(row["n"].estimate for row in rows)[:4]
    assert [row["c"] for row in by_both] == sorted([row["c"] for row in by_both], reverse=True)
    assert len(PLAIN.query(f"{text} LIMIT 0")) == 0
    assert len(PLAIN.query(f"{text} LIMIT 99")) == 10


@pytest.mark.parametrize("direction", ["", "DESC"])
def test_what_is_undefined_comes_last(direction):
    rows = PLAIN.query(
        f"SELECT CELL(3) AS c, MEAN(temp) AS m WHERE temp > 33 GROUP BY CELL(3) ORDER BY m {direction}"
    ).rows
    there = [row["m"].estimate is not None for row in rows]
    assert there == sorted(there, reverse=True)


def test_groups_with_no_rows_in_scope_are_left_out():
    rows = PLAIN.query(
        "SELECT BUCKET('1d') AS b, COUNT(*) AS n, MIN(temp) AS t "
        "WHERE time >= '2024-01-25T06:00' AND time < '2024-01-27' GROUP BY BUCKET('1d')"
    ).rows
    assert [row["b"].day for row in rows] == [25, 26]
    assert rows[1]["n"].guarantee == "exact"
    assert rows[0]["n"].guarantee == "certain"


def test_too_many_groups_are_refused():
    with pytest.raises(BadQuery, match="100,000 groups"):
        Data(places=1, hours=24 * 400, kept=0.0).as_asked("SELECT MAX(temp) GROUP BY BUCKET('5m')")


def test_buckets_shorter_than_slots_are_answered_by_slots_or_refused_where_one_insists():
    answer = PLAIN.query("SELECT BUCKET('5m') AS t, COUNT(*) AS n WHERE time < '2024-01-03' GROUP BY BUCKET('5m')")
    hours = PLAIN.query("SELECT BUCKET('1h') AS t, COUNT(*) AS n WHERE time < '2024-01-03' GROUP BY BUCKET('1h')")
    assert answer.rows == hours.rows
    assert answer.notes == ("BUCKET('5m') is finer than what this sketch keeps: BUCKET('1h') stands in",)
    with pytest.raises(NotKept, match=r"ask for BUCKET\('1h'\), or without strict"):
        ask(Strands.empty(PLAIN.layout), "SELECT COUNT(*) GROUP BY BUCKET('5m')", PLAIN.summary, strict=True)


def test_buckets_shorter_than_a_day_are_answered_by_days_where_slots_tell_no_hours():
    untold = replace(PLAIN.summary, layout=replace(PLAIN.summary.layout, clocked=False))
    answer = ask(Strands.empty(PLAIN.layout), "SELECT BUCKET('6h') AS t, COUNT(*) AS n GROUP BY BUCKET('6h')", untold)
    days = PLAIN.query("SELECT BUCKET('1d') AS t, COUNT(*) AS n GROUP BY BUCKET('1d')")
    assert answer.rows == days.rows
    assert answer.notes == ("BUCKET('6h') is finer than what this sketch keeps: BUCKET('1d') stands in",)


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/St_Johns", "Asia/Kathmandu"])
@pytest.mark.parametrize("span", ["1d", "1w", "1mo"])
def test_buckets_of_another_zone_cut_days_and_hold_their_rows(span, zone):
    answer = PLAIN.query(f"SELECT BUCKET('{span}', '{zone}') AS b, COUNT(*) AS n, MEAN(temp) AS m GROUP BY b")
    bucket, clock = Bucket.parse(span), Zone.named(zone)
    starts = bucket.starts_us(bucket.ordinals(PLAIN.us, clock), clock)
    truth = {start: PLAIN.values[0][starts == start] for start in np.unique(starts)}
    found = {(row["b"] - EPOCH) // timedelta(microseconds=1): row for row in answer}
    assert set(truth) <= set(found)
    for start, row in found.items():
        values = truth.get(start, np.empty(0))
        assert holds(row["n"], values.size)
        assert not values.size or holds(row["m"], values.mean())
    assert sum(row["n"].estimate for row in found.values()) == pytest.approx(len(PLAIN), rel=0.01)


def test_an_answer_becomes_a_table():
    table = PLAIN.query("SELECT BUCKET('1mo'), COUNT(*), STD(temp) GROUP BY BUCKET('1mo')").to_arrow()
    assert table.num_rows == 2
    assert table["COUNT(*)"].type == pa.int64()
    assert set(table["STD(temp) guarantee"].to_pylist()) <= {"certain", "p95", "heuristic"}


def test_a_guess_has_no_interval():
    """Values beyond the ends that bins were fitted to leave nothing known at 95%."""
    summary = PLAIN.summary
    ends, values = (np.array([-100.0, 0.0, 0.0]), np.array([100.0, 1.0, 1.0])), np.full(3, 1_000.0)
    few = replace(summary, scales=summary.scales.widened(*ends, values, np.ones(3)))
    assert ask(Strands.empty(PLAIN.layout), "SELECT MEAN(temp) WHERE temp > 12", few)["MEAN(temp)"].p95 is not None
    wider = replace(summary, scales=summary.scales.widened(*ends, values, np.full(3, 2.0)))
    names = ("STD(temp)", "VAR(temp)", "COVARIANCE(temp, half)", "CORRELATION(temp, half)")
    answer = ask(Strands.empty(PLAIN.layout), f"SELECT {', '.join(names)} WHERE temp > 12", wider)
    table = answer.to_arrow()
    for name in names:
        value = answer[name]
        assert (value.low, value.high, value.guarantee, value.p95, value.error) == (None, None, "heuristic", None, None)
        assert value.estimate == table[name][0].as_py()
        assert table[f"{name} low"].null_count == table[f"{name} high"].null_count == 1


def test_intervals_at_95_lie_inside_certain_ones_and_hold_the_estimate():
    for kept in (0.01, 0.3, 1.0):
        answer = KEPT[kept].query(f"SELECT {', '.join(STATISTICS)} WHERE temp > 12.3 AND rain < 2")
        for name in STATISTICS:
            value = answer[name]
            assert not math.isnan(value.estimate)
            if value.p95 is not None:
                assert value.low <= value.p95[0] <= value.estimate <= value.p95[1] <= value.high, name
