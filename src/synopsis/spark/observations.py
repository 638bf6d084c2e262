"""Observations: the rows of any source as the same few columns, each row accepted or with a reason against it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from synopsis.core.errors import BadSource, BadSpec, NotNumeric, UnknownColumn
from synopsis.core.spec import Spec
from synopsis.spark import expressions, footers
from synopsis.spark.expressions import named, quoted
from synopsis.spark.footers import Footers
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

#: Bits of Spark's int.
_INT_BITS = 32

#: Rows looked at to tell what texts and epochs mean.
_HEAD = 2_000

#: Texts from this number on are epochs: no year and no date such as 20250131 is so large.
_LEAST_EPOCH = 1e8

#: Names of features looked at in long rows.
_MOST_NAMES = 10_000


@dataclass(frozen=True)
class Observations:
    """A frame with `latitude`, `longitude`, `instant_us`, `reason`, `value_k` and `given_k` for feature k, and `entity`
    where the spec names one.

    Place and time are null where there is a reason against the row. `value_k` is a finite double or null; `given_k`
    says that something stood there, be it a finite number or not.
    """

    frame: DataFrame
    source: DataFrame  #: the rows as they came, with the reason beside them
    reason: str  #: the name of that column, which no column of the source has
    features: tuple[str, ...]
    _checked: DataFrame
    _good: str
    _columns: tuple[str, ...]
    footed: tuple[str, ...] = ()  #: files that tell of the columns below
    named: tuple[str, ...] = ()  #: the source's names of latitude, longitude, time and features

    @cached_property
    def footers(self) -> Footers | None:
        """What files tell of place, time and features, in this order, where they speak against no row; else None."""
        found = footers.told(self.footed, self.named) if self.footed else None
        if found is None or not found.rows:
            return None
        latitude, longitude, time, *features = (found.columns[name] for name in self.named)
        good = latitude.within(-90.0, 90.0) and longitude.within(-180.0, 180.0)
        good = good and time.within(expressions.EARLIEST_US, expressions.LATEST_US)
        whole = all(each.values == found.rows for each in (latitude, longitude, time))
        usual = all(each.within(-LARGEST, LARGEST) or not each.values for each in features)
        return found if good and whole and usual else None

    @cached_property
    def accepted(self) -> DataFrame:
        """The rows with no reason against them, without that column: cheaper than `frame`, which asks for each."""
        return self._checked.where(self._good).selectExpr(*self._columns)

    @cached_property
    def told(self) -> DataFrame:
        """All rows: whether they are `good`, and all else as in `frame`, but null where they are not; without reasons.

        Cheaper than `frame`, as each row is asked once whether it is good.
        """
        asked = self._checked.selectExpr("*", f"{self._good} AS {self.reason}")
        columns = (column.rsplit(" AS ", 1) for column in self._columns)
        told = (f"CASE WHEN {self.reason} THEN {value} END AS {name}" for value, name in columns)
        return asked.selectExpr(f"{self.reason} AS good", *told)

    def rejected(self) -> DataFrame:
        """The rows set aside: the code of the reason, and the row as JSON."""
        rows = self.source.where(sf.col(self.reason) > 0)
        kept = [named(name) for name in rows.columns if name != self.reason]
        return rows.select(sf.col(self.reason).alias("reason"), sf.to_json(sf.struct(*kept)).alias("row"))


@dataclass(frozen=True)
class _Times:
    """How the column of times is to be read."""

    kind: st.DataType  #: of what is read; decimal where texts hold epochs
    is_text: bool = False
    unit: str | None = None  #: of epochs
    naive: bool = False  #: epochs that count local time


def observations(opened: Opened, spec: Spec, *, begun: bool = False) -> Observations:
    """The source's rows, checked against the spec. Reads a few rows where texts and epochs must be understood.

    `begun` says that the spec is that of a sketch which exists: a batch of long rows may then lack a feature.
    """
    _check_columns(opened, spec)
    _check_numbers(opened, spec)
    times = _times(opened, spec)
    opened = _widened(opened, spec, begun) if spec.is_long else opened
    frame = _told_apart(opened.frame)
    mark = _unused_prefix(frame.columns)
    is_epoch_text = times.is_text and times.unit is not None
    read = sf.expr(_epochs(spec.time)) if is_epoch_text else named(spec.time)
    instant = expressions.instant(read, times.kind, timezone=spec.timezone, unit=times.unit, naive=times.naive)
    latitude, longitude, instant_us = (f"{mark}{name}" for name in ("latitude", "longitude", "instant"))
    prepared = frame.select(
        "*",
        sf.expr(_number(opened, spec.lat)).alias(latitude),
        sf.expr(_number(opened, spec.lon)).alias(longitude),
        instant.alias(instant_us),
    )
    good = f"{_within(latitude, longitude)} AND {_timely(instant_us)}"
    written = _has_time(spec.time, times), _readable(spec.time, times, instant_us)
    reason = _reason(good, latitude, longitude, *written)
    source = prepared.selectExpr("*", f"{reason} AS {mark}reason")
    wheres = {"latitude": latitude, "longitude": longitude, "instant_us": instant_us}
    columns = []
    for position, feature in enumerate(spec.features):
        value = _number(opened, feature)
        # False for NaN, which Spark sorts above infinity; null for null.
        columns.append(f"CASE WHEN abs({value}) <= {LARGEST!r}D THEN {value} END AS value_{position}")
        columns.append(f"{value} IS NOT NULL AS given_{position}")
    if spec.entity is not None:
        columns.append(f"cast({quoted(spec.entity)} AS string) AS entity")
    observed = source.selectExpr(
        *(f"CASE WHEN {good} THEN {column} END AS {name}" for name, column in wheres.items()),
        f"{mark}reason AS reason",
        *columns,
    )
    rows = source.drop(*wheres.values())
    plain = (*(f"{column} AS {name}" for name, column in wheres.items()), *columns)
    # Only such times are instants as they stand in a file.
    is_instant = isinstance(times.kind, st.TimestampType) or (
        isinstance(times.kind, st.TimestampNTZType) and spec.timezone == "UTC"
    )
    footed = opened.footed if is_instant and not spec.is_long else ()
    given = (spec.lat, spec.lon, spec.time, *spec.features)
    return Observations(observed, rows, f"{mark}reason", spec.features, prepared, good, plain, footed, given)


def _within(latitude: str, longitude: str) -> str:
    """Whether a place lies on the globe; not true of nulls, nor of NaN, which Spark sorts above all numbers."""
    return f"{latitude} BETWEEN -90D AND 90D AND {longitude} BETWEEN -180D AND 180D"


def _timely(instant: str) -> str:
    return f"{instant} BETWEEN {expressions.EARLIEST_US}L AND {expressions.LATEST_US}L"


def _has_time(name: str, times: _Times) -> str:
    """Whether anything stands where the time should."""
    if times.is_text:
        return f"{_trimmed(name)} IS NOT NULL"
    is_number = isinstance(times.kind, st.FractionalType)
    return f"{quoted(name)} IS NOT NULL" + (f" AND NOT isnan({quoted(name)})" if is_number else "")


def _readable(name: str, times: _Times, instant: str) -> str:
    """Whether what stands there is a time, be it one out of range."""
    if times.unit is None:
        return f"{instant} IS NOT NULL"
    return f"{_epochs(name) if times.is_text else quoted(name)} IS NOT NULL"


def _epochs(name: str) -> str:
    return f"try_cast({_trimmed(name)} AS {expressions.EPOCHS})"


def _reason(good: str, latitude: str, longitude: str, has_time: str, readable: str) -> str:
    """The code of the reason. Nearly all rows are good, and nothing more is asked of these."""
    return f"""CASE
        WHEN {good} THEN 0
        WHEN {latitude} IS NULL OR {longitude} IS NULL THEN 1
        WHEN NOT ({latitude} - {latitude} = 0D AND {longitude} - {longitude} = 0D) THEN 2
        WHEN NOT ({_within(latitude, longitude)}) THEN 3
        WHEN NOT ({has_time}) THEN 4
        WHEN NOT ({readable}) THEN 5
        ELSE 6 END"""


def present(observed: Observations) -> str:
    """Which features a row has, as the bits of one integer; an expression in Spark's SQL."""
    return _bits([f"value_{position} IS NOT NULL" for position in range(len(observed.features))])


