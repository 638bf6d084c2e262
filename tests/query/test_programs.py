"""Clauses as steps: what is told of plain ANDs at a glance is what is told of any clause."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from synopsis.query.predicates import EVERYWHERE, AllOf, AnyOf, Clause, Leaf, all_of, join, parted, reachable
from synopsis.query.programs import demands_of, left_of, others_of, plain_leaves, steps_of

FEATURES = 4

ends = st.floats(-5.0, 5.0)
ranges = st.lists(st.tuples(ends, ends).map(lambda pair: (min(pair), max(pair))), max_size=3).map(
    lambda found: join(tuple(found))
)
leaves = st.builds(Leaf, st.integers(0, FEATURES - 1), st.one_of(ranges, st.just(EVERYWHERE)), st.booleans())
plain = st.lists(leaves, max_size=5).map(all_of)


@given(plain, st.integers(0, FEATURES - 1))
def test_a_plain_and_leaves_of_a_feature_what_any_clause_does(clause: Clause, feature: int) -> None:
    assert plain_leaves(clause) is not None
    own, others = parted(clause, feature)
    numbers: dict[Leaf, int] = {}
    steps_of(clause, numbers)
    assert others_of(clause, feature, dict(numbers)) == steps_of(others, dict(numbers))
    assert left_of(clause, feature) == reachable(clause, feature).ranges
    demands = demands_of(clause, feature)
    begin, end = demands.offset[demands.own], demands.offset[demands.own + 1]
    assert tuple(map(tuple, demands.ranges[begin:end].tolist())) == own.ranges
    assert (demands.features[demands.own], demands.nulls[demands.own]) == (feature, own.nulls)
    assert own & reachable(others, feature) == own
    assert demands.reach == demands.own


def test_an_or_of_features_is_not_plain() -> None:
    one, two = Leaf(0, ((1.0, 2.0),)), Leaf(1, ((3.0, 4.0),))
    assert plain_leaves(AnyOf((one, two))) is None
    assert plain_leaves(AllOf((one, AnyOf((one, two))))) is None
    assert plain_leaves(AllOf()) == ()
