"""Arrangements: rows of strata taken bin by bin, from the best to the worst, where all counts are exact.

The machine code of `strata`, for one group and counts that are known: its docstring tells what is computed, and its
NumPy, which serves all other cases, is the oracle. Bins x strata, as there.
"""

from __future__ import annotations

import numpy as np

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes

#: Facts of a side, by position; `strata` knows them, too.
BEST, WORST, COUNT, SUM, MEAN, EITHER = range(6)


@compiled
def binned(
    starts: Codes, ends: Codes, counts: Integers, chosen: Integers, edges: Floats, lowest: float, highest: float
) -> tuple[Floats, Floats, Floats]:
    """Bins x chosen strata: counts (absent last), and the least and the greatest value of each bin; 0 where it is not
    used.

    `starts`, `ends` and `counts` are strata x bins. Fine bins lie between edges, from the lowest value to the highest.
    """
    strata, bins = chosen.size, starts.shape[1]
    rows, low, high = np.empty((bins + 1, strata)), np.zeros((bins, strata)), np.zeros((bins, strata))
    for to in range(strata):
        stratum = chosen[to]
        for each in range(bins):
            rows[each, to] = counts[stratum, each]
            begin, end = int(starts[stratum, each]), int(ends[stratum, each])
            if end > begin:
                first, last = min(begin, edges.size), min(end, edges.size + 1) - 1
                low[each, to] = max(edges[first - 1], lowest) if first else lowest
                # No value of a bin is as high as the edge above it, but none of its highest fine bin is below that.
                above = min(np.nextafter(edges[last], -np.inf), highest) if last < edges.size else highest
                high[each, to] = max(above, max(edges[last - 1], lowest) if last else lowest)
        rows[bins, to] = counts[stratum, bins]
    return rows, low, high


@compiled
def _covers(low: float, high: float, ranges: Floats) -> tuple[bool, bool]:
    """Whether a bin lies in one of the ranges with all its values, and whether it may have a value in them."""
    within = touched = False
    for each in range(ranges.shape[0]):
        if low >= ranges[each, 0] and high <= ranges[each, 1]:
            within = True
        if high >= ranges[each, 0] and low <= ranges[each, 1]:
            touched = True
    return within, touched


@compiled
def held_by_leaf(
    counts: Floats, absent: Floats, low: Floats, high: Floats, ranges: Floats, nulls: bool, total: Floats
) -> tuple[Floats, Floats]:
    """For how many rows of each stratum a leaf holds, at least and at most."""
    bins, strata = low.shape
    least, most = np.empty(strata), np.empty(strata)
    for stratum in range(strata):
        present = sure = may_be = 0.0
        for each in range(bins):
            rows = counts[each, stratum]
            if rows:
                within, touched = _covers(low[each, stratum], high[each, stratum], ranges)
                present += rows
                sure += rows * within
                may_be += rows * touched
        outside_least, outside_most = present - may_be, present - sure
        if nulls:
            sure, may_be = sure + absent[stratum], may_be + absent[stratum]
        else:
            outside_least, outside_most = outside_least + absent[stratum], outside_most + absent[stratum]
        least[stratum] = max(sure, total[stratum] - outside_most)
        most[stratum] = min(may_be, total[stratum] - outside_least)
    return least, most


@compiled
def counted(total: Floats, inside: Integers, cut: Integers, least: Floats, most: Floats) -> tuple[float, float]:
    """How many rows in scope satisfy a clause, given by stratum for how many in all it holds."""
    low = high = 0.0
    for stratum in range(total.size):
        low += max(inside[stratum] + least[stratum] - total[stratum], 0.0)
        high += min(inside[stratum] + cut[stratum], most[stratum])
    return low, high


