"""Measures of predictions, each with a 95% interval for other rows from the same source.

Every measure is a mean, or a smooth function of means, over rows. The standard deviation of its
influence function, which has a value for each row, gives a normal interval. The error of a
classifier has Wilson's interval, because a normal interval has no width at an error of 0.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

QUANTILE = 1.959964  # of the normal distribution, for a 95% interval


class Measure(NamedTuple):
    """A number and its interval, which is None if it cannot be computed from the rows."""

    value: float
    interval: tuple[float, float] | None


def share(rows: np.ndarray) -> tuple[float, tuple[float, float]]:
    """Return the share of rows that are True, and Wilson's interval."""
    n, p, z = len(rows), float(np.mean(rows)), QUANTILE
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
    return p, (max(0.0, middle - half), min(1.0, middle + half))


def mean(values: np.ndarray) -> Measure:
    """Return the mean of a value for each row, such as the log-loss."""
    return _measure(float(np.mean(values)), values)


def root_mean_square(residuals: np.ndarray) -> Measure:
    """Return the root mean square."""
    squares = np.square(residuals)
    value = float(np.sqrt(np.mean(squares)))
    return _measure(value, squares / (2 * value)) if value else Measure(0.0, None)


def determination(residuals: np.ndarray, y: np.ndarray) -> Measure | None:
    """Return R2, the explained share of the variance of y, or None if y is constant."""
    squares, spread = np.square(residuals), np.square(y - y.mean())
    if not spread.any():
        return None
    left = float(np.mean(squares) / np.mean(spread))
    return _measure(1 - left, (left * spread - squares) / np.mean(spread))


def area_under_curve(scores: np.ndarray, y: np.ndarray) -> Measure | None:
    """Return the area under the ROC curve, averaged over classes.

    A class counts if some rows belong to it and others do not.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
    y : ndarray of int of shape (n_rows,)
        The class of each row. For two classes, the area of the second class is returned.
    """
    classes = [1] if scores.shape[1] == 2 else range(scores.shape[1])
    areas, influences = [], []
    for label in classes:
        positive = y == label
        if positive.any() and not positive.all():
            area, influence = _one_area(scores[:, label], positive)
            areas.append(area)
            influences.append(influence)
    if not areas:
        return None
    value, interval = _measure(float(np.mean(areas)), np.mean(influences, axis=0))
    return Measure(value, interval and (max(0.0, interval[0]), min(1.0, interval[1])))


def _one_area(scores: np.ndarray, positive: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the area and its influence function (DeLong, DeLong and Clarke-Pearson, 1988)."""
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(scores)
    placed = np.empty(len(scores))  # the share of rows of the other kind that are ranked well
    placed[positive] = (ranks[positive] - rankdata(scores[positive])) / n_negative
    placed[~positive] = 1 - (ranks[~positive] - rankdata(scores[~positive])) / n_positive
    area = float(placed[positive].mean())
    frequency = np.where(positive, n_positive, n_negative) / len(scores)
    return area, (placed - area) / frequency


def _measure(value: float, influence: np.ndarray) -> Measure:
    n = len(influence)
    if n < 2:
        return Measure(value, None)
    half = QUANTILE * float(np.std(influence, ddof=1)) / n**0.5
    return Measure(value, (value - half, value + half))


def confusion(y: np.ndarray, predicted: np.ndarray, n_classes: int) -> Any:
    """Count the rows of each class (rows) that were predicted as each class (columns)."""
    counts = np.bincount(y * n_classes + predicted, minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes)
