"""Exports: an answer as a grid for xarray, or as polygons of GeoJSON for maps.

Both read the group keys among the columns: a cell says where its row lies, a bucket when.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery
from synopsis.grid import geohash
from synopsis.query.answer import BucketKeys, CellKeys, Column
from synopsis.query.values import GUARANTEES, Values

Key = TypeVar("Key", CellKeys, BucketKeys)

#: Points that a grid may have: a year of months of the whole world by CELL(4), and some more.
_MOST_POINTS: Final = 20_000_000

_NO_ROW: Final = -1  #: stands for a guarantee where the answer has no row
_FLAGS: Final = {  # the attributes by which the CF conventions write words as numbers
    "flag_values": np.arange(len(GUARANTEES), dtype=np.int8),
    "flag_meanings": " ".join(GUARANTEES),
}


# --- a grid -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """A dimension of a grid, and where on it each row lies."""

    name: str
    size: int
    position: NDArray[np.int64]  #: rows


@dataclass(frozen=True)
class _Times(_Axis):
    """Those of the buckets that have rows, in order."""

    starts_us: NDArray[np.int64]
    timezone: str

    @classmethod
    def of(cls, keys: BucketKeys) -> _Times:
        starts_us, position = np.unique(keys.starts_us, return_inverse=True)
        return cls("time", starts_us.size, position.astype(np.int64), starts_us, keys.timezone)

    def coordinate(self) -> tuple[NDArray[Any], dict[str, str]]:
        return self.starts_us.astype("datetime64[us]"), {"long_name": f"first instant, UTC; days of {self.timezone}"}


@dataclass(frozen=True)
class _Degrees(_Axis):
    """All parts of an axis of the globe from the first with rows to the last."""

    first: int
    reach: float
    bits: int

    @classmethod
    def of(cls, name: str, index: NDArray[np.int64], reach: float, bits: int) -> _Degrees:
        first = int(index.min(initial=2**bits))
        return cls(name, max(int(index.max(initial=-1)) - first + 1, 0), index - first, first, reach, bits)

    def coordinate(self) -> tuple[NDArray[Any], dict[str, str]]:
        edges = geohash.axis_edge(np.arange(self.first, self.first + self.size + 1), self.reach, self.bits)
        axis, towards = ("latitude", "north") if self.name == "lat" else ("longitude", "east")
        words = {"standard_name": axis, "units": f"degrees_{towards}", "long_name": f"{axis} of the cell's centre"}
        return (edges[:-1] + edges[1:]) / 2, words


def to_xarray(columns: Mapping[str, Column]) -> Any:
    """A dataset over `time` and `lat` x `lon`, whichever there are keys for.

    A statistic is a variable, with `_low`, `_high`, `_guarantee` and from paths `_p95_low`, `_p95_high` beside it. All
    cells between the outermost ones are points of the grid, NaN where the answer has no row.
    """
    axes = _axes(columns)
    shape = tuple(axis.size for axis in axes)
    rows, points = axes[0].position.size, math.prod(shape)
    if points > _MOST_POINTS:
        raise BadQuery(
            f"the grid around the {rows:,} rows of this answer has {points:,} points, more than {_MOST_POINTS:,}; "
            "group by a coarser CELL, ask for a smaller region, or take answer.to_arrow()"
        )
    at = np.zeros(rows, np.int64)
    for axis in axes:
        at = at * axis.size + axis.position
    if np.unique(at).size < rows:
        raise BadQuery(
            "several rows of this answer have the same keys, and a grid holds one at each point; "
            "select all keys that GROUP BY names"
        )
    try:
        import xarray
    except ModuleNotFoundError as problem:
        remedy = "to_xarray needs xarray; run pip install 'synopsis[xarray]'"
        raise ModuleNotFoundError(remedy, name="xarray") from problem

    dimensions = tuple(axis.name for axis in axes)
    variables: dict[str, Any] = {}
    for name, numbers, nothing, words in _variables(columns):
        if name in variables or name in dimensions:
            raise BadQuery(f"two parts of the dataset would be called {name!r}; give the column another name with AS")
        grid = np.full(points, nothing, numbers.dtype if words else np.float64)
        grid[at] = numbers
        variables[name] = (dimensions, grid.reshape(shape), words)
    return xarray.Dataset(variables, {axis.name: (axis.name, *axis.coordinate()) for axis in axes})


def _axes(columns: Mapping[str, Column]) -> list[_Times | _Degrees]:
    axes: list[_Times | _Degrees] = []
    if (buckets := _first(columns, BucketKeys)) is not None:
        axes.append(_Times.of(buckets))
    if (cells := _first(columns, CellKeys)) is not None:
        bits = _bits(cells)
        longitude_bits, latitude_bits = geohash.axis_bits(bits)
        across, up = geohash.deinterleave(geohash.from_text(cells.texts), bits)
        axes.append(_Degrees.of("lat", up, geohash.LATITUDE_REACH, latitude_bits))
        axes.append(_Degrees.of("lon", across, geohash.LONGITUDE_REACH, longitude_bits))
    if not axes:
        raise BadQuery(
            "a dataset needs a cell or a bucket in each row; "
            "ask as in SELECT CELL(3), MEAN(x) GROUP BY CELL(3), or with BUCKET('1d'), or both"
        )
    return axes


def _variables(columns: Mapping[str, Column]) -> Iterator[tuple[str, NDArray[Any], float, dict[str, Any]]]:
    """Name, numbers of the rows, what stands where there is no row, and attributes of each variable."""
    for name, column in columns.items():
        if isinstance(column, Values):
            yield name, column.estimate, math.nan, {}
            yield f"{name}_low", column.low, math.nan, {}
            yield f"{name}_high", column.high, math.nan, {}
            yield f"{name}_guarantee", column.guarantee, _NO_ROW, _FLAGS
            if column.p95 is not None:
                yield f"{name}_p95_low", column.p95[:, 0], math.nan, {}
                yield f"{name}_p95_high", column.p95[:, 1], math.nan, {}


# --- polygons ---------------------------------------------------------------------------------------------------------


def to_geojson(columns: Mapping[str, Column], table: pa.Table) -> dict[str, Any]:
    """A FeatureCollection (RFC 7946): each row's cell as a polygon, counter-clockwise, with the row of the table.

    Cost: a few objects for each row. Bounds that are infinite become null, for which JSON has no number.
    """
    cells = _first(columns, CellKeys)
    if cells is None:
        raise BadQuery("GeoJSON needs a cell in each row; ask as in SELECT CELL(3), MEAN(x) GROUP BY CELL(3)")
    south, west, north, east = geohash.decode(geohash.from_text(cells.texts), _bits(cells))
    corners = ((west, south), (east, south), (east, north), (west, north), (west, south))
    rings = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "geometry": {"type": "Polygon", "coordinates": [ring]},
                "properties": {name: _plain(value) for name, value in row.items()},
            }
            for ring, row in zip(rings.tolist(), table.to_pylist(), strict=True)
        ],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- keys -------------------------------------------------------------------------------------------------------------


def _first(columns: Mapping[str, Column], kind: type[Key]) -> Key | None:
    return next((column for column in columns.values() if isinstance(column, kind)), None)


def _bits(cells: CellKeys) -> int:
    """Bits of the cells, by the length of their texts; those of an answer without rows do not matter."""
    return geohash.BITS_PER_CHARACTER * (len(cells[0]) if len(cells) else 1)
