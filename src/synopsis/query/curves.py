"""Curves: answers of many rows for one feature, the points of its density or the buckets of its forecast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from synopsis.core.errors import BadQuery, NotKept
from synopsis.grid import geohash
from synopsis.grid.buckets import Bucket
from synopsis.grid.zones import Zone
from synopsis.query.answer import Answer, BucketKeys, CellKeys, Column, Points
from synopsis.query.binding import bind
from synopsis.query.densities import curve
from synopsis.query.evaluate import answer_of
from synopsis.query.forecasts import NEAR, Forecast, forecast, levelled
from synopsis.query.paths import groups_of
from synopsis.query.relation import Relation, check_numbers, under
from synopsis.query.scoping import feature_of
from synopsis.query.series import Beside
from synopsis.query.tree import Aggregate, BucketKey, Curve, Item, Key, Question
from synopsis.query.values import LEVELS, Values, guesses
from synopsis.sketch.moments import Floats, Integers

#: Buckets that a forecast may have.
_MOST_AHEAD: Final = 1_000

#: Buckets that a summary knows well, to which shorter ones are levelled.
_LONGER: Final = "1mo"
_MONTH: Final = Bucket.parse(_LONGER)

#: How much of the standard error that a sketch claims of a mean widens intervals. Part of it is there without: errors
#: of earlier forecasts were measured against means of the same sketch (benches/forecast.py, earlier months).
CLAIMED: Final = 0.3
_ERRORS_AT_95: Final = 1.96

#: Places that the forecast of each cell looks at, where a question is of several.
_MOST_BESIDE: Final = 8


def curved(relation: Relation, asked: Curve) -> Answer:
    """The rows of a density or a forecast. Cost: see `densities` and `forecasts`, for each cell."""
    return _density(relation, asked) if asked.function == "density" else _forecast(relation, asked)


# --- densities --------------------------------------------------------------------------------------------------------


def _density(relation: Relation, asked: Curve) -> Answer:
    check_numbers(asked.scope)
    layout, feature = relation.layout, feature_of(asked.name, relation.layout)
    if relation.summary is None:
        raise NotKept(
            f"the density of {asked.name} needs paths, which this sketch does not keep: ask for MEAN, STD, MIN and MAX",
            *asked.where,
        )
    keys = () if asked.cell is None else (asked.cell,)
    items = (*(Item("cell", key) for key in keys), Item("count", Aggregate("count", (asked.name,))))
    plan = bind(Question(items, under(relation.where, asked.scope), keys), layout)
    found = []
    for numbers, parts in groups_of(relation.summary, layout, plan):
        for group, key in enumerate(map(tuple, numbers.T.tolist())):
            own = [part.pieces.only(int(at)) for part in parts for at in np.flatnonzero(part.group == group)]
            found.append((key, curve(own, feature, asked.bandwidth)))
    known = [(key, drawn) for key, drawn in found if drawn is not None]
    if not known:
        raise BadQuery(f"no row in scope has {asked.name}, so it has no density", *asked.where)
    sizes = [drawn[0].size for _, drawn in known]
    columns: dict[str, Column] = {}
    if asked.cell is not None:
        cells = np.repeat([key[0] for key, _ in known], sizes)
        columns[str(asked.cell).upper()] = CellKeys(geohash.to_text(cells, asked.cell.length))
    columns[asked.name.text] = Points(np.concatenate([drawn[0] for _, drawn in known]))
    columns[asked.column] = guesses(np.concatenate([drawn[1] for _, drawn in known]))
    return Answer(columns)


# --- forecasts --------------------------------------------------------------------------------------------------------


def _forecast(relation: Relation, asked: Curve) -> Answer:
    layout, bucket = relation.layout, Bucket.parse(asked.step)
    assert asked.horizon is not None
    ahead = max(round(Bucket.parse(asked.horizon).nominal_s / bucket.nominal_s), 1)
    if ahead > _MOST_AHEAD:
        raise BadQuery(f"{ahead:,} buckets ahead are more than {_MOST_AHEAD:,}; ask for longer buckets", *asked.where)
    days = _series(relation, asked, asked.step)
    # A summary tells months better than their days.
    months = _series(relation, asked, _LONGER) if relation.summary and bucket.nominal_s < _MONTH.nominal_s else None
    by_cell = {} if months is None else dict(_by_cell(months, asked))
    series = {
        cell: _levelled(_taken(days, rows), None if months is None else _taken(months, by_cell[cell]))
        for cell, rows in _by_cell(days, asked)
    }
    beside = _beside(series, bucket, layout.zone)
    cells, found, notes = [], [], []
    for cell, means in series.items():
        try:
            found.append(_ahead(means, ahead, bucket, relation, beside))
            cells.append(cell)
        except BadQuery as refusal:
            if asked.cell is None:
                raise BadQuery(refusal.why, *asked.where) from None
            notes.append(f"{cell}: {refusal.why}")
    if not found:
        raise BadQuery(notes[0] if notes else f"no row in scope has {asked.name}, so there is nothing to go on")
    starts = np.concatenate([each.starts_us for each in found])
    ends = bucket.ends_us(bucket.ordinals(starts, layout.zone), layout.zone)
    columns: dict[str, Column] = {}
    if asked.cell is not None:
        columns[str(asked.cell).upper()] = CellKeys(np.repeat(cells, [each.values.size for each in found]))
    columns[f"BUCKET('{asked.step}')"] = BucketKeys(starts, layout.timezone, ends)
    at_90, at_95 = (np.concatenate([each.interval(level) for each in found], axis=1) for level in LEVELS)
    columns[asked.column] = guesses(np.concatenate([each.values for each in found]), at_90, at_95)
    told = _told(asked, found)
    if beside is not None:
        told.append(f"the first {NEAR} buckets of each cell look at the latest of {len(beside.series)} places")
    return Answer(columns, notes=(*told, *notes))


def _series(relation: Relation, asked: Curve, step: str) -> Answer:
    """The means of buckets, of each cell."""
    layout = None if relation.summary is None else relation.summary.layout
    if layout is not None and not layout.moving and Bucket.parse(step).nominal_s < Bucket("d", layout.spell).nominal_s:
        by = "day" if layout.spell == 1 else f"spells of {layout.spell} days"
        why = f"this sketch counts rows by {by}; forecast buckets that are no shorter"
        raise NotKept(f"{why}, as in FORECAST({asked.name.text}, '1y', '{layout.spell}d')", *asked.where)
    keys: tuple[Key, ...] = (*(() if asked.cell is None else (asked.cell,)), BucketKey(step))
    mean, count = (Item(name, Aggregate(name, (asked.name,))) for name in ("mean", "count"))
    items = (*(Item(f"key {at}", key) for at, key in enumerate(keys)), mean, count)
    return answer_of(relation, Question(items, asked.scope, keys), strict=True)


def _by_cell(series: Answer, asked: Curve) -> Iterator[tuple[str, np.ndarray]]:
    """The rows of each cell's series."""
    if asked.cell is None:
        yield "", np.arange(len(series))
        return
    column = series.column("key 0")
    assert isinstance(column, CellKeys)
    texts, own, sizes = np.unique(column.texts, return_inverse=True, return_counts=True)
    rows = np.split(np.argsort(own.reshape(-1), kind="stable"), np.cumsum(sizes)[:-1])
    yield from zip(map(str, texts), rows, strict=True)


