"""Allocate random features to the degrees of a dot-product kernel.

Each rule returns two arrays over the degrees n: `counts`, the number of features of degree n, and
`weights`, the squared scale of each of these features, so that the sum over features of
weight * prod_j <w_j, x> <w_j, y> has expectation sum_n a_n <x, y>^n.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from craftmaps.kernels import DotProductKernel
from craftmaps.maps.planning.moments import DegreeStatistics
from craftmaps.validation import warn

LAWS = ("optimized", "geometric", "proportional")
_NEGLIGIBLE_TAIL = 2.0**-24  # the rounding error of float32, relative to f(R^2)
_MAX_AUTOMATIC_DEGREE = 64
_LARGE_TAIL = 0.01  # a larger truncated share of f(R^2) causes a warning
_MAX_KERNEL_VALUE = 1e100  # variances square this and would overflow for much larger values


def largest_squared_norm(kernel: DotProductKernel, squared_norms: np.ndarray) -> float:
    """Return R^2, the largest |x|^2 (1 for rows of zeros); raise ValueError if f(R^2) is huge."""
    largest = float(squared_norms.max()) or 1.0
    with np.errstate(over="ignore"):
        whole = float(kernel.value(largest))
    if not whole < _MAX_KERNEL_VALUE:
        raise ValueError(
            f"k(x, x) reaches {whole:.3g} on these rows, whose |x|^2 reaches {largest:.3g}; scale "
            f"them down, for example with sklearn.preprocessing.normalize."
        )
    return largest


def automatic_degree(kernel: DotProductKernel, squared_norm: float) -> int:
    """Return the lowest degree with a negligible tail for |x|^2 <= squared_norm (KK s.4.2)."""
    highest = kernel.highest_degree
    last = int(highest) if math.isfinite(highest) else _MAX_AUTOMATIC_DEGREE
    whole = float(kernel.value(squared_norm))
    for degree in range(last):
        if kernel.tail(degree, squared_norm) <= _NEGLIGIBLE_TAIL * whole:
            return degree
    return last


def truncated_tail(kernel: DotProductKernel, last: int, squared_norm: float, advice: str) -> float:
    """Return the truncation error of k(x, x) beyond degree `last`, and warn if it is large."""
    tail, whole = kernel.tail(last, squared_norm), float(kernel.value(squared_norm))
    if tail > _LARGE_TAIL * whole:
        warn(
            f"truncating {kernel} at degree {last} loses up to {tail:.3g} of k(x, x), which "
            f"reaches {whole:.3g} on these rows; {advice}."
        )
    return tail


def share(
    law: str,
    kernel: DotProductKernel,
    n_features: int,
    least_degree: int,
    last: int,
    squared_norms: np.ndarray,
    statistics: Callable[[], DegreeStatistics],
    rng: np.random.Generator,
    p: float = 2.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute counts and weights of the degrees `least_degree` to `last` by the named rule.

    If there are fewer features than degrees, "optimized" draws like "proportional".
    """
    n_used = np.count_nonzero(kernel.maclaurin(last)[least_degree:])
    if not n_used:
        return np.zeros(last + 1, dtype=int), np.zeros(last + 1)
    if law == "geometric":
        return geometric(kernel, n_features, least_degree, last, p, rng)
    if law == "proportional" or n_features < n_used:
        mean = float(squared_norms.mean()) or 1.0
        return proportional(kernel, n_features, least_degree, last, mean, rng)
    return optimized(statistics(), n_features, least_degree)


