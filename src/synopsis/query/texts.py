"""Texts: a question in SQL as characters: what sqlglot made of it, and where each part of that stands.

Columns of the answer are named by the characters as written, and errors point at line and column. So names and texts
are sliced from the question itself by the positions that sqlglot leaves on its nodes, not from its own rendering.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from sqlglot import Dialect, ParseError, Token, TokenError, TokenType, exp

from synopsis.core.errors import BadQuery
from synopsis.query.tree import Place

#: What stands in front of the first part of some nodes.
_LEADING: Final[dict[type, str]] = {exp.Neg: "-", exp.Not: "NOT", exp.Distinct: "DISTINCT", exp.Paren: "("}
_QUOTED: Final = (TokenType.STRING, TokenType.IDENTIFIER)
_CLOSED_QUOTES: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
ARITHMETIC: Final[dict[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}


_DIALECT: Final = Dialect.get_or_raise(None)


def _as_ours(tokens: list[Token]) -> list[Token]:
    """The tokens with CONTAINS under a name that sqlglot has no rules for: its own takes two arguments, ours any.

    A parser of our own kind would do, but what is compiled (sqlglotc) takes no kinds.
    """
    calls = [after.token_type == TokenType.L_PAREN for after in tokens[1:]] + [False]
    return [
        Token(token.token_type, f"OUR_{token.text}", token.line, token.col, token.start, token.end)
        if call and token.token_type == TokenType.VAR and token.text.upper() == "CONTAINS"
        else token
        for token, call in zip(tokens, calls, strict=True)
    ]


class Text:
    """One text being read: its tokens, its one statement, and where in it everything stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line_starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
        try:
            self.tokens: list[Token] = _DIALECT.tokenize(text)
        except TokenError:
            left = _CLOSED_QUOTES.sub(lambda closed: " " * len(closed[0]), text)
            start = next((at for at, character in enumerate(left) if character in "'\"/"), 0)
            raise self.bad("a quote or comment is opened here and never closed", start) from None
        self.token_at = {token.start: position for position, token in enumerate(self.tokens)}
        if not self.tokens:
            raise BadQuery("the question is empty; ask for example SELECT COUNT(*)")
        if self.tokens[0].token_type != TokenType.SELECT:
            remedy = "; ask db.explain(...)" if self.tokens[0].text.upper() == "EXPLAIN" else ""
            raise self.bad(f"a question begins with SELECT, not {self.tokens[0].text!r}{remedy}", self.tokens[0].start)
        try:
            read = _DIALECT.parser().parse(_as_ours(self.tokens), text)
        except ParseError as error:
            raise self._unreadable(error) from None
        statements = [statement for statement in read if statement]
        if len(statements) > 1:
            raise self.bad("one question at a time", self.tokens[self._after_semicolon()].start)
        self.statement = statements[0]

    def start(self, node: exp.Expr) -> int:
        """Where a node begins in the text: at the first of its parts that knows, or a sign or word before that."""
        known = [part for part in node.walk() if "start" in part.meta]
        if not known:
            return self.word(node.sql())
        part: exp.Expr | None = min(known, key=lambda part: int(part.meta["start"]))
        assert part is not None
        position = self.token_at[part.meta["start"]]
        while part is not None and part is not node:
            part = part.parent
            leading = _LEADING.get(type(part))
            if leading is not None and position > 0 and word_of(self.tokens[position - 1]) == leading:
                position -= 1
        return self.tokens[position].start

    def word(self, word: str) -> int:
        """Where a word of the language first stands in the text, or the beginning."""
        return next((token.start for token in self.tokens if word_of(token) == word.upper()), 0)

    def written(self, node: exp.Expr) -> str:
        """The characters of a node: from its first token to its last, with the parentheses that it opened."""
        start = self.start(node)
        end = max((part.meta["end"] for part in node.walk() if "end" in part.meta), default=-1)
        if end < start:
            return node.sql()
        opened, calls = (
            0,
            isinstance(node, exp.Func)
            or (isinstance(node, (*ARITHMETIC, exp.Neg, exp.Paren)) and node.find(exp.Func) is not None),
        )
        for token in self.tokens[self.token_at[start] :]:
            opens = token.token_type == TokenType.L_PAREN
            if token.start > end and not opened and not (opens and calls):
                break
            opened += opens - (token.token_type == TokenType.R_PAREN)
            calls, end = calls and not opens, max(end, token.end)
        return self.text[start : end + 1]

    def function_name(self, node: exp.Expr) -> str | None:
        """The name of a function as written, in capitals."""
        if not isinstance(node, exp.Func):
            return None
        position = self.token_at.get(node.meta.get("start", -1), len(self.tokens))
        called = self.tokens[position : position + 2]
        if len(called) == 2 and called[1].token_type == TokenType.L_PAREN:
            return called[0].text.upper()
        return node.key.upper()

    def place(self, start: int) -> Place:
        line = bisect_right(self.line_starts, start)
        return Place(line, start - self.line_starts[line - 1] + 1)

    def _after_semicolon(self) -> int:
        semicolon = next(at for at, token in enumerate(self.tokens) if token.token_type == TokenType.SEMICOLON)
        return min(semicolon + 1, len(self.tokens) - 1)

    def bad(self, why: str, start: int) -> BadQuery:
        place = self.place(start)
        return BadQuery(why, place.line, place.column)

    def refused(self, word: str, node: object = None) -> BadQuery:
        """That a word of SQL is not understood yet, pointing at the word, or at what stands for it."""
        start = self.word(word)
        if start == 0 and isinstance(node, exp.Expr):
            start = self.start(node)
        return self.bad(f"{word} is not in this release", start)

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


def word_of(token: Token) -> str:
    """A word of the language in capitals, nothing for what is quoted."""
    return "" if token.token_type in _QUOTED else token.text.upper()
