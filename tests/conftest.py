"""Data that many test files use."""

import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize


@pytest.fixture(scope="session")
def digits():
    """Handwritten digits as rows of length 1, and their labels; read-only, as tests share them."""
    X, y = load_digits(return_X_y=True)
    X = normalize(X)
    X.setflags(write=False)
    y.setflags(write=False)
    return X, y
