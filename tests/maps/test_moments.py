"""Moments of pairs of rows, and the statistics of each degree, against enumeration."""

import numpy as np
import pytest
from scipy import sparse

import oracles
from craftmaps import DotProduct, Exponential, Polynomial
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments


def moments_of(*rows):
    return PairMoments.of_sample(np.array(rows), np.random.default_rng(0))


def statistics_of(moments, max_degree, projection, is_complex=False, length=8):
    kernel = DotProduct([1.0] * (max_degree + 1))
    return DegreeStatistics.measure(kernel, moments, max_degree, projection, is_complex, length)


def test_pair_moments_against_loops():
    X = np.random.default_rng(0).normal(size=(9, 6))
    X[3, 2:] = 0
    expected = [oracles.pair_moments(X[i], X[j]) for i in range(9) for j in range(i + 1, 9)]
    for given in (X, X.astype(np.float32), sparse.csr_matrix(X), sparse.csr_array(X)):
        moments = PairMoments.of_sample(given, np.random.default_rng(0))
        found = np.transpose([moments.inner**2, moments.left * moments.right, moments.fourth])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_pair_moments_of_one_row_and_of_many():
    lone = moments_of([1.0, 2.0])
    assert [np.ravel(part).tolist() for part in vars(lone).values()] == [[5], [5], [5], [17], [1]]
    many = PairMoments.of_sample(np.ones((1000, 2)), np.random.default_rng(0))
    assert len(many.inner) == 256 * 255 // 2


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("is_complex", [False, True])
def test_variance_and_repulsion_against_all_rotations(size, is_complex):
    """Moments of one factor, enumerated over every choice of signs and every permutation."""
    x, y = np.random.default_rng(size).normal(size=(2, size))
    statistics = statistics_of(moments_of(x, y), 4, "hadamard", is_complex, size)
    c = (x @ y) ** 2
    enumerated = oracles.factor_moments(x, y, is_complex)
    for same, different in enumerated:
        # every row of H behaves alike, and so does every pair of different rows
        np.testing.assert_allclose(same, same[0])
        np.testing.assert_allclose(different, different[0])
    for n in range(5):
        variance = sum((same[0] ** n).real - c**n for same, _ in enumerated)
        repulsion = sum(c**n - (different[0] ** n).real for _, different in enumerated)
        assert statistics.variance[n] == pytest.approx(variance, rel=1e-10, abs=1e-10)
        assert statistics.repulsion[n] == pytest.approx(repulsion, rel=1e-10, abs=1e-10)
        assert statistics.second[n] == pytest.approx((enumerated[0][0][0] ** n).real)


def test_variance_formulas():
    """Rademacher m^p - t^2p, m = N + 2c - 2q; Gaussian without q; complex m_C and m_P."""
    x, y = np.random.default_rng(0).normal(size=(2, 6))
    c, N, q = oracles.pair_moments(x, y)
    moments = moments_of(x, y)
    for p in (1, 2, 5):
        for projection, m in (("rademacher", N + 2 * c - 2 * q), ("gaussian", N + 2 * c)):
            statistics = statistics_of(moments, p, projection)
            assert statistics.variance[p] == pytest.approx(m**p - c**p)
            assert statistics.repulsion[p] == 0
        statistics = statistics_of(moments, p, "rademacher", True)
        expected = (N + c - q) ** p + (2 * c - q) ** p - 2 * c**p
        assert statistics.variance[p] == pytest.approx(expected)


def test_statistics_are_means_over_pairs_and_know_the_coefficients():
    rows = np.random.default_rng(0).normal(size=(3, 5))
    together = statistics_of(moments_of(*rows), 3, "rademacher")
    apart = [
        statistics_of(moments_of(rows[i], rows[j]), 3, "rademacher")
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    np.testing.assert_allclose(together.variance, np.mean([s.variance for s in apart], axis=0))
    kernel = Exponential(gamma=2.0)
    measured = DegreeStatistics.measure(kernel, moments_of(*rows), 6, "gaussian", False, 8)
    np.testing.assert_array_equal(measured.coefficients, kernel.maclaurin(6))


def test_high_degrees_of_large_and_of_zero_rows_stay_finite():
    for scale in (0.0, 1e-8, 1e3):
        rows = scale * np.random.default_rng(0).normal(size=(4, 5))
        kernel = Polynomial(degree=20)
        measured = DegreeStatistics.measure(kernel, moments_of(*rows), 20, "hadamard", False, 8)
        assert np.isfinite(measured.variance).all()
        assert np.isfinite(measured.repulsion).all()
