"""Conditions: what a plain question says of places, times and features, read phrase by phrase.

A whole comparison is one regular expression. `quick` reads the questions that these stand in, and tells why there are
two readers; whatever is not plain, or wrong, is left to `wheres`, which reads the whole language.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from typing import Final

from sqlglot import Dialect

from synopsis.grid import geohash
from synopsis.grid.cover import Box
from synopsis.query.dates import moment
from synopsis.query.shapes import checked
from synopsis.query.tree import (
    And,
    Condition,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    InBox,
    InCells,
    Name,
    Near,
    Place,
    TimeIs,
    Within,
    any_of,
    negated,
)

NAME: Final = r"([A-Za-z_]\w*+)"
NUMBER: Final = r"(-?)\s*+(\d++(?:\.\d++)?(?:[eE][+-]?\d++)?)(?![\w.])"
TEXT: Final = r"'([^']*)'(?!')"
_COMPARISON: Final = r"(<=|>=|<>|!=|[<>=])"


def phrase(pattern: str) -> re.Pattern[str]:
    """What a phrase looks like; a space stands for any blanks, or none, however many: nothing is tried twice."""
    return re.compile(r"\s*+" + pattern.replace(" ", r"\s*+"), re.ASCII | re.IGNORECASE)


_OR, _AND, _NOT, _IN = (phrase(rf"{word}(?!\w)") for word in ("OR", "AND", "NOT", "IN"))
_OPEN, CLOSE, COMMA = (phrase(sign) for sign in (r"\(", r"\)", ","))
WORD, _QUOTED, _SIGNED, CALL = (phrase(part) for part in (NAME, TEXT, NUMBER, rf"{NAME} \("))

#: Conditions: anything compared with a number or a text, and what else may stand behind a feature, or a place.
_COMPARED, _AND_COMPARED = (
    phrase(rf"{before}{NAME} {_COMPARISON} (?:{NUMBER}|{TEXT})") for before in ("", r"AND(?!\w) ")
)
_NULL: Final = phrase(rf"{NAME} (?<!\w)IS\s+(NOT\s+)?NULL(?!\w)")
_BETWEEN: Final = phrase(rf"{NAME} (?<!\w)BETWEEN(?!\w) (?:{NUMBER}|{TEXT}) AND(?!\w) (?:{NUMBER}|{TEXT})")
_LIKE: Final = phrase(rf"(LOCATION) (?<!\w)LIKE {TEXT}")

_COMPARISONS: Final = {"<": "<", "<=": "<=", "=": "=", "<>": "<>", "!=": "<>", ">=": ">=", ">": ">"}

#: Words that features are called by, though sqlglot has meanings for them elsewhere.
_NAMES: Final = frozenset({"INDEX", "PERCENT", "TEMP"})

#: Words that are no names unless they are quoted: sqlglot has meanings of its own for them.
WORDS: Final = (
    frozenset(
        word
        for words in (
            *Dialect.get_or_raise(None).tokenizer_class.KEYWORDS,
            "IF",
            "CONNECT_BY_ROOT",
            "PRIOR",
            "TIME",
            "LOCATION",
        )
        for word in words.upper().split()
    )
    - _NAMES
)


class NotPlain(Exception):
    """The text is for those who read the whole language."""


class Conditions:
    """One text being read, phrase by phrase, and the conditions in it."""

    __slots__ = ("at", "line_starts", "text")

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.line_starts = (
            [0, *(at + 1 for at, character in enumerate(text) if character == "\n")] if "\n" in text else None
        )

    # --- phrases ------------------------------------------------------------------------------------------------------

    def found(self, phrase: re.Pattern[str]) -> re.Match[str] | None:
        """The phrase if it comes next, which is then passed."""
        found = phrase.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def wanted(self, phrase: re.Pattern[str]) -> re.Match[str]:
        found = phrase.match(self.text, self.at)
        if found is None:
            raise NotPlain
        self.at = found.end()
        return found

    def place(self, start: int) -> Place:
        """Where a character stands."""
        if self.line_starts is None:
            return Place(1, start + 1)
        line = bisect_right(self.line_starts, start)
        return Place(line, start - self.line_starts[line - 1] + 1)

    def here(self) -> Place:
        """Where the next word begins."""
        at, text = self.at, self.text
        while text[at : at + 1].isspace():
            at += 1
        return self.place(at)

    # --- conditions ---------------------------------------------------------------------------------------------------

    def either(self) -> Condition:
        """Parts with OR between them."""
        at, parts = self.at, [self.every()]
        while self.found(_OR):
            parts.append(self.every())
        return parts[0] if len(parts) == 1 else any_of(tuple(parts), self.first(at))

    def every(self) -> Condition:
        """Parts with AND between them."""
        at, parts = self.at, [self.condition()]
        while True:
            if (found := self.found(_AND_COMPARED)) is not None:
                parts.append(self.compared(found))
            elif self.found(_AND):
                parts.append(self.condition())
            else:
                break
        return parts[0] if len(parts) == 1 else And(tuple(parts), place=self.first(at))

    def first(self, at: int) -> Place:
        """Where the first word from there on begins."""
        end, self.at = self.at, at
        place, self.at = self.here(), end
        return place

    def condition(self) -> Condition:
        """One part of an AND."""
        found = self.found(_COMPARED)
        if found is not None:
            return self.compared(found)
        start = self.at
        if self.found(_NOT):
            place = self.first(start)
            return negated(self.condition(), place)
        if self.found(_OPEN):
            inner = self.either()
            self.wanted(CLOSE)
            return inner
        if (found := self.found(_LIKE)) is not None:
            place, prefix = self.place(found.start(1)), found[2]
            return And(place=place) if prefix == "%" else InCells((_geohash(prefix.removesuffix("%")),), place=place)
        if (found := self.found(_NULL)) is not None:
            place = self.place(found.start(1))
            absent = FeatureNull(Name(named(found[1]), place=place), place=place)
            return negated(absent, place) if found[2] else absent
        if (found := self.found(_BETWEEN)) is not None:
            return self.between(found)
        if (found := self.found(CALL)) is not None:
            return self.of_place(found[1].upper(), self.place(found.start(1)))
        return self.among(self.wanted(WORD))

    def compared(self, found: re.Match[str]) -> Condition:
        """A time, a place or a feature compared with a text or a number."""
        word, comparison, below, digits, text = found.groups()
        place = self.place(found.start(1))
        if text is None:
            name = Name(named(word), place=place)
            return FeatureIs(name, _COMPARISONS[comparison], number_of(below, digits), place=place)
        if word.upper() == "TIME":
            return TimeIs(_COMPARISONS[comparison], moment(text, self.place(found.start(5) - 1)), place=place)
        if word.upper() != "LOCATION" or comparison != "=":
            raise NotPlain
        return InCells((_geohash(text),), place=place)

    def between(self, found: re.Match[str]) -> Condition:
        """A time or a feature between two ends."""
        word, *low, first, below, digits, last = found.groups()
        place = self.place(found.start(1))
        if word.upper() != "TIME":
            if first is not None or last is not None:
                raise NotPlain
            name = Name(named(word), place=place)
            return FeatureBetween(name, number_of(*low), number_of(below, digits), place=place)
        if first is None or last is None:
            raise NotPlain
        ends = zip((">=", "<="), (first, last), (found.start(4), found.start(7)), strict=True)
        return And(
            tuple(TimeIs(each, moment(text, self.place(at - 1)), place=place) for each, text, at in ends), place=place
        )

    def among(self, found: re.Match[str]) -> Condition:
        """A place or a feature that is one of several."""
        word, place = found[1], self.place(found.start(1))
        self.wanted(_IN)
        self.wanted(_OPEN)
        if word.upper() == "LOCATION":
            return InCells(tuple(_geohash(each[1]) for each in self.several(_QUOTED)), place=place)
        name = Name(named(word), place=place)
        return FeatureIn(name, tuple(number_of(*each.groups()) for each in self.several(_SIGNED)), place=place)

    def several(self, phrase: re.Pattern[str]) -> list[re.Match[str]]:
        """Phrases with commas between them, up to the closing parenthesis."""
        found = [self.wanted(phrase)]
        while self.found(COMMA):
            found.append(self.wanted(phrase))
        self.wanted(CLOSE)
        return found

    def of_place(self, word: str, place: Place) -> Condition:
        """BOX, WITHIN and NEAR."""
        if word == "WITHIN":
            (text,) = self.several(_QUOTED)
            return Within(checked(text[1]), place=place)
        if word not in ("BOX", "NEAR"):
            raise NotPlain
        numbers = [number_of(*each.groups()) for each in self.several(_SIGNED)]
        if word == "BOX":
            south, west, north, east = numbers
            box = Box(south, west, north, east)
            return InBox(box.south, box.west, box.north, box.east, place=place)
        latitude, longitude, km = numbers
        if abs(latitude) > geohash.LATITUDE_REACH or abs(longitude) > geohash.LONGITUDE_REACH or km < 0.0:
            raise NotPlain
        return Near(latitude, longitude, km, place=place)


def named(word: str) -> str:
    if word.upper() in WORDS:
        raise NotPlain
    return word


def number_of(below: str | None, digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotPlain
    return (-number if below else number) + 0.0  # there is no zero below zero


def _geohash(text: str) -> str:
    geohash.parse(text)
    return text.lower()
