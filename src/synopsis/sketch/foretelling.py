"""Foretelling: what paths say of the stretches of strata, what is kept beside that, and what both together tell.

Paths are thinned, strata join, bins and scales change: what is kept of stretches is read with the old ones, and written
down again beside what the new ones foretell. It stays what it is (`stretches.Lattice`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from synopsis.sketch import stretches
from synopsis.sketch.compiled import Later
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Scales
from synopsis.sketch.stretches import Lattice, Stretching, StretchSums

if TYPE_CHECKING:
    from synopsis.sketch import encoding
    from synopsis.sketch.strata import Strata
else:
    encoding = Later("synopsis.sketch.encoding")


def kept(strata: Strata, sums: Sequence[Floats | Integers], axes: Sequence[Floats]) -> Strata:
    """The same strata with what is kept of stretches that add up to these sums, feature by feature."""
    return replace(
        strata,
        stretches=tuple(
            _lattice(strata, at, axis).facts(own, foretold(strata, at, axis))
            for at, (own, axis) in enumerate(zip(sums, axes, strict=True))
        ),
    )


def told(strata: Strata, axes: Sequence[Floats]) -> list[Floats]:
    """Features: (values, mean, deviation) x stretches, the latter in levels, as they are kept."""
    return [
        _lattice(strata, at, axis).read(facts, foretold(strata, at, axis))
        for at, (facts, axis) in enumerate(zip(strata.stretches, axes, strict=True))
    ]


def sums_of(strata: Strata, axes: Sequence[Floats]) -> list[Floats]:
    """Features: (values, sum, sum of squares) x stretches, of levels, as they are kept."""
    return [
        np.stack((count, count * mean, count * (mean * mean + deviation * deviation)))
        for count, mean, deviation in told(strata, axes)
    ]


def stretched(strata: Strata, scales: Scales, stretching: Stretching, known: Sequence[StretchSums]) -> Strata:
    """The same strata with what is kept of their stretches, whose rows add up so; those without rows are empty."""
    found = replace(strata, stretching=stretching, lengths=stretching.days)
    sums: list[Integers] = [np.empty(0, np.int64)] * found.features
    for own in known:
        offset = found.stretch_offsets[own.features[0]]
        stratum, begin = strata_of(found, offset), offset[:-1]
        there = (stratum, found.day_place[begin], found.day[begin] // own.days)
        at = np.searchsorted(_flat(*there, there), _flat(own.stratum, own.place, own.number, there))
        for feature, rows in zip(own.features, own.sums, strict=True):
            sums[feature] = np.zeros((stretches.FACTS, begin.size), np.int64)
            sums[feature][:, at] = rows
    return kept(found, sums, stretches.running(scales, stretching))


def restretched(strata: Strata, others: Strata, scales: Scales, stretching: Stretching) -> Strata:
    """The same strata with stretches as `others` have them, which differ in their paths alone."""
    axes = stretches.running(scales, stretching)
    return kept(strata, sums_of(others, axes), axes)


def foretold(strata: Strata, feature: int, axis: Floats) -> Floats:
    """What paths foretell of stretches: (rows without a value, mean, deviation) x stretches, in levels.

    Given where the feature stands, and what runs over its fine bins.
    A stretch is thought to have a little more than its paths, as those of its stratum are, but to be still where all of
    its paths are. Cost: a pass over the paths.
    """
    offset = strata.stretch_offsets[feature]
    size, paths, of_stretch = offset.size - 1, np.diff(strata.path_offset), strata_of(strata, offset)
    many = np.add.reduceat(strata.day_kept, offset[:-1]) if size else offset[:-1]
    many = many + stretches.SEEN * (paths > 0)[of_stretch]
    sums = of_paths(strata, feature, axis)[1]
    (held, level, square), usual = sums[:, :size], sums[:, size:]
    seen = stretches.SEEN * (usual[0] / np.maximum(paths, 1))[of_stretch]
    more = stretches.USUAL * (usual / np.maximum(usual[0], 1.0))[:, of_stretch]
    share = np.where(many > 0.0, 1.0 - (held + seen) / np.maximum(many, 1e-300), 0.0)
    values = np.maximum(held + more[0], 1e-300)
    is_still = (held > 0.0) & (square < stretches.CONSTANT * held)
    mean, square = (level + more[1]) / values, (square + more[2]) / values
    deviation = np.sqrt(np.maximum(square - mean * mean, 0.0))
    return np.stack((share * _rows(strata, offset), mean, np.where(is_still, stretches.STILL, deviation)))


def of_paths(strata: Strata, feature: int, axis: Floats) -> tuple[Floats, Floats]:
    """(level, square) x strata x bins of what paths in each bin are thought to be; and of those that have a value how
    many there are, their levels and squares, added up by stretch, and behind these by stratum.
    """
    begin, end = strata.starts[feature].astype(np.int64), strata.ends[feature].astype(np.int64)
    in_bin = (axis[1:, end] - axis[1:, begin]) / np.maximum(axis[0, end] - axis[0, begin], 1e-300)
    offset = strata.stretch_offsets[feature]
    sums = np.zeros((stretches.FACTS, offset.size - 1 + len(strata)))
    encoding.told(strata.codes[feature], strata.day_offset, offset, strata.day_kept, in_bin, sums)
    return in_bin, sums


def strata_of(strata: Strata, offset: Integers) -> Integers:
    """The stratum of every stretch, given where the days of each begin."""
    return np.searchsorted(strata.day_offset, offset[:-1], side="right") - 1


def _lattice(strata: Strata, feature: int, axis: Floats) -> Lattice:
    """Where means and deviations of a feature may lie, given where it stands and what runs over its fine bins."""
    offset = strata.stretch_offsets[feature]
    stratum = strata_of(strata, offset)
    level, varies = stretches.anchored(strata.starts[feature], strata.ends[feature], axis)
    return Lattice(_rows(strata, offset), level[stratum], strata.stretch_shifts[feature] * varies[stratum])


def _rows(strata: Strata, offset: Integers) -> Integers:
    """Stretches: all rows."""
    return np.add.reduceat(strata.day_rows, offset[:-1]) if offset.size > 1 else offset[:-1]


def _flat(stratum: Integers, place: Integers, number: Integers, among: tuple[Integers, ...]) -> Integers:
    """Stratum, place and number as one, in the order of the three, none of which is beyond those `among` which it is.

    >>> there = np.array([0, 0, 1]), np.array([3, 4, 4]), np.array([7, 7, 6])
    >>> _flat(*there, there).tolist()
    [31, 39, 78]
    """
    places, low, high = int(among[1].max(initial=0)) + 1, among[2].min(initial=0), among[2].max(initial=0)
    return np.asarray((stratum * places + place) * (high - low + 1) + (number - low))
