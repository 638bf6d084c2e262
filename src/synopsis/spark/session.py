"""The Spark session: the one that runs already, or one of our own, fit for a small machine and silent.

What Spark and Java have to say goes to a log file, never to the terminal; errors name that file. Every default gives
way to the caller's settings and to those of the site (`spark-defaults.conf`).
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from synopsis.core.errors import SparkFailed
from synopsis.spark import java, machine

_LOG_DAYS = 14  # how long the logs of past sessions are kept
_MEGABYTE = 1 << 20
_LAST_BREATH_S = 1.0  # from the end of a connection to Java to the end of Java

_lock = threading.RLock()
_own: SparkSession | None = None
_log: Path | None = None


def session(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The running session, or a new one with `conf` over our defaults.

    Settings that a running session cannot take any more are left alone, with a warning that names them.
    """
    global _own
    with _lock:
        found = running()
        if found is not None:
            for name, value in changeable(found, master, conf).items():
                found.conf.set(name, value)
            return found
        _own = _start(_asked(master, conf))
        return _own


def running() -> SparkSession | None:
    """The session that runs in this process, ours or not."""
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def changeable(spark: SparkSession, master: str | None = None, conf: Mapping[str, str] | None = None) -> dict[str, str]:
    """Which of these settings a running session can take; a warning names those that it cannot."""
    asked = _asked(master, conf)
    free = {name: value for name, value in asked.items() if spark.conf.isModifiable(name)}
    fixed = [name for name in asked.keys() - free.keys() if spark.sparkContext.getConf().get(name) != asked[name]]
    if fixed:
        warnings.warn(
            f"a Spark session is running already and keeps its own {', '.join(sorted(fixed))}; stop it to change them",
            stacklevel=3,
        )
    return free


def own(spark: SparkSession) -> bool:
    """Whether `spark` was started here, and so is ours to stop."""
    return _own is not None and spark.sparkContext is _own.sparkContext


def stop() -> None:
    """Stop the session that was started here, and its Java; somebody else's is left running."""
    global _own
    with _lock:
        ours, _own = _own, None
        if ours is None or ours.sparkContext is not SparkContext._active_spark_context:
            return  # nothing, or stopped already; what runs now is another's
        ours.stop()
        gateway = SparkContext._gateway
        process = getattr(gateway, "proc", None)
        if gateway is None or process is None:  # Java was started by spark-submit and outlives us
            return
        gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
        process.stdin.close()  # Spark's Java ends when this pipe does
        process.wait()


def java_has_stopped() -> bool:
    """Whether the Java that this process started has gone, killed or out of memory."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_LAST_BREATH_S)
    return process.poll() is not None


def log_file() -> Path:
    """Where Spark and Java write what they have to say in this process."""
    global _log
    with _lock:
        if _log is None:
            folder = next(machine.keeping_places("logs"))
            _sweep(folder)
            _log = folder / f"spark-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
        return _log


def log_name() -> str:
    """The log as an error message names it: a session that is not ours writes where its owner said."""
    context = SparkContext._active_spark_context  # asked without Java, which may have gone
    ours = _own.sparkContext if _own is not None else None
    return str(log_file()) if context is None or context is ours else "the log of your Spark session"


def defaults(master: str, cores: int, memory_bytes: int) -> dict[str, str]:
    """What we set where nobody else did; heap and parallelism only where the whole of Spark is on this machine.

    >>> small = defaults("local[*]", cores=2, memory_bytes=6 << 30)
    >>> small["spark.driver.memory"], small["spark.sql.shuffle.partitions"]
    ('2048m', '4')
    >>> "spark.driver.memory" in defaults("spark://far:7077", cores=2, memory_bytes=6 << 30)
    False
    """
    # A query stopped inside foreachBatch overflows the default stack; and what Spark generates for many features is
    # longer than the 8000 bytes beyond which Java would interpret it for ever.
    options = "-Xss16m -XX:-DontCompileHugeMethods"
    settings = {
        "spark.master": master,
        "spark.app.name": "synopsis",
        "spark.driver.defaultJavaOptions": options,  # Spark puts the caller's extraJavaOptions behind these
        "spark.executor.defaultJavaOptions": options,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.maxFields": "10000",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.legacy.parquet.nanosAsLong": "true",  # Spark knows no nanoseconds, and refuses such files otherwise
    }
    if master.startswith("local"):
        heap_mb = min(max(memory_bytes // 3 // _MEGABYTE, 1024), 4096)
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": f"{heap_mb}m",
            "spark.sql.shuffle.partitions": str(max(2 * _threads(master, cores), 2)),
        }
    return settings


def _threads(master: str, cores: int) -> int:
    """How many tasks run at once under a local master.

    >>> _threads("local", 8), _threads("local[*]", 8), _threads("local[3]", 8), _threads("local-cluster[2,1,1024]", 8)
    (1, 8, 3, 2)
    """
    if cluster := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master):
        return int(cluster[1]) * int(cluster[2])
    if threads := re.fullmatch(r"local\[\s*(\d+|\*).*\]", master):
        return cores if threads[1] == "*" else int(threads[1])
    return 1


def _site_settings(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What this site's `spark-defaults.conf` says, where there is one."""
    folder = environ.get("SPARK_CONF_DIR") or (Path(environ["SPARK_HOME"], "conf") if "SPARK_HOME" in environ else None)
    file = Path(folder, "spark-defaults.conf") if folder else None
    if file is None or not file.is_file():
        return {}
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    pairs = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _asked(master: str | None, conf: Mapping[str, str] | None) -> dict[str, str]:
    return dict(conf or {}) | ({"spark.master": master} if master else {})


def _start(asked: Mapping[str, str]) -> SparkSession:
    site = _site_settings()
    master = asked.get("spark.master") or site.get("spark.master") or "local[*]"
    ours = defaults(master, machine.cores(), machine.memory_bytes())
    settings = {name: value for name, value in ours.items() if name not in site} | dict(asked)
    # Workers must run this very Python; Spark's own choice, `python3`, may be another with other packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    spark_conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
            here = {"SPARK_LOCAL_IP": "127.0.0.1"} if settings.get("spark.driver.host") == "127.0.0.1" else {}
            with _environment({"JAVA_HOME": str(java.find().home)} | here), log_file().open("ab") as log:
                # pyspark is typed but for this module
                gateway = launch_gateway(spark_conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
        else:
            gateway = None  # a Java of an earlier session, or of spark-submit
        context = SparkContext(conf=spark_conf, gateway=gateway)
        return SparkSession(context)
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(_first_line(error), str(log_file())) from error


@contextlib.contextmanager
def _environment(given: Mapping[str, str]) -> Iterator[None]:
    """Variables for the program that starts Java; this process has its own again afterwards."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _sweep(folder: Path) -> None:
    """Remove the logs of sessions long past."""
    old = time.time() - _LOG_DAYS * 86_400
    for log in folder.glob("spark-*.log"):
        with contextlib.suppress(OSError):  # another process sweeps too
            if log.stat().st_mtime < old:
                log.unlink()


def _first_line(error: Any) -> str:
    """What Java complained of, without its stack."""
    thrown = getattr(error, "java_exception", None)
    text = str(thrown.getMessage() if thrown is not None else error) or type(error).__name__
    return text.strip().splitlines()[0]
