"""Dot-product kernels k(x, y) = f(<x, y>) with non-negative Maclaurin coefficients."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.special import binom, factorial
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms

from craftmaps.kernels.base import Kernel
from craftmaps.kernels.pairs import Fill, fill_blocks, of_products, onnx_series
from craftmaps.kernels.taylor import taylor_coefficients
from craftmaps.storage.packing import storable
from craftmaps.validation import check_number, check_rows_pair

_MOST_TERMS_IN_ONNX = 100


class DotProductKernel(Kernel):
    """Base class of kernels f(gamma <x, y>) with f(t) = sum_n a_n t^n and every a_n >= 0.

    By Schoenberg's theorem these are exactly the positive definite dot-product kernels on the
    ball (Kar and Karnick 2012, Theorem 1). A subclass defines `_value` (f) and `_coefficients`
    (a_n), and overrides `_radius` and `_check` if needed.
    """

    gamma: float

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Compute the Gram matrix between the rows of X and Y (or X, if Y is None)."""
        self.check()
        X, Y = check_rows_pair(X, Y)
        out = np.empty((X.shape[0], Y.shape[0]), dtype=X.dtype)
        fill_blocks(self.against(Y, out.dtype), X, out)
        return out

    def against(self, Y: Any, dtype: np.dtype) -> Fill:
        return of_products(Y, self.value, dtype)

    def onnx(self, g: Any, x: str, landmarks: np.ndarray) -> str:
        return self.onnx_value(g, g.add("MatMul", x, landmarks.T))

    def onnx_value(self, g: Any, t: str) -> str:
        """Add f(gamma t) to an ONNX graph, for a float64 tensor t of inner products."""
        if self.highest_degree > _MOST_TERMS_IN_ONNX:
            raise ValueError(
                f"{self!r} has more than {_MOST_TERMS_IN_ONNX} terms, which is too many for ONNX."
            )
        return onnx_series(g, t, list(self.maclaurin(int(self.highest_degree))))

    def diagonal(self, X: Any) -> np.ndarray:
        return self.value(row_norms(X, squared=True))

    def value(self, t: Any) -> np.ndarray:
        """Compute f(gamma t) for inner products t."""
        t = np.asarray(t)
        if not np.issubdtype(t.dtype, np.floating):
            t = t.astype(np.float64)
        if math.isfinite(self.convergence_radius) and t.size:
            self._check_within(float(np.abs(t).max()), "|<x, y>|")
        return self._value(float(self.gamma) * t)

    def maclaurin(self, max_degree: int, scale: float = 1.0) -> np.ndarray:
        """Return the coefficients of t^0, ..., t^max_degree in f(gamma scale t)."""
        degrees = np.arange(max_degree + 1)
        powers = (float(self.gamma) * scale) ** degrees
        coefficients: np.ndarray = self._coefficients(degrees) * powers
        return coefficients

    @property
    def highest_degree(self) -> float:
        """Largest n with a_n > 0, or infinity for an infinite series."""
        return math.inf

    @property
    def convergence_radius(self) -> float:
        """Radius r such that the series converges for |<x, y>| < r."""
        return self._radius() / self.gamma

    def tail(self, degree: int, squared_norm: float) -> float:
        """Bound the truncation error sum_{n > degree} a_n R^(2n) for rows with |x|^2 <= R^2."""
        if degree >= self.highest_degree:
            return 0.0
        kept = self.maclaurin(degree, scale=float(squared_norm)).sum()
        return max(0.0, float(self.value(float(squared_norm))) - float(kept))

    def rescaled(self, X: Any, margin: float = 2.0) -> Self:
        """Return a copy with gamma lowered so that X lies inside the radius of convergence.

        If |<x, y>| reaches I >= radius, f(t) is replaced by f(t / c) with c = margin * I / radius
        (Kar and Karnick 2012, section 3). If X lies inside, gamma is not changed.
        """
        self.check()
        if not margin > 1:
            raise ValueError(f"margin must be above 1, got {margin!r}.")
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        reach = float(row_norms(X, squared=True).max())
        kernel: Self = clone(self)
        if reach >= self.convergence_radius:
            kernel.set_params(gamma=self.gamma * self.convergence_radius / (margin * reach))
        return kernel

    def check(self) -> None:
        check_number(self, "gamma", self.gamma, above=0)
        self._check()

    def check_rows(self, X: Any) -> None:
        """Raise ValueError if <x, x> of a row is outside the radius of convergence."""
        if math.isfinite(self.convergence_radius) and X.shape[0]:
            self._check_within(float(row_norms(X, squared=True).max()), "|x|^2")

    def _check_within(self, reach: float, what: str) -> None:
        if reach >= self.convergence_radius:
            raise ValueError(
                f"{type(self).__name__} needs {what} < {self.convergence_radius:.6g}, its radius "
                f"of convergence, but these rows reach {reach:.6g}; scale the rows down or use "
                f"kernel.rescaled(X)."
            )

    @abstractmethod
    def _value(self, t: np.ndarray) -> np.ndarray:
        """Compute f(t)."""

    @abstractmethod
    def _coefficients(self, degrees: np.ndarray) -> np.ndarray:
        """Return the coefficients a_n of f for the given degrees n."""

    def _radius(self) -> float:
        """Return the radius of convergence of f."""
        return math.inf

    def _check(self) -> None:
        """Raise ValueError for an invalid parameter other than gamma."""


