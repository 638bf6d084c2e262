"""The ground that random questions are put to: rows at poles and dateline, moving ones, and flights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tests.query.questions import Ground

from synopsis.core.spec import Spec

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """Rows with `lat`, `lon`, `time` and features, null where absent."""

    name: str
    table: pa.Table
    timezone: str = "UTC"
    precision: int = 4

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(name for name in self.table.column_names if name not in ("lat", "lon", "time"))

    @property
    def raw_bytes(self) -> int:
        return len(self.table) * 8 * len(self.table.column_names)

    def spec(self, kind: str) -> Spec:
        """How to build it: as a `summary` of a tenth of the bytes, or as `strands` of cells and months."""
        exact_at = (4, "1mo") if kind == "strands" else None
        memory = 64_000_000 if exact_at else self.raw_bytes // 10
        columns = ("lat", "lon", "time", self.features)
        return Spec(*columns, precision=self.precision, memory=memory, exact_at=exact_at, timezone=self.timezone)

    def ground(self, kind: str, rows: int = 4000, finest: int = 4, most_groups: int = 40) -> Ground:
        """What there is to ask about it: some rows, the first and the last among them."""
        random = np.random.default_rng(len(self.table))
        chosen = random.choice(len(self.table), min(rows, len(self.table)), replace=False)
        some = self.table.take(pa.array(np.append(chosen, [0, len(self.table) - 1])))
        values = {name: some[name].drop_null().to_numpy().astype(np.float64) for name in self.features}
        return Ground(
            some["lat"].to_numpy(),
            some["lon"].to_numpy(),
            _instants_us(some).to_numpy(),
            values,
            self.timezone,
            paths=kind != "strands",
            finest=finest,
            most_groups=most_groups,
        )


def stations() -> Data:
    """Forty stations around both poles and the dateline, some right on them, hourly for sixty days.

    One feature lies on a grid, one is mostly zero, one far from zero and half absent, one heavy-tailed and constant at
    some stations. In São Paulo, whose clocks the buckets follow, 2018-11-04 begins at one o'clock.
    """
    random = np.random.default_rng(11)
    latitude = np.concatenate([random.uniform(86, 90, 12), random.uniform(-90, -86, 12), random.uniform(-40, 40, 16)])
    longitude = np.concatenate([random.uniform(-180, 180, 24), random.uniform(176, 184, 16)])
    longitude = np.where(longitude > 180, longitude - 360, longitude)
    latitude[[0, 1, 12, 13]], longitude[[0, 1, 12, 13]] = [90, 90, -90, -90], [180, 12.5, -180, 0]
    longitude[[24, 25, 26]], latitude[[24, 25, 27]] = [180, -180, -180], [0, 0, 45]
    place, hour = (each.ravel() for each in np.meshgrid(np.arange(40), np.arange(60 * 24), indexing="ij"))
    there = random.random(place.size) < 0.95
    place, hour = place[there], hour[there]
    size = place.size
    temp = np.round(place * 0.7 - 10 + 4 * np.sin(hour / 24 * 2 * np.pi) + random.normal(0, 3, size), 1)
    rain = np.where(random.random(size) < 0.85, 0.0, np.round(random.lognormal(0, 1.5, size), 2))
    pressure = np.where(random.random(size) < 0.5, np.nan, 101_325 - 20 * temp + random.normal(0, 50, size))
    near = np.where(place % 5 == 0, 7.25, random.standard_t(1.5, size) * 10)
    near[random.random(size) < 0.02] = np.nan
    instants_us = _us("2018-10-01T03:00") + hour * 3_600_000_000
    values = {"temp": temp, "rain": rain, "p.sea": pressure, "near": near}
    return Data("stations", _table(latitude[place], longitude[place], instants_us, values), "America/Sao_Paulo")


def moving() -> Data:
    """Thirty objects on great circles over both poles and the dateline for ten days, each row at a place of its own."""
    random = np.random.default_rng(12)
    size = 40_000
    craft, turn = random.integers(0, 30, size), np.sort(random.uniform(0.0, 240.0, size))
    tilt, node = np.linspace(0.0, np.pi / 2, 30)[craft], (np.arange(30) * 2.4)[craft]
    along = turn / 7.0 + craft
    latitude = np.degrees(np.arcsin(np.clip(np.sin(along) * np.sin(tilt), -1.0, 1.0)))
    longitude = np.degrees(np.arctan2(np.sin(along) * np.cos(tilt), np.cos(along)) + node)
    longitude = (longitude + 180.0) % 360.0 - 180.0
    latitude[:20], longitude[20:40] = 90.0, np.repeat([180.0, -180.0], 10)
    altitude = np.where(craft == 7, np.nan, 9_000 + 3_000 * np.sin(turn + craft) + random.normal(0, 200, size))
    speed = np.where(craft == 7, 200.0, np.round(180.0 + altitude / 100.0 + random.normal(0.0, 15.0, size), 1))
    fuel = np.where(random.random(size) < 0.3, np.nan, np.round(random.exponential(5.0, size)))
    instants_us = (turn * 3_600_000_000).astype(np.int64) + _us("2024-03-25T12:00")
    table = _table(latitude, longitude, instants_us, {"altitude": altitude, "speed": speed, "fuel": fuel})
    return Data("moving", table)


def flights(months: int = 12) -> Data:
    """The flights of the demo that have a place, of the first months of the year (and, in UTC, of the next one)."""
    from synopsis.demo import FEATURES
    from synopsis.demo import flights as rows

    frame = rows()
    frame = frame[frame["lat"].notna() & (frame["time"].dt.month <= months)]
    return Data("flights", pa.Table.from_pandas(frame[["lat", "lon", "time", *FEATURES]], preserve_index=False))


def _table(latitude: Floats, longitude: Floats, instants_us: Any, values: Mapping[str, Floats]) -> pa.Table:
    features = {name: pa.array(column, from_pandas=True) for name, column in values.items()}
    time = pa.array(instants_us, pa.timestamp("us", "UTC"))
    return pa.table({"lat": latitude, "lon": longitude, "time": time} | features)


def _instants_us(table: pa.Table) -> pa.ChunkedArray:
    return table["time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def _us(text: str) -> int:
    return int(np.datetime64(text, "us").astype(np.int64))
