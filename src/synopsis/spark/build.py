"""Building: a source, a spec, a target; afterwards the sketch holds the source's rows, once.

    source ─▶ observations ─┬─▶ plan ─▶ sums and strands in the executors ─▶ files ─▶ rejects ─▶ one commit
                            ├─▶ statistics ─▶ plan ─▶ tallies and strata in the executors ─▶ summary ─▶ the same
                            └─▶ members of every span, where rows name entities ─▶ the same

A promised grain makes strands; without a promise the sketch is a summary of strata and paths, and strands only where
the budget has no room for one.

Nothing is visible before the commit, and what a build leaves that no commit names it takes away again. One that was
killed leaves files that nobody sees.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from synopsis.core.errors import BudgetTooSmall
from synopsis.core.report import Report
from synopsis.core.spec import Spec
from synopsis.sketch import planner
from synopsis.sketch.summary import Summary
from synopsis.spark import jobs, progress, statistics
from synopsis.spark import session as sessions
from synopsis.spark.batches import Adding, check_spec, repeated
from synopsis.spark.observations import observations
from synopsis.spark.sources import Source, located, opened
from synopsis.spark.stranding import add_strands, planned
from synopsis.spark.summarising import Summarising, add_summary, least_memory
from synopsis.store.files import Written, new_attempt
from synopsis.store.store import State, Store


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
    check_spec(store.state(), spec, store)
    found = located(source)
    name = batch or found.fingerprint
    if store.has_batch(name):
        return repeated(store, name, began)
    spark, settings = _session(source, master, conf)
    bar = progress.chosen(show)
    try:
        with jobs.told_plainly(), jobs.settings(spark, settings | jobs.SETTINGS), opened(spark, found) as source_frame:
            observed = observations(source_frame, spec, begun=store.state() is not None)
            return _added(Adding(spark, observed, spec, store, name, found.name, new_attempt(), strict, bar, began))
    finally:
        bar.close()


def _session(source: Source, master: str | None, conf: Mapping[str, str] | None) -> tuple[SparkSession, dict[str, str]]:
    """The session to build in, and what to set in it for the build: a session that runs already keeps its settings."""
    running = source.sparkSession if isinstance(source, DataFrame) else sessions.running()
    if running is None:
        return sessions.session(master, conf), {}
    return running, sessions.changeable(running, master, conf)


def _added(adding: Adding) -> Report:
    """Write the files of one batch and commit them."""
    store, was_there = adding.store, adding.store.exists()
    state = store.state()
    summary = store.summary(state) if state else None
    committed: tuple[Written, ...] = ()
    try:
        if summary is not None or (state is None and adding.spec.exact_at is None):
            report, committed = _summed_up(adding, state, summary)
        else:
            layout = state.layout if state else planner.promised(adding.spec)
            assert layout is not None
            report, committed = add_strands(adding, state, layout)
        return report
    finally:
        store.discard(adding.attempt, committed, was_there=was_there)


def _summed_up(adding: Adding, state: State | None, summary: Summary | None) -> tuple[Report, tuple[Written, ...]]:
    """A batch as part of a summary, or as strands where the budget has no room for any; with the files committed."""
    there = summary.scales if summary else None
    foretold = statistics.foretold(adding.observed, there)
    if foretold is not None:
        with suppress(statistics.Mistold):
            return _with_statistics(adding, state, summary, foretold)
    with adding.watched("planning"):
        found = statistics.counted(adding.observed, there)
    return _with_statistics(adding, state, summary, found)


def _with_statistics(
    adding: Adding, state: State | None, summary: Summary | None, found: statistics.Statistics
) -> tuple[Report, tuple[Written, ...]]:
    rejected = adding.accepted(found.outcome)
    gathered = adding.gathered(state, found.outcome)
    made = Summarising.planned(adding, found, gathered, summary, state.version if state else None)
    if made is not None:
        return add_summary(made, rejected)
    if found.given is not None:  # nothing has counted the rows
        raise statistics.Mistold
    try:
        layout = planned(adding, gathered)
    except BudgetTooSmall as short:
        least = least_memory(adding, found, gathered, short.needed_bytes)
        what = short.promise if least == short.needed_bytes else "the smallest sketch"
        raise BudgetTooSmall(what, least, adding.spec.memory) from None
    return add_strands(adding, state, layout, gathered)
