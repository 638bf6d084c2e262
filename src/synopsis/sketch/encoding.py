"""Encoding: paths become words of streams, and sums by stretch, and numbers bits of columns, one after the other.

What `streams`, `strata` and `columns` do when all is packed, in machine code: each rank hangs on the number that the
ranks behind it left, each path adds to two sums that are anywhere, and each number begins where the one before it ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.columns import MOST_ZEROS, SIZE_BITS
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.streams import FLOOR, WORD, Shares, Words

Bytes = NDArray[np.uint8]

#: A whole number of 64 bits without a sign.
Unsigned = np.uint64


@compiled
def streamed(ranks: Codes, sizes: Integers, shares: Shares, bits: int, words: Words, lengths: Integers) -> int:
    """The words of one feature's streams, which have so many paths each, from the end of `words` backwards.

    Returns where they begin, and writes how many each stream has. There is room for a word a path, and two a stream.
    """
    at, path = words.size, ranks.size
    of_bits, room, follows = Unsigned(bits), Unsigned(2 * WORD - bits), 255 if shares.shape[0] > 1 else 0
    for stream in range(sizes.size - 1, -1, -1):
        past, number = at, Unsigned(0)
        for left in range(sizes[stream] - 1, -1, -1):
            path -= 1
            before = ranks[path - 1] & follows if left else 0
            start = Unsigned(shares[before, ranks[path]])
            share = Unsigned(shares[before, ranks[path] + 1]) - start
            if number >= share << room:
                at -= 1
                words[at] = number & Unsigned(FLOOR - 1)
                number >>= Unsigned(WORD)
            # Both have 32 bits at most, and so the quotient of doubles, cut off, is that of whole numbers.
            whole = Unsigned(np.float64(number) / np.float64(share))
            number = (whole << of_bits) + (number - whole * share) + start
        if number:
            at -= 1
            words[at] = number & Unsigned(FLOOR - 1)
            if number >= Unsigned(FLOOR):
                at -= 1
                words[at] = number >> Unsigned(WORD)
        lengths[stream] = past - at
    return at


@compiled
def measured(numbers: Integers, ends: Integers, many: Integers, bits: Integers, length: Integers) -> None:
    """How many bits are the lowest of each group, groups x columns, and the bytes of each column (see `columns`).

    `numbers` are columns x rows, groups end at these rows, and columns have so many numbers in each.
    """
    for column in range(numbers.shape[0]):
        total, begin = 0, 0
        for group in range(ends.size):
            own = numbers[column, begin : begin + many[group, column]]
            largest = 0
            for each in range(own.size):
                largest = max(largest, own[each])
            best, least, size = 0, -1, 0
            while largest >> size or not size:
                if largest >> size <= MOST_ZEROS:
                    taken = size * own.size
                    for each in range(own.size):
                        taken += own[each] >> size
                    if least < 0 or taken < least:
                        best, least = size, taken
                size += 1
            bits[group, column] = best
            total += SIZE_BITS + own.size + least if own.size else 0
            begin = ends[group]
        length[column] = (total + 7) // 8


@compiled
def written(numbers: Integers, ends: Integers, many: Integers, bits: Integers, length: Integers, stream: Bytes) -> None:
    """The bits of all columns, given what `measured` found, into bytes that are 0."""
    first = 0
    for column in range(numbers.shape[0]):
        at, begin = 8 * first, 0
        for group in range(ends.size):
            low = bits[group, column]
            if many[group, column]:
                at = _put(stream, at, low, SIZE_BITS)
            for each in range(begin, begin + many[group, column]):
                at += numbers[column, each] >> low
                stream[at >> 3] |= 1 << (at & 7)
                at = _put(stream, at + 1, numbers[column, each], low)
            begin = ends[group]
        first += length[column]


@compiled
def _put(stream: Bytes, at: int, number: int, size: int) -> int:
    """So many of the lowest bits of a number, and where the next ones go."""
    for bit in range(size):
        stream[at >> 3] |= (number >> bit & 1) << (at & 7)
        at += 1
    return at


@compiled
def told(
    codes: Codes, day_offset: Integers, stretch_offset: Integers, day_kept: Integers, levels: Floats, sums: Floats
) -> None:
    """Sums of one feature's paths by stretch, (values, levels, squares) x stretches, and by stratum behind these.

    `levels` has level and square x strata x bins; codes beyond are absent.
    """
    path, day, stretches = 0, 0, stretch_offset.size - 1
    stratum = 0
    for stretch in range(stretches):
        while day_offset[stratum + 1] <= stretch_offset[stretch]:
            stratum += 1
        whole = stretches + stratum
        for _ in range(stretch_offset[stretch], stretch_offset[stretch + 1]):
            for _ in range(day_kept[day]):
                code = codes[path]
                if code < levels.shape[2]:
                    sums[0, stretch] += 1.0
                    sums[1, stretch] += levels[0, stratum, code]
                    sums[2, stretch] += levels[1, stratum, code]
                    sums[0, whole] += 1.0
                    sums[1, whole] += levels[0, stratum, code]
                    sums[2, whole] += levels[1, stratum, code]
                path += 1
            day += 1
