"""The variance of Random Maclaurin against its formulas, and the rate at which errors fall.

The expectation of a squared deviation is the variance, so `check_unbiased` tests these too: the
smallest deviation from the formula that it must see is stated in each test.
"""

import dataclasses

import numpy as np
import pytest

import oracles
from craftmaps import Polynomial, RandomMaclaurin
from craftmaps import threads as rows
from craftmaps.maps.parts.hadamard_products import HadamardProducts, padded_length
from unbiased import Biased, check_unbiased

x, y = np.random.default_rng(3).normal(0.4, 0.5, size=(2, 6))
x, y = 1.1 * x / np.linalg.norm(x), 1.1 * y / np.linalg.norm(y)


def one_degree(n, D):
    """Counts and weights of a mean over D features of degree n."""
    return np.array([0] * n + [D]), np.array([0.0] * n + [1 / D])


def independent_products(projection, is_complex, degree, n_maps=240, D=2048):
    """Mean over many independent features of the squared deviation of one, for each of n_maps."""
    kernel = Polynomial(degree=degree, coef0=0.0)
    t = (x @ y) ** degree
    means = []
    for seed in range(n_maps):
        options = {"projection": projection, "complex_to_real": is_complex}
        Z = RandomMaclaurin(kernel, D, random_state=seed, **options).fit_transform([x, y])
        products = Z[0] * Z[1] * D  # each with expectation t^degree
        if is_complex:  # real and imaginary part of one feature belong together
            products = products.reshape(2, -1).mean(axis=0)
        means.append(np.mean((products - t) ** 2))
    return np.array(means)[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("projection", ["rademacher", "gaussian"])
def test_variance_of_independent_projections(projection, degree):
    """(m^p - t^2p)/D with m = N + 2c - 2q; Gaussian projections drop the -2q."""
    c, N, q = oracles.pair_moments(x, y)
    m = N + 2 * c - (2 * q if projection == "rademacher" else 0)
    found = independent_products(projection, False, degree)
    check_unbiased(found, [m**degree - c**degree], smallest={1: 0.05, 2: 0.15, 3: 0.6}[degree])


def test_the_wrong_variance_is_caught():
    c, N, q = oracles.pair_moments(x, y)
    found = independent_products("gaussian", False, 1)
    with pytest.raises(Biased):
        check_unbiased(found, [N + 2 * c - 2 * q - c], smallest=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_variance_of_complex_to_real(degree):
    """(m_C^p + m_P^p - 2 t^2p)/D with D columns, i.e. half of that for a pair of columns."""
    c, N, q = oracles.pair_moments(x, y)
    expected = ((N + c - q) ** degree + (2 * c - q) ** degree - 2 * c**degree) / 2
    found = independent_products("rademacher", True, degree)
    check_unbiased(found, [expected], smallest={1: 0.05, 2: 0.1, 3: 0.4}[degree])


def run_variance(a, b, degree, L):
    """[(m^n - c^n) + (L - 1)((c - (m - c)/(size - 1))^n - c^n)] / L within one run."""
    c, N, q = oracles.pair_moments(a, b)
    m, size = N + 2 * c - 2 * q, padded_length(len(a))
    other = c - (m - c) / (size - 1)
    return ((m**degree - c**degree) + (L - 1) * (other**degree - c**degree)) / L


def squared_errors(a, b, degree, D, n_maps, change=lambda products: products):
    """(estimate - t^n)^2 of Hadamard maps of one degree, one for each seed."""
    t = (a @ b) ** degree
    counts, weights = one_degree(degree, D)
    rng = np.random.default_rng(0)
    errors = np.empty((n_maps, 1))
    pair, out = np.array([a, b]), np.empty((2, D))
    for i in range(n_maps):
        products = change(HadamardProducts.draw(counts, weights, 0, len(a), False, rng))
        products.fill(pair, out)
        errors[i] = (out[0] @ out[1] - t) ** 2
    return errors


@pytest.fixture
def one_thread(monkeypatch):
    """Two rows are not worth a pool of threads."""
    monkeypatch.setattr(rows.config, "NUMBA_NUM_THREADS", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("degree", "L"), [(1, 4), (2, 1), (2, 8), (3, 8)], ids=str)
def test_variance_within_one_run_of_a_rotation(degree, L):
    found = squared_errors(x, y, degree, L, 4000)
    smallest = {1: 0.3, 2: 0.5, 3: 0.8}[degree]
    check_unbiased(found, [run_variance(x, y, degree, L)], smallest)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("D", [16, 40])
def test_variance_of_several_runs(D):
    """Given the indices, the covariance of two features is a product over their factors."""
    degree, n_maps = 2, 4000
    c, N, q = oracles.pair_moments(x, y)
    m = N + 2 * c - 2 * q
    other = c - (m - c) / (padded_length(len(x)) - 1)
    rng = np.random.default_rng(0)
    expected = []
    for _ in range(300):
        products = HadamardProducts.draw(*one_degree(degree, D), 0, len(x), False, rng)
        (tuples,) = oracles.run_indices(products, degree)
        indices = np.array(tuples)
        same = indices[:, None] == indices[None]
        expected.append(np.where(same, m, other).prod(axis=2).mean() - c**degree)
    assert np.std(expected) < 0.2 * np.mean(expected)
    found = squared_errors(x, y, degree, D, n_maps)
    check_unbiased(found, [np.mean(expected)], smallest=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "degree", "D"),
    [(40, 3, 256), (40, 3, 1024), (40, 3, 4096), (100, 4, 4096), (60, 2, 3000), (500, 3, 4096)],
)
@pytest.mark.parametrize("c", [0.02, 0.1, 0.5, 1.0])
def test_many_runs_vary_less_than_independent_features(d, degree, D, c):
    """Exactly, from the indices that were drawn, for dense rows of unit norm with <x,y>^2 = c."""
    rng = np.random.default_rng(0)
    products = HadamardProducts.draw(*one_degree(degree, D), 0, d, False, rng)
    (tuples,) = oracles.run_indices(products, degree)
    m = 1 + 2 * c - 2 * (1 + 2 * c) / d
    other = c - (m - c) / (padded_length(d) - 1)
    shared = sum(np.equal.outer(i, i).astype(np.int8) for i in np.transpose(tuples))
    pairs = np.bincount(shared.ravel(), minlength=degree + 1) / D**2
    n = np.arange(degree + 1)
    found = np.sum(pairs * m**n * other ** (degree - n)) - c**degree
    assert found < 1.08 * (m**degree - c**degree) / D


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("degree", [1, 2])
def test_sparse_rows_do_not_inflate_the_variance(degree):
    """Two non-zeros in 64 columns. Without permutations, neighbouring features vary together."""
    a, b = np.zeros((2, 64))
    a[[3, 4]] = 0.8, 0.6
    b[[3, 4]] = 0.6, 0.8
    c, N, q = oracles.pair_moments(a, b)
    D = 32
    independent = ((N + 2 * c - 2 * q) ** degree - c**degree) / D
    assert run_variance(a, b, degree, D) < independent
    found = squared_errors(a, b, degree, D, 5000)
    check_unbiased(found, [run_variance(a, b, degree, D)], smallest=0.8)


def unpermuted(products):
    """The same signs on the columns in their own order."""
    gather = products.gather.copy()
    size = gather.shape[1]
    for row in gather:
        row[np.arange(size)] = row[np.argsort(row % size, kind="stable")]
    return type(products)(
        **{
            **{f.name: getattr(products, f.name) for f in dataclasses.fields(products)},
            "gather": gather,
        }
    )


@pytest.mark.usefixtures("one_thread")
def test_rotations_without_permutations_are_caught():
    a, b = np.zeros((2, 64))
    a[[3, 35]] = 0.8, 0.6
    b[[3, 35]] = 0.6, 0.8
    found = squared_errors(a, b, 2, 32, 2000, change=unpermuted)
    assert found.mean() > 3 * run_variance(a, b, 2, 32)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 64, 100])
