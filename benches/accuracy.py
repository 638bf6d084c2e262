"""Truth in advertising: by how much are answers off, how wide are intervals, and do they hold? (docs/accuracy.md)

    python benches/accuracy.py [--questions 300] [--only brazil] [--shares 0.1,0.01] [--page]

Sketches of six real data sets, at 1/10, 1/100 and 1/1000 of what their rows take as zstd Parquet, are built as a user
builds them and answer the random questions of ../shared/tools/contest.py; truth, rival and scales are that referee's.
The rival is a uniform sample of rows, as many as fit the same bytes sorted and compressed; three of them, averaged (the
referee's search ends early at small budgets: it is continued here, in the rival's favour).
An error is divided by the true count (COUNT), by 1 (CORRELATION), or by the feature's standard deviation over all rows,
and is at most 2; SUM, which the referee does not compare, is divided by that deviation times the values in scope. Gain
is the rival's mean error over ours; that of a sketch is the geometric mean over classes (function x size of scope x
predicates) of the five functions that the referee compares, without and with predicates. Where a sketch has no paths,
questions that need them are refused, which is told in words.

There is no bar for errors. Bar: no interval that is called certain or exact misses the truth, and sketches fit.
Writes benches/results/accuracy.json and, from it, docs/accuracy.md; `--only` keeps the figures of the other data sets,
`--page` measures nothing. Says so, and ends, where ../shared is absent.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import synopsis as syn
from _shared import DATA, ROOT, bar, print_table, write_results
from synopsis.core.errors import BudgetTooSmall, NotKept, SynopsisError

CONTEST = ROOT.parent / "shared" / "tools" / "contest.py"
PAGE = ROOT / "docs" / "accuracy.md"
RESULTS = ROOT / "benches" / "results" / "accuracy.json"
SHARES, QUESTIONS, SEED = (0.1, 0.01, 0.001), 300, 1
COMPARED = ("COUNT", "MEAN", "STD", "CORRELATION", "QUANTILE")  #: by the referee
FUNCTIONS = (*COMPARED, "SUM", "MIN", "MAX")
FLOOR = 1e-4  #: below which errors count as none
LEAST = 20  #: rows and values that a scope needs to enter; answers that a class needs to be called lost
HOURS = "hours of one day"


@dataclass(frozen=True)
class Case:
    """A data set and how it is asked about."""

    file: str
    time: str
    features: tuple[str, ...]
    hourly: bool = False  #: whether hours within a day can be told apart

    @property
    def path(self) -> Path:
        return DATA / f"{self.file}.parquet"


def _case(file: str, time: str, features: str, hourly: bool = False) -> Case:
    return Case(file, time, tuple(features.split(",")), hourly)


CASES = {
    "brazil": _case(
        "brazil_weather_2025", "ts", "temp_c,rh,wind_ms,press_mb,precip_mm,rad_kjm2,dew_c,wind_gust_ms", hourly=True
    ),
    "beijing": _case("beijing_air_2013_2017", "ts", "PM25,PM10,SO2,NO2,CO,O3,TEMP,PRES,DEWP,RAIN,WSPM", hourly=True),
    "us_weather": _case("us_weather_daily_1990_1993", "date", "Tmax,Tmin,TDP,Precip"),
    "spain": _case("spain_air_2001_2018", "date", "PM10,PM25,Ni,Pb"),
    "us_air": _case("us_air_daily_wide", "date", "co_conc,o3_conc,pm25_conc,so2_conc"),
    "aircraft": _case("aircraft_tracks", "ts", "altitude,groundspeed,track,vertical_rate"),
}


# --- asking -----------------------------------------------------------------------------------------------------------


def referee() -> ModuleType:
    """The contest as a module."""
    spec = importlib.util.spec_from_file_location("contest", CONTEST)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def truth_of(contest: ModuleType, case: Case, share: float, seed: int = SEED) -> Any:
    """The referee's rows, samples and budget, the samples as large as fit."""
    options = SimpleNamespace(data=str(case.path), lat="lat", lon="lon", time=case.time, share=share, seed=seed)
    truth = contest.Truth(options, list(case.features))
    if truth.parquet_bytes("sample") < 0.95 * truth.budget:
        _enlarge(truth, seed)
    return truth


