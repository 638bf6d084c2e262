"""Quantiles: what comes out of a KLL sketch adds up, and no sketch is read as what it is not."""

from __future__ import annotations

import datasketches
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.grid.quantiles import KLL_DOUBLE, merged, tagged, untagged, weighted_points


def sketch(values: object, k: int = 200) -> bytes:
    kll = datasketches.kll_doubles_sketch(k)
    for value in np.asarray(values, dtype=np.float64):
        kll.update(float(value))
    return tagged(KLL_DOUBLE, kll.serialize())


@given(st.lists(st.floats(-1e9, 1e9), max_size=400), st.sampled_from([8, 20, 200]))
def test_weights_sum_to_the_observations_and_both_extremes_are_exact(values: list[float], k: int):
    points, weights = weighted_points(sketch(values, k))
    assert weights.sum() == len(values)
    assert (weights >= 1.0).all()
    assert (np.diff(points) >= 0.0).all()
    if values:
        assert (points[0], points[-1]) == (min(values), max(values))


def test_small_data_comes_back_whole():
    values = [3.0, 1.0, 2.0, 2.0]
    assert [part.tolist() for part in weighted_points(sketch(values))] == [[1.0, 2.0, 2.0, 3.0], [1.0] * 4]


def test_ranks_stay_within_the_promise_of_the_sketch():
    values = np.random.default_rng(0).normal(size=100_000)
    points, weights = weighted_points(sketch(values, 512))
    ranks = np.cumsum(weights) / weights.sum()
    truth = np.searchsorted(np.sort(values), points, side="right") / values.size
    assert np.abs(ranks - truth).max() < 2 * datasketches.kll_doubles_sketch.get_normalized_rank_error(512, False)


def test_an_atom_keeps_its_mass():
    values = np.concatenate([np.zeros(70_000), np.random.default_rng(0).exponential(size=30_000)])
    points, weights = weighted_points(sketch(np.random.default_rng(1).permutation(values), 512))
    assert weights[points == 0.0].sum() / weights.sum() == pytest.approx(0.7, abs=0.02)


def test_merged_sketches_have_seen_what_all_saw():
    points, weights = weighted_points(merged([sketch([1.0, 5.0]), sketch([]), sketch([-2.0])]))
    assert points.tolist() == [-2.0, 1.0, 5.0]
    assert weights.sum() == 3.0


def test_merging_no_sketches_gives_an_empty_one():
    points, weights = weighted_points(merged([]))
    assert points.size == weights.size == 0


@given(st.sampled_from(["kll_double", "hll", ""]), st.binary())
def test_a_tag_comes_off_as_it_went_on(kind: str, payload: bytes):
    assert untagged(kind, tagged(kind, payload)) == payload


def test_a_sketch_of_integers_is_not_read_as_doubles():
    with pytest.raises(ValueError, match="'kll_bigint' cannot be read as 'kll_double'"):
        weighted_points(tagged("kll_bigint", b"whatever"))


def test_a_sketch_without_a_tag_is_refused():
    with pytest.raises(ValueError, match="without a tag"):
        weighted_points(datasketches.kll_doubles_sketch(200).serialize())


@given(st.binary(max_size=30), st.data())
def test_a_damaged_tag_is_refused(payload: bytes, data: st.DataObject):
    whole = tagged("hll", payload)
    place = data.draw(st.integers(0, len(whole) - 1))
    broken = bytearray(whole)
    broken[place] ^= data.draw(st.integers(1, 255))
    for bad in (bytes(broken), whole[:place], whole + b"\0"):
        with pytest.raises(ValueError, match=r"damaged|without a tag|tag of format|cannot be read"):
            untagged("hll", bad)
