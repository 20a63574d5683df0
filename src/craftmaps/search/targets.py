"""The targets of a search, and scores of predictions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from craftmaps.search.prediction_error import interval_of_rmse, interval_of_share
from craftmaps.validation import check_choice, is_continuous

_MOST_DEVIATION = 20.0  # in variances; one row in 100,000 of a normal target has more
_FARTHEST = 1e12  # in variances; larger deviations overflow
_HALF_A_ROW = 0.5  # added to a count of errors, because 0 of a few rows is not an error of 0


def is_classification(task: str, y: np.ndarray) -> bool:
    """Whether the targets y are classes; with task="auto", their values decide."""
    check_choice("task", task, ("auto", "classification", "regression"))
    if task == "auto":
        return y.ndim == 1 and not is_continuous(y)
    return task == "classification"


@dataclass(frozen=True)
class Targets:
    """Columns that ridge models predict: standardized targets, or 1 and -1 for classes.

    Attributes
    ----------
    Y : ndarray of shape (n_rows, n_columns)
        Two classes have one column.
    n_classes : int
        0 for regression.
    """

    Y: np.ndarray
    n_classes: int

    @classmethod
    def of(cls, y: np.ndarray, classification: bool) -> "Targets":
        """Return the targets for labels or numbers y."""
        if not classification:
            Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
            largest = np.abs(Y).max(axis=0)
            Y = Y / np.where(largest > 0, largest, 1)  # squares of huge numbers would overflow
            spread = Y.std(axis=0)
            return cls((Y - Y.mean(axis=0)) / np.where(spread > 0, spread, 1), 0)
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) == 2:
            return cls(2.0 * labels.reshape(-1, 1) - 1, 2)
        return cls(2.0 * (labels.reshape(-1, 1) == np.arange(len(classes))) - 1, len(classes))

    def __len__(self) -> int:
        return len(self.Y)

    def rows(self, chosen: Any) -> "Targets":
        """Return the targets of some rows."""
        return Targets(self.Y[chosen], self.n_classes)

    @cached_property
    def labels(self) -> np.ndarray:
        """The class number of each row."""
        return self._labels_of(self.Y)

    @cached_property
    def _variance(self) -> float:
        return float(self.Y.var(axis=0).mean()) or 1.0

    @cached_property
    def _weights(self) -> np.ndarray:
        return weights_of_choice(self.Y)

    def wrong(self, predicted: np.ndarray) -> np.ndarray:
        """Return, for each row, whether its predicted class is wrong."""
        return np.asarray(self._labels_of(predicted) != self.labels)

    def error(self, predicted: np.ndarray) -> float:
        """Return the share of wrong classes, or the RMSE in standard deviations of the target."""
        if self.n_classes:
            return float(self.wrong(predicted).mean())
        return float(np.sqrt(self.losses(predicted).mean()))

    def score(self, predicted: np.ndarray) -> float:
        """Return the score that compares candidates, see `score_of`; less is better."""
        weights = None if self.n_classes else self._weights
        means = np.average(self.losses(predicted), axis=0, weights=weights)
        return float(score_of(means, len(self)))

    def losses(self, predicted: np.ndarray) -> np.ndarray:
        """Return the losses of each row, whose means give the error and the score.

        The last column is the squared error in variances. For classes, the first column is 1 if the
        predicted class is wrong.
        """
        squared = np.asarray(np.mean((self.Y - predicted) ** 2, axis=1) / self._variance)
        if not self.n_classes:
            return squared[:, None]
        return np.column_stack([self.wrong(predicted), squared])

    def interval(self, predicted: np.ndarray) -> tuple[float, float]:
        """Return an interval that contains the error on other rows with a probability of 90%."""
        if self.n_classes:
            return interval_of_share(self.wrong(predicted))
        return interval_of_rmse(np.mean((self.Y - predicted) ** 2, axis=1) / (self.Y.var() or 1.0))

    def _labels_of(self, Y: np.ndarray) -> np.ndarray:
        return (Y[:, 0] > 0).astype(np.int64) if Y.shape[1] == 1 else Y.argmax(axis=1)


def weights_of_choice(Y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return weights of rows in a choice among models, so that a few rows do not decide.

    If targets have heavy tails, one or two far targets can make up most of the mean squared error,
    and the best model for these rows is best by chance. The weight of a row with a squared
    deviation of more than 20 variances is lowered, as if it deviated by 20 variances. The model
    itself is fitted to all rows with their own weights.
    """
    squares = (Y - np.average(Y, axis=0, weights=weights)) ** 2
    variance = np.average(squares, axis=0, weights=weights)
    deviations = np.mean(squares / np.where(variance > 0, variance, 1), axis=1)
    deviations = np.fmin(deviations, _FARTHEST)  # so that some weight is left
    lowered = np.minimum(1.0, _MOST_DEVIATION / np.maximum(deviations, 1.0))
    return np.asarray(lowered if weights is None else lowered * weights)


def score_of(means: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the scores of candidates for the means of their losses, which are in the last axis.

    For numbers, it is the root mean squared error. For classes, it is the root of the share of
    errors, which is coarse, times the mean squared error, which is not the goal itself.
    """
    if means.shape[-1] == 1:
        return np.asarray(np.sqrt(means[..., 0]))
    share = means[..., 0] + _HALF_A_ROW / n_rows
    return np.asarray(np.sqrt(share * means[..., 1]))
