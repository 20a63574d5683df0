"""Probabilities: exact leave-one-out predictions, a uniform sample, a temperature that suits."""

import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.preprocessing import normalize

from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin

TRAIN, TEST = slice(0, 1000), slice(1000, None)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return normalize(X), y


@pytest.fixture(scope="module")
def feature_map():
    return RandomMaclaurin(Polynomial(degree=4), n_components=250, random_state=0)


@pytest.mark.parametrize("few", [True, False])
def test_left_out_predictions_are_refits(digits, few):
    n = 50 if few else 200
    X, y = digits[0][:n], digits[1][:n]
    model = OnePassClassifier(alpha=0.1).fit(X, y)
    sample = model._stream.sample
    predicted, _, _ = model.leave_one_out()
    for i in (0, 11, 42):
        row = np.flatnonzero((sample.Z[i] == X).all(axis=1))[0]
        rest = np.delete(np.arange(n), row)
        refit = OnePassClassifier(alpha=0.1).partial_fit(X[rest], y[rest], classes=range(10))
        np.testing.assert_allclose(predicted[i], refit.decision_function(X[[row]])[0], atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 1e-10, 1e-4])
def test_rows_that_are_interpolated_are_left_out_too(alpha):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 300))
    y = (X[:, :5].sum(axis=1) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        model = OnePassClassifier(alpha=alpha).fit(X, y)
        predicted = model.leave_one_out()[0][:, 1]
    rows = [np.flatnonzero((z == X).all(axis=1))[0] for z in model._stream.sample.Z]
    refits = [
        OnePassClassifier(alpha=1e-4).fit(np.delete(X, row, 0), np.delete(y, row))
        for row in rows[:10]
    ]
    expected = [
        model.decision_function(X[[row]])[0] for model, row in zip(refits, rows, strict=False)
    ]
    np.testing.assert_allclose(predicted[:10], expected, atol=1e-4)


def test_probabilities_are_calibrated(digits, feature_map):
    X, y = digits
    model = OnePassClassifier(feature_map).fit(X[TRAIN], y[TRAIN])
    P = model.predict_proba(X[TEST])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X[TEST]))
    best = min(
        log_loss(y[TEST], softmax_at(t, model.decision_function(X[TEST])))
        for t in np.geomspace(0.5, 50, 60)
    )
    # chosen without the test rows, and nearly as good as if it had been chosen on them
    assert log_loss(y[TEST], P) < best + 0.02
    assert abs(P.max(axis=1).mean() - model.score(X[TEST], y[TEST])) < 0.03
    assert log_loss(y[TEST], softmax_at(1.0, model.decision_function(X[TEST]))) > 2 * best


def softmax_at(t, scores):
    P = np.exp(t * (scores - scores.max(axis=1, keepdims=True)))
    return P / P.sum(axis=1, keepdims=True)


def test_the_sample_is_uniform():
    """Of 6144 rows 1024 are kept: the mean place is 3071.5 with a standard error of 50.6.

    Deterministic, so it cannot fail by chance; five standard errors would show a sample that
    prefers early rows (the first 1024 have mean 511.5).
    """
    X = np.arange(6144.0)[:, None]
    model = OnePassClassifier(alpha=1.0, block_rows=500).fit(X, np.arange(6144) % 2)
    places = model._stream.sample.Z[:, 0]
    assert len(np.unique(places)) == 1024
    assert abs(places.mean() - 3071.5) < 5 * 50.6
    counts, _ = np.histogram(places, bins=8, range=(0, 6144))
    assert ((counts - 128) ** 2 / 128).sum() < 30  # chi-square of 7 degrees: 1e-4
