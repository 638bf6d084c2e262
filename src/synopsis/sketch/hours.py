"""Hours: when on its day each path of a station was, which nothing is kept of.

Which slots of a place's time have paths is a function of place and slot (`evenly`), and the paths of a day come in the
order of time. So where a day has as many paths as its slots would have if all had a row, each path has its slot; where
it has fewer, for rows are missing, they are spread over these in their order.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from synopsis.sketch.compiled import compiled
from synopsis.sketch.evenly import GOLDEN, Turns
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags
from synopsis.sketch.tallies import DAY_US

Unsigned: Final[Any] = np.uint64


@compiled
def _staying(turn: Unsigned, first_slot: int, below: Unsigned, slots: Integers) -> int:
    """Which slots of a day have paths, written down one after the other; how many they are."""
    many = 0
    turn = turn + Unsigned(first_slot) * GOLDEN
    for slot in range(slots.size):
        if turn < below:
            slots[many] = slot
            many += 1
        turn = turn + GOLDEN
    return many


@compiled
def _slot_of(path: int, paths: int, slots: Integers, many: int) -> int:
    """The slot of one of the paths of a day, given those that have one."""
    return slots[(2 * path + 1) * many // (2 * paths)] if many else (2 * path + 1) * slots.size // (2 * paths)


@compiled
def leaning(
    run_turn: Turns,
    run_first: Integers,
    run_days: Integers,
    day_kept: Integers,
    share: Floats,
    begin_us: int,
    end_us: int,
    slot_us: int,
    below: Unsigned,
) -> Floats:
    """Paths: how much rather than its day each is in a span of time, which has such a share of every day.

    1 for those of days that are in it whole, anything for those of days that are out of it. Cost: proportional to the
    paths in it, and to the slots of days that are cut.
    """
    paths = 0
    for day in range(day_kept.size):
        paths += day_kept[day]
    lean, day, path = np.empty(paths), 0, 0
    slots = np.empty(DAY_US // slot_us, np.int64)
    for run in range(run_days.size):
        for each in range(run_days[run]):
            own, part = day_kept[day], share[day]
            if own and 0.0 < part < 1.0:
                first = (run_first[run] + each) * DAY_US
                first_slot = -(-first // slot_us)
                many = _staying(run_turn[run], first_slot, below, slots)
                for at in range(own):
                    start = (first_slot + _slot_of(at, own, slots, many)) * slot_us
                    held = (min(start + slot_us, end_us) - max(start, begin_us)) / slot_us
                    lean[path + at] = max(held, 0.0) / part
            elif part > 0.0:
                for at in range(own):
                    lean[path + at] = 1.0
            day, path = day + 1, path + own
    return lean


@compiled
def stays(
    run_turn: Turns,
    run_first: Integers,
    run_days: Integers,
    day_kept: Integers,
    slot_us: int,
    below: Unsigned,
    below_then: Unsigned,
) -> Flags:
    """Paths: whether each stays when fewer are chosen. Cost: proportional to the slots of all days."""
    paths = 0
    for day in range(day_kept.size):
        paths += day_kept[day]
    found, day, path = np.empty(paths, np.bool_), 0, 0
    slots = np.empty(DAY_US // slot_us, np.int64)
    for run in range(run_days.size):
        for each in range(run_days[run]):
            own = day_kept[day]
            if own:
                first_slot = -(-(run_first[run] + each) * DAY_US // slot_us)
                many = _staying(run_turn[run], first_slot, below, slots)
                for at in range(own):
                    slot = first_slot + _slot_of(at, own, slots, many)
                    found[path + at] = run_turn[run] + Unsigned(slot) * GOLDEN < below_then
            day, path = day + 1, path + own
    return found
