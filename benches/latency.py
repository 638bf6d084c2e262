"""How long does an answer take, beside DuckDB and Spark on the rows, and how much memory?

    python benches/latency.py [--questions 200] [--only memory|latency|first]

A sketch of brazil_weather_2025 at a tenth of the rows' size answers the random questions of ../shared/tools/contest.py
(eight statistics each) in this process, warm. Every question goes in turn to: the sketch, which has never seen it
(others made it warm); the sketch again (its plan is cached); DuckDB, two threads, with the rows in memory; DuckDB on
the Parquet file; and, the first 20 that are no polygons, Spark SQL on the cached frame.
Ratios are rivals' medians over ours, of the same questions: with a cached plan, and of questions that are new. Bars: 3,
20 and 100 times with a cached plan; rivals read every question anew, so new ones are told beside it.

A fresh process then opens the sketch and asks 100 questions. Bar: it grows by at most 3 x memory + 50 MB over what it
took after its imports. For comparison, 100 questions about all places and times follow.

Another fresh process, on a machine that has no machine code yet, asks a simple question, and then the first of the
contest: how much of the processor either takes, nearly all of it to make machine code.
Writes benches/results/latency.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

import synopsis as syn
from _shared import DATA, bar, print_table, write_results
from accuracy import CASES, CONTEST, Question, questions_of, referee, spec_of, truth_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASE, SHARE, QUESTIONS, WARMING, SPARK_QUESTIONS, MEMORY_QUESTIONS = CASES["brazil"], 0.1, 200, 40, 20, 100
CACHED, FRESH, IN_MEMORY, PARQUET, SPARK = (
    "sketch, plan cached",
    "sketch, plan not cached",
    "DuckDB in memory",
    "DuckDB on Parquet",
    "Spark SQL, cached",
)
WANTED = {IN_MEMORY: 3.0, PARQUET: 20.0, SPARK: 100.0}
SLACK_BYTES = 50_000_000


def spark_sql(question: Question) -> str:
    """The question in Spark's words."""
    x, y = question.first, question.second
    return (
        f"select count(*), avg({x}), stddev_pop({x}), corr({x}, {y}), percentile({x}, {question.share}), sum({x}), "
        f"min({x}), max({x}) from rows where {question.true}"
    )


def cached_frame(session: SparkSession) -> None:
    """The rows as a table of Spark, held in memory."""
    names = ", ".join(f"cast({name} as double) {name}" for name in CASE.features)
    frame = session.read.parquet(str(CASE.path)).selectExpr(
        "cast(lat as double) lat", "cast(lon as double) lon", "ts", *names.split(", ")
    )
    frame.cache().count()
    frame.createOrReplaceTempView("rows")


def milliseconds(run: Callable[[], Any]) -> float:
    """How long a run takes."""
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1e3


def measure(sketch: Any, truth: Any, warming: list[Question], questions: list[Question]) -> dict[str, list[float]]:
    """Milliseconds of every contestant, question by question; others come first, that all be warm."""
    from synopsis.spark import session

    parquet = duckdb.connect()
    parquet.execute("set threads=2; set TimeZone='UTC'")
    names = ", ".join(f"{name}::double {name}" for name in CASE.features)
    parquet.execute(f"create view rows as select lat::double lat, lon::double lon, ts, {names} from '{CASE.path}'")
    spark = session.session()
    cached_frame(spark)
    for question in warming:
        for connection in (truth.con, parquet):
            connection.execute(f"{question.select} from rows where {question.true}").fetchall()
        sketch.query(question.text)
    plain = [question for question in questions if "WITHIN" not in question.asked][:SPARK_QUESTIONS]
    for question in plain[:5]:
        spark.sql(spark_sql(question)).collect()
    taken: dict[str, list[float]] = {name: [] for name in (CACHED, FRESH, IN_MEMORY, PARQUET, SPARK)}
    asked_of_spark = {question.number for question in plain}
    for position, question in enumerate(questions):
        sql = f"{question.select} from rows where {question.true}"
        taken[FRESH].append(milliseconds(lambda: sketch.query(question.text)))  # noqa: B023 - run at once
        taken[CACHED].append(milliseconds(lambda: sketch.query(question.text)))  # noqa: B023 - run at once
        taken[IN_MEMORY].append(milliseconds(lambda: truth.con.execute(sql).fetchall()))  # noqa: B023 - run at once
        taken[PARQUET].append(milliseconds(lambda: parquet.execute(sql).fetchall()))  # noqa: B023 - run at once
        in_spark = question.number in asked_of_spark
        taken[SPARK].append(
            milliseconds(lambda: spark.sql(spark_sql(question)).collect()) if in_spark else np.nan  # noqa: B023 - run at once
        )
        if position % 50 == 49:
            print(f"{position + 1} of {len(questions)} questions", flush=True)
    parquet.close()
    return taken


