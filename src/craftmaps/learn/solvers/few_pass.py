"""Minimize a smooth convex loss of linear scores in few passes over the features.

The first sums are the preconditioner. With H = sum w (z - m)(z - m)^T, from all rows or from a
sample of them, and c the curvature bound of the loss, P = c H + alpha I dominates the Hessian of
every loss here. L-BFGS starts its two-loop recursion from P^-1 and then needs about ten passes,
each of which costs two products of the features with a thin matrix and no E^2 work per row.

Where rows are predicted with certainty, their curvature is far below c, and P is a poor picture of
the Hessian. So where a factorization costs no more than a few passes, P is made again from a
sample of the rows with their curvatures of the moment, as often as those have fallen or risen.

Several descents (other folds left out) share a pass: their scores are one matrix product.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from craftmaps.learn.passes import PassSums, Point
from craftmaps.learn.solvers.descent import Descent, Preconditioner

_LEAST_PASSES = 20  # of a descent, however late it is
_SAME_CURVATURE = 0.6  # P stays as long as the curvatures are this share of what they were, or more


@dataclass
class FirstSums:
    """What a look at the rows gives: c H, the mean of the features, and c n.

    `hessian` is c sum w (z - m)(z - m)^T in its lower triangle; c is the curvature
    bound of the loss, or the curvature of each row. The sums may come from a sample of the rows,
    scaled up to all of them.
    """

    hessian: np.ndarray
    centre: np.ndarray
    weight: float

    @property
    def mean_curvature(self) -> float:
        """Mean of the diagonal of c H, the scale on which alphas are counted."""
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
        Gives the PassSums of one pass at a list of `Point`.
    penalty : ndarray or None
        Q, the identity if None.
    n_outputs : int
    fit_intercept : bool
    max_passes : int
        Passes after which there is a warning.
    renew : callable or None
        Gives new sums about the same mean at a `Point`, with the curvatures of the rows there,
        whose sum is also given to it. None if that costs more than it saves.
    deadline : float
        The time, by `time.monotonic()`, after which a descent ends that has made 20 passes. With
        fewer passes, a model would be worth nothing.
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
    condition: float = field(default=1.0, init=False)  # of the last preconditioner
    _first_gain: float | None = field(default=None, init=False)
    _curvature: float | None = field(default=None, init=False)  # of rows, when P was made

    def start(self) -> np.ndarray:
        """The point of no coefficients."""
        return np.zeros((len(self.first.centre) + 1, self.n_outputs))

    def descend(
        self,
        alpha: float,
        starts: Sequence[np.ndarray | Descent],
        folds: Sequence[int | None],
        tol: float,
    ) -> list[Descent]:
        """Minimize at one alpha, from several starts, each without the rows of a fold.

        A start is a point, or a descent without the same fold, which was at any alpha if it was
        evaluated.
        A descent ends where the objective can fall by no more than about `tol` of what it could
        fall by at first. That is no share of the objective itself: outliers may be most of one that
        can hardly fall, and separable rows bring it to nearly nothing, where the passes that
        another percent takes change no prediction for the better.
        """
        precondition = self._preconditioner(alpha)
        descents = []
        for start in starts:
            descent = start if isinstance(start, Descent) else Descent(start, alpha=alpha)
            known = descent.gradient is not None
            descents.append(descent.at(alpha, precondition, self._penalized) if known else descent)
        active, first = list(range(len(descents))), self.n_passes
        while active and self.n_passes < self.max_passes:
            if self.n_passes - first >= _LEAST_PASSES and not self.has_time:
                break
            points = [self.point(descents[i].trial, folds[i]) for i in active]
            sums = self.evaluate(points)
            self.n_passes += 1
            found = [
                self._objective(sums, column, descents[i].trial, alpha)
                for column, i in enumerate(active)
            ]
            # one product for all descents: a thin one costs nearly as much as a wide one
            solved = np.split(precondition(np.hstack([g for _, g in found])), len(active), axis=1)
            for column, i in enumerate(active):
                value, gradient = found[column]
                rows = sums.held[column], sums.curvatures[column]
                descents[i].receive(value, gradient, solved[column], *rows)
            if self._first_gain is None:
                self._first_gain = max(descent.decrement**2 / 2 for descent in descents)
            open_ = [i for i in active if not descents[i].is_done(tol * self._first_gain)]
            active = [i for i in open_ if not descents[i].stuck]
            self.converged = self.converged and len(active) == len(open_)
            if active and self._is_renewed(descents[active[0]]):
                precondition = self._preconditioner(alpha)
                for i in active:
                    descents[i] = descents[i].at(alpha, precondition, self._penalized)
        self.converged = self.converged and not active
        return descents

    def _preconditioner(self, alpha: float) -> Preconditioner:
        first = self.first
        precondition = Preconditioner.of(first.hessian, first.weight, alpha, self.penalty)
        self.condition = precondition.condition()
        return precondition

    def _is_renewed(self, descent: Descent) -> bool:
        """Take the curvatures of rows where a descent is, if they are no longer what they were."""
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
        """Whether the deadline is still to come."""
        return time.monotonic() < self.deadline

    def point(self, theta: np.ndarray, fold: int | None) -> Point:
        """Coefficients for features that are not centered."""
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
        """Q times coefficients, and no penalty for the intercepts in the last row."""
        coef = theta[:-1] if self.penalty is None else self.penalty @ theta[:-1]
        return np.vstack([coef, np.zeros_like(theta[-1:])])
