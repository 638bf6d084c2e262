"""Spelling: the same question as JSON, read into the tree; `plain` writes it.

An object has one key for each clause of SQL, and every part of the tree has one form: {"mean": "rh"} is MEAN(rh), and
{"rh": {">": 80}} is rh > 80. What is wrong is refused with its path, as in where.and[1].time.from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any, Final

from synopsis.core.errors import BadQuery, nearest
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.cover import Box
from synopsis.grid.zones import Zone
from synopsis.query.dates import moment
from synopsis.query.given import (
    TOO_DEEP,
    Path,
    meaning_of,
    members_of,
    number_of,
    numbers_of,
    only_member,
    parts_of,
    refused,
    shown,
    text_of,
    unknown,
    whole_of,
)
from synopsis.query.language import read
from synopsis.query.plain import (
    CIRCLE,
    CLAUSES,
    COMPARISONS,
    CURVES,
    JOINED,
    KEYS,
    LOWER,
    OF_CURVES,
    OF_JOINS,
    OF_SELECTIONS,
    OPERATORS,
    SIDES,
    TIMES,
    WORDS,
    is_range,
    to_json,
    with_keys,
)
from synopsis.query.shapes import checked
from synopsis.query.sql import written, written_curve
from synopsis.query.tree import (
    FUNCTIONS,
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
    Source,
    TimeIs,
    Within,
    is_alike,
)

__all__ = ["canonical", "from_json", "question_of", "to_json"]

_OF_FEATURES: Final = (*COMPARISONS, "between", "in", "is")
_EXPRESSIONS: Final = (*FUNCTIONS, *KEYS, *OPERATORS)
_ONE: Final = 'a statistic such as {"mean": "temp_c"}, {"cell": 4} or {"bucket": "1mo"}'
_OPERAND: Final = 'a number or a statistic such as {"mean": "temp_c"}'
_CONDITION: Final = 'a condition such as {"location": "dj"} or {"rh": {">": 80}}'
_COMPARED: Final = 'a comparison such as {">": 80}, {"between": [80, 90]}, {"in": [1, 2]} or {"is": null}'
_GROUP: Final = 'a condition on groups such as {">": [{"count": "*"}, 100]}'
_COLUMN: Final = 'a column such as {"column": ["here", "MEAN(rh)"]}'
_SEVERAL: Final = "; join them by and, in a list"
_TIME: Final = 'a range such as {"from": "2025-01-01", "until": "2025-02-01"}'


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


def condition_of(plain: Mapping[str, Any]) -> Condition:
    """The tree of a condition that `plain_condition` wrote."""
    return _condition(plain, ())


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
    chosen = [_item(*each) for each in parts_of(parts["select"], at, f"a list of {_ONE}")]
    groups = _groups(parts["group_by"], (*path, "group_by")) if "group_by" in parts else ()
    for number, item in enumerate(chosen):
        if isinstance(item.expression, Key) and item.expression not in groups:
            raise refused((*at, number), f"{written(item.expression)} is not grouped by; add it to group_by")
    items = with_keys(chosen, groups)
    _check_names(items, at, len(chosen) - len(items))
    return Question(
        items,
        _condition(parts["where"], (*path, "where")) if "where" in parts else And(),
        groups,
        _orders(parts, path),
        _limit(parts["limit"], path) if "limit" in parts else None,
        _having(parts["having"], (*path, "having")) if "having" in parts else None,
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
        _having(parts["having"], ("having",)) if "having" in parts else None,
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
        _feature_name(*feature),
        "",
        _condition(parts["where"], ("where",)) if "where" in parts else And(),
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
        tuple(_feature_name(*name) for name in names),
        _condition(parts["where"], ("where",)) if "where" in parts else And(),
        text_of(parts["sketch"], ("sketch",), "the name of a sketch") if "sketch" in parts else None,
    )


def _item(plain: object, path: Path) -> Item:
    parts = dict(members_of(plain, path, _ONE))
    named = "as" in parts
    name = text_of(parts.pop("as"), (*path, "as"), "the name of a column") if named else ""
    expression = _expression(parts, path)
    return Item(name if named else written(expression), expression)


def _groups(plain: object, path: Path) -> tuple[Key, ...]:
    keys: list[Key] = []
    for part, at in parts_of(plain, path, 'a list such as [{"cell": 4}, {"bucket": "1mo"}]'):
        key = _expression(part, at)
        if not isinstance(key, Key):
            raise refused(at, 'takes {"cell": 4}, {"bucket": "1mo"} and {"bin": "temp_c"}, not a statistic')
        if key in keys or any(is_alike(known, key) for known in keys):
            raise refused(at, f"there is a {only_member(part, at, _ONE)[0]} already, and only one")
        keys.append(key)
    return tuple(keys)


_ORDER: Final = 'a list such as ["name of a column", {"descending": {"mean": "temp_c"}}]'


def _order(plain: object, path: Path) -> Order:
    descending = isinstance(plain, Mapping) and "descending" in plain
    if descending:
        plain, path = only_member(plain, path, _ORDER)[1], (*path, "descending")
    if isinstance(plain, str):
        return Order(Name(text_of(plain, path, "the name of a column")), descending)
    return Order(_expression(plain, path), descending)


def _limit(plain: object, path: Path) -> int:
    limit = whole_of(plain)
    if limit is None or limit < 0:
        raise refused((*path, "limit"), f"takes a whole number of rows, found {shown(plain)}")
    return limit


# --- expressions ------------------------------------------------------------------------------------------------------


def _expression(plain: object, path: Path) -> Expression:
    only = None
    if isinstance(plain, Mapping) and "where" in plain:
        only = _condition(plain["where"], (*path, "where"))
        plain = {word: inner for word, inner in plain.items() if word != "where"}
    word, inner = only_member(plain, path, _ONE)
    found = _one(word, inner, path)
    if only is None:
        return found
    if not isinstance(found, Aggregate):
        raise refused((*path, "where"), 'goes with one statistic, as in {"mean": "rh", "where": {"rh": {">": 80}}}')
    return replace(found, only=only)


def _one(word: str, inner: object, path: Path) -> Expression:
    at = (*path, word)
    if word in OPERATORS:
        return _arithmetic(word, inner, at)
    if word == "column":
        return _column(inner, at)
    if word == "cell":
        length = whole_of(inner)
        if length is None or not 1 <= length <= 12:
            raise refused(at, f"takes a geohash length from 1 to 12, found {shown(inner)}")
        return CellKey(length)
    if word == "bucket":
        return _bucket(inner, at)
    if word == "bin":
        return _bin(inner, at)
    if word not in FUNCTIONS:
        raise unknown(path, "function", word, _EXPRESSIONS)
    if word == "count" and isinstance(inner, str) and inner == "*":
        return Aggregate(word)
    if word == "count" and isinstance(inner, list | tuple) and tuple(inner) == ("*",):  # the feature of that name
        return Aggregate(word, (Name("*"),))
    if word in _OWN:
        return _OWN[word](inner, at)
    if 2 not in FUNCTIONS[word]:
        return Aggregate(word, (_feature_name(inner, at),))
    takes = 'two features, as in ["temp_c", "rh"]'
    first, second = parts_of(inner, at, takes, least=2, most=2)
    return Aggregate(word, (_feature_name(*first), _feature_name(*second)))


def _bucket(plain: object, path: Path) -> BucketKey:
    takes = "a span of time such as '1mo'"
    if not isinstance(plain, list | tuple):
        return BucketKey(str(meaning_of(Bucket.parse, plain, path, takes)))
    span, zone = parts_of(plain, path, f"{takes}, or that and a zone such as 'Europe/Paris'", least=2, most=2)
    return BucketKey(str(meaning_of(Bucket.parse, *span, takes)), meaning_of(Zone.named, *zone, "a time zone").name)


def _bin(plain: object, path: Path) -> BinKey:
    takes = 'a feature such as "temp_c", or that and a width, as in ["temp_c", 5]'
    if not isinstance(plain, list | tuple):
        return BinKey(_feature_name(plain, path))
    feature, (width, at) = parts_of(plain, path, takes, least=2, most=2)
    number = number_of(width, at, "a width")
    if not number > 0.0:
        raise refused(at, f"takes a width above 0, found {shown(width)}")
    return BinKey(_feature_name(*feature), number)


def _column(plain: object, path: Path) -> ColumnOf:
    takes = 'the name of a column, or of a question and a column, as in ["here", "MEAN(rh)"]'
    if isinstance(plain, str):
        return ColumnOf(None, text_of(plain, path, takes))
    source, name = (text_of(*part, takes) for part in parts_of(plain, path, takes, least=2, most=2))
    return ColumnOf(source, name)


def _quantile(plain: object, path: Path) -> Aggregate:
    takes = 'a feature and a share from 0 to 1, as in ["rh", 0.9]'
    feature, (share, at) = parts_of(plain, path, takes, least=2, most=2)
    number = number_of(share, at, "a share from 0 to 1")
    if not 0.0 <= number <= 1.0:
        raise refused(at, f"takes a share from 0 to 1, found {shown(share)}")
    return Aggregate("quantile", (_feature_name(*feature),), number)


def _probability(plain: object, path: Path) -> Aggregate:
    return Aggregate("probability", condition=_condition(plain, path))


def _outliers(plain: object, path: Path) -> Aggregate:
    takes = 'a feature and how many standard deviations away, as in ["rh", 3]'
    feature, (away, at) = parts_of(plain, path, takes, least=2, most=2)
    number = number_of(away, at, "a number of standard deviations")
    if not number > 0.0:
        raise refused(at, f"takes a number above 0, found {shown(away)}")
    return Aggregate("outliers", (_feature_name(*feature),), numbers=(number,))


def _predict(plain: object, path: Path) -> Aggregate:
    takes = 'a feature and the values of others, as in ["rh", {"temp_c": 20}]'
    feature, (given, at) = parts_of(plain, path, takes, least=2, most=2)
    others = members_of(given, at, 'values of features, as in {"temp_c": 20}')
    names = (_feature_name(*feature), *(_feature_name(name, (*at, name)) for name in others))
    if len({name.text.lower() for name in names}) < len(names):
        raise refused(path, "takes every feature once")
    numbers = tuple(number_of(number, (*at, name), "a number") for name, number in others.items())
    return Aggregate("predict", names, numbers=numbers)


def _arithmetic(operator: str, plain: object, path: Path) -> Arithmetic:
    """Two operands or more, from left to right."""
    takes = 'a list of numbers and statistics such as [{"max": "temp_c"}, {"min": "temp_c"}]'
    first, second, *rest = (_operand(*each) for each in parts_of(plain, path, takes, least=2))
    return reduce(lambda left, right: Arithmetic(operator, left, right), rest, Arithmetic(operator, first, second))


def _operand(plain: object, path: Path) -> Operand:
    if not isinstance(plain, Mapping):
        return Number(number_of(plain, path, _OPERAND))
    found = _expression(plain, path)
    if isinstance(found, Key):
        raise refused(path, f"takes {_OPERAND}, not a key")
    return found


def _feature_name(plain: object, path: Path) -> Name:
    return Name(text_of(plain, path, "the name of a feature"))


# --- conditions -------------------------------------------------------------------------------------------------------


def _condition(plain: object, path: Path) -> Condition:
    word, inner = only_member(plain, path, _CONDITION, _SEVERAL)
    at = (*path, word)
    match word:
        case "and":
            return And(tuple(_condition(*part) for part in parts_of(inner, at, "a list of conditions", least=0)))
        case "or":
            return Or(tuple(_condition(*part) for part in parts_of(inner, at, "a list of conditions")))
        case "not":
            return Not(_condition(inner, at))
        case "location":
            one = isinstance(inner, str)
            prefixes = [(inner, at)] if one else parts_of(inner, at, "a geohash or a list of geohashes")
            return InCells(tuple(_prefix(*each) for each in prefixes))
        case "time":
            return _times(inner, at)
        case "box":
            sides = numbers_of(inner, at, SIDES)
            try:
                Box(*sides)
            except ValueError as error:
                raise refused(at, str(error)) from None
            return InBox(*sides)
        case "within":
            takes = "GeoJSON, or well-known text such as 'POLYGON ((0 0, 9 0, 0 9, 0 0))'"
            return Within(meaning_of(checked, json.dumps(inner) if isinstance(inner, Mapping) else inner, at, takes))
        case "near":
            return _near(inner, at)
        case "feature":
            name, compared = only_member(inner, at, 'a feature compared, as in {"rh": {">": 80}}')
            return _compared(name, compared, (*at, name))
        case _:
            return _compared(word, inner, at)


def _prefix(plain: object, path: Path) -> str:
    text = text_of(plain, path, "a geohash")
    meaning_of(geohash.parse, text, path, "a geohash")
    return text.lower()


def _near(plain: object, path: Path) -> Near:
    latitude, longitude, km = numbers_of(plain, path, CIRCLE)
    for name, degrees, reach in (
        ("lat", latitude, geohash.LATITUDE_REACH),
        ("lon", longitude, geohash.LONGITUDE_REACH),
    ):
        if abs(degrees) > reach:
            raise refused((*path, name), f"lies in {-reach:g}..{reach:g}, found {degrees:g}")
    if km < 0.0:
        raise refused((*path, "km"), f"a distance is not negative, found {km:g}")
    return Near(latitude, longitude, km)


def _times(plain: object, path: Path) -> Condition:
    parts = members_of(plain, path, _TIME)
    bounds = []
    for word, text in parts.items():
        if word not in TIMES:
            raise unknown(path, "comparison", word, tuple(TIMES))
        bounds.append(TimeIs(TIMES[word], meaning_of(moment, text, (*path, word), "a time such as '2025-03-01T12:30'")))
    return _together(bounds, path, _TIME)


def _compared(name: str, plain: object, path: Path) -> Condition:
    """A feature compared in one way, or between a lower and an upper bound."""
    feature = Name(text_of(name, path, "the name of a feature"))
    if not isinstance(plain, Mapping):
        raise refused(path, f"takes {_COMPARED}, found {shown(plain)}{nearest(name, WORDS)}")
    parts = members_of(plain, path, _COMPARED)
    found: list[Condition] = []
    for word, inner in parts.items():
        at = (*path, word)
        match word:
            case "between":
                ends = parts_of(inner, at, "two numbers, the lower one first", least=2, most=2)
                low, high = (_threshold(*end) for end in ends)
                found.append(FeatureBetween(feature, low, high))
            case "in":
                numbers = parts_of(inner, at, "a list of numbers")
                found.append(FeatureIn(feature, tuple(number_of(*number, "a number") for number in numbers)))
            case "is":
                if inner is not None:
                    raise refused(at, f'takes null, found {shown(inner)}; what is there is {{"not": ...}} of that')
                found.append(FeatureNull(feature))
            case _ if word in COMPARISONS:
                threshold = _threshold(inner, at)
                if word in ("=", "<>") and not isinstance(threshold, float):
                    raise refused(at, "takes a number; with a statistic a feature compares by <, <=, >= or >")
                found.append(FeatureIs(feature, word, threshold))
            case _:
                raise unknown(path, "comparison", word, _OF_FEATURES, nearest(name, WORDS))
    return _together(found, path, _COMPARED)


def _threshold(plain: object, path: Path) -> float | Aggregate | Arithmetic:
    """What a feature is compared with: a number, or a statistic of the scope."""
    if not isinstance(plain, Mapping):
        return number_of(plain, path, f'{_OPERAND}; what is absent is {{"is": null}}' if plain is None else _OPERAND)
    operand = _operand(plain, path)
    if isinstance(operand, Number | ColumnOf) or not _has_statistic(operand):
        raise refused(path, f"takes {_OPERAND}, not arithmetic of numbers alone")
    return operand


def _has_statistic(operand: Operand) -> bool:
    if isinstance(operand, Arithmetic):
        return _has_statistic(operand.left) or _has_statistic(operand.right)
    return isinstance(operand, Aggregate)


def _together(found: Sequence[Condition], path: Path, takes: str) -> Condition:
    """One comparison, or a lower and an upper bound, the lower one first."""
    if len(found) == 1:
        return found[0]
    by = sorted(found, key=lambda part: getattr(part, "comparison", "") not in LOWER)
    if len(by) == 2 and is_range(*by):
        return And(tuple(by))
    raise refused(path, f"takes {takes}: one comparison, or a lower and an upper bound; join others by and")


def _having(plain: object, path: Path) -> Condition:
    word, inner = only_member(plain, path, _GROUP, _SEVERAL)
    at = (*path, word)
    if word == "not":
        return Not(_having(inner, at))
    if word in JOINED:
        parts = tuple(_having(*part) for part in parts_of(inner, at, f"a list of {_GROUP}"))
        return And(parts) if word == "and" else Or(parts)
    if word not in COMPARISONS:
        raise unknown(path, "comparison", word, (*COMPARISONS, *JOINED))
    left, right = parts_of(inner, at, 'two to compare, as in [{"count": "*"}, 100]', least=2, most=2)
    return GroupIs(_operand(*left), word, _operand(*right))


#: What takes something else than features.
_OWN: Final[dict[str, Callable[[object, Path], Aggregate]]] = {
    "quantile": _quantile,
    "probability": _probability,
    "outliers": _outliers,
    "predict": _predict,
}
