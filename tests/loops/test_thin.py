"""Products with few columns against the same products of NumPy."""

import numpy as np
import pytest

from craftmaps.loops import thin


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_columns"),
    [(1, 1, 2), (3, 40, 5), (67, 64, 4), (70, 1100, 10), (130, 77, 32), (9, 130, 33), (9, 130, 1)],
)
def test_products_are_those_of_numpy(dtype, n_rows, n_features, n_columns):
    rng = np.random.default_rng(n_rows)
    Z = rng.standard_normal((n_rows, n_features)).astype(dtype)
    W = rng.standard_normal((n_features, n_columns))
    by_column = thin.padded(W, Z.dtype)
    scores = thin.scores(Z, by_column)
    G = np.zeros_like(scores)
    G[:, :n_columns] = rng.standard_normal((n_rows, n_columns))
    gradients = thin.gradients(Z, G)
    eps = np.finfo(dtype).eps
    # the rounding error of a sum is at most its number of terms times eps times the absolute sum
    bound = (n_features + 8) * eps * (abs(Z) @ abs(W)).max()
    np.testing.assert_allclose(scores[:, :n_columns], Z @ W, rtol=0, atol=bound)
    assert not scores[:, n_columns:].any()
    bound = (n_rows + 8) * eps * (abs(G.T) @ abs(Z)).max()
    np.testing.assert_allclose(gradients, G.T.astype(float) @ Z, rtol=0, atol=bound)
    assert scores.dtype == gradients.dtype == dtype


def test_other_orders_of_memory_and_read_only_rows():
    rng = np.random.default_rng(0)
    Z, W = rng.standard_normal((50, 80)), rng.standard_normal((80, 6))
    Z.flags.writeable = False
    by_column = thin.padded(W, Z.dtype)
    for rows in (Z, np.asfortranarray(Z), np.repeat(Z, 2, axis=1)[:, ::2]):
        scores = thin.scores(rows, by_column)
        np.testing.assert_allclose(scores[:, :6], Z @ W, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            thin.gradients(rows, scores)[:6], scores[:, :6].T @ Z, rtol=0, atol=1e-11
        )
