"""Solver for many alphas: after one eigen-decomposition of H, each alpha costs little."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import eigh

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.from_sums import squared_error
from craftmaps.learn.solvers.left_out import LeftOut
from craftmaps.learn.solvers.penalty import whitening
from craftmaps.learn.solvers.search import alpha_grid
from craftmaps.learn.solvers.solution import Solution, intercept_of, warn_of_jitter


class RidgePath:
    """Solutions, residuals and degrees of freedom of one ridge problem for every alpha.

    With A = Q L Q^T and g = Q^T G, w = (L + alpha)^-1 g gives the coefficients Q w, and
    RSS = |y|^2 - g^T w - alpha |w|^2, df = tr L (L + alpha)^-1.

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
        self._whitening = whitening(penalty, equations.precision)
        lower, right, square = self._whitening.reduce(*equations.system(fit_intercept))
        self._square = square
        self._values, self._vectors = eigh(lower, lower=True, overwrite_a=True)
        self._rotated = self._vectors.T @ right
        self._free = self._whitening.free + int(fit_intercept)
        self._weight, self._fit_intercept = equations.weight, fit_intercept
        self._means = equations.z_mean, equations.y_mean
        self._eps = float(np.finfo(equations.precision).eps)
        self._least = self._eps * max(float(self._values[-1]), 0.0) or self._eps

    def grid(self) -> np.ndarray:
        """All alphas that a search may try, see `alpha_grid`."""
        return alpha_grid(self._eps, float(self._values.sum()))

    def scores(
        self, alphas: Sequence[float] | np.ndarray, held: LeftOut | None = None
    ) -> tuple[np.ndarray, bool]:
        """Return scores from rows left out (True) or from GCV (False), and which of the two.

        GCV is used if every alpha interpolates every row of `held`, as with a single row.
        Generalized cross-validation assumes that every row has the mean leverage. With fewer rows
        than features, it hardly notices overfitting.
        """
        if held is not None:
            scores = self.left_out(alphas, held)
            if np.isfinite(scores).any():
                return scores, True
        return self.gcv(alphas), False

    def gcv(self, alphas: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the GCV score (RSS / n) / (1 - df / n)^2, of shape (n_alphas, n_targets).

        n is the total weight, and df includes the intercept. Residuals count at least as much as
        their rounding errors, so the largest of the alphas that interpolate has the best score.
        """
        n = self._weight
        floor = self._eps ** (2 / 3) * self._square
        scores = np.empty((len(alphas), len(self._square)))
        for i, alpha in enumerate(alphas):
            residual, freedom = self.fit_at(alpha)
            left, residual = 1 - freedom / n, np.maximum(residual, floor)
            scores[i] = residual / n / left**2 if left > 0 else np.inf
        return scores

    def left_out(self, alphas: Sequence[float] | np.ndarray, held: LeftOut) -> np.ndarray:
        """Return scores of leave-one-out predictions, of shape (n_alphas, n_scores).

        The score is infinite for an alpha that interpolates a row, because rounding errors hide it.
        """
        z_mean, y_mean = self._means
        Z = held.Z.astype(np.float64)
        if self._fit_intercept:
            Z -= z_mean
        rows, free = self._whitening.rows(Z)
        rotated = rows @ self._vectors
        constant = Z @ self._whitening.restore(np.zeros_like(self._rotated))
        if self._fit_intercept:
            constant += y_mean
            free = free + 1 / self._weight
        scores = []
        for alpha in alphas:
            shifted = self._shifted(alpha)
            fitted = rotated @ (self._rotated / shifted[:, None]) + constant
            leverages = np.square(rotated) @ (1 / shifted) + free
            scores.append(held.clear_scores(fitted, leverages))
        return np.array(scores)

    def fit_at(self, alpha: float) -> tuple[np.ndarray, float]:
        """Return the sum of squared residuals of each target, and the degrees of freedom.

        The degrees of freedom are the trace of the hat matrix. They include the intercept and
        unpenalized directions.
        """
        w = self._rotated / self._shifted(alpha)[:, None]
        explained = (self._rotated * w).sum(axis=0) + alpha * np.square(w).sum(axis=0)
        values = np.maximum(self._values, 0)  # negative ones are rounding errors
        freedom = float((values / (values + alpha)).sum()) if alpha else float(len(values))
        return np.asarray(self._square - explained), freedom + self._free

    def jitter(self, alpha: float) -> float:
        """Return what to add to alpha so that the matrix is not singular to working precision."""
        if self._values[0] >= self._least:
            return 0.0
        return max(0.0, self._least - alpha - min(float(self._values[0]), 0.0))

    def _shifted(self, alpha: float) -> np.ndarray:
        """Return the eigenvalues of the system, which include alpha and the jitter."""
        return np.asarray(self._values + (alpha + self.jitter(alpha)))

    def solve(self, alpha: Any) -> Solution:
        """Return the solution for one alpha, or for one alpha per target."""
        alpha = np.asarray(alpha, dtype=np.float64)
        coef = np.empty_like(self._rotated)
        jitter, condition = np.empty(alpha.shape), np.empty(alpha.shape)
        for value in np.unique(alpha):
            shifted = self._shifted(value)
            chosen = np.broadcast_to(alpha == value, coef.shape[1:])
            coef[:, chosen] = self._rotated[:, chosen] / shifted[:, None]
            jitter[alpha == value] = self.jitter(value)
            condition[alpha == value] = shifted[-1] / shifted[0]
        warn_of_jitter(jitter.max(), alpha)
        coef = self._whitening.restore(self._vectors @ coef)
        intercept = intercept_of(*self._means, coef, self._fit_intercept)
        return Solution(coef, intercept, _plain(alpha), _plain(jitter), _plain(condition))


def cross_validate(
    folds: Sequence[NormalEquations],
    alphas: Sequence[float],
    *,
    fit_intercept: bool = True,
    penalty: np.ndarray | None = None,
) -> np.ndarray:
    """Return the mean squared errors of K-fold cross-validation, from sums alone.

    Returns an array of shape (n_alphas, n_targets): for coefficients W and intercept c, the error
    on fold f is |Y_f|^2 - 2 tr(W^T G_f) + tr(W^T H_f W) + n_f |v_f - W^T m_f - c|^2.
    """
    errors = np.zeros((len(alphas), folds[0].n_targets))
    for held_out in folds:
        rest = NormalEquations()
        for fold in folds:
            if fold is not held_out:
                rest.merge(fold)
        path = RidgePath(rest, fit_intercept, penalty)
        del rest  # the path has a copy
        for i, alpha in enumerate(alphas):
            solution = path.solve(alpha)
            errors[i] += squared_error(held_out, solution.coef, solution.intercept)
        del path
    return errors / sum(fold.weight for fold in folds)


def _plain(value: np.ndarray) -> Any:
    return value if value.ndim else float(value)
