"""Explaining: what a question touches, how long each stage takes, and what makes its intervals as wide as they are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from synopsis.core.sizes import format_bytes
from synopsis.query import paths
from synopsis.query.binding import Plan, Scope, Statistic, bind
from synopsis.query.evaluate import answering_of
from synopsis.query.finish import Found, finish
from synopsis.query.predicates import EVERYTHING
from synopsis.query.scope import select
from synopsis.query.shapes import Box, Circle, Polygon
from synopsis.query.spelling import canonical, question_of
from synopsis.query.thresholds import answered, thresholds
from synopsis.query.tree import BucketKey, CellKey
from synopsis.query.values import GUARANTEES, Values
from synopsis.sketch.strands import Strands
from synopsis.sketch.summary import Summary


@dataclass(frozen=True)
class Explanation:
    """How a question is answered. `facts` are plain values by part; as text it is a line for each."""

    facts: dict[str, Any]

    def __str__(self) -> str:
        return "\n".join(f"{part:<10} {what}" for part, what in self.lines())

    def lines(self) -> Iterator[tuple[str, str]]:
        """Part and what there is to say of it."""
        for part, what in self.facts.items():
            if isinstance(what, dict):
                for name, each in what.items():
                    yield part, f"{name}: {each}"
            else:
                yield part, str(what)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def explain(strands: Strands, text: str | Mapping[str, Any], summary: Summary | None = None) -> Explanation:
    """Answer a question and tell how. Cost: that of the answer, and of looking at its scope once more."""
    text, layout, marks = canonical(text), strands.layout, [time.perf_counter()]
    answering = answering_of(strands, summary)
    question = question_of.__wrapped__(text)  # as if it were new
    marks.append(time.perf_counter())
    if summary is not None and thresholds(question.scope):
        asked, found = answered(question, layout, answering)
        marks += [marks[-1], time.perf_counter()]
    else:
        asked = bind(question, layout)
        marks.append(time.perf_counter())
        found = answering(asked)
        marks.append(time.perf_counter())
    answer = finish(asked, found, layout)
    marks.append(time.perf_counter())
    stages = ("parse", "plan", "evaluate", "finish")
    times = {
        stage: f"{(after - before) * 1e3:.2f} ms"
        for stage, before, after in zip(stages, marks, marks[1:], strict=False)
    }
    facts: dict[str, Any] = {"scope": _scope(asked.scope), "groups": len(answer)}
    touched = _of_strands(strands, asked) if summary is None else paths.touched(summary, layout, asked)
    facts |= {"touched": {name: _told(name, each) for name, each in touched.items()}}
    facts["columns"] = {
        name: _why(asked, source, found, touched, summary)
        for name, source in asked.columns
        if not isinstance(source, CellKey | BucketKey)
    }
    facts["exact"] = f"all statistics on whole strands of {layout.grain}"
    if summary is not None:
        places = "cells" if summary.layout.moving else "places"
        facts["exact"] = f"COUNT on whole days of whole {places}; counts of bins by {summary.span}"
    return Explanation(facts | {"times": times})


def _told(name: str, fact: Any) -> str:
    return format_bytes(fact) if name.endswith("bytes") else f"{fact:,}" if isinstance(fact, int) else str(fact)


def _of_strands(strands: Strands, asked: Plan) -> dict[str, Any]:
    selection = select(asked.scope, strands)
    return {"strands": len(strands), "inside": selection.inside_size, "cut": int(selection.cut.size)}


def _scope(scope: Scope) -> str:
    """Places and times in words."""
    parts = [] if scope.prefixes is None else [f"{len(scope.prefixes)} geohashes"]
    for shape in scope.shapes:
        match shape:
            case Box():
                parts.append("a box")
            case Circle():
                parts.append(f"a circle of {shape.km:g} km")
            case Polygon():
                parts.append("a polygon")
    ends = [name for name, end in (("from", scope.from_us), ("until", scope.until_us)) if end is not None]
    return ", ".join([*(parts or ["all places"]), f"time {' and '.join(ends)}" if ends else "all times"])


def _why(asked: Plan, source: Any, found: Found, touched: dict[str, Any], summary: Summary | None) -> str:
    """What a column promises, and what is in the way of more."""
    values: Values = found.of(source)
    if not len(values):
        return "no groups"
    weakest = GUARANTEES[int(values.guarantee.max())]
    if weakest == "exact":
        return "exact"
    reasons = []
    if summary is None:
        reasons.append(f"{touched['cut']:,} strands are cut by the scope; whole ones would make it exact")
    else:
        if touched["days cut"]:
            reasons.append(f"{touched['days cut']:,} days are cut by the scope; whole days would not be")
        if touched["places cut"]:
            reasons.append(f"{touched['places cut']:,} cells are cut by the scope")
        if asked.condition != EVERYTHING:
            reasons.append("how many rows fulfil the condition is known by bins")
        if not isinstance(source, Statistic) or source.function != "count":
            reasons.append(f"values are known by bins ({summary.layout.bins} of a feature)")
        if touched["paths"]:
            reasons.append(f"a path stands for {touched['rows'] / touched['paths']:.1f} rows")
        else:
            reasons.append("no path is in scope")
    return f"{weakest}: {'; '.join(reasons)}"
