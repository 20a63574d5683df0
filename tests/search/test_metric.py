"""A metric that is learned from gradients."""

import numpy as np
import pytest
from scipy import sparse

from craftmaps import Gaussian, Laplacian, Matern, Polynomial
from craftmaps.kernels.gradients import gradient_products
from craftmaps.search.candidates import Candidate
from craftmaps.search.metric import can_rotate, has_gradients, with_metric
from craftmaps.search.preparation import Scaling
from craftmaps.search.trials import Rows

KERNELS = [
    Gaussian(gamma=0.4),
    Laplacian(gamma=0.4),
    Matern(nu=0.5, gamma=0.7),
    Matern(nu=1.5, gamma=0.7),
    Matern(nu=2.5, gamma=0.7),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradients_agree_with_differences(kernel):
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    step, expected = 1e-6, np.zeros((4, 4))
    for i, row in enumerate(X):
        others = np.arange(30) != i  # rough kernels have no derivative at the row itself
        up, down = row + step * np.eye(4), row - step * np.eye(4)
        change = kernel(up, X[others]) - kernel(down, X[others])
        gradients = change @ coef[others] / (2 * step)
        expected += gradients @ gradients.T
    expected /= np.trace(expected)
    full, diagonal = (gradient_products(kernel, X, coef, full) for full in (True, False))
    np.testing.assert_allclose(full / np.trace(full), expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(diagonal / diagonal.sum(), np.diag(expected), rtol=1e-4)


@pytest.mark.parametrize("rotated", [False, True])
def test_what_matters_is_found(rotated):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 10))
    turn = np.linalg.qr(rng.normal(size=(10, 10)))[0] if rotated else np.eye(10)
    y = np.sin(2 * X @ turn[:, 0]) + (X @ turn[:, 1]) ** 2 / 2
    rows = Rows(X, y, False, rng)
    plain = rows.judged([Candidate(Scaling(), Matern(nu=1.5, gamma=0.2))], len(X))
    found = with_metric(rows, [plain])
    weights = np.array(found.preparation.weights)
    assert weights.ndim == 1 + rotated
    across = np.diag(weights) if weights.ndim == 1 else weights
    lengths = np.linalg.norm(turn.T @ across, axis=1)
    assert lengths[:2].min() > 3 * lengths[2:].max()
    (better,) = rows.judged([found], len(X))
    assert better.error < 0.5 * plain[0].error


def test_no_metric_where_all_columns_matter_alike():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = np.sin(X).sum(axis=1) + rng.normal(size=600)
    rows = Rows(X, y, False, rng)
    plain = rows.judged([Candidate(Scaling(), Gaussian(gamma=0.1))], len(X))
    assert with_metric(rows, [plain]) is None


def test_where_weights_are_learned():
    rows, wide = np.ones((3, 5)), np.ones((3, 500))
    gaussian, laplacian, polynomial = (
        Candidate(Scaling(), kernel)
        for kernel in (Gaussian(gamma=1.0), Laplacian(gamma=1.0), Polynomial(3))
    )
    assert has_gradients(gaussian, rows)
    assert has_gradients(gaussian, wide)
    assert has_gradients(laplacian, rows)
    assert not has_gradients(laplacian, wide)
    assert not has_gradients(polynomial, rows)
    assert not has_gradients(gaussian, sparse.csr_array(rows))
    assert can_rotate(gaussian, rows)
    assert not can_rotate(gaussian, wide)
    assert not can_rotate(laplacian, rows)
