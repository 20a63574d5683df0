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
    """k_1(x, y) + k_2(x, y) + ...: a model of a sum is a sum of models, one for each kernel.

    Where a target has a smooth part and a rough part, the sum of a smooth and a rough kernel is
    often better than each of them.

    Parameters
    ----------
    kernels : sequence of kernels, strings or callables
        The terms: kernels of this library, their names, names of kernels of scikit-learn, or
        functions of two matrices that return a Gram matrix.

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
        """The terms as checked objects."""
        if isinstance(self.kernels, str | Kernel) or not len(self.kernels):
            raise ValueError(f"Sum: kernels must be a list of at least one, got {self.kernels!r}.")
        return [any_kernel(kernel) for kernel in self.kernels]

    def resolved(self, X: Any) -> Self:
        """This sum with kernels in the place of names, and numbers for each gamma."""
        kernel: Self = clone(self).set_params(kernels=[k.resolved(X) for k in self._terms()])
        return kernel

    def check_resolved(self) -> None:
        if not all(isinstance(kernel, Kernel) for kernel in self.kernels):
            raise ValueError(f"{self!r} has names in the place of kernels.")
        for kernel in self._terms():
            kernel.check_resolved()

    @property
    def threads(self) -> bool:  # type: ignore[override]
        """Whether blocks of rows may be filled side by side."""
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
