"""Running jobs in a session that may be somebody else's: with our settings, and with failures told in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from synopsis.core.errors import BadSource, SparkFailed
from synopsis.spark import session as sessions

#: What our expressions rely on: wall clocks in UTC, exact names, whole stages compiled however wide they are.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.codegen.maxFields": "10000",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
}

#: Words of Spark's errors that speak of a source which cannot be read, not of a fault.
_UNREADABLE = (
    "PATH_NOT_FOUND",
    "FAILED_READ_FILE",
    "is not a Parquet file",
    "UNABLE_TO_INFER_SCHEMA",
    "CANNOT_MERGE_SCHEMA",
)


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str] = SETTINGS) -> Iterator[None]:
    """Set these for the block, then put back what was there."""
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


@contextmanager
def told_plainly() -> Iterator[None]:
    """Turn what Spark throws into one sentence that names the log file."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        what = first_line(error)
        if any(word in str(error) for word in _UNREADABLE):
            raise BadSource(f"the source cannot be read: {what}") from error
        raise SparkFailed(what, sessions.log_name()) from error


def first_line(error: BaseException) -> str:
    """What went wrong, without the stack: the innermost cause that Java names, else the error's first line."""
    thrown = getattr(error, "java_exception", None)
    while thrown is not None and thrown.getCause() is not None:
        thrown = thrown.getCause()
    text = str(thrown.getMessage() if thrown is not None else error).strip()
    lines = [line for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):  # a Python worker's: its last line says what it was
        outside = [line for line in lines if not line.startswith((" ", "Traceback", "An exception was thrown"))]
        return outside[-1].strip() if outside else lines[-1].strip()
    return lines[0].strip() if lines else type(error).__name__
