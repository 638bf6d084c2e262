"""Tables: a sketch, or a part of one, as rows of Arrow.

Strands give a row each: cell, bucket, rows, and count, mean, deviation, least and greatest value of every feature.
Paths give a row each: where and on which day, how many rows they stand for under the sketch's condition, and between
which values each feature lies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from synopsis.grid import geohash
from synopsis.query.binding import bind
from synopsis.query.covers import Covers
from synopsis.query.estimate import Estimates
from synopsis.query.opened import Opened, day_us
from synopsis.query.predicates import positive
from synopsis.query.relation import Relation
from synopsis.query.sampled import Sample
from synopsis.query.tree import Aggregate, Item, Question
from synopsis.sketch.strands import Strands
from synopsis.sketch.strata import Strata, bin_ranges
from synopsis.sketch.summary import Summary


def to_table(relation: Relation) -> pa.Table:
    """The sketch as a table. Cost: proportional to all of it."""
    if relation.summary is None:
        return _of_strands(relation.strands)
    return _of_paths(relation, relation.summary)


def _of_strands(strands: Strands) -> pa.Table:
    layout = strands.layout
    south, west, north, east = geohash.decode(strands.cell, layout.bits)
    columns: dict[str, Any] = {
        "lat": (south + north) / 2,
        "lon": (west + east) / 2,
        "bucket": pa.array(layout.span.starts_us(strands.bucket, layout.zone), pa.timestamp("us", layout.timezone)),
        "bucket end": pa.array(layout.span.ends_us(strands.bucket, layout.zone), pa.timestamp("us", layout.timezone)),
        "rows": strands.rows,
    }
    if not layout.bits % geohash.BITS_PER_CHARACTER:
        columns = {"cell": geohash.to_text(strands.cell, layout.bits // geohash.BITS_PER_CHARACTER), **columns}
    moments = strands.moments
    for at, name in enumerate(layout.features):
        count = moments.count[at]
        there = count > 0
        deviation = np.sqrt(moments.spread[at] / np.maximum(count, 1))
        columns[f"{name} count"] = count
        for word, numbers in (
            ("mean", moments.mean[at]),
            ("std", deviation),
            ("min", moments.low[at]),
            ("max", moments.high[at]),
        ):
            columns[f"{name} {word}"] = pa.array(numbers, mask=~there)
    return pa.table(columns)


def _of_paths(relation: Relation, summary: Summary) -> pa.Table:
    layout = relation.layout
    features = range(len(layout.features))
    plan = bind(Question((Item("rows", Aggregate("count")),), relation.where), layout)
    tables = []
    for part in plan.parts:
        opened = Opened.of(summary, layout, part, features, cuts_days=False)
        if opened.strata is not None:
            tables.append(_of_strata(opened, opened.strata, part.condition))
    if tables:
        return pa.concat_tables(tables)
    empty: dict[str, Any] = {"lat": [], "lon": [], "day": [], "rows": []}
    return pa.table({name: pa.array([], pa.float64()) for name in (*empty, *_names(layout.features))})


def _names(features: tuple[str, ...]) -> list[str]:
    return [f"{name} {end}" for name in features for end in ("low", "high")]


def _of_strata(opened: Opened, strata: Strata, condition: Any) -> pa.Table:
    layout, scales = opened.layout, opened.summary.scales
    covered = opened.covered(opened.begin_us, opened.end_us)
    found = Estimates(
        Sample(strata, scales, opened.features, Covers.whole(covered.share, covered.lean, strata.day_kept)),
        positive(condition),
    )
    which, rows = found.standing_for()
    day = np.searchsorted(np.cumsum(strata.day_kept), which, side="right")
    stratum = np.searchsorted(strata.day_offset, day, side="right") - 1
    place = strata.day_place[day]
    columns: dict[str, Any] = {
        "lat": opened.summary.latitude[place],
        "lon": opened.summary.longitude[place],
        "day": pa.array(
            day_us(strata.day[day], layout, opened.summary.layout.spell), pa.timestamp("us", layout.timezone)
        ),
        "rows": rows,
    }
    for at, name in enumerate(layout.features):
        position = opened.features.index(at)
        code = strata.codes[position][which]
        absent = code == strata.bins
        for end, table in zip(("low", "high"), bin_ranges(strata, scales, at, position), strict=True):
            numbers = table[stratum, np.where(absent, 0, code)]
            columns[f"{name} {end}"] = pa.array(numbers, mask=absent)
    return pa.table(columns)
