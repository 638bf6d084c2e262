"""Running jobs in a session that may be somebody else's: with our settings, and with failures told in one sentence."""

from __future__ import annotations

import logging
import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from synopsis.core.errors import BadSource, BadSpec, SparkFailed
from synopsis.spark import session as sessions

#: What our expressions rely on: wall clocks in UTC, timestamps that are instants, exact names, steps that use the
#: names of earlier ones, whole stages compiled however wide they are.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    "spark.sql.codegen.maxFields": "10000",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.retainGroupColumns": "true",
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    # Or a join by cell first asks whether the cell is null, with all steps of its computation in one expression that
    # repeats each of them twice: ten times slower than the join.
    "spark.sql.constraintPropagation.enabled": "false",
}

#: Words of Spark's errors that speak of a source which cannot be read, not of a fault.
_UNREADABLE = (
    "CANNOT_MERGE_SCHEMA",
    "COLUMN_ALREADY_EXISTS",
    "CSV header does not conform",
    "FAILED_READ_FILE",
    "PARQUET_TYPE",
    "PATH_NOT_FOUND",
    "UNABLE_TO_INFER_SCHEMA",
    "UNSUPPORTED_TIME_TYPE",
    "is not a Parquet file",
)

#: How Spark's errors name a zone that its Java does not know, as it may one that Python has learnt of since.
_UNKNOWN_ZONE = re.compile(r"INVALID_TIMEZONE\] The timezone: (\S+) is invalid")

#: How Spark's errors name a file.
_NAMES_A_FILE = re.compile(r"(?:reading file|CSV file:) (?:file:/*(?=/))?(\S.*?)(?:\.\s|\.?$)", re.MULTILINE)


@dataclass
class _Held:
    """How many builds run in a session, and what its settings were before the first of them."""

    builds: int = 0
    before: dict[str, str | None] = field(default_factory=dict)


_lock = threading.Lock()
_held: defaultdict[str, _Held] = defaultdict(_Held)


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str] = SETTINGS) -> Iterator[None]:
    """Set these for the block, then put back what was there; of several at once, the last one does."""
    session = str(spark._jsparkSession.sessionUUID())
    with _lock:
        held = _held[session]
        held.builds += 1
    try:
        with _lock:
            for name, value in wanted.items():
                held.before.setdefault(name, spark.conf.get(name, None))
                spark.conf.set(name, value)
        yield
    finally:
        with _lock, suppress(Py4JError, OSError):  # Java has gone, and the session with it
            held.builds -= 1
            if not held.builds:
                _restore(spark, _held.pop(session).before)


def _restore(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


def batches_of(rows: int) -> dict[str, str]:
    """Settings for Arrow batches of so many rows, however many bytes they take: for rows of numbers.

    With a bound for the bytes, Spark adds up those of every column after every row, which takes longer than writing it.
    """
    return _batches(rows, 2**31 - 1)


def _batches(rows: int, most_bytes: int) -> dict[str, str]:
    return {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(rows),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(most_bytes),
    }


#: Settings for Arrow batches of rows that may be large: texts, and what was packed.
BOUNDED_BATCHES = _batches(10_000, 1 << 26)


@contextmanager
def told_plainly() -> Iterator[None]:
    """Turn what Spark throws into one sentence that names the log file, and keep PySpark from logging it as well."""
    _told.depth = getattr(_told, "depth", 0) + 1
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        what = first_line(error)
        if zone := _UNKNOWN_ZONE.search(str(error)):
            raise BadSpec(
                f"Spark's Java does not know the time zone {zone[1]!r}; give another name of it, or use a newer Java"
            ) from error
        if any(word in str(error) for word in _UNREADABLE):
            file = _NAMES_A_FILE.search(str(error))
            named = file[1] if file else "the source"
            raise BadSource(f"{named} cannot be read ({what}); mend it or leave it out") from error
        if _is_cut_off(error) and sessions.java_has_stopped():
            what = "its Java has stopped, perhaps for want of memory"
        raise SparkFailed(what, sessions.log_name()) from error
    finally:
        _told.depth -= 1


def _is_not_told(_: logging.LogRecord) -> bool:
    """Whether nobody in this thread turns errors into sentences: then PySpark may log them."""
    return not getattr(_told, "depth", 0)


_told = threading.local()
PySparkLogger.getLogger("SQLQueryContextLogger").addFilter(_is_not_told)


def _is_cut_off(error: BaseException) -> bool:
    """Whether an error, or what caused it, is that Java did not answer; PySpark calls that by other names at times."""
    while isinstance(error, PySparkException) and error.__context__ is not None:
        error = error.__context__
    return not isinstance(error, PySparkException | Py4JJavaError)


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
