"""The session takes what runs, sets what nobody set, keeps quiet, and stops only what it started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from synopsis.core.errors import SparkFailed
from synopsis.spark import java, machine
from synopsis.spark import session as sessions

GIBIBYTE = 1 << 30

ALONE = """
import os
from synopsis.spark import session as sessions
before = dict(os.environ)
settings = {"spark.driver.memory": "900m", "spark.sql.session.timeZone": "Asia/Kolkata",
            "spark.driver.extraJavaOptions": "-Dsaid=it -Xss8m"}
spark = sessions.session("local[1]", settings)
jvm = spark.sparkContext._jvm
arguments = list(jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
assert "-Xmx900m" in arguments and jvm.java.lang.System.getProperty("said") == "it", arguments
assert arguments.index("-Xss16m") < arguments.index("-Xss8m")  # Java takes the last
assert spark.sparkContext.getConf().get("spark.driver.host") == "127.0.0.1"
changed = {name for name in os.environ if os.environ[name] != before.get(name)}
assert changed <= {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}, changed
assert sessions.own(spark) and "NativeCodeLoader" in sessions.log_file().read_text()
process = spark.sparkContext._gateway.proc
sessions.stop()
assert process.returncode is not None  # Java has gone
again = sessions.session("local[1]", {"spark.driver.memory": "800m"})
assert again.range(7).count() == 7 and again.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory() == 800 << 20
sessions.stop()
"""

FOREIGN = """
import warnings
from pyspark.sql import SparkSession
from synopsis.spark import session as sessions
theirs = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
zone = theirs.conf.get("spark.sql.session.timeZone")
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    got = sessions.session("local[3]", {"spark.sql.shuffle.partitions": "3", "spark.driver.memory": "3g"})
assert got.sparkContext is theirs.sparkContext and not sessions.own(got)
assert [str(w.message) for w in said if "keeps its own spark.driver.memory, spark.master" in str(w.message)], said
assert got.conf.get("spark.sql.shuffle.partitions") == "3" and got.conf.get("spark.sql.session.timeZone") == zone
assert "your Spark session" in sessions.log_name()
sessions.stop()
assert theirs.range(3).count() == 3
theirs.stop()
ours = sessions.session("local[1]")  # in the Java that is there
assert sessions.own(ours) and ours.range(3).count() == 3
ours.stop()
theirs = SparkSession.builder.master("local[1]").getOrCreate()
assert not sessions.own(theirs)
sessions.stop()
assert theirs.range(3).count() == 3
theirs.stop()
"""


def run(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=os.environ | environment, cwd=folder, capture_output=True, text=True)


def test_the_running_session_is_taken(spark: SparkSession) -> None:
    assert sessions.session() is spark
    assert sessions.own(spark)
    assert sessions.log_name() == str(sessions.log_file())


def test_every_default_reaches_spark(spark: SparkSession) -> None:
    expected = sessions.defaults("local[*]", machine.cores(), machine.memory_bytes())
    assert {name: spark.conf.get(name) for name in expected} == expected


def test_workers_run_this_python(spark: SparkSession) -> None:
    def tell(batches):  # type: ignore[no-untyped-def]  # shipped to a worker
        import sys

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable] * len(batch)})

    assert spark.range(1).mapInArrow(tell, "python string").first().python == sys.executable  # type: ignore[union-attr]


def test_a_setting_that_comes_too_late_is_named(spark: SparkSession) -> None:
    with pytest.warns(UserWarning, match=r"keeps its own spark\.driver\.memory"):
        assert sessions.session(conf={"spark.driver.memory": "77m"}) is spark


@pytest.mark.parametrize(
    ("memory_bytes", "heap"), [(GIBIBYTE, "1024m"), (6 * GIBIBYTE, "2048m"), (64 * GIBIBYTE, "4096m")]
)
def test_the_heap_is_a_third_of_memory_within_bounds(memory_bytes: int, heap: str) -> None:
    assert sessions.defaults("local[*]", 2, memory_bytes)["spark.driver.memory"] == heap


def test_a_far_master_is_given_neither_heap_nor_loopback() -> None:
    settings = sessions.defaults("spark://far:7077", 2, GIBIBYTE)
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.driver.memory"} & set(settings)


def test_what_the_site_says_goes_before_defaults(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# ours\n\nspark.driver.memory   32g\nspark.master=yarn\n")
    expected = {"spark.driver.memory": "32g", "spark.master": "yarn"}
    assert sessions._site_settings({"SPARK_CONF_DIR": str(tmp_path)}) == expected
    assert sessions._site_settings({"SPARK_HOME": str(tmp_path / "none")}) == {}


def test_memory_and_cores_are_what_a_machine_can_have() -> None:
    assert 1 <= machine.cores() <= (os.cpu_count() or 1)
    assert 64 << 20 < machine.memory_bytes() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.spark
@pytest.mark.slow
def test_alone_it_is_silent_leaves_nothing_and_can_start_again(tmp_path: Path) -> None:
    done = run(ALONE, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
@pytest.mark.slow
def test_a_session_of_somebody_else_is_used_and_left_running(tmp_path: Path) -> None:
    done = run(FOREIGN, tmp_path, JAVA_HOME=str(java.find().home))
    assert done.returncode == 0, done.stderr


@pytest.mark.spark
def test_a_java_that_fails_to_start_is_one_sentence_that_names_the_log(tmp_path: Path) -> None:
    program = (
        "from synopsis.spark import session as sessions\n"
        "try:\n    sessions.session('local[1]', {'spark.driver.memory': 'much'})\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = run(program, tmp_path)
    assert done.stdout.startswith(f"{SparkFailed.__name__} Spark failed: ")
    assert ".log)" in done.stdout
    assert done.stderr == ""


@pytest.mark.spark
def test_a_master_that_makes_no_sense_is_one_sentence(tmp_path: Path) -> None:
    program = (
        "from synopsis.spark import session as sessions\n"
        "try:\n    sessions.session('nonsense')\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = run(program, tmp_path)
    assert done.stdout.startswith(f"{SparkFailed.__name__} Spark failed: ")
    assert "nonsense" in done.stdout or ".log)" in done.stdout
    assert done.stderr == ""
