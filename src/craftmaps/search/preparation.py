"""How rows are prepared before a kernel sees them: the parameters of `ScaledMap`."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.maps import ScaledMap
from craftmaps.maps.scaled import applied_scaling, fitted_scaling

_MANY_COLUMNS = 100  # from which rows may be images or texts, whose columns have equal units


@dataclass(frozen=True)
class Preparation:
    """Scaling of columns, of rows, and weights of columns, by the parameters of `ScaledMap`.

    `learned` says that the weights come from the targets.
    """

    columns: str = "standard"
    unit_norm: bool = False
    weights: tuple[float, ...] | None = None
    learned: bool = False

    def around(self, feature_map: Any) -> ScaledMap:
        """The map of rows that are prepared in this way."""
        return ScaledMap(
            feature_map,
            columns=self.columns,
            unit_norm=self.unit_norm,
            weights=None if self.weights is None else np.array(self.weights),
        )

    def applied(self, X: Any) -> Any:
        """Rows prepared by their own columns, in float64."""
        fitted = fitted_scaling(X, self.columns, self.weights)
        prepared = applied_scaling(X, *fitted, self.unit_norm)
        return prepared.astype(np.float64, copy=False)

    def weighted(self, weights: np.ndarray) -> "Preparation":
        """The same preparation, with these learned weights of columns besides."""
        before = 1.0 if self.weights is None else np.array(self.weights)
        return replace(self, weights=tuple((weights * before).tolist()), learned=True)

    def is_like(self, other: "Preparation") -> bool:
        """Whether both scale columns and rows in the same way, whatever their weights."""
        return (self.columns, self.unit_norm) == (other.columns, other.unit_norm)

    def __str__(self) -> str:
        words = [f"{self.columns} columns" if self.columns != "none" else "plain columns"]
        words += ["unit norm"] * self.unit_norm + ["learned weights"] * self.learned
        return ", ".join(words)


def preparations(X: Any) -> list[Preparation]:
    """The preparations to try for rows like X; sparse rows stay sparse when they are scaled."""
    if sparse.issparse(X):
        return [
            Preparation("none", unit_norm=True),
            Preparation("maxabs"),
            Preparation("std", unit_norm=True),
        ]
    weights = _binary_weights(X)
    tried = [Preparation("standard", weights=weights)]
    if weights is None or min(weights) == 1 or _has_numbers(X):
        tried.append(Preparation("quantile", weights=weights))
    tried.append(Preparation("standard", unit_norm=True, weights=weights))
    if X.shape[1] > _MANY_COLUMNS:
        tried.append(Preparation("none", unit_norm=True))
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
    return bool(((X.min(axis=0) < X) & (X.max(axis=0) > X)).any())
