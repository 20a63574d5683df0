"""Losses: gradients against differences of values, curvatures, weights."""

import numpy as np
import pytest
from scipy.special import log_softmax

from craftmaps.learn.losses import BitLogLoss, HuberLoss, LogLoss, QuantileLoss

RNG = np.random.default_rng(0)
F = 2 * RNG.standard_normal((40, 3))
NUMBERS = RNG.standard_normal((40, 3))
BITS = np.where(RNG.random((40, 3)) < 0.5, -1.0, 1.0)
LABELS = RNG.integers(0, 3, 40)
WEIGHTS = RNG.random(40)
CASES = {
    "log": (LogLoss(), LABELS),
    "bits": (BitLogLoss(), BITS),
    "huber": (HuberLoss(np.array([0.5, 1.0, 2.0])), NUMBERS),
    "quantile": (QuantileLoss(0.8, 30.0), NUMBERS),
}


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_that_of_the_value(name):
    loss, y = CASES[name]
    gradient = loss(F, y, WEIGHTS).gradient
    step = 1e-6
    for i, j in [(0, 0), (3, 2), (17, 1), (39, 2)]:
        moved = F.copy()
        moved[i, j] += step
        above = loss(moved, y, WEIGHTS).value
        moved[i, j] -= 2 * step
        below = loss(moved, y, WEIGHTS).value
        assert gradient[i, j] == pytest.approx((above - below) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_a_weight_of_two_is_a_row_twice(name):
    loss, y = CASES[name]
    value, gradient, curvatures = loss(F, y, 2 * np.ones(40))
    once, slope, each = loss(F, y, np.ones(40))
    assert value == pytest.approx(2 * once)
    np.testing.assert_allclose(gradient, 2 * slope)
    np.testing.assert_array_equal(curvatures, each)


def test_the_curvature_of_huber_loss_is_a_bound():
    loss, y = CASES["huber"]
    here, there = loss(F, y, np.ones(40)).gradient, loss(F + 1e-3, y, np.ones(40)).gradient
    assert ((there - here) / 1e-3).max() <= loss.curvature + 1e-9


@pytest.mark.parametrize(
    ("name", "over_outputs"), [("log", np.max), ("bits", np.mean), ("huber", np.mean)]
)
def test_curvatures_of_rows_are_second_derivatives(name, over_outputs):
    loss, y = CASES[name]
    step, second = 1e-6, np.empty_like(F)
    for j in range(F.shape[1]):
        moved = F.copy()
        moved[:, j] += step
        change = loss(moved, y, np.ones(40)).gradient - loss(F, y, np.ones(40)).gradient
        second[:, j] = change[:, j] / step
    wanted = over_outputs(second, axis=1)
    np.testing.assert_allclose(loss(F, y, WEIGHTS).curvatures, wanted, atol=1e-6)


def test_the_log_loss_is_minus_the_logarithm_of_probabilities():
    value = LogLoss()(F, LABELS, WEIGHTS).value
    assert value == pytest.approx(-WEIGHTS @ log_softmax(F, axis=1)[np.arange(40), LABELS])


def test_large_scores_do_not_overflow():
    scores = np.array([[1e4, -1e4], [-1e4, 1e4]], np.float32)
    for loss, y in ((LogLoss(), np.array([0, 0])), (BitLogLoss(), np.ones((2, 2), np.float32))):
        value, gradient, _ = loss(scores, y, np.ones(2))
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


def test_a_rounded_corner_stays_near_the_pinball_loss():
    loss = QuantileLoss(0.8, 1.0)
    value = loss(np.zeros((40, 3)), NUMBERS, WEIGHTS).value
    pinball = np.maximum(0.8 * NUMBERS, -0.2 * NUMBERS)
    exact = WEIGHTS @ pinball.sum(axis=1)
    assert exact <= value <= exact + 3 * WEIGHTS.sum() * float(loss.width) / 4
