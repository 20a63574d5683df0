"""The best data-independent map for a kernel and rows."""

import numpy as np
import pytest
from scipy import sparse

from craftmaps import (
    Cauchy,
    Composed,
    CompositionalMap,
    CraftMap,
    Exponential,
    FourierFeatures,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    TensorSketch,
    feature_map,
)
from craftmaps.kernels import ShiftInvariant


def rows(n_columns, n_rows=300):
    return np.random.default_rng(0).normal(size=(n_rows, n_columns))


def measured_error(one, X, seeds=4):
    exact = one.kernel(X)
    pairs = np.triu_indices(len(X), 1)
    squares = []
    for seed in range(seeds):
        Z = one.set_params(random_state=seed).fit_transform(X)
        squares.append(np.mean((Z @ Z.T - exact)[pairs] ** 2))
    return np.sqrt(np.mean(squares) / np.mean(exact[pairs] ** 2))


@pytest.mark.parametrize(
    ("kernel", "n_columns", "sampling"),
    [
        (Matern(), 10, "orthogonal"),
        (Matern(), 300, "structured"),
        (Laplacian("median"), 10, "qmc"),
        (Cauchy(), 10, "qmc"),
        (Laplacian(), 2000, "iid"),
        (
            ShiftInvariant(lambda n, d, rng: rng.normal(size=(n, d)), isotropic=True),
            300,
            "orthogonal",
        ),
        (ShiftInvariant(lambda n, d, rng: rng.normal(size=(n, d))), 300, "iid"),
    ],
)
def test_every_kernel_gets_a_sampling_that_it_allows(kernel, n_columns, sampling):
    X = rows(n_columns, 5)
    chosen = feature_map(kernel, X, 8, random_state=0)
    assert chosen.sampling == sampling
    assert chosen.fit_transform(X).shape == (5, 8)


@pytest.mark.parametrize("n_columns", [3, 10, 40])
def test_wide_gaussian_kernels_get_a_series(n_columns):
    X = rows(n_columns)
    chosen = feature_map(Gaussian("median"), X, 128)
    assert isinstance(chosen, CraftMap)
    kernel = Gaussian("median").resolved(X)
    fourier = FourierFeatures(kernel, 128, sampling="orthogonal")
    assert measured_error(chosen.set_params(kernel=kernel), X) < measured_error(fourier, X)


def test_narrow_gaussian_kernels_get_fourier_features():
    """Rows in clusters: Fourier features have less error, and take less time."""
    X = 0.2 * rows(40)
    X[:150] += 1.5 * np.random.default_rng(0).choice([-1, 1], 40)
    chosen = feature_map(Gaussian(0.1), X, 256)
    assert isinstance(chosen, FourierFeatures)
    with pytest.warns(UserWarning, match="the kernel is narrow"):
        craft = measured_error(CraftMap(Gaussian(0.1), 256), X)
    assert measured_error(chosen, X) < craft


@pytest.mark.parametrize("kernel", [Polynomial(3), Exponential(0.5), "poly"])
def test_dot_products_of_dense_rows(kernel):
    assert isinstance(feature_map(kernel, rows(10), 64), CraftMap)


def test_polynomials_of_sparse_rows():
    """Rotations cost the columns of a row, a sketch its non-zeros and a transform of its output."""
    X = sparse.random(200, 50_000, 0.0005, random_state=0, format="csr")
    assert isinstance(feature_map(Polynomial(2), X, 512), TensorSketch)
    few = sparse.random(200, 30, 0.3, random_state=0, format="csr")
    assert isinstance(feature_map(Polynomial(2), few, 512), CraftMap)
    assert isinstance(feature_map(Exponential(), X, 512), CraftMap)


def test_compositions_and_names():
    kernel = Composed(Polynomial(2), Gaussian(0.5))
    assert isinstance(feature_map(kernel, rows(4), 64), CompositionalMap)
    assert isinstance(feature_map("cauchy", rows(4), 64), FourierFeatures)


def test_the_choice_is_not_random_and_the_map_is():
    X = rows(12, 4000)
    first, second = (feature_map(Gaussian("median"), X, 256, random_state=s) for s in (1, 2))
    assert first.get_params() == second.get_params() | {"random_state": 1}
    assert not hasattr(first, "_n_features_out")


def test_kernels_without_a_map():
    with pytest.raises(ValueError, match="has no data-independent map; use Nystroem"):
        feature_map("chi2", rows(4), 64)
