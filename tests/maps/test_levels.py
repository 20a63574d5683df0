"""LevelsMap: columns of 0 and 1 for the values of columns that have few."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder

from craftmaps import Gaussian, LevelsMap, Nystroem

INNER = Nystroem(Gaussian(gamma=0.5), 20, random_state=0)


def rows(n=80, seed=0):
    """A column of three values, one of many values, one of two, and one of ten."""
    rng = np.random.default_rng(seed)
    few, many = rng.choice([0.1, 0.2, 7.0], n), rng.normal(size=n)
    return np.column_stack([few, many, rng.integers(2, size=n), rng.integers(10, size=n) / 10])


def test_columns_are_those_of_scikit_learn():
    X, new = rows(), rows(seed=1)
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(X[:, [0, 3]])
    widened, new_widened = (np.hstack([Z, encoder.transform(Z[:, [0, 3]])]) for Z in (X, new))
    expected = INNER.fit(widened).transform(new_widened)
    feature_map = LevelsMap(INNER).fit(X)
    np.testing.assert_allclose(feature_map.transform(new), expected, rtol=1e-9, atol=1e-12)
    assert len(feature_map.levels_) == 13


def test_rounding_does_not_change_levels_and_other_values_have_none():
    feature_map = LevelsMap(INNER).fit(rows())
    new = rows(seed=1)
    single = feature_map.transform(new.astype(np.float32))
    np.testing.assert_allclose(single, feature_map.transform(new), atol=1e-4)
    new[:, 0] = 3.0
    assert not feature_map._prepared(new)[:, 4:7].any()


def test_sparse_rows_have_the_same_features():
    X = rows()
    dense, stored = LevelsMap(INNER).fit(X), LevelsMap(INNER).fit(sparse.csr_array(X))
    np.testing.assert_allclose(stored.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-9)


def test_given_levels():
    feature_map = LevelsMap(INNER, levels=[(3, 0.5), (0, 7.0)]).fit(rows())
    np.testing.assert_array_equal(feature_map.levels_, [(0, 7.0), (3, 0.5)])
    X = rows(seed=1)
    appended = feature_map._prepared(X)[:, 4:]
    np.testing.assert_array_equal(appended, np.column_stack([X[:, 0] == 7, X[:, 3] == 0.5]))


@pytest.mark.parametrize("levels", ["all", [(4, 1.0)], [(0.5, 1.0)], [(0, np.nan)], [(1, 2, 3)]])
def test_levels_that_do_not_fit_are_named(levels):
    with pytest.raises(ValueError, match=r"levels must be 'auto' or pairs .* from 0 to 3"):
        LevelsMap(INNER, levels=levels).fit(rows())
