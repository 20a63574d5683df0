"""What every kernel of the library offers."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from craftmaps.kernels.pairs import Fill


class Kernel(BaseEstimator, ABC):
    """A function of two rows with parameters, as maps and compositions use it.

    Parameters are validated once: by `check`, which is called when the kernel is called on rows or
    is given to a map. The other methods take valid parameters for granted.
    """

    short_name: ClassVar[str | None] = None  # a string that means this kernel with its defaults
    threads = True  # whether blocks of rows may be filled side by side

    @abstractmethod
    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """The Gram matrix of the rows of X and of Y (of X, if Y is None), dense or sparse."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError naming the first parameter that has no meaning."""

    def resolved(self, X: Any) -> Self:
        """This kernel with numbers for the parameters that depend on the rows X."""
        self.check()
        return self

    def check_resolved(self) -> None:
        """Raise ValueError unless all parameters are valid and none depends on rows."""
        self.check()

    @abstractmethod
    def against(self, Y: Any, dtype: np.dtype) -> Fill:
        """A function fill(X, out) that writes k(x, y) for valid rows into a buffer of `dtype`.

        The kernel must be resolved.
        """

    @abstractmethod
    def diagonal(self, X: Any) -> np.ndarray:
        """k(x, x) for each row."""

    def onnx(self, g: Any, x: str, landmarks: np.ndarray) -> str:
        """Add k(x, l) to an ONNX graph, for a float64 tensor x of rows and float64 landmarks l.

        The kernel must be resolved.
        """
        raise ValueError(
            f"{self!r} has no form in ONNX's operators; Nystroem maps are exported with the "
            f"kernels of dot products, Gaussian, Laplacian, Cauchy, and Matern of nu 0.5, 1.5 or "
            f"2.5."
        )

    def __eq__(self, other: object) -> bool:
        """Whether both are of one class and have equal parameters."""
        if not isinstance(other, Kernel) or type(self) is not type(other):
            return False
        mine, theirs = self.get_params(), other.get_params()
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        # Parameters can change while a kernel is a key of a dict; its class cannot.
        return hash(type(self))
