"""Building: a source, a spec, a target; afterwards the sketch holds the source's rows, once.

    source ─▶ observations ─▶ plan ─▶ sums and strands in the executors ─▶ files ─▶ rejects ─▶ one commit

Nothing is visible before the commit, and a build that fails takes its files away again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from synopsis.core.errors import BadTarget, BudgetTooSmall, EmptySource, RowsRejected, SpecDiffers
from synopsis.core.report import Report
from synopsis.core.spec import Spec
from synopsis.sketch import planner
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.spark import aggregate, jobs, progress
from synopsis.spark import session as sessions
from synopsis.spark.aggregate import Outcome
from synopsis.spark.observations import Observations, observations
from synopsis.spark.sources import Source, opened
from synopsis.store.codec import to_table
from synopsis.store.files import write_file
from synopsis.store.store import Batch, State, Store

#: How often a commit that another build overtook is tried again.
_TRIES = 8

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
    spark = source.sparkSession if isinstance(source, DataFrame) else sessions.session(master, conf)
    bar = progress.chosen(show)
    try:
        with jobs.settings(spark), jobs.told_plainly(), opened(spark, source) as source_frame:
            name = batch or source_frame.fingerprint
            if store.has_batch(name):
                return _repeated(store, name, began)
            observed = observations(source_frame, spec)
            return _add(spark, observed, source_frame.name, spec, store, name, strict, bar, began)
    finally:
        bar.close()


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
    """Write the files of one batch and commit them; on any failure, take them away."""
    attempt = uuid.uuid4().hex[:12]
    state = store.state()
    layout = state.layout if state else planner.promised(spec) or _planned(spark, observed, spec, bar)
    store.prepare()
    committed = False
    try:
        with progress.watched(spark, "summing", bar):
            outcome = aggregate.write_strands(observed, layout, store.sketch_place, attempt)
        rejected = sum(outcome.rejected.values())
        if not outcome.rows:
            raise EmptySource(source, rejected)
        if rejected and strict:
            raise RowsRejected(outcome.rejected)
        rejects_version = None
        if rejected:
            with progress.watched(spark, "setting rows aside", bar):
                files = aggregate.write_rejects(observed, name, store.rejects_place, attempt)
            rejects_version = store.add_rejects(files, name)
        made = Batch(name, outcome.rows, outcome.rejected, outcome.missing, outcome.watermark_us)
        strands = _commit(store, spec, layout, outcome, made, rejects_version, attempt)
        committed = True
    finally:
        if not committed:
            store.discard(attempt)
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


def _planned(spark: SparkSession, observed: Observations, spec: Spec, bar: progress.Show) -> Layout:
    with progress.watched(spark, "planning", bar):
        return planner.choose(spec, aggregate.strand_counts(observed, planner.candidates(spec)))


def _commit(
    store: Store,
    spec: Spec,
    layout: Layout,
    outcome: Outcome,
    batch: Batch,
    rejects_version: int | None,
    attempt: str,
) -> Strands | None:
    """Commit the batch within the budget; None when it turns out to be there already.

    Another build may commit meanwhile, even a coarser layout: then the sum of both is made again from what is there.
    """
    _check_budget(spec, layout, sum(file.rows for file in outcome.files))
    new = store.read_strands([file.name for file in outcome.files], layout)
    for _ in range(_TRIES):
        state = store.state()
        if state is not None and store.has_batch(batch.id):
            return None
        before = store.strands(state) if state else Strands.empty(layout)
        common = before.layout if new.layout.nests_in(before.layout) else layout
        whole = Strands.joined([before, new.coarsened(common)], common)
        fitted = _fitted(whole, spec)
        appends = fitted.layout == layout == before.layout
        files = outcome.files if appends else (write_file(to_table(fitted), store.sketch_place, attempt),)
        version = rejects_version if rejects_version is not None else (state.rejects_version if state else None)
        if store.commit(spec, fitted.layout, files, batch, after=state, rejects_version=version, replace=not appends):
            return fitted
    raise BadTarget(f"other builds kept changing {store.place}; nothing was added, try again when they are done")


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
    different = {
        each.name: (repr(getattr(state.spec, each.name)), repr(getattr(spec, each.name)))
        for each in fields(Spec)
        if each.name not in _FREE and getattr(state.spec, each.name) != getattr(spec, each.name)
    }
    if different:
        raise SpecDiffers(store.place, different)


def _repeated(store: Store, batch: str, began: float) -> Report:
    state = store.require_state()
    strands = store.strands(state)
    return Report(
        rows=0,
        rejected=0,
        leaves=len(strands),
        sketch_bytes=strands.nbytes,
        stored_bytes=store.stored_bytes(),
        seconds=time.monotonic() - began,
        grain=state.layout.grain,
        batch=batch,
        repeated=True,
    )
