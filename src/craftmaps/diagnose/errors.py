"""The error of the inner products of features as approximations of a kernel."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.utils import check_array

from craftmaps.maps.wrapped import WrappedMap
from craftmaps.plots import finish, new_figure
from craftmaps.validation import check_choice, generator

METRICS = ("nrmse", "nrmse-range", "frobenius", "max", "spectral", "relative")
_MAX_PLOTTED_ENTRIES = 4000


@dataclass(frozen=True)
class GramError:
    """Error of an approximate Gram matrix, averaged over seeds.

    Attributes
    ----------
    metric : str
        Name of the metric.
    value : float
        Mean over seeds.
    low, high : float
        Confidence interval for the mean (Student's t), nan for a single seed.
    values : ndarray
        One error for each seed.
    exact, approximate : ndarray
        Some entries of the Gram matrix and their approximations by the last map, for `plot`.
    """

    metric: str
    value: float
    low: float
    high: float
    values: np.ndarray
    exact: np.ndarray
    approximate: np.ndarray

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if np.isnan(self.low):
            return f"{self.metric} {self.value:.4g}"
        return (
            f"{self.metric} {self.value:.4g} ({self.low:.4g} to {self.high:.4g}, "
            f"{len(self.values)} seeds)"
        )

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot approximate against exact kernel values; returns the figure."""
        figure, axes = new_figure(5.0, 4.6)
        axes.plot(self.exact, self.approximate, ".", markersize=2, alpha=0.4)
        ends = [self.exact.min(), self.exact.max()]
        axes.plot(ends, ends, color="0.2", linewidth=1, label="no error")
        axes.set_xlabel("kernel")
        axes.set_ylabel("inner product of features")
        axes.set_title(str(self), fontsize="medium")
        axes.legend(frameon=False, loc="upper left")
        return finish(figure, path)


def gram_error(
    feature_map: Any,
    X: Any,
    metric: str = "nrmse",
    *,
    kernel: Any = None,
    n_rows: int = 1000,
    seeds: int | Iterable[int] | None = 5,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> GramError:
    """Measure the error of Z Z^T as an approximation of K on a sample of rows.

    Parameters
    ----------
    feature_map : transformer
        A map of this package, or any transformer if `kernel` is given.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows to draw the sample from.
    metric : str, default="nrmse"
        The measure of the difference A = Z Z^T - K:

        - "nrmse": root mean square of A over the mean of K (CRAFT Figure 5);
        - "nrmse-range": root mean square of A over max K - min K;
        - "frobenius": |A|_F / |K|_F;
        - "max": the largest |A_ij|, as in bounds that hold for all pairs;
        - "spectral": |A|_2 / |K|_2;
        - "relative": the mean of |A_ij| / |K_ij| over entries that are not 0.
    kernel : kernel, default=None
        The exact kernel. None uses the attribute `kernel_` of the fitted map.
    n_rows : int, default=1000
        Size of the sample.
    seeds : int, sequence of ints or None, default=5
        A clone of the map is fitted with each seed as its `random_state`. An int n means the seeds
        0 to n - 1. None uses the given map, which must be fitted.
    confidence : float, default=0.95
        Coverage of the confidence interval over seeds.
    random_state : int, RandomState instance, Generator or None, default=0
        Seed for drawing the sample.

    Returns
    -------
    GramError
        The mean over seeds is `float(result)`.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import CraftMap, Polynomial, RandomMaclaurin
    >>> from craftmaps.diagnose import gram_error
    >>> X = np.random.default_rng(0).random((100, 20))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> plain = gram_error(RandomMaclaurin(Polynomial(7), 512), X, "frobenius")
    >>> compact = gram_error(CraftMap(Polynomial(7), 512), X, "frobenius")
    >>> bool(compact.high < plain.low)
    True
    """
    check_choice("metric", metric, METRICS)
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    rows = sample_rows(X, n_rows, random_state)
    errors = []
    for fitted in fitted_maps(feature_map, X, seeds):
        K = exact_gram(fitted, rows, kernel)
        Z = dense(fitted.transform(rows))
        approximate = Z @ Z.T
        errors.append(measure(approximate, K, metric))
    low, high = interval(errors, confidence)
    some = generator(random_state).choice(K.size, min(K.size, _MAX_PLOTTED_ENTRIES), replace=False)
    return GramError(
        metric,
        float(np.mean(errors)),
        low,
        high,
        np.array(errors),
        K.ravel()[some],
        approximate.ravel()[some],
    )


def measure(approximate: np.ndarray, exact: np.ndarray, metric: str) -> float:
    """Compute the error of an approximate matrix by one of the metrics of `gram_error`."""
    A = approximate - exact
    rmse = float(np.sqrt(np.mean(A**2)))
    if metric == "nrmse":
        return _over(rmse, abs(float(exact.mean())))
    if metric == "nrmse-range":
        return _over(rmse, float(np.ptp(exact)))
    if metric == "frobenius":
        return _over(rmse, float(np.sqrt(np.mean(exact**2))))
    if metric == "max":
        return float(np.abs(A).max())
    if metric == "spectral":
        return _over(float(np.linalg.norm(A, 2)), float(np.linalg.norm(exact, 2)))
    known = exact != 0
    return float(np.mean(np.abs(A[known] / exact[known]))) if known.any() else 0.0


def interval(values: Iterable[float], confidence: float) -> tuple[float, float]:
    """Return Student's confidence interval for a mean of independent values, or nan for one."""
    values = np.asarray(list(values), dtype=float)
    if len(values) < 2:
        return float("nan"), float("nan")
    half = stats.t.ppf((1 + confidence) / 2, len(values) - 1)
    half *= values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def sample_rows(X: Any, n_rows: int, random_state: Any) -> Any:
    """Draw a random subset of the rows, and keep their order."""
    if X.shape[0] <= n_rows:
        return X
    chosen = generator(random_state).choice(X.shape[0], n_rows, replace=False)
    return X[np.sort(chosen)]


def fitted_maps(feature_map: Any, X: Any, seeds: int | Iterable[int] | None) -> Iterable[Any]:
    """Return the given map if `seeds` is None, otherwise a clone fitted to X for each seed."""
    if seeds is None:
        yield feature_map
        return
    for seed in range(seeds) if isinstance(seeds, int) else seeds:
        fitted = clone(feature_map)
        if hasattr(fitted, "random_state"):
            fitted.set_params(random_state=seed)
        yield fitted.fit(X)


def exact_gram(feature_map: Any, X: Any, kernel: Any = None) -> np.ndarray:
    """Compute the Gram matrix that a fitted map approximates, in float64."""
    if kernel is None and isinstance(feature_map, WrappedMap):
        return exact_gram(feature_map.feature_map_, feature_map._prepared(X))
    kernel = getattr(feature_map, "kernel_", None) if kernel is None else kernel
    if kernel is None or isinstance(kernel, str):
        raise ValueError(
            f"{type(feature_map).__name__} does not know which kernel it approximates; give it as "
            f"kernel=, for instance kernel=Gaussian(gamma=0.5)."
        )
    return np.asarray(kernel(X), dtype=np.float64)


def dense(Z: Any) -> np.ndarray:
    """Return features as a float64 array."""
    return np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)


def _over(error: float, scale: float) -> float:
    if scale > 0:
        return error / scale
    return 0.0 if error == 0 else float("inf")
