"""Kernels with their exact values, and the series or spectra that maps approximate."""

from craftmaps.kernels.base import Kernel
from craftmaps.kernels.composed import Composed
from craftmaps.kernels.dot_product import (
    DotProduct,
    DotProductKernel,
    Exponential,
    Polynomial,
    VovkInfinite,
    VovkReal,
)
from craftmaps.kernels.function import ShiftInvariant
from craftmaps.kernels.learned import series_or_fitted_kernel as series_or_fitted_kernel
from craftmaps.kernels.names import any_kernel as any_kernel
from craftmaps.kernels.names import dot_product_kernel as dot_product_kernel
from craftmaps.kernels.names import shift_invariant_kernel as shift_invariant_kernel
from craftmaps.kernels.shift_invariant import (
    Cauchy,
    Gaussian,
    Laplacian,
    Matern,
    ShiftInvariantKernel,
)
from craftmaps.kernels.sums import Sum

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
    "Sum",
    "VovkInfinite",
    "VovkReal",
]
