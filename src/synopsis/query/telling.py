"""Telling: which statistics of a question machine code finds all at once, and what it has to know for that.

`told` computes them. What is left over, and groups without a path, is asked of `estimate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from synopsis.core.hashing import Itself
from synopsis.query import bins
from synopsis.query.binding import Statistic
from synopsis.query.covers import Covers, Slots
from synopsis.query.histograms import Sides
from synopsis.query.predicates import AllOf, Clause, Leaf, Ranges
from synopsis.query.programs import leaves_of, left_of, others_of, program_of
from synopsis.query.sampled import NOWHERE, effects_of
from synopsis.query.values import Values
from synopsis.sketch import stretches
from synopsis.sketch.compiled import Later
from synopsis.sketch.mass import TOTALS, MassAxis
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import Flags, Strata
from synopsis.sketch.stretches import Stretching

if TYPE_CHECKING:
    from synopsis.query import arrangements, settled, told
else:
    told, settled, arrangements = (Later(f"synopsis.query.{name}") for name in ("told", "settled", "arrangements"))

Told = tuple[Floats, tuple[Floats, Floats] | None]  #: estimates, and intervals at 95% where there are any

_OF_ONE: Final = ("mean", "sum", "std", "var", "min", "max", "quantile")
_NONE: Final = np.empty(0, np.int64)
_NO_RANGES: Final = np.empty((0, 2))
_ENDS: Final = {"min": 0.0, "max": 1.0}


class Topic(NamedTuple):
    """Statistics that are told at once."""

    feature: int
    statistics: tuple[Statistic, ...]
    other: int  #: the feature that it correlates with; -1 where that is not asked for
    positions: tuple[int, ...]  #: where `told` puts each
    wanted: Flags
    shares: Floats  #: of quantiles
    settling: Integers  #: statistics x what `settled` has to know
    shares_of: Floats  #: statistics: the share of each that is a quantile


@lru_cache(maxsize=512)
def topic_of(asked: tuple[Statistic, ...]) -> Topic | None:
    """What can be told at once of these statistics: those of the feature that comes first, and COUNT(*)."""
    own = [each for each in asked if each.function in _OF_ONE and each.only is None]
    pairs = [each for each in asked if each.function == "correlation" and each.only is None]
    pairs = [each for each in pairs if len(set(each.features)) == 2]
    if not own and not pairs:
        return None
    feature = (own or pairs)[0].features[0]
    own = [each for each in own if each.features == (feature,)]
    pair = next((each for each in pairs if feature in each.features), None)
    other = -1 if pair is None else next(each for each in pair.features if each != feature)
    statistics = (*own, *(each for each in asked if each.is_of_rows), *(() if pair is None else (pair,)))
    words = tuple((each.function, each.share, each.rounded) for each in statistics)
    return Topic(feature, statistics, other, *_told_at_once(words))


@lru_cache(maxsize=512)
def _told_at_once(
    words: tuple[tuple[str, float | None, bool], ...],
) -> tuple[tuple[int, ...], Flags, Floats, Integers, Floats]:
    """What hangs on the functions of a topic alone, whatever they are of: the last of its fields."""
    functions = {function for function, _, _ in words}
    shares = [_ENDS.get(function, share) for function, share, _ in words]
    ranks = [each for each in dict.fromkeys(shares) if each is not None]
    wanted = np.zeros(told.QUANTILES, np.bool_)
    wanted[told.COUNT], wanted[told.MEAN], wanted[told.SUM] = (each in functions for each in ("count", "mean", "sum"))
    wanted[told.VARIANCE] = bool(functions & {"std", "var"})
    positions = tuple(_position(function, _ENDS.get(function, share), ranks) for function, share, _ in words)
    settling = np.array(
        [
            (at, *_settling(function, is_rounded))
            for (function, _, is_rounded), at in zip(words, positions, strict=True)
        ],
        np.int64,
    )
    shares_of = np.array([np.nan if share is None else share for _, share, _ in words], np.float64)
    return positions, wanted, np.array(ranks, np.float64), settling, shares_of


def _settling(function: str, is_rounded: bool) -> tuple[int, int, int]:
    """Of which kind a statistic is, and which facts bound it from below and above."""
    ends = {
        "sum": (arrangements.SUM, arrangements.SUM),
        "mean": (arrangements.MEAN, arrangements.MEAN),
        "min": (arrangements.BEST, arrangements.WORST),
        "max": (arrangements.WORST, arrangements.BEST),
    }
    if function in ends:
        return settled.BOUNDED, *ends[function]
    if function == "count":
        return settled.WHOLE_ROWS if is_rounded else settled.ROWS, -1, -1
    kinds = {"quantile": settled.QUANTILE, "var": settled.VARIANCE, "std": settled.DEVIATION}
    return kinds.get(function, settled.GUESSED), -1, -1


class _Axes(NamedTuple):
    """The mass axes of all features, side by side."""

    mass: Floats
    sizes: Integers  #: fine bins of each
    low: Floats
    high: Floats
    totals: Floats
    step: Floats


@lru_cache(maxsize=16)
def _axes(same: Itself[Scales]) -> tuple[_Axes, tuple[MassAxis, ...]]:
    known = tuple(MassAxis.of(same.value, feature) for feature in range(len(same.value.quantizers)))
    sizes = np.array([axis.low.size for axis in known], np.int64)
    most, count = int(sizes.max(initial=0)), sizes.size
    axes = _Axes(
        np.zeros((count, most + 1)),
        sizes,
        np.zeros((count, most)),
        np.zeros((count, most)),
        np.zeros((count, TOTALS, most + 1)),
        np.array([axis.step for axis in known], np.float64),
    )
    for feature, axis in enumerate(known):
        axes.mass[feature, : axis.mass.size], axes.totals[feature, :, : axis.mass.size] = axis.mass, axis.totals
        axes.low[feature, : axis.low.size], axes.high[feature, : axis.low.size] = axis.low, axis.high
    return axes, known


def axes_of(same: Itself[Scales]) -> _Axes:
    """The mass axes of all features, in the order in which `told` takes them."""
    return _axes(same)[0]


@lru_cache(maxsize=16)
def levels_of(same: Itself[Scales], stretching: Stretching | None) -> tuple[Floats, Floats, Floats]:
    """Centres and units of features, and what runs over their fine bins (`stretches.running`), side by side."""
    if stretching is None:
        return np.empty(0), np.empty(0), np.empty((0, stretches.FACTS, 0))
    known = stretches.running(same.value, stretching)
    levels = np.zeros((len(known), stretches.FACTS, max((each.shape[1] for each in known), default=0)))
    for feature, each in enumerate(known):
        levels[feature, :, : each.shape[1]] = each
    return np.array(stretching.centre), np.array(stretching.unit), levels


@lru_cache(maxsize=512)
def clause_of(same: Itself[Scales], clause: Clause, feature: int, other: int) -> tuple[Any, ...]:
    """A clause and what it leaves of two features, in the order in which `told` takes it."""
    known, program = _axes(same)[1], program_of(clause)
    leaves = {leaf: number for number, leaf in enumerate(program.leaves)}
    anything = isinstance(clause, AllOf) and not clause.parts
    kind = told.ANYTHING if anything else told.LEAF if isinstance(clause, Leaf) else told.OTHER
    ranges = [bins.on_axis(known[leaf.feature], leaf.ranges) for leaf in leaves]
    cuts = [
        (leaves[leaf], *cut) for leaf in leaves_of(clause) for cut in bins.cuts_of(known[leaf.feature], leaf.ranges)
    ]
    own, ends = left_of(clause, feature), [0, *accumulate(map(len, ranges))]
    return (
        kind,
        program.steps,
        program.demanded,
        np.array([leaf.feature for leaf in leaves], np.int64),
        np.array([leaf.nulls for leaf in leaves], np.bool_),
        np.array(ends, np.int64),
        np.concatenate([_NO_RANGES, *ranges]),
        np.array(cuts, np.float64).reshape(-1, 4),
        feature,
        _others(clause, feature, leaves),
        bins.on_axis(known[feature], own),
        *_ends(own),
        other,
        _NONE if other < 0 else _others(clause, other, leaves),
        _NO_RANGES if other < 0 else bins.on_axis(known[other], left_of(clause, other)),
        feature < other,
    )


def _others(clause: Clause, feature: int, leaves: dict[Leaf, int]) -> Integers:
    """The steps of what a clause demands of other features, its leaves numbered as those of the clause are."""
    known, steps = len(leaves), others_of(clause, feature, leaves)
    assert len(leaves) == known, "what is demanded of other features is among the leaves of the clause"
    return np.array(steps, np.int64)


def _ends(ranges: Ranges) -> tuple[float, float]:
    return (ranges[0][0], ranges[-1][1]) if ranges else (-np.inf, np.inf)


class Heard(NamedTuple):
    """What paths tell of a topic."""

    topic: Topic
    found: Floats  #: statistics x (estimate, low, high at 95%) x groups, where `told` puts them
    likely: bool  #: whether there are intervals

    @property
    def told(self) -> dict[Statistic, Told]:
        """The same by statistic."""
        each = zip(self.topic.statistics, self.topic.positions, strict=True)
        return {asked: _told(self.found[at], self.likely and asked.function not in _ENDS) for asked, at in each}

    def settled(self, rows: Floats, facts: Floats, sides: Sides) -> dict[Statistic, Values]:
        """All statistics of one group, with what exact counts tell of them."""
        topic = self.topic
        found, promised = settled.settled(topic.settling, self.found, topic.shares_of, rows, facts, *sides)
        values = {}
        for at, asked in enumerate(topic.statistics):
            numbers = found[at, :3].astype(np.int64) if asked.function == "count" and asked.rounded else found[at]
            ends = (numbers[:1], numbers[1:2], numbers[2:3])
            values[asked] = Values(*ends, promised[at : at + 1], found[at : at + 1, 3:])
        return values


def tell(
    asked: tuple[Statistic, ...],
    clause: Clause,
    scales: Scales,
    features: Sequence[int],
    strata: Strata,
    covers: Covers,
    slots: Slots,
    likely: bool,
    pace: float = 1.0,
    effects: Floats | None = None,
) -> Heard | None:
    """What paths tell of the rows of all groups that satisfy a clause, of as many statistics as can be told at once.

    Nothing where one of the groups has no path at all. Cost: that of each statistic by itself, without the calls.
    """
    topic = topic_of(asked)
    if topic is None:
        return None
    same, place = Itself(scales), strata.shared_place
    given: tuple[Any, ...] = (
        *clause_of(same, clause, topic.feature, topic.other),
        *axes_of(same),
        *(np.array(features), strata.starts, strata.ends, strata.tilt, strata.counts, strata.codes),
        *(strata.day, strata.day_offset, strata.day_rows, strata.day_kept, NOWHERE if place is None else place),
        *(strata.even, pace),
        *(covers.day, covers.share, covers.offset, covers.lean, covers.lean_start),
        *(slots.stratum, slots.whole, slots.kept, slots.begin, slots.end, slots.rows),
        *(slots.offset, slots.paths, slots.days_cut),
        *(*_stretches(strata, topic.feature, features), *levels_of(same, strata.stretching)),
        effects_of(None, len(scales.quantizers)) if effects is None else effects,
    )
    is_heard, found = told.tell(topic.wanted, topic.shares, likely, *given)
    return Heard(topic, found, likely) if is_heard else None


def _stretches(strata: Strata, feature: int, features: Sequence[int]) -> tuple[Any, ...]:
    """What is kept of the stretches of one feature, in the order in which `told` takes it."""
    if not strata.lengths:
        return np.empty((0, stretches.FACTS, 0), np.int64), np.empty((0, 1), np.int64), np.empty((0, 0)), _NONE
    at = list(features).index(feature)
    facts, offset, shift = strata.stretches[at], strata.stretch_offsets[at], strata.stretch_shifts[at]
    return np.ascontiguousarray(facts)[None], offset[None], shift[None], np.array([shift.size])


def _position(function: str, share: float | None, ranks: list[float]) -> int:
    if share is not None:
        return told.QUANTILES + ranks.index(share)
    positions = {
        "count": told.COUNT,
        "mean": told.MEAN,
        "sum": told.SUM,
        "var": told.VARIANCE,
        "std": told.DEVIATION,
        "correlation": told.CORRELATION,
    }
    return positions[function]


def _told(numbers: Floats, likely: bool) -> Told:
    return numbers[0], (numbers[1], numbers[2]) if likely else None
