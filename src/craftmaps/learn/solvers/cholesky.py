"""Cholesky factors of matrices of any size, in place."""

import numpy as np
from scipy.linalg import blas, lapack

# Beyond this size dpotrf of OpenBLAS on two threads ends the process (github.com/OpenMathLib/
# OpenBLAS/issues/2562): at 24,000 with its version 0.3.30, at 20,000 not yet.
_LARGE = 16384
_BLOCK = 4096


def factor_upper(matrix: np.ndarray) -> int:
    """A = U^T U: U replaces the upper triangle of a Fortran-ordered matrix of float64.

    The entries below the diagonal are neither read nor changed. Returns 0, or the number of the
    first leading minor that is not positive definite, and then the upper triangle is of no use.
    """
    if not matrix.flags.f_contiguous:
        raise ValueError("a matrix that is factored in place must be in Fortran order.")
    n = len(matrix)
    if n <= _LARGE:
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


def _square(matrix: np.ndarray, start: int, stop: int) -> np.ndarray:
    return matrix[start:stop, start:stop].copy(order="F")


def _replace_upper(matrix: np.ndarray, start: int, stop: int, upper: np.ndarray) -> None:
    below = np.tril(matrix[start:stop, start:stop], -1)
    matrix[start:stop, start:stop] = np.triu(upper) + below
