"""The answer: named columns of values and group keys, as rows, as an Arrow table, or as text to look at.

Columns stay arrays until someone asks for rows, so that an answer of a hundred thousand groups costs no objects. What
takes an answer to maps and grids is in `exports`.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synopsis.query.naming import find
from synopsis.query.values import GUARANTEES, Value, Values, written

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN_ROWS: Final = 40
_RIGHT: Final = ' style="text-align: right"'


@dataclass(frozen=True, slots=True, eq=False)
class CellKeys:
    """A column of cells, as geohashes."""

    texts: NDArray[np.str_]

    def __len__(self) -> int:
        return int(self.texts.size)

    def __getitem__(self, row: int) -> str:
        return str(self.texts[row])


@dataclass(frozen=True, slots=True, eq=False)
class BucketKeys:
    """A column of buckets, each as its first instant in the zone whose clocks cut it."""

    starts_us: NDArray[np.int64]
    timezone: str
    ends_us: NDArray[np.int64] | None = None  #: the first instant behind each

    def __len__(self) -> int:
        return int(self.starts_us.size)

    def shown_us(self, instants_us: NDArray[np.int64]) -> NDArray[np.int64]:
        """Starts or ends as they can be shown: a bucket that reaches beyond the calendar, as far as that goes."""
        return np.clip(instants_us, *_calendar_us(self.timezone))

    def __getitem__(self, row: int) -> datetime:
        start_us = self.shown_us(self.starts_us[[row]])
        return (_EPOCH + timedelta(microseconds=int(start_us[0]))).astimezone(ZoneInfo(self.timezone))


@lru_cache(maxsize=256)
def _calendar_us(timezone: str) -> tuple[int, int]:
    """The first and the last instant that a datetime of the zone can show: years 1 to 9999, there and in UTC."""
    zone, ends = ZoneInfo(timezone), (datetime.min, datetime.max)
    offsets = (end.replace(tzinfo=zone).utcoffset() or timedelta() for end in ends)
    first, last = ((end.replace(tzinfo=UTC) - _EPOCH, offset) for end, offset in zip(ends, offsets, strict=True))
    inside = first[0] - min(first[1], timedelta()), last[0] - max(last[1], timedelta())
    return inside[0] // timedelta(microseconds=1), inside[1] // timedelta(microseconds=1)


class Bin(NamedTuple):
    """A range of values, with its lower end and without its upper one.

    >>> print(Bin(10.0, 12.5))
    10..12.5
    """

    low: float
    high: float

    def __str__(self) -> str:
        return f"{written(self.low)}..{written(self.high)}"


@dataclass(frozen=True, slots=True, eq=False)
class BinKeys:
    """A column of ranges of values; NaN, and None as a cell, for rows without one."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def __len__(self) -> int:
        return int(self.low.size)

    def __getitem__(self, row: int) -> Bin | None:
        return None if np.isnan(self.low[row]) else Bin(float(self.low[row]), float(self.high[row]))


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """A column of names."""

    texts: NDArray[np.str_]

    def __len__(self) -> int:
        return int(self.texts.size)

    def __getitem__(self, row: int) -> str:
        return str(self.texts[row])


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """A column of plain numbers, as where a curve is told."""

    numbers: NDArray[np.float64]

    def __len__(self) -> int:
        return int(self.numbers.size)

    def __getitem__(self, row: int) -> float:
        return float(self.numbers[row])


Column = Values | CellKeys | BucketKeys | BinKeys | Names | Points
Cell = Value | str | datetime | Bin | float | None