def _enlarge(truth: Any, seed: int) -> None:
    """Find the most sampled rows that fit. The referee looks six times, and in proportion: headers mislead it."""

    def draw(table: str, rows: int, chance: int) -> None:
        sampled = f"select * from rows using sample reservoir({rows} rows) repeatable ({chance})"
        truth.con.execute(f"create or replace table {table} as {sampled}")

    low, high = truth.sample_rows, truth.n
    while high - low > max(low // 100, 1):
        middle = (low + high) // 2 if high < 4 * low else low * 2
        draw("trial", middle, seed)
        low, high = (middle, high) if truth.parquet_bytes("trial") <= truth.budget else (low, middle)
    for position, table in enumerate(truth.samples):
        draw(table, low, seed + 1000 * position)
    truth.sample_rows = low
    truth.center = {name: truth.one(f"select avg({name}) from sample")[0] or 0.0 for name in truth.features}


def spec_of(case: Case, memory: int | str) -> syn.Spec:
    """The spec that the referee builds with."""
    return syn.Spec(
        lat="lat", lon="lon", time=case.time, features=case.features, precision=4, bucket="1d", memory=memory
    )


@dataclass(frozen=True)
class Question:
    """One question in our words and in DuckDB's, and which classes it belongs to."""

    number: int
    asked: str
    true: str
    size: str
    span: str  #: of time: all time, whole days, cut days or HOURS
    predicates: int
    first: str
    second: str
    share: float

    @property
    def names(self) -> dict[str, str]:
        """Functions, and the columns of the answer that hold them."""
        one = {name: f"{name}({self.first})" for name in ("MEAN", "STD", "SUM", "MIN", "MAX")}
        quantile = f"QUANTILE({self.first}, {self.share})"
        pair = f"CORRELATION({self.first}, {self.second})"
        return {"COUNT": "COUNT(*)", **one, "QUANTILE": quantile, "CORRELATION": pair}

    @property
    def text(self) -> str:
        return f"SELECT {', '.join(self.names.values())} WHERE {self.asked}"

    @property
    def select(self) -> str:
        """DuckDB's columns, named as the functions, and `values` and `pairs` that they are of."""
        x, y = self.first, self.second
        return (
            f"select count(*) COUNT, avg({x}) MEAN, stddev_pop({x}) STD, corr({x}, {y}) CORRELATION, "
            f"quantile_cont({x}, {self.share}) QUANTILE, sum({x}) SUM, min({x}) MIN, max({x}) MAX, "
            f'count({x}) "values", regr_count({x}, {y}) pairs'
        )


def questions_of(contest: ModuleType, truth: Any, seed: int = SEED) -> Iterator[Question]:
    """The referee's random questions, one after the other."""
    source, number = contest.Questions(truth, seed), 0
    while True:
        asked, true, size, _, predicates, x, y, share = source.ask()
        number += 1
        clocks = [part[:8] for part in true.partition(" and ts >= ")[2].split(" ") if part[2:3] == ":"]
        span = "all time" if not clocks else "whole days" if all(c == "00:00:00" for c in clocks) else "cut days"
        yield Question(number, asked, true, size, span, predicates, str(x), str(y), share)


def hours_of(contest: ModuleType, truth: Any, seed: int = SEED) -> Iterator[Question]:
    """Six hours of one day in a large cell, without predicates: what days cannot tell."""
    random, number = np.random.default_rng(seed), 0
    while True:
        lat, lon = truth.places[random.integers(len(truth.places))]
        cell, south_north, west_east = contest.geohash_box(lat, lon, 2)
        day = random.integers(truth.start // 86_400, truth.end // 86_400) * 86_400
        first = day + int(random.integers(0, 19)) * 3_600
        begin, end = (time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(int(at))) for at in (first, first + 6 * 3_600))
        x, y = (str(name) for name in random.choice(truth.features, 2, replace=False))
        number += 1
        yield Question(
            -number,
            f"location LIKE '{cell}%' AND time >= '{begin}' AND time < '{end}'",
            f"lat >= {south_north[0]} and lat < {south_north[1]} and lon >= {west_east[0]} and lon < {west_east[1]} "
            f"and ts >= '{begin}' and ts < '{end}'",
            "large",
            HOURS,
            0,
            x,
            y,
            0.5,
        )


def true_answer(truth: Any, question: Question, table: str = "rows") -> dict[str, Any]:
    """DuckDB's answer by function."""
    found = truth.con.execute(f"{question.select} from {table} where {question.true}")
    return dict(zip((column[0] for column in found.description), found.fetchall()[0], strict=True))


def number(value: Any) -> bool:
    """Whether there is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def scale_of(truth: Any, question: Question, function: str, want: dict[str, Any]) -> float:
    """By what errors and widths are divided."""
    if function == "COUNT":
        return float(max(want["COUNT"], 1))
    if function == "CORRELATION":
        return 1.0
    return float(truth.sigma[question.first]) * (max(want["values"], 1) if function == "SUM" else 1)


def error_of(truth: Any, question: Question, function: str, value: Any, want: dict[str, Any]) -> float:
    """The scaled error; without a value that of the best guess that needs no data: nothing, or the whole's."""
    guess = {"COUNT": 0.0, "SUM": 0.0, "CORRELATION": 0.0, "STD": truth.sigma[question.first]}
    known = value if number(value) else guess.get(function, truth.center[question.first])
    return float(min(abs(known - want[function]) / scale_of(truth, question, function, want), 2.0))


@dataclass(frozen=True)
class Point:
    """One value of an answer beside the truth. Errors and widths only where the scope enters."""

    question: Question
    function: str
    enters: bool
    sketch: float = math.nan
    sample: float = math.nan
    width: float = math.nan  #: of the certain interval
    p95_width: float = math.nan
    held: bool | None = None  #: whether the interval at 95% holds the truth; None where there is none
    missed: bool = False  #: whether a certain interval does not


class Asking:
    """A sketch being asked: points, refusals, failures and times."""

    def __init__(self, truth: Any, sketch: Any) -> None:
        self._truth, self._sketch = truth, sketch
        self.points: list[Point] = []
        self.refused: dict[str, int] = {}
        self.failed: list[str] = []
        self.milliseconds: list[float] = []

    def ask(self, question: Question) -> bool:
        """Ask and compare; whether the scope enters. Questions without an answer do not."""
        got = self._answer(question)
        if not got:
            return False
        want = true_answer(self._truth, question)
        enters = want["COUNT"] >= LEAST and want["values"] >= LEAST
        samples = [true_answer(self._truth, question, table) for table in self._truth.samples] if enters else []
        for function, value in got.items():
            entered = enters and not (function == "CORRELATION" and want["pairs"] < LEAST)
            if number(want[function]):
                self.points.append(self._point(question, function, value, want, samples if entered else []))
        return enters

    def _answer(self, question: Question) -> dict[str, Any]:
        """Values by function, without the quantile where that is refused; empty where all is."""
        names = question.names
        try:
            began = time.perf_counter()
            try:
                answer = self._sketch.query(question.text)
            except NotKept:
                if question.predicates:
                    raise
                self._count("QUANTILE")
                del names["QUANTILE"]
                began = time.perf_counter()
                answer = self._sketch.query(f"SELECT {', '.join(names.values())} WHERE {question.asked}")
            self.milliseconds.append((time.perf_counter() - began) * 1e3)
            return {function: answer[name] for function, name in names.items()}
        except NotKept:
            self._count("predicates")
        except Exception as problem:  # every failure is a finding
            self.failed.append(f"{type(problem).__name__}: {str(problem)[:200]} in {question.text[:300]}")
        return {}

    def _count(self, what: str) -> None:
        self.refused[what] = self.refused.get(what, 0) + 1

    def _point(
        self, question: Question, function: str, value: Any, want: dict[str, Any], samples: list[dict[str, Any]]
    ) -> Point:
        truth, true = self._truth, want[function]
        scale = scale_of(truth, question, function, want)
        slack = 0.5 if function == "COUNT" else 1e-6 * max(abs(true), scale)
        certain = value.guarantee in ("exact", "certain")
        whole = number(value.low) and number(value.high)
        missed = certain and not (whole and value.low - slack <= true <= value.high + slack)
        held = None if value.p95 is None else bool(value.p95[0] - slack <= true <= value.p95[1] + slack)
        if not samples:
            return Point(question, function, False, held=held, missed=missed)
        grown = truth.n / truth.sample_rows if function in ("COUNT", "SUM") else 1.0
        rivals = [each[function] * grown if number(each[function]) else None for each in samples]
        return Point(
            question,
            function,
            True,
            error_of(truth, question, function, value.estimate, want),
            float(np.mean([error_of(truth, question, function, rival, want) for rival in rivals])),
            (value.high - value.low) / scale if certain and whole else math.nan,
            math.nan if value.p95 is None else (value.p95[1] - value.p95[0]) / scale,
            held,
            missed,
        )


# --- figures ----------------------------------------------------------------------------------------------------------


def gain_of(points: list[Point]) -> float:
    """The rival's mean error over ours."""
    sample, sketch = (float(np.mean([getattr(point, name) for point in points])) for name in ("sample", "sketch"))
    return max(sample, FLOOR) / max(sketch, FLOOR)


def surely_lost(points: list[Point]) -> bool:
    """Whether the rival is the better one with 99% confidence: the referee's bootstrap by question."""
    if len(points) < LEAST:
        return False
    _, who = np.unique([point.question.number for point in points], return_inverse=True)
    sums = np.zeros((who.max() + 1, 3))
    np.add.at(sums, who, np.array([[point.sketch, point.sample, 1.0] for point in points]))
    drawn = np.random.default_rng(0).integers(0, len(sums), (1000, len(sums)))
    total = sums[drawn].sum(axis=1)
    gains = np.maximum(total[:, 1] / total[:, 2], FLOOR) / np.maximum(total[:, 0] / total[:, 2], FLOOR)
    return bool(np.quantile(gains, 0.99) < 1.0)


def overall_gain(points: list[Point], with_predicates: bool) -> float | None:
    """The referee's: the geometric mean over classes of at least five, each between a tenth and ten."""
    classes: dict[tuple[str, str, int], list[Point]] = {}
    for point in points:
        question = point.question
        if point.function in COMPARED and (question.predicates > 0) == with_predicates:
            classes.setdefault((point.function, question.size, question.predicates), []).append(point)
    gains = [float(np.clip(gain_of(each), 0.1, 10.0)) for each in classes.values() if len(each) >= 5]
    return round(float(np.exp(np.mean(np.log(gains)))), 2) if gains else None


def row_of(points: list[Point]) -> dict[str, Any] | None:
    """What there is to say of a class; None where no question entered."""
    entered = [point for point in points if point.enters]
    if not entered:
        return None
    held = [point.held for point in points if point.held is not None]

    def median(name: str) -> float | None:
        known = [width for point in entered if math.isfinite(width := getattr(point, name))]
        return _short(float(np.median(known))) if known else None

    return {
        "answers": len(entered),
        "sketch": _short(float(np.mean([point.sketch for point in entered]))),
        "sample": _short(float(np.mean([point.sample for point in entered]))),
        "gain": round(gain_of(entered), 2),
        "lost": surely_lost(entered),
        "certain_width": median("width"),
        "p95_width": median("p95_width"),
        "p95_held": round(float(np.mean(held)), 3) if held else None,
        "missed": sum(point.missed for point in points),
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def figures_of(asking: Asking) -> dict[str, Any]:
    """Rows by class."""
    usual = [point for point in asking.points if point.question.span != HOURS]
    entered = [point for point in usual if point.enters]

    def rows(points: list[Point], key: Callable[[Point], str]) -> dict[str, Any]:
        grouped: dict[str, list[Point]] = {}
        for point in points:
            grouped.setdefault(key(point), []).append(point)
        made = {name: row_of(each) for name, each in sorted(grouped.items())}
        return {name: row for name, row in made.items() if row is not None}

    compared = [point for point in usual if point.function in COMPARED]
    plain = [point for point in asking.points if point.function == "MEAN" and point.question.predicates == 0]
    return {
        "gain": overall_gain(entered, False),
        "gain_predicates": overall_gain(entered, True),
        "missed": sum(point.missed for point in asking.points),
        "milliseconds": _short(float(np.median(asking.milliseconds))) if asking.milliseconds else None,
        "refused": asking.refused,
        "failed": asking.failed,
        "functions": rows(usual, lambda point: point.function),
        "predicates": rows(compared, lambda point: f"{point.function} {point.question.predicates}"),
        "sizes": rows(compared, lambda point: f"{point.question.size} {point.question.predicates}"),
        "means_by_time": rows(plain, lambda point: point.question.span),
    }


def measure(contest: ModuleType, case: Case, share: float, questions: int, folder: Path) -> dict[str, Any]:
    """Build, ask, compare; a sketch that cannot be built is told in words."""
    truth = truth_of(contest, case, share)
    about = {"rows": truth.n, "budget": truth.budget, "sample_rows": truth.sample_rows, "questions": questions}
    target = folder / f"{case.file}-{share}"
    try:
        began = time.perf_counter()
        report = syn.build(case.path, spec_of(case, truth.budget), target, progress=False)
        about["build_seconds"] = round(time.perf_counter() - began, 1)
    except BudgetTooSmall as small:
        return about | {"words": f"no sketch: {small}"}
    except SynopsisError as problem:
        return about | {"words": f"no sketch: {type(problem).__name__}: {problem}", "broken": True}
    sketch = syn.open(target)
    asking = Asking(truth, sketch)
    entered, left = 0, iter(range(questions * 4))
    source = questions_of(contest, truth)
    while entered < questions and next(left, None) is not None:
        entered += asking.ask(next(source))
    if case.hourly:
        for _, question in zip(range(max(questions // 4, 10)), hours_of(contest, truth), strict=False):
            asking.ask(question)
    truth.con.close()
    has_paths = sketch.summary is not None
    grain = sketch.summary.grain if has_paths else sketch.layout.grain
    words = "" if has_paths else f"no paths: sums by {grain} instead, so predicates and quantiles are refused"
    stored = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    about |= {"sketch_bytes": int(report.sketch_bytes), "stored_bytes": stored, "grain": grain, "words": words}
    return about | figures_of(asking)


# --- the page ---------------------------------------------------------------------------------------------------------

INTRODUCTION = """\
# Accuracy

By how much answers are off, how wide their intervals are, and when something else serves better. `benches/accuracy.py`
measures all of it and writes this page from `benches/results/accuracy.json`; no figure is written by hand.

**What is compared.** Each data set is built three times, with a budget of 1/10, 1/100 and 1/1000 of what its rows take
as zstd Parquet. The rival has the same bytes: as many uniformly sampled rows as fit them, sorted and compressed. Both
answer the same random questions: cells, boxes and polygons of three sizes, all time or ranges that cut days or do not,
and none to three predicates on features. DuckDB gives the truth from the rows. Scopes of fewer than {least} rows are
asked for their intervals only. Cells of the tables are mean errors, `sketch / sample`, and the gain, sample over
sketch: above 1 the sketch is the better one; **bold** where the sample is, with 99% confidence.

**How errors are scaled.** That of COUNT is a share of the true count. Those of MEAN, STD, QUANTILE, MIN and MAX are in
standard deviations of the feature over all rows, SUM in deviations times the values in scope, CORRELATION as it is. No
error counts for more than 2. Widths of intervals are medians on the same scale. A *certain* interval holds the truth
always (`missed` counts those that did not), one at *95%* in 95 of 100 questions (`held` is the share that did).
"""

WIDTH = 120
TITLES = {0.1: "1/10", 0.01: "1/100", 0.001: "1/1000"}


def page_of(figures: dict[str, Any]) -> str:
    """The page, from what was measured."""
    parts = [INTRODUCTION.format(least=LEAST)]
    parts += [_section(name, figures[name]) for name in CASES if name in figures]
    parts.append(_when_not({name: figures[name] for name in CASES if name in figures}))
    return "\n".join(_wrapped(line) for part in parts for line in part.split("\n")).rstrip("\n") + "\n"


def _wrapped(line: str) -> str:
    """A paragraph or an item as lines of a page; tables and headings stay."""
    if len(line) <= WIDTH or line.startswith(("|", "#")):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _section(name: str, shares: dict[str, Any]) -> str:
    first = next(iter(shares.values()))
    case = CASES[name]
    lines = [f"## {case.file}", "", f"{first['rows']:,} rows; {', '.join(case.features)}.", ""]
    lines += [f"- {_told(float(share), found)}" for share, found in shares.items()]
    measured = {share: found for share, found in shares.items() if found.get("functions")}
    if not measured:
        return "\n".join([*lines, ""])
    widest = next(iter(measured))
    titles = [TITLES.get(float(share), share) for share in measured]
    head = ["function", "predicates", *titles, f"certain width, {titles[0]}", "95% width", "held", "missed"]
    lines += ["", _cells(head), "|" + "---|" * len(head)]
    for function in FUNCTIONS:
        for predicates in ("any", *"0123"):
            rows = {share: _class(found, function, predicates) for share, found in measured.items()}
            if not any(rows.values()):
                continue
            best = rows[widest] or {}
            lines.append(
                _cells(
                    [
                        function,
                        predicates,
                        *(_compared(row) for row in rows.values()),
                        _width(best.get("certain_width")),
                        _width(best.get("p95_width")),
                        _percent(best.get("p95_held")),
                        str(sum(row["missed"] for row in rows.values() if row)),
                    ]
                )
            )
    return "\n".join([*lines, ""])


def _class(found: dict[str, Any], function: str, predicates: str) -> dict[str, Any] | None:
    row = (
        found["functions"].get(function) if predicates == "any" else found["predicates"].get(f"{function} {predicates}")
    )
    return row if row is None else dict(row)


def _told(share: float, found: dict[str, Any]) -> str:
    title = TITLES.get(share, f"{share:g}")
    if "sketch_bytes" not in found:
        return f"**{title}** ({found['budget']:,} bytes, or a sample of {found['sample_rows']:,}): {found['words']}."
    gains = [
        f"x{found[key]:.2f} {words}"
        for key, words in (("gain", "without predicates"), ("gain_predicates", "with"))
        if found[key] is not None
    ]
    failed = f" {len(found['failed'])} questions failed." if found["failed"] else ""
    answers = found["words"] or found["grain"]
    sizes = f"{found['sketch_bytes']:,} of {found['budget']:,} bytes, or a sample of {found['sample_rows']:,}"
    return (
        f"**{title}**: {sizes}; "
        f"{answers}. Gain {' and '.join(gains) or 'unknown'}; {found['milliseconds']:.3g} ms a question.{failed}"
    )


def _cells(texts: list[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _compared(row: dict[str, Any] | None) -> str:
    if row is None:
        return "refused"
    text = f"{row['sketch']:.3f} / {row['sample']:.3f}, x{row['gain']:.2f}"
    return f"**{text}**" if row["lost"] else text


def _width(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _when_not(figures: dict[str, Any]) -> str:
    """What the figures advise against; a paragraph appears where they do."""
    every = [(name, float(share), found) for name, shares in figures.items() for share, found in shares.items()]
    with_paths = [(name, share, found) for name, share, found in every if found.get("functions") and not found["words"]]
    tenth = {name: found for name, share, found in with_paths if share == max(SHARES)}
    lines = ["## When not to use the sketch", ""]
    without = [f"{CASES[name].file} at {TITLES.get(share, share)}" for name, share, found in every if found["words"]]
    if without:
        lines += [
            "**The smallest budgets.** A sketch has paths where counts of places and bins leave room for them. In "
            f"{len(without)} of {len(every)} cases they did not, so predicates and quantiles are refused, or nothing "
            f"is built: {'; '.join(without)}. Give more bytes or fewer features, or keep a sample.",
            "",
        ]
    lost = [
        f"{function} {'' if predicates == 'any' else f'with {predicates} predicates '}of {CASES[name].file} at "
        f"{TITLES.get(share, share)} (x{row['gain']:.2f})"
        for name, share, found in every
        if found.get("functions")
        for function in FUNCTIONS
        for predicates in ("any", *"0123")
        if (row := _class(found, function, predicates)) and row["lost"]
    ]
    lines += [
        "**Where the sample is better.** "
        + (f"With 99% confidence in {len(lost)} classes: {'; '.join(lost)}." if lost else "In no class of the tables."),
        "",
    ]
    lines += _paragraph(
        "Small scopes with many predicates.",
        "Few paths are left there, and both are guesses; certain intervals say so. Mean errors of all compared "
        "functions at 1/10:",
        ["data", "small, 3 predicates", "large, no predicate"],
        [
            [CASES[name].file, *(_compared(found["sizes"].get(key)) for key in ("small 3", "large 0"))]
            for name, found in tenth.items()
            if "small 3" in found["sizes"]
        ],
    )
    lines += _paragraph(
        "Extremes.",
        "MIN and MAX of a place and its whole period are edges of bins; elsewhere they lie where a row beyond is as "
        "likely as not, and certain intervals are wide. At 1/10, with the median width of these:",
        ["data", "MIN", "MAX", "width of MIN", "width of MAX"],
        [
            [
                CASES[name].file,
                *(_compared(found["functions"].get(each)) for each in ("MIN", "MAX")),
                *(_width((found["functions"].get(each) or {}).get("certain_width")) for each in ("MIN", "MAX")),
            ]
            for name, found in tenth.items()
        ],
    )
    lines += _paragraph(
        "Hours within a day.",
        "Counts are kept by day. Where places report at a regular pace, paths know their hours, which costs no byte; "
        "but six hours of a day have few paths, and COUNT of an hour is a share of its day. MEAN without predicates at "
        "1/10:",
        ["data", "whole days", "cut days", HOURS, f"held, {HOURS}"],
        [
            [
                CASES[name].file,
                *(_compared(found["means_by_time"].get(span)) for span in ("whole days", "cut days", HOURS)),
                _percent(found["means_by_time"][HOURS]["p95_held"]),
            ]
            for name, found in tenth.items()
            if HOURS in found["means_by_time"]
        ],
    )
    wide = [
        f"{CASES[name].file} {row['certain_width']:.2f}"
        for name, found in tenth.items()
        if (row := found["predicates"].get("COUNT 3")) and row["certain_width"] is not None
    ]
    if wide:
        lines += [
            "**When a certain interval must be narrow.** With three predicates the median certain interval of COUNT "
            f"at 1/10 is, in true counts: {', '.join(wide)}. Use the estimate and the interval at 95% there.",
            "",
        ]
    lines += [
        "**When a sketch begins with few rows.** Later batches join what is there, and days that are added to a year "
        "cost nothing; but bins, scales and stretches that were chosen for a first month of many are worse ones for "
        "the years that follow (`benches/batches.py` has the figures), and intervals at 95% of such a sketch may miss. "
        "Begin with all rows that there are, or build anew once there is a year of them.",
        "",
    ]
    lines += [
        '**When exactness is required.** Give `exact_at`, as in `exact_at=(4, "1mo")`: statistics of whole cells and '
        "months are then exact, and predicates are refused. For single rows, and for all that must be exact under "
        "predicates, keep the rows.",
        "",
    ]
    return "\n".join(lines)


def _paragraph(title: str, words: str, head: list[str], rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    return [f"**{title}** {words}", "", _cells(head), "|" + "---|" * len(head), *map(_cells, rows), ""]


# --- running ----------------------------------------------------------------------------------------------------------


def show(name: str, share: float, found: dict[str, Any]) -> None:
    """A sketch's figures on the screen."""
    print(f"\n{name}, {_told(share, found)}".replace("**", ""), flush=True)
    if not found.get("functions"):
        return
    rows = [
        [
            *(each, row["answers"], row["sketch"], row["sample"], f"x{row['gain']:.2f}", "lost" if row["lost"] else ""),
            *(_width(row["certain_width"]), _width(row["p95_width"]), _percent(row["p95_held"]), row["missed"]),
        ]
        for each, row in [*found["functions"].items(), *found["means_by_time"].items()]
    ]
    print_table(["class", "answers", "sketch", "sample", "gain", "", "certain", "95%", "held", "missed"], rows)
    for problem in found["failed"][:3]:
        print("!!", problem)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--only", choices=list(CASES))
    parser.add_argument("--shares", default=",".join(map(str, SHARES)))
    parser.add_argument("--page", action="store_true", help="write the page from the results there are")
    options = parser.parse_args()
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if options.page:
        PAGE.write_text(page_of(known), encoding="utf-8")
        return 0
    if not CONTEST.exists() or not DATA.is_dir():
        print("the folder shared does not lie beside this repository: nothing to measure")
        return 0
    from synopsis.spark import session

    contest = referee()
    figures = {name: known[name] for name in CASES if name in known and options.only not in (None, name)}
    measured = []
    try:
        for name in [options.only] if options.only else list(CASES):
            figures[name] = {}
            for share in map(float, options.shares.split(",")):
                with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
                    found = measure(contest, CASES[name], share, options.questions, Path(folder))
                figures[name][str(share)] = found
                measured.append(found)
                show(name, share, found)
            write_results("accuracy", {each: figures[each] for each in CASES if each in figures})
    finally:
        session.stop()
    PAGE.write_text(page_of(figures), encoding="utf-8")
    missed = sum(found.get("missed", 0) for found in measured)
    failed = sum(len(found.get("failed", ())) + found.get("broken", False) for found in measured)
    over = sum(found.get("sketch_bytes", 0) > found["budget"] for found in measured)
    words = f"{missed} certain intervals missed the truth; {failed} questions or builds failed; {over} over budget"
    print("\n" + bar(not (missed or failed or over), words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
