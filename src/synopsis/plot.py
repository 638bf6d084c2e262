"""Plots: the two charts of the paper, drawn from a sketch alone: the climate of a place, and contours over a region.

Both are matplotlib figures. What the sketch took and what the drawing took are kept apart, as `synopsis_seconds` of the
figure: the one is ours, the other matplotlib's.
"""

from __future__ import annotations

import calendar
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery, UnknownFeature
from synopsis.grid import geohash
from synopsis.query.answer import Answer, BucketKeys, CellKeys
from synopsis.query.drawing import (
    BLUE,
    INK,
    PALE,
    SKY,
    THICK,
    THIN,
    VERMILION,
    Drawn,
    Floats,
    caption,
    colour_bar,
    colours_of,
    dressed,
    headline,
    new_figure,
    whiskers,
    widths,
    words,
)
from synopsis.query.maps import cell_edges, land_shares, map_frame, shape_of
from synopsis.query.naming import find
from synopsis.query.values import Values
from synopsis.sketches import Sketch

from matplotlib.figure import Figure  # isort: skip  # behind drawing, which says how to install it
from matplotlib.lines import Line2D  # isort: skip
from matplotlib.patches import Patch  # isort: skip
from matplotlib.patheffects import withStroke  # isort: skip
from matplotlib.ticker import MaxNLocator  # isort: skip
from matplotlib.tri import CubicTriInterpolator, TriAnalyzer, Triangulation, UniformTriRefiner  # isort: skip

#: Units by how the name of a feature ends.
UNITS: Final = {
    "c": "°C",
    "k": "K",
    "mm": "mm",
    "ms": "m/s",
    "hpa": "hPa",
    "mb": "mb",
    "pa": "Pa",
    "km": "km",
    "m": "m",
    "s": "s",
    "pct": "%",
    "percent": "%",
    "kjm2": "kJ/m²",
    "wm2": "W/m²",
}

_MOST_KM: Final = 800.0  # from a position to the nearest cell with data
_CELL_OF_PLACE: Final = 4  # characters: some 39 x 20 km
_FAR: Final = 3  # cells, or usual distances between cells, over which no contour is drawn
_MOST_CELLS: Final = (0.02, 0.98)  # quantiles that colours reach to: a cell with few rows may lie anywhere
_ASIDE: Final = 0.1  # of a month, so that whiskers over each other are seen
_STEPS: Final = (1, 2, 5, 10)
_BARS: Final = 3.2  # how much higher the chart is than the highest bar
_EARTH_KM: Final = 6371.0088
_GEOHASH: Final = re.compile(rf"[{geohash.ALPHABET}]{{1,12}}", re.IGNORECASE)
_OF_FEATURE: Final = re.compile(
    r"\s*(SUM|MEAN|AVG|STD|STDDEV_SAMP|MIN|MAX|MEDIAN|QUANTILE)\s*\(\s*(\"(?:[^\"]|\"\")+\"|[^\s,()]+)[^()]*\)\s*", re.I
)


class Seconds(NamedTuple):
    """What a plot took."""

    data: float  #: asking the sketch
    rendering: float  #: drawing, with the files; without reading the land mask, once a process


# --- the climate of a place -------------------------------------------------------------------------------------------


