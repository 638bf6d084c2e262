"""What the benches share: where things lie, what machine this is, a table on the screen and a file of results."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from synopsis.spark import machine

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
DATA = ROOT.parent / "shared" / "data"
FIGURES = ROOT / "docs" / "figures"

_PACKAGES = ("numpy", "pyarrow", "pyspark", "deltalake", "duckdb")


def machine_facts() -> dict[str, Any]:
    """What the figures were measured on. The load counts runnable processes, ours among them."""
    return {
        "cores": machine.cores(),
        "memory_gb": round(machine.memory_bytes() / 1e9, 1),
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
    }


def write_results(name: str, figures: dict[str, Any]) -> None:
    """Write benches/results/NAME.json: the figures, and the machine they come from."""
    file = ROOT / "benches" / "results" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(figures | {"machine": machine_facts()}, indent=2) + "\n", encoding="utf-8")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print columns, the first flush left, the others flush right; numbers with thousands parted."""
    lines = [list(headings), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        cells = [text.rjust(width) for text, width in zip(line, widths, strict=True)]
        print("  ".join([line[0].ljust(widths[0]), *cells[1:]]).rstrip())


def bar(met: bool, words: str) -> str:
    """The sentence that ends a bench."""
    return f"bar: {'met' if met else 'not met'} ({words})"


def _text(cell: Any) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.4g}" if isinstance(cell, float) else str(cell)
