"""Synthesis: rows that were never observed, drawn from what a sketch keeps of those that were.

A row is drawn path by path: paths are taken evenly along the rows that they stand for, so that places, periods and the
joint structure of the features have the shares that exact counts give them. Where fewer rows are wanted than there are
paths, several times as many are drawn in this way, and those returned are even steps among them in an order of likeness
(`likeness`): as many of every kind as there are, with less luck than in a random part. Likeness is that of the features
that are asked for: where they are few, a set is like all rows in more of their combinations. Within its bins a row's
values are drawn from the density of the bin, features together (`scores`). Rows that fail the condition are drawn
again. Absent features stay absent. Times are those of the path's rank on its day, or of its own time of day. Where no
path is in scope, every feature is drawn by itself from its counts; strands are drawn from normal distributions with
their moments, within their extremes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery, UnknownFeature
from synopsis.grid import geohash
from synopsis.query.binding import bind
from synopsis.query.covers import Covers
from synopsis.query.estimate import Estimates
from synopsis.query.likeness import ordered_by_likeness
from synopsis.query.opened import Opened, day_us, past_us
from synopsis.query.predicates import AllOf, Clause, Leaf, positive
from synopsis.query.regions import Cells
from synopsis.query.relation import Relation
from synopsis.query.sampled import Sample
from synopsis.query.scope import select
from synopsis.query.scoping import Part
from synopsis.query.scores import Scores
from synopsis.query.tree import Aggregate, Item, Question
from synopsis.sketch.layout import Layout
from synopsis.sketch.mass import MassAxis
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.scales import Scales
from synopsis.sketch.strata import Strata, bin_codes
from synopsis.sketch.summary import WHEREABOUTS
from synopsis.sketch.tilts import STEPS

Booleans = NDArray[np.bool_]

#: Rows of a batch.
_BATCH = 65_536

#: Of so many rows one is chosen, where there are so many paths: of four, which is nearly as good as of ten, and of ten
#: where features are few, and rows quick to draw.
_CHOICE, _CHOICE_OF_FEW, _FEW = 4, 10, 4

#: Rows, at least, among which some are chosen together: the more, the more they are like all of them.
_TOGETHER = 262_144

#: Decimals of the finest grid that values may lie on: 7 steps of 0.01 are 0.07, as it is read from a file.
_DECIMALS = 3

#: How often a row that fails the condition is drawn again, before another that did not takes its place.
_TRIES = 40


@dataclass(frozen=True)
class Names:
    """What the columns of place and time are called."""

    lat: str = "lat"
    lon: str = "lon"
    time: str = "time"


def asked_features(layout: Layout, features: Sequence[str] | None) -> tuple[int, ...]:
    """Positions of the features that rows shall have, in the order in which they are named; all of them, else."""
    if features is None:
        return tuple(range(len(layout.features)))
    for number, name in enumerate(features):
        if name not in layout.features:
            raise UnknownFeature(name, layout.features)
        if name in features[:number]:
            raise BadQuery(f"features names {name!r} twice")
    if not features:
        raise BadQuery(f"features is empty; name one or more of {', '.join(layout.features)}, or leave it out")
    return tuple(layout.features.index(name) for name in features)


def schema_of(layout: Layout, names: Names, features: Sequence[str] | None = None) -> pa.Schema:
    """The columns of synthetic rows: those of the observations, with some features or all."""
    return pa.schema(
        [
            (names.lat, pa.float64()),
            (names.lon, pa.float64()),
            (names.time, pa.timestamp("us", layout.timezone)),
            *((layout.features[feature], pa.float64()) for feature in asked_features(layout, features)),
        ]
    )


def check_size(rows: int | None, share: float | None) -> None:
    """Refuse what is no number of rows."""
    if (rows is None) == (share is None):
        raise BadQuery("synthesize takes rows=n or share=0.1, one of them")
    if (rows is not None and rows < 0) or (share is not None and not 0.0 <= share < math.inf):
        raise BadQuery("synthesize takes a number of rows, or a share of them, that is not negative")


def synthesized(
    relation: Relation,
    names: Names,
    rows: int | None = None,
    share: float | None = None,
    seed: int = 0,
    features: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of synthetic rows: so many, or so large a share of those that the sketch counts.

    Cost: a pass over all paths in scope to weigh them, and one over the rows drawn, or, where they are fewer than the
    paths, over four times as many (ten times where they have four features or fewer), which are sorted. Only features
    that are asked for, and those of the condition, are opened and drawn. Memory: that of a block, and of so many rows
    as are chosen from together.
    """
    check_size(rows, share)
    plan = bind(Question((Item("rows", Aggregate("count")),), relation.where), relation.layout)
    asked = asked_features(relation.layout, features)
    by_path = relation.summary is not None
    drawing = _FromPaths(relation, plan.parts, asked) if by_path else _FromStrands(relation, plan.parts, asked)
    known = [(source.mass, source.paths) for source in drawing.sources()]
    total, paths = sum(mass for mass, _ in known), sum(number for _, number in known)
    wanted = round(share * total) if share is not None else rows or 0
    if wanted and not total > 0:
        raise BadQuery("no row fulfils the condition, so there is nothing to draw from")
    schema = schema_of(relation.layout, names, features)
    ends = np.round(np.cumsum([mass for mass, _ in known]) / max(total, 1e-300) * wanted).astype(np.int64)
    if isinstance(drawing, _FromPaths) and wanted < paths:
        drawn = _chosen(drawing.sources(), ends, seed)
    else:
        drawn = _in_turn(drawing.sources(), ends, seed)
    for each in drawn:
        yield _batch(each, schema)


