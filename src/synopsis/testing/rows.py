"""Rows: observations in memory, to be written in any form and summarised in the plain way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Floats, Integers
from synopsis.sketch.strands import Strands

_HOUR_US = 3_600_000_000


@dataclass(frozen=True)
class Rows:
    """Observations of some stations."""

    station: Integers
    latitude: Floats
    longitude: Floats
    instants_us: Integers
    values: Floats  #: features x rows, NaN being absent
    features: tuple[str, ...]

    @classmethod
    def of_stations(
        cls, count: int, features: tuple[str, ...] = ("temperature", "pressure", "rain"), seed: int = 0
    ) -> Rows:
        """Rows of seven stations, the dateline and a pole among them, every 37 hours from 1969 on.

        Features are far from zero (the first two) or mostly zero, each missing now and then, sometimes all at once.
        """
        random = np.random.default_rng(seed)
        station = random.integers(0, 7, count)
        latitude = np.array([-15.8, -15.79, 0.0, 51.5, 90.0, -90.0, -23.4])[station]
        longitude = np.array([-47.9, -47.88, 0.0, -0.1, 180.0, -180.0, 179.99])[station]
        values = random.normal(size=(len(features), count)) * 3.0 + 290.0
        values[1::3] = values[1::3] * 50.0 + 100_000.0
        values[2::3] = np.where(random.random(values[2::3].shape) < 0.9, 0.0, random.exponential(3.0, count))
        values[random.random(values.shape) < 0.1] = np.nan
        values[:, random.random(count) < 0.02] = np.nan
        instants_us = -8_000 * _HOUR_US + np.arange(count) * 37 * _HOUR_US + random.integers(0, 10**6, count)
        return cls(station, latitude, longitude, instants_us, values, features)

    def __len__(self) -> int:
        return int(self.station.size)

    def take(self, which: NDArray[np.generic]) -> Rows:
        """Some of the rows, by mask or position."""
        return Rows(
            self.station[which],
            self.latitude[which],
            self.longitude[which],
            self.instants_us[which],
            self.values[:, which],
            self.features,
        )

    def strands(self, layout: Layout) -> Strands:
        """The strands of these rows, found in the plain way."""
        return Strands.of(layout, self.latitude, self.longitude, self.instants_us, self.values)

    def table(self) -> pa.Table:
        """Columns `station`, `lat`, `lon`, `ts` (microseconds, UTC) and one for each feature, null where absent."""
        values = {
            name: pa.array(column, mask=np.isnan(column))
            for name, column in zip(self.features, self.values, strict=True)
        }
        return pa.table(
            {
                "station": pa.array(self.station),
                "lat": self.latitude,
                "lon": self.longitude,
                "ts": pa.array(self.instants_us, pa.timestamp("us", "UTC")),
            }
            | values
        )
