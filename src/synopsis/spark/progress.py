"""Progress of a job while it runs: a bar with rows and rate on a terminal, plain lines elsewhere.

Rows come from Spark's own status store, which executors report to; nothing is counted twice for the sake of the bar.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import SparkSession

#: Seconds between looks, on a terminal and elsewhere.
_TERMINAL_S, _PLAIN_S = 0.2, 5.0

#: How long the last counts of a step are waited for.
_PATIENCE_MS = 2_000


@dataclass(frozen=True)
class Progress:
    """How far a job is."""

    step: str
    rows: int
    seconds: float
    done: int  #: tasks done
    tasks: int  #: tasks known so far

    def __str__(self) -> str:
        rate = self.rows / self.seconds if self.seconds > 0 else 0.0
        return f"{self.step}: {self.rows:,} rows, {rate:,.0f} rows/s, {self.done} of {self.tasks} tasks"


class Show(Protocol):
    """Something that shows progress to a person."""

    interval_s: float
    shows_end: bool  #: whether a step that is done is shown once more

    def __call__(self, progress: Progress) -> None:
        """Show how far it is."""

    def close(self) -> None:
        """The job has ended."""


class Lines:
    """A line now and then, for logs."""

    interval_s = _PLAIN_S
    shows_end = True

    def __init__(self, write: Callable[[str], Any] | None = None) -> None:
        self._write = write or (lambda text: print(text, file=sys.stderr, flush=True))

    def __call__(self, progress: Progress) -> None:
        self._write(str(progress))

    def close(self) -> None:
        """Nothing to take away."""


class Bar:
    """A bar on a terminal."""

    interval_s = _TERMINAL_S
    shows_end = True

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"))
        # Drawn when it is told something: a thread of its own would outlive it for a moment.
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
        self._task = self._bar.add_task("", total=None, told="")
        self._bar.start()

    def __call__(self, progress: Progress) -> None:
        rate = progress.rows / progress.seconds if progress.seconds > 0 else 0.0
        told = f"{progress.rows:,} rows  {rate:,.0f} rows/s"
        self._bar.update(
            self._task, description=progress.step, completed=progress.done, total=progress.tasks or None, told=told
        )
        self._bar.refresh()

    def close(self) -> None:
        self._bar.stop()


class Silent:
    """Nothing at all."""

    interval_s = 3600.0
    shows_end = False

    def __call__(self, progress: Progress) -> None:
        """Not shown."""

    def close(self) -> None:
        """Nothing to take away."""


def chosen(progress: bool | None) -> Show:
    """A bar on a terminal, lines elsewhere; `False` for neither."""
    if progress is False:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()


@contextmanager
def watched(spark: SparkSession, step: str, show: Show) -> Iterator[None]:
    """Show the progress of the jobs that run inside the block."""
    ended = threading.Event()
    before = _stages(spark)
    began = time.monotonic()

    def look() -> None:
        # Whatever goes wrong with showing (Java gone, a closed pipe) is no fault of the build's, which tells its own.
        with suppress(Exception):
            while not ended.wait(show.interval_s):
                show(_progress(spark, step, before, time.monotonic() - began))

    watcher = threading.Thread(target=look, name="synopsis-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    if show.shows_end:
        with suppress(Exception):
            spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(_PATIENCE_MS)  # the counts travel behind the job
            show(_progress(spark, step, before, time.monotonic() - began))


def _stages(spark: SparkSession) -> int:
    """The next stage's number."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextStageId())


def _progress(spark: SparkSession, step: str, first_stage: int, seconds: float) -> Progress:
    context: Any = spark.sparkContext
    no_quantiles = context._gateway.new_array(context._jvm.double, 0)
    stages = context._jsc.sc().statusStore().stageList(None, False, False, no_quantiles, None)
    rows = done = tasks = 0
    for position in range(stages.size()):
        stage = stages.apply(position)
        if stage.stageId() >= first_stage and str(stage.status()) != "SKIPPED":
            rows += stage.inputRecords()
            done += stage.numCompleteTasks()
            tasks += stage.numTasks()
    return Progress(step, rows, seconds, done, tasks)
