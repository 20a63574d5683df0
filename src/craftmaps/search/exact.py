"""Kernel ridge regression with the exact kernel of a few rows, judged by leave-one-out errors.

With A = K + alpha I, the coefficients are c = A^-1 y, and leaving out row i changes its residual
from y_i - f(x_i) to c_i / [A^-1]_ii. One Cholesky factor and its inverse give both for one alpha.
One decomposition K = U diag(w) U^T gives both for all alphas, and costs as much as ten of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.loops import cholesky
from craftmaps.search.candidates import Candidate
from craftmaps.search.targets import Targets

_LEAST_ALPHA, _LARGEST_ALPHA = -7, 2  # powers of ten, in units of the mean of the diagonal of K
_STEP = 0.5  # step of the exponent
_FAR = 1.15  # a score this much above the bar does not reach it with another alpha
_CLEARLY = 0.997  # a step to a smaller alpha must lower the score to this share
_EQUAL = 1.001  # scores of a scan up to this ratio count as equal, and the largest alpha is taken
_FIRST_ROWS = 200  # rows on which all alphas are tried
_SINGLE_PIVOT = 1e-3  # with such pivots, scores in single and double precision differ by 1e-4
_FIRST_MARGIN = 4.0  # the first rows have larger pivots than all rows


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
    scale, left_out = _scale(K), _LeftOut(K, targets.Y)
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
        good = _EQUAL * min(one.score for one in tried)
        first = next(i for i, one in enumerate(tried) if one.score <= good)
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


def judge_unseen(
    candidate: Candidate, prepared: Any, targets: Targets, unseen: np.ndarray, near: float
) -> Judged:
    """Find the alpha with which the other rows predict the `unseen` rows best, from `near` on.

    `predicted` has the unseen rows only. Each alpha costs one factor of the other rows.
    """
    taught, held = prepared[~unseen], targets.rows(unseen)
    inner, across = candidate.gram(taught), candidate.gram(prepared[unseen], taught)
    middle = targets.Y[~unseen].mean(axis=0)
    centered = targets.Y[~unseen] - middle
    work = np.empty_like(inner)

    def at(alpha: float) -> Judged:
        predicted = across @ cholesky.solve(factor(inner, alpha, work), centered) + middle
        return _judged(alpha, predicted, held)

    return _walked(at, _scale(inner), near)


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
    falls = False
    for step, share in ((-_STEP, _CLEARLY), (_STEP, 1.0)):
        place = exponent + step
        while _LEAST_ALPHA <= place <= _LARGEST_ALPHA:
            following = at(scale * 10.0**place)
            falls = following.score < best.score
            if following.score >= share * best.score:
                break
            best, place = following, place + step
        if best is not first or falls:  # scores that fall a little on one side rise on the other
            break
    return best


def factor(K: np.ndarray, alpha: float, out: np.ndarray | None = None) -> np.ndarray:
    """Return the upper Cholesky factor of K + alpha I, in `out` if it is given.

    Entries below the diagonal are from K.
    """
    A = _shifted(K, alpha, np.empty_like(K, order="C") if out is None else out)
    if not cholesky.factor(A):
        raise np.linalg.LinAlgError(f"the kernel matrix is not positive definite: {alpha=:.3g}")
    return A


def _has_pivots(least: float, K: np.ndarray, alpha: float, out: np.ndarray) -> bool:
    """Write the factor of K + alpha I to `out`. Return whether all squared pivots are large."""
    done = cholesky.factor(_shifted(K, alpha, out))
    return done and bool(out.diagonal().min() ** 2 >= least)


def _shifted(K: np.ndarray, alpha: float, out: np.ndarray) -> np.ndarray:
    """Write K + alpha I to `out` and return it."""
    np.copyto(out, K)
    np.einsum("ii->i", out)[:] += out.dtype.type(alpha)
    return out


class _LeftOut:
    """Leave-one-out predictions for one alpha, in single precision if alpha is large enough.

    All alphas use the same memory, because fresh memory costs as much time as a factor.
    """

    def __init__(self, K: np.ndarray, Y: np.ndarray) -> None:
        self._K, self._scale = K, _scale(K)
        self._Y, self._centered = Y, Y - Y.mean(axis=0)
        self._least_single = 0.0  # least alpha for which single precision may be enough
        self._matrices: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, alpha: float) -> np.ndarray:
        inverse, is_single = self._factor(alpha)
        cholesky.invert(inverse)
        coef = _applied(inverse, self._centered)
        if is_single:  # a correction for the digits that single precision has lost
            coef += _applied(inverse, self._centered - self._K @ coef - alpha * coef)
        diagonal = np.einsum("ij,ij->i", inverse, inverse).astype(np.float64)
        return np.asarray(self._Y - coef / diagonal[:, None])

    def _factor(self, alpha: float) -> tuple[np.ndarray, bool]:
        """Return the factor with zeros below its diagonal, and whether it is in single precision.

        Its smallest pivot shows whether single precision is enough.
        """
        if alpha >= self._least_single and self._may_be_single(alpha):
            upper, out = self._in_precision(np.float32)
            if _has_pivots(_SINGLE_PIVOT * self._scale, upper, alpha, out):
                return out, True
        self._least_single = max(self._least_single, float(np.nextafter(alpha, np.inf)))
        upper, out = self._in_precision(np.float64)
        return factor(upper, alpha, out), False

    def _may_be_single(self, alpha: float) -> bool:
        """Whether the pivots of the first rows are large, so that those of all rows may be."""
        few = self._K[:_FIRST_ROWS, :_FIRST_ROWS].astype(np.float32, order="C")
        least = _FIRST_MARGIN * _SINGLE_PIVOT * self._scale
        is_clear = alpha >= _SINGLE_PIVOT * self._scale
        return len(self._K) > _FIRST_ROWS and (is_clear or _has_pivots(least, few, alpha, few))

    def _in_precision(self, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the upper triangle of K with zeros below it, and memory for its factor."""
        if dtype not in self._matrices:
            upper = self._K.astype(dtype, order="C")
            for row in range(1, len(upper)):
                upper[row, :row] = 0
            self._matrices[dtype] = upper, np.empty_like(upper)
        return self._matrices[dtype]


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