def compared(taken: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Medians, 95th percentiles, and how many times ours the median is, of the questions that a contestant had."""
    ours, fresh = np.array(taken[CACHED]), np.array(taken[FRESH])
    found = {}
    for name, each in taken.items():
        known = np.isfinite(each)
        times = np.array(each)[known]
        found[name] = {
            "questions": int(known.sum()),
            "p50": round(float(np.median(times)), 3),
            "p95": round(float(np.quantile(times, 0.95)), 3),
            "times_ours": round(float(np.median(times) / np.median(ours[known])), 2),
            "times_ours_new": round(float(np.median(times) / np.median(fresh[known])), 2),
        }
    return found


def memory_of(folder: str, questions: str) -> None:
    """In a fresh process: open, ask, and print how the resident memory grew; libraries are not ours to count."""
    import deltalake  # noqa: F401 - what opening and asking would load
    import numba
    import psutil
    import pyarrow.dataset  # noqa: F401
    import shapely  # noqa: F401
    import sqlglot  # noqa: F401

    from synopsis import database  # noqa: F401

    numba.njit(lambda number: number)(1)  # it loads most of itself with the first function
    process = psutil.Process()
    before = process.memory_info().rss
    sketch = syn.open(folder)
    opened = process.memory_info().rss
    for text in json.loads(Path(questions).read_text(encoding="utf-8")):
        sketch.query(text)
    asked = process.memory_info().rss
    first = sketch.features[0]
    for turn in range(MEMORY_QUESTIONS):
        sketch.query(f"SELECT COUNT(*), MEAN({first}) WHERE {first} > {turn / 4}")
    everywhere = process.memory_info().rss
    grown = {"opened": opened - before, "asked": asked - before, "asked_everywhere": everywhere - before}
    print(json.dumps({"before": before} | grown))


def first_of(folder: str, questions: str) -> None:
    """In a fresh process without machine code: print the processor's seconds of two questions."""
    import numba

    numba.njit(lambda number: number)(1)  # it loads most of itself with the first function
    sketch = syn.open(folder)
    simple = f"SELECT COUNT(*), MEAN({sketch.features[0]}) WHERE {sketch.features[0]} > 20"
    taken = []
    for text in (simple, json.loads(Path(questions).read_text(encoding="utf-8"))[0]):
        began = time.process_time()
        sketch.query(text)
        taken.append(round(time.process_time() - began, 2))
    print(json.dumps({"simple": taken[0], "contest_after_it": taken[1]}))


def in_a_fresh_process(task: str, folder: Path, questions: Path, **environment: str) -> Any:
    """What a task of this file prints."""
    command = [sys.executable, __file__, task, str(folder), str(questions)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | environment)
    return json.loads(child.stdout.splitlines()[-1])


def main() -> int:
    if sys.argv[1:2] == ["--first-of"]:
        first_of(*sys.argv[2:])
        return 0
    if sys.argv[1:2] == ["--memory-of"]:
        memory_of(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--only", choices=("latency", "memory", "first"))
    options = parser.parse_args()
    if not CONTEST.exists() or not DATA.is_dir():
        print("the folder shared does not lie beside this repository: nothing to measure")
        return 0
    from synopsis.spark import session

    contest = referee()
    truth = truth_of(contest, CASE, SHARE)
    questions = list(islice(questions_of(contest, truth), max(options.questions, MEMORY_QUESTIONS) + WARMING))
    warming, questions = questions[-WARMING:], questions[:-WARMING]
    figures: dict[str, Any] = {"budget": truth.budget}
    try:
        with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
            report = syn.build(CASE.path, spec_of(CASE, truth.budget), Path(folder, "sketch"), progress=False)
            figures["sketch_bytes"] = int(report.sketch_bytes)
            if options.only in (None, "latency"):
                sketch = syn.open(Path(folder, "sketch"))
                figures["milliseconds"] = compared(measure(sketch, truth, warming, questions[: options.questions]))
            own, texts = Path(folder, "sketch"), Path(folder, "questions.json")
            texts.write_text(json.dumps([each.text for each in questions[:MEMORY_QUESTIONS]]), encoding="utf-8")
            if options.only in (None, "memory"):
                for text in (
                    questions[0].text,
                    f"SELECT COUNT(*), MEAN({CASE.features[0]}) WHERE {CASE.features[0]} > 0",
                ):
                    syn.open(own).query(text)  # machine code is made once, and kept
                allowed = 3 * truth.budget + SLACK_BYTES
                figures["resident_bytes"] = in_a_fresh_process("--memory-of", own, texts) | {"allowed": allowed}
            if options.only in (None, "first"):
                kept = str(Path(folder, "kept"))
                figures["first_s"] = in_a_fresh_process("--first-of", own, texts, NUMBA_CACHE_DIR=kept)
    finally:
        session.stop()
    show(figures)
    write_results("latency", figures)
    return 0


def show(figures: dict[str, Any]) -> None:
    """Tables and bars."""
    if found := figures.get("milliseconds"):
        rows = [[name, *row.values(), WANTED.get(name, "")] for name, row in found.items()]
        print_table(["contestant", "questions", "p50, ms", "p95, ms", "times ours", "times ours, new", "wanted"], rows)
        for name, wanted in WANTED.items():
            times = found[name]["times_ours"]
            print(bar(times >= wanted, f"{name} takes {times:.1f} times ours; wanted {wanted:g}"))
    if first := figures.get("first_s"):
        print(f"the first question takes {first['simple']:.1f} s of the processor")
        print(f"one of the contest after it takes {first['contest_after_it']:.1f} s more")
    if grown := figures.get("resident_bytes"):
        words = (
            f"{grown['asked'] / 1e6:.1f} MB after {MEMORY_QUESTIONS} questions, {grown['opened'] / 1e6:.1f} of them "
        )
        allowed = f"after opening; allowed {grown['allowed'] / 1e6:.1f} MB"
        print(bar(grown["asked"] <= grown["allowed"], words + allowed))
        print(
            f"after {MEMORY_QUESTIONS} more, each about all places and times: {grown['asked_everywhere'] / 1e6:.1f} MB"
        )


if __name__ == "__main__":
    sys.exit(main())
