"""Dot-product kernels whose Maclaurin coefficients are learned from targets."""

from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize
from scipy.special import binom
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.validation import check_consistent_length

from craftmaps.kernels.dot_product import DotProduct, DotProductKernel, Polynomial
from craftmaps.kernels.names import series_kernel
from craftmaps.kernels.shift_invariant import Gaussian
from craftmaps.validation import is_continuous

_ROWS = 700
_DEGREES = np.array([1, 2, 3, 4, 5, 7, 9])
_MIN_SHARE = 1e-3  # degrees with a smaller share of k(x, x) are left out
_STEPS = 12
_START_DEGREES = (2, 3, 5, 7)
_START_RIDGES = (1.0, 10.0, 100.0, 1000.0)  # values of k(x, x) / alpha


def series_or_fitted_kernel(
    kernel: Any, X: Any, y: Any, n_components: int, rng: np.random.Generator
) -> DotProductKernel | Gaussian:
    """Return a resolved kernel with a series; "auto" is fitted to rows X and targets y."""
    if isinstance(kernel, str) and kernel == "auto":
        return fitted_kernel(X, y, n_components, rng)
    checked = series_kernel(kernel)
    return checked.resolved(X) if isinstance(checked, Gaussian) else checked


def fitted_kernel(X: Any, y: Any, n_components: int, rng: np.random.Generator) -> DotProduct:
    """Fit sum_n a_n (gamma <x, y>)^n with a_n >= 0 to minimize the leave-one-out error.

    The leave-one-out residuals of kernel ridge regression with an intercept are
    (G Y)_i / (G_ii - 1/m), where G = (H K H + I)^-1 and H is the centering matrix. L-BFGS
    minimizes their sum of squares on a sample of rows, and starts from the best of a few
    polynomial kernels. The gradient costs one more matrix product. The a_n include the ridge
    parameter and are scaled so that the features have a total variance of 1.
    """
    if y is None:
        raise ValueError(
            "kernel='auto' learns the kernel from targets: call fit(X, y), or name a kernel such "
            "as Polynomial(degree=3)."
        )
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(X, y)
    rows = rng.permutation(X.shape[0])[:_ROWS]
    Y = centred_targets(y[rows])
    sample = X[rows].astype(np.float64)
    mean = float(row_norms(sample, squared=True).mean()) or 1.0
    gram = safe_sparse_dot(sample, sample.T, dense_output=True) / mean
    if not (Y.any() and gram.any()):  # one class only, or only zeros: nothing to learn from
        return Polynomial(degree=3, gamma=1 / mean)
    powers = _sketched_powers(gram, max(1, n_components // 2), rng)
    scales = np.array([max(float(np.trace(K)) / len(K), 1e-300) for K in powers])
    powers /= scales[:, None, None]
    start = _best_polynomial(powers, scales, Y)
    found = minimize(
        lambda factors: _scaled(_log_left_out_error(factors * start, powers, Y), start),
        np.ones(len(start)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(start),
        options={"maxiter": _STEPS, "maxfun": 2 * _STEPS},
    )
    shares = found.x * start
    shares[shares < _MIN_SHARE * shares.sum()] = 0.0
    coefficients = np.zeros(_DEGREES[-1] + 1)
    coefficients[_DEGREES] = shares / shares.sum() / scales
    kernel = DotProduct(np.trim_zeros(coefficients, "b").tolist(), gamma=1 / mean)
    kernel.check()
    return kernel


def centred_targets(y: np.ndarray) -> np.ndarray:
    """Return centered targets, or one centered column per class, with a mean square of 1."""
    if y.ndim == 1 and not is_continuous(y):
        Y = (y[:, None] == np.unique(y)).astype(np.float64)
    else:
        Y = y.astype(np.float64).reshape(len(y), -1)
    Y = Y - Y.mean(axis=0)
    total = np.sqrt(np.mean(Y**2))
    return np.asarray(Y / total if total else Y)


def _sketched_powers(gram: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return H K_n H for each degree n, where K_n approximates T^n with `size` random features.

    A high degree may explain the targets, but be of no use to a map with few components. With
    T^n = L L^T and a normal matrix R, K_n = L R R^T L^T / size has the error of such a map.
    """
    found = np.empty((len(_DEGREES), *gram.shape))
    for i, degree in enumerate(_DEGREES):
        power = gram ** int(degree)
        power[np.diag_indices(len(gram))] *= 1 + 1e-8
        power[np.diag_indices(len(gram))] += 1e-8 * np.trace(power) / len(gram)
        lower, _ = lapack.dpotrf(power, lower=1)
        Z = np.tril(lower) @ rng.standard_normal((len(gram), size)) / np.sqrt(size)
        Z -= Z.mean(axis=0)
        found[i] = Z @ Z.T
    return found


def _best_polynomial(powers: np.ndarray, scales: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the best start (1 + t)^p * ridge, with a small share of every degree added."""
    found = []
    for p in _START_DEGREES:
        profile = binom(p, _DEGREES) * scales
        profile = profile / profile.sum() + 1e-3
        found += [profile * ridge for ridge in _START_RIDGES]
    return min(found, key=lambda a: _log_left_out_error(a, powers, Y, slope=False)[0])


def _scaled(result: tuple[float, np.ndarray], start: np.ndarray) -> tuple[float, np.ndarray]:
    return result[0], result[1] * start


def _log_left_out_error(
    a: np.ndarray, powers: np.ndarray, Y: np.ndarray, slope: bool = True
) -> tuple[float, np.ndarray]:
    """Compute the log of the mean squared leave-one-out residual and its gradient at a.

    With c = G Y and g = diag G - 1/m, L = sum (c / g)^2 has dL = <dK, G diag(w) G - c (G u)^T>
    for u = 2 c / g^2 and w = 2 sum_targets c^2 / g^3.
    """
    m = len(Y)
    K = np.tensordot(a, powers, axes=1)
    K[np.diag_indices(m)] += 1
    factor, _ = lapack.dpotrf(K, lower=1)
    inverse, _ = lapack.dpotri(factor, lower=1)
    G = np.tril(inverse) + np.tril(inverse, -1).T
    c = G @ Y
    g = np.maximum(G.diagonal() - 1 / m, 1e-12)
    error = float(np.sum((c / g[:, None]) ** 2))
    if not slope:
        return np.log(error / m), np.empty(0)
    w = 2 * np.sum(c**2, axis=1) / g**3
    change = (G * w) @ G - c @ (G @ (2 * c / g[:, None] ** 2)).T
    return np.log(error / m), np.tensordot(powers, change, axes=2) / error
