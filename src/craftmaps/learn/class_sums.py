"""Class weights that are applied after the last row, to sums that are kept per class."""

from copy import copy
from typing import Any

import numpy as np

from craftmaps.learn.normal_equations import NormalEquations


def is_own_class(class_weight: Any) -> bool:
    """Whether the rows of a class weigh more in the target of that class only."""
    return isinstance(class_weight, str) and class_weight == "own-class"


def class_factors(class_weight: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the factor on the weights of the rows of each class.

    Parameters
    ----------
    class_weight : dict, "balanced" or anything else
        Classes that a dict does not name have the factor 1. Without a dict, all classes have it.
    classes : ndarray of shape (n_classes,)
    counts : ndarray of shape (n_classes,)
        Number of rows of each class. A class without rows does not count for "balanced", where
        every other class gets the same total.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps.learn.class_sums import class_factors
    >>> class_factors("balanced", np.array(["a", "b", "c"]), np.array([30, 0, 10])).tolist()
    [0.6666666666666666, 20.0, 2.0]
    """
    if isinstance(class_weight, dict):
        known = [class_weight.get(label, 1.0) for label in classes.tolist()]
        return np.array(known, dtype=np.float64)
    if isinstance(class_weight, str) and class_weight == "balanced":
        present = np.count_nonzero(counts)
        return np.asarray(counts.sum() / (max(present, 1) * np.maximum(counts, 1)))
    return np.ones(len(classes))


def weighted_total(folds: list[NormalEquations], factors: np.ndarray) -> NormalEquations:
    """Return the sum of all folds, where fold c counts `factors[c]` times; folds stay unchanged.

    One copy is made at a time, because the folds together may fill most of the memory.
    """
    total = NormalEquations()
    for fold, factor in zip(folds, factors, strict=True):
        total.merge(fold if factor == 1 else copy(fold).scale(float(factor)))
    return total
