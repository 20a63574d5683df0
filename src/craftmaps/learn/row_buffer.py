"""A buffer of rows of features that are not in the sums of a stream yet."""

from copy import copy
from typing import Any, Self

import numpy as np

from craftmaps.learn.removal import SAME_WEIGHT, places_of

_ARRAYS = ("Z", "y", "weights", "index")


class RowBuffer:
    """Features, targets, weights and places in the stream of up to `capacity` rows.

    Parameters
    ----------
    capacity : int
    n_features : int
    dtype : dtype
        Type of the features.

    Attributes
    ----------
    filled : int
        Number of rows in the buffer. They come first in each array.
    Z, y, weights, index : ndarray with `capacity` rows
        y is empty until the first rows define its shape and type.
    shared : bool
        Whether another buffer uses the same arrays. Rows may be appended to shared arrays, because
        each buffer reads only its first `filled` rows. Any other change makes a copy.
    """

    def __init__(self, capacity: int, n_features: int, dtype: np.dtype) -> None:
        self.Z = np.empty((capacity, n_features), dtype)
        self.y = np.empty(0)
        self.weights = np.empty(capacity)
        self.index = np.empty(capacity, np.int64)
        self.filled = 0
        self.shared = False

    @property
    def capacity(self) -> int:
        return len(self.Z)

    @property
    def is_full(self) -> bool:
        return self.filled == self.capacity

    def used(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return features, targets, weights and places of the rows in the buffer."""
        rows = slice(self.filled)
        return self.Z[rows], self.y[rows], self.weights[rows], self.index[rows]

    def draft(self) -> Self:
        """Return a copy that shares its arrays with this buffer."""
        draft = copy(self)
        draft.shared = True
        return draft

    def claim(self, n_rows: int, y: np.ndarray) -> slice:
        """Return the next free rows, at most `n_rows`, for targets like `y`."""
        if not len(self.y):
            self.y = np.empty((self.capacity, *y.shape[1:]), y.dtype)
        return slice(self.filled, min(self.capacity, self.filled + n_rows))

    def append(self, other: "RowBuffer", start: int) -> int:
        """Append rows of another buffer from `start` on, and return the first that did not fit."""
        rows = self.claim(other.filled - start, other.y)
        stop = start + rows.stop - rows.start
        for name in _ARRAYS:
            getattr(self, name)[rows] = getattr(other, name)[start:stop]
        self.filled = rows.stop
        return int(stop)

    def fade(self, factor: float) -> None:
        """Multiply the weights of the rows by a factor."""
        self.weights = self.weights.copy()
        self.weights[: self.filled] *= factor

    def weigh(self, factors: np.ndarray) -> None:
        """Multiply the weight of each row by the factor of its class."""
        _, y, weights, _ = self.used()
        self.weights = self.weights.copy()
        self.weights[: self.filled] = weights * factors[y.astype(np.int64)]

    def relabel(self, new_labels: np.ndarray) -> None:
        """Replace each class index c by `new_labels[c]`."""
        if self.filled:
            self.y = self.y.copy()
            self.y[: self.filled] = new_labels[self.y[: self.filled]]

    def remove(self, Z: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        """Remove rows, or raise ValueError and change nothing."""
        kept_Z, kept_y, kept_weights, _ = self.used()
        places = places_of(Z, y, kept_Z, kept_y)
        if (places < 0).any():
            raise ValueError(
                f"row {int(np.argmax(places < 0))} of those to forget was never added, or has been "
                f"removed already. Nothing was changed."
            )
        rest = kept_weights.copy()
        rest[places] -= weights
        if rest.min() < -SAME_WEIGHT or not rest.max() > SAME_WEIGHT:
            raise ValueError(
                "the rows to forget have more weight than they were added with, or no row would be "
                "left. Nothing was changed."
            )
        stay = np.flatnonzero(rest > SAME_WEIGHT)
        for name in _ARRAYS:
            array = getattr(self, name).copy()
            array[: len(stay)] = array[stay]
            setattr(self, name, array)
        self.weights[: len(stay)] = rest[stay]
        self.shared = False
        self.filled = len(stay)

    def clear(self) -> None:
        """Remove all rows; shared arrays are left to the other buffer."""
        if self.shared:
            for name in _ARRAYS:
                setattr(self, name, np.empty_like(getattr(self, name)))
            self.shared = False
        self.filled = 0

    def to_state(self) -> dict[str, Any]:
        """Return what a stream stores of its buffer; the unused rows are left out."""
        arrays = {f"_{name}": getattr(self, name)[: self.filled] for name in _ARRAYS}
        return arrays | {"_filled": self.filled, "_capacity": self.capacity}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the buffer that `to_state` stored, and remove its entries from the state."""
        buffer = object.__new__(cls)
        buffer.filled, buffer.shared = state.pop("_filled"), False
        capacity = state.pop("_capacity")
        for name in _ARRAYS:
            used = state.pop(f"_{name}")
            if name == "y" and not len(used):
                buffer.y = used
                continue  # the next rows define its shape
            whole = np.empty((capacity, *used.shape[1:]), used.dtype)
            whole[: len(used)] = used
            setattr(buffer, name, whole)
        return buffer
