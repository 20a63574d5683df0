"""Expected errors of random maps on given rows, from variance formulas.

Errors are root mean squares over a sample of pairs of rows, relative to the root mean square kernel
value. No features are computed.
"""

import math
from typing import Any

import numpy as np
from scipy import special

from craftmaps.kernels import DotProductKernel, Polynomial, ShiftInvariantKernel
from craftmaps.maps.parts.hadamard_products import padded_length
from craftmaps.maps.planning.allocation import expected_variance
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments, tensor_sketch_variance

_SAMPLE_ROWS = 256


def tensor_sketch_error(
    kernel: Polynomial, X: Any, n_components: int, rng: np.random.Generator
) -> float:
    """Return the expected error of a TensorSketch."""
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
    is_radial: bool = False,
) -> float:
    """Return the expected error of Random Maclaurin features, given the counts per degree.

    The estimate is biased, given the counts, if degrees were drawn at random or truncated.
    With `is_radial`, features are multiplied by exp(-|x|^2 / 2).
    """
    moments = PairMoments.of_sample(X, rng, is_radial)
    exact = kernel.value(moments.inner)
    last, length = len(counts) - 1, padded_length(X.shape[1])
    statistics = DegreeStatistics.measure(
        kernel, moments, last, projection, complex_to_real, length
    )
    variance = expected_variance(statistics, counts, weights)
    if complex_to_real:
        variance /= 2  # a complex feature is a pair of columns
    series = counts * weights
    if h01:
        series[:2] = kernel.maclaurin(1)
    bias = np.polynomial.polynomial.polyval(moments.inner, series) - exact
    return _relative(variance + moments.mean(bias**2), np.sqrt(moments.weight) * exact)


def fourier_error(
    kernel: ShiftInvariantKernel, X: Any, n_components: int, rng: np.random.Generator
) -> float:
    """Return the expected error of Fourier features with independent frequencies.

    Their variance is Var cos<w, x - y> = (1 + k(2(x - y))) / 2 - k(x - y)^2, divided by the number
    of frequencies.
    """
    rows = X[np.sort(rng.choice(X.shape[0], min(X.shape[0], _SAMPLE_ROWS), replace=False))]
    pairs = np.triu_indices(rows.shape[0], k=1 if rows.shape[0] > 1 else 0)
    value, doubled = kernel(rows)[pairs], kernel(2 * rows)[pairs]
    # An odd last column is sqrt(2) cos(<w, x> + b), which has another variance.
    frequencies, odd = -(-n_components // 2), n_components % 2
    variance = float(np.mean((1 + doubled) / 2 - value**2)) / frequencies
    return _relative(variance + odd / 2 / frequencies**2, value)


def gaussian_fourier_error(
    moments: PairMoments, n_components: int, n_columns: int | None = None
) -> float:
    """Return the expected error of Fourier features for exp(-|x - y|^2 / 2).

    Frequencies are independent, or orthogonal in blocks of `n_columns` if that is given.
    """
    squared = np.maximum(0.0, moments.left + moments.right - 2 * moments.inner)
    n = n_components / 2
    variance = n * (1 - np.exp(-squared)) ** 2 / 2
    if n_columns is not None:
        blocks, rest = divmod(n, n_columns)
        pairs = blocks * n_columns * (n_columns - 1) + max(0.0, rest * (rest - 1))
        variance = np.maximum(0.0, variance + pairs * _orthogonal_covariance(squared, n_columns))
    return _relative(float(np.mean(variance)) / n**2, np.exp(-squared / 2))


def _orthogonal_covariance(squared: np.ndarray, n_columns: int) -> np.ndarray:
    """Return the covariance of cos<v, u> and cos<w, u> for orthogonal normal v and w.

    Here |u|^2 = `squared`. v + w has a uniform direction and a chi-squared squared length with 2 d
    degrees of freedom, so E cos<v + w, u> = 1F1(d, d/2, -|u|^2 / 2), and cos<v - w, u> has the same
    mean.
    """
    both = special.hyp1f1(n_columns, n_columns / 2, -squared / 2)
    return np.asarray(both - np.exp(-squared))


def _relative(variance: float, values: np.ndarray) -> float:
    scale = float(np.mean(values**2))
    return math.sqrt(max(0.0, variance) / scale) if scale else 0.0
