"""Kernel ridge regression with the exact kernel of a few rows, judged by leaving out each row.

With A = K + alpha I, the coefficients are c = A^-1 y, and leaving out row i changes its residual
from y_i - f(x_i) to c_i / [A^-1]_ii. One decomposition K = U diag(w) U^T gives both for all alphas,
and costs as much as eight Cholesky factors with their inverses, each for one alpha.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dtrtri

from craftmaps.search.targets import Targets

_LEAST_ALPHA, _LARGEST_ALPHA = -7, 2  # powers of ten, in units of the mean of the diagonal of K
_STEP = 0.5  # of a power of ten
_FAR = 1.15  # ratio of scores that another alpha half a decade away does not make up for
_CLEARLY = 0.997  # share of a score that must be left for a step to a smaller alpha


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


def judge(
    K: np.ndarray, targets: Targets, near: float | None = None, bar: float = np.inf
) -> Judged:
    """The alpha whose left-out predictions are best.

    Alphas are tried in decades at first, and then half a decade around the best one. With an alpha
    that must be `near`, steps of half a decade begin there and go on while predictions get better.
    There is no step from a score that is far above the `bar`, which another kernel has reached.
    """

    def judged(alpha: float, predicted: np.ndarray, coef: np.ndarray) -> Judged:
        return Judged(float(alpha), targets.score(predicted), predicted, coef)

    scale = float(np.trace(K)) / len(K)
    if near is not None and near > 0:
        return _walked(
            lambda alpha: judged(alpha, *_left_out(K, targets.Y, alpha)), scale, near, _FAR * bar
        )
    values, vectors = np.linalg.eigh(K)  # lets other threads run, unlike scipy.linalg.eigh
    spectrum = _Spectrum(np.maximum(values, 0.0), vectors, vectors**2, targets.Y)

    def best_of(exponents: np.ndarray) -> tuple[float, Judged]:
        alphas = scale * 10.0**exponents
        tried = [
            judged(alpha, *found)
            for alpha, found in zip(alphas, spectrum.left_out(alphas), strict=True)
        ]
        first = min(range(len(tried)), key=lambda i: tried[i].score)
        return exponents[first], tried[first]

    exponent, best = best_of(np.arange(_LARGEST_ALPHA, _LEAST_ALPHA - 1, -1.0))
    around = exponent + np.array([_STEP, -_STEP])
    _, near_best = best_of(np.clip(around, _LEAST_ALPHA, _LARGEST_ALPHA))
    return min(best, near_best, key=lambda one: one.score)


def judge_unseen(K: np.ndarray, targets: Targets, unseen: np.ndarray, near: float) -> Judged:
    """The alpha with which the other rows predict the `unseen` ones best, searched from `near`.

    `predicted` has the unseen rows only. One factor of the other rows is all that an alpha costs.
    """
    seen = ~unseen
    inner, across, held = K[np.ix_(seen, seen)], K[np.ix_(unseen, seen)], targets.rows(unseen)
    middle = targets.Y[seen].mean(axis=0)
    centered = targets.Y[seen] - middle

    def at(alpha: float) -> Judged:
        A = inner.copy()
        A[np.diag_indices_from(A)] += alpha
        coef = cho_solve((np.linalg.cholesky(A), True), centered, check_finite=False)
        predicted = across @ coef + middle
        return Judged(alpha, held.score(predicted), predicted, coef)

    return _walked(at, float(np.trace(K)) / len(K), near)


def _walked(
    at: Callable[[float], Judged], scale: float, near: float, hopeless: float = np.inf
) -> Judged:
    """The best alpha in steps down from one that is near, or up if the first step is no better.

    `scale` is the mean of the diagonal of the kernel matrix. There are no steps from a score that
    is `hopeless`.
    """
    exponent = float(np.clip(np.log10(near / scale), _LEAST_ALPHA, _LARGEST_ALPHA))
    first = best = at(scale * 10.0**exponent)
    if first.score > hopeless:
        return first
    for step, share in ((-_STEP, _CLEARLY), (_STEP, 1.0)):
        place = exponent + step
        while _LEAST_ALPHA <= place <= _LARGEST_ALPHA:
            following = at(scale * 10.0**place)
            if following.score >= share * best.score:
                break
            best, place = following, place + step
        if best is not first:
            break
    return best


def _left_out(K: np.ndarray, Y: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Left-out predictions and coefficients for one alpha, by A = L L^T and the inverse of L."""
    A = K.copy()
    A[np.diag_indices_from(A)] += alpha
    inverse, _ = dtrtri(np.linalg.cholesky(A).T, lower=0)  # L^-T: a view that LAPACK takes as it is
    coef = inverse @ (inverse.T @ (Y - Y.mean(axis=0)))
    return Y - coef / np.einsum("ij,ij->i", inverse, inverse)[:, None], coef


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
