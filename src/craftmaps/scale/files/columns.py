"""Columns of Arrow tables as X and y."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from craftmaps.validation import is_integer

_TOGETHER = 16  # columns that are turned into rows at a time, half of the time of one by one


def choose(
    names: Sequence[str], target: Any, columns: Sequence[Any] | None, path: str
) -> tuple[list[int], list[int]]:
    """The places of the targets and of the columns of X among all columns."""
    listed = target if isinstance(target, list | tuple) else [] if target is None else [target]
    targets = [_place(names, name, path) for name in listed]
    if columns is None:
        features = [place for place in range(len(names)) if place not in targets]
    elif len(columns):
        features = [_place(names, name, path) for name in columns]
    else:
        raise ValueError("columns must name at least one column, or be None for all others.")
    for place in targets:
        if place in features:
            raise ValueError(f"{names[place]!r} is the target and cannot be among columns.")
    counts = Counter(names)
    for place in (*targets, *features):
        if counts[names[place]] > 1:  # by name, only the first would be found
            raise ValueError(
                f"{path} has {counts[names[place]]} columns named {names[place]!r}; rename them, "
                f"or leave them out of columns."
            )
    return targets, features


def matrix(columns: Sequence[Any], dtype: np.dtype) -> np.ndarray:
    """Arrow columns of numbers as a C-ordered matrix, NaN where a value is missing."""
    X = np.empty((len(columns[0]), len(columns)), dtype)
    for j in range(0, len(columns), _TOGETHER):
        some = slice(j, j + _TOGETHER)
        X[:, some] = np.stack([_numbers(column) for column in columns[some]], axis=1)
    return X


def labels(columns: Sequence[Any], several: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Arrow columns of targets as numbers or text, and which of them are missing."""
    if not columns:
        return None, None
    missing = np.any([column.is_null().to_numpy(zero_copy_only=False) for column in columns], 0)
    if several:
        return matrix(columns, np.dtype(np.float64)), missing
    column = columns[0]
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type):
        return column.fill_null("").to_numpy(zero_copy_only=False).astype(str), missing
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if column.null_count:
        column = column.fill_null(pa.scalar(0).cast(column.type))
    return column.to_numpy(zero_copy_only=False), missing


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers or booleans."""
    types = arrow().types
    checks = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
    return any(check(kind) for check in checks)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of text."""
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def arrow() -> Any:
    """The module pyarrow."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Parquet and CSV files are read with pyarrow: pip install 'craftmaps[files]'."
        ) from error
    return pyarrow


def _numbers(column: Any) -> np.ndarray:
    pa = arrow()
    if pa.types.is_decimal(column.type) or (column.null_count and pa.types.is_boolean(column.type)):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _place(names: Sequence[str], column: Any, path: str) -> int:
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    if is_integer(column) and -len(names) <= column < len(names):
        return int(column) % len(names)
    shown = ", ".join(map(str, names[:20])) + (", ..." if len(names) > 20 else "")
    raise ValueError(f"{path} has no column {column!r}; its {len(names)} columns are {shown}.")
