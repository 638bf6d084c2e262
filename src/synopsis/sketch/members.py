"""Members: who was where and when, for spans of cell and bucket that the planner chooses.

Every span keeps four small things: a count of its entities and one of its finest cells (HyperLogLog), a sample of its
entities by hash, which tells what two spans have in common (theta), and a short mark of each entity, which tells who
was surely not there. All of them unite: coarser spans are made of finer ones, and batches add up. The sketches are
Spark's own, whose bytes the `datasketches` package reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from datasketches import compact_theta_sketch, hll_sketch, hll_union, tgt_hll_type, theta_union

from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket, ladder
from synopsis.sketch.layout import Layout
from synopsis.sketch.marks import Hashes, Marks
from synopsis.sketch.moments import Integers
from synopsis.sketch.packing import packed, unpacked
from synopsis.sketch.strands import Strands

#: Sizes of the sketches, as powers of two: counts are wrong by 1.8% in the mean, and up to 1,024 entities exact.
COUNT_BITS: Final = 11
SAMPLE_BITS: Final = 10

#: The standard error of a HyperLogLog sketch, as a share of the number, times the root of its registers (Flajolet et
#: al., 2007), and entities to a register from which on next to none is empty.
_HLL_ERROR: Final = 1.039
_CROWDED: Final = 10.0

#: By how much the error is smaller where both tell, as measured, and entities to a register that take most of it away.
_GAIN: Final = 0.31
_GONE: Final = 3.2
_ERRORS_AT_95: Final = 2.0

#: The share of the budget that members may take.
SHARE: Final = 1 / 16

#: The longest bucket, and the bits of the largest cells.
_ALL_TIME: Final = Bucket("y", 1000)
_LARGEST: Final = 1


@dataclass(frozen=True, slots=True)
class Count:
    """How many there are, with an interval at 95%."""

    estimate: float
    low: float
    high: float

    @classmethod
    def of_sample(cls, sample: compact_theta_sketch) -> Count:
        """Of how many a sample is, two standard errors to either side."""
        return cls(sample.get_estimate(), sample.get_lower_bound(2), sample.get_upper_bound(2))

    @classmethod
    def of(cls, sketch: hll_sketch) -> Count:
        """What a HyperLogLog sketch counts.

        Its own bounds are those of large numbers. As long as many registers are empty, their number alone tells more
        (linear counting, Whang et al., 1990), and for a while both together tell more than either (benches/sets.py).
        """
        estimate, registers = sketch.get_estimate(), 1 << COUNT_BITS
        each = estimate / registers
        if not estimate > 0.0:
            return cls(0.0, 0.0, 0.0)
        by_empty = math.sqrt(math.expm1(each) - each) / (each * math.sqrt(registers)) if each < _CROWDED else math.inf
        by_both = _HLL_ERROR * (1.0 - _GAIN * math.exp(-each / _GONE)) / math.sqrt(registers)
        half = _ERRORS_AT_95 * min(by_empty, by_both)
        return cls(estimate, estimate / (1.0 + half), estimate / (1.0 - half))


@dataclass(frozen=True, eq=False)
class Frames:
    """Many byte strings, packed as one."""

    data: bytes
    ends: Integers

    @classmethod
    def of(cls, frames: Sequence[bytes]) -> Frames:
        """Frames from plain bytes."""
        ends = np.cumsum([len(frame) for frame in frames], dtype=np.int64)
        return cls(packed(np.frombuffer(b"".join(frames), np.uint8)), ends.astype(np.int32))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return len(self.data) + self.ends.nbytes

    @property
    def plain(self) -> list[bytes]:
        """All frames. Cost: in proportion to their bytes."""
        every = unpacked(self.data).tobytes()
        return [every[start:end] for start, end in zip(np.append(0, self.ends[:-1]), self.ends, strict=True)]

    def take(self, which: Integers) -> list[bytes]:
        """Some of the frames."""
        every = self.plain
        return [every[at] for at in which]


@dataclass(frozen=True, eq=False)
class Members:
    """The members of every span, in the order of the spans."""

    spans: Strands  #: without features
    entity: str  #: what entities are called
    cell_bits: int  #: of the cells that are counted
    counts: Frames  #: of entities
    places: Frames  #: counts of cells
    samples: Frames  #: of entities
    marks: Marks | None  #: of entities; None where there is no room for them

    @property
    def nbytes(self) -> int:
        """Bytes that they take in memory."""
        frames = self.counts.nbytes + self.places.nbytes + self.samples.nbytes
        return self.spans.nbytes + frames + (0 if self.marks is None else self.marks.nbytes)

    def __add__(self, other: Members) -> Members:
        """The members of both, at the finest grain in which both nest."""
        return _united([self, other], _common(self.spans.layout, other.spans.layout))

    def take(self, which: Integers) -> Members:
        """The members of some spans, ascending."""
        marks = self.marks
        if marks is not None:
            sets = marks.sets
            marks = Marks.plain([sets[at] for at in which], marks.bits)
        counts, places, samples = (Frames.of(each.take(which)) for each in (self.counts, self.places, self.samples))
        spans = self.spans.take(which)
        return replace(self, spans=spans, counts=counts, places=places, samples=samples, marks=marks)

    def coarsened(self, layout: Layout) -> Members:
        """The same members in coarser spans. Cost: in proportion to the spans."""
        return self if layout == self.spans.layout else _united([self], layout)

    def within(self, room: int) -> Members | None:
        """With as many spans as fit so many bytes, without marks if need be; None where nothing fits.

        Cost: in proportion to the spans, for each of a few dozen grains in turn.
        """
        if self.nbytes <= room:
            return self
        grains = [each for each in grains_from(self.spans.layout) if each != self.spans.layout]
        spans = {each: self.spans.coarsened(each) for each in grains}
        coarser = sorted(
            grains, key=lambda each: -worth(spans[each].cells.key.size, np.unique(spans[each].bucket).size)
        )
        for members in (self, replace(self, marks=None)):
            for layout in coarser:
                found = members.coarsened(layout)
                if found.nbytes <= room:
                    return found
        return None


@dataclass(frozen=True, eq=False)
class Opened:
    """Members unpacked for the time of one question: what there is in some spans together."""

    members: Members

    def entities_in(self, spans: Integers) -> Count:
        """How many entities there are. Cost: in proportion to the spans."""
        sample = self.sample_of(spans)
        if not sample.is_estimation_mode():  # then it holds them all
            return Count.of_sample(sample)
        return Count.of(_counted(self._counts[at] for at in spans))

    def cells_in(self, spans: Integers) -> Count:
        """How many cells there are. Cost: in proportion to the spans."""
        return Count.of(_counted(self._places[at] for at in spans))

    def sample_of(self, spans: Integers) -> compact_theta_sketch:
        """A sample of the entities. Cost: in proportion to the spans."""
        return _sampled(self._samples[at] for at in spans)

    def marks_of(self, spans: Integers) -> Hashes:
        """The marks of the entities, sorted. Cost: in proportion to the marks of the spans."""
        return np.unique(np.concatenate([np.empty(0, np.uint32), *(self._marks[at] for at in spans)]))

    @cached_property
    def _counts(self) -> list[bytes]:
        return self.members.counts.plain

    @cached_property
    def _places(self) -> list[bytes]:
        return self.members.places.plain

    @cached_property
    def _samples(self) -> list[bytes]:
        return self.members.samples.plain

    @cached_property
    def _marks(self) -> list[Hashes]:
        return [] if self.members.marks is None else self.members.marks.sets


# --- grains -----------------------------------------------------------------------------------------------------------


def grains_from(finest: Layout) -> list[Layout]:
    """Every grain of spans in which one nests: whole geohashes and enclosing buckets, up to all places and times.

    >>> [each.grain for each in grains_from(Layout((), 5, "1y"))]
    ['geohash 1 x 1y', 'geohash 1 x 1000y', '1-bit cell x 1y', '1-bit cell x 1000y']
    """
    spans = [each for each in (*ladder(finest.span), _ALL_TIME) if each.encloses(finest.span)]
    bits = [*range(finest.bits, 0, -geohash.BITS_PER_CHARACTER), _LARGEST]
    grains = [replace(finest, bits=each, bucket=str(span)) for each in bits for span in spans]
    return list(dict.fromkeys(grains))


def worth(cells: int, times: int) -> float:
    """How much a grain with so many cells and buckets tells: people ask for places and for times.

    >>> worth(10, 10) > worth(100, 1)
    True
    """
    return float(np.log2(2 * max(cells, 1)) * np.log2(2 * max(times, 1)))


def _common(one: Layout, other: Layout) -> Layout:
    """The finest grain in which both nest."""
    both = [each for each in grains_from(one) if other.nests_in(each)]
    return max(both, key=lambda each: (each.bits, -each.span.nominal_s))


# --- uniting ----------------------------------------------------------------------------------------------------------


def _united(parts: Sequence[Members], layout: Layout) -> Members:
    """All parts in spans of one layout."""
    spans = Strands.joined([part.spans.coarsened(layout) for part in parts], layout)
    owner = np.concatenate([_owners(part.spans, spans) for part in parts])
    order = np.argsort(owner, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(owner[order])) + 1) if order.size else []

    def unite(name: str, together: Callable[[Iterable[bytes]], bytes]) -> Frames:
        every = [frame for part in parts for frame in getattr(part, name).plain]
        return Frames.of([together(every[at] for at in run) for run in runs])

    marked = [part.marks for part in parts if part.marks is not None]
    marks = None
    if len(marked) == len(parts):
        bits = min(each.bits for each in marked)
        every = [each for part in marked for each in part.cut(bits).sets]
        marks = Marks.plain([np.unique(np.concatenate([every[at] for at in run])) for run in runs], bits)
    return replace(
        parts[0],
        spans=spans,
        counts=unite("counts", lambda frames: count_bytes(_counted(frames))),
        places=unite("places", lambda frames: count_bytes(_counted(frames))),
        samples=unite("samples", lambda frames: _sampled(frames).serialize()),
        marks=marks,
    )


def _owners(spans: Strands, coarser: Strands) -> Integers:
    """Which of the coarser spans each span lies in."""
    cell = geohash.parents(spans.cell, spans.layout.bits, coarser.layout.bits)
    return coarser.positions(cell, spans.layout.span.coarsen(spans.bucket, coarser.layout.span))


def _counted(frames: Iterable[bytes]) -> hll_sketch:
    union = hll_union(COUNT_BITS)
    for frame in frames:
        union.update(hll_sketch.deserialize(frame))
    return union.get_result(tgt_hll_type.HLL_4)


def count_bytes(sketch: hll_sketch) -> bytes:
    """A HyperLogLog sketch as few bytes."""
    return bytes(sketch.serialize_compact())


def small_count(frame: bytes) -> bytes:
    """A HyperLogLog sketch of Spark as few bytes."""
    return count_bytes(_counted([frame]))


def _sampled(frames: Iterable[bytes]) -> compact_theta_sketch:
    union = theta_union(SAMPLE_BITS)
    for frame in frames:
        union.update(compact_theta_sketch.deserialize(frame))
    return union.get_result()


def small_sample(frame: bytes) -> bytes:
    """A theta sketch of Spark, of no more than its nominal size."""
    return bytes(_sampled([frame]).serialize())
