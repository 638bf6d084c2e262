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
def _places(place: Positions) -> int:
    """How many places to count by, if any."""
    places = 0
    for path in range(place.size):
        places = max(places, place[path] + 1)
    return places


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
    reaching = both = apart = in_bins = hours = hours_square = 0.0
    by_place, moved = np.zeros(_places(place)), np.zeros(lumps.shape[0])
    for each in range(alive.size):
        path, mean = alive[each], held[each] * influence[each]
        open_part = held[each] * (noise[each] + influence[each] * influence[each]) - mean * mean
        rest = max(open_part, 0.0)
        reaching += (reach[path] * uncovered[stratum[each]] if uncovered.size else reach[path]) * (
            held[each] * held[each]
        )
        in_bins += weight[each] * rest
        if place.size:
            by_place[place[path]] += weight[each] * np.sqrt(rest)
        if part.size and part[path] < 1.0:
            size = weight[each] * np.sqrt(1.0 / part[path] - 1.0)
            hours, hours_square = hours + size, hours_square + size * (mean * mean)
        if once.size:
            both += weight[each] * (twice[each] * influence[each])
            apart += weight[each] * (once[each] * np.sqrt(noise[each]))
        for cut in range(moved.size):
            moved[cut] += lumps[cut, each] * influence[each]
    chosen = (worth * chosen + DOUBT * usual * reaching) / (worth + DOUBT)
    square = chosen + RUNS * in_bins + HOURS * HOURS * hours * hours_square / 2
    square += (TOGETHER * (abs(both) + apart)) ** 2
    for each in range(by_place.size):
        square += APART * (by_place[each] * by_place[each])
    for cut in range(moved.size):
        square += LUMPS * LUMPS * moved[cut] * moved[cut]
    return square, chosen


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
    is_leaf: bool,
    met: Floats,
    met_reach: Floats,
    alive: Positions,
    weight: Floats,
    held: Floats,
    twice: Floats,
    rate: float,
    all_weight: Floats,
    part: Floats,
    place: Positions,
    lumps: Floats,
) -> tuple[float, float, float]:
    """Of a count: squared errors by the choice of paths and by all else of paths, and the sum of their reach.

    Where the clause is one leaf, the choice is that of the paths that were `met` and of their reach; otherwise that of
    all paths.
    """
    if is_leaf:
        chosen, _ = _differing(met_reach, met)
    else:
        chosen, _ = _differing_alive(met_reach, alive, held, np.ones(alive.size))
    in_bins = hours = hours_square = both = reach = 0.0
    by_place = np.zeros(_places(place))
    for each in range(alive.size):
        noise = held[each] * (1.0 - held[each])
        in_bins += weight[each] * noise
        both += weight[each] * twice[each]
        if place.size:
            by_place[place[alive[each]]] += weight[each] * np.sqrt(noise)
    at = 0
    for path in range(part.size):
        own = 0.0
        if at < alive.size and alive[at] == path:
            own = held[at]
            at += 1
        if part[path] < 1.0:
            size, away = all_weight[path] * np.sqrt(1.0 / part[path] - 1.0), own - rate
            hours, hours_square = hours + size, hours_square + size * (away * away)
    rest = RUNS * in_bins + HOURS * HOURS * hours * hours_square / 2 + (TOGETHER * both) ** 2
    for each in range(by_place.size):
        rest += APART * (by_place[each] * by_place[each])
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
def _both(
    codes_x: Codes,
    codes_y: Codes,
    column: int,
    stratum: int,
    tables_x: Floats,
    tables_y: Floats,
    middle: tuple[float, float, float, float],
) -> tuple[bool, float, float, float, float]:
    """Of a path: whether it has both features, their distances from the middle, and their variances within bins."""
    one, two = codes_x[column], codes_y[column]
    if one >= tables_x.shape[2] or two >= tables_y.shape[2]:
        return False, 0.0, 0.0, 0.0, 0.0
    x = tables_x[1, stratum, one] - middle[0] - middle[2]
    y = tables_y[1, stratum, two] - middle[1] - middle[3]
    return True, x, y, tables_x[2, stratum, one], tables_y[2, stratum, two]


@compiled
def paired(
    codes_x: Codes,
    codes_y: Codes,
    tables_x: Floats,
    tables_y: Floats,
    average_x: float,
    average_y: float,
    column: Positions,
    stratum: Positions,
    mass: Floats,
) -> Floats:
    """Two features where both are present: total, covariance, variances, the parts of these within bins.

    And by how much the means of these rows are above those of all: averages and these make the middle of `_both`.
    """
    found, origin_x, origin_y, seen = np.full(8, np.nan), 0.0, 0.0, False
    total = mx = my = xx = yy = xy = s = t = 0.0
    middle = (average_x, average_y, 0.0, 0.0)
    for path in range(column.size):
        present, x, y, vx, vy = _both(codes_x, codes_y, column[path], stratum[path], tables_x, tables_y, middle)
        if present:
            if not seen:
                seen, origin_x, origin_y = True, x, y
            # From the first one on: where all are alike, they do not differ by as little as rounding either.
            total += mass[path]
            mx, my = mx + mass[path] * (x - origin_x), my + mass[path] * (y - origin_y)
            s, t = s + mass[path] * vx, t + mass[path] * vy
    found[0] = total
    if not total > 0.0:
        return found
    middle = (average_x, average_y, origin_x + mx / total, origin_y + my / total)
    for path in range(column.size):
        present, x, y, vx, vy = _both(codes_x, codes_y, column[path], stratum[path], tables_x, tables_y, middle)
        if present:
            xx, yy, xy = xx + mass[path] * x * x, yy + mass[path] * y * y, xy + mass[path] * x * y
    found[1], found[2], found[3] = xy / total, xx / total + s / total, yy / total + t / total
    found[4], found[5], found[6], found[7] = s / total, t / total, middle[2], middle[3]
    return found


@compiled
def of_pair(
    r: float,
    found: Floats,
    codes_x: Codes,
    codes_y: Codes,
    tables_x: Floats,
    tables_y: Floats,
    average_x: float,
    average_y: float,
    column: Positions,
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
    """Of a correlation r, or of a covariance where r is NaN, given what was `paired`.

    Squared error, the part of it that comes from the choice of paths, and degrees of freedom.
    """
    influence, noise = np.zeros(alive.size), np.zeros(alive.size)
    total, covariance, one, two = found[0], found[1], found[2], found[3]
    middle = (average_x, average_y, found[6], found[7])
    for path in range(alive.size):
        present, x, y, vx, vy = _both(codes_x, codes_y, column[path], stratum[path], tables_x, tables_y, middle)
        if not present:
            continue
        if np.isnan(r):
            influence[path] = TAILS * (x * y - covariance) / total
            noise[path] = (vx * y * y + vy * x * x + vx * vy) / total**2
        else:
            x, y, vx, vy = x / np.sqrt(one), y / np.sqrt(two), vx / one, vy / two
            influence[path] = (x * y - r * (x * x + vx + y * y + vy) / 2) / total
            noise[path] = (vx * (y - r * x) ** 2 + vy * (x - r * y) ** 2 + vx * vy) / total**2
    usual = one * two / total**2 if np.isnan(r) else (1.0 - r * r) ** 2 / total**2
    chosen, freedom = _differing_alive(reach, alive, held, influence)
    live = (alive, stratum, weight, held, worth, once, twice, lumps, part, place)
    square, chosen = _square(influence, noise, usual, chosen, reach, np.empty(0), *live)
    return square, chosen, freedom
