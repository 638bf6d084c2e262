"""The oracle: what DuckDB says of a question, from all rows.

A tree is translated into DuckDB's SQL, which brings its own logic of NULLs. Positions are met in another way than the
sketch does: polygons by the matrix of point and polygon, circles by chords through the globe. Clocks on the wall are
those of pandas and zoneinfo. HAVING, ORDER BY and LIMIT go by estimates: they are applied here to the answer without.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from tests.query.grounds import Data, _instants_us
from tests.query.questions import BUCKET_ZONES, both

from synopsis.grid import geohash
from synopsis.query.answer import Answer
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    BinKey,
    BucketKey,
    CellKey,
    Condition,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    InBox,
    InCells,
    Key,
    Moment,
    Near,
    Not,
    Number,
    Operand,
    Or,
    Question,
    TimeIs,
    Within,
)

Floats = NDArray[np.float64]

EPOCH: Final = datetime(1970, 1, 1)
EARTH_KM: Final = 6371.0088
LATITUDES: Final = ("lat", "latitude")
LONGITUDES: Final = ("lon", "longitude")
#: What rounding may do, in parts of the numbers that go in.
ROUNDING: Final = 1e-9
_FUNCTIONS: Final = {"sum": "sum", "mean": "avg", "min": "min", "max": "max"}
_SPREADS: Final = {
    "std": "stddev_pop",
    "var": "var_pop",
    "covariance": "covar_pop",
    "std_samp": "stddev_samp",
    "var_samp": "var_samp",
    "covariance_samp": "covar_samp",
}
_UNITS: Final = {"d": "day", "w": "week", "mo": "month", "q": "quarter", "y": "year", "h": "hour"}


@dataclass(frozen=True)
class Column:
    """True numbers of groups, NaN where undefined, and by how much rounding may move them."""

    number: Floats
    slack: Floats


@dataclass(frozen=True)
class Truth:
    """The groups that rows fall into, by keys, and their statistics."""

    #: Geohashes, wall times, and lower ends of bins (infinite for rows without the feature), in the order of the keys.
    keys: list[tuple[Any, ...]]
    columns: Mapping[Aggregate, Column]

    def of(self, operand: Operand) -> Column:
        if isinstance(operand, Number):
            number = np.full(len(self.keys), operand.value)
            return Column(number, np.zeros(number.size))
        if isinstance(operand, Aggregate):
            return self.columns[operand]
        assert isinstance(operand, Arithmetic)
        with np.errstate(all="ignore"):
            return _computed(operand.operator, self.of(operand.left), self.of(operand.right))


def _computed(operator: str, one: Column, other: Column) -> Column:
    left, right = one.number, other.number
    if operator in "+-":
        number = left + right if operator == "+" else left - right
        slack = one.slack + other.slack + ROUNDING * (np.abs(left) + np.abs(right))
    elif operator == "*":
        number = left * right
        slack = np.abs(left) * other.slack + np.abs(right) * one.slack + one.slack * other.slack
    else:
        number = np.where(right == 0.0, np.nan, left / right)
        # What may as well be divided by nothing can be anything.
        far = np.abs(right) > 2 * other.slack
        slack = np.where(far, 2 * (one.slack + np.abs(number) * other.slack) / np.abs(right), np.inf)
    return Column(np.where(np.isfinite(number), number, np.nan), slack + ROUNDING * np.abs(number))


class Oracle:
    """All rows of some data, to be asked."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self._zone = ZoneInfo(data.timezone)
        table = data.table
        latitude, longitude = (table[name].to_numpy() for name in ("lat", "lon"))
        self._positions, place = np.unique(np.stack([latitude, longitude], axis=1), axis=0, return_inverse=True)
        times = pd.to_datetime(_instants_us(table).to_numpy(), unit="us", utc=True)
        zones = dict.fromkeys((data.timezone, *BUCKET_ZONES))
        walls = {zone: times.tz_convert(zone).tz_localize(None).astype("datetime64[us]") for zone in zones}
        self._walls = {zone: f"wall{at}" for at, zone in enumerate(zones)}
        known = {
            "place": pa.array(place.reshape(-1)),
            "cell": geohash.encode(latitude, longitude, geohash.MAXIMUM_BITS),
            "us": _instants_us(table),
        } | {self._walls[zone]: pa.array(wall.to_numpy(), pa.timestamp("us")) for zone, wall in walls.items()}
        rows = pa.table({"lat": latitude, "lon": longitude} | known)
        self._names = {name: f"f{at}" for at, name in enumerate(data.features)}
        for name, column in self._names.items():
            numbers = table[name].cast(pa.float64()).to_numpy(zero_copy_only=False)
            rows = rows.append_column(column, pa.array(numbers, from_pandas=True))
        self._duck = duckdb.connect(config={"threads": 2, "memory_limit": "2GB"})
        self._duck.register("rows_as_given", rows)
        self._duck.execute("CREATE TABLE observations AS SELECT * FROM rows_as_given")
        self._duck.unregister("rows_as_given")
        medians = ", ".join(f"coalesce(median({column}), 0)" for column in self._names.values())
        found = self._duck.execute(f"SELECT {medians} FROM observations").fetchall()[0]
        self._pivot = dict(zip(self._names, found, strict=True))
        self._shapes: dict[Within | Near, str] = {}

    def close(self) -> None:
        self._duck.close()

    def truth(self, question: Question, aggregates: Iterable[Aggregate]) -> Truth:
        """The statistics of all groups."""
        wanted = list(dict.fromkeys(aggregates))
        features = dict.fromkeys(name.text for each in wanted for name in each.arguments)
        keys = [self._key(key) for key in question.groups]
        owned = [self._column(name) for name in features]
        parts = [f"count({column}), min({column}), max({column})" for column in owned]
        select = ", ".join([*keys, "count(*)", *parts, *map(self._aggregate, wanted)])
        grouped = f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
        text = f"SELECT {select} FROM observations WHERE {self.condition(question.scope, question.scope)}{grouped}"
        table = self._duck.sql(text).to_arrow_table()
        columns = [table.column(at) for at in range(table.num_columns)]
        numbers = [np.asarray(column.cast(pa.float64()).fill_null(np.nan)) for column in columns[len(keys) :]]
        of_features = {name: numbers[1 + 3 * at : 4 + 3 * at] for at, name in enumerate(features)}
        own = numbers[1 + 3 * len(features) :]
        known = {each: Column(own[at], _slack(each, own[at], of_features)) for at, each in enumerate(wanted)}
        shown = [self._shown(key, column) for key, column in zip(question.groups, columns, strict=False)]
        rows = [tuple(each) for each in zip(*shown, strict=True)] if keys else [()] * table.num_rows
        return Truth(rows, known)

    # --- groups and statistics ----------------------------------------------------------------------------------------

    def _key(self, key: Key) -> str:
        if isinstance(key, CellKey):
            return f"cell >> {geohash.MAXIMUM_BITS - 5 * key.length}"
        if isinstance(key, BinKey):
            return f"floor({self._column(key.name.text)} / {key.width}) * {key.width}"
        number, unit = key.span.rstrip("dwmoqyh"), key.span.lstrip("0123456789")
        local = self._walls[key.zone or self.data.timezone]
        if number == "1":
            return f"date_trunc('{_UNITS[unit]}', {local})::TIMESTAMP"
        origin = "1969-12-29" if unit == "w" else "1970-01-01"
        return f"time_bucket(INTERVAL '{number} {_UNITS[unit]}', {local}, TIMESTAMP '{origin}')::TIMESTAMP"

    def _shown(self, key: Key, column: pa.ChunkedArray) -> list[Any]:
        if isinstance(key, CellKey):
            return [_letters(cell, key.length) for cell in column.to_pylist()]
        if isinstance(key, BinKey):
            return [math.inf if low is None else low for low in column.to_pylist()]
        return list(column.cast(pa.timestamp("us")).to_pylist())

    def _column(self, name: str) -> str:
        if name in self._names:
            return self._names[name]
        if name.lower() in LATITUDES + LONGITUDES:
            return "lat" if name.lower() in LATITUDES else "lon"
        return next(column for known, column in self._names.items() if known.lower() == name.lower())

    def _aggregate(self, aggregate: Aggregate) -> str:
        names = [name.text for name in aggregate.arguments]
        columns = [self._column(name) for name in names]
        # Spreads do not depend on where zero is; rounding does.
        moved = [f"({column} - {_double(self._pivot[name])})" for name, column in zip(names, columns, strict=True)]
        only = "true" if aggregate.only is None else self.condition(aggregate.only, And())
        there = f"FILTER (WHERE {only})"
        match aggregate.function:
            case "count":
                return f"count({columns[0] if columns else '*'}) {there}"
            case "std" | "var" | "covariance" | "std_samp" | "var_samp" | "covariance_samp":
                return f"{_SPREADS[aggregate.function]}({', '.join(moved)}) {there}"
            case "correlation":
                pairs = f"FILTER (WHERE {only} AND {columns[0]} IS NOT NULL AND {columns[1]} IS NOT NULL)"
                varied = " AND ".join(f"min({each}) {pairs} < max({each}) {pairs}" for each in columns)
                return f"CASE WHEN {varied} THEN corr({moved[0]}, {moved[1]}) {there} END"
            case "quantile":
                return f"quantile_cont({columns[0]}, {aggregate.share}) {there}"
        return f"{_FUNCTIONS[aggregate.function]}({columns[0]}) {there}"

    # --- conditions ---------------------------------------------------------------------------------------------------

    def condition(self, condition: Condition, whole: Condition) -> str:
        """A condition in DuckDB's SQL; `whole` is the WHERE clause that it stands in."""
        match condition:
            case And():
                parts = [self.condition(part, whole) for part in condition.conditions]
                return f"({' AND '.join(parts) or 'true'})"
            case Or():
                return "(" + " OR ".join(self.condition(part, whole) for part in condition.conditions) + ")"
            case Not():
                return f"(NOT {self.condition(condition.condition, whole)})"
            case InCells():
                return "(" + " OR ".join(map(_prefix, condition.prefixes)) + ")"
            case InBox():
                along = "OR" if condition.west > condition.east else "AND"
                return (
                    f"(lat >= {_double(condition.south)} AND lat <= {_double(condition.north)} AND "
                    f"(lon >= {_double(condition.west)} {along} lon <= {_double(condition.east)}))"
                )
            case Within() | Near():
                return f"(place IN (SELECT place FROM {self._shape(condition)}))"
            case TimeIs():
                return f"(us {condition.comparison} {self._instant_us(condition.moment)})"
            case FeatureIs():
                number = self._number(condition.number, whole)
                return f"({self._column(condition.name.text)} {condition.comparison} {number})"
            case FeatureBetween():
                low, high = (self._number(end, whole) for end in (condition.low, condition.high))
                return f"({self._column(condition.name.text)} BETWEEN {low} AND {high})"
            case FeatureIn():
                return f"({self._column(condition.name.text)} IN ({', '.join(map(_double, condition.numbers))}))"
            case FeatureNull():
                return f"({self._column(condition.name.text)} IS NULL)"
        raise TypeError(f"{condition} does not stand in WHERE")

    def _number(self, threshold: float | Aggregate | Arithmetic, whole: Condition) -> str:
        """A number, or the statistic of what the whole clause says of place and time."""
        if isinstance(threshold, float | int):
            return _double(float(threshold))
        placed = And(tuple(part for part in conjuncts(whole) if not has_features(part)))
        return f"(SELECT {self._operand(threshold)} FROM observations WHERE {self.condition(placed, placed)})"

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, Number):
            return _double(operand.value)
        if isinstance(operand, Arithmetic):
            return f"({self._operand(operand.left)} {operand.operator} {self._operand(operand.right)})"
        assert isinstance(operand, Aggregate)
        return self._aggregate(operand)

    def _instant_us(self, moment: Moment) -> int:
        zone = self._zone if moment.zone is None else ZoneInfo(moment.zone)
        clock = (EPOCH + timedelta(microseconds=moment.local_us)).replace(tzinfo=zone)
        return (clock - EPOCH.replace(tzinfo=UTC)) // timedelta(microseconds=1)

    def _shape(self, shape: Within | Near) -> str:
        """The table of places that a shape holds."""
        if shape not in self._shapes:
            latitude, longitude = self._positions.T
            if isinstance(shape, Within):
                held = shapely.within(shapely.points(longitude, latitude), shapely.from_wkt(shape.text))
            else:
                apart = _globe(latitude, longitude) - _globe(np.array([shape.latitude]), np.array([shape.longitude]))
                chord = np.sqrt((apart**2).sum(axis=0))
                held = 2 * np.arcsin(np.minimum(chord / 2, 1.0)) * EARTH_KM <= shape.km
            name = f"shape{len(self._shapes)}"
            places = pa.table({"place": np.flatnonzero(held)})
            self._duck.register("held", places)
            self._duck.execute(f"CREATE TEMP TABLE {name} AS SELECT place FROM held")
            self._duck.unregister("held")
            self._shapes[shape] = name
        return self._shapes[shape]

    # --- groups as conditions -----------------------------------------------------------------------------------------

    def only(self, question: Question, key: tuple[Any, ...]) -> Question | None:
        """The question of one group alone, its key turned into conditions; None where the clock is in the way."""
        own: list[Condition] = []
        for each, value in zip(question.groups, key, strict=True):
            if isinstance(each, CellKey):
                own.append(InCells((value,)))
                continue
            if isinstance(each, BinKey):
                own += _in_bin(each, value)
                continue
            if each.span.endswith("h"):
                return None
            zone = self._zone_of(each)
            own += [TimeIs(">=", _start(value, zone)), TimeIs("<", _start(_next(value, each), zone))]
        items = tuple(item for item in question.items if not isinstance(item.expression, Key))
        return Question(items, both([question.scope, *own] if question.scope != And() else own))

    def _zone_of(self, key: Key) -> ZoneInfo:
        return ZoneInfo(key.zone) if isinstance(key, BucketKey) and key.zone is not None else self._zone

    def keys_of(self, question: Question, answer: Answer) -> list[tuple[Any, ...]]:
        """The keys of an answer as those of the truth: geohashes, and wall times that a bucket begins with."""
        names = {item.expression: item.name for item in question.items}
        table = answer.to_arrow()
        columns: list[list[Any]] = []
        for key in question.groups:
            values, zone = table.column(names[key]).to_pylist(), self._zone_of(key)
            if isinstance(key, BucketKey):
                columns.append([_wall(value, zone) for value in values])
            else:
                columns.append([math.inf if value is None else value for value in values])
        return list(zip(*columns, strict=True)) if columns else [()] * len(answer)


