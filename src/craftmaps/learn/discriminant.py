"""Linear discriminant analysis of one-vs-rest predictions."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert

from craftmaps.storage.expect import expect_array
from craftmaps.storage.packing import storable

_NO_SHARE = 1e-12  # a class with a smaller share of the rows was never seen, up to rounding


@storable
@dataclass(frozen=True)
class Discriminant:
    """Linear discriminants among one-vs-rest predictions f: scores f A + b.

    Taking the largest prediction fails when a class lies between two others that mask it, which is
    more common with many classes. Linear discriminant analysis instead finds the class whose mean
    prediction is nearest, relative to the spread within classes (Hastie, Tibshirani and Buja,
    "Flexible Discriminant Analysis by Optimal Scoring", 1994).
    """

    matrix: np.ndarray
    offset: np.ndarray

    @classmethod
    def learn(
        cls,
        share: np.ndarray,
        mean: np.ndarray,
        sums: np.ndarray,
        covariance: np.ndarray,
        eps: float,
        same_sum: bool,
    ) -> "Discriminant":
        """Learn the discriminants from moments of the predictions.

        Parameters
        ----------
        share : ndarray of shape (n_classes,)
            Share of each class among the rows. A class without rows gets a score below the mean of
            the other classes, so it never wins.
        mean : ndarray of shape (n_classes,)
            Mean prediction.
        sums : ndarray of shape (n_classes, n_classes)
            Row k is the sum of (prediction - mean) over class k, divided by the number of all rows.
        covariance : ndarray of shape (n_classes, n_classes)
            Covariance of the predictions.
        eps : float
            Relative precision of the moments.
        same_sum : bool
            Whether the predictions of each row have the same sum, as the targets do. The sum then
            carries no class information, only rounding noise that inverting the covariance would
            amplify, so that direction is projected out.
        """
        seen = share > _NO_SHARE
        deviations = sums / np.where(seen, share, 1.0)[:, None]
        within = covariance - (deviations.T * share) @ deviations
        basis = helmert(len(share), full=not same_sum).T
        values, vectors = np.linalg.eigh(basis.T @ within @ basis)
        vectors = basis @ vectors
        least = 10 * eps * np.trace(covariance) or 1.0  # a smaller spread is rounding noise
        matrix = vectors / np.maximum(values, least) @ (vectors.T @ deviations.T)
        distance = np.einsum("kj,jk->k", deviations, matrix) / 2
        offset = np.log(np.where(seen, share, 1.0)) - distance - mean @ matrix
        matrix[:, ~seen] = matrix[:, seen].mean(axis=1, keepdims=True)
        offset[~seen] = offset[seen].mean() + np.log(_NO_SHARE)
        return cls(matrix, offset)

    @classmethod
    def of_rows(
        cls, predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray, same_sum: bool
    ) -> "Discriminant":
        """Learn the discriminants from predictions for rows, their classes and weights."""
        member = (labels[:, None] == np.arange(predicted.shape[1])) * weights[:, None]
        total, eps = weights.sum(), float(np.finfo(predicted.dtype).eps)
        share, mean = member.sum(axis=0) / total, weights @ predicted / total
        centred = predicted - mean
        sums, squares = member.T @ centred, (centred.T * weights) @ centred
        return cls.learn(share, mean, sums / total, squares / total, eps, same_sum)

    def _check_stored(self) -> None:
        expect_array("matrix", self.matrix, "f", (len(self.offset), len(self.offset)))
        expect_array("offset", self.offset, "f", (None,))

    def scores(self, predicted: np.ndarray) -> np.ndarray:
        """Compute the log-probabilities of Gaussian classes, up to a constant for each row."""
        matrix, offset = (a.astype(predicted.dtype) for a in (self.matrix, self.offset))
        return np.asarray(predicted @ matrix + offset)
