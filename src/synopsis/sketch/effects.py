"""Effects: how far the choice of paths errs, beside what neighbouring paths let expect; learnt from what is kept.

Intervals at 95% come from how much neighbouring paths differ (Wolter 2007, successive differences), as if their values
came by chance. Those of slow signals do not: paths at even steps follow them. Others come in clumps, or are shared by
places. The sketch knows: strata count all rows by bin, stretches have the mean of all rows, and beside both stands what
paths alone would say. The squares of what they miss, by the squares that neighbours foretell, are effects in the words
of Kish (1965): below 1 where the even choice helps, above where errors add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from synopsis.sketch import foretelling, stretches
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import Strata

#: Paths that a stratum and a stretch need to count.
_STRATUM_PATHS: Final = 16
_STRETCH_PATHS: Final = 3

#: Squares that are thought to be as neighbours foretell, beside those that are known; and spans of days in which
#: places are thought to have nothing in common.
_UNKNOWN: Final = 16.0

#: Squares that the errors of a stratum's shares are worth: they go up and down together (Cramér and von Mises).
_SQUARES: Final = 2.5

#: Of the squares of a stretch that is rounded, what it had when it was half as large.
_GROWN: Final = 0.5

#: Effects are never thought to be smaller or larger than this.
_LEAST, _MOST = 0.2, 5.0

#: Paths that are looked at; of more, those of some places.
PATHS: Final = 1 << 18


@dataclass(frozen=True)
class Effects:
    """Squared errors of paths, by what neighbours let expect."""

    shares: float = 1.0  #: of the rows of a stratum below an end of a bin
    means: tuple[float, ...] = ()  #: features: of the rows of all places on the same days; empty where none is known
    rounded: tuple[float, ...] = ()  #: features: how often stretches have been rounded; empty where all were once

    @classmethod
    def of(cls, strata: Strata, scales: Scales) -> Effects:
        """What strata with all features know of it. Cost: some passes over their paths for a feature."""
        stratum = np.repeat(np.arange(len(strata)), np.diff(strata.path_offset))
        shares = float(np.exp(np.mean([_of_shares(strata, feature, stratum) for feature in range(strata.features)])))
        if strata.stretching is None:
            return cls(shares)
        return cls(shares, tuple(map(float, _of_means(strata, scales, stratum))))

    def of_features(self, which: Sequence[int]) -> Effects:
        """Those of some features, in this order."""
        means, rounded = (tuple(each[at] for at in which) if each else () for each in (self.means, self.rounded))
        return Effects(self.shares, means, rounded)

    def rounded_again(
        self, there: Sequence[float], new: Sequence[float], made: Sequence[float], part: float
    ) -> Effects:
        """Those of a part of the rows, after stretches that were there and new ones have become so many together.

        What has grown is rounded once more, and had been smaller before: squares grow by half of what once makes.
        """
        so_far = self.rounded or (1.0,) * len(made)
        now = [
            (each * old + more - (old + more - whole) * _GROWN) / whole if whole else each
            for each, old, more, whole in zip(so_far, there, new, made, strict=True)
        ]
        found = ((1.0 - part) * each + part * after for each, after in zip(so_far, now, strict=True))
        return replace(self, rounded=tuple(found))

    def put_together(self, which: Sequence[bool]) -> Effects:
        """Those of features of which two stretches have become one, rounded once more, or not."""
        so_far = self.rounded or (1.0,) * len(which)
        return replace(self, rounded=tuple(each + now for each, now in zip(so_far, which, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        means, rounded = ([round(each, 3) for each in numbers] for numbers in (self.means, self.rounded))
        return {"shares": round(self.shares, 3), "means": means, "rounded": rounded}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Effects:
        """What `to_dict` gave."""
        rounded = plain.get("rounded", ())  # sketches of this format that do not say so were not counted
        return cls(float(plain["shares"]), tuple(map(float, plain["means"])), tuple(map(float, rounded)))


def _of_shares(strata: Strata, feature: int, stratum: Integers) -> float:
    """The logarithm of a feature's effect: errors of the shares of rows up to every bin.

    Neighbours that are so many bins apart differ at so many of the ends.
    """
    codes, rows, paths = strata.codes[feature].astype(np.int64), strata.rows, np.diff(strata.path_offset)
    width = strata.bins + 1
    seen = np.bincount(stratum * width + codes, minlength=paths.size * width).reshape(-1, width)
    off = (
        np.cumsum(seen, axis=1) / np.maximum(paths, 1)[:, None]
        - np.cumsum(strata.counts[feature], axis=1) / np.maximum(rows, 1)[:, None]
    )
    same = stratum[1:] == stratum[:-1]
    apart = np.bincount(stratum[1:][same], np.abs(np.diff(codes))[same], paths.size) / np.maximum(paths - 1, 1) / 2
    told = (paths >= _STRATUM_PATHS) & (rows > paths)
    square = paths * (off * off).sum(axis=1)
    usual = apart * (1.0 - paths / np.maximum(rows, 1))
    known, unknown = _SQUARES * np.count_nonzero(told & (apart > 0.0)), _UNKNOWN / strata.features
    effect = square[told].sum() / max(usual[told].sum(), 1e-300)
    return float(np.log(_held((known * effect + unknown) / (known + unknown))))


def _held(effect: Any) -> Any:
    return np.clip(effect, _LEAST, _MOST)


def _of_means(strata: Strata, scales: Scales, stratum: Integers) -> Floats:
    """Features: errors of the means of stretches, those of all places on the same days added up."""
    assert strata.stretching is not None
    axes = stretches.running(scales, strata.stretching)
    read = foretelling.told(strata, axes)
    return np.array([_of_mean(strata, feature, axis, read[feature], stratum) for feature, axis in enumerate(axes)])


def _of_mean(strata: Strata, feature: int, axis: Floats, read: Floats, stratum: Integers) -> float:
    """That of one feature, given what runs over its fine bins, what its stretches tell, and the strata of paths."""
    offset, days, codes = strata.stretch_offsets[feature], strata.lengths[feature], strata.codes[feature]
    size = offset.size - 1
    kept = np.add.reduceat(strata.day_kept, offset[:-1]) if size else offset[:-1]
    stretch, of_stretch = np.repeat(np.arange(size), kept), foretelling.strata_of(strata, offset)
    span = strata.day[offset[:-1]] // days
    span -= span.min(initial=0)
    in_bin, sums = foretelling.of_paths(strata, feature, axis)
    held, rows = sums[0, :size], read[0]
    off = sums[1, :size] / np.maximum(held, 1.0) - read[1]
    there = codes < strata.bins
    value, where = in_bin[0][stratum[there], codes[there]], stretch[there]
    same = where[1:] == where[:-1]
    of = of_stretch[where[1:][same]]
    pairs = np.maximum(np.bincount(of, minlength=len(strata)), 1)
    near = np.bincount(of, np.diff(value)[same] ** 2, len(strata)) / pairs
    within = np.maximum(in_bin[1] - in_bin[0] ** 2, 0.0)[stratum[there], codes[there]]
    blur = np.bincount(stratum[there], within, len(strata)) / np.maximum(sums[0, size:], 1.0)
    step = (stretches.STEP * stretches.LEVELS) ** 2 / np.maximum(rows, 1.0) / 12.0
    told = (held >= _STRETCH_PATHS) & (rows > held)
    chosen = near[of_stretch] / 2 * (1.0 - held / np.maximum(rows, 1.0))
    square = (chosen + blur[of_stretch]) / np.maximum(held, 1.0) + step
    off -= _usual(of_stretch, off, rows * told, len(strata))
    return _together(span[told], (np.sqrt(rows) * off)[told], (rows * square)[told])


def _usual(stratum: Integers, off: Floats, rows: Floats, strata: int) -> Floats:
    """Stretches: by what their stratum is off as a whole, for bins have other means there than anywhere."""
    usual = np.bincount(stratum, rows * off, strata) / np.maximum(np.bincount(stratum, rows, strata), 1e-300)
    return np.asarray(usual[stratum])


def _together(span: Integers, off: Floats, square: Floats) -> float:
    """The effect of errors in spans of days, given the square that is expected of each.

    What places have in common is known the better the more spans there are.
    """
    squares, spans = np.bincount(span, off * off), np.unique(span).size
    if not squares.sum() > 0.0 or not square.sum() > 0.0:
        return 1.0
    usual = _UNKNOWN * square.mean()
    alone = (squares.sum() + usual) / (square.sum() + usual)
    shared = np.square(np.bincount(span, off)).sum() / squares.sum()
    return float(_held(alone * (spans * shared + _UNKNOWN) / (spans + _UNKNOWN)))