class About(Protocol):
    """What an answer can find out about its scope when asked."""

    def n(self) -> Value | None: ...
    def coverage(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class AsOf:
    """What an answer is of: a commit of the sketch, and the latest instant that its rows had reached.

    >>> print(AsOf(3, datetime(2025, 3, 1, tzinfo=UTC)))
    commit 3, rows up to 2025-03-01 00:00:00+00:00
    """

    version: int
    watermark: datetime | None = None  #: None where the commits do not tell

    def __str__(self) -> str:
        reached = "" if self.watermark is None else f", rows up to {_text(self.watermark)}"
        return f"commit {self.version}{reached}"


class Answer:
    """What a question came to: one row without GROUP BY, else one for each group.

    `answer["MEAN(temp_c)"]` gives the value of a column when there is one row; `rows` gives all as dicts. `elapsed` is
    the seconds that the question took and `as_of` what it was put to; both are None where no database was asked.
    `notes` says what was answered otherwise than asked, as where the groups are coarser. Columns may be given as who
    makes them of numbers that are known, when they are first looked at.
    """

    def __init__(
        self,
        columns: Mapping[str, Column] | Callable[[], Mapping[str, Column]],
        elapsed: float | None = None,
        as_of: AsOf | None = None,
        notes: tuple[str, ...] = (),
        about: About | None = None,
    ) -> None:
        self._given = columns
        self.elapsed, self.as_of, self.notes, self._about = elapsed, as_of, notes, about

    def stamped(self, elapsed: float, as_of: AsOf | None, about: About | None = None) -> Answer:
        """The same answer, with the seconds that it took and what it is of. Copies no column."""
        return Answer(self._given, elapsed, as_of, self.notes, about)

    @cached_property
    def _columns(self) -> dict[str, Column]:
        return dict(self._given() if callable(self._given) else self._given)

    @cached_property
    def n(self) -> Value | None:
        """How many rows WHERE selects, all groups together; None where no sketch was asked. Cost: that of COUNT(*)."""
        return None if self._about is None else self._about.n()

    @cached_property
    def coverage(self) -> float | None:
        """The share of the cells of the scope that have data, whatever the time; None where no sketch was asked.

        Cost: proportional to these cells, some 50,000 at most.
        """
        return None if self._about is None else self._about.coverage()

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns)

    def column(self, name: str) -> Column:
        """A whole column, by its exact name."""
        return self._columns[name]

    @cached_property
    def rows(self) -> list[dict[str, Cell]]:
        """One dict a row: column -> Value, or the plain group key."""
        return [{name: column[row] for name, column in self._columns.items()} for row in range(len(self))]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Any:
        found = find(name, self.columns)
        if found is None:
            raise KeyError(f"no column {name!r} in this answer; it has {', '.join(self.columns)}")
        if len(self) != 1:
            raise ValueError(f"this answer has {len(self):,} rows, and {name!r} one value in each; see answer.rows")
        return self._columns[found][0]

    def to_arrow(self) -> pa.Table:
        """An Arrow table: each group key a column, a bucket a second with " end" added to its name, and a bin one with
        " high"; each statistic four, of which three add " low", " high" and " guarantee", and from paths two more,
        " p95 low" and " p95 high"."""
        arrays: dict[str, pa.Array] = {}
        for name, column in self._columns.items():
            if isinstance(column, Values):
                arrays[name] = _numbers(column.estimate)
                arrays[f"{name} low"] = _numbers(column.low)
                arrays[f"{name} high"] = _numbers(column.high)
                arrays[f"{name} guarantee"] = pa.array(np.array(GUARANTEES)[column.guarantee], pa.string())
                if column.p95 is not None:
                    for side, numbers in zip(("low", "high"), column.p95.T, strict=True):
                        arrays[f"{name} p95 {side}"] = _numbers(numbers)
            elif isinstance(column, BucketKeys):
                kind = pa.timestamp("us", column.timezone)
                arrays[name] = pa.array(column.shown_us(column.starts_us), kind)
                if column.ends_us is not None:
                    arrays[f"{name} end"] = pa.array(column.shown_us(column.ends_us), kind)
            elif isinstance(column, Points):
                arrays[name] = pa.array(column.numbers)
            elif isinstance(column, BinKeys):
                arrays[name], arrays[f"{name} high"] = _numbers(column.low), _numbers(column.high)
            else:
                arrays[name] = pa.array(column.texts, pa.string())
        return pa.table(arrays)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns of `to_arrow`, for all that takes Arrow: `pa.table(answer)`, Polars, DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas frame with the columns of `to_arrow`; pandas must be installed."""
        return self.to_arrow().to_pandas()

    def to_xarray(self) -> Any:
        """An xarray dataset over `time` (BUCKET) and `lat` x `lon` (CELL); xarray must be installed.

        Cost: proportional to the points of the grid, between the outermost cells, with rows or without.
        """
        from synopsis.query.exports import to_xarray

        return to_xarray(self._columns)

    def to_geojson(self) -> dict[str, Any]:
        """A FeatureCollection: the cell of each row as a polygon, the columns of `to_arrow` as its properties."""
        from synopsis.query.exports import to_geojson

        return to_geojson(self._columns, self.to_arrow())

    def plot(self, **options: Any) -> Any:
        """A matplotlib figure: lines over buckets, a map of cells, bars over bins, dots without groups, all with their
        intervals; `options` are those of `pictures.picture`, as title and column. Needs pip install 'synopsis[plot]'.
        """
        from synopsis.query.pictures import picture

        return picture(self, **options)

    def __repr__(self) -> str:
        table = [self.columns, *([_text(cell) for cell in row] for row in self._shown())]
        widths = [max(len(line[position]) for line in table) for position in range(len(self.columns))]
        lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in table]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(line.rstrip() for line in [*lines, *self._rest()])

    def _repr_html_(self) -> str:
        head = "".join(
            f"<th{_RIGHT if isinstance(column, Values) else ''}>{html.escape(name)}</th>"
            for name, column in self._columns.items()
        )
        body = "".join(f"<tr>{''.join(map(_html, row))}</tr>" for row in self._shown())
        rest = "".join(f"<p>{html.escape(line)}</p>" for line in self._rest())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def _shown(self) -> list[list[Cell]]:
        shown = range(min(len(self), _SHOWN_ROWS))
        return [[column[row] for column in self._columns.values()] for row in shown]

    def _rest(self) -> list[str]:
        more = [f"... and {len(self) - _SHOWN_ROWS:,} more rows"] if len(self) > _SHOWN_ROWS else []
        return [*more, *self.notes]


def _numbers(numbers: NDArray[Any]) -> pa.Array:
    return pa.array(numbers, mask=np.isnan(numbers))


def _text(cell: Cell) -> str:
    if cell is None:
        return "absent"
    if isinstance(cell, float):
        return written(cell)
    return cell.isoformat(sep=" ") if isinstance(cell, datetime) else str(cell)


def _html(cell: Cell) -> str:
    if not isinstance(cell, Value):
        return f"<td>{html.escape(_text(cell))}</td>"
    number, promise = html.escape(cell.number), html.escape(cell.promise)
    return f'<td{_RIGHT}><span style="font-size: larger">{number}</span><br><small>{promise}</small></td>'