def climate(
    db: Sketch,
    place: str | tuple[float, float],
    year: int,
    temperature: str = "temp_c",
    precipitation: str | None = None,
    to: str | os.PathLike[str] | None = None,
    *,
    units: Mapping[str, str] | None = None,
    title: str | None = None,
) -> Figure:
    """High, low and mean temperature by month, and the sum of precipitation, at a place in a year.

    The place is a geohash, a condition as in WHERE, or a latitude and longitude, which mean the nearest cell with data.
    Whiskers are intervals. The sum is that of all rows, hence of all stations of the place. `to` names a file, by whose
    suffix it is PNG, SVG or what else matplotlib writes; without a suffix it is both PNG and SVG. `units` names them by
    feature, where the names of the features do not tell. Cost: one question by month, a few more to find the nearest
    cell, and some 0.2 s of drawing.
    """
    begun = time.perf_counter()
    features = [_feature(db, name) for name in (temperature, precipitation) if name is not None]
    in_year, (where, called) = _within(year), _where(db, place, year)
    statistics = [f"{each}({_quoted(features[0])}) AS {each}" for each in ("MAX", "MIN", "MEAN")]
    statistics += [f"SUM({_quoted(name)}) AS SUM" for name in features[1:]]
    answer = _asked(
        db,
        f"SELECT BUCKET('1mo') AS month, {', '.join(statistics)} WHERE ({where}) AND {in_year} "
        "GROUP BY BUCKET('1mo') ORDER BY month",
        strict=True,  # years would be drawn as if they were months
    )
    if len(answer) == 0:
        raise _nothing_there(db, where, called, year)
    months = answer.column("month")
    assert isinstance(months, BucketKeys)
    at = np.array([months[row].month for row in range(len(months))], np.float64)
    high, low, mean, *rain = (_drawn(answer, name) for name in ("MAX", "MIN", "MEAN", "SUM")[: len(statistics)])
    if np.isnan(mean.estimate).all():
        raise BadQuery(f"no row of {called} in {year} has {features[0]}; name another feature as temperature")
    data = time.perf_counter() - begun

    begun = time.perf_counter()
    figure = new_figure((7.0, 4.0))
    axes = figure.subplots()
    dressed(axes)
    shown = ((high, VERMILION, "high", -_ASIDE), (mean, INK, "mean", 0.0), (low, BLUE, "low", _ASIDE))
    for each, colour, label, aside in shown:
        axes.plot(*_with_gaps(at, each.estimate), "o-", color=colour, linewidth=1.6, markersize=4, label=label)
        whiskers(axes, at + aside, each, colour)
    (every, bottom), (_, top) = (_with_gaps(at, each.estimate) for each in (low, high))
    axes.fill_between(every, bottom, top, color=VERMILION, alpha=0.1, linewidth=0)
    axes.set_ylabel(words(_labelled(features[0], units)))
    handles, _ = axes.get_legend_handles_labels()
    handles += _whisker_handles((high, mean, low), rain)
    if rain:
        handles.append(_bars(axes, at, rain[0], words(f"sum of {_labelled(features[1], units)}")))
    axes.set_xlim(0.4, 12.6)
    axes.set_xticks(range(1, 13), calendar.month_abbr[1:])
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
    headline(figure, f"{called}, {year}" if title is None else title)
    return _finished(figure, to, data, begun)


def _bars(axes: Any, at: Floats, rain: Drawn, label: str) -> Patch:
    """Sums on an axis of their own, below the temperatures; of their intervals those at 95%."""
    beside = axes.twinx()
    dressed(beside, sides=("right",))
    beside.grid(False)
    beside.bar(at, rain.estimate, 0.6, color=SKY, alpha=0.6)
    likely = Drawn(rain.name, rain.estimate, np.full_like(rain.likely, np.nan), rain.likely)
    whiskers(beside, at, likely, BLUE)
    tallest = np.nanmax(np.concatenate((rain.estimate, rain.likely[1])), initial=0.0)
    beside.set_ylim(0, _BARS * tallest if tallest > 0 else 1.0)
    low, high = axes.get_ylim()
    axes.set_ylim(low - (high - low) / (_BARS - 1), high)
    axes.set_yticks([tick for tick in MaxNLocator(7, steps=_STEPS).tick_values(low, high) if low <= tick <= high])
    beside.set_yticks(
        [tick for tick in MaxNLocator(4, steps=_STEPS).tick_values(0, tallest) if 0 <= tick <= 1.2 * tallest]
    )
    beside.set_ylabel(label, loc="bottom")
    axes.set_zorder(beside.get_zorder() + 1)
    axes.patch.set_visible(False)
    return Patch(color=SKY, alpha=0.6, label=label)


