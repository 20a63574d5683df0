"""How features are shared among degrees: laws, weights, and the best allocation."""

import math

import numpy as np
import pytest
from scipy import sparse

import oracles
from craftmaps import DotProduct, Exponential, Polynomial, VovkInfinite, VovkReal
from craftmaps.maps import allocation
from craftmaps.maps.allocation import PairMoments
from unbiased import check_unbiased

KERNELS = [
    Polynomial(degree=4),
    Polynomial(degree=3, coef0=0.0),
    Exponential(),
    VovkReal(p=4),
    VovkInfinite(gamma=0.4),
    DotProduct([0.0, 1.0, 0.0, 2.0]),
]


def rows(n=12, d=6, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d)) + 0.3
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_pair_moments_against_loops():
    X = rows(9)
    X[3, 2:] = 0
    for given in (X, X.astype(np.float32), sparse.csr_matrix(X), sparse.csr_array(X)):
        moments = PairMoments.of_sample(given, np.random.default_rng(0))
        assert len(moments.square) == 9 * 8 // 2
        expected = [oracles.pair_moments(X[i], X[j]) for i in range(9) for j in range(i + 1, 9)]
        found = np.transpose([moments.square, moments.norms, moments.fourth])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    scaled = PairMoments.of_sample(X, np.random.default_rng(0)).scaled(4.0)
    np.testing.assert_allclose(
        np.transpose([scaled.square, scaled.norms, scaled.fourth]),
        [oracles.pair_moments(X[i] / 2, X[j] / 2) for i in range(9) for j in range(i + 1, 9)],
    )


def test_pair_moments_of_one_row_and_of_many():
    lone = PairMoments.of_sample(np.array([[1.0, 2.0]]), np.random.default_rng(0))
    assert (lone.square.tolist(), lone.norms.tolist(), lone.fourth.tolist()) == ([25], [25], [17])
    many = PairMoments.of_sample(np.ones((1000, 2)), np.random.default_rng(0))
    assert len(many.square) == 256 * 255 // 2


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_variance_and_repulsion_against_all_rotations(size, degree):
    """Moments of one factor, enumerated over every choice of signs and every permutation."""
    x, y = np.random.default_rng(size).normal(size=(2, size))
    moments = PairMoments.of_sample(np.array([x, y]), np.random.default_rng(0))
    c = (x @ y) ** 2
    for is_complex in (False, True):
        enumerated = oracles.factor_moments(x, y, is_complex)
        variance = repulsion = 0.0
        for same, different in enumerated:
            # every row of H behaves alike, and so does every pair of different rows
            np.testing.assert_allclose(same, same[0])
            np.testing.assert_allclose(different, different[0])
            variance += (same[0] ** degree).real - c**degree
            repulsion += c**degree - (different[0] ** degree).real
        assert moments.variance(degree, "hadamard", is_complex) == pytest.approx(variance)
        assert moments.repulsion(degree, size, is_complex) == pytest.approx(repulsion)


