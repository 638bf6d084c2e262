"""Batches that become a summary: planned within the budget, made by the executors, added to the one that is there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from synopsis.core.errors import BadTarget, BudgetTooSmall
from synopsis.core.report import Report
from synopsis.sketch import planner
from synopsis.sketch.fine import FineSums
from synopsis.sketch.meetings import SHARE
from synopsis.sketch.members import Members
from synopsis.sketch.summary import Summary
from synopsis.spark import paths
from synopsis.spark.batches import TRIES, Adding
from synopsis.spark.statistics import Statistics
from synopsis.store import summaries
from synopsis.store.files import Written, write_file

#: How often a batch is made again, to join with what another build has added meanwhile; then it may stand beside that.
_REMADE = TRIES // 2

#: By so much more than the least memory may be named as such.
_NEARLY = 1.1

#: So many times as many paths are worth building again for, and the share of the budget that is aimed at then.
_MANY_MORE, _AIMED = 1.2, 0.97


@dataclass(frozen=True)
class Summarising:
    """A batch that becomes part of a summary: everything that does not change when another build comes first."""

    adding: Adding
    found: Statistics
    members: Members | None  #: of the batch
    how: paths.PathPlan
    after: int | None  #: the version of the sketch that it was made to be added to

    @classmethod
    def planned(
        cls, adding: Adding, found: Statistics, members: Members | None, before: Summary | None, after: int | None
    ) -> Summarising | None:
        """As the summary that is there was made, or by a new plan; None where the budget has no room for any."""
        if before is not None:
            return cls(adding, found, members, paths.PathPlan.of(before), after)
        with adding.watched("planning"):
            room = adding.spec.memory - (members.nbytes if members else 0)
            how = paths.plan(adding.observed, adding.spec, found, room)
        return None if how is None else cls(adding, found, members, how, after)

    def finer(self, made: Summary) -> Summarising | None:
        """With more paths, where those made take far fewer bytes than the probe foretold."""
        memory = self.adding.spec.memory - (self.members.nbytes if self.members else 0)
        made = _folded(made, memory).within(memory)
        size, layout = made.parts["paths"], made.layout
        more = (_AIMED * memory - made.nbytes + size) / max(size, 1)
        if more < _MANY_MORE or layout.kept >= 1.0 or layout.bins != self.how.layout.bins or not size:
            return None
        return replace(self, how=replace(self.how, layout=replace(layout, kept=min(layout.kept * more, 1.0))))

    def settled(self, sums: FineSums | None) -> Summarising:
        """With statistics as all rows have them; an error where files had told others."""
        return replace(self, found=self.found.settled(sums, self.adding.observed.features))

    def again(self, before: Summary, after: int) -> Summarising:
        """The same batch in the layout of another summary, and to join its strata."""
        return replace(self, how=paths.PathPlan.of(before), after=after)

    def summary(self) -> tuple[Summary, FineSums | None]:
        """The summary of the batch, and its sums in fine bins. The heavy part."""
        with self.adding.watched("summarising"):
            return paths.summarised(self.adding.observed, self.adding.spec, self.how, self.found)


def least_memory(adding: Adding, found: Statistics, members: Members | None, enough: int) -> int:
    """The least memory that a batch can be planned within, to a tenth, or what is `enough` for strands if that is less.

    Cost: a probe of the rows for every halving, five or six of them; only those who gave too little pay.
    """
    beside = members.nbytes if members else 0
    too_little, least = adding.spec.memory, enough
    with adding.watched("planning"):
        while least > _NEARLY * too_little:
            middle = int((too_little * least) ** 0.5)
            if paths.plan(adding.observed, adding.spec, found, middle - beside) is None:
                too_little = middle
            else:
                least = middle
    return least


def _folded(summary: Summary, room: int) -> Summary:
    """The summary with meetings that take no more than their share."""
    met = summary.meetings
    return summary if met is None else replace(summary, meetings=met.within(int(room * SHARE), summary.scales))


def _added(before: Summary, new: Summary, sums: FineSums | None) -> Summary:
    """Both as one, with scales that know the rows of both."""
    whole = before + new
    scales = whole.scales if sums is None else sums.joining(whole.scales)
    return whole if scales is whole.scales else whole.rescaled(scales)


def add_summary(made: Summarising, rejected: int) -> tuple[Report, tuple[Written, ...]]:
    """Make the summary of one batch, add it to what is there, and commit the sum; also the files that are committed."""
    adding = made.adding
    spec, store = adding.spec, adding.store
    new, sums = made.summary()
    made = made.settled(sums)
    outcome = made.found.outcome
    if store.state() is None and (finer := made.finer(new)) is not None:
        made = finer
        new, sums = made.summary()
    rejects = adding.rejects() if rejected else ()
    rejects_version = None
    for turn in range(TRIES):
        state = store.state()
        if state is not None and store.has_batch(adding.name):
            return adding.repeated(), ()
        adding.check(state)
        before = store.summary(state) if state else None
        if state is not None and before is None:
            raise BadTarget(f"another build made {store.place} without paths meanwhile; build again")
        is_late = state is not None and state.version != made.after  # another build came first
        if state is not None and before is not None and is_late and (turn < _REMADE or not made.how.fits(before)):
            made = made.again(before, state.version)
            new, sums = made.summary()
        members = adding.all_members(state, made.members)
        room = spec.memory - (members.nbytes if members else 0)
        whole = _folded(new if before is None else _added(before, new, sums), room)
        whole = replace(whole, scales=made.found.widening(whole.scales)).within(room).learnt
        if whole.nbytes > room:
            raise BudgetTooSmall("the counts of all places and days", whole.nbytes, room)
        store.prepare()
        if rejects and rejects_version is None:
            rejects_version = store.add_rejects(rejects)
        file = write_file(summaries.to_table(whole), store.paths_place, adding.attempt)
        own, members_version = adding.put_members(members)
        versions = [rejects_version, state.rejects_version if state else None]
        if store.commit(
            spec,
            planner.finest(spec),
            (),
            adding.batch(outcome),
            attempt=adding.attempt,
            after=state,
            rejects_version=max((version for version in versions if version is not None), default=None),
            paths_version=store.put_summary(file),
            members_version=members_version,
        ):
            sketch_bytes = whole.nbytes + (members.nbytes if members else 0)
            report = adding.report(
                outcome, rejected, sketch_bytes, leaves=whole.strata, grain=whole.grain, kind="strata"
            )
            return report, (file, *own, *rejects)
    raise adding.overtaken()
