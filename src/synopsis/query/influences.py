"""Influences: what one row more would change a statistic by, and how far the statistic may be off by that.

The machine code of `estimate`, whose docstring tells what is computed, for all groups in one call: `slots`, `paths`
and `live` say where those of each group begin. Paths are those in scope; `live` ones are those of them that may
satisfy the clause, at the positions `alive`. Of two features together `correlations` tells, by what is here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synopsis.query import chance
from synopsis.query.chance import FOURTH
from synopsis.query.inference import NORMAL
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes

#: So many paths' worth of doubt: few paths that look alike are weighed up with how rows differ without the condition.
DOUBT = 1.0

#: Rows come in runs (an hour is like the next): within a bin squared errors are so many times larger than by chance.
RUNS = 2.0

#: Places that share bins lie apart within them: by this part of what it would be if all rows of a place were alike.
#: That is of rows in bins that are cut: places round their values in ways of their own.
APART = 0.25

#: Of values it is all of that, times the square of the share of a place's rows that lie in one bin: rows in many bins
#: are on no side of them (of eight features in two data sets 0.7 to 1.6 times as much in six, a quarter of it in two).
GATHERED = 1.0

#: Within a bin rows are spread as all rows are, but for a slope of seven steps: by this part of what it would be if all
#: of a stratum's rows in a cut bin were on one side; and by this part if those of all strata were on the same one.
FORM, FORM_OF_ALL = 0.02, 0.0003

#: Of a rank it is so much less: quantiles are asked for where rows are many, so that bins are narrow.
RANKS = 0.5

#: Rows of a stratum that lie in one fine bin lie together within it: by this part of what it would be if they were one.
LEAN = 0.05

#: The part of a day that is in scope differs from the whole day by this, in standard deviations of the day's rows.
HOURS = 0.3

#: Features go together within their bins as well, which paths do not tell: the correlation that is allowed for.
TOGETHER = 0.4

#: Rows that satisfy a condition lie on one side of the bins of what is asked about, and of the bins that it cuts: what
#: the former foretell is so many times as much.
SIDES = 2.0

#: All rows of a fine bin that a condition cuts may have one value: so much of what that would shift is allowed for.
LUMPS = 0.5

#: Values of which most lie on a grid are taken to lie there, and so few that nobody has seen them may not: no count
#: with a condition is known better than this part of it, unless it is certain.
SURE = 1e-4

#: Products of distances have heavy tails, of which paths see too little: (co)variances are off by so much more.
TAILS = 1.4

#: Share of a weight by which it may be off by rounding: what stands for itself alone reaches nobody else.
ROUNDING = 1e-12

#: Statistics of numbers in bins.
AVERAGE, TOTAL, VARIANCE, QUANTILE = range(4)


@compiled
def student(paths: float) -> float:
    """97.5% of Student's distribution, of so many paths, lie below this (Abramowitz & Stegun 26.7.5)."""
    z, freedom = NORMAL, max(paths - 1.0, 2.0)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


@compiled
def half_width(square: float, chosen: float, freedom: float, worth: float) -> float:
    """Half of an interval at 95%, by the squared error and the part of it that comes from the choice of paths."""
    return float(student(min(worth, freedom + 1.0) if chosen > 0.0 else worth) * np.sqrt(square))


@compiled
def differing_alive(
    reach: Floats, first: int, stop: int, alive: Positions, held: Floats, influence: Floats, begin: int, end: int
) -> tuple[float, float]:
    """The same of live paths' probability times their influence, with 0 for paths that are not alive."""
    total = fourth = before = 0.0
    last = first - 1  # the path that `before` is of
    for each in range(begin, end):
        path, value = alive[each], held[each] * (influence[each] if influence.size else 1.0)
        if path > last + 1:  # others in between
            if last >= first:
                square = reach[last + 1] * (before * before)
                total, fourth = total + square, fourth + square * square
            before = 0.0
        if path > first:
            step = value - before
            square = reach[path] * (step * step)
            total, fourth = total + square, fourth + square * square
        before, last = value, path
    if first <= last < stop - 1:
        square = reach[last + 1] * (before * before)
        total, fourth = total + square, fourth + square * square
    return total / 2, FOURTH * total * total / fourth if fourth > 0.0 else 0.0


