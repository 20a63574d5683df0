"""TensorSketch: exact against convolutions, unbiased, and of known variance."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import oracles
from craftmaps import Exponential, Polynomial, TensorSketch
from unbiased import Biased, check_map, check_unbiased, kernel_estimates

X = np.random.default_rng(0).normal(0.6, 0.4, size=(4, 11))
X *= 1.1 / np.linalg.norm(X, axis=1, keepdims=True)
PAIRS = [(0, 1), (0, 2), (1, 3), (2, 2)]
KERNELS = [
    Polynomial(degree=1),
    Polynomial(degree=2, coef0=0.0),
    Polynomial(degree=3),
    Polynomial(degree=4, gamma=0.5, coef0=0.3),
]


@pytest.mark.parametrize("kernel", [*KERNELS, Polynomial(degree=7)], ids=repr)
@pytest.mark.parametrize("size", [1, 2, 7, 16, 30])
def test_against_circular_convolutions(kernel, size):
    feature_map = TensorSketch(kernel, size, random_state=0).fit(X)
    args = (feature_map.buckets_, feature_map.signs_, kernel.gamma, kernel.coef0, size)
    expected = oracles.tensor_sketch(X, *args)
    for given in (X, sparse.csr_matrix(X)):
        found = feature_map.transform(given)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def test_it_is_the_count_sketch_of_the_tensor_power():
    """PP Lemma 5 by brute force over all d^p entries."""
    x = np.array([0.5, -1.0, 2.0])
    feature_map = TensorSketch(Polynomial(degree=3), 5, random_state=1).fit([x])
    expected = oracles.tensor_sketch_explicit(
        np.append(x, 1.0), feature_map.buckets_, feature_map.signs_, 5
    )
    np.testing.assert_allclose(feature_map.transform([x])[0], expected, atol=1e-12)


def test_what_was_drawn():
    feature_map = TensorSketch(Polynomial(degree=5), 17, random_state=0).fit(np.ones((2, 4000)))
    assert feature_map.buckets_.shape == feature_map.signs_.shape == (5, 4001)
    assert set(np.unique(feature_map.signs_)) == {-1, 1}
    assert set(np.unique(feature_map.buckets_)) == set(range(17))
    # 20,000 independent draws: each within 6.5 standard deviations (1e-10) of its share
    n = 5 * 4001
    assert abs(feature_map.signs_.sum()) < 6.5 * math.sqrt(n)
    shares = np.bincount(feature_map.buckets_.ravel(), minlength=17) / n
    assert np.abs(shares - 1 / 17).max() < 6.5 * math.sqrt(1 / 17 / n)
    for k in range(4):  # factors have hashes of their own
        assert np.mean(feature_map.buckets_[k] == feature_map.buckets_[k + 1]) < 0.1
        assert 0.4 < np.mean(feature_map.signs_[k] == feature_map.signs_[k + 1]) < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_unbiased(kernel):
    check_map(lambda seed: TensorSketch(kernel, 4096, random_state=seed), kernel, X, PAIRS)


def test_shared_hashes_are_caught():
    """All factors with one hash and one sign: C(x (x) x) is then far from unbiased."""

    class Shared(TensorSketch):
        def fit(self, rows, y=None):
            super().fit(rows, y)
            self.buckets_[1:] = self.buckets_[0]
            self.signs_[1:] = self.signs_[0]
            return self

    kernel = Polynomial(degree=2)
    with pytest.raises(Biased):
        check_map(lambda seed: Shared(kernel, 1024, random_state=seed), kernel, X, PAIRS, 0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "smallest"), [({"gamma": 1.05}, 0.03), ({"coef0": 0.95}, 0.03), ({"degree": 3}, 0.3)]
)
def test_a_wrong_kernel_is_caught(change, smallest):
    kernel = Polynomial(degree=2)
    wrong = Polynomial(**{"degree": 2, **change})
    with pytest.raises(Biased):
        check_map(
            lambda seed: TensorSketch(wrong, 4096, random_state=seed), kernel, X, PAIRS, smallest
        )


def variance(x, y, degree, size):
    """[(N+c-q)^p + (2c-q)^p - 2c^p]/D + g [(m)^p - (N+c-q)^p - (2c-q)^p + c^p]/D^2.

    With m = N + 2c - 2q and g = gcd(2, D). In E[(sum_IJ s_I s_J x_I y_J [h_I = h_J])^2] the signs
    of each factor leave pairs of equal indices: i = j and k = l (sum c), i = k and j = l (N - q),
    or i = l and j = k (c - q). The second kind asks that its hashes agree, which has chance 1/D
    for any number of factors; so does the third; both together that u + v = u - v = 0 modulo D.
    PP Lemma 6, (t^2p + N^p)/D, would need signs s_I that are 4-wise independent, and products of
    signs are not, except for p = 1.
    """
    c, N, q = oracles.pair_moments(x, y)
    second, third = N + c - q, 2 * c - q
    both = (N + 2 * c - 2 * q) ** degree - second**degree - third**degree + c**degree
    alone = second**degree + third**degree - 2 * c**degree
    return alone / size + math.gcd(2, size) * both / size**2


def squared_errors(degree, size, n_seeds):
    kernel = Polynomial(degree=degree, coef0=0.0)
    estimates = kernel_estimates(
        lambda seed: TensorSketch(kernel, size, random_state=seed), X[:2], [(0, 1)], range(n_seeds)
    )
    return (estimates - (X[0] @ X[1]) ** degree) ** 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("degree", "size", "smallest"),
    [(1, 32, 0.5), (2, 64, 0.9), (2, 5, 0.9)],
)
def test_variance(degree, size, smallest):
    found = squared_errors(degree, size, 1600)
    check_unbiased(found, [variance(X[0], X[1], degree, size)], smallest)


def test_the_bound_of_lemma_6_does_not_hold():
    c, N, _ = oracles.pair_moments(X[0], X[1])
    for degree in (2, 3):
        assert variance(X[0], X[1], degree, 64) > 1.5 * (c**degree + N**degree) / 64


def test_variance_by_all_hashes_and_signs():
    """Two columns, degree 2, three buckets: every draw there is."""
    x, y = np.array([0.9, -0.4]), np.array([0.7, 0.5])
    squares = []
    signs = list(itertools.product([1, -1], repeat=2))
    buckets = list(itertools.product(range(3), repeat=2))
    for s1, s2, h1, h2 in itertools.product(signs, signs, buckets, buckets):
        args = ([h1, h2], [s1, s2], 3)
        zx, zy = (oracles.tensor_sketch_explicit(v, *args) for v in (x, y))
        squares.append((zx @ zy - (x @ y) ** 2) ** 2)
    assert np.mean(squares) == pytest.approx(variance(x, y, 2, 3), rel=1e-12)


def test_errors_fall_like_the_root_of_the_size():
    rows = np.random.default_rng(1).normal(size=(20, 30))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    kernel = Polynomial(degree=3)

    def error(size):
        squares = []
        for seed in range(30):
            Z = TensorSketch(kernel, size, random_state=seed).fit_transform(rows)
            squares.append(np.mean((Z @ Z.T - kernel(rows)) ** 2))
        return np.sqrt(np.mean(squares))

    assert error(128) / error(2048) == pytest.approx(4, rel=0.2)


def test_wide_sparse_rows():
    """A million columns, a few of them used."""
    S = sparse.random(30, 10**6, 2e-5, format="csr", random_state=0)
    S /= sparse.linalg.norm(S)
    feature_map = TensorSketch(Polynomial(degree=2), 256, random_state=0).fit(S)
    used = np.unique(S.indices)
    args = (feature_map.buckets_[:, [*used, -1]], feature_map.signs_[:, [*used, -1]], 1.0, 1.0, 256)
    expected = oracles.tensor_sketch(S[:2, used].toarray(), *args)
    np.testing.assert_allclose(feature_map.transform(S)[:2], expected, atol=1e-12)


def test_only_polynomials():
    with pytest.raises(
        ValueError, match=r"Polynomial kernels, got Exponential\(\).*RandomMaclaurin"
    ):
        TensorSketch(Exponential()).fit(X)
    with pytest.raises(ValueError, match=r"got Exponential\(\)"):
        TensorSketch("exp").fit(X)
    with pytest.raises(ValueError, match=r"degree .* at least 1, got 0"):
        TensorSketch(Polynomial(degree=0)).fit(X)
    assert TensorSketch("poly", 8).fit(X).kernel_ == Polynomial()


def test_frozen_outputs():
    """A change of the random stream or of the layout shows here."""
    Z = TensorSketch(Polynomial(degree=3), 8, random_state=0).fit_transform([[1.0, -2.0, 0.5]])
    np.testing.assert_allclose(Z[0], FROZEN, rtol=0, atol=1e-12)


FROZEN = [0.25, -6.0, 2.0, -2.0, -1.0, 2.25, 2.5, -3.625]
