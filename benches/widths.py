"""How wide are intervals of counts and means with one predicate, in medium and large scopes?

    python benches/widths.py [--questions 200] [--seeds 1,2,3]

A sketch of brazil_weather_2025 at a tenth of its bytes answers the referee's questions (../shared/tools/contest.py) of
three seeds, so many of each. Widths are shares of the true count, and deviations of the feature over all rows; scopes
of fewer than 20 rows or values do not count.

Bar: with one predicate in medium and large scopes, certain intervals of COUNT are at most 0.8 wide and those of MEAN at
most 2.3, and COUNT at 95% at most 0.1 (medians); without predicates COUNT of whole days has no width at all, ever.
Writes benches/results/widths.json. Says so, and ends, where ../shared is absent.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np

import synopsis as syn
from _shared import DATA, bar, print_table, write_results
from accuracy import CASES, LEAST, questions_of, referee, scale_of, spec_of, true_answer, truth_of

SHARE = 0.1
BARS = {"COUNT, certain": 0.8, "MEAN, certain": 2.3, "COUNT at 95%": 0.1}
WHOLE_DAYS = "COUNT of whole days, certain"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--seeds", default="1,2,3")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"{DATA} is absent: nothing was measured")
        return 0
    contest, case = referee(), CASES["brazil"]
    truth = truth_of(contest, case, SHARE)
    found: dict[str, list[float]] = {name: [] for name in (*BARS, WHOLE_DAYS)}
    with tempfile.TemporaryDirectory() as folder:
        print(syn.build(case.path, spec_of(case, truth.budget), Path(folder) / "sketch.syn", progress=False))
        sketch = syn.open(Path(folder) / "sketch.syn")
        for seed in map(int, options.seeds.split(",")):
            for question in islice(questions_of(contest, truth, seed), options.questions):
                is_asked = question.predicates == 1 and question.size in ("medium", "large")
                is_plain = question.predicates == 0 and question.span == "whole days"
                if not is_asked and not is_plain:
                    continue
                answer, want = sketch.query(question.text), true_answer(truth, question)
                count, mean = answer["COUNT(*)"], answer[question.names["MEAN"]]
                if is_plain:
                    found[WHOLE_DAYS].append(float(count.high - count.low))
                elif want["COUNT"] >= LEAST and want["values"] >= LEAST:
                    rows, deviation = (scale_of(truth, question, each, want) for each in ("COUNT", "MEAN"))
                    found["COUNT, certain"].append((count.high - count.low) / rows)
                    found["MEAN, certain"].append((mean.high - mean.low) / deviation)
                    found["COUNT at 95%"].append(0.0 if count.p95 is None else (count.p95[1] - count.p95[0]) / rows)
    figures = {
        name: {"answers": len(each), "median": float(np.median(each)), "mean": float(np.mean(each)), "most": max(each)}
        for name, each in found.items()
    }
    columns = ("median", "mean", "most")
    rows_of = [[name, each["answers"], *(f"{each[key]:.3f}" for key in columns)] for name, each in figures.items()]
    print_table(["width", "answers", *columns], rows_of)
    met = all(figures[name]["median"] <= most for name, most in BARS.items()) and figures[WHOLE_DAYS]["most"] == 0.0
    print(bar(met, ", ".join(f"{name} {figures[name]['median']:.3f} of {most}" for name, most in BARS.items())))
    write_results("widths", {"figures": figures, "share": SHARE})
    return 0


if __name__ == "__main__":
    sys.exit(main())
