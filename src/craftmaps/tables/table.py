"""A table of any library, as named columns whose rows can be chosen by their places."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy import sparse
from sklearn.utils import gen_batches

from craftmaps.tables import values
from craftmaps.tables.values import CannotEncodeError, Values

_ROWS_TO_LOOK_AT = 100
_LAZY_ROWS = 65_536  # rows of a lazy frame that are collected at a time


class Table:
    """Columns of equal lengths by their names.

    Parameters
    ----------
    columns : mapping of names to arrays, narwhals series or `Values`; or a narwhals data frame
    n_rows : int
    named : bool
        Whether columns are matched by their names rather than their places.
    """

    def __init__(self, columns: Any, n_rows: int, named: bool) -> None:
        self._columns = columns
        self.n_rows = n_rows
        self.named = named

    @property
    def names(self) -> list[str]:
        """Names of the columns in their order."""
        frame = isinstance(self._columns, nw.DataFrame)
        return list(self._columns.columns if frame else self._columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.n_rows, len(self.names)

    def check_size(self) -> None:
        """Raise ValueError if there are no rows or no columns."""
        if 0 in self.shape:
            lacking = "sample" if self.names else "feature"
            raise ValueError(
                f"Found array with 0 {lacking}(s) (shape={self.shape}) while a minimum of 1 is "
                f"required."
            )

    def __getitem__(self, rows: Any) -> Self:
        """Choose rows by a slice or by their places."""
        if isinstance(rows, slice):
            rows = slice(*rows.indices(self.n_rows))
            n_rows = len(range(self.n_rows)[rows])
        else:
            n_rows = len(rows)
        if isinstance(self._columns, nw.DataFrame):
            return type(self)(self._columns[rows], n_rows, self.named)
        some = {
            name: column.take(rows) if isinstance(column, Values) else column[rows]
            for name, column in self._columns.items()
        }
        return type(self)(some, n_rows, self.named)

    def read(self, name: str) -> Values:
        """Return the values of a column."""
        try:
            return values.read(self._columns[name])
        except CannotEncodeError as error:
            raise CannotEncodeError(f"column {name!r} has {error}") from None

    def loaded(self) -> Self:
        """Return the table with all columns read, which can be sent to other processes."""
        columns = {name: self.read(name) for name in self.names}
        return type(self)(columns, self.n_rows, self.named)

    def renamed(self, names: Sequence[str]) -> Self:
        """Return the table with other names for its columns, in their order."""
        if isinstance(self._columns, nw.DataFrame):
            columns = {new: self._columns[old] for new, old in zip(names, self.names, strict=True)}
        else:
            columns = dict(zip(names, self._columns.values(), strict=True))
        return type(self)(columns, self.n_rows, self.named)


class LazyTable(Table):
    """A lazy Polars frame, read with one block of rows in memory at a time."""

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "slice"):
            raise TypeError(
                f"a {type(frame).__module__}.{type(frame).__qualname__} has partitions: use "
                f"craftmaps.scale.dask or craftmaps.scale.spark, or collect it first."
            )
        self._lazy = frame
        self._names = list(frame.collect_schema().names())
        n_rows = int(frame.select(frame.collect_schema().names()[:1]).collect().height)
        super().__init__({}, n_rows, named=True)

    @property
    def names(self) -> list[str]:
        """Names of the columns in their order."""
        return self._names

    def __getitem__(self, rows: Any) -> Table:  # type: ignore[override]
        """Choose rows by a slice or by their places in increasing order."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.n_rows)
            return table_of(self._lazy.slice(start, max(stop - start, 0)).collect())
        parts = []
        for block in gen_batches(self.n_rows, _LAZY_ROWS):
            first, last = np.searchsorted(rows, [block.start, block.stop])
            if last > first:
                parts.append(self[block][rows[first:last] - block.start])
        return stacked(parts) if parts else self[:0]

    def read(self, name: str) -> Values:
        """Return the values of a column."""
        return table_of(self._lazy.select([name]).collect()).read(name)


def is_table(X: Any) -> bool:
    """Whether X has columns with names: a data frame, an Arrow table or batch, or a dict."""
    if isinstance(X, Table) or _is_batch(X) or _is_mapping(X):
        return True
    frame = _native(X)
    return frame is not None and _has_names(frame)


