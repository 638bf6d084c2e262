"""The language: a question in SQL, read into its tree.

sqlglot parses; this module walks what it made, takes what this release answers, and refuses the rest with line and
column. Columns of the answer are named by the characters as written, so names and texts are sliced from the question
itself by the positions that sqlglot leaves on its nodes, not from its own rendering.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

from sqlglot import Dialect, ParseError, Token, TokenError, TokenType, exp

from synopsis.core.errors import BadQuery, nearest
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.cover import Box
from synopsis.query.dates import moment
from synopsis.query.shapes import checked
from synopsis.query.tree import (
    FUNCTIONS,
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
    Place,
    Question,
    TimeIs,
    Within,
)

#: Spellings of the functions in SQL; all of them divide by n.
_SPELLINGS: Final = {name.upper(): name for name in FUNCTIONS} | {
    "AVG": "mean",
    "STDDEV": "std",
    "STDDEV_POP": "std",
    "VARIANCE": "var",
    "VAR_POP": "var",
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
_KEYS: Final = ("CELL", "BUCKET")
_KNOWN: Final = (*(name.upper() for name in FUNCTIONS), "MEDIAN", *_KEYS)
_ARITY: Final = {(0, 1): "* or one feature", (1,): "one feature", (2,): "two features"}

_COMPARISONS: Final[dict[type[exp.Expr], str]] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GTE: ">=",
    exp.GT: ">",
}
_ARITHMETIC: Final[dict[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_FLIPPED: Final = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}
_CONDITIONS: Final = (
    "WHERE takes location LIKE 'dj%', BOX(south, west, north, east), WITHIN('POLYGON (...)'), NEAR(lat, lon, km), "
    "ranges of time, and features compared with numbers, as in rh > 80"
)

#: What stands in front of the first part of some nodes.
_LEADING: Final[dict[type, str]] = {exp.Neg: "-", exp.Not: "NOT", exp.Distinct: "DISTINCT", exp.Paren: "("}
_QUOTED: Final = (TokenType.STRING, TokenType.IDENTIFIER)
_CLAUSES: Final = {"expressions", "from", "where", "group", "having", "order", "limit"}
_QUOTING: Final = '; a name with other signs than letters and digits goes in double quotes, as in "PM2.5"'
_NAMING: Final = {"this", "db", "catalog", "alias"}
_LITERAL_TYPES: Final = ("DATE", "DATETIME", "TIMESTAMP", "TIMESTAMPTZ")
_CLOSED_QUOTES: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)


@lru_cache(maxsize=1024)
def read(text: str) -> Question:
    """The tree of a question. Reading takes about a millisecond, a question seen before about a microsecond.

    >>> print(read("SELECT MEAN(temp_c) WHERE location LIKE '6g%' GROUP BY BUCKET('1mo')"))
    select bucket(1mo) as "BUCKET('1mo')"
    select mean(temp_c) as 'MEAN(temp_c)'
    scope location in 6g
    group bucket(1mo)
    """
    try:
        return _Reader(text).question()
    except RecursionError:
        raise BadQuery("the question is nested too deeply to be read") from None


class _Reader:
    """One text being read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line_starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
        dialect = Dialect.get_or_raise(None)
        try:
            self.tokens: list[Token] = dialect.tokenize(text)
        except TokenError:
            left = _CLOSED_QUOTES.sub(lambda closed: " " * len(closed[0]), text)
            start = next((at for at, character in enumerate(left) if character in "'\"/"), 0)
            raise self._bad("a quote or comment is opened here and never closed", start) from None
        self.token_at = {token.start: position for position, token in enumerate(self.tokens)}
        if not self.tokens:
            raise BadQuery("the question is empty; ask for example SELECT COUNT(*)")
        if self.tokens[0].token_type != TokenType.SELECT:
            remedy = "; ask db.explain(...)" if self.tokens[0].text.upper() == "EXPLAIN" else ""
            raise self._bad(f"a question begins with SELECT, not {self.tokens[0].text!r}{remedy}", self.tokens[0].start)
        try:
            statements = [statement for statement in dialect.parser().parse(self.tokens, text) if statement]
        except ParseError as error:
            raise self._unreadable(error) from None
        if len(statements) > 1:
            raise self._bad("one question at a time", self.tokens[self._after_semicolon()].start)
        self.statement = statements[0]

    # --- the whole ----------------------------------------------------------------------------------------------------

    def question(self) -> Question:
        select = self.statement
        if not isinstance(select, exp.Select):
            raise self._refused(select.key.upper(), select)
        for clause, value in select.args.items():
            if value and clause.rstrip("_") not in _CLAUSES:
                part = value[0] if isinstance(value, list) else value
                raise self._refused(clause.strip("_").upper().removesuffix("S"), part)
        self._check_source(select)
        if not select.expressions:
            raise self._bad("nothing is selected; ask for example SELECT COUNT(*)", self.tokens[0].start)
        items = tuple(self._item(node) for node in select.expressions)
        keys = self._groups(select.args.get("group"), items)
        for item in items:
            key = item.expression
            if isinstance(key, CellKey | BucketKey) and key not in keys:
                raise BadQuery(f"{item.name} is selected and not grouped by; add it to GROUP BY", *key.where)
        selected = {item.expression for item in items}
        items = (*(Item(text, key) for key, text in keys.items() if key not in selected), *items)
        self._check_names(items)
        return Question(
            items=items,
            scope=self._condition(select.args["where"].this) if select.args.get("where") else And(),
            groups=tuple(keys),
            order=self._order(select.args.get("order")),
            limit=self._limit(select.args.get("limit")),
            having=self._having(select.args["having"].this, items) if select.args.get("having") else None,
        )

    def _check_source(self, select: exp.Select) -> None:
        source = select.args.get("from_") or select.args.get("from")
        if source is None:
            return
        table = source.this
        named = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
        if not named or any(value and name not in _NAMING for name, value in table.args.items()):
            raise self._bad("FROM takes the name of a sketch, and may be left out", self._start(source))

    def _item(self, node: exp.Expr) -> Item:
        if isinstance(node, exp.Alias):
            return Item(node.alias, self._expression(node.this))
        expression = self._expression(node)
        return Item(self._written(node), expression)

    def _groups(self, group: exp.Expr | None, items: tuple[Item, ...]) -> dict[Key, str]:
        """The group keys in order, and the text of each."""
        keys: dict[Key, str] = {}
        if group is None:
            return keys
        takes = "GROUP BY takes CELL(p) and BUCKET('1mo')"
        if any(value for name, value in group.args.items() if name != "expressions"):
            raise self._bad(takes, self._word("GROUP BY"))
        aliases = {item.name: item.expression for item in items}
        for node in group.expressions:
            if isinstance(node, exp.Column) and node.name in aliases:
                key, text = aliases[node.name], node.name
            elif isinstance(node, exp.Func):
                key, text = self._expression(node), self._written(node)
            else:
                raise self._bad(takes, self._start(node))
            if not isinstance(key, CellKey | BucketKey):
                raise self._bad(takes, self._start(node))
            if any(type(known) is type(key) and known != key for known in keys):
                raise self._bad(f"GROUP BY takes only one {text.split('(')[0].strip()}", self._start(node))
            keys.setdefault(key, text)
        return keys

    def _order(self, order: exp.Expr | None) -> tuple[Order, ...]:
        if order is None:
            return ()
        for first, second in pairwise(self.tokens):
            if (_word_of(first), _word_of(second)) == ("NULLS", "FIRST"):
                raise self._bad("undefined values always come last; leave NULLS FIRST out", first.start)
        return tuple(
            Order(
                self._name(node.this) if isinstance(node.this, exp.Column) else self._expression(node.this),
                bool(node.args.get("desc")),
            )
            for node in order.expressions
        )

    def _limit(self, limit: exp.Expr | None) -> int | None:
        if limit is None:
            return None
        count = limit.args.get("expression")
        if not isinstance(limit, exp.Limit) or not isinstance(count, exp.Literal) or not count.is_int:
            raise self._bad("LIMIT takes a whole number of rows", self._start(limit))
        return int(count.this)

    def _check_names(self, items: tuple[Item, ...]) -> None:
        seen: set[str] = set()
        for item in items:
            if item.name in seen:
                raise BadQuery(f"two columns are named {item.name!r}; give one an alias", *item.expression.where)
            seen.add(item.name)

    # --- what is selected ---------------------------------------------------------------------------------------------

    def _expression(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.Window | exp.Filter):
            raise self._refused("OVER" if isinstance(node, exp.Window) else "FILTER")
        if isinstance(node, exp.WithinGroup):
            return self._expression(self._within_group(node))
        if isinstance(node, (exp.Paren, exp.Neg, *_ARITHMETIC)):
            operand = self._operand(node)
            if not isinstance(operand, Number):
                return operand
        name = self._function_name(node)
        if name is None:
            raise self._bad(
                f"{self._written(node)} is not a statistic; write one such as MEAN(temp_c), or CELL(p) or BUCKET('1d')",
                self._start(node),
            )
        place = self._place(self._start(node))
        arguments = _arguments(node)
        if name == "CELL":
            return CellKey(self._cell_length(node, arguments), place=place)
        if name == "BUCKET":
            return BucketKey(self._span(node, arguments), place=place)
        if name not in _SPELLINGS:
            hint = nearest(name, _KNOWN) or ";"
            raise self._bad(f"this release has no function {name}{hint} it has {', '.join(_KNOWN)}", self._start(node))
        function = _SPELLINGS[name]
        if function == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            return Aggregate(function, place=place)
        if any(isinstance(argument, exp.Distinct) for argument in arguments):
            raise self._refused("DISTINCT")
        share = None
        if function == "quantile":
            share, arguments = self._share(node, name, arguments)
        features = tuple(self._name(argument) for argument in arguments)
        if not features or len(features) not in FUNCTIONS[function]:
            raise self._bad(f"{name} takes {_ARITY[FUNCTIONS[function]]}", self._start(node))
        return Aggregate(function, features, share, place=place)

    def _operand(self, node: exp.Expr, items: tuple[Item, ...] = ()) -> Operand:
        """A number, a statistic, or arithmetic of both; in HAVING also a column of the answer by its name."""
        node, place = _bare(node), self._place(self._start(node))
        number = _number(node)
        if number is not None:
            if math.isinf(number):
                raise self._bad(f"{self._written(node)} is beyond the largest number, about 1.8e308", self._start(node))
            return Number(number, place=place)
        if isinstance(node, exp.Neg):
            return Arithmetic("*", Number(-1.0, place=place), self._operand(node.this, items), place=place)
        operator = _ARITHMETIC.get(type(node))
        if operator is not None:
            left, right = self._operand(node.this, items), self._operand(node.expression, items)
            return Arithmetic(operator, left, right, place=place)
        named = {item.name: item.expression for item in items}
        is_named = isinstance(node, exp.Column) and node.name in named
        found = named[node.name] if is_named else self._expression(node)
        if isinstance(found, CellKey | BucketKey):
            raise self._bad(f"{self._written(node)} is a key, not a number", self._start(node))
        return found

    def _having(self, node: exp.Expr, items: tuple[Item, ...]) -> Condition:
        node = _bare(node)
        place = self._place(self._start(node))
        if isinstance(node, exp.And | exp.Or):
            parts = tuple(self._having(part, items) for part in _parts(node, type(node)))
            return And(parts, place=place) if isinstance(node, exp.And) else Or(parts, place=place)
        if isinstance(node, exp.Not):
            return Not(self._having(node.this, items), place=place)
        comparison = _COMPARISONS.get(type(node))
        if comparison is not None:
            left, right = self._operand(node.this, items), self._operand(node.expression, items)
            return GroupIs(left, comparison, right, place=place)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            value, low, high = (self._operand(each, items) for each in (node.this, node.args["low"], node.args["high"]))
            return And((GroupIs(value, ">=", low, place=place), GroupIs(value, "<=", high, place=place)), place=place)
        raise self._bad(
            "HAVING compares statistics of groups, as in HAVING COUNT(*) > 100 AND CORRELATION(a, b) < -0.25",
            self._start(node),
        )

    def _share(self, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> tuple[float, list[exp.Expr]]:
        """The share of a quantile, and the arguments that are left."""
        if name == "MEDIAN":
            return 0.5, arguments
        takes = f"{name} takes a feature and a share from 0 to 1, as in {name}(rh, 0.9)"
        if len(arguments) != 2:
            raise self._bad(takes, self._start(node))
        share = _number(arguments[1])
        if share is None or not 0.0 <= share <= 1.0:
            raise self._bad(f"{takes}, not {self._written(arguments[1])}", self._start(arguments[1]))
        return share, arguments[:1]

    def _within_group(self, node: exp.WithinGroup) -> exp.Expr:
        """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x), which is how the standard has it, as PERCENTILE_CONT(x, q)."""
        function, keys = node.this, node.expression.expressions
        if not isinstance(function, exp.PercentileCont) or function.args.get("expression") or len(keys) != 1:
            raise self._refused("WITHIN", node)
        if keys[0].args.get("desc"):
            raise self._bad("WITHIN GROUP orders upwards here; leave DESC out, and take 1 - share", self._word("DESC"))
        plain = exp.PercentileCont(this=keys[0].this.copy(), expression=function.this.copy())
        plain.meta.update(function.meta)
        return plain

    def _cell_length(self, node: exp.Expr, arguments: list[exp.Expr]) -> int:
        length = arguments[0] if len(arguments) == 1 else None
        if not isinstance(length, exp.Literal) or not length.is_int or not 1 <= int(length.this) <= 12:
            raise self._bad("CELL takes a geohash length from 1 to 12, as in CELL(4)", self._start(node))
        return int(length.this)

    def _span(self, node: exp.Expr, arguments: list[exp.Expr]) -> str:
        span = arguments[0] if len(arguments) == 1 else None
        if not isinstance(span, exp.Literal) or not span.is_string:
            raise self._bad("BUCKET takes a span of time in quotes, as in BUCKET('1mo')", self._start(node))
        try:
            return str(Bucket.parse(span.this))
        except ValueError as error:
            raise self._bad(str(error), self._start(span)) from None

    def _name(self, node: exp.Expr) -> Name:
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            quoting = "" if isinstance(node, exp.Func | exp.Neg | exp.Literal) else _QUOTING
            raise self._bad(f"expected the name of a feature, not {self._written(node)}{quoting}", self._start(node))
        return Name(node.name, node.this.quoted, place=self._place(self._start(node.this)))

    # --- what is in scope ---------------------------------------------------------------------------------------------

    def _condition(self, node: exp.Expr) -> Condition:
        node = _bare(node)
        if isinstance(node, exp.And):
            return And(tuple(map(self._condition, _parts(node, exp.And))), place=self._place(self._start(node)))
        if isinstance(node, exp.Or):
            return self._either(node)
        if isinstance(node, exp.Not):
            return self._negated(self._condition(node.this), node)
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", None)
            return self._negated(self._condition(plain), node)
        function = self._function_name(node)
        if function == "BOX":
            return self._box(node)
        if function == "WITHIN":
            return self._polygon(node)
        if function == "NEAR":
            return self._circle(node)
        column = self._subject(node)
        if column is None and any(self._function_name(each) in _SPELLINGS for each in node.find_all(exp.Func)):
            raise self._bad("WHERE chooses rows, not groups: statistics are compared in HAVING", self._start(node))
        column = column or next(iter(node.find_all(exp.Column, bfs=False)), None)
        if column is None or column is node or function is not None:
            why = f"{self._written(node)} is not a condition of this release; {_CONDITIONS}"
            raise self._bad(why, self._start(node))
        if column.name.lower() == "location":
            return self._cells(node)
        if column.name.lower() == "time":
            return self._times(node)
        return self._feature(node, column)

    def _subject(self, node: exp.Expr) -> exp.Column | None:
        """The first column that stands in no function."""
        for column in node.find_all(exp.Column, bfs=False):
            above = column.parent
            while above is not None and above is not node and not isinstance(above, exp.Func):
                above = above.parent
            if above is node or above is None or column is node:
                return column
        return None

    def _either(self, node: exp.Or) -> Condition:
        """An OR; one of geohashes alone is a list of geohashes, and one that holds everywhere says nothing."""
        place = self._place(self._start(node))
        parts = tuple(map(self._condition, _parts(node, exp.Or)))
        if And() in parts:
            return And(place=place)
        cells = [part for part in parts if isinstance(part, InCells)]
        if len(cells) == len(parts):
            return InCells(tuple(prefix for part in cells for prefix in part.prefixes), place=place)
        return Or(parts, place=place)

    def _negated(self, condition: Condition, node: exp.Expr) -> Condition:
        if isinstance(condition, Not):
            return condition.condition
        return Not(condition, place=self._place(self._start(node)))

    def _feature(self, node: exp.Expr, column: exp.Column) -> Condition:
        place = self._place(self._start(node))
        name = self._name(column)
        subject = _bare(node.this)
        comparison = _COMPARISONS.get(type(node))
        if comparison is not None:
            if subject is column:
                return self._compared(name, comparison, node.expression, place)
            if _bare(node.expression) is column:
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
            raise self._bad(f"{name} compares with a statistic by <, <=, >= or >", self._start(node))
        return FeatureIs(name, comparison, number, place=place)

    def _threshold(self, node: exp.Expr, name: Name) -> float | Aggregate | Arithmetic:
        """What a feature is compared with: a number, or a statistic of the scope."""
        if node.find(exp.AggFunc, exp.Anonymous) is not None:
            operand = self._operand(node)
            if not isinstance(operand, Number):
                return operand
        return self._numeric(node, name)

    def _numeric(self, node: exp.Expr, name: Name) -> float:
        """The number that a feature is compared with."""
        if isinstance(_bare(node), exp.Null):
            raise self._bad(f"nothing compares with NULL; write {name} IS NULL or IS NOT NULL", self._start(node))
        number = _number(node)
        if number is None:
            raise self._bad(
                f"{name} compares with a number or a statistic, not {self._written(node)}", self._start(node)
            )
        if math.isinf(number):
            raise self._bad(f"{self._written(node)} is beyond the largest number, about 1.8e308", self._start(node))
        return number

    def _box(self, node: exp.Expr) -> InBox:
        sides = [_number(argument) for argument in _arguments(node)]
        numbers = [side for side in sides if side is not None]
        if len(sides) != 4 or len(numbers) != 4:
            raise self._bad("BOX takes south, west, north, east in degrees, as in BOX(48, 2, 49, 3)", self._start(node))
        try:
            box = Box(*numbers)
        except ValueError as error:
            raise self._bad(f"{error}; BOX takes south, west, north, east", self._start(node)) from None
        return InBox(box.south, box.west, box.north, box.east, place=self._place(self._start(node)))

    def _polygon(self, node: exp.Expr) -> Within:
        arguments = _arguments(node)
        text = arguments[0] if len(arguments) == 1 else None
        if not isinstance(text, exp.Literal) or not text.is_string:
            raise self._bad(
                "WITHIN takes well-known text in quotes, as in WITHIN('POLYGON ((0 0, 9 0, 0 9, 0 0))')",
                self._start(node),
            )
        try:
            return Within(checked(text.this), place=self._place(self._start(node)))
        except ValueError as error:
            raise self._bad(str(error), self._start(text)) from None

    def _circle(self, node: exp.Expr) -> Near:
        found = [_number(argument) for argument in _arguments(node)]
        numbers = [number for number in found if number is not None]
        takes = "NEAR takes latitude, longitude and kilometres, as in NEAR(48.86, 2.35, 50)"
        if len(found) != 3 or len(numbers) != 3:
            raise self._bad(takes, self._start(node))
        latitude, longitude, km = numbers
        if abs(latitude) > geohash.LATITUDE_REACH or abs(longitude) > geohash.LONGITUDE_REACH:
            raise self._bad(f"{takes}; latitudes lie in -90..90, longitudes in -180..180", self._start(node))
        if not 0.0 <= km < math.inf:
            raise self._bad(f"{takes}; a distance is not negative", self._start(node))
        return Near(latitude, longitude, km, place=self._place(self._start(node)))

    def _cells(self, node: exp.Expr) -> Condition:
        place = self._place(self._start(node))
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
            raise self._bad(f"a geohash is a text in quotes, not {self._written(node)}", self._start(node))
        text: str = node.this
        if like:
            text = text.removesuffix("%")
            if "%" in text or "_" in text:
                raise self._bad(f"LIKE takes the beginning of a geohash and %, not {node.this!r}", self._start(node))
        try:
            geohash.parse(text)
        except ValueError as error:
            raise self._bad(str(error), self._start(node)) from None
        return text.lower()

    def _times(self, node: exp.Expr) -> Condition:
        place = self._place(self._start(node))
        comparison = _COMPARISONS.get(type(node))
        if comparison is not None and comparison != "<>":
            if isinstance(_bare(node.this), exp.Column):
                return TimeIs(comparison, self._moment(node.expression), place=place)
            return TimeIs(_FLIPPED[comparison], self._moment(node.this), place=place)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            first, last = self._moment(node.args["low"]), self._moment(node.args["high"])
            return And((TimeIs(">=", first, place=place), TimeIs("<=", last, place=place)), place=place)
        raise BadQuery("time takes <, <=, =, >=, > and BETWEEN", place.line, place.column)

    def _moment(self, node: exp.Expr) -> Moment:
        literal = node
        if isinstance(node, exp.Cast) and node.to.this.name in _LITERAL_TYPES:
            literal = node.this
        if not isinstance(literal, exp.Literal) or not literal.is_string:
            raise self._bad(
                f"time compares with a text such as '2025-03-01T12:30', not {self._written(node)}", self._start(node)
            )
        try:
            return moment(literal.this, self._place(self._start(literal)))
        except ValueError as error:
            raise self._bad(str(error), self._start(literal)) from None

    # --- places and texts ---------------------------------------------------------------------------------------------

    def _start(self, node: exp.Expr) -> int:
        """Where a node begins in the text: at the first of its parts that knows, or a sign or word before that."""
        known = [part for part in node.walk() if "start" in part.meta]
        if not known:
            return self._word(node.sql())
        part: exp.Expr | None = min(known, key=lambda part: int(part.meta["start"]))
        assert part is not None
        position = self.token_at[part.meta["start"]]
        while part is not None and part is not node:
            part = part.parent
            leading = _LEADING.get(type(part))
            if leading is not None and position > 0 and _word_of(self.tokens[position - 1]) == leading:
                position -= 1
        return self.tokens[position].start

    def _word(self, word: str) -> int:
        """Where a word of the language first stands in the text, or the beginning."""
        return next((token.start for token in self.tokens if _word_of(token) == word.upper()), 0)

    def _written(self, node: exp.Expr) -> str:
        """The characters of a node: from its first token to its last, with the parentheses that it opened."""
        start = self._start(node)
        end = max((part.meta["end"] for part in node.walk() if "end" in part.meta), default=-1)
        if end < start:
            return node.sql()
        opened, calls = (
            0,
            isinstance(node, exp.Func)
            or (isinstance(node, (*_ARITHMETIC, exp.Neg, exp.Paren)) and node.find(exp.Func) is not None),
        )
        for token in self.tokens[self.token_at[start] :]:
            opens = token.token_type == TokenType.L_PAREN
            if token.start > end and not opened and not (opens and calls):
                break
            opened += opens - (token.token_type == TokenType.R_PAREN)
            calls, end = calls and not opens, max(end, token.end)
        return self.text[start : end + 1]

    def _function_name(self, node: exp.Expr) -> str | None:
        """The name of a function as written, in capitals."""
        if not isinstance(node, exp.Func):
            return None
        position = self.token_at.get(node.meta.get("start", -1), len(self.tokens))
        called = self.tokens[position : position + 2]
        if len(called) == 2 and called[1].token_type == TokenType.L_PAREN:
            return called[0].text.upper()
        return node.key.upper()

    def _place(self, start: int) -> Place:
        line = bisect_right(self.line_starts, start)
        return Place(line, start - self.line_starts[line - 1] + 1)

    def _after_semicolon(self) -> int:
        semicolon = next(at for at, token in enumerate(self.tokens) if token.token_type == TokenType.SEMICOLON)
        return min(semicolon + 1, len(self.tokens) - 1)

    def _bad(self, why: str, start: int) -> BadQuery:
        place = self._place(start)
        return BadQuery(why, place.line, place.column)

    def _refused(self, word: str, node: object = None) -> BadQuery:
        """That a word of SQL is not understood yet, pointing at the word, or at what stands for it."""
        start = self._word(word)
        if start == 0 and isinstance(node, exp.Expr):
            start = self._start(node)
        return self._bad(f"{word} is not in this release", start)

    def _unreadable(self, error: ParseError) -> BadQuery:
        told = error.errors[0]
        line, column, found = told["line"], told["col"], told["highlight"] or ""
        if line is None or column is None:
            return BadQuery(str(told["description"]))
        if str(told["description"]).startswith("Required keyword"):
            why = f"something is missing at {found!r}"
        elif str(told["description"]).startswith("Expecting"):
            why = f"{str(told['description']).lower()} after {found!r}"
        else:
            why = f"cannot read {found!r} here"
        return BadQuery(why, line, max(column - len(found) + 1, 1))


def _word_of(token: Token) -> str:
    """A word of the language in capitals, nothing for what is quoted."""
    return "" if token.token_type in _QUOTED else token.text.upper()


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of any function node, in the order of its definition."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    found: list[exp.Expr] = []
    for name in node.arg_types:
        value = node.args.get(name)
        parts = value if isinstance(value, list) else [value]
        found += [part for part in parts if isinstance(part, exp.Expr)]
    return found


def _parts(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """The parts of nested ANDs or ORs, left to right, without recursion: questions made by programs have thousands."""
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, kind):
            stack += [part.expression, part.this]
        else:
            yield part


def _bare(node: exp.Expr) -> exp.Expr:
    """A node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _number(node: exp.Expr) -> float | None:
    """The number that is written, with any signs in front of it; None if it is something else."""
    sign = 1.0
    while isinstance(node, exp.Paren | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    return sign * float(node.this) + 0.0  # there is no zero below zero
