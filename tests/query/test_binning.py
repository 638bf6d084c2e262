"""BIN(x) and BIN(x, width): every row in one bin, every bin with an interval that holds its rows."""

from __future__ import annotations

import numpy as np
import pytest
from tests.query.test_paths import KEPT, PLAIN, holds

from synopsis.core.errors import BadQuery, NotKept
from synopsis.query.answer import Bin
from synopsis.query.evaluate import ask
from synopsis.sketch.layout import Layout
from synopsis.sketch.strands import Strands


def within(values, key, last=False):
    """Which values lie in a bin."""
    if key is None:
        return np.isnan(values)
    with np.errstate(invalid="ignore"):
        return (values >= key.low) & ((values <= key.high) if last else (values < key.high))


@pytest.mark.parametrize("feature", ["temp", "rain", "half"])
@pytest.mark.parametrize("width", ["", ", 2.5", ", 1000", ", 0.7"])
@pytest.mark.parametrize("data", [PLAIN, KEPT[0.0]], ids=["some paths", "no paths"])
def test_every_row_is_in_one_bin_whose_interval_holds_it(data, feature, width):
    answer = data.query(f"SELECT BIN({feature}{width}) AS b, COUNT(*) AS n, MEAN(temp) AS m GROUP BY b")
    values = data.values[["temp", "rain", "half"].index(feature)]
    keys = [row["b"] for row in answer]
    assert keys == sorted(keys, key=lambda key: (key is None, key or Bin(0.0, 0.0)))
    seen = np.zeros(values.size, int)
    bins = [key for key in keys if key is not None]
    for row in answer:
        rows = within(values, row["b"], last=not width and bool(bins) and row["b"] == bins[-1])
        seen += rows
        assert holds(row["n"], int(rows.sum())), row
        assert not rows.any() or holds(row["m"], float(data.values[0][rows].mean())), row
    assert (seen == 1).all()


def test_bins_of_equal_numbers_of_rows_have_about_equal_numbers_of_rows():
    counts = [row["n"].estimate for row in PLAIN.query("SELECT BIN(temp) AS b, COUNT(*) AS n GROUP BY b")]
    assert len(counts) == 10
    assert min(counts) > 0.6 * max(counts)


def test_two_features_make_a_histogram_in_two_dimensions():
    answer = PLAIN.query("SELECT BIN(temp, 10) AS t, BIN(half, 10) AS h, COUNT(*) AS n WHERE lat > 0 GROUP BY t, h")
    north = PLAIN.latitude > 0
    for row in answer:
        rows = within(PLAIN.values[0], row["t"]) & within(PLAIN.values[2], row["h"]) & north
        assert holds(row["n"], int(rows.sum())), row
    table = answer.to_arrow()
    assert table.column_names[:4] == ["t", "t high", "h", "h high"]
    assert table["h"].null_count == sum(row["h"] is None for row in answer)


def test_bins_go_with_cells_buckets_order_and_conditions():
    rows = PLAIN.query(
        "SELECT CELL(1) AS c, BIN(temp, 5) AS b, COUNT(*) AS n WHERE temp > 12 OR lat > 0 "
        "GROUP BY CELL(1), BIN(temp, 5) ORDER BY b DESC, c LIMIT 4"
    ).rows
    assert len(rows) == 4
    assert rows[0]["b"].low >= rows[-1]["b"].low


def test_strands_have_no_bins_and_too_many_are_refused():
    with pytest.raises(NotKept, match="BIN\\(a\\) needs paths"):
        ask(Strands.empty(Layout(("a",), 20, "1mo")), "SELECT COUNT(*) GROUP BY BIN(a)")
    with pytest.raises(BadQuery, match="give it a larger width"):
        PLAIN.query("SELECT COUNT(*) GROUP BY BIN(temp, 0.0001)")


def test_rows_without_the_feature_come_last_in_either_order():
    for direction in ("", " DESC"):
        rows = PLAIN.query(f"SELECT BIN(half, 10) AS b, COUNT(*) AS n GROUP BY b ORDER BY b{direction}").rows
        assert rows[-1]["b"] is None
        lows = [row["b"].low for row in rows[:-1]]
        assert lows == sorted(lows, reverse=bool(direction))
