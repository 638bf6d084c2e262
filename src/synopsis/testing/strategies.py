"""Strategies: rows as a stream might send them, for Hypothesis to make worse."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Comoments, Moments
from synopsis.sketch.strands import Strands

#: Numbers such as sensors send: small, on a grid, far from zero, missing.
readings = st.one_of(
    st.floats(-50, 50),
    st.integers(-400, 400).map(lambda tenths: tenths / 10),
    st.floats(100_000, 100_010),
    st.just(0.0),
    st.just(math.nan),
)

#: Places of a few stations, cell edges, the dateline and the poles among them.
places = st.sampled_from([(-15.8, -47.9), (-15.7, -47.8), (0.0, 0.0), (51.5, -0.1), (90.0, 180.0), (-90.0, -180.0)])

#: Instants around 1970 and in 2025.
instants_us = st.one_of(st.integers(-(10**13), 10**13), st.integers(1_735_689_600_000_000, 1_746_057_600_000_000))


@st.composite
def strands(draw: st.DrawFn, layout: Layout, most: int = 12) -> Strands:
    """The strands of a few rows."""
    rows = draw(st.lists(st.tuples(places, instants_us, *(readings for _ in layout.features)), max_size=most))
    if not rows:
        return Strands.empty(layout)
    latitude = np.array([row[0][0] for row in rows])
    longitude = np.array([row[0][1] for row in rows])
    instants = np.array([row[1] for row in rows], np.int64)
    return Strands.of(layout, latitude, longitude, instants, np.array([row[2:] for row in rows], np.float64).T)


def close(one: Strands, two: Strands) -> bool:
    """The same strands but for rounding: spreads and products relative to the size of the numbers behind them."""
    same_keys = all(
        np.array_equal(getattr(one, name), getattr(two, name))
        for name in ("cell", "bucket", "rows", "first_us", "last_us")
    )
    same_cells = np.array_equal(one.cells.key, two.cells.key) and all(
        np.array_equal(left, right) for left, right in zip(one.cells.box, two.cells.box, strict=True)
    )
    return (
        one.layout == two.layout
        and same_keys
        and same_cells
        and close_moments(one.moments, two.moments)
        and close_comoments(one.comoments, two.comoments)
    )


def close_moments(one: Moments, two: Moments) -> bool:
    """The same moments but for rounding."""
    if not (
        np.array_equal(one.count, two.count) and np.array_equal(one.low, two.low) and np.array_equal(one.high, two.high)
    ):
        return False
    return _near(one.mean, two.mean, np.abs(one.mean)) and _near(
        one.spread, two.spread, one.spread + 1e-9 * one.count * np.abs(one.mean)
    )


def close_comoments(one: Comoments, two: Comoments) -> bool:
    """The same comoments but for rounding."""
    if not np.array_equal(one.count, two.count):
        return False
    slack = 1e-9 * one.count * np.maximum(np.abs(one.first_mean), np.abs(one.second_mean))
    size = np.sqrt(one.first_spread * one.second_spread)
    return all(
        (
            _near(one.first_mean, two.first_mean, np.abs(one.first_mean)),
            _near(one.second_mean, two.second_mean, np.abs(one.second_mean)),
            _near(one.first_spread, two.first_spread, one.first_spread + slack),
            _near(one.second_spread, two.second_spread, one.second_spread + slack),
            _near(one.cross, two.cross, size + slack),
        )
    )


def _near(one: np.ndarray, two: np.ndarray, scale: np.ndarray) -> bool:
    return bool((np.abs(one - two) <= 1e-9 * scale + 1e-12).all())
