"""Plain: a question written as plain values, ready to be JSON, and the words that both directions share.

Every part of the tree has one form, and every form says one tree; `spelling` reads it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from synopsis.core.errors import BadQuery
from synopsis.query.given import WHOLE
from synopsis.query.language import read
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    BucketKey,
    CellKey,
    Condition,
    Expression,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    GroupIs,
    InBox,
    InCells,
    Item,
    Key,
    Moment,
    Name,
    Near,
    Not,
    Number,
    Operand,
    Or,
    Order,
    Question,
    TimeIs,
    Within,
)

CLAUSES: Final = ("select", "where", "group_by", "having", "order_by", "limit")
KEYS: Final = ("cell", "bucket")
OPERATORS: Final = ("+", "-", "*", "/")
JOINED: Final = ("and", "or", "not")
SIDES: Final = ("south", "west", "north", "east")
CIRCLE: Final = ("lat", "lon", "km")
COMPARISONS: Final = ("<", "<=", "=", "<>", ">=", ">")
#: Words for comparisons with a time.
TIMES: Final = {"from": ">=", "after": ">", "until": "<", "through": "<=", "at": "="}
LOWER: Final = (">=", ">")
UPPER: Final = ("<", "<=")
#: Words that a condition may begin with; every other one is the name of a feature.
WORDS: Final = (*JOINED, "location", "time", "box", "within", "near", "feature")


_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1)
_DAY_US: Final = 86_400_000_000


def to_json(question: Question) -> dict[str, Any]:
    """A question as plain values, which `from_json` reads into the same tree. Cost: in proportion to its parts.

    >>> to_json(read("SELECT AVG(rh) WHERE rh > 80 AND time < '2025-01-01' LIMIT 3"))["where"]
    {'and': [{'rh': {'>': 80}}, {'time': {'until': '2025-01-01'}}]}
    """
    plain: dict[str, Any] = {"select": [_plain_item(item) for item in _selected(question)]}
    if question.scope != And():
        plain["where"] = _plain_condition(question.scope)
    if question.groups:
        plain["group_by"] = [_plain_expression(key) for key in question.groups]
    if question.having is not None:
        plain["having"] = _plain_condition(question.having)
    if question.order:
        plain["order_by"] = [_plain_order(order) for order in question.order]
    if question.limit is not None:
        plain["limit"] = question.limit
    return plain


def written(expression: Expression | Number) -> str:
    """An expression as SQL writes it, which names its column.

    >>> written(Aggregate("quantile", (Name("PM2.5"),), 0.9))
    'QUANTILE("PM2.5", 0.9)'
    """
    match expression:
        case CellKey():
            return f"CELL({expression.length})"
        case BucketKey():
            return f"BUCKET('{expression.span}')"
        case Number():
            return str(_plain_number(expression.value))
        case Arithmetic():
            return _written_arithmetic(expression)
        case Aggregate():
            arguments = [_written_name(name.text) for name in expression.arguments]
            if expression.share is not None:
                arguments.append(str(_plain_number(expression.share)))
            return f"{expression.function.upper()}({', '.join(arguments) or '*'})"


def with_keys(chosen: Iterable[Item], groups: tuple[Key, ...]) -> tuple[Item, ...]:
    """The columns of the answer: keys that are not chosen stand in front."""
    chosen = tuple(chosen)
    selected = {item.expression for item in chosen}
    return (*(Item(written(key), key) for key in groups if key not in selected), *chosen)


def is_range(first: Condition, second: Condition) -> bool:
    """Whether these are a lower and an upper bound of the same."""
    if isinstance(first, FeatureIs) and isinstance(second, FeatureIs):
        return first.name == second.name and first.comparison in LOWER and second.comparison in UPPER
    if isinstance(first, TimeIs) and isinstance(second, TimeIs):
        return first.comparison in LOWER and second.comparison in UPPER
    return False


def _selected(question: Question) -> tuple[Item, ...]:
    """The columns without the keys that would stand in front of them anyway."""
    for keys in range(min(len(question.groups), len(question.items) - 1), 0, -1):
        if with_keys(question.items[keys:], question.groups) == question.items:
            return question.items[keys:]
    return question.items


def _plain_item(item: Item) -> dict[str, Any]:
    plain = _plain_expression(item.expression)
    return plain if item.name == written(item.expression) else {**plain, "as": item.name}


def _plain_order(order: Order) -> Any:
    plain = order.by.text if isinstance(order.by, Name) else _plain_expression(order.by)
    return {"descending": plain} if order.descending else plain


def _plain_expression(expression: Expression) -> dict[str, Any]:
    match expression:
        case CellKey():
            return {"cell": expression.length}
        case BucketKey():
            return {"bucket": expression.span}
        case Arithmetic():
            return {expression.operator: [_plain_operand(part) for part in _chain(expression)]}
        case Aggregate():
            names: list[Any] = [name.text for name in expression.arguments]
            if expression.share is not None:
                names.append(_plain_number(expression.share))
            if len(names) == 1 and (expression.function, *names) != ("count", "*"):
                return {expression.function: names[0]}
            return {expression.function: names or "*"}


def _plain_operand(operand: Operand) -> Any:
    return _plain_number(operand.value) if isinstance(operand, Number) else _plain_expression(operand)


def _chain(arithmetic: Arithmetic) -> list[Operand]:
    """The operands of a - b - c."""
    right: list[Operand] = []
    left: Operand = arithmetic
    while isinstance(left, Arithmetic) and left.operator == arithmetic.operator:
        right.append(left.right)
        left = left.left
    return [left, *reversed(right)]


def _plain_condition(condition: Condition) -> dict[str, Any]:
    match condition:
        case And(conditions=(first, second)) if is_range(first, second):
            (subject, low), (_, high) = (next(iter(_plain_condition(part).items())) for part in (first, second))
            if subject == "feature":
                return {subject: {name: {**low[name], **high[name]} for name in low}}
            return {subject: {**low, **high}}
        case And():
            return {"and": [_plain_condition(part) for part in condition.conditions]}
        case Or():
            return {"or": [_plain_condition(part) for part in condition.conditions]}
        case Not():
            return {"not": _plain_condition(condition.condition)}
        case GroupIs():
            return {condition.comparison: [_plain_operand(condition.left), _plain_operand(condition.right)]}
        case InCells(prefixes=(prefix,)):
            return {"location": prefix}
        case InCells():
            return {"location": list(condition.prefixes)}
        case TimeIs():
            word = next(word for word, comparison in TIMES.items() if comparison == condition.comparison)
            return {"time": {word: _plain_moment(condition.moment)}}
        case InBox():
            return {"box": {side: _plain_number(getattr(condition, side)) for side in SIDES}}
        case Within():
            return {"within": condition.text}
        case Near():
            circle = (condition.latitude, condition.longitude, condition.km)
            return {"near": dict(zip(CIRCLE, map(_plain_number, circle), strict=True))}
        case _:
            plain = {condition.name.text: _plain_comparison(condition)}
            return {"feature": plain} if condition.name.text in WORDS else plain


def _plain_comparison(condition: FeatureIs | FeatureBetween | FeatureIn | FeatureNull) -> dict[str, Any]:
    match condition:
        case FeatureIs():
            return {condition.comparison: _plain_threshold(condition.number)}
        case FeatureBetween():
            return {"between": [_plain_threshold(condition.low), _plain_threshold(condition.high)]}
        case FeatureIn():
            return {"in": [_plain_number(number) for number in condition.numbers]}
        case FeatureNull():
            return {"is": None}


def _plain_threshold(threshold: float | Aggregate | Arithmetic) -> Any:
    return _plain_number(threshold) if isinstance(threshold, float) else _plain_expression(threshold)


def _plain_number(number: float) -> int | float:
    """A number without a point where it has no fraction."""
    return int(number) if number.is_integer() and abs(number) < WHOLE else number


def _plain_moment(point: Moment) -> str:
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
    for at, part in enumerate(_chain(arithmetic)):
        binds = not isinstance(part, Arithmetic) or part.operator in "*/"
        loose = isinstance(part, Arithmetic) and at > 0 and binds == tight
        texts.append(f"({written(part)})" if binds < tight or loose else written(part))
    return f" {arithmetic.operator} ".join(texts)


@lru_cache(maxsize=1024)
def _written_name(name: str) -> str:
    """A name, in quotes where SQL could not read it without them."""
    if _IDENTIFIER.fullmatch(name):
        try:
            if read(f"SELECT MEAN({name})").items[0].expression == Aggregate("mean", (Name(name),)):
                return name
        except BadQuery:
            pass
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
