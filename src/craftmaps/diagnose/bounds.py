"""Published bounds on the error of random features, and the sizes that they require.

Each bound comes with its inverse. The bounds are loose, often by orders of magnitude. Use
`craftmaps.diagnose.expected_error` and `craftmaps.diagnose.components_for` to predict the error on
given rows.

References
----------
KK: P. Kar and H. Karnick, "Random Feature Maps for Dot Product Kernels", AISTATS 2012.
PP: N. Pham and R. Pagh, "Fast and Scalable Polynomial Kernels via Explicit Feature Maps", KDD 2013.
CRAFT: R. Hamid, Y. Xiao, A. Gittens and D. DeCoste, "Compact Random Feature Maps", ICML 2014.
RR: A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.

Examples
--------
>>> from craftmaps import Polynomial
>>> from craftmaps.diagnose import bounds
>>> size = bounds.maclaurin_components(Polynomial(2), radius=1.0, error=0.5, probability=0.05)
>>> size
38247
>>> bounds.maclaurin_probability(Polynomial(2), 1.0, size, 0.5) <= 0.05
True
"""

import math
from typing import Any

import numpy as np

from craftmaps.diagnose import expected
from craftmaps.kernels import DotProductKernel
from craftmaps.validation import warn_renamed

__all__ = [
    "craft_error",
    "fourier_components",
    "fourier_probability",
    "gaussian_products_components",
    "gaussian_products_components_all_pairs",
    "gaussian_products_probability",
    "maclaurin_components",
    "maclaurin_components_uniform",
    "maclaurin_probability",
    "maclaurin_probability_uniform",
    "tensor_sketch_components",
    "tensor_sketch_mean_probability",
    "tensor_sketch_mean_sketches",
    "tensor_sketch_probability",
]

