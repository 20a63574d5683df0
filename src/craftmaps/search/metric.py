"""Weights of columns from the gradients of a fitted kernel model (recursive feature machines).

A column along which predictions do not change needs no distance. Weights are powers of the mean
squared derivative of f by each column, and are learned several times, each time from rows that are
seen through the weights before (Radhakrishnan et al., Science 383, 2024).
"""

from typing import Any

import numpy as np
from scipy import sparse

from craftmaps.kernels import Gaussian, Laplacian, Matern
from craftmaps.search.candidates import Candidate
from craftmaps.search.targets import Targets

_MAX_COLUMNS_OF_TARGETS = 16  # whose gradients are computed
_MAX_LAPLACIAN_COLUMNS = 300
_LARGEST_ALPHA = 0.01  # a larger penalty would flatten the gradients


def has_gradients(candidate: Candidate, rows: Any) -> bool:
    """Whether weights can be learned with this kernel for rows like these."""
    if sparse.issparse(rows):
        return False
    if isinstance(candidate.kernel, Laplacian):  # whose signs cost a matrix for each column
        return bool(rows.shape[1] <= _MAX_LAPLACIAN_COLUMNS)
    return isinstance(candidate.kernel, Gaussian | Matern)


def relevance(
    candidate: Candidate, prepared: np.ndarray, targets: Targets, alpha: float
) -> np.ndarray:
    """Mean squared derivatives by the columns of prepared rows, the largest one 1 (or all 0)."""
    K = candidate.gram(prepared)
    K[np.diag_indices_from(K)] += min(alpha, _LARGEST_ALPHA)
    Y = targets.Y[:, :_MAX_COLUMNS_OF_TARGETS]
    coef = np.linalg.solve(K, Y - Y.mean(axis=0))
    squares = squared_derivatives(candidate.kernel, prepared, coef)
    largest = float(squares.max(initial=0.0))
    return squares / largest if largest > 0 else np.zeros(len(squares))


def squared_derivatives(kernel: object, X: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """The mean over rows and targets of (df / dx_j)^2 for each column j, up to a common factor.

    f(x) = sum_i c_i k(x, x_i), evaluated at the rows x_i themselves.
    """
    total = np.zeros(X.shape[1])
    if isinstance(kernel, Laplacian):
        K = np.asarray(kernel(X))
        for j, column in enumerate(X.T):
            signs = np.sign(column[:, None] - column)
            total[j] = np.mean(((K * signs) @ coef) ** 2)
        return total
    slopes = _slopes(kernel, X)
    for c in coef.T:
        weights = slopes * c
        gradient = weights.sum(axis=1)[:, None] * X - weights @ X
        total += np.mean(gradient**2, axis=0)
    return total


def _slopes(kernel: object, X: np.ndarray) -> np.ndarray:
    """s(|x - y|) with grad_x k(x, y) = -s(|x - y|) (x - y), up to a factor."""
    if isinstance(kernel, Gaussian):
        return np.asarray(kernel(X))
    assert isinstance(kernel, Matern)
    if kernel.nu == 0.5:
        K = np.asarray(kernel(X))
        distances = -np.log(np.maximum(K, 1e-300))
        np.fill_diagonal(distances, 1.0)
        slopes = K / np.maximum(distances, 1e-12)
        np.fill_diagonal(slopes, 0.0)
        return np.asarray(slopes)
    # the derivative of a Matern kernel of nu is -s times a Matern kernel of nu - 1
    lower = kernel.nu - 1
    gamma = float(kernel.gamma) * np.sqrt(kernel.nu / lower)
    return np.asarray(Matern(nu=lower, gamma=gamma)(X))
