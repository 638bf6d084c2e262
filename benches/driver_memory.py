"""Does the driver's memory stay flat, however many rows are built from?

    python benches/driver_memory.py

Rows are made by Spark itself (600 stations, hourly, 8 features), so that no file and no row is ever the driver's. One
process builds from 2, 4, 8 and 16 million of them after three builds to warm up; a thread samples the resident memory
of the Python driver. Bar: flat, that is 16 million rows take at most a tenth more than 2 million. Writes
benches/results/driver_memory.json and docs/figures/driver-memory.png.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import synopsis as syn
from _shared import FIGURES, bar, print_table, write_results
from synopsis.spark import session as sessions

MILLIONS = (2, 4, 8, 16)
STATIONS, HOURS = 600, 3_000  #: the same strands whatever the number of rows, so that only rows grow
FEATURES = tuple(f"reading_{k}" for k in range(8))
SPEC = syn.Spec(lat="lat", lon="lon", time="ts", features=FEATURES, exact_at=(4, "1y"), memory="64MB")
SLACK = 1.1
WARM_UP = 3  #: builds before the first that counts: until then libraries load and their pools fill


def main() -> int:
    peaks = {}
    with tempfile.TemporaryDirectory(prefix="synopsis-bench-") as folder:
        for turn in range(WARM_UP):
            syn.build(_rows(MILLIONS[0] * 1_000_000), SPEC, Path(folder, f"warm{turn}.syn"), progress=False)
        lines = []
        for millions in MILLIONS:
            with _sampled() as seen:
                report = syn.build(_rows(millions * 1_000_000), SPEC, Path(folder, f"{millions}.syn"), progress=False)
            peaks[millions] = max(seen)
            lines.append([f"{millions} M", report.leaves, round(peaks[millions] / 1e6, 1), round(report.seconds, 1)])
    sessions.stop()
    print_table(["rows", "strands", "peak of the driver, MB", "seconds"], lines)
    met = peaks[MILLIONS[-1]] <= SLACK * peaks[MILLIONS[0]]
    figures = {"peak_mb": {f"{millions} M": round(peak / 1e6, 1) for millions, peak in peaks.items()}, "met": met}
    write_results("driver_memory", figures)
    _draw(peaks)
    print(bar(met, f"16 M rows take {peaks[16] / peaks[2]:.2f} of what 2 M take"))
    return 0


def _rows(count: int) -> DataFrame:
    """Rows that come into being in the executors."""
    frame = sessions.session().range(count)
    row = sf.col("id")
    station = row % STATIONS
    hour = (row / STATIONS).cast("bigint") % HOURS
    readings = {
        name: 290 + 5 * sf.sin(hour / (4.0 + position)) + (sf.xxhash64(row + position) % 1000) / 500.0
        for position, name in enumerate(FEATURES)
    }
    return frame.select(
        (-33 + (station % 30) * 1.25).alias("lat"),
        (-70 + (station / 30).cast("bigint") * 1.5).alias("lon"),
        sf.timestamp_seconds(1_600_000_000 + hour * 3600).alias("ts"),
        *(reading.alias(name) for name, reading in readings.items()),
    )


@contextmanager
def _sampled() -> Iterator[list[int]]:
    """The resident memory of this process, twenty times a second."""
    process, seen, ended = psutil.Process(), [], threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            seen.append(process.memory_info().rss)

    seen.append(process.memory_info().rss)
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def _draw(peaks: dict[int, int]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
    axes.plot(list(peaks), [peak / 1e6 for peak in peaks.values()], marker="o", color="#0072B2")
    axes.set(xlabel="rows built from, millions", ylabel="peak of the Python driver, MB", xscale="log", ylim=(0, None))
    axes.set_xticks(list(peaks), [str(millions) for millions in peaks])
    axes.minorticks_off()
    figure.savefig(FIGURES / "driver-memory.png", dpi=110)


if __name__ == "__main__":
    sys.exit(main())
