"""Decoding: the plain bytes of many frames become the strata that are wanted, in one pass.

What `blocks.opened` does block by block and for all strata is done here for all blocks at once, and only for strata
that have a place and a day in scope. Numbers stand in the bytes as `packing` put them there, ranks as `streams` did.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.columns import COLUMNS as APART
from synopsis.sketch.columns import SIZE_BITS
from synopsis.sketch.compiled import compiled
from synopsis.sketch.days import SHARE_BITS, WEEK
from synopsis.sketch.evenly import GOLDEN, MIXED
from synopsis.sketch.moments import Integers
from synopsis.sketch.packing import LINE_HEAD, TABLE_HEAD
from synopsis.sketch.scales import Codes
from synopsis.sketch.streams import FLOOR, LAP, WORD, Shares
from synopsis.sketch.stretches import FACTS, ODD, PLANES
from synopsis.sketch.tallies import DAY_US
from synopsis.sketch.tilts import CUTS, STEPS, Tilts

Bytes = NDArray[np.uint8]

#: A whole number of 64 bits without a sign.
Unsigned = np.uint64

#: Of which rank each part of a whole is, and the share of each; how many ranks there are, and bits of a whole.
_Tables = tuple[Codes, NDArray[np.uint32], Unsigned, Unsigned]

#: Parts of a block before those of its features: keys, runs, rows of days, paths of days.
HEADS = 4

#: How the paths of days are known: as so many, from the turn of their place and day, or as one for each row.
COUNTED, BY_TURN, ALL = range(3)

#: Of a part: its kind, its place among the plain bytes, its rows and its columns; where its packed bytes are.
KIND, PLACE, ROWS, COLUMNS, BEGIN, PAST = range(6)


@compiled
def _size(joined: Bytes, at: int) -> int:
    """A whole number of four bytes."""
    return int(joined[at]) | int(joined[at + 1]) << 8 | int(joined[at + 2]) << 16 | int(joined[at + 3]) << 24


@compiled
def _parted(joined: Bytes, sizes: Integers, tables: int, lines: int) -> tuple[Integers, Integers, int]:
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
    parts, _, plain = _parted(joined, sizes, tables, lines)
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
def _taken(values: Any, which: Integers) -> Any:
    """Those of some blocks."""
    found = np.empty(which.size, values.dtype)
    for each in range(which.size):
        found[each] = values[which[each]]
    return found


@compiled
def _number(plain: Bytes, parts: Integers, part: int, row: int, column: int) -> int:
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
def _total(plain: Bytes, parts: Integers, part: int, begin: int, end: int) -> int:
    """The sum of neighbouring numbers of a line; most are bytes, which the processor adds up many at a time."""
    found = np.int64(0)
    if parts[part, KIND] == 0:
        for number in plain[parts[part, PLACE] + begin : parts[part, PLACE] + end]:
            found += np.int64(number)
        return int(found)
    for each in range(begin, end):
        found += _number(plain, parts, part, 0, each)
    return int(found)


#: Of every byte: the zeros before its first one, from its lowest bit on.
_ZEROS = np.array([8, *((number & -number).bit_length() - 1 for number in range(1, 256))], np.uint8)


@compiled
def _word(joined: Bytes, at: Unsigned) -> Unsigned:
    """The bits from a place on, 57 at least."""
    first, found = at >> Unsigned(3), Unsigned(0)
    for byte in range(8):
        found |= Unsigned(joined[first + Unsigned(byte)]) << Unsigned(8 * byte)
    return found >> (at & Unsigned(7))


@compiled
def _length(joined: Bytes, place: int, column: int, is_long: bool) -> int:
    """The bytes of a column."""
    if is_long:
        return int(joined[place + 2 * column]) | int(joined[place + 2 * column + 1]) << 8
    return int(joined[place + column])


@compiled
def _size_of(joined: Bytes, at: Unsigned) -> Unsigned:
    """How many bits are the lowest, in the group of a column that begins there."""
    return _word(joined, at) & Unsigned((1 << SIZE_BITS) - 1)


@compiled
def _told_apart(joined: Bytes, at: Unsigned, bits: Unsigned) -> tuple[int, Unsigned]:
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
            bits, at = _size_of(joined, at), at + Unsigned(SIZE_BITS)
            for row in range(sizes[column]):
                found[row, column], at = _told_apart(joined, at, bits)
            place[column] = at
    return found


@compiled
def _first(joined: Bytes, parts: Integers, part: int, column: int) -> int:
    """Where a column begins."""
    place, is_long = parts[part, PLACE], parts[part, KIND] > APART
    found = place + parts[part, COLUMNS] * (2 if is_long else 1)
    for before in range(column):
        found += _length(joined, place, before, is_long)
    return int(found)


@compiled
def _line(joined: Bytes, parts: Integers, part: int, column: int, found: Integers) -> None:
    """The numbers of a line, as `columns.opened_lines` has them."""
    group, last = Unsigned(SIZE_BITS), 0
    at = Unsigned(8 * _first(joined, parts, part, column))
    bits, at = _size_of(joined, at), at + group
    for each in range(found.size):
        if each == 1:
            bits, at = _size_of(joined, at), at + group
        step, at = _told_apart(joined, at, bits)
        last += (step >> 1) ^ -(step & 1)
        found[each] = last


@compiled
def _turn(latitude: Unsigned, longitude: Unsigned) -> Unsigned:
    """At which turn the days of a place begin, as `evenly.turns` has it."""
    turn = longitude * GOLDEN
    turn = (latitude ^ (turn ^ turn >> Unsigned(29)) * MIXED) * GOLDEN
    return (turn ^ turn >> Unsigned(29)) * MIXED


@compiled
def _rows_of(plain: Bytes, parts: Integers, part: int, weekly: bool, first: int, each: int, day: int, week: int) -> int:
    """The rows of a day of a run, whose days and weeks begin there, as `days.opened` has it."""
    if not weekly:
        return _number(plain, parts, part, 0, day + each)
    at = first % WEEK + each
    return int(plain[parts[part, PLACE] + week + at // WEEK]) >> (at % WEEK) & 1


@compiled
def _paths_of(
    plain: Bytes, parts: Integers, part: int, told: int, turn: Unsigned, below: Unsigned, at: int, day: int, rows: int
) -> int:
    """The paths of a day that is at some place among those of its block, of so many rows."""
    if told == COUNTED:
        return _number(plain, parts, part, 0, at)
    return rows if told == ALL or turn + Unsigned(day) * GOLDEN < below else 0


@compiled
def _weeks(first: int, days: int) -> int:
    """The weeks that a run reaches into."""
    return (first % WEEK + days + WEEK - 1) // WEEK


@compiled
def _heads(
    plain: Bytes, joined: Bytes, parts: Integers, per_block: int, place_low: Integers
) -> tuple[Integers, Integers]:
    """Period, runs and streams of all strata of blocks, the last where they are told; place, first day and days of all
    runs."""
    strata = runs = 0
    for block in range(place_low.size):
        part = block * per_block
        strata += parts[part, ROWS if parts[part, KIND] >= APART else COLUMNS]
        runs += parts[part + 1, ROWS if parts[part + 1, KIND] >= APART else COLUMNS]
    keys, found, at, to = np.zeros((3, strata), np.int64), np.empty((3, runs), np.int64), 0, 0
    for block in range(place_low.size):
        for part in range(block * per_block, block * per_block + 2):
            is_apart, is_keys = parts[part, KIND] >= APART, part == block * per_block
            table, begin = keys if is_keys else found, at if is_keys else to
            end = begin + parts[part, ROWS if is_apart else COLUMNS]
            for row in range(3 if is_apart else parts[part, ROWS]):
                own = table[row, begin:end]
                if is_apart:
                    _line(joined, parts, part, row, own)
                else:
                    for each in range(own.size):
                        own[each] = _number(plain, parts, part, row, each)
            if is_keys:
                at = end
            else:
                for each in range(to, end):
                    found[0, each] += place_low[block]
                to = end
    return keys, found


@compiled
def _sizes(
    plain: Bytes,
    parts: Integers,
    per_block: int,
    keys: Integers,
    runs: Integers,
    weekly: NDArray[np.bool_],
    told: Integers,
    below: NDArray[np.uint64],
    latitude: NDArray[np.uint64],
    longitude: NDArray[np.uint64],
    chosen: NDArray[np.bool_],
    first_day: int,
    last_day: int,
) -> Integers:
    """Strata of all blocks: runs, days, paths, whether a run is at a chosen place within the days, weeks, and streams.

    Paths that are columns are not counted yet.
    """
    sizes = np.zeros((keys.shape[1], 6), np.int64)
    at = run = 0
    for block in range(told.size):
        part = block * per_block
        rows, is_apart = part + 2, parts[part, KIND] >= APART
        day = week = 0
        for _ in range(parts[part, ROWS if is_apart else COLUMNS]):
            own = sizes[at]
            own[0] = keys[1, at]
            for each in range(run, run + own[0]):
                place, first, length = runs[0, each], runs[1, each], runs[2, each]
                if is_apart:
                    pass
                elif told[block] == COUNTED:
                    own[2] += _total(plain, parts, rows + 1, day, day + length)
                elif told[block] == ALL and not weekly[block]:
                    own[2] += _total(plain, parts, rows, day, day + length)
                else:
                    turn = _turn(latitude[place], longitude[place]) if told[block] == BY_TURN else Unsigned(0)
                    for later in range(length):
                        many = _rows_of(plain, parts, rows, weekly[block], first, later, day, week)
                        own[2] += _paths_of(
                            plain, parts, rows + 1, told[block], turn, below[block], day + later, first + later, many
                        )
                weeks = _weeks(first, length)
                day, week = day + length, week + weeks
                own[1], own[4] = own[1] + length, own[4] + weeks
                if chosen[place] and first <= last_day and first + length > first_day:
                    own[3] = 1
            own[5] = keys[2, at] if is_apart else (own[2] + LAP - 1) // LAP
            run, at = run + own[0], at + 1
    return sizes


@compiled
def _days_apart(joined: Bytes, place: int, is_counted: bool, rows: Integers, kept: Integers) -> None:
    """The rows of a stratum's days, and their paths where these are counted, as `days.opened_apart` has them."""
    group, at = Unsigned(SIZE_BITS), Unsigned(8 * place)
    most, at = _told_apart(joined, at + group, _size_of(joined, at))
    many, at = _told_apart(joined, at + group, _size_of(joined, at))
    for day in range(rows.size):
        rows[day] = most
    if many:
        fewer, day = np.empty(many, np.int64), -1
        bits, at = _size_of(joined, at), at + group
        for each in range(many):
            gap, at = _told_apart(joined, at, bits)
            day += gap + 1
            fewer[each] = day
        bits, at = _size_of(joined, at), at + group
        for each in range(many):
            lacks, at = _told_apart(joined, at, bits)
            rows[fewer[each]] -= lacks + 1
    if is_counted:
        share, at = _told_apart(joined, at + group, _size_of(joined, at))
        bits, at = _size_of(joined, at), at + group
        for day in range(rows.size):
            more, at = _told_apart(joined, at, bits)
            kept[day] = ((more >> 1) ^ -(more & 1)) + ((rows[day] * share + (1 << SHARE_BITS - 1)) >> SHARE_BITS)


