"""Density: bins of equal mass for every feature and region, from quantiles that Spark aggregates by itself.

One pass of `kll_sketch_agg_double` per feature, grouped by region, in the JVM; only the sketches come to the driver,
where `grid` turns each into a density and the density into bins. A heavy value shows as many items of one value in its
sketch, so atoms need no pass of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import NumericType

from synopsis.core.errors import NotNumeric, UnknownColumn
from synopsis.grid.density import Bandwidth
from synopsis.grid.quantiles import KLL_DOUBLE, merged, tagged, weighted_points
from synopsis.grid.quantizer import ATOM_SHARE, Quantizer

ITEMS_PER_BIN = 8  #: a sketch must keep this many items a bin, or a single item would look like an atom


def present(frame: DataFrame, feature: str) -> Column:
    """A feature as doubles; NaN and infinities become null, as they say nothing about density."""
    if feature not in frame.columns:
        raise UnknownColumn(feature, tuple(frame.columns))
    kind = frame.schema[feature].dataType
    if not isinstance(kind, NumericType):
        raise NotNumeric(feature, kind.simpleString())
    number = sf.col("`" + feature.replace("`", "``") + "`").cast("double")
    largest = sys.float_info.max
    return sf.when((number >= -largest) & (number <= largest), number)  # Spark sorts NaN above infinity


def fit_quantizers(
    frame: DataFrame,
    features: Sequence[str],
    *,
    bins: int | Mapping[str, int],
    region: Column | str | None = None,
    sample_rows: int | None = 2_000_000,
    rows: int | None = None,
    least: int | None = None,
    k: int = 1024,
    bandwidth: Bandwidth | Mapping[str, Bandwidth] = "silverman",
    atom_share: float = ATOM_SHARE,
    seed: int = 0,
) -> dict[Hashable | None, dict[str, Quantizer]]:
    """The bins of each feature in each region, and of the whole frame under the key None.

    Regions specialise. A region in which a feature has fewer than `least` present values (ten per bin unless given)
    gets the whole frame's bins for that feature. Rows whose region is null count for the whole frame only.
    A frame of more than `sample_rows` rows is sampled; `rows`, where known, saves counting them first, and with
    `sample_rows=None` nothing is counted or sampled. `k` sets the size of the sketches: 1024 keeps about 3,000 items
    (24 kB) each and misplaces a rank by 0.3%. `bins` and `bandwidth` may differ by feature.
    """
    wanted = {name: bins if isinstance(bins, int) else bins[name] for name in features}
    widths = {name: bandwidth[name] if isinstance(bandwidth, Mapping) else bandwidth for name in features}
    if any(k < ITEMS_PER_BIN * count for count in wanted.values()):
        raise ValueError(f"k={k} is too coarse for {max(wanted.values())} bins; give {ITEMS_PER_BIN} a bin or more")
    columns = [
        sf.kll_sketch_agg_double(present(frame, name), k).alias(f"sketch_{position}")
        for position, name in enumerate(features)
    ]
    if not columns:
        return {None: {}}
    if sample_rows is not None:
        rows = frame.count() if rows is None else rows
        if rows > sample_rows:
            frame = frame.sample(fraction=sample_rows / rows, seed=seed)
    where = sf.lit(None).cast("string") if region is None else sf.col(region) if isinstance(region, str) else region
    keys: list[Hashable | None] = []
    sketches: dict[str, list[bytes]] = {name: [] for name in features}
    for row in frame.groupBy(where.alias("region")).agg(*columns).collect():
        keys.append(row[0])
        for name, sketch in zip(features, row[1:], strict=True):
            sketches[name].append(tagged(KLL_DOUBLE, sketch))

    fitted: dict[Hashable | None, dict[str, Quantizer]] = {None: {}, **{key: {} for key in keys}}
    for name, parts in sketches.items():
        enough = 10 * wanted[name] if least is None else least
        fit = partial(Quantizer.fit, bins=wanted[name], bandwidth=widths[name], atom_share=atom_share)
        fitted[None][name] = fit(*weighted_points(merged(parts)))
        for key, part in zip(keys, parts, strict=True):
            if key is not None:
                values, weights = weighted_points(part)
                fitted[key][name] = fit(values, weights) if weights.sum() >= enough else fitted[None][name]
    return fitted
