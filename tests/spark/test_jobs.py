"""Jobs run with our settings in a session that keeps its own, and what Spark throws becomes one sentence."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from synopsis.core.errors import BadSource, BadSpec, SparkFailed
from synopsis.spark import jobs
from synopsis.spark import session as sessions

ZONE, WIDTH = "spark.sql.session.timeZone", "spark.sql.codegen.maxFields"


@pytest.fixture
def theirs(spark: SparkSession) -> SparkSession:
    """A session with settings of its own."""
    session = spark.newSession()
    session.conf.set(ZONE, "Asia/Kolkata")
    session.conf.unset(WIDTH)
    return session


def test_settings_hold_for_the_block_and_are_put_back_after_it(theirs: SparkSession) -> None:
    assert theirs.conf.get("spark.sql.ansi.enabled", None) is None
    with jobs.settings(theirs, {ZONE: "UTC", "spark.sql.ansi.enabled": "false"}):
        assert theirs.conf.get(ZONE) == "UTC"
        assert theirs.conf.get("spark.sql.ansi.enabled") == "false"
    assert theirs.conf.get(ZONE) == "Asia/Kolkata"
    assert theirs.conf.get("spark.sql.ansi.enabled", None) is None


def test_of_builds_that_overlap_the_last_one_puts_the_settings_back(theirs: SparkSession) -> None:
    first, second = jobs.settings(theirs), jobs.settings(theirs)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert theirs.conf.get(ZONE) == "UTC"  # the second still needs it
    second.__exit__(None, None, None)
    assert theirs.conf.get(ZONE) == "Asia/Kolkata"
    assert jobs._held == {}


def test_a_setting_that_spark_refuses_leaves_the_others_as_they_were(theirs: SparkSession) -> None:
    wanted = {ZONE: "UTC", "spark.sql.shuffle.partitions": "many"}
    with pytest.raises(SparkFailed, match=r"shuffle\.partitions"), jobs.told_plainly(), jobs.settings(theirs, wanted):
        pass
    assert theirs.conf.get(ZONE) == "Asia/Kolkata"
    assert jobs._held == {}


def test_what_a_python_worker_raises_is_told_in_its_own_words(spark: SparkSession) -> None:
    def fail(batches):  # type: ignore[no-untyped-def]  # shipped to a worker
        for _ in batches:
            raise OSError("the disk is full")
        yield pa.RecordBatch.from_pydict({"id": [1]})

    with pytest.raises(SparkFailed) as told, jobs.told_plainly():
        spark.range(1).mapInArrow(fail, "id long").collect()
    assert str(told.value) == (
        f"Spark failed: OSError: the disk is full (nothing was committed; the whole story is in {sessions.log_file()})"
    )


def test_a_file_that_vanishes_is_a_bad_source(spark: SparkSession) -> None:
    with (
        pytest.raises(BadSource, match=r"cannot be read \(.*nowhere.*\); mend it or leave it out"),
        jobs.told_plainly(),
    ):
        spark.read.parquet("file:///nowhere/at/all.parquet")


def test_nothing_is_written_beside_the_sentence(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    """PySpark logs errors that point into a query, with the stack of Java, to wherever errors are written."""
    with pytest.raises(SparkFailed, match=r"DIVIDE_BY_ZERO.*\.log\)"), jobs.told_plainly():
        spark.range(1).selectExpr("1 / id").collect()
    assert capfd.readouterr() == ("", "")


def test_a_zone_that_java_does_not_know_is_named_with_a_remedy(spark: SparkSession) -> None:
    told = r"Spark's Java does not know the time zone 'America/Atlantis'; give another name of it, or use a newer Java"
    with pytest.raises(BadSpec, match=told), jobs.told_plainly():
        spark.sql("SELECT from_utc_timestamp(now(), 'America/Atlantis')").collect()


def test_settings_of_a_session_that_would_be_in_the_way_are_ours_for_the_block(theirs: SparkSession) -> None:
    theirs.conf.set("spark.sql.retainGroupColumns", "false")
    theirs.conf.set("spark.sql.columnNameOfCorruptRecord", "a")
    with jobs.settings(theirs):
        assert theirs.range(3).groupBy("id").count().columns == ["id", "count"]
        assert theirs.read.json(theirs.sparkContext.parallelize(["{", "}"])).columns == ["_corrupt_record"]
    assert theirs.conf.get("spark.sql.retainGroupColumns") == "false"


def test_other_errors_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), jobs.told_plainly():
        _ = 1 / 0