@compiled
def _stretched(
    runs: Integers,
    first: int,
    many: int,
    days: int,
    turns: NDArray[np.uint64],
    offset: Integers,
    shift: NDArray[np.float64],
    to: int,
) -> int:
    """Where among the days of a stratum its stretches begin, written down from `to` on; one past the last.

    They end with their days and with their place, and go on over a gap between two runs. Given the turns of runs, also
    by how much the lattice of each is shifted, as `stretches.shifted` has it.
    """
    begin, place, last = 0, -1, 0
    for run in range(first, first + many):
        own, day, length = runs[0, run], runs[1, run], runs[2, run]
        for each in range(length):
            number = (day + each) // days
            if own != place or number != last:
                mixed = (turns[run - first] ^ Unsigned(number) * ODD) * MIXED
                mixed = (mixed ^ mixed >> Unsigned(32)) * GOLDEN
                offset[to], shift[to] = begin + each, float(mixed >> Unsigned(11)) / 2.0**53 - 0.5
                to += 1
            place, last = own, number
        begin += length
    return to


@compiled
def _stretches(runs: Integers, first: int, many: int, days: int) -> int:
    """How many stretches a stratum has."""
    found, place, last = 0, -1, 0
    for run in range(first, first + many):
        begin, end = runs[1, run] // days, (runs[1, run] + runs[2, run] - 1) // days
        found += end - begin + (runs[0, run] != place or begin != last)
        place, last = runs[0, run], end
    return found