@pytest.mark.parametrize("runs", [1, 3])
def test_a_whole_run_of_degree_one_is_exact(d, runs):
    """H P S is a multiple of an orthogonal matrix."""
    X = np.random.default_rng(d).normal(size=(5, d))
    size = padded_length(d)
    for is_complex in (False, True):
        products = HadamardProducts.draw(
            *one_degree(1, runs * size), 0, d, is_complex, np.random.default_rng(0)
        )
        Z = np.empty((5, runs * size * (2 if is_complex else 1)))
        products.fill(X, Z)
        np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-12 * d)


@pytest.mark.parametrize(("d", "degree"), [(1, 1), (1, 5), (2, 1), (2, 2), (2, 4), (3, 3), (7, 2)])
def test_all_features_of_a_degree_are_exact(d, degree):
    """size^n features: the whole of the rotated tensor power."""
    kernel = Polynomial(degree=degree, coef0=0.0)
    X = np.random.default_rng(d).normal(size=(4, d))
    size = padded_length(d) ** degree
    for sets in (1, 2):
        Z = RandomMaclaurin(kernel, sets * size, random_state=0).fit_transform(X)
        np.testing.assert_allclose(Z @ Z.T, kernel(X), rtol=1e-10, atol=1e-10)
    one_less = RandomMaclaurin(kernel, max(1, size - 1), random_state=0).fit_transform(X)
    if size > 1:
        assert np.abs(one_less @ one_less.T - kernel(X)).max() > 1e-6


@pytest.mark.parametrize(
    ("projection", "is_complex"),
    [("hadamard", False), ("hadamard", True), ("rademacher", True), ("gaussian", False)],
)
def test_errors_fall_like_the_root_of_the_size(projection, is_complex):
    """Sixteen times the columns, a quarter of the error (within a fifth, over 20 seeds)."""
    X = np.random.default_rng(0).normal(size=(20, 40))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = Polynomial(degree=3, coef0=0.0)
    options = {"projection": projection, "complex_to_real": is_complex}

    def error(size):
        squares = []
        for seed in range(20):
            Z = RandomMaclaurin(kernel, size, random_state=seed, **options).fit_transform(X)
            squares.append(np.mean((Z @ Z.T - kernel(X)) ** 2))
        return np.sqrt(np.mean(squares))

    assert error(256) / error(4096) == pytest.approx(4, rel=0.2)


def test_hadamard_is_never_worse_than_independent_signs():
    X = np.random.default_rng(0).normal(size=(40, 20))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = Polynomial(degree=3)

    def error(projection):
        squares = []
        for seed in range(40):
            options = {"projection": projection, "random_state": seed}
            Z = RandomMaclaurin(kernel, 512, **options).fit_transform(X)
            squares.append(np.mean((Z @ Z.T - kernel(X)) ** 2))
        return np.mean(squares)

    hadamard, rademacher, gaussian = map(error, ("hadamard", "rademacher", "gaussian"))
    assert hadamard < rademacher < gaussian
