"""Intervals: from what is known of every group to the ends of an interval, group by group, in machine code.

The formulas of `estimate` and `pieces`, which tell what goes into them. NaN stands for what is not known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from synopsis.query.inference import NORMAL
from synopsis.query.values import CERTAIN, EXACT, HEURISTIC, P95
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags

#: Of a covariance bins tell so much at least: beyond that nothing can be said from it.
SEEN = 1e-3


#: Of what a correlation lacks if values go together in a straight line within bins, half is expected where bins tell
#: most of it, and less where they do not; it may be off by so much.
LACKING = 0.9

#: Rows that no path saw, far ones most of all, make features go together less, and hardly ever more: intervals of
#: correlations that are surely not 0 reach this much farther towards it, and as much less far away from it.
TOWARDS_NOTHING = 0.15


#: Of a skew so much is expected, and it may be off by so much: in six data sets errors were 0.3 to 1.0 of it.
SKEWED, UNSURE = 0.6, 0.9


@compiled
def _either(half: float, skew: float) -> tuple[float, float]:
    """How far an interval reaches below and above, at least to the estimate."""
    reach = np.hypot(half, UNSURE * skew)
    return reach - SKEWED * skew, reach + SKEWED * skew


@compiled
def average(
    count: Floats, middle: Floats, half: Floats, skew: Floats, lowest: Floats, highest: Floats, heard: Flags
) -> tuple[Floats, Floats]:
    """Of means, which lie between the lowest and the highest value; where no path is heard, that is all."""
    low, high = np.full(count.size, np.nan), np.full(count.size, np.nan)
    for group in range(count.size):
        if count[group] > 0.0:
            least, most = lowest[group], highest[group]
            if heard[group]:
                below, above = _either(half[group], skew[group])
                least, most = max(middle[group] - below, least), min(middle[group] + above, most)
            low[group], high[group] = min(least, middle[group]), max(most, middle[group])
    return low, high


@compiled
def variance(
    count: Floats, middle: Floats, half: Floats, skew: Floats, lowest: Floats, highest: Floats, heard: Flags
) -> tuple[Floats, Floats]:
    """Of variances, which are off by a factor: what is a part below is as much above.

    Where that is much, a few rows make the variance, and it may be nothing without them. One that is larger than values
    between the lowest and the highest can have does not tell how small it is.
    """
    low, high = np.full(count.size, np.nan), np.full(count.size, np.nan)
    for group in range(count.size):
        most = (highest[group] - lowest[group]) ** 2 / 4
        if count[group] > 0.0 and (not heard[group] or middle[group] > most):
            low[group], high[group] = min(0.0, middle[group]), max(most, middle[group])
        elif count[group] > 0.0:
            below, above = _either(half[group], skew[group])
            high[group], low[group] = middle[group] + above, 0.0
            if middle[group] > 0.0:
                part = below / middle[group]
                low[group] = middle[group] * max(min(1.0 / (1.0 + part), 1.0 - part / 1.5), 0.0)
    return low, high


@compiled
def plain_total(
    count: Floats, mean: Floats, total: Floats, half: Floats, skew: Floats, edge: Floats, heard: Flags
) -> tuple[Floats, Floats]:
    """Of sums without a condition, and where days are cut of a row more or less; 0 where there is nothing."""
    low, high = np.zeros(count.size), np.zeros(count.size)
    for group in range(count.size):
        if count[group] > 0.0 and heard[group]:
            ends = edge[group] * abs(mean[group])
            below, above = _either(half[group], skew[group])
            low[group], high[group] = total[group] - below - ends, total[group] + above + ends
    return low, high


@compiled
def total_of(
    count: Floats,
    mean: Floats,
    total: Floats,
    rows: Floats,
    rows_low: Floats,
    rows_high: Floats,
    mean_low: Floats,
    mean_high: Floats,
    held: Floats,
    worth: Floats,
) -> tuple[Floats, Floats]:
    """Of sums: a count of rows times a mean, whose errors have little to do with each other.

    And times the share of rows that have a value: of the rows that are `held`, as paths tell that are worth so many.
    """
    low, high = np.zeros(count.size), np.zeros(count.size)
    for group in range(count.size):
        if count[group] > 0.0:
            fewer, more = abs(rows_low[group] - rows[group]), abs(rows_high[group] - rows[group])
            fewer, more = fewer / rows[group], more / rows[group]
            lacking = max(held[group] - count[group], 0.0) / count[group] / max(worth[group], 1.0)
            absent = NORMAL * np.sqrt(lacking * max(1.0 - worth[group] / max(rows[group], 1.0), 0.0))
            fewer, more = np.hypot(fewer, absent), np.hypot(more, absent)
            below, above = mean[group] - mean_low[group], mean_high[group] - mean[group]
            if total[group] < 0.0:
                fewer, more = more, fewer
            low[group] = total[group] - np.hypot(below * count[group], fewer * total[group])
            high[group] = total[group] + np.hypot(above * count[group], more * total[group])
    return low, high


@compiled
def unheard_total(
    count: Floats, total: Floats, rows_high: Floats, lowest: Floats, highest: Floats
) -> tuple[Floats, Floats]:
    """Of sums for which no path speaks: any number of rows with any value."""
    low, high = np.zeros(count.size), np.zeros(count.size)
    for group in range(count.size):
        if count[group] > 0.0:
            least, most = total[group], total[group]
            for size in (0.0, count[group], rows_high[group]):
                for value in (lowest[group], highest[group]):
                    least, most = min(least, size * value), max(most, size * value)
            low[group], high[group] = least, most
    return low, high


@compiled
def roots(low: Floats, high: Floats, middle: Floats) -> tuple[Floats, Floats]:
    """Of deviations, from those of variances."""
    least, most = np.empty(low.size), np.empty(low.size)
    for group in range(low.size):
        least[group], most[group] = np.sqrt(low[group]), np.sqrt(high[group])
        if not least[group] <= middle[group]:
            least[group] = middle[group]
        if not most[group] >= middle[group]:
            most[group] = middle[group]
    return least, most


@compiled
def correlated(covariance: Floats, square: Floats, other: Floats) -> Floats:
    """Correlations; NaN where a feature does not vary."""
    found = np.full(covariance.size, np.nan)
    for group in range(covariance.size):
        if square[group] * other[group] > 0.0:
            found[group] = min(max(covariance[group] / np.sqrt(square[group] * other[group]), -1.0), 1.0)
    return found


@compiled
def correlation(
    middle: Floats, half: Floats, within: Floats, beyond: Floats, square: Floats, other: Floats, slots: Integers
) -> tuple[Floats, Floats]:
    """Of correlations, by Fisher's transformation; anything where no path tells (`half` is empty, or NaN).

    Values taken to be the means of their bins vary together less than they do: where they go together in a straight
    line, by what either variance has within bins.
    """
    low, high = np.full(middle.size, np.nan), np.full(middle.size, np.nan)
    for group in range(middle.size):
        r = middle[group]
        if np.isnan(r) or not half.size or np.isnan(half[group]):
            if slots[group + 1] > slots[group]:
                low[group], high[group] = -1.0, 1.0
            continue
        seen = (1.0 - within[group] / square[group]) * (1.0 - beyond[group] / other[group])
        wide, turned = half[group] / max(1.0 - r * r, 1e-3), np.arctanh(min(max(r, -1 + 1e-9), 1 - 1e-9))
        unseen = np.arctanh(min(max(r / max(seen, SEEN), -1 + 1e-4), 1 - 1e-4)) - turned
        unseen = unseen if unseen * r > 0.0 else 0.0
        wide, turned = np.hypot(wide, LACKING * unseen), turned + unseen * max(seen, 0.0) / 2
        lean = TOWARDS_NOTHING * min(max(turned, -wide), wide)
        low[group], high[group] = min(np.tanh(turned - wide - lean), r), max(np.tanh(turned + wide - lean), r)
    return low, high


@compiled
def bounded(
    estimate: Floats, low: Floats, high: Floats, likely_low: Floats, likely_high: Floats, whole: bool, counts: bool
) -> tuple[Floats, NDArray[np.int8]]:
    """Estimates put inside their certain intervals, and narrower ones at 95% where there are any; what is promised.

    Rows: estimate, low, high, low at 95%, high at 95%; whole numbers if they are to be. NaN where an end is. Counts
    whose ends are one are exact.
    """
    found, guarantee = np.full((5, low.size), np.nan), np.full(low.size, CERTAIN, np.int8)
    for group in range(low.size):
        least, most = low[group], high[group]
        if np.isnan(least) or np.isnan(most):
            continue
        if least == most:
            found[0, group], found[1, group], found[2, group] = least, least, least
            if whole or counts:
                guarantee[group] = EXACT
            continue
        middle = (least + most) / 2 if np.isnan(estimate[group]) else min(max(estimate[group], least), most)
        if whole:
            middle, least, most = np.rint(middle), np.rint(least), np.rint(most)
        if counts and least == most:
            guarantee[group] = EXACT
        found[0, group], found[1, group], found[2, group] = middle, least, most
        if likely_low.size and not (np.isnan(likely_low[group]) or np.isnan(likely_high[group])):
            found[3, group] = max(min(likely_low[group], middle), least)
            found[4, group] = min(max(likely_high[group], middle), most)
    return found, guarantee


@compiled
def capped(numbers: Floats, most: Floats) -> Floats:
    """Estimates and ends, as many as there are x groups, none above what it can be at most (Popoviciu 1935)."""
    found = np.empty(numbers.shape)
    for row in range(numbers.shape[0]):
        for group in range(numbers.shape[1]):
            number = numbers[row, group]
            found[row, group] = most[group] if number > most[group] else number
    return found


@compiled
def guessed(estimate: Floats, low: Floats, high: Floats) -> tuple[Floats, NDArray[np.int8]]:
    """Intervals at 95% alone, groups x 2, around estimates; what is promised."""
    likely, guarantee = np.full((estimate.size, 2), np.nan), np.full(estimate.size, HEURISTIC, np.int8)
    for group in range(low.size):
        if not (np.isnan(low[group]) or np.isnan(high[group]) or np.isnan(estimate[group])):
            likely[group, 0] = min(low[group], estimate[group])
            likely[group, 1] = max(high[group], estimate[group])
            guarantee[group] = P95
    return likely, guarantee
