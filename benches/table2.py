"""How long does each type of question take, in one process? (Synopsis, Table 2)

    python benches/table2.py [--rounds 100] [--shares 0.1,0.01] [--page]

Sketches of brazil_weather_2025 at a tenth and a hundredth of what its rows take as zstd Parquet are asked, warm, about
random places and times: each round draws one of its stations, a box of 2 to 12 degrees around it and 20 to 60 days.
Every question is new, so reading and planning it is part of the time. Pictures are timed without drawing. Beside it:
the same of DuckDB, two threads, with all rows in memory, where it can say it (a density as a histogram, a
prediction by regr_slope and regr_intercept, synthetic rows as sampled ones, a part as its rows); and the times in the
paper, of their machines, data and language. What the language does not know is left out, and told.

There is no bar. Writes benches/results/table2.json and, from it, docs/speed.md; `--page` measures nothing. Says so, and
ends, where ../shared is absent.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import synopsis as syn
from _shared import DATA, ROOT, machine_facts, print_table, write_results
from accuracy import CASES, CONTEST, TITLES, referee, spec_of, truth_of
from synopsis import plot
from synopsis.core.errors import SynopsisError
from synopsis.grid import geohash

CASE, SHARES, ROUNDS, WARM, SEED = CASES["brazil"], (0.1, 0.01), 100, 5, 7
PAGE, RESULTS = ROOT / "docs" / "speed.md", ROOT / "benches" / "results" / "table2.json"
YEAR, SHORTEST, LONGEST = 2025, 20, 60  #: of the rows; days of a question


@dataclass(frozen=True)
class Scope:
    """A place, and a box and some days around it."""

    lat: float
    lon: float
    box: tuple[float, float, float, float]
    begin: str
    end: str
    cell: str

    @property
    def asked(self) -> str:
        return f"BOX{self.box} AND {self.during}"

    @property
    def during(self) -> str:
        return f"time >= '{self.begin}' AND time < '{self.end}'"

    @property
    def true(self) -> str:
        south, west, north, east = self.box
        return f"lat between {south} and {north} and lon between {west} and {east} and {self.true_during}"

    @property
    def true_during(self) -> str:
        return f"ts >= '{self.begin}' and ts < '{self.end}'"

    def near(self, km: float) -> str:
        """DuckDB's words for a circle."""
        haversine = (
            f"pow(sin(radians(lat - {self.lat}) / 2), 2) + "
            f"cos(radians(lat)) * cos(radians({self.lat})) * pow(sin(radians(lon - {self.lon}) / 2), 2)"
        )
        return f"2 * 6371.0088 * asin(sqrt({haversine})) <= {km}"


Ours = Callable[[Any, Scope], float | None]


@dataclass(frozen=True)
class Kind:
    """A type of question: how it is asked, in ours and in DuckDB's words, and what the paper says, in ms."""

    type: str
    name: str
    ours: Ours
    true: Callable[[Scope], str] | None = None
    paper: str = ""


def asked(columns: str, more: str = "", extra: str = "") -> Ours:
    """A question in SQL; None, so that the whole call is timed."""

    def ask(sketch: Any, scope: Scope) -> None:
        sketch.query(f"SELECT {columns} WHERE {scope.asked}{extra} {more}".rstrip())

    return ask


def true(columns: str, extra: str = "", more: str = "") -> Callable[[Scope], str]:
    return lambda scope: f"select {columns} from rows where {scope.true}{extra} {more}"


def part(km: float) -> Kind:
    def fetch(sketch: Any, scope: Scope) -> None:
        sketch.select(f"SELECT * WHERE NEAR({scope.lat}, {scope.lon}, {km}) AND {scope.during}")

    return Kind(
        "relational",
        f"a part within {km:g} km",
        fetch,
        lambda scope: f"select * from rows where {scope.near(km)} and {scope.true_during}",
        "40 to 54",
    )


def synthetic(sketch: Any, scope: Scope) -> None:
    sketch.synthesize(rows=1000, where=scope.asked, seed=0)


def climate(sketch: Any, scope: Scope) -> float:
    found = plot.climate(sketch, scope.cell, YEAR, temperature="temp_c", precipitation="precip_mm")
    return float(found.synopsis_seconds.data) * 1e3  # type: ignore[attr-defined]


