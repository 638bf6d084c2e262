"""The budget: from probes of the rows and the bytes allowed to the layout of strata and paths.

What strata and paths cost is measured, not reckoned: probes are made into blocks with several layouts, and the rest
follows in proportion. A probe of stations has all rows of some places; one of moving objects, some rows of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.sketch import blocks, evenly, stretches
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.lengths import ALL_LENGTHS, GROWTH, Cut, dealt, share_off
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import ABSENT, Codes, Scales
from synopsis.sketch.spells import SPELLS, slowed
from synopsis.sketch.strata import Strata, bin_codes, from_tallies
from synopsis.sketch.stretches import Levels, Stretching
from synopsis.sketch.summary import BINS, cut
from synopsis.sketch.tallies import DAY_US, EVERYTHING, PERIODS, Tallies, numbered, periods

#: Bits of the cells whose stations share bins where there is no room for bins of each, finest first.
SHARED = (15, 10, 5, 1)

#: Bits of the cells that stand for places of moving objects, finest first, and the share of the budget that they and
#: their days may take.
PLACES, _MOST_PLACES = (20, 16, 12, 8, 5, 1), 0.04

#: Bins of moving objects: there is no end of places to average over, so that finer ones serve better.
MOVING_BINS = (249, 127, 63, 31, 15, 7)

#: Share of the budget that exact counts may take: of stations, and where these could not be told apart otherwise.
_MOST_COUNTS, _VERY_MOST_COUNTS = 0.6, 0.9

#: The same of moving objects, and where there would be no paths otherwise: more rows bring more cells and days.
_MOVING_COUNTS, _MOST_MOVING_COUNTS = 0.25, 0.75

#: Months for whose bins there is to be room in a share of the budget, where the first batch is of one period.
_MONTHS_TO_COME, _SHARE_OF_BINS = 120, 0.25

#: Bits by which places of a probe are told apart, neighbours together.
_PLACE_BITS = 50

#: Questions with conditions for one without, where all features are present: stretches serve these, paths both.
_CONDITIONS = 3.0

#: Statistics that stretches serve where there is no condition: means, sums and deviations. Quantiles are told by paths,
#: and so are correlations, where rows have two features.
_STRETCHED = 3.0

#: Days of a stretch that would tell of a place as much as bins of its own do: a season. And at the most as much as bins
#: that it shares with others: then its paths tell it.
_SEASON, _YEARS = 180.0, 1_826.0

#: Days of the stretches that are measured, from which the bytes of others follow.
_MEASURED = 30

#: The part of the paths beyond which all are thought to stay.
_ALL = 0.999

#: Part of the budget that is planned for: a probe is not the whole.
_AIM = 0.985

_NICE_US = tuple(seconds * 1_000_000 for seconds in (1, 10, 60, 300, 600, 900, 1_800, 3_600, 10_800, 21_600, 86_400))


@dataclass(frozen=True)
class Probe:
    """Some rows: their positions, local times and fine codes, and how many more rows there are."""

    latitude: Floats
    longitude: Floats
    local_us: Integers
    fine: Codes
    scales: Scales
    factor: float  #: rows in all, for one of these

    def slowed(self, spell: int) -> Probe:
        """The same rows by the clock of spells of so many days."""
        return replace(self, local_us=slowed(self.local_us, spell))


@dataclass(frozen=True)
class Cost:
    """What a layout takes in bytes."""

    layout: PathLayout
    scales: Scales
    contexts: Contexts
    places: float  #: with their days
    bins: float  #: with their counts
    a_path: float
    rows: float
    blur: float  #: how far values lie from the middles of their bins, in standard deviations of all values
    of_stretches: tuple[float, ...] = ()  #: of each feature

    @property
    def stretches(self) -> float:
        """Those of all features."""
        return sum(self.of_stretches)

    @property
    def counts(self) -> float:
        """All but the paths."""
        return float(self.scales.nbytes + self.contexts.nbytes) + self.places + self.bins + self.stretches

    def error(self, memory: int) -> float:
        """By what answers are off, up to a factor: the blur of a path, and the fewer there are the more."""
        kept = self.affordable(memory)
        return self.blur / np.sqrt(kept) if kept > 0.0 else np.inf

    def affordable(self, memory: int) -> float:
        """The share of the paths for which there is room."""
        return float(np.clip((memory * _AIM - self.counts) / max(self.rows * self.a_path, 1.0), 0.0, 1.0))

    def filled(self, memory: int) -> Cost:
        """The same with as many paths as fit."""
        return replace(self, layout=replace(self.layout, kept=self.affordable(memory)))

    def stretched(self, probe: Probe, memory: int) -> Cost:
        """The same with stretches of the length with the least error, if with any; `probe` has whole places.

        Stretches make way for paths. What a scope has of those that it cuts is off by the root of their days, times
        the root of the paths that are lacking; answers under conditions by the latter alone. Both are weighed by their
        questions, and those with conditions by how often rows have two features at once, without which there is little
        to be asked. Of that length as many features have shorter ones as are off by much without (`lengths`).
        """
        together = _together(probe)
        weight, power = 1.0 / (1.0 + _CONDITIONS * together), 2.0 * _STRETCHED / (_STRETCHED + 1.0 + together)
        spell = self.layout.spell
        measured, known = max(_MEASURED // spell, 1), stretches.LENGTHS if spell == 1 else ALL_LENGTHS
        number = {days: _stretches_of(probe, days) for days in known}
        least = self._in_stretches(probe, (measured,) * len(probe.fine), self.affordable(memory))

        def loss(days: float, cost: Cost) -> float:
            kept = min(cost.affordable(memory), _ALL)
            return weight * np.log(days) + np.log((1.0 - kept) / kept) if kept > 0.0 else np.inf

        size = np.array(least.of_stretches) / max(number[measured], 1)
        likely = {days: loss(days, self._with(size * many)) for days, many in number.items()}
        best = min(likely, key=lambda days: likely[days])
        kept = self._with(size * number[best]).affordable(memory)
        cut, shorter = _cut(probe, replace(self.layout, kept=kept)), [days for days in ALL_LENGTHS if days <= best]
        off = {days: cut.off(days) for days in shorter}
        more = {days: cut.moving(days) / np.maximum(cut.moving(best), 1) for days in shorter}
        bytes_of = {days: size * number[best] * more[days] ** GROWTH for days in shorter}

        def loss_of(part: float, stretches_bytes: float) -> float:
            return loss(best * part**power, self._with(np.array([stretches_bytes])))

        lengths = dealt(best, off, bytes_of, loss_of)
        found = self._in_stretches(probe, lengths, kept)
        # Bins that places share tell nothing of one of them.
        span, season, years = float(np.ptp(probe.local_us) / DAY_US), _SEASON / spell, _YEARS / spell
        without = season if self.layout.region_bits is None else float(np.clip(span, season, years))
        part = share_off(off, lengths, best)
        return found if loss(best * part**power, found) < loss(without, self) else self

    def _with(self, of_stretches: Floats) -> Cost:
        return replace(self, of_stretches=tuple(of_stretches.tolist()))

    def _in_stretches(self, probe: Probe, days: tuple[int, ...], kept: float) -> Cost:
        """The same with stretches of so many days, as they are with this share of the paths: these foretell them."""
        layout = replace(self.layout, stretching=replace(Stretching.of(self.scales, 1), days=days))
        measured = _cost(probe, replace(layout, kept=kept), self.contexts)
        return replace(self, layout=layout, of_stretches=measured.of_stretches)


def chosen(
    stations: Probe | None, rows: Callable[[], Probe], moving: Callable[[int], Probe], memory: int
) -> Cost | None:
    """The layout for this budget; None where not even the counts of a few cells and bins fit it.

    Stations are told apart where there are any and the counts of each find room, with bins of their own or shared with
    their neighbours, by day or else by spells; `rows` are some of all stations. Else cells stand for places, and rows
    know where in them and when they were by further features: `moving` has these, for cells of so many bits.
    """
    if stations is not None:
        found = _of_stations(stations, memory) or _of_neighbours(stations, rows(), memory)
        found = found or _of_spells(stations, rows(), memory)
        if found is not None:
            return found
    return _of_moving(moving, memory)


def _of_stations(probe: Probe, memory: int) -> Cost | None:
    """Shorter periods have bins that follow the seasons, and fewer paths: the length with the least error is taken.

    When all paths stay, there are as many bins as fit.
    """
    slot_us, regular = rhythm(probe)
    layouts = [PathLayout(months, BINS[0], 0.2, slot_us, regular) for months in _distinct_periods(probe)]
    # Contexts differ little from one length to the next, and take longest to find.
    coarsest = _cost(probe, layouts[-1])
    if coarsest.counts > memory * _MOST_COUNTS:
        return None
    wanted = [*(_cost(probe, layout, coarsest.contexts) for layout in layouts[:-1]), coarsest]
    best = min((cost for cost in wanted if cost.counts <= memory * _MOST_COUNTS), key=lambda cost: cost.error(memory))
    for bins in BINS[1:]:
        if best.affordable(memory) < 1.0:
            break
        finer = _cost(probe, replace(best.layout, bins=bins))
        if finer.affordable(memory) < 1.0:
            break
        best = finer
    return _lasting(best, probe, memory).stretched(probe, memory).filled(memory)


def _lasting(cost: Cost, probe: Probe, memory: int) -> Cost:
    """The same with longer periods where all rows lie in one: as short as leaves room for the bins of years to come.

    Such rows say nothing of how long periods should be, and other batches may follow.
    """
    layout = cost.layout
    if np.unique(periods(probe.local_us, layout.months)).size > 1:
        return cost
    room = memory * _SHARE_OF_BINS / max(cost.bins, 1.0)  # periods of which bins fit
    lasting = (months for months in PERIODS if months >= layout.months and _MONTHS_TO_COME / months <= room)
    return replace(cost, layout=replace(layout, months=next(lasting, EVERYTHING)))


def _of_neighbours(probe: Probe, rows: Probe, memory: int) -> Cost | None:
    """Stations of one cell share bins, those of the size with the least error; their days are their own."""
    best = _best(_shared(probe, rows), memory, _MOST_COUNTS, _VERY_MOST_COUNTS)
    return None if best is None else best.stretched(probe, memory).filled(memory)


def _of_spells(probe: Probe, rows: Probe, memory: int) -> Cost | None:
    """The same with days that are counted together: as few as leave room for paths, or else the most that may be."""
    for spell in SPELLS:
        costs = _shared(probe, rows, spell)
        best = _best(costs, memory, _MOST_COUNTS, *([_VERY_MOST_COUNTS] if spell == SPELLS[-1] else []))
        if best is not None:
            return best.stretched(probe.slowed(spell), memory).filled(memory)
    return None


def _shared(probe: Probe, rows: Probe, spell: int = 1) -> list[Cost]:
    """What it costs that stations of one cell share bins, for cells of several sizes."""
    slot_us, regular = rhythm(probe)
    slot_us, probe, rows = max(slot_us // spell, 1), probe.slowed(spell), rows.slowed(spell)
    contexts, found = None, []
    for bits in SHARED:
        layout = PathLayout(EVERYTHING, BINS[0], 0.05, slot_us, regular, bits, spell=spell)
        everywhere = _cost(rows, layout, contexts)
        contexts = everywhere.contexts
        own = _cost(probe, layout, contexts)
        # A cell's bins take the same however many of its rows are looked at.
        found.append(replace(own, bins=everywhere.bins / rows.factor, blur=everywhere.blur))
    return found


def _best(costs: list[Cost], memory: int, *most: float) -> Cost | None:
    """That with the least error whose counts take no more than such a share of the budget, or else than the next."""
    for share in most:
        fitting = [cost for cost in costs if cost.counts <= memory * share]
        if fitting:
            return min(fitting, key=lambda cost: cost.error(memory))
    return None


def _of_moving(probed: Callable[[int], Probe], memory: int) -> Cost | None:
    """As fine cells as are cheap, then the bins with the least error."""
    for place_bits in PLACES:
        probe = probed(place_bits)
        first = _moving_cost(probe, PathLayout(EVERYTHING, MOVING_BINS[-1], 0.2, 1, False, 1, place_bits))
        if first.places <= memory * _MOST_PLACES or place_bits == PLACES[-1]:
            break
    wanted = ((5, MOVING_BINS[0]), (10, MOVING_BINS[1]), *((5, bins) for bins in MOVING_BINS[1:-1]))
    costs = [
        _moving_cost(probe, replace(first.layout, bins=bins, region_bits=bits))
        for bits, bins in dict.fromkeys((min(bits, place_bits), bins) for bits, bins in wanted)
    ]
    best = _best([*costs, first], memory, _MOVING_COUNTS, _MOST_MOVING_COUNTS)
    return None if best is None else best.filled(memory)


def _moving_cost(probe: Probe, layout: PathLayout) -> Cost:
    """What a layout costs, from some rows of all: bins stay the same with more rows, cells and days become more."""
    cost = _cost(probe, layout)
    growth = _growth(probe, layout)
    return replace(cost, bins=cost.bins / probe.factor, places=cost.places / probe.factor * growth)


def _growth(probe: Probe, layout: PathLayout) -> float:
    """How many more cells and days there are in all rows than in the probe, from those in half of it."""
    assert layout.place_bits is not None
    cell = geohash.encode(probe.latitude, probe.longitude, layout.place_bits)
    day = probe.local_us // DAY_US
    whole, half = (np.unique(np.stack((cell[::step], day[::step])), axis=1).shape[1] for step in (1, 2))
    return float(probe.factor ** np.log2(max(whole, 1) / max(half, 1)))


def _distinct_periods(probe: Probe) -> list[int]:
    """Lengths of periods that differ for these rows: the first that holds them all in one is the last.

    Longer periods hold shorter ones whole, so that as many of them are the same.
    """
    found: list[int] = []
    before, days = 0, np.unique(probe.local_us // DAY_US) * DAY_US
    for months in PERIODS:
        many = np.unique(periods(days, months)).size
        if many != before:
            found.append(months)
        if many <= 1:
            break
        before = many
    return found


def _cost(probe: Probe, layout: PathLayout, contexts: Contexts | None = None) -> Cost:
    """What a layout costs, measured on the probe."""
    kept = even_choice(probe.latitude, probe.longitude, probe.local_us, probe.fine, layout)
    levels, stretching = None, layout.stretching
    if stretching is not None:
        levels = _levels(probe, stretching)
    tallies = tallied(probe.latitude, probe.longitude, probe.local_us, probe.fine, kept, layout, levels)
    made = from_tallies(probe.scales, tallies, layout.bins, stretching)
    contexts = contexts or Contexts.fit(made.codes, layout.bins)
    even = layout.evenly(tallies.latitude, tallies.longitude)
    packed = [blocks.closed(made.take(run), contexts, even) for run in cut(made)]
    paths, bins = (sum(len(frame) for block in packed for frame in getattr(block, name)) for name in ("paths", "bins"))
    stretched = np.array([[*map(len, block.stretches)] for block in packed]).reshape(len(packed), -1).sum(axis=0)
    places = sum(block.nbytes for block in packed) - paths - bins - int(stretched.sum()) + 16 * tallies.latitude.size
    return Cost(
        layout,
        probe.scales,
        contexts,
        places * probe.factor,
        bins * probe.factor,
        paths / max(made.codes.shape[1], 1),
        probe.local_us.size * probe.factor,
        float(np.mean([_blur(tallies, made, probe.scales, feature) for feature in range(len(probe.fine))])),
        tuple((stretched * probe.factor).tolist()),
    )


def _levels(probe: Probe, stretching: Stretching) -> Levels:
    """Features x rows: the levels of values."""
    tables = stretching.levels_of_codes(probe.scales)
    return np.stack([table[codes] for table, codes in zip(tables, probe.fine, strict=True)])


def _cut(probe: Probe, layout: PathLayout) -> Cut:
    """How far off cut stretches are, with the paths of a layout."""
    where, levels = (probe.latitude, probe.longitude), _levels(probe, Stretching.of(probe.scales, 1))
    kept = even_choice(*where, probe.local_us, probe.fine, layout)
    return Cut.of(geohash.encode(*where, _PLACE_BITS), probe.local_us // DAY_US, levels, kept)


def _together(probe: Probe) -> float:
    """How often a row that has one feature has another one as well, from 0 to 1; 1 where there is one feature."""
    present = (probe.fine != ABSENT).astype(np.float64)
    both = present @ present.T
    alone = np.maximum(np.diag(both), 1.0)
    pairs = len(present) * (len(present) - 1)
    return float(((both / alone[:, None]).sum() - np.trace(both / alone[:, None])) / pairs) if pairs else 1.0


def _stretches_of(probe: Probe, days: int) -> int:
    """How many stretches the places of a probe have."""
    place = geohash.encode(probe.latitude, probe.longitude, _PLACE_BITS)
    return len(numbered(place, probe.local_us // DAY_US // days)[0][0])


def _blur(tallies: Tallies, strata: Strata, scales: Scales, feature: int) -> float:
    """The standard deviation of a feature's values within bins, as a share of that of all."""
    fine = scales.quantizers[feature].bins
    mass, mean = tallies.mass[feature][:, :fine].astype(np.float64), scales.means[feature].astype(np.float64)
    starts, ends = bin_codes(strata, feature)

    def in_bins(numbers: Floats) -> Floats:
        running = np.cumsum(np.pad(numbers, ((0, 0), (1, 0))), axis=1)
        return np.take_along_axis(running, ends, axis=1) - np.take_along_axis(running, starts, axis=1)

    count, first, second = in_bins(mass), in_bins(mass * mean), in_bins(mass * mean**2)
    within = np.maximum(second - first**2 / np.maximum(count, 1.0), 0.0).sum()
    total = second.sum() - first.sum() ** 2 / max(count.sum(), 1.0)
    return float(np.sqrt(within / total)) if total > 0.0 else 0.0


