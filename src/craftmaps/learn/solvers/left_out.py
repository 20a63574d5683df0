"""Exact leave-one-out predictions for some of the rows, and the scores that they give alphas.

With A = H + alpha I = L L^T, a row z has the leverage h = |L^-1 z|^2 + 1/n and the prediction
(L^-1 z)^T (L^-1 G). If the row were left out, its residual e would become e / (1 - h). Each alpha
costs one Cholesky factorization and one triangular solve for the rows, in the precision of the
products of features.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs

from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.factor import factor_lower
from craftmaps.learn.solvers.penalty import in_place, whitening

_SINGLE_ALPHA = 1e-6  # with a larger share of the trace, scores in single precision are as good,
_MANY_FEATURES = 512  # and with more features they are worth it
_INTERPOLATES = 1e-8  # if 1 - leverage is smaller, rounding spoils the leave-one-out error


@dataclass
class LeftOut:
    """Some of the rows of the sums, whose leave-one-out errors decide alpha.

    Z, Y and weights are the features, targets and weights of these rows. `loss` turns predictions
    for them into scores; None stands for the mean squared error of each target. `removed` is how
    much of the weight of each row is left out. None stands for at most 1, because a row of weight 2
    counts as two rows, and only one of them is left out.
    """

    Z: np.ndarray
    Y: np.ndarray
    weights: np.ndarray
    loss: Callable[[np.ndarray], np.ndarray] | None = None
    removed: np.ndarray | None = None

    def scores(self, predicted: np.ndarray) -> np.ndarray:
        """Return one score per target, or as many as `loss` returns."""
        if self.loss is not None:
            return self.loss(predicted)
        return np.asarray(np.average((self.Y - predicted) ** 2, axis=0, weights=self.weights))

    def without_itself(self, leverages: np.ndarray) -> np.ndarray:
        """Return 1 - leverage of each row, or of the part of its weight that is left out."""
        removed = np.minimum(self.weights, 1) if self.removed is None else self.removed
        return np.asarray(1 - leverages * removed)

    def clear_scores(self, fitted: np.ndarray, leverages: np.ndarray) -> np.ndarray:
        """Return the scores of leave-one-out predictions, infinite if a row is interpolated."""
        clear = self.are_clear(leverages)
        scores = self.scores(self.predicted(fitted, leverages))
        return scores if clear else np.full_like(scores, np.inf)

    def are_clear(self, leverages: np.ndarray) -> bool:
        """Whether no row is interpolated; the prediction of such a row is only rounding error."""
        return bool((self.without_itself(leverages)[self.weights > 0] > _INTERPOLATES).all())

    def predicted(self, fitted: np.ndarray, leverages: np.ndarray) -> np.ndarray:
        """Return leave-one-out predictions, given the predictions `fitted` with all rows."""
        rest = np.maximum(self.without_itself(leverages), 1e-12)
        return np.asarray(self.Y - (self.Y - fitted) / rest[:, None])


class LeftOutScores:
    """Function from alpha to the leave-one-out score of the rows in `held`.

    Parameters
    ----------
    equations : NormalEquations
    fit_intercept : bool
    penalty : ndarray of shape (n_features, n_features) or None
        P; None is the identity.
    held : LeftOut

    Attributes
    ----------
    eps : float
        Unit of rounding of the sums.
    trace : float
        The trace of H, in the coordinates in which the penalty is the identity.
    constant : float
        The score of the means of the targets as predictions.
    """

    def __init__(
        self,
        equations: NormalEquations,
        fit_intercept: bool,
        penalty: np.ndarray | None,
        held: LeftOut,
    ) -> None:
        self._equations, self._held = equations, held
        self.eps = float(np.finfo(equations.precision).eps)
        y_mean = equations.y_mean if fit_intercept else np.zeros(equations.n_targets)
        self.constant = float(held.scores(np.tile(y_mean, (len(held.Y), 1))).sum())
        Z = held.Z - equations.z_mean if fit_intercept else held.Z.astype(np.float64)
        self._matrix: np.ndarray | None = None
        if in_place(fit_intercept, penalty is not None):
            self._rows, self._right = Z, equations.gradient
            self._known, self._free = np.tile(y_mean, (len(Z), 1)), np.zeros(len(Z))
        else:
            change: Any = whitening(penalty, equations.precision)
            self._matrix, self._right, _ = change.reduce(*equations.system(fit_intercept))
            self._rows, self._free = change.rows(Z)
            self._known = Z @ change.restore(np.zeros_like(self._right)) + y_mean
        if fit_intercept:
            self._free = self._free + 1 / equations.weight
        with self._sums() as lower:
            diagonal = lower.diagonal()
            with np.errstate(over="ignore"):  # the search raises an error with advice
                self.trace = float(diagonal.sum())
            self._scale = 1 / (float(diagonal.max(initial=0.0)) or 1.0)

    def __call__(self, alpha: float) -> np.ndarray:
        """Return one score per target or as many as the loss gives, infinite for interpolation."""
        many = self._equations.n_features > _MANY_FEATURES
        single = self._equations.precision == np.float32
        single = single or (many and alpha > _SINGLE_ALPHA * self.trace)
        score = self._score(alpha, np.dtype(np.float32)) if single else None
        if score is None:
            score = self._score(alpha, np.dtype(np.float64))
        if score is None:
            score = np.full_like(self._held.scores(self._known), np.inf)
        return score

    def _score(self, alpha: float, dtype: np.dtype) -> np.ndarray | None:
        """Return the score computed in `dtype`, or None if rounding makes the system indefinite."""
        with self._sums() as lower, np.errstate(over="ignore", invalid="ignore"):
            matrix = np.empty(lower.shape, dtype, order="F")
            np.multiply(lower, self._scale, out=matrix, casting="same_kind")
        diagonal = np.einsum("ii->i", matrix)
        diagonal += dtype.type(alpha * self._scale)
        if not factor_lower(matrix):
            return None
        (trsm,) = get_blas_funcs(("trsm",), (matrix,))
        root = np.sqrt(self._scale)
        rows, right = (
            trsm(1.0, matrix, np.array(root * part, dtype, order="F"), lower=1, overwrite_b=1)
            for part in (self._rows.T, self._right)
        )
        leverages = np.einsum("ij,ij->j", rows, rows).astype(np.float64) + self._free
        return self._held.clear_scores(rows.T @ right + self._known, leverages)

    def _sums(self) -> AbstractContextManager[np.ndarray]:
        """Lend H, whose lower triangle alone is valid."""
        return self._equations.lent() if self._matrix is None else nullcontext(self._matrix)
