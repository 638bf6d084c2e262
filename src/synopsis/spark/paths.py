"""Paths: rows become ticks, in generated JVM code as a rule, ticks become tallies and strata inside the executors.

    rows ─▶ statistics ─▶ probe: scales and layout ─▶ tallies of each partition ─▶ by region ─▶ strata ─▶ blocks
                                                   ├▶ sums in fine bins ─▶ those of all rows
                                                   └▶ meetings of each partition ─▶ by cell ─▶ those of all rows

What moves to Python is a position, a time and four features an integer, unless tasks read plain files themselves
(`reading`); what moves between executors are tallies and meetings; what reaches the driver are blocks and meetings,
which the budget bounds.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from synopsis.core.spec import Spec
from synopsis.grid import geohash
from synopsis.sketch import blocks
from synopsis.sketch.budget import Probe, chosen, whereabouts
from synopsis.sketch.contexts import Contexts
from synopsis.sketch.fine import FineSums
from synopsis.sketch.gathering import PER_INTEGER, Gathering
from synopsis.sketch.joints import Grain
from synopsis.sketch.meetings import SHARE, Meetings, Planned, planned
from synopsis.sketch.moments import Floats
from synopsis.sketch.path_layout import PathLayout
from synopsis.sketch.scales import MOST_FINE, Scales
from synopsis.sketch.strata import from_tallies
from synopsis.sketch.summary import ORDER_BITS, WHEREABOUTS, Summary, cut, place_order
from synopsis.sketch.tallies import DAY_US, Tallies
from synopsis.sketch.ticks import ABSENT_TICK, MOST_TICKS, Ticks
from synopsis.spark import expressions, jobs, reading
from synopsis.spark.observations import Observations
from synopsis.spark.reading import Reader
from synopsis.spark.statistics import Statistics

#: Rows of the probe: for scales, and of whole places for the budget.
_SCALE_ROWS, _PLACE_ROWS = 150_000, 100_000

#: Rows of a place that is looked at by itself, at most.
_MOST_PLACE_ROWS = 1_000_000

#: Meetings are planned by one of so many rows of those for scales.
_MEETING_ROWS = 2

#: Tasks that gather meetings, each for some cells; and the number of what goes to the driver, which is none of theirs.
_MEETING_TASKS, _SUMS = 4, -5

#: Rows of an Arrow batch: large ones spare Python much.
_BATCH_ROWS = 100_000

#: A station has so many rows at least, unless there are few places.
_ROWS_OF_A_STATION, _FEW_PLACES = 10, 50

#: Steps above the origin that Spark counts in whole numbers; beyond 2**63 it would fail.
_WHOLE = 2.0**62

#: Paths that one task packs.
_PATHS_OF_A_TASK = 200_000

#: Bits of the cells in which tallies meet: neighbours come to one task, and so into one block.
_REGION_BITS = 10

#: Fine bins take a part of the budget that is one of so many; and each so many bytes.
_SHARE_OF_SCALES, _FINE_BIN_BYTES = 7, 18

#: The ends of latitude and longitude within a cell, and of the time of day.
_WHEREABOUTS_LOW, _WHEREABOUTS_HIGH = (0.0, 0.0, 0.0), (1.0, 1.0, float(DAY_US - 1))

#: Rows that span so much time have seen all seasons.
_ALL_SEASONS_US = 300 * DAY_US

#: Parts of tallies, and where they go.
_TALLIES = "region bigint, tallies binary"

_CODEC = pa.Codec("lz4")


@dataclass(frozen=True)
class PathPlan:
    """How rows become strata and paths."""

    layout: PathLayout
    scales: Scales
    contexts: Contexts
    sample: FineSums | None  #: of the rows that the scales were fitted to; None where another batch has settled them
    met: Grain | None  #: of meetings, where there are any
    there: Summary | None = None  #: bins of what the rows are added to, where they are added to anything

    @classmethod
    def of(cls, summary: Summary) -> PathPlan:
        """That of a summary that is there."""
        met = None if summary.meetings is None else summary.meetings.grain
        return cls(summary.layout, summary.scales, summary.contexts, None, met, summary.only_bins)

    def fits(self, summary: Summary) -> bool:
        """Whether what is made in this way adds to a summary."""
        same = self.scales.quantizers == summary.scales.quantizers and self.layout == summary.layout
        lacks = self.met is None and summary.meetings is not None
        return same and not lacks and self.contexts.same(summary.contexts)


def plan(observed: Observations, spec: Spec, found: Statistics, memory: int) -> PathPlan | None:
    """What to make of these rows; None where the budget is too small for a layout.

    One pass for a sample, and another where places have so many rows that none of them is drawn.
    """
    rows = max(found.outcome.rows, 1)
    row_key = sf.pmod(sf.xxhash64("latitude", "longitude", "instant_us"), sf.lit(1 << 20))
    place_key = sf.pmod(sf.xxhash64("latitude", "longitude"), sf.lit(1 << 20))
    by_row, by_place = (int(min(wanted / rows, 1.0) * (1 << 20)) for wanted in (_SCALE_ROWS, _PLACE_ROWS))
    probe = partial(_probed, low=found.low, high=found.high, memory=memory, room=int(memory * SHARE), rows=rows)

    def planned_by(in_places: Column) -> PathPlan | _Place | None:
        sample = observed.accepted.select(
            "latitude",
            "longitude",
            sf.expr(_local_us(spec)).alias("local_us"),
            (row_key < by_row).alias("in_scales"),
            in_places.alias("in_places"),
            *(f"value_{k}" for k in range(len(observed.features))),
        )
        with jobs.settings(observed.frame.sparkSession, jobs.batches_of(_BATCH_ROWS)):
            made = sample.where("in_scales OR in_places").repartition(1).mapInArrow(probe, "plan binary").toArrow()
        planned: PathPlan | _Place | None = pickle.loads(made["plan"][0].as_py())
        return planned

    first = planned_by(place_key < by_place)
    if not isinstance(first, _Place):
        return first
    again = planned_by(sf.expr(first.rows_of_it(_local_us(spec), rows)))
    assert not isinstance(again, _Place)  # it has been seen
    return again


@dataclass(frozen=True)
class _Place:
    """One of few places with so many rows each that none was drawn."""

    latitude: float
    longitude: float
    share: float  #: of all rows that it has
    first_us: int
    last_us: int

    def rows_of_it(self, local_us: str, rows: int) -> str:
        """What holds for its rows, or where there are very many, for those from the first on."""
        part = min(_MOST_PLACE_ROWS / max(self.share * rows, 1.0), 1.0)
        last = self.first_us + int(part * (self.last_us - self.first_us))
        where = f"latitude = {self.latitude!r}D AND longitude = {self.longitude!r}D"
        return f"coalesce({where} AND {local_us} <= {last}L, false)"


def summarised(observed: Observations, spec: Spec, how: PathPlan, found: Statistics) -> tuple[Summary, FineSums | None]:
    """The summary of all rows, of which that is known, and their sums in fine bins, if there are any.

    One pass over the rows and one exchange of tallies.

    Sums in fine bins come to the driver first: what is packed hangs on them.
    Rows move to Python in large batches, tallies in bounded ones: so there are two jobs, and tallies wait between them.
    """
    layout, scales, contexts = how.layout, how.scales, how.contexts
    session = observed.frame.sparkSession
    # A number of our own: by their bytes Spark would think tallies too few to share the packing of them.
    expected = int(found.outcome.rows * layout.kept)
    tasks = min(session.sparkContext.defaultParallelism, 1 + expected // _PATHS_OF_A_TASK)
    tallies = _tallies(observed, spec, how, found).repartition(tasks, "region").persist()
    try:
        with jobs.settings(session, jobs.batches_of(_BATCH_ROWS)):
            told = tallies.where(sf.col("region") == _SUMS).toArrow()
        sums = [part for part in map(_unpacked, told["tallies"].to_pylist()) if isinstance(part, FineSums)]
        total = reduce(FineSums.__add__, sums) if sums else None
        if total is not None and how.sample is not None:  # what is packed hangs on what all rows tell of the fine bins
            scales = total.informing(scales, how.sample)
        pack = partial(_packed, how=replace(how, scales=scales))
        with jobs.settings(session, jobs.BOUNDED_BATCHES):
            made = tallies.where(sf.col("region") != _SUMS).mapInArrow(pack, "part binary").toArrow()
    finally:
        tallies.unpersist()
    parts = [pickle.loads(part) for part in made["part"].to_pylist()]
    empty = Summary(layout, np.empty(0), np.empty(0), scales, contexts, ())
    whole = reduce(
        Summary.beside, sorted((part for part in parts if isinstance(part, Summary)), key=_south_west), empty
    )
    meetings = [part for part in parts if isinstance(part, Meetings)]
    return replace(whole, meetings=Meetings.joined(meetings) if meetings else None), total


def _tallies(observed: Observations, spec: Spec, how: PathPlan, found: Statistics) -> DataFrame:
    """Tallies of all rows, a frame of parts: Spark makes ticks of its rows, or tasks do of those that they read."""
    layout, scales = how.layout, how.scales
    told = observed.footers if found.foretold else None
    if told is not None and spec.timezone == "UTC" and layout.place_bits is None:
        spark = observed.frame.sparkSession
        tasks = reading.dealt(told.groups, spark.sparkContext.defaultParallelism)
        reader = Reader(tasks, observed.named, scales.ticks, _BATCH_ROWS)
        numbers = spark.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(partial(_read, reader=reader, how=how), _TALLIES)
    values = [f"value_{k}" for k in range(len(observed.features))]
    values += [] if layout.place_bits is None else _whereabouts(spec, layout.place_bits)
    ends = (
        (*found.low.tolist(), *_WHEREABOUTS_LOW)[: len(values)],
        (*found.high.tolist(), *_WHEREABOUTS_HIGH)[: len(values)],
    )
    ticks = [ticked(*each) for each in zip(values, scales.ticks, *ends, strict=True)]
    packed = (
        " | ".join(f"shiftleft({tick}, {16 * at})" for at, tick in enumerate(ticks[k : k + PER_INTEGER]))
        for k in range(0, len(ticks), PER_INTEGER)
    )
    rows = observed.accepted.selectExpr(
        "latitude",
        "longitude",
        f"{_local_us(spec)} AS local_us",
        *(f"{column} AS ticks_{at}" for at, column in enumerate(packed)),
    )
    return rows.mapInArrow(partial(_tallied, how=how), _TALLIES)


def _south_west(part: Summary) -> int:
    return int(place_order(part.latitude[:1], part.longitude[:1])[0])


def _whereabouts(spec: Spec, place_bits: int) -> list[str]:
    """Where in its cell and when on its day a row was, as `budget.whereabouts`; expressions in Spark's SQL."""
    longitude_bits, latitude_bits = geohash.axis_bits(place_bits)
    axes = (("latitude", geohash.LATITUDE_REACH, latitude_bits), ("longitude", geohash.LONGITUDE_REACH, longitude_bits))
    within = []
    for axis, reach, bits in axes:
        place = f"(({axis} + {float(reach)!r}D) / {2 * reach / (1 << bits)!r}D)"
        # The far end of an axis lies in its last cell.
        within.append(f"({place} - least(floor({place}), {(1 << bits) - 1}L))")
    return [*within, f"cast(pmod({_local_us(spec)}, {DAY_US}L) AS double)"]


