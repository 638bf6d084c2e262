"""Saving: a sketch that is in memory, written as a sketch of its own."""

from __future__ import annotations

from typing import Any

from synopsis.core.errors import BadTarget
from synopsis.core.spec import Spec
from synopsis.sketch.members import Members
from synopsis.sketch.strands import Strands
from synopsis.sketch.summary import Summary
from synopsis.store import codec, summaries
from synopsis.store import members as members_of
from synopsis.store.files import new_attempt, write_file
from synopsis.store.store import Batch, Store


def save(
    store: Store,
    spec: Spec,
    strands: Strands,
    summary: Summary | None,
    members: Members | None,
    where: dict[str, Any] | None,
    watermark_us: int | None,
) -> None:
    """Write a sketch to a place where there is none yet; it is visible whole or not at all.

    `where` is the condition that goes with every question to it, as JSON. Cost: proportional to the sketch.
    """
    store.check()
    if store.state() is not None:
        raise BadTarget(f"there is a sketch at {store.place} already; save to a folder that does not exist yet")
    store.prepare()
    attempt = new_attempt()
    files = [write_file(codec.to_table(strands), store.sketch_place, attempt)] if len(strands) else []
    paths_version = None
    if summary is not None:
        paths_version = store.put_summary(write_file(summaries.to_table(summary), store.paths_place, attempt))
    members_version = None
    if members is not None:
        members_version = store.put_members(write_file(members_of.to_table(members), store.members_place, attempt))
    rows = int(strands.rows.sum()) if summary is None else summary.rows
    committed = store.commit(
        spec,
        strands.layout,
        files,
        Batch("saved", rows, watermark_us=watermark_us),
        attempt=attempt,
        after=None,
        rejects_version=None,
        paths_version=paths_version,
        members_version=members_version,
        where=where,
    )
    if not committed:
        raise BadTarget(f"something else was written to {store.place} just now; save to another folder")
