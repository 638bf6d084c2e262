"""Members in Spark: sketches of who was where and when, aggregated natively, a row for each span."""

from __future__ import annotations

from collections.abc import Sequence
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
from synopsis.spark import expressions, jobs
from synopsis.spark.aggregate import counted
from synopsis.spark.observations import Observations

#: Spans that the driver takes at the most, and bytes of each at the least.
_MOST_SPANS, _SPAN_BYTES = 4096, 150

#: Bytes of a mark at the least, and marks that the driver takes at the most.
_MARK_BYTES, _MOST_MARKS = 1.0, 4_000_000

#: Spark sorts all rows of an aggregate by its keys from so many keys on, if they are aggregated by objects.
_MANY_SPANS = {"spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(2 * _MOST_SPANS)}

_EXTENTS, _ENDS = ("latitude", "longitude", "instant_us"), ("min", "max")
_KEYS = ("cell", "bucket", "rows", "min_instant_us", "max_instant_us")
_BOX = ("min_latitude", "min_longitude", "max_latitude", "max_longitude")


def gathered(observed: Observations, spec: Spec, memory: int, first_us: int, last_us: int) -> Members | None:
    """The members of all spans, with as many spans as fit their share of the budget; None without entities or room.

    All rows lie between two instants. One pass over places, times and entities makes visits of them, and all else is
    made of these. The driver sees a few thousand spans and the marks that fit.
    """
    if spec.entity is None:
        return None
    grains = _worthwhile(grains_from(replace(planner.finest(spec), features=())), first_us, last_us)
    visits = _visits(observed, grains[0]).persist()
    try:
        with jobs.settings(visits.sparkSession, _MANY_SPANS):
            return _united(visits, spec.entity, grains, int(memory * SHARE))
    finally:
        visits.unpersist()


def _united(visits: DataFrame, entity: str, grains: Sequence[Layout], room: int) -> Members | None:
    """The members of all spans, from all visits."""
    keys = visits.select(sf.col("place").alias("cell"), sf.col("min_instant_us").alias("instant_us"))
    layout = _grain(counted(keys, grains, grains[0].bits), room)
    rows = _keyed(visits, layout, grains[0].bits)
    table = _spans(rows)
    if not table.num_rows:
        return None
    spans = _strands(table, layout)
    samples = [small_sample(frame) for frame in table["samples"].to_pylist()]
    counts, places = ([small_count(frame) for frame in table[name].to_pylist()] for name in ("counts", "places"))
    whole = Members(spans, entity, grains[0].bits, Frames.of(counts), Frames.of(places), Frames.of(samples), None)
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


def _worthwhile(grains: Sequence[Layout], first_us: int, last_us: int) -> list[Layout]:
    """The grains without buckets so short that between two instants there are more than spans may be; coarsest last."""
    longest = max(grains, key=lambda each: each.span.nominal_s).bucket

    def may_serve(layout: Layout) -> bool:
        return (last_us - first_us) / 1e6 <= layout.span.nominal_s * _MOST_SPANS or layout.bucket == longest

    return [each for each in grains if may_serve(each)]


def _visits(observed: Observations, finest: Layout) -> DataFrame:
    """Every entity in every cell and bucket of the finest grain: how often, and between which ends."""
    rows = expressions.with_cell(observed.accepted, finest.bits, "place")
    keyed = rows.select(
        *("place", "entity", "latitude", "longitude", "instant_us"),
        sf.expr(expressions.bucket("instant_us", finest.span, finest.timezone)).alias("bucket"),
    )
    return keyed.groupBy("place", "bucket", "entity").agg(
        sf.expr("count(1) AS rows"),
        *(sf.expr(f"{end}({column}) AS {end}_{column}") for column in _EXTENTS for end in _ENDS),
    )


def _keyed(visits: DataFrame, layout: Layout, bits: int) -> DataFrame:
    """Every visit with its span."""
    return visits.withColumns(
        {
            "cell": sf.shiftright("place", bits - layout.bits),
            "bucket": sf.expr(expressions.bucket("min_instant_us", layout.span, layout.timezone)),
        }
    )


def _spans(rows: DataFrame) -> pa.Table:
    grouped = rows.groupBy("cell", "bucket").agg(
        sf.sum("rows").alias("rows"),
        *(sf.expr(f"{end}({end}_{column}) AS {end}_{column}") for column in _EXTENTS for end in _ENDS),
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
