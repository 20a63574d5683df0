"""Rows in, sums out: the buffer between a feature map and the normal equations."""

import pickle
from collections.abc import Callable
from copy import copy
from threading import RLock
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from craftmaps.learn.calibration import RowSample
from craftmaps.learn.intervals import Conformal
from craftmaps.learn.normal_equations import NormalEquations, check_finite
from craftmaps.learn.progress import Progress
from craftmaps.learn.removal import places_of
from craftmaps.learn.solvers import choose
from craftmaps.learn.solvers.precision import loses_directions
from craftmaps.learn.solvers.solution import Solution
from craftmaps.learn.solvers.span import Problem, RowSpace
from craftmaps.learn.uncertainty import Posterior
from craftmaps.maps.base import FeatureMap
from craftmaps.storage.expect import expect, expect_array
from craftmaps.storage.packing import storable
from craftmaps.threads import renew_after_fork

Encode = Callable[[np.ndarray], np.ndarray]
_SAME_WEIGHT = 1e-9  # of a row, below which nothing of it is left
_BUFFERS = ("_Z", "_y", "_weights", "_index")  # of rows that the sums do not yet hold


@storable
class FeatureStream:
    """What a learner keeps of the rows it has seen.

    Rows are turned into features in a buffer of `capacity` rows, which becomes one rank-k update
    when it is full: how the stream is cut into blocks makes no difference. Row i of the stream
    belongs to fold i mod n_folds. As long as all rows fit the buffer and are fewer than the
    features, they are kept, and the problem is solved in the space that they span, or by iteration
    where they are many.

    Parameters
    ----------
    feature_map : fitted transformer, or None for the rows themselves
    n_features : int
        Columns that it makes.
    capacity, dtype
        Of the buffer.
    encode : callable
        From what `add` is given as y to a matrix of targets.
    n_folds : int, default=1
    sample_rows : int, default=0
        Rows to keep, to calibrate probabilities and to choose alpha where rows are few.
    calibrates : bool, default=True
        Whether they are kept when there are more rows than features.
    decay : float, default=1.0
        What the weight of every row is multiplied by when another row comes.

    Attributes
    ----------
    n_forgotten : int
        Rows that were removed again.
    first_row : int, default=0
        The place of its first row, where this is a part of a longer stream.
    lock : RLock
        Held by a thread that changes this stream or is about to replace it with a `draft` of it.
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
        "_calibrates": bool,
        "_doubles": bool | None,
        "_Z": np.ndarray,
        "_y": np.ndarray,
        "_weights": np.ndarray,
        "_index": np.ndarray,
        "_filled": int,
        "_closed": bool,
        "_capacity": int,
    }
    first_row = n_forgotten = 0  # of files that do not say, as the next
    decay = 1.0
    posterior: Posterior | None = None
    conformal: Conformal | None = None
    _calibrates = True  # of files that do not say
    _doubles: bool | None = None  # whether products are taken in float64; None before the first

    _shares_sums: bool
    _shares_rows: bool

    def __init__(
        self,
        feature_map: Any,
        n_features: int,
        capacity: int,
        dtype: np.dtype,
        encode: Encode,
        n_folds: int = 1,
        sample_rows: int = 0,
        calibrates: bool = True,
        decay: float = 1.0,
    ) -> None:
        self.feature_map = feature_map
        self.n_features = n_features
        self.encode = encode
        self.n_rows = 0
        self.first_row = 0
        self.folds = _empty(n_folds)
        self.sample = RowSample(sample_rows, n_features, dtype, decay)
        self.decay = decay
        self.n_forgotten = 0
        self._calibrates = calibrates
        self.solution: Solution | None = None  # of all rows so far, when it is known
        self.temperature: float | None = None
        self._Z = np.empty((capacity, n_features), dtype)
        self._y = np.empty(0)
        self._weights = np.empty(capacity)
        self._index = np.empty(capacity, np.int64)
        self._filled = 0
        self._closed = False  # whether the sums were left behind
        self._protect()

    def draft(self) -> Self:
        """A copy that can be changed while this one stays as it is, and takes its place later.

        Sums and rows are shared until the draft changes them, so that few rows cost little.
        """
        draft = object.__new__(type(self))
        draft.__dict__.update(self.__dict__)
        draft.sample = copy(self.sample)
        draft._shares_sums = draft._shares_rows = True
        renew_after_fork(draft)
        return draft

    def after_fork(self) -> None:
        """Open the lock in a forked child, where the thread that held it does not exist."""
        self.lock = RLock()

    def add(self, X: Any, y: np.ndarray, weights: np.ndarray | None, progress: Progress) -> None:
        """Add validated rows; those without weight only take their places."""
        self._forget()
        before, n_rows = self.n_rows, X.shape[0]
        places = self.first_row + before + np.arange(n_rows)
        weights = self._faded(n_rows, weights)
        if weights is not None and not weights.all():
            weighty = weights > 0
            X, y, weights, places = X[weighty], y[weighty], weights[weighty], places[weighty]
        done = 0
        while done < X.shape[0]:
            rows = self._room(X.shape[0] - done, y)
            some = slice(done, done + rows.stop - rows.start)
            fill_features(self.feature_map, X[some], self._Z[rows])
            check_features(self._Z[rows])
            self._y[rows] = y[some]
            self._weights[rows] = 1.0 if weights is None else weights[some]
            self._index[rows] = places[some]
            self._filled = rows.stop
            self.sample.add(self._Z[rows], self._y[rows], self._weights[rows], self._index[rows])
            done = some.stop
            self.n_rows = int(places[done - 1]) + 1 - self.first_row
            progress.advance(rows.stop - rows.start)
        progress.advance(n_rows - done)
        self.n_rows = before + n_rows
        self._shed_sample()

    def remove(self, X: Any, y: np.ndarray, weights: np.ndarray | None) -> None:
        """Take validated rows out again, as if they had never come; all of them or none."""
        self.check_open()
        Z = np.empty((X.shape[0], self.n_features), self._Z.dtype)
        fill_features(self.feature_map, X, Z)
        given = np.ones(len(Z)) if weights is None else weights
        if self._has_sums:
            self._remove_from_sums(Z, y, given)
        else:
            self._remove_from_buffer(Z, y, given)
        self.sample.remove(Z, y, given)
        self.n_forgotten += len(Z)
        self._forget()

    def merge(self, other: "FeatureStream") -> Self:
        """Add what another stream has seen through the same map; it stays as it is."""
        self._forget()
        self._own_sums()
        for mine, theirs in zip(self.folds, other.folds, strict=True):
            mine.merge(theirs)
        self.n_rows += other.n_rows
        self.n_forgotten += other.n_forgotten
        done = 0
        while done < other._filled:
            rows = self._room(other._filled - done, other._y)
            some = slice(done, done + rows.stop - rows.start)
            for name in _BUFFERS:
                getattr(self, name)[rows] = getattr(other, name)[some]
            self._filled = rows.stop
            done = some.stop
        self.sample.merge(other.sample)
        self._shed_sample()
        return self

    def emptied(self) -> "FeatureStream":
        """Another stream of the same kind that has seen no rows."""
        empty = FeatureStream(
            self.feature_map,
            self.n_features,
            len(self._Z),
            self._Z.dtype,
            self.encode,
            len(self.folds),
            self.sample.size,
            self._calibrates,
            self.decay,
        )
        empty._doubles = self._doubles
        return empty

    def to_bytes(self) -> bytes:
        """What was seen, without the map and the code, which the receiver has; for `from_bytes`."""
        self.settle()
        light = copy(self)
        light.feature_map = light.encode = None  # type: ignore[assignment]
        return pickle.dumps(light, protocol=5)

    def from_bytes(self, data: Any) -> "FeatureStream":
        """Another stream with this one's map and code, and what `to_bytes` wrote."""
        stream: FeatureStream = pickle.loads(data)
        stream.feature_map, stream.encode = self.feature_map, self.encode
        return stream

    def settle(self) -> None:
        """Add the rows of the buffer to the sums, unless they are less to carry than sums."""
        if self._filled >= self.n_features or self._has_sums:
            self._flush()

    def relabel(self, new_labels: np.ndarray, positions: np.ndarray) -> None:
        """Renumber classes after some were announced that no row has had: their target is -1."""
        self._forget()
        self._own_sums()
        for fold in self.folds:
            if fold.n_features:
                fold.add_constant_targets(positions, -1.0)
        if self._filled:
            self._y = self._y.copy()
            self._y[: self._filled] = new_labels[self._y[: self._filled]]
        self.sample.labels = new_labels[self.sample.labels]

    @property
    def weight(self) -> float:
        """The weight of all rows together."""
        buffered = float(self._weights[: self._filled].sum())
        return sum(fold.weight for fold in self.folds) + buffered

    @property
    def n_kept(self) -> int | None:
        """Number of rows if all are kept and fewer than features; None if there are sums."""
        kept = self._filled and self._filled < self.n_features and not self._has_sums
        return self._filled if kept else None

    def problem(self, fit_intercept: bool, spanned: bool) -> Problem:
        """The sums to solve, in the span of the rows if they are kept and `spanned` asks for it."""
        if spanned:
            return self._row_space(fit_intercept)
        self._flush()
        return Problem(self.folds)

    def total(self) -> NormalEquations:
        """The sums of all rows so far, while rows that are kept stay so."""
        return self.draft().problem(fit_intercept=True, spanned=False).total()

    def kept(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, what came as y, and the weights, of the rows in the buffer."""
        used = slice(self._filled)
        return self._Z[used], self._y[used], self._weights[used]

    def flush_if_full(self) -> None:
        """Add a full buffer to the sums now, if the next row would do so anyway."""
        if self._filled == len(self._Z):
            self.settle()

    def closed(self) -> "FeatureStream":
        """What is needed to predict: the solution without the sums, which takes no more rows."""
        dtype, n_folds = self._Z.dtype, len(self.folds)
        bare = FeatureStream(self.feature_map, self.n_features, 0, dtype, self.encode, n_folds)
        bare.n_rows, bare.solution, bare.temperature = self.n_rows, self.solution, self.temperature
        bare.n_forgotten = self.n_forgotten
        if self.conformal is not None and not self.conformal.studentized:  # it needs no covariance
            bare.conformal = self.conformal
        bare._closed = True
        return bare

    def __getstate__(self) -> dict[str, Any]:
        used = {name: getattr(self, name)[: self._filled] for name in _BUFFERS}
        state = self.__dict__ | used | {"_capacity": len(self._Z)}
        for name in ("lock", "_shares_sums", "_shares_rows"):
            del state[name]
        if not self._closed:  # it comes from the sums
            state["posterior"] = state["conformal"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        capacity = state.pop("_capacity")
        self.__dict__.update(state)
        self._protect()
        for name in _BUFFERS:
            used = getattr(self, name)
            if name == "_y" and not len(used):
                continue  # its type is that of the next rows
            whole = np.empty((capacity, *used.shape[1:]), used.dtype)
            whole[: len(used)] = used
            setattr(self, name, whole)
        for fold in self.folds[1:]:
            fold.share_work(self.folds[0])

    def _check_stored(self) -> None:
        n, width = self._filled, self.n_features
        counts = (width - 1, n, len(self._Z) - n, self.n_rows, self.first_row, len(self.folds) - 1)
        expect(min(counts) >= 0, "a number of features, and rows that fit the buffer")
        expect(self.first_row + self.n_rows < 1 << 53, "a number of rows")
        expect(0 <= self.n_forgotten <= self.n_rows, "no more rows forgotten than seen")
        expect(0 < self.decay <= 1, "a decay between 0 and 1")
        expect(len(self._Z) > 0 or self._closed, "a buffer for more rows")
        expect_array("Z", self._Z, "f", (None, width))
        expect_array("weights", self._weights, "f", (len(self._Z),))
        expect_array("index", self._index, "i", (len(self._Z),))
        expect(self._y.dtype.kind in "iuf" and self._y.ndim <= 2, "targets of numbers")
        expect(len(self._y) == len(self._Z) or not n, "a target for each row")
        expect_array("Z of the sample", self.sample.Z, "f", (None, width))
        for fold in self.folds:
            expect(fold.n_features in (0, width), "sums of as many features")
        if self.posterior is not None:
            expect_array("centre", self.posterior.centre, "f", (width,))
            expect(self.conformal is not None, "errors beside their covariance")
        if self.solution is not None:
            expect_array("coef", self.solution.coef, "f", (width, None))

    def check_open(self) -> None:
        """Raise ValueError if the sums were left behind."""
        if self._closed:
            raise ValueError(
                "this model was saved without the sums of its rows, so it predicts but cannot take "
                "more of them; save it with resumable=True."
            )

    @property
    def _has_sums(self) -> bool:
        return any(fold.n_rows for fold in self.folds)

    def _shed_sample(self) -> None:
        """Forget rows that have nothing to calibrate and no alpha to choose."""
        if not self._calibrates and self.weight > self.n_features:
            self.sample = RowSample(0, self.n_features, self._Z.dtype)

    def _forget(self) -> None:
        self.check_open()
        self.solution = self.temperature = self.posterior = self.conformal = None

    def _faded(self, n_rows: int, weights: np.ndarray | None) -> np.ndarray | None:
        """Let what was seen fade by the coming of so many rows; returns the weights of these."""
        if self.decay == 1:
            return weights
        factor = self.decay**n_rows
        self._own_sums()
        for fold in self.folds:
            fold.scale(factor)
        self._weights = self._weights.copy()
        self._weights[: self._filled] *= factor
        self.sample.weights = self.sample.weights * factor
        fresh = self.decay ** np.arange(n_rows - 1.0, -1.0, -1.0)
        return fresh if weights is None else fresh * weights

    def _remove_from_sums(self, Z: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        if len(self.folds) > 1:
            raise ValueError(
                "rows of folds cannot be removed, because it is not known which fold they are in; "
                "give one alpha, or 'auto', instead of a sequence."
            )
        self._flush()
        self._own_sums()
        part = NormalEquations()
        part.update(Z.astype(self._precision), self.encode(y), weights, overwrite=True)
        self.folds[0].subtract(part)

    def _remove_from_buffer(self, Z: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        used = slice(self._filled)
        places = places_of(Z, y, self._Z[used], self._y[used])
        if (places < 0).any():
            raise ValueError(
                f"row {int(np.argmax(places < 0))} of those to forget was never added, or has been "
                f"removed already. Nothing was changed."
            )
        rest = self._weights[used].copy()
        rest[places] -= weights
        if rest.min() < -_SAME_WEIGHT or not rest.max() > _SAME_WEIGHT:
            raise ValueError(
                "the rows to forget have more weight than they were added with, or no row would be "
                "left. Nothing was changed."
            )
        stay = np.flatnonzero(rest > _SAME_WEIGHT)
        for name in _BUFFERS:
            buffer = getattr(self, name).copy()
            buffer[: len(stay)] = buffer[stay]
            setattr(self, name, buffer)
        self._weights[: len(stay)] = rest[stay]
        self._shares_rows = False
        self._filled = len(stay)

    def _room(self, wanted: int, y: np.ndarray) -> slice:
        """The next rows of the buffer, after making room if there is none."""
        if self._filled == len(self._Z):
            self._flush()
        if not len(self._y):
            self._y = np.empty((len(self._Z), *y.shape[1:]), y.dtype)
        return slice(self._filled, min(len(self._Z), self._filled + wanted))

    def _flush(self) -> None:
        if not self._filled:
            return
        self._own_sums()
        Z, index = self._Z[: self._filled], self._index[: self._filled]
        Z = Z.astype(self._precision, copy=False)
        _add_to_folds(self.folds, Z, *self._pending(), index, overwrite=not self._shares_rows)
        if self._shares_rows:
            for name in _BUFFERS:
                setattr(self, name, np.empty_like(getattr(self, name)))
            self._shares_rows = False
        self._filled = 0

    def _protect(self) -> None:
        self.lock = RLock()
        self._shares_sums = self._shares_rows = False  # with the stream that this is a draft of
        renew_after_fork(self)

    def _own_sums(self) -> None:
        """Make sure that nobody else has these sums, before they are changed."""
        if self._shares_sums:
            self.folds = [copy(fold) for fold in self.folds]
            self._shares_sums = False

    @property
    def _precision(self) -> np.dtype:
        """Of the products of features that are summed; the first rows settle it."""
        if self._doubles is None:
            known = (
                self.n_features <= choose.DOUBLE_PRECISION_FEATURES or self._Z.dtype == np.float64
            )
            self._doubles = known or loses_directions(self._Z[: self._filled])
        return np.dtype(np.float64) if self._doubles else self._Z.dtype

    def _pending(self) -> tuple[np.ndarray, np.ndarray | None]:
        weights = self._weights[: self._filled]
        return self.encode(self._y[: self._filled]), None if (weights == 1).all() else weights

    def _row_space(self, fit_intercept: bool) -> Problem:
        """Sums in the span of fewer rows than features, where ridge has its solution."""
        Z = self._Z[: self._filled]
        centre = Z.mean(axis=0, dtype=np.float64) if fit_intercept else np.zeros(self.n_features)
        space = RowSpace(Z, centre)
        folds = _empty(len(self.folds))
        index = self._index[: self._filled]
        _add_to_folds(folds, space.coordinates, *self._pending(), index)
        return Problem(folds, space)


def fill_features(feature_map: Any, X: Any, out: np.ndarray) -> None:
    """Write the features of validated rows X into `out`, by whatever kind of transformer."""
    if isinstance(feature_map, FeatureMap) and _fits(feature_map, X, out):
        feature_map._fill(X, out)  # transform_into would look for NaN in every row once more
        return
    if hasattr(feature_map, "transform_into"):
        feature_map.transform_into(X, out)
        return
    Z = X if feature_map is None else feature_map.transform(X)
    out[:] = Z.toarray() if sparse.issparse(Z) else Z


def _fits(feature_map: FeatureMap, X: Any, out: np.ndarray) -> bool:
    return (feature_map.n_features_in_, feature_map._n_features_out) == (X.shape[1], out.shape[1])


def check_features(Z: np.ndarray) -> None:
    """Complain about features that are not finite, before they are mixed with others."""
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(Z.sum())
    if suspicious:
        check_finite(Z, Z)


def _empty(n_folds: int) -> list[NormalEquations]:
    first = NormalEquations()
    return [first, *(NormalEquations().share_work(first) for _ in range(n_folds - 1))]


def _add_to_folds(
    folds: list[NormalEquations],
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    index: np.ndarray,
    overwrite: bool = False,
) -> None:
    """Add rows to the folds of their places in the stream; Z may be used as work space."""
    if not len(Z):
        return
    if len(folds) == 1:
        folds[0].update(Z, Y, weights, overwrite=overwrite)
        return
    for number, fold in enumerate(folds):
        rows = index % len(folds) == number
        some = None if weights is None else weights[rows]
        fold.update(Z[rows], Y[rows], some, overwrite=True)
