"""Progress: lines with rows and rate off a terminal, a bar on one, nothing where nothing is wanted."""

from __future__ import annotations

import os
import pty
import re
import sys
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import synopsis as syn
from synopsis.core.errors import EmptySource
from synopsis.core.spec import Spec
from synopsis.spark import progress
from synopsis.spark.progress import Bar, Lines, Progress, Silent
from synopsis.testing.rows import Rows

ROWS = Rows.of_stations(300)
SPEC = Spec("lat", "lon", "ts", ROWS.features, exact_at=(3, "1y"))


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "synopsis-progress"]


@pytest.mark.usefixtures("spark")
def test_off_a_terminal_each_step_is_told_in_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    syn.build(ROWS.table(), SPEC, tmp_path / "w.syn")
    said = capfd.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines
    assert all(re.fullmatch(r"[a-z ]+: [\d,]+ rows, [\d,]+ rows/s, \d+ of \d+ tasks", line) for line in lines), lines
    rows = int(re.findall(r": ([\d,]+) rows,", lines[-1])[0].replace(",", ""))
    assert rows >= len(ROWS)
    assert watchers() == []


@pytest.mark.usefixtures("spark")
def test_silence_where_silence_is_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    syn.build(ROWS.table(), SPEC, tmp_path / "w.syn", progress=False)
    assert tuple(capfd.readouterr()) == ("", "")
    assert watchers() == []


@pytest.mark.usefixtures("spark")
def test_a_build_that_fails_leaves_no_watcher_either(tmp_path: Path) -> None:
    nowhere = ROWS.table().set_column(1, "lat", [[1000.0] * len(ROWS)])
    with pytest.raises(EmptySource):
        syn.build(nowhere, SPEC, tmp_path / "w.syn")
    assert watchers() == []


@pytest.mark.usefixtures("spark")
def test_on_a_terminal_there_is_a_bar_with_rows_and_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal, os.fdopen(theirs, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        shown: list[bytes] = []

        def read() -> None:
            while b"\x00" not in (piece := terminal.read(4096)):
                shown.append(piece)

        reader = threading.Thread(target=read)
        reader.start()
        threads = set(threading.enumerate())
        syn.build(ROWS.table(), SPEC, tmp_path / "w.syn")
        assert set(threading.enumerate()) <= threads  # neither the watcher nor the bar's own thread
        stderr.write("\x00")
        stderr.flush()
        reader.join(timeout=10)
    text = b"".join(shown).decode()
    assert "\x1b[" in text
    assert "summing" in text
    assert re.search(r"[1-9][\d,]* rows  [\d,]+ rows/s", text)
    assert "tasks" not in text


def test_a_line_tells_step_rows_rate_and_tasks() -> None:
    told: list[str] = []
    show = Lines(told.append)
    show(Progress("summing", 1_234_567, 2.0, 3, 4))
    show(Progress("summing", 0, 0.0, 0, 0))
    show.close()
    assert told == ["summing: 1,234,567 rows, 617,284 rows/s, 3 of 4 tasks", "summing: 0 rows, 0 rows/s, 0 of 0 tasks"]


def test_a_terminal_gets_a_bar_and_anything_else_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(progress.chosen(False), Silent)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert isinstance(progress.chosen(None), Lines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = progress.chosen(None)
    assert isinstance(bar, Bar)
    bar.close()


class Broken:
    """Shows nothing, ever: the pipe is closed."""

    interval_s = 0.001
    shows_end = True

    def __call__(self, progress: Progress) -> None:
        raise BrokenPipeError

    def close(self) -> None:
        """Nothing to take away."""


def test_what_goes_wrong_with_showing_does_not_harm_the_job(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with progress.watched(spark, "counting", Broken()):
        time.sleep(0.2)
        assert spark.range(10).count() == 10
    assert watchers() == []
    assert capfd.readouterr().err == ""