def test_variance_formulas():
    """Rademacher (m^p - t^2p), m = N + 2c - 2q; Gaussian without q; complex m_C and m_P."""
    x, y = rows(2)
    c, N, q = oracles.pair_moments(x, y)
    moments = PairMoments.of_sample(np.array([x, y]), np.random.default_rng(0))
    for p in (1, 2, 5):
        for projection, m in (("rademacher", N + 2 * c - 2 * q), ("gaussian", N + 2 * c)):
            assert moments.variance(p, projection, False) == pytest.approx(m**p - c**p)
        m_c, m_p = N + c - q, 2 * c - q
        expected = m_c**p + m_p**p - 2 * c**p
        assert moments.variance(p, "rademacher", True) == pytest.approx(expected)
    assert moments.repulsion(3, 1, False) == 0.0


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("least", [0, 2])
def test_every_law_gives_each_degree_its_coefficient_on_average(kernel, least):
    """E[counts_n] weights_n = a_n, degree by degree: the whole of unbiasedness but the products."""
    n_features, last = 2000, int(min(4, kernel.highest_degree))
    coefficients = kernel.maclaurin(last)
    used = [n for n in range(least, last + 1) if coefficients[n] > 0]
    laws = {
        "p=2": lambda rng: allocation.geometric(kernel, n_features, least, last, 2.0, rng),
        "p=3": lambda rng: allocation.geometric(kernel, n_features, least, last, 3.0, rng),
        "unbounded": lambda rng: allocation.geometric(kernel, n_features, least, None, 2.0, rng),
        "proportional": lambda rng: allocation.proportional(
            kernel, n_features, least, last, 0.7, rng
        ),
    }
    rng = np.random.default_rng(least)
    for law in laws.values():
        sums = []
        for _ in range(400):
            counts, weights = law(rng)
            assert counts.sum() == n_features
            assert counts[:least].sum() == 0
            padded = np.pad(counts * weights, (0, max(0, last + 1 - len(counts))))
            sums.append([padded[n] for n in used])
        check_unbiased(sums, coefficients[used], smallest=0.2)


@pytest.mark.parametrize("n_features", [1, 2, 3])
def test_fewer_features_than_degrees_stay_unbiased(n_features):
    kernel, rng = VovkReal(p=5), np.random.default_rng(0)
    draws = [allocation.proportional(kernel, n_features, 0, 4, 0.7, rng) for _ in range(20000)]
    check_unbiased([counts * weights for counts, weights in draws], np.ones(5), smallest=0.3)


def test_geometric_weights_are_as_printed_for_p_2():
    """KK Algorithm 1: sqrt(a_N p^(N+1)) / sqrt(D)."""
    counts, weights = allocation.geometric(
        Exponential(), 5000, 0, None, 2.0, np.random.default_rng(0)
    )
    n = np.arange(len(counts))
    np.testing.assert_allclose(weights, Exponential().maclaurin(n[-1]) * 2.0 ** (n + 1) / 5000)
    assert counts[0] == pytest.approx(2500, abs=6.5 * math.sqrt(1250))  # 1e-10
    assert len(counts) > 9


def test_proportional_counts_stay_within_one_of_their_expectation():
    kernel = Exponential(gamma=2.0)
    law = kernel.maclaurin(8) * 0.7 ** np.arange(9)
    law /= law.sum()
    for seed in range(50):
        counts, _ = allocation.proportional(kernel, 37, 0, 8, 0.7, np.random.default_rng(seed))
        assert np.abs(counts - 37 * law).max() < 1


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("least", [0, 2])
@pytest.mark.parametrize("projection", ["hadamard", "rademacher", "gaussian"])
@pytest.mark.parametrize("is_complex", [False, True])
def test_optimized_counts_and_weights(kernel, least, projection, is_complex):
    """Weights are a_n / D_n: nothing is left to chance, and no degree without a coefficient."""
    last = int(min(6, kernel.highest_degree))
    moments = PairMoments.of_sample(rows(), np.random.default_rng(0))
    for n_features in (last + 1, 50, 1000):
        counts, weights = allocation.optimized(
            kernel, n_features, least, last, moments, 1.0, projection, is_complex, 8
        )
        coefficients = kernel.maclaurin(last)
        coefficients[:least] = 0
        np.testing.assert_allclose(counts * weights, coefficients)
        assert counts.sum() == n_features
        assert (counts[coefficients == 0] == 0).all()
        assert (counts[coefficients > 0] > 0).all()
        if least == 0 and coefficients[0]:
            assert counts[0] == 1  # a constant needs one column


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("total", [6, 7, 10, 33, 200, 1000])
def test_optimized_equals_one_feature_at_a_time(kernel, total):
    """The sum of a_n^2 V_n / D_n is that of the slow greedy, for independent projections."""
    last = int(min(5, kernel.highest_degree))
    moments = PairMoments.of_sample(2 * rows(), np.random.default_rng(0))
    coefficients = kernel.maclaurin(last)
    used = [n for n in range(1, last + 1) if coefficients[n] > 0]
    sizes = [coefficients[n] ** 2 * moments.variance(n, "rademacher", False) for n in used]
    errors = [lambda count, size=size: size / count for size in sizes]
    constant = int(coefficients[0] > 0)
    counts, _ = allocation.optimized(kernel, total, 0, last, moments, 4.0, "rademacher", False, 8)
    found = sum(error(counts[n]) for error, n in zip(errors, used, strict=True))
    slow = oracles.greedy_counts(errors, total - constant)
    expected = sum(error(count) for error, count in zip(errors, slow, strict=True))
    assert found == pytest.approx(expected, rel=1e-12)


