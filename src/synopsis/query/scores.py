"""Scores: where in their bins the values of a row lie, features together.

A path says in which bins a row's values lie, not where in them. Its features are taken to be bins of normal scores
which go together as the bins of a stratum's paths do (a Gaussian copula): a value leans to the side of its bin that the
others lead to expect, strongly where they leave little room and hardly where they leave much. Scores are drawn one
feature at a time given the others, within their bins (Geweke 1991). What is missing has a score of its own, anywhere.

Within each bin of each stratum, scores then become ranks, and ranks even levels: a bin's values are spread over all of
its density, whatever the scores, so that distributions stay what exact counts say they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Strata

#: Scores beyond this are no further away; and how many steps its table has.
_REACH, _STEPS = 6.0, 4_800

#: A stratum's correlations count as much as those of all strata of the block once it has so many paths.
_SHRINKAGE = 30.0

#: The least eigenvalue of correlations: bins tell nothing about what goes together more closely.
_LEAST = 0.02

#: Rounds of drawing each feature given the others.
_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Scores:
    """Normal scores of the bins of some strata, and how they go together."""

    reached: Floats  #: features x strata x (bins + 1): the share of rows below each bin, of those that are present
    precision: Floats  #: strata x features x features: the inverse of the correlations
    bins: int

    @classmethod
    def of(cls, strata: Strata, positions: list[int]) -> Scores:
        """The scores of features at these positions. Cost: proportional to paths times pairs of features."""
        counts = strata.counts[positions][:, :, :-1].astype(np.float64)
        below = np.cumsum(counts, axis=2) / np.maximum(counts.sum(axis=2, keepdims=True), 1.0)
        reached = np.concatenate((np.zeros((*below.shape[:2], 1)), np.minimum(below, 1.0)), axis=2)
        precision = np.asarray(np.linalg.inv(_correlations(strata, positions, reached)), np.float64)
        return cls(reached, precision, strata.bins)

    def levels(self, codes: Integers, stratum: Integers, random: np.random.Generator) -> Floats:
        """Features x rows: where in its bin each value lies, 0 to 1. Cost: rows times squared features."""
        features, rows = codes.shape
        absent, which = codes == self.bins, np.arange(features)[:, None]
        own = np.where(absent, 0, codes)
        low = np.where(absent, 0.0, self.reached[which, stratum, own])
        high = np.where(absent, 1.0, self.reached[which, stratum, own + 1])
        from_score, to_score = _score(low), _score(high)
        score = _score(low + (high - low) * random.random((features, rows)))
        for _ in range(_ROUNDS):
            for feature in range(features):
                precision = self.precision[stratum, feature]  # rows x features
                variance = 1.0 / precision[:, feature]
                mean = score[feature] - variance * np.einsum("rf,fr->r", precision, score)
                deviation = np.sqrt(variance)
                begin = _below((from_score[feature] - mean) / deviation)
                end = _below((to_score[feature] - mean) / deviation)
                drawn = mean + deviation * _score(begin + (end - begin) * random.random(rows))
                score[feature] = np.clip(drawn, from_score[feature], to_score[feature])
        drawn = (_below(score) - low) / np.maximum(high - low, 1e-12)
        return np.stack([self._evened(*each, stratum, random) for each in zip(drawn, codes, strict=True)])

    def _evened(self, level: Floats, code: Integers, stratum: Integers, random: np.random.Generator) -> Floats:
        """Levels in the same order, evenly spread within each bin of each stratum."""
        bin_of = stratum * (self.bins + 1) + code
        order = np.lexsort((level, bin_of))
        sizes = np.bincount(bin_of)
        before = np.cumsum(sizes) - sizes
        sorted_bin = bin_of[order]
        even = np.empty(level.size)
        even[order] = (np.arange(level.size) - before[sorted_bin] + random.random(level.size)) / sizes[sorted_bin]
        return even


def _correlations(strata: Strata, positions: list[int], reached: Floats) -> Floats:
    """Strata x features x features: correlations of the expected scores of bins, of rows that have both features."""
    size, number = len(positions), len(strata)
    codes = strata.codes[positions].astype(np.intp)
    stratum = np.repeat(np.arange(number), np.diff(strata.path_offset))
    density = np.exp(-np.square(_score(reached)) / 2) / np.sqrt(2 * np.pi)
    width = np.diff(reached, axis=2)
    expected = np.where(width > 0, -np.diff(density, axis=2) / np.maximum(width, 1e-12), 0.0)
    present = codes < strata.bins
    score = np.where(
        present, expected[np.arange(size)[:, None], stratum, np.where(present, codes, 0)], 0.0
    )  # features x paths
    found = np.broadcast_to(np.eye(size), (number, size, size)).copy()
    for one in range(size):
        for two in range(one):
            both = present[one] & present[two]
            cross, first, second = (
                np.bincount(stratum, product, number)
                for product in (score[one] * score[two], both * score[one] ** 2, both * score[two] ** 2)
            )
            scale = np.sqrt(first * second)
            together = cross.sum() / max(scale.sum(), 1e-12)
            found[:, one, two] = found[:, two, one] = (cross + _SHRINKAGE * together) / (scale + _SHRINKAGE)
    values, vectors = np.linalg.eigh(found)
    return np.asarray((vectors * np.maximum(values, _LEAST)[:, None, :]) @ np.swapaxes(vectors, 1, 2))


@cache
def _table() -> tuple[Floats, Floats]:
    """Scores, and the share of a normal distribution below each."""
    scores = np.linspace(-_REACH, _REACH, _STEPS + 1)
    return scores, np.array([NormalDist().cdf(score) for score in scores])


def _below(score: Floats) -> Floats:
    """The share of a normal distribution that lies below each score."""
    scores, shares = _table()
    return np.asarray(np.interp(score, scores, shares))


def _score(share: Floats) -> Floats:
    """The score below which a share of a normal distribution lies."""
    scores, shares = _table()
    return np.asarray(np.interp(share, shares, scores))
