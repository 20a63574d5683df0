"""The two-sample test has the size that it says, sees what it should, and scores strange rows."""

from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats
from sklearn.frozen import FrozenEstimator

from craftmaps import FourierFeatures, Gaussian, KernelPCA, OnePassClassifier, OnePassRegressor
from craftmaps.diagnose import anomaly_score, drift
from craftmaps.diagnose.drift import chi_square_tail

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 4))
MAP = FrozenEstimator(FourierFeatures(Gaussian(0.2), 64, random_state=0).fit(X))


@pytest.mark.parametrize("n", [2, 5, 40, 1000])
@pytest.mark.parametrize("tail", [0.9, 0.5, 0.05, 1e-6])
def test_the_tail_of_equal_weights_is_that_of_chi_square(n, tail):
    value = stats.chi2.isf(tail, n)
    assert chi_square_tail(np.full(n, 3.0), 3 * value) == pytest.approx(tail, rel=0.05)
    at_mean = chi_square_tail(np.full(n, 3.0), 3.0 * n)
    assert at_mean == pytest.approx(stats.chi2.sf(n, n), rel=0.05)


def test_the_tail_of_unequal_weights_is_what_is_drawn():
    """100,000 draws: within 5 standard errors and the 3 % that the formula is good for."""
    weights = 0.6 ** np.arange(12)
    drawn = np.random.default_rng(1).standard_normal((100_000, 12)) ** 2 @ weights
    for level in (0.5, 0.9, 0.99):
        value = np.quantile(drawn, level)
        error = 5 * np.sqrt(level * (1 - level) / len(drawn))
        assert abs(chi_square_tail(weights, value) - (1 - level)) < error + 0.03 * (1 - level)
    assert chi_square_tail(weights, 0.0) == 1.0
    assert chi_square_tail(np.zeros(3), 1.0) == 0.0
    values = [chi_square_tail(weights, v) for v in np.linspace(0.01, 40, 400)]
    assert (np.diff(values) < 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(("n_reference", "n_rows", "size"), [(500, 50, 32), (200, 200, 256)])
def test_the_size_is_what_it_says(n_reference, n_rows, size):
    """1,000 draws without drift; a false alarm of this test has a probability below 1e-5 or so.

    Half as many rows as there are, which makes p-values too large or too small, is caught.
    """
    rng = np.random.default_rng(2)
    feature_map = FourierFeatures(Gaussian(0.2), size, random_state=0).fit(X)
    p_values, wrong = [], []
    for _ in range(1000):
        first, second = rng.standard_normal((n_reference, 4)), rng.standard_normal((n_rows, 4))
        result = drift(first, second, FrozenEstimator(feature_map))
        p_values.append(result.p_value)
        twice = drift(
            np.repeat(first, 2, axis=0), np.repeat(second, 2, axis=0), FrozenEstimator(feature_map)
        )
        wrong.append(twice.p_value)
    for level in (0.01, 0.05, 0.5):
        spare = 4.5 * np.sqrt(level * (1 - level) / 1000)
        assert abs(np.mean(np.array(p_values) < level) - level) < spare
        assert np.mean(np.array(wrong) < level) - level > spare


def test_the_statistic_is_the_discrepancy_of_the_kernel_of_the_features():
    other = X[:100] + 0.3
    found = drift(X, other, MAP)
    Z, W = MAP.transform(X), MAP.transform(other)
    mmd = (Z @ Z.T).mean() + (W @ W.T).mean() - 2 * (Z @ W.T).mean()
    assert found.statistic == pytest.approx(mmd, rel=1e-9)
    within = (Z.var(axis=0).sum() * 600 + W.var(axis=0).sum() * 100) / 698
    assert found.expected == pytest.approx((1 / 600 + 1 / 100) * within, rel=1e-9)
    assert (found.n_reference, found.n_rows) == (600, 100)
    assert "p-value" in str(found)


def test_changes_of_mean_spread_and_dependence_are_seen():
    reference = KernelPCA(MAP).fit(X)
    rng = np.random.default_rng(3)
    new = rng.standard_normal((300, 4))
    assert drift(reference, new).p_value > 1e-3
    dependent = new.copy()
    dependent[:, 1] = 0.8 * new[:, 0] + 0.6 * new[:, 1]
    for changed in (new + 0.3, new * 1.3, dependent):
        assert drift(reference, changed).p_value < 1e-3


@pytest.mark.parametrize("fitted", ["components", "regressor", "classifier", "few", "folds"])
def test_any_learner_is_a_reference_and_stays_as_it_is(fitted):
    y = X[:, 0] + RNG.standard_normal(600)
    reference = {
        "components": KernelPCA(MAP).partial_fit(X),
        "regressor": OnePassRegressor(MAP, alpha=1.0, block_rows=70).partial_fit(X, y),
        "classifier": OnePassClassifier(MAP, alpha=1.0).partial_fit(X, y > 0),
        "few": OnePassRegressor(MAP, alpha=1.0).fit(X[:40], y[:40]),
        "folds": OnePassRegressor(MAP, alpha=[0.1, 1.0]).fit(X, y),
    }[fitted]
    seen = X[:40] if fitted == "few" else X
    before = reference.sums()
    found = drift(reference, X[:50] + 1)
    expected = drift(seen, X[:50] + 1, MAP)
    assert astuple(found) == pytest.approx(astuple(expected), rel=1e-6)
    scores = anomaly_score(reference, X[:5])
    np.testing.assert_allclose(scores, anomaly_score(seen, X[:5], feature_map=MAP), rtol=1e-7)
    assert reference.sums() == before


def test_a_stream_is_compared_by_its_sums():
    reference = KernelPCA(MAP).fit(X)
    recent = reference.emptied()
    rng = np.random.default_rng(4)
    p_values = []
    for _ in range(6):
        recent.partial_fit(rng.standard_normal((100, 4)) + 0.15)
        p_values.append(drift(reference, recent).p_value)
    assert p_values[-1] < 1e-3
    assert p_values[-1] < p_values[0]


def test_scores_are_leverages():
    rows = RNG.standard_normal((20, 4)) * 2
    Z = MAP.transform(X)
    centred = Z - Z.mean(axis=0)
    new = MAP.transform(rows) - Z.mean(axis=0)
    A = centred.T @ centred
    for alpha in (None, 3.0):
        used = 0.01 * np.trace(A) / 64 if alpha is None else alpha
        expected = 1 / 600 + np.einsum(
            "ij,jk,ik->i", new, np.linalg.inv(A + used * np.eye(64)), new
        )
        found = anomaly_score(X, rows, feature_map=MAP, alpha=alpha)
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    far = anomaly_score(X, [[4.0, 4.0, -4.0, 4.0]], feature_map=MAP)
    assert far[0] > np.quantile(anomaly_score(X, X, feature_map=MAP), 0.99)


def test_complaints():
    reference = KernelPCA(MAP).fit(X)
    with pytest.raises(ValueError, match="rows with a feature_map, got a ndarray"):
        drift(X, X)
    with pytest.raises(ValueError, match="a learner has its own"):
        drift(reference, X, MAP)
    with pytest.raises(ValueError, match="at least two rows of each sample"):
        drift(reference, X[:1])
    other = KernelPCA(FourierFeatures(Gaussian(0.2), 64, random_state=1)).fit(X)
    with pytest.raises(ValueError, match="different feature maps"):
        drift(reference, other)
    with pytest.raises(ValueError, match="no sums of its rows"):
        drift(reference.for_prediction(), X)
    for alpha in (0, -1, "auto"):
        with pytest.raises(ValueError, match="alpha must be a number above 0"):
            anomaly_score(reference, X, alpha=alpha)
