"""Covers: which cells lie inside a box, and which are only cut by it.

A query over a box takes what is stored for the inner cells as it stands and needs to look closer only at the border. A
box is closed on all sides and counts longitudes as numbers: 180 and -180 are one meridian on the globe, yet a box whose
east is 180 does not hold a position written as -180. A box whose west exceeds its east crosses the dateline.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synopsis.grid.geohash import LATITUDE_REACH, LONGITUDE_REACH, axis_bits, axis_edge, axis_index, interleave

INSIDE: Final = 2
CUT: Final = 1
DISJOINT: Final = 0


@dataclass(frozen=True, slots=True)
class Box:
    """A closed box of positions; with west > east it runs over the dateline.

    >>> Box(-20.0, 170.0, -10.0, -170.0).spans
    ((170.0, 180.0), (-180.0, -170.0))
    """

    south: float
    west: float
    north: float
    east: float

    def __post_init__(self) -> None:
        for name, degrees, reach in (
            ("south", self.south, LATITUDE_REACH),
            ("west", self.west, LONGITUDE_REACH),
            ("north", self.north, LATITUDE_REACH),
            ("east", self.east, LONGITUDE_REACH),
        ):
            if not -reach <= degrees <= reach:
                raise ValueError(f"{name} of a box must lie in {-reach:g}..{reach:g}, found {degrees:g}")
        if self.south > self.north:
            raise ValueError(f"south of a box must not exceed its north, found {self.south:g} and {self.north:g}")

    @property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """The closed ranges of longitude, (west, east) each: two of them across the dateline, else one."""
        if self.west > self.east:
            return (self.west, LONGITUDE_REACH), (-LONGITUDE_REACH, self.east)
        return ((self.west, self.east),)


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """Cells that hold a box: `inner` lie wholly inside it, `border` reach into it and out of it. Both are sorted."""

    inner: NDArray[np.int64]
    border: NDArray[np.int64]


def cover_box(box: Box, bits: int, limit: int = 1_000_000) -> Cover:
    """All cells of `bits` bits that share a position with the box.

    >>> cover_box(Box(0.0, 0.0, 45.0, 50.0), 5)
    Cover(inner=array([24]), border=array([25, 26, 27]))
    """
    longitude_bits, latitude_bits = axis_bits(bits)
    rows = _reached(box.south, box.north, LATITUDE_REACH, latitude_bits)
    spans = [_reached(west, east, LONGITUDE_REACH, longitude_bits) for west, east in box.spans]
    needed = len(rows) * sum(len(columns) for columns in spans)
    if needed > limit:
        raise ValueError(
            f"covering this box with cells of {bits} bits takes {needed:,} cells, more than {limit:,}: use fewer bits"
        )
    row_index, row_inside = _inside(rows, box.south, box.north, LATITUDE_REACH, latitude_bits)
    parts = [
        _inside(columns, west, east, LONGITUDE_REACH, longitude_bits)
        for columns, (west, east) in zip(spans, box.spans, strict=True)
    ]
    # A box that runs almost all the way round may end in the column where it began: name that column once.
    column_index, first_seen = np.unique(np.concatenate([index for index, _ in parts]), return_index=True)
    column_inside = np.concatenate([inside for _, inside in parts])[first_seen]
    cells = interleave(column_index, row_index[:, np.newaxis], bits)
    inside = row_inside[:, np.newaxis] & column_inside
    return Cover(np.sort(cells[inside]), np.sort(cells[~inside]))


def relation(
    box_south: ArrayLike, box_west: ArrayLike, box_north: ArrayLike, box_east: ArrayLike, query: Box
) -> NDArray[np.int8]:
    """How tight closed boxes of positions lie to a query: 2 wholly inside, 1 cut, 0 disjoint.

    The boxes never cross the dateline themselves. One with NaN edges holds nothing, so it is disjoint from everything.

    >>> relation([0.0, 0.0, 50.0], [5.0, 9.0, 5.0], [1.0, 1.0, 60.0], [6.0, 11.0, 6.0], Box(0.0, 0.0, 10.0, 10.0))
    array([2, 1, 0], dtype=int8)
    """
    edges = (box_south, box_west, box_north, box_east)
    south, west, north, east = (np.asarray(edge, dtype=np.float64) for edge in edges)
    along = [(west <= span_east) & (east >= span_west) for span_west, span_east in query.spans]
    within = [(west >= span_west) & (east <= span_east) for span_west, span_east in query.spans]
    touches = (south <= query.north) & (north >= query.south) & np.logical_or.reduce(along)
    inside = (south >= query.south) & (north <= query.north) & np.logical_or.reduce(within)
    return np.where(inside, np.int8(INSIDE), np.where(touches, np.int8(CUT), np.int8(DISJOINT)))


def _reached(low: float, high: float, reach: float, bits: int) -> range:
    """The parts of an axis that hold a position of the closed range low..high."""
    first, last = axis_index([low, high], reach, bits)
    return range(int(first), int(last) + 1)


def _inside(
    parts: range, low: float, high: float, reach: float, bits: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Those parts as an array, and which of them lie wholly in low..high."""
    index = np.arange(parts.start, parts.stop, dtype=np.int64)
    return index, (axis_edge(index, reach, bits) >= low) & (axis_edge(index + 1, reach, bits) <= high)
