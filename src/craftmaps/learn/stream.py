"""The stream of rows that a learner has seen, as sums, a sample of rows, and results."""

import pickle
from copy import copy
from threading import RLock
from typing import Any, ClassVar, Self

import numpy as np

from craftmaps.learn.calibration import RowSample
from craftmaps.learn.codes import Encode
from craftmaps.learn.features import check_features, fill_features
from craftmaps.learn.intervals import Conformal
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.progress import Progress
from craftmaps.learn.row_buffer import RowBuffer
from craftmaps.learn.row_sums import RowSums
from craftmaps.learn.solvers.solution import Solution
from craftmaps.learn.stored import check_stream
from craftmaps.learn.uncertainty import Posterior
from craftmaps.storage.packing import storable
from craftmaps.threads import renew_after_fork


@storable
class FeatureStream(RowSums):
    """Sums of the features of all rows so far, a sample of the rows, and results.

    Parameters
    ----------
    feature_map : fitted transformer or None
        None takes the rows themselves as features.
    n_features, capacity, dtype, encode, n_folds
        As in `RowSums`; the map returns `n_features` columns.
    sample_rows : int, default=0
        Size of a uniform sample of rows, which calibrates probabilities and chooses alpha.
    decay : float, default=1.0
        Factor on the weight of every earlier row when another row arrives.
    by_class : bool, default=False
        As in `RowSums`.

    Attributes
    ----------
    n_rows : int
        Number of rows seen, including the ones that were removed again.
    n_forgotten : int
        Number of rows that were removed again.
    first_row : int
        Place of the first row, if this is a part of a longer stream.
    sample : RowSample
    solution, temperature, posterior, conformal
        Results for all rows so far, or None if they are not computed yet.
    lock : RLock
        Held by a thread that changes this stream or is about to replace it with a `draft`.
    """

    _stored: ClassVar = {
        "feature_map": Any,
        "n_features": int,
        "encode": Any,
        "n_rows": int,
        "first_row": int,
        "folds": list[NormalEquations],
        "sample": RowSample,
        "solution": Solution | None,
        "temperature": float | None,
        "posterior": Posterior | None,
        "conformal": Conformal | None,
        "decay": float,
        "n_forgotten": int,
        "by_class": bool,
        "_doubles": bool | None,
        "_Z": np.ndarray,
        "_y": np.ndarray,
        "_weights": np.ndarray,
        "_index": np.ndarray,
        "_filled": int,
        "_closed": bool,
        "_capacity": int,
    }
    # Defaults for fields that older model files do not have.
    first_row = n_forgotten = 0
    decay = 1.0
    posterior: Posterior | None = None
    conformal: Conformal | None = None

    def __init__(
        self,
        feature_map: Any,
        n_features: int,
        capacity: int,
        dtype: np.dtype,
        encode: Encode,
        n_folds: int = 1,
        sample_rows: int = 0,
        decay: float = 1.0,
        by_class: bool = False,
    ) -> None:
        super().__init__(n_features, capacity, dtype, encode, n_folds, by_class)
        self.feature_map = feature_map
        self.n_rows = 0
        self.first_row = 0
        self.sample = RowSample(sample_rows, n_features, dtype, decay)
        self.decay = decay
        self.n_forgotten = 0
        self.solution: Solution | None = None
        self.temperature: float | None = None
        self._closed = False  # whether the sums were dropped
        self._protect()

    def draft(self) -> Self:
        draft = super().draft()
        draft.sample = copy(self.sample)
        renew_after_fork(draft)
        return draft

    def after_fork(self) -> None:
        """Open the lock in a forked child, where the thread that held it does not exist."""
        self.lock = RLock()

    def add(self, X: Any, y: np.ndarray, weights: np.ndarray | None, progress: Progress) -> None:
        """Add validated rows. Rows of weight 0 only take their places in the stream."""
        self._forget_results()
        before, n_rows = self.n_rows, X.shape[0]
        places = self.first_row + before + np.arange(n_rows)
        weights = self._faded(n_rows, weights)
        if weights is not None and not weights.all():
            weighty = weights > 0
            X, y, weights, places = X[weighty], y[weighty], weights[weighty], places[weighty]
        buffer, done = self.buffer, 0
        while done < X.shape[0]:
            rows = self._claim(X.shape[0] - done, y)
            some = slice(done, done + rows.stop - rows.start)
            fill_features(self.feature_map, X[some], buffer.Z[rows])
            check_features(buffer.Z[rows])
            buffer.y[rows] = y[some]
            buffer.weights[rows] = 1.0 if weights is None else weights[some]
            buffer.index[rows] = places[some]
            buffer.filled = rows.stop
            self.sample.add(
                buffer.Z[rows], buffer.y[rows], buffer.weights[rows], buffer.index[rows]
            )
            done = some.stop
            self.n_rows = int(places[done - 1]) + 1 - self.first_row
            progress.advance(rows.stop - rows.start)
        progress.advance(n_rows - done)
        self.n_rows = before + n_rows

    def remove(self, X: Any, y: np.ndarray, weights: np.ndarray | None) -> None:
        """Remove validated rows, as if they had never been added: all of them or none."""
        self.check_open()
        Z = np.empty((X.shape[0], self.n_features), self.dtype)
        fill_features(self.feature_map, X, Z)
        given = np.ones(len(Z)) if weights is None else weights
        self._remove_rows(Z, y, given)
        self.sample.remove(Z, y, given)
        self.n_forgotten += len(Z)
        self._forget_results()

    def merge(self, other: "FeatureStream") -> Self:
        """Add the rows of another stream with the same map; the other stream is not changed."""
        self._forget_results()
        self._merge_sums(other)
        self.n_rows += other.n_rows
        self.n_forgotten += other.n_forgotten
        self.sample.merge(other.sample)
        return self

    def emptied(self) -> "FeatureStream":
        """Return a stream with the same map and parameters that has seen no rows."""
        empty = FeatureStream(
            self.feature_map,
            self.n_features,
            self.buffer.capacity,
            self.dtype,
            self.encode,
            len(self.folds),
            self.sample.size,
            self.decay,
            self.by_class,
        )
        empty._doubles = self._doubles
        return empty

    def with_class_weights(self, factors: np.ndarray) -> Self:
        """Return a copy with one fold in which each row's weight is times its class's factor."""
        if self.n_kept is None:
            self._flush()  # once here, instead of once in every such copy
        weighted = self.draft()
        weighted._weigh_classes(factors)
        labels = weighted.sample.labels.astype(np.int64)
        weighted.sample.weights = weighted.sample.weights * factors[labels]
        return weighted

    def to_bytes(self) -> bytes:
        """Return the stream as bytes without its map and code, which the receiver has."""
        self.settle()
        light = copy(self)
        light.feature_map = light.encode = None  # type: ignore[assignment]
        return pickle.dumps(light, protocol=5)

    def from_bytes(self, data: Any) -> "FeatureStream":
        """Return the stream that `to_bytes` wrote, with the map and code of this stream."""
        stream: FeatureStream = pickle.loads(data)
        stream.feature_map, stream.encode = self.feature_map, self.encode
        return stream

    def relabel(self, new_labels: np.ndarray, positions: np.ndarray) -> None:
        """Renumber the classes after new ones were announced, which no row so far has."""
        self._forget_results()
        self._relabel_sums(new_labels, positions)
        self.sample.labels = new_labels[self.sample.labels]

    def closed(self) -> "FeatureStream":
        """Return what predictions need: the solution without the sums."""
        bare = FeatureStream(
            self.feature_map,
            self.n_features,
            0,
            self.dtype,
            self.encode,
            len(self.folds),
            by_class=self.by_class,
        )
        bare.n_rows, bare.solution, bare.temperature = self.n_rows, self.solution, self.temperature
        bare.n_forgotten = self.n_forgotten
        if self.conformal is not None and not self.conformal.studentized:  # needs no covariance
            bare.conformal = self.conformal
        bare._closed = True
        return bare

    def check_open(self) -> None:
        """Raise ValueError if the sums were dropped."""
        if self._closed:
            raise ValueError(
                "this model has no sums of its rows, so it predicts, but cannot learn, forget or "
                "leave out rows: it was saved without resumable=True, or its loss or "
                "feature_map='local' needs no sums."
            )

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__ | self.buffer.to_state()
        for name in ("buffer", "lock", "_shares_sums"):
            state.pop(name, None)
        if not self._closed:  # these can be computed again from the sums
            state["posterior"] = state["conformal"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        self.buffer = RowBuffer.from_state(state)
        self.__dict__.update(state)
        self._protect()
        for fold in self.folds[1:]:
            fold.share_work(self.folds[0])

    def _check_stored(self) -> None:
        check_stream(self)

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Leave out what files of 0.1.0 say about the sample of rows, which is always kept now."""
        return {name: value for name, value in state.items() if name != "_calibrates"}

    def _forget_results(self) -> None:
        self.check_open()
        self.solution = self.temperature = self.posterior = self.conformal = None

    def _faded(self, n_rows: int, weights: np.ndarray | None) -> np.ndarray | None:
        """Let earlier rows fade as `n_rows` new ones arrive, and return weights of the new rows."""
        if self.decay == 1:
            return weights
        factor = self.decay**n_rows
        self._fade(factor)
        self.sample.weights = self.sample.weights * factor
        fresh = self.decay ** np.arange(n_rows - 1.0, -1.0, -1.0)
        return fresh if weights is None else fresh * weights

    def _protect(self) -> None:
        self.lock = RLock()
        self._shares_sums = False
        renew_after_fork(self)
