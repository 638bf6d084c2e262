"""Synthetic rows in the forms that others take: what is read back is what was drawn."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import vowpalwabbit
from tests.test_sketches import MOVING, PATHS

from synopsis.core.errors import BadQuery, BadTarget, UnknownFeature

DRAWN = PATHS.synthetic(rows=5_000, where="lat > 0", seed=4)


def test_a_drawing_is_drawn_again_each_time_and_gives_arrow_to_all_that_take_it() -> None:
    stream = pa.Table.from_batches(list(DRAWN), DRAWN.schema)
    assert stream.num_rows == 5_000
    assert pa.table(DRAWN).equals(stream)
    assert DRAWN.reader().read_all().equals(stream)
    mixed = DRAWN.to_arrow()
    assert mixed.equals(PATHS.synthesize(rows=5_000, where="lat > 0", seed=4))
    assert not mixed.equals(stream)
    assert mixed.sort_by("temp").column("temp").equals(stream.sort_by("temp").column("temp"))
    assert list(DRAWN.to_pandas().columns) == DRAWN.schema.names
    assert repr(DRAWN) == "<synthetic: 5,000 rows, seed 4, where lat > 0>"


def test_a_drawing_of_few_features_has_no_others_to_learn_from() -> None:
    few = PATHS.synthetic(rows=500, seed=4, features=["half", "temp"])
    assert few.schema.names == ["lat", "lon", "time", "half", "temp"]
    assert repr(few) == "<synthetic: 500 rows, half, temp, seed 4>"
    assert next(few.minibatches("temp"))[0].shape[1] == 1
    with pytest.raises(UnknownFeature, match=r"no feature 'rain'; .* half, temp"):
        next(few.minibatches("temp", ["rain"]))


def test_files_hold_the_rows_that_were_drawn(tmp_path: Path) -> None:
    stream = DRAWN.reader().read_all()
    DRAWN.to_parquet(tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").equals(stream)
    DRAWN.to_ipc(tmp_path / "rows.arrow")
    assert pa.ipc.open_file(tmp_path / "rows.arrow").read_all().equals(stream)
    DRAWN.to_csv(f"file://{tmp_path}/rows.csv")
    read = pa.csv.read_csv(tmp_path / "rows.csv")
    assert read.column_names == stream.column_names
    assert np.allclose(read["temp"].to_numpy(), stream["temp"].to_numpy(), equal_nan=True)
    assert read["half"].null_count == stream["half"].null_count


def test_a_folder_of_files_has_at_most_so_many_rows_in_each(tmp_path: Path) -> None:
    DRAWN.to_parquet(tmp_path / "rows", rows_per_file=2_000)
    files = sorted((tmp_path / "rows").iterdir())
    sizes = [pq.ParquetFile(file).metadata.num_rows for file in files]
    assert sum(sizes) == 5_000
    assert max(sizes) == 2_000
    with pytest.raises(pa.ArrowInvalid, match="not empty"):
        DRAWN.to_parquet(tmp_path / "rows", rows_per_file=2_000)
    with pytest.raises(BadTarget, match="give 1 or more"):
        DRAWN.to_parquet(tmp_path / "others", rows_per_file=0)


def test_vowpal_wabbit_reads_its_text_and_absent_features_are_left_out(tmp_path: Path) -> None:
    DRAWN.to_vw(tmp_path / "rows.vw", label="temp")
    rows = DRAWN.reader().read_all().filter(pa.compute.is_valid(DRAWN.reader().read_all()["temp"]))
    lines = (tmp_path / "rows.vw").read_text().splitlines()
    assert len(lines) == rows.num_rows
    assert sum("half:" in line for line in lines) == rows.num_rows - rows["half"].null_count
    workspace = vowpalwabbit.Workspace(quiet=True)
    for line, row in zip(lines[:300], rows.to_pylist(), strict=False):
        example = workspace.example(line)
        assert example.get_simplelabel_label() == pytest.approx(row["temp"], rel=1e-6)
        weights = [example.feature_weight(" ", at) for at in range(example.num_features_in(" "))]
        told = [row[name] for name in ("rain", "half") if row[name]]  # a feature that is 0 says nothing
        assert weights == pytest.approx(told, rel=1e-5)
        workspace.finish_example(example)
    workspace.finish()


def test_minibatches_are_mixed_rows_that_miss_nothing() -> None:
    pairs = list(DRAWN.minibatches("temp", ["rain", "half"], batch=128))
    rows = DRAWN.to_pandas()[["rain", "half", "temp"]].dropna().to_numpy(np.float32)
    assert {len(targets) for _, targets in pairs[:-1]} == {128}
    together = np.concatenate([np.column_stack(pair) for pair in pairs])
    assert together.dtype == np.float32
    assert not np.array_equal(together, rows)
    assert np.array_equal(np.sort(together, axis=0), np.sort(rows, axis=0))
    again = np.concatenate([targets for _, targets in DRAWN.minibatches("temp", ["rain", "half"], batch=64)])
    assert np.array_equal(again, together[:, -1])


def test_moving_objects_are_drawn_as_files_too(tmp_path: Path) -> None:
    MOVING.synthetic(rows=300).to_parquet(tmp_path / "tracks.parquet")
    assert pq.read_metadata(tmp_path / "tracks.parquet").num_rows == 300


@pytest.mark.parametrize(
    ("ask", "error", "why"),
    [
        (lambda: PATHS.synthetic(), BadQuery, "rows=n or share"),
        (lambda: PATHS.synthetic(rows=-1), BadQuery, "not negative"),
        (lambda: PATHS.synthetic(share=float("nan")), BadQuery, "not negative"),
        (lambda: PATHS.synthetic(rows=3, where="lat > 80").to_arrow(), BadQuery, "nothing to draw from"),
        (lambda: DRAWN.to_vw("never.vw", label="tmp"), UnknownFeature, "did you mean 'temp'"),
        (lambda: next(DRAWN.minibatches("temp", ["lat"])), UnknownFeature, "no feature 'lat'"),
        (lambda: next(DRAWN.minibatches("temp", ["temp", "rain"])), BadQuery, "is what is learnt"),
        (lambda: next(DRAWN.minibatches("temp", [])), BadQuery, "no feature to learn"),
        (lambda: next(DRAWN.minibatches("temp", batch=0)), BadQuery, "1 or more"),
    ],
)
def test_what_cannot_be_given_is_refused_with_a_reason(ask: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        ask()
    assert not Path("never.vw").exists()


@pytest.mark.parametrize(
    ("package", "ask"),
    [
        ("torch", lambda: DRAWN.to_torch("temp")),
        ("tensorflow", lambda: DRAWN.to_tensorflow("temp")),
    ],
)
def test_what_is_not_installed_is_named_with_the_remedy(
    package: str, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=f"pip install {package}"):
        ask()


def test_importing_it_loads_no_engine() -> None:
    assert isinstance(importlib.import_module("synopsis.synthetic"), ModuleType)
    assert "torch" not in sys.modules
    assert "tensorflow" not in sys.modules
