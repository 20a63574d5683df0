"""Kernel machines with a loss of choice: what the classifier and the regressor share."""

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from craftmaps.learn.checkpoint import Checkpoint, digest, unpacked
from craftmaps.learn.codes import Encode, Unchanged
from craftmaps.learn.few_pass_fit import Fit
from craftmaps.learn.local import check_local, is_better, learn_locally, local_rival
from craftmaps.learn.losses import Loss
from craftmaps.learn.map_rows import place_priority
from craftmaps.learn.one_pass import OnePass
from craftmaps.learn.passes import FeatureBlock, Rows
from craftmaps.learn.progress import Progress
from craftmaps.learn.row_checks import checked_weights
from craftmaps.learn.rows_again import Batch, PassLog, RowsAgain, features_of
from craftmaps.learn.solvers.choose import is_auto
from craftmaps.learn.solvers.solution import Solution
from craftmaps.learn.stream import FeatureStream
from craftmaps.learn.summary import summary_of
from craftmaps.learn.table_rows import TableLearner
from craftmaps.search import AutoMap
from craftmaps.search.budget import Budget
from craftmaps.search.local_map import LocalMap
from craftmaps.search.report import Report
from craftmaps.validation import check_count, is_number

_SHARE_OF_SEARCH = 0.6  # share of the time for passes that the search for alpha may take


def _asks_for_squared(machine: Any) -> bool:
    return bool(machine.loss == "squared" and not machine._is_local)


def _is_squared(machine: Any) -> bool:
    return bool(machine._loss_name == "squared")


