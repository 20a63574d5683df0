"""Gaussian kernels by the features of an exponential kernel times a function of each row."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from craftmaps import CraftMap, FourierFeatures, Gaussian, RandomMaclaurin
from craftmaps.maps.parts.radial import Radial
from craftmaps.maps.planning.expected_errors import gaussian_fourier_error
from craftmaps.maps.planning.moments import PairMoments
from unbiased import Biased, check_unbiased, kernel_estimates

KERNEL = Gaussian(0.04)
MAPS = {
    "craft": lambda seed, **options: CraftMap(KERNEL, 128, random_state=seed, **options),
    "maclaurin": lambda seed, **options: RandomMaclaurin(KERNEL, 512, random_state=seed, **options),
}
every_map = pytest.mark.parametrize("make_map", MAPS.values(), ids=MAPS)


@pytest.fixture
def X():
    return 2 + np.random.default_rng(0).normal(size=(120, 9))


def off_diagonal(K):
    return K[np.triu_indices(len(K), 1)]


@every_map
def test_unbiased(make_map, X):
    """And a factor exp(-|x|^2 / 2) with a gamma that is 5 % too large is noticed."""
    pairs = [(0, 1), (2, 3), (4, 4)]
    expected = KERNEL(X)[tuple(np.transpose(pairs))]
    check_unbiased(kernel_estimates(make_map, X, pairs, range(60)), expected, smallest=0.1)

    class Wrong:
        def __init__(self, seed):
            self.inside = make_map(seed)

        def fit_transform(self, X):
            self.inside.fit(X)
            wrong = replace(self.inside._radial, gamma=1.05 * KERNEL.gamma)
            self.inside._radial = wrong
            return self.inside.transform(X)

    with pytest.raises(Biased):
        check_unbiased(kernel_estimates(Wrong, X, pairs, range(60)), expected, smallest=0.1)


@every_map
def test_expected_errors_are_measured_errors(make_map, X):
    exact = off_diagonal(KERNEL(X))
    errors, expected = [], []
    for seed in range(20):
        feature_map = make_map(seed).fit(X)
        Z = feature_map.transform(X)
        errors.append(np.mean((off_diagonal(Z @ Z.T) - exact) ** 2))
        expected.append(feature_map._expected_error(X, np.random.default_rng(0)))
    measured = np.sqrt(np.mean(errors) / np.mean(exact**2))
    assert measured == pytest.approx(np.mean(expected), rel=0.15)


def test_few_columns_are_exact(X):
    Z = CraftMap(KERNEL, 1024, random_state=0).fit_transform(X[:, :2])
    np.testing.assert_allclose(Z @ Z.T, KERNEL(X[:, :2]), atol=1e-6)


@every_map
def test_errors_are_below_the_errors_of_fourier_features(make_map, X):
    fourier = [FourierFeatures(KERNEL, 512, sampling="orthogonal", random_state=s) for s in (0, 1)]
    ours = [make_map(seed).set_params(n_components=512) for seed in (0, 1)]

    def error(maps):
        grams = [Z @ Z.T for Z in (feature_map.fit_transform(X) for feature_map in maps)]
        return np.mean([np.mean(off_diagonal(gram - KERNEL(X)) ** 2) for gram in grams])

    assert error(ours) < error(fourier) / 9


@every_map
@pytest.mark.parametrize("options", [{}, {"h01": "append"}])
def test_rows_may_lie_anywhere(make_map, options, X):
    """The kernel depends on differences alone, and so do the features but for rounding."""
    Z, moved = (make_map(0, **options).fit_transform(rows) for rows in (X, X + 1000))
    np.testing.assert_allclose(moved, Z, atol=1e-8)


@every_map
def test_sparse_rows_and_single_precision(make_map, X):
    X = np.where(X > 2, X, 0)
    feature_map = make_map(0).fit(X)
    Z = feature_map.transform(X)
    np.testing.assert_allclose(feature_map.transform(sparse.csr_array(X)), Z, atol=1e-12)
    np.testing.assert_allclose(make_map(0).fit(sparse.csr_array(X)).transform(X), Z, atol=1e-9)
    single = feature_map.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Z, atol=2e-5)


@every_map
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_far_away_have_features_of_zero(make_map, dtype, X):
    """Their kernel with all others is 0; powers of their entries would not be finite."""
    feature_map = make_map(0).fit(X.astype(dtype))
    far = np.vstack([X[:1], X[:1] + 40, X[:1] + 1e18]).astype(dtype)
    Z = feature_map.transform(far)
    assert np.isfinite(Z).all()
    assert (Z[1:] == 0).all()
    assert Z[0] @ Z[0] == pytest.approx(1, abs=0.2)


def test_blocks_of_rows(X, monkeypatch):
    feature_map = CraftMap(KERNEL, 64, random_state=0).fit(X)
    Z = feature_map.transform(X)
    monkeypatch.setattr("craftmaps.maps.parts.radial._BUFFER_BYTES", 0)
    monkeypatch.setattr("craftmaps.maps.parts.radial._LEAST_ROWS", 7)
    np.testing.assert_array_equal(feature_map.transform(X), Z)


@pytest.mark.parametrize("down", ["principal", "srht", "auto"])
def test_other_down_projections(down, X):
    feature_map = CraftMap(KERNEL, 25, down=down, n_up=512, random_state=0)
    Z = feature_map.fit_transform(X)
    assert np.abs(Z @ Z.T - KERNEL(X)).mean() < 0.1


def test_names_and_gamma(X):
    feature_map = CraftMap("rbf", 64, random_state=0).fit(X)
    assert feature_map.kernel_ == Gaussian("scale").resolved(X)
    assert RandomMaclaurin(Gaussian("median"), 64).fit(X).kernel_.gamma > 0


def test_narrow_kernels_of_many_columns_are_for_fourier_features():
    """Rows in two clusters: Fourier features are nearly exact for rows of one cluster."""
    rng = np.random.default_rng(0)
    X = 0.2 * rng.normal(size=(300, 40))
    X[:150] += 1.5 * rng.choice([-1, 1], 40)
    narrow, wide = Gaussian(0.1), Gaussian(0.01)
    with pytest.warns(UserWarning, match="Fourier features have .*: the kernel is narrow"):
        craft = [CraftMap(narrow, 256, random_state=seed).fit(X) for seed in range(10)]
    fourier = [FourierFeatures(narrow, 256, random_state=seed).fit(X) for seed in range(10)]
    squares = {}
    for name, maps in {"craft": craft, "fourier": fourier}.items():
        features = [feature_map.transform(X) for feature_map in maps]
        squares[name] = np.mean([np.mean(off_diagonal(Z @ Z.T - narrow(X)) ** 2) for Z in features])
    assert squares["fourier"] < 0.8 * squares["craft"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CraftMap(wide, 256, random_state=0).fit(X)


def test_tensor_sketch_is_for_polynomials(X):
    with pytest.raises(ValueError, match=r"TensorSketch approximates Polynomial .* got Gaussian"):
        CraftMap(KERNEL, 64, up="tensor-sketch").fit(X)


@pytest.mark.parametrize(("d", "n_components"), [(2, 8), (5, 20), (20, 30), (20, 128)])
def test_error_of_orthogonal_frequencies(d, n_components):
    """Against 600 draws of frequencies g Q, g with independent chi laws, without stratification."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, d)) / np.sqrt(d)
    moments = PairMoments.of_sample(X, rng)
    exact = off_diagonal(Gaussian(0.5)(X))
    squares = []
    for _ in range(600):
        blocks = []
        for _ in range(-(-n_components // 2 // d)):
            Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
            blocks.append(np.sqrt(rng.chisquare(d, d))[:, None] * Q)
        phases = X @ np.vstack(blocks)[: n_components // 2].T
        Z = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(n_components // 2)
        squares.append(np.mean((off_diagonal(Z @ Z.T) - exact) ** 2))
    measured = np.sqrt(np.mean(squares) / np.mean(exact**2))
    assert gaussian_fourier_error(moments, n_components, d) == pytest.approx(measured, rel=0.1)
    assert gaussian_fourier_error(moments, n_components) > 1.1 * measured


def test_factor_and_rows():
    radial = Radial.draw(np.array([[1.0, 0.0], [3.0, 2.0]]), 0.5)
    rows, factor = radial.prepared(np.array([[2.0, 3.0]]), np.dtype(np.float64))
    np.testing.assert_allclose(rows, [[0.0, 2.0]])
    np.testing.assert_allclose(factor, [np.exp(-2.0)])
