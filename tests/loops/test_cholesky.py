"""Factors and inverses that are computed in place, against NumPy."""

import numpy as np
import pytest

from craftmaps.loops import cholesky

SIZES = [1, 2, 63, 64, 65, 130, 301]


def positive(n, dtype=np.float64):
    rows = np.random.default_rng(n).normal(size=(n, n + 5))
    return (rows @ rows.T / n + np.eye(n)).astype(dtype)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_and_inverses(n, dtype):
    A = positive(n, dtype)
    U = np.triu(A)
    assert cholesky.factor(U)
    precision = {"rtol": 1e3 * np.finfo(dtype).eps, "atol": 1e2 * np.finfo(dtype).eps}
    np.testing.assert_allclose(U, np.linalg.cholesky(A.astype(np.float64)).T, **precision)
    right = np.random.default_rng(0).normal(size=(n, 3)).astype(dtype)
    solved = np.linalg.solve(A.astype(np.float64), right)
    np.testing.assert_allclose(cholesky.solve(U, right), solved, **precision)
    inverse = np.linalg.inv(U.astype(np.float64))
    cholesky.invert(U)
    np.testing.assert_allclose(U, inverse, **precision)


def test_the_other_triangle_is_left_alone():
    below = np.tril(np.full((130, 130), 7.0), -1)
    A = np.triu(positive(130)) + below
    assert cholesky.factor(A)
    cholesky.invert(A)
    np.testing.assert_array_equal(np.tril(A, -1), below)


def test_a_matrix_that_is_not_definite():
    assert not cholesky.factor(np.diag([1.0, -1.0, 1.0]))


@pytest.mark.parametrize(
    "matrix", [np.eye(3)[:, ::-1], np.ones((2, 3)), np.eye(3, dtype=int), np.eye(4)[::2, ::2]]
)
def test_arrays_that_cannot_be_changed_in_place(matrix):
    for function in (cholesky.factor, cholesky.invert, lambda A: cholesky.solve(A, A)):
        with pytest.raises(ValueError, match="a matrix"):
            function(matrix)
