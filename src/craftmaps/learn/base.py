"""What every learner does the same way, whatever its loss and its targets."""

from abc import abstractmethod
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from copy import copy, deepcopy
from itertools import chain
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import validate_data

from craftmaps.learn import map_rows
from craftmaps.learn.checkpoint import Checkpoint, positioned, unpacked
from craftmaps.learn.intervals import Conformal
from craftmaps.learn.progress import Progress
from craftmaps.learn.solvers.solution import Solution
from craftmaps.learn.stream import Encode, FeatureStream, fill_features
from craftmaps.learn.uncertainty import Posterior
from craftmaps.storage import model_file
from craftmaps.tables.table import column_of_text
from craftmaps.validation import is_integer

FLOATS = (np.float64, np.float32)
_MIN_PREDICT_ROWS = 1024  # turned into features at a time, or more rows if they are short
_PREDICT_BYTES = 1 << 22
_LEAST_WEIGHT, _LARGEST_WEIGHT = 1e-30, 1e30  # of rows, also in single precision
_PROBED_ROWS = 1000  # looked at for a row that is not zero
Blocks = Iterable[Any]


class Learner(BaseEstimator):
    """Base class of the learners: a feature map, a stream of rows, and a solution for them.

    A subclass is a loss, or a kind of target. It overrides these hooks:

    - `_validated(X, y, reset)`: the rows and targets that a caller gave, checked;
    - `_valid_targets(y)`: the targets alone, checked, where rows are tables;
    - `_set_targets(y, classes)`: what the first targets tell, such as the classes;
    - `_targets(y)`: the targets in the form that the stream keeps;
    - `_encode` and `_n_columns`: the columns that are predicted for targets of that form;
    - `_new_stream(...)`: what is kept of the rows;
    - `_solve()`: the solution for all rows so far.

    `_check_targets`, `_more_targets`, `_row_weights`, `_check_parameters` and `_calibrate` may be
    overridden too, and `_valid_rows`, `_encoded` and `_needs_rows` where rows are tables. `classes`
    are the labels that a caller of a classifier announces.
    """

    feature_map: Any
    block_rows: int
    map_rows: int | None
    feature_map_: Any
    encoder_: Any = None
    _stream: FeatureStream
    _probe: Any = None  # a row of the data, if the sums of rows are kept
    _probe_features: Any = None

    @abstractmethod
    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]: ...

    @abstractmethod
    def _valid_targets(self, y: Any) -> np.ndarray: ...

    @abstractmethod
    def _set_targets(self, y: np.ndarray, classes: Any = None) -> None: ...

    @abstractmethod
    def _targets(self, y: np.ndarray) -> np.ndarray: ...

    @property
    @abstractmethod
    def _encode(self) -> Encode: ...

    @property
    @abstractmethod
    def _n_columns(self) -> int: ...

    @abstractmethod
    def _new_stream(
        self, feature_map: Any, n_features: int, n_rows: int | None, dtype: np.dtype
    ) -> FeatureStream: ...

    @abstractmethod
    def _solve(self) -> Solution: ...

    def _check_targets(self, y: np.ndarray, *, whole: bool = False) -> None:
        """Complain about targets before anything is done; `whole` says that these are all."""

    def _more_targets(self, classes: Any) -> None:
        """Take classes that are announced with a later block."""

    def _map_targets(self, y: np.ndarray) -> Any:
        """What the feature map is told about the targets."""
        return y

    def _row_weights(
        self, weights: np.ndarray | None, y: np.ndarray, targets: np.ndarray
    ) -> np.ndarray | None:
        """The weights of rows, perhaps times those of their classes."""
        return weights

    def _calibrate(self) -> None:
        """Compute what predictions need beside the solution."""

    def _uncertainty(self, *, single: bool = False) -> tuple[Posterior | None, Conformal]:
        """What is known about errors; `single` asks for it in float32, for files."""
        raise ValueError(f"a {type(self).__name__} has no standard deviations.")

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows that the learner has seen, without those that it was told to forget."""
        stream = self._begun()
        return stream.n_rows - stream.n_forgotten

    @property
    def solution_(self) -> Solution:
        """Coefficients for all rows so far, and how they were found; computed when first asked."""
        solution = self._begun().solution
        if solution is None:
            with self._draft(same_rows=True) as draft:
                solution = draft._stream.solution  # of another thread meanwhile
                if solution is None:
                    solution = draft._stream.solution = draft._solve()
        return solution

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their targets y, and forget what was learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            KernelClassifier and KernelRegressor also take tables, see `encoder`.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for a regressor
            A classifier takes labels of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
        """
        self._forget()
        try:
            with Progress(len(y) if hasattr(y, "__len__") else None) as line:
                X, y = self._validated(X, y, reset=True)
                weights = checked_weights(sample_weight, X)
                self._check_targets(y, whole=True)
                self._set_targets(y)
                self._fit_map(*self._sampled(X, y), n_rows=X.shape[0])
                self._add(X, y, weights, line)
            self._stream.solution = self._solve()  # in place: there is nothing to go back to
            self.solve()
        except BaseException:
            self._forget()  # some of the rows are no model
            raise
        return self

    def begin(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Fit the feature map on all of the rows X, and learn from none of them.

        What was learned before is forgotten. Then `add` learns from rows, or `emptied` copies do.
        A map that is None or a FrozenEstimator is used as it is.

        Parameters
        ----------
        X, y
            Rows as for `fit`.
        classes : array-like, default=None
            All labels that will come, for a classifier; without it, those of y.
        """
        self._forget()
        X, y = self._validated(X, y, reset=True)
        self._check_targets(y)
        self._set_targets(y, classes)
        self._fit_map(X, y)
        return self

    def add(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from further rows, after `begin` or another fit.

        The sums are changed in place, which takes less memory than `partial_fit`. If it raises,
        some of the rows may have been learned, so throw the learner away.
        """
        self._begun()
        self._learn(X, y, sample_weight, Progress(None, shown=False))
        return self

    def solve(self) -> Self:
        """Compute the solution for all rows so far, if it is not known yet."""
        _ = self.solution_
        return self

    def emptied(self, first_row: int = 0) -> Self:
        """A copy with the same fitted map that has seen no rows.

        Its first row will have the place `first_row` among all rows, where the copy learns from a
        part of them.
        """
        part = copy(self)
        part._stream = self._begun().emptied()
        part._stream.first_row = first_row
        return part

    def sums(self) -> bytes:
        """What was learned from the rows, without the map; for `with_sums` and `add_sums`."""
        return self._begun().to_bytes()

    def with_sums(self, sums: Any) -> Self:
        """A copy that has learned the `sums` of an emptied copy of this learner, and no more."""
        part = copy(self)
        part._stream = self._begun().from_bytes(sums)
        return part

    def add_sums(self, sums: Any) -> Self:
        """Add the `sums` of an emptied copy of this learner."""
        self._stream.merge(self._begun().from_bytes(sums))
        return self

    def for_prediction(self, *, uncertainty: bool = False) -> Self:
        """A copy that predicts and has no sums, which is small enough to be sent around.

        With `uncertainty` it has what standard deviations and intervals of a regressor need.
        """
        self.solve()
        self._calibrate()
        light = copy(self)
        light._stream = self._stream.closed()
        if uncertainty:
            light._stream.posterior, light._stream.conformal = self._uncertainty(single=True)
        light.__dict__.pop("_probe", None)  # a row of somebody's data
        return light

    def for_checkpoint(self) -> Self:
        """What a checkpoint stores of a fit that is not finished."""
        return self

    def save(self, path: Any, *, resumable: bool = False, uncertainty: bool = False) -> None:
        """Write the model to one file, from which `craftmaps.load` gives it back.

        Parameters
        ----------
        path : path of the file
        resumable : bool, default=False
            Whether to store the sums of the rows too, 4 n_components^2 bytes per fold, so that
            `partial_fit`, `merge` and `forget` can go on after loading. Without them the model
            predicts.
        uncertainty : bool, default=False
            Whether to store what `predict(X, return_std=True)`, `predict_interval` and `sample_y`
            of a regressor need, 4 n_components^2 bytes; a resumable file computes it from the sums.
        """
        if not resumable:
            model_file.save(self.for_prediction(uncertainty=uncertainty), path)
            return
        self.solve()
        self._stream.check_open()
        self._calibrate()
        model_file.save(self, path)

    def _fit_blocks(
        self,
        blocks: Blocks,
        checkpoint: Any,
        checkpoint_every: float,
        progress: bool | None,
        classes: Any = None,
    ) -> Self:
        """Learn from blocks, from where a checkpoint was made if there is one."""
        self._forget()
        options = {"classes": classes}
        try:
            kept: Checkpoint | None = None
            if checkpoint is not None:
                kept = Checkpoint(checkpoint, checkpoint_every, self, blocks, options)
            with kept or nullcontext():
                self._learn_blocks(blocks, kept, progress, classes)
                self._stream.solution = self._solve()  # in place: there is nothing to go back to
        except BaseException:
            self._forget()  # some of the rows are no model
            raise
        return self.solve()

    def _learn_blocks(
        self, blocks: Blocks, kept: Checkpoint | None, progress: bool | None, classes: Any
    ) -> None:
        position = None if kept is None else kept.restore()
        total = getattr(blocks, "n_rows", None)
        if position is None:
            self._begin_from_all(blocks, total, progress, classes)
        elif total is not None:
            total -= self.n_samples_seen_
        following = positioned(blocks, position, kept=kept is not None)
        with Progress(total, progress) as line, closing(following):
            for position, (X, y, weights) in self._begin_from_first(following, classes):
                self._learn(X, y, weights, line, classes)
                if kept is not None:
                    kept.save_if_due(position)
        if not hasattr(self, "_stream"):
            raise ValueError("blocks is empty: there is nothing to learn from.")
        if kept is not None and position is not None:
            kept.save(position, finished=True)

    def _begin_from_all(
        self, blocks: Blocks, total: int | None, progress: bool | None, classes: Any
    ) -> None:
        """Fit the map on a sample of all rows, in a pass of its own, if that is possible."""
        if iter(blocks) is blocks or not self._needs_rows_of(blocks):
            return
        sample, begun = map_rows.StreamSample(self._sample_size()), False
        with Progress(total, progress, "sample for the map: ") as line:
            for block in blocks:
                X, y, _ = unpacked(block)
                X, y = self._validated(X, y, reset=not begun)
                if not begun:
                    self._check_targets(y)
                    self._set_targets(y, classes)
                    begun = True
                sample.add(X, y)
                line.advance(X.shape[0])
        if begun:
            self._fit_map(*sample.rows())

    def _begin_from_first(
        self, remaining: Generator[tuple[Any, Any], None, None], classes: Any
    ) -> Iterator[tuple[Any, Any]]:
        """Fit the map on the first rows, unless it is fitted; returns all blocks that remain."""
        if hasattr(self, "_stream"):
            return remaining
        held: list[Any] = []
        rows: list[tuple[Any, np.ndarray]] = []
        n_rows, wanted = 0, self._sample_size()
        for item in remaining:
            item = deepcopy(item)  # an iterator may use its arrays again for the next block
            held.append(item)
            X, y = self._validated(*item[1][:2], reset=not rows)
            if not rows:
                self._check_targets(y)
                self._set_targets(y, classes)
                wanted = wanted if self._needs_rows(X) else 1
            rows.append((X, y))
            n_rows += X.shape[0]
            if wanted is not None and n_rows >= wanted:
                break
        if rows:
            every_X, every_y = zip(*rows, strict=True)
            first = slice(None if len(rows) == 1 and wanted == 1 else wanted)
            self._fit_map(map_rows.stacked(every_X)[first], np.concatenate(every_y)[first])
        return chain(held, remaining)

    @contextmanager
    def _draft(self, same_rows: bool = False) -> Iterator[Self]:
        """A copy to be changed, which replaces this learner if all that is done inside succeeds.

        Whatever ends it early, an error, Ctrl-C or a fork, leaves this learner as it was. Other
        threads predict from it meanwhile, and wait if they want to change it too. `same_rows` says
        that only results for the rows so far are computed, which the stream keeps.
        """
        with self._stream.lock if hasattr(self, "_stream") else nullcontext():
            draft = object.__new__(type(self))
            draft.__dict__.update(self.__dict__)
            if hasattr(self, "_stream"):
                draft._stream = self._stream.draft()
            yield draft
            if same_rows:
                self._stream.__dict__ = draft._stream.__dict__
            else:
                self.__dict__ = draft.__dict__  # in one step

    def _take(
        self, X: Any, y: Any, sample_weight: Any, line: Progress, classes: Any = None
    ) -> None:
        """Learn from a block whole or not at all."""
        with self._draft() as draft:
            draft._learn(X, y, sample_weight, line, classes)

    def _learn(
        self, X: Any, y: Any, sample_weight: Any, line: Progress, classes: Any = None
    ) -> None:
        """Learn from a block; the first one also fits the map, if that is not done."""
        first = not hasattr(self, "_stream")
        X, y = self._validated(X, y, reset=first)
        weights = checked_weights(sample_weight, X)
        self._check_targets(y)
        if first:
            self._set_targets(y, classes)
            self._fit_map(*self._sampled(X, y))
        else:
            self._more_targets(classes)
        self._add(X, y, weights, line)

    def _add(self, X: Any, y: np.ndarray, weights: np.ndarray | None, line: Progress) -> None:
        targets = self._targets(y)
        self._stream.add(self._encoded(X), targets, self._row_weights(weights, y, targets), line)

    def _fit_map(self, X: Any, y: np.ndarray, n_rows: int | None = None) -> None:
        """Fit the map on validated rows and make a stream that is empty.

        n_rows is how many rows will come in all, None if that is not known.
        """
        self._check_parameters()
        self._targets(y)  # complains about targets before the map is fitted
        feature_map = self._new_map(n_rows)
        if feature_map is not None:
            feature_map = feature_map.fit(X, self._map_targets(y))
        width = X.shape[1] if feature_map is None else feature_map.transform(X[:1]).shape[1]
        stream = self._new_stream(feature_map, width, n_rows, X.dtype)
        self.feature_map_, self._stream = feature_map, stream
        # a row by which maps are told apart: many of them agree about the origin
        first = int(np.argmax(row_norms(X[:_PROBED_ROWS]) > 0))
        self._probe = X[first : first + 1].copy()

    def _new_map(self, n_rows: int | None = None) -> Any:
        """An unfitted map; n_rows is how many rows will come in all, None if not known."""
        return None if self.feature_map is None else clone(self.feature_map)

    def _sample_size(self) -> int | None:
        self._check_parameters()
        return map_rows.sample_size(self._new_map(), self.map_rows)

    def fits_encoder(self) -> bool:
        """Whether an encoder of tables would be fitted on the rows of `map_rows`."""
        return False

    def _needs_rows(self, X: Any) -> bool:
        """Whether anything is fitted on rows such as X before the learner learns from them."""
        return map_rows.needs_rows(self.feature_map)

    def _needs_rows_of(self, blocks: Blocks) -> bool:
        """The same for blocks that can be iterated again."""
        return map_rows.needs_rows(self.feature_map)

    def _sampled(self, X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
        if not self._needs_rows(X):
            return X, y
        return map_rows.sampled(X, y, self._sample_size())

    def _predicted(self, X: Any) -> Iterator[np.ndarray]:
        """Predicted columns, some rows at a time."""
        solution = self.solution_
        for Z in self._features(X):
            yield Z @ solution.coef.astype(Z.dtype) + solution.intercept.astype(Z.dtype)

    def _features(self, X: Any) -> Iterator[np.ndarray]:
        """Features of rows, some at a time, in a buffer that is used again."""
        stream = self._begun()
        X = self._valid_rows(X)
        dtype = np.dtype(X.dtype if self.encoder_ is None else self.encoder_.dtype)
        step = max(_MIN_PREDICT_ROWS, _PREDICT_BYTES // (stream.n_features * dtype.itemsize))
        buffer = np.empty((min(step, X.shape[0]), stream.n_features), dtype)
        for start in range(0, X.shape[0], step):
            rows = self._encoded(X[start : start + step])
            Z = buffer[: rows.shape[0]]
            fill_features(stream.feature_map, rows, Z)
            yield Z

    def _valid_rows(self, X: Any) -> Any:
        """The rows that a caller wants predictions for, checked."""
        return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)

    def _encoded(self, X: Any) -> Any:
        """Validated rows as numbers, as the map takes them."""
        return X

    def _begun(self) -> FeatureStream:
        """The stream of rows; complains if there is none."""
        if not hasattr(self, "_stream"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call fit, partial_fit or "
                f"fit_blocks first."
            )
        return self._stream

    def _forget(self) -> None:
        self.__dict__.pop("_stream", None)

    def _check_parameters(self) -> None:
        if not is_integer(self.block_rows) or self.block_rows < 1:
            raise ValueError(
                f"block_rows must be an integer of at least 1, got {self.block_rows!r}."
            )
        if self.map_rows is not None and (not is_integer(self.map_rows) or self.map_rows < 1):
            raise ValueError(
                f"map_rows must be None or an integer of at least 1, got {self.map_rows!r}."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def checked_weights(weights: Any, X: Any) -> np.ndarray | None:
    """The weights of rows as an array; complains about numbers that are no weights."""
    if weights is None:
        return None
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (X.shape[0],):
        raise ValueError(
            f"sample_weight must be {X.shape[0]} numbers, one per row, got shape {weights.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(
            f"sample_weight must be finite and not negative, and is {weights[bad[0]]} for row "
            f"{bad[0]}."
        )
    largest = weights.max(initial=0.0)
    if largest and not _LEAST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise ValueError(
            f"the largest sample_weight is {largest:.3g}, and sums of rows are exact for weights "
            f"between {_LEAST_WEIGHT:g} and {_LARGEST_WEIGHT:g}; divide all weights by the same "
            f"number, or give 0 to rows that shall not count."
        )
    return np.asarray(weights)


def refuse_text(learner: Any, X: Any) -> None:
    """Raise ValueError if a column of the table X holds text or dates, which is no number."""
    name = column_of_text(X)
    if name is None:
        return
    if hasattr(learner, "encoder"):
        way_out = "set encoder='auto'"
    else:
        kind = "KernelClassifier" if is_classifier(learner) else "KernelRegressor"
        way_out = f"use {kind}, which encodes such tables"
    raise ValueError(
        f"{type(learner).__name__} takes numbers, and column {name!r} holds none; {way_out}."
    )
