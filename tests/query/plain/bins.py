"""The bins of a feature in every stratum, and what of them lies in ranges of values.

Within a bin rows are spread as all rows are, but for a slope: they are laid out on the feature's mass axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from tests.query.plain.inference import Interval

from synopsis.query.predicates import EVERYWHERE, Ranges
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Strata
from synopsis.sketch.tilts import STEPS

#: A number this close to a grid value, in steps, is that value.
NEAR = 1e-3

#: All rows of a fine bin that a condition cuts may have one value: so much of what that would shift is allowed for.
LUMPS = 0.5


@dataclass(frozen=True)
class Bins:
    """The bins of one feature in every stratum: strata x bins, as runs of the mass axis with a slope."""

    axis: MassAxis
    starts: Integers  #: fine codes
    ends: Integers
    tilt: Floats  #: the density at u in 0..1 of a bin's mass is 1 + tilt (2u - 1)

    @classmethod
    def of(cls, strata: Strata, position: int, axis: MassAxis, chosen: Integers | slice = slice(None)) -> Bins:
        """The bins of the feature that stands at `position` in these strata, of the strata that are chosen."""
        starts, ends = (each[position][chosen].astype(np.intp) for each in (strata.starts, strata.ends))
        return cls(axis, starts, ends, strata.tilt[position][chosen] / STEPS)

    @cached_property
    def left(self) -> Floats:
        """Where each bin begins on the mass axis."""
        return self.axis.mass.take(self.starts)

    @cached_property
    def right(self) -> Floats:
        """Where each bin ends on the mass axis."""
        return self.axis.mass.take(self.ends)

    @cached_property
    def width(self) -> Floats:
        """The mass of each bin; 1 where it is not used."""
        width = self.right - self.left
        return np.where(width > 0.0, width, 1.0)

    def on_axis(self, ranges: Ranges) -> list[Interval]:
        """Closed ranges of values as ranges of the mass axis, in order."""
        if ranges == EVERYWHERE:
            return [(0.0, float(self.axis.mass[-1]))]
        step = self.axis.step
        if not step:
            below = [math.nextafter(low, -math.inf) if _is_beyond(low) else low for low, _ in ranges]
            above = [math.nextafter(high, math.inf) if _is_beyond(-high) else high for _, high in ranges]
            ends = (
                (least, least != low, most, most == high)
                for least, most, (low, high) in zip(below, above, ranges, strict=True)
            )
        else:
            steps = ((_lowest_step(low, step) - 0.5, _highest_step(high, step) + 0.5) for low, high in ranges)
            ends = ((low * step, False, high * step, True) for low, high in steps)
        below = self.axis.below
        found = ((below(low, included=out), below(high, included=within)) for low, out, high, within in ends)
        return [(low, high) for low, high in found if high > low]

    def shares(self, ranges: Ranges) -> Floats:
        """Of each bin: the share in the ranges."""
        share = np.zeros(self.left.shape)
        for low, high in self.on_axis(ranges):
            share += self.below(high) - self.below(low)
        return share

    def below(self, mass: float | Floats) -> Floats:
        """Of each bin: the share below a place on the mass axis."""
        u = (np.minimum(np.maximum(mass, self.left), self.right) - self.left) / self.width
        return np.asarray(u + self.tilt * (u * u - u))

    def cuts(self, ranges: Ranges) -> list[Floats]:
        """Of each bin, for every end of the ranges that cuts a fine bin: how much of the bin may be on either side."""
        mass, found = self.axis.mass, []
        for end in {end for pair in self.on_axis(ranges) for end in pair}:
            code = int(np.searchsorted(mass, end, side="right")) - 1
            if 0 <= code < mass.size - 1 and mass[code] < end:
                left_open = self._left_open(code, float((end - mass[code]) / (mass[code + 1] - mass[code])))
                if left_open > NEAR:
                    found.append(left_open * (self.below(float(mass[code + 1])) - self.below(float(mass[code]))))
        for begin, after, left_open in _off_grid(self.axis, ranges):
            found.append(left_open * (self.below(after) - self.below(begin)))
        return found

    def _left_open(self, code: int, part: float) -> float:
        """How much of a fine bin may be on the other side of an end that cuts it after this part.

        All values may be one. And where the mean is not in the middle, they lie closer around it than it seems.
        """
        axis = self.axis
        low, high = float(axis.low[code]), float(axis.high[code])
        mean = float((axis.first[code + 1] - axis.first[code]) / (axis.mass[code + 1] - axis.mass[code]))
        reach = max(min(mean - low, high - mean), axis.step / 2)
        value = low + part * (high - low)
        near = min(max((value - mean + reach) / (2 * reach), 0.0), 1.0) if reach > 0 else float(value > mean)
        return max(math.sqrt(part * (1.0 - part)), abs(part - near) / LUMPS)

    @cached_property
    def leaning(self) -> Floats:
        """Of each bin: the variance of its mean if all rows of each of its fine bins had one value there."""
        variances = self.axis.totals[4]
        fine = np.maximum(self.ends - self.starts, 1)
        return np.asarray((variances.take(self.ends) - variances.take(self.starts)) / (self.width * fine))

    def sums(self, ranges: Ranges) -> tuple[Floats, Floats, Floats]:
        """Of each bin: the weights of its fine bins in the ranges, and with these the sums of values and of squares."""
        weight, first, second = (np.zeros(self.left.shape) for _ in range(3))
        flat, turned = (1 - self.tilt - 2 * self.tilt * self.left / self.width) / self.width, 2 * self.tilt
        turned = turned / self.width**2
        axis = self.axis
        for low, high in self.on_axis(ranges):
            for sums, total, moment in (
                (weight, axis.mass, axis.mass**2 / 2),
                (first, axis.totals[0], axis.totals[2]),
                (second, axis.totals[1], axis.totals[3]),
            ):
                sums += flat * self._between(total, low, high) + turned * self._between(moment, low, high)
        return weight, first, second

    def _between(self, running: Floats, low: float, high: float) -> Floats:
        """What a running total grows by over the part of each bin that lies in a range of the axis."""
        if low <= 0.0 and high >= self.axis.mass[-1]:
            return np.asarray(running.take(self.ends) - running.take(self.starts))
        lower = np.where(self.left >= low, running.take(self.starts), float(np.interp(low, self.axis.mass, running)))
        upper = np.where(self.right <= high, running.take(self.ends), float(np.interp(high, self.axis.mass, running)))
        return np.where((self.right > low) & (self.left < high), upper - lower, 0.0)


def _lowest_step(low: float, step: float) -> float:
    """The number of steps of the lowest grid value in a closed range that begins at `low`.

    Grid values may have come as float32, and so may the number somebody compares with: near a grid value, it is meant.
    """
    steps = low / step
    if not math.isfinite(steps):
        return steps
    nearest = round(steps)
    if abs(steps - nearest) > NEAR:
        return math.ceil(steps)
    below = math.nextafter(low, -math.inf)  # v > a begins at the next number after a
    return nearest + _plainer(below, low)


def _off_grid(axis: MassAxis, ranges: Ranges) -> list[tuple[float, float, float]]:
    """Fine bins within ranges beside an end that is no value of the grid, and the part of each that is left open."""
    found = []
    for low, high in ranges if axis.step and ranges != EVERYWHERE else ():
        for value, is_low in ((low, True), (high, False)):
            steps = value / axis.step
            if not math.isfinite(steps) or abs(steps - round(steps)) <= NEAR:
                continue
            edge = (math.ceil(steps) - 0.5 if is_low else math.floor(steps) + 0.5) * axis.step
            end = axis.below(edge, included=not is_low)
            code = int(np.flatnonzero(axis.mass <= end if is_low else axis.mass < end)[-1]) if end or is_low else -1
            if 0 <= code < axis.low.size:
                wide = max(float(axis.high[code] - axis.low[code]), axis.step)
                left_open = min(abs(edge - value) / wide, 1.0) / LUMPS
                found.append((float(axis.mass[code]), float(axis.mass[code + 1]), left_open))
    return found


def _is_beyond(low: float) -> bool:
    """Whether a range that begins here leaves out the number below."""
    return _plainer(math.nextafter(low, -math.inf), low)


def _highest_step(high: float, step: float) -> float:
    """The number of steps of the highest grid value in a closed range that ends at `high`."""
    return -_lowest_step(-high, step)


def _plainer(one: float, other: float) -> bool:
    """Whether a person or a float32 column would rather have written the first of two neighbouring numbers.

    >>> _plainer(21.1, math.nextafter(21.1, 99.0)), _plainer(math.nextafter(21.1, 0.0), 21.1)
    (True, False)
    """
    single = [float(np.float32(number)) == number for number in (one, other)]
    if single[0] != single[1]:
        return single[0]
    return len(repr(one)) < len(repr(other))
