"""Frames: a sketch, or synthetic rows from it, as a Spark frame through Spark's own reader.

    syn.frames.register(spark)
    spark.read.format("synopsis").load("weather.syn")                                    # the sketch as a table
    spark.read.format("synopsis").option("rows", 1_000_000).load("weather.syn")          # synthetic rows

Options: `rows` or `share`, `seed`, `where` (a condition as in a question), `features` (those that synthetic rows shall
have, separated by commas), `partitions`. Where a share is drawn,
filters on features, place and time are pushed down into the condition, so that only rows that fulfil them are drawn;
elsewhere Spark applies them. Executors open the sketch themselves: its place must be one that they can reach.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from synopsis.core.errors import BadQuery
from synopsis.core.spec import Spec
from synopsis.database import open as open_sketch
from synopsis.synthetic import Synthetic

_OPTIONS: Final = ("path", "rows", "share", "seed", "where", "features", "partitions")
_SIGNS: Final[dict[type[Filter], str]] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


def register(spark: SparkSession) -> None:
    """Make the format "synopsis" known to a session, and let it push filters down."""
    spark.dataSource.register(SynopsisSource)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def synthetic_frame(drawn: Synthetic, spark: SparkSession | None = None, partitions: int | None = None) -> DataFrame:
    """Synthetic rows as a frame of the session given, or the active one."""
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise BadQuery("there is no Spark session; give one: drawn.to_spark(spark)")
    if drawn.place is None:
        return session.createDataFrame(drawn.to_arrow())
    register(session)
    number = session.sparkContext.defaultParallelism if partitions is None else partitions
    options = {
        "rows": drawn.rows,
        "share": drawn.share,
        "where": drawn.where,
        "features": None if drawn.features is None else _written(drawn.features),
        "seed": drawn.seed,
        "partitions": number,
    }
    given = {name: str(value) for name, value in options.items() if value is not None}
    return session.read.format("synopsis").options(**given).load(drawn.place)


class SynopsisSource(DataSource):
    """The format "synopsis"."""

    @classmethod
    def name(cls) -> str:
        """What `spark.read.format` takes."""
        return "synopsis"

    def schema(self) -> StructType:
        """The columns: of the observations for synthetic rows, else of `Sketch.to_arrow`. Cost: that of opening it."""
        return from_arrow_schema(_Asked(self.options).schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Who reads them."""
        return _Reader(_Asked(self.options))


class _Asked:
    """What the options ask for."""

    def __init__(self, options: Any) -> None:
        given = {str(name).lower(): str(value) for name, value in options.items()}
        unknown = sorted(set(given) - set(_OPTIONS))
        if unknown:
            raise BadQuery(f"the format synopsis has no option {unknown[0]!r}; it has {', '.join(_OPTIONS)}")
        if "path" not in given:
            raise BadQuery("the format synopsis reads the folder of a sketch: load('weather.syn')")
        self.path, self.where = given["path"], given.get("where")
        self.features = _read(given["features"]) if "features" in given else None
        try:
            self.rows = int(given["rows"]) if "rows" in given else None
            self.share = float(given["share"]) if "share" in given else None
            self.seed, self.partitions = int(given.get("seed", 0)), int(given.get("partitions", 1))
        except ValueError as error:
            raise BadQuery(f"an option of the format synopsis is not a number: {error}") from None
        if self.partitions < 1:
            raise BadQuery(f"partitions is {self.partitions}; give 1 or more")
        if self.features is not None and not self.is_synthetic:
            raise BadQuery("features are those of synthetic rows; give rows or share with them")

    @property
    def is_synthetic(self) -> bool:
        return self.rows is not None or self.share is not None

    def schema(self) -> pa.Schema:
        sketch = open_sketch(self.path)
        return (
            sketch.synthetic(rows=0, features=self.features).schema if self.is_synthetic else sketch.to_arrow().schema
        )

    def batches(self, number: int, conditions: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        sketch = open_sketch(self.path)
        if not self.is_synthetic:
            part = sketch if self.where is None else sketch.select(f"SELECT * WHERE {self.where}")
            yield from part.to_arrow().to_batches()
            return
        where = " AND ".join(f"({each})" for each in (*([self.where] if self.where else []), *conditions)) or None
        rows = None if self.rows is None else self.rows // self.partitions + (number < self.rows % self.partitions)
        share = None if self.share is None else self.share / self.partitions
        yield from sketch.synthetic(rows, share, where, self.seed * self.partitions + number, self.features)


class _Reader(DataSourceReader):
    """Reads in as many partitions as asked; the sketch's own table in one."""

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked
        self._conditions: list[str] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - the name that Spark calls
        """Take filters into the condition, where only a share of all rows is asked for; Spark applies all others."""
        spec = open_sketch(self._asked.path).spec
        for each in filters:
            condition = _condition(each, spec) if self._asked.share is not None else None
            if condition is None:
                yield each
            else:
                self._conditions.append(condition)

    def partitions(self) -> list[InputPartition]:
        """One for each stream of rows."""
        return [InputPartition(number) for number in range(self._asked.partitions if self._asked.is_synthetic else 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches, made in the executor."""
        return self._asked.batches(int(partition.value), self._conditions)


def _written(features: tuple[str, ...]) -> str:
    """Names as a line of comma-separated values: a name may have a comma itself."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(features)
    return line.getvalue()


def _read(line: str) -> list[str]:
    """The names in a line of comma-separated values."""
    return [name.strip() for names in csv.reader([line], skipinitialspace=True) for name in names]


def _condition(asked: Filter, spec: Spec) -> str | None:
    """A filter of Spark as a condition in SQL; None where it is not one that a sketch knows."""
    column = ".".join(getattr(asked, "attribute", ()))
    name = _named(column, spec)
    if name is None:
        return None
    if isinstance(asked, IsNull | IsNotNull) and column in spec.features:
        return f"{name} IS {'NOT ' if isinstance(asked, IsNotNull) else ''}NULL"
    if isinstance(asked, In) and column in spec.features and asked.value:
        return f"{name} IN ({', '.join(str(float(value)) for value in asked.value)})"
    sign = _SIGNS.get(type(asked))
    value = getattr(asked, "value", None)
    if sign is None or value is None:
        return None
    if name == "time":
        aware = isinstance(value, datetime) and value.tzinfo is not None  # else nobody knows whose clock it shows
        return f"time {sign} '{value.isoformat()}'" if aware else None
    return f"{name} {sign} {float(value)!r}" if isinstance(value, int | float) else None


def _named(column: str, spec: Spec) -> str | None:
    """What a question calls a column."""
    if column in spec.features:
        doubled = column.replace('"', '""')
        return f'"{doubled}"'
    return {spec.lat: "lat", spec.lon: "lon", spec.time: "time"}.get(column)
