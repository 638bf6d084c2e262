"""The store of one sketch: a folder of Delta tables, of which `sketch` is the commit point.

    weather.syn/
      sketch/    strands; its commits carry spec, layout, batch and the versions of the other tables
      rejects/   rows without a usable place or time, with the reason; written first, reached through a sketch commit

Delta has no transaction over several tables. So everything else is written before, and becomes visible when the
sketch's commit names its version: a batch is visible whole or not at all. A batch's id is Delta's own application
transaction, so that the same batch cannot be committed twice, not even by two builds at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction

from synopsis.core.errors import BadTarget, ForeignFormat, NotASketch
from synopsis.core.spec import Spec
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.store.codec import SCHEMA, from_table
from synopsis.store.files import Written, folder, read_files

#: What this release writes and reads.
FORMAT = "1"
_FORMAT_PROPERTY = "synopsis.format"
_REJECTS_SCHEMA = pa.schema([("batch", pa.string()), ("reason", pa.string()), ("row", pa.string())])
_TABLES = ("sketch", "rejects")
_TURN = "synopsis.turn"


@dataclass(frozen=True)
class Batch:
    """What one build added, as its commit remembers it."""

    id: str
    rows: int
    rejected: dict[str, int] = field(default_factory=dict)  #: reason to rows
    missing: dict[str, int] = field(default_factory=dict)  #: feature to values that were NaN, infinite or unreadable
    watermark_us: int | None = None  #: latest instant in the batch


@dataclass(frozen=True)
class State:
    """What a reader sees: one commit and all that it names."""

    version: int
    spec: Spec
    layout: Layout
    files: tuple[str, ...]
    rejects_version: int | None


class Store:
    """Tables at one place; holds no state of its own."""

    def __init__(self, place: str | Path) -> None:
        self.place = str(place).rstrip("/")
        self.sketch_place = f"{self.place}/sketch"
        self.rejects_place = f"{self.place}/rejects"

    def state(self) -> State | None:
        """The last committed state; None where nothing was ever committed."""
        table = self._sketch_table()
        commit = next((commit for commit in table.history() if "synopsis.layout" in commit), None) if table else None
        if table is None or commit is None:
            return None
        version = json.loads(commit["synopsis.rejects_version"])
        return State(
            table.version(),
            Spec.from_dict(json.loads(commit["synopsis.spec"])),
            Layout.from_dict(json.loads(commit["synopsis.layout"])),
            tuple(sorted(uri.rsplit("/", 1)[-1] for uri in table.file_uris())),
            version,
        )

    def require_state(self) -> State:
        """The last committed state, or an error that says what is there instead."""
        state = self.state()
        if state is None:
            raise NotASketch(f"no sketch at {self.place}; build one with syn.build(..., to={self.place!r})")
        return state

    def strands(self, state: State) -> Strands:
        """The strands of a state, runs pooled. Cost is proportional to the bytes of its files."""
        return self.read_strands(state.files, state.layout)

    def read_strands(self, names: Sequence[str], layout: Layout) -> Strands:
        """The strands of these files, committed or not."""
        return from_table(read_files(self.sketch_place, list(names), SCHEMA), layout)

    def rejects(self, state: State) -> pa.Table:
        """The rejected rows of committed batches: batch, reason, and the row as JSON."""
        if state.rejects_version is None:
            return _REJECTS_SCHEMA.empty_table()
        table = DeltaTable(self.rejects_place, version=state.rejects_version)
        names = [uri.rsplit("/", 1)[-1] for uri in table.file_uris()]
        rows = read_files(self.rejects_place, names, _REJECTS_SCHEMA)
        sketch = DeltaTable(self.sketch_place, version=state.version)
        batches = [
            batch for batch in rows["batch"].unique().to_pylist() if sketch.transaction_version(batch) is not None
        ]
        return rows.filter(pa.compute.is_in(rows["batch"], pa.array(batches, pa.string())))

    def has_batch(self, batch: str) -> bool:
        """Whether this batch is committed."""
        table = self._sketch_table()
        return table is not None and table.transaction_version(batch) is not None

    def batches(self) -> list[Batch]:
        """What each commit added, oldest first, as far back as the log remembers."""
        table = self._sketch_table()
        commits = table.history() if table else []
        return [_batch_of(commit) for commit in reversed(commits) if "synopsis.batch" in commit]

    def check(self) -> None:
        """Refuse a place that holds something else than a sketch; changes nothing."""
        system, path = folder(self.place)
        found = system.get_file_info(path)
        if found.type == pyarrow.fs.FileType.File:
            raise BadTarget(f"{self.place} is a file; give a folder that does not exist yet, or an existing sketch")
        if found.type == pyarrow.fs.FileType.Directory:
            inside = [entry.base_name for entry in system.get_file_info(pyarrow.fs.FileSelector(path))]
            strange = sorted(set(inside) - set(_TABLES))
            if strange:
                raise BadTarget(
                    f"{self.place} holds {strange[0]!r}, so it is not a sketch; give another folder, or empty it"
                )
        self._sketch_table()

    def prepare(self) -> None:
        """Make the place ours: create the tables where they are missing."""
        self.check()
        for place, schema in ((self.sketch_place, SCHEMA), (self.rejects_place, _REJECTS_SCHEMA)):
            if not DeltaTable.is_deltatable(place):
                _create(place, schema)

    def discard(self, attempt: str) -> None:
        """Take away the files of an attempt that was not committed."""
        for place in (self.sketch_place, self.rejects_place):
            system, path = folder(place)
            for entry in system.get_file_info(pyarrow.fs.FileSelector(path, allow_not_found=True)):
                if entry.base_name.startswith(f"part-{attempt}-"):
                    system.delete_file(entry.path)

    def add_rejects(self, files: Sequence[Written], batch: str) -> int:
        """Append rejected rows, once a batch; returns the version that holds them. Invisible until `commit`."""
        table = DeltaTable(self.rejects_place)
        if files and table.transaction_version(batch) is None:
            _write(table, files, [Transaction(batch, 1)], {"synopsis.rejects_of": batch}, "append")
            table.update_incremental()
        return int(table.version())

    def commit(
        self,
        spec: Spec,
        layout: Layout,
        files: Sequence[Written],
        batch: Batch,
        *,
        after: State | None,
        rejects_version: int | None,
        replace: bool = False,
    ) -> bool:
        """Make a batch visible, all of it at once; `replace` drops the files committed before.

        False when anything was committed since the state `after`: then nothing was changed, and the caller looks again.
        """
        metadata = {
            "synopsis.spec": json.dumps(spec.to_dict()),
            "synopsis.layout": json.dumps(layout.to_dict()),
            "synopsis.batch": batch.id,
            "synopsis.rows": json.dumps(batch.rows),
            "synopsis.rejected": json.dumps(batch.rejected),
            "synopsis.missing": json.dumps(batch.missing),
            "synopsis.watermark": json.dumps(batch.watermark_us),
            "synopsis.rejects_version": json.dumps(rejects_version),
        }
        # Every commit carries this transaction too, so that Delta lets only one of two builds at once through.
        table = DeltaTable(self.sketch_place, version=after.version if after else None)
        turn = Transaction(_TURN, (table.transaction_version(_TURN) or 0) + 1)
        try:
            _write(table, files, [Transaction(batch.id, 1), turn], metadata, "overwrite" if replace else "append")
        except CommitFailedError:
            return False
        return True

    def stored_bytes(self) -> int:
        """Bytes of everything at the place, logs and uncommitted leftovers too."""
        system, path = folder(self.place)
        entries = system.get_file_info(pyarrow.fs.FileSelector(path, recursive=True))
        return sum(entry.size for entry in entries if entry.type == pyarrow.fs.FileType.File)

    def _sketch_table(self) -> DeltaTable | None:
        if not DeltaTable.is_deltatable(self.sketch_place):
            return None
        table = DeltaTable(self.sketch_place)
        found = table.metadata().configuration.get(_FORMAT_PROPERTY)
        if found is None:
            raise NotASketch(f"{self.sketch_place} is a Delta table that Synopsis did not write; give another folder")
        if found != FORMAT:
            raise ForeignFormat(self.place, found, FORMAT)
        return table


def _create(place: str, schema: pa.Schema) -> None:
    if "://" not in place:
        Path(place).mkdir(parents=True, exist_ok=True)
    # "ignore": when two builds create the same table, one wins and both use it.
    DeltaTable.create(
        place, schema, mode="ignore", configuration={_FORMAT_PROPERTY: FORMAT}, raise_if_key_not_exists=False
    )


def _write(
    table: DeltaTable, files: Sequence[Written], transactions: list[Transaction], metadata: dict[str, str], mode: str
) -> None:
    now_ms = int(time.time() * 1000)
    actions: list[Any] = [
        AddAction(file.name, file.size_bytes, {}, now_ms, True, json.dumps({"numRecords": file.rows})) for file in files
    ]
    properties = CommitProperties(custom_metadata=metadata, app_transactions=transactions)
    table.create_write_transaction(actions, mode, table.schema(), commit_properties=properties)


def _batch_of(commit: dict[str, Any]) -> Batch:
    return Batch(
        commit["synopsis.batch"],
        json.loads(commit["synopsis.rows"]),
        json.loads(commit["synopsis.rejected"]),
        json.loads(commit["synopsis.missing"]),
        json.loads(commit["synopsis.watermark"]),
    )