def bad(observed: Observations) -> str:
    """Which features of a row held something that is no finite number, as the bits of one integer."""
    given = _bits([f"given_{position}" for position in range(len(observed.features))])
    return f"{given} ^ {present(observed)}"


def _bits(flags: list[str]) -> str:
    """Bits by shifts, which generated code does without a branch; as ints where they fit."""
    kind = "int" if len(flags) < _INT_BITS else "bigint"
    bits = (f"shiftleft(cast({flag} AS {kind}), {bit})" for bit, flag in enumerate(flags))
    return f"cast({' | '.join(bits)} AS bigint)"


def _check_columns(opened: Opened, spec: Spec) -> None:
    known = tuple(opened.frame.columns)
    wanted = [spec.lat, spec.lon, spec.time, *([spec.entity] if spec.entity else [])]
    wanted += [spec.name_column, spec.value_column] if spec.name_column and spec.value_column else list(spec.features)
    for name in wanted:
        if name not in known:
            raise UnknownColumn(name, known)
        if known.count(name) > 1:
            raise BadSource(f"the source has {known.count(name)} columns named {name!r}; rename all but one")
        if name in opened.disguised and name != spec.entity:
            raise BadSource(f"column {name!r} holds {opened.disguised[name]}, in a file as integers; cast it before")


