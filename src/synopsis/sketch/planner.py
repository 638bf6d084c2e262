"""The planner: from the spec, and how many strands each grain would have, to a layout that fits `memory`.

In this release a layout is one grain: the promised one, or the finest that fits. The planner reads counts, never rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from synopsis.core.errors import BadSpec, BudgetTooSmall
from synopsis.core.spec import Spec
from synopsis.grid.buckets import Bucket, ladder
from synopsis.sketch.layout import Layout

#: Counting distinct strands is approximate (5%), and each cell takes 40 bytes beside its strands.
_MARGIN = 1.1


def bucket_of(text: str, field: str) -> Bucket:
    """A bucket named in a spec, or an error that names the field."""
    try:
        return Bucket.parse(text)
    except ValueError as problem:
        raise BadSpec(f"{field}: {problem}") from None


def promised(spec: Spec) -> Layout | None:
    """The layout that `exact_at` asks for, if it does."""
    finest = bucket_of(spec.bucket, "bucket")
    if spec.exact_at is None:
        return None
    precision, text = spec.exact_at
    bucket = bucket_of(text, "exact_at")
    if precision > spec.precision:
        raise BadSpec(f"exact_at asks for geohash {precision} and precision allows {spec.precision}; raise precision")
    if not bucket.encloses(finest):
        raise BadSpec(
            f"exact_at asks for {bucket} and bucket allows {finest} at the finest; give bucket={str(bucket)!r}"
        )
    return Layout(spec.features, 5 * precision, str(bucket), spec.timezone)


def finest(spec: Spec) -> Layout:
    """The finest grain that the spec allows: that of a sketch whose summary holds everything."""
    return Layout(spec.features, 5 * spec.precision, str(bucket_of(spec.bucket, "bucket")), spec.timezone)


def candidates(spec: Spec) -> list[Layout]:
    """The layouts that the planner may choose from: every geohash length up to `precision`, every enclosing bucket."""
    spans = ladder(bucket_of(spec.bucket, "bucket"))
    return [
        Layout(spec.features, 5 * length, str(span), spec.timezone)
        for length in range(spec.precision, 0, -1)
        for span in spans
    ]


def choose(spec: Spec, strands: Mapping[Layout, int]) -> Layout:
    """The layout with the most strands that fits `memory`; `strands` says how many each would have."""

    def needed(layout: Layout) -> int:
        return int(strands[layout] * layout.strand_bytes() * _MARGIN)

    fitting = [layout for layout in strands if needed(layout) <= spec.memory]
    if not fitting:
        least = min(strands, key=needed)
        raise BudgetTooSmall(f"the coarsest layout ({least.grain})", needed(least), spec.memory)
    return max(fitting, key=lambda layout: (strands[layout], layout.bits))