@compiled
def places_of(place: Positions) -> int:
    """How many places to count by, if any."""
    places = 0
    for path in range(place.size):
        places = max(places, place[path] + 1)
    return places


@compiled
def in_one_bin(
    codes: Codes,
    bins: int,
    column: Positions,
    alive: Positions,
    place: Positions,
    weight: Floats,
    held: Floats,
    places: int,
    begin: int,
    end: int,
) -> Floats:
    """Places: how far their rows lie in one bin: the sum of the squared shares of bins, of a path at least."""
    table, found = np.zeros((places, bins)), np.ones(places)
    for each in range(begin, end if places else begin):
        where, code = place[alive[each]], codes[column[each]]
        if where >= 0 and code < bins:
            table[where, code] += weight[each] * held[each]
    for where in range(places):
        total = square = 0.0
        for each in range(bins):
            total, square = total + table[where, each], square + table[where, each] * table[where, each]
        if total > 0.0:
            found[where] = square / (total * total)
    return found


@compiled
def squared_error(
    influence: Floats,
    noise: Floats,
    aside: Floats,
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
    by_place: Floats,
    gathered: Floats,
    statistic: int,
    begin: int,
    end: int,
) -> tuple[float, float]:
    """The squared error of a statistic, and the part of it that comes from the choice of paths.

    `chosen` is that part as paths alone tell, `usual` the mean square of influences without the condition. Live paths
    from `begin` to `end` are those of the group. `aside` is the part of the noise of which no side is foretold,
    `gathered` tells how far the rows of places lie in one bin. Of a rank a bin has rows on either side, whatever the
    condition.
    """
    reaching = both = apart = in_bins = hours = hours_square = 0.0
    up = down = all_up = all_down = formed = 0.0
    is_rank, is_settled, slot = statistic == QUANTILE, uncovered.size > 0 and statistic != VARIANCE, -1
    moved = np.zeros(lumps.shape[0])
    for each in range(by_place.size):
        by_place[each] = 0.0
    for each in range(begin, end):
        path, mean = alive[each], held[each] * influence[each]
        open_part = held[each] * (noise[each] + influence[each] * influence[each]) - mean * mean
        rest = max(open_part, 0.0)
        reaching += (reach[path] * uncovered[stratum[each]] if uncovered.size else reach[path]) * (
            held[each] * held[each]
        )
        in_bins += weight[each] * rest
        if stratum[each] != slot:
            formed, all_up, all_down = formed + up * up + down * down, all_up + up, all_down + down
            slot, up, down = stratum[each], 0.0, 0.0
        if rest > 0.0 and (is_rank or held[each] < 1.0):
            open_part = rest if is_rank else held[each] * (1.0 - held[each]) * (influence[each] * influence[each])
            size = weight[each] * np.sqrt(open_part)
            if is_rank or influence[each] > 0.0:
                up += size
            else:
                down += size
        if place.size and place[path] >= 0:
            # Means of a whole stratum are those of all its places, wherever in a bin each of them lies.
            by_place[place[path]] += weight[each] * np.sqrt(rest * uncovered[stratum[each]] if is_settled else rest)
        if part.size and part[path] < 1.0:
            size = weight[each] * np.sqrt(1.0 / part[path] - 1.0)
            hours, hours_square = hours + size, hours_square + size * (mean * mean)
        if once.size and once[each] != 0.0:  # of most paths it is settled
            both += weight[each] * (twice[each] * influence[each])
            apart += weight[each] * (once[each] * np.sqrt(aside[each]))
        for cut in range(moved.size):
            moved[cut] += lumps[cut, each] * influence[each]
    chosen = (worth * chosen + DOUBT * usual * reaching) / (worth + DOUBT)
    square = chosen + RUNS * in_bins + HOURS * HOURS * hours * hours_square / 2
    square += (TOGETHER * (abs(both) + apart)) ** 2
    formed, all_up, all_down = formed + up * up + down * down, all_up + up, all_down + down
    form = FORM * formed + FORM_OF_ALL * (all_up * all_up + all_down * all_down)
    square += RANKS * form if is_rank else form
    for each in range(by_place.size):
        size = by_place[each] * gathered[each]
        square += GATHERED * (size * size)
    for cut in range(moved.size):
        square += LUMPS * LUMPS * moved[cut] * moved[cut]
    return square, chosen


