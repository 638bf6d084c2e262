"""Naming: how a column of an answer is found by what a person calls it.

A column is named by its text as written or by its alias. Capitals and spaces are forgiven when only one column is left
to be meant.
"""

from __future__ import annotations

from collections.abc import Sequence


def find(wanted: str, names: Sequence[str]) -> str | None:
    """The name that is meant, or None.

    >>> find("mean( TEMP_c )", ["COUNT(*)", "MEAN(temp_c)"])
    'MEAN(temp_c)'
    """
    if wanted in names:
        return wanted
    alike = [name for name in names if _loosely(name) == _loosely(wanted)]
    return alike[0] if len(alike) == 1 else None


def _loosely(name: str) -> str:
    return "".join(name.split()).lower()
