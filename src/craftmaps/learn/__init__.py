"""Features in, model out: sums of one pass, a ridge solve, codes for classes."""

from craftmaps.learn.classifier import OnePassClassifier
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.regressor import OnePassRegressor

__all__ = ["NormalEquations", "OnePassClassifier", "OnePassRegressor"]
