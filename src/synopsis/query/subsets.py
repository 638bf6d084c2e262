"""Subsets: how far an unknown subset of known values can push a sum or a mean.

A strand that a scope cuts contributes some of its rows, nobody knows which: perhaps none, perhaps all. Known are how
many values it has, their mean, their variance, their least and their greatest. The largest sum that a subset can have
is that of its positive values, and the largest mean is the number above which the values exceed it by as much as the
rest falls short (Dinkelbach, 1967). Both rest on one function, the **excess** over a level,

    excess(level) = sum of max(x - level, 0)

which is bounded from above in two ways, and the smaller bound is taken:

- max(x - level, 0) is convex in x, hence below its chord over low..high, whose sum needs only the mean;
- it is (x - level + |x - level|) / 2, and the sum of |x - level| is at most sqrt(n * sum of (x - level)^2).

Both are exact, up to rounding, where all values lie on one side of the level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from synopsis.query.runs import Runs
from synopsis.sketch.moments import Floats, Moments

#: Share of the largest magnitude by which kept means, and everything made of them, may be off by rounding.
ROUNDING: Final = 1e-12
_CLOSE_ENOUGH: Final = 1e-7  #: of the width of an interval: where the search for its outer end stops
_MOST_STEPS: Final = 100
_TINY: Final = 1e-300
_UNDERFLOW: Final = 1e-150  #: squares of what is smaller vanish


@dataclass(frozen=True, eq=False)
class Parts:
    """Cut parts seen from both sides: row 0 of each array holds the values, row 1 their negatives.

    So an upper bound in row 1, negated, is a lower bound.
    """

    runs: Runs
    count: Floats
    mean: Floats
    high: Floats
    variance: Floats
    slope: Floats  #: of the chord, downwards
    slack: Floats  #: what rounding may hide in `mean`

    @classmethod
    def of(cls, runs: Runs, moments: Moments) -> Parts:
        """From the moments of parts that have at least one value each."""
        slack = ROUNDING * np.maximum(np.abs(moments.low), np.abs(moments.high)) + _UNDERFLOW
        width = np.maximum(moments.high - moments.low, _TINY)
        above = np.stack([moments.mean - moments.low, moments.high - moments.mean])
        return cls(
            runs,
            moments.count.astype(np.float64),
            np.stack([moments.mean, -moments.mean]),
            np.stack([moments.high, -moments.low]),
            moments.spread / moments.count * (1 + ROUNDING) + slack**2,
            np.clip((above + slack) / width, 0.0, 1.0),
            slack,
        )

    def excess(self, level: Floats) -> Floats:
        """At most how much the values of each group exceed its level, in sum; level is 2 x groups."""
        here = self.runs.spread_out(level)
        beyond = here - self.mean  # how far the level lies above the mean
        chord = np.maximum(np.maximum(self.slack - beyond, self.slope * (self.high - here)), 0.0)
        distance = np.abs(beyond)
        reach = np.sqrt(self.variance + distance * distance) + distance + _TINY
        # (reach - beyond) / 2 without the cancellation that a level far above the mean would bring.
        moment = 0.5 * np.where(beyond > 0.0, self.variance / reach, reach) + self.slack
        # Extremes are kept as they were seen: no rounding can push a value above its greatest. Adding up rounds, too.
        each = np.where(here < self.high, self.count * np.minimum(chord, moment), 0.0)
        return (1.0 + ROUNDING) * self.runs.sum(each)


def largest_means(count: Floats, mean: Floats, top: Floats, excess: Callable[[Floats], Floats]) -> Floats:
    """At least the largest mean of `count` values of that `mean` together with any subset of the cut values.

    A level is never exceeded when count * (mean - level) + excess(level) <= 0, which falls as the level rises. The
    search keeps a bracket whose upper end satisfies this and narrows it by the Illinois variant of regula falsi, with a
    bisection every third step; the upper end is returned. `top`, the greatest value of all, always satisfies it.
    """

    def gain(level: Floats) -> Floats:
        return count * (mean - level) + excess(level)

    low, high = np.where(count > 0, np.minimum(mean, top), top), top.copy()
    gain_low, gain_high = gain(low), count * (mean - high)
    held = np.zeros(top.shape, np.int8)  # which end moved last: 1 the upper, -1 the lower
    for step in range(_MOST_STEPS):
        if not np.any(high - low > _CLOSE_ENOUGH * (high - mean) + ROUNDING * np.abs(high)):
            break
        share = 0.5 if step % 3 == 2 else gain_low / np.maximum(gain_low - gain_high, _TINY)
        level = low + (high - low) * np.clip(share, 1e-3, 1.0 - 1e-3)
        gained = gain(level)
        holds = gained <= 0.0
        low, high = np.where(holds, low, level), np.where(holds, level, high)
        # Illinois: an end that stays put for a second time counts half, so that it will move soon.
        gain_low = np.where(holds, np.where(held > 0, 0.5, 1.0) * gain_low, gained)
        gain_high = np.where(holds, gained, np.where(held < 0, 0.5, 1.0) * gain_high)
        held = np.where(holds, np.int8(1), np.int8(-1))
    return high
