"""Followed: a whole plain question in one call of machine code, from the bytes of blocks to the numbers of its answer.

What `shelf`, `weighing`, `told`, `arrangements` and `settled` are called for one after the other, in this order, with
the same results: nothing of what they hand on has to become an array of Python and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from synopsis.query import arrangements, settled, told, weighing
from synopsis.sketch import decoding, hours
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags

#: What became of a question: it is answered, nothing is in scope, or no path tells.
ANSWERED, EMPTY, UNHEARD = range(3)


@compiled
def followed(
    blocks: tuple[Any, ...],
    chosen: Flags,
    span_us: tuple[int, int],
    asked: tuple[Any, ...],
    rhythm: tuple[bool, float],
    told_hours: tuple[int, np.uint64],
    levels: tuple[Any, ...],
    demands: tuple[Any, ...],
    fine_bins: tuple[Any, ...],
    features: Integers,
    settling: Integers,
    shares: Floats,
) -> tuple[int, Floats, NDArray[np.int8]]:
    """What became of a question, and if it is answered, what `settled` has of it.

    `blocks` are what `decoding` takes, `asked` and `levels` what `told` takes before and behind the strata, `demands`
    what `arrangements` takes; `told_hours` are slots and the turn below which they have paths, no slots where these do
    not tell; `shares` are of quantiles, statistic by statistic.
    """
    fields, day_offset, ordinal, facts, stretch_offset, shift, stretch_count = decoding.decoded(*blocks)
    _, starts, stops, counts, tilt, run_offset, run_place, run_first, run_days, run_turn, day_rows, day_kept, codes = (
        fields
    )
    nothing, unpromised = np.empty((0, 5)), np.empty(0, np.int8)
    if not fields[0].size:
        return EMPTY, nothing, unpromised
    slots, rows, offset, in_scope, day, share, whole_scope, place = weighing.all_in_scope(
        run_offset, run_place, run_first, run_days, day_offset, day_rows, day_kept, chosen, span_us[0], span_us[1]
    )
    lean, lean_start = np.empty(0), np.empty(0, np.int64)
    if told_hours[0] > 0 and in_scope[1, 0] > 0:
        lean = hours.leaning(run_turn, run_first, run_days, day_kept, share, *span_us, *told_hours)
        lean_start = weighing.path_starts(day_kept)
    given: tuple[Any, ...] = (
        *(*asked, starts, stops, tilt, counts, codes, ordinal, day_offset, day_rows, day_kept, place, *rhythm),
        *(day, share, whole_scope, lean, lean_start),
        *(slots[0], slots[1], slots[2], slots[5], slots[6], rows, offset, in_scope[0], in_scope[1]),
        *(facts, stretch_offset, shift, stretch_count, *levels),
    )
    is_heard, found = told.tell(*given)
    if not is_heard:
        return UNHEARD, nothing, unpromised
    counted: tuple[Any, ...] = (starts, stops, counts, features, slots[0], slots[1], slots[3], slots[4], *fine_bins)
    all_rows, of_values, sides = arrangements.selected(*demands, *counted)
    numbers, promised = settled.settled(settling, found, shares, all_rows, of_values, *sides)
    return ANSWERED, numbers, promised
