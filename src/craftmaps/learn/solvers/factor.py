"""Cholesky factors of penalised sums, whether or not they are singular to their precision."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from craftmaps.learn.solvers.cholesky import factor_upper


@dataclass
class Factor:
    """The Cholesky factor U of S (A + alpha I) S + jitter I, S = diag(scale).

    condition is LAPACK's estimate in the 1-norm.
    """

    upper: np.ndarray
    scale: np.ndarray
    jitter: float
    condition: float

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(A + alpha I + jitter S^-2)^-1 times `right`."""
        solved, _ = lapack.dpotrs(self.upper, self.scale[:, None] * right, lower=0)
        return np.asarray(self.scale[:, None] * solved)

    def squares(self, rows: np.ndarray) -> np.ndarray:
        """z^T (A + alpha I + jitter S^-2)^-1 z of each row z."""
        half = solve_triangular(self.upper, (rows * self.scale).T, trans="T")
        return np.asarray(np.square(half).sum(axis=0))

    def most_added(self) -> float:
        """The largest entry of jitter S^-2."""
        return self.jitter / float(self.scale.min(initial=np.inf)) ** 2


def factor(lower: np.ndarray, alpha: float, eps: float) -> Factor:
    """Factor A + alpha I, with as much jitter as it takes.

    The jitter is zero unless the matrix is singular to the precision `eps` of its entries. These
    are sums of products, each rounded to eps times the lengths of two features, so that is judged,
    and mended, with features scaled to equal lengths; those that are shorter than the rounding
    errors of the longest stay short. The factor is written into the upper triangle of the
    Fortran-ordered matrix `lower` itself.
    """
    diagonal = lower.diagonal() + alpha
    shortest = eps * float(diagonal.max(initial=0.0)) or 1.0
    scale = 1 / np.sqrt(np.maximum(diagonal, shortest))
    diagonal *= scale**2
    jitter = 0.0
    while True:
        norm = float((_mirror_scaled(lower, scale) + diagonal).max(initial=0.0))
        if not np.isfinite(norm):
            raise np.linalg.LinAlgError("the normal equations are not finite.")
        np.fill_diagonal(lower, diagonal + jitter)
        failed = factor_upper(lower)
        reciprocal = 0.0 if failed else lapack.dpocon(lower, norm + jitter, uplo="U")[0]
        if reciprocal > eps:
            return Factor(lower, scale, jitter, 1 / reciprocal)
        jitter = 10 * jitter or eps * (norm or 1.0)


def _mirror_scaled(matrix: np.ndarray, scale: np.ndarray, strip: int = 128) -> np.ndarray:
    """Write the scaled lower triangle into the upper one, strip by strip, and leave the diagonal.

    Returns the sums of absolute values of the columns of the scaled matrix, without the diagonal.
    """
    sums = np.zeros(len(matrix))
    for start in range(0, len(matrix), strip):
        stop = min(start + strip, len(matrix))
        factors = scale[start:stop, None]
        corner = matrix[start:stop, start:stop]
        below = np.tril(corner, -1)
        above = below.T * factors * scale[start:stop]
        corner[:] = below + np.diag(corner.diagonal()) + above
        across = matrix[stop:, start:stop].T * factors
        across *= scale[stop:]
        matrix[start:stop, stop:] = across
        for part in (above, across):
            np.abs(part, out=part)
        sums[start:stop] += above.sum(axis=0) + above.sum(axis=1) + across.sum(axis=1)
        sums[stop:] += across.sum(axis=0)
    return sums
