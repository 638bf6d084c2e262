"""Do intervals at 95% hold in 95 of 100 questions, from everything to a cell for a week?

    python benches/intervals.py [--questions 1500] [--only brazil] [--share 0.1] [--seed 1]

The contest's scopes end where a few hundred thousand rows are in them. Here a scope is all there is, half of the time,
a month, or a cell of 1, 2 or 3 characters for 7 to 180 days, each as often, with no, one or two conditions between two
values of random rows. Sketches take a tenth of what the rows take as zstd Parquet; truth is DuckDB's. Scopes of fewer
than 20 values do not count, nor answers that are exact.

Bar: 93 to 99% held by each function without and with conditions, of each data set (that has 60 answers of them). Values
on a grid have ties: of two medians in three the estimate is the very truth, and an interval that holds one step of the
grid cannot be narrower. Such hits count where intervals may be too narrow, and do not where they may be too wide: there
99% of the other answers are the bar. Fifty answers that all hold say little of whether 99 or 97 of a hundred would: so
classes are counted as they come out, and those told beside them that lie outside by more than chance would bring about
(one in twenty times, binomial). Widths are those of the referee's errors: relative to the count, to the deviation
of all rows, or to that times the values in scope.
Writes benches/results/intervals.json, but for other seeds, on which constants may be chosen; `--only` keeps the figures
of the other data sets. Where ../shared is absent only flights are asked about.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from scipy.stats import binom

import synopsis as syn
from _shared import DATA, ROOT, bar, print_table, write_results
from accuracy import CASES, Case, spec_of
from densities import flights
from synopsis.grid import geohash

RESULTS = ROOT / "benches" / "results" / "intervals.json"
FUNCTIONS = ("COUNT", "MEAN", "SUM", "STD", "MEDIAN", "CORRELATION")
SCOPES = ("all", "half", "month", "cell 1", "cell 2", "cell 3")
LEAST, ENOUGH, LOW, HIGH, CHANCE, SEED = 20, 60, 0.93, 0.99, 0.05, 1
DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Asked:
    """A scope in our words and in DuckDB's, and the features asked about."""

    scope: str
    conditions: int
    ours: str
    theirs: str
    first: str
    second: str


