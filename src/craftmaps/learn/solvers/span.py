"""The span of a few rows of many features, and coordinates in it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.solution import Solution

_COLUMNS = 2048  # of rows at a time that are held in float64


class RowSpace:
    """An orthonormal basis Q of the span of the rows of Z - centre, from their Gram matrix.

    (Z - centre)(Z - centre)^T = L L^T by pivoted Cholesky, so Q = (Z - centre)^T L^-T for the rows
    that were pivots, and it is never written down: for n rows of E features this takes n^2 E
    operations, where orthogonalizing them takes four times as many. That the Gram matrix squares
    their condition costs nothing, because the normal equations do so anyway.

    Parameters
    ----------
    Z : array, shape (n_rows, n_features)
    centre : array, shape (n_features,)

    Attributes
    ----------
    centre : as given
    coordinates : array of float64, shape (n_rows, rank)
        Of the centred rows.
    """

    def __init__(self, Z: np.ndarray, centre: np.ndarray) -> None:
        self.centre = centre
        gram = np.zeros((len(Z), len(Z)), order="F")
        for _, part in self._parts(Z):
            gram = blas.dsyrk(1.0, part.T, 1.0, gram, trans=1, lower=1, overwrite_c=1)
        factor, pivots, rank, _ = lapack.dpstrf(gram, lower=1, overwrite_a=1)
        if rank:
            factor = np.tril(factor[:, :rank])
            self._triangle = factor[:rank]
        else:  # all rows are equal to the centre: any direction will do
            factor, self._triangle = np.zeros((len(Z), 1)), np.eye(1)
        pivots -= 1
        self._spanning = Z[pivots[: len(self._triangle)]]
        self.coordinates = np.empty(factor.shape)
        self.coordinates[pivots] = factor

    def project(self, Z: np.ndarray) -> np.ndarray:
        """Coordinates of other rows, of what of them lies in the span."""
        parts = zip(self._parts(self._spanning), self._parts(Z), strict=True)
        products = sum(mine @ other.T for (_, mine), (_, other) in parts)
        return np.asarray(solve_triangular(self._triangle, products, lower=True).T)

    def lift(self, coef: np.ndarray) -> np.ndarray:
        """The directions of feature space that have these coordinates."""
        weights = solve_triangular(self._triangle, coef, lower=True, trans=1)
        lifted = np.empty((len(self.centre), weights.shape[1]))
        for columns, part in self._parts(self._spanning):
            lifted[columns] = part.T @ weights
        return lifted

    def _parts(self, Z: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Some columns at a time of centred rows, in float64."""
        for start in range(0, Z.shape[1], _COLUMNS):
            columns = slice(start, start + _COLUMNS)
            yield columns, Z[:, columns].astype(np.float64) - self.centre[columns]


@dataclass
class Problem:
    """Sums per fold, perhaps in the coordinates of a space of rows."""

    folds: list[NormalEquations]
    space: RowSpace | None = None

    def total(self) -> NormalEquations:
        """The sums of all folds."""
        if len(self.folds) == 1:
            return self.folds[0]
        whole = NormalEquations()
        for fold in self.folds:
            whole.merge(fold)
        return whole

    def rows(self, Z: np.ndarray) -> np.ndarray:
        """Features in the coordinates of the problem."""
        return Z if self.space is None else self.space.project(Z)

    def restore(self, solution: Solution) -> Solution:
        """A solution of the problem as one for features."""
        if self.space is not None:
            solution.coef = self.space.lift(solution.coef)
            solution.intercept = solution.intercept - self.space.centre @ solution.coef
        return solution