@compiled
def _facts(plain: Bytes, parts: Integers, part: int, first: int, found: Integers, begin: int, end: int) -> None:
    """What is kept of some stretches of a feature, from the first of the block on, as `stretches.opened` has it."""
    at, row = parts[part, PLACE] + first - begin, 0
    for fact in range(FACTS):
        for each in range(begin, end):
            found[fact, each] = 0
        for plane in range(PLANES[fact]):
            own = at + row * parts[part, COLUMNS]
            for each in range(begin, end):
                found[fact, each] |= np.int64(plain[own + each]) << 8 * plane
            row += 1
        for each in range(begin, end):
            found[fact, each] = (found[fact, each] >> 1) ^ -(found[fact, each] & 1)


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
def _ranked(
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
def _coded(found: Codes, first: Codes, second: Codes, centres: Codes, code_of: Codes) -> None:
    """Make codes of a feature's ranks, given the codes of its parents; none where it has fewer."""
    if first.size and second.size:
        for each in range(found.size):
            found[each] = code_of[centres[first[each], second[each]], found[each]]
    elif first.size:
        for each in range(found.size):
            found[each] = code_of[centres[first[each], 0], found[each]]


@compiled
def _bins_of(
    plain: Bytes, parts: Integers, part: int, stratum: int, starts: Codes, ends: Codes, tilt: Tilts, counts: Integers
) -> None:
    """The bins of a stratum, from a table of bytes."""
    table, columns, bins = parts[part, PLACE] + stratum, parts[part, COLUMNS], starts.size
    end = int(plain[table])
    for each in range(bins):
        start, shape = end, int(np.int8(plain[table + (bins + 1 + each) * columns]))
        end += plain[table + (each + 1) * columns]
        _put(starts, ends, tilt, each, start, end, shape)
    for each in range(bins + 1):
        count = 0
        for row in range(2 * bins + 1 + each, parts[part, ROWS], bins + 1):
            count = count << 8 | plain[table + row * columns]
        counts[each] = count


@compiled
def _bins_apart(joined: Bytes, place: int, starts: Codes, ends: Codes, tilt: Tilts, counts: Integers) -> None:
    """The same, from a column of numbers that begins at some byte."""
    at, bins, group = Unsigned(8 * place), starts.size, Unsigned(SIZE_BITS)
    end, at = _told_apart(joined, at + group, _size_of(joined, at))
    bits, at = _size_of(joined, at), at + group
    for each in range(bins):
        starts[each] = end
        wide, at = _told_apart(joined, at, bits)
        end += wide
    bits, at = _size_of(joined, at), at + group
    for each in range(bins):
        shape, at = _told_apart(joined, at, bits)
        _put(
            starts, ends, tilt, each, int(starts[each]), int(starts[each + 1]) if each + 1 < bins else end,
            (shape >> 1) ^ -(shape & 1),
        )  # fmt: skip
    bits, at = _size_of(joined, at), at + group
    for each in range(bins):
        counts[each], at = _told_apart(joined, at, bits)
    counts[bins], at = _told_apart(joined, at + group, _size_of(joined, at))


@compiled
def _put(starts: Codes, ends: Codes, tilt: Tilts, each: int, start: int, end: int, shape: int) -> None:
    """Write down a bin, given where the next one begins, as `tilts.read` has it."""
    is_cut = shape > STEPS
    starts[each], tilt[each] = start, 0 if is_cut else shape
    ends[each] = start - (start - end >> CUTS[shape - STEPS - 1]) if is_cut else end


@compiled
def decoded(
    plain: Bytes,
    joined: Bytes,
    frames: Integers,
    which: Integers,
    shares: Shares,
    bits: int,
    rank_of: Codes,
    share_of: NDArray[np.uint32],
    place_low: Integers,
    weekly: NDArray[np.bool_],
    told: Integers,
    below: NDArray[np.uint64],
    latitude: NDArray[np.uint64],
    longitude: NDArray[np.uint64],
    chosen: NDArray[np.bool_],
    first_day: int,
    last_day: int,
    features: Integers,
    needed: Integers,
    parents: Integers,
    centres: Codes,
    code_of: Codes,
    bins: int,
    stretch_days: Integers,
    in_scope_only: bool,
) -> tuple[tuple[Any, ...], Integers, Integers, Integers, Integers, NDArray[np.float64], Integers]:
    """The fields of `Strata`, in its order, of all strata in scope; then where their days begin, all days; and of the
    features that are wanted with stretches of so many days what is kept of these, where their days begin, by how much
    their lattices are shifted, and how many there are.

    Frames are those of the blocks `which`, so many bytes each, `joined`; what of them is packed is also given `plain`.
    A block has HEADS, a part with the bins of each feature, one with the stretches of each that has any, one with how
    many words the streams of every feature have, and the ranks of the features that are `needed` to find the
    codes, parents first, where they are not in streams: `words` tells where these begin. Tables of ranks are those of
    all features, or else made of their shares.
    With `in_scope_only` no stream is read behind the last path of a day in scope: codes of others are 0. Where no path
    is in scope, which are those that others speak for, all are read.
    """
    tables = features.size + stretch_days.size
    parts, words, _ = _parted(joined, frames, tables, needed.size)
    per_block = parts.shape[0] // which.size
    place_low, weekly, told, below = (
        _taken(place_low, which),
        _taken(weekly, which),
        _taken(told, which),
        _taken(below, which),
    )
    keys_of, runs_of = _heads(plain, joined, parts, per_block, place_low)
    days_known = (weekly, told, below, latitude, longitude)
    sizes = _sizes(plain, parts, per_block, keys_of, runs_of, *days_known, chosen, first_day, last_day)
    strata = runs = days = paths = 0
    for each in range(sizes.shape[0]):
        if sizes[each, 3]:
            strata, runs, days = strata + 1, runs + sizes[each, 0], days + sizes[each, 1]
    period = np.empty(strata, np.int64)
    run_offset, day_offset, day_of = (
        np.zeros(strata + 1, np.int64),
        np.zeros(strata + 1, np.int64),
        np.empty(days, np.int64),
    )
    run_place, run_first, run_days = np.empty(runs, np.int64), np.empty(runs, np.int64), np.empty(runs, np.int64)
    run_turn = np.zeros(runs, np.uint64)
    day_rows, day_kept = np.empty(days, np.int64), np.empty(days, np.int64)
    reached_by, heard = np.empty(strata, np.int64), 0  # of strata: paths up to the last in scope; paths in scope

    # days
    seen = run = to = to_run = to_day = 0
    for block in range(place_low.size):
        keys, day, week = block * per_block, 0, 0
        is_apart = parts[keys, KIND] >= APART
        column = _first(joined, parts, keys + 2, 0) if is_apart else 0
        for stratum in range(parts[keys, ROWS if is_apart else COLUMNS]):
            own_day, own_week, own = to_day, week, sizes[seen]
            if own[3]:
                period[to] = keys_of[0, seen]
                own_rows, own_kept = day_rows[to_day : to_day + own[1]], day_kept[to_day : to_day + own[1]]
                if is_apart:
                    _days_apart(joined, column, told[block] == COUNTED, own_rows, own_kept)
                begins_at = reached = 0
                for each in range(run, run + own[0]):
                    place, first_of, long = runs_of[0, each], runs_of[1, each], runs_of[2, each]
                    run_place[to_run], run_first[to_run], run_days[to_run] = place, first_of, long
                    turn = _turn(latitude[place], longitude[place])
                    run_turn[to_run] = turn
                    for later in range(long):
                        here = first_of + later
                        day_of[own_day + later] = here
                        if not is_apart:
                            day_rows[own_day + later] = _rows_of(
                                plain, parts, keys + 2, weekly[block], first_of, later, day + own_day - to_day, own_week
                            )
                        if not is_apart or told[block] != COUNTED:
                            day_kept[own_day + later] = _paths_of(
                                plain, parts, keys + 3, told[block], turn, below[block],
                                day + own_day - to_day + later, here, day_rows[own_day + later],
                            )  # fmt: skip
                    if in_scope_only and chosen[place]:
                        begins, past = max(first_day - first_of, 0), min(last_day - first_of + 1, long)
                        for later in range(begins, past):
                            heard += own_kept[begins_at + later]
                        reached = begins_at + past if begins < past else reached
                    begins_at += long
                    to_run, own_day, own_week = to_run + 1, own_day + long, own_week + _weeks(first_of, long)
                if is_apart:
                    for each in range(own_kept.size):
                        own[2] += own_kept[each]
                reached_by[to] = 0
                for each in range(reached):
                    reached_by[to] += own_kept[each]
                to, to_day, paths = to + 1, to_day + own[1], paths + own[2]
                run_offset[to], day_offset[to] = to_run, to_day
            if is_apart:
                column += _length(joined, parts[keys + 2, PLACE], stratum, parts[keys + 2, KIND] > APART)
            seen, run, day, week = seen + 1, run + own[0], day + own[1], week + own[4]

    # bins, paths and stretches
    of_stretches = stretch_days.size
    stretches, stretch_offset = (
        np.empty((of_stretches, FACTS, days), np.int64),
        np.zeros((of_stretches, days + 1), np.int64),
    )
    stretch_shift, stretched, stretch = (
        np.empty((of_stretches, days)),
        np.zeros(of_stretches, np.int64),
        np.zeros(of_stretches, np.int64),
    )
    starts = np.empty((features.size, strata, bins), np.uint8)
    ends = np.empty((features.size, strata, bins), np.uint8)
    counts = np.empty((features.size, strata, bins + 1), np.int64)
    tilt = np.empty((features.size, strata, bins), np.int8)
    known = np.empty((needed.size, paths), np.uint8)
    row_of, nobody = np.full(parents.shape[0], -1, np.int64), np.empty(0, np.uint8)
    for row in range(needed.size):
        row_of[needed[row]] = row
    before, is_kept = shares.shape[1], rank_of.size > 0
    if not is_kept:
        rank_of, share_of = ranks_of(shares, needed, bits)
    tables_of = (rank_of, share_of, Unsigned(shares.shape[2] - 1), Unsigned(bits))
    at, length = np.empty(needed.size, np.int64), np.empty(needed.size, np.int64)
    table = np.empty(needed.size, np.int64)
    for row in range(needed.size):
        table[row] = before * (needed[row] if is_kept else row)
    apart = np.empty(features.size, np.int64)
    seen = run = to = to_day = to_path = 0
    for block in range(place_low.size):
        keys, lengths = block * per_block, block * per_block + HEADS + tables
        is_apart = parts[lengths, KIND] >= APART
        streams = parts[lengths, ROWS] if is_apart else parts[lengths, ROWS] // parents.shape[0]
        path = lap = 0
        stretch[:] = 0
        lengths_of = np.empty((needed.size, streams), np.int64)
        for row in range(needed.size):
            at[row] = words[block * needed.size + row]
            if is_apart:
                _line(joined, parts, lengths, needed[row], lengths_of[row])
            else:
                for each in range(streams):
                    lengths_of[row, each] = _number(plain, parts, lengths, needed[row] * streams + each, 0)
        for feature in range(features.size):
            apart[feature] = _first(joined, parts, keys + HEADS + feature, 0)
        for stratum in range(parts[keys, ROWS if parts[keys, KIND] >= APART else COLUMNS]):
            own_size = sizes[seen]
            for row in range(needed.size if own_size[3] and not streams else 0):
                there, ranks = parts[lengths + 1 + row, PLACE] + path, known[row, to_path : to_path + own_size[2]]
                for each in range(ranks.size):
                    ranks[each] = plain[there + each]
            for begin in range(to_path, to_path + own_size[5] * LAP if streams else to_path, LAP):
                for row in range(needed.size):
                    length[row] = lengths_of[row, lap]
                if own_size[3]:
                    end = min(begin + LAP, to_path + (reached_by[to] if heard else own_size[2]))
                    _ranked(joined, at, length, tables_of, table, before, known, begin, end)
                for row in range(needed.size):
                    at[row] += 2 * length[row]
                lap += 1
            if own_size[3]:
                for feature in range(features.size):
                    own = keys + HEADS + feature
                    bins_of = (starts[feature, to], ends[feature, to], tilt[feature, to], counts[feature, to])
                    if parts[own, KIND] >= APART:
                        _bins_apart(joined, apart[feature], *bins_of)
                    else:
                        _bins_of(plain, parts, own, stratum, *bins_of)
                end_path, last_path = to_path + own_size[2], to_path + (reached_by[to] if heard else own_size[2])
                for row in range(needed.size):
                    feature, first, second = needed[row], nobody, nobody
                    if parents[feature, 0] >= 0:
                        first = known[row_of[parents[feature, 0]], to_path:last_path]
                    if parents[feature, 1] >= 0:
                        second = known[row_of[parents[feature, 1]], to_path:last_path]
                    _coded(known[row, to_path:last_path], first, second, centres[feature], code_of)
                    for each in range(last_path, end_path):
                        known[row, each] = 0
                turns = run_turn[run_offset[to] : run_offset[to + 1]]
                for number in range(of_stretches):
                    begin, own_offset = stretched[number], stretch_offset[number]
                    until = _stretched(
                        runs_of, run, own_size[0], stretch_days[number], turns, own_offset, stretch_shift[number], begin
                    )
                    for each in range(begin, until):
                        own_offset[each] += to_day
                    own = keys + HEADS + features.size + number
                    _facts(plain, parts, own, stretch[number], stretches[number], begin, until)
                    stretch[number], stretched[number] = stretch[number] + until - begin, until
                to, to_day, to_path = to + 1, to_day + own_size[1], end_path
            else:
                for number in range(of_stretches):
                    stretch[number] += _stretches(runs_of, run, own_size[0], stretch_days[number])
            for feature in range(features.size):
                own = keys + HEADS + feature
                if parts[own, KIND] >= APART:
                    apart[feature] += _length(joined, parts[own, PLACE], stratum, parts[own, KIND] > APART)
            seen, run, path = seen + 1, run + own_size[0], path + own_size[2]
    codes = np.empty((features.size, paths), np.uint8)
    for feature in range(features.size):
        given, found = known[row_of[features[feature]]], codes[feature]
        for each in range(paths):
            found[each] = given[each]
    for number in range(of_stretches):
        stretch_offset[number, stretched[number]] = to_day
    fields = (
        period, starts, ends, counts, tilt, run_offset, run_place, run_first, run_days, run_turn, day_rows, day_kept,
        codes,
    )  # fmt: skip
    return fields, day_offset, day_of, stretches, stretch_offset, stretch_shift, stretched


@compiled
def covered(
    run_place: Integers,
    run_first: Integers,
    run_days: Integers,
    days: int,
    chosen: NDArray[np.bool_],
    begin_us: int,
    end_us: int,
) -> NDArray[np.float64]:
    """Days: the part of each that lies in a span of time, 0 at places that are not chosen."""
    share, at = np.zeros(days), 0
    for run in range(run_place.size):
        if chosen[run_place[run]]:
            for each in range(run_days[run]):
                first = (run_first[run] + each) * DAY_US
                part = (min(first + DAY_US, end_us) - max(first, begin_us)) / DAY_US
                share[at + each] = min(max(part, 0.0), 1.0)
        at += run_days[run]
    return share


@compiled
def is_shared(run_offset: Integers, run_place: Integers) -> bool:
    """Whether any stratum has several places."""
    for stratum in range(run_offset.size - 1):
        for run in range(run_offset[stratum] + 1, run_offset[stratum + 1]):
            if run_place[run] != run_place[run - 1]:
                return True
    return False
