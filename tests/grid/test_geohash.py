"""Cells agree with pygeohash, and with halving done by hand where floats lie within an ulp of a boundary."""

import math

import numpy as np
import pygeohash
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.grid import geohash

latitudes = st.floats(-90.0, 90.0)
longitudes = st.floats(-180.0, 180.0)
bit_counts = st.integers(1, geohash.MAXIMUM_BITS)
lengths = st.integers(1, 12)


@st.composite
def beside_a_boundary(draw: st.DrawFn, reach: float) -> float:
    """A value on an edge of some cell, or up to two floats away from it."""
    bits = draw(st.integers(0, 30))
    value = draw(st.integers(0, 2**bits)) * (2 * reach / 2**bits) - reach
    for _ in range(draw(st.integers(0, 2))):
        value = math.nextafter(value, draw(st.sampled_from([-reach, reach])))
    return value


@st.composite
def cells_with_bits(draw: st.DrawFn) -> tuple[int, int]:
    bits = draw(bit_counts)
    return draw(st.integers(0, 2**bits - 1)), bits


def halve(latitude: float, longitude: float, bits: int) -> int:
    """The definition: halve the axes in turn, longitude first; the midpoint belongs to the upper half."""
    bounds = {"longitude": (-180.0, 180.0), "latitude": (-90.0, 90.0)}
    cell = 0
    for turn in range(bits):
        axis, value = ("longitude", longitude) if turn % 2 == 0 else ("latitude", latitude)
        low, high = bounds[axis]
        middle = (low + high) / 2
        cell = cell << 1 | (value >= middle)
        bounds[axis] = (middle, high) if value >= middle else (low, middle)
    return cell


def test_a_column_of_positions_encodes_as_pygeohash_does() -> None:
    random = np.random.default_rng(1)
    latitude, longitude = random.uniform(-90, 90, 3_000), random.uniform(-180, 180, 3_000)
    for length in range(1, 13):
        ours = geohash.to_text(geohash.encode(latitude, longitude, 5 * length), length)
        theirs = [pygeohash.encode(y, x, length) for y, x in zip(latitude.tolist(), longitude.tolist(), strict=True)]
        assert ours.tolist() == theirs


@given(latitudes, longitudes, bit_counts)
def test_encoding_is_repeated_halving(latitude: float, longitude: float, bits: int) -> None:
    assert geohash.encode(latitude, longitude, bits) == halve(latitude, longitude, bits)


@given(beside_a_boundary(90.0), beside_a_boundary(180.0), bit_counts)
def test_encoding_is_repeated_halving_within_an_ulp_of_a_boundary(latitude: float, longitude: float, bits: int) -> None:
    assert geohash.encode(latitude, longitude, bits) == halve(latitude, longitude, bits)


@pytest.mark.parametrize("tiny", [-1e-17, -5e-324, -0.0, 5e-324, 1e-17])
def test_a_value_that_vanishes_beside_180_still_falls_on_its_own_side_of_zero(tiny: float) -> None:
    assert geohash.encode(tiny, tiny, 2) == (0b00 if tiny < 0 else 0b11)
    assert geohash.encode(tiny, tiny, 60) == halve(tiny, tiny, 60)


def test_a_point_on_the_dateline_belongs_to_the_column_of_its_sign() -> None:
    columns, _ = geohash.deinterleave(geohash.encode([0.0, 0.0], [180.0, -180.0], 20), 20)
    assert columns.tolist() == [2**10 - 1, 0]


def test_a_point_on_the_pole_belongs_to_the_last_row() -> None:
    _, rows = geohash.deinterleave(geohash.encode([90.0, -90.0], [0.0, 0.0], 20), 20)
    assert rows.tolist() == [2**10 - 1, 0]


