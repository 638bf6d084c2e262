"""Told: all that paths tell of one feature, and how it goes with another, in one call of machine code.

What `estimate` and `sampled` compute when they are asked, statistic by statistic, is put together here from the same
functions, for the questions that most are: one condition, statistics of one feature, paths that speak for every group.
"""

from __future__ import annotations

import numpy as np

from synopsis.query import influences, intervals, mixtures, slices, weighing
from synopsis.query.sampled import STEADY
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers, Positions
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import Flags

#: Statistics by position; quantiles follow. Of each: estimate, low and high at 95%.
COUNT, MEAN, SUM, VARIANCE, DEVIATION, CORRELATION, QUANTILES = range(7)

#: Kinds of clauses: none, a single leaf, any other.
ANYTHING, LEAF, OTHER = range(3)


@compiled
def _arange(size: int) -> Positions:
    found = np.empty(size, np.int32)
    for each in range(size):
        found[each] = each
    return found


@compiled
def _row(features: Integers, feature: int) -> int:
    """Where a feature stands among those that are opened."""
    for row in range(features.size):
        if features[row] == feature:
            return row
    return -1


@compiled
def _kept(table: Floats) -> Floats:
    """A table without what is below nothing."""
    found = np.empty(table.shape)
    for slot in range(table.shape[0]):
        for each in range(table.shape[1]):
            found[slot, each] = max(table[slot, each], 0.0)
    return found


@compiled
def _lumps(
    cuts: Floats,
    tables: Floats,
    leaf_features: Integers,
    features: Integers,
    mass: Floats,
    sizes: Integers,
    starts: Codes,
    top: Codes,
    tilt: slices.Tilts,
    stratum: Integers,
    codes: Codes,
    column: Positions,
    slot: Positions,
    weight: Floats,
    worth: Floats,
) -> Floats:
    """Ends of the condition's ranges x live paths: rows that are on either side of an end, nobody knows."""
    found = np.empty((cuts.shape[0], column.size))
    for cut in range(cuts.shape[0]):
        leaf = int(cuts[cut, 0])
        feature = leaf_features[leaf]
        row = _row(features, feature)
        axis = mass[feature, : sizes[feature] + 1]
        open_part = slices.between(starts[row], top[row], tilt[row], stratum, axis, cuts[cut, 1], cuts[cut, 2])
        for number in range(open_part.shape[0]):
            for each in range(open_part.shape[1]):
                open_part[number, each] = cuts[cut, 3] * open_part[number, each]
        amount = weighing.lumped(open_part, tables[leaf], codes[row], column, slot, weight, worth)
        for path in range(column.size):
            found[cut, path] = amount[path]
    return found


