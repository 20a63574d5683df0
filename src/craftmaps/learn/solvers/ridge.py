"""Ridge regression from sums, by the solver that suits alpha."""

from typing import Any

import numpy as np

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.cholesky import Cholesky
from craftmaps.learn.solvers.choose import Solver, choose
from craftmaps.learn.solvers.path import RidgePath, best_alpha, largest_of_best
from craftmaps.learn.solvers.solution import LeftOut, Solution, check_weight


def solve(
    equations: NormalEquations,
    alpha: Any = "gcv",
    *,
    fit_intercept: bool = True,
    per_target: bool = False,
    penalty: np.ndarray | None = None,
    left_out: LeftOut | None = None,
) -> Solution:
    """Minimize sum w (y - b^T z - c)^2 + alpha b^T P b, where P is the identity unless given.

    Parameters
    ----------
    equations : NormalEquations
    alpha : float, array of one per target, or the name of a search
        A search takes the least score among powers of 10^(1/4), see `RidgePath.scores`.
    fit_intercept : bool, default=True
        Whether c is fitted (never penalized), or zero.
    per_target : bool, default=False
        Whether a search may choose another alpha for each target.
    penalty : ndarray of shape (n_features, n_features), default=None
        P, positive semi-definite, of any rank.
    left_out : LeftOut, default=None
        Rows by which a search judges; without them it is by generalized cross-validation.
    """
    check_weight(equations.weight)
    kind = choose(
        None, equations.n_features, alpha, penalized=penalty is not None, per_target=per_target
    )
    if kind is Solver.CHOLESKY:
        return Cholesky(equations, fit_intercept, penalty).solve(float(alpha))
    path = RidgePath(equations, fit_intercept, penalty)
    if not isinstance(alpha, str):
        return path.solve(alpha)
    alphas = path.grid()
    scores, judged = path.scores(alphas, left_out)
    best = (largest_of_best if judged else best_alpha)(alphas, scores, per_target)
    solution = path.solve(best)
    solution.alphas, solution.scores, solution.left_out = alphas, scores, judged
    return solution
