"""Rows of Parquet files and of partitioned folders."""

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from craftmaps.scale.files import column_types
from craftmaps.scale.files import columns as tables
from craftmaps.scale.files.errors import FileError, refusing_damage
from craftmaps.scale.files.numpy import float_type
from craftmaps.scale.files.options import ReadOptions
from craftmaps.scale.files.pieces import BadRows, Fault, Piece

_BUFFER_BYTES = 1 << 16  # bytes of a column to read at a time, instead of a whole row group
_SAMPLE_ROWS = 10_000  # rows that decide whether columns are finite numbers
_PIECE_BYTES = 1 << 24  # a piece is several blocks, because long runs of a column read faster


class ParquetFiles:
    """Parquet files with the same columns, read some rows at a time."""

    def __init__(self, paths: list[str], options: ReadOptions) -> None:
        tables.arrow()
        from pyarrow import dataset

        self.paths = paths
        self.n_files = len(paths)
        self._options = options
        with refusing_damage(paths[0], "Parquet"):
            whole = dataset.dataset(paths, format="parquet", partitioning="hive")
            self._partitions = [
                dataset.get_partition_keys(fragment.partition_expression)
                for fragment in whole.get_fragments()
            ]
            every_name = whole.schema.names  # raises an error if bytes are damaged
        self._whole = whole.schema
        self._first = tables.choose(every_name, options, paths[0])
        names = self._first.feature_names()
        self.names: list[str] | None = names
        for place in (*self._first.targets, *self._first.weights):
            self._checked(whole.schema.field(self._first.names[place]), paths[0])
        self._bad_rows = BadRows(options, "row", names, tables=True)
        self._piece_rows = options.block_rows
        self._tabular = True  # for now, so that first rows of any types can be read
        self._tabular = options.as_tables(self._shares_of_numbers())
        row_bytes = 8 * len(names)
        self._dtype = np.dtype(np.float64)
        if not self._tabular:
            kinds = [self._checked(whole.schema.field(name), paths[0]) for name in names]
            self._dtype = float_type(kinds) if options.dtype is None else options.dtype
            row_bytes = self._dtype.itemsize * len(names)
        self._piece_rows *= max(1, _PIECE_BYTES // (row_bytes * options.block_rows))

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of X for all files, or None if X is an array."""
        if not self._tabular:
            return None
        import pyarrow as pa
        from pyarrow import parquet

        kinds = {
            name: tables.plain_type(self._whole.field(name).type)
            for name in self._first.feature_names()
        }
        for path in self.paths:
            with refusing_damage(path, "Parquet"):
                stored = parquet.read_schema(path)
                both = kinds.keys() & {*stored.names}
            for name in both:
                kind = tables.plain_type(stored.field(name).type)
                try:
                    kinds[name] = tables.common_type(kinds[name], kind)
                except pa.ArrowException:
                    reason = f"it holds {kind}, and the files before {kinds[name]}; read them apart"
                    raise FileError(path, reason, None, None, name) from None
        for name, given in self._options.types.items():
            if name in kinds and tables.is_text(kinds[name]):
                kinds[name] = column_types.given_type(given)
        return pa.schema(list(kinds.items()))

    @property
    def n_rows(self) -> int:
        """Number of rows, from the metadata of the files."""
        from pyarrow import parquet

        total = 0
        for path in self.paths:
            with refusing_damage(path, "Parquet"):
                total += parquet.read_metadata(path).num_rows
        return total

    def pieces(self, file: int, row: int) -> Iterator[Piece]:
        """Yield pieces of a file, from a row on; earlier row groups are not read."""
        path, first = self.paths[file], self._first
        with refusing_damage(path, "Parquet"):
            for start, batch in self._batches(file, row):
                rows = np.arange(start, start + batch.num_rows)
                features, targets, weights = (
                    [batch.column(first.names[place]) for place in places]
                    for places in (first.features, first.targets, first.weights)
                )
                faults: list[Fault] = []
                if self._tabular:
                    X = self._table(features, faults)
                else:
                    X = tables.matrix(features, self._dtype)
                y, missing = tables.labels(targets, self._options.several)
                if missing is not None:
                    faults.append(self._bad_rows.missing_targets(missing))
                piece = Piece(X, y, rows, tables.weights_of(weights))
                yield self._bad_rows.leave_out(piece, path, faults)

    def _table(self, columns: list[Any], faults: list[Fault]) -> Any:
        """Return columns as an Arrow table, and add values of a wrong type to `faults`."""
        pa = tables.arrow()
        typed = []
        for name, column in zip(self.schema.names, columns, strict=True):
            kind, given = self.schema.field(name).type, self._options.types.get(name)
            column = column.cast(tables.plain_type(column.type))
            if given is not None and tables.is_text(column.type):
                texts = column
                column, wrong = column_types.as_given(texts, given)
                if wrong is not None:
                    faults.append(Fault(wrong, partial(tables.told, name, texts, given)))
            typed.append(column.cast(kind))
        return pa.table(typed, schema=self.schema)

    def _shares_of_numbers(self) -> Iterator[float]:
        """Yield the share of finite numbers in the first rows; 0 for columns of other types."""
        names = self._first.feature_names()
        for name in names:
            if not tables.is_number(self._whole.field(name).type):
                yield 0.0
        n_rows, n_finite = 0, np.zeros(len(names))
        for file in range(self.n_files):
            with refusing_damage(self.paths[file], "Parquet"):
                _, batch = next(self._batches(file, 0), (0, None))
                if batch is not None:
                    columns = [batch.column(name) for name in names]
                    if not all(tables.is_number(column.type) for column in columns):
                        break  # reading raises the error
                    X = tables.matrix(columns, np.dtype(float))
                    n_rows, n_finite = n_rows + len(X), n_finite + np.isfinite(X).sum(axis=0)
            if n_rows >= _SAMPLE_ROWS:
                break
        yield from n_finite / n_rows if n_rows else np.ones(len(names))

    def _batches(self, file: int, row: int) -> Iterator[tuple[int, Any]]:
        """Yield record batches, with the number of the first row of each."""
        import pyarrow as pa
        from pyarrow import parquet

        path, partition = self.paths[file], self._partitions[file]
        wanted = [self._first.names[place] for place in self._first.wanted]
        stored = [name for name in wanted if name not in partition]
        with parquet.ParquetFile(
            path, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
        ) as opened:
            names = opened.schema_arrow.names
            tables.choose_like(self._first, [*names, *partition], self._options, path)
            for name in stored:
                if not self._tabular or name not in self._first.feature_names():
                    self._checked(opened.schema_arrow.field(name), path)
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

    def _checked(self, field: Any, path: str) -> np.dtype:
        """Return the NumPy type of a column of numbers; only a single target may be text."""
        kind = field.type
        single = not self._options.several and field.name in (
            self._first.names[place] for place in self._first.targets
        )
        if single and tables.arrow().types.is_dictionary(kind):
            kind = kind.value_type
        if single and tables.is_text(kind):
            return np.dtype(str)
        if not tables.is_number(kind):
            needed = "targets are numbers or text" if single else "not numbers"
            option = None if single else "columns"
            raise FileError(path, f"it holds {field.type}, {needed}", option, None, field.name)
        plain = np.dtype(kind.to_pandas_dtype())
        return np.dtype(np.float64) if plain.hasobject else plain
