"""How large must a sketch be for its synthetic rows to teach as much as a sample of the rows does?

    python benches/synthetic_shares.py [--only beijing] [--seeds 12] [--shares 0.1,0.2,0.3,0.5,8MB] [--sketches FOLDER]

Data sets, what learns from what, rows held back and seeds are those of benches/synthetic.py; the forests split as Spark
ML's do, but are quick (`_forest.py`), so that there may be many seeds. Sketches have a share of the bytes that the rows
take as zstd Parquet, or what a Spec allows when nothing is said, 8 MB. As many rows as a tenth are drawn from each, and
compared with a sample of a tenth: by how much the error on rows held back is larger, with its standard error, for
forests whose nodes look at one feature of three, and at every feature.

No bar: that of benches/synthetic.py is of Spark ML. Writes benches/results/synthetic_shares.json; `--only` keeps the
figures of the other data sets. Says so, and ends, where ../shared/data is absent.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import synopsis as syn
from _forest import Floats, error
from _shared import DATA, ROOT, print_table, write_results
from accuracy import CASES, spec_of
from synthetic import DEPTH, LEARNT, TREES, made, memory_of, parted

RESULTS = ROOT / "benches" / "results" / "synthetic_shares.json"
SHARES, SEEDS, SHARE_OF_ROWS = "0.1,0.2,0.3,0.5,8MB", 12, 0.1
LOOKS = {"one feature": 1, "every feature": 3}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=tuple(LEARNT))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--shares", default=SHARES)
    parser.add_argument("--sketches", type=Path)
    options = parser.parse_args()
    if not DATA.exists():
        print(f"{DATA} is absent: nothing was measured")
        return 0
    figures: dict[str, Any] = json.loads(RESULTS.read_text())["figures"] if RESULTS.exists() else {}
    for name in LEARNT if options.only is None else (options.only,):
        figures[name] = measured(name, options.shares.split(","), options.seeds, options.sketches)
        shown(name, figures[name])
        write_results("synthetic_shares", {"figures": figures})
    return 0


def measured(name: str, shares: list[str], seeds: int, kept: Path | None) -> dict[str, Any]:
    """By sketch, built where it is not kept: how much larger errors are than those of a sample."""
    train, test = parted(name)
    held = columns(name, test)
    found = {}
    rival = np.array(
        [errors(name, made("sample", SHARE_OF_ROWS, train, None, seed), held, seed) for seed in seeds_of(seeds)]
    )
    with tempfile.TemporaryDirectory() as folder:
        for share in shares:
            place = (kept or Path(folder)) / f"{name}-{share}"
            if not place.exists():
                syn.build(train, spec_of(CASES[name], memory_of(train, share)), to=place, progress=False)
            sketch = syn.open(place)
            ours = np.array(
                [
                    errors(name, made("synthetic", SHARE_OF_ROWS, train, sketch, seed, four(name)), held, seed)
                    for seed in seeds_of(seeds)
                ]
            )
            larger = (ours - rival) / rival.mean(axis=0)
            found[share] = {
                "seeds": seeds,
                "megabytes": sketch.nbytes / 1e6,
                **{
                    looks: {"mean": float(each.mean()), "standard_error": float(each.std(ddof=1) / np.sqrt(seeds))}
                    for looks, each in zip(LOOKS, larger.T, strict=True)
                },
            }
            print(f"{name} {share}: {found[share]}", flush=True)
    return found


def four(name: str) -> tuple[str, ...]:
    """The features that are learnt from, and the one that is learnt."""
    target, predictors = LEARNT[name]
    return (*predictors, target)


def seeds_of(number: int) -> range:
    """Seeds, from 1 on."""
    return range(1, number + 1)


def errors(name: str, rows: pa.Table, held: tuple[Floats, Floats], seed: int) -> list[float]:
    """Of forests that look at one feature, and at every one."""
    learnt = columns(name, rows)
    return [error(learnt, held, looks_at, seed, TREES, DEPTH) for looks_at in LOOKS.values()]


def columns(name: str, rows: pa.Table) -> tuple[Floats, Floats]:
    """Predictors and target of the rows that have all of them."""
    values = np.stack([rows[each].to_numpy().astype(np.float64) for each in four(name)])
    whole = values[:, ~np.isnan(values).any(axis=0)]
    return whole[:-1], whole[-1]


def shown(name: str, found: dict[str, Any]) -> None:
    """Print the table of one data set."""
    print(f"\n{name}: by how much errors of 10% synthetic rows are larger than those of a 10% sample")
    lines = []
    for share, numbers in found.items():
        pairs = (f"{numbers[each]['mean']:+.2%} +- {numbers[each]['standard_error']:.2%}" for each in LOOKS)
        lines.append([share, round(numbers["megabytes"], 2), *pairs])
    print_table(["share", "MB", *LOOKS], lines)
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
