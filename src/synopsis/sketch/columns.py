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
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.moments import Integers

#: Kinds of such frames, beyond those of `packing`: the lengths of columns are of one byte, or of two.
COLUMNS, LONG_COLUMNS = 8, 9

#: Bits that tell how many of a group's numbers are the lowest.
SIZE_BITS: Final = 6

#: Zeros before a one, at most.
MOST_ZEROS: Final = 31

#: Bytes that may be read behind the last column, and are not used.
BEHIND: Final = bytes(8)

_HEAD: Final = "<BBII"

_Words = NDArray[np.uint64]


def closed(groups: Sequence[Integers]) -> bytes:
    """A frame of groups of rows, each rows x columns and of numbers that are not negative; nothing if one is too long.

    Cost: a few passes over the numbers for every bit of the largest.

    >>> len(closed([np.array([[7, 8, 9, 200]]), np.zeros((20, 4), np.int64)]))
    35
    """
    low, zeros, numbers = [], [], []
    for group in groups:
        bits = _lowest_bits(group)
        low += [np.full((1, bits.size), SIZE_BITS), np.broadcast_to(bits, group.shape)]
        zeros += [np.full((1, bits.size), -1), group >> bits]  # how many bits are the lowest stands without a one
        numbers += [bits[None], group]
    many, rest, number = (np.concatenate(each) for each in (low, zeros, numbers))
    size = many + rest + 1
    length = (size.sum(axis=0) + 7) // 8
    if length.max(initial=0) > 0xFFFF:
        return b""
    begin = 8 * (np.cumsum(length) - length) + np.cumsum(size, axis=0) - size
    stream = np.zeros(8 * int(length.sum()), np.uint8)
    stream[(begin + rest)[rest >= 0]] = 1
    begin = begin + rest + 1
    for bit in range(int(many.max(initial=0))):
        has = many > bit
        stream[begin[has] + bit] = number[has] >> bit & 1
    kind = COLUMNS if length.max(initial=0) <= 0xFF else LONG_COLUMNS
    head = struct.pack(_HEAD, kind, 2, sum(map(len, groups)), length.size)
    return (
        head
        + length.astype("u1" if kind == COLUMNS else "<u2").tobytes()
        + np.packbits(stream, None, "little").tobytes()
    )


def opened(frame: bytes, sizes: Sequence[int]) -> list[Integers]:
    """What `closed` was given, given the rows of each group. The plain way: all columns side by side, row by row."""
    kind, _, _, columns = struct.unpack_from(_HEAD, frame)
    at = struct.calcsize(_HEAD)
    length = np.frombuffer(frame, "u1" if kind == COLUMNS else "<u2", columns, at).astype(np.int64)
    stream = np.frombuffer(frame[at + length.size * (kind - COLUMNS + 1) :] + BEHIND, np.uint8)
    place, found = 8 * (np.cumsum(length) - length), []
    for rows in sizes:
        own = np.empty((rows, columns), np.int64)
        bits = (_word(stream, place) & np.uint64((1 << SIZE_BITS) - 1)).astype(np.int64)
        place = place + SIZE_BITS
        for row in range(rows):
            word = _word(stream, place)
            zeros = np.log2((word & (~word + np.uint64(1))).astype(np.float64)).astype(np.int64)
            place = place + zeros + 1
            own[row] = zeros << bits
            for first in (0, 32):
                left = np.clip(bits - first, 0, 32)
                lowest = _word(stream, place) & ((np.uint64(1) << left.astype(np.uint64)) - np.uint64(1))
                own[row] |= lowest.astype(np.int64) << first
                place = place + left
        found.append(own)
    return found


def is_columns(frame: bytes) -> bool:
    """Whether a frame is one of these."""
    return frame[0] >= COLUMNS


def _lowest_bits(group: Integers) -> Integers:
    """Columns: how many bits of each number are the lowest, so that the column is as short as can be."""
    largest = group.max(axis=0, initial=0)
    best, found = np.full(group.shape[1], np.iinfo(np.int64).max), np.zeros(group.shape[1], np.int64)
    for bits in range(max(int(largest.max(initial=0)).bit_length(), 1)):
        size = (group >> bits).sum(axis=0) + bits * len(group)
        better = (size < best) & (largest >> bits <= MOST_ZEROS)
        best, found = np.where(better, size, best), np.where(better, bits, found)
    return found


def _word(stream: NDArray[np.uint8], place: Integers) -> _Words:
    """The bits from each place on, 57 at least."""
    found = np.zeros(place.size, np.uint64)
    for byte in range(8):
        found |= stream[(place >> 3) + byte].astype(np.uint64) << np.uint64(8 * byte)
    return found >> (place & 7).astype(np.uint64)
