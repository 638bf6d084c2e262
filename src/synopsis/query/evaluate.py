"""Evaluation: a plan and the strands of a sketch give an answer.

Strands are selected and grouped once; every statistic of the question is then computed over the same groups, from the
columns that it needs and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from synopsis.core.errors import NotKept
from synopsis.query import paths
from synopsis.query.answer import Answer
from synopsis.query.binding import Plan, Statistic, plan
from synopsis.query.bounds import Numbers, counted
from synopsis.query.finish import Found, finish
from synopsis.query.groups import Grouping, group
from synopsis.query.pairs import PairedNumbers
from synopsis.query.predicates import EVERYTHING, Between, Condition, IsNull, Not
from synopsis.query.scope import select
from synopsis.query.spelling import canonical, question_of
from synopsis.query.thresholds import answered, thresholds
from synopsis.query.values import Values
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Comoments, Moments
from synopsis.sketch.strands import Strands
from synopsis.sketch.summary import Summary

_OF_ONE: Final[dict[str, Callable[[Numbers], Values]]] = {
    "count": Numbers.count,
    "sum": Numbers.sum,
    "mean": Numbers.mean,
    "std": Numbers.std,
    "var": Numbers.var,
    "min": Numbers.min,
    "max": Numbers.max,
    "covariance": Numbers.var,  # of a feature with itself
}


def ask(strands: Strands, text: str | Mapping[str, Any], summary: Summary | None = None) -> Answer:
    """The answer to a question in SQL or as JSON, from the summary where there is one."""
    text, layout = canonical(text), strands.layout
    answering = answering_of(strands, summary)
    question = question_of(text)
    if summary is not None and thresholds(question.scope):
        return finish(*answered(question, layout, answering), layout)
    asked = plan(text, layout)
    return finish(asked, answering(asked), layout)


def answering_of(strands: Strands, summary: Summary | None) -> Callable[[Plan], Found]:
    """Who finds the statistics of a plan: the summary where there is one, else the strands."""
    if summary is None:
        return lambda asked: of_strands(strands, asked)
    return lambda asked: paths.of_summary(summary, strands.layout, asked)


def of_strands(strands: Strands, asked: Plan) -> Found:
    """The statistics of a bound question.

    Cost: proportional to the strands in scope times the features named; nothing is copied of the features that are not.
    """
    _check_kept(asked, strands.layout)
    grouping = group(asked, strands, select(asked.scope, strands))
    evaluation = _Evaluation(strands, grouping)
    values = {each: evaluation.statistic(each) for each in asked.statistics}
    return Found(grouping.size, grouping.cells, grouping.buckets, values)


def _check_kept(asked: Plan, layout: Layout) -> None:
    """Refuse what strands do not know: which values of features lie in the same row, and how values are spread."""
    if asked.condition != EVERYTHING:
        place, named = asked.condition_place, _first_feature(asked.condition)
        raise NotKept(
            "predicates on features need paths, which this sketch does not keep: "
            f"ask by location and time, without a condition on {'them' if named is None else layout.features[named]}",
            *((place.line, place.column) if place else (None, None)),
        )
    for source in asked.statistics:
        if source.function == "quantile":
            feature = layout.features[source.features[0]]
            raise NotKept(
                "quantiles need paths, which this sketch does not keep: "
                f"ask for MEAN, STD, MIN or MAX, without a quantile of {feature}",
                *source.where,
            )


def _first_feature(condition: Condition) -> int | None:
    """The feature that a condition names first, if any."""
    stack = [condition]
    while stack:
        part = stack.pop()
        match part:
            case Between() | IsNull():
                return part.feature
            case Not():
                stack.append(part.condition)
            case _:
                stack += reversed(part.conditions)
    return None


class _Evaluation:
    """One question being answered; statistics are computed when first asked for."""

    def __init__(self, strands: Strands, grouping: Grouping) -> None:
        self._strands, self._grouping = strands, grouping
        self._known: dict[Statistic, Values] = {}
        self._numbers: dict[int, Numbers] = {}
        self._pairs: dict[tuple[int, ...], PairedNumbers] = {}

    def statistic(self, asked: Statistic) -> Values:
        """One statistic of all groups."""
        if asked not in self._known:
            self._known[asked] = self._computed(asked)
        return self._known[asked]

    def _computed(self, asked: Statistic) -> Values:
        if not asked.features:
            return counted(self._grouping.groups, self._strands.rows)
        if asked.function == "correlation" or len(set(asked.features)) == 2:
            pair = self._pair(asked.features)
            return pair.correlation() if asked.function == "correlation" else pair.covariance()
        return _OF_ONE[asked.function](self._of_feature(asked.features[0]))

    def _of_feature(self, feature: int) -> Numbers:
        if feature not in self._numbers:
            self._numbers[feature] = Numbers(self._grouping.groups, self._moments(feature))
        return self._numbers[feature]

    def _pair(self, features: tuple[int, ...]) -> PairedNumbers:
        if features not in self._pairs:
            first, second = (self._moments(feature) for feature in features)
            self._pairs[features] = PairedNumbers(self._grouping.groups, self._comoments(features), first, second)
        return self._pairs[features]

    def _moments(self, feature: int) -> Moments:
        """One feature's moments of all strands, without copying."""
        return self._strands.moments.each(lambda array: array[feature])

    def _comoments(self, features: tuple[int, ...]) -> Comoments:
        first, second = features
        if first == second:
            one = self._moments(first)
            return Comoments(one.count, one.mean, one.mean, one.spread, one.spread, one.spread)
        # Pairs are kept in the order of `itertools.combinations`; their list is long for many features.
        pair = first * (2 * len(self._strands.layout.features) - first - 3) // 2 + second - 1
        return self._strands.comoments.each(lambda array: array[pair])
