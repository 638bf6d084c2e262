"""Drawing: what all pictures share, which is how numbers and their intervals look.

What is certain is drawn light or thin, what holds at 95% dark or thick, and a number without bounds hollow. Figures are
matplotlib's own and belong to nobody else: no window is opened and nothing is left in pyplot. Colours are those of
Okabe & Ito (2008) and viridis, which people tell apart whatever their eyes.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from synopsis.query.values import CERTAIN, P95, Values, written

try:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import FuncFormatter
except ModuleNotFoundError as problem:
    remedy = "pictures need matplotlib; run pip install 'synopsis[plot]'"
    raise ModuleNotFoundError(remedy, name="matplotlib") from problem

Floats = NDArray[np.float64]
BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
SKY: Final = "#56B4E9"
INK: Final = "#333333"
PALE: Final = "#BBBBBB"
CERTAIN_SHADE: Final = 0.15  #: opacity of what is certain
LIKELY_SHADE: Final = 0.4  #: opacity of what holds at 95%
THIN: Final = 1.2  #: width of the line of what is certain
THICK: Final = 4.0  #: width of the line of what holds at 95%
LABEL_WIDTH: Final = 30  # characters
HOLLOW: Final[dict[str, Any]] = {
    "marker": "o",
    "markerfacecolor": "white",
    "markersize": 5,
    "linestyle": "none",
    "color": BLUE,
}
_AROUND_NOTHING: Final = re.compile(r"CORRELATION|COVAR| - ", re.I)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A statistic as it is drawn; NaN is a gap."""

    name: str
    estimate: Floats
    certain: Floats  #: 2 x values, low and high
    likely: Floats  #: 2 x values, at 95%

    @classmethod
    def of(cls, name: str, values: Values, intervals: bool = True) -> Drawn:
        """A column, without what is infinite; without intervals, each is its estimate."""
        estimate = np.where(np.isfinite(values.estimate), values.estimate, np.nan)
        if not intervals:
            return cls(name, estimate, np.stack((estimate, estimate)), np.full((2, estimate.size), np.nan))
        bounds = _gaps(np.stack((values.low, values.high)).astype(np.float64), np.isnan(estimate))
        likely = np.where(values.guarantee == P95, bounds, np.nan)
        if values.p95 is not None:
            narrower = _gaps(values.p95.T, np.isnan(estimate))
            likely = np.where(np.isnan(narrower), likely, narrower)
        return cls(name, estimate, np.where(values.guarantee <= CERTAIN, bounds, np.nan), likely)

    @property
    def unbounded(self) -> NDArray[np.bool_]:
        """Which numbers have neither interval."""
        return np.asarray(~np.isnan(self.estimate) & np.isnan(self.certain[0]) & np.isnan(self.likely[0]))

    @property
    def width(self) -> Floats:
        """The width of the narrower interval: at 95% where there is one, else certain."""
        likely, certain = np.diff(self.likely, axis=0)[0], np.diff(self.certain, axis=0)[0]
        return np.asarray(np.where(np.isnan(likely), certain, likely))

    @property
    def promise(self) -> str:
        """What the narrower intervals promise."""
        likely, certain = ~np.isnan(self.likely[0]), ~np.isnan(self.certain[0])
        return "95%" if (likely | ~certain).all() else "95%, else certain" if likely.any() else "certain"

    def take(self, rows: NDArray[Any]) -> Drawn:
        return Drawn(self.name, self.estimate[rows], self.certain[:, rows], self.likely[:, rows])


def _gaps(bounds: Floats, undefined: NDArray[np.bool_]) -> Floats:
    return np.where(np.isfinite(bounds).all(axis=0) & ~undefined, bounds, np.nan)


def whiskers(axes: Axes, at: Floats, each: Drawn, colour: str, *, across: bool = False) -> None:
    """The intervals of a statistic as lines: what is certain thin, what holds at 95% thick; hollow dots without."""
    draw = axes.hlines if across else axes.vlines
    for (low, high), width in ((each.certain, THIN), (each.likely, THICK)):
        wide = high > low
        draw(at[wide], low[wide], high[wide], color=colour, linewidth=width, alpha=0.6)
    places = at[each.unbounded], each.estimate[each.unbounded]
    axes.plot(*(reversed(places) if across else places), **HOLLOW)


