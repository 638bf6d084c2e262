"""The embedded database: a sketch opened in this process, no server."""

from __future__ import annotations

import os
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from synopsis.core.sizes import format_bytes
from synopsis.query.answer import AsOf
from synopsis.query.expectations import expected
from synopsis.query.phrases import condition_of
from synopsis.query.relation import Relation
from synopsis.query.tree import EVERYTHING
from synopsis.sketch.layout import Layout
from synopsis.sketch.meetings import Meetings
from synopsis.sketch.members import Members, Opened
from synopsis.sketch.stretches import Stretching
from synopsis.sketch.summary import Summary, in_words
from synopsis.sketches import Sketch
from synopsis.store.store import State, Store
from synopsis.store.watermarks import watermark_us

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Database(Sketch):
    """One committed state of a sketch, held in memory; open it again to see later commits."""

    def __init__(self, store: Store, state: State) -> None:
        self._store, self._state = store, state
        latest_us = watermark_us(store, state)
        watermark = None if latest_us is None else _EPOCH + timedelta(microseconds=latest_us)
        where = EVERYTHING if state.where is None else condition_of(state.where, ())
        super().__init__(
            Relation(store.strands(state), store.summary(state), where, store.members(state)),
            state.spec,
            AsOf(state.version, watermark),
        )

    @property
    def place(self) -> str:
        """The folder or address that it was opened at."""
        return self._store.place

    def rejects(self) -> pa.Table:
        """The rows that builds set aside: batch, reason, and the row as JSON."""
        return self._store.rejects(self._state)

    def info(self) -> dict[str, Any]:
        """What the sketch is, as plain values: layout, exactness, bytes by part, batches."""
        return {
            "place": self._store.place,
            "version": self._state.version,
            "rows": self.rows,
            "features": list(self.features),
            "timezone": self.layout.timezone,
            "memory": self.spec.memory,
            "sketch_bytes": self.nbytes,
            "stored_bytes": self._store.stored_bytes(),
            **(self._info_of_strands() if self.summary is None else _info_of(self.summary, self.layout)),
            **({} if self.relation.members is None else {"members": _info_of_members(self.relation.members)}),
            "batches": [asdict(batch) for batch in self._store.batches()],
        }

    def _info_of_strands(self) -> dict[str, Any]:
        strands, tree = self.strands, self.tree
        return {
            "cells": int(strands.cells.key.size),
            "strands": len(strands),
            "grain": self.layout.grain,
            "exact": self.layout.exact,
            "parts": {
                "keys": strands.nbytes - strands.cells.nbytes - strands.moments.nbytes - strands.comoments.nbytes,
                "cells": strands.cells.nbytes,
                "moments": strands.moments.nbytes,
                "comoments": strands.comoments.nbytes,
            },
            "tree": {
                "planes": list(tree.planes),
                "vertices": tree.vertices,
                "edges": tree.edges,
                "vertices_reversed": tree.reversed().vertices,
                "edges_reversed": tree.reversed().edges,
            },
        }

    def __repr__(self) -> str:
        grain = self.layout.grain if self.summary is None else self.summary.grain
        return f"<synopsis of {self.rows:,} rows at {self._store.place}: {grain}, {format_bytes(self.nbytes)}>"


def _info_of_members(members: Members) -> dict[str, Any]:
    everywhere = np.arange(len(members.spans))
    marks = None if members.marks is None else Opened(members).marks_of(everywhere)
    return {
        "entity": members.entity,
        "grain": members.spans.layout.grain,
        "spans": len(members.spans),
        "bytes": members.nbytes,
        "false_positive_rate": None if marks is None or members.marks is None else members.marks.rate(marks.size),
    }


def _info_of_meetings(meetings: Meetings, layout: Layout) -> dict[str, Any]:
    grain = meetings.grain
    return {
        "grain": f"cells of {grain.bits} bits x {in_words(grain.months)}",
        "spans": len(meetings),
        "bins": {name: len(starts) for name, starts in zip(layout.features, grain.starts, strict=True)},
        "bytes": meetings.nbytes,
    }


def _info_of_stretches(stretching: Stretching, spell: int, layout: Layout, places: str) -> dict[str, str]:
    """In which grain means and deviations of each feature are known."""
    named = zip(layout.features, (spell * days for days in stretching.days), strict=True)
    return {f"mean, std of {name}": f"{places} x {'day' if days == 1 else f'{days} days'}" for name, days in named}


def _info_of(summary: Summary, features: Layout) -> dict[str, Any]:
    layout = summary.layout
    paths, rows = summary.paths, summary.rows
    places = "cells" if layout.moving else "places"
    groups = places if layout.region_bits is None else f"cells of {layout.region_bits} bits"
    days = "days" if layout.spell == 1 else f"spells of {layout.spell} days"
    return {
        "places": int(summary.latitude.size),
        "strata": summary.strata,
        "paths": paths,
        "grain": summary.grain,
        "layout": layout.to_dict(),
        "exact": {"count": f"{places} x {days}", "count by bin": f"{groups} x {summary.span}"},
        **(
            {}
            if layout.stretching is None
            else {"nearly_exact": _info_of_stretches(layout.stretching, layout.spell, features, places)}
        ),
        "given_up": {
            "paths": f"{max(rows - paths, 0):,} of {rows:,} rows are counted and have no path of their own",
            "values": f"kept as one of {layout.bins} bins, {groups} x {summary.span}",
            **({"place": f"kept as cells of {layout.place_bits} bits and where in them"} if layout.moving else {}),
            "time": "kept as days and when on them" if layout.moving else f"kept as {days}",
        },
        "parts": summary.parts,
        **({} if summary.meetings is None else {"meetings": _info_of_meetings(summary.meetings, features)}),
        "expected_error": expected(summary, features),
    }


def open(place: str | os.PathLike[str]) -> Database:
    """Open the sketch at a folder or an object-store address, as last committed."""
    store = Store(os.fspath(place))
    return Database(store, store.require_state())
