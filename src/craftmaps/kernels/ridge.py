"""Ridge regression with the best of several penalties for held-out rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

_RELATIVE_ALPHAS = 10.0 ** np.arange(1, -7.1, -1)  # relative to the mean of the diagonal


class Ridge(NamedTuple):
    """A penalty alpha, its coefficients, and its score on held-out rows."""

    alpha: float
    coef: np.ndarray
    score: float


def best_ridge(
    A: np.ndarray, B: np.ndarray, score: Callable[[np.ndarray], float], least: float = np.inf
) -> Ridge:
    """Minimize score(W) over alpha for W = (A + alpha I)^-1 B.

    If no score is below `least`, W is 0 and alpha is infinite.
    """
    best, diagonal = Ridge(np.inf, np.zeros_like(B), least), np.diag_indices(len(A))
    alphas = _RELATIVE_ALPHAS * (float(np.mean(A[diagonal])) or 1.0)
    for alpha in alphas:
        shifted = A.copy()
        shifted[diagonal] += alpha
        factor, failed = lapack.dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            coef, _ = lapack.dpotrs(factor, B, lower=1)
            found = score(coef)
            if found < best.score:
                best = Ridge(float(alpha), coef, found)
    return best
