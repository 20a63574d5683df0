"""The interface of every kernel."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from craftmaps.kernels.pairs import Fill


class Kernel(BaseEstimator, ABC):
    """Base class of kernels: functions k(x, y) of two rows.

    Parameters are validated once, by `check`, when the kernel is called on rows or given to a map.
    The other methods assume that the parameters are valid.
    """

    short_name: ClassVar[str | None] = None  # string that selects this kernel with its defaults
    threads = True  # whether blocks of rows may be filled in parallel

    @abstractmethod
    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Compute the Gram matrix between the rows of X and Y (or X, if Y is None)."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError that names the first invalid parameter."""

    def resolved(self, X: Any) -> Self:
        """Return this kernel with the parameters that depend on X replaced by numbers."""
        self.check()
        return self

    def check_resolved(self) -> None:
        """Raise ValueError unless all parameters are valid and independent of the rows."""
        self.check()

    @abstractmethod
    def against(self, Y: Any, dtype: np.dtype) -> Fill:
        """Return a function fill(X, out) that writes k(x, y) into an array `out` of `dtype`.

        The kernel must be resolved, and the rows of X must be valid.
        """

    @abstractmethod
    def diagonal(self, X: Any) -> np.ndarray:
        """Compute k(x, x) for each row of X."""

    def onnx(self, g: Any, x: str, landmarks: np.ndarray) -> str:
        """Add k(x, l) to an ONNX graph, for a float64 tensor x of rows and float64 landmarks l.

        The kernel must be resolved.
        """
        raise ValueError(
            f"{self!r} cannot be written with ONNX operators; use a dot-product kernel, Gaussian, "
            f"Laplacian, Cauchy, or Matern with nu 0.5, 1.5 or 2.5 to export a Nystroem map."
        )

    def __eq__(self, other: object) -> bool:
        """Return whether both kernels have the same class and equal parameters."""
        if not isinstance(other, Kernel) or type(self) is not type(other):
            return False
        mine, theirs = self.get_params(), other.get_params()
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        # The parameters of a kernel that is a dict key can change, but its class cannot.
        return hash(type(self))
