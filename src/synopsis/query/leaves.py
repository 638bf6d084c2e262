"""Leaves: an AND of conditions on single features, laid out as machine code takes it.

What `telling.clause_of` and `programs.demands_of` make of any clause, in one call for the clauses that most are. They
are the oracle, with what they call on the mass axis: `bins.on_axis`, `bins.cuts_of` and `MassAxis.below`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synopsis.query.influences import LUMPS
from synopsis.query.programs import ALL
from synopsis.sketch.compiled import compiled
from synopsis.sketch.mass import LAST_DIGITS, NEAR, SAME
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Flags


@compiled
def _first(numbers: Floats, size: int, number: float, behind: bool) -> int:
    """How many of so many ascending numbers are less than a number, or not greater where it is to stand behind them."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < number or (behind and numbers[middle] == number):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _below(lows: Floats, highs: Floats, mass: Floats, size: int, value: float, included: bool) -> float:
    """`MassAxis.below`."""
    code, slack = _first(highs, size, value, False), SAME * abs(value)
    is_between = code == size or value < lows[code]
    if is_between and code and lows[code - 1] == highs[code - 1] and highs[code - 1] >= value - slack:
        code -= 1
    code = min(code, size - 1)
    low, high = lows[code], highs[code]
    if low == high:
        digit = np.nextafter(abs(low), np.inf) - abs(low)
        is_near = LAST_DIGITS * digit < abs(value - low) and abs(value - low) <= slack
        part = 1.0 if (included if is_near or value == low else value > low) else 0.0
    else:
        part = min(max((value - low) / (high - low), 0.0), 1.0)
    return float(mass[code] + part * (mass[code + 1] - mass[code]))


@compiled
def _lowest_step(low: float, step: float, is_beyond: bool) -> float:
    """`bins._lowest_step`."""
    steps = low / step
    if not np.isfinite(steps):
        return steps
    nearest = np.rint(steps)
    if abs(steps - nearest) > NEAR:
        return float(np.ceil(steps))
    return float(nearest + (1.0 if is_beyond else 0.0))


@compiled
def on_axis(ranges: Floats, beyond: Flags, lows: Floats, highs: Floats, mass: Floats, size: int, step: float) -> Floats:
    """`bins.on_axis`: closed ranges of values as ranges of the mass axis.

    `beyond` says of both ends of each whether it is meant to leave out the number next to it.
    """
    found, to = np.empty((ranges.shape[0], 2)), 0
    for each in range(ranges.shape[0]):
        low, high = ranges[each, 0], ranges[each, 1]
        if low == -np.inf and high == np.inf and ranges.shape[0] == 1:
            found[0, 0], found[0, 1] = 0.0, mass[size]
            return found
        if step:
            low = (_lowest_step(low, step, beyond[each, 0]) - 0.5) * step
            high = (-_lowest_step(-high, step, beyond[each, 1]) + 0.5) * step
            begin = _below(lows, highs, mass, size, low, False)
            end = _below(lows, highs, mass, size, high, True)
        else:
            low = np.nextafter(low, -np.inf) if beyond[each, 0] else low
            high = np.nextafter(high, np.inf) if beyond[each, 1] else high
            begin = _below(lows, highs, mass, size, low, beyond[each, 0])
            end = _below(lows, highs, mass, size, high, not beyond[each, 1])
        if end > begin:
            found[to, 0], found[to, 1] = begin, end
            to += 1
    return found[:to]


@compiled
def _left_open(low: float, high: float, mean: float, step: float, part: float) -> float:
    """`bins._left_open`."""
    reach = max(min(mean - low, high - mean), step / 2)
    value = low + part * (high - low)
    near = 1.0 if value > mean else 0.0
    if reach > 0:
        near = min(max((value - mean + reach) / (2 * reach), 0.0), 1.0)
    return float(max(np.sqrt(part * (1.0 - part)), abs(part - near) / LUMPS))


@compiled
def _cuts(
    leaf: int,
    ranges: Floats,
    axis: Floats,
    lows: Floats,
    highs: Floats,
    mass: Floats,
    first: Floats,
    size: int,
    step: float,
    found: Floats,
    to: int,
) -> int:
    """`bins.cuts_of`, written down behind those that are known, with the leaf that they are of; how many there are."""
    ends = axis.ravel()
    for each in range(ends.size):
        end, is_new = ends[each], True
        for before in range(each):
            is_new = is_new and ends[before] != end
        code = _first(mass, size + 1, end, True) - 1
        if is_new and 0 <= code < size and mass[code] < end:
            begin, after = mass[code], mass[code + 1]
            mean = (first[code + 1] - first[code]) / (after - begin)
            left_open = _left_open(lows[code], highs[code], mean, step, (end - begin) / (after - begin))
            if left_open > NEAR:
                found[to, 0], found[to, 1], found[to, 2], found[to, 3] = leaf, begin, after, left_open
                to += 1
    is_everything = ranges.shape[0] == 1 and ranges[0, 0] == -np.inf and ranges[0, 1] == np.inf
    if not step or is_everything:
        return to
    for each in range(ranges.shape[0]):
        for side in range(2):
            value, sign = ranges[each, side], -1.0 if side else 1.0
            steps = value / step
            if not np.isfinite(steps) or abs(steps - np.rint(steps)) <= NEAR:
                continue
            edge = sign * (np.ceil(sign * steps) - 0.5) * step
            end = _below(lows, highs, mass, size, edge, sign < 0)
            code = _first(mass, size + 1, end, sign > 0) - 1
            if 0 <= code < size:
                wide = max(highs[code] - lows[code], step)
                left_open = min(abs(edge - value) / wide, 1.0) / LUMPS
                found[to, 0], found[to, 1], found[to, 2], found[to, 3] = leaf, mass[code], mass[code + 1], left_open
                to += 1
    return to


