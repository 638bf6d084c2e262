"""Tilts: how the rows of a stratum lie within one of its bins, in one small number.

A bin is a run of fine bins up to where the next bin begins. Beside the density of all rows, its own rises or falls
linearly: that is a slope, in a few steps either way. Or all of its rows lie in the first half, quarter ... of its fine
bins and the rest is empty: that is a cut, and certain. Of these the one is kept whose mean comes closest to that of the
rows. Slopes alone could not be steep enough where few rows leave most of a bin empty, and they were wrong to the same
side everywhere: bins begin where rows do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes

#: A slope is kept in so many steps either way, the last of which leaves nothing at one end.
STEPS: Final = 3

#: A cut leaves one of 2 to the power of these fine bins, at least one. Its number comes after those of slopes.
CUTS: Final = np.array([1, 2, 3, 4, 8])

#: Share of a bin's width by which a mean has to come closer: less is rounding.
_CLOSER: Final = 1e-6

#: How often one bin of each stratum is changed so that all of them together come nearer.
_ROUNDS: Final = 6

Tilts = NDArray[np.int8]


def left(fine: Integers, cut: int) -> Integers:
    """How many of so many fine bins a cut leaves: a part of them, rounded up.

    >>> left(np.array([1, 2, 9, 250]), 2).tolist()
    [1, 1, 2, 32]
    """
    return -(-fine >> int(CUTS[cut]))


def fitted(axis: MassAxis, starts: Integers, following: Integers, mass: Integers | Floats) -> tuple[Integers, Tilts]:
    """Where each bin ends, strata x bins, and its slope, so that its mean is as near as can be.

    `mass` has the rows of every fine bin, which know no more than their mean and spread; 0 where there surely are none.
    Cost: proportional to strata times bins, and times fine bins once.
    """
    with np.errstate(all="ignore"):  # bins that are not used, and numbers near the largest that there are
        inside = _Runs.of(axis, mass)
        rows, first, second = inside.between(starts, following)
        mean = first / rows
        ends, tilt = _nearest(axis, starts, following, mean, inside)
        _settle(axis, starts, ends, tilt, following, np.stack((rows, first, second)))
    return ends, tilt


def _nearest(
    axis: MassAxis, starts: Integers, following: Integers, mean: Floats, inside: _Runs
) -> tuple[Integers, Tilts]:
    """The slope or the cut of every bin whose mean comes closest; a cut only where nothing lies behind it."""
    flat, slope = axis.moments(starts, following)
    last = axis.low.size - 1
    near = _CLOSER * (axis.high[np.clip(following - 1, 0, last)] - axis.low[np.minimum(starts, last)])
    ends, tilt, off = following.copy(), np.zeros(starts.shape, np.int8), np.abs(flat - mean)
    for step in (step for size in range(1, STEPS + 1) for step in (-size, size)):
        now = np.abs(flat + slope * (step / STEPS) - mean)
        closer = now < off - near
        tilt[closer], off = step, np.where(closer, now, off)
    for cut in range(CUTS.size):
        end = starts + left(following - starts, cut)
        now = np.abs(axis.moments(starts, end)[0] - mean)
        closer = (now < off - near) & inside.none(end, following)
        ends, off = np.where(closer, end, ends), np.where(closer, now, off)
        tilt[closer] = 0
    return ends, tilt


def _settle(axis: MassAxis, starts: Integers, ends: Integers, tilt: Tilts, following: Integers, wanted: Floats) -> None:
    """Change slopes by a step, one of a stratum at a time, where that brings its mean and deviation nearer.

    Bins are off by up to half a step each, and where slopes cannot be steep enough all to one side: what does not
    matter in one bin adds up over strata. `wanted` are rows and sums of values and squares.
    """
    strata = len(starts)
    rows, first, second = (np.where(wanted[0] > 0, each, 0.0).sum(axis=1)[:, None] for each in wanted)
    mean = first / rows
    spread = np.maximum(second / rows - mean**2, 0.0)
    made = [axis.moments(starts, ends, total) for total in (0, 1)]
    off, step = [], []
    for (flat, slope), whole in zip(made, (first, second), strict=True):
        held = np.where(wanted[0] > 0, wanted[0] * (flat + slope * (tilt / STEPS)), 0.0)
        off.append((held.sum(axis=1)[:, None] - whole) / rows)
        step.append(np.where(wanted[0] > 0, wanted[0] * slope / STEPS, 0.0) / rows)
    # About the stratum's mean, in its deviations.
    off[1], step[1] = (each[1] - 2 * mean * each[0] for each in (off, step))
    (mean_off, spread_off), (mean_step, spread_step) = (
        (each[0] / np.sqrt(spread), each[1] / (2 * spread)) for each in (off, step)
    )
    may = (wanted[0] > 0) & (ends == following) & np.isfinite(mean_step) & np.isfinite(spread_step)
    for _ in range(_ROUNDS):
        best, turn = mean_off**2 + spread_off**2, np.zeros((strata, 1), np.int64)
        which = np.zeros((strata, 1), np.int64)
        for way in (-1, 1):
            size = (mean_off + way * mean_step) ** 2 + (spread_off + way * spread_step) ** 2
            size = np.where(may & (np.abs(tilt + way) <= STEPS), size, np.inf)
            at = size.argmin(axis=1)[:, None]
            least = np.take_along_axis(size, at, axis=1)
            better = least < best
            best, turn, which = np.where(better, least, best), np.where(better, way, turn), np.where(better, at, which)
        changed = np.take_along_axis(tilt, which, axis=1) + turn
        np.put_along_axis(tilt, which, changed.astype(np.int8), axis=1)
        mean_off = mean_off + turn * np.nan_to_num(np.take_along_axis(mean_step, which, axis=1))
        spread_off = spread_off + turn * np.nan_to_num(np.take_along_axis(spread_step, which, axis=1))


@dataclass(frozen=True)
class _Runs:
    """Running totals over the fine bins of every stratum: of rows, and of their values and squares."""

    totals: Floats  #: 3 x strata x (fine bins + 1)
    holds: Integers  #: strata x (fine bins + 1): how many fine bins have rows

    @classmethod
    def of(cls, axis: MassAxis, mass: Integers | Floats) -> _Runs:
        """Those of so many rows in every fine bin."""
        means, squares = (np.diff(axis.totals[total]) / np.diff(axis.mass) for total in (0, 1))
        parts = np.stack((mass, mass * means, mass * squares))
        totals = np.cumsum(np.pad(parts, ((0, 0), (0, 0), (1, 0))), axis=2)
        return cls(totals, np.cumsum(np.pad(mass > 0, ((0, 0), (1, 0))), axis=1))

    def between(self, starts: Integers, ends: Integers) -> Floats:
        """What they grow by: 3 x strata x bins."""
        own = np.arange(len(starts))[:, None]
        return np.asarray(self.totals[:, own, ends] - self.totals[:, own, starts])

    def none(self, starts: Integers, ends: Integers) -> NDArray[np.bool_]:
        """Strata x bins: whether there surely are no rows."""
        own = np.arange(len(starts))[:, None]
        return np.asarray(self.holds[own, ends] == self.holds[own, starts])


def numbered(starts: Codes, ends: Codes, tilt: Tilts) -> tuple[Codes, Tilts]:
    """Bins as they are stored: strata x (bins + 1) of where they begin and the last one ends, and slope or cut."""
    begins = np.concatenate((starts, ends.max(axis=1, keepdims=True, initial=0)), axis=1)
    fine, own = (np.subtract(each, starts, dtype=np.int64) for each in (begins[:, 1:], ends))
    found = tilt.copy()
    for cut in reversed(range(CUTS.size)):  # of those that leave as much, the first
        found[(own < fine) & (left(fine, cut) == own)] = STEPS + 1 + cut
    return begins, found


def read(begins: Codes, numbers: Tilts) -> tuple[Codes, Codes, Tilts]:
    """What `numbered` was given."""
    starts, ends = begins[:, :-1], begins[:, 1:].copy()
    for cut in range(CUTS.size):
        own = numbers == STEPS + 1 + cut
        ends[own] = starts[own] + left((ends[own] - starts[own]).astype(np.int64), cut).astype(np.uint8)
    return starts, ends, np.where(numbers > STEPS, np.int8(0), numbers)
