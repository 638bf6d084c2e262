"""A summary comes back from its table as it was, whatever is in it and in whatever order its rows are read."""

from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from synopsis.sketch import blocks
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.joints import Grain, starts_of
from synopsis.sketch.meetings import KEYS, Meetings
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import from_tallies
from synopsis.sketch.streams import Odds
from synopsis.sketch.summary import Summary
from synopsis.sketch.tallies import Tallies
from synopsis.store.files import read_files, write_file
from synopsis.store.summaries import SCHEMA, from_table, to_table

DAY_US = 86_400_000_000


def made(features=4, places=5, kept=0.4, seed=0):
    """A summary of several blocks: on a grid, with an atom, related and often absent, all absent."""
    random = np.random.default_rng(seed)
    count = places * 600
    place, day = np.repeat(np.arange(places), 600), np.tile(np.arange(-300, 300), places)
    grid = np.round(random.normal(15, 5, count), 1)
    kinds = (
        grid,
        np.where(random.random(count) < 0.8, 0.0, random.lognormal(0, 2, count)),
        np.where(random.random(count) < 0.5, np.nan, grid * 2 + random.normal(size=count)),
        np.full(count, np.nan),
    )
    values = np.stack(kinds[:features])
    scales = Scales.fit(values)
    latitude, longitude = place * 7.5 - 20, place * -30.25
    keep = random.random(count) < kept
    tallies = Tallies.of(latitude, longitude, day // 30, day * DAY_US, scales.codes(values), keep)
    strata = from_tallies(scales, tallies, 15)
    contexts = Contexts.fit(strata.codes, 15)
    runs = [slice(start, min(start + 30, len(strata))) for start in range(0, len(strata), 30)]
    return Summary(
        layout=PathLayout(months=1, bins=15, kept=kept, slot_us=DAY_US, regular=True),
        latitude=tallies.latitude,
        longitude=tallies.longitude,
        scales=scales,
        contexts=contexts,
        blocks=tuple(blocks.closed(strata.take(run), contexts) for run in runs),
    )


def with_meetings(summary):
    """The same with the meetings of a few rows."""
    random, features = np.random.default_rng(4), len(summary.scales.quantizers)
    grain = Grain(10, 3, starts_of(summary.scales, features, 24))
    codes = summary.scales.codes(random.normal(15, 5, (features, 200)))
    where = random.uniform(-90, 90, 200), random.uniform(-180, 180, 200), random.integers(0, 400 * DAY_US, 200)
    return replace(summary, meetings=Meetings.of(grain, *where, codes))


def same(one, two):
    """Every number of both, bit for bit; and nothing that only one of them has."""
    for each in fields(Summary):
        left, right = getattr(one, each.name), getattr(two, each.name)
        if isinstance(left, np.ndarray):
            assert (left.dtype, left.tobytes()) == (right.dtype, right.tobytes()), each.name
        elif isinstance(left, Scales | Contexts):
            for inner in fields(left):
                mine, theirs = getattr(left, inner.name), getattr(right, inner.name)
                if isinstance(mine, np.ndarray):
                    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), inner.name
                    assert mine.tobytes() == theirs.tobytes(), inner.name
                elif inner.name in ("means", "spreads", "masses"):
                    assert [array.tobytes() for array in mine] == [array.tobytes() for array in theirs], inner.name
                elif isinstance(mine, Odds):
                    assert mine.levels.shape == theirs.levels.shape
                    assert mine.levels.tobytes() == theirs.levels.tobytes()
                else:
                    assert mine == theirs, inner.name
        elif isinstance(left, Meetings):
            assert (left.grain, left.frames) == (right.grain, right.frames)
            for name in KEYS:
                mine, theirs = getattr(left, name), getattr(right, name)
                assert (mine.dtype, mine.tobytes()) == (theirs.dtype, theirs.tobytes()), name
        else:
            assert left == right, each.name


@pytest.mark.parametrize("features", [1, 2, 4])
@pytest.mark.parametrize("kept", [0.0, 0.4, 1.0])
def test_a_summary_comes_back(features, kept):
    summary = made(features, kept=kept)
    assert len(summary.blocks) > 1
    table = to_table(summary)
    assert table.schema == SCHEMA
    same(from_table(table), summary)
    assert to_table(from_table(table)) == table


def test_a_summary_without_blocks_comes_back():
    summary = replace(made(), blocks=(), latitude=np.empty(0), longitude=np.empty(0))
    same(from_table(to_table(summary)), summary)


def test_a_sum_comes_back_and_its_bytes_are_those_of_both():
    one, two = made(), made()
    same(from_table(to_table(one + two)), one + two)
    assert from_table(to_table(one + two)).rows == one.rows + two.rows


def test_meetings_come_back_and_a_table_without_them_has_none(tmp_path):
    summary = with_meetings(made())
    table = to_table(summary)
    assert table["part"].to_pylist().count("meetings") == 1
    file = write_file(table, str(tmp_path), "attempt")
    same(from_table(read_files(str(tmp_path), [file.name], SCHEMA)), summary)
    before = table.filter(pc.not_equal(table["part"], "meetings"))
    same(from_table(before), replace(summary, meetings=None))


def test_rows_may_be_read_in_any_order():
    summary = with_meetings(made())
    table = to_table(summary)
    order = np.random.default_rng(1).permutation(table.num_rows)
    found = from_table(table.take(order))
    assert set(found.blocks) == set(summary.blocks)
    same(replace(found, blocks=summary.blocks), summary)


def test_a_summary_comes_back_from_a_file(tmp_path):
    summary = made()
    file = write_file(to_table(summary), str(tmp_path), "attempt")
    same(from_table(read_files(str(tmp_path), [file.name], SCHEMA)), summary)


def test_what_comes_back_answers_as_before():
    summary = made()
    again = from_table(to_table(summary))
    for left, right in zip(summary.opened([2, 0]), again.opened([2, 0]), strict=True):
        for name, array in vars(left).items():
            assert np.array_equal(array, getattr(right, name)), name
    assert again.nbytes == summary.nbytes
    assert again.thinned(0.5).blocks == summary.thinned(0.5).blocks


def test_an_empty_table_holds_no_summary():
    assert from_table(SCHEMA.empty_table()) is None


def test_a_table_without_the_shared_row_is_refused():
    """Rather than read as a smaller summary."""
    table = to_table(made())
    with pytest.raises(ValueError, match="shared"):
        from_table(table.slice(1))


def test_another_table_is_refused():
    with pytest.raises((KeyError, ValueError)):
        from_table(pa.table({"part": ["shared"], "facts": ["{}"]}))
    with pytest.raises((KeyError, ValueError)):
        from_table(pa.table([["shared"], ["{}"], [[b"1234"]]], schema=SCHEMA))


def test_a_damaged_quantizer_is_refused():
    table = to_table(made())
    frames = table["frames"].to_pylist()
    at = next(at for at, frame in enumerate(frames[0]) if from_table(table).scales.quantizers[0].to_bytes() == frame)
    frames[0][at] = frames[0][at][:-1] + b"?"
    damaged = pa.table([table["part"], table["facts"], frames], schema=SCHEMA)
    with pytest.raises(ValueError, match="damaged quantizer"):
        from_table(damaged)
