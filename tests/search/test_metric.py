"""Weights of columns that are learned from gradients."""

import numpy as np
import pytest
from scipy import sparse

from craftmaps import Gaussian, Laplacian, Matern, Polynomial
from craftmaps.search.candidates import Candidate
from craftmaps.search.metric import has_gradients, squared_derivatives
from craftmaps.search.preparation import Preparation

KERNELS = [
    Gaussian(gamma=0.4),
    Laplacian(gamma=0.4),
    Matern(nu=0.5, gamma=0.7),
    Matern(nu=1.5, gamma=0.7),
    Matern(nu=2.5, gamma=0.7),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_derivatives_agree_with_differences(kernel):
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    found = squared_derivatives(kernel, X, coef)
    step, expected = 1e-6, np.zeros(4)
    for i, row in enumerate(X):
        others = np.arange(30) != i  # rough kernels have no derivative at the row itself
        for j in range(4):
            up, down = row.copy(), row.copy()
            up[j] += step
            down[j] -= step
            change = kernel(up[None], X[others]) - kernel(down[None], X[others])
            expected[j] += np.sum((change @ coef[others] / (2 * step)) ** 2)
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), rtol=1e-4)


def test_where_weights_are_learned():
    rows, wide = np.ones((3, 5)), np.ones((3, 500))
    gaussian, laplacian, polynomial = (
        Candidate(Preparation(), kernel)
        for kernel in (Gaussian(gamma=1.0), Laplacian(gamma=1.0), Polynomial(3))
    )
    assert has_gradients(gaussian, rows)
    assert has_gradients(gaussian, wide)
    assert has_gradients(laplacian, rows)
    assert not has_gradients(laplacian, wide)
    assert not has_gradients(polynomial, rows)
    assert not has_gradients(gaussian, sparse.csr_array(rows))
