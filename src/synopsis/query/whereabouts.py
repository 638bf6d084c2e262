"""Whereabouts: how much of the cells and days of moving objects is in scope, and which of their paths.

A cell that stands for places may lie across the edge of a scope, and so may a day. Paths of moving objects know where
in their cell and when on their day they were, in bins like those of features; of such cells and days they tell the part
that is in scope.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.query.covers import Covers
from synopsis.query.estimate import Estimates
from synopsis.query.predicates import Between, positive
from synopsis.query.sampled import Sample
from synopsis.query.scoping import Scope
from synopsis.query.shapes import Box
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strata import Strata, bin_ranges
from synopsis.sketch.summary import Summary

Boxes = tuple[Floats, Floats, Floats, Floats]  #: south, west, north, east

#: A cell or day that is cut is neither wholly in scope nor wholly outside.
_LITTLE = 1e-6


@dataclass(frozen=True)
class Whereabouts:
    """Which cells a scope touches, and which it holds whole."""

    summary: Summary
    scope: Scope
    cells: Boxes  #: places
    touched: NDArray[np.bool_]
    inside: NDArray[np.bool_]
    first: int  #: the feature that is the latitude; longitude and time of day follow

    @classmethod
    def of(cls, summary: Summary, layout: Layout, scope: Scope) -> Whereabouts:
        """What a scope asks of moving objects. Cost: a pass over the cells for every geohash and shape."""
        bits = summary.layout.place_bits
        assert bits is not None
        cells = geohash.decode(geohash.encode(summary.latitude, summary.longitude, bits), bits)
        inside = touched = np.ones(summary.latitude.size, np.bool_)
        if scope.prefixes is not None:
            parts = np.stack([box.share(*cells) for box in _prefixed(scope)])
            inside, touched = parts.max(axis=0) >= 1.0, parts.max(axis=0) > 0.0
        for shape in scope.shapes:
            whole, some = shape.covers(*cells)
            inside, touched = inside & whole, touched & some
        return cls(summary, scope, cells, touched, inside, len(layout.features))

    def features(self, cuts_days: bool) -> tuple[int, ...]:
        """The features that paths of cut cells and days are asked for."""
        place = () if self.inside[self.touched].all() else (self.first, self.first + 1)
        return (*place, self.first + 2) if cuts_days else place

    def within(
        self,
        strata: Strata,
        features: tuple[int, ...],
        share: Floats,
        starts_us: Integers,
        begin: int | None,
        end: int | None,
    ) -> tuple[Floats, Floats | None]:
        """Days: the part in scope, given the part in time; and how much rather each path of them is in scope.

        Cost: a pass over the paths of cut cells, and one over all paths of the strata for every day that is cut.
        """
        place = strata.day_place
        off_edge = (share > 0.0) & ~self.inside[place]
        cut = (share > 0.0) & (share < 1.0)
        if not off_edge.any() and not cut.any():
            return share, None
        day = np.repeat(np.arange(strata.day_rows.size), strata.day_kept)
        held = np.ones(day.size)
        guess = share.copy()
        if off_edge.any():
            which = np.flatnonzero(off_edge[day])
            held[which] = self._held(self._positions(strata, features, which, place[day[which]]))
            area = np.zeros(self.touched.size)
            edge = np.flatnonzero(self.touched & ~self.inside)
            area[edge] = self._area(edge)
            guess[off_edge] *= area[place[off_edge]]
        for start in np.unique(starts_us[cut]):
            low = -math.inf if begin is None else float(begin - start)
            high = math.inf if end is None else float(end - start)
            then = positive(Between(self.first + 2, low, high, high_closed=False))
            whole = Sample(strata, self.summary.scales, features, Covers.whole(np.ones(share.size)))
            during = Estimates(whole, then).probability
            held *= np.where((cut & (starts_us == start))[day], during, 1.0)
        reached = np.bincount(day, held, strata.day_rows.size)
        part = np.where(strata.day_kept > 0, reached / np.maximum(strata.day_kept, 1), guess)
        open_days = off_edge | cut
        part = np.where(open_days, np.clip(part, _LITTLE, 1.0 - _LITTLE), share)
        lean = np.where(open_days[day], held / np.maximum(part, _LITTLE)[day], 1.0)
        return part, lean

    def _positions(self, strata: Strata, features: tuple[int, ...], which: Integers, place: Integers) -> Boxes:
        """The boxes in which some paths were, given their places."""
        south, west, north, east = (edge[place] for edge in self.cells)
        stratum = np.searchsorted(strata.path_offset, which, side="right") - 1
        sides = []
        for feature, start, size in ((self.first, south, north - south), (self.first + 1, west, east - west)):
            position = features.index(feature)
            code = strata.codes[position][which]
            sides.append([start + size * each[stratum, code] for each in self._ranges(strata, feature, position)])
        return sides[0][0], sides[1][0], sides[0][1], sides[1][1]

    def _ranges(self, strata: Strata, feature: int, position: int) -> tuple[Floats, Floats]:
        return bin_ranges(strata, self.summary.scales, feature, position)

    def _held(self, boxes: Boxes) -> Floats:
        """The part of each small box that is in scope; of a polygon, whether the middle is."""
        held = np.ones(boxes[0].size)
        if self.scope.prefixes is not None:
            held = np.minimum(np.sum([box.share(*boxes) for box in _prefixed(self.scope)], axis=0), 1.0)
        for shape in self.scope.shapes:
            middle = (boxes[0] + boxes[2]) / 2, (boxes[1] + boxes[3]) / 2
            held = held * (shape.share(*boxes) if isinstance(shape, Box) else shape.holds(*middle))
        return np.asarray(held)

    def _area(self, places: Integers) -> Floats:
        """The part of the area of some cells that is in scope."""
        cells = tuple(edge[places] for edge in self.cells)
        area = np.ones(places.size)
        if self.scope.prefixes is not None:
            area = np.minimum(np.sum([box.share(*cells) for box in _prefixed(self.scope)], axis=0), 1.0)
        for shape in self.scope.shapes:
            area = area * shape.share(*cells)
        return np.asarray(area)


def _prefixed(scope: Scope) -> list[Box]:
    """The cells that the scope names."""
    cells = (geohash.decode(*geohash.parse(prefix)) for prefix in scope.prefixes or ())
    return [Box(*(float(edge) for edge in cell)) for cell in cells]
