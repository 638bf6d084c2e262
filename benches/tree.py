"""What does quantization do to the paper's tree? (its Table 1, on brazil_weather_2025)

    python benches/tree.py

Every row takes a path: cell (geohash 4), month, then its value of each of eight features, at full resolution or in bins
of equal mass (Spark's KLL sketches, one quantizer a feature). Vertices are distinct prefixes of paths, leaves distinct
paths; as in the paper leaves are counted apart, so edges = vertices + leaves - 1. Bytes are those of the leaves as
sorted arrays: a code of four bytes a plane, a count, and five numbers a feature. Orders of planes: compacted (low
fan-out near the root) and the reverse of it, the paper's upper bound. Fewer bins and fewer features show where the tree
begins to compress. Reported, no bar. Writes benches/results/tree.json. Says so where ../shared/data is absent.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from _shared import DATA, print_table, write_results
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.quantizer import Quantizer
from synopsis.sketch.moments import Comoments, Moments
from synopsis.sketch.tree import Tree
from synopsis.spark import session as sessions
from synopsis.spark.density import fit_quantizers

FILE = "brazil_weather_2025.parquet"
FEATURES = ("temp_c", "rh", "wind_ms", "press_mb", "precip_mm", "rad_kjm2", "dew_c", "wind_gust_ms")
BINS = 30
FEWER = ((8, 15), (8, 8), (8, 4), (5, 6), (3, 30), (3, 3))  #: features in the tree, bins of each

Codes = NDArray[np.int64]


def main() -> int:
    if not DATA.is_dir():
        print("the folder shared/data does not lie beside this repository: nothing to measure")
        return 0
    table = parquet.read_table(DATA / FILE, columns=["lat", "lon", "ts", *FEATURES])
    values = np.stack([table[name].to_numpy().astype(np.float64) for name in FEATURES])
    instants_us = table["ts"].to_numpy().astype("datetime64[us]").astype(np.int64)
    place = geohash.encode(table["lat"].to_numpy(), table["lon"].to_numpy(), 20)
    keys = np.stack((place, Bucket.parse("1mo").ordinals(instants_us)))
    quantizers = {bins: _quantizers(bins) for bins in sorted({BINS, *(bins for _, bins in FEWER)})}
    sessions.stop()

    full = _tree(keys, np.stack([_distinct(row) for row in values]))
    coarse = _tree(keys, _quantized(values, quantizers[BINS]))
    figures: dict[str, Any] = {"rows": table.num_rows, "bins": BINS}
    facts = {"full": _facts(full), "quantized": _facts(coarse)}
    names = ("vertices", "edges", "leaves", "bytes")
    print(f"{table.num_rows:,} rows, {len(FEATURES)} features, {BINS} bins each; planes: {' > '.join(coarse.planes)}")
    print_table(
        ["compacted", "full resolution", "quantized", "change"],
        [[name, facts["full"][name], facts["quantized"][name], f"{_change(facts, name):+.1f}%"] for name in names],
    )
    figures |= facts | {"change_percent": {name: round(_change(facts, name), 1) for name in names}}
    print_table(
        ["order of planes", "vertices", "edges"],
        [
            [f"{kind}, {order}", tree.vertices, tree.edges]
            for kind, compact in (("full", full), ("quantized", coarse))
            for order, tree in (("compacted", compact), ("reversed", compact.reversed()))
        ],
    )
    lines = []
    for count, bins in FEWER:
        tree = _tree(keys, _quantized(values, quantizers[bins])[:count])
        lines.append([f"{count} features, {bins} bins", tree.vertices, tree.leaves, table.num_rows / tree.leaves])
        figures[f"{count} features, {bins} bins"] = {"vertices": tree.vertices, "leaves": tree.leaves}
    print_table(["fewer", "vertices", "leaves", "rows a leaf"], lines)
    write_results("tree", figures)
    return 0


def _quantizers(bins: int) -> tuple[Quantizer, ...]:
    frame = sessions.session().read.parquet((DATA / FILE).as_uri())
    found = fit_quantizers(frame, list(FEATURES), bins=bins)[None]
    return tuple(found[name] for name in FEATURES)


def _distinct(row: NDArray[np.float64]) -> Codes:
    """Each value as the number of its kind; absent is the last."""
    return np.unique(row, return_inverse=True)[1].astype(np.int64)


def _quantized(values: NDArray[np.float64], quantizers: tuple[Quantizer, ...]) -> Codes:
    return np.stack([quantizer.codes(row) for quantizer, row in zip(quantizers, values, strict=True)])


def _tree(keys: Codes, codes: Codes) -> Tree:
    """The compacted tree of the distinct paths; statistics are left out, for their bytes are known."""
    planes = ("cell", "month", *FEATURES[: len(codes)])
    rows = np.ones(keys.shape[1], np.int64)
    nothing = Moments.empty(0, keys.shape[1]), Comoments.empty(0, keys.shape[1])
    return Tree.of(planes, np.concatenate((keys, codes)), rows, *nothing).compacted()


def _facts(tree: Tree) -> dict[str, Any]:
    size = tree.leaves * (4 * len(tree.planes) + 8 + 8 * 5 * len(FEATURES))
    return {
        "vertices": tree.vertices,
        "edges": tree.edges,
        "leaves": tree.leaves,
        "bytes": size,
        "planes": list(tree.planes),
        "fan_out": {plane: round(score, 3) for plane, score in tree.fan_out.items()},
        "vertices_reversed": tree.reversed().vertices,
    }


def _change(facts: dict[str, dict[str, Any]], name: str) -> float:
    return 100.0 * (facts["quantized"][name] / facts["full"][name] - 1.0)


if __name__ == "__main__":
    sys.exit(main())
