"""Sums of rows drawn by their curvatures, and descents that are preconditioned by them."""

import numpy as np
import pytest
from scipy.special import softmax

from craftmaps import KernelClassifier
from craftmaps.learn import few_pass_fit
from craftmaps.learn.codes import Unchanged
from craftmaps.learn.losses import LogLoss
from craftmaps.learn.map_rows import place_priority
from craftmaps.learn.passes import CurvaturePass, FeatureBlock, Labels, Point

RNG = np.random.default_rng(0)
Z = RNG.standard_normal((6000, 12))
W = 4 * RNG.standard_normal((12, 3))
Y = np.array([RNG.choice(3, p=p) for p in softmax(Z @ W, axis=1)])
WEIGHTS = RNG.uniform(0.5, 2, len(Z))
POINT = Point(W, np.array([0.1, 0.2, -0.3]))
P = softmax(Z @ W + POINT.intercept, axis=1)
CURVATURES = WEIGHTS * (P * (1 - P)).max(axis=1)


def sums(limit, cuts=()):
    hashes = place_priority(np.arange(len(Z)))
    parts = (np.split(array, cuts) for array in (Z, Y, WEIGHTS, hashes))
    blocks = [FeatureBlock(*part) for part in zip(*parts, strict=True)]
    task = CurvaturePass(limit, Labels(Unchanged()), LogLoss(), POINT, float(CURVATURES.sum()))
    return task(blocks).equations


def test_all_rows_give_the_sums_of_all_rows():
    every = sums(10**12)
    assert every.weight == pytest.approx(CURVATURES.sum())
    mean = CURVATURES @ Z / CURVATURES.sum()
    wanted = (Z - mean).T @ (CURVATURES[:, None] * (Z - mean))
    np.testing.assert_allclose(every.hessian, wanted, rtol=1e-5, atol=1e-6)


def test_rows_of_large_curvature_are_drawn_and_stand_for_the_others():
    every, some = sums(10**12), sums(1500)
    chances = np.minimum(1.0, CURVATURES * 1500 / CURVATURES.sum())
    assert some.n_rows == pytest.approx(chances.sum(), rel=0.1)
    drawn = place_priority(np.arange(len(Z))) / 2.0**64 < chances
    assert CURVATURES[drawn].mean() > 2 * CURVATURES.mean()
    assert some.weight == pytest.approx(every.weight, rel=0.1)
    near = np.linalg.solve(every.hessian, some.hessian)
    eigenvalues = np.linalg.eigvals(near).real
    assert 0.7 < eigenvalues.min() <= eigenvalues.max() < 1.4


def test_the_same_rows_are_drawn_from_any_blocks():
    whole, cut = sums(1500), sums(1500, [7, 2000, 2001, 5500])
    assert whole.n_rows == cut.n_rows
    np.testing.assert_allclose(whole.hessian, cut.hessian, rtol=1e-9, atol=1e-9)


def test_new_sums_save_passes_and_change_no_minimum(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((4000, 100)) * np.linspace(1, 0.05, 100)
    chances = softmax(8 * X @ rng.standard_normal((100, 3)), axis=1)
    y = np.array([rng.choice(3, p=p) for p in chances])
    model = KernelClassifier(None, loss="log", alpha=0.1, tol=1e-9)
    renewed = model.fit(X, y)
    scores, passes = renewed.decision_function(X), renewed.n_passes_
    monkeypatch.setattr(few_pass_fit, "_CHEAP_SQUARES", 0)
    plain = model.fit(X, y)
    assert passes < 0.8 * plain.n_passes_  # 35 and 53
    np.testing.assert_allclose(scores, plain.decision_function(X), rtol=1e-4, atol=2e-3)
