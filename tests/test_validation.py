"""The short way of plain arrays through validation refuses what scikit-learn refuses."""

import numpy as np
import pandas as pd
import pytest

from craftmaps import FourierFeatures
from craftmaps.validation import valid_rows


@pytest.fixture
def fitted():
    return FourierFeatures(n_components=8, random_state=0).fit(np.ones((3, 4)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_rows_are_returned_as_they_are(fitted, dtype):
    X = np.asfortranarray(np.arange(8, dtype=dtype).reshape(2, 4))
    assert valid_rows(fitted, X) is X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((2, 4), np.nan), "contains NaN"),
        (np.array([[np.inf, np.inf, 0.0, 0.0]]), "contains infinity"),
        (np.array([[1.0, np.inf, 0.0, 0.0]], np.float32), "contains infinity"),
        (np.ones((2, 3)), "has 3 features, but FourierFeatures is expecting 4"),
        (np.ones(4), "Expected 2D array"),
        (np.ones((0, 4)), "0 sample"),
        (np.array([["a"] * 4]), "could not convert"),
        (np.ones((2, 4), complex), "Complex data not supported"),
    ],
)
def test_bad_rows_are_refused(fitted, X, message):
    with pytest.raises(ValueError, match=message):
        valid_rows(fitted, X)


@pytest.mark.filterwarnings("error")
def test_finite_rows_may_have_a_sum_that_is_not(fitted):
    X = np.full((2, 4), np.finfo(np.float32).max)
    np.testing.assert_array_equal(valid_rows(fitted, X), X)


def test_other_numbers_are_converted(fitted):
    big_endian = np.arange(4, dtype=">f8").reshape(1, 4)
    for X in (big_endian, np.arange(4).reshape(1, 4), [[0, 1, 2, 3]]):
        found = valid_rows(fitted, X)
        assert found.dtype == np.float64
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, [[0, 1, 2, 3]])


def test_names_of_columns_are_checked():
    table = pd.DataFrame(np.ones((3, 2)), columns=["a", "b"])
    fitted = FourierFeatures(n_components=8, random_state=0).fit(table)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        valid_rows(fitted, np.ones((2, 2)))
