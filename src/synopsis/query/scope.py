"""Scope: which strands a question takes whole, which it cuts, and which it leaves out.

Strands are sorted by cell, so a geohash is a run of neighbouring strands, found by two searches. A geohash finer than
the sketch's cells lies within one cell, whose tight box of positions decides: a station is inside or outside, never
cut. Geohash cells are half-open, hence boxes are compared by the rows and columns of the finer grid that their corners
fall into, which is how positions are put into cells in the first place. Shapes are asked about the tight boxes, too. In
time a strand is known by its first and last instant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.query.regions import Region
from synopsis.query.runs import picked
from synopsis.query.scoping import Scope
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strands import Strands

_INSIDE: Final = 2
_CUT: Final = 1
_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Selection:
    """Strands in scope, by position, ascending."""

    inside: Integers | slice
    cut: Integers
    fraction: Floats  #: how much of each cut strand is thought to be in scope, 0 to 1

    def whole(self, cut: str | None) -> Selection:
        """The same with what is cut kept as if it were inside, or dropped; as it is with None."""
        if cut is None or not self.cut.size:
            return self
        none = Selection(self.inside, _NONE, np.empty(0))
        if cut == "drop":
            return none
        return replace(none, inside=np.union1d(picked(self.inside, np.arange(self.inside_size)), self.cut))

    @property
    def inside_size(self) -> int:
        """How many strands are inside."""
        if isinstance(self.inside, slice):
            return int(self.inside.stop - self.inside.start)
        return int(self.inside.size)


@dataclass(frozen=True, eq=False)
class _Places:
    """Disjoint runs of strands, ascending."""

    starts: Integers
    stops: Integers
    state: NDArray[np.int8]  #: _INSIDE or _CUT
    share: Floats  #: of the area that is in scope


def select(scope: Scope, strands: Strands) -> Selection:
    """The strands in scope.

    Cost: two searches a geohash, for shapes four searches and a look at its tight box for each cell found, and for
    ranges of time a pass over the strands found.
    """
    if scope.from_us is not None and scope.until_us is not None and scope.from_us >= scope.until_us:
        return Selection(slice(0, 0), _NONE, np.empty(0))
    places = _places(scope.prefixes, strands)
    if scope.shapes:
        places = _shaped(places, scope.shapes, strands)
    base = _positions(places.starts, places.stops)
    place_cut = places.state == _CUT
    timeless = scope.from_us is None and scope.until_us is None
    if timeless and not place_cut.any():
        return Selection(base, _NONE, np.empty(0))
    lengths = places.stops - places.starts
    inside = np.repeat(~place_cut, lengths)
    touched = np.ones(inside.size, np.bool_)
    if not timeless:
        first_us, last_us = strands.first_us[base], strands.last_us[base]
        if scope.from_us is not None:
            inside &= first_us >= scope.from_us
            touched &= last_us >= scope.from_us
        if scope.until_us is not None:
            inside &= last_us < scope.until_us
            touched &= first_us < scope.until_us
    cut = np.flatnonzero(touched & ~inside)
    share = places.share[np.searchsorted(np.cumsum(lengths), cut, side="right")]
    fraction = share * _time_share(strands, picked(base, cut), scope)
    return Selection(base if inside.all() else picked(base, np.flatnonzero(inside)), picked(base, cut), fraction)


def _time_share(strands: Strands, positions: Integers, scope: Scope) -> Floats:
    """How much of the time between its first and last instant is in scope."""
    first_us, last_us = strands.first_us[positions], strands.last_us[positions]
    begin_us = first_us if scope.from_us is None else np.maximum(first_us, scope.from_us)
    end_us = last_us if scope.until_us is None else np.minimum(last_us, scope.until_us)
    share = np.clip((end_us - begin_us) / np.maximum(last_us - first_us, 1), 0.0, 1.0)
    return np.where(first_us == last_us, 1.0, share)


def _positions(starts: Integers, stops: Integers) -> Integers | slice:
    """All positions of some runs: a slice where they make up one."""
    if not starts.size:
        return slice(0, 0)
    if np.array_equal(starts[1:], stops[:-1]):
        return slice(int(starts[0]), int(stops[-1]))
    lengths = stops - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def _places(prefixes: tuple[str, ...] | None, strands: Strands) -> _Places:
    bits = strands.layout.bits
    if prefixes is None:
        whole = np.array([len(strands)])
        return _Places(np.zeros(1, np.int64), whole, np.full(1, _INSIDE, np.int8), np.ones(1))
    cells = [geohash.parse(prefix) for prefix in prefixes]
    coarse = [(cell << bits - own, (cell + 1) << bits - own) for cell, own in cells if own <= bits]
    fine = [(cell, own) for cell, own in cells if own > bits]
    bounds = np.array(coarse, np.int64).reshape(-1, 2)
    parents, state, share = _fine(fine, strands)
    low, high = np.append(bounds[:, 0], parents), np.append(bounds[:, 1], parents + 1)
    state = np.append(np.full(len(coarse), _INSIDE, np.int8), state)
    share = np.append(np.ones(len(coarse)), share)
    order = np.argsort(low)
    starts, stops = np.searchsorted(strands.cell, low[order]), np.searchsorted(strands.cell, high[order])
    found = stops > starts
    return _Places(starts[found], stops[found], state[order][found], share[order][found])


def _shaped(places: _Places, shapes: tuple[Region, ...], strands: Strands) -> _Places:
    """The cells within these places of which all shapes hold something, as a run each."""
    if not len(strands):
        return places
    known = strands.cells
    low = np.searchsorted(known.key, strands.cell[places.starts])
    high = np.searchsorted(known.key, strands.cell[places.stops - 1], side="right")
    cells, owner = _positions(low, high), np.repeat(np.arange(low.size), high - low)
    key, boxes = known.key[cells], tuple(side[cells] for side in known.box)
    inside, touched, share = places.state[owner] == _INSIDE, np.ones(key.size, np.bool_), places.share[owner]
    for shape in shapes:
        held, met = shape.covers(*boxes)
        inside, touched = inside & held, touched & met
        cut = np.flatnonzero(touched & ~held)
        share[cut] *= shape.share(*(side[cut] for side in boxes))
    starts, stops = np.searchsorted(strands.cell, key[touched]), np.searchsorted(strands.cell, key[touched], "right")
    return _Places(starts, stops, np.where(inside, _INSIDE, _CUT).astype(np.int8)[touched], share[touched])


def _fine(prefixes: list[tuple[int, int]], strands: Strands) -> tuple[Integers, NDArray[np.int8], Floats]:
    """For geohashes finer than the cells: the cells that they touch, how, and what share of each box they take."""
    known, bits = strands.cells, strands.layout.bits
    parents: list[Integers] = [_NONE]
    states: list[NDArray[np.int8]] = [np.empty(0, np.int8)]
    shares: list[Floats] = [np.empty(0)]
    for own in sorted({own for _, own in prefixes}):
        cells = np.array([cell for cell, length in prefixes if length == own], np.int64)
        parent = cells >> (own - bits)
        at = np.searchsorted(known.key, parent)
        at[at == known.key.size] = 0
        exists = known.key[at] == parent if known.key.size else np.zeros(cells.size, np.bool_)
        cells, parent, at = cells[exists], parent[exists], at[exists]
        column, row = geohash.deinterleave(cells, own)
        low_column, low_row = geohash.deinterleave(geohash.encode(known.south[at], known.west[at], own), own)
        high_column, high_row = geohash.deinterleave(geohash.encode(known.north[at], known.east[at], own), own)
        touched = (low_column <= column) & (column <= high_column) & (low_row <= row) & (row <= high_row)
        within = touched & (low_column == high_column) & (low_row == high_row)
        south, west, north, east = geohash.decode(cells, own)
        share = _overlap(known.south[at], known.north[at], south, north)
        share = share * _overlap(known.west[at], known.east[at], west, east)
        parents.append(parent[touched])
        states.append(np.where(within, _INSIDE, _CUT).astype(np.int8)[touched])
        shares.append(share[touched])
    # Geohashes in one scope are disjoint: a cell is inside if it is inside one of them, and shares add up.
    unique, group = np.unique(np.concatenate(parents), return_inverse=True)
    state = np.zeros(unique.size, np.int8)
    np.maximum.at(state, group, np.concatenate(states))
    return unique, state, np.minimum(np.bincount(group, np.concatenate(shares), unique.size), 1.0)


def _overlap(low: Floats, high: Floats, query_low: Floats, query_high: Floats) -> Floats:
    """How much of low..high lies in the query's range; a range without width lies in it whole."""
    width = high - low
    shared = np.clip(np.minimum(high, query_high) - np.maximum(low, query_low), 0.0, None)
    return np.where(width > 0, shared / np.where(width > 0, width, 1.0), 1.0)
