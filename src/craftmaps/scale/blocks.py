"""Read files that are larger than memory in blocks of rows."""

import codecs
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Protocol

import numpy as np

from craftmaps.scale.files.column_types import GIVEN_TYPES
from craftmaps.scale.files.csv import CsvFiles
from craftmaps.scale.files.errors import FileError
from craftmaps.scale.files.numpy import NpyFiles, NpzFiles
from craftmaps.scale.files.options import ReadOptions
from craftmaps.scale.files.parquet import ParquetFiles
from craftmaps.scale.files.paths import FORMATS, TABLES, common_format, expanded, files_beside
from craftmaps.scale.files.pieces import Piece, Position, cut
from craftmaps.scale.files.read_ahead import read_ahead
from craftmaps.scale.files.svmlight import SvmlightFiles
from craftmaps.scale.files.text import UTF8
from craftmaps.validation import check_choice, check_count

_READERS: dict[str, Callable[[list[str], ReadOptions], "Files"]] = {
    "npz": NpzFiles,
    "parquet": ParquetFiles,
    "csv": CsvFiles,
    "svmlight": SvmlightFiles,
}


class Files(Protocol):
    """Interface of a file format: it reads pieces of a file, starting at any row.

    The first `n_files` of `paths` hold rows; other files are read beside them. `names` are the
    names of the columns of X, or None for formats without names. `n_rows` is None if all rows would
    have to be read to count them. `schema` is None unless X is an Arrow table.
    """

    paths: list[str]
    n_files: int
    names: list[str] | None

    @property
    def n_rows(self) -> int | None: ...

    @property
    def schema(self) -> Any: ...

    def pieces(self, file: int, row: int) -> Iterator[Piece]: ...


class Blocks:
    """Blocks (X, y) or (X, y, weight) of files, as returned by `read`; can be iterated again.

    Attributes
    ----------
    skipped_rows : int
        Rows that were left out because of `on_bad_rows`, in the last iteration until now.
    """

    def __init__(self, files: Files, options: ReadOptions, identity: dict[str, Any]) -> None:
        self.skipped_rows = 0
        self._n_rows: int | None = None
        self._files = files
        self._options = options
        self._identity = identity
        self._states = [_state(path) for path in files.paths]

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of X, or None if the files have none."""
        return self._files.names

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None if it is not known before reading; it can be set."""
        if self._n_rows is None and not (self._options.skip or self._options.skip_unlabeled):
            self._n_rows = self._files.n_rows
        return self._n_rows

    @n_rows.setter
    def n_rows(self, value: int | None) -> None:
        self._n_rows = value

    @property
    def schema(self) -> Any:
        """Arrow schema of the tables X in all blocks, or None if X is an array.

        For CSV files, the first call reads all rows once, to find types that take all values.
        """
        return self._files.schema

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        with closing(self.from_position()) as blocks:
            for _, block in blocks:
                yield block

    def from_position(
        self, position: Sequence[int] = (0, 0, 0)
    ) -> Generator[tuple[Any, Any], None, None]:
        """Yield pairs of a block and the position after it, from which reading can resume.

        A position is three integers: the number of the file, the number of the row (or line) in
        it, and how many rows were left out before.
        """
        start = Position(*position)
        blocks = cut(self._pieces(start), self._options.block_rows, start)
        with closing(read_ahead(blocks)) as ahead:
            for after, block in ahead:
                self.skipped_rows = after.skipped
                if block is not None:
                    yield tuple(after), block
        if self.skipped_rows:
            rows, were = ("row", "was") if self.skipped_rows == 1 else ("rows", "were")
            rows = f"bad {rows} {were}" if self._options.skip else f"{rows} without a target {were}"
            n_files = self._files.n_files
            files = f"{n_files} files that begin with " if n_files > 1 else ""
            warnings.warn(
                f"{self.skipped_rows} {rows} left out of {files}{self._files.paths[0]}.",
                UserWarning,
                stacklevel=2,
            )

    def fingerprint(self) -> dict[str, Any]:
        """Return what identifies the rows: paths, sizes and times of files, and options."""
        files = [[os.path.abspath(path), *_state(path)] for path in self._files.paths]
        return {"files": files, "block_rows": self._options.block_rows} | self._identity

    def _pieces(self, start: Position) -> Iterator[tuple[int, Piece]]:
        for file in range(start.file, self._files.n_files):
            self._check_unchanged(file)
            for piece in self._files.pieces(file, start.row if file == start.file else 0):
                yield file, piece
            self._check_unchanged(file)

    def _check_unchanged(self, file: int) -> None:
        path = self._files.paths[file]
        if _state(path) != self._states[file]:
            reason = "the file was changed since `read` was called, so call it again when"
            raise FileError(path, f"{reason} nothing writes to the file")


