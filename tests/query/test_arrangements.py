"""Where one group's counts are exact, machine code finds the intervals that NumPy does."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.query.test_weighing import CONDITIONS as WORLDS
from tests.query.test_weighing import world

from synopsis.query.covers import Covers, Slots
from synopsis.query.histograms import Histogram, Histograms, Strata
from synopsis.query.predicates import And, Between, IsNull, Not, Or
from synopsis.query.strata import Selection

CONDITIONS = (
    And(),
    Between(0, -1.0, 1.0),
    And((Between(0, 0.5), Between(1, high=0.2, high_closed=False))),
    Or((Between(0, -0.3, 0.3), IsNull(1), And((Between(0, 1.0), Between(1, -1.0, 0.0))))),
    And((Not(Between(0, -0.5, 0.5)), Not(IsNull(1)))),
)


def histogram(random: np.random.Generator, strata: int, bins: int, total: np.ndarray) -> Histogram:
    """Bins that touch or lie apart, some empty, in counts that add up to the rows."""
    edges = np.sort(random.normal(size=(2 * bins, strata)), axis=0).round(int(random.integers(0, 6)))
    counts = np.stack([random.multinomial(n, random.dirichlet(np.full(bins + 1, 0.4))) for n in total], axis=1)
    return Histogram(counts[:-1], counts[:-1], counts[-1], counts[-1], edges[::2].copy(), edges[1::2].copy())


def inexact(known: Histogram) -> Histogram:
    """The same counts, said in a way that NumPy takes care of."""
    return Histogram(
        known.least, known.most.copy(), known.absent_least, known.absent_most.copy(), known.low, known.high
    )


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 8), st.sampled_from(CONDITIONS), st.floats(0.0, 1.0))
def test_intervals_are_those_of_numpy(seed, strata, bins, condition, share):
    random = np.random.default_rng(seed)
    total = random.integers(0, 40, strata)
    inside = random.integers(0, total + 1)
    cut = random.integers(0, total - inside + 1)
    scope = Strata(total, inside, cut, np.zeros(strata, np.int64), 1)
    known = {feature: histogram(random, strata, bins, total) for feature in (0, 1)}
    fast = Selection(scope, known, condition)
    plain = Selection(scope, {feature: inexact(each) for feature, each in known.items()}, condition)
    np.testing.assert_array_equal(fast.count(), plain.count())
    for feature in (0, 1):
        one, other = fast.values(feature), plain.values(feature)
        for name in ("count", "sum", "mean", "min", "max"):
            np.testing.assert_allclose(
                getattr(one, name)(), getattr(other, name)(), rtol=1e-9, atol=1e-12, err_msg=name
            )
        np.testing.assert_allclose(one.quantile(share), other.quantile(share), rtol=1e-9, atol=1e-12)


@given(st.integers(0, 10_000), st.sampled_from(WORLDS), st.floats(0.0, 1.0))
def test_a_summarys_intervals_found_at_once_are_those_of_numpy(seed, condition, share):
    strata, scales, covered, _ = world(seed)
    slots = Slots.of(strata, Covers.whole(covered))
    if not slots.stratum.size:
        return
    known = Histograms(strata, scales, (0, 1, 2), slots.stratum)
    fast = Selection(Strata.of(slots), known, condition)
    plain = Selection(Strata.of(slots), {feature: inexact(known[feature]) for feature in range(3)}, condition)
    for feature in range(3):
        one, other = fast.values(feature), plain.values(feature)
        for name in ("count", "sum", "mean", "min", "max"):
            np.testing.assert_allclose(
                getattr(one, name)(), getattr(other, name)(), rtol=1e-9, atol=1e-12, err_msg=name
            )
        np.testing.assert_allclose(one.quantile(share), other.quantile(share), rtol=1e-9, atol=1e-12)
    for selection in (fast, Selection(Strata.of(slots), known, condition)):  # with features known before, and without
        np.testing.assert_array_equal(selection.count(), plain.count())