def new_figure(size: tuple[float, float]) -> Figure:
    """A figure of its own, of so many inches, that pyplot knows nothing of; notebooks show it."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    shown: Any = figure
    shown._repr_png_ = partial(_png, figure)
    return figure


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def dressed(axes: Axes, sides: Sequence[str] = ("left", "bottom"), along: Literal["x", "y"] = "y") -> None:
    """Light spines on these sides, light lines along one axis, small numbers."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in sides)
        spine.set_color(PALE)
    axes.tick_params(color=PALE, labelcolor=INK, labelsize=8)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(number_text))
        axis.label.set(color=INK, fontsize=9)
    axes.grid(True, axis=along, color="#E8E8E8", linewidth=0.6)
    axes.set_axisbelow(True)


def number_text(number: float, _: object = None) -> str:
    """
    >>> number_text(1200000.0), number_text(0.1 + 0.2)
    ('1,200,000', '0.3')
    """
    return f"{number:,.10g}"


def colour_bar(figure: Figure, drawn: Any, axes: Any, label: str) -> None:
    """What the colours mean, beside the axes."""
    bar = figure.colorbar(drawn, ax=axes, shrink=0.85, pad=0.02, format=FuncFormatter(number_text))
    bar.set_label(words(label), color=INK, fontsize=9)
    bar.ax.tick_params(color=PALE, labelcolor=INK, labelsize=8)
    bar.outline.set_visible(False)


def legend_of_intervals(figure: Figure, drawn: Sequence[Drawn], *, whiskers: bool = False, colour: str = INK) -> None:
    """What light, dark and hollow mean, above the panels, as far as they occur."""
    handles: list[Any] = []
    for label, shade, width, found in (
        ("certain", CERTAIN_SHADE, THIN, any((each.certain[1] > each.certain[0]).any() for each in drawn)),
        ("95%", LIKELY_SHADE, THICK, any((each.likely[1] > each.likely[0]).any() for each in drawn)),
    ):
        if found and whiskers:
            handles.append(Line2D([], [], color=colour, alpha=0.6, linewidth=width, label=label))
        elif found:
            handles.append(Patch(color=colour, alpha=shade, linewidth=0, label=label))
    if any(each.unbounded.any() for each in drawn):
        handles.append(Line2D([], [], **HOLLOW, label="without bounds"))
    if handles:
        figure.legend(handles=handles, loc="outside upper right", ncols=3, frameon=False, fontsize=8)


def headline(figure: Figure, title: str) -> None:
    """A title, left of the legend."""
    figure.suptitle(words(title, int(figure.get_figwidth() * 6)), x=0.02, ha="left", color=INK, fontsize=11)


def caption(figure: Figure, notes: Sequence[str]) -> None:
    """Sentences under the picture."""
    if notes:
        width = int(figure.get_figwidth() * 16)
        text = "\n".join(words(line, width) for line in notes)
        figure.supxlabel(text, fontsize=8, color="#666666", x=0.02, ha="left")


def words(text: str, width: int = LABEL_WIDTH) -> str:
    """A text as it is written, in lines that are not too long; a dollar begins no formula."""
    return "\n".join(textwrap.wrap(text, width, break_long_words=True)).replace("$", r"\$")


def colours_of(name: str, numbers: Floats) -> tuple[str, Normalize]:
    """Colours from low to high; of correlations and differences, which lie around 0, two that part there."""
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    if low < 0 < high and _AROUND_NOTHING.search(name):
        reach = max(-low, high)
        return "PuOr_r", Normalize(-reach, reach)
    return "viridis", Normalize(low, high) if low < high else Normalize(low - 0.5, high + 0.5)


def widths(each: Drawn) -> list[str]:
    width = each.width[np.isfinite(each.width)]
    if not width.size or width.max() == 0:
        return []
    middle, most = (written(float(f"{number:.3g}")) for number in (np.median(width), width.max()))
    return [f"intervals of {each.name} ({each.promise}): {middle} wide in the median, {most} at most"]
