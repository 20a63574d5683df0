"""Kernels of x - y: exact values against slow formulas, bandwidths, parameters, bad input."""

import numpy as np
import pytest
from scipy import integrate, sparse
from scipy.special import gamma as gamma_function
from scipy.special import kv
from sklearn.base import clone

from craftmaps import Cauchy, Gaussian, Laplacian, Matern
from craftmaps.kernels import ShiftInvariant, any_kernel, shift_invariant_kernel
from craftmaps.loops import distances


def matern(nu, gamma):
    def value(difference):
        s = np.sqrt(2 * nu) * gamma * np.sqrt((difference**2).sum())
        return 1.0 if s == 0 else 2 ** (1 - nu) / gamma_function(nu) * s**nu * kv(nu, s)

    return value


CASES = [
    (Gaussian(gamma=0.7), lambda u: np.exp(-0.7 * (u**2).sum())),
    (Laplacian(gamma=0.7), lambda u: np.exp(-0.7 * np.abs(u).sum())),
    (Cauchy(gamma=0.7), lambda u: np.prod(1 / (1 + 0.49 * u**2))),
    *((Matern(nu=nu, gamma=0.7), matern(nu, 0.7)) for nu in (0.3, 0.5, 1.5, 2.5, 3.7)),
    (
        ShiftInvariant(
            lambda n, d, rng: rng.uniform(-1, 1, (n, d)),
            value=lambda u: np.sinc(u / np.pi).prod(axis=-1),
            gamma=0.7,
        ),
        lambda u: np.prod(np.sinc(0.7 * u / np.pi)),
    ),
]
KERNELS = [kernel for kernel, _ in CASES]
NAMED = [Gaussian, Laplacian, Cauchy, Matern]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 6)), rng.standard_normal((20, 6))


def slow_gram(value, X, Y):
    return np.array([[value(x - y) for y in Y] for x in X])


