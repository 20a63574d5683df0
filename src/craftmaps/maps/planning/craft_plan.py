"""Plans of a CraftMap: its exact terms, its size D, and its features per degree."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from craftmaps.kernels import DotProductKernel, Polynomial
from craftmaps.loops.hadamard import SIDE
from craftmaps.maps.parts.exact_terms import ExactTerms
from craftmaps.maps.parts.hadamard_products import padded_length
from craftmaps.maps.parts.hadamard_squares import Shape
from craftmaps.maps.planning import allocation
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments, tensor_sketch_variance

_RATIOS = (1, 2, 4, 8, 16, 32, 64)  # candidates for D / E
_MAX_LEARNED_UP = 1 << 14  # a larger D hardly changes a learned subspace, but costs D E
_MIN_LEARNED_RATIO = 8  # smallest D / E of a learned subspace
_EXACT_DEGREE = {"none": -1, "up": 0, "append": 1}  # the highest degree that h01 makes exact
_MAX_TYPICAL_SIZE = 100.0  # a row is very long if k(x, x) exceeds this many medians
_SMALL_UP_SHARE = 0.15  # variance that the up-projection may add, relative to the down-projection


@dataclass(frozen=True)
class CraftPlan:
    """The exact terms of a CraftMap and the features that are projected down.

    The `exact` terms, up to `exact_degree` (-1 if there are none), have their own columns. The rest
    is a constant with square `inside` (none if 0) and counts[n] features of each degree n >= 1 with
    squared scale weights[n]. `error` is the expected relative error.
    """

    exact: ExactTerms
    exact_degree: int
    inside: float
    counts: np.ndarray
    weights: np.ndarray
    n_up: int
    error: float


@dataclass(frozen=True)
class MaclaurinPlanner:
    """Planner for Random Maclaurin features, with statistics of the rows.

    `moments` and `statistics` leave out very long rows, whose errors would dominate all others.
    `all_moments` includes them, and is None if there are no such rows.
    """

    kernel: DotProductKernel
    moments: PairMoments
    statistics: DegreeStatistics
    n_columns: int
    truncated: bool
    all_moments: PairMoments | None = None

    @classmethod
    def measure(
        cls,
        kernel: DotProductKernel,
        X: Any,
        rng: np.random.Generator,
        is_radial: bool = False,
    ) -> "MaclaurinPlanner":
        """Measure the rows of X.

        With `is_radial`, features are multiplied by exp(-|x|^2 / 2), so that no features are large.
        """
        squares = row_norms(X, squared=True).astype(np.float64)
        largest = allocation.largest_squared_norm(kernel, squares)
        last = allocation.automatic_degree(kernel, largest)
        if is_radial:
            moments = PairMoments.of_sample(X, rng, is_radial=True)
            statistics = _measured(kernel, moments, last, X.shape[1])
            return cls(kernel, moments, statistics, X.shape[1], kernel.tail(last, largest) > 0)
        sizes = kernel.value(squares)
        typical = sizes <= _MAX_TYPICAL_SIZE * np.median(sizes)
        moments = PairMoments.of_sample(X if typical.all() else X[typical], rng)
        all_moments = None if typical.all() else PairMoments.of_sample(X, rng)
        tail = allocation.truncated_tail(kernel, last, largest, "lower gamma")
        statistics = _measured(kernel, moments, last, X.shape[1])
        return cls(kernel, moments, statistics, X.shape[1], tail > 0, all_moments)

    @cached_property
    def values(self) -> tuple[np.ndarray, ...]:
        """Kernel values k(x, y), k(x, x) and k(y, y) of the pairs, which all plans need."""
        return _values(self.moments, self.kernel)

    def plan(self, n_components: int, n_up: int | None, h01: str, down: str) -> CraftPlan:
        """Return the plan with the lowest expected error that `h01` and `n_up` allow.

        With h01="auto", terms may be exact up to the highest degree that fits. If the
        down-projection is learned, terms beyond degree 1 are never exact, because a principal
        subspace contains them with fewer columns. Very long rows do not affect the choice, but
        they are included in the expected error.
        """
        sample = _Sample(self, down)
        learned = down == "principal"
        last = len(self.statistics.coefficients) - 1
        most = 1 if learned else last
        degrees = sample.degrees(most, n_components) if h01 == "auto" else [_EXACT_DEGREE[h01]]

        def best(degree: int, totals: list[int]) -> CraftPlan | None:
            """Return the first plan whose up-projection adds little error, or the last plan."""
            best_plan = None
            for total in totals:
                plan, share = sample.plan(degree, n_components, total, full=h01 == "up")
                best_plan = plan or best_plan
                if share <= _SMALL_UP_SHARE:
                    break
            return best_plan

        totals = _totals(n_components, n_up, learned)
        plans = [plan for degree in degrees[:3] if (plan := best(degree, totals))]
        if plans:  # exact higher degrees must lower the error without raising the cost
            enough = min(plans, key=lambda plan: plan.error).n_up
            totals = [total for total in totals if total <= enough]
            plans += [plan for degree in degrees[3:] if (plan := best(degree, totals))]
        if not plans:
            wanted = f"n_up={n_up}" if n_up is not None else f"n_components={n_components}"
            raise ValueError(
                f"{wanted} is too small for the {sample.exact(degrees[0]).n_columns} exact columns "
                f"of h01={h01!r} and a feature of each degree of {self.kernel}; raise n_up and "
                f"n_components, or use h01='auto'."
            )
        chosen = min(plans, key=lambda plan: plan.error)
        if self.all_moments is None:
            return chosen
        statistics = _measured(self.kernel, self.all_moments, last, self.n_columns)
        everything = replace(self, moments=self.all_moments, statistics=statistics)
        sample, exact = _Sample(everything, down), chosen.exact
        n_in, n_out = chosen.n_up - exact.n_columns, n_components - exact.n_columns
        variances = sample.variances(exact, chosen.counts, chosen.inside, n_in, n_out)
        return replace(chosen, error=sample.error(*variances))


def _measured(
    kernel: DotProductKernel, moments: PairMoments, last: int, n_columns: int
) -> DegreeStatistics:
    length = padded_length(n_columns)
    return DegreeStatistics.measure(kernel, moments, last, "hadamard", False, length)


@dataclass(frozen=True)
class SketchPlanner:
    """Planner for TensorSketch, with statistics of the rows."""

    kernel: Polynomial
    moments: PairMoments

    @classmethod
    def measure(cls, kernel: Polynomial, X: Any, rng: np.random.Generator) -> "SketchPlanner":
        """Measure the rows of X."""
        return cls(kernel, PairMoments.of_sample(X, rng))

    def plan(self, n_components: int, n_up: int | None, h01: str, down: str) -> CraftPlan:
        """Take D as given, or the smallest multiple of E with a small error of the sketch."""
        values = _values(self.moments, self.kernel)
        spread, scale = _spread(self.moments, *values), float(np.mean(values[0] ** 2))
        for total in _totals(n_components, n_up, down == "principal"):
            up = tensor_sketch_variance(self.kernel, self.moments) / total
            folded = _down_share(down, total, n_components) * spread
            if up <= _SMALL_UP_SHARE * folded:
                break
        return given_plan(total, math.sqrt((up + folded) / scale) if scale else 0.0)


def given_plan(n_up: int, error: float = math.nan) -> CraftPlan:
    """Return the plan for any other up-projection: all its features are projected down."""
    exact = ExactTerms(0, 0, 0.0, 0.0)
    return CraftPlan(exact, -1, 0.0, np.zeros(1), np.zeros(1), n_up, error)


@dataclass(frozen=True)
class _Sample:
    """Expected errors of plans with one kind of down-projection."""

    measured: MaclaurinPlanner
    down: str

    def degrees(self, most: int, n_components: int) -> list[int]:
        """Return the possible exact degrees: -1 (none), 0, 1 and higher degrees that fit."""
        degrees = [-1]
        for n in range(max(most, 1) + 1):
            if self.exact(n).n_columns > n_components:
                break
            if n < 2 or self.measured.statistics.coefficients[n]:
                degrees.append(n)
        return degrees

    def exact(self, last: int) -> ExactTerms:
        """Return the exact terms up to degree `last`."""
        series = [*self.measured.statistics.coefficients.tolist(), 0.0]  # it may end at degree 0
        a0, a1, *higher = series[: max(last, 1) + 1]
        return ExactTerms(
            int(last >= 0 and a0 > 0),
            self.measured.n_columns if last >= 1 and a1 else 0,
            a0,
            a1,
            tuple(higher),
            self.measured.n_columns,
        )

    def plan(
        self, last: int, n_components: int, n_up: int, full: bool
    ) -> tuple[CraftPlan | None, float]:
        """Return the plan with exact terms up to degree `last`, and its up-projection share.

        The share is the variance of the up-projection relative to the variance of the
        down-projection. `full` reserves a whole run of features for the linear term.
        """
        exact = self.exact(last)
        n_columns = exact.n_columns
        n_in, n_out = n_up - n_columns, n_components - n_columns
        inside = 0.0 if exact.n_constant else exact.a0
        n_random = n_in - int(inside > 0)
        counts, weights = self._counts(n_random, max(1, last + 1), full)
        if counts is None:
            return None, math.inf
        complete = not counts.any() and not inside
        if n_out < (0 if complete else 1):
            return None, math.inf
        if complete and exact.n_constant:  # the constant fills the remaining columns
            exact, n_out = replace(exact, n_constant=1 + n_out), 0
        up, down = self.variances(exact, counts, inside, n_in, n_out)
        share = up / down if down > 0 else (0.0 if up == 0 else math.inf)
        error = self.error(up, down)
        return CraftPlan(exact, last, inside, counts, weights, n_up, error), share

    def variances(
        self, exact: ExactTerms, counts: np.ndarray, inside: float, n_in: int, n_out: int
    ) -> tuple[float, float]:
        """Return the variances of the up-projection and of its projection to `n_out` columns."""
        statistics, n_random = self.measured.statistics, int(counts[1:].sum())
        folded = self.down == "fold" and n_out > 0
        shape = Shape.of(n_random, statistics.length, n_out) if folded else None
        up = allocation.expected_variance(statistics, counts, in_squares=shape is not None)
        down = 0.0
        if n_out:
            down = _down_share(self.down, n_in, n_out) * self._down(exact, counts, inside)
        if shape and shape.group == SIDE:
            used = np.flatnonzero(counts)
            down = max(0.0, down - float(np.sum(statistics.saved[used] / counts[used])))
        return up, down

    def error(self, up: float, down: float) -> float:
        """Return the expected relative error, including the truncation of the series."""
        scale, bias = self._scale_and_bias
        return math.sqrt((up + down + bias) / scale) if scale else 0.0

    @cached_property
    def _scale_and_bias(self) -> tuple[float, float]:
        """The mean square of the kernel, and of what the truncation of the series leaves out."""
        moments, value = self.measured.moments, self.measured.values[0]
        bias = 0.0
        if self.measured.truncated:
            series = self.measured.statistics.coefficients
            known = np.polynomial.polynomial.polyval(moments.inner, series)
            bias = moments.mean((known - value) ** 2)
        return moments.mean(value**2), bias

    def _counts(self, n_random: int, least: int, full: bool) -> tuple[Any, Any]:
        """Allocate features of degree `least` and above, and a run of degree 1 if `full`."""
        coefficients = self.measured.statistics.coefficients
        reserved = self.measured.statistics.length if full and coefficients[1:2].any() else 0
        least = 2 if reserved else least
        if n_random - reserved < np.count_nonzero(coefficients[least:]):
            return None, None
        counts, weights = allocation.optimized(self.measured.statistics, n_random - reserved, least)
        if reserved:
            counts[1] = reserved
            weights[1] = coefficients[1] / reserved
        return counts, weights

    def _down(self, exact: ExactTerms, counts: np.ndarray, inside: float) -> float:
        """Average |u|^2 |v|^2 + <u,v>^2 - 2 sum u_i^2 v_i^2 over pairs, without exact terms.

        The last sum appears for random signs, but not for Gaussian numbers.
        """
        known = [exact.a0 if exact.n_constant else 0.0, *exact.coefficients]
        moments = self.measured.moments
        products = (moments.inner, moments.left, moments.right)
        rest = (
            value - np.polynomial.polynomial.polyval(t, known)
            for value, t in zip(self.measured.values, products, strict=True)
        )
        spread = _spread(moments, *rest)
        if self.down == "gaussian":
            return spread
        used = np.flatnonzero(counts)
        sizes = self.measured.statistics.second[used]
        constant = moments.mean(np.full_like(moments.inner, inside**2))
        return max(0.0, spread - 2 * (float(np.sum(sizes / counts[used])) + constant))


def _totals(n_components: int, n_up: int | None, learned: bool) -> list[int]:
    """Return the sizes D to choose from."""
    if n_up is not None:
        return [n_up]
    most = max(_MIN_LEARNED_RATIO, _MAX_LEARNED_UP // n_components) if learned else _RATIOS[-1]
    return [ratio * n_components for ratio in _RATIOS if ratio <= most]


def _values(moments: PairMoments, kernel: DotProductKernel) -> tuple[np.ndarray, ...]:
    """Return K(x,y), K(x,x) and K(y,y) of the pairs."""
    return tuple(kernel.value(t) for t in (moments.inner, moments.left, moments.right))


def _spread(moments: PairMoments, value: Any, left: Any, right: Any) -> float:
    """Return the mean of K(x,x) K(y,y) + K(x,y)^2."""
    return moments.mean(left * right + value**2)


def _down_share(down: str, n_in: int, n_out: int) -> float:
    """Return the variance factor of a projection from D to E columns.

    It is (D - E) / (E (D - 1)) for a fold, the same with D rounded up to a power of two for an
    SRHT, and 1 / E for independent rows.
    """
    if down in ("gaussian", "rademacher", "sparse"):
        return 1 / n_out
    if down == "srht":
        n_in = padded_length(n_in)
    return (n_in - n_out) / (n_out * (n_in - 1)) if n_in > n_out else 0.0
