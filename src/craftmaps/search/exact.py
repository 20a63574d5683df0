"""Kernel ridge regression with the exact kernel of a few rows, judged by leaving out each row.

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
_STEP = 0.5  # of a power of ten
_FAR = 1.15  # ratio of scores that another alpha half a decade away does not make up for
_CLEARLY = 0.997  # share of a score that must be left for a step to a smaller alpha
_FIRST_ROWS = 200  # on which all alphas are tried, and beyond which
_SINGLE_ALPHA = 3e-3  # single precision decides as double does: scores differ by 1e-5


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
    """

    alpha: float
    score: float
    predicted: np.ndarray


def judge(
    K: np.ndarray, targets: Targets, near: float | None = None, bar: float = np.inf
) -> Judged:
    """The alpha whose left-out predictions are best.

    Steps of half a decade begin at an alpha that must be `near`, and go on while predictions get
    better. Without one, they begin at the alpha that is best for the first rows. There is no step
    from a score that is far above the `bar`, which another kernel has reached.
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
    """The best of all alphas in decades, and then half a decade around the best one."""
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
    """The mean of the diagonal of K, the unit of alpha."""
    return float(np.trace(K)) / len(K)


def judge_unseen(K: np.ndarray, targets: Targets, unseen: np.ndarray, near: float) -> Judged:
    """The alpha with which the other rows predict the `unseen` ones best, searched from `near`.

    `predicted` has the unseen rows only. One factor of the other rows is all that an alpha costs.
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


def factor(K: np.ndarray, alpha: float) -> np.ndarray:
    """The Cholesky factor of K + alpha I, an upper triangle; below it is what K has there."""
    A = K.copy(order="C")
    A[np.diag_indices_from(A)] += A.dtype.type(alpha)
    if not cholesky.factor(A):
        raise np.linalg.LinAlgError(f"the kernel matrix is not positive definite: {alpha=:.3g}")
    return A


@dataclass(frozen=True)
class _LeftOut:
    """Left-out predictions for one alpha, in single precision if alpha is large enough for it."""

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
        if is_single:  # what single precision has lost of the coefficients
            coef += _applied(inverse, centered - self.K @ coef - alpha * coef)
        diagonal = np.einsum("ij,ij->i", inverse, inverse, dtype=np.float64)
        return np.asarray(self.Y - coef / diagonal[:, None])


def _applied(inverse: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A^-1 times columns, from the inverse of its factor, in float64."""
    return np.asarray(inverse @ (inverse.T @ right.astype(inverse.dtype)), dtype=np.float64)


@dataclass(frozen=True)
class _Spectrum:
    values: np.ndarray
    vectors: np.ndarray
    squares: np.ndarray
    Y: np.ndarray

    def left_out(self, alphas: np.ndarray) -> Iterator[np.ndarray]:
        """Left-out predictions for each alpha, from one product for all."""
        n, k = self.Y.shape
        shrunk = 1 / (self.values[:, None] + alphas)
        rotated = self.vectors.T @ (self.Y - self.Y.mean(axis=0))
        weighted = (shrunk[:, :, None] * rotated[:, None, :]).reshape(n, -1)
        coefs = (self.vectors @ weighted).reshape(n, len(alphas), k)
        diagonals = self.squares @ shrunk
        for i in range(len(alphas)):
            yield self.Y - coefs[:, i] / diagonals[:, i, None]
