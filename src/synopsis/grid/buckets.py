"""Buckets: spans of time as integers, cut by the clock on the wall and the calendar.

A bucket has a length such as "6h" or "1mo", and every instant falls into the bucket with the ordinal
floor(wall-clock units since 1970 / count), negative before 1970. Seconds to days count from 1970-01-01, weeks from
Monday 1969-12-29, months, quarters and years from January 1970.

Because the wall clock decides, the autumn hour that happens twice falls into one bucket both times, as it does under
GROUP BY date_trunc on local time; and a day may have 23 or 25 hours.
"""

import re
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synopsis.grid.zones import MICROSECONDS, UTC, Zone

_DAY_S: Final = 86_400
_WEEK_S: Final = 7 * _DAY_S
_WEEK_LEAD_S: Final = 3 * _DAY_S  #: 1970-01-01 was a Thursday: its week had begun three days before

_CLOCK_UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": _DAY_S}
_CALENDAR_UNITS_MONTHS: Final = {"mo": 1, "q": 3, "y": 12}
UNITS: Final = ("s", "m", "h", "d", "w", "mo", "q", "y")

_WORDS: Final = {
    "min": "m",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
    "month": "mo",
    "quarter": "q",
    "year": "y",
}
_SPELLINGS: Final = {unit: unit for unit in UNITS} | _WORDS | {f"{word}s": unit for word, unit in _WORDS.items()}
_TEXT: Final = re.compile(r"\s*(\d*)\s*([A-Za-z]+)\s*", re.ASCII)
_LONGEST_S: Final = 10_000 * 366 * _DAY_S  #: keeps every product of ordinals and lengths far inside 64 bits


