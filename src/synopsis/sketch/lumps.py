"""Lumps: bins that are there already when further rows of their strata come, and cannot be parted any more.

Nobody knows where in a bin its rows lie, but new rows are known to the fine bin. So when bins are chosen again, each
bin that is there is one lump, together with the new rows that fall into it, and fine bins beside it are told apart as
ever. Bins of equal mass among both put lumps together, and never part one: counts stay exact, paths keep their bins,
and a stratum that began with few rows gets bins that follow all that came after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes
from synopsis.sketch.tilts import STEPS, Tilts

#: Rows that may lie in each fine bin of a lump at the least: what is there may be anywhere in it.
_TRACE = 1e-9


@dataclass(frozen=True)
class Lumps:
    """The bins of some strata, as they are there."""

    stratum: Integers  #: which of the strata that are made each of them is
    starts: Codes  #: features x these x bins, as in `Strata`
    ends: Codes
    counts: Integers  #: features x these x (bins + 1)
    tilt: Tilts

    def with_rows(self, feature: int, mass: Integers, axis: MassAxis) -> tuple[Integers, Floats]:
        """New rows by stratum and fine bin, with those that are there: in lumps, and as they may be spread.

        A lump stands in its first fine bin. Cost: proportional to strata times fine bins.
        """
        starts, ends, tilt = (each[feature].astype(np.int64) for each in (self.starts, self.ends, self.tilt))
        there = self.counts[feature][:, : starts.shape[1]]
        strata, fine = self.stratum.size, mass.shape[1]
        row, used = np.arange(strata)[:, None], ends > starts
        number = np.zeros((strata, fine + 1), np.int64)
        number[np.broadcast_to(row, used.shape)[used], starts[used]] = 1
        number = np.maximum(np.cumsum(number[:, :fine], axis=1) - 1, 0)  # of the last bin that has begun
        code = np.arange(fine)
        start, end = starts[row, number], ends[row, number]
        inside = (start <= code) & (code < end)
        own = mass[self.stratum]
        goes = np.where(inside, start, code) + fine * row
        lumps = np.bincount(goes.reshape(-1), own.reshape(-1), own.size).reshape(own.shape)
        np.add.at(lumps, (np.broadcast_to(row, used.shape)[used], starts[used]), there[used])
        rows = _share(axis, start, end, tilt[row, number]) * there[row, number]
        spread = np.where(inside, np.maximum(rows, _TRACE), 0.0)
        all_lumps, all_spread = mass.copy(), mass.astype(np.float64)
        all_lumps[self.stratum] = lumps.astype(np.int64)
        all_spread[self.stratum] += spread
        return all_lumps, all_spread


def _share(axis: MassAxis, start: Integers, end: Integers, tilt: NDArray[np.int64]) -> Floats:
    """Strata x fine bins: the share of each in the bin from `start` to `end` that slopes so; of no bin, anything."""
    code = np.arange(start.shape[1])
    low, wide = axis.mass[start], np.maximum(axis.mass[end] - axis.mass[start], 1e-300)
    below, above = (axis.mass[code] - low) / wide, (axis.mass[code + 1] - low) / wide
    return np.asarray((above - below) * (1.0 + tilt / STEPS * (above + below - 1.0)))
