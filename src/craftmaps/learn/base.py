"""What all learners share: a feature map, a stream of rows, and a solution for the rows."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.extmath import row_norms

from craftmaps.learn import map_rows
from craftmaps.learn.features import fill_features
from craftmaps.learn.hooks import LearnerHooks
from craftmaps.learn.progress import Progress
from craftmaps.learn.row_checks import checked_weights
from craftmaps.learn.solvers.solution import Solution
from craftmaps.learn.stream import FeatureStream
from craftmaps.storage import model_file
from craftmaps.tables import TableEncoder
from craftmaps.validation import check_count

_MIN_PREDICT_ROWS = 1024  # rows predicted at a time, or more if their features are few
_PREDICT_BYTES = 1 << 22
_PROBED_ROWS = 1000  # rows that are searched for one that is not zero


class Learner(LearnerHooks):
    """Base class of the learners; see `LearnerHooks` for what a subclass defines."""

    feature_map_: Any
    encoder_: TableEncoder | None = None
    _stream: FeatureStream
    _probe: Any = None  # one encoded row, which tells whether two maps are the same
    _probe_features: Any = None
    _KNOWN_MAPS: ClassVar[str] = "None or a transformer"

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows learned from, without the rows that were forgotten."""
        stream = self._begun()
        return stream.n_rows - stream.n_forgotten

    @property
    def solution_(self) -> Solution:
        """Coefficients for all rows so far, computed when they are first needed."""
        solution = self._begun().solution
        if solution is None:
            with self._draft(same_rows=True) as draft:
                solution = draft._stream.solution  # another thread may have solved meanwhile
                if solution is None:
                    solution = draft._stream.solution = draft._solve()
        return solution

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to rows X and targets y, and forget what was learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. KernelClassifier and KernelRegressor also take tables, see `encoder`.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for a regressor
            Targets. Labels of a classifier can be of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; None gives each row the weight 1.

        Returns
        -------
        self
        """
        self._forget()
        try:
            with Progress(len(y) if hasattr(y, "__len__") else None) as line:
                X, y = self._first_rows(X, y, whole=True)
                weights = checked_weights(sample_weight, X)
                self._learn_all(X, y, weights, line)
            self.solve()
        except BaseException:
            self._forget()  # a model of some of the rows must not pass for a model of all
            raise
        return self

    def begin(self, X: Any, y: Any, classes: Any = None, n_rows: int | None = None) -> Self:
        """Fit the feature map on all rows of X, without learning from any of them.

        What was learned before is forgotten. Afterwards, call `add` on this learner or on `emptied`
        copies of it to learn from rows. A map that is None or a FrozenEstimator is not fitted.

        Parameters
        ----------
        X, y
            Rows and targets as for `fit`.
        classes : array-like, default=None
            All labels that a classifier will see; None takes the labels in y.
        n_rows : int, default=None
            The number of rows that will come in all, if it is known.

        Returns
        -------
        self
        """
        self._forget()
        self._fit_map(*self._first_rows(X, y, classes), n_rows)
        return self

    def add(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows, after `begin` or another fit.

        The sums are changed in place, which takes less memory than `partial_fit`. If an error is
        raised, some of the rows may have been learned, so the learner must not be used any more.
        """
        self._begun()
        self._learn(X, y, sample_weight, Progress(None, shown=False))
        return self

    def solve(self) -> Self:
        """Compute the coefficients for all rows so far, unless this is already done."""
        _ = self.solution_
        return self

    def for_prediction(self, *, uncertainty: bool = False) -> Self:
        """Return a smaller copy that can predict and has no sums.

        With `uncertainty`, it keeps what the standard deviations and intervals of a regressor need.
        """
        self.solve()
        self._calibrate()
        light = copy(self)
        light._stream = self._stream.closed()
        if uncertainty:
            light._stream.posterior, light._stream.conformal = self._uncertainty(single=True)
        light.__dict__.pop("_probe", None)  # a row of the training data
        return light

    def save(self, path: Any, *, resumable: bool = False, uncertainty: bool = False) -> None:
        """Save the model to a file, which `craftmaps.load` reads.

        Parameters
        ----------
        path : str or path-like
            Path of the file.
        resumable : bool, default=False
            Whether to also store the sums of the rows, 4 n_components^2 bytes per fold, so that
            `partial_fit`, `merge` and `forget` work after loading. Without the sums, the loaded
            model only predicts.
        uncertainty : bool, default=False
            Whether to also store what `predict(X, return_std=True)`, `predict_interval` and
            `sample_y` of a regressor need, 4 n_components^2 bytes. A resumable file does not need
            it.
        """
        if not resumable:
            model_file.save(self.for_prediction(uncertainty=uncertainty), path)
            return
        self.solve()
        self._stream.check_open()
        self._calibrate()
        model_file.save(self, path)

    @contextmanager
    def _draft(self, same_rows: bool = False) -> Iterator[Self]:
        """Yield a copy to change, which replaces this learner if nothing goes wrong.

        An error, Ctrl-C or a fork inside leaves this learner as it was. Meanwhile other threads can
        predict with it, and wait if they want to change it. `same_rows` says that the draft only
        computes results for the rows so far, which are stored in the stream.
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

    def _learn(
        self, X: Any, y: Any, sample_weight: Any, line: Progress, classes: Any = None
    ) -> None:
        """Learn from a block. The first block also fits the map, if that is not done yet."""
        first = not hasattr(self, "_stream")
        X, y = self._first_rows(X, y, classes) if first else self._more_rows(X, y)
        weights = checked_weights(sample_weight, X)
        if first:
            self._fit_map(*self._sampled(X, y))
        else:
            self._more_targets(classes)
        self._add(X, y, weights, line)

    def _learn_all(self, X: Any, y: np.ndarray, weights: Any, line: Progress) -> None:
        """Learn from validated rows, which are all rows that there are."""
        self._fit_map(*self._sampled(X, y), n_rows=X.shape[0], whole=True)
        self._add(X, y, weights, line)
        self._stream.solution = self._solve()  # in place: there is no older state to keep

    def _first_rows(
        self, X: Any, y: Any, classes: Any = None, *, whole: bool = False
    ) -> tuple[Any, np.ndarray]:
        """Check the first rows and targets, and store what is known from the targets."""
        X, y = self._validated(X, y, reset=True)
        self._check_targets(y, whole=whole)
        self._set_targets(y, classes)
        return X, y

    def _more_rows(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Check rows and targets after the first ones."""
        X, y = self._validated(X, y, reset=False)
        self._check_targets(y)
        return X, y

    def _add(self, X: Any, y: np.ndarray, weights: np.ndarray | None, line: Progress) -> None:
        targets = self._targets(y)
        self._stream.add(self._encoded(X), targets, self._row_weights(weights, targets), line)

    def _fit_map(
        self, X: Any, y: np.ndarray, n_rows: int | None = None, *, whole: bool = False
    ) -> None:
        """Fit the map on validated rows and make an empty stream.

        `n_rows` is the number of rows that will come in all, None if unknown; `whole` says that
        they come at once.
        """
        self._check_parameters()
        self._targets(y)  # raises an error for bad targets before the map is fitted
        feature_map = self._new_map(n_rows)
        if feature_map is not None:
            feature_map = feature_map.fit(X, self._map_targets(y))
        width = X.shape[1] if feature_map is None else feature_map.transform(X[:1]).shape[1]
        self._settle(feature_map, width, X, y, n_rows)
        stream = self._new_stream(feature_map, width, n_rows if whole else None, X.dtype)
        self.feature_map_, self._stream = feature_map, stream
        # A row of zeros would not tell maps apart, because many of them agree there.
        first = int(np.argmax(row_norms(X[:_PROBED_ROWS]) > 0))
        self._probe = X[first : first + 1].copy()

    def _settle(
        self, feature_map: Any, n_features: int, X: Any, y: np.ndarray, n_rows: int | None
    ) -> None:
        """Decide what depends on the fitted map and its rows, before there is a stream."""

    def _new_map(self, n_rows: int | None = None) -> Any:
        """Return an unfitted map for `n_rows` rows in total; None means an unknown number."""
        return None if self.feature_map is None else clone(self.feature_map)

    def _sample_size(self) -> int | None:
        self._check_parameters()
        return map_rows.sample_size(self._new_map(), self.map_rows)

    def _sampled(self, X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
        if not self._needs_rows(X):
            return X, y
        return map_rows.sampled(X, y, self._sample_size())

    def _predicted(self, X: Any) -> Iterator[np.ndarray]:
        """Yield predicted columns for a few rows at a time."""
        solution = self.solution_
        for Z in self._features(X):
            yield solution.predict(Z)

    def _features(self, X: Any) -> Iterator[np.ndarray]:
        """Yield features for a few rows at a time, always in the same buffer."""
        stream = self._begun()
        X = self._valid_rows(X)
        encoder, width = self.encoder_, stream.n_features
        dtype = np.dtype(X.dtype if encoder is None else encoder.dtype)
        if encoder is not None:  # a map to few features may take many encoded columns
            width = max(width, encoder.n_encoded_)
        step = max(_MIN_PREDICT_ROWS, _PREDICT_BYTES // (width * dtype.itemsize))
        buffer = np.empty((min(step, X.shape[0]), stream.n_features), dtype)
        for start in range(0, X.shape[0], step):
            rows = self._encoded(X[start : start + step])
            Z = buffer[: rows.shape[0]]
            fill_features(stream.feature_map, rows, Z)
            yield Z

    def _begun(self) -> FeatureStream:
        """Return the stream of rows, or raise NotFittedError if there is none."""
        if not hasattr(self, "_stream"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call fit, partial_fit or "
                f"fit_blocks first."
            )
        return self._stream

    def _forget(self) -> None:
        self.__dict__.pop("_stream", None)

    def _check_map(self) -> None:
        """Raise an error if the feature map is not an instance that can be fitted."""
        given = self.feature_map
        if isinstance(given, type) or not (given is None or hasattr(given, "fit")):
            kind = ValueError if isinstance(given, str) else TypeError
            raise kind(
                f"feature_map must be {self._KNOWN_MAPS}, such as Nystroem(Gaussian()), "
                f"got {given!r}."
            )

    def _check_parameters(self) -> None:
        self._check_map()
        check_count("block_rows", self.block_rows)
        check_count("map_rows", self.map_rows, none=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
