"""Kernel ridge regression with the exact kernel of a few rows, judged by leave-one-out errors.

With A = K + alpha I, the coefficients are c = A^-1 y, and leaving out row i changes its residual
from y_i - f(x_i) to c_i / [A^-1]_ii. One Cholesky factor and its inverse give both for one alpha.
One decomposition K = U diag(w) U^T gives both for all alphas, and costs as much as ten of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from craftmaps.loops import cholesky
from craftmaps.search.targets import Targets

_LEAST_ALPHA, _LARGEST_ALPHA = -7, 2  # powers of ten, in units of the mean of the diagonal of K
_STEP = 0.5  # step of the exponent
_FAR = 1.15  # a score this much above the bar does not reach it with another alpha
_CLEARLY = 0.997  # a step to a smaller alpha must lower the score to this share
_FIRST_ROWS = 200  # rows on which all alphas are tried
_SINGLE_ALPHA = 3e-3  # single precision decides as double does: scores differ by 1e-5


@dataclass(frozen=True)
class Judged:
    """The best alpha of one kernel matrix.

    Attributes
    ----------
    alpha : float
    score : float
        The score of the leave-one-out predictions, which compares kernels.
    predicted : ndarray of shape (n_rows, n_columns)
        Leave-one-out predictions.
    """

    alpha: float
    score: float
    predicted: np.ndarray


def judge(
    K: np.ndarray, targets: Targets, near: float | None = None, bar: float = np.inf
) -> Judged:
    """Find the alpha with the best leave-one-out predictions.

    If the best alpha is known to be `near` a value, the search starts there, otherwise at the best
    alpha for the first rows. It takes steps of half a decade while predictions improve. It stops at
    once if the score is far above `bar`, the score of another kernel.
    """
    if near is None or not near > 0:
        few = slice(_FIRST_ROWS)
        first = _scanned(K[few, few], targets.rows(few))
        if len(K) <= _FIRST_ROWS:
            return first
        near = first.alpha
    scale, left_out = _scale(K), _LeftOut.of(K, targets.Y)
    return _walked(lambda alpha: _judged(alpha, left_out(alpha), targets), scale, near, _FAR * bar)


def _scanned(K: np.ndarray, targets: Targets) -> Judged:
    """Try all whole decades, and then half a decade around the best one."""
    values, vectors = np.linalg.eigh(K)  # lets other threads run, unlike scipy.linalg.eigh
    spectrum = _Spectrum(np.maximum(values, 0.0), vectors, vectors**2, targets.Y)

    def best_of(exponents: np.ndarray) -> tuple[float, Judged]:
        alphas = _scale(K) * 10.0**exponents
        tried = [
            _judged(alpha, predicted, targets)
            for alpha, predicted in zip(alphas, spectrum.left_out(alphas), strict=True)
        ]
        first = min(range(len(tried)), key=lambda i: tried[i].score)
        return exponents[first], tried[first]

    exponent, best = best_of(np.arange(_LARGEST_ALPHA, _LEAST_ALPHA - 1, -1.0))
    around = exponent + np.array([_STEP, -_STEP])
    _, near_best = best_of(np.clip(around, _LEAST_ALPHA, _LARGEST_ALPHA))
    return min(best, near_best, key=lambda one: one.score)


def _judged(alpha: float, predicted: np.ndarray, targets: Targets) -> Judged:
    return Judged(float(alpha), targets.score(predicted), predicted)


def _scale(K: np.ndarray) -> float:
    """Return the mean of the diagonal of K, the unit of alpha."""
    return float(np.trace(K)) / len(K)


def judge_unseen(K: np.ndarray, targets: Targets, unseen: np.ndarray, near: float) -> Judged:
    """Find the alpha with which the other rows predict the `unseen` rows best, from `near` on.

    `predicted` has the unseen rows only. Each alpha costs one factor of the other rows.
    """
    seen = ~unseen
    inner, across, held = K[np.ix_(seen, seen)], K[np.ix_(unseen, seen)], targets.rows(unseen)
    middle = targets.Y[seen].mean(axis=0)
    centered = targets.Y[seen] - middle

    def at(alpha: float) -> Judged:
        predicted = across @ cholesky.solve(factor(inner, alpha), centered) + middle
        return _judged(alpha, predicted, held)

    return _walked(at, _scale(K), near)


def _walked(
    at: Callable[[float], Judged], scale: float, near: float, hopeless: float = np.inf
) -> Judged:
    """Find the best alpha in steps down from `near`, or up if the first step is no better.

    `scale` is the mean of the diagonal of the kernel matrix. If the first score is above
    `hopeless`, there are no steps.
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


def factor(K: np.ndarray, alpha: float) -> np.ndarray:
    """Return the upper Cholesky factor of K + alpha I; entries below the diagonal are from K."""
    A = K.copy(order="C")
    A[np.diag_indices_from(A)] += A.dtype.type(alpha)
    if not cholesky.factor(A):
        raise np.linalg.LinAlgError(f"the kernel matrix is not positive definite: {alpha=:.3g}")
    return A


@dataclass(frozen=True)
class _LeftOut:
    """Leave-one-out predictions for one alpha, in single precision if alpha is large enough."""

    K: np.ndarray
    upper: np.ndarray
    single: np.ndarray
    Y: np.ndarray

    @classmethod
    def of(cls, K: np.ndarray, Y: np.ndarray) -> "_LeftOut":
        upper = np.triu(K)
        return cls(K, upper, upper.astype(np.float32), Y)

    def __call__(self, alpha: float) -> np.ndarray:
        many_rows = len(self.K) > _FIRST_ROWS
        is_single = many_rows and alpha >= _SINGLE_ALPHA * _scale(self.K)
        inverse = factor(self.single if is_single else self.upper, alpha)
        cholesky.invert(inverse)
        centered = self.Y - self.Y.mean(axis=0)
        coef = _applied(inverse, centered)
        if is_single:  # a correction for the digits that single precision has lost
            coef += _applied(inverse, centered - self.K @ coef - alpha * coef)
        diagonal = np.einsum("ij,ij->i", inverse, inverse, dtype=np.float64)
        return np.asarray(self.Y - coef / diagonal[:, None])


def _applied(inverse: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return A^-1 times columns in float64, from the inverse of its factor."""
    return np.asarray(inverse @ (inverse.T @ right.astype(inverse.dtype)), dtype=np.float64)


@dataclass(frozen=True)
class _Spectrum:
    values: np.ndarray
    vectors: np.ndarray
    squares: np.ndarray
    Y: np.ndarray

    def left_out(self, alphas: np.ndarray) -> Iterator[np.ndarray]:
        """Yield leave-one-out predictions for each alpha."""
        n, k = self.Y.shape
        shrunk = 1 / (self.values[:, None] + alphas)
        rotated = self.vectors.T @ (self.Y - self.Y.mean(axis=0))
        weighted = (shrunk[:, :, None] * rotated[:, None, :]).reshape(n, -1)
        coefs = (self.vectors @ weighted).reshape(n, len(alphas), k)
        diagonals = self.squares @ shrunk
        for i in range(len(alphas)):
            yield self.Y - coefs[:, i] / diagonals[:, i, None]
