"""Shapes: parts of the globe that a question asks for, as boxes, polygons and circles of positions.

A shape says of positions whether it holds them, and of closed boxes of positions (the tight boxes of cells) whether it
holds all of them, surely none, or some. Longitudes are numbers, as in `grid.cover`: 180 and -180 are not the same.
Boxes are closed; a polygon does not hold its boundary. Straight edges of a polygon are straight in longitude and
latitude. Shapely, which does the work for polygons, is imported when the first one is met.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from synopsis.grid.geohash import LATITUDE_REACH, LONGITUDE_REACH

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_POLYGONS: Final = ("POLYGON", "MULTIPOLYGON")
#: The mean radius of the Earth.
EARTH_KM: Final = 6371.0088
#: Angles computed in two ways differ by less, which is some millimetres on the ground.
_ROUNDING: Final = 1e-9
#: A share of a box is read off this many positions along each of its sides.
_PROBES: Final = 8


@dataclass(frozen=True, slots=True)
class Box:
    """A closed box; with west > east it runs over the dateline, with south > north it holds nothing.

    >>> Box(-20.0, 170.0, -10.0, -170.0).holds(np.array([-15.0, -15.0]), np.array([175.0, 0.0]))
    array([ True, False])
    """

    south: float = -LATITUDE_REACH
    west: float = -LONGITUDE_REACH
    north: float = LATITUDE_REACH
    east: float = LONGITUDE_REACH

    @classmethod
    def ranges(
        cls,
        south: float = -LATITUDE_REACH,
        west: float = -LONGITUDE_REACH,
        north: float = LATITUDE_REACH,
        east: float = LONGITUDE_REACH,
    ) -> Box:
        """The box of two ranges, neither of which runs over the dateline: it holds nothing where one is empty.

        >>> Box.ranges(west=20.0, east=10.0) == NOWHERE
        True
        """
        return cls(south, west, north, east) if south <= north and west <= east else NOWHERE

    def holds(self, lat: Floats, lon: Floats) -> Booleans:
        """Whether each position lies in the box. Cost: four comparisons a position."""
        along = [(lon >= west) & (lon <= east) for west, east in self._spans]
        held = (lat >= self.south) & (lat <= self.north)
        return np.asarray(held & (along[0] if len(along) == 1 else along[0] | along[1]))

    def covers(self, south: Floats, west: Floats, north: Floats, east: Floats) -> tuple[Booleans, Booleans]:
        """Which closed boxes lie inside with every position, and which may have a position inside.

        A box that is a point is inside or not touched. Cost: a few comparisons a box.
        """
        within = [(west >= first) & (east <= last) for first, last in self._spans]
        along = [(west <= last) & (east >= first) for first, last in self._spans]
        inside = (south >= self.south) & (north <= self.north) & np.logical_or.reduce(within)
        touched = (south <= self.north) & (north >= self.south) & np.logical_or.reduce(along)
        # An empty range of latitude may lie between south and north of a box, and is still empty.
        some = self.south <= self.north
        return np.asarray(inside & some), np.asarray(touched & some)

    def share(self, south: Floats, west: Floats, north: Floats, east: Floats) -> Floats:
        """What share of the area of each closed box lies inside, 0 to 1. Cost: a few operations a box."""
        along = sum(_overlap(west, east, first, last) for first, last in self._spans)
        return np.minimum(_overlap(south, north, self.south, self.north) * along, 1.0)

    @property
    def _spans(self) -> tuple[tuple[float, float], ...]:
        if self.west > self.east:
            return (self.west, LONGITUDE_REACH), (-LONGITUDE_REACH, self.east)
        return ((self.west, self.east),)


NOWHERE: Final = Box(LATITUDE_REACH, -LONGITUDE_REACH, -LATITUDE_REACH, LONGITUDE_REACH)


@dataclass(frozen=True, slots=True)
class Polygon:
    """The interior of a POLYGON or MULTIPOLYGON in well-known text, longitude first.

    >>> triangle = Polygon("POLYGON ((0 0, 10 0, 0 10, 0 0))")
    >>> triangle.holds(np.array([1.0, 9.0, 0.0]), np.array([1.0, 9.0, 5.0]))
    array([ True, False, False])
    """

    text: str

    def holds(self, lat: Floats, lon: Floats) -> Booleans:
        """Whether each position lies in the interior. Cost: about a microsecond a position, hardly more if jagged."""
        import shapely

        return np.asarray(shapely.contains_xy(_prepared(self.text), lon, lat), np.bool_)

    def covers(self, south: Floats, west: Floats, north: Floats, east: Floats) -> tuple[Booleans, Booleans]:
        """Which closed boxes lie inside with every position, and which may have a position inside.

        A box that is a point is inside or not touched. Cost: microseconds for each box that meets the polygon's own
        bounds, and a few comparisons for each other.
        """
        import shapely

        polygon = _prepared(self.text)
        least_lon, least_lat, most_lon, most_lat = polygon.bounds
        touched = (south <= most_lat) & (north >= least_lat) & (west <= most_lon) & (east >= least_lon)
        inside = np.zeros(touched.shape, np.bool_)
        points = touched & (south == north) & (west == east)
        inside[points] = touched[points] = self.holds(south[points], west[points])
        # Boxes without height or width are lines: as polygons they would be invalid.
        lines = touched & ~points & ((south == north) | (west == east))
        ends = np.stack([west[lines], south[lines], east[lines], north[lines]], axis=-1).reshape(-1, 2, 2)
        areas = touched & ~points & ~lines
        boxes = shapely.box(west[areas], south[areas], east[areas], north[areas])
        for which, geometries in ((lines, shapely.linestrings(ends)), (areas, boxes)):
            inside[which] = shapely.contains_properly(polygon, geometries)
            touched[which] = shapely.intersects(polygon, geometries)
        return inside, touched

    @property
    def box(self) -> Box:
        """The box around it."""
        west, south, east, north = _prepared(self.text).bounds
        return Box(south, west, north, east)

    def share(self, south: Floats, west: Floats, north: Floats, east: Floats) -> Floats:
        """About what share of the area of each closed box lies inside, 0 to 1, from 64 positions spread evenly.

        Cost: that of asking for so many positions.
        """
        return np.asarray(self.holds(*_spread(south, west, north, east)).mean(axis=(1, 2)))


@dataclass(frozen=True, slots=True)
class Circle:
    """All positions within so many kilometres of a centre, along great circles of a sphere; over dateline and poles.

    >>> Circle(0.0, 179.9, 50.0).holds(np.array([0.0, 0.0]), np.array([-179.9, 179.0]))
    array([ True, False])
    """

    lat: float
    lon: float
    km: float

    def holds(self, lat: Floats, lon: Floats) -> Booleans:
        """Whether each position is so near. Cost: a few sines a position."""
        return np.asarray(self._angles(lat, np.radians(lon - self.lon)) <= self._radius)

    def covers(self, south: Floats, west: Floats, north: Floats, east: Floats) -> tuple[Booleans, Booleans]:
        """Which closed boxes lie inside with every position, and which may have a position inside.

        On every parallel the nearest position of a box is that of the nearest longitude; along that meridian the cosine
        of the distance is a cosine of the latitude, whose extremes are known. Cost: some dozens of sines a box.
        """
        first, last = (west - self.lon) % 360.0, (west - self.lon) % 360.0 + (east - west)
        nearest = np.where(last >= 360.0, 0.0, np.minimum(_turned(first), _turned(last)))
        opposite = (first <= 180.0) & (last >= 180.0) | (last >= 540.0)
        farthest = np.where(opposite, 180.0, np.maximum(_turned(first), _turned(last)))
        inside = self._extreme(south, north, np.radians(farthest), far=True) <= self._radius - _ROUNDING
        touched = self._extreme(south, north, np.radians(nearest), far=False) <= self._radius + _ROUNDING
        points = (south == north) & (west == east)
        held = self.holds(south, west)
        return np.where(points, held, inside), np.where(points, held, touched)

    def share(self, south: Floats, west: Floats, north: Floats, east: Floats) -> Floats:
        """About what share of the area of each closed box lies inside, as of polygons."""
        return np.asarray(self.holds(*_spread(south, west, north, east)).mean(axis=(1, 2)))

    @property
    def _radius(self) -> float:
        return self.km / EARTH_KM

    def _angles(self, lat: Floats, turned: Floats) -> Floats:
        """The angle between the centre and positions so far turned from its meridian (the haversine formula)."""
        phi, centre = np.radians(lat), math.radians(self.lat)
        half = np.sin((phi - centre) / 2) ** 2 + math.cos(centre) * np.cos(phi) * np.sin(turned / 2) ** 2
        return np.asarray(2 * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))))

    def _extreme(self, south: Floats, north: Floats, turned: Floats, *, far: bool) -> Floats:
        """The least or the largest angle to the part of a meridian between two latitudes."""
        centre = math.radians(self.lat)
        turning = np.degrees(np.arctan2(math.sin(centre), math.cos(centre) * np.cos(turned)))
        if far:
            turning = np.where(turning > 0.0, turning - 180.0, turning + 180.0)
        inner = np.clip(turning, south, north)
        angles = np.stack([self._angles(each, turned) for each in (south, north, inner)])
        return np.asarray(angles.max(axis=0) if far else angles.min(axis=0))


def _turned(degrees: Floats) -> Floats:
    """How far an angle is from nothing, either way round: 0 to 180."""
    return np.asarray(np.abs((degrees + 180.0) % 360.0 - 180.0))


Shape = Box | Polygon | Circle
_Shape = TypeVar("_Shape")


def _spread(south: Floats, west: Floats, north: Floats, east: Floats) -> list[Floats]:
    """Positions spread evenly over boxes: latitudes and longitudes, boxes x probes x probes."""
    steps = (np.arange(_PROBES) + 0.5) / _PROBES
    lat = south[:, np.newaxis, np.newaxis] + (north - south)[:, np.newaxis, np.newaxis] * steps[:, np.newaxis]
    lon = west[:, np.newaxis, np.newaxis] + (east - west)[:, np.newaxis, np.newaxis] * steps
    return list(np.broadcast_arrays(lat, lon))


def together(shapes: Iterable[_Shape]) -> tuple[_Shape | Box, ...]:
    """The shapes with all boxes that do not run over the dateline made one.

    >>> together([Box(south=1.0), Polygon("POLYGON ((0 0, 9 0, 0 9, 0 0))"), Box(north=2.0, west=3.0)])
    (Box(south=1.0, west=3.0, north=2.0, east=180.0), Polygon(text='POLYGON ((0 0, 9 0, 0 9, 0 0))'))
    """
    found = dict.fromkeys(shapes)
    plain = [shape for shape in found if isinstance(shape, Box) and shape.west <= shape.east]
    if not plain:
        return tuple(found)
    one = Box.ranges(
        max(box.south for box in plain),
        max(box.west for box in plain),
        min(box.north for box in plain),
        min(box.east for box in plain),
    )
    return (one, *(shape for shape in found if not (isinstance(shape, Box) and shape.west <= shape.east)))


def checked(text: str) -> str:
    """The well-known text of a polygon that can be asked for, given as such or as GeoJSON; ValueError says why not.

    >>> checked("POINT (1 2)")
    Traceback (most recent call last):
    ValueError: WITHIN takes a POLYGON or MULTIPOLYGON, not a POINT
    """
    import shapely

    if text.lstrip().startswith("{"):
        text = _from_geojson(text)
    try:
        with np.errstate(all="ignore"):  # numbers that are too large are refused below
            geometry = _parsed(text)
    except shapely.errors.GEOSException as error:
        why = str(error).removeprefix("ParseException: ").strip()
        raise ValueError(
            f"this is not well-known text ({why}); write it as 'POLYGON ((2.2 48.8, 2.4 48.8, 2.3 48.9, 2.2 48.8))'"
        ) from None
    kind = geometry.geom_type.upper()
    if kind not in _POLYGONS:
        raise ValueError(f"WITHIN takes a POLYGON or MULTIPOLYGON, not a {kind}")
    if geometry.is_empty:
        raise ValueError("this polygon is empty; give it at least three corners")
    west, south, east, north = geometry.bounds
    if not (abs(south) <= LATITUDE_REACH and abs(north) <= LATITUDE_REACH):
        worst = south if abs(south) > LATITUDE_REACH else north
        raise ValueError(f"latitude must lie in -90..90, found {worst:g}; well-known text has longitude first")
    if not (abs(west) <= LONGITUDE_REACH and abs(east) <= LONGITUDE_REACH):
        worst = west if abs(west) > LONGITUDE_REACH else east
        raise ValueError(
            f"longitude must lie in -180..180, found {worst:g}; over the dateline goes a MULTIPOLYGON of both sides"
        )
    if not shapely.is_valid(geometry):
        raise ValueError(f"this polygon is not a valid one: {shapely.is_valid_reason(geometry)}")
    return text


def _from_geojson(text: str) -> str:
    """The well-known text of a geometry, of a feature, or of a collection of one feature in GeoJSON."""
    import shapely

    try:
        plain = json.loads(text)
        while isinstance(plain, dict) and plain.get("type") in ("Feature", "FeatureCollection"):
            features = plain.get("features", [plain])
            if len(features) != 1:
                raise ValueError(f"a collection of {len(features)} features; give one, with a MultiPolygon for several")
            plain = features[0]["geometry"]
        geometry = shapely.from_geojson(json.dumps(plain))
    except (shapely.errors.GEOSException, KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"this is not GeoJSON of a polygon ({type(error).__name__}); write it as "
            '\'{"type": "Polygon", "coordinates": [[[2.2, 48.8], [2.4, 48.8], [2.3, 48.9], [2.2, 48.8]]]}\''
        ) from None
    if geometry is None:
        raise ValueError("this GeoJSON has no geometry")
    return str(shapely.to_wkt(geometry, rounding_precision=-1))


@lru_cache(maxsize=16)
def _parsed(text: str) -> Any:
    """The geometry of a well-known text, which is checked and then used."""
    import shapely

    return shapely.from_wkt(text)


@lru_cache(maxsize=256)
def _prepared(text: str) -> Any:
    """The polygon, indexed for many questions."""
    import shapely

    polygon = _parsed(text)
    shapely.prepare(polygon)
    # Indexes are built at first use, which is not safe for two threads at a time: use them before anyone else does.
    inner = shapely.point_on_surface(polygon)
    shapely.contains_xy(polygon, inner.x, inner.y)
    west, south, east, north = polygon.bounds
    shapely.intersects(polygon, shapely.box(west - 1.0, south - 1.0, east + 1.0, north + 1.0))
    return polygon


def _overlap(low: Floats, high: Floats, asked_low: float, asked_high: float) -> Floats:
    """How much of low..high lies in the range asked for; a range without width lies in it whole or not at all."""
    width = high - low
    shared = np.clip(np.minimum(high, asked_high) - np.maximum(low, asked_low), 0.0, None)
    held = ((low >= asked_low) & (low <= asked_high)).astype(np.float64)
    return np.where(width > 0, shared / np.where(width > 0, width, 1.0), held)
