"""Machine code is made without a place to keep it, and nobody pays for it who does not use it."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from synopsis.sketch.compiled import Later, compiled


def test_without_a_place_to_keep_it_a_function_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = numba.njit

    def nowhere(*functions: object, cache: bool = False, **options: object) -> object:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*functions, **options)

    monkeypatch.setattr(numba, "njit", nowhere)
    assert compiled(lambda number: number + 1)(2) == 3


def test_a_module_comes_when_it_is_asked_for() -> None:
    module = Later("synopsis.sketch.reading")
    assert "HEADS" not in vars(module)
    assert module.HEADS == 4
    assert "HEADS" in vars(module)


def test_numba_is_not_imported_before_a_question_needs_it() -> None:
    code = "import sys, synopsis.database, synopsis.query.paths; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_first_time_on_a_machine_is_announced_and_the_second_is_not(tmp_path: Path) -> None:
    (tmp_path / "adding.py").write_text(
        "from synopsis.sketch.compiled import compiled\n\n\n@compiled\ndef add(one: int, two: int) -> int:\n"
        "    return one + two\n\n\n@compiled\ndef double(one: int) -> int:\n    return one + one\n"
    )
    code = "import adding; assert adding.add(1, 2) + adding.double(1) == 5"
    told = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(done.stderr.count("machine code is made for it"))
    assert told == [1, 0]


def test_a_version_of_numba_that_was_not_tried_compiles_in_its_own_way(tmp_path: Path) -> None:
    """A function that calls another one, in a process that takes its numba for a later one."""
    code = """
import numba
numba.__version__ = "9.0.0"
import numpy as np
from synopsis.query import slices
from synopsis.sketch import compiled
assert compiled._pipelines(numba.__version__) == ({}, {})
ends, low, high = np.array([0.0, 1.0, 4.0]), np.array([10.0, 20.0]), np.array([20.0, 50.0])
found = slices.values(ends, low, high, 0.0, np.array([0.5, 2.5]))
assert found.tolist() == [15.0, 35.0], found
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
