"""Sizes in bytes, as people write them: `8MB` is 8,000,000, `8MiB` is 8,388,608."""

from __future__ import annotations

import re
from numbers import Real

from synopsis.core.errors import BadSpec

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def parse_bytes(size: int | float | str) -> int:
    """A number of bytes from a number or a text.

    >>> parse_bytes("8MB"), parse_bytes("1.5 KiB"), parse_bytes(90_000)
    (8000000, 1536, 90000)
    """
    given: object = size
    if isinstance(given, bool) or not isinstance(given, Real | str):  # NumPy's numbers are Real, too
        raise BadSpec(f"memory is {size!r}; give bytes, or a text such as '8MB'")
    if isinstance(size, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size.replace(",", "").replace("_", ""))
        if match is None or match[2].lower() not in _UNITS:
            raise BadSpec(f"memory is {size!r}; give bytes, or a text such as '8MB' or '500KB'")
        size = float(match[1]) * _UNITS[match[2].lower()]
    if not 0 < size < 2**63:
        raise BadSpec(f"memory is {size}; it must be a positive number of bytes")
    return int(size)


def format_bytes(size: int) -> str:
    """Bytes as a short text.

    >>> format_bytes(8_123_456), format_bytes(950)
    ('8.12 MB', '950 B')
    """
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size} B"
