"""SQL: expressions and conditions of the tree written as SQL, which reads back into the same tree."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from synopsis.core.errors import BadQuery
from synopsis.query.given import WHOLE
from synopsis.query.language import read
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    BinKey,
    BucketKey,
    CellKey,
    ColumnOf,
    Condition,
    Curve,
    Expression,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    GroupIs,
    InBox,
    InCells,
    Moment,
    Name,
    Near,
    Not,
    Number,
    Operand,
    Or,
    Question,
    SetOf,
    TimeIs,
    Within,
)

_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1)
_DAY_US: Final = 86_400_000_000


def written(expression: Expression | Number) -> str:
    """An expression as SQL writes it, which names its column.

    >>> written(Aggregate("quantile", (Name("PM2.5"),), 0.9))
    'QUANTILE("PM2.5", 0.9)'
    """
    match expression:
        case ColumnOf():
            names = [expression.name] if expression.source is None else [expression.source, expression.name]
            return ".".join(map(_written_name, names))
        case CellKey():
            return f"CELL({expression.length})"
        case BucketKey():
            zone = "" if expression.zone is None else f", '{expression.zone}'"
            return f"BUCKET('{expression.span}'{zone})"
        case BinKey():
            width = "" if expression.width is None else f", {plain_number(expression.width)}"
            return f"BIN({_written_name(expression.name.text)}{width})"
        case Number():
            return str(plain_number(expression.value))
        case Arithmetic():
            return _written_arithmetic(expression)
        case SetOf():
            return _written_set(expression)
        case Aggregate():
            arguments = [_written_name(name.text) for name in expression.arguments]
            if expression.share is not None:
                arguments.append(str(plain_number(expression.share)))
            if expression.condition is not None:
                arguments = [written_condition(expression.condition)]
            elif expression.function == "predict":
                at = zip(arguments[1:], expression.numbers, strict=True)
                arguments = [arguments[0], *(f"{name} = {plain_number(number)}" for name, number in at)]
            else:
                arguments += [str(plain_number(number)) for number in expression.numbers]
            only = "" if expression.only is None else f" FILTER (WHERE {written_condition(expression.only)})"
            return f"{expression.function.upper()}({', '.join(arguments) or '*'}){only}"


def _written_set(expression: SetOf) -> str:
    name, text = expression.name, expression.text
    of = [] if name is None else [_written_name(name.text)]
    if text is not None:
        of = [f'"{each}"' if each.lower() in ("location", "time") else each for each in of]
        of = [" = ".join([*of, _quoted(text)])]
    of += [*map(written, expression.keys), *map(written_condition, expression.scopes)]
    only = "" if expression.only is None else f" FILTER (WHERE {written_condition(expression.only)})"
    return f"{expression.function.upper()}({', '.join(of)}){only}"


def written_curve(curve: Curve) -> str:
    """A density or a forecast as SQL writes it, which names its column."""
    options = [] if curve.bandwidth is None else [str(plain_number(curve.bandwidth))]
    if curve.horizon is not None:
        options = [_quoted(curve.horizon), *([] if curve.step == "1d" else [_quoted(curve.step)])]
    return f"{curve.function.upper()}({', '.join([_written_name(curve.name.text), *options])})"


def written_condition(condition: Condition) -> str:
    """A condition as SQL.

    >>> written_condition(Or((Not(FeatureNull(Name("rh"))), InCells(("dj",)))))
    "NOT rh IS NULL OR location LIKE 'dj%'"
    """
    match condition:
        case And(conditions=()):
            return "location LIKE '%'"
        case And() | Or():
            word = " AND " if isinstance(condition, And) else " OR "
            return word.join(map(_nested, condition.conditions))
        case Not():
            return f"NOT {_nested(condition.condition)}"
        case GroupIs():
            return f"{written(condition.left)} {condition.comparison} {written(condition.right)}"
        case InCells(prefixes=(prefix,)):
            return f"location LIKE '{prefix}%'"
        case InCells():
            return f"location IN ({', '.join(map(_quoted, condition.prefixes))})"
        case TimeIs():
            return f"time {condition.comparison} {_quoted(plain_moment(condition.moment))}"
        case InBox():
            sides = (condition.south, condition.west, condition.north, condition.east)
            return f"BOX({', '.join(str(plain_number(side)) for side in sides)})"
        case Within():
            return f"WITHIN({_quoted(condition.text)})"
        case Near():
            circle = (condition.latitude, condition.longitude, condition.km)
            return f"NEAR({', '.join(str(plain_number(part)) for part in circle)})"
        case _:
            return _written_comparison(condition)


def _written_comparison(condition: FeatureIs | FeatureBetween | FeatureIn | FeatureNull) -> str:
    name = _written_name(condition.name.text)
    name = f'"{name}"' if name.lower() in ("location", "time") else name
    match condition:
        case FeatureIs():
            return f"{name} {condition.comparison} {_written_end(condition.number)}"
        case FeatureBetween():
            return f"{name} BETWEEN {_written_end(condition.low)} AND {_written_end(condition.high)}"
        case FeatureIn():
            return f"{name} IN ({', '.join(str(plain_number(number)) for number in condition.numbers)})"
        case FeatureNull():
            return f"{name} IS NULL"


def _written_end(end: float | Aggregate | Arithmetic) -> str:
    return str(plain_number(end)) if isinstance(end, float) else written(end)


def _nested(condition: Condition) -> str:
    text = written_condition(condition)
    return f"({text})" if isinstance(condition, And | Or) and condition.conditions else text


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def chain(arithmetic: Arithmetic) -> list[Operand]:
    """The operands of a - b - c."""
    right: list[Operand] = []
    left: Operand = arithmetic
    while isinstance(left, Arithmetic) and left.operator == arithmetic.operator:
        right.append(left.right)
        left = left.left
    return [left, *reversed(right)]


def plain_number(number: float) -> int | float:
    """A number without a point where it has no fraction."""
    return int(number) if number.is_integer() and abs(number) < WHOLE else number


def plain_moment(point: Moment) -> str:
    """A time as ISO 8601 has it, no longer than it must be."""
    offset_us = 0
    if point.zone == "UTC":  # written with an offset it may lie a day beyond the calendar of Python
        least_us, most_us = ((end - _EPOCH) // timedelta(microseconds=1) for end in (datetime.min, datetime.max))
        offset_us = (point.local_us < least_us) * (_DAY_US - 1) - (point.local_us > most_us) * (_DAY_US - 1)
    clock = _EPOCH + timedelta(microseconds=point.local_us + offset_us)
    if point.zone != "UTC" and (clock.hour, clock.minute, clock.second, clock.microsecond) == (0, 0, 0, 0):
        text = clock.date().isoformat()
    else:
        text = clock.isoformat(timespec="auto" if clock.second or clock.microsecond else "minutes")
    if point.zone == "UTC":
        return text + ("Z" if not offset_us else f"{'+' if offset_us > 0 else '-'}23:59:59.999999")
    return text if point.zone is None else f"{text} {point.zone}"


def _written_arithmetic(arithmetic: Arithmetic) -> str:
    """With parentheses where the order of operations needs them."""
    tight = arithmetic.operator in "*/"
    texts = []
    for at, part in enumerate(chain(arithmetic)):
        binds = not isinstance(part, Arithmetic) or part.operator in "*/"
        loose = isinstance(part, Arithmetic) and at > 0 and binds == tight
        texts.append(f"({written(part)})" if binds < tight or loose else written(part))
    return f" {arithmetic.operator} ".join(texts)


@lru_cache(maxsize=1024)
def _written_name(name: str) -> str:
    """A name, in quotes where SQL could not read it without them."""
    if _IDENTIFIER.fullmatch(name):
        try:
            found = read(f"SELECT MEAN({name})")
            read(f"SELECT COMMON({name}, {name} < 0, {name} < 0)")  # a list of conditions is where IF < 0 is none
            if isinstance(found, Question) and found.items[0].expression == Aggregate("mean", (Name(name),)):
                return name
        except BadQuery:
            pass
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
