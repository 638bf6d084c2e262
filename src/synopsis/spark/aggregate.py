"""The heavy part: rows to sums in generated JVM code, sums to strands inside the executors, strands to files.

Rows never reach Python; sums do, as Arrow batches, and the driver sees one line for each file written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from synopsis.sketch.layout import Layout
from synopsis.sketch.moments import Moments
from synopsis.sketch.strands import Strands
from synopsis.sketch.sums import Sums, lost_digits, products
from synopsis.spark import expressions, jobs, observations
from synopsis.spark.observations import REASONS, Observations
from synopsis.store.codec import to_table
from synopsis.store.files import Written, write_file

#: Size of the sketches that count strands: wrong by 1.6% in the mean.
_COUNT_BITS = 12

#: Sums that move to Python at once, at most so many and of about so many bytes.
_MOST_GROUPS, _BATCH_BYTES = 10_000, 1 << 26

_RESULT = "summary string, lost_cell array<bigint>, lost_bucket array<bigint>, lost_pivot array<double>"


@dataclass(frozen=True)
class Outcome:
    """What the executors report: files written, and counts that travel with them."""

    files: tuple[Written, ...] = ()
    rows: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    first_us: int | None = None
    last_us: int | None = None

    def __add__(self, other: Outcome) -> Outcome:
        firsts = [each for each in (self.first_us, other.first_us) if each is not None]
        lasts = [each for each in (self.last_us, other.last_us) if each is not None]
        return Outcome(
            self.files + other.files,
            self.rows + other.rows,
            _added(self.rejected, other.rejected),
            _added(self.missing, other.missing),
            min(firsts, default=None),
            max(lasts, default=None),
        )


def _added(one: dict[str, int], two: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + two.get(name, 0) for name in one | two}


def pivots(observed: Observations, rows: int = 2_000) -> list[float]:
    """A value near the middle of each feature, from the first rows: any will do, a near one keeps more digits.

    Rounded to a few bits: most columns hold float32 or short decimals, and then the shifted values have few bits too,
    and the sums of their squares are almost always exact.
    """
    head = observed.accepted.selectExpr(*(f"value_{k}" for k in range(len(observed.features))))
    means = [pa.compute.mean(column).as_py() or 0.0 for column in head.limit(rows).toArrow().columns]
    return [float(pivot) for pivot in _short(np.array(means), bits=8)]


def _short(numbers: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    """Numbers rounded to a few significant bits."""
    fraction, exponent = np.frexp(numbers)
    return np.asarray(np.ldexp(np.round(np.ldexp(fraction, bits)), exponent - bits))


def _near_means(moments: Moments) -> NDArray[np.float64]:
    """Means rounded to a 64th of the reach of the values: short too, and near however far the values lie from zero."""
    reach = np.where(moments.count > 0, moments.high - moments.low, 0.0)
    step = np.exp2(np.floor(np.log2(np.where(reach > 0, reach, 1.0))) - 6)
    return np.where(reach > 0, np.round(moments.mean / step) * step, moments.mean)


def write_strands(observed: Observations, layout: Layout, place: str, attempt: str) -> Outcome:
    """Sum all rows into strands and write them as files; strands far from the pivot are summed once more.

    One pass over the rows, and one over those of the strands that lost digits, where there are any.
    """
    middle = pivots(observed)
    first = _groups(observed, layout, [f"{pivot!r}D" for pivot in middle])
    outcome, lost = _written(first, layout, place, attempt, pivots=middle)
    if lost is None:
        return outcome
    again = _again(observed, layout, lost)
    corrected, still_lost = _written(again, layout, place, attempt, pivots=None)
    assert still_lost is None
    # The second pass saw rows again that the first one had counted: only its files are new.
    return outcome + Outcome(corrected.files)


def strand_counts(observed: Observations, layouts: Sequence[Layout]) -> dict[Layout, int]:
    """About how many strands each layout would have. One pass for the distinct strands of the finest one."""
    finest = max(layouts, key=lambda layout: layout.bits)
    return counted(expressions.with_cell(observed.accepted, finest.bits), layouts, finest.bits)


def counted(rows: DataFrame, layouts: Sequence[Layout], bits: int) -> dict[Layout, int]:
    """About how many strands each layout would have, of rows that have a `cell` of so many bits and an `instant_us`."""
    spans = {layout.bucket: layout for layout in layouts}.values()
    keys = rows.selectExpr(
        "cell", *(f"{expressions.bucket('instant_us', each.span, each.timezone)} AS `{each.bucket}`" for each in spans)
    ).distinct()
    # Sketches of hashes, each a column of bytes: approx_count_distinct keeps hundreds of columns, and plans for ever.
    hashes = keys.select(
        *(
            sf.xxhash64(sf.shiftright("cell", bits - layout.bits), sf.col(layout.bucket)).alias(f"strand_{at}")
            for at, layout in enumerate(layouts)
        )
    )
    counts = hashes.agg(
        *(sf.hll_sketch_estimate(sf.hll_sketch_agg(name, _COUNT_BITS)) for name in hashes.columns)
    ).first()
    return {layout: int(count) for layout, count in zip(layouts, counts or (), strict=True)}


def write_rejects(observed: Observations, batch: str, place: str, attempt: str) -> tuple[Written, ...]:
    """Write the rows that were set aside, with their reasons, as files. One more pass over the rows."""
    rows = observed.rejected().coalesce(1)
    written = rows.mapInArrow(partial(_write_rejects, batch=batch, place=place, attempt=attempt), "summary string")
    with jobs.settings(rows.sparkSession, jobs.BOUNDED_BATCHES):
        return tuple(Written(**json.loads(row.summary)) for row in written.collect())


def _groups(observed: Observations, layout: Layout, pivot: list[str], frame: DataFrame | None = None) -> DataFrame:
    """Native sums by strand and by which features are present; `pivot` says in Spark's SQL what to shift them by."""
    count = len(observed.features)
    rows = observed.frame if frame is None else frame
    # Code that need not look out for nulls is a tenth faster. So absent values stand at the pivot, where they add
    # nothing to any sum, and rows set aside at 0.
    filled = rows.selectExpr(
        f"{observations.present(observed)} AS present",
        f"{observations.bad(observed)} AS bad",
        "reason",
        *(f"coalesce({name}, 0D) AS {name}" for name in ("latitude", "longitude")),
        "coalesce(instant_us, 0L) AS instant_us",
        *(f"coalesce(value_{k}, {pivot[k]}) AS value_{k}" for k in range(count)),
        *(f"{pivot[k]} AS pivot_{k}" for k in range(count)),
    )
    keyed = expressions.with_cell(filled, layout.bits, "place").selectExpr(
        # Rows set aside are counted in cells of their own, which no place has.
        "CASE WHEN reason = 0 THEN place ELSE -cast(reason AS bigint) END AS cell",
        f"{expressions.bucket('instant_us', layout.span, layout.timezone)} AS bucket",
        *("present", "bad", "latitude", "longitude", "instant_us"),
        *(f"value_{k}" for k in range(count)),
        *(f"value_{k} - pivot_{k} AS shifted_{k}" for k in range(count)),
    )
    # As texts, each is one call to Java; with 63 features there are 2,016 products.
    measures = {
        "rows": "count(1)",
        "first_us": "min(instant_us)",
        "last_us": "max(instant_us)",
        "south": "min(latitude)",
        "west": "min(longitude)",
        "north": "max(latitude)",
        "east": "max(longitude)",
    }
    measures |= {f"low_{k}": f"min(value_{k})" for k in range(count)}
    measures |= {f"high_{k}": f"max(value_{k})" for k in range(count)}
    measures |= {f"total_{k}": f"sum(shifted_{k})" for k in range(count)}
    measures |= {f"product_{i}_{j}": f"sum(shifted_{i} * shifted_{j})" for i, j in products(count)}
    return keyed.groupBy("cell", "bucket", "present", "bad").agg(
        *(sf.expr(f"{measure} AS {name}") for name, measure in measures.items())
    )


