"""Compiled: functions that numba turns into machine code, once, and keeps beside their source.

Some work is many small steps over arrays too short for NumPy to be worth its calls. Such functions live in modules of
their own, each with a NumPy oracle in the tests. They are plain loops over numbers: whatever works on whole arrays
takes numba seconds to compile. Importing numba takes time that nobody should spend who asks nothing:
`Later` puts it off until something of such a module is used.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The function in machine code, made when it is first called; kept on disk where there is a place for it."""
    from numba import njit

    # Python calls no function whose name begins with an underscore, and C none at all.
    inner = function.__name__.startswith("_")
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": inner,
    }
    try:
        made: Any = njit(cache=True, **options)(function)
        made._cache._cache_file._source_stamp = _stamp()
        is_known = _is_kept(made, function)
    except RuntimeError:  # no folder that may be written to: every process compiles anew
        made, is_known = njit(**options)(function), False
    if not is_known:
        _tell()
    return cast(F, made)


@cache
def _stamp() -> tuple[tuple[str, float, int], ...]:
    """What kept machine code is made of: it is made anew when any of these files changes.

    Such functions call each other across modules, and take numbers from others; numba would look at each module alone.
    """
    root, found = Path(__file__).parents[1], set[Path]()
    for module in (*root.glob("sketch/*.py"), *root.glob("query/*.py")):
        text = module.read_text(encoding="utf-8")
        if "\n@compiled\n" in text:
            names = re.findall(r"^from synopsis\.(\w+)\.(\w+) import", text, re.MULTILINE)
            found |= {module, *(root / room / f"{name}.py" for room, name in names)}
    return tuple((path.name, path.stat().st_mtime, path.stat().st_size) for path in sorted(found))


def _is_kept(made: Any, function: Callable[..., Any]) -> bool:
    """Whether the machine code of a function lies on disk."""
    stem = function.__module__.rsplit(".", 1)[-1]
    return next(Path(made._cache.cache_path).glob(f"{stem}.{function.__name__}-*.nbi"), None) is not None


@cache
def _tell() -> None:
    """Say once why this question takes longer than others."""
    logging.getLogger("synopsis").warning(
        "the first question on this machine takes about a minute longer: machine code is made for it, and kept"
    )


class Later:
    """A module that is imported when something of it is first asked for.

    >>> Later("math").floor(2.5)
    2
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        module = import_module(self._name)
        self.__dict__.update(vars(module))
        return getattr(module, attribute)
