"""Days: how many rows each day of a run has, and how many of these have a path, in few bytes.

Where no day has more than one row, the days of a week are the bits of a byte: what repeats from week to week packs
well. Of paths nothing is kept where place and day tell whether they stay (`evenly`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synopsis.sketch.evenly import Evenly
from synopsis.sketch.moments import Integers
from synopsis.sketch.packing import packed, unpacked

WEEK: Final = 7


def is_weekly(rows: Integers) -> bool:
    """Whether weeks can be bytes."""
    return int(rows.max(initial=0)) <= 1


def closed(rows: Integers, first: Integers, days: Integers) -> bytes:
    """Rows of all days as a frame, given where runs begin and how long they are."""
    if not is_weekly(rows):
        return packed(rows[None])
    week, bit, weeks = _weeks(first, days)
    return packed(np.bincount(week, rows << bit, weeks).astype(np.int64)[None])


def opened(frame: bytes, weekly: bool, first: Integers, days: Integers) -> Integers:
    """What `closed` was given."""
    plain: Integers = unpacked(frame)[0].astype(np.int64)
    if not weekly:
        return plain
    week, bit, _ = _weeks(first, days)
    return np.asarray(plain[week] >> bit & 1)


def _weeks(first: Integers, days: Integers) -> tuple[Integers, Integers, int]:
    """Days: the week of each, among those of all runs, and which day of it; and how many weeks there are."""
    lead = first % WEEK
    ends = np.cumsum((lead + days + WEEK - 1) // WEEK)
    within = np.arange(int(days.sum())) - np.repeat(np.cumsum(days) - days - lead, days)
    begins = np.append(0, ends)[:-1]
    return np.repeat(begins, days) + within // WEEK, within % WEEK, int(ends[-1]) if ends.size else 0


def closed_paths(
    kept: Integers, rows: Integers, place: Integers, day: Integers, evenly: Evenly | None
) -> tuple[bytes, float | None]:
    """Paths of all days as a frame, and nothing; or no bytes and the share that tells them."""
    if evenly is not None and np.array_equal(evenly.paths(place, day, rows), kept):
        return b"", evenly.share
    return packed(kept[None]), None
