"""The bins of a feature in every stratum, and what of them lies in ranges of values.

Within a bin rows are spread as all rows are, but for a slope: they are laid out on the feature's mass axis.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from synopsis.query.covers import Slots
from synopsis.query.predicates import EVERYWHERE, Ranges
from synopsis.sketch.compiled import Later
from synopsis.sketch.mass import NEAR, MassAxis
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import Strata
from synopsis.sketch.tilts import Tilts

if TYPE_CHECKING:
    from synopsis.query import influences, mixtures, slices
else:
    slices, influences, mixtures = (Later(f"synopsis.query.{name}") for name in ("slices", "influences", "mixtures"))

_SINGLE = struct.Struct("f")

#: Ranges come again: in the next statistic, and in the next question.
_REMEMBERED = 512


@dataclass(frozen=True)
class Bins:
    """The bins of one feature in every slot, as runs of the mass axis with a slope."""

    axis: MassAxis
    starts: Codes  #: all strata x bins: fine codes
    stops: Codes  #: one past the last
    tilt: Tilts  #: the density at u in 0..1 of a bin's mass is 1 + tilt (2u - 1), in steps
    chosen: Integers  #: the stratum of every slot
    offset: Integers  #: groups + 1: where the slots of each begin

    @classmethod
    def of(cls, strata: Strata, position: int, axis: MassAxis, slots: Slots) -> Bins:
        """The bins of the feature that stands at `position` in these strata."""
        own = (strata.starts[position], strata.ends[position], strata.tilt[position])
        return cls(axis, *own, slots.stratum, slots.offset)

    @property
    def _own(self) -> tuple[Codes, Codes, Tilts, Integers, Floats]:
        """What `slices` takes first."""
        return self.starts, self.stops, self.tilt, self.chosen, self.axis.mass

    def on_axis(self, ranges: Ranges) -> Floats:
        """Ranges of values as ranges of the mass axis."""
        return on_axis(self.axis, ranges)

    def shares(self, ranges: Ranges, *, nulls: bool) -> Floats:
        """Slots x (bins and absent): the share of each that is in the ranges."""
        return slices.shares(*self._own, self.on_axis(ranges), float(nulls))

    def measured(self, ranges: Ranges) -> Floats:
        """Share of each bin in the ranges, mean and variance of the values there, and leaning: 4 x slots x bins."""
        return slices.measured(*self._own, self.axis.totals, self.on_axis(ranges))

    def below(self, mass: Floats) -> Floats:
        """Of each bin: the share below a place on the mass axis, one for each group."""
        return slices.below(*self._own, self.offset, mass)

    def cuts(self, ranges: Ranges) -> list[Floats]:
        """Of each bin, for every end of the ranges that cuts a fine bin: how much of the bin may be on either side."""
        return [
            left_open * slices.between(*self._own, begin, end) for begin, end, left_open in cuts_of(self.axis, ranges)
        ]

    def mixture(self, mass: Floats, ranges: Ranges) -> mixtures.Mixture:
        """The distributions of groups on the mass axis, of so much mass in every bin, of values in the ranges."""
        return mixtures.mixed(*self.flat(mass, ranges))

    def flat(self, mass: Floats, ranges: Ranges) -> tuple[Floats, Floats, Floats, Integers]:
        """The same as flat pieces: where each begins and ends on the mass axis, its mass, and where groups begin."""
        begin, end, weight, offset = slices.pieces(*self._own, self.offset, mass, self.on_axis(ranges))
        return begin, end, weight, offset

    @property
    def of_values(self) -> tuple[Floats, Floats, Floats, float]:
        """What tells which values lie where on the mass axis."""
        return self.axis.mass, self.axis.low, self.axis.high, self.axis.step

    def values(self, place: Floats) -> Floats:
        """The values that so much of the mass axis lies below, on the grid where there is one."""
        return slices.values(*self.of_values, place)

    def known_ends(self, counts: Integers, covered: Floats, share: Floats, *, exact: bool) -> tuple[Floats, Floats]:
        """Groups: between which places on the mass axis rows are known to be in scope; infinite where none are."""
        own = (self.starts, self.stops, self.chosen, self.offset, self.axis.mass)
        first, last = slices.known_ends(*own, counts, covered, share, exact)
        return first, last

    def ends(
        self, counts: Integers, covered: Floats, share: Floats, within: tuple[float, float]
    ) -> tuple[Floats, Floats]:
        """Groups: the least and the greatest value, within ends, of bins that have rows in scope; infinite where there
        are none."""
        own = (self.starts, self.stops, self.chosen, self.offset, self.axis.low, self.axis.high)
        low, high = slices.extremes(*own, counts, covered, share, *within)
        return low, high


@lru_cache(maxsize=_REMEMBERED)
def on_axis(axis: MassAxis, ranges: Ranges) -> Floats:
    """Closed ranges of values as ranges of the mass axis, in order: ranges x 2."""
    if ranges == EVERYWHERE:
        return np.array([(0.0, float(axis.mass[-1]))])
    step = axis.step
    if not step:
        ends = ((_left_out(low), _left_out(-high)) for low, high in ranges)
        found = [
            (axis.below(low, included=after), axis.below(-high, included=not before))
            for (low, after), (high, before) in ends
        ]
    else:
        steps = ((_lowest_step(low, step) - 0.5, _highest_step(high, step) + 0.5) for low, high in ranges)
        found = [
            (axis.below(low * step, included=False), axis.below(high * step, included=True)) for low, high in steps
        ]
    return np.array([(low, high) for low, high in found if high > low], np.float64).reshape(-1, 2)


@lru_cache(maxsize=_REMEMBERED)
def cuts_of(axis: MassAxis, ranges: Ranges) -> tuple[tuple[float, float, float], ...]:
    """Every fine bin that an end of the ranges cuts: where it begins and ends, and how much of it is left open."""
    mass, found = axis.mass.data, []  # numbers of Python, one by one
    for end in dict.fromkeys(on_axis(axis, ranges).ravel().tolist()):
        code = bisect_right(mass, end) - 1
        if 0 <= code < len(mass) - 1 and mass[code] < end:
            begin, after = mass[code], mass[code + 1]
            left_open = _left_open(axis, code, (end - begin) / (after - begin))
            if left_open > NEAR:
                found.append((begin, after, left_open))
    return (*found, *_off_grid(axis, ranges))


def _off_grid(axis: MassAxis, ranges: Ranges) -> list[tuple[float, float, float]]:
    """The fine bins within ranges that have an end beside the grid: who names such a value may know of rows there.

    Rows between that end and the grid are thought to be as many as those within.
    """
    found: list[tuple[float, float, float]] = []
    for low, high in ranges if axis.step and ranges != EVERYWHERE else ():
        for value, sign in ((low, 1.0), (high, -1.0)):
            steps = value / axis.step
            if not math.isfinite(steps) or abs(steps - round(steps)) <= NEAR:
                continue
            edge = sign * (math.ceil(sign * steps) - 0.5) * axis.step  # where the first value of the grid begins
            end = axis.below(edge, included=sign < 0)
            code = int(axis.mass.searchsorted(end, side="right" if sign > 0 else "left")) - 1
            if 0 <= code < axis.low.size:
                wide = max(float(axis.high[code] - axis.low[code]), axis.step)
                left_open = min(abs(edge - value) / wide, 1.0) / influences.LUMPS
                found.append((float(axis.mass[code]), float(axis.mass[code + 1]), left_open))
    return found


def _left_open(axis: MassAxis, code: int, part: float) -> float:
    """How much of a fine bin may be on the other side of an end that cuts it after this part.

    All values may be one. And where the mean is not in the middle, they lie closer around it than it seems.
    """
    first, mass, low, high = axis.first.data, axis.mass.data, axis.low.data[code], axis.high.data[code]
    mean = (first[code + 1] - first[code]) / (mass[code + 1] - mass[code])
    reach = max(min(mean - low, high - mean), axis.step / 2)
    value = low + part * (high - low)
    near = min(max((value - mean + reach) / (2 * reach), 0.0), 1.0) if reach > 0 else float(value > mean)
    return max(math.sqrt(part * (1.0 - part)), abs(part - near) / influences.LUMPS)


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
    return nearest + is_beyond(low)


def _highest_step(high: float, step: float) -> float:
    """The number of steps of the highest grid value in a closed range that ends at `high`."""
    return -_lowest_step(-high, step)


def _left_out(low: float) -> tuple[float, bool]:
    """The number that a range is meant to begin at, and whether it is left out."""
    return (math.nextafter(low, -math.inf), True) if is_beyond(low) else (low, False)


@lru_cache(maxsize=_REMEMBERED)
def is_beyond(low: float) -> bool:
    """Whether a range that begins here is meant to leave out the number below: v > a begins at the next one after a."""
    return _plainer(math.nextafter(low, -math.inf), low)


def _plainer(one: float, other: float) -> bool:
    """Whether a person or a float32 column would rather have written the first of two neighbouring numbers.

    >>> _plainer(21.1, math.nextafter(21.1, 99.0)), _plainer(math.nextafter(21.1, 0.0), 21.1)
    (True, False)
    """
    single = _is_single(one)
    if single != _is_single(other):
        return single
    return len(repr(one)) < len(repr(other))


def _is_single(number: float) -> bool:
    """Whether a number is one of 32 bits."""
    try:
        return bool(_SINGLE.unpack(_SINGLE.pack(number))[0] == number)
    except OverflowError:
        return False