def _in_turn(sources: Iterator[_Block | _Strands], ends: Integers, seed: int) -> Iterator[_Rows]:
    """Rows of one source after the other, up to an end of each."""
    for number, (source, count) in enumerate(zip(sources, np.diff(ends, prepend=0), strict=True)):
        yield from source.draw(int(count), np.random.default_rng([seed, number]))


def _chosen(sources: Iterator[_Block], ends: Integers, seed: int) -> Iterator[_Rows]:
    """A part of the rows of all paths, by even steps in the order of their likeness, some sources at a time."""
    waiting: list[tuple[_Rows, Floats]] = []
    done = 0  # rows yielded
    for number, (source, count) in enumerate(zip(sources, np.diff(ends, prepend=0), strict=True)):
        random = np.random.default_rng([seed, number])
        if count:
            waiting.append(source.candidates(int(count), random))
        size = int(ends[number]) - done
        if size and (number == ends.size - 1 or sum(mass.size for _, mass in waiting) >= _TOGETHER):
            rows, mass = _joined([each for each, _ in waiting]), np.concatenate([each for _, each in waiting])
            order = ordered_by_likeness(rows.values, size, random)
            chosen = random.permutation(order[_even_steps(mass[order], 0, size, size, random.random())])
            for begin in range(0, size, _BATCH):
                yield _taken(rows, chosen[begin : begin + _BATCH])
            waiting, done = [], done + size


@dataclass(frozen=True)
class _Rows:
    """Rows drawn."""

    lat: Floats
    lon: Floats
    time_us: Integers
    values: Floats  #: features that are asked for x rows, NaN where absent


def _batch(rows: _Rows, schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(rows.lat), pa.array(rows.lon), pa.array(rows.time_us, schema.field(2).type)]
    columns += [pa.array(values, mask=np.isnan(values)) for values in rows.values]
    return pa.record_batch(columns, schema=schema)


# --- from paths -------------------------------------------------------------------------------------------------------


class _FromPaths:
    """Blocks of a summary, part by part of the condition."""

    def __init__(self, relation: Relation, parts: tuple[Part, ...], asked: tuple[int, ...]) -> None:
        assert relation.summary is not None
        self._summary, self._layout, self._parts, self._asked = relation.summary, relation.layout, parts, asked

    def sources(self) -> Iterator[_Block]:
        summary, own = self._summary, len(self._layout.features)
        wanted = [*self._asked, *(range(own, own + WHEREABOUTS) if summary.layout.moving else ())]
        for part in self._parts:
            for block in summary.blocks:
                one = replace(summary, blocks=(block,))
                opened = Opened.of(one, self._layout, part, wanted, cuts_days=True)
                if opened.strata is not None:
                    yield _Block(opened, opened.strata, part, self._asked)


