"""The language: a question in SQL, read into its tree.

sqlglot parses; this module walks what it made, takes what this release answers, and refuses the rest with line and
column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

from sqlglot import exp

from synopsis.core.errors import BadQuery, nearest
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.cover import Box
from synopsis.grid.zones import Zone
from synopsis.query.dates import moment
from synopsis.query.shapes import checked
from synopsis.query.texts import ARITHMETIC, Text, word_of
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
    Selection,
    Source,
    TimeIs,
    Within,
    is_alike,
)

#: Spellings of the functions in SQL; all of them divide by n.
_SPELLINGS: Final = {name.upper(): name for name in FUNCTIONS} | {
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
_KEYS: Final = ("CELL", "BUCKET", "BIN")
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
_FLIPPED: Final = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}
_CONDITIONS: Final = (
    "WHERE takes location LIKE 'dj%', BOX(south, west, north, east), WITHIN('POLYGON (...)'), NEAR(lat, lon, km), "
    "ranges of time, and features compared with numbers, as in rh > 80"
)

_CLAUSES: Final = {"expressions", "from", "where", "group", "having", "order", "limit"}
_QUOTING: Final = '; a name with other signs than letters and digits goes in double quotes, as in "PM2.5"'
_NAMING: Final = {"this", "db", "catalog", "alias"}
_LITERAL_TYPES: Final = ("DATE", "DATETIME", "TIMESTAMP", "TIMESTAMPTZ")


@lru_cache(maxsize=1024)
def read(text: str) -> Asked:
    """The tree of a question. Reading takes about a millisecond, a question seen before about a microsecond.

    >>> print(read("SELECT MEAN(temp_c) WHERE location LIKE '6g%' GROUP BY BUCKET('1mo')"))
    select bucket(1mo) as "BUCKET('1mo')"
    select mean(temp_c) as 'MEAN(temp_c)'
    scope location in 6g
    group bucket(1mo)
    """
    try:
        return _Reader(text).asked()
    except RecursionError:
        raise BadQuery("the question is nested too deeply to be read") from None


class _Reader(Text):
    """One text being read into its tree."""

    _is_joined = False  #: whether bare names are columns of questions that are joined

    # --- the whole ----------------------------------------------------------------------------------------------------

    def asked(self) -> Asked:
        """What the one statement asks."""
        select = self.statement
        if not isinstance(select, exp.Select):
            raise self.refused(select.key.upper(), select)
        source = _from(select)
        if select.args.get("joins") or (source is not None and isinstance(source.this, exp.Subquery)):
            return self._join(select)
        return self._one(select)

    def _one(self, select: exp.Select) -> Question | Selection:
        """A question to one sketch, or a part of it."""
        for clause, value in select.args.items():
            if value and clause.rstrip("_") not in _CLAUSES:
                part = value[0] if isinstance(value, list) else value
                raise self.refused(clause.strip("_").upper().removesuffix("S"), part)
        if not select.expressions:
            raise self.bad("nothing is selected; ask for example SELECT COUNT(*)", self.tokens[0].start)
        where = self._condition(select.args["where"].this) if select.args.get("where") else And()
        plain = [isinstance(node, exp.Column | exp.Star) for node in select.expressions]
        if all(plain):
            return self._selection(select, where)
        if any(plain):
            node = select.expressions[plain.index(True)]
            raise self.bad(
                f"{self.written(node)} is not a statistic, and stands beside one; plain columns alone select a part of "
                "the sketch, as in SELECT temp_c, rh WHERE location LIKE '6g%'",
                self.start(node),
            )
        items = tuple(self._item(node) for node in select.expressions)
        keys = self._groups(select.args.get("group"), items)
        for item in items:
            key = item.expression
            if isinstance(key, Key) and key not in keys:
                raise BadQuery(f"{item.name} is selected and not grouped by; add it to GROUP BY", *key.where)
        selected = {item.expression for item in items}
        items = (*(Item(text, key) for key, text in keys.items() if key not in selected), *items)
        self._check_names(items)
        return Question(
            items=items,
            scope=where,
            groups=tuple(keys),
            order=self._order(select.args.get("order")),
            limit=self._limit(select.args.get("limit")),
            having=self._having(select.args["having"].this, items) if select.args.get("having") else None,
            sketch=self._sketch(select),
        )

    def _selection(self, select: exp.Select, where: Condition) -> Selection:
        for clause, words in (("group", "GROUP BY"), ("having", "HAVING"), ("order", "ORDER BY"), ("limit", "LIMIT")):
            if select.args.get(clause):
                raise self.bad(
                    f"plain columns select a part of the sketch, which has no {words}; "
                    "ask for statistics, as in SELECT MEAN(temp_c)",
                    self.start(select.args[clause]),
                )
        whole = any(isinstance(node, exp.Star) for node in select.expressions)
        return Selection(() if whole else tuple(map(self._name, select.expressions)), where, self._sketch(select))

    def _sketch(self, select: exp.Select) -> str | None:
        """The name in FROM."""
        source = _from(select)
        if source is None:
            return None
        table = source.this
        named = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
        if not named or any(value and name not in _NAMING for name, value in table.args.items()):
            raise self.bad("FROM takes the name of a sketch, and may be left out", self.start(source))
        return str(table.name)

    # --- joins --------------------------------------------------------------------------------------------------------

    def _join(self, select: exp.Select) -> Join:
        """SELECT a.m - b.m FROM (SELECT ...) AS a JOIN (SELECT ...) AS b USING (cell)."""
        for clause, value in select.args.items():
            if value and clause.rstrip("_") not in {*_CLAUSES, "joins"} - {"group", "having"}:
                part = value[0] if isinstance(value, list) else value
                raise self.refused(clause.strip("_").upper().removesuffix("S"), part)
        joins: list[exp.Join] = select.args.get("joins") or []
        source = _from(select)
        assert source is not None  # a JOIN has something in front of it
        sources = tuple(self._source(node) for node in (source.this, *(join.this for join in joins)))
        aliases = [each.alias for each in sources]
        if len(set(aliases)) < len(aliases):
            raise self.bad(f"two questions are called {aliases[-1]!r}; give one another name", self.start(joins[-1]))
        on = self._joined_on(joins, aliases)
        self._is_joined = True
        items = tuple(self._joined_item(node) for node in select.expressions)
        self._check_names(items)
        where = select.args.get("where")
        return Join(
            items,
            sources,
            on,
            self._having(where.this, items) if where else None,
            self._order(select.args.get("order")),
            self._limit(select.args.get("limit")),
        )

    def _source(self, node: exp.Expr) -> Source:
        if not isinstance(node, exp.Subquery) or not isinstance(node.this, exp.Select) or not node.alias:
            raise self.bad(
                "what is joined are questions with names, as in FROM (SELECT CELL(4) AS cell, MEAN(rh) AS m "
                "GROUP BY CELL(4)) AS a JOIN (...) AS b USING (cell)",
                self.start(node),
            )
        inner = self._one(node.this)
        if not isinstance(inner, Question):
            raise self.bad("what is joined has statistics, not plain columns", self.start(node))
        return Source(str(node.alias), inner)

    def _joined_on(self, joins: list[exp.Join], aliases: list[str]) -> tuple[tuple[str, ...], ...]:
        """For each key, what each source calls it."""
        named: list[dict[str, str]] = []  # of each key: source to name
        for at, join in enumerate(joins, 1):
            if join.side or join.kind not in ("", "INNER", "CROSS") or join.method:
                word = join.side or join.kind or join.method
                raise self.bad(f"{word} JOIN is not in this release; JOIN keeps what both sides have", self.start(join))
            pairs = [(key.name, key.name) for key in join.args.get("using") or []]
            pairs += self._equated(join.args["on"], aliases, at) if join.args.get("on") else []
            if not pairs and named:
                raise self.bad("either all JOINs say USING or ON, or none does", self.start(join))
            for old, new in pairs:
                known = next((each for each in named if old in each.values()), None)
                if known is None:
                    if at > 1:
                        raise self.bad(f"{old!r} is not among the keys joined so far", self.start(join))
                    known = {aliases[0]: old}
                    named.append(known)
                known[aliases[at]] = new
        if any(len(each) < len(aliases) for each in named):
            raise self.bad("each key is joined through all questions", self.start(joins[-1]))
        return tuple(tuple(each[alias] for alias in aliases) for each in named)

    def _equated(self, node: exp.Expr, aliases: list[str], at: int) -> list[tuple[str, str]]:
        """ON a.cell = b.cell AND a.day = b.day: names in what came before, and in this source."""
        found = []
        for part in _parts(_bare(node), exp.And):
            sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
            if not sides or not all(isinstance(side, exp.Column) and side.table for side in sides):
                raise self.bad("ON takes equal keys, as in ON a.cell = b.cell", self.start(node))
            if sides[0].table == aliases[at]:
                sides.reverse()
            if sides[1].table != aliases[at] or sides[0].table not in aliases[:at]:
                raise self.bad(
                    f"ON compares a key of {aliases[at]!r} with one of {aliases[at - 1]!r}", self.start(part)
                )
            found.append((sides[0].name, sides[1].name))
        return found

    def _joined_item(self, node: exp.Expr) -> Item:
        plain = node.this if isinstance(node, exp.Alias) else node
        operand = self._operand(plain)
        if isinstance(operand, Number):
            raise self.bad(f"{self.written(plain)} is not a column", self.start(plain))
        name = node.alias if isinstance(node, exp.Alias) else operand.name if isinstance(operand, ColumnOf) else None
        return Item(self.written(node) if name is None else name, operand)

    def _item(self, node: exp.Expr) -> Item:
        if isinstance(node, exp.Alias):
            return Item(node.alias, self._expression(node.this))
        expression = self._expression(node)
        return Item(self.written(node), expression)

    def _groups(self, group: exp.Expr | None, items: tuple[Item, ...]) -> dict[Key, str]:
        """The group keys in order, and the text of each."""
        keys: dict[Key, str] = {}
        if group is None:
            return keys
        takes = "GROUP BY takes CELL(p), BUCKET('1mo') and BIN(x)"
        if any(value for name, value in group.args.items() if name != "expressions"):
            raise self.bad(takes, self.word("GROUP BY"))
        aliases = {item.name: item.expression for item in items}
        for node in group.expressions:
            if isinstance(node, exp.Column) and node.name in aliases:
                key, text = aliases[node.name], node.name
            elif isinstance(node, exp.Func):
                key, text = self._expression(node), self.written(node)
            else:
                raise self.bad(takes, self.start(node))
            if not isinstance(key, Key):
                raise self.bad(takes, self.start(node))
            if any(is_alike(known, key) and known != key for known in keys):
                raise self.bad(f"GROUP BY takes only one {text.split('(')[0].strip()}", self.start(node))
            keys.setdefault(key, text)
        return keys

    def _order(self, order: exp.Expr | None) -> tuple[Order, ...]:
        if order is None:
            return ()
        for first, second in pairwise(self.tokens):
            if (word_of(first), word_of(second)) == ("NULLS", "FIRST"):
                raise self.bad("undefined values always come last; leave NULLS FIRST out", first.start)
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
            raise self.bad("LIMIT takes a whole number of rows", self.start(limit))
        return int(count.this)

    def _check_names(self, items: tuple[Item, ...]) -> None:
        seen: set[str] = set()
        for item in items:
            if item.name in seen:
                raise BadQuery(f"two columns are named {item.name!r}; give one an alias", *item.expression.where)
            seen.add(item.name)

    # --- what is selected ---------------------------------------------------------------------------------------------

    def _expression(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.Window):
            raise self.refused("OVER")
        if isinstance(node, exp.Filter):
            return self._filtered(node)
        if isinstance(node, exp.WithinGroup):
            return self._expression(self._within_group(node))
        if isinstance(node, (exp.Paren, exp.Neg, *ARITHMETIC)):
            operand = self._operand(node)
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
        arguments = _arguments(node)
        if name == "CELL":
            return CellKey(self._cell_length(node, arguments), place=place)
        if name == "BUCKET":
            return BucketKey(*self._span(node, arguments), place=place)
        if name == "BIN":
            return BinKey(*self._binned(node, arguments), place=place)
        if name not in _SPELLINGS:
            hint = nearest(name, _KNOWN) or ";"
            raise self.bad(f"this release has no function {name}{hint} it has {', '.join(_KNOWN)}", self.start(node))
        function = _SPELLINGS[name]
        if function == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            return Aggregate(function, place=place)
        if any(isinstance(argument, exp.Distinct) for argument in arguments):
            raise self.refused("DISTINCT")
        share = None
        if function == "quantile":
            share, arguments = self._share(node, name, arguments)
        features = tuple(self._name(argument) for argument in arguments)
        if not features or len(features) not in FUNCTIONS[function]:
            raise self.bad(f"{name} takes {_ARITY[FUNCTIONS[function]]}", self.start(node))
        return Aggregate(function, features, share, place=place)

    def _filtered(self, node: exp.Filter) -> Aggregate:
        """A statistic of some of a group's rows: MEAN(rh) FILTER (WHERE location LIKE '6g%')."""
        found = self._expression(node.this)
        if not isinstance(found, Aggregate):
            raise self.bad("FILTER goes behind one statistic, as in MEAN(rh) FILTER (WHERE rh > 80)", self.start(node))
        return replace(found, only=self._condition(node.expression.this))

    def _operand(self, node: exp.Expr, items: tuple[Item, ...] = ()) -> Operand:
        """A number, a statistic, or arithmetic of both; in HAVING also a column of the answer by its name."""
        node, place = _bare(node), self.place(self.start(node))
        number = _number(node)
        if number is not None:
            if math.isinf(number):
                raise self.bad(f"{self.written(node)} is beyond the largest number, about 1.8e308", self.start(node))
            return Number(number, place=place)
        if isinstance(node, exp.Neg):
            return Arithmetic("*", Number(-1.0, place=place), self._operand(node.this, items), place=place)
        operator = ARITHMETIC.get(type(node))
        if operator is not None:
            left, right = self._operand(node.this, items), self._operand(node.expression, items)
            return Arithmetic(operator, left, right, place=place)
        named = {item.name: item.expression for item in items}
        if isinstance(node, exp.Column) and (node.table or self._is_joined):
            return ColumnOf(node.table or None, node.name, place=place)
        is_named = isinstance(node, exp.Column) and node.name in named
        found = named[node.name] if is_named else self._expression(node)
        if isinstance(found, Key):
            raise self.bad(f"{self.written(node)} is a key, not a number", self.start(node))
        return found

    def _having(self, node: exp.Expr, items: tuple[Item, ...]) -> Condition:
        node = _bare(node)
        place = self.place(self.start(node))
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
        share = _number(arguments[1])
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
        width = _number(arguments[1]) if len(arguments) == 2 else None
        if len(arguments) == 2 and (width is None or not 0.0 < width < math.inf):
            raise self.bad(f"{takes}, not {self.written(arguments[1])}", self.start(arguments[1]))
        return self._name(arguments[0]), width

    def _name(self, node: exp.Expr) -> Name:
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            quoting = "" if isinstance(node, exp.Func | exp.Neg | exp.Literal) else _QUOTING
            raise self.bad(f"expected the name of a feature, not {self.written(node)}{quoting}", self.start(node))
        return Name(node.name, node.this.quoted, place=self.place(self.start(node.this)))

    # --- what is in scope ---------------------------------------------------------------------------------------------

    def _condition(self, node: exp.Expr) -> Condition:
        node = _bare(node)
        if isinstance(node, exp.And):
            return And(tuple(map(self._condition, _parts(node, exp.And))), place=self.place(self.start(node)))
        if isinstance(node, exp.Or):
            return self._either(node)
        if isinstance(node, exp.Not):
            return self._negated(self._condition(node.this), node)
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", None)
            return self._negated(self._condition(plain), node)
        function = self.function_name(node)
        if function == "BOX":
            return self._box(node)
        if function == "WITHIN":
            return self._polygon(node)
        if function == "NEAR":
            return self._circle(node)
        column = self._subject(node)
        if column is None and any(self.function_name(each) in _SPELLINGS for each in node.find_all(exp.Func)):
            raise self.bad("WHERE chooses rows, not groups: statistics are compared in HAVING", self.start(node))
        column = column or next(iter(node.find_all(exp.Column, bfs=False)), None)
        if column is None or column is node or function is not None:
            why = f"{self.written(node)} is not a condition of this release; {_CONDITIONS}"
            raise self.bad(why, self.start(node))
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
        place = self.place(self.start(node))
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
        return Not(condition, place=self.place(self.start(node)))

    def _feature(self, node: exp.Expr, column: exp.Column) -> Condition:
        place = self.place(self.start(node))
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
            raise self.bad(f"{name} compares with a statistic by <, <=, >= or >", self.start(node))
        return FeatureIs(name, comparison, number, place=place)

    def _threshold(self, node: exp.Expr, name: Name) -> float | Aggregate | Arithmetic:
        """What a feature is compared with: a number, or a statistic of the scope."""
        if node.find(exp.AggFunc, exp.Anonymous) is not None:
            operand = self._operand(node)
            if isinstance(operand, Aggregate | Arithmetic):
                return operand
        return self._numeric(node, name)

    def _numeric(self, node: exp.Expr, name: Name) -> float:
        """The number that a feature is compared with."""
        if isinstance(_bare(node), exp.Null):
            raise self.bad(f"nothing compares with NULL; write {name} IS NULL or IS NOT NULL", self.start(node))
        number = _number(node)
        if number is None:
            raise self.bad(f"{name} compares with a number or a statistic, not {self.written(node)}", self.start(node))
        if math.isinf(number):
            raise self.bad(f"{self.written(node)} is beyond the largest number, about 1.8e308", self.start(node))
        return number

    def _box(self, node: exp.Expr) -> InBox:
        sides = [_number(argument) for argument in _arguments(node)]
        numbers = [side for side in sides if side is not None]
        if len(sides) != 4 or len(numbers) != 4:
            raise self.bad("BOX takes south, west, north, east in degrees, as in BOX(48, 2, 49, 3)", self.start(node))
        try:
            box = Box(*numbers)
        except ValueError as error:
            raise self.bad(f"{error}; BOX takes south, west, north, east", self.start(node)) from None
        return InBox(box.south, box.west, box.north, box.east, place=self.place(self.start(node)))

    def _polygon(self, node: exp.Expr) -> Within:
        arguments = _arguments(node)
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
        found = [_number(argument) for argument in _arguments(node)]
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
        comparison = _COMPARISONS.get(type(node))
        if comparison is not None:
            if isinstance(_bare(node.this), exp.Column):
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


def _from(select: exp.Select) -> exp.Expr | None:
    return select.args.get("from_") or select.args.get("from")


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