def read(
    path: Any,
    target: Any = None,
    *,
    weight: Any = None,
    block_rows: int = 4096,
    columns: Sequence[Any] | None = None,
    dtype: Any = None,
    on_bad_rows: str = "error",
    format: str | None = None,
    header: bool = True,
    delimiter: str | None = None,
    n_columns: int | None = None,
    zero_based: bool = False,
    table: bool | str = "auto",
    types: Mapping[Any, str] | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
) -> Blocks:
    """Read files of any size as blocks (X, y) for `fit_blocks`.

    Every block but the last has `block_rows` rows, however the files are divided. The next
    two blocks are read while the learner works on the current one. Only these blocks are held, so
    memory does not depend on the size of the files.

    Parameters
    ----------
    path : path, glob pattern, folder, or list of them
        The files to read. A folder means all files of a known format in it and in its subfolders;
        folder names like "year=2024" add a column to Parquet files.
    target : column name, index, list of them, or None, default=None
        The column (or columns) y. For .npy it is an index, or the path of a second file with the
        same number of rows (a pattern or list for several files); for .npz it is the name of an
        array next to "X". None yields (X, None), for prediction. Leave it out for svmlight files,
        where each line starts with its target.
    weight : column name, index or None, default=None
        The column of sample weights, which must be at least 0; files and arrays as for `target`.
        Blocks are then (X, y, weight). Svmlight files have no weights.
    block_rows : int, default=4096
        Number of rows of each block. Larger blocks take more memory.
    columns : list of names or indices, default=None
        The columns of X, in this order; others are not read. None uses all but target and weight.
        If files have column names, columns are matched by name, in any order; without `columns`, a
        file with other columns than the first is an error.
    dtype : float32, float64 or None, default=None
        The type of X. None is float32 if the columns are that precise or less, otherwise float64.
        If it is given, X is an array rather than a table, unless `table` or `types` say otherwise.
    on_bad_rows : {"error", "skip", "unlabeled"}, default="error"
        What to do with bad rows: rows with too few or too many values, without a target, or, if X
        is an array, with values that are not finite numbers. "error" raises an error that names
        the file, row and column. "skip" leaves them out, and warns at the end how many there were.
        "unlabeled" leaves out only rows without a target; other bad rows raise an error.
    format : {"npy", "npz", "parquet", "csv", "svmlight"} or None, default=None
        The file format. None infers it from the suffix: .npy, .npz, .parquet, .csv, .tsv, .svmlight
        or .libsvm, where text formats may be followed by .gz, .bz2, .xz or .zst.
    header : bool, default=True
        Whether the first line of a CSV file has column names. If False, columns have only indices.
    delimiter : str, default=None
        Separator of the values in CSV files. None is a tab for .tsv, otherwise the first of comma,
        tab, semicolon and bar that occurs in the first line.
    n_columns : int, default=None
        Number of columns of svmlight files. None finds the largest index by reading the files once
        more. A larger index is an error, or is ignored if `columns` are given.
    zero_based : bool, default=False
        Whether svmlight files count columns from 0 rather than 1.
    table : bool or "auto", default="auto"
        Whether X is a `pyarrow.Table`, whose columns may hold text, dates, booleans and missing
        values: for `KernelClassifier`, `KernelRegressor` and `TableEncoder`. "auto" looks at the
        first rows of CSV and Parquet files, about 4 MB. X is an array if all their values are
        finite numbers (with on_bad_rows="skip": more than half in each column), otherwise a table.
        In CSV files, codes such as "007" are no numbers.
        If later rows hold other values, an error says so; use table=True to read them.
    types : dict of column names to {"number", "text", "date"}, default=None
        Types of some columns of a table, instead of types found from their values. For new rows,
        give the types of the training rows.
    decimal : {".", ","}, default="."
        The decimal separator in CSV files.
    encoding : str, default="utf-8"
        The encoding of CSV files, such as "latin-1", "cp1252" or "utf-16".

    Returns
    -------
    Blocks
        X is an array, a `pyarrow.Table`, or a CSR matrix from svmlight files. y keeps its type:
        numbers or text.

    Notes
    -----
    Rows are counted from 0 in errors about binary files, lines from 1. No pickle is ever read.
    Labels in CSV files are not changed: a column is read as numbers only if every label is
    written as a number, so "007", "0x1F" and whole numbers beyond 64 bits stay text.

    A table has the same columns and types in all blocks of all files. The types of CSV files are
    found by reading all rows once more, before the first block: whole numbers, numbers, true and
    false, dates and times in ISO format (2024-12-31, 2024-12-31 23:59:59), otherwise text. Codes
    such as "007" stay text. Empty values, NA, N/A, NaN, null, None and their like are missing.
    Quoted values may hold newlines; errors name the last line of such a row. Parquet
    files have stored types; a column must have a common type in all files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from craftmaps import OnePassClassifier
    >>> from craftmaps.scale import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = [f"{i % 3},{i % 5},{'ab'[i % 3 == 1]}" for i in range(1000)]
    ...     _ = Path(folder, "rows.csv").write_text("\\n".join(["u,v,class", *lines]))
    ...     rows = read(f"{folder}/*.csv", target="class", block_rows=300)
    ...     [X.shape for X, y in rows]
    ...     OnePassClassifier().fit_blocks(rows).classes_.tolist()
    [(300, 2), (300, 2), (300, 2), (100, 2)]
    ['a', 'b']
    """
    check_count("block_rows", block_rows)
    check_choice("on_bad_rows", on_bad_rows, ("error", "skip", "unlabeled"))
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32, float64 or None, got {dtype!r}.")
    if decimal not in (".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}.")
    paths = expanded(path, known_only=format is None)
    kind = common_format(paths) if format is None else format
    check_choice("format", kind, FORMATS)
    options = ReadOptions(
        target=target,
        weight=weight,
        columns=columns,
        dtype=None if dtype is None else np.dtype(dtype),
        skip=on_bad_rows == "skip",
        skip_unlabeled=on_bad_rows == "unlabeled",
        block_rows=block_rows,
        header=header,
        delimiter=delimiter,
        n_columns=n_columns,
        zero_based=zero_based,
        table=_checked_table(table, types, kind),
        types=_checked_types(types),
        decimal=decimal,
        encoding=_checked_encoding(encoding, kind),
    )
    files: Files
    if kind == "npy":
        files = NpyFiles(paths, options, files_beside(target), files_beside(weight))
    else:
        files = _READERS[kind](paths, options)
    identity = {
        "target": repr(target),
        "columns": repr(columns),
        "dtype": repr(options.dtype),
        "on_bad_rows": on_bad_rows,
        "layout": repr((kind, header, delimiter, n_columns, zero_based)),
        "table": repr((table, types, decimal)),
    }
    if options.encoding != UTF8:
        identity["encoding"] = options.encoding
    if weight is not None:
        identity["weight"] = repr(weight)
    return Blocks(files, options, identity)


def _checked_encoding(encoding: Any, kind: str) -> str:
    """Return the name by which Python knows an encoding."""
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError):
        raise ValueError(
            f"encoding must be the name of an encoding, such as 'latin-1', got {encoding!r}."
        ) from None
    if kind != "csv" and name != UTF8:
        raise ValueError(f"encoding is for CSV files, and not for {kind}.")
    return name


def _checked_table(table: Any, types: Any, kind: str) -> bool | str:
    """Return the checked parameter `table` of `read` for a file format."""
    if table not in (True, False, "auto"):
        raise ValueError(f"table must be True, False or 'auto', got {table!r}.")
    if kind in TABLES:
        if table is False and types:
            raise ValueError("types are for tables; leave out types or table=False.")
        return "auto" if table == "auto" else bool(table)
    if table is True or types:
        raise ValueError(f"{kind} files contain arrays; only CSV and Parquet files are tables.")
    return False


def _checked_types(types: Any) -> Mapping[Any, str]:
    for name, kind in ({} if types is None else types).items():
        check_choice(f"types[{name!r}]", kind, GIVEN_TYPES)
    return types or {}


def _state(path: str) -> tuple[int, int]:
    state = os.stat(path)
    return state.st_size, state.st_mtime_ns
