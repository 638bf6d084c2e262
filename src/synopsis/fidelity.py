"""Fidelity: how well synthetic rows stand for real ones, beside how well a sample of the same size does.

Three looks, from the easy to the hard. Marginals: of each feature the largest distance of the two distribution
functions (Kolmogorov & Smirnov), how far values would have to move to turn the one into the other (Wasserstein), in
standard deviations, and the shares of missing values. Correlations: how much those of pairs differ. And a classifier
that learns to tell synthetic from real rows: on rows that it has not seen it orders a share of pairs rightly, the area
under its curve; at 0.5 it cannot tell them apart.

Real rows are best such that the sketch was not built from; the sample is of others again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synopsis.core.errors import BadSource, UnknownColumn

Floats = NDArray[np.float64]

#: Rows of each kind that the classifier looks at, at most: half to learn, half to be examined.
_MOST: Final = 50_000

#: Rows of each kind, at least.
_LEAST: Final = 20


@dataclass(frozen=True)
class Marginal:
    """How one feature's values differ from those of real rows."""

    feature: str
    kolmogorov: float  #: largest difference of the shares of rows below any value
    wasserstein: float  #: in standard deviations of the real values
    missing: float  #: difference of the shares of missing values


@dataclass(frozen=True)
class Look:
    """What one set of rows is like, beside real ones."""

    marginals: tuple[Marginal, ...]
    correlation_most: float  #: largest absolute difference of the correlation of a pair
    correlation_mean: float
    classifier: float  #: area under the curve of one who tells the rows from real ones: 0.5 is perfect

    def figures(self) -> dict[str, float]:
        """The three looks, a few numbers."""
        return {
            "largest Kolmogorov distance": max(each.kolmogorov for each in self.marginals),
            "mean Wasserstein distance": float(np.mean([each.wasserstein for each in self.marginals])),
            "largest correlation difference": self.correlation_most,
            "mean correlation difference": self.correlation_mean,
            "classifier": self.classifier,
        }


