"""Hashing: values that are keys of many look-ups know their hash, instead of computing it for each."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Hashed:
    """A base of frozen dataclasses with slots; each says `__hash__ = Hashed.__hash__`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Point(Hashed):
    ...     x: float
    ...     __hash__ = Hashed.__hash__
    >>> hash(Point(1.0)) == hash(Point(1.0)), Point(1.0) == Point(1.0)
    (True, True)
    """

    __slots__ = ("_hash",)

    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            whole: Any = self  # a dataclass, as its subclasses are
            known = hash(tuple(getattr(self, each.name) for each in fields(whole) if each.compare))
            object.__setattr__(self, "_hash", known)
            return known
