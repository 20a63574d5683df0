"""One reduction A = Q T Q^T to a tridiagonal T, after which every alpha costs next to nothing."""

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal, lapack

_PANEL = 64  # reflectors that are applied together


class TridiagonalForm:
    """A symmetric matrix as Q T Q^T, T tridiagonal: (A + alpha I)^-1 B for many alpha.

    A third of the work of an eigen-decomposition, which would also be needed only once: neither
    the eigenvectors nor Q are ever formed.

    Parameters
    ----------
    lower : Fortran-ordered matrix, of which the lower triangle counts; overwritten
    right : matrix B

    Attributes
    ----------
    eigenvalues : ndarray, ascending
    rotated : ndarray
        Q^T B.
    """

    def __init__(self, lower: np.ndarray, right: np.ndarray) -> None:
        size = len(lower)
        lwork, _ = lapack.dsytrd_lwork(size, lower=1)
        reduced, diagonal, off, tau, _ = lapack.dsytrd(
            lower, lower=1, lwork=int(lwork), overwrite_a=1
        )
        self._reflectors, self._tau = reduced, tau
        self._diagonal, self._off = diagonal, off
        self.eigenvalues = eigvalsh_tridiagonal(diagonal, off) if size > 1 else diagonal.copy()
        self.rotated = self._apply(right, transpose=True)

    def solve(self, alpha: float) -> np.ndarray:
        """Q^T (A + alpha I)^-1 B; alpha must make the matrix positive definite."""
        if len(self._diagonal) == 1:
            return np.asarray(self.rotated / (self._diagonal + alpha))
        diagonal, off, info = lapack.dpttrf(self._diagonal + alpha, self._off)
        if info:
            raise np.linalg.LinAlgError(f"not positive definite at alpha={alpha:.3g}")
        solution, _ = lapack.dpttrs(diagonal, off, self.rotated)
        return np.asarray(solution)

    def unrotate(self, rotated: np.ndarray) -> np.ndarray:
        """Q times a solution."""
        return self._apply(rotated, transpose=False)

    def _apply(self, matrix: np.ndarray, transpose: bool) -> np.ndarray:
        result = np.array(matrix, dtype=np.float64, order="F")
        starts = range(0, len(self._tau), _PANEL)
        for start in starts if transpose else reversed(starts):
            stop = min(start + _PANEL, len(self._tau))
            V = np.tril(self._reflectors[start + 1 :, start:stop], -1)
            np.fill_diagonal(V, 1.0)
            T = _panel_factor(V, self._tau[start:stop])
            rows = result[start + 1 :]
            rows -= V @ ((T.T if transpose else T) @ (V.T @ rows))
        return result


def _panel_factor(V: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """T of a panel of reflectors: prod_i (I - tau_i v_i v_i^T) = I - V T V^T."""
    products = V.T @ V
    T = np.zeros(products.shape)
    for i, scale in enumerate(tau):
        T[:i, i] = -scale * (T[:i, :i] @ products[:i, i])
        T[i, i] = scale
    return T