@dataclass(frozen=True)
class Fidelity:
    """Synthetic rows, and a sample of the same size, each beside real rows."""

    rows: int
    synthetic: Look
    sample: Look

    @property
    def marginals(self) -> dict[str, tuple[Marginal, Marginal]]:
        """By feature: of synthetic rows, and of the sample."""
        pairs = zip(self.synthetic.marginals, self.sample.marginals, strict=True)
        return {mine.feature: (mine, theirs) for mine, theirs in pairs}

    @property
    def correlations(self) -> tuple[float, float]:
        """The largest difference of a correlation: of synthetic rows, and of the sample."""
        return self.synthetic.correlation_most, self.sample.correlation_most

    @property
    def classifier(self) -> tuple[float, float]:
        """How well synthetic rows, and those of the sample, are told from real ones; 0.5: not at all."""
        return self.synthetic.classifier, self.sample.classifier

    def figures(self) -> dict[str, dict[str, float]]:
        """A few numbers of both."""
        return {"synthetic": self.synthetic.figures(), "sample": self.sample.figures()}

    def to_pandas(self) -> Any:
        """The report as a frame: a line for each figure, a column for synthetic rows and for the sample."""
        return self._table().to_pandas().set_index("figure")

    def _table(self) -> pa.Table:
        names: list[str] = []
        columns: tuple[list[float], list[float]] = ([], [])
        for feature, both in self.marginals.items():
            for part in ("kolmogorov", "wasserstein", "missing"):
                names.append(f"{part} {feature}")
                for column, each in zip(columns, both, strict=True):
                    column.append(getattr(each, part))
        for part in ("correlation_most", "correlation_mean", "classifier"):
            names.append(part.replace("_", " "))
            for column, look in zip(columns, (self.synthetic, self.sample), strict=True):
                column.append(getattr(look, part))
        return pa.table({"figure": names, "synthetic": columns[0], "sample": columns[1]})

    def __str__(self) -> str:
        width = max(map(len, self._table()["figure"].to_pylist()))
        lines = [f"{self.rows:,} rows".ljust(width) + "  synthetic   sample"]
        for row in self._table().to_pylist():
            lines.append(f"{row['figure'].ljust(width)}  {row['synthetic']:9.4f}  {row['sample']:7.4f}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(self.to_pandas().to_html(float_format="{:.4f}".format))


def as_table(rows: Any, features: tuple[str, ...]) -> pa.Table:
    """The features of rows in memory: an Arrow table, a pandas frame, or what else gives Arrow."""
    table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    missing = [name for name in features if name not in table.column_names]
    if missing:
        raise UnknownColumn(missing[0], tuple(table.column_names))
    return table.select(list(features))


def halves(real: pa.Table, sample: pa.Table | None, rows: int | None, seed: int) -> tuple[pa.Table, pa.Table]:
    """Real rows to compare with, and an equal-size sample: of rows that are given for it, or of the same rows."""
    random = np.random.default_rng(seed)
    order = random.permutation(real.num_rows)
    if sample is None:
        size = real.num_rows // 2 if rows is None else min(rows, real.num_rows // 2)
        first, second = order[: real.num_rows - size], order[real.num_rows - size :]
        return _enough(real.take(first)), _enough(real.take(second))
    size = min(real.num_rows if rows is None else rows, sample.num_rows)
    return _enough(real), _enough(sample.take(random.permutation(sample.num_rows)[:size]))


def _enough(rows: pa.Table) -> pa.Table:
    if rows.num_rows < _LEAST:
        raise BadSource(f"there are {rows.num_rows} rows to compare; fidelity needs {_LEAST} of each kind or more")
    return rows


def fidelity(real: pa.Table, synthetic: pa.Table, sample: pa.Table, seed: int = 0) -> Fidelity:
    """Synthetic rows and a sample beside real rows, of the same columns. Cost: sorting, and a classifier twice."""
    values = _values(real)
    looks = (_look(values, _values(each), real.column_names, seed) for each in (synthetic, sample))
    return Fidelity(synthetic.num_rows, *looks)


def _values(table: pa.Table) -> Floats:
    """Rows x features, NaN where there is none, as numbers of 32 bits: real columns may have come as such, and 0.1 is
    another number then, which a classifier would tell apart at once."""
    columns = [column.cast(pa.float64()).to_numpy(zero_copy_only=False) for column in table.columns]
    return np.stack(columns, axis=1).astype(np.float32).astype(np.float64)


def _look(real: Floats, others: Floats, names: list[str], seed: int) -> Look:
    marginals = tuple(_marginal(name, real[:, at], others[:, at]) for at, name in enumerate(names))
    differences = np.abs(_correlations(real) - _correlations(others))[np.triu_indices(len(names), 1)]
    known = differences[~np.isnan(differences)]
    most, mean = (float(known.max()), float(known.mean())) if known.size else (0.0, 0.0)
    return Look(marginals, most, mean, _told_apart(real, others, seed))


def _marginal(name: str, real: Floats, others: Floats) -> Marginal:
    try:
        from scipy.stats import ks_2samp, wasserstein_distance
    except ModuleNotFoundError as problem:
        remedy = "fidelity needs scipy; run pip install 'synopsis[fidelity]'"
        raise ModuleNotFoundError(remedy, name="scipy") from problem
    mine, theirs = real[~np.isnan(real)], others[~np.isnan(others)]
    missing = abs(float(np.isnan(real).mean() - np.isnan(others).mean()))
    if not mine.size or not theirs.size:
        alike = float(mine.size != theirs.size)
        return Marginal(name, alike, alike, missing)
    distance = float(ks_2samp(mine, theirs, method="asymp").statistic)
    spread = float(mine.std()) or 1.0
    return Marginal(name, distance, float(wasserstein_distance(mine, theirs)) / spread, missing)


def _correlations(values: Floats) -> Floats:
    """Correlations of all pairs, of the rows that have both; NaN where there is none."""
    present = ~np.isnan(values)
    centred = np.where(present, values - np.where(present.any(axis=0), _means(values, present), 0.0), 0.0)
    weight = present.astype(np.float64)
    count = np.maximum(weight.T @ weight, 1.0)
    sums = centred.T @ weight  # of a feature, over the rows that have the other
    squares = np.square(centred).T @ weight - sums**2 / count
    cross = centred.T @ centred - sums * sums.T / count
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(cross / np.sqrt(squares * squares.T))


def _means(values: Floats, present: NDArray[np.bool_]) -> Floats:
    return np.asarray(np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1))


def _told_apart(real: Floats, others: Floats, seed: int) -> float:
    """The share of pairs, of a real row and another, that a classifier orders rightly which has seen neither."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.metrics import roc_auc_score
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError as problem:
        remedy = "fidelity needs scikit-learn; run pip install 'synopsis[fidelity]'"
        raise ModuleNotFoundError(remedy, name="sklearn") from problem
    random = np.random.default_rng(seed)
    size = min(len(real), len(others), _MOST)
    rows = np.concatenate([each[random.permutation(len(each))[:size]] for each in (real, others)])
    kind = np.repeat([0, 1], size)
    order = random.permutation(2 * size)
    learnt, examined = order[:size], order[size:]
    rows = _varied(rows, learnt)
    if not rows.shape[1]:
        return 0.5  # nothing that could tell anything apart
    with threadpool_limits(1):  # threads that wait for each other take minutes on a busy machine
        model = HistGradientBoostingClassifier(random_state=seed).fit(rows[learnt], kind[learnt])
        return float(roc_auc_score(kind[examined], model.predict_proba(rows[examined])[:, 1]))


def _varied(rows: Floats, learnt: NDArray[np.intp]) -> Floats:
    """The columns that differ among the rows to learn from: their values, or else whether there is one."""
    columns = []
    for column in rows.T:
        for each in (column, np.isnan(column).astype(np.float64)):
            known = each[learnt][~np.isnan(each[learnt])]
            if known.size and known.min() < known.max():
                columns.append(each)
                break
    return np.stack(columns, axis=1) if columns else np.empty((len(rows), 0))
