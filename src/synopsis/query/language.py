"""The language: a question in SQL, read into its tree.

sqlglot parses; this module walks what it made, takes what this release answers, and refuses the rest with line and
column. Columns of the answer are named by the characters as written, so names and texts are sliced from the question
itself by the positions that sqlglot leaves on its nodes, not from its own rendering.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

from sqlglot import Dialect, ParseError, Token, TokenError, TokenType, exp

from synopsis.core.errors import BadQuery, nearest
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.query.dates import moment
from synopsis.query.tree import (
    FUNCTIONS,
    Aggregate,
    And,
    BucketKey,
    CellKey,
    Condition,
    Expression,
    InCells,
    Item,
    Key,
    Moment,
    Name,
    OnFeature,
    Order,
    Place,
    Question,
    TimeIs,
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
}
_KEYS: Final = ("CELL", "BUCKET")
_KNOWN: Final = (*(name.upper() for name in FUNCTIONS), *_KEYS)
_ARITY: Final = {(0, 1): "* or one feature", (1,): "one feature", (2,): "two features"}

_COMPARISONS: Final[dict[type[exp.Expr], str]] = {exp.LT: "<", exp.LTE: "<=", exp.EQ: "=", exp.GTE: ">=", exp.GT: ">"}
_FLIPPED: Final = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}

_QUOTED: Final = (TokenType.STRING, TokenType.IDENTIFIER)
_CLAUSES: Final = {"expressions", "from", "where", "group", "order", "limit"}
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
            raise self._bad(f"a question begins with SELECT, not {self.tokens[0].text!r}", self.tokens[0].start)
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
            if isinstance(key, Aggregate):
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
        features = tuple(self._name(argument) for argument in arguments)
        if not features or len(features) not in FUNCTIONS[function]:
            raise self._bad(f"{name} takes {_ARITY[FUNCTIONS[function]]}", self._start(node))
        return Aggregate(function, features, place=place)

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
        if isinstance(node, exp.Paren):
            return self._condition(node.this)
        if isinstance(node, exp.And):
            return And(tuple(self._condition(part) for part in _conjuncts(node)), place=self._place(self._start(node)))
        if isinstance(node, exp.Or | exp.Not | exp.Xor) or node.args.get("negate"):
            raise self._refused("NOT" if node.args.get("negate") else node.key.upper(), node)
        column = next((part for part in node.find_all(exp.Column, bfs=False)), None)
        if column is not None and column is not node and column.name.lower() == "location":
            return self._cells(node)
        if column is not None and column is not node and column.name.lower() == "time":
            return self._times(node)
        if column is None or isinstance(node, exp.Func | exp.Column):
            raise self._bad(
                f"{self._written(node)} is not a condition of this release; "
                "WHERE takes location LIKE 'dj%' and ranges of time, joined by AND",
                self._start(node),
            )
        return OnFeature(self._name(column), place=self._place(self._start(node)))

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
        if comparison is not None:
            if isinstance(node.this, exp.Column):
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
        """Where a node begins in the text: at the first of its parts that knows, or at the sign or word before that."""
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        if not starts:
            return self._word(node.sql())
        start: int = min(starts)
        if isinstance(node, exp.Neg | exp.Not | exp.Distinct):
            return self.tokens[max(self.token_at[start] - 1, 0)].start
        return start

    def _word(self, word: str) -> int:
        """Where a word of the language first stands in the text, or the beginning."""
        return next((token.start for token in self.tokens if _word_of(token) == word.upper()), 0)

    def _written(self, node: exp.Expr) -> str:
        """The characters of a node: from its first token to its last, with the parentheses that it opened."""
        start = self._start(node)
        end = max((part.meta["end"] for part in node.walk() if "end" in part.meta), default=-1)
        if end < start:
            return node.sql()
        opened, calls = 0, isinstance(node, exp.Func)
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
        before = self.text[:start]
        return Place(before.count("\n") + 1, start - before.rfind("\n"))

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


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of nested ANDs, left to right, without recursion: questions made by programs have thousands."""
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.And):
            stack += [part.expression, part.this]
        else:
            yield part
