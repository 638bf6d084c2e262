"""Compiled: functions that numba turns into machine code, once, and keeps beside their source.

Some work is many small steps over arrays too short for NumPy to be worth its calls. Such functions live in modules of
their own, each with a NumPy oracle in the tests. They are plain loops over numbers: whatever works on whole arrays
takes numba seconds to compile. Importing numba takes time that nobody should spend who asks nothing:
`Later` puts it off until something of such a module is used.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The function in machine code, made when it is first called; kept on disk where there is a place for it."""
    from numba import njit

    try:
        made = njit(cache=True, nogil=True, error_model="numpy")(function)
        is_known = _is_kept(made, function)
    except RuntimeError:  # no folder that may be written to: every process compiles anew
        made, is_known = njit(nogil=True, error_model="numpy")(function), False
    if not is_known:
        _tell()
    return cast(F, made)


def _is_kept(made: Any, function: Callable[..., Any]) -> bool:
    """Whether the machine code of a function lies on disk."""
    stem = function.__module__.rsplit(".", 1)[-1]
    return next(Path(made._cache.cache_path).glob(f"{stem}.{function.__name__}-*.nbi"), None) is not None


@cache
def _tell() -> None:
    """Say once why this question takes longer than others."""
    logging.getLogger("synopsis").warning(
        "the first question on this machine takes about half a minute longer: machine code is made for it, and kept"
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
