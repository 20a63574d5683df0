"""Preparations of rows for a kernel, by a `ScaledMap` or an `ImageMap`."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from craftmaps.maps import ImageMap, LevelsMap, ScaledMap
from craftmaps.maps.levels import levels_of, with_levels
from craftmaps.maps.parts.images import gradients
from craftmaps.maps.scaled import multiplied, scaled_rows

Weights = tuple[float, ...] | tuple[tuple[float, ...], ...]

_MANY_COLUMNS = 100  # with so many columns, rows may be images or texts with equal units
_EQUAL_RANGES = 0.5  # units are equal if half of the columns have this share of the largest range
_MOST_LEVELS = 150  # levels in all columns together
_MOST_CELLS = 5  # cells per side of the grid of gradients, the default of ImageMap


@dataclass(frozen=True)
class Lesson:
    """The rows that weights were learned from.

    Attributes
    ----------
    n_rows : int
    ratio : float
        The left-out loss of these rows, relative to the loss of other rows. It is below 1, because
        the weights were learned from rows that are left out.
    """

    n_rows: int
    ratio: float = 1.0

    def factor(self, n_rows: int) -> float:
        """Return the factor from the left-out loss of n_rows rows to the loss of new rows."""
        share = min(1.0, self.n_rows / n_rows)
        return 1 / (1 - share * (1 - self.ratio))


@dataclass(frozen=True)
class Scaling:
    """Scaling of columns and rows, with the parameters of `ScaledMap`.

    Weights may be a matrix, row by row. `learned` is set if they come from the targets. `levels`
    are the levels of a `LevelsMap` before the scaling.
    """

    columns: str = "standard"
    unit_norm: bool = False
    weights: Weights | None = None
    learned: Lesson | None = field(default=None, compare=False)
    levels: tuple[tuple[float, float], ...] | None = None

    def around(self, feature_map: Any) -> ScaledMap | LevelsMap:
        """Return a map that prepares rows in this way for `feature_map`."""
        weights = None if self.weights is None else np.array(self.weights)
        scaled = ScaledMap(
            feature_map, columns=self.columns, unit_norm=self.unit_norm, weights=weights
        )
        return scaled if self.levels is None else LevelsMap(scaled, levels=np.array(self.levels))

    @property
    def base(self) -> "Scaling":
        """The part of this preparation that does not depend on weights and lengths of rows."""
        return Scaling(self.columns, levels=self.levels)

    def applied(self, X: Any) -> Any:
        """Fit this preparation to the rows, and return the prepared rows in float64."""
        if self.levels is not None:
            X = with_levels(X, np.array(self.levels))
        scaled = scaled_rows(X, self.columns, unit_norm=False)
        return self.finished(scaled.astype(np.float64, copy=False))

    def finished(self, scaled: Any) -> Any:
        """Return the prepared rows, given the rows that `base` has prepared."""
        if self.weights is not None:
            scaled = multiplied(scaled, np.array(self.weights))
        return normalize(scaled) if self.unit_norm else scaled

    def weighted(self, weights: np.ndarray, learned: Lesson) -> "Scaling":
        """Return the same preparation with learned weights of columns, or with a matrix."""
        return replace(self, weights=_combined(self.weights, weights), learned=learned)

    def is_like(self, other: "Preparation") -> bool:
        """Whether both scale columns and rows in the same way, with any weights."""
        if not isinstance(other, Scaling) or self.levels != other.levels:
            return False
        return self.columns == other.columns and self.unit_norm == other.unit_norm

    def __str__(self) -> str:
        words = [f"{self.columns} columns" if self.columns != "none" else "plain columns"]
        words += ["levels"] * (self.levels is not None) + ["unit norm"] * self.unit_norm
        if self.learned:
            rotated = np.array(self.weights).ndim == 2
            words.append("learned directions" if rotated else "learned weights")
        return ", ".join(words)


@dataclass(frozen=True)
class Gradients:
    """Oriented gradients of gray images of a shape (height, width), as in `ImageMap`."""

    shape: tuple[int, int]
    weights: Weights | None = None
    learned: Lesson | None = field(default=None, compare=False)
    unit_norm: ClassVar[bool] = True  # rows of gradients have length 1
    levels: ClassVar[None] = None

    def around(self, feature_map: Any) -> ImageMap:
        """Return a map that passes the gradients of images to `feature_map`."""
        if self.weights is not None:
            weights = np.array(self.weights)
            feature_map = ScaledMap(feature_map, unit_norm=False, weights=weights)
        return ImageMap(feature_map, cells=image_cells(self.shape), shape=self.shape)

    @property
    def base(self) -> "Gradients":
        """The same gradients without weights."""
        return Gradients(self.shape)

    def applied(self, X: Any) -> np.ndarray:
        """Return the gradients of images in float64."""
        prepared = gradients(X, cells=image_cells(self.shape), shape=self.shape)
        return self.finished(prepared.astype(np.float64, copy=False))

    def finished(self, prepared: np.ndarray) -> np.ndarray:
        """Return the gradients that `base` has computed, times the weights."""
        if self.weights is None:
            return prepared
        return np.asarray(multiplied(prepared, np.array(self.weights)))

    def weighted(self, weights: np.ndarray, learned: Lesson) -> "Gradients":
        """Return the same gradients with learned weights, or with a matrix."""
        return replace(self, weights=_combined(self.weights, weights), learned=learned)

    def is_like(self, other: "Preparation") -> bool:
        """Whether the other preparation computes gradients too, with any weights."""
        return isinstance(other, Gradients)

    def __str__(self) -> str:
        return "oriented gradients" + ", learned weights" * (self.weights is not None)


Preparation = Scaling | Gradients


def _combined(before: Weights | None, weights: np.ndarray) -> Weights:
    """Combine weights of columns with further weights or a matrix."""
    if before is not None:
        first = np.array(before)
        matrix = weights if weights.ndim == 2 or first.ndim == 1 else np.diag(weights)
        weights = first @ matrix if first.ndim == 2 else (first * matrix.T).T
    if weights.ndim == 1:
        return tuple(weights.tolist())
    return tuple(map(tuple, weights.tolist()))


def preparations(X: Any, shape: tuple[int, int] | None = None) -> list[Preparation]:
    """Return preparations to try for rows like X; `shape` is (height, width) for images."""
    scalings = _scalings(X)
    return scalings if shape is None else [*scalings, Gradients(shape)]


def image_cells(shape: tuple[int, int]) -> int:
    """Return the cells per side for `ImageMap`: its default, or fewer for very small images."""
    return min(_MOST_CELLS, *shape)


def _scalings(X: Any) -> list[Preparation]:
    """Return scalings to try for rows like X; sparse rows stay sparse."""
    if sparse.issparse(X):
        return [
            Scaling("none", unit_norm=True),
            Scaling("maxabs"),
            Scaling("std", unit_norm=True),
        ]
    weights = _binary_weights(X)
    tried: list[Preparation] = [Scaling("standard", weights=weights)]
    if _has_numbers(X):
        tried.append(Scaling("quantile", weights=weights))
    tried.append(Scaling("standard", unit_norm=True, weights=weights))
    levels = levels_of(X)
    if _has_mostly_levels(X, levels):
        pairs = tuple((column, value) for column, value in levels.tolist())
        widened = _binary_weights(with_levels(X, levels))
        tried.append(Scaling("standard", weights=widened, levels=pairs))
    if X.shape[1] > _MANY_COLUMNS or _has_equal_units(X):
        tried.append(Scaling("none", unit_norm=True))
    return tried


def _binary_weights(X: np.ndarray) -> tuple[float, ...] | None:
    """Return weights that keep rare values of two-valued columns from dominating distances.

    If a column has two values and one of them is rare, standardization would put the rows with the
    rare value far from all others. With the weight 2 std / range, the distance is at most 2.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    binary = ~((low < X) & (high > X)).any(axis=0) & (high > low)
    if not binary.any():
        return None
    spread = X.std(axis=0, dtype=np.float64)
    weights = np.where(binary, np.minimum(1.0, 2 * spread / np.where(binary, high - low, 1)), 1.0)
    return tuple(weights.tolist())


def _has_numbers(X: np.ndarray) -> bool:
    """Whether any column has more than two values; quantiles do not change other columns."""
    return bool(((X.min(axis=0) < X) & (X.max(axis=0) > X)).any())


def _has_mostly_levels(X: np.ndarray, levels: np.ndarray) -> bool:
    """Whether half of the columns of numbers have few values, and the levels are not too many."""
    numbers = ((X.min(axis=0) < X) & (X.max(axis=0) > X)).any(axis=0).sum()
    return 0 < len(levels) <= _MOST_LEVELS and 2 * len(np.unique(levels[:, 0])) >= numbers


def _has_equal_units(X: np.ndarray) -> bool:
    """Whether the ranges of columns suggest that all have the same unit, such as pixels."""
    ranges = np.ptp(X, axis=0)
    return bool(X.min() >= 0 and np.median(ranges) >= _EQUAL_RANGES * ranges.max())
