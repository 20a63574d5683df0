"""The statistical test itself: calibrated, powerful, and not silent when it is weak."""

import numpy as np
import pytest
from scipy import stats

from unbiased import COMPARISONS, SUITE, Biased, check_unbiased, threshold


def test_threshold_keeps_the_false_alarm_rate():
    share = 2 * stats.t.sf(threshold(200), 199)
    assert share * COMPARISONS == pytest.approx(SUITE)


def test_scores_of_an_unbiased_estimate_follow_students_law():
    """So that the stated rate is the true one, even for means of skewed, heavy-tailed features."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((2000, 100, 64)) * rng.standard_normal((2000, 100, 64))
    estimates = (features**2).mean(axis=2)
    scores = (estimates.mean(1) - 1) / (estimates.std(1, ddof=1) / np.sqrt(100))
    assert stats.kstest(scores, stats.t(99).cdf).pvalue > 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_a_bias_below_the_stated_size_is_caught(seed):
    sample = np.random.default_rng(seed).normal(1.02, 0.03, (200, 3))
    with pytest.raises(Biased, match="standard errors off"):
        check_unbiased(sample, [1.0, 1.0, 1.0], smallest=0.025)


def test_no_bias_passes():
    for seed in range(50):
        check_unbiased(np.random.default_rng(seed).normal(2, 0.05, (200, 3)), [2.0] * 3, 0.03)


def test_exact_estimates_are_compared_up_to_rounding():
    check_unbiased(np.full((10, 1), 0.1 + 0.2), [0.3], smallest=1e-9)
    with pytest.raises(Biased):
        check_unbiased(np.full((10, 1), 0.300001), [0.3], smallest=1e-3)


def test_a_sample_that_sees_nothing_is_refused():
    sample = np.random.default_rng(0).normal(1, 1, (200, 1))
    with pytest.raises(AssertionError, match="too few seeds"):
        check_unbiased(sample, [1.0], smallest=0.03)
