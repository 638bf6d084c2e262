"""Building: a source, a spec, a target; afterwards the sketch holds the source's rows, once.

    source ─▶ observations ─┬─▶ plan ─▶ sums and strands in the executors ─▶ files ─▶ rejects ─▶ one commit
                            └─▶ statistics ─▶ plan ─▶ tallies and strata in the executors ─▶ summary ─▶ the same

A promised grain makes strands; without a promise the sketch is a summary of strata and paths, and strands only where
the budget has no room for one.

Nothing is visible before the commit, and what a build leaves that no commit names it takes away again. One that was
killed leaves files that nobody sees.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from synopsis.core.errors import BadTarget, BudgetTooSmall, EmptySource, RowsRejected, SpecDiffers
from synopsis.core.report import Report
from synopsis.core.spec import Spec
from synopsis.sketch import planner
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.layout import Layout
from synopsis.sketch.scales import Scales
from synopsis.sketch.strands import Strands
from synopsis.sketch.summary import PathLayout, Summary
from synopsis.spark import aggregate, jobs, paths, progress
from synopsis.spark import session as sessions
from synopsis.spark.aggregate import Outcome
from synopsis.spark.observations import Observations, observations
from synopsis.spark.sources import Source, located, opened
from synopsis.store import summaries
from synopsis.store.codec import to_table
from synopsis.store.files import Written, new_attempt, write_file
from synopsis.store.store import Batch, State, Store

#: How often a commit that another build overtook is tried again.
_TRIES = 8

#: Share of the budget below which it is worth building again with more paths, and what is aimed at then.
_WELL_USED, _AIMED = 0.8, 0.97

#: Fields that may differ from one build to the next: they say how to read a source, not what the sketch is.
_FREE = frozenset({"lat", "lon", "time", "entity", "name_column", "value_column", "time_unit", "memory"})


def build(
    source: Source,
    spec: Spec,
    to: str | Path,
    *,
    batch: str | None = None,
    strict: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    show: bool | None = None,
) -> Report:
    """Add the source's rows to the sketch at `to`, which is made where there is none.

    `batch` names what is added: the same batch a second time changes nothing. Without one, files are named by their
    paths, sizes and times of change, tables by their content. `strict` refuses rows that would be set aside. `master`
    and `conf` go to Spark.
    """
    began = time.monotonic()
    planner.promised(spec)  # refuse a spec that makes no sense before Spark starts
    store = Store(to)
    store.check()
    _check_spec(store.state(), spec, store)
    found = located(source)
    name = batch or found.fingerprint
    if store.has_batch(name):
        return _repeated(store, name, began)
    spark, settings = _session(source, master, conf)
    bar = progress.chosen(show)
    try:
        with jobs.told_plainly(), jobs.settings(spark, settings | jobs.SETTINGS), opened(spark, found) as source_frame:
            observed = observations(source_frame, spec, begun=store.state() is not None)
            return _add(spark, observed, found.name, spec, store, name, strict, bar, began)
    finally:
        bar.close()


def _session(source: Source, master: str | None, conf: Mapping[str, str] | None) -> tuple[SparkSession, dict[str, str]]:
    """The session to build in, and what to set in it for the build: a session that runs already keeps its settings."""
    running = source.sparkSession if isinstance(source, DataFrame) else sessions.running()
    if running is None:
        return sessions.session(master, conf), {}
    return running, sessions.changeable(running, master, conf)


def _add(
    spark: SparkSession,
    observed: Observations,
    source: str,
    spec: Spec,
    store: Store,
    name: str,
    strict: bool,
    bar: progress.Show,
    began: float,
) -> Report:
    """Write the files of one batch and commit them."""
    attempt, was_there = new_attempt(), store.exists()
    state = store.state()
    summary = store.summary(state) if state else None
    committed: tuple[Written, ...] = ()
    try:
        if summary is not None or (state is None and spec.exact_at is None):
            with progress.watched(spark, "planning", bar):
                found = paths.statistics(observed)
            rejected = _accepted(found.outcome, source, strict)
            adding = _Paths.planned(spark, observed, spec, found, summary, bar)
            if adding is not None:
                report, committed = _add_paths(adding, rejected, store, name, attempt, began)
                return report
        layout = state.layout if state else planner.promised(spec) or _planned(spark, observed, spec, bar)
        with progress.watched(spark, "summing", bar):
            outcome = aggregate.write_strands(observed, layout, store.sketch_place, attempt)
        rejected = _accepted(outcome, source, strict)
        _check_budget(spec, layout, sum(file.rows for file in outcome.files))
        rejects = _rejects(spark, observed, name, store, attempt, bar) if rejected else ()
        made = Batch(name, outcome.rows, outcome.rejected, outcome.missing, outcome.watermark_us)
        strands, committed = _commit(store, spec, layout, outcome.files, made, rejects, attempt)
    finally:
        store.discard(attempt, committed, was_there=was_there)
    if strands is None:
        return _repeated(store, name, began)
    return Report(
        rows=outcome.rows,
        rejected=rejected,
        leaves=len(strands),
        sketch_bytes=strands.nbytes,
        stored_bytes=store.stored_bytes(),
        seconds=time.monotonic() - began,
        grain=strands.layout.grain,
        batch=name,
        reasons=outcome.rejected,
        missing=outcome.missing,
    )


def _accepted(outcome: Outcome, source: str, strict: bool) -> int:
    """How many rows were set aside; an error where none is left, or none may be set aside."""
    rejected = sum(outcome.rejected.values())
    if not outcome.rows:
        raise EmptySource(source, rejected)
    if rejected and strict:
        raise RowsRejected(outcome.rejected)
    return rejected


def _rejects(
    spark: SparkSession, observed: Observations, name: str, store: Store, attempt: str, bar: progress.Show
) -> tuple[Written, ...]:
    with progress.watched(spark, "setting rows aside", bar):
        return aggregate.write_rejects(observed, name, store.rejects_place, attempt)


# --- summaries --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Paths:
    """A batch that becomes part of a summary: everything that does not change when another build comes first."""

    spark: SparkSession
    observed: Observations
    spec: Spec
    found: paths.Statistics
    scales: Scales
    contexts: Contexts
    layout: PathLayout
    bar: progress.Show

    @classmethod
    def planned(
        cls,
        spark: SparkSession,
        observed: Observations,
        spec: Spec,
        found: paths.Statistics,
        before: Summary | None,
        bar: progress.Show,
    ) -> _Paths | None:
        """With the layout of the summary that is there, or a new one; None where the budget has no room for any."""
        if before is not None:
            return cls(spark, observed, spec, found, before.scales, before.contexts, before.layout, bar)
        with progress.watched(spark, "planning", bar):
            cost = paths.plan(observed, spec, found, spec.memory)
        if cost is None:
            return None
        return cls(spark, observed, spec, found, cost.scales, cost.contexts, cost.layout, bar)

    def fits(self, before: Summary) -> bool:
        """Whether a summary has the same layout."""
        same = self.scales.quantizers == before.scales.quantizers and self.layout == before.layout
        return same and np.array_equal(self.contexts.centres, before.contexts.centres)

    def finer(self, made: Summary) -> _Paths | None:
        """With more paths, where those made take far fewer bytes than the probe foretold."""
        paths = made.parts["paths"]
        if made.nbytes > _WELL_USED * self.spec.memory or self.layout.kept >= 1.0 or not paths:
            return None
        room = _AIMED * self.spec.memory - made.nbytes + paths
        return replace(self, layout=replace(self.layout, kept=min(self.layout.kept * room / paths, 1.0)))

    def again(self, before: Summary) -> _Paths:
        """The same batch in the layout of another summary."""
        return replace(self, scales=before.scales, contexts=before.contexts, layout=before.layout)

    def summary(self) -> Summary:
        """The summary of the batch. The heavy part."""
        with progress.watched(self.spark, "summarising", self.bar):
            expected = int(self.found.outcome.rows * self.layout.kept)
            return paths.summarised(self.observed, self.spec, self.scales, self.contexts, self.layout, expected)


def _add_paths(
    adding: _Paths, rejected: int, store: Store, name: str, attempt: str, began: float
) -> tuple[Report, tuple[Written, ...]]:
    """Make the summary of one batch, add it to what is there, and commit the sum; also the files that are committed."""
    outcome, spec = adding.found.outcome, adding.spec
    new = adding.summary()
    if store.state() is None and (finer := adding.finer(new)) is not None:
        adding, new = finer, finer.summary()
    rejects = _rejects(adding.spark, adding.observed, name, store, attempt, adding.bar) if rejected else ()
    batch = Batch(name, outcome.rows, outcome.rejected, outcome.missing, outcome.watermark_us)
    layout = planner.finest(spec)
    rejects_version = None
    for _ in range(_TRIES):
        state = store.state()
        if state is not None and store.has_batch(name):
            return _repeated(store, name, began), ()
        _check_spec(state, spec, store)
        before = store.summary(state) if state else None
        if state is not None and before is None:
            raise BadTarget(f"another build made {store.place} without paths meanwhile; build again")
        if before is not None and not adding.fits(before):  # another build came first, and planned its own
            adding = adding.again(before)
            new = adding.summary()
        whole = new if before is None else before + new
        whole = replace(whole, scales=whole.scales.widened(adding.found.low, adding.found.high)).within(spec.memory)
        if whole.nbytes > spec.memory:
            raise BudgetTooSmall("the counts of all places and days", whole.nbytes, spec.memory)
        store.prepare()
        if rejects and rejects_version is None:
            rejects_version = store.add_rejects(rejects)
        file = write_file(summaries.to_table(whole), store.paths_place, attempt)
        versions = [rejects_version, state.rejects_version if state else None]
        if store.commit(
            spec,
            layout,
            (),
            batch,
            attempt=attempt,
            after=state,
            rejects_version=max((version for version in versions if version is not None), default=None),
            paths_version=store.put_summary(file),
        ):
            return _reported(whole, outcome, rejected, store, name, began), (file, *rejects)
    raise BadTarget(f"other builds kept changing {store.place}; nothing was added, try again when they are done")


def _reported(summary: Summary, outcome: Outcome, rejected: int, store: Store, name: str, began: float) -> Report:
    return Report(
        rows=outcome.rows,
        rejected=rejected,
        leaves=summary.strata,
        sketch_bytes=summary.nbytes,
        stored_bytes=store.stored_bytes(),
        seconds=time.monotonic() - began,
        grain=summary.grain,
        batch=name,
        reasons=outcome.rejected,
        missing=outcome.missing,
        kind="strata",
    )


# --- strands ----------------------------------------------------------------------------------------------------------


def _planned(spark: SparkSession, observed: Observations, spec: Spec, bar: progress.Show) -> Layout:
    with progress.watched(spark, "planning", bar):
        return planner.choose(spec, aggregate.strand_counts(observed, planner.candidates(spec)))


def _commit(
    store: Store,
    spec: Spec,
    layout: Layout,
    files: tuple[Written, ...],
    batch: Batch,
    rejects: tuple[Written, ...],
    attempt: str,
) -> tuple[Strands | None, tuple[Written, ...]]:
    """Commit the batch within the budget: the whole sketch and the files that hold the batch now.

    No sketch when the batch turns out to be there already. Another build may commit meanwhile, even a coarser layout:
    then the sum of both is made again from what is there.
    """
    new = store.read_strands([file.name for file in files], layout)
    rejects_version = None
    for _ in range(_TRIES):
        state = store.state()
        if state is not None and store.has_batch(batch.id):
            return None, ()
        _check_spec(state, spec, store)
        before = store.strands(state) if state else Strands.empty(layout)
        common = _common(before.layout, layout, spec)
        whole = Strands.joined([_at(common, before), _at(common, new)], common)
        fitted = _fitted(whole, spec)
        appends = fitted.layout == before.layout
        written = files
        if fitted.layout != layout or not appends:
            added = _at(fitted.layout, new) if appends else fitted
            written = (write_file(to_table(added), store.sketch_place, attempt),)
        store.prepare()
        if rejects and rejects_version is None:
            rejects_version = store.add_rejects(rejects)
        versions = [rejects_version, state.rejects_version if state else None]
        if store.commit(
            spec,
            fitted.layout,
            written,
            batch,
            attempt=attempt,
            after=state,
            rejects_version=max((version for version in versions if version is not None), default=None),
            replace=not appends,
        ):
            return fitted, written
    raise BadTarget(f"other builds kept changing {store.place}; nothing was added, try again when they are done")


def _common(one: Layout, two: Layout, spec: Spec) -> Layout:
    """The finest layout in which both nest."""
    if two.nests_in(one):
        return one
    return next(each for each in (two, *planner.candidates(spec)) if one.nests_in(each) and two.nests_in(each))


def _at(layout: Layout, strands: Strands) -> Strands:
    return strands if strands.layout == layout else strands.coarsened(layout)


def _check_budget(spec: Spec, layout: Layout, strands: int) -> None:
    """Refuse a promise that the strands of this batch alone break, before they are read."""
    if spec.exact_at is not None and strands * layout.strand_bytes() > spec.memory:
        raise BudgetTooSmall(f"exact_at={spec.exact_at!r}", strands * layout.strand_bytes(), spec.memory)


def _fitted(strands: Strands, spec: Spec) -> Strands:
    """The strands at the finest grain that fits `memory`; a promised grain does not give way."""
    if strands.nbytes <= spec.memory:
        return strands
    if spec.exact_at is not None:
        raise BudgetTooSmall(f"exact_at={spec.exact_at!r}", strands.nbytes, spec.memory)
    coarser = [layout for layout in planner.candidates(spec) if strands.layout.nests_in(layout)]
    folded = sorted((strands.coarsened(layout) for layout in coarser), key=len, reverse=True)
    fitting = [each for each in folded if each.nbytes <= spec.memory]
    if not fitting:
        raise BudgetTooSmall(f"the coarsest layout ({folded[-1].layout.grain})", folded[-1].nbytes, spec.memory)
    return fitting[0]


def _check_spec(state: State | None, spec: Spec, store: Store) -> None:
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


def _repeated(store: Store, batch: str, began: float) -> Report:
    state = store.require_state()
    strands, summary = store.strands(state), store.summary(state)
    return Report(
        rows=0,
        rejected=0,
        leaves=len(strands) if summary is None else summary.strata,
        sketch_bytes=strands.nbytes if summary is None else summary.nbytes,
        stored_bytes=store.stored_bytes(),
        seconds=time.monotonic() - began,
        grain=state.layout.grain if summary is None else summary.grain,
        batch=batch,
        repeated=True,
        kind="strands" if summary is None else "strata",
    )
