"""A build killed at any moment leaves the last commit readable, and the next build of the same batch counts once."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import synopsis as syn
from synopsis.core.errors import NotASketch
from synopsis.core.spec import Spec
from synopsis.sketch.layout import Layout
from synopsis.store.codec import to_table
from synopsis.store.files import new_attempt, write_file
from synopsis.store.store import Batch, Store
from synopsis.testing.rows import Rows
from synopsis.testing.strategies import close

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

ROWS = Rows.of_stations(300)
OLD, NEW = ROWS.take(np.arange(100)), ROWS.take(np.arange(100, 300))
SPEC = Spec("lat", "lon", "ts", ROWS.features, exact_at=(3, "1mo"))
LAYOUT = Layout(ROWS.features, 15, "1mo")
REJECTED = 7

#: Where the build kills itself: a function, and whether before or after it has done its work.
PROGRAM = """
import json, os, signal, sys
import synopsis as syn
from synopsis.core.spec import Spec
from synopsis.spark import aggregate
from synopsis.store.store import Store

source, place, spec, home, name, when = sys.argv[1:]
owner = {"aggregate": aggregate, "Store": Store}.get(home)

def killed(*arguments, **options):
    if when == "after":
        real(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)

if owner is not None:
    real = getattr(owner, name)
    setattr(owner, name, killed)
# A short life is cheaper without the second compiler; and what it leaves goes with the test's own folder.
options = f"-XX:TieredStopAtLevel=1 -Djava.io.tmpdir={os.getcwd()}"
settings = {"spark.driver.memory": "600m", "spark.driver.extraJavaOptions": options}
print("begun", flush=True)
spec = Spec.from_dict(json.loads(spec))
syn.build(source, spec, place, batch="new", master="local[1]", conf=settings, progress=False)
print("done", flush=True)
"""

POINTS = {
    "before writing": ("aggregate", "write_strands", "before"),
    "after the executors wrote files": ("aggregate", "write_strands", "after"),
    "after the rejects were committed": ("Store", "add_rejects", "after"),
    "right before the commit": ("Store", "commit", "before"),
    "right after the commit": ("Store", "commit", "after"),
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The new rows, and some without a place."""
    rows, file = NEW.table(), tmp_path / "new.parquet"
    lost = rows.slice(0, REJECTED).set_column(1, "lat", pa.nulls(REJECTED, pa.float64()))
    pq.write_table(pa.concat_tables([rows, lost]), file)
    return file


def old_sketch(place: Path) -> None:
    """A sketch of the old rows, committed without Spark."""
    store, attempt = Store(place), new_attempt()
    store.prepare()
    file = write_file(to_table(OLD.strands(LAYOUT)), store.sketch_place, attempt)
    assert store.commit(SPEC, LAYOUT, [file], Batch("old", 100), attempt=attempt, after=None, rejects_version=None)


def start(source: Path, place: Path, point: tuple[str, str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(source), str(place), json.dumps(SPEC.to_dict()), *point]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=source.parent
    )


def end(process: subprocess.Popen[str]) -> str:
    """Kill what is left of it, Java too, and give what it said."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # its number is not free before we have waited for it
    return process.communicate()[0]


def check_and_build_again(place: Path, source: Path, committed: bool, had_sketch: bool = True) -> None:
    before = (OLD, NEW) if committed else (OLD,)
    if had_sketch:
        db = syn.open(place)
        whole = sum((rows.strands(LAYOUT) for rows in before[1:]), start=before[0].strands(LAYOUT))
        assert close(db.strands, whole)
        assert db.rejects().num_rows == (REJECTED if committed else 0)
    else:
        with pytest.raises(NotASketch):
            syn.open(place)
    report = syn.build(source, SPEC, place, batch="new", progress=False)
    assert report.repeated is committed
    db = syn.open(place)
    assert close(db.strands, ROWS.strands(LAYOUT) if had_sketch else NEW.strands(LAYOUT))
    assert db.rejects()["reason"].to_pylist() == ["no place"] * REJECTED
    assert [batch["id"] for batch in db.info()["batches"]] == (["old", "new"] if had_sketch else ["new"])
    assert syn.build(source, SPEC, place, batch="new", progress=False).repeated


@pytest.mark.parametrize("point", POINTS)
def test_a_build_that_is_killed_leaves_the_last_commit_and_can_be_run_again(
    point: str, source: Path, tmp_path: Path
) -> None:
    """After the rejects were committed it is a first build: there is no sketch before it."""
    place, is_first = tmp_path / "w.syn", point == "after the rejects were committed"
    if not is_first:
        old_sketch(place)
    process = start(source, place, POINTS[point])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    said = end(process)
    assert (process.returncode, said) == (-signal.SIGKILL, "begun\n")
    assert (place / "rejects").exists()
    check_and_build_again(place, source, committed=point == "right after the commit", had_sketch=not is_first)


@pytest.mark.parametrize("turn", [1, 2])
def test_a_build_that_is_killed_at_a_random_moment_can_be_run_again(turn: int, source: Path, tmp_path: Path) -> None:
    place = tmp_path / "w.syn"
    old_sketch(place)
    process = start(source, place, ("", "", ""))
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    moment_s = random.uniform(1.0, 12.0)
    time.sleep(moment_s)
    end(process)
    print(f"killed {moment_s:.2f} s after it began")  # shown when the test fails
    committed = Store(place).has_batch("new")
    check_and_build_again(place, source, committed)


WITHOUT_JAVA = """
import sys
from pyspark import SparkContext
from synopsis.cli import main
from synopsis.spark import aggregate

real = aggregate._written

def killed(*arguments, **options):
    SparkContext._gateway.proc.kill()
    return real(*arguments, **options)

aggregate._written = killed
main()
"""


def test_a_build_whose_java_dies_is_one_sentence_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    options = "--lat lat --lon lon --time ts --features rain --exact-at 3,1mo --to w.syn --master local[1] --quiet"
    options += f" --conf spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1\t-Djava.io.tmpdir={tmp_path}"
    command = [sys.executable, "-c", WITHOUT_JAVA, "build", str(source), *options.split(" ")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "synopsis: Spark failed: its Java has stopped, perhaps for want of memory (nothing was"
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "w.syn").exists()
