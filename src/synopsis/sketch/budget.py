"""The budget: from a probe of the rows and the bytes allowed to the layout of strata and paths.

The probe has all rows of some places. What strata and paths of it cost is measured, not reckoned: it is made into
blocks with several periods, and the rest follows in proportion to rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from synopsis.grid import geohash
from synopsis.sketch import blocks
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes, Scales
from synopsis.sketch.strata import Strata, bin_codes, from_tallies
from synopsis.sketch.summary import EVERYTHING, PathLayout, cut, taken
from synopsis.sketch.tallies import Tallies, periods

#: Months of a period, coarsest last: a century is everything.
PERIODS = (1, 3, 6, 12, 24, 48, EVERYTHING)

#: Bins of a feature: as few as serve, and more where all paths stay anyhow.
BINS = (15, 23, 31, 47, 63)

#: Share of the budget that exact counts may take: of stations at the very most, of regions.
_MOST_COUNTS, _REGION_COUNTS = 0.6, 0.25

#: Bits of regions and bins of features that are tried, finest first.
REGIONS = ((5, 250), (5, 63), (5, 31), (1, 31), (1, 15), (1, 7))

#: Part of the budget that is planned for: a probe is not the whole.
_AIM = 0.985

#: An irrational step never repeats, so that slots are chosen evenly at any share.
_GOLDEN = 0.6180339887498949

_NICE_US = tuple(seconds * 1_000_000 for seconds in (1, 10, 60, 300, 600, 900, 1_800, 3_600, 10_800, 21_600, 86_400))


@dataclass(frozen=True)
class Probe:
    """All rows of some places: their positions, local times and fine codes, and how many more rows there are."""

    latitude: Floats
    longitude: Floats
    local_us: Integers
    fine: Codes
    scales: Scales
    factor: float  #: rows in all, for one of these


@dataclass(frozen=True)
class Cost:
    """What a layout takes in bytes."""

    layout: PathLayout
    scales: Scales
    contexts: Contexts
    counts: float  #: of places, days and bins
    a_path: float
    shared: float  #: of scales and contexts
    rows: float
    blur: float  #: how far values lie from the middles of their bins, in standard deviations of all values

    def total(self, kept: float) -> float:
        """Bytes with this share of the paths."""
        return self.shared + self.counts + kept * self.rows * self.a_path

    def error(self, memory: int) -> float:
        """By what answers are off, up to a factor: the blur of a path, and the fewer there are the more."""
        kept = self.affordable(memory)
        return self.blur / np.sqrt(kept) if kept > 0.0 else np.inf

    def affordable(self, memory: int) -> float:
        """The share of the paths for which there is room."""
        left = memory * _AIM - self.shared - self.counts
        return float(np.clip(left / max(self.rows * self.a_path, 1.0), 0.0, 1.0))


def chosen(stations: Probe | None, moving: Callable[[], Probe], memory: int) -> Cost | None:
    """The layout for this budget; None where not even the counts of a few regions and bins fit it.

    Stations are told apart where there are any and the counts of each find room. Else regions are, and rows know where
    and when they were by further features: for these `moving` has all three.
    """
    return (stations and _of_stations(stations, memory)) or _of_regions(moving(), memory)


def _of_stations(probe: Probe, memory: int) -> Cost | None:
    """Shorter periods have bins that follow the seasons, and fewer paths: the length with the least error is taken.

    When all paths stay, there are as many bins as fit.
    """
    slot_us, regular = rhythm(probe)
    layouts = [PathLayout(months, BINS[0], 0.2, slot_us, regular) for months in _distinct_periods(probe)]
    # Contexts differ little from one length to the next, and take longest to find.
    coarsest = _cost(probe, layouts[-1])
    wanted = [*(_cost(probe, layout, coarsest.contexts) for layout in layouts[:-1]), coarsest]
    best = min(wanted, key=lambda cost: cost.error(memory))
    if best.shared + best.counts > memory * _MOST_COUNTS:
        return None
    for bins in BINS[1:]:
        if best.affordable(memory) < 1.0:
            break
        finer = _cost(probe, replace(best.layout, bins=bins))
        if finer.affordable(memory) < 1.0:
            break
        best = finer
    return replace(best, layout=replace(best.layout, kept=best.affordable(memory)))


def _of_regions(probe: Probe, memory: int) -> Cost | None:
    """As many regions and bins as leave most of the budget to paths."""
    costs = (_cost(probe, PathLayout(EVERYTHING, bins, 0.2, 1, False, bits)) for bits, bins in REGIONS)
    for cost in costs:
        if cost.shared + cost.counts <= memory * _REGION_COUNTS:
            return replace(cost, layout=replace(cost.layout, kept=cost.affordable(memory)))
    return None


def _distinct_periods(probe: Probe) -> list[int]:
    """Lengths of periods that differ for these rows: the first that holds them all in one is the last."""
    found: list[int] = []
    for months in PERIODS:
        found.append(months)
        period = periods(probe.local_us, months)
        if period.size == 0 or period.min() == period.max():
            break
    return found


def _cost(probe: Probe, layout: PathLayout, contexts: Contexts | None = None) -> Cost:
    """What a layout costs, measured on the probe."""
    kept = even_choice(probe.latitude, probe.longitude, probe.local_us, probe.fine, layout)
    tallies = Tallies.of(*placed(probe.latitude, probe.longitude, probe.local_us, layout), probe.fine, kept)
    made = from_tallies(probe.scales, tallies, layout.bins)
    contexts = contexts or Contexts.fit(made.codes, layout.bins)
    packed = [blocks.closed(taken(made, run), contexts) for run in cut(made)]
    paths = sum(len(frame) for block in packed for frame in block.paths)
    counts = sum(block.nbytes for block in packed) - paths + 16 * tallies.latitude.size
    return Cost(
        layout,
        probe.scales,
        contexts,
        counts * probe.factor,
        paths / max(made.codes.shape[1], 1),
        float(probe.scales.nbytes + contexts.nbytes),
        probe.local_us.size * probe.factor,
        float(np.mean([_blur(tallies, made, probe.scales, feature) for feature in range(len(probe.fine))])),
    )


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


def placed(
    latitude: Floats, longitude: Floats, local_us: Integers, layout: PathLayout
) -> tuple[Floats, Floats, Integers, Integers]:
    """Place, period and time of each row as strata know them; regions have one period, and rows there no time."""
    if layout.region_bits is None:
        return latitude, longitude, periods(local_us, layout.months), local_us
    nothing = np.zeros_like(local_us)
    cells = geohash.encode(latitude, longitude, layout.region_bits)
    south, west, _, _ = geohash.decode(cells, layout.region_bits)
    return south, west, nothing, nothing


def even_choice(
    latitude: Floats, longitude: Floats, local_us: Integers, fine: Codes, layout: PathLayout
) -> NDArray[np.bool_]:
    """Which rows' paths stay: a function of the row alone, that spreads them evenly over every place's time."""
    if layout.kept >= 1.0:
        return np.ones(local_us.size, np.bool_)
    mixed = _scrambled((latitude + 0.0).view(np.uint64) ^ _scrambled((longitude + 0.0).view(np.uint64)))
    turn = (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53 + _GOLDEN * (local_us // layout.slot_us)
    if not layout.regular:
        turn = turn + _hashed_codes(fine, local_us)
    return np.asarray(turn % 1.0 < layout.kept)


def _scrambled(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return mixed * np.uint64(0xBF58476D1CE4E5B9)


def _hashed_codes(fine: Codes, local_us: Integers) -> Floats:
    mixed = local_us.view(np.uint64).copy()
    for codes in fine:
        mixed = (mixed ^ codes.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