def _whisker_handles(temperatures: Sequence[Drawn], rain: Sequence[Drawn]) -> list[Any]:
    certain, likely = [each.certain for each in temperatures], [each.likely for each in (*temperatures, *rain)]
    return [
        Line2D([], [], color=INK, alpha=0.6, linewidth=width, label=label)
        for label, intervals, width in (("certain", certain, THIN), ("95%", likely, THICK))
        if any((high > low).any() for low, high in intervals)
    ]


def _with_gaps(at: Floats, numbers: Floats) -> tuple[Floats, Floats]:
    """All twelve months, NaN for those without a row."""
    year = np.full(12, np.nan)
    year[at.astype(np.int64) - 1] = numbers
    return np.arange(1.0, 13.0), year


def _where(db: Sketch, place: str | tuple[float, float], year: int) -> tuple[str, str]:
    """The condition of a place, and what to call it."""
    if isinstance(place, str):
        if not place.strip():
            raise BadQuery("the place is empty; name a geohash such as '6gy', a condition, or (latitude, longitude)")
        if _GEOHASH.fullmatch(place.strip()):
            return f"location LIKE '{place.strip().lower()}%'", place.strip().lower()
        return place, place
    try:
        latitude, longitude = (float(degrees) for degrees in place)
    except (TypeError, ValueError) as problem:
        raise BadQuery(f"a place is a text, or a latitude and a longitude, not {place!r}") from problem
    cell = _nearest(db, latitude, longitude, year)
    return f"location LIKE '{cell}%'", f"{cell} (nearest to {latitude:g}, {longitude:g})"


def _nearest(db: Sketch, latitude: float, longitude: float, year: int) -> str:
    """The cell with data whose centre is nearest, in circles that grow."""
    if not (abs(latitude) <= geohash.LATITUDE_REACH and abs(longitude) <= geohash.LONGITUDE_REACH):
        raise BadQuery(f"no place is at latitude {latitude:g} and longitude {longitude:g}; the latitude comes first")
    reach_km = 50.0
    while reach_km <= _MOST_KM:
        found = _asked(
            db,
            f"SELECT CELL({_CELL_OF_PLACE}) AS cell, COUNT(*) AS n WHERE NEAR({latitude}, {longitude}, {reach_km}) "
            f"AND {_within(year)} GROUP BY CELL({_CELL_OF_PLACE})",
        )
        cells, counts = found.column("cell"), _drawn(found, "n").estimate
        assert isinstance(cells, CellKeys)
        if (counts > 0).any():
            known = CellKeys(cells.texts[counts > 0])
            south, west, north, east = cell_edges(known)
            away = _away_km(latitude, longitude, (south + north) / 2, (west + east) / 2)
            return known[int(np.argmin(away))]
        reach_km *= 2
    raise BadQuery(
        f"no data of {year} within {_MOST_KM:g} km of {latitude:g}, {longitude:g}; name another place or year"
    )


def _away_km(latitude: float, longitude: float, latitudes: Floats, longitudes: Floats) -> Floats:
    """Along great circles, by haversines."""
    up, across = np.radians(latitudes - latitude), np.radians(longitudes - longitude)
    half = (
        np.sin(up / 2) ** 2 + math.cos(math.radians(latitude)) * np.cos(np.radians(latitudes)) * np.sin(across / 2) ** 2
    )
    return np.asarray(2 * _EARTH_KM * np.arcsin(np.sqrt(half)))


def _within(year: object) -> str:
    if not (isinstance(year, int | np.integer) and 1 <= year <= 9998):
        raise BadQuery(f"year is a whole number such as 2025, not {year!r}")
    return f"time >= '{year:04d}-01-01' AND time < '{year + 1:04d}-01-01'"


def _nothing_there(db: Sketch, where: str, called: str, year: int) -> BadQuery:
    """Why there is no month to draw: no place, or another year."""
    found = _asked(db, f"SELECT BUCKET('1y') AS year, COUNT(*) WHERE {where} GROUP BY BUCKET('1y') ORDER BY year")
    years = found.column("year")
    if len(found) == 0:
        return BadQuery(f"this sketch has no rows at {called}; name another place")
    assert isinstance(years, BucketKeys)
    first, last = years[0].year, years[len(years) - 1].year
    return BadQuery(f"no rows at {called} in {year}; there are some from {first} to {last}")


