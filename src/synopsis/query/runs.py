"""Runs: parts that lie side by side by group, and sums, minima and maxima over each group.

A part is a strand in the role it plays in one group. Its group decides its run; groups without parts get the value of
nothing (0, +inf, -inf). All work is done by NumPy's segmented reductions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.moments import Floats, Integers

Number = TypeVar("Number", np.int64, np.float64)


def picked(base: Integers | slice, which: NDArray[np.intp]) -> Integers:
    """Some of the positions of `base`, by where they are in it."""
    return which + base.start if isinstance(base, slice) else base[which]


def distinct(ascending: Integers) -> tuple[Integers, Integers]:
    """The distinct numbers of an ascending array, and how often each occurs.

    >>> distinct(np.array([3, 3, 7]))
    (array([3, 7]), array([2, 1]))
    """
    ends = np.append(np.flatnonzero(ascending[1:] != ascending[:-1]) + 1, ascending.size)[: ascending.size]
    return ascending[ends - 1], np.diff(ends, prepend=0)


@dataclass(frozen=True, eq=False)
class Runs:
    """Which strands lie in which group.

    >>> runs = Runs.of(positions=np.array([6, 5, 7]), groups=np.array([0, 2, 2]), size=3)
    >>> runs.sum(np.array([10.0, 1.0, 2.0]))
    array([10.,  0.,  3.])
    """

    positions: Integers | slice  #: of strands, group by group
    starts: Integers  #: where the run of each present group begins
    present: Integers | None  #: the groups that have parts; None when all have
    lengths: Integers  #: of the runs
    size: int  #: groups in all

    @classmethod
    def of(cls, positions: Integers | slice, groups: Integers, size: int) -> Runs:
        """Runs from strands and the group of each, groups ascending."""
        present, lengths = distinct(groups)
        return cls.side_by_side(positions, present, lengths, size)

    @classmethod
    def side_by_side(cls, positions: Integers | slice, present: Integers, lengths: Integers, size: int) -> Runs:
        """Runs from the groups that have parts, ascending, and how many each has."""
        starts = np.cumsum(lengths) - lengths
        return cls(positions, starts, None if present.size == size else present, lengths, size)

    @classmethod
    def single(cls, positions: Integers | slice, parts: int) -> Runs:
        """All parts in one group."""
        present = np.zeros(min(parts, 1), np.int64)
        return cls.side_by_side(positions, present, np.full(present.size, parts), 1)

    @property
    def parts(self) -> int:
        """How many parts there are in all groups."""
        return int(self.lengths.sum())

    def keep(self, mask: NDArray[np.bool_]) -> Runs:
        """Only the parts that `mask` names."""
        if mask.all():
            return self
        return Runs.of(picked(self.positions, np.flatnonzero(mask)), self.groups[mask], self.size)

    @property
    def groups(self) -> Integers:
        """The group of each part."""
        return np.repeat(np.arange(self.size) if self.present is None else self.present, self.lengths)

    def sum(self, values: NDArray[Number]) -> NDArray[Number]:
        """The sum over each group; values may have leading axes."""
        return self._reduced(np.add, values, 0)

    def min(self, values: Floats) -> Floats:
        """The least of each group, +inf for none."""
        return self._reduced(np.minimum, values, np.inf)

    def max(self, values: Floats) -> Floats:
        """The greatest of each group, -inf for none."""
        return self._reduced(np.maximum, values, -np.inf)

    def spread_out(self, of_groups: NDArray[Number]) -> NDArray[Number]:
        """The value of its group for each part."""
        values = of_groups if self.present is None else of_groups[..., self.present]
        return np.repeat(values, self.lengths, axis=-1)

    def _reduced(self, operation: np.ufunc, values: NDArray[Number], nothing: float) -> NDArray[Number]:
        if self.present is None:
            return np.asarray(operation.reduceat(values, self.starts, axis=-1))
        result = np.full((*values.shape[:-1], self.size), nothing, values.dtype)
        if self.starts.size:
            result[..., self.present] = operation.reduceat(values, self.starts, axis=-1)
        return result
