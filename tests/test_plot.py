"""The two charts of the paper, from sketches of generated weather."""

from __future__ import annotations

import math
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.query.test_paths import Data

import synopsis as syn
from synopsis.core.errors import BadQuery, UnknownFeature
from synopsis.grid import geohash
from synopsis.query.relation import Relation
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.sketches import Sketch

pytest.importorskip("matplotlib")
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from synopsis import plot

SPEC = syn.Spec(lat="lat", lon="lon", time="time", features=["temp", "rain", "half"])


def sketch(data: Data) -> Sketch:
    return Sketch(Relation(Strands.empty(data.layout), data.summary), SPEC)


YEAR = Data(places=2, start="2023-11-20", hours=13 * 30, step_us=86_400_000_000)
CLIMATE = sketch(YEAR)
REGION = sketch(Data(places=60, hours=48))
PLACE = (float(YEAR.latitude[0]), float(YEAR.longitude[0]))
CELL = str(geohash.to_text(geohash.encode(*PLACE, 20), 4))


def months(where: str = "true", of: Sketch = CLIMATE) -> Any:
    return of.query(
        "SELECT BUCKET('1mo') AS month, MAX(temp) AS high, MIN(temp) AS low, MEAN(temp) AS mean, SUM(rain) AS sum "
        f"WHERE {where} AND time >= '2024-01-01' AND time < '2025-01-01' GROUP BY BUCKET('1mo')"
    )


def line(figure: Figure, label: str) -> np.ndarray[Any, Any]:
    (found,) = (each for each in figure.axes[0].lines if each.get_label() == label)
    return np.asarray(found.get_ydata())


# --- climate ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [CELL, CELL.upper(), PLACE, f"NEAR({PLACE[0]}, {PLACE[1]}, 10)"])
def test_a_climate_chart_shows_what_the_months_of_the_place_say(place: str | tuple[float, float]) -> None:
    figure = plot.climate(CLIMATE, place, 2024, "temp", "rain")
    answer = months(f"location LIKE '{CELL}%'")
    assert len(answer) == 12
    for name in ("high", "low", "mean"):
        np.testing.assert_allclose(line(figure, name), answer.column(name).estimate)
    bars = [bar.get_height() for bar in figure.axes[1].patches]
    np.testing.assert_allclose(bars, answer.column("sum").estimate)
    at_middles = [
        each.get_segments()
        for each in figure.axes[0].collections
        if isinstance(each, LineCollection) and each.get_segments() and each.get_segments()[0][0, 0] == 1.0
    ]
    certain, likely = (np.array(segments)[:, :, 1].T for segments in at_middles)
    np.testing.assert_allclose(certain, (answer.column("mean").low, answer.column("mean").high))
    np.testing.assert_allclose(likely, answer.column("mean").p95.T)


def test_the_low_and_the_high_bound_a_band() -> None:
    figure = plot.climate(CLIMATE, CELL, 2024, "temp")
    (band,) = (each for each in figure.axes[0].collections if isinstance(each, PolyCollection))
    corners = band.get_paths()[0].vertices
    answer = months(f"location LIKE '{CELL}%'")
    assert corners[:, 1].max() == answer.column("high").estimate.max()
    assert corners[:, 1].min() == answer.column("low").estimate.min()
    assert len(figure.axes) == 1  # without precipitation


def test_months_without_rows_are_gaps() -> None:
    figure = plot.climate(CLIMATE, CELL, 2023, "temp", "rain")
    assert np.isnan(line(figure, "mean")).tolist() == [True] * 10 + [False] * 2
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()][:3] == ["Jan", "Feb", "Mar"]


def test_a_place_without_rain_has_bars_of_no_height() -> None:
    figure = plot.climate(CLIMATE, f"location LIKE '{CELL}%' AND rain = 0", 2024, "temp", "rain")
    assert {bar.get_height() for bar in figure.axes[1].patches} == {0.0}
    assert figure.axes[1].get_yticks().tolist() == [0.0]


def test_years_are_not_drawn_as_months() -> None:
    yearly = Sketch(Relation(Strands.empty(Layout(("temp",), 20, "1y"))), SPEC)
    with pytest.raises(BadQuery, match="1y"):
        plot.climate(yearly, CELL, 2024, "temp")


def test_units_come_from_the_names_of_features_or_as_they_are_given() -> None:
    figure = plot.climate(CLIMATE, CELL, 2024, "temp", "rain", units={"TEMP": "°F", "rain": "mm"})
    assert figure.axes[0].get_ylabel() == "temp (°F)"
    assert figure.axes[1].get_ylabel() == "sum of rain (mm)"
    assert figure.get_suptitle() == f"{CELL}, 2024"


def test_a_position_means_the_nearest_cell_with_data() -> None:
    away = (PLACE[0] + 1.0, PLACE[1])
    figure = plot.climate(CLIMATE, away, 2024, "temp")
    np.testing.assert_allclose(line(figure, "mean"), months(f"location LIKE '{CELL}%'").column("mean").estimate)
    assert figure.get_suptitle().startswith(f"{CELL} (nearest to ")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((CELL, 2019, "temp"), rf"no rows at {CELL} in 2019; there are some from 2023 to 2024"),
        (("zzzz", 2024, "temp"), "no rows at zzzz; name another place"),
        (("", 2024, "temp"), "the place is empty"),
        (("snow > 3", 2024, "temp"), "^no feature 'snow'"),
        (((PLACE[0], PLACE[1]), 1999, "temp"), "no data of 1999 within 800 km"),
        (((-89.0, 0.0), 2024, "temp"), "no data of 2024 within 800 km"),
        (((120.0, 0.0), 2024, "temp"), "the latitude comes first"),
        (((1.0, 2.0, 3.0), 2024, "temp"), "a place is a text, or a latitude and a longitude"),
        ((CELL, "2024", "temp"), "year is a whole number such as 2025, not '2024'"),
        ((CELL, 0, "temp"), "year is a whole number"),
    ],
)
def test_a_chart_of_nothing_is_refused_with_a_reason(arguments: tuple[Any, ...], why: str) -> None:
    with pytest.raises(BadQuery, match=why):
        plot.climate(CLIMATE, *arguments)


