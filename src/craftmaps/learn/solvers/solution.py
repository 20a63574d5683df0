"""The result of a solver, and what every solver says about it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning

from craftmaps.learn.discriminant import Discriminant
from craftmaps.storage.expect import expect_array
from craftmaps.storage.packing import storable
from craftmaps.validation import warn

_FAR_SPREADS = 10.0  # standard deviations from the mean of the targets; predictions beyond warn


@storable
@dataclass
class Solution:
    """Coefficients and how they were found.

    Attributes
    ----------
    coef : ndarray of shape (n_features, n_targets)
    intercept : ndarray of shape (n_targets,)
    alpha, jitter, condition : float, or ndarray of shape (n_targets,)
        `jitter` is the largest number that had to be added to an entry of the diagonal. `condition`
        is the condition number of the system: LAPACK's estimate in the 1-norm for features scaled
        to equal lengths, or the ratio of the extreme eigenvalues if they are known. After conjugate
        gradients it is an estimate from a sample of the rows.
    alphas, scores : ndarray or None
        The alphas that were tried, if any, and the score of each.
    left_out : bool
        Whether the scores come from rows that were left out.
    discriminant : Discriminant or None
        Turns one-vs-rest predictions into scores of classes, if requested.
    mean_leverage : float or None
        The mean leverage of a row of weight 1 after conjugate gradients, which do not compute the
        leverages of single rows.
    n_passes : int
        Number of passes over the features.
    y_mean, y_spread : ndarray of shape (n_targets,) or None
        Means and standard deviations of the targets that were learned from, if they are known.
    own_class_weight : float
        Weight of the rows of a class in the target of that class.
    """

    coef: np.ndarray
    intercept: np.ndarray
    alpha: Any
    jitter: Any
    condition: Any
    alphas: np.ndarray | None = None
    scores: np.ndarray | None = None
    left_out: bool = False
    discriminant: Discriminant | None = None
    mean_leverage: float | None = None
    n_passes: int = 1
    y_mean: np.ndarray | None = None
    y_spread: np.ndarray | None = None
    own_class_weight: float = 1.0

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return the columns that are predicted for rows of features, in their precision."""
        return np.asarray(Z @ self.coef.astype(Z.dtype) + self.intercept.astype(Z.dtype))

    def _check_stored(self) -> None:
        expect_array("intercept", self.intercept, "f", (None,))
        expect_array("coef", self.coef, "f", (None, len(self.intercept)))
        for name, number in (("alpha", self.alpha), ("jitter", self.jitter)):
            expect_array(name, np.asarray(number), "fiu", np.shape(number)[:1])
        for name, known in (("y_mean", self.y_mean), ("y_spread", self.y_spread)):
            if known is not None:
                expect_array(name, known, "f", (len(self.intercept),))
        if self.discriminant is not None:
            expect_array("offset", self.discriminant.offset, "f", (len(self.intercept),))


def check_weight(weight: float) -> None:
    """Raise ValueError if the total weight of the rows is 0."""
    if not weight:
        raise ValueError("there is nothing to learn from: the weight of all rows together is zero.")


def intercept_of(
    z_mean: np.ndarray, y_mean: np.ndarray, coef: np.ndarray, fitted: bool
) -> np.ndarray:
    """Return the intercept that makes residuals zero on average, or zero without an intercept."""
    return np.asarray(y_mean - z_mean @ coef) if fitted else np.zeros(coef.shape[1])


def mean_and_spread(Y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means and standard deviations of the columns of Y."""
    mean = np.average(Y, axis=0, weights=weights)
    return mean, np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=weights))


def limits_around(solution: Solution, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the least and the largest prediction of each target that a regressor makes.

    These limits are ten standard deviations of the training targets from their mean. They are wider
    if `ends`, the least and the largest training target, are farther away.
    """
    if solution.y_mean is None or solution.y_spread is None:
        return None
    far = _FAR_SPREADS * solution.y_spread
    return np.minimum(ends[0], solution.y_mean - far), np.maximum(ends[1], solution.y_mean + far)


def limited(predicted: np.ndarray, limits: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    """Return predictions within the limits, and warn if some were beyond them."""
    if limits is None:
        return predicted
    kept = np.asarray(np.clip(predicted, *limits).astype(predicted.dtype))
    n_beyond = int((kept != predicted).any(axis=1).sum())
    if n_beyond:
        warn(
            f"the predictions of {n_beyond} of {len(predicted)} rows were limited to ten standard "
            f"deviations of the training targets from their mean: these rows are unlike the "
            f"training rows.",
            UserWarning,
        )
    return kept


def warn_of_far_predictions(predicted: np.ndarray, solution: Solution) -> None:
    """Warn if predictions are far outside the range of the training targets."""
    if solution.y_mean is None or solution.y_spread is None or not len(predicted):
        return
    spread = np.where(solution.y_spread > 0, solution.y_spread, np.inf)
    spreads = float((np.abs(predicted - solution.y_mean) / spread).max())
    if spreads > _FAR_SPREADS:
        warn(
            f"predictions lie up to {spreads:.3g} standard deviations of the training targets from "
            f"their mean: the rows are unlike the training rows, or alpha is too small there; "
            f"raise alpha, or use alpha='auto'.",
            UserWarning,
        )


def warn_of_jitter(jitter: float, alpha: Any) -> None:
    """Warn that the system was singular, so that jitter was added."""
    if jitter > 0:
        warn(
            f"the system at alpha={alpha} is singular to working precision; up to {jitter:.3g} was "
            f"added to its diagonal (attribute jitter_). Raise alpha, or remove features that "
            f"depend on others.",
            LinAlgWarning,
        )
