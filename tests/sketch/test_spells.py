"""The slow clock: what lies in a spell stays in it, and ends keep to their side of every border."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.spells import SPELLS, slowed, slowed_end
from synopsis.sketch.tallies import DAY_US

INSTANTS = st.one_of(
    st.integers(-(2**55), 2**55),
    st.builds(lambda days, off: days * DAY_US + off, st.integers(-9_999, 9_999), st.integers(-2, 2)),
)


@given(us=INSTANTS, spell=st.sampled_from((1, *SPELLS)))
def test_a_row_is_in_the_spell_of_its_instant(us, spell):
    assert slowed(np.array([us]), spell)[0] // DAY_US == us // (spell * DAY_US)


@given(us=INSTANTS, spell=st.sampled_from(SPELLS))
def test_an_end_within_a_spell_stays_strictly_within_it_and_one_between_two_stays_there(us, spell):
    slow, (number, beyond) = slowed_end(us, spell), divmod(us, spell * DAY_US)
    assert slow == number * DAY_US if beyond == 0 else number * DAY_US < slow < (number + 1) * DAY_US


@given(us=INSTANTS)
def test_by_days_the_clock_is_not_slow(us):
    assert slowed_end(us, 1) == us


@pytest.mark.parametrize("spell", [1, 90])
def test_layouts_come_back_and_those_of_days_say_nothing_of_spells(spell):
    layout = PathLayout(1_200, 15, 0.5, DAY_US // spell, True, 10, spell=spell)
    assert PathLayout.from_dict(layout.to_dict()) == layout
    assert ("spell" in layout.to_dict()) == (spell > 1)
