"""One Spark session for all tests: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from synopsis.spark import session as sessions

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that all tests share: leave its settings as they are."""
    # Many small jobs are done sooner without Java's second compiler, which pays off in long ones.
    yield sessions.session(conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    sessions.stop()
