"""Sketches in memory: what questions are put to, and what they can be made into.

A whole sketch and a part of one are the same kind of thing: both are queried, selected from, added, compared, walked
and written as tables.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from synopsis.core.errors import BadQuery
from synopsis.core.sizes import format_bytes
from synopsis.core.spec import Spec
from synopsis.fidelity import Fidelity, as_table, fidelity, halves
from synopsis.query.answer import Answer, AsOf
from synopsis.query.binding import bind
from synopsis.query.coverage import coverage
from synopsis.query.differences import difference
from synopsis.query.drifts import drift
from synopsis.query.evaluate import answer_of, asked_of
from synopsis.query.explain import Explanation, explain
from synopsis.query.plain import plain_condition
from synopsis.query.relation import Relation, check_numbers, merged, under
from synopsis.query.scoping import placed
from synopsis.query.spelling import canonical, question_of
from synopsis.query.sql import written_condition
from synopsis.query.synthesis import Names
from synopsis.query.tables import to_table
from synopsis.query.tree import EVERYTHING, Aggregate, Item, Question, Selection
from synopsis.query.values import Value
from synopsis.query.vertices import Vertex
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.sketch.summary import Summary
from synopsis.sketch.tree import Tree
from synopsis.store.saving import save
from synopsis.store.store import Store
from synopsis.synthetic import Synthetic

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Sketch:
    """A sketch in memory, or a part of one."""

    def __init__(self, relation: Relation, spec: Spec, as_of: AsOf | None = None) -> None:
        self.relation, self.spec, self.as_of = relation, spec, as_of

    @property
    def strands(self) -> Strands:
        """What is kept exactly, by cell and bucket; empty where there is a summary."""
        return self.relation.strands

    @property
    def summary(self) -> Summary | None:
        """Strata and paths, where there is a byte budget."""
        return self.relation.summary

    @property
    def layout(self) -> Layout:
        """Its grain and features."""
        return self.relation.layout

    @property
    def features(self) -> tuple[str, ...]:
        """The features that can be asked for."""
        return self.layout.features

    @property
    def rows(self) -> int:
        """How many rows it counts; for a part with a condition, those that the condition is put to."""
        return self.relation.rows

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in memory."""
        return self.relation.nbytes

    @property
    def where(self) -> str | None:
        """The condition under which every question to this part is answered, as SQL; None for a whole sketch."""
        return None if self.relation.where == EVERYTHING else written_condition(self.relation.where)

    # --- questions ----------------------------------------------------------------------------------------------------

    def query(
        self,
        text: str | Mapping[str, Any],
        *,
        strict: bool = False,
        cut: str | None = None,
        sketches: Mapping[str, Sketch] | None = None,
    ) -> Any:
        """Answer a question, in SQL or as JSON: an `Answer`, or for plain columns a `Sketch`, the part selected.

        `strict` refuses groups finer than what the sketch keeps, which are answered by coarser ones otherwise.
        `cut="keep"` and `cut="drop"` count what the scope cuts whole or not at all, as the paper does, instead of
        giving the interval between. `sketches` are others that FROM can name. Cost: in proportion to the strands, or
        strata and paths, touched.
        """
        begun = time.perf_counter()
        others = {name: each.relation for name, each in (sketches or {}).items()}
        found = asked_of(self.relation, text, others, strict=strict, cut=cut)
        if isinstance(found, Relation):
            return Sketch(found, self.spec.of_features(found.layout.features), self.as_of)
        return found.stamped(time.perf_counter() - begun, self.as_of, _About(self.relation, text))

    def select(self, text: str | Mapping[str, Any], *, cut: str | None = None) -> Sketch:
        """The part of the sketch that plain columns select, as in SELECT temp_c, rh WHERE location LIKE '6g%'."""
        found = self.query(text, cut=cut)
        if not isinstance(found, Sketch):
            raise BadQuery("these are statistics, not a part of the sketch; select plain columns, or ask db.query")
        return found

    def explain(self, text: str | Mapping[str, Any], *, sketches: Mapping[str, Sketch] | None = None) -> Explanation:
        """How a question is answered: what it touches, what makes each interval as wide as it is, time by stage."""
        words = text.lstrip() if isinstance(text, str) else ""
        plain = words[len("EXPLAIN") :] if words[:8].upper() == "EXPLAIN " else text
        return explain(self.relation, plain, {name: each.relation for name, each in (sketches or {}).items()})

    # --- algebra ------------------------------------------------------------------------------------------------------

    def __add__(self, other: Sketch) -> Sketch:
        """Both together, rows in both counting twice; they must be of one layout, as parts of one sketch are."""
        return Sketch(merged(self.relation, other.relation), self.spec)

    def difference(self, other: Sketch, text: str | Mapping[str, Any]) -> Answer:
        """The answer here minus the answer there, group by group, with intervals.

        `db.select(june).difference(db.select(january), "SELECT CELL(3), MEAN(temp_c) GROUP BY CELL(3)")`
        """
        return difference(self.relation, other.relation, text)

    def drift(self, other: Sketch) -> Answer:
        """How far each feature has moved from the other to this: difference of means, ratio of standard deviations,
        and the largest difference of the shares of rows below any value (Kolmogorov's distance), with intervals."""
        return drift(self.relation, other.relation)

    # --- rows that were never observed --------------------------------------------------------------------------------

    def synthesize(
        self,
        rows: int | None = None,
        share: float | None = None,
        where: str | None = None,
        seed: int = 0,
        features: Sequence[str] | None = None,
    ) -> pa.Table:
        """Synthetic rows with the columns of the observations, as an Arrow table in random order.

        So many rows, or so large a share of those that there are; `where` as in a question, "rh > 80 AND lat < 0". They
        have the joint structure that paths keep: which bins go together, places, days, what is missing. Who needs a few
        `features` alone names them: rows then have these, and are chosen to be like all rows in these. `synthetic`
        gives the same as a stream, for more rows than fit in memory.
        """
        return self.synthetic(rows, share, where, seed, features).to_arrow()

    def synthetic(
        self,
        rows: int | None = None,
        share: float | None = None,
        where: str | None = None,
        seed: int = 0,
        features: Sequence[str] | None = None,
    ) -> Synthetic:
        """Synthetic rows as a stream of Arrow batches: any number, in the memory of a block and some 300,000 rows.

        Also as files, Spark frames, and datasets to learn from: see `Synthetic`.
        """
        relation = self.relation
        if where is not None:
            asked = question_of(f"SELECT * WHERE {where}")
            if not isinstance(asked, Selection):
                raise BadQuery('where takes a condition alone, as in where="rh > 80 AND lat < 0"')
            check_numbers(asked.scope)
            relation = replace(relation, where=under(relation.where, asked.scope))
        names = Names(self.spec.lat, self.spec.lon, self.spec.time)
        named = None if features is None else tuple(features)
        return Synthetic(relation, names, rows, share, seed, self.place, where, named)

    @property
    def place(self) -> str | None:
        """Where it is stored; None for a part in memory."""
        return None

    def fidelity(
        self,
        real: Any,
        rows: int | None = None,
        seed: int = 0,
        sample: Any = None,
        where: str | None = None,
        features: Sequence[str] | None = None,
    ) -> Fidelity:
        """How well synthetic rows stand for real ones: distributions, correlations, and whether a classifier can tell.

        `real` are observations (Arrow table, pandas frame), best such that the sketch has not seen. Beside the same
        figures of synthetic rows, as many as there are real ones unless `rows` says so, are those of an equal-size
        sample of real rows: of `sample`, or else one half of `real` against the other. Rows have all features, or those
        that are named. Needs scikit-learn and scipy: pip install 'synopsis[fidelity]'.
        """
        names = self.features if features is None else tuple(features)
        seen = as_table(real, names)
        rivals = None if sample is None else as_table(sample, names)
        first, second = halves(seen, rivals, rows, seed)
        drawn = self.synthesize(rows=second.num_rows, where=where, seed=seed, features=features)
        return fidelity(first, drawn.select(list(names)), second, seed)

    # --- as data ------------------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """The sketch as a table: a row for each strand with its statistics, or for each path with its bins and the
        rows that it stands for. Cost: proportional to all of it."""
        return to_table(self.relation)

    def to_pandas(self) -> Any:
        """The table of `to_arrow` as a pandas frame."""
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table of `to_arrow`, for all that takes Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @cached_property
    def tree(self) -> Tree:
        """The strands as the paper's tree, planes ordered by fan-out."""
        return Tree.of_strands(self.strands).compacted()

    @property
    def root(self) -> Vertex:
        """The root of the sketch's tree, from which `children` leads down plane by plane."""
        return Vertex(self.relation)

    def walk(self, *planes: str) -> Iterator[Vertex]:
        """All vertices under these planes, parents first: `db.walk("CELL(2)", "BUCKET('1mo')", "BIN(temp_c)")`."""
        return self.root.walk(*planes)

    def save(self, to: str | os.PathLike[str]) -> None:
        """Write it as a sketch of its own, to a folder or an object-store address where there is none yet."""
        relation = self.relation
        where = None if relation.where == EVERYTHING else plain_condition(relation.where)
        watermark = None if self.as_of is None or self.as_of.watermark is None else self.as_of.watermark
        watermark_us = None if watermark is None else (watermark - _EPOCH) // timedelta(microseconds=1)
        save(Store(os.fspath(to)), self.spec, relation.strands, relation.summary, relation.members, where, watermark_us)

    def __repr__(self) -> str:
        grain = self.layout.grain if self.summary is None else self.summary.grain
        under_condition = "" if self.where is None else f" WHERE {self.where}"
        return f"<part of a synopsis, {self.rows:,} rows: {grain}, {format_bytes(self.nbytes)}{under_condition}>"


@dataclass(frozen=True)
class _About:
    """What an answer finds out about its scope: only questions to one sketch have one."""

    relation: Relation
    text: str | Mapping[str, Any]

    @property
    def _rows(self) -> Question | None:
        asked = question_of(canonical(self.text))
        if not isinstance(asked, Question) or asked.sketch is not None:
            return None
        return Question((Item("n", Aggregate("count")),), asked.scope)

    def n(self) -> Value | None:
        if self._rows is None:
            return None
        value: Value = answer_of(self.relation, self._rows)["n"]
        return value

    def coverage(self) -> float | None:
        if self._rows is None:
            return None
        scope = under(self.relation.where, placed(self._rows.scope, self.relation.layout))
        return coverage(self.relation, bind(Question(self._rows.items, scope), self.relation.layout))
