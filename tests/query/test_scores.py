"""Scores: within their bins values lean where the others lead to expect them, and bins stay evenly filled."""

from __future__ import annotations

import numpy as np
import pytest

from synopsis.query.scores import Scores
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import Strata, fitted

ROWS, BINS = 6_000, 6


def strata_of(values: np.ndarray) -> Strata:
    """One place and period with all paths, a row a day, so that paths are in the order of rows."""
    rows, days = np.zeros(values.shape[1], np.int64), np.arange(values.shape[1])
    scales = Scales.fit(values)
    return fitted(scales, rows, rows, days, scales.codes(values), np.ones(values.shape[1], np.bool_), BINS)


def together(correlation: float, missing: float = 0.0) -> np.ndarray:
    random = np.random.default_rng(1)
    first = random.standard_normal(ROWS)
    second = correlation * first + np.sqrt(1 - correlation**2) * random.standard_normal(ROWS)
    second[random.random(ROWS) < missing] = np.nan
    return np.stack((first, second))


def within(strata: Strata, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    codes = strata.codes.astype(np.intp)
    stratum = np.zeros(codes.shape[1], np.intp)
    return codes, Scores.of(strata, list(range(len(codes)))).levels(codes, stratum, np.random.default_rng(seed))


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.95, -0.95])
def test_values_within_bins_go_together_as_closely_as_they_do_in_the_rows(correlation: float) -> None:
    values = together(correlation)
    strata = strata_of(values)
    codes, levels = within(strata)
    # The fine structure that bins do not tell: where rows lie within them, really and as drawn.
    order = np.argsort(values, axis=1).argsort(axis=1) / ROWS
    real = np.stack([_ranks_within(order[at], codes[at]) for at in (0, 1)])
    assert np.corrcoef(levels)[0, 1] == pytest.approx(np.corrcoef(real)[0, 1], abs=0.06)


def _ranks_within(order: np.ndarray, code: np.ndarray) -> np.ndarray:
    ranks = np.empty(order.size)
    for each in np.unique(code):
        mine = code == each
        ranks[mine] = order[mine].argsort().argsort() / mine.sum()
    return ranks


def test_bins_are_filled_evenly_whatever_goes_together() -> None:
    codes, levels = within(strata_of(together(0.95, missing=0.3)))
    assert levels.min() >= 0.0
    assert levels.max() <= 1.0
    for code, level in zip(codes, levels, strict=True):
        for each in np.unique(code):
            share = np.sort(level[code == each])
            assert np.abs(share - (np.arange(share.size) + 0.5) / share.size).max() <= 0.51 / share.size + 1e-9


def test_no_row_and_one_row_are_drawn_too() -> None:
    strata = strata_of(together(0.5))
    scores = Scores.of(strata, [1])
    nobody = np.empty((1, 0), np.intp)
    assert scores.levels(nobody, nobody[0], np.random.default_rng(1)).shape == (1, 0)
    (one,) = scores.levels(np.array([[2]]), np.array([0]), np.random.default_rng(1))
    assert 0.0 <= one[0] <= 1.0
