"""Kernel machines with a loss of choice: what the classifier and the regressor share."""

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from craftmaps.learn.checkpoint import unpacked
from craftmaps.learn.few_pass_fit import Fit
from craftmaps.learn.losses import Loss
from craftmaps.learn.one_pass import OnePass
from craftmaps.learn.rows_again import Batch, RowsAgain
from craftmaps.learn.solvers.solution import Solution
from craftmaps.learn.stream import FeatureStream
from craftmaps.learn.summary import summary_of
from craftmaps.learn.table_rows import TableLearner
from craftmaps.search import AutoMap
from craftmaps.search.budget import Budget
from craftmaps.validation import is_integer, is_number


def _is_squared(machine: Any) -> bool:
    return bool(machine.loss == "squared")


class KernelMachine(TableLearner, OnePass):
    """A learner whose loss is chosen by its parameter `loss`.

    The squared loss is that of `OnePass`, from sums. Others are minimized in a few passes over the
    features. A subclass says by `_new_loss` which loss is meant, by `_loss_targets` what the loss
    takes for y, and by `_loss_weights` the weights of rows.
    """

    loss: str
    budget: Any
    random_state: Any
    tol: float
    max_passes: int
    alpha_per_target = False
    n_folds = 5
    _blocks_again: ClassVar[Any] = None  # blocks that can be iterated again; set during a fit

    @abstractmethod
    def _new_loss(self, fit: Fit) -> Loss: ...

    def _loss_targets(self, y: np.ndarray) -> np.ndarray:
        return y

    def _loss_weights(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return weights

    @property
    @abstractmethod
    def _task(self) -> str: ...

    def _new_map(self, n_rows: int | None = None) -> Any:
        if not self._searches:
            return super()._new_map(n_rows)
        return AutoMap(
            task=self._task, budget=self.budget, n_rows=n_rows, random_state=self.random_state
        )

    @property
    def _searches(self) -> bool:
        return isinstance(self.feature_map, str) and self.feature_map == "auto"

    def summary(self) -> str:
        """What was learned, and how it was found, as a text of a few lines."""
        return summary_of(self)

    def _finish(self, fit: Fit, end: np.ndarray, alpha: float) -> None:
        """Compute what predictions need beside the solution, while the rows are there."""

    @property
    def n_passes_(self) -> int:
        """Passes over the features that the solution took; 1 for the squared loss."""
        return self.solution_.n_passes

    @available_if(_is_squared)
    def partial_fit(self, X: Any, y: Any, *args: Any, **options: Any) -> Self:
        """Learn from further rows, with the squared loss only: see `OnePassClassifier`."""
        return super().partial_fit(X, y, *args, **options)

    @available_if(_is_squared)
    def merge(self, other: Self) -> Self:
        """Learn what another learner has learned, with the squared loss only."""
        return super().merge(other)

    def save(self, path: Any, *, resumable: bool = False, uncertainty: bool = False) -> None:
        """Write the model to one file, from which `craftmaps.load` gives it back.

        Parameters
        ----------
        path : path of the file
        resumable : bool, default=False
            Whether to store the sums of the rows too, which only the squared loss has.
        uncertainty : bool, default=False
            Whether to store the covariance of coefficients too, see `OnePassRegressor`. Intervals
            and sets of the other losses need no more than is always stored.
        """
        if resumable and not _is_squared(self):
            raise ValueError(
                f"resumable=True keeps the sums of loss='squared', and loss={self.loss!r} has "
                f"none; save it without."
            )
        super().save(path, resumable=resumable, uncertainty=uncertainty)

    def solve(self) -> Self:
        """Compute the solution for all rows, if it is not known yet, and let the rows go."""
        super().solve()
        if isinstance(self._stream, RowsAgain):
            self._stream = self._stream.closed()
        return self

    def _fit_blocks(self, blocks: Iterable[Any], checkpoint: Any, *args: Any) -> Self:
        if _is_squared(self):
            return super()._fit_blocks(blocks, checkpoint, *args)
        if iter(blocks) is blocks:
            raise ValueError(
                f"loss={self.loss!r} takes several passes over the rows, and these blocks can be "
                f"iterated only once; give a list, or what craftmaps.scale.read returns, or use "
                f"loss='squared'."
            )
        if checkpoint is not None:
            raise ValueError(
                f"checkpoints are for loss='squared'; loss={self.loss!r} takes several passes."
            )
        self.__dict__["_blocks_again"] = blocks
        try:
            return super()._fit_blocks(blocks, None, *args)
        finally:
            del self.__dict__["_blocks_again"]

    def _new_stream(
        self, feature_map: Any, n_features: int, n_rows: int | None, dtype: np.dtype
    ) -> FeatureStream:
        if _is_squared(self):
            return super()._new_stream(feature_map, n_features, n_rows, dtype)
        again = None if self._blocks_again is None else self._batches_again
        return RowsAgain(feature_map, n_features, dtype, self._encode, again)

    def _batches_again(self) -> Iterator[Batch]:
        for block in self._blocks_again:
            X, y, _ = unpacked(block)
            X, y = self._validated(X, y, reset=False)
            yield self._encoded(X), y, np.empty(0)  # targets and weights were kept

    def _solve(self) -> Solution:
        if _is_squared(self):
            return super()._solve()
        stream = self._stream
        assert isinstance(stream, RowsAgain)
        y, weights = stream.targets_and_weights()
        weights = self._loss_weights(y, weights)
        if not weights.sum() > 0:
            raise ValueError(
                "the weights of all rows are zero; give some rows a positive sample_weight."
            )
        fit = Fit(stream, y, self._loss_targets(y), weights, self._n_columns, self.fit_intercept)
        fit.loss = self._new_loss(fit)
        machine = fit.machine(self.max_passes)
        alpha, alphas, scores, start = fit.chosen(machine, self.alpha)
        (end,) = machine.descend(alpha, [start], [None], self.tol)
        if not machine.converged:
            warnings.warn(
                f"{machine.n_passes} passes did not minimize the loss at alpha={alpha:.3g} to "
                f"tol={self.tol:g}; raise alpha, tol or max_passes.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._finish(fit, end.point, alpha)
        coef, intercept = fit.restored(machine, end.point)
        return Solution(
            coef,
            intercept,
            alpha,
            jitter=0.0,
            condition=end.precondition.condition(),
            alphas=alphas,
            scores=scores,
            left_out=alphas is not None,
            n_passes=machine.n_passes,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.feature_map, str) and not self._searches:
            raise ValueError(
                f"feature_map must be 'auto', a transformer or None, got {self.feature_map!r}."
            )
        Budget.parse(self.budget)
        if not is_number(self.tol) or self.tol <= 0:
            raise ValueError(f"tol must be a number above 0, got {self.tol!r}.")
        if not is_integer(self.max_passes) or self.max_passes < 1:
            raise ValueError(
                f"max_passes must be an integer of at least 1, got {self.max_passes!r}."
            )
        if not _is_squared(self) and isinstance(self.alpha, str) and self.alpha == "gcv":
            raise ValueError("alpha='gcv' is for loss='squared'; use alpha='auto'.")
