"""Shares, probabilities, outliers and predictions, beside all rows."""

from __future__ import annotations

import numpy as np
import pytest
from tests.query.test_evaluate import WEATHER
from tests.query.test_paths import KEPT, PLAIN, Data, holds

from synopsis.core.errors import BadQuery
from synopsis.query.evaluate import ask

TEMP, RAIN, HALF = PLAIN.values


def test_quartiles_and_deciles_are_quantiles_with_names():
    answer = PLAIN.query("SELECT QUARTILES(temp) AS q, DECILES(rain) WHERE lat > 0")
    assert answer.columns == [
        *(f"q {share}" for share in (0.25, 0.5, 0.75)),
        *(f"DECILES(rain) {tenth / 10}" for tenth in range(1, 10)),
    ]
    assert answer["q 0.75"] == PLAIN.query("SELECT QUANTILE(temp, 0.75) AS q WHERE lat > 0")["q"]


@pytest.mark.parametrize("data", [PLAIN, KEPT[0.0], KEPT[1.0]], ids=["some paths", "no paths", "all paths"])
@pytest.mark.parametrize(
    ("condition", "where"),
    [
        ("temp > 12", "lat > -90"),
        ("temp BETWEEN 10 AND 15 OR half IS NULL", "lat > 0"),
        ("lat > 0", "temp > 12"),
        ("NOT (lat > 0 AND rain > 0)", "lat > -90"),
        ("temp > 999", "lat > -90"),
        ("half > 30", "temp < 999"),
    ],
)
def test_a_probability_is_certain_and_lies_between_0_and_1(data, condition, where):
    value = data.query(f"SELECT PROBABILITY({condition}) AS p WHERE {where}")["p"]
    ((truth,),) = data.truth(f"count(*) FILTER (WHERE {condition}) / count(*)", where)
    assert value.guarantee in ("exact", "certain")
    assert holds(value, truth)
    assert 0.0 <= value.low <= value.high <= 1.0


def test_a_probability_of_nothing_is_undefined_and_strands_know_places_and_times():
    assert PLAIN.query("SELECT PROBABILITY(temp > 3) AS p WHERE lat > 80")["p"].estimate is None
    exact = ask(WEATHER.strands, "SELECT PROBABILITY(location LIKE 'u%') AS p")["p"]
    truth = np.mean([text.startswith("u") for text in WEATHER.geohashes(1).tolist()])
    assert exact.estimate == pytest.approx(truth)
    assert exact.guarantee == "exact"


@pytest.mark.parametrize(("feature", "values"), [("temp", TEMP), ("rain", RAIN), ("half", HALF)])
@pytest.mark.parametrize("away", [1.0, 2.0, 3.5])
def test_outliers_are_never_more_than_chebyshev_says_and_about_as_many_as_there_are(feature, values, away):
    present = values[~np.isnan(values)]
    truth = int((np.abs(present - present.mean()) > away * present.std()).sum())
    value = PLAIN.query(f"SELECT OUTLIERS({feature}, {away}) AS o")["o"]
    assert holds(value, truth)
    assert value.high <= present.size / away**2
    assert abs(value.estimate - truth) <= max(0.02 * present.size, 5)


def test_outliers_of_several_parts_are_those_of_their_common_mean():
    value = PLAIN.query("SELECT OUTLIERS(temp, 2) AS o WHERE lat > 0 AND temp > 5 OR lat <= 0 AND temp < 20")["o"]
    rows = TEMP[((PLAIN.latitude > 0) & (TEMP > 5)) | ((PLAIN.latitude <= 0) & (TEMP < 20))]
    assert holds(value, int((np.abs(rows - rows.mean()) > 2 * rows.std()).sum()))


@pytest.mark.parametrize("where", ["rain = 0.1", "rain = 0.1 AND temp > 5", "rain <= 0.1 AND lat > 0"])
def test_where_all_values_are_one_none_is_an_outlier(where):
    """Also where rounding puts their mean beside them, as that of many 0.1."""
    data = Data()
    data.values[1] = np.where(data.values[1] == 0.0, 0.1, data.values[1] + 1.1)
    answer = data.remade().query(f"SELECT OUTLIERS(rain, 1) AS o, COUNT(*) AS n WHERE {where}")
    assert answer["n"].estimate > 100
    assert answer["o"].estimate == 0


