"""Are quantiles, probabilities, outliers and densities of a sketch closer than those of a sample of the same bytes?

    python benches/densities.py [--questions 400] [--only brazil] [--shares 0.1,0.01] [--seed 1] [--keep FOLDER]

Sketches of five real data sets, at 1/10 and 1/100 of what their rows take as zstd Parquet, and uniform samples of the
same bytes answer the same random questions; scopes, predicates, rows, samples and rules are those of
../shared/tools/contest.py, as in accuracy.py. Each question asks for QUANTILE(x, q) with q from 0.01 to 0.99,
MEDIAN(x), QUARTILES(x), DECILES(x), PROBABILITY of a condition on one feature and of one on two, and OUTLIERS(x, k)
with k from 1 to 3; then DENSITY(x, h), h being Silverman's bandwidth of the rows in scope, or a hundredth of their
range where that is more: narrower peaks fall between the 201 points of a curve.

Errors of quantiles are in standard deviations of the feature over all rows; of three or nine quantiles the mean counts.
Errors of probabilities are as they are. Outliers are judged twice: as a share of the values in scope, and, where there
are 20 of them or more, in true outliers, as the referee does with rows and COUNT. None counts for more than 2. Where a
sample has no row, a quantile is the sample's mean, a probability that of the whole sample, and there are no outliers.
Curves of sketch, rows and samples have the same bandwidth, and are compared at the points that the sketch answers with:
the mean difference divided by the mean of the rows' curve, 2 where two curves have nothing in common. Where a sample
has no row, its curve is that of the whole sample. Scopes whose values are all one have no curve.
Gain is the sample's mean error over ours. A class is a function, with or without predicates, in one kind of scope; it
is lost where the sample is better with 99% confidence (bootstrap by question). Scopes of fewer than 20 rows are asked
for their intervals only.

Bar: no class is lost, no interval that is called certain or exact misses the truth, no question fails.
Writes benches/results/densities.json. Says so, and ends, where ../shared is absent.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import synopsis as syn
from _shared import DATA, ROOT, bar, print_table, write_results
from accuracy import CASES, CONTEST, FLOOR, LEAST, TITLES, Case, number, referee, spec_of, truth_of
from synopsis import demo
from synopsis.core.errors import BudgetTooSmall, NotKept

SHARES, QUESTIONS, SEED, MOST = (0.1, 0.01), 400, 1, 2.0
NAMES = ("brazil", "beijing", "us_weather", "flights", "aircraft")
FLIGHTS = ("dep_delay", "arr_delay", "air_time", "distance")
RESULTS = ROOT / "benches" / "results" / "densities.json"
TENTHS = tuple(tenth / 10 for tenth in range(1, 10))
AWAY = (1.0, 1.5, 2.0, 2.5, 3.0)
FINER = 16  #: steps of a bandwidth by which values are gathered before they are smoothed


@dataclass(frozen=True)
class Column:
    """Some columns of an answer: how they are asked for, what they are called, and what DuckDB calls them."""

    function: str
    asked: str
    names: tuple[str, ...]
    true: str
    condition: str = ""  #: of a probability


@dataclass(frozen=True)
class Question:
    """One question in our words and in DuckDB's, and which classes it belongs to."""

    number: int
    asked: str
    true: str
    size: str
    kind: str
    predicates: int
    feature: str
    columns: tuple[Column, ...]

    @property
    def text(self) -> str:
        return f"SELECT {', '.join(column.asked for column in self.columns)} WHERE {self.asked}"

    def select(self, table: str) -> str:
        """What DuckDB is asked: lists of numbers, one for each column, then rows and values."""
        asked = ", ".join(column.true for column in self.columns)
        return (
            f"with scope as (select * from {table} where {self.true}), "
            f"usual as (select avg({self.feature}) middle, stddev_pop({self.feature}) deviation from scope) "
            f"select {asked}, count(*), count({self.feature}) from scope, usual"
        )

    def different(self, table: str, where: str) -> str:
        """What DuckDB is asked for a curve: values and how many rows have each."""
        known = f"{self.feature} is not null and not isnan({self.feature})"
        return f"select {self.feature}::double, count(*) from {table} where ({where}) and {known} group by 1"


