"""Evaluation: a plan and the strands of a sketch give an answer.

Strands are selected and grouped once; every statistic of the question is then computed over the same groups, from the
columns that it needs and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from synopsis.core.errors import BadQuery, NotKept, nearest
from synopsis.query import meetings, paths
from synopsis.query.answer import Answer
from synopsis.query.binding import Binned, Plan, Statistic, plan
from synopsis.query.bounds import Numbers, counted, outlying
from synopsis.query.cuts import snapped
from synopsis.query.filters import filtered
from synopsis.query.finish import Found, finish
from synopsis.query.grains import settled
from synopsis.query.groups import Grouping, group
from synopsis.query.joins import joined
from synopsis.query.pairs import PairedNumbers
from synopsis.query.predicates import EVERYTHING, Between, Condition, IsNull, Not
from synopsis.query.relation import CUTS, Relation, selected, under
from synopsis.query.spelling import canonical, question_of
from synopsis.query.straight import answered as straightly
from synopsis.query.thresholds import answered, thresholds
from synopsis.query.tree import And, Curve, Join, Question, Selection
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


def ask(
    strands: Strands, text: str | Mapping[str, Any], summary: Summary | None = None, *, strict: bool = False
) -> Answer:
    """The answer to a question in SQL or as JSON, from the summary where there is one."""
    found = asked_of(Relation(strands, summary), text, strict=strict)
    if isinstance(found, Relation):
        raise BadQuery("plain columns select a part of a sketch, which is not an answer; ask for statistics")
    return found


def asked_of(
    relation: Relation,
    text: str | Mapping[str, Any],
    others: Mapping[str, Relation] | None = None,
    *,
    strict: bool = False,
    cut: str | None = None,
) -> Answer | Relation:
    """What a question in SQL or as JSON comes to: an answer, or the part of a sketch that plain columns select.

    `others` are sketches that FROM can name. `strict` refuses groups finer than what remains, instead of answering
    coarser ones; `cut` says what becomes of strands that the scope cuts: "keep" and "drop" take them whole or not at
    all, instead of in part.
    """
    if cut not in CUTS:
        raise BadQuery(f"cut is 'keep' or 'drop', or None, not {cut!r}")
    text = canonical(text)
    if cut is None and (plain := straightly(relation, text)) is not None:
        return plain
    asked = question_of(text)
    if isinstance(asked, Selection):
        return selected(named(asked.sketch, relation, others), asked, cut)

    if isinstance(asked, Curve):
        if cut is not None:
            raise BadQuery(f"{asked.function.upper()} takes what the scope cuts in part; ask without cut", *asked.where)
        from synopsis.query.curves import curved  # which asks questions itself

        return curved(named(asked.sketch, relation, others), asked)

    def answer(question: Question) -> Answer:
        return answer_of(named(question.sketch, relation, others), question, text, strict=strict, cut=cut)

    if isinstance(asked, Join):
        return joined(asked, [answer(source.question) for source in asked.sources])
    return answer(asked)


def named(name: str | None, relation: Relation, others: Mapping[str, Relation] | None) -> Relation:
    """The sketch that FROM names; without others every name means the one that is asked."""
    if name is None or not others:
        return relation
    if name not in others:
        hint = nearest(name, tuple(others)) or ";"
        raise BadQuery(f"no sketch is called {name!r}{hint} there are {', '.join(others)}; leave FROM out for this one")
    return others[name]


def answer_of(
    relation: Relation, question: Question, text: str = "", *, strict: bool = False, cut: str | None = None
) -> Answer:
    """The answer to a question that was read from some text."""
    layout = relation.layout
    if relation.where != And():
        question = replace(question, scope=under(relation.where, question.scope))
    planned = planning_of(relation, strict=strict, cut=cut)
    answering = answering_of(relation)
    if relation.summary is not None and _has_thresholds(question):
        return finish(*answered(question, layout, planned, answering), layout)
    asked = planned(plan(question, layout, text))
    return finish(asked, answering(asked), layout)


@lru_cache(maxsize=1024)
def _has_thresholds(question: Question) -> bool:
    """Whether features are compared with statistics."""
    return bool(thresholds(question.scope))


def planning_of(relation: Relation, *, strict: bool = False, cut: str | None = None) -> Callable[[Plan], Plan]:
    """Who makes of a plan one that the sketch can answer."""

    def planned(asked: Plan) -> Plan:
        asked = asked if cut is None else replace(asked, cut=cut)
        return settled(asked, relation.strands, relation.summary, strict) if asked.groups else asked

    return planned


def answering_of(relation: Relation) -> Callable[[Plan], Found]:
    """Who finds the statistics of a plan: the summary where there is one, else the strands; members know who."""
    strands, summary = relation.strands, relation.summary

    def statistics(asked: Plan) -> Found:
        if summary is None:
            return filtered(asked, lambda each: of_strands(strands, each))
        return filtered(asked, lambda each: paths.of_summary(summary, strands.layout, snapped(each, summary.scales)))

    def found(asked: Plan) -> Found:
        if not asked.memberships:
            return met(statistics(asked), asked)
        from synopsis.query.memberships import Asking  # and with it the sketches of sets, which few questions need

        return met(Asking(asked, relation.layout, relation.members, planning_of(relation), statistics).found(), asked)

    def met(answer: Found, asked: Plan) -> Found:
        if summary is None or asked.cut is not None:  # bins that count whole or not at all are no rows
            return answer
        return meetings.sharpened(answer, asked, summary, strands.layout)

    return found


def of_strands(strands: Strands, asked: Plan) -> Found:
    """The statistics of a bound question.

    Cost: proportional to the strands in scope times the features named; nothing is copied of the features that are not.
    """
    _check_kept(asked, strands.layout)
    grouping = group(asked, strands)
    evaluation = _Evaluation(strands, grouping)
    values = {each: evaluation.statistic(each) for each in asked.statistics}
    return Found(grouping.size, grouping.keys, values)


def _check_kept(asked: Plan, layout: Layout) -> None:
    """Refuse what strands do not know: which values of features lie in the same row, and how values are spread."""
    if asked.has_conditions:
        place = asked.condition_place
        named = next((_first_feature(part.condition) for part in asked.parts if part.condition != EVERYTHING), None)
        raise NotKept(
            "predicates on features need paths, which this sketch does not keep: "
            f"ask by location and time, without a condition on {'them' if named is None else layout.features[named]}",
            *((place.line, place.column) if place else (None, None)),
        )
    for key in asked.groups:
        if isinstance(key, Binned):
            feature = layout.features[key.feature]
            raise NotKept(
                f"BIN({feature}) needs paths, which this sketch does not keep: group by CELL and BUCKET, "
                "or build a sketch with memory and without exact_at"
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
        if asked.function == "count" and len(asked.features) == 2:  # rows that have both
            return counted(self._grouping.groups, self._comoments(asked.features).count)
        if asked.function == "correlation" or len(set(asked.features)) == 2:
            pair = self._pair(asked.features)
            return pair.correlation() if asked.function == "correlation" else pair.covariance()
        if asked.away is not None:
            return outlying(self._of_feature(asked.features[0]), asked.away)
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