def test_outliers_of_strands_lie_between_what_extremes_show_and_what_chebyshev_allows():
    for feature in ("kelvin", "rain"):
        values = WEATHER.feature(feature)
        values = values[~np.isnan(values)]
        truth = int((np.abs(values - values.mean()) > 2 * values.std()).sum())
        value = ask(WEATHER.strands, f"SELECT OUTLIERS({feature}, 2) AS o")["o"]
        assert value.low <= truth <= value.high
    assert ask(WEATHER.strands, "SELECT OUTLIERS(rain, 2) AS o WHERE time < '1900-01-01'")["o"].high == 0


def test_a_prediction_is_that_of_least_squares_and_says_how_good_it_is():
    exact = ask(WEATHER.strands, "SELECT PREDICT(kelvin, depth = 3) AS p")
    one, two = WEATHER.feature("kelvin"), WEATHER.feature("depth")
    both = ~np.isnan(one) & ~np.isnan(two)
    correlation = np.corrcoef(one[both], two[both])[0, 1]
    slope = correlation * np.nanstd(one) / np.nanstd(two)
    assert exact["p"].estimate == pytest.approx(np.nanmean(one) + slope * (3 - np.nanmean(two)))
    assert exact["p"].guarantee == "heuristic"
    assert f"explains {correlation**2:.0%}" in exact.notes[0]


def test_a_prediction_from_paths_is_near_that_of_all_rows_and_its_interval_holds_nineteen_in_twenty():
    present = ~np.isnan(HALF)
    matrix = np.stack((np.ones(present.sum()), TEMP[present], RAIN[present]), axis=1)
    weights, *_ = np.linalg.lstsq(matrix, HALF[present], rcond=None)
    answer = PLAIN.query("SELECT PREDICT(half, temp = 20, rain = 1) AS p")
    assert answer["p"].estimate == pytest.approx(weights @ [1, 20, 1], abs=0.5)
    held = []
    for temp in (8.0, 12.0, 16.0, 20.0, 24.0):
        value = PLAIN.query(f"SELECT PREDICT(half, temp = {temp}) AS p")["p"]
        near = HALF[present & (np.abs(TEMP - temp) < 0.5)]
        held.append([((near >= low) & (near <= high)).mean() for low, high in (value.p95, (value.low, value.high))])
    at_95, at_90 = np.mean(held, axis=0)
    assert at_95 > 0.93
    assert 0.87 < at_90 < at_95


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("SELECT PREDICT(temp, rain = 3) WHERE lat > 80", "too little to go on: 1 predictors take at least 3 rows"),
        ("SELECT PREDICT(temp, rain = 3) WHERE rain = 0", "does not vary"),
        ("SELECT PREDICT(temp, TEMP = 3)", "takes every feature once"),
        ("SELECT PREDICT(temp, rian = 3)", "did you mean 'rain'"),
        ("SELECT PREDICT(temp, rain)", "the values of others, as in PREDICT"),
        ("SELECT OUTLIERS(temp, 0)", "above 0"),
        ("SELECT PROBABILITY(temp)", "not a condition"),
        ("SELECT PROBABILITY(temp > MEAN(temp))", "statistics to compare with go in WHERE"),
        ("SELECT QUARTILES(temp, rain)", "takes one feature"),
        ("SELECT DENSITY(temp, 1e308)", "a bandwidth of 1e\\+308 reaches beyond the largest number"),
    ],
)
def test_what_has_too_little_to_go_on_is_refused_with_a_reason(question, why):
    with pytest.raises(BadQuery, match=why):
        PLAIN.query(question)


def test_groups_without_enough_rows_have_no_prediction_and_the_others_do():
    answer = PLAIN.query("SELECT CELL(1) AS c, PREDICT(half, temp = 20) AS p WHERE lat > 0 OR temp > 90 GROUP BY c")
    north = {cell for (cell,) in PLAIN.truth("DISTINCT cell[1:1]", "lat > 0")}
    assert {row["c"] for row in answer if row["p"].estimate is not None} == north
    assert len(answer) > len(north)
    assert "medians of all groups" in answer.notes[0]
