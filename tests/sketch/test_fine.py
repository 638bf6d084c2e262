"""What all rows tell of fine bins is exact, and the same in whatever order they come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch.fine import FineSums
from synopsis.sketch.scales import ABSENT, Scales

RANDOM = np.random.default_rng(5)
COUNT = 60_000
KINDS = {
    "a grid": np.round(RANDOM.normal(20, 5, COUNT), 1),
    "a grid that some values are not on": np.where(
        RANDOM.random(COUNT) < 0.03, 0.13, RANDOM.integers(0, 20, COUNT) / 2
    ),
    "smooth": RANDOM.normal(101_325, 800, COUNT),
    "an atom and a tail": np.where(RANDOM.random(COUNT) < 0.8, 0.0, RANDOM.lognormal(0, 1, COUNT)),
    "few values on no grid": RANDOM.choice([0.0, 3.45234, 5.7539, 18.41248, 19.56326], COUNT),
    "often absent": np.where(RANDOM.random(COUNT) < 0.6, np.nan, RANDOM.normal(size=COUNT)),
}


def informed(values: np.ndarray, sampled: int = 3_000) -> Scales:
    """Scales that were fitted to the first values, and know of all of them."""
    present = values[~np.isnan(values)]
    scales = Scales.fit(values[None, :sampled], 250, present.min(keepdims=True), present.max(keepdims=True))
    sums = [FineSums.of_values(scales, part[None]) for part in (values[:20_000], values[20_000:])]
    return (sums[0] + sums[1]).informing(scales, FineSums.of_values(scales, values[None, :sampled]))


@pytest.mark.parametrize("kind", KINDS)
def test_means_and_variances_of_fine_bins_are_those_of_all_rows(kind):
    values = KINDS[kind]
    scales = informed(values)
    codes = scales.codes(values[None])[0]
    present, codes = values[codes != ABSENT], codes[codes != ABSENT]
    bins = scales.quantizers[0].bins
    rows = np.bincount(codes, minlength=bins)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(codes, present, minlength=bins) / rows
        variance = np.bincount(codes, (present - mean[codes]) ** 2, minlength=bins) / rows
    seen = rows > 0
    near = 2e-5 * np.ptp(present) + 1e-6 * np.abs(present).max()  # a tick, and single precision
    weight = rows[seen] / rows.sum()
    off = np.abs(((scales.means[0] - mean)[seen] * weight).sum())
    if kind == "a grid that some values are not on":  # where in its tick a value lies only the sample knows
        assert off < 1.5e-3  # ticks alone would be off by 3.9e-3
    else:
        assert off < near / 4
        assert np.abs((scales.means[0] - mean)[seen]).max() < near
        assert np.abs((scales.variances(0) - variance)[seen]).max() < 0.02 * variance[seen].max() + near**2


@given(st.permutations(range(6)), st.integers(1, 5))
def test_sums_come_out_the_same_in_any_order_and_grouping(order, cut):
    values = np.stack([KINDS["smooth"], KINDS["an atom and a tail"]])
    scales = Scales.fit(values[:, :2_000])
    parts = [FineSums.of_values(scales, values[:, each::6]) for each in order]
    left, right = parts[:cut], parts[cut:]
    grouped = sum(left[1:], left[0]) + sum(right[1:], right[0])
    whole = FineSums.of_values(scales, values)
    assert all((mine == theirs).all() for mine, theirs in zip(grouped.numbers, whole.numbers, strict=True))


def test_fine_bins_without_rows_stay_as_they_were():
    values = KINDS["smooth"]
    scales = Scales.fit(values[None, :2_000])
    none = FineSums.of_values(scales, np.empty((1, 0)))
    same = none.informing(scales, FineSums.of_values(scales, values[None, :2_000]))
    assert (same.means[0] == scales.means[0]).all()
    assert (same.spreads[0] == scales.spreads[0]).all()
