"""Synthetic: rows that were never observed, as a stream of Arrow batches, and in the forms that others take.

    drawn = db.synthetic(share=0.1, where="rh > 80", seed=3)       # features=["temp_c", "rh"]: these alone
    for batch in drawn: ...                                        # Arrow record batches, some blocks at a time
    drawn.to_arrow(), drawn.to_pandas()                            # all of them, in random order
    drawn.to_parquet("rows.parquet"), drawn.to_csv("rows.csv")     # a file, or a folder of them, or an address
    drawn.to_vw("rows.vw", label="temp_c")                         # Vowpal Wabbit's text
    drawn.to_torch("temp_c"), drawn.to_tensorflow("temp_c")        # datasets to learn from
    drawn.to_spark(spark)                                          # a frame, drawn in the executors

Nothing is drawn before it is asked for, and each time the same rows are: a second epoch sees what the first one saw.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
from numpy.typing import NDArray

from synopsis.core.errors import BadQuery, BadTarget, UnknownFeature
from synopsis.query.relation import Relation
from synopsis.query.synthesis import Names, asked_features, check_size, schema_of, synthesized

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows that are put into random order together before they are handed to who learns from them: a stream comes place by
#: place, and learning step by step wants them mixed.
_MIXED: Final = 262_144

#: What Vowpal Wabbit reads as something else than a name.
_NOT_IN_NAMES: Final = str.maketrans(dict.fromkeys(" :|\t\r\n", "_"))

Shorts = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Rows to be drawn from a sketch."""

    relation: Relation  #: with the condition
    names: Names
    rows: int | None
    share: float | None
    seed: int = 0
    place: str | None = None  #: where the sketch is stored, if it is
    where: str | None = None  #: the condition as it was asked for
    features: tuple[str, ...] | None = None  #: those that rows have; None: all

    def __post_init__(self) -> None:
        check_size(self.rows, self.share)
        asked_features(self.relation.layout, self.features)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the observations: place, time, and the features that are asked for."""
        return schema_of(self.relation.layout, self.names, self.features)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches of rows, drawn as they are taken. Memory: a block, and some 300,000 rows at most."""
        return synthesized(self.relation, self.names, self.rows, self.share, self.seed, self.features)

    def reader(self) -> pa.RecordBatchReader:
        """The stream, for what takes Arrow streams."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The stream, for all that takes Arrow."""
        return self.reader().__arrow_c_stream__(requested_schema)

    # --- as tables ----------------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """All rows as a table, in random order."""
        table = pa.Table.from_batches(list(self), self.schema)
        return table.take(np.random.default_rng(self.seed).permutation(table.num_rows))

    def to_pandas(self) -> Any:
        """All rows as a pandas frame, in random order."""
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: SparkSession | None = None, partitions: int | None = None) -> DataFrame:
        """A Spark frame, whose partitions (as many as the session's cores, else) are drawn in the executors.

        From there rows go to any store that Spark writes: `drawn.to_spark().write.parquet("hdfs://...")`. A part of a
        sketch that is stored nowhere is drawn here and handed over.
        """
        import synopsis  # its frames stand above this module, and are loaded when asked for

        return synopsis.frames.synthetic_frame(self, spark, partitions)

    # --- as files -----------------------------------------------------------------------------------------------------

    def to_parquet(self, to: str | os.PathLike[str], rows_per_file: int | None = None) -> None:
        """Write a Parquet file, or with `rows_per_file` a folder of them, to a path or an address as s3://bucket/rows.

        Memory is that of a block, whatever the number of rows.
        """
        files, path = _target(to)
        if rows_per_file is None:
            with (
                files.open_output_stream(path) as stream,
                pa.parquet.ParquetWriter(stream, self.schema, compression="zstd") as writer,
            ):
                for batch in self:
                    writer.write_batch(batch)
            return
        if rows_per_file < 1:
            raise BadTarget(f"rows_per_file is {rows_per_file}; give 1 or more")
        form = pa.dataset.ParquetFileFormat()
        pa.dataset.write_dataset(
            self.reader(),
            path,
            filesystem=files,
            format=form,
            file_options=form.make_write_options(compression="zstd"),
            max_rows_per_file=rows_per_file,
            max_rows_per_group=min(rows_per_file, 1 << 20),
            existing_data_behavior="error",
        )

    def to_ipc(self, to: str | os.PathLike[str]) -> None:
        """Write an Arrow file (IPC, Feather 2)."""
        files, path = _target(to)
        with files.open_output_stream(path) as stream, pa.ipc.new_file(stream, self.schema) as writer:
            for batch in self:
                writer.write_batch(batch)

    def to_csv(self, to: str | os.PathLike[str]) -> None:
        """Write comma-separated values with a line of names."""
        files, path = _target(to)
        with files.open_output_stream(path) as stream, pa.csv.CSVWriter(stream, self.schema) as writer:
            for batch in self:
                writer.write_batch(batch)

    def to_vw(self, to: str | os.PathLike[str], label: str, features: Sequence[str] | None = None) -> None:
        """Write Vowpal Wabbit's text: the label, a bar, and name:value of every feature that is not absent.

        Rows without a label are left out. `features` are all others, else.
        """
        chosen = self._features(label, features)
        files, path = _target(to)
        with files.open_output_stream(path) as stream:
            for batch in self:
                labelled = batch.filter(batch.column(label).is_valid())
                if labelled.num_rows:
                    stream.write(_vw_text(labelled, label, chosen))

    # --- to learn from ------------------------------------------------------------------------------------------------

    def minibatches(
        self, target: str, features: Sequence[str] | None = None, batch: int = 1024
    ) -> Iterator[tuple[Shorts, Shorts]]:
        """Predictors (rows x features) and targets of so many rows each, mixed; rows that miss a value are left out."""
        chosen = self._features(target, features)
        if batch < 1:
            raise BadQuery(f"batch is {batch}; give 1 or more rows")
        random = np.random.default_rng(self.seed)
        for together in _gathered(self, [*chosen, target], max(_MIXED, batch)):
            mixed = together[random.permutation(len(together))]
            for begin in range(0, len(mixed), batch):
                yield mixed[begin : begin + batch, :-1], mixed[begin : begin + batch, -1]

    def to_torch(self, target: str, features: Sequence[str] | None = None, batch: int = 1024) -> Any:
        """A torch IterableDataset of (predictors, targets), batches ready made: `DataLoader(dataset, batch_size=None)`.

        Workers of a DataLoader share the batches among them. Rows that miss a value are left out.
        """
        chosen = self._features(target, features)
        try:
            import torch
        except ModuleNotFoundError as problem:
            remedy = "to_torch needs PyTorch; run pip install torch, or take minibatches(), which are NumPy arrays"
            raise ModuleNotFoundError(remedy, name="torch") from problem
        drawn = self

        class Rows(torch.utils.data.IterableDataset):  # type: ignore[misc, unused-ignore]  # torch may be missing
            """Synthetic rows as pairs of tensors."""

            def __iter__(self) -> Iterator[Any]:
                worker = torch.utils.data.get_worker_info()
                number, of = (0, 1) if worker is None else (worker.id, worker.num_workers)
                for at, (predictors, targets) in enumerate(drawn.minibatches(target, chosen, batch)):
                    if at % of == number:
                        yield torch.from_numpy(predictors), torch.from_numpy(targets)

        return Rows()

    def to_tensorflow(self, target: str, features: Sequence[str] | None = None, batch: int = 1024) -> Any:
        """A tf.data.Dataset of (predictors, targets), batches ready made. Rows that miss a value are left out."""
        chosen = self._features(target, features)
        try:
            import tensorflow
        except ModuleNotFoundError as problem:
            remedy = "to_tensorflow needs TensorFlow; run pip install tensorflow, or take minibatches()"
            raise ModuleNotFoundError(remedy, name="tensorflow") from problem
        signature = (
            tensorflow.TensorSpec((None, len(chosen)), tensorflow.float32),
            tensorflow.TensorSpec((None,), tensorflow.float32),
        )
        return tensorflow.data.Dataset.from_generator(
            lambda: self.minibatches(target, chosen, batch), output_signature=signature
        )

    def _features(self, target: str, features: Sequence[str] | None) -> list[str]:
        """The features to learn from; those named must be there."""
        known = self.features or self.relation.layout.features
        for name in (target, *(features or ())):
            if name not in known:
                raise UnknownFeature(name, known)
        chosen = [name for name in known if name != target] if features is None else list(features)
        if target in chosen:
            raise BadQuery(f"{target!r} is what is learnt; leave it out of the features to learn it from")
        if not chosen:
            raise BadQuery(f"there is no feature to learn {target!r} from; name one")
        return chosen

    def __repr__(self) -> str:
        size = f"{self.rows:,} rows" if self.rows is not None else f"{self.share:.0%} of the rows"
        features = f", {', '.join(self.features)}" if self.features else ""
        return f"<synthetic: {size}{features}, seed {self.seed}" + (f", where {self.where}>" if self.where else ">")


