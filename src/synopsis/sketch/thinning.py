"""Thinning: an even part of the paths of strata stays, that which would have been chosen at once where that is told.

Which days have paths may be a function of place and day, and which paths a day has one of place and slot (`hours`):
both go on to tell when fewer are chosen. Elsewhere every so many paths stay, in the order of time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from synopsis.sketch.compiled import Later
from synopsis.sketch.evenly import Evenly
from synopsis.sketch.moments import Integers
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.strata import Flags, Strata

if TYPE_CHECKING:
    from synopsis.sketch import hours
else:
    hours = Later("synopsis.sketch.hours")


def thinned(strata: Strata, layout: PathLayout, share: float, even: Evenly | None = None) -> Strata:
    """Strata of a layout with this share of their paths; `even` tells which days have paths then, where any tells it.

    Cost: proportional to the paths, and to the slots of days where these tell.
    """
    stays = _stays(strata, layout, share, even)
    kept = np.bincount(_days_of(strata)[stays], minlength=strata.day_kept.size)
    return replace(strata, day_kept=kept, codes=strata.codes[:, stays])


def _stays(strata: Strata, layout: PathLayout, share: float, even: Evenly | None) -> Flags:
    """Paths: whether each stays."""
    if even is not None:
        return np.asarray(even.paths(strata.day_place, strata.day, strata.day_rows)[_days_of(strata)] > 0)
    now, then = layout.hours, replace(layout, kept=layout.kept * share).hours
    if now is not None and then is not None:
        runs = (strata.run_turn, strata.run_first, strata.run_days, strata.day_kept)
        found: Flags = hours.stays(*runs, *now, then[1])
        return found
    rank = np.arange(1, strata.codes.shape[1] + 1)
    return np.asarray(np.floor(rank * share) > np.floor((rank - 1) * share))


def _days_of(strata: Strata) -> Integers:
    """Paths: the day of each."""
    return np.repeat(np.arange(strata.day_kept.size), strata.day_kept)
