"""What is approximated: kernels that know their exact values, and their series or spectra."""

from craftmaps.kernels.composed import Composed
from craftmaps.kernels.dot_product import (
    DotProduct,
    DotProductKernel,
    Exponential,
    Polynomial,
    VovkInfinite,
    VovkReal,
)
from craftmaps.kernels.learned import dot_product_or_fitted_kernel
from craftmaps.kernels.names import (
    Kernel,
    any_kernel,
    dot_product_kernel,
    shift_invariant_kernel,
)
from craftmaps.kernels.shift_invariant import (
    Cauchy,
    Gaussian,
    Laplacian,
    Matern,
    ShiftInvariant,
    ShiftInvariantKernel,
)

__all__ = [
    "Cauchy",
    "Composed",
    "DotProduct",
    "DotProductKernel",
    "Exponential",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Matern",
    "Polynomial",
    "ShiftInvariant",
    "ShiftInvariantKernel",
    "VovkInfinite",
    "VovkReal",
    "any_kernel",
    "dot_product_kernel",
    "dot_product_or_fitted_kernel",
    "shift_invariant_kernel",
]
