"""The ridge solve: one factorisation for all targets, alpha from the statistics of the pass."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning, blas

from craftmaps.learn.codes import Discriminant
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.band import BandForm
from craftmaps.learn.solvers.factor import factor
from craftmaps.learn.solvers.penalty import whitening
from craftmaps.learn.solvers.precision import FLOOR
from craftmaps.learn.solvers.solution import LeftOut, Solution
from craftmaps.learn.solvers.tridiagonal import TridiagonalForm

_STEPS = 4  # alphas per decade when one is searched
EQUAL = 1e-3  # relative difference of scores that does not count
_LARGE = 2048  # features from which a reduction to a band is faster than one to three diagonals


def solve(
    equations: NormalEquations,
    alpha: Any = "gcv",
    *,
    fit_intercept: bool = True,
    per_target: bool = False,
    penalty: np.ndarray | None = None,
    left_out: LeftOut | None = None,
) -> Solution:
    """Minimise sum w (y - b^T z - c)^2 + alpha b^T P b, P the identity unless given.

    Parameters
    ----------
    equations : NormalEquations
    alpha : float, array of one per target, or "gcv"
        "gcv" takes the minimum of generalised cross-validation among powers of 10^(1/4).
    fit_intercept : bool, default=True
        Whether c is fitted (never penalised), or zero.
    per_target : bool, default=False
        Whether "gcv" may choose another alpha for each target.
    penalty : ndarray of shape (n_features, n_features), default=None
        P, positive semi-definite, of any rank.
    left_out : LeftOut, default=None
        Rows by which "gcv" chooses instead. Generalised cross-validation takes every row to be of
        mean leverage, which misleads it where the model interpolates: the fewer rows than features
        there are, the less it tells overfitting from none. A row that any alpha interpolates, such
        as a single one, judges nothing.
    """
    check_weight(equations.weight)
    if _is_number(alpha):
        return _solve_one(equations, float(alpha), fit_intercept, penalty)
    path = RidgePath(equations, fit_intercept, penalty)
    if not isinstance(alpha, str):
        return path.solution(np.asarray(alpha, dtype=np.float64))
    alphas = path.grid()
    scores = np.empty(0) if left_out is None else path.left_out(alphas, left_out)
    judged = bool(np.isfinite(scores).any())
    if judged:
        best = largest_of_best(alphas, scores, per_target)
    else:
        scores = path.gcv(alphas)
        best = _best(alphas, scores, per_target)
    solution = path.solution(best)
    solution.alphas, solution.scores, solution.left_out = alphas, scores, judged
    return solution


def check_weight(weight: float) -> None:
    """Complain if the rows weigh nothing together."""
    if not weight:
        raise ValueError("there is nothing to learn from: the weight of all rows together is zero.")


def solves_in_place(alpha: Any, fit_intercept: bool, penalised: bool) -> bool:
    """Whether `solve` needs no second matrix; `penalised` says that there is a `penalty`."""
    return _is_number(alpha) and fit_intercept and not penalised


def _is_number(alpha: Any) -> bool:
    return not isinstance(alpha, str) and np.ndim(alpha) == 0


class RidgePath:
    """Solutions, residuals and degrees of freedom of one ridge problem for every alpha.

    With A = Q T Q^T and g = Q^T G, w = (T + alpha)^-1 g gives the coefficients Q w, and
    RSS = |y|^2 - g^T w - alpha |w|^2, df = tr T (T + alpha)^-1.
    """

    def __init__(
        self, equations: NormalEquations, fit_intercept: bool, penalty: np.ndarray | None = None
    ) -> None:
        self._whitening = whitening(penalty, equations.precision)
        lower, right, square = self._whitening.reduce(*equations.system(fit_intercept))
        self._square = square
        form = BandForm if len(lower) >= _LARGE else TridiagonalForm
        self._form = form(lower, right)
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
        first, last = (int(np.ceil(_STEPS * np.log10(value))) for value in (bottom, 10 * top))
        return np.asarray(10.0 ** (np.arange(first, last + 1) / _STEPS))

    def gcv(self, alphas: Sequence[float] | np.ndarray) -> np.ndarray:
        """Generalised cross-validation, (RSS / n) / (1 - df / n)^2, of shape (n_alphas, n_targets).

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

    def solution(self, alpha: np.ndarray) -> Solution:
        """The solution at one alpha, or at one per target."""
        coef = np.empty_like(self._form.rotated)
        jitter, condition = np.empty(alpha.shape), np.empty(alpha.shape)
        for value in np.unique(alpha):
            shift = value + self.jitter(value)
            system = self._form.at(shift)
            chosen = np.broadcast_to(alpha == value, coef.shape[1:])
            coef[:, chosen] = system.solve(self._form.rotated)[:, chosen]
            jitter[alpha == value] = shift - value
            condition[alpha == value] = (self._form.largest + shift) / system.smallest()
        _warn_of(jitter.max(), alpha)
        coef = self._whitening.restore(self._form.unrotate(coef))
        intercept = _intercept(*self._means, coef, self._fit_intercept)
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
            solution = path.solution(np.asarray(alpha, dtype=np.float64))
            errors[i] += squared_error(held_out, solution.coef, solution.intercept)
        del path
    return errors / sum(fold.weight for fold in folds)


