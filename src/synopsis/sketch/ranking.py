"""Ranking: the ranks of paths from streams, as `streams` wrote them, and their codes.

Features take turns: while the machine waits for the rank of one, others go on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Integers
from synopsis.sketch.reading import Bytes, Unsigned
from synopsis.sketch.scales import Codes
from synopsis.sketch.streams import FLOOR, WORD, Shares

#: Of which rank each part of a whole is, and the share of each; how many ranks there are, and bits of a whole.
_Tables = tuple[Codes, NDArray[np.uint32], Unsigned, Unsigned]


@compiled
def ranks_of(shares: Shares, needed: Integers, bits: int) -> tuple[Codes, NDArray[np.uint32]]:
    """Tables of features one after the other, and in each of the ranks before: the rank that each part of a whole
    belongs to; and of each rank its share, and in the lower bits of a word where that begins.
    """
    before, ranks = shares.shape[1], shares.shape[2] - 1
    rank_of = np.empty(needed.size * before << bits, np.uint8)
    share_of = np.empty(needed.size * before * ranks, np.uint32)
    for row in range(needed.size):
        for each in range(before):
            number, ends = row * before + each, shares[needed[row], each]
            own = rank_of[number << bits : (number + 1) << bits]
            for rank in range(ranks):
                begin, end = np.int64(ends[rank]), np.int64(ends[rank + 1])
                share_of[number * ranks + rank] = (end - begin) << WORD | begin
                for part in range(begin, end):
                    own[part] = rank
    return rank_of, share_of


@compiled
def _begun(joined: Bytes, at: Unsigned, past: Unsigned) -> tuple[Unsigned, Unsigned]:
    """The number that a stream begins with, and where its other words are."""
    number = Unsigned(0)
    for _ in range(2):
        if number < Unsigned(FLOOR) and at < past:
            word = Unsigned(joined[at]) | Unsigned(joined[at + Unsigned(1)]) << Unsigned(8)
            number, at = number << Unsigned(WORD) | word, at + Unsigned(2)
    return number, at


@compiled
def _next(
    joined: Bytes,
    number: Unsigned,
    at: Unsigned,
    past: Unsigned,
    before: Unsigned,
    rank_of: Codes,
    share_of: NDArray[np.uint32],
    ranks: Unsigned,
    bits: Unsigned,
) -> tuple[Unsigned, Unsigned, Unsigned]:
    """The next rank of a stream, and the number and the place that are left; no fork where a word may be due."""
    part = number & ((Unsigned(1) << bits) - Unsigned(1))
    rank = Unsigned(rank_of[before << bits | part])
    share = Unsigned(share_of[before * ranks + rank])
    number = (share >> Unsigned(WORD)) * (number >> bits) + part - (share & Unsigned(FLOOR - 1))
    word = Unsigned(joined[at]) | Unsigned(joined[at + Unsigned(1)]) << Unsigned(8)
    longer, further = number << Unsigned(WORD) | word, at + Unsigned(2)
    lacks = (number < Unsigned(FLOOR)) & (at < past)
    return rank, longer if lacks else number, further if lacks else at


@compiled
def _one(
    joined: Bytes,
    place: Integers,
    length: Integers,
    tables: _Tables,
    table: Integers,
    follows: Unsigned,
    found: Codes,
    begin: int,
    end: int,
    row: int,
) -> None:
    """The ranks of one feature."""
    past_0 = Unsigned(place[row] + 2 * length[row])
    number_0, at_0 = _begun(joined, Unsigned(place[row]), past_0)
    first_0, found_0 = Unsigned(table[row]), found[row]
    before_0 = first_0
    for path in range(Unsigned(begin), Unsigned(end)):
        rank, number_0, at_0 = _next(joined, number_0, at_0, past_0, before_0, *tables)
        found_0[path], before_0 = rank, first_0 + (rank & follows)


@compiled
def _four(
    joined: Bytes,
    place: Integers,
    length: Integers,
    tables: _Tables,
    table: Integers,
    follows: Unsigned,
    found: Codes,
    begin: int,
    end: int,
    row: int,
) -> None:
    """The ranks of four features, the last again where there are fewer, for company."""
    last = place.size - 1
    row_1 = min(row + 1, last)
    row_2 = min(row + 2, last)
    row_3 = min(row + 3, last)
    past_0 = Unsigned(place[row] + 2 * length[row])
    past_1 = Unsigned(place[row_1] + 2 * length[row_1])
    past_2 = Unsigned(place[row_2] + 2 * length[row_2])
    past_3 = Unsigned(place[row_3] + 2 * length[row_3])
    number_0, at_0 = _begun(joined, Unsigned(place[row]), past_0)
    number_1, at_1 = _begun(joined, Unsigned(place[row_1]), past_1)
    number_2, at_2 = _begun(joined, Unsigned(place[row_2]), past_2)
    number_3, at_3 = _begun(joined, Unsigned(place[row_3]), past_3)
    first_0, found_0 = Unsigned(table[row]), found[row]
    first_1, found_1 = Unsigned(table[row_1]), found[row_1]
    first_2, found_2 = Unsigned(table[row_2]), found[row_2]
    first_3, found_3 = Unsigned(table[row_3]), found[row_3]
    before_0 = first_0
    before_1 = first_1
    before_2 = first_2
    before_3 = first_3
    for path in range(Unsigned(begin), Unsigned(end)):
        rank, number_0, at_0 = _next(joined, number_0, at_0, past_0, before_0, *tables)
        found_0[path], before_0 = rank, first_0 + (rank & follows)
        rank, number_1, at_1 = _next(joined, number_1, at_1, past_1, before_1, *tables)
        found_1[path], before_1 = rank, first_1 + (rank & follows)
        rank, number_2, at_2 = _next(joined, number_2, at_2, past_2, before_2, *tables)
        found_2[path], before_2 = rank, first_2 + (rank & follows)
        rank, number_3, at_3 = _next(joined, number_3, at_3, past_3, before_3, *tables)
        found_3[path], before_3 = rank, first_3 + (rank & follows)


@compiled
def _six(
    joined: Bytes,
    place: Integers,
    length: Integers,
    tables: _Tables,
    table: Integers,
    follows: Unsigned,
    found: Codes,
    begin: int,
    end: int,
    row: int,
) -> None:
    """The ranks of six features, or five."""
    last = place.size - 1
    row_1 = min(row + 1, last)
    row_2 = min(row + 2, last)
    row_3 = min(row + 3, last)
    row_4 = min(row + 4, last)
    row_5 = min(row + 5, last)
    past_0 = Unsigned(place[row] + 2 * length[row])
    past_1 = Unsigned(place[row_1] + 2 * length[row_1])
    past_2 = Unsigned(place[row_2] + 2 * length[row_2])
    past_3 = Unsigned(place[row_3] + 2 * length[row_3])
    past_4 = Unsigned(place[row_4] + 2 * length[row_4])
    past_5 = Unsigned(place[row_5] + 2 * length[row_5])
    number_0, at_0 = _begun(joined, Unsigned(place[row]), past_0)
    number_1, at_1 = _begun(joined, Unsigned(place[row_1]), past_1)
    number_2, at_2 = _begun(joined, Unsigned(place[row_2]), past_2)
    number_3, at_3 = _begun(joined, Unsigned(place[row_3]), past_3)
    number_4, at_4 = _begun(joined, Unsigned(place[row_4]), past_4)
    number_5, at_5 = _begun(joined, Unsigned(place[row_5]), past_5)
    first_0, found_0 = Unsigned(table[row]), found[row]
    first_1, found_1 = Unsigned(table[row_1]), found[row_1]
    first_2, found_2 = Unsigned(table[row_2]), found[row_2]
    first_3, found_3 = Unsigned(table[row_3]), found[row_3]
    first_4, found_4 = Unsigned(table[row_4]), found[row_4]
    first_5, found_5 = Unsigned(table[row_5]), found[row_5]
    before_0 = first_0
    before_1 = first_1
    before_2 = first_2
    before_3 = first_3
    before_4 = first_4
    before_5 = first_5
    for path in range(Unsigned(begin), Unsigned(end)):
        rank, number_0, at_0 = _next(joined, number_0, at_0, past_0, before_0, *tables)
        found_0[path], before_0 = rank, first_0 + (rank & follows)
        rank, number_1, at_1 = _next(joined, number_1, at_1, past_1, before_1, *tables)
        found_1[path], before_1 = rank, first_1 + (rank & follows)
        rank, number_2, at_2 = _next(joined, number_2, at_2, past_2, before_2, *tables)
        found_2[path], before_2 = rank, first_2 + (rank & follows)
        rank, number_3, at_3 = _next(joined, number_3, at_3, past_3, before_3, *tables)
        found_3[path], before_3 = rank, first_3 + (rank & follows)
        rank, number_4, at_4 = _next(joined, number_4, at_4, past_4, before_4, *tables)
        found_4[path], before_4 = rank, first_4 + (rank & follows)
        rank, number_5, at_5 = _next(joined, number_5, at_5, past_5, before_5, *tables)
        found_5[path], before_5 = rank, first_5 + (rank & follows)


@compiled
def ranked(
    joined: Bytes,
    place: Integers,
    length: Integers,
    tables: _Tables,
    table: Integers,
    before: int,
    found: Codes,
    begin: int,
    end: int,
) -> None:
    """The ranks of some paths, of features whose streams begin at some place and have so many words.

    `table` tells where the tables of each feature begin. Four or six features take turns: while one waits for its rank,
    others go on. Numbers are without a sign, which spares machine code the question whether they count from the end.
    """
    follows, last, row = Unsigned(255 if before > 1 else 0), place.size - 1, 0
    while row <= last:
        left = place.size - row
        if left == 1:
            _one(joined, place, length, tables, table, follows, found, begin, end, row)
            row += 1
        elif left == 5 or left == 6:
            _six(joined, place, length, tables, table, follows, found, begin, end, row)
            row += 6
        else:
            _four(joined, place, length, tables, table, follows, found, begin, end, row)
            row += 4


@compiled
def coded(found: Codes, first: Codes, second: Codes, centres: Codes, code_of: Codes) -> None:
    """Make codes of a feature's ranks, given the codes of its parents; none where it has fewer."""
    if first.size and second.size:
        for each in range(found.size):
            found[each] = code_of[centres[first[each], second[each]], found[each]]
    elif first.size:
        for each in range(found.size):
            found[each] = code_of[centres[first[each], 0], found[each]]
