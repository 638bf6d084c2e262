"""Hashing: values that are keys of many look-ups know their hash, instead of computing it for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any


@cache
def _facts(kind: Any) -> Callable[[Any], Any]:
    """What tells values of a dataclass apart."""
    names = [each.name for each in fields(kind) if each.compare]
    return attrgetter(*names) if names else lambda value: ()


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
            kind: Any = type(self)  # a dataclass, as subclasses are
            known = hash(_facts(kind)(self))
            object.__setattr__(self, "_hash", known)
            return known
