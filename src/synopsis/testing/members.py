"""Members in the plain way: sketches of rows in memory, as Spark makes them of frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from datasketches import hll_sketch, tgt_hll_type, update_theta_sketch

from synopsis.grid import geohash
from synopsis.sketch.layout import Layout
from synopsis.sketch.marks import Marks, hash_of
from synopsis.sketch.members import COUNT_BITS, SAMPLE_BITS, Frames, Members
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strands import Strands


def members_of(
    layout: Layout,
    latitude: Floats,
    longitude: Floats,
    instants_us: Integers,
    entity: Sequence[str],
    cell_bits: int = 20,
) -> Members:
    """The members of rows, in spans of a layout without features. Cost: a loop over the rows."""
    spans = Strands.of(layout, latitude, longitude, instants_us, np.empty((0, len(entity))))
    cell = geohash.encode(latitude, longitude, layout.bits)
    owner = spans.positions(cell, layout.span.ordinals(instants_us, layout.zone))
    places = geohash.encode(latitude, longitude, cell_bits)
    counts, cells = ([hll_sketch(COUNT_BITS, tgt_hll_type.HLL_8) for _ in range(len(spans))] for _ in range(2))
    samples = [update_theta_sketch(SAMPLE_BITS) for _ in range(len(spans))]
    hashes: list[set[int]] = [set() for _ in range(len(spans))]
    for at, place, name in zip(owner.tolist(), places.tolist(), entity, strict=True):
        counts[at].update(name)
        cells[at].update(place)
        samples[at].update(name)
        hashes[at].add(hash_of(name))
    return Members(
        spans,
        "vehicle",
        cell_bits,
        Frames.of([each.serialize_compact() for each in counts]),
        Frames.of([each.serialize_compact() for each in cells]),
        Frames.of([each.compact().serialize() for each in samples]),
        Marks.of([np.array(sorted(each), np.uint32) for each in hashes]),
    )
