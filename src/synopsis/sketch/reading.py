"""Reading: numbers in the frames of many blocks, one after the other, where they stand.

Frames stand in the bytes as `packing` put them there, columns of numbers as `columns` did. What is packed is unpacked
first; columns are read in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.columns import COLUMNS as APART
from synopsis.sketch.columns import SIZE_BITS
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Integers
from synopsis.sketch.packing import LINE_HEAD, TABLE_HEAD

Bytes = NDArray[np.uint8]

#: A whole number of 64 bits without a sign.
Unsigned = np.uint64

#: Parts of a block before those of its features: keys, runs, rows of days, paths of days.
HEADS = 4

#: Of a part: its kind, its place among the plain bytes, its rows and its columns; where its packed bytes are.
KIND, PLACE, ROWS, COLUMNS, BEGIN, PAST = range(6)


@compiled
def _size(joined: Bytes, at: int) -> int:
    """A whole number of four bytes."""
    return int(joined[at]) | int(joined[at + 1]) << 8 | int(joined[at + 2]) << 16 | int(joined[at + 3]) << 24


@compiled
def parted(joined: Bytes, sizes: Integers, tables: int, lines: int) -> tuple[Integers, Integers, int]:
    """Frames one after the other as parts: what is known of each, where the words of streams begin, and how large what
    is packed is plain.

    A block has one frame of HEADS, so many of one table each, one of a line, and then so many frames of words; or,
    where that line is empty, of a line each. Lines that are not there are parts without numbers. Columns stay where
    they are.
    """
    frames, per_block = tables + 2 + lines, HEADS + tables + 1 + lines
    blocks = sizes.size // frames
    parts, words = np.zeros((blocks * per_block, 6), np.int64), np.empty(blocks * lines, np.int64)
    at = plain = 0
    in_streams = True
    for frame in range(sizes.size):
        end, turn_of = at + sizes[frame], frame % frames
        begin, past, head = at, end, TABLE_HEAD if turn_of <= tables else LINE_HEAD
        if turn_of == tables + 1:
            in_streams = sizes[frame] > 0
        many = HEADS if turn_of == 0 else 1
        if turn_of > tables + 1:
            words[frame // frames * lines + turn_of - tables - 2] = at
            many = 0 if in_streams else 1
        number = frame // frames * per_block + (HEADS - 1 + turn_of if turn_of else 0)
        for turn in range(many if sizes[frame] else 0):
            if turn_of == 0:  # the sizes of all but the last stand before them, and the last may be empty
                begin = past if turn else at + 4 * (HEADS - 1)
                past = begin + _size(joined, at + 4 * turn) if turn < HEADS - 1 else end
                if begin == past:
                    continue
            own, is_apart = parts[number], joined[begin] >= APART
            own[KIND], own[ROWS], number = joined[begin], _size(joined, begin + 2), number + 1
            own[COLUMNS] = _size(joined, begin + 6) if head == TABLE_HEAD or is_apart else 1
            if is_apart:  # it is read where it stands
                own[PLACE] = begin + TABLE_HEAD
            else:
                own[PLACE], own[BEGIN], own[PAST] = plain, begin + head, past
                plain += own[ROWS] * own[COLUMNS] << (own[KIND] & 3)
        at = end
    return parts, words, plain


@compiled
def packs(joined: Bytes, sizes: Integers, tables: int, lines: int) -> tuple[Bytes, int]:
    """The packed numbers of all parts, one after the other, and how large they are plain."""
    parts, _, plain = parted(joined, sizes, tables, lines)
    found, to = np.empty(joined.size, np.uint8), 0
    for part in range(parts.shape[0]):
        given = joined[parts[part, BEGIN] : parts[part, PAST]]
        own = found[to : to + given.size]
        for each in range(given.size):
            own[each] = given[each]
        to += given.size
    return found[:to], plain


@compiled
def touched(chosen: NDArray[np.bool_], place_low: Integers, place_high: Integers) -> Integers:
    """The blocks that have a chosen place."""
    found, size = np.empty(place_low.size, np.int64), 0
    for block in range(place_low.size):
        for place in range(place_low[block], place_high[block] + 1):
            if chosen[place]:
                found[size] = block
                size += 1
                break
    return found[:size]


@compiled
def looked_up(
    chosen: NDArray[np.bool_],
    place_low: Integers,
    place_high: Integers,
    sizes: Integers,
    is_packed: NDArray[np.bool_],
    wanted: Integers,
) -> tuple[Integers, Integers, bool]:
    """The blocks that have a chosen place, the sizes of those of their frames that are wanted, block by block, and
    whether any of these is packed. Sizes and what is packed are blocks x frames."""
    which, packed = touched(chosen, place_low, place_high), False
    found = np.empty(which.size * wanted.size, np.int64)
    for each in range(which.size):
        for at in range(wanted.size):
            found[each * wanted.size + at] = sizes[which[each], wanted[at]]
            packed = packed or is_packed[which[each], wanted[at]]
    return which, found, packed


@compiled
def taken(values: Any, which: Integers) -> Any:
    """Those of some blocks."""
    found = np.empty(which.size, values.dtype)
    for each in range(which.size):
        found[each] = values[which[each]]
    return found


@compiled
def number(plain: Bytes, parts: Integers, part: int, row: int, column: int) -> int:
    """A number of a part. Kinds are those of `packing`: unsigned ones of 1, 2, 4 and 8 bytes, then signed ones."""
    kind, at = parts[part, KIND], row * parts[part, COLUMNS] + column
    if kind == 0:
        return int(plain[parts[part, PLACE] + at])
    width, found = 1 << (kind & 3), np.int64(0)
    for byte in range(width):
        found |= np.int64(plain[parts[part, PLACE] + at * width + byte]) << (8 * byte)
    if kind >= 4 and width < 8 and found >> (8 * width - 1):
        found -= np.int64(1) << (8 * width)
    return int(found)


@compiled
def total(plain: Bytes, parts: Integers, part: int, begin: int, end: int) -> int:
    """The sum of neighbouring numbers of a line; most are bytes, which the processor adds up many at a time."""
    found = np.int64(0)
    if parts[part, KIND] == 0:
        for own in plain[parts[part, PLACE] + begin : parts[part, PLACE] + end]:
            found += np.int64(own)
        return int(found)
    for each in range(begin, end):
        found += number(plain, parts, part, 0, each)
    return int(found)


#: Bytes: how many zeros each has below its lowest one.
_ZEROS = np.array([8, *((byte & -byte).bit_length() - 1 for byte in range(1, 256))], np.uint8)


@compiled
def _word(joined: Bytes, at: Unsigned) -> Unsigned:
    """The bits from a place on, 57 at least."""
    first, found = at >> Unsigned(3), Unsigned(0)
    for byte in range(8):
        found |= Unsigned(joined[first + Unsigned(byte)]) << Unsigned(8 * byte)
    return found >> (at & Unsigned(7))


@compiled
def length(joined: Bytes, place: int, column: int, is_long: bool) -> int:
    """The bytes of a column."""
    if is_long:
        return int(joined[place + 2 * column]) | int(joined[place + 2 * column + 1]) << 8
    return int(joined[place + column])


@compiled
def size_of(joined: Bytes, at: Unsigned) -> Unsigned:
    """How many bits are the lowest, in the group of a column that begins there."""
    return _word(joined, at) & Unsigned((1 << SIZE_BITS) - 1)


@compiled
def told_apart(joined: Bytes, at: Unsigned, bits: Unsigned) -> tuple[int, Unsigned]:
    """The next number of a column, with so many lowest bits, and where the one behind it begins."""
    word, zeros = _word(joined, at), Unsigned(0)
    while word & Unsigned(255) == Unsigned(0):
        word, zeros = word >> Unsigned(8), zeros + Unsigned(8)
    own = Unsigned(_ZEROS[word & Unsigned(255)])
    zeros, at = zeros + own, at + zeros + own + Unsigned(1)
    found, left, shift = zeros << bits, bits, Unsigned(0)
    if bits <= Unsigned(24):  # the word has them
        return int(found | word >> own + Unsigned(1) & (Unsigned(1) << bits) - Unsigned(1)), at + bits
    while left > Unsigned(0):
        many = min(left, Unsigned(32))
        found |= (_word(joined, at) & (Unsigned(1) << many) - Unsigned(1)) << shift
        at, shift, left = at + many, shift + many, left - many
    return int(found), at


@compiled
def group(joined: Bytes, place: Integers, sizes: Integers) -> Integers:
    """The next group of columns that go on at some bit, so many numbers each: rows x columns, 0 where there is none.

    Places are moved behind it.
    """
    most = 0
    for column in range(sizes.size):
        most = max(most, sizes[column])
    found = np.zeros((most, sizes.size), np.int64)
    for column in range(sizes.size):
        if sizes[column]:
            at = Unsigned(place[column])
            bits, at = size_of(joined, at), at + Unsigned(SIZE_BITS)
            for row in range(sizes[column]):
                found[row, column], at = told_apart(joined, at, bits)
            place[column] = at
    return found


@compiled
def first(joined: Bytes, parts: Integers, part: int, column: int) -> int:
    """Where a column begins."""
    place, is_long = parts[part, PLACE], parts[part, KIND] > APART
    found = place + parts[part, COLUMNS] * (2 if is_long else 1)
    for before in range(column):
        found += length(joined, place, before, is_long)
    return int(found)


@compiled
def line(joined: Bytes, parts: Integers, part: int, column: int, found: Integers) -> None:
    """The numbers of a line, as `columns.opened_lines` has them."""
    group, last = Unsigned(SIZE_BITS), 0
    at = Unsigned(8 * first(joined, parts, part, column))
    bits, at = size_of(joined, at), at + group
    for each in range(found.size):
        if each == 1:
            bits, at = size_of(joined, at), at + group
        step, at = told_apart(joined, at, bits)
        last += (step >> 1) ^ -(step & 1)
        found[each] = last
