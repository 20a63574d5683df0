"""A map of rows that are scaled first, as one transformer."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler, normalize

from craftmaps.maps.wrapped import WrappedMap
from craftmaps.storage.packing import storable
from craftmaps.validation import check_choice

COLUMNS = ("none", "centre", "standard", "deviation", "range", "maximum")


@storable
class ScaledMap(WrappedMap):
    """Features of scaled rows: z((a * x + b) / |a * x + b|), a and b learnt from columns.

    Parameters
    ----------
    feature_map : map of this package
        What the scaled rows are given to.
    columns : str, default="none"
        What is done to each column: "centre" takes off its mean; "standard" also divides by its
        standard deviation, "deviation" does only that; "range" brings it to [0, 1] and "maximum"
        to [-1, 1] without moving 0. Sparse rows allow "deviation", "maximum" and "none".
    unit_norm : bool, default=True
        Whether each row is then divided by its length.

    Attributes
    ----------
    feature_map_ : the map, fitted on scaled rows
    factor_, offset_ : ndarray of shape (n_features,), or None
        a and b.

    Notes
    -----
    `sklearn.pipeline.make_pipeline` does the same with any steps. This is a map like the others, so
    that a model file and an ONNX model hold the scaling too.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from craftmaps import CraftMap, OnePassClassifier, Polynomial, ScaledMap
    >>> X, y = load_wine(return_X_y=True)
    >>> inner = CraftMap(Polynomial(degree=3), n_components=128, random_state=0)
    >>> model = OnePassClassifier(ScaledMap(inner, columns="standard"))
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95
    True
    """

    factor_: np.ndarray | None
    offset_: np.ndarray | None

    def __init__(self, feature_map: Any, *, columns: str = "none", unit_norm: bool = True) -> None:
        self.feature_map = feature_map
        self.columns = columns
        self.unit_norm = unit_norm

    def _learn(self, X: Any, y: Any, rng: np.random.Generator) -> None:
        self.factor_, self.offset_ = _factor_and_offset(self.columns, X)
        self._fit_inside(X, y)

    def _changed(self, X: Any) -> Any:
        return _applied(X, self.factor_, self.offset_, self.unit_norm)

    def is_sound(self) -> bool:
        sizes = [array.shape for array in (self.factor_, self.offset_) if array is not None]
        return super().is_sound() and all(size == (self.n_features_in_,) for size in sizes)


def scaled_rows(X: Any, columns: str, unit_norm: bool) -> Any:
    """Rows scaled by what they themselves teach, see `ScaledMap`."""
    return _applied(X, *_factor_and_offset(columns, X), unit_norm)


def _applied(X: Any, factor: np.ndarray | None, offset: np.ndarray | None, unit_norm: bool) -> Any:
    """In float64, because columns may be large beside their deviations."""
    if factor is not None:
        X = X.multiply(factor).tocsr() if sparse.issparse(X) else X * factor
    if offset is not None:
        X = (X.toarray() if sparse.issparse(X) else X) + offset
    return normalize(X) if unit_norm else X


def _factor_and_offset(columns: str, X: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """a and b of each column; a constant column is not divided by its deviation of 0."""
    check_choice("columns", columns, COLUMNS)
    if sparse.issparse(X) and columns in ("centre", "standard", "range"):
        raise ValueError(
            f"columns={columns!r} would fill the zeros of sparse rows; use 'deviation', 'maximum' "
            f"or 'none'."
        )
    if columns == "none":
        return None, None
    X = X.astype(np.float64)
    if columns == "range":
        scaler = MinMaxScaler().fit(X)
        return scaler.scale_, scaler.min_
    if columns == "maximum":
        return 1 / MaxAbsScaler().fit(X).scale_, None
    scaler = StandardScaler(with_mean=columns != "deviation", with_std=columns != "centre").fit(X)
    if columns == "centre":
        return None, -scaler.mean_
    factor = 1 / scaler.scale_
    return factor, None if columns == "deviation" else -scaler.mean_ * factor
