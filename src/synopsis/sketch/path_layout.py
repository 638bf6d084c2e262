"""The layout of paths: how rows become strata, and which of them stay as paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from synopsis.sketch.evenly import Evenly, threshold
from synopsis.sketch.moments import Floats
from synopsis.sketch.stretches import Stretching
from synopsis.sketch.tallies import DAY_US

#: Slots that are looked at of a day, at most: minutes.
MOST_SLOTS = 1_440


@dataclass(frozen=True)
class PathLayout:
    """How rows become strata and paths."""

    months: int  #: of a period
    bins: int  #: of a feature in a stratum
    kept: float  #: share of the rows whose paths stay
    slot_us: int  #: the usual time between two rows of a place
    regular: bool  #: whether places report once a slot, so that the slot alone makes an even choice
    region_bits: int | None = None  #: of the cells whose places share bins; None: every place has its own
    place_bits: int | None = None  #: of the cells that stand for places where rows have too many; None: stations
    stretching: Stretching | None = None  #: of the days that rows are summed up by; None where none are
    spell: int = 1  #: days that count as one (`spells`); `slot_us` and stretches go by that clock
    #: Whether the slots of a place tell when its paths are of; sketches of older releases were thinned in another way.
    clocked: bool = field(default=True, compare=False)

    @property
    def moving(self) -> bool:
        """Whether places are cells, and latitude, longitude and time of day further features of a path."""
        return self.place_bits is not None

    @property
    def even(self) -> bool:
        """Whether paths come at even steps of the time of their place."""
        return self.regular and not self.moving

    def evenly(self, latitude: Floats, longitude: Floats) -> Evenly | None:
        """What tells which days of these places have paths; None where more than the day decides."""
        by_day = self.kept >= 1.0 or (self.even and self.slot_us == DAY_US)
        return Evenly(latitude, longitude, self.kept) if by_day else None

    @property
    def hours(self) -> tuple[int, np.uint64] | None:
        """Slots, and the turn below which they have paths, where these tell when on its day a path was (`hours`).

        Where days are counted by spells, most of a spell's slots have no row, and nobody knows which.
        """
        is_told = self.even and self.clocked and self.spell == 1 and self.slot_us < DAY_US <= self.slot_us * MOST_SLOTS
        return (self.slot_us, threshold(self.kept)) if is_told else None

    @property
    def pace(self) -> float:
        """The share of a day from a row of a place to the next; 0 where any number of rows may share an instant."""
        return self.slot_us / DAY_US if self.regular else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = asdict(self)
        if self.spell == 1:
            del plain["spell"]
        return plain | {"stretching": None if self.stretching is None else self.stretching.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PathLayout:
        """What `to_dict` gave."""
        return cls(
            int(plain["months"]),
            int(plain["bins"]),
            float(plain["kept"]),
            int(plain["slot_us"]),
            bool(plain["regular"]),
            plain["region_bits"],
            plain["place_bits"],
            None if plain["stretching"] is None else Stretching.from_dict(plain["stretching"]),
            int(plain.get("spell", 1)),
            bool(plain.get("clocked", False)),
        )
