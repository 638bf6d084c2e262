"""Do builds keep up with a plain Spark rollup of the same rows?

    python benches/build_speed.py [--rows 10000000] [--only paths] [--rounds 3]

600 stations report eight features every hour, 10 million rows in all, generated into Parquet files. A build is all of
`syn.build` into a fresh target. "exact" is with `exact_at=(4, "1mo")`: pivots, sums of all products, files, commit;
"with entities" also keeps which station was where and when, of which the rollup knows nothing; "paths" has no promise
and 8 MB: statistics, probe, tallies, strata. The rollup is count, mean, stddev, min and max of the same features by the
same cells and months; one rival throws its rows away (format noop), the other writes them as Parquet. They run in
turns in one session with the same settings (each kind of build and rollups in one of their own: what else has run in a
Java slows down what it compiled before), three times after six warm-ups of each: Java compiles what it runs, and it
takes that long until the times hardly change. Bars: "exact" reaches at least 0.6 of the rollup's rows a second, "paths"
0.4, medians compared.
Writes benches/results/build_speed.json; `--only` keeps the figures of the others.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import synopsis as syn
from _shared import ROOT, bar, print_table, write_results
from synopsis.sketch.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATIONS, ROWS, FILES, WARM_UPS, ROUNDS = 600, 10_000_000, 10, 6, 3
WANTED = {"exact": 0.6, "paths": 0.4}
RIVALS = ("rollup", "rollup to Parquet")
RESULTS = ROOT / "benches" / "results" / "build_speed.json"
FEATURES = ("kelvin", "pascal", "rh", "wind_ms", "gust_ms", "rain_mm", "rad_wm2", "dew_c")
INCOMPLETE = ("rh", "gust_ms", "rad_wm2")  # about 1% missing
EXACT = syn.Spec("lat", "lon", "ts", FEATURES, memory="200MB", exact_at=(4, "1mo"))
SPECS = {
    "exact": EXACT,
    "with entities": replace(EXACT, entity="station"),
    "paths": replace(EXACT, memory=8_000_000, exact_at=None),
}
LAYOUT = Layout(FEATURES, bits=20, bucket="1mo")


def generate(folder: Path, rows: int) -> None:
    """Hourly rows of all stations in order of time, as they would arrive, cut into files; rounded as instruments do."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(2013)
    lat, lon = random.uniform(-35.0, 5.0, STATIONS), random.uniform(-74.0, -35.0, STATIONS)
    height = random.uniform(0.0, 1500.0, STATIONS)
    first_hour = np.datetime64("2023-01-01T00", "h")
    for file, numbers in enumerate(np.array_split(np.arange(rows), FILES)):
        station, hour = numbers % STATIONS, numbers // STATIONS
        noise = random.standard_normal((4, numbers.size))
        day = np.sin(2.0 * np.pi * (hour / 24.0 + lon[station] / 360.0))
        kelvin = 295.0 - 0.0065 * height[station] + 6.0 * day + 3.0 * noise[0]
        wind = np.abs(2.0 + 1.5 * noise[1])
        values = {
            "kelvin": kelvin.round(1),
            "pascal": (101_325.0 * np.exp(-height[station] / 8400.0) + 250.0 * noise[2]).round(-1),
            "rh": np.clip(70.0 - 4.0 * (kelvin - 295.0) + 8.0 * noise[3], 5.0, 100.0).round(),
            "wind_ms": wind.round(1),
            "gust_ms": (wind * random.uniform(1.0, 3.0, numbers.size)).round(1),
            "rain_mm": (random.exponential(3.0, numbers.size) * (random.random(numbers.size) < 0.1)).round(1),
            "rad_wm2": np.maximum(900.0 * day + 80.0 * noise[1], 0.0).round(1),
            "dew_c": (kelvin - 280.0 + 2.0 * noise[3]).round(1),
        }
        table = pa.table(
            {"station": pa.array(station).cast(pa.string()), "lat": lat[station], "lon": lon[station]}
            | {"ts": (first_hour + hour).astype("datetime64[us]")}
            | {
                name: pa.array(column, mask=random.random(numbers.size) < 0.01) if name in INCOMPLETE else column
                for name, column in values.items()
            }
        )
        pq.write_table(table, folder / f"hours-{file:02}.parquet", compression="zstd")