@compiled
def by_bin(
    statistic: int,
    rank: float,
    left: Floats,
    tables: Floats,
    count: Floats,
    average: Floats,
    variance: Floats,
    slots: Integers,
) -> tuple[Floats, Floats, Floats]:
    """Bins: what a row in them would change a statistic by, the variance of that within the bin, and leaning.

    Of a quantile it takes its rank, and the part of each bin that is left of it.
    """
    bins = tables.shape[2]
    influence, spread = np.empty((tables.shape[1], bins)), np.empty((tables.shape[1], bins))
    leaning = np.zeros((tables.shape[1], bins))
    for group in range(slots.size - 1):
        size, mean = count[group], average[group]
        for slot in range(slots[group], slots[group + 1]):
            for each in range(bins):
                value, own, fine = tables[1, slot, each], tables[2, slot, each], tables[3, slot, each]
                if statistic == AVERAGE:
                    influence[slot, each], spread[slot, each] = (value - mean) / size, own / size**2
                    leaning[slot, each] = fine / size**2
                elif statistic == TOTAL:
                    influence[slot, each], spread[slot, each], leaning[slot, each] = value, own, fine
                elif statistic == VARIANCE:
                    away = (value - mean) * (value - mean)
                    influence[slot, each] = TAILS * (away + own - variance[group]) / size
                    spread[slot, each] = (4 * away * own + 2 * own * own) / size**2
                    leaning[slot, each] = (4 * away * fine + 2 * fine * fine) / size**2
                else:
                    below = left[slot, each]
                    influence[slot, each], spread[slot, each] = (rank - below) / size, below * (1 - below) / size**2
    return influence, spread, leaning


@compiled
def _aside(statistic: int, tables: Floats, count: Floats, slots: Integers) -> Floats:
    """Bins: the part of a variance within them of which `_sided` does not tell the side: of squares in their bin."""
    found = np.zeros(tables.shape[1:])
    for group in range(slots.size - 1 if statistic == VARIANCE else 0):
        for slot in range(slots[group], slots[group + 1]):
            for each in range(tables.shape[2]):
                own = tables[2, slot, each] / count[group]
                found[slot, each] = 2 * own * own
    return found


@compiled
def _sided(
    statistic: int,
    left: Floats,
    tables: Floats,
    expected: Floats,
    mass: Floats,
    count: float,
    average: float,
    begin: int,
    end: int,
) -> float:
    """By how much a statistic is off because rows that satisfy a condition lie on one side of their bins.

    What part of a bin's rows is selected changes from bin to bin, so it does within them: taken to be a straight line
    over ranks. Those selected are moved by one deviation of their bin at most, and so are the others. Of a rank it is
    how many of them are left of it in the bin.
    """
    bins, found = mass.shape[1], 0.0
    rows, selected, shift = np.zeros(bins), np.zeros(bins), np.zeros(bins)
    for slot in range(begin, end):
        for each in range(bins):
            own = expected[slot, each] * tables[0, slot, each]
            rows[each], selected[each] = rows[each] + own, selected[each] + mass[slot, each]
            if statistic == QUANTILE:
                shift[each] += own * np.sqrt(3.0) * (left[slot, each] * (1.0 - left[slot, each]))
                continue
            by = own * np.sqrt(tables[2, slot, each])
            shift[each] += by * (2.0 * (tables[1, slot, each] - average)) if statistic == VARIANCE else by
    before = -1
    for each in range(bins):
        if not rows[each] > 0.0:
            continue
        after = each + 1
        while after < bins and not rows[after] > 0.0:
            after += 1
        low, high = before if before >= 0 else each, after if after < bins else each
        distance = (rows[low] + rows[high]) / 2 + (rows[each] if low < each < high else 0.0)
        if low < high:
            rate = selected[each] / rows[each]
            slope = (selected[high] / rows[high] - selected[low] / rows[low]) / distance
            most = max(min(rate, 1.0 - rate), 0.0)
            if statistic == QUANTILE:  # there a line that falls to nothing is as far as it goes
                most /= np.sqrt(3.0)
            found += min(max(slope * rows[each] / np.sqrt(12.0), -most), most) * shift[each]
        before = each
    found *= SIDES
    return found if statistic == TOTAL else found / count


