"""How features are shared among degrees: laws, weights, and the best allocation."""

import math
import re

import numpy as np
import pytest

import oracles
from craftmaps import DotProduct, Exponential, Polynomial, VovkInfinite, VovkReal
from craftmaps.maps.planning import allocation
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments
from unbiased import check_unbiased

KERNELS = [
    Polynomial(degree=4),
    Polynomial(degree=3, coef0=0.0),
    Exponential(),
    VovkReal(p=4),
    VovkInfinite(gamma=0.4),
    DotProduct([0.0, 1.0, 0.0, 2.0]),
]


def measure(kernel, X, max_degree, projection="rademacher", is_complex=False, length=8):
    moments = PairMoments.of_sample(X, np.random.default_rng(0))
    return DegreeStatistics.measure(kernel, moments, max_degree, projection, is_complex, length)


def rows(n=12, d=6, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d)) + 0.3
    return X / np.linalg.norm(X, axis=1, keepdims=True)


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


@pytest.mark.slow
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
    statistics = measure(kernel, rows(), last, projection, is_complex)
    for n_features in (last + 1, 50, 1000):
        counts, weights = allocation.optimized(statistics, n_features, least)
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
    statistics = measure(kernel, 2 * rows(), last)
    coefficients = kernel.maclaurin(last)
    used = [n for n in range(1, last + 1) if coefficients[n] > 0]
    sizes = [statistics.variance[n] for n in used]
    errors = [lambda count, size=size: size / count for size in sizes]
    constant = int(coefficients[0] > 0)
    counts, _ = allocation.optimized(statistics, total, 0)
    found = sum(error(counts[n]) for error, n in zip(errors, used, strict=True))
    assert allocation.expected_variance(statistics, counts) == pytest.approx(found)
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


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_one_column_have_no_variance_but_rounding(seed):
    X = np.random.default_rng(seed).random((10, 1))
    for projection, length in (("hadamard", 1), ("rademacher", 1)):
        statistics = measure(Polynomial(degree=5), X, 5, projection, length=length)
        counts, weights = allocation.optimized(statistics, 50, 0)
        assert counts.sum() == 50
        np.testing.assert_allclose(counts * weights, Polynomial(degree=5).maclaurin(5))


def test_exact_degrees_take_what_they_need_and_no_more():
    """`size` features of degree 1 are exact under Hadamard rotations; the rest goes elsewhere."""
    X = np.zeros((4, 8))
    X[:, 0] = [1.0, 2.0, 3.0, 4.0]
    X[:, 1] = 1.0
    statistics = measure(DotProduct([0.0, 1000.0, 0.001]), X, 2, "hadamard")
    counts, _ = allocation.optimized(statistics, 50, 0)
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


@pytest.mark.parametrize("D", [1, 5, 8, 20])
def test_expected_variance_of_runs(D):
    """Within a run of l features, [V - (l - 1) S]/l; runs are drawn without replacement."""
    statistics = measure(Polynomial(degree=3, coef0=0.0), rows(), 3, "hadamard")
    lengths = [8] * (D // 8) + [D % 8]
    V, S = statistics.variance[3], statistics.repulsion[3]
    expected = sum(l * (V - (l - 1) * S) for l in lengths) / D**2
    if D > 8:
        expected *= (8**3 - D) / (8**3 - 8)
    counts = np.array([0, 0, 0, D])
    assert allocation.expected_variance(statistics, counts) == pytest.approx(expected)


def test_rows_on_which_a_kernel_is_beyond_all_use():
    for kernel, squared_norm in ((Exponential(), 1600.0), (Polynomial(degree=20), 1e8)):
        words = re.escape(f"whose |x|^2 reaches {squared_norm:.3g}")
        with pytest.raises(ValueError, match=words):
            allocation.largest_squared_norm(kernel, np.array([1.0, squared_norm]))
    assert allocation.largest_squared_norm(Exponential(), np.array([1.0, 2.0])) == 2
    assert allocation.largest_squared_norm(Exponential(), np.array([0.0])) == 1
