"""The public names, imported when one of them is first asked for."""

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
    ImageMap,
    MetricMap,
    Nystroem,
    RandomMaclaurin,
    ScaledMap,
    TensorSketch,
)
from craftmaps.models import load
from craftmaps.models.onnx import export_onnx

__all__ = [
    "Cauchy",
    "Composed",
    "CompositionalMap",
    "CraftMap",
    "DotProduct",
    "Exponential",
    "FourierFeatures",
    "Gaussian",
    "ImageMap",
    "Laplacian",
    "Matern",
    "MetricMap",
    "NormalEquations",
    "Nystroem",
    "OnePassClassifier",
    "OnePassRegressor",
    "Polynomial",
    "RandomMaclaurin",
    "ScaledMap",
    "TensorSketch",
    "VovkInfinite",
    "VovkReal",
    "export_onnx",
    "load",
]
