import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from synopsis.core.errors import BadTarget, ForeignFormat, NotASketch
from synopsis.core.spec import Spec
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.store.codec import SCHEMA, to_table
from synopsis.store.files import write_file
from synopsis.store.store import FORMAT, Batch, Store
from synopsis.testing.strategies import close

SPEC = Spec(lat="lat", lon="lon", time="ts", features=["a", "b"])
LAYOUT = Layout(("a", "b"), 20, "1d")


def rows(seed, count=50):
    random = np.random.default_rng(seed)
    latitude, longitude = random.uniform(-5, 5, count), random.uniform(-5, 5, count)
    return Strands.of(LAYOUT, latitude, longitude, random.integers(0, 10**12, count), random.normal(size=(2, count)))


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "w.syn")
    made.prepare()
    return made


def add(store, strands, batch, *, after="now", replace=False, rejects_version=None, attempt="00000000cafe"):
    file = write_file(to_table(strands), store.sketch_place, attempt)
    state = store.state() if after == "now" else after
    facts = Batch(batch, int(strands.rows.sum()), {"no place": 1}, {"a": 2}, 123)
    versions = {"after": state, "rejects_version": rejects_version}
    return store.commit(SPEC, strands.layout, [file], facts, attempt=attempt, replace=replace, **versions)


def test_a_place_where_nothing_was_committed_has_no_state(store, tmp_path):
    assert store.state() is None
    assert Store(tmp_path / "nowhere").state() is None
    with pytest.raises(NotASketch, match="build one with"):
        store.require_state()


def test_what_was_committed_comes_back(store):
    assert add(store, rows(1), "one")
    assert add(store, rows(2), "two")
    state = store.require_state()
    assert close(store.strands(state), rows(1) + rows(2))
    assert (state.spec, state.layout) == (SPEC, LAYOUT)
    assert [(batch.id, batch.rejected, batch.missing) for batch in store.batches()] == [
        ("one", {"no place": 1}, {"a": 2}),
        ("two", {"no place": 1}, {"a": 2}),
    ]


def test_an_older_state_still_reads_what_it_named(store):
    add(store, rows(1), "one")
    before = store.require_state()
    add(store, rows(2), "two")
    assert close(store.strands(before), rows(1))


def test_a_commit_that_another_overtook_changes_nothing(store):
    add(store, rows(1), "one")
    stale = store.require_state()
    assert add(store, rows(2), "two")
    assert not add(store, rows(3), "three", after=stale)
    assert not add(store, rows(3).coarsened(Layout(("a", "b"), 5, "1y")), "three", after=stale, replace=True)
    assert close(store.strands(store.require_state()), rows(1) + rows(2))


def test_the_same_batch_cannot_be_committed_twice_at_once(store):
    add(store, rows(1), "one")
    stale = store.require_state()
    assert add(store, rows(2), "two", after=stale)
    assert not add(store, rows(2), "two", after=stale)
    assert store.has_batch("two")
    assert not store.has_batch("three")


def test_replacing_drops_what_was_there(store):
    add(store, rows(1), "one")
    coarse = rows(1).coarsened(Layout(("a", "b"), 10, "1mo"))
    assert add(store, coarse, "two", replace=True)
    state = store.require_state()
    assert state.layout.bucket == "1mo"
    assert close(store.strands(state), coarse)


def test_files_without_a_commit_are_not_seen_and_can_be_discarded(store):
    add(store, rows(1), "one")
    file = write_file(to_table(rows(2)), store.sketch_place, "lost")
    assert close(store.strands(store.require_state()), rows(1))
    size = store.stored_bytes()
    store.discard("lost")
    assert store.stored_bytes() == size - file.size_bytes
    assert close(store.strands(store.require_state()), rows(1))


def set_aside(store, batch, reason, attempt):
    table = pa.table({"batch": [batch], "attempt": [attempt], "reason": [reason], "row": ["{}"]})
    return store.add_rejects([write_file(table, store.rejects_place, attempt)])


def test_rejects_of_a_batch_are_seen_only_once_it_is_committed(store):
    version = set_aside(store, "one", "no place", "0000000000a1")
    add(store, rows(2), "two", rejects_version=version)
    assert store.rejects(store.require_state()).num_rows == 0
    add(store, rows(1), "one", rejects_version=version, attempt="0000000000a1")
    assert store.rejects(store.require_state()).to_pylist() == [{"batch": "one", "reason": "no place", "row": "{}"}]


def test_rejects_of_an_attempt_that_came_to_nothing_are_never_seen(store):
    set_aside(store, "one", "no place", "0000000000a1")
    version = set_aside(store, "one", "no time", "0000000000a2")
    add(store, rows(1), "one", rejects_version=version, attempt="0000000000a2")
    assert store.rejects(store.require_state())["reason"].to_pylist() == ["no time"]


def test_discarding_keeps_what_a_commit_names(store):
    version = set_aside(store, "one", "no place", "0000000000a1")
    add(store, rows(1), "one", rejects_version=version, attempt="0000000000a1")
    store.discard("0000000000a1")
    state = store.require_state()
    assert close(store.strands(state), rows(1))
    assert store.rejects(state).num_rows == 1


