"""Batches that become strands: summed at a promised grain, or at the finest that fits the budget."""

from __future__ import annotations

from dataclasses import replace

from synopsis.core.errors import BudgetTooSmall
from synopsis.core.report import Report
from synopsis.core.spec import Spec
from synopsis.sketch import planner
from synopsis.sketch.layout import Layout
from synopsis.sketch.members import Members
from synopsis.sketch.strands import Strands
from synopsis.spark import aggregate
from synopsis.spark.aggregate import Outcome
from synopsis.spark.batches import TRIES, Adding
from synopsis.store.codec import to_table
from synopsis.store.files import Written, write_file
from synopsis.store.store import State


def add_strands(
    adding: Adding, state: State | None, layout: Layout, gathered: Members | None = None
) -> tuple[Report, tuple[Written, ...]]:
    """Sum one batch, add it to what is there, and commit the sum; also the files that are committed.

    Members are gathered after the sums, which tell between which instants they lie, where that was not done before.
    """
    spec, store = adding.spec, adding.store
    with adding.watched("summing"):
        outcome = aggregate.write_strands(adding.observed, layout, store.sketch_place, adding.attempt)
    rejected = adding.accepted(outcome)
    _check_budget(spec, layout, sum(file.rows for file in outcome.files))
    if gathered is None:
        gathered = adding.gathered(state, outcome)
    rejects = adding.rejects() if rejected else ()
    strands, members_bytes, committed = commit_strands(adding, layout, outcome, rejects, gathered)
    if strands is None:
        return adding.repeated(), ()
    grain, leaves = strands.layout.grain, len(strands)
    return adding.report(outcome, rejected, strands.nbytes + members_bytes, leaves=leaves, grain=grain), committed


def _left(spec: Spec, members: Members | None) -> Spec:
    """The spec with the memory that members leave."""
    return spec if members is None else replace(spec, memory=spec.memory - members.nbytes)


def planned(adding: Adding, gathered: Members | None) -> Layout:
    """The finest layout that fits the budget beside the members."""
    spec = _left(adding.spec, gathered)
    with adding.watched("planning"):
        return planner.choose(spec, aggregate.strand_counts(adding.observed, planner.candidates(spec)))


def commit_strands(
    adding: Adding, layout: Layout, outcome: Outcome, rejects: tuple[Written, ...], gathered: Members | None
) -> tuple[Strands | None, int, tuple[Written, ...]]:
    """Commit the batch within the budget: the whole sketch, the bytes of its members, and the files that hold it now.

    No sketch when the batch turns out to be there already. Another build may commit meanwhile, even a coarser layout:
    then the sum of both is made again from what is there.
    """
    spec, store, files = adding.spec, adding.store, outcome.files
    new = store.read_strands([file.name for file in files], layout)
    rejects_version = None
    for _ in range(TRIES):
        state = store.state()
        if state is not None and store.has_batch(adding.name):
            return None, 0, ()
        adding.check(state)
        before = store.strands(state) if state else Strands.empty(layout)
        common = _common(before.layout, layout, spec)
        whole = Strands.joined([_at(common, before), _at(common, new)], common)
        members = adding.all_members(state, gathered)
        fitted, members = _fitted(whole, spec, members)
        appends = fitted.layout == before.layout
        written = files
        if fitted.layout != layout or not appends:
            added = _at(fitted.layout, new) if appends else fitted
            written = (write_file(to_table(added), store.sketch_place, adding.attempt),)
        store.prepare()
        if rejects and rejects_version is None:
            rejects_version = store.add_rejects(rejects)
        versions = [rejects_version, state.rejects_version if state else None]
        own, members_version = adding.put_members(members)
        if store.commit(
            spec,
            fitted.layout,
            written,
            adding.batch(outcome),
            attempt=adding.attempt,
            after=state,
            rejects_version=max((version for version in versions if version is not None), default=None),
            members_version=members_version,
            replace=not appends,
        ):
            return fitted, members.nbytes if members else 0, (*written, *own)
    raise adding.overtaken()


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


def _fitted(strands: Strands, spec: Spec, members: Members | None) -> tuple[Strands, Members | None]:
    """The strands at the finest grain that fits `memory` beside the members.

    A promised grain does not give way: then members do.
    """
    room = _left(spec, members).memory
    if strands.nbytes <= room:
        return strands, members
    if spec.exact_at is not None:
        if strands.nbytes > spec.memory:
            raise BudgetTooSmall(f"exact_at={spec.exact_at!r}", strands.nbytes, spec.memory)
        return strands, None if members is None else members.within(spec.memory - strands.nbytes)
    coarser = [layout for layout in planner.candidates(spec) if strands.layout.nests_in(layout)]
    folded = sorted((strands.coarsened(layout) for layout in coarser), key=len, reverse=True)
    fitting = [each for each in folded if each.nbytes <= room]
    if not fitting:
        raise BudgetTooSmall(f"the coarsest layout ({folded[-1].layout.grain})", folded[-1].nbytes, spec.memory)
    return fitting[0], members