def squared_error(
    equations: NormalEquations, coef: np.ndarray, intercept: np.ndarray
) -> np.ndarray:
    """Sum of squared errors of a linear model on the rows behind `equations`, per target."""
    quadratic = np.einsum("ij,ij->j", coef, _symmetric_product(equations, coef))
    shift = equations.y_mean - equations.z_mean @ coef - intercept
    linear = np.einsum("ij,ij->j", coef, equations.gradient)
    return np.asarray(equations.y_square - 2 * linear + quadratic + equations.weight * shift**2)


def discriminant(equations: NormalEquations, solution: Solution, same_sum: bool) -> Discriminant:
    """That of one-vs-rest predictions, from the sums alone.

    Targets are 1 on the rows of a class and -1 elsewhere, so the means of the targets tell the
    shares of the classes, and column k of G is twice the sum of z - m over class k.
    """
    coef, weight = solution.coef, equations.weight
    share = (1 + equations.y_mean) / 2
    sums = equations.gradient.T @ coef / 2
    return Discriminant.learn(
        share,
        equations.z_mean @ coef + solution.intercept,
        sums / weight,
        coef.T @ _symmetric_product(equations, coef) / weight,
        float(np.finfo(equations.precision).eps),
        same_sum,
    )


def leverages(
    equations: NormalEquations,
    Z: np.ndarray,
    alpha: float,
    *,
    fit_intercept: bool = True,
    penalty: np.ndarray | None = None,
) -> np.ndarray:
    """z^T (H + alpha P)^-1 z for rows z (about the mean, and 1 / n more, with an intercept).

    Times its weight, this is a row's entry h in the diagonal of the hat matrix: had the row been
    left out, its residual e would have been e / (1 - h).
    """
    change = whitening(penalty, equations.precision)
    lower, _, _ = change.reduce(*equations.system(fit_intercept))
    rows, free = change.rows(Z - equations.z_mean if fit_intercept else Z.astype(np.float64))
    factored = factor(lower, alpha, float(np.finfo(equations.precision).eps))
    return np.asarray(factored.squares(rows) + free + fit_intercept / equations.weight)


def left_out_predictions(
    equations: NormalEquations,
    held: LeftOut,
    fitted: np.ndarray,
    alpha: Any,
    *,
    fit_intercept: bool = True,
    penalty: np.ndarray | None = None,
) -> tuple[np.ndarray, bool]:
    """Predictions for rows had each been left out, from those with them, and whether all are clear.

    alpha is a number, or one per target.
    """
    predicted, clear = np.empty_like(held.Y), True
    alphas = np.broadcast_to(alpha, fitted.shape[1:])
    for value in np.unique(alphas):
        h = leverages(equations, held.Z, value, fit_intercept=fit_intercept, penalty=penalty)
        predicted[:, alphas == value] = held.predicted(fitted, h)[:, alphas == value]
        clear = clear and held.are_clear(h)
    return predicted, clear


def choose(alphas: Sequence[float], errors: np.ndarray, per_target: bool) -> np.ndarray:
    """The alpha (or the alphas, one per target) with the smallest error."""
    return _best(np.asarray(alphas, dtype=np.float64), errors, per_target)


def _solve_one(
    equations: NormalEquations, alpha: float, fit_intercept: bool, penalty: np.ndarray | None
) -> Solution:
    eps = float(np.finfo(equations.precision).eps)
    if solves_in_place(alpha, fit_intercept, penalty is not None):
        with equations.lent() as lower:
            factored = factor(lower, alpha, eps)
            coef = factored.solve(equations.gradient)
    else:
        change = whitening(penalty, equations.precision)
        lower, right, _ = change.reduce(*equations.system(fit_intercept))
        factored = factor(lower, alpha, eps)
        coef = change.restore(factored.solve(right))
    jitter = factored.most_added()
    _warn_of(jitter, alpha)
    intercept = _intercept(equations.z_mean, equations.y_mean, coef, fit_intercept)
    return Solution(coef, intercept, alpha, jitter, factored.condition)


def _plain(value: np.ndarray) -> Any:
    return value if value.ndim else float(value)


def _intercept(
    z_mean: np.ndarray, y_mean: np.ndarray, coef: np.ndarray, fitted: bool
) -> np.ndarray:
    return np.asarray(y_mean - z_mean @ coef) if fitted else np.zeros(coef.shape[1])


def _best(alphas: np.ndarray, scores: np.ndarray, per_target: bool) -> np.ndarray:
    if per_target:
        return np.asarray(alphas[scores.argmin(axis=0)])
    return np.asarray(alphas[scores.sum(axis=1).argmin()])


def largest_of_best(alphas: np.ndarray, scores: np.ndarray, per_target: bool) -> np.ndarray:
    """The largest alpha whose score is the best to a thousandth: rounding does not choose."""
    scores = scores if per_target else scores.sum(axis=1)
    good = scores <= (1 + EQUAL) * scores.min(axis=0)
    return np.asarray(alphas[::-1][good[::-1].argmax(axis=0)])


def _symmetric_product(equations: NormalEquations, right: np.ndarray) -> np.ndarray:
    return np.asarray(blas.dsymm(1.0, equations._lower, np.asfortranarray(right), lower=1))


def _warn_of(jitter: float, alpha: Any) -> None:
    if jitter > 0:
        warnings.warn(
            f"the system at alpha={alpha} is singular to working precision; up to {jitter:.3g} was "
            f"added to its diagonal (attribute jitter_). Raise alpha, or remove features that "
            f"depend on others.",
            LinAlgWarning,
            stacklevel=4,
        )
