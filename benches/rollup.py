"""Is the sketch better than a rollup of the same bytes? (what one would keep without us)

    python benches/rollup.py [--questions 200] [--only brazil] [--seeds 1,2,3]

The rival groups the rows by cell and span in DuckDB, with the rows of each group, and for each feature how many values
there are, their mean and their deviation (sums and sums of squares in another dress, that float32 can hold), and writes
that as sorted zstd Parquet. For each geohash length the shortest span that fits a tenth of the rows' size is taken, and
of these rollups the one that answers best. It answers COUNT, MEAN and STD without predicates: scopes that are unions of
its groups from them, others prorated by area and time. Questions, truth and scales of errors are those of accuracy.py,
as many of each of the referee's seeds: one seed has some fifty answers in a class, of which two or three about rain
decide.
Classes are functions x whether the scope is a cell with whole days or another. Bar: our mean error is at most the
rollup's in every class (errors below 1e-4 count as none). Writes benches/results/rollup.json.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

import synopsis as syn
from _shared import DATA, bar, print_table, write_results
from accuracy import (
    CASES,
    CONTEST,
    FLOOR,
    LEAST,
    Case,
    Question,
    error_of,
    referee,
    spec_of,
    true_answer,
    truth_of,
)
from synopsis.grid import geohash

SHARE, QUESTIONS, SEEDS = 0.1, 200, (1, 2, 3)
NAMES = ("brazil", "beijing", "us_weather", "spain", "us_air")  #: the stations
LENGTHS = (4, 3, 2, 1)  #: of geohashes
SPANS = (1, 2, 3, 4, 5, 6, 7, 10, 14, 21, 28, 42, 56, 84, 112, 168, 224, 336, 448, 896, 10_000)  #: days
FUNCTIONS = ("COUNT", "MEAN", "STD")
WHOLE, OTHER = "cell, whole days", "other scopes"
DAY_S = 86_400.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rollup:
    """Groups of rows by cell and span of time."""

    length: int  #: of the geohash
    days: int  #: of a span
    size_bytes: int
    south: Floats
    west: Floats
    north: Floats
    east: Floats
    begin_s: Floats
    rows: Floats
    values: dict[str, tuple[Floats, Floats, Floats]]  #: how many, mean, deviation

    @property
    def grain(self) -> str:
        return f"geohash {self.length} x {self.days} days"

    def answer(self, scope: Scope, feature: str) -> dict[str, float]:
        """COUNT, MEAN and STD of a scope, groups counted by the share of them that lies in it."""
        weight = scope.shares(self)
        count, mean, deviation = self.values[feature]
        known = np.where(count > 0, weight * count, 0.0)
        total = known.sum()
        if total == 0.0:
            return {"COUNT": float(weight @ self.rows), "MEAN": np.nan, "STD": np.nan}
        middle = float(known @ np.nan_to_num(mean)) / total
        spread = known @ (np.nan_to_num(deviation) ** 2 + (np.nan_to_num(mean) - middle) ** 2)
        return {"COUNT": float(weight @ self.rows), "MEAN": middle, "STD": float(np.sqrt(spread / total))}


@dataclass(frozen=True)
class Scope:
    """An area in degrees, as a shape or a box, and a range of time."""

    box: tuple[float, float, float, float] | None  #: south, west, north, east
    shape: Any | None
    begin_s: float
    end_s: float

    @classmethod
    def of(cls, contest: ModuleType, asked: str) -> Scope:
        """The scope of a question of the referee."""
        times = [
            float(np.datetime64(text, "s").astype(np.int64)) for text in re.findall(r"time [<>]=? '([^']+)'", asked)
        ]
        begin, end = times or (-np.inf, np.inf)
        if cell := re.search(r"location LIKE '(\w+)%'", asked):
            south, west, north, east = (float(each[0]) for each in geohash.decode(*_parsed(cell[1])))
            return cls((south, west, north, east), None, begin, end)
        if box := re.search(r"BOX\(([^)]*)\)", asked):
            south, west, north, east = map(float, box[1].split(","))
            return cls((south, west, north, east), None, begin, end)
        polygon = re.search(r"WITHIN\('([^']*)'\)", asked)
        assert polygon is not None
        return cls(None, shapely.from_wkt(polygon[1]), begin, end)

    def shares(self, rollup: Rollup) -> Floats:
        """The share of each group's area and span that lies in the scope."""
        end_s = rollup.begin_s + rollup.days * DAY_S
        left, right = np.maximum(rollup.begin_s, self.begin_s), np.minimum(end_s, self.end_s)
        return self._of_area(rollup) * np.clip((right - left) / (end_s - rollup.begin_s), 0.0, 1.0)

    def _of_area(self, rollup: Rollup) -> Floats:
        if self.box is None:
            corners, place = np.unique(
                np.stack([rollup.west, rollup.south, rollup.east, rollup.north]), axis=1, return_inverse=True
            )
            cells = shapely.box(*corners)
            shared = shapely.area(shapely.intersection(cells, self.shape)) / shapely.area(cells)
            return np.asarray(shared[place.ravel()])
        south, west, north, east = self.box
        high = np.clip(np.minimum(rollup.north, north) - np.maximum(rollup.south, south), 0.0, None)
        wide = np.clip(np.minimum(rollup.east, east) - np.maximum(rollup.west, west), 0.0, None)
        return np.asarray(high / (rollup.north - rollup.south) * wide / (rollup.east - rollup.west))


