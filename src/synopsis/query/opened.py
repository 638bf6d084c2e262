"""Opening: which strata of a summary are in scope, and how much of each of their days.

A place is in scope or not, and so is a day, but for the first and the last of a range of time, which may be cut. Only
the blocks that hold such places and days are opened, and only the frames of the features that the question names. The
cells that stand for places of moving objects may be cut, too: `whereabouts` tells how much of them is in scope.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.query.predicates import EVERYTHING
from synopsis.query.regions import Region
from synopsis.query.sampled import effects_of
from synopsis.query.scoping import Part, Scope
from synopsis.query.whereabouts import Whereabouts
from synopsis.sketch.compiled import Later
from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.spells import slowed_end
from synopsis.sketch.strata import EVER, Strata
from synopsis.sketch.summary import Summary
from synopsis.sketch.tallies import DAY_US

if TYPE_CHECKING:
    from synopsis.sketch import hours, mixing
else:
    hours, mixing = Later("synopsis.sketch.hours"), Later("synopsis.sketch.mixing")

DAY: Final = Bucket.parse("1d")

#: Days in any span of time.
_MOST_DAYS: Final = 1 << 40

#: Regions whose places are remembered, a byte each: together they take as much as the positions of half the places.
_REMEMBERED: Final = 8

#: Days that local time may be away from UTC, and clocks that are set back may reach beyond.
_ZONES_REACH: Final = 3


@dataclass(frozen=True)
class Covered:
    """How much of each day is in scope, and how much rather each path of it than the others."""

    share: Floats  #: days
    lean: Floats | None = None  #: paths; None: all of a day alike


@dataclass(frozen=True)
class Opened:
    """Strata with places and days in scope."""

    summary: Summary
    layout: Layout
    features: tuple[int, ...]
    strata: Strata | None  #: None where nothing is in scope
    chosen: NDArray[np.bool_]  #: places
    begin_us: int | None
    end_us: int | None
    whereabouts: Whereabouts | None = None  #: of moving objects
    cut: str | None = None  #: "keep" or "drop": what the scope cuts counts whole, or not at all

    @classmethod
    def of(
        cls,
        summary: Summary,
        layout: Layout,
        part: Part,
        wanted: Iterable[int],
        cuts_days: bool,
        cut: str | None = None,
    ) -> Opened:
        """The strata of all places in scope that have days in scope, with the features that the question names.

        `cuts_days` says that the question has groups which may part a day, `cut` whether days and cells that the scope
        cuts are kept or dropped whole.
        """
        features = tuple(sorted(part.features.union(wanted))) or (0,)
        chosen, whereabouts = _where(summary, layout, part.scope)
        begin, end = part.scope.from_us, part.scope.until_us
        if whereabouts is not None:
            timed = begin is not None or end is not None
            features += whereabouts.features(timed or cuts_days)
        strata = None
        if begin is None or end is None or begin < end:
            # Stretches tell nothing of rows that fulfil a condition.
            stretched = part.condition == EVERYTHING
            days = days_of(layout, begin, end, summary.layout.spell)
            strata = summary.opened_within(features, chosen, *days, stretched=stretched)
            if strata is not None and summary.layout.moving:
                strata = replace(strata, codes=mixing.mixed(strata.codes, strata.day_kept))
        return cls(summary, layout, features, strata, chosen, begin, end, whereabouts, cut)

    @classmethod
    def around(cls, summary: Summary, layout: Layout, scope: Scope) -> Opened:
        """What a scope asks of places and times, before anything is opened."""
        chosen, whereabouts = _where(summary, layout, scope)
        return cls(summary, layout, (), None, chosen, scope.from_us, scope.until_us, whereabouts)

    @cached_property
    def is_beyond_paths(self) -> bool:
        """Whether paths are no ground for intervals at 95%."""
        scales = self.summary.scales
        return any(scales.is_widened(feature) for feature in self.features)

    @property
    def effects(self) -> Floats:
        """By how much errors are larger than neighbouring paths tell."""
        return effects_of(self.summary.effects, len(self.summary.scales.quantizers))

    def _slow(self, instant_us: int | None) -> int | None:
        """What the clocks that a summary goes by show at an instant."""
        if instant_us is None:
            return None
        local = instant_us if self.layout.timezone == "UTC" else int(self.layout.zone.to_local(instant_us))
        return slowed_end(local, self.summary.layout.spell)

    def covered(self, begin: int | None, end: int | None) -> Covered:
        """What of each day and place in scope lies in a span of time."""
        strata = self.strata
        assert strata is not None
        spell = self.summary.layout.spell
        slow = self._slow(begin), self._slow(end)
        if self.layout.timezone == "UTC":
            share = strata.covered(self.chosen, *slow)
        else:
            share = np.where(self.chosen[strata.day_place], _shares(strata, self.layout, begin, end, spell), 0.0)
        told = self.summary.layout.hours
        covered = Covered(share, None if told is None else _leaning(strata, share, *slow, *told))
        if self.whereabouts is not None:
            starts = day_us(strata.day, self.layout)
            covered = Covered(*self.whereabouts.within(strata, self.features, share, starts, begin, end))
        if self.cut is None:
            return covered
        whole = covered.share > 0.0 if self.cut == "keep" else covered.share >= 1.0
        return Covered(whole.astype(np.float64))


def _leaning(
    strata: Strata, share: Floats, begin: int | None, end: int | None, slot_us: int, below: np.uint64
) -> Floats | None:
    """Paths: how much rather than its day each is in scope; None where no day is cut."""
    if not ((share > 0.0) & (share < 1.0) & (strata.day_rows > 0)).any():
        return None
    ends = (-EVER if begin is None else begin, EVER if end is None else end)
    runs = (strata.run_turn, strata.run_first, strata.run_days, strata.day_kept)
    found: Floats = hours.leaning(*runs, share, *ends, slot_us, below)
    return found


def _where(summary: Summary, layout: Layout, scope: Scope) -> tuple[NDArray[np.bool_], Whereabouts | None]:
    """Which places a scope touches, and how much of them where they are cells of moving objects."""
    if not summary.layout.moving:
        return _places(summary, scope), None
    whereabouts = Whereabouts.of(summary, layout, scope)
    return whereabouts.touched, whereabouts


def _places(summary: Summary, scope: Scope) -> NDArray[np.bool_]:
    """Which places are in scope."""
    return held(places_of(summary), scope.prefixes, scope.shapes)


def places_of(summary: Summary) -> Places:
    """The places of a summary."""
    return Places(summary.latitude, summary.longitude)


class Places:
    """The positions of a summary's places, equal only to themselves."""

    __slots__ = ("latitude", "longitude")

    def __init__(self, latitude: Floats, longitude: Floats) -> None:
        self.latitude, self.longitude = latitude, longitude

    def __hash__(self) -> int:
        return id(self.latitude)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Places) and other.latitude is self.latitude and other.longitude is self.longitude


