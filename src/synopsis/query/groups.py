"""Groups: which strands play a part in which group of an answer.

A strand's cell lies in one coarser cell, and in one finer cell when its tight box does. Its bucket lies in one
enclosing bucket; under any other bucket its first and last instant decide: within one bucket it belongs to that group,
across several it is cut, and plays a part in each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np

from synopsis.core.errors import NotKept
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.query.binding import Keyed, Plan
from synopsis.query.bounds import Groups
from synopsis.query.runs import Runs, distinct, picked
from synopsis.query.scope import select
from synopsis.query.scoping import Scope
from synopsis.query.tree import BucketKey, CellKey
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strands import Strands

#: Parts that one question may make of its strands before it is refused: about a second of work.
MOST_PARTS: Final = 5_000_000
_SPARSE: Final = 4  #: a table may have this many entries for each part before searching is cheaper


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of an answer in order of their keys."""

    groups: Groups
    size: int
    keys: Mapping[Keyed, Integers]  #: the cell of each group, and the ordinal of its bucket, if grouped by them


def _none() -> Integers:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class _Side:
    """Strands of one side, inside or cut."""

    positions: Integers | slice  #: ascending
    buckets: Integers = field(default_factory=_none)  #: of each part, if grouped by buckets
    cells: Integers = field(default_factory=_none)  #: the distinct cells, ascending, if grouped by cells
    lengths: Integers = field(default_factory=_none)  #: how many parts each of these cells has


def group(plan: Plan, strands: Strands) -> Grouping:
    """The groups of a plan. Cost: a few passes over the strands in scope, and a sort unless cells lead."""
    found = [_of_part(plan.groups, part.scope, strands, plan.cut) for part in plan.parts]
    return found[0] if len(found) == 1 else _together(plan.groups, found)


def _of_part(keys: tuple[Keyed, ...], scope: Scope, strands: Strands, cut_is: str | None) -> Grouping:
    selection = select(scope, strands).whole(cut_is)
    if not keys:
        runs = Runs.single(selection.inside, selection.inside_size), Runs.single(selection.cut, selection.cut.size)
        return Grouping(Groups(*runs, selection.fraction), 1, {})
    inside, cut, fraction = _Side(selection.inside), _Side(selection.cut), selection.fraction
    for key in keys:
        if isinstance(key, BucketKey):
            inside, cut, fraction = _by_buckets(key, scope, strands, inside, cut, fraction)
    for key in keys:
        if isinstance(key, CellKey):
            inside, cut = _by_cells(key, strands, inside, cut)
    if all(isinstance(key, CellKey) for key in keys):
        return _of_cells(keys[0], inside, cut, fraction)
    return _numbered(keys, inside, cut, fraction)


def _together(keys: tuple[Keyed, ...], found: list[Grouping]) -> Grouping:
    """The groups of all parts of a question; a strand that several parts cut is cut once, by all of them."""
    columns = [np.concatenate([each.keys[key] for each in found]) for key in keys]
    if keys:
        names, number = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        number, size = number.reshape(-1), len(names)
    else:
        names, number, size = np.empty((1, 0), np.int64), np.zeros(len(found), np.int64), 1
    first = np.cumsum([each.size for each in found]) - [each.size for each in found]

    def parts(side: Literal["inside", "cut"]) -> tuple[Integers, Integers]:
        """Positions and groups, of all parts."""
        runs: list[Runs] = [getattr(each.groups, side) for each in found]
        positions = [picked(each.positions, np.arange(each.parts)) for each in runs]
        groups = [number[each.groups + start] for each, start in zip(runs, first, strict=True)]
        return np.concatenate(positions), np.concatenate(groups)

    # A strand that is kept whole for what two parts cut of it is there once.
    positions, groups = parts("inside")
    pairs = np.unique(np.stack([groups, positions], axis=1), axis=0)
    inside = Runs.of(pairs[:, 1], pairs[:, 0], size)
    positions, groups = parts("cut")
    pairs, own = np.unique(np.stack([groups, positions], axis=1), axis=0, return_inverse=True)
    share = np.bincount(own.reshape(-1), np.concatenate([each.groups.fraction for each in found]), len(pairs))
    cut = Runs.of(pairs[:, 1], pairs[:, 0], size)
    return Grouping(Groups(inside, cut, np.minimum(share, 1.0)), size, dict(zip(keys, names.T, strict=True)))


# --- time -------------------------------------------------------------------------------------------------------------