@compiled
def of_numbers(
    statistic: int,
    rank: float,
    left: Floats,
    tables: Floats,
    count: Floats,
    average: Floats,
    variance: Floats,
    expected: Floats,
    mass: Floats,
    codes: Codes,
    column: Positions,
    luck: Any,
    of_all: Any,
    untouched: Floats,
    uncovered: Floats,
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
) -> tuple[Floats, Floats, Floats]:
    """Of a statistic of numbers in bins: half of its interval at 95%, skew, and how many paths tell it.

    Where counts of bins are exact, they are given as `untouched`, and with them what is not covered of each slot; the
    skew is what bins below nothing were cut off for. Otherwise it is to which side of their bins rows lie that satisfy
    the condition.
    """
    influences, noises, leaning = by_bin(statistic, rank, left, tables, count, average, variance, slots)
    asides = _aside(statistic, tables, count, slots)
    bins, groups = influences.shape[1], slots.size - 1
    half, skews, tells = np.zeros(groups), np.zeros(groups), np.zeros(groups)
    influence, noise, by_place = np.zeros(column.size), np.zeros(column.size), np.zeros(places_of(place))
    aside = np.zeros(column.size)
    for path in range(column.size):
        code = codes[column[path]]
        if code < bins:
            influence[path], noise[path] = influences[stratum[path], code], noises[stratum[path], code]
            aside[path] = asides[stratum[path], code]
    left_of = np.zeros((tables.shape[1] if untouched.size else 0, bins + 1))  # absent ones change nothing
    for slot in range(left_of.shape[0]):
        for each in range(bins):
            left_of[slot, each] = influences[slot, each] * tables[0, slot, each]
    for group in range(groups):
        if not count[group] > 0.0:
            continue
        usual = total = skew = leant = 0.0
        for slot in range(slots[group], slots[group + 1]):
            for each in range(bins):
                own = expected[slot, each] * tables[0, slot, each]
                total += own
                usual += own * (influences[slot, each] ** 2 + noises[slot, each])
                leant += own * own * leaning[slot, each]
                if untouched.size:  # how many rows there are is known: others take the place of what was cut off
                    away = influences[slot, each] - (average[group] if statistic == TOTAL else 0.0)
                    skew += min(untouched[slot, each], 0.0) * tables[0, slot, each] * away
        usual = usual / total if total > 0.0 else 0.0
        # Only paths that have the feature tell anything.
        present = everyone = squares = 0.0
        for path in range(live[group], live[group + 1]):
            own = weight[path] * held[path]
            everyone += own
            if codes[column[path]] < bins:
                present, squares = present + own, squares + own * own
        tell = min(present * present / squares, worth[group]) if squares > 0.0 else worth[group]
        usual *= present / everyone if everyone > 0.0 else 1.0
        leant *= min(count[group] / total, 1.0) ** 2 if total > 0.0 else 0.0
        if untouched.size:
            found, freedom = chance.differing(left_of, codes, luck, of_all, slots, group)
        else:
            ends = (paths[group], paths[group + 1])
            found, freedom = differing_alive(reach, *ends, alive, held, influence, live[group], live[group + 1])
            if once.size:
                of_slots = (slots[group], slots[group + 1])
                skew = _sided(statistic, left, tables, expected, mass, count[group], average[group], *of_slots)
        of_places = (column, alive, place, weight, held, by_place.size, live[group], live[group + 1])
        gathered = in_one_bin(codes, bins, *of_places)
        own_paths = (alive, stratum, weight, held, tell, once, twice, lumps, part, place, by_place, gathered)
        of_group = (statistic, live[group], live[group + 1])
        square, chosen = squared_error(influence, noise, aside, usual, found, reach, uncovered, *own_paths, *of_group)
        half[group], skews[group] = half_width(square + LEAN * leant, chosen, freedom, tell), skew
        tells[group] = tell
    return half, skews, tells


