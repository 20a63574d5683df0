"""A dot-product kernel fitted to data: Maclaurin coefficients from targets."""

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
_LEAST = 1e-3  # share of k(x, x) below which a degree is left out
_STEPS = 12
_START_DEGREES = (2, 3, 5, 7)
_START_RIDGES = (1.0, 10.0, 100.0, 1000.0)  # of k(x, x) over alpha


def series_or_fitted_kernel(
    kernel: Any, X: Any, y: Any, n_components: int, rng: np.random.Generator
) -> DotProductKernel | Gaussian:
    """As `series_kernel`, resolved; "auto" is fitted to rows X and targets y."""
    if isinstance(kernel, str) and kernel == "auto":
        return fitted_kernel(X, y, n_components, rng)
    checked = series_kernel(kernel)
    return checked.resolved(X) if isinstance(checked, Gaussian) else checked


def fitted_kernel(X: Any, y: Any, n_components: int, rng: np.random.Generator) -> DotProduct:
    """sum_n a_n (gamma <x, y>)^n whose a_n >= 0 have the least leave-one-out error on a sample.

    Kernel ridge regression with an intercept has, for all rows i left out in turn, the residuals
    (G Y)_i / (G_ii - 1/m) with G = (H K H + I)^-1 and H the centring matrix. Their sum of squares
    is minimised over a_n >= 0 by L-BFGS from the best of some polynomial kernels; its gradient
    takes one more product of matrices. The a_n contain the ridge parameter, and are scaled so that
    the features have variance 1 in all.
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
    if not (Y.any() and gram.any()):  # rows of one class, or of zeros, tell nothing
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
    shares[shares < _LEAST * shares.sum()] = 0.0
    coefficients = np.zeros(_DEGREES[-1] + 1)
    coefficients[_DEGREES] = shares / shares.sum() / scales
    kernel = DotProduct(np.trim_zeros(coefficients, "b").tolist(), gamma=1 / mean)
    kernel.check()
    return kernel


def centred_targets(y: np.ndarray) -> np.ndarray:
    """Centred columns of unit variance: the targets, or one column per class."""
    if y.ndim == 1 and not is_continuous(y):
        Y = (y[:, None] == np.unique(y)).astype(np.float64)
    else:
        Y = y.astype(np.float64).reshape(len(y), -1)
    Y = Y - Y.mean(axis=0)
    total = np.sqrt(np.mean(Y**2))
    return np.asarray(Y / total if total else Y)


def _sketched_powers(gram: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """H K_n H for each degree n, where K_n is T^n as `size` random features would show it.

    A high degree may explain the targets, and yet be of no use to a map with few components. With
    T^n = L L^T, K_n = L R R^T L^T / size for a normal matrix R has the error of that many features.
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
    """Coefficients of the (1 + t)^p / ridge with the least error, with a little of every degree."""
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
    """log of the mean squared leave-one-out residual at coefficients a, and its gradient.

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