_LEMMA_3_1_CONSTANT = 0.766  # c of CRAFT Lemma 3.1
_MAX_TERMS = 1 << 20  # largest number of terms of a series that is summed
_NEGLIGIBLE_SHARE = 1e-12  # a sum is complete when twice as many terms add no more than this
_MOVED = ("components_for", "expected_error")  # these are not bounds


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        warn_renamed(f"craftmaps.diagnose.bounds.{name}", f"craftmaps.diagnose.{name}")
        return getattr(expected, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def maclaurin_probability(
    kernel: DotProductKernel, radius: float, n_components: int, error: float, p: float = 2.0
) -> float:
    """P[|<Z(x),Z(y)> - K(x,y)| > e] <= 2 exp(-D e^2 / (8 C^2)), C = p f(p R^2): KK Lemma 4.

    For one pair of rows with |x|_1 <= R (`radius`), features drawn with allocation="geometric" and
    projection="rademacher".
    """
    scale = _scale(kernel, radius, p)
    return min(1.0, 2 * math.exp(-n_components * error**2 / (8 * scale**2)))


def maclaurin_components(
    kernel: DotProductKernel, radius: float, error: float, probability: float, p: float = 2.0
) -> int:
    """Return the smallest D for which `maclaurin_probability` is at most `probability`."""
    scale = _scale(kernel, radius, p)
    return math.ceil(8 * scale**2 * math.log(2 / probability) / error**2)


def maclaurin_probability_uniform(
    kernel: DotProductKernel,
    radius: float,
    n_features: int,
    n_components: int,
    error: float,
    p: float = 2.0,
) -> float:
    """P[sup error > e] <= 2 (32 R L / e)^(2d) exp(-D e^2 / (8 C^2)): KK Theorem 8.

    For all pairs of rows with |x|_1 <= R in d dimensions (`n_features`) at once;
    C = p f(p R^2) and L = f'(R^2) + p^2 R sqrt(d) f'(p R^2).
    """
    log_size, scale = _covering(kernel, radius, n_features, error, p)
    log_bound = math.log(2) + log_size - n_components * error**2 / (8 * scale**2)
    return math.exp(min(0.0, log_bound))


def maclaurin_components_uniform(
    kernel: DotProductKernel,
    radius: float,
    n_features: int,
    error: float,
    probability: float,
    p: float = 2.0,
) -> int:
    """Return the smallest D with `maclaurin_probability_uniform` at most `probability`."""
    log_size, scale = _covering(kernel, radius, n_features, error, p)
    return math.ceil(8 * scale**2 * (math.log(2 / probability) + log_size) / error**2)


def tensor_sketch_probability(degree: int, cosine: float, n_components: int, error: float) -> float:
    """P[|error| >= e <x,y>^p] <= ((s + 1)^p + 2^p - 2) / (D e^2), s = 1 / cos^2: after PP Lemma 7.

    Chebyshev's inequality for a homogeneous kernel of degree p and rows at an angle of the given
    cosine. PP publish 2 s^p / (D e^2), which follows from a variance that holds for p = 1 only.
    This bound follows from the variance [(N + c - q)^p + (2c - q)^p - 2c^p] / D at q = 0, where it
    is largest. Both leave out terms of order 1 / D^2.
    """
    s = 1 / cosine**2
    return min(1.0, ((s + 1) ** degree + 2.0**degree - 2) / (n_components * error**2))


def tensor_sketch_components(degree: int, cosine: float, error: float, probability: float) -> int:
    """Return the smallest D for which `tensor_sketch_probability` is at most `probability`."""
    s = 1 / cosine**2
    return math.ceil(((s + 1) ** degree + 2.0**degree - 2) / (probability * error**2))


def tensor_sketch_mean_probability(
    degree: int, radius: float, n_sketches: int, error: float
) -> float:
    """P[|mean - <x,y>^p| >= e] <= 2 exp(-t e^2 / (2 R^(4p))): PP Lemma 9.

    Hoeffding's inequality for the mean of t independent sketches (`n_sketches`) of rows with
    |x|_1 <= R. The size of each sketch does not matter.
    """
    return min(1.0, 2 * math.exp(-n_sketches * error**2 / (2 * radius ** (4 * degree))))


def tensor_sketch_mean_sketches(
    degree: int, radius: float, error: float, probability: float
) -> int:
    """Return the smallest t with `tensor_sketch_mean_probability` at most `probability`."""
    return math.ceil(2 * radius ** (4 * degree) * math.log(2 / probability) / error**2)


def gaussian_products_probability(degree: int, n_components: int, error: float) -> float:
    """P[error >= e] <= c^r exp(-(D e^2 / 11)^(1/(2r+2)) / 2), c = 0.766: CRAFT Lemma 3.1.

    For one pair of unit rows, the homogeneous kernel of degree r >= 2 and products of Gaussian
    projections. The bound holds for D >= 3 4^(r+2) / e^2; for smaller D the result is 1.
    """
    if n_components < 3 * 4.0 ** (degree + 2) / error**2:
        return 1.0
    exponent = (n_components * error**2 / 11) ** (1 / (2 * degree + 2))
    return float(_LEMMA_3_1_CONSTANT**degree * math.exp(-exponent / 2))


def gaussian_products_components(degree: int, error: float, probability: float) -> int:
    """Return the smallest D for which `gaussian_products_probability` is at most `probability`."""
    least = 3 * 4.0 ** (degree + 2) / error**2
    exponent = 2 * max(0.0, degree * math.log(_LEMMA_3_1_CONSTANT) - math.log(probability))
    return math.ceil(max(least, 11 * exponent ** (2 * degree + 2) / error**2))


def gaussian_products_components_all_pairs(degree: int, n_rows: int, error: float) -> float:
    """4^(r+1) log(n)^(2r+2) / e^2, for all pairs of n unit rows at once: CRAFT Corollary 3.2.

    The paper gives no constant factor, and there is none here.
    """
    return float(4.0 ** (degree + 1) * math.log(n_rows) ** (2 * degree + 2) / error**2)


def craft_error(degree: int, n_rows: int, n_up: int, n_components: int) -> float:
    """2^(r+1) log(n)^(r+1) / sqrt(D) + sqrt(log(n) / E): CRAFT Theorem 3.3.

    The largest error over all pairs of n unit rows, for D = `n_up` features projected down to E =
    `n_components`, up to a constant factor that the paper does not give.
    """
    log = math.log(n_rows)
    return float((2 * log) ** (degree + 1) / math.sqrt(n_up) + math.sqrt(log / n_components))


def fourier_probability(n_components: int, error: float) -> float:
    """P[error > e] <= 2 exp(-m e^2 / 2) for one pair and m = D / 2 iid frequencies: RR Claim 1.

    Hoeffding's inequality for a mean of cosines.
    """
    return min(1.0, 2 * math.exp(-(n_components // 2) * error**2 / 2))


def fourier_components(error: float, probability: float) -> int:
    """Return the smallest even D for which `fourier_probability` is at most `probability`."""
    return 2 * math.ceil(2 * math.log(2 / probability) / error**2)


def _scale(kernel: DotProductKernel, radius: float, p: float) -> float:
    """C = p f(p R^2)."""
    return float(p * kernel.value(p * radius**2))


def _covering(
    kernel: DotProductKernel, radius: float, n_features: int, error: float, p: float
) -> tuple[float, float]:
    """log (32 R L / e)^(2d), and C."""
    lipschitz = _slope(kernel, radius**2)
    lipschitz += p**2 * radius * math.sqrt(n_features) * _slope(kernel, p * radius**2)
    return 2 * n_features * math.log(32 * radius * lipschitz / error), _scale(kernel, radius, p)


def _slope(kernel: DotProductKernel, t: float) -> float:
    """f'(t) of f(t) = sum a_n t^n."""
    last, before = 64, -1.0
    while True:  # a series needs thousands of terms near its radius of convergence
        last = int(min(last, kernel.highest_degree))
        coefficients = kernel.maclaurin(last)
        n = np.flatnonzero(coefficients[1:]) + 1
        total = float(np.exp(np.log(n * coefficients[n]) + (n - 1) * math.log(t)).sum())
        complete = total <= (1 + _NEGLIGIBLE_SHARE) * before or last == kernel.highest_degree
        if complete or last > _MAX_TERMS:
            return total
        last, before = 2 * last, total
