"""Whitening of kernel columns: K_LL^(-1/2) up to a rotation, without rounding errors."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.linalg import lapack

from craftmaps.loops import cholesky
from craftmaps.maps.parts.base import check_facts
from craftmaps.storage.packing import storable
from craftmaps.threads import at_most_threads

_MAX_LANDMARKS_ONE_THREAD = 4096  # with so few, BLAS threads gain little, and lose on busy cores
_BLOCK_COLUMNS = 256  # columns of a triangle that are multiplied at a time
_BLOCK_ROWS = 64  # rows of a transposed matrix that are copied at a time
_RECOVERABLE = 1e-6  # least squared pivot, relative to the largest, of a factor to be recovered
_PIVOT_MARGIN = 64  # in eps; a smaller squared pivot may be a rounding error


@storable
@dataclass(frozen=True)
class Whitening:
    """The inverse W of a pivoted Cholesky factor of K_LL, with W' K_LL W = I.

    k(x, L) W are the whitened features. Landmarks are in the order of their pivots, so W is upper
    triangular. `values` are the squared pivots in decreasing order. Landmarks beyond the rank are
    not needed. In files of version 0.1.0, `triangular` may be False: the columns of W are then
    eigenvectors of K_LL, divided by the square roots of the eigenvalues `values`.
    """

    values: np.ndarray
    matrix: np.ndarray
    triangular: bool

    @classmethod
    def draw(cls, gram: np.ndarray, dtype: np.dtype) -> tuple[Self, np.ndarray]:
        """Return the whitening in the precision `dtype`, and the new order of the landmarks.

        `gram` is overwritten.
        """
        with one_thread_if_few(len(gram)):
            factor, order = pivoted_factor(gram, dtype)
            values = factor.diagonal() ** 2
            inverse, _ = lapack.dtrtri(factor, lower=0, overwrite_c=1)
        matrix = np.zeros(inverse.shape, dtype=dtype)
        for i in range(len(inverse)):
            matrix[i, i:] = inverse[i, i:]
        return cls(values, matrix, True), order

    @property
    def rank(self) -> int:
        """Number of columns that are not rounding errors."""
        return int(self.matrix.shape[1])

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks, from the first on, whose kernel values are needed."""
        return len(self.matrix)

    def rounded(self, dtype: np.dtype) -> Self:
        """Return the whitening for kernel values of another precision, which may lower the rank."""
        smallest = _smallest_pivot if self.triangular else _smallest_eigenvalue
        least = smallest(len(self.values), dtype) * self.values.max(initial=0.0)
        rank = min(self.rank, int(np.count_nonzero(self.values > least)))
        needed = rank if self.triangular else self.n_landmarks
        return replace(self, matrix=self.matrix[:needed, :rank].astype(dtype, copy=False))

    def fill(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write the whitened columns of X = k(x, L); columns beyond the rank are 0.

        X and `out` may be the same array.
        """
        if self.triangular:
            _times_upper(X, self.matrix, out)
        else:
            out[:, : self.rank] = X @ self.matrix
        out[:, self.rank :] = 0

    @property
    def n_recoverable(self) -> int:
        """Number of landmarks, from the first on, that `fill_landmarks` is accurate for."""
        least = _RECOVERABLE * self.values.max(initial=0.0)
        return int(np.count_nonzero(self.values >= least)) if self.triangular else 0

    def fill_landmarks(self, places: np.ndarray, out: np.ndarray) -> None:
        """Write whitened columns of rows that are landmarks, without their kernel values.

        `places` has the place of the landmark of each row, and -1 for other rows, which are left
        alone. As W' K_LL W = I, the columns of landmarks are the rows of the inverse of W'.
        """
        n = self.n_recoverable
        inverse = np.array(self.matrix[:n, :n], order="C")
        with one_thread_if_few(n):
            cholesky.invert(inverse)
        rows = np.argsort(places, kind="stable")[np.count_nonzero(places < 0) :]
        for start in range(0, len(rows), _BLOCK_ROWS):
            some = rows[start : start + _BLOCK_ROWS]
            first, stop = places[some[0]], places[some[-1]] + 1
            columns = inverse[:stop, first:stop].T
            out[some, :stop] = columns[places[some] - first]
            out[some, stop:] = 0

    def check(self, n_in: int, n_out: int) -> None:
        n_landmarks = self.n_landmarks if self.triangular else n_in
        check_facts(
            self,
            matrix=self.matrix.ndim == 2
            and len(self.matrix) == n_landmarks <= n_in
            and self.rank <= min(n_landmarks, n_out),
            values=self.values.ndim == 1 and self.rank <= len(self.values) <= n_in,
        )

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        whole = np.zeros((n_in, n_out))
        whole[: self.n_landmarks, : self.rank] = self.matrix
        return str(g.add("MatMul", x, whole))


def one_thread_if_few(n_landmarks: int) -> Any:
    """Return a context in which BLAS has one thread if there are few landmarks."""
    return at_most_threads(1) if n_landmarks <= _MAX_LANDMARKS_ONE_THREAD else nullcontext()


def pivoted_factor(gram: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the Cholesky factor U' U = P' K_LL P of the independent landmarks, and P.

    The size of U is the numerical rank of K_LL for kernel values of the precision `dtype`. U is
    computed in the memory of `gram`, because for many landmarks a second matrix may not fit. The
    entries below the diagonal are not 0 but meaningless.
    """
    n = len(gram)
    least = _smallest_pivot(n, dtype) * gram.diagonal().max(initial=0.0)
    factor, order, rank, _ = lapack.dpstrf(gram.T, tol=least, lower=0, overwrite_a=1)
    memory = factor.T.reshape(-1)
    for column in range(1, rank if rank < n else 1):  # close the gaps between shorter columns
        memory[column * rank : (column + 1) * rank] = memory[column * n : column * n + rank]
    return memory[: rank * rank].reshape(rank, rank).T, order - 1


def _smallest_eigenvalue(n_landmarks: int, dtype: np.dtype) -> float:
    """Return the share of the largest eigenvalue below which eigenvalues are rounding errors."""
    return max(n_landmarks * float(np.finfo(np.float64).eps), float(np.finfo(dtype).eps))


def _smallest_pivot(n_landmarks: int, dtype: np.dtype) -> float:
    """Return the share of the largest squared pivot below which pivots are rounding errors.

    An eigenvector averages the errors of all entries of k(x, L). A pivot does not, so it needs a
    margin beyond the last bit.
    """
    margin = _PIVOT_MARGIN * float(np.finfo(dtype).eps)
    return max(n_landmarks * float(np.finfo(np.float64).eps), margin)


def _times_upper(left: np.ndarray, upper: np.ndarray, out: np.ndarray) -> None:
    """Compute out = left @ upper without most of the zeros below the diagonal of `upper`.

    It goes from the last columns to the first, so `out` may be `left`.
    """
    rank = upper.shape[1]
    for start in reversed(range(0, rank, _BLOCK_COLUMNS)):
        stop = min(start + _BLOCK_COLUMNS, rank)
        out[:, start:stop] = left[:, :stop] @ upper[:stop, start:stop]
