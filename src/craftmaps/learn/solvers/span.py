"""The span of few rows with many features, and coordinates in it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.solution import Solution

_BLOCK_COLUMNS = 2048  # columns of the rows that are held in float64 at a time


class RowSpace:
    """An orthonormal basis Q of the span of the rows of Z - centre, from their Gram matrix.

    Pivoted Cholesky gives (Z - centre)(Z - centre)^T = L L^T. Then Q = (Z - centre)^T L^-T, with
    the rows that were pivots. Q is never computed, so n rows of E features take n^2 E operations;
    orthogonalizing them would take four times as many. The Gram matrix squares the condition of the
    rows, as the normal equations do anyway.

    Parameters
    ----------
    Z : array, shape (n_rows, n_features)
    centre : array, shape (n_features,)

    Attributes
    ----------
    centre : as given
    coordinates : array of float64, shape (n_rows, rank)
        Coordinates of the centered rows.
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
        else:  # all rows are equal to the center, so any direction will do
            factor, self._triangle = np.zeros((len(Z), 1)), np.eye(1)
        pivots -= 1
        self._spanning = Z[pivots[: len(self._triangle)]]
        self.coordinates = np.empty(factor.shape)
        self.coordinates[pivots] = factor

    def project(self, Z: np.ndarray) -> np.ndarray:
        """Return the coordinates of other rows, projected onto the span."""
        parts = zip(self._parts(self._spanning), self._parts(Z), strict=True)
        products = sum(mine @ other.T for (_, mine), (_, other) in parts)
        return np.asarray(solve_triangular(self._triangle, products, lower=True).T)

    def lift(self, coef: np.ndarray) -> np.ndarray:
        """Return the vectors of features that have these coordinates."""
        weights = solve_triangular(self._triangle, coef, lower=True, trans=1)
        lifted = np.empty((len(self.centre), weights.shape[1]))
        for columns, part in self._parts(self._spanning):
            lifted[columns] = part.T @ weights
        return lifted

    def _parts(self, Z: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield some columns at a time of the centered rows, in float64."""
        for start in range(0, Z.shape[1], _BLOCK_COLUMNS):
            columns = slice(start, start + _BLOCK_COLUMNS)
            yield columns, Z[:, columns].astype(np.float64) - self.centre[columns]


@dataclass
class Problem:
    """Sums per fold, in the coordinates of `space` if it is given."""

    folds: list[NormalEquations]
    space: RowSpace | None = None

    def total(self) -> NormalEquations:
        """Return the sums of all folds."""
        if len(self.folds) == 1:
            return self.folds[0]
        whole = NormalEquations()
        for fold in self.folds:
            whole.merge(fold)
        return whole

    def rows(self, Z: np.ndarray) -> np.ndarray:
        """Return features in the coordinates of the problem."""
        return Z if self.space is None else self.space.project(Z)

    def restore(self, solution: Solution) -> Solution:
        """Turn a solution of the problem into coefficients of features."""
        if self.space is not None:
            solution.coef = self.space.lift(solution.coef)
            solution.intercept = solution.intercept - self.space.centre @ solution.coef
        return solution
