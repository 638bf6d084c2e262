"""Quick: plain questions in SQL, read in a small part of the time that parsing all of SQL takes.

Most questions are statistics of features, perhaps by cell and bucket, under conditions on place, time and features;
some ask how often conditions are fulfilled, or for what others lead to expect. Their grammar fits this page, and is
read phrase by phrase: a whole comparison, a whole function with its arguments is one regular expression. Columns are
read once: the same words at the same place are the same part of the tree. Whatever is not plain, or wrong, is left to
`language`, which reads the whole language through sqlglot, and refuses with line and column. So nothing is refused
here, and what both read they read into the same tree, places in the text included.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

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
    Order,
    Place,
    Question,
    SetOf,
    TimeIs,
    Within,
    any_of,
    negated,
)
from synopsis.query.wheres import SPELLINGS

_NAME: Final = r"([A-Za-z_]\w*+)"
_NUMBER: Final = r"(-?)\s*+(\d++(?:\.\d++)?(?:[eE][+-]?\d++)?)(?![\w.])"
_TEXT: Final = r"'([^']*)'(?!')"
_COMPARISON: Final = r"(<=|>=|<>|!=|[<>=])"


def _phrase(pattern: str) -> re.Pattern[str]:
    """What a phrase looks like; a space stands for any blanks, or none, however many: nothing is tried twice."""
    return re.compile(r"\s*+" + pattern.replace(" ", r"\s*+"), re.ASCII | re.IGNORECASE)


_SELECT, _WHERE, _GROUP, _ORDER, _AS, _OR, _AND, _NOT, _IN = (
    _phrase(rf"{word}(?!\w)")
    for word in ("SELECT", "WHERE", r"GROUP\s+BY", r"ORDER\s+BY", "AS", "OR", "AND", "NOT", "IN")
)
_OPEN, _CLOSE, _COMMA, _END = (_phrase(sign) for sign in (r"\(", r"\)", ",", r"\Z"))
_WORD, _QUOTED, _SIGNED, _CALL = (_phrase(part) for part in (_NAME, _TEXT, _NUMBER, rf"{_NAME} \("))

#: A function of features, and perhaps of a number, or of nothing.
_FUNCTION: Final = _phrase(rf"{_NAME} \( (?:(\*)|{_NAME}(?: , (?:{_NAME}|{_NUMBER}))?) \)")

#: All columns of a question that look like such functions and have no names of their own.
_CALLED: Final = r"\w++ \([^()'\"]*+\)"
_COLUMNS: Final = _phrase(rf"SELECT(?!\w) ({_CALLED}(?: , {_CALLED})*+)(?! ,| AS(?!\w))")

#: What rows fulfil, what others lead to expect, and an entity that may be there.
_OF_ROWS: Final = _phrase(r"(PROBABILITY|FREQUENCY|CONTAINS) \(")
_PREDICT: Final = _phrase(rf"(PREDICT) \( {_NAME} ,")
_GIVEN: Final = _phrase(rf"{_NAME} = {_NUMBER}")
_ENTITY: Final = _phrase(rf"(?:{_NAME} = )?{_TEXT} \)")

#: What an answer is sorted by may go down, and how many rows it has.
_DOWN: Final = _phrase(r"(ASC|DESC)(?!\w)")
_LIMIT: Final = _phrase(r"LIMIT\s+(\d++)(?![\w.])")

#: A key to group by.
_KEY: Final = _phrase(rf"(?:(CELL) \( (\d+)|(BUCKET) \( {_TEXT}) \)")

#: Conditions: anything compared with a number or a text, and what else may stand behind a feature, or a place.
_COMPARED, _AND_COMPARED = (
    _phrase(rf"{before}{_NAME} {_COMPARISON} (?:{_NUMBER}|{_TEXT})") for before in ("", r"AND(?!\w) ")
)
_NULL: Final = _phrase(rf"{_NAME} (?<!\w)IS\s+(NOT\s+)?NULL(?!\w)")
_BETWEEN: Final = _phrase(rf"{_NAME} (?<!\w)BETWEEN(?!\w) (?:{_NUMBER}|{_TEXT}) AND(?!\w) (?:{_NUMBER}|{_TEXT})")
_LIKE: Final = _phrase(rf"(LOCATION) (?<!\w)LIKE {_TEXT}")

_COMPARISONS: Final = {"<": "<", "<=": "<=", "=": "=", "<>": "<>", "!=": "<>", ">=": ">=", ">": ">"}

#: Columns that are remembered, a few hundred bytes each.
_REMEMBERED: Final = 2_048

#: Functions of features, and perhaps of a number.
_FUNCTIONS: Final = {
    spelling: function
    for spelling, function in SPELLINGS.items()
    if 0 not in FUNCTIONS[function] and function != "predict"
} | {"COUNT": "count"}

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


#: No column at all.
_NOTHING: Final = Item("", Aggregate("count"))


class _NotPlain(Exception):
    """The text is for those who read the whole language."""


def plainly(text: str) -> Question | None:
    """The tree of a plain question; None where it is not plain, or wrong. Cost: about 8 us a condition.

    >>> print(plainly("SELECT MEAN(rh) WHERE location LIKE '6g%' AND NOT rh < 20"))
    select mean(rh) as 'MEAN(rh)'
    scope location in 6g and not (rh < 20.0)
    >>> plainly("SELECT MEAN(rh) / 2")
    """
    try:
        return _Plain(text).question()
    except (_NotPlain, ValueError, RecursionError):  # who reads everything tells what is wrong
        return None


class _Plain:
    """One text being read, phrase by phrase."""

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
            raise _NotPlain
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

    # --- the whole ----------------------------------------------------------------------------------------------------

    def question(self) -> Question:
        known = self.functions()
        items = list(known or self.items())
        scope = self.either() if self.found(_WHERE) else And()
        if known is not None and self.found(_END):
            return Question(known, scope)
        keys: dict[CellKey | BucketKey, str] = {}
        if self.found(_GROUP):
            while not keys or self.found(_COMMA):
                item = self.key(items)
                key = item.expression
                if not isinstance(key, CellKey | BucketKey) or any(type(known) is type(key) for known in keys):
                    raise _NotPlain
                keys[key] = item.name
        order: list[Order] = []
        if self.found(_ORDER):
            while not order or self.found(_COMMA):
                order.append(self.order())
        limit = self.found(_LIMIT)
        self.wanted(_END)
        selected = [item.expression for item in items]
        if any(isinstance(each, CellKey | BucketKey) and each not in keys for each in selected):
            raise _NotPlain
        items = [*(Item(text, key) for key, text in keys.items() if key not in selected), *items]
        if not _are_apart(items):
            raise _NotPlain
        return Question(tuple(items), scope, tuple(keys), tuple(order), None if limit is None else int(limit[1]))

    def functions(self) -> tuple[Item, ...] | None:
        """All columns, where they are functions named as they are written, on one line."""
        found = _COLUMNS.match(self.text) if self.line_starts is None else None
        if found is None:
            return None
        known = _columns(found[1], found.start(1))
        if known is not None:
            self.at = found.end()
        return known

    def items(self) -> Iterator[Item]:
        """All columns."""
        self.wanted(_SELECT)
        yield self.item()
        while self.found(_COMMA):
            yield self.item()

    def key(self, items: list[Item]) -> Item:
        """What is grouped by, as it is written or by the name of a column."""
        found = self.found(_WORD) if _CALL.match(self.text, self.at) is None else None
        if found is None:
            return self.column()
        return next((item for item in items if item.name == found[1]), _NOTHING)

    def order(self) -> Order:
        """What is sorted by: the name of a column, or what it is."""
        found = self.found(_WORD) if _CALL.match(self.text, self.at) is None else None
        by = self.column().expression if found is None else Name(_named(found[1]), place=self.place(found.start(1)))
        down = self.found(_DOWN)
        return Order(by, down is not None and down[1].upper() == "DESC")

    def item(self) -> Item:
        """A column, named as it is written or by its alias."""
        item = self.column()
        return Item(_named(self.wanted(_WORD)[1]), item.expression) if self.found(_AS) else item

    def column(self) -> Item:
        """A column, named as it is written."""
        found = self.found(_FUNCTION) or self.found(_KEY)
        if found is None:
            return self.of_rows()
        start = found.start(1) if found.re is _FUNCTION or found[1] else found.start(3)
        place = self.place(start)
        return _column(self.text[start : self.at], place.line, place.column)

    def of_rows(self) -> Item:
        """A column that is told by conditions in it: how often, whether, or what to expect."""
        found = self.found(_OF_ROWS) or self.wanted(_PREDICT)
        place, word = self.place(found.start(1)), found[1].lower()
        own: Aggregate | SetOf
        if word == "predict":
            own = self.predicted(found, place)
        elif word == "contains" and (entity := self.found(_ENTITY)) is not None:
            name = None if entity[1] is None else Name(_named(entity[1]), place=self.place(entity.start(1)))
            own = SetOf(word, name, text=entity[2], place=place)
        else:
            parts = [self.either()]
            while word != "probability" and self.found(_COMMA):
                parts.append(self.either())
            self.wanted(_CLOSE)
            condition = parts[0] if len(parts) == 1 else And(tuple(parts), place=place)
            own = Aggregate(word, condition=condition, place=place)
        return Item(self.text[found.start(1) : self.at], own)

    def predicted(self, found: re.Match[str], place: Place) -> Aggregate:
        """A feature, and the values of others."""
        names, numbers = [Name(_named(found[2]), place=self.place(found.start(2)))], list[float]()
        while not numbers or self.found(_COMMA):
            given = self.wanted(_GIVEN)
            names.append(Name(_named(given[1]), place=self.place(given.start(1))))
            numbers.append(_number(given[2], given[3]))
        self.wanted(_CLOSE)
        if len({name.text.lower() for name in names}) < len(names):
            raise _NotPlain
        return Aggregate("predict", tuple(names), numbers=tuple(numbers), place=place)

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
            self.wanted(_CLOSE)
            return inner
        if (found := self.found(_LIKE)) is not None:
            place, prefix = self.place(found.start(1)), found[2]
            return And(place=place) if prefix == "%" else InCells((_geohash(prefix.removesuffix("%")),), place=place)
        if (found := self.found(_NULL)) is not None:
            place = self.place(found.start(1))
            absent = FeatureNull(Name(_named(found[1]), place=place), place=place)
            return negated(absent, place) if found[2] else absent
        if (found := self.found(_BETWEEN)) is not None:
            return self.between(found)
        if (found := self.found(_CALL)) is not None:
            return self.of_place(found[1].upper(), self.place(found.start(1)))
        return self.among(self.wanted(_WORD))

    def compared(self, found: re.Match[str]) -> Condition:
        """A time, a place or a feature compared with a text or a number."""
        word, comparison, below, digits, text = found.groups()
        place = self.place(found.start(1))
        if text is None:
            name = Name(_named(word), place=place)
            return FeatureIs(name, _COMPARISONS[comparison], _number(below, digits), place=place)
        if word.upper() == "TIME":
            return TimeIs(_COMPARISONS[comparison], moment(text, self.place(found.start(5) - 1)), place=place)
        if word.upper() != "LOCATION" or comparison != "=":
            raise _NotPlain
        return InCells((_geohash(text),), place=place)

    def between(self, found: re.Match[str]) -> Condition:
        """A time or a feature between two ends."""
        word, *low, first, below, digits, last = found.groups()
        place = self.place(found.start(1))
        if word.upper() != "TIME":
            if first is not None or last is not None:
                raise _NotPlain
            name = Name(_named(word), place=place)
            return FeatureBetween(name, _number(*low), _number(below, digits), place=place)
        if first is None or last is None:
            raise _NotPlain
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
        name = Name(_named(word), place=place)
        return FeatureIn(name, tuple(_number(*each.groups()) for each in self.several(_SIGNED)), place=place)

    def several(self, phrase: re.Pattern[str]) -> list[re.Match[str]]:
        """Phrases with commas between them, up to the closing parenthesis."""
        found = [self.wanted(phrase)]
        while self.found(_COMMA):
            found.append(self.wanted(phrase))
        self.wanted(_CLOSE)
        return found

    def of_place(self, word: str, place: Place) -> Condition:
        """BOX, WITHIN and NEAR."""
        if word == "WITHIN":
            (text,) = self.several(_QUOTED)
            return Within(checked(text[1]), place=place)
        if word not in ("BOX", "NEAR"):
            raise _NotPlain
        numbers = [_number(*each.groups()) for each in self.several(_SIGNED)]
        if word == "BOX":
            south, west, north, east = numbers
            box = Box(south, west, north, east)
            return InBox(box.south, box.west, box.north, box.east, place=place)
        latitude, longitude, km = numbers
        if abs(latitude) > geohash.LATITUDE_REACH or abs(longitude) > geohash.LONGITUDE_REACH or km < 0.0:
            raise _NotPlain
        return Near(latitude, longitude, km, place=place)


def column_of(written: str) -> Item | None:
    """A column, named as it is written, if it is plain; its places are those of a text that begins with it."""
    try:
        return _column(written, 1, 1) if _FUNCTION.fullmatch(written) else None
    except (_NotPlain, ValueError):
        return None


@lru_cache(maxsize=_REMEMBERED)
def _columns(written: str, start: int) -> tuple[Item, ...] | None:
    """Columns that begin there on the first line, the same tuple for the same words; None where they are not plain."""
    items, at = list[Item](), 0
    try:
        while (found := _FUNCTION.match(written, at)) is not None:
            items.append(_column(written[found.start(1) : found.end()], 1, start + found.start(1) + 1))
            comma = _COMMA.match(written, found.end())
            if comma is None:
                return tuple(items) if found.end() == len(written) and _are_apart(items) else None
            at = comma.end()
    except (_NotPlain, ValueError):
        pass
    return None


def _are_apart(items: list[Item]) -> bool:
    """Whether no two columns have one name."""
    return len({item.name for item in items}) == len(items)


@lru_cache(maxsize=_REMEMBERED)
def _column(written: str, line: int, column: int) -> Item:
    """A column that stands there, named as it is written."""
    place, found = Place(line, column), _FUNCTION.match(written)
    if found is None:
        key = _KEY.match(written)
        assert key is not None
        if key[3]:
            return Item(written, BucketKey(str(Bucket.parse(key[4])), place=place))
        if not 1 <= int(key[2]) <= 12:
            raise _NotPlain
        return Item(written, CellKey(int(key[2]), place=place))
    word, star, one, two, below, digits = found.groups()
    function = _FUNCTIONS.get(word.upper())
    if function is None:
        raise _NotPlain
    if star:
        if function != "count":
            raise _NotPlain
        return Item(written, Aggregate(function, place=place))
    names, share = [_argument(one, found.start(3), written, place)], None
    if word.upper() == "MEDIAN":
        share = 0.5
    elif function == "outliers":
        away = _number(below, digits) if digits else 0.0
        if not away > 0.0:
            raise _NotPlain
        return Item(written, Aggregate(function, tuple(names), numbers=(away,), place=place))
    elif function == "quantile":
        share = _number(below, digits) if digits else -1.0
        if not 0.0 <= share <= 1.0:
            raise _NotPlain
        digits = None
    if two:
        names.append(_argument(two, found.start(4), written, place))
    if digits or len(names) not in FUNCTIONS[function]:
        raise _NotPlain
    return Item(written, Aggregate(function, tuple(names), share, place=place))


def _argument(word: str, at: int, written: str, place: Place) -> Name:
    """A feature in a column that stands at a place."""
    line = written.rfind("\n", 0, at)
    if line < 0:
        return Name(_named(word), place=Place(place.line, place.column + at))
    return Name(_named(word), place=Place(place.line + written.count("\n", 0, at), at - line))


def _named(word: str) -> str:
    if word.upper() in WORDS:
        raise _NotPlain
    return word


def _number(below: str | None, digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _NotPlain
    return (-number if below else number) + 0.0  # there is no zero below zero


def _geohash(text: str) -> str:
    geohash.parse(text)
    return text.lower()
