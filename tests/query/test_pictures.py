"""Answers as pictures: what is drawn is what the answer says."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.query.test_evaluate import WEATHER
from tests.query.test_paths import PLAIN

from synopsis.core.errors import BadQuery
from synopsis.query.answer import Answer, BinKeys, BucketKeys, CellKeys, Names, Points
from synopsis.query.evaluate import ask
from synopsis.query.values import CERTAIN, EXACT, HEURISTIC, P95, Values

pytest.importorskip("matplotlib")
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from synopsis.query.drawing import new_figure
from synopsis.query.maps import draw_coastlines, land_shares
from synopsis.query.pictures import picture

DAY_US = 86_400_000_000


def counts(*numbers: int) -> Values:
    """Counts that are exact."""
    return Values(*(np.array(numbers, np.int64) for _ in range(3)), np.full(len(numbers), EXACT, np.int8))


def means(*estimates: float, likely: bool = True) -> Values:
    """Means that are certain within 2, and at 95% within 0.5."""
    estimate = np.array(estimates)
    p95 = np.stack((estimate - 0.5, estimate + 0.5), axis=1) if likely else None
    return Values(estimate, estimate - 2, estimate + 2, np.full(estimate.size, CERTAIN, np.int8), p95)


def days(*ordinals: int, timezone: str = "UTC") -> BucketKeys:
    starts_us = np.array(ordinals, np.int64) * DAY_US
    return BucketKeys(starts_us, timezone, starts_us + DAY_US)


def cells(*texts: str) -> CellKeys:
    return CellKeys(np.array(texts))


def drawn(answer: Answer, **options: Any) -> Figure:
    """The picture, rendered, so that whatever is wrong with it comes to light."""
    figure = picture(answer, coastlines=False, **options)
    figure.canvas.draw()
    return figure


def words_of(figure: Figure) -> str:
    """All that is written under and above the panels."""
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    caption = figure._supxlabel.get_text() if figure._supxlabel is not None else ""
    return " | ".join([*legends, caption]).replace("\n", " ")


def band(axes: Any, place: int) -> tuple[set[float], set[float]]:
    """The times and the heights at which a band has corners."""
    corners = np.concatenate([path.vertices for path in axes.collections[place].get_paths()])
    return set(corners[:, 0].tolist()), set(corners[:, 1].tolist())


# --- over time --------------------------------------------------------------------------------------------------------


def test_a_line_runs_through_the_estimates_at_the_middles_of_their_buckets() -> None:
    (axes,) = drawn(Answer({"t": days(2, 0, 1), "m": means(3.0, 1.0, 2.0)})).axes
    times, heights = axes.lines[0].get_data()
    assert heights.tolist() == [1.0, 2.0, 3.0]
    assert times.tolist() == [0.5, 1.5, 2.5]
    assert axes.get_ylabel() == "m"
    assert axes.get_xlabel() == "t"


def test_bands_reach_from_low_to_high_over_the_whole_bucket() -> None:
    figure = drawn(Answer({"t": days(0, 1), "m": means(1.0, 5.0)}))
    (axes,) = figure.axes
    certain, likely = band(axes, 0), band(axes, 1)
    assert certain == ({0.0, 1.0, 2.0}, {-1.0, 3.0, 7.0})
    assert likely == ({0.0, 1.0, 2.0}, {0.5, 1.5, 4.5, 5.5})
    assert axes.collections[0].get_alpha() < axes.collections[1].get_alpha()
    assert words_of(figure).startswith("certain | 95%")


def test_exact_numbers_have_no_band_and_no_legend() -> None:
    figure = drawn(Answer({"t": days(0, 1), "n": counts(7, 8)}))
    assert len(figure.axes[0].collections) == 0
    assert words_of(figure) == ""


def test_each_statistic_has_a_panel() -> None:
    figure = drawn(Answer({"t": days(0, 1), "n": counts(7, 8), "m": means(1.0, 2.0)}))
    assert [axes.get_ylabel() for axes in figure.axes] == ["n", "m"]
    assert [len(drawn(Answer({"t": days(0, 1), "n": counts(7, 8), "m": means(1.0, 2.0)}), column="M").axes)] == [1]


def test_buckets_without_rows_and_undefined_values_leave_gaps() -> None:
    figure = drawn(Answer({"t": days(0, 1, 5, 6, 7), "m": means(1.0, 2.0, 3.0, math.nan, 5.0)}))
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [1.0, 2.0, math.nan, 3.0, math.nan, 5.0])
    assert len(axes.collections[0].get_paths()) == 3


def test_a_number_between_gaps_is_a_dot_however_many_there_are() -> None:
    ordinals = [*range(150), 200, *range(300, 310)]
    (axes,) = drawn(Answer({"t": days(*ordinals), "n": counts(*ordinals)})).axes
    (line, _) = axes.lines
    assert [line.get_ydata()[place] for place in line.get_markevery()] == [200.0]


def test_a_number_without_bounds_is_hollow() -> None:
    estimate, nothing = np.array([1.0, 2.0, 3.0]), np.full(3, math.nan)
    low, high = np.array([0.0, math.nan, -math.inf]), np.array([2.0, math.nan, math.inf])
    guarantee = np.array([CERTAIN, HEURISTIC, CERTAIN], np.int8)
    figure = drawn(Answer({"t": days(0, 1, 2), "m": Values(estimate, low, high, guarantee)}))
    assert figure.axes[0].lines[1].get_ydata().tolist() == [2.0, 3.0]
    assert "without bounds" in words_of(figure)
    only = Values(estimate, nothing, nothing, np.full(3, HEURISTIC, np.int8))
    assert words_of(drawn(Answer({"t": days(0, 1, 2), "m": only}))).startswith("without bounds")


def test_an_interval_that_only_holds_at_95_is_drawn_as_such() -> None:
    estimate = np.array([1.0, 2.0])
    values = Values(estimate, estimate - 1, estimate + 1, np.full(2, P95, np.int8))
    figure = drawn(Answer({"t": days(0, 1), "m": values}))
    assert words_of(figure).startswith("95%")
    assert band(figure.axes[0], 0)[1] == {0.0, 1.0, 2.0, 3.0}


def test_times_are_written_by_the_clocks_of_the_zone() -> None:
    (axes,) = drawn(Answer({"t": days(0, 1, 2, timezone="Asia/Kathmandu"), "n": counts(1, 2, 3)})).axes
    assert axes.get_xlabel() == "t, Asia/Kathmandu"
    assert str(axes.xaxis.get_major_formatter()._tz) == "Asia/Kathmandu"


@pytest.mark.parametrize("step_days", [1 / 24, 1, 7, 31, 366])
@pytest.mark.parametrize("buckets", [1, 9, 110])
def test_buckets_of_every_length_are_dated(step_days: float, buckets: int) -> None:
    starts_us = (np.arange(buckets) * int(step_days * DAY_US)).astype(np.int64)
    (axes,) = drawn(Answer({"t": BucketKeys(starts_us, "UTC"), "n": counts(*range(buckets))})).axes
    assert 1 <= sum(bool(label.get_text()) for label in axes.get_xticklabels()) <= 14


def test_buckets_that_do_not_say_where_they_end_are_as_long_as_their_step() -> None:
    starts_us = np.array([0, 2, 4], np.int64) * DAY_US
    (axes,) = drawn(Answer({"t": BucketKeys(starts_us, "UTC"), "m": means(1.0, 2.0, 3.0)})).axes
    assert axes.lines[0].get_xdata().tolist() == [1.0, 3.0, 5.0]
    assert len(drawn(Answer({"t": BucketKeys(starts_us[:1], "UTC"), "m": means(1.0)})).axes) == 1


def test_a_curve_runs_through_its_points() -> None:
    points = Points(np.array([3.0, 0.0, 1.0]))
    (axes,) = drawn(Answer({"x": points, "density": means(6.0, 4.0, 5.0)})).axes
    assert axes.lines[0].get_xydata().tolist() == [[0.0, 4.0], [1.0, 5.0], [3.0, 6.0]]
    assert band(axes, 0)[0] == {0.0, 0.5, 2.0, 3.0}
    assert axes.get_xlabel() == "x"
    several = {"c": cells(*["s"] * 14, *["e"] * 14), "x": Points(np.tile(np.arange(14.0), 2))}
    assert len(drawn(Answer({**several, "density": counts(*range(28))})).axes[0].collections[0].get_paths()) == 28
    assert drawn(Answer({"x": Points(np.array([2.0])), "density": means(1.0)})).axes


# --- over bins --------------------------------------------------------------------------------------------------------

BINS = BinKeys(np.array([0.0, 1.0, 5.0, math.nan]), np.array([1.0, 5.0, 6.0, math.nan]))


def test_a_bar_stands_over_the_whole_bin_and_a_whisker_from_low_to_high() -> None:
    figure = drawn(Answer({"BIN(x)": BINS, "m": means(10.0, 20.0, 30.0, 40.0)}))
    (axes,) = figure.axes
    bars = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in axes.patches]
    assert bars == [(0.0, 1.0, 10.0), (1.0, 4.0, 20.0), (5.0, 1.0, 30.0)]
    certain, likely = (collection.get_segments() for collection in axes.collections)
    assert [segment[:, 1].tolist() for segment in certain] == [[8.0, 12.0], [18.0, 22.0], [28.0, 32.0]]
    assert [segment[:, 0].tolist() for segment in likely] == [[0.5, 0.5], [3.0, 3.0], [5.5, 5.5]]
    assert axes.get_xlabel() == "BIN(x)"


def test_the_group_without_the_feature_is_said_under_the_bars() -> None:
    figure = drawn(Answer({"BIN(x)": BINS, "n": counts(1, 2, 3, 12_536), "m": means(1.0, 2.0, 3.0, 40.0)}))
    assert "without a value, not drawn: n = 12,536" in words_of(figure)
    assert "m = 40 in 39.5..40.5" in words_of(figure)


def test_a_bar_without_bounds_has_a_hollow_dot() -> None:
    estimate, nothing = np.arange(4.0), np.full(4, math.nan)
    guesses = Values(estimate, nothing, nothing, np.full(4, HEURISTIC, np.int8))
    (axes,) = drawn(Answer({"BIN(x)": BINS, "m": guesses})).axes
    assert axes.lines[0].get_xydata().tolist() == [[0.5, 0.0], [3.0, 1.0], [5.5, 2.0]]


def test_two_bins_are_a_heat_map() -> None:
    across = BinKeys(np.array([0.0, 0.0, 1.0, math.nan]), np.array([1.0, 1.0, 3.0, math.nan]))
    up = BinKeys(np.array([0.0, 2.0, 0.0, 0.0]), np.array([2.0, 4.0, 2.0, 2.0]))
    figure = drawn(Answer({"BIN(x)": across, "BIN(y)": up, "n": counts(1, 2, 3, 9)}))
    axes = figure.axes[0]
    (rectangles,) = axes.collections
    assert rectangles.get_array().tolist() == [1, 2, 3]
    assert rectangles.get_paths()[2].get_extents().bounds == (1.0, 0.0, 2.0, 2.0)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("BIN(x)", "BIN(y)")
    assert rectangles.get_clim() == (1, 3)
    assert "groups of rows without a value, not drawn: 1" in words_of(figure)


# --- dots -------------------------------------------------------------------------------------------------------------


def test_without_groups_each_statistic_has_a_dot_and_its_interval_on_a_scale_of_its_own() -> None:
    figure = drawn(Answer({"COUNT(*)": counts(1_000_000), "MEAN(x)": means(20.0)}))
    count, mean = figure.axes
    assert [axes.get_ylabel() for axes in (count, mean)] == ["COUNT(*)", "MEAN(x)"]
    assert count.lines[1].get_xdata().tolist() == [1_000_000.0]
    assert [line.get_segments()[0][:, 0].tolist() for line in mean.collections if line.get_segments()] == [
        [18.0, 22.0],
        [19.5, 20.5],
    ]
    assert mean.get_xlim()[1] < 100
    assert "18..22 certain, 19.5..20.5 p95" in mean.texts[0].get_text().replace("\n", " ")


def test_an_undefined_value_among_others_is_said_to_be_none() -> None:
    figure = drawn(Answer({"n": counts(0), "m": means(math.nan)}))
    assert figure.axes[1].texts[0].get_text().startswith("none")


def test_a_drift_has_a_dot_and_an_interval_for_each_feature() -> None:
    ratio = means(1.0, 2.0, math.nan)
    figure = drawn(Answer({"feature": Names(np.array(["a", "_b", "c$"])), "d": means(5.0, -5.0, 0.5), "ratio": ratio}))
    difference, ratios = figure.axes
    assert difference.lines[2].get_xdata().tolist() == [5.0, -5.0, 0.5]
    assert [label.get_text() for label in difference.get_yticklabels()] == ["a", "_b", r"c\$"]
    assert len(difference.collections[0].get_segments()) == 3
    assert len(ratios.collections[0].get_segments()) == 2
    assert ratios.lines[0].get_xdata() == [1.0, 1.0]  # where nothing differs


def test_one_unit_does_not_hide_the_others() -> None:
    names = Names(np.array(["kelvin", "share", "pascal"]))
    figure = drawn(Answer({"feature": names, "mean difference": means(0.2, 0.1, 9_000.0)}))
    assert figure.axes[0].get_xscale() == "symlog"


# --- maps -------------------------------------------------------------------------------------------------------------


def test_a_map_has_a_rectangle_for_each_cell_in_the_colour_of_its_number() -> None:
    figure = drawn(Answer({"CELL(1)": cells("s", "e", "u"), "n": counts(7, 8, 9), "other": counts(1, 1, 1)}))
    axes, bar = figure.axes
    (rectangles,) = (each for each in axes.collections if isinstance(each, PolyCollection))
    assert rectangles.get_array().tolist() == [7, 8, 9]
    assert [path.get_extents().bounds for path in rectangles.get_paths()] == [
        (0.0, 0.0, 45.0, 45.0),
        (-45.0, 0.0, 45.0, 45.0),
        (0.0, 45.0, 45.0, 45.0),
    ]
    assert bar.get_ylabel() == "n"
    assert {"0°", "40°N"} <= {label.get_text() for label in axes.get_yticklabels()}


def test_a_map_of_intervals_stands_beside_that_of_numbers() -> None:
    figure = drawn(Answer({"c": cells("s", "e"), "m": means(7.0, math.nan)}))
    numbers, widths = figure.axes[:2]
    assert numbers.collections[0].get_array().tolist() == [7.0]
    assert widths.collections[0].get_array().tolist() == [1.0]
    assert any("interval (95%)" in axes.get_ylabel().replace("\n", " ") for axes in figure.axes)
    assert "groups without m: 1 of 2" in words_of(figure)
    certain = drawn(Answer({"c": cells("s", "e"), "m": means(7.0, 8.0, likely=False)}))
    assert any("interval (certain)" in axes.get_ylabel().replace("\n", " ") for axes in certain.axes)
    assert len(drawn(Answer({"c": cells("s", "e"), "m": means(7.0, 8.0)}), intervals=False).axes) == 2


def test_few_buckets_of_cells_are_maps_side_by_side_in_the_same_colours() -> None:
    keys = {"c": cells("s", "e", "s", "e", "u"), "t": days(0, 0, 31, 31, 59)}
    figure = drawn(Answer({**keys, "m": means(1.0, 2.0, 3.0, 4.0, 9.0)}))
    maps = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in maps] == ["01 Jan 1970", "01 Feb 1970", "01 Mar 1970"]
    assert [axes.collections[0].get_array().tolist() for axes in maps] == [[1.0, 2.0], [3.0, 4.0], [9.0]]
    assert {axes.collections[0].get_clim() for axes in maps} == {(1.0, 9.0)}
    assert "intervals of m (95%): 1 wide in the median, 1 at most" in words_of(figure)


def test_many_buckets_of_cells_are_a_heat_map_from_south_to_north() -> None:
    ordinals = range(14)
    keys = {"c": cells(*(["u", "s"] * 14)), "t": days(*(day for day in ordinals for _ in range(2)))}
    axes = drawn(Answer({**keys, "n": counts(*range(28))})).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["s", "u"]
    first = axes.collections[0].get_paths()[0].get_extents()
    assert first.bounds == (0.0, 1.0, 1.0, 1.0)
    assert len(axes.collections[0].get_paths()) == 28


def test_cells_by_bins_are_maps_too_and_the_absent_have_one() -> None:
    bins = BinKeys(np.array([0.0, 1.0, math.nan]), np.array([1.0, 2.0, math.nan]))
    figure = drawn(Answer({"c": cells("s", "s", "s"), "BIN(x)": bins, "n": counts(1, 2, 3)}))
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == ["0..1", "1..2", "absent"]


def test_numbers_around_nothing_have_colours_that_part_there() -> None:
    keys = {"c": cells("s", "e")}
    (low, high) = drawn(Answer({**keys, "CORRELATION(x, y)": means(-0.2, 0.9)})).axes[0].collections[0].get_clim()
    assert (low, high) == (-0.9, 0.9)
    assert drawn(Answer({**keys, "MEAN(x)": means(-0.2, 0.9)})).axes[0].collections[0].get_clim() == (-0.2, 0.9)


def test_coasts_are_drawn_where_land_and_sea_meet() -> None:
    land = land_shares()
    if land is None:
        pytest.skip("global-land-mask is not installed")
    assert land.shape == (1_800, 3_600)
    assert land[900 + 100, 1_800 - 500] == 9  # 10 south, 50 west: Brazil
    assert land[900, 1_800] == 0  # the Gulf of Guinea
    shrinking = np.cos(np.radians(np.linspace(90, -90, 1_800)))
    assert 0.25 < np.average(land.mean(axis=1) / 9, weights=shrinking) < 0.35  # of the earth
    axes = new_figure((4.0, 4.0)).subplots()
    draw_coastlines(axes, -36.0, -75.0, 6.0, -34.0)
    (coast,) = axes.collections
    points = np.concatenate([path.vertices for path in coast.get_paths()])
    near_rio = np.hypot(points[:, 0] + 43.2, points[:, 1] + 23.0)
    assert near_rio.min() < 0.2
    for box in ((-0.5, -25.0, 0.5, -24.0), (-10.2, -50.2, -10.1, -50.1), (-90.0, -180.0, 90.0, 180.0)):
        draw_coastlines(axes, *box)  # all sea, all land, everything
    assert len(axes.collections) == 2


def test_without_the_land_mask_a_map_has_no_coasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synopsis.query.maps.land_shares", lambda: None)
    figure = picture(Answer({"c": cells("s", "e"), "n": counts(7, 8)}))
    assert len(figure.axes[0].collections) == 1


# --- figures ----------------------------------------------------------------------------------------------------------

KINDS = [
    "SELECT COUNT(*), MEAN(temp), MEDIAN(rain), CORRELATION(temp, rain), MAX(temp) - MIN(temp), SUM(half) / COUNT(*)",
    "SELECT BUCKET('1d'), MEAN(temp), COUNT(half), STD(temp) GROUP BY BUCKET('1d')",
    "SELECT BUCKET('1mo', 'Europe/Paris'), MEAN(temp) WHERE temp > MEAN(temp) GROUP BY BUCKET('1mo', 'Europe/Paris')",
    "SELECT CELL(2), MEAN(temp) GROUP BY CELL(2)",
    "SELECT CELL(3), BUCKET('1mo'), COVARIANCE(temp, half) GROUP BY CELL(3), BUCKET('1mo')",
    "SELECT CELL(3), BUCKET('1d'), MEAN(rain) GROUP BY CELL(3), BUCKET('1d')",
    "SELECT BIN(temp), COUNT(*), MEAN(half) GROUP BY BIN(temp)",
    "SELECT BIN(half, 5), COUNT(*) GROUP BY BIN(half, 5)",
    "SELECT BIN(temp, 5), BIN(half), COUNT(*) GROUP BY BIN(temp, 5), BIN(half)",
    "SELECT BUCKET('1w'), BIN(temp), COUNT(*) GROUP BY BUCKET('1w'), BIN(temp)",
    "SELECT CELL(2), BIN(half), COUNT(*) GROUP BY CELL(2), BIN(half)",
    "SELECT BUCKET('1h'), MEAN(temp) GROUP BY BUCKET('1h') ORDER BY MEAN(temp) DESC LIMIT 3",
    "SELECT a.c, a.m - b.m AS rise FROM (SELECT CELL(2) AS c, MEAN(temp) AS m GROUP BY CELL(2)) AS a "
    "JOIN (SELECT CELL(2) AS c, MEAN(temp) AS m WHERE rain > 0 GROUP BY CELL(2)) AS b USING (c)",
]


@pytest.mark.parametrize("question", KINDS)
def test_every_kind_of_answer_has_a_picture(question: str) -> None:
    figure = drawn(PLAIN.query(question), title="A title")
    assert figure.axes


def test_answers_from_strands_have_pictures_too() -> None:
    name = WEATHER.layout.features[0]
    asked = f"SELECT CELL(2), BUCKET('1mo'), MEAN(\"{name}\") GROUP BY CELL(2), BUCKET('1mo')"
    assert drawn(ask(WEATHER.strands, asked)).axes


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml")])
def test_pictures_are_written_as_pixels_or_as_shapes(suffix: str, begins: bytes) -> None:
    file = io.BytesIO()
    picture(Answer({"t": days(0, 1), "m": means(1.0, 2.0)}), title="m").savefig(file, format=suffix)
    assert file.getvalue().startswith(begins)
    assert len(file.getvalue()) > 2_000


def test_a_notebook_shows_the_picture_itself() -> None:
    shown: Any = picture(Answer({"t": days(0, 1), "m": means(1.0, 2.0)}))
    assert shown._repr_png_().startswith(b"\x89PNG")


def test_pyplot_never_hears_of_a_picture() -> None:
    program = """
