"""Compiled: functions that numba turns into machine code, once, and keeps beside their source.

Some work is many small steps over arrays too short for NumPy to be worth its calls. Such functions live in modules of
their own, each with a NumPy oracle in the tests. They are plain loops over numbers: whatever works on whole arrays
takes numba seconds to compile. Importing numba takes time that nobody should spend who asks nothing:
`Later` puts it off until something of such a module is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

#: Versions of numba whose inner parts `parts` knows.
_TRIED: Final = ("0.68.",)

_OPTIONS: Final = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


class Compiled:
    """A function in machine code: `whole` for Python, which makes it when it is first called, and part of all that call
    it in machine code. It is kept on disk where there is a place for it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        import numba

        njit: Any = numba.njit
        whole, part = _pipelines(numba.__version__)
        self.py_func = function
        self._part = njit(no_cpython_wrapper=True, **part, **_OPTIONS)(function)
        self._numba_type_ = self._part._numba_type_  # what machine code takes this for; it holds on to nothing
        if function.__name__.startswith("_"):  # Python calls none of these
            return
        try:
            self.whole = njit(cache=True, **whole, **_OPTIONS)(function)
            self.whole._cache._cache_file._source_stamp = _stamp()
        except RuntimeError:  # no folder that may be written to: every process compiles anew
            self.whole = njit(**whole, **_OPTIONS)(function)

    def __call__(self, *arguments: Any) -> Any:
        return self.whole(*arguments)


@cache
def _pipelines(version: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """How numba is to compile what Python calls, and what only machine code calls.

    That is twice as fast as its own way, and takes parts of it that may change from one version to the next: with any
    other than those it was tried with, numba goes its own way.
    """
    if not version.startswith(_TRIED):
        return {}, {}
    from synopsis.sketch.parts import Part, Whole

    return {"pipeline_class": Whole}, {"pipeline_class": Part}


def compiled(function: F) -> F:
    """The function in machine code."""
    return cast(F, Compiled(function))


@cache
def _stamp() -> tuple[tuple[str, float, int], ...]:
    """What kept machine code is made of: it is made anew when any of these files changes.

    Such functions call each other across modules, and take numbers from others; numba would look at each module alone.
    """
    root = Path(__file__).parents[1]
    found = {root / "sketch" / "parts.py"}
    for module in (*root.glob("sketch/*.py"), *root.glob("query/*.py")):
        text = module.read_text(encoding="utf-8")
        if "\n@compiled\n" in text:
            names = re.findall(r"^from synopsis\.(\w+)\.(\w+) import", text, re.MULTILINE)
            found |= {module, *(root / room / f"{name}.py" for room, name in names)}
    return tuple((path.name, path.stat().st_mtime, path.stat().st_size) for path in sorted(found))


class Later:
    """A module that is imported when something of it is first asked for.

    >>> Later("math").floor(2.5)
    2
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        module = import_module(self._name)
        # What Python calls is called without a detour.
        self.__dict__.update({name: getattr(value, "whole", value) for name, value in vars(module).items()})
        return self.__dict__[attribute] if attribute in self.__dict__ else getattr(module, attribute)
