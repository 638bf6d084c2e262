"""How rows lie within bins: nothing lies beyond where a bin ends, and strata keep their mean and deviation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch import tilts
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import bin_codes, fitted

BINS = 15


def sparse(seed: int, rows: int, spread: float = 1.0) -> tuple[Scales, np.ndarray, np.ndarray]:
    """Places with few rows each, every place at a level of its own: scales, places, and values of one feature."""
    random = np.random.default_rng(seed)
    place = np.repeat(np.arange(200), rows)
    level = random.normal(0, 10, 200)[place]
    values = np.where(random.random(place.size) < 0.3, 0.0, level + spread * random.standard_exponential(place.size))
    return Scales.fit(values[None]), place, values


def moments_of(scales: Scales, made, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Strata: the mean and the mean square that their bins tell."""
    starts, ends = bin_codes(made, 0)
    axis = MassAxis.of(scales, 0)
    found = []
    for power in (0, 1):
        flat, slope = axis.moments(starts, ends, power)
        found.append(np.where(rows > 0, rows * (flat + slope * made.tilt[0] / tilts.STEPS), 0.0).sum(axis=1))
    return found[0] / rows.sum(axis=1), found[1] / rows.sum(axis=1)


@given(seed=st.integers(0, 20), rows=st.sampled_from([1, 3, 20, 200]))
def test_no_row_lies_beyond_the_end_of_its_bin(seed, rows):
    scales, place, values = sparse(seed, rows)
    codes = scales.codes(values[None])
    made = fitted(scales, place, np.zeros_like(place), np.zeros_like(place), codes, np.zeros(place.size, bool), BINS)
    starts, ends = bin_codes(made, 0)
    own = codes[0].astype(np.int64)[:, None]
    inside = (starts[place] <= own) & (own < ends[place])
    assert (inside.sum(axis=1) == 1).all()
    counted = np.zeros((200, BINS), np.int64)
    np.add.at(counted, (place, inside.argmax(axis=1)), 1)
    assert (counted == made.counts[0, :, :-1]).all()


@pytest.mark.parametrize("rows", [3, 20, 200])
def test_means_and_deviations_of_strata_are_kept_and_their_errors_are_on_both_sides(rows):
    scales, place, values = sparse(7, rows)
    codes = scales.codes(values[None])
    made = fitted(scales, place, np.zeros_like(place), np.zeros_like(place), codes, np.zeros(place.size, bool), BINS)
    mean, square = moments_of(scales, made, made.counts[0, :, :-1])
    fine = scales.means[0].astype(float)[codes[0]]
    fine_square = fine**2 + scales.variances(0)[codes[0]]
    wanted, wanted_square = (np.bincount(place, each) / rows for each in (fine, fine_square))
    deviation = values.std()
    off = (mean - wanted) / deviation
    assert np.sqrt(np.mean(off**2)) < 2e-3
    assert abs(off.mean()) < 5e-4
    assert np.sqrt(np.mean((square - wanted_square) ** 2)) < 2e-2 * deviation**2


def test_few_rows_leave_most_of_a_bin_empty_and_the_bin_says_so():
    scales, place, values = sparse(3, 40)
    codes = scales.codes(values[None])
    made = fitted(scales, place, np.zeros_like(place), np.zeros_like(place), codes, np.zeros(place.size, bool), BINS)
    starts, ends = bin_codes(made, 0)
    used = ends > starts
    following = np.concatenate((starts[:, 1:], ends.max(axis=1)[:, None]), axis=1)
    assert np.mean((ends < following)[used]) > 0.1


@given(
    st.lists(st.lists(st.integers(0, 40), min_size=BINS, max_size=BINS), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
)
def test_bins_come_back_from_what_is_stored_of_them(widths, random):
    begins = np.minimum(np.cumsum(np.array(widths), axis=1), 250)
    begins = np.concatenate((np.zeros((len(widths), 1), np.int64), begins), axis=1)
    starts, following = begins[:, :-1], begins[:, 1:]
    cut = np.array([[random.randrange(-1, tilts.CUTS.size) for _ in range(BINS)] for _ in widths])
    last = following == begins[:, -1:]  # the last bin ends with the last row
    ends = following.copy()
    for each in range(tilts.CUTS.size):
        ends = np.where((cut == each) & ~last, starts + tilts.left(following - starts, each), ends)
    slopes = np.array([[random.randint(-tilts.STEPS, tilts.STEPS) for _ in range(BINS)] for _ in widths])
    tilt = np.where(ends < following, 0, slopes).astype(np.int8)
    stored = tilts.numbered(starts.astype(np.uint8), ends.astype(np.uint8), tilt)
    again = tilts.read(*stored)
    for mine, theirs in zip((starts, ends, tilt), again, strict=True):
        assert (mine == theirs).all()