@dataclass(frozen=True, slots=True)
class Bucket:
    """A length of time to cut by.

    >>> month = Bucket.parse("1 month")
    >>> month, str(month)
    (Bucket(unit='mo', count=1), '1mo')
    >>> instants = np.array(["1969-12-31T23:59", "1970-02-01"], dtype="datetime64[us]").astype(np.int64)
    >>> month.ordinals(instants)
    array([-1,  1])
    """

    unit: str  #: one of UNITS
    count: int = 1

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"no unit of time {self.unit!r}; there are {', '.join(UNITS)}")
        if self.count < 1:
            raise ValueError(f"a bucket spans at least 1{self.unit}, not {self.count}{self.unit}")
        if self.nominal_s > _LONGEST_S:
            raise ValueError(f"a bucket spans at most 10,000 years, not {self}")

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The bucket that a text names: "15m", "1mo", "2 weeks", "day".

        >>> [str(Bucket.parse(text)) for text in ("90s", "15min", "2 Weeks", "quarter", "1D")]
        ['90s', '15m', '2w', '1q', '1d']
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a bucket: write a number and one of {', '.join(UNITS)}, as in 1mo")
        number, unit = match.groups()
        if unit == "M":  # a month to pandas, a minute to others
            raise ValueError(f"{text!r} may mean minutes or months: write {number or 1}m or {number or 1}mo")
        if unit.lower() not in _SPELLINGS:
            raise ValueError(f"no unit of time {unit!r} in {text!r}; there are {', '.join(UNITS)}")
        return cls(_SPELLINGS[unit.lower()], int(number or 1))

    def ordinals(self, instants_us: ArrayLike, zone: Zone = UTC) -> NDArray[np.int64]:
        """The bucket of each instant."""
        return self._ordinals_of_local(zone.to_local(instants_us))

    def starts_us(self, ordinals: ArrayLike, zone: Zone = UTC) -> NDArray[np.int64]:
        """The first instant of each bucket.

        Where clocks skipped the first moment of a bucket, that is the moment they skipped to.
        """
        return zone.first_us(self._starts_of_local(ordinals))

    def ends_us(self, ordinals: ArrayLike, zone: Zone = UTC) -> NDArray[np.int64]:
        """The first instant of the next bucket.

        Where clocks go back over the end of a bucket, a few of its instants lie behind that: see `reach_us`.
        """
        return self.starts_us(np.asarray(ordinals, dtype=np.int64) + 1, zone)

    def reach_us(self, ordinals: ArrayLike, zone: Zone = UTC) -> NDArray[np.int64]:
        """The instant from which on nothing falls into each bucket any more: what a certain bound must use.

        It is `ends_us` except where clocks go back over the end of a bucket. A quarter of an hour within the autumn
        hour that happens twice ends after 15 minutes, and reaches an hour further:

        >>> quarter, paris = Bucket.parse("15m"), Zone.named("Europe/Paris")
        >>> instants = np.array(["2024-10-27T00:20"], dtype="datetime64[us]").astype(np.int64)
        >>> ordinals = quarter.ordinals(instants, paris)
        >>> quarter.ends_us(ordinals, paris).astype("datetime64[us]")
        array(['2024-10-27T00:30:00.000000'], dtype='datetime64[us]')
        >>> quarter.reach_us(ordinals, paris).astype("datetime64[us]")
        array(['2024-10-27T01:30:00.000000'], dtype='datetime64[us]')
        """
        return zone.past_us(self._starts_of_local(np.asarray(ordinals, dtype=np.int64) + 1))

    def encloses(self, other: "Bucket") -> bool:
        """Whether every bucket of `other` lies within one bucket of self, in whatever zone both are cut.

        >>> month, week, day = Bucket("mo"), Bucket("w"), Bucket("d")
        >>> month.encloses(day), month.encloses(week), week.encloses(day), day.encloses(Bucket("h", 5))
        (True, False, True, False)
        """
        if self.unit in _CALENDAR_UNITS_MONTHS:
            if other.unit in _CALENDAR_UNITS_MONTHS:
                return self._months % other._months == 0
            return _DAY_S % other._seconds == 0  # months begin at any midnight: no week and no two days fit
        if other.unit in _CALENDAR_UNITS_MONTHS or self._seconds % other._seconds != 0:
            return False
        if other.unit == "w":
            return self.unit == "w"
        return self.unit != "w" or _WEEK_LEAD_S % other._seconds == 0

    def coarsen(self, ordinals: ArrayLike, to: "Bucket") -> NDArray[np.int64]:
        """The buckets of `to`, which must enclose self, around buckets of self.

        >>> Bucket("d").coarsen([-1, 0, 31], Bucket("mo"))
        array([-1,  0,  1])
        """
        if not to.encloses(self):
            raise ValueError(f"buckets of {self} do not nest in buckets of {to}")
        return to._ordinals_of_local(self._starts_of_local(ordinals))

    def _ordinals_of_local(self, local_us: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.unit in _CALENDAR_UNITS_MONTHS:
            months = local_us.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
            return np.asarray(months // self._months)
        return np.asarray((local_us + self.lead_us) // self.width_us)

    def _starts_of_local(self, ordinals: ArrayLike) -> NDArray[np.int64]:
        known = np.asarray(ordinals, dtype=np.int64)
        if self.unit in _CALENDAR_UNITS_MONTHS:
            months = np.asarray(known * self._months).astype("datetime64[M]")
            return np.asarray(months.astype("datetime64[us]").astype(np.int64))
        return np.asarray(known * self.width_us - self.lead_us)

    @property
    def _seconds(self) -> int:
        return self.count * (_WEEK_S if self.unit == "w" else _CLOCK_UNITS_S[self.unit])

    @property
    def _months(self) -> int:
        return self.count * _CALENDAR_UNITS_MONTHS[self.unit]

    @property
    def months(self) -> int | None:
        """How many months a calendar bucket spans; None for one that the clock cuts."""
        return self._months if self.unit in _CALENDAR_UNITS_MONTHS else None

    @property
    def width_us(self) -> int:
        """How many microseconds of wall clock a bucket spans that the clock cuts."""
        return self._seconds * MICROSECONDS

    @property
    def lead_us(self) -> int:
        """How far before 1970 bucket 0 begins: three days for weeks, which begin on Monday."""
        return _WEEK_LEAD_S * MICROSECONDS if self.unit == "w" else 0

    @property
    def nominal_s(self) -> int:
        return self._months * 31 * _DAY_S if self.unit in _CALENDAR_UNITS_MONTHS else self._seconds


#: The buckets that old time folds into, finest first. No calendar bucket encloses a week: weeks have their own rungs.
LADDER: Final = tuple(Bucket.parse(text) for text in ("1m", "1h", "1d", "1mo", "1q", "1y", "4w", "52w"))


def ladder(finest: Bucket) -> tuple[Bucket, ...]:
    """A chain of ever coarser buckets, each enclosing the one before. A bucket that no rung encloses stands alone.

    >>> [str(bucket) for bucket in ladder(Bucket("h", 6))]
    ['6h', '1d', '1mo', '1q', '1y']
    >>> [str(bucket) for bucket in ladder(Bucket("w"))]
    ['1w', '4w', '52w']
    """
    chain = [finest]
    for rung in LADDER:
        if rung.encloses(chain[-1]) and not chain[-1].encloses(rung):
            chain.append(rung)
    return tuple(chain)
