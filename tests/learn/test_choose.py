"""Which solver runs: the table in words, and that learners keep to it."""

import numpy as np
import pytest

from craftmaps import Gaussian, Nystroem, OnePassClassifier, OnePassRegressor
from craftmaps.learn.solvers import choose as table
from craftmaps.learn.solvers.choose import Solver, choose

CASES = [
    # kept rows, features, alpha, penalized, per target
    (None, 1000, 0.1, False, False, "cholesky"),
    (None, 1000, np.float64(0.1), True, True, "cholesky"),
    (None, 5000, np.array(0.1), False, False, "cholesky"),
    (None, 2047, "auto", False, False, "cholesky"),
    (None, 2048, "auto", True, False, "cholesky"),
    (None, 2048, "auto", True, True, "path"),
    (None, 2048, "gcv", True, True, "path"),
    (None, 100, [0.1, 1.0], False, False, "path"),
    (None, 5000, np.array([0.1, 1.0]), False, True, "path"),
    (500, 1000, "auto", False, False, "span"),
    (500, 1000, 0.1, False, False, "span"),
    (16384, 20000, "auto", False, False, "span"),
    (16385, 20000, "auto", False, False, "conjugate_gradients"),
    (16385, 20000, 0.1, False, True, "conjugate_gradients"),
    (16385, 20000, "auto", False, True, "span"),
    (16385, 20000, "gcv", False, False, "span"),
    (16385, 20000, [0.1, 1.0], False, False, "span"),
    (16385, 20000, "auto", True, False, "cholesky"),
    (500, 1000, 0.1, True, False, "cholesky"),
    (1000, 1000, 0.1, False, False, "cholesky"),
    (30000, 1000, "auto", False, False, "cholesky"),
]


@pytest.mark.parametrize(
    ("n_kept", "n_features", "alpha", "penalized", "per_target", "name"), CASES
)
def test_the_table(n_kept, n_features, alpha, penalized, per_target, name):
    chosen = choose(n_kept, n_features, alpha, penalized=penalized, per_target=per_target)
    assert chosen == name


def test_every_solver_is_in_the_table():
    assert {case[-1] for case in CASES} == set(Solver)
    for words in ("conjugate gradients", "span", "cholesky", "path", "16,384"):
        assert words in table.__doc__


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).standard_normal((300, 40))
    return X, X[:, 0] > 0


def features(n_components, whiten=True):
    return Nystroem(Gaussian(0.05), n_components, whiten=whiten, random_state=0)


@pytest.mark.parametrize(
    ("feature_map", "alpha", "name"),
    [
        (None, 0.1, "cholesky"),
        (None, "auto", "cholesky"),
        (None, "gcv", "path"),
        (features(280, whiten=False), "auto", "cholesky"),
    ],
)
def test_learners_take_what_the_table_says(rows, feature_map, alpha, name):
    assert OnePassClassifier(feature_map, alpha=alpha).fit(*rows)._solver() == name


def test_rows_that_are_kept_are_spanned_or_iterated_over(rows, monkeypatch):
    X, y = rows[0][:30], rows[1][:30]
    assert OnePassRegressor(alpha=0.1).fit(X, y)._solver() == "span"
    assert OnePassRegressor(alpha=0.1).fit(X, y).solution_.mean_leverage is None
    monkeypatch.setattr(table, "MANY_ROWS", 20)
    assert OnePassRegressor(alpha=0.1).fit(X, y).solution_.mean_leverage is not None


def test_gcv_is_gcv_where_auto_leaves_rows_out(rows):
    X, y = rows[0][:30], rows[1][:30]
    auto, gcv = (OnePassClassifier(alpha=name).fit(X, y).solution_ for name in ("auto", "gcv"))
    assert auto.left_out
    assert auto.scores.shape[1] == 1
    assert not gcv.left_out
    assert gcv.scores.shape[1] == 2
    auto, gcv = (OnePassClassifier(alpha=name).fit(*rows).solution_ for name in ("auto", "gcv"))
    assert auto.left_out
    assert not gcv.left_out
