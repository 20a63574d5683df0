"""Rows of Parquet files and of partitioned folders of them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from craftmaps.scale.files import columns as tables
from craftmaps.scale.files.numpy import float_type
from craftmaps.scale.files.pieces import BadRows, Piece

_BUFFER = 1 << 16  # bytes read at a time of a column, rather than a whole row group
_PIECE = 1 << 24  # bytes of a piece of several blocks: fewer, longer runs of each column
_NOTHING = np.empty(0, np.int64)


class ParquetFiles:
    """Parquet files of one schema, read some rows at a time whatever their row groups."""

    def __init__(
        self,
        paths: list[str],
        target: Any,
        columns: Sequence[Any] | None,
        dtype: np.dtype | None,
        skip: bool,
        piece_rows: int,
    ) -> None:
        tables.arrow()
        from pyarrow import ArrowInvalid, dataset

        self.paths = paths
        self.n_files = len(paths)
        try:
            whole = dataset.dataset(paths, format="parquet", partitioning="hive")
        except (ArrowInvalid, OSError) as error:
            raise ValueError(f"{paths[0]} cannot be read as Parquet: {error}") from error
        names = whole.schema.names
        targets, features = tables.choose(names, target, columns, paths[0])
        self._targets = [names[place] for place in targets]
        self._features = [names[place] for place in features]
        self.names: list[str] | None = self._features
        self._several = isinstance(target, list | tuple)
        kinds = [_number_type(whole.schema.field(name), paths[0]) for name in self._features]
        for name in self._targets:
            self._check_target(whole.schema.field(name), paths[0])
        self._dtype = float_type(kinds) if dtype is None else dtype
        self._bad_rows = BadRows(skip, "row", self._features, target)
        row_bytes = self._dtype.itemsize * max(1, len(self._features))
        self._piece_rows = piece_rows * max(1, _PIECE // (row_bytes * piece_rows))
        self._partitions = [
            dataset.get_partition_keys(fragment.partition_expression)
            for fragment in whole.get_fragments()
        ]

    def pieces(self, file: int, row: int) -> Iterator[Piece]:
        """Pieces of a file, from a row on; row groups before it are not read."""
        from pyarrow import ArrowInvalid

        path = self.paths[file]
        try:
            for start, batch in self._batches(file, row):
                rows = np.arange(start, start + batch.num_rows)
                X = tables.matrix([batch.column(name) for name in self._features], self._dtype)
                y, missing = tables.labels(
                    [batch.column(name) for name in self._targets], self._several
                )
                yield self._bad_rows.leave_out(Piece(X, y, rows, _NOTHING), path, missing)
        except (ArrowInvalid, OSError) as error:
            raise ValueError(f"{path} is damaged, or no Parquet file: {error}") from error

    def _check_target(self, field: Any, path: str) -> None:
        if self._several:
            _number_type(field, path)
            return
        kind = field.type
        if tables.arrow().types.is_dictionary(kind):
            kind = kind.value_type
        if not tables.is_number(kind) and not tables.is_text(kind):
            raise ValueError(
                f"column {field.name!r} of {path} holds {field.type}, and targets are numbers or "
                f"text."
            )

    def _batches(self, file: int, row: int) -> Iterator[tuple[int, Any]]:
        """Record batches, and the number of the first row of each."""
        import pyarrow as pa
        from pyarrow import parquet

        path, partition = self.paths[file], self._partitions[file]
        wanted = list(dict.fromkeys([*self._features, *self._targets]))
        stored = [name for name in wanted if name not in partition]
        with parquet.ParquetFile(
            path, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True
        ) as opened:
            for name in set(stored) - set(opened.schema_arrow.names):
                raise ValueError(f"{path} has no column {name!r}, which {self.paths[0]} has.")
            for name in set(stored) & set(self._features):
                _number_type(opened.schema_arrow.field(name), path)
            for name in set(stored) & set(self._targets):
                self._check_target(opened.schema_arrow.field(name), path)
            sizes = [opened.metadata.row_group(g).num_rows for g in range(opened.num_row_groups)]
            ends = np.cumsum(sizes)
            groups = np.flatnonzero(ends > row)
            start = int(ends[groups[0]] - sizes[groups[0]]) if len(groups) else row
            for batch in opened.iter_batches(
                self._piece_rows, groups.tolist(), columns=stored, use_threads=False
            ):
                size = batch.num_rows
                batch = batch.slice(max(0, row - start))
                for name in wanted:
                    if name in partition:
                        constant = pa.repeat(pa.scalar(partition[name]), batch.num_rows)
                        batch = batch.append_column(name, constant)
                if batch.num_rows:
                    yield max(start, row), batch
                start += size


def _number_type(field: Any, path: str) -> np.dtype:
    """The NumPy type of a column of numbers."""
    if not tables.is_number(field.type):
        raise ValueError(
            f"column {field.name!r} of {path} holds {field.type}, and not numbers; name the "
            f"columns of numbers in columns."
        )
    kind = np.dtype(field.type.to_pandas_dtype())
    return np.dtype(np.float64) if kind.hasobject else kind
