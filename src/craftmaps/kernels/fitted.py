"""A dot-product kernel fitted to data: Maclaurin coefficients from targets."""

from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from craftmaps.kernels.dot_product import DotProduct

_ROWS = 1200
_DEGREES = np.array([1, 2, 3, 4, 5, 7, 9])
_MANY = 100  # different whole numbers, beyond which targets are measured rather than labels
_LEAST = 1e-3  # share of k(x, x) below which a degree is left out
_STEPS = 20


def fitted_kernel(X: Any, y: Any, rng: np.random.Generator) -> DotProduct:
    """sum_n a_n (gamma <x, y>)^n whose a_n >= 0 have the least leave-one-out error on a sample.

    Kernel ridge regression with an intercept has, for all rows i left out in turn, the residuals
    (G Y)_i / (G_ii - 1/m) with G = (H K H + I)^-1 and H the centring matrix. Their sum of squares
    is minimised over log a_n by L-BFGS; its gradient takes one more product of matrices. The a_n
    contain the ridge parameter, and are scaled so that the variance of features is 1.
    """
    if y is None:
        raise ValueError(
            "kernel='auto' learns the kernel from targets: call fit(X, y), or name a kernel such "
            "as Polynomial(degree=3)."
        )
    rows = rng.permutation(X.shape[0])[:_ROWS]
    Y = _targets(np.asarray(y)[rows])
    sample = X[rows].astype(np.float64)
    mean = float(row_norms(sample, squared=True).mean()) or 1.0
    powers = _centred_powers(safe_sparse_dot(sample, sample.T, dense_output=True) / mean)
    scales = np.array([max(float(np.trace(K)) / len(K), 1e-300) for K in powers])
    powers /= scales[:, None, None]
    start = np.zeros(len(_DEGREES))
    found = minimize(
        _log_left_out_error, start, (powers, Y), jac=True, method="L-BFGS-B",
        bounds=[(-12.0, 12.0)] * len(start), options={"maxiter": _STEPS},
    )
    shares = np.exp(found.x)
    shares[shares < _LEAST * shares.sum()] = 0.0
    coefficients = np.zeros(_DEGREES[-1] + 1)
    coefficients[_DEGREES] = shares / shares.sum() / scales
    kernel = DotProduct(np.trim_zeros(coefficients, "b").tolist(), gamma=1 / mean)
    kernel.check()
    return kernel


def is_continuous(y: Any) -> bool:
    """Whether targets are measured numbers rather than labels."""
    y = np.asarray(y)
    if y.dtype.kind not in "fiu":
        return False
    return bool((y != np.floor(y)).any()) or len(np.unique(y)) > _MANY


def _targets(y: np.ndarray) -> np.ndarray:
    """Centred columns of unit variance: the targets, or one column per class."""
    if y.ndim == 1 and not is_continuous(y):
        Y = (y[:, None] == np.unique(y)).astype(np.float64)
    else:
        Y = y.astype(np.float64).reshape(len(y), -1)
    Y = Y - Y.mean(axis=0)
    total = np.sqrt(np.mean(Y**2))
    return Y / total if total else Y


def _centred_powers(gram: np.ndarray) -> np.ndarray:
    """H T^n H for each degree, entry by entry powers."""
    found = np.empty((len(_DEGREES), *gram.shape))
    for i, degree in enumerate(_DEGREES):
        power = gram ** int(degree)
        mean = power.mean(axis=0)
        found[i] = power - mean - mean[:, None] + mean.mean()
    return found


def _log_left_out_error(
    logs: np.ndarray, powers: np.ndarray, Y: np.ndarray
) -> tuple[float, np.ndarray]:
    """log of the mean squared leave-one-out residual, and its gradient.

    With c = G Y and g = diag G - 1/m, L = sum (c / g)^2 has dL = <dK, G diag(w) G - c (G u)^T>
    for u = 2 c / g^2 and w = 2 sum_targets c^2 / g^3.
    """
    a = np.exp(logs)
    m = len(Y)
    K = np.tensordot(a, powers, axes=1)
    K[np.diag_indices(m)] += 1
    factor, _ = lapack.dpotrf(K, lower=1)
    inverse, _ = lapack.dpotri(factor, lower=1)
    G = np.tril(inverse) + np.tril(inverse, -1).T
    c = G @ Y
    g = np.maximum(G.diagonal() - 1 / m, 1e-12)
    error = float(np.sum((c / g[:, None]) ** 2))
    w = 2 * np.sum(c**2, axis=1) / g**3
    slope = (G * w) @ G - c @ (G @ (2 * c / g[:, None] ** 2)).T
    gradient = a * np.tensordot(powers, slope, axes=2)
    return np.log(error / m), gradient / error
