"""Whitening of kernel columns: K_LL^(-1/2) up to a rotation, without what is rounding error."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh, lapack

from craftmaps.maps.parts.base import check_facts
from craftmaps.storage.packing import storable

_MAX_EIGEN_LANDMARKS = 4096  # beyond which eigenvectors take too long
_BLOCK_COLUMNS = 1024  # of a triangle that are multiplied at a time
_PIVOT_MARGIN = 64  # times the last bit: a squared pivot below that may be rounding


@storable
@dataclass(frozen=True)
class Whitening:
    """A matrix W of shape (n_landmarks, rank) with W' K_LL W = I.

    Its columns are eigenvectors of K_LL divided by the roots of the eigenvalues `values`, or the
    inverse of a pivoted Cholesky factor, which is upper triangular, with the squared pivots
    `values`. Either way, columns are ordered by `values`, the largest first.
    """

    values: np.ndarray
    matrix: np.ndarray
    triangular: bool

    @classmethod
    def draw(cls, gram: np.ndarray, dtype: np.dtype) -> tuple[Self, np.ndarray | None]:
        """The whitening in the precision `dtype`, and the new order of landmarks, if any.

        Overwrites `gram`.
        """
        if len(gram) <= _MAX_EIGEN_LANDMARKS:
            values, vectors = _by_eigenvalue(gram)
            known = slice(_rank(values, len(gram), False, dtype))
            matrix = (vectors[:, known] / np.sqrt(values[known])).astype(dtype)
            return cls(values, matrix, False), None
        values, inverse, order = _by_pivots(gram)
        rank = _rank(values, len(gram), True, dtype)
        matrix = np.zeros((len(gram), rank), dtype=dtype)
        for i in range(rank):
            matrix[i, i:] = inverse[i, i:rank]
        return cls(values, matrix, True), order

    @property
    def rank(self) -> int:
        """Number of columns that are not rounding error."""
        return int(self.matrix.shape[1])

    def rounded(self, dtype: np.dtype) -> Self:
        """The whitening for kernel values of another precision, which may have less rank."""
        rank = _rank(self.values, len(self.matrix), self.triangular, dtype)
        matrix = self.matrix[:, : min(self.rank, rank)].astype(dtype, copy=False)
        return replace(self, matrix=matrix)

    def fill(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write the whitened columns of k(x, L), given as X; columns beyond the rank are 0."""
        if self.triangular:
            _times_upper(X, self.matrix, out[:, : self.rank])
        else:
            np.matmul(X, self.matrix, out=out[:, : self.rank])
        out[:, self.rank :] = 0

    def check(self, n_in: int, n_out: int) -> None:
        check_facts(
            self,
            matrix=self.matrix.ndim == 2 and len(self.matrix) == n_in and self.rank <= n_out,
            values=self.values.ndim == 1 and self.rank <= len(self.values) <= n_in,
        )

    def onnx(self, g: Any, x: str, n_in: int, n_out: int) -> str:
        whole = np.zeros((n_in, n_out))
        whole[:, : self.rank] = self.matrix
        return str(g.add("MatMul", x, whole))


def smallest_eigenvalue(n_landmarks: int, dtype: np.dtype) -> float:
    """The share of the largest eigenvalue of K_LL below which eigenvalues are rounding errors."""
    return max(n_landmarks * float(np.finfo(np.float64).eps), float(np.finfo(dtype).eps))


def _smallest_pivot(n_landmarks: int, dtype: np.dtype) -> float:
    """The share of the largest squared pivot of K_LL below which pivots are rounding errors.

    An eigenvector averages the errors of all entries of k(x, L) and a pivot does not, so that it
    needs a margin beyond the last bit.
    """
    margin = _PIVOT_MARGIN * float(np.finfo(dtype).eps)
    return max(n_landmarks * float(np.finfo(np.float64).eps), margin)


def _rank(values: np.ndarray, n_landmarks: int, triangular: bool, dtype: np.dtype) -> int:
    """How many eigenvalues or pivots of K_LL stand out of the rounding errors of k(x, L)."""
    smallest = _smallest_pivot if triangular else smallest_eigenvalue
    least = smallest(n_landmarks, dtype) * values.max(initial=0.0)
    return int(np.count_nonzero(values > least))


def _by_eigenvalue(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, the largest first, and their vectors.

    Eigenvectors have a sign that rounding decides; the largest entry is made positive.
    """
    values, vectors = eigh(gram)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    return values[::-1], (vectors * np.sign(largest))[:, ::-1]


def _by_pivots(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared pivots, the largest first, U^-1 of the Cholesky factor U' U = P' K_LL P, and P.

    The first columns of U^-1 depend on the first pivots alone, so that the last columns can be left
    out, as with eigenvectors. All is done in the memory of `gram`, because for many landmarks no
    second matrix fits. Below the diagonal, U^-1 is not 0 but holds what was there before.
    """
    factor, order, rank, _ = lapack.dpstrf(gram.T, tol=-1.0, lower=0, overwrite_a=1)
    values = factor.diagonal()[:rank] ** 2
    factor[rank:, rank:] = 0  # what pivots left over; any triangle with a diagonal will do
    factor[range(rank, len(gram)), range(rank, len(gram))] = 1
    inverse, _ = lapack.dtrtri(factor, lower=0, overwrite_c=1)
    return values, inverse, order - 1


def _times_upper(left: np.ndarray, upper: np.ndarray, out: np.ndarray) -> None:
    """left @ upper without most of the zeros below the diagonal of `upper`."""
    for start in range(0, upper.shape[1], _BLOCK_COLUMNS):
        stop = start + _BLOCK_COLUMNS
        np.matmul(left[:, :stop], upper[:stop, start:stop], out=out[:, start:stop])
