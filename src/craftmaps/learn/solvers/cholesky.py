"""Solver for one alpha: one Cholesky factorization of H + alpha P for all targets."""

from typing import Any

import numpy as np

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.factor import Factor, factor
from craftmaps.learn.solvers.left_out import LeftOut
from craftmaps.learn.solvers.penalty import in_place, whitening
from craftmaps.learn.solvers.solution import Solution, intercept_of, warn_of_jitter


class Cholesky:
    """Solutions and leverages of one ridge problem; each call factors the system again.

    Parameters
    ----------
    equations : NormalEquations
    fit_intercept : bool
    penalty : ndarray of shape (n_features, n_features) or None
        P; None is the identity.
    """

    def __init__(
        self, equations: NormalEquations, fit_intercept: bool, penalty: np.ndarray | None = None
    ) -> None:
        self._equations = equations
        self._fit_intercept = fit_intercept
        self._penalty = penalty
        self._eps = float(np.finfo(equations.precision).eps)

    def solve(self, alpha: float) -> Solution:
        """Return the solution for one alpha."""
        equations = self._equations
        if in_place(self._fit_intercept, self._penalty is not None):
            with equations.lent() as lower:
                factored = factor(lower, alpha, self._eps)
                coef = factored.solve(equations.gradient)
        else:
            change, factored, right = self._reduced(alpha)
            coef = change.restore(factored.solve(right))
        jitter = factored.most_added()
        warn_of_jitter(jitter, alpha)
        intercept = intercept_of(equations.z_mean, equations.y_mean, coef, self._fit_intercept)
        return Solution(coef, intercept, alpha, jitter, factored.condition)

    def leverages(self, Z: np.ndarray, alpha: float) -> np.ndarray:
        """Return z^T (H + alpha P)^-1 z for each row z.

        With an intercept, z is taken about the mean, and 1 / n is added. The result times the
        weight of the row is its entry h in the diagonal of the hat matrix. If the row were left
        out, its residual e would become e / (1 - h).
        """
        equations = self._equations
        change, factored, _ = self._reduced(alpha)
        rows, free = change.rows(
            Z - equations.z_mean if self._fit_intercept else Z.astype(np.float64)
        )
        return np.asarray(factored.squares(rows) + free + self._fit_intercept / equations.weight)

    def root(self, alpha: float) -> np.ndarray:
        """Return R with (H + alpha P)^-1 = R R^T and as many columns as its rank."""
        change, factored, _ = self._reduced(alpha)
        inside, free = change.matrices(self._equations.n_features)
        root = factored.inverse_root()
        return np.hstack([root if inside is None else inside @ root, free])

    def left_out_predictions(
        self, held: LeftOut, fitted: np.ndarray, alpha: Any
    ) -> tuple[np.ndarray, bool]:
        """Return leave-one-out predictions, and whether rounding spoils none of them.

        `fitted` are the predictions of the model, and alpha is a number or one per target.
        """
        predicted, clear = np.empty_like(held.Y), True
        alphas = np.broadcast_to(alpha, fitted.shape[1:])
        for value in np.unique(alphas):
            h = self.leverages(held.Z, value)
            predicted[:, alphas == value] = held.predicted(fitted, h)[:, alphas == value]
            clear = clear and held.are_clear(h)
        return predicted, clear

    def _reduced(self, alpha: float) -> tuple[Any, Factor, np.ndarray]:
        """Return the change of coordinates, the factor, and the right side in new coordinates."""
        change = whitening(self._penalty, self._equations.precision)
        lower, right, _ = change.reduce(*self._equations.system(self._fit_intercept))
        return change, factor(lower, alpha, self._eps), right
