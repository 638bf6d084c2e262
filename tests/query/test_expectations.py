"""A sketch tells how far off it usually is, class by class."""

from __future__ import annotations

from tests.query.test_paths import KEPT, PLAIN

from synopsis.query.expectations import expected


def test_every_class_has_an_error_and_the_same_one_twice():
    found = expected(PLAIN.summary, PLAIN.layout, questions=24)
    assert set(found) == {"count", "mean", "std", "quantile", "correlation"}
    assert found["count"]["0"] == 0.0  # whole days are counted
    assert all(error is None or error >= 0.0 for errors in found.values() for error in errors.values())
    assert found["mean"]["0"] is not None
    assert found == expected(PLAIN.summary, PLAIN.layout, questions=24)


def test_fewer_paths_are_expected_to_err_more():
    few, many = (expected(KEPT[kept].summary, KEPT[kept].layout)["mean"] for kept in (0.01, 1.0))
    assert few["1"] > many["1"]
