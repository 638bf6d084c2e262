"""Hashing: values that are keys of many look-ups know their hash, instead of computing it for each, or are looked up by
which they are, and not by what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

T = TypeVar("T")


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


class Itself(Generic[T]):
    """A value that is equal to itself alone, as a key.

    >>> one, two = [1], [1]
    >>> Itself(one) == Itself(one), Itself(one) == Itself(two)
    (True, False)
    """

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.value is self.value
