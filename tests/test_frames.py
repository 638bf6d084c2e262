"""A sketch read by Spark: its own table, and synthetic rows drawn in the executors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions
from tests.test_sketches import PATHS

import synopsis as syn
from synopsis import frames

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def sketch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("frames") / "paths.syn"
    PATHS.save(place)
    return place


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from synopsis.spark import session

    found = session.session()
    frames.register(found)
    yield found
    session.stop()


def test_a_sketch_is_a_frame_whose_rows_stand_for_all(spark: Any, sketch: Path) -> None:
    frame = spark.read.format("synopsis").load(str(sketch))
    assert frame.columns[:4] == ["lat", "lon", "day", "rows"]
    assert frame.agg(functions.sum("rows")).first()[0] == pytest.approx(PATHS.rows)
    assert frame.where("lat > 0").select("lat").distinct().count() == 2


def test_synthetic_rows_are_a_frame_of_the_size_asked_for_in_several_partitions(spark: Any, sketch: Path) -> None:
    reader = spark.read.format("synopsis").option("rows", 1001).option("partitions", 2).option("seed", 3)
    frame = reader.load(str(sketch))
    assert frame.columns == ["lat", "lon", "time", "temp", "rain", "half"]
    assert frame.count() == 1001
    assert frame.rdd.getNumPartitions() == 2
    assert frame.agg(functions.avg("temp")).first()[0] == pytest.approx(16.0, abs=1.0)


def test_a_drawing_becomes_a_frame_drawn_in_the_executors_and_goes_where_spark_writes(
    spark: Any, sketch: Path, tmp_path: Path
) -> None:
    drawn = syn.open(sketch).synthetic(rows=700, where="lat > 0", seed=5)
    frame = drawn.to_spark(spark, partitions=2)
    assert frame.columns == drawn.schema.names
    assert frame.rdd.getNumPartitions() == 2
    frame.write.parquet((tmp_path / "rows").as_uri())
    written = spark.read.parquet(str(tmp_path / "rows"))
    assert written.count() == 700
    assert written.where("lat <= 0").count() == 0
    assert drawn.to_spark().count() == 700  # the session that there is
    few = syn.open(sketch).synthetic(rows=70, where="rain > 1", features=["half", "temp"])
    assert few.to_spark(spark).columns == ["lat", "lon", "time", "half", "temp"]
    assert few.to_spark(spark).count() == 70
    part = syn.open(sketch).select("SELECT temp WHERE lat > 0").synthetic(rows=90)
    assert part.to_spark(spark).select("temp").count() == 90  # stored nowhere: drawn here


def test_names_of_features_may_have_commas_in_an_option() -> None:
    names = ("temp, dry", 'the "wet" one', "rh")
    assert tuple(frames._read(frames._written(names))) == names
    assert frames._read("temp_c, rh ,rain") == ["temp_c", "rh", "rain"]


def test_filters_are_pushed_down_where_a_share_is_drawn_and_hold_everywhere(spark: Any, sketch: Path) -> None:
    frame = spark.read.format("synopsis").option("share", 0.5).load(str(sketch))
    warm = frame.where("temp > 20 AND lat > 0 AND half IS NOT NULL AND time < timestamp'2024-02-05 00:00:00'")
    count = PATHS.query("SELECT COUNT(*) AS n WHERE temp > 20 AND lat > 0 AND half IS NOT NULL AND time < '2024-02-05'")
    assert warm.count() == pytest.approx(0.5 * count["n"].estimate, rel=0.05)
    least = warm.agg(functions.min("temp"), functions.min("lat")).first()
    assert least[0] > 20
    assert least[1] > 0


def test_a_condition_may_be_an_option_and_what_is_wrong_is_told(spark: Any, sketch: Path) -> None:
    part = spark.read.format("synopsis").option("where", "lat > 0").load(str(sketch))
    assert part.select("lat").distinct().count() == 2
    with pytest.raises(Exception, match="has no option 'row'"):
        spark.read.format("synopsis").option("row", 3).load(str(sketch)).count()
    with pytest.raises(Exception, match="features are those of synthetic rows"):
        spark.read.format("synopsis").option("features", "temp").load(str(sketch)).count()
    with pytest.raises(Exception, match="no sketch at"):
        spark.read.format("synopsis").load(str(sketch.parent / "nothing.syn")).count()