def _target(to: str | os.PathLike[str]) -> tuple[pa.fs.FileSystem, str]:
    """The file system of a path or address, and the path in it."""
    text = os.fspath(to)
    if "://" in text:
        files, path = pa.fs.FileSystem.from_uri(text)
        return files, path
    return pa.fs.LocalFileSystem(), str(Path(text).absolute())


def _vw_text(batch: pa.RecordBatch, label: str, features: list[str]) -> pa.Buffer:
    """Lines of text, one a row."""
    parts = []
    for name in features:
        prefix = pa.scalar(f"{name.translate(_NOT_IN_NAMES)}:")
        parts.append(pc.binary_join_element_wise(prefix, batch.column(name).cast(pa.string()), ""))
    values = pc.binary_join_element_wise(*parts, " ", null_handling="skip")
    lines = pc.binary_join_element_wise(batch.column(label).cast(pa.string()), values, " | ")
    ended = pc.binary_join_element_wise(lines, "", "\n")
    whole = pa.ListArray.from_arrays(pa.array([0, batch.num_rows], pa.int32()), ended)
    return pc.binary_join(whole, "")[0].as_buffer()


def _gathered(batches: Synthetic, names: list[str], size: int) -> Iterator[Shorts]:
    """Rows x columns of so many rows or more that have all values; the last may be of fewer."""
    waiting: list[Shorts] = []
    count = 0
    for batch in batches:
        columns = np.stack([batch.column(name).to_numpy(zero_copy_only=False) for name in names], axis=1)
        whole = columns[~np.isnan(columns).any(axis=1)].astype(np.float32)
        waiting.append(whole)
        count += len(whole)
        if count >= size:
            yield np.concatenate(waiting)
            waiting, count = [], 0
    if count:
        yield np.concatenate(waiting)
