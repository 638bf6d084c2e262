"""Spelling: the same question as JSON, read into the tree; `plain` writes it.

An object has one key for each clause of SQL, and every part of the tree has one form: {"mean": "rh"} is MEAN(rh), and
{"rh": {">": 80}} is rh > 80. What is wrong is refused with its path, as in where.and[1].time.from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from synopsis.core.errors import BadQuery
from synopsis.grid.buckets import Bucket
from synopsis.query.given import (
    TOO_DEEP,
    Path,
    meaning_of,
    members_of,
    number_of,
    only_member,
    parts_of,
    refused,
    shown,
    text_of,
    unknown,
    whole_of,
)
from synopsis.query.language import read
from synopsis.query.phrases import ONE, condition_of, expression_of, feature_name, having_of
from synopsis.query.plain import (
    CLAUSES,
    CURVES,
    OF_CURVES,
    OF_JOINS,
    OF_SELECTIONS,
    to_json,
    with_keys,
)
from synopsis.query.sql import written, written_curve
from synopsis.query.tree import (
    And,
    Asked,
    CellKey,
    ColumnOf,
    Curve,
    Item,
    Join,
    Key,
    Name,
    Order,
    Question,
    Selection,
    Source,
    is_alike,
)

__all__ = ["canonical", "from_json", "question_of", "to_json"]

_COLUMN: Final = 'a column such as {"column": ["here", "MEAN(rh)"]}'


def from_json(plain: Mapping[str, Any] | str) -> Asked:
    """The tree of a question as JSON, text or already parsed. Cost: about 100 us, in proportion to its parts.

    >>> print(from_json({"select": [{"mean": "temp_c"}], "where": {"location": "6g"}, "group_by": [{"bucket": "1mo"}]}))
    select bucket(1mo) as "BUCKET('1mo')"
    select mean(temp_c) as 'MEAN(temp_c)'
    scope location in 6g
    group bucket(1mo)
    """
    try:
        return _asked(_parsed(plain) if isinstance(plain, str) else plain)
    except RecursionError:
        raise BadQuery(TOO_DEEP) from None


@lru_cache(maxsize=1024)
def question_of(text: str) -> Asked:
    """The tree of a question in either spelling; JSON begins with a brace. One seen before costs a microsecond."""
    return from_json(text) if text.lstrip().startswith("{") else read.__wrapped__(text)


def canonical(question: Mapping[str, Any] | str) -> str:
    """A question as text: a text as it is, plain values as JSON. Cost: microseconds, so that plans are found by it."""
    if isinstance(question, str):
        return question
    if not isinstance(question, Mapping):
        raise BadQuery(f"a question is a text in SQL, or an object as JSON, not {shown(question)}")
    try:
        return json.dumps(question, sort_keys=True)
    except (TypeError, ValueError, RecursionError):  # numbers of NumPy, other mappings, or nothing that can be read
        return json.dumps(to_json(from_json(question)), sort_keys=True)


# --- the whole --------------------------------------------------------------------------------------------------------


def _parsed(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        why = f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise BadQuery(why, error.lineno, error.colno) from None
    except BadQuery:
        raise
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        raise BadQuery("a number is beyond the largest number, about 1.8e308") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object, each key of which is there once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadQuery(f"{shown(twice)} stands twice in one object; join conditions by and, in a list")
    return found


def _asked(plain: object) -> Asked:
    parts = members_of(plain, (), 'an object such as {"select": [{"count": "*"}]}')
    if "from" in parts:
        return _join(parts)
    for word in CURVES:
        if word in parts:
            return _curve(word, parts)
    return _selection(parts) if "features" in parts else _question(parts, ())


def _check_clauses(parts: Mapping[str, object], known: tuple[str, ...], path: Path) -> None:
    for clause in parts:
        if clause not in known:
            raise unknown(path, "clause", clause, known)


def _question(parts: Mapping[str, object], path: Path) -> Question:
    _check_clauses(parts, CLAUSES, path)
    if "select" not in parts:
        why = 'nothing is selected; ask for example {"select": [{"count": "*"}]}'
        raise refused(path, why) if path else BadQuery(why)
    at = (*path, "select")
    chosen = [_item(*each) for each in parts_of(parts["select"], at, f"a list of {ONE}")]
    groups = _groups(parts["group_by"], (*path, "group_by")) if "group_by" in parts else ()
    for number, item in enumerate(chosen):
        if isinstance(item.expression, Key) and item.expression not in groups:
            raise refused((*at, number), f"{written(item.expression)} is not grouped by; add it to group_by")
    items = with_keys(chosen, groups)
    _check_names(items, at, len(chosen) - len(items))
    return Question(
        items,
        condition_of(parts["where"], (*path, "where")) if "where" in parts else And(),
        groups,
        _orders(parts, path),
        _limit(parts["limit"], path) if "limit" in parts else None,
        having_of(parts["having"], (*path, "having")) if "having" in parts else None,
        text_of(parts["sketch"], (*path, "sketch"), "the name of a sketch") if "sketch" in parts else None,
    )


def _check_names(items: Iterable[Item], path: Path, first: int = 0) -> None:
    seen: set[str] = set()
    for at, item in enumerate(items, first):
        if item.name in seen:
            raise refused((*path, at), f"two columns are named {shown(item.name)}; name one by as")
        seen.add(item.name)


def _orders(parts: Mapping[str, object], path: Path) -> tuple[Order, ...]:
    given = parts_of(parts.get("order_by", ()), (*path, "order_by"), _ORDER, least=0)
    return tuple(_order(*each) for each in given)


def _join(parts: Mapping[str, object]) -> Join:
    """Questions with names, joined by keys."""
    _check_clauses(parts, OF_JOINS, ())
    takes = 'a list of questions with names, as in {"as": "here", "select": [{"mean": "rh"}]}'
    sources: list[Source] = []
    for given, path in parts_of(parts["from"], ("from",), takes, least=2):
        inner = dict(members_of(given, path, takes))
        if "as" not in inner:
            raise refused(path, f"takes {takes}; as is missing")
        alias = text_of(inner.pop("as"), (*path, "as"), "the name of a question")
        if any(alias == known.alias for known in sources):
            raise refused(path, f"two questions are named {shown(alias)}")
        sources.append(Source(alias, _question(inner, path)))
    if "select" not in parts:
        raise BadQuery('nothing is selected; ask for example {"select": [{"column": ["here", "MEAN(rh)"]}]}')
    items = tuple(_joined_item(*each) for each in parts_of(parts["select"], ("select",), f"a list of {_COLUMN}"))
    _check_names(items, ("select",))
    on = []
    for given, path in parts_of(parts.get("on", ()), ("on",), "a list of keys such as ['cell']", least=0):
        one = isinstance(given, str)
        names = (
            [(given, path)] * len(sources) if one else parts_of(given, path, "a key or a list of names, one of each")
        )
        if len(names) != len(sources):
            raise refused(path, f"takes a name for each of {len(sources)} questions, found {len(names)}")
        on.append(tuple(text_of(*name, "the name of a column") for name in names))
    return Join(
        items,
        tuple(sources),
        tuple(on),
        having_of(parts["having"], ("having",)) if "having" in parts else None,
        _orders(parts, ()),
        _limit(parts["limit"], ()) if "limit" in parts else None,
    )


def _joined_item(plain: object, path: Path) -> Item:
    item = _item(plain, path)
    if isinstance(item.expression, ColumnOf) and not (isinstance(plain, Mapping) and "as" in plain):
        return Item(item.expression.name, item.expression)
    return item


def _curve(word: str, parts: Mapping[str, object]) -> Curve:
    """{"density": "temp_c"}, {"density": ["temp_c", 0.5]}, {"forecast": ["temp_c", "7d", "1h"]}."""
    _check_clauses(parts, (word, *OF_CURVES), ())
    takes = 'a feature and how far ahead, as in ["temp_c", "7d"]'
    if word == "density":
        takes = 'a feature, or that and a bandwidth, as in ["temp_c", 0.5]'
    given = parts[word]
    one = isinstance(given, str) and word == "density"
    feature, *rest = [(given, (word,))] if one else parts_of(given, (word,), takes, least=2, most=3)
    keys = _groups(parts["group_by"], ("group_by",)) if "group_by" in parts else ()
    if len(keys) > 1 or any(not isinstance(key, CellKey) for key in keys):
        raise refused(("group_by",), 'takes one {"cell": 3} here')
    cell = keys[0] if keys and isinstance(keys[0], CellKey) else None
    found = Curve(
        word,
        feature_name(*feature),
        "",
        condition_of(parts["where"], ("where",)) if "where" in parts else And(),
        cell=cell,
        sketch=text_of(parts["sketch"], ("sketch",), "the name of a sketch") if "sketch" in parts else None,
    )
    if word == "density":
        if len(rest) > 1:
            raise refused((word,), f"takes {takes}")
        width = number_of(*rest[0], "a bandwidth") if rest else None
        if width is not None and not width > 0.0:
            raise refused((word, 1), f"takes a bandwidth above 0, found {shown(width)}")
        found = replace(found, bandwidth=width)
    else:
        spans = [str(meaning_of(Bucket.parse, *each, "a span of time such as '7d'")) for each in rest]
        found = replace(found, horizon=spans[0], step=spans[1] if len(spans) > 1 else "1d")
    column = text_of(parts["as"], ("as",), "the name of a column") if "as" in parts else written_curve(found)
    return replace(found, column=column)


def _selection(parts: Mapping[str, object]) -> Selection:
    """A part of the sketch itself."""
    _check_clauses(parts, OF_SELECTIONS, ())
    given = parts["features"]
    names = () if given == "*" else parts_of(given, ("features",), 'a list of features, or "*"')
    return Selection(
        tuple(feature_name(*name) for name in names),
        condition_of(parts["where"], ("where",)) if "where" in parts else And(),
        text_of(parts["sketch"], ("sketch",), "the name of a sketch") if "sketch" in parts else None,
    )


def _item(plain: object, path: Path) -> Item:
    parts = dict(members_of(plain, path, ONE))
    named = "as" in parts
    name = text_of(parts.pop("as"), (*path, "as"), "the name of a column") if named else ""
    expression = expression_of(parts, path)
    return Item(name if named else written(expression), expression)


def _groups(plain: object, path: Path) -> tuple[Key, ...]:
    keys: list[Key] = []
    for part, at in parts_of(plain, path, 'a list such as [{"cell": 4}, {"bucket": "1mo"}]'):
        key = expression_of(part, at)
        if not isinstance(key, Key):
            raise refused(at, 'takes {"cell": 4}, {"bucket": "1mo"} and {"bin": "temp_c"}, not a statistic')
        if key in keys or any(is_alike(known, key) for known in keys):
            raise refused(at, f"there is a {only_member(part, at, ONE)[0]} already, and only one")
        keys.append(key)
    return tuple(keys)


_ORDER: Final = 'a list such as ["name of a column", {"descending": {"mean": "temp_c"}}]'


def _order(plain: object, path: Path) -> Order:
    descending = isinstance(plain, Mapping) and "descending" in plain
    if descending:
        plain, path = only_member(plain, path, _ORDER)[1], (*path, "descending")
    if isinstance(plain, str):
        return Order(Name(text_of(plain, path, "the name of a column")), descending)
    return Order(expression_of(plain, path), descending)


def _limit(plain: object, path: Path) -> int:
    limit = whole_of(plain)
    if limit is None or limit < 0:
        raise refused((*path, "limit"), f"takes a whole number of rows, found {shown(plain)}")
    return limit
