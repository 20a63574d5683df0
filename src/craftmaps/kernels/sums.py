"""Sums of kernels."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from craftmaps.kernels.base import Kernel
from craftmaps.kernels.names import any_kernel
from craftmaps.kernels.pairs import Fill
from craftmaps.storage.packing import storable
from craftmaps.validation import check_rows_pair


@storable
class Sum(Kernel):
    """Sum of kernels k_1(x, y) + k_2(x, y) + ....

    A model with this kernel is a sum of models, one for each term. If the target has a smooth and
    a rough part, the sum of a smooth and a rough kernel is often better than either of them.

    Parameters
    ----------
    kernels : sequence of kernels, str or callable
        The terms. A string is the name of a kernel of this library or of scikit-learn; a callable
        is a function of two matrices that returns a Gram matrix.

    Examples
    --------
    >>> from craftmaps import Gaussian, Laplacian, Sum
    >>> kernel = Sum([Gaussian(gamma=0.5), Laplacian(gamma=0.5)])
    >>> kernel([[0.0]], [[0.0], [1.0]]).round(4).tolist()
    [[2.0, 1.2131]]
    """

    def __init__(self, kernels: Sequence[Any]) -> None:
        self.kernels = kernels

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        rows, others = check_rows_pair(X, Y)
        terms = [k(rows) if Y is None else k(rows, others) for k in self._terms()]
        return np.asarray(sum(terms[1:], start=terms[0]))

    def check(self) -> None:
        self._terms()

    def _terms(self) -> list[Kernel]:
        """Return the terms as validated kernel objects."""
        if isinstance(self.kernels, str | Kernel) or not len(self.kernels):
            raise ValueError(f"Sum: kernels must be a non-empty list, got {self.kernels!r}.")
        return [any_kernel(kernel) for kernel in self.kernels]

    def resolved(self, X: Any) -> Self:
        """Return a copy with kernel objects instead of names, and numbers for each gamma."""
        kernel: Self = clone(self).set_params(kernels=[k.resolved(X) for k in self._terms()])
        return kernel

    def check_resolved(self) -> None:
        if not all(isinstance(kernel, Kernel) for kernel in self.kernels):
            raise ValueError(f"{self!r} has names instead of kernels.")
        for kernel in self._terms():
            kernel.check_resolved()

    @property
    def threads(self) -> bool:  # type: ignore[override]
        """Whether blocks of rows may be filled in parallel."""
        return all(kernel.threads for kernel in self._terms())

    def against(self, Y: Any, dtype: np.dtype) -> Fill:
        first, *rest = [kernel.against(Y, dtype) for kernel in self._terms()]

        def fill(X: Any, out: np.ndarray) -> None:
            first(X, out)
            term = np.empty_like(out)
            for fill_term in rest:
                fill_term(X, term)
                out += term

        return fill

    def diagonal(self, X: Any) -> np.ndarray:
        return np.asarray(np.sum([kernel.diagonal(X) for kernel in self._terms()], axis=0))

    def onnx(self, g: Any, x: str, landmarks: np.ndarray) -> str:
        first, *rest = [kernel.onnx(g, x, landmarks) for kernel in self._terms()]
        for term in rest:
            first = g.add("Add", first, term)
        return str(first)
