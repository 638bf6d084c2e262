"""Bins that a condition cuts: kept whole or dropped, where the user says so."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.query.test_paths import PLAIN

from synopsis.query.cuts import _moved
from synopsis.query.evaluate import asked_of
from synopsis.query.predicates import And, Between, IsNull, Not, Or
from synopsis.query.relation import Relation
from synopsis.sketch.strands import Strands

SCALES = PLAIN.summary.scales
WHOLE = Relation(Strands.empty(PLAIN.layout), PLAIN.summary)
LOW, HIGH = SCALES.ranges(0)
RANGES = [
    Between(0, 11.03, 17.77),
    Between(0, high=14.123, high_closed=False),
    Between(0, 9.5),
    Between(0, 12.01, 12.02),
]


def holds(condition: Between, values: np.ndarray) -> np.ndarray:
    above = values >= condition.low if condition.low_closed else values > condition.low
    return above & (values <= condition.high if condition.high_closed else values < condition.high)


@pytest.mark.parametrize("condition", RANGES)
def test_a_range_is_widened_to_the_bins_that_it_touches_and_narrowed_to_those_that_it_holds(condition: Between) -> None:
    kept, dropped = (_moved(condition, SCALES, keep) for keep in (True, False))
    middles = (LOW + HIGH) / 2
    touched = (condition.low <= HIGH) & (condition.high >= LOW)
    inside = holds(condition, LOW) & holds(condition, HIGH)
    assert (holds(kept, middles) == touched).all()
    assert (holds(dropped, middles) == inside).all()


def test_not_keeps_what_its_condition_drops() -> None:
    condition = RANGES[0]
    assert _moved(Not(condition), SCALES, True) == Not(_moved(condition, SCALES, False))
    both = And((condition, Or((Not(condition), IsNull(1)))))
    assert _moved(both, SCALES, False) == And(
        (_moved(condition, SCALES, False), Or((Not(_moved(condition, SCALES, True)), IsNull(1))))
    )


@pytest.mark.parametrize(
    "where", ["temp > 12.34", "temp BETWEEN 9.01 AND 15.55", "NOT temp < 14.4", "temp > 8 OR rain > 0.3"]
)
def test_what_is_kept_holds_what_is_counted_and_that_what_is_dropped(where: str) -> None:
    text = f"SELECT COUNT(*) AS n, MEAN(temp) AS m WHERE {where}"
    kept, plain, dropped = (asked_of(WHOLE, text, cut=cut) for cut in ("keep", None, "drop"))
    assert dropped["n"].estimate <= plain["n"].estimate <= kept["n"].estimate
    assert dropped["n"].estimate < kept["n"].estimate
    assert dropped["n"].low <= PLAIN.truth("count(*)", where)[0][0] <= kept["n"].high


def test_the_count_of_kept_bins_is_that_of_the_rows_in_them() -> None:
    condition = _moved(Between(0, 12.34, math.inf), SCALES, True)
    truth = PLAIN.truth("count(*)", f"temp >= {condition.low!r}")[0][0]
    kept = asked_of(WHOLE, "SELECT COUNT(*) AS n WHERE temp >= 12.34", cut="keep")["n"]
    assert kept.low <= truth <= kept.high
    assert (
        kept
        == asked_of(WHOLE, f"SELECT COUNT(*) AS n WHERE temp BETWEEN {condition.low!r} AND {condition.high!r}")["n"]
    )


def test_a_filter_is_cut_like_where() -> None:
    text = "SELECT COUNT(*) FILTER (WHERE temp > 12.34) AS n"
    plain = asked_of(WHOLE, "SELECT COUNT(*) AS n WHERE temp > 12.34", cut="drop")["n"]
    assert asked_of(WHOLE, text, cut="drop")["n"] == plain


def test_a_range_between_two_bins_holds_none() -> None:
    narrow = Between(0, float(LOW[3]), float(np.nextafter(HIGH[3], -np.inf)))
    dropped = _moved(narrow, SCALES, False)
    assert dropped.low > dropped.high
    assert (
        asked_of(WHOLE, f"SELECT COUNT(*) AS n WHERE temp BETWEEN {narrow.low!r} AND {narrow.high!r}", cut="drop")[
            "n"
        ].estimate
        == 0
    )
