"""Stretched: count, mean and variance of a feature in scopes that demand nothing of rows, from stretches and paths.

The machine code of `estimate` for sketches that keep stretches; what is known of each is in `recalled`. A stretch that
is wholly in scope needs no path. Of one that is cut, the values of its paths are known, and what the stretch has beside
them is shared by its other rows: those in scope differ from the others as paths in scope do, as far as that is not
chance. How far, the paths of the stratum tell (Robbins, 1956): where neighbours in time are as unlike as any two of a
stretch, it is chance. Squares are more often so than values, and rain more often than temperature.
"""

from __future__ import annotations

import numpy as np

from synopsis.query import influences, weighing
from synopsis.query.inference import NORMAL
from synopsis.query.recalled import (
    BEGIN,
    BLUR,
    CHANCE,
    CHANCES,
    EDGE,
    END,
    INSIDE,
    KEPT,
    KEPT_IN,
    OWN_STEP,
    PATHS,
    ROWS,
    ROWS_IN,
    SLOT,
    WHOLE,
)
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import Flags

#: Stretches, all known well, against which those that are cut alike are thought to have nothing in common.
COMMON = 1.0

#: What stretches that are cut alike have in common is off by this part of what would be if nothing else told it.
ALIKE = 0.7

#: What is rounded is off in all answers alike, so its part is to hold in 98 of 100: squares are so many times larger.
ROUNDED = (2.326348 / NORMAL) ** 2

#: What the rows of a stretch without a path have more or less than paths show may lie in so many of them.
FEW = 4.0

#: Ways in which stretches are cut: at both ends or within, where the scope begins, where it ends.
_EDGES = 3


@compiled
def numbers(found: Floats, offset: Integers, centre: float) -> tuple[Floats, Floats, Floats]:
    """Groups: how many values there are, their mean and variance; NaN where there are none."""
    groups = offset.size - 1
    count, average, variance = np.zeros(groups), np.full(groups, np.nan), np.full(groups, np.nan)
    sums = np.empty(3)
    for group in range(groups):
        begin, end = offset[group], offset[group + 1]
        common = _common(found, begin, end)
        sums[0] = sums[1] = sums[2] = rounding = 0.0
        for each in range(begin, end):
            own = found[each]
            values, total, square = _part(own, common)
            sums[0], sums[1], sums[2] = sums[0] + values, sums[1] + total, sums[2] + square
            rounding += own[WHOLE] * own[ROWS_IN] / own[ROWS] * own[OWN_STEP] ** 2
        # A scope may have so few rows that none of them is thought to have a value.
        if sums[0] > 1e-9:
            mean = sums[1] / sums[0]
            count[group], average[group] = sums[0], centre + mean
            # Rounding makes means and deviations vary more than they do, each by a twelfth of the square of a step.
            variance[group] = max((sums[2] - rounding / 6.0) / sums[0] - mean * mean, 0.0)
    return count, average, variance


@compiled
def _edge(own: Floats) -> int:
    """In which way a stretch is cut."""
    return int(own[EDGE]) % _EDGES


@compiled
def _is_cut(own: Floats) -> bool:
    return bool(own[ROWS_IN] < own[ROWS] * (1.0 - 1e-9))


@compiled
def _leaning(own: Floats, moment: int) -> tuple[float, float]:
    """How much more paths in scope have than the others, squares around the mean of the stretch; and how well that is
    known, as if there were so many paths in scope and no end of others: none where all are on one side.
    """
    if moment == 0:
        inside, kept = own[INSIDE], own[KEPT_IN]
        outside, others = own[PATHS] - inside, own[KEPT] - kept
    else:
        kept, others = own[INSIDE], own[PATHS] - own[INSIDE]
        inside = own[INSIDE + moment]
        outside = own[PATHS + moment] - inside
        if moment == 2:
            mean = own[WHOLE + 1] / max(own[WHOLE], 1.0)
            inside -= 2.0 * mean * own[INSIDE + 1]
            outside -= 2.0 * mean * (own[PATHS + 1] - own[INSIDE + 1])
    if kept < 1e-9 or others < 1e-9:
        return 0.0, 0.0
    return inside / kept - outside / others, kept * others / (kept + others)


