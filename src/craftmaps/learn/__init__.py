"""Features in, model out: losses, solvers, sums of one pass, codes for classes."""

from craftmaps.learn.classifier import OnePassClassifier
from craftmaps.learn.kernel_classifier import KernelClassifier
from craftmaps.learn.kernel_pca import KernelPCA
from craftmaps.learn.kernel_regressor import KernelRegressor
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.regressor import OnePassRegressor
from craftmaps.learn.window import Window

__all__ = [
    "KernelClassifier",
    "KernelPCA",
    "KernelRegressor",
    "NormalEquations",
    "OnePassClassifier",
    "OnePassRegressor",
    "Window",
]
