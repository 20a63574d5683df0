"""Leave-one-out predictions of exact kernels, and how predictions are judged."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from craftmaps import Gaussian, Laplacian, Matern
from craftmaps.search.candidates import Candidate, neighbors
from craftmaps.search.exact import _SINGLE_PIVOT, _LeftOut, judge, judge_unseen
from craftmaps.search.preparation import Scaling
from craftmaps.search.rounds import _possible
from craftmaps.search.targets import Targets
from craftmaps.search.trials import Rows


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)


@pytest.mark.parametrize("near", [None, 0.01])
def test_left_out_predictions_are_those_of_refits(rows, near):
    X, y = rows
    targets = Targets.of(y, classification=False)
    K = Gaussian(gamma=0.3)(X)
    judged = judge(K.copy(), targets, near=near)
    centered = targets.Y - targets.Y.mean(axis=0)
    for i in (0, 7, 39):
        rest = np.arange(40) != i
        inverse = np.linalg.inv(K[np.ix_(rest, rest)] + judged.alpha * np.eye(39))
        refit = K[i, rest] @ inverse @ centered[rest] + targets.Y.mean(axis=0)
        np.testing.assert_allclose(judged.predicted[i], refit, rtol=1e-7)


@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.01), Laplacian(gamma=0.1)])
def test_single_precision_decides_as_double_does(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    targets = Targets.of(np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300), classification=False)
    K = kernel(X)
    left_out = _LeftOut(K, targets.Y)
    for share in (0.01, 0.99, 1.01, 100.0):
        alpha = share * _SINGLE_PIVOT
        inverse = np.linalg.inv(K + alpha * np.eye(300))
        coef = inverse @ (targets.Y - targets.Y.mean(axis=0))
        exact = targets.score(targets.Y - coef / inverse.diagonal()[:, None])
        assert targets.score(left_out(alpha)) == pytest.approx(exact, rel=1e-4)


def test_unseen_rows_are_predicted_from_the_others_alone(rows):
    X, y = rows
    targets, kernel = Targets.of(y, classification=False), Gaussian(gamma=0.3)
    unseen = np.arange(len(X)) % 3 == 0
    judged = judge_unseen(Candidate(Scaling(), kernel), X, targets, unseen, near=0.01)
    model = KernelRidge(kernel="precomputed", alpha=judged.alpha)
    middle = targets.Y[~unseen].mean()
    model.fit(kernel(X[~unseen]), targets.Y[~unseen] - middle)
    expected = model.predict(kernel(X[unseen], X[~unseen])) + middle
    np.testing.assert_allclose(judged.predicted, expected, rtol=1e-8)
    assert judged.score == targets.rows(unseen).score(judged.predicted)


@pytest.mark.delicate
@pytest.mark.parametrize("near", [1e-9, 1e-4, 0.03, 10.0, 1e9])
def test_a_walk_from_any_alpha_ends_near_the_best(rows, near):
    X, y = rows
    targets = Targets.of(y, classification=False)
    K = Gaussian(gamma=0.3)(X)
    assert judge(K, targets, near=near).score < 1.02 * judge(K, targets).score


@pytest.mark.parametrize("n_classes", [2, 4])
def test_targets_of_classes(n_classes):
    labels = np.arange(12) % n_classes
    targets = Targets.of(np.array(["a", "b", "c", "d"])[labels], classification=True)
    assert targets.Y.shape == (12, 1 if n_classes == 2 else n_classes)
    np.testing.assert_array_equal(targets.labels, labels)
    assert targets.error(targets.Y) == 0
    assert targets.error(-targets.Y) > 0.5
    assert targets.score(targets.Y) < targets.score(0.5 * targets.Y)


def test_targets_of_huge_numbers_are_standardized():
    y = np.array([1e300, -1e300, 0.5e300, 0.0])
    Y = Targets.of(y, classification=False).Y
    np.testing.assert_allclose([Y.mean(), Y.std()], [0, 1], atol=1e-12)


def test_intervals_of_errors_cover():
    """False alarms: P(|coverage - 0.9| > 0.035) for 1,000 draws is below 0.001 if it is 0.9."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        targets = Targets(np.ones((200, 1)), 2)
        predicted = np.where(rng.random((200, 1)) < 0.1, -1.0, 1.0)
        low, high = targets.interval(predicted)
        covered += low <= np.mean(rng.random(200) < 0.1) <= high
    assert 0.865 < covered / 1000 < 0.96  # counts of errors are whole, so it is not exactly 0.9
    regression = Targets(rng.normal(size=(500, 1)), 0)
    predicted = regression.Y + rng.normal(scale=0.5, size=(500, 1))
    low, high = regression.interval(predicted)
    assert low < regression.error(predicted) < high < 1.25 * low


def test_neighbors_start_near_their_best_alpha():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(190, 2))
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=190)
    targets, kernel = Targets.of(y, classification=False), Matern(nu=1.5, gamma=0.2)
    known = Candidate(Scaling(), kernel, judge(kernel(X), targets).alpha)
    for near in neighbors(known):
        K = near.gram(X)
        first, unchanged = (
            judge(K, targets, alpha, bar=0.0).score for alpha in (near.alpha, known.alpha)
        )
        assert first < 1.01 * judge(K, targets).score < 0.99 * unchanged


def test_only_certain_losers_are_dropped():
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(200, 3)), rng.normal(size=200), False, rng)
    (trial,) = rows.judged([Candidate(Scaling(), Laplacian(gamma=0.4))], 200)
    worse = replace(trial, losses=trial.losses + 0.1)
    unlucky = replace(trial, losses=trial.losses + 20 * (np.arange(200) == 0)[:, None])
    assert _possible([trial, worse, unlucky]) == [trial, unlucky]
