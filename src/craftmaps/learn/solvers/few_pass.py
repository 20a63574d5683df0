"""Minimize a smooth convex loss of linear scores in few passes over the features.

The first sums are the preconditioner. With H = sum w (z - m)(z - m)^T, from all rows or from a
sample of them, and c the curvature bound of the loss, P = c H + alpha I dominates the Hessian of
every loss here. L-BFGS starts its two-loop recursion from P^-1 and then needs about ten passes,
each of which costs two products of the features with a thin matrix and no E^2 work per row.

A descent asks for values and gradients at points and never sees rows. Several descents (other
alphas, other folds left out) share a pass: their scores are one matrix product.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import get_blas_funcs, lapack

from craftmaps.learn.passes import PassSums, Point

_MEMORY = 8  # pairs of steps and changes of the gradient that L-BFGS keeps
_ENOUGH_SLOPE = 0.9  # a step is taken unless the slope at its end is this share of the first, up
_JITTER = 10.0  # units of rounding, times the mean of the diagonal, that keep P positive definite
_LEAST_PASSES = 20  # of a descent, however late it is
_SEARCH_TOLERANCE = 5e-5  # while alphas are compared: descents that end early misjudge them
_START_TOLERANCE = 1e-3  # of the descent from zero, at a larger alpha, that others start from
_EQUAL = 0.02  # relative difference of losses of rows held out that does not count
_STEPS = 2  # alphas per decade
_FIRST_ALPHA, _LAST_ALPHA = 0.01, 100.0  # where a search begins and ends, in mean curvatures


@dataclass
class Preconditioner:
    """P = c H + alpha Q for the coefficients and c n for the intercepts, factored once.

    Q is the penalty matrix, the identity if it is None.
    """

    factor: np.ndarray
    intercept: float

    @classmethod
    def of(
        cls, hessian: np.ndarray, weight: float, alpha: float, penalty: np.ndarray | None
    ) -> "Preconditioner":
        """Factor P; `hessian` is c H (its lower triangle counts), `weight` is c n."""
        P = hessian.copy(order="F")
        diagonal = np.einsum("ii->i", P)
        if penalty is not None:
            P += (alpha * penalty).astype(P.dtype)
        else:
            diagonal += alpha
        potrf = lapack.spotrf if P.dtype == np.float32 else lapack.dpotrf
        jitter = _JITTER * float(np.finfo(P.dtype).eps) * float(diagonal.mean(dtype=np.float64))
        while True:
            factor, failed = potrf(P, lower=1, clean=0)
            if not failed:
                return cls(factor, weight)
            diagonal += jitter
            jitter *= 10

    def condition(self) -> float:
        """An estimate of the condition number of P, from the diagonal of its factor."""
        diagonal = self.factor.diagonal().astype(np.float64)
        return float((diagonal.max() / diagonal.min()) ** 2)

    def __call__(self, gradient: np.ndarray) -> np.ndarray:
        """P^-1 times a gradient, whose last row belongs to the intercepts."""
        (trsm,) = get_blas_funcs(("trsm",), (self.factor,))
        top = np.array(gradient[:-1], dtype=self.factor.dtype, order="F")  # a copy, overwritten
        top = trsm(1.0, self.factor, top, lower=1, overwrite_b=1)
        top = trsm(1.0, self.factor, top, lower=1, trans_a=1, overwrite_b=1)
        return np.vstack([top.astype(np.float64), gradient[-1:] / self.intercept])


class _Pair(NamedTuple):
    """A step, the change of the gradient along it, P^-1 times that change, and their product."""

    step: np.ndarray
    change: np.ndarray
    preconditioned: np.ndarray
    product: float


@dataclass
class Descent:
    """L-BFGS from `point` with P^-1 as its first inverse Hessian, one evaluation at a time.

    Steps are judged by slopes, because rounding hides differences of values near the minimum. A
    convex function whose slope along the step is still negative at its end has fallen; one whose
    slope there is less than the first one, turned around, has very nearly done so.

    Attributes
    ----------
    point, gradient : ndarray of shape (n_features + 1, n_outputs)
        Where the descent is, with intercepts in the last row, and the gradient there.
    value : float
    decrement : float
        The norm of the preconditioned gradient, sqrt(g^T P^-1 g).
    held : float
        The loss of rows held out, at `point`.
    trial : ndarray
        Where the function is to be evaluated next.
    alpha : float
        The penalty of the function.
    """

    point: np.ndarray
    value: float = np.inf
    decrement: float = np.inf
    gradient: np.ndarray | None = None
    trial: np.ndarray = field(init=False)
    held: float = 0.0
    stuck: bool = False
    alpha: float = 0.0

    def __post_init__(self) -> None:
        self.trial = self.point
        self._pairs: list[_Pair] = []
        self._step = 1.0
        self._direction = self._preconditioned = np.zeros_like(self.point)
        self._slope = 0.0

    def at(
        self, alpha: float, precondition: Preconditioner, penalize: Callable[..., np.ndarray]
    ) -> "Descent":
        """Where this descent is, with what it knows, for the same function with another penalty.

        Only the penalty changes, which is quadratic: the value and the gradient here, and the
        changes of the gradient along past steps, need no pass. `penalize` applies Q.
        """
        more, other = alpha - self.alpha, Descent(self.point, alpha=alpha)
        assert self.gradient is not None
        steps = [self.point, *(pair.step for pair in self._pairs)]
        added = [more * penalize(step) for step in steps]
        old = [self.gradient, *(pair.change for pair in self._pairs)]
        changes = [a + b for a, b in zip(old, added, strict=True)]
        solved = np.split(precondition(np.hstack(changes)), len(changes), axis=1)
        for pair, change, solution in zip(self._pairs, changes[1:], solved[1:], strict=True):
            product = float(np.vdot(pair.step, change))
            other._pairs.append(_Pair(pair.step, change, solution, product))
        value = self.value + float(np.vdot(self.point, added[0])) / 2
        other.receive(value, changes[0], solved[0], self.held)
        return other

    @classmethod
    def between(cls, descents: Sequence["Descent"]) -> "Descent":
        """The mean of where descents at one alpha are, not evaluated yet.

        It takes over what the first of them knows of the curvature, which differs little.
        """
        first = descents[0]
        mean = cls(np.mean([descent.point for descent in descents], axis=0), alpha=first.alpha)
        mean._pairs = list(first._pairs)
        return mean

    def is_done(self, gain_of_interest: float) -> bool:
        """Whether the value can fall by no more than about that.

        Half of g^T P^-1 g is what a quadratic with Hessian P would still fall. L-BFGS knows the
        Hessian better after some steps, so what it expects must be as small.
        """
        return max(self.decrement**2, -self._slope) / 2 <= gain_of_interest

    def receive(
        self, value: float, gradient: np.ndarray, preconditioned: np.ndarray, held: float = 0.0
    ) -> None:
        """Take value, gradient g, P^-1 g and held-out loss at `trial`, and set the next one."""
        if self.gradient is None:
            self._arrive(value, gradient, preconditioned, held)
            return
        slope = float(np.vdot(gradient, self._direction))
        if not (np.isfinite(value) and slope <= -_ENOUGH_SLOPE * self._slope):
            # beyond the minimum by as much as before it, or worse: the secant tells where it is
            share = -self._slope / (slope - self._slope) if np.isfinite(slope) else 0.1
            self._step *= min(max(share, 0.1), 0.7)
            if self._step < 1e-6:
                self.stuck = True
                return
            self.trial = self.point + self._step * self._direction
            return
        step, change = self.trial - self.point, gradient - self.gradient
        product = float(np.vdot(step, change))
        if product > 1e-10 * np.linalg.norm(step) * np.linalg.norm(change):
            pair = _Pair(step, change, preconditioned - self._preconditioned, product)
            self._pairs = [*self._pairs, pair][-_MEMORY:]
        self._arrive(value, gradient, preconditioned, held)

    def _arrive(
        self, value: float, gradient: np.ndarray, preconditioned: np.ndarray, held: float
    ) -> None:
        self.point, self.value, self.gradient = self.trial, value, gradient
        self._preconditioned, self.held = preconditioned, held
        self.decrement = float(np.sqrt(max(np.vdot(gradient, preconditioned), 0.0)))
        # the two-loop recursion, in which P^-1 is applied to sums of what it was applied to before
        remaining, direction, shares = gradient.copy(), preconditioned.copy(), []
        for pair in reversed(self._pairs):
            share = float(np.vdot(pair.step, remaining)) / pair.product
            remaining -= share * pair.change
            direction -= share * pair.preconditioned
            shares.append(share)
        if self._pairs:
            last = self._pairs[-1]
            direction *= last.product / float(np.vdot(last.change, last.preconditioned))
        for pair, share in zip(self._pairs, reversed(shares), strict=True):
            direction += (share - float(np.vdot(pair.change, direction)) / pair.product) * pair.step
        self._direction, self._step = -direction, 1.0
        self._slope = -float(np.vdot(gradient, direction))
        self.trial = self.point + self._direction


@dataclass
class FirstSums:
    """What a first look at the rows gives: c H, the mean of the features, and c n.

    `hessian` is c sum w (z - m)(z - m)^T in its lower triangle; c is the curvature
    bound of the loss. The sums may come from a sample of the rows, scaled up to all of them.
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
    deadline: float = field(default=np.inf, init=False)
    n_passes: int = field(default=0, init=False)
    converged: bool = field(default=True, init=False)
    condition: float = field(default=1.0, init=False)  # of the last preconditioner
    _first_gain: float | None = field(default=None, init=False)

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
        precondition = Preconditioner.of(self.first.hessian, self.first.weight, alpha, self.penalty)
        self.condition = precondition.condition()
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
                descents[i].receive(value, gradient, solved[column], sums.held[column])
            if self._first_gain is None:
                self._first_gain = max(descent.decrement**2 / 2 for descent in descents)
            open_ = [i for i in active if not descents[i].is_done(tol * self._first_gain)]
            active = [i for i in open_ if not descents[i].stuck]
            self.converged = self.converged and len(active) == len(open_)
        self.converged = self.converged and not active
        return descents

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