@pytest.mark.parametrize("names", [("temperature", None), ("temp", "snow"), ("temp_c", "rain")])
def test_an_unknown_feature_is_named(names: tuple[str, str | None]) -> None:
    with pytest.raises(UnknownFeature, match="this sketch keeps temp, rain, half"):
        plot.climate(CLIMATE, CELL, 2024, *names)


# --- map --------------------------------------------------------------------------------------------------------------


def test_a_map_has_contours_of_one_statistic_on_the_colours_of_another() -> None:
    figure = plot.map(REGION, "MEAN(temp)", "CORRELATION(temp, half)", cell=3, coastlines=False, units={"temp": "°C"})
    axes, bar = figure.axes
    answer = REGION.query("SELECT CELL(3), MEAN(temp) AS m, CORRELATION(temp, half) AS r GROUP BY CELL(3)")
    shades, lines = axes.collections
    assert np.asarray(lines.levels).min() >= answer.column("m").estimate.min()
    assert np.asarray(lines.levels).max() <= answer.column("m").estimate.max()
    assert abs(np.asarray(shades.levels)).max() <= 1.2
    assert bar.get_ylabel() == "CORRELATION(temp, half)"
    assert figure.legends[0].get_texts()[0].get_text() == "MEAN(temp) (°C)"
    centres = np.stack(axes.lines[0].get_data(), axis=1)
    south, west, north, east = geohash.decode(geohash.from_text(answer.column("CELL(3)").texts), 15)
    expected = np.stack(((west + east) / 2, (south + north) / 2), axis=1)
    assert sorted(map(tuple, centres)) == sorted(map(tuple, expected))


def test_one_statistic_alone_is_drawn_in_colours() -> None:
    figure = plot.map(REGION, "MEAN(temp)", where="lat > -40", coastlines=False, title="Warmth")
    assert len(figure.axes[0].collections) == 1
    assert figure.axes[1].get_ylabel() == "MEAN(temp)"
    assert figure.get_suptitle() == "Warmth"


def test_a_statistic_that_is_the_same_everywhere_is_one_colour() -> None:
    figure = plot.map(REGION, "COUNT(*) / COUNT(*)", "COUNT(*) - COUNT(*)", coastlines=False)
    assert len(figure.axes[0].collections) == 1


def test_nothing_is_drawn_far_from_data() -> None:
    texts = ["s0", "s1", "s2", "s3", "u0"]
    edges = geohash.decode(geohash.from_text(texts), 10)
    numbers = plot.Drawn("x", np.arange(5.0), np.full((2, 5), np.nan), np.full((2, 5), np.nan))
    triangles, known = plot._triangles(edges, numbers)
    assert known.all()
    used = triangles.get_masked_triangles()
    assert 0 < len(used) < len(triangles.triangles)
    assert 4 not in used


def test_contours_stay_in_the_range_of_their_numbers() -> None:
    across, up = (each.ravel() for each in np.meshgrid(np.arange(8.0), np.arange(8.0)))
    numbers = np.where((across == 4) & (up == 4), 1.0, 0.0)
    finer, found = plot._smooth(plot.Triangulation(across, up), numbers)
    assert finer.x.size > 10 * across.size
    assert (found.min(), found.max()) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"statistic": "MEAN(temp)", "where": "time > '2030-01-01'"}, "no rows there"),
        ({"statistic": "MEAN(temp)", "where": f"location LIKE '{CELL}%'"}, "no rows there"),
        ({"statistic": "MEAN(temp)", "cell": 1, "where": "lat > 50"}, "three cells that do not lie on a line"),
        ({"statistic": "MEAN(snow)"}, "^no feature 'snow'"),
        ({"statistic": "temp"}, "temp"),
    ],
)
def test_a_map_of_nothing_is_refused_with_a_reason(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(BadQuery, match=why):
        plot.map(REGION, **arguments, coastlines=False)


# --- both -------------------------------------------------------------------------------------------------------------


def test_files_are_written_by_their_suffix_and_without_one_as_pixels_and_as_shapes(tmp_path: Path) -> None:
    plot.climate(CLIMATE, CELL, 2024, "temp", "rain", to=tmp_path / "one.png")
    plot.map(REGION, "MEAN(temp)", "STD(temp)", to=str(tmp_path / "two"), coastlines=False)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one.png", "two.png", "two.svg"]
    for name in ("one.png", "two.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG\r\n")
    assert ElementTree.parse(tmp_path / "two.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_what_the_sketch_took_and_what_the_drawing_took_are_told_apart() -> None:
    for figure in (plot.climate(CLIMATE, CELL, 2024, "temp"), plot.map(REGION, "MEAN(temp)", coastlines=False)):
        seconds: Any = figure.synopsis_seconds  # type: ignore[attr-defined]  # ours, on their figure
        assert seconds.data > 0
        assert seconds.rendering > 0
        assert math.isfinite(sum(seconds))


def test_pyplot_never_hears_of_a_plot() -> None:
    program = "import sys, synopsis.plot; assert 'matplotlib.pyplot' not in sys.modules"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_without_matplotlib_the_remedy_is_named() -> None:
    program = "import sys; sys.modules['matplotlib'] = None; import synopsis.plot"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "run pip install 'synopsis[plot]'" in run.stderr
