"""Spells: where counts of places and days do not fit, so many days are counted as one, a spell.

All that a summary keeps goes by a slow clock then, on which a spell lasts a day: days, stretches, runs and the choice
of paths need not know. Real time is turned into slow time where rows come in and where a question names an instant, and
back where an answer tells one. Spells are counted from 1970, as days are.
"""

from __future__ import annotations

from typing import Final

from synopsis.sketch.moments import Integers
from synopsis.sketch.tallies import DAY_US

#: Lengths in days that may be chosen, shortest first. Each divides a day into whole microseconds.
SPELLS: Final = (10, 30, 90, 180, 360)


def slowed(local_us: Integers, spell: int) -> Integers:
    """Instants of rows by the slow clock. In the same spell, and in the same order, as before."""
    return local_us if spell == 1 else local_us // spell


def slowed_end(us: int, spell: int) -> int:
    """An end of a span of time by the slow clock: one that lies within a spell stays within it.

    >>> [slowed_end(us, 30) // DAY_US for us in (0, 30 * DAY_US, -1)], slowed_end(1, 30), slowed_end(-1, 30)
    ([0, 1, -1], 1, -1)
    """
    found, cut = us // spell, us % (spell * DAY_US) != 0
    return found + (cut and found % DAY_US == 0)
