"""Densities and forecasts: answers of many rows."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest
from tests.query.test_paths import PLAIN, Data
from tests.test_sketches import PATHS, STRANDS

from synopsis.core.errors import BadQuery, NotKept

TEMP, RAIN, HALF = PLAIN.values
LONG = Data(places=3, start="2023-01-01", hours=24 * 200, kept=0.1)


def density_of(values: np.ndarray, points: np.ndarray, bandwidth: float) -> np.ndarray:
    values = values[~np.isnan(values)]
    kernels = np.exp(-0.5 * ((points[:, None] - values) / bandwidth) ** 2) / (bandwidth * np.sqrt(2 * np.pi))
    return np.asarray(kernels.mean(axis=1))


@pytest.mark.parametrize(("feature", "values"), [("temp", TEMP), ("half", HALF)])
@pytest.mark.parametrize("bandwidth", [0.5, 2.0])
def test_a_density_is_that_of_all_rows_with_the_same_kernel(feature, values, bandwidth):
    answer = PATHS.query(f"SELECT DENSITY({feature}, {bandwidth}) AS d WHERE lat > 0")
    points, drawn = (answer.to_arrow()[name].to_numpy() for name in (feature, "d"))
    truth = density_of(values[PLAIN.latitude > 0], points, bandwidth)
    assert np.trapezoid(drawn, points) == pytest.approx(1.0, abs=0.01)
    assert np.trapezoid(np.abs(drawn - truth), points) < 0.12  # of 2 at most
    assert answer.rows[0]["d"].guarantee == "heuristic"


def test_a_density_of_several_parts_and_cells_has_a_curve_for_each_cell():
    answer = PATHS.query("SELECT CELL(1), DENSITY(temp) WHERE lat > 0 AND temp > 10 OR lat <= 0 GROUP BY CELL(1)")
    frame = answer.to_pandas()
    for _, curve in frame.groupby("CELL(1)"):
        assert np.trapezoid(curve["DENSITY(temp)"], curve["temp"]) == pytest.approx(1.0, abs=0.02)


def test_where_no_path_has_a_feature_and_rows_may_its_density_is_that_of_all_rows_there():
    scarce = Data(places=3, start="2023-01-01", hours=24 * 200, kept=0.02)
    days = "time >= '2023-03-05' AND time < '2023-03-09'"
    count = scarce.query(f"SELECT COUNT(half) AS n WHERE {days} AND temp BETWEEN 4 AND 6")["n"]
    assert (count.estimate, count.high > 0) == (0, True)
    curve, every = (
        scarce.query(f"SELECT DENSITY(half, 2) AS d WHERE {days}{condition}").to_pandas()
        for condition in (" AND temp BETWEEN 4 AND 6", "")
    )
    assert curve.equals(every)
    with pytest.raises(BadQuery, match="no row in scope has half"):
        scarce.query(f"SELECT DENSITY(half, 2) WHERE {days} AND temp > 99")


def test_what_has_no_density_is_refused_with_a_reason():
    with pytest.raises(BadQuery, match="no row in scope has temp"):
        PATHS.query("SELECT DENSITY(temp) WHERE lat > 80")
    with pytest.raises(NotKept, match="needs paths"):
        STRANDS.query("SELECT DENSITY(kelvin)")
    with pytest.raises(BadQuery, match="did you mean 'temp'"):
        PATHS.query("SELECT DENSITY(tmp)")


def test_a_forecast_goes_on_where_the_rows_end_and_has_intervals():
    answer = LONG.query("SELECT FORECAST(temp, '5d') AS f WHERE lat > -90")
    assert answer.columns == ["BUCKET('1d')", "f"]
    starts = [row["BUCKET('1d')"] for row in answer]
    assert len(starts) == 5
    assert all(two - one == timedelta(days=1) for one, two in pairwise(starts))
    assert starts[0].isoformat() == "2023-07-20T00:00:00+00:00"
    mean, spread = LONG.values[0].mean(), LONG.values[0].std()
    for row in answer:
        assert abs(row["f"].estimate - mean) < spread
        assert row["f"].p95[0] < row["f"].low < row["f"].estimate < row["f"].high < row["f"].p95[1]
        assert row["f"].guarantee == "heuristic"
    assert "of the variance one bucket ahead" in answer.notes[0]


def test_every_cell_has_a_forecast_of_its_own_unless_it_has_too_little_to_go_on():
    answer = LONG.query("SELECT CELL(1), FORECAST(temp, '2d') AS f WHERE time < '2023-03-01' GROUP BY CELL(1)")
    cells = {row["CELL(1)"] for row in answer}
    assert len(answer) == 2 * len(cells) > 0
    assert answer.rows[0]["BUCKET('1d')"].isoformat() == "2023-03-01T00:00:00+00:00"


def test_cells_that_are_asked_about_together_look_at_each_other_for_the_first_buckets():
    together = LONG.query("SELECT CELL(4), FORECAST(temp, '10d') AS f GROUP BY CELL(4)")
    cells = sorted({row["CELL(4)"] for row in together})
    assert together.notes[1] == f"the first 7 buckets of each cell look at the latest of {len(cells)} places"
    for cell in cells:
        alone = LONG.query(f"SELECT FORECAST(temp, '10d') AS f WHERE location LIKE '{cell}%'")
        pairs = [
            (row["f"].estimate, other["f"].estimate)
            for row, other in zip((row for row in together if row["CELL(4)"] == cell), alone, strict=True)
        ]
        assert any(one != pytest.approx(other, rel=1e-6) for one, other in pairs[:7])
        assert not any("places" in note for note in alone.notes)


def test_of_many_cells_larger_ones_are_looked_at():
    many = Data(places=14, start="2023-01-01", hours=24 * 60, kept=0.1)
    answer = many.query("SELECT CELL(4), FORECAST(temp, '2d') AS f GROUP BY CELL(4)")
    cells = {row["CELL(4)"] for row in answer}
    assert len(cells) > 8
    known = [int(note.split()[-2]) for note in answer.notes if note.endswith("places")]
    assert known == [max(size for length in range(5) if (size := len({cell[:length] for cell in cells})) <= 8)]


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("SELECT FORECAST(temp, '7d') WHERE time < '2023-01-05'", "needs .* buckets"),
        ("SELECT FORECAST(temp, '7d') WHERE lat > 80", "needs .* buckets"),
        ("SELECT FORECAST(temp, '9y')", "more than 1,000"),
        ("SELECT FORECAST(temp, '2y')", "tell at most 100 ahead"),
        ("SELECT FORECAST(temp, '1d', '1h')", "counts rows by day; forecast buckets that are no shorter"),
    ],
)
def test_a_forecast_beyond_reason_is_refused_with_a_reason(question, why):
    with pytest.raises(BadQuery, match=why):
        LONG.query(question)
