"""Vertices: the paper's tree of a sketch, walked from the root, with the statistics of every vertex on demand.

A plane is a group key: cells of some length, buckets of some span, bins of a feature. A vertex is one key of each plane
above it; it is not kept anywhere, but asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from synopsis.core.errors import BadQuery
from synopsis.query.answer import Answer, Bin, BucketKeys
from synopsis.query.evaluate import answer_of
from synopsis.query.language import read
from synopsis.query.relation import Relation
from synopsis.query.tree import (
    Aggregate,
    And,
    BinKey,
    BucketKey,
    CellKey,
    Condition,
    FeatureIs,
    FeatureNull,
    InCells,
    Item,
    Key,
    Moment,
    Name,
    Question,
    TimeIs,
)
from synopsis.query.values import Value


@dataclass(frozen=True, eq=False)
class Vertex:
    """A vertex of a sketch's tree: the keys on the way to it."""

    relation: Relation
    keys: dict[str, Any] = field(default_factory=dict)  #: plane to key: a geohash, the start of a bucket, a `Bin`
    conditions: tuple[Condition, ...] = ()

    def children(self, plane: str) -> list[Vertex]:
        """The vertices below this one on a plane such as CELL(3), BUCKET('1mo') or BIN(temp_c), in order."""
        key = _plane(plane)
        answer = answer_of(self.relation, Question((Item("key", key),), self._where, (key,)), strict=True)
        return [
            Vertex(self.relation, {**self.keys, plane: found}, (*self.conditions, condition))
            for found, condition in _conditions(answer, key)
        ]

    def walk(self, *planes: str) -> Iterator[Vertex]:
        """This vertex and all below it on these planes, parents first."""
        yield self
        if planes:
            for child in self.children(planes[0]):
                yield from child.walk(*planes[1:])

    @cached_property
    def count(self) -> Value:
        """How many rows lie under it."""
        answer = answer_of(self.relation, Question((Item("rows", Aggregate("count")),), self._where))
        value: Value = answer["rows"]
        return value

    @cached_property
    def statistics(self) -> dict[str, dict[str, Value]]:
        """Of every feature: count, mean, std, min and max of the rows under it."""
        names, functions = self.relation.layout.features, ("count", "mean", "std", "min", "max")
        items = tuple(Item(f"{f} {name}", Aggregate(f, (Name(name),))) for name in names for f in functions)
        answer = answer_of(self.relation, Question(items, self._where))
        return {name: {function: answer[f"{function} {name}"] for function in functions} for name in names}

    @property
    def _where(self) -> Condition:
        return And(self.conditions)

    def __repr__(self) -> str:
        path = " / ".join(key.isoformat() if isinstance(key, datetime) else str(key) for key in self.keys.values())
        return f"<vertex {path or 'root'}: {self.count}>"


def _plane(text: str) -> Key:
    found = read(f"SELECT {text} GROUP BY {text}")
    if not isinstance(found, Question) or len(found.groups) != 1:
        raise BadQuery(f"{text!r} is not a plane; name one such as CELL(3), BUCKET('1mo') or BIN(temp_c)")
    return replace(found.groups[0])


def _conditions(answer: Answer, key: Key) -> Iterator[tuple[Any, Condition]]:
    """The keys of an answer, and what holds for the rows of each."""
    column = answer.column("key")
    last = len(column) - 1
    for row in range(len(column)):
        found = column[row]
        match key:
            case CellKey():
                yield found, InCells((str(found),))
            case BucketKey():
                assert isinstance(column, BucketKeys)
                assert column.ends_us is not None
                ends = (int(column.starts_us[row]), int(column.ends_us[row]))
                moments = (Moment(end, "UTC") for end in ends)
                yield found, And(tuple(TimeIs(sign, each) for sign, each in zip((">=", "<"), moments, strict=True)))
            case BinKey() if isinstance(found, Bin):
                closed = key.width is None and (row == last or column[row + 1] is None)
                low = FeatureIs(key.name, ">=", found.low)
                yield found, And((low, FeatureIs(key.name, "<=" if closed else "<", found.high)))
            case BinKey():
                yield None, FeatureNull(key.name)
