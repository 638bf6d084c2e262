"""Expectations: how far off answers of a sketch usually are, by class of question, found by asking itself.

Questions are drawn at random about its own places, days and features: cells of three sizes, spans of time that go with
them, and none to three ranges of values. What is told is the standard error, the median of its class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from synopsis.grid import geohash
from synopsis.query.binding import Plan, Statistic
from synopsis.query.opened import day_us
from synopsis.query.paths import of_summary
from synopsis.query.predicates import And, Between
from synopsis.query.scoping import Part, Scope
from synopsis.query.values import Value
from synopsis.sketch.layout import Layout
from synopsis.sketch.summary import Summary

#: Lengths of geohashes, and how many days go with them.
_SIZES: Final = ((4, 10), (3, 60), (2, 240))
_MOST_PREDICATES: Final = 3
_FUNCTIONS: Final = ("count", "mean", "std", "quantile", "correlation")

Expected = dict[str, dict[str, float | None]]


def expected(summary: Summary, layout: Layout, questions: int = 48, seed: int = 0) -> Expected:
    """Median errors by function and number of predicates.

    COUNT is told as a part of itself, CORRELATION as it is, all others in standard deviations of the feature; None
    where no interval at 95% is known. Cost: that of so many questions.
    """
    deviations = _deviations(summary, layout)
    found: dict[tuple[str, int], list[float]] = {}
    for plan, predicates in _plans(summary, layout, np.random.default_rng(seed), questions):
        for statistic, column in of_summary(summary, layout, plan).values.items():
            value = column[0]
            scale = _scale(statistic, value, deviations)
            if scale > 0.0 and value.error is not None:
                found.setdefault((statistic.function, predicates), []).append(value.error / scale)
    return {
        function: {str(count): _median(found.get((function, count), [])) for count in range(_MOST_PREDICATES + 1)}
        for function in _FUNCTIONS
    }


def _scale(statistic: Statistic, value: Value, deviations: list[float]) -> float:
    """What an error is a part of; 0 where nothing was found."""
    if value.estimate is None:
        return 0.0
    if statistic.function == "count":
        return float(value.estimate)
    return 1.0 if statistic.function == "correlation" else deviations[statistic.features[0]]


def _median(errors: list[float]) -> float | None:
    """To two digits; more would be luck."""
    return float(f"{np.median(errors):.2g}") if errors else None


def _deviations(summary: Summary, layout: Layout) -> list[float]:
    statistics = [Statistic("std", (feature,)) for feature in range(len(layout.features))]
    plan = Plan(tuple((str(at), each) for at, each in enumerate(statistics)), (Part(),), (), (), None)
    values = of_summary(summary, layout, plan).values
    return [float(np.nan_to_num(values[each].estimate[0])) for each in statistics]


def _plans(summary: Summary, layout: Layout, random: np.random.Generator, questions: int) -> Iterator[tuple[Plan, int]]:
    """Random questions about what is there, and how many predicates each has."""
    days = [strata.run_first for strata in summary.opened((0,))]
    first, last = (int(end) for end in (min(map(np.min, days)), max(map(np.max, days)) + 1)) if days else (0, 1)
    features, scales, spell = len(layout.features), summary.scales, summary.layout.spell
    for number in range(questions):
        length, span = _SIZES[number % len(_SIZES)]
        place = random.integers(summary.latitude.size)
        cell = geohash.encode(
            summary.latitude[[place]], summary.longitude[[place]], length * geohash.BITS_PER_CHARACTER
        )
        begin = int(random.integers(first * spell, max(last * spell - span, first * spell) + 1))
        from_us, until_us = (int(each) for each in day_us(np.array([begin, begin + span]), layout))
        scope = Scope((str(geohash.to_text(cell, length)[0]),), from_us, until_us)
        predicates = number // len(_SIZES) % (_MOST_PREDICATES + 1)
        chosen = random.choice(features, min(predicates, features), replace=False)
        conditions = []
        for feature in chosen:
            ends = scales.ranges(int(feature))[0]
            low, high = np.sort(random.choice(ends, 2))
            conditions.append(Between(int(feature), float(low), float(high)))
        one, two = (int(each) for each in np.sort(random.choice(features, 2, replace=features < 2)))
        statistics = [Statistic("count"), Statistic("mean", (one,)), Statistic("std", (one,))]
        statistics += [Statistic("quantile", (one,), float(random.choice((0.1, 0.5, 0.9))))]
        statistics += [Statistic("correlation", (one, two))] if one != two else []
        columns = tuple((str(at), each) for at, each in enumerate(statistics))
        yield Plan(columns, (Part(scope, And(tuple(conditions))),), (), (), None), predicates
