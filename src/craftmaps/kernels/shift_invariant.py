"""Shift-invariant kernels k(x, y) = E cos<w, x - y>, defined by the distribution of w.

By Bochner's theorem these are all continuous kernels of x - y with k(x, x) = 1. Gamma is an
inverse length scale, k(x, y) = f(gamma (x - y)), except in `Gaussian`, which follows scikit-learn.
"""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse, special, stats
from sklearn.base import clone
from sklearn.utils import check_array

from craftmaps.kernels import pairs
from craftmaps.kernels.base import Kernel
from craftmaps.storage.packing import storable
from craftmaps.validation import check_number, check_rows_pair

_BANDWIDTH_ROWS = 512
_BANDWIDTH_SEED = 20070913  # fixed, so that equal rows give equal bandwidths
_LARGEST_NU = 50.0  # above it, a Matern kernel and its Gaussian limit differ by less than 1 %
_POLYNOMIALS_OF_MATERN = {  # factors of exp(-s)
    0.5: (1.0, 0.0, 0.0),
    1.5: (1.0, 1.0, 0.0),
    2.5: (1.0, 1.0, 1 / 3),
}


class ShiftInvariantKernel(Kernel):
    """Base class of kernels of x - y with k(x, x) = 1 that can draw their frequencies.

    A subclass defines `_draw` and `against`. It can also define `_quantiles`, which computes
    frequencies from uniform numbers, and `_mixture`, which draws s if w = s g with normal g.
    """

    gamma: float | str

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Compute the Gram matrix between the rows of X and Y (or X, if Y is None)."""
        rows, others = check_rows_pair(X, Y)
        kernel = self.resolved(rows)
        if Y is not None and isinstance(self.gamma, str):
            raise ValueError(
                f"{self!r} has a gamma that depends on the rows, but two sets of rows were given; "
                f"use kernel.resolved(X), whose gamma is a number."
            )
        out = np.empty((rows.shape[0], others.shape[0]), dtype=rows.dtype)
        pairs.fill_blocks(kernel.against(others, out.dtype), rows, out, kernel.threads)
        if Y is None:
            np.fill_diagonal(out, 1.0)
        return out

    def resolved(self, X: Any) -> Self:
        """Return a copy whose gamma is a number, computed from X if gamma is a string."""
        self.check()
        kernel: Self = clone(self)
        if isinstance(self.gamma, str):
            X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
            kernel.set_params(gamma=self._bandwidth(X))
        return kernel

    def check_resolved(self) -> None:
        self.check()
        if isinstance(self.gamma, str):
            raise ValueError(f"{self!r} has a gamma that depends on the rows.")

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0])

    def frequencies(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n independent frequencies in d dimensions; gamma must be a number."""
        return float(self.gamma) * self._draw(n, d, rng)

    def n_uniform(self, d: int) -> int | None:
        """Return how many uniform numbers `quantiles` needs per frequency, or None."""
        return None

    def quantiles(self, points: np.ndarray) -> np.ndarray:
        """Map points of the open unit cube, one per row, to frequencies by inverse CDFs."""
        return float(self.gamma) * self._quantiles(points)

    def mixture(self, n: int, rng: np.random.Generator) -> np.ndarray | None:
        """Draw n values of s if w is distributed as s g with standard normal g, else None."""
        scales = self._mixture(n, rng)
        return None if scales is None else float(self.gamma) * scales

    def lengths(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray | None:
        """Draw n values of |w| if the distribution of w is rotation invariant, else None."""
        scales = self.mixture(n, rng)
        return None if scales is None else scales * normal_lengths(n, d, rng)

    def check(self) -> None:
        """Raise ValueError that names the first invalid parameter."""
        if isinstance(self.gamma, str):
            if self.gamma not in ("scale", "median"):
                raise ValueError(
                    f"{type(self).__name__}: gamma must be a number above 0, 'scale' or 'median', "
                    f"got {self.gamma!r}."
                )
        else:
            check_number(self, "gamma", self.gamma, above=0)
        self._check()

    def _bandwidth(self, X: Any) -> float:
        if self.gamma == "scale":
            return 1 / float(np.sqrt(X.shape[1] * _variance(X)))
        return 1 / _median_distance(X, "euclidean")

    @abstractmethod
    def _draw(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n frequencies for gamma = 1."""

    def _quantiles(self, points: np.ndarray) -> np.ndarray:
        """Compute frequencies for gamma = 1, if `n_uniform` is not None."""
        raise ValueError(f"{type(self).__name__} has no inverse distribution of frequencies.")

    def _mixture(self, n: int, rng: np.random.Generator) -> np.ndarray | None:
        return None

    def _check(self) -> None:
        """Raise ValueError for an invalid parameter other than gamma."""


@storable
class Gaussian(ShiftInvariantKernel):
    """Gaussian kernel exp(-gamma |x - y|^2).

    Its frequencies are normal: w ~ N(0, 2 gamma I).

    Parameters
    ----------
    gamma : float, "scale" or "median", default="scale"
        Inverse squared length scale. "scale" is 1 / (n_features * X.var()), as in scikit-learn's
        SVC. "median" is 1 / (2 m^2), where m is the median distance between rows of a sample. Both
        are computed from the rows given to `fit` of a map, or to the kernel itself.

    Examples
    --------
    >>> from craftmaps import Gaussian
    >>> Gaussian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(4).tolist()
    [[0.3679]]
    >>> Gaussian(gamma="median").resolved([[0.0], [2.0]]).gamma
    0.125
    """

    short_name = "rbf"

    def __init__(self, gamma: float | str = "scale") -> None:
        self.gamma = gamma

    def frequencies(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        return self._scale() * self._draw(n, d, rng)

    def n_uniform(self, d: int) -> int | None:
        return d

    def quantiles(self, points: np.ndarray) -> np.ndarray:
        return self._scale() * self._quantiles(points)

    def mixture(self, n: int, rng: np.random.Generator) -> np.ndarray | None:
        return np.full(n, self._scale())

    def _scale(self) -> float:
        return float(np.sqrt(2 * float(self.gamma)))

    def _bandwidth(self, X: Any) -> float:
        inverse_length = super()._bandwidth(X)
        return inverse_length**2 if self.gamma == "scale" else inverse_length**2 / 2

    def _draw(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((n, d))

    def _quantiles(self, points: np.ndarray) -> np.ndarray:
        return np.asarray(special.ndtri(points))

    def against(self, Y: Any, dtype: np.dtype) -> pairs.Fill:
        return pairs.gaussian(Y, float(self.gamma), dtype)

    def onnx(self, g: Any, x: str, landmarks: np.ndarray) -> str:
        squared = pairs.onnx_squared_distances(g, x, landmarks)
        return str(g.add("Exp", g.add("Mul", squared, np.float64(-float(self.gamma)))))


@storable
class Laplacian(ShiftInvariantKernel):
    """Laplacian kernel exp(-gamma |x - y|_1).

    Its frequencies have independent Cauchy entries with scale gamma.

    Parameters
    ----------
    gamma : float, "scale" or "median", default="scale"
        Inverse length scale. "scale" is 1 / (n_features * X.std()). "median" is 1 / m, where m is
        the median of |x - y|_1 over pairs of rows of a sample.

    Examples
    --------
    >>> from craftmaps import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, -1.0]]).round(4).tolist()
    [[0.3679]]
    """

    short_name = "laplacian"

    def __init__(self, gamma: float | str = "scale") -> None:
        self.gamma = gamma

    def n_uniform(self, d: int) -> int | None:
        return d

    def _bandwidth(self, X: Any) -> float:
        if self.gamma == "scale":
            return float(1 / (X.shape[1] * np.sqrt(_variance(X))))
        return 1 / _median_distance(X, "manhattan")

    def _draw(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_cauchy((n, d))

    def _quantiles(self, points: np.ndarray) -> np.ndarray:
        return np.tan(np.pi * (points - 0.5))

    def against(self, Y: Any, dtype: np.dtype) -> pairs.Fill:
        return pairs.laplacian(Y, float(self.gamma), dtype)

    def onnx(self, g: Any, x: str, landmarks: np.ndarray) -> str:
        scaled = pairs.onnx_differences(g, x, landmarks, float(self.gamma))
        return str(g.add("Exp", g.add("Neg", g.total(g.add("Abs", scaled), axis=2))))


@storable
class Cauchy(ShiftInvariantKernel):
    """Cauchy kernel prod_i 1 / (1 + gamma^2 (x_i - y_i)^2).

    Its frequencies have independent Laplace entries with scale gamma.

    Parameters
    ----------
    gamma : float, "scale" or "median", default="scale"
        Inverse length scale. "scale" is 1 / sqrt(n_features * X.var()). "median" is 1 / m, where m
        is the median distance between rows of a sample.

    Examples
    --------
    >>> from craftmaps import Cauchy
    >>> Cauchy(gamma=0.5)([[0.0, 0.0]], [[2.0, 2.0]]).tolist()
    [[0.25]]
    """

    short_name = "cauchy"

    def __init__(self, gamma: float | str = "scale") -> None:
        self.gamma = gamma

    def n_uniform(self, d: int) -> int | None:
        return d

    def _draw(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(size=(n, d))

    def _quantiles(self, points: np.ndarray) -> np.ndarray:
        return np.asarray(stats.laplace.ppf(points))

    def against(self, Y: Any, dtype: np.dtype) -> pairs.Fill:
        return pairs.cauchy(Y, float(self.gamma), dtype)

    def onnx(self, g: Any, x: str, landmarks: np.ndarray) -> str:
        scaled = pairs.onnx_differences(g, x, landmarks, float(self.gamma))
        factor = g.add("Add", g.add("Mul", scaled, scaled), np.float64(1))
        return str(g.add("Exp", g.add("Neg", g.total(g.add("Log", factor), axis=2))))


@storable
class Matern(ShiftInvariantKernel):
    """Matern kernel 2^(1-nu) / Gamma(nu) s^nu K_nu(s) with s = sqrt(2 nu) gamma |x - y|.

    With nu = 0.5 it is exp(-gamma |x - y|). As nu grows, it approaches the Gaussian kernel
    exp(-gamma^2 |x - y|^2 / 2). Its frequencies have a multivariate t distribution with 2 nu
    degrees of freedom and scale gamma.

    Parameters
    ----------
    nu : float, default=1.5
        Smoothness, above 0 and at most 50. The values 0.5, 1.5 and 2.5 are the fastest.
    gamma : float, "scale" or "median", default="scale"
        Inverse length scale. "scale" is 1 / sqrt(n_features * X.var()). "median" is 1 / m, where m
        is the median distance between rows of a sample.

    Examples
    --------
    >>> from craftmaps import Matern
    >>> Matern(nu=0.5, gamma=0.5)([[0.0, 0.0]], [[0.0, 2.0]]).round(4).tolist()
    [[0.3679]]
    """

    def __init__(self, nu: float = 1.5, gamma: float | str = "scale") -> None:
        self.nu = nu
        self.gamma = gamma

    def n_uniform(self, d: int) -> int | None:
        return d + 1

    def _check(self) -> None:
        check_number(self, "nu", self.nu, above=0)
        if self.nu > _LARGEST_NU:
            raise ValueError(
                f"Matern: nu must be at most {_LARGEST_NU:g}, got {self.nu!r}; use the limit "
                f"Gaussian(gamma**2 / 2) instead."
            )

    def _draw(self, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
        scales = self._mixture(n, rng)[:, None]
        return np.asarray(scales * rng.standard_normal((n, d)))

    def _mixture(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(np.sqrt(2 * self.nu / rng.chisquare(2 * self.nu, n)))

    def _quantiles(self, points: np.ndarray) -> np.ndarray:
        chi_squared = 2 * special.gammaincinv(self.nu, points[:, -1:])
        normal: np.ndarray = special.ndtri(points[:, :-1])
        return np.asarray(normal * np.sqrt(2 * self.nu / chi_squared))

    def against(self, Y: Any, dtype: np.dtype) -> pairs.Fill:
        if self.nu not in _POLYNOMIALS_OF_MATERN:
            return pairs.radial(Y, self._value)
        scale = float(np.sqrt(2 * self.nu)) * float(self.gamma)
        _, a, b = _POLYNOMIALS_OF_MATERN[self.nu]
        return pairs.matern(Y, scale, (a, b), self._value, dtype)

    def onnx(self, g: Any, x: str, landmarks: np.ndarray) -> str:
        if self.nu not in _POLYNOMIALS_OF_MATERN:
            return super().onnx(g, x, landmarks)
        distance = g.add("Sqrt", pairs.onnx_squared_distances(g, x, landmarks))
        s = g.add("Mul", distance, np.float64(np.sqrt(2 * self.nu) * float(self.gamma)))
        polynomial = pairs.onnx_series(g, s, _POLYNOMIALS_OF_MATERN[self.nu])
        return str(g.add("Mul", g.add("Exp", g.add("Neg", s)), polynomial))

    def _value(self, distance: np.ndarray) -> np.ndarray:
        s = np.sqrt(2 * self.nu) * float(self.gamma) * distance
        if self.nu in _POLYNOMIALS_OF_MATERN:
            polynomial = np.polynomial.polynomial.polyval(s, _POLYNOMIALS_OF_MATERN[self.nu])
            return np.asarray(polynomial * np.exp(-s))
        # K_nu(s) overflows as s goes to 0; for such s, k is 1 in floating point.
        log_gamma = special.gammaln(self.nu)
        smallest = np.exp(max(-690.0, np.log(2) + (log_gamma - 650) / self.nu))
        s = np.maximum(s, smallest)
        logarithm = self.nu * np.log(s / 2) - s - log_gamma
        return np.asarray(np.minimum(1.0, 2 * np.exp(logarithm) * special.kve(self.nu, s)))


def normal_lengths(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the lengths |g| of n standard normal vectors in d dimensions, in random order.

    Each length has the chi distribution. Stratified sampling takes one length from each of n equal
    parts of that distribution, so sums over them vary less than over independent lengths.
    """
    levels = (rng.permutation(n) + rng.random(n)) / n
    return np.asarray(np.sqrt(2 * special.gammaincinv(d / 2, levels)))


def _variance(X: Any) -> float:
    """Return the variance of all entries of X, or 1 if they are all equal."""
    if sparse.issparse(X):
        X = X.astype(np.float64)
        variance = float(X.multiply(X).mean() - X.mean() ** 2)
    else:
        variance = float(np.var(X, dtype=np.float64))
    return variance if variance > 0 else 1.0


def _median_distance(X: Any, metric: str) -> float:
    """Return the median distance between rows of a sample of X, or 1 if it is 0."""
    from sklearn.metrics import pairwise_distances  # slow to import, seldom needed

    n_rows = X.shape[0]
    if n_rows > _BANDWIDTH_ROWS:
        rng = np.random.default_rng(_BANDWIDTH_SEED)
        X = X[np.sort(rng.choice(n_rows, _BANDWIDTH_ROWS, replace=False))]
    X = X.astype(np.float64)
    if sparse.issparse(X):  # scikit-learn's Manhattan distances take no 64-bit indices
        X = X.tocsr()
        parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = sparse.csr_array(parts, shape=X.shape)
    distances = pairwise_distances(X, metric=metric)
    distances = distances[np.triu_indices(X.shape[0], k=1)]
    median = float(np.median(distances)) if distances.size else 0.0
    return median if median > 0 else 1.0
