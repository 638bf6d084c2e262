"""Cuts: conditions on features moved to the ends of bins, so that bins count whole or not at all, as the paper does.

The bins are the fine bins of a feature, which the whole sketch shares. Kept are all that a range touches, dropped those
that it does not hold whole; what NOT keeps is what its condition drops.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from synopsis.query.binding import Plan
from synopsis.query.predicates import And, Between, Condition, IsNull, Not, Or
from synopsis.sketch.scales import Scales


def snapped(asked: Plan, scales: Scales) -> Plan:
    """The plan with its conditions moved to the ends of fine bins, if it says so. Cost: a pass over these for each."""
    if asked.cut is None:
        return asked
    keep = asked.cut == "keep"
    parts = (replace(part, condition=_moved(part.condition, scales, keep)) for part in asked.parts)
    return replace(asked, parts=tuple(parts))


def _moved(condition: Condition, scales: Scales, keep: bool) -> Condition:
    match condition:
        case Between():
            return _between(condition, scales, keep)
        case IsNull():
            return condition
        case Not():
            return Not(_moved(condition.condition, scales, not keep))
        case And():
            return And(tuple(_moved(part, scales, keep) for part in condition.conditions))
        case Or():
            return Or(tuple(_moved(part, scales, keep) for part in condition.conditions))


def _between(condition: Between, scales: Scales, keep: bool) -> Between:
    low, high = scales.ranges(condition.feature)
    least = condition.low if condition.low_closed else math.nextafter(condition.low, math.inf)
    most = condition.high if condition.high_closed else math.nextafter(condition.high, -math.inf)
    inside = (low >= least) & (high <= most) if not keep else (high >= least) & (low <= most)
    at = np.flatnonzero(inside)
    if not least <= most or not at.size:
        return Between(condition.feature, math.inf, -math.inf)  # no value
    return Between(condition.feature, float(low[at[0]]), float(high[at[-1]]))
