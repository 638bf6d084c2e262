"""Recalled: what was kept of the stretches that have rows in scope, read again, and what their paths have of it.

The machine code of `stretched`. What is kept of a stretch is how far it is from what its paths foretell, on a lattice
(`sketch.stretches`). What its paths have, all and those in scope, and how much of it is chance, is put beside it.
"""

from __future__ import annotations

import numpy as np

from synopsis.query import weighing
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

#: Of a stretch in a group, by position: where its days begin and end, rows, paths, rows and paths in scope, its slot;
#: then values, sum and sum of squares of all its rows, of all its paths, and of those in scope; its step of rounding;
#: at which of its ends the scope cuts it; chance in whether there is a value, in values and in squares; the sum of the
#: variances within the bins of its paths.
BEGIN, END, ROWS, KEPT, ROWS_IN, KEPT_IN, SLOT = range(7)
WHOLE, PATHS, INSIDE, OWN_STEP, EDGE, CHANCES, BLUR, FACTS = 7, 10, 13, 16, 17, 18, 21, 22


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
    lean: Floats,
    lean_start: Integers,
) -> tuple[Floats, Integers]:
    """All stretches of groups with rows in scope, x facts; and where those of each group begin.

    `tables` are share, mean, noise and leaning of slots x bins, `shift` tells by how much lattices are shifted.
    Cost: proportional to the paths of the strata in scope.
    """
    bins, groups = starts.shape[1], slots.size - 1
    path_start = weighing.path_starts(day_kept)
    stretch_of, number = np.empty(day_kept.size, np.int64), 0
    for stretch in range(stretch_offset.size - 1):
        for each in range(stretch_offset[stretch], stretch_offset[stretch + 1]):
            stretch_of[each] = stretch
    means = _in_levels(starts, ends, running)
    most = 0
    for slot in range(stratum.size):
        first, last = stretch_of[day[begin[slot]]], stretch_of[day[end[slot] - 1]]
        most += last - first + 1
    found, offset = np.zeros((most, FACTS)), np.zeros(groups + 1, np.int64)
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
                if where == own[BEGIN]:
                    own[EDGE] += 2.0
                if where == own[END] - 1:
                    own[EDGE] += 1.0
                own[ROWS_IN] += day_rows[where] * part
                leans, in_scope = lean.size > 0 and part < 1.0, float(day_kept[where])
                if leans:
                    in_scope = weighing.leaning(lean, lean_start, each, day_kept[where])
                own[KEPT_IN] += in_scope * part
                for at in range(day_kept[where]):
                    code = codes[path_start[where] + at]
                    if code < bins:
                        value, inside = tables[1, slot, code] - centre, part
                        if leans:
                            inside *= lean[lean_start[each] + at]
                        own[INSIDE] += inside
                        own[INSIDE + 1] += inside * value
                        own[INSIDE + 2] += inside * (value * value + tables[2, slot, code])
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
                own[PATHS] += 1.0
                own[PATHS + 1] += value
                own[PATHS + 2] += value * value + tables[2, slot, code]
                own[BLUR] += tables[2, slot, code]
    own[BEGIN], own[END], own[ROWS], own[KEPT], own[SLOT] = first, last, rows, paths, slot
    shift = shift if anchor[1] else 0.0
    own[WHOLE], own[WHOLE + 1], own[WHOLE + 2], own[OWN_STEP] = _read(
        facts, stretch, rows, paths, held, level, square, anchor[0], shift, usual, unit
    )
    own[CHANCES], own[CHANCES + 1], own[CHANCES + 2] = PRESENT, usual[4], usual[5]
    if not anchor[1]:  # a constant is kept as it is
        own[OWN_STEP] = 0.0


@compiled
def often_rounded(found: Floats, times: float) -> None:
    """Let stretches be off as what was rounded so many times is: by as many squares as for once."""
    for each in range(found.shape[0] if times != 1.0 else 0):
        found[each, OWN_STEP] *= np.sqrt(times)
