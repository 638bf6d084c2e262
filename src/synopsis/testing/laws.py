"""The laws of merging, written once: a summary passes by naming how to make one.

Adding nothing changes nothing; order and grouping do not matter; bytes come back as the same value.
"""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

#: Every summary tries the laws on itself, with examples of its own.
_inherited = settings(suppress_health_check=[HealthCheck.differing_executors])


class MergeLaws:
    """Inherit, and name `summaries` (a strategy) and `empty`; say what `same` means, and how to go through bytes."""

    summaries: ClassVar[st.SearchStrategy[Any]]
    empty: ClassVar[Any]

    @staticmethod
    def same(one: Any, two: Any) -> bool:
        """Whether two summaries are the same value; floats: say how close is close."""
        return bool(one == two)

    @staticmethod
    def round_trip(summary: Any) -> Any:
        """A summary through its bytes and back."""
        return summary

    @_inherited
    @given(data=st.data())
    def test_adding_nothing_changes_nothing(self, data: st.DataObject) -> None:
        summary = data.draw(self.summaries)
        assert self.same(summary + self.empty, summary)
        assert self.same(self.empty + summary, summary)

    @_inherited
    @given(data=st.data())
    def test_order_does_not_matter(self, data: st.DataObject) -> None:
        one, two = data.draw(self.summaries), data.draw(self.summaries)
        assert self.same(one + two, two + one)

    @_inherited
    @given(data=st.data())
    def test_grouping_does_not_matter(self, data: st.DataObject) -> None:
        one, two, three = (data.draw(self.summaries) for _ in range(3))
        assert self.same((one + two) + three, one + (two + three))

    @_inherited
    @given(data=st.data())
    def test_bytes_come_back_as_the_same_value(self, data: st.DataObject) -> None:
        summary = data.draw(self.summaries)
        assert self.same(self.round_trip(summary), summary)
