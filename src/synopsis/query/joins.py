"""Joins: answers side by side where they have the same keys, and what is computed across them.

So are contrasts made: the mean here minus the mean there, this month minus the one before, one sketch minus another;
each with an interval, since each side has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery, nearest
from synopsis.query.answer import Answer, BinKeys, BucketKeys, CellKeys, Column, Names, Points
from synopsis.query.arithmetic import combined, constant
from synopsis.query.finish import sorted_rows, true_of
from synopsis.query.tree import (
    Aggregate,
    And,
    Arithmetic,
    ColumnOf,
    Condition,
    Expression,
    GroupIs,
    Item,
    Join,
    Key,
    Name,
    Not,
    Number,
    Operand,
    Or,
    SetOf,
)
from synopsis.query.values import Values


def joined(asked: Join, answers: Sequence[Answer]) -> Answer:
    """The answer of a join, given those of its sources. Cost: a sort of the keys of all, and that of the columns."""
    rows = _rows(asked, answers)
    table = _Table([source.alias for source in asked.sources], answers, rows)
    size = rows[0].size
    which = np.arange(size)
    if asked.having is not None:
        which = np.flatnonzero(_truth(asked.having, table)[0])
    if asked.order:
        named = {item.name: item.expression for item in asked.items}
        keys = [(_sortable(_meant(order.by, named), table)[which], order.descending) for order in asked.order]
        which = which[sorted_rows(keys)]
    which = which[: asked.limit]
    columns = {item.name: _taken(table.column(_expression(item)), which) for item in asked.items}
    notes = tuple(dict.fromkeys(note for answer in answers for note in answer.notes))
    return Answer(columns, notes=notes)


@dataclass(frozen=True)
class _Table:
    """The columns of all sources, rows with the same keys side by side."""

    aliases: list[str]
    answers: Sequence[Answer]
    rows: list[NDArray[np.intp]]

    def column(self, expression: Operand) -> Column:
        """A column as it is, or one that is computed."""
        if isinstance(expression, ColumnOf):
            at = self._source(expression)
            return _taken(self.answers[at].column(expression.name), self.rows[at])
        return self.of(expression)

    def of(self, operand: Operand) -> Values:
        """A column of numbers."""
        match operand:
            case Number():
                return constant(operand.value, self.rows[0].size)
            case Arithmetic():
                return combined(operand.operator, self.of(operand.left), self.of(operand.right))
            case ColumnOf():
                found = self.column(operand)
                if not isinstance(found, Values):
                    raise BadQuery(f"{operand} is a key, not a number", *operand.where)
                return found
            case Aggregate() | SetOf():
                raise BadQuery(
                    f"{operand} is no column; statistics stand in the questions that are joined", *operand.where
                )

    def _source(self, column: ColumnOf) -> int:
        """Which source has a column."""
        if column.source is not None:
            if column.source not in self.aliases:
                hint = nearest(column.source, tuple(self.aliases)) or ";"
                raise BadQuery(
                    f"no question is called {column.source!r}{hint} there are {', '.join(self.aliases)}", *column.where
                )
            found = [self.aliases.index(column.source)]
        else:
            found = list(range(len(self.answers)))
        having = [at for at in found if column.name in self.answers[at].columns]
        if not having:
            names = tuple(name for at in found for name in self.answers[at].columns)
            hint = nearest(column.name, names) or ";"
            raise BadQuery(f"no column {column.name!r}{hint} there are {', '.join(names)}", *column.where)
        is_number = isinstance(self.answers[having[0]].column(column.name), Values)
        if len(having) > 1 and is_number:  # keys are the same on all sides
            one, other = (self.aliases[at] for at in having[:2])
            raise BadQuery(
                f"{column.name!r} may mean {one}.{column.name} or {other}.{column.name}; write which", *column.where
            )
        return having[0]


def _expression(item: Item) -> Operand:
    if isinstance(item.expression, Key):
        raise BadQuery(f"{item.name} is no column; keys stand in the questions that are joined", *item.expression.where)
    return item.expression


def _meant(by: Expression | Name, named: dict[str, Expression]) -> Operand:
    """What ORDER BY means: a column of the answer, or one of the sources."""
    found = named.get(by.text, ColumnOf(None, by.text, place=by.place)) if isinstance(by, Name) else by
    if isinstance(found, Key):
        raise BadQuery("ORDER BY takes columns of the answer", *found.where)
    return found


def _sortable(operand: Operand, table: _Table) -> NDArray[np.generic]:
    column = table.column(operand)
    return column.estimate if isinstance(column, Values) else _key(column)


def _key(column: Column) -> NDArray[np.generic]:
    """A key as something to compare by."""
    match column:
        case CellKeys():
            return column.texts
        case BucketKeys():
            return column.starts_us
        case BinKeys():
            return np.where(np.isnan(column.low), np.inf, column.low)
        case _:
            raise BadQuery("answers are joined by cells, buckets and bins, not by statistics")


def _taken(column: Column, rows: NDArray[np.intp]) -> Column:
    match column:
        case CellKeys():
            return CellKeys(column.texts[rows])
        case BucketKeys():
            ends = None if column.ends_us is None else column.ends_us[rows]
            return BucketKeys(column.starts_us[rows], column.timezone, ends)
        case BinKeys():
            return BinKeys(column.low[rows], column.high[rows])
        case Names():
            return Names(column.texts[rows])
        case Points():
            return Points(column.numbers[rows])
        case _:
            return column.take(rows)


def _rows(asked: Join, answers: Sequence[Answer]) -> list[NDArray[np.intp]]:
    """For each row of the join, where it stands in each answer."""
    if not asked.on:
        if any(len(answer) != 1 for answer in answers):
            raise BadQuery(
                "answers with several rows are joined by their keys; add USING (cell), or ON a.cell = b.cell"
            )
        return [np.zeros(1, np.intp) for _ in answers]
    codes = [np.zeros(len(answer), np.int64) for answer in answers]
    for names in asked.on:
        keys = [_named(answer, name) for answer, name in zip(answers, names, strict=True)]
        if len({key.dtype.kind for key in keys}) > 1:
            raise BadQuery(f"{' and '.join(dict.fromkeys(names))} are keys of different kinds, which are never equal")
        known, number = np.unique(np.concatenate(keys), return_inverse=True)
        ends = np.cumsum([0, *(key.size for key in keys)])
        own = [number.reshape(-1)[begin:end] for begin, end in pairwise(ends)]
        codes = [code * known.size + each for code, each in zip(codes, own, strict=True)]
    for code, source in zip(codes, asked.sources, strict=True):
        if np.unique(code).size < code.size:
            raise BadQuery(f"{source.alias} has several rows with the same keys; join by all that it groups by")
    shared = codes[0]
    for code in codes[1:]:
        shared = np.intersect1d(shared, code)
    shared = codes[0][np.isin(codes[0], shared)]
    found = []
    for code in codes:
        order = np.argsort(code)
        found.append(order[np.searchsorted(code[order], shared)])
    return found


def _named(answer: Answer, name: str) -> NDArray[np.generic]:
    if name not in answer.columns:
        hint = nearest(name, tuple(answer.columns)) or ";"
        raise BadQuery(f"no column {name!r} to join by{hint} there are {', '.join(answer.columns)}")
    return _key(answer.column(name))


def _truth(condition: Condition, table: _Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of which rows the estimates make a condition true, and of which false."""
    match condition:
        case GroupIs():
            return true_of(condition.comparison, table.of(condition.left), table.of(condition.right))
        case Not():
            true, false = _truth(condition.condition, table)
            return false, true
        case And() | Or():
            parts = [_truth(part, table) for part in condition.conditions]
            true, false = np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])
            if isinstance(condition, And):
                return np.logical_and.reduce(true), np.logical_or.reduce(false)
            return np.logical_or.reduce(true), np.logical_and.reduce(false)
    raise BadQuery("WHERE of a join compares columns of what is joined", *condition.where)
