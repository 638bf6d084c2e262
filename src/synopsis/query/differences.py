"""Differences: the same question put to two sketches, one answer minus the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synopsis.core.errors import BadQuery
from synopsis.query.answer import Answer
from synopsis.query.evaluate import answer_of
from synopsis.query.joins import joined
from synopsis.query.relation import Relation
from synopsis.query.spelling import canonical, question_of
from synopsis.query.tree import Arithmetic, ColumnOf, Item, Join, Key, Question, Source


def difference(here: Relation, there: Relation, text: str | Mapping[str, Any]) -> Answer:
    """The answer here minus the answer there, for the groups that both have. Cost: that of both."""
    question = question_of(canonical(text))
    if not isinstance(question, Question):
        raise BadQuery("a difference is of statistics; ask for example SELECT CELL(3), MEAN(temp_c) GROUP BY CELL(3)")
    if question.limit is not None or question.having is not None or question.order:
        raise BadQuery("a difference takes no HAVING, ORDER BY and LIMIT: which groups both have is known afterwards")
    is_key = {item.name: isinstance(item.expression, Key) for item in question.items}
    items = tuple(
        Item(name, ColumnOf("here", name) if key else Arithmetic("-", ColumnOf("here", name), ColumnOf("there", name)))
        for name, key in is_key.items()
    )
    sources = Source("here", question), Source("there", question)
    contrast = Join(items, sources, tuple((name, name) for name, key in is_key.items() if key))
    return joined(contrast, [answer_of(each, question) for each in (here, there)])
