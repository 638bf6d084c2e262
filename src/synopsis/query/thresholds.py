"""Thresholds: features compared with statistics of the scope, as in wind_ms > MEAN(wind_ms) + STD(wind_ms).

The statistics are asked for first, of the question's places and times and without its conditions on features; the
question is then answered with their estimates as numbers. What is certain must hold wherever the threshold really lies.
A count grows or shrinks with each threshold, so it lies between those of the thresholds' ends; of the rest only the
values in scope are known to be the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synopsis.query.binding import Keyed, Plan, Statistic, bind
from synopsis.query.filters import aligned
from synopsis.query.finish import Found
from synopsis.query.predicates import EVERYTHING
from synopsis.query.scoping import placed
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
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

Planning = Callable[[Plan], Plan]
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


def answered(question: Question, layout: Layout, planned: Planning, answering: Answering) -> tuple[Plan, Found]:
    """The plan with numbers for the thresholds, and the statistics of its groups.

    Cost: that of two questions more, and of two to eight more where thresholds are known within certain ends only.
    """
    places = list(_each(question.scope))
    asked, scope = list(dict.fromkeys(places)), placed(question.scope, layout)
    known = _known(asked, bind(Question(tuple(Item(str(each), each) for each in asked), scope), layout), answering)
    numbers = [None if known[each].estimate is None else float(known[each]) for each in places]

    def plan_of(numbers: list[float | None]) -> Plan:
        return planned(bind(replace(question, scope=_with(question.scope, iter(numbers))), layout))

    middle = plan_of(numbers)
    found = answering(middle)
    open_ones = [at for at, each in enumerate(places) if known[each].low is None or known[each].low != known[each].high]
    open_ones = [at for at in open_ones if numbers[at] is not None]
    if not open_ones:
        return middle, found
    corners = []
    if len(open_ones) <= _MOST_OPEN and all(known[places[at]].guarantee in ("exact", "certain") for at in open_ones):
        # A count grows or shrinks with each threshold, at each place by itself.
        for ends in product(*((known[places[at]].low, known[places[at]].high) for at in open_ones)):
            corner = list(numbers)
            for at, end in zip(open_ones, ends, strict=True):
                corner[at] = None if end is None else float(end)
            asked_there = plan_of(corner)
            there = answering(asked_there)
            corners.append((there, dict(zip(middle.statistics, asked_there.statistics, strict=False))))
    outer = answering(_outer(middle))
    rows = [found.rows_of(there) for there, _ in corners]
    values = {}
    for each, column in found.values.items():
        own = [aligned(there.values[same[each]], at, each) for (there, same), at in zip(corners, rows, strict=True)]
        values[each] = _bounded(each, column, own, outer, found.rows_of(outer))
    return middle, replace(found, values=values)


def _known(asked: list[Threshold], plan: Plan, answering: Answering) -> dict[Threshold, Value]:
    """What each threshold is."""
    found = answering(plan)
    operands = [source for _, source in plan.columns if not isinstance(source, Keyed)]
    return {each: found.of(operand)[0] for each, operand in zip(asked, operands, strict=True)}


def _with(condition: Condition, numbers: Iterator[float | None], *, negated: bool = False) -> Condition:
    """The condition with numbers in the place of statistics, which are met in the same order.

    What is compared with nothing is unknown: neither it nor its negation selects a row.
    """
    match condition:
        case And() | AnyOf():
            parts = tuple(_with(part, numbers, negated=negated) for part in condition.conditions)
            return replace(condition, conditions=parts)
        case Not():
            return replace(condition, condition=_with(condition.condition, numbers, negated=not negated))
        case FeatureIs() if isinstance(condition.number, Threshold):
            number = next(numbers)
            return _unknown(negated) if number is None else replace(condition, number=number)
        case FeatureBetween():
            ends = [next(numbers) if isinstance(end, Threshold) else end for end in (condition.low, condition.high)]
            if ends[0] is None or ends[1] is None:
                return _unknown(negated)
            return replace(condition, low=ends[0], high=ends[1])
    return condition


def _unknown(negated: bool) -> Condition:
    """What selects nothing, wherever it stands."""
    return And() if negated else Not(And())


def _outer(plan: Plan) -> Plan:
    """What bounds the statistics of any rows of these groups: how many there are, and their extremes."""
    features = sorted({feature for each in plan.statistics for feature in each.features})
    wanted = [Statistic("count"), *(Statistic(name, (f,)) for f in features for name in ("count", "min", "max"))]
    columns = tuple((str(at), each) for at, each in enumerate(wanted))
    parts = tuple(replace(part, condition=EVERYTHING) for part in plan.parts)
    return replace(plan, columns=columns, parts=parts, having=None, order=(), limit=None)


def _bounded(asked: Statistic, column: Values, corners: list[Values], outer: Found, rows: NDArray[np.intp]) -> Values:
    """The estimates within what they may be, wherever the thresholds lie."""
    low, high = _ends(asked, corners, outer, rows)
    undefined = np.isnan(column.estimate)
    low, high = (np.where(undefined, np.nan, end) for end in (low, high))
    if asked.is_count and asked.rounded:
        low, high = low.astype(np.int64), high.astype(np.int64)
    estimate = np.clip(column.estimate, low, high)
    exact = np.asarray(low == high) & (asked.function == "count")
    return Values(estimate, low, high, np.where(exact, EXACT, CERTAIN).astype(np.int8))


def _ends(asked: Statistic, corners: list[Values], outer: Found, at: NDArray[np.intp]) -> tuple[Any, Any]:
    rows = outer.values[Statistic("count", asked.features[:1])].take(at)
    if asked.function == "count":
        if corners:
            return np.min([each.low for each in corners], axis=0), np.max([each.high for each in corners], axis=0)
        return np.zeros(at.size), rows.high.astype(np.float64)
    if asked.is_count:
        return np.zeros(at.size), rows.high.astype(np.float64)
    if asked.function == "correlation":
        return np.full(at.size, -1.0), np.ones(at.size)
    least, most = (
        [getattr(outer.values[Statistic(name, (feature,))].take(at), side) for feature in asked.features]
        for name, side in (("min", "low"), ("max", "high"))
    )
    if asked.function == "sum":
        return rows.high * np.minimum(least[0], 0.0), rows.high * np.maximum(most[0], 0.0)
    if asked.function in ("mean", "min", "max", "quantile"):
        return least[0], most[0]
    reach = (most[0] - least[0]) * (most[-1] - least[-1]) / 4  # Popoviciu (1935)
    if asked.function == "std":
        return np.zeros(at.size), np.sqrt(reach)
    return (np.zeros(at.size) if asked.function == "var" or len(set(asked.features)) == 1 else -reach), reach
