"""Quick: plain questions in SQL, read in a small part of the time that parsing all of SQL takes.

Most questions are statistics of features, perhaps by cell and bucket, under conditions on place, time and features;
some ask how often conditions are fulfilled, for what others lead to expect, for a curve, or for a part of the sketch.
Their grammar fits this page and that of `conditions`, and is read phrase by phrase: a whole comparison, a whole
function with its arguments is one regular expression. Columns are read once: the same words at the same place are the
same part of the tree. Whatever is not plain, or wrong, is left to `language`, which reads the whole language through
sqlglot, and refuses with line and column. So nothing is refused here, and what both read they read into the same
tree, places in the text included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from synopsis.grid.buckets import Bucket
from synopsis.query.conditions import (
    CALL,
    CLOSE,
    COMMA,
    NAME,
    NUMBER,
    TEXT,
    WORD,
    Conditions,
    NotPlain,
    named,
    number_of,
    phrase,
)
from synopsis.query.tree import (
    FUNCTIONS,
    Aggregate,
    And,
    BucketKey,
    CellKey,
    Curve,
    Item,
    Name,
    Order,
    Place,
    Question,
    Selection,
    SetOf,
)
from synopsis.query.wheres import SPELLINGS

_SELECT, _WHERE, _GROUP, _ORDER, _AS = (
    phrase(rf"{word}(?!\w)") for word in ("SELECT", "WHERE", r"GROUP\s+BY", r"ORDER\s+BY", "AS")
)
_STAR, _END = (phrase(sign) for sign in (r"\*", r"\Z"))

#: A function of features, and perhaps of a number, or of nothing.
_FUNCTION: Final = phrase(rf"{NAME} \( (?:(\*)|{NAME}(?: , (?:{NAME}|{NUMBER}))?) \)")

#: All columns of a question that look like such functions and have no names of their own.
_CALLED: Final = r"\w++ \([^()'\"]*+\)"
_COLUMNS: Final = phrase(rf"SELECT(?!\w) ({_CALLED}(?: , {_CALLED})*+)(?! ,| AS(?!\w))")

#: What rows fulfil or differ in, what others lead to expect, and an entity that may be there.
_OF_ROWS: Final = phrase(r"(PROBABILITY|FREQUENCY|CONTAINS|CARDINALITY) \(")
_PREDICT: Final = phrase(rf"(PREDICT) \( {NAME} ,")
_GIVEN: Final = phrase(rf"{NAME} = {NUMBER}")
_ENTITY: Final = phrase(rf"(?:{NAME} = )?{TEXT} \)")

#: A curve, alone or by cells.
_CURVE: Final = phrase(
    rf"SELECT(?!\w) (?:(DENSITY) \( {NAME}(?: , {NUMBER})?|(FORECAST) \( {NAME} , {TEXT}(?: , {TEXT})?) \)"
)

#: A part of the sketch: plain columns, with nothing behind them but a condition.
_PART: Final = phrase(rf"SELECT(?!\w) (?:\*|{NAME}(?: , {NAME})*+)(?: \Z|\s+WHERE(?!\w))")

#: What an answer is sorted by may go down, and how many rows it has.
_DOWN: Final = phrase(r"(ASC|DESC)(?!\w)")
_LIMIT: Final = phrase(r"LIMIT\s+(\d++)(?![\w.])")

#: A key to group by.
_KEY: Final = phrase(rf"(?:(CELL) \( (\d+)|(BUCKET) \( {TEXT}) \)")

#: Columns that are remembered, a few hundred bytes each.
_REMEMBERED: Final = 2_048

#: Functions of features, and perhaps of a number.
_FUNCTIONS: Final = {
    spelling: function
    for spelling, function in SPELLINGS.items()
    if 0 not in FUNCTIONS[function] and function != "predict"
} | {"COUNT": "count"}

#: No column at all.
_NOTHING: Final = Item("", Aggregate("count"))


def plainly(text: str) -> Question | Selection | Curve | None:
    """The tree of a plain question; None where it is not plain, or wrong. Cost: about 8 us a condition.

    >>> print(plainly("SELECT MEAN(rh) WHERE location LIKE '6g%' AND NOT rh < 20"))
    select mean(rh) as 'MEAN(rh)'
    scope location in 6g and not (rh < 20.0)
    >>> plainly("SELECT MEAN(rh) / 2")
    """
    try:
        return _Plain(text).asked()
    except (NotPlain, ValueError, RecursionError):  # who reads everything tells what is wrong
        return None


class _Plain(Conditions):
    """One question being read."""

    __slots__ = ()

    # --- the whole ----------------------------------------------------------------------------------------------------

    def asked(self) -> Question | Selection | Curve:
        if (found := self.found(_CURVE)) is not None:
            return self.curve(found)
        if _PART.match(self.text) is not None:
            return self.part()
        return self.question()

    def curve(self, found: re.Match[str]) -> Curve:
        """DENSITY or FORECAST, named as it is written or by its alias."""
        of_density, feature, below, digits, _, other, *spans = found.groups()
        start, at = (found.start(1), found.start(2)) if of_density else (found.start(5), found.start(6))
        column = self.text[start : found.end()]
        name = Name(named(feature or other), place=self.place(at))
        bandwidth = number_of(below, digits) if digits else None
        if bandwidth is not None and not bandwidth > 0.0:
            raise NotPlain
        horizon, step = (
            (None, "1d") if of_density else (str(Bucket.parse(spans[0])), str(Bucket.parse(spans[1] or "1d")))
        )
        column = named(self.wanted(WORD)[1]) if self.found(_AS) else column
        scope = self.either() if self.found(_WHERE) else And()
        cell = self.column().expression if self.found(_GROUP) else None
        if cell is not None and not isinstance(cell, CellKey):
            raise NotPlain
        self.wanted(_END)
        word = "density" if of_density else "forecast"
        return Curve(word, name, column, scope, bandwidth, horizon, step, cell, place=self.place(start))

    def part(self) -> Selection:
        """A part of the sketch, with all of its features or some."""
        self.wanted(_SELECT)
        names = list[Name]()
        if not self.found(_STAR):
            while not names or self.found(COMMA):
                found = self.wanted(WORD)
                names.append(Name(named(found[1]), place=self.place(found.start(1))))
        scope = self.either() if self.found(_WHERE) else And()
        self.wanted(_END)
        return Selection(tuple(names), scope)

    def question(self) -> Question:
        known = self.functions()
        items = list(known or self.items())
        scope = self.either() if self.found(_WHERE) else And()
        if known is not None and self.found(_END):
            return Question(known, scope)
        keys: dict[CellKey | BucketKey, str] = {}
        if self.found(_GROUP):
            while not keys or self.found(COMMA):
                item = self.key(items)
                key = item.expression
                if not isinstance(key, CellKey | BucketKey) or any(type(known) is type(key) for known in keys):
                    raise NotPlain
                keys[key] = item.name
        order: list[Order] = []
        if self.found(_ORDER):
            while not order or self.found(COMMA):
                order.append(self.order())
        limit = self.found(_LIMIT)
        self.wanted(_END)
        selected = [item.expression for item in items]
        if any(isinstance(each, CellKey | BucketKey) and each not in keys for each in selected):
            raise NotPlain
        items = [*(Item(text, key) for key, text in keys.items() if key not in selected), *items]
        if not _are_apart(items):
            raise NotPlain
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
        while self.found(COMMA):
            yield self.item()

    def key(self, items: list[Item]) -> Item:
        """What is grouped by, as it is written or by the name of a column."""
        found = self.found(WORD) if CALL.match(self.text, self.at) is None else None
        if found is None:
            return self.column()
        return next((item for item in items if item.name == found[1]), _NOTHING)

    def order(self) -> Order:
        """What is sorted by: the name of a column, or what it is."""
        found = self.found(WORD) if CALL.match(self.text, self.at) is None else None
        by = self.column().expression if found is None else Name(named(found[1]), place=self.place(found.start(1)))
        down = self.found(_DOWN)
        return Order(by, down is not None and down[1].upper() == "DESC")

    def item(self) -> Item:
        """A column, named as it is written or by its alias."""
        item = self.column()
        return Item(named(self.wanted(WORD)[1]), item.expression) if self.found(_AS) else item

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
            name = None if entity[1] is None else Name(named(entity[1]), place=self.place(entity.start(1)))
            own = SetOf(word, name, text=entity[2], place=place)
        elif word == "cardinality":
            own = self.different(place)
        else:
            parts = [self.either()]
            while word != "probability" and self.found(COMMA):
                parts.append(self.either())
            self.wanted(CLOSE)
            condition = parts[0] if len(parts) == 1 else And(tuple(parts), place=place)
            own = Aggregate(word, condition=condition, place=place)
        return Item(self.text[found.start(1) : self.at], own)

    def different(self, place: Place) -> SetOf:
        """How many cells or buckets there are, or both."""
        keys = list[CellKey | BucketKey]()
        while not keys or self.found(COMMA):
            key = self.column().expression
            if not isinstance(key, CellKey | BucketKey) or any(type(known) is type(key) for known in keys):
                raise NotPlain
            keys.append(key)
        self.wanted(CLOSE)
        return SetOf("cardinality", keys=tuple(keys), place=place)

    def predicted(self, found: re.Match[str], place: Place) -> Aggregate:
        """A feature, and the values of others."""
        names, numbers = [Name(named(found[2]), place=self.place(found.start(2)))], list[float]()
        while not numbers or self.found(COMMA):
            given = self.wanted(_GIVEN)
            names.append(Name(named(given[1]), place=self.place(given.start(1))))
            numbers.append(number_of(given[2], given[3]))
        self.wanted(CLOSE)
        if len({name.text.lower() for name in names}) < len(names):
            raise NotPlain
        return Aggregate("predict", tuple(names), numbers=tuple(numbers), place=place)


def column_of(written: str) -> Item | None:
    """A column, named as it is written, if it is plain; its places are those of a text that begins with it."""
    try:
        item = _column(written, 1, 1) if _FUNCTION.fullmatch(written) else None
    except (NotPlain, ValueError):
        return None
    return item if item is not None and isinstance(item.expression, Aggregate) else None


@lru_cache(maxsize=_REMEMBERED)
def _columns(written: str, start: int) -> tuple[Item, ...] | None:
    """Columns that begin there on the first line, the same tuple for the same words; None where they are not plain."""
    items, at = list[Item](), 0
    try:
        while (found := _FUNCTION.match(written, at)) is not None:
            items.append(_column(written[found.start(1) : found.end()], 1, start + found.start(1) + 1))
            comma = COMMA.match(written, found.end())
            if comma is None:
                return tuple(items) if found.end() == len(written) and _are_apart(items) else None
            at = comma.end()
    except (NotPlain, ValueError):
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
            raise NotPlain
        return Item(written, CellKey(int(key[2]), place=place))
    word, star, one, two, below, digits = found.groups()
    if word.upper() == "CARDINALITY" and one and not two and not digits:
        return Item(written, SetOf("cardinality", _argument(one, found.start(3), written, place), place=place))
    function = _FUNCTIONS.get(word.upper())
    if function is None:
        raise NotPlain
    if star:
        if function != "count":
            raise NotPlain
        return Item(written, Aggregate(function, place=place))
    names, share = [_argument(one, found.start(3), written, place)], None
    if word.upper() == "MEDIAN":
        share = 0.5
    elif function == "outliers":
        away = number_of(below, digits) if digits else 0.0
        if not away > 0.0:
            raise NotPlain
        return Item(written, Aggregate(function, tuple(names), numbers=(away,), place=place))
    elif function == "quantile":
        share = number_of(below, digits) if digits else -1.0
        if not 0.0 <= share <= 1.0:
            raise NotPlain
        digits = None
    if two:
        names.append(_argument(two, found.start(4), written, place))
    if digits or len(names) not in FUNCTIONS[function]:
        raise NotPlain
    return Item(written, Aggregate(function, tuple(names), share, place=place))


def _argument(word: str, at: int, written: str, place: Place) -> Name:
    """A feature in a column that stands at a place."""
    line = written.rfind("\n", 0, at)
    if line < 0:
        return Name(named(word), place=Place(place.line, place.column + at))
    return Name(named(word), place=Place(place.line + written.count("\n", 0, at), at - line))
