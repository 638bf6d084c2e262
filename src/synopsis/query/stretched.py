"""Stretched: count, mean and variance of a feature in scopes that demand nothing of rows, from stretches and paths.

The machine code of `estimate` for sketches that keep stretches (`sketch.stretches`). A stretch that is wholly in scope
needs no path. Of one that is cut, the values of its paths are known, and what the stretch has beside them is shared by
its other rows: those in scope differ from the others as paths in scope do, as far as that is not chance. How far, the
paths of the stratum tell (Robbins, 1956): where neighbours in time are as unlike as any two of a stretch, it is chance.
Squares are more often so than values, and rain more often than temperature.
"""

from __future__ import annotations

import numpy as np

from synopsis.query import influences, weighing
from synopsis.query.inference import NORMAL
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.stretches import CONSTANT, LEVELS, SEEN, STEP, STILL, USUAL

#: The part of what neighbouring paths differ by that would be chance if they were as unlike as any two of a stretch:
#: even then some of it is slow, for neighbours are hours or days apart. 0.8 to 0.9 do as well.
CHANCE = 0.875

#: Paths by which strata are thought to show nothing but chance, beside those that they have.
UNKNOWN = 4.0

#: Chance in whether rows have a value, against how that truly differs: of values and squares the paths tell it.
PRESENT = 2.0

#: Stretches, all known well, against which those that are cut alike are thought to have nothing in common.
COMMON = 1.0

#: What stretches that are cut alike have in common is off by this part of what would be if nothing else told it.
ALIKE = 0.7

#: What is rounded is off in all answers alike, so its part is to hold in 98 of 100: squares are so many times larger.
ROUNDED = (2.326348 / NORMAL) ** 2

#: What the rows of a stretch without a path have more or less than paths show may lie in so many of them.
FEW = 4.0

#: Of a stretch in a group, by position: where its days begin and end, rows, paths, rows and paths in scope, its slot;
#: then values, sum and sum of squares of all its rows, of all its paths, and of those in scope; its step of rounding;
#: at which of its ends the scope cuts it; chance in whether there is a value, in values and in squares; the sum of the
#: variances within the bins of its paths.
_BEGIN, _END, _ROWS, _KEPT, _ROWS_IN, _KEPT_IN, _SLOT = range(7)
_WHOLE, _PATHS, _INSIDE, _STEP, _EDGE, _CHANCE, _BLUR, _FACTS = 7, 10, 13, 16, 17, 18, 21, 22

#: Ways in which stretches are cut: at both ends or within, where the scope begins, where it ends.
_EDGES = 3


@compiled
def _usual(
    stratum: int,
    day_offset: Integers,
    day_kept: Integers,
    starts: Integers,
    stretch_of: Integers,
    codes: Codes,
    means: Floats,
    bins: int,
) -> tuple[float, float, float, float, float, float]:
    """Of all paths of a stratum: their number; the part of them that has a value; of these, mean level and square; and
    how much of what values, and squares, differ by within stretches is chance, against what is not.

    By how much neighbours differ, as a part of what any two of one stretch do (von Neumann, 1941).
    """
    day, last = day_offset[stratum], day_offset[stratum + 1]
    paths = held = level = square = 0.0
    pairs = near = apart = square_near = square_apart = 0.0
    while day < last:
        stretch = stretch_of[day]
        size = x = q = xx = xq = qq = dxx = dxq = dqq = before = square_before = 0.0
        while day < last and stretch_of[day] == stretch:
            paths += day_kept[day]
            for path in range(starts[day], starts[day] + day_kept[day]):
                code = codes[path]
                if code < bins:
                    value, own = means[0, stratum, code], means[1, stratum, code]
                    if size > 0.0:
                        more, square_more = value - before, own - square_before
                        dxx, dxq, dqq = dxx + more * more, dxq + more * square_more, dqq + square_more * square_more
                    x, q, size = x + value, q + own, size + 1.0
                    xx, xq, qq = xx + value * value, xq + value * own, qq + own * own
                    before, square_before = value, own
            day += 1
        held, level, square = held + size, level + x, square + q
        if size > 1.0:
            # Squares are those around the mean: own - 2 mean value, but for what is the same for all.
            twice = 2.0 * x / size
            pairs, near, apart = pairs + size - 1.0, near + dxx, apart + xx - x * x / size
            square_near += dqq - twice * (2.0 * dxq - twice * dxx)
            square_apart += qq - twice * (2.0 * xq - twice * xx) - (q - twice * x) ** 2 / size
    size = max(held, 1.0)
    chances = _ratio(near, apart, pairs), _ratio(square_near, square_apart, pairs)
    return paths, held / max(paths, 1.0), level / size, square / size, chances[0], chances[1]


