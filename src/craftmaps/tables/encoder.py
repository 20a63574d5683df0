"""Encode a table with columns of any type as rows of numbers."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from craftmaps.storage import model_file
from craftmaps.storage.expect import expect
from craftmaps.storage.packing import storable
from craftmaps.tables.fitted_columns import are_equal, fitted_columns
from craftmaps.tables.kinds import KINDS, Column
from craftmaps.tables.table import Table, set_names, table_of
from craftmaps.validation import check_choice, check_count

SCALINGS = ("auto", "standard", "quantile", "none")
_BLOCK_ROWS = 65_536  # rows that are encoded at a time
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@storable
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table as numbers for kernel machines.

    Each column becomes one or more columns of numbers, according to what it holds:

    - Numbers, booleans and durations are scaled. Missing values are replaced by the median, and a
      second column marks them. Text is read as numbers if every value is a number in the same
      form, such as $1,234.50, 12 kg or 23:59, or a mark of a missing value, such as "?".
    - Text and categories with few different values, or levels, become one column of 0 and 1 for
      each level. Missing values are a separate level. Levels that were not in `fit` are 0 in all
      columns.
    - Text with many different values becomes principal components of the pairs and triples of
      characters in it, so that similar texts are close to each other.
    - Dates become a number, and the sine and cosine of the time of day, week and year. Text is read
      as dates if every value is a date, such as 2024-12-31, 31.12.2024, Dec 31, 2024 or 12/31/2024.

    Columns that are constant or missing in all rows of `fit` are left out.

    Parameters
    ----------
    columns : dict or None, default=None
        The kind of some columns by their names: "number", "category", "text", "date", "dayfirst"
        or "drop". `fit` finds the kinds of the other columns. Columns of an array are called x0,
        x1, ... A "date" such as 05/06/2024 has its month first, unless another value of the column
        shows that the day comes first; "dayfirst" is a column of dates with the day first.
    scaling : {"auto", "standard", "quantile", "none"}, default="auto"
        How numbers are scaled. "standard" subtracts the mean and divides by the standard deviation.
        "quantile" is a smooth increasing curve to a normal distribution, which is a straight line
        beyond the numbers of `fit`. "auto" means "quantile" for columns with heavy tails, whose
        kurtosis is above 10, and "standard" otherwise.
    max_levels : int, default=40
        Text with more different values than this is encoded by its characters.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the encoded numbers. With float32, the features of smooth kernels are less exact.

    Attributes
    ----------
    columns_ : list
        The encoding of each column, in the order of the table; see `summary`. Every item has a
        `name`, a `kind` and the `names` of its encoded columns.
    dropped_ : dict
        The columns that were left out, with the reason.
    is_sparse_ : bool
        Whether `fit` was given a sparse matrix, whose columns are not changed.
    n_encoded_ : int
        Number of encoded columns.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Names of the columns of the table, if it has names.

    Notes
    -----
    Encoded columns have comparable spreads. The mean squared distance of two rows is 2 for a
    standardized number and for random points on the circle of a date. Two different levels of a
    category have the squared distance 2. Levels are not divided by their standard deviations,
    because rare levels would then be far away from all others.

    `transform` matches columns by name, in any order, and ignores columns that were not in `fit`.
    An empty string is a missing value. Dates are read in local time, without their time zones. A
    SciPy sparse matrix is not encoded, only converted to CSR format. At most the 256 most frequent
    levels of a category are encoded.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import TableEncoder
    >>> table = {
    ...     "age": [31, 54, None, 46],
    ...     "city": ["Oslo", "Rome", "Oslo", None],
    ...     "since": np.array(["2021-03-01", "2023-07-09", "2020-01-31", "2022-11-20"]),
    ... }
    >>> encoder = TableEncoder().fit(table)
    >>> print(encoder.summary())
    age    number    2 columns: standardized, 46 if missing, indicator of missing
    city   category  3 columns: 3 levels: missing, Oslo, Rome
    since  date      5 columns: standardized, time of week, time of year
    >>> encoder.transform({"age": [40], "city": ["Paris"], "since": ["2024-01-01"]}).shape
    (1, 10)
    """

    columns_: list[Any]
    dropped_: dict[str, str]
    _names: list[str]
    is_sparse_: bool

    def __init__(
        self,
        columns: Mapping[str, str] | None = None,
        *,
        scaling: str = "auto",
        max_levels: int = 40,
        dtype: Any = np.float64,
    ) -> None:
        self.columns = columns
        self.scaling = scaling
        self.max_levels = max_levels
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the kind and the encoding of each column.

        Parameters
        ----------
        X : data frame, Arrow table, dict of columns, array or sparse matrix
            Any data frame that narwhals supports, such as pandas and Polars.
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        if sparse.issparse(X):
            X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS)
            self.columns_, self.dropped_, self.is_sparse_ = [], {}, True
            self._names = [f"x{j}" for j in range(X.shape[1])]
            return self
        table = table_of(X)
        columns, dropped = fitted_columns(table, self.columns or {}, self.scaling, self.max_levels)
        set_names(self, table)
        self._names = table.names
        self.columns_, self.dropped_, self.is_sparse_ = columns, dropped, False
        return self

    def transform(self, X: Any) -> Any:
        """Encode the rows of a table.

        Parameters
        ----------
        X : data frame, Arrow table, dict of columns, array or sparse matrix
            With the columns of `fit`, in any order if they have names.

        Returns
        -------
        ndarray of shape (n_samples, n_encoded_columns), or a CSR matrix if X is sparse
        """
        return self.encode(X)

    def encode(self, X: Any) -> Any:
        """Encode rows like `transform`, but always return an array or a CSR matrix."""
        check_is_fitted(self, "columns_")
        if self.is_sparse_ or sparse.issparse(X):
            return self._passed(X)
        table = self._as_fitted(table_of(X))
        widths = [len(column.names) for column in self.columns_]
        out = np.empty((table.n_rows, sum(widths)), self.dtype)
        for rows in gen_batches(table.n_rows, _BLOCK_ROWS):
            some, first = table[rows], 0
            for column, width in zip(self.columns_, widths, strict=True):
                column.fill(some.read(column.name), out[rows, first : first + width])
                first += width
        return out

    def onnx_inputs(self, X: Any) -> dict[str, np.ndarray]:
        """Convert a table to the inputs of an ONNX model; see `craftmaps.export_onnx`.

        Returns
        -------
        dict of names and arrays of shape (n_samples, 1)
            float64 numbers with NaN where they are missing, dates in seconds since 1970, and
            strings that are empty where they are missing.
        """
        check_is_fitted(self, "columns_")
        table = self._as_fitted(table_of(X))
        return {
            column.name: column.given(table.read(column.name))[:, None] for column in self.columns_
        }

    def summary(self) -> str:
        """Return a text with one line for each column that describes its encoding."""
        check_is_fitted(self, "columns_")
        if self.is_sparse_:
            return f"{self.n_features_in_} sparse columns, unchanged"
        known = {column.name: column for column in self.columns_}
        shown = [_on_one_line(name) for name in self._names]
        name_width = max(map(len, shown))
        lines = []
        for name, short in zip(self._names, shown, strict=True):
            kind, words = "dropped", self.dropped_.get(name, "")
            if name in known:
                column = known[name]
                n, kind = len(column.names), column.kind
                words = f"{n} column{'s' * (n != 1)}: {column.described}"
            lines.append(f"{short:{name_width}}  {kind:8}  {words}")
        return "\n".join(lines)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the encoded columns, such as "age", "age is missing" and "city=Oslo".

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of the table, if it had none in `fit`.
        """
        check_is_fitted(self, "columns_")
        new = self._input_names(input_features)
        if self.is_sparse_:
            return np.asarray(new, dtype=object)
        names = [
            new[self._names.index(column.name)] + name.removeprefix(column.name)
            for column in self.columns_
            for name in column.names
        ]
        return np.asarray(names, dtype=object)

    def is_like(self, other: Self) -> bool:
        """Whether another fitted encoder encodes every table in the same way."""
        return (
            self._names == other._names
            and np.dtype(self.dtype) == np.dtype(other.dtype)
            and self.is_sparse_ == other.is_sparse_
            and len(self.columns_) == len(other.columns_)
            and all(map(are_equal, self.columns_, other.columns_))
        )

    def save(self, path: Any) -> None:
        """Save the fitted encoder to a file, which `craftmaps.load` reads."""
        check_is_fitted(self, "columns_")
        model_file.save(self, path)

    @property
    def _n_features_out(self) -> int:
        return self.n_encoded_

    @property
    def n_encoded_(self) -> int:
        """Number of encoded columns."""
        check_is_fitted(self, "columns_")
        if self.is_sparse_:
            return int(self.n_features_in_)
        return sum(len(column.names) for column in self.columns_)

    def _as_fitted(self, table: Table) -> Table:
        """Return the table with the columns of `fit` under their names."""
        by_name = table.named and hasattr(self, "feature_names_in_")
        if not by_name:
            if len(table.names) != self.n_features_in_:
                raise ValueError(
                    f"X has {len(table.names)} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
            return table.renamed(self._names)
        known = {*table.names}
        missing = [column.name for column in self.columns_ if column.name not in known]
        if missing:
            raise ValueError(
                f"the table has no column {', '.join(map(repr, missing[:5]))}, which was there in "
                f"fit; its columns are {', '.join(table.names[:20])}."
            )
        return table

    def _passed(self, X: Any) -> Any:
        """Return sparse rows unchanged, or as dense rows if `fit` was given a table."""
        if not self.is_sparse_:
            return self.transform(check_array(X, accept_sparse="csr", dtype=_FLOATS).toarray())
        X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS, reset=False)
        return sparse.csr_matrix(X, dtype=self.dtype)

    def _input_names(self, given: Any) -> list[str]:
        if given is None:
            return list(self._names)
        names = [str(name) for name in given]
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(names)}"
            )
        if hasattr(self, "feature_names_in_") and names != list(self.feature_names_in_):
            raise ValueError("input_features is not equal to feature_names_in_")
        return names

    def _check_parameters(self) -> None:
        check_choice("scaling", self.scaling, SCALINGS)
        check_count("max_levels", self.max_levels)
        if self.dtype not in _FLOATS:
            raise ValueError(f"dtype must be np.float32 or np.float64, got {self.dtype!r}.")
        if self.columns is not None and not isinstance(self.columns, Mapping):
            raise TypeError(f"columns must be a dict or None, got {self.columns!r}.")
        for name, kind in (self.columns or {}).items():
            check_choice(f"columns[{name!r}]", kind, KINDS)

    def _check_stored(self) -> None:
        self._check_parameters()
        expect(all(isinstance(column, Column) for column in self.columns_), "known columns")
        expect(bool(self.columns_) != self.is_sparse_, "some columns")
        expect(len(self._names) == len({*self._names}) == self.n_features_in_, "different names")
        expect(all(isinstance(name, str) for name in self._names), "names that are text")
        expect({c.name for c in self.columns_} <= {*self._names}, "columns of the table")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _on_one_line(name: str) -> str:
    """Return a name whose newlines and other control characters are escaped."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in name)
