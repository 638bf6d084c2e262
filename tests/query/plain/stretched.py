"""Stretched: what of stretches is in scope, in NumPy, all stretches of one group at once.

The model: what paths in scope have more than the others is something that all stretches cut alike have in common,
something of the stretch's own, and chance. How much chance there is, is told by neighbouring paths of the stratum.
"""

from __future__ import annotations

import numpy as np

from synopsis.query import recalled, stretched
from synopsis.sketch.moments import Floats, Integers


def chances(values: Floats, squares: Floats, stretch: Integers) -> tuple[float, float]:
    """Chance in values and in squares, given those of all paths of a stratum that have one, and their stretches."""
    near, apart, pairs = np.zeros(2), np.zeros(2), 0
    for each in np.unique(stretch):
        own, square = values[stretch == each], squares[stretch == each]
        mean = own.mean()
        away = np.stack((own - mean, square - 2 * mean * own + mean * mean))
        away -= away.mean(axis=1, keepdims=True)
        near += (np.diff(away, axis=1) ** 2).sum(axis=1) / 2
        apart += (away**2).sum(axis=1)
        pairs += own.size - 1
    part = np.where(apart > 0, near / np.where(apart > 0, apart, 1), 1)
    part = np.minimum((pairs * part + recalled.UNKNOWN) / (pairs + recalled.UNKNOWN), 1)
    first, second = part / (1 - recalled.CHANCE * part)
    return float(first), float(second)


def numbers(found: Floats, centre: float) -> tuple[float, float, float]:
    """How many values a group has, their mean and variance."""
    rows, kept, rows_in, kept_in = (found[:, at] for at in range(2, 6))
    whole, paths, inside = (found[:, at : at + 3] for at in (recalled.WHOLE, recalled.PATHS, recalled.INSIDE))
    step, edge = found[:, recalled.OWN_STEP], found[:, recalled.EDGE].astype(int) % 3
    cut = rows_in < rows * (1 - 1e-9)
    mean = whole[:, 1] / np.maximum(whole[:, 0], 1)
    spread = np.maximum(whole[:, 2] - whole[:, 1] * mean, 0)

    def around(sums: Floats) -> Floats:
        """Values, their distance from the mean of the stretch, and its square, added up."""
        count, total, square = sums.T
        return np.stack((count, total - mean * count, square - 2 * mean * total + mean**2 * count), axis=1)

    paths, inside = around(paths), around(inside)

    def part(moment: int, of: Floats, in_scope: Floats, total: Floats) -> Floats:
        held, held_in = (kept, kept_in) if moment == 0 else (paths[:, 0], inside[:, 0])
        others = held - held_in
        both = (held_in >= 1e-9) & (others >= 1e-9) & cut
        known = np.where(both, held_in * others / np.where(both, held, 1), 0)
        leaning = np.where(
            both,
            inside[:, moment] / np.where(both, held_in, 1)
            - (paths[:, moment] - inside[:, moment]) / np.where(both, others, 1),
            0,
        )
        chance = found[:, recalled.CHANCES + moment]
        trust = known / (known + chance)
        alike = np.zeros(3)
        for way in range(3):
            own = trust * (edge == way)
            if own.any():
                average = (own * chance * leaning).sum() / (own * chance).sum()
                alike[way] = average * own.sum() / (own.sum() + stretched.COMMON)
        leaning = alike[edge] + trust * (leaning - alike[edge])
        rest, unknown = of - held, in_scope - held_in
        open_ = (rest > 1e-9) & (unknown > 0)
        rest = np.where(open_, rest, 1)
        more = unknown * ((total - paths[:, moment]) / rest + np.maximum(1 - unknown / rest, 0) * leaning)
        return inside[:, moment] + np.where(open_, more, 0)

    values = part(0, rows, rows_in, whole[:, 0])
    values = np.clip(values, np.maximum(whole[:, 0] - (rows - rows_in), 0), np.minimum(rows_in, whole[:, 0]))
    some = np.maximum(values, 1e-300)
    most = np.sqrt(spread * values * np.maximum(whole[:, 0] - values, 0) / np.maximum(whole[:, 0], 1))
    total = np.clip(part(1, whole[:, 0], values, np.zeros(len(found))), -most, most)
    square = np.maximum(np.minimum(part(2, whole[:, 0], values, spread), spread), total**2 / some)
    sums = np.stack((values, total + values * mean, square + mean * (2 * total + mean * values)), axis=1)
    sums = np.where((cut & (values > 0))[:, None], sums, np.where(cut[:, None], 0, whole)).sum(axis=0)
    rounding = (whole[:, 0] * rows_in / rows * step**2).sum() / 6
    average = sums[1] / sums[0]
    return float(sums[0]), float(centre + average), float(max((sums[2] - rounding) / sums[0] - average**2, 0))
