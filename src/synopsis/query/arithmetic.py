"""Arithmetic of statistics: sums, differences, products and quotients of values, with their intervals.

An interval of the result holds whatever its parts may be within theirs, so what is certain stays certain. A promise is
as good as the weakest of its parts. The parts are not known to go together: MEAN(x) - MEAN(x) is about 0, not 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from synopsis.query.values import CERTAIN, EXACT, HEURISTIC, Values

Floats = NDArray[np.float64]

_ESTIMATES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "share": np.divide,
    "root": lambda square, _: np.sqrt(np.maximum(square, 0.0)),
}


def constant(number: float, size: int) -> Values:
    """The same number for every group."""
    numbers = np.full(size, number)
    return Values(numbers, numbers, numbers, np.full(size, EXACT, np.int8))


def combined(operator: str, one: Values, other: Values) -> Values:
    """One of + - * / of two columns, the share of the second that the first is, or the root of the first.

    Undefined where a part is, or where a quotient divides by nothing.
    Cost: a few passes over the groups.

    >>> half = combined("/", constant(3.0, 1), constant(2.0, 1))
    >>> half[0]
    Value(1.5 exact)
    """
    with np.errstate(all="ignore"):
        estimate = np.asarray(_ESTIMATES[operator](_floats(one.estimate), _floats(other.estimate)))
        estimate = np.where(np.isfinite(estimate), estimate, np.nan)
        low, high = _interval(operator, _ends(one), _ends(other))
        likely = _interval(operator, _likely(one), _likely(other))
        if operator == "share":
            # Where no row of the whole is expected, and there may be some, nothing speaks for either end.
            estimate = np.where(np.isnan(estimate) & (other.high > 0), (low + high) / 2, np.clip(estimate, 0.0, 1.0))
            likely = _likely_share(estimate, one, other)
    exact = (one.guarantee == EXACT) & (other.guarantee == EXACT)
    low, high = np.where(exact, estimate, low), np.where(exact, estimate, high)
    bounded = np.isfinite(low) & np.isfinite(high)
    guarantee = np.where(bounded, np.maximum(one.guarantee, other.guarantee), HEURISTIC).astype(np.int8)
    low, high = (np.where(bounded, end, np.nan) for end in (low, high))
    return Values(estimate, np.minimum(low, estimate), np.maximum(high, estimate), guarantee, _p95(likely, exact))


def present(count: Values) -> Values:
    """Whether there may be rows, from how many there are: 0 is sure, 1 where some surely are.

    >>> three = constant(3.0, 1)
    >>> present(three)[0]
    Value(1 exact)
    """
    low, high = (np.asarray(end > 0, np.int64) for end in (count.low, count.high))
    return Values(high, low, high, np.where(low == high, EXACT, CERTAIN).astype(np.int8))


def _floats(numbers: NDArray[Any]) -> Floats:
    return np.asarray(numbers, np.float64)


def _ends(values: Values) -> tuple[Floats, Floats]:
    return _floats(values.low), _floats(values.high)


def _likely(values: Values) -> tuple[Floats, Floats]:
    """The interval at 95%, or a wider one where there is none."""
    low, high = _ends(values)
    if values.p95 is None:
        return low, high
    known = ~np.isnan(values.p95).any(axis=1)
    return np.where(known, values.p95[:, 0], low), np.where(known, values.p95[:, 1], high)


def _likely_share(share: Floats, one: Values, other: Values) -> tuple[Floats, Floats]:
    """A share at 95%: errors of a part and of its whole do not work against each other, so they add up as squares.

    Rows are whole, whatever is expected of them.
    """
    part, whole = _floats(one.estimate), _floats(other.estimate)
    ends, all_ends = ((np.floor(low), np.ceil(high)) for low, high in (_likely(one), _likely(other)))
    least, most = _interval("share", ends, all_ends)
    down = np.hypot(part - ends[0], share * (all_ends[1] - whole)) / whole
    up = np.hypot(ends[1] - part, share * (whole - all_ends[0])) / whole
    # NaN, where nothing is expected, leaves the other end.
    return np.fmax(share - down, least), np.fmin(share + up, most)


def _p95(ends: tuple[Floats, Floats], exact: NDArray[np.bool_]) -> Floats | None:
    known = np.isfinite(ends[0]) & np.isfinite(ends[1]) & ~exact
    if not known.any():
        return None
    return np.where(known[:, None], np.stack(ends, axis=1), np.nan)


def _interval(operator: str, one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """All that the result may be."""
    if operator == "+":
        return one[0] + other[0], one[1] + other[1]
    if operator == "-":
        return one[0] - other[1], one[1] - other[0]
    corners = np.stack([_ESTIMATES[operator](left, right) for left in one for right in other])
    low, high = corners.min(axis=0), corners.max(axis=0)
    if operator == "share":  # of a whole
        low, high = np.clip(np.nan_to_num(low), 0.0, 1.0), np.clip(np.nan_to_num(high, nan=1.0), 0.0, 1.0)
    if operator == "/":  # of what may be nothing, everything
        around = (other[0] <= 0.0) & (other[1] >= 0.0)
        low, high = np.where(around, -np.inf, low), np.where(around, np.inf, high)
    return low, high
