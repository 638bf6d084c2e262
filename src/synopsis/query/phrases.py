"""Phrases: the parts of a question as JSON, expressions and conditions, read into the tree."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from synopsis.core.errors import nearest
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.cover import Box
from synopsis.grid.zones import Zone
from synopsis.query.dates import moment
from synopsis.query.given import (
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
from synopsis.query.plain import (
    CIRCLE,
    COMPARISONS,
    JOINED,
    KEYS,
    LOWER,
    OPERATORS,
    SIDES,
    TIMES,
    WORDS,
    is_range,
)
from synopsis.query.shapes import checked
from synopsis.query.tree import (
    FUNCTIONS,
    SETS,
    Aggregate,
    And,
    Arithmetic,
    BinKey,
    BucketKey,
    CellKey,
    ColumnOf,
    Condition,
    Expression,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    GroupIs,
    InBox,
    InCells,
    Key,
    Name,
    Near,
    Not,
    Number,
    Operand,
    Or,
    SetOf,
    TimeIs,
    Within,
    has_set,
    is_alike,
)

_EXPRESSIONS: Final = (*FUNCTIONS, *SETS, *KEYS, *OPERATORS)
_OF_FEATURES: Final = (*COMPARISONS, "between", "in", "is")
ONE: Final = 'a statistic such as {"mean": "temp_c"}, {"cell": 4} or {"bucket": "1mo"}'
_OPERAND: Final = 'a number or a statistic such as {"mean": "temp_c"}'
_CONDITION: Final = 'a condition such as {"location": "dj"} or {"rh": {">": 80}}'
_COMPARED: Final = 'a comparison such as {">": 80}, {"between": [80, 90]}, {"in": [1, 2]} or {"is": null}'
_GROUP: Final = 'a condition on groups such as {">": [{"count": "*"}, 100]}'
_SEVERAL: Final = "; join them by and, in a list"
_TIME: Final = 'a range such as {"from": "2025-01-01", "until": "2025-02-01"}'


def expression_of(plain: object, path: Path) -> Expression:
    """A statistic, a key or arithmetic."""
    only = None
    if isinstance(plain, Mapping) and "where" in plain:
        only = condition_of(plain["where"], (*path, "where"))
        plain = {word: inner for word, inner in plain.items() if word != "where"}
    word, inner = only_member(plain, path, ONE)
    found = _one(word, inner, path)
    if only is None:
        return found
    if not isinstance(found, Aggregate | SetOf):
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
    if word in SETS:
        return _cardinality(inner, at) if word == "cardinality" else _several(word, inner, at)
    if word not in FUNCTIONS:
        raise unknown(path, "function", word, _EXPRESSIONS)
    if word == "count" and isinstance(inner, str) and inner == "*":
        return Aggregate(word)
    if word == "count" and isinstance(inner, list | tuple) and tuple(inner) == ("*",):  # the feature of that name
        return Aggregate(word, (Name("*"),))
    if word in _OWN:
        return _OWN[word](inner, at)
    if 2 not in FUNCTIONS[word]:
        return Aggregate(word, (feature_name(inner, at),))
    takes = 'two features, as in ["temp_c", "rh"]'
    first, second = parts_of(inner, at, takes, least=2, most=2)
    return Aggregate(word, (feature_name(*first), feature_name(*second)))


def _bucket(plain: object, path: Path) -> BucketKey:
    takes = "a span of time such as '1mo'"
    if not isinstance(plain, list | tuple):
        return BucketKey(str(meaning_of(Bucket.parse, plain, path, takes)))
    span, zone = parts_of(plain, path, f"{takes}, or that and a zone such as 'Europe/Paris'", least=2, most=2)
    return BucketKey(str(meaning_of(Bucket.parse, *span, takes)), meaning_of(Zone.named, *zone, "a time zone").name)


def _bin(plain: object, path: Path) -> BinKey:
    takes = 'a feature such as "temp_c", or that and a width, as in ["temp_c", 5]'
    if not isinstance(plain, list | tuple):
        return BinKey(feature_name(plain, path))
    feature, (width, at) = parts_of(plain, path, takes, least=2, most=2)
    number = number_of(width, at, "a width")
    if not number > 0.0:
        raise refused(at, f"takes a width above 0, found {shown(width)}")
    return BinKey(feature_name(*feature), number)


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
    return Aggregate("quantile", (feature_name(*feature),), number)


def _probability(plain: object, path: Path) -> Aggregate:
    return Aggregate("probability", condition=condition_of(plain, path))


def _frequency(plain: object, path: Path) -> Aggregate:
    return Aggregate("frequency", condition=condition_of(plain, path))


def _contains(plain: object, path: Path) -> Aggregate | SetOf:
    """What rows have, or one entity in a list, perhaps behind the name of entities."""
    if not isinstance(plain, list | tuple):
        return Aggregate("contains", condition=condition_of(plain, path))
    takes = 'a condition, or an entity, as in ["station", "A652"]'
    *name, entity = (text_of(*each, takes) for each in parts_of(plain, path, takes, most=2))
    return SetOf("contains", Name(name[0]) if name else None, text=entity)


def _cardinality(plain: object, path: Path) -> SetOf:
    takes = 'the entity\'s name, as in "station", or keys, as in {"cell": 4}'
    if isinstance(plain, str):
        return SetOf("cardinality", Name(text_of(plain, path, takes)))
    given = parts_of(plain, path, takes) if isinstance(plain, list | tuple) else [(plain, path)]
    keys = tuple(expression_of(*each) for each in given)
    found = tuple(each for each in keys if isinstance(each, Key))
    if len(found) < len(keys) or any(is_alike(one, other) for at, one in enumerate(found) for other in found[:at]):
        raise refused(path, f"takes {takes}: one cell, one bucket, and one bin of each feature")
    return SetOf("cardinality", keys=found)


def _several(word: str, plain: object, path: Path) -> SetOf:
    takes = 'the entity\'s name and scopes, as in ["station", {"location": "6g"}, {"location": "6f"}]'
    (name, at), *scopes = parts_of(plain, path, takes, least=3)
    return SetOf(word, Name(text_of(name, at, takes)), scopes=tuple(condition_of(*each) for each in scopes))


def _outliers(plain: object, path: Path) -> Aggregate:
    takes = 'a feature and how many standard deviations away, as in ["rh", 3]'
    feature, (away, at) = parts_of(plain, path, takes, least=2, most=2)
    number = number_of(away, at, "a number of standard deviations")
    if not number > 0.0:
        raise refused(at, f"takes a number above 0, found {shown(away)}")
    return Aggregate("outliers", (feature_name(*feature),), numbers=(number,))


def _predict(plain: object, path: Path) -> Aggregate:
    takes = 'a feature and the values of others, as in ["rh", {"temp_c": 20}]'
    feature, (given, at) = parts_of(plain, path, takes, least=2, most=2)
    others = members_of(given, at, 'values of features, as in {"temp_c": 20}')
    names = (feature_name(*feature), *(feature_name(name, (*at, name)) for name in others))
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
    found = expression_of(plain, path)
    if isinstance(found, Key):
        raise refused(path, f"takes {_OPERAND}, not a key")
    return found


def feature_name(plain: object, path: Path) -> Name:
    """The name of a feature."""
    return Name(text_of(plain, path, "the name of a feature"))


# --- conditions -------------------------------------------------------------------------------------------------------


def condition_of(plain: object, path: Path) -> Condition:
    """What rows fulfil."""
    word, inner = only_member(plain, path, _CONDITION, _SEVERAL)
    at = (*path, word)
    match word:
        case "and":
            return And(tuple(condition_of(*part) for part in parts_of(inner, at, "a list of conditions", least=0)))
        case "or":
            return Or(tuple(condition_of(*part) for part in parts_of(inner, at, "a list of conditions")))
        case "not":
            return Not(condition_of(inner, at))
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
    if isinstance(operand, SetOf) or has_set(operand):
        raise refused(path, f"takes {_OPERAND}, not a number of entities or keys")
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


def having_of(plain: object, path: Path) -> Condition:
    """What groups fulfil."""
    word, inner = only_member(plain, path, _GROUP, _SEVERAL)
    at = (*path, word)
    if word == "not":
        return Not(having_of(inner, at))
    if word in JOINED:
        parts = tuple(having_of(*part) for part in parts_of(inner, at, f"a list of {_GROUP}"))
        return And(parts) if word == "and" else Or(parts)
    if word not in COMPARISONS:
        raise unknown(path, "comparison", word, (*COMPARISONS, *JOINED))
    left, right = parts_of(inner, at, 'two to compare, as in [{"count": "*"}, 100]', least=2, most=2)
    return GroupIs(_operand(*left), word, _operand(*right))


#: What takes something else than features.
_OWN: Final[dict[str, Callable[[object, Path], Aggregate | SetOf]]] = {
    "frequency": _frequency,
    "contains": _contains,
    "quantile": _quantile,
    "probability": _probability,
    "outliers": _outliers,
    "predict": _predict,
}
