"""Arrangements: rows of strata taken bin by bin, from the best to the worst, where all counts are exact.

The machine code of `strata`, for one group and counts that are known: its docstring tells what is computed, and its
NumPy, which serves all other cases, is the oracle. Bins x strata, as there.
"""

from __future__ import annotations

import numpy as np

from synopsis.query.sides import CELLS, CLOSE_ENOUGH, MOST_STEPS, NO_WIDTH, ROUNDING, ROUNDING_OF_RANKS
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import Flags

#: Facts of a side, by position.
BEST, WORST, COUNT, SUM, MEAN, EITHER = range(6)


@compiled
def _ends(starts: Codes, stops: Codes, stratum: int, each: int, edges: Floats, ends: Floats) -> tuple[float, float]:
    """The least and the greatest value of a bin, 0 where it is not used.

    Fine bins lie between edges, from the lowest value to the highest, which are the `ends`.
    """
    begin, end = int(starts[stratum, each]), int(stops[stratum, each])
    if end <= begin:
        return 0.0, 0.0
    first, last = min(begin, edges.size), min(end, edges.size + 1) - 1
    low = max(edges[first - 1], ends[0]) if first else ends[0]
    # No value of a bin is as high as the edge above it, but none of its highest fine bin is below that.
    above = min(np.nextafter(edges[last], -np.inf), ends[1]) if last < edges.size else ends[1]
    return low, max(above, max(edges[last - 1], ends[0]) if last else ends[0])


@compiled
def binned(
    starts: Codes, stops: Codes, counts: Integers, chosen: Integers, edges: Floats, ends: Floats
) -> tuple[Floats, Floats, Floats]:
    """Bins x chosen strata: counts (absent last), and the least and the greatest value of each bin; 0 where it is not
    used.

    `starts`, `stops` and `counts` are strata x bins.
    """
    strata, bins = chosen.size, starts.shape[1]
    rows, low, high = np.empty((bins + 1, strata)), np.zeros((bins, strata)), np.zeros((bins, strata))
    for to in range(strata):
        for each in range(bins):
            rows[each, to] = counts[chosen[to], each]
            low[each, to], high[each, to] = _ends(starts, stops, chosen[to], each, edges, ends)
        rows[bins, to] = counts[chosen[to], bins]
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
def _hold(
    counts: Floats,
    absent: Floats,
    low: Floats,
    high: Floats,
    ranges: Floats,
    nulls: bool,
    total: Floats,
    least: Floats,
    most: Floats,
) -> None:
    """Write down for how many rows of each stratum a leaf holds, at least and at most."""
    bins, strata = low.shape
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


@compiled
def held_by_leaf(
    counts: Floats, absent: Floats, low: Floats, high: Floats, ranges: Floats, nulls: bool, total: Floats
) -> tuple[Floats, Floats]:
    """For how many rows of each stratum a leaf holds, at least and at most."""
    least, most = np.empty(total.size), np.empty(total.size)
    _hold(counts, absent, low, high, ranges, nulls, total, least, most)
    return least, most


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
def facts(values: Floats, must: Floats, either: Floats, sizes: Integers) -> Floats:
    """Sides x facts: upper bounds, as `sides` has them."""
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
        found[side, SUM] = (best if count == 0.0 and best < 0.0 else fixed + above) + ROUNDING * size
        level, gain, slack = best, 0.0, ROUNDING * scale
        if count > 0.0:
            level = max(fixed / max(count, 1.0), (fixed + total) / (max(count, 1.0) + may))
            for _ in range(MOST_STEPS):
                taken, total = max(count, 1.0), fixed
                for each in range(sizes[side]):
                    if values[side, each] > level:
                        others = either[side, each] - must[side, each]
                        taken, total = taken + others, total + others * values[side, each]
                gain = max(total - level * taken, 0.0) / max(count, 1.0)
                if gain <= slack + CLOSE_ENOUGH * (best - level):
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
def _level(
    values: Floats,
    must: Floats,
    either: Floats,
    best: float,
    floor: float,
    share: float,
    needed: float,
) -> float:
    """The value at which enough rows are reached, by cells of values first; 0 where there is none."""
    width, cells = best - floor, CELLS
    density = (cells - 1) / width if width > NO_WIDTH else 0.0
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


@compiled
def quantile(values: Floats, must: Floats, either: Floats, sizes: Integers, facts: Floats, share: float) -> Floats:
    """Between which values a quantile lies, as `sides` has it."""
    ends = np.empty(2)
    for side in range(2):
        size, best, floor = sizes[side], facts[side, BEST], -facts[1 - side, BEST]
        below, above = (share, 1.0 - share) if side else (1.0 - share, share)
        needed = above * (facts[side, COUNT] - 1.0)
        level = _level(values[side, :size], must[side, :size], either[side, :size], best, floor, below, needed)
        level = level + ROUNDING * abs(level) + ROUNDING_OF_RANKS * facts[side, EITHER] * (best - floor)
        ends[side] = min(level, best)
    ends[0] = 0.0 - ends[0]
    return ends


