"""Every alpha: one reduction of H, after which each alpha costs little.

`scipy.linalg.eigh` would serve as well and would replace `tridiagonal` and `band`. Measured for a
whole fit of four rows per feature on one thread, it takes 1.5 times as long with 1,024 features,
0.9 times with 2,048, and 1.6 times with 4,096, so the two reductions stay.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.band import BandForm
from craftmaps.learn.solvers.choose import reduces_to_band
from craftmaps.learn.solvers.from_sums import squared_error
from craftmaps.learn.solvers.penalty import whitening
from craftmaps.learn.solvers.precision import FLOOR
from craftmaps.learn.solvers.solution import LeftOut, Solution, intercept_of, warn_of_jitter
from craftmaps.learn.solvers.tridiagonal import TridiagonalForm

_ALPHAS_PER_DECADE = 4
EQUAL_SCORES = 1e-3  # relative difference of scores that does not count


class RidgePath:
    """Solutions, residuals and degrees of freedom of one ridge problem for every alpha.

    With A = Q T Q^T and g = Q^T G, w = (T + alpha)^-1 g gives the coefficients Q w, and
    RSS = |y|^2 - g^T w - alpha |w|^2, df = tr T (T + alpha)^-1.

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
        self._form = (
            BandForm(lower, right) if reduces_to_band(len(lower)) else TridiagonalForm(lower, right)
        )
        self._free = self._whitening.free + int(fit_intercept)
        self._weight, self._fit_intercept = equations.weight, fit_intercept
        self._means = equations.z_mean, equations.y_mean
        self._eps = float(np.finfo(equations.precision).eps)
        self._least = self._eps * max(self._form.largest, 0.0) or self._eps
        self._smallest = self._form.smallest(self._least)

    def grid(self) -> np.ndarray:
        """Powers of 10^(1/4) between what the precision can tell from zero and the trace of A.

        They do not depend on the data otherwise, so that the same rows in other blocks, or with
        weights instead of repetitions, choose the same alpha.
        """
        top = max(self._form.trace, 0.0) or 1.0
        bottom = FLOOR * self._eps * top
        first, last = (
            int(np.ceil(_ALPHAS_PER_DECADE * np.log10(value))) for value in (bottom, 10 * top)
        )
        return np.asarray(10.0 ** (np.arange(first, last + 1) / _ALPHAS_PER_DECADE))

    def scores(
        self, alphas: Sequence[float] | np.ndarray, held: LeftOut | None = None
    ) -> tuple[np.ndarray, bool]:
        """Scores by rows left out, if any of them can judge, otherwise by GCV; and which it was.

        Generalized cross-validation takes every row to have the mean leverage. That misleads it
        where the model interpolates: with fewer rows than features it hardly tells overfitting
        apart. A row that every alpha interpolates, such as a single one, judges nothing.
        """
        if held is not None:
            scores = self.left_out(alphas, held)
            if np.isfinite(scores).any():
                return scores, True
        return self.gcv(alphas), False

    def gcv(self, alphas: Sequence[float] | np.ndarray) -> np.ndarray:
        """Generalized cross-validation, (RSS / n) / (1 - df / n)^2, of shape (n_alphas, n_targets).

        n is the total weight; df counts the intercept. Residuals that rounding hides count as what
        it hides, so that among alphas that interpolate the largest is taken.
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
        """Scores of predictions for rows that are left out, of shape (n_alphas, n_scores).

        Those of alphas at which a row is interpolated are infinite: rounding hides what they are.
        """
        z_mean, y_mean = self._means
        Z = held.Z.astype(np.float64)
        if self._fit_intercept:
            Z -= z_mean
        rows, free = self._whitening.rows(Z)
        rotated = self._form.rotate(rows.T)
        constant = Z @ self._whitening.restore(np.zeros_like(self._form.rotated))
        if self._fit_intercept:
            constant += y_mean
            free = free + 1 / self._weight
        scores = []
        for alpha in alphas:
            system = self._form.at(alpha + self.jitter(alpha))
            fitted = rotated.T @ system.solve(self._form.rotated) + constant
            leverages = np.einsum("ij,ij->j", rotated, system.solve(rotated)) + free
            score = held.scores(held.predicted(fitted, leverages))
            scores.append(score if held.are_clear(leverages) else np.full_like(score, np.inf))
        return np.array(scores)

    def fit_at(self, alpha: float) -> tuple[np.ndarray, float]:
        """Sum of squared residuals of each target, and the degrees of freedom.

        These are the trace of the hat matrix, with the intercept and unpenalised directions.
        """
        system = self._form.at(alpha + self.jitter(alpha))
        w = system.solve(self._form.rotated)
        explained = (self._form.rotated * w).sum(axis=0) + alpha * np.square(w).sum(axis=0)
        return np.asarray(self._square - explained), system.freedom() + self._free

    def jitter(self, alpha: float) -> float:
        """What must be added to alpha for a matrix that the precision can tell from singular."""
        if self._smallest >= self._least:
            return 0.0
        return max(0.0, self._least - alpha - min(self._smallest, 0.0))

    def solve(self, alpha: Any) -> Solution:
        """The solution at one alpha, or at one per target."""
        alpha = np.asarray(alpha, dtype=np.float64)
        coef = np.empty_like(self._form.rotated)
        jitter, condition = np.empty(alpha.shape), np.empty(alpha.shape)
        for value in np.unique(alpha):
            shift = value + self.jitter(value)
            system = self._form.at(shift)
            chosen = np.broadcast_to(alpha == value, coef.shape[1:])
            coef[:, chosen] = system.solve(self._form.rotated)[:, chosen]
            jitter[alpha == value] = shift - value
            condition[alpha == value] = (self._form.largest + shift) / system.smallest()
        warn_of_jitter(jitter.max(), alpha)
        coef = self._whitening.restore(self._form.unrotate(coef))
        intercept = intercept_of(*self._means, coef, self._fit_intercept)
        return Solution(coef, intercept, _plain(alpha), _plain(jitter), _plain(condition))


def cross_validate(
    folds: Sequence[NormalEquations],
    alphas: Sequence[float],
    *,
    fit_intercept: bool = True,
    penalty: np.ndarray | None = None,
) -> np.ndarray:
    """Mean squared error on each fold of what the other folds teach, from their sums alone.

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


def best_alpha(alphas: Any, scores: np.ndarray, per_target: bool) -> np.ndarray:
    """The alpha (or the alphas, one per target) with the smallest score."""
    alphas = np.asarray(alphas, dtype=np.float64)
    if per_target:
        return np.asarray(alphas[scores.argmin(axis=0)])
    return np.asarray(alphas[scores.sum(axis=1).argmin()])


def largest_of_best(alphas: np.ndarray, scores: np.ndarray, per_target: bool) -> np.ndarray:
    """The largest alpha whose score is the best to a thousandth: rounding does not choose."""
    scores = scores if per_target else scores.sum(axis=1)
    good = scores <= (1 + EQUAL_SCORES) * scores.min(axis=0)
    return np.asarray(alphas[::-1][good[::-1].argmax(axis=0)])


def _plain(value: np.ndarray) -> Any:
    return value if value.ndim else float(value)
