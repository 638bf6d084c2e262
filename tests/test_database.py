"""A database in this process, without Spark: what its answers are of, and how long they took."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import synopsis as syn
from synopsis.core.spec import Spec
from synopsis.query.answer import AsOf
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands
from synopsis.store.codec import to_table
from synopsis.store.files import new_attempt, write_file
from synopsis.store.store import Batch, Store
from synopsis.store.watermarks import watermark_us

HOUR_US = 3_600_000_000
LAYOUT = Layout(("x",), 20, "1d")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "w.syn")
    made.prepare()
    return made


def add(store: Store, batch: str, hours: int | None) -> None:
    """Commit five rows whose latest instant is so many hours after 1970 began, or is not told."""
    latest_us = None if hours is None else hours * HOUR_US
    strands = Strands.of(LAYOUT, np.ones(5), np.ones(5), np.full(5, latest_us or 0), np.arange(5.0)[None, :])
    attempt = new_attempt()
    file = write_file(to_table(strands), store.sketch_place, attempt)
    facts = Batch(batch, 5, watermark_us=latest_us)
    spec = Spec("lat", "lon", "ts", ["x"])
    after = store.state()
    assert store.commit(spec, LAYOUT, [file], facts, attempt=attempt, after=after, rejects_version=None)


def test_an_answer_says_what_it_is_of_and_how_long_it_took(store: Store) -> None:
    add(store, "one", hours=3)
    database = syn.open(store.place)
    begun = time.perf_counter()
    answer = database.query("SELECT COUNT(*)")
    assert answer.elapsed is not None
    assert 0.0 < answer.elapsed <= time.perf_counter() - begun
    assert answer.as_of == AsOf(store.require_state().version, datetime(1970, 1, 1, 3, tzinfo=UTC))
    assert str(answer.as_of).endswith("rows up to 1970-01-01 03:00:00+00:00")


def test_the_watermark_is_that_of_the_latest_batch_in_whatever_order_they_came(store: Store) -> None:
    for number, hours in enumerate([5, 9, None, 2]):
        add(store, f"batch {number}", hours)
    assert watermark_us(store, store.require_state()) == 9 * HOUR_US


def test_no_watermark_is_told_where_no_batch_tells_one(store: Store) -> None:
    add(store, "one", None)
    as_of = syn.open(store.place).as_of
    assert as_of.watermark is None
    assert str(as_of) == f"commit {as_of.version}"


def test_a_database_and_its_state_do_not_see_later_commits(store: Store) -> None:
    add(store, "one", 3)
    database, state = syn.open(store.place), store.require_state()
    add(store, "two", 9)
    assert watermark_us(store, state) == 3 * HOUR_US
    assert watermark_us(store, store.require_state()) == 9 * HOUR_US
    before, after = database.query("SELECT COUNT(*)"), syn.open(store.place).query("SELECT COUNT(*)")
    assert before.as_of is not None
    assert after.as_of is not None
    assert (before["COUNT(*)"].estimate, before.as_of.watermark) == (5, datetime(1970, 1, 1, 3, tzinfo=UTC))
    assert (after["COUNT(*)"].estimate, after.as_of.watermark) == (10, datetime(1970, 1, 1, 9, tzinfo=UTC))
    assert before.as_of.version < after.as_of.version


def test_an_open_database_answers_when_its_folder_is_gone(store: Store) -> None:
    add(store, "one", 3)
    database = syn.open(store.place)
    shutil.rmtree(store.place)
    assert database.query("SELECT MEAN(x)")["MEAN(x)"].estimate == 2.0
