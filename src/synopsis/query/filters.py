"""Filters: statistics of some of a group's rows, as in MEAN(rh) FILTER (WHERE location LIKE '6g%').

Each filter is a question of its own with the same groups. The groups of an answer are those of WHERE, whatever filters
leave of them: a statistic of nothing is 0 as a count, and undefined otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from synopsis.query.binding import Plan, Statistic
from synopsis.query.finish import Found
from synopsis.query.scoping import Part
from synopsis.query.values import EXACT, Values

Answering = Callable[[Plan], Found]


def filtered(asked: Plan, answering: Answering) -> Found:
    """The statistics of a plan, filtered or not. Cost: that of one question more for each different filter."""
    if not any(each.only for each in asked.statistics):
        return answering(asked)
    unfiltered = [each for each in asked.statistics if each.only is None]
    # Without groups there is one row, whatever WHERE leaves.
    is_needed = asked.groups or unfiltered
    main = answering(alone(asked, asked.parts, unfiltered)) if is_needed else Found(1, {}, {})
    values = {each: main.values[each] for each in asked.statistics if each.only is None}
    for only in dict.fromkeys(each.only for each in asked.statistics if each.only is not None):
        wanted = [each for each in asked.statistics if each.only == only]
        found = answering(alone(asked, only, [replace(each, only=None) for each in wanted]))
        rows = main.rows_of(found)
        values |= {each: aligned(found.values[replace(each, only=None)], rows, each) for each in wanted}
    return replace(main, values=values)


def alone(asked: Plan, parts: tuple[Part, ...], wanted: list[Statistic]) -> Plan:
    """A plan for some statistics alone; without any, for how many rows there are."""
    columns = tuple((str(at), each) for at, each in enumerate(wanted or [Statistic("count")]))
    return replace(asked, columns=columns, parts=parts, order=(), limit=None, having=None)


def aligned(values: Values, rows: NDArray[np.intp], asked: Statistic) -> Values:
    """The values of other groups in the order of these."""
    if not (rows < 0).any():
        return values.take(rows)
    nothing = np.zeros(1, np.int64) if asked.is_count else np.full(1, np.nan)
    p95 = None if values.p95 is None else np.vstack([values.p95, np.full((1, 2), np.nan)])
    estimate, low, high = (np.append(side, nothing) for side in (values.estimate, values.low, values.high))
    longer = Values(estimate, low, high, np.append(values.guarantee, EXACT).astype(np.int8), p95)
    return longer.take(rows)  # the last one stands for those that are missing
