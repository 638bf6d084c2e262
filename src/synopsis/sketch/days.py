"""Days: how many rows each day of a run has, and how many of these have a path, in few bytes.

Where no day has more than one row, the days of a week are the bits of a byte: what repeats from week to week packs
well. Of paths nothing is kept where place and day tell whether they stay (`evenly`).
Or the days of every stratum are a column of its own (`columns`): the most rows of a day, the days that have fewer, and
paths as so many more or less than the share of all would be.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from synopsis.sketch import columns
from synopsis.sketch.evenly import Evenly
from synopsis.sketch.moments import Integers
from synopsis.sketch.packing import packed, unpacked

WEEK: Final = 7

#: Parts of one in which the share of a stratum's rows that have a path is told, as a power of two.
SHARE_BITS: Final = 8


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


def apart(rows: Integers, kept: Integers | None, sizes: Integers) -> bytes:
    """Rows and paths of the days of strata, which have so many each, as columns; paths only where they are counted."""
    table = columns.side_by_side(rows, sizes)
    most = table.max(axis=0, initial=0)
    fewer = (table < most) & (np.arange(len(table))[:, None] < sizes)
    which, day = np.nonzero(fewer.T)
    many = fewer.sum(axis=0)
    before = np.where(np.diff(which, prepend=-1) == 0, np.append(0, day[:-1]), -1)
    lacks = (most - table).T[fewer.T]
    groups = [most[None], many[None], *(columns.side_by_side(each, many) for each in (day - before - 1, lacks - 1))]
    ones = np.ones(sizes.size, np.int64)
    if kept is None:
        return columns.closed(groups, [ones, ones, many, many])
    own = columns.side_by_side(kept, sizes)
    share = ((own.sum(axis=0) << SHARE_BITS) + table.sum(axis=0) // 2) // np.maximum(table.sum(axis=0), 1)
    return columns.closed(
        [*groups, share[None], columns.turned(own - _expected(table, share))], [ones, ones, many, many, ones, sizes]
    )


def opened_apart(frame: bytes, counted: bool, sizes: Integers) -> tuple[Integers, Integers | None]:
    """What `apart` was given, paths only if they are `counted`."""
    reading = columns.Reading(frame)
    most, many = reading.group(1), reading.group(1)[0]
    gaps, lacks = reading.group(many), reading.group(many) + 1
    table, day = np.repeat(most, sizes.max(initial=0), axis=0), np.cumsum(gaps + 1, axis=0) - 1
    row, column = np.nonzero(np.arange(len(day))[:, None] < many)
    table[day[row, column], column] -= lacks[row, column]
    rows = columns.one_by_one(table, sizes)
    if not counted:
        return rows, None
    share = reading.group(1)
    kept = columns.straightened(reading.group(sizes)) + _expected(table, share[0])
    return rows, columns.one_by_one(kept, sizes)


def _expected(rows: Integers, share: Integers) -> Integers:
    """Paths of so many rows, by the share of those that have one, rounded."""
    return (rows * share + (1 << SHARE_BITS - 1)) >> SHARE_BITS
