"""Columns come back as they were, each read by itself, and take few bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch import columns, reading
from synopsis.sketch.columns import Reading, closed, closed_lines, opened_lines
from synopsis.sketch.packing import TABLE_HEAD, packed
from synopsis.sketch.reading import APART, COLUMNS, KIND, PLACE, ROWS

NUMBERS = st.one_of(st.integers(0, 3), st.integers(0, 300), st.integers(0, (1 << 62) - 1))
RAGGED = st.lists(st.lists(NUMBERS, max_size=12), min_size=1, max_size=7)


def plainly(reading: Reading, sizes: np.ndarray) -> np.ndarray:
    """The next group, in NumPy: all columns side by side, row by row."""
    stream, place = reading.stream, reading.place.copy()

    def word() -> np.ndarray:
        """The bits that come next, 57 at least."""
        found = np.zeros(place.size, np.uint64)
        for byte in range(8):
            found |= stream[np.minimum((place >> 3) + byte, stream.size - 1)].astype(np.uint64) << np.uint64(8 * byte)
        return found >> (place & 7).astype(np.uint64)

    def lowest(many: np.ndarray) -> np.ndarray:
        found = word() & ((np.uint64(1) << many.astype(np.uint64)) - np.uint64(1))
        place[:] += many
        return found.astype(np.int64)

    found = np.zeros((int(sizes.max(initial=0)), sizes.size), np.int64)
    bits = lowest(np.where(sizes > 0, columns.SIZE_BITS, 0))
    for row in range(len(found)):
        has, own = sizes > row, word()
        zeros = np.log2(np.where(has, own & (~own + np.uint64(1)), 1).astype(np.float64)).astype(np.int64)
        place += np.where(has, zeros + 1, 0)
        found[row] = zeros << bits
        for first in (0, 32):
            found[row] |= lowest(np.where(has, np.clip(bits - first, 0, 32), 0)) << first
    return found


def plainly_closed(groups: list[np.ndarray], sizes: list[np.ndarray]) -> bytes:
    """The frame of groups, in NumPy: all numbers at once, bit by bit."""
    count = groups[0].shape[1]
    low, zeros, numbers, there = [], [], [], []
    for group, many in zip(groups, sizes, strict=True):
        largest = group.max(axis=0, initial=0)
        best, bits = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
        for each in range(max(int(largest.max(initial=0)).bit_length(), 1)):
            may = largest >> each <= columns.MOST_ZEROS
            size = np.where(may, group >> each, 0).sum(axis=0) + each * many
            best, bits = np.where(may & (size < best), size, best), np.where(may & (size < best), each, bits)
        low += [np.full((1, count), columns.SIZE_BITS), np.broadcast_to(bits, group.shape)]
        zeros += [np.full((1, count), -1), group >> bits]
        numbers += [bits[None], group]
        there += [many[None] > 0, np.arange(len(group))[:, None] < many]
    own, rest, number, has = (np.concatenate(each) for each in (low, zeros, numbers, there))
    size = np.where(has, own + rest + 1, 0)
    length = (size.sum(axis=0) + 7) // 8
    begin = 8 * (np.cumsum(length) - length) + np.cumsum(size, axis=0) - size
    stream = np.zeros(8 * int(length.sum()), np.uint8)
    stream[(begin + rest)[has & (rest >= 0)]] = 1
    begin = begin + rest + 1
    for bit in range(int(own.max(initial=0))):
        more = has & (own > bit)
        stream[begin[more] + bit] = number[more] >> bit & 1
    return np.packbits(stream, None, "little").tobytes()


@given(RAGGED, RAGGED)
def test_machine_code_writes_the_bits_that_numpy_does(numbers, others):
    size = min(len(numbers), len(others))
    (table, sizes), (other, other_sizes) = side_by_side(numbers[:size]), side_by_side(others[:size])
    frame = closed([table, other], [sizes, other_sizes])
    plain = plainly_closed([table, other], [sizes, other_sizes])
    assert frame[len(frame) - len(plain) :] == plain


def side_by_side(numbers: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.array([len(each) for each in numbers])
    return columns.side_by_side(np.array([one for each in numbers for one in each], np.int64), sizes), sizes


@given(RAGGED, st.data())
def test_columns_of_any_length_come_back(numbers, data):
    table, sizes = side_by_side(numbers)
    other = st.lists(NUMBERS, min_size=2, max_size=2)
    whole = np.array([data.draw(other) for _ in numbers], np.int64).T
    frame = closed([table, whole, table], [sizes, np.full(sizes.size, 2), sizes])
    reading = Reading(frame)
    assert reading.columns == sizes.size
    for group, many in ((table, sizes), (whole, np.full(sizes.size, 2)), (table, sizes)):
        assert np.array_equal(plainly(reading, many), group)
        assert np.array_equal(reading.group(many), group)
    assert columns.one_by_one(table, sizes).tolist() == [one for each in numbers for one in each]


@given(st.lists(st.tuples(*[st.integers(-(1 << 40), 1 << 40)] * 3), min_size=1, max_size=30))
def test_lines_come_back_in_numpy_and_in_machine_code(numbers):
    lines = np.array(numbers, np.int64).T
    frame = closed_lines(lines)
    assert np.array_equal(opened_lines(frame), lines)
    joined = np.frombuffer(bytearray(frame + columns.BEHIND), np.uint8)
    parts = np.zeros((1, 6), np.int64)
    parts[0, [KIND, PLACE, ROWS, COLUMNS]] = frame[0], TABLE_HEAD, lines.shape[1], 3
    for line in range(3):
        found = np.empty(lines.shape[1], np.int64)
        _as_written("line")(joined, parts, 0, line, found)
        assert np.array_equal(found, lines[line])


def _as_written(name):
    """A function of `reading` as Python runs it, and those that it calls."""
    known = vars(reading)
    own = {each: getattr(value, "py_func", value) for each, value in known.items()}
    functions = {
        each: type(value)(value.__code__, own, each, value.__defaults__)
        for each, value in own.items()
        if getattr(known[each], "py_func", None) is not None
    }
    own.update(functions)
    return functions[name]


def test_long_columns_have_lengths_of_two_bytes_and_longer_ones_are_none():
    table = np.full((300, 2), 1 << 20)
    frame = closed([table])
    assert frame[0] == APART + 1
    assert np.array_equal(Reading(frame).group(300), table)
    assert closed([np.full((40_000, 1), 1 << 20)]) == b""


def test_frames_of_columns_are_told_from_others():
    table = np.arange(12).reshape(3, 4)
    assert columns.is_columns(closed([table]))
    assert not columns.is_columns(packed(table))
    assert not columns.is_columns(b"")


@pytest.mark.parametrize("rate", [1.0, 8.0, 200.0])  # of less than one, none takes less than a bit
def test_counts_take_hardly_more_than_their_entropy(rate):
    numbers = np.random.default_rng(7).geometric(1 / (1 + rate), (400, 20)) - 1
    share = 1 / (1 + rate)
    entropy = -(share * np.log2(share) + (1 - share) * np.log2(1 - share)) / share * numbers.size / 8
    assert len(closed([numbers])) < 1.06 * entropy + 60