def _parsed(text: str) -> tuple[NDArray[np.int64], int]:
    cell, bits = geohash.parse(text)
    return np.array([cell]), bits


# --- the rival --------------------------------------------------------------------------------------------------------


def prepare(truth: Any) -> None:
    """Give the rows in DuckDB the cell and the day that they lie in."""
    places = truth.con.execute("select distinct lat, lon from rows").fetchnumpy()
    cells = geohash.encode(np.asarray(places["lat"]), np.asarray(places["lon"]), 5 * LENGTHS[0])
    truth.con.register("known", pa.table({"lat": places["lat"], "lon": places["lon"], "cell": cells}))
    truth.con.execute(
        "create table placed as select rows.*, cell, floor(epoch(ts) / 86400)::bigint as day "
        "from rows join known using (lat, lon)"
    )


def rolled(truth: Any, length: int, days: int) -> Rollup:
    """Group the rows, and weigh what comes of it."""
    columns = ", ".join(
        f'count({name})::integer "n_{name}", avg({name})::float "mean_{name}", stddev_pop({name})::float "std_{name}"'
        for name in truth.features
    )
    table = truth.con.sql(
        f"select (cell >> {5 * (LENGTHS[0] - length)})::integer as cell, (day // {days})::integer as span, "
        f"count(*)::integer as rows, {columns} from placed group by all order by cell, span"
    ).to_arrow_table()
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", compression_level=9)
    south, west, north, east = geohash.decode(table["cell"].to_numpy().astype(np.int64), 5 * length)

    def numbers(name: str) -> Floats:
        return np.asarray(table[name].to_numpy(), np.float64)

    values = {name: (numbers(f"n_{name}"), numbers(f"mean_{name}"), numbers(f"std_{name}")) for name in truth.features}
    begin_s = numbers("span") * days * DAY_S
    return Rollup(length, days, buffer.tell(), south, west, north, east, begin_s, numbers("rows"), values)


def fitting(truth: Any) -> Iterator[Rollup]:
    """For each geohash length, the rollup with the shortest span that fits the budget."""
    for length in LENGTHS:
        for days in SPANS:
            made = rolled(truth, length, days)
            if made.size_bytes <= truth.budget:
                yield made
                break


# --- comparing --------------------------------------------------------------------------------------------------------


