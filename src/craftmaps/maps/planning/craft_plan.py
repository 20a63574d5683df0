"""How a CRAFTMap spends its columns: what is exact, how far up, how many features per degree."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from craftmaps.kernels import DotProductKernel, Polynomial
from craftmaps.maps.parts.exact_terms import ExactTerms
from craftmaps.maps.parts.hadamard_products import padded_length
from craftmaps.maps.planning import allocation
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments, tensor_sketch_variance

_RATIOS = (1, 2, 4, 8, 16, 32, 64)  # of D to E
_LEARNED = 1 << 14  # D, or 8 E, beyond which a learned subspace hardly changes: it costs D E
_EXACT = {"none": -1, "up": 0, "append": 1}  # the last degree that h01 makes exact
_LONG = 100.0  # times the median of k(x, x), beyond which rows do not take part in plans
_ENOUGH = 0.15  # the share of the down-projection's variance that the up-projection may add


@dataclass(frozen=True)
class CraftPlan:
    """`exact` terms keep columns of their own; the rest of the up-projection is projected down.

    They are all terms up to `exact_degree`, -1 for none. The rest is a constant of squared value
    `inside` (none if 0) and counts[n] features of each degree n >= 1 with squared scale weights[n].
    `error` is the expected relative error.
    """

    exact: ExactTerms
    exact_degree: int
    inside: float
    counts: np.ndarray
    weights: np.ndarray
    n_up: int
    error: float


def plan_maclaurin(
    kernel: DotProductKernel,
    X: Any,
    n_components: int,
    n_up: int | None,
    h01: str,
    down: str,
    rng: np.random.Generator,
) -> CraftPlan:
    """The plan with the least expected error among those that `h01` and `n_up` allow.

    With h01="auto", terms may be exact up to the degree for which there is room. If the
    down-projection is learned, none beyond degree 1 are: a principal subspace has them in it, at
    less than their columns. Rows so long that their errors would drown those of all others do not
    take part in the choice, but in the error that is expected.
    """
    squares = row_norms(X, squared=True).astype(np.float64)
    largest = allocation.largest_squared_norm(kernel, squares)
    sizes = kernel.value(squares)
    typical = sizes <= _LONG * np.median(sizes)
    moments = PairMoments.of_sample(X if typical.all() else X[typical], rng)
    last = allocation.automatic_degree(kernel, largest)
    tail = allocation.truncated_tail(kernel, last, largest, "lower gamma", stacklevel=6)
    length = padded_length(X.shape[1])
    statistics = DegreeStatistics.measure(kernel, moments, last, "hadamard", False, length)
    sample = _Sample(kernel, moments, statistics, X.shape[1], down, tail > 0)
    learned = down == "principal"
    most = 1 if learned else last
    degrees = sample.degrees(most, n_components) if h01 == "auto" else [_EXACT[h01]]

    def best(degree: int, totals: list[int]) -> CraftPlan | None:
        """The first plan that is not held up by its up-projection, or the last."""
        found = None
        for total in totals:
            plan, share = sample.plan(degree, n_components, total, full=h01 == "up")
            found = plan or found
            if share <= _ENOUGH:
                break
        return found

    totals = _totals(n_components, n_up, learned)
    plans = [plan for degree in degrees[:3] if (plan := best(degree, totals))]
    if plans:  # monomials of higher degrees are to lower the error, not to raise the cost
        enough = min(plans, key=lambda plan: plan.error).n_up
        totals = [total for total in totals if total <= enough]
        plans += [plan for degree in degrees[3:] if (plan := best(degree, totals))]
    if not plans:
        wanted = f"n_up={n_up}" if n_up is not None else f"n_components={n_components}"
        raise ValueError(
            f"{wanted} has no room for the {sample.exact(degrees[0]).n_columns} exact columns of "
            f"h01={h01!r} and a feature of each degree of {kernel}; raise n_up and n_components, "
            f"or use h01='auto'."
        )
    chosen = min(plans, key=lambda plan: plan.error)
    if typical.all():
        return chosen
    moments = PairMoments.of_sample(X, rng)
    statistics = DegreeStatistics.measure(kernel, moments, last, "hadamard", False, length)
    sample = replace(sample, moments=moments, statistics=statistics)
    variances = sample.variances(
        chosen.exact, chosen.counts, chosen.inside, chosen.n_up, n_components
    )
    return replace(chosen, error=sample.error(*variances))


def plan_tensor_sketch(
    kernel: Polynomial,
    X: Any,
    n_components: int,
    n_up: int | None,
    down: str,
    rng: np.random.Generator,
) -> CraftPlan:
    """D as given, or the least multiple of E that makes TensorSketch's own error small."""
    moments = PairMoments.of_sample(X, rng)
    value, spread = _spread(moments, kernel.value)
    scale = float(np.mean(value**2))
    for total in _totals(n_components, n_up, down == "principal"):
        up = tensor_sketch_variance(kernel, moments) / total
        folded = _down_share(down, total, n_components) * spread
        if up <= _ENOUGH * folded:
            break
    return given_plan(total, math.sqrt((up + folded) / scale) if scale else 0.0)


def given_plan(n_up: int, error: float = math.nan) -> CraftPlan:
    """Everything that an up-projection of another kind makes is projected down."""
    exact = ExactTerms(0, 0, 0.0, 0.0)
    return CraftPlan(exact, -1, 0.0, np.zeros(1), np.zeros(1), n_up, error)


