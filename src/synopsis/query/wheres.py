"""Conditions in SQL: places, times and features, joined by AND, OR and NOT, read into the tree."""

from __future__ import annotations

import math
from typing import Final

from sqlglot import exp

from synopsis.core.errors import BadQuery
from synopsis.grid import geohash
from synopsis.grid.cover import Box
from synopsis.query.dates import moment
from synopsis.query.nodes import arguments_of, bare, number_of, parts_of
from synopsis.query.shapes import checked
from synopsis.query.texts import Text
from synopsis.query.tree import (
    FUNCTIONS,
    Aggregate,
    And,
    Arithmetic,
    Condition,
    FeatureBetween,
    FeatureIn,
    FeatureIs,
    FeatureNull,
    InBox,
    InCells,
    Item,
    Moment,
    Name,
    Near,
    Operand,
    Or,
    Place,
    TimeIs,
    Within,
    any_of,
    has_set,
    negated,
)

#: Spellings of the functions in SQL; all of them divide by n.
SPELLINGS: Final = {name.upper(): name for name in FUNCTIONS} | {
    "AVG": "mean",
    "STDDEV": "std",
    "STDDEV_POP": "std",
    "VARIANCE": "var",
    "VAR_POP": "var",
    "STDDEV_SAMP": "std_samp",
    "VARIANCE_SAMP": "var_samp",
    "COVAR_SAMP": "covariance_samp",
    "COVAR": "covariance",
    "COVAR_POP": "covariance",
    "CORR": "correlation",
    "QUANTILE_CONT": "quantile",
    "APPROX_QUANTILE": "quantile",
    "PERCENTILE": "quantile",
    "PERCENTILE_CONT": "quantile",
    "APPROX_PERCENTILE": "quantile",
    "MEDIAN": "quantile",
}
COMPARISONS: Final[dict[type[exp.Expr], str]] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GTE: ">=",
    exp.GT: ">",
}
_FLIPPED: Final = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}
_CONDITIONS: Final = (
    "WHERE takes location LIKE 'dj%', BOX(south, west, north, east), WITHIN('POLYGON (...)'), NEAR(lat, lon, km), "
    "ranges of time, and features compared with numbers, as in rh > 80"
)
_QUOTING: Final = '; a name with other signs than letters and digits goes in double quotes, as in "PM2.5"'
_LITERAL_TYPES: Final = ("DATE", "DATETIME", "TIMESTAMP", "TIMESTAMPTZ")


