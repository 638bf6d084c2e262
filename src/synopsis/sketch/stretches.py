"""Stretches: how many values the rows of a place have over some days, their mean and their deviation, in few bits.

Paths tell what rows are like, and exact counts of a stratum how lucky they are; but a stratum may last for years. A
stretch is a few days of one place, of which all rows are summed up. Whole stretches need no paths then, and those that
a scope cuts have a total that their parts must add up to. How many days they have differs from feature to feature: few
rows make the squares of rain, and paths hardly tell which days have them.

What is kept is rounded: a mean of n values to steps of their usual deviation over the root of n. So a sum of many
stretches is off by as much as if every row were off by a thirtieth of a deviation, each to a side of its own. And it is
kept as so many steps from what the paths of the stretch foretell, which takes half the bytes. A **still** stretch, all
of whose values are the usual one, as those of rain on dry days, is not rounded. Sums are of levels, whole numbers: they
come out the same in whatever order rows, tasks and machines are taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.evenly import GOLDEN, MIXED, Turns
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.packing import packed, unpacked
from synopsis.sketch.scales import ABSENT, Codes, Scales

Levels = NDArray[np.int32]

#: Lengths that a planner may choose from for all features, in days, shortest first; and such as some may have.
LENGTHS: Final = (5, 7, 10, 15, 20, 30, 45, 60, 90)
SHORT: Final = (1, 2, 3)

#: Steps in which means and deviations of n values are kept, in usual deviations over the root of n.
STEP: Final = 0.1

#: Levels to a usual deviation.
LEVELS: Final = 8_192

#: Levels by which what does not vary may seem to, by rounding.
CONSTANT: Final = 1e-3

#: Values that are thought to be in each stretch beside those of its paths, as those of its stratum are;
#: and paths, when it comes to whether there is a value.
USUAL, SEEN = 1.0, 0.05

#: A value that at least this part of all values are is the one that levels are counted from.
_USUAL_SHARE: Final = 0.05

#: An odd number without a pattern, to mix bits with.
ODD: Final = np.uint64(0x2545F4914F6CDD1D)

#: The deviation that stands for a still stretch, and its steps.
STILL: Final = -1.0

#: Mass given to fine bins beside what the fit saw in them, so that none is without.
_TRACE: Final = 1e-6

#: The highest level, and the level of a value that is not there.
_MOST: Final = 1 << 25
ABSENT_LEVEL: Final = -(1 << 31)

#: What is kept of a stretch, by position, each as a difference from what its paths foretell: rows without a value,
#: mean, deviation; and the bytes of each, at most.
FACTS: Final = 3
PLANES: Final = (4, 3, 3)


@dataclass(frozen=True)
class Stretching:
    """How long stretches of each feature are, and in which units they are told."""

    days: tuple[int, ...]  #: features
    centre: tuple[float, ...]  #: features: the value that is there most often, or else somewhere among the values
    unit: tuple[float, ...]  #: features: the usual deviation

    @classmethod
    def of(cls, scales: Scales, days: int) -> Stretching:
        """Units as scales know them, and so many days for all features."""
        centre, unit = [], []
        for feature in range(len(scales.quantizers)):
            mass, mean = scales.masses[feature].astype(np.float64), _means(scales, feature)
            total, variance = mass.sum(), scales.variances(feature)
            middle = float(mass @ mean / total) if total > 0.0 else 0.0
            square = float(mass @ ((mean - middle) ** 2 + variance) / total) if total > 0.0 else 0.0
            is_usable = np.isfinite(middle) and np.isfinite(square) and square > 0.0
            most = int(np.argmax(mass))
            if is_usable and mass[most] >= _USUAL_SHARE * total and variance[most] <= 0.0:
                middle = float(mean[most])
            centre.append(middle if np.isfinite(middle) else 0.0)
            unit.append(float(np.sqrt(square)) if is_usable else 1.0)
        return cls((days,) * len(centre), tuple(centre), tuple(unit))

    @property
    def lengths(self) -> Mapping[int, tuple[int, ...]]:
        """By length, shortest first: the features that have it."""
        return {each: tuple(np.flatnonzero(np.equal(self.days, each)).tolist()) for each in sorted(set(self.days))}

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
            steps = np.round((values - self.centre[feature]) / self.unit[feature] * LEVELS)
        held = np.where(np.isnan(steps), ABSENT_LEVEL, np.clip(np.nan_to_num(steps), -_MOST, _MOST))
        return held.astype(np.int32)

    def of_features(self, which: Sequence[int]) -> Stretching:
        """Those of some features, in this order."""
        days = tuple(self.days[at] for at in which)
        return Stretching(days, *(tuple(each[at] for at in which) for each in (self.centre, self.unit)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"days": list(self.days), "centre": list(self.centre), "unit": list(self.unit)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Stretching:
        """What `to_dict` gave."""
        days = tuple(int(each) for each in plain["days"])
        return cls(days, *(tuple(map(float, plain[name])) for name in ("centre", "unit")))


@dataclass(frozen=True)
class StretchSums:
    """What the rows of stretches of one length add up to, of the features that have it, by stratum, place and time."""

    days: int
    features: tuple[int, ...]
    stratum: Integers  #: stretches
    place: Integers
    number: Integers  #: in time
    sums: Integers  #: features x (values, sum, sum of squares) x stretches, of levels

    @classmethod
    def of_days(
        cls, stretching: Stretching, stratum: Integers, place: Integers, day: Integers, sums: Integers
    ) -> tuple[StretchSums, ...]:
        """Those of every length, given the sums of days, features x days x FACTS, by stratum, place and day.

        Cost: proportional to the days.
        """
        found = []
        for days, features in stretching.lengths.items():
            begins = _begins(stratum, place, day // days)
            own = np.empty((len(features), 0, FACTS), np.int64)
            if begins.size:
                own = np.add.reduceat(sums[list(features)], begins, axis=1)
            keys = stratum[begins], place[begins], day[begins] // days
            found.append(cls(days, features, *keys, np.ascontiguousarray(own.transpose(0, 2, 1))))
        return tuple(found)

    @classmethod
    def joined(cls, parts: Sequence[StretchSums]) -> StretchSums:
        """All of them added up; strata and places have the same numbers in all."""
        stratum, place, number = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("stratum", "place", "number")
        )
        order = np.lexsort((number, place, stratum))
        stratum, place, number = stratum[order], place[order], number[order]
        begins = _begins(stratum, place, number)
        sums = np.concatenate([part.sums for part in parts], axis=2)[:, :, order]
        own = np.add.reduceat(sums, begins, axis=2) if begins.size else sums
        return cls(parts[0].days, parts[0].features, stratum[begins], place[begins], number[begins], own)

    def moved(self, stratum: Integers, place: Integers) -> StretchSums:
        """The same with other numbers of strata and places, in the order of these."""
        stratum, place = stratum[self.stratum], place[self.place]
        order = np.lexsort((self.number, place, stratum))
        return replace(
            self, stratum=stratum[order], place=place[order], number=self.number[order], sums=self.sums[:, :, order]
        )

    def take(self, which: NDArray[np.intp]) -> StretchSums:
        """Some of them."""
        keys = self.stratum[which], self.place[which], self.number[which]
        return StretchSums(self.days, self.features, *keys, self.sums[:, :, which])


def _begins(*keys: Integers) -> Integers:
    """Where one of several keys changes, and at first."""
    changes = [each[1:] != each[:-1] for each in keys]
    return np.flatnonzero(np.append(True, np.logical_or.reduce(changes))) if keys[0].size else np.empty(0, np.int64)


def summed(levels: Levels, day: Integers, days: int) -> Integers:
    """Features x days x (values, sum, sum of squares), of rows that each lie in a day.

    Cost: three passes over the rows for a feature.
    """
    found = np.empty((len(levels), days, FACTS), np.int64)
    for own, sums in zip(levels, found, strict=True):
        present = own != ABSENT_LEVEL
        where, level = (day, own) if present.all() else (day[present], own[present])
        value = level.astype(np.float64)
        sums[:, 0] = np.bincount(where, minlength=days)
        sums[:, 1] = np.bincount(where, value, days)  # whole numbers up to 2 to the power of 53
        sums[:, 2] = np.bincount(where, value * value, days)
    return found


def _means(scales: Scales, feature: int) -> Floats:
    """The means of fine bins, which are kept as float32 and may have slipped out of these."""
    quantizer, means = scales.quantizers[feature], scales.means[feature].astype(np.float64)
    low, high = quantizer.bounds(np.arange(quantizer.bins), low=quantizer.low, high=quantizer.high)
    known = np.isfinite(low) & np.isfinite(high) & (low <= high)
    return np.where(known, np.clip(means, np.where(known, low, 0.0), np.where(known, high, 0.0)), means)


def running(scales: Scales, stretching: Stretching) -> list[Floats]:
    """Features: (mass, sum of levels, sum of squares) x (fine bins + 1), running over the fine bins.

    Once scales learn from further batches, stretches are told anew by these (`joining.rescaled`).
    """
    found = []
    for feature, (centre, unit) in enumerate(zip(stretching.centre, stretching.unit, strict=True)):
        mass = scales.masses[feature].astype(np.float64) + _TRACE
        mean = (_means(scales, feature) - centre) / unit * LEVELS
        square = mean * mean + scales.variances(feature) / unit**2 * LEVELS**2
        found.append(np.pad(np.cumsum((mass, mass * mean, mass * square), axis=1), ((0, 0), (1, 0))))
    return found


@dataclass(frozen=True)
class Lattice:
    """Where means and deviations of a feature may lie once they are rounded: it hangs on place and time alone.

    So stretches stay what they are, bit by bit, when paths are thinned and when rows come in other stretches, whatever
    becomes of bins and scales; only what paths foretell of them changes.
    """

    rows: Integers  #: stretches
    anchor: Floats  #: stretches: 0, or the level of values that do not vary in all of a stratum
    shift: Floats  #: stretches: by which part of a step, from -0.5 to 0.5, the lattice is shifted

    def facts(self, sums: Floats | Integers, foretold: Floats) -> Integers:
        """What is kept of stretches with these sums: FACTS x stretches.

        A stretch without values has nothing to tell but their number; a single value does not deviate.
        """
        count = sums[0].astype(np.float64)
        some = np.maximum(count, 1.0)
        mean = sums[1] / some
        deviation = np.sqrt(np.maximum(sums[2] / some - mean * mean, 0.0))
        is_still = (sums[1] == 0) & (sums[2] == 0)
        absent = (self.rows - count) - np.rint(foretold[0])
        expected = self._steps(count, foretold[1], foretold[2])
        steps = self._steps(count, mean, np.where(is_still, STILL, deviation)) - expected
        steps[0][is_still] = 0.0
        return np.stack((absent, *np.where(count > 0.0, steps, 0.0))).astype(np.int64)

    def read(self, facts: Integers, foretold: Floats) -> Floats:
        """What facts say: (values, mean, deviation) x stretches, the latter in levels."""
        count = np.clip(self.rows - (facts[0] + np.rint(foretold[0])), 0.0, self.rows)
        steps = facts[1:] + self._steps(count, foretold[1], foretold[2])
        moves = steps[1] > STILL
        mean, deviation = (steps - self.shift) * _step(count)
        return np.stack((count, np.where(moves, self.anchor + mean, 0.0), np.where(moves, np.maximum(deviation, 0), 0)))

    def _steps(self, count: Floats, mean: Floats, deviation: Floats) -> Floats:
        """Whole steps up to means and deviations of so many values; STILL up to a deviation that is."""
        found = np.asarray(np.rint(np.stack((mean - self.anchor, deviation)) / _step(count) + self.shift))
        found[1][deviation < 0.0] = STILL
        return found


def _step(count: Floats) -> Floats:
    return np.asarray(STEP * LEVELS / np.sqrt(np.maximum(count, 1.0)))


def anchored(starts: Codes, ends: Codes, axis: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Strata: the level that lattices are counted from, and whether values vary at all: if not, it is theirs.

    Given the bins of a feature, strata x bins, and what runs over its fine bins.
    """
    begin, end = starts[:, 0].astype(np.int64), ends.max(axis=1).astype(np.int64)
    mass = np.maximum(axis[0, end] - axis[0, begin], 1e-300)
    mean, square = (axis[1:, end] - axis[1:, begin]) / mass
    varies = np.sqrt(np.maximum(square - mean * mean, 0.0)) > CONSTANT
    return np.where(varies, 0.0, mean), varies


