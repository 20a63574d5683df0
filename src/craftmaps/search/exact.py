"""Kernel ridge regression with the exact kernel of a few rows, judged by leaving out each row.

With K = U diag(w) U^T, the coefficients at every alpha are c = U (w + alpha)^-1 U^T y, and leaving
out row i changes its residual from y_i - f(x_i) to c_i / [(K + alpha I)^-1]_ii.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from craftmaps.search.targets import Targets

_LEAST_ALPHA, _LARGEST_ALPHA = -7, 2  # powers of ten, in units of the mean of the diagonal of K


@dataclass(frozen=True)
class Judged:
    """The best alpha of one kernel matrix.

    Attributes
    ----------
    alpha : float
    score : float
        The score of the left-out predictions, by which kernels are compared.
    predicted : ndarray of shape (n_rows, n_columns)
        What is predicted for each row when it is left out.
    coef : ndarray of shape (n_rows, n_columns)
        Coefficients c of f(x) = mean + sum_i c_i k(x, x_i).
    """

    alpha: float
    score: float
    predicted: np.ndarray
    coef: np.ndarray


def judge(K: np.ndarray, targets: Targets, judging: np.ndarray | None = None) -> Judged:
    """The alpha whose left-out predictions are best, on all rows or on the `judging` ones.

    Alphas are tried in decades at first, and then half a decade around the best one.
    """
    values, vectors = np.linalg.eigh(K)  # lets other threads run, unlike scipy.linalg.eigh
    scale = float(values.sum()) / len(values)
    spectrum = _Spectrum(np.maximum(values, 0.0), vectors, vectors**2, targets.Y)
    some = targets if judging is None else targets.rows(judging)

    def best_of(exponents: np.ndarray) -> tuple[float, Judged]:
        alphas = scale * 10.0**exponents
        tried = []
        for alpha, (predicted, coef) in zip(alphas, spectrum.left_out(alphas), strict=True):
            score = some.score(predicted if judging is None else predicted[judging])
            tried.append(Judged(float(alpha), score, predicted, coef))
        first = min(range(len(tried)), key=lambda i: tried[i].score)
        return exponents[first], tried[first]

    exponent, best = best_of(np.arange(_LARGEST_ALPHA, _LEAST_ALPHA - 1, -1.0))
    _, near = best_of(np.clip(exponent + np.array([0.5, -0.5]), _LEAST_ALPHA, _LARGEST_ALPHA))
    return min(best, near, key=lambda judged: judged.score)


@dataclass(frozen=True)
class _Spectrum:
    values: np.ndarray
    vectors: np.ndarray
    squares: np.ndarray
    Y: np.ndarray

    def left_out(self, alphas: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Left-out predictions and coefficients for each alpha, from one product for all."""
        n, k = self.Y.shape
        shrunk = 1 / (self.values[:, None] + alphas)
        rotated = self.vectors.T @ (self.Y - self.Y.mean(axis=0))
        weighted = (shrunk[:, :, None] * rotated[:, None, :]).reshape(n, -1)
        coefs = (self.vectors @ weighted).reshape(n, len(alphas), k)
        diagonals = self.squares @ shrunk
        for i in range(len(alphas)):
            yield self.Y - coefs[:, i] / diagonals[:, i, None], coefs[:, i]
