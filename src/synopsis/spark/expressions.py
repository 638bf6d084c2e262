"""Cells, buckets and instants as Spark expressions: the grid's arithmetic in generated JVM code.

Each mirrors a function of the grid room, which is its oracle in the tests. What is used for every row is written in
Spark's SQL: a text is one call to Java, a column one for each step.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket

_MICROSECONDS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001}

#: What holds every epoch of the calendar exactly, nanoseconds in whole numbers and seconds with nanoseconds.
EPOCHS = "decimal(28,9)"

#: Instants from year 1 to year 9999: what calendars and Python's datetime know.
EARLIEST_US, LATEST_US = -62_135_596_800_000_000, 253_402_300_799_999_999

#: From the first of March of year 0 to 1970.
_MARCH_OF_YEAR_0_US = 719_468 * 86_400_000_000

#: A text that names its zone: something follows the time of day, be it Z, UTC, an offset, or a region.
_NAMES_A_ZONE = r"[T\s]\d{1,2}(:\d{1,2}){0,2}(\.\d*)?\s*[A-Za-z+-]"

#: ISO 8601 that Spark does not read, and as what it does: all together, a comma, minutes with a zone, small letters.
_MENDED = (
    (r"^(\d{4})(\d{2})(\d{2})[Tt](\d{2})(\d{2})(\d{2})", "$1-$2-$3T$4:$5:$6"),
    (r"^(\d{4})(\d{2})(\d{2})[Tt](\d{2})(\d{2})", "$1-$2-$3T$4:$5"),
    (r"^(\S+[Tt\s]\d{1,2}:\d{1,2}:\d{1,2}),", "$1."),
    (r"^(\S+[Tt\s]\d{1,2}:\d{1,2})(\s*([Zz]|[+-]\d{2}(:?\d{2})?))$", "$1:00$2"),
    (r"^([\d-]+)t", "$1T"),
    (r"z$", "Z"),
)

#: A colon so early belongs to a time of day without a date, which Spark would take for today's.
_NO_DATE = 6


def quoted(name: str) -> str:
    """A column's exact name in SQL, dots and blanks included.

    >>> quoted("wind speed")
    '`wind speed`'
    """
    return "`" + name.replace("`", "``") + "`"


def named(name: str) -> Column:
    """A column by its exact name."""
    return sf.col(quoted(name))


def with_cell(frame: DataFrame, bits: int, name: str = "cell") -> DataFrame:
    """The frame with the geohash cell of `latitude` and `longitude`, as `geohash.encode`; null where either is.

    Each step has a name of its own, which the next one uses: as one expression, every step would repeat the whole of
    the one before twice. Spark makes a projection of each, and plans all of them at once.
    """
    longitude_bits, latitude_bits = geohash.axis_bits(bits)
    column, columns = _spread_axis("longitude", geohash.LONGITUDE_REACH, longitude_bits)
    row, rows = _spread_axis("latitude", geohash.LATITUDE_REACH, latitude_bits)
    # The last bit is longitude's where bits is odd, latitude's where it is even.
    low, high = (column, row) if bits % 2 else (row, column)
    steps = columns | rows | {name: f"{low} | shiftleft({high}, 1)"}
    return frame.selectExpr("*", *(f"{step} AS `{alias}`" for alias, step in steps.items())).drop(*columns, *rows)


def _spread_axis(degrees: str, reach: float, bits: int) -> tuple[str, dict[str, str]]:
    """Which of 2**bits equal parts of an axis, its bits spread to every second place: the steps, and the last's name.

    Rounding may carry a value up to an edge, never down: a guess beyond one is moved to the right side of it, and the
    far end into the last part.
    """
    parts = 1 << bits
    step = 2 * reach / parts
    guess, last = f"__{degrees}_guess", f"__{degrees}_part"
    beyond = f"{degrees} < {guess} * {step!r}D - {reach!r}D OR {guess} = {parts}"
    steps = {
        guess: f"floor(({degrees} + {reach!r}D) / {step!r}D)",
        last: f"{guess} - CASE WHEN {beyond} THEN 1 ELSE 0 END",
    }
    for shift, mask in geohash.SPREAD_STEPS:
        if shift < bits:  # smaller numbers have nothing to push so far apart
            pushed = f"__{degrees}_{shift}"
            steps[pushed] = f"({last} | shiftleft({last}, {shift})) & {mask}L"
            last = pushed
    return last, steps


def bucket(instant_us: str, span: Bucket, timezone: str) -> str:
    """The bucket's ordinal, as `Bucket.ordinals`."""
    local = local_us(instant_us, timezone)
    if span.months:
        return _floor_divide(_months(local), span.months)
    return _floor_divide(f"({local} + {span.lead_us}L)", span.width_us)


