"""The factor that turns features of an exponential kernel into features of a Gaussian one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.extmath import row_norms

from craftmaps.kernels import Exponential
from craftmaps.maps.parts.base import check_facts
from craftmaps.storage.packing import storable
from craftmaps.threads import dense_block

_MAX_SQUARED_LENGTH = 160.0  # if |x'|^2 is larger, the factor is below all float32 numbers
_BUFFER_BYTES, _LEAST_ROWS = 1 << 22, 512  # size of a block of features


@storable
@dataclass(frozen=True)
class Radial:
    """exp(-gamma |x - y|^2) = r(x) r(y) exp(<x', y'>), x' = sqrt(2 gamma) (x - center).

    The factor is r(x) = exp(-|x'|^2 / 2). Centering the rows does not change the kernel, but
    features of short rows have smaller errors. Rows so far from the center that r(x) underflows get
    features of 0.
    """

    center: np.ndarray
    gamma: float

    @classmethod
    def draw(cls, X: Any, gamma: float) -> Self:
        """Return the factor for rows like X."""
        return cls(np.asarray(X.mean(axis=0), dtype=np.float64).ravel(), float(gamma))

    @property
    def kernel(self) -> Exponential:
        """The exponential kernel of the rows x'."""
        return Exponential()

    def prepared(self, X: Any, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows x' and the factors r(x); both are 0 for rows that are too far away."""
        rows = dense_block(X, 0, X.shape[0], np.float64) - self.center
        rows *= np.sqrt(2 * self.gamma)
        squared = row_norms(rows, squared=True)
        far = squared > _MAX_SQUARED_LENGTH
        rows[far] = 0
        factor = np.where(far, 0.0, np.exp(-0.5 * squared))
        return rows.astype(dtype, copy=False), factor.astype(dtype)

    def fill(self, X: Any, out: np.ndarray, fill: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """Write r(x) times the output of `fill` for the rows x', a few rows at a time."""
        step = max(_LEAST_ROWS, _BUFFER_BYTES // out.strides[0])
        for start in range(0, X.shape[0], step):
            rows, factor = self.prepared(X[start : start + step], out.dtype)
            filled = out[start : start + step]
            fill(rows, filled)
            filled *= factor[:, None]

    def check(self, n_in: int) -> None:
        """Raise ValueError unless this accepts rows with that many columns."""
        check_facts(self, center=self.center.shape == (n_in,), gamma=self.gamma > 0)

    def onnx(self, g: Any, x: str) -> tuple[str, str]:
        """Add the rows x' and the factors r(x) to an ONNX graph, both in single precision."""
        moved = g.add("Sub", g.double(x), self.center)
        moved = g.add("Mul", moved, np.float64(np.sqrt(2 * self.gamma)))
        squared = g.add("ReduceSum", g.add("Mul", moved, moved), [1], keepdims=1)
        near = g.double(g.add("Less", squared, np.float64(_MAX_SQUARED_LENGTH)))
        factor = g.add("Exp", g.add("Mul", squared, np.float64(-0.5)))
        return g.single(g.add("Mul", moved, near)), g.single(g.add("Mul", factor, near))
