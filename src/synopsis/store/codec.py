"""Strands as Arrow tables, one row a strand, so that DuckDB, Polars, Spark or Trino can read the same bytes.

Numbers of the features stand in lists, in the order of the layout's features and pairs: names with blanks or dots
need no quoting, and the schema is the same for every sketch.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Comoments, Moments
from synopsis.sketch.strands import Cells, Strands

_KEYS = ("cell", "bucket", "rows", "first_us", "last_us")
_BOX = ("south", "west", "north", "east")
_MOMENTS = tuple(field.name for field in fields(Moments))
_COMOMENTS = tuple(field.name for field in fields(Comoments))


def _list(name: str) -> pa.DataType:
    return pa.list_(pa.field("element", pa.int64() if name == "count" else pa.float64()))


#: One row a strand. A strand's box is its cell's.
SCHEMA = pa.schema(
    [(name, pa.int64()) for name in _KEYS]
    + [(name, pa.float64()) for name in _BOX]
    + [(name, _list(name)) for name in _MOMENTS]
    + [(f"pair_{name}", _list(name)) for name in _COMOMENTS]
)


def to_table(strands: Strands) -> pa.Table:
    """The strands as rows. Cost is proportional to strands times pairs."""
    at = np.searchsorted(strands.cells.key, strands.cell)
    columns: dict[str, Any] = {name: getattr(strands, name) for name in _KEYS}
    columns |= {name: getattr(strands.cells, name)[at] for name in _BOX}
    columns |= {name: _rows_of(getattr(strands.moments, name)) for name in _MOMENTS}
    columns |= {f"pair_{name}": _rows_of(getattr(strands.comoments, name)) for name in _COMOMENTS}
    return pa.table(columns, schema=SCHEMA)


def from_table(table: pa.Table, layout: Layout) -> Strands:
    """The strands of such rows; rows of the same strand are pooled.

    >>> import numpy as np
    >>> rows = Strands.of(Layout(("a",), 20, "1d"), np.zeros(2), np.zeros(2), np.zeros(2, np.int64), np.ones((1, 2)))
    >>> int(from_table(to_table(rows), rows.layout).rows[0])
    2
    """
    keys = {name: table[name].to_numpy() for name in _KEYS}
    boxes = [table[name].to_numpy() for name in _BOX]
    features, pairs = len(layout.features), len(layout.pairs)
    return Strands(
        layout,
        Cells.of(keys["cell"], *boxes),
        **keys,
        moments=Moments(*(_array_of(table[name], features) for name in _MOMENTS)),
        comoments=Comoments(*(_array_of(table[f"pair_{name}"], pairs) for name in _COMOMENTS)),
    ).pooled()


def _rows_of(array: NDArray[Any]) -> pa.Array:
    """Width x strands as one list a strand."""
    width, strands = array.shape
    return pa.ListArray.from_arrays(
        pa.array(np.arange(strands + 1, dtype=np.int32) * width),
        pa.array(np.ascontiguousarray(array.T).reshape(-1)),
        type=_list("count") if array.dtype == np.int64 else _list("mean"),
    )


def _array_of(column: pa.ChunkedArray, width: int) -> NDArray[Any]:
    """One list a strand as width x strands."""
    flat = np.concatenate([chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks] or [np.empty(0)])
    kind = np.int64 if pa.types.is_integer(column.type.value_type) else np.float64
    return np.ascontiguousarray(flat.reshape(len(column), width).T.astype(kind, copy=False))
