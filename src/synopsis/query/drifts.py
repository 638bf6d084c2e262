"""Drifts: how far the values of each feature have moved between two sketches, or two parts of one."""

from __future__ import annotations

import numpy as np

from synopsis.core.errors import BadQuery
from synopsis.query.answer import Answer, Names
from synopsis.query.arithmetic import combined
from synopsis.query.binding import Binned
from synopsis.query.binning import Binning
from synopsis.query.evaluate import answer_of
from synopsis.query.relation import Relation
from synopsis.query.tree import Aggregate, FeatureIs, Item, Name, Question
from synopsis.query.values import CERTAIN, HEURISTIC, Values
from synopsis.sketch.moments import Floats

_PARTS = ("low", "estimate", "high")


def drift(now: Relation, before: Relation) -> Answer:
    """A row for each feature that both have: how means, deviations and distributions differ.

    The distance is Kolmogorov's: the largest difference between the shares of rows below any value, 0 to 1. It is
    certain, from counts at ten values; sketches without paths do not know it. Cost: that of some dozen questions for
    each feature and sketch.
    """
    shared = [name for name in now.layout.features if name in before.layout.features]
    if not shared:
        raise BadQuery("these sketches have no feature in common")
    means, ratios, distances = [], [], []
    for name in shared:
        (mean, deviation), (old_mean, old_deviation) = (_moments(each, name) for each in (now, before))
        means.append(combined("-", mean, old_mean))
        ratios.append(combined("/", deviation, old_deviation))
        distances.append(_distance(now, before, name))
    columns = {"mean difference": means, "deviation ratio": ratios, "distance": distances}
    return Answer({"feature": Names(np.array(shared)), **{name: _stacked(values) for name, values in columns.items()}})


def _moments(relation: Relation, name: str) -> tuple[Values, Values]:
    items = tuple(Item(function, Aggregate(function, (Name(name),))) for function in ("mean", "std"))
    answer = answer_of(relation, Question(items))
    return _values(answer, "mean"), _values(answer, "std")


def _values(answer: Answer, name: str) -> Values:
    column = answer.column(name)
    assert isinstance(column, Values)
    return column


def _distance(now: Relation, before: Relation, name: str) -> Values:
    if now.summary is None or before.summary is None:
        nothing = np.full(1, np.nan)
        return Values(nothing, nothing, nothing, np.full(1, HEURISTIC, np.int8))
    binning = Binning(now.summary.scales, Binned(now.layout.features.index(name)))
    one, other = (_shares_below(each, name, binning.edges) for each in (now, before))
    least = np.maximum(one["low"] - other["high"], other["low"] - one["high"]).max()
    likely = np.abs(one["estimate"] - other["estimate"]).max()
    # Between two edges shares only rise: they are at most what they are at the next, at least what they were before.
    most = np.maximum(one["high"][1:] - other["low"][:-1], other["high"][1:] - one["low"][:-1]).max()
    low, high = max(float(least), 0.0), min(float(most), 1.0)
    estimate = min(max(float(likely), low), high)
    return Values(np.array([estimate]), np.array([low]), np.array([high]), np.full(1, CERTAIN, np.int8))


def _shares_below(relation: Relation, name: str, edges: Floats) -> dict[str, Floats]:
    """The share of rows below each edge, then with it (many rows may have one value), from 0 to 1."""
    feature = Name(name)
    below = [
        Aggregate("count", (feature,), only=FeatureIs(feature, sign, float(edge)))
        for edge in edges
        for sign in ("<", "<=")
    ]
    items = [Item("all", Aggregate("count", (feature,))), *(Item(str(at), each) for at, each in enumerate(below))]
    answer = answer_of(relation, Question(tuple(items)))
    every = _values(answer, "all")
    shares = [combined("share", _values(answer, str(at)), every) for at in range(len(below))]
    unknown = {"low": 0.0, "estimate": 0.0, "high": 1.0}  # where there may be no row at all
    return {
        part: np.nan_to_num([0.0, *(getattr(each, part)[0] for each in shares), 1.0], nan=unknown[part])
        for part in _PARTS
    }


def _stacked(values: list[Values]) -> Values:
    estimate, low, high, guarantee = (
        np.concatenate([getattr(each, name) for each in values]) for name in ("estimate", "low", "high", "guarantee")
    )
    nothing = np.full((1, 2), np.nan)
    p95 = np.vstack([nothing if each.p95 is None else each.p95 for each in values])
    return Values(estimate, low, high, guarantee, p95)