@pytest.mark.parametrize(
    ("latitude", "longitude", "complaint"),
    [
        (90.1, 0.0, r"latitude must lie in -90\.\.90, found 90\.1"),
        (0.0, -180.5, r"longitude must lie in -180\.\.180, found -180\.5"),
        (math.nan, 0.0, "latitude .* found nan"),
        (0.0, math.inf, "longitude .* found inf"),
    ],
)
def test_a_position_off_the_globe_is_refused(latitude: float, longitude: float, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        geohash.encode([0.0, latitude], [0.0, longitude], 25)


@pytest.mark.parametrize("bits", [0, 61, -3])
def test_a_cell_has_one_to_sixty_bits(bits: int) -> None:
    with pytest.raises(ValueError, match="1 to 60 bits"):
        geohash.encode(0.0, 0.0, bits)


@given(latitudes | beside_a_boundary(90.0), longitudes | beside_a_boundary(180.0), bit_counts)
def test_a_position_lies_in_its_cell(latitude: float, longitude: float, bits: int) -> None:
    south, west, north, east = geohash.decode(geohash.encode(latitude, longitude, bits), bits)
    assert south <= latitude < north or latitude == north == 90.0
    assert west <= longitude < east or longitude == east == 180.0


@given(cells_with_bits())
def test_the_corner_of_a_cell_encodes_to_the_cell(cell_with_bits: tuple[int, int]) -> None:
    cell, bits = cell_with_bits
    south, west, _, _ = geohash.decode(cell, bits)
    assert geohash.encode(south, west, bits) == cell


@given(lengths, st.data())
def test_decoding_agrees_with_pygeohash(length: int, data: st.DataObject) -> None:
    cell = data.draw(st.integers(0, 32**length - 1))
    theirs = pygeohash.get_bounding_box(str(geohash.to_text(cell, length)))
    ours = [float(edge) for edge in geohash.decode(cell, 5 * length)]
    assert ours == [theirs.min_lat, theirs.min_lon, theirs.max_lat, theirs.max_lon]


@pytest.mark.parametrize(("bits", "split"), [(1, (1, 0)), (2, (1, 1)), (5, (3, 2)), (59, (30, 29)), (60, (30, 30))])
def test_longitude_takes_the_odd_bit(bits: int, split: tuple[int, int]) -> None:
    assert geohash.axis_bits(bits) == split


@given(st.integers(0, 2**32 - 1))
def test_spreading_puts_every_bit_at_twice_its_place(number: int) -> None:
    assert int(geohash.spread(number)) == sum((number >> place & 1) << 2 * place for place in range(32))


@given(st.integers(0, 2**62 - 1))
def test_squeezing_keeps_the_even_places(number: int) -> None:
    assert int(geohash.squeeze(number)) == sum((number >> 2 * place & 1) << place for place in range(32))


@given(cells_with_bits())
def test_columns_and_rows_make_the_cell_again(cell_with_bits: tuple[int, int]) -> None:
    cell, bits = cell_with_bits
    assert geohash.interleave(*geohash.deinterleave(cell, bits), bits) == cell


@given(lengths, st.data())
def test_text_comes_back_as_the_same_cells(length: int, data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.integers(0, 32**length - 1)))
    texts = geohash.to_text(np.array(cells, dtype=np.int64), length)
    assert geohash.from_text(texts).tolist() == cells
    assert geohash.from_text([text.upper() for text in texts.tolist()]).tolist() == cells
    assert [geohash.parse(text) for text in texts.tolist()] == [(cell, 5 * length) for cell in cells]


def test_text_may_come_in_any_shape_and_byte_order() -> None:
    texts = np.array([["ezs42", "u4pru"], ["6gkzx", "zzzzz"]])
    cells = geohash.from_text(texts)
    assert cells.shape == (2, 2)
    assert geohash.from_text(texts.astype(">U7")[:, ::-1]).tolist() == cells[:, ::-1].tolist()


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("ezs4a", "'a'"),
        ("Lima", "'L'"),
        ("u4 p", "' '"),
        ("u4é", "'é'"),
        ("u4\u212a", "'\u212a'"),
        ("u4\0", r"'\\x00'"),
    ],
)
def test_a_bad_character_is_named_together_with_its_text(text: str, culprit: str) -> None:
    with pytest.raises(ValueError, match=f"^{culprit} in .* is not a geohash character") as raised:
        geohash.parse(text)
    assert repr(text) in str(raised.value)


@pytest.mark.parametrize("culprit", ["o", "\u0165", " ", "\u212a"])  # U+0165 ends in the seven bits of "e"
def test_a_bad_character_in_a_column_is_named_together_with_its_text(culprit: str) -> None:
    with pytest.raises(ValueError, match=f"'{culprit}' in 'e{culprit}z' is not a geohash character"):
        geohash.from_text(["ezs", f"e{culprit}z", "eza"])


@pytest.mark.parametrize("text", ["", "0123456789bcd"])
def test_a_text_has_one_to_twelve_characters(text: str) -> None:
    with pytest.raises(ValueError, match="1 to 12 characters"):
        geohash.parse(text)


def test_texts_of_different_lengths_are_refused_as_a_column() -> None:
    with pytest.raises(ValueError, match="one length expected, found lengths 2 to 5"):
        geohash.from_text(["ezs", "ez", "ezs42"])


