"""Errors and discriminants of a linear model, computed from the sums of the pass alone."""

import numpy as np
from scipy.linalg import blas

from craftmaps.learn.discriminant import Discriminant
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers.solution import Solution


def squared_error(
    equations: NormalEquations, coef: np.ndarray, intercept: np.ndarray
) -> np.ndarray:
    """Return the sum of squared errors of a linear model on the rows of the sums, per target."""
    quadratic = np.einsum("ij,ij->j", coef, _symmetric_product(equations, coef))
    shift = equations.y_mean - equations.z_mean @ coef - intercept
    linear = np.einsum("ij,ij->j", coef, equations.gradient)
    return np.asarray(equations.y_square - 2 * linear + quadratic + equations.weight * shift**2)


def discriminant(equations: NormalEquations, solution: Solution, same_sum: bool) -> Discriminant:
    """Return the linear discriminant of one-vs-rest predictions.

    Targets are 1 on the rows of a class and -1 elsewhere, so the means of the targets give the
    shares of the classes, and column k of G is twice the sum of z - m over class k.
    """
    coef, weight = solution.coef, equations.weight
    share = (1 + equations.y_mean) / 2
    sums = equations.gradient.T @ coef / 2
    return Discriminant.learn(
        share,
        equations.z_mean @ coef + solution.intercept,
        sums / weight,
        coef.T @ _symmetric_product(equations, coef) / weight,
        float(np.finfo(equations.precision).eps),
        same_sum,
    )


def _symmetric_product(equations: NormalEquations, right: np.ndarray) -> np.ndarray:
    return np.asarray(blas.dsymm(1.0, equations._lower, np.asfortranarray(right), lower=1))
