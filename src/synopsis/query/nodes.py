"""Nodes of sqlglot taken apart: arguments, parts of ANDs and ORs, numbers."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def arguments_of(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of any function node, in the order of its definition."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    found: list[exp.Expr] = []
    for name in node.arg_types:
        value = node.args.get(name)
        parts = value if isinstance(value, list) else [value]
        found += [part for part in parts if isinstance(part, exp.Expr)]
    return found


def parts_of(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """The parts of nested ANDs or ORs, left to right, without recursion: questions made by programs have thousands."""
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, kind):
            stack += [part.expression, part.this]
        else:
            yield part


def bare(node: exp.Expr) -> exp.Expr:
    """A node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def number_of(node: exp.Expr) -> float | None:
    """The number that is written, with any signs in front of it; None if it is something else."""
    sign = 1.0
    while isinstance(node, exp.Paren | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    try:
        return sign * float(node.this) + 0.0  # there is no zero below zero
    except ValueError:  # sqlglot takes .5.3 for a number
        return None