import sys
import numpy as np
from synopsis.query.answer import Answer, CellKeys
from synopsis.query.pictures import picture
from synopsis.query.values import Values
numbers = np.arange(2.0)
answer = Answer({"c": CellKeys(np.array(["s", "e"])), "m": Values(numbers, numbers, numbers, np.zeros(2, np.int8))})
picture(answer, coastlines=False).canvas.draw()
assert "matplotlib.pyplot" not in sys.modules
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_picture_is_as_large_as_asked() -> None:
    answer = Answer({"t": days(0, 1), "m": means(1.0, 2.0)})
    assert drawn(answer, size=(3.0, 2.0)).get_size_inches().tolist() == [3.0, 2.0]


def test_what_was_answered_otherwise_than_asked_is_said() -> None:
    answer = Answer({"t": days(0, 1), "m": means(1.0, 2.0)}, notes=("by days, the finest that is kept",))
    assert "by days, the finest that is kept" in words_of(drawn(answer))


def test_dollars_and_long_names_are_written_as_they_are() -> None:
    name = "MEAN(price$) FILTER (WHERE location LIKE '6g%' AND cost$ > 3) AS the_mean_price_of_what_is_sold_there"
    (axes,) = drawn(Answer({"t": days(0, 1), name: means(1.0, 2.0)})).axes
    assert axes.get_ylabel().count(r"\$") == 2
    assert max(map(len, axes.get_ylabel().split("\n"))) <= 32


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"c": cells("s")}, "no statistic"),
        ({"t": days(), "n": counts()}, "no rows"),
        ({"t": days(0, 1), "m": means(math.nan, math.nan)}, "every value of m is undefined"),
        ({"n": counts(1, 2)}, "same keys"),
        ({"c": cells("s", "s"), "n": counts(1, 2)}, "same keys"),
        ({"c": cells("s"), "t": days(0), "b": BINS, "n": counts(1)}, "two axes"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_reason(columns: dict[str, Any], why: str) -> None:
    with pytest.raises(BadQuery, match=why):
        picture(Answer(columns))


def test_an_unknown_statistic_is_refused() -> None:
    with pytest.raises(BadQuery, match=r"no statistic 'MEAN\(y\)' in this answer; it has m"):
        picture(Answer({"t": days(0), "m": means(1.0)}), column="MEAN(y)")


def test_without_matplotlib_the_remedy_is_named() -> None:
    program = "import sys; sys.modules['matplotlib'] = None; import synopsis.query.pictures"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ModuleNotFoundError: pictures need matplotlib; run pip install 'synopsis[plot]'" in run.stderr
