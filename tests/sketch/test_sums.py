import numpy as np
import pytest

from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.sketch.sums import Sums, lost_digits, products
from synopsis.testing.strategies import close

LAYOUT = Layout(("a", "b", "c"), bits=20, bucket="1d")


def summed(latitude, longitude, instants, values, pivot):
    """What Spark would hand over: sums by cell, bucket and presence, the slow and plain way."""
    present = (~np.isnan(values) * (1 << np.arange(3))[:, None]).sum(axis=0)
    from synopsis.grid import geohash

    cell = geohash.encode(latitude, longitude, LAYOUT.bits)
    bucket = LAYOUT.span.ordinals(instants, LAYOUT.zone)
    keys, groups = np.unique(np.stack((cell, bucket, present)), axis=1, return_inverse=True)
    shifted = np.where(np.isnan(values), 0.0, values - pivot)

    def each(function, array):
        return np.array([function(array[groups == group]) for group in range(keys.shape[1])])

    low = np.array([each(np.min, row) for row in values])
    high = np.array([each(np.max, row) for row in values])
    return Sums(
        *keys,
        rows=each(len, cell),
        first_us=each(np.min, instants),
        last_us=each(np.max, instants),
        south=each(np.min, latitude),
        west=each(np.min, longitude),
        north=each(np.max, latitude),
        east=each(np.max, longitude),
        low=low,
        high=high,
        total=np.array([each(np.sum, row) for row in shifted]),
        product=np.array([each(np.sum, shifted[i] * shifted[j]) for i, j in products(3)]),
        pivot=pivot,
    )


def rows(count=400, offset=(290.0, 960.0, 0.0)):
    random = np.random.default_rng(3)
    stations = random.integers(0, 4, count)
    values = random.normal(size=(3, count)) + np.array(offset)[:, None]
    values[random.random((3, count)) < 0.3] = np.nan
    instants = random.integers(0, 3 * 86_400_000_000, count)
    return np.array([-15.8, 0.0, 51.5, 10.0])[stations], np.array([-47.9, 0.0, -0.1, 20.0])[stations], instants, values


def test_sums_by_presence_give_the_strands_of_the_rows():
    sample = rows()
    sums = summed(*sample, np.array([[289.0], [950.0], [0.5]]))
    strands = sums.strands(LAYOUT)
    assert close(strands, Strands.of(LAYOUT, *sample))
    assert not lost_digits(strands, [sums]).any()


def test_sums_far_from_their_pivot_are_known_to_have_lost_digits():
    sample = rows(offset=(290.0, 1e7, 0.0))
    sums = summed(*sample, np.array([[289.0], [0.0], [0.5]]))
    strands = sums.strands(LAYOUT)
    assert lost_digits(strands, [sums]).all()


def test_a_constant_far_from_its_pivot_loses_nothing():
    latitude, longitude, instants, values = rows()
    values[1] = np.where(np.isnan(values[1]), np.nan, 1e9 + 0.1)
    sums = summed(latitude, longitude, instants, values, np.array([[289.0], [0.0], [0.5]]))
    strands = sums.strands(LAYOUT)
    assert not lost_digits(strands, [sums]).any()
    assert (strands.moments.spread[1] == 0.0).all()
    assert strands.moments.mean[1] == pytest.approx(1e9 + 0.1, rel=1e-15)
