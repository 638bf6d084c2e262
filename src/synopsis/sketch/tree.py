"""The tree: leaves with their paths through planes, the paper's view of the same sorted arrays.

A plane is a level (cell, bucket, a feature's bins); a path takes one vertex of each; its leaf holds the statistics.
Vertices are not objects: with leaves sorted by their paths, a vertex is a run of leaves that share a prefix, its
statistics are those runs pooled, and it exists while somebody asks.

Planes with low fan-out belong near the root (Listings 1 and 2 of the paper). Its Listing 1 scores a plane by the edges
that leave it, which are the next plane's values: a boolean above a thousand places would score a thousand. We score a
plane by the edges that lead into it, measured under the planes already placed above it; that is what its text asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.moments import Comoments, Integers, Moments
from synopsis.sketch.strands import Strands


@dataclass(frozen=True)
class Tree:
    """Leaves sorted by their codes, one code a plane."""

    planes: tuple[str, ...]
    codes: Integers  #: planes x leaves, leaves in lexicographic order of their codes
    rows: Integers
    moments: Moments
    comoments: Comoments

    @classmethod
    def of(
        cls, planes: tuple[str, ...], codes: Integers, rows: Integers, moments: Moments, comoments: Comoments
    ) -> Tree:
        """A tree of leaves in any order; leaves with the same path are pooled. Cost: one sort of the leaves."""
        order = np.lexsort(codes[::-1])
        sorted_codes = codes[:, order]
        starts = np.flatnonzero(_changes(sorted_codes))
        if not starts.size:
            return cls(planes, sorted_codes, rows, moments, comoments)
        return cls(
            planes,
            sorted_codes[:, starts],
            np.add.reduceat(rows[order], starts),
            moments.take(order).pooled(starts),
            comoments.take(order).pooled(starts),
        )

    @classmethod
    def of_strands(cls, strands: Strands) -> Tree:
        """The strands as a tree of two planes."""
        codes = np.stack((strands.cell, strands.bucket))
        return cls.of(("cell", "bucket"), codes, strands.rows, strands.moments, strands.comoments)

    @property
    def leaves(self) -> int:
        """How many leaves hold statistics."""
        return int(self.codes.shape[1])

    @cached_property
    def vertices_by_plane(self) -> tuple[int, ...]:
        """How many vertices each plane has: distinct prefixes that end there."""
        return tuple(int(_changes(self.codes[: depth + 1]).sum()) for depth in range(len(self.planes)))

    @property
    def vertices(self) -> int:
        """The root and the vertices of all planes."""
        return 1 + sum(self.vertices_by_plane)

    @property
    def edges(self) -> int:
        """Everything but the root has one edge leading to it, leaves included."""
        return self.vertices + self.leaves - 1

    @property
    def fan_out(self) -> dict[str, float]:
        """For each plane, how many of its vertices a vertex of the plane above has, on average."""
        counts = (1, *self.vertices_by_plane)
        return {plane: counts[k + 1] / max(counts[k], 1) for k, plane in enumerate(self.planes)}

    def ordered(self, planes: tuple[str, ...]) -> Tree:
        """The same leaves with the planes in another order. Cost: one sort of the leaves."""
        if sorted(planes) != sorted(self.planes):
            raise ValueError(f"the planes are {', '.join(self.planes)}; name each once")
        codes = self.codes[[self.planes.index(plane) for plane in planes]]
        return Tree.of(planes, codes, self.rows, self.moments, self.comoments)

    def compacted(self) -> Tree:
        """Planes placed from the root down, each time the one with the least fan-out under those already placed.

        Cost: a sort of the leaves for every pair of planes.
        """
        return self.ordered(self._placed())

    def reversed(self) -> Tree:
        """The planes of this tree upside down: what the worst order costs."""
        return self.ordered(self.planes[::-1])

    def _placed(self) -> tuple[str, ...]:
        group = np.zeros(self.leaves, np.int64)
        left = list(range(len(self.planes)))
        placed: list[int] = []
        while left:
            refined = {plane: _refined(group, self.codes[plane]) for plane in left}
            best = min(left, key=lambda plane: refined[plane].max(initial=0))
            group = refined[best]
            left.remove(best)
            placed.append(best)
        return tuple(self.planes[plane] for plane in placed)

    def vertex(self, path: Mapping[str, int]) -> tuple[int, Moments, Comoments]:
        """Rows, moments and comoments of the leaves with these codes on some planes. Cost: proportional to leaves."""
        unknown = set(path) - set(self.planes)
        if unknown:
            raise ValueError(f"no plane {sorted(unknown)[0]!r}; the planes are {', '.join(self.planes)}")
        under = np.ones(self.leaves, bool)
        for plane, code in path.items():
            under &= self.codes[self.planes.index(plane)] == code
        if not under.any():
            return 0, Moments.empty(len(self.moments.count), 1), Comoments.empty(len(self.comoments.count), 1)
        start = np.zeros(1, np.int64)
        rows = int(self.rows[under].sum())
        return rows, self.moments.take(under).pooled(start), self.comoments.take(under).pooled(start)

    @property
    def nbytes(self) -> int:
        """Bytes as sorted arrays: codes, rows and statistics of the leaves."""
        return self.codes.nbytes + self.rows.nbytes + self.moments.nbytes + self.comoments.nbytes


def _changes(codes: Integers) -> NDArray[np.bool_]:
    """Where a path differs from the one before it; the first always does."""
    if not codes.shape[1]:
        return np.zeros(0, bool)
    return np.asarray(np.append(True, (codes[:, 1:] != codes[:, :-1]).any(axis=0)))


def _refined(group: Integers, codes: Integers) -> Integers:
    """Groups split by one more plane, numbered from 0."""
    _, dense = np.unique(codes, return_inverse=True)
    _, finer = np.unique(group * (int(dense.max(initial=0)) + 1) + dense, return_inverse=True)
    return np.asarray(finer, np.int64)