def _local_us(spec: Spec) -> str:
    return expressions.local_us("instant_us", spec.timezone)


def ticked(value: str, ticks: Ticks, low: float = -np.inf, high: float = np.inf) -> str:
    """The tick of a value, as `Ticks.of`, both as expressions in Spark's SQL; no value lies beyond these ends."""
    origin, step = float(ticks.origin), float(ticks.step)
    steps = f"({value} - ({origin!r}D)) / {step!r}D"
    if max(abs(low - origin), abs(high - origin)) < step * _WHOLE:
        # Whole numbers are compared faster than doubles, among which Spark looks out for NaN.
        within = f"greatest(0L, least({MOST_TICKS}L, floor({steps})))"
    else:
        within = f"floor(greatest(0D, least({float(MOST_TICKS)!r}D, {steps})))"
    for atom in ticks.atoms:
        within += f" + cast({value} >= ({atom!r}D) AS bigint) + cast({value} > ({atom!r}D) AS bigint)"
    # Spark's least and greatest leave nulls aside.
    return f"CASE WHEN {value} IS NOT NULL THEN {within} ELSE {ABSENT_TICK}L END"


# --- in the executors -------------------------------------------------------------------------------------------------


def _probed(
    batches: Iterator[pa.RecordBatch], *, low: Floats, high: Floats, memory: int, room: int, rows: int
) -> Iterator[pa.RecordBatch]:
    """Scales from a sample of the rows, a layout from all rows of some places; meetings may take so much room."""
    drawn = list(batches)
    if not drawn:  # hardly any row is as its file told
        yield _planned(None)
        return
    table = pa.Table.from_batches(drawn)
    latitude, longitude, local_us = (table[name].to_numpy() for name in ("latitude", "longitude", "local_us"))
    values = np.stack([table[f"value_{k}"].to_numpy().astype(np.float64) for k in range(len(low))])
    in_scales, in_places = (table[name].to_numpy() for name in ("in_scales", "in_places"))
    if not in_places.any():  # few places, and none of them drawn: what is drawn of one does not tell its days
        there = (latitude == latitude[0]) & (longitude == longitude[0])
        ends = int(local_us[there].min()), int(local_us[there].max())
        yield _planned(_Place(float(latitude[0]), float(longitude[0]), float(there.mean()), *ends))
        return
    fine = int(np.clip(memory // (_SHARE_OF_SCALES * _FINE_BIN_BYTES * (len(low) + WHEREABOUTS)), 32, MOST_FINE))
    still = _stand_still(latitude[in_places], longitude[in_places])
    # Seasons that are still to come bring other values, to stations.
    spare = still and int(np.ptp(local_us)) < _ALL_SEASONS_US
    own = Scales.fit(values[:, in_scales], fine, low, high, spare=spare)

    def known_of(place_bits: int | None) -> Floats:
        if place_bits is None:
            return values
        return np.concatenate((values, whereabouts(latitude, longitude, local_us, place_bits)))

    def probe(which: NDArray[np.bool_], place_bits: int | None = None) -> Probe:
        known, scales = known_of(place_bits), own
        if place_bits is not None:
            ends = np.append(low, _WHEREABOUTS_LOW), np.append(high, _WHEREABOUTS_HIGH)
            scales = Scales.fit(known[:, in_scales], fine, *ends)
        codes = scales.codes(known[:, which])
        return Probe(latitude[which], longitude[which], local_us[which], codes, scales, rows / int(which.sum()))

    met = _meetings_of(probe(in_scales & (np.cumsum(in_scales) % _MEETING_ROWS == 1)), room) if room else None
    left = memory - (met.nbytes if met else 0)
    stations = probe(in_places) if still else None
    cost = chosen(stations, lambda: probe(in_scales), lambda bits: probe(in_scales, bits), left)
    grain = met.grain if met else None
    if grain is not None and cost is not None and cost.layout.place_bits is not None:  # spans hold whole places
        grain = replace(grain, bits=min(grain.bits, cost.layout.place_bits))
    found = None
    if cost is not None:
        sample = FineSums.of_values(cost.scales, known_of(cost.layout.place_bits)[:, in_scales])
        found = PathPlan(cost.layout, cost.scales, cost.contexts, sample, grain)
    yield _planned(found)


def _planned(found: PathPlan | _Place | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"plan": [pickle.dumps(found)]})


def _meetings_of(probe: Probe, room: int) -> Planned | None:
    where = probe.latitude, probe.longitude, probe.local_us
    return planned(probe.scales, *where, probe.fine, probe.factor, room)


def _stand_still(latitude: Floats, longitude: Floats) -> bool:
    """Whether places report again and again."""
    places = np.unique(latitude + 1j * longitude).size
    return bool(latitude.size >= _ROWS_OF_A_STATION * places or places <= _FEW_PLACES)


def _read(numbers: Iterator[pa.RecordBatch], *, reader: Reader, how: PathPlan) -> Iterator[pa.RecordBatch]:
    """The rows that a task reads itself into tallies."""
    return _tallied(reader.rows(numbers), how=how)


def _tallied(batches: Iterator[pa.RecordBatch], *, how: PathPlan) -> Iterator[pa.RecordBatch]:
    """One partition's rows into tallies, a row for every region, and meetings, a row for some of their cells.

    Memory is bounded by what is gathered at once.
    """
    gathering = Gathering(how.layout, how.scales, how.met)
    for batch in batches:
        latitude, longitude, local_us = (batch[name].to_numpy() for name in ("latitude", "longitude", "local_us"))
        ticks = [batch[name].to_numpy() for name in batch.schema.names if name.startswith("ticks_")]
        start = 0
        while start < batch.num_rows:
            rest = [each[start:] for each in ticks]
            start += gathering.add(latitude[start:], longitude[start:], local_us[start:], rest)
            if gathering.full:
                yield from _passed_on(gathering)
                gathering = Gathering(how.layout, how.scales, how.met)
    yield from _passed_on(gathering)


def _passed_on(gathering: Gathering) -> Iterator[pa.RecordBatch]:
    """All that was gathered, by where it goes."""
    if not gathering.rows:
        return
    whole = gathering.tallies()
    # Places that share bins come to one task.
    bits = min(_REGION_BITS, _REGION_BITS if whole.region_bits is None else whole.region_bits)
    region = place_order(whole.latitude, whole.longitude) >> (ORDER_BITS - bits)
    for each, part in whole.parted(region):
        yield _sent(each, part)
    yield _sent(_SUMS, gathering.sums())
    met = gathering.meetings()
    if met is not None:
        for turn in range(_MEETING_TASKS):
            yield _sent(-1 - turn, met.take(met.cell % _MEETING_TASKS == turn))


def _sent(to: int, part: Tallies | Meetings | FineSums) -> pa.RecordBatch:
    """A part on its way to the task that gathers those of one number: regions from 0 on, meetings and `_SUMS` below."""
    plain = pickle.dumps(part, protocol=5)
    packed = len(plain).to_bytes(8, "little") + _CODEC.compress(plain, asbytes=True)
    return pa.RecordBatch.from_pydict({"region": pa.array([to]), "tallies": pa.array([packed], pa.binary())})


def _packed(batches: Iterator[pa.RecordBatch], *, how: PathPlan) -> Iterator[pa.RecordBatch]:
    """All tallies of some regions into blocks, neighbours together; all meetings of some cells into one."""
    parts = [_unpacked(part) for batch in batches for part in batch["tallies"].to_pylist()]
    tallied = [part for part in parts if isinstance(part, Tallies)]
    meetings = [part for part in parts if isinstance(part, Meetings)]
    found: list[Summary | Meetings] = [Meetings.joined(meetings)] if meetings else []
    if tallied:
        tallies = Tallies.joined(tallied)
        order = np.argsort(place_order(tallies.latitude, tallies.longitude), kind="stable")
        tallies = _renumbered(tallies, order)
        there = None if how.there is None else how.there.lumps(tallies)
        strata = from_tallies(how.scales, tallies, how.layout.bins, how.layout.stretching, there)
        places = tallies.latitude, tallies.longitude
        even = how.layout.evenly(*places)
        made = tuple(blocks.closed(strata.take(run), how.contexts, even) for run in cut(strata))
        found.append(Summary(how.layout, *places, how.scales, how.contexts, made))
    for part in found:
        yield pa.RecordBatch.from_pydict({"part": pa.array([pickle.dumps(part, protocol=5)], pa.binary())})


def _unpacked(data: bytes) -> Tallies | Meetings | FineSums:
    size = int.from_bytes(data[:8], "little")
    found = pickle.loads(_CODEC.decompress(data[8:], decompressed_size=size, asbytes=True))
    assert isinstance(found, Tallies | Meetings | FineSums)
    return found


def _renumbered(tallies: Tallies, order: np.ndarray[Any, Any]) -> Tallies:
    """The tallies with places in another order, in which groups stay together, and strata in that of their places."""
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    first = np.full(tallies.period.size, order.size)
    np.minimum.at(first, tallies.day_stratum, rank[tallies.day_place])
    strata = np.lexsort((tallies.period, first))
    new = np.empty(strata.size, np.int64)
    new[strata] = np.arange(strata.size)
    day_stratum, kept_stratum = new[tallies.day_stratum], new[tallies.kept_stratum]
    day_place, kept_place = rank[tallies.day_place], rank[tallies.kept_place]
    days = np.lexsort((tallies.day, day_place, day_stratum))
    rows = np.lexsort((kept_place, kept_stratum))  # stable: rows of a place stay in their order
    return replace(
        tallies,
        latitude=tallies.latitude[order],
        longitude=tallies.longitude[order],
        group=(rank[tallies.group] if tallies.region_bits is None else tallies.group)[strata],
        period=tallies.period[strata],
        mass=tallies.mass[:, strata],
        day_stratum=day_stratum[days],
        day_place=day_place[days],
        day=tallies.day[days],
        day_rows=tallies.day_rows[days],
        kept_stratum=kept_stratum[rows],
        kept_place=kept_place[rows],
        kept_us=tallies.kept_us[rows],
        kept_codes=tallies.kept_codes[:, rows],
        stretched=tuple(each.moved(new, rank) for each in tallies.stretched),
    )
