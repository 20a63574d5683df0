"""What one pass over rows adds up: losses and gradients, sums of a sample, labels, predictions.

A task is called with an iterable of blocks and returns something with a method `add`, so that what
it finds in parts of the rows adds up to what it finds in all of them. Tasks and their results are
small and can be pickled: a cluster sends a task to where the rows are and gets the sums back.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from craftmaps.learn.losses import Loss
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.storage.packing import storable
from craftmaps.threads import for_each_product_block

N_FOLDS = 10  # that rows are dealt to, by a hash of their places
_UPDATE_ROWS = 4096  # of a sample that are added at a time: every addition touches E^2 sums


class Point(NamedTuple):
    """Coefficients at which a loss is evaluated, and the fold of rows that is held out."""

    coef: np.ndarray  # (n_features, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    held_fold: int | None = None


class FeatureBlock(NamedTuple):
    """Rows of features, what they were labeled with, their weights, and hashes of their places."""

    Z: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    hashes: np.ndarray

    def in_fold(self, fold: int) -> np.ndarray:
        """Which rows belong to a fold."""
        return np.asarray(self.hashes % np.uint64(N_FOLDS) == fold)


Task = Callable[[Iterable[FeatureBlock]], Any]


class Rows(Protocol):
    """Rows that can be gone through any number of times, here or elsewhere."""

    n_rows: int
    n_features: int
    feature_map: Any

    @property
    def dtype(self) -> np.dtype: ...

    def collect(self, task: Task, *, features: bool = True) -> Any:
        """The sum of what a task finds; without `features` its blocks have no columns."""


@dataclass(frozen=True)
class Labels:
    """What the loss takes for the labels of rows, and the weights of their classes, if any."""

    encode: Callable[[np.ndarray], np.ndarray]
    class_weights: np.ndarray | None = None

    def of(self, block: FeatureBlock) -> FeatureBlock:
        """The same rows as the loss takes them."""
        weights = block.weights
        if self.class_weights is not None:
            weights = weights * self.class_weights[block.y]
        return FeatureBlock(block.Z, self.encode(block.y), weights, block.hashes)


@storable
@dataclass
class PassSums:
    """Sums over rows for several points: of losses, of losses held out, and of their derivatives.

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
    """Add sums of consecutive rows in the order of the rows, whichever thread is done first.

    Rounding depends on the order. With this one, the same rows give the same bits again, so that a
    fit that was stopped goes on to the model of one that was not.
    """

    def __init__(self, total: PassSums) -> None:
        self._total = total
        self._lock = Lock()
        self._next = 0  # the first row that was not added
        self._early: dict[int, tuple[int, PassSums]] = {}  # sums that wait for rows before theirs

    def add(self, start: int, stop: int, part: PassSums) -> None:
        """Take the sums of rows start..stop."""
        with self._lock:
            self._early[start] = stop, part
            while self._next in self._early:
                self._next, part = self._early.pop(self._next)
                self._total.add(part)


@dataclass(frozen=True)
class LossPass:
    """Evaluate a loss at several points, with one product with the features for all of them."""

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
            narrow = partial(self._sums, coef=coef.astype(block.Z.dtype), intercept=intercept)
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
        F = rows.Z @ coef
        F += intercept.astype(F.dtype)
        n_points, n_outputs = len(self.points), self.points[0].coef.shape[1]
        values, held, curvatures = np.zeros((3, n_points))
        G = np.empty_like(F)
        for i, point in enumerate(self.points):
            outputs = slice(i * n_outputs, (i + 1) * n_outputs)
            weights = rows.weights
            if point.held_fold is not None:
                out = rows.in_fold(point.held_fold)
                held[i] = self.loss(F[out, outputs], rows.y[out], weights[out]).value
                weights = np.where(out, 0.0, weights)
            values[i], G[:, outputs], each = self.loss(F[:, outputs], rows.y, weights)
            curvatures[i] = weights @ each
        gradients = (G.T @ rows.Z).T.astype(np.float64)
        return PassSums(values, held, curvatures, gradients, G.sum(axis=0, dtype=np.float64))


@storable
@dataclass
class FirstRows:
    """The sums of a sample of the rows, which make the preconditioner."""

    equations: NormalEquations

    def add(self, other: Self) -> Self:
        """Add the sums of other rows."""
        self.equations.merge(other.equations)
        return self


@dataclass(frozen=True)
class SamplePass:
    """Sum z z^T over a uniform sample of the rows: those with hashes up to `limit`."""

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

    A row is drawn with a probability in proportion to c, by its hash, because the curvature of most
    rows may be next to nothing. Those of all rows sum to `total`; about `limit` rows are drawn, or
    fewer where some are drawn for certain.
    """

    loss: Loss
    point: Point
    total: float

    def _sampled(self, rows: FeatureBlock) -> tuple[np.ndarray, np.ndarray]:
        F = rows.Z @ self.point.coef.astype(rows.Z.dtype)
        F += self.point.intercept.astype(F.dtype)
        curvatures = self.loss(F, rows.y, rows.weights).curvatures * rows.weights
        certain = self.total / self.limit  # a row of that curvature is drawn for certain
        some = rows.hashes / 2.0**64 * certain < curvatures
        return rows.Z[some], np.maximum(curvatures[some], certain)


@storable
@dataclass
class Totals:
    """Total weight of the rows, in all or of each class, and the number of rows of each class."""

    weights: np.ndarray
    counts: np.ndarray

    def add(self, other: Self) -> Self:
        """Add the totals of other rows."""
        self.weights += other.weights
        self.counts += other.counts
        return self


@dataclass(frozen=True)
class TotalsPass:
    """Count rows and weights of each class, or of all rows as one class."""

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
    """What was predicted for some rows, what they were labeled with, and their weights."""

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
    """Labels of the rows with hashes up to `limit`, and predictions for them if there is a point.

    A point with a held fold asks for rows of that fold only.
    """

    limit: int
    point: Point | None
    labels: Labels

    def __call__(self, blocks: Iterable[FeatureBlock]) -> RowsSeen | None:
        """None stands for no rows with an unknown number of columns."""
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
