"""Influences: what one row more would change a statistic by, and how far the statistic may be off by that.

The machine code of `estimate`, whose docstring tells what is computed. Paths are those in scope; `live` ones are those
of them that may satisfy the clause, at the positions `alive`.
"""

from __future__ import annotations

import numpy as np

from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Positions
from synopsis.sketch.scales import Codes

#: So many paths' worth of doubt: few paths that look alike are weighed up with how rows differ without the condition.
DOUBT = 1.0

#: Rows come in runs (an hour is like the next): within a bin squared errors are so many times larger than by chance.
RUNS = 4.0

#: Places that share bins lie apart within them: by this part of what it would be if all rows of a place were alike.
APART = 0.25

#: The part of a day that is in scope differs from the whole day by this, in standard deviations of the day's rows.
HOURS = 0.3

#: Features go together within their bins as well, which paths do not tell: the correlation that is allowed for.
TOGETHER = 0.5

#: All rows of a fine bin that a condition cuts may have one value: so much of what that would shift is allowed for.
LUMPS = 0.5

#: Products of distances have heavy tails, of which paths see too little: (co)variances are off by so much more.
TAILS = 1.4


@compiled
def _differing(reach: Floats, values: Floats) -> tuple[float, float]:
    """The squared error of a total, by how much neighbouring paths differ, and how many paths' word that is."""
    total = fourth = 0.0
    for path in range(1, values.size):
        step = values[path] - values[path - 1]
        square = reach[path] * (step * step)
        total += square
        fourth += square * square
    return total / 2, 3.0 * total * total / fourth if fourth > 0.0 else 0.0


@compiled
def _differing_alive(reach: Floats, alive: Positions, held: Floats, influence: Floats) -> tuple[float, float]:
    """The same of live paths' probability times their influence, with 0 for paths that are not alive."""
    total = fourth = before = 0.0
    last = -1  # the path that `before` is of
    for each in range(alive.size):
        path, value = alive[each], held[each] * influence[each]
        if path > last + 1:  # others in between
            if last >= 0:
                square = reach[last + 1] * (before * before)
                total, fourth = total + square, fourth + square * square
            before = 0.0
        if path:
            step = value - before
            square = reach[path] * (step * step)
            total, fourth = total + square, fourth + square * square
        before, last = value, path
    if 0 <= last < reach.size - 1:
        square = reach[last + 1] * (before * before)
        total, fourth = total + square, fourth + square * square
    return total / 2, 3.0 * total * total / fourth if fourth > 0.0 else 0.0


@compiled
def _in_bins(weight: Floats, noise: Floats, alive: Positions, place: Positions) -> float:
    """Squared error because nobody knows where in their bins rows lie, `noise` being the variance of each."""
    error = 0.0
    for each in range(weight.size):
        error += weight[each] * noise[each]
    error *= RUNS
    if place.size and weight.size:
        last = 0
        for path in range(place.size):
            last = max(last, place[path])
        by_place = np.zeros(last + 1)
        for each in range(weight.size):
            by_place[place[alive[each]]] += weight[each] * np.sqrt(noise[each])
        for each in range(last + 1):
            error += APART * (by_place[each] * by_place[each])
    return error


@compiled
def _of_hours(weight: Floats, influence: Floats, alive: Positions, part: Floats) -> float:
    """Squared error because nobody knows which rows of a cut day are in scope."""
    total = square = 0.0
    if part.size:
        for each in range(weight.size):
            own = part[alive[each]]
            if own < 1.0:
                size = weight[each] * np.sqrt(1.0 / own - 1.0)
                total += size
                square += size * (influence[each] * influence[each])
    return HOURS * HOURS * total * square / 2


@compiled
def _square(
    influence: Floats,
    noise: Floats,
    usual: float,
    chosen: float,
    reach: Floats,
    uncovered: Floats,
    alive: Positions,
    stratum: Positions,
    weight: Floats,
    held: Floats,
    worth: float,
    once: Floats,
    twice: Floats,
    lumps: Floats,
    part: Floats,
    place: Positions,
) -> tuple[float, float]:
    """The squared error of a statistic, and the part of it that comes from the choice of paths.

    `chosen` is that part as paths alone tell, `usual` the mean square of influences without the condition.
    """
    mean, rest = np.empty(alive.size), np.empty(alive.size)
    reaching = both = apart = 0.0
    for each in range(alive.size):
        own = reach[alive[each]]
        if uncovered.size:
            own *= uncovered[stratum[each]]
        mean[each] = held[each] * influence[each]
        open_part = held[each] * (noise[each] + influence[each] * influence[each]) - mean[each] * mean[each]
        rest[each] = max(open_part, 0.0)
        reaching += own * (held[each] * held[each])
        if once.size:
            both += weight[each] * (twice[each] * influence[each])
            apart += weight[each] * (once[each] * np.sqrt(noise[each]))
    chosen = (worth * chosen + DOUBT * usual * reaching) / (worth + DOUBT)
    square = chosen + _in_bins(weight, rest, alive, place) + _of_hours(weight, mean, alive, part)
    square += (TOGETHER * (abs(both) + apart)) ** 2
    for cut in range(lumps.shape[0]):
        moved = 0.0
        for each in range(alive.size):
            moved += lumps[cut, each] * influence[each]
        square += LUMPS * LUMPS * moved * moved
    return square, chosen


