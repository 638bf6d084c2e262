"""How far off are forecasts from a sketch, and do their intervals hold?

    python benches/forecast.py [--only beijing] [--earlier] [--months 12]

Sketches of two real data sets at 1/10 of their bytes, built without the last 30 days, give a series of daily means for
each cell and feature: 8 cells of 4 characters in Beijing, 8 of 2 characters in the United States, where a station has
one row a day and the sketch less than a byte for it. Days are levelled to the means of their months, which a sketch
knows better. The forecast of 30 days is compared with daily means of the raw rows: at the first day, over the first 7
and over all 30; once for the last 30 days, which no choice was made on, and for twelve earlier months (the series ends
a month earlier each time), on which they were made. The same is done with daily means of the rows, to tell what the
method does and what the sketch does. Cells are forecast together, as a question grouped by cell does it, each looking
at the others for the next days; `alone` are forecasts that look at their own cell only.

How the bar is read: errors are absolute, as the contest's are and as seasonal naive is compared with (MASE: Hyndman and
Koehler 2006), in deviations of the rows, of the forecast, a median; seasonal naive is the value a week ago, and that of
52 weeks ago, from the same series. All days that are forecast 1, 7 and 30 days ahead count, once for each: the
mean over features is to be no larger than that of either, and that of each feature no larger than a week ago; 85 to 95%
of these days are to lie in their interval at 90%; all of it in each data set, on the last 30 days. Beside it: both data
sets together, each of 1, 7 and 30 days by itself, squared errors, those of the mean of what may come (`mean`), of
yesterday, all thirteen ends, the score of intervals (Winkler 1972: their width, and 20 times by how much they miss),
and between which shares a single end was held ("by end").

The last 30 days are one draw: day 1 is one day's weather over one city or one country, and on a dry day that follows a
dry week repeating errs by nothing, where a mean is a little above. So the bench also judges each earlier end by itself,
as the last one is, and says how many would meet the bar. And it rolls through these 30 days, as time series are
cross-validated (Hyndman and Athanasopoulos 2021, 5.10): the sketch is given each day as a batch once it has passed (and
is built anew where its memory no longer holds all days), and a forecast is made from every day, so that there are 30 of
one day ahead, 24 of seven and one of 30. No row after its origin is known to any of them.

What was tried last, for rain, skewed features, the width of intervals and how it follows what came of late, is in
docs/decisions/0026 and docs/trials.md.
Before, with sketches that had no stretches, 0.15 of the claimed error and errors in deviations of the sketch:

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
which is the one gain: weather travels, but a question about one cell would have to read all (so it is done where cells
are asked for together: docs/trials.md, 0026). Of sketches (Beijing; kept
0.535, 0.878, 0.799): shares of the two views by day ahead 0.535, 0.878, 0.799; with a week ago as a third view 0.535,
0.875, 0.798. Intervals of sketches, 13 ends, from weighed errors of the same day ahead (held on days 1, 2-7 and later;
kept 95.1, 91.2, 92.8% and 90.1, 88.3, 89.2%): by age, half as much a year ago 94.9, 91.3, 92.8% and 89.9, 87.9, 89.2%;
half as much four months ago 95.1, 91.3, 92.4% and 88.7, 87.9, 89.1%; by season 95.0, 91.3, 93.0% and 89.2, 88.2, 89.2%;
not in units of spread 92.2, 88.9, 90.7% and 90.4, 88.3, 88.0%, with intervals worse by 5 to 21% (Winkler 1972).

Writes benches/results/forecast.json; `--only` keeps the figures of the other data set. Says so, and ends, where
../shared/data is absent.
"""

from __future__ import annotations

import argparse
import json
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
from _shared import DATA, ROOT, bar, print_table, write_results
from accuracy import CASES, Case, spec_of
from synopsis.core.errors import BudgetTooSmall
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.query.curves import CLAIMED
from synopsis.query.forecasts import forecast, levelled
from synopsis.query.series import Beside
from synopsis.query.values import LEVELS

RESULTS = ROOT / "benches" / "results" / "forecast.json"
DAY, DAY_US = Bucket("d"), 86_400_000_000
SHARE, AHEAD, REACHES = 10, 30, (1, 7, 30)
LENGTHS = {"beijing": 4, "us_weather": 2}  #: of the geohashes of cells
RIVALS = {"week ago": 7, "yesterday": 1, "52 weeks ago": 364}
TRUE_WEEK = "week ago, of rows"  #: what no sketch knows
LAST, EARLIER, ALL = "last 30 days", "earlier months", "all ends"
ROLLING = "rolling through the last 30 days"
_AS_LARGE = 1 + 1e-9  #: a dry week after a dry week: errors that are equal but for rounding
BY_THEMSELVES = "earlier ends that meet it by themselves"
MEAN, MEDIAN, ALONE = "mean", "median", "alone"
POOLED = "1, 7 and 30"  #: days ahead, together


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


