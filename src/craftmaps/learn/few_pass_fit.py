"""Fit of a loss in a few passes: the search for alpha, and the minimization."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from craftmaps.learn.class_sums import class_factors
from craftmaps.learn.losses import BitLogLoss, LogLoss, Loss
from craftmaps.learn.passes import (
    N_FOLDS,
    CurvaturePass,
    Labels,
    LossPass,
    Point,
    Rows,
    RowsSeen,
    SamplePass,
    SeenPass,
    Totals,
    TotalsPass,
)
from craftmaps.learn.rows_again import RowsAgain
from craftmaps.learn.solvers.alpha_path import search, warm_start
from craftmaps.learn.solvers.descent import Descent
from craftmaps.learn.solvers.few_pass import FirstSums, Machine
from craftmaps.learn.solvers.penalty import penalty_of
from craftmaps.learn.solvers.span import RowSpace
from craftmaps.loops.triangle import add_to_triangle

_SAMPLE_PER_FEATURE = 4  # rows per feature in the sample that makes the preconditioner
_LEAST_SAMPLE = 1000  # least number of rows in this sample
_JUDGING_ROWS = 3000  # number of held-out rows, which decides the number of held-out folds
_SEEN_ROWS = 100_000  # largest number of rows whose targets or predictions are collected
_LEAST_ALPHA = 10.0  # in eps times the mean curvature; no smaller alpha is tried
_HELD_OUT_TOLERANCE = 1e-3  # tolerance without some rows if the same passes minimize for all rows
_RATIO_OF_ALPHAS = 0.4  # the usual best alpha of the log-loss, relative to that of ridge
JUDGING_TOLERANCE = 1e-2  # tolerance for models that only predict held-out rows
_HELD_OUT = 0  # the fold that is held out for predictions if alpha is given
_HASHES = 1 << 64
_CHEAP_SQUARES = 15  # if E^2 is at most this multiple of n k, sums cost no more than a few passes


@dataclass
class Fit:
    """Rows that can be read several times, with labels encoded for a loss.

    With fewer rows than features, rows are replaced by their coordinates in the span of all rows,
    which contains the minimum. This is not done if the map has its own penalty.

    Parameters
    ----------
    rows : Rows
    encode : callable
        Function from the labels of rows to the form that the loss takes.
    n_outputs : int
    fit_intercept : bool
    balanced_classes : int or None
        The number of classes, if all classes get the same total weight.
    """

    rows: Rows
    encode: Callable[[np.ndarray], np.ndarray]
    n_outputs: int
    fit_intercept: bool
    balanced_classes: int | None = None
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        rows = self.rows
        totals: Totals = rows.collect(TotalsPass(self.balanced_classes), features=False)
        by_class = None
        if self.balanced_classes is not None:
            by_class = class_factors("balanced", np.arange(len(totals.counts)), totals.counts)
        self.labels = Labels(self.encode, by_class)
        self.weight = float(totals.weights @ (np.ones(1) if by_class is None else by_class))
        if not self.weight > 0:
            raise ValueError(
                "the weights of all rows are zero; give some rows a positive sample_weight."
            )
        self.penalty = penalty_of(rows.feature_map, rows.n_features)
        self.space: RowSpace | None = None
        few = rows.n_rows <= rows.n_features and self.penalty is None
        if few and isinstance(rows, RowsAgain) and rows.keeps_features:
            self.space = self._span(rows)
        # The chosen alpha, and the end of the descent for each held-out fold.
        self._held: tuple[float | None, list[np.ndarray]] = (None, [])

    def machine(self, max_passes: int) -> Machine:
        """The problem of minimizing the loss."""
        c, loss, (hessian, centre) = self.loss.curvature, self.loss, self._first
        cheap = len(centre) ** 2 <= _CHEAP_SQUARES * self.rows.n_rows * self.n_outputs
        return Machine(
            FirstSums(hessian * np.asarray(c, hessian.dtype), centre, c * self.weight),
            lambda points: self._collect(LossPass(loss, points, self.labels)),
            self.penalty,
            self.n_outputs,
            self.fit_intercept,
            max_passes,
            self._renewed if cheap else None,
        )

    def minimum(
        self, machine: Machine, alpha: float, start: np.ndarray | Descent, tol: float
    ) -> np.ndarray:
        """Return the point with the least loss of all rows.

        If no search has held out rows for the expected error, the same passes hold some out.
        """
        if self._held[0] == alpha:
            (end,) = machine.descend(alpha, [start], [None], tol)
        else:
            point = start.point if isinstance(start, Descent) else start
            tols = [tol, max(tol, _HELD_OUT_TOLERANCE)]
            end, without = machine.descend(alpha, [start, point], [None, _HELD_OUT], tols)
            self._held = alpha, [without.point]
        return end.point

    def chosen(
        self, machine: Machine, alpha: Any
    ) -> tuple[float, np.ndarray | None, np.ndarray | None, np.ndarray | Descent]:
        """Return the given or best alpha, all alphas with their scores, and a starting point."""
        if not isinstance(alpha, str) and np.ndim(alpha) == 0:
            return float(alpha), None, None, warm_start(machine, float(alpha))
        n_judging = min(N_FOLDS, -(-_JUDGING_ROWS * N_FOLDS // self.rows.n_rows))
        given = None if isinstance(alpha, str) else [float(a) for a in alpha]
        eps = float(np.finfo(self.rows.dtype).eps)
        lowest = _LEAST_ALPHA * eps * machine.first.mean_curvature
        found = search(machine, range(n_judging), given, lowest, self._hint())
        self._held = found.best, [end.point for end in found.ends]
        return found.best, found.alphas, found.scores[:, None], Descent.between(found.ends)

    def _hint(self) -> float | None:
        """Return an alpha that is about right, if a search for the map knows that of ridge."""
        squared = getattr(self.rows.feature_map, "alpha_", None)
        is_log = isinstance(self.loss, LogLoss | BitLogLoss)
        return _RATIO_OF_ALPHAS * squared if is_log and squared else None

    def held_out(
        self, start: np.ndarray | Descent, alpha: float, tol: float, max_passes: int
    ) -> RowsSeen:
        """Return predictions for the held-out rows that chose alpha, or for a tenth of all rows."""
        machine = self.machine(max_passes)
        known, ends = self._held
        if known != alpha:
            (descent,) = machine.descend(alpha, [start], [_HELD_OUT], tol)
            ends = [descent.point]
        seen = [self._seen(machine.point(end, fold), N_FOLDS) for fold, end in enumerate(ends)]
        for other in seen[1:]:
            seen[0].add(other)
        return seen[0]

    def targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return labels and weights of all rows, or of a uniform sample of many rows."""
        seen = self._seen(None, 1)
        return seen.y, seen.weights

    def restored(self, machine: Machine, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients and intercepts for features, from a point of the machine."""
        coef, intercept, _ = machine.point(end, None)
        if self.space is not None:
            coef = self.space.lift(coef)
            intercept = intercept - self.space.centre @ coef
        return coef, intercept

    def _seen(self, point: Point | None, one_in: int) -> RowsSeen:
        limit = self._limit(one_in * _SEEN_ROWS)
        task = SeenPass(limit, point, self.labels)
        seen: RowsSeen = (
            self.rows.collect(task, features=False) if point is None else self._collect(task)
        )
        return seen

    def _collect(self, task: Any) -> Any:
        if self.space is None:
            return self.rows.collect(task)
        assert isinstance(self.rows, RowsAgain)
        return self.rows.collect(task, replaced=self.space.coordinates)

    def _limit(self, size: int) -> int:
        """Return the largest hash of a uniform sample of about `size` rows."""
        return min(_HASHES - 1, _HASHES * size // max(1, self.rows.n_rows))

    def _span(self, rows: RowsAgain) -> RowSpace:
        Z = np.concatenate(list(rows.features()))
        centre = np.zeros(Z.shape[1])
        if self.fit_intercept:
            y, weights = rows.targets_and_weights()
            if self.labels.class_weights is not None:
                weights = weights * self.labels.class_weights[y]
            centre = weights @ Z.astype(np.float64) / weights.sum()
        return RowSpace(Z, centre)

    @cached_property
    def _first(self) -> tuple[np.ndarray, np.ndarray]:
        """Return H (its lower triangle) and the mean of features, from a uniform sample of rows.

        They are scaled up to all rows. They have the precision of the features, which is enough for
        a preconditioner.
        """
        n_features = self.rows.n_features if self.space is None else self.space.coordinates.shape[1]
        limit = self._limit(self._sample_rows(n_features))
        sums = self._collect(SamplePass(limit, self.labels)).equations
        if not sums.weight:  # by chance, all rows of the sample have no weight
            limit = self._limit(self.rows.n_rows)
            sums = self._collect(SamplePass(limit, self.labels)).equations
        hessian, _, _ = sums.system(self.fit_intercept)
        hessian *= self.weight / sums.weight
        centre = sums.z_mean if self.fit_intercept else np.zeros(n_features)
        return hessian.astype(self.rows.dtype, copy=False), centre

    def _renewed(self, point: Point, curvature: float) -> FirstSums:
        """Return the sums of rows with their curvatures at a point, which sum to `curvature`."""
        centre, size = self._first[1], self._sample_rows(len(self._first[1]))
        task = CurvaturePass(size, self.labels, self.loss, point, curvature)
        sums = self._collect(task).equations
        hessian, _, _ = sums.system(self.fit_intercept)
        if self.fit_intercept:
            add_to_triangle(hessian, None, np.array([sums.weight]), (sums.z_mean - centre)[None])
        return FirstSums(hessian.astype(self.rows.dtype, copy=False), centre, sums.weight)

    def _sample_rows(self, n_features: int) -> int:
        return max(_LEAST_SAMPLE, _SAMPLE_PER_FEATURE * n_features)
