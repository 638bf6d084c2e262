"""The schema of a question as JSON, for editors, validators and programs that write questions.

It is JSON Schema, draft 2020-12. What it refuses `spelling` refuses too; only spelling knows which texts are times,
spans and polygons, and that columns have different names.
"""

from __future__ import annotations

from typing import Any, Final

from synopsis.query.plain import CIRCLE, COMPARISONS, LOWER, OPERATORS, SIDES, TIMES, UPPER
from synopsis.query.tree import FUNCTIONS

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_REACH: Final = {"lat": 90, "lon": 180, "south": 90, "north": 90, "west": 180, "east": 180}


def schema() -> dict[str, Any]:
    """The schema, as plain values.

    >>> list(schema()["$defs"]["question"]["properties"])
    ['select', 'where', 'group_by', 'having', 'order_by', 'limit', 'sketch']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A question to a sketch",
        "description": "The same as a SELECT in SQL: docs/language.md says what each part means.",
        "oneOf": [_ref("question"), _ref("join"), _ref("selection"), _ref("density"), _ref("forecast")],
        "$defs": {
            "question": _question({}),
            "join": _object(
                {
                    "select": _list(_ref("column")),
                    "from": _list(_question({"as": _TEXT}), 2),
                    "on": {"type": "array", "items": {"anyOf": [_TEXT, _list(_TEXT)]}},
                    **_rest(),
                },
                required=["select", "from"],
            ),
            "density": _curve("density", [{**_NUMBER, "exclusiveMinimum": 0}], alone=True),
            "forecast": _curve("forecast", [_TEXT, _TEXT], alone=False),
            "selection": _object(
                {
                    "features": {"anyOf": [{"const": "*"}, _list(_TEXT)]},
                    "where": _ref("condition"),
                    "sketch": _TEXT,
                },
                required=["features"],
            ),
            "column": _expression(_arithmetic() | _keys(), {"as": _TEXT}),
            "expression": _expression(_arithmetic() | _keys()),
            "key": _one_of(_keys()),
            "operand": {"anyOf": [_NUMBER, _expression(_arithmetic())]},
            "order": {
                "anyOf": [
                    _TEXT,
                    _ref("expression"),
                    _object({"descending": {"anyOf": [_TEXT, _ref("expression")]}}, required=["descending"]),
                ]
            },
            "condition": {
                **_object(_conditions()),
                "additionalProperties": _ref("comparison"),
                "minProperties": 1,
                "maxProperties": 1,
            },
            "group_condition": _one_of(
                {
                    "and": _list(_ref("group_condition")),
                    "or": _list(_ref("group_condition")),
                    "not": _ref("group_condition"),
                    **{sign: _list(_ref("operand"), 2, 2) for sign in COMPARISONS},
                }
            ),
            "comparison": _range(
                {
                    **{sign: _ref("operand") if sign in (*LOWER, *UPPER) else _NUMBER for sign in COMPARISONS},
                    "between": _list(_ref("operand"), 2, 2),
                    "in": _list(_NUMBER),
                    "is": {"type": "null"},
                },
                LOWER,
                UPPER,
            ),
            "times": _range(
                {word: {**_TEXT, "examples": ["2025-03-01", "2025-03-01T12:30 Europe/Paris"]} for word in TIMES},
                [word for word, sign in TIMES.items() if sign in LOWER],
                [word for word, sign in TIMES.items() if sign in UPPER],
            ),
            "geohash": {**_TEXT, "pattern": "^[0-9b-hjkmnp-zB-HJKMNP-Z]{1,12}$"},
        },
    }


def _question(named: dict[str, Any]) -> dict[str, Any]:
    """A question to one sketch, under a name where it is joined."""
    keys = ("cell", "bucket")
    return _object(
        {
            "select": _list(_ref("column")),
            "where": _ref("condition"),
            "group_by": {
                **_list(_ref("key")),
                "allOf": [{"contains": {"required": [key]}, "minContains": 0, "maxContains": 1} for key in keys],
            },
            **_rest(),
            "sketch": _TEXT,
            **named,
        },
        required=["select", *named],
    )


def _curve(word: str, options: list[dict[str, Any]], *, alone: bool) -> dict[str, Any]:
    """A density or a forecast: a feature and its options."""
    least = 2
    several = {"type": "array", "prefixItems": [_TEXT, *options], "minItems": least, "maxItems": 1 + len(options)}
    takes = {"anyOf": [_TEXT, several]} if alone else several
    keys = {"type": "array", "items": _one_of({"cell": _keys()["cell"]}), "minItems": 1, "maxItems": 1}
    parts = {word: takes, "where": _ref("condition"), "group_by": keys, "as": _TEXT, "sketch": _TEXT}
    return _object(parts, required=[word])


def _rest() -> dict[str, Any]:
    return {
        "having": _ref("group_condition"),
        "order_by": {"type": "array", "items": _ref("order")},
        "limit": {"type": "integer", "minimum": 0},
    }


def _statistics() -> dict[str, Any]:
    """What each function takes."""
    takes: dict[tuple[int, ...], Any] = {(1,): _TEXT, (2,): _list(_TEXT, 2, 2)}
    takes[0, 1] = {"anyOf": [_TEXT, {"const": ["*"]}], "description": '* for rows; ["*"] is the feature called so'}
    share = {**_NUMBER, "minimum": 0, "maximum": 1}
    of_shares = {"type": "array", "prefixItems": [_TEXT, share], "minItems": 2, "maxItems": 2}
    above = {**_NUMBER, "exclusiveMinimum": 0}
    others = {"type": "object", "additionalProperties": _NUMBER, "minProperties": 1}
    own = {
        "quantile": of_shares,
        "probability": _ref("condition"),
        "frequency": _ref("condition"),
        "contains": {"anyOf": [_ref("condition"), _list(_TEXT, 1, 2)], "examples": [["station", "A652"]]},
        "outliers": {"type": "array", "prefixItems": [_TEXT, above], "minItems": 2, "maxItems": 2},
        "predict": {"type": "array", "prefixItems": [_TEXT, others], "minItems": 2, "maxItems": 2},
    }
    of_scopes = {"type": "array", "prefixItems": [_TEXT], "items": _ref("condition"), "minItems": 3}
    sets = {"cardinality": {"anyOf": [_TEXT, _ref("key"), _list(_ref("key"))]}, "common": of_scopes, "only": of_scopes}
    return {name: own.get(name) or takes[counts] for name, counts in FUNCTIONS.items()} | sets


def _expression(others: dict[str, Any], named: dict[str, Any] | None = None) -> dict[str, Any]:
    """A statistic, of some rows only where it has a condition, or one of others."""
    named = named or {}
    return {"oneOf": [_one_of(_statistics(), {"where": _ref("condition"), **named}), _one_of(others, named)]}


def _arithmetic() -> dict[str, Any]:
    """Arithmetic, and the columns of questions that are joined."""
    column = {"anyOf": [_TEXT, _list(_TEXT, 2, 2)], "examples": [["here", "MEAN(rh)"]]}
    return {**{sign: _list(_ref("operand"), 2) for sign in OPERATORS}, "column": column}


def _keys() -> dict[str, Any]:
    return {
        "cell": {"type": "integer", "minimum": 1, "maximum": 12},
        "bucket": {
            "anyOf": [_TEXT, _list(_TEXT, 2, 2)],
            "examples": ["1d", ["1mo", "Europe/Paris"]],
        },
        "bin": {
            "anyOf": [
                _TEXT,
                {
                    "type": "array",
                    "prefixItems": [_TEXT, {**_NUMBER, "exclusiveMinimum": 0}],
                    "minItems": 2,
                    "maxItems": 2,
                },
            ],
            "examples": ["temp_c", ["temp_c", 5]],
        },
    }


def _conditions() -> dict[str, Any]:
    """What each word of a condition takes; every other word is a feature."""
    named = {"type": "object", "additionalProperties": _ref("comparison"), "minProperties": 1, "maxProperties": 1}
    return {
        "and": {"type": "array", "items": _ref("condition")},
        "or": _list(_ref("condition")),
        "not": _ref("condition"),
        "location": {"anyOf": [_ref("geohash"), _list(_ref("geohash"))]},
        "time": _ref("times"),
        "box": _object({side: _degrees(side) for side in SIDES}, required=list(SIDES)),
        "within": {
            "anyOf": [_TEXT, {"type": "object", "description": "GeoJSON of a Polygon or MultiPolygon"}],
            "examples": ["POLYGON ((2.2 48.8, 2.5 48.8, 2.35 48.95, 2.2 48.8))"],
        },
        "near": _object({part: _degrees(part) for part in CIRCLE}, required=list(CIRCLE)),
        "feature": {**named, "description": "a feature whose name is one of these words"},
    }


def _degrees(name: str) -> dict[str, Any]:
    """The range of a coordinate; kilometres have no end."""
    reach = _REACH.get(name)
    return {**_NUMBER, "minimum": 0} if reach is None else {**_NUMBER, "minimum": -reach, "maximum": reach}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _list(items: dict[str, Any], least: int = 1, most: int | None = None) -> dict[str, Any]:
    end = {} if most is None else {"maxItems": most}
    return {"type": "array", "items": items, "minItems": least, **end}


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    needs = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needs, "additionalProperties": False}


def _one_of(properties: dict[str, Any], others: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with exactly one of these, and any of the others."""
    return {**_object(properties | (others or {})), "oneOf": [{"required": [name]} for name in properties]}


def _range(properties: dict[str, Any], lower: Any, upper: Any) -> dict[str, Any]:
    """An object with exactly one of these, or with a lower and an upper bound."""
    bounds = [{"oneOf": [{"required": [name]} for name in names]} for names in (lower, upper)]
    return {
        **_object(properties),
        "minProperties": 1,
        "maxProperties": 2,
        "anyOf": [{"maxProperties": 1}, {"allOf": bounds}],
    }
