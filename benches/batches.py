"""Does it matter in which batches rows come?

    python benches/batches.py [--questions 300] [--only us_weather] [--ways months,days] [--seed 1]

The same rows are built into sketches of the same bytes, a tenth of the rows': at once; month by month from the first
on (years, where there are more than 48 months); all but the last 30 days at once, and these day by day; and in eight
batches of rows drawn by chance. Each sketch answers the same random questions of ../shared/tools/contest.py, and errors
are compared with those of the sketch that was built at once.

Bars: no certain interval is missed and nothing fails in any of them, the budget holds, every row is counted, and there
are as many strata as when all rows come at once, but for months, whose first could not foresee the periods. Errors are
told, not judged: what a later batch cannot know is where in its bin a row lies that came before it.
Writes benches/results/batches.json; `--only` keeps the figures of the other data sets. Says so, and ends, where
../shared/data is absent.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

import synopsis as syn
from _shared import DATA, ROOT, bar, print_table, write_results
from accuracy import CASES, Asking, Case, questions_of, referee, spec_of, truth_of
from synopsis.core.errors import SynopsisError

RESULTS = ROOT / "benches" / "results" / "batches.json"
SHARE, QUESTIONS, SEED, NAMES = 0.1, 300, 1, ("us_weather", "brazil", "beijing", "us_air", "aircraft")
AT_ONCE, MONTHS, DAYS, CHANCE = "at once", "months", "days", "chance"
WAYS, LATEST_DAYS, PARTS, MOST_MONTHS = (AT_ONCE, MONTHS, DAYS, CHANCE), 30, 8, 48


def batches_of(case: Case, way: str) -> Iterator[pd.DataFrame]:
    """The rows of a case in the batches of one way."""
    rows = pd.read_parquet(case.path, columns=["lat", "lon", case.time, *case.features])
    times = pd.to_datetime(rows[case.time])
    if way == AT_ONCE:
        key = pd.Series(0, index=rows.index)
    elif way == MONTHS:
        key = times.dt.to_period("M") if times.dt.to_period("M").nunique() <= MOST_MONTHS else times.dt.to_period("Y")
    elif way == DAYS:
        first = times.max().normalize() - pd.Timedelta(days=LATEST_DAYS - 1)
        key = times.dt.normalize().where(times >= first, pd.Timestamp(0))
    else:
        key = pd.Series(np.random.default_rng(SEED).integers(0, PARTS, len(rows)), index=rows.index)
    yield from (part for _, part in rows.groupby(key, sort=True))


def built(case: Case, way: str, memory: int, place: Path) -> dict[str, Any]:
    """The sketch of all batches, and what building said."""
    began, batches, rows = time.perf_counter(), 0, 0
    words, sketch_bytes = "", 0
    for batch in batches_of(case, way):
        try:
            report = syn.build(batch, spec_of(case, memory), place, batch=f"batch {batches}", progress=False)
        except SynopsisError as problem:
            words = f"batch {batches}: {type(problem).__name__}: {problem}"
            break
        batches, rows, sketch_bytes = batches + 1, rows + report.rows, report.sketch_bytes
    seconds = time.perf_counter() - began
    return {"batches": batches, "rows": rows, "bytes": int(sketch_bytes), "seconds": round(seconds, 1), "words": words}


def asked(contest: ModuleType, truth: Any, place: Path, questions: int, seed: int) -> Asking:
    """The questions of the contest, to one sketch."""
    asking = Asking(truth, syn.open(place))
    entered = 0
    for question in islice(questions_of(contest, truth, seed), questions * 4):
        entered += asking.ask(question)
        if entered == questions:
            break
    return asking


def figures_of(asking: Asking, base: dict[tuple[int, str], float]) -> dict[str, Any]:
    """Errors by function without and with predicates, and how they compare with those of the sketch built at once."""
    points = [point for point in asking.points if point.enters]
    found: dict[str, Any] = {}
    for function in sorted({point.function for point in points}):
        for name, has in (("without", False), ("with", True)):
            own = [point for point in points if point.function == function and bool(point.question.predicates) == has]
            both = [(point.sketch, base[key]) for point in own if (key := (point.question.number, function)) in base]
            if both:
                mine, theirs = np.mean(both, axis=0)
                held = [point.held for point in own if point.held is not None]
                found[f"{function} {name}"] = {
                    "error": round(float(mine), 5),
                    "at once": round(float(theirs), 5),
                    "held": round(float(np.mean(held)), 4) if held else None,
                }
    ratios = [row["error"] / row["at once"] for row in found.values() if row["at once"] > 1e-3]
    return {
        "ratio": round(float(np.exp(np.mean(np.log(ratios)))), 3) if ratios else None,
        "missed": sum(point.missed for point in asking.points),
        "failed": len(asking.failed),
        "classes": found,
    }


def measured(contest: ModuleType, name: str, ways: list[str], questions: int, seed: int) -> dict[str, Any]:
    """One data set in every way."""
    case = CASES[name]
    truth = truth_of(contest, case, SHARE, seed)
    found: dict[str, Any] = {}
    base: dict[tuple[int, str], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in ways:
            place = Path(folder) / way.replace(" ", "_")
            about = built(case, way, truth.budget, place)
            if about["words"] and not about["batches"]:
                found[way] = about
                continue
            summary = syn.open(place).summary
            about |= {"grain": summary.grain, "strata": summary.strata} if summary else {"grain": "no paths"}
            if not about["words"]:
                asking = asked(contest, truth, place, questions, seed)
                if way == AT_ONCE:
                    base = {(p.question.number, p.function): p.sketch for p in asking.points if p.enters}
                about |= figures_of(asking, base)
            about["met"] = bool(
                not about["words"]
                and about["rows"] == truth.n
                and about["bytes"] <= truth.budget
                and not about["missed"] + about["failed"]
                and (way == MONTHS or about["strata"] == {AT_ONCE: about, **found}[AT_ONCE]["strata"])
            )
            found[way] = about
            print_table(
                ["", *(key for key in about if key != "classes")],
                [[f"{name}, {way}", *(str(value) for key, value in about.items() if key != "classes")]],
            )
    truth.con.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--ways", default=",".join(WAYS[1:]))
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    if not DATA.exists():
        print("../shared/data is absent: nothing to measure")
        return 0
    figures = json.loads(RESULTS.read_text(encoding="utf-8")) if options.only and RESULTS.exists() else {}
    contest, ways = referee(), [AT_ONCE, *options.ways.split(",")]
    for name in (options.only,) if options.only else NAMES:
        figures[name] = measured(contest, name, ways, options.questions, options.seed)
        for way, about in figures[name].items():
            rows = [[key, *row.values()] for key, row in about.get("classes", {}).items()]
            print(f"\n{name}, {way}: errors {about.get('ratio')} of those at once")
            print_table(["", "error", "at once", "held"], [[str(cell) for cell in row] for row in rows])
    figures.pop("machine", None)
    write_results("batches", figures)
    met = all(about["met"] for ways in figures.values() for about in ways.values())
    print(bar(met, "every row counted, nothing missed, failed or beyond the budget, in whatever batches rows come"))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
