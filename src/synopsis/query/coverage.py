"""Coverage: what share of the cells of a scope have data, so that a mean of an empty ocean is not taken for its own."""

from __future__ import annotations

import math
from functools import reduce
from typing import Final

import numpy as np

from synopsis.grid import geohash
from synopsis.grid.cover import Box as Bounds
from synopsis.grid.cover import cover_box
from synopsis.query.binding import Plan
from synopsis.query.regions import EVERYWHERE, Both, Cells, Either, Outside, Region, both, either
from synopsis.query.relation import Relation
from synopsis.query.scoping import Scope
from synopsis.query.shapes import EARTH_KM, Box, Circle, Polygon

#: Cells that are looked at; a larger scope is looked at in coarser cells.
_MOST_CELLS: Final = 50_000

#: Bits of the cells, where places are known by their positions.
_USUAL_BITS: Final = 20

_Bounds = tuple[float, float, float, float]  #: south, west, north, east


def coverage(relation: Relation, plan: Plan) -> float:
    """The share of the cells that the scope touches which have a place with data, whatever the time.

    Cells are those of the sketch, or coarser ones where they would be too many. Cost: proportional to the cells.
    """
    region = either(tuple(dict.fromkeys(_region(part.scope) for part in plan.parts)))
    south, west, north, east = _bounds(region)
    if south > north or west > east:
        return 0.0
    bits = _bits(relation)
    area = (north - south) * (east - west) / (360.0 * 180.0)
    while bits > 1 and area * 2.0**bits > _MOST_CELLS:
        bits -= 1
    found = cover_box(Bounds(south, west, north, east), bits, limit=4 * _MOST_CELLS)
    cells = np.append(found.inner, found.border)
    touched = region.covers(*geohash.decode(cells, bits))[1]
    scoped = cells[touched]
    if not scoped.size:
        return 0.0
    return float(np.isin(scoped, _places(relation, region, bits)).mean())


def _bits(relation: Relation) -> int:
    if relation.summary is None:
        return relation.layout.bits
    return relation.summary.layout.place_bits or _USUAL_BITS


def _places(relation: Relation, region: Region, bits: int) -> np.ndarray:
    """The cells of places in the region that have data."""
    if relation.summary is None:
        known = relation.strands.cells
        touched = region.covers(*known.box)[1]
        south, west, north, east = (side[touched] for side in known.box)
        return geohash.encode((south + north) / 2, (west + east) / 2, bits)
    latitude, longitude = relation.summary.latitude, relation.summary.longitude
    held = region.holds(latitude, longitude)
    if relation.summary.layout.moving:
        own = relation.summary.layout.place_bits or _USUAL_BITS
        held = region.covers(*geohash.decode(geohash.encode(latitude, longitude, own), own))[1]
    return geohash.encode(latitude[held], longitude[held], bits)


def _region(scope: Scope) -> Region:
    cells: tuple[Region, ...] = () if scope.prefixes is None else (Cells(scope.prefixes),)
    return both((*cells, *scope.shapes))


def _bounds(region: Region) -> _Bounds:
    """A box around a region, which may be larger than it must; it never runs over the dateline."""
    whole = (EVERYWHERE.south, EVERYWHERE.west, EVERYWHERE.north, EVERYWHERE.east)
    match region:
        case Box():
            across = region.west > region.east
            return region.south, whole[1] if across else region.west, region.north, whole[3] if across else region.east
        case Polygon():
            return _bounds(region.box)
        case Circle():
            return _around(region)
        case Cells():
            boxes = [geohash.decode(*geohash.parse(prefix)) for prefix in region.prefixes]
            return reduce(_hull, [(float(s), float(w), float(n), float(e)) for s, w, n, e in boxes])
        case Either():
            return reduce(_hull, map(_bounds, region.parts))
        case Both():
            return reduce(_shared, map(_bounds, region.parts))
        case Outside():
            return whole


def _around(circle: Circle) -> _Bounds:
    reach = math.degrees(circle.km / EARTH_KM)
    south, north = max(circle.lat - reach, -90.0), min(circle.lat + reach, 90.0)
    sine = math.sin(math.radians(min(reach, 90.0))) / max(math.cos(math.radians(circle.lat)), 1e-12)
    if south <= -90.0 or north >= 90.0 or sine >= 1.0:
        return south, -180.0, north, 180.0
    width = math.degrees(math.asin(sine))
    west, east = circle.lon - width, circle.lon + width
    return (south, west, north, east) if west >= -180.0 and east <= 180.0 else (south, -180.0, north, 180.0)


def _hull(one: _Bounds, other: _Bounds) -> _Bounds:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def _shared(one: _Bounds, other: _Bounds) -> _Bounds:
    return max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])
