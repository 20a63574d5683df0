"""Rows of Arrow batches as matrices: vectors, arrays and plain columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from craftmaps.tables.table import table_of


def rows_of(
    batch: Any,
    features: Sequence[str],
    labels: Sequence[str] = (),
    weight: str | None = None,
    tables: bool = False,
) -> tuple[Any, Any, np.ndarray | None]:
    """Return X, y and weights of a batch; y is None without labels, and a matrix for several.

    With `tables`, plain columns become a table with columns of any type.
    """
    nested = len(features) == 1 and pa.types.is_nested(batch.schema.field(features[0]).type)
    if tables and not nested:
        X: Any = table_of({name: batch.column(name) for name in features}).loaded()
    else:
        X = _matrix(batch, features)
    targets = [column_of(batch, name) for name in labels]
    y = None if not targets else targets[0] if len(targets) == 1 else np.column_stack(targets)
    return X, y, None if weight is None else column_of(batch, weight)


def _matrix(batch: Any, names: Sequence[str]) -> Any:
    kind = batch.schema.field(names[0]).type
    if len(names) == 1 and pa.types.is_struct(kind):
        return _vectors(_column(batch, names[0]), names[0])
    if len(names) == 1 and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return _arrays(_column(batch, names[0]), names[0])
    columns = [column_of(batch, name) for name in names]
    single = all(column.dtype == np.float32 for column in columns)
    X = np.empty((len(batch), len(names)), np.float32 if single else np.float64)
    for j, column in enumerate(columns):
        if column.dtype.kind not in "fiub":
            raise ValueError(f"column {names[j]!r} holds {column.dtype}, not numbers.")
        X[:, j] = column
    return X


def _column(batch: Any, name: str) -> Any:
    """Return a column as one array, or raise ValueError if values are missing."""
    column = batch.column(name)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    _check_complete(column, name)
    return column


def _check_complete(array: Any, name: str) -> None:
    if array.null_count:
        raise ValueError(
            f"column {name!r} has {array.null_count} missing values; drop or fill them first."
        )


def column_of(batch: Any, name: str) -> np.ndarray:
    """Return a column of numbers or text."""
    return np.asarray(_column(batch, name).to_numpy(zero_copy_only=False))


def _arrays(column: Any, name: str) -> np.ndarray:
    """Return arrays of equal lengths as a matrix."""
    values = column.flatten()
    _check_complete(values, name)
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if len(lengths) and lengths.min() != lengths.max():
        raise ValueError(
            f"column {name!r} holds arrays of {lengths.min()} to {lengths.max()} values; they "
            f"must have equal lengths."
        )
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), -1)


def _vectors(column: Any, name: str) -> Any:
    """Return vectors of pyspark.ml as a dense matrix, or as CSR if some are sparse."""
    names = [field.name for field in column.type]
    if names != ["type", "size", "indices", "values"]:
        raise ValueError(f"column {name!r} holds structs of {names}, not vectors.")
    dense = column.field("type").to_numpy(zero_copy_only=False) == 1
    values = column.field("values")
    if dense.all():
        return _arrays(values, name)
    counts = pc.list_value_length(values).to_numpy(zero_copy_only=False)
    sizes = pc.fill_null(column.field("size"), 0).to_numpy(zero_copy_only=False)
    sizes = np.where(dense, counts, sizes)
    if sizes.min() != sizes.max():
        raise ValueError(
            f"column {name!r} holds vectors of {sizes.min()} to {sizes.max()} values; they must "
            f"have equal lengths."
        )
    starts = np.concatenate([[0], np.cumsum(counts)])
    indices = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)  # correct for dense rows
    indices[np.repeat(~dense, counts)] = column.field("indices").flatten()
    return sparse.csr_matrix(
        (values.flatten().to_numpy(zero_copy_only=False), indices, starts),
        shape=(len(column), int(sizes[0])),
    )
