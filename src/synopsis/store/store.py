"""The store of one sketch: a folder of Delta tables, of which `sketch` is the commit point.

    weather.syn/
      sketch/    strands; its commits carry spec, layout, batch and the versions of the other tables
      paths/     the summary: strata and packed paths; each commit's is whole, and replaces the one before
      members/   who was where and when, where the rows name entities; whole, too
      rejects/   rows without a usable place or time, with the reason; written first, reached through a sketch commit

Delta has no transaction over several tables. So everything else is written before, and becomes visible when the
sketch's commit names its version: a batch is visible whole or not at all. A batch's id is Delta's own application
transaction, so that the same batch cannot be committed twice, not even by two builds at once. Its number is that of
the attempt that succeeded: what attempts left in other tables before they were killed stays out of sight.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from synopsis.core.errors import BadTarget, ForeignFormat, NotASketch
from synopsis.core.spec import Spec
from synopsis.sketch.layout import Layout
from synopsis.sketch.members import Members
from synopsis.sketch.strands import Strands
from synopsis.sketch.summary import Summary
from synopsis.store import members as members_of
from synopsis.store import summaries
from synopsis.store.codec import SCHEMA, from_table
from synopsis.store.files import Written, folder, read_files

#: What this release writes, and what it reads: format 8 has no spells.
FORMAT, _READ = "9", ("8", "9")
_FORMAT_PROPERTY = "synopsis.format"
_REJECTS_SCHEMA = pa.schema([(name, pa.string()) for name in ("batch", "attempt", "reason", "row")])
_TABLES = ("sketch", "paths", "members", "rejects")
_TURN = "synopsis.turn"

#: How often a table is written again that another build overtook.
_TRIES = 8


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
    paths_version: int | None = None
    where: dict[str, Any] | None = None  #: the condition that goes with every question, of a part of a sketch
    members_version: int | None = None


class Store:
    """Tables at one place; holds no state of its own."""

    def __init__(self, place: str | Path) -> None:
        self.place = str(place).rstrip("/")
        if not str(place):  # or the tables would lie about in the folder that we stand in
            raise BadTarget("the folder of a sketch has no name; give one, such as weather.syn")
        # Executors may stand in another folder than we do: they get a whole path.
        whole = self.place if "://" in self.place else str(Path(place).absolute())
        self.sketch_place = f"{whole}/sketch"
        self.rejects_place = f"{whole}/rejects"
        self.paths_place = f"{whole}/paths"
        self.members_place = f"{whole}/members"

    def state(self) -> State | None:
        """The last committed state; None where nothing was ever committed."""
        table = self._table(self.sketch_place)
        commit = _last_commit(table) if table else None
        if table is None or commit is None:
            return None
        return State(
            table.version(),
            Spec.from_dict(json.loads(commit["synopsis.spec"])),
            Layout.from_dict(json.loads(commit["synopsis.layout"])),
            tuple(sorted(_names(table))),
            json.loads(commit["synopsis.rejects_version"]),
            json.loads(commit["synopsis.paths_version"]),
            json.loads(commit.get("synopsis.where", "null")),
            json.loads(commit.get("synopsis.members_version", "null")),
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

    def summary(self, state: State) -> Summary | None:
        """The summary of a state, if it has one. Cost is proportional to its bytes."""
        if state.paths_version is None:
            return None
        names = _names(DeltaTable(self.paths_place, version=state.paths_version))
        return summaries.from_table(read_files(self.paths_place, names, summaries.SCHEMA))

    def members(self, state: State) -> Members | None:
        """Who was where and when, if the state knows. Cost is proportional to its bytes."""
        if state.members_version is None:
            return None
        names = _names(DeltaTable(self.members_place, version=state.members_version))
        return members_of.from_table(read_files(self.members_place, names, members_of.SCHEMA))

    def rejects(self, state: State) -> pa.Table:
        """The rejected rows of committed batches: batch, reason, and the row as JSON."""
        if state.rejects_version is None:
            return _REJECTS_SCHEMA.empty_table()
        table = DeltaTable(self.rejects_place, version=state.rejects_version)
        rows = read_files(self.rejects_place, _names(table), _REJECTS_SCHEMA)
        sketch = DeltaTable(self.sketch_place, version=state.version)
        versions = [sketch.transaction_version(batch) for batch in rows["batch"].unique().to_pylist()]
        committed = [_attempt_of(version) for version in versions if version is not None]
        seen = rows.filter(pa.compute.is_in(rows["attempt"], pa.array(committed, pa.string())))
        return seen.drop_columns(["attempt"])

    def has_batch(self, batch: str) -> bool:
        """Whether this batch is committed."""
        table = self._table(self.sketch_place)
        return table is not None and table.transaction_version(batch) is not None

    def batches(self) -> list[Batch]:
        """What each commit added, oldest first, as far back as the log remembers."""
        table = self._table(self.sketch_place)
        commits = table.history() if table else []
        return [_batch_of(commit) for commit in reversed(commits) if "synopsis.batch" in commit]

    def check(self) -> None:
        """Refuse a place that holds something else than a sketch; changes nothing."""
        if "://" not in self.place and (odd := re.search(r"%[0-9A-Fa-f]{2}|[\\#?]", self.sketch_place)):
            # The Delta library takes these for parts of an address, and looks elsewhere.
            raise BadTarget(
                f"{self.place} has {odd[0]!r} in its path, where Delta tables are not found; give another folder"
            )
        try:
            system, path = folder(self.place)
        except pa.ArrowException as problem:
            why = str(problem).splitlines()[0]
            raise BadTarget(
                f"{self.place} is no address that can be written to ({why}); give a folder, or one such as s3://bucket/w.syn"
            ) from None
        found = system.get_file_info(path)
        if found.type == pyarrow.fs.FileType.NotFound and "://" not in self.place:
            above = next(parent for parent in Path(self.place).absolute().parents if parent.exists())
            if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
                raise BadTarget(
                    f"{self.place} cannot be made, for nothing can be written to {above}; give another folder"
                )
        if found.type == pyarrow.fs.FileType.File:
            raise BadTarget(f"{self.place} is a file; give a folder that does not exist yet, or an existing sketch")
        if found.type == pyarrow.fs.FileType.Directory:
            inside = [entry.base_name for entry in system.get_file_info(pyarrow.fs.FileSelector(path))]
            strange = sorted(set(inside) - set(_TABLES))
            if strange:
                raise BadTarget(
                    f"{self.place} holds {strange[0]!r}, so it is not a sketch; give another folder, or empty it"
                )
        for place in self._places:
            self._table(place)

    def prepare(self) -> None:
        """Make the place ours: create the tables where they are missing."""
        self.check()
        schemas = (SCHEMA, summaries.SCHEMA, _REJECTS_SCHEMA)
        for place, schema in zip((self.sketch_place, self.paths_place, self.rejects_place), schemas, strict=True):
            _create(place, schema)

    def exists(self) -> bool:
        """Whether there is anything at the place."""
        system, path = folder(self.place)
        return bool(system.get_file_info(path).type != pyarrow.fs.FileType.NotFound)

    def discard(self, attempt: str, keep: Sequence[Written] = (), *, was_there: bool = True) -> None:
        """Take away what an attempt left that no commit names, but for `keep`, and folders that are empty then.

        `was_there` says that the place itself stood before the attempt, so that it stays even when it is empty.
        """
        kept = {file.name for file in keep}
        for place in self._places:
            with contextlib.suppress(OSError, DeltaError):  # then it stays, unseen
                system, path = folder(place)
                entries = system.get_file_info(pyarrow.fs.FileSelector(path, allow_not_found=True))
                mine = {entry.base_name for entry in entries if entry.base_name.startswith(f"part-{attempt}-")} - kept
                if mine and DeltaTable.is_deltatable(place):
                    mine -= set(_names(DeltaTable(place)))
                for name in mine:
                    system.delete_file(f"{path}/{name}")
        if "://" not in self.place:
            for place in (*self._places, *(() if was_there else (self.place,))):
                with contextlib.suppress(OSError):  # not empty, or never made
                    Path(place).rmdir()

    def put_summary(self, file: Written) -> int:
        """Make a file the whole summary; returns the version that holds it. Invisible until `commit` names it."""
        return self._put(self.paths_place, file)

    def put_members(self, file: Written) -> int:
        """Make a file all members; returns the version that holds it. Invisible until `commit` names it."""
        _create(self.members_place, members_of.SCHEMA)
        return self._put(self.members_place, file)

    def _put(self, place: str, file: Written) -> int:
        for _ in range(_TRIES):
            table = DeltaTable(place)
            with contextlib.suppress(CommitFailedError):  # another build put its own just now
                _write(table, [file], [], {}, "overwrite")
                table.update_incremental()
                for version in range(int(table.version()), -1, -1):  # it may have been overtaken already
                    if file.name in _names(DeltaTable(place, version=version)):
                        return version
        raise self._kept_changing()

    def _kept_changing(self) -> BadTarget:
        return BadTarget(f"other builds kept changing {self.place}; nothing was added, try again when they are done")

    def add_rejects(self, files: Sequence[Written]) -> int:
        """Append rejected rows; returns a version that holds them. Invisible until `commit` names their attempt."""
        for _ in range(_TRIES):
            table = DeltaTable(self.rejects_place)
            with contextlib.suppress(CommitFailedError):  # another build made the table just now
                _write(table, files, [], {}, "append")
                table.update_incremental()
                return int(table.version())
        raise self._kept_changing()

    def commit(
        self,
        spec: Spec,
        layout: Layout,
        files: Sequence[Written],
        batch: Batch,
        *,
        attempt: str,
        after: State | None,
        rejects_version: int | None,
        paths_version: int | None = None,
        members_version: int | None = None,
        replace: bool = False,
        where: dict[str, Any] | None = None,
    ) -> bool:
        """Make a batch visible, all of it at once; `replace` drops the files committed before.

        `attempt` is that of `new_attempt`, the same as in the names of the files and in the rows of other tables that
        become visible with them. False when anything was committed since the state `after`: then nothing was changed,
        and the caller looks again.
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
            "synopsis.paths_version": json.dumps(paths_version),
            "synopsis.members_version": json.dumps(members_version),
            "synopsis.where": json.dumps(where),
        }
        table = DeltaTable(self.sketch_place, version=after.version if after else None)
        if after is None and table.transaction_version(_TURN) is not None:
            return False
        # Every commit carries its turn too, so that Delta lets only one of two builds at once through.
        turn = (table.transaction_version(_TURN) or 0) + 1
        own = Transaction(batch.id, int(attempt, 16))
        try:
            _write(
                table,
                files,
                [own, Transaction(_TURN, turn)],
                metadata | {_TURN: str(turn)},
                "overwrite" if replace else "append",
            )
        except CommitFailedError:
            return False
        return True

    def stored_bytes(self) -> int:
        """Bytes of everything at the place, logs and uncommitted leftovers too."""
        system, path = folder(self.place)
        entries = system.get_file_info(pyarrow.fs.FileSelector(path, recursive=True))
        return sum(entry.size for entry in entries if entry.type == pyarrow.fs.FileType.File)

    @property
    def _places(self) -> tuple[str, ...]:
        return self.sketch_place, self.paths_place, self.members_place, self.rejects_place

    def _table(self, place: str) -> DeltaTable | None:
        if not DeltaTable.is_deltatable(place):
            return None
        try:
            table = DeltaTable(place)
            found = table.metadata().configuration.get(_FORMAT_PROPERTY)
        except DeltaError as problem:
            why = str(problem).splitlines()[0]
            raise BadTarget(f"{place} is a Delta table that cannot be read ({why}); give another folder") from None
        if found is None:
            raise NotASketch(f"{place} is a Delta table that Synopsis did not write; give another folder")
        if found not in _READ:
            raise ForeignFormat(self.place, found, FORMAT)
        return table


def _last_commit(table: DeltaTable) -> dict[str, Any] | None:
    """The last commit of ours that this table holds: its log may have grown since, and the library shows all of it."""
    turn = table.transaction_version(_TURN)
    if turn is None:
        return None
    for limit in (1, None):  # mostly the very last; asking for all reads the whole log
        for commit in table.history(limit):
            if commit.get(_TURN) == str(turn):
                return commit
    return None


def _names(table: DeltaTable) -> list[str]:
    return [uri.rsplit("/", 1)[-1] for uri in table.file_uris()]


def _attempt_of(version: int) -> str:
    return f"{version:012x}"


def _create(place: str, schema: pa.Schema) -> None:
    """Make a table where there is none."""
    if DeltaTable.is_deltatable(place):
        return
    if "://" not in place:
        Path(place).mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(CommitFailedError):  # another build made it just now
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