# --- a whole condition ------------------------------------------------------------------------------------------------


@compiled
def _clause(
    steps: Integers, least: Floats, most: Floats, total: float, low: Floats, high: Floats
) -> tuple[float, float]:
    """For how many rows of a stratum a clause holds, given for how many each leaf does (Fréchet 1935)."""
    top = 0
    for step in steps:
        if step >= 0:
            low[top], high[top] = least[step], most[step]
            top += 1
            continue
        parts, is_all = (-step - 1) >> 1, (-step - 1) & 1 == 0
        top -= parts
        refused, fewest, sure, may_be = 0.0, total, 0.0, 0.0
        for part in range(top, top + parts):
            refused, fewest = refused + (total - low[part]), min(fewest, high[part])
            sure, may_be = max(sure, low[part]), may_be + high[part]
        low[top] = max(total - refused, 0.0) if is_all else sure
        high[top] = fewest if is_all else min(may_be, total)
        top += 1
    return low[0], high[0]


#: Facts of the whole, by position: rows at least and at most, values at least and at most.
ROWS_LOW, ROWS_HIGH, VALUES_LOW, VALUES_HIGH = range(4)


@compiled
def selected(
    steps: Integers,
    others: Integers,
    own: int,
    reach: int,
    leaf_features: Integers,
    leaf_offset: Integers,
    leaf_ranges: Floats,
    leaf_nulls: Flags,
    starts: Codes,
    stops: Codes,
    counts: Integers,
    features: Integers,
    chosen: Integers,
    total: Integers,
    inside: Integers,
    cut: Integers,
    edges: Floats,
    edge_sizes: Integers,
    ends: Floats,
) -> tuple[Floats, Floats, tuple[Floats, Floats, Floats, Integers]]:
    """Of the rows of one group that a clause selects, and of a feature's values in them: facts of the whole, facts of
    both sides, and these as `arranged`.

    The clause is given as `programs.Demands`. Where it knows no feature, rows are all that is counted.
    """
    strata, bins, leaves = chosen.size, starts.shape[2], leaf_features.size
    position = np.empty(leaves, np.int64)
    for leaf in range(leaves):
        for each in range(features.size):
            if features[each] == leaf_features[leaf]:
                position[leaf] = each
    all_rows, least, most = np.empty(strata), np.empty((leaves, strata)), np.empty((leaves, strata))
    for to in range(strata):
        all_rows[to] = total[to]
    place = position[own] if own >= 0 else -1
    rows, low, high = np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0))
    for row in range(features.size):
        numbers, lows, highs = np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0))
        for leaf in range(leaves):
            if position[leaf] != row:
                continue
            if not numbers.size:
                known = edges[features[row], : edge_sizes[features[row]]]
                numbers, lows, highs = binned(starts[row], stops[row], counts[row], chosen, known, ends[features[row]])
                if row == place:
                    rows, low, high = numbers, lows, highs
            ranges = leaf_ranges[leaf_offset[leaf] : leaf_offset[leaf + 1]]
            held = (numbers, numbers[bins], lows, highs, ranges, leaf_nulls[leaf], all_rows)
            _hold(*held, least[leaf], most[leaf])
    whole, size = np.zeros(4), max(steps.size, others.size)
    stack_low, stack_high = np.empty(size), np.empty(size)
    others_least, others_most = np.empty(strata), np.empty(strata)
    for to in range(strata):
        low_here, high_here = _clause(steps, least[:, to], most[:, to], all_rows[to], stack_low, stack_high)
        whole[ROWS_LOW] += max(inside[to] + low_here - all_rows[to], 0.0)
        whole[ROWS_HIGH] += min(inside[to] + cut[to], high_here)
        if own >= 0:
            others_least[to], others_most[to] = _clause(
                others, least[:, to], most[:, to], all_rows[to], stack_low, stack_high
            )
    sides = (np.empty((2, 0)), np.empty((2, 0)), np.empty((2, 0)), np.zeros(2, np.int64))
    if own < 0:
        return whole, np.empty((2, 0)), sides
    refused, fewest, largest = left(all_rows, inside, cut, least[own], most[reach], others_least, others_most)
    for to in range(strata):
        whole[VALUES_LOW] += fewest[to]
        whole[VALUES_HIGH] += largest[to]
    if whole[VALUES_HIGH] == 0.0:
        return whole, np.empty((2, 0)), sides
    ranges = leaf_ranges[leaf_offset[reach] : leaf_offset[reach + 1]]
    sides = arranged(rows, low, high, ranges, refused, fewest, largest)
    return whole, facts(*sides), sides
