"""The error to expect of a random map on given rows, by its variance formula.

Errors are root mean squares over a sample of pairs of rows, relative to the root mean square kernel
value. No feature is computed.
"""

import math
from typing import Any

import numpy as np

from craftmaps.kernels import DotProductKernel, Polynomial, ShiftInvariantKernel
from craftmaps.maps.parts.hadamard_products import padded_length
from craftmaps.maps.planning.allocation import expected_variance
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments, tensor_sketch_variance

_SAMPLE_ROWS = 256


def tensor_sketch_error(
    kernel: Polynomial, X: Any, n_components: int, rng: np.random.Generator
) -> float:
    """The error of a TensorSketch."""
    moments = PairMoments.of_sample(X, rng)
    variance = tensor_sketch_variance(kernel, moments) / n_components
    return _relative(variance, kernel.value(moments.inner))


def maclaurin_error(
    kernel: DotProductKernel,
    X: Any,
    counts: np.ndarray,
    weights: np.ndarray,
    projection: str,
    complex_to_real: bool,
    h01: bool,
    rng: np.random.Generator,
) -> float:
    """The error of Random Maclaurin features, given the number of features of each degree.

    The expectation of the estimate differs from the kernel where degrees were drawn or cut off.
    """
    moments = PairMoments.of_sample(X, rng)
    exact = kernel.value(moments.inner)
    last, length = len(counts) - 1, padded_length(X.shape[1])
    statistics = DegreeStatistics.measure(
        kernel, moments, last, projection, complex_to_real, length
    )
    variance = expected_variance(statistics, counts, weights)
    if complex_to_real:
        variance /= 2  # a feature is a pair of columns
    series = counts * weights
    if h01:
        series[:2] = kernel.maclaurin(1)
    bias = np.polynomial.polynomial.polyval(moments.inner, series) - exact
    return _relative(variance + float(np.mean(bias**2)), exact)


def fourier_error(
    kernel: ShiftInvariantKernel, X: Any, n_components: int, rng: np.random.Generator
) -> float:
    """The error of Fourier features with independent frequencies.

    Var cos<w, x - y> = (1 + k(2(x - y))) / 2 - k(x - y)^2, over the number of frequencies.
    """
    rows = X[np.sort(rng.choice(X.shape[0], min(X.shape[0], _SAMPLE_ROWS), replace=False))]
    pairs = np.triu_indices(rows.shape[0], k=1 if rows.shape[0] > 1 else 0)
    value, doubled = kernel(rows)[pairs], kernel(2 * rows)[pairs]
    # the last of an odd number of columns is sqrt(2) cos(<w, x> + b), with its own variance
    frequencies, odd = -(-n_components // 2), n_components % 2
    variance = float(np.mean((1 + doubled) / 2 - value**2)) / frequencies
    return _relative(variance + odd / 2 / frequencies**2, value)


def _relative(variance: float, values: np.ndarray) -> float:
    scale = float(np.mean(values**2))
    return math.sqrt(max(0.0, variance) / scale) if scale else 0.0
