"""Predictions: one feature from others by least squares, out of the means, deviations and correlations of a group.

y = mean(y) + b (x - mean(x)), with b the covariances of the predictors among themselves, solved for those with y. The
intervals at 90% and 95% are those of a single row: what the fit leaves of the variance, and how far x lies from what
was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from synopsis.query.inference import student
from synopsis.query.values import LEVELS, Values, guesses
from synopsis.sketch.moments import Floats

#: Rows beyond the number of predictors that a fit takes at least.
_LEAST_ROWS = 2

#: Predictors that follow from the others, but for this share of their variance, make no fit.
_NOTHING_NEW = 1e-9

Moment = tuple[str, tuple[int, ...]]  #: mean, std, correlation or count, and the features


def moments_of(target: int, predictors: tuple[int, ...]) -> list[Moment]:
    """The statistics that a prediction is made of."""
    features = (target, *predictors)
    pairs = [tuple(sorted(pair)) for pair in combinations(features, 2)]
    return [
        ("count", (target,)),
        *(("mean", (feature,)) for feature in features),
        *(("std", (feature,)) for feature in features),
        *(("correlation", pair) for pair in pairs),
    ]


@dataclass(frozen=True)
class Prediction:
    """What a fit says of every group."""

    values: Values
    fit: Floats  #: the share of the variance that it explains; NaN where there is no fit
    rows: Floats
    why_not: str | None  #: why a group has none, if one has none


def predicted(
    target: int, predictors: tuple[int, ...], at: tuple[float, ...], moment: Callable[[Moment], Floats]
) -> Prediction:
    """The target where the predictors have these values, in all groups at once. Cost: a small matrix for each group."""
    features = (target, *predictors)
    count = moment(("count", (target,))).astype(np.float64)
    mean = np.stack([moment(("mean", (feature,))) for feature in features])
    matrix = np.empty((count.size, len(features), len(features)))
    deviations = [moment(("std", (feature,))) for feature in features]
    for row, one in enumerate(features):
        matrix[:, row, row] = deviations[row] ** 2
        for column, two in enumerate(features[:row]):
            # Where a feature does not vary it goes with no other; correlations are of the rows that have both.
            shared = np.nan_to_num(moment(("correlation", (min(one, two), max(one, two)))))
            matrix[:, row, column] = matrix[:, column, row] = shared * deviations[row] * deviations[column]
    enough = count >= len(predictors) + _LEAST_ROWS
    known = enough & np.isfinite(matrix).all(axis=(1, 2)) & np.isfinite(mean).all(axis=0)
    inner, beside, spread = matrix[:, 1:, 1:], matrix[:, 1:, 0], matrix[:, 0, 0]
    varies = known & _is_regular(np.where(known[:, None, None], inner, np.eye(len(predictors))))
    inner = np.where(varies[:, None, None], inner, np.eye(len(predictors)))
    away = np.array(at)[None, :] - mean[1:].T
    slope = np.linalg.solve(inner, np.where(varies[:, None], beside, 0.0)[..., None])[..., 0]
    estimate = np.where(varies, mean[0] + (slope * away).sum(axis=1), np.nan)
    left = np.clip(spread - (slope * np.nan_to_num(beside)).sum(axis=1), 0.0, None)
    freedom = np.maximum(count - len(predictors) - 1, 1.0)
    reach = (away * np.linalg.solve(inner, np.nan_to_num(away)[..., None])[..., 0]).sum(axis=1)
    error = np.sqrt(left * count / freedom * (1.0 + (1.0 + np.clip(reach, 0.0, None)) / np.maximum(count, 1.0)))
    intervals = [
        np.where(varies, (estimate - half, estimate + half), np.nan)
        for half in (error * np.array([student(float(each) + 1.0, level) for each in freedom]) for level in LEVELS)
    ]
    fit = np.where(varies & (spread > 0), 1.0 - left / np.where(spread > 0, spread, 1.0), np.nan)
    why_not = None
    if not enough.all():
        why_not = f"{len(predictors)} predictors take at least {len(predictors) + _LEAST_ROWS} rows"
    elif not varies.all():
        why_not = "a predictor does not vary, or follows from the others"
    return Prediction(guesses(estimate, *intervals), fit, count, why_not)


def _is_regular(matrices: Floats) -> np.ndarray:
    """Which covariance matrices have predictors that tell different things."""
    scale = np.sqrt(np.clip(np.diagonal(matrices, axis1=1, axis2=2), 0.0, None))
    varies = (scale > 0).all(axis=1)
    scale = np.where(scale > 0, scale, 1.0)
    correlations = matrices / (scale[:, :, None] * scale[:, None, :])
    return varies & (np.linalg.eigvalsh(correlations)[:, 0] > _NOTHING_NEW)
