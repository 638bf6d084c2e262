"""The answer: named columns of values and group keys, as rows, as an Arrow table, or as text to look at.

Columns stay arrays until someone asks for rows, so that an answer of a hundred thousand groups costs no objects.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synopsis.query.naming import find
from synopsis.query.values import GUARANTEES, Value, Values

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN_ROWS: Final = 40


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
    """A column of buckets, each as its first instant in the sketch's zone."""

    starts_us: NDArray[np.int64]
    timezone: str

    def __len__(self) -> int:
        return int(self.starts_us.size)

    def __getitem__(self, row: int) -> datetime:
        instant = _EPOCH + timedelta(microseconds=int(self.starts_us[row]))
        return instant.astimezone(ZoneInfo(self.timezone))


Column = Values | CellKeys | BucketKeys
Cell = Value | str | datetime


class Answer:
    """What a question came to: one row without GROUP BY, else one for each group.

    `answer["MEAN(temp_c)"]` gives the value of a column when there is one row; `rows` gives all as dicts.
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = dict(columns)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns)

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
        """An Arrow table: each group key a column; each statistic four, of which three add " low", " high" and
        " guarantee" to its name, and from paths two more, " p95 low" and " p95 high"."""
        arrays: dict[str, pa.Array] = {}
        for name, column in self._columns.items():
            if isinstance(column, Values):
                undefined = np.isnan(column.estimate)
                arrays[name] = pa.array(column.estimate, mask=undefined)
                arrays[f"{name} low"] = pa.array(column.low, mask=undefined)
                arrays[f"{name} high"] = pa.array(column.high, mask=undefined)
                arrays[f"{name} guarantee"] = pa.array(np.array(GUARANTEES)[column.guarantee], pa.string())
                if column.p95 is not None:
                    for side, numbers in zip(("low", "high"), column.p95.T, strict=True):
                        arrays[f"{name} p95 {side}"] = pa.array(numbers, mask=np.isnan(numbers))
            elif isinstance(column, BucketKeys):
                arrays[name] = pa.array(column.starts_us, pa.timestamp("us", column.timezone))
            else:
                arrays[name] = pa.array(column.texts, pa.string())
        return pa.table(arrays)

    def to_pandas(self) -> Any:
        """A pandas frame with the columns of `to_arrow`; pandas must be installed."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        table = [self.columns, *self._texts()]
        widths = [max(len(line[position]) for line in table) for position in range(len(self.columns))]
        lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in table]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(line.rstrip() for line in [*lines, *self._rest()])

    def _repr_html_(self) -> str:
        def row(texts: list[str], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{html.escape(text)}</{tag}>' for text in texts)}</tr>"

        body = "".join(row(texts, "td") for texts in self._texts())
        rest = "".join(f"<p>{html.escape(line)}</p>" for line in self._rest())
        return f"<table><thead>{row(self.columns, 'th')}</thead><tbody>{body}</tbody></table>{rest}"

    def _texts(self) -> list[list[str]]:
        shown = range(min(len(self), _SHOWN_ROWS))
        return [[_text(column[row]) for column in self._columns.values()] for row in shown]

    def _rest(self) -> list[str]:
        return [f"... and {len(self) - _SHOWN_ROWS:,} more rows"] if len(self) > _SHOWN_ROWS else []


def _text(cell: Cell) -> str:
    return cell.isoformat(sep=" ") if isinstance(cell, datetime) else str(cell)
