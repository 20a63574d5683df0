"""Detect rows that differ from the learned rows: as a whole, or one by one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.optimize import brentq
from scipy.stats import norm

from craftmaps.learn import KernelPCA, NormalEquations
from craftmaps.learn.base import Learner
from craftmaps.learn.solvers.cholesky import Cholesky
from craftmaps.learn.uncertainty import Posterior
from craftmaps.validation import is_number

_NEAR_MEAN = 1e-4  # so close to the mean, the saddle point formula is nearly 0 / 0
_ALPHA = 0.01  # penalty, relative to the mean eigenvalue of H


@dataclass(frozen=True)
class Drift:
    """The result of a two-sample test.

    Attributes
    ----------
    statistic : float
        The squared distance of the two means of features: the squared maximum mean discrepancy.
    expected : float
        Its mean if both samples come from one distribution.
    p_value : float
        The probability of a statistic at least this large in that case.
    n_reference, n_rows : float
        The weights of the two samples.
    """

    statistic: float
    expected: float
    p_value: float
    n_reference: float
    n_rows: float

    def __str__(self) -> str:
        return (
            f"MMD^2 {self.statistic:.3g}, expected {self.expected:.3g} without drift, "
            f"p-value {self.p_value:.3g} ({self.n_reference:.6g} and {self.n_rows:.6g} rows)"
        )


def drift(reference: Any, rows: Any, feature_map: Any = None) -> Drift:
    """Test whether rows come from the same distribution as the rows of a learner.

    The statistic is the squared maximum mean discrepancy |m_1 - m_2|^2 between the means of the
    features. Without drift, it is distributed as a sum of chi-squares, weighted by the eigenvalues
    of the covariance of the features times 1 / n_1 + 1 / n_2. The tail is computed by a saddle
    point approximation (Kuonen 1999). The test needs the sums of the reference, but not its rows.

    Parameters
    ----------
    reference : fitted KernelPCA, OnePassRegressor or OnePassClassifier, or array of rows
        A learner that has its sums, or an array together with `feature_map`.
    rows : array of rows, or a learner
        New rows, or a learner with the same map that has seen the new rows. To make one, start with
        `reference.emptied()`.
    feature_map : transformer, default=None
        The map, if the reference is an array. A clone is fitted to the reference.

    Returns
    -------
    Drift

    Notes
    -----
    With E features, the sums take 8 E^2 bytes, and the test takes 4/3 E^3 operations. The test can
    detect only differences that the kernel distinguishes.

    References
    ----------
    A. Gretton et al., "A Kernel Two-Sample Test", JMLR 2012. D. Kuonen, "Saddlepoint approximations
    for distributions of quadratic forms in normal variables", Biometrika 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import FourierFeatures, Gaussian, KernelPCA
    >>> from craftmaps.diagnose import drift
    >>> rng = np.random.default_rng(0)
    >>> seen = KernelPCA(FourierFeatures(Gaussian(0.2), 128, random_state=0))
    >>> seen = seen.fit(rng.standard_normal((2000, 3)))
    >>> drift(seen, rng.standard_normal((200, 3))).p_value > 0.01
    True
    >>> drift(seen, rng.standard_normal((200, 3)) * 1.3).p_value < 0.01
    True
    """
    learner = _learner(reference, feature_map)
    first, second = _sums(learner), _other_sums(learner, rows)
    if min(first.weight, second.weight) <= 1:
        raise ValueError("a test needs at least two rows of each sample.")
    scale = 1 / first.weight + 1 / second.weight
    covariance = (first._lower + second._lower) / (first.weight + second.weight - 2)
    values = scale * np.maximum(eigvalsh(covariance, lower=True, overwrite_a=True), 0.0)
    statistic = float(np.square(first.z_mean - second.z_mean).sum())
    return Drift(
        statistic,
        float(values.sum()),
        chi_square_tail(values, statistic),
        first.weight,
        second.weight,
    )


def anomaly_score(reference: Any, rows: Any, *, feature_map: Any = None, alpha: Any = None) -> Any:
    """Compute an anomaly score for each row: its leverage in a learner.

    The score is 1 / n + (z - m)^T (H + alpha I)^-1 (z - m) for features z, where the mean m and the
    sums H come from the rows of the reference. It is large where the reference has few rows.

    Parameters
    ----------
    reference : fitted KernelPCA, OnePassRegressor or OnePassClassifier, or array of rows
        As in `drift`.
    rows : {array-like, sparse matrix} of shape (n_samples, n_features)
    feature_map : transformer, default=None
        The map, if the reference is an array.
    alpha : float, default=None
        The penalty. None uses a hundredth of the mean eigenvalue of H.

    Returns
    -------
    ndarray of shape (n_samples,)
        Larger scores are more unusual.

    Notes
    -----
    This is the inverse Christoffel function of the kernel. It takes E^3 / 3 operations for E
    features once, and 2 E^2 for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import FourierFeatures, Gaussian
    >>> from craftmaps.diagnose import anomaly_score
    >>> X = np.random.default_rng(0).standard_normal((1000, 2))
    >>> feature_map = FourierFeatures(Gaussian(0.5), 128, random_state=0)
    >>> near, far = anomaly_score(X, [[0.0, 0.0], [4.0, 4.0]], feature_map=feature_map)
    >>> bool(far > 10 * near)
    True
    """
    learner = _learner(reference, feature_map)
    sums = _sums(learner)
    if alpha is None:
        alpha = _ALPHA * float(sums._lower.diagonal().mean()) or 1.0
    if not is_number(alpha) or alpha <= 0:
        raise ValueError(f"alpha must be a number above 0, got {alpha!r}.")
    root = Cholesky(sums, fit_intercept=True).root(float(alpha))
    posterior = Posterior(sums.z_mean, root, 0.0, 1 / sums.weight)
    return np.concatenate([posterior.leverages(Z) for Z in learner._features(rows)])


def chi_square_tail(weights: np.ndarray, value: float) -> float:
    """P(sum_i weights_i chi^2_1 > value), by the saddle point of Lugannani and Rice.

    Examples
    --------
    >>> from craftmaps.diagnose.drift import chi_square_tail
    >>> round(chi_square_tail(np.ones(10), 18.307), 3)
    0.05
    """
    weights = weights[weights > 0]
    if not len(weights) or value <= 0:
        return float(value <= 0)
    largest = float(weights.max())

    def slope(t: float) -> float:
        return float(np.sum(weights / (1 - 2 * t * weights)) - value)

    ends = -len(weights) / (2 * value), (1 - largest / value) / (2 * largest)
    t = ends[1] if slope(ends[1]) <= 0 else brentq(slope, *ends, xtol=1e-14 / largest, rtol=1e-14)
    scaled = weights / (1 - 2 * t * weights)
    cumulant = -0.5 * np.log1p(-2 * t * weights).sum()
    w = np.sign(t) * np.sqrt(max(2 * (t * value - cumulant), 0.0))
    v = t * np.sqrt(2 * np.square(scaled).sum())
    if abs(w) < _NEAR_MEAN:
        skewness = 8 * np.sum(weights**3) / (2 * np.sum(weights**2)) ** 1.5
        return float(0.5 - skewness / (6 * np.sqrt(2 * np.pi)))
    return float(norm.sf(w + np.log(v / w) / w).clip(0.0, 1.0))


def _learner(reference: Any, feature_map: Any) -> Any:
    if isinstance(reference, Learner):
        if feature_map is not None:
            raise ValueError("feature_map is for an array of rows; a learner has its own.")
        return reference
    if feature_map is None:
        raise ValueError(
            f"reference must be a fitted learner, or rows with a feature_map, got a "
            f"{type(reference).__name__}."
        )
    return KernelPCA(feature_map).partial_fit(reference)


def _sums(learner: Any) -> NormalEquations:
    stream = learner._begun()
    stream.check_open()
    total: NormalEquations = stream.total()
    return total


def _other_sums(learner: Any, rows: Any) -> NormalEquations:
    """Return the sums of a learner with the same map, or of rows."""
    if isinstance(rows, Learner):
        if not learner._has_features_of(rows):
            raise ValueError(
                "the two learners have different feature maps; begin the second by emptied() of "
                "the first."
            )
        return _sums(rows)
    sums = NormalEquations()
    for Z in learner._features(rows):
        sums.update(Z, np.empty((len(Z), 0)), overwrite=True)
    return sums
