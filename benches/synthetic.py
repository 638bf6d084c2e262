"""Is a model that learns from synthetic rows as good as one that learns from a sample? (the paper's Table 4)

    python benches/synthetic.py [--only beijing] [--seeds 5] [--shares 0.1,8MB] [--sets 10%,20%]

A fifth of the rows of three real data sets is held back at random; sketches are built from the others: in a tenth of
the bytes that they take as zstd Parquet (0.1), in what a Spec allows when nothing is said (8MB), or in other shares and
sizes. Spark ML's random forest (20 trees, depth 10, else as it comes) learns one feature from three others: from all
those rows, from uniform samples of 10% and 20% of them, and from synthetic rows of each sketch, 10%, 20% and 100% as
many. Every set is a Parquet file first. Errors are root mean squares on the rows that were held back; sets and forests
have the same five seeds, so differences are paired. How lucky a sketch was with its paths is not in their standard
error.

As it comes, Spark's forest looks at one of three features at a node, drawn by chance; a node that draws rain where it
never rained is a leaf. That chance outweighs what rows are like, so the two sets of 10% are learnt from a second time
by forests that look at every feature. The bar is that of the first.

What learns from what was chosen before anything was measured, after the paper (temperature from visibility, humidity
and precipitation): in Brazil temperature from humidity, rain and radiation (which the sky lets through); in Beijing
temperature from fine dust (which takes the sight), dew point and rain; in the United States the day's lowest
temperature from the three features that there are beside it. Rows that miss one of the four are left out.

Fidelity is that of the first seed, of synthetic rows and of a sample of the same size, each against the rows held
back: the largest Kolmogorov distance of a feature, the largest difference of a correlation, and the share of pairs of a
real and a synthetic row that a classifier orders rightly (0.5: it cannot tell them apart).

Bar: 10% synthetic is no worse than the 10% sample on every data set, and better on two, by the mean of the errors; it
is told for each share. benches/synthetic_shares.py asks with other forests and more seeds how much of it is chance.
Writes benches/results/synthetic.json; `--only` keeps the figures of the other data sets, `--sets` those of the sets
whose names have none of its words. Says so, and ends, where
../shared/data is absent.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import RandomForestRegressor

import synopsis as syn
from _shared import DATA, ROOT, bar, print_table, write_results
from accuracy import CASES, spec_of
from synopsis.spark import session

RESULTS = ROOT / "benches" / "results" / "synthetic.json"
HELD_BACK, SHARES = 0.2, "0.1,8MB"
TREES, DEPTH = 20, 10
LEARNT = {
    "us_weather": ("Tmin", ("Tmax", "TDP", "Precip")),
    "beijing": ("TEMP", ("PM25", "DEWP", "RAIN")),
    "brazil": ("temp_c", ("rh", "precip_mm", "rad_kjm2")),
}
EVERY = ", every feature"  #: of the forests that look at all features at every node
REAL = {
    "original": (None, 1.0),
    "sample 10%": ("sample", 0.1),
    "sample 20%": ("sample", 0.2),
    f"sample 10%{EVERY}": ("sample", 0.1),
}
DRAWN = {  #: from each sketch
    "synthetic 10%": ("synthetic", 0.1),
    "synthetic 20%": ("synthetic", 0.2),
    "synthetic 100%": ("synthetic", 1.0),
    f"synthetic 10%{EVERY}": ("synthetic", 0.1),
}


@dataclass
class Measured:
    """One set's figures, one of each a seed."""

    megabytes: list[float] = field(default_factory=list)
    load_s: list[float] = field(default_factory=list)
    train_s: list[float] = field(default_factory=list)
    rmse: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        pairs = ((name, np.array(getattr(self, name))) for name in ("megabytes", "load_s", "train_s", "rmse"))
        found = {}
        for name, numbers in pairs:
            found[name] = float(numbers.mean())
            found[f"{name}_std"] = float(numbers.std(ddof=1)) if numbers.size > 1 else 0.0
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=tuple(LEARNT))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shares", default=SHARES)
    parser.add_argument("--sets", default="")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"{DATA} is absent: nothing was measured")
        return 0
    shares = options.shares.split(",")
    figures: dict[str, Any] = json.loads(RESULTS.read_text())["figures"] if RESULTS.exists() else {}
    for name in LEARNT if options.only is None else (options.only,):
        figures[name] = measured(name, shares, options.seeds, options.sets.split(","), figures.get(name, {}))
        shown(name, figures[name])
        write_results("synthetic", {"figures": figures, "met": {share: is_met(figures, share) for share in shares}})
    for share in shares:
        every = in_words(figures, share, "difference_10%_every_feature")
        print(f"sketches of {share}, 10% synthetic against the 10% sample, every feature: {every}")
        words = in_words(figures, share, "difference_10%")
        print(bar(is_met(figures, share), f"sketches of {share}, 10% synthetic against the 10% sample: {words}"))
    return 0