@dataclass
class Found:
    """The best alpha, all that were tried with their losses of rows held out, and where it ended.

    `ends` are the descents at the best alpha, one without each fold.
    """

    best: float
    alphas: np.ndarray
    scores: np.ndarray
    ends: list[Descent]


def search(
    machine: Machine, folds: Sequence[int], alphas: Sequence[float] | None, lowest: float
) -> Found:
    """Find the alpha with the least loss of rows held out.

    Given alphas are tried from the largest on, each from where the one before ended. Otherwise
    alpha begins at a hundredth of the mean curvature and is lowered by half decades as long as the
    loss of rows held out falls, or raised if it rises at once. Few rows decide where nearly all
    are right, so the largest alpha is taken whose loss is within two percent of the least one.
    """
    tried: dict[float, float] = {}
    reached: dict[float, list[Descent]] = {}
    ends: Sequence[np.ndarray | Descent] = [machine.start() for _ in folds]

    def improves(alpha: float) -> bool:
        nonlocal ends
        ends = reached[alpha] = machine.descend(alpha, ends, folds, _SEARCH_TOLERANCE)
        least = min(tried.values(), default=np.inf)
        tried[alpha] = float(sum(descent.held for descent in reached[alpha]))
        return tried[alpha] < (1 - _EQUAL) * least

    if alphas is not None:
        for alpha in sorted(alphas, reverse=True):
            improves(alpha)
    else:
        scale = machine.first.mean_curvature or 1.0
        first = round(_STEPS * np.log10(_FIRST_ALPHA * scale))
        last = np.floor(_STEPS * np.log10(_LAST_ALPHA * scale))
        power = first
        if machine.has_time:
            # a larger penalty is quicker to minimize, and need not be minimized well
            ends = machine.descend(10.0 ** ((power + 1) / _STEPS), ends, folds, _START_TOLERANCE)
        improves(10.0 ** (power / _STEPS))
        first_ends = ends
        for step in (-1, 1):
            while lowest <= 10.0 ** ((power + step) / _STEPS) and power + step <= last:
                if not machine.has_time:
                    break
                power += step
                if not improves(10.0 ** (power / _STEPS)):
                    break
            if len(tried) > 2:
                break
            power, ends = first, first_ends
    good = (1 + _EQUAL) * min(tried.values())
    best = max(alpha for alpha in tried if tried[alpha] <= good)
    every = np.array(sorted(tried))
    scores = np.array([tried[alpha] for alpha in every])
    return Found(best, every, scores, reached[best])
