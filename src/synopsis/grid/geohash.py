"""Geohash: a place as one integer, whose leading bits name the larger place around it.

Longitude and latitude are halved again and again; each halving gives a bit, and the bits take turns, longitude first. A
**cell** of `bits` bits (1 to 60) is an int64; text of 1 to 12 characters, five bits each, exists only at the edge. A
cell is where a **column** (counted from the west) meets a **row** (counted from the south). Cells are half-open,
[south, north) x [west, east), except that the last row owns the pole and the last column owns longitude 180, so every
position has exactly one cell.

G. Niemeyer (2008) proposed the encoding; the interleaving by shifts and masks is H. S. Warren's, Hacker's Delight, 7-2.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

ALPHABET: Final = "0123456789bcdefghjkmnpqrstuvwxyz"
BITS_PER_CHARACTER: Final = 5
MAXIMUM_BITS: Final = 60

#: Half the length of each axis in degrees: latitude runs -90..90, longitude -180..180.
LATITUDE_REACH: Final = 90.0
LONGITUDE_REACH: Final = 180.0

#: (shift, mask) pairs that push the low 32 bits of a number apart, leaving a zero between any two: x = (x | x << shift)
#: & mask. All masks are positive as signed 64-bit integers, so engines without unsigned types can use the same table.
SPREAD_STEPS: Final[tuple[tuple[int, int], ...]] = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)

#: The way back undoes the steps last to first; each leaves the mask of the step before it.
_SQUEEZE_STEPS: Final = tuple(
    (shift, mask)
    for (shift, _), mask in zip(
        reversed(SPREAD_STEPS), (*(mask for _, mask in reversed(SPREAD_STEPS[:-1])), 0xFFFFFFFF), strict=True
    )
)

_KNOWN_CHARACTERS: Final = frozenset(ALPHABET + ALPHABET.upper())
_CHARACTER_CODES: Final = np.array([ord(character) for character in ALPHABET], dtype=np.uint32)

#: The five bits of each character by its code point, -1 where there is none; from 128 on all share the last entry.
_CHARACTER_VALUES: Final = np.full(129, -1, dtype=np.int64)
_CHARACTER_VALUES[_CHARACTER_CODES] = np.arange(32)
_CHARACTER_VALUES[[ord(character) for character in ALPHABET.upper()]] = np.arange(32)

#: Texts up to which it is faster to compare positions with the edges of each cell than to find their own cells.
_FEW: Final = 8

#: Steps (north, east) to the eight neighbours, clockwise: N, NE, E, SE, S, SW, W, NW.
_NEIGHBOUR_ROWS: Final = np.array([1, 1, 0, -1, -1, -1, 0, 1])
_NEIGHBOUR_COLUMNS: Final = np.array([0, 1, 1, 1, 0, -1, -1, -1])


def axis_bits(bits: int) -> tuple[int, int]:
    """How many of the bits halve longitude, and how many latitude.

    >>> axis_bits(25)
    (13, 12)
    """
    if not 1 <= bits <= MAXIMUM_BITS:
        raise ValueError(f"a cell has 1 to {MAXIMUM_BITS} bits, not {bits}")
    return (bits + 1) // 2, bits // 2


def encode(latitude: ArrayLike, longitude: ArrayLike, bits: int) -> NDArray[np.int64]:
    """The cell of each position, exactly as repeated halving would find it.

    >>> encode([57.64911, -25.38], [10.40744, -49.26], 30)
    array([877322078, 217677733])
    >>> to_text([877322078, 217677733], 6)
    array(['u4pruy', '6gkzx5'], dtype='<U6')
    """
    longitude_bits, latitude_bits = axis_bits(bits)
    columns = axis_index(longitude, LONGITUDE_REACH, longitude_bits, "longitude")
    rows = axis_index(latitude, LATITUDE_REACH, latitude_bits, "latitude")
    return interleave(columns, rows, bits)


def decode(
    cells: ArrayLike, bits: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """South, west, north and east of each cell.

    >>> [float(edge) for edge in decode(parse("ezs")[0], 15)]
    [42.1875, -5.625, 43.59375, -4.21875]
    """
    longitude_bits, latitude_bits = axis_bits(bits)
    columns, rows = deinterleave(cells, bits)
    return (
        axis_edge(rows, LATITUDE_REACH, latitude_bits),
        axis_edge(columns, LONGITUDE_REACH, longitude_bits),
        axis_edge(rows + 1, LATITUDE_REACH, latitude_bits),
        axis_edge(columns + 1, LONGITUDE_REACH, longitude_bits),
    )


def axis_index(degrees: ArrayLike, reach: float, bits: int, name: str = "degrees") -> NDArray[np.int64]:
    """Which of the 2**bits equal parts of -reach..reach holds each value; the last part is closed.

    >>> axis_index([-180.0, -1e-17, 0.0, 180.0], LONGITUDE_REACH, 3)
    array([0, 3, 4, 7])
    """
    values = np.asarray(degrees, dtype=np.float64)
    if not (values.min(initial=0.0) >= -reach and values.max(initial=0.0) <= reach):  # NaN spreads and compares false
        stray = float(values[~(np.abs(values) <= reach)].flat[0])
        raise ValueError(f"{name} must lie in {-reach:g}..{reach:g}, found {stray:g}")
    step = 2 * reach / 2**bits
    # Both roundings are monotone and keep i and i * step as they are, so the scaled index is never too small, and at
    # most one too large: where rounding carried a value up to the boundary just above it. The boundary is exact.
    index = np.asarray((values + reach) / step).astype(np.int64)
    index -= values < axis_edge(index, reach, bits)
    return np.asarray(np.minimum(index, 2**bits - 1))


def axis_edge(index: ArrayLike, reach: float, bits: int) -> NDArray[np.float64]:
    """Where part `index` of an axis begins, and the one before it ends.

    A step is 45 times a power of two, so the result is exact in float64 for up to 45 bits.

    >>> axis_edge([0, 4, 8], LONGITUDE_REACH, 3)
    array([-180.,    0.,  180.])
    """
    return np.asarray(np.asarray(index) * (2 * reach / 2**bits) - reach)


def interleave(columns: ArrayLike, rows: ArrayLike, bits: int) -> NDArray[np.int64]:
    """The cells where these columns and rows meet (broadcast against each other)."""
    last, other = (rows, columns) if bits % 2 == 0 else (columns, rows)
    return spread(last) | spread(other) << 1


def deinterleave(cells: ArrayLike, bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Column and row of each cell.

    >>> columns, rows = deinterleave(encode([57.6, -25.3], [10.4, -49.2], 30), 30)
    >>> bool(np.all(interleave(columns, rows, 30) == encode([57.6, -25.3], [10.4, -49.2], 30)))
    True
    """
    known = _checked(cells, bits)
    last, other = squeeze(known), squeeze(known >> 1)
    return (other, last) if bits % 2 == 0 else (last, other)


