"""How far off are forecasts from a sketch, and do their intervals hold?

    python benches/forecast.py [--only beijing] [--earlier] [--months 12]

Sketches of two real data sets at 1/10 of their bytes, built without the last 30 days, give a series of daily means for
each cell and feature: 8 cells of 4 characters in Beijing, 8 of 2 characters in the United States, where a station has
one row a day and the sketch less than a byte for it. Days are shifted to agree with the means of their months, which a
sketch knows better. The forecast of 30 days is compared with daily means of the raw rows: at the first day, over the
first 7 and over all 30; once for the last 30 days, which no choice was made on, and for twelve earlier months (the
series ends a month earlier each time), on which they were made. The same is done with daily means of the rows, to tell
what the method does and what the sketch does.

A forecast is of the mean, so errors are root mean squares by feature, divided by the deviation of the series, averaged
over features; mean absolute errors are in the results beside them. Rivals, from the same series: the value a week ago
and that of 52 weeks ago, which are what seasonal naive means for days, and yesterday's. Worst is the feature with the
largest ratio of our error to that of a week ago. The last 30 days are one draw: day 1 is one day's weather over one
city or one country, and on a dry day that follows a dry week repeating errs by nothing. So the same is said of all
thirteen ends together, which is not the bar.

Tried on twelve earlier months of 80 series of rows, and not kept (error over 30 days with all / 120 days of history;
kept: 0.721 / 0.837; a week ago: 0.996): seasons alone 0.741 / 0.909; seasons and recent means that return to the trend
0.728 / 0.888; that stay near the latest level 0.728 / 0.821; both, averaged evenly 0.725 / 0.837; seasons and AR(3)
with shrinkage 0.733 / 0.883; exponential smoothing with damped trend and week, by grid search (500 / 120 days) 0.900 /
0.895, averaged with returning means 0.772 / 0.849; a quarter of a week ago mixed in 0.749 / 0.871; one or three waves
of the year instead of two: 0.732, 0.734; no wave of the year in 500 days: 0.775 instead of 0.725.
A forecast of the median, the mean and the median of its earlier errors, instead of the mean: on twelve earlier months
of sketches over 1, 7 and 30 days, root mean squares 0.561, 0.789, 0.843 instead of 0.549, 0.747, 0.821 in Beijing and
0.533, 0.642, 0.679 instead of 0.532, 0.627, 0.669 in the United States; absolute errors 0.421, 0.519, 0.509 instead of
0.417, 0.510, 0.518 and 0.364, 0.446, 0.476 instead of 0.393, 0.462, 0.496. Means add up to months; medians of rain
are 0.
Intervals at 90% on the same months, over 1, 7 and 30 days: with all of the error that a sketch claims, divided by
three, they held 93.7, 91.7, 92.3% and 96.9, 94.5, 93.9%; with none of it 92.7, 90.8, 91.3% and 86.7, 85.1, 85.5%; with
half of that, as kept, 92.9, 91.0, 91.4% and 92.7, 89.0, 89.0%.

Tried later for the nearest days, on 25 earlier ends of rows, 15 days apart (Beijing, United States:
errors over 1, 7 and 30 days; kept 0.531, 0.876, 0.798 and 0.426, 0.557, 0.586), each a ridge regression of earlier
errors, one for each day ahead: on the latest error of one day ahead 0.534, 0.879, 0.799 and 0.424, 0.556, 0.585; on the
anomalies of all features of the cell 0.530, 0.880, 0.802 and 0.419, 0.558, 0.587, shrunk four times as much 0.529,
0.877, 0.799 and 0.419, 0.557, 0.586; on those of the feature in all cells 0.527, 0.878, 0.799 and 0.393, 0.559, 0.588,
which is the one gain: weather travels, but a question about one cell would have to read all. Of sketches (Beijing; kept
0.535, 0.878, 0.799): shares of the two views by day ahead 0.535, 0.878, 0.799; with a week ago as a third view 0.535,
0.875, 0.798. Intervals of sketches, 13 ends, from weighed errors of the same day ahead (held on days 1, 2-7 and later;
kept 95.1, 91.2, 92.8% and 90.1, 88.3, 89.2%): by age, half as much a year ago 94.9, 91.3, 92.8% and 89.9, 87.9, 89.2%;
half as much four months ago 95.1, 91.3, 92.4% and 88.7, 87.9, 89.1%; by season 95.0, 91.3, 93.0% and 89.2, 88.2, 89.2%;
not in units of spread 92.2, 88.9, 90.7% and 90.4, 88.3, 88.0%, with intervals worse by 5 to 21% (Winkler 1972).

Bar, from the sketch, on the last 30 days: at 1, 7 and 30 days no larger error than the values a week and 52 weeks ago
on average, than that a week ago for each feature, and 85 to 95% of values within the interval at 90%.
Writes benches/results/forecast.json. Says so, and ends, where ../shared/data is absent.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synopsis as syn
from _shared import DATA, bar, print_table, write_results
from accuracy import CASES, Case, spec_of
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.query.curves import CLAIMED
from synopsis.query.forecasts import forecast, levelled

DAY, DAY_US = Bucket("d"), 86_400_000_000
SHARE, AHEAD, REACHES = 10, 30, (1, 7, 30)
LENGTHS = {"beijing": 4, "us_weather": 2}  #: of the geohashes of cells
RIVALS = {"week ago": 7, "yesterday": 1, "52 weeks ago": 364}
LAST, EARLIER, ALL = "last 30 days", "earlier months", "all ends"


@dataclass(frozen=True)
class Series:
    """Daily means of one feature in one cell; every day from the first to the last, NaN where there is none."""

    cell: str
    feature: str
    first: int  #: days since 1970
    values: np.ndarray
    counts: np.ndarray
    errors: np.ndarray | float

    def until(self, size: int) -> Series:
        errors = self.errors if isinstance(self.errors, float) else self.errors[:size]
        return Series(self.cell, self.feature, self.first, self.values[:size], self.counts[:size], errors)


def rows_of(case: Case) -> pd.DataFrame:
    frame = pd.read_parquet(case.path, columns=["lat", "lon", case.time, *case.features])
    return frame.rename(columns={case.time: "time"})


def true_series(frame: pd.DataFrame, case: Case, length: int) -> dict[tuple[str, str], Series]:
    """Daily means of the rows, by cell and feature."""
    cells = geohash.to_text(geohash.encode(frame["lat"].to_numpy(), frame["lon"].to_numpy(), 5 * length), length)
    days = frame["time"].to_numpy().astype("datetime64[D]").astype(np.int64)
    first, last = int(days.min()), int(days.max())
    found = {}
    grouped = frame[list(case.features)].astype(np.float64).groupby([cells, days])
    means, counts = grouped.mean(), grouped.count()
    for cell in np.unique(cells):
        every = range(first, last + 1)
        mean, count = means.loc[cell].reindex(every), counts.loc[cell].reindex(every).fillna(0)
        for name in case.features:
            found[str(cell), name] = Series(str(cell), name, first, mean[name].to_numpy(), count[name].to_numpy(), 0.0)
    return found


def sketch_series(sketch: Any, case: Case, cell: str, first: int, size: int) -> Iterator[Series]:
    """The same from a sketch: days shifted to agree with their months, and standard errors."""

    def asked(bucket: str) -> Any:
        columns = ", ".join(
            f'MEAN("{name}") AS m{at}, COUNT("{name}") AS n{at}' for at, name in enumerate(case.features)
        )
        where = f"location LIKE '{cell}%'"
        return sketch.query(
            f"SELECT BUCKET('{bucket}') AS d, {columns} WHERE {where} GROUP BY BUCKET('{bucket}')"
        ).to_arrow()

    def numbers(table: Any, name: str) -> np.ndarray:
        return table[name].to_numpy(zero_copy_only=False).astype(np.float64)

    days, months = asked("1d"), asked("1mo")
    starts, of_month = (table["d"].cast("int64").to_numpy() for table in (days, months))
    spans = np.searchsorted(of_month, starts, side="right") - 1
    places = starts // DAY_US - first
    for at, name in enumerate(case.features):
        counts = numbers(days, f"n{at}")
        means = levelled(numbers(days, f"m{at}"), counts, spans, numbers(months, f"m{at}"))
        grid = {key: np.full(size, empty) for key, empty in (("values", np.nan), ("counts", 0.0), ("errors", np.nan))}
        grid["values"][places], grid["counts"][places] = means, counts
        if f"m{at} p95 low" in days.schema.names:
            grid["errors"][places] = (
                CLAIMED * (numbers(days, f"m{at} p95 high") - numbers(days, f"m{at} p95 low")) / 3.92
            )
        yield Series(cell, name, first, **grid)


def repeated(values: np.ndarray, period: int) -> np.ndarray:
    """The latest known values a whole number of periods ago."""
    found = np.full(AHEAD, np.nan)
    for ahead in range(AHEAD):
        same = values[(values.size + ahead) % period :: period]
        known = same[np.isfinite(same)]
        found[ahead] = known[-1] if known.size else np.nan
    return found


@dataclass
class Tally:
    """Squared scaled errors by method and feature, intervals held, and milliseconds."""

    squares: dict[str, dict[str, list[np.ndarray]]]
    held: dict[float, list[np.ndarray]]
    widths: list[np.ndarray]
    milliseconds: list[float]

    @classmethod
    def empty(cls) -> Tally:
        return cls({}, {0.9: [], 0.95: []}, [], [])

    def __add__(self, other: Tally) -> Tally:
        squares = {
            method: {feature: [*each, *other.squares[method].get(feature, [])] for feature, each in by_feature.items()}
            for method, by_feature in self.squares.items()
        }
        held = {level: [*each, *other.held[level]] for level, each in self.held.items()}
        times = [*self.milliseconds, *other.milliseconds]
        return Tally(squares, held, [*self.widths, *other.widths], times)

    def add(self, series: Series, came: np.ndarray) -> None:
        """Forecast from the end of a series and compare with what came."""
        if np.isfinite(series.values).sum() < 2 * AHEAD or not np.isfinite(came).any():
            return
        starts = (series.first + np.arange(series.values.size)) * DAY_US
        began = time.perf_counter()
        found = forecast(starts, series.values, series.counts, AHEAD, DAY, errors=series.errors)
        intervals = {level: found.interval(level) for level in self.held}
        self.milliseconds.append((time.perf_counter() - began) * 1e3)
        deviation = float(np.nanstd(series.values)) or 1.0
        said = {"ours": found.values, **{name: repeated(series.values, period) for name, period in RIVALS.items()}}
        for method, values in said.items():
            self.squares.setdefault(method, {}).setdefault(series.feature, []).append(
                ((values - came) / deviation) ** 2
            )
        slack = 1e-6 * deviation
        for level, (low, high) in intervals.items():
            inside = (low - slack <= came) & (came <= high + slack)
            self.held[level].append(np.where(np.isfinite(came), inside, np.nan))
        self.widths.append((intervals[0.9][1] - intervals[0.9][0]) / deviation)

    def errors(self, method: str, reach: int) -> dict[str, float]:
        """By feature, over the first days."""
        return {
            feature: float(np.sqrt(np.nanmean(np.array(squares)[:, :reach])))
            for feature, squares in self.squares[method].items()
        }

    def absolute(self, method: str, reach: int) -> float:
        """The mean absolute error, averaged over features."""
        each = [np.nanmean(np.sqrt(np.array(squares)[:, :reach])) for squares in self.squares[method].values()]
        return float(np.mean(each))

    def figures(self, reach: int) -> dict[str, Any]:
        errors = {method: self.errors(method, reach) for method in self.squares}
        ratios = {
            feature: errors["ours"][feature] / max(errors["week ago"][feature], 1e-9) for feature in errors["ours"]
        }
        worst = max(ratios, key=lambda feature: ratios[feature])
        return {
            "forecasts": len(self.widths),
            **{method: float(np.nanmean(list(by_feature.values()))) for method, by_feature in errors.items()},
            "absolute": {method: self.absolute(method, reach) for method in self.squares},
            "ratios": ratios,
            "worst": worst,
            "worst_ratio": ratios[worst],
            **{f"held_{level:.0%}": float(np.nanmean(np.array(self.held[level])[:, :reach])) for level in self.held},
            "width_90%": float(np.nanmean(np.array(self.widths)[:, :reach])),
        }


def measured(name: str, months: int, last: bool) -> dict[str, dict[str, Tally]]:
    """Tallies by input and by when."""
    case, tallies = CASES[name], {source: {} for source in ("sketch", "rows")}
    frame = rows_of(case)
    truth = true_series(frame, case, LENGTHS[name])
    size = next(iter(truth.values())).values.size - AHEAD
    first = next(iter(truth.values())).first
    end = pd.Timestamp((first + size) * DAY_US // 1_000_000, unit="s")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "forecast.syn"
        spec = spec_of(case, case.path.stat().st_size // SHARE)
        before = frame[frame["time"] < end].rename(columns={"time": case.time})
        print(f"{name}: {syn.build(before, spec, to=target, progress=False)}", flush=True)
        sketch = syn.open(target)
    for cell in sorted({cell for cell, _ in truth}):
        for series in sketch_series(sketch, case, cell, first, size):
            true = truth[cell, series.feature]
            for source, known in (("sketch", series), ("rows", true.until(size))):
                ends = {EARLIER: [size - AHEAD * back for back in range(1, months + 1)]}
                if last:
                    ends[LAST] = [size]
                for when, until in ends.items():
                    tally = tallies[source].setdefault(when, Tally.empty())
                    for at in until:
                        tally.add(known.until(at), true.values[at : at + AHEAD])
    for by_when in tallies.values():
        if last:
            by_when[ALL] = by_when[EARLIER] + by_when[LAST]
    return tallies


def judged(figures: dict[str, Any], when: str) -> tuple[bool, str]:
    """Whether sketches do as well as the bar wants, at 1, 7 and 30 days, and in words."""
    found = [each for of_data in figures.values() for each in of_data["sketch"][when].values()]
    better = all(each["ours"] <= min(each["week ago"], each["52 weeks ago"]) for each in found)
    worst = max(each["worst_ratio"] for each in found)
    held = [each["held_90%"] for each in found]
    met = better and worst <= 1 and min(held) >= 0.85 and max(held) <= 0.95
    words = f"better than a week and 52 weeks ago on average: {'yes' if better else 'no'}"
    return met, f"{words}; worst feature {worst:.2f} of a week ago; {min(held):.1%} to {max(held):.1%} within 90%"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=tuple(LENGTHS))
    parser.add_argument(
        "--earlier", action="store_true", help="leave the last 30 days alone, to choose between methods"
    )
    parser.add_argument("--months", type=int, default=12, help="earlier ones")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"{DATA} is absent: nothing was measured")
        return 0
    figures: dict[str, Any] = {}
    rows, times = [], []
    for name in LENGTHS if options.only is None else (options.only,):
        for source, by_when in measured(name, options.months, not options.earlier).items():
            for when, tally in by_when.items():
                times += tally.milliseconds
                for reach in REACHES:
                    found = tally.figures(reach)
                    figures.setdefault(name, {}).setdefault(source, {}).setdefault(when, {})[str(reach)] = found
                    rows.append(
                        [
                            f"{name} from {source}, {when}",
                            reach,
                            found["forecasts"],
                            *(round(found[method], 3) for method in ("ours", *RIVALS)),
                            f"{min(found['worst_ratio'], 99):.2f} {found['worst']}",
                            f"{found['held_90%']:.1%}",
                            f"{found['held_95%']:.1%}",
                            round(found["width_90%"], 2),
                        ]
                    )
    headings = ["", "days", "forecasts", "ours", *RIVALS, "worst / week ago", "in 90%", "in 95%", "width 90%"]
    print_table(headings, rows)
    print(f"a forecast of {AHEAD} days with two intervals takes {np.median(times):.0f} ms (median)")
    if options.earlier:
        return 0
    (met, words), (met_by_all, of_all) = (judged(figures, when) for when in (LAST, ALL))
    told = {"met": met, "met over all ends": met_by_all}
    write_results("forecast", {"figures": figures, "ms": float(np.median(times)), **told})
    print(f"over all ends, which is not the bar: {'met' if met_by_all else 'not met'} ({of_all})")
    print(bar(met, words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
