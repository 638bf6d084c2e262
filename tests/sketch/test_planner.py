import pytest

from synopsis.core.errors import BadSpec, BudgetTooSmall
from synopsis.core.spec import Spec
from synopsis.sketch import planner


def spec(**changed):
    return Spec(**({"lat": "lat", "lon": "lon", "time": "ts", "features": ["a", "b"]} | changed))


def test_a_promised_grain_is_the_layout():
    layout = planner.promised(spec(exact_at=(4, "1mo")))
    assert (layout.bits, layout.bucket) == (20, "1mo")
    assert planner.promised(spec()) is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"exact_at": (5, "1mo")}, "precision allows 4"),
        ({"exact_at": (4, "1h")}, "bucket allows 1d"),
        ({"exact_at": (4, "1fortnight")}, "exact_at: "),
        ({"bucket": "soon"}, "bucket: "),
    ],
)
def test_a_promise_that_makes_no_sense_is_refused_with_the_field(changed, words):
    with pytest.raises(BadSpec, match=words):
        planner.promised(spec(**changed))


def test_the_planner_takes_the_most_strands_that_fit():
    asked = spec(memory="1MB")
    layouts = planner.candidates(asked)
    counts = {layout: layout.bits * {"1d": 1000, "1mo": 100, "1q": 30, "1y": 10}[layout.bucket] for layout in layouts}
    chosen = planner.choose(asked, counts)
    assert counts[chosen] * chosen.strand_bytes() <= 1_000_000
    larger = [layout for layout in layouts if counts[layout] > counts[chosen]]
    assert all(counts[layout] * layout.strand_bytes() * 1.1 > 1_000_000 for layout in larger)


def test_too_little_memory_for_anything_names_the_least_that_would_do():
    asked = spec(memory=100)
    with pytest.raises(BudgetTooSmall) as told:
        planner.choose(asked, dict.fromkeys(planner.candidates(asked), 50))
    assert told.value.needed_bytes > 100
    assert str(told.value.needed_bytes) in str(told.value)
