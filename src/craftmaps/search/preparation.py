"""How rows are prepared before a kernel sees them: by a `ScaledMap`, or by an `ImageMap`."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from craftmaps.maps import ImageMap, LevelsMap, ScaledMap
from craftmaps.maps.levels import levels_of, with_levels
from craftmaps.maps.parts.images import gradients
from craftmaps.maps.scaled import applied_scaling, fitted_scaling, multiplied

Weights = tuple[float, ...] | tuple[tuple[float, ...], ...]

_MANY_COLUMNS = 100  # from which rows may be images or texts, whose columns have equal units
_EQUAL_RANGES = 0.5  # share of the largest range that half of the columns reach if units are equal
_MOST_LEVELS = 150  # in all columns
_MOST_CELLS = 5  # per side of the grid of gradients, the default of ImageMap


@dataclass(frozen=True)
class Lesson:
    """What weights were learned from.

    Attributes
    ----------
    n_rows : int
    ratio : float
        The left-out loss of these rows over that of others, below 1: leaving out a row does not
        take back what the weights know of it.
    """

    n_rows: int
    ratio: float = 1.0

    def factor(self, n_rows: int) -> float:
        """Factor from the left-out loss of so many rows to the loss of rows that taught nothing."""
        share = min(1.0, self.n_rows / n_rows)
        return 1 / (1 - share * (1 - self.ratio))


@dataclass(frozen=True)
class Scaling:
    """Scaling of columns, of rows, and weights of columns, by the parameters of `ScaledMap`.

    Weights may be a matrix, row by row, and `learned` is there if they come from the targets.
    `levels` are those of a `LevelsMap`, which come first.
    """

    columns: str = "standard"
    unit_norm: bool = False
    weights: Weights | None = None
    learned: Lesson | None = field(default=None, compare=False)
    levels: tuple[tuple[float, float], ...] | None = None

    def around(self, feature_map: Any) -> ScaledMap | LevelsMap:
        """The map of rows that are prepared in this way."""
        weights = None if self.weights is None else np.array(self.weights)
        scaled = ScaledMap(
            feature_map, columns=self.columns, unit_norm=self.unit_norm, weights=weights
        )
        return scaled if self.levels is None else LevelsMap(scaled, levels=np.array(self.levels))

    def applied(self, X: Any) -> Any:
        """Rows prepared by their own columns, in float64."""
        if self.levels is not None:
            X = with_levels(X, np.array(self.levels))
        fitted = fitted_scaling(X, self.columns, self.weights)
        prepared = applied_scaling(X, *fitted, self.unit_norm)
        return prepared.astype(np.float64, copy=False)

    def weighted(self, weights: np.ndarray, learned: Lesson) -> "Scaling":
        """The same preparation, followed by learned weights of columns, or by a matrix."""
        return replace(self, weights=_combined(self.weights, weights), learned=learned)

    def is_like(self, other: "Preparation") -> bool:
        """Whether both scale columns and rows in the same way, whatever their weights."""
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
    """Gray images of a shape (height, width), seen as oriented gradients by `ImageMap`."""

    shape: tuple[int, int]
    weights: Weights | None = None
    learned: Lesson | None = field(default=None, compare=False)
    unit_norm: ClassVar[bool] = True  # the lengths of all rows of gradients
    levels: ClassVar[None] = None

    def around(self, feature_map: Any) -> ImageMap:
        """The map of the gradients of images."""
        if self.weights is not None:
            weights = np.array(self.weights)
            feature_map = ScaledMap(feature_map, unit_norm=False, weights=weights)
        return ImageMap(feature_map, cells=image_cells(self.shape), shape=self.shape)

    def applied(self, X: Any) -> np.ndarray:
        """The gradients of images, in float64."""
        prepared = gradients(X, cells=image_cells(self.shape), shape=self.shape)
        weighted = (
            prepared if self.weights is None else multiplied(prepared, np.array(self.weights))
        )
        return np.asarray(weighted, dtype=np.float64)

    def weighted(self, weights: np.ndarray, learned: Lesson) -> "Gradients":
        """The same gradients with learned weights, or times a matrix."""
        return replace(self, weights=_combined(self.weights, weights), learned=learned)

    def is_like(self, other: "Preparation") -> bool:
        """Whether the other one takes gradients too, whatever their weights."""
        return isinstance(other, Gradients)

    def __str__(self) -> str:
        return "oriented gradients" + ", learned weights" * (self.weights is not None)


Preparation = Scaling | Gradients


def _combined(before: Weights | None, weights: np.ndarray) -> Weights:
    """Weights of columns, and then further ones or a matrix."""
    if before is not None:
        first = np.array(before)
        matrix = weights if weights.ndim == 2 or first.ndim == 1 else np.diag(weights)
        weights = first @ matrix if first.ndim == 2 else (first * matrix.T).T
    if weights.ndim == 1:
        return tuple(weights.tolist())
    return tuple(map(tuple, weights.tolist()))


def preparations(X: Any, shape: tuple[int, int] | None = None) -> list[Preparation]:
    """The preparations to try for rows like X, which may be images of a shape (height, width)."""
    scalings = _scalings(X)
    return scalings if shape is None else [*scalings, Gradients(shape)]


def image_cells(shape: tuple[int, int]) -> int:
    """Cells per side for `ImageMap`: its default, unless images have fewer pixels per side."""
    return min(_MOST_CELLS, *shape)


def _scalings(X: Any) -> list[Preparation]:
    """The scalings to try for rows like X; sparse rows stay sparse."""
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
    """Weights that keep rare values of two-valued columns from dominating all distances.

    A standardized column in which one of two values is rare would put the rows that have it far
    from all others. With the weight 2 std / range the two values stay at most 2 apart.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    binary = ~((low < X) & (high > X)).any(axis=0) & (high > low)
    if not binary.any():
        return None
    spread = X.std(axis=0, dtype=np.float64)
    weights = np.where(binary, np.minimum(1.0, 2 * spread / np.where(binary, high - low, 1)), 1.0)
    return tuple(weights.tolist())


def _has_numbers(X: np.ndarray) -> bool:
    """Whether a column has more than two values; quantiles make no difference to the others."""
    return bool(((X.min(axis=0) < X) & (X.max(axis=0) > X)).any())


def _has_mostly_levels(X: np.ndarray, levels: np.ndarray) -> bool:
    """Whether half of the columns of numbers have few values, and not very many in all."""
    numbers = ((X.min(axis=0) < X) & (X.max(axis=0) > X)).any(axis=0).sum()
    return 0 < len(levels) <= _MOST_LEVELS and 2 * len(np.unique(levels[:, 0])) >= numbers


def _has_equal_units(X: np.ndarray) -> bool:
    """Whether columns seem to be counts or amounts of one unit, such as pixels, by their ranges."""
    ranges = np.ptp(X, axis=0)
    return bool(X.min() >= 0 and np.median(ranges) >= _EQUAL_RANGES * ranges.max())
