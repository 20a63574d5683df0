"""Data that many test files use, the order of tests, and what every test may rely on."""

import signal

import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

LONG = ("spark", "slow", "site", "packaging", "papers")


def pytest_configure():
    """Shells have programs in the background ignore Ctrl-C, which some tests send."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Long tests come first, so that no process is left with one of them at the end."""
    items.sort(key=lambda item: not any(map(item.get_closest_marker, LONG)))


@pytest.fixture(scope="session")
def digits():
    """Handwritten digits as rows of length 1, and their labels; read-only, as tests share them."""
    X, y = load_digits(return_X_y=True)
    X = normalize(X)
    X.setflags(write=False)
    y.setflags(write=False)
    return X, y
