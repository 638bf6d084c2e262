"""Ranks come back from their streams, whatever they are, and take no more than their odds tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synopsis.sketch import streams
from synopsis.sketch.streams import FLOOR, LAP, WORD, Odds, laps


def again(odds, ranks, paths, features=None):
    """Ranks through their words and back."""
    sizes = laps(np.asarray(paths, np.int64))
    words, lengths = streams.encoded(odds, ranks, sizes)
    chosen = list(range(len(ranks))) if features is None else features
    return streams.decoded(odds, chosen, [words[each] for each in chosen], lengths[chosen], sizes)


def plainly(odds, ranks, sizes):
    """The words of each stream of one feature, as they are defined: one number, and what does not fit goes out."""
    found, ends = [], np.cumsum(sizes)
    for begin, end in zip(ends - sizes, ends, strict=True):
        number, words = 0, []
        for path in reversed(range(begin, end)):
            before = int(ranks[path - 1]) if path > begin and len(odds) > 1 else 0
            start, stop = map(int, odds[before, ranks[path] : int(ranks[path]) + 2])
            if number >= (stop - start) << 2 * WORD - int(odds[0, -1]).bit_length() + 1:
                words.insert(0, number % FLOOR)
                number //= FLOOR
            number = number // (stop - start) * int(odds[0, -1]) + number % (stop - start) + start
        head = [number // FLOOR, number % FLOOR][2 - (number > 0) - (number >= FLOOR) :]
        found.append([*head, *words])
    return found


@st.composite
def ranked(draw):
    """Ranks of some features in strata, and ranks of which odds are known."""
    symbols = draw(st.sampled_from([1, 2, 8, 16, 32, 33, 64, 250, 256]))
    paths = draw(st.lists(st.integers(0, 40), min_size=1, max_size=6))
    random = np.random.default_rng(draw(st.integers(0, 1_000)))
    usual = draw(st.sampled_from([0.01, 1.0, 30.0, 1e6]))
    ranks, known = (
        np.minimum(random.exponential(usual, (draw(st.integers(1, 3)), size)), symbols - 1).astype(np.uint8)
        for size in (sum(paths), draw(st.integers(0, 500)))
    )
    known = np.resize(known, (len(ranks), known.shape[1])) if known.size else np.empty((len(ranks), 0), np.uint8)
    return symbols, ranks, paths, known


@given(ranked())
def test_ranks_come_back_from_their_streams(given_ranks):
    symbols, ranks, paths, known = given_ranks
    odds = Odds.of(known, symbols)
    assert np.array_equal(again(odds, ranks, paths), ranks)
    last = [len(ranks) - 1]
    assert np.array_equal(again(odds, ranks, paths, last), ranks[last])


@given(ranked())
def test_machine_code_finds_the_words_of_every_stream(given_ranks):
    symbols, ranks, paths, known = given_ranks
    odds, sizes = Odds.of(known, symbols), laps(np.array(paths))
    words, lengths = streams.encoded(odds, ranks, sizes)
    for own, shares, found, length in zip(ranks, odds.shares, words, lengths, strict=True):
        wanted = plainly(shares, own, sizes)
        assert [len(each) for each in wanted] == length.tolist()
        assert [word for each in wanted for word in each] == found.tolist()


@pytest.mark.parametrize("paths", [[LAP], [LAP + 1, 0, 3], [5 * LAP - 1, 2 * LAP, 1]])
def test_strata_of_many_paths_have_several_streams(paths):
    ranks = np.random.default_rng(4).integers(0, 16, (3, sum(paths))).astype(np.uint8)
    assert np.array_equal(again(Odds.of(ranks, 16), ranks, paths), ranks)


def test_nothing_is_no_stream():
    empty = np.empty((2, 0), np.uint8)
    words, lengths = streams.encoded(Odds.of(empty, 16), empty, laps(np.zeros(3, np.int64)))
    assert [each.size for each in words] == [0, 0]
    assert lengths.shape == (2, 0)


def test_one_rank_alone_takes_next_to_nothing():
    ranks = np.full((1, 900), 7, np.uint8)
    words, _ = streams.encoded(Odds.of(ranks, 16), ranks, np.array([900]))
    assert words[0].size <= 4


def test_shares_of_ranks_make_a_whole_and_none_is_left_out():
    for symbols, top in ((16, 16), (32, 3), (64, 2), (256, 256), (250, 1)):
        ranks = np.random.default_rng(symbols).integers(0, top, (2, 3_000)).astype(np.uint8)
        odds = Odds.of(ranks, symbols)
        assert (odds.shares[..., -1] == 1 << odds.bits).all()
        assert (np.diff(odds.shares.astype(np.int64), axis=-1) > 0).all()


def test_streams_take_what_the_odds_of_ranks_tell():
    random = np.random.default_rng(0)
    steps = random.choice([0, 0, 0, 1, 15], 40_000)  # a rank stays, or becomes a neighbour
    ranks = (np.cumsum(steps) % 16).astype(np.uint8)[None]
    words, _ = streams.encoded(Odds.of(ranks, 16), ranks, laps(np.full(80, 500)))
    entropy = -(0.6 * np.log2(0.6) + 0.4 * np.log2(0.2)) * ranks.size
    # Ranks that never follow have a share all the same; a stream begins anywhere, and ends with a word.
    assert words[0].size * 16 < entropy * 1.02 + 80 * 16
