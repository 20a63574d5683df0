"""One-vs-rest regressions in which a class weighs more in its own target, from class sums.

The target of a class is 1 on its own rows, which are few, and -1 on all others. Least squares
mostly fits the others, and a class that lies between other classes may never be predicted. If the
rows of class c weigh r times as much in its own target, the sums of that target are
H + (r - 1) H_c and G + (r - 1) G_c, where H_c and G_c are the sums of class c. This takes one
factorization per class.
"""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.cholesky import Cholesky
from craftmaps.learn.solvers.left_out import LeftOut, LeftOutScores
from craftmaps.learn.solvers.solution import Solution


@dataclass
class OwnClass:
    """The regressions of all classes.

    Parameters
    ----------
    total : NormalEquations
        The sums of all rows.
    class_sums : list of NormalEquations
        The sums of the rows of each class.
    held : LeftOut
        Rows by whose leave-one-out predictions the weight is chosen.
    labels : ndarray of shape (n_rows,)
        Classes of the rows of `held`.
    fit_intercept : bool
    penalty : ndarray of shape (n_features, n_features) or None
    """

    total: NormalEquations
    class_sums: list[NormalEquations]
    held: LeftOut
    labels: np.ndarray
    fit_intercept: bool
    penalty: np.ndarray | None

    def solve(self, plain: Solution) -> Solution:
        """Return the solution of the weight with the best score, at the alpha of `plain`.

        `plain` is the solution for the weight 1, and is returned if no other weight is better. With
        k classes, the others are sqrt(k) and k. At k, a class of average size weighs as much in its
        own target as all other classes together.
        """
        if not self.held.weights.any():
            return plain
        k = float(self.total.n_targets)
        scores = {weight: self._score(plain, weight) for weight in (1.0, k**0.5, k)}
        best = min(scores, key=scores.__getitem__)  # the first one of equal scores
        return plain if best == 1 else self._solution(plain, best)

    def left_out(self, solution: Solution, weight: float) -> np.ndarray:
        """Return leave-one-out predictions, which are infinite for interpolated rows."""
        predicted = np.empty_like(self.held.Y)
        for c, alpha in enumerate(self._alphas(solution)):
            own = np.where(self.labels == c, weight, 1.0)
            # A row that weighs r in its own target is still one row: all its weight is left out.
            held = replace(
                self.held,
                Y=self.held.Y[:, [c]],
                removed=own * np.minimum(self.held.weights, 1),
                loss=np.ravel,
            )
            scores = LeftOutScores(self._sums(c, weight), self.fit_intercept, self.penalty, held)
            predicted[:, c] = scores(alpha)
        return predicted

    def _score(self, solution: Solution, weight: float) -> float:
        predicted = self.left_out(solution, weight)
        if not np.isfinite(predicted).all():
            return np.inf
        return float(self.held.scores(predicted).mean())

    def _solution(self, plain: Solution, weight: float) -> Solution:
        parts = [
            Cholesky(self._sums(c, weight), self.fit_intercept, self.penalty).solve(alpha)
            for c, alpha in enumerate(self._alphas(plain))
        ]
        return replace(
            plain,
            coef=np.hstack([part.coef for part in parts]),
            intercept=np.concatenate([part.intercept for part in parts]),
            jitter=max(part.jitter for part in parts),
            condition=max(part.condition for part in parts),
            own_class_weight=weight,
        )

    def _alphas(self, solution: Solution) -> list[float]:
        return [float(a) for a in np.broadcast_to(solution.alpha, self.total.n_targets)]

    def _sums(self, c: int, weight: float) -> NormalEquations:
        """The sums for the target of class c."""
        sums = _one_target(self.total, c)
        if weight == 1:
            return sums
        more = _one_target(self.class_sums[c], c).scale(weight - 1)
        return sums.merge(more)


def _one_target(equations: NormalEquations, c: int) -> NormalEquations:
    """Return a copy of sums with one of their targets."""
    part = copy(equations)
    if part.n_features:
        part.gradient, part.n_targets = part.gradient[:, [c]], 1
        part.y_mean, part.y_square = part.y_mean[[c]], part.y_square[[c]]
    return part