def contours(sketch: Any, scope: Scope) -> float:
    found = plot.map(sketch, "MEAN(rh)", "CORRELATION(rh, temp_c)", scope.during, cell=3, coastlines=False)
    return float(found.synopsis_seconds.data) * 1e3  # type: ignore[attr-defined]


LINE = "regr_intercept(temp_c, rh) + 60 * regr_slope(temp_c, rh)"
MONTHS = "select date_trunc('month', ts) m, max(temp_c), min(temp_c), avg(temp_c), sum(precip_mm) from rows"
KINDS = (
    Kind("statistical", "COUNT(*)", asked("COUNT(*)"), true("count(*)"), "0.002"),
    Kind("statistical", "MEAN(x)", asked("MEAN(temp_c)"), true("avg(temp_c)"), "0.002"),
    Kind("statistical", "CORRELATION(x, y)", asked("CORRELATION(temp_c, rh)"), true("corr(temp_c, rh)"), "0.002"),
    Kind(
        "statistical",
        "MEAN(x) with a predicate",
        asked("MEAN(temp_c)", extra=" AND rh > 80"),
        true("avg(temp_c)", " and rh > 80"),
    ),
    Kind("density", "QUANTILE(x, q)", asked("QUANTILE(temp_c, 0.9)"), true("quantile_cont(temp_c, 0.9)"), "0.007"),
    Kind(
        "density",
        "PROBABILITY(x > a)",
        asked("PROBABILITY(rh > 80)"),
        true("(count(*) filter (where rh > 80)) / count(*)"),
        "0.007",
    ),
    Kind(
        "density",
        "DENSITY(x)",
        asked("DENSITY(temp_c)"),
        true("floor(temp_c / 0.25) bin, count(*)", more="group by bin"),
        "0.007",
    ),
    Kind("set", "CONTAINS(entity)", asked("CONTAINS('A652')"), true("bool_or(station = 'A652')"), "0.015"),
    Kind(
        "set",
        "CONTAINS(x = a, y = b)",
        asked("CONTAINS(temp_c = 25, rh = 60)"),
        true("bool_or(temp_c = 25 and rh = 60)"),
        "0.015",
    ),
    Kind(
        "set",
        "FREQUENCY(x = a, y = b)",
        asked("FREQUENCY(temp_c = 25, rh = 60)"),
        true("count(*) filter (where temp_c = 25 and rh = 60)"),
        "0.036",
    ),
    Kind("set", "CARDINALITY(entity)", asked("CARDINALITY(station)"), true("count(distinct station)"), "0.154"),
    Kind("set", "CARDINALITY(CELL(3))", asked("CARDINALITY(CELL(3))"), true("count(distinct cell)"), "0.154"),
    Kind("inferential", "PREDICT(y, x = v)", asked("PREDICT(temp_c, rh = 60)"), true(LINE)),
    Kind("inferential", "FORECAST(x, '7d')", asked("FORECAST(temp_c, '7d')")),
    Kind(
        "synthetic",
        "1,000 rows",
        synthetic,
        lambda scope: f"select * from (select * from rows where {scope.true}) using sample 1000 rows",
    ),
    *(part(km) for km in (5, 25, 100, 800)),
    Kind(
        "groups",
        "GROUP BY CELL(3)",
        asked("CELL(3), MEAN(temp_c)", "GROUP BY CELL(3)"),
        true("cell, avg(temp_c)", more="group by cell"),
    ),
    Kind(
        "picture",
        "contours by cell",
        contours,
        lambda scope: f"select cell, avg(rh), corr(rh, temp_c) from rows where {scope.true_during} group by cell",
    ),
    Kind(
        "picture",
        "climate of a place",
        climate,
        lambda scope: f"{MONTHS} where fine = '{scope.cell}' group by m",
        "1.5",
    ),
)


@dataclass(frozen=True)
class Ground:
    """Where and when there are rows."""

    places: np.ndarray
    first: np.datetime64
    days: int

    @classmethod
    def of(cls, rows: duckdb.DuckDBPyConnection) -> Ground:
        places = np.array(rows.execute("select distinct lat, lon from rows order by lat, lon").fetchall())
        first, last = rows.execute("select min(ts)::date, max(ts)::date from rows").fetchall()[0]
        return cls(places, np.datetime64(first), (last - first).days)


