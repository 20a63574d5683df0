"""Minimize a smooth convex loss of linear scores in few passes over the features.

The preconditioner comes from H = sum w (z - m)(z - m)^T over all rows or a sample. With the
curvature bound c of the loss, P = c H + alpha I dominates the Hessian of every loss here. L-BFGS
starts its two-loop recursion from P^-1 and then needs about ten passes. Each pass costs two
products of the features with a thin matrix, and no E^2 operations per row.

Rows that are predicted with certainty have a curvature far below c, and then P approximates the
Hessian poorly. If a factorization costs no more than a few passes, P is computed again from a
sample of the rows and their current curvatures, whenever these have changed.

Several descents, for other held-out folds, share a pass, because their scores are one matrix
product.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from craftmaps.learn.passes import PassSums, Point
from craftmaps.learn.solvers.descent import Descent, Preconditioner
from craftmaps.threads import serial_blas

_LEAST_PASSES = 20  # passes of a descent even after the deadline
_SETTLED_PASSES = 8  # passes of a descent after which held-out losses hardly change
_SAME_CURVATURE = 0.6  # P is computed again if curvatures change by more than this ratio
_SMALL_OBJECTIVE = 0.1  # an objective below this share of its first decrease is small
_LEAST_SHARE = 0.01  # tolerances are tightened for small objectives by at most this factor


@dataclass
class FirstSums:
    """The sums for the preconditioner: c H, the mean of the features, and c n.

    `hessian` is c sum w (z - m)(z - m)^T in its lower triangle, where c is the curvature bound of
    the loss, or the curvature of each row. The sums may come from a sample of the rows, scaled up
    to all rows.
    """

    hessian: np.ndarray
    centre: np.ndarray
    weight: float

    @property
    def mean_curvature(self) -> float:
        """Mean of the diagonal of c H, which is the unit of alphas in a search."""
        return float(self.hessian.diagonal().mean(dtype=np.float64))


@dataclass
class Machine:
    """A loss of linear scores of features, to be minimized at one alpha or at the best one.

    The objective is sum w loss(z^T W + b) + alpha / 2 tr(W^T Q W). Points are kept as W and the
    intercepts of centered features, so that the preconditioner does not mix the two.

    Parameters
    ----------
    first : FirstSums
    evaluate : callable
        Function from a list of `Point` to the PassSums of one pass.
    penalty : ndarray or None
        Q, the identity if None.
    n_outputs : int
    fit_intercept : bool
    max_passes : int
        The number of passes after which there is a warning.
    renew : callable or None
        Function of a `Point` and the sum of the curvatures of rows there. It returns new sums about
        the same mean with these curvatures. None if that costs more than it saves.
    deadline : float
        The time, by `time.monotonic()`, at which descents end after at least 20 passes. With fewer
        passes, a model would be useless.
    """

    first: FirstSums
    evaluate: Callable[[Sequence[Point]], PassSums]
    penalty: np.ndarray | None
    n_outputs: int
    fit_intercept: bool = True
    max_passes: int = 200
    renew: Callable[[Point, float], FirstSums] | None = None
    deadline: float = field(default=np.inf, init=False)
    n_passes: int = field(default=0, init=False)
    converged: bool = field(default=True, init=False)
    condition: float = field(default=1.0, init=False)  # condition of the last preconditioner
    _first_gain: float | None = field(default=None, init=False)
    _curvature: float | None = field(default=None, init=False)  # of the rows when P was computed

    def start(self) -> np.ndarray:
        """Return the point with all coefficients 0."""
        return np.zeros((len(self.first.centre) + 1, self.n_outputs))

    def descend(
        self,
        alpha: float,
        starts: Sequence[np.ndarray | Descent],
        folds: Sequence[int | None],
        tol: float | Sequence[float],
        later_tol: float = 0.0,
    ) -> list[Descent]:
        """Minimize at one alpha, from several starts, each without the rows of a fold.

        A start is a point, or a descent without the same fold. If the descent was evaluated, it may
        have another alpha. Descents may have different tolerances.
        After eight passes, `later_tol` is enough.

        A descent ends when the objective can fall by no more than about `tol` times its possible
        decrease at the start, because it can hardly fall if outliers make up most of it. If nearly
        all rows are right, the objective becomes far smaller than its first decrease, and then it
        counts instead: with many classes and few rows in each, a descent that ends earlier makes
        more errors on new rows. If rows are separable and alpha is tiny, the objective approaches
        zero, and passes that lower it by another percent do not improve predictions.
        """
        precondition = self._preconditioner(alpha)
        descents = []
        for start in starts:
            descent = start if isinstance(start, Descent) else Descent(start, alpha=alpha)
            known = descent.gradient is not None
            descents.append(descent.at(alpha, precondition, self._penalized) if known else descent)
        tols = np.broadcast_to(tol, len(descents))
        active, first = list(range(len(descents))), self.n_passes
        while active and self.n_passes < self.max_passes:
            if self.n_passes - first >= _LEAST_PASSES and not self.has_time:
                break
            with serial_blas():
                self._pass(descents, folds, active, alpha, precondition)
            if self._first_gain is None:
                self._first_gain = max(descent.decrement**2 / 2 for descent in descents)
            if self.n_passes - first >= _SETTLED_PASSES:
                tols = np.maximum(tols, later_tol)
            gains = [tols[i] * self._scale_of(descents[i].value) for i in active]
            open_ = [
                i for i, gain in zip(active, gains, strict=True) if not descents[i].is_done(gain)
            ]
            active = [i for i in open_ if not descents[i].stuck]
            self.converged = self.converged and len(active) == len(open_)
            if active and self._is_renewed(descents[active[0]]):
                precondition = self._preconditioner(alpha)
                for i in active:
                    descents[i] = descents[i].at(alpha, precondition, self._penalized)
        self.converged = self.converged and not active
        return descents

    def _scale_of(self, value: float) -> float:
        """Return what a decrease of an objective with this value is compared with."""
        assert self._first_gain is not None
        return min(self._first_gain, max(value / _SMALL_OBJECTIVE, _LEAST_SHARE * self._first_gain))

    def _pass(
        self,
        descents: list[Descent],
        folds: Sequence[int | None],
        active: list[int],
        alpha: float,
        precondition: Preconditioner,
    ) -> None:
        """Evaluate the trial points of the active descents, which then move on."""
        points = [self.point(descents[i].trial, folds[i]) for i in active]
        sums = self.evaluate(points)
        self.n_passes += 1
        found = [
            self._objective(sums, column, descents[i].trial, alpha)
            for column, i in enumerate(active)
        ]
        # One product for all descents, because a thin one costs nearly as much as a wide one.
        solved = np.split(precondition(np.hstack([g for _, g in found])), len(active), axis=1)
        for column, i in enumerate(active):
            value, gradient = found[column]
            rows = sums.held[column], sums.curvatures[column]
            descents[i].receive(value, gradient, solved[column], *rows)

    def _preconditioner(self, alpha: float) -> Preconditioner:
        first = self.first
        precondition = Preconditioner.of(first.hessian, first.weight, alpha, self.penalty)
        self.condition = precondition.condition()
        return precondition

    def _is_renewed(self, descent: Descent) -> bool:
        """Use the curvatures of rows at the point of a descent, if they have changed enough."""
        before, now = self._curvature or descent.curvature, descent.curvature
        self._curvature = before
        least, largest = sorted((before, now))
        if self.renew is None or not least > 0 or least >= _SAME_CURVATURE * largest:
            return False
        self.first = self.renew(self.point(descent.point, None), now)
        self.n_passes += 1
        self._curvature = now
        return True

    @property
    def has_time(self) -> bool:
        """Whether the deadline has not passed."""
        return time.monotonic() < self.deadline

    def point(self, theta: np.ndarray, fold: int | None) -> Point:
        """Return coefficients for features that are not centered."""
        coef = theta[:-1]
        return Point(coef, theta[-1] - self.first.centre @ coef, fold)

    def _objective(
        self, sums: PassSums, column: int, theta: np.ndarray, alpha: float
    ) -> tuple[float, np.ndarray]:
        outputs = slice(column * self.n_outputs, (column + 1) * self.n_outputs)
        penalized, totals = alpha * self._penalized(theta), sums.totals[outputs]
        gradient = sums.gradients[:, outputs] - np.outer(self.first.centre, totals)
        last = totals if self.fit_intercept else np.zeros_like(totals)
        value = sums.values[column] + float(np.vdot(theta, penalized)) / 2
        return value, np.vstack([gradient, last]) + penalized

    def _penalized(self, theta: np.ndarray) -> np.ndarray:
        """Return Q times the coefficients, and 0 for the intercepts in the last row."""
        coef = theta[:-1] if self.penalty is None else self.penalty @ theta[:-1]
        return np.vstack([coef, np.zeros_like(theta[-1:])])