def columns_of(source: Any, feature: str, random: np.random.Generator) -> Iterator[Column]:
    """What is asked of a scope."""

    def quantiles(function: str, asked: str, names: tuple[str, ...], shares: tuple[float, ...]) -> Column:
        return Column(function, f"{asked} AS {names[0].split()[0]}", names, f"quantile_cont({feature}, {list(shares)})")

    share = int(random.integers(1, 100)) / 100
    yield quantiles("QUANTILE", f"QUANTILE({feature}, {share})", ("one",), (share,))
    yield quantiles("MEDIAN", f"MEDIAN({feature})", ("middle",), (0.5,))
    quarters = (0.25, 0.5, 0.75)
    yield quantiles("QUARTILES", f"QUARTILES({feature})", tuple(f"quarter {each}" for each in quarters), quarters)
    yield quantiles("DECILES", f"DECILES({feature})", tuple(f"tenth {each}" for each in TENTHS), TENTHS)
    for count in (1, 2):
        chosen = random.choice(source.t.features, count, replace=False)
        condition = " AND ".join(f"({source.predicate(each)})" for each in chosen)
        name = f"chance{count}"
        true = f"[(count(*) filter (where {condition})) / nullif(count(*), 0)]"
        yield Column(f"PROBABILITY {count}", f"PROBABILITY({condition}) AS {name}", (name,), true, condition)
    away = float(random.choice(AWAY))
    far = f"[count(*) filter (where abs({feature} - middle) > {away} * deviation)]"
    yield Column("OUTLIERS", f"OUTLIERS({feature}, {away}) AS far", ("far",), far)
    yield Column("OUTLIERS, share", f"OUTLIERS({feature}, {away}) AS some", ("some",), far)


def questions_of(contest: ModuleType, truth: Any, seed: int) -> Iterator[Question]:
    """The referee's random scopes and predicates, with what is asked of them here."""
    source, at = contest.Questions(truth, seed), 0
    while True:
        asked, true, size, kind, predicates, feature, _, _ = source.ask()
        at += 1
        columns = tuple(columns_of(source, str(feature), source.rng))
        yield Question(at, asked, true, size, kind, predicates, str(feature), columns)


@dataclass(frozen=True)
class Point:
    """One function's answer beside the truth: errors where the scope enters, and what became of its intervals."""

    question: Question
    function: str
    enters: bool
    missed: int
    held: tuple[bool, ...]  #: of each value that has an interval at 95%
    sketch: float = math.nan
    sample: float = math.nan


class Asking:
    """A sketch being asked."""

    def __init__(self, truth: Any, sketch: Any) -> None:
        self._truth, self._sketch = truth, sketch
        self.points: list[Point] = []
        self.problems: list[str] = []  #: intervals that missed, questions that failed
        self.refused = 0
        self.milliseconds: list[float] = []

    def ask(self, question: Question) -> bool:
        """Ask and compare; whether the scope enters."""
        began = time.perf_counter()
        try:
            answer = self._sketch.query(question.text)
        except NotKept:
            self.refused += 1
            return False
        except Exception as problem:  # every failure is a finding
            self.problems.append(f"failed: {type(problem).__name__}: {str(problem)[:200]} in {question.text}")
            return False
        self.milliseconds.append((time.perf_counter() - began) * 1e3)
        *want, rows, values = self._true(question, "rows")
        enters = rows >= LEAST and values >= LEAST
        have = [self._true(question, table) for table in self._truth.samples] if enters else []
        for at, column in enumerate(question.columns):
            true = want[at]
            if true is None or not all(map(number, true)):
                continue
            counts = enters and not (column.function == "OUTLIERS" and true[0] < LEAST)
            found = [answer[name] for name in column.names]
            missed, held = self._intervals(question, column, found, true)
            if not counts:
                self.points.append(Point(question, column.function, False, missed, held))
                continue
            sketch = self._error(question, column, [value.estimate for value in found], true, "rows", values)
            samples = [
                self._error(question, column, self._grown(column, each[at]), true, table, values)
                for each, table in zip(have, self._truth.samples, strict=True)
            ]
            own = Point(question, column.function, True, missed, held, sketch, float(np.mean(samples)))
            self.points.append(own)
        if enters:
            self._ask_for_curve(question)
        return enters

    def _ask_for_curve(self, question: Question) -> None:
        def different(table: str) -> list[np.ndarray]:
            for where in (question.true, "true"):
                found = list(self._truth.con.execute(question.different(table, where)).fetchnumpy().values())
                if found[0].size:
                    break
            return found

        rows = different("rows")
        width = bandwidth(*rows)
        if not width > 0.0:
            return
        text = f"SELECT DENSITY({question.feature}, {width!r}) WHERE {question.asked}"
        try:
            answer = self._sketch.query(text)
        except Exception as problem:  # every failure is a finding
            self.problems.append(f"failed: {type(problem).__name__}: {str(problem)[:200]} in {text}")
            return
        table = answer.to_pandas()
        points, found = table.iloc[:, 0].to_numpy(np.float64), table.iloc[:, 1].to_numpy(np.float64)
        true = smoothed(*rows, points, width)

        def error(curve: np.ndarray) -> float:
            return float(min(np.abs(curve - true).sum() / max(true.sum(), math.ulp(0.0)), MOST))

        others = [error(smoothed(*different(table), points, width)) for table in self._truth.samples]
        self.points.append(Point(question, "DENSITY", True, 0, (), error(found), float(np.mean(others))))

    def _true(self, question: Question, table: str) -> Any:
        return self._truth.con.execute(question.select(table)).fetchall()[0]

    def _grown(self, column: Column, values: Any) -> Any:
        """Outliers of a sample stand for those of all rows."""
        if not column.function.startswith("OUTLIERS") or values is None:
            return values
        return [value * self._truth.n / self._truth.sample_rows for value in values]

    def _scale(self, question: Question, column: Column, true: float, values: int) -> float:
        if column.function == "OUTLIERS":
            return float(max(true, 1))
        if column.function == "OUTLIERS, share":
            return float(values)
        return 1.0 if column.condition else float(self._truth.sigma[question.feature])

    def _error(
        self, question: Question, column: Column, found: Any, true: list[float], table: str, values: int
    ) -> float:
        """The mean error of some columns; where there is no value, that of the best guess without the scope."""
        errors = []
        for value, wanted in zip(found or [None] * len(true), true, strict=True):
            known = value if number(value) else self._guess(question, column, table)
            errors.append(min(abs(known - wanted) / self._scale(question, column, wanted, values), MOST))
        return float(np.mean(errors))

    def _guess(self, question: Question, column: Column, table: str) -> float:
        if column.function.startswith("OUTLIERS"):
            return 0.0
        if column.condition:
            return float(self._truth.one(f"select avg(coalesce({column.condition}, false)::int) from {table}")[0])
        return float(self._truth.center[question.feature])

    def _intervals(
        self, question: Question, column: Column, found: list[Any], true: list[float]
    ) -> tuple[int, tuple[bool, ...]]:
        """How many certain intervals missed, and whether those at 95% hold."""
        missed, held = 0, []
        for value, wanted in zip(found, true, strict=True):
            scale = self._scale(question, column, wanted, 1)
            slack = 0.5 if column.function.startswith("OUTLIERS") else 1e-6 * max(abs(wanted), scale)
            if value.guarantee in ("exact", "certain"):
                whole = number(value.low) and number(value.high)
                if not (whole and value.low - slack <= wanted <= value.high + slack):
                    missed += 1
                    self.problems.append(f"missed: {value} and not {wanted} is {column.asked} in {question.text}")
            if value.p95 is not None:
                held.append(bool(value.p95[0] - slack <= wanted <= value.p95[1] + slack))
        return missed, tuple(held)