def scopes_of(ground: Ground, seed: int) -> Iterator[Scope]:
    random = np.random.default_rng(seed)
    while True:
        lat, lon = (float(each) for each in ground.places[random.integers(len(ground.places))])
        high, wide = (float(each) for each in random.uniform(1, 6, 2))
        box = tuple(round(each, 4) for each in (lat - high, lon - wide, lat + high, lon + wide))
        days = int(random.integers(SHORTEST, LONGEST + 1))
        begin = ground.first + np.timedelta64(int(random.integers(0, ground.days - LONGEST)), "D")
        cell = str(geohash.to_text(geohash.encode(np.array([lat]), np.array([lon]), 20), 4)[0])
        yield Scope(lat, lon, box, str(begin), str(begin + np.timedelta64(days, "D")), cell)  # type: ignore[arg-type]


def rows_in_memory() -> duckdb.DuckDBPyConnection:
    """The rows, with the cells that groups and pictures name."""
    found = duckdb.connect()
    found.execute("set threads=2; set TimeZone='UTC'")
    names = ", ".join(f"{name}::double {name}" for name in CASE.features)
    frame = found.sql(
        f"select station, lat::double lat, lon::double lon, ts, {names} from '{CASE.path}'"
    ).to_arrow_table()
    lat, lon = (frame[name].to_numpy() for name in ("lat", "lon"))
    for name, length in (("cell", 3), ("fine", 4)):
        frame = frame.append_column(name, [geohash.to_text(geohash.encode(lat, lon, 5 * length), length)])
    found.register("frame", frame)
    found.execute("create table rows as select * from frame")
    return found


def milliseconds(run: Callable[[], float | None]) -> float:
    """How long a run takes, or what it says itself."""
    began = time.perf_counter()
    said = run()
    return (time.perf_counter() - began) * 1e3 if said is None else said


def percentiles(taken: list[float]) -> dict[str, float]:
    return {"p50": round(float(np.median(taken)), 3), "p99": round(float(np.percentile(taken, 99)), 3)}


def measured(kind: Kind, sketch: Any, ground: Ground, rounds: int) -> dict[str, Any]:
    """Times of one type, or why there are none."""
    source, taken, refused = scopes_of(ground, SEED), [], ""
    for turn in range(rounds + WARM):
        scope = next(source)
        try:
            taken.append(milliseconds(lambda: kind.ours(sketch, scope)))  # noqa: B023 - run at once
        except SynopsisError as problem:
            refused = str(problem).split(";")[0]
            if not taken and turn >= WARM:
                break
    refusals = rounds + WARM - len(taken)
    if len(taken) <= WARM:
        return {"words": refused}
    return percentiles(taken[WARM:]) | ({"refused": refusals, "words": refused} if refusals else {})


def duck(kind: Kind, rows: duckdb.DuckDBPyConnection, ground: Ground, rounds: int) -> dict[str, float] | None:
    if kind.true is None:
        return None
    source, taken = scopes_of(ground, SEED), []
    for _ in range(rounds + WARM):
        text = kind.true(next(source))
        taken.append(milliseconds(lambda: _nothing(rows.sql(text).to_arrow_table())))  # noqa: B023 - run at once
    return percentiles(taken[WARM:])


def _nothing(_: object) -> None:
    return None


# --- the page ---------------------------------------------------------------------------------------------------------

PAGE_TEXT = """\
# Speed

How long each type of question takes in one process, warm, in milliseconds (medians and 99th percentiles).
`benches/table2.py` measures it and writes this page from `benches/results/table2.json`; no figure is written by hand.

The data are brazil_weather_2025: 1,203,130 rows of 485 stations with eight features. Each question is about a box
around a random station and 20 to 60 days, {rounds} of each type, none asked before: the text is read and planned within
the time. DuckDB answers the same from all rows, in memory, with two threads, and answers exactly; `-` stands where SQL
has no words for it. The times of the paper are those of its Table 2, on other machines, data and languages: lookups of
one vertex in memory, without text, plan or intervals. Ours and DuckDB's were measured on {cores} cores with a load of
{load:.0f}: so many processes wanted to run, ours among them, and all had to wait.

{table}
{notes}
What each is: answers to *statistical* and *density* questions are estimates with certain intervals and intervals at
95%. DENSITY is a curve of 201 points, a histogram in DuckDB. PREDICT is a line by least squares. FORECAST first asks
for daily and monthly means of the scope, then goes on with them. *Synthetic* rows are drawn from paths, in DuckDB from
the rows. *Relational* parts are sketches of their own, in DuckDB the rows themselves. *Pictures* are the data that
`syn.plot.map` and `syn.plot.climate` draw, without the drawing.

`benches/latency.py` has eight statistics in one question beside DuckDB and Spark, `benches/retrieval.py` parts of equal
size near and wide.
"""


