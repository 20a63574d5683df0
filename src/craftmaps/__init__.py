"""Kernel machines at the price of linear ones: compact random feature maps for scikit-learn."""

from importlib.metadata import version

from craftmaps.kernels import DotProduct, Exponential, Polynomial, VovkInfinite, VovkReal
from craftmaps.learn import NormalEquations, OnePassClassifier, OnePassRegressor
from craftmaps.maps import CraftMap, RandomMaclaurin, TensorSketch

__version__ = version("craftmaps")

__all__ = [
    "CraftMap",
    "DotProduct",
    "Exponential",
    "NormalEquations",
    "OnePassClassifier",
    "OnePassRegressor",
    "Polynomial",
    "RandomMaclaurin",
    "TensorSketch",
    "VovkInfinite",
    "VovkReal",
]
