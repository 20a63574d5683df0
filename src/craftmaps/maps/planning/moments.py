"""Moments of pairs of rows, on which the variance of random features depends.

Notation: t = <x,y>, c = t^2, N = |x|^2 |y|^2, q = sum_i x_i^2 y_i^2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from craftmaps.kernels import DotProductKernel, Polynomial
from craftmaps.loops.hadamard import MAX_FACTORS, SIDE

_SAMPLE_ROWS = 256


@dataclass(frozen=True)
class PairMoments:
    """Values of <x,y>, |x|^2, |y|^2 and sum_i x_i^2 y_i^2 for sampled pairs of rows.

    If features are multiplied by exp(-|x|^2 / 2), `weight` is the square of the resulting factor
    of the kernel of each pair.
    """

    inner: np.ndarray
    left: np.ndarray
    right: np.ndarray
    fourth: np.ndarray
    weight: np.ndarray | float = 1.0

    @classmethod
    def of_sample(cls, X: Any, rng: np.random.Generator, is_radial: bool = False) -> "PairMoments":
        """Measure all pairs of distinct rows of a subsample (a lone row is its own partner)."""
        n_rows = X.shape[0]
        X = X[np.sort(rng.choice(n_rows, min(n_rows, _SAMPLE_ROWS), replace=False))]
        X = X.astype(np.float64)
        squares = X.multiply(X).tocsr() if hasattr(X, "multiply") else X * X
        pairs = np.triu_indices(X.shape[0], k=1 if X.shape[0] > 1 else 0)
        inner = safe_sparse_dot(X, X.T, dense_output=True)
        fourth = safe_sparse_dot(squares, squares.T, dense_output=True)
        norms = inner.diagonal()
        left, right = norms[pairs[0]], norms[pairs[1]]
        weight = np.exp(-left - right) if is_radial else 1.0
        return cls(inner[pairs], left, right, fourth[pairs], weight)

    def mean(self, values: np.ndarray) -> float:
        """Average a variance, or another square of kernel values, over the pairs."""
        return float(np.mean(self.weight * values))

    def bases(self, projection: str, complex_to_real: bool) -> list[np.ndarray]:
        """Return E[(<w,x><w,y>)^2] of one factor, and for complex w also the pseudo-moment.

        It is N + 2c - 2q for real signs and N + 2c for Gaussian w. For complex w, |.|^2 has
        N + c - q and (.)^2 has 2c - q (Wacker, Ohana and Filippone 2023); Gaussian w have no q.
        """
        c, norms = self.inner**2, self.left * self.right
        q = 0.0 if projection == "gaussian" else self.fourth
        if complex_to_real:
            return [norms + c - q, 2 * c - q]
        return [norms + 2 * c - 2 * q]


def tensor_sketch_variance(kernel: Polynomial, moments: PairMoments) -> float:
    """Average D times the variance of a TensorSketch with D components over the pairs.

    Two index tuples collide with probability 1/D, and a pair of collisions contributes if the signs
    cancel coordinate by coordinate. With t, N and q of the rows (sqrt(gamma) x, sqrt(coef0)), this
    leaves (N + c - q)^p + (2c - q)^p - 2 c^p, up to terms of order 1/D. Lemma 6 of Pham and Pagh
    has N^p + c^p, which assumes that the signs of tuples are 4-wise independent; they are not.
    """
    inner = kernel.gamma * moments.inner + kernel.coef0
    square = inner**2
    norms = (kernel.gamma * moments.left + kernel.coef0) * (
        kernel.gamma * moments.right + kernel.coef0
    )
    fourth = kernel.gamma**2 * moments.fourth + kernel.coef0**2
    plain = (norms + square - fourth) ** kernel.degree
    swapped = (2 * square - fourth) ** kernel.degree
    return float(np.mean(plain + swapped - 2 * square**kernel.degree))


@dataclass(frozen=True)
class DegreeStatistics:
    """Averages over pairs for the features sqrt(a_n) prod_{k<=n} <w_k, x> of each degree n.

    Attributes
    ----------
    coefficients : a_n
    variance : a_n^2 times the sum over bases m of m^n - c^n, the variance of one column
    repulsion : minus the covariance of two features of one run of Hadamard rows (0 otherwise). Two
        different rows of H, applied to the same permuted and signed x, have
        E[<h,x><h,y><h',x><h',y>] = c - (m - c)/(length - 1) instead of c, because `length` such
        rows together give <x,y> exactly.
    second : E[z^2 z'^2] = a_n^2 m^n of one feature
    shared : sum of the covariances of a feature of a square with the features that share a product
        of h factors with it, a_n^2 c^(n-h) (m^h - c^h - h (m - c) c^(h-1)) for each. The last term
        is due to repulsion.
    saved : variance of a fold that a feature in a square saves if four products meet, which make
        quaternions (`hadamard.meeting`). Its cross products with the others that meet it have
        N^n + c^n - N^h c^(n-h) - c^h N^(n-h) each instead of N^n + c^n, times a_n^2.
    length : number of features in a run
    """

    coefficients: np.ndarray
    variance: np.ndarray
    repulsion: np.ndarray
    second: np.ndarray
    shared: np.ndarray
    saved: np.ndarray
    length: int

    @classmethod
    def measure(
        cls,
        kernel: DotProductKernel,
        moments: PairMoments,
        max_degree: int,
        projection: str,
        complex_to_real: bool,
        length: int,
    ) -> "DegreeStatistics":
        """Measure pairs; moments are scaled to at most 1, so that high powers stay finite."""
        bases = moments.bases(projection, complex_to_real)
        square = moments.inner**2
        unit = float(max(base.max() for base in bases)) or 1.0
        runs = projection == "hadamard" and length > 1
        others = [square - (base - square) / (length - 1) for base in bases] if runs else []
        variance, repulsion, second = np.zeros((3, max_degree + 1))
        powers = [np.ones_like(square) for _ in range(1 + len(bases) + len(others))]
        for n in range(max_degree + 1):
            base_powers, other_powers = powers[1 : 1 + len(bases)], powers[1 + len(bases) :]
            second[n] = moments.mean(base_powers[0])
            variance[n] = sum(moments.mean(power - powers[0]) for power in base_powers)
            repulsion[n] = sum(moments.mean(powers[0] - power) for power in other_powers)
            for power, base in zip(powers, [square, *bases, *others], strict=True):
                power *= base / unit
        shared, saved = np.zeros((2, max_degree + 1))
        norms = moments.left * moments.right / unit
        for n in range(2, min(max_degree, 2 * MAX_FACTORS) + 1 if runs else 0):
            for h in (n // 2, n - n // 2):
                base, other = bases[0] / unit, square / unit
                excess = base**h - other**h - h * (base - other) * other ** (h - 1)
                shared[n] += (SIDE - 1) * moments.mean(excess * other ** (n - h))
                saved[n] += (SIDE - 1) * moments.mean(norms**h * other ** (n - h))
        # a_n^2 unit^n is finite even if one of its factors is not
        grow = kernel.maclaurin(max_degree, scale=float(np.sqrt(unit))) ** 2
        grown = (variance * grow, repulsion * grow, second * grow, shared * grow, saved * grow)
        return cls(kernel.maclaurin(max_degree), *grown, length)
