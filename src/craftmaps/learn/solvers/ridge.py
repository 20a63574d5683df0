"""Ridge regression from sums, by the solver that suits alpha."""

from typing import Any

import numpy as np

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.cholesky import Cholesky
from craftmaps.learn.solvers.choose import is_auto, is_scalar
from craftmaps.learn.solvers.left_out import LeftOut, LeftOutScores
from craftmaps.learn.solvers.path import RidgePath
from craftmaps.learn.solvers.search import best_alpha, largest_of_best, search, warn_of_ends
from craftmaps.learn.solvers.solution import Solution, check_weight


def solve(
    equations: NormalEquations,
    alpha: Any = "gcv",
    *,
    fit_intercept: bool = True,
    per_target: bool = False,
    penalty: np.ndarray | None = None,
    left_out: LeftOut | None = None,
    hint: float | None = None,
) -> Solution:
    """Minimize sum w (y - b^T z - c)^2 + alpha b^T P b.

    Parameters
    ----------
    equations : NormalEquations
    alpha : float, array of one per target, or the name of a search
        "auto" scores powers of 10^(1/4) by `left_out`, "gcv" by generalized cross-validation.
    fit_intercept : bool, default=True
        Whether to fit c, which is not penalized. Otherwise c is zero.
    per_target : bool, default=False
        Whether a search may choose another alpha for each target.
    penalty : ndarray of shape (n_features, n_features), default=None
        The matrix P, positive semi-definite, of any rank. None is the identity.
    left_out : LeftOut, default=None
        Rows that "auto" scores alphas with. Without them, "auto" is "gcv".
    hint : float, default=None
        An alpha that is about right, at which the search of "auto" starts.
    """
    check_weight(equations.weight)
    if is_scalar(alpha):
        return Cholesky(equations, fit_intercept, penalty).solve(float(alpha))
    if is_auto(alpha) and left_out is not None and not per_target:
        solution = _best_left_out(equations, fit_intercept, penalty, left_out, hint)
        if solution is not None:
            return solution
    path = RidgePath(equations, fit_intercept, penalty)
    if not isinstance(alpha, str):
        return path.solve(alpha)
    alphas = path.grid()
    scores, judged = path.scores(alphas, left_out if is_auto(alpha) else None)
    best = (largest_of_best if judged else best_alpha)(alphas, scores, per_target)
    solution = path.solve(best)
    solution.alphas, solution.scores, solution.left_out = alphas, scores, judged
    return solution


def _best_left_out(
    equations: NormalEquations,
    fit_intercept: bool,
    penalty: np.ndarray | None,
    held: LeftOut,
    hint: float | None,
) -> Solution | None:
    """Return the solution for the alpha with the best leave-one-out score.

    The result is None if every alpha interpolates the rows.
    """
    score = LeftOutScores(equations, fit_intercept, penalty, held)
    alphas, scores = search(score, score.eps, score.trace, hint)
    if not np.isfinite(scores).any():
        return None
    best = float(largest_of_best(alphas, scores, per_target=False))
    warn_of_ends(best, alphas, scores, score.constant, equations.precision)
    solution = Cholesky(equations, fit_intercept, penalty).solve(best)
    solution.alphas, solution.scores, solution.left_out = alphas, scores, True
    return solution