# --- contours over a region -------------------------------------------------------------------------------------------


def map(
    db: Sketch,
    statistic: str,
    colour: str | None = None,
    where: str | None = None,
    cell: int = 3,
    to: str | os.PathLike[str] | None = None,
    *,
    units: Mapping[str, str] | None = None,
    title: str | None = None,
    coastlines: bool = True,
) -> Figure:
    """Contours of one statistic over the centres of cells, as lines on the colours of another.

    `map(db, "MEAN(cloud)", "CORRELATION(cloud, precip_mm)")`; without a second, the colours are those of the first.
    Nothing is drawn far from data. Of intervals the picture says how wide they are. `to` and `units` are as for
    `climate`. Cost: one question by cell; then some 0.5 s of drawing, and 2 s more for the coastlines of a process's
    first map.
    """
    begun = time.perf_counter()
    asked = [statistic] if colour is None else [statistic, colour]
    columns = ", ".join(f"{text} AS {name}" for text, name in zip(asked, ("lines", "colours"), strict=False))
    scope = "" if where is None else f" WHERE {where}"
    answer = _asked(db, f"SELECT CELL({cell}) AS cell, {columns}{scope} GROUP BY CELL({cell})")
    cells = answer.column("cell")
    assert isinstance(cells, CellKeys)
    if len(answer) == 0:
        raise BadQuery("this sketch has no rows there; ask for another region or time" if where else "no rows, no map")
    lines = _drawn(answer, "lines", statistic)
    coloured = lines if colour is None else _drawn(answer, "colours", colour)
    edges = cell_edges(cells)
    triangles, known = _triangles(edges, lines, coloured)
    data = time.perf_counter() - begun
    if coastlines:
        land_shares()

    begun = time.perf_counter()
    figure = new_figure((7.0, 6.0))
    axes = figure.subplots()
    ends = np.quantile(coloured.estimate[known], _MOST_CELLS)
    colours, scale = colours_of(coloured.name, ends)
    shades = MaxNLocator(12).tick_values(float(scale.vmin or 0), float(scale.vmax or 0))
    surface = _smooth(triangles, coloured.estimate[known])
    filled = axes.tricontourf(*surface, levels=shades, cmap=colours, norm=scale, extend="both")
    handles: list[Any] = []
    if colour is not None and np.ptp(lines.estimate[known]) > 0:
        smooth = _smooth(triangles, lines.estimate[known])
        steps = MaxNLocator(7).tick_values(lines.estimate[known].min(), lines.estimate[known].max())[1:-1]
        drawn = axes.tricontour(*smooth, levels=steps, colors=[INK], linewidths=0.8)
        halo: list[Any] = [withStroke(linewidth=2.2, foreground="white", alpha=0.7)]  # to be seen on dark and light
        drawn.set_path_effects(halo)
        for text in axes.clabel(drawn, fontsize=7, inline_spacing=2, fmt="%g"):
            text.set_path_effects(halo)
        handles.append(Line2D([], [], color=INK, linewidth=0.8, label=words(_labelled(statistic, units), 60)))
    south, west, north, east = (edge[known] for edge in edges)
    axes.plot((west + east) / 2, (south + north) / 2, ".", color=PALE, markersize=2, zorder=2)
    handles.append(
        Line2D([], [], marker=".", linestyle="none", color=PALE, label=f"centres of cells, CELL({len(cells[0])})")
    )
    map_frame(axes, edges, coastlines=coastlines)
    colour_bar(figure, filled, axes, _labelled(coloured.name, units))
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False, fontsize=8)
    if title is not None:
        headline(figure, title)
    figure.set_size_inches(7.0, min(max(5.6 * shape_of(axes), 2.5), 10.0) + 1.0)
    told = [text for each in ([lines] if colour is None else [lines, coloured]) for text in widths(each)]
    caption(figure, [*told, *answer.notes])
    return _finished(figure, to, data, begun)


