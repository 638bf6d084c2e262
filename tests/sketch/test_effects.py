"""What is learnt of the choice of paths: even steps follow what is slow, not what is chance; shared errors add up."""

from dataclasses import replace

import numpy as np
import pytest

from synopsis.query.sampled import effects_of
from synopsis.sketch import blocks
from synopsis.sketch.budget import even_choice, tallied
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.effects import Effects
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import from_tallies
from synopsis.sketch.stretches import Stretching
from synopsis.sketch.summary import Summary, cut
from synopsis.store.summaries import from_table, to_table

HOUR_US = 3_600_000_000
PLACES, DAYS = 8, 200


def made(*features, kept=None):
    """Strata of hourly rows of some places, every fifth with its path or those that are given; their summary."""
    values = np.stack(features)
    place, hour = (each.ravel() for each in np.meshgrid(np.arange(PLACES), np.arange(24 * DAYS), indexing="ij"))
    scales = Scales.fit(values)
    layout = PathLayout(1_200, 15, 0.2, HOUR_US, True, stretching=Stretching.of(scales, 10))
    rows = (10.0 + place, 20.0 + place, hour * HOUR_US)
    fine = scales.codes(values)
    levels = np.stack(
        [table[code] for table, code in zip(layout.stretching.levels_of_codes(scales), fine, strict=True)]
    )
    kept = even_choice(*rows, fine, layout) if kept is None else kept
    strata = from_tallies(scales, tallied(*rows, fine, kept, layout, levels), layout.bins, layout.stretching)
    contexts = Contexts.fit(strata.codes, layout.bins)
    packed = tuple(blocks.closed(strata.take(run), contexts) for run in cut(strata))
    where = (10.0 + np.arange(PLACES), 20.0 + np.arange(PLACES))
    return strata, Summary(layout, *where, scales, contexts, packed)


def noise(seed, size=(PLACES, 24 * DAYS)):
    return np.random.default_rng(seed).normal(size=size)


HOUR = np.arange(24 * DAYS) + 3 * np.arange(PLACES)[:, None]
SLOW = np.sin(2 * np.pi * HOUR / 24) + 0.05 * noise(1)
CHANCE = noise(2)
SHARED = np.broadcast_to(noise(3, 24 * DAYS), CHANCE.shape) + 0.1 * noise(4)
STRATA, SUMMARY = made(SLOW.ravel(), CHANCE.ravel())


def test_even_steps_follow_what_is_slow_and_not_what_is_chance():
    slow, chance = Effects.of(STRATA, SUMMARY.scales).means
    assert slow < 0.5
    assert 0.7 < chance < 1.4


def test_shares_of_rows_are_told_without_stretches():
    slow, chance = (
        Effects.of(replace(strata, stretching=None, lengths=(), stretches=()), summary.scales)
        for strata, summary in (made(each.ravel()) for each in (SLOW, CHANCE))
    )
    assert slow.means == chance.means == ()
    assert slow.shares < 0.75 < 0.8 < chance.shares < 1.25


def test_errors_that_places_share_add_up():
    hours = np.tile(np.random.default_rng(5).random(24 * DAYS) < 0.2, PLACES)
    apart, together = (
        Effects.of(strata, summary.scales).means[0]
        for strata, summary in (made(each.ravel(), kept=hours) for each in (CHANCE, SHARED))
    )
    assert 0.7 < apart < 1.4
    assert together > 3.0


def test_a_summary_learns_and_what_it_learnt_is_stored():
    assert SUMMARY.effects is None
    learnt = SUMMARY.learnt
    assert learnt.effects == Effects.of(STRATA, SUMMARY.scales)
    again = from_table(to_table(learnt))
    assert again.effects.shares == pytest.approx(learnt.effects.shares, abs=1e-3)
    assert again.effects.means == pytest.approx(learnt.effects.means, abs=1e-3)
    assert from_table(to_table(SUMMARY)).effects is None


def test_some_features_have_their_own():
    both = SUMMARY.learnt
    only = both.of_strata(both.opened((1,)), (1,))
    assert only.effects == Effects(both.effects.shares, both.effects.means[1:])
    assert Effects(1.0, (2.0, 3.0), (4.0, 5.0)).of_features((1,)) == Effects(1.0, (3.0,), (5.0,))


def test_how_often_stretches_were_rounded_is_stored():
    often = Effects(0.5, (2.0, 3.0), (1.0, 2.25))
    assert Effects.from_dict(often.to_dict()) == often
    assert often.put_together([True, False]).rounded == (2.0, 2.25)
    assert Effects(0.5, (2.0, 3.0)).put_together([False, True]).rounded == (1.0, 2.0)
    assert Effects.from_dict({"shares": 0.5, "means": [2.0, 3.0]}) == Effects(0.5, (2.0, 3.0))
    assert effects_of(often, 2)[3:].tolist() == [1.0, 2.25]
    assert effects_of(Effects(0.5, (2.0, 3.0)), 2)[3:].tolist() == [1.0, 1.0]


def test_without_paths_there_is_nothing_to_learn():
    assert SUMMARY.thinned(0.0).learnt.effects is None
    assert Effects.of(STRATA.take(slice(0, 0)), SUMMARY.scales) == Effects(1.0, (1.0, 1.0))