def test_an_empty_column_stays_empty() -> None:
    nothing = np.array([], dtype=np.int64)
    assert geohash.encode([], [], 25).shape == (0,)
    assert geohash.to_text(nothing, 5).shape == (0,)
    assert geohash.from_text([]).shape == (0,)
    assert geohash.children(nothing, 5, 7).shape == (0, 4)
    assert geohash.neighbours(nothing, 5).shape == (0, 8)


@given(latitudes, longitudes, bit_counts, bit_counts)
def test_the_parent_of_a_position_s_cell_is_the_position_s_larger_cell(
    latitude: float, longitude: float, one: int, other: int
) -> None:
    fine, coarse = max(one, other), min(one, other)
    parent = geohash.parents(geohash.encode(latitude, longitude, fine), fine, coarse)
    assert parent == geohash.encode(latitude, longitude, coarse)


@given(st.integers(1, 50), st.integers(0, 8), st.data())
def test_children_are_all_cells_that_have_the_parent(bits: int, deeper: int, data: st.DataObject) -> None:
    cell = data.draw(st.integers(0, 2**bits - 1))
    children = geohash.children([cell], bits, bits + deeper)
    assert children.shape == (1, 2**deeper)
    assert len(set(children[0].tolist())) == 2**deeper
    assert set(geohash.parents(children, bits + deeper, bits).ravel().tolist()) == {cell}


def test_parents_are_larger_and_children_smaller() -> None:
    with pytest.raises(ValueError, match="at most the 10 bits"):
        geohash.parents([1], 10, 11)
    with pytest.raises(ValueError, match="at least the 10 bits"):
        geohash.children([1], 10, 9)


@pytest.mark.parametrize("cell", [32, -1])
def test_a_number_that_is_no_cell_is_refused(cell: int) -> None:
    with pytest.raises(ValueError, match=f"{cell} is not a cell of 5 bits"):
        geohash.neighbours([3, cell], 5)


STEPS = tuple(
    words.split()
    for words in ("top", "top right", "right", "bottom right", "bottom", "bottom left", "left", "top left")
)


def walk(text: str, steps: list[str]) -> int:
    """The cell that pygeohash reaches, -1 beyond a pole."""
    for step in steps:
        try:
            text = pygeohash.get_adjacent(text, step)  # type: ignore[arg-type]
        except ValueError:
            return -1
    return geohash.parse(text)[0]


def test_neighbours_of_all_two_character_cells_agree_with_pygeohash() -> None:
    cells = np.arange(32**2)
    texts = geohash.to_text(cells, 2).tolist()
    assert geohash.neighbours(cells, 10).tolist() == [[walk(text, steps) for steps in STEPS] for text in texts]


@given(lengths, st.data())
def test_neighbours_agree_with_pygeohash(length: int, data: st.DataObject) -> None:
    cell = data.draw(st.integers(0, 32**length - 1))
    text = str(geohash.to_text(cell, length))
    assert geohash.neighbours(cell, 5 * length).tolist() == [walk(text, steps) for steps in STEPS]


@given(cells_with_bits())
def test_a_neighbour_to_the_east_has_the_cell_to_its_west(cell_with_bits: tuple[int, int]) -> None:
    cell, bits = cell_with_bits
    east, west = geohash.neighbours(cell, bits)[[2, 6]]
    assert geohash.neighbours(east, bits)[6] == cell
    assert geohash.neighbours(west, bits)[2] == cell


def test_positions_lie_within_cells_as_their_own_cells_tell():
    random = np.random.default_rng(3)
    edges = np.arange(-180.0, 180.1, 1.40625)
    latitude = np.concatenate(
        (random.uniform(-90, 90, 2_000), random.choice(edges[np.abs(edges) <= 90], 2_000), [90.0])
    )
    longitude = np.concatenate((random.uniform(-180, 180, 2_000), random.choice(edges, 2_000), [180.0]))
    for length in (1, 2, 3):
        own = geohash.to_text(geohash.encode(latitude, longitude, 5 * length), length)
        for texts in (own[-1:], own[:1], own[2_000:2_004], own[:12], own[-12:]):
            found = geohash.within([str(text) for text in texts], latitude, longitude)
            np.testing.assert_array_equal(found, np.isin(own, texts))


@given(st.text(geohash.ALPHABET, min_size=1, max_size=12))
def test_the_box_of_a_single_cell_is_that_of_an_array_of_them(text: str) -> None:
    assert geohash._box(text) == tuple(float(edge) for edge in geohash.decode(*geohash.parse(text)))