@compiled
def _trust(paths: float, chance: float) -> float:
    """How far a difference that so many paths show is taken for true."""
    return paths / (paths + chance) if paths > 0.0 else 0.0


@compiled
def _common(found: Floats, begin: int, end: int) -> Floats:
    """Ways of being cut x moments: by how much rows in scope lean in all stretches that are cut alike.

    Places that share their weather lean alike, and together they have many paths. Each counts by what its own paths are
    not trusted with: so, where there are many, what is taken off the leaning of each is given back to all of them.
    """
    common, weight, trusted = np.zeros((_EDGES, 3)), np.zeros((_EDGES, 3)), np.zeros((_EDGES, 3))
    for each in range(begin, end):
        own = found[each]
        if _is_cut(own):
            edge = _edge(own)
            for moment in range(3):
                leaning, paths = _leaning(own, moment)
                trust = _trust(paths, own[CHANCES + moment])
                by = trust * own[CHANCES + moment]
                common[edge, moment] += by * leaning
                weight[edge, moment] += by
                trusted[edge, moment] += trust
    for edge in range(_EDGES):
        for moment in range(3):
            if weight[edge, moment] > 0.0:
                common[edge, moment] /= weight[edge, moment] * (1.0 + COMMON / trusted[edge, moment])
    return common


@compiled
def _shared(
    own: Floats, moment: int, common: Floats, all_of: float, all_in: float, whole: float, known: float, inside: float
) -> float:
    """What of a whole is in scope, given what all paths and those in scope have of it, and rows or values, all and in
    scope, of which it is: those without a path share what paths do not have.
    """
    held, held_in = (own[KEPT], own[KEPT_IN]) if moment == 0 else (own[PATHS], own[INSIDE])
    rest, unknown = all_of - held, all_in - held_in
    if not (rest > 1e-9 and unknown > 0.0):
        return inside
    leaning, paths = _leaning(own, moment)
    alike = common[_edge(own), moment]
    leaning = alike + _trust(paths, own[CHANCES + moment]) * (leaning - alike)
    return float(inside + unknown * ((whole - known) / rest + max(1.0 - unknown / rest, 0.0) * leaning))


@compiled
def _part(own: Floats, common: Floats) -> tuple[float, float, float]:
    """What of a stretch's values, sum and squares is in scope: no more than the whole has, whatever paths say."""
    whole = own[WHOLE]
    if not _is_cut(own) or not whole > 0.0:
        return whole, own[WHOLE + 1], own[WHOLE + 2]
    outside = own[ROWS] - own[ROWS_IN]
    values = _shared(own, 0, common, own[ROWS], own[ROWS_IN], whole, own[PATHS], own[INSIDE])
    values = min(max(values, whole - outside, 0.0), own[ROWS_IN], whole)
    if not values > 0.0:
        return 0.0, 0.0, 0.0
    mean = own[WHOLE + 1] / whole
    spread = max(own[WHOLE + 2] - own[WHOLE + 1] * mean, 0.0)
    known, inside = own[PATHS + 1] - own[PATHS] * mean, own[INSIDE + 1] - own[INSIDE] * mean
    total = _shared(own, 1, common, whole, values, 0.0, known, inside)
    most = np.sqrt(spread * values * (whole - values) / whole)  # all in scope alike, and so are all others
    total = min(max(total, -most), most)
    known, inside = (
        own[PATHS + 2] - mean * (2.0 * own[PATHS + 1] - mean * own[PATHS]),
        own[INSIDE + 2] - mean * (2.0 * own[INSIDE + 1] - mean * own[INSIDE]),
    )
    square = _shared(own, 2, common, whole, values, spread, known, inside)
    square = max(min(square, spread), total * total / values)
    return values, total + values * mean, square + mean * (2.0 * total + mean * values)