def _triangles(edges: Sequence[Floats], *drawn: Drawn) -> tuple[Triangulation, NDArray[np.bool_]]:
    """Triangles between the centres of cells, but those over wide gaps; and which cells: those with all numbers."""
    known = np.asarray(np.isfinite(np.stack([each.estimate for each in drawn])).all(axis=0))
    south, west, north, east = (edge[known] for edge in edges)
    across, up = (west + east) / 2, (south + north) / 2
    if across.size < 3 or np.linalg.matrix_rank(np.stack((across - across[0], up - up[0]))) < 2:
        names = " and ".join(dict.fromkeys(each.name for each in drawn))
        raise BadQuery(
            f"contours need three cells that do not lie on a line, and {names} is known in {across.size}; "
            "take smaller cells or a larger region"
        )
    found = Triangulation(across, up)
    corners = np.stack((across, up), axis=1)[found.triangles]
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    usual = max(float(np.median(sides)), math.hypot(east[0] - west[0], north[0] - south[0]))
    left_out = (sides.max(axis=1) > _FAR * usual) | TriAnalyzer(found).get_flat_tri_mask(0.01, rescale=False)
    if not left_out.all():
        found.set_mask(left_out)
    return found, known


def _smooth(triangles: Triangulation, numbers: Floats) -> tuple[Triangulation, Floats]:
    """Smaller triangles under a smooth surface through the numbers, which leaves their range nowhere."""
    subdivisions = 2 if numbers.size < 10_000 else 0  # sixteen triangles for one
    if not subdivisions or np.ptp(numbers) == 0:
        return triangles, numbers
    surface = CubicTriInterpolator(triangles, numbers, kind="geom")
    finer, found = UniformTriRefiner(triangles).refine_field(numbers, surface, subdivisions)
    return finer, np.clip(found, numbers.min(), numbers.max())


# --- both -------------------------------------------------------------------------------------------------------------


def _asked(db: Sketch, text: str, *, strict: bool = False) -> Answer:
    try:
        answer: Answer = db.query(text, strict=strict)
    except BadQuery as problem:
        problem.line = problem.column = None  # of a text that nobody wrote
        raise
    return answer


def _drawn(answer: Answer, column: str, name: str | None = None) -> Drawn:
    values = answer.column(column)
    assert isinstance(values, Values)
    return Drawn.of(name or column, values)


def _feature(db: Sketch, name: str) -> str:
    found = find(name, db.features)
    if found is None:
        raise UnknownFeature(name, db.features)
    return found


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _labelled(name: str, units: Mapping[str, str] | None) -> str:
    """A feature, or a statistic in the unit of one, with the unit.

    >>> [_labelled(name, None) for name in ("temp_c", "MEAN(wind_ms)", "CORRELATION(temp_c, rh)", "rh")]
    ['temp_c (°C)', 'MEAN(wind_ms) (m/s)', 'CORRELATION(temp_c, rh)', 'rh']
    >>> _labelled("MAX(rh)", {"rh": "%"})
    'MAX(rh) (%)'
    """
    of_feature = _OF_FEATURE.fullmatch(name)
    feature = of_feature[2].strip('"') if of_feature else name
    own = {each.lower(): unit for each, unit in (units or {}).items()}
    unit = own.get(name.lower()) or own.get(feature.lower())
    if unit is None and "(" not in feature and "_" in feature:
        unit = UNITS.get(feature.lower().rpartition("_")[2])
    return name if unit is None else f"{name} ({unit})"


def _finished(figure: Figure, to: str | os.PathLike[str] | None, data: float, begun: float) -> Figure:
    """The figure, drawn and written, with what it took."""
    if to is None:
        figure.canvas.draw()
    else:
        file = Path(to)
        for suffix in [file.suffix] if file.suffix else [".png", ".svg"]:
            metadata = {"Date": None} if suffix == ".svg" else None  # the same picture is the same file
            figure.savefig(file.with_suffix(suffix), dpi=150, metadata=metadata)
    timed: Any = figure
    timed.synopsis_seconds = Seconds(data, time.perf_counter() - begun)
    return figure
