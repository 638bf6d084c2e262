"""Statistics: rows, rejects and the ends of every feature, which all plans of paths begin with.

The footers of Parquet files tell them as a rule, and what these do not tell is counted on the way; else one pass does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import functions as sf

from synopsis.grid.quantizer import Quantizer
from synopsis.sketch.fine import FineSums
from synopsis.sketch.moments import Floats
from synopsis.sketch.scales import Scales
from synopsis.spark.aggregate import Outcome
from synopsis.spark.observations import REASONS, Observations

#: What is counted of the values of each feature.
_COUNTED = ("present", "beyond")


class Mistold(Exception):
    """Rows are not as their files told."""


@dataclass(frozen=True)
class Statistics:
    """What one pass over all rows tells before anything is built."""

    outcome: Outcome
    low: Floats  #: of the features
    high: Floats
    values: Floats  #: how many each feature has
    beyond: Floats  #: and how many of them lie beyond the ends that what is there was fitted to
    #: Where files have told it: how many values are not null, by feature. How many are numbers is counted later.
    given: tuple[int, ...] | None = None
    foretold: bool = False  #: by files, whose rows may be read without asking anything of them

    def settled(self, sums: FineSums | None, features: Sequence[str]) -> Statistics:
        """The same with what was counted of all rows; an error where these are not as many as files have told."""
        if self.given is None:
            return self
        if sums is None or sums.rows != self.outcome.rows:
            raise Mistold
        values = sums.values[: len(features)]
        bad = {name: int(given - own) for name, given, own in zip(features, self.given, values, strict=True)}
        missing = {name: many for name, many in bad.items() if many}
        return replace(self, outcome=replace(self.outcome, missing=missing), values=values, given=None)

    def widening(self, scales: Scales) -> Scales:
        """Scales of what there is with these rows as well."""
        return scales.widened(self.low, self.high, self.values, self.beyond)


def foretold(observed: Observations, there: Scales | None = None) -> Statistics | None:
    """As `counted`, from what files tell without being read, to be `settled` later; None where they do not tell it.

    Cost: proportional to the row groups of the files.
    """
    found = observed.footers
    if found is None:
        return None
    time, *features = list(found.columns.values())[2:]
    low, high = (np.array([getattr(each, side) for each in features], np.float64) for side in ("low", "high"))
    if there is not None:  # how many values lie beyond the ends that bins were fitted to, files do not tell
        fitted = [(each.low, each.high) for each in there.quantizers[: len(features)]]
        if not all(each.within(*ends) or not each.values for each, ends in zip(features, fitted, strict=True)):
            return None
    outcome = Outcome((), found.rows, {}, {}, int(time.low), int(time.high))
    none = np.zeros(len(features))
    return Statistics(outcome, low, high, none, none, tuple(each.values for each in features), foretold=True)


def counted(observed: Observations, there: Scales | None = None) -> Statistics:
    """Rows, rejects, bad values and the ends of every feature. One pass, no exchange; two where rows are set aside.

    `there` are the scales of what rows are to be added to.
    """
    count = len(observed.features)
    measures = {"all": "count(1)", "rows": "count_if(good)", "first": "min(instant_us)", "last": "max(instant_us)"}
    for k in range(count):
        measures |= {f"low_{k}": f"min(value_{k})", f"high_{k}": f"max(value_{k})"}
        measures |= {f"present_{k}": f"count(value_{k})", f"given_{k}": f"count_if(given_{k})"}
        measures |= {f"beyond_{k}": "0" if there is None else _beyond(f"value_{k}", there.quantizers[k])}
    found = observed.told.agg(*(sf.expr(f"{measure} AS {name}") for name, measure in measures.items())).first()
    assert found is not None
    bad = {name: found[f"given_{k}"] - found[f"present_{k}"] for k, name in enumerate(observed.features)}

    def ends(side: str, empty: float) -> Floats:
        ends = (found[f"{side}_{k}"] for k in range(count))
        return np.array([empty if end is None else end for end in ends], np.float64)

    rejected = _reasons(observed) if found["rows"] < found["all"] else {}
    missing = {name: values for name, values in bad.items() if values}
    outcome = Outcome((), int(found["rows"]), rejected, missing, found["first"], found["last"])
    values, beyond = (np.array([found[f"{name}_{k}"] for k in range(count)], np.float64) for name in _COUNTED)
    return Statistics(outcome, ends("low", np.inf), ends("high", -np.inf), values, beyond)


def _beyond(value: str, quantizer: Quantizer) -> str:
    """How many values lie beyond the ends that a quantizer was fitted to; a measure in Spark's SQL."""
    if not quantizer.low <= quantizer.high:  # there were no values
        return f"count({value})"
    return f"count_if({value} < ({float(quantizer.low)!r}D) OR {value} > ({float(quantizer.high)!r}D))"


def _reasons(observed: Observations) -> dict[str, int]:
    """How many rows are set aside for each reason."""
    counts = {f"reason_{code}": f"count_if(reason = {code})" for code in REASONS}
    found = observed.frame.agg(*(sf.expr(f"{count} AS {name}") for name, count in counts.items())).first()
    assert found is not None
    return {reason: found[f"reason_{code}"] for code, reason in REASONS.items() if found[f"reason_{code}"]}