@compiled
def errors(
    statistic: int,
    found: Floats,
    offset: Integers,
    centre: float,
    codes: Codes,
    tables: Floats,
    count: Floats,
    average: Floats,
    variance: Floats,
    expected: Floats,
    day_kept: Integers,
    day_rows: Integers,
    day: Integers,
    share: Floats,
    begin: Integers,
    end: Integers,
    slots: Integers,
    timed: Flags,
    effect: float,
) -> Floats:
    """Groups: half of the interval at 95% of a statistic (`influences.AVERAGE`, `TOTAL` or `VARIANCE`).

    Rows of cut stretches that have no path differ by chance; they lean as paths in scope do, which is not known well,
    and what all that are cut alike have in common adds up; and what is kept of stretches is rounded. `timed` says of
    which groups paths know the part of their day that they are of, `effect` is that of the choice of paths on means.
    Cost: proportional to the stretches; of variances, to the paths of cut ones.
    """
    influence, spread, _ = influences.by_bin(statistic, 0.0, np.empty((0, 0)), tables, count, average, variance, slots)
    if statistic == influences.VARIANCE:  # of what tails have, stretches know all
        influence = influence / influences.TAILS
    bins, groups = influence.shape[1], offset.size - 1
    path_start = weighing.path_starts(day_kept)
    half = np.zeros(groups)
    for group in range(groups):
        if not count[group] > 0.0:
            continue
        usual = _mean_square(influence, spread, expected, tables, slots[group], slots[group + 1])
        total = rounding = paths = 0.0
        together = np.zeros((_EDGES, 3))
        for each in range(offset[group], offset[group + 1]):
            own = found[each]
            covered = own[ROWS_IN] / own[ROWS]
            mean = own[WHOLE + 1] / max(own[WHOLE], 1.0)
            away = mean + centre - average[group]
            # What rounding changes, what all of its rows do, and how that varies from row to row, where it is known.
            varies = max(own[WHOLE + 2] - own[WHOLE + 1] * mean, 0.0) / own[ROWS]
            by, whole = 1.0, own[WHOLE] * (mean + centre)
            level, present = mean + centre, own[WHOLE] / own[ROWS]
            if statistic == influences.AVERAGE:
                by, whole, level = 1.0 / count[group], own[WHOLE] * away / count[group], away
            varies = by * by * (varies + present * (1.0 - present) * level * level)
            if statistic == influences.VARIANCE:
                square = away * away + max(own[WHOLE + 2] / max(own[WHOLE], 1.0) - mean * mean, 0.0)
                by = 2.0 * np.sqrt(square) / count[group]
                whole = own[WHOLE] * (square - variance[group]) / count[group]
                varies = -1.0
            rounding += (covered * own[WHOLE] * own[OWN_STEP] * by) ** 2 / 12.0
            if statistic == influences.VARIANCE:  # a square of what rounding adds, where values hardly vary
                rounding += (covered * own[WHOLE] * own[OWN_STEP] ** 2 / count[group]) ** 2 / 90.0
            if covered >= 1.0 - 1e-9 or not own[WHOLE] > 0.0:
                continue
            chance = own[CHANCES + 2] if statistic == influences.VARIANCE else own[CHANCES + 1]
            of_paths = (influence, spread, codes, path_start, day_kept, bins, usual)
            total += _cut_square(own, whole, by, varies, chance, together[_edge(own)], *of_paths)
            paths += own[KEPT]
        for edge in range(_EDGES):
            trusted, alike, differs = together[edge]
            if alike > 0.0:  # what all have in common is not known well either
                total += ALIKE * alike * differs / (trusted + COMMON)
        hours = 0.0
        if not timed[group]:
            hours = _hours(influence, codes, path_start, day_kept, day_rows, day, share, begin, end, slots, group, bins)
        total *= effect if statistic != influences.VARIANCE else 1.0
        square = total + ROUNDED * rounding + hours
        known = influences.student(paths + 1.0) if total > 0.0 else NORMAL
        half[group] = known * np.sqrt(square)
    return half


