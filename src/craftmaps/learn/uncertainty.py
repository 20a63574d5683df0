"""How sure a ridge regression is of its coefficients: Bayesian linear regression from the sums.

With A = H + alpha P, noise of variance s^2 and a prior w ~ N(0, s^2 / alpha P^-1), the coefficients
have the posterior N(W, s^2 A^-1): a sparse Gaussian process. The target of a new row z has the
variance s^2 (1 + h), where h = 1/n + (z - m)^T A^-1 (z - m) is the leverage of the row.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from craftmaps.learn.intervals import Conformal
from craftmaps.learn.solvers.cholesky import Cholesky
from craftmaps.learn.solvers.left_out import LeftOut
from craftmaps.storage.expect import expect, expect_array
from craftmaps.storage.packing import storable

_FIRST_ALPHA = 1e-12  # in mean squares of features; tried if alpha = 0 interpolates the rows


@storable
@dataclass
class Posterior:
    """A^-1 in a form that gives the leverage of a row by one product.

    Attributes
    ----------
    centre : ndarray of shape (n_features,)
        The mean m of the features, or 0 without an intercept.
    root : ndarray of shape (n_features, rank)
        R with A^-1 = R R^T. With fewer rows than features, A^-1 = prior (I - R R^T).
    prior : float
        1 / alpha with fewer rows than features, 0 otherwise.
    base : float
        The leverage of the mean: 1 / n with an intercept.
    """

    centre: np.ndarray
    root: np.ndarray
    prior: float
    base: float

    def leverages(self, Z: np.ndarray) -> np.ndarray:
        """Return the leverage of each row of features."""
        centred = Z.astype(np.float64) - self.centre
        projected = centred.astype(self.root.dtype, copy=False) @ self.root
        squares = np.einsum("ij,ij->i", projected, projected)
        if self.prior:
            outside = np.einsum("ij,ij->i", centred, centred) - squares
            squares = self.prior * np.maximum(outside, 0.0)
        return np.asarray(self.base + squares, dtype=np.float64)

    def draws(self, n_draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw functions: deviations of coefficients from the mean for s = 1, and their offsets."""
        offsets = np.sqrt(self.base) * rng.standard_normal(n_draws)
        if not self.prior:
            return self.root @ rng.standard_normal((self.root.shape[1], n_draws)), offsets
        # (I - R R^T)^(1/2) = I - R V g V^T R^T with R^T R = V d V^T, g = (1 - sqrt(1 - d)) / d
        d, V = eigh(self.root.T @ self.root)
        d = d.clip(0.0, 1.0)
        g = 1 / (1 + np.sqrt(1 - d))
        drawn = rng.standard_normal((len(self.root), n_draws))
        inside = V @ (g[:, None] * (V.T @ (self.root.T @ drawn)))
        return np.sqrt(self.prior) * (drawn - self.root @ inside), offsets

    def single(self) -> "Posterior":
        """Return a copy for files, in float32 where no differences of large numbers occur."""
        root = self.root if self.prior else self.root.astype(np.float32)
        return Posterior(self.centre, root, self.prior, self.base)

    def _check_stored(self) -> None:
        expect_array("centre", self.centre, "f", (None,))
        expect_array("root", self.root, "f", (len(self.centre), None))
        expect(self.prior >= 0 and self.base >= 0, "variances that are not negative")


def learned(learner: Any) -> tuple[Posterior | None, Conformal]:
    """Return the posterior of a learner with the squared loss, and its leave-one-out errors.

    Errors are divided by sqrt(1 + h), where h is the leverage of a row that was left out, so that
    their root mean square is s. There is no posterior if the system was solved by iteration,
    because the leverages of single rows are then unknown.
    """
    solution, stream = learner.solution_, learner._stream
    sample = stream.sample
    if np.ndim(solution.alpha):
        raise ValueError(
            "each target has an alpha of its own, and so its own covariance; set "
            "alpha_per_target=False for standard deviations and intervals."
        )
    if not sample.weights.any():
        raise ValueError(
            "no rows were kept to judge errors by; fit the model again with this version."
        )
    if solution.mean_leverage is not None:
        predicted, targets, weights = learner.leave_one_out()
        return None, Conformal(targets - predicted, weights)
    problem, penalty = learner._problem()
    total, held = problem.total(), LeftOut(problem.rows(sample.Z), sample.labels, sample.weights)
    solver = Cholesky(total, learner.fit_intercept, penalty)
    alpha, fitted = float(solution.alpha), sample.Z @ solution.coef + solution.intercept
    leverages = solver.leverages(held.Z, alpha)
    while not held.are_clear(leverages):
        # Some rows are interpolated, so rounding hides what would be predicted without them. This
        # takes the smallest alpha that shows it.
        alpha = 10 * alpha or _FIRST_ALPHA * float(np.mean(np.square(held.Z)))
        leverages = solver.leverages(held.Z, alpha)
        again = solver.solve(alpha)
        fitted = held.Z @ again.coef + again.intercept
    without = leverages / held.without_itself(leverages)
    errors = (held.Y - held.predicted(fitted, leverages)) / np.sqrt(1 + without)[:, None]
    conformal = Conformal(errors, sample.weights.copy(), studentized=True)
    base = learner.fit_intercept / total.weight
    if problem.space is not None:
        Z, _, weights = stream.kept()
        return _of_rows(Z, weights, alpha, learner.fit_intercept, base), conformal
    centre = total.z_mean.copy() if learner.fit_intercept else np.zeros(stream.n_features)
    return Posterior(centre, solver.root(alpha), 0.0, base), conformal


def _of_rows(
    Z: np.ndarray, weights: np.ndarray, alpha: float, centred: bool, base: float
) -> Posterior:
    """Posterior from fewer rows than features: A^-1 = (I - X^T (X X^T + alpha I)^-1 X) / alpha.

    X are the centered rows, times the roots of their weights.
    """
    rows = Z.astype(np.float64)
    centre = np.average(rows, axis=0, weights=weights) if centred else np.zeros(Z.shape[1])
    rows = (rows - centre) * np.sqrt(weights)[:, None]
    gram = rows @ rows.T
    np.fill_diagonal(gram, gram.diagonal() + alpha)
    lower = cholesky(gram, lower=True)
    return Posterior(centre, solve_triangular(lower, rows, lower=True).T, 1 / alpha, base)
