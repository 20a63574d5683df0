"""Every kernel of the library, and every feature map once per way in which it can be set up.

A new map, or a new option of one, joins all common tests by a line in CASES; a new kernel joins
those of kernels by a line in KERNELS.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from craftmaps import (
    Cauchy,
    Composed,
    CompositionalMap,
    CraftMap,
    DotProduct,
    Exponential,
    FourierFeatures,
    Gaussian,
    ImageMap,
    Laplacian,
    LevelsMap,
    Matern,
    MetricMap,
    Nystroem,
    Polynomial,
    RandomMaclaurin,
    ScaledMap,
    Sum,
    TensorSketch,
    VovkInfinite,
    VovkReal,
)


@dataclass(frozen=True)
class Case:
    """A map and what may be asked of it.

    `same_bits`: a row's features do not depend on the rows beside it, to the last bit. That is not
    so where matrices are multiplied by BLAS, which rounds by the shape of the whole product.
    `any_rows`: it can be fitted to rows of any length, with a single component, as scikit-learn's
    own checks do.
    `landmarks`: it has no more columns than rows that it was fitted to.
    """

    name: str
    estimator: BaseEstimator
    same_bits: bool = True
    any_rows: bool = True
    landmarks: bool = False


def rows(n=40, d=13, seed=0):
    """Rows of unit norm, a third of whose entries are 0; d is not a power of two."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.67)
    X[:, 0] = 1.0
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def maclaurin(name, same_bits=True, any_rows=True, **options):
    options = {"kernel": Polynomial(degree=3), "n_components": 150, "random_state": 0} | options
    return Case(f"maclaurin-{name}", RandomMaclaurin(**options), same_bits, any_rows)


def fourier(name, same_bits=True):
    feature_map = FourierFeatures(Gaussian(gamma=0.5), 151, sampling=name, random_state=0)
    return Case(f"fourier-{name}", feature_map, same_bits)


