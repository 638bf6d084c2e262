"""Quick: plain questions in SQL, read in a tenth of the time that parsing all of SQL takes.

Most questions are statistics of features, perhaps by cell and bucket, under conditions on place, time and features.
Their grammar fits this page: one pass over the characters, one over the words. Whatever is not plain, or wrong, is left
to `language`, which reads the whole language through sqlglot, and refuses with line and column. So nothing is refused
here, and what both read they read into the same tree, places in the text included.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Final, TypeVar

from sqlglot import Dialect

from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.cover import Box
from synopsis.query.dates import moment
from synopsis.query.shapes import checked
from synopsis.query.tree import (
    FUNCTIONS,
    Aggregate,
    And,
    BucketKey,
    CellKey,
    Condition,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    InBox,
    InCells,
    Item,
    Name,
    Near,
    Place,
    Question,
    TimeIs,
    Within,
    any_of,
    negated,
)
from synopsis.query.wheres import SPELLINGS

_TOKEN: Final = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*)"
    r"|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])"
    r"|'([^']*)'(?!')"
    r"|(<=|>=|<>|!=|[(),*<>=-])"
    r"|\S",
    re.ASCII,
)
_NAME, _NUMBER, _TEXT, _SIGN = 1, 2, 3, 4
_Part = TypeVar("_Part")
_COMPARISONS: Final = {"<": "<", "<=": "<=", "=": "=", "<>": "<>", "!=": "<>", ">=": ">=", ">": ">"}

#: Functions of features alone, and quantiles.
_FUNCTIONS: Final = {
    spelling: function
    for spelling, function in SPELLINGS.items()
    if 0 not in FUNCTIONS[function] and function not in ("outliers", "predict")
} | {"COUNT": "count"}

#: Words that are no names unless they are quoted: sqlglot has meanings of its own for them.
_WORDS: Final = frozenset(
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


class _NotPlain(Exception):
    """The text is for those who read the whole language."""


def plainly(text: str) -> Question | None:
    """The tree of a plain question; None where it is not plain, or wrong. Cost: about 2 us a word.

    >>> print(plainly("SELECT MEAN(rh) WHERE location LIKE '6g%' AND NOT rh < 20"))
    select mean(rh) as 'MEAN(rh)'
    scope location in 6g and not (rh < 20.0)
    >>> plainly("SELECT MEAN(rh) / 2")
    """
    try:
        return _Plain(text).question()
    except (_NotPlain, ValueError, IndexError, RecursionError):  # who reads everything tells what is wrong
        return None


class _Plain:
    """One text being read, word by word."""

    __slots__ = ("at", "ends", "kinds", "line_starts", "starts", "text", "words")

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        found = list(_TOKEN.finditer(text))
        self.kinds = [each.lastindex for each in found]
        if None in self.kinds:
            raise _NotPlain
        self.words = [each[each.lastindex or 0] for each in found]
        self.starts, self.ends = [each.start() for each in found], [each.end() for each in found]
        self.line_starts = (
            [0, *(at + 1 for at, character in enumerate(text) if character == "\n")] if "\n" in text else None
        )

    # --- words --------------------------------------------------------------------------------------------------------

    def place(self, at: int) -> Place:
        """Where a word stands."""
        start = self.starts[at]
        if self.line_starts is None:
            return Place(1, start + 1)
        line = bisect_right(self.line_starts, start)
        return Place(line, start - self.line_starts[line - 1] + 1)

    def is_word(self, word: str) -> bool:
        """Whether a word of the language comes next; if so, it is passed."""
        at = self.at
        if at < len(self.words) and self.kinds[at] == _NAME and self.words[at].upper() == word:
            self.at = at + 1
            return True
        return False

    def is_sign(self, sign: str) -> bool:
        at = self.at
        if at < len(self.words) and self.kinds[at] == _SIGN and self.words[at] == sign:
            self.at = at + 1
            return True
        return False

    def word(self, word: str) -> None:
        if not self.is_word(word):
            raise _NotPlain

    def sign(self, sign: str) -> None:
        if not self.is_sign(sign):
            raise _NotPlain

    def _next(self, kind: int) -> str:
        at = self.at
        if self.kinds[at] != kind:
            raise _NotPlain
        self.at = at + 1
        return self.words[at]

    def quoted(self) -> str:
        return self._next(_TEXT)

    def name(self) -> Name:
        at, word = self.at, self._next(_NAME)
        if word.upper() in _WORDS:
            raise _NotPlain
        return Name(word, place=self.place(at))

    def number(self) -> float:
        below = self.is_sign("-")
        number = float(self._next(_NUMBER))
        if math.isinf(number):
            raise _NotPlain
        return (-number if below else number) + 0.0  # there is no zero below zero

    def whole(self) -> int:
        return int(self._next(_NUMBER))

    def several(self, part: Callable[[], _Part]) -> list[_Part]:
        """Parts with commas between them."""
        found = [part()]
        while self.is_sign(","):
            found.append(part())
        return found

    def arguments(self, part: Callable[[], _Part]) -> list[_Part]:
        """Parts with commas between them, in parentheses."""
        self.sign("(")
        found = self.several(part)
        self.sign(")")
        return found

    # --- the whole ----------------------------------------------------------------------------------------------------

    def question(self) -> Question:
        self.word("SELECT")
        items = self.several(self.item)
        scope = self.either() if self.is_word("WHERE") else And()
        keys: dict[CellKey | BucketKey, str] = {}
        if self.is_word("GROUP"):
            self.word("BY")
            for item in self.several(self.written):
                key = item.expression
                if not isinstance(key, CellKey | BucketKey) or any(type(known) is type(key) for known in keys):
                    raise _NotPlain
                keys[key] = item.name
        selected = [item.expression for item in items]
        if self.at < len(self.words) or any(
            isinstance(each, CellKey | BucketKey) and each not in keys for each in selected
        ):
            raise _NotPlain
        items = [*(Item(text, key) for key, text in keys.items() if key not in selected), *items]
        if len({item.name for item in items}) < len(items):
            raise _NotPlain
        return Question(tuple(items), scope, tuple(keys))

    def item(self) -> Item:
        """A column, named as it is written or by its alias."""
        item = self.written()
        return Item(self.name().text, item.expression) if self.is_word("AS") else item

    def written(self) -> Item:
        """A column, named as it is written."""
        at = self.at
        expression = self.expression()
        return Item(self.text[self.starts[at] : self.ends[self.at - 1]], expression)

    def expression(self) -> Aggregate | CellKey | BucketKey:
        at = self.at
        word, place = self._next(_NAME).upper(), self.place(at)
        if word == "CELL":
            (length,) = self.arguments(self.whole)
            if not 1 <= length <= 12:
                raise _NotPlain
            return CellKey(length, place=place)
        if word == "BUCKET":
            (span,) = self.arguments(self.quoted)
            return BucketKey(str(Bucket.parse(span)), place=place)
        function = _FUNCTIONS.get(word)
        if function is None:
            raise _NotPlain
        self.sign("(")
        if function == "count" and self.is_sign("*"):
            self.sign(")")
            return Aggregate(function, place=place)
        share, names = None, [self.name()]
        if word == "MEDIAN":
            share = 0.5
        elif function == "quantile":
            self.sign(",")
            share = self.number()
            if not 0.0 <= share <= 1.0:
                raise _NotPlain
        elif self.is_sign(","):
            names.append(self.name())
        self.sign(")")
        if len(names) not in FUNCTIONS[function]:
            raise _NotPlain
        return Aggregate(function, tuple(names), share, place=place)

    # --- conditions ---------------------------------------------------------------------------------------------------

    def either(self) -> Condition:
        """Parts with OR between them."""
        at, parts = self.at, [self.every()]
        while self.is_word("OR"):
            parts.append(self.every())
        return parts[0] if len(parts) == 1 else any_of(tuple(parts), self.place(at))

    def every(self) -> Condition:
        """Parts with AND between them."""
        at, parts = self.at, [self.condition()]
        while self.is_word("AND"):
            parts.append(self.condition())
        return parts[0] if len(parts) == 1 else And(tuple(parts), place=self.place(at))

    def condition(self) -> Condition:
        """One part of an AND."""
        at = self.at
        if self.is_word("NOT"):
            return negated(self.condition(), self.place(at))
        if self.is_sign("("):
            found = self.either()
            self.sign(")")
            return found
        word, place = self._next(_NAME), self.place(at)
        known = _SUBJECTS.get(word.upper())
        if known is not None:
            return known(self, place)
        self.at = at
        return self.of_feature(self.name(), place)

    def of_feature(self, name: Name, place: Place) -> Condition:
        comparison = self.comparison()
        if comparison is not None:
            return FeatureIs(name, comparison, self.number(), place=place)
        if self.is_word("IS"):
            refused = self.is_word("NOT")
            self.word("NULL")
            absent = FeatureNull(name, place=place)
            return negated(absent, place) if refused else absent
        if self.is_word("BETWEEN"):
            low = self.number()
            self.word("AND")
            return FeatureBetween(name, low, self.number(), place=place)
        self.word("IN")
        return FeatureIn(name, tuple(self.arguments(self.number)), place=place)

    def comparison(self) -> str | None:
        """A comparison, if one comes next."""
        at = self.at
        found = _COMPARISONS.get(self.words[at]) if self.kinds[at] == _SIGN else None
        if found is not None:
            self.at = at + 1
        return found

    def of_place(self, place: Place) -> Condition:
        """What stands behind `location`."""
        if self.is_word("LIKE"):
            text = self.quoted()
            if text == "%":
                return And(place=place)
            return InCells((_geohash(text.removesuffix("%")),), place=place)
        if self.is_sign("="):
            return InCells((_geohash(self.quoted()),), place=place)
        self.word("IN")
        return InCells(tuple(map(_geohash, self.arguments(self.quoted))), place=place)

    def of_time(self, place: Place) -> Condition:
        """What stands behind `time`."""
        comparison = self.comparison()
        if comparison is not None:
            return self.moment(comparison, place)
        self.word("BETWEEN")
        first = self.moment(">=", place)
        self.word("AND")
        return And((first, self.moment("<=", place)), place=place)

    def moment(self, comparison: str, place: Place) -> TimeIs:
        at = self.at
        return TimeIs(comparison, moment(self.quoted(), self.place(at)), place=place)

    def in_box(self, place: Place) -> InBox:
        south, west, north, east = self.arguments(self.number)
        box = Box(south, west, north, east)
        return InBox(box.south, box.west, box.north, box.east, place=place)

    def within(self, place: Place) -> Within:
        (text,) = self.arguments(self.quoted)
        return Within(checked(text), place=place)

    def near(self, place: Place) -> Near:
        latitude, longitude, km = self.arguments(self.number)
        if abs(latitude) > geohash.LATITUDE_REACH or abs(longitude) > geohash.LONGITUDE_REACH or km < 0.0:
            raise _NotPlain
        return Near(latitude, longitude, km, place=place)


def _geohash(text: str) -> str:
    geohash.parse(text)
    return text.lower()


#: What begins a condition that is not on a feature.
_SUBJECTS: Final[dict[str, Callable[[_Plain, Place], Condition]]] = {
    "LOCATION": _Plain.of_place,
    "TIME": _Plain.of_time,
    "BOX": _Plain.in_box,
    "WITHIN": _Plain.within,
    "NEAR": _Plain.near,
}