@compiled
def _mean_square(influence: Floats, spread: Floats, expected: Floats, tables: Floats, begin: int, end: int) -> float:
    """The mean square of influences in a group, by the counts of bins."""
    total = square = 0.0
    for slot in range(begin, end):
        for each in range(influence.shape[1]):
            own = expected[slot, each] * tables[0, slot, each]
            total, square = total + own, square + own * (influence[slot, each] ** 2 + spread[slot, each])
    return square / total if total > 0.0 else 0.0


@compiled
def _cut_square(
    own: Floats,
    whole: float,
    by: float,
    varies: float,
    chance: float,
    together: Floats,
    influence: Floats,
    spread: Floats,
    codes: Codes,
    path_start: Integers,
    day_kept: Integers,
    bins: int,
    usual: float,
) -> float:
    """The squared error of the part of a cut stretch that is in scope, given what all of its rows change.

    How that varies from row to row is given where stretches tell it, `by` times the value then; below 0 where paths
    have to tell.
    To `together` is added what those cut alike share: how far their paths are trusted, by how much all are off if what
    they have in common is, and that times how much stretches differ.
    """
    slot, first, last = int(own[SLOT]), int(own[BEGIN]), int(own[END])
    covered, size = own[ROWS_IN] / own[ROWS], own[KEPT]
    apart, blur, total = varies, own[BLUR] * by * by, 0.0
    if varies < 0.0:
        square = blur = 0.0
        for where in range(first, last):
            for path in range(path_start[where], path_start[where] + day_kept[where]):
                code = codes[path]
                if code < bins:
                    value = influence[slot, code]
                    total, square, blur = total + value, square + value * value, blur + spread[slot, code]
        doubt = influences.DOUBT
        apart = (max(square - total * total / max(size, 1.0), 0.0) + doubt * usual) / (max(size - 1.0, 0.0) + doubt)
    rest, unknown = own[ROWS] - own[KEPT], max(own[ROWS_IN] - own[KEPT_IN], 0.0)
    found = influences.RUNS * blur * covered * (1.0 - covered)
    if unknown > 0.0:
        part = unknown / max(rest, unknown)
        differs = apart / (1.0 + CHANCE * chance)  # as the ratio of neighbours has it
        found += unknown * (1.0 - part) * chance * differs  # by chance, rows in scope are not as the others are
        reach, trust = unknown * (1.0 - part), _trust(_leaning(own, 1)[1], chance)
        found += reach * reach * (1.0 - trust) * differs
        together[0] += trust
        together[1] += reach * (1.0 - trust)
        together[2] += reach * (1.0 - trust) * differs
        if varies < 0.0:
            beyond = whole - total - (rest * total / size if size > 0.0 else 0.0)
            found += part * (1.0 - part) * beyond * beyond / FEW
    return float(found)


@compiled
def _hours(
    influence: Floats,
    codes: Codes,
    path_start: Integers,
    day_kept: Integers,
    day_rows: Integers,
    day: Integers,
    share: Floats,
    begin: Integers,
    end: Integers,
    slots: Integers,
    group: int,
    bins: int,
) -> float:
    """The squared error that comes from days of which a part is in scope, as `influences` has it."""
    hours = square = 0.0
    for slot in range(slots[group], slots[group + 1]):
        for each in range(begin[slot], end[slot]):
            where, part = day[each], share[each]
            if not (0.0 < part < 1.0 and day_rows[where] > 0):
                continue
            size = day_rows[where] * part * np.sqrt(1.0 / part - 1.0)
            hours += size
            for path in range(path_start[where], path_start[where] + day_kept[where]):
                if codes[path] < bins:
                    square += size / day_kept[where] * influence[slot, codes[path]] ** 2
    return influences.HOURS * influences.HOURS * hours * square / 2
