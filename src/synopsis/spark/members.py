"""Members in Spark: sketches of who was where and when, aggregated natively, a row for each span."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from synopsis.core.spec import Spec
from synopsis.sketch import planner
from synopsis.sketch.layout import Layout
from synopsis.sketch.marks import HASH_BITS, Hashes, Marks
from synopsis.sketch.members import (
    COUNT_BITS,
    SAMPLE_BITS,
    SHARE,
    Frames,
    Members,
    Opened,
    grains_from,
    small_count,
    small_sample,
    worth,
)
from synopsis.sketch.moments import Comoments, Moments
from synopsis.sketch.strands import Cells, Strands
from synopsis.spark import expressions
from synopsis.spark.aggregate import strand_counts
from synopsis.spark.observations import Observations

#: Spans that the driver takes at the most, and bytes of each at the least.
_MOST_SPANS, _SPAN_BYTES = 4096, 150

#: Bytes of a mark at the least, and marks that the driver takes at the most.
_MARK_BYTES, _MOST_MARKS = 1.0, 4_000_000

_EXTENTS = ("latitude", "longitude", "instant_us")
_KEYS = ("cell", "bucket", "rows", "min_instant_us", "max_instant_us")
_BOX = ("min_latitude", "min_longitude", "max_latitude", "max_longitude")


def gathered(observed: Observations, spec: Spec, memory: int) -> Members | None:
    """The members of all spans, with as many spans as fit their share of the budget; None without entities or room.

    Three passes over places, times and entities; the driver sees a few thousand spans and the marks that fit.
    """
    room = int(memory * SHARE)
    if spec.entity is None:
        return None
    layout = _grain(strand_counts(observed, grains_from(replace(planner.finest(spec), features=()))), room)
    rows = _keyed(observed, layout, spec)
    table = _spans(rows)
    if not table.num_rows:
        return None
    spans = _strands(table, layout)
    samples = [small_sample(frame) for frame in table["samples"].to_pylist()]
    counts, places = ([small_count(frame) for frame in table[name].to_pylist()] for name in ("counts", "places"))
    whole = Members(
        spans, spec.entity, 5 * spec.precision, Frames.of(counts), Frames.of(places), Frames.of(samples), None
    )
    if _has_room_for_marks(whole, room):
        whole = replace(whole, marks=Marks.of(_hashes(rows, spans)))
    return whole.within(room)


def _has_room_for_marks(members: Members, room: int) -> bool:
    """Whether the marks of all entities may fit, and those of all spans can come to the driver."""
    spans, opened = np.arange(len(members.spans)), Opened(members)
    in_spans = sum(opened.entities_in(spans[at : at + 1]).estimate for at in spans)
    return opened.entities_in(spans).estimate * _MARK_BYTES <= room and in_spans <= _MOST_MARKS


def _grain(counts: dict[Layout, int], room: int) -> Layout:
    """The grain that tells most of places and times with spans that are not too many."""
    coarsest = list(counts)[-1]

    def worth_of(layout: Layout) -> float:
        cells = counts[replace(layout, bucket=coarsest.bucket)]
        times = counts[replace(layout, bits=coarsest.bits)] / max(counts[coarsest], 1)
        return worth(cells, round(times))

    most = min(_MOST_SPANS, room // _SPAN_BYTES)
    return max([each for each, spans in counts.items() if spans <= most] or [coarsest], key=worth_of)


def _keyed(observed: Observations, layout: Layout, spec: Spec) -> DataFrame:
    """Every accepted row with its span, its finest cell and its entity."""
    bits = 5 * spec.precision
    rows = expressions.with_cell(observed.frame.where("reason = 0"), bits, "place")
    return rows.select(
        sf.shiftright("place", bits - layout.bits).alias("cell"),
        expressions.bucket(sf.col("instant_us"), layout.span, layout.timezone).alias("bucket"),
        *("place", "entity", "latitude", "longitude", "instant_us"),
    )


def _spans(rows: DataFrame) -> pa.Table:
    grouped = rows.groupBy("cell", "bucket").agg(
        sf.count(sf.lit(1)).alias("rows"),
        *(sf.expr(f"{end}({column}) AS {end}_{column}") for column in _EXTENTS for end in ("min", "max")),
        sf.hll_sketch_agg("entity", COUNT_BITS).alias("counts"),
        sf.hll_sketch_agg("place", COUNT_BITS).alias("places"),
        sf.theta_sketch_agg("entity", SAMPLE_BITS).alias("samples"),
    )
    return grouped.orderBy("cell", "bucket").toArrow()


def _strands(table: pa.Table, layout: Layout) -> Strands:
    """The spans without their members."""
    numbers = {name: table[name].to_numpy() for name in (*_KEYS, *_BOX)}
    return Strands(
        layout,
        Cells.of(numbers["cell"], *(numbers[name] for name in _BOX)),
        cell=numbers["cell"],
        bucket=numbers["bucket"],
        rows=numbers["rows"],
        first_us=numbers["min_instant_us"],
        last_us=numbers["max_instant_us"],
        moments=Moments.empty(0, table.num_rows),
        comoments=Comoments.empty(0, table.num_rows),
    )


def _hashes(rows: DataFrame, spans: Strands) -> list[Hashes]:
    """The hashes of the entities of every span, sorted."""
    known = rows.where("entity IS NOT NULL").select("cell", "bucket", "entity").distinct()
    digits = sf.substring(sf.md5("entity"), 1, HASH_BITS // 4)
    table = known.select("cell", "bucket", sf.conv(digits, 16, 10).cast("bigint").alias("hash")).toArrow()
    cell, bucket, hashes = (table[name].to_numpy() for name in ("cell", "bucket", "hash"))
    owner = spans.positions(cell, bucket)
    order = np.lexsort((hashes, owner))
    ends = np.searchsorted(owner[order], np.arange(1, len(spans)))
    return np.split(hashes[order].astype(np.uint32), ends)