def column_of_text(X: Any) -> str | None:
    """Return the first column of a data frame whose first values are text or dates, or None."""
    if not is_table(X):
        return None
    few = table_of(X)[:_ROWS_TO_LOOK_AT]
    return next((name for name in few.names if few.read(name).kind in ("text", "date")), None)


def has_gaps(X: Any) -> bool:
    """Whether X is dense and has missing values or values that are not numbers."""
    if sparse.issparse(X) or is_table(X):
        return False
    array = np.asarray(X)
    if array.ndim != 2:
        return False
    return array.dtype.kind in "OUTMm" or (array.dtype.kind == "f" and bool(np.isnan(array).any()))


def table_of(X: Any) -> Table:
    """Return a data frame, an Arrow table or batch, a dict or a dense array as a table."""
    if isinstance(X, Table):
        return X
    if _is_mapping(X):
        return _of_mapping(X)
    if _is_batch(X):
        return _of_mapping({name: X.column(name) for name in X.schema.names})
    frame = _native(X)
    if frame is None:
        return _of_array(X)
    if isinstance(frame, nw.LazyFrame):
        return LazyTable(frame.to_native())
    if _has_names(frame):
        return Table(frame, len(frame), named=True)
    columns = {f"x{j}": column for j, column in enumerate(frame.iter_columns())}
    return Table(columns, len(frame), named=False)


def set_names(estimator: Any, X: Any) -> None:
    """Store the number of columns of X in an estimator, and their names if X is a named table."""
    estimator.n_features_in_ = X.shape[1]
    estimator.__dict__.pop("feature_names_in_", None)
    if getattr(X, "named", False):
        estimator.feature_names_in_ = np.asarray(X.names, dtype=object)


def stacked(tables: Sequence[Table]) -> Table:
    """Stack the rows of several tables, with the columns of the first table."""
    if len(tables) == 1:
        return tables[0]
    columns = {
        name: values.stacked([table.read(name) for table in tables]) for name in tables[0].names
    }
    return Table(columns, sum(table.n_rows for table in tables), tables[0].named)


def _of_array(X: Any) -> Table:
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        raise TypeError(
            f"rows as dicts are no table: pass a dict with a list for each column, such as "
            f"{{{next(iter(X[0]), 'x')!r}: [...]}}, or pandas.DataFrame(rows)."
        )
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: "
            f"X.reshape(-1, 1) is one column, and X.reshape(1, -1) is one row."
        )
    return Table({f"x{j}": array[:, j] for j in range(array.shape[1])}, len(array), named=False)


def _of_mapping(columns: Mapping[Any, Any]) -> Table:
    series = {}
    for name, column in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"names of columns are strings, got {name!r}.")
        one = nw.from_native(column, series_only=True, pass_through=True)
        series[name] = one if isinstance(one, nw.Series | Values) else _vector(name, one)
    lengths = {name: len(column) for name, column in series.items()}
    if len({*lengths.values()}) > 1:
        (short, n), *_, (other, m) = sorted(lengths.items(), key=itemgetter(1))
        raise ValueError(f"column {short!r} has {n} rows and column {other!r} has {m}.")
    return Table(series, next(iter(lengths.values()), 0), named=True)


def _vector(name: str, column: Any) -> np.ndarray:
    """Convert a sequence to an array; mixed types stay objects."""
    if isinstance(column, str) or not hasattr(column, "__len__"):
        raise TypeError(
            f"column {name!r} must be a sequence of values, with a value for each row, got "
            f"{column!r}."
        )
    array = column if isinstance(column, np.ndarray) else np.asarray(column, dtype=object)
    if array.ndim == 1:
        return array
    objects = np.empty(len(column), dtype=object)
    objects[:] = list(column)
    return objects


def _is_mapping(X: Any) -> bool:
    return isinstance(X, Mapping) and not sparse.issparse(X)  # some sparse arrays are dicts


def _has_names(frame: Any) -> bool:
    return all(isinstance(name, str) for name in frame.columns)


def _is_batch(X: Any) -> bool:
    return type(X).__name__ == "RecordBatch" and hasattr(X, "schema")


def _native(X: Any) -> Any:
    """Return X as a narwhals frame, or None if X is not a data frame."""
    if isinstance(X, np.ndarray | list | tuple | int | float | str) or sparse.issparse(X):
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
    except DuplicateError as error:
        listed = " ".join(str(error).split())
        raise ValueError(
            f"two columns of the table have one name ({listed}); rename one."
        ) from None
    return frame if isinstance(frame, nw.DataFrame | nw.LazyFrame) else None