def _told_apart(frame: DataFrame) -> DataFrame:
    """The frame with other names for columns whose name an earlier one has, so that each can be named."""
    names: list[str] = []
    for name in frame.columns:
        others = (f"{name} ({number})" for number in count(2))
        taken = {*names, *frame.columns}
        names.append(next(other for other in others if other not in taken) if name in names else name)
    return frame if names == frame.columns else frame.toDF(*names)


def _unused_prefix(columns: list[str]) -> str:
    """What no name of the source begins with."""
    prefix = "__"
    while any(name.startswith(prefix) for name in columns):
        prefix += "_"
    return prefix


def _check_numbers(opened: Opened, spec: Spec) -> None:
    """Refuse places and features without numbers. Texts that may be numbers are looked at, in the first rows."""
    features = (spec.value_column,) if spec.value_column else spec.features
    wanted = [spec.lat, spec.lon, *features]
    kinds = {name: type_of(opened.frame, name) for name in wanted}
    texts = [name for name, kind in kinds.items() if opened.is_text and isinstance(kind, st.StringType)]
    for name, kind in kinds.items():
        if name not in texts and not isinstance(kind, st.NumericType | st.BooleanType):
            raise NotNumeric(name, kind.simpleString())
    if not texts:
        return
    head = opened.frame.select(*(_text(name).alias(str(position)) for position, name in enumerate(texts))).limit(_HEAD)
    columns = [sf.col(name) for name in head.columns]
    counts = head.agg(
        *(sf.count(column) for column in columns), *(sf.count(sf.expr(_double(quoted(name)))) for name in head.columns)
    )
    found = list(counts.first() or ())
    for name, written, read in zip(texts, found[: len(texts)], found[len(texts) :], strict=True):
        if written and not read:
            raise NotNumeric(name, "text")


def _text(name: str) -> Column:
    return sf.expr(_trimmed(name))


def _trimmed(name: str) -> str:
    """A text without blanks around it; null where nothing is left."""
    return f"nullif(trim({quoted(name)}), '')"


def _number(opened: Opened, name: str) -> str:
    """A column as doubles; NaN where a text stands that is no number."""
    if not isinstance(type_of(opened.frame, name), st.StringType):
        return f"cast({quoted(name)} AS double)"
    text = _trimmed(name)
    return f"CASE WHEN {text} IS NOT NULL THEN coalesce({_double(text)}, double('NaN')) END"


def _double(text: str) -> str:
    """A text as a double, null where it is none; Java's literals such as 1d and 2.5f are none."""
    return f"CASE WHEN instr('dDfF', substr({text}, -1)) = 0 THEN try_cast({text} AS double) END"