def _by_buckets(
    key: BucketKey, scope: Scope, strands: Strands, inside: _Side, cut: _Side, fraction: Floats
) -> tuple[_Side, _Side, Floats]:
    """Both sides with the bucket of each part; strands that lie across buckets move to the cut side."""
    span, own, zone = Bucket.parse(key.span), strands.layout.span, _zone(key, strands)
    if span.encloses(own) and zone == strands.layout.zone:
        inside = _Side(inside.positions, _coarsened(strands.bucket[inside.positions], own, span))
        return inside, _Side(cut.positions, _coarsened(strands.bucket[cut.positions], own, span)), fraction
    begin_us, end_us = strands.first_us[inside.positions], strands.last_us[inside.positions]
    low, high = _ordinal_range(span, begin_us, end_us, zone)
    across, within = np.flatnonzero(low < high), np.flatnonzero(low == high)
    # What was cut already is known to be in scope only from here to there.
    cut_begin_us, cut_end_us = strands.first_us[cut.positions], strands.last_us[cut.positions]
    if scope.from_us is not None:
        cut_begin_us = np.maximum(cut_begin_us, scope.from_us)
    if scope.until_us is not None:
        cut_end_us = np.minimum(cut_end_us, scope.until_us - 1)
    cut_low, cut_high = _ordinal_range(span, cut_begin_us, cut_end_us, zone)
    positions = np.append(picked(cut.positions, np.arange(cut_low.size)), picked(inside.positions, across))
    order = np.argsort(positions, kind="stable")
    parts, buckets, share = _expanded(
        key,
        strands,
        *(
            np.append(one, other[across])[order]
            for one, other in ((cut_low, low), (cut_high, high), (cut_begin_us, begin_us), (cut_end_us, end_us))
        ),
    )
    fraction = np.append(fraction, np.ones(across.size))[order][parts] * share
    inside = _Side(picked(inside.positions, within), low[within])
    return inside, _Side(positions[order][parts], buckets), fraction


def _zone(key: BucketKey, strands: Strands) -> Zone:
    """Whose clocks cut the buckets."""
    layout = strands.layout
    return layout.zone if key.zone in (None, layout.timezone) else Zone.named(key.zone)


def _coarsened(ordinals: Integers, own: Bucket, span: Bucket) -> Integers:
    if own == span or not ordinals.size:
        return ordinals
    low, high = int(ordinals.min()), int(ordinals.max())
    if high - low > 4 * ordinals.size:
        return own.coarsen(ordinals, span)
    return own.coarsen(np.arange(low, high + 1), span)[ordinals - low]  # calendars are slow, tables are not


def _ordinal_range(span: Bucket, begin_us: Integers, end_us: Integers, zone: Zone) -> tuple[Integers, Integers]:
    """The first and the last bucket that instants from begin to end can fall into.

    Buckets follow the clock on the wall, which may go back: then the least time that it shows is the one right after
    the change, and the greatest the one right before. Changes lie days apart, so the nearest one decides.
    """
    low, high = zone.to_local(begin_us), zone.to_local(end_us)
    changes = zone.changes_us
    if changes.size:
        after = np.searchsorted(changes, begin_us, side="right")
        turn_us = changes[np.minimum(after, changes.size - 1)]
        lowest = turn_us + zone.offsets_us[np.minimum(after, changes.size - 1) + 1]
        low = np.where((turn_us > begin_us) & (turn_us <= end_us), np.minimum(low, lowest), low)
        before = np.maximum(np.searchsorted(changes, end_us, side="right") - 1, 0)
        turn_us = changes[before]
        highest = turn_us - 1 + zone.offsets_us[before]
        high = np.where((turn_us > begin_us) & (turn_us <= end_us), np.maximum(high, highest), high)
    return span.ordinals(low), span.ordinals(high)


def _expanded(
    key: BucketKey, strands: Strands, low: Integers, high: Integers, begin_us: Integers, end_us: Integers
) -> tuple[Integers, Integers, Floats]:
    """A part for each bucket that a strand can have rows in: which strand, which bucket, and what share of its time."""
    counts = high - low + 1
    total = int(counts.sum())
    if total > MOST_PARTS:
        raise NotKept(
            f"BUCKET('{key.span}') would cut the strands in scope into {total:,} parts, more than {MOST_PARTS:,}; "
            f"the finest bucket that remains is BUCKET('{strands.layout.bucket}')",
            *key.where,
        )
    parts = np.repeat(np.arange(low.size), counts)
    buckets = np.arange(total) + np.repeat(low - (np.cumsum(counts) - counts), counts)
    span, zone = Bucket.parse(key.span), _zone(key, strands)
    starts_us, ends_us = span.starts_us(buckets, zone), span.ends_us(buckets, zone)
    overlap_us = np.minimum(end_us[parts], ends_us) - np.maximum(begin_us[parts], starts_us)
    share = np.clip(overlap_us / np.maximum(end_us - begin_us, 1)[parts], 0.0, 1.0)
    return parts, buckets, np.where(counts[parts] == 1, 1.0, share)


# --- space ------------------------------------------------------------------------------------------------------------


def _by_cells(key: CellKey, strands: Strands, inside: _Side, cut: _Side) -> tuple[_Side, _Side]:
    """Both sides with their cells; strands are sorted by cell, so each cell is a run of them."""
    bits, to_bits = strands.layout.bits, key.length * geohash.BITS_PER_CHARACTER
    own = [distinct(strands.cell[side.positions] >> max(bits - to_bits, 0)) for side in (inside, cut)]
    if to_bits > bits:
        known = np.union1d(own[0][0], own[1][0])
        finer = _finer(key, strands, known)
        own = [(finer[np.searchsorted(known, cells)], lengths) for cells, lengths in own]
    return replace(inside, cells=own[0][0], lengths=own[0][1]), replace(cut, cells=own[1][0], lengths=own[1][1])