def rollup(spark: SparkSession, files: Path) -> DataFrame:
    """What one would write without us."""
    from pyspark.sql import functions as sf

    from synopsis.spark import expressions

    rows = spark.read.parquet(str(files)).withColumnsRenamed({"lat": "latitude", "lon": "longitude"})
    month = sf.year("ts") * 12 + sf.month("ts")  # faster than date_trunc
    keyed = expressions.with_cell(rows, LAYOUT.bits).withColumn("month", month)
    measures = (sf.count, sf.mean, sf.stddev, sf.min, sf.max)
    return keyed.groupBy("cell", "month").agg(
        *(measure(name).alias(f"{measure.__name__}_{name}") for name in FEATURES for measure in measures)
    )


def seconds(run: Callable[[Path], None]) -> float:
    """How long a run into a fresh folder takes."""
    with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
        began = time.perf_counter()
        run(Path(folder, "out"))
        return time.perf_counter() - began


def measure(files: Path, name: str, spec: syn.Spec, rounds: int) -> dict[str, list[float]]:
    """Seconds of builds and rollups, round by round, the warm-ups left out, in a session of their own."""
    from synopsis.spark import session

    spark = session.session()

    def build(out: Path) -> None:
        syn.build(files, spec, out, progress=False)

    def forgotten(out: Path) -> None:
        rollup(spark, files).write.format("noop").mode("overwrite").save()

    def kept(out: Path) -> None:
        rollup(spark, files).write.parquet(str(out))

    contestants = {name: build} | dict(zip(RIVALS, (forgotten, kept), strict=True))
    try:
        taken = [{each: seconds(run) for each, run in contestants.items()} for _ in range(WARM_UPS + rounds)]
    finally:
        session.stop()
    return {each: [own[each] for own in taken[WARM_UPS:]] for each in contestants}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", choices=SPECS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    names = [options.only] if options.only else list(SPECS)
    with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
        generate(Path(folder), options.rows)
        found = {name: contest(measure(Path(folder), name, SPECS[name], options.rounds), name) for name in names}
    print_table(
        ["contest", "contestant", "seconds", "of the rollup", "of one that writes"],
        [
            [name, each, "  ".join(f"{second:.2f}" for second in runs), *ratios_of(own, each)]
            for name, own in found.items()
            for each, runs in own["seconds"].items()
        ],
    )
    for name, wanted in WANTED.items():
        if name in found:
            reached = found[name]["ratio_of_medians"]
            print(bar(reached >= wanted, f"{name}: {reached:.2f} of the rollup's rows/s; wanted {wanted}"))
    known = json.loads(RESULTS.read_text(encoding="utf-8"))["contests"] if options.only and RESULTS.exists() else {}
    figures = {"rows": options.rows, "warm_ups": WARM_UPS, "stations": STATIONS, "features": len(FEATURES)}
    write_results("build_speed", figures | {"contests": known | found})
    return 0


def contest(taken: dict[str, list[float]], name: str) -> dict[str, Any]:
    """The figures of one kind of build beside its rivals."""
    medians = {each: statistics.median(runs) for each, runs in taken.items()}
    return {
        "seconds": {each: [round(second, 3) for second in runs] for each, runs in taken.items()},
        "ratio_of_medians": round(medians["rollup"] / medians[name], 3),
        "ratio_to_one_that_writes": round(medians["rollup to Parquet"] / medians[name], 3),
        "wanted": WANTED.get(name),
    }


def ratios_of(own: dict[str, Any], name: str) -> tuple[str, str]:
    """The ratios of a build; rivals have none."""
    if name in RIVALS:
        return "", ""
    return f"{own['ratio_of_medians']:.2f}", f"{own['ratio_to_one_that_writes']:.2f}"


if __name__ == "__main__":
    sys.exit(main())
