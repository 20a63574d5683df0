"""A map that scales the columns of rows."""

from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler, normalize

from craftmaps.maps.parts.base import check_facts
from craftmaps.maps.wrapped import WrappedMap, onnx_unit_rows
from craftmaps.storage.packing import storable
from craftmaps.tables.scaling import QuantileCurve
from craftmaps.validation import check_choice, current_name, warn_renamed

COLUMNS = ("none", "center", "standard", "std", "minmax", "maxabs", "quantile")
_RENAMED = {"centre": "center", "deviation": "std", "range": "minmax", "maximum": "maxabs"}
_MOVE_ZEROS = ("center", "standard", "minmax", "quantile")


@storable
class ScaledMap(WrappedMap):
    """Features of rows whose columns are scaled first.

    The features are z(s / |s|) for s = a * c(x) + b, where a, b and the curves c depend on the
    columns.

    Parameters
    ----------
    feature_map : map of this package
        The inner map, which gets the scaled rows.
    columns : {"none", "center", "standard", "std", "minmax", "maxabs", "quantile"}, default="none"
        How each column is scaled:

        - "none": not at all.
        - "center": its mean is subtracted.
        - "standard": its mean is subtracted, and the result is divided by its standard deviation,
          as `StandardScaler` does.
        - "std": it is divided by its standard deviation; zeros stay zeros.
        - "minmax": it is mapped to [0, 1], as `MinMaxScaler` does.
        - "maxabs": it is divided by its largest absolute value, as `MaxAbsScaler` does; zeros stay
          zeros.
        - "quantile": a smooth increasing curve maps its quantiles to normal quantiles, which helps
          with outliers and long tails. A column with two values is standardized instead.

        Sparse rows allow "none", "std" and "maxabs".
    weights : array-like of shape (n_features,) or (n_features, n_features), or None, default=None
        Factor of each scaled column; columns with a larger weight matter more. A matrix is
        multiplied with the scaled rows, so it can weight combinations of columns.
    unit_norm : bool, default=True
        Whether each scaled row is divided by its length.

    Attributes
    ----------
    feature_map_ : map
        The inner map, fitted on scaled rows.
    scale_, offset_ : ndarray of shape (n_features,), or None
        Factor of each column, and the number that is then added. None if columns are not scaled or
        not shifted.
    curves_ : list of n_features curves or None, or None
        With columns="quantile", the curve that is applied to each column first.
    matrix_ : ndarray of shape (n_features, n_features), or None
        The matrix that multiplies scaled rows; None unless `weights` is a matrix.

    Notes
    -----
    `sklearn.pipeline.make_pipeline` can combine any scaler and map. A ScaledMap is itself a map, so
    that a model file and an ONNX model contain the scaling too.

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

    scale_: np.ndarray | None
    offset_: np.ndarray | None
    curves_: list[QuantileCurve | None] | None = None
    matrix_: np.ndarray | None = None

    def __init__(
        self,
        feature_map: Any,
        *,
        columns: str = "none",
        unit_norm: bool = True,
        weights: Any = None,
    ) -> None:
        self.feature_map = feature_map
        self.columns = columns
        self.unit_norm = unit_norm
        self.weights = weights

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        fitted = fitted_scaling(X, self.columns, self.weights)
        inside = self._fitted_inside(applied_scaling(X, *fitted, self.unit_norm), y, X.dtype)
        curves, scale, offset, matrix = fitted
        fitted_here = {"curves_": curves, "scale_": scale, "offset_": offset, "matrix_": matrix}
        return fitted_here | inside

    def _prepared(self, X: Any) -> Any:
        fitted = self.curves_, self.scale_, self.offset_, self.matrix_
        return applied_scaling(X, *fitted, self.unit_norm)

    def _check_stored(self) -> None:
        super()._check_stored()
        check_facts(self, scale_=self._is_per_column(self.scale_))
        check_facts(self, offset_=self._is_per_column(self.offset_))
        curves = self.curves_
        check_facts(self, curves_=curves is None or len(curves) == self.n_features_in_)
        matrix, square = self.matrix_, (self.n_features_in_, self.n_features_in_)
        check_facts(self, matrix_=matrix is None or matrix.shape == square)

    def _is_per_column(self, array: np.ndarray | None) -> bool:
        return array is None or array.shape == (self.n_features_in_,)

    def _onnx(self, g: Any, x: str) -> str:
        scaled = g.double(x)
        if self.curves_ is not None:
            columns = [g.gather(scaled, np.array([i]), axis=1) for i in range(len(self.curves_))]
            curved = [
                column if curve is None else curve.onnx(g, column)
                for curve, column in zip(self.curves_, columns, strict=True)
            ]
            scaled = g.add("Concat", *curved, axis=1)
        if self.scale_ is not None:
            scaled = g.add("Mul", scaled, self.scale_)
        if self.offset_ is not None:
            scaled = g.add("Add", scaled, self.offset_)
        if self.matrix_ is not None:
            scaled = g.add("MatMul", scaled, self.matrix_)
        return self._onnx_inside(g, onnx_unit_rows(g, scaled) if self.unit_norm else scaled)

    @property
    def factor_(self) -> np.ndarray | None:
        """Deprecated name of `scale_`."""
        warn_renamed("ScaledMap.factor_", "scale_")
        return self.scale_

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Rename the attributes of a file of version 0.1.0."""
        if "factor_" in state:
            state["scale_"] = state.pop("factor_")
            state["columns"] = _RENAMED.get(state["columns"], state["columns"])
        return {"weights": None} | state