@compiled
def _of_paths(
    influence: Floats,
    noise: Floats,
    usual: float,
    reach: Floats,
    alive: Positions,
    stratum: Positions,
    weight: Floats,
    held: Floats,
    worth: float,
    once: Floats,
    twice: Floats,
    lumps: Floats,
    part: Floats,
    place: Positions,
) -> tuple[float, float, float]:
    """Squared error, the part of it that comes from the choice of paths, and degrees of freedom."""
    found, freedom = _differing_alive(reach, alive, held, influence)
    live = (alive, stratum, weight, held, worth, once, twice, lumps, part, place)
    square, chosen = _square(influence, noise, usual, found, reach, np.empty(0), *live)
    return square, chosen, freedom


#: Statistics of numbers in bins.
AVERAGE, TOTAL, VARIANCE, QUANTILE = range(4)


@compiled
def _by_bin(
    statistic: int, rank: float, left: Floats, tables: Floats, count: float, average: float, variance: float
) -> tuple[Floats, Floats]:
    """Bins: what a row in them would change a statistic by, and the variance of that within the bin.

    Of a quantile it takes its rank, and the part of each bin that is left of it.
    """
    strata, bins = tables.shape[1], tables.shape[2]
    influence, spread = np.empty((strata, bins)), np.empty((strata, bins))
    for number in range(strata):
        for each in range(bins):
            value, own = tables[1, number, each], tables[2, number, each]
            if statistic == AVERAGE:
                influence[number, each], spread[number, each] = (value - average) / count, own / count**2
            elif statistic == TOTAL:
                influence[number, each], spread[number, each] = value, own
            elif statistic == VARIANCE:
                away = (value - average) * (value - average)
                influence[number, each] = TAILS * (away + own - variance) / count
                spread[number, each] = (4 * away * own + 2 * own * own) / count**2
            else:
                below = left[number, each]
                influence[number, each], spread[number, each] = (rank - below) / count, below * (1 - below) / count**2
    return influence, spread


@compiled
def of_numbers(
    statistic: int,
    rank: float,
    left: Floats,
    tables: Floats,
    count: float,
    average: float,
    variance: float,
    expected: Floats,
    codes: Codes,
    column: Positions,
    luck_column: Positions,
    luck_stratum: Positions,
    luck_reach: Floats,
    untouched: Floats,
    uncovered: Floats,
    reach: Floats,
    alive: Positions,
    stratum: Positions,
    weight: Floats,
    held: Floats,
    worth: float,
    once: Floats,
    twice: Floats,
    lumps: Floats,
    part: Floats,
    place: Positions,
) -> tuple[float, float, float, float]:
    """Of a statistic of numbers in bins: squared error, the part that comes from the choice, freedom, and skew.

    Where counts of bins are exact, they are given as `untouched`, and with them what is not covered of each stratum;
    the skew is what bins below nothing were cut off for.
    """
    influences, noises = _by_bin(statistic, rank, left, tables, count, average, variance)
    usual = total = skew = 0.0
    for number in range(influences.shape[0]):
        for each in range(influences.shape[1]):
            own = expected[number, each] * tables[0, number, each]
            total += own
            usual += own * (influences[number, each] ** 2 + noises[number, each])
            if untouched.size:
                skew += min(untouched[number, each], 0.0) * tables[0, number, each] * influences[number, each]
    usual = usual / total if total > 0.0 else 0.0
    influence, noise = np.zeros(column.size), np.zeros(column.size)
    for path in range(column.size):
        code = codes[column[path]]
        if code < influences.shape[1]:
            influence[path], noise[path] = influences[stratum[path], code], noises[stratum[path], code]
    if untouched.size:
        values = np.zeros(luck_column.size)
        for path in range(luck_column.size):
            number, code = luck_stratum[path], codes[luck_column[path]]
            if code < influences.shape[1]:
                values[path] = influences[number, code] * tables[0, number, code]
        found, freedom = _differing(luck_reach, values)
    else:
        found, freedom = _differing_alive(reach, alive, held, influence)
    live = (alive, stratum, weight, held, worth, once, twice, lumps, part, place)
    square, chosen = _square(influence, noise, usual, found, reach, uncovered, *live)
    return square, chosen, freedom, skew


@compiled
def of_count(
    met: Floats,
    met_reach: Floats,
    held: Floats,
    weight: Floats,
    rate: float,
    part: Floats,
    place: Positions,
    live_weight: Floats,
    twice: Floats,
    lumps: Floats,
) -> tuple[float, float, float]:
    """Of a count: squared errors by the choice of paths and by all else of paths, and the sum of their reach."""
    chosen, _ = _differing(met_reach, met)
    everyone, away, noise = np.empty(held.size, np.int32), np.empty(held.size), np.empty(held.size)
    for path in range(held.size):
        everyone[path], away[path], noise[path] = path, held[path] - rate, held[path] * (1.0 - held[path])
    rest = _in_bins(weight, noise, everyone, place) + _of_hours(weight, away, everyone, part)
    both = reach = 0.0
    for path in range(twice.size):
        both += live_weight[path] * twice[path]
    rest += (TOGETHER * both) ** 2
    for cut in range(lumps.shape[0]):
        moved = 0.0
        for path in range(lumps.shape[1]):
            moved += lumps[cut, path]
        rest += (LUMPS * moved) ** 2
    for path in range(met_reach.size):
        reach += met_reach[path]
    return chosen, rest, reach