@compiled
def _ratio(near: float, apart: float, pairs: float) -> float:
    """Chance against what is not, given squared differences of neighbours, squares of all, and how many there are."""
    part = max(near / (2.0 * apart), 0.0) if apart > 0.0 else 1.0
    part = min((pairs * part + UNKNOWN) / (pairs + UNKNOWN), 1.0)
    return part / (1.0 - CHANCE * part)


@compiled
def _anchor(stratum: int, starts: Codes, ends: Codes, running: Floats) -> tuple[float, bool]:
    """The level that lattices of a stratum are counted from, and whether its values vary (`stretches.anchored`)."""
    end = 0
    for each in range(starts.shape[1]):
        end = max(end, ends[stratum, each])
    begin = starts[stratum, 0]
    mass = max(running[0, end] - running[0, begin], 1e-300)
    mean = (running[1, end] - running[1, begin]) / mass
    square = (running[2, end] - running[2, begin]) / mass
    varies = np.sqrt(max(square - mean * mean, 0.0)) > CONSTANT
    return 0.0 if varies else mean, varies


@compiled
def _in_levels(starts: Codes, ends: Codes, running: Floats) -> Floats:
    """Level and square x strata x bins: what paths in each bin are thought to be, as `strata.foretold` has it."""
    found = np.zeros((2, starts.shape[0], starts.shape[1]))
    for stratum in range(starts.shape[0]):
        for each in range(starts.shape[1]):
            begin, end = starts[stratum, each], ends[stratum, each]
            mass = max(running[0, end] - running[0, begin], 1e-300)
            found[0, stratum, each] = (running[1, end] - running[1, begin]) / mass
            found[1, stratum, each] = (running[2, end] - running[2, begin]) / mass
    return found


@compiled
def _read(
    facts: Integers,
    stretch: int,
    rows: float,
    paths: float,
    held: float,
    level: float,
    square: float,
    anchor: float,
    shift: float,
    usual: Floats,
    unit: float,
) -> tuple[float, float, float, float]:
    """Values of a stretch, their sum and sum of squares beyond the centre, and the step that these were rounded to: 0
    if it is still.

    Given what its paths add up to, in levels, and those of its stratum: as `Lattice.read` does.
    """
    seen = SEEN if usual[0] > 0.0 else 0.0
    share = 1.0 - (held + seen * usual[1]) / (paths + seen) if paths + seen > 0.0 else 0.0
    count = min(max(rows - (np.rint(share * rows) + facts[0, stretch]), 0.0), rows)
    more = USUAL if usual[1] > 0.0 else 0.0
    values, is_still = max(held + more, 1e-300), held > 0.0 and square < CONSTANT * held
    mean, square = (level + more * usual[2]) / values, (square + more * usual[3]) / values
    deviation = np.sqrt(max(square - mean * mean, 0.0))
    step = STEP * LEVELS / np.sqrt(max(count, 1.0))
    mean = anchor + (np.rint((mean - anchor) / step + shift) + facts[1, stretch] - shift) * step
    steps = (STILL if is_still else np.rint(deviation / step + shift)) + facts[2, stretch]
    if steps <= STILL:
        return count, 0.0, 0.0, 0.0
    deviation = max((steps - shift) * step, 0.0)
    scale = unit / LEVELS
    mean, deviation = mean * scale, deviation * scale
    return count, count * mean, count * (mean * mean + deviation * deviation), step * scale


