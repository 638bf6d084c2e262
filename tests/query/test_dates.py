"""Dates as people write them."""

from __future__ import annotations

import pytest

from synopsis.query.dates import moment


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2025-03-01", "2025-03-01T00:00:00 local"),
        (" 2025-03-01 06:30 ", "2025-03-01T06:30:00 local"),
        ("2025-03-01T06:30:00.123456", "2025-03-01T06:30:00.123456 local"),
        ("2025-03-01T06:30:00Z", "2025-03-01T06:30:00 UTC"),
        ("2025-03-01T06:30-03:00", "2025-03-01T09:30:00 UTC"),
        ("2025-03-01 06:30 America/Sao_Paulo", "2025-03-01T06:30:00 America/Sao_Paulo"),
        ("2025-03-01 UTC", "2025-03-01T00:00:00 UTC"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999 UTC"),
        ("0001-01-01T00:00+14:00", "a moment before the first year"),
    ],
)
def test_a_date_means_what_it_says(text: str, meant: str) -> None:
    found = moment(text)
    if meant.startswith("a moment"):
        assert (found.local_us, found.zone) == (-62_135_596_800_000_000 - 14 * 3_600_000_000, "UTC")
    else:
        assert str(found) == meant


@pytest.mark.parametrize("text", ["", "yesterday", "2025", "2025-02-30", "25:00", "2025-01-01T00:00:00.1234567"])
def test_what_is_not_a_date_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=f"{text!r} is"):
        moment(text)
