"""Density: against the textbook sum of Gaussians, and the promises that the bins rest on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from synopsis.grid import density as module
from synopsis.grid.density import Density, distinct, silverman

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
samples = st.lists(numbers, min_size=1, max_size=60)
random = np.random.default_rng(7)


def test_the_kernel_on_the_lattice_is_the_gaussian_of_scipy():
    borders = (np.arange(module._KERNEL.size + 1) - module._KERNEL.size / 2) / module.CELLS_PER_BANDWIDTH
    assert np.abs(module._KERNEL - np.diff(stats.norm.cdf(borders))).max() < 1e-8


def test_distinct_values_ascend_and_keep_the_weight_of_all_finite_ones():
    values, weights = distinct([3.0, 1.0, np.nan, 3.0, np.inf, 5.0], [1, 2, 4, 8, 16, 0])
    assert values.tolist() == [1.0, 3.0]
    assert weights.tolist() == [2.0, 9.0]


def test_values_and_weights_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="2 values came with 1 weights"):
        distinct([1.0, 2.0], [1.0])


def test_silverman_is_the_formula_in_the_book():
    values = random.normal(10.0, 3.0, 5_000)
    spread = min(values.std(), stats.iqr(values) / 1.34)
    assert silverman(values) == pytest.approx(0.9 * spread * 5_000**-0.2, rel=1e-3)


def test_silverman_counts_the_observations_that_the_weights_stand_for():
    values, weights = [1.0, 2.0, 3.0, 7.0], [5, 1, 3, 2]
    assert silverman(values, weights) == pytest.approx(silverman(np.repeat(values, weights)))
    assert silverman([1.0, 2.0], [1000, 1000]) < silverman([1.0, 2.0], [10, 10])


def test_silverman_falls_back_on_the_deviation_when_the_quartiles_agree():
    values = np.concatenate([np.zeros(90), np.arange(1.0, 11.0)])
    assert silverman(values) == pytest.approx(0.9 * values.std() * 100**-0.2)


def test_silverman_of_a_constant_is_nothing():
    assert silverman([4.0, 4.0]) == 0.0
    assert silverman([]) == 0.0


def test_silverman_of_the_largest_doubles_is_finite():
    assert 0.0 < silverman([-1.7e308, 0.0, 1.7e308]) < np.inf


@pytest.mark.parametrize("bandwidth", [0.05, 0.4, 3.0])
def test_cdf_and_pdf_are_those_of_the_sum_of_gaussians(bandwidth: float):
    values, weights = random.normal(280.0, 8.0, 400), random.integers(1, 9, 400)
    density = Density.of(values, weights, bandwidth=bandwidth)
    places = np.linspace(250.0, 310.0, 777)
    away = (places[:, None] - values) / bandwidth
    share = weights / weights.sum()
    assert np.abs(density.cdf(places) - stats.norm.cdf(away) @ share).max() < 2e-4
    truth = stats.norm.pdf(away) @ share / bandwidth
    assert np.abs(density.pdf(places) - truth).max() < 0.01 * truth.max()


def test_one_kernel_errs_by_less_than_a_thousandth_of_its_mass():
    density = Density.of([0.3], bandwidth=1.0)
    places = np.linspace(-5.0, 5.0, 1001)
    assert np.abs(density.cdf(places) - stats.norm.cdf(places - 0.3)).max() < 1e-3


@given(samples, st.sampled_from(["silverman", 1e-6, 0.5, 1e4]), st.booleans())
def test_the_cdf_rises_from_nothing_to_everything(values: list[float], bandwidth: float, bounded: bool):
    density = Density.of(values, bandwidth=bandwidth, bounded=bounded)
    assert (np.diff(density.knots) >= 0.0).all()
    assert (np.diff(density.cumulative) >= 0.0).all()
    assert density.cdf([-np.inf, np.inf]).tolist() == [0.0, 1.0]
    assert (density.pdf(np.array(values)) > 0.0).all()


@given(samples, st.floats(0.0, 1.0))
def test_the_inverse_undoes_the_cdf(values: list[float], mass: float):
    density = Density.of(values)  # of a constant only a few doubles wide
    assert float(density.cdf(density.inverse(mass))) == pytest.approx(mass, abs=1e-3)
    density = Density.of([*values, 0.0, 1.0], bandwidth=0.3)
    assert float(density.cdf(density.inverse(mass))) == pytest.approx(mass, abs=1e-7)


def test_a_bounded_density_keeps_all_mass_between_the_extremes_and_stays_flat_up_to_them():
    values = (np.arange(2_000) + 0.5) / 2_000
    density = Density.of(values, bounded=True)
    assert density.cdf([values[0], values[-1]]).tolist() == [0.0, 1.0]
    assert np.abs(density.pdf(np.linspace(0.001, 0.999, 99)) - 1.0).max() < 0.02
    spilling = Density.of(values)
    assert spilling.pdf(0.001) < 0.6


def test_a_bandwidth_wider_than_the_range_gives_an_even_spread():
    density = Density.of([0.0, 0.1, 1.0], bandwidth=1e3, bounded=True)
    assert density.cdf(0.5) == pytest.approx(0.5, abs=1e-3)


def test_heavy_tails_cost_no_more_than_their_values():
    """A lattice over the whole range would have 1e14 cells."""
    values = random.standard_cauchy(3_000) * 1e3
    values[:2] = -1e12, 1e15
    density = Density.of(values)
    assert density.knots.size < 100 * values.size
    body = np.quantile(values, [0.1, 0.5, 0.9])
    assert np.abs(density.cdf(body) - [0.1, 0.5, 0.9]).max() < 0.02


def test_a_single_value_has_all_the_mass():
    for bounded in (False, True):
        density = Density.of([5.0], bounded=bounded)
        assert density.cdf(4.99) == 0.0
        assert density.cdf(5.01) == 1.0
        assert density.inverse(0.5) == pytest.approx(5.0)


def test_a_density_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one finite value"):
        Density.of([np.nan])


@pytest.mark.parametrize("bandwidth", [-1.0, np.nan, np.inf])
def test_a_bandwidth_that_is_no_width_is_refused(bandwidth: float):
    with pytest.raises(ValueError, match="is no width"):
        Density.of([1.0, 2.0], bandwidth=bandwidth)
