"""Features whose parts paths do not tell get shorter stretches."""

import numpy as np
import pytest

from synopsis.sketch.lengths import ALL_LENGTHS, Cut, dealt, share_off
from synopsis.sketch.stretches import ABSENT_LEVEL, LEVELS

PLACES, DAYS, PER_DAY = 4, 400, 8


def rows(seed=1):
    """Levels of three features, rows of places in the order of time: slow, rain on few days, and mostly absent."""
    random = np.random.default_rng(seed)
    place, day, _ = (each.reshape(-1) for each in np.indices((PLACES, DAYS, PER_DAY)))
    slow = np.repeat(np.cumsum(random.normal(0, 0.2, (PLACES, DAYS)), axis=1).reshape(-1), PER_DAY)
    wet = np.repeat(random.random(PLACES * DAYS) < 0.1, PER_DAY)
    rain = np.where(wet & (random.random(day.size) < 0.3), random.lognormal(0, 1, day.size), 0.0)
    rare = np.where(random.random(day.size) < 0.9, np.nan, random.normal(0, 1, day.size))
    values = np.stack((slow + random.normal(0, 0.1, day.size), rain, rare))
    levels = np.where(np.isnan(values), ABSENT_LEVEL, np.nan_to_num(values) * LEVELS).astype(np.int32)
    return place, day, levels


PLACE, DAY, LEVEL = rows()


def cut(share):
    return Cut.of(PLACE, DAY, LEVEL, np.random.default_rng(5).random(DAY.size) < share)


def plainly_off(feature, days):
    """Without any path a half is thought to have its share of the whole, of values and of squares."""
    off = []
    present = LEVEL[feature] != ABSENT_LEVEL
    for key in np.unique((PLACE * DAYS + DAY // days)[present]):
        own = present & (key == PLACE * DAYS + DAY // days)
        values, late = LEVEL[feature][own] / LEVELS, DAY[own] % days >= days // 2
        apart = np.zeros(2)
        if late.any() and not late.all():
            apart = [each[late].mean() - each[~late].mean() for each in (values, (values - values.mean()) ** 2)]
        off.append(late.sum() * (~late).sum() / late.size * np.array(apart))
    stretches = np.unique(PLACE * DAYS + DAY // days).size
    return np.sqrt(np.square(off).sum(axis=0) / stretches) @ [1.0, 0.5]


@pytest.mark.parametrize("feature", range(3))
@pytest.mark.parametrize("days", [2, 5, 10])
def test_without_paths_a_half_is_off_by_what_it_differs(feature, days):
    assert cut(0.0).off(days)[feature] == pytest.approx(plainly_off(feature, days), rel=1e-6)


def test_where_every_row_has_a_path_nothing_is_off():
    assert cut(1.0).off(10).max() < 1e-9


def test_more_paths_and_shorter_stretches_leave_less():
    few, many = cut(0.1), cut(0.6)
    assert (many.off(10) < few.off(10)).all()
    assert (few.off(2) < few.off(10)).all()
    assert (few.off(1) < few.off(2)).all()


def test_paths_tell_of_what_is_slow_and_hardly_of_rain():
    share = cut(0.2).off(10) / cut(0.0).off(10)
    assert share[0] < 0.5 * share[1]


def test_stretches_of_nothing_but_the_usual_value_are_still():
    known = cut(0.2)
    moving = known.moving(1)
    wet = [np.unique(PLACE[own] * DAYS + DAY[own]).size for own in (LEVEL != 0) & (LEVEL != ABSENT_LEVEL)]
    assert moving.tolist() == wet
    assert moving[1] < 0.15 * moving[0]


def test_the_feature_that_is_off_most_for_its_bytes_gets_shorter_stretches():
    known = cut(0.2)
    off = {days: known.off(days) for days in ALL_LENGTHS if days <= 10}
    bytes_of = {days: 100.0 * known.moving(days) / known.moving(10) for days in off}
    lengths = dealt(10, off, bytes_of, lambda part, size: np.log(part) + size / 300.0)
    assert lengths[1] < lengths[0]
    assert share_off(off, lengths, 10) < 1.0
    assert dealt(10, off, bytes_of, lambda part, size: size) == (10, 10, 10)
    assert dealt(10, off, bytes_of, lambda part, size: part) == (1, 1, 1)


def test_nothing_is_nothing():
    none = np.empty(0, np.int64)
    empty = Cut.of(none, none, np.empty((2, 0), np.int32), np.empty(0, bool))
    assert empty.off(10).tolist() == [0.0, 0.0]
    assert empty.moving(10).tolist() == [0, 0]
    off, bytes_of = ({days: number * np.ones(2) for days in (1, 2, 3, 5)} for number in (0.0, 1.0))
    assert dealt(5, off, bytes_of, max) == (5, 5)
