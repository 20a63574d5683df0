"""Maclaurin coefficients of functions that can only be evaluated."""

import cmath
import math

import numpy as np
import pytest

from craftmaps import DotProduct
from craftmaps.kernels.taylor import taylor_coefficients

# name, function, a_n, radius
SERIES = [
    ("exp", np.exp, lambda n: 1 / math.factorial(n), math.inf),
    ("cosh", np.cosh, lambda n: 1 / math.factorial(n) if n % 2 == 0 else 0.0, math.inf),
    ("exp(3t)", lambda t: np.exp(3 * t), lambda n: 3.0**n / math.factorial(n), math.inf),
    ("1/(2-t)", lambda t: 1 / (2 - t), lambda n: 2.0 ** -(n + 1), 2.0),
    ("1/(1-t)^2", lambda t: 1 / (1 - t) ** 2, lambda n: n + 1.0, 1.0),
    ("1/(1-1000t)", lambda t: 1 / (1 - 1000 * t), lambda n: 1000.0**n, 0.001),
    (
        "arcsin",
        np.arcsin,
        lambda n: math.comb(n - 1, (n - 1) // 2) / (2.0 ** (n - 1) * n) if n % 2 else 0.0,
        1.0,
    ),
    ("-log(1-t)", lambda t: -np.log(1 - t), lambda n: 1 / n if n else 0.0, 1.0),
    ("(1+t)^7", lambda t: (1 + t) ** 7, lambda n: float(math.comb(7, n)), math.inf),
    ("t^12", lambda t: t**12, lambda n: float(n == 12), math.inf),
    ("constant", lambda t: 2.5 + 0 * t, lambda n: 2.5 * (n == 0), math.inf),
]


@pytest.mark.parametrize(
    ("function", "coefficient", "radius"), [s[1:] for s in SERIES], ids=[s[0] for s in SERIES]
)
def test_coefficients_of_known_series(function, coefficient, radius):
    coefficients, found = taylor_coefficients(function, 60)
    expected = np.array([coefficient(n) for n in range(61)])
    np.testing.assert_allclose(coefficients, expected, rtol=1e-9)
    assert (coefficients[expected == 0] == 0).all()
    if math.isinf(radius):
        assert math.isinf(found)
    else:
        assert 0.95 * radius < found < radius


def test_a_given_radius_is_believed():
    coefficients, radius = taylor_coefficients(lambda t: 1 / (2 - t), 20, radius=1.5)
    assert radius == 1.5
    np.testing.assert_allclose(coefficients, 0.5 ** np.arange(1.0, 22.0), rtol=1e-12)


def only_numbers(function):
    """As mpmath's and cmath's functions: one number at a time, and errors where NumPy has inf."""

    def scalar(t):
        if isinstance(t, np.ndarray):
            raise TypeError(f"cannot create a number from {t!r}")
        return function(t)

    return scalar


@pytest.mark.parametrize(
    ("function", "coefficient"),
    [
        (cmath.exp, lambda n: 1 / math.factorial(n)),
        (only_numbers(cmath.cosh), lambda n: (n % 2 == 0) / math.factorial(n)),
        (only_numbers(lambda t: 1 / (1 - t)), lambda n: 1.0),
        (only_numbers(lambda t: -cmath.log(1 - t)), lambda n: 1 / n if n else 0.0),
        (lambda t: cmath.sinh(t) / t if t else 1.0, lambda n: (n % 2 == 0) / math.factorial(n + 1)),
    ],
    ids=["exp", "cosh", "pole", "log", "branches"],
)
def test_functions_of_one_number(function, coefficient):
    kernel = DotProduct.from_function(function, max_degree=20)
    np.testing.assert_allclose(kernel.maclaurin(20), [coefficient(n) for n in range(21)], rtol=1e-9)


def test_kernel_of_a_function():
    X = np.random.default_rng(0).random((4, 3)) / 3
    for function in (np.exp, np.cosh, lambda t: 1 / (2 - t)):
        np.testing.assert_allclose(DotProduct.from_function(function)(X), function(X @ X.T))
    with pytest.raises(ValueError, match=r"reach 4.*rescaled"):
        DotProduct.from_function(lambda t: 1 / (2 - t))([[2.0]])


@pytest.mark.parametrize(
    ("function", "n", "value"),
    [
        (np.sin, 3, r"-0\.1666"),
        (np.cos, 2, r"-0\.5"),
        (np.log1p, 2, r"-0\.(4999|5)"),
        (lambda t: np.exp(t) - 2, 0, "-1"),
        (lambda t: np.exp(t) - 1e-3 * t**5 * 100, 5, r"-0\.0916"),
    ],
)
def test_a_negative_coefficient_is_named(function, n, value):
    with pytest.raises(ValueError, match=rf"coefficient a_{n} is {value}"):
        DotProduct.from_function(function)


@pytest.mark.parametrize(
    "function",
    [
        np.sqrt,
        np.log,
        lambda t: 1 / t,
        lambda t: np.exp(-1 / t**2),
        lambda t: t.real,
        np.conj,
        np.abs,
        lambda t: np.abs(t) ** 2 + t,
        lambda t: np.exp(np.abs(t)),
        lambda t: np.full(np.shape(t), np.nan),
    ],
    ids=["sqrt", "log", "1/t", "flat", "real", "conj", "abs", "|t|^2+t", "exp|t|", "nan"],
)
def test_functions_without_a_series_are_refused(function):
    with pytest.raises(ValueError, match="not analytic around t = 0"):
        DotProduct.from_function(function)


def test_other_bad_functions():
    with pytest.raises(ValueError, match="real for real t"):
        DotProduct.from_function(lambda t: np.exp(1j * t))
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        DotProduct.from_function(lambda t: np.ones(3))
    with pytest.raises(ValueError, match="coefficients"):
        DotProduct.from_function(lambda t: 0 * t)
    with pytest.raises((TypeError, ValueError), match="complex"):
        DotProduct.from_function(math.exp)


@pytest.mark.parametrize("max_degree", [0, -1, 512, 3.5])
def test_max_degree_is_checked(max_degree):
    with pytest.raises(ValueError, match=rf"max_degree must be .*got {max_degree}"):
        DotProduct.from_function(np.exp, max_degree=max_degree)


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan])
def test_radius_is_checked(radius):
    with pytest.raises(ValueError, match=rf"radius must be above 0, got {radius}"):
        DotProduct.from_function(np.exp, radius=radius)
