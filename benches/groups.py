"""How long do many groups take, beside DuckDB on the rows?

    python benches/groups.py [--turns 7] [--sketch FOLDER]

A sketch of brazil_weather_2025 at a tenth of the rows' size as zstd Parquet answers questions with tens to thousands of
groups: by cells, by days, by both, by bins of a feature, with and without a condition. DuckDB, two threads, has the
rows in memory, their geohashes and days as columns of their own. Both take turns; medians of wall time, and of the
processor's time of this process for ours, which other programs on the machine disturb less.

No bar. Writes benches/results/groups.json.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import synopsis as syn
from _shared import DATA, print_table, write_results
from accuracy import CASES, CONTEST, referee, spec_of, truth_of
from synopsis.grid import geohash

CASE, SHARE, TURNS = CASES["brazil"], 0.1, 7
STATISTICS = {
    "COUNT, MEAN": ("COUNT(*), MEAN(temp_c)", "count(*), avg(temp_c)"),
    "eight": (
        "COUNT(*), MEAN(temp_c), STD(temp_c), CORRELATION(temp_c, rh), QUANTILE(temp_c, 0.5), SUM(temp_c), "
        "MIN(temp_c), MAX(temp_c)",
        "count(*), avg(temp_c), stddev_pop(temp_c), corr(temp_c, rh), quantile_cont(temp_c, 0.5), sum(temp_c), "
        "min(temp_c), max(temp_c)",
    ),
}
KEYS = {
    "CELL(3)": ("CELL(3)", "cell >> 45"),
    "CELL(4)": ("CELL(4)", "cell >> 40"),
    "BUCKET('1d')": ("BUCKET('1d')", "day"),
    "CELL(2), BUCKET('1d')": ("CELL(2), BUCKET('1d')", "cell >> 50, day"),
    "CELL(4), BUCKET('1mo')": ("CELL(4), BUCKET('1mo')", "cell >> 40, date_trunc('month', day)"),
    "BIN(temp_c, 1)": ("BIN(temp_c, 1)", "floor(temp_c)"),
    "BIN(temp_c, 0.05)": ("BIN(temp_c, 0.05)", "floor(temp_c / 0.05)"),
}
CONDITIONS = {"": "", "rh > 70": "WHERE rh > 70"}


@dataclass(frozen=True)
class Asked:
    """A question in both languages."""

    keys: str
    statistics: str
    condition: str

    @property
    def sql(self) -> str:
        return f"SELECT {STATISTICS[self.statistics][0]} {CONDITIONS[self.condition]} GROUP BY {KEYS[self.keys][0]}"

    @property
    def duck(self) -> str:
        keys = KEYS[self.keys][1]
        return f"select {keys}, {STATISTICS[self.statistics][1]} from rows {CONDITIONS[self.condition]} group by {keys}"


def rows() -> duckdb.DuckDBPyConnection:
    """The rows in memory, with cell and day."""
    connection = duckdb.connect()
    connection.execute("set threads=2; set TimeZone='UTC'")
    names = ", ".join(f"{name}::double {name}" for name in CASE.features)
    table = connection.sql(f"select lat::double lat, lon::double lon, ts, {names} from '{CASE.path}'").to_arrow_table()
    latitude, longitude = (table[name].to_numpy() for name in ("lat", "lon"))
    table = table.append_column("cell", [geohash.encode(latitude, longitude, geohash.MAXIMUM_BITS)])
    connection.register("given", table)
    connection.execute("create table rows as select *, date_trunc('day', ts) as day from given")
    connection.unregister("given")
    return connection


def milliseconds(run: Callable[[], Any]) -> tuple[float, float]:
    """How long a run takes, and how much of the processor's time."""
    began, worked = time.perf_counter(), time.process_time()
    run()
    return (time.perf_counter() - began) * 1e3, (time.process_time() - worked) * 1e3


def measure(sketch: syn.Database, duck: duckdb.DuckDBPyConnection, turns: int) -> list[dict[str, Any]]:
    """Medians of all questions."""
    found = []
    asked = [Asked(keys, statistics, given) for statistics in STATISTICS for given in CONDITIONS for keys in KEYS]
    for each in asked:
        groups = len(sketch.query(each.sql))  # warm
        duck.execute(each.duck).fetchall()
        ours, theirs = [], []
        for _ in range(turns):
            ours.append(milliseconds(lambda: sketch.query(each.sql)))  # noqa: B023 - run at once
            theirs.append(milliseconds(lambda: duck.execute(each.duck).fetchall())[0])  # noqa: B023 - run at once
        wall, processor = (float(np.median(part)) for part in zip(*ours, strict=True))
        found.append(
            {"group by": each.keys, "statistics": each.statistics, "where": each.condition, "groups": groups}
            | {"ms": round(wall, 2), "cpu_ms": round(processor, 2), "duckdb_ms": round(float(np.median(theirs)), 2)}
        )
        print_table(list(found[-1]), [list(found[-1].values())])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--sketch", type=Path, help="one that was built before")
    options = parser.parse_args()
    if not CONTEST.exists() or not DATA.is_dir():
        print("the folder shared does not lie beside this repository: nothing to measure")
        return 0
    from synopsis.spark import session

    try:
        with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
            place = options.sketch or Path(folder, "sketch")
            if options.sketch is None:
                budget = truth_of(referee(), CASE, SHARE).budget
                syn.build(CASE.path, spec_of(CASE, budget), place, progress=False)
            figures = measure(syn.open(place), rows(), options.turns)
    finally:
        session.stop()
    write_results("groups", {"questions": figures})
    print_table(list(figures[0]), [list(each.values()) for each in figures])
    return 0


if __name__ == "__main__":
    sys.exit(main())
