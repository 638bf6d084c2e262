"""What all rows tell of the fine bins: how many lie in each, and the sums of their values and squares.

Scales are fitted to a sample; what is left of its luck is the same in every stratum and would not average out over
them. The sums are of ticks beyond the first one of the bin, in whole numbers: they come out the same in whatever order
rows, tasks and machines are taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Scales, shorts, spread
from synopsis.sketch.ticks import ABSENT_TICK

#: Share of the rows that have to lie elsewhere before scales learn from another batch: all is packed again then, and
#: stretches are rounded once more.
_DRIFT = 0.05


@dataclass(frozen=True)
class FineSums:
    """Rows, and sums of ticks and of squared ticks, in every fine bin."""

    numbers: tuple[Integers, ...]  #: one a feature: 3 x fine bins
    rows: int  #: in all, with and without values

    @classmethod
    def of(cls, scales: Scales, counts: Integers) -> FineSums:
        """Of so many rows with every tick, features x ticks. Cost: proportional to these."""
        sums = tuple(_summed(_firsts(scales, feature), own) for feature, own in enumerate(counts))
        return cls(sums, int(counts[0].sum()))

    @classmethod
    def of_values(cls, scales: Scales, values: Floats) -> FineSums:
        """Of values in memory, features x rows; NaN is absent."""
        ticks = (each.of(row) for each, row in zip(scales.ticks, values, strict=True))
        return cls.of(scales, np.stack([np.bincount(each, minlength=ABSENT_TICK + 1) for each in ticks]))

    def __add__(self, other: FineSums) -> FineSums:
        sums = (mine + theirs for mine, theirs in zip(self.numbers, other.numbers, strict=True))
        return FineSums(tuple(sums), self.rows + other.rows)

    @property
    def values(self) -> Floats:
        """How many values each feature has."""
        return np.array([own[0].sum() for own in self.numbers], np.float64)

    def informing(self, scales: Scales, sample: FineSums) -> Scales:
        """The same scales, which were fitted to a sample, with means and variances as all rows have them.

        Where in its tick a value lies only the sample knows. Fine bins without rows stay as they are.
        """
        found = [
            _moments(scales, feature, own, sampled)
            for feature, (own, sampled) in enumerate(zip(self.numbers, sample.numbers, strict=True))
        ]
        return replace(
            scales,
            means=tuple(shorts(mean) for mean, _ in found),
            spreads=tuple(spread(*own) for own in zip(scales.quantizers, (each[1] for each in found), strict=True)),
        )

    def joining(self, scales: Scales) -> Scales:
        """Scales that know these rows beside those of earlier batches; the same where that would change little.

        Cost: proportional to ticks and fine bins.
        """
        found, drift = [], 0.0
        for feature, sums in enumerate(self.numbers):
            before = scales.masses[feature] * scales.values[feature]
            means, variances = scales.means[feature].astype(np.float64), scales.variances(feature)
            new_means, new_variances = _moments(scales, feature, sums, np.zeros_like(sums))
            rows = before + sums[0]
            some = np.maximum(rows, 1e-300)
            mean = np.where(rows > 0, (before * means + sums[0] * new_means) / some, means)
            square = before * (variances + (means - mean) ** 2) + sums[0] * (new_variances + (new_means - mean) ** 2)
            found.append((mean, np.where(rows > 0, square / some, variances), rows / max(rows.sum(), 1.0)))
            drift = max(drift, float(np.abs(found[-1][2] - scales.masses[feature]).sum() / 2) if rows.any() else 0.0)
        if drift < _DRIFT:
            return scales
        return replace(
            scales,
            means=tuple(shorts(mean) for mean, _, _ in found),
            spreads=tuple(spread(*own) for own in zip(scales.quantizers, (each[1] for each in found), strict=True)),
            masses=tuple(shorts(mass) for _, _, mass in found),
        )


def _firsts(scales: Scales, feature: int) -> Integers:
    """The first tick of every fine bin, and one past the last tick of all."""
    table = scales.code_of_tick(feature)[:ABSENT_TICK]
    return np.asarray(np.searchsorted(table, np.arange(scales.quantizers[feature].bins + 1)))


def _summed(firsts: Integers, counts: Integers) -> Integers:
    beyond = np.arange(ABSENT_TICK) - np.repeat(firsts[:-1], np.diff(firsts))
    rows = counts[:ABSENT_TICK]
    running = np.cumsum(np.pad((rows, rows * beyond, rows * beyond * beyond), ((0, 0), (1, 0))), axis=1)
    return np.asarray(np.diff(running[:, firsts], axis=1))


def _moments(scales: Scales, feature: int, sums: Integers, sampled: Integers) -> tuple[Floats, Floats]:
    """The mean and the variance in every fine bin."""
    ticks = scales.ticks[feature]
    middles = ticks.middles()
    firsts = np.minimum(_firsts(scales, feature)[:-1], middles.size - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        (mean, variance), (fitted, usual) = (_of_ticks(each, ticks.step) for each in (sums, sampled))
    # A tick of values on a grid holds one of them; others are spread over theirs.
    within = 0.0 if scales.steps[feature] else ticks.step**2 / 12
    means, variances = scales.means[feature].astype(np.float64), scales.variances(feature)
    seen, known = sampled[0] > 0, sums[0] > 0
    mean = np.where(seen, means + mean - fitted, middles[firsts] + mean)
    variance = np.where(sampled[0] > 1, variances + variance - usual, variance + within)
    return np.where(known, mean, means), np.where(known, np.maximum(variance, 0.0), variances)


def _of_ticks(sums: Integers, step: float) -> tuple[Floats, Floats]:
    """The mean beyond the first tick of the bin, and the variance, of values in the middle of their ticks."""
    beyond = sums[1] / sums[0]
    return beyond * step, (sums[2] / sums[0] - beyond * beyond) * step * step
