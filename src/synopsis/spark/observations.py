"""Observations: the rows of any source as the same few columns, each row accepted or with a reason against it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from synopsis.core.errors import BadSource, NotNumeric, UnknownColumn
from synopsis.core.spec import Spec
from synopsis.spark import expressions
from synopsis.spark.expressions import named
from synopsis.spark.sources import Opened, type_of

#: Why a row is set aside, by code; 0 is none.
REASONS = {
    1: "no place",
    2: "place not a finite number",
    3: "place out of range",
    4: "no time",
    5: "time unreadable",
    6: "time out of range",
}

#: Values beyond this have squares that no double holds: they count as missing, like infinities.
LARGEST = 1e150

#: Rows looked at to tell what texts and epochs mean.
_HEAD = 2_000


@dataclass(frozen=True)
class Observations:
    """A frame with `latitude`, `longitude`, `instant_us`, `reason`, `value_k` and `bad_k` for feature k.

    Place and time are null where there is a reason against the row. `value_k` is a finite double or null; `bad_k` says
    that something stood there that is no finite number.
    """

    frame: DataFrame
    source: DataFrame  #: the rows as they came, with `reason` beside them
    features: tuple[str, ...]

    def rejected(self) -> DataFrame:
        """The rows set aside: the code of the reason, and the row as JSON."""
        rows = self.source.where(sf.col("__reason") > 0)
        kept = [named(name) for name in rows.columns if name != "__reason"]
        return rows.select(sf.col("__reason").alias("reason"), sf.to_json(sf.struct(*kept)).alias("row"))


def observations(opened: Opened, spec: Spec) -> Observations:
    """The source's rows, checked against the spec. Reads a few rows where texts and epochs must be understood."""
    _check_columns(opened.frame, spec)
    opened = _widened(opened, spec) if spec.is_long else opened
    frame = opened.frame
    latitude, longitude = (_number(opened, name) for name in (spec.lat, spec.lon))
    for feature in spec.features:
        _check_numeric(opened, feature)
    time_kind = type_of(frame, spec.time)
    time = named(spec.time)
    if isinstance(time_kind, st.StringType) and _holds_epochs(frame, time):
        time, time_kind = time.try_cast("double"), st.DoubleType()
    if not isinstance(time_kind, st.TimestampType | st.TimestampNTZType | st.DateType | st.StringType | st.NumericType):
        raise BadSource(
            f"time column {spec.time!r} is {time_kind.simpleString()}; give timestamps, dates, ISO texts or epochs"
        )
    is_number = isinstance(time_kind, st.NumericType)
    unit = ("ns" if spec.time in opened.nanoseconds else spec.time_unit or _unit(frame, time)) if is_number else None
    instant = expressions.instant(
        time, time_kind, timezone=spec.timezone, unit=unit, naive=spec.time in opened.naive_nanoseconds
    )
    has_time = time.isNotNull() & ~sf.isnan(time) if isinstance(time_kind, st.FractionalType) else time.isNotNull()
    prepared = frame.withColumns(
        {"__latitude": latitude, "__longitude": longitude, "__instant": instant, "__has_time": has_time}
    )
    reason = _reason(sf.col("__latitude"), sf.col("__longitude"), sf.col("__instant"), sf.col("__has_time"), is_number)
    read = prepared.withColumn("__reason", reason)
    columns = [
        *(
            sf.when(sf.col("__reason") == 0, sf.col(column)).alias(name)
            for column, name in (("__latitude", "latitude"), ("__longitude", "longitude"), ("__instant", "instant_us"))
        ),
        sf.col("__reason").alias("reason"),
    ]
    for position, feature in enumerate(spec.features):
        value = _number(opened, feature)
        finite = sf.abs(value) <= LARGEST  # false for NaN, which Spark sorts above infinity; null for null
        columns.append(sf.when(finite, value).alias(f"value_{position}"))
        columns.append((named(feature).isNotNull() & ~sf.coalesce(finite, sf.lit(False))).alias(f"bad_{position}"))
    source = read.drop("__latitude", "__longitude", "__instant", "__has_time")
    return Observations(read.select(*columns), source, spec.features)


def _reason(latitude: Column, longitude: Column, instant: Column, has_time: Column, is_number: bool) -> Column:
    finite = (latitude - latitude == 0.0) & (longitude - longitude == 0.0)
    within = latitude.between(-90.0, 90.0) & longitude.between(-180.0, 180.0)
    timely = instant.between(expressions.EARLIEST_US, expressions.LATEST_US)
    return (
        sf.when(latitude.isNull() | longitude.isNull(), 1)
        .when(~finite, 2)
        .when(~within, 3)
        .when(~has_time, 4)
        .when(instant.isNull(), 6 if is_number else 5)
        .when(~timely, 6)
        .otherwise(0)
    )


