"""Mixing: the paths of a day in an order that tells nothing, where they were sorted to be small.

Paths of moving objects know no time of their day, so they are kept in the order of their codes. How far off they are is
told by how much neighbours differ, which those in order hardly do: questions take them mixed.
"""

from __future__ import annotations

import numpy as np

from synopsis.sketch.compiled import compiled
from synopsis.sketch.evenly import GOLDEN, MIXED
from synopsis.sketch.moments import Integers
from synopsis.sketch.reading import Unsigned
from synopsis.sketch.scales import Codes


@compiled
def mixed(codes: Codes, day_kept: Integers) -> Codes:
    """Features x paths, those of every day in another order, the same for all features and for every day of so many.

    Cost: proportional to the paths and their features.
    """
    found, longest = np.empty_like(codes), 0
    for day in range(day_kept.size):
        longest = max(longest, day_kept[day])
    order, first = np.empty(longest, np.int64), 0
    for day in range(day_kept.size):
        many = day_kept[day]
        turn = Unsigned(many) * GOLDEN
        for path in range(many):  # each changes places with one of those before it, or stays (Fisher and Yates)
            turn = (turn ^ turn >> Unsigned(29)) * MIXED
            other = int(turn >> Unsigned(32)) * (path + 1) >> 32
            order[path] = order[other]
            order[other] = path
        for feature in range(codes.shape[0]):
            for path in range(many):
                found[feature, first + path] = codes[feature, first + order[path]]
        first += many
    return found
