"""Are 80% of surface temperatures within 0.5% of the mean of their bin, with 29 bins? (Synopsis, 3.2.3, Figure 4)

    python benches/quantization.py

Bins are fitted through Spark's KLL sketches, as a build does, and every value is compared with the mean of its bin;
errors are divided by the range of the values. The paper's sentence can be read in several ways, and all are measured:
by value (values that are themselves within 0.5%), by bin (values whose bin has a root-mean-square error within 0.5%),
and pooled (the root-mean-square error of the best-served 80%). By value there is a ceiling that no bins can pass.
KLL tosses coins, so figures differ a little from run to run.
Writes benches/results/quantization.json and docs/figures/quantization.png.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synopsis.grid.density import Density, Floats, distinct
from synopsis.grid.quantizer import Quantizer

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
DATA = ROOT.parent / "shared" / "data" / "surface_temperatures_1d.parquet"
BINS, TOLERANCE, KELVIN, WANTED = 29, 0.005, 0.25, 0.8


@dataclass(frozen=True)
class Fidelity:
    """How well the means of bins stand for the values in them."""

    count: Floats  #: values in each bin
    nrmse: Floats  #: root-mean-square error of each bin, as a share of the range of all values
    error: Floats  #: error of each different value, in its own unit
    reach: float  #: range of all values
    weights: Floats

    @classmethod
    def of(cls, quantizer: Quantizer, values: Floats, weights: Floats) -> Fidelity:
        codes, reach = quantizer.codes(values), float(np.ptp(values))
        count = np.bincount(codes, weights, minlength=quantizer.bins)
        mean = np.bincount(codes, weights * values, minlength=quantizer.bins) / count
        error = values - mean[codes]
        spread = np.bincount(codes, weights * error**2, minlength=quantizer.bins)
        return cls(count, np.sqrt(spread / count) / reach, error, reach, weights)

    def share_by_bin(self, tolerance: float = TOLERANCE) -> float:
        return float(self.count[self.nrmse <= tolerance].sum() / self.count.sum())

    def share_by_value(self, within: float) -> float:
        return float(self.weights[np.abs(self.error) <= within].sum() / self.weights.sum())

    @property
    def overall(self) -> float:
        return float(np.sqrt(np.average(self.error**2, weights=self.weights)) / self.reach)

    def best(self, share: float) -> tuple[float, float]:
        """The error of the best bins that hold this share of the values: of all of them together, and of the worst."""
        order = np.argsort(self.nrmse)
        held = order[: 1 + np.searchsorted(np.cumsum(self.count[order]) / self.count.sum(), share)]
        pooled = np.sqrt(np.average(self.nrmse[held] ** 2, weights=self.count[held]))
        return float(pooled), float(self.nrmse[held].max())


def ceiling(values: Floats, weights: Floats, bins: int, within: float) -> float:
    """The largest share of values within this distance of one of `bins` points, wherever those are put.

    No bins of any kind can do better by value. The best windows of that width, found by dynamic programming.
    """
    cumulative = np.concatenate([[0.0], np.cumsum(weights)]) / weights.sum()
    start = np.searchsorted(values, values - 2.0 * within)
    best = np.zeros(values.size + 1)
    for _ in range(bins):
        best = np.maximum.accumulate(np.concatenate([[0.0], cumulative[1:] - cumulative[start] + best[start]]))
    return float(best[-1])


def fit_on_spark() -> tuple[Quantizer, float]:
    from synopsis.spark import session
    from synopsis.spark.density import fit_quantizers

    spark = session.session("local[2]")
    try:
        frame = spark.read.parquet(str(DATA))
        started = time.perf_counter()
        quantizer = fit_quantizers(frame, ["kelvin"], bins=BINS)[None]["kelvin"]
        return quantizer, time.perf_counter() - started
    finally:
        session.stop()


def fewest(values: Floats, weights: Floats, measure: str) -> int | None:
    """The fewest bins with which four fifths of the values are within the tolerance."""
    for bins in range(20, 81):
        fidelity = Fidelity.of(Quantizer.fit(values, weights, bins), values, weights)
        by_value = fidelity.share_by_value(TOLERANCE * fidelity.reach)
        if (by_value if measure == "value" else fidelity.share_by_bin()) >= WANTED:
            return bins
    return None


def measure() -> tuple[dict[str, Any], Quantizer, Floats, Floats, Fidelity]:
    import pyarrow.parquet as pq

    quantizer, seconds = fit_on_spark()
    values, weights = distinct(pq.read_table(DATA)["kelvin"].to_numpy().astype(np.float64))
    fidelity = Fidelity.of(quantizer, values, weights)
    exact = Fidelity.of(Quantizer.fit(values, weights, BINS), values, weights)
    pooled, worst = fidelity.best(WANTED)
    low, high = quantizer.bounds(np.arange(quantizer.bins), low=quantizer.low, high=quantizer.high)
    share = fidelity.count / fidelity.count.sum()
    result = {
        "values": int(weights.sum()),
        "bins": quantizer.bins,
        "range_kelvin": round(fidelity.reach, 3),
        "fit_seconds": round(seconds, 2),
        "share_by_bin_within_0.5%": round(fidelity.share_by_bin(), 4),
        "share_by_value_within_0.5%": round(fidelity.share_by_value(TOLERANCE * fidelity.reach), 4),
        "share_by_value_within_0.25K": round(fidelity.share_by_value(KELVIN), 4),
        "ceiling_by_value_within_0.5%": round(ceiling(values, weights, BINS, TOLERANCE * fidelity.reach), 4),
        "ceiling_by_value_within_0.25K": round(ceiling(values, weights, BINS, KELVIN), 4),
        "nrmse_of_best_80%_of_values": round(pooled, 5),
        "worst_bin_among_best_80%": round(worst, 5),
        "nrmse_overall": round(fidelity.overall, 5),
        "nrmse_lowest_bin": round(float(fidelity.nrmse[0]), 5),
        "nrmse_highest_bin": round(float(fidelity.nrmse[-1]), 5),
        "mass_of_fullest_bin_in_fair_shares": round(float(share.max() * BINS), 3),
        "mass_of_emptiest_bin_in_fair_shares": round(float(share.min() * BINS), 3),
        "from_all_values_instead_of_a_sketch": {
            "share_by_bin_within_0.5%": round(exact.share_by_bin(), 4),
            "share_by_value_within_0.5%": round(exact.share_by_value(TOLERANCE * exact.reach), 4),
        },
        "fewest_bins_for_80%_by_bin": fewest(values, weights, "bin"),
        "fewest_bins_for_80%_by_value": fewest(values, weights, "value"),
        "per_bin": [
            {"low": round(a, 3), "high": round(b, 3), "share": round(c, 5), "nrmse": round(d, 5)}
            for a, b, c, d in zip(low.tolist(), high.tolist(), share.tolist(), fidelity.nrmse.tolist(), strict=True)
        ],
    }
    return result, quantizer, values, weights, fidelity


def draw(path: Path, quantizer: Quantizer, values: Floats, weights: Floats, fidelity: Fidelity) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    density = Density.of(values, weights)
    places = np.linspace(values[0] - 2.0, values[-1] + 2.0, 1500)
    borders = np.concatenate([[quantizer.low], quantizer.edges, [quantizer.high]])
    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(8.0, 6.0), height_ratios=[3, 2])
    top.plot(places, density.pdf(places), color="black", linewidth=1.2)
    top.vlines(borders, 0.0, density.pdf(borders), color="tab:blue", linewidth=0.9)
    top.set(ylabel="density (1/K)", ylim=(0.0, None), title=f"Surface temperature, {quantizer.bins} bins of equal mass")
    error = np.abs(fidelity.error) / fidelity.reach
    bottom.plot(values, error * 100.0, ".", color="0.75", markersize=1.5, label="value")
    bottom.stairs(fidelity.nrmse * 100.0, borders, baseline=None, color="tab:blue", linewidth=1.5, label="bin (RMS)")
    bottom.axhline(TOLERANCE * 100.0, color="tab:red", linewidth=0.8, linestyle="--", label="0.5%")
    bottom.set(xlabel="kelvin", ylabel="error (% of range)", yscale="log", ylim=(0.02, 30.0))
    bottom.legend(loc="upper center", ncols=3, frameon=False, fontsize=9)
    for panel in (top, bottom):
        panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def main() -> int:
    if not DATA.exists():
        print(f"no data: {DATA} is absent, nothing was measured")
        return 0
    result, quantizer, values, weights, fidelity = measure()
    for name, value in result.items():
        if name != "per_bin":
            print(f"{name:40} {value}")
    print(f"\n{'bin':>4}{'from':>10}{'to':>10}{'share %':>9}{'NRMSE %':>9}")
    for number, row in enumerate(result["per_bin"]):
        print(f"{number:4}{row['low']:10.2f}{row['high']:10.2f}{row['share'] * 100:9.2f}{row['nrmse'] * 100:9.2f}")
    pooled, worst = result["nrmse_of_best_80%_of_values"], result["worst_bin_among_best_80%"]
    by_bin, by_value = result["share_by_bin_within_0.5%"], result["share_by_value_within_0.5%"]
    print("\n80% of values within 0.5%?")
    print(f"  by value  {by_value:.1%}; no {BINS} bins can exceed {result['ceiling_by_value_within_0.5%']:.1%}")
    print(f"  by bin    {by_bin:.1%} are in bins with an NRMSE within 0.5%")
    print(f"  pooled    the best-served 80% have an NRMSE of {pooled:.2%}; the worst bin among them {worst:.2%}")
    written = ROOT / "benches" / "results" / "quantization.json"
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    draw(ROOT / "docs" / "figures" / "quantization.png", quantizer, values, weights, fidelity)
    return 0


if __name__ == "__main__":
    sys.exit(main())