def test_greedy_sharing_is_the_best_of_all():
    rng = np.random.default_rng(0)
    for _ in range(30):
        sizes = 10.0 ** rng.uniform(-3, 3, 3)
        errors = [lambda count, size=size: size / count for size in sizes]
        curves = [allocation._Curve(size, size, 1, math.inf) for size in sizes]
        counts = allocation._share(14, curves)
        found = sum(error(count) for error, count in zip(errors, counts, strict=True))
        assert found == pytest.approx(oracles.best_counts(errors, 14))


def test_sharing_with_knees_and_caps_is_the_best_of_all():
    """Runs of a rotation: errors fall slower beyond the knee and not at all beyond the cap."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        curves, errors = [], []
        for _ in range(3):
            early = 10.0 ** rng.uniform(-1, 1)
            curve = allocation._Curve(
                early, early * rng.random(), int(rng.integers(2, 5)), int(rng.integers(4, 12))
            )

            def error(count, curve=curve):
                return -sum(curve.gain(k) for k in range(1, count))

            curves.append(curve)
            errors.append(error)
        counts = allocation._share(15, curves)
        assert sum(counts) == 15
        found = sum(error(count) for error, count in zip(errors, counts, strict=True))
        assert found == pytest.approx(oracles.best_counts(errors, 15))


@pytest.mark.parametrize("total", [3, 1000, 10**7])
def test_sharing_of_large_and_small_totals(total):
    curves = [allocation._Curve(e, e, 1, math.inf) for e in (1e-9, 1.0, 1e9)]
    counts = allocation._share(total, curves)
    assert sum(counts) == total
    assert min(counts) >= 1
    if total > 1000:  # D_n proportional to sqrt of the errors
        assert counts[2] / counts[1] == pytest.approx(10**4.5, rel=0.01)


def test_exact_degrees_take_what_they_need_and_no_more():
    """`size` features of degree 1 are exact under Hadamard rotations; the rest goes elsewhere."""
    X = np.zeros((4, 8))
    X[:, 0] = [1.0, 2.0, 3.0, 4.0]
    X[:, 1] = 1.0
    moments = PairMoments.of_sample(X, np.random.default_rng(0))
    kernel = DotProduct([0.0, 1000.0, 0.001])
    counts, _ = allocation.optimized(kernel, 50, 0, 2, moments, 17.0, "hadamard", False, 8)
    assert counts.tolist() == [0, 8, 42]


@pytest.mark.parametrize("kernel", [Exponential(), VovkInfinite(), Polynomial(9)], ids=repr)
@pytest.mark.parametrize("squared_norm", [0.01, 0.5, 0.7])
def test_automatic_degree_is_the_least_with_a_negligible_tail(kernel, squared_norm):
    degree = allocation.automatic_degree(kernel, squared_norm)
    whole = oracles.series(kernel.maclaurin(300), squared_norm)
    terms = kernel.maclaurin(300) * squared_norm ** np.arange(301)
    assert terms[degree + 1 :].sum() <= 2.0**-24 * whole
    assert degree == 0 or terms[degree:].sum() > 2.0**-24 * whole


def test_automatic_degree_ends_at_64():
    assert allocation.automatic_degree(VovkInfinite(), 0.999) == 64
    assert allocation.automatic_degree(Polynomial(degree=20), 1e6) == 20
