"""Estimates of one group as plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from synopsis.query.estimate import Estimates
from synopsis.query.feature_numbers import Numbers
from synopsis.query.predicates import Clause
from synopsis.query.sampled import Sample


class Single:
    """Estimates, or the numbers of a feature, whose groups are one: arrays of one number are that number."""

    def __init__(self, of: Estimates | Numbers) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return _plain(getattr(self._of, name))


def _plain(found: Any) -> Any:
    if isinstance(found, np.ndarray) and found.shape == (1,):
        return float(found[0])
    if isinstance(found, Estimates | Numbers):
        return Single(found)
    if isinstance(found, tuple):
        return tuple(map(_plain, found)) if type(found) is tuple else found._make(map(_plain, found))
    return (lambda *given: _plain(found(*given))) if callable(found) else found


def single(sample: Sample, clause: Clause) -> Single:
    """What the only group of a sample says."""
    return Single(Estimates(sample, clause))
