"""Correlations: how two features go together, as the paths that have both tell it, and how far off that may be.

The machine code of `estimate` for covariances and correlations, by `influences`, whose docstring tells how groups and
their paths are given. Within a bin features are independent; what is measured of the bins of each is its table.
"""

from __future__ import annotations

import numpy as np

from synopsis.query import influences
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes

#: Features go together within their bins as well (`influences.TOGETHER`): of products of two, whose sides nothing
#: foretells, so much of that is allowed for.
PAIRED = 0.5

#: Products of distances have heavy tails (`influences.TAILS`): correlations, in which the same ones stand above and
#: below, are off by less.
CORRELATED = 1.15


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
    average_x: Floats,
    average_y: Floats,
    column: Positions,
    stratum: Positions,
    mass: Floats,
    live: Integers,
) -> Floats:
    """Facts x groups, of two features where both are present: total, covariance, variances, the parts of these within
    bins.

    And by how much the means of these rows are above those of all: averages and these make the middle of `_both`.
    """
    found = np.full((8, live.size - 1), np.nan)
    for group in range(live.size - 1):
        origin_x, origin_y, seen = 0.0, 0.0, False
        total = mx = my = xx = yy = xy = s = t = 0.0
        middle = (average_x[group], average_y[group], 0.0, 0.0)
        for path in range(live[group], live[group + 1]):
            present, x, y, vx, vy = _both(codes_x, codes_y, column[path], stratum[path], tables_x, tables_y, middle)
            if present:
                if not seen:
                    seen, origin_x, origin_y = True, x, y
                # From the first one on: where all are alike, they do not differ by as little as rounding either.
                total += mass[path]
                mx, my = mx + mass[path] * (x - origin_x), my + mass[path] * (y - origin_y)
                s, t = s + mass[path] * vx, t + mass[path] * vy
        found[0, group] = total
        if not total > 0.0:
            continue
        middle = (average_x[group], average_y[group], origin_x + mx / total, origin_y + my / total)
        for path in range(live[group], live[group + 1]):
            present, x, y, vx, vy = _both(codes_x, codes_y, column[path], stratum[path], tables_x, tables_y, middle)
            if present:
                xx, yy, xy = xx + mass[path] * x * x, yy + mass[path] * y * y, xy + mass[path] * x * y
        found[1, group], found[2, group], found[3, group] = xy / total, xx / total + s / total, yy / total + t / total
        found[4, group], found[5, group], found[6, group], found[7, group] = s / total, t / total, middle[2], middle[3]
    return found


@compiled
def of_pair(
    correlation: Floats,
    found: Floats,
    codes_x: Codes,
    codes_y: Codes,
    tables_x: Floats,
    tables_y: Floats,
    average_x: Floats,
    average_y: Floats,
    column: Positions,
    reach: Floats,
    alive: Positions,
    stratum: Positions,
    weight: Floats,
    held: Floats,
    worth: Floats,
    once: Floats,
    twice: Floats,
    lumps: Floats,
    part: Floats,
    place: Positions,
    slots: Integers,
    paths: Integers,
    live: Integers,
) -> Floats:
    """Half of the interval at 95% of correlations, or of covariances where these are NaN, given what was `paired`."""
    influence, noise, by_place = np.zeros(alive.size), np.zeros(alive.size), np.zeros(influences.places_of(place))
    half, aside = np.full(slots.size - 1, np.nan), np.zeros(alive.size)
    for group in range(slots.size - 1):
        r, total, covariance = correlation[group], found[0, group], found[1, group]
        one, two = found[2, group], found[3, group]
        if not total > 0.0:
            continue
        middle = (average_x[group], average_y[group], found[6, group], found[7, group])
        # Parts of one, for a product takes a fraction of what a quotient does.
        each, of_x, of_y, of_xx, of_yy = 1.0 / total, 1.0 / np.sqrt(one), 1.0 / np.sqrt(two), 1.0 / one, 1.0 / two
        squares = reaching = reaching_both = 0.0
        for path in range(live[group], live[group + 1]):
            present, x, y, vx, vy = _both(codes_x, codes_y, column[path], stratum[path], tables_x, tables_y, middle)
            own = reach[alive[path]] * held[path] * held[path]
            reaching += own
            if not present:
                continue
            reaching_both, squares = reaching_both + own, squares + (weight[path] * held[path]) ** 2
            if np.isnan(r):
                influence[path] = influences.TAILS * (x * y - covariance) * each
                noise[path] = (vx * y * y + vy * x * x + vx * vy) * (each * each)
            else:
                x, y, vx, vy = x * of_x, y * of_y, vx * of_xx, vy * of_yy
                influence[path] = CORRELATED * (x * y - r * (x * x + vx + y * y + vy) * 0.5) * each
                noise[path] = (vx * (y - r * x) ** 2 + vy * (x - r * y) ** 2 + vx * vy) * (each * each)
            aside[path] = PAIRED * PAIRED * noise[path]
        usual = one * two / total**2 if np.isnan(r) else (1.0 - r * r) ** 2 / total**2
        # Only paths that have both features tell anything.
        usual *= reaching_both / reaching if reaching > 0.0 else 1.0
        tell = min(total * total / squares, worth[group])
        ends, of_group = (paths[group], paths[group + 1]), (live[group], live[group + 1])
        chosen, freedom = influences.differing_alive(reach, *ends, alive, held, influence, *of_group)
        of_places = (column, alive, place, weight, held, by_place.size, *of_group)
        gathered = np.maximum(
            influences.in_one_bin(codes_x, tables_x.shape[2], *of_places),
            influences.in_one_bin(codes_y, tables_y.shape[2], *of_places),
        )
        own_paths = (alive, stratum, weight, held, tell, once, twice, lumps, part, place, by_place, gathered)
        square, chosen = influences.squared_error(
            influence, noise, aside, usual, chosen, reach, np.empty(0), *own_paths, influences.VARIANCE, *of_group
        )
        half[group] = influences.half_width(square, chosen, freedom, tell)
    return half