Curves = list[QuantileCurve | None] | None
Scaling = tuple[Curves, np.ndarray | None, np.ndarray | None, np.ndarray | None]


def scaled_rows(X: Any, columns: str, unit_norm: bool) -> Any:
    """Fit the scaling of `ScaledMap` to X and apply it to X."""
    return applied_scaling(X, *fitted_scaling(X, columns, None), unit_norm)


def fitted_scaling(X: Any, columns: str, weights: Any) -> Scaling:
    """Fit curve, factor and offset of each column of X; the last item is the matrix or None."""
    curves: Curves = None
    if columns == "quantile":
        if sparse.issparse(X):
            _refuse_sparse(columns)
        curves = [_curve(column) for column in X.T.astype(np.float64)]
        X, columns = _curved(X, curves), "standard"
    scale, offset = _scale_and_offset(columns, X)
    if weights is None:
        return curves, scale, offset, None
    weights = np.asarray(weights, dtype=np.float64)
    d = X.shape[1]
    if weights.shape not in ((d,), (d, d)) or not np.isfinite(weights).all():
        raise ValueError(
            f"weights must be {d} finite numbers, one per column, or a matrix of {d} x {d}, got "
            f"shape {weights.shape}."
        )
    if weights.ndim == 2:
        return curves, scale, offset, weights
    scale = weights if scale is None else scale * weights
    return curves, scale, None if offset is None else offset * weights, None


def _curve(column: np.ndarray) -> QuantileCurve | None:
    """Fit the curve of a column; return None if it has at most two values."""
    low, high = column.min(), column.max()
    return QuantileCurve.of(column) if ((column > low) & (column < high)).any() else None


def _curved(X: np.ndarray, curves: list[QuantileCurve | None]) -> np.ndarray:
    result = X.astype(np.float64)
    for i, curve in enumerate(curves):
        if curve is not None:
            result[:, i] = curve(result[:, i])
    return result


def multiplied(X: Any, weights: np.ndarray) -> Any:
    """Multiply rows by the weights of their columns, or by a matrix."""
    return X @ weights if weights.ndim == 2 else X * weights


def applied_scaling(
    X: Any,
    curves: Curves,
    scale: np.ndarray | None,
    offset: np.ndarray | None,
    matrix: np.ndarray | None,
    unit_norm: bool,
) -> Any:
    """Scale rows, in float64 because a column may be large relative to its deviation."""
    if curves is not None:
        X = _curved(X.toarray() if sparse.issparse(X) else X, curves)
    if scale is not None:
        X = X.multiply(scale).tocsr() if sparse.issparse(X) else X * scale
    if offset is not None:
        X = (X.toarray() if sparse.issparse(X) else X) + offset
    if matrix is not None:
        X = np.asarray(X @ matrix)
    return normalize(X) if unit_norm else X


def _scale_and_offset(columns: str, X: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the factor and offset of each column (constant columns are divided by 1)."""
    columns = current_name("columns", columns, _RENAMED)
    check_choice("columns", columns, COLUMNS)
    if sparse.issparse(X) and columns in _MOVE_ZEROS:
        _refuse_sparse(columns)
    if columns == "none":
        return None, None
    X = X.astype(np.float64)
    if columns == "minmax":
        scaler = MinMaxScaler().fit(X)
        return scaler.scale_, scaler.min_
    if columns == "maxabs":
        return 1 / MaxAbsScaler().fit(X).scale_, None
    scaler = StandardScaler(with_mean=columns != "std", with_std=columns != "center").fit(X)
    if columns == "center":
        return None, -scaler.mean_
    scale = 1 / scaler.scale_
    return scale, None if columns == "std" else -scaler.mean_ * scale


def _refuse_sparse(columns: str) -> NoReturn:
    raise ValueError(
        f"columns={columns!r} would fill the zeros of sparse rows; use 'std', 'maxabs' or 'none'."
    )
