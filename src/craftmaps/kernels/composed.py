"""Composed kernels f(K(x, y))."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone

from craftmaps.kernels.base import Kernel
from craftmaps.kernels.dot_product import DotProductKernel
from craftmaps.kernels.names import any_kernel, dot_product_kernel
from craftmaps.kernels.pairs import Fill
from craftmaps.storage.packing import storable
from craftmaps.validation import check_rows_pair


@storable
class Composed(Kernel):
    """Composed kernel f(K(x, y)): a dot-product kernel f applied to another kernel K.

    It is positive definite whenever K is, because every Maclaurin coefficient of f is at least 0
    (Kar and Karnick 2012, section 5).

    Parameters
    ----------
    outer : DotProductKernel, "poly" or "exp", default="poly"
        The outer kernel f.
    inner : kernel, str or callable, default="rbf"
        The inner kernel K. A string is the name of a kernel of this library or of scikit-learn; a
        callable is a function of two matrices that returns a Gram matrix.

    Examples
    --------
    >>> from craftmaps import Composed, Gaussian, Polynomial
    >>> kernel = Composed(Polynomial(degree=2), Gaussian(gamma=0.5))
    >>> kernel([[0.0]], [[0.0], [1.0]]).round(4).tolist()
    [[4.0, 2.5809]]
    """

    def __init__(self, outer: DotProductKernel | str = "poly", inner: Any = "rbf") -> None:
        self.outer = outer
        self.inner = inner

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        outer, inner = self._parts()
        rows, others = check_rows_pair(X, Y)
        gram = np.asarray(inner(rows) if Y is None else inner(rows, others))
        return outer.value(gram)

    def check(self) -> None:
        self._parts()

    def _parts(self) -> tuple[DotProductKernel, Kernel]:
        """Return the outer and the inner kernel as validated objects."""
        return dot_product_kernel(self.outer), any_kernel(self.inner)

    def resolved(self, X: Any) -> Self:
        """Return a copy with kernel objects instead of names, and a number as the inner gamma."""
        outer, inner = self._parts()
        kernel: Self = clone(self).set_params(outer=outer, inner=inner.resolved(X))
        return kernel

    def check_resolved(self) -> None:
        if not isinstance(self.outer, DotProductKernel) or not isinstance(self.inner, Kernel):
            raise ValueError(f"{self!r} has names instead of kernels.")
        self.outer.check_resolved()
        self.inner.check_resolved()

    @property
    def threads(self) -> bool:  # type: ignore[override]
        """Whether blocks of rows may be filled in parallel."""
        return bool(any_kernel(self.inner).threads)

    def against(self, Y: Any, dtype: np.dtype) -> Fill:
        outer, inner = self._parts()
        fill_inner = inner.against(Y, dtype)

        def fill(X: Any, out: np.ndarray) -> None:
            fill_inner(X, out)
            out[:] = outer.value(out)

        return fill

    def diagonal(self, X: Any) -> np.ndarray:
        outer, inner = self._parts()
        return outer.value(inner.diagonal(X))

    def onnx(self, g: Any, x: str, landmarks: np.ndarray) -> str:
        outer, inner = self._parts()
        return outer.onnx_value(g, inner.onnx(g, x, landmarks))