@pytest.mark.parametrize(("kernel", "value"), CASES)
def test_gram_matrix_is_the_formula(kernel, value, rows):
    X, Y = rows
    np.testing.assert_allclose(kernel(X, Y), slow_gram(value, X, Y), rtol=1e-10)
    np.testing.assert_allclose(kernel(X), slow_gram(value, X, X), rtol=1e-7, atol=1e-14)
    assert (kernel(X).diagonal() == 1).all()
    assert (kernel.diagonal(X) == 1).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_sparse_rows_give_what_dense_rows_give(kernel, rows):
    X, Y = (np.where(part > 0.5, part, 0) for part in rows)
    expected = kernel(X, Y)
    for left in (X, sparse.csr_array(X)):
        for right in (Y, sparse.csc_matrix(Y)):
            np.testing.assert_allclose(kernel(left, right), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_float32_is_kept_and_close(kernel, rows):
    X, Y = rows
    single = kernel(X.astype(np.float32), Y.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, kernel(X, Y), atol=2e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_far_from_the_origin_lose_no_digits(kernel, rows):
    X, Y = ((100 + part).astype(np.float32) for part in rows)
    exact = kernel(X.astype(np.float64), Y.astype(np.float64))
    np.testing.assert_allclose(kernel(X, Y), exact, atol=1e-5)


def test_float32_gives_way_where_gamma_is_large(rows):
    X = (100 * rows[0]).astype(np.float32)
    near = X + np.float32(0.01)
    kernel = Gaussian(gamma=10.0)
    exact = kernel(X.astype(np.float64), near.astype(np.float64))
    assert exact.diagonal().min() > 0.9
    np.testing.assert_allclose(kernel(X, near), exact, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_many_rows_in_blocks(kernel):
    X = np.random.default_rng(1).standard_normal((1500, 3))
    whole = kernel(X, X[:7])
    for i in (0, 511, 512, 1023, 1024, 1499):
        np.testing.assert_allclose(whole[i], kernel(X[i : i + 1], X[:7])[0], rtol=1e-12)


def test_bandwidths():
    X = np.random.default_rng(0).standard_normal((50, 4)) * 3
    pairs = np.triu_indices(50, 1)
    euclid = np.median(np.linalg.norm(X[pairs[0]] - X[pairs[1]], axis=1))
    manhattan = np.median(np.abs(X[pairs[0]] - X[pairs[1]]).sum(axis=1))
    deviation = np.sqrt(X.var())
    expected = {
        (Gaussian, "scale"): 1 / (4 * X.var()),
        (Gaussian, "median"): 1 / (2 * euclid**2),
        (Laplacian, "scale"): 1 / (4 * deviation),
        (Laplacian, "median"): 1 / manhattan,
        (Cauchy, "scale"): 1 / (2 * deviation),
        (Matern, "median"): 1 / euclid,
    }
    for (kind, name), gamma in expected.items():
        for rows in (X, sparse.csr_array(X)):
            assert kind(gamma=name).resolved(rows).gamma == pytest.approx(gamma)
        np.testing.assert_allclose(kind(gamma=name)(X), kind(gamma=gamma)(X), rtol=1e-6)


def test_the_median_of_many_rows_is_that_of_a_sample():
    X = np.random.default_rng(0).standard_normal((3000, 4))
    found = [Matern(gamma="median").resolved(X).gamma for _ in range(2)]
    assert found[0] == found[1] == pytest.approx(1 / np.sqrt(2 * 4), rel=0.1)


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("name", ["scale", "median"])
def test_equal_rows_have_a_bandwidth(kind, name):
    assert kind(gamma=name).resolved(np.ones((3, 2))).gamma > 0
    assert kind(gamma=name).resolved(np.ones((1, 2))).gamma > 0


def test_gamma_of_two_sets_of_rows_is_asked_for(rows):
    with pytest.raises(ValueError, match=r"use kernel.resolved\(X\)"):
        Gaussian()(*rows)


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("gamma", [0, -1.0, np.nan, np.inf, None, True, "wide"])
def test_bad_gamma(kind, gamma):
    with pytest.raises(ValueError, match=f"{kind.__name__}: gamma must be"):
        kind(gamma=gamma)([[1.0]])


@pytest.mark.parametrize("nu", [0, -0.5, np.nan, "1", 51])
def test_bad_nu(nu):
    with pytest.raises(ValueError, match="Matern: nu must be"):
        Matern(nu=nu)([[1.0]])


def test_bad_functions():
    with pytest.raises(ValueError, match="draw must be a function"):
        ShiftInvariant(3)([[1.0]])
    with pytest.raises(ValueError, match="was given no `value` function"):
        ShiftInvariant(lambda n, d, rng: rng.random((n, d)))([[1.0]])
    with pytest.raises(ValueError, match="one number per difference"):
        ShiftInvariant(lambda n, d, rng: rng.random((n, d)), value=lambda u: u)([[1.0]])
    with pytest.raises(ValueError, match="must return finite numbers of shape"):
        ShiftInvariant(lambda n, d, rng: rng.random(n)).frequencies(3, 2, np.random.default_rng(0))


def test_columns_must_agree():
    with pytest.raises(ValueError, match="X has 1 columns and Y has 2"):
        Gaussian(gamma=1.0)([[1.0]], [[1.0, 2.0]])


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_values(kernel):
    assert clone(kernel) == kernel
    assert hash(clone(kernel)) == hash(kernel)
    assert clone(kernel).set_params(gamma=0.1) != kernel
    assert kernel != 3


def test_names():
    assert shift_invariant_kernel("rbf") == Gaussian()
    assert shift_invariant_kernel("laplacian") == Laplacian()
    assert any_kernel("cauchy") == Cauchy()
    for wrong in ("poly", "gauss", 3, None):
        with pytest.raises(ValueError, match="kernel must be a shift-invariant kernel"):
            shift_invariant_kernel(wrong)


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(0.7), Cauchy(0.7), Matern(1.5, 0.7)])
def test_quantiles_are_inverse_to_the_spectrum(kernel):
    """The mean of cos(w u) over uniform points is the kernel, by a rule of the unit interval."""
    difference = np.array([1.3])
    points = (np.arange(200_000) + 0.5) / 200_000
    if kernel.n_uniform(1) == 1:
        frequencies = kernel.quantiles(points[:, None])
        value = np.cos(frequencies @ difference).mean()
    else:

        def inner(u):
            grid = (np.arange(4000) + 0.5) / 4000
            both = np.column_stack([grid, np.full(4000, u)])
            return np.cos(kernel.quantiles(both) @ difference).mean()

        value = integrate.quad(inner, 1e-9, 1 - 1e-9, limit=100)[0]
    assert value == pytest.approx(kernel([[0.0]], [difference])[0, 0], abs=2e-4)


@pytest.mark.parametrize(
    ("loop", "dtype", "digits"),
    [(distances.gaussian32, np.float32, 2e-7), (distances.gaussian64, np.float64, 2e-15)],
)
def test_compiled_exponentials(loop, dtype, digits):
    arguments = np.concatenate([np.linspace(0, 80, 10001), [0, 1e-30, 200, 1e4, 1e30]])
    matrix = np.zeros((1, len(arguments)), dtype)
    squared = arguments.astype(dtype)
    loop(matrix, np.zeros(1, dtype), squared, dtype(1))
    exact = np.exp(-squared.astype(np.float64))
    np.testing.assert_allclose(matrix[0], exact, rtol=digits, atol=1e-37)
    loop(matrix, np.zeros(1, dtype), -squared, dtype(1))
    assert matrix.max() <= 1  # distances that rounding made negative are 0


@pytest.mark.parametrize("kernel", [Laplacian(0.3), *(Matern(nu, 0.3) for nu in (0.5, 1.5, 2.5))])
@pytest.mark.parametrize("n_rows", [1, 2, 7])
@pytest.mark.parametrize("d", [1, 3, 4, 9])
def test_compiled_distances_of_any_shape(kernel, n_rows, d):
    """Rows are taken in pairs, columns of X in fours, and columns of the result in tiles of 512."""
    rng = np.random.default_rng(d)
    X, Y = rng.standard_normal((n_rows, d)), rng.standard_normal((517, d))
    value = {str(one): value for one, value in rough(0.3)}[str(kernel)]
    np.testing.assert_allclose(kernel(X, Y), slow_gram(value, X, Y), rtol=1e-12)


def rough(gamma):
    yield Laplacian(gamma), lambda u: np.exp(-gamma * np.abs(u).sum())
    for nu in (0.5, 1.5, 2.5):
        yield Matern(nu, gamma), matern(nu, gamma)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_near_rows_have_their_own_distance(nu, dtype):
    """A matrix product alone would give 1e-3 instead of these distances, and 0 for the smallest."""
    rng = np.random.default_rng(0)
    X = (30 * rng.standard_normal((40, 6))).astype(dtype)
    near = X + (1e-3 * rng.standard_normal((40, 6))).astype(dtype)
    kernel = Matern(nu, 100.0)
    exact = slow_gram(matern(nu, 100.0), X.astype(np.float64), near.astype(np.float64))
    assert 0.3 < exact.diagonal().min() < exact.diagonal().max() < 0.999
    np.testing.assert_allclose(kernel(X, near), exact, atol=2e-5 if dtype == np.float32 else 1e-9)
    assert (kernel(X, X.copy()).diagonal() == 1).all()


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_float32_gives_way_to_very_short_and_very_long_rows(scale, rows):
    X, Y = ((scale * part).astype(np.float32) for part in rows)
    for nu in (0.5, 1.5, 2.5):
        expected = Matern(nu, 0.7)(*rows)
        np.testing.assert_allclose(Matern(nu, 0.7 / scale)(X, Y), expected, atol=2e-6)


def test_the_median_width_of_sparse_rows_with_64_bit_indices():
    X = np.random.default_rng(0).random((20, 4)) * (np.arange(4) != 2)
    rows = sparse.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    for kernel in (Laplacian(gamma="median"), Gaussian(gamma="median")):
        assert kernel.resolved(rows).gamma == pytest.approx(kernel.resolved(X).gamma)
