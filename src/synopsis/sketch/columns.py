"""Columns: a table of small whole numbers in few bits, of which any column is read by itself.

A general compressor unpacks a table whole, and before that learns how likely every byte is: for a table of two thousand
bytes that takes longer than all that a question makes of it. Here a column is bits of its own. Its numbers come in
groups of one kind; those of a group are cut into their lowest bits, as many as make the column shortest, which stand as
they are, and the rest, as so many zeros before a one (Rice 1979). Nothing has to be learnt, and counts and widths of
bins take a few percent less than by zstd, which finds nothing that repeats in them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Integers

if TYPE_CHECKING:
    from synopsis.sketch import encoding, reading
else:
    encoding, reading = Later("synopsis.sketch.encoding"), Later("synopsis.sketch.reading")

#: Kinds of such frames, beyond those of `packing`: the lengths of columns are of one byte, or of two.
COLUMNS, LONG_COLUMNS = 8, 9

#: Bits that tell how many of a group's numbers are the lowest.
SIZE_BITS: Final = 6

#: Zeros before a one, at most.
MOST_ZEROS: Final = 31

#: Bytes that may be read behind the last column, and are not used.
BEHIND: Final = bytes(8)

_HEAD: Final = "<BBII"


def closed(groups: Sequence[Integers], sizes: Sequence[Integers] | None = None) -> bytes:
    """A frame of groups of rows, each rows x columns and of numbers that are not negative; nothing if one is too long.

    Columns may have fewer numbers in a group than it has rows, as many as `sizes` say; a group of none takes no bits.
    Cost: a pass over the numbers for every bit of the largest, and one more.

    >>> len(closed([np.array([[7, 8, 9, 200]]), np.zeros((20, 4), np.int64)]))
    35
    """
    columns, ends = groups[0].shape[1], np.cumsum([len(group) for group in groups])
    numbers = np.ascontiguousarray(np.concatenate(groups).T, np.int64)
    many = np.stack([np.full(columns, len(group)) for group in groups] if sizes is None else list(sizes)).astype(
        np.int64
    )
    bits, length = np.empty_like(many), np.empty(columns, np.int64)
    encoding.measured(numbers, ends, many, bits, length)
    longest = int(length.max(initial=0))
    if longest > 0xFFFF:
        return b""
    stream = np.zeros(int(length.sum()), np.uint8)
    encoding.written(numbers, ends, many, bits, length, stream)
    kind, width = (COLUMNS, "u1") if longest <= 0xFF else (LONG_COLUMNS, "<u2")
    head = struct.pack(_HEAD, kind, 2, int(ends[-1]), columns)
    return bytes(head + length.astype(width).tobytes() + stream.tobytes())


class Reading:
    """A frame that is read group by group."""

    def __init__(self, frame: bytes) -> None:
        kind, _, self.rows, self.columns = struct.unpack_from(_HEAD, frame)
        at, width = struct.calcsize(_HEAD), kind - COLUMNS + 1
        length = np.frombuffer(frame, f"<u{width}", self.columns, at).astype(np.int64)
        self.stream = np.frombuffer(bytearray().join((frame, BEHIND)), np.uint8)
        #: Where the next number of every column begins, in bits.
        self.place = 8 * (np.cumsum(length) - length + at + self.columns * width)

    def group(self, sizes: int | Integers) -> Integers:
        """The next group, with so many numbers in every column: rows x columns, 0 where there is none."""
        many = np.full(self.columns, sizes, np.int64)
        found: Integers = reading.group(self.stream, self.place, many)
        return found


def closed_lines(lines: Integers) -> bytes:
    """A frame of lines of numbers, lines x numbers, each as how far it is from the one before."""
    steps = turned(np.diff(lines, axis=1, prepend=0)).T
    return closed([steps[:1], steps[1:]])


def opened_lines(frame: bytes) -> Integers:
    """What `closed_lines` was given."""
    reading = Reading(frame)
    steps = np.concatenate((reading.group(1), reading.group(reading.rows - 1)))
    return np.cumsum(straightened(steps), axis=0).T


def turned(numbers: Integers) -> Integers:
    """Numbers by turns, 0, -1, 1, -2, 2, as numbers that are not negative."""
    return np.where(numbers < 0, -2 * numbers - 1, 2 * numbers)


def straightened(numbers: Integers) -> Integers:
    """What `turned` was given."""
    return np.asarray((numbers >> 1) ^ -(numbers & 1))


def side_by_side(numbers: Integers, sizes: Integers) -> Integers:
    """Rows x columns of numbers that come column by column, so many each; 0 where there is none."""
    found = np.zeros((sizes.size, int(sizes.max(initial=0))), np.int64)
    found[np.arange(found.shape[1]) < sizes[:, None]] = numbers
    return found.T


def one_by_one(table: Integers, sizes: Integers) -> Integers:
    """What `side_by_side` was given."""
    return np.asarray(table.T[np.arange(len(table)) < sizes[:, None]])


def is_columns(frame: bytes) -> bool:
    """Whether a frame is one of these."""
    return len(frame) > 0 and frame[0] >= COLUMNS
