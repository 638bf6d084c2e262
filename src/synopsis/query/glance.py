"""Glance: the plainest questions, read straight into what their answers take, without a tree in between.

Statistics of features, under one AND of places, times and comparisons of features with numbers: most questions are no
more than that, and of a question that nobody asked before most of the time goes into its tree and what is made of it.
Here a comparison is a range of its feature as soon as it is read. Whatever is not of this kind, or wrong, is left to
`quick` and those behind it, which say what is wrong; so nothing is refused here.
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from synopsis.grid import cover, geohash
from synopsis.query.conditions import WORDS
from synopsis.query.dates import moment
from synopsis.query.predicates import EVERYWHERE, Ranges, join, meet, outside
from synopsis.query.regions import EVERYWHERE as ANYWHERE
from synopsis.query.regions import Region
from synopsis.query.shapes import Box, Circle, Polygon, checked

_NAME: Final = r"([A-Za-z_]\w*+)"
_NUMBER: Final = r"(-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?)(?![\w.])"


def _phrase(pattern: str) -> re.Pattern[str]:
    """What a phrase looks like; a space stands for any blanks, or none."""
    return re.compile(r"\s*+" + pattern.replace(" ", r"\s*+"), re.ASCII | re.IGNORECASE)


#: Columns on one line, the functions among them, and what may follow.
_SELECT: Final = re.compile(r"\s*+SELECT\s++(\w++\([^()'\"\n]*+\)(?:, \w++\([^()'\"\n]*+\))*+)\s*+", re.IGNORECASE)
_FUNCTION: Final = re.compile(r"\w+\([^()]*\)")
_WHERE: Final = re.compile(r"WHERE(?!\w)", re.IGNORECASE)

#: A name compared with a number or a text, and what else may stand in a condition.
_COMPARED, _AND_COMPARED = (
    _phrase(rf"{before}{_NAME} (<=|>=|<>|!=|[<>=]) (?:{_NUMBER}|'([^']*+)'(?!'))") for before in ("", r"AND(?!\w) ")
)
_AND, _OR, _NOT = (_phrase(rf"{word}(?!\w)") for word in ("AND", "OR", "NOT"))
_OPEN, _CLOSE, _END = (_phrase(sign) for sign in (r"\(", r"\)", r"\Z"))
_NULL: Final = _phrase(rf"{_NAME} (?<!\w)IS\s+(NOT\s+)?NULL(?!\w)")
_BETWEEN: Final = _phrase(rf"{_NAME} (?<!\w)BETWEEN(?!\w) {_NUMBER} AND(?!\w) {_NUMBER}")
_LIKE: Final = _phrase(r"LOCATION (?<!\w)LIKE '([^'%]++)%'(?!')")
_BOX: Final = _phrase(rf"BOX \( {_NUMBER} , {_NUMBER} , {_NUMBER} , {_NUMBER} \)")
_NEAR: Final = _phrase(rf"NEAR \( {_NUMBER} , {_NUMBER} , {_NUMBER} \)")
_WITHIN: Final = _phrase(r"WITHIN \( '([^']*+)' \)")

#: The values of one feature for which a condition holds, and whether it holds where the feature is absent.
Held = tuple[int, Ranges, bool]


class Seen(NamedTuple):
    """What a question asks for."""

    columns: tuple[str, ...]  #: as they are written
    prefixes: tuple[str, ...] | None
    shapes: tuple[Region, ...]
    begin: int | None  #: the first instant that counts
    end: int | None  #: the first that counts no more
    leaves: tuple[Held, ...]  #: of as many features, in the order in which they are named


class _TooMuch(Exception):
    """There is more to the text than a glance takes in."""


def named(features: tuple[str, ...]) -> dict[str, int]:
    """Features by name, but for names that have a meaning of their own in SQL."""
    return {name: at for at, name in enumerate(features) if name.upper() not in WORDS}


def seen(text: str, features: dict[str, int]) -> Seen | None:
    """What a plain question asks for, in UTC; None where it is not as plain as that. Cost: 3 us a condition.

    >>> found = seen("SELECT MEAN(rh), COUNT(*) WHERE location LIKE '6g%' AND rh >= 20 AND rh < 30", {"rh": 0})
    >>> found.columns, found.prefixes, found.leaves
    (('MEAN(rh)', 'COUNT(*)'), ('6g',), ((0, ((20.0, 29.999999999999996),), False),))
    >>> seen("SELECT MEAN(rh) GROUP BY CELL(2)", {"rh": 0})
    """
    head = _SELECT.match(text)
    if head is None:
        return None
    columns, at = tuple(_FUNCTION.findall(head[1])), head.end()
    if len(set(columns)) < len(columns):
        return None
    if at == len(text):
        return Seen(columns, None, (), None, None, ())
    where = _WHERE.match(text, at)
    if where is None:
        return None
    try:
        return _Glance(text, where.end(), features).all_of_it(columns)
    except (_TooMuch, ValueError, KeyError):
        return None


class _Glance:
    """One condition being read."""

    __slots__ = ("at", "begin", "end", "features", "leaves", "prefixes", "shapes", "text")

    def __init__(self, text: str, at: int, features: dict[str, int]) -> None:
        self.text, self.at, self.features = text, at, features
        self.begin: int | None = None
        self.end: int | None = None
        self.prefixes: tuple[str, ...] | None = None
        self.shapes: tuple[Region, ...] = ()
        self.leaves: dict[int, tuple[Ranges, bool]] = {}

    def found(self, phrase: re.Pattern[str]) -> re.Match[str] | None:
        """The phrase if it comes next, which is then passed."""
        found = phrase.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def all_of_it(self, columns: tuple[str, ...]) -> Seen:
        """Conditions with AND between them, up to the end."""
        text, found = self.text, _COMPARED.match(self.text, self.at)
        if found is None:
            self.place_or_feature()
        else:
            self.compared(found)
        while self.at < len(text):
            found = _AND_COMPARED.match(text, self.at)
            if found is not None:
                self.compared(found)
            elif self.found(_AND):
                self.place_or_feature()
            elif self.found(_END):
                break
            else:
                raise _TooMuch
        if self.begin is not None and self.end is not None and self.begin >= self.end:
            raise _TooMuch
        leaves = tuple((feature, ranges, nulls) for feature, (ranges, nulls) in self.leaves.items())
        return Seen(columns, self.prefixes, self.shapes, self.begin, self.end, leaves)

    def compared(self, found: re.Match[str]) -> None:
        """A feature, a time or a place compared."""
        name, comparison, number, text = found.groups()
        self.at = found.end()
        if number is not None:
            self.hold(self.features[name], _range(comparison, number), False)
        elif name.upper() == "TIME":
            self.timed(comparison, text)
        elif name.upper() == "LOCATION" and comparison == "=":
            self.located(text)
        else:
            raise _TooMuch

    def timed(self, comparison: str, text: str) -> None:
        """A time compared."""
        when = moment(text)
        if when.zone not in (None, "UTC") or comparison in ("<>", "!="):
            raise _TooMuch
        if comparison in (">", ">=", "="):
            after = when.local_us + (comparison == ">")
            self.begin = after if self.begin is None else max(self.begin, after)
        if comparison in ("<", "<=", "="):
            until = when.local_us + (comparison != "<")
            self.end = until if self.end is None else min(self.end, until)

    def located(self, prefix: str) -> None:
        """A geohash."""
        geohash.parse(prefix)
        if self.prefixes is not None:
            raise _TooMuch
        self.prefixes = (prefix.lower(),)

    def shaped(self, shape: Region) -> None:
        """A part of the globe."""
        if self.shapes or shape == ANYWHERE:
            raise _TooMuch
        self.shapes = (shape,)

    def hold(self, feature: int, ranges: Ranges, nulls: bool) -> None:
        """What one feature must fulfil beside all that is known of it."""
        known = self.leaves.get(feature)
        if known is not None:
            ranges, nulls = _both(known[0], ranges), nulls and known[1]
        self.leaves[feature] = ranges, nulls

    def place_or_feature(self) -> None:
        """A part of an AND that is not compared."""
        if (found := self.found(_LIKE)) is not None:
            self.located(found[1])
        elif (found := self.found(_BOX)) is not None:
            south, west, north, east = map(_number, found.groups())
            cover.Box(south, west, north, east)  # which knows where there is none
            self.shaped(Box(south, west, north, east))
        elif (found := self.found(_WITHIN)) is not None:
            self.shaped(Polygon(checked(found[1])))
        elif (found := self.found(_NEAR)) is not None:
            latitude, longitude, km = map(_number, found.groups())
            if abs(latitude) > geohash.LATITUDE_REACH or abs(longitude) > geohash.LONGITUDE_REACH or km < 0.0:
                raise _TooMuch
            self.shaped(Circle(latitude, longitude, km))
        else:
            self.hold(*self.one())

    # --- conditions on one feature ------------------------------------------------------------------------------------

    def one(self) -> Held:
        """A condition on one feature: compared, among ends, absent, refused or in parentheses."""
        if (found := self.found(_NULL)) is not None:
            feature = self.features[found[1]]
            return (feature, EVERYWHERE, False) if found[2] else (feature, (), True)
        if (found := self.found(_BETWEEN)) is not None:
            low, high = _number(found[2]), _number(found[3])
            return self.features[found[1]], ((low, high),) if low <= high else (), False
        if self.found(_NOT):
            feature, ranges, nulls = self.one()
            if nulls or not ranges:
                raise _TooMuch
            return feature, outside(ranges), False
        if self.found(_OPEN):
            inner = self.either()
            if self.found(_CLOSE) is None:
                raise _TooMuch
            return inner
        found = self.found(_COMPARED)
        if found is None or found[3] is None:
            raise _TooMuch
        return self.features[found[1]], _range(found[2], found[3]), False

    def either(self) -> Held:
        """Parts with OR between them, all of one feature."""
        feature, ranges, nulls = self.every()
        while self.found(_OR):
            other, more, or_nulls = self.every()
            if other != feature:
                raise _TooMuch
            ranges, nulls = join(ranges + more), nulls or or_nulls
        return feature, ranges, nulls

    def every(self) -> Held:
        """Parts with AND between them, all of one feature."""
        feature, ranges, nulls = self.one()
        while self.found(_AND):
            other, more, and_nulls = self.one()
            if other != feature:
                raise _TooMuch
            ranges, nulls = _both(ranges, more), nulls and and_nulls
        return feature, ranges, nulls


def _number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _TooMuch
    return number + 0.0  # there is no zero below zero


def _range(comparison: str, digits: str) -> Ranges:
    """The numbers that compare so."""
    number = _number(digits)
    match comparison:
        case ">=":
            return ((number, math.inf),)
        case "<":
            return ((-math.inf, math.nextafter(number, -math.inf)),)
        case ">":
            return ((math.nextafter(number, math.inf), math.inf),)
        case "<=":
            return ((-math.inf, number),)
        case "=":
            return ((number, number),)
        case _:
            return outside(((number, number),))


def _both(one: Ranges, other: Ranges) -> Ranges:
    """What lies in both."""
    if len(one) != 1 or len(other) != 1:
        return meet(one, other)
    low, high = max(one[0][0], other[0][0]), min(one[0][1], other[0][1])
    return ((low, high),) if low <= high else ()
