"""Batches that are added to a summary, from rows in memory."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synopsis.sketch import blocks, stretches
from synopsis.sketch.budget import even_choice, tallied, whereabouts
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.fine import FineSums
from synopsis.sketch.foretelling import told
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import ABSENT, Scales
from synopsis.sketch.strata import bin_ranges, from_tallies
from synopsis.sketch.stretches import Stretching
from synopsis.sketch.summary import Summary, cut, place_order
from synopsis.sketch.tallies import DAY_US, EVERYTHING, Tallies

HOUR_US = DAY_US // 24
DAYS, PLACES = 120, 6


class Rows:
    """Rows of a few places, hourly or daily; temperatures that follow a season, rain, and a feature often absent."""

    def __init__(self, seed=0, per_day=6, days=DAYS, places=PLACES):
        random = np.random.default_rng(seed)
        place, day, slot = (each.reshape(-1) for each in np.meshgrid(*map(np.arange, (places, days, per_day))))
        self.latitude = np.array([4.0, 4.5, -30.0, 51.25, 51.3, 12.0])[place]
        self.longitude = np.array([7.0, 7.1, 60.0, 0.0, 0.5, -80.0])[place]
        self.local_us = day * DAY_US + slot * (24 // per_day) * HOUR_US
        warm = 15.0 * np.sin(day / 60.0) + 3.0 * place + random.normal(0.0, 3.0, day.size)
        rain = np.where(random.random(day.size) < 0.7, 0.0, random.gamma(0.5, 6.0, day.size).round(1))
        gusts = np.where(random.random(day.size) < 0.4, np.nan, warm * 2 + random.normal(0.0, 2.0, day.size))
        self.values = np.stack((warm, rain, gusts))

    def take(self, which):
        part = object.__new__(Rows)
        part.latitude, part.longitude, part.local_us = self.latitude[which], self.longitude[which], self.local_us[which]
        part.values = self.values[:, which]
        return part

    @property
    def size(self):
        return self.local_us.size


STATIONS = PathLayout(EVERYTHING, 15, 0.4, 4 * HOUR_US, True)
LAYOUTS = {
    "stations": STATIONS,
    "quarters": replace(STATIONS, months=3),
    "shared bins": replace(STATIONS, region_bits=5),
    "every path": replace(STATIONS, kept=1.0),
    "moving": PathLayout(EVERYTHING, 31, 0.4, 1, False, 5, 12),
}


def known(rows, layout):
    """The features of all rows, with where and when they were where that is asked of moving objects."""
    if layout.place_bits is None:
        return rows.values
    return np.concatenate((rows.values, whereabouts(rows.latitude, rows.longitude, rows.local_us, layout.place_bits)))


def tallies_of(rows, layout, scales):
    fine = scales.codes(known(rows, layout))
    kept = even_choice(rows.latitude, rows.longitude, rows.local_us, fine, layout)
    levels = None
    if layout.stretching is not None:
        tables = layout.stretching.levels_of_codes(scales)
        levels = np.stack([table[codes] for table, codes in zip(tables, fine, strict=True)])
    return tallied(rows.latitude, rows.longitude, rows.local_us, fine, kept, layout, levels)


class Plan:
    """A layout with scales and contexts of all rows."""

    def __init__(self, rows, layout, stretch_days=0):
        self.scales = Scales.fit(known(rows, layout))
        stretching = Stretching.of(self.scales, stretch_days) if stretch_days else None
        self.layout = replace(layout, stretching=stretching)
        made = from_tallies(self.scales, tallies_of(rows, self.layout, self.scales), layout.bins)
        self.contexts = Contexts.fit(made.codes, layout.bins)

    def summary(self, rows, there=None):
        """The summary of rows; where something is `there`, such as can be added to it."""
        tallies = tallies_of(rows, self.layout, self.scales)
        lumps = None if there is None else there.only_bins.lumps(tallies)
        strata = from_tallies(self.scales, tallies, self.layout.bins, self.layout.stretching, lumps)
        places = tallies.latitude, tallies.longitude
        even = self.layout.evenly(*places)
        made = tuple(blocks.closed(strata.take(run), self.contexts, even) for run in cut(strata))
        return Summary(self.layout, *places, self.scales, self.contexts, made)

    def added(self, batches):
        whole = batches[0] if isinstance(batches[0], Summary) else self.summary(batches[0])
        for batch in batches[1:]:
            whole = whole + self.summary(batch, whole)
        return whole


def everything(summary):
    return summary.opened(range(len(summary.scales.quantizers)))


def days_of(summary):
    """Rows and paths by place and day."""
    found = {}
    for strata in everything(summary):
        for place, day, rows, kept in zip(strata.day_place, strata.day, strata.day_rows, strata.day_kept, strict=True):
            if rows:
                key = float(summary.latitude[place]), float(summary.longitude[place]), int(day)
                assert key not in found, "two strata of one place and day"
                found[key] = int(rows), int(kept)
    return found


def keys_of(summary):
    return sorted(
        (float(summary.latitude[strata.run_place[run]]), float(summary.longitude[strata.run_place[run]]), int(period))
        for strata in everything(summary)
        for run, period in zip(strata.run_offset[:-1], strata.period, strict=True)
    )


def parted(rows, batches, seed):
    """Rows in so many batches, by chance."""
    which = np.random.default_rng(seed).integers(0, batches, rows.size)
    return [rows.take(which == batch) for batch in range(batches)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("stretch_days", [0, 10])
def test_rows_and_paths_of_days_are_the_same_in_whatever_batches_they_come(layout, stretch_days):
    rows = Rows()
    plan = Plan(rows, LAYOUTS[layout], 0 if layout == "moving" else stretch_days)
    whole = plan.summary(rows)
    for batches in (
        parted(rows, 4, 1),
        [rows.take(rows.local_us // DAY_US % 7 == day) for day in (3, 0, 6, 1, 2, 5, 4)],
    ):
        found = plan.added(batches)
        assert days_of(found) == days_of(whole)
        assert keys_of(found) == keys_of(whole)
        assert (found.rows, found.paths, found.strata) == (whole.rows, whole.paths, whole.strata)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_bin_holds_the_rows_that_it_counts(data):
    """Counts are exact in whatever order and number batches come, and every row lies where its bin says."""
    rows = Rows(seed=data.draw(st.integers(0, 3)), per_day=data.draw(st.sampled_from((1, 6))))
    plan = Plan(rows, data.draw(st.sampled_from(list(LAYOUTS.values()))), 0)
    cuts = sorted(data.draw(st.lists(st.integers(0, DAYS), min_size=1, max_size=6)))
    day = rows.local_us // DAY_US
    batches = [rows.take((day >= low) & (day < high)) for low, high in zip([0, *cuts], [*cuts, DAYS], strict=True)]
    batches = data.draw(st.permutations([batch for batch in batches if batch.size]))
    found = plan.added(batches)
    assert found.rows == rows.size
    assert_every_bin_holds_what_it_counts(found, plan, rows)


def assert_every_bin_holds_what_it_counts(found, plan, rows):
    """By the fine bins of all rows."""
    whole = tallies_of(rows, plan.layout, plan.scales)
    for strata in everything(found):
        for number in range(len(strata)):
            place = strata.run_place[strata.run_offset[number]]
            at = stratum_of(whole, found.latitude[place], found.longitude[place], strata.period[number], plan.layout)
            for feature in range(strata.features):
                mass = whole.mass[feature][at]
                counts = strata.counts[feature, number]
                starts, ends = strata.starts[feature, number], strata.ends[feature, number]
                used = ends > starts
                held = [int(mass[start:end].sum()) for start, end in zip(starts[used], ends[used], strict=True)]
                assert held == counts[:-1][used].tolist()
                assert counts[-1] == mass[ABSENT]
                assert counts.sum() == strata.rows[number]
    absent = sum(np.count_nonzero(strata.codes == found.layout.bins) for strata in everything(found))
    assert absent == np.count_nonzero(whole.kept_codes == ABSENT)


def stratum_of(tallies: Tallies, latitude, longitude, period, layout):
    """The stratum of tallies that a place and period belong to."""
    (place,) = np.flatnonzero((tallies.latitude == latitude) & (tallies.longitude == longitude))
    strata = np.unique(tallies.day_stratum[tallies.day_place == place])
    (found,) = strata[tallies.period[strata] == period]
    return found


def test_every_kept_value_lies_in_the_range_of_its_bin_after_many_batches():
    rows = Rows()
    plan = Plan(rows, LAYOUTS["every path"])
    day = rows.local_us // DAY_US
    found = plan.added([rows.take(day // 10 == decade) for decade in (5, 1, 0, 11, 10, 2, 3, 4, 9, 8, 7, 6)])
    for strata in everything(found):
        for number in range(len(strata)):
            place = strata.run_place[strata.run_offset[number]]
            own = rows.take((rows.latitude == found.latitude[place]) & (rows.longitude == found.longitude[place]))
            own = own.take(np.argsort(own.local_us))
            paths = slice(*strata.path_offset[number : number + 2])
            for feature in range(3):
                low, high = bin_ranges(strata, found.scales, feature)
                code = strata.codes[feature, paths]
                value = own.values[feature]
                assert ((code == strata.bins) == np.isnan(value)).all()
                here = code < strata.bins
                assert (low[number, code[here]] <= value[here]).all()
                assert (value[here] <= high[number, code[here]]).all()


def test_bins_that_serve_stay_as_they_are_so_that_the_order_of_further_batches_leaves_no_trace():
    """What the first batch has seen all values of is the layout of the others: counts and paths just add."""
    rows = Rows(days=80)
    shuffled = np.random.default_rng(2).permutation(rows.size)
    first = rows.take(np.sort(shuffled[: rows.size * 3 // 4]))
    plan = Plan(rows, LAYOUTS["stations"])
    base = plan.summary(first)
    rest = rows.take(np.sort(shuffled[rows.size * 3 // 4 :]))
    inside = np.ones(rest.size, np.bool_)
    fine = plan.scales.codes(rest.values)
    for place in np.unique(first.latitude):
        seen = plan.scales.codes(first.values[:, first.latitude == place])
        for feature in range(3):
            own = rest.latitude == place
            inside &= ~own | np.isin(fine[feature], np.append(seen[feature], ABSENT))
    rest = rest.take(inside)
    day = rest.local_us // DAY_US
    orders = ([0, 1, 2, 3], [3, 1, 0, 2])
    made = []
    for order in orders:
        whole = base
        for part in order:
            batch = rest.take(day % 4 == part)
            whole = whole + plan.summary(batch, whole)
        made.append(whole)
    for one, two in zip(everything(made[0]), everything(made[1]), strict=True):
        for name in ("starts", "counts", "codes", "day_rows", "day_kept", "run_place", "run_first"):
            assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert starts_of(base) == starts_of(made[0])


def starts_of(summary):
    """Where bins begin, by place."""
    return {
        float(summary.latitude[strata.run_place[run]]): strata.starts[:, number].tolist()
        for strata in everything(summary)
        for number, run in enumerate(strata.run_offset[:-1])
    }


def test_a_stratum_that_began_with_one_day_has_bins_of_all_that_came_after():
    """Bins that were chosen in winter cannot be parted in summer, but most of 15 still tell rows apart."""
    rows = Rows()
    plan = Plan(rows, LAYOUTS["stations"])
    day = rows.local_us // DAY_US
    first = plan.summary(rows.take(day == 0))
    found = plan.added([rows.take(day == each) for each in range(DAYS)])
    for strata in everything(found):
        for feature in (0, 2):
            shares = strata.counts[feature, :, :-1] / strata.counts[feature, :, :-1].sum(axis=1, keepdims=True)
            assert (1.0 / (shares**2).sum(axis=1)).min() > 4.0  # so many bins of equal mass would be as good
            assert shares.max() < 0.5
    reach = [np.ptp(np.concatenate([strata.ends[0] for strata in everything(each)])) for each in (first, found)]
    assert reach[1] > reach[0]


def test_means_of_stretches_come_through_many_batches():
    rows = Rows()
    plan = Plan(rows, LAYOUTS["stations"], 10)
    day = rows.local_us // DAY_US
    found = plan.added([rows.take(day == each) for each in range(DAYS)])
    whole = plan.summary(rows)
    axes = stretches.running(plan.scales, plan.layout.stretching)
    one, two = (read(summary, axes) for summary in (whole, found))
    assert np.array_equal(one[:, 0], two[:, 0])
    usual = stretches.LEVELS / np.sqrt(np.maximum(one[:, 0], 1))  # rounded ten times each, by a tenth of that
    assert np.abs((one - two)[:, 1] / usual).max() < 0.5
    assert np.abs((one - two)[:, 2] / usual).max() < 0.5
    assert np.abs((one - two)[:, 1:] / usual[:, None]).mean() < 0.1


@pytest.mark.parametrize("layout", ["stations", "quarters", "shared bins"])
def test_stretches_without_new_rows_stay_what_they_are_though_bins_and_scales_change(layout):
    rows = Rows()
    plan = Plan(rows, LAYOUTS[layout], 10)
    day = rows.local_us // DAY_US
    axes = stretches.running(plan.scales, plan.layout.stretching)
    first = plan.summary(rows.take((day >= 30) & (day < 60)))
    before = read(first, axes)
    found = plan.added([first, *(rows.take(day // 10 == each) for each in (0, 1, 2, 6, 7, 8, 9, 10, 11))])
    kept = [each for each in range(PLACES * DAYS // 10) if each % 12 in (3, 4, 5)]
    after = read(found, axes)
    assert starts_of(first) != starts_of(found)
    np.testing.assert_allclose(after[:, :, kept], before, rtol=1e-9, atol=1e-6)
    masses = (each * np.linspace(0.5, 1.5, each.size, dtype=each.dtype) for each in plan.scales.masses)
    scales = replace(plan.scales, masses=tuple(masses))
    again = read(found.rescaled(scales), stretches.running(scales, plan.layout.stretching))
    np.testing.assert_allclose(again, after, rtol=1e-9, atol=1e-6)


def read(summary, axes, days=10):
    """Features x (values, mean, deviation) x stretches, by place and time."""
    parts, keys = [], []
    for strata in everything(summary):
        parts.append(np.stack(told(strata, axes)))
        begin = strata.stretch_offsets[0][:-1]
        keys.append(summary.latitude[strata.day_place[begin]] * 1000 + strata.day[begin] // days)
    return np.concatenate(parts, axis=2)[:, :, np.argsort(np.concatenate(keys))]


def test_blocks_in_which_nothing_changes_stay_as_they_are():
    rows = Rows()
    plan = Plan(rows, LAYOUTS["stations"])
    south, north = rows.take(rows.latitude < 10), rows.take(rows.latitude > 10)
    one, two = plan.summary(south), plan.summary(north)
    both = one + two
    assert days_of(both) == days_of(plan.summary(rows))
    more = plan.summary(south.take(np.arange(5)), both)
    untouched = [block for block in both.blocks if both.latitude[block.place_low] > 10]
    again = both + more
    assert {block.head for block in untouched} <= {block.head for block in again.blocks}
    assert again.rows == both.rows + 5


def test_nothing_added_changes_nothing():
    rows = Rows()
    plan = Plan(rows, LAYOUTS["stations"])
    whole = plan.summary(rows)
    nothing = replace(whole, latitude=np.empty(0), longitude=np.empty(0), blocks=())
    assert days_of(whole + nothing) == days_of(nothing + whole) == days_of(whole)
    assert (nothing + nothing).rows == 0


def test_strata_that_were_not_made_to_be_joined_stand_beside_each_other():
    """As where a batch was made before another one came: nothing is lost, and what is certain holds."""
    rows = Rows()
    plan = Plan(rows, LAYOUTS["stations"])
    one, two = (plan.summary(part) for part in parted(rows, 2, 3))
    both = one + two
    assert both.rows == rows.size
    assert both.strata > one.strata
    assert both.latitude.size == one.latitude.size
    assert np.array_equal(place_order(both.latitude, both.longitude), np.sort(place_order(one.latitude, one.longitude)))


@pytest.mark.parametrize("stretch_days", [0, 10])
def test_fewer_bins_hold_whole_ones_and_count_the_same_rows(stretch_days):
    rows = Rows()
    plan = Plan(rows, replace(LAYOUTS["every path"], bins=47), stretch_days)
    whole = plan.summary(rows)
    fewer = whole.rebinned(15)
    assert (fewer.layout.bins, fewer.contexts.bins) == (15, 15)
    assert fewer.nbytes < whole.nbytes
    assert days_of(fewer) == days_of(whole)
    assert_every_bin_holds_what_it_counts(fewer, plan, rows)
    for one, two in zip(everything(whole), everything(fewer), strict=True):
        assert set(two.starts.reshape(-1)) - set(one.starts.reshape(-1)) <= set(two.ends.max(axis=2).reshape(-1))
        for feature in range(3):  # paths of a bin are those of the bins within it
            for codes, strata in ((one.codes[feature], one), (two.codes[feature], two)):
                stratum = np.repeat(np.arange(len(strata)), np.diff(strata.path_offset))
                counted = np.zeros((len(strata), strata.bins + 1), np.int64)
                np.add.at(counted, (stratum, codes), 1)
                assert np.array_equal(counted, strata.counts[feature])  # every row has a path


def test_stretches_of_twice_the_days_have_the_values_of_both():
    rows = Rows()
    plan = Plan(rows, LAYOUTS["stations"], 10)
    longer = plan.summary(rows).lengthened()
    assert longer.layout.stretching.days == (20, 20, 20)
    axes = stretches.running(plan.scales, plan.layout.stretching)
    plain = Plan(rows, LAYOUTS["stations"], 20).summary(rows)
    one, two = (read(summary, axes, 20) for summary in (plain, longer))
    assert np.array_equal(one[:, 0], two[:, 0])
    usual = stretches.LEVELS / np.sqrt(np.maximum(one[:, 0], 1))
    assert np.abs((one - two)[:, 1:] / usual[:, None]).max() < 0.3
    assert longer.nbytes < plan.summary(rows).nbytes
    for _ in range(5):
        longer = longer.lengthened()
    assert longer.layout.stretching is None
    assert longer.parts["stretches"] == 0
    assert days_of(longer) == days_of(plain)


def test_a_summary_that_outgrows_its_memory_has_fewer_bins_before_it_has_fewer_paths():
    rows = Rows()
    plan = Plan(rows, replace(LAYOUTS["every path"], bins=47))
    whole = plan.summary(rows)
    fewest = whole.rebinned(15).nbytes
    slightly = whole.within(max(whole.nbytes - 1, fewest))
    assert slightly.layout.bins < 47
    assert slightly.paths == rows.size
    much = whole.within(fewest * 9 // 10)
    assert much.layout.bins == 15
    assert much.paths < rows.size
    assert much.nbytes <= fewest * 9 // 10


def test_scales_with_room_to_spare_tell_values_beyond_their_ends_apart():
    rows = Rows()
    winter = rows.values[0][rows.values[0] < 10.0]
    scales = Scales.fit(np.stack((winter, np.abs(winter))), spare=True)
    codes = scales.codes(np.stack((np.linspace(10.0, 60.0, 50), np.linspace(0.0, 10.0, 50))))
    assert np.unique(codes[0]).size > 8
    assert scales.quantizers[0].low < winter.min() - 40.0
    assert scales.quantizers[0].high > winter.max() + 40.0
    assert scales.quantizers[1].low >= 0.0
    assert max(quantizer.bins for quantizer in scales.quantizers) <= 250
    assert (scales.high[0], scales.low[0]) == (winter.max(), winter.min())


def test_scales_learn_from_rows_that_lie_elsewhere_and_not_from_others():
    rows = Rows()
    early, late = (rows.take(np.flatnonzero((rows.local_us < 60 * DAY_US) == early)) for early in (True, False))
    first = Scales.fit(early.values, low=rows.values[:1].min(axis=1).repeat(3), high=np.full(3, 200.0))
    many = np.count_nonzero(~np.isnan(early.values), axis=1).astype(np.float64)
    first = first.widened(first.low, first.high, many, np.zeros(3))
    assert FineSums.of_values(first, early.values[:, :5]).joining(first) is first
    found = FineSums.of_values(first, late.values).joining(first)
    for feature in range(3):
        values = rows.values[feature][~np.isnan(rows.values[feature])]
        codes = first.quantizers[feature].codes(values)
        bins = first.quantizers[feature].bins
        count = np.bincount(codes, minlength=bins)
        assert np.allclose(found.masses[feature], count / count.sum(), atol=1e-5)
        means = np.bincount(codes, values, bins)[count > 0] / count[count > 0]
        assert np.allclose(found.means[feature][count > 0], means, atol=0.02 * values.std())


@pytest.mark.parametrize("stretch_days", [0, 10])
def test_strata_told_by_other_scales_hold_the_same_rows(stretch_days):
    rows = Rows()
    plan = Plan(rows, LAYOUTS["stations"], stretch_days)
    whole = plan.summary(rows)
    masses = tuple(np.roll(mass, 3).astype(np.float32) for mass in plan.scales.masses)
    found = whole.rescaled(replace(plan.scales, masses=masses))
    assert days_of(found) == days_of(whole)
    assert_every_bin_holds_what_it_counts(found, plan, rows)
    for one, two in zip(everything(whole), everything(found), strict=True):
        assert np.array_equal(one.starts, two.starts)
        assert np.array_equal(one.counts, two.counts)
    if stretch_days:
        axes = [stretches.running(summary.scales, plan.layout.stretching) for summary in (whole, found)]
        one, two = read(whole, axes[0]), read(found, axes[1])
        usual = stretches.LEVELS / np.sqrt(np.maximum(one[:, 0], 1))
        assert np.array_equal(one[:, 0], two[:, 0])
        assert np.abs((one - two)[:, 1:] / usual[:, None]).max() < 0.15


def off_in_steps(found, whole, axes):
    """Features: squares of what means and deviations of stretches are off by, over those of what is rounded once."""
    one, two = (read(each, axes) for each in (whole, found))
    once = (stretches.STEP * stretches.LEVELS) ** 2 / np.maximum(one[:, 0], 1) / 12
    return ((one - two)[:, 1:] ** 2 / once[:, None]).mean(axis=(1, 2))


def test_how_often_stretches_were_rounded_is_known_after_many_batches():
    rows = Rows()
    plan = Plan(rows, LAYOUTS["stations"], 10)
    day, axes = rows.local_us // DAY_US, stretches.running(plan.scales, plan.layout.stretching)
    whole = plan.summary(rows)
    by_day = plan.added(
        [plan.summary(rows.take(day == 0)).learnt, *(rows.take(day == each) for each in range(1, DAYS))]
    )
    assert by_day.effects.rounded == pytest.approx([5.5] * 3)
    # The other sketch is rounded, too.
    np.testing.assert_allclose(off_in_steps(by_day, whole, axes), 1 + np.array(by_day.effects.rounded), rtol=0.15)
    apart = plan.added(
        [plan.summary(rows.take(day < 60)).learnt, *(rows.take(day // 10 == each) for each in range(6, 12))]
    )
    assert apart.effects.rounded == pytest.approx([1.0] * 3)
    assert off_in_steps(apart, whole, axes).max() == 0.0
    assert apart.learnt.effects.rounded == apart.effects.rounded
    assert whole.learnt.lengthened().effects.rounded == (2.0,) * 3
    assert whole.effects is None
    assert (whole.lengthened()).effects is None