# --- curves -----------------------------------------------------------------------------------------------------------


def bandwidth(values: np.ndarray, counts: np.ndarray) -> float:
    """Silverman's rule of thumb, of different values and how often each is there, as far as points can show it."""
    order = np.argsort(values)
    values, shares = values[order], counts[order] / counts.sum()
    deviation = math.sqrt(float(shares @ (values - shares @ values) ** 2))
    first, third = values[np.searchsorted(np.cumsum(shares), (0.25, 0.75))]
    width = 0.9 * (min(deviation, (third - first) / 1.34) or deviation) * counts.sum() ** -0.2
    return float(max(width, (values[-1] - values[0]) / 100))


def smoothed(values: np.ndarray, counts: np.ndarray, points: np.ndarray, width: float) -> np.ndarray:
    """The density at some points, by a normal kernel. Values are gathered in steps of a 16th of its width."""
    steps, own = np.unique(np.round(values / width * FINER), return_inverse=True)
    away = points[:, None] / width - steps / FINER
    return np.asarray(np.exp(-0.5 * away**2) @ np.bincount(own, counts) / (counts.sum() * width * math.sqrt(math.tau)))


# --- figures ----------------------------------------------------------------------------------------------------------


def surely_lost(points: list[Point]) -> bool:
    """Whether the sample is the better one with 99% confidence. A question has one point of each function."""
    if len(points) < LEAST:
        return False
    errors = np.array([[point.sketch, point.sample] for point in points])
    drawn = np.random.default_rng(0).integers(0, len(errors), (1000, len(errors)))
    means = np.maximum(errors[drawn].mean(axis=1), FLOOR)
    return bool(np.quantile(means[:, 1] / means[:, 0], 0.99) < 1.0)


def row_of(points: list[Point]) -> dict[str, Any]:
    entered = [point for point in points if point.enters]
    sketch, sample = (float(np.mean([getattr(each, name) for each in entered])) for name in ("sketch", "sample"))
    held = [each for point in points for each in point.held]
    return {
        "answers": len(entered),
        "sketch": float(f"{sketch:.4g}"),
        "sample": float(f"{sample:.4g}"),
        "gain": round(max(sample, FLOOR) / max(sketch, FLOOR), 2),
        "lost": surely_lost(entered),
        "p95_held": round(float(np.mean(held)), 3) if held else None,
        "missed": sum(point.missed for point in points),
    }


