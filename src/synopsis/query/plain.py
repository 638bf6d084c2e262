"""Plain: a question written as plain values, ready to be JSON, and the words that both directions share.

Every part of the tree has one form, and every form says one tree; `spelling` reads it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from synopsis.query.sql import chain, plain_moment, plain_number, written, written_curve
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    Asked,
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
    Item,
    Join,
    Key,
    Name,
    Near,
    Not,
    Number,
    Operand,
    Or,
    Order,
    Question,
    Selection,
    SetOf,
    TimeIs,
    Within,
)

CLAUSES: Final = ("select", "where", "group_by", "having", "order_by", "limit", "sketch")
OF_JOINS: Final = ("select", "from", "on", "having", "order_by", "limit")
CURVES: Final = ("density", "forecast")
OF_CURVES: Final = ("where", "group_by", "as", "sketch")
OF_SELECTIONS: Final = ("features", "where", "sketch")
KEYS: Final = ("cell", "bucket", "bin")
OPERATORS: Final = ("+", "-", "*", "/")
JOINED: Final = ("and", "or", "not")
SIDES: Final = ("south", "west", "north", "east")
CIRCLE: Final = ("lat", "lon", "km")
COMPARISONS: Final = ("<", "<=", "=", "<>", ">=", ">")
#: Words for comparisons with a time.
TIMES: Final = {"from": ">=", "after": ">", "until": "<", "through": "<=", "at": "=", "not_at": "<>"}
LOWER: Final = (">=", ">")
UPPER: Final = ("<", "<=")
#: Words that a condition may begin with; every other one is the name of a feature.
WORDS: Final = (*JOINED, "location", "time", "box", "within", "near", "feature")


def to_json(asked: Asked) -> dict[str, Any]:
    """A question as plain values, which `from_json` reads into the same tree. Cost: in proportion to its parts.

    >>> from synopsis.query.language import read
    >>> to_json(read("SELECT AVG(rh) WHERE rh > 80 AND time < '2025-01-01' LIMIT 3"))["where"]
    {'and': [{'rh': {'>': 80}}, {'time': {'until': '2025-01-01'}}]}
    """
    plain: dict[str, Any]
    match asked:
        case Join():
            return _plain_join(asked)
        case Curve():
            plain = _plain_curve(asked)
        case Selection():
            plain = {"features": [name.text for name in asked.features] or "*"}
            if asked.scope != And():
                plain["where"] = plain_condition(asked.scope)
        case Question():
            plain = {"select": [_plain_item(item) for item in _selected(asked)]}
            if asked.scope != And():
                plain["where"] = plain_condition(asked.scope)
            if asked.groups:
                plain["group_by"] = [_plain_expression(key) for key in asked.groups]
            plain |= _plain_rest(asked)
    return plain if asked.sketch is None else {**plain, "sketch": asked.sketch}


def _plain_curve(asked: Curve) -> dict[str, Any]:
    name: Any = asked.name.text
    if asked.function == "density":
        options: Any = name if asked.bandwidth is None else [name, plain_number(asked.bandwidth)]
    else:
        options = [name, asked.horizon, *([] if asked.step == "1d" else [asked.step])]
    plain: dict[str, Any] = {asked.function: options}
    if asked.column != written_curve(asked):
        plain["as"] = asked.column
    if asked.scope != And():
        plain["where"] = plain_condition(asked.scope)
    return plain if asked.cell is None else {**plain, "group_by": [_plain_expression(asked.cell)]}


def _plain_join(asked: Join) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "select": [
            {**_plain_expression(item.expression), **({} if item.name == _own_name(item) else {"as": item.name})}
            for item in asked.items
        ],
        "from": [{"as": source.alias, **to_json(source.question)} for source in asked.sources],
    }
    if asked.on:
        plain["on"] = [names[0] if len(set(names)) == 1 else list(names) for names in asked.on]
    return plain | _plain_rest(asked)


def _own_name(item: Item) -> str:
    return item.expression.name if isinstance(item.expression, ColumnOf) else written(item.expression)


def _plain_rest(asked: Question | Join) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    if asked.having is not None:
        plain["having"] = plain_condition(asked.having)
    if asked.order:
        plain["order_by"] = [_plain_order(order) for order in asked.order]
    if asked.limit is not None:
        plain["limit"] = asked.limit
    return plain


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
        case ColumnOf():
            source = expression.source
            return {"column": expression.name if source is None else [source, expression.name]}
        case CellKey():
            return {"cell": expression.length}
        case BucketKey():
            return {"bucket": expression.span if expression.zone is None else [expression.span, expression.zone]}
        case BinKey():
            name = expression.name.text
            return {"bin": name if expression.width is None else [name, plain_number(expression.width)]}
        case Arithmetic():
            return {expression.operator: [_plain_operand(part) for part in chain(expression)]}
        case SetOf():
            plain = {expression.function: _plain_set(expression)}
            return plain if expression.only is None else {**plain, "where": plain_condition(expression.only)}
        case Aggregate():
            names: list[Any] = [name.text for name in expression.arguments]
            if expression.share is not None:
                names.append(plain_number(expression.share))
            plain = {expression.function: _plain_arguments(expression, names)}
            return plain if expression.only is None else {**plain, "where": plain_condition(expression.only)}


def _plain_arguments(aggregate: Aggregate, names: list[Any]) -> Any:
    """What a statistic is of: a feature, several, * for rows; for some functions a condition or numbers."""
    if aggregate.condition is not None:
        return plain_condition(aggregate.condition)
    numbers = [plain_number(number) for number in aggregate.numbers]
    if aggregate.function == "predict":
        return [names[0], dict(zip(names[1:], numbers, strict=True))]
    alone = len(names) + len(numbers) == 1 and (aggregate.function, *names) != ("count", "*")
    return names[0] if alone else [*names, *numbers] or "*"


def _plain_set(expression: SetOf) -> Any:
    """An entity's name, keys, an entity in a list of its own, or a name and scopes."""
    name = [] if expression.name is None else [expression.name.text]
    if expression.text is not None:
        return [*name, expression.text]
    if expression.scopes:
        return [*name, *map(plain_condition, expression.scopes)]
    keys = [_plain_expression(key) for key in expression.keys]
    return name[0] if name else keys[0] if len(keys) == 1 else keys