def in_words(figures: dict[str, Any], share: str, which: str) -> str:
    """Differences of all data sets."""
    sketches = {name: numbers["sketches"].get(share, {}) for name, numbers in figures.items()}
    found = {name: sketch[which] for name, sketch in sketches.items() if which in sketch}
    return ", ".join(
        f"{name} {each['mean']:+.2%} (standard error {each['standard_error']:.2%})" for name, each in found.items()
    )


def is_met(figures: dict[str, Any], share: str) -> bool:
    """Whether 10% synthetic is no worse than the 10% sample on every data set, and better on two."""
    sketches = [numbers["sketches"].get(share) for name, numbers in figures.items() if name in LEARNT]
    means = [sketch["difference_10%"]["mean"] for sketch in sketches if sketch and "difference_10%" in sketch]
    return len(means) == len(LEARNT) and max(means) <= 0 and sum(mean < 0 for mean in means) >= 2


def parted(name: str) -> tuple[pa.Table, pa.Table]:
    """Rows to learn from, and rows held back."""
    case = CASES[name]
    table = pq.read_table(case.path, columns=["lat", "lon", case.time, *case.features])
    held = np.random.default_rng(0).random(table.num_rows) < HELD_BACK
    return table.filter(pa.array(~held)), table.filter(pa.array(held))


def memory_of(rows: pa.Table, share: str) -> int | str:
    """What a sketch may take: a share of the bytes that rows take as zstd Parquet, or a size."""
    if not share.replace(".", "", 1).isdigit():
        return share
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(rows, Path(folder) / "rows.parquet", compression="zstd")
        return int((Path(folder) / "rows.parquet").stat().st_size * float(share))


def measured(name: str, shares: list[str], seeds: int, words: list[str], before: dict[str, Any]) -> dict[str, Any]:
    """Figures of one data set, of the sets whose names have one of the words; of others, those from before."""
    train, test = parted(name)
    sketches, found = {}, {}
    of_rows, of_sketches = (
        {each: how for each, how in sets.items() if any(word in each for word in words)} for sets in (REAL, DRAWN)
    )
    real = {each: Measured() for each in of_rows}
    drawn = {share: {each: Measured() for each in of_sketches} for share in shares}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pq.write_table(test, place / "held.parquet", compression="zstd")
        for share in shares:
            spec = spec_of(CASES[name], memory_of(train, share))
            report = syn.build(train, spec, to=place / share, progress=False)
            print(f"{name}, {share}: {report}", flush=True)
            sketch = sketches[share] = syn.open(place / share)
            found[share] = {
                "sketch": str(report).splitlines()[1],
                "megabytes": sketch.info()["sketch_bytes"] / 1e6,
                "fidelity": sketch.fidelity(test, sample=train, seed=1).figures(),
            }
        for seed in range(1, seeds + 1):
            work = [(real, None, of_rows), *((drawn[share], sketches[share], of_sketches) for share in shares)]
            for numbers, sketch, sets in work:
                for each, (kind, part) in sets.items():
                    rows = made(kind, part, train, sketch, seed)
                    pq.write_table(rows, place / "set.parquet", compression="zstd")
                    learn(name, place, seed, "all" if each.endswith(EVERY) else "auto", numbers[each])
            print(f"{name}: seed {seed} of {seeds} at {time.strftime('%H:%M:%S')}", flush=True)
    for share, numbers in drawn.items():
        known = before.get("sketches", {}).get(share, {})
        found[share]["sets"] = known.get("sets", {}) | {each: numbers[each].figures() for each in numbers}
        for which, kind in (("difference_10%", ""), ("difference_10%_every_feature", EVERY)):
            rivals = f"sample 10%{kind}", f"synthetic 10%{kind}"
            if rivals[0] in real and rivals[1] in numbers:
                found[share][which] = difference(real[rivals[0]], numbers[rivals[1]])
            elif which in known:
                found[share][which] = known[which]
    return {
        "learnt": LEARNT[name][0],
        "from": list(LEARNT[name][1]),
        "sets": before.get("sets", {}) | {each: numbers.figures() for each, numbers in real.items()},
        "sketches": before.get("sketches", {}) | found,
    }


