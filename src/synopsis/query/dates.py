"""Dates: points in time as people write them in a question, ISO 8601 with or without a zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from synopsis.grid.zones import Zone
from synopsis.query.tree import Moment, Place

_NAMED_ZONE: Final = re.compile(r"(.*[\dZz])\s+([A-Za-z]\w*(?:/[\w+-]+)*)", re.ASCII)
_TOO_FINE: Final = re.compile(r"[.,]\d{7}")
_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)


def moment(text: str, place: Place | None = None) -> Moment:
    """The moment that a text means; ValueError says why it means none.

    >>> print(moment("2025-03-01"), moment("2025-03-01 12:30+02:00"), moment("2025-03-01T08 Europe/Paris"), sep="; ")
    2025-03-01T00:00:00 local; 2025-03-01T10:30:00 UTC; 2025-03-01T08:00:00 Europe/Paris
    """
    clock, zone = text.strip(), None
    try:
        shown = datetime.fromisoformat(clock)
    except ValueError:
        named = _NAMED_ZONE.fullmatch(clock)
        if named is not None:
            clock, zone = named.groups()
            Zone.named(zone)
        shown = _clock(clock, text)
    if _TOO_FINE.search(clock):
        raise ValueError(f"{text!r} is finer than a microsecond; sketches keep times to the microsecond")
    if shown.tzinfo is None:
        return Moment((shown - _EPOCH) // _MICROSECOND, zone, place=place)
    if zone is not None:
        raise ValueError(f"{text!r} names two time zones; leave one out")
    return Moment((shown - _EPOCH.replace(tzinfo=UTC)) // _MICROSECOND, "UTC", place=place)


def _clock(clock: str, text: str) -> datetime:
    """What a clock shows that may not be one; `text` is what was written."""
    try:
        return datetime.fromisoformat(clock)
    except ValueError:
        raise ValueError(f"{text!r} is not a time; write it as '2025-03-01' or '2025-03-01T12:30:00+01:00'") from None