def geometric(
    kernel: DotProductKernel,
    n_features: int,
    least_degree: int,
    max_degree: int | None,
    p: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the degree of each feature with P[N = n] proportional to p^-(n+1) (KK Algorithm 1).

    The published distribution sums to 1 only for p = 2; here it is normalized for every p. With
    `max_degree` it is conditioned on N <= max_degree.
    """
    if max_degree is None:
        drawn = least_degree + rng.geometric(1 - 1 / p, n_features) - 1
    else:
        span = np.arange(max_degree - least_degree + 1)
        law = p ** -(span + 1.0)
        drawn = least_degree + rng.choice(len(span), n_features, p=law / law.sum())
    counts = np.bincount(drawn, minlength=least_degree + 1)
    degrees = np.arange(len(counts))
    law = (p - 1) * p ** -(degrees - least_degree + 1.0)
    if max_degree is not None:
        law /= 1 - p ** -(max_degree - least_degree + 1.0)
    return counts, kernel.maclaurin(len(counts) - 1) / (max(1, n_features) * law)


def proportional(
    kernel: DotProductKernel,
    n_features: int,
    least_degree: int,
    max_degree: int,
    mean_squared_norm: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw degrees with P[N = n] proportional to a_n R^(2n), for the mean squared norm R^2.

    Systematic sampling keeps each count within one of its expectation.
    """
    coefficients = kernel.maclaurin(max_degree)
    law = coefficients * mean_squared_norm ** np.arange(max_degree + 1.0)
    law[:least_degree] = 0
    if not law.any():  # rows of zeros: all degrees are equally good
        law = np.where(np.arange(max_degree + 1) >= least_degree, coefficients, 0.0)
    law = law / law.sum()
    points = (rng.random() + np.arange(n_features)) / n_features
    drawn = np.searchsorted(np.cumsum(law)[:-1], points, side="right")
    counts = np.bincount(drawn, minlength=max_degree + 1)
    weights = np.divide(coefficients, n_features * law, out=np.zeros_like(law), where=law > 0)
    return counts, weights


def optimized(
    statistics: DegreeStatistics, n_features: int, least_degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """Choose counts that minimize the expected squared error over the sampled pairs.

    Degree n gets D_n features, scaled by sqrt(a_n / D_n). Features are assigned one by one to the
    degree where each lowers sum_n a_n^2 V_n / D_n most (Wacker, Kanagawa and Filippone, "Improved
    random features for dot product kernels"). In runs of Hadamard rows, V_n is the variance minus
    the repulsion, and length^n features of degree n give <x,y>^n exactly.
    """
    coefficients, length = statistics.coefficients, statistics.length
    used = [n for n in range(max(1, least_degree), len(coefficients)) if coefficients[n] > 0]
    counts = np.zeros(len(coefficients), dtype=np.int64)
    if least_degree == 0 and coefficients[0] > 0:
        counts[0] = 1 if used else n_features
    curves = []
    for n in used:
        variance, repulsion = statistics.variance[n], statistics.repulsion[n]
        cap = _products(length, n) if repulsion else math.inf
        later = max(0.0, variance - (length - 1) * repulsion)
        if length < cap < math.inf:
            later *= cap / (cap - length)  # runs are drawn without replacement
        early = max(0.0, variance + repulsion)  # if X has one column, it is 0 up to rounding
        curves.append(_Curve(early, later, length, cap))
    if used:
        counts[used] = _share(n_features - int(counts[0]), curves)
    weights = np.divide(coefficients, counts, out=np.zeros_like(coefficients), where=counts > 0)
    return counts, weights


def expected_variance(
    statistics: DegreeStatistics,
    counts: np.ndarray,
    weights: np.ndarray | None = None,
    in_squares: bool = False,
) -> float:
    """Average the variance of an estimate with counts[n] features of degree n over the pairs.

    D features of degree n have variance w_n^2 (D V_n - sum_{runs of l features} l (l - 1) S_n).
    V_n is the variance of a feature, S_n the repulsion of two features of a run, and a_n w_n their
    squared scale, where w_n is 1 / D unless `weights` a_n w_n are given. Runs are drawn without
    replacement from the length^n products of n Hadamard rows, which together give <x,y>^n exactly.
    With `in_squares`, features share products (see `hadamard_squares`).
    """
    total = 0.0
    for n in np.flatnonzero(counts[1:] * statistics.coefficients[1:]) + 1:
        count, length = int(counts[n]), statistics.length
        whole = _products(length, int(n)) if statistics.repulsion[n] else math.inf
        drawn = int(count % whole) if count >= whole else count
        runs, rest = divmod(drawn, length)
        pairs = runs * length * (length - 1) + rest * (rest - 1)
        value = drawn * statistics.variance[n] - pairs * statistics.repulsion[n]
        if length < drawn < whole < math.inf:
            value *= (whole - drawn) / (whole - length)
        if in_squares:
            value = max(0.0, value) + drawn * statistics.shared[n]
        weight = 1 / count if weights is None else weights[n] / statistics.coefficients[n]
        total += weight**2 * max(0.0, value)
    return float(total)


def _products(length: int, degree: int) -> float:
    """Return length^degree, the number of distinct products of Hadamard rows (may be infinite)."""
    return math.inf if degree * math.log2(length) > 1000 else float(length) ** degree


@dataclass(frozen=True)
class _Curve:
    """Error of a degree as a function of its features D: early/D up to the knee, later/D beyond.

    Constants are left out, because only differences matter. From `cap` features on, the error does
    not change.
    """

    early: float
    later: float
    knee: int
    cap: float

    def gain(self, count: int) -> float:
        """Return by how much the next feature lowers the error."""
        if count >= self.cap:
            return 0.0
        return (self.early if count < self.knee else self.later) / (count * (count + 1.0))

    def count_above(self, gain: float) -> int:
        """Return the number of features that each gain at least `gain` (at least one)."""
        count = _largest(self.early / gain)
        if count > self.knee:
            count = max(float(self.knee), _largest(self.later / gain))
        return max(1, int(min(count, self.cap, 1e15)))


def _largest(ratio: float) -> float:
    """Return the largest D with D (D - 1) <= ratio."""
    return math.floor((1 + math.sqrt(1 + 4 * ratio)) / 2)


def _share(total: int, curves: list[_Curve]) -> list[int]:
    """Assign `total` features to the curves where they gain most, at least one to each curve.

    Gains fall along each curve, so this is optimal. Bisection on the marginal gain places all but
    a few features, and a heap places the rest.
    """
    high = max(max(curve.early, curve.later) for curve in curves)
    if high <= 0:  # the estimate is exact already
        return [total - len(curves) + 1] + [1] * (len(curves) - 1)
    low = high / (4.0 * total + 4.0) ** 2
    high *= 2
    for _ in range(100):
        middle = math.sqrt(low) * math.sqrt(high)  # low * high might underflow
        if sum(curve.count_above(middle) for curve in curves) > total:
            low = middle
        else:
            high = middle
    counts = [curve.count_above(high) for curve in curves]
    heap = [
        (-curve.gain(count), i) for i, (curve, count) in enumerate(zip(curves, counts, strict=True))
    ]
    heapq.heapify(heap)
    left = total - sum(counts)
    while left:
        gain, i = heapq.heappop(heap)
        step = 1 if gain else left  # if nothing can be gained, all remaining features go here
        counts[i] += step
        left -= step
        heapq.heappush(heap, (-curves[i].gain(counts[i]), i))
    return counts
