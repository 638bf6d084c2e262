"""Told: all that paths tell of one feature, and how it goes with another, in one call of machine code.

What `estimate` and `sampled` compute when they are asked, statistic by statistic, is put together here from the same
functions, for the questions that most are: one condition, statistics of one feature, groups that have paths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synopsis.query import (
    chance,
    clauses,
    contents,
    correlations,
    independence,
    influences,
    intervals,
    mixtures,
    recalled,
    slices,
    stretched,
    vectors,
    weighing,
)
from synopsis.sketch.compiled import compiled
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.strata import Flags
from synopsis.sketch.tilts import Tilts

#: Statistics by position; quantiles follow. Of each: estimate, low and high at 95%.
COUNT, MEAN, SUM, VARIANCE, DEVIATION, CORRELATION, QUANTILES = range(7)

#: Kinds of clauses: none, a single leaf, any other.
ANYTHING, LEAF, OTHER = range(3)


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
    one_others: Integers,
    one_ranges: Floats,
    lowest: float,
    highest: float,
    two: int,
    two_others: Integers,
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
    stops: Codes,
    tilt: Tilts,
    counts: Integers,
    codes: Codes,
    ordinal: Integers,
    day_offset: Integers,
    day_rows: Integers,
    day_kept: Integers,
    place: Integers,
    even: bool,
    pace: float,
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
    # stretches
    facts: Integers,
    stretch_offset: Integers,
    shift: Floats,
    stretch_count: Integers,
    centre: Floats,
    unit: Floats,
    levels: Floats,
    # effects of the choice of paths: on shares of rows, and on the mean of each feature; how often stretches of each
    # were rounded
    effects: Floats,
) -> tuple[bool, Floats]:
    """Whether every group has paths, and if so, statistics x (estimate, low, high at 95%) x groups.

    Where none of them satisfies the clause, features are taken to be independent: `others` are the steps of what is
    demanded of features but the one.
    Without `likely` there are no intervals. Features: `one`, which all statistics are of, and `two`, with which it
    correlates, if any; it is the `first` of both or not. `shares` are those of quantiles.
    """
    groups, bins = slots.size - 1, starts.shape[2]
    found = np.empty((QUANTILES + shares.size, 3, groups))
    covered, partly, cut = np.empty(rows.size), False, False
    for slot in range(rows.size):
        covered[slot] = rows[slot] / whole[slot]
        partly = partly or covered[slot] != 1.0
    for group in range(groups):
        cut = cut or days_cut[group] > 0
    lean, timed = weighing.speaking(day, share, day_kept, lean, lean_start, day_begins, even)
    hours = False
    for group in range(groups):
        hours = hours or (days_cut[group] > 0 and (even or not timed[group]))
    total = weighing.added(rows, slots)
    days = (day_offset, day_rows, day_kept, day, share, stratum, begin, end, slots)
    column, slot_of, weight, part, at_place, paths = weighing.paths_of(
        *days, in_scope, kept, covered, total, hours, lean, lean_start, timed, place, even, pace
    )
    for group in range(groups):
        if paths[group + 1] == paths[group]:
            return False, found
    reach = influences.reaches(weight, part, paths, in_scope, total, effects[0])
    edge = np.zeros(groups)
    if cut and lean.size and not even:
        edge = weighing.leaning_edges(day_rows, day_kept, day, share, lean, lean_start, day_begins)
    elif cut:
        edge = weighing.edges(ordinal, day_rows, day, share, days_cut, day_begins, pace)

    # the clause
    tables = np.empty((leaf_features.size, rows.size, bins + 1))
    leaf_rows = np.empty(leaf_features.size, np.int64)
    for leaf in range(leaf_features.size):
        feature = leaf_features[leaf]
        leaf_rows[leaf] = vectors.row(features, feature)
        row, ranges = leaf_rows[leaf], leaf_ranges[leaf_offset[leaf] : leaf_offset[leaf + 1]]
        axis = mass[feature, : sizes[feature] + 1]
        table = slices.shares(
            starts[row], stops[row], tilt[row], stratum, axis, ranges, 1.0 if leaf_nulls[leaf] else 0.0
        )
        for number in range(table.shape[0]):
            for each in range(table.shape[1]):
                tables[leaf, number, each] = table[number, each]
    which, live = vectors.arange(column.size), paths
    alive, live_column, live_slot, live_weight, live_mass = which, column, slot_of, weight, weight
    held, once, twice = vectors.ones(column.size), np.empty(0), np.empty(0)
    if kind == ANYTHING:
        worths = weighing.worths(weight, paths)
    else:
        numbers, real, live, worths = clauses.alive(
            steps, tables, leaf_rows, demanded, codes, which, column, slot_of, weight, paths
        )
        alive, live_column, live_slot = numbers[0], numbers[1], numbers[2]
        live_weight, held, live_mass, once, twice = real[0], real[1], real[2], real[3], real[4]
    heard_by, all_heard = vectors.flags(groups, True), True
    for group in range(groups):
        heard_by[group] = worths[0, group] > 0.0
        all_heard = all_heard and heard_by[group]
    leaf_shares = np.empty((0, 0))
    if not all_heard:
        leaf_shares = independence.leaf_shares(tables, counts, leaf_rows, stratum, whole)
    lumps = np.empty((0, 0))
    if likely and cuts.shape[0]:
        own = (starts, stops, tilt, stratum, codes, live_column, live_slot, live_weight, live_mass)
        lumps = clauses.lumps(cuts, tables, leaf_features, features, mass, sizes, *own)

    # how lucky paths were, where exact counts tell
    nobody, none, no_table = np.empty(0, np.int32), np.empty(0), np.empty((0, 0))
    nowhere = np.zeros(groups + 1, np.int64)
    unlucky = (nobody, nobody, nobody, none, none, none, nowhere, none, none)
    luck, exact = unlucky, kind == ANYTHING or (kind == LEAF and leaf_features[0] == one)
    if partly and kind != OTHER:
        luck = chance.runs_of(
            *days, whole, kept, in_scope, covered, lean, lean_start, even, effects[0], counts.shape[2]
        )
    known = (stratum, covered, whole, kept, luck)
    every_day = (counts.shape[2], day_offset, day_rows, day_kept, stratum, even)
    row, axis = vectors.row(features, one), mass[one, : sizes[one] + 1]
    expected = contents.counted(counts[row], stratum, covered)
    own_luck = luck if exact else unlucky
    of_all = chance.gathered(codes[row], *every_day, own_luck[7], own_luck[8])
    untouched = contents.corrected(counts[row], codes[row], *known, of_all, slots) if exact else expected

    # the count
    count = total if kind == ANYTHING else worths[0].copy()
    if not all_heard and kind == OTHER:
        alone = independence.alone(steps, leaf_shares)
        for group in range(groups):
            if not heard_by[group]:
                count[group] = independence.unseen(
                    alone, rows, slots[group], slots[group + 1], paths[group + 1] - paths[group]
                )
    counted_low, counted_high = none, none
    skew, met, leaf_row, all_of_leaf = np.zeros(groups), no_table, 0, of_all
    if kind == LEAF:
        leaf_row, met = leaf_rows[0], tables[0]
        if not exact:
            all_of_leaf = chance.gathered(codes[leaf_row], *every_day, luck[7], luck[8])
        of_leaf = (
            untouched if exact else contents.corrected(counts[leaf_row], codes[leaf_row], *known, all_of_leaf, slots)
        )
        count = contents.weighed(of_leaf, met, slots, 1.0)
        skew = contents.weighed(of_leaf, met, slots, -1.0)
    if likely and kind == ANYTHING:
        counted_low, counted_high = np.empty(groups), np.empty(groups)
        for group in range(groups):
            counted_low[group], counted_high[group] = max(count[group] - edge[group], 0.0), count[group] + edge[group]
    elif likely and (wanted[COUNT] or wanted[SUM]):
        of_luck = luck if kind == LEAF else unlucky
        counted_low, counted_high = influences.of_count(
            met, codes[leaf_row], of_luck, all_of_leaf, slots, reach,
            alive, live_slot, live_weight, held, twice, weight, part, at_place, lumps,
            paths, live, count, total, edge, skew,
        )  # fmt: skip
        for group in range(groups):
            if kind == OTHER and not heard_by[group]:
                counted_low[group] = 0.0
    vectors.put(found[COUNT], count, counted_low, counted_high)

    # the numbers of the feature
    one_tables = slices.measured(starts[row], stops[row], tilt[row], stratum, axis, totals[one], one_ranges)
    is_counted, heard = vectors.flags(groups, exact), vectors.flags(groups, True)
    summed = vectors.kept(untouched) if exact else no_table
    if not exact and not all_heard:
        summed = independence.rows_of_bins(expected, independence.alone(one_others, leaf_shares))
        for group in range(groups):
            heard[group], is_counted[group] = heard_by[group], not heard_by[group]
    masses, size, average, variance = contents.numbered(
        one_tables, summed, is_counted, codes[row], live_column, live_slot, live_mass, slots, live
    )
    # Where stretches are kept, they tell count, mean and variance better; of these the bins tell ranks alone. Of some
    # hours of a day stretches tell little, and paths that know their hours much.
    by_bins, is_stretched, any_by_bins = (size, average, variance), False, True
    by_stretches = vectors.flags(groups, False)
    if kind == ANYTHING and stretch_count.size > 0:
        by_stretches = weighing.mostly_whole(day_rows, day, share, day_begins, timed)
        any_by_bins = False
        for group in range(groups):
            is_stretched, any_by_bins = is_stretched or by_stretches[group], any_by_bins or not by_stretches[group]
    known_days: tuple[Any, ...] = (day_kept, day_rows, day, share, begin, end, slots, timed, effects[1 + one])
    stretches, in_groups = no_table, nowhere
    if is_stretched:
        stretches, in_groups = recalled.gathered(
            facts[0], stretch_offset[0, : stretch_count[0] + 1], shift[0], centre[one], unit[one], levels[one],
            starts[row], stops[row], codes[row], one_tables, day_offset, day_rows, day_kept,
            day, share, stratum, begin, end, slots, lean, lean_start,
        )  # fmt: skip
        recalled.often_rounded(stretches, effects[1 + effects.size // 2 + one])
        size, average, variance = vectors.either(
            by_stretches, stretched.numbers(stretches, in_groups, centre[one]), by_bins
        )
    if kind == LEAF and not exact:
        value = contents.sums(size, average, heard, count, worths[0])
    else:
        value = contents.sums(size, average, np.empty(0, np.bool_), none, none)
    deviation = np.empty(groups)
    for group in range(groups):
        deviation[group] = np.sqrt(variance[group])
    uncovered = np.empty(rows.size if exact else 0)
    for slot in range(uncovered.size):
        uncovered[slot] = 1.0 - covered[slot]
    about: tuple[Any, ...] = (
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
    given: tuple[Any, ...] = (
        one_tables, by_bins[0], by_bins[1], by_bins[2], expected, masses, codes[row], live_column,
        own_luck, of_all, untouched if exact else no_table, uncovered,
    )  # fmt: skip
    ends = (low[one, : sizes[one]], high[one, : sizes[one]])
    least, most = none, none
    if likely and (wanted[MEAN] or wanted[SUM] or wanted[VARIANCE] or not all_heard):
        least, most = slices.extremes(
            starts[row],
            stops[row],
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
    of_stretches: tuple[Any, ...] = (
        stretches, in_groups, centre[one] if is_stretched else 0.0,
        codes[row], one_tables, size, average, variance, expected,
    )  # fmt: skip
    halves, skews = np.empty((influences.QUANTILE, groups)), np.empty((influences.QUANTILE, groups))
    is_wanted = (
        wanted[MEAN] or (wanted[SUM] and kind != ANYTHING),
        wanted[SUM] and kind == ANYTHING,
        wanted[VARIANCE],
    )
    for statistic in range(influences.QUANTILE):
        if likely and is_wanted[statistic]:
            half, off = np.zeros(groups), np.zeros(groups)
            if any_by_bins:
                half, off, _ = influences.of_numbers(statistic, 0.0, no_table, *given, *about)
            if is_stretched:
                of_stretched = stretched.errors(statistic, *of_stretches, *known_days)
                for group in range(groups):
                    if by_stretches[group]:
                        half[group], off[group] = of_stretched[group], 0.0
            for group in range(groups):
                halves[statistic, group], skews[statistic, group] = half[group], off[group]
    mean_low, mean_high = none, none
    if likely and (wanted[MEAN] or (wanted[SUM] and kind != ANYTHING)):
        half, off = halves[influences.AVERAGE], skews[influences.AVERAGE]
        mean_low, mean_high = intervals.average(size, average, half, off, least, most, heard)
    vectors.put(found[MEAN], average, mean_low, mean_high)
    sum_low, sum_high = none, none
    if likely and wanted[SUM] and kind == ANYTHING:
        half, off = halves[influences.TOTAL], skews[influences.TOTAL]
        sum_low, sum_high = intervals.plain_total(size, average, value, half, off, edge, heard)
    elif likely and wanted[SUM]:
        sum_low, sum_high = intervals.total_of(
            size, average, value, count, counted_low, counted_high, mean_low, mean_high,
            size if exact else worths[0], worths[1],
        )  # fmt: skip
    if sum_low.size and not exact and not all_heard:
        any_low, any_high = intervals.unheard_total(size, value, counted_high, least, most)
        for group in range(groups):
            if not heard[group]:
                sum_low[group], sum_high[group] = any_low[group], any_high[group]
    vectors.put(found[SUM], value, sum_low, sum_high)
    var_low, var_high, std_low, std_high = none, none, none, none
    if likely and wanted[VARIANCE]:
        half, off = halves[influences.VARIANCE], skews[influences.VARIANCE]
        var_low, var_high = intervals.variance(size, variance, half, off, least, most, heard)
        std_low, std_high = intervals.roots(var_low, var_high, deviation)
    vectors.put(found[VARIANCE], variance, var_low, var_high)
    vectors.put(found[DEVIATION], deviation, std_low, std_high)

    # ranks
    if shares.size:
        flat = slices.pieces(starts[row], stops[row], tilt[row], stratum, axis, slots, masses, one_ranges)
        mixture = mixtures.running(*flat)
        known_ends = slices.known_ends(
            starts[row], stops[row], stratum, slots, axis, counts[row], covered, one_tables[0], exact
        )
        for turn in range(shares.size):
            rank, wide_low, wide_high = shares[turn], none, none
            if 0.0 < rank < 1.0:
                at = mixtures.valued(*mixture, axis, *ends, step[one], rank)
            else:
                at = mixtures.outermost(*mixture, axis, *ends, step[one], rank, *known_ends)
            if likely and 0.0 < rank < 1.0:
                left = slices.below(starts[row], stops[row], tilt[row], stratum, axis, slots, at[0])
                half, off, tells = influences.of_numbers(influences.QUANTILE, rank, left, *given, *about)
                seen, unseen = mixture, np.zeros(groups)
                if not exact:
                    is_doubted, doubted, unseen = mixtures.doubted(
                        masses, expected, one_tables[0], by_bins[0], tells, slots
                    )
                    if is_doubted:
                        own_pieces = (starts[row], stops[row], tilt[row], stratum, axis, slots, doubted, one_ranges)
                        seen = mixtures.running(*slices.pieces(*own_pieces))
                wide_low, wide_high = mixtures.around(
                    *seen, axis, ends[0], ends[1], step[one], rank, half, off, at[0], at[1], heard, least, most, unseen
                )
            vectors.put(found[QUANTILES + turn], at[1], wide_low, wide_high)

    # how it goes with another feature
    if two >= 0:
        other, axis = vectors.row(features, two), mass[two, : sizes[two] + 1]
        two_tables = slices.measured(starts[other], stops[other], tilt[other], stratum, axis, totals[two], two_ranges)
        exact = kind == ANYTHING or (kind == LEAF and leaf_features[0] == two)
        is_counted = vectors.flags(groups, exact)
        summed = no_table
        if exact:
            all_of_other = chance.gathered(codes[other], *every_day, luck[7], luck[8])
            summed = vectors.kept(contents.corrected(counts[other], codes[other], *known, all_of_other, slots))
        if not exact and not all_heard:
            summed = independence.rows_of_bins(
                contents.counted(counts[other], stratum, covered), independence.alone(two_others, leaf_shares)
            )
            for group in range(groups):
                is_counted[group] = not heard_by[group]
        other_masses, _, second_average, other_variance = contents.numbered(
            two_tables, summed, is_counted, codes[other], live_column, live_slot, live_mass, slots, live
        )
        x, y = (row, other) if first else (other, row)
        x_tables, y_tables = (one_tables, two_tables) if first else (two_tables, one_tables)
        x_mean, y_mean = (by_bins[1], second_average) if first else (second_average, by_bins[1])
        both = (codes[x], codes[y], x_tables, y_tables, x_mean, y_mean, live_column)
        pair = correlations.paired(*both, live_slot, live_mass, live)
        r = intervals.correlated(pair[1], pair[2], pair[3])
        for group in range(groups):
            if not heard_by[group]:
                ends_of = (slots[group], slots[group + 1], by_bins[1][group], second_average[group])
                spreads = (by_bins[2][group], other_variance[group])
                r[group] = independence.correlated(
                    masses, other_masses, one_tables[1], two_tables[1], *ends_of, *spreads
                )
        r_low, r_high = none, none
        if likely:
            # What was learnt of shares and means does not hold for products.
            as_told = influences.reaches(weight, part, paths, in_scope, total, 1.0)
            half = correlations.of_pair(r, pair, *both, as_told, *about[1:])
            r_low, r_high = intervals.correlation(r, half, pair[4], pair[5], pair[2], pair[3], slots)
        vectors.put(found[CORRELATION], r, r_low, r_high)
    return True, found