def shifted(turn: Turns, number: Integers) -> Floats:
    """Stretches: by which part of a step, from -0.5 to 0.5, the lattice of each is shifted.

    Many stretches may be alike, as those are in which it hardly rains: rounded all to one side, their errors would add
    up. Given the turn at which their place begins, and their numbers in time.
    """
    mixed = (turn ^ (number.view(np.uint64) * ODD)) * MIXED
    mixed = (mixed ^ (mixed >> np.uint64(32))) * GOLDEN
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53 - 0.5


def offsets(stratum: Integers, place: Integers, day: Integers, days: int) -> Integers:
    """Where each stretch begins among days of strata and places, and where the last one ends."""
    if not day.size:
        return np.zeros(1, np.int64)
    key = day // days
    changes = (np.diff(stratum) != 0) | (np.diff(place) != 0) | (np.diff(key) != 0)
    return np.concatenate(((0,), np.flatnonzero(changes) + 1, (day.size,)))


def closed(facts: Integers) -> bytes:
    """What is kept of one feature, FACTS x stretches, as a frame: the bytes of each fact as rows, the lowest first.

    Differences go by turns, 0, -1, 1, -2, 2. Most high bytes are alike and pack to nothing.
    """
    turned = np.where(facts < 0, -2 * facts - 1, 2 * facts)
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
    return np.asarray((facts >> 1) ^ -(facts & 1))
