"""Batches that become a summary: what is made again with more paths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.query.test_paths import PLAIN

from synopsis.spark.paths import PathPlan
from synopsis.spark.summarising import Summarising

pytestmark = pytest.mark.spark


def summarising(memory: float) -> Summarising:
    adding = cast(Any, SimpleNamespace(spec=SimpleNamespace(memory=int(memory))))
    return Summarising(adding, cast(Any, None), None, PathPlan.of(PLAIN.summary), None)


@pytest.mark.parametrize(("more", "is_worth_it"), [(0.1, False), (0.5, True), (9.0, True)])
def test_memory_that_was_left_over_goes_into_paths_where_it_holds_many_more(more: float, is_worth_it: bool) -> None:
    made = PLAIN.summary
    found = summarising((made.nbytes + more * made.parts["paths"]) / 0.97).finer(made)
    assert (found is not None) == is_worth_it
    if found is not None:
        assert found.how.layout.kept == pytest.approx(min(made.layout.kept * (1 + more), 1.0), rel=0.01)


def test_what_has_to_be_made_smaller_first_is_not_made_again_with_more_paths() -> None:
    made = PLAIN.summary
    assert summarising(0.9 * made.nbytes).finer(made) is None