class Conditions(Text):
    """A text whose conditions are read."""

    def operand(self, node: exp.Expr, items: tuple[Item, ...] = ()) -> Operand:
        """A number, a statistic, or arithmetic of both: what reads expressions knows."""
        raise NotImplementedError

    def name_of(self, node: exp.Expr) -> Name:
        """The name of a feature."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            quoting = "" if isinstance(node, exp.Func | exp.Neg | exp.Literal) else _QUOTING
            raise self.bad(f"expected the name of a feature, not {self.written(node)}{quoting}", self.start(node))
        return Name(node.name, node.this.quoted, place=self.place(self.start(node.this)))

    def condition(self, node: exp.Expr) -> Condition:
        node = bare(node)
        if isinstance(node, exp.And):
            return And(tuple(map(self.condition, parts_of(node, exp.And))), place=self.place(self.start(node)))
        if isinstance(node, exp.Or):
            return any_of(tuple(map(self.condition, parts_of(node, exp.Or))), self.place(self.start(node)))
        if isinstance(node, exp.Not):
            return negated(self.condition(node.this), self.place(self.start(node)))
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", None)
            return negated(self.condition(plain), self.place(self.start(node)))
        function = self.function_name(node)
        if function == "BOX":
            return self._box(node)
        if function == "WITHIN":
            return self._polygon(node)
        if function == "NEAR":
            return self._circle(node)
        column = self._subject(node)
        if column is None and any(self.function_name(each) in SPELLINGS for each in node.find_all(exp.Func)):
            raise self.bad("WHERE chooses rows, not groups: statistics are compared in HAVING", self.start(node))
        column = column or next(iter(node.find_all(exp.Column, bfs=False)), None)
        if column is None or column is node or function is not None:
            why = f"{self.written(node)} is not a condition of this release; {_CONDITIONS}"
            raise self.bad(why, self.start(node))
        if not column.this.quoted and column.name.lower() == "location":  # in quotes it is a feature of that name
            return self._cells(node)
        if not column.this.quoted and column.name.lower() == "time":
            return self._times(node)
        return self._feature(node, column)

    def _subject(self, node: exp.Expr) -> exp.Column | None:
        """The first column that stands in no function."""
        for column in node.find_all(exp.Column, bfs=False):
            above = column.parent
            while above is not None and above is not node and not isinstance(above, exp.Func | exp.WithinGroup):
                above = above.parent
            if above is node or above is None or column is node:
                return column
        return None

    def _feature(self, node: exp.Expr, column: exp.Column) -> Condition:
        place = self.place(self.start(node))
        name = self.name_of(column)
        subject = bare(node.this)
        comparison = COMPARISONS.get(type(node))
        if comparison is not None:
            if subject is column:
                return self._compared(name, comparison, node.expression, place)
            if bare(node.expression) is column:
                return self._compared(name, _FLIPPED[comparison], node.this, place)
        if subject is column:
            if isinstance(node, exp.Between) and not node.args.get("symmetric"):
                low, high = (self._threshold(node.args[end], name) for end in ("low", "high"))
                return FeatureBetween(name, low, high, place=place)
            if isinstance(node, exp.In) and node.expressions:
                return FeatureIn(name, tuple(self._numeric(part, name) for part in node.expressions), place=place)
            if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
                return FeatureNull(name, place=place)
        raise BadQuery(
            f"{name} takes <, <=, =, <>, >=, > and BETWEEN with numbers, IN (1, 2), IS NULL and IS NOT NULL",
            place.line,
            place.column,
        )

    def _compared(self, name: Name, comparison: str, node: exp.Expr, place: Place) -> FeatureIs:
        number = self._threshold(node, name)
        if not isinstance(number, float) and comparison in ("=", "<>"):
            raise self.bad(f"{name} compares with a statistic by <, <=, >= or >", self.start(node))
        return FeatureIs(name, comparison, number, place=place)

    def _threshold(self, node: exp.Expr, name: Name) -> float | Aggregate | Arithmetic:
        """What a feature is compared with: a number, or a statistic of the scope."""
        if node.find(exp.AggFunc, exp.Anonymous) is not None:
            operand = self.operand(node)
            if isinstance(operand, Aggregate | Arithmetic) and not has_set(operand):
                return operand
        return self._numeric(node, name)

    def _numeric(self, node: exp.Expr, name: Name) -> float:
        """The number that a feature is compared with."""
        if isinstance(bare(node), exp.Null):
            raise self.bad(f"nothing compares with NULL; write {name} IS NULL or IS NOT NULL", self.start(node))
        number = number_of(node)
        if number is None:
            raise self.bad(f"{name} compares with a number or a statistic, not {self.written(node)}", self.start(node))
        if math.isinf(number):
            raise self.bad(f"{self.written(node)} is beyond the largest number, about 1.8e308", self.start(node))
        return number

    def _box(self, node: exp.Expr) -> InBox:
        sides = [number_of(argument) for argument in arguments_of(node)]
        numbers = [side for side in sides if side is not None]
        if len(sides) != 4 or len(numbers) != 4:
            raise self.bad("BOX takes south, west, north, east in degrees, as in BOX(48, 2, 49, 3)", self.start(node))
        try:
            box = Box(*numbers)
        except ValueError as error:
            raise self.bad(f"{error}; BOX takes south, west, north, east", self.start(node)) from None
        return InBox(box.south, box.west, box.north, box.east, place=self.place(self.start(node)))

    def _polygon(self, node: exp.Expr) -> Within:
        arguments = arguments_of(node)
        text = arguments[0] if len(arguments) == 1 else None
        if not isinstance(text, exp.Literal) or not text.is_string:
            raise self.bad(
                "WITHIN takes well-known text or GeoJSON in quotes, as in WITHIN('POLYGON ((0 0, 9 0, 0 9, 0 0))')",
                self.start(node),
            )
        try:
            return Within(checked(text.this), place=self.place(self.start(node)))
        except ValueError as error:
            raise self.bad(str(error), self.start(text)) from None

    def _circle(self, node: exp.Expr) -> Near:
        found = [number_of(argument) for argument in arguments_of(node)]
        numbers = [number for number in found if number is not None]
        takes = "NEAR takes latitude, longitude and kilometres, as in NEAR(48.86, 2.35, 50)"
        if len(found) != 3 or len(numbers) != 3:
            raise self.bad(takes, self.start(node))
        latitude, longitude, km = numbers
        if abs(latitude) > geohash.LATITUDE_REACH or abs(longitude) > geohash.LONGITUDE_REACH:
            raise self.bad(f"{takes}; latitudes lie in -90..90, longitudes in -180..180", self.start(node))
        if not 0.0 <= km < math.inf:
            raise self.bad(f"{takes}; a distance is not negative", self.start(node))
        return Near(latitude, longitude, km, place=self.place(self.start(node)))

    def _cells(self, node: exp.Expr) -> Condition:
        place = self.place(self.start(node))
        if isinstance(node, exp.EQ):
            texts = [node.expression if isinstance(node.this, exp.Column) else node.this]
        elif isinstance(node, exp.Like) and isinstance(node.this, exp.Column):
            texts = [node.expression]
        elif isinstance(node, exp.In) and node.expressions:
            texts = node.expressions
        else:
            raise BadQuery("location takes LIKE 'dj%', = 'dj' or IN ('dj', 'dn')", place.line, place.column)
        if isinstance(node, exp.Like) and isinstance(texts[0], exp.Literal) and texts[0].this == "%":
            return And(place=place)
        return InCells(tuple(self._prefix(text, isinstance(node, exp.Like)) for text in texts), place=place)

    def _prefix(self, node: exp.Expr, like: bool) -> str:
        if not isinstance(node, exp.Literal) or not node.is_string:
            raise self.bad(f"a geohash is a text in quotes, not {self.written(node)}", self.start(node))
        text: str = node.this
        if like:
            text = text.removesuffix("%")
            if "%" in text or "_" in text:
                raise self.bad(f"LIKE takes the beginning of a geohash and %, not {node.this!r}", self.start(node))
        try:
            geohash.parse(text)
        except ValueError as error:
            raise self.bad(str(error), self.start(node)) from None
        return text.lower()

    def _times(self, node: exp.Expr) -> Condition:
        place = self.place(self.start(node))
        comparison = COMPARISONS.get(type(node))
        if comparison is not None:
            if isinstance(bare(node.this), exp.Column):
                return TimeIs(comparison, self._moment(node.expression), place=place)
            return TimeIs(_FLIPPED[comparison], self._moment(node.this), place=place)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            first, last = self._moment(node.args["low"]), self._moment(node.args["high"])
            return And((TimeIs(">=", first, place=place), TimeIs("<=", last, place=place)), place=place)
        if isinstance(node, exp.In) and node.expressions:
            moments = [TimeIs("=", self._moment(each), place=place) for each in node.expressions]
            return moments[0] if len(moments) == 1 else Or(tuple(moments), place=place)
        raise BadQuery("time takes <, <=, =, <>, >=, >, BETWEEN and IN", place.line, place.column)

    def _moment(self, node: exp.Expr) -> Moment:
        literal = node
        if isinstance(node, exp.Cast) and node.to.this.name in _LITERAL_TYPES:
            literal = node.this
        if not isinstance(literal, exp.Literal) or not literal.is_string:
            raise self.bad(
                f"time compares with a text such as '2025-03-01T12:30', not {self.written(node)}", self.start(node)
            )
        try:
            return moment(literal.this, self.place(self.start(literal)))
        except ValueError as error:
            raise self.bad(str(error), self.start(literal)) from None
