"""Does the sketch stay within its budget, and do its answers stay good, while rows grow? (Synopsis, Figure 8)

    python benches/growth.py [--questions 60] [--only 4]

600 stations report eight features every hour (build_speed.py generates them): 1, 2, 4, 8 and 16 million rows, each
built into a sketch of 2 MB. The random questions of ../shared/tools/contest.py go to the sketch and to DuckDB on the
generated files. Errors are scaled as in accuracy.py. Bar: bytes are within the budget every time, and no interval that
is called certain or exact misses the truth.
Writes benches/results/growth.json and docs/figures/growth.png. `--only` takes millions of rows, and draws nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import numpy as np

import synopsis as syn
from _shared import FIGURES, bar, print_table, write_results
from accuracy import COMPARED, CONTEST, LEAST, error_of, number, questions_of, referee, true_answer
from build_speed import FEATURES, generate
from synopsis.core.errors import NotKept, SynopsisError

MILLIONS, QUESTIONS, MEMORY = (1, 2, 4, 8, 16), 60, 2_000_000
PLAIN, SELECTIVE = "without predicates", "with predicates"
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")


class Truth:
    """What the referee's questions ask of the truth, from the files and without samples."""

    def __init__(self, files: Path) -> None:
        self.features, self.con = list(FEATURES), duckdb.connect()
        self.con.execute("set threads=2; set TimeZone='UTC'; set preserve_insertion_order=false")
        self.con.execute(f"create view rows as select * exclude (station) from '{files}/*.parquet'")
        self.n = int(self.one("select count(*) from rows")[0])
        self.start, self.end = self.one("select epoch(min(ts)), epoch(max(ts)) from rows")
        moments = ", ".join(f"stddev_pop({name}), avg({name})" for name in FEATURES)
        found = self.one(f"select {moments} from rows")
        self.sigma = dict(zip(FEATURES, found[0::2], strict=True))
        self.center = dict(zip(FEATURES, found[1::2], strict=True))
        self.con.execute("create table few as select * from rows using sample reservoir(200000 rows) repeatable (1)")
        shares = [step / 100 for step in range(101)]
        self.steps = {name: self.one(f"select quantile_cont({name}, {shares}) from few")[0] for name in FEATURES}
        self.places = self.con.execute("select distinct lat, lon from few order by hash(lat * 1000 + lon)").fetchall()

    def one(self, sql: str) -> Any:
        return self.con.execute(sql).fetchall()[0]


def measure(contest: ModuleType, files: Path, questions: int) -> dict[str, Any]:
    """Build, ask, compare."""
    truth = Truth(files)
    spec = syn.Spec(lat="lat", lon="lon", time="ts", features=FEATURES, precision=4, bucket="1d", memory=MEMORY)
    with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
        began = time.perf_counter()
        try:
            report = syn.build(files, spec, Path(folder, "sketch"), progress=False)
        except SynopsisError as problem:
            return {"rows": truth.n, "words": f"no sketch: {type(problem).__name__}: {problem}"}
        seconds = time.perf_counter() - began
        sketch = syn.open(Path(folder, "sketch"))
    errors: dict[str, list[float]] = {}
    entered = refused = missed = 0
    for question in questions_of(contest, truth):
        want = true_answer(truth, question)
        if want["COUNT"] < LEAST or want["values"] < LEAST:
            continue
        entered += 1
        try:
            answer = sketch.query(question.text)
        except NotKept:
            refused += 1
        else:
            kind = SELECTIVE if question.predicates else PLAIN
            for function in COMPARED:
                value = answer[question.names[function]]
                if not number(want[function]) or (function == "CORRELATION" and want["pairs"] < LEAST):
                    continue
                errors.setdefault(f"{function} {kind}", []).append(
                    error_of(truth, question, function, value.estimate, want)
                )
                slack = 0.5 if function == "COUNT" else 1e-6 * max(abs(want[function]), truth.sigma[question.first])
                certain = value.guarantee in ("exact", "certain")
                missed += certain and not value.low - slack <= want[function] <= value.high + slack
        if entered == questions:
            break
    truth.con.close()
    return {
        "rows": truth.n,
        "sketch_bytes": int(report.sketch_bytes),
        "grain": sketch.layout.grain if sketch.summary is None else sketch.summary.grain,
        "build_seconds": round(seconds, 1),
        "questions": entered,
        "refused": refused,
        "missed": int(missed),
        "errors": {each: float(f"{np.mean(found):.4g}") for each, found in sorted(errors.items())},
    }


def draw(path: Path, results: dict[int, dict[str, Any]]) -> None:
    """Bytes and errors over rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8))
    built = {millions: found for millions, found in results.items() if "errors" in found}
    left.plot(list(built), [found["sketch_bytes"] / 1e6 for found in built.values()], "o-", color=COLORS[0])
    left.axhline(MEMORY / 1e6, color="0.6", linewidth=0.8, linestyle="--", label="budget")
    left.set(ylabel="sketch, MB", ylim=(0, None), title="Bytes")
    for function, color in zip(COMPARED, COLORS, strict=True):
        for kind, style in ((PLAIN, "o-"), (SELECTIVE, "s--")):
            known = {
                rows: error for rows, f in built.items() if (error := f["errors"].get(f"{function} {kind}")) is not None
            }
            label = function if kind == PLAIN else None
            right.plot(list(known), list(known.values()), style, color=color, label=label, markersize=4)
    right.set(yscale="log", ylabel="mean error", title="Errors; dashed: with predicates")
    right.legend(frameon=False, fontsize=8)
    left.legend(frameon=False, fontsize=9)
    for panel in (left, right):
        panel.set(xscale="log", xlabel="rows, millions")
        panel.set_xticks(list(results), [str(millions) for millions in results])
        panel.minorticks_off()
        panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100, metadata={"Software": None})
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--only", type=int, choices=MILLIONS)
    options = parser.parse_args()
    if not CONTEST.exists():
        print("the folder shared does not lie beside this repository: nothing to ask")
        return 0
    from synopsis.spark import session

    contest, results = referee(), {}
    try:
        for millions in [options.only] if options.only else MILLIONS:
            with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
                generate(Path(folder), millions * 1_000_000)
                found = results[millions] = measure(contest, Path(folder), options.questions)
            size = f"{found['sketch_bytes']:,} bytes, {found['grain']}" if "errors" in found else found["words"]
            print(f"{millions} M rows: {size}", flush=True)
    finally:
        session.stop()
    classes = sorted({each for found in results.values() for each in found.get("errors", {})})
    print_table(
        ["mean error", *(f"{millions} M" for millions in results)],
        [[each, *(found.get("errors", {}).get(each, "") for found in results.values())] for each in classes],
    )
    within = [found.get("sketch_bytes", MEMORY + 1) <= MEMORY for found in results.values()]
    missed = sum(found.get("missed", 0) for found in results.values())
    met = all(within) and not missed
    print(bar(met, f"within {MEMORY:,} bytes {sum(within)} times of {len(within)}; {missed} certain intervals missed"))
    figures = {"memory": MEMORY, "millions": {str(key): found for key, found in results.items()}, "met": met}
    write_results("growth", figures)
    if not options.only:
        draw(FIGURES / "growth.png", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
