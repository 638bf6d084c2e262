"""How much smaller is the paper's tree when its values are quantized? (Synopsis, 3.2.2, 3.2.3 and Table 1)

    python benches/tree.py

A tree of brazil_weather_2025 with ten planes: cell (geohash 4), bucket (month), and eight features. At full resolution
a vertex is a value as it stands in the data; quantized, it is one of 30 bins of equal mass, fitted to all rows through
Spark's KLL sketches. Leaves are grouped by Spark. Vertices are counted without the leaves that hold statistics, so
edges = vertices + leaves - 1. There is no bar but the paper's Table 1, which this repeats on other data: a month of 20
features there, four months of 8 here, so only signs and sizes can be compared.

Planes stand as given (cell, bucket, features), compacted (each time the plane with the least fan-out next), and
reversed (the compacted order upside down). Bytes are told three ways, the statistics by formula: `codes` is what sorted
arrays take (8 bytes a plane and 8 for the rows of each leaf); `with statistics` adds 8 x 5 a feature (count, mean,
spread, low, high) and 8 x 6 a pair to each leaf; `linked` is the paper's shape, with 16 bytes a vertex (its value, and
its place among its siblings), 8 an edge, and those statistics.
Writes benches/results/tree.json and docs/figures/tree.png.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from _shared import DATA, FIGURES, print_table, write_results
from synopsis.grid.buckets import Bucket
from synopsis.grid.quantizer import Quantizer
from synopsis.sketch.moments import Comoments, Moments
from synopsis.sketch.tree import Tree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE = DATA / "brazil_weather_2025.parquet"
FEATURES = ("temp_c", "rh", "wind_ms", "press_mb", "precip_mm", "rad_kjm2", "dew_c", "wind_gust_ms")
PLANES = ("cell", "bucket", *FEATURES)
BINS = (30, 15, 8, 4)
WIDTHS = (8, 5, 3)  # how many of the features are planes
PAPER = {"vertices": -60.1, "edges": -57.2, "leaves": -22.7, "linked bytes": -62.4}


def observed() -> DataFrame:
    """Cell, bucket, and every feature as a double or null."""
    from pyspark.sql import functions as sf

    from synopsis.spark import expressions, session
    from synopsis.spark.density import present

    rows = session.session().read.parquet(str(SOURCE))
    month = expressions.bucket(sf.unix_micros(sf.col("ts").cast("timestamp")), Bucket.parse("1mo"), "UTC")
    placed = rows.select(
        sf.col("lat").alias("latitude"),
        sf.col("lon").alias("longitude"),
        month.alias("bucket"),
        *(present(rows, name).alias(name) for name in FEATURES),
    )
    return expressions.with_cell(placed, 20).select(*PLANES)


def coded(batches: Iterator[pa.RecordBatch], quantizers: dict[str, Quantizer]) -> Iterator[pa.RecordBatch]:
    """In an executor: values to the codes of their bins."""
    for batch in batches:
        codes = {
            name: quantizer.codes(batch[name].to_numpy(zero_copy_only=False)) for name, quantizer in quantizers.items()
        }
        yield pa.RecordBatch.from_pydict({"cell": batch["cell"], "bucket": batch["bucket"], **codes})


def tree_of(frame: DataFrame) -> Tree:
    """The tree of the different rows of this frame; a plane's codes count its different values, absent among them."""
    table = frame.groupBy(*PLANES).count().toArrow()
    columns = [table[plane].to_numpy() for plane in PLANES]  # nulls become NaN, which is one value of its own
    codes = np.stack([np.unique(column, return_inverse=True)[1] for column in columns])
    return _tree(PLANES, codes, table["count"].to_numpy())


def _tree(planes: tuple[str, ...], codes: Any, rows: Any) -> Tree:
    """Without statistics, whose bytes are told by formula: those of a million leaves would fill this machine."""
    return Tree.of(planes, codes, rows, Moments.empty(0, rows.size), Comoments.empty(0, rows.size))


def narrowed(tree: Tree, features: int) -> Tree:
    """The tree of the first features only."""
    return _tree(tree.planes[: 2 + features], tree.codes[: 2 + features], tree.rows)


def trees() -> dict[str, Tree]:
    """At full resolution, and with fewer and fewer bins; planes as given."""
    from synopsis.spark import session
    from synopsis.spark.density import fit_quantizers

    kinds = "cell bigint, bucket bigint, " + ", ".join(f"{name} bigint" for name in FEATURES)
    try:
        frame = observed().cache()
        found = {"full resolution": tree_of(frame)}
        for bins in BINS:
            quantizers = fit_quantizers(frame, FEATURES, bins=bins)[None]
            found[f"{bins} bins"] = tree_of(frame.mapInArrow(partial(coded, quantizers=quantizers), kinds))
        return found
    finally:
        session.stop()


