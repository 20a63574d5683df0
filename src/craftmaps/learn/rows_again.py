"""Rows for several passes, whose features are kept in memory or computed in each pass."""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from craftmaps.learn.codes import Encode
from craftmaps.learn.features import check_features, fill_features
from craftmaps.learn.map_rows import place_priority
from craftmaps.learn.passes import FeatureBlock, Task
from craftmaps.learn.progress import Progress
from craftmaps.learn.solvers.memory import available_bytes
from craftmaps.learn.stream import FeatureStream

_SHARE_OF_MEMORY = 0.5  # share of the available memory that features may take
_BLOCK_BYTES = 1 << 26  # memory for the features of one block, if they are not kept
_GATHERED_ROWS = 1024  # smaller blocks are gathered, because each costs time in every pass

Batch = tuple[Any, np.ndarray, np.ndarray]  # validated rows, targets and weights


class PassLog:
    """Results of the passes of a fit, in their order.

    A fit sees its rows only through these results. If a process is stopped, the same fit in another
    process takes the results of the finished passes and continues there.

    Parameters
    ----------
    results : list
        Results of the passes that are finished.
    save : callable
        Called after each further pass.
    """

    def __init__(self, results: list[Any], save: Callable[[], None]) -> None:
        self.results = results
        self._save = save
        self._next = 0

    @property
    def has_next(self) -> bool:
        """Whether the result of the next pass is known."""
        return self._next < len(self.results)

    def following(self) -> Any:
        """The result of the next pass."""
        self._next += 1
        return deepcopy(self.results[self._next - 1])  # the caller adds to it in place

    def append(self, result: Any) -> None:
        """Keep the result of a pass that was just made."""
        self.results.append(deepcopy(result))
        self._next += 1
        self._save()


class RowsAgain(FeatureStream):
    """Validated rows whose features can be read any number of times.

    Features are kept as long as they take at most half of the available memory. Beyond that, all
    of them are dropped, and each pass computes them again: from the arrays that were added, or from
    `again`, an iterable over all rows, if the arrays come from files that can be read again.
    """

    def __init__(
        self,
        feature_map: Any,
        n_features: int,
        dtype: np.dtype,
        encode: Encode,
        again: Callable[[], Iterable[Batch]] | None = None,
    ) -> None:
        super().__init__(feature_map, n_features, 0, dtype, encode)
        self._again = again
        self._features: list[np.ndarray] | None = []
        self._n_gathered = 0  # blocks of features that are not small, or have been gathered
        self._batches: list[Batch] = []
        self._room_left = _SHARE_OF_MEMORY * (available_bytes() or np.inf)
        self.log: PassLog | None = None

    @property
    def keeps_features(self) -> bool:
        """Whether all features are in memory."""
        return self._features is not None

    def add(self, X: Any, y: np.ndarray, weights: np.ndarray | None, progress: Progress) -> None:
        """Take validated rows."""
        self._forget_results()
        weights = np.ones(X.shape[0]) if weights is None else weights
        self._room_left -= X.shape[0] * self.n_features * self.dtype.itemsize
        if self._room_left < 0:
            self._features = None
        if self._features is not None:
            self._features += features_of(self, X, views=self._again is None)
            if len(self._features) - self._n_gathered >= _GATHERED_ROWS:
                self._gather()
        progress.advance(X.shape[0])
        kept = X if self._again is None and self._room_left < np.inf else None
        self._batches.append((kept, y, weights))
        self.n_rows += X.shape[0]

    def targets_and_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Targets and weights of all rows, which are always kept."""
        _, y, weights = zip(*self._batches, strict=True)
        return np.concatenate(y), np.concatenate(weights)

    def features(self) -> Iterator[np.ndarray]:
        """Yield blocks of features of all rows, in their order."""
        if self._features is not None:
            self._gather()
            yield from self._features
            return
        batches = self._batches if self._again is None else self._again()
        yield from _gathered(Z for X, _, _ in batches for Z in features_of(self, X))

    def _gather(self) -> None:
        assert self._features is not None
        self._features[self._n_gathered :] = _gathered(self._features[self._n_gathered :])
        self._n_gathered = len(self._features)

    def collect(
        self, task: Task, *, features: bool = True, replaced: np.ndarray | None = None
    ) -> Any:
        """Run a task on all rows, and return its result; `replaced` are features to use instead."""
        if self.log is not None and self.log.has_next:
            return self.log.following()
        if not features:
            replaced = np.empty((self.n_rows, 0))
        found = task(self._blocks(self.features() if replaced is None else [replaced]))
        if self.log is not None:
            self.log.append(found)
        return found

    def _blocks(self, features: Iterable[np.ndarray]) -> Iterator[FeatureBlock]:
        y, weights = self.targets_and_weights()
        hashes, start = place_priority(np.arange(self.n_rows)), 0
        for Z in features:
            rows = slice(start, start + len(Z))
            yield FeatureBlock(Z, y[rows], weights[rows], hashes[rows])
            start = rows.stop


def _gathered(blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the same rows, with consecutive small blocks put together."""
    small: list[np.ndarray] = []
    n_rows = 0
    for Z in blocks:
        small.append(Z)
        n_rows += len(Z)
        if n_rows >= _GATHERED_ROWS:
            yield small[0] if len(small) == 1 else np.concatenate(small)
            small, n_rows = [], 0
    if small:
        yield np.concatenate(small)


def features_of(stream: Any, X: Any, *, views: bool = False) -> Iterator[np.ndarray]:
    """Yield blocks of the features of validated rows, in the precision of the stream.

    With `views`, blocks are views of rows that are features already. They must not change.
    """
    step = max(1, _BLOCK_BYTES // (stream.n_features * stream.dtype.itemsize))
    for rows in gen_batches(X.shape[0], step):
        if views and _are_features(stream, X):
            Z = X[rows]
        else:
            Z = np.empty((rows.stop - rows.start, stream.n_features), stream.dtype)
            fill_features(stream.feature_map, X[rows], Z)
        check_features(Z)
        yield Z


def _are_features(stream: Any, X: Any) -> bool:
    """Whether rows are features in the precision of the stream."""
    dense = isinstance(X, np.ndarray) and X.flags.c_contiguous
    return stream.feature_map is None and dense and X.dtype == stream.dtype
