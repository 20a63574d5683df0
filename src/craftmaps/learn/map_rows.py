"""The rows that a feature map is fitted on: a uniform sample that depends on places alone.

A row is in the sample because of its place in the stream, not because of its values or of how the
stream is cut into blocks. So an array, a folder of files and a cluster choose the same rows, and a
file that is sorted by its target is sampled as evenly as a shuffled one.
"""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.frozen import FrozenEstimator

from craftmaps.tables.table import Table
from craftmaps.tables.table import stacked as stacked_tables
from craftmaps.validation import is_integer

DEFAULT_MAP_ROWS = 10_000
_ROWS_PER_COMPONENT = 2  # at least this many rows for a map with a parameter n_components


def needs_rows(feature_map: Any) -> bool:
    """Whether a map must be fitted; None and a FrozenEstimator are not."""
    return not (feature_map is None or isinstance(feature_map, FrozenEstimator))


def sample_size(feature_map: Any, map_rows: int | None) -> int | None:
    """Return the largest number of rows that the map is fitted on; None stands for all rows.

    A map with `n_components` gets at least two rows for each of them, because a map that learns
    from data (landmarks, principal components) cannot make more components than it has rows.
    """
    if map_rows is None:
        return None
    n_components: Any = getattr(feature_map, "n_components", None)
    return max(map_rows, _ROWS_PER_COMPONENT * n_components if is_integer(n_components) else 0)


def sampled(X: Any, y: np.ndarray, size: int | None) -> tuple[Any, np.ndarray]:
    """Return a uniform sample of rows and their targets in order, or all if there are few."""
    if size is None or X.shape[0] <= size:
        return X, y
    places = sample_places(X.shape[0], size)
    return X[places], y[places]


def sample_places(n_rows: int, size: int) -> np.ndarray:
    """Return the sorted places of a uniform sample of `size` rows, or of all if there are fewer.

    Examples
    --------
    >>> sample_places(n_rows=1_000_000, size=3)
    array([     0,  70274, 573549])
    >>> sample_places(n_rows=3, size=10)
    array([0, 1, 2])
    """
    if n_rows <= size:
        return np.arange(n_rows)
    priority = place_priority(np.arange(n_rows))
    return np.sort(np.argpartition(priority, size)[:size])


def place_priority(places: np.ndarray) -> np.ndarray:
    """Return a well mixed 64-bit number for each place (the finalizer of splitmix64)."""
    x = places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


class StreamSample:
    """Collects the rows that `sample_places` would name, from a stream of unknown length.

    It holds at most one block of rows and twice as many rows as it returns.
    """

    def __init__(self, size: int | None) -> None:
        self._size = size
        self._n_rows = 0
        self._parts: list[tuple[np.ndarray, Any, np.ndarray]] = []  # places, X, y
        self._held = 0
        self._limit = np.uint64(np.iinfo(np.uint64).max)  # the largest priority that can stay

    def add(self, X: Any, y: np.ndarray) -> None:
        """Consider the next rows of the stream."""
        places = np.arange(self._n_rows, self._n_rows + X.shape[0])
        self._n_rows += X.shape[0]
        if self._size is not None:
            low = np.flatnonzero(place_priority(places) <= self._limit)
            places, X, y = places[low], X[low], y[low]
        if len(places):
            self._parts.append((places, X, y))
            self._held += len(places)
        if self._size is not None and self._held > 2 * self._size:
            self._shrink()

    def rows(self) -> tuple[Any, np.ndarray]:
        """Return the rows of the sample and their targets, in the order of the stream."""
        self._shrink()
        ((_, X, y),) = self._parts
        return X, y

    def _shrink(self) -> None:
        every_place, every_X, every_y = zip(*self._parts, strict=True)
        places, X, y = np.concatenate(every_place), stacked(every_X), np.concatenate(every_y)
        if self._size is not None and len(places) > self._size:
            priority = place_priority(places)
            best = np.sort(np.argpartition(priority, self._size)[: self._size])
            places, X, y, self._limit = places[best], X[best], y[best], priority[best].max()
        self._parts, self._held = [(places, X, y)], len(places)


def stacked(blocks: Any) -> Any:
    """Stack blocks of rows, which may be dense, sparse (some or all of them) or tables."""
    if len(blocks) == 1:
        return blocks[0]
    if isinstance(blocks[0], Table):
        return stacked_tables(blocks)
    if any(map(sparse.issparse, blocks)):
        return sparse.vstack(blocks, format="csr")
    return np.concatenate(blocks)
