"""Choose the columns of X, y and weights, and convert Arrow columns to arrays."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from craftmaps.scale.files.errors import FileError
from craftmaps.scale.files.options import ReadOptions
from craftmaps.validation import is_integer

_COLUMNS_AT_A_TIME = 16  # converting so many columns to rows together halves the time


@dataclass(frozen=True)
class Layout:
    """The columns of a file: all names, and the places of features, targets and weights.

    If columns have no names, their indices are their names.
    """

    path: str
    names: list[Any]
    features: list[int]
    targets: list[int]
    weights: list[int]

    @property
    def wanted(self) -> list[int]:
        """Places of all columns to read."""
        return [*self.features, *self.targets, *self.weights]

    def feature_names(self) -> list[Any]:
        """Names of the columns of X."""
        return [self.names[place] for place in self.features]


def choose(names: Sequence[Any], options: ReadOptions, path: str) -> Layout:
    """Choose columns by the options, in the first file."""
    targets = [_place(names, name, path) for name in options.targets]
    weights = [] if options.weight is None else [_place(names, options.weight, path)]
    if options.columns is None:
        features = [place for place in range(len(names)) if place not in (*targets, *weights)]
    elif len(options.columns):
        features = [_place(names, name, path) for name in options.columns]
    else:
        raise ValueError("columns must name at least one column, or be None for all others.")
    if not features:
        raise FileError(path, "there is no column to learn from besides the target and the weight")
    for role, places in (("target", targets), ("weight", weights)):
        for place in places:
            if place in features:
                reason = f"it is the {role} and cannot be a column of X"
                raise FileError(path, reason, "columns", None, names[place])
    layout = Layout(path, list(names), features, targets, weights)
    counts = Counter(names)
    for name in (names[place] for place in layout.wanted):
        if counts[name] > 1:  # a name would find only the first of them
            reason = f"there are {counts[name]} columns of this name, so rename them"
            raise FileError(path, reason, "columns", None, name)
    return layout


def choose_like(first: Layout, names: Sequence[Any], options: ReadOptions, path: str) -> Layout:
    """Choose the same columns by name in a later file, in any order.

    Unless the options choose columns, the file must not have other columns.
    """
    targets, weights = (
        [first.names[place] for place in places] for places in (first.targets, first.weights)
    )
    weight = weights[0] if weights else None
    by_name = replace(options, target=targets, weight=weight, columns=first.feature_names())
    layout = choose(names, by_name, path)
    if options.columns is None:
        for name in names:
            if name not in first.names:
                raise FileError(path, f"{first.path} has no such column", "columns", None, name)
    return layout


def matrix(columns: Sequence[Any], dtype: np.dtype) -> np.ndarray:
    """Convert Arrow columns of numbers to a C-ordered matrix, with NaN for missing values."""
    X = np.empty((len(columns[0]), len(columns)), dtype)
    for j in range(0, len(columns), _COLUMNS_AT_A_TIME):
        some = slice(j, j + _COLUMNS_AT_A_TIME)
        X[:, some] = np.stack([_numbers(column) for column in columns[some]], axis=1)
    return X


def labels(columns: Sequence[Any], several: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Convert Arrow columns of targets to numbers or text; also return which are missing.

    Several targets are numbers, and NaN if they are missing.
    """
    if not columns:
        return None, None
    if several:
        return matrix(columns, np.dtype(np.float64)), None
    column = columns[0]
    missing = column.is_null().to_numpy(zero_copy_only=False)
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type):
        return column.fill_null("").to_numpy(zero_copy_only=False).astype(str), missing
    if pa.types.is_decimal(column.type):
        whole = column.type.scale == 0 and column.type.precision <= 18
        column = column.cast(pa.int64() if whole else pa.float64())
    if column.null_count:
        column = column.fill_null(pa.scalar(0).cast(column.type))
    return column.to_numpy(zero_copy_only=False), missing


def weights_of(columns: Sequence[Any]) -> np.ndarray | None:
    """Convert the Arrow column of weights, if there is one; missing weights become NaN."""
    return None if not columns else matrix(columns, np.dtype(np.float64))[:, 0]


def is_number(kind: Any) -> bool:
    """Whether an Arrow type contains numbers or booleans."""
    types = arrow().types
    checks = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
    return any(check(kind) for check in checks)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type contains text."""
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def told(name: Any, texts: Any, kind: str, row: int) -> tuple[Any, str]:
    """Return the column and a description of a bad value, which is given as in the file."""
    text = texts[row].as_py()
    has_comma = kind == "number" and re.fullmatch(r"[+-]?\d+,\d+", text)
    way_out = "; decimal=',', or --decimal , in a terminal, reads decimal commas"
    return name, f"{text!r} is not a {kind}{way_out if has_comma else ''}"


def plain_type(kind: Any) -> Any:
    """Return the Arrow type of a column in a table, without dictionaries and with one text type."""
    pa = arrow()
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if is_text(kind) or pa.types.is_string_view(kind) else kind


def common_type(one: Any, other: Any) -> Any:
    """Return the Arrow type for the values of both types, or raise ArrowException."""
    pa = arrow()
    schemas = [pa.schema([("column", kind)]) for kind in (one, other)]
    return pa.unify_schemas(schemas, promote_options="permissive").field("column").type


def arrow() -> Any:
    """Import pyarrow, or raise ImportError with advice."""
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


def _place(names: Sequence[Any], column: Any, path: str) -> int:
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    stripped = [name.strip() if isinstance(name, str) else name for name in names]
    if isinstance(column, str) and stripped.count(column) == 1:  # of a header such as "a, b"
        return stripped.index(column)
    if is_integer(column) and -len(names) <= column < len(names):
        return int(column) % len(names)
    shown = ", ".join(map(str, names[:20])) + (", ..." if len(names) > 20 else "")
    raise FileError(path, f"there is no column {column!r}; its {len(names)} columns are {shown}")