INNER = CraftMap(Polynomial(degree=3), 150, random_state=0)
CASES = [
    maclaurin("default"),
    maclaurin("complex", any_rows=False, complex_to_real=True, n_components=151),
    maclaurin("h01", any_rows=False, h01="append"),
    maclaurin("geometric", allocation="geometric", p=3.0),
    maclaurin("proportional", allocation="proportional"),
    maclaurin("high", any_rows=False, kernel=Polynomial(degree=20, gamma=0.1), n_components=200),
    maclaurin("exp", any_rows=False, kernel=Exponential(gamma=0.5)),
    maclaurin("rbf", same_bits=False, any_rows=False, kernel=Gaussian(gamma=0.5)),
    maclaurin("rademacher", same_bits=False, projection="rademacher"),
    maclaurin("gaussian", same_bits=False, projection="gaussian"),
    Case("tensor-sketch", TensorSketch(Polynomial(degree=3), 150, random_state=0)),
    Case("tensor-sketch-odd", TensorSketch(Polynomial(degree=4, coef0=0.0), 101, random_state=0)),
    Case("craft", CraftMap(Polynomial(degree=3), 150, random_state=0)),
    Case("craft-srht", CraftMap(Polynomial(3), 150, down="srht", random_state=0)),
    Case("craft-rbf", CraftMap(Gaussian(gamma=0.5), 150, random_state=0), False, any_rows=False),
    fourier("iid", same_bits=False),
    fourier("orthogonal", same_bits=False),
    fourier("qmc", same_bits=False),
    fourier("structured"),
    fourier("fastfood"),
    Case(
        "nystroem",
        Nystroem(Gaussian(gamma=0.5), 10, random_state=0),
        same_bits=False,
        landmarks=True,
    ),
    Case(
        "compositional",
        CompositionalMap(Composed(Polynomial(2), Gaussian(gamma=0.5)), 150, random_state=0),
        same_bits=False,
    ),
    Case("scaled", ScaledMap(INNER, columns="std"), same_bits=False),
    Case("levels", LevelsMap(INNER)),
    Case("metric", MetricMap(INNER, power=0.0), same_bits=False),
    Case("image", ImageMap(INNER, cells=1, shape=(1, -1))),
]
LEARNING = [MetricMap(INNER)]  # needs targets, which scikit-learn's checks have
MORE_MAPS = {  # settings that only files and ONNX models depend on
    "craft-tall": CraftMap(Polynomial(7), 30, n_up=2000, random_state=0),
    "craft-gaussian": CraftMap(Polynomial(3), 20, n_up=50, down="gaussian", random_state=0),
    "craft-rademacher": CraftMap(Polynomial(3), 20, n_up=50, down="rademacher", random_state=0),
    "craft-sparse": CraftMap(Polynomial(3), 20, n_up=50, down="sparse", random_state=0),
    "craft-sparse-few": CraftMap(Polynomial(3), 3, n_up=50, down="sparse", random_state=0),
    "craft-principal": CraftMap(Polynomial(3), 20, n_up=50, down="principal", random_state=0),
    "craft-sketch": CraftMap(Polynomial(3), 20, up="tensor-sketch", random_state=0),
    "craft-of-map": CraftMap(n_components=20, up=RandomMaclaurin("exp", 50), random_state=0),
    "craft-of-map-srht": CraftMap(
        n_components=20, up=RandomMaclaurin("exp", 50), down="srht", random_state=0
    ),
    "craft-none": CraftMap(Polynomial(3), 20, n_up=50, h01="none", random_state=0),
    "craft-append": CraftMap(Polynomial(3), 200, h01="append", random_state=0),
    "craft-up": CraftMap(Polynomial(3), 200, n_up=400, h01="up", random_state=0),
    "craft-inside-srht": CraftMap(
        Polynomial(3), 20, n_up=50, h01="none", down="srht", random_state=0
    ),
    "craft-monomials": CraftMap(Polynomial(4), 150, random_state=0),
    "craft-exact": CraftMap(Polynomial(2), 150, random_state=0),
    "craft-exact-homogeneous": CraftMap(Polynomial(2, coef0=0.0), 150, random_state=0),
    "complex-matrices": RandomMaclaurin(
        Polynomial(4), 301, projection="rademacher", complex_to_real=True, random_state=0
    ),
    "complex-many": RandomMaclaurin(Polynomial(4), 901, complex_to_real=True, random_state=0),
    "linear": RandomMaclaurin(DotProduct([0.0, 1.0]), 150, h01="append", random_state=0),
    "constant": RandomMaclaurin(DotProduct([2.0]), 5, random_state=0),
    "composed": CompositionalMap(Composed(Polynomial(2), Gaussian()), 40, random_state=0),
    "composed-series": CompositionalMap(
        Composed(DotProduct([0.0, 1.0, 0.5]), "exp"), 41, random_state=0
    ),
    "composed-craft": CompositionalMap(
        Composed(Polynomial(2), Polynomial(2)),
        40,
        inner_map=CraftMap(Polynomial(2), 30),
        random_state=0,
    ),
    "fourier-one": FourierFeatures(Gaussian(0.5), 1, random_state=0),
    "fourier-matern": FourierFeatures(Matern(), 300, sampling="structured", random_state=0),
    "scaled": ScaledMap(CraftMap(n_components=20, random_state=0), columns="standard"),
    "levels": LevelsMap(
        TensorSketch(n_components=16, random_state=0),
        levels=np.array([(0, rows()[0, 0]), (0, rows()[1, 0]), (1, rows()[0, 1])], np.float32),
    ),
    "scaled-matrix": ScaledMap(
        CraftMap(n_components=20, random_state=0),
        columns="standard",
        weights=np.random.default_rng(0).normal(size=(13, 13)),
    ),
    "scaled-range": ScaledMap(
        FourierFeatures(n_components=20, random_state=0), columns="minmax", unit_norm=False
    ),
    "nystroem": Nystroem(Matern(nu=2.5), 10, landmarks="rpcholesky", random_state=0),
    "nystroem-raw": Nystroem("poly", 10, whiten=False, random_state=0),
    "nystroem-given": Nystroem(Gaussian(), landmarks=rows()[:7]),
    "series": RandomMaclaurin(DotProduct.from_function(np.cosh), 30, random_state=0),
    "sketch-large": TensorSketch(Polynomial(4), 1000, random_state=0),
    "sketch-prime": TensorSketch(Polynomial(2), 1009, random_state=0),
}
KERNELS = [
    Polynomial(degree=3, gamma=0.5),
    Exponential(gamma=0.5),
    VovkReal(p=4, gamma=0.5),
    VovkInfinite(gamma=0.5),
    DotProduct([1.0, 0.0, 0.5], gamma=0.5),
    Gaussian(gamma=0.5),
    Laplacian(gamma=0.5),
    Cauchy(gamma=0.5),
    Matern(nu=2.5, gamma=0.5),
    Composed(Polynomial(degree=2), Gaussian(gamma=0.5)),
    Sum([Gaussian(gamma=0.5), Laplacian(gamma=0.25)]),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
every_map = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
more_maps = pytest.mark.parametrize("feature_map", MORE_MAPS.values(), ids=MORE_MAPS)


def innermost(estimator):
    """The map inside of maps that prepare rows, or the map itself."""
    while hasattr(estimator, "feature_map"):
        estimator = estimator.feature_map
    return estimator
