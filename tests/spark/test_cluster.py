"""On a cluster of two executor processes the sketch is that of the rows, and the executors have written it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

import synopsis as syn
from synopsis.core.spec import Spec
from synopsis.sketch.layout import Layout
from synopsis.testing.rows import Rows
from synopsis.testing.strategies import close

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.slow]

ROWS = Rows.of_stations(4_000)
SPEC = Spec("lat", "lon", "ts", ROWS.features, exact_at=(3, "1mo"))

PROGRAM = """
import json, sys
import pyarrow.parquet as pq
import synopsis as syn
from synopsis.core.spec import Spec
from synopsis.spark import session as sessions

spec = Spec.from_dict(json.loads(sys.argv[1]))
settings = {"spark.sql.files.openCostInBytes": "100000000", "spark.sql.adaptive.coalescePartitions.enabled": "false",
            "spark.executor.memory": "700m", "spark.driver.memory": "700m",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
syn.build("rows", spec, "files.syn", master="local-cluster[2,1,1024]", conf=settings, progress=False)
syn.build(pq.read_table("rows"), spec, "table.syn", progress=False)
context = sessions.session().sparkContext
executors = context._jsc.sc().statusStore().executorList(False)
ran = {executors.apply(k).id(): executors.apply(k).totalTasks() for k in range(executors.size())}
print(json.dumps({"master": context.master, "ran": ran}))
sessions.stop()
"""


def test_two_executor_processes_build_the_same_sketch(tmp_path: Path) -> None:
    """The target is a relative path, which means another folder where the executors stand."""
    home = tmp_path / "spark"  # workers keep their files in Spark's home: not in the one that pip installed
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    (tmp_path / "rows").mkdir()
    for part in range(8):
        pq.write_table(ROWS.table().slice(part * 500, 500), tmp_path / "rows" / f"{part}.parquet")
    before = set(Path(pyspark.__file__).parent.iterdir())
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(SPEC.to_dict())],
        cwd=tmp_path,
        env=os.environ | {"SPARK_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, err
    facts = json.loads(out)
    assert facts["master"] == "local-cluster[2,1,1024]"
    assert {name for name, tasks in facts["ran"].items() if tasks > 0} == {"0", "1"}
    expected = ROWS.strands(Layout(ROWS.features, 15, "1mo"))
    for name in ("files.syn", "table.syn"):
        assert close(syn.open(tmp_path / name).strands, expected)
    assert set(Path(pyspark.__file__).parent.iterdir()) == before