def test_discarding_leaves_no_empty_folder_that_was_not_there(tmp_path):
    fresh, old = Store(tmp_path / "fresh"), Store(tmp_path / "old")
    (tmp_path / "old").mkdir()
    for store, was_there in ((fresh, False), (old, True)):
        write_file(to_table(rows(1)), store.sketch_place, "0000000000a1")
        store.discard("0000000000a1", was_there=was_there)
    assert [entry.name for entry in tmp_path.rglob("*")] == ["old"]


def test_a_state_names_the_files_and_the_layout_of_one_commit(store, monkeypatch):
    """The log grows between opening the table and reading what the commit says."""
    add(store, rows(1), "one")
    opened = store._table

    def overtaken(place):
        table = opened(place)
        monkeypatch.undo()
        assert add(store, rows(1).coarsened(Layout(("a", "b"), 5, "1y")), "two", replace=True)
        return table

    monkeypatch.setattr(store, "_table", overtaken)
    before = store.require_state()
    assert before.layout == LAYOUT
    assert close(store.strands(before), rows(1))
    assert store.require_state().layout.bucket == "1y"


def test_the_first_commit_of_two_at_once_wins(store):
    assert add(store, rows(1), "one", after=None)
    assert not add(store, rows(2), "two", after=None)
    assert close(store.strands(store.require_state()), rows(1))


def test_many_builds_may_make_the_place_at_once(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        for turn in range(10):
            list(pool.map(lambda place: Store(place).prepare(), [tmp_path / str(turn)] * 8))
            assert add(Store(tmp_path / str(turn)), rows(1), "one")


def test_hundreds_of_commits_still_know_every_batch(store):
    """Delta writes a checkpoint after a hundred commits, and drops what it deems superseded."""
    for batch in range(110):
        assert add(store, rows(batch % 3, 2), str(batch))
    assert store.has_batch("0")
    assert store.has_batch("109")
    assert not store.has_batch("110")
    assert int(store.strands(store.require_state()).rows.sum()) == 220


def test_a_folder_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadTarget, match=r"holds 'notes\.txt'"):
        Store(tmp_path).check()
    with pytest.raises(BadTarget, match="is a file"):
        Store(tmp_path / "notes.txt").check()
    Store(tmp_path / "new").check()
    assert not (tmp_path / "new").exists()


def test_a_place_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadTarget, match=r"nothing can be written to .*file; give another folder"):
        Store(tmp_path / "file" / "w.syn").check()
    for name in ("a%20b", "a\\b", "a#b", "a?b"):
        with pytest.raises(BadTarget, match=r"in its path, .* give another folder"):
            Store(tmp_path / name).check()


@pytest.mark.parametrize("name", ["a b", "é", "100%", "a*[d]{e}'f\"&;+~", "a:b", "cell=4/year=2025"])
def test_a_place_may_have_an_odd_name(tmp_path, name):
    store = Store(tmp_path / name)
    store.prepare()
    version = set_aside(store, "one", "no place", "00000000cafe")
    add(store, rows(1), "one", rejects_version=version)
    assert close(store.strands(store.require_state()), rows(1))
    assert store.rejects(store.require_state()).num_rows == 1


def test_a_relative_place_means_the_same_wherever_one_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store("w.syn")
    store.prepare()
    monkeypatch.chdir("/")
    add(store, rows(1), "one")
    assert close(Store(tmp_path / "w.syn").strands(Store(tmp_path / "w.syn").require_state()), rows(1))


def test_a_damaged_log_is_one_sentence(store):
    add(store, rows(1), "one")
    for log in Path(store.sketch_place, "_delta_log").glob("*.json"):
        log.write_text("{ this is not a log")
    with pytest.raises(BadTarget, match=r"cannot be read \(.*\); give another folder"):
        store.state()


def test_a_foreign_delta_table_and_a_newer_format_are_refused(tmp_path):
    DeltaTable.create(tmp_path / "foreign" / "sketch", SCHEMA)
    with pytest.raises(NotASketch, match="did not write"):
        Store(tmp_path / "foreign").state()
    DeltaTable.create(tmp_path / "beside" / "rejects", SCHEMA)
    with pytest.raises(NotASketch, match="did not write"):
        Store(tmp_path / "beside").check()
    newer = Store(tmp_path / "newer")
    newer.prepare()
    log = tmp_path / "newer" / "sketch" / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"]["synopsis.format"] = "99"
    log.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(ForeignFormat, match=f"has sketch format 99 and this release reads {FORMAT}"):
        newer.check()


def test_other_tools_read_the_same_bytes(store):
    import duckdb

    add(store, rows(1), "one")
    files = [f"{store.sketch_place}/{name}" for name in store.require_state().files]
    total, mean = duckdb.sql(
        f"select sum(rows), sum(count[1] * mean[1]) / sum(count[1]) from read_parquet({files!r})"
    ).fetchall()[0]
    whole = rows(1)
    assert total == whole.rows.sum()
    assert mean == pytest.approx((whole.moments.count[0] * whole.moments.mean[0]).sum() / whole.moments.count[0].sum())


def test_a_sketch_of_the_format_before_spells_is_read(store):
    add(store, rows(1), "one")
    for log in Path(store.place).glob("*/_delta_log/*.json"):
        log.write_text(log.read_text().replace(f'"synopsis.format":"{FORMAT}"', '"synopsis.format":"8"'))
    again = Store(store.place)
    again.check()
    assert '"synopsis.format":"8"' in (Path(store.sketch_place) / "_delta_log" / f"{0:020}.json").read_text()
    assert again.has_batch("one")
