"""How a CRAFTMap spends its columns: what is exact, how far up, how many features per degree."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from craftmaps.kernels import DotProductKernel, Polynomial
from craftmaps.maps import allocation
from craftmaps.maps.exact_terms import ExactTerms
from craftmaps.maps.hadamard_products import padded_length
from craftmaps.maps.moments import DegreeStatistics, PairMoments, tensor_sketch_variance

_RATIOS = (1, 2, 4, 8, 16, 32, 64)  # of D to E
_ENOUGH = 0.15  # the share of the down-projection's variance that the up-projection may add


@dataclass(frozen=True)
class CraftPlan:
    """`exact` terms keep columns of their own; the rest of the up-projection is projected down.

    That rest is a constant of squared value `inside` (none if 0) and counts[n] features of each
    degree n >= 1 with squared scale weights[n]. `error` is the expected relative error.
    """

    exact: ExactTerms
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
    rng: np.random.Generator,
) -> CraftPlan:
    """The plan with the least expected error among those that `h01` and `n_up` allow."""
    largest = allocation.largest_squared_norm(kernel, row_norms(X, squared=True))
    moments = PairMoments.of_sample(X, rng)
    last = allocation.automatic_degree(kernel, largest)
    length = padded_length(X.shape[1])
    statistics = DegreeStatistics.measure(kernel, moments, last, "hadamard", False, length)
    sample = _Sample(kernel, moments, statistics, X.shape[1])
    modes = {"auto": ("none", "constant", "append")}.get(h01, (h01,))
    plans = []
    for mode in modes:
        for ratio in _RATIOS:
            total = ratio * n_components if n_up is None else n_up
            plan, share = sample.plan(mode, n_components, total)
            if plan is not None and (share <= _ENOUGH or ratio == _RATIOS[-1] or n_up is not None):
                plans.append(plan)
                break
    if not plans:
        wanted = f"n_up={n_up}" if n_up is not None else f"n_components={n_components}"
        raise ValueError(
            f"{wanted} has no room for the {sample.exact(modes[0]).n_columns} exact columns of "
            f"h01={h01!r} and a feature of each degree of {kernel}; raise n_up and n_components, "
            f"or use h01='auto'."
        )
    return min(plans, key=lambda plan: plan.error)


def plan_tensor_sketch(
    kernel: Polynomial, X: Any, n_components: int, n_up: int | None, rng: np.random.Generator
) -> CraftPlan:
    """D as given, or the least multiple of E that makes TensorSketch's own error small."""
    moments = PairMoments.of_sample(X, rng)
    value, spread = _spread(moments, kernel.value)
    scale = float(np.mean(value**2))
    for ratio in _RATIOS:
        total = ratio * n_components if n_up is None else n_up
        up = tensor_sketch_variance(kernel, moments) / total
        down = _fold_share(total, n_components) * spread
        if up <= _ENOUGH * down or n_up is not None:
            break
    return given_plan(total, math.sqrt((up + down) / scale) if scale else 0.0)


def given_plan(n_up: int, error: float = math.nan) -> CraftPlan:
    """Everything that an up-projection of another kind makes is projected down."""
    return CraftPlan(ExactTerms(0, 0, 0.0, 0.0), 0.0, np.zeros(1), np.zeros(1), n_up, error)


@dataclass(frozen=True)
class _Sample:
    kernel: DotProductKernel
    moments: PairMoments
    statistics: DegreeStatistics
    n_columns: int

    def exact(self, mode: str) -> ExactTerms:
        """The terms that `mode` gives columns of their own in the output."""
        a0, a1 = (float(a) for a in self.kernel.maclaurin(1))
        n_constant = int(mode != "none" and a0 > 0)
        return ExactTerms(n_constant, self.n_columns if mode == "append" and a1 else 0, a0, a1)

    def plan(self, mode: str, n_components: int, n_up: int) -> tuple[CraftPlan | None, float]:
        """The plan, and the variance of its up-projection relative to its down-projection's."""
        exact = self.exact(mode)
        n_in, n_out = n_up - exact.n_columns, n_components - exact.n_columns
        inside = 0.0 if exact.n_constant else exact.a0
        n_random = n_in - int(inside > 0)
        counts, weights = self._counts(n_random, linear=bool(exact.n_linear), full=mode == "up")
        if counts is None or n_out < 1:
            return None, math.inf
        up = allocation.expected_variance(self.statistics, counts)
        down = _fold_share(n_in, n_out) * self._down(exact, counts)
        scale = float(np.mean(self.kernel.value(self.moments.inner) ** 2))
        error = math.sqrt((up + down) / scale) if scale else 0.0
        share = up / down if down > 0 else (0.0 if up == 0 else math.inf)
        return CraftPlan(exact, inside, counts, weights, n_up, error), share

    def _counts(self, n_random: int, linear: bool, full: bool) -> tuple[Any, Any]:
        """Features of degree 1 and above; `full` reserves a whole run for the linear term."""
        coefficients = self.statistics.coefficients
        reserved = self.statistics.length if full and coefficients[1:2].any() else 0
        least = 2 if linear or reserved else 1
        if n_random - reserved < np.count_nonzero(coefficients[least:]):
            return None, None
        counts, weights = allocation.optimized(self.statistics, n_random - reserved, least)
        if reserved:
            counts[1] = reserved
            weights[1] = coefficients[1] / reserved
        return counts, weights

    def _down(self, exact: ExactTerms, counts: np.ndarray) -> float:
        """Mean of |u|^2 |v|^2 + <u,v>^2 - 2 sum u_i^2 v_i^2 over pairs, u without exact terms."""

        def rest(t: np.ndarray) -> np.ndarray:
            linear = exact.a1 * t if exact.n_linear else 0.0
            return self.kernel.value(t) - linear - (exact.a0 if exact.n_constant else 0.0)

        _, spread = _spread(self.moments, rest)
        used = np.flatnonzero(counts)
        sizes = self.statistics.coefficients[used] ** 2 * self.statistics.second[used]
        return max(0.0, spread - 2 * float(np.sum(sizes / counts[used])))


def _spread(moments: PairMoments, kernel: Any) -> tuple[np.ndarray, float]:
    """Kernel values of the pairs, and the mean of K(x,x) K(y,y) + K(x,y)^2."""
    value = kernel(moments.inner)
    return value, float(np.mean(kernel(moments.left) * kernel(moments.right) + value**2))


def _fold_share(n_in: int, n_out: int) -> float:
    """(D - E) / (E (D - 1)): the factor of the variance of a fold, or SRHT, from D to E."""
    return (n_in - n_out) / (n_out * (n_in - 1)) if n_in > n_out else 0.0