class KernelMachine(TableLearner, OnePass):
    """A learner whose loss is chosen by its parameter `loss`.

    `OnePass` minimizes the squared loss from sums. Other losses take a few passes over features. A
    subclass defines the loss by `_new_loss`, and what the loss takes for y by `_loss_targets`.
    """

    loss: str
    budget: Any
    random_state: Any
    tol: float
    max_passes: int
    alpha_per_target = False
    n_folds = 5
    loss_: str | None = None  # what loss="auto" chose; None if the loss was given
    _pass_results: list[Any] | None = None  # set in the checkpoint of a fit of several passes
    _deadline: ClassVar[float] = np.inf  # set during a fit with a budget in seconds
    _KNOWN_MAPS: ClassVar[str] = "'auto', 'local', None or a transformer"
    _blocks_again: ClassVar[Any] = None  # blocks that can be iterated again; set during a fit

    @property
    def _loss_name(self) -> str:
        """The loss that is minimized; "auto" until it is chosen."""
        return self.loss_ or self.loss

    @abstractmethod
    def _new_loss(self, fit: Fit) -> Loss: ...

    @property
    def _loss_targets(self) -> Encode:
        """Convert targets from the form that the stream keeps to the form that the loss takes."""
        return Unchanged()

    @property
    def _balanced_classes(self) -> int | None:
        """The number of classes if they have equal weights, otherwise None."""
        return None

    @property
    @abstractmethod
    def _task(self) -> str: ...

    def _learn_all(self, X: Any, y: np.ndarray, weights: Any, line: Progress) -> None:
        if self._is_local:
            learn_locally(self, X, y, weights)
            line.advance(len(y))
            return
        self._fit_map(*self._sampled(X, y), n_rows=X.shape[0], whole=True)
        search = self.__dict__.pop("_search", None)
        rival = None
        if self._may_be_local(X, y):
            rival = local_rival(self, X, y, weights, search)
        if rival is None or not is_better(rival, self._map_report, certain=False):
            self._add(X, y, weights, line)
            self._stream.solution = self._solve()
            if rival is None or not is_better(rival, self.report_, certain=True):
                return
        assert rival is not None
        for name in ("feature_map_", "_stream", "_probe", "loss_"):
            setattr(self, name, getattr(rival, name))

    @abstractmethod
    def _may_be_local(self, X: Any, y: np.ndarray) -> bool:
        """Whether feature_map="auto" compares its features with feature_map="local"."""

    @property
    def _searches_freely(self) -> bool:
        """Whether the map is searched for, and neither its size nor alpha is given."""
        any_size = self.budget is None or self.budget == "unlimited"
        return self._searches and any_size and is_auto(self.alpha)

    def _fit_map(self, *args: Any, **options: Any) -> None:
        if self._is_local:
            raise ValueError(
                "feature_map='local' needs all rows in memory, and one call of fit; use 'auto' or "
                "a map for streams, files and clusters."
            )
        seconds = Budget.parse(self.budget).seconds
        if self._searches and seconds is not None:
            self.__dict__["_deadline"] = time.monotonic() + seconds
        super()._fit_map(*args, **options)
        if isinstance(self.feature_map_, AutoMap):
            search = self.feature_map_.take_search()
            if options.get("whole"):
                self.__dict__["_search"] = search  # which `_learn_all` takes

    def _new_map(self, n_rows: int | None = None) -> Any:
        if self._is_local:
            alpha = None if is_auto(self.alpha) else self.alpha
            return LocalMap(
                task=self._task, budget=self.budget, alpha=alpha, random_state=self.random_state
            )
        if not self._searches:
            return super()._new_map(n_rows)
        return AutoMap(
            task=self._task, budget=self.budget, n_rows=n_rows, random_state=self.random_state
        )

    @property
    def _searches(self) -> bool:
        return isinstance(self.feature_map, str) and self.feature_map == "auto"

    @property
    def _is_local(self) -> bool:
        return isinstance(self.feature_map, str) and self.feature_map == "local"

    @property
    def report_(self) -> Report | None:
        """What the search tried, and the error to expect on new rows; None without a search.

        The expected error is the leave-one-out error of up to 1,024 rows, or with losses other than
        the squared loss the error on about 3,000 held-out rows.
        """
        stream = self._begun()
        if self._map_report is None:
            return None
        if _is_squared(self) and not stream._closed and stream.sample.weights.any():
            predicted, targets, _ = self.leave_one_out()
            self._judge(predicted, targets)
        return self._map_report

    @property
    def _map_report(self) -> Report | None:
        searched = self.feature_map_
        return searched.report_ if isinstance(searched, AutoMap) else None

    @abstractmethod
    def _losses(self, predicted: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The loss of each row: a wrong class counts 1, a number its squared error over var y."""

    @abstractmethod
    def _plain_loss(self, targets: np.ndarray) -> float:
        """The mean loss of the best prediction that is the same for all rows."""

    def _judge(self, predicted: np.ndarray, targets: np.ndarray) -> None:
        """Put the errors of held-out rows into the report of the search."""
        report = self._map_report
        if report is not None:
            losses, plain = self._losses(predicted, targets), self._plain_loss(targets)
            self.feature_map_.report_ = report.judged(losses, plain)

    def for_prediction(self, *, uncertainty: bool = False) -> Self:
        """Return a smaller copy that can predict and knows which error to expect."""
        _ = self.report_
        return super().for_prediction(uncertainty=uncertainty)

    def summary(self) -> str:
        """Return a text that describes the columns, the search and the expected error."""
        return summary_of(self)

    def plot(self, path: Any = None) -> Any:
        """Plot the errors of the candidates that feature_map="auto" tried, see `Report.plot`."""
        report = self.report_
        if report is None:
            raise ValueError(
                "there is no search to plot: the feature map was given, or there were too few rows "
                "to search with; fit with feature_map='auto'."
            )
        return report.plot(path)

    def _usual_targets(self, fit: Fit) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Means and standard deviations of targets, if they are numbers."""
        return None, None

    def _finish(self, fit: Fit, end: np.ndarray, alpha: float) -> None:
        """Compute what predictions need besides the solution, while the rows are available."""

    @abstractmethod
    def learn_errors(self, predicted: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> None:
        """Learn from predictions for left-out rows how far off predictions are."""

    @property
    def n_passes_(self) -> int:
        """Number of passes over the features; 1 for the squared loss."""
        return self.solution_.n_passes

    @available_if(_asks_for_squared)
    def partial_fit(self, X: Any, y: Any, *args: Any, **options: Any) -> Self:
        """Learn from more rows, with the squared loss only; see `OnePassClassifier`."""
        return super().partial_fit(X, y, *args, **options)

    @available_if(_asks_for_squared)
    def merge(self, other: Self) -> Self:
        """Add what another learner has learned, with the squared loss only."""
        return super().merge(other)

    @available_if(_asks_for_squared)
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows, with the squared loss only: see `OnePassRegressor.forget`."""
        return super().forget(X, y, sample_weight)

    def save(self, path: Any, *, resumable: bool = False, uncertainty: bool = False) -> None:
        """Save the model to a file, which `craftmaps.load` reads.

        Parameters
        ----------
        path : path of the file
        resumable : bool, default=False
            Whether to also store the sums of the rows. Only the squared loss has them.
        uncertainty : bool, default=False
            Whether to also store the covariance of the coefficients, see `OnePassRegressor`. Other
            losses do not need it for intervals and sets of classes.
        """
        if resumable:
            lacking = None if _is_squared(self) else f"the loss {self._loss_name!r}"
            if isinstance(self.feature_map_, LocalMap):
                lacking = "feature_map='local', which 'auto' may choose without a budget,"
            if lacking:
                raise ValueError(
                    f"resumable=True keeps the sums of loss='squared', and {lacking} has none; "
                    f"save it without."
                )
        super().save(path, resumable=resumable, uncertainty=uncertainty)

    def solve(self) -> Self:
        """Compute the coefficients for all rows, unless this is already done."""
        super().solve()
        self.__dict__.pop("_deadline", None)
        if isinstance(self._stream, RowsAgain):
            self._stream = self._stream.closed()
        return self

    def _fit_blocks(self, blocks: Iterable[Any], checkpoint: Any, *args: Any) -> Self:
        if _is_squared(self):
            return super()._fit_blocks(blocks, checkpoint, *args)
        if iter(blocks) is blocks and self.loss != "auto":
            raise ValueError(
                f"loss={self.loss!r} takes several passes over the rows, and these blocks can be "
                f"iterated only once; give a list, or what craftmaps.scale.read returns, or use "
                f"loss='squared'."
            )
        self.__dict__["_blocks_again"] = blocks
        try:
            return super()._fit_blocks(blocks, checkpoint, *args)
        finally:
            del self.__dict__["_blocks_again"]

    def _learn_blocks(
        self, blocks: Iterable[Any], kept: Checkpoint | None, progress: bool | None, classes: Any
    ) -> None:
        if kept is not None and self.loss == "auto" and kept.restore() is None:
            # A checkpoint keeps sums or results of passes. That depends on the loss, which this
            # call chooses.
            self._begin_from_all(blocks, getattr(blocks, "n_rows", None), progress, classes)
        if kept is None or _is_squared(self) or self._reads_once:
            super()._learn_blocks(blocks, kept, progress, classes)
            return
        position = kept.restore()
        results = self.__dict__.pop("_pass_results", None) or []
        finished = position is not None and self._stream.solution is not None
        if finished and hasattr(blocks, "fingerprint"):
            return  # the fingerprint says that the files are the same
        before = None if position is None else self._stream
        if before is not None:
            self._stream = self._new_stream(
                before.feature_map, before.n_features, None, before.dtype
            )
        super()._learn_blocks(blocks, None, progress, classes)
        stream = self._stream
        assert isinstance(stream, RowsAgain)
        now = [stream.n_rows, digest(*stream.targets_and_weights())]
        if position is not None and position != now:
            raise ValueError(
                f"the checkpoint has learned from {position[0]} rows, but the {now[0]} rows given "
                f"now have other values, targets or weights; pass the same rows, use another "
                f"folder, or remove this one to start over."
            )
        if before is not None and finished:
            self._stream = before
            return
        stream.log = PassLog(results, lambda: kept.save_if_due(now))
        kept.save_if_due(now)  # with the map
        stream.solution = self._solve()
        kept.save(now, finished=True)

    @property
    def _reads_once(self) -> bool:
        """Whether the rows come from an iterator, which allows a single pass."""
        blocks = self._blocks_again
        return blocks is not None and iter(blocks) is blocks

    def _begin_from_all(self, *args: Any) -> None:
        if not hasattr(self, "_stream"):  # otherwise the map comes from a checkpoint
            super()._begin_from_all(*args)

    def for_checkpoint(self) -> Self:
        """Return what a checkpoint stores: the map, and the results of the passes so far."""
        stream, light = self._stream, copy(self)
        for passing in ("_blocks_again", "_deadline"):
            light.__dict__.pop(passing, None)
        if not isinstance(stream, RowsAgain):
            return light
        light._stream = stream.closed()
        if stream.solution is None and stream.log is not None:
            light._stream = FeatureStream(
                stream.feature_map, stream.n_features, 1, stream.dtype, stream.encode
            )
            light._stream.n_rows = stream.n_rows
            light._pass_results = stream.log.results
        return light

    def _new_stream(
        self, feature_map: Any, n_features: int, n_rows: int | None, dtype: np.dtype
    ) -> FeatureStream:
        if _is_squared(self):
            return super()._new_stream(feature_map, n_features, n_rows, dtype)
        again = None if self._blocks_again is None else self._batches_again
        return RowsAgain(feature_map, n_features, dtype, self._encode, again)

    def _forget(self) -> None:
        super()._forget()
        for name in ("loss_", "_deadline"):
            self.__dict__.pop(name, None)

    def _batches_again(self) -> Iterator[Batch]:
        for block in self._blocks_again:
            X, y, _ = unpacked(block)
            X, y = self._validated(X, y, reset=False)
            yield self._encoded(X), y, np.empty(0)  # targets and weights were kept

    def _solve(self) -> Solution:
        if _is_squared(self):
            return super()._solve()
        if self._stream.solution is not None:  # from a checkpoint
            return self._stream.solution
        assert isinstance(self._stream, RowsAgain)
        return self._minimized(self._stream)

    def solve_passes(self, rows: Rows) -> Self:
        """Learn from rows on other machines, after `begin` and in place of a stream of rows."""
        self._stream.n_rows = rows.n_rows
        self._stream.solution = self._minimized(rows)
        return self.solve()

    def pass_blocks(
        self, blocks: Iterable[Any], first_row: int, *, features: bool = True
    ) -> Iterator[FeatureBlock]:
        """Turn blocks (X, y, sample_weight) of some of the rows into the blocks of a pass."""
        stream = self._begun()
        assert isinstance(stream, RowsAgain)
        for block in blocks:
            X, y = self._validated(*block[:2], reset=False)
            weights = checked_weights(block[2], X)
            self._check_targets(y)
            targets = self._targets(y)
            weights = self._row_weights(weights, targets)
            weights = np.ones(len(y)) if weights is None else weights
            hashes = place_priority(first_row + np.arange(len(y)))
            first_row, start = first_row + len(y), 0
            parts = features_of(stream, self._encoded(X)) if features else [np.empty((len(y), 0))]
            for Z in parts:
                rows = slice(start, start + len(Z))
                yield FeatureBlock(Z, targets[rows], weights[rows], hashes[rows])
                start = rows.stop

    def _minimized(self, rows: Rows) -> Solution:
        fit = Fit(
            rows, self._loss_targets, self._n_columns, self.fit_intercept, self._balanced_classes
        )
        fit.loss = self._new_loss(fit)
        machine, now = fit.machine(self.max_passes), time.monotonic()
        machine.deadline = now + _SHARE_OF_SEARCH * (self._deadline - now)
        alpha, alphas, scores, start = fit.chosen(machine, self.alpha)
        if not machine.has_time:
            machine.converged = True  # the search of alpha may be cut short, without a warning
        machine.deadline = self._deadline
        end = fit.minimum(machine, alpha, start, self.tol)
        if not (machine.converged or machine.has_time):
            warnings.warn(
                f"the budget of {self.budget} was over before the loss was minimized; a larger "
                f"budget gives a better model.",
                ConvergenceWarning,
                stacklevel=2,
            )
        elif not machine.converged:
            warnings.warn(
                f"{machine.n_passes} passes did not minimize the loss at alpha={alpha:.3g} to "
                f"tol={self.tol:g}; raise alpha, tol or max_passes.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._finish(fit, end, alpha)
        coef, intercept = fit.restored(machine, end)
        y_mean, y_spread = self._usual_targets(fit)
        return Solution(
            coef,
            intercept,
            alpha,
            jitter=0.0,
            condition=machine.condition,
            alphas=alphas,
            scores=scores,
            left_out=alphas is not None,
            n_passes=machine.n_passes,
            y_mean=y_mean,
            y_spread=y_spread,
        )

    def _check_map(self) -> None:
        if not (self._searches or self._is_local):
            super()._check_map()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        Budget.parse(self.budget)
        if not is_number(self.tol) or self.tol <= 0:
            raise ValueError(f"tol must be a number above 0, got {self.tol!r}.")
        check_count("max_passes", self.max_passes)
        if not _is_squared(self) and isinstance(self.alpha, str) and self.alpha == "gcv":
            raise ValueError("alpha='gcv' is for loss='squared'; use alpha='auto'.")
        if self._is_local:
            check_local(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_local
        return tags
