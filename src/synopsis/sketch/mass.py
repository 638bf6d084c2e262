"""The mass axis: a feature's values laid out by how many rows lie below them, with sums along it.

Between the ends of a bin rows are spread as all rows of the sketch are, but for a slope. On the mass axis that is a
straight line, whatever gaps, grids and atoms the values have, so that any share of a bin, and the sums of its values
and squares, are differences of a few running totals.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Scales

#: Mass given to fine bins beside what the fit saw in them, so that no bin is without extent. Of less, sums lose digits.
_TRACE = 1e-6

#: Running totals of an axis beside that of rows.
TOTALS = 5

#: Share of a value by which it may differ from what is kept of it, unless it differs in the last digits alone: then it
#: is meant to differ.
SAME, LAST_DIGITS = 1e-7, 4

#: A number this close to a value of the grid, in steps, is that value: columns may have come as float32.
NEAR = 1e-3


@dataclass(frozen=True, eq=False)
class MassAxis:
    """Running totals over the fine bins of one feature; entry c is the total below fine bin c."""

    low: Floats
    high: Floats
    step: float
    mass: Floats  #: fine bins + 1: share of all rows
    totals: Floats  #: TOTALS x (fine bins + 1): values, squares, both times their place, variances

    @classmethod
    def of(cls, scales: Scales, feature: int) -> MassAxis:
        """The axis of one feature. Cost: proportional to its fine bins."""
        low, high = scales.ranges(feature)
        step = float(scales.steps[feature])
        if step:  # every value takes the step around it; beside an atom a bin begins at the next value
            atoms = scales.quantizers[feature].atoms
            above, below = (np.isin(np.nextafter(*ends), atoms) for ends in ((low, -np.inf), (high, np.inf)))
            low = (np.ceil(low / step - NEAR) - 0.5 + above) * step
            high = np.maximum((np.floor(high / step + NEAR) + 0.5 - below) * step, low)
        low, high = np.nan_to_num(low), np.nan_to_num(high)  # a feature that nobody has ever sent
        mean, share = scales.means[feature].astype(np.float64), scales.masses[feature].astype(np.float64) + _TRACE
        mean = np.clip(mean, low, high)  # kept as float32, it may have slipped out
        # Rows lie around their mean: a bin from 400 to 500 may hold 500 alone.
        reach = np.maximum(np.minimum(mean - low, high - mean), step / 2)
        variance = scales.variances(feature)
        if not step:  # nor farther from it than they vary: a bin may hold a value that many rows have
            reach = np.minimum(reach, np.sqrt(3.0 * variance))
        seen = scales.masses[feature] > 0
        # But for the outermost, once there are values beyond those that the means are of.
        quantizer = scales.quantizers[feature]
        seen[0] &= scales.low[feature] >= quantizer.low
        seen[-1] &= scales.high[feature] <= quantizer.high
        low, high = (
            np.where(seen, np.maximum(low, mean - reach), low),
            np.where(seen, np.minimum(high, mean + reach), high),
        )
        square = mean**2 + variance
        mass = _running(share)
        middle = (mass[1:] + mass[:-1]) / 2
        sums = (share * mean, share * square)
        totals = (*sums, *(each * middle for each in sums), share * variance)
        return cls(low, high, step, mass, np.stack([_running(total) for total in totals]))

    @property
    def first(self) -> Floats:
        """Running total of values."""
        return np.asarray(self.totals[0])

    def below(self, value: float, *, included: bool) -> float:
        """The share of all rows whose values are lower than this, or equal where `included`."""
        lows, highs, mass = self.low.data, self.high.data, self.mass.data  # numbers of Python, one by one
        code, slack = bisect_left(highs, value), SAME * abs(value)
        is_between = code == len(lows) or value < lows[code]  # two bins, one of which may be a value
        if is_between and code and lows[code - 1] == highs[code - 1] >= value - slack:
            code -= 1
        code = min(code, len(highs) - 1)
        low, high = lows[code], highs[code]
        if low == high:  # one value, which is kept to so many digits
            is_near = LAST_DIGITS * math.ulp(low) < abs(value - low) <= slack
            part = float(included if is_near or value == low else value > low)
        else:
            part = min(max((value - low) / (high - low), 0.0), 1.0)
        return float(mass[code] + part * (mass[code + 1] - mass[code]))

    def value(self, mass: float) -> float:
        """The value that this share of all rows lies below, on the grid where there is one."""
        code = min(max(int(self.mass.searchsorted(mass, side="right")) - 1, 0), self.low.size - 1)
        begin, end, low, high = map(float, (*self.mass[code : code + 2], self.low[code], self.high[code]))
        found = low + min(max((mass - begin) / (end - begin), 0.0), 1.0) * (high - low)
        return round(found / self.step) * self.step if self.step else found

    def moments(self, starts: Integers, ends: Integers, power: int = 0) -> tuple[Floats, Floats]:
        """Of runs of fine bins: the mean of the values of all rows there, and what a slope of 1 adds to it.

        Or of their squares, where `power` is 1.
        """
        width = self.mass[ends] - self.mass[starts]
        total, moment = (self.totals[at][ends] - self.totals[at][starts] for at in (power, power + 2))
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = total / width
            return mean, 2 * (moment - self.mass[starts] * total) / width**2 - mean


def _running(numbers: Floats) -> Floats:
    return np.append(0.0, np.cumsum(numbers))
