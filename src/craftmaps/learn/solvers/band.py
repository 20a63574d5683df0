"""One reduction A = Q T Q^T to a block tridiagonal T, after which every alpha costs little.

It does for large matrices what `tridiagonal` does for small ones.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack
from scipy.sparse.linalg import LinearOperator, eigsh

from craftmaps.learn.solvers.tridiagonal import panel_factor, unit_lower
from craftmaps.threads import at_most_threads

_WIDEST = 128  # columns of a block: wide enough for matrix products at full speed
_STRIP = 4 * _WIDEST  # columns that an update takes at a time


class BandForm:
    """A symmetric matrix as Q T Q^T, T block tridiagonal: (A + alpha I)^-1 B for many alpha.

    A reduction to blocks runs at the speed of matrix products, where one to single diagonals (the
    first step of an eigen-decomposition) is half matrix-vector products and several times slower.
    Blocks serve as well: a solve and the trace of the inverse take n b^2 operations for each alpha.

    Parameters
    ----------
    lower : Fortran-ordered matrix, of which the lower triangle counts; overwritten
    right : matrix B

    Attributes
    ----------
    rotated : ndarray
        Q^T B.
    trace : float
        Of A.
    """

    def __init__(self, lower: np.ndarray, right: np.ndarray, width: int = _WIDEST) -> None:
        self.trace = float(np.trace(lower))
        self._width, self._reflectors = width, lower
        self._factors = _reduce(lower, width)
        starts = range(0, len(lower), width)
        self._diagonal = [lower[i : i + width, i : i + width].copy(order="F") for i in starts]
        self._below = [lower[i : i + width, i - width : i].copy() for i in starts[1:]]
        for block in self._below[: len(self._factors)]:
            block[:] = np.triu(block)  # the rest of it are reflectors
        self.rotated = self.rotate(right)

    # Blocks are too small to share: threads of BLAS would mostly wait for each other.

    @at_most_threads(1)
    def at(self, alpha: float) -> "BlockCholesky":
        """The system (T + alpha I); alpha must make it positive definite."""
        system = self._cholesky(alpha)
        if system is None:
            raise np.linalg.LinAlgError(f"not positive definite at alpha={alpha:.3g}")
        return system

    def _cholesky(self, shift: float) -> "BlockCholesky | None":
        """The factor of T + shift I, or None if that is not positive definite."""
        diagonal, below = [], []
        block = self._diagonal[0]
        for i in range(len(self._diagonal)):
            block = block.copy(order="F")
            block.T.flat[:: len(block) + 1] += shift
            factor, info = lapack.dpotrf(block, lower=1, overwrite_a=1, clean=1)
            if info:
                return None
            diagonal.append(factor)
            if i < len(self._below):
                # B_i = C_i L_i^T, and the next block is D_i+1 - C_i C_i^T.
                C = blas.dtrsm(1.0, factor, self._below[i], side=1, lower=1, trans_a=1)
                below.append(C)
                block = self._diagonal[i + 1] - C @ C.T
        return BlockCholesky(shift, diagonal, below)

    def rotate(self, matrix: np.ndarray) -> np.ndarray:
        """Q^T times a matrix."""
        return self._apply(matrix, transpose=True)

    def unrotate(self, rotated: np.ndarray) -> np.ndarray:
        """Q times a solution."""
        return self._apply(rotated, transpose=False)

    @cached_property
    @at_most_threads(1)
    def largest(self) -> float:
        """The largest eigenvalue, to three digits."""
        return _largest(self._times, sum(map(len, self._diagonal)))

    @at_most_threads(1)
    def smallest(self, least: float) -> float:
        """The smallest eigenvalue to within least / 8 if it is below `least`, otherwise `least`."""
        if self._cholesky(-least) is not None:
            return least
        low, high = -least, least
        while self._cholesky(-low) is None:
            low, high = 2 * low, low
        while high - low > least / 8:
            middle = (low + high) / 2
            low, high = (middle, high) if self._cholesky(-middle) is not None else (low, middle)
        return low

    def _times(self, x: np.ndarray) -> np.ndarray:
        width = self._width
        result = np.concatenate(
            [D @ x[i * width : (i + 1) * width] for i, D in enumerate(self._diagonal)]
        )
        for i, B in enumerate(self._below):
            here, after = slice(i * width, (i + 1) * width), slice((i + 1) * width, (i + 2) * width)
            result[after] += B @ x[here]
            result[here] += B.T @ x[after]
        return result

    def _apply(self, matrix: np.ndarray, transpose: bool) -> np.ndarray:
        result = np.array(matrix, dtype=np.float64, order="F")
        panels = list(enumerate(self._factors, start=1))
        for i, T in panels if transpose else reversed(panels):
            first = i * self._width
            V = unit_lower(self._reflectors[first:, first - self._width : first])
            rows = result[first:]
            rows -= V @ ((T.T if transpose else T) @ (V.T @ rows))
        return result


class BlockCholesky:
    """L L^T = T + shift I, L with diagonal blocks L_i and blocks C_i below them."""

    def __init__(self, shift: float, diagonal: list[np.ndarray], below: list[np.ndarray]) -> None:
        self._shift = shift
        self._diagonal, self._below = diagonal, below
        self._width = len(diagonal[0])
        self._size = sum(map(len, diagonal))

    @at_most_threads(1)
    def solve(self, rotated: np.ndarray) -> np.ndarray:
        """(T + shift I)^-1 times a rotated matrix."""
        return self._solve(rotated)

    def _solve(self, rotated: np.ndarray) -> np.ndarray:
        result = np.array(rotated, dtype=np.float64, order="F")
        blocks = [
            result[start : start + self._width] for start in range(0, self._size, self._width)
        ]
        for i, L in enumerate(self._diagonal):
            if i:
                blocks[i] -= self._below[i - 1] @ blocks[i - 1]
            blocks[i][:] = blas.dtrsm(1.0, L, blocks[i], lower=1)
        for i, L in reversed(list(enumerate(self._diagonal))):
            if i < len(self._below):
                blocks[i] -= self._below[i].T @ blocks[i + 1]
            blocks[i][:] = blas.dtrsm(1.0, L, blocks[i], lower=1, trans_a=1)
        return result

    def freedom(self) -> float:
        """tr A (A + shift I)^-1 = E - shift * tr (T + shift I)^-1."""
        return self._size - self._shift * self._trace_of_inverse()

    @at_most_threads(1)
    def _trace_of_inverse(self) -> float:
        """From the diagonal blocks of the inverse, S_i = L_i^-T (I + C_i^T S_i+1 C_i) L_i^-1."""
        total = 0.0
        after: np.ndarray | None = None
        for i, L in reversed(list(enumerate(self._diagonal))):
            inverse, _ = lapack.dtrtri(L, lower=1)
            if after is None:
                block = inverse.T @ inverse
            else:
                C = self._below[i] @ inverse
                block = inverse.T @ inverse + C.T @ after @ C
            total += float(np.trace(block))
            after = block
        return total

    @at_most_threads(1)
    def smallest(self) -> float:
        """The smallest eigenvalue of T + shift I, to three digits."""
        return 1 / _largest(lambda x: self._solve(x[:, None])[:, 0], self._size)


def _largest(times: Callable[[np.ndarray], np.ndarray], size: int) -> float:
    """The largest eigenvalue of a positive operator, the same in every run."""
    if size < 3:
        return float(np.linalg.eigvalsh(np.array([times(e) for e in np.eye(size)]))[-1])
    start = np.random.default_rng(0).standard_normal(size)
    if not times(start).any():
        return 0.0
    operator = LinearOperator((size, size), times, dtype=np.float64)
    return float(eigsh(operator, 1, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)[0])


def _reduce(A: np.ndarray, width: int) -> list[np.ndarray]:
    """Make A block tridiagonal by block reflections I - V T V^T, kept in it; returns the T.

    With W = A V T and X = W - V T^T V^T W / 2, the reflected matrix is A - V X^T - X V^T.
    """
    size = len(A)
    for start in range(0, size, _STRIP):
        corner = A[start : start + _STRIP, start : start + _STRIP]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
    factors = []
    for first in range(width, size - width, width):
        panel = A[first:, first - width : first]
        reflected, tau, _, _ = lapack.dgeqrf(panel)
        panel[:] = reflected
        V = unit_lower(panel)
        T = panel_factor(V, tau)
        W = _symmetric_product(A, first, V @ T)
        X = W - V @ (T.T @ (V.T @ W) / 2)
        left, right = np.hstack([V, X]), np.hstack([X, V])
        for here, on in _strips(first, size):
            A[here.start :, here] -= left[on.start :] @ right[on].T
        factors.append(T)
    return factors


def _symmetric_product(A: np.ndarray, first: int, right: np.ndarray) -> np.ndarray:
    """A[first:, first:] @ right from the lower triangle and the corners of the strips."""
    result = np.zeros(right.shape)
    for here, on in _strips(first, len(A)):
        strip = A[here.start :, here]
        result[on.start :] += strip @ right[on]
        result[on] += strip[on.stop - on.start :].T @ right[on.stop :]
    return result


def _strips(first: int, size: int) -> list[tuple[slice, slice]]:
    """Columns from `first` on in strips that end at multiples of `_STRIP`; also counted from it."""
    ends = [*range(first - first % _STRIP + _STRIP, size, _STRIP), size]
    starts = [first, *ends[:-1]]
    return [(slice(a, b), slice(a - first, b - first)) for a, b in zip(starts, ends, strict=True)]
