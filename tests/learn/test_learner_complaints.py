"""What the learners refuse, in one sentence each, and the memory that they declare."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer

from craftmaps import Gaussian, OnePassClassifier, RandomMaclaurin
from craftmaps.learn.solvers import memory

TRAIN = slice(0, 1000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -1.0}, "alpha must be 'auto', 'gcv', a number of at least 0"),
        ({"alpha": "loo"}, "alpha must be 'auto', 'gcv'"),
        ({"alpha": []}, "alpha must be 'auto', 'gcv'"),
        ({"alpha": [1.0, None]}, "alpha must be 'auto', 'gcv'"),
        ({"block_rows": 0}, "block_rows must be an integer of at least 1"),
        ({"alpha": [1.0, 2.0], "n_folds": 1}, "n_folds must be an integer of at least 2"),
        ({"codes": "onevsrest"}, "codes must be"),
        ({"codes": "random", "n_bits": 0}, "n_bits"),
        ({"decoding": "l1"}, "decoding must be one of"),
        ({"feature_map": Gaussian()}, r"None or a transformer, such as .* got Gaussian"),
        ({"feature_map": RandomMaclaurin}, "feature_map must be None or a transformer"),
        ({"feature_map": "auto"}, "feature_map must be None or a transformer"),
    ],
)
def test_wrong_parameters_are_named(digits, options, message):
    X, y = digits
    with pytest.raises((TypeError, ValueError), match=message):
        OnePassClassifier(**options).fit(X[TRAIN], y[TRAIN])


def test_folds_without_rows_are_named(digits):
    X, y = digits
    with pytest.raises(ValueError, match="30 rows do not fill 40 folds"):
        OnePassClassifier(alpha=[1.0, 2.0], n_folds=40).fit(X[:30], y[:30])


def test_streams_say_what_they_need(digits):
    X, y = digits
    with pytest.raises(ValueError, match="needs all labels at once.*dict"):  # noqa: RUF043
        OnePassClassifier(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match="at least two classes.*announce all of them"):  # noqa: RUF043
        OnePassClassifier().partial_fit(X[:1], y[:1])
    in_stream = OnePassClassifier(class_weight={0: 3.0}).partial_fit(X[:900], y[:900])
    in_stream.partial_fit(X[900:], y[900:])
    at_once = OnePassClassifier(class_weight={0: 3.0}).fit(X, y)
    np.testing.assert_allclose(in_stream.coef_, at_once.coef_, atol=1e-9)


def test_weights_of_classes_hold_in_blocks_that_lack_some(digits):
    X, y = digits
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    model = OnePassClassifier(class_weight={0: 3.0, 1: 0.5}, block_rows=100)
    cut = [slice(start, start + 150) for start in range(0, len(y), 150)]
    streamed = clone(model).fit_blocks([(X[rows], y[rows]) for rows in cut], classes=range(10))
    np.testing.assert_allclose(streamed.coef_, model.fit(X, y).coef_, atol=1e-8)
    for wrong, message in (
        ({0: 2.0, "1": 3.0}, "class_weight names '1', which no row has, and not [1-9]"),
        ("even", "class_weight must be a dict, 'balanced' or None"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(model).set_params(class_weight=wrong).fit(X, y)


def test_alphas_come_before_rows(digits):
    X, y = digits
    model = OnePassClassifier().partial_fit(X, y)
    model.set_params(alpha=[0.1, 1.0])
    with pytest.raises(ValueError, match=r"added to 1 fold, and alpha=\[0.1, 1.0\] needs 5"):
        model.predict(X)


@pytest.mark.parametrize("n_rows", [20, 200])
def test_features_that_are_not_finite_are_named_and_not_kept(digits, n_rows):
    X, y = digits[0][:n_rows] + 0.1, digits[1][:n_rows]
    logarithms = FunctionTransformer(np.log)
    bad = X.copy()
    bad[3, 7] = -1.0
    failed = OnePassClassifier(logarithms, alpha=1.0)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="not finite"):
        failed.fit(bad, y)
    with pytest.raises(NotFittedError):
        failed.predict(X)
    model = OnePassClassifier(logarithms, alpha=1.0).partial_fit(X, y)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="not finite"):
        model.partial_fit(bad, y)
    assert model.n_samples_seen_ == n_rows
    expected = OnePassClassifier(logarithms, alpha=1.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)


def test_features_that_overflow_are_named(digits):
    X, y = digits[0] * 1e200, digits[1]
    with pytest.raises(ValueError, match=r"too large for float64.*unit norm"):
        OnePassClassifier().fit(X, y)


def test_folds_keep_to_the_memory_they_declare():
    rows, size = 900, 600
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((rows, size), dtype=np.float32), np.arange(rows) % 2
    model = OnePassClassifier(alpha=[0.1, 1.0], n_folds=4, block_rows=200)
    model.fit(X[:, :5], y)  # compiles outside the measurement
    declared = memory.equations_bytes(size, 2, 4, n_folds=4)
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    sample_and_buffer = X[:200].nbytes + 2 * X.nbytes
    one_matrix_more = 8 * size**2
    assert 0.9 * declared < peak < declared + sample_and_buffer + 0.8 * one_matrix_more


def test_too_large_a_map_is_refused_before_it_is_used(digits, monkeypatch):
    X, y = digits
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**6)
    feature_map = RandomMaclaurin(n_components=1000, random_state=0)
    with pytest.raises(MemoryError, match=r"1000 features and 10 targets need 0\.02 GB"):
        OnePassClassifier(feature_map).partial_fit(X, y)
    OnePassClassifier(feature_map).fit(X[:80], y[:80])  # solved in the span of 80 rows
    with pytest.raises(MemoryError, match=r"200 rows of 1000 features need 0\.00 GB.*about 625"):
        OnePassClassifier(feature_map).fit(X[:200], y[:200])
