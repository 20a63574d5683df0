"""A map that treats the values of some columns as categories."""

from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.maps.parts.base import check_facts
from craftmaps.maps.wrapped import WrappedMap
from craftmaps.storage.packing import storable

MAX_LEVELS = 24  # a column with more different values has no levels
_TOLERANCE = 0.25  # of the smallest distance of two levels; closer values belong to a level


@storable
class LevelsMap(WrappedMap):
    """Features of rows with a column of 0 and 1 appended for each level of some columns.

    A level is one of the few different values of a column. With a kernel on numbers, predictions
    change little between close values. With the appended columns, each value can have its own
    effect, like a category. This suits designed experiments and codes.

    Parameters
    ----------
    feature_map : map of this package
        The inner map, which gets the rows and the appended columns.
    levels : "auto" or array-like of shape (n_levels, 2), default="auto"
        The levels as pairs of the number of a column and a value. "auto" takes all values of the
        columns that have from 3 to 24 different values in the rows of `fit`.

    Attributes
    ----------
    feature_map_ : map
        The inner map, fitted on the rows with the appended columns.
    levels_ : ndarray of shape (n_levels, 2)
        The number of a column and a value for each appended column.

    Notes
    -----
    A value belongs to a level if it differs from it by less than a quarter of the smallest distance
    between two levels of the column, so rounding does not matter. Other values have 0 in all
    appended columns.

    See Also
    --------
    craftmaps.TableEncoder : Turns categories into such columns.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import LevelsMap, Nystroem, OnePassRegressor
    >>> X = np.random.default_rng(0).integers(8, size=(600, 2)).astype(float)
    >>> y = np.array([3, 0, 5, 1, 4, 0, 2, 5])[X.astype(int)].sum(axis=1)
    >>> model = OnePassRegressor(LevelsMap(Nystroem(n_components=60, random_state=0)))
    >>> model.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.99
    True
    """

    levels_: np.ndarray

    def __init__(self, feature_map: Any, *, levels: Any = "auto") -> None:
        self.feature_map = feature_map
        self.levels = levels

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        levels = self._checked_levels(X)
        inside = self._fitted_inside(with_levels(X, levels), y, X.dtype)
        return {"levels_": levels, **inside}

    def _checked_levels(self, X: Any) -> np.ndarray:
        if isinstance(self.levels, str) and self.levels == "auto":
            return levels_of(X)
        try:
            levels = np.asarray(self.levels, dtype=np.float64).reshape(-1, 2)
        except (TypeError, ValueError):
            levels = np.full((1, 2), np.nan)
        columns = levels[:, 0]
        if not (np.isfinite(levels).all() and np.isin(columns, np.arange(X.shape[1])).all()):
            raise ValueError(
                f"levels must be 'auto' or pairs (column, value) with columns from 0 to "
                f"{X.shape[1] - 1}, got {self.levels!r}."
            )
        return np.unique(levels, axis=0)

    def _prepared(self, X: Any) -> Any:
        return with_levels(X, self.levels_)

    def _n_prepared(self) -> int:
        return int(self.n_features_in_) + len(self.levels_)

    def _check_stored(self) -> None:
        levels = self.levels_
        check_facts(self, levels_=levels.dtype == np.float64 and levels.shape == (len(levels), 2))
        columns = np.arange(self.n_features_in_)
        check_facts(self, levels_=bool(np.isin(levels[:, 0], columns).all()))
        super()._check_stored()

    def _onnx(self, g: Any, x: str) -> str:
        rows = g.double(x)
        if len(self.levels_):
            columns, values = self.levels_[:, 0].astype(np.int64), self.levels_[:, 1]
            distance = g.add("Abs", g.add("Sub", g.gather(rows, columns, axis=1), values))
            near = g.double(g.add("LessOrEqual", distance, _tolerance(self.levels_)))
            rows = g.add("Concat", rows, near, axis=1)
        return self._onnx_inside(g, rows)


def levels_of(X: Any) -> np.ndarray:
    """Return columns and values of the levels, for columns of X with few different values."""
    found = [np.empty((0, 2))]
    for j in range(X.shape[1]):
        column = X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j]
        # The first rows are enough to exclude most columns with many values.
        if len(np.unique(column[: 4 * MAX_LEVELS])) <= MAX_LEVELS:
            values = np.unique(column)
            if 2 < len(values) <= MAX_LEVELS:
                found.append(np.column_stack([np.full(len(values), j), values]))
    return np.concatenate(found).astype(np.float64)


def with_levels(X: Any, levels: np.ndarray) -> Any:
    """Append a column of 0 and 1 to the rows for each level."""
    columns, values, tolerance = levels[:, 0].astype(np.int64), levels[:, 1], _tolerance(levels)
    if sparse.issparse(X):
        near = np.abs(X[:, columns].toarray().astype(np.float64) - values) <= tolerance
        return sparse.hstack([X, sparse.csr_array(near.astype(X.dtype))], format="csr")
    near = np.abs(X[:, columns].astype(np.float64) - values) <= tolerance
    return np.concatenate([X, near.astype(X.dtype)], axis=1)


def _tolerance(levels: np.ndarray) -> np.ndarray:
    """Return how far a value may be from each level; rounding to float32 changes it far less."""
    tolerance = np.zeros(len(levels))
    for column in np.unique(levels[:, 0]):
        own = levels[:, 0] == column
        values = np.sort(levels[own, 1])
        gap = np.diff(values).min() if len(values) > 1 else 1e-3 * max(1.0, abs(values[0]))
        tolerance[own] = _TOLERANCE * gap
    return tolerance