def difference(sample: Measured, synthetic: Measured) -> dict[str, float]:
    """By how much the error of synthetic rows is larger, as a share of that of the sample."""
    rivals = np.array(sample.rmse), np.array(synthetic.rmse)
    relative = (rivals[1] - rivals[0]) / rivals[0].mean()
    error = float(relative.std(ddof=1) / np.sqrt(relative.size)) if relative.size > 1 else 0.0
    return {"mean": float(relative.mean()), "standard_error": error}


def made(kind: str | None, share: float, train: pa.Table, sketch: Any, seed: int) -> pa.Table:
    """The rows of one set."""
    if kind is None:
        return train
    if kind == "synthetic":
        return sketch.synthesize(share=share, seed=seed)
    size = round(share * train.num_rows)
    return train.take(np.sort(np.random.default_rng(seed).choice(train.num_rows, size, replace=False)))


def learn(name: str, place: Path, seed: int, looks_at: str, numbers: Measured) -> None:
    """Load a set, train on it, and look at the rows held back; `looks_at` is how many features a node looks at."""
    target, predictors = LEARNT[name]
    spark = session.session()
    assemble = VectorAssembler(inputCols=list(predictors), outputCol="predictors")

    def rows(file: str) -> Any:
        columns = [f"CAST({column} AS double) {column}" for column in (target, *predictors)]
        frame = spark.read.parquet(str(place / file)).selectExpr(*columns)
        for column in frame.columns:
            frame = frame.where(f"NOT isnan({column}) AND {column} IS NOT NULL")
        return assemble.transform(frame)

    numbers.megabytes.append((place / "set.parquet").stat().st_size / 1e6)
    begun = time.perf_counter()
    train = rows("set.parquet").cache()
    train.count()
    loaded = time.perf_counter()
    forest = RandomForestRegressor(
        featuresCol="predictors",
        labelCol=target,
        numTrees=TREES,
        maxDepth=DEPTH,
        featureSubsetStrategy=looks_at,
        seed=seed,
        cacheNodeIds=True,
    )
    model = forest.fit(train)
    numbers.load_s.append(loaded - begun)
    numbers.train_s.append(time.perf_counter() - loaded)
    train.unpersist()
    numbers.rmse.append(RegressionEvaluator(labelCol=target).evaluate(model.transform(rows("held.parquet"))))


def shown(name: str, found: dict[str, Any]) -> None:
    """Print the table of one data set, as the paper has it."""
    sets = found["sets"] | {
        f"{each}, {share}": numbers
        for share, sketch in found["sketches"].items()
        for each, numbers in sketch["sets"].items()
    }
    print(f"\n{name}: {found['learnt']} from {', '.join(found['from'])}")
    print_table(
        ["rows", "MB", "load s", "+-", "train s", "+-", "RMSE", "+-"],
        [
            [
                each,
                round(numbers["megabytes"], 3),
                *(round(numbers[part], 2) for part in ("load_s", "load_s_std", "train_s", "train_s_std")),
                *(f"{numbers[part]:.4f}" for part in ("rmse", "rmse_std")),
            ]
            for each, numbers in sets.items()
        ],
    )
    for share, sketch in found["sketches"].items():
        for each, numbers in sketch["fidelity"].items():
            figures = ", ".join(f"{what} {number:.3f}" for what, number in numbers.items())
            print(f"fidelity of {each}, {share}: {figures}")
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