class _Block:
    """The strata of one block in one part of the condition."""

    def __init__(self, opened: Opened, strata: Strata, part: Part, asked: tuple[int, ...]) -> None:
        self._opened, self._strata, self._part, self._asked = opened, strata, part, asked
        self._with_condition = tuple(dict.fromkeys((*asked, *sorted(part.features))))
        self._features = tuple(dict.fromkeys(opened.features))
        self._clause = positive(part.condition)
        covered = opened.covered(opened.begin_us, opened.end_us)
        scales = opened.summary.scales
        found = Estimates(
            Sample(strata, scales, opened.features, Covers.whole(covered.share, covered.lean, strata.day_kept)),
            self._clause,
        )
        self._which, self._mass = found.standing_for()  # paths, or days where there are none
        self._of_paths = bool(self._mass.any())
        if not self._of_paths:
            self._mass = covered.share * strata.day_rows
            self._which = np.flatnonzero(self._mass)
            self._mass = self._mass[self._which] * (found.count() / max(self._mass.sum(), 1e-300))
        self.mass = float(self._mass.sum())

    @property
    def paths(self) -> int:
        """How many paths there are to choose from."""
        return self._which.size if self._of_paths else 0

    def candidates(self, count: int, random: np.random.Generator) -> tuple[_Rows, Floats]:
        """Rows of which to choose so many, and the mass of each."""
        size = count * (_CHOICE_OF_FEW if len(self._asked) <= _FEW else _CHOICE)
        if size < self._which.size:
            picked = self._which[_even_steps(self._mass, 0, size, size, random.random())]
            return self._fulfilling(picked, random), np.full(size, self.mass / max(size, 1))
        # One a path, or more if it stands for more than a step, so that no row is chosen twice.
        times = np.maximum(np.ceil(self._mass * (count / self.mass)), 1).astype(np.int64)
        return self._fulfilling(np.repeat(self._which, times), random), np.repeat(self._mass / times, times)

    def draw(self, count: int, random: np.random.Generator) -> Iterator[_Rows]:
        """So many rows, in batches, the paths taken in turn."""
        chance = random.random()  # one for all rows: no path is drawn twice before the next has had its turn
        for begin in range(0, count, _BATCH):
            size = min(_BATCH, count - begin)
            picked = self._which[_even_steps(self._mass, begin, size, count, chance)]
            yield _taken(self._fulfilling(picked, random), random.permutation(size))

    def _fulfilling(self, picked: Integers, random: np.random.Generator) -> _Rows:
        """A row for each path, or day, that fulfils the condition."""
        rows = self._drawn(picked, random)
        wrong = np.flatnonzero(~self._holds(rows))
        for _ in range(_TRIES if self._of_paths else 10 * _TRIES):
            if not wrong.size:
                break
            again = self._drawn(picked[wrong], random)
            right = self._holds(again)
            rows = _put(rows, wrong[right], _taken(again, np.flatnonzero(right)))
            wrong = wrong[~right]
        if wrong.size and wrong.size < picked.size:
            others = np.setdiff1d(np.arange(picked.size), wrong)
            rows = _put(rows, wrong, _taken(rows, random.choice(others, wrong.size)))
        return replace(rows, values=rows.values[: len(self._asked)])

    def _holds(self, rows: _Rows) -> Booleans:
        """Which rows are in scope and satisfy the condition."""
        scope = self._part.scope
        held = _satisfied(self._clause, dict(zip(self._with_condition, rows.values, strict=True)), rows.lat.size)
        if scope.from_us is not None:
            held &= rows.time_us >= scope.from_us
        if scope.until_us is not None:
            held &= rows.time_us < scope.until_us
        for region in (*(() if scope.prefixes is None else (Cells(scope.prefixes),)), *scope.shapes):
            held &= region.holds(rows.lat, rows.lon)
        return held

    def _drawn(self, picked: Integers, random: np.random.Generator) -> _Rows:
        """A row for each path, or day, with the features that are asked for and then those of the condition."""
        strata, opened = self._strata, self._opened
        summary, layout = opened.summary, opened.layout
        day, rank = picked, random.random(picked.size)
        if self._of_paths:
            kept_before = np.cumsum(strata.day_kept) - strata.day_kept
            day = np.searchsorted(kept_before, picked, side="right") - 1
            rank = (picked - kept_before[day] + rank) / np.maximum(strata.day_kept[day], 1)
        stratum = np.searchsorted(strata.day_offset, day, side="right") - 1
        place = strata.day_place[day]
        if self._of_paths:
            codes = strata.codes[self._positions][:, picked].astype(np.intp)
            levels = self._scores.levels(codes, stratum, random)
        else:
            codes = np.stack([_counted_bins(strata.counts[at][stratum], random) for at in self._positions])
            levels = random.random(codes.shape)
        drawn = {
            feature: _within_bins(strata, summary.scales, position, feature, code, stratum, level)
            for feature, position, code, level in zip(self._features, self._positions, codes, levels, strict=True)
        }
        values = np.stack([drawn[feature] for feature in self._with_condition])
        spell = summary.layout.spell
        first, past = (each(strata.day[day], layout, spell) for each in (day_us, past_us))
        if spell > 1:  # by far the most of a spell may lie beyond the scope
            first = first if opened.begin_us is None else np.maximum(first, opened.begin_us)
            past = past if opened.end_us is None else np.minimum(past, opened.end_us)
        length = past - first
        lat, lon = summary.latitude[place], summary.longitude[place]
        if summary.layout.moving:
            bits, own = summary.layout.place_bits or 0, len(layout.features)
            south, west, north, east = geohash.decode(geohash.encode(lat, lon, bits), bits)
            lat, lon = south + drawn[own] * (north - south), west + drawn[own + 1] * (east - west)
            return _Rows(lat, lon, first + np.minimum(drawn[own + 2].astype(np.int64), length - 1), values)
        slot = summary.layout.slot_us * spell
        time_us = first + np.minimum((rank * length).astype(np.int64) // slot * slot, length - 1)
        return _Rows(lat, lon, time_us, values)

    @cached_property
    def _scores(self) -> Scores:
        return Scores.of(self._strata, self._positions)

    @property
    def _positions(self) -> list[int]:
        return [self._opened.features.index(feature) for feature in self._features]


def _even_steps(mass: Floats, begin: int, size: int, count: int, chance: float) -> Integers:
    """Positions that `count` even steps along a mass reach, so many of them from one on."""
    reached = np.cumsum(mass)
    at = (begin + np.arange(size) + chance) / count * reached[-1]
    return np.asarray(np.minimum(np.searchsorted(reached, at, side="right"), mass.size - 1), np.int64)


def _counted_bins(counts: Integers, random: np.random.Generator) -> Integers:
    """A bin for each row of counts, or absent, each as often as it was counted."""
    reached = np.cumsum(counts, axis=1)
    return np.asarray((reached <= (random.random(len(counts)) * reached[:, -1])[:, None]).sum(axis=1), np.intp)


def _within_bins(
    strata: Strata, scales: Scales, position: int, feature: int, code: Integers, stratum: Integers, level: Floats
) -> Floats:
    """A value for each row from the density of its bin, at a level of it; NaN where it is absent."""
    axis = MassAxis.of(scales, feature)
    starts, ends = bin_codes(strata, position)
    absent = code == strata.bins
    code = np.where(absent, 0, code)
    tilt = strata.tilt[position][stratum, code] / STEPS
    left, right = axis.mass[starts[stratum, code]], axis.mass[ends[stratum, code]]
    # The share of a bin below u is u + tilt (u^2 - u).
    tilted = np.abs(tilt) > 1e-9
    safe = np.where(tilted, tilt, 1.0)
    slope = 1.0 - safe
    u = np.where(tilted, (np.sqrt(np.maximum(slope**2 + 4 * safe * level, 0.0)) - slope) / (2 * safe), level)
    mass = left + np.clip(u, 0.0, 1.0) * (right - left)
    fine = np.clip(np.searchsorted(axis.mass, mass, side="right") - 1, 0, axis.low.size - 1)
    part = (mass - axis.mass[fine]) / (axis.mass[fine + 1] - axis.mass[fine])
    value = axis.low[fine] + np.clip(part, 0.0, 1.0) * (axis.high[fine] - axis.low[fine])
    if axis.step:
        value = np.round(np.round(value / axis.step) * axis.step, _DECIMALS) + 0.0  # never -0.0
    low, high = scales.low[feature], scales.high[feature]
    return np.where(absent, np.nan, np.clip(value, low, high))


def _satisfied(clause: Clause, values: dict[int, Floats], rows: int) -> Booleans:
    """Which of so many rows satisfy a clause, by the values of its features."""
    if isinstance(clause, Leaf):
        value = values[clause.feature]
        absent = np.isnan(value)
        held = np.zeros(value.size, np.bool_)
        with np.errstate(invalid="ignore"):
            for low, high in clause.ranges:
                held |= (value >= low) & (value <= high)
        return np.where(absent, clause.nulls, held)
    every = isinstance(clause, AllOf)
    held = np.full(rows, every)
    for part in clause.parts:
        found = _satisfied(part, values, rows)
        held = held & found if every else held | found
    return held


def _joined(rows: list[_Rows]) -> _Rows:
    parts = zip(*((each.lat, each.lon, each.time_us) for each in rows), strict=True)
    lat, lon, time_us = (np.concatenate(part) for part in parts)
    return _Rows(lat, lon, time_us, np.concatenate([each.values for each in rows], axis=1))


def _taken(rows: _Rows, which: Integers) -> _Rows:
    return _Rows(rows.lat[which], rows.lon[which], rows.time_us[which], rows.values[:, which])


def _put(rows: _Rows, at: Integers, others: _Rows) -> _Rows:
    """The rows with others at some places."""
    lat, lon, time_us, values = rows.lat.copy(), rows.lon.copy(), rows.time_us.copy(), rows.values.copy()
    lat[at], lon[at], time_us[at], values[:, at] = others.lat, others.lon, others.time_us, others.values
    return _Rows(lat, lon, time_us, values)


# --- from strands -----------------------------------------------------------------------------------------------------


class _FromStrands:
    """Strands in scope, part by part."""

    def __init__(self, relation: Relation, parts: tuple[Part, ...], asked: tuple[int, ...]) -> None:
        self._relation, self._parts, self._asked = relation, parts, asked

    def sources(self) -> Iterator[_Strands]:
        for part in self._parts:
            yield _Strands(self._relation, part, self._asked)


class _Strands:
    """The strands of one part of the condition."""

    paths = 0

    def __init__(self, relation: Relation, part: Part, asked: tuple[int, ...]) -> None:
        strands = relation.strands
        found = select(part.scope, strands)
        inside = np.zeros(len(strands))
        inside[found.inside] = 1.0
        inside[found.cut] = found.fraction
        self._strands, self._part, self._layout, self._asked = strands, part, relation.layout, asked
        self._mass = strands.rows * inside
        self.mass = float(self._mass.sum())

    def draw(self, count: int, random: np.random.Generator) -> Iterator[_Rows]:
        """So many rows, in batches."""
        for begin in range(0, count, _BATCH):
            yield self._drawn(min(_BATCH, count - begin), begin, count, random)

    def _drawn(self, size: int, begin: int, count: int, random: np.random.Generator) -> _Rows:
        """So many of all rows that are drawn, from one number on."""
        strands, layout = self._strands, self._layout
        reached = np.cumsum(self._mass)
        at = (begin + np.arange(size) + random.random(size)) / count * reached[-1]
        which = np.minimum(np.searchsorted(reached, at, side="right"), len(strands) - 1)
        cell = np.searchsorted(strands.cells.key, strands.cell[which])
        south, west, north, east = (side[cell] for side in strands.cells.box)
        first, last = strands.first_us[which], strands.last_us[which]
        scope = self._part.scope
        first = first if scope.from_us is None else np.maximum(first, scope.from_us)
        last = last if scope.until_us is None else np.minimum(last, scope.until_us - 1)
        moments, features = strands.moments, len(layout.features)
        count_of = np.maximum(moments.count[:, which], 1)
        deviation = np.sqrt(moments.spread[:, which] / count_of)
        normal = self._correlated(which, features, random)
        values = np.clip(moments.mean[:, which] + deviation * normal, moments.low[:, which], moments.high[:, which])
        present = random.random((features, size)) * strands.rows[which] < moments.count[:, which]
        return _Rows(
            south + (north - south) * random.random(size),
            west + (east - west) * random.random(size),
            first + ((last - first) * random.random(size)).astype(np.int64),
            np.where(present, values, np.nan)[list(self._asked)],
        )

    def _correlated(self, which: Integers, features: int, random: np.random.Generator) -> Floats:
        """Normal numbers, features going together as in the strand of each row."""
        strands = self._strands
        unique, own = np.unique(which, return_inverse=True)
        matrix = np.broadcast_to(np.eye(features), (unique.size, features, features)).copy()
        comoments = strands.comoments
        scale = np.sqrt(comoments.first_spread[:, unique] * comoments.second_spread[:, unique])
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.nan_to_num(comoments.cross[:, unique] / scale, posinf=0.0, neginf=0.0)
        for pair, (one, two) in enumerate(self._layout.pairs):
            matrix[:, one, two] = matrix[:, two, one] = np.clip(found[pair], -1.0, 1.0)
        values, vectors = np.linalg.eigh(matrix)
        root = vectors * np.sqrt(np.clip(values, 0.0, None))[:, None, :]
        root /= np.sqrt((root**2).sum(axis=2, keepdims=True))
        draws = random.standard_normal((which.size, features))
        return np.asarray(np.einsum("rij,rj->ir", root[own.reshape(-1)], draws))
