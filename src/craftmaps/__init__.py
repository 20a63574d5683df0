"""Kernel machines at the price of linear ones: compact random feature maps for scikit-learn."""

from importlib.metadata import version

from craftmaps.deploy import export_onnx
from craftmaps.kernels import (
    Cauchy,
    Composed,
    DotProduct,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    VovkInfinite,
    VovkReal,
)
from craftmaps.learn import NormalEquations, OnePassClassifier, OnePassRegressor
from craftmaps.maps import (
    CompositionalMap,
    CraftMap,
    FourierFeatures,
    Nystroem,
    RandomMaclaurin,
    TensorSketch,
)
from craftmaps.model_file import load

__version__ = version("craftmaps")

__all__ = [
    "Cauchy",
    "Composed",
    "CompositionalMap",
    "CraftMap",
    "DotProduct",
    "Exponential",
    "FourierFeatures",
    "Gaussian",
    "Laplacian",
    "Matern",
    "NormalEquations",
    "Nystroem",
    "OnePassClassifier",
    "OnePassRegressor",
    "Polynomial",
    "RandomMaclaurin",
    "TensorSketch",
    "VovkInfinite",
    "VovkReal",
    "export_onnx",
    "load",
]
