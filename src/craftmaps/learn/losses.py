"""Losses that a kernel machine minimizes: their values, gradients and curvatures.

A loss takes the predictions F for a block of rows (one column per output), the labels of the rows
and their weights. `curvature` is the largest or a typical second derivative of the loss of one row
by one output. The sums of one pass, times this number, precondition the Hessian of the loss.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

_CORNER = 0.03  # half the width of the rounded corner, relative to the spread of residuals


class Evaluated(NamedTuple):
    """Value and derivatives of a loss for a block of rows.

    Attributes
    ----------
    value : float
        Weighted sum of the losses of the rows.
    gradient : ndarray of shape (n_rows, n_outputs)
        The derivative of `value` by F.
    curvatures : ndarray of shape (n_rows,)
        For each row, a second derivative of its loss by one output, not multiplied by its weight.
        It is the largest or the mean over all outputs, or a typical one.
    """

    value: float
    gradient: np.ndarray
    curvatures: np.ndarray


class Loss(Protocol):
    """What a solver needs from a loss."""

    @property
    def curvature(self) -> float: ...

    def __call__(self, F: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Evaluated: ...


@dataclass(frozen=True)
class LogLoss:
    """Multinomial log-loss, -log softmax(f)_y, of classes that are numbered by y.

    The Hessian of one row is diag(p) - p p^T, at most (I - 1 1^T / k) / 2 (Boehning 1992). Its
    eigenvalue 1/2 is reached only if two classes are equally probable and all others impossible, so
    a curvature of 1/4 preconditions better.
    """

    curvature: ClassVar[float] = 0.25

    def __call__(self, F: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Evaluated:
        """Evaluate the loss; y has one class number per row."""
        # With classes in rows, sums over few classes are sums of long vectors, and far faster.
        rows, P = np.arange(len(F)), F.T.copy()
        P -= P.max(axis=0)
        own = P[y, rows]
        np.exp(P, out=P)
        total = P.sum(axis=0)
        value = float(weights @ (np.log(total) - own))
        P /= total
        P[y, rows] -= 1.0
        P *= weights.astype(F.dtype, copy=False)
        largest = 1 / total  # probability of a class; that one has the largest p (1 - p)
        return Evaluated(value, P.T, largest * (1 - largest))


@dataclass(frozen=True)
class BitLogLoss:
    """Binary log-loss, log(1 + exp(-y f)), summed over the bits y = 1 or -1 of a code."""

    curvature: ClassVar[float] = 0.25

    def __call__(self, F: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Evaluated:
        """Evaluate the loss; y has the shape of F."""
        margin = y * F
        tail = np.exp(-np.abs(margin))
        losses = np.log1p(tail) + np.maximum(-margin, 0)
        wrong = np.where(margin >= 0, tail, 1.0) / (1 + tail)  # 1 / (1 + exp(margin))
        curvatures = (wrong * (1 - wrong)).mean(axis=1)
        gradient = -y * wrong * _column(weights, F)
        return Evaluated(float(weights @ losses.sum(axis=1)), gradient, curvatures)


@dataclass(frozen=True)
class HuberLoss:
    """Half the squared error of residuals up to `threshold`, linear beyond it (Huber 1964)."""

    threshold: np.ndarray | float
    curvature: ClassVar[float] = 1.0

    def __call__(self, F: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Evaluated:
        """Evaluate the loss; y has the shape of F."""
        R = F - y
        clipped = np.clip(R, -self.threshold, self.threshold)
        losses = clipped * (R - clipped / 2)
        curvatures = (clipped == R).mean(axis=1)
        gradient = clipped * _column(weights, F)
        return Evaluated(float(weights @ losses.sum(axis=1)), gradient, curvatures)


@dataclass(frozen=True)
class QuantileLoss:
    """Pinball loss of the `quantile`, with its corner rounded.

    max(q r, (q - 1) r) for r = y - f has no curvature. Within a small share of `scale`, the spread
    of residuals, it is replaced by the quadratic that meets both lines with their slopes.
    """

    quantile: float
    scale: np.ndarray | float

    @property
    def width(self) -> np.ndarray:
        """Residuals up to this size are in the rounded corner."""
        return _CORNER * np.asarray(self.scale)

    @property
    def curvature(self) -> float:
        """The mean second derivative if residuals are normal: their density at 0."""
        return float(np.mean(0.4 / np.asarray(self.scale)))

    def __call__(self, F: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Evaluated:
        """Evaluate the loss; y has the shape of F."""
        R = y - F
        width = self.width.astype(F.dtype)
        rounded = np.clip(R / width, -1, 1)
        # |r| is replaced by r^2 / (2 w) + w / 2 within w of 0
        size = np.where(np.abs(rounded) < 1, (rounded**2 + 1) * (width / 2), np.abs(R))
        losses = (self.quantile - 0.5) * R + size / 2
        slope = (self.quantile - 0.5) + rounded / 2
        # which rows are in the corner changes with every step, so all of them count alike
        curvatures = np.full(len(F), self.curvature)
        gradient = -slope * _column(weights, F)
        return Evaluated(float(weights @ losses.sum(axis=1)), gradient, curvatures)


def _column(weights: np.ndarray, F: np.ndarray) -> np.ndarray:
    return weights.astype(F.dtype, copy=False)[:, None]