@compiled
def gathered(
    facts: Integers,
    stretch_offset: Integers,
    shift: Floats,
    centre: float,
    unit: float,
    running: Floats,
    starts: Codes,
    ends: Codes,
    codes: Codes,
    tables: Floats,
    day_offset: Integers,
    day_rows: Integers,
    day_kept: Integers,
    day: Integers,
    share: Floats,
    stratum: Integers,
    begin: Integers,
    end: Integers,
    slots: Integers,
) -> tuple[Floats, Integers]:
    """All stretches of groups with rows in scope, x facts; and where those of each group begin.

    `tables` are share, mean, noise and leaning of slots x bins, `shift` tells by how much lattices are shifted.
    Cost: proportional to the paths of the strata in scope.
    """
    bins, groups = starts.shape[1], slots.size - 1
    path_start = weighing._path_starts(day_kept)
    stretch_of, number = np.empty(day_kept.size, np.int64), 0
    for stretch in range(stretch_offset.size - 1):
        for each in range(stretch_offset[stretch], stretch_offset[stretch + 1]):
            stretch_of[each] = stretch
    means = _in_levels(starts, ends, running)
    most = 0
    for slot in range(stratum.size):
        first, last = stretch_of[day[begin[slot]]], stretch_of[day[end[slot] - 1]]
        most += last - first + 1
    found, offset = np.zeros((most, _FACTS)), np.zeros(groups + 1, np.int64)
    known = np.full((starts.shape[0], 6), -1.0)  # of strata, once one is met
    for group in range(groups):
        for slot in range(slots[group], slots[group + 1]):
            usual = known[stratum[slot]]
            if usual[0] < 0.0:
                usual[0], usual[1], usual[2], usual[3], usual[4], usual[5] = _usual(
                    stratum[slot], day_offset, day_kept, path_start, stretch_of, codes, means, bins
                )
            anchor = _anchor(stratum[slot], starts, ends, running)
            last = -1
            for each in range(begin[slot], end[slot]):
                where, part = day[each], share[each]
                if not (part > 0.0 and day_rows[where] > 0):
                    continue
                if stretch_of[where] != last:
                    last = stretch_of[where]
                    _begun(
                        found[number], last, slot, stratum[slot], facts, stretch_offset, shift[last], day_rows,
                        day_kept, path_start, codes, means, tables, bins, centre, unit, usual, anchor,
                    )  # fmt: skip
                    number += 1
                own = found[number - 1]
                if where == own[_BEGIN]:
                    own[_EDGE] += 2.0
                if where == own[_END] - 1:
                    own[_EDGE] += 1.0
                own[_ROWS_IN] += day_rows[where] * part
                own[_KEPT_IN] += day_kept[where] * part
                for path in range(path_start[where], path_start[where] + day_kept[where]):
                    code = codes[path]
                    if code < bins:
                        value = tables[1, slot, code] - centre
                        own[_INSIDE] += part
                        own[_INSIDE + 1] += part * value
                        own[_INSIDE + 2] += part * (value * value + tables[2, slot, code])
        offset[group + 1] = number
    return found[:number], offset


@compiled
def _begun(
    own: Floats,
    stretch: int,
    slot: int,
    stratum: int,
    facts: Integers,
    stretch_offset: Integers,
    shift: float,
    day_rows: Integers,
    day_kept: Integers,
    path_start: Integers,
    codes: Codes,
    means: Floats,
    tables: Floats,
    bins: int,
    centre: float,
    unit: float,
    usual: Floats,
    anchor: tuple[float, bool],
) -> None:
    """What is known of one stretch, whatever of it is in scope."""
    first, last = stretch_offset[stretch], stretch_offset[stretch + 1]
    rows = paths = held = level = square = 0.0
    for where in range(first, last):
        rows, paths = rows + day_rows[where], paths + day_kept[where]
        for path in range(path_start[where], path_start[where] + day_kept[where]):
            code = codes[path]
            if code < bins:
                held, level, square = held + 1.0, level + means[0, stratum, code], square + means[1, stratum, code]
                value = tables[1, slot, code] - centre
                own[_PATHS] += 1.0
                own[_PATHS + 1] += value
                own[_PATHS + 2] += value * value + tables[2, slot, code]
                own[_BLUR] += tables[2, slot, code]
    own[_BEGIN], own[_END], own[_ROWS], own[_KEPT], own[_SLOT] = first, last, rows, paths, slot
    shift = shift if anchor[1] else 0.0
    own[_WHOLE], own[_WHOLE + 1], own[_WHOLE + 2], own[_STEP] = _read(
        facts, stretch, rows, paths, held, level, square, anchor[0], shift, usual, unit
    )
    own[_CHANCE], own[_CHANCE + 1], own[_CHANCE + 2] = PRESENT, usual[4], usual[5]
    if not anchor[1]:  # a constant is kept as it is
        own[_STEP] = 0.0


