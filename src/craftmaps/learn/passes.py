"""Tasks of one pass over rows: losses and gradients, sums of a sample, labels, predictions.

A task takes an iterable of blocks and returns a result with a method `add`, so the results for
parts of the rows add up to the result for all rows. Tasks and results are small and can be pickled.
A cluster sends a task to the rows and gets the result back.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from craftmaps.learn.losses import Loss
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.loops import thin
from craftmaps.storage.packing import storable
from craftmaps.threads import for_each_product_block

N_FOLDS = 10  # a hash of its place decides the fold of a row
_UPDATE_ROWS = 4096  # rows of a sample to add together, because each addition touches E^2 sums


class Point(NamedTuple):
    """Coefficients at which a loss is evaluated, and the fold of rows that is held out."""

    coef: np.ndarray  # (n_features, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    held_fold: int | None = None


class FeatureBlock(NamedTuple):
    """Rows of features with their labels, weights, and hashes of their places."""

    Z: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    hashes: np.ndarray

    def in_fold(self, fold: int) -> np.ndarray:
        """Return which rows belong to a fold."""
        return np.asarray(self.hashes % np.uint64(N_FOLDS) == fold)


Task = Callable[[Iterable[FeatureBlock]], Any]


class Rows(Protocol):
    """Rows that can be read any number of times, here or on other machines."""

    n_rows: int
    n_features: int
    feature_map: Any

    @property
    def dtype(self) -> np.dtype: ...

    def collect(self, task: Task, *, features: bool = True) -> Any:
        """Return the result of a task for all rows; without `features`, blocks have no columns."""


@dataclass(frozen=True)
class Labels:
    """Encoding of labels for the loss, and weights of classes, if any."""

    encode: Callable[[np.ndarray], np.ndarray]
    class_weights: np.ndarray | None = None

    def of(self, block: FeatureBlock) -> FeatureBlock:
        """Return the same rows with encoded labels and class weights."""
        weights = block.weights
        if self.class_weights is not None:
            weights = weights * self.class_weights[block.y]
        return FeatureBlock(block.Z, self.encode(block.y), weights, block.hashes)


@storable
@dataclass
class PassSums:
    """Sums over rows for several points: losses, losses of held-out rows, and derivatives.

    Attributes
    ----------
    values, held : ndarray of shape (n_points,)
        Weighted sums of the losses of training rows, and of held-out rows.
    curvatures : ndarray of shape (n_points,)
        Weighted sums of the curvatures of training rows.
    gradients : ndarray of shape (n_features, n_points * n_outputs)
        Z^T G for the derivatives G of the losses of training rows.
    totals : ndarray of shape (n_points * n_outputs,)
        1^T G.
    """

    values: np.ndarray
    held: np.ndarray
    curvatures: np.ndarray
    gradients: np.ndarray
    totals: np.ndarray

    def add(self, other: Self) -> Self:
        """Add the sums of other rows."""
        self.values += other.values
        self.held += other.held
        self.curvatures += other.curvatures
        self.gradients += other.gradients
        self.totals += other.totals
        return self


class _InOrder:
    """Add sums of consecutive rows in the order of the rows, whichever thread finishes first.

    Rounding errors depend on the order. With a fixed order, the same rows give the same bits, so a
    fit that was interrupted and continued gives the same model.
    """

    def __init__(self, total: PassSums) -> None:
        self._total = total
        self._lock = Lock()
        self._next = 0  # the first row that has not been added
        self._early: dict[int, tuple[int, PassSums]] = {}  # sums that wait for earlier rows

    def add(self, start: int, stop: int, part: PassSums) -> None:
        """Add the sums of rows start..stop, now or after earlier rows."""
        with self._lock:
            self._early[start] = stop, part
            while self._next in self._early:
                self._next, part = self._early.pop(self._next)
                self._total.add(part)


@dataclass(frozen=True)
class LossPass:
    """Evaluate a loss at several points, with one product with the features."""

    loss: Loss
    points: Sequence[Point]
    labels: Labels

    def __call__(self, blocks: Iterable[FeatureBlock]) -> PassSums:
        n_features, n_outputs = self.points[0].coef.shape
        n_points = len(self.points)
        total = PassSums(
            np.zeros(n_points),
            np.zeros(n_points),
            np.zeros(n_points),
            np.zeros((n_features, n_points * n_outputs)),
            np.zeros(n_points * n_outputs),
        )
        coef = np.hstack([point.coef for point in self.points])
        intercept = np.concatenate([point.intercept for point in self.points])
        for block in blocks:
            by_output = thin.padded(coef, block.Z.dtype)
            narrow = partial(self._sums, coef=by_output, intercept=intercept)
            in_order = _InOrder(total)

            def add_rows(
                start: int,
                stop: int,
                block: Any = block,
                narrow: Any = narrow,
                in_order: Any = in_order,
            ) -> None:
                rows = FeatureBlock(*(array[start:stop] for array in block))
                in_order.add(start, stop, narrow(self.labels.of(rows)))

            for_each_product_block(add_rows, len(block.Z), block.Z.itemsize * n_features)
        return total

    def _sums(self, rows: FeatureBlock, coef: np.ndarray, intercept: np.ndarray) -> PassSums:
        n_columns = len(intercept)
        F = thin.scores(rows.Z, coef)
        G = np.zeros_like(F)  # its last columns, which make up the tiles, stay zero
        F = F[:, :n_columns]
        F += intercept.astype(F.dtype)
        n_points, n_outputs = len(self.points), self.points[0].coef.shape[1]
        values, held, curvatures = np.zeros((3, n_points))
        for i, point in enumerate(self.points):
            outputs = slice(i * n_outputs, (i + 1) * n_outputs)
            weights = rows.weights
            if point.held_fold is not None:
                out = rows.in_fold(point.held_fold)
                held[i] = self.loss(F[out, outputs], rows.y[out], weights[out]).value
                weights = np.where(out, 0.0, weights)
            values[i], G[:, outputs], each = self.loss(F[:, outputs], rows.y, weights)
            curvatures[i] = weights @ each
        totals = G[:, :n_columns].sum(axis=0, dtype=np.float64)
        gradients = thin.gradients(rows.Z, G)[:n_columns].T.astype(np.float64)
        return PassSums(values, held, curvatures, gradients, totals)


@storable
@dataclass
class FirstRows:
    """The sums of a sample of the rows, for the preconditioner."""

    equations: NormalEquations

    def add(self, other: Self) -> Self:
        """Add the sums of other rows."""
        self.equations.merge(other.equations)
        return self


@dataclass(frozen=True)
class SamplePass:
    """Sum z z^T over a uniform sample: the rows with hashes up to `limit`."""

    limit: int
    labels: Labels

    def __call__(self, blocks: Iterable[FeatureBlock]) -> FirstRows:
        sums = NormalEquations()
        waiting: list[tuple[np.ndarray, np.ndarray]] = []

        def add() -> None:
            Z, weights = (np.concatenate(parts) for parts in zip(*waiting, strict=True))
            targets = np.zeros((len(Z), 0))
            sums.update(Z, targets, None if (weights == 1).all() else weights, overwrite=True)
            waiting.clear()

        for block in blocks:
            waiting.append(self._sampled(self.labels.of(block)))
            if sum(len(weights) for _, weights in waiting) >= _UPDATE_ROWS:
                add()
        if waiting:
            add()
        return FirstRows(sums)

    def _sampled(self, rows: FeatureBlock) -> tuple[np.ndarray, np.ndarray]:
        some = rows.hashes <= np.uint64(self.limit)
        return rows.Z[some], rows.weights[some]


@dataclass(frozen=True)
class CurvaturePass(SamplePass):
    """Sum c z z^T for the curvatures c of the rows at a point, times their weights.

    Rows are drawn by their hashes with probabilities proportional to c, because most rows may have
    hardly any curvature. The curvatures of all rows sum to `total`. About `limit` rows are drawn,
    or fewer if some are certain to be drawn.
    """

    loss: Loss
    point: Point
    total: float

    def _sampled(self, rows: FeatureBlock) -> tuple[np.ndarray, np.ndarray]:
        by_output = thin.padded(self.point.coef, rows.Z.dtype)
        F = thin.scores(rows.Z, by_output)[:, : len(self.point.intercept)]
        F += self.point.intercept.astype(F.dtype)
        curvatures = self.loss(F, rows.y, rows.weights).curvatures * rows.weights
        certain = self.total / self.limit  # a row with this curvature is always drawn
        some = rows.hashes / 2.0**64 * certain < curvatures
        return rows.Z[some], np.maximum(curvatures[some], certain)


@storable
@dataclass
class Totals:
    """Total weight and number of all rows, or of the rows of each class."""

    weights: np.ndarray
    counts: np.ndarray

    def add(self, other: Self) -> Self:
        """Add the totals of other rows."""
        self.weights += other.weights
        self.counts += other.counts
        return self


@dataclass(frozen=True)
class TotalsPass:
    """Sum up rows and weights of each class, or of all rows as one class."""

    n_classes: int | None

    def __call__(self, blocks: Iterable[FeatureBlock]) -> Totals:
        size = self.n_classes or 1
        total = Totals(np.zeros(size), np.zeros(size))
        for block in blocks:
            y = np.zeros(len(block.weights), int) if self.n_classes is None else block.y
            weights = np.bincount(y, block.weights, minlength=size)
            total.add(Totals(weights, np.bincount(y, minlength=size).astype(np.float64)))
        return total


@storable
@dataclass
class RowsSeen:
    """Predictions, labels and weights of some rows."""

    predicted: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    def add(self, other: Self) -> Self:
        """Append other rows."""
        self.predicted = np.concatenate([self.predicted, other.predicted])
        self.y = np.concatenate([self.y, other.y])
        self.weights = np.concatenate([self.weights, other.weights])
        return self


@dataclass(frozen=True)
class SeenPass:
    """Collect labels of the rows with hashes up to `limit`, and predictions if a point is given.

    If the point has a held-out fold, only rows of that fold are collected.
    """

    limit: int
    point: Point | None
    labels: Labels

    def __call__(self, blocks: Iterable[FeatureBlock]) -> RowsSeen | None:
        """Return None if there are no rows, because the number of columns is then unknown."""
        seen: RowsSeen | None = None
        for block in blocks:
            part = self._part(block)
            seen = part if seen is None else seen.add(part)
        return seen

    def _part(self, block: FeatureBlock) -> RowsSeen:
        some = block.hashes <= np.uint64(self.limit)
        predicted = np.empty((int(some.sum()), 0))
        if self.point is not None:
            if self.point.held_fold is not None:
                some &= block.in_fold(self.point.held_fold)
            coef = self.point.coef.astype(block.Z.dtype)
            predicted = block.Z[some] @ coef + self.point.intercept
        return RowsSeen(predicted, block.y[some], self.labels.of(block).weights[some])
