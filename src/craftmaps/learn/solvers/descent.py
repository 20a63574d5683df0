"""L-BFGS with a preconditioner, one evaluation at a time.

A descent asks for values and gradients at points, and never sees rows. So several descents, for
other held-out folds, can share a pass over the rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import get_blas_funcs, lapack

_MEMORY = 8  # steps, with the changes of the gradient along them, that L-BFGS keeps
_ENOUGH_SLOPE = 0.9  # a step is taken unless the slope at its end is this share of the first, up
_JITTER = 10.0  # in eps times the mean of the diagonal; keeps P positive definite


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
        """Estimate of the condition number of P, from the diagonal of its factor."""
        diagonal = self.factor.diagonal().astype(np.float64)
        return float((diagonal.max() / diagonal.min()) ** 2)

    def __call__(self, gradient: np.ndarray) -> np.ndarray:
        """Return P^-1 times a gradient, whose last row belongs to the intercepts."""
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

    Steps are judged by slopes, because rounding hides differences of values near the minimum. If
    the slope along the step is still negative at its end, a convex function has fallen. If the
    slope is positive there, but smaller than the first slope in size, it has very nearly fallen.

    Attributes
    ----------
    point, gradient : ndarray of shape (n_features + 1, n_outputs)
        The current point, with intercepts in the last row, and its gradient.
    value : float
    decrement : float
        The norm of the preconditioned gradient, sqrt(g^T P^-1 g).
    held : float
        The loss of held-out rows at `point`.
    curvature : float
        The sum of the curvatures of rows at `point`.
    trial : ndarray
        The next point to evaluate.
    alpha : float
        The penalty of the function.
    """

    point: np.ndarray
    value: float = np.inf
    decrement: float = np.inf
    gradient: np.ndarray | None = None
    trial: np.ndarray = field(init=False)
    held: float = 0.0
    curvature: float = 0.0
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
        """Return this descent with another alpha or preconditioner, without a pass.

        The penalty is quadratic, so value, gradient and the changes of the gradient along past
        steps can be updated for the new alpha. `penalize` applies Q.
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
        other.receive(value, changes[0], solved[0], self.held, self.curvature)
        return other

    @classmethod
    def between(cls, descents: Sequence["Descent"]) -> "Descent":
        """Return a descent from the mean of the points of descents at one alpha.

        It is not evaluated yet. It takes the curvature from the first descent, because the others
        differ little.
        """
        first = descents[0]
        mean = cls(np.mean([descent.point for descent in descents], axis=0), alpha=first.alpha)
        mean._pairs = list(first._pairs)
        return mean

    def is_done(self, gain_of_interest: float) -> bool:
        """Whether the value can fall by no more than about `gain_of_interest`.

        A quadratic with Hessian P would fall by half of g^T P^-1 g. After some steps, L-BFGS knows
        the Hessian better, so the decrease that it expects must be as small.
        """
        return max(self.decrement**2, -self._slope) / 2 <= gain_of_interest

    def receive(
        self,
        value: float,
        gradient: np.ndarray,
        preconditioned: np.ndarray,
        held: float = 0.0,
        curvature: float = 0.0,
    ) -> None:
        """Take value, gradient g, P^-1 g and sums over rows at `trial`, and set the next one."""
        if self.gradient is None:
            self.held, self.curvature = held, curvature
            self._arrive(value, gradient, preconditioned)
            return
        slope = float(np.vdot(gradient, self._direction))
        if not (np.isfinite(value) and slope <= -_ENOUGH_SLOPE * self._slope):
            # The step is too long. The secant of the slopes estimates where the minimum is.
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
        self.held, self.curvature = held, curvature
        self._arrive(value, gradient, preconditioned)

    def _arrive(self, value: float, gradient: np.ndarray, preconditioned: np.ndarray) -> None:
        self.point, self.value, self.gradient = self.trial, value, gradient
        self._preconditioned = preconditioned
        self.decrement = float(np.sqrt(max(np.vdot(gradient, preconditioned), 0.0)))
        # In the two-loop recursion, P^-1 times sums follows from products that are known.
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
