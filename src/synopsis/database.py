"""The embedded database: a sketch opened in this process, no server."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import cached_property
from typing import Any

import pyarrow as pa

from synopsis.core.sizes import format_bytes
from synopsis.core.spec import Spec
from synopsis.query.answer import Answer
from synopsis.query.evaluate import ask
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.sketch.tree import Tree
from synopsis.store.store import State, Store


class Database:
    """One committed state of a sketch, held in memory; open it again to see later commits."""

    def __init__(self, store: Store, state: State) -> None:
        self._store, self._state = store, state
        self.strands: Strands = store.strands(state)

    @property
    def spec(self) -> Spec:
        """What the sketch was asked to be."""
        return self._state.spec

    @property
    def layout(self) -> Layout:
        """What it is."""
        return self._state.layout

    @property
    def features(self) -> tuple[str, ...]:
        """The features that can be asked for."""
        return self._state.layout.features

    def query(self, text: str) -> Answer:
        """Answer a question. Cost is proportional to the strands that it touches."""
        return ask(self.strands, text)

    def rejects(self) -> pa.Table:
        """The rows that builds set aside: batch, reason, and the row as JSON."""
        return self._store.rejects(self._state)

    @cached_property
    def tree(self) -> Tree:
        """The strands as the paper's tree, planes ordered by fan-out."""
        return Tree.of_strands(self.strands).compacted()

    def info(self) -> dict[str, Any]:
        """What the sketch is, as plain values: grain, exactness, bytes by part, tree, batches."""
        strands, tree = self.strands, self.tree
        return {
            "place": self._store.place,
            "version": self._state.version,
            "rows": int(strands.rows.sum()),
            "cells": int(strands.cells.key.size),
            "strands": len(strands),
            "grain": self.layout.grain,
            "features": list(self.features),
            "timezone": self.layout.timezone,
            "exact": self.layout.exact,
            "memory": self.spec.memory,
            "sketch_bytes": strands.nbytes,
            "stored_bytes": self._store.stored_bytes(),
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
            "batches": [asdict(batch) for batch in self._store.batches()],
        }

    def __repr__(self) -> str:
        rows, size = int(self.strands.rows.sum()), format_bytes(self.strands.nbytes)
        return f"<synopsis of {rows:,} rows at {self._store.place}: {self.layout.grain}, {size}>"


def open(place: str | os.PathLike[str]) -> Database:
    """Open the sketch at a folder or an object-store address, as last committed."""
    store = Store(os.fspath(place))
    return Database(store, store.require_state())
