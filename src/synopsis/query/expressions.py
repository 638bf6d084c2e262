"""Expressions in SQL: statistics, keys and arithmetic, and HAVING, which compares them, read into the tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sqlglot import exp

from synopsis.core.errors import nearest
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.query.nodes import arguments_of, bare, number_of, parts_of
from synopsis.query.texts import ARITHMETIC
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
    GroupIs,
    Item,
    Key,
    Name,
    Not,
    Number,
    Operand,
    Or,
    SetOf,
    is_alike,
)
from synopsis.query.wheres import COMPARISONS, SPELLINGS, Conditions

#: Functions that are several quantiles.
SHARES: Final = {"QUARTILES": (0.25, 0.5, 0.75), "DECILES": tuple(tenth / 10 for tenth in range(1, 10))}
_KEYS: Final = ("CELL", "BUCKET", "BIN")
_KNOWN: Final = (*(name.upper() for name in (*FUNCTIONS, *SETS)), "MEDIAN", *SHARES, *_KEYS)
_ARITY: Final = {(0, 1): "* or one feature", (1,): "one feature", (2,): "two features"}


class Expressions(Conditions):
    """A text whose expressions are read."""

    is_joined = False  #: whether bare names are columns of questions that are joined

    def expression(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.Window):
            raise self.refused("OVER")
        if isinstance(node, exp.Filter):
            return self._filtered(node)
        if isinstance(node, exp.WithinGroup):
            return self.expression(self._within_group(node))
        if isinstance(node, (exp.Paren, exp.Neg, *ARITHMETIC)):
            operand = self.operand(node)
            if not isinstance(operand, Number):
                return operand
        name = self.function_name(node)
        if name is None:
            raise self.bad(
                f"{self.written(node)} is not a statistic; write one such as MEAN(temp_c), "
                "or CELL(p), BUCKET('1d') or BIN(x)",
                self.start(node),
            )
        place = self.place(self.start(node))
        arguments = arguments_of(node)
        if name == "CELL":
            return CellKey(self._cell_length(node, arguments), place=place)
        if name == "BUCKET":
            return BucketKey(*self._span(node, arguments), place=place)
        if name == "BIN":
            return BinKey(*self._binned(node, arguments), place=place)
        if name in _OF_SETS:
            return _OF_SETS[name](self, node, arguments)
        if name not in SPELLINGS:
            hint = nearest(name, _KNOWN) or ";"
            raise self.bad(f"this release has no function {name}{hint} it has {', '.join(_KNOWN)}", self.start(node))
        function = SPELLINGS[name]
        if function in _OWN:
            return _OWN[function](self, node, arguments)
        if function == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            return Aggregate(function, place=place)
        if any(isinstance(argument, exp.Distinct) for argument in arguments):
            raise self.bad(
                "DISTINCT values are not kept: CARDINALITY(x) counts entities, cells and bins of features",
                self.start(node),
            )
        share = None
        if function == "quantile":
            share, arguments = self._share(node, name, arguments)
        features = tuple(self.name_of(argument) for argument in arguments)
        if not features or len(features) not in FUNCTIONS[function]:
            raise self.bad(f"{name} takes {_ARITY[FUNCTIONS[function]]}", self.start(node))
        return Aggregate(function, features, share, place=place)

    def _probability(self, node: exp.Expr, arguments: list[exp.Expr]) -> Aggregate:
        """PROBABILITY(rh > 80 AND temp_c < 5)."""
        if len(arguments) != 1:
            raise self.bad("PROBABILITY takes a condition, as in PROBABILITY(rh > 80)", self.start(node))
        return Aggregate("probability", condition=self.condition(arguments[0]), place=self.place(self.start(node)))

    def _outliers(self, node: exp.Expr, arguments: list[exp.Expr]) -> Aggregate:
        """OUTLIERS(rh, 3): rows more than so many standard deviations from the mean."""
        takes = "OUTLIERS takes a feature and how many standard deviations away, above 0, as in OUTLIERS(rh, 3)"
        away = number_of(arguments[1]) if len(arguments) == 2 else None
        if away is None or not 0.0 < away < math.inf:
            raise self.bad(takes, self.start(node))
        return Aggregate("outliers", (self.name_of(arguments[0]),), numbers=(away,), place=self.place(self.start(node)))

    def _predict(self, node: exp.Expr, arguments: list[exp.Expr]) -> Aggregate:
        """PREDICT(rh, temp_c = 20, wind_ms = 3)."""
        takes = "PREDICT takes a feature and the values of others, as in PREDICT(rh, temp_c = 20, wind_ms = 3)"
        if len(arguments) < 2:
            raise self.bad(takes, self.start(node))
        names, numbers = [self.name_of(arguments[0])], []
        for argument in arguments[1:]:
            number = number_of(argument.expression) if isinstance(argument, exp.EQ | exp.PropertyEQ) else None
            if number is None or math.isinf(number):
                raise self.bad(takes, self.start(argument))
            subject = argument.this
            names.append(self.name_of(subject if isinstance(subject, exp.Column) else exp.column(subject.copy())))
            numbers.append(number)
        if len({name.text.lower() for name in names}) < len(names):
            raise self.bad("PREDICT takes every feature once", self.start(node))
        return Aggregate("predict", tuple(names), numbers=tuple(numbers), place=self.place(self.start(node)))

    def _frequency(self, node: exp.Expr, arguments: list[exp.Expr]) -> Aggregate:
        """FREQUENCY(temp_c = 21, rh = 80): rows that have all of these."""
        takes = "FREQUENCY takes what rows have, as in FREQUENCY(temp_c = 21, rh BETWEEN 80 AND 90)"
        return Aggregate("frequency", condition=self._all(node, arguments, takes), place=self.place(self.start(node)))

    def _contains(self, node: exp.Expr, arguments: list[exp.Expr]) -> Aggregate | SetOf:
        """CONTAINS(temp_c = 21, rh = 80) of rows, CONTAINS(station = 'A652') or CONTAINS('A652') of entities."""
        place, first = self.place(self.start(node)), arguments[0] if len(arguments) == 1 else None
        if isinstance(first, exp.Literal) and first.is_string:
            return SetOf("contains", text=first.this, place=place)
        if isinstance(first, exp.EQ | exp.PropertyEQ):
            name, value = first.this, first.expression
            is_text = isinstance(value, exp.Literal) and value.is_string
            entity = self._entity(name) if is_text and isinstance(name, exp.Column | exp.Identifier) else None
            if entity is not None and (entity.quoted or entity.text.lower() not in ("location", "time")):
                return SetOf("contains", entity, text=value.this, place=place)
        takes = "CONTAINS takes values of features, as in CONTAINS(temp_c = 21, rh = 80), or one entity in quotes"
        return Aggregate("contains", condition=self._all(node, arguments, takes), place=place)

    def _all(self, node: exp.Expr, arguments: list[exp.Expr], takes: str) -> Condition:
        """Conditions that stand side by side as arguments: all of them hold."""
        if not arguments:
            raise self.bad(takes, self.start(node))
        parts = [
            self.condition(
                exp.EQ(this=exp.column(each.this.copy()), expression=each.expression.copy())
                if isinstance(each, exp.PropertyEQ)
                else each
            )
            for each in arguments
        ]
        return parts[0] if len(parts) == 1 else And(tuple(parts), place=self.place(self.start(node)))

    def _cardinality(self, node: exp.Expr, arguments: list[exp.Expr]) -> SetOf:
        """CARDINALITY(station), CARDINALITY(CELL(4)), CARDINALITY(BIN(temp_c), BIN(rh))."""
        place = self.place(self.start(node))
        if len(arguments) == 1 and isinstance(arguments[0], exp.Column):
            return SetOf("cardinality", self._entity(arguments[0]), place=place)
        keys = [self.expression(each) if self.function_name(each) in _KEYS else None for each in arguments]
        found = tuple(each for each in keys if isinstance(each, Key))
        if not found or len(found) < len(keys):
            takes = (
                "CARDINALITY takes the entity's name, as in CARDINALITY(station), or keys, as in CARDINALITY(CELL(4))"
            )
            raise self.bad(takes, self.start(node))
        if any(is_alike(one, other) for at, one in enumerate(found) for other in found[:at]):
            raise self.bad("CARDINALITY takes one CELL, one BUCKET, and one BIN of each feature", self.start(node))
        return SetOf("cardinality", keys=found, place=place)

    def _several(self, node: exp.Expr, arguments: list[exp.Expr]) -> SetOf:
        """COMMON(station, here, there): entities in all of these scopes; ONLY(station, here, there): not there."""
        word = self.function_name(node) or ""
        if len(arguments) < 3 or not isinstance(arguments[0], exp.Column):
            takes = f"as in {word}(station, location LIKE '6g%', location LIKE '6f%')"
            raise self.bad(f"{word} takes the entity's name and two scopes or more, {takes}", self.start(node))
        scopes = tuple(map(self.condition, arguments[1:]))
        return SetOf(word.lower(), self._entity(arguments[0]), scopes=scopes, place=self.place(self.start(node)))

    def _entity(self, node: exp.Expr) -> Name:
        """A name that need not be a feature's."""
        column = node if isinstance(node, exp.Column) else exp.column(node.copy())
        return Name(column.name, bool(column.this.quoted), place=self.place(self.start(node)))

    def _filtered(self, node: exp.Filter) -> Aggregate | SetOf:
        """A statistic of some of a group's rows: MEAN(rh) FILTER (WHERE location LIKE '6g%')."""
        found = self.expression(node.this)
        if not isinstance(found, Aggregate | SetOf):
            raise self.bad("FILTER goes behind one statistic, as in MEAN(rh) FILTER (WHERE rh > 80)", self.start(node))
        return replace(found, only=self.condition(node.expression.this))

    def operand(self, node: exp.Expr, items: tuple[Item, ...] = ()) -> Operand:
        """A number, a statistic, or arithmetic of both; in HAVING also a column of the answer by its name."""
        node, place = bare(node), self.place(self.start(node))
        number = number_of(node)
        if number is not None:
            if math.isinf(number):
                raise self.bad(f"{self.written(node)} is beyond the largest number, about 1.8e308", self.start(node))
            return Number(number, place=place)
        if isinstance(node, exp.Neg):
            return Arithmetic("*", Number(-1.0, place=place), self.operand(node.this, items), place=place)
        operator = ARITHMETIC.get(type(node))
        if operator is not None:
            left, right = self.operand(node.this, items), self.operand(node.expression, items)
            return Arithmetic(operator, left, right, place=place)
        named = {item.name: item.expression for item in items}
        if isinstance(node, exp.Column) and (node.table or self.is_joined):
            return ColumnOf(node.table or None, node.name, place=place)
        is_named = isinstance(node, exp.Column) and node.name in named
        found = named[node.name] if is_named else self.expression(node)
        if isinstance(found, Key):
            raise self.bad(f"{self.written(node)} is a key, not a number", self.start(node))
        return found

    def having(self, node: exp.Expr, items: tuple[Item, ...]) -> Condition:
        node = bare(node)
        place = self.place(self.start(node))
        if isinstance(node, exp.And | exp.Or):
            parts = tuple(self.having(part, items) for part in parts_of(node, type(node)))
            return And(parts, place=place) if isinstance(node, exp.And) else Or(parts, place=place)
        if isinstance(node, exp.Not):
            return Not(self.having(node.this, items), place=place)
        comparison = COMPARISONS.get(type(node))
        if comparison is not None:
            left, right = self.operand(node.this, items), self.operand(node.expression, items)
            return GroupIs(left, comparison, right, place=place)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            value, low, high = (self.operand(each, items) for each in (node.this, node.args["low"], node.args["high"]))
            return And((GroupIs(value, ">=", low, place=place), GroupIs(value, "<=", high, place=place)), place=place)
        raise self.bad(
            "HAVING compares statistics of groups, as in HAVING COUNT(*) > 100 AND CORRELATION(a, b) < -0.25",
            self.start(node),
        )

    def _share(self, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> tuple[float, list[exp.Expr]]:
        """The share of a quantile, and the arguments that are left."""
        if name == "MEDIAN":
            return 0.5, arguments
        takes = f"{name} takes a feature and a share from 0 to 1, as in {name}(rh, 0.9)"
        if len(arguments) != 2:
            raise self.bad(takes, self.start(node))
        share = number_of(arguments[1])
        if share is None or not 0.0 <= share <= 1.0:
            raise self.bad(f"{takes}, not {self.written(arguments[1])}", self.start(arguments[1]))
        return share, arguments[:1]

    def _within_group(self, node: exp.WithinGroup) -> exp.Expr:
        """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x), which is how the standard has it, as PERCENTILE_CONT(x, q)."""
        function, keys = node.this, node.expression.expressions
        if not isinstance(function, exp.PercentileCont) or function.args.get("expression") or len(keys) != 1:
            raise self.refused("WITHIN", node)
        if keys[0].args.get("desc"):
            raise self.bad("WITHIN GROUP orders upwards here; leave DESC out, and take 1 - share", self.word("DESC"))
        plain = exp.PercentileCont(this=keys[0].this.copy(), expression=function.this.copy())
        plain.meta.update(function.meta)
        return plain

    def _cell_length(self, node: exp.Expr, arguments: list[exp.Expr]) -> int:
        length = arguments[0] if len(arguments) == 1 else None
        if not isinstance(length, exp.Literal) or not length.is_int or not 1 <= int(length.this) <= 12:
            raise self.bad("CELL takes a geohash length from 1 to 12, as in CELL(4)", self.start(node))
        return int(length.this)

    def _span(self, node: exp.Expr, arguments: list[exp.Expr]) -> tuple[str, str | None]:
        """The span of a bucket, and the zone whose clocks cut it."""
        texts = [each for each in arguments if isinstance(each, exp.Literal) and each.is_string]
        if not texts or len(texts) != len(arguments) or len(texts) > 2:
            raise self.bad(
                "BUCKET takes a span of time in quotes, as in BUCKET('1mo'), and perhaps a zone, "
                "as in BUCKET('1d', 'Europe/Paris')",
                self.start(node),
            )
        at = texts[0]
        try:
            span, zone = str(Bucket.parse(at.this)), None
            if len(texts) == 2:
                at = texts[1]
                zone = Zone.named(at.this).name
        except ValueError as error:
            raise self.bad(str(error), self.start(at)) from None
        return span, zone

    def _binned(self, node: exp.Expr, arguments: list[exp.Expr]) -> tuple[Name, float | None]:
        """The feature of bins, and their width."""
        takes = "BIN takes a feature, as in BIN(temp_c), and perhaps a width above 0, as in BIN(temp_c, 5)"
        if not 1 <= len(arguments) <= 2 or not isinstance(arguments[0], exp.Column):
            raise self.bad(takes, self.start(node))
        width = number_of(arguments[1]) if len(arguments) == 2 else None
        if len(arguments) == 2 and (width is None or not 0.0 < width < math.inf):
            raise self.bad(f"{takes}, not {self.written(arguments[1])}", self.start(arguments[1]))
        return self.name_of(arguments[0]), width


#: What counts entities and keys.
_OF_SETS: Final[dict[str, Callable[[Expressions, exp.Expr, list[exp.Expr]], SetOf]]] = {
    "CARDINALITY": Expressions._cardinality,
    "COMMON": Expressions._several,
    "ONLY": Expressions._several,
}

#: What takes something else than features and shares.
_OWN: Final[dict[str, Callable[[Expressions, exp.Expr, list[exp.Expr]], Aggregate | SetOf]]] = {
    "frequency": Expressions._frequency,
    "contains": Expressions._contains,
    "probability": Expressions._probability,
    "outliers": Expressions._outliers,
    "predict": Expressions._predict,
}
