"""From what a `kernel` parameter may be to a checked kernel."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.base import clone

from craftmaps.kernels.dot_product import DotProductKernel, Exponential, Polynomial
from craftmaps.kernels.pairs import Fill
from craftmaps.kernels.shift_invariant import Cauchy, Gaussian, Laplacian, ShiftInvariantKernel
from craftmaps.storage.packing import storable

_DOT_PRODUCT: dict[str, type[DotProductKernel]] = {"poly": Polynomial, "exp": Exponential}
_SHIFT_INVARIANT: dict[str, type[ShiftInvariantKernel]] = {
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "cauchy": Cauchy,
}
_ROWS = 64  # of which a diagonal is taken at a time, where only whole Gram matrices are known


class Kernel(Protocol):
    """What Nyström maps and compositions ask of a kernel."""

    @property
    def threads(self) -> bool: ...

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray: ...

    def resolved(self, X: Any) -> "Kernel": ...

    def against(self, Y: Any, dtype: np.dtype) -> Fill: ...

    def diagonal(self, X: Any) -> np.ndarray: ...


def dot_product_kernel(kernel: Any) -> DotProductKernel:
    """A checked copy of the kernel that the `kernel` parameter of a dot-product map names."""
    if isinstance(kernel, str) and kernel in _DOT_PRODUCT:
        kernel = _DOT_PRODUCT[kernel]()
    if not isinstance(kernel, DotProductKernel):
        raise ValueError(
            f"kernel must be a dot-product kernel such as Polynomial(degree=3), or one of "
            f"{sorted(_DOT_PRODUCT)}, got {kernel!r}."
        )
    kernel.check()
    copy: DotProductKernel = clone(kernel)  # a fitted map does not change with its parameters
    return copy


def shift_invariant_kernel(kernel: Any) -> ShiftInvariantKernel:
    """A checked copy of the kernel that the `kernel` parameter of a Fourier map names."""
    if isinstance(kernel, str) and kernel in _SHIFT_INVARIANT:
        kernel = _SHIFT_INVARIANT[kernel]()
    if not isinstance(kernel, ShiftInvariantKernel):
        raise ValueError(
            f"kernel must be a shift-invariant kernel such as Gaussian(gamma=0.5), or one of "
            f"{sorted(_SHIFT_INVARIANT)}, got {kernel!r}."
        )
    kernel.check()
    copy: ShiftInvariantKernel = clone(kernel)
    return copy


def any_kernel(kernel: Any, parameters: dict[str, Any] | None = None) -> Kernel:
    """A checked copy of the kernel that a `kernel` parameter names, of whichever kind.

    A name that this library and scikit-learn share means the kernel of this library. `parameters`
    are keyword arguments for kernels of scikit-learn and for functions.
    """
    if isinstance(kernel, str) and kernel in _DOT_PRODUCT | _SHIFT_INVARIANT:
        kernel = (_DOT_PRODUCT | _SHIFT_INVARIANT)[kernel]()
    if hasattr(kernel, "check") and hasattr(kernel, "against") and not isinstance(kernel, type):
        if parameters:
            raise ValueError(
                f"kernel_params={parameters!r} are for kernels of scikit-learn and for functions; "
                f"set the parameters of {type(kernel).__name__} itself."
            )
        kernel.check()
        return clone(kernel)  # type: ignore[no-any-return]
    if isinstance(kernel, FunctionKernel):
        return kernel
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS  # slow to import

    named = isinstance(kernel, str) and kernel in PAIRWISE_KERNEL_FUNCTIONS
    if isinstance(kernel, type) or not (callable(kernel) or named):
        known = sorted({*_DOT_PRODUCT, *_SHIFT_INVARIANT, *PAIRWISE_KERNEL_FUNCTIONS})
        raise ValueError(
            f"kernel must be a kernel such as Gaussian(gamma=0.5), a function of two matrices or "
            f"one of {known}, got {kernel!r}."
        )
    return FunctionKernel(kernel, parameters)


@storable
class FunctionKernel:
    """A kernel of scikit-learn, by name, or a function of two matrices that returns Gram ones."""

    threads = False  # of functions of which nothing is known

    def __init__(
        self, function: str | Callable[..., Any], parameters: dict[str, Any] | None = None
    ) -> None:
        self.function = function
        self.parameters = parameters or {}

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        Y = X if Y is None else Y
        if isinstance(self.function, str):
            from sklearn.metrics.pairwise import pairwise_kernels  # slow to import

            gram = pairwise_kernels(X, Y, metric=self.function, **self.parameters)
        else:
            gram = self.function(X, Y, **self.parameters)
        gram = gram.toarray() if sparse.issparse(gram) else np.asarray(gram)
        if gram.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"the kernel function must return an array of shape {(X.shape[0], Y.shape[0])} for "
                f"two matrices of {X.shape[0]} and {Y.shape[0]} rows, got shape {gram.shape}; for "
                f"a function f of two rows use lambda X, Y: pairwise_kernels(X, Y, metric=f)."
            )
        return gram

    def resolved(self, X: Any) -> "FunctionKernel":
        """This kernel itself."""
        return self

    def against(self, Y: Any, dtype: np.dtype) -> Fill:
        """A function that writes the kernel of rows X and Y into a buffer."""

        def fill(X: Any, out: np.ndarray) -> None:
            out[:] = self(X, Y)

        return fill

    def diagonal(self, X: Any) -> np.ndarray:
        """k(x, x) of each row."""
        blocks = (X[start : start + _ROWS] for start in range(0, X.shape[0], _ROWS))
        return np.concatenate([self(block).diagonal() for block in blocks])
