"""Builds at once into one target: all of them land, each batch once, whatever layout each of them began with.

No Spark is needed: what executors would have written is written here, and only the commits race.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from synopsis.core.errors import BadTarget, BudgetTooSmall, SpecDiffers
from synopsis.core.spec import Spec
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.spark.aggregate import Outcome
from synopsis.spark.batches import Adding
from synopsis.spark.stranding import commit_strands
from synopsis.store.codec import to_table
from synopsis.store.files import new_attempt, write_file
from synopsis.store.store import Store
from synopsis.testing.rows import Rows
from synopsis.testing.strategies import close

ROWS = Rows.of_stations(240)
SPEC = Spec("lat", "lon", "ts", ROWS.features, precision=4, bucket="1d", memory="1MB")
DAYS = Layout(ROWS.features, 20, "1d")

PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_concurrency as tests
print("ready", flush=True)
sys.stdin.readline()
place, part = Path(sys.argv[2]), int(sys.argv[3])
tests.add(place, tests.part(part), f"batch {part}")
print(tests.add(place, tests.part(0), "shared") is not None)
"""


def part(number: int) -> Rows:
    """Every sixth row."""
    return ROWS.take(np.arange(len(ROWS)) % 6 == number)


def add(place: Path, rows: Rows, batch: str, layout: Layout = DAYS, spec: Spec = SPEC) -> Strands | None:
    """What a build does once the executors are done, with one rejected row."""
    store, attempt = Store(place), new_attempt()
    files = (write_file(to_table(rows.strands(layout)), store.sketch_place, attempt),)
    aside = pa.table({"batch": [batch], "attempt": [attempt], "reason": ["no place"], "row": ["{}"]})
    rejects = (write_file(aside, store.rejects_place, attempt),)
    outcome = Outcome(files, len(rows), {"no place": 1})
    adding = Adding(None, None, spec, store, batch, "rows", attempt, False, None, 0.0)  # Spark is done
    committed: tuple = ()
    try:
        strands, _, committed = commit_strands(adding, layout, outcome, rejects, None)
    finally:
        store.discard(attempt, committed, was_there=False)
    return strands


def check(place: Path, rows: Rows, batches: set[str]) -> Layout:
    store = Store(place)
    state = store.require_state()
    found = store.strands(state)
    assert close(found, rows.strands(found.layout))
    assert sorted(store.rejects(state)["batch"].to_pylist()) == sorted(batches)
    assert {batch.id for batch in store.batches()} == batches
    return found.layout


def overtaken(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Let another build commit right before the next commit."""
    real = Store.commit

    def commit(self, *arguments, **options):
        monkeypatch.setattr(Store, "commit", real)
        other()
        return real(self, *arguments, **options)

    monkeypatch.setattr(Store, "commit", commit)


def test_different_batches_at_once_all_land(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(add, tmp_path / "w.syn", part(k), f"batch {k}") for k in range(6)]
        assert all(future.result() is not None for future in futures)
    check(tmp_path / "w.syn", ROWS, {f"batch {k}" for k in range(6)})


def test_the_same_batch_at_once_lands_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(5) as pool:
        futures = [pool.submit(add, tmp_path / "w.syn", ROWS, "one") for _ in range(5)]
        assert sum(future.result() is not None for future in futures) == 1
    check(tmp_path / "w.syn", ROWS, {"one"})
    assert len(list((tmp_path / "w.syn" / "sketch").glob("*.parquet"))) == 1  # what the others wrote has gone


@pytest.mark.cluster
def test_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each adds a part of its own, and then all the same batch."""
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), str(tmp_path / "w.syn")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    builders = [subprocess.Popen([*command, str(k)], **pipes) for k in range(1, 4)]
    for builder in builders:
        assert builder.stdout.readline() == "ready\n"
    for builder in builders:
        builder.stdin.write("go\n")
        builder.stdin.flush()
    landed = [builder.communicate()[0] for builder in builders]
    assert sorted(landed) == ["False\n", "False\n", "True\n"]
    mine = ROWS.take(np.arange(len(ROWS)) % 6 < 4)
    check(tmp_path / "w.syn", mine, {"shared", "batch 1", "batch 2", "batch 3"})