def rhythm(probe: Probe) -> tuple[int, bool]:
    """The usual time between two rows of a place, and whether a place has hardly ever two rows in one such slot."""
    if probe.local_us.size < 2:
        return _NICE_US[0], True
    order = np.lexsort((probe.local_us, probe.longitude, probe.latitude))
    same = (np.diff(probe.latitude[order]) == 0) & (np.diff(probe.longitude[order]) == 0)
    gaps = np.diff(probe.local_us[order])[same]
    if not gaps.size:
        return _NICE_US[0], True
    usual = float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 0.0
    slot_us = max((each for each in _NICE_US if each <= usual * 1.01), default=_NICE_US[0])
    return slot_us, bool(np.mean(gaps < slot_us * 0.5) < 0.02)


def tallied(
    latitude: Floats,
    longitude: Floats,
    local_us: Integers,
    fine: Codes,
    kept: NDArray[np.bool_],
    layout: PathLayout,
    levels: Levels | None = None,
) -> Tallies:
    """The tallies of rows in this layout; moving objects stand in cells, by their south-western corners.

    Stretches are of levels, features x rows, where these are given.
    """
    period = periods(local_us, layout.months)
    if layout.place_bits is None:
        given = (latitude, longitude, period, local_us, fine, kept, layout.region_bits)
        return Tallies.of(*given, levels=levels, stretching=layout.stretching)
    cells = geohash.encode(latitude, longitude, layout.place_bits)
    south, west, _, _ = geohash.decode(cells, layout.place_bits)
    day_us = local_us // DAY_US * DAY_US
    return Tallies.of(south, west, period, day_us, fine, kept, layout.region_bits, timed=False)


def whereabouts(latitude: Floats, longitude: Floats, local_us: Integers, place_bits: int) -> Floats:
    """Where in their cells rows were, from 0 to 1 in latitude and longitude, and at which time of day, as features."""
    cells = geohash.encode(latitude, longitude, place_bits)
    south, west, north, east = geohash.decode(cells, place_bits)
    return np.stack(((latitude - south) / (north - south), (longitude - west) / (east - west), local_us % DAY_US))


def even_choice(
    latitude: Floats, longitude: Floats, local_us: Integers, fine: Codes, layout: PathLayout
) -> NDArray[np.bool_]:
    """Which rows' paths stay: a function of the row alone, that spreads them evenly over every place's time."""
    if layout.kept >= 1.0:
        return np.ones(local_us.size, np.bool_)
    turn = evenly.turns(latitude, longitude) + (local_us // layout.slot_us).view(np.uint64) * evenly.GOLDEN
    if not layout.regular:
        turn += evenly.scattered(fine, local_us)
    return evenly.stays(turn, layout.kept)
