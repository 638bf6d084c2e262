"""Paths of a day in an order that tells nothing."""

from __future__ import annotations

import numpy as np

from synopsis.sketch.evenly import GOLDEN, MIXED
from synopsis.sketch.mixing import mixed

RANDOM = np.random.default_rng(11)
KEPT = np.array([3, 0, 1, 40, 2, 1_000, 7, 40])
CODES = RANDOM.integers(0, 200, (3, KEPT.sum())).astype(np.uint8)


def order_of(many: int) -> list[int]:
    """Each changes places with one of those before it, or stays."""
    order: list[int] = []
    turn = many * int(GOLDEN) % 2**64
    for path in range(many):
        turn = (turn ^ turn >> 29) * int(MIXED) % 2**64
        other = (turn >> 32) * (path + 1) >> 32
        order.append(path)
        order[path], order[other] = order[other], path
    return order


def test_paths_stay_whole_and_on_their_day():
    found, first = mixed(CODES, KEPT), 0
    for many in KEPT.tolist():
        assert np.array_equal(found[:, first : first + many], CODES[:, first : first + many][:, order_of(many)])
        first += many
    assert sorted(order_of(40)) == list(range(40))


def test_neighbours_in_the_new_order_differ_as_any_two_do():
    """Those in the order of their values hardly do."""
    codes = np.sort(RANDOM.binomial(200, 0.5, (1, 5_000)).astype(np.uint8), axis=1)
    near = [np.mean(np.diff(each[0].astype(float)) ** 2) / 2 for each in (codes, mixed(codes, np.array([5_000])))]
    assert near[0] < 0.01 * codes.var()
    assert abs(near[1] / codes.var() - 1) < 0.1


def test_nothing_is_nothing():
    assert mixed(np.empty((2, 0), np.uint8), np.zeros(3, np.int64)).shape == (2, 0)
