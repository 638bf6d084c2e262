"""Where does the time of an answer go, and does it stay flat while rows grow? (Synopsis, Table 2, in part)

    python benches/stages.py [--rows 1200000] [--questions 120]

600 stations report eight features every hour (build_speed.py generates them), as many rows and ten times as many, each
built into a sketch of 2 MB. Random questions (circles of 5, 25, 100 and 800 km around a station, some with a span of
time, some with a condition) are asked of both in turns, in this process and warm. Stages are timed on the way: reading
a question and binding it when its plan is not cached and when it is, evaluating, finishing.
Bars: with a cached plan, reading and planning take less than a tenth; ten times the rows take at most 1.5 times as
long. Writes benches/results/stages.json.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import synopsis as syn
from _shared import bar, print_table, write_results
from build_speed import FEATURES, generate
from synopsis.query import binding, spelling
from synopsis.query.finish import finish
from synopsis.query.paths import of_summary
from synopsis.query.spelling import question_of

ROWS, QUESTIONS, MEMORY, TIMES = 1_200_000, 120, 2_000_000, 10
REACHES_KM = (5, 25, 100, 800)
STAGES = ("parse and plan", "parse and plan, cached", "evaluate", "finish")


def questions_of(sketch: syn.Database, count: int) -> list[tuple[int, str]]:
    """Random questions with the reach of each, in kilometres."""
    random = np.random.default_rng(5)
    assert sketch.summary is not None
    places = np.stack((sketch.summary.latitude, sketch.summary.longitude), axis=1)
    found = []
    for number in range(count):
        reach = REACHES_KM[number % len(REACHES_KM)]
        lat, lon = random.choice(places)
        x, y = random.choice(FEATURES, 2, replace=False)
        where = f"NEAR({lat:.4f}, {lon:.4f}, {reach})"
        if random.random() < 0.5:
            first = int(random.integers(1, 55))
            where += f" AND time >= '2023-01-{first % 28 + 1:02}' AND time < '2023-03-{first % 28 + 1:02}'"
        if random.random() < 0.5:
            where += f" AND wind_ms > {random.uniform(0.5, 3.0):.1f}"
        columns = f"COUNT(*), MEAN({x}), STD({x}), MIN({x}), MAX({x}), QUANTILE({x}, 0.9), CORRELATION({x}, {y})"
        found.append((reach, f"SELECT {columns} WHERE {where}"))
    return found


def milliseconds(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = run()
    return (time.perf_counter() - began) * 1e3, result


def staged(sketch: syn.Database, text: str) -> list[float]:
    """Milliseconds of every stage."""
    summary, layout = sketch.summary, sketch.layout
    assert summary is not None
    spelling.question_of.cache_clear()
    binding.plan.cache_clear()
    fresh, _ = milliseconds(lambda: binding.plan(question_of(text), layout, text))
    cached, plan = milliseconds(lambda: binding.plan(question_of(text), layout, text))
    evaluated, found = milliseconds(lambda: of_summary(summary, layout, plan))
    finished, _ = milliseconds(lambda: finish(plan, found, layout))
    return [fresh, cached, evaluated, finished]


def built(folder: Path, rows: int) -> syn.Database:
    files = folder / f"rows-{rows}"
    files.mkdir()
    generate(files, rows)
    spec = syn.Spec("lat", "lon", "ts", FEATURES, entity="station", memory=MEMORY)
    syn.build(files, spec, folder / f"{rows}.syn", progress=False)
    return syn.open(folder / f"{rows}.syn")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    options = parser.parse_args()
    from synopsis.spark import session

    try:
        with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
            few, many = (built(Path(folder), rows) for rows in (options.rows, TIMES * options.rows))
    finally:
        session.stop()
    asked = questions_of(few, options.questions)
    for _, text in asked[:20]:  # warm
        few.query(text), many.query(text)
    stages = np.array([staged(few, text) for _, text in asked])
    taken = np.array([[milliseconds(lambda: each.query(text))[0] for each in (few, many)] for _, text in asked])  # noqa: B023 - run at once
    medians = dict(zip(STAGES, (round(float(each), 3) for each in np.median(stages, axis=0)), strict=True))
    share = medians["parse and plan, cached"] / sum(medians[name] for name in STAGES[1:])
    flat = float(np.median(taken[:, 1]) / np.median(taken[:, 0]))
    reaches = np.array([reach for reach, _ in asked])
    by_reach = {f"{reach} km": round(float(np.median(taken[reaches == reach, 0])), 2) for reach in REACHES_KM}
    print_table(["stage", "p50, ms"], [[name, median] for name, median in medians.items()])
    print_table(["circle", "p50, ms"], [[name, median] for name, median in by_reach.items()])
    sizes = {
        f"{rows:,} rows": round(float(np.median(taken[:, at])), 2) for at, rows in enumerate((few.rows, many.rows))
    }
    print_table(["sketch of", "p50, ms"], [[name, median] for name, median in sizes.items()])
    print(bar(share < 0.1, f"a cached plan takes {share:.1%} of an answer; wanted under 10%"))
    print(bar(flat <= 1.5, f"{TIMES} times the rows take {flat:.2f} times as long; wanted at most 1.5"))
    figures = {"stages_ms": medians, "circles_ms": by_reach, "sketches_ms": sizes}
    write_results("stages", figures | {"cached_plan_share": round(share, 4), "times_as_long": round(flat, 3)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
