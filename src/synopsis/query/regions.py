"""Regions: shapes and geohashes joined by AND, OR and NOT, asked in the way that shapes are.

A region says of positions whether it holds them, and of closed boxes of positions whether it holds all of them, surely
none, or some. What is joined knows less of boxes than of positions: a box that lies in two shapes together, and in
neither alone, is said to be cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np

from synopsis.grid import geohash
from synopsis.query.shapes import NOWHERE, Booleans, Box, Floats, Shape

EVERYWHERE: Final = Box()


@dataclass(frozen=True, slots=True)
class Cells:
    """All positions in any of some geohashes, which are half-open cells; none of them holds another.

    >>> Cells(("s", "u0")).holds(np.array([0.0, -1.0, 46.0]), np.array([0.0, 0.0, 1.0]))
    array([ True, False,  True])
    """

    prefixes: tuple[str, ...]

    def holds(self, lat: Floats, lon: Floats) -> Booleans:
        """Whether each position lies in one of them. Cost: an encoding of all positions for each length."""
        by_length: dict[int, list[int]] = {}
        for prefix in self.prefixes:
            by_length.setdefault(len(prefix), []).append(geohash.parse(prefix)[0])
        held = np.zeros(np.broadcast(lat, lon).shape, np.bool_)
        for length, cells in by_length.items():
            held |= np.isin(geohash.encode(lat, lon, length * geohash.BITS_PER_CHARACTER), cells)
        return held

    def covers(self, south: Floats, west: Floats, north: Floats, east: Floats) -> tuple[Booleans, Booleans]:
        """Which closed boxes lie inside with every position, and which may have a position inside.

        Cost: a few comparisons for each geohash and box.
        """
        inside = touched = np.zeros(south.size, np.bool_)
        for prefix in self.prefixes:
            cell, bits = geohash.parse(prefix)
            column, row = geohash.deinterleave(np.array([cell]), bits)
            low_column, low_row = geohash.deinterleave(geohash.encode(south, west, bits), bits)
            high_column, high_row = geohash.deinterleave(geohash.encode(north, east, bits), bits)
            met = (low_column <= column) & (column <= high_column) & (low_row <= row) & (row <= high_row)
            touched = touched | met
            inside = inside | (met & (low_column == high_column) & (low_row == high_row))
        return inside, touched

    def apart(self, other: Cells) -> bool:
        """Whether no position lies in both. Cost: in proportion to the geohashes of both."""
        return not (self._hold_one_of(other) or other._hold_one_of(self))

    def _hold_one_of(self, other: Cells) -> bool:
        mine = frozenset(self.prefixes)
        return any(prefix[:length] in mine for prefix in other.prefixes for length in range(1, len(prefix) + 1))

    def share(self, south: Floats, west: Floats, north: Floats, east: Floats) -> Floats:
        """What share of the area of each closed box lies inside, 0 to 1."""
        boxes = (geohash.decode(*geohash.parse(prefix)) for prefix in self.prefixes)
        shares = (Box(*(float(edge) for edge in box)).share(south, west, north, east) for box in boxes)
        return np.asarray(np.minimum(reduce(np.add, shares, np.zeros(south.size)), 1.0))


@dataclass(frozen=True, slots=True)
class Either:
    """What lies in any of these."""

    parts: tuple[Region, ...]

    def holds(self, lat: Floats, lon: Floats) -> Booleans:
        """Whether each position does. Cost: that of all parts."""
        return _joined(np.logical_or, [part.holds(lat, lon) for part in self.parts])

    def covers(self, south: Floats, west: Floats, north: Floats, east: Floats) -> tuple[Booleans, Booleans]:
        """Which closed boxes do with every position, and which may with one."""
        inside, touched = zip(*(part.covers(south, west, north, east) for part in self.parts), strict=True)
        return _joined(np.logical_or, inside), _joined(np.logical_or, touched)

    def share(self, south: Floats, west: Floats, north: Floats, east: Floats) -> Floats:
        """About what share of the area of each closed box does: what the parts share is taken to be independent."""
        shares = [1.0 - part.share(south, west, north, east) for part in self.parts]
        return np.asarray(1.0 - reduce(np.multiply, shares))


@dataclass(frozen=True, slots=True)
class Both:
    """What lies in all of these."""

    parts: tuple[Region, ...]

    def holds(self, lat: Floats, lon: Floats) -> Booleans:
        """Whether each position does. Cost: that of all parts."""
        return _joined(np.logical_and, [part.holds(lat, lon) for part in self.parts])

    def covers(self, south: Floats, west: Floats, north: Floats, east: Floats) -> tuple[Booleans, Booleans]:
        """Which closed boxes do with every position, and which may with one."""
        inside, touched = zip(*(part.covers(south, west, north, east) for part in self.parts), strict=True)
        return _joined(np.logical_and, inside), _joined(np.logical_and, touched)

    def share(self, south: Floats, west: Floats, north: Floats, east: Floats) -> Floats:
        """About what share of the area of each closed box does."""
        return np.asarray(reduce(np.multiply, [part.share(south, west, north, east) for part in self.parts]))


@dataclass(frozen=True, slots=True)
class Outside:
    """What does not lie in a region.

    >>> Outside(Box(south=0.0)).holds(np.array([-1.0, 0.0]), np.array([0.0, 0.0]))
    array([ True, False])
    """

    region: Region

    def holds(self, lat: Floats, lon: Floats) -> Booleans:
        """Whether each position is outside."""
        return ~self.region.holds(lat, lon)

    def covers(self, south: Floats, west: Floats, north: Floats, east: Floats) -> tuple[Booleans, Booleans]:
        """Which closed boxes are outside with every position, and which may be with one."""
        inside, touched = self.region.covers(south, west, north, east)
        return ~touched, ~inside

    def share(self, south: Floats, west: Floats, north: Floats, east: Floats) -> Floats:
        """What share of the area of each closed box is outside."""
        return 1.0 - self.region.share(south, west, north, east)


Region = Shape | Cells | Either | Both | Outside


def both(parts: tuple[Region, ...]) -> Region:
    """What lies in all of these: everywhere, if there are none."""
    return parts[0] if len(parts) == 1 else Both(parts) if parts else EVERYWHERE


def either(parts: tuple[Region, ...]) -> Region:
    """What lies in any of these: nowhere, if there are none."""
    return parts[0] if len(parts) == 1 else Either(parts) if parts else NOWHERE


def outside(region: Region) -> Region:
    """What does not lie in a region.

    >>> outside(outside(Cells(("u",))))
    Cells(prefixes=('u',))
    """
    if region == EVERYWHERE:
        return NOWHERE
    return region.region if isinstance(region, Outside) else EVERYWHERE if region == NOWHERE else Outside(region)


def _joined(operation: Callable[..., Any], masks: Any) -> Booleans:
    return np.asarray(reduce(operation, masks))
