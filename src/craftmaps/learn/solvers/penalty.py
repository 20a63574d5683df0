"""Penalties b^T P b of a feature map, which a change of coordinates turns into |u|^2.

A feature map may have a method `penalty()` that returns a symmetric positive semi-definite matrix P
with one row per feature. The learner then solves (H + alpha P) b = G. If the features are raw
kernel columns of landmarks, for example, P is the kernel matrix of the landmarks. Without this
method, the penalty is |b|^2.
"""

from typing import Any

import numpy as np
from scipy.linalg import eigh, lapack, solve_triangular

from craftmaps.learn.solvers.factor import factor_upper

_MIN_RECIPROCAL_CONDITION = 1e-10  # at which a Cholesky factor can still be inverted safely


def has_penalty(feature_map: Any) -> bool:
    """Whether a map has a penalty of its own."""
    return callable(getattr(feature_map, "penalty", None))


def penalty_of(feature_map: Any, n_features: int) -> np.ndarray | None:
    """Return the checked penalty matrix of a fitted map, or None for the identity."""
    if not has_penalty(feature_map):
        return None
    penalty = np.asarray(feature_map.penalty(), dtype=np.float64)
    if penalty.shape != (n_features, n_features) or not np.isfinite(penalty).all():
        raise ValueError(
            f"penalty() of {type(feature_map).__name__} must be a finite matrix of shape "
            f"{(n_features, n_features)}, got shape {penalty.shape}."
        )
    scale = np.abs(penalty).max()
    if np.abs(penalty - penalty.T).max() > 1e-6 * scale or penalty.diagonal().min() < -1e-6 * scale:
        raise ValueError(
            f"penalty() of {type(feature_map).__name__} must be symmetric and positive "
            f"semi-definite."
        )
    return penalty


def in_place(fit_intercept: bool, penalized: bool) -> bool:
    """Whether a system is solved in the matrix of the sums, without another one of its size."""
    return fit_intercept and not penalized


class Identity:
    """The penalty |b|^2, which needs no change of coordinates."""

    free = 0

    def reduce(
        self, lower: np.ndarray, right: np.ndarray, square: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return lower, right, square

    def restore(self, reduced: np.ndarray) -> np.ndarray:
        return reduced

    def rows(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return Z, np.zeros(len(Z))

    def matrices(self, n_features: int) -> tuple[np.ndarray | None, np.ndarray]:
        """Return M and F so that `rows(Z)` is Z M and the squared lengths of Z F; None means I."""
        return None, np.empty((n_features, 0))


class CholeskyWhitening:
    """Coordinates u for P = L L^T of full rank: b = L^-T u has the penalty |u|^2."""

    free = 0

    def __init__(self, factor: np.ndarray) -> None:
        self._factor = factor

    def reduce(
        self, lower: np.ndarray, right: np.ndarray, square: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        white, _ = lapack.dsygst(lower, self._factor, lower=1, overwrite_a=1)
        return white, solve_triangular(self._factor, right, lower=True), square

    def restore(self, reduced: np.ndarray) -> np.ndarray:
        return np.asarray(solve_triangular(self._factor, reduced, lower=True, trans="T"))

    def rows(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the features for u, and the leverage of directions without penalty."""
        return solve_triangular(self._factor, Z.T, lower=True).T, np.zeros(len(Z))

    def matrices(self, n_features: int) -> tuple[np.ndarray | None, np.ndarray]:
        return self.rows(np.eye(n_features))[0], np.empty((n_features, 0))


class EigenWhitening:
    """Coordinates for P of any rank: b = A u + N v has the penalty |u|^2.

    A^T P A = I and P N = 0, so v is not penalized. v is eliminated (a Schur complement). Directions
    of N in which the features do not vary get no coefficient. They occur in kernel matrices of
    dependent landmarks.
    """

    def __init__(self, values: np.ndarray, vectors: np.ndarray, precision: np.dtype) -> None:
        kept = values > len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
        self._range = vectors[:, kept] / np.sqrt(values[kept])
        self._null = vectors[:, ~kept]
        self._eps = float(np.finfo(precision).eps)

    def reduce(
        self, lower: np.ndarray, right: np.ndarray, square: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        full = np.tril(lower)
        full += np.tril(full, -1).T
        null_full = self._null.T @ full
        values, vectors = eigh(null_full @ self._null) if len(null_full) else _nothing()
        used = values > len(full) * self._eps * np.trace(full)
        self._free = self._null @ vectors[:, used] / np.sqrt(values[used])  # F^T H F = I
        self.free = int(used.sum())
        self._coupling = self._free.T @ full @ self._range
        self._free_right = self._free.T @ right
        white = self._range.T @ full @ self._range - self._coupling.T @ self._coupling
        reduced_right = self._range.T @ right - self._coupling.T @ self._free_right
        left = square - np.square(self._free_right).sum(axis=0)
        return np.asfortranarray(white), reduced_right, left

    def restore(self, reduced: np.ndarray) -> np.ndarray:
        free = self._free_right - self._coupling @ reduced
        return np.asarray(self._range @ reduced + self._free @ free)

    def rows(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        free = Z @ self._free
        return Z @ self._range - free @ self._coupling, np.square(free).sum(axis=1)

    def matrices(self, n_features: int) -> tuple[np.ndarray | None, np.ndarray]:
        return self._range - self._free @ self._coupling, self._free


def _nothing() -> tuple[np.ndarray, np.ndarray]:
    return np.empty(0), np.empty((0, 0))


def whitening(
    penalty: np.ndarray | None, precision: np.dtype
) -> Identity | CholeskyWhitening | EigenWhitening:
    """Return the change of coordinates for a penalty matrix, the cheapest that is safe."""
    if penalty is None:
        return Identity()
    norm = np.abs(penalty).sum(axis=0).max()
    upper = np.asfortranarray(np.triu(penalty))
    failed = factor_upper(upper)
    if not failed and norm and lapack.dpocon(upper, norm)[0] > _MIN_RECIPROCAL_CONDITION:
        return CholeskyWhitening(np.asfortranarray(upper.T))
    values, vectors = eigh(penalty)
    return EigenWhitening(values, vectors, precision)
