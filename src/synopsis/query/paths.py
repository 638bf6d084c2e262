"""Questions to a summary: its groups, and the statistics of each.

A group is made of pieces, one for each part of the question that has rows of it. `opened` tells which strata a part
touches, `pieces` what their paths and counts say, `several` how pieces make a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from synopsis.core.errors import BadQuery
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.query import several
from synopsis.query.binding import Binned, Keyed, Plan
from synopsis.query.binning import Binning
from synopsis.query.finish import Found
from synopsis.query.opened import DAY, Covered, Opened, day_us, past_us
from synopsis.query.pieces import Piece
from synopsis.query.predicates import And, Condition
from synopsis.query.scoping import Part
from synopsis.query.tree import BucketKey, CellKey
from synopsis.query.values import CERTAIN, EXACT, HEURISTIC, P95, Value, Values
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Integers
from synopsis.sketch.summary import Summary

#: The share of a day that a bucket takes at most which may not hold it whole.
_ALMOST: Final = 1.0 - 1e-9

#: Groups that one answer may have: each is evaluated by itself.
_MOST_GROUPS: Final = 10_000


def of_summary(summary: Summary, layout: Layout, asked: Plan) -> Found:
    """The statistics of a bound question.

    Cost: proportional to the strata and paths in the blocks that are touched, and to the groups.
    """
    groups = groups_of(summary, layout, asked)
    order = sorted(groups)
    values = {
        each: _gathered([several.statistic(groups[key], each) for key in order], each.is_count and each.rounded)
        for each in asked.statistics
    }
    numbers = np.array(order, np.int64).reshape(len(order), len(asked.groups)).T
    keys = dict(zip(asked.groups, numbers, strict=True))
    binned = {key: Binning(summary.scales, key).ends(own) for key, own in keys.items() if isinstance(key, Binned)}
    return Found(len(order), keys, values, binned)


def groups_of(summary: Summary, layout: Layout, asked: Plan) -> dict[tuple[int, ...], list[Piece]]:
    """The groups of a question by their keys, each in pieces: one for each part that has rows of it."""
    if asked.cut == "keep" and len(asked.parts) > 1:
        raise BadQuery(
            "cut='keep' would count a day twice that two pieces of the scope cut, and this condition has "
            f"{len(asked.parts)} pieces: ask without OR and NOT of times, or one question for each side"
        )
    groups: dict[tuple[int, ...], list[Piece]] = {}
    for part in asked.parts:
        for key, piece in _pieces(_opened(summary, layout, asked, part), asked, part.condition):
            groups.setdefault(key, []).append(piece)
            if len(groups) > _MOST_GROUPS:
                raise BadQuery(f"the answer has more than {_MOST_GROUPS:,} groups; ask for coarser ones or for less")
    return groups


def touched(summary: Summary, layout: Layout, asked: Plan) -> dict[str, Any]:
    """What a question looks at: blocks, bytes, places, days, paths. Cost: that of opening what it touches."""
    found: dict[str, Any] = {}
    for part in asked.parts:
        for name, fact in _touched(_opened(summary, layout, asked, part), summary).items():
            is_sum = isinstance(fact, int) and name in found and name != "blocks in all"
            found[name] = found[name] + fact if is_sum else fact
    return found


def _opened(summary: Summary, layout: Layout, asked: Plan, part: Part) -> Opened:
    wanted = {feature for each in asked.statistics for feature in each.features}
    wanted |= {key.feature for key in asked.groups if isinstance(key, Binned)}
    cuts_days = any(isinstance(key, BucketKey) for key in asked.groups)
    return Opened.of(summary, layout, part, wanted, cuts_days, asked.cut)


def _touched(opened: Opened, summary: Summary) -> dict[str, Any]:
    names = opened.layout.features
    before = np.append(0, np.cumsum(opened.chosen))
    looked_at = [each for each in summary.blocks if before[each.place_high + 1] > before[each.place_low]]
    needed = summary.contexts.needed(set(opened.features))
    sizes = [
        len(block.head) + sum(len(block.bins[f]) for f in opened.features) + sum(len(block.paths[f]) for f in needed)
        for block in looked_at
    ]
    facts: dict[str, Any] = {
        "blocks": len(looked_at),
        "blocks in all": len(summary.blocks),
        "packed bytes": sum(sizes),
        "features opened": ", ".join(names[each] for each in needed if each < len(names)),
    }
    if opened.strata is None:
        return facts | dict.fromkeys(("places", "places cut", "strata", "days", "days cut", "rows", "paths"), 0)
    strata, covered = opened.strata, opened.covered(opened.begin_us, opened.end_us).share
    there = (covered > 0.0) & (strata.day_rows > 0)
    places, own = strata.day_place, opened.whereabouts
    return facts | {
        "places": int(np.unique(places[there]).size),
        "places cut": 0 if own is None else int(np.unique(places[there & ~own.inside[places]]).size),
        "strata": len(strata),
        "days": int(there.sum()),
        "days cut": int((there & (covered < 1.0)).sum()),
        "rows": int(strata.day_rows[there].sum()),
        "paths": int(strata.day_kept[there].sum()),
    }


# --- groups -----------------------------------------------------------------------------------------------------------


def _pieces(opened: Opened, asked: Plan, condition: Condition) -> Iterator[tuple[tuple[int, ...], Piece]]:
    """The pieces of one part of the question, by the keys of their groups; without GROUP BY one, even when empty."""
    if not asked.groups:
        covered = None if opened.strata is None else opened.covered(opened.begin_us, opened.end_us)
        yield (), Piece(opened, covered, condition)
        return
    if opened.strata is None:
        return
    cell_key = next((key for key in asked.groups if isinstance(key, CellKey)), None)
    bucket_key = next((key for key in asked.groups if isinstance(key, BucketKey)), None)
    binnings = [Binning(opened.summary.scales, key) for key in asked.groups if isinstance(key, Binned)]
    own_cell = _cells(opened.summary, cell_key)
    for cell in np.unique(own_cell[opened.chosen]):
        within = opened if cell_key is None else opened.within(own_cell == cell)
        for bucket, covered in _buckets(within, bucket_key):
            assert within.strata is not None
            if not (covered.share * within.strata.day_rows).any():
                continue
            for bins, own in _binned(within, covered, condition, binnings):
                numbers: dict[Keyed | None, int] = {cell_key: int(cell), bucket_key: bucket, **bins}
                yield tuple(numbers[key] for key in asked.groups), Piece(within, covered, own)


def _cells(summary: Summary, key: CellKey | None) -> Integers:
    """The cell of each place."""
    if key is None:
        return np.zeros(summary.latitude.size, np.int64)
    return geohash.encode(summary.latitude, summary.longitude, key.length * geohash.BITS_PER_CHARACTER)


def _buckets(opened: Opened, key: BucketKey | None) -> Iterator[tuple[int, Covered]]:
    """The buckets of these strata within the scope, each with the share of every day that lies in it."""
    begin, end, layout, strata = opened.begin_us, opened.end_us, opened.layout, opened.strata
    assert strata is not None
    if key is None:
        yield 0, opened.covered(begin, end)
        return
    span, zone = Bucket.parse(key.span), layout.zone if key.zone is None else Zone.named(key.zone)
    if span.encloses(DAY) and key.zone in (None, layout.timezone):  # a day lies in one bucket, whatever clocks do
        covered = opened.covered(begin, end)
        own = span.ordinals(day_us(strata.day, layout), zone)
        for ordinal in np.unique(own[(strata.day_rows > 0) & (covered.share > 0.0)]):
            yield int(ordinal), covered.but(own == ordinal)
        return
    days = strata.day[strata.day_rows > 0]
    if not days.size:
        return
    ends_us = day_us(days.min(), layout), past_us(days.max(), layout) - 1
    first, last = (int(ordinal) for ordinal in span.ordinals(np.array(ends_us, np.int64), zone))
    ordinals = np.arange(first - 1, last + 2)
    starts, reach = span.starts_us(ordinals, zone), span.reach_us(ordinals, zone)
    for at in range(ordinals.size):
        left, right = int(starts[at]), int(reach[at])
        inner = left if begin is None else max(left, begin)
        outer = right if end is None else min(right, end)
        if inner < outer:
            covered = opened.covered(inner, outer)
            # Where clocks go back, a bucket shares instants with its neighbours, and holds no day there for sure.
            shares_instants = (at > 0 and reach[at - 1] > left) or (at + 1 < ordinals.size and starts[at + 1] < right)
            if shares_instants or not span.encloses(DAY):
                covered = replace(covered, share=np.minimum(covered.share, _ALMOST))
            yield int(ordinals[at]), covered


def _binned(
    opened: Opened, covered: Covered, condition: Condition, binnings: list[Binning]
) -> Iterator[tuple[dict[Keyed | None, int], Condition]]:
    """The bins that rows may have, of all features that are grouped by, and what rows in them fulfil."""
    if not binnings:
        yield {}, condition
        return
    first, *rest = binnings
    for number, own in first.conditions(opened, covered):
        both = And((condition, own))
        if Piece(opened, covered, both).selection.count().high[0] > 0:
            for others, every in _binned(opened, covered, both, rest):
                yield {first.key: number, **others}, every


# --- the answer -------------------------------------------------------------------------------------------------------


_WORDS: Final = {"exact": EXACT, "certain": CERTAIN, "p95": P95, "heuristic": HEURISTIC}


def _gathered(values: list[Value], is_whole: bool) -> Values:
    """Values as a column, perhaps of whole numbers; what is not known is NaN."""
    told = [
        (each.estimate, each.low, each.high, *(each.p95 or (math.nan, math.nan)), _WORDS[each.guarantee])
        for each in values
    ]
    numbers = np.array(told, np.float64).reshape(-1, 6)  # None becomes NaN
    known = numbers[:, :3].astype(np.int64) if is_whole else numbers
    estimate, low, high = known[:, 0], known[:, 1], known[:, 2]
    return Values(estimate, low, high, numbers[:, 5].astype(np.int8), numbers[:, 3:5])