def questions_of(contest: ModuleType, truth: Any, seed: int) -> Iterator[tuple[Question, str]]:
    """The referee's scopes without predicates, and the class of each."""
    source, random, number = contest.Questions(truth, seed), np.random.default_rng(seed), 0
    while True:
        asked, true, size, kind = source.scope()
        number += 1
        feature = str(random.choice(truth.features))
        clocks = re.findall(r"\d\d:\d\d:\d\d", asked)
        whole = kind == "cell" and all(clock == "00:00:00" for clock in clocks)
        yield Question(number, asked, true, size, "", 0, feature, feature, 0.5), WHOLE if whole else OTHER


def that_enter(
    contest: ModuleType, truth: Any, seed: int, questions: int
) -> Iterator[tuple[Question, str, dict[str, float]]]:
    """So many questions that have rows enough to be compared, their classes and what is true."""
    found = ((question, kind, true_answer(truth, question)) for question, kind in questions_of(contest, truth, seed))
    return islice((each for each in found if each[2]["COUNT"] >= LEAST and each[2]["values"] >= LEAST), questions)


def measure(contest: ModuleType, case: Case, questions: int, seeds: list[int], folder: Path) -> dict[str, Any]:
    """Build both, ask both."""
    truth = truth_of(contest, case, SHARE)
    prepare(truth)
    rivals = list(fitting(truth))
    report = syn.build(case.path, spec_of(case, truth.budget), folder / case.file, progress=False)
    sketch = syn.open(folder / case.file)
    errors: dict[tuple[str, str], list[list[float]]] = {}
    for question, kind, want in chain.from_iterable(that_enter(contest, truth, seed, questions) for seed in seeds):
        scope = Scope.of(contest, question.asked)
        answers = [rival.answer(scope, question.first) for rival in rivals]
        names = {name: question.names[name] for name in FUNCTIONS}
        answer = sketch.query(f"SELECT {', '.join(names.values())} WHERE {question.asked}")
        for function, name in names.items():
            given = [answer[name].estimate, *(each[function] for each in answers)]
            off = [error_of(truth, question, function, value, want) for value in given]
            errors.setdefault((function, kind), []).append(off)
    truth.con.close()
    means = {each: np.mean(found, axis=0) for each, found in errors.items()}
    best = int(np.argmin(np.mean(list(means.values()), axis=0)[1:]))
    classes = {
        f"{function}, {kind}": {
            "answers": len(errors[function, kind]),
            "sketch": float(f"{mean[0]:.4g}"),
            "rollup": float(f"{mean[1 + best]:.4g}"),
            "met": bool(max(mean[0], FLOOR) <= max(mean[1 + best], FLOOR)),
        }
        for (function, kind), mean in sorted(means.items())
    }
    return {
        "budget": truth.budget,
        "sketch_bytes": int(report.sketch_bytes),
        "rollup_bytes": rivals[best].size_bytes,
        "rollup": rivals[best].grain,
        "tried": {rival.grain: rival.size_bytes for rival in rivals},
        "questions": questions * len(seeds),
        "classes": classes,
        "met": all(row["met"] for row in classes.values()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    options = parser.parse_args()
    if not CONTEST.exists() or not DATA.is_dir():
        print("the folder shared does not lie beside this repository: nothing to measure")
        return 0
    from synopsis.spark import session

    contest, figures, seeds = referee(), {}, [int(seed) for seed in options.seeds.split(",")]
    try:
        for name in [options.only] if options.only else NAMES:
            with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
                found = figures[name] = measure(contest, CASES[name], options.questions, seeds, Path(folder))
            sizes = f"sketch {found['sketch_bytes']:,} bytes, rollup {found['rollup_bytes']:,}"
            print(f"\n{name}: {sizes} ({found['rollup']})")
            print_table(
                ["class", "answers", "sketch", "rollup", ""],
                [
                    [each, row["answers"], row["sketch"], row["rollup"], "" if row["met"] else "worse"]
                    for each, row in found["classes"].items()
                ],
            )
            sys.stdout.flush()
    finally:
        session.stop()
    worse = [
        f"{name}: {each}" for name, found in figures.items() for each, row in found["classes"].items() if not row["met"]
    ]
    print("\n" + bar(not worse, "; ".join(worse) or "at most the rollup's error in every class"))
    write_results("rollup", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
