"""Fidelity: rows that are alike look alike, rows that are not are told apart, and a sample stands beside them."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from tests.query.test_paths import PLAIN
from tests.test_sketches import PATHS

from synopsis.core.errors import BadSource, UnknownColumn
from synopsis.fidelity import fidelity

REAL = pa.table(dict(zip(("temp", "rain", "half"), map(pa.array, PLAIN.values), strict=True)))


def drawn(size: int, seed: int, together: float = 0.8, shift: float = 0.0, missing: float = 0.1) -> pa.Table:
    random = np.random.default_rng(seed)
    first = random.standard_normal(size)
    second = together * first + np.sqrt(1 - together**2) * random.standard_normal(size)
    gone = random.random(size) < missing
    return pa.table({"x": first + shift, "y": pa.array(np.where(gone, np.nan, second))})


def test_a_report_has_three_looks_at_synthetic_rows_and_at_a_sample_of_the_same_size() -> None:
    report = PATHS.fidelity(REAL, seed=1)
    assert report.rows == REAL.num_rows // 2
    assert list(report.marginals) == ["temp", "rain", "half"]
    for mine, sample in report.marginals.values():
        assert mine.kolmogorov < 0.12
        assert sample.kolmogorov < 0.12
        assert mine.missing < 0.05
    assert max(report.correlations) < 0.2
    assert 0.4 < report.classifier[1] < 0.65
    frame = report.to_pandas()
    assert list(frame.columns) == ["synthetic", "sample"]
    assert frame.loc["classifier", "sample"] == report.classifier[1]
    assert "kolmogorov temp" in str(report)
    assert "<table" in report._repr_html_()
    assert set(report.figures()) == {"synthetic", "sample"}


def test_rows_of_the_same_kind_cannot_be_told_apart_and_others_can() -> None:
    real, alike = drawn(4_000, 1), drawn(4_000, 2)
    for other, more in (
        (drawn(4_000, 3, together=-0.8), "correlation_most"),
        (drawn(4_000, 3, shift=0.5), "marginals"),
        (drawn(4_000, 3, missing=0.5), "missing"),
    ):
        report = fidelity(real, other, alike)
        assert report.sample.classifier == pytest.approx(0.5, abs=0.03)
        assert report.synthetic.classifier > 0.55, more
    swapped = fidelity(real, drawn(4_000, 3, together=-0.8), alike)
    assert swapped.correlations[0] == pytest.approx(1.6, abs=0.1)
    assert swapped.correlations[1] < 0.05
    moved = fidelity(real, drawn(4_000, 3, shift=0.5), alike).marginals["x"][0]
    assert moved.wasserstein == pytest.approx(0.5, abs=0.05)
    assert moved.kolmogorov == pytest.approx(0.2, abs=0.03)
    assert fidelity(real, drawn(4_000, 3, missing=0.5), alike).marginals["y"][0].missing == pytest.approx(0.4, abs=0.03)


def test_numbers_that_came_with_32_bits_are_the_same_numbers() -> None:
    tenths = np.random.default_rng(1).integers(0, 50, (3, 3_000)) / 10.0
    real, alike = (pa.table({"x": tenths[at].astype(np.float32).astype(np.float64)}) for at in (0, 1))
    report = fidelity(real, pa.table({"x": tenths[2]}), alike)
    assert report.marginals["x"][0].kolmogorov < 0.05
    assert report.classifier[0] == pytest.approx(0.5, abs=0.04)


def test_a_sample_may_be_of_rows_of_its_own_and_columns_may_be_empty() -> None:
    report = PATHS.fidelity(REAL, rows=200, sample=REAL, seed=2)
    assert report.rows == 200
    nothing = pa.table({"x": np.ones(50), "y": pa.nulls(50, pa.float64())})
    assert fidelity(nothing, nothing, nothing).correlations == (0.0, 0.0)


def test_a_report_may_be_of_a_few_features() -> None:
    report = PATHS.fidelity(REAL.select(["half", "temp"]), seed=1, features=["half", "temp"])
    assert list(report.marginals) == ["half", "temp"]


def test_what_cannot_be_compared_is_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownColumn, match="no column 'rain'"):
        PATHS.fidelity(REAL.drop_columns(["rain"]))
    with pytest.raises(BadSource, match="needs 20"):
        PATHS.fidelity(REAL.slice(0, 30))
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(ModuleNotFoundError, match=r"synopsis\[fidelity\]"):
        PATHS.fidelity(REAL)