@dataclass(frozen=True)
class Outcome:
    """One forecast beside what came, in deviations of the rows before its end."""

    feature: str
    end: int  #: days of the series before it
    errors: dict[str, np.ndarray]  #: by method, of each day ahead
    held: dict[float, np.ndarray]  #: whether intervals of that level did, NaN where nothing came
    width: np.ndarray
    held_alone: np.ndarray  #: at 90%, of the forecast that looks at no other cell
    score: np.ndarray  #: of the interval at 90%: its width, and 20 times by how much it missed (Winkler 1972)
    milliseconds: float


def beside_of(series: list[Series], until: int) -> Beside:
    """Series of a feature in all cells, for each other."""
    starts = (series[0].first + np.arange(until)) * DAY_US
    return Beside.of([(starts, each.values[:until], each.counts[:until]) for each in series], DAY)


def outcome(series: Series, true: Series, beside: Beside) -> Outcome | None:
    """Forecast from the end of a series and compare with what came."""
    size = series.values.size
    came = np.append(true.values, np.full(AHEAD, np.nan))[size : size + AHEAD]
    if np.isfinite(series.values).sum() < 2 * AHEAD or not np.isfinite(came).any():
        return None
    starts = (series.first + np.arange(size)) * DAY_US
    began = time.process_time()
    found = forecast(starts, series.values, series.counts, AHEAD, DAY, errors=series.errors, beside=beside)
    intervals = {level: found.interval(level) for level in LEVELS}
    milliseconds = (time.process_time() - began) * 1e3
    deviation = float(np.nanstd(true.values[:size])) or 1.0
    alone = forecast(starts, series.values, series.counts, AHEAD, DAY, errors=series.errors)
    said = {MEAN: found.means, MEDIAN: found.values, ALONE: alone.values}
    said |= {name: repeated(series.values, period) for name, period in RIVALS.items()}
    said[TRUE_WEEK] = repeated(true.values[:size], 7)
    slack = 1e-6 * deviation

    def holds(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return np.where(np.isfinite(came), (low - slack <= came) & (came <= high + slack), np.nan)

    held = {level: holds(low, high) for level, (low, high) in intervals.items()}
    low, high = intervals[0.9]
    missed = np.maximum(low - came, 0) + np.maximum(came - high, 0)
    return Outcome(
        series.feature,
        size,
        {method: (values - came) / deviation for method, values in said.items()},
        held,
        (high - low) / deviation,
        holds(*alone.interval(0.9)),
        (high - low + 20 * missed) / deviation,
        milliseconds,
    )


KINDS = {
    "squared": lambda off: float(np.sqrt(np.nanmean(off**2))),
    "absolute": lambda off: float(np.nanmean(np.abs(off))),
}


def figures_of(outcomes: list[Outcome], when: str, reach: str) -> dict[str, Any]:
    """What is said of some forecasts over their first days: of each kind of error the means over features."""
    reaches = REACHES if reach == POOLED else (int(reach),)
    ahead = [(each, days) for days in reaches for each in that_end(outcomes, when, days)]
    outcomes = [each for each, _ in ahead]
    features = sorted({each.feature for each in outcomes})

    def stacked(method: str, feature: str) -> np.ndarray:
        return np.concatenate([each.errors[method][:days] for each, days in ahead if each.feature == feature])

    def mean_of(name: str) -> float:
        return float(np.nanmean(np.concatenate([getattr(each, name)[:days] for each, days in ahead])))

    found: dict[str, Any] = {"forecasts": len(outcomes)}
    for kind, size in KINDS.items():
        errors = {
            method: {feature: size(stacked(method, feature)) for feature in features} for method in outcomes[0].errors
        }
        found[kind] = {method: float(np.mean(list(each.values()))) for method, each in errors.items()}
        for method in (MEAN, MEDIAN):
            ratios = {feature: errors[method][feature] / max(errors["week ago"][feature], 1e-9) for feature in features}
            worst = max(features, key=lambda feature: ratios[feature])
            found[kind] |= {f"{method} worst": worst, f"{method} worst_ratio": ratios[worst]}
            found[kind][f"{method} ratios"] = ratios
        found[kind]["by feature"] = errors
    for level in LEVELS:
        held = {end: [] for end in sorted({each.end for each in outcomes})}
        for each, days in ahead:
            held[each.end].append(each.held[level][:days])
        every = np.concatenate([values for each in held.values() for values in each])
        found[f"held_{level:.0%}"] = float(np.nanmean(every))
        found[f"held_{level:.0%}_of"] = int(np.isfinite(every).sum())
        found[f"held_{level:.0%}_by_end"] = [float(np.nanmean(np.concatenate(each))) for each in held.values()]
    return found | {f"{name}_90%": mean_of(name) for name in ("held_alone", "width", "score")}


def all_series(
    sketch: Any, case: Case, truth: dict[tuple[str, str], Series], size: int
) -> dict[str, dict[tuple[str, str], Series]]:
    """By input, the series of every cell and feature up to some day."""
    first, cells = next(iter(truth.values())).first, sorted({cell for cell, _ in truth})
    of_sketch = {
        (cell, series.feature): series for cell in cells for series in sketch_series(sketch, case, cell, first, size)
    }
    return {"sketch": of_sketch, "rows": {key: truth[key].until(size) for key in of_sketch}}


def outcomes_of(
    known: dict[tuple[str, str], Series], truth: dict[tuple[str, str], Series], until: int
) -> list[Outcome]:
    """Forecasts of all series from one end, as a question grouped by cell gives them."""
    found = []
    for feature in dict.fromkeys(feature for _, feature in known):
        own = {key: each.until(until) for key, each in known.items() if key[1] == feature}
        beside = beside_of(list(own.values()), until)
        found += [outcome(each, truth[key], beside) for key, each in own.items()]
    return [each for each in found if each is not None]


def measured(name: str, months: int, last: bool) -> dict[str, dict[str, list[Outcome]]]:
    """Outcomes by input and by when."""
    case = CASES[name]
    found: dict[str, dict[str, list[Outcome]]] = {source: {} for source in ("sketch", "rows")}
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
        if last:
            found["sketch"][ROLLING] = rolled(target, spec, case, frame, truth, size)
    ends = {EARLIER: [size - AHEAD * back for back in range(1, months + 1)]}
    if last:
        ends[LAST] = [size]
    off: dict[str, list[float]] = {}
    known = all_series(sketch, case, truth, size)
    for (cell, feature), series in known["sketch"].items():
        true = truth[cell, feature].values[:size]
        deviation = float(np.nanstd(true)) or 1.0
        off.setdefault(feature, []).append(float(np.nanmean(((series.values - true) / deviation) ** 2)))
    for source, series_of in known.items():
        for when, until in ends.items():
            found[source][when] = [each for at in until for each in outcomes_of(series_of, truth, at)]
    usual = {feature: float(np.sqrt(np.mean(each))) for feature, each in off.items()}
    print(
        f"{name}: days of sketches are off by", ", ".join(f"{feature} {error:.2f}" for feature, error in usual.items())
    )
    for by_when in found.values():
        if last:
            by_when[ALL] = by_when[EARLIER] + by_when[LAST]
    return found


def rolled(
    target: Path, spec: syn.Spec, case: Case, frame: pd.DataFrame, truth: dict[tuple[str, str], Series], size: int
) -> list[Outcome]:
    """Outcomes from every day of the last ones on; the sketch is given each day as a batch, once it has passed."""
    found: list[Outcome] = []
    first = next(iter(truth.values())).first
    for origin in range(size, size + AHEAD):
        if origin > size:
            begin, end = (pd.Timestamp((first + day) * DAY_US // 1_000_000, unit="s") for day in (origin - 1, origin))
            passed = frame[(frame["time"] >= begin) & (frame["time"] < end)].rename(columns={"time": case.time})
            try:
                syn.build(passed, spec, to=target, batch=str(begin.date()), progress=False)
            except BudgetTooSmall as full:  # counts of all days outgrew the memory: a new sketch has coarser ones
                target = target.with_name(f"from-{begin.date()}.syn")
                so_far = frame[frame["time"] < end].rename(columns={"time": case.time})
                print(f"{full}: built anew, {syn.build(so_far, spec, to=target, progress=False)}", flush=True)
        found += outcomes_of(all_series(syn.open(target), case, truth, origin)["sketch"], truth, origin)
        print(f"day {origin - size + 1} of {AHEAD} at {time.strftime('%H:%M:%S')}", flush=True)
    return found


def that_end(outcomes: list[Outcome], when: str, reach: int) -> list[Outcome]:
    """Of forecasts that roll, those whose days have all come."""
    if when != ROLLING:
        return outcomes
    first = min(each.end for each in outcomes)
    return [each for each in outcomes if each.end + reach <= first + AHEAD]


def judged(
    found: list[dict[str, Any]], together: bool = False, kind: str = "absolute", method: str = MEDIAN
) -> tuple[bool, str]:
    """Whether figures of sketches are as good as wanted, and in words; days are held of all `together` or of each."""
    better = all(each[kind][method] <= min(each[kind]["week ago"], each[kind]["52 weeks ago"]) for each in found)
    worst = max(each[kind][f"{method} worst_ratio"] for each in found)
    held = [each["held_90%"] for each in found]
    if together:
        held = [float(np.average(held, weights=[each["held_90%_of"] for each in found]))]
    met = better and worst <= _AS_LARGE and min(held) >= 0.85 and max(held) <= 0.95
    words = f"better than a week and 52 weeks ago on average: {'yes' if better else 'no'}"
    shares = " to ".join(f"{share:.1%}" for share in sorted({min(held), max(held)}))
    return met, f"{words}; worst feature {worst:.3f} of a week ago; {shares} within 90%"


def single_ends(outcomes: list[Outcome]) -> tuple[int, int]:
    """Of how many ends, each judged by itself as the last is, the bar would be met; and how many there are."""
    ends = sorted({each.end for each in outcomes})
    of_ends = [[each for each in outcomes if each.end == end] for end in ends]
    met = [judged([figures_of(each, EARLIER, POOLED)])[0] for each in of_ends]
    return sum(met), len(met)


def shown_by_feature(figures: dict[str, Any]) -> None:
    """Print errors of every feature beside those of a week ago, of the last days alone and of all that roll."""
    rows = []
    for name, of_data in figures.items():
        for when in (LAST, ROLLING):
            for reach, found in of_data["sketch"][when].items():
                squared, absolute = (found[kind]["by feature"] for kind in KINDS)
                for feature in squared[MEAN]:
                    numbers = [squared[MEAN], squared["week ago"]]
                    numbers += [absolute[MEAN], absolute[MEDIAN], absolute["week ago"]]
                    told = [f"{each[feature]:.3f}" for each in numbers]
                    rows.append([f"{name}, {when}, {feature}", reach, *told])
    print_table(["from sketches", "days", "squared", "a week ago", "absolute", "of the median", "a week ago"], rows)


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
    kept: dict[str, Any] = json.loads(RESULTS.read_text()) if options.only and RESULTS.exists() else {}
    figures, alone = kept.get("figures", {}), kept.get(BY_THEMSELVES, {})
    rows, times = [], []
    for name in LENGTHS if options.only is None else (options.only,):
        figures.pop(name, None)
        for source, by_when in measured(name, options.months, not options.earlier).items():
            if source == "sketch":
                alone[name] = single_ends(by_when[EARLIER])
            for when, outcomes in by_when.items():
                times += [each.milliseconds for each in outcomes]
                for reach in (*map(str, REACHES), POOLED):
                    found = figures_of(outcomes, when, reach)
                    figures.setdefault(name, {}).setdefault(source, {}).setdefault(when, {})[reach] = found
                    for kind in KINDS:
                        errors, of_ends = found[kind], found["held_90%_by_end"]
                        rows.append(
                            [
                                f"{name} from {source}, {when}, {kind}",
                                reach,
                                *(round(errors[method], 3) for method in (MEAN, MEDIAN, ALONE, *RIVALS, TRUE_WEEK)),
                                *(
                                    f"{min(errors[f'{method} worst_ratio'], 99):.2f} {errors[f'{method} worst']}"
                                    for method in (MEAN, MEDIAN)
                                ),
                                f"{found['held_90%']:.1%}",
                                f"{min(of_ends):.0%}-{max(of_ends):.0%}",
                                f"{found['held_95%']:.1%}",
                                f"{found['held_alone_90%']:.1%}",
                                round(found["score_90%"], 2),
                            ]
                        )
    print_table(
        [
            *("", "days", MEAN, MEDIAN, ALONE, *RIVALS, TRUE_WEEK, "worst mean", "worst median"),
            *("in 90%", "by end", "in 95%", "alone in 90%", "score"),
        ],
        rows,
    )
    print(f"a forecast of {AHEAD} days with two intervals takes {np.median(times):.0f} ms of a processor (median)")
    if not options.earlier:
        shown_by_feature(figures)
    for name, (met, number) in alone.items():
        print(f"{name}: of {number} earlier ends, judged one by one as the last is, {met} would meet the bar")
    if options.earlier:
        return 0
    readings = {}
    for when in (ALL, ROLLING, LAST):
        of_sketches = [of_data["sketch"][when] for of_data in figures.values()]
        pooled = [each[POOLED] for each in of_sketches]
        apart = [each[str(reach)] for each in of_sketches for reach in REACHES]
        for what, (met, words) in {
            "all together": judged(pooled, together=True),
            "each data set": judged(pooled),
            "each data set and reach": judged(apart),
            "each data set and reach, squared errors of means": judged(apart, kind="squared", method=MEAN),
        }.items():
            readings[f"{when}, {what}"] = met
            print(f"{when}, {what}: {'met' if met else 'not met'} ({words})")
    bar_met, bar_words = judged([of_data["sketch"][LAST][POOLED] for of_data in figures.values()])
    told = {"met": bar_met, "met by reading": readings, BY_THEMSELVES: alone}
    write_results("forecast", {"figures": figures, "ms": float(np.median(times)), **told})
    print(bar(bar_met, bar_words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