def spread(numbers: ArrayLike) -> NDArray[np.int64]:
    """Bits 0, 1, 2, ... moved to places 0, 2, 4, ...; takes numbers below 2**32.

    >>> spread([0b1, 0b11, 0b101])
    array([ 1,  5, 17])
    """
    apart = np.array(numbers, dtype=np.int64)
    for shift, mask in SPREAD_STEPS:
        apart |= apart << shift
        apart &= mask
    return apart


def squeeze(numbers: ArrayLike) -> NDArray[np.int64]:
    """Bits 0, 2, 4, ... moved to places 0, 1, 2, ...; the odd places are ignored.

    >>> squeeze(spread([1, 3, 2**32 - 1]))
    array([         1,          3, 4294967295])
    """
    together = np.array(numbers, dtype=np.int64)
    together &= SPREAD_STEPS[-1][1]
    for shift, mask in _SQUEEZE_STEPS:
        together |= together >> shift
        together &= mask
    return together


def to_text(cells: ArrayLike, length: int) -> NDArray[np.str_]:
    """The text of cells that have five bits for each of `length` characters.

    >>> to_text([13, 25], 1)
    array(['e', 't'], dtype='<U1')
    """
    _check_length(length, "")
    known = _checked(cells, length * BITS_PER_CHARACTER)
    shifts = np.arange(length - 1, -1, -1) * BITS_PER_CHARACTER
    codes = _CHARACTER_CODES[known[..., np.newaxis] >> shifts & 31]
    texts: NDArray[np.str_] = codes.view(f"U{length}")
    return texts[..., 0]


def from_text(texts: ArrayLike) -> NDArray[np.int64]:
    """The cells of texts that all have one length; upper case is accepted.

    >>> from_text(["ezs42", "U4PRU"])
    array([14672002, 27416314])
    """
    written = np.asarray(texts, dtype=np.str_)
    if written.size == 0:
        return np.empty(written.shape, dtype=np.int64)
    lengths = np.strings.str_len(written)
    length = int(lengths.flat[0])
    if np.any(lengths != length):
        raise ValueError(f"geohashes of one length expected, found lengths {lengths.min()} to {lengths.max()}")
    _check_length(length, str(written.flat[0]))
    native = np.ascontiguousarray(written, dtype=f"=U{length}")
    codes = native.view(np.uint32).reshape(*written.shape, length)
    values = _CHARACTER_VALUES[np.minimum(codes, 128)]
    known = np.all(values >= 0, axis=-1)
    if not np.all(known):
        _check_characters(str(written[~known].flat[0]))
    shifts = np.arange(length - 1, -1, -1) * BITS_PER_CHARACTER
    return np.asarray(np.bitwise_or.reduce(values << shifts, axis=-1))


