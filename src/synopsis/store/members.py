"""Members as Arrow tables, a row for each span, with the sketches as Spark and the `datasketches` package read them.

    SELECT hll_sketch_estimate(hll_union_agg(counts)) FROM members

Marks are sorted integers of four bytes. What all spans share stands in every row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from synopsis.sketch.layout import Layout
from synopsis.sketch.marks import Marks
from synopsis.sketch.members import Frames, Members
from synopsis.sketch.moments import Comoments, Moments
from synopsis.sketch.strands import Cells, Strands

_KEYS = ("cell", "bucket", "rows", "first_us", "last_us")
_BOX = ("south", "west", "north", "east")
_FRAMES = ("counts", "places", "samples")
_SHARED = {"entity": pa.string(), "cell_bits": pa.int64(), "mark_bits": pa.int64()}
_GRAIN = {"bits": pa.int64(), "span": pa.string(), "timezone": pa.string()}

SCHEMA = pa.schema(
    [(name, pa.int64()) for name in _KEYS]
    + [(name, pa.float64()) for name in _BOX]
    + [(name, pa.binary()) for name in (*_FRAMES, "marks")]
    + list((_SHARED | _GRAIN).items())
)


def to_table(members: Members) -> pa.Table:
    """Members as rows. Cost: in proportion to their bytes."""
    spans, marks = members.spans, members.marks
    at = np.searchsorted(spans.cells.key, spans.cell)
    shared = {"entity": members.entity, "cell_bits": members.cell_bits, "mark_bits": marks and marks.bits}
    shared |= {"bits": spans.layout.bits, "span": spans.layout.bucket, "timezone": spans.layout.timezone}
    columns: dict[str, Any] = {name: getattr(spans, name) for name in _KEYS}
    columns |= {name: getattr(spans.cells, name)[at] for name in _BOX}
    columns |= {name: getattr(members, name).plain for name in _FRAMES}
    columns["marks"] = [None] * len(spans) if marks is None else [each.astype("<u4").tobytes() for each in marks.sets]
    columns |= {name: [value] * len(spans) for name, value in shared.items()}
    return pa.table(columns, schema=SCHEMA)


def from_table(table: pa.Table) -> Members | None:
    """The members of such rows; None where there are none."""
    if not table.num_rows:
        return None
    shared = {name: table[name][0].as_py() for name in (*_SHARED, *_GRAIN)}
    keys = {name: table[name].to_numpy() for name in _KEYS}
    spans = Strands(
        Layout((), shared["bits"], shared["span"], shared["timezone"]),
        Cells.of(keys["cell"], *(table[name].to_numpy() for name in _BOX)),
        **keys,
        moments=Moments.empty(0, table.num_rows),
        comoments=Comoments.empty(0, table.num_rows),
    )
    marks = None
    if shared["mark_bits"] is not None:
        sets = [np.frombuffer(each, "<u4").astype(np.uint32) for each in table["marks"].to_pylist()]
        marks = Marks.plain(sets, shared["mark_bits"])
    counts, places, samples = (Frames.of(table[name].to_pylist()) for name in _FRAMES)
    return Members(spans, shared["entity"], shared["cell_bits"], counts, places, samples, marks)
