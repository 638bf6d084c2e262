"""Values: an answer is never a bare number, but an estimate, an interval, and a word for what the interval promises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: What `low`..`high` promises, strongest first: it is the statistic of the raw rows to float64 rounding; it holds that
#: statistic always; it holds it in 95 of 100 questions. The last promises nothing: its estimate is a good guess, and an
#: interval that it may have is to hold what is yet to come in 90 of 100 cases, as far as that is like what came before.
GUARANTEES: Final = ("exact", "certain", "p95", "heuristic")
EXACT: Final = GUARANTEES.index("exact")
CERTAIN: Final = GUARANTEES.index("certain")
P95: Final = GUARANTEES.index("p95")
HEURISTIC: Final = GUARANTEES.index("heuristic")

#: Of what is yet to come, `low`..`high` and `p95` are to hold this much.
LEVELS: Final = (0.9, 0.95)

#: Standard errors from the middle of an interval at 95% to either end, where errors are normal.
_ERRORS_AT_95: Final = 1.96


@dataclass(frozen=True, slots=True, repr=False)
class Value:
    """One number of an answer. Estimate, low and high are None where there is no number, as in the mean of nothing; low
    and high also where nothing is promised.

    >>> print(Value(23.41, 23.41, 23.41, "exact"))
    23.41 exact
    >>> Value(1204, 1180, 1260, "certain")
    Value(1,204 in 1,180..1,260 certain)
    >>> Value(1204, 1180, 1260, "certain", (1201.0, 1207.0))
    Value(1,204 in 1,180..1,260 certain, 1,201..1,207 p95)
    >>> Value(0.31, None, None, "heuristic")
    Value(0.31 heuristic)
    >>> Value(12.5, 9.0, 15.0, "heuristic", (8.0, 16.0))
    Value(12.5 in 9..15 heuristic, 8..16 p95)
    >>> float(Value(None, None, None, "exact"))
    nan
    """

    estimate: float | None
    low: float | None
    high: float | None
    guarantee: str  #: one of GUARANTEES, of low..high
    p95: tuple[float, float] | None = None  #: an interval at 95%, where one is known

    @property
    def error(self) -> float | None:
        """The standard error: that of which the interval at 95% takes 1.96 to either side; 0 where the value is exact,
        None where neither is known.

        >>> written(Value(1204, 1180, 1260, "certain", (1200.08, 1207.92)).error)
        '2'
        """
        if self.estimate is None:
            return None
        if self.guarantee == "exact":
            return 0.0
        likely = (self.low, self.high) if self.p95 is None and self.guarantee == "p95" else self.p95
        if likely is None or likely[0] is None or likely[1] is None:
            return None
        return (likely[1] - likely[0]) / 2 / _ERRORS_AT_95

    @property
    def number(self) -> str:
        """The estimate for people."""
        return "none" if self.estimate is None else written(self.estimate)

    @property
    def promise(self) -> str:
        """What is promised of it, for people: the interval where it has a width, and the guarantee.

        >>> Value(1204, 1180, 1260, "certain").promise
        '1,180..1,260 certain'
        """
        if self.estimate is None or self.low == self.estimate == self.high:
            return self.guarantee
        text = self.guarantee
        if self.low is not None and self.high is not None:
            text = f"{written(self.low)}..{written(self.high)} {text}"
        if self.p95 is None or self.guarantee == "p95":
            return text
        return f"{text}, {written(self.p95[0])}..{written(self.p95[1])} p95"

    def __str__(self) -> str:
        return f"{self.number} {'' if self.promise.startswith(self.guarantee) else 'in '}{self.promise}"

    def __repr__(self) -> str:
        return f"Value({self})"

    def __float__(self) -> float:
        return math.nan if self.estimate is None else float(self.estimate)


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """A column of values: counts as int64, everything else as float64 with NaN where there is no number, and as low and
    high where nothing is promised."""

    estimate: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    guarantee: NDArray[np.int8]  #: positions in GUARANTEES
    p95: NDArray[np.float64] | None = None  #: values x 2: an interval at 95%, NaN where there is none

    @classmethod
    def bounded(cls, estimate: NDArray[Any], low: NDArray[Any], high: NDArray[Any], exact: NDArray[np.bool_]) -> Values:
        """Estimates put inside their certain intervals; where they are exact, the interval is the estimate."""
        undefined = np.isnan(estimate)
        low, high = np.where(exact | undefined, estimate, low), np.where(exact | undefined, estimate, high)
        clipped = np.minimum(np.maximum(estimate, low), high)
        return cls(clipped, low, high, np.where(exact, EXACT, CERTAIN).astype(np.int8))

    def __len__(self) -> int:
        return int(self.estimate.size)

    def __getitem__(self, row: int) -> Value:
        guarantee = GUARANTEES[self.guarantee[row]]
        if math.isnan(self.estimate[row]):
            return Value(None, None, None, guarantee)
        p95 = None
        if self.p95 is not None and not math.isnan(self.p95[row, 0]):
            low, high = (float(end) for end in self.p95[row])
            is_count = np.issubdtype(self.estimate.dtype, np.integer)
            p95 = (math.floor(low), math.ceil(high)) if is_count else (low, high)
        if math.isnan(self.low[row]) or math.isnan(self.high[row]):
            return Value(self.estimate[row].item(), None, None, guarantee, p95)
        return Value(self.estimate[row].item(), self.low[row].item(), self.high[row].item(), guarantee, p95)

    def take(self, rows: NDArray[np.intp] | slice) -> Values:
        """Some of the values, by position."""
        if len(self) == 1 and not isinstance(rows, slice) and rows.size == 1:
            return self
        p95 = None if self.p95 is None else self.p95[rows]
        return Values(self.estimate[rows], self.low[rows], self.high[rows], self.guarantee[rows], p95)


def guesses(
    numbers: NDArray[np.float64], at_90: NDArray[np.float64] | None = None, at_95: NDArray[np.float64] | None = None
) -> Values:
    """Good guesses, with intervals (lows, highs) of what is yet to come where there are any."""
    low, high = np.full((2, numbers.size), np.nan) if at_90 is None else at_90
    guarantee = np.full(numbers.size, HEURISTIC, np.int8)
    return Values(numbers, low, high, guarantee, None if at_95 is None else np.transpose(at_95))


def written(number: float) -> str:
    """A number for people: six digits that matter, thousands parted.

    >>> [written(number) for number in (23.41, 1204, 1234567.891, -0.000123456789, 1e20, 2.0)]
    ['23.41', '1,204', '1,234,567.9', '-0.000123457', '1e+20', '2']
    """
    if isinstance(number, int):
        return f"{number:,}"
    if 1e5 <= abs(number) < 1e15:
        return f"{number:,.1f}"
    return f"{number:,.6g}"
