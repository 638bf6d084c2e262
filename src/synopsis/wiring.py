"""Wiring: where real parts are chosen and joined. `build` loads Spark only when something is built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from synopsis.core.errors import SynopsisError
from synopsis.core.report import Report
from synopsis.core.spec import Spec

if TYPE_CHECKING:
    from synopsis.spark.sources import Source


class SparkMissing(SynopsisError, ImportError):
    """The extra that building needs is not installed."""


def build(
    source: Source,
    spec: Spec,
    to: str | Path,
    *,
    batch: str | None = None,
    strict: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    progress: bool | None = None,
) -> Report:
    """Add the source's rows to the sketch at `to`, which is made where there is none.

    The source is a path, a glob, a folder, a list of them, a pandas frame, an Arrow table or a Spark frame. `batch`
    names what is added: the same batch a second time changes nothing. Without one, files are named by their paths,
    sizes and times of change, tables by their content. `strict` refuses rows that would be set aside. `master` and
    `conf` go to Spark. `progress=False` is silent.
    """
    try:
        from synopsis.spark.build import build as build_by_spark
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.split(".")[0] not in ("pyspark", "py4j", "pandas"):
            raise
        raise SparkMissing(f"building needs {missing.name}; run pip install 'synopsis[spark]'") from None
    return build_by_spark(source, spec, to, batch=batch, strict=strict, master=master, conf=conf, show=progress)
