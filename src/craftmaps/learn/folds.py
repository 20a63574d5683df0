"""Several sets of sums for one stream: one set per fold, or one per class."""

import numpy as np

from craftmaps.learn.normal_equations import NormalEquations


def empty_folds(n_folds: int) -> list[NormalEquations]:
    """Return sums without rows that share one work matrix."""
    first = NormalEquations()
    return [first, *(NormalEquations().share_work(first) for _ in range(n_folds - 1))]


def add_to_folds(
    folds: list[NormalEquations],
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray,
    numbers: np.ndarray,
    *,
    overwrite: bool = False,
) -> None:
    """Add each row to the fold with its entry in `numbers`; with `overwrite`, Z is work space."""
    if not len(Z):
        return
    some_weights = None if (weights == 1).all() else weights
    if len(folds) == 1:
        folds[0].update(Z, Y, some_weights, overwrite=overwrite)
        return
    for number, fold in enumerate(folds):
        rows = numbers == number
        if rows.any():
            some = None if some_weights is None else some_weights[rows]
            fold.update(Z[rows], Y[rows], some, overwrite=True)
