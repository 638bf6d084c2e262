"""What is gathered of all paths once is what there is of them one by one."""

import numpy as np
import pytest

from synopsis.query import chance
from synopsis.query.covers import Covers
from synopsis.query.weighing import in_scope

BINS = 5  # and one for absent values


class World:
    """Strata of many days, and groups that have a few of them, of several strata each."""

    def __init__(self, seed: int, leans: bool, even: bool) -> None:
        random = np.random.default_rng(seed)
        days = random.integers(30, 90, 4)
        self.offset = np.append(0, np.cumsum(days))
        self.rows = random.integers(0, 40, self.offset[-1])
        self.kept = np.minimum(random.poisson(1.5, self.rows.size), self.rows)
        if seed % 2:  # a stratum without a path
            self.kept[self.offset[1] : self.offset[2]] = 0
        self.codes = random.integers(0, BINS + 1, self.kept.sum()).astype(np.uint8)
        share = np.where(random.random(self.rows.size) < 0.2, random.random(self.rows.size), 1.0)
        lean = random.random(self.kept.sum()) * 2 if leans else np.empty(0)
        group = random.integers(0, 12, self.rows.size)
        group[self.offset[2]] = group[0] = 0  # first paths, in scope
        if seed % 3 == 0:  # a group that has so much that it is not brief
            group[group > 8] = 8
        self.even = even
        self.scoped(Covers.whole(share, lean, self.kept).parted(group)[0])

    def scoped(self, covers: Covers) -> None:
        """Let groups be those of other covers."""
        self.covers = covers
        given = (self.covers.day, self.covers.share, self.covers.offset)
        self.slots, self.rows_in_scope, self.begins, (self.paths, _) = in_scope(
            self.offset, self.rows, self.kept, *given
        )
        self.covered = self.rows_in_scope / self.slots[1]

    def runs(self, bins: int):
        """The luck, and what is gathered for it."""
        stratum, whole, kept, _, _, begin, end = self.slots
        days, covers = (self.offset, self.rows, self.kept), self.covers
        luck = chance.runs_of(
            *(*days, covers.day, covers.share, stratum, begin, end, self.begins, whole, kept),
            *(self.paths, self.covered, covers.lean, covers.lean_start, self.even, 0.7, bins),
        )
        return luck, chance.gathered(self.codes, BINS + 1, *days, stratum, self.even, luck[7], luck[8])


@pytest.fixture(params=[(seed, leans, even) for seed in range(6) for leans in (False, True) for even in (False, True)])
def known(request: pytest.FixtureRequest):
    """A world, its luck briefly, and path by path."""
    world = World(*request.param)
    return world, world.runs(BINS + 1), world.runs(10**6)


def test_groups_with_few_of_their_strata_s_paths_list_no_others(known) -> None:
    world, (luck, _), (every, of_none) = known
    assert of_none[0].size == every[8].size == 0
    is_brief = luck[8][world.begins[:-1]] >= 0
    assert is_brief.sum() >= 8
    listed, in_all = (np.diff(each[6]) for each in (luck, every))
    assert (listed[is_brief] * 2 < in_all[is_brief]).all()
    np.testing.assert_array_equal(listed[~is_brief], in_all[~is_brief])


def test_paths_weigh_as_much_in_every_bin(known) -> None:
    world, briefly, one_by_one = known
    shape = (world.slots.shape[1], BINS + 1)
    for found, wanted in zip(
        chance.weighed(shape, world.codes, *briefly), chance.weighed(shape, world.codes, *one_by_one), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_paths_reach_and_differ_as_much(known) -> None:
    world, briefly, one_by_one = known
    table = np.random.default_rng(9).normal(0, 3, (world.slots.shape[1], BINS + 1))
    for group in range(world.begins.size - 1):
        told = (world.begins, group)
        assert chance.reached(*briefly, *told) == pytest.approx(chance.reached(*one_by_one, *told), rel=1e-10)
        found, wanted = (chance.differing(table, world.codes, *each, *told) for each in (briefly, one_by_one))
        assert found == pytest.approx(wanted, rel=1e-10)
        assert wanted[0] > 0


def test_few_groups_are_told_path_by_path() -> None:
    world = World(1, leans=False, even=False)
    world.scoped(Covers.whole(np.where(np.arange(world.rows.size) % 20 == 0, 1.0, 0.0)))
    luck, of_all = world.runs(BINS + 1)
    assert luck[8].size == of_all[0].size == 0
    assert luck[1].sum() == world.slots[2].sum()
