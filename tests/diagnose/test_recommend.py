"""Advice: that it is good, the same every time, and that bad input gets one sentence."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from craftmaps import (
    CraftMap,
    FourierFeatures,
    ImageMap,
    KernelClassifier,
    KernelRegressor,
    ScaledMap,
)
from craftmaps.diagnose import recommend


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.6, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def advice(digits):
    return recommend(digits[0], digits[2], budget=128)


@pytest.fixture(scope="module")
def advice_for_images(digits):
    return recommend(digits[0], digits[2], budget=128, images=True)


def two_classes(n=80, d=3):
    X = np.random.default_rng(0).normal(size=(n, d))
    return X, np.where(X[:, 0] + X[:, 1] > 0, "a", "b")


def test_the_estimator_is_ready_and_not_fitted(advice, digits):
    X, X_test, y, y_test = digits
    assert isinstance(advice.estimator, KernelClassifier)
    assert advice.learner is advice.estimator
    assert isinstance(advice.feature_map, ScaledMap)
    with pytest.raises(NotFittedError):
        check_is_fitted(advice.estimator)
    model = clone(advice.estimator).fit(X, y)
    assert model.feature_map_.transform(X[:2]).shape == (2, 128)
    error = 1 - model.score(X_test, y_test)
    assert advice.interval[0] - 0.01 <= error <= advice.interval[1] + 0.01
    plain = [
        ScaledMap(CraftMap(n_components=128, random_state=0)),
        ScaledMap(
            FourierFeatures(n_components=128, random_state=0), columns="standard", unit_norm=False
        ),
    ]
    assert all(error <= 1 - KernelClassifier(m).fit(X, y).score(X_test, y_test) for m in plain)


@pytest.mark.slow
def test_the_advice_is_what_the_learner_finds_itself(advice, digits):
    X, X_test, y, _ = digits
    itself = KernelClassifier(budget=128, random_state=0).fit(X, y)
    advised = clone(advice.estimator).fit(X, y)
    np.testing.assert_array_equal(advised.predict_proba(X_test), itself.predict_proba(X_test))
    found = itself.feature_map_.report_
    assert found.rounds == advice.rounds


def test_a_seed_repeats_the_advice_and_another_draws_other_rows():
    X, y = two_classes(100)
    first, again, other = (recommend(X, y, 32, random_state=seed) for seed in (3, 3, 4))
    assert repr(first.estimator) == repr(again.estimator)
    assert first.rounds == again.rounds
    assert first.rounds != other.rounds


def test_the_text_has_the_reasons(advice):
    text = str(advice)
    words = ("Preparation:", "on 200 rows", "Kernel:", "Size: 128 Nyström", "Next best:", "90%")
    for word in (*words, advice.report.kernel, f"Expected error: {advice.error:.2%}"):
        assert word in text
    assert text.count("\n") == len(advice.reasons()) == 5
    assert f"{advice.seconds:.1f} s" in text


def test_a_picture_of_the_advice_and_of_the_learner(advice, digits, tmp_path):
    figure = advice.plot(tmp_path / "advice.png")
    assert (tmp_path / "advice.png").stat().st_size > 10_000
    assert len(figure.axes[1].patches) == min(10, len(advice.rounds[-1]))
    widths = [bar.get_width() for bar in figure.axes[1].patches]
    assert widths[0] == pytest.approx(100 * advice.error)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["square", "sparse"])
def test_images_are_seen_as_gradients_where_that_is_better(digits, advice, advice_for_images, kind):
    X, X_test, y, y_test = digits
    if kind == "sparse":
        advice_for_images = recommend(sparse.csr_array(X), y, budget=128, images=(8, 8))
    assert "Preparation: oriented gradients" in str(advice_for_images)
    assert isinstance(advice_for_images.feature_map, ImageMap)
    assert advice_for_images.feature_map.n_components == 128
    wrong, without = (
        1 - clone(one.estimator).fit(X, y).score(X_test, y_test)
        for one in (advice_for_images, advice)
    )
    assert wrong < without


@pytest.mark.slow
def test_rows_that_are_no_images_are_not_seen_as_such(digits):
    """Pixels in disorder, whose gradients mean nothing."""
    X, _, y, _ = digits
    mixed = X[:300, np.random.default_rng(0).permutation(64)]
    advice = recommend(mixed, y[:300], budget=64, images=True)
    assert isinstance(advice.feature_map, ScaledMap)
    assert "oriented gradients" in dict(advice.report.preparations)


def test_small_images_have_few_cells(digits):
    X, y = digits[0][:200], digits[2][:200]
    advice = recommend(X, y, budget=32, images=(4, 16))
    assert "oriented gradients" in dict(advice.report.preparations)


@pytest.mark.slow
def test_regression():
    X, y = load_diabetes(return_X_y=True)
    found = recommend(X, y, budget=64)
    assert isinstance(found.estimator, KernelRegressor)
    assert found.classification is False
    assert found.error < 0.8
    assert found.estimator.fit(X, y).score(X, y) > 0.4
    both = recommend(X[:100], np.column_stack([y, -y])[:100], budget=32)
    assert both.estimator.fit(X, np.column_stack([y, -y])).predict(X).shape == (442, 2)


@pytest.mark.slow
def test_a_budget_of_memory_is_kept(digits):
    from craftmaps.search.budget import training_bytes

    X, y = digits[0][:300], digits[2][:300]
    size = recommend(X, y, budget="1MB").feature_map.n_components
    assert training_bytes(size, 300) <= 1e6 < training_bytes(2 * size, 300)
    assert recommend(X, y, budget="1s/row").feature_map.n_components == 300


@pytest.mark.slow
def test_sparse_wide_holey_and_named_rows_work():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(150, 12)) * (rng.random((150, 12)) < 0.5)
    y = np.where(dense[:, 0] + dense[:, 1] > 0, "a", "b")
    holey = np.where(rng.random(dense.shape) < 0.05, np.nan, dense)
    wide = np.hstack([dense, 0.01 * rng.normal(size=(150, 500))])
    frame = pd.DataFrame(dense).add_prefix("number ")
    frame["text"] = np.where(dense[:, 2] > 0, "up", "down")
    for X in (sparse.csr_array(dense), holey, wide, dense.astype(np.float32), frame):
        model = recommend(X, y, budget=64).estimator.fit(X, y)
        assert model.score(X, y) > 0.75
    assert model.encoder_ is not None
    assert recommend(dense.tolist(), y.tolist(), budget=64).classification


def test_a_table_is_encoded_as_the_learner_does_it():
    X, y = two_classes()
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "high", "low")})
    frame.loc[::7, "a"] = np.nan
    itself = KernelClassifier(budget=32, random_state=0).fit(frame, y)
    advised = recommend(frame, y, budget=32).estimator.fit(frame, y)
    np.testing.assert_array_equal(advised.predict_proba(frame), itself.predict_proba(frame))


@pytest.mark.slow
def test_large_tables_are_sampled_as_the_learner_does_it():
    X, y = two_classes(10_500, 2)
    rounds = recommend(X, y, budget=8).rounds
    assert (
        rounds == KernelClassifier(budget=8, random_state=0).fit(X, y).feature_map_.report_.rounds
    )


def test_tiny_data():
    X, y = two_classes(20, 2)
    assert recommend(X, y).estimator.fit(X, y).score(X, y) > 0.7
    rare = np.array(["common"] * 39 + ["rare"])
    X = two_classes(40)[0]
    recommend(X, rare, budget=16).estimator.fit(X, rare)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.eye(5), np.arange(5) % 2, "at least 10 rows, got 5"),
        (np.eye(30), np.zeros(30, int), "at least two classes"),
        (np.ones((30, 3)), np.arange(30) % 2, "all rows of X are the same"),
        (sparse.csr_array(np.ones((30, 3))), np.arange(30) % 2, "all rows of X are the same"),
        (np.eye(30), np.full(30, 0.5), "all targets are 0.5"),
        (np.where(np.eye(30) > 0, np.inf, 0.0), np.arange(30) % 2, "infinity"),
        (np.eye(30), np.arange(29) % 2, "inconsistent numbers of samples"),
        (np.arange(30), np.arange(30) % 2, "2D array"),
    ],
)
def test_data_for_which_there_is_no_advice(X, y, words):
    with pytest.raises(ValueError, match=words):
        recommend(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"images": True}, "square number of pixels"),
        ({"images": (5, 7)}, "must be rows of 35 of them"),
        ({"images": "yes"}, "shape of images must be their height and width"),
        ({"images": (5, 6.0)}, "shape of images must be their height and width"),
        ({"images": 1}, "shape of images must be their height and width"),
        ({"task": "ranking"}, "task must be"),
        ({"budget": "much"}, "budget must be a number of components"),
    ],
)
def test_options_that_are_none(options, words):
    with pytest.raises(ValueError, match=words):
        recommend(np.eye(30), np.arange(30) % 2, **options)


def test_images_have_no_missing_pixels():
    X = np.random.default_rng(0).normal(size=(30, 16))
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="none of them missing"):
        recommend(X, np.arange(30) % 2, images=True)
