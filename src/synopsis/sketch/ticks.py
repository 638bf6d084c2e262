"""Ticks: a value as a whole number of 16 bits that keeps its order, by arithmetic that Spark and NumPy do alike.

Spark moves rows to Python column by column, and dearly; four ticks fit one of its integers. Fine bins begin where ticks
do, so that the bin of a tick is the bin of every value in it. A value that stands alone (an atom) has a tick of its
own, and so have the values on either side of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synopsis.sketch.moments import Floats

#: The tick of a value that is not there, and the highest of one that is.
ABSENT_TICK: Final = 65_535
_HIGHEST: Final = 65_534

#: Ticks between the lowest and the highest value; some are left for atoms.
MOST_TICKS: Final = 65_000

#: Atoms of one feature that get a tick.
MOST_ATOMS: Final = 8


@dataclass(frozen=True)
class Ticks:
    """How one feature's values become ticks: the number of whole steps above the origin, and two more at every atom."""

    origin: float
    step: float
    atoms: tuple[float, ...] = ()

    @classmethod
    def between(cls, low: float, high: float, grid: float, atoms: Floats) -> Ticks:
        """Ticks for values from low to high; where they lie on a grid, each has its own if there is room."""
        if not np.isfinite(low) or not np.isfinite(high):
            return cls(0.0, 1.0)
        if grid and (high - low) / grid < MOST_TICKS:
            return cls((round(low / grid) - 0.5) * grid, grid)
        step = (high - low) / MOST_TICKS
        if not step > np.spacing(max(abs(low), abs(high))):
            return cls(low, max(float(np.spacing(max(abs(low), abs(high)))), 1e-300), tuple(map(float, atoms)))
        return cls(low, step, tuple(map(float, atoms[:MOST_ATOMS])))

    def of(self, values: Floats) -> NDArray[np.int64]:
        """The tick of each value; values beyond the ends share the outermost ticks."""
        with np.errstate(invalid="ignore", over="ignore"):
            steps = np.clip(np.floor((values - self.origin) / self.step), 0.0, float(MOST_TICKS))
        found = np.where(np.isnan(steps), 0.0, steps).astype(np.int64)
        for atom in self.atoms:
            found += (values >= atom).astype(np.int64) + (values > atom)
        return np.where(np.isnan(values), ABSENT_TICK, np.minimum(found, _HIGHEST))

    def middles(self) -> Floats:
        """The middle of the values of each tick, as far as there are any: those of atoms are these.

        >>> Ticks(0.0, 1.0, (2.5,)).middles()[:6].tolist()
        [0.5, 1.5, 2.25, 2.5, 2.75, 3.5]
        """
        atoms = np.array(self.atoms)
        own = self.of(atoms)
        tick = np.arange(_HIGHEST + 1)
        passed = np.searchsorted(own, tick, side="right")  # atoms at or below
        steps = tick - 2 * passed
        ends = np.concatenate(((-np.inf,), atoms, (np.inf,)))
        begin = np.maximum(self.origin + steps * self.step, ends[passed])
        end = np.minimum(self.origin + (steps + 1) * self.step, ends[passed + 1])
        found = begin / 2 + np.maximum(begin, end) / 2
        found[own] = atoms
        return np.asarray(found)

    def snapped(self, edges: Floats) -> Floats:
        """Edges moved to the nearest place where a tick begins; those around atoms stay."""
        around = np.concatenate((np.array(self.atoms), np.nextafter(np.array(self.atoms), np.inf)))
        stay = np.isin(edges, around)
        near = np.clip(np.round((edges - self.origin) / self.step), 1.0, float(MOST_TICKS))
        start = self.origin + near * self.step
        # The first double of that tick, by halving: near zero many doubles are the same step above the origin.
        before, after = _ordinals(start - 2 * self.step), _ordinals(start + 2 * self.step)
        for _ in range(64):
            middle = (before & after) + ((before ^ after) >> 1)
            reached = np.floor((_doubles(middle) - self.origin) / self.step) >= near
            before, after = np.where(reached, before, middle), np.where(reached, middle, after)
        start = _doubles(after)
        return np.asarray(np.unique(np.where(stay, edges, start)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"origin": self.origin, "step": self.step, "atoms": list(self.atoms)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Ticks:
        """What `to_dict` gave."""
        return cls(float(plain["origin"]), float(plain["step"]), tuple(map(float, plain["atoms"])))


def _ordinals(numbers: Floats) -> NDArray[np.int64]:
    """Doubles as whole numbers in the same order."""
    bits = np.asarray(numbers, np.float64).view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _doubles(ordinals: NDArray[np.int64]) -> Floats:
    """The doubles that `_ordinals` numbered."""
    return np.where(ordinals < 0, np.iinfo(np.int64).min - ordinals, ordinals).view(np.float64)
