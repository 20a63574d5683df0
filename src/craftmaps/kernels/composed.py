"""Kernels of kernels: f(K(x, y))."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from craftmaps.kernels.dot_product import DotProductKernel
from craftmaps.kernels.names import any_kernel, dot_product_kernel
from craftmaps.kernels.pairs import Fill
from craftmaps.storage.packing import storable
from craftmaps.validation import check_rows_pair, same_parameters


@storable
class Composed(BaseEstimator):
    """f(K(x, y)): a dot-product kernel f of the values of another kernel K.

    It is positive definite whenever K is, since every Maclaurin coefficient of f is at least 0
    (Kar and Karnick 2012, section 5).

    Parameters
    ----------
    outer : DotProductKernel, "poly" or "exp", default="poly"
        f.
    inner : kernel, str or callable, default="rbf"
        K: a kernel of this library, one of its names, the name of a kernel of scikit-learn, or a
        function of two matrices that returns a Gram matrix.

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
        """The Gram matrix of the rows of X and of Y (of X, if Y is None), dense or sparse."""
        self.check()
        inner = any_kernel(self.inner)
        rows, others = check_rows_pair(X, Y)
        gram = np.asarray(inner(rows) if Y is None else inner(rows, others))
        return dot_product_kernel(self.outer).value(gram)

    def check(self) -> None:
        """Raise ValueError naming the first parameter that has no meaning."""
        dot_product_kernel(self.outer)
        any_kernel(self.inner)

    def resolved(self, X: Any) -> Self:
        """This kernel with the inner one as an object whose gamma is a number."""
        kernel: Self = clone(self)
        kernel.set_params(
            outer=dot_product_kernel(self.outer), inner=any_kernel(self.inner).resolved(X)
        )
        return kernel

    @property
    def threads(self) -> bool:
        """Whether blocks of rows may be filled side by side."""
        return any_kernel(self.inner).threads

    def against(self, Y: Any, dtype: np.dtype) -> Fill:
        """A function that writes the kernel of valid rows X and Y into a buffer of `dtype`."""
        inner = any_kernel(self.inner).against(Y, dtype)
        value = dot_product_kernel(self.outer).value

        def fill(X: Any, out: np.ndarray) -> None:
            inner(X, out)
            out[:] = value(out)

        return fill

    def diagonal(self, X: Any) -> np.ndarray:
        """k(x, x) of each row."""
        return dot_product_kernel(self.outer).value(any_kernel(self.inner).diagonal(X))

    def __eq__(self, other: object) -> bool:
        return same_parameters(self, other)

    def __hash__(self) -> int:
        return hash(type(self))
