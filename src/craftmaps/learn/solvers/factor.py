"""Cholesky factors of penalized sums of any size, whether or not they are singular."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import (
    blas,
    get_blas_funcs,
    get_lapack_funcs,
    lapack,
    solve_triangular,
)

# With two threads, dpotrf of OpenBLAS 0.3.30 crashes the process at size 24,000, but not at 20,000
# (github.com/OpenMathLib/OpenBLAS/issues/2562).
_MAX_DPOTRF_SIZE = 16384
_BLOCK = 4096
_STRIP = 128  # rows that are mirrored at a time


@dataclass
class Factor:
    """The Cholesky factor U of S (A + alpha I) S + jitter I for S = diag(scale).

    `condition` is LAPACK's estimate in the 1-norm.
    """

    upper: np.ndarray
    scale: np.ndarray
    jitter: float
    condition: float

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Return (A + alpha I + jitter S^-2)^-1 times `right`."""
        solved, _ = lapack.dpotrs(self.upper, self.scale[:, None] * right, lower=0)
        return np.asarray(self.scale[:, None] * solved)

    def squares(self, rows: np.ndarray) -> np.ndarray:
        """Return z^T (A + alpha I + jitter S^-2)^-1 z for each row z."""
        half = solve_triangular(self.upper, (rows * self.scale).T, trans="T")
        return np.asarray(np.square(half).sum(axis=0))

    def inverse_root(self) -> np.ndarray:
        """Return the upper triangle R with (A + alpha I + jitter S^-2)^-1 = R R^T."""
        inverse, _ = lapack.dtrtri(np.triu(self.upper), lower=0, overwrite_c=1)
        return np.asarray(self.scale[:, None] * inverse)

    def most_added(self) -> float:
        """The largest entry of jitter S^-2."""
        return self.jitter / float(self.scale.min(initial=np.inf)) ** 2


def factor(lower: np.ndarray, alpha: float, eps: float) -> Factor:
    """Factor A + alpha I, with jitter if necessary.

    The jitter is zero unless the matrix is singular to the precision `eps` of its entries. The
    entries are sums of products, each rounded to eps times the lengths of two features. Features
    are therefore scaled to equal lengths first, unless they are shorter than the rounding errors of
    the longest feature. The factor overwrites the upper triangle of the Fortran-ordered matrix
    `lower`.
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


def _mirror_scaled(matrix: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Write the scaled lower triangle into the upper one, strip by strip, without the diagonal.

    Returns the sums of absolute values of the columns of the scaled matrix, without the diagonal.
    """
    sums = np.zeros(len(matrix))
    for start in range(0, len(matrix), _STRIP):
        stop = min(start + _STRIP, len(matrix))
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


def factor_upper(matrix: np.ndarray) -> int:
    """Factor A = U^T U in place: U replaces the upper triangle of a Fortran-ordered float64 matrix.

    The entries below the diagonal are neither read nor changed. Returns 0, or the number of the
    first leading minor that is not positive definite. The upper triangle is then meaningless.
    """
    if not matrix.flags.f_contiguous:
        raise ValueError("a matrix that is factored in place must be in Fortran order.")
    n = len(matrix)
    if n <= _MAX_DPOTRF_SIZE:
        return int(lapack.dpotrf(matrix, lower=0, overwrite_a=1, clean=0)[1])
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        corner, failed = lapack.dpotrf(_square(matrix, start, stop), overwrite_a=1)
        if failed:
            return start + int(failed)
        _replace_upper(matrix, start, stop, corner)
        panel = np.asfortranarray(matrix[start:stop, stop:])
        panel = blas.dtrsm(1.0, corner, panel, trans_a=1, overwrite_b=1)
        matrix[start:stop, stop:] = panel
        for left in range(stop, n, _BLOCK):
            right = min(left + _BLOCK, n)
            some = panel[:, left - stop : right - stop]
            matrix[stop:left, left:right] -= panel[:, : left - stop].T @ some
            _replace_upper(matrix, left, right, _square(matrix, left, right) - some.T @ some)
    return 0


def factor_lower(matrix: np.ndarray) -> bool:
    """Factor A = L L^T in place: L replaces the lower triangle of a Fortran-ordered matrix.

    The matrix may have either precision. Returns whether A is positive definite. The entries above
    the diagonal are meaningless afterwards.
    """
    potrf, (trsm,) = get_lapack_funcs("potrf", (matrix,)), get_blas_funcs(("trsm",), (matrix,))
    n = len(matrix)
    if n <= _MAX_DPOTRF_SIZE:
        return not potrf(matrix, lower=1, overwrite_a=1, clean=0)[1]
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        corner, failed = potrf(_square(matrix, start, stop), lower=1, overwrite_a=1)
        if failed:
            return False
        matrix[start:stop, start:stop] = corner
        panel = np.asfortranarray(matrix[stop:, start:stop])
        panel = trsm(1.0, corner, panel, side=1, lower=1, trans_a=1, overwrite_b=1)
        matrix[stop:, start:stop] = panel
        for left in range(stop, n, _BLOCK):
            below = panel[left - stop :]
            matrix[left:, left : left + _BLOCK] -= below @ below[:_BLOCK].T
    return True


def _square(matrix: np.ndarray, start: int, stop: int) -> np.ndarray:
    return matrix[start:stop, start:stop].copy(order="F")


def _replace_upper(matrix: np.ndarray, start: int, stop: int, upper: np.ndarray) -> None:
    below = np.tril(matrix[start:stop, start:stop], -1)
    matrix[start:stop, start:stop] = np.triu(upper) + below
