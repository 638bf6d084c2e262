"""Scales: the fine bins of every feature, shared by the whole sketch, into which values go before anything else.

A scale has at most 250 bins, so that a value becomes one byte. The coarser bins of a place and period are runs of
neighbouring fine bins: they need no numbers of their own, and they nest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synopsis.grid.density import distinct
from synopsis.grid.quantizer import Quantizer
from synopsis.sketch.moments import Floats
from synopsis.sketch.ticks import ABSENT_TICK, MOST_ATOMS, Ticks

#: Most fine bins of a feature. A byte also holds ABSENT, and one past the last bin.
MOST_FINE = 250

#: The fine code of a value that is not there.
ABSENT = 255

#: Share of the values that lie on a grid if there is one: some are averages of two.
_ON_GRID = 0.95

#: Steps of grids that there may be, coarsest first.
_STEPS = (1.0, 0.5, 0.1, 0.05, 0.01, 0.001)

#: Of a grid that parts what most rows have into so many, less is enough: others are a fraction of a narrow step away.
_MOSTLY, _NARROW, _USUAL = 0.5, 64, (0.1, 0.9)

#: No variance is larger: that of larger values cannot be told.
_MOST_VARIANCE = 1e300

#: Share of a mean by which values differ from it by rounding alone.
_ROUNDING = 1e-9

#: What more of the values share is left aside when a grid is sought.
_MODE_SHARE = 0.2

#: Share of the values that may lie beyond the ends of the first batch before nothing is said of them at 95%.
_FEW_BEYOND = 1e-3

#: One of so many fine bins is left for values beyond the ends, on either side; how far these reach, in ranges of the
#: values; and by what each is wider than the one before it.
_SPARE, _FURTHER, _WIDER = 10, 3.0, 1.15

Codes = NDArray[np.uint8]
Shorts = NDArray[np.float32]
Halves = NDArray[np.float16]


@dataclass(frozen=True)
class Scales:
    """One fine quantizer a feature, and between which values all rows lie."""

    quantizers: tuple[Quantizer, ...]  #: their edges lie where ticks begin
    ticks: tuple[Ticks, ...]
    means: tuple[Shorts, ...]  #: the mean of the values in each fine bin, as far as they are known
    spreads: tuple[Halves, ...]  #: their variance, likewise, as a part of that of values all over the bin
    masses: tuple[Shorts, ...]  #: the share of the values in each fine bin, as the fit knew them
    steps: Floats  #: the grid that each feature's values lie on, as 0.1; 0 where they lie on none
    low: Floats  #: the lowest value of each feature; +inf where there is none
    high: Floats
    values: Floats  #: how many values each feature has in all batches, where several have come; else 0
    beyond: Floats  #: and how many of them lie beyond the ends that the bins were fitted to

    @classmethod
    def fit(
        cls,
        values: NDArray[np.float64],
        fine: int = MOST_FINE,
        low: Floats | None = None,
        high: Floats | None = None,
        *,
        spare: bool = False,
    ) -> Scales:
        """Scales of values in memory, features x rows; NaN is absent.

        `low` and `high` are the ends of all values where these are only some of them. `spare` leaves room for values of
        later batches that lie beyond them.
        """
        present = [row[~np.isnan(row)] for row in values]
        low = np.array([row.min(initial=np.inf) for row in present]) if low is None else low
        high = np.array([row.max(initial=-np.inf) for row in present]) if high is None else high
        points = [distinct(row) for row in present]
        steps = np.array([_grid_step(*each) for each in points])
        quantizers, ticks = [], []
        for feature, row in enumerate(present):
            room = fine // _SPARE if spare else 0
            own = fine_quantizer(*points[feature], fine - 2 * room)
            ends = float(low[feature]), float(high[feature])
            if spare:
                own, ends = _with_room(own, *ends, room)
            found, tick = _on_ticks(own, row, *ends, steps[feature])
            quantizers.append(found)
            ticks.append(tick)
        moments = [fine_moments(*own) for own in zip(present, quantizers, steps, strict=True)]
        means, masses = (tuple(shorts(each[part]) for each in moments) for part in (0, 2))
        spreads = tuple(spread(*own) for own in zip(quantizers, (each[1] for each in moments), strict=True))
        none = np.zeros(len(present))
        return cls(tuple(quantizers), tuple(ticks), means, spreads, masses, steps, low, high, none, none)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        edges = sum(each.edges.nbytes + each.atoms.nbytes for each in self.quantizers)
        shares = sum(each.nbytes for each in (*self.means, *self.masses)) + sum(each.nbytes for each in self.spreads)
        return edges + shares + sum(each.nbytes for each in self._by_feature)

    @property
    def _by_feature(self) -> tuple[Floats, ...]:
        return self.steps, self.low, self.high, self.values, self.beyond

    def code_of_tick(self, feature: int) -> Codes:
        """The fine code of every tick of a feature: a table of 65,536 bytes."""
        edges = self.ticks[feature].of(self.quantizers[feature].edges)
        table = np.searchsorted(edges, np.arange(ABSENT_TICK + 1), side="right").astype(np.uint8)
        table[ABSENT_TICK] = ABSENT
        return table

    def codes(self, values: NDArray[np.float64]) -> Codes:
        """Features x rows of values as fine codes."""
        coded = np.empty(values.shape, np.uint8)
        for feature, quantizer in enumerate(self.quantizers):
            codes = quantizer.codes(values[feature])
            coded[feature] = np.where(codes == quantizer.bins, ABSENT, codes)
        return coded

    def ranges(self, feature: int) -> tuple[Floats, Floats]:
        """The lowest and the highest value that each fine bin of a feature can hold, both included."""
        quantizer = self.quantizers[feature]
        low, high = quantizer.bounds(
            np.arange(quantizer.bins), low=float(self.low[feature]), high=float(self.high[feature])
        )
        return low, np.maximum(high, low)

    def variances(self, feature: int) -> Floats:
        """The variance of the values in each fine bin of a feature."""
        return self.spreads[feature] * _all_over(self.quantizers[feature])

    def same(self, other: Scales) -> bool:
        """Whether values go into the same fine bins; their ends may lie apart."""
        return len(self.quantizers) == len(other.quantizers) and all(
            np.array_equal(mine.edges, theirs.edges) and np.array_equal(mine.atoms, theirs.atoms)
            for mine, theirs in zip(self.quantizers, other.quantizers, strict=True)
        )

    def of_features(self, which: Sequence[int]) -> Scales:
        """The scales of some features, in this order."""
        return Scales(
            tuple(self.quantizers[at] for at in which),
            tuple(self.ticks[at] for at in which),
            tuple(self.means[at] for at in which),
            tuple(self.spreads[at] for at in which),
            tuple(self.masses[at] for at in which),
            *(each[list(which)] for each in self._by_feature),
        )

    def is_widened(self, feature: int) -> bool:
        """Whether more than a few values lie beyond the ends that the bins were fitted to, nobody knows how far."""
        return bool(self.beyond[feature] > _FEW_BEYOND * self.values[feature])

    def widened(self, low: Floats, high: Floats, values: Floats, beyond: Floats) -> Scales:
        """The same bins after another batch, whose first features have these ends, and so many values and beyond."""
        lacking = self.low.size - low.size
        rest, none = np.full(lacking, np.inf), np.zeros(lacking)
        return replace(
            self,
            low=np.minimum(self.low, np.append(low, rest)),
            high=np.maximum(self.high, np.append(high, -rest)),
            values=self.values + np.append(values, none),
            beyond=self.beyond + np.append(beyond, none),
        )


def shorts(numbers: Floats) -> Shorts:
    """Numbers of 32 bits; those that are larger than any become the largest."""
    most = float(np.finfo(np.float32).max)
    return np.clip(numbers, -most, most).astype(np.float32)


def spread(quantizer: Quantizer, variance: Floats) -> Halves:
    """Variances in fine bins as parts of those of values all over them; no values have more than three times that."""
    usual = _all_over(quantizer)
    return np.clip(np.divide(variance, usual, out=np.zeros(usual.size), where=usual > 0.0), 0.0, 3.0).astype(np.float16)


def _all_over(quantizer: Quantizer) -> Floats:
    """The variance of values that lie all over a bin, by those that it was fitted to."""
    low, high = quantizer.bounds(np.arange(quantizer.bins), low=quantizer.low, high=quantizer.high)
    with np.errstate(over="ignore"):
        return np.minimum(np.square(np.maximum(high - low, 0.0)) / 12, _MOST_VARIANCE)


def _on_ticks(quantizer: Quantizer, values: Floats, low: float, high: float, step: float) -> tuple[Quantizer, Ticks]:
    """The same bins with edges where ticks begin. Values on a grid need no atoms: each has a tick of its own."""
    ends = (float(low), float(high)) if low <= high else (quantizer.low, quantizer.high)
    atoms = quantizer.atoms
    if len(atoms) > MOST_ATOMS:  # the heaviest
        counts = np.bincount(np.searchsorted(atoms, values[np.isin(values, atoms)]), minlength=len(atoms))
        atoms = np.sort(atoms[np.argsort(-counts, kind="stable")[:MOST_ATOMS]])
    ticks = Ticks.between(low, high, step, atoms)
    kept = np.array(ticks.atoms)
    others = quantizer.atoms[~np.isin(quantizer.atoms, kept)]  # the two edges of such a one become those of its tick
    above, at = (np.isin(quantizer.edges, each) for each in (np.nextafter(others, np.inf), others))
    moved = quantizer.edges + (above.astype(np.float64) - at) * ticks.step / 2
    return Quantizer(ticks.snapped(moved), kept, *ends), ticks


def fine_quantizer(
    values: NDArray[np.float64], weights: NDArray[np.float64] | None, fine: int = MOST_FINE
) -> Quantizer:
    """Fine bins that serve the middle and the tails: most by mass, some by width, some that halve the tails' mass.

    Equal mass alone leaves the tails to a few wide bins, and there a few values carry much of the spread.
    """
    points, mass = distinct(values, weights)
    by_mass = Quantizer.fit(points, mass, fine * 3 // 4)
    if by_mass.bins < fine * 3 // 8:
        return by_mass  # few different values: each has its bin already
    by_width = np.linspace(points[0], points[-1], fine // 8)[1:-1]
    halved = 0.5 ** np.arange(5, 5 + fine // 16)
    share = np.cumsum(mass) / mass.sum()
    tails = np.concatenate((np.interp(halved, share, points), np.interp(1 - halved, share, points)))
    wanted = np.concatenate((by_width, tails))
    gap = np.clip(np.searchsorted(points, wanted), 1, points.size - 1)
    between = points[gap - 1] + (points[gap] - points[gap - 1]) / 2
    between = between[
        (between > points[gap - 1]) & ~np.isin(points[gap - 1], by_mass.atoms) & ~np.isin(points[gap], by_mass.atoms)
    ]
    return Quantizer(np.union1d(by_mass.edges, between), by_mass.atoms, by_mass.low, by_mass.high)


def _with_room(quantizer: Quantizer, low: float, high: float, bins: int) -> tuple[Quantizer, tuple[float, float]]:
    """The same bins and so many on both sides, and the ends of all; what is never below 0 is not thought to be.

    Each is wider than the one before it: they reach `_FURTHER` times as far again as the values do.
    """
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        return quantizer, (low, high)
    widths = _WIDER ** np.arange(bins)
    further = np.cumsum(widths) * (_FURTHER * (high - low) / widths.sum())
    above, below = high + further, low - further
    below = below[below > 0.0] if low >= 0.0 else below
    ends = float(below.min(initial=low)), float(above[-1])
    return Quantizer(np.union1d(quantizer.edges, np.concatenate((below, above[:-1]))), quantizer.atoms, *ends), ends


def fine_moments(values: Floats, quantizer: Quantizer, step: float) -> tuple[Floats, Floats, Floats]:
    """The mean and the variance of the values in each bin, and its share of them; `step` is their grid, if any.

    Where there are none, values are thought to be anywhere in it, and one alone tells nothing of their variance.
    """
    codes = quantizer.codes(values)
    total = np.bincount(codes, minlength=quantizer.bins)
    low, high = quantizer.bounds(np.arange(quantizer.bins), low=quantizer.low, high=quantizer.high)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(codes, values, minlength=quantizer.bins) / total
    mean = np.where(total > 0, mean, low / 2 + high / 2)
    with np.errstate(over="ignore"):
        squares = np.bincount(codes, (values - mean[codes]) ** 2, minlength=quantizer.bins)
        usual = np.maximum((high - low) ** 2 - step**2, 0.0) / 12
        variance = np.where(total > 1, squares / np.maximum(total, 1), usual)
    # Values that are all one differ from their mean by rounding.
    return mean, np.where(np.sqrt(variance) > _ROUNDING * np.abs(mean), variance, 0.0), total / max(total.sum(), 1)


def grid_step(values: NDArray[np.float64]) -> float:
    """The coarsest decimal step of which nearly all values are multiples, or 0. They may have come as float32.

    Most are enough where the step is narrow: whole knots among fractions of them. One value that stands for many rows,
    as no rain does, says nothing about the grid of the others.

    >>> grid_step(np.array([21.5, 21.4, 30.0])), grid_step(np.array([1.0, 2.0])), grid_step(np.array([0.1234567]))
    (0.1, 1.0, 0.0)
    """
    return _grid_step(*np.unique(values, return_counts=True))


def _grid_step(points: Floats, counts: NDArray[Any]) -> float:
    """That of different values in order, and of how many there are of each."""
    if counts.size and counts.max() > max(_MODE_SHARE * counts.sum(), 1):
        points, counts = np.delete(points, counts.argmax()), np.delete(counts, counts.argmax())
    if points.size < 2:
        return 0.0
    size, reach = np.abs(points).max(), points[-1] - points[0]
    below = np.cumsum(counts)
    least, most = points[np.searchsorted(below, np.array(_USUAL) * below[-1])]
    steps = [step for step in _STEPS if reach >= step > 1e-5 * size]
    shares = [counts[_is_near(points / step, 1e-7 * size / step + 1e-9)].sum() / below[-1] for step in steps]
    best = max(shares, default=0.0)
    for step, share in zip(steps, shares, strict=True):
        is_narrow = best >= _MOSTLY and step * _NARROW <= most - least
        if share >= _ON_GRID or (is_narrow and best < _ON_GRID and share >= _ON_GRID * best):
            return step
    return 0.0


def _is_near(steps: Floats, slack: float) -> NDArray[np.bool_]:
    """Whether numbers of steps are whole ones."""
    return np.abs(steps - np.round(steps)) <= slack
