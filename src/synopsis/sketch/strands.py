"""Strands: what is kept exactly of every cell and bucket, as sorted arrays that merge by pooling.

A strand is a cell x bucket. It keeps how many rows fell into it, its first and last time, the moments of each feature
and the comoments of each pair; each cell keeps the tight box of the positions seen in it, so that a station is never
cut in half. Keys are sorted by cell, then bucket: selecting is a search, merging a sort and a segmented sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Comoments, Floats, Integers, Moments


@dataclass(frozen=True)
class Cells:
    """The cells that have data, sorted, and the tight box of the positions seen in each."""

    key: Integers
    south: Floats
    west: Floats
    north: Floats
    east: Floats

    @classmethod
    def of(cls, key: Integers, south: Floats, west: Floats, north: Floats, east: Floats) -> Cells:
        """Cells from keys in any order with repeats: boxes of the same cell are joined."""
        order = np.argsort(key, kind="stable")
        unique, starts = np.unique(key[order], return_index=True)
        if not unique.size:
            return cls(unique, *(np.empty(0) for _ in range(4)))
        return cls(
            unique,
            np.minimum.reduceat(south[order], starts),
            np.minimum.reduceat(west[order], starts),
            np.maximum.reduceat(north[order], starts),
            np.maximum.reduceat(east[order], starts),
        )

    @property
    def box(self) -> tuple[Floats, Floats, Floats, Floats]:
        """South, west, north, east."""
        return self.south, self.west, self.north, self.east

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.key.nbytes + sum(side.nbytes for side in self.box)

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Cells:
        """The cells of all parts, boxes of the same cell joined."""
        sides = (np.concatenate(side) for side in zip(*(part.box for part in parts), strict=True))
        return cls.of(np.concatenate([part.key for part in parts]), *sides)


@dataclass(frozen=True)
class Strands:
    """The exact part of a sketch: sorted strands of one layout.

    Adding two gives the strands of all their rows, in any order and grouping; `Strands.empty` adds nothing.
    """

    layout: Layout
    cells: Cells
    cell: Integers
    bucket: Integers  #: ordinal in the layout's calendar
    rows: Integers
    first_us: Integers  #: earliest instant seen, microseconds since 1970 UTC
    last_us: Integers
    moments: Moments  #: arrays of features x strands
    comoments: Comoments  #: arrays of pairs x strands

    @classmethod
    def empty(cls, layout: Layout) -> Strands:
        """No strands at all."""
        none, nowhere = np.empty(0, np.int64), np.empty(0)
        return cls(
            layout,
            Cells(none, nowhere, nowhere, nowhere, nowhere),
            cell=none,
            bucket=none,
            rows=none,
            first_us=none,
            last_us=none,
            moments=Moments.empty(len(layout.features), 0),
            comoments=Comoments.empty(len(layout.pairs), 0),
        )

    @classmethod
    def of(
        cls,
        layout: Layout,
        latitude: Floats,
        longitude: Floats,
        instants_us: Integers,
        values: NDArray[np.float64],
    ) -> Strands:
        """Strands of rows in memory: `values` is features x rows, NaN being absent.

        The plain way, one row a part; Spark builds the same natively. Cost is proportional to rows times pairs.
        """
        cell = geohash.encode(latitude, longitude, layout.bits)
        bucket = layout.span.ordinals(instants_us, layout.zone)
        present = ~np.isnan(values)
        value = np.where(present, values, 0.0)
        nothing = np.zeros_like(value)
        moments = Moments(
            present.astype(np.int64),
            value,
            nothing,
            np.where(present, value, np.inf),
            np.where(present, value, -np.inf),
        )
        one, two = ([pair[side] for pair in layout.pairs] for side in (0, 1))
        both = present[one] & present[two]
        nothing = np.zeros(both.shape)
        comoments = Comoments(
            both.astype(np.int64),
            np.where(both, value[one], 0.0),
            np.where(both, value[two], 0.0),
            nothing,
            nothing,
            nothing,
        )
        cells = Cells.of(cell, latitude, longitude, latitude, longitude)
        rows = np.ones(cell.size, np.int64)
        return cls(layout, cells, cell, bucket, rows, instants_us, instants_us, moments, comoments).pooled()

    def __len__(self) -> int:
        return int(self.cell.size)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays: what the sketch takes in memory."""
        keys = (self.cell, self.bucket, self.rows, self.first_us, self.last_us)
        return sum(key.nbytes for key in keys) + self.cells.nbytes + self.moments.nbytes + self.comoments.nbytes

    def __add__(self, other: Strands) -> Strands:
        return Strands.joined([self, other], self.layout)

    @classmethod
    def joined(cls, parts: Sequence[Strands], layout: Layout) -> Strands:
        """All parts added up, in one sort."""
        for part in parts:
            if part.layout != layout:
                raise ValueError(f"strands of {part.layout.grain} and {layout.grain} do not add; coarsen one first")
        parts = [part for part in parts if len(part)]
        if not parts:
            return cls.empty(layout)

        def chained(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts])

        return cls(
            layout,
            Cells.joined([part.cells for part in parts]),
            cell=chained("cell"),
            bucket=chained("bucket"),
            rows=chained("rows"),
            first_us=chained("first_us"),
            last_us=chained("last_us"),
            moments=Moments.joined([part.moments for part in parts]),
            comoments=Comoments.joined([part.comoments for part in parts]),
        ).pooled()

    def pooled(self) -> Strands:
        """Sorted by cell and bucket, strands of the same key joined. Cost: one sort of the strands, unless sorted."""
        higher, same = self.cell[1:] > self.cell[:-1], self.cell[1:] == self.cell[:-1]
        if (higher | (same & (self.bucket[1:] > self.bucket[:-1]))).all():
            return self
        order = np.lexsort((self.bucket, self.cell))
        cell, bucket = self.cell[order], self.bucket[order]
        new = np.append(True, (cell[1:] != cell[:-1]) | (bucket[1:] != bucket[:-1]))
        starts = np.flatnonzero(new)
        return Strands(
            self.layout,
            self.cells,
            cell[starts],
            bucket[starts],
            np.add.reduceat(self.rows[order], starts),
            np.minimum.reduceat(self.first_us[order], starts),
            np.maximum.reduceat(self.last_us[order], starts),
            self.moments.take(order).pooled(starts),
            self.comoments.take(order).pooled(starts),
        )

    def positions(self, cell: Integers, bucket: Integers) -> Integers:
        """Where the strands with these keys stand; all must be there. Cost: a binary search a key."""
        low, high = (self.bucket.min(), self.bucket.max()) if len(self) else (0, 0)
        span = int(high - low) + 1

        def flat(cells: Integers, buckets: Integers) -> Integers:
            return np.searchsorted(self.cells.key, cells) * span + (buckets - low)

        return np.searchsorted(flat(self.cell, self.bucket), flat(cell, bucket))

    def take(self, which: NDArray[np.generic]) -> Strands:
        """Some of the strands, by mask or sorted positions; their cells with them."""
        cell = self.cell[which]
        kept = np.isin(self.cells.key, cell)
        return Strands(
            self.layout,
            Cells(self.cells.key[kept], *(side[kept] for side in self.cells.box)),
            cell,
            self.bucket[which],
            self.rows[which],
            self.first_us[which],
            self.last_us[which],
            self.moments.take(which),
            self.comoments.take(which),
        )

    def of_features(self, which: Sequence[int]) -> Strands:
        """The strands with some of their features, ascending by position."""
        if len(which) == len(self.layout.features):
            return self
        pairs = [at for at, (one, two) in enumerate(self.layout.pairs) if one in which and two in which]
        return replace(
            self,
            layout=replace(self.layout, features=tuple(self.layout.features[at] for at in which)),
            moments=self.moments.each(lambda array: array[list(which)]),
            comoments=self.comoments.each(lambda array: array[pairs]),
        )

    def coarsened(self, layout: Layout) -> Strands:
        """The same rows at a coarser grain: cells at their parents, buckets in the buckets that enclose them."""
        if not self.layout.nests_in(layout):
            raise ValueError(f"{self.layout.grain} does not nest in {layout.grain}")
        parents = Cells.of(geohash.parents(self.cells.key, self.layout.bits, layout.bits), *self.cells.box)
        return Strands(
            layout,
            parents,
            geohash.parents(self.cell, self.layout.bits, layout.bits),
            self.layout.span.coarsen(self.bucket, layout.span),
            self.rows,
            self.first_us,
            self.last_us,
            self.moments,
            self.comoments,
        ).pooled()