@lru_cache(maxsize=_REMEMBERED)
def held(places: Places, prefixes: tuple[str, ...] | None, shapes: tuple[Region, ...]) -> NDArray[np.bool_]:
    """Which places lie in all of these. Cost: a pass over the places for every geohash and shape, the first time."""
    latitude, longitude = places.latitude, places.longitude
    found = [] if prefixes is None else [geohash.within(prefixes, latitude, longitude)]
    found += [shape.holds(latitude, longitude) for shape in shapes]
    return reduce(np.logical_and, found) if found else np.ones(latitude.size, np.bool_)


def day_us(day: Integers, layout: Layout, spell: int = 1) -> Integers:
    """The first instant of each day, or of each spell of so many days."""
    if layout.timezone == "UTC":
        return day * (spell * DAY_US)
    return DAY.starts_us(day * spell, layout.zone)


def past_us(day: Integers, layout: Layout, spell: int = 1) -> Integers:
    """The instant from which on nothing falls into each day any more; clocks may go back over midnight."""
    if layout.timezone == "UTC":
        return (day + 1) * (spell * DAY_US)
    return DAY.reach_us((day + 1) * spell - 1, layout.zone)


def days_of(layout: Layout, begin: int | None, end: int | None, spell: int = 1) -> tuple[int, int]:
    """The first and the last day, or spell of so many, with an instant in a span of time."""
    first = -_MOST_DAYS if begin is None else begin // (spell * DAY_US)
    last = _MOST_DAYS if end is None else (end - 1) // (spell * DAY_US)
    if layout.timezone == "UTC":
        return first, last
    near = np.arange(-_ZONES_REACH, _ZONES_REACH + 1)
    if begin is not None:
        first = int(first + near[past_us(first + near, layout, spell) > begin][0])
    if end is not None:
        last = int(last + near[day_us(last + near, layout, spell) < end][-1])
    return first, last


def _shares(strata: Strata, layout: Layout, begin: int | None, end: int | None, spell: int) -> Floats:
    if begin is None and end is None:
        return np.ones(strata.day_rows.size)
    first, last = day_us(strata.day, layout, spell), past_us(strata.day, layout, spell)
    left = first if begin is None else np.maximum(first, begin)
    right = last if end is None else np.minimum(last, end)
    return np.asarray(np.clip((right - left) / (last - first), 0.0, 1.0))