@compiled
def left(
    total: Floats,
    inside: Integers,
    cut: Integers,
    own_least: Floats,
    own_most: Floats,
    others_least: Floats,
    others_most: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Strata: rows that the scope and what is demanded of others may refuse, and values, at least and at most."""
    refused, least, most = np.empty(total.size), np.empty(total.size), np.empty(total.size)
    for stratum in range(total.size):
        refused[stratum] = total[stratum] - inside[stratum] + total[stratum] - others_least[stratum]
        least[stratum] = max(own_least[stratum] - refused[stratum], 0.0)
        in_scope = inside[stratum] + cut[stratum]
        most[stratum] = min(min(own_most[stratum], others_most[stratum]), in_scope)
    return refused, least, most


@compiled
def _clipped(low: float, high: float, ranges: Floats) -> tuple[float, float]:
    """The least and the greatest value of a bin that lie in the ranges; any number where there is none."""
    least, greatest, used = np.inf, -np.inf, 0
    for each in range(ranges.shape[0]):
        # Bins are finite: a range that begins or ends at the wrong infinity has none of them.
        if ranges[each, 0] < np.inf and ranges[each, 1] > -np.inf:
            used += 1
            begin, end = max(low, ranges[each, 0]), min(high, ranges[each, 1])
            if begin <= end:
                least, greatest = min(least, begin), max(greatest, end)
    if not used:
        return low, high
    return (least, greatest) if least <= greatest else (0.0, 0.0)


@compiled
def arranged(
    counts: Floats, low: Floats, high: Floats, ranges: Floats, refused: Floats, least: Floats, most: Floats
) -> tuple[Floats, Floats, Floats, Integers]:
    """Values, rows that must be taken and rows that must or may be: of the feature's negative and of the feature.

    Bins without such rows are left out; the last array says how many stay on either side.
    """
    bins, strata = low.shape
    values, must, either = np.empty((2, bins * strata)), np.empty((2, bins * strata)), np.empty((2, bins * strata))
    sizes = np.zeros(2, np.int64)
    sure, may_be, begin, end = np.empty(bins), np.empty(bins), np.empty(bins), np.empty(bins)
    for stratum in range(strata):
        for each in range(bins):
            sure[each] = may_be[each] = 0.0
            rows = counts[each, stratum]
            if rows:
                within, touched = _covers(low[each, stratum], high[each, stratum], ranges)
                sure[each], may_be[each] = rows * within, rows * touched
                begin[each], end[each] = _clipped(low[each, stratum], high[each, stratum], ranges)
        forced_in_all, gone = 0.0, refused[stratum]
        for each in range(bins):
            forced_in_all += sure[each]
        for side in range(2):
            room = forced = must_before = either_before = 0.0
            for turn in range(bins):
                each = bins - 1 - turn if side else turn
                room, forced = room + may_be[each], forced + sure[each]
                kept = max(forced_in_all - forced - gone, 0.0)
                must_here, either_here = min(room, least[stratum] - kept), min(room, most[stratum] - kept)
                if must_here != must_before or either_here != either_before:
                    at = sizes[side]
                    values[side, at] = end[each] if side else -begin[each]
                    must[side, at], either[side, at] = must_here - must_before, either_here - either_before
                    sizes[side] += 1
                must_before, either_before = must_here, either_here
    return values, must, either, sizes


@compiled
def facts(
    values: Floats, must: Floats, either: Floats, sizes: Integers, rounding: float, close: float, steps: int
) -> Floats:
    """Sides x facts: upper bounds, as `strata._Side` has them."""
    found = np.zeros((2, 6))
    for side in range(2):
        best, worst, taken = -np.inf, np.inf, 0.0
        for each in range(sizes[side]):
            if either[side, each] > 0.0:
                best = max(best, values[side, each])
            if must[side, each] > 0.0:
                worst = min(worst, values[side, each])
            taken += either[side, each]
        best = 0.0 if np.isinf(best) else best
        found[side, BEST], found[side, WORST] = best, best if np.isinf(worst) else worst
        found[side, EITHER] = taken
    scale = max(abs(found[0, BEST]), abs(found[1, BEST]))
    for side in range(2):
        best, count, fixed, above, size, may, total = found[side, BEST], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for each in range(sizes[side]):
            value, own = values[side, each], must[side, each]
            others = either[side, each] - own
            count, fixed, may, total = count + own, fixed + own * value, may + others, total + others * value
            above += others * max(value, 0.0)
            size += either[side, each] * abs(value)
        found[side, COUNT] = count
        # Where no row must be taken, one is all the same: without, there would be no sum.
        found[side, SUM] = (best if count == 0.0 and best < 0.0 else fixed + above) + rounding * size
        level, gain, slack = best, 0.0, rounding * scale
        if count > 0.0:
            level = max(fixed / max(count, 1.0), (fixed + total) / (max(count, 1.0) + may))
            for _ in range(steps):
                taken, total = max(count, 1.0), fixed
                for each in range(sizes[side]):
                    if values[side, each] > level:
                        others = either[side, each] - must[side, each]
                        taken, total = taken + others, total + others * values[side, each]
                gain = max(total - level * taken, 0.0) / max(count, 1.0)
                if gain <= slack + close * (best - level):
                    break
                level = max(total / taken, level)
        found[side, MEAN] = min(level + gain, best) + slack
    return found


@compiled
def _sort_down(which: Integers, values: Floats) -> None:
    """Put positions in the order of their values, the highest first (Shell 1959; gaps of Knuth's)."""
    gap = 1
    while gap < which.size // 3:
        gap = 3 * gap + 1
    while gap:
        for at in range(gap, which.size):
            own, to = which[at], at
            while to >= gap and values[which[to - gap]] < values[own]:
                which[to] = which[to - gap]
                to -= gap
            which[to] = own
        gap //= 3


@compiled
def quantile(
    values: Floats,
    must: Floats,
    either: Floats,
    best: float,
    floor: float,
    share: float,
    needed: float,
    cells: int,
    least_width: float,
) -> float:
    """The value at which enough rows are reached, by cells of values first; 0 where there is none."""
    width = best - floor
    density = (cells - 1) / width if width > least_width else 0.0
    cell = np.empty(values.size, np.int64)
    musts, eithers = np.zeros(cells), np.zeros(cells)
    for each in range(values.size):
        place = min(max((best - values[each]) * density, 0.0), cells - 1.0)
        cell[each] = np.int64(place)
        musts[cell[each]] += must[each]
        eithers[cell[each]] += either[each]
    found, must_before, either_before = 0, 0.0, 0.0
    for each in range(cells):
        must_here, either_here = must_before + musts[each], either_before + eithers[each]
        if must_here + share * (either_here - must_here) > needed and either_here > 0.0:
            found = each
            break
        must_before, either_before = must_here, either_here
    else:
        must_before = either_before = 0.0
    inside, size = np.empty(values.size, np.int64), 0
    for each in range(values.size):
        if cell[each] == found and either[each] > 0.0:
            inside[size] = each
            size += 1
    _sort_down(inside[:size], values)
    for turn in range(size):
        each = inside[turn]
        must_before, either_before = must_before + must[each], either_before + either[each]
        if must_before + share * (either_before - must_before) > needed:
            return float(values[each])
    return 0.0