@dataclass(frozen=True)
class _Sample:
    kernel: DotProductKernel
    moments: PairMoments
    statistics: DegreeStatistics
    n_columns: int
    down: str
    truncated: bool

    def degrees(self, most: int, n_components: int) -> list[int]:
        """-1, 0, 1 and the higher ones of the kernel up to which exact terms have room."""
        found = [-1]
        for n in range(max(most, 1) + 1):
            if self.exact(n).n_columns > n_components:
                break
            if n < 2 or self.statistics.coefficients[n]:
                found.append(n)
        return found

    def exact(self, last: int) -> ExactTerms:
        """The terms up to degree `last` as columns of their own."""
        a0, a1, *higher = (float(a) for a in self.kernel.maclaurin(max(last, 1)))
        return ExactTerms(
            int(last >= 0 and a0 > 0),
            self.n_columns if last >= 1 and a1 else 0,
            a0,
            a1,
            tuple(higher),
            self.n_columns,
        )

    def plan(
        self, last: int, n_components: int, n_up: int, full: bool
    ) -> tuple[CraftPlan | None, float]:
        """The plan with exact terms up to degree `last`, and the share of its up-projection.

        The share is that projection's variance, relative to that of the down-projection. `full`
        reserves a whole run of features for the linear term.
        """
        exact = self.exact(last)
        n_in, n_out = n_up - exact.n_columns, n_components - exact.n_columns
        inside = 0.0 if exact.n_constant else exact.a0
        n_random = n_in - int(inside > 0)
        counts, weights = self._counts(n_random, max(1, last + 1), full)
        if counts is None:
            return None, math.inf
        complete = not counts.any() and not inside
        if n_out < (0 if complete else 1):
            return None, math.inf
        if complete and exact.n_constant:  # nothing else is left to fill the columns
            exact = replace(exact, n_constant=1 + n_out)
        up, down = self.variances(exact, counts, inside, n_up, n_components)
        share = up / down if down > 0 else (0.0 if up == 0 else math.inf)
        error = self.error(up, down)
        return CraftPlan(exact, last, inside, counts, weights, n_up, error), share

    def variances(
        self, exact: ExactTerms, counts: np.ndarray, inside: float, n_up: int, n_components: int
    ) -> tuple[float, float]:
        """Those of the up-projection and of the down-projection."""
        n_in, n_out = n_up - exact.n_columns, n_components - exact.n_columns
        up, down = allocation.expected_variance(self.statistics, counts), 0.0
        if n_out:
            down = _down_share(self.down, n_in, n_out) * self._down(exact, counts, inside)
        return up, down

    def error(self, up: float, down: float) -> float:
        """The expected relative error, with what is lost of a series that is cut off."""
        value = self.kernel.value(self.moments.inner)
        scale, bias = float(np.mean(value**2)), 0.0
        if self.truncated:
            series = self.statistics.coefficients
            known = np.polynomial.polynomial.polyval(self.moments.inner, series)
            bias = float(np.mean((known - value) ** 2))
        return math.sqrt((up + down + bias) / scale) if scale else 0.0

    def _counts(self, n_random: int, least: int, full: bool) -> tuple[Any, Any]:
        """Features of degree `least` and above, and a whole run of degree 1 if `full`."""
        coefficients = self.statistics.coefficients
        reserved = self.statistics.length if full and coefficients[1:2].any() else 0
        least = 2 if reserved else least
        if n_random - reserved < np.count_nonzero(coefficients[least:]):
            return None, None
        counts, weights = allocation.optimized(self.statistics, n_random - reserved, least)
        if reserved:
            counts[1] = reserved
            weights[1] = coefficients[1] / reserved
        return counts, weights

    def _down(self, exact: ExactTerms, counts: np.ndarray, inside: float) -> float:
        """Mean of |u|^2 |v|^2 + <u,v>^2 - 2 sum u_i^2 v_i^2 over pairs, u without exact terms.

        The last sum, which random signs take off, is not there for Gaussian numbers.
        """

        known = [exact.a0 if exact.n_constant else 0.0, *exact.coefficients]

        def rest(t: np.ndarray) -> np.ndarray:
            return np.asarray(self.kernel.value(t) - np.polynomial.polynomial.polyval(t, known))

        _, spread = _spread(self.moments, rest)
        if self.down == "gaussian":
            return spread
        used = np.flatnonzero(counts)
        sizes = self.statistics.coefficients[used] ** 2 * self.statistics.second[used]
        return max(0.0, spread - 2 * float(np.sum(sizes / counts[used]) + inside**2))


def _totals(n_components: int, n_up: int | None, learned: bool) -> list[int]:
    """The sizes D to choose from."""
    if n_up is not None:
        return [n_up]
    most = max(8, _LEARNED // n_components) if learned else _RATIOS[-1]
    return [ratio * n_components for ratio in _RATIOS if ratio <= most]


def _spread(moments: PairMoments, kernel: Any) -> tuple[np.ndarray, float]:
    """Kernel values of the pairs, and the mean of K(x,x) K(y,y) + K(x,y)^2."""
    value = kernel(moments.inner)
    return value, float(np.mean(kernel(moments.left) * kernel(moments.right) + value**2))


def _down_share(down: str, n_in: int, n_out: int) -> float:
    """The factor of the variance of a projection from D to E: (D - E) / (E (D - 1)) of a fold.

    An SRHT has it too, D made a power of two; 1 / E is that of independent rows.
    """
    if down in ("gaussian", "rademacher", "sparse"):
        return 1 / n_out
    if down == "srht":
        n_in = padded_length(n_in)
    return (n_in - n_out) / (n_out * (n_in - 1)) if n_in > n_out else 0.0
