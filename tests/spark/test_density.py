"""Density on Spark: the bins that come from sketches are those of the rows, region by region."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from synopsis.core.errors import NotNumeric, UnknownColumn
from synopsis.grid.quantizer import Quantizer
from synopsis.spark.density import fit_quantizers, present

pytestmark = pytest.mark.spark

ROWS = 12_000


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    random = np.random.default_rng(4)
    north = np.arange(ROWS) % 2 == 0
    table = pd.DataFrame(
        {
            "zone": np.where(north, "north", "south"),
            "temperature": np.where(north, random.normal(2.0, 4.0, ROWS), random.normal(24.0, 2.0, ROWS)),
            "rain": np.where(random.random(ROWS) < 0.9, 0.0, random.exponential(3.0, ROWS)),
            "humidity": random.integers(20, 101, ROWS).astype(np.int32),
            "constant": np.float32(7.0),
            "nothing": np.full(ROWS, np.nan),
        }
    )
    table.loc[:1, "zone"] = "islet"
    table.loc[2:3, "zone"] = None
    table.loc[[4, 5, 6], "temperature"] = [np.nan, np.inf, -np.inf]
    return table


@pytest.fixture(scope="module")
def frame(spark: SparkSession, table: pd.DataFrame) -> DataFrame:
    return spark.createDataFrame(table).cache()


FEATURES = ["temperature", "rain", "humidity", "constant", "nothing"]


@pytest.fixture(scope="module")
def fitted(frame: DataFrame) -> dict[object, dict[str, Quantizer]]:
    return fit_quantizers(frame, FEATURES, bins=15, region="zone")


def test_every_region_and_the_whole_have_bins_for_every_feature(fitted):
    assert set(fitted) == {None, "north", "south", "islet"}
    assert all(list(by_feature) == FEATURES for by_feature in fitted.values())


@pytest.mark.parametrize("zone", ["north", "south", None])
def test_bins_hold_equal_mass_in_their_region(fitted, table, zone):
    rows = table if zone is None else table[table.zone == zone]
    values = rows.temperature.to_numpy()[np.isfinite(rows.temperature)]
    quantizer = fitted[zone]["temperature"]
    shares = np.bincount(quantizer.codes(values), minlength=15) / values.size
    assert quantizer.bins == 15
    assert np.abs(shares * 15 - 1.0).max() < 0.25


def test_regions_specialise(fitted):
    assert fitted["north"]["temperature"].edges[-1] < fitted["south"]["temperature"].edges[0]


def test_extremes_are_exact_and_leave_out_what_is_not_finite(fitted, table):
    finite = table.temperature[np.isfinite(table.temperature)]
    assert (fitted[None]["temperature"].low, fitted[None]["temperature"].high) == (finite.min(), finite.max())


def test_no_rain_is_an_atom_everywhere(fitted):
    for zone in ("north", "south", None):
        quantizer = fitted[zone]["rain"]
        assert quantizer.atoms.tolist() == [0.0]
        assert quantizer.bins == 15
        assert quantizer.codes([0.0, 5e-324]).tolist() == [0, 1]


def test_integers_are_never_split(fitted):
    edges = fitted[None]["humidity"].edges
    assert (edges % 1.0 == 0.5).all()


def test_a_constant_and_a_missing_feature_have_one_bin(fitted):
    for name in ("constant", "nothing"):
        assert fitted["north"][name].bins == 1
    assert fitted["north"]["constant"].low == 7.0
    assert np.isnan(fitted["north"]["nothing"].low)


def test_a_region_with_too_few_rows_falls_back_on_the_whole(fitted, frame):
    assert fitted["islet"] == fitted[None]
    own = fit_quantizers(frame, ["temperature"], bins=15, region="zone", least=1)
    assert own["islet"]["temperature"].bins == 2


def test_the_whole_frame_without_regions(frame, fitted):
    whole = fit_quantizers(frame, ["humidity"], bins={"humidity": 7}, bandwidth={"humidity": 2.0})
    assert list(whole) == [None]
    assert whole[None]["humidity"].bins == 7


def test_a_region_can_be_an_expression(frame):
    by_parity = fit_quantizers(frame, ["rain"], bins=5, region=sf.col("humidity") % 2)
    assert set(by_parity) == {None, 0, 1}


def test_a_large_frame_is_sampled(frame, table):
    sampled = fit_quantizers(frame, ["temperature"], bins=8, sample_rows=3_000)[None]["temperature"]
    values = table.temperature.to_numpy()[np.isfinite(table.temperature)]
    shares = np.bincount(sampled.codes(values), minlength=8) / values.size
    assert np.abs(shares * 8 - 1.0).max() < 0.25
    assert sampled != fit_quantizers(frame, ["temperature"], bins=8)[None]["temperature"]


def test_an_empty_frame_has_one_bin(frame):
    empty = fit_quantizers(frame.where("false"), ["rain"], bins=5, region="zone")
    assert {zone: by_feature["rain"].bins for zone, by_feature in empty.items()} == {None: 1}


def test_any_numeric_type_will_do_and_odd_names_too(spark):
    frame = spark.range(100).select(
        sf.col("id").cast("decimal(10,2)").alias("a.b"), sf.col("id").cast("tinyint").alias("c`d")
    )
    fitted = fit_quantizers(frame, ["a.b", "c`d"], bins=4)
    assert {name: quantizer.edges.tolist() for name, quantizer in fitted[None].items()} == {
        "a.b": [24.5, 49.5, 74.5],
        "c`d": [24.5, 49.5, 74.5],
    }


def test_text_and_unknown_columns_are_refused(frame):
    with pytest.raises(NotNumeric):
        present(frame, "zone")
    with pytest.raises(UnknownColumn):
        fit_quantizers(frame, ["snow"], bins=4)


def test_a_sketch_too_coarse_for_the_bins_is_refused(frame):
    with pytest.raises(ValueError, match="too coarse"):
        fit_quantizers(frame, ["rain"], bins=30, k=100)