@storable
class Polynomial(DotProductKernel):
    """Polynomial kernel (gamma <x, y> + coef0)^degree.

    Its Maclaurin coefficients are a_n = C(degree, n) gamma^n coef0^(degree - n).

    Parameters
    ----------
    degree : int, default=3
        Degree of the polynomial, at least 1.
    gamma : float, default=1.0
        Factor of the inner product, above 0.
    coef0 : float, default=1.0
        Constant term, at least 0. Lower values give more weight to the high degrees.

    Examples
    --------
    >>> from craftmaps import Polynomial
    >>> Polynomial(degree=2).maclaurin(3).tolist()
    [1.0, 2.0, 1.0, 0.0]
    >>> Polynomial(degree=2)([[1.0, 0.0]], [[2.0, 5.0]]).tolist()
    [[9.0]]
    """

    short_name = "poly"

    def __init__(self, degree: int = 3, gamma: float = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def highest_degree(self) -> float:
        return self.degree

    def _check(self) -> None:
        check_number(self, "degree", self.degree, least=1, kind=Integral)
        check_number(self, "coef0", self.coef0, least=0)

    def _value(self, t: np.ndarray) -> np.ndarray:
        return _power(t + float(self.coef0), int(self.degree))

    def onnx_value(self, g: Any, t: str) -> str:
        scaled = g.add("Mul", t, np.float64(self.gamma))
        return str(g.product([g.add("Add", scaled, np.float64(self.coef0))] * int(self.degree)))

    def _coefficients(self, degrees: np.ndarray) -> np.ndarray:
        rest = np.maximum(self.degree - degrees, 0)
        return np.where(
            degrees <= self.degree, binom(self.degree, degrees) * float(self.coef0) ** rest, 0.0
        )


@storable
class Exponential(DotProductKernel):
    """Exponential kernel exp(gamma <x, y>).

    Its Maclaurin coefficients are a_n = gamma^n / n!.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor of the inner product, above 0.

    Examples
    --------
    >>> from craftmaps import Exponential
    >>> Exponential(gamma=2.0).maclaurin(2).tolist()
    [1.0, 2.0, 2.0]
    """

    short_name = "exp"

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _value(self, t: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(t))

    def onnx_value(self, g: Any, t: str) -> str:
        return str(g.add("Exp", g.add("Mul", t, np.float64(self.gamma))))

    def _coefficients(self, degrees: np.ndarray) -> np.ndarray:
        return np.asarray(1 / factorial(degrees))


@storable
class VovkReal(DotProductKernel):
    """Vovk's real polynomial kernel (1 - t^p) / (1 - t) with t = gamma <x, y>.

    Its Maclaurin coefficients are a_n = gamma^n for n < p.

    Parameters
    ----------
    p : int, default=3
        Number of terms, at least 1.
    gamma : float, default=1.0
        Factor of the inner product, above 0.

    Examples
    --------
    >>> from craftmaps import VovkReal
    >>> VovkReal(p=3)([[1.0]], [[2.0]]).tolist()
    [[7.0]]
    """

    def __init__(self, p: int = 3, gamma: float = 1.0) -> None:
        self.p = p
        self.gamma = gamma

    @property
    def highest_degree(self) -> float:
        return self.p - 1

    def _check(self) -> None:
        check_number(self, "p", self.p, least=1, kind=Integral)

    def _value(self, t: np.ndarray) -> np.ndarray:
        # By doubling, 1 + ... + t^(2n - 1) = (1 + t^n) (1 + ... + t^(n - 1)), so that a large p
        # takes neither time nor memory. It is exact at t = 1 too, where the fraction is not.
        total, power = np.ones_like(t), t
        for bit in bin(self.p)[3:]:
            total, power = total * (1 + power), power * power
            if bit == "1":
                total, power = 1 + t * total, power * t
        return np.asarray(total)

    def _coefficients(self, degrees: np.ndarray) -> np.ndarray:
        return (degrees < self.p).astype(float)


@storable
class VovkInfinite(DotProductKernel):
    """Vovk's infinite polynomial kernel 1 / (1 - gamma <x, y>).

    It is defined for |<x, y>| < 1 / gamma, and its Maclaurin coefficients are a_n = gamma^n.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor of the inner product, above 0. `rescaled` lowers it to suit given rows.

    Examples
    --------
    >>> from craftmaps import VovkInfinite
    >>> kernel = VovkInfinite()
    >>> kernel([[0.5]]).round(3).tolist()
    [[1.333]]
    >>> kernel.rescaled([[0.0, 2.0]]).gamma
    0.125
    """

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _radius(self) -> float:
        return 1.0

    def _value(self, t: np.ndarray) -> np.ndarray:
        return 1 / (1 - t)

    def onnx_value(self, g: Any, t: str) -> str:
        scaled = g.add("Mul", t, np.float64(self.gamma))
        return str(g.add("Reciprocal", g.add("Sub", np.float64(1), scaled)))

    def _coefficients(self, degrees: np.ndarray) -> np.ndarray:
        return np.ones(len(degrees))


@storable
class DotProduct(DotProductKernel):
    """Kernel sum_n coefficients[n] (gamma <x, y>)^n with coefficients of your choice.

    Parameters
    ----------
    coefficients : sequence of float
        Maclaurin coefficients a_0, a_1, ..., each at least 0.
    gamma : float, default=1.0
        Factor of the inner product, above 0.
    radius : float, default=inf
        Upper limit of |gamma <x, y>|. Set it if the list is the start of an infinite series.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import DotProduct
    >>> DotProduct([0.0, 1.0, 0.5])([[2.0]]).tolist()
    [[12.0]]
    >>> DotProduct.from_function(np.cosh).maclaurin(4).round(6).tolist()
    [1.0, 0.0, 0.5, 0.0, 0.041667]
    """

    def __init__(
        self, coefficients: Sequence[float], gamma: float = 1.0, radius: float = math.inf
    ) -> None:
        self.coefficients = coefficients
        self.gamma = gamma
        self.radius = radius

    @property
    def highest_degree(self) -> float:
        return int(np.flatnonzero(np.asarray(self.coefficients)).max(initial=0))

    def _check(self) -> None:
        values = np.asarray(self.coefficients, dtype=float)
        if values.ndim != 1 or not values.size:
            raise ValueError("DotProduct needs a non-empty list of coefficients a_0, a_1, ....")
        for n, value in enumerate(values):
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(
                    f"DotProduct: coefficient a_{n} is {value}, but every Maclaurin coefficient "
                    f"must be finite and >= 0 for the kernel to be positive definite."
                )
        if not values.any():
            raise ValueError("DotProduct: all coefficients are 0; at least one must be positive.")
        if not (isinstance(self.radius, Real) and self.radius > 0):
            raise ValueError(f"DotProduct: radius must be above 0, got {self.radius!r}.")

    def _radius(self) -> float:
        return self.radius

    def _value(self, t: np.ndarray) -> np.ndarray:
        values = np.asarray(self.coefficients, dtype=t.dtype)
        return np.asarray(np.polynomial.polynomial.polyval(t, values))

    def _coefficients(self, degrees: np.ndarray) -> np.ndarray:
        values = np.asarray(self.coefficients, dtype=float)
        return np.where(degrees < len(values), values[np.minimum(degrees, len(values) - 1)], 0.0)

    @classmethod
    def from_function(
        cls, function: Callable[[Any], Any], max_degree: int = 60, radius: float | None = None
    ) -> Self:
        """Build the kernel of an analytic function f from its first Maclaurin coefficients.

        Parameters
        ----------
        function : callable
            The function f. It must accept complex NumPy arrays or complex numbers.
        max_degree : int, default=60
            Degree of the polynomial that approximates f.
        radius : float or None, default=None
            f is analytic for |t| < radius. If None, a slightly smaller radius is estimated.
        """
        coefficients, analytic_radius = taylor_coefficients(function, max_degree, radius)
        kernel = cls(np.trim_zeros(coefficients, "b").tolist(), radius=analytic_radius)
        kernel.check()
        return kernel


def _power(t: np.ndarray, exponent: int) -> np.ndarray:
    """Compute t^exponent by repeated squaring, which is faster than `**` on arrays."""
    power = None
    while exponent:
        if exponent & 1:
            power = t if power is None else power * t
        exponent >>= 1
        t = t * t if exponent else t
    return np.ones_like(t) if power is None else power