@compiled
def often_rounded(found: Floats, times: float) -> None:
    """Let stretches be off as what was rounded so many times is: by as many squares as for once."""
    for each in range(found.shape[0] if times != 1.0 else 0):
        found[each, _STEP] *= np.sqrt(times)


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
            rounding += own[_WHOLE] * own[_ROWS_IN] / own[_ROWS] * own[_STEP] ** 2
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
    return int(own[_EDGE]) % _EDGES


@compiled
def _is_cut(own: Floats) -> bool:
    return bool(own[_ROWS_IN] < own[_ROWS] * (1.0 - 1e-9))


@compiled
def _leaning(own: Floats, moment: int) -> tuple[float, float]:
    """How much more paths in scope have than the others, squares around the mean of the stretch; and how well that is
    known, as if there were so many paths in scope and no end of others: none where all are on one side.
    """
    if moment == 0:
        inside, kept = own[_INSIDE], own[_KEPT_IN]
        outside, others = own[_PATHS] - inside, own[_KEPT] - kept
    else:
        kept, others = own[_INSIDE], own[_PATHS] - own[_INSIDE]
        inside = own[_INSIDE + moment]
        outside = own[_PATHS + moment] - inside
        if moment == 2:
            mean = own[_WHOLE + 1] / max(own[_WHOLE], 1.0)
            inside -= 2.0 * mean * own[_INSIDE + 1]
            outside -= 2.0 * mean * (own[_PATHS + 1] - own[_INSIDE + 1])
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
                trust = _trust(paths, own[_CHANCE + moment])
                by = trust * own[_CHANCE + moment]
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
    held, held_in = (own[_KEPT], own[_KEPT_IN]) if moment == 0 else (own[_PATHS], own[_INSIDE])
    rest, unknown = all_of - held, all_in - held_in
    if not (rest > 1e-9 and unknown > 0.0):
        return inside
    leaning, paths = _leaning(own, moment)
    alike = common[_edge(own), moment]
    leaning = alike + _trust(paths, own[_CHANCE + moment]) * (leaning - alike)
    return float(inside + unknown * ((whole - known) / rest + max(1.0 - unknown / rest, 0.0) * leaning))