@compiled
def _steps(features: Integers, without: int) -> Integers:
    """The steps of an AND of leaves but for those of one feature."""
    found, to = np.empty(features.size + 1, np.int64), 0
    for leaf in range(features.size):
        if features[leaf] != without:
            found[to] = leaf
            to += 1
    if to != 1:
        found[to] = ALL - 2 * to
        to += 1
    return found[:to]


@compiled
def _left(
    feature: int,
    features: Integers,
    offset: Integers,
    ranges: Floats,
    beyond: Flags,
) -> tuple[Floats, Flags]:
    """The ranges that leaves leave of a feature, and of their ends whether each is meant to leave out the next."""
    for leaf in range(features.size):
        if features[leaf] == feature:
            return ranges[offset[leaf] : offset[leaf + 1]], beyond[offset[leaf] : offset[leaf + 1]]
    everywhere, neither = np.empty((1, 2)), np.empty((1, 2), np.bool_)
    everywhere[0, 0], everywhere[0, 1] = -np.inf, np.inf
    neither[0, 0] = neither[0, 1] = False
    return everywhere, neither


@compiled
def laid_out(
    features: Integers,
    nulls: Flags,
    offset: Integers,
    ranges: Floats,
    beyond: Flags,
    one: int,
    two: int,
    # mass axes
    mass: Floats,
    sizes: Integers,
    low: Floats,
    high: Floats,
    totals: Floats,
    step: Floats,
) -> tuple[Any, ...]:
    """What `clause_of` has of leaves but for its first, then what `demands_of` has. No two leaves are of one feature.

    Leaves: the feature of each, whether it may be absent, and where its ranges begin. Statistics are of the feature
    `one`, and `two` is what it correlates with, if not negative. Cost: in proportion to the ends of ranges, and the
    logarithm of fine bins.
    """
    leaves = features.size
    cuts, size = np.empty((4 * ranges.shape[0], 4)), 0
    on_axes, axis_offset, axis_size = np.empty((ranges.shape[0], 2)), np.zeros(leaves + 1, np.int64), 0
    demanded = np.empty(leaves, np.int64)
    for leaf in range(leaves):
        feature, own = features[leaf], ranges[offset[leaf] : offset[leaf + 1]]
        known = (low[feature], high[feature], mass[feature])
        axis = on_axis(own, beyond[offset[leaf] : offset[leaf + 1]], *known, sizes[feature], step[feature])
        for each in range(axis.shape[0]):
            on_axes[axis_size, 0], on_axes[axis_size, 1] = axis[each, 0], axis[each, 1]
            axis_size += 1
        axis_offset[leaf + 1], demanded[leaf] = axis_size, leaf
        size = _cuts(leaf, own, axis, *known, totals[feature, 0], sizes[feature], step[feature], cuts, size)
    own, own_beyond = _left(one, features, offset, ranges, beyond)
    one_axis = on_axis(own, own_beyond, low[one], high[one], mass[one], sizes[one], step[one])
    lowest, highest = (own[0, 0], own[own.shape[0] - 1, 1]) if own.shape[0] else (-np.inf, np.inf)
    two_axis, two_steps = np.empty((0, 2)), np.empty(0, np.int64)
    if two >= 0:
        other, other_beyond = _left(two, features, offset, ranges, beyond)
        two_axis = on_axis(other, other_beyond, low[two], high[two], mass[two], sizes[two], step[two])
        two_steps = _steps(features, two)
    steps, one_steps = _steps(features, -1), _steps(features, one)
    # What the feature itself must fulfil, present, is one of the leaves or one more.
    at = leaves
    for leaf in range(leaves):
        if features[leaf] == one and not nulls[leaf]:
            at = leaf
    more = leaves + (1 if at == leaves else 0)
    all_features, all_nulls = np.empty(more, np.int64), np.empty(more, np.bool_)
    all_offset = np.zeros(more + 1, np.int64)
    all_ranges = np.empty((ranges.shape[0] + (own.shape[0] if at == leaves else 0), 2))
    for leaf in range(leaves):
        all_features[leaf], all_nulls[leaf], all_offset[leaf + 1] = features[leaf], nulls[leaf], offset[leaf + 1]
    for each in range(ranges.shape[0]):
        all_ranges[each, 0], all_ranges[each, 1] = ranges[each, 0], ranges[each, 1]
    if at == leaves:
        all_features[at], all_nulls[at], all_offset[at + 1] = one, False, all_ranges.shape[0]
        for each in range(own.shape[0]):
            all_ranges[ranges.shape[0] + each, 0] = own[each, 0]
            all_ranges[ranges.shape[0] + each, 1] = own[each, 1]
    clause = (
        steps[: steps.size if leaves else 0],
        demanded,
        features,
        nulls,
        axis_offset,
        on_axes[:axis_size],
        cuts[:size],
        one,
        one_steps,
        one_axis,
        lowest,
        highest,
        two,
        two_steps,
        two_axis,
        one < two,
    )
    return clause, (steps, one_steps, at, at, all_features, all_offset, all_ranges, all_nulls)
