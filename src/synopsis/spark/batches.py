"""One batch on its way into a sketch: what every kind of sketch does with it, whatever it makes of its rows."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any

from pyspark.sql import SparkSession

from synopsis.core.errors import BadSpec, BadTarget, EmptySource, RowsRejected, SpecDiffers
from synopsis.core.report import Report
from synopsis.core.spec import Spec
from synopsis.sketch.members import SHARE, Members
from synopsis.spark import aggregate, members, progress
from synopsis.spark.aggregate import Outcome
from synopsis.spark.observations import Observations
from synopsis.store import members as members_of
from synopsis.store.files import Written, write_file
from synopsis.store.store import Batch, State, Store

#: How often a commit that another build overtook is tried again.
TRIES = 8

#: Fields that may differ from one build to the next: they say how to read a source, not what the sketch is.
_FREE = frozenset({"lat", "lon", "time", "entity", "name_column", "value_column", "time_unit", "memory"})


@dataclass(frozen=True, eq=False)
class Adding:
    """A batch, and the sketch that it is added to."""

    spark: SparkSession
    observed: Observations
    spec: Spec
    store: Store
    name: str  #: of the batch
    source: str  #: what its rows are called
    attempt: str
    strict: bool
    bar: progress.Show
    began: float

    def watched(self, what: str) -> AbstractContextManager[None]:
        """Progress of what Spark does meanwhile."""
        return progress.watched(self.spark, what, self.bar)

    def check(self, state: State | None) -> None:
        """Refuse what the sketch that is there cannot take: it goes on with the spec that it began with."""
        check_spec(state, self.spec, self.store)

    def accepted(self, outcome: Outcome) -> int:
        """How many rows were set aside; an error where none is left, or none may be set aside."""
        rejected = sum(outcome.rejected.values())
        if not outcome.rows:
            raise EmptySource(self.source, rejected)
        if rejected and self.strict:
            raise RowsRejected(outcome.rejected)
        return rejected

    def batch(self, outcome: Outcome) -> Batch:
        """What the commit remembers."""
        return Batch(self.name, outcome.rows, outcome.rejected, outcome.missing, outcome.last_us)

    def rejects(self) -> tuple[Written, ...]:
        """Write the rows that are set aside."""
        with self.watched("setting rows aside"):
            return aggregate.write_rejects(self.observed, self.name, self.store.rejects_place, self.attempt)

    def repeated(self) -> Report:
        """What a batch adds that is there already: nothing."""
        return repeated(self.store, self.name, self.began)

    def report(self, outcome: Outcome, rejected: int, sketch_bytes: int, **what: Any) -> Report:
        """What the build came to."""
        return Report(
            rows=outcome.rows,
            rejected=rejected,
            sketch_bytes=sketch_bytes,
            stored_bytes=self.store.stored_bytes(),
            seconds=time.monotonic() - self.began,
            batch=self.name,
            reasons=outcome.rejected,
            missing=outcome.missing,
            **what,
        )

    def overtaken(self) -> BadTarget:
        """What to say when other builds are always faster."""
        return BadTarget(
            f"other builds kept changing {self.store.place}; nothing was added, try again when they are done"
        )

    # --- members ------------------------------------------------------------------------------------------------------

    def gathered(self, state: State | None, found: Outcome) -> Members | None:
        """The members of the batch's spans; None where the sketch keeps none, which it then never will."""
        if self.spec.entity is None or (state is not None and state.members_version is None):
            return None
        with self.watched("gathering members"):
            assert found.first_us is not None
            assert found.last_us is not None
            return members.gathered(self.observed, self.spec, self.spec.memory, found.first_us, found.last_us)

    def all_members(self, state: State | None, new: Members | None) -> Members | None:
        """The members of all batches, within their share of the budget."""
        before = self.store.members(state) if state is not None else None
        if new is None or state is None:
            return new
        return None if before is None else (before + new).within(int(self.spec.memory * SHARE))

    def put_members(self, found: Members | None) -> tuple[tuple[Written, ...], int | None]:
        """Write the members: their file, and the version that the commit names."""
        if found is None:
            return (), None
        file = write_file(members_of.to_table(found), self.store.members_place, self.attempt)
        return (file,), self.store.put_members(file)


def check_spec(state: State | None, spec: Spec, store: Store) -> None:
    """A sketch goes on with the spec that it began with."""
    if state is None:
        return
    if state.where is not None:
        raise BadTarget(
            f"{store.place} is a part of a sketch under a condition, to which rows cannot be added; "
            "build into the whole sketch, or give another folder"
        )
    different = {
        each.name: (repr(getattr(state.spec, each.name)), repr(getattr(spec, each.name)))
        for each in fields(Spec)
        if each.name not in _FREE and getattr(state.spec, each.name) != getattr(spec, each.name)
    }
    if different:
        raise SpecDiffers(store.place, different)
    if state.members_version is not None and spec.entity is None:
        raise BadSpec(
            f"{store.place} keeps who was where, and this spec names no entity; "
            f"give the column that says who observed, as entity={state.spec.entity!r} does there"
        )


def repeated(store: Store, batch: str, began: float) -> Report:
    """The report of a batch that is there already."""
    state = store.require_state()
    strands, summary, members = store.strands(state), store.summary(state), store.members(state)
    return Report(
        rows=0,
        rejected=0,
        leaves=len(strands) if summary is None else summary.strata,
        sketch_bytes=(strands.nbytes if summary is None else summary.nbytes) + (members.nbytes if members else 0),
        stored_bytes=store.stored_bytes(),
        seconds=time.monotonic() - began,
        grain=state.layout.grain if summary is None else summary.grain,
        batch=batch,
        repeated=True,
        kind="strands" if summary is None else "strata",
    )
