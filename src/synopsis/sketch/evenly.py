"""Even choice: which rows' paths stay, a function of the row alone that spreads them evenly over every place's time.

Where places report once a day, a place and a day tell whether its paths stay: so nothing need be kept of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Codes

#: The golden section in turns of 2**64: an irrational step never repeats, so that slots are chosen evenly at any share.
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)

#: An odd number without a pattern, to mix bits with.
MIXED: Final = np.uint64(0xBF58476D1CE4E5B9)

#: The largest share below one.
_MOST_SHARE: Final = 1.0 - 2.0**-53

Turns = NDArray[np.uint64]


@dataclass(frozen=True)
class Evenly:
    """Where places are, and the share of their rows whose paths stay, chosen by place and day alone."""

    latitude: Floats
    longitude: Floats
    share: float

    def paths(self, place: Integers, day: Integers, rows: Integers) -> Integers:
        """How many paths stay of so many rows of a place and day."""
        turn = turns(self.latitude, self.longitude)[place] + day.astype(np.int64).view(np.uint64) * GOLDEN
        return np.where(stays(turn, self.share), rows, 0)


def turns(latitude: Floats, longitude: Floats) -> Turns:
    """Places: at which turn of the golden section each begins."""
    return _scrambled((latitude + 0.0).view(np.uint64) ^ _scrambled((longitude + 0.0).view(np.uint64)))


def stays(turn: Turns, share: float) -> NDArray[np.bool_]:
    """Whether paths stay that are at these turns."""
    return np.asarray(turn < threshold(share)) if share < 1.0 else np.ones(turn.size, np.bool_)


def threshold(share: float) -> np.uint64:
    """The turn below which paths stay; where all do, all turns but the very last lie there."""
    return np.uint64(min(share, _MOST_SHARE) * 2.0**64)


def scattered(fine: Codes, local_us: Integers) -> Turns:
    """Rows: a turn by what they hold, for places that report several times in a slot."""
    mixed = local_us.view(np.uint64).copy()
    for codes in fine:
        mixed = (mixed ^ codes.astype(np.uint64)) * GOLDEN
        mixed ^= mixed >> np.uint64(32)
    return mixed * MIXED


def _scrambled(numbers: Turns) -> Turns:
    mixed = numbers * GOLDEN
    mixed ^= mixed >> np.uint64(29)
    return mixed * MIXED
