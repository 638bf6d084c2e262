"""Pictures: the natural drawing of each kind of answer, with its intervals."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery
from synopsis.query.answer import Answer, BinKeys, BucketKeys, CellKeys, Names, Points
from synopsis.query.drawing import (
    BLUE,
    CERTAIN_SHADE,
    HOLLOW,
    INK,
    LABEL_WIDTH,
    LIKELY_SHADE,
    PALE,
    SKY,
    Drawn,
    Floats,
    caption,
    colour_bar,
    colours_of,
    dressed,
    headline,
    legend_of_intervals,
    new_figure,
    whiskers,
    widths,
    words,
)
from synopsis.query.maps import cell_edges, map_frame, shape_of
from synopsis.query.naming import find
from synopsis.query.values import Value, Values, written

import matplotlib.dates  # isort: skip  # behind drawing, which says how to install it
from matplotlib.axes import Axes  # isort: skip
from matplotlib.collections import PolyCollection  # isort: skip
from matplotlib.colors import Normalize  # isort: skip
from matplotlib.figure import Figure  # isort: skip
from matplotlib.ticker import MaxNLocator  # isort: skip

dates: Any = matplotlib.dates  # its functions have no types

Keys = CellKeys | BucketKeys | BinKeys | Names | Points


_MOST_MAPS: Final = 12  # side by side; of more, a heat map can be read better
_MOST_DOTS: Final = 100  # of one line; more run together
_MOST_SHAPES: Final = 5_000  # in an SVG, which a browser still opens at once; more are drawn as pixels
_FAR: Final = 30  # times the typical number
_NAMED_CELLS: Final = 40  # beside a heat map
_DAY_US: Final = 86_400_000_000


def picture(
    answer: Answer,
    *,
    column: str | None = None,
    title: str | None = None,
    size: tuple[float, float] | None = None,
    intervals: bool = True,
    coastlines: bool = True,
) -> Figure:
    """The natural picture of an answer: lines over buckets, a map of cells, bars over bins, dots without groups.

    Two keys make maps side by side or a heat map. `column` draws one statistic alone; maps and heat maps show one in
    any case, the first. `size` is in inches. Coastlines need global-land-mask, and are left out without it. Cost: some
    0.1 s, and on the first map of a process 2 s more for the coastlines; in proportion to the rows beyond thousands.
    """
    numbers = _statistics(answer, column)
    keys = {name: each for name in answer.columns if not isinstance(each := answer.column(name), Values)}
    if len(answer) == 0:
        raise BadQuery("this answer has no rows, hence no picture; nothing lies within its WHERE")
    drawn = [Drawn.of(name, each, intervals) for name, each in numbers.items()]
    first = next((each for each in drawn if np.isfinite(each.estimate).any()), None)
    if first is None:
        raise BadQuery(f"every value of {', '.join(numbers)} is undefined, hence there is no picture")
    _check_keys(keys, len(answer))

    figure = new_figure(size or (7.0, 4.0))
    kinds = [type(key) for key in keys.values()]
    if not keys:
        notes = _values_side_by_side(figure, drawn, [each[0] for each in numbers.values()])
    elif kinds in ([BucketKeys], [Points]):
        notes = _lines(figure, drawn, *_only(keys))
    elif kinds == [BinKeys]:
        notes = _bars(figure, drawn, *_only(keys))
    elif kinds == [Names]:
        notes = _dots_of_names(figure, drawn, *_only(keys))
    elif kinds == [CellKeys]:
        notes = _map(figure, first, *_only(keys), coastlines=coastlines)
    elif CellKeys in kinds and (panels := _panels_of(keys)) is not None:
        notes = _maps(figure, first, keys, panels, coastlines=coastlines)
    else:
        notes = _heat_map(figure, first, keys)
    if size is None:
        figure.set_size_inches(*_natural_size(figure, kinds))
    if title is not None:
        headline(figure, title)
    caption(figure, [*notes, *answer.notes])
    return figure


# --- what is drawn ----------------------------------------------------------------------------------------------------


def _statistics(answer: Answer, wanted: str | None) -> dict[str, Values]:
    found = {name: each for name in answer.columns if isinstance(each := answer.column(name), Values)}
    if not found:
        raise BadQuery("this answer has keys and no statistic, hence no picture; select one, as in COUNT(*)")
    if wanted is None:
        return found
    name = find(wanted, list(found))
    if name is None:
        raise BadQuery(f"no statistic {wanted!r} in this answer; it has {', '.join(found)}")
    return {name: found[name]}


def _check_keys(keys: dict[str, Keys], rows: int) -> None:
    if len(keys) > 2:
        raise BadQuery(
            f"a picture has two axes, and this answer {len(keys)} keys: {', '.join(keys)}; group by one or two"
        )
    codes = np.zeros(rows, np.int64)
    for key in keys.values():
        codes = codes * (rows + 1) + _codes(key)
    if np.unique(codes).size < rows:
        raise BadQuery(
            "several rows of this answer have the same keys, and a picture shows one of each; "
            "select all keys that GROUP BY names"
        )


def _codes(key: Keys) -> NDArray[np.int64]:
    """Equal keys as equal numbers."""
    if isinstance(key, CellKeys | Names):
        return np.unique(key.texts, return_inverse=True)[1].astype(np.int64)
    each = key.starts_us if isinstance(key, BucketKeys) else key.low if isinstance(key, BinKeys) else key.numbers
    return np.unique(each, return_inverse=True)[1].astype(np.int64)


def _only(keys: dict[str, Any]) -> tuple[Any, str]:
    ((name, key),) = keys.items()
    return key, name


# --- over time, or along a curve --------------------------------------------------------------------------------------


def _lines(figure: Figure, drawn: Sequence[Drawn], key: BucketKeys | Points, name: str) -> list[str]:
    """A panel for each statistic: estimates at the middles of buckets, bands over their whole lengths."""
    side = _side(key, name)
    order = np.argsort(side.low, kind="stable")
    low, high, middle = side.low[order], side.high[order], side.middle[order]
    breaks = np.flatnonzero(low[1:] > high[:-1]) + 1
    edges = np.insert(np.stack((low, high), axis=1).ravel(), 2 * breaks, np.nan)
    grid = figure.subplots(len(drawn), sharex=True, squeeze=False)[:, 0]
    for axes, each in zip(grid, (each.take(order) for each in drawn), strict=True):
        dressed(axes)
        for (bottom, top), shade in ((each.certain, CERTAIN_SHADE), (each.likely, LIKELY_SHADE)):
            if (top > bottom).any():
                ends = (np.insert(np.repeat(end, 2), 2 * breaks, np.nan) for end in (bottom, top))
                axes.fill_between(edges, *ends, color=BLUE, alpha=shade, linewidth=0)
        estimate = np.insert(each.estimate, breaks, np.nan)
        (line,) = axes.plot(
            np.insert(middle, breaks, np.nan), estimate, "o-", color=BLUE, linewidth=1.5, markersize=3.5
        )
        line.set_markevery(np.flatnonzero(_alone(estimate) | (low.size <= _MOST_DOTS)).tolist())
        axes.plot(middle[each.unbounded], each.estimate[each.unbounded], **HOLLOW)
        axes.set_ylabel(words(each.name))
    side.dress(grid[-1].xaxis)
    legend_of_intervals(figure, drawn)
    return []


def _alone(numbers: Floats) -> NDArray[np.bool_]:
    """Which numbers have none on either side, so that no line leads to them."""
    known = np.concatenate(([False], ~np.isnan(numbers), [False]))
    return known[1:-1] & ~known[:-2] & ~known[2:]


# --- over bins --------------------------------------------------------------------------------------------------------


def _bars(figure: Figure, drawn: Sequence[Drawn], bins: BinKeys, name: str) -> list[str]:
    """A panel for each statistic: a bar from the lower to the upper end of each bin, its interval as a whisker."""
    present = np.isfinite(bins.low) & np.isfinite(bins.high)
    low, high = bins.low[present], bins.high[present]
    grid = figure.subplots(len(drawn), sharex=True, squeeze=False)[:, 0]
    for axes, each in zip(grid, drawn, strict=True):
        dressed(axes)
        own = each.take(present)
        axes.bar(low, own.estimate, high - low, align="edge", color=SKY, edgecolor="white", linewidth=0.6)
        whiskers(axes, (low + high) / 2, own, INK)
        axes.set_ylabel(words(each.name))
    grid[-1].set_xlabel(words(name))
    legend_of_intervals(figure, drawn, whiskers=True)
    absent = np.flatnonzero(np.isnan(bins.low))
    return [
        f"rows without a value, not drawn: {each.name} = {_short(each, int(row))}" for row in absent for each in drawn
    ]


def _short(each: Drawn, row: int) -> str:
    if np.isnan(each.estimate[row]):
        return "none"
    text = written(_whole(each.estimate[row]))
    low, high = each.likely[:, row] if not np.isnan(each.likely[0, row]) else each.certain[:, row]
    return f"{text} in {written(_whole(low))}..{written(_whole(high))}" if high > low else text


def _whole(number: float) -> float:
    return int(number) if float(number).is_integer() else float(number)


# --- dots -------------------------------------------------------------------------------------------------------------


def _values_side_by_side(figure: Figure, drawn: Sequence[Drawn], values: Sequence[Value]) -> list[str]:
    """A row for each statistic, on its own scale, and the value as text beside it."""
    grid = figure.subplots(len(drawn), squeeze=False)[:, 0]
    for axes, each, value in zip(grid, drawn, values, strict=True):
        dressed(axes, sides=("bottom",))
        axes.grid(False)
        whiskers(axes, np.zeros(1), each, BLUE, across=True)
        _dots(axes, each, np.zeros(1))
        axes.set_ylim(-1, 1)
        axes.set_yticks([])
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.margins(x=0.1)
        axes.set_ylabel(words(each.name), rotation=0, ha="right", va="center")
        text = "\n".join(textwrap.wrap(value.promise, LABEL_WIDTH + 4))
        axes.text(1.02, 0.5, f"{value.number}\n{text}", transform=axes.transAxes, va="center", fontsize=8, color=INK)
    legend_of_intervals(figure, drawn, whiskers=True, colour=BLUE)
    return []


def _dots_of_names(figure: Figure, drawn: Sequence[Drawn], names: Names, _: str) -> list[str]:
    """A panel for each statistic, a row for each name; a line where nothing would differ."""
    rows = np.arange(len(names), dtype=np.float64)
    grid = figure.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
    for axes, each in zip(grid, drawn, strict=True):
        dressed(axes, sides=("bottom",), along="y")
        axes.axvline(1.0 if "ratio" in each.name else 0.0, color=PALE, linewidth=1)
        whiskers(axes, rows, each, BLUE, across=True)
        _dots(axes, each, rows)
        for row, number in zip(rows, each.estimate, strict=True):
            text = "none" if np.isnan(number) else written(float(f"{number:.3g}"))
            place = axes.get_yaxis_transform()
            axes.text(1.01, row, text, transform=place, va="center", fontsize=8, color=INK)
        typical = np.nanmedian(np.abs(each.estimate)) if np.isfinite(each.estimate).any() else 0.0
        if 0 < typical < np.nanmax(np.abs(each.estimate)) / _FAR:  # units differ, and one would hide the others
            axes.set_xscale("symlog", linthresh=typical)
            axes.locator_params(axis="x", numticks=4)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.set_xlabel(words(each.name))
    grid[0].set_yticks(rows, [words(str(text)) for text in names.texts])
    grid[0].set_ylim(len(names) - 0.5, -0.5)
    legend_of_intervals(figure, drawn, whiskers=True, colour=BLUE)
    return []


def _dots(axes: Axes, each: Drawn, at: Floats) -> None:
    bounded = ~each.unbounded
    axes.plot(each.estimate[bounded], at[bounded], "o", color=BLUE, markersize=6)


# --- maps -------------------------------------------------------------------------------------------------------------


def _map(figure: Figure, each: Drawn, cells: CellKeys, _: str, *, coastlines: bool) -> list[str]:
    """Cells as rectangles coloured by a statistic, and beside it how wide its intervals are."""
    edges = cell_edges(cells)
    width = each.width
    shown = [(each.name, each.estimate, colours_of(each.name, each.estimate))]
    if np.nanmax(width, initial=0.0) > 0:
        shown.append((f"width of the interval ({each.promise})", width, ("cividis", Normalize(0, np.nanmax(width)))))
    for axes, (label, numbers, (colours, scale)) in zip(
        figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True
    ):
        drawn = _rectangles(axes, edges, numbers, colours, scale)
        map_frame(axes, edges, coastlines=coastlines)
        colour_bar(figure, drawn, axes, label)
    return _undefined(each)


def _maps(
    figure: Figure, each: Drawn, keys: dict[str, Keys], panels: dict[str, NDArray[np.bool_]], *, coastlines: bool
) -> list[str]:
    """A map for each bucket or bin, side by side, in the same colours."""
    cells = next(key for key in keys.values() if isinstance(key, CellKeys))
    edges, (colours, scale) = cell_edges(cells), colours_of(each.name, each.estimate)
    across = _across(len(panels))
    grid = figure.subplots(math.ceil(len(panels) / across), across, sharex=True, sharey=True, squeeze=False)
    drawn = None
    for axes, (label, own) in zip(grid.ravel(), panels.items(), strict=False):
        drawn = _rectangles(axes, tuple(edge[own] for edge in edges), each.estimate[own], colours, scale)
        map_frame(axes, edges, coastlines=coastlines)
        axes.set_title(words(label), fontsize=9, color=INK)
        axes.label_outer()
    for axes in grid.ravel()[len(panels) :]:
        axes.set_visible(False)
    for place in range(max(len(panels) - across, 0), len(panels)):
        grid.ravel()[place].tick_params(labelbottom=True)  # nothing is drawn below
    assert drawn is not None
    colour_bar(figure, drawn, grid, each.name)
    return [*_undefined(each), *widths(each)]


def _across(panels: int) -> int:
    """How many maps stand side by side: few places left empty, and about as wide as high.

    >>> [_across(panels) for panels in (1, 2, 3, 4, 5, 7, 12)]
    [1, 2, 3, 2, 3, 4, 4]
    """
    if panels <= 3:
        return panels
    return min(range(math.ceil(math.sqrt(panels)), 5), key=lambda across: (-panels % across, abs(across**2 - panels)))


def _panels_of(keys: dict[str, Keys]) -> dict[str, NDArray[np.bool_]] | None:
    """The rows of each bucket or bin beside the cells, by what it is called; None where they are too many for maps."""
    others = [key for key in keys.values() if not isinstance(key, CellKeys)]
    if len(others) != 1 or np.unique(codes := _codes(others[0])).size > _MOST_MAPS:
        return None
    (other,) = others
    panels = {}
    for code in np.unique(codes):
        own = codes == code
        first = int(np.flatnonzero(own)[0])
        named = "absent" if other[first] is None else str(other[first])
        panels[_when(other, first) if isinstance(other, BucketKeys) else named] = own
    return panels


def _when(buckets: BucketKeys, row: int) -> str:
    start = buckets[row]
    if buckets.ends_us is None:
        return start.strftime("%d %b %Y %H:%M").removesuffix(" 00:00")
    days = (int(buckets.ends_us[row]) - int(buckets.starts_us[row])) / _DAY_US
    form = "%Y" if days > 364 else "%b %Y" if days > 27 else "%d %b %Y" if days > 0.9 else "%d %b %Y %H:%M"
    return start.strftime(form)


def _heat_map(figure: Figure, each: Drawn, keys: dict[str, Keys]) -> list[str]:
    """Two keys as axes, a rectangle for each row."""
    names = sorted(keys, key=lambda name: not isinstance(keys[name], BucketKeys))  # time runs from left to right
    across, up = (_side(keys[name], name) for name in names)
    present = np.isfinite(across.low) & np.isfinite(across.high) & np.isfinite(up.low) & np.isfinite(up.high)
    if not np.isfinite(each.estimate[present]).any():
        raise BadQuery(f"no group of {' and '.join(names)} has a {each.name}, hence there is no picture")
    axes = figure.subplots()
    dressed(axes)
    axes.grid(False)
    edges = tuple(edge[present] for edge in (up.low, across.low, up.high, across.high))
    drawn = _rectangles(axes, edges, each.estimate[present], *colours_of(each.name, each.estimate[present]))
    axes.autoscale_view()
    across.dress(axes.xaxis)
    up.dress(axes.yaxis)
    colour_bar(figure, drawn, axes, each.name)
    absent = int((~present).sum())
    missing = [f"groups of rows without a value, not drawn: {absent:,}"] if absent else []
    return [*missing, *_undefined(each), *widths(each)]


def _undefined(each: Drawn) -> list[str]:
    count = int(np.isnan(each.estimate).sum())
    return [f"groups without {each.name}: {count:,} of {each.estimate.size:,}"] if count else []


def _rectangles(axes: Axes, edges: Sequence[Floats], numbers: Floats, colours: str, scale: Any) -> PolyCollection:
    """Rectangles by south, west, north and east, but those without a number."""
    south, west, north, east = (edge[~np.isnan(numbers)] for edge in edges)
    corners = ((west, south), (east, south), (east, north), (west, north))
    rings = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
    drawn = PolyCollection(list(rings), cmap=colours, norm=scale, linewidths=0.2, edgecolors="face")
    drawn.set_array(numbers[~np.isnan(numbers)])
    drawn.set_rasterized(len(rings) > _MOST_SHAPES)
    axes.add_collection(drawn)
    return drawn


# --- axes of two keys -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Side:
    """An axis: where each row begins and ends on it, and how it is written."""

    low: Floats
    high: Floats
    middle: Floats
    dress: Callable[[Any], None]


def _side(key: Keys, name: str) -> Side:
    if isinstance(key, BucketKeys):
        return _time_side(key, name)
    if isinstance(key, BinKeys):
        return Side(key.low, key.high, (key.low + key.high) / 2, lambda axis: axis.set_label_text(words(name)))
    if isinstance(key, Points):
        known, rank = np.unique(key.numbers, return_inverse=True)
        between = (known[1:] + known[:-1]) / 2 if known.size > 1 else np.empty(0)
        edges = np.concatenate((known[:1], between, known[-1:]))
        return Side(edges[rank], edges[rank + 1], key.numbers, lambda axis: axis.set_label_text(words(name)))
    texts, rank = np.unique(key.texts, return_inverse=True)
    if isinstance(key, CellKeys):  # from south to north
        south, west, *_ = cell_edges(CellKeys(texts))
        order = np.lexsort((west, south))
        rank, texts = np.argsort(order)[rank], texts[order]
    step = max(1, math.ceil(texts.size / _NAMED_CELLS))

    def dress(axis: Any) -> None:
        axis.set_ticks(np.arange(0, texts.size, step) + 0.5, [words(str(text)) for text in texts[::step]], fontsize=7)
        axis.set_label_text(words(name))

    rows = rank.astype(np.float64)
    return Side(rows, rows + 1, rows + 0.5, dress)


def _time_side(buckets: BucketKeys, name: str) -> Side:
    zone = ZoneInfo(buckets.timezone)
    ends_us = _ends_us(buckets.starts_us) if buckets.ends_us is None else buckets.ends_us
    low, high = (np.asarray(dates.date2num(each.astype("datetime64[us]"))) for each in (buckets.starts_us, ends_us))

    def dress(axis: Any) -> None:
        locator = dates.AutoDateLocator(tz=zone)
        axis.set_major_locator(locator)
        written_dates = dates.ConciseDateFormatter(locator, tz=zone)
        if high.max() - low.min() > 31:
            written_dates.offset_formats[2] = "%Y"  # days of several months lie in none of them
        axis.set_major_formatter(written_dates)
        axis.set_label_text(words(name if buckets.timezone == "UTC" else f"{name}, {buckets.timezone}"))

    return Side(low, high, (low + high) / 2, dress)


def _ends_us(starts_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where buckets end that do not say so: they are as long as the shortest step, and a day where there is none."""
    known = np.unique(starts_us)
    return starts_us + (int(np.diff(known).min()) if known.size > 1 else _DAY_US)


def _natural_size(figure: Figure, kinds: Sequence[type]) -> tuple[float, float]:
    """Inches that leave each panel room."""
    seen = [axes for axes in figure.axes if axes.get_visible() and axes.get_label() != "<colorbar>"]
    if not kinds:
        return 7.0, 0.5 + 0.75 * len(seen)
    if kinds == [Names]:
        return 1.5 + 2.6 * len(seen), 1.2 + 0.3 * len(seen[0].get_yticks())
    if seen[0].get_aspect() == "auto":
        return 7.0, 1.2 + (2.2 * len(seen) if len(seen) > 1 else 2.8)
    grid = seen[0].get_gridspec()
    across, down = (grid.ncols, grid.nrows) if grid is not None else (1, 1)
    width = max(6.0, 2.6 * across) if down > 1 or across > 2 else 5.5 * across
    return width + 1.2, min(max(width / across * shape_of(seen[0]) * down, 2.5), 12.0) + 0.8
