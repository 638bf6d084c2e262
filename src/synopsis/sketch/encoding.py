"""Encoding: paths become words of streams, and sums by stretch, one path after the other.

What `streams` and `strata` do with paths when they are packed, in machine code: each rank hangs on the number that the
ranks behind it left, and each path adds to two sums that are anywhere.
"""

from __future__ import annotations

import numpy as np

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.streams import FLOOR, WORD, Shares, Words

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
