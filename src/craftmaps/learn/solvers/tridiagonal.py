"""One reduction A = Q T Q^T to a tridiagonal T, after which every alpha costs next to nothing."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal, lapack

_PANEL = 64  # reflectors that are applied together


class TridiagonalForm:
    """A symmetric matrix as Q T Q^T, T tridiagonal: (A + alpha I)^-1 B for many alpha.

    A third of the work of an eigen-decomposition: neither the eigenvectors nor Q are ever formed.
    For large matrices `BandForm` is faster.

    Parameters
    ----------
    lower : Fortran-ordered matrix, of which the lower triangle counts; overwritten
    right : matrix B

    Attributes
    ----------
    rotated : ndarray
        Q^T B.
    trace, largest : float
        Of A: the sum of its eigenvalues, and the largest.
    """

    def __init__(self, lower: np.ndarray, right: np.ndarray) -> None:
        size = len(lower)
        lwork, _ = lapack.dsytrd_lwork(size, lower=1)
        reduced, diagonal, off, tau, _ = lapack.dsytrd(
            lower, lower=1, lwork=int(lwork), overwrite_a=1
        )
        self._reflectors, self._tau = reduced, tau
        self._diagonal, self._off = diagonal, off
        self._values = eigvalsh_tridiagonal(diagonal, off) if size > 1 else diagonal.copy()
        self.trace, self.largest = float(diagonal.sum()), float(self._values[-1])
        self.rotated = self.rotate(right)

    def smallest(self, least: float) -> float:
        """The smallest eigenvalue, or `least` if that is smaller."""
        return min(float(self._values[0]), least)

    def at(self, alpha: float) -> "TridiagonalSystem":
        """The system (T + alpha I); alpha must make it positive definite."""
        if self._values[0] + alpha <= 0:
            raise np.linalg.LinAlgError(f"not positive definite at alpha={alpha:.3g}")
        return TridiagonalSystem(self._diagonal, self._off, self._values, alpha)

    def rotate(self, matrix: np.ndarray) -> np.ndarray:
        """Q^T times a matrix."""
        return self._apply(matrix, transpose=True)

    def unrotate(self, rotated: np.ndarray) -> np.ndarray:
        """Q times a solution."""
        return self._apply(rotated, transpose=False)

    def _apply(self, matrix: np.ndarray, transpose: bool) -> np.ndarray:
        result = np.array(matrix, dtype=np.float64, order="F")
        starts = range(0, len(self._tau), _PANEL)
        for start in starts if transpose else reversed(starts):
            stop = min(start + _PANEL, len(self._tau))
            V = unit_lower(self._reflectors[start + 1 :, start:stop])
            T = panel_factor(V, self._tau[start:stop])
            rows = result[start + 1 :]
            rows -= V @ ((T.T if transpose else T) @ (V.T @ rows))
        return result


@dataclass
class TridiagonalSystem:
    """T + alpha I, known by its diagonals and by the eigenvalues of T."""

    diagonal: np.ndarray
    off: np.ndarray
    values: np.ndarray
    alpha: float

    def solve(self, rotated: np.ndarray) -> np.ndarray:
        """(T + alpha I)^-1 times a rotated matrix."""
        if len(self.diagonal) == 1:
            return np.asarray(rotated / (self.diagonal + self.alpha))
        diagonal, off, _ = lapack.dpttrf(self.diagonal + self.alpha, self.off)
        solution, _ = lapack.dpttrs(diagonal, off, rotated)
        return np.asarray(solution)

    def freedom(self) -> float:
        """tr A (A + alpha I)^-1; eigenvalues below zero are rounding errors."""
        values = np.maximum(self.values, 0)
        return float((values / (values + self.alpha)).sum())

    def smallest(self) -> float:
        """The smallest eigenvalue of A + alpha I."""
        return float(self.values[0]) + self.alpha


def unit_lower(panel: np.ndarray) -> np.ndarray:
    """The reflectors that LAPACK leaves below the diagonal, whose diagonal is one."""
    V = np.tril(panel, -1)
    np.fill_diagonal(V, 1.0)
    return V


def panel_factor(V: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """T of a panel of reflectors: prod_i (I - tau_i v_i v_i^T) = I - V T V^T."""
    products = V.T @ V
    T = np.zeros(products.shape)
    for i, scale in enumerate(tau):
        T[:i, i] = -scale * (T[:i, :i] @ products[:i, i])
        T[i, i] = scale
    return T