def present(observed: Observations) -> Column:
    """Which features a row has, as the bits of one integer."""
    return _bits([sf.col(f"value_{position}").isNotNull() for position in range(len(observed.features))])


def bad(observed: Observations) -> Column:
    """Which features of a row held something that is no finite number, as the bits of one integer."""
    return _bits([sf.col(f"bad_{position}") for position in range(len(observed.features))])


def _bits(flags: list[Column]) -> Column:
    return reduce(add, [sf.when(flag, 1 << bit).otherwise(0).cast("bigint") for bit, flag in enumerate(flags)])


def _check_columns(frame: DataFrame, spec: Spec) -> None:
    known = tuple(frame.columns)
    wanted = [spec.lat, spec.lon, spec.time, *([spec.entity] if spec.entity else [])]
    wanted += [spec.name_column, spec.value_column] if spec.name_column and spec.value_column else list(spec.features)
    for name in wanted:
        if name not in known:
            raise UnknownColumn(name, known)
        if known.count(name) > 1:
            raise BadSource(f"the source has {known.count(name)} columns named {name!r}; rename all but one")


def _check_numeric(opened: Opened, feature: str) -> None:
    kind = type_of(opened.frame, feature)
    if isinstance(kind, st.NumericType | st.BooleanType):
        return
    if not opened.is_text or not isinstance(kind, st.StringType):
        raise NotNumeric(feature, kind.simpleString())
    texts = opened.frame.select(named(feature).alias("text")).where("text is not null").limit(_HEAD)
    read, all_of_them = texts.agg(sf.count(sf.col("text").try_cast("double")), sf.count("text")).first() or (0, 0)
    if all_of_them and not read:
        raise NotNumeric(feature, "text")


def _number(opened: Opened, name: str) -> Column:
    kind = type_of(opened.frame, name)
    if isinstance(kind, st.StringType):
        if not opened.is_text:
            raise NotNumeric(name, "text")
        return sf.trim(named(name)).try_cast("double")
    if not isinstance(kind, st.NumericType | st.BooleanType):
        raise NotNumeric(name, kind.simpleString())
    return named(name).cast("double")


def _holds_epochs(frame: DataFrame, time: Column) -> bool:
    """Whether texts are numbers too large to be a year or a date written together."""
    texts = frame.select(sf.trim(time).alias("text")).where("text is not null").limit(_HEAD)
    numbers, all_of_them = texts.agg(
        sf.count(sf.when(sf.col("text").rlike(r"^[+-]?\d{9,}(\.\d*)?$"), 1)), sf.count("text")
    ).first() or (0, 0)
    return bool(numbers) and numbers * 2 > all_of_them


def _unit(frame: DataFrame, time: Column) -> str:
    """The unit of epochs, from their size: seconds reach 1e11 in the year 5138, milliseconds in 1973."""
    size = frame.select(sf.abs(time.cast("double")).alias("size")).where("size < double('infinity')").limit(_HEAD)
    middle = (size.agg(sf.expr("percentile_approx(size, 0.5)")).first() or (None,))[0] or 0.0
    return "s" if middle < 1e11 else "ms" if middle < 1e14 else "us" if middle < 1e17 else "ns"


def _widened(opened: Opened, spec: Spec) -> Opened:
    """Long rows (one feature's name and value each) as wide rows.

    Values of one entity, place and time become one row; a second value of the same feature there starts another, so
    that none is lost.
    """
    assert spec.name_column is not None
    assert spec.value_column is not None
    frame, value_kind = opened.frame, type_of(opened.frame, spec.value_column)
    if not isinstance(value_kind, st.NumericType | st.BooleanType) and not opened.is_text:
        raise NotNumeric(spec.value_column, value_kind.simpleString())
    names = {row[0] for row in frame.select(named(spec.name_column)).distinct().limit(10_000).collect()}
    for feature in spec.features:
        if feature not in names:
            raise UnknownColumn(feature, tuple(sorted(str(name) for name in names if name is not None)))
    keys = [name for name in (spec.entity, spec.lat, spec.lon, spec.time) if name]
    name, value = named(spec.name_column), named(spec.value_column)
    wanted = frame.where(name.isin(*spec.features)).select(
        *(named(key) for key in keys), name.alias("__name"), value.alias("__value")
    )
    turn = Window.partitionBy(*(named(key) for key in keys), sf.col("__name")).orderBy("__value")
    numbered = wanted.withColumn("__turn", sf.row_number().over(turn))
    wide = numbered.groupBy(*(named(key) for key in keys), sf.col("__turn")).agg(
        *(sf.max(sf.when(sf.col("__name") == feature, sf.col("__value"))).alias(feature) for feature in spec.features)
    )
    return Opened(
        wide.drop("__turn"),
        opened.name,
        opened.fingerprint,
        opened.is_text,
        opened.naive_nanoseconds,
        opened.nanoseconds,
    )
