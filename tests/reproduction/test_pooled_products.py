"""Pooled projections: against explicit matrices, and as biased as their formula says."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import hadamard

import oracles
from craftmaps import CraftMap, Polynomial
from craftmaps.diagnose import expected_error
from reproduction.pooled_products import PooledMaclaurin, PooledProducts
from unbiased import Biased, check_unbiased, kernel_estimates

X = np.random.default_rng(0).normal(0.3, 0.5, size=(6, 5))
X /= np.linalg.norm(X, axis=1, keepdims=True)


def test_features_are_products_of_pooled_entries_of_explicit_transforms():
    counts, weights = np.array([1, 3, 4, 0, 5]), np.array([1.0, 0.5, 0.25, 1.0, 2.0])
    drawn = PooledProducts.draw(counts, weights, 1, 5, np.random.default_rng(0))
    Z = np.full((6, 13), np.nan)
    drawn.fill(X, Z)
    padded = np.hstack([X, -X, np.zeros((6, 1))])
    size = drawn.gather.shape[1]
    pool = np.hstack([padded[:, signs] @ hadamard(size) for signs in drawn.gather])
    expected, taken = np.zeros((6, 13)), 0
    for column, degree in enumerate(np.repeat(np.arange(5), counts)[1:], start=1):
        factors = drawn.factor[taken : taken + degree]
        expected[:, column] = weights[degree] ** 0.5 * pool[:, factors].prod(axis=1)
        taken += degree
    np.testing.assert_allclose(Z, expected, atol=1e-12)


def test_sparse_and_single_precision_rows_have_the_same_features():
    drawn = PooledMaclaurin(Polynomial(3), 150, allocation="geometric", random_state=0).fit(X)
    Z = drawn.transform(X)
    np.testing.assert_allclose(drawn.transform(sparse.csr_array(X)), Z, atol=1e-12)
    narrow = drawn.transform(X.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, Z, atol=1e-4)


def test_a_craft_map_takes_it_for_its_up_projection():
    up = PooledMaclaurin(Polynomial(3), allocation="geometric")
    fitted = CraftMap(Polynomial(3), 64, n_up=512, up=up, down="srht", random_state=0).fit(X)
    assert isinstance(fitted.up_._products, PooledProducts)
    assert fitted.transform(X).shape == (6, 64)


def test_pooled_rows_are_biased_by_what_the_formula_says():
    """CRAFT s.3.5 as printed, at small d: c - (m - c)/(T d - 1) instead of c."""
    x, y = np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.6, 0.8, 0.0, 0.0])
    counts, weights = np.array([0, 0, 4]), np.array([0, 0, 1 / 4])
    rng = np.random.default_rng(0)
    estimates, Z = [], np.empty((2, 4))
    for _ in range(12_000):
        PooledProducts.draw(counts, weights, 0, 4, rng).fill(np.array([x, y]), Z)
        estimates.append([Z[0] @ Z[1]])
    c, q = (x @ y) ** 2, np.sum(x**2 * y**2)
    m = (x @ x) * (y @ y) + 2 * c - 2 * q
    pooled = 2 * 4  # entries that the features need, a multiple of d
    check_unbiased(estimates, [c - (m - c) / (pooled - 1)], smallest=0.12)
    with pytest.raises(Biased):
        check_unbiased(estimates, [c], smallest=0.12)


def test_the_map_is_as_biased_as_its_formula_says():
    """Degree 2: c - (m - c)/(T d - 1) instead of c, for T copies of d pooled entries."""
    kernel, x, y, size, D = Polynomial(degree=2, coef0=0.0), X[0], X[1], 8, 4

    def make(seed):
        return PooledMaclaurin(kernel, D, random_state=seed)

    estimates = kernel_estimates(make, np.array([x, y]), [(0, 0), (1, 1)], range(2000))
    pairs = [oracles.pair_moments(v, v) for v in (x, y)]
    expected = [c - (N + c - 2 * q) / (size - 1) for c, N, q in pairs]
    check_unbiased(estimates, expected, smallest=0.25)
    with pytest.raises(Biased):
        check_unbiased(estimates, [c for c, _, _ in pairs], smallest=0.25)


def test_there_is_no_formula_for_the_error():
    with pytest.raises(ValueError, match="measure it with gram_error"):
        expected_error(PooledMaclaurin(Polynomial(3), 64), X)


def test_complex_features_are_refused():
    with pytest.raises(ValueError, match="complex_to_real=False"):
        PooledMaclaurin(complex_to_real=True).fit(X)
