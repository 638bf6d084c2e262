import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch import blocks
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.packing import packed, unpacked
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import bin_ranges, fitted

BINS = 15
PLACES = np.arange(3.0), np.arange(3.0)


def rows(seed=0, count=6_000):
    """Three places, forty days, three features: a smooth one, one with an atom and a heavy tail, one often absent."""
    random = np.random.default_rng(seed)
    place = np.sort(random.integers(0, 3, count))
    day = random.integers(0, 40, count)
    order = np.lexsort((day, place))
    smooth = random.normal(290, 5, count)
    rain = np.where(random.random(count) < 0.8, 0.0, random.lognormal(0, 2, count))
    related = smooth * 2 + random.normal(0, 1, count)
    related[random.random(count) < 0.4] = np.nan
    return place[order], day[order], np.stack((smooth, rain, related))


def summary(seed=0, share=0.3):
    place, day, values = rows(seed)
    scales = Scales.fit(values)
    kept = np.random.default_rng(seed).random(place.size) < share
    return scales, fitted(scales, place, day // 20, day, scales.codes(values), kept, BINS), (place, day, values, kept)


@given(seed=st.integers(0, 3))
def test_every_row_is_counted_once_by_day_and_once_by_bin(seed):
    _, made, (place, _, values, kept) = summary(seed)
    assert made.rows.sum() == place.size
    assert made.day_kept.sum() == kept.sum() == made.codes.shape[1]
    assert (made.counts.sum(axis=2) == made.rows).all()
    absent = np.isnan(values).sum(axis=1)
    assert made.counts[..., -1].sum(axis=1).tolist() == absent.tolist()


def test_every_kept_value_lies_in_the_range_of_its_bin():
    scales, made, (place, day, values, kept) = summary()
    stratum = np.searchsorted(made.run_place * 10 + made.period, (place * 10 + day // 20)[kept])
    paths = np.repeat(np.arange(len(made)), np.diff(made.path_offset))
    for feature in range(3):
        low, high = bin_ranges(made, scales, feature)
        value = values[feature, kept][:, None]
        inside = (low[stratum] <= value) & (value <= high[stratum])
        assert (inside.sum(axis=1) == ~np.isnan(value[:, 0])).all()
        code = np.where(np.isnan(value[:, 0]), BINS, inside.argmax(axis=1))
        found, expected = (
            np.bincount(which * (BINS + 1) + codes, minlength=len(made) * (BINS + 1))
            for which, codes in ((paths, made.codes[feature]), (stratum, code))
        )
        assert found.tolist() == expected.tolist()


def test_bins_hold_about_equal_mass_and_less_in_the_tails_and_atoms_stand_alone():
    scales, made, _ = summary()
    share = made.counts[0, :, :BINS] / made.rows[:, None]
    assert share[:, 3:12].max() < 0.12
    assert share[:, 0].max() < 0.03
    low, high = bin_ranges(made, scales, 1)
    heaviest = made.counts[1, :, :BINS].argmax(axis=1)
    assert (low[np.arange(len(made)), heaviest] == 0.0).all()
    assert (high[np.arange(len(made)), heaviest] == 0.0).all()


@given(bins=st.sampled_from((7, 15)), heavy=st.sets(st.integers(0, 39), min_size=1, max_size=4))
def test_however_many_values_are_heavy_there_are_no_more_bins_than_asked_for(bins, heavy):
    many = [300 if value in heavy else 1 for value in range(40)]
    values = np.repeat(np.arange(40.0), many)[None, :]
    everyone = np.zeros(values.size, np.int64)
    scales = Scales.fit(values)
    made = fitted(scales, everyone, everyone, everyone, scales.codes(values), everyone == 0, bins)
    low, high = bin_ranges(made, scales, 0)
    column = values[0][:, None]
    inside = (low <= column) & (column <= high)
    assert (inside.sum(axis=1) == 1).all()
    assert made.counts[0, 0, :-1].tolist() == inside.sum(axis=0).tolist()


def test_a_constant_and_an_absent_feature_have_one_bin_and_none():
    place, day = np.zeros(50, np.int64), np.arange(50)
    values = np.stack((np.full(50, 7.5), np.full(50, np.nan)))
    scales = Scales.fit(values)
    made = fitted(scales, place, day // 100, day, scales.codes(values), np.ones(50, bool), BINS)
    low, high = bin_ranges(made, scales, 0)
    assert made.counts[0, 0, 0] == 50
    assert (low[0, 0], high[0, 0]) == (7.5, 7.5)
    assert np.isnan(bin_ranges(made, scales, 1)[0]).all()
    assert made.counts[1, 0, -1] == 50


@given(seed=st.integers(0, 3))
def test_a_block_gives_back_the_strata_it_was_made_of(seed):
    _, made, _ = summary(seed)
    contexts = Contexts.fit(made.codes, BINS)
    again = blocks.opened(blocks.closed(made, contexts), contexts, [0, 1, 2], PLACES)
    for name, array in vars(made).items():
        assert np.array_equal(getattr(again, name), array), name


def test_a_block_opens_only_the_features_asked_for():
    _, made, _ = summary()
    contexts = Contexts.fit(made.codes, BINS)
    again = blocks.opened(blocks.closed(made, contexts), contexts, [2], PLACES)
    assert again.features == 1
    assert np.array_equal(again.codes[0], made.codes[2])
    assert np.array_equal(again.counts[0], made.counts[2])


def test_related_features_pack_into_fewer_bytes():
    _, made, _ = summary(share=1.0)
    contexts = Contexts.fit(made.codes, BINS)
    assert contexts.parents[2, 0] == 0
    alone = Contexts.between(made.codes, np.full((3, 2), -1), contexts.centres)
    assert blocks.closed(made, contexts).nbytes < blocks.closed(made, alone).nbytes


@given(st.lists(st.integers(-(2**40), 2**40), max_size=30))
def test_packed_numbers_come_back(numbers):
    array = np.array(numbers, np.int64)
    assert np.array_equal(unpacked(packed(array)), array)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (2, 3, 4), ()])
def test_shapes_come_back(shape):
    assert unpacked(packed(np.ones(shape, np.int64))).shape == shape
