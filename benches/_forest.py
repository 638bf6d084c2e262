"""A random forest that splits as Spark ML's does, in machine code: the same question many times over.

As Spark's: features are cut into 32 bins at quantiles of 10,000 rows; every row counts in a tree as often as a Poisson
number says; a node draws the features that it looks at, and is a leaf where they gain nothing; the best cut is that
which takes most off the variance. Unlike Spark's: the features that a node draws depend on the seed and the node alone,
so that two sets of rows are learnt from with the same draws, and their difference has less chance in it.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS, OBSERVED = 32, 10_000


def error(
    train: tuple[Floats, Floats], test: tuple[Floats, Floats], looks_at: int, seed: int, trees: int, depth: int
) -> float:
    """Root mean square error, on a test set, of a forest that learnt from a training set: predictors and targets.

    Cost: proportional to rows, depth, trees and the features that a node looks at.
    """
    random = np.random.default_rng(seed)
    cuts = [_cuts(values, random) for values in train[0]]
    learnt, asked = (
        np.stack([np.searchsorted(at, values) for at, values in zip(cuts, rows[0], strict=True)]).astype(np.int16)
        for rows in (train, test)
    )
    found = np.zeros(test[1].size)
    for _ in range(trees):
        times = random.poisson(1.0, train[1].size).astype(np.float64)
        _predict(asked, *_grown(learnt, train[1], times, depth, looks_at, int(random.integers(1 << 31))), found)
    return float(np.sqrt(np.mean(np.square(found / trees - test[1]))))


def _cuts(values: Floats, random: np.random.Generator) -> Floats:
    """Where a feature is cut: at as many rows each, or between all values where they are few."""
    if values.size > OBSERVED:
        values = random.choice(values, OBSERVED, replace=False)
    distinct, counts = np.unique(values, return_counts=True)
    middles = (distinct[1:] + distinct[:-1]) / 2
    if middles.size < BINS:
        return np.asarray(middles)
    reached = np.cumsum(counts)[:-1]
    targets = values.size / BINS * np.arange(1, BINS)
    after = np.clip(np.searchsorted(reached, targets), 1, reached.size - 1)
    nearer = after - (targets - reached[after - 1] < reached[after] - targets)
    return np.asarray(middles[np.unique(nearer)])


@numba.njit(cache=True)
def _grown(codes, targets, times, depth, looks_at, seed):  # type: ignore[no-untyped-def]  # numba finds them
    """A tree: feature (-1: a leaf), cut and mean of every node; the children of node n are 2n and 2n + 1."""
    np.random.seed(seed)  # what numba has
    features, rows = codes.shape
    nodes = 2 ** (depth + 1)
    feature, cut, mean = np.full(nodes, -1, np.int32), np.zeros(nodes, np.int32), np.zeros(nodes)
    at, turn = np.ones(rows, np.int32), np.arange(features)
    mean[1] = (times * targets).sum() / times.sum()
    for level in range(depth):
        first = 2**level
        looked = np.zeros((first, features), np.bool_)
        for node in range(first):
            np.random.shuffle(turn)
            for each in range(looks_at):
                looked[node, turn[each]] = True
        weights, sums = np.zeros((first, features, BINS)), np.zeros((first, features, BINS))
        for row in range(rows):
            node = at[row] - first
            if node >= 0 and times[row] > 0:
                for each in range(features):
                    if looked[node, each]:
                        weights[node, each, codes[each, row]] += times[row]
                        sums[node, each, codes[each, row]] += times[row] * targets[row]
        for node in range(first):
            most = 1e-9
            for each in range(features):
                weight, total = weights[node, each].sum(), sums[node, each].sum()
                if weight < 2:
                    continue
                left_weight, left = 0.0, 0.0
                for code in range(BINS - 1):
                    left_weight += weights[node, each, code]
                    left += sums[node, each, code]
                    right_weight, right = weight - left_weight, total - left
                    if left_weight < 1 or right_weight < 1:
                        continue
                    gain = left**2 / left_weight + right**2 / right_weight - total**2 / weight
                    if gain > most:
                        most = gain
                        feature[first + node], cut[first + node] = each, code
                        mean[2 * (first + node)], mean[2 * (first + node) + 1] = (
                            left / left_weight,
                            right / right_weight,
                        )
        for row in range(rows):
            node = at[row]
            if node >= first and feature[node] >= 0:
                at[row] = 2 * node + (codes[feature[node], row] > cut[node])
    return feature, cut, mean


@numba.njit(cache=True)
def _predict(codes, feature, cut, mean, found):  # type: ignore[no-untyped-def]
    """Add a tree's predictions."""
    for row in range(codes.shape[1]):
        node = 1
        while feature[node] >= 0:
            node = 2 * node + (codes[feature[node], row] > cut[node])
        found[row] += mean[node]
