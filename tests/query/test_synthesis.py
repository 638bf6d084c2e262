"""Synthetic rows: their places, days, distributions and joint structure are those of the rows they stand for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from tests.query.test_evaluate import WEATHER
from tests.query.test_paths import KEPT, PLAIN
from tests.test_sketches import MOVING, PATHS, SPEC, STRANDS

from synopsis.core.errors import BadQuery, UnknownFeature
from synopsis.query.relation import Relation
from synopsis.sketch.strands import Strands
from synopsis.sketches import Sketch

ROWS = 20_000
SILENT = Sketch(Relation(Strands.empty(KEPT[0.0].layout), KEPT[0.0].summary), SPEC)
EVERY = Sketch(Relation(Strands.empty(KEPT[1.0].layout), KEPT[1.0].summary), SPEC)


def columns(table: pa.Table, *names: str) -> list[np.ndarray]:
    return [table[name].to_numpy() for name in names]


@pytest.mark.parametrize("sketch", [PATHS, SILENT, EVERY], ids=["some paths", "no paths", "all paths"])
def test_marginals_missing_values_and_places_are_those_of_the_rows(sketch):
    table = sketch.synthesize(rows=ROWS, seed=1)
    assert table.column_names == ["lat", "lon", "time", "temp", "rain", "half"]
    assert table.num_rows == ROWS
    for name, real in zip(("temp", "rain", "half"), PLAIN.values, strict=True):
        (values,) = columns(table, name)
        assert np.isnan(values).mean() == pytest.approx(np.isnan(real).mean(), abs=0.02)
        spread = np.nanstd(real)
        assert np.nanmean(values) == pytest.approx(np.nanmean(real), abs=0.1 * spread)
        shares = [0.1, 0.25, 0.5, 0.75, 0.9]
        assert np.nanquantile(values, shares) == pytest.approx(np.nanquantile(real, shares), abs=0.15 * spread)
        assert np.nanmin(values) >= np.nanmin(real) - 1e-9
        assert np.nanmax(values) <= np.nanmax(real) + 1e-9
    places, counts = np.unique(np.stack(columns(table, "lat", "lon")), axis=1, return_counts=True)
    assert places.shape[1] == 5
    assert counts == pytest.approx(np.full(5, ROWS / 5), rel=0.02)
    days = np.unique(columns(table, "time")[0].astype("datetime64[D]"))
    assert days.size == 30


def test_paths_of_a_place_are_drawn_alike_whatever_their_day():
    """Days have all the same rows, but not the same paths: were they weighed by day, days would be drawn alike."""
    paths = PATHS.to_arrow()
    drawn = PATHS.synthesize(rows=10 * paths.num_rows, seed=3)
    (when, lat), (day, own) = columns(drawn, "time", "lat"), columns(paths, "day", "lat")
    known, kept = np.unique(np.stack((own, day.astype("datetime64[D]").astype(float))), axis=1, return_counts=True)
    found, rows = np.unique(np.stack((lat, when.astype("datetime64[D]").astype(float))), axis=1, return_counts=True)
    february = known[1] >= np.datetime64("2024-02-01", "D").astype(float)  # months have bins of their own
    place = np.unique(np.stack((known[0], february)), axis=1, return_inverse=True)[1].reshape(-1)
    assert kept.min() < kept.max()
    assert np.array_equal(known, found)
    assert rows == pytest.approx(kept * (np.bincount(place, rows) / np.bincount(place, kept))[place], abs=2)


def test_features_go_together_as_they_do_in_the_rows():
    table = EVERY.synthesize(rows=ROWS, seed=2)
    values = np.stack(columns(table, "temp", "rain", "half"))
    both, real = ~np.isnan(values[2]), ~np.isnan(PLAIN.values[2])
    assert np.corrcoef(values[:, both])[0, 2] == pytest.approx(np.corrcoef(PLAIN.values[:, real])[0, 2], abs=0.02)


def test_a_small_set_is_more_like_all_rows_than_a_random_one():
    """Root mean squares over seeds: of a random set of real rows, what chance leaves."""
    size = EVERY.rows // 10
    complete = PLAIN.values[:, ~np.isnan(PLAIN.values[2])]
    for of in (lambda x: x[0], lambda x: x[1], lambda x: x[0] * x[2]):
        truth, off = of(complete).mean(), []
        for seed in range(12):
            values = np.stack(columns(EVERY.synthesize(rows=size, seed=seed), "temp", "rain", "half"))
            off.append(of(values[:, ~np.isnan(values[2])]).mean() - truth)
        chance = of(complete).std() / np.sqrt(size * complete.shape[1] / EVERY.rows)
        assert np.sqrt(np.mean(np.square(off))) < 0.75 * chance


def test_rows_of_few_features_are_more_like_all_rows_in_these():
    """How far means of sets lie apart, from seed to seed."""
    size, apart = EVERY.rows // 10, {}
    for features in (("temp",), None):
        drawn = (EVERY.synthesize(rows=size, seed=seed, features=features) for seed in range(12))
        apart[features] = np.std([columns(table, "temp")[0].mean() for table in drawn])
    assert apart[("temp",)] < 0.6 * apart[None]


@pytest.mark.parametrize(
    ("sketch", "features"),
    [
        (PATHS, ["half", "temp"]),
        (SILENT, ["half", "temp"]),
        (EVERY, ["rain"]),
        (MOVING, ["speed"]),
        (STRANDS, ["alone", "kelvin"]),
    ],
    ids=["some paths", "no paths", "all paths", "moving", "strands"],
)
def test_rows_have_place_and_time_and_the_features_asked_for_in_their_order(sketch, features):
    rows, whole = sketch.synthesize(rows=3_000, seed=1, features=features), sketch.synthesize(rows=3_000, seed=1)
    assert rows.column_names == [*whole.column_names[:3], *features]
    for name in features:
        few, every = (columns(table, name)[0] for table in (rows, whole))
        assert np.isnan(few).mean() == pytest.approx(np.isnan(every).mean(), abs=0.04)
        assert np.nanmean(few) == pytest.approx(np.nanmean(every), abs=0.1 * np.nanstd(every))
        assert np.nanstd(few) == pytest.approx(np.nanstd(every), rel=0.1)


def test_a_condition_may_be_on_features_that_are_not_asked_for():
    temp, rain, half = PLAIN.values
    for where, real in (
        ("half > 38", half > 38),
        ("half IS NULL", np.isnan(half)),
        ("half > 42 OR rain > 1", (half > 42) | (rain > 1)),
    ):
        table = EVERY.synthesize(rows=2_000, where=where, features=["temp"])
        assert table.column_names == ["lat", "lon", "time", "temp"]
        assert columns(table, "temp")[0].mean() == pytest.approx(temp[real].mean(), abs=0.1 * temp.std())
    assert temp[half > 38].mean() < temp.mean() - temp.std()  # another condition's rows would be told apart


def test_a_part_of_few_features_is_drawn_as_these_features_are():
    part = PATHS.select("SELECT temp, half").synthesize(rows=400, seed=3)
    assert part.equals(PATHS.synthesize(rows=400, seed=3, features=["temp", "half"]))


def test_no_path_is_drawn_twice_before_all_were():
    """Of one path a day and place, there is one row at most."""
    paths = PATHS.to_arrow()
    drawn = PATHS.synthesize(rows=paths.num_rows // 2, seed=5)
    (when, lat), (day, own) = columns(drawn, "time", "lat"), columns(paths, "day", "lat")
    kept = Counter(zip(own, day.astype("datetime64[D]").tolist(), strict=True))
    rows = Counter(zip(lat, when.astype("datetime64[D]").tolist(), strict=True))
    assert all(number <= kept[key] for key, number in rows.items())


@pytest.mark.parametrize("sketch", [PATHS, SILENT, EVERY, MOVING], ids=["some", "none", "all", "moving"])
@pytest.mark.parametrize("rows", [1, 2, 7, 300])
def test_any_number_of_rows_can_be_chosen(sketch, rows):
    assert sketch.synthesize(rows=rows, seed=6).num_rows == rows


def test_every_row_fulfils_the_condition_and_lies_in_the_scope():
    where = (
        "lat > 0 AND (temp > 20 OR rain > 2) AND time >= '2024-01-25T06:00' AND time < '2024-02-03' AND half IS NULL"
    )
    for sketch in (PATHS, SILENT):
        table = sketch.synthesize(rows=500, where=where)
        lat, temp, rain, half, time = columns(table, "lat", "temp", "rain", "half", "time")
        assert (lat > 0).all()
        assert ((temp > 20) | (rain > 2)).all()
        assert np.isnan(half).all()
        assert time.min() >= np.datetime64("2024-01-25T06:00")
        assert time.max() < np.datetime64("2024-02-03")
    boxed = MOVING.synthesize(rows=500, where="BOX(-20, 170, 0, -170) AND speed > 20")
    lat, lon, speed = columns(boxed, "lat", "lon", "speed")
    assert ((lat >= -20) & (lat <= 0) & ((lon >= 170) | (lon <= -170)) & (speed > 20)).all()


def test_a_share_is_of_the_rows_that_the_condition_selects():
    count = PATHS.query("SELECT COUNT(*) AS n WHERE temp > 15")["n"].estimate
    assert PATHS.synthesize(share=0.1, where="temp > 15").num_rows == pytest.approx(0.1 * count, rel=0.05)
    assert PATHS.synthesize(share=2.0).num_rows == 2 * PATHS.rows
    assert PATHS.synthesize(rows=0).num_rows == 0


def test_the_same_seed_draws_the_same_rows_and_another_others():
    one, same, other = (PATHS.synthesize(rows=200, seed=seed) for seed in (3, 3, 4))
    assert one.equals(same)
    assert not one.equals(other)


def test_strands_are_drawn_from_their_moments_within_their_extremes():
    table = STRANDS.synthesize(rows=ROWS)
    for name in ("kelvin", "depth", "alone"):
        real, (values,) = WEATHER.feature(name), columns(table, name)
        assert np.nanmean(values) == pytest.approx(np.nanmean(real), abs=0.05 * np.nanstd(real))
        assert np.nanstd(values) == pytest.approx(np.nanstd(real), rel=0.15)
        assert np.nanmin(values) >= np.nanmin(real)
        assert np.isnan(values).mean() == pytest.approx(np.isnan(real).mean(), abs=0.02)


def test_a_stream_of_any_length_comes_in_batches():
    reader = PATHS.synthetic(rows=200_000)
    sizes = [batch.num_rows for batch in reader]
    assert sum(sizes) == 200_000
    assert max(sizes) <= 65_536


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "rows=n or share"),
        ({"rows": 3, "share": 0.1}, "one of them"),
        ({"rows": -1}, "not negative"),
        ({"rows": 3, "features": []}, "name one or more of temp, rain, half"),
        ({"rows": 3, "features": ["temp", "rain", "temp"]}, "'temp' twice"),
        ({"rows": 3, "where": "lat > 80"}, "nothing to draw from"),
        ({"rows": 3, "where": "temp >"}, "something is missing"),
        ({"rows": 3, "where": "tmp > 3"}, "did you mean 'temp'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_reason(options, why):
    with pytest.raises(BadQuery, match=why):
        PATHS.synthesize(**options)
    with pytest.raises(UnknownFeature, match="no feature 'tmp'"):
        PATHS.synthetic(rows=3, features=["temp", "tmp"])