def finest_cell(key: CellKey, plan: Plan, strands: Strands) -> int:
    """The length of the finest cells, as long as asked or shorter, that part no positions which are kept together."""
    bits = key.length * geohash.BITS_PER_CHARACTER
    if bits <= strands.layout.bits:
        return key.length
    found = [select(part.scope, strands) for part in plan.parts]
    sides = [strands.cell[side] for each in found for side in (each.inside, each.cut)]
    low, high = _corners(bits, strands, np.unique(np.concatenate(sides)))
    differ = int(np.bitwise_or.reduce(low ^ high, initial=0)).bit_length()
    return (bits - differ) // geohash.BITS_PER_CHARACTER


def _corners(bits: int, strands: Strands, cells: Integers) -> tuple[Integers, Integers]:
    """The finer cells of the outermost corners of the positions in each cell of the sketch."""
    at = np.searchsorted(strands.cells.key, cells)
    south, west, north, east = (side[at] for side in strands.cells.box)
    return geohash.encode(south, west, bits), geohash.encode(north, east, bits)


def _finer(key: CellKey, strands: Strands, cells: Integers) -> Integers:
    """For cells of the sketch the one finer cell that holds all their positions."""
    low, high = _corners(key.length * geohash.BITS_PER_CHARACTER, strands, cells)
    assert np.array_equal(low, high)  # grains let no finer key through
    return low


# --- both -------------------------------------------------------------------------------------------------------------


def _of_cells(key: Keyed, inside: _Side, cut: _Side, fraction: Floats) -> Grouping:
    """Groups by cell alone, which need no sorting."""
    names = np.union1d(inside.cells, cut.cells)

    def runs(side: _Side) -> Runs:
        return Runs.side_by_side(side.positions, np.searchsorted(names, side.cells), side.lengths, names.size)

    return Grouping(Groups(runs(inside), runs(cut), fraction), names.size, {key: names})


def _numbered(keys: tuple[Keyed, ...], inside: _Side, cut: _Side, fraction: Floats) -> Grouping:
    """Groups numbered in the order of their keys, the first key of GROUP BY leading."""
    ranked = [_cell_ranks(inside, cut) if isinstance(key, CellKey) else _bucket_ranks(inside, cut) for key in keys]
    codes, width = ranked[0][1], ranked[0][0].size
    for names, ranks in ranked[1:]:
        codes, width = codes * names.size + ranks, width * names.size
    rest, groups = _dense(codes, width)
    size, split = rest.size, inside.buckets.size
    found: dict[Keyed, Integers] = {}
    for key, (names, _) in zip(reversed(keys), reversed(ranked), strict=True):
        rest, rank = np.divmod(rest, max(names.size, 1))
        found[key] = names[rank]
    inside_runs, _ = _sorted(inside, groups[:split], size)
    cut_runs, order = _sorted(cut, groups[split:], size)
    fraction = fraction if order is None else fraction[order]
    return Grouping(Groups(inside_runs, cut_runs, fraction), size, found)


def _cell_ranks(inside: _Side, cut: _Side) -> tuple[Integers, Integers]:
    """The distinct cells of both sides, and for each part the position of its own among them."""
    names = np.union1d(inside.cells, cut.cells)
    ranks = [np.repeat(np.searchsorted(names, side.cells), side.lengths) for side in (inside, cut)]
    return names, np.concatenate(ranks)


def _bucket_ranks(inside: _Side, cut: _Side) -> tuple[Integers, Integers]:
    """Buckets likewise; all those between the first and the last, if they are not too many."""
    ordinals = np.concatenate([inside.buckets, cut.buckets])
    if not ordinals.size:
        return ordinals, ordinals
    low, high = int(ordinals.min()), int(ordinals.max())
    if high - low > _SPARSE * ordinals.size:
        return np.unique(ordinals, return_inverse=True)
    return np.arange(low, high + 1), ordinals - low


def _dense(codes: Integers, width: int) -> tuple[Integers, Integers]:
    """The codes that occur, ascending, and for each code its position among them."""
    if width > _SPARSE * codes.size + 1000:
        return np.unique(codes, return_inverse=True)
    occurs = np.zeros(width, np.bool_)
    occurs[codes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def _sorted(side: _Side, groups: Integers, size: int) -> tuple[Runs, Integers | None]:
    """The parts sorted by group, and the order that did it (None if they were sorted already)."""
    if not np.any(groups[1:] < groups[:-1]):
        return Runs.of(side.positions, groups, size), None
    # NumPy sorts small integers by radix, several times faster than long ones.
    small = np.int8 if size < 2**7 else np.int16 if size < 2**15 else np.int64
    order = np.argsort(groups.astype(small), kind="stable")
    return Runs.of(picked(side.positions, order), groups[order], size), order
