"""Stretches: how many values the rows of a place have over some days, their mean and their deviation, in few bits.

Paths tell what rows are like, and exact counts of a stratum how lucky they are; but a stratum may last for years. A
stretch is a few days of one place, of which all rows are summed up. Whole stretches need no paths then, and those that
a scope cuts have a total that their parts must add up to.

What is kept is rounded: a mean of n values to a fifth of their usual deviation over the root of n. So a sum of many
stretches is off by as much as if every row were off by a twentieth of a deviation, each to a side of its own. Sums are
of levels, whole numbers: they come out the same in whatever order rows, tasks and machines are taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.packing import packed, unpacked
from synopsis.sketch.scales import ABSENT, Scales

Levels = NDArray[np.int32]

#: Lengths that a planner may choose from, in days, shortest first.
LENGTHS: Final = (5, 10, 15, 30, 60, 90, 180, 360)

#: Steps in which means and deviations of n values are kept, in usual deviations over the root of n.
STEP: Final = 0.2

#: Levels to a usual deviation.
_LEVELS: Final = 1_024

#: The highest level, and the level of a value that is not there.
_MOST: Final = 1 << 25
ABSENT_LEVEL: Final = -(1 << 31)

#: What is kept of a stretch, by position: rows without a value, mean, deviation; and the bytes of each, at most.
FACTS: Final = 3
PLANES: Final = (4, 3, 3)


@dataclass(frozen=True)
class Stretching:
    """How long stretches are, and in which units of each feature they are told."""

    days: int
    centre: tuple[float, ...]  #: features: somewhere among the values
    unit: tuple[float, ...]  #: features: the usual deviation

    @classmethod
    def of(cls, scales: Scales, days: int) -> Stretching:
        """Units as scales know them."""
        centre, unit = [], []
        for feature in range(len(scales.quantizers)):
            mass, mean = (each[feature].astype(np.float64) for each in (scales.masses, scales.means))
            total = mass.sum()
            middle = float(mass @ mean / total) if total > 0.0 else 0.0
            square = float(mass @ ((mean - middle) ** 2 + scales.variances(feature)) / total) if total > 0.0 else 0.0
            is_usable = np.isfinite(middle) and np.isfinite(square) and square > 0.0
            centre.append(middle if np.isfinite(middle) else 0.0)
            unit.append(float(np.sqrt(square)) if is_usable else 1.0)
        return cls(days, tuple(centre), tuple(unit))

    def levels_of_ticks(self, scales: Scales) -> list[Levels]:
        """Features: the level of every tick."""
        return [
            self._levels(feature, np.append(scales.ticks[feature].middles(), np.nan))
            for feature in range(len(self.unit))
        ]

    def levels_of_codes(self, scales: Scales) -> list[Levels]:
        """Features: the level of every fine code, which stands for the mean of its values."""
        found = []
        for feature in range(len(self.unit)):
            values = np.full(ABSENT + 1, np.nan)
            values[: scales.means[feature].size] = scales.means[feature]
            found.append(self._levels(feature, values))
        return found

    def _levels(self, feature: int, values: Floats) -> Levels:
        with np.errstate(invalid="ignore", over="ignore"):
            steps = np.round((values - self.centre[feature]) / self.unit[feature] * _LEVELS)
        held = np.where(np.isnan(steps), ABSENT_LEVEL, np.clip(np.nan_to_num(steps), -_MOST, _MOST))
        return held.astype(np.int32)

    def of_features(self, which: Sequence[int]) -> Stretching:
        """Those of some features, in this order."""
        return Stretching(self.days, *(tuple(each[at] for at in which) for each in (self.centre, self.unit)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"days": self.days, "centre": list(self.centre), "unit": list(self.unit)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Stretching:
        """What `to_dict` gave."""
        return cls(int(plain["days"]), *(tuple(map(float, plain[name])) for name in ("centre", "unit")))


def summed(levels: Levels, stretch: Integers, stretches: int) -> Floats:
    """Features x (values, sum, sum of squares) x stretches, of rows that each lie in a stretch.

    Whole numbers, as long as squares stay below 2 to the power of 53. Cost: three passes over the rows for a feature.
    """
    found = np.empty((len(levels), FACTS, stretches))
    for own, sums in zip(levels, found, strict=True):
        present = own != ABSENT_LEVEL
        where, level = (stretch, own) if present.all() else (stretch[present], own[present])
        value = level.astype(np.float64)
        sums[0] = np.bincount(where, minlength=stretches)
        sums[1] = np.bincount(where, value, stretches)
        sums[2] = np.bincount(where, value * value, stretches)
    return found


def rounded(sums: Floats, rows: Integers) -> Integers:
    """What is kept of stretches of so many rows: features x FACTS x stretches.

    A stretch without values has 0 for mean and deviation; a single value does not deviate.
    """
    count = np.maximum(sums[:, 0], 1.0)
    step = STEP * _LEVELS / np.sqrt(count)
    mean = sums[:, 1] / count
    square = np.maximum(sums[:, 2] / count - mean * mean, 0.0)
    facts = (rows - sums[:, 0], np.round(mean / step), np.round(np.sqrt(square) / step))
    return np.stack(facts, axis=1).astype(np.int64)


def offsets(stratum: Integers, place: Integers, day: Integers, days: int) -> Integers:
    """Where each stretch begins among days of strata and places, and where the last one ends."""
    if not day.size:
        return np.zeros(1, np.int64)
    key = day // days
    changes = (np.diff(stratum) != 0) | (np.diff(place) != 0) | (np.diff(key) != 0)
    return np.concatenate(((0,), np.flatnonzero(changes) + 1, (day.size,)))


def closed(facts: Integers) -> bytes:
    """What is kept of one feature, FACTS x stretches, as a frame: the bytes of each fact as rows, the lowest first.

    Means may be below nothing: they go by turns, 0, -1, 1, -2, 2. Most high bytes are alike and pack to nothing.
    """
    turned = facts.copy()
    turned[1] = np.where(facts[1] < 0, -2 * facts[1] - 1, 2 * facts[1])
    planes = [
        (np.minimum(each, (1 << 8 * many) - 1) >> 8 * row) & 0xFF
        for each, many in zip(turned, PLANES, strict=True)
        for row in range(many)
    ]
    return packed(np.stack(planes).astype(np.uint8))


def opened(frame: bytes) -> Integers:
    """What `closed` was given."""
    planes = unpacked(frame).astype(np.int64)
    ends = np.cumsum((0, *PLANES)).tolist()
    parts = [planes[begin:end] for begin, end in pairwise(ends)]
    facts = np.stack([(part << 8 * np.arange(len(part))[:, None]).sum(axis=0) for part in parts])
    facts[1] = (facts[1] >> 1) ^ -(facts[1] & 1)
    return facts