def rows_of(points: list[Point], key: Callable[[Point], str]) -> dict[str, Any]:
    grouped: dict[str, list[Point]] = {}
    for point in points:
        grouped.setdefault(key(point), []).append(point)
    return {name: row_of(each) for name, each in sorted(grouped.items()) if any(point.enters for point in each)}


def figures_of(asking: Asking) -> dict[str, Any]:
    def some(point: Point) -> str:
        return "with predicates" if point.question.predicates else "without"

    return {
        "milliseconds": round(float(np.median(asking.milliseconds)), 2) if asking.milliseconds else None,
        "refused": asking.refused,
        "problems": asking.problems,
        "functions": rows_of(asking.points, lambda point: point.function),
        "classes": rows_of(asking.points, lambda point: f"{point.function}, {some(point)}, {point.question.kind}"),
        "predicates": rows_of(asking.points, lambda point: f"{point.function}, {point.question.predicates} predicates"),
        "sizes": rows_of(asking.points, lambda point: f"{point.function}, {some(point)}, {point.question.size}"),
    }


def flights(folder: Path) -> Case:
    """The rows of the demo as a file, in UTC."""
    rows = demo.flights()
    rows["time"] = rows["time"].dt.tz_localize(None).astype("datetime64[us]")
    rows[["lat", "lon", "time", *FLIGHTS]].to_parquet(folder / "flights.parquet")
    return Case(str(folder / "flights"), "time", FLIGHTS)


def measure(contest: ModuleType, case: Case, share: float, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Build, ask, compare; a sketch that cannot be built, or has no paths, is told in words."""
    truth = truth_of(contest, case, share, options.seed)
    about = {"rows": truth.n, "budget": truth.budget, "sample_rows": truth.sample_rows, "words": ""}
    target = folder / f"{Path(case.file).name}-{share}"
    if not target.exists():
        try:
            syn.build(case.path, spec_of(case, truth.budget), target, progress=False)
        except BudgetTooSmall as small:
            return about | {"words": f"no sketch: {small}"}
    sketch = syn.open(target)
    if sketch.summary is None:
        return about | {"words": f"no paths: sums by {sketch.layout.grain} instead, so all of this is refused"}
    asking, entered = Asking(truth, sketch), 0
    for question, _ in zip(questions_of(contest, truth, options.seed), range(4 * options.questions), strict=False):
        entered += asking.ask(question)
        if entered == options.questions:
            break
    truth.con.close()
    return about | {"grain": sketch.summary.grain} | figures_of(asking)


def show(name: str, share: float, found: dict[str, Any]) -> None:
    print(f"\n{name} at {TITLES[share]}: {found['words'] or found['grain']}", flush=True)
    if found["words"]:
        return
    rows = [
        [
            *(
                title,
                row["answers"],
                row["sketch"],
                row["sample"],
                f"x{row['gain']:.2f}",
                "lost" if row["lost"] else "",
            ),
            *("" if row["p95_held"] is None else f"{row['p95_held']:.1%}", row["missed"]),
        ]
        for part in ("functions", "classes", "predicates", "sizes")
        for title, row in found[part].items()
    ]
    print_table(["class", "answers", "sketch", "sample", "gain", "", "95% held", "missed"], rows)
    for problem in found["problems"][:5]:
        print("!!", problem[:600])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--shares", default=",".join(map(str, SHARES)))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--keep", type=Path, help="where sketches are built, and found the next time")
    options = parser.parse_args()
    if not CONTEST.exists() or not DATA.is_dir():
        print("the folder shared does not lie beside this repository: nothing to measure")
        return 0
    from synopsis.spark import session

    contest = referee()
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    figures = {name: known[name] for name in NAMES if name in known and options.only not in (None, name)}
    try:
        with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as temporary:
            folder = options.keep or Path(temporary)
            for name in [options.only] if options.only else NAMES:
                figures[name] = {}
                case = flights(Path(temporary)) if name == "flights" else CASES[name]
                for share in map(float, options.shares.split(",")):
                    figures[name][str(share)] = found = measure(contest, case, share, options, folder)
                    show(name, share, found)
                write_results("densities", {each: figures[each] for each in NAMES if each in figures})
    finally:
        session.stop()
    every = [(name, share, found) for name, shares in figures.items() for share, found in shares.items()]
    asked = [(name, share, found) for name, share, found in every if not found["words"]]
    lost = [
        f"{title} of {name} at {TITLES[float(share)]} (x{row['gain']:.2f})"
        for name, share, found in asked
        for title, row in found["classes"].items()
        if row["lost"]
    ]
    problems = sum(len(found["problems"]) for _, _, found in asked)
    classes = sum(len(found["classes"]) for _, _, found in asked)
    words = f"{len(lost)} of {classes} classes lost; {problems} questions failed or certain intervals missed"
    print("\n" + bar(not lost and not problems, words))
    for each in lost:
        print("lost:", each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