@compiled
def tell(
    wanted: Flags,
    shares: Floats,
    likely: bool,
    # the clause
    kind: int,
    steps: Integers,
    demanded: Integers,
    leaf_features: Integers,
    leaf_nulls: Flags,
    leaf_offset: Integers,
    leaf_ranges: Floats,
    cuts: Floats,
    # what it leaves of both features
    one: int,
    one_ranges: Floats,
    lowest: float,
    highest: float,
    two: int,
    two_ranges: Floats,
    first: bool,
    # mass axes
    mass: Floats,
    sizes: Integers,
    low: Floats,
    high: Floats,
    totals: Floats,
    step: Floats,
    # strata
    features: Integers,
    starts: Codes,
    top: Codes,
    tilt: slices.Tilts,
    counts: Integers,
    codes: Codes,
    ordinal: Integers,
    day_offset: Integers,
    day_rows: Integers,
    day_kept: Integers,
    place: Integers,
    # covers
    day: Integers,
    share: Floats,
    day_begins: Integers,
    lean: Floats,
    lean_start: Integers,
    # slots
    stratum: Integers,
    whole: Integers,
    kept: Integers,
    begin: Integers,
    end: Integers,
    rows: Floats,
    slots: Integers,
    in_scope: Integers,
    days_cut: Integers,
) -> tuple[bool, Floats]:
    """Whether paths speak for every group, and if so, statistics x (estimate, low, high at 95%) x groups.

    Without `likely` there are no intervals. Features: `one`, which all statistics are of, and `two`, with which it
    correlates, if any; it is the `first` of both or not.
    """
    groups, bins = slots.size - 1, starts.shape[2]
    found = np.full((QUANTILES + shares.size, 3, groups), np.nan)
    covered, partly, cut = np.empty(rows.size), False, False
    for slot in range(rows.size):
        covered[slot] = rows[slot] / whole[slot]
        partly = partly or covered[slot] != 1.0
    for group in range(groups):
        cut = cut or days_cut[group] > 0
    total = weighing.added(rows, slots)
    days = (day_offset, day_rows, day_kept, day, share, stratum, begin, end, slots)
    column, slot_of, weight, part, at_place, paths = weighing.paths_of(
        *days, in_scope, kept, covered, total, cut, lean, lean_start, place
    )
    for group in range(groups):
        if paths[group + 1] == paths[group]:
            return False, found
    reach = influences.reaches(weight, part, paths, in_scope, total)
    edge = np.zeros(groups)
    if cut:
        edge = weighing.edges(ordinal, day_rows, day, share, days_cut, day_begins)

    # the clause
    tables = np.empty((leaf_features.size, rows.size, bins + 1))
    leaf_rows = np.empty(leaf_features.size, np.int64)
    for leaf in range(leaf_features.size):
        feature = leaf_features[leaf]
        leaf_rows[leaf] = _row(features, feature)
        row, ranges = leaf_rows[leaf], leaf_ranges[leaf_offset[leaf] : leaf_offset[leaf + 1]]
        axis = mass[feature, : sizes[feature] + 1]
        table = slices.shares(starts[row], top[row], tilt[row], stratum, axis, ranges, 1.0 if leaf_nulls[leaf] else 0.0)
        for number in range(table.shape[0]):
            for each in range(table.shape[1]):
                tables[leaf, number, each] = table[number, each]
    which, live = _arange(column.size), paths
    alive, live_column, live_slot, live_weight, live_mass = which, column, slot_of, weight, weight
    held, once, twice = np.ones(column.size), np.empty(0), np.empty(0)
    if kind == ANYTHING:
        worths = weighing.worths(weight, paths)
    else:
        numbers, real, live, worths = weighing.alive(
            steps, tables, leaf_rows, demanded, codes, which, column, slot_of, weight, paths
        )
        alive, live_column, live_slot = numbers[0], numbers[1], numbers[2]
        live_weight, held, live_mass, once, twice = real[0], real[1], real[2], real[3], real[4]
    for group in range(groups):
        if not worths[0, group] > 0.0:
            return False, found
    lumps = np.empty((0, 0))
    if likely and cuts.shape[0]:
        own = (starts, top, tilt, stratum, codes, live_column, live_slot, live_weight, live_mass)
        lumps = _lumps(cuts, tables, leaf_features, features, mass, sizes, *own)

    # how lucky paths were, where exact counts tell
    nobody, none, no_table = np.empty(0, np.int32), np.empty(0), np.empty((0, 0))
    nowhere = np.zeros(groups + 1, np.int64)
    unlucky = (nobody, nobody, nobody, none, none, none, nowhere)
    luck, exact = unlucky, kind == ANYTHING or (kind == LEAF and leaf_features[0] == one)
    usual = np.empty(rows.size)
    if partly and kind != OTHER:
        luck = weighing.luck_of(*days, whole, kept, covered, lean, lean_start)
        for slot in range(rows.size):
            usual[slot] = STEADY * whole[slot] / max(kept[slot], 1)
    row, axis = _row(features, one), mass[one, : sizes[one] + 1]
    expected = weighing.counted(counts[row], stratum, covered)
    untouched = expected
    if exact and luck[3].size:
        untouched = weighing.lucky(expected, covered, usual, codes[row], luck[0], luck[1], luck[2], luck[3], luck[4])

    # the count
    count = total if kind == ANYTHING else worths[0]
    counted_low, counted_high = np.empty(groups), np.empty(groups)
    skew, met, leaf_row = np.zeros(groups), no_table, 0
    if kind == LEAF:
        leaf_row, met, of_leaf = leaf_rows[0], tables[0], untouched
        if not exact:
            of_leaf = weighing.counted(counts[leaf_row], stratum, covered)
            if luck[3].size:
                of_leaf = weighing.lucky(
                    of_leaf, covered, usual, codes[leaf_row], luck[0], luck[1], luck[2], luck[3], luck[4]
                )
        count = weighing.weighed(of_leaf, met, slots, 1.0)
        skew = weighing.weighed(of_leaf, met, slots, -1.0)
    if likely and kind == ANYTHING:
        for group in range(groups):
            counted_low[group], counted_high[group] = max(count[group] - edge[group], 0.0), count[group] + edge[group]
    elif likely and (wanted[COUNT] or wanted[SUM]):
        of_luck = luck if kind == LEAF else unlucky
        counted_low, counted_high = influences.of_count(
            met, codes[leaf_row], of_luck[0], of_luck[1], of_luck[2], of_luck[5], of_luck[6], reach,
            alive, live_weight, held, twice, weight, part, at_place, lumps, paths, live, count, total, edge, skew,
        )  # fmt: skip
    _put(found, COUNT, count, counted_low, counted_high, likely)

    # the numbers of the feature
    one_tables = slices.measured(starts[row], top[row], tilt[row], stratum, axis, totals[one], one_ranges)
    is_counted = np.empty(groups, np.bool_)
    for group in range(groups):
        is_counted[group] = exact
    summed = _kept(untouched) if exact else no_table
    masses, size, average, variance = weighing.numbered(
        one_tables, summed, is_counted, codes[row], live_column, live_slot, live_mass, slots, live
    )
    heard = np.ones(groups, np.bool_)
    if kind == LEAF and not exact:
        value = weighing.sums(size, average, heard, count, worths[0])
    else:
        value = weighing.sums(size, average, np.empty(0, np.bool_), none, none)
    deviation = np.sqrt(variance)
    own_luck = luck if exact else unlucky
    uncovered = np.empty(rows.size if exact else 0)
    for slot in range(uncovered.size):
        uncovered[slot] = 1.0 - covered[slot]
    about = (
        reach,
        alive,
        live_slot,
        live_weight,
        held,
        worths[1],
        once,
        twice,
        lumps,
        part,
        at_place,
        slots,
        paths,
        live,
    )
    given = (
        one_tables, size, average, variance, expected, codes[row], live_column,
        own_luck[0], own_luck[1], own_luck[2], own_luck[5], untouched if exact else no_table, uncovered, own_luck[6],
    )  # fmt: skip
    ends = (low[one, : sizes[one]], high[one, : sizes[one]])
    least, most = none, none
    if likely and (wanted[MEAN] or wanted[SUM] or wanted[VARIANCE]):
        least, most = slices.extremes(
            starts[row],
            top[row],
            stratum,
            slots,
            ends[0],
            ends[1],
            counts[row],
            covered,
            one_tables[0],
            lowest,
            highest,
        )
    mean_low, mean_high = none, none
    if likely and (wanted[MEAN] or (wanted[SUM] and kind != ANYTHING)):
        half, off = influences.of_numbers(influences.AVERAGE, 0.0, no_table, *given, *about)
        mean_low, mean_high = intervals.average(size, average, half, off, least, most, heard)
    _put(found, MEAN, average, mean_low, mean_high, mean_low.size > 0)
    sum_low, sum_high = none, none
    if likely and wanted[SUM] and kind == ANYTHING:
        half, off = influences.of_numbers(influences.TOTAL, 0.0, no_table, *given, *about)
        sum_low, sum_high = intervals.plain_total(size, average, value, half, off, edge, heard)
    elif likely and wanted[SUM]:
        sum_low, sum_high = intervals.total_of(
            size, average, value, count, counted_low, counted_high, mean_low, mean_high
        )
    _put(found, SUM, value, sum_low, sum_high, sum_low.size > 0)
    if wanted[VARIANCE]:
        from_low, from_high, root_low, root_high = none, none, none, none
        if likely:
            half, off = influences.of_numbers(influences.VARIANCE, 0.0, no_table, *given, *about)
            from_low, from_high = intervals.variance(size, variance, half, off, least, most, heard)
            root_low, root_high = intervals.roots(from_low, from_high, deviation)
        _put(found, VARIANCE, variance, from_low, from_high, likely)
        _put(found, DEVIATION, deviation, root_low, root_high, likely)

    # quantiles
    if shares.size:
        flat_low, flat_high, flat_mass, flat_offset = slices.pieces(
            starts[row], top[row], tilt[row], stratum, axis, slots, masses, one_ranges
        )
        mixture = mixtures.running(flat_low, flat_high, flat_mass, flat_offset)
        for turn in range(shares.size):
            rank = shares[turn]
            at = mixtures.valued(*mixture, axis, *ends, step[one], rank)
            wide_low, wide_high = none, none
            if likely and 0.0 < rank < 1.0:
                left = slices.below(starts[row], top[row], tilt[row], stratum, axis, slots, at[0])
                half, off = influences.of_numbers(influences.QUANTILE, rank, left, *given, *about)
                wide_low, wide_high = mixtures.around(
                    *mixture, axis, *ends, step[one], rank, half, off, at[1], heard, none, none
                )
            _put(found, QUANTILES + turn, at[1], wide_low, wide_high, wide_low.size > 0)

    # how it goes with another feature
    if two >= 0:
        other, axis = _row(features, two), mass[two, : sizes[two] + 1]
        two_tables = slices.measured(starts[other], top[other], tilt[other], stratum, axis, totals[two], two_ranges)
        exact = kind == ANYTHING or (kind == LEAF and leaf_features[0] == two)
        for group in range(groups):
            is_counted[group] = exact
        summed = no_table
        if exact:
            summed = weighing.counted(counts[other], stratum, covered)
            if luck[3].size:
                summed = weighing.lucky(
                    summed, covered, usual, codes[other], luck[0], luck[1], luck[2], luck[3], luck[4]
                )
            summed = _kept(summed)
        _, _, second_average, _ = weighing.numbered(
            two_tables, summed, is_counted, codes[other], live_column, live_slot, live_mass, slots, live
        )
        x, y = (row, other) if first else (other, row)
        x_tables, y_tables = (one_tables, two_tables) if first else (two_tables, one_tables)
        x_mean, y_mean = (average, second_average) if first else (second_average, average)
        both = (codes[x], codes[y], x_tables, y_tables, x_mean, y_mean, live_column)
        pair = influences.paired(*both, live_slot, live_mass, live)
        r = intervals.correlated(pair[1], pair[2], pair[3])
        r_low, r_high = none, none
        if likely:
            half = influences.of_pair(r, pair, *both, *about)
            r_low, r_high = intervals.correlation(r, half, pair[4], pair[5], pair[2], pair[3], slots)
        _put(found, CORRELATION, r, r_low, r_high, likely)
    return True, found


@compiled
def _put(found: Floats, statistic: int, estimate: Floats, low: Floats, high: Floats, likely: bool) -> None:
    """Write down a statistic of every group."""
    for group in range(estimate.size):
        found[statistic, 0, group] = estimate[group]
        if likely:
            found[statistic, 1, group], found[statistic, 2, group] = low[group], high[group]