def local_us(instant_us: str, timezone: str) -> str:
    """What clocks of the zone show, as microseconds since they showed the beginning of 1970."""
    if timezone == "UTC":
        return instant_us
    return f"unix_micros(from_utc_timestamp(timestamp_micros({instant_us}), '{timezone}'))"


def _months(local_us: str) -> str:
    """Months since January 1970, in whole numbers alone; Spark's year and month make an object a row each.

    Euclidean affine functions (Neri and Schneider 2023): centuries, then years, then months of the days since the
    first of March of year 0, from which February is each year's last month.
    """
    day = _divide(f"({local_us} + {_MARCH_OF_YEAR_0_US}L)", 86_400_000_000)
    quarters = f"({day} * 4L + 3L)"
    century = _divide(quarters, 146_097)
    of_century = f"shiftright({quarters} - {century} * 146097L, 2)"
    scaled = f"(({of_century} * 4L + 3L) * 2939745L)"
    of_year = _divide(f"({scaled} & {0xFFFF_FFFF}L)", 4 * 2_939_745)
    month = f"shiftright({of_year} * 2141L + 197913L, 16)"  # March is 3, February 14
    return f"(({century} * 100L + shiftright({scaled}, 32)) * 12L + {month} - {1970 * 12 + 1}L)"


def _floor_divide(number: str, divisor: int) -> str:
    return number if divisor == 1 else _divide(f"({number} - pmod({number}, {divisor}L))", divisor)


def _divide(number: str, divisor: int) -> str:
    """Whole-number division of what is not negative or has no remainder."""
    return f"({number} div {divisor}L)"


def instant(column: Column, kind: st.DataType, *, timezone: str, unit: str | None, naive: bool = False) -> Column:
    """Microseconds since 1970 UTC of a time column of this type; null where there is none or it cannot be read.

    Times that name no zone are read in `timezone`. `unit` is that of numeric times, and `naive` says of them that they
    count local time, as Parquet's nanoseconds without a zone do.
    """
    if isinstance(kind, st.TimestampType):
        return sf.unix_micros(column)
    if isinstance(kind, st.DateType):
        column, kind = column.cast("timestamp_ntz"), st.TimestampNTZType()
    if isinstance(kind, st.TimestampNTZType):
        if timezone == "UTC":  # as it is: a cast to an instant asks Java's calendar, for every row
            return sf.unix_micros(column)
        return sf.unix_micros(_from_local(column.cast("timestamp"), timezone))
    if isinstance(kind, st.NumericType):
        micros = _scaled(column, kind, unit or "s")
        return sf.unix_micros(_from_local(sf.timestamp_micros(micros), timezone)) if naive else micros
    if isinstance(kind, st.StringType):
        text = sf.trim(column)
        # Only what Spark does not read is looked at a second time.
        return sf.coalesce(_text_us(text, timezone), _text_us(_mended(text), timezone))
    raise TypeError(f"times of type {kind.simpleString()}")


def _text_us(text: Column, timezone: str) -> Column:
    read = sf.when(~sf.instr(text, ":").between(1, _NO_DATE), sf.try_to_timestamp(text))
    local = _from_local(read, timezone)
    return sf.unix_micros(read if timezone == "UTC" else sf.when(text.rlike(_NAMES_A_ZONE), read).otherwise(local))


def _mended(text: Column) -> Column:
    for written, meant in _MENDED:
        text = sf.regexp_replace(text, written, meant)
    return text


def _from_local(column: Column, timezone: str) -> Column:
    return column if timezone == "UTC" else sf.to_utc_timestamp(column, timezone)


def _scaled(column: Column, kind: st.DataType, unit: str) -> Column:
    """Epochs in microseconds; those beyond the calendar become null, so that no conversion can overflow."""
    factor = _MICROSECONDS[unit]
    low, high = EARLIEST_US / factor, LATEST_US / factor
    usable = sf.when((column >= low) & (column <= high), column)
    if isinstance(kind, st.IntegralType):
        whole = usable.cast("bigint")
        if unit == "ns":
            return sf.call_function("div", whole - sf.pmod(whole, sf.lit(1_000)), sf.lit(1_000))
        return whole * int(factor)
    if isinstance(kind, st.DecimalType):
        return sf.floor(usable.cast(EPOCHS) * sf.lit(Decimal(str(factor)))).cast("bigint")
    # To the nearest one: a double beside a whole microsecond means that one.
    return sf.floor(usable.cast("double") * factor + 0.5)
