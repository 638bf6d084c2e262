"""Contents: how many rows in scope bins hold, as exact counts and paths tell, and the numbers that follow.

The machine code of `sampled` and `estimate`, whose docstrings tell what is computed. All groups of a question are
computed in one call, as `weighing` has their slots and paths. Tables are slots x bins, with one more column for absent
values where they say so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synopsis.query import chance
from synopsis.query.sampled import STEADY
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import Flags

#: Of the few paths more that strata are thought to have, those that are as usual where others speak for a stratum. With
#: none a place follows a single other one in all it does; with a quarter, days of twenty places err half as much more.
_AS_USUAL = 1 / 16


@compiled
def counted(counts: Integers, chosen: Integers, covered: Floats) -> Floats:
    """Bins and absent: rows that the exact counts lead to expect in scope."""
    table = np.empty((chosen.size, counts.shape[1]))
    for number in range(chosen.size):
        for each in range(counts.shape[1]):
            table[number, each] = covered[number] * counts[chosen[number], each]
    return table


@compiled
def lucky(
    expected: Floats,
    covered: Floats,
    usual: Floats,
    table: Floats,
    every: Floats,
    offset: Integers,
) -> Floats:
    """Bins and absent: what paths in scope weigh there, and their part of the rows that all paths there lack or exceed.

    That part is the share of the bin's paths that is in scope, of them and a few more (`usual` rows) as all are. A
    stratum without a path in scope has what is expected of it, bin by bin as much more or less as the others of its
    group: a warm day is one at all places. The table of what paths in scope weigh becomes it, beside what all of the
    stratum's do.
    """
    heard = np.zeros(expected.shape[0], np.bool_)
    for number in range(expected.shape[0]):
        reached = 0.0
        for each in range(expected.shape[1]):
            reached += abs(table[number, each])
        heard[number] = reached > 0.0
        if not heard[number]:
            for each in range(expected.shape[1]):
                table[number, each] = expected[number, each]
            continue
        wanted = found = 0.0
        for each in range(expected.shape[1]):
            part = (table[number, each] + covered[number] * usual[number]) / (every[number, each] + usual[number])
            table[number, each] += part * (expected[number, each] / covered[number] - every[number, each])
            wanted += expected[number, each]
            found += max(table[number, each], 0.0)
        for each in range(expected.shape[1]):
            table[number, each] *= wanted / found if found > 0.0 else 1.0
    for group in range(offset.size - 1):
        _follow(table, expected, usual, heard, offset[group], offset[group + 1])
    return table


@compiled
def _follow(table: Floats, expected: Floats, usual: Floats, heard: Flags, begin: int, end: int) -> None:
    """Let strata without a path go with those of their group that have some, and that are a little more as usual."""
    bins, silent, more = expected.shape[1], 0, 0.0
    found, wanted = np.zeros(bins), np.zeros(bins)
    for number in range(begin, end):
        silent += not heard[number]
        more += _AS_USUAL * usual[number] / (end - begin)
        for each in range(bins if heard[number] else 0):
            found[each] += max(table[number, each], 0.0)
            wanted[each] += expected[number, each]
    if silent == 0 or silent == end - begin:
        return
    of_heard = 0.0
    for each in range(bins):
        of_heard += wanted[each]
    for number in range(begin, end):
        if heard[number]:
            continue
        rows = total = 0.0
        for each in range(bins):
            beside = more * wanted[each] / of_heard
            rows += expected[number, each]
            if wanted[each] > 0.0:
                table[number, each] *= (found[each] + beside) / (wanted[each] + beside)
            total += table[number, each]
        for each in range(bins):
            table[number, each] *= rows / total if total > 0.0 else 1.0


@compiled
def corrected(
    counts: Integers,
    codes: Codes,
    stratum: Integers,
    covered: Floats,
    whole: Integers,
    kept: Integers,
    luck: Any,
    of_all: Any,
    offset: Integers,
) -> Floats:
    """Slots x (bins and absent): rows in scope, the paths' luck taken out, if any of it is known."""
    expected = counted(counts, stratum, covered)
    if not luck[0].size:
        return expected
    usual = np.empty(stratum.size)
    for each in range(stratum.size):
        usual[each] = STEADY * whole[each] / max(kept[each], 1)
    inside, every = chance.weighed(expected.shape, codes, luck, of_all)
    return lucky(expected, covered, usual, inside, every, offset)


@compiled
def numbered(
    tables: Floats,
    counted: Floats,
    is_counted: Flags,
    codes: Codes,
    column: Positions,
    stratum: Positions,
    weight: Floats,
    offset: Integers,
    paths: Integers,
) -> tuple[Floats, Floats, Floats, Floats]:
    """The numbers of a feature, by what was measured of its bins: mass by bin; count, mean and variance of groups.

    The mass is what is `counted` in each bin, or else what paths there weigh.
    """
    bins, groups = tables.shape[2], offset.size - 1
    mass = np.zeros((tables.shape[1], bins))
    count, average, variance = np.zeros(groups), np.full(groups, np.nan), np.full(groups, np.nan)
    for group in range(groups):
        begin, end = offset[group], offset[group + 1]
        if is_counted[group]:
            for slot in range(begin, end):
                for each in range(bins):
                    mass[slot, each] = counted[slot, each] * tables[0, slot, each]
        else:
            for path in range(paths[group], paths[group + 1]):
                if codes[column[path]] < bins:
                    mass[stratum[path], codes[column[path]]] += weight[path]
        size = total = spread = 0.0
        for slot in range(begin, end):
            for each in range(bins):
                size += mass[slot, each]
                total += mass[slot, each] * tables[1, slot, each]
        count[group] = size
        if not size > 0.0:
            continue
        mean = total / size
        for slot in range(begin, end):
            for each in range(bins):
                away = tables[1, slot, each] - mean
                spread += mass[slot, each] * (tables[2, slot, each] + away * away)
        average[group], variance[group] = mean, spread / size
    return mass, count, average, variance


@compiled
def weighed(table: Floats, shares: Floats, offset: Integers, sign: float) -> Floats:
    """Groups: the rows of bins times the share of each that counts; of bins above nothing, or below it, by the sign."""
    total = np.zeros(offset.size - 1)
    for group in range(offset.size - 1):
        for slot in range(offset[group], offset[group + 1]):
            own = 0.0
            for each in range(table.shape[1]):
                if table[slot, each] * sign > 0.0:
                    own += table[slot, each] * shares[slot, each]
            total[group] += own
    return total


@compiled
def sums(count: Floats, average: Floats, heard: Flags, rows: Floats, total: Floats) -> Floats:
    """Groups: the sum of values, 0 where there are none; where paths are heard, of so many rows as are known better."""
    found = np.zeros(count.size)
    for group in range(count.size):
        if count[group] > 0.0:
            found[group] = average[group] * count[group]
            if heard.size and heard[group]:
                found[group] = found[group] * rows[group] / total[group]
    return found


@compiled
def lumped(
    cut: Floats, shares: Floats, codes: Codes, column: Positions, stratum: Positions, weight: Floats, mass: Floats
) -> Floats:
    """Paths: rows that are on either side of an end that cuts a fine bin, nobody knows, by what of each bin is."""
    amount = np.zeros(column.size)
    for path in range(column.size):
        code, number = codes[column[path]], stratum[path]
        if code < cut.shape[1]:
            others = mass[path] / max(shares[number, code], 1e-3)
            amount[path] = cut[number, code] * min(others, weight[path])
    return amount