def _plain_operand(operand: Operand) -> Any:
    return plain_number(operand.value) if isinstance(operand, Number) else _plain_expression(operand)


def plain_condition(condition: Condition) -> dict[str, Any]:
    """A condition as plain values."""
    match condition:
        case And(conditions=(first, second)) if is_range(first, second):
            (subject, low), (_, high) = (next(iter(plain_condition(part).items())) for part in (first, second))
            if subject == "feature":
                return {subject: {name: {**low[name], **high[name]} for name in low}}
            return {subject: {**low, **high}}
        case And():
            return {"and": [plain_condition(part) for part in condition.conditions]}
        case Or():
            return {"or": [plain_condition(part) for part in condition.conditions]}
        case Not():
            return {"not": plain_condition(condition.condition)}
        case GroupIs():
            return {condition.comparison: [_plain_operand(condition.left), _plain_operand(condition.right)]}
        case InCells(prefixes=(prefix,)):
            return {"location": prefix}
        case InCells():
            return {"location": list(condition.prefixes)}
        case TimeIs():
            word = next(word for word, comparison in TIMES.items() if comparison == condition.comparison)
            return {"time": {word: plain_moment(condition.moment)}}
        case InBox():
            return {"box": {side: plain_number(getattr(condition, side)) for side in SIDES}}
        case Within():
            return {"within": condition.text}
        case Near():
            circle = (condition.latitude, condition.longitude, condition.km)
            return {"near": dict(zip(CIRCLE, map(plain_number, circle), strict=True))}
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
            return {"in": [plain_number(number) for number in condition.numbers]}
        case FeatureNull():
            return {"is": None}


def _plain_threshold(threshold: float | Aggregate | Arithmetic) -> Any:
    return plain_number(threshold) if isinstance(threshold, float) else _plain_expression(threshold)
