"""Advice: that it is good, the same every time, and that bad input gets one sentence."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from craftmaps import (
    CraftMap,
    FourierFeatures,
    ImageMap,
    OnePassClassifier,
    OnePassRegressor,
    ScaledMap,
    TensorSketch,
)
from craftmaps.diagnose import recommend
from craftmaps.diagnose.recommend.budget import Budget, training_bytes
from craftmaps.diagnose.recommend.preparation import (
    Gradients,
    Scaling,
    fit_preparation,
    preparations,
)
from craftmaps.diagnose.recommend.rounds import varied


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def advice(digits):
    return recommend(digits[0], digits[2], budget=128)


def test_the_estimator_is_ready_and_not_fitted(advice, digits):
    X, X_test, y, y_test = digits
    assert isinstance(advice.estimator, OnePassClassifier)
    assert isinstance(advice.feature_map, ScaledMap)
    with pytest.raises(NotFittedError):
        check_is_fitted(advice.estimator)
    model = clone(advice.estimator).fit(X, y)
    assert model.feature_map_.transform(X[:2]).shape == (2, 128)
    error = 1 - model.score(X_test, y_test)
    assert error == pytest.approx(advice.best.error, abs=0.025)
    plain = [
        make_pipeline(Normalizer(), OnePassClassifier(CraftMap(n_components=128, random_state=0))),
        make_pipeline(
            StandardScaler(), OnePassClassifier(FourierFeatures(n_components=128, random_state=0))
        ),
    ]
    assert all(error <= 1 - other.fit(X, y).score(X_test, y_test) for other in plain)


@pytest.mark.parametrize("kind", ["dense", "sparse", "images"])
def test_candidates_are_prepared_as_the_wrapping_map_prepares_rows(digits, kind):
    X, new = digits[0][:100], digits[1][:100]
    if kind == "sparse":
        X, new = sparse.csr_array(X), sparse.csr_array(new)
    sketch = TensorSketch(n_components=16, random_state=0)
    tried = preparations(X, (8, 8) if kind == "images" else None)
    assert len({str(one) for one in tried}) == len(tried) == {"dense": 6, "sparse": 4}.get(kind, 7)
    for preparation in tried:
        prepare = fit_preparation(preparation, X)
        expected = preparation.around(sketch).fit(X).transform(new)
        found = sketch.fit(prepare(X)).transform(prepare(new))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["square", "shape", "sparse"])
def test_images_are_seen_as_gradients_where_that_is_better(digits, advice, kind):
    X, X_test, y, y_test = digits
    rows = sparse.csr_array(X) if kind == "sparse" else X
    images = (8, 8) if kind == "shape" else True
    of_images = recommend(rows, y, budget=128, images=images)
    assert of_images.best.preparation == Gradients((8, 8))
    assert "preprocessing: oriented gradients" in str(of_images)
    assert isinstance(of_images.feature_map, ImageMap)
    assert of_images.feature_map.n_components == 128
    assert isinstance(of_images.estimator, OnePassClassifier)
    wrong, without = (
        1 - clone(one.estimator).fit(X, y).score(X_test, y_test) for one in (of_images, advice)
    )
    assert wrong < 0.8 * without
    assert {trial.preparation for trial in advice.rounds[0]} < {
        trial.preparation for trial in of_images.rounds[0]
    } or kind == "sparse"


@pytest.mark.slow
def test_images_with_pixels_that_are_missing_in_a_sample(digits):
    X, y = digits[0][:400].copy(), digits[2][:400]
    X[1:, 20] = np.nan
    for seed in range(3):
        model = recommend(X, y, budget=32, images=True, random_state=seed).estimator
        assert model.fit(X, y).score(np.nan_to_num(X), y) > 0.9


def test_small_images_have_few_cells(digits):
    X, y = digits[0][:400], digits[2][:400]
    advice = recommend(X, y, budget=32, images=(4, 16))
    assert Gradients((4, 16)) in {trial.preparation for trial in advice.rounds[0]}


def test_what_it_takes_to_prepare_a_row_is_part_of_its_time(advice):
    best = replace(advice.best, prepare_seconds=0.0)
    slow = replace(best, prepare_seconds=1.0)
    assert slow.predicting_seconds(64) == pytest.approx(1 + best.predicting_seconds(64))
    assert slow.training_seconds(500, 64) == pytest.approx(500 + best.training_seconds(500, 64))


def test_rows_that_are_no_images_are_not_seen_as_such(digits):
    """Pixels in disorder, whose gradients mean nothing."""
    X, _, y, _ = digits
    mixed = X[:, np.random.default_rng(0).permutation(64)]
    advice = recommend(mixed, y, budget=64, images=True)
    assert isinstance(advice.best.preparation, Scaling)


def test_the_best_on_rows_left_out_is_taken_and_the_defaults_are_among_them(advice):
    finalists = advice.rounds[2]
    assert advice.best.score == min(trial.score for trial in finalists)
    kinds = [(type(t.feature_map), t.preparation, t.feature_map.kernel) for t in finalists]
    assert (CraftMap, Scaling("none", True), "poly") in kinds
    assert (FourierFeatures, Scaling("standard", False), "rbf") in kinds
    names = {trial.preparation for trial in advice.rounds[0]}
    assert {trial.preparation for trial in varied(advice.rounds[0], 3)} == names


def test_the_text_has_the_reasons(advice):
    text = str(advice)
    for word in ("preprocessing", "kernel", "map", "size", "alpha", "ScaledMap", "128 components"):
        assert word in text
    assert f"{advice.best.error:.2%}" in text


def test_the_same_seed_gives_the_same_advice(advice, digits):
    again = recommend(digits[0], digits[2], budget=128)
    assert repr(again.estimator) == repr(advice.estimator)
    assert [t.error for t in again.rounds[2]] == [t.error for t in advice.rounds[2]]


def test_a_picture(advice, tmp_path):
    figure = advice.plot(tmp_path / "advice.png")
    assert (tmp_path / "advice.png").stat().st_size > 10_000
    assert len(figure.axes) == 2


def test_regression():
    X, y = load_diabetes(return_X_y=True)
    found = recommend(X, y, budget=64, task="regression")
    assert isinstance(found.estimator, OnePassRegressor)
    assert found.best.error < 0.8
    assert recommend(X, y + 0.5, budget=32).classification is False
    assert found.estimator.fit(X, y).score(X, y) > 0.4


@pytest.mark.parametrize(
    ("budget", "kind", "amount"),
    [
        (1024, "components", 1024),
        ("60s", "training", 60),
        ("1.5 min", "training", 90),
        ("200MB", "memory", 200e6),
        ("1ms/row", "predicting", 1e-3),
        ("20us/row", "predicting", 20e-6),
    ],
)
def test_budgets_that_are_understood(budget, kind, amount):
    found = Budget.parse(budget)
    assert found.kind == kind
    assert found.amount == pytest.approx(amount)


@pytest.mark.parametrize("budget", [0, -5, "60", "much", "5 apples", "1MB/row", "..s", None, 2.5])
def test_budgets_that_are_not(budget):
    with pytest.raises(ValueError, match="budget must be a number of components"):
        recommend(np.eye(30), np.arange(30) % 2, budget=budget)


def test_a_budget_of_memory_is_kept(digits):
    X, _, y, _ = digits
    found = recommend(X, y, budget="8MB")
    assert training_bytes(found.feature_map.n_components, 10) <= 8e6
    assert training_bytes(2 * found.feature_map.n_components, 10) > 8e6
    with pytest.raises(ValueError, match="allow more"):
        recommend(X, y, budget="10kB")


@pytest.mark.slow
def test_a_budget_of_time_is_kept(advice, digits):
    """By the times of a trial, which are given here, because those of a machine vary."""
    trial = replace(advice.best, row_seconds=1e-5, prepare_seconds=0.0)  # at 128 components
    for budget, amount in (("5us/row", 5e-6), ("10us/row", 1e-5), ("0.1ms/row", 1e-4)):
        size = Budget.parse(budget).components(trial, 10**6, 10)
        assert trial.predicting_seconds(size) <= amount < trial.predicting_seconds(1.5 * size)
    tight = Budget.parse("0.1us/row")
    assert tight.components(trial, 10**6, 10) == 0
    quick = replace(trial, row_seconds=1e-8, score=trial.score + 1)
    assert tight.best([trial, quick], 10**6, 10) is quick  # worse, but it can be paid for
    with pytest.raises(ValueError, match="does not pay for the smallest model"):
        tight.best([trial], 10**6, 10)
    assert recommend(digits[0], digits[2], budget="1s/row").feature_map.n_components > 128


@pytest.mark.slow
def test_sparse_wide_and_holey_rows_work():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(150, 30)) * (rng.random((150, 30)) < 0.3)
    y = np.where(dense[:, 0] + dense[:, 1] > 0, "a", "b")
    holey = np.where(rng.random(dense.shape) < 0.05, np.nan, dense)
    wide = np.hstack([dense, 0.01 * rng.normal(size=(150, 2000))])
    for X in (sparse.csr_array(dense), holey, wide, dense.astype(np.float32), dense.tolist()):
        found = recommend(X, y, budget=64)
        assert found.estimator.fit(X, y).score(X, y) > 0.75


def test_tiny_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    found = recommend(X, X[:, 0] > 0, budget=1024)
    assert found.estimator.fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.7
    rare = np.array(["common"] * 39 + ["rare"])
    recommend(rng.normal(size=(40, 2)), rare, budget=16).estimator.fit(
        rng.normal(size=(40, 2)), rare
    )


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.eye(5), np.arange(5), "at least 20 rows"),
        (np.eye(30), np.zeros(30, int), "one class only"),
        (np.ones((30, 3)), np.arange(30) % 2, "all rows of X are the same"),
        (np.eye(30), np.full(30, 0.5), "all targets are 0.5"),
        (np.where(np.eye(30) > 0, np.inf, 0.0), np.arange(30) % 2, "infinity"),
        (np.hstack([np.eye(30), np.full((30, 1), np.nan)]), np.arange(30) % 2, "column 30"),
        (np.eye(30), np.arange(29) % 2, "inconsistent numbers of samples"),
    ],
)
def test_data_for_which_there_is_no_advice(X, y, words):
    with pytest.raises(ValueError, match=words):
        recommend(X, y)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (True, "square number of pixels"),
        ((5, 7), "must be rows of 35 of them"),
        ("yes", "shape of images must be their height and width"),
        ((5, 6.0), "shape of images must be their height and width"),
        (1, "shape of images must be their height and width"),
    ],
)
def test_what_are_no_images(images, words):
    with pytest.raises(ValueError, match=words):
        recommend(np.eye(30), np.arange(30) % 2, images=images)