@compiled
def reaches(weight: Floats, part: Floats) -> Floats:
    """Paths: by how much the squared error grows for each unit of difference between neighbouring paths."""
    reach = np.empty(weight.size)
    for path in range(weight.size):
        reach[path] = max(weight[path] * (weight[path] - (part[path] if part.size else 1.0)), 0.0)
    return reach


@compiled
def paired(
    codes_x: Codes,
    codes_y: Codes,
    column: Positions,
    stratum: Positions,
    mass: Floats,
    mean_x: Floats,
    mean_y: Floats,
    noise_x: Floats,
    noise_y: Floats,
    average_x: float,
    average_y: float,
) -> tuple[Floats, Floats]:
    """Two features where both are present: total, covariance, variances, the parts within bins, and means.

    Then paths: both distances from the means, both variances within bins, and whether both features are present.
    """
    bins, size, origin = mean_x.shape[1], column.size, -1
    paths, found = np.zeros((5, size)), np.full(8, np.nan)
    total = mx = my = xx = yy = xy = s = t = 0.0
    for path in range(size):
        one, two, number = codes_x[column[path]], codes_y[column[path]], stratum[path]
        if one < bins:
            paths[0, path], paths[2, path] = mean_x[number, one] - average_x, noise_x[number, one]
        if two < bins:
            paths[1, path], paths[3, path] = mean_y[number, two] - average_y, noise_y[number, two]
        if one < bins and two < bins:
            origin = path if origin < 0 else origin
            paths[4, path], weight = 1.0, mass[path]
            total += weight
            # From the first one on: where all are alike, they do not differ by as little as rounding either.
            mx += weight * (paths[0, path] - paths[0, origin])
            my += weight * (paths[1, path] - paths[1, origin])
            s, t = s + weight * paths[2, path], t + weight * paths[3, path]
    found[0] = total
    if total > 0.0:
        mx, my, s, t = paths[0, origin] + mx / total, paths[1, origin] + my / total, s / total, t / total
        for path in range(size):
            paths[0, path] -= mx
            paths[1, path] -= my
            x, y, weight = paths[0, path], paths[1, path], mass[path] * paths[4, path]
            xx, yy, xy = xx + weight * x * x, yy + weight * y * y, xy + weight * x * y
        found[1], found[2], found[3] = xy / total, xx / total + s, yy / total + t
        found[4], found[5], found[6], found[7] = s, t, average_x + mx, average_y + my
    return found, paths


@compiled
def of_correlation(
    paths: Floats,
    r: float,
    one: float,
    two: float,
    total: float,
    reach: Floats,
    alive: Positions,
    stratum: Positions,
    weight: Floats,
    held: Floats,
    worth: float,
    once: Floats,
    twice: Floats,
    lumps: Floats,
    part: Floats,
    place: Positions,
) -> tuple[float, float, float]:
    """Of a correlation, given variances and rows: squared error, the part that comes from the choice, freedom."""
    influence, noise = np.empty(alive.size), np.empty(alive.size)
    for path in range(alive.size):
        x, y = paths[0, path] / np.sqrt(one), paths[1, path] / np.sqrt(two)
        vx, vy, present = paths[2, path] / one, paths[3, path] / two, paths[4, path]
        influence[path] = (x * y - r * (x * x + vx + y * y + vy) / 2) * present / total
        noise[path] = (vx * (y - r * x) ** 2 + vy * (x - r * y) ** 2 + vx * vy) * present / total**2
    usual = (1.0 - r * r) ** 2 / total**2
    live = (alive, stratum, weight, held, worth, once, twice, lumps, part, place)
    return _of_paths(influence, noise, usual, reach, *live)


@compiled
def of_covariance(
    paths: Floats,
    covariance: float,
    one: float,
    two: float,
    total: float,
    reach: Floats,
    alive: Positions,
    stratum: Positions,
    weight: Floats,
    held: Floats,
    worth: float,
    once: Floats,
    twice: Floats,
    lumps: Floats,
    part: Floats,
    place: Positions,
) -> tuple[float, float, float]:
    """The same of a covariance."""
    influence, noise = np.empty(alive.size), np.empty(alive.size)
    for path in range(alive.size):
        x, y, vx, vy, present = paths[0, path], paths[1, path], paths[2, path], paths[3, path], paths[4, path]
        influence[path] = TAILS * (x * y - covariance) * present / total
        noise[path] = (vx * y * y + vy * x * x + vx * vy) * present / total**2
    live = (alive, stratum, weight, held, worth, once, twice, lumps, part, place)
    return _of_paths(influence, noise, one * two / total**2, reach, *live)
