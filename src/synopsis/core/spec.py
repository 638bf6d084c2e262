"""The spec: what a person says about a stream, and about the sketch that they want of it."""

from __future__ import annotations

import operator
import zoneinfo
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from synopsis.core.errors import BadSpec, DuplicateFeature
from synopsis.core.sizes import parse_bytes

#: Presence of features travels as the bits of one signed 64-bit integer.
MOST_FEATURES = 63


@dataclass(frozen=True)
class Spec:
    """Which columns say where, when and what, and how large and how exact the sketch shall be.

    >>> Spec(lat="lat", lon="lon", time="ts", features=["temp_c", "rh"]).memory
    8000000
    """

    lat: str  #: column of latitudes, degrees
    lon: str  #: column of longitudes, degrees
    time: str  #: column of times: timestamps, dates, ISO texts, or epochs
    features: tuple[str, ...]  #: numeric columns to summarise; in long form, the names found in `name_column`
    entity: str | None = None  #: who observed: key of lookups and of erasure
    precision: int = 4  #: finest geohash length that the planner may use
    bucket: str = "1d"  #: finest span of time that the planner may use
    memory: int = 8_000_000  #: bytes that the sketch may take in memory; "8MB" is understood
    exact_at: tuple[int, str] | None = None  #: a grain at which all statistics must be exact, as (4, "1mo")
    timezone: str = "UTC"  #: calendar of the buckets, and the meaning of times that name no zone
    bands: None = None  #: folding of old time: not in this release
    keep_observations: bool = False  #: also keep the raw rows: not in this release
    name_column: str | None = None  #: long form: the column that names the feature
    value_column: str | None = None  #: long form: the column that holds its value
    time_unit: str | None = None  #: of numeric times: "s", "ms", "us" or "ns"; found out from the values when None

    def __init__(
        self,
        lat: str,
        lon: str,
        time: str,
        features: Sequence[str],
        entity: str | None = None,
        precision: int = 4,
        bucket: str = "1d",
        memory: int | float | str = 8_000_000,
        exact_at: Sequence[Any] | None = None,
        timezone: str = "UTC",
        bands: None = None,
        keep_observations: bool = False,
        name_column: str | None = None,
        value_column: str | None = None,
        time_unit: str | None = None,
    ) -> None:
        if isinstance(features, str):
            raise BadSpec(f"features is the text {features!r}; give a list of names, such as [{features!r}]")
        names: object = features
        if not isinstance(names, Iterable):
            raise BadSpec(f"features is {features!r}; give a list of names of numeric columns")
        settled = {
            "lat": lat,
            "lon": lon,
            "time": time,
            "features": tuple(features),
            "entity": entity,
            "precision": operator.index(precision) if hasattr(precision, "__index__") else precision,  # NumPy's, too
            "bucket": bucket,
            "memory": parse_bytes(memory),
            "exact_at": _grain(exact_at),
            "timezone": timezone,
            "bands": bands,
            "keep_observations": keep_observations,
            "name_column": name_column,
            "value_column": value_column,
            "time_unit": time_unit,
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        for name in ("lat", "lon", "time", "entity", "name_column", "value_column"):
            column: object = getattr(self, name)
            if column is None and name not in ("lat", "lon", "time"):
                continue
            if not isinstance(column, str) or not column:
                raise BadSpec(f"{name} is {column!r}; give the name of a column")
        bucket: object = self.bucket
        if not isinstance(bucket, str):
            raise BadSpec(f"bucket is {bucket!r}; give a span of time, such as '1d'")
        if not self.features:
            raise BadSpec("features is empty; name at least one numeric column")
        if len(self.features) > MOST_FEATURES:
            raise BadSpec(f"{len(self.features)} features; a sketch takes at most {MOST_FEATURES}, so build two")
        for position, feature in enumerate(self.features):
            if not feature or not isinstance(feature, str):
                raise BadSpec(f"feature {feature!r} is not the name of a column")
            if feature in self.features[:position]:
                raise DuplicateFeature(feature)
        precision: object = self.precision
        if isinstance(precision, bool) or not isinstance(precision, int) or precision not in range(1, 13):
            raise BadSpec(f"precision is {self.precision!r}; give a geohash length from 1 to 12")
        try:
            zoneinfo.ZoneInfo(self.timezone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
            raise BadSpec(f"no time zone {self.timezone!r}; give a name such as 'UTC' or 'America/Sao_Paulo'") from None
        if (self.name_column is None) != (self.value_column is None):
            raise BadSpec("long form needs both name_column and value_column")
        if self.time_unit not in (None, "s", "ms", "us", "ns"):
            raise BadSpec(f"time_unit is {self.time_unit!r}; give 's', 'ms', 'us' or 'ns', or leave it out")
        if self.bands is not None:
            raise BadSpec("bands are not in this release; leave bands=None")
        if self.keep_observations:
            raise BadSpec("keeping raw rows is not in this release; leave keep_observations=False")

    def of_features(self, features: Sequence[str]) -> Spec:
        """The same with other features."""
        return Spec.from_dict({**self.to_dict(), "features": list(features)})

    @property
    def is_long(self) -> bool:
        """Whether a row holds one feature's name and value, rather than a column for each feature."""
        return self.name_column is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON.

        >>> spec = Spec(lat="y", lon="x", time="t", features=["a"], exact_at=(4, "1mo"))
        >>> Spec.from_dict(spec.to_dict()) == spec
        True
        """
        plain = asdict(self)
        plain["features"] = list(self.features)
        plain["exact_at"] = list(self.exact_at) if self.exact_at else None
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Spec:
        """The spec that `to_dict` gave; fields of a later release are refused."""
        unknown = set(plain) - {field.name for field in fields(cls)}
        if unknown:
            raise BadSpec(f"a spec has no field {sorted(unknown)[0]!r}")
        return cls(**plain)


def _grain(exact_at: Sequence[Any] | None) -> tuple[int, str] | None:
    if exact_at is None:
        return None
    given: object = exact_at
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2 or given[0] not in range(1, 13):
        raise BadSpec(f"exact_at is {exact_at!r}; give a geohash length and a span, such as (4, '1mo')")
    return int(given[0]), str(given[1])