def _in_bin(key: BinKey, low: float) -> list[Condition]:
    """That a feature lies in a bin; the one without the feature lies behind all others."""
    if low == math.inf:
        return [FeatureNull(key.name)]
    assert key.width is not None
    return [FeatureIs(key.name, ">=", low), FeatureIs(key.name, "<", low + key.width)]


def _start(clock: datetime, zone: ZoneInfo) -> Moment:
    """The instant of a wall time, as UTC."""
    instant = clock.replace(tzinfo=zone) - EPOCH.replace(tzinfo=UTC)
    return Moment(instant // timedelta(microseconds=1), "UTC")


def _wall(instant: datetime, zone: ZoneInfo) -> datetime:
    """What the clock shows; where it skipped midnight, midnight."""
    local = instant.astimezone(zone)
    before = (instant.astimezone(UTC) - timedelta(microseconds=1)).astimezone(zone)
    skipped = (local.utcoffset() or timedelta()) - (before.utcoffset() or timedelta())
    return local.replace(tzinfo=None) - max(skipped, timedelta())


def _next(clock: datetime, key: BucketKey) -> datetime:
    """When the next bucket begins."""
    number, unit = int(key.span.rstrip("dwmoqyh")), key.span.lstrip("0123456789")
    if unit in ("d", "w"):
        return clock + timedelta(days=number * (7 if unit == "w" else 1))
    months = clock.year * 12 + clock.month - 1 + number * {"mo": 1, "q": 3, "y": 12}[unit]
    return datetime(months // 12, months % 12 + 1, 1)


def _slack(aggregate: Aggregate, truth: Floats, features: Mapping[str, list[Floats]]) -> Floats:
    """What rounding may do to a statistic of numbers of such a size."""
    if not aggregate.arguments:
        return np.zeros(truth.size)
    count, low, high = features[aggregate.arguments[0].text]
    reach = np.fmax(np.abs(low), np.abs(high))
    _, other_low, other_high = features[aggregate.arguments[-1].text]
    width = (high - low) * (other_high - other_low)
    match aggregate.function:
        case "count":
            size = np.zeros(truth.size)
        case "sum":
            size = count * reach
        case "mean" | "min" | "max" | "quantile":
            size = reach
        case "std" | "std_samp":
            size = high - low
        case "correlation":
            size = np.ones(truth.size)
        case _:
            size = width
    return np.asarray(ROUNDING * np.nan_to_num(np.fmax(size * 1e-2, np.abs(truth))))


def _prefix(text: str) -> str:
    cell, bits = geohash.parse(text)
    return f"(cell >> {geohash.MAXIMUM_BITS - bits}) = {cell}"


def _letters(cell: int, length: int) -> str:
    return "".join(geohash.ALPHABET[cell >> 5 * place & 31] for place in reversed(range(length)))


def _double(number: float) -> str:
    return f"'{number!r}'::DOUBLE"


def _globe(latitude: Floats, longitude: Floats) -> Floats:
    """Positions on a globe of radius 1."""
    phi, turned = np.radians(latitude), np.radians(longitude)
    return np.stack([np.cos(phi) * np.cos(turned), np.cos(phi) * np.sin(turned), np.sin(phi)])


def conjuncts(condition: Condition) -> list[Condition]:
    """The parts of nested ANDs."""
    if isinstance(condition, And):
        return [part for each in condition.conditions for part in conjuncts(each)]
    return [condition]


def has_features(condition: Condition) -> bool:
    """Whether a condition is one on features, at least in part."""
    match condition:
        case And() | Or():
            return any(map(has_features, condition.conditions))
        case Not():
            return has_features(condition.condition)
        case FeatureIs() | FeatureBetween() | FeatureIn() | FeatureNull():
            return condition.name.text.lower() not in LATITUDES + LONGITUDES
    return False


def has_thresholds(condition: Condition) -> bool:
    """Whether a feature is compared with a statistic."""
    match condition:
        case And() | Or():
            return any(map(has_thresholds, condition.conditions))
        case Not():
            return has_thresholds(condition.condition)
        case FeatureIs():
            return not isinstance(condition.number, float | int)
        case FeatureBetween():
            return not all(isinstance(end, float | int) for end in (condition.low, condition.high))
    return False
