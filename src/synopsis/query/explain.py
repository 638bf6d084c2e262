"""Explaining: what a question touches, how long each stage takes, and what makes its intervals as wide as they are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from synopsis.core.errors import BadQuery
from synopsis.core.sizes import format_bytes
from synopsis.query import paths
from synopsis.query.binding import Keyed, Plan, Statistic, bind
from synopsis.query.evaluate import answering_of, named, planning_of
from synopsis.query.finish import Found, finish
from synopsis.query.regions import Both, Cells, Either, Outside, Region
from synopsis.query.relation import Relation, selected, under
from synopsis.query.scope import select
from synopsis.query.scoping import Scope
from synopsis.query.shapes import Box, Circle
from synopsis.query.spelling import canonical, question_of
from synopsis.query.sql import written_condition
from synopsis.query.thresholds import answered, thresholds
from synopsis.query.tree import EVERYTHING, Curve, Join, Question, Selection
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


def explain(
    relation: Relation, text: str | Mapping[str, Any], others: Mapping[str, Relation] | None = None
) -> Explanation:
    """Answer a question and tell how. Cost: that of the answer, and of looking at its scope once more."""
    begun = time.perf_counter()
    asked = question_of.__wrapped__(canonical(text))  # as if it were new
    parsed = time.perf_counter() - begun
    match asked:
        case Selection():
            part = selected(named(asked.sketch, relation, others), asked)
            facts: dict[str, Any] = {"part": f"of {len(part.layout.features)} features, {format_bytes(part.nbytes)}"}
            facts["condition"] = "none" if part.where == EVERYTHING else written_condition(part.where)
            return Explanation(facts)
        case Curve():
            raise BadQuery(f"{asked.function.upper()} is made of other questions; explain one of them", *asked.where)
        case Join():
            facts = {
                source.alias: str(_explained(named(source.question.sketch, relation, others), source.question, 0.0))
                for source in asked.sources
            }
            return Explanation({name: dict(enumerate(told.splitlines(), 1)) for name, told in facts.items()})
        case Question():
            return _explained(named(asked.sketch, relation, others), asked, parsed)


def _explained(relation: Relation, question: Question, parsed: float) -> Explanation:
    strands, summary, layout = relation.strands, relation.summary, relation.layout
    question = replace(question, scope=under(relation.where, question.scope))
    answering, planned = answering_of(relation), planning_of(relation)
    marks = [time.perf_counter()]
    if summary is not None and thresholds(question.scope):
        asked, found = answered(question, layout, planned, answering)
        marks += [marks[-1], time.perf_counter()]
    else:
        asked = planned(bind(question, layout))
        marks.append(time.perf_counter())
        found = answering(asked)
        marks.append(time.perf_counter())
    answer = finish(asked, found, layout)
    marks.append(time.perf_counter())
    stages = ("parse", "plan", "evaluate", "finish")
    took = [parsed, *(after - before for before, after in pairwise(marks))]
    times = {stage: f"{seconds * 1e3:.2f} ms" for stage, seconds in zip(stages, took, strict=True)}
    facts: dict[str, Any] = {"scope": _scopes(asked), "groups": len(answer)}
    touched = _of_strands(strands, asked) if summary is None else paths.touched(summary, layout, asked)
    facts |= {"touched": {name: _told(name, each) for name, each in touched.items()}}
    facts["columns"] = {
        name: _why(asked, source, found, touched, summary)
        for name, source in asked.columns
        if not isinstance(source, Keyed)
    }
    facts["exact"] = f"all statistics on whole strands of {layout.grain}"
    if summary is not None:
        places = "cells" if summary.layout.moving else "places"
        facts["exact"] = f"COUNT on whole {_days(summary)} of whole {places}; counts of bins by {summary.span}"
    if asked.notes:
        facts["notes"] = "; ".join(asked.notes)
    return Explanation(facts | {"times": times})


def _days(summary: Summary) -> str:
    spell = summary.layout.spell
    return "days" if spell == 1 else f"spells of {spell} days"


def _told(name: str, fact: Any) -> str:
    return format_bytes(fact) if name.endswith("bytes") else f"{fact:,}" if isinstance(fact, int) else str(fact)


def _of_strands(strands: Strands, asked: Plan) -> dict[str, Any]:
    selections = [select(part.scope, strands) for part in asked.parts]
    inside, cut = sum(each.inside_size for each in selections), sum(int(each.cut.size) for each in selections)
    return {"strands": len(strands), "inside": inside, "cut": cut}


def _scopes(asked: Plan) -> str | dict[str, str]:
    """The scope, or those of all parts where ORs and NOTs make several."""
    if len(asked.parts) == 1:
        return _scope(asked.parts[0].scope)
    return {f"part {at}": _scope(part.scope) for at, part in enumerate(asked.parts, 1)}


def _scope(scope: Scope) -> str:
    """Places and times in words."""
    parts = [] if scope.prefixes is None else [f"{len(scope.prefixes)} geohashes"]
    parts += map(_region, scope.shapes)
    ends = [name for name, end in (("from", scope.from_us), ("until", scope.until_us)) if end is not None]
    return ", ".join([*(parts or ["all places"]), f"time {' and '.join(ends)}" if ends else "all times"])


def _region(region: Region) -> str:
    match region:
        case Box():
            return "a box"
        case Circle():
            return f"a circle of {region.km:g} km"
        case Cells():
            return f"{len(region.prefixes)} geohashes"
        case Either():
            return f"any of ({', '.join(map(_region, region.parts))})"
        case Both():
            return f"all of ({', '.join(map(_region, region.parts))})"
        case Outside():
            return f"outside {_region(region.region)}"
        case _:
            return "a polygon"


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
            reasons.append(f"{touched['days cut']:,} {_days(summary)} are cut by the scope; whole ones would not be")
        if touched["places cut"]:
            reasons.append(f"{touched['places cut']:,} cells are cut by the scope")
        if asked.has_conditions:
            reasons.append("how many rows fulfil the condition is known by bins")
        if not isinstance(source, Statistic) or source.function != "count":
            reasons.append(f"values are known by bins ({summary.layout.bins} of a feature)")
        if touched["paths"]:
            reasons.append(f"a path stands for {touched['rows'] / touched['paths']:.1f} rows")
        else:
            reasons.append("no path is in scope")
    return f"{weakest}: {'; '.join(reasons)}"
