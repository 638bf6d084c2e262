"""Moments: count, mean, spread and extremes of numbers, kept so that parts add up.

Chan, Golub & LeVeque (1983) give the pooling of means and squared distances used here; it keeps all digits
whatever the offset of the numbers (kelvin, pascal), because nothing large is ever subtracted.
Each field is an array whose last axis runs over the parts; pooling joins runs of neighbouring parts into one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Positions = NDArray[np.int32]  #: of paths, of which there are many, but never 2^31


class Pooled:
    """What moments and comoments share: they are arrays over parts, picked and joined along the last axis."""

    def each(self, change: Callable[[NDArray[np.generic]], NDArray[np.generic]]) -> Self:
        """The same record with every array passed through `change`."""
        return type(self)(**{field.name: change(getattr(self, field.name)) for field in fields(self)})  # type: ignore[arg-type] # every subclass is a dataclass

    def take(self, parts: NDArray[np.generic] | slice) -> Self:
        """Some of the parts, by position, mask or slice."""
        return self.each(lambda array: array[..., parts])

    @classmethod
    def joined(cls, records: Sequence[Self]) -> Self:
        """The parts of all records, one after the other."""
        return cls(
            **{
                field.name: np.concatenate([getattr(record, field.name) for record in records], axis=-1)
                for field in fields(cls)  # type: ignore[arg-type] # every subclass is a dataclass
            }
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))  # type: ignore[arg-type] # every subclass is a dataclass


@dataclass(frozen=True)
class Moments(Pooled):
    """What each part remembers of one feature.

    >>> both = Moments.joined([Moments.of([1.0, 2.0]), Moments.of([3.0])]).pooled(np.array([0]))
    >>> int(both.count[0]), float(both.mean[0]), float(both.spread[0]), float(both.high[0])
    (3, 2.0, 2.0, 3.0)
    """

    count: Integers  #: how many values are present
    mean: Floats  #: 0 where there are none
    spread: Floats  #: sum of squared distances from `mean`
    low: Floats  #: +inf where there are none
    high: Floats  #: -inf where there are none

    @classmethod
    def empty(cls, *shape: int) -> Moments:
        """Moments of nothing, `shape` times."""
        return cls(
            np.zeros(shape, np.int64),
            np.zeros(shape),
            np.zeros(shape),
            np.full(shape, np.inf),
            np.full(shape, -np.inf),
        )

    @classmethod
    def of(cls, values: NDArray[np.float64] | list[float]) -> Moments:
        """One part: the moments of these values, NaN being absent."""
        present = np.asarray(values, dtype=np.float64)
        present = present[~np.isnan(present)]
        if not present.size:
            return cls.empty(1)
        mean = present.mean()
        spread = ((present - mean) ** 2).sum()
        return cls(*(np.array([x]) for x in (present.size, mean, spread, present.min(), present.max())))

    def pooled(self, starts: Integers) -> Moments:
        """Parts joined: part k of the result is parts starts[k] up to starts[k + 1] of this; none may be empty.

        Cost is proportional to the parts.
        """
        count = np.add.reduceat(self.count, starts, axis=-1)
        low = np.minimum.reduceat(self.low, starts, axis=-1)
        high = np.maximum.reduceat(self.high, starts, axis=-1)
        mean, distance = _pooled_mean(self.count, self.mean, count, starts)
        spread = np.add.reduceat(self.spread + self.count * distance**2, starts, axis=-1)
        # Equal values have no spread: rounding must not make one up.
        return Moments(count, mean, np.where(low == high, 0.0, spread), low, high)


@dataclass(frozen=True)
class Comoments(Pooled):
    """What each part remembers of two features where both are present.

    >>> rising = Comoments.of([1.0, 2.0, 3.0], [2.0, 4.0, float("nan")])
    >>> int(rising.count[0]), float(rising.cross[0])
    (2, 1.0)
    """

    count: Integers  #: rows that have both
    first_mean: Floats
    second_mean: Floats
    first_spread: Floats  #: sum of squared distances from `first_mean`
    second_spread: Floats
    cross: Floats  #: sum of products of the two distances

    @classmethod
    def empty(cls, *shape: int) -> Comoments:
        """Comoments of nothing, `shape` times."""
        return cls(np.zeros(shape, np.int64), *(np.zeros(shape) for _ in range(5)))

    @classmethod
    def of(cls, first: NDArray[np.float64] | list[float], second: NDArray[np.float64] | list[float]) -> Comoments:
        """One part: the comoments of these pairs of values, NaN being absent."""
        one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        both = ~np.isnan(one) & ~np.isnan(two)
        one, two = one[both], two[both]
        if not one.size:
            return cls.empty(1)
        left, right = one - one.mean(), two - two.mean()
        sums = (one.size, one.mean(), two.mean(), (left**2).sum(), (right**2).sum(), (left * right).sum())
        return cls(*(np.array([x]) for x in sums))

    def pooled(self, starts: Integers) -> Comoments:
        """Parts joined, as in `Moments.pooled`."""
        count = np.add.reduceat(self.count, starts, axis=-1)
        first_mean, first_distance = _pooled_mean(self.count, self.first_mean, count, starts)
        second_mean, second_distance = _pooled_mean(self.count, self.second_mean, count, starts)

        def total(within: Floats, between: Floats) -> Floats:
            return np.asarray(np.add.reduceat(within + self.count * between, starts, axis=-1))

        return Comoments(
            count,
            first_mean,
            second_mean,
            total(self.first_spread, first_distance**2),
            total(self.second_spread, second_distance**2),
            total(self.cross, first_distance * second_distance),
        )


def _pooled_mean(counts: Integers, means: Floats, count: Integers, starts: Integers) -> tuple[Floats, Floats]:
    """The mean of each run of parts, and how far each part's mean lies from it."""
    mean = np.add.reduceat(counts * means, starts, axis=-1) / np.maximum(count, 1)
    lengths = np.diff(starts, append=counts.shape[-1])
    return mean, means - np.repeat(mean, lengths, axis=-1)
