"""The choice of a solver.

"Kept" means that all rows are still held as features. `fit` holds them if there are fewer rows than
features, and a stream until its buffer of `block_rows` rows is full.

| rows n, features E    | penalty | alpha                               | solver              |
|-----------------------|---------|-------------------------------------|---------------------|
| kept, 16,384 < n < E  | `|b|^2` | a number, or "auto" for all targets | conjugate gradients |
| kept, n < E           | `|b|^2` | anything else                       | span                |
| any other             | any     | a number, or "auto" for all targets | cholesky            |
| any other             | any     | "gcv", a sequence, or one per target | path               |

The span of n kept rows turns the problem into a problem with at most n features, for which the last
two lines of the table decide. "auto" factors H once for each of about eight alphas. The path takes
one eigen-decomposition for all alphas, which costs as much as about thirty factorizations. For a
sequence of alphas, a path solves each fold, and the line of the table for the chosen alpha says
what solves all rows.
"""

from enum import StrEnum
from typing import Any

import numpy as np

MANY_ROWS = 16384  # above this, products of all pairs of rows are avoided if possible
DOUBLE_PRECISION_FEATURES = 2048  # up to this, products are float64, which costs little


class Solver(StrEnum):
    """The solvers, by the names of their modules."""

    CONJUGATE_GRADIENTS = "conjugate_gradients"
    SPAN = "span"
    CHOLESKY = "cholesky"
    PATH = "path"


def choose(
    n_kept: int | None, n_features: int, alpha: Any, *, penalized: bool, per_target: bool
) -> Solver:
    """Return the solver that the table above gives.

    Parameters
    ----------
    n_kept : int or None
        Number of rows if all of them are kept as features; None if there are sums.
    n_features : int
    alpha : float, "auto", "gcv", or array of one per target or one per fold
    penalized : bool
        Whether the map has a penalty of its own.
    per_target : bool
        Whether each target gets its own alpha.

    Examples
    --------
    >>> from craftmaps.learn.solvers.choose import choose
    >>> choose(None, 1024, "auto", penalized=False, per_target=False)
    <Solver.CHOLESKY: 'cholesky'>
    >>> choose(500, 1024, "auto", penalized=False, per_target=False)
    <Solver.SPAN: 'span'>
    """
    shared = is_scalar(alpha) or (is_auto(alpha) and not per_target)
    if n_kept is not None and n_kept < n_features and not penalized:
        return Solver.CONJUGATE_GRADIENTS if n_kept > MANY_ROWS and shared else Solver.SPAN
    return Solver.CHOLESKY if shared else Solver.PATH


def is_scalar(alpha: Any) -> bool:
    """Whether alpha is one number."""
    return not isinstance(alpha, str) and np.ndim(alpha) == 0


def is_auto(alpha: Any) -> bool:
    """Whether alpha is "auto"."""
    return isinstance(alpha, str) and alpha == "auto"


def is_sequence(alpha: Any) -> bool:
    """Whether alpha is a sequence of numbers to choose from by cross-validation."""
    return not isinstance(alpha, str) and np.ndim(alpha) > 0
