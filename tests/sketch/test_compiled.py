"""Machine code is made without a place to keep it, and nobody pays for it who does not use it."""

import subprocess
import sys

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
    module = Later("synopsis.sketch.decoding")
    assert "HEADS" not in vars(module)
    assert module.HEADS == 3
    assert "HEADS" in vars(module)


def test_numba_is_not_imported_before_a_question_needs_it() -> None:
    code = "import sys, synopsis.database, synopsis.query.paths; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
