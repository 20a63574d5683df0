"""What is approximated: kernels that know their exact values and their series."""

from typing import Any

from sklearn.base import clone

from craftmaps.kernels.dot_product import (
    DotProduct,
    DotProductKernel,
    Exponential,
    Polynomial,
    VovkInfinite,
    VovkReal,
)

_BY_NAME = {"poly": Polynomial, "exp": Exponential}


def dot_product_kernel(kernel: Any) -> DotProductKernel:
    """A checked copy of the kernel that a map's `kernel` parameter names."""
    if isinstance(kernel, str) and kernel in _BY_NAME:
        kernel = _BY_NAME[kernel]()
    if not isinstance(kernel, DotProductKernel):
        raise ValueError(
            f"kernel must be a dot-product kernel such as Polynomial(degree=3), or one of "
            f"{sorted(_BY_NAME)}, got {kernel!r}."
        )
    kernel.check()
    copy: DotProductKernel = clone(kernel)  # a fitted map does not change with its parameters
    return copy


__all__ = [
    "DotProduct",
    "DotProductKernel",
    "Exponential",
    "Polynomial",
    "VovkInfinite",
    "VovkReal",
    "dot_product_kernel",
]
