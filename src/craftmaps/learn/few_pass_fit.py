"""One fit of a loss to rows that can be read again: its sums, its search of alpha, its minimum."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import get_blas_funcs

from craftmaps.learn.losses import Loss
from craftmaps.learn.map_rows import sample_places
from craftmaps.learn.passes import FeatureBlock, sums_of_pass
from craftmaps.learn.rows_again import N_FOLDS, RowsAgain
from craftmaps.learn.solvers.few_pass import FirstSums, Machine, search
from craftmaps.learn.solvers.penalty import penalty_of
from craftmaps.learn.solvers.span import RowSpace

_SAMPLE_PER_FEATURE = 4  # rows of the sample whose sums are the preconditioner
_JUDGING_ROWS = 3000  # held out, in as many folds as that takes
_LEAST_ALPHA = 10.0  # units of rounding, in mean curvatures, below which no alpha is tried
_ROUGH = 1e-2  # tolerance of a model that is only asked for its predictions of rows held out
_HELD_OUT = 0  # the fold that is held out to look at predictions


class HeldRows(NamedTuple):
    """Predictions for rows that did not teach, with what the rows were labeled with."""

    predicted: np.ndarray
    y: np.ndarray
    weights: np.ndarray


@dataclass
class Fit:
    """Rows, their targets and weights, and a loss.

    Fewer rows than features are replaced by their coordinates in the span of the rows, where the
    minimum lies, unless the map has a penalty of its own.

    Parameters
    ----------
    stream : RowsAgain
    y : ndarray
        Targets as the stream keeps them.
    targets : ndarray
        What the loss takes for y.
    weights : ndarray of shape (n_rows,)
    n_outputs : int
    fit_intercept : bool
    """

    stream: RowsAgain
    y: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    n_outputs: int
    fit_intercept: bool
    loss: Loss = field(init=False)
    _judge: np.ndarray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        stream = self.stream
        self.penalty = penalty_of(stream.feature_map, stream.n_features)
        few = stream.n_rows <= stream.n_features and stream.keeps_features
        self.space = self._span() if few and self.penalty is None else None

    def machine(self, max_passes: int) -> Machine:
        """The problem of minimizing the loss."""
        c, loss = self.loss.curvature, self.loss
        hessian, centre, weight = self._sums
        first = FirstSums(hessian * np.asarray(c, hessian.dtype), centre, c * weight)
        return Machine(
            first,
            lambda points: sums_of_pass(self.blocks(), loss, points),
            self.penalty,
            self.n_outputs,
            self.fit_intercept,
            max_passes,
        )

    def chosen(
        self, machine: Machine, alpha: Any
    ) -> tuple[float, np.ndarray | None, np.ndarray | None, np.ndarray]:
        """The alpha that is given or suits rows held out, all that were tried, and a start."""
        self._judge = None
        if not isinstance(alpha, str) and np.ndim(alpha) == 0:
            return float(alpha), None, None, machine.start()
        n_judging = min(N_FOLDS, -(-_JUDGING_ROWS * N_FOLDS // self.stream.n_rows))
        given = None if isinstance(alpha, str) else [float(a) for a in alpha]
        eps = float(np.finfo(self.stream.dtype).eps)
        lowest = _LEAST_ALPHA * eps * machine.first.mean_curvature
        best, alphas, scores, ends = search(machine, range(n_judging), given, lowest)
        self._judge = ends[_HELD_OUT]
        return best, alphas, scores[:, None], np.mean(ends, axis=0)

    def held_out(self, start: np.ndarray, alpha: float, tol: float, max_passes: int) -> HeldRows:
        """Predictions for a tenth of the rows by a model that the others teach."""
        machine = self.machine(max_passes)
        (end,) = machine.descend(alpha, [start], [_HELD_OUT], tol)
        return self._held_rows(machine, end.point)

    def judging_rows(self, end: np.ndarray, alpha: float, max_passes: int) -> HeldRows:
        """The same by the model that judged alpha, or, if alpha was given, by a rough one.

        `end` is the minimum for all rows, from where that one starts.
        """
        if self._judge is None:
            return self.held_out(end, alpha, _ROUGH, max_passes)
        return self._held_rows(self.machine(max_passes), self._judge)

    def _held_rows(self, machine: Machine, end: np.ndarray) -> HeldRows:
        point = machine.point(end, None)
        rows = np.zeros(len(self.weights), bool)
        predicted, first = [], 0
        for block in self.blocks():
            out = block.folds == _HELD_OUT
            rows[first : first + len(out)] = out
            predicted.append(block.Z[out] @ point.coef + point.intercept)
            first += len(out)
        return HeldRows(np.concatenate(predicted), self.y[rows], self.weights[rows])

    def restored(self, machine: Machine, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts for features, from a point of the machine."""
        coef, intercept, _ = machine.point(end, None)
        if self.space is not None:
            coef = self.space.lift(coef)
            intercept = intercept - self.space.centre @ coef
        return coef, intercept

    def blocks(self) -> Iterator[FeatureBlock]:
        """All rows, once."""
        features = None if self.space is None else self.space.coordinates
        return self.stream.blocks(self.targets, self.weights, features)

    def _span(self) -> RowSpace:
        Z = np.concatenate(list(self.stream.features()))
        centre = np.zeros(Z.shape[1])
        if self.fit_intercept:
            centre = self.weights @ Z.astype(np.float64) / self.weights.sum()
        return RowSpace(Z, centre)

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray, float]:
        """H (its lower triangle), the mean of features and n, from a uniform sample of the rows.

        They are scaled up to all rows. Precision is that of the features: they only precondition.
        """
        n_rows, total = len(self.weights), float(self.weights.sum())
        chosen = np.zeros(n_rows, bool)
        parts, first = [], 0
        for block in self.blocks():
            if not first:
                size = _SAMPLE_PER_FEATURE * block.Z.shape[1]
                chosen[sample_places(n_rows, size)] = True
            parts.append(block.Z[chosen[first : first + len(block.Z)]])
            first += len(block.Z)
        Z, weights = np.concatenate(parts), self.weights[chosen]
        if not weights.sum() > 0:  # by chance, only rows without weight
            weights = np.ones(len(weights))
        shares = weights * (total / weights.sum())
        centre = shares @ Z / total if self.fit_intercept else np.zeros(Z.shape[1])
        Z -= centre.astype(Z.dtype)
        Z *= np.sqrt(shares)[:, None].astype(Z.dtype)
        (syrk,) = get_blas_funcs(("syrk",), (Z,))
        return syrk(1.0, Z.T, lower=1), centre.astype(np.float64), total
