"""What one pass over features adds up for a loss: values, gradients, losses of rows held out.

The sums add over blocks, files and machines, like the normal equations. They are small: one matrix
of the size of the coefficients for each point at which the loss is evaluated.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np

from craftmaps.learn.losses import Loss
from craftmaps.threads import for_each_product_block


class Point(NamedTuple):
    """Coefficients at which a loss is evaluated, and the fold of rows that is held out."""

    coef: np.ndarray  # (n_features, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    held_fold: int | None = None


class FeatureBlock(NamedTuple):
    """Rows of features with what they were labeled with, their weights and their folds."""

    Z: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    folds: np.ndarray


@dataclass
class PassSums:
    """Sums over rows for several points: of losses, of losses held out, and of gradients.

    Attributes
    ----------
    values, held : ndarray of shape (n_points,)
        Weighted sums of the losses of rows that teach, and of rows that are held out.
    gradients : ndarray of shape (n_features, n_points * n_outputs)
        Z^T G for the derivatives G of the losses of rows that teach.
    totals : ndarray of shape (n_points * n_outputs,)
        1^T G.
    """

    values: np.ndarray
    held: np.ndarray
    gradients: np.ndarray
    totals: np.ndarray

    def add(self, other: Self) -> Self:
        """Add the sums of other rows."""
        self.values += other.values
        self.held += other.held
        self.gradients += other.gradients
        self.totals += other.totals
        return self


def sums_of_pass(blocks: Iterable[FeatureBlock], loss: Loss, points: Sequence[Point]) -> PassSums:
    """Evaluate a loss at several points in one pass over blocks."""
    n_features, n_outputs = points[0].coef.shape
    total = PassSums(
        np.zeros(len(points)),
        np.zeros(len(points)),
        np.zeros((n_features, len(points) * n_outputs)),
        np.zeros(len(points) * n_outputs),
    )
    coef = np.hstack([point.coef for point in points])
    intercept = np.concatenate([point.intercept for point in points])
    lock = Lock()
    for block in blocks:
        dtype = block.Z.dtype
        narrow = partial(
            _sums_of_rows, loss=loss, points=points, coef=coef.astype(dtype), intercept=intercept
        )

        def add_rows(start: int, stop: int, block: Any = block, narrow: Any = narrow) -> None:
            part = narrow(FeatureBlock(*(array[start:stop] for array in block)))
            with lock:
                total.add(part)

        for_each_product_block(add_rows, len(block.Z), block.Z.itemsize * n_features)
    return total


def _sums_of_rows(
    rows: FeatureBlock,
    loss: Loss,
    points: Sequence[Point],
    coef: np.ndarray,
    intercept: np.ndarray,
) -> PassSums:
    F = rows.Z @ coef
    F += intercept.astype(F.dtype)
    n_outputs = points[0].coef.shape[1]
    values, held, G = np.zeros(len(points)), np.zeros(len(points)), np.empty_like(F)
    for i, point in enumerate(points):
        outputs = slice(i * n_outputs, (i + 1) * n_outputs)
        weights = rows.weights
        if point.held_fold is not None:
            out = rows.folds == point.held_fold
            held[i] = loss(F[out, outputs], rows.y[out], rows.weights[out])[0]
            weights = np.where(out, 0.0, weights)
        values[i], G[:, outputs] = loss(F[:, outputs], rows.y, weights)
    gradients = (G.T @ rows.Z).T.astype(np.float64)
    return PassSums(values, held, gradients, G.sum(axis=0, dtype=np.float64))
