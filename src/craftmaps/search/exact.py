"""Kernel ridge regression with the exact kernel of few rows, judged by leaving out each row.

With K = U diag(w) U^T, the coefficients at every alpha are c = U (w + alpha)^-1 U^T y, and leaving
out row i changes its residual from y_i - f(x_i) to c_i / [(K + alpha I)^-1]_ii.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from craftmaps.search.targets import Targets

_ALPHAS_PER_DECADE = 2
_LEAST_ALPHA, _LARGEST_ALPHA = 1e-7, 1e2  # of the mean of the diagonal of K


@dataclass(frozen=True)
class Judged:
    """The best alpha of one kernel matrix.

    Attributes
    ----------
    alpha : float
    score : float
        That of the left-out predictions, by which kernels are compared.
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
    """The alpha whose left-out predictions are best, on all rows or on the `judging` ones."""
    values, vectors = eigh(K, overwrite_a=True, check_finite=False)
    mean = targets.Y.mean(axis=0)
    rotated = vectors.T @ (targets.Y - mean)
    squares = vectors**2
    scale = float(values.sum()) / len(values)
    values = np.maximum(values, 0.0)
    some = targets if judging is None else targets.rows(judging)
    best: Judged | None = None
    steps = round(_ALPHAS_PER_DECADE * np.log10(_LARGEST_ALPHA / _LEAST_ALPHA))
    for alpha in scale * _LARGEST_ALPHA * 10.0 ** (-np.arange(steps + 1) / _ALPHAS_PER_DECADE):
        shrunk = 1 / (values + alpha)
        coef = vectors @ (shrunk[:, None] * rotated)
        predicted = targets.Y - coef / (squares @ shrunk)[:, None]
        score = some.score(predicted if judging is None else predicted[judging])
        if best is None or score < best.score:
            best = Judged(float(alpha), score, predicted, coef)
    assert best is not None
    return best