@compiled
def of_count(
    met: Floats,
    codes: Codes,
    luck: Any,
    of_all: Any,
    slots: Integers,
    all_reach: Floats,
    alive: Positions,
    slot: Positions,
    weight: Floats,
    held: Floats,
    twice: Floats,
    all_weight: Floats,
    part: Floats,
    place: Positions,
    lumps: Floats,
    paths: Integers,
    live: Integers,
    count: Floats,
    total: Floats,
    edge: Floats,
    skew: Floats,
) -> tuple[Floats, Floats]:
    """Groups: between which numbers a count lies, in 95 of 100 questions.

    Where the clause is one leaf, of which `met` tells what each bin has, the paths' luck was taken out; otherwise the
    choice is that of all paths. Few rows vary as much as their number is: the interval is Wilson's (1927), wider
    upwards.
    """
    groups, none = count.size, np.empty(0)
    low, high, by_place = np.zeros(groups), np.zeros(groups), np.zeros(places_of(place))
    for group in range(groups):
        begin, end, first, stop = live[group], live[group + 1], paths[group], paths[group + 1]
        rate = count[group] / max(total[group], 1.0)
        in_bins = hours = hours_square = both = reach = own_form = all_form = formed = 0.0
        last = -1
        for each in range(by_place.size):
            by_place[each] = 0.0
        if met.size:
            chosen, _ = chance.differing(met, codes, luck, of_all, slots, group)
            reach = chance.reached(luck, of_all, slots, group)
        else:
            chosen, _ = differing_alive(all_reach, first, stop, alive, held, none, begin, end)
            for path in range(first, stop):
                reach += all_reach[path]
        for each in range(begin, end):
            noise = held[each] * (1.0 - held[each])
            in_bins += weight[each] * noise
            both += weight[each] * twice[each]
            if slot[each] != last:
                formed, all_form = formed + own_form * own_form, all_form + own_form
                last, own_form = slot[each], 0.0
            if noise > 0.0:
                own_form += weight[each] * np.sqrt(noise)
            if place.size and place[alive[each]] >= 0:
                by_place[place[alive[each]]] += weight[each] * np.sqrt(noise)
        formed, all_form = formed + own_form * own_form, all_form + own_form
        at = begin
        for path in range(first, stop if part.size else first):
            own = 0.0
            if at < end and alive[at] == path:
                own = held[at]
                at += 1
            if part[path] < 1.0:
                size, away = all_weight[path] * np.sqrt(1.0 / part[path] - 1.0), own - rate
                hours, hours_square = hours + size, hours_square + size * (away * away)
        rest = RUNS * in_bins + HOURS * HOURS * hours * hours_square / 2 + (TOGETHER * both) ** 2
        rest += FORM * formed + FORM_OF_ALL * (all_form * all_form)
        for each in range(by_place.size):
            rest += APART * (by_place[each] * by_place[each])
        for cut in range(lumps.shape[0]):
            moved = 0.0
            for each in range(begin, end):
                moved += lumps[cut, each]
            rest += (LUMPS * moved) ** 2
        usual = reach / total[group] if total[group] > 0.0 else 0.0  # what a row that is rarely met stands for
        one = (chosen + DOUBT * usual**2) / (count[group] + DOUBT * usual) if usual > 0.0 else 0.0
        rest += (edge[group] * rate / NORMAL) ** 2 + (SURE * count[group]) ** 2
        middle = count[group] + NORMAL * NORMAL * one / 2
        half = np.sqrt(
            NORMAL * NORMAL * one * count[group] + (NORMAL * NORMAL * one / 2) ** 2 + NORMAL * NORMAL * max(rest, 0.0)
        )
        low[group] = min(max(middle - half + skew[group], 0.0), count[group])
        high[group] = max(min(middle + half, total[group] + edge[group]), count[group])
    return low, high


@compiled
def reaches(weight: Floats, part: Floats, offset: Integers, in_scope: Integers, total: Floats, effect: float) -> Floats:
    """Paths: by how much the squared error grows for each unit of difference between neighbouring paths.

    Where a group has no path in scope, those of other days speak for it, and all of it may be otherwise. `effect` is
    that of the choice of paths.
    """
    reach = np.empty(weight.size)
    for group in range(offset.size - 1):
        for path in range(offset[group], offset[group + 1]):
            if in_scope[group]:
                others = weight[path] - (part[path] if part.size else 1.0)
                reach[path] = effect * weight[path] * others if others > ROUNDING * weight[path] else 0.0
            else:
                reach[path] = weight[path] * total[group]
    return reach
