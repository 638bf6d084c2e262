"""Thresholds: features compared with statistics of the scope, as in wind_ms > MEAN(wind_ms) + STD(wind_ms).

The statistics are asked for first, of the question's places and times and without its conditions on features; the
question is then answered with their estimates as numbers. What is certain must hold wherever the threshold really lies.
A count grows or shrinks with each threshold, so it lies between those of the thresholds' ends; of the rest only the
values in scope are known to be the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from synopsis.query.binding import Plan, Statistic, bind, placed
from synopsis.query.finish import Found
from synopsis.query.predicates import EVERYTHING, Or
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    BucketKey,
    CellKey,
    Condition,
    FeatureBetween,
    FeatureIs,
    Item,
    Not,
    Question,
)
from synopsis.query.tree import Or as AnyOf
from synopsis.query.values import CERTAIN, EXACT, Value, Values
from synopsis.sketch.layout import Layout

#: Thresholds that are not exactly known and whose ends are all tried: two answers for the first, four for two.
_MOST_OPEN = 3

Answering = Callable[[Plan], Found]
Threshold = Aggregate | Arithmetic


def thresholds(condition: Condition) -> tuple[Threshold, ...]:
    """The statistics that features are compared with, each once."""
    return tuple(dict.fromkeys(_each(condition)))


def _each(condition: Condition) -> Iterator[Threshold]:
    if isinstance(condition, And | AnyOf):
        for part in condition.conditions:
            yield from _each(part)
    elif isinstance(condition, Not):
        yield from _each(condition.condition)
    elif isinstance(condition, FeatureIs | FeatureBetween):
        ends = (condition.number,) if isinstance(condition, FeatureIs) else (condition.low, condition.high)
        yield from (end for end in ends if isinstance(end, Threshold))


def answered(question: Question, layout: Layout, answering: Answering) -> tuple[Plan, Found]:
    """The plan with numbers for the thresholds, and the statistics of its groups.

    Cost: that of two questions more, and of two to eight more where thresholds are known within certain ends only.
    """
    asked = thresholds(question.scope)
    scope = placed(question.scope, layout)
    known = _known(asked, bind(Question(tuple(Item(str(each), each) for each in asked), scope), layout), answering)
    numbers = {each: float(value) for each, value in known.items()}
    if any(value.estimate is None for value in known.values()):  # compared with nothing, no row is selected
        plan = bind(replace(question, scope=scope), layout)
        none = replace(plan, condition=Or())
        return none, answering(none)
    middle = bind(replace(question, scope=_with(question.scope, numbers)), layout)
    found = answering(middle)
    open_ones = [each for each, value in known.items() if value.low is None or value.low != value.high]
    if not open_ones:
        return middle, found
    corners = []
    if len(open_ones) <= _MOST_OPEN and all(known[each].guarantee in ("exact", "certain") for each in open_ones):
        for corner in product(*((known[each].low, known[each].high) for each in open_ones)):
            ends = {each: float(end) for each, end in zip(open_ones, corner, strict=True) if end is not None}
            corners.append(answering(bind(replace(question, scope=_with(question.scope, numbers | ends)), layout)))
    outer = answering(_outer(middle))
    values = {each: _bounded(each, column, corners, outer) for each, column in found.values.items()}
    return middle, replace(found, values=values)


def _known(asked: tuple[Threshold, ...], plan: Plan, answering: Answering) -> dict[Threshold, Value]:
    """What each threshold is."""
    found = answering(plan)
    operands = [source for _, source in plan.columns if not isinstance(source, CellKey | BucketKey)]
    return {each: found.of(operand)[0] for each, operand in zip(asked, operands, strict=True)}


def _with(condition: Condition, numbers: Mapping[Threshold, float]) -> Condition:
    """The condition with numbers in the place of statistics."""

    def number(end: float | Threshold) -> float:
        return numbers[end] if isinstance(end, Threshold) else end

    match condition:
        case And() | AnyOf():
            return replace(condition, conditions=tuple(_with(part, numbers) for part in condition.conditions))
        case Not():
            return replace(condition, condition=_with(condition.condition, numbers))
        case FeatureIs():
            return replace(condition, number=number(condition.number))
        case FeatureBetween():
            return replace(condition, low=number(condition.low), high=number(condition.high))
    return condition


def _outer(plan: Plan) -> Plan:
    """What bounds the statistics of any rows of these groups: how many there are, and their extremes."""
    features = sorted({feature for each in plan.statistics for feature in each.features})
    wanted = [Statistic("count"), *(Statistic(name, (f,)) for f in features for name in ("count", "min", "max"))]
    columns = tuple((str(at), each) for at, each in enumerate(wanted))
    return replace(plan, columns=columns, condition=EVERYTHING, having=None, order=(), limit=None)


def _bounded(asked: Statistic, column: Values, corners: list[Found], outer: Found) -> Values:
    """The estimates within what they may be, wherever the thresholds lie."""
    low, high = _ends(asked, corners, outer)
    undefined = np.isnan(column.estimate)
    low, high = (np.where(undefined, np.nan, end) for end in (low, high))
    if asked.function == "count":
        low, high = low.astype(np.int64), high.astype(np.int64)
    estimate = np.clip(column.estimate, low, high)
    exact = np.asarray(low == high) & (asked.function == "count")
    return Values(estimate, low, high, np.where(exact, EXACT, CERTAIN).astype(np.int8))


def _ends(asked: Statistic, corners: list[Found], outer: Found) -> tuple[Any, Any]:
    rows = outer.values[Statistic("count", asked.features[:1])]
    if asked.function == "count":
        if corners:
            columns = [corner.values[asked] for corner in corners]
            return np.min([each.low for each in columns], axis=0), np.max([each.high for each in columns], axis=0)
        return np.zeros(outer.size), rows.high.astype(np.float64)
    if asked.function == "correlation":
        return np.full(outer.size, -1.0), np.ones(outer.size)
    least, most = (
        [getattr(outer.values[Statistic(name, (feature,))], side) for feature in asked.features]
        for name, side in (("min", "low"), ("max", "high"))
    )
    if asked.function == "sum":
        return rows.high * np.minimum(least[0], 0.0), rows.high * np.maximum(most[0], 0.0)
    if asked.function in ("mean", "min", "max", "quantile"):
        return least[0], most[0]
    reach = (most[0] - least[0]) * (most[-1] - least[-1]) / 4  # Popoviciu (1935)
    if asked.function == "std":
        return np.zeros(outer.size), np.sqrt(reach)
    return (np.zeros(outer.size) if asked.function == "var" or len(set(asked.features)) == 1 else -reach), reach
