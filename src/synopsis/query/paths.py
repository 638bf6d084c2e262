"""Questions to a summary: its groups, and the statistics of each.

Groups by cells and buckets are parts of space and time: `covers` tells which days each has, and all are evaluated in
one pass. Groups by bins are further conditions on their rows, a pass each. `opened` tells which strata a part of the
question touches, `pieces` what their paths and counts say, `several` how the pieces of several parts make a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from synopsis.core.errors import BadQuery
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.query import several
from synopsis.query.binding import Binned, Keyed, Plan, Statistic
from synopsis.query.binning import Binning
from synopsis.query.covers import Covers, Slots
from synopsis.query.finish import Found
from synopsis.query.opened import DAY, Covered, Opened, day_us, past_us
from synopsis.query.pieces import Pieces, Scoped
from synopsis.query.scoping import Part
from synopsis.query.several import Owned
from synopsis.query.tree import BucketKey, CellKey
from synopsis.query.values import Values
from synopsis.sketch.compiled import Later
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Integers
from synopsis.sketch.summary import Summary

if TYPE_CHECKING:
    from synopsis.query import chance
else:
    chance = Later("synopsis.query.chance")

#: The share of a day that a bucket takes at most which may not hold it whole.
_ALMOST: Final = 1.0 - 1e-9

#: Groups that one answer may have.
_MOST_GROUPS: Final = 100_000

#: Paths, and entries of tables of bins, that are evaluated at once: some ten megabytes, which are there for the next.
_AT_ONCE: Final = 250_000


def of_summary(summary: Summary, layout: Layout, asked: Plan) -> Found:
    """The statistics of a bound question.

    Cost: proportional to the strata and paths in the blocks that are touched, to those of each group where it has but
    a part of them, and to the bins that are grouped by.
    """
    bundles = list(_bundles(summary, layout, asked))
    if not asked.groups:
        return Found(1, {}, bundles[0].values)
    numbers = np.concatenate([bundle.keys for bundle in bundles], axis=1) if bundles else _no_keys(asked)
    order = np.lexsort(numbers[::-1])
    found = {each: _joined([bundle.values[each] for bundle in bundles], each, order) for each in asked.statistics}
    keys = dict(zip(asked.groups, numbers[:, order], strict=True))
    binned = {key: Binning(summary.scales, key).ends(own) for key, own in keys.items() if isinstance(key, Binned)}
    return Found(order.size, keys, found, binned)


def _no_keys(asked: Plan) -> Integers:
    return np.empty((len(asked.groups), 0), np.int64)


def _joined(columns: list[Values], asked: Statistic, order: Integers) -> Values:
    """Columns below each other, in another order."""
    if not columns:
        return several.statistic((), 0, asked)
    estimate, low, high, guarantee, p95 = (
        np.concatenate([getattr(column, name) for column in columns])[order]
        for name in ("estimate", "low", "high", "guarantee", "p95")
    )
    return Values(estimate, low, high, guarantee, p95)


@dataclass(frozen=True, eq=False)
class _Bundle:
    """Some groups with all their statistics."""

    keys: Integers  #: keys x groups
    values: dict[Statistic, Values]


def _bundles(summary: Summary, layout: Layout, asked: Plan) -> Iterator[_Bundle]:
    """The groups of a question with their statistics, those first that share bins."""
    size = 0
    for keys, parts in groups_of(summary, layout, asked):
        size += keys.shape[1]
        _check_size(size)
        if len(parts) == 1 and not any(isinstance(key, Binned) for key in asked.groups):
            known = parts[0].pieces.at_once(asked.statistics)
            if known is not None:
                yield _Bundle(keys, known)
                continue
        # What is known of a feature's rows tells their number as well.
        order = sorted(asked.statistics, key=lambda each: not each.features)
        yield _Bundle(keys, {each: several.statistic(parts, keys.shape[1], each) for each in order})


def _check_size(groups: int) -> None:
    if groups > _MOST_GROUPS:
        raise BadQuery(f"the answer has more than {_MOST_GROUPS:,} groups; ask for coarser ones or for less")


def groups_of(summary: Summary, layout: Layout, asked: Plan) -> Iterator[tuple[Integers, list[Owned]]]:
    """The groups of a question: keys x groups, and their pieces, some groups at a time.

    Without GROUP BY there is one, even when it is empty.
    """
    if asked.cut == "keep" and len(asked.parts) > 1:
        raise BadQuery(
            "cut='keep' would count a day twice that two pieces of the scope cut, and this condition has "
            f"{len(asked.parts)} pieces: ask without OR and NOT of times, or one question for each side"
        )
    binnings = [Binning(summary.scales, key) for key in asked.groups if isinstance(key, Binned)]
    for named, parts in _covered(summary, layout, asked):
        if not binnings:
            yield np.stack([named[key] for key in asked.groups]) if asked.groups else np.empty((0, 1), np.int64), parts
            continue
        groups = max(keys.size for keys in named.values()) if named else 1
        found: dict[tuple[int, ...], list[Owned]] = {}
        for part in parts:
            for numbers, own in _in_bins(part, binnings):
                found.setdefault(numbers, []).append(own)
        for numbers in tuple(found):
            bins = {each.key: np.full(groups, number) for each, number in zip(binnings, numbers, strict=True)}
            which, kept = _occupied(found.pop(numbers), groups)  # whatever they find out goes with them
            yield np.stack([(named | bins)[key][which] for key in asked.groups]), kept


def _occupied(parts: list[Owned], groups: int) -> tuple[Integers, list[Owned]]:
    """The groups that have a piece, and the pieces, which belong to these alone."""
    there, number = np.zeros(groups, np.bool_), np.full(groups + 1, -1)  # the last is where nothing belongs
    for part in parts:
        there[part.group[part.group >= 0]] = True
    which = np.flatnonzero(there)
    number[which] = np.arange(which.size)
    return which, [Owned(part.pieces, number[part.group]) for part in parts]


def touched(summary: Summary, layout: Layout, asked: Plan) -> dict[str, Any]:
    """What a question looks at: blocks, bytes, places, days, paths. Cost: that of opening what it touches."""
    found: dict[str, Any] = {}
    for part in asked.parts:
        for name, fact in _touched(_opened(summary, layout, asked, part), summary).items():
            is_sum = isinstance(fact, int) and name in found and name != "blocks in all"
            found[name] = found[name] + fact if is_sum else fact
    return found


def _opened(summary: Summary, layout: Layout, asked: Plan, part: Part) -> Opened:
    cuts_days = any(isinstance(key, BucketKey) for key in asked.groups)
    return Opened.of(summary, layout, part, asked.features, cuts_days, asked.cut)


def _touched(opened: Opened, summary: Summary) -> dict[str, Any]:
    names = opened.layout.features
    before = np.append(0, np.cumsum(opened.chosen))
    looked_at = [each for each in summary.blocks if before[each.place_high + 1] > before[each.place_low]]
    needed = summary.contexts.needed(set(opened.features))
    sizes = [
        len(block.head)
        + sum(len(block.bins[feature]) for feature in opened.features)
        + sum(len(block.paths[frame]) for frame in (0, *(1 + feature for feature in needed)))
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


def _covered(summary: Summary, layout: Layout, asked: Plan) -> Iterator[tuple[dict[Keyed, Integers], list[Owned]]]:
    """Groups by cells and buckets: the keys of each, and their pieces; not too many at a time."""
    cell_key = next((key for key in asked.groups if isinstance(key, CellKey)), None)
    bucket_key = next((key for key in asked.groups if isinstance(key, BucketKey)), None)
    found: list[tuple[Opened, Part, Covers, Integers]] = []
    for part in asked.parts:
        opened = _opened(summary, layout, asked, part)
        if opened.strata is not None:
            covers, keys = _covers(opened, cell_key, bucket_key)
            if covers.groups and covers.day.size:
                found.append((opened, part, covers, keys))
    if not asked.groups:
        one = np.zeros(1, np.int64)
        yield {}, [Owned(Pieces(Scoped(opened, covers), part.condition), one) for opened, part, covers, _ in found]
        return
    if not found:
        return
    keys, number = np.unique(np.concatenate([each[3] for each in found], axis=1), axis=1, return_inverse=True)
    own = np.split(number.reshape(-1), np.cumsum([each[2].groups for each in found])[:-1])
    _check_size(keys.shape[1])
    sizes = np.zeros(keys.shape[1], np.int64)
    for (opened, _, covers, _), of_groups in zip(found, own, strict=True):
        sizes[of_groups] += _sizes(opened, covers)
    for first, last in _runs(sizes):
        parts = []
        for (opened, part, covers, _), of_groups in zip(found, own, strict=True):
            begin, end = np.searchsorted(of_groups, (first, last))
            if begin < end:
                scoped = Scoped(opened, covers.only(int(begin), int(end)))
                parts.append(Owned(Pieces(scoped, part.condition), of_groups[begin:end] - first))
        named: dict[Keyed, Integers] = {}
        if cell_key is not None:
            named[cell_key] = keys[0, first:last]
        if bucket_key is not None:
            named[bucket_key] = keys[1, first:last]
        yield named, parts


def _sizes(opened: Opened, covers: Covers) -> Integers:
    """Groups: bins of their strata, and paths that are listed for them."""
    assert opened.strata is not None
    slots, bins = Slots.of(opened.strata, covers), opened.strata.bins
    kept = np.diff(np.append(0, np.cumsum(slots.kept))[slots.offset])
    brief = chance.is_brief(slots.kept, slots.offset, slots.paths, bins + 1)
    return np.asarray(np.where(brief, slots.paths, kept) + bins * np.diff(slots.offset))


def _runs(sizes: Integers) -> Iterator[tuple[int, int]]:
    """Groups one after the other that are evaluated at once: the first, and one past the last."""
    begin, ends = 0, np.cumsum(sizes)
    while begin < sizes.size:
        before = int(ends[begin] - sizes[begin])
        end = max(int(np.searchsorted(ends, before + _AT_ONCE, side="right")), begin + 1)
        yield begin, end
        begin = end


def _covers(opened: Opened, cell_key: CellKey | None, bucket_key: BucketKey | None) -> tuple[Covers, Integers]:
    """The days of groups by cells and buckets, and their keys: cell and bucket x groups, ascending."""
    strata = opened.strata
    assert strata is not None
    if cell_key is None and bucket_key is None:
        covered = opened.covered(opened.begin_us, opened.end_us)
        covers = Covers.whole(covered.share, covered.lean, strata.day_kept)
        return covers, np.zeros((2, 1), np.int64)
    covers, bucket = _by_bucket(opened, bucket_key)
    cell = _cells(opened.summary, cell_key)[strata.day_place[covers.day]]
    (cells, cell_rank), (buckets, bucket_rank) = (np.unique(each, return_inverse=True) for each in (cell, bucket))
    covers, keys = covers.parted(cell_rank * buckets.size + bucket_rank)
    return covers, np.stack((cells[keys // max(buckets.size, 1)], buckets[keys % max(buckets.size, 1)]))


def _by_bucket(opened: Opened, key: BucketKey | None) -> tuple[Covers, Integers]:
    """Days in scope that have rows, those of all buckets in one group, and the bucket of each; 0 without buckets."""
    strata = opened.strata
    assert strata is not None
    parts, ordinals = [], []
    for ordinal, covered in _buckets(opened, key):
        covers = Covers.whole(np.where(strata.day_rows > 0, covered.share, 0.0), covered.lean, strata.day_kept)
        covers, _ = covers.parted(np.zeros(covers.day.size, np.int64))
        parts.append(covers)
        ordinals.append(np.broadcast_to(ordinal, strata.day_rows.size)[covers.day])
    if not parts:
        return Covers.whole(np.empty(0)), np.empty(0, np.int64)
    return Covers.beside(parts), np.concatenate(ordinals)


def _in_bins(part: Owned, binnings: list[Binning]) -> Iterator[tuple[tuple[int, ...], Owned]]:
    """The bins that rows may have, of all features that are grouped by, and which groups have rows in them."""
    if not binnings:
        yield (), part
        return
    first, *rest = binnings
    for number, condition in first.conditions(part.pieces.scoped):
        pieces = part.pieces.but(condition)
        group = np.where(pieces.selection.count().high > 0, part.group, -1)
        if (group >= 0).any():
            for others, own in _in_bins(Owned(pieces, group), rest):
                yield (number, *others), own


def _cells(summary: Summary, key: CellKey | None) -> Integers:
    """The cell of each place."""
    if key is None:
        return np.zeros(summary.latitude.size, np.int64)
    return geohash.encode(summary.latitude, summary.longitude, key.length * geohash.BITS_PER_CHARACTER)


def _buckets(opened: Opened, key: BucketKey | None) -> Iterator[tuple[int | Integers, Covered]]:
    """The buckets of these strata within the scope, each with the share of every day that lies in it.

    Where every day lies in one bucket, all at once: the bucket of each day, and the share of it that is in scope.
    """
    begin, end, layout, strata = opened.begin_us, opened.end_us, opened.layout, opened.strata
    assert strata is not None
    if key is None:
        yield 0, opened.covered(begin, end)
        return
    span, zone = Bucket.parse(key.span), layout.zone if key.zone is None else Zone.named(key.zone)
    spell = opened.summary.layout.spell
    # A day lies in one bucket, whatever clocks do.
    if spell == 1 and span.encloses(DAY) and key.zone in (None, layout.timezone):
        covered = opened.covered(begin, end)
        yield span.ordinals(day_us(strata.day, layout), zone), covered
        return
    days = strata.day[strata.day_rows > 0]
    if not days.size:
        return
    ends_us = day_us(days.min(), layout, spell), past_us(days.max(), layout, spell) - 1
    first, last = (int(ordinal) for ordinal in span.ordinals(np.array(ends_us, np.int64), zone))
    _check_size(last - first)
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
