"""Kernel machines at the price of linear ones: compact random feature maps for scikit-learn."""

# ruff: noqa: F403, F405 (the names are listed once, in craftmaps.public, for type checkers)
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftmaps.public import *

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

_ROOMS = ("diagnose", "kernels", "learn", "maps", "models", "scale")


def __getattr__(name: str) -> Any:
    """Names and sub-packages when they are first used, so that the command line starts at once."""
    if name in __all__:
        found = globals()[name] = getattr(import_module("craftmaps.public"), name)
        return found
    if name in _ROOMS:
        return import_module(f"craftmaps.{name}")
    raise AttributeError(f"module 'craftmaps' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__, *_ROOMS]