def page_of(figures: dict[str, Any]) -> str:
    shares = [key for key in figures if key in ("0.1", "0.01")]
    titles = [f"{TITLES[float(share)]}, p50" for share in shares], [f"{TITLES[float(share)]}, p99" for share in shares]
    head = ["type", "question", *(each for pair in zip(*titles, strict=True) for each in pair)]
    head += ["DuckDB, p50", "DuckDB, p99", "paper"]
    lines, notes = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)], []
    for kind in KINDS:
        cells = [kind.type, kind.name]
        for share in shares:
            found = figures[share][kind.name]
            cells += [_shown(found.get(name)) for name in ("p50", "p99")]
            if "refused" in found:
                times = f"{found['refused']} questions at {TITLES[float(share)]} were refused"
                notes.append(f"- {kind.name}: {times}, the last because {found['words']}")
        if all("p50" not in figures[share][kind.name] for share in shares):
            notes.append(f"- {kind.name}: {figures[shares[0]][kind.name]['words'].rpartition(': ')[2]}")
        rival = figures["duckdb"].get(kind.name) or {}
        cells += [_shown(rival.get(name)) for name in ("p50", "p99")] + [kind.paper or "-"]
        lines.append("| " + " | ".join(cells) + " |")
    told = "\n" + "\n".join(notes) + "\n" if notes else ""
    facts = {"rounds": figures["rounds"], "cores": figures["machine"]["cores"], "load": figures["load"]}
    return PAGE_TEXT.format(**facts, table="\n".join(lines), notes=told)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--shares", default=",".join(map(str, SHARES)))
    parser.add_argument("--keep", type=Path, help="where sketches are built, and found the next time")
    parser.add_argument("--page", action="store_true", help="write the page from the results there are")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page_of(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
        return 0
    if not CONTEST.exists() or not DATA.is_dir():
        print("the folder shared does not lie beside this repository: nothing to measure")
        return 0
    from synopsis.spark import session

    rows = rows_in_memory()
    ground = Ground.of(rows)
    figures: dict[str, Any] = {"rounds": options.rounds, "machine": machine_facts()}
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as temporary:
        folder, sketches = options.keep or Path(temporary), {}
        try:
            for share in options.shares.split(","):
                target = folder / f"{CASE.file}-{share}"
                if not target.exists():
                    budget = truth_of(referee(), CASE, float(share)).budget
                    syn.build(CASE.path, replace(spec_of(CASE, budget), entity="station"), target, progress=False)
                sketches[share] = syn.open(target)
        finally:
            session.stop()
        for share, sketch in sketches.items():
            figures[share] = {kind.name: measured(kind, sketch, ground, options.rounds) for kind in KINDS}
    loads.append(os.getloadavg()[0])
    figures["duckdb"] = {kind.name: duck(kind, rows, ground, options.rounds) for kind in KINDS}
    loads.append(os.getloadavg()[0])
    figures["load"] = round(float(np.mean(loads)), 1)
    table = []
    for kind in KINDS:
        each = [figures[share][kind.name] for share in sketches] + [figures["duckdb"][kind.name] or {}]
        times = [_shown(found.get(name)) for found in each for name in ("p50", "p99")]
        table.append([f"{kind.type}: {kind.name}", *times, kind.paper or "-"])
    heads = [f"{name} {each}" for name in [*sketches, "DuckDB"] for each in ("p50", "p99")]
    print_table(["milliseconds", *heads, "paper"], table)
    write_results("table2", figures)
    for share in sketches:
        for kind in KINDS:
            if words := figures[share][kind.name].get("words"):
                print(f"{kind.name} at {share}: {words}")
    PAGE.write_text(page_of(figures), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
