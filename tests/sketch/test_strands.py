from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.store.codec import from_table, to_table
from synopsis.testing.laws import MergeLaws
from synopsis.testing.strategies import close, strands

LAYOUT = Layout(("temperature", "pressure", "rain"), bits=20, bucket="1d")


class TestStrands(MergeLaws):
    summaries = strands(LAYOUT)
    empty = Strands.empty(LAYOUT)
    same = staticmethod(close)

    @staticmethod
    def round_trip(summary):
        return from_table(to_table(summary), LAYOUT)


def rows(count, seed=0):
    random = np.random.default_rng(seed)
    latitude, longitude = random.uniform(-90, 90, count), random.uniform(-180, 180, count)
    instants = random.integers(1_735_689_600_000_000, 1_746_057_600_000_000, count)
    values = random.normal(300, 5, (3, count))
    values[random.random((3, count)) < 0.2] = np.nan
    return latitude, longitude, instants, values


@given(cuts=st.lists(st.integers(0, 300), max_size=5), seed=st.integers(0, 5))
def test_splitting_the_rows_anywhere_gives_the_same_strands(cuts, seed):
    latitude, longitude, instants, values = rows(300, seed)
    edges = [0, *sorted(cuts), 300]
    parts = [
        Strands.of(LAYOUT, latitude[a:b], longitude[a:b], instants[a:b], values[:, a:b])
        for a, b in pairwise(edges)
        if b > a
    ]
    assert close(Strands.joined(parts, LAYOUT), Strands.of(LAYOUT, latitude, longitude, instants, values))


def test_strands_of_two_layouts_do_not_add():
    other = Layout(LAYOUT.features, bits=20, bucket="1mo")
    with pytest.raises(ValueError, match="coarsen"):
        Strands.of(LAYOUT, *rows(5)) + Strands.of(other, *rows(5))


@pytest.mark.parametrize(("bits", "bucket"), [(20, "1mo"), (10, "1d"), (5, "1y"), (13, "1q")])
def test_coarsening_gives_the_strands_of_the_coarser_layout(bits, bucket):
    coarse = Layout(LAYOUT.features, bits=bits, bucket=bucket)
    assert close(Strands.of(LAYOUT, *rows(500)).coarsened(coarse), Strands.of(coarse, *rows(500)))


def test_coarsening_never_splits():
    with pytest.raises(ValueError, match="does not nest"):
        Strands.of(LAYOUT, *rows(5)).coarsened(Layout(LAYOUT.features, bits=25, bucket="1d"))


def test_positions_finds_every_strand():
    whole = Strands.of(LAYOUT, *rows(200))
    assert np.array_equal(whole.positions(whole.cell, whole.bucket), np.arange(len(whole)))


def test_taking_some_strands_takes_their_cells_and_no_others():
    whole = Strands.of(LAYOUT, *rows(200))
    some = whole.take(whole.rows > 0)
    none = whole.take(whole.rows < 0)
    assert close(some, whole)
    assert len(none) == 0
    assert none.cells.key.size == 0


def test_a_tight_box_holds_just_the_positions_of_its_cell():
    latitude, longitude = np.array([10.1, 10.12, -40.0]), np.array([20.1, 20.11, 5.0])
    whole = Strands.of(Layout(("a",), 20, "1d"), latitude, longitude, np.zeros(3, np.int64), np.ones((1, 3)))
    south, west, north, east = whole.cells.box
    assert sorted(zip(south, west, north, east, strict=True)) == [(-40.0, 5.0, -40.0, 5.0), (10.1, 20.1, 10.12, 20.11)]


def test_the_bytes_of_strands_are_those_of_their_arrays():
    whole = Strands.of(LAYOUT, *rows(200))
    assert whole.nbytes == len(whole) * LAYOUT.strand_bytes() + whole.cells.key.size * 40