def test_one_coarsens_while_another_appends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "w.syn"
    add(place, part(0), "zero")
    small = Spec.from_dict(SPEC.to_dict() | {"memory": 15_000})
    overtaken(monkeypatch, lambda: add(place, part(1), "coarser", spec=small))
    assert add(place, part(2), "finer") is not None
    layout = check(place, ROWS.take(np.arange(len(ROWS)) % 6 < 3), {"zero", "coarser", "finer"})
    assert DAYS.nests_in(layout)
    assert layout != DAYS


def test_one_appends_while_another_coarsens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "w.syn"
    add(place, part(0), "zero")
    small = Spec.from_dict(SPEC.to_dict() | {"memory": 15_000})
    overtaken(monkeypatch, lambda: add(place, part(1), "finer"))
    assert add(place, part(2), "coarser", spec=small) is not None
    layout = check(place, ROWS.take(np.arange(len(ROWS)) % 6 < 3), {"zero", "coarser", "finer"})
    assert layout != DAYS


@pytest.mark.parametrize(
    ("one", "two", "common"),
    [
        ((20, "1mo"), (15, "1d"), (15, "1mo")),  # neither nests in the other
        ((20, "1d"), (20, "1mo"), (20, "1mo")),
        ((10, "1y"), (20, "1d"), (10, "1y")),
    ],
)
def test_first_builds_that_planned_different_layouts_meet_in_one_that_holds_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: tuple, two: tuple, common: tuple
) -> None:
    place = tmp_path / "w.syn"
    overtaken(monkeypatch, lambda: add(place, part(1), "other", Layout(ROWS.features, *two)))
    assert add(place, part(0), "one", Layout(ROWS.features, *one)) is not None
    layout = check(place, ROWS.take(np.arange(len(ROWS)) % 6 < 2), {"one", "other"})
    assert (layout.bits, layout.bucket) == common


def test_a_sketch_of_another_spec_that_came_first_is_not_mixed_with_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, other = tmp_path / "w.syn", Spec.from_dict(SPEC.to_dict() | {"timezone": "Asia/Tokyo"})
    tokyo = Layout(ROWS.features, 20, "1d", "Asia/Tokyo")
    overtaken(monkeypatch, lambda: add(place, part(1), "tokyo", tokyo, other))
    with pytest.raises(SpecDiffers, match="timezone was 'Asia/Tokyo', now 'UTC'"):
        add(place, part(0), "utc")
    assert check(place, part(1), {"tokyo"}) == tokyo


def test_a_build_that_is_always_overtaken_gives_up_and_adds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "w.syn"
    add(place, part(0), "zero")
    before = sorted((place / "sketch").rglob("*"))
    monkeypatch.setattr(Store, "commit", lambda *_, **__: False)
    with pytest.raises(BadTarget, match="nothing was added, try again when they are done"):
        add(place, part(1), "never")
    monkeypatch.undo()
    check(place, part(0), {"zero"})
    assert sorted((place / "sketch").rglob("*")) == before


def test_a_promise_that_only_both_together_break_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch fits alone; the second finds out at its commit, and leaves the first as it was."""
    strict = Spec.from_dict(SPEC.to_dict() | {"exact_at": [4, "1d"], "memory": part(0).strands(DAYS).nbytes + 1_000})
    place = tmp_path / "w.syn"
    add(place, part(0), "zero", spec=strict)
    with pytest.raises(BudgetTooSmall, match=r"exact_at=\(4, '1d'\) takes [\d,]+ bytes"):
        add(place, part(1), "one", spec=strict)
    check(place, part(0), {"zero"})


def test_no_sketch_is_lost_when_the_user_interrupts_right_after_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Store.commit

    def interrupted(self, *arguments, **options):
        assert real(self, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        add(tmp_path / "w.syn", part(0), "zero")
    check(tmp_path / "w.syn", part(0), {"zero"})
