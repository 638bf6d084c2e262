"""Maps: the frame of degrees around cells, and the coasts in it."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.query.answer import CellKeys
from synopsis.query.drawing import INK, Floats, dressed

from matplotlib.axes import Axes  # isort: skip  # behind drawing, which says how to install it
from matplotlib.ticker import FuncFormatter, MaxNLocator  # isort: skip

_SAMPLES: Final = 9  # of each tenth of a degree
_ROWS_PER_DEGREE: Final = 10


def cell_edges(cells: CellKeys) -> tuple[Floats, Floats, Floats, Floats]:
    """South, west, north and east of each."""
    bits = geohash.BITS_PER_CHARACTER * len(cells[0])
    return geohash.decode(geohash.from_text(cells.texts), bits)


def map_frame(axes: Axes, edges: Sequence[Floats], *, coastlines: bool = True) -> None:
    """Degrees around what is drawn, with some room, as long as they are there, and the coasts."""
    south, west, north, east = edges[0].min(), edges[1].min(), edges[2].max(), edges[3].max()
    room = 0.04 * max(north - south, east - west)
    south, north = max(south - room, -geohash.LATITUDE_REACH), min(north + room, geohash.LATITUDE_REACH)
    west, east = max(west - room, -geohash.LONGITUDE_REACH), min(east + room, geohash.LONGITUDE_REACH)
    dressed(axes)
    axes.grid(False)
    axes.set(xlim=(west, east), ylim=(south, north))
    axes.set_aspect(1 / max(math.cos(math.radians((south + north) / 2)), 0.2), adjustable="box")
    for axis, signs in ((axes.xaxis, "WE"), (axes.yaxis, "SN")):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 3, 5, 10]))
        axis.set_major_formatter(FuncFormatter(partial(_degrees, signs=signs)))
    if coastlines:
        draw_coastlines(axes, south, west, north, east)


def shape_of(axes: Axes) -> float:
    """How high a map is that is 1 wide."""
    (west, east), (south, north) = axes.get_xlim(), axes.get_ylim()
    return float(axes.get_aspect()) * (north - south) / (east - west)


def _degrees(degrees: float, _: object = None, *, signs: str) -> str:
    """
    >>> _degrees(-12.5, signs="SN")
    '12.5°S'
    """
    rounded = round(float(degrees), 6)
    return f"{abs(rounded):g}°{signs[rounded > 0] if rounded else ''}"


def draw_coastlines(axes: Axes, south: float, west: float, north: float, east: float) -> None:
    """The coasts within a box, to a tenth of a degree; nothing without global-land-mask."""
    land = land_shares()
    if land is None:
        return
    step = max(1, int(max(north - south, east - west) * _ROWS_PER_DEGREE / 900))  # finer than a pixel is not seen
    rows = slice(max(int((90 - north) * _ROWS_PER_DEGREE) - step, 0), int((90 - south) * _ROWS_PER_DEGREE) + 1 + step)
    columns = slice(
        max(int((west + 180) * _ROWS_PER_DEGREE) - step, 0), int((east + 180) * _ROWS_PER_DEGREE) + 1 + step
    )
    latitude = 90 - (np.arange(land.shape[0]) + 0.5) / _ROWS_PER_DEGREE
    longitude = (np.arange(land.shape[1]) + 0.5) / _ROWS_PER_DEGREE - 180
    shares = land[rows, columns][::step, ::step]
    if min(shares.shape) < 2 or not shares.min() < _SAMPLES / 2 < shares.max():
        return
    lines = longitude[columns][::step], latitude[rows][::step], shares
    axes.contour(*lines, levels=[_SAMPLES / 2], colors=[INK], linewidths=0.6, zorder=3)


@cache
def land_shares() -> NDArray[np.uint8] | None:
    """Of each tenth of a degree, from the north and the west, how many of nine samples are land; None where unknown.

    Its package would hold a gigabyte; the mask is read as a stream instead, once a process: some 2 s, 7 MB to keep.
    """
    package = find_spec("global_land_mask")
    if package is None or not package.submodule_search_locations:
        return None
    place = Path(package.submodule_search_locations[0]) / "globe_combined_mask_compressed.npz"
    with zipfile.ZipFile(place) as archive, archive.open("mask.npy") as stream:
        np.lib.format.read_magic(stream)
        (rows, columns), _, _ = np.lib.format.read_array_header_1_0(stream)
        fine = columns // (360 * _ROWS_PER_DEGREE)  # 12 samples of the mask along either side
        strips = []
        for _ in range(rows // fine):
            strip = np.frombuffer(stream.read(fine * columns), np.uint8).reshape(fine, -1, fine)
            strips.append(_SAMPLES - strip[1::4, :, 1::4].sum(axis=(0, 2), dtype=np.uint8))  # it marks the sea
    return np.stack(strips)
