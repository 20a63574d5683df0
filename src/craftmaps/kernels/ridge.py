"""Ridge regression with the best of several penalties for held-out rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from craftmaps.loops import cholesky

_RELATIVE_ALPHAS = 10.0 ** np.arange(1, -7.1, -1)  # relative to the mean of the diagonal
_ENOUGH_WORSE = 2


class Ridge(NamedTuple):
    """A penalty alpha, its coefficients, and its score on held-out rows."""

    alpha: float
    coef: np.ndarray
    score: float


def best_ridge(
    A: np.ndarray, B: np.ndarray, score: Callable[[np.ndarray], float], least: float = np.inf
) -> Ridge:
    """Minimize score(W) over alpha for W = (A + alpha I)^-1 B.

    Penalties are tried from the largest on, until two in a row are worse than the best one. If no
    score is below `least`, W is 0 and alpha is infinite.
    """
    best, diagonal, n_worse = Ridge(np.inf, np.zeros_like(B), least), np.diag_indices(len(A)), 0
    alphas = _RELATIVE_ALPHAS * (float(np.mean(A[diagonal])) or 1.0)
    for alpha in alphas:
        factor = A.astype(np.float64, order="C")
        factor[diagonal] += alpha
        if n_worse == _ENOUGH_WORSE or not cholesky.factor(factor):
            break
        coef = cholesky.solve(factor, B)
        found = score(coef)
        if found < best.score:
            best, n_worse = Ridge(float(alpha), coef, found), 0
        elif np.isfinite(best.alpha):
            n_worse += 1
    return best
