"""Coordinates in the span of a few rows, against orthogonalised rows."""

import numpy as np
import pytest

from craftmaps.learn import OnePassRegressor
from craftmaps.learn.solvers.precision import loses_directions
from craftmaps.learn.solvers.span import RowSpace

pytestmark = pytest.mark.delicate


def few_rows(kind, rng):
    Z = rng.standard_normal((12, 5000))  # more columns than are taken at a time
    if kind == "repeated":
        Z[6:] = Z[:6]
    if kind == "far":
        Z += 1e6
    return Z


@pytest.mark.parametrize(
    ("kind", "centred", "rank"),
    [
        ("independent", True, 11),
        ("independent", False, 12),
        ("repeated", True, 5),
        ("repeated", False, 6),
        ("far", True, 11),
    ],
)
def test_coordinates_are_those_of_an_orthonormal_basis(kind, centred, rank):
    rng = np.random.default_rng(0)
    Z = few_rows(kind, rng)
    centre = Z.mean(axis=0) if centred else np.zeros(5000)
    space = RowSpace(Z, centre)
    assert space.coordinates.shape == (12, rank)
    Q = space.lift(np.eye(rank))
    np.testing.assert_allclose(Q.T @ Q, np.eye(rank), atol=1e-9)
    np.testing.assert_allclose(space.coordinates @ Q.T, Z - centre, atol=1e-8)
    others = rng.standard_normal((7, 5000)) + centre
    expected = (others - centre) @ Q
    np.testing.assert_allclose(space.project(others), expected, atol=1e-9 * np.abs(expected).max())


def test_rows_that_are_all_equal_have_the_coordinate_0():
    Z = np.full((3, 10), 2.0)
    space = RowSpace(Z, Z.mean(axis=0))
    np.testing.assert_array_equal(space.coordinates, np.zeros((3, 1)))
    np.testing.assert_array_equal(space.lift(np.ones((1, 2))), np.zeros((10, 2)))
    model = OnePassRegressor(alpha=1.0).fit(Z, [1.0, 2.0, 6.0])
    np.testing.assert_allclose(model.predict(Z[:1]), [3.0])


def test_rows_in_single_precision_are_solved_for_in_double():
    """Products of float32 would end the search for alpha at ten units of their rounding."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((600, 2500)).astype(np.float32)
    assert not loses_directions(Z)  # of more rows, products in single precision would do
    model = OnePassRegressor(fit_intercept=False).fit(Z, Z @ rng.standard_normal(2500))
    floor = 10 * np.finfo(np.float32).eps * np.square(Z, dtype=np.float64).sum()
    assert model.alphas_.min() < 1e-3 * floor