def figures_of(tree: Tree) -> dict[str, Any]:
    """One tree in one order of its planes."""
    features = len(tree.planes) - 2
    statistics = tree.leaves * 8 * (5 * features + 6 * features * (features - 1) // 2)
    return {
        "leaves": tree.leaves,
        "vertices": tree.vertices,
        "edges": tree.edges,
        "codes bytes": tree.nbytes,
        "with statistics bytes": tree.nbytes + statistics,
        "linked bytes": 16 * tree.vertices + 8 * tree.edges + statistics,
        "rows per leaf": round(float(tree.rows.sum() / tree.leaves), 2),
        "fan_out": {plane: round(score, 3) for plane, score in tree.fan_out.items()},
    }


def orders(tree: Tree) -> dict[str, dict[str, Any]]:
    """The same leaves with their planes in three orders."""
    compacted = tree.compacted()
    return {
        name: figures_of(each)
        for name, each in (("as given", tree), ("compacted", compacted), ("reversed", compacted.reversed()))
    }


def measure() -> dict[str, Any]:
    found = trees()
    return {
        "rows": int(next(iter(found.values())).rows.sum()),
        "trees": {
            name: {str(width): orders(narrowed(tree, width)) for width in WIDTHS} for name, tree in found.items()
        },
    }


def change(before: float, after: float) -> float:
    """In percent."""
    return round(100.0 * (after - before) / before, 1)


def show(result: dict[str, Any]) -> None:
    widest = str(WIDTHS[0])
    full, quantized = (result["trees"][name][widest] for name in ("full resolution", f"{BINS[0]} bins"))
    print(f"{result['rows']:,} rows, {len(PLANES)} planes; quantized: {BINS[0]} bins a feature; planes compacted\n")
    before, after = full["compacted"], quantized["compacted"]
    print_table(
        ["", "full resolution", "quantized", "change %", "the paper's %"],
        [
            [name, before[name], after[name], change(before[name], after[name]), PAPER.get(name, "")]
            for name in before
            if name not in ("fan_out", "rows per leaf")
        ],
    )
    print()
    print_table(
        ["order of the planes", "vertices", "edges", "against compacted", "vertices, quantized", "against full %"],
        [
            [
                order,
                full[order]["vertices"],
                full[order]["edges"],
                f"{full[order]['vertices'] / before['vertices']:.2f}",
                quantized[order]["vertices"],
                change(full[order]["vertices"], quantized[order]["vertices"]),
            ]
            for order in full
        ],
    )
    for name, tree in (("full resolution", full), ("quantized", quantized)):
        for order in tree:
            scores = ", ".join(f"{plane} {score:.4g}" for plane, score in tree[order]["fan_out"].items())
            print(f"\nfan-out, {name}, {order}, from the root: {scores}")
    print()
    print_table(
        ["where it starts to compress", "features", "leaves", "rows per leaf", "vertices", "linked MB"],
        [
            [
                name,
                int(width),
                each["compacted"]["leaves"],
                each["compacted"]["rows per leaf"],
                each["compacted"]["vertices"],
                round(each["compacted"]["linked bytes"] / 1e6, 1),
            ]
            for name, by_width in result["trees"].items()
            for width, each in by_width.items()
        ],
    )
    print("\nbar: none; the paper's Table 1 stands beside ours")


def draw(path: Path, result: dict[str, Any]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8))
    names = list(result["trees"])
    for width, marker in zip(WIDTHS, "osD", strict=True):
        ratios = [result["trees"][name][str(width)]["compacted"]["rows per leaf"] for name in names]
        left.plot(range(len(names)), ratios, f"{marker}-", label=f"{width} features")
    left.axhline(1.0, color="0.6", linewidth=0.8, linestyle="--")
    left.set(yscale="log", ylabel="rows per leaf", title="Where the tree starts to compress")
    left.set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names], fontsize=8)
    left.legend(frameon=False, fontsize=9)
    for name in names[:2]:
        scores = result["trees"][name][str(WIDTHS[0])]["compacted"]["fan_out"]
        right.plot(np.cumprod(list(scores.values())), range(1, len(scores) + 1), "o-", label=name)
    right.set(xscale="log", xlabel="vertices of a plane", ylabel="depth", title="The compacted tree, root on top")
    right.set_yticks(range(1, 1 + len(PLANES)))
    right.invert_yaxis()
    right.legend(frameon=False, fontsize=9)
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100, metadata={"Software": None})
    plt.close(figure)


def main() -> int:
    if not SOURCE.exists():
        print(f"no data: {SOURCE} is absent, nothing was measured")
        return 0
    result = measure()
    show(result)
    write_results("tree", result)
    draw(FIGURES / "tree.png", result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
