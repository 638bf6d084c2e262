"""Ticks keep the order of values, and the fine bin of a tick is the fine bin of every value in it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch.scales import ABSENT, Scales
from synopsis.sketch.ticks import ABSENT_TICK, Ticks

RANDOM = np.random.default_rng(11)
COUNT = 4_000


def mixed(first, second, share):
    """Values of the first kind, and of the second where chance says so."""
    return np.where(RANDOM.random(COUNT) < share, second, first)


NORMAL = RANDOM.normal(size=COUNT)
#: Features as they are met, and as nobody wants to meet them.
KINDS = {
    "smooth": 15 + 8 * NORMAL,
    "far from zero": 101_325 + 1e-3 * NORMAL,
    "grid 0.1": np.round(20 + 6 * NORMAL, 1),
    "grid 0.1 as float32": np.round(20 + 6 * NORMAL, 1).astype(np.float32).astype(np.float64),
    "grid 0.01 below zero": np.round(-300 + 20 * NORMAL, 2),
    "grid with averages of two": mixed(np.round(NORMAL, 1), np.round(NORMAL, 1) + 0.05, 0.04),
    "grid too long for ticks": np.round(1e5 * NORMAL, 1),
    "whole numbers": RANDOM.integers(-5, 360, COUNT).astype(float),
    "an atom and a grid": mixed(0.0, np.round(RANDOM.exponential(3, COUNT), 1), 0.2),
    "an atom and a tail": mixed(0.0, RANDOM.lognormal(0, 3, COUNT), 0.3),
    "an atom inside": mixed(7.25, 5 + NORMAL, 0.5),
    "many atoms": mixed(RANDOM.choice(np.sqrt(np.arange(1, 13)), COUNT), NORMAL, 0.2),
    "atoms that are neighbours": mixed(RANDOM.choice([1.0, np.nextafter(1.0, 2.0)], COUNT), 1 + NORMAL, 0.4),
    "heavy tails": np.random.default_rng(1).standard_cauchy(COUNT) * 1e4,
    "300 orders of magnitude either way": 10.0 ** RANDOM.uniform(-300, 300, COUNT),
    "both signs, 300 orders": RANDOM.choice([-1, 1], COUNT) * 10.0 ** RANDOM.uniform(-300, 300, COUNT),
    "subnormal": RANDOM.integers(0, 1000, COUNT) * 5e-324,
    "a wide subnormal range": RANDOM.uniform(0, 1e-309, COUNT),
    "neighbouring numbers": 1.0 + RANDOM.integers(0, 700, COUNT) * np.spacing(1.0),
    "more neighbouring numbers than ticks": 1.0 + RANDOM.integers(0, 10**6, COUNT) * np.spacing(1.0),
    "two values": mixed(-1.5, 2.25, 0.3),
    "two neighbouring numbers": mixed(1.0, np.nextafter(1.0, 2.0), 0.5),
    "zeros of both signs": mixed(-0.0, mixed(0.0, NORMAL, 0.3), 0.6),
    "constant": np.full(COUNT, 21.7),
    "constant zero": np.zeros(COUNT),
    "constant and huge": np.full(COUNT, -1e150),
    "all absent": np.full(COUNT, np.nan),
    "one value": np.append(np.full(COUNT - 1, np.nan), 3.3),
    "mostly absent": mixed(np.nan, NORMAL, 0.05),
}


def asked(scales, values):
    """Values seen and unseen: those of the feature, edges and their neighbours, and numbers beyond both ends."""
    edges, atoms = scales.quantizers[0].edges, np.array(scales.ticks[0].atoms)
    places = np.concatenate((edges, atoms, values[~np.isnan(values)][:500], [0.0, -0.0]))
    near = np.concatenate((np.nextafter(places, np.inf), np.nextafter(places, -np.inf)))
    low, high = np.nanmin(places), np.nanmax(places)
    beyond = [low - 1, high + 1, -1.7e308, 1.7e308, 5e-324, -5e-324, np.nan]
    with np.errstate(over="ignore"):
        found = np.concatenate((places, near, np.random.default_rng(3).uniform(-1, 1, 500) * max(high, 1.0), beyond))
    return found[~np.isinf(found)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fine", [32, 250])
def test_the_code_of_a_tick_is_the_code_of_every_value_in_it(kind, fine):
    scales = Scales.fit(KINDS[kind][None, :], fine)
    values = asked(scales, KINDS[kind])
    ticks = scales.ticks[0].of(values)
    assert np.array_equal(scales.code_of_tick(0)[ticks], scales.codes(values[None, :])[0])


@pytest.mark.parametrize("kind", KINDS)
def test_that_holds_where_scales_were_fitted_to_a_part_of_the_rows(kind):
    """The ends are those of all rows; bins are those of a sample."""
    every = KINDS[kind]
    present = every[~np.isnan(every)]
    ends = np.array([present.min(initial=np.inf)]), np.array([present.max(initial=-np.inf)])
    scales = Scales.fit(every[None, ::7], 250, *ends)
    values = asked(scales, every)
    assert np.array_equal(scales.code_of_tick(0)[scales.ticks[0].of(values)], scales.codes(values[None, :])[0])


@pytest.mark.parametrize("kind", KINDS)
def test_ticks_keep_the_order_of_values_and_leave_room_for_absent(kind):
    scales = Scales.fit(KINDS[kind][None, :])
    values = asked(scales, KINDS[kind])
    ticks = scales.ticks[0].of(np.sort(values))  # absent last
    assert (np.diff(ticks) >= 0).all()
    assert ticks.min() >= 0
    assert ((ticks == ABSENT_TICK) == np.isnan(np.sort(values))).all()


@given(
    low=st.floats(-1e300, 1e300),
    width=st.floats(0, 1e300),
    shares=st.lists(st.floats(-0.5, 1.5), min_size=2, max_size=40),
    atoms=st.lists(st.floats(0, 1), max_size=4, unique=True),
)
def test_any_ticks_keep_the_order_of_any_values(low, width, shares, atoms):
    ticks = Ticks.between(low, low + width, 0.0, np.sort(low + width * np.array(atoms)))
    values = np.sort(low + width * np.array(shares))
    assert (np.diff(ticks.of(values)) >= 0).all()


@pytest.mark.parametrize("kind", ["grid 0.1", "grid 0.1 as float32", "grid 0.01 below zero", "whole numbers"])
def test_values_on_a_grid_have_a_tick_each(kind):
    """As float32 or not: 21.7 is 21.7."""
    scales = Scales.fit(KINDS[kind][None, :])
    step = scales.steps[0]
    number = np.round(KINDS[kind] / step)
    ticks = scales.ticks[0].of(KINDS[kind])
    assert np.array_equal(ticks - ticks.min(), number - number.min())


def test_an_atom_shares_its_tick_with_nothing():
    values = KINDS["an atom inside"]
    scales = Scales.fit(values[None, :])
    assert 7.25 in scales.ticks[0].atoms
    around = np.array([np.nextafter(7.25, -np.inf), 7.25, np.nextafter(7.25, np.inf)])
    assert len(set(scales.ticks[0].of(around))) == 3
    code = scales.codes(np.array([[7.25]]))[0, 0]
    low, high = scales.ranges(0)
    assert (low[code], high[code]) == (7.25, 7.25)


def test_a_table_of_codes_has_all_ticks_and_absent_last():
    scales = Scales.fit(KINDS["smooth"][None, :])
    table = scales.code_of_tick(0)
    assert table.shape == (ABSENT_TICK + 1,)
    assert table[ABSENT_TICK] == ABSENT
    assert table[:ABSENT_TICK].max() == scales.quantizers[0].bins - 1


@pytest.mark.parametrize("kind", KINDS)
def test_ticks_come_back_from_plain_values(kind):
    ticks = Scales.fit(KINDS[kind][None, :]).ticks[0]
    assert Ticks.from_dict(ticks.to_dict()) == ticks


@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e-7, 1e-3, 1.0, 1e6, 1e8, 1e12])
def test_a_feature_without_a_grid_has_none_at_any_size(size):
    """A mixing ratio is a number of billionths, a column density one of trillions: neither consists of whole ones."""
    values = size * RANDOM.lognormal(0, 0.5, COUNT)
    scales = Scales.fit(values[None, :])
    assert scales.steps[0] == 0.0
    assert scales.quantizers[0].bins > 100


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "all absent"])
def test_the_means_of_fine_bins_lie_between_their_ends(kind):
    """As far as float32 reaches."""
    scales = Scales.fit(KINDS[kind][None, :])
    most = float(np.finfo(np.float32).max)
    low, high = (np.clip(ends, -most, most) for ends in scales.ranges(0))
    means = scales.means[0].astype(np.float64)
    slack = 1e-6 * np.maximum(np.abs(low), np.abs(high)) + 1e-37
    assert np.isfinite(means).all()
    assert (low - slack <= means).all()
    assert (means <= high + slack).all()
