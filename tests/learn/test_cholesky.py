"""Cholesky factors in blocks against LAPACK."""

import numpy as np
import pytest
from scipy.linalg import lapack

from craftmaps.learn.solvers import factor

pytestmark = pytest.mark.delicate


@pytest.fixture(params=["at once", "in blocks"])
def _way(request, monkeypatch):
    if request.param == "in blocks":
        monkeypatch.setattr(factor, "_MAX_DPOTRF_SIZE", 0)
        monkeypatch.setattr(factor, "_BLOCK", 7)


def symmetric(n):
    Z = np.random.default_rng(n).standard_normal((n, 2 * n))
    return Z @ Z.T


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("n", [1, 6, 7, 8, 14, 50])
def test_the_upper_triangle_becomes_the_factor_and_the_lower_stays(n):
    matrix = np.asfortranarray(symmetric(n))
    expected = np.linalg.cholesky(matrix).T
    below = np.tril_indices(n, -1)
    matrix[below] = np.nan  # never read
    assert factor.factor_upper(matrix) == 0
    np.testing.assert_allclose(np.triu(matrix), expected, atol=1e-9)
    assert np.isnan(matrix[below]).all()


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("bad", [0, 3, 7, 10, 29])
def test_a_minor_that_is_not_positive_definite_is_named(bad):
    matrix = np.asfortranarray(symmetric(30))
    matrix[bad, bad] = -1.0
    _, expected = lapack.dpotrf(matrix)
    assert factor.factor_upper(matrix) == expected == bad + 1


@pytest.mark.usefixtures("_way")
def test_a_copy_would_not_be_in_place():
    with pytest.raises(ValueError, match="Fortran order"):
        factor.factor_upper(np.ascontiguousarray(symmetric(30)))
