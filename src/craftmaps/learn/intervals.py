"""Conformal prediction: how far off a model is for rows that it has not learned from.

The scores of m such rows bound the score of the next row. If rows are exchangeable, the next score
is at most the k-th smallest of the m scores, k = ceil(coverage (m + 1)), with a probability of at
least `coverage`. Ridge regression can compute what it would have predicted for each row without
learning from that row, so no rows are held back.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftmaps.storage.expect import expect, expect_array
from craftmaps.storage.packing import storable
from craftmaps.validation import is_number


@storable
@dataclass
class Conformal:
    """Scores of rows that the model was not fitted on, one column for each target.

    Attributes
    ----------
    scores : ndarray of shape (n_rows, n_targets)
        A larger score means a worse prediction.
    weights : ndarray of shape (n_rows,)
    studentized : bool
        Whether the scores were divided by sqrt(1 + leverage of the row).
    """

    scores: np.ndarray
    weights: np.ndarray
    studentized: bool = False

    def bound(self, coverage: float) -> np.ndarray:
        """The value for each target that a new score exceeds with a probability of 1 - coverage.

        It is infinite if there are too few rows to tell. Rows count by their weights, and the new
        row by the mean weight.
        """
        check_coverage(coverage)
        known = self.weights > 0
        weights, scores = self.weights[known], np.abs(self.scores[known])
        if not len(weights):
            return np.full(self.scores.shape[1], np.inf)
        wanted = coverage * (weights.sum() + weights.mean())
        bounds = np.full(scores.shape[1], np.inf)
        for target, column in enumerate(scores.T):
            order = np.argsort(column, kind="stable")
            reached = np.cumsum(weights[order]) >= wanted * (1 - 1e-12)
            if reached.any():
                bounds[target] = column[order[np.argmax(reached)]]
        return bounds

    def deviation(self) -> np.ndarray:
        """The root mean square of the scores, per target."""
        if not self.weights.any():
            raise ValueError(
                "the noise of the targets is not known, because all rows that were kept to judge "
                "it weigh nothing; learn from rows with positive weights first."
            )
        return np.sqrt(np.average(np.square(self.scores), axis=0, weights=self.weights))

    def _check_stored(self) -> None:
        expect_array("scores", self.scores, "f", (len(self.weights), None))
        expect(self.scores.shape[1] > 0, "scores of at least one target")
        expect_array("weights", self.weights, "f", (None,))
        expect(bool((self.weights >= 0).all()), "weights that are not negative")


def check_coverage(coverage: Any) -> None:
    """Raise ValueError unless coverage is between 0 and 1."""
    if not is_number(coverage) or not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}.")


def set_scores(probabilities: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Conformal:
    """Return the scores of a classifier: 1 minus the probability of the true class."""
    right = probabilities[np.arange(len(labels)), labels]
    return Conformal((1.0 - right)[:, None].astype(np.float64), weights.astype(np.float64))


def sets(probabilities: np.ndarray, bound: float) -> np.ndarray:
    """Mark the classes in the set of each row: the most probable class, and all within `bound`."""
    chosen = 1.0 - probabilities <= bound
    chosen[np.arange(len(chosen)), probabilities.argmax(axis=1)] = True
    return np.asarray(chosen)