@dataclass(frozen=True)
class _Means:
    """A series of means: where buckets begin, means, how many values are behind each, and how far off it may be."""

    starts_us: Integers
    means: Floats
    counts: Floats
    errors: Floats


def _taken(series: Answer, rows: np.ndarray) -> _Means:
    starts, mean, count = (series.column(name) for name in (series.columns[-3], "mean", "count"))
    assert isinstance(starts, BucketKeys)
    assert isinstance(mean, Values)
    assert isinstance(count, Values)
    errors = np.zeros(rows.size)
    if mean.p95 is not None:
        errors = CLAIMED * np.nan_to_num(mean.p95[rows, 1] - mean.p95[rows, 0]) / 2 / _ERRORS_AT_95
    return _Means(starts.starts_us[rows], mean.estimate[rows], count.estimate[rows].astype(np.float64), errors)


def _levelled(days: _Means, months: _Means | None) -> _Means:
    """Days that agree with their months."""
    if months is None:
        return days
    span = np.searchsorted(months.starts_us, days.starts_us, side="right") - 1
    return replace(days, means=levelled(days.means, days.counts, np.maximum(span, 0), months.means))


def _beside(series: dict[str, _Means], bucket: Bucket, zone: Zone) -> Beside | None:
    """The cells of a question for each other: so many at most, or larger cells that hold them. None of one alone."""
    if len(series) < 2:
        return None
    longest = max(map(len, series))
    length = next(size for size in range(longest, -1, -1) if len({cell[:size] for cell in series}) <= _MOST_BESIDE)
    held: dict[str, list[_Means]] = {}
    for cell, means in series.items():
        held.setdefault(cell[:length], []).append(means)
    return Beside.of([_together(each) for each in held.values()], bucket, zone)


def _together(series: list[_Means]) -> tuple[Integers, Floats, Floats]:
    """Starts, means and counts of several cells as one."""
    every, means, counts = (
        np.concatenate([getattr(each, name) for each in series]) for name in ("starts_us", "means", "counts")
    )
    starts, at = np.unique(every, return_inverse=True)
    known = np.isfinite(means) & (counts > 0)
    numbers: Floats = np.bincount(at[known], counts[known], starts.size).astype(np.float64)
    sums = np.bincount(at[known], (means * counts)[known], starts.size)
    return starts, np.where(numbers > 0, sums / np.where(numbers > 0, numbers, 1.0), np.nan), numbers


def _ahead(days: _Means, ahead: int, bucket: Bucket, relation: Relation, beside: Beside | None) -> Forecast:
    return forecast(
        days.starts_us, days.means, days.counts, ahead, bucket, relation.layout.zone, days.errors, beside=beside
    )


def _told(asked: Curve, found: list[Forecast]) -> list[str]:
    """How good the forecasts are, and what they build on."""
    explained, skill = (np.nanmedian([getattr(each.fit, name) for each in found]) for name in ("explained", "skill"))
    many = " (medians of all cells)" if len(found) > 1 else ""
    told = f"{asked.column}: explains {explained:.0%} of the variance one bucket ahead, and errs {skill:.0%} less than "
    built = found[0].said if len(found) == 1 else ()
    return [f"{told}the value a season before{many}", *built]