class Rows:
    """The rows of a data set, in memory, and random questions about them."""

    def __init__(self, case: Case) -> None:
        names = ["lat", "lon", case.time, *case.features]
        table = pq.read_table(case.path, columns=names)
        time = table[case.time].cast(pa.timestamp("us", "UTC"))
        numbers = [table[name].cast(pa.float64()) for name in names if name != case.time]
        whole = pa.table([*numbers[:2], time, *numbers[2:]], ["lat", "lon", "time", *case.features])
        self.table = whole.filter(pa.compute.is_valid(whole["lat"]))  # others are rejected
        self.case = case
        self.latitude, self.longitude = (self.table[name].to_numpy() for name in ("lat", "lon"))
        self.instants_us = self.table["time"].cast(pa.int64()).to_numpy()
        self.values = {name: self.table[name].to_numpy() for name in case.features}
        self.connection = duckdb.connect()
        self.connection.execute("set TimeZone='UTC'")
        rows = self.table
        self.connection.execute("create table rows as select * from rows")
        del rows

    def asked(self, seed: int) -> Iterator[Asked]:
        """Random questions without end."""
        random = np.random.default_rng(seed)
        first, last = (int(end) // DAY_US for end in (self.instants_us.min(), self.instants_us.max()))
        while True:
            scope, row = str(random.choice(SCOPES)), int(random.integers(self.instants_us.size))
            ours, theirs = [], []
            if scope != "all":
                days = {"half": (last - first) // 2, "month": 30}.get(scope, int(random.integers(7, 181)))
                day = first + int(random.integers(0, max(last - first - days, 1)))
                begin, end = (str(np.datetime64(at, "D")) for at in (day, day + days))
                span = f"time >= '{begin}' AND time < '{end}'"
                ours.append(span)
                theirs.append(span)
            if scope.startswith("cell"):
                bits = 5 * int(scope[-1])
                cell = geohash.encode(self.latitude[[row]], self.longitude[[row]], bits)
                south, west, north, east = (float(edge[0]) for edge in geohash.decode(cell, bits))
                ours.append(f"location LIKE '{geohash.to_text(cell, bits // 5)[0]}%'")
                theirs.append(f"lat >= {south} and lat < {north} and lon >= {west} and lon < {east}")
            one, two = (str(name) for name in random.choice(self.case.features, 2, replace=False))
            conditions = int(random.integers(0, 3))
            for name in random.choice(self.case.features, conditions, replace=False):
                ends = sorted(self.values[name][random.integers(self.instants_us.size, size=2)].tolist())
                if np.isfinite(ends).all():
                    condition = f"{name} BETWEEN {ends[0]!r} AND {ends[1]!r}"
                    ours.append(condition)
                    theirs.append(condition)
                else:
                    conditions -= 1
            where = [f" WHERE {' AND '.join(parts)}" if parts else "" for parts in (ours, theirs)]
            yield Asked(scope, conditions, *where, one, two)

    def truth(self, asked: Asked) -> dict[str, float | None]:
        """What the rows say, and how many values and pairs that is of."""
        x, y = asked.first, asked.second
        found = self.connection.execute(
            f"select count(*) COUNT, avg({x}) MEAN, sum({x}) SUM, stddev_pop({x}) STD, quantile_cont({x}, 0.5) MEDIAN, "
            f'corr({x}, {y}) CORRELATION, count({x}) "values", regr_count({x}, {y}) pairs from rows{asked.theirs}'
        )
        return dict(zip((column[0] for column in found.description), found.fetchall()[0], strict=True))


@dataclass(frozen=True)
class Point:
    """An interval beside the truth."""

    held: bool
    hit: bool  #: whether the estimate is the truth
    width: float


def measured(rows: Rows, sketch: Any, questions: int, seed: int) -> dict[str, list[Point]]:
    """How intervals did, by function and whether there were conditions, and by function and scope."""
    deviation = {name: float(np.nanstd(values)) for name, values in rows.values.items()}
    points: dict[str, list[Point]] = {}
    source = rows.asked(seed)
    for number in range(questions):
        asked = next(source)
        true = rows.truth(asked)
        x, y = asked.first, asked.second
        columns = [f"{function}({x})" for function in FUNCTIONS[1:-1]] + [f"CORRELATION({x}, {y})"]
        answer = sketch.query(f"SELECT COUNT(*), {', '.join(columns)}{asked.ours}")
        for function, name in zip(FUNCTIONS, ("COUNT(*)", *columns), strict=True):
            value, wanted = answer[name], true[function]
            enough = (true["pairs"] if function == "CORRELATION" else true["values"]) or 0
            if value.p95 is None or wanted is None or not np.isfinite(wanted) or enough < LEAST:
                continue
            unit = {"COUNT": 0.0, "CORRELATION": 1.0, "SUM": deviation[x] * enough}.get(function, deviation[x])
            slack = 0.5 if function == "COUNT" else 1e-6 * max(abs(wanted), unit)
            is_held = bool(value.p95[0] - slack <= wanted <= value.p95[1] + slack)
            scale = max(wanted, 1.0) if function == "COUNT" else unit
            point = Point(is_held, abs(value.estimate - wanted) <= slack, (value.p95[1] - value.p95[0]) / scale)
            for key in (f"{function} {'with' if asked.conditions else 'without'}", f"{function} {asked.scope}"):
                points.setdefault(key, []).append(point)
        if number % 100 == 99:
            print(f"{number + 1} of {questions} questions", flush=True)
    return points


def figures_of(points: list[Point]) -> dict[str, Any]:
    """The share that held, of how many, how many were hits, the share of the others that held, and the median width."""
    others = [point.held for point in points if not point.hit]
    return {
        "held": round(float(np.mean([point.held for point in points])), 4),
        "of": len(points),
        "hits": len(points) - len(others),
        "others held": round(float(np.mean(others)), 4) if others else None,
        "width": round(float(np.median([point.width for point in points])), 5),
    }


def is_in_bounds(found: dict[str, Any]) -> bool:
    """Whether intervals of a class are neither too narrow nor too wide."""
    wide = found["others held"] if found.get("hits") else found["held"]
    return bool(found["held"] >= LOW and (wide is None or wide <= HIGH))


def is_by_chance(found: dict[str, Any]) -> bool:
    """Whether a class that held in 93 to 99% could come out like this in one of twenty draws."""
    many, others = found["of"], found["of"] - found.get("hits", 0)
    missed = round(many * (1.0 - found["held"]))
    narrow, wide = binom.cdf(many - missed, many, LOW), binom.cdf(missed, others, 1.0 - HIGH)
    return bool(min(narrow, wide) >= CHANCE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=1500)
    parser.add_argument("--only", choices=(*CASES, "flights"))
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    names = ("flights", *(CASES if DATA.exists() else ())) if options.only is None else (options.only,)
    figures: dict[str, Any] = json.loads(RESULTS.read_text())["figures"] if RESULTS.exists() else {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            case = flights(Path(folder)) if name == "flights" else CASES[name]
            rows = Rows(case)
            pq.write_table(rows.table, Path(folder) / "rows.parquet", compression="zstd")
            memory = int((Path(folder) / "rows.parquet").stat().st_size * options.share)
            spec = spec_of(Case(case.file, "time", case.features), memory)
            print(f"{name}: {syn.build(rows.table, spec, to=Path(folder) / 'sketch.syn', progress=False)}", flush=True)
            points = measured(rows, syn.open(Path(folder) / "sketch.syn"), options.questions, options.seed)
        figures[name] = {key: figures_of(each) for key, each in points.items()}
        kinds = ("without", "with", *SCOPES)
        print_table(
            [name, *kinds],
            [[function, *(_told(figures[name].get(f"{function} {kind}")) for kind in kinds)] for function in FUNCTIONS],
        )
        if options.seed == SEED:
            write_results("intervals", {"figures": figures, "share": options.share})
    judged = [
        (name, key, found)
        for name, own in figures.items()
        for key, found in own.items()
        if key.endswith(("with", "without")) and found["of"] >= ENOUGH
    ]
    missed = [f"{name} {key} {_told(found)}" for name, key, found in judged if not is_in_bounds(found)]
    print(bar(not missed, f"{len(judged) - len(missed)} of {len(judged)} classes; " + ", ".join(missed)))
    outside = [f"{name} {key} {_told(found)}" for name, key, found in judged if not is_by_chance(found)]
    print(f"outside by more than chance: {', '.join(outside) or 'none'}")
    return 0


def _told(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    hits = f", {found['hits']} hits" if found.get("hits", 0) > found["of"] / 10 else ""
    return f"{found['held']:.1%} of {found['of']}{hits}"


if __name__ == "__main__":
    sys.exit(main())
