"""Scaling of a column of numbers by its mean and spread, or by its quantiles."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.stats import norm

from craftmaps.storage.expect import expect, expect_array
from craftmaps.storage.packing import storable

_MAX_KNOTS = 64
_HEAVY_TAILS = 10.0  # kurtosis; an exponential distribution has 9, and a normal one has 3


@storable
@dataclass(frozen=True)
class LinearScale:
    """The scaling (x - center) / scale."""

    center: float
    scale: float
    kind: ClassVar[str] = "standardized"

    @classmethod
    def standard(cls, x: np.ndarray) -> Self:
        """Return the scaling of x, not all equal, to mean 0 and standard deviation 1."""
        largest = float(np.abs(x).max())  # squares of very large numbers would overflow
        unit = x / largest
        return cls(float(unit.mean()) * largest, float(unit.std()) * largest)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return (x - self.center) / self.scale

    def onnx(self, g: Any, x: str) -> str:
        """Add the scaled numbers to an ONNX graph, in float64."""
        shifted = g.add("Sub", x, np.float64(self.center))
        return str(g.add("Div", shifted, np.float64(self.scale)))

    def _check_stored(self) -> None:
        finite = np.isfinite([self.center, self.scale]).all()
        expect(bool(finite) and self.scale > 0, "a finite center and a positive scale")


@storable
@dataclass(frozen=True)
class Unscaled:
    """No scaling."""

    kind: ClassVar[str] = "unscaled"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x

    def onnx(self, g: Any, x: str) -> str:
        """Return the tensor itself."""
        return x


@storable
@dataclass(frozen=True)
class QuantileCurve:
    """A smooth increasing curve from quantiles of a column to quantiles of a normal distribution.

    Between two knots it is the cubic with the given heights and slopes at the knots. It is monotone
    because each slope is at most twice the smaller slope of the neighboring chords. Outside of the
    knots it is a straight line, which is no steeper than the curve on average.
    """

    knots: np.ndarray
    heights: np.ndarray
    slopes: np.ndarray
    kind: ClassVar[str] = "by quantiles"

    @classmethod
    def of(cls, x: np.ndarray) -> Self:
        """Fit the curve to the numbers x, which are not all equal."""
        distinct, counts = np.unique(x, return_counts=True)
        shares = (np.cumsum(counts) - counts / 2) / len(x)  # equal numbers share a rank
        z = norm.ppf(shares)
        if len(z) > _MAX_KNOTS:
            wanted = np.searchsorted(z, np.linspace(z[0], z[-1], _MAX_KNOTS))
            some = np.unique(np.clip(wanted, 0, len(z) - 1))
            distinct, z = distinct[some], z[some]
        with np.errstate(over="ignore"):
            chords = np.diff(z) / np.diff(distinct)
        chords = np.minimum(chords, np.finfo(np.float32).max)  # numbers may nearly agree
        mean = (z[-1] - z[0]) / (distinct[-1] - distinct[0])
        inner = 2 / (1 / chords[:-1] + 1 / chords[1:])
        slopes = np.concatenate([[min(chords[0], mean)], inner, [min(chords[-1], mean)]])
        return cls(distinct, z, slopes)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        t, widths, c = self.knots, np.diff(self.knots), self._coefficients()
        near = np.clip(x, t[0], t[-1])
        i = np.searchsorted(t[1:-1], near, side="right")
        u = (near - t[i]) / widths[i]
        inside = ((c[3][i] * u + c[2][i]) * u + c[1][i]) * u + self.heights[i]
        below, above = np.minimum(x - t[0], 0.0), np.maximum(x - t[-1], 0.0)
        return np.asarray(inside + self.slopes[0] * below + self.slopes[-1] * above)

    def onnx(self, g: Any, x: str) -> str:
        """Add the scaled numbers to an ONNX graph, in float64; x has one column."""
        t, widths, c = self.knots, np.diff(self.knots), self._coefficients()
        passed = g.add("GreaterOrEqual", x, t[1:-1][None]) if len(t) > 2 else None
        interval = (
            None if passed is None else g.add("ReduceSum", g.integer(passed), [1], keepdims=1)
        )
        near = g.add("Min", g.add("Max", x, np.float64(t[0])), np.float64(t[-1]))
        from_start = g.add("Sub", near, _onnx_chosen(g, interval, t[:-1]))
        u = g.add("Div", from_start, _onnx_chosen(g, interval, widths))
        result = _onnx_chosen(g, interval, c[3])
        for row in (c[2], c[1], self.heights[:-1]):
            result = g.add("Add", g.add("Mul", result, u), _onnx_chosen(g, interval, row))
        below = g.add("Min", g.add("Sub", x, np.float64(t[0])), np.float64(0))
        above = g.add("Max", g.add("Sub", x, np.float64(t[-1])), np.float64(0))
        for side, slope in ((below, self.slopes[0]), (above, self.slopes[-1])):
            result = g.add("Add", result, g.add("Mul", side, np.float64(slope)))
        return str(result)

    def _coefficients(self) -> np.ndarray:
        """Return the coefficients of the cubics in u, which goes from 0 to 1 between two knots."""
        h, widths = np.diff(self.heights), np.diff(self.knots)
        left, right = self.slopes[:-1] * widths, self.slopes[1:] * widths
        return np.stack([self.heights[:-1], left, 3 * h - 2 * left - right, left + right - 2 * h])

    def _check_stored(self) -> None:
        n = len(self.knots)
        expect(n >= 2, "two knots")
        for name in ("knots", "heights", "slopes"):
            expect_array(name, getattr(self, name), "f", (n,))
            expect(bool(np.isfinite(getattr(self, name)).all()), f"finite {name}")
        expect(bool((np.diff(self.knots) > 0).all()), "knots that rise")


def scale_for(x: np.ndarray, scaling: str) -> Any:
    """Fit the named scaling to numbers x, not all equal; "auto" depends on their tails."""
    if scaling == "none":
        return Unscaled()
    linear = LinearScale.standard(x)
    if scaling == "standard" or (scaling == "auto" and _kurtosis(linear(x)) <= _HEAVY_TAILS):
        return linear
    return QuantileCurve.of(x)


def _onnx_chosen(g: Any, interval: str | None, row: np.ndarray) -> str:
    """Add the entry of `row` for the interval of each number, or the only entry if None."""
    return str(g.constant(row[:1]) if interval is None else g.add("Gather", row, interval, axis=0))


def _kurtosis(standardized: np.ndarray) -> float:
    return float(np.mean(standardized**4))