def _again(observed: Observations, layout: Layout, lost: pa.Table) -> DataFrame:
    """The sums of some strands, shifted by their own means: a row a strand in `lost` says which and what."""
    spark = observed.frame.sparkSession
    count = len(observed.features)
    pivot = np.stack(lost["pivot"].to_numpy()).reshape(len(lost), count)
    columns = {"cell_again": lost["cell"], "bucket_again": lost["bucket"]}
    columns |= {f"pivot_{k}": pa.array(pivot[:, k]) for k in range(count)}
    wanted = sf.broadcast(spark.createDataFrame(pa.table(columns)))
    bucket = expressions.bucket("instant_us", layout.span, layout.timezone)
    accepted = observed.accepted.selectExpr("*", f"{bucket} AS bucket_again", "0 AS reason")
    keyed = expressions.with_cell(accepted, layout.bits, "cell_again")
    joined = keyed.join(wanted, ["cell_again", "bucket_again"])
    again = _groups(observed, layout, [f"pivot_{k}" for k in range(count)], joined)
    return again.join(wanted.withColumnsRenamed({"cell_again": "cell", "bucket_again": "bucket"}), ["cell", "bucket"])


def _written(
    groups: DataFrame, layout: Layout, place: str, attempt: str, *, pivots: list[float] | None
) -> tuple[Outcome, pa.Table | None]:
    """Let the executors make strands of these sums and write them; also the strands that lost digits, if any."""
    width = len(groups.columns)
    write = partial(_write_strands, layout=layout.to_dict(), pivots=pivots, place=place, attempt=attempt)
    with jobs.settings(groups.sparkSession, jobs.batches_of(min(_MOST_GROUPS, _BATCH_BYTES // (8 * width)))):
        # All sums of a cell meet in one task, so that a strand is written once; small sketches become one file.
        rows = groups.repartition("cell").mapInArrow(write, _RESULT).toArrow()
    outcome = reduce(add, (_outcome(json.loads(summary)) for summary in rows["summary"].to_pylist()), Outcome())
    cell, bucket, pivot = (rows[name].combine_chunks().flatten() for name in rows.column_names[1:])
    if not len(cell):
        return outcome, None
    lists = pa.FixedSizeListArray.from_arrays(pivot, len(layout.features)).to_numpy(zero_copy_only=False)
    return outcome, pa.table({"cell": cell, "bucket": bucket, "pivot": pa.array(list(lists))})


def _outcome(plain: dict[str, Any]) -> Outcome:
    return Outcome(tuple(Written(**file) for file in plain.pop("files")), **plain)


def _write_strands(
    batches: Iterator[pa.RecordBatch], *, layout: dict[str, Any], pivots: list[float] | None, place: str, attempt: str
) -> Iterator[pa.RecordBatch]:
    """In an executor: one partition's sums into one file. Memory is proportional to its groups."""
    shape = Layout.from_dict(layout)
    width = len(shape.features)
    outcome = Outcome()
    parts: list[pa.RecordBatch] = []
    for batch in batches:
        outcome = outcome + _counts(batch, shape)
        parts.append(batch.filter(pa.compute.greater_equal(batch["cell"], 0)))
    groups = pa.Table.from_batches(parts).combine_chunks() if parts else None
    sums = [_sums(groups, width, pivots)] if groups is not None and groups.num_rows else []
    strands = Strands.joined([part.strands(shape) for part in sums], shape)
    # Sums around a strand's own means cannot lose digits: what is left then is the values' own rounding.
    lost = lost_digits(strands, sums) if pivots is not None else np.zeros(len(strands), bool)
    kept = strands.take(~lost)
    files = (write_file(to_table(kept), place, attempt),) if len(kept) else ()
    summary = json.dumps(asdict(outcome) | {"files": [asdict(file) for file in files]})
    yield pa.RecordBatch.from_pydict(
        {
            "summary": pa.array([summary]),
            "lost_cell": pa.array([strands.cell[lost]], pa.list_(pa.int64())),
            "lost_bucket": pa.array([strands.bucket[lost]], pa.list_(pa.int64())),
            "lost_pivot": pa.array([_near_means(strands.moments)[:, lost].T.reshape(-1)], pa.list_(pa.float64())),
        }
    )


def _counts(batch: pa.RecordBatch, layout: Layout) -> Outcome:
    """Accepted and rejected rows, bad values, and between which instants some groups lie."""
    cell, rows, bad = (batch[name].to_numpy() for name in ("cell", "rows", "bad"))
    accepted = cell >= 0
    # Rows set aside have no instant.
    first, last = (batch[name].filter(pa.array(accepted)).to_numpy() for name in ("first_us", "last_us"))
    by_reason = {reason: int(rows[cell == -code].sum()) for code, reason in REASONS.items()}
    by_feature = {
        feature: int(rows[accepted & ((bad >> bit) & 1 == 1)].sum()) for bit, feature in enumerate(layout.features)
    }
    return Outcome(
        (),
        int(rows[accepted].sum()),
        {reason: count for reason, count in by_reason.items() if count},
        {feature: count for feature, count in by_feature.items() if count},
        int(first.min()) if first.size else None,
        int(last.max()) if last.size else None,
    )


def _sums(groups: pa.Table, width: int, pivots: list[float] | None) -> Sums:
    def column(name: str) -> NDArray[Any]:
        return np.asarray(groups[name].to_numpy())

    def columns(names: list[str]) -> NDArray[np.float64]:
        return np.stack([column(name).astype(np.float64) for name in names])

    keys: dict[str, Any] = {
        name: column(name).astype(np.int64) for name in ("cell", "bucket", "present", "rows", "first_us", "last_us")
    }
    box: dict[str, Any] = {name: column(name) for name in ("south", "west", "north", "east")}
    by_feature: dict[str, Any] = {
        name: columns([f"{name}_{k}" for k in range(width)]) for name in ("low", "high", "total")
    }
    product = columns([f"product_{i}_{j}" for i, j in products(width)])
    pivot = columns([f"pivot_{k}" for k in range(width)]) if pivots is None else np.array(pivots)[:, None]
    return Sums(**keys, **box, **by_feature, product=product, pivot=pivot)


def _write_rejects(
    batches: Iterator[pa.RecordBatch], *, batch: str, place: str, attempt: str
) -> Iterator[pa.RecordBatch]:
    """In an executor: rejected rows into files, one an Arrow batch."""
    for rows in batches:
        reasons = pa.array([REASONS.get(code) for code in range(len(REASONS) + 1)]).take(rows["reason"])
        ids, attempts = (pa.repeat(pa.scalar(name, pa.string()), rows.num_rows) for name in (batch, attempt))
        table = pa.table({"batch": ids, "attempt": attempts, "reason": reasons, "row": rows["row"]})
        summary = json.dumps(asdict(write_file(table, place, attempt)))
        yield pa.RecordBatch.from_pydict({"summary": pa.array([summary])})
