"""Decoding finds the strata in scope of many blocks as opening block by block does."""

from itertools import pairwise

import numpy as np
import pytest

from synopsis.sketch import blocks, shelf
from synopsis.sketch.columns import is_columns
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.scales import Scales
from synopsis.sketch.shelf import Shelf
from synopsis.sketch.strata import Strata, fitted

PLACES = np.arange(12.0), np.arange(12.0)
ALL_TIME = (-(1 << 40), 1 << 40)


def world(seed: int, bins: int, places: int = 12, count: int = 4_000) -> tuple[list[blocks.Block], Contexts]:
    """Blocks of a few places each, with days far apart, before 1970 as well."""
    random = np.random.default_rng(seed)
    place = np.sort(random.integers(0, places, count))
    day = random.choice([-70_000, 0, 3, 200], count) + random.integers(0, 60, count)
    order = np.lexsort((day, place))
    first = random.normal(size=count)
    second = np.where(random.random(count) < 0.3, np.nan, first + random.normal(size=count))
    values = np.stack((first, second, np.round(first), np.where(random.random(count) < 0.1, np.nan, second - first)))
    scales = Scales.fit(values)
    kept = random.random(count) < random.choice([0.0, 0.3, 1.0])
    strata = fitted(scales, place[order], day[order] // 90, day[order], scales.codes(values[:, order]), kept, bins)
    contexts = Contexts.fit(strata.codes, bins)
    ends = np.sort(random.choice(np.arange(1, len(strata)), 3, replace=False))
    parts = [slice(0, int(ends[0])), *(slice(int(a), int(b)) for a, b in pairwise(ends))]
    return [
        blocks.closed(strata.take(part), contexts) for part in (*parts, slice(int(ends[-1]), len(strata)))
    ], contexts


def plainly(packed, contexts, features, chosen, first_day, last_day) -> Strata | None:
    """Block by block, in NumPy."""
    parts = []
    for block in packed:
        part = blocks.opened(block, contexts, features, PLACES)
        runs = chosen[part.run_place] & (part.run_first <= last_day) & (part.run_first + part.run_days > first_day)
        keep = np.logical_or.reduceat(runs, part.run_offset[:-1])
        if keep.any():
            parts.append(part.take(keep))
    return Strata.joined(parts) if parts else None


@pytest.mark.parametrize("bins", [15, 40])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("quicker", [0.0, 1.02, np.inf])
def test_strata_in_scope_are_those_of_opening_block_by_block(
    seed: int, bins: int, quicker: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_QUICKER", quicker)  # frames of ranks in all blocks, in some, streams in all
    monkeypatch.setattr(blocks, "_PLAINLY_LESS", min(quicker, blocks._PLAINLY_LESS))
    monkeypatch.setattr(blocks, "_SPARE", np.inf if quicker > 1.02 else quicker / 100)
    monkeypatch.setattr(shelf, "_TABLES", 0.0 if seed % 2 else np.inf)  # made for every question, or kept
    packed, contexts = world(seed, bins)
    if quicker != 1.02:
        assert all(bool(block.paths[0]) == (quicker > 1.0) for block in packed)
    random = np.random.default_rng(seed)
    for features in ((0,), (3, 1), (0, 1, 2, 3)):
        for span in (ALL_TIME, (10, 40), (-70_000, -69_990)):
            chosen = random.random(12) < 0.4
            found = Shelf.of(packed, contexts, PLACES).opened(features, chosen, *span)
            wanted = plainly(packed, contexts, features, chosen, *span)
            assert (found is None) == (wanted is None)
            if found is not None:
                assert wanted is not None
                for name in Strata.__dataclass_fields__:
                    one, other = (np.asarray(getattr(each, name)) for each in (found, wanted))
                    assert one.dtype == other.dtype, name
                    np.testing.assert_array_equal(one, other, err_msg=name)


def test_what_is_too_long_for_columns_stays_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_QUICKER", np.inf)
    monkeypatch.setattr(blocks, "_SPARE", np.inf)
    assert all(is_columns(block.keys) for block in world(2, 15)[0])
    for name in ("closed", "closed_lines"):
        monkeypatch.setattr(blocks.columns, name, lambda *_: b"")  # as where one has more than 65,535 bytes
        packed, contexts = world(2, 15)
        assert not any(is_columns(block.keys) for block in packed)
        everywhere = (range(4), np.ones(12, np.bool_), *ALL_TIME)
        found, wanted = Shelf.of(packed, contexts, PLACES).opened(*everywhere), plainly(packed, contexts, *everywhere)
        assert found is not None
        assert wanted is not None
        np.testing.assert_array_equal(found.counts, wanted.counts)
        np.testing.assert_array_equal(found.codes, wanted.codes)
        monkeypatch.undo()
        monkeypatch.setattr(blocks, "_QUICKER", np.inf)
        monkeypatch.setattr(blocks, "_SPARE", np.inf)


@pytest.mark.parametrize("seed", range(8))
def test_paths_in_scope_are_read_without_those_behind_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_QUICKER", np.inf)
    shelf, random = Shelf.of(*world(seed, 15), PLACES), np.random.default_rng(seed)
    for span in (ALL_TIME, (10, 40), (-70_000, -69_990), (205, 205)):
        chosen, wanted = random.random(12) < 0.4, shelf.wanted((0, 3))
        every, fewer = (shelf.decoded(wanted, chosen, *span, in_scope_only=only) for only in (False, True))
        if every is None:
            assert fewer is None
            continue
        assert fewer is not None
        strata = every.strata(wanted, None, even=False)
        day = np.repeat(np.arange(strata.day.size), strata.day_kept)
        is_in = chosen[strata.day_place] & (span[0] <= strata.day) & (strata.day <= span[1])
        for path in range(day.size):  # the last of each stratum, from behind
            stratum = np.searchsorted(strata.day_offset, day[path], side="right") - 1
            own = slice(day[path], strata.day_offset[stratum + 1])
            is_behind = is_in[day].any() and not is_in[own].any()
            assert fewer.codes[:, path].tolist() == ([0, 0] if is_behind else every.codes[:, path].tolist())
        assert is_in[day].any() or (fewer.codes == every.codes).all()


def test_nothing_in_scope_is_nothing() -> None:
    shelf = Shelf.of(*world(1, 15), PLACES)
    assert shelf.opened((0,), np.zeros(12, np.bool_), *ALL_TIME) is None
    assert shelf.opened((0,), np.ones(12, np.bool_), 90_000, 90_001) is None