def _times(opened: Opened, spec: Spec) -> _Times:
    frame, time = opened.frame, named(spec.time)
    kind = type_of(frame, spec.time)
    is_text = isinstance(kind, st.StringType)
    if is_text and _holds_epochs(opened, spec):
        time, kind = sf.expr(_epochs(spec.time)), st.DecimalType(28, 9)
    if not isinstance(kind, st.TimestampType | st.TimestampNTZType | st.DateType | st.StringType | st.NumericType):
        raise BadSource(
            f"time column {spec.time!r} is {kind.simpleString()}; give timestamps, dates, ISO texts or epochs"
        )
    if not isinstance(kind, st.NumericType):
        return _Times(kind, is_text)
    unit = "ns" if spec.time in opened.nanoseconds else spec.time_unit or _unit(frame, time)
    return _Times(kind, is_text, unit, spec.time in opened.naive_nanoseconds)


def _holds_epochs(opened: Opened, spec: Spec) -> bool:
    """Whether most texts are numbers, and too large to be a year or a date written together if no unit was told."""
    number = sf.abs(_text(spec.time).try_cast("double"))
    is_epoch = number.isNotNull() if spec.time_unit else number >= _LEAST_EPOCH
    texts = opened.frame.select(_text(spec.time).alias("text"), is_epoch.alias("is_epoch"))
    epochs, all_of_them = texts.where("text is not null").limit(_HEAD).agg(
        sf.count_if("is_epoch"), sf.count("text")
    ).first() or (0, 0)
    return bool(epochs * 2 > all_of_them)


def _unit(frame: DataFrame, time: Column) -> str:
    """The unit of epochs, from their size: seconds reach 1e11 in the year 5138, milliseconds in 1973."""
    size = frame.select(sf.abs(time.cast("double")).alias("size")).where("size < double('infinity')").limit(_HEAD)
    middle = (size.agg(sf.expr("percentile_approx(size, 0.5)")).first() or (None,))[0] or 0.0
    return "s" if middle < 1e11 else "ms" if middle < 1e14 else "us" if middle < 1e17 else "ns"


def _widened(opened: Opened, spec: Spec, begun: bool) -> Opened:
    """Long rows (one feature's name and value each) as wide rows.

    Values of one entity, place and time become one row; a second value of the same feature there starts another, so
    that none is lost.
    """
    assert spec.name_column is not None
    assert spec.value_column is not None
    frame = opened.frame
    keys = [name for name in (spec.entity, spec.lat, spec.lon, spec.time) if name]
    for feature in spec.features:
        if feature in keys:
            raise BadSpec(f"feature {feature!r} is also the column of a place, a time or an entity; rename one of them")
    if not begun:
        _check_names(frame, spec.name_column, spec.features)
    # Names may be numbers, as codes of parameters are.
    text = named(spec.name_column).cast("string")
    mark = _unused_prefix(keys)
    name, value, turn = (sf.col(f"{mark}{part}") for part in ("name", "value", "turn"))
    wanted = frame.where(text.isin(*spec.features)).select(
        *(named(key) for key in keys),
        text.alias(f"{mark}name"),
        named(spec.value_column).alias(f"{mark}value"),
    )
    # A missing value adds nothing to a row, and needs none of its own.
    order = Window.partitionBy(*(named(key) for key in keys), name).orderBy(value.asc_nulls_last())
    numbered = wanted.withColumn(f"{mark}turn", sf.when(value.isNull(), 1).otherwise(sf.row_number().over(order)))
    wide = numbered.groupBy(*(named(key) for key in keys), turn).agg(
        *(sf.max(sf.when(name == feature, value)).alias(feature) for feature in spec.features)
    )
    return replace(opened, frame=wide.drop(f"{mark}turn"))


def _check_names(frame: DataFrame, column: str, features: tuple[str, ...]) -> None:
    names = {row[0] for row in frame.select(named(column).cast("string")).distinct().limit(_MOST_NAMES).collect()}
    for feature in features:
        if feature not in names:
            raise UnknownColumn(feature, tuple(sorted(str(name) for name in names if name is not None)), column)
