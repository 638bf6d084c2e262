"""Quantizer: a code is always true, mass is shared evenly, and atoms stand alone."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.grid.quantizer import Quantizer, nested

finite = st.floats(allow_nan=False, allow_infinity=False)
gridded = st.integers(-40, 400).map(lambda tenths: tenths / 10)
values_of_all_kinds = st.one_of(
    st.lists(finite, max_size=80),
    st.lists(gridded, max_size=200),
    st.lists(st.one_of(st.just(0.0), st.floats(0.0, 50.0)), max_size=120),
)
numbers_of_bins = st.integers(1, 40)


@st.composite
def quantizers(draw: st.DrawFn) -> Quantizer:
    values = draw(values_of_all_kinds)
    weights = draw(st.none() | st.lists(st.integers(0, 1000), min_size=len(values), max_size=len(values)))
    return Quantizer.fit(values, weights, draw(numbers_of_bins))


def shares(quantizer: Quantizer, values: np.ndarray) -> np.ndarray:
    return np.bincount(quantizer.codes(values), minlength=quantizer.bins) / values.size


class TestTruth:
    @given(quantizers(), st.lists(st.floats(allow_nan=False), min_size=1))
    def test_every_value_lies_within_the_bounds_of_its_code(self, quantizer: Quantizer, values: list[float]):
        codes = quantizer.codes(values)
        low, high = quantizer.bounds(codes)
        assert ((codes >= 0) & (codes < quantizer.bins)).all()
        assert ((low <= values) & (values <= high)).all()

    @given(quantizers(), st.lists(finite, min_size=2))
    def test_codes_rise_with_values(self, quantizer: Quantizer, values: list[float]):
        assert (np.diff(quantizer.codes(sorted(values))) >= 0).all()

    @given(quantizers())
    def test_bounds_tile_the_line(self, quantizer: Quantizer):
        low, high = quantizer.bounds(np.arange(quantizer.bins))
        assert low[0] == -math.inf
        assert high[-1] == math.inf
        assert (np.nextafter(high[:-1], math.inf) == low[1:]).all()

    @given(quantizers())
    def test_absent_has_a_code_and_no_bounds(self, quantizer: Quantizer):
        assert quantizer.codes([math.nan]).tolist() == [quantizer.bins]
        assert np.isnan(quantizer.bounds([quantizer.bins])).all()

    @given(values_of_all_kinds, numbers_of_bins)
    def test_there_are_never_more_bins_than_asked_for_and_none_is_empty(self, values: list[float], bins: int):
        quantizer = Quantizer.fit(values, None, bins)
        assert quantizer.bins <= bins
        assert quantizer.bins == min(bins, max(len(set(values)), 1))
        if values:
            assert np.unique(quantizer.codes(values)).size == quantizer.bins
            assert (quantizer.low, quantizer.high) == (min(values), max(values))

    @given(values_of_all_kinds, numbers_of_bins)
    def test_an_atom_is_the_only_value_in_its_bin(self, values: list[float], bins: int):
        quantizer = Quantizer.fit(values, None, bins)
        seen = np.unique(values)
        at = quantizer.codes(quantizer.atoms)
        assert (np.bincount(quantizer.codes(seen), minlength=quantizer.bins)[at] == 1).all()

    def test_values_beyond_the_range_seen_fall_into_open_end_bins(self):
        quantizer = Quantizer.fit(np.linspace(10.0, 20.0, 500), None, 8)
        codes = quantizer.codes([-1e9, 9.99, 20.01, 1e300, -math.inf, math.inf])
        assert codes.tolist() == [0, 0, 7, 7, 0, 7]
        low, high = quantizer.bounds(codes)
        assert np.isneginf(low[[0, 1, 4]]).all()
        assert np.isposinf(high[[2, 3, 5]]).all()
        assert (quantizer.low, quantizer.high) == (10.0, 20.0)

    def test_bounds_are_finite_for_rows_between_known_extremes(self):
        quantizer = Quantizer.fit(np.linspace(10.0, 20.0, 500), None, 8)
        low, high = quantizer.bounds([0, 7, 8], low=9.0, high=21.0)
        assert low[0] == 9.0
        assert high[1] == 21.0
        assert math.isnan(low[2])


class TestMass:
    @pytest.mark.parametrize("bins", [5, 15, 29, 64])
    @pytest.mark.parametrize("law", ["normal", "uniform", "exponential", "lognormal", "two humps", "cauchy"])
    def test_bins_hold_equal_mass_whatever_the_law(self, law: str, bins: int):
        random = np.random.default_rng(3)
        values = {
            "normal": random.normal(288.0, 9.0, 50_000),
            "uniform": random.uniform(-3.0, 5.0, 50_000),
            "exponential": random.exponential(2.0, 50_000),
            "lognormal": random.lognormal(0.0, 1.5, 50_000),
            "two humps": np.concatenate([random.normal(0.0, 1.0, 20_000), random.normal(12.0, 2.0, 30_000)]),
            "cauchy": random.standard_cauchy(50_000),
        }[law]
        quantizer = Quantizer.fit(values, None, bins)
        assert quantizer.bins == bins
        assert quantizer.atoms.size == 0
        assert np.abs(shares(quantizer, values) * bins - 1.0).max() < 0.25

    def test_weights_stand_for_repetition(self):
        random = np.random.default_rng(5)
        values, weights = random.normal(size=200), random.integers(1, 20, 200)
        assert Quantizer.fit(values, weights, 12) == Quantizer.fit(np.repeat(values, weights), None, 12)

    def test_dense_stretches_get_narrow_bins(self):
        values = np.random.default_rng(1).normal(size=20_000)
        widths = np.diff(Quantizer.fit(values, None, 20).edges)
        assert widths[9] < widths[0] / 2
        assert widths[9] < widths[-1] / 2

    def test_a_wide_bandwidth_evens_out_the_widths(self):
        values = np.random.default_rng(1).normal(size=20_000)
        sharp, flat = (np.diff(Quantizer.fit(values, None, 16, bandwidth=width).edges) for width in (0.05, 50.0))
        assert np.ptp(flat) < np.ptp(sharp) / 3

    @pytest.mark.parametrize("scale", [1e-308, 1e-30, 1e30, 1e304])
    def test_the_unit_of_measurement_does_not_matter(self, scale: float):
        values = np.random.default_rng(2).normal(size=2_000)
        for width in ("silverman", 0.2):
            scaled = width if isinstance(width, str) else width * scale
            plain = Quantizer.fit(values, None, 16, bandwidth=width).codes(values)
            assert (Quantizer.fit(values * scale, None, 16, bandwidth=scaled).codes(values * scale) == plain).all()


class TestAtoms:
    def test_no_rain_is_a_closed_bin_and_the_others_share_the_wet_hours(self):
        random = np.random.default_rng(11)
        rain = np.concatenate([np.zeros(9_000), random.exponential(3.0, 1_000)])
        quantizer = Quantizer.fit(rain, None, 15)
        dry = quantizer.codes([0.0])
        assert quantizer.atoms.tolist() == [0.0]
        assert quantizer.codes([5e-324]) == dry + 1
        assert [bound.item() for bound in quantizer.bounds(dry, low=quantizer.low)] == [0.0, 0.0]
        wet = shares(quantizer, rain[rain > 0.0])[1:]
        assert wet.size == 14
        assert np.abs(wet * 14 - 1.0).max() < 0.25

    def test_an_atom_in_the_middle_is_closed_on_both_sides(self):
        values = np.concatenate([np.random.default_rng(2).normal(0.0, 4.0, 8_000), np.full(4_000, 1.0)])
        quantizer = Quantizer.fit(values, None, 12)
        low, high = quantizer.bounds(quantizer.codes([1.0]))
        assert quantizer.bins == 12
        assert (low.item(), high.item()) == (1.0, 1.0)

    def test_an_atom_at_the_top_is_closed_below(self):
        humidity = np.concatenate([np.random.default_rng(2).uniform(20.0, 100.0, 7_000), np.full(3_000, 100.0)])
        quantizer = Quantizer.fit(humidity, None, 10)
        low, high = quantizer.bounds(quantizer.codes([100.0]), high=100.0)
        assert (low.item(), high.item()) == (100.0, 100.0)

    def test_of_two_neighbouring_atoms_the_heavier_is_closed(self):
        gauge = np.repeat([0.0, 0.2, 0.4, 0.6], [900, 50, 30, 20])
        quantizer = Quantizer.fit(gauge, None, 15)
        assert quantizer.edges.tolist() == np.nextafter([0.0, 0.2, 0.4], 1.0).tolist()

    def test_atoms_that_there_is_no_room_for_go_with_their_neighbours(self):
        heavy = np.repeat(np.arange(0.0, 45.0, 5.0), 100)
        values = np.concatenate([heavy, np.random.default_rng(0).uniform(-2.0, 42.0, 50)])
        quantizer = Quantizer.fit(values, None, 15)
        assert quantizer.bins == 15
        assert 0 < quantizer.atoms.size <= 7

    def test_a_value_of_less_than_its_share_is_no_atom(self):
        values = np.concatenate([np.random.default_rng(0).normal(size=10_000), np.full(300, 0.5)])
        assert Quantizer.fit(values, None, 20).atoms.size == 0
        assert Quantizer.fit(values, None, 20, atom_share=0.5).atoms.tolist() == [0.5]

    def test_a_few_single_observations_are_no_atoms(self):
        quantizer = Quantizer.fit([1.5, 2.5, 4.5], None, 10)
        assert quantizer.atoms.size == 0
        assert quantizer.edges.tolist() == [2.0, 3.5]


class TestDegenerate:
    def test_a_constant_has_one_bin(self):
        quantizer = Quantizer.fit(np.full(100, 7.0), None, 30)
        assert quantizer.bins == 1
        assert (quantizer.low, quantizer.high, quantizer.atoms.tolist()) == (7.0, 7.0, [7.0])

    @pytest.mark.parametrize("values", [[], [math.nan, math.nan], [math.inf]])
    def test_a_feature_that_is_all_missing_has_one_bin_for_what_may_come(self, values: list[float]):
        quantizer = Quantizer.fit(values, None, 30)
        assert quantizer.bins == 1
        assert math.isnan(quantizer.low)
        assert quantizer.codes([math.nan, 3.0]).tolist() == [1, 0]

    def test_few_integers_have_a_bin_each(self):
        okta = np.random.default_rng(0).integers(0, 9, 1_000)
        quantizer = Quantizer.fit(okta, None, 15)
        assert quantizer.codes(range(9)).tolist() == list(range(9))

    def test_many_integers_are_never_split(self):
        humidity = np.random.default_rng(0).binomial(100, 0.6, 10_000)
        quantizer = Quantizer.fit(humidity, None, 15)
        assert quantizer.bins == 15
        assert shares(quantizer, humidity).max() < 0.12

    def test_edges_fall_half_way_between_values_on_a_grid(self):
        tenths = np.round(np.random.default_rng(0).normal(15.0, 6.0, 50_000), 1)
        quantizer = Quantizer.fit(tenths, None, 29)
        assert np.abs(quantizer.edges * 20.0 - np.round(quantizer.edges * 20.0)).max() < 1e-6
        assert (np.round(quantizer.edges * 20.0) % 2 == 1).all()
        assert np.abs(shares(quantizer, tenths) * 29 - 1.0).max() < 0.35

    def test_neighbouring_doubles_can_be_told_apart(self):
        pair = [1.0, np.nextafter(1.0, 2.0)]
        assert Quantizer.fit(pair, None, 2).codes(pair).tolist() == [0, 1]

    def test_no_bins_at_all_are_refused(self):
        with pytest.raises(ValueError, match="at least 1"):
            Quantizer.fit([1.0], None, 0)

    def test_edges_that_do_not_ascend_are_refused(self):
        with pytest.raises(ValueError, match="ascend"):
            Quantizer(np.array([2.0, 1.0]), np.empty(0))


class TestBytes:
    @given(quantizers())
    def test_bytes_come_back_as_the_same_quantizer(self, quantizer: Quantizer):
        again = Quantizer.from_bytes(quantizer.to_bytes())
        assert again == quantizer
        assert hash(again) == hash(quantizer)
        assert pickle.loads(pickle.dumps(quantizer)) == quantizer

    @given(quantizers(), st.data())
    def test_damaged_bytes_are_refused(self, quantizer: Quantizer, data: st.DataObject):
        whole = quantizer.to_bytes()
        place = data.draw(st.integers(0, len(whole) - 1))
        broken = bytearray(whole)
        broken[place] ^= data.draw(st.integers(1, 255))
        for bad in (bytes(broken), whole[:place], whole + b"\0"):
            with pytest.raises(ValueError, match="quantizer"):
                Quantizer.from_bytes(bad)

    def test_version_1_can_still_be_read(self):
        stored = bytes.fromhex(
            "53594e51010028000000d74faabd"
            "000000000000000000000000000024400100000001000000"
            "01000000000000000000000000000000"
        )
        assert Quantizer.from_bytes(stored) == Quantizer([5e-324], [0.0], 0.0, 10.0)

    def test_a_later_version_is_refused_by_name(self):
        data = bytearray(Quantizer.fit([1.0], None, 1).to_bytes())
        data[4] = 9
        with pytest.raises(ValueError, match="format 9"):
            Quantizer.from_bytes(bytes(data))

    def test_its_arrays_cannot_be_written(self):
        with pytest.raises(ValueError, match="read-only"):
            Quantizer.fit([1.0, 2.0], None, 2).edges[0] = 0.0


class TestNesting:
    @given(quantizers(), numbers_of_bins, st.lists(st.floats(), min_size=1), st.booleans(), st.randoms())
    def test_the_new_code_of_a_value_is_the_new_code_of_its_old_one(self, fine, bins, values, weighed, random):
        mass = [random.randrange(100) for _ in range(fine.bins)] if weighed else None
        coarse, new = nested(fine, bins, mass=mass)
        assert coarse.bins == min(bins, fine.bins)
        assert (new[fine.codes(values)] == coarse.codes(values)).all()
        assert set(coarse.edges) <= set(fine.edges)
        assert set(coarse.atoms) <= set(fine.atoms)
        assert (coarse.low, coarse.high) == pytest.approx((fine.low, fine.high), nan_ok=True)

    @given(quantizers())
    def test_nesting_into_as_many_bins_changes_nothing(self, fine: Quantizer):
        coarse, new = nested(fine, fine.bins)
        assert coarse == fine
        assert new.tolist() == list(range(fine.bins + 1))

    def test_equal_bins_join_evenly(self):
        fine = Quantizer.fit(np.random.default_rng(0).normal(size=10_000), None, 64)
        coarse, new = nested(fine, 16)
        assert (coarse.edges == fine.edges[3::4]).all()
        assert np.bincount(new).tolist() == [4] * 16 + [1]

    def test_no_rain_stays_alone(self):
        rain = np.concatenate([np.zeros(9_000), np.random.default_rng(0).exponential(3.0, 1_000)])
        coarse, _ = nested(Quantizer.fit(rain, None, 15), 4)
        assert coarse.atoms.tolist() == [0.0]
        assert shares(coarse, rain)[0] == pytest.approx(0.9)

    def test_bins_that_are_heavy_now_stay_alone(self):
        fine = Quantizer.fit(np.arange(1000.0), None, 10)
        _, new = nested(fine, 4, mass=[1, 1, 1, 1, 100, 1, 1, 1, 1, 1])
        assert np.bincount(new)[new[4]] == 1

    def test_masses_of_the_wrong_number_are_refused(self):
        with pytest.raises(ValueError, match="2 masses for 1 bins"):
            nested(Quantizer.fit([1.0], None, 3), 2, mass=[1, 2])
