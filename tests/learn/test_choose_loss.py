"""Tests of the loss that KernelClassifier chooses by itself."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics import log_loss

import craftmaps
from craftmaps import FourierFeatures, Gaussian, KernelClassifier, Nystroem
from craftmaps.learn.choose_loss import _squared_losses, prefers_log
from craftmaps.scale import dask as on_dask

RNG = np.random.default_rng(0)


def noisy(n_rows=600):
    """Classes that overlap."""
    return make_classification(n_rows, 8, n_informative=6, n_classes=3, flip_y=0.2, random_state=0)


def by_rules(n_rows=800):
    """Classes that follow from values of columns without noise, one of them rare."""
    X = RNG.integers(0, 3, (n_rows, 6)).astype(float)
    y = np.where(X[:, 0] == 0, 0, np.where(X[:, 1] + X[:, 2] > 2, 1, 2 + (X[:, 3] == X[:, 4])))
    return X, y


def features(X, n_components=2000):
    kernel = Gaussian(gamma=0.1)
    return Nystroem(kernel, min(n_components, len(X)), random_state=0).fit_transform(X)


@pytest.mark.delicate
def test_rows_left_out_are_left_out():
    X, y = noisy(120)
    Z, alpha = features(X), 0.5
    losses = _squared_losses(Z, y, 3, alpha)
    Y = 2.0 * (y[:, None] == np.arange(3)) - 1
    scores = np.empty((len(X), 3))
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        mean = Z[rest].mean(axis=0)
        C = Z[rest] - mean
        coef = np.linalg.solve(
            C.T @ C + alpha * np.eye(Z.shape[1]), C.T @ (Y[rest] - Y[rest].mean(axis=0))
        )
        scores[i] = (Z[i] - mean) @ coef + Y[rest].mean(axis=0)
    found = minimize_scalar(
        lambda power: log_loss(y, softmax(10**power * scores, axis=1)), bounds=(-1, 1)
    )
    expected = found.fun
    assert abs(losses.mean() - expected) < 1e-3 * expected


@pytest.mark.delicate
def test_rules_ask_for_the_log_loss_and_noise_for_the_squared_one():
    for n_rows in (500, 800):
        X, y = by_rules(n_rows)
        assert prefers_log(features(X), y, 4, 0.01)
    for seed in range(3):
        X, y = make_classification(600, 8, n_informative=6, flip_y=0.2, random_state=seed)
        assert not prefers_log(features(X), y, 2, 1.0)


def test_many_rows_for_each_feature_ask_for_the_log_loss():
    X, y = noisy()
    few, many = (FourierFeatures(Gaussian(), size, random_state=0) for size in (100, 400))
    assert KernelClassifier(few).fit(X, y).loss_ == "log"
    assert KernelClassifier(many).fit(X, y).loss_ == "squared"
    assert KernelClassifier(many, loss="log").fit(X, y).loss_ is None


@pytest.mark.parametrize(
    "parameters", [{"class_weight": "balanced"}, {"codes": "random", "n_bits": 8}, {"alpha": 0.1}]
)
def test_what_only_the_log_loss_defines_keeps_it(parameters):
    X, y = noisy(200)
    model = KernelClassifier(Nystroem(Gaussian(), 200, random_state=0), **parameters).fit(X, y)
    assert model.loss_ == "log"


def test_blocks_and_files_and_clusters_choose_alike(tmp_path):
    X, y = noisy(400)
    model = KernelClassifier(Nystroem(Gaussian(gamma=0.05), 300, random_state=0)).fit(X, y)
    blocks = [(X[:150], y[:150]), (X[150:], y[150:])]
    again = KernelClassifier(model.feature_map).fit_blocks(blocks)
    model.save(tmp_path / "m.craft")
    loaded = craftmaps.load(tmp_path / "m.craft")
    assert model.loss_ == again.loss_ == loaded.loss_ == "squared"
    expected = model.predict_proba(X)
    np.testing.assert_allclose(again.predict_proba(X), expected, atol=1e-5)
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    dask_array = pytest.importorskip("dask.array")
    chunks = dask_array.from_array(X, chunks=(100, 8)), dask_array.from_array(y, chunks=100)
    on_cluster = on_dask.fit(KernelClassifier(model.feature_map), *chunks)
    assert on_cluster.loss_ == "squared"
    np.testing.assert_allclose(on_cluster.predict_proba(X), expected, atol=1e-5)


def test_blocks_that_come_once_are_learned_with_the_squared_loss(tmp_path):
    X, y = noisy(400)
    blocks = [(X[:200], y[:200]), (X[200:], y[200:])]
    map_ = Nystroem(Gaussian(gamma=0.05), 50, random_state=0)
    assert KernelClassifier(map_).fit_blocks(blocks).loss_ == "log"
    once = KernelClassifier(map_).fit_blocks(iter(blocks))
    assert once.loss_ == "squared"
    kept = KernelClassifier(map_).fit_blocks(iter(blocks), checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(kept.predict_proba(X), once.predict_proba(X))


def test_a_checkpoint_resumes_with_the_loss_that_was_chosen(tmp_path):
    X, y = noisy(400)
    blocks = [(X[:200], y[:200]), (X[200:], y[200:])]
    for size in (50, 300):
        model = KernelClassifier(Nystroem(Gaussian(gamma=0.05), size, random_state=0))
        first = model.fit_blocks(blocks, checkpoint=tmp_path / str(size), checkpoint_every=0.0)
        expected, loss = first.predict_proba(X), first.loss_
        resumed = KernelClassifier(model.feature_map).fit_blocks(
            blocks, checkpoint=tmp_path / str(size)
        )
        assert resumed.loss_ == loss == ("log" if size == 50 else "squared")
        np.testing.assert_array_equal(resumed.predict_proba(X), expected)


def test_a_refit_chooses_anew():
    X, y = noisy(400)
    model = KernelClassifier(Nystroem(Gaussian(gamma=0.05), 300, random_state=0)).fit(X, y)
    assert model.loss_ == "squared"
    model.set_params(feature_map=Nystroem(Gaussian(gamma=0.05), 50, random_state=0)).fit(X, y)
    assert model.loss_ == "log"


def test_digits_are_not_worse_than_with_the_better_loss():
    X, y = load_digits(return_X_y=True)
    errors = {}
    for loss in ("auto", "log", "squared"):
        model = KernelClassifier(Nystroem(Gaussian(0.0005), 500, random_state=0), loss=loss)
        errors[loss] = 1 - model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
    assert errors["auto"] <= min(errors["log"], errors["squared"]) + 0.005
