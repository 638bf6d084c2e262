"""Settled: what exact counts and paths tell of one group, put together statistic by statistic in one call.

What `pieces` does for each statistic by itself, by the same functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synopsis.query import arrangements, intervals
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers

#: Kinds of statistics: rows, as they are or rounded; what facts bound; quantiles; what paths alone tell of, and among
#: that variances and deviations, which are no larger than extremes allow.
ROWS, WHOLE_ROWS, BOUNDED, QUANTILE, GUESSED, VARIANCE, DEVIATION = range(7)

#: Of a statistic: where `told` puts it, its kind, and which facts bound it from below and above, if any do.
POSITION, KIND, DOWN, UP = range(4)


@compiled
def settled(
    asked: Integers,
    told: Floats,
    shares: Floats,
    rows: Floats,
    facts: Floats,
    values: Floats,
    must: Floats,
    either: Floats,
    sizes: Integers,
) -> tuple[Floats, NDArray[np.int8]]:
    """Statistics x (estimate, low, high, low and high at 95%) of one group, and what is promised of each.

    Shares are those of quantiles, statistic by statistic; rows, facts and what follows are as `arrangements.selected`
    has them: without facts there is no value.
    """
    found, promised = np.empty((asked.shape[0], 5)), np.empty(asked.shape[0], np.int8)
    low, high = np.empty(1), np.empty(1)
    for each in range(asked.shape[0]):
        kind, down, up, own = asked[each, KIND], asked[each, DOWN], asked[each, UP], told[asked[each, POSITION]]
        if kind >= GUESSED:
            if kind != GUESSED:
                reach = (facts[0, arrangements.BEST] + facts[1, arrangements.BEST]) / 2.0 if facts.size else np.nan
                low[0] = reach if kind == DEVIATION else reach * reach
                own = intervals.capped(own, low)
            likely, word = intervals.guessed(own[0], own[1], own[2])
            promised[each], found[each, 0] = word[0], own[0, 0]
            for side in range(2):
                found[each, 1 + side] = found[each, 3 + side] = likely[0, side]
            continue
        if not facts.size and kind in (QUANTILE, BOUNDED):
            low[0] = high[0] = np.nan
        elif kind == QUANTILE:
            ends = arrangements.quantile(values, must, either, sizes, facts, shares[each])
            low[0], high[0] = ends[0], ends[1]
        elif kind == BOUNDED:
            low[0], high[0] = 0.0 - facts[0, down], facts[1, up]
        else:
            low[0], high[0] = rows[arrangements.ROWS_LOW], rows[arrangements.ROWS_HIGH]
        is_count = kind in (ROWS, WHOLE_ROWS)
        numbers, word = intervals.bounded(own[0], low, high, own[1], own[2], kind == WHOLE_ROWS, is_count)
        promised[each] = word[0]
        for number in range(5):
            found[each, number] = numbers[number, 0]
    return found, promised
