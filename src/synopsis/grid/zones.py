"""Zones: what the clock on the wall shows in a named time zone, for whole columns of instants.

The standard library knows the offset of one instant at a time. Asked every second day, with each change then narrowed
down to the second, it yields a short sorted table of changes; after that a column is converted by one binary search. No
zone of the tz database changed its offset twice within three days (Freetown, in September 1939, came closest).

An instant is a count of microseconds since 1970-01-01 UTC; a wall time is what the clock shows, counted the same way.
"""

from dataclasses import dataclass, field
from datetime import UTC as STANDARD_UTC
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cache
from typing import Final, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
from numpy.typing import ArrayLike, NDArray

MICROSECONDS: Final = 1_000_000  #: in a second

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=STANDARD_UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: The oldest change in the tz database is Manila's in 1844. What holds in 1840 holds before, and in 2120 from then on.
_FIRST_SAMPLE_S: Final = int((datetime(1840, 1, 1, tzinfo=STANDARD_UTC) - _EPOCH).total_seconds())
_LAST_SAMPLE_S: Final = int((datetime(2120, 1, 1, tzinfo=STANDARD_UTC) - _EPOCH).total_seconds())
_SAMPLE_STEP_S: Final = 2 * 86_400


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone as its table of changes. Two zones are equal when their names are.

    >>> paris = Zone.named("Europe/Paris")
    >>> noon_in_july = np.array(["2024-07-01T12:00"], dtype="datetime64[us]")
    >>> paris.to_local(noon_in_july.astype(np.int64)).astype("datetime64[us]")
    array(['2024-07-01T14:00:00.000000'], dtype='datetime64[us]')
    """

    name: str
    changes_us: NDArray[np.int64] = field(repr=False, compare=False)  #: instants, ascending
    offsets_us: NDArray[np.int64] = field(repr=False, compare=False)  #: wall minus instant: before, between, after

    @classmethod
    def named(cls, name: str) -> Self:
        """The zone of that name, as in "Europe/Paris" or "UTC"; the table is made once and kept.

        >>> Zone.named("Europe/Pariss")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: no time zone 'Europe/Pariss'; close names are Europe/Paris, ...
        """
        changes_us, offsets_us = _table(name)
        return cls(name, changes_us, offsets_us)

    def to_local(self, instants_us: ArrayLike) -> NDArray[np.int64]:
        """What the clock shows at each instant."""
        instants = np.asarray(instants_us, dtype=np.int64)
        if self._is_utc:
            return instants
        return instants + self.offsets_us[np.searchsorted(self.changes_us, instants, side="right")]

    def to_utc(self, local_us: ArrayLike) -> NDArray[np.int64]:
        """The instant of each wall time.

        The earlier one of two when clocks went back. A wall time that clocks skipped is moved forward by what they
        skipped, as Java does, and Python with fold=0.
        """
        local = np.asarray(local_us, dtype=np.int64)
        if self._is_utc:
            return local
        # The old offset rules until both the old and the new reading of the change have passed.
        turns = self.changes_us + np.maximum(self.offsets_us[:-1], self.offsets_us[1:])
        return local - self.offsets_us[np.searchsorted(turns, local, side="right")]

    def first_us(self, local_us: ArrayLike) -> NDArray[np.int64]:
        """The first instant at which the clock shows this wall time or a later one.

        It differs from `to_utc` only for a wall time that was skipped: the first instant is then that of the change.
        """
        local = np.asarray(local_us, dtype=np.int64)
        if self._is_utc:
            return local
        position = np.searchsorted(self.changes_us + self.offsets_us[:-1], local, side="right")
        return np.asarray(np.maximum(local - self.offsets_us[position], self._bounds_us[position]))

    def past_us(self, local_us: ArrayLike) -> NDArray[np.int64]:
        """The instant from which on the clock never again shows less than this wall time.

        It is later than `first_us` only where clocks went back over this wall time.
        """
        local = np.asarray(local_us, dtype=np.int64)
        if self._is_utc:
            return local
        position = np.searchsorted(self.changes_us + self.offsets_us[1:], local, side="left")
        return np.asarray(np.minimum(local - self.offsets_us[position], self._bounds_us[position + 1]))

    @property
    def _is_utc(self) -> bool:
        return len(self.changes_us) == 0 and int(self.offsets_us[0]) == 0

    @property
    def _bounds_us(self) -> NDArray[np.int64]:
        """Where each offset begins to hold, and last of all where the last one ends."""
        extremes = np.iinfo(np.int64)
        return np.concatenate(([extremes.min], self.changes_us, [extremes.max]), dtype=np.int64)


@cache
def _table(name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Instants at which the offset changes, and the offsets before, between and after them."""
    if name == "UTC":  # needs no tz database
        return _frozen([]), _frozen([0])
    rules = _rules(name)
    changes_us: list[int] = []
    offsets_us = [_offset_us(rules, _FIRST_SAMPLE_S)]
    for sample_s in range(_FIRST_SAMPLE_S + _SAMPLE_STEP_S, _LAST_SAMPLE_S, _SAMPLE_STEP_S):
        offset_us = _offset_us(rules, sample_s)
        if offset_us != offsets_us[-1]:
            before_s, after_s = sample_s - _SAMPLE_STEP_S, sample_s
            while after_s - before_s > 1:
                middle_s = (before_s + after_s) // 2
                if _offset_us(rules, middle_s) == offset_us:
                    after_s = middle_s
                else:
                    before_s = middle_s
            changes_us.append(after_s * MICROSECONDS)
            offsets_us.append(offset_us)
    return _frozen(changes_us), _frozen(offsets_us)


def _rules(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # no such file; not a path; a folder such as "Europe"
        known = {zone.lower(): zone for zone in sorted(available_timezones())}
        close = [known[match] for match in get_close_matches(name.lower(), known, n=3)]
        hint = f"; close names are {', '.join(close)}" if close else "; names look like Europe/Paris or UTC"
        raise ValueError(f"no time zone {name!r}{hint}") from error


def _offset_us(rules: ZoneInfo, instant_s: int) -> int:
    offset = (_EPOCH + timedelta(seconds=instant_s)).astimezone(rules).utcoffset()
    assert offset is not None  # ZoneInfo answers for every aware datetime
    return offset // _MICROSECOND


def _frozen(numbers: list[int]) -> NDArray[np.int64]:
    """An array that many callers may share: it cannot be written to."""
    array = np.array(numbers, dtype=np.int64)
    array.setflags(write=False)
    return array


UTC: Final = Zone.named("UTC")
