"""Taylor coefficients at 0 of a function that can only be evaluated."""

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

_POINTS = 2048
_OVERFLOW = 1e100  # a larger value means overflow rather than a pole
_MAX_DISAGREEMENT = 1e8  # in rounding errors, between the coefficients from two circles
_NOT_ANALYTIC = "function is not analytic around t = 0: it has no Maclaurin series."


def taylor_coefficients(
    function: Callable[[Any], Any], max_degree: int, radius: float | None = None
) -> tuple[np.ndarray, float]:
    """Return a_0, ..., a_max_degree of f and the radius within which f was found analytic.

    Cauchy's integral over circles |t| = r is computed by FFT. The rounding error of a_n is about
    eps max|f| / r^n, so each a_n is taken from the circle that minimizes this error. If all
    coefficients are non-negative, the error is then a few eps relative to a_n (Bornemann 2011,
    "Accuracy and stability of computing high-order derivatives of analytic functions by Cauchy
    integrals"). A coefficient that is not larger than its error is returned as 0.
    """
    if not (isinstance(max_degree, Integral) and 1 <= max_degree < _POINTS // 4):
        raise ValueError(
            f"max_degree must be an integer from 1 to {_POINTS // 4 - 1}, got {max_degree!r}."
        )
    if radius is not None and not radius > 0:
        raise ValueError(f"radius must be above 0, got {radius!r}.")
    limit = math.inf if radius is None else 0.98 * radius
    grid = 2.0 ** (np.arange(-40, 41) / 4)
    grid = grid[grid < limit] if radius is None else np.append(grid[grid < limit], limit)
    coefficients = np.zeros(max_degree + 1)
    error = np.full(max_degree + 1, math.inf)
    inside, outside, largest = 0.0, math.inf, 0.0
    for circle in grid:
        spectrum, size = _circle(function, circle)
        if spectrum is None:
            if math.isfinite(size) or largest < _OVERFLOW:
                outside = circle
            break
        inside, largest = circle, size
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            powers = circle ** -np.arange(max_degree + 1.0)
            found = spectrum[: max_degree + 1] * powers
        here = np.finfo(float).eps * size * powers
        known = np.isfinite(error) & np.isfinite(here)
        # A function of |t| is constant on each circle, but differs between circles.
        if (np.abs(found - coefficients) > _MAX_DISAGREEMENT * np.maximum(here, error))[
            known
        ].any():
            raise ValueError(_NOT_ANALYTIC)
        better = here < error
        coefficients[better] = found[better]
        error[better] = here[better]
    if inside == 0.0:
        raise ValueError(_NOT_ANALYTIC)
    coefficients[np.abs(coefficients) <= 50 * error] = 0.0
    if radius is not None or math.isinf(outside):
        return coefficients, math.inf if radius is None else float(radius)
    for _ in range(12):  # bisect for the largest circle that still passes
        middle = (inside + outside) / 2
        passes = _circle(function, middle)[0] is not None
        inside, outside = (middle, outside) if passes else (inside, middle)
    return coefficients, float(inside)


def _circle(function: Callable[[Any], Any], circle: float) -> tuple[np.ndarray | None, float]:
    """Return a_n circle^n by FFT, or None if f is not analytic inside the circle, and max|f|.

    If f is not analytic, negative powers of t fill the upper half of the spectrum.
    """
    t = circle * np.exp(2j * np.pi * np.arange(_POINTS) / _POINTS)
    with np.errstate(all="ignore"):
        try:
            values = np.asarray(function(t), dtype=complex)
        except (TypeError, ValueError):  # the function accepts only scalars
            values = np.array([_at(function, complex(point)) for point in t])
    if values.shape != t.shape:
        raise ValueError(f"function returned shape {values.shape} for an array of shape {t.shape}.")
    if not np.isfinite(values).all():
        return None, math.inf
    size = float(np.abs(values).max())
    spectrum = np.fft.fft(values) / _POINTS
    if np.abs(spectrum[_POINTS // 2 :]).max() > 1e-10 * size:
        return None, size
    low = spectrum[: _POINTS // 4]
    if np.abs(low.imag).max() > 1e-8 * size:
        raise ValueError("function must be real for real t: a Maclaurin coefficient is complex.")
    return low.real, size


def _at(function: Callable[[Any], Any], point: complex) -> complex:
    """Compute f(point), or NaN where functions of Python's `math` raise an error."""
    try:
        return complex(function(point))
    except (ArithmeticError, ValueError):
        return complex(math.nan)