def parse(text: str) -> tuple[int, int]:
    """The cell and the number of bits that one text stands for.

    >>> parse("ezs42")
    (14672002, 25)
    """
    _check_length(len(text), text)
    _check_characters(text)
    cell = 0
    for character in text.lower():  # at most 12, and a tenth of the time that an array would take
        cell = cell << BITS_PER_CHARACTER | ALPHABET.index(character)
    return cell, len(text) * BITS_PER_CHARACTER


def within(texts: Sequence[str], latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which positions lie in one of these cells, as their own cells would tell. Cost: a pass for every text or length.

    >>> within(["ezs42", "u"], np.array([42.6, 57.6, 0.0]), np.array([-5.6, 10.4, 0.0]))
    array([ True,  True, False])
    """
    found = np.zeros(latitude.shape, np.bool_)
    if len(texts) <= _FEW:
        for text in texts:
            south, west, north, east = _box(text)
            inside = (latitude >= south) & (longitude >= west)
            inside &= latitude < north if north < LATITUDE_REACH else True
            inside &= longitude < east if east < LONGITUDE_REACH else True
            found |= inside
        return found
    by_length: dict[int, list[int]] = {}
    for text in texts:
        by_length.setdefault(len(text), []).append(parse(text)[0])
    for length, cells in by_length.items():
        found |= np.isin(encode(latitude, longitude, length * BITS_PER_CHARACTER), cells)
    return found


@lru_cache(maxsize=256)
def _box(text: str) -> tuple[float, float, float, float]:
    """South, west, north and east of one cell, as `decode` has them, which takes ten times as long for a single one."""
    digits = f"{parse(text)[0]:0{len(text) * BITS_PER_CHARACTER}b}"
    edges = []
    for own, reach in ((digits[1::2], LATITUDE_REACH), (digits[::2], LONGITUDE_REACH)):
        index, step = int(own, 2), 2 * reach / 2 ** len(own)
        edges += [index * step - reach, (index + 1) * step - reach]
    south, north, west, east = edges
    return south, west, north, east


def parents(cells: ArrayLike, bits: int, to_bits: int) -> NDArray[np.int64]:
    """The larger cell of `to_bits` bits around each cell.

    >>> to_text(parents(from_text(["ezs42", "u4pru"]), 25, 10), 2)
    array(['ez', 'u4'], dtype='<U2')
    """
    axis_bits(to_bits)
    if to_bits > bits:
        raise ValueError(f"a parent has at most the {bits} bits of its cell, not {to_bits}")
    return _checked(cells, bits) >> (bits - to_bits)


def children(cells: ArrayLike, bits: int, to_bits: int) -> NDArray[np.int64]:
    """The 2**(to_bits - bits) smaller cells that make up each cell, in order, one row a cell.

    >>> children([1, 6], 3, 5)
    array([[ 4,  5,  6,  7],
           [24, 25, 26, 27]])
    """
    axis_bits(to_bits)
    if to_bits < bits:
        raise ValueError(f"a child has at least the {bits} bits of its cell, not {to_bits}")
    deeper = to_bits - bits
    return _checked(cells, bits)[..., np.newaxis] << deeper | np.arange(2**deeper)


def neighbours(cells: ArrayLike, bits: int) -> NDArray[np.int64]:
    """The eight cells around each cell: N, NE, E, SE, S, SW, W, NW; -1 beyond a pole, wrapping at the dateline.

    >>> to_text(neighbours(parse("ezs42")[0], 25), 5)
    array(['ezs48', 'ezs49', 'ezs43', 'ezs41', 'ezs40', 'ezefp', 'ezefr',
           'ezefx'], dtype='<U5')
    >>> neighbours(parse("z")[0], 5)
    array([-1, -1, 10,  8, 29, 28, 30, -1])
    """
    longitude_bits, latitude_bits = axis_bits(bits)
    columns, rows = deinterleave(cells, bits)
    around = (columns[..., np.newaxis] + _NEIGHBOUR_COLUMNS) & (2**longitude_bits - 1)
    above = rows[..., np.newaxis] + _NEIGHBOUR_ROWS
    exists = (above >= 0) & (above < 2**latitude_bits)
    return np.where(exists, interleave(around, np.where(exists, above, 0), bits), np.int64(-1))


def _checked(cells: ArrayLike, bits: int) -> NDArray[np.int64]:
    axis_bits(bits)
    known = np.asarray(cells, dtype=np.int64)
    beyond = known >> bits != 0  # also true of negative numbers
    if np.any(beyond):
        raise ValueError(f"{int(known[beyond].flat[0])} is not a cell of {bits} bits")
    return known


def _check_length(length: int, text: str) -> None:
    longest = MAXIMUM_BITS // BITS_PER_CHARACTER
    if not 1 <= length <= longest:
        raise ValueError(f"a geohash has 1 to {longest} characters, not {length}" + (f": {text!r}" if text else ""))


def _check_characters(text: str) -> None:
    for character in text:
        if character not in _KNOWN_CHARACTERS:
            raise ValueError(f"{character!r} in {text!r} is not a geohash character; they are {ALPHABET}")
