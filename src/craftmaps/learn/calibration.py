"""Probabilities from scores, by a temperature that fits leave-one-out predictions.

A small uniform sample of the rows of the pass is kept. Ridge regression knows what it would predict
for each of them had it been left out (its residual divided by 1 - leverage), so no row must be held
back from learning. The temperature t of softmax(t s) minimizes the log-loss of those predictions.
The same predictions choose alpha.
"""

from typing import Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from craftmaps.learn.map_rows import place_priority
from craftmaps.learn.removal import SAME_WEIGHT, places_of
from craftmaps.storage.expect import expect, expect_array
from craftmaps.storage.packing import storable

_LOG_RANGE = 8.0  # temperatures between e^-8 and e^8 times the inverse spread of scores are tried


@storable
class RowSample:
    """A uniform sample of at most `size` rows of a stream, in any blocks; samples can be merged.

    Each row has a priority that depends only on its place in the stream, and the rows with the
    lowest priorities stay. `labels` are classes, or the targets of a regression. With a decay below
    1, rows stay with probabilities proportional to their fading weights (Efraimidis and Spirakis,
    "Weighted random sampling with a reservoir", 2006).
    """

    decay: float = 1.0
    size: int
    Z: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    _priority: np.ndarray

    def __init__(self, size: int, n_features: int, dtype: np.dtype, decay: float = 1.0) -> None:
        self.size = size
        self.decay = decay
        self.Z = np.empty((0, n_features), dtype)
        self.labels = np.empty(0, np.int64)
        self.weights = np.empty(0)
        self._priority = np.empty(0, np.uint64)

    def _check_stored(self) -> None:
        n_rows = len(self._priority)
        expect(n_rows <= self.size, "no more rows than the size of the sample")
        expect_array("Z", self.Z, "f", (n_rows, None))
        expect(self.labels.dtype.kind in "iuf", "labels of numbers")
        expect(self.labels.shape[:1] == (n_rows,) and self.labels.ndim <= 2, "a label for each row")
        expect_array("weights", self.weights, "f", (n_rows,))
        expect(bool((self.weights >= 0).all()), "weights that are not negative")
        expect_array("priority", self._priority, "u" if self.decay == 1 else "uf", (n_rows,))

    def add(
        self, Z: np.ndarray, labels: np.ndarray, weights: np.ndarray, index: np.ndarray
    ) -> None:
        """Consider rows whose places in the stream are `index`."""
        if not self.size:
            return
        priority = self._priorities(index)
        best = np.argsort(priority, kind="stable")[: self.size]
        if len(self._priority) == self.size:
            best = best[priority[best] < self._priority[-1]]
        if len(best):
            self._keep(Z[best], labels[best], weights[best], priority[best])

    def merge(self, other: "RowSample") -> Self:
        """Consider the rows of another sample of another stream."""
        self._keep(other.Z, other.labels, other.weights, other._priority)
        return self

    def remove(self, Z: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> None:
        """Remove those of the given rows that are in the sample."""
        places = places_of(Z, labels, self.Z, self.labels)
        rest = self.weights.copy()
        rest[places[places >= 0]] -= weights[places >= 0]
        stay = rest > SAME_WEIGHT
        self.Z, self.labels, self.weights = self.Z[stay], self.labels[stay], rest[stay]
        self._priority = self._priority[stay]

    def _priorities(self, index: np.ndarray) -> np.ndarray:
        priority = place_priority(index)
        if self.decay == 1:
            return priority
        uniform = (priority.astype(np.float64) + 0.5) / 2.0**64
        return np.asarray(np.log(-np.log(uniform)) + index * np.log(self.decay))

    def _keep(
        self, Z: np.ndarray, labels: np.ndarray, weights: np.ndarray, priority: np.ndarray
    ) -> None:
        if not len(priority):
            return
        every = np.concatenate([self._priority, priority])
        best = np.argsort(every, kind="stable")[: self.size]
        self.Z = np.concatenate([self.Z, Z])[best]
        labels = np.concatenate([self.labels, labels]) if len(self.labels) else labels
        self.labels = labels[best]
        self.weights = np.concatenate([self.weights, weights])[best]
        self._priority = every[best]


def temperature(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, share_of_rules: float = 0.0
) -> float:
    """Return the t that minimizes the log-loss of softmax(t scores).

    Each label is given one chance in n + 2 of being any class (n is the total weight), so that a
    few rows without a mistake do not make the classifier certain. That is the expected share of
    mistakes after n rows without one, if all shares are equally likely at first. If classes follow
    rules without any mistake in a given share of all tables, the chance falls like 1 / n^2.
    """
    total = float(weights.sum())
    centred = scores - scores.mean(axis=1, keepdims=True)
    spread = np.sqrt(weights @ np.square(centred).mean(axis=1) / total) if total else 0.0
    if not spread:
        return 1.0
    slab = (1 - share_of_rules) / (total + 1)  # probability that other tables show no mistake
    share, doubt = weights / total, slab / (slab + share_of_rules) / (total + 2)
    wanted = (1 - doubt) * centred[np.arange(len(labels)), labels]  # centred scores have mean 0

    def slope(log_t: float) -> float:
        """d loss / dt, which increases with t."""
        p = softmax(np.exp(log_t) / spread * centred, axis=1)
        return float(share @ ((p * centred).sum(axis=1) - wanted))

    ends = (-_LOG_RANGE, _LOG_RANGE)
    if slope(ends[0]) >= 0 or slope(ends[1]) <= 0:
        best = ends[0] if slope(ends[0]) >= 0 else ends[1]
    else:
        best = brentq(slope, *ends, xtol=1e-13)
    return float(np.exp(best) / spread)


def brier_score(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Mean squared error of the probabilities softmax(t scores) at the best temperature t.

    The Brier score ranks models by their errors with less noise than a count of errors, and no
    single row can dominate it.
    """
    wrong = softmax(temperature(scores, labels, weights) * scores, axis=1)
    wrong[np.arange(len(labels)), labels] -= 1.0
    return float(np.average(np.square(wrong).sum(axis=1), weights=weights))