@compiled
def _part(own: Floats, common: Floats) -> tuple[float, float, float]:
    """What of a stretch's values, sum and squares is in scope: no more than the whole has, whatever paths say."""
    whole = own[_WHOLE]
    if not _is_cut(own) or not whole > 0.0:
        return whole, own[_WHOLE + 1], own[_WHOLE + 2]
    outside = own[_ROWS] - own[_ROWS_IN]
    values = _shared(own, 0, common, own[_ROWS], own[_ROWS_IN], whole, own[_PATHS], own[_INSIDE])
    values = min(max(values, whole - outside, 0.0), own[_ROWS_IN], whole)
    if not values > 0.0:
        return 0.0, 0.0, 0.0
    mean = own[_WHOLE + 1] / whole
    spread = max(own[_WHOLE + 2] - own[_WHOLE + 1] * mean, 0.0)
    known, inside = own[_PATHS + 1] - own[_PATHS] * mean, own[_INSIDE + 1] - own[_INSIDE] * mean
    total = _shared(own, 1, common, whole, values, 0.0, known, inside)
    most = np.sqrt(spread * values * (whole - values) / whole)  # all in scope alike, and so are all others
    total = min(max(total, -most), most)
    known, inside = (
        own[_PATHS + 2] - mean * (2.0 * own[_PATHS + 1] - mean * own[_PATHS]),
        own[_INSIDE + 2] - mean * (2.0 * own[_INSIDE + 1] - mean * own[_INSIDE]),
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
    effect: float,
) -> Floats:
    """Groups: half of the interval at 95% of a statistic (`influences.AVERAGE`, `TOTAL` or `VARIANCE`).

    Rows of cut stretches that have no path differ by chance; they lean as paths in scope do, which is not known well,
    and what all that are cut alike have in common adds up; and what is kept of stretches is rounded. `effect` is that
    of the choice of paths on means. Cost: proportional to the stretches; of variances, to the paths of cut ones.
    """
    influence, spread, _ = influences._by_bin(statistic, 0.0, np.empty((0, 0)), tables, count, average, variance, slots)
    if statistic == influences.VARIANCE:  # of what tails have, stretches know all
        influence = influence / influences.TAILS
    bins, groups = influence.shape[1], offset.size - 1
    path_start = weighing._path_starts(day_kept)
    half = np.zeros(groups)
    for group in range(groups):
        if not count[group] > 0.0:
            continue
        usual = _mean_square(influence, spread, expected, tables, slots[group], slots[group + 1])
        total = rounding = paths = 0.0
        together = np.zeros((_EDGES, 3))
        for each in range(offset[group], offset[group + 1]):
            own = found[each]
            covered = own[_ROWS_IN] / own[_ROWS]
            mean = own[_WHOLE + 1] / max(own[_WHOLE], 1.0)
            away = mean + centre - average[group]
            # What rounding changes, what all of its rows do, and how that varies from row to row, where it is known.
            varies = max(own[_WHOLE + 2] - own[_WHOLE + 1] * mean, 0.0) / own[_ROWS]
            by, whole = 1.0, own[_WHOLE] * (mean + centre)
            level, present = mean + centre, own[_WHOLE] / own[_ROWS]
            if statistic == influences.AVERAGE:
                by, whole, level = 1.0 / count[group], own[_WHOLE] * away / count[group], away
            varies = by * by * (varies + present * (1.0 - present) * level * level)
            if statistic == influences.VARIANCE:
                square = away * away + max(own[_WHOLE + 2] / max(own[_WHOLE], 1.0) - mean * mean, 0.0)
                by = 2.0 * np.sqrt(square) / count[group]
                whole = own[_WHOLE] * (square - variance[group]) / count[group]
                varies = -1.0
            rounding += (covered * own[_WHOLE] * own[_STEP] * by) ** 2 / 12.0
            if statistic == influences.VARIANCE:  # a square of what rounding adds, where values hardly vary
                rounding += (covered * own[_WHOLE] * own[_STEP] ** 2 / count[group]) ** 2 / 90.0
            if covered >= 1.0 - 1e-9 or not own[_WHOLE] > 0.0:
                continue
            chance = own[_CHANCE + 2] if statistic == influences.VARIANCE else own[_CHANCE + 1]
            of_paths = (influence, spread, codes, path_start, day_kept, bins, usual)
            total += _cut_square(own, whole, by, varies, chance, together[_edge(own)], *of_paths)
            paths += own[_KEPT]
        for edge in range(_EDGES):
            trusted, alike, differs = together[edge]
            if alike > 0.0:  # what all have in common is not known well either
                total += ALIKE * alike * differs / (trusted + COMMON)
        hours = _hours(influence, codes, path_start, day_kept, day_rows, day, share, begin, end, slots, group, bins)
        total *= effect if statistic != influences.VARIANCE else 1.0
        square = total + ROUNDED * rounding + hours
        known = influences._student(paths + 1.0) if total > 0.0 else NORMAL
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
    slot, first, last = int(own[_SLOT]), int(own[_BEGIN]), int(own[_END])
    covered, size = own[_ROWS_IN] / own[_ROWS], own[_KEPT]
    apart, blur, total = varies, own[_BLUR] * by * by, 0.0
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
    rest, unknown = own[_ROWS] - own[_KEPT], max(own[_ROWS_IN] - own[_KEPT_IN], 0.0)
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
