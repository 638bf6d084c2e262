"""How long does it take to fetch a part of a sketch, near and wide? (Synopsis, Table 2)

    python benches/retrieval.py [--stations 24] [--rounds 15]

Generated stations report four features every hour for half a year: clusters of the same number of stations within 5,
25, 100 and 800 km, three of each, and 300 stations spread over the globe elsewhere. The part of the sketch within each
circle is selected (`SELECT * WHERE NEAR(...)`) in random order, warm: every part has as many stations, strata and rows.
Statistical questions to the same circles are timed beside it, by function. Times are medians and 99th percentiles.
Bar: fetching within 800 km takes at most twice as long as within 5 km. Writes benches/results/retrieval.json.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synopsis as syn
from _shared import bar, print_table, write_results
from synopsis.query.shapes import EARTH_KM, Circle

REACHES_KM, CLUSTERS, HOURS, ELSEWHERE, MOST = (5, 25, 100, 800), 3, 24 * 182, 300, 2.0
FEATURES = ("temp_c", "rh", "wind_ms", "rain_mm")
FUNCTIONS = {
    "COUNT": "COUNT(*)",
    "MEAN": "MEAN(temp_c)",
    "STD": "STD(temp_c)",
    "MIN, MAX": "MIN(temp_c), MAX(temp_c)",
    "CORRELATION": "CORRELATION(temp_c, rh)",
    "QUANTILE": "QUANTILE(temp_c, 0.9)",
    "with a predicate": "MEAN(temp_c)",
}


def places_of(stations: int, random: np.random.Generator) -> tuple[np.ndarray, list[tuple[int, float, float]]]:
    """Latitudes and longitudes of all stations, and the circles: kilometres and centre."""
    centres = [(lat, lon) for lat in (-50.0, -10.0, 35.0) for lon in (-135.0, -45.0, 45.0, 135.0)]
    circles = [(REACHES_KM[at % len(REACHES_KM)], *centre) for at, centre in enumerate(centres)]
    found = []
    for km, lat, lon in circles:
        distance = np.degrees(km / EARTH_KM) * np.sqrt(random.random(stations)) * 0.98
        angle = random.random(stations) * 2 * np.pi
        found.append(np.stack((lat + distance * np.sin(angle), lon + distance * np.cos(angle)), axis=1))
    spread = np.stack((random.uniform(-60, 60, 4 * ELSEWHERE), random.uniform(-180, 180, 4 * ELSEWHERE)), axis=1)
    far = ~np.any([Circle(lat, lon, 900.0).holds(*spread.T) for _, lat, lon in circles], axis=0)
    return np.concatenate([*found, spread[far][:ELSEWHERE]]), circles


def frame_of(places: np.ndarray, random: np.random.Generator) -> pd.DataFrame:
    station, hour = (each.ravel() for each in np.meshgrid(np.arange(len(places)), np.arange(HOURS), indexing="ij"))
    temp = 15 + 8 * np.sin(hour / 24 * 2 * np.pi) + random.normal(0, 3, station.size)
    return pd.DataFrame(
        {
            "lat": places[station, 0],
            "lon": places[station, 1],
            "time": pd.Timestamp("2025-01-01") + pd.to_timedelta(hour, unit="h"),
            "temp_c": temp.round(1),
            "rh": np.clip(70 - 2 * (temp - 15) + random.normal(0, 8, station.size), 0, 100).round(),
            "wind_ms": random.gamma(2.0, 1.5, station.size).round(1),
            "rain_mm": np.where(random.random(station.size) < 0.9, 0.0, random.exponential(2.0, station.size)).round(1),
        }
    )


def timed(run: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = run()
    return (time.perf_counter() - began) * 1e3, result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stations", type=int, default=24, help="of a cluster")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    random = np.random.default_rng(3)
    places, circles = places_of(options.stations, random)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "stations.syn"
        spec = syn.Spec(lat="lat", lon="lon", time="time", features=FEATURES, memory="6MB")
        frame = frame_of(places, random)
        print(syn.build(frame, spec, to=target, progress=False))
        sketch = syn.open(target)
    times: dict[int, list[float]] = {km: [] for km in REACHES_KM}
    sizes: dict[int, set[tuple[int, int]]] = {km: set() for km in REACHES_KM}
    asked: dict[tuple[str, int], list[float]] = {}
    for _ in range(options.rounds + 1):
        for at in random.permutation(len(circles)):
            km, lat, lon = circles[at]
            where = f"NEAR({lat}, {lon}, {km})"
            taken, part = timed(lambda where=where: sketch.select(f"SELECT * WHERE {where}"))
            times[km].append(taken)
            sizes[km].add((part.rows, part.summary.strata))
            for name, columns in FUNCTIONS.items():
                extra = " AND rh > 80" if name == "with a predicate" else ""
                taken, _ = timed(lambda text=f"SELECT {columns} WHERE {where}{extra}": sketch.query(text))
                asked.setdefault((name, km), []).append(taken)
    warm = {km: taken[CLUSTERS:] for km, taken in times.items()}
    rows = [
        ["fetching a part", *(f"{np.median(warm[km]):.2f} / {np.percentile(warm[km], 99):.2f}" for km in REACHES_KM)],
        *(
            [
                name,
                *(f"{np.median(asked[name, km]):.2f} / {np.percentile(asked[name, km], 99):.2f}" for km in REACHES_KM),
            ]
            for name in FUNCTIONS
        ),
    ]
    print_table(["ms, p50 / p99", *(f"{km} km" for km in REACHES_KM)], rows)
    ratio = float(np.median(warm[800]) / np.median(warm[5]))
    met = ratio <= MOST and len(set.union(*sizes.values())) == 1
    print(f"every part has {sorted(set.union(*sizes.values()))} rows and strata")
    print(bar(met, f"800 km takes {ratio:.2f} times as long as 5 km, at most {MOST:g} wanted"))
    write_results(
        "retrieval",
        {
            "rows_and_strata": sorted(set.union(*sizes.values())),
            "fetch_ms": {
                str(km): {"p50": float(np.median(warm[km])), "p99": float(np.percentile(warm[km], 99))}
                for km in REACHES_KM
            },
            "question_ms": {
                name: {
                    str(km): {
                        "p50": float(np.median(asked[name, km])),
                        "p99": float(np.percentile(asked[name, km], 99)),
                    }
                    for km in REACHES_KM
                }
                for name in FUNCTIONS
            },
            "ratio": ratio,
            "met": met,
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
