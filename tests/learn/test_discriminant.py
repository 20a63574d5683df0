"""Discriminants of one-vs-rest predictions: scikit-learn's own, from the sums of the pass."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator

from craftmaps import CraftMap, OnePassClassifier, Polynomial, RandomMaclaurin

FEATURE_MAP = RandomMaclaurin(Polynomial(degree=4), n_components=300, random_state=0)
TRAIN, TEST = slice(0, 900), slice(900, None)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 64, y


def fitted(X, y, **options):
    options = {"alpha": 1e-3, "decoding": "discriminant"} | options
    return OnePassClassifier(FEATURE_MAP, **options).fit(X, y)


def in_a_row(n_classes, n_rows, rng):
    """Classes side by side on a line: those between others are masked by them."""
    y = rng.integers(n_classes, size=n_rows)
    X = np.column_stack([y, np.zeros(n_rows)]) + 0.1 * rng.standard_normal((n_rows, 2))
    return X, y


def oracle_scores(predicted, labels, tested, fit_intercept=True):
    """Scikit-learn's discriminants, centred over classes.

    With an intercept predictions add up to a constant, so one of them says nothing.
    """
    shown = slice(-1 if fit_intercept else None)
    oracle = LinearDiscriminantAnalysis(solver="lsqr").fit(predicted[:, shown], labels)
    return centred(oracle.decision_function(tested[:, shown]))


def centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "options",
    [{}, {"fit_intercept": False}, {"alpha": "auto"}, {"alpha": [1e-3, 1e-2], "n_folds": 3}],
    ids=["intercept", "no-intercept", "auto", "folds"],
)
def test_is_that_of_the_predictions_for_the_training_rows(digits, options):
    X, y = digits
    model = fitted(X[TRAIN], y[TRAIN], **options)
    options = options | {"alpha": model.alpha_, "decoding": "l2"}
    f = fitted(X[TRAIN], y[TRAIN], **options).decision_function(X)
    expected = oracle_scores(f[TRAIN], y[TRAIN], f[TEST], options.get("fit_intercept", True))
    found = model.decision_function(X[TEST])
    assert np.abs(centred(found) - expected).max() < 1e-5 * np.abs(expected).max()
    np.testing.assert_array_equal(model.predict(X[TEST]), expected.argmax(axis=1))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_few_rows_are_left_out_one_by_one(digits, fit_intercept):
    """With fewer rows than features, of which predictions with themselves show too little."""
    X, y = digits
    few, tested = np.arange(150), slice(900, 1000)
    same = {"alpha": 1e-2, "fit_intercept": fit_intercept}
    feature_map = FrozenEstimator(clone(FEATURE_MAP).fit(X))
    plain = OnePassClassifier(feature_map, **same)
    without = [
        clone(plain).fit(X[few[few != i]], y[few[few != i]]).decision_function(X[[i]])[0]
        for i in few
    ]
    f = plain.fit(X[few], y[few]).decision_function(X[tested])
    expected = oracle_scores(np.array(without), y[few], f, fit_intercept)
    model = OnePassClassifier(feature_map, decoding="discriminant", **same).fit(X[few], y[few])
    found = centred(model.decision_function(X[tested]))
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
    own = oracle_scores(plain.decision_function(X[few]), y[few], f, fit_intercept)
    assert np.abs(own - expected).max() > 0.1 * np.abs(expected).max()  # it does matter


def test_where_all_rows_are_interpolated_the_largest_wins(digits):
    """There is no spread within classes then, and nothing to learn from rows left out."""
    X, y = digits
    model, largest = (
        fitted(X[:150], y[:150], alpha=1e-14, decoding=decoding)
        for decoding in ("discriminant", "l2")
    )
    np.testing.assert_array_equal(model.predict(X[TEST]), largest.predict(X[TEST]))


def test_unmasks_classes():
    rng = np.random.default_rng(0)
    X, y = in_a_row(5, 2000, rng)
    largest = OnePassClassifier(alpha=1e-3).fit(X, y)
    nearest = OnePassClassifier(alpha=1e-3, decoding="discriminant").fit(X, y)
    assert largest.score(X, y) < 0.7
    assert nearest.score(X, y) > 0.99


def test_probabilities_are_those_of_gaussian_classes():
    """On classes that are what discriminants suppose, the temperature has nothing to mend."""
    X, y = in_a_row(3, 4000, np.random.default_rng(1))
    X[:, 0] += 0.3 * np.random.default_rng(2).standard_normal(len(X))
    model = OnePassClassifier(alpha=1e-3, decoding="discriminant").fit(X, y)
    assert model.temperature_ == pytest.approx(1, abs=0.1)


def test_blocks_and_merged_learners_give_the_same(digits):
    X, y = digits
    model = OnePassClassifier(
        FrozenEstimator(clone(FEATURE_MAP).fit(X)), alpha=1e-3, decoding="discriminant"
    )
    expected = clone(model).fit(X[TRAIN], y[TRAIN]).decision_function(X[TEST])
    stream, merged = clone(model), clone(model).partial_fit(X[:150], y[:150], classes=range(10))
    for start in range(0, 900, 150):
        rows = slice(start, start + 150)
        stream.partial_fit(X[rows], y[rows], classes=range(10))
        if start:
            merged.merge(clone(model).partial_fit(X[rows], y[rows], classes=range(10)))
    for one in (stream, merged):
        difference = np.abs(one.decision_function(X[TEST]) - expected).max()
        assert difference < 1e-6 * np.abs(expected).max()


def test_weights_count_as_repetitions(digits):
    X, y = digits
    twice = np.where(y[TRAIN] == 3, 2, 1)
    model = OnePassClassifier(
        FrozenEstimator(clone(FEATURE_MAP).fit(X)), alpha=1e-3, decoding="discriminant"
    )
    weighted = clone(model).fit(X[TRAIN], y[TRAIN], sample_weight=twice)
    repeated = model.fit(np.repeat(X[TRAIN], twice, axis=0), np.repeat(y[TRAIN], twice))
    found, expected = (one.decision_function(X[TEST]) for one in (weighted, repeated))
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


def test_two_classes_have_one_score(digits):
    X, y = digits
    model = fitted(X[TRAIN], y[TRAIN] > 4)
    scores = model.decision_function(X[TEST])
    assert scores.shape == (len(X) - 900,)
    np.testing.assert_array_equal(scores > 0, model.predict(X[TEST]))
    assert model.score(X[TEST], y[TEST] > 4) > 0.93


def test_a_class_without_rows_is_not_predicted(digits):
    X, y = digits
    model = OnePassClassifier(FEATURE_MAP, alpha=1e-3, decoding="discriminant")
    model.partial_fit(X[TRAIN], y[TRAIN], classes=range(12))
    assert np.isfinite(model.predict_proba(X[TEST])).all()
    assert model.predict(X[TEST]).max() < 10
    known = fitted(X[TRAIN], y[TRAIN])
    assert model.score(X[TEST], y[TEST]) == known.score(X[TEST], y[TEST])


def test_rows_without_spread_are_told_apart():
    X, y = np.repeat(np.eye(4), 10, axis=0), np.repeat(range(4), 10)
    model = OnePassClassifier(alpha=1e-9, decoding="discriminant").fit(X, y)
    assert model.score(X, y) == 1


def test_rounding_of_smooth_features_is_not_taken_for_spread():
    """Coefficients are large, and add up to zero only up to what is lost of them."""
    rng = np.random.default_rng(0)
    y = rng.integers(7, size=3000)
    X = np.abs(rng.normal(size=(7, 6))[y] + 0.5 * rng.normal(size=(3000, 6)))
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    feature_map = CraftMap(Polynomial(degree=5), n_components=512, random_state=0)
    plain, discriminant = (
        OnePassClassifier(feature_map, alpha=1e-8, decoding=decoding).fit(X, y).score(X, y)
        for decoding in ("l2", "discriminant")
    )
    assert plain > 0.6
    assert discriminant > plain - 0.02


def test_other_codes_are_refused(digits):
    X, y = digits
    with pytest.raises(ValueError, match="'discriminant' needs the mean of each class"):
        fitted(X[TRAIN], y[TRAIN], codes="random", n_bits=20)


def test_a_rare_class_counts():
    """One row in a hundred million, of sums that know seven digits."""
    X = np.array([[0.0, 0.1], [0.1, 0.0], [1.0, 0.9], [5.0, 5.0]], dtype=np.float32)
    model = OnePassClassifier(alpha=1e-3, decoding="discriminant")
    model.fit(
        np.repeat(X, 10, axis=0), np.repeat([0, 0, 1, 2], 10), np.repeat([1e7, 1e7, 1e7, 1], 10)
    )
    assert model.predict(X).tolist() == [0, 0, 1, 2]
