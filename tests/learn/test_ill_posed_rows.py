"""Conjugate gradients on rows that hardly differ, or with next to no penalty: right or refused."""

from collections import Counter

import numpy as np
import pytest

from craftmaps import OnePassRegressor
from craftmaps.learn.solvers import choose
from craftmaps.learn.solvers.conjugate_gradients import KeptRows

pytestmark = pytest.mark.delicate

# The tolerated error of predictions, relative to the targets. At the least alpha that is allowed,
# rounding errors of float32 change predictions by about a hundredth.
TOLERANCE = {np.dtype(np.float64): 1e-4, np.dtype(np.float32): 2e-2}


def few_distinct(rng, n, E):
    r = rng.integers(1, 12)
    return rng.standard_normal((r, E))[rng.integers(r, size=n)]


def low_rank(rng, n, E):
    r = rng.integers(1, 12)
    return rng.standard_normal((n, r)) @ rng.standard_normal((r, E))


def nearly_equal(rng, n, E):
    return few_distinct(rng, n, E) + 10.0 ** -rng.integers(2, 9) * rng.standard_normal((n, E))


def falling_spectrum(rng, n, E):
    U, _, V = np.linalg.svd(rng.standard_normal((n, E)), full_matrices=False)
    return 10 * (U * 10.0 ** (-rng.uniform(1, 8) * np.linspace(0, 1, n))) @ V


KINDS = [few_distinct, low_rank, nearly_equal, falling_spectrum]


def problem(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 250))
    dtype = [np.float64, np.float32][rng.integers(2)]
    Z = KINDS[seed % len(KINDS)](rng, n, n + int(rng.integers(1, 2 * n)))
    Z = (Z + rng.choice([0.0, 1.0, 30.0])).astype(dtype)
    Y = rng.standard_normal((n, rng.integers(1, 5)))
    Y *= 10.0 ** rng.integers(-3, 4, Y.shape[1])
    if rng.integers(3) == 0:
        Y[:, 0] = 2.0
    Y[:, -1] -= Y[:, 0] * rng.integers(2)
    weights = [np.ones(n), rng.random(n), 1.0 * (np.arange(n) % 3)][rng.integers(3)]
    # none, one that the precision may hide, or one that it does not hide
    scale = np.finfo(dtype).eps * np.linalg.norm(Z.astype(np.float64), 2) ** 2
    alpha = [0.0, 1e-9 * scale, scale * 10 ** rng.uniform(0, 8)][rng.integers(3)]
    return Z, Y, weights, float(alpha), bool(rng.integers(2))


def predicted_by_the_textbook(Z, Y, weights, alpha, fit_intercept):
    Z, root = Z.astype(np.float64), np.sqrt(weights)[:, None]
    if not fit_intercept:
        centre, mean = np.zeros(Z.shape[1]), np.zeros(Y.shape[1])
    else:
        centre, mean = (np.average(A, axis=0, weights=weights) for A in (Z, Y))
    U, s, V = np.linalg.svd(root * (Z - centre), full_matrices=False)
    known = s > 1e-10 * s.max()
    factors = np.divide(s, s**2 + alpha, where=known, out=np.zeros_like(s))
    return (Z - centre) @ (V.T @ (factors[:, None] * (U.T @ (root * (Y - mean))))) + mean


def sweep(seeds):
    """Solve each problem, and count outcomes; fails at one that is neither right nor refused."""
    outcomes = Counter()
    for seed in seeds:
        Z, Y, weights, alpha, fit_intercept = problem(seed)
        rows = KeptRows(Z, weights, fit_intercept)
        try:
            solution = rows.solve(Y, alpha)
        except ValueError as error:
            outcomes["refused" if "alpha" in str(error) else "other errors"] += 1
            continue
        assert np.isfinite(solution.coef).all()
        assert np.isfinite(solution.mean_leverage)
        expected = predicted_by_the_textbook(Z, Y, weights, alpha, fit_intercept)
        root = np.sqrt(weights)[:, None]
        lengths = np.maximum(np.linalg.norm(root * Y, axis=0), 1e-12)
        error = np.linalg.norm(root * (rows.predicted(solution) - expected), axis=0) / lengths
        assert error.max() < TOLERANCE[Z.dtype], (seed, alpha, rows.least_alpha, error)
        outcomes["right"] += 1
    assert outcomes["other errors"] == 0
    return outcomes


def test_a_solution_is_right_or_refused():
    outcomes = sweep(range(1000, 1024))
    assert min(outcomes["right"], outcomes["refused"]) > 4


@pytest.mark.slow
def test_of_200_problems_every_solution_is_right_or_refused():
    outcomes = sweep(range(200))
    assert min(outcomes["right"], outcomes["refused"]) > 40


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rows_that_are_all_equal(alpha, fit_intercept):
    Z, y = np.full((40, 60), 0.5), np.arange(40.0)[:, None]
    rows = KeptRows(Z, None, fit_intercept)
    if alpha == 0 and not fit_intercept:
        with pytest.raises(ValueError, match="too small"):
            rows.solve(y, alpha)
        return
    solution = rows.solve(y, alpha)
    expected = predicted_by_the_textbook(Z, y, np.ones(40), alpha, fit_intercept)
    np.testing.assert_allclose(rows.predicted(solution), expected, rtol=1e-9)


def test_a_learner_refuses_an_alpha_that_rounding_hides(monkeypatch):
    monkeypatch.setattr(choose, "MANY_ROWS", 50)
    Z, Y, _, _, _ = problem(0)
    with pytest.raises(ValueError, match=r"alpha=0 is too small for .* use at least .*'auto'"):
        OnePassRegressor(alpha=0.0).fit(Z, Y)
    model = OnePassRegressor(alpha="auto").fit(Z, Y)
    assert np.isfinite(model.predict(Z)).all()
