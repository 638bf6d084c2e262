"""What does it cost to know which bins met, and what does it tell?

    python benches/meetings.py [--questions 400] [--rounds 4]

Three tables, all of brazil_weather_2025 (1.2 million rows, eight features). Bytes: meetings of all rows in several
grains, beside the bits themselves, what an ideal coder of bits of that density would take, and a Bloom filter that is
wrong for 1% (9.6 bits for every two bins that met). Answers: of a sketch at a tenth of the rows' bytes, CONTAINS of two
features, half of them two runs of joint bins in whole spans, half narrow ranges around values of two different rows
in any scope; of those that are not there, how many are denied, with meetings and without. Build: seconds with meetings
and without, planning included, in turns in one session.

Bar: no combination that is there is denied; all that are not are, at the grain of bins and spans; meetings take no more
than a fiftieth of the budget. Writes benches/results/meetings.json. Says so, and ends, where ../shared/data is absent.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq

import synopsis as syn
from _shared import bar, print_table, write_results
from accuracy import CASES
from synopsis.grid import geohash
from synopsis.query.evaluate import asked_of
from synopsis.query.relation import Relation
from synopsis.sketch.joints import Grain, starts_of
from synopsis.sketch.meetings import SHARE, Meetings
from synopsis.sketch.scales import Scales
from synopsis.sketch.tallies import EVERYTHING
from synopsis.spark import paths

CASE = CASES["brazil"]
GRAINS = [(0, EVERYTHING, 32), (5, 1, 32), (10, EVERYTHING, 32), (10, 1, 16), (10, 1, 32), (10, 1, 64), (15, 1, 32)]
#: Bits of a Bloom filter for each key, where 1% of other keys seem to be there.
BLOOM_BITS = 9.6
MONTHS = ("2025-01-01", "2025-02-01", "2025-03-01", "2025-04-01", "2025-05-01")


def grains(table: Any, scales: Scales) -> list[list[Any]]:
    """Bytes by grain."""
    latitude, longitude = (table[name].to_numpy().astype(np.float64) for name in ("lat", "lon"))
    us = table[CASE.time].to_numpy().astype("datetime64[us]").astype(np.int64)
    fine = scales.codes(np.stack([table[name].to_numpy().astype(np.float64) for name in CASE.features]))
    found = []
    for bits, months, joints in GRAINS:
        grain = Grain(bits, months, starts_of(scales, len(CASE.features), joints))
        made = Meetings.of(grain, latitude, longitude, us, fine)
        cells, there, ideal = 0, 0, 0.0
        for pair in grain.pairs:
            met = made.met(*pair)
            share = met.mean()
            cells, there = cells + met.size, there + int(met.sum())
            if 0.0 < share < 1.0:
                ideal -= met.size * (share * np.log2(share) + (1 - share) * np.log2(1 - share))
        span = "all time" if months == EVERYTHING else "1 month"
        row = [f"{bits} bits x {span}", joints, len(made), cells // 8, made.nbytes, int(ideal / 8)]
        found.append([*row, int(there * BLOOM_BITS / 8), round(there / cells, 3)])
    return found


# --- answers ----------------------------------------------------------------------------------------------------------


def aligned(database: syn.Database, cells: list[str], random: np.random.Generator) -> Iterator[tuple[str, str, str]]:
    """Runs of one to three joint bins of two features, in whole spans."""
    summary = database.summary
    assert summary is not None
    assert summary.meetings is not None
    grain = summary.meetings.grain
    while True:
        parts = []
        for feature in random.permutation(len(CASE.features))[:2]:
            low, high = grain.ranges(summary.scales, int(feature))
            first = int(random.integers(low.size))
            last = min(first + int(random.integers(3)), low.size - 1)
            parts.append(f"{CASE.features[feature]} BETWEEN {float(low[first])!r} AND {float(high[last])!r}")
        prefix, month = random.choice(cells)[: random.integers(3)], int(random.integers(len(MONTHS) - 1))
        yield ", ".join(parts), f"location LIKE '{prefix}%'", f"cell LIKE '{prefix}%' AND {_month(month)}"


def _month(month: int) -> str:
    return f"time >= '{MONTHS[month]}' AND time < '{MONTHS[month + 1]}'"


def narrow(values: dict[str, Any], cells: list[str], random: np.random.Generator) -> Iterator[tuple[str, str, str]]:
    """Ranges around values of two different rows, a hundredth of a deviation wide, in a cell and a month."""
    while True:
        parts = []
        for feature in random.choice(CASE.features, 2, replace=False):
            middle, width = float(random.choice(values[feature])), float(values[feature].std() / 100)
            parts.append(f"{feature} BETWEEN {middle - width!r} AND {middle + width!r}")
        prefix, month = random.choice(cells)[: random.integers(4)], int(random.integers(len(MONTHS) - 1))
        yield ", ".join(parts), f"location LIKE '{prefix}%'", f"cell LIKE '{prefix}%' AND {_month(month)}"


def answers(database: syn.Database, connection: Any, questions: Iterator[tuple[str, str, str]], count: int) -> Any:
    """Denied with meetings and without, of those that are not there; false noes; milliseconds of both."""
    relation = database.relation
    assert relation.summary is not None
    without = replace(relation, summary=replace(relation.summary, meetings=None))
    absent, denied, blind, false = 0, 0, 0, 0
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(count):
        values, place, meant = next(questions)
        times = meant.split(" AND ", 1)[1]
        held = " AND ".join(f"({each})" for each in values.split(", "))
        found = connection.execute(f"SELECT 1 FROM rows WHERE {meant} AND {held} LIMIT 1").fetchall()
        text = f"SELECT CONTAINS({values}) AS c WHERE {place} AND {times}"
        told = []
        for own, each in zip(took, (relation, without), strict=True):
            begun = time.perf_counter()
            told.append(_yes(each, text))
            own.append((time.perf_counter() - begun) * 1e3)
        false += bool(found) and not all(told)
        if not found:
            absent, denied, blind = absent + 1, denied + (not told[0]), blind + (not told[1])
    return absent, denied, blind, false, statistics.median(took[0]), statistics.median(took[1])


def _yes(relation: Relation, text: str) -> bool:
    answer = asked_of(relation, text)
    assert not isinstance(answer, Relation)
    return bool(answer["c"].estimate)


# --- build ------------------------------------------------------------------------------------------------------------


def timed(spec: syn.Spec, folder: Path, rounds: int) -> tuple[float, float]:
    """Median seconds of a build with meetings and without, after one of each; whoever came last comes first then."""
    share = paths.SHARE
    took: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(rounds + 1):
        for own in (True, False) if turn % 2 else (False, True):
            paths.SHARE = share if own else 0.0  # type: ignore[misc]
            begun = time.perf_counter()
            syn.build(CASE.path, spec, folder / f"{turn} {own}.syn", progress=False)
            if turn:
                took[own].append(time.perf_counter() - begun)
    paths.SHARE = share  # type: ignore[misc]
    return statistics.median(took[True]), statistics.median(took[False])


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    if not CASE.path.exists():
        print(f"no {CASE.path.name} in ../shared/data: nothing to measure")
        return 0
    table = pq.read_table(CASE.path)
    memory = table.num_rows * 8 * (3 + len(CASE.features)) // 10
    spec = syn.Spec("lat", "lon", CASE.time, CASE.features, memory=memory)
    connection = duckdb.connect()
    cell = geohash.to_text(geohash.encode(table["lat"].to_numpy(), table["lon"].to_numpy(), 20), 4)
    connection.register("given", table.append_column("cell", [cell.tolist()]).rename_columns(
        ["time" if name == CASE.time else name for name in [*table.column_names, "cell"]]
    ))  # fmt: skip
    connection.execute("CREATE TABLE rows AS SELECT * FROM given")
    values = {name: table[name].drop_null().to_numpy().astype(np.float64) for name in CASE.features}
    values = {name: each[~np.isnan(each)] for name, each in values.items()}
    with tempfile.TemporaryDirectory() as folder:
        with_s, without_s = timed(spec, Path(folder), options.rounds)
        database = syn.open(Path(folder) / "0 True.syn")
        info = database.info()["meetings"]
    assert database.summary is not None
    assert database.summary.meetings is not None
    met = database.summary.meetings
    sizes = grains(table, database.summary.scales)
    print_table(["spans of", "bins", "spans", "bits, bytes", "packed", "ideal", "Bloom 1%", "density"], sizes)
    random = np.random.default_rng(16)
    names = sorted(set(cell.tolist()))
    kinds = {
        "whole bins and spans": aligned(database, names, random),
        "narrow ranges": narrow(values, names, random),
    }
    told = {name: answers(database, connection, each, options.questions) for name, each in kinds.items()}
    print_table(
        ["two features", "not there", "denied", "without meetings", "false noes", "ms", "ms without"],
        [[name, *each] for name, each in told.items()],
    )
    print(f"build: {with_s:.1f} s with meetings, {without_s:.1f} s without: {with_s / without_s:.3f} times as long")
    print(f"kept: {info}, of a budget of {memory:,} bytes")
    whole = told["whole bins and spans"]
    is_met = all(each[3] == 0 for each in told.values()) and whole[0] == whole[1] and met.nbytes <= memory * SHARE
    print(bar(is_met, "no false no; exact at the grain; a fiftieth of the budget"))
    write_results(
        "meetings",
        {
            "grains": [dict(zip(("spans of", "bins", "spans", "bits", "packed", "ideal", "bloom", "density"), row,
                                strict=True)) for row in sizes],
            "answers": {name: dict(zip(("absent", "denied", "without", "false_noes", "ms", "ms_without"), each,
                                       strict=True)) for name, each in told.items()},
            "kept": info,
            "build_s": with_s,
            "build_without_s": without_s,
            "build_ratio": with_s / without_s,
        },
    )  # fmt: skip
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
