"""Kernels of kernels and their features: values, unbiasedness, oracles, bad input."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from craftmaps import (
    Composed,
    CompositionalMap,
    Exponential,
    FourierFeatures,
    Gaussian,
    Nystroem,
    Polynomial,
    RandomMaclaurin,
    VovkInfinite,
)
from unbiased import Biased, check_unbiased, kernel_estimates

ROWS = np.random.default_rng(3).random((4, 3))
PAIRS = [(0, 1), (0, 2), (1, 3), (2, 2)]


def intersection(X, Y):
    """sum_i min(x_i, y_i)."""
    return np.minimum(X[:, None], Y[None]).sum(axis=-1)


class Intersection(TransformerMixin, BaseEstimator):
    """Random thresholds: 1[t < x_i] for random i and t in (0, 1) estimates sum_i min(x_i, y_i)."""

    def __init__(self, n_components=32, random_state=None):
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X, y=None):
        rng = np.random.default_rng(self.random_state)
        self.column_ = rng.integers(0, X.shape[1], self.n_components)
        self.threshold_ = rng.random(self.n_components)
        return self

    def transform(self, X):
        inside = X[:, self.column_] > self.threshold_
        return inside * np.sqrt(X.shape[1] / self.n_components)


CASES = [
    (Composed(Polynomial(2), Gaussian(0.5)), None),
    (Composed(Polynomial(3, coef0=0.5), Gaussian(0.5)), FourierFeatures(Gaussian(0.5), 256)),
    (Composed(Exponential(0.5), Gaussian(0.5)), FourierFeatures(Gaussian(0.5), 128)),
    (
        Composed(Polynomial(2, gamma=0.5), Polynomial(2, gamma=0.3)),
        RandomMaclaurin(Polynomial(2, gamma=0.3), 128),
    ),
    (Composed(Polynomial(2, gamma=0.5), intersection), Intersection(256)),
]


def name(value):
    return str(value).split("(")[0] if not isinstance(value, Composed) else ""


def check(make_map, kernel, smallest=0.06, seeds=400):
    expected = kernel(ROWS)[tuple(np.transpose(PAIRS))]
    estimates = kernel_estimates(make_map, ROWS, PAIRS, range(seeds))
    check_unbiased(estimates, expected, smallest)


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "inner_map"), CASES, ids=name)
def test_unbiased(kernel, inner_map):
    """At the false-alarm rate of the suite, a bias of 6 % of the kernel would be seen."""
    check(
        lambda seed: CompositionalMap(kernel, 1024, inner_map=inner_map, random_state=seed), kernel
    )


@pytest.mark.slow
@pytest.mark.parametrize("degrees", ["proportional", "geometric"])
def test_other_laws_are_unbiased(degrees):
    kernel, inner_map = CASES[1]
    check(
        lambda seed: CompositionalMap(
            kernel, 1024, inner_map=inner_map, allocation=degrees, random_state=seed
        ),
        kernel,
        smallest=0.1,
    )


class OneInnerMap(CompositionalMap):
    """Wrong: all factors share one inner map."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.inner_maps_ = [self.inner_maps_[0]] * len(self.inner_maps_)
        return self


class SameSigns(CompositionalMap):
    """Wrong: all factors share one rotation of one inner map."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self._products.gather[:] = self._products.gather[0]
        return self


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [OneInnerMap, SameSigns])
def test_factors_that_are_not_independent_are_caught(wrong):
    kernel = Composed(Polynomial(3, coef0=0.0), Gaussian(2.0))
    inner = FourierFeatures(Gaussian(2.0), 4)
    with pytest.raises(Biased):
        check(lambda seed: wrong(kernel, 512, inner_map=inner, random_state=seed), kernel, 2.0, 500)


def test_features_are_products_of_rotated_inner_features():
    kernel = Composed(Polynomial(3), Gaussian(0.5))
    feature_map = CompositionalMap(kernel, 60, inner_map=FourierFeatures(n_components=10))
    feature_map.set_params(random_state=0)
    Z = feature_map.fit_transform(ROWS)
    assert len(feature_map.inner_maps_) == 3
    seeds = {inner.random_state for inner in feature_map.inner_maps_}
    assert len(seeds) == 3
    inner = np.hstack([part.transform(ROWS) for part in feature_map.inner_maps_])
    expected = np.empty((len(ROWS), 60))
    feature_map._products.fill(inner, expected)
    constant = feature_map.n_per_degree_[0]
    np.testing.assert_allclose(Z[:, constant:], expected[:, constant:])
    # A feature of degree 1 reads the first inner map alone, and so on.
    for k, used in ((0, 1), (1, 2)):
        blinded = inner.copy()
        blinded[:, 10 * (k + 1) :] = np.nan
        found = np.empty_like(expected)
        feature_map._products.fill(np.nan_to_num(blinded, nan=7.0), found)
        stop = feature_map.n_per_degree_[: used + 1].sum()
        np.testing.assert_allclose(found[:, constant:stop], expected[:, constant:stop])
        assert not np.allclose(found[:, stop:], expected[:, stop:])


def test_error_falls_with_the_size():
    X = np.random.default_rng(0).random((50, 4))
    kernel = Composed(Polynomial(2), Gaussian(1.0))
    errors = []
    for n in (64, 512, 4096):
        maps = [CompositionalMap(kernel, n, random_state=s) for s in range(10)]
        grams = [Z @ Z.T for Z in (feature_map.fit_transform(X) for feature_map in maps)]
        errors.append(np.mean([np.linalg.norm(gram - kernel(X)) for gram in grams]))
    slope = np.polyfit(np.log([64, 512, 4096]), np.log(errors), 1)[0]
    assert -0.7 < slope < -0.3


def test_values():
    X, Y = ROWS[:2], ROWS[2:]
    for inner, gram in (
        (Gaussian(0.5), Gaussian(0.5)(X, Y)),
        ("chi2", chi2_kernel(X, Y)),
        (intersection, intersection(X, Y)),
        (Composed(Polynomial(2), Gaussian(0.5)), (Gaussian(0.5)(X, Y) + 1) ** 2),
    ):
        kernel = Composed(Polynomial(3), inner)
        np.testing.assert_allclose(kernel(X, Y), (gram + 1) ** 3)
        out = np.empty((2, 2))
        kernel.against(Y, out.dtype)(X, out)
        np.testing.assert_allclose(out, (gram + 1) ** 3)
        np.testing.assert_allclose(kernel.diagonal(X), kernel(X).diagonal())


def test_gamma_of_the_inner_kernel_is_resolved_and_searched():
    kernel = Composed("poly", "rbf").resolved(ROWS)
    assert kernel == Composed(Polynomial(), Gaussian().resolved(ROWS))
    assert clone(kernel) == kernel
    assert hash(clone(kernel)) == hash(kernel)
    kernel.set_params(inner__gamma=0.25, outer__degree=2)
    np.testing.assert_allclose(kernel(ROWS), (Gaussian(0.25)(ROWS) + 1) ** 2)
    Nystroem(kernel, 2, random_state=0).set_params(kernel__inner__gamma=0.1).fit(ROWS)


def test_sparse_and_float32_rows():
    X = np.where(ROWS > 0.4, ROWS, 0)
    feature_map = CompositionalMap(n_components=50, random_state=0).fit(X)
    Z = feature_map.transform(X)
    np.testing.assert_allclose(feature_map.transform(sparse.csr_array(X)), Z, atol=1e-10)
    single = feature_map.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Z, atol=1e-5)


def test_frozen_outputs():
    X = np.linspace(-1, 1, 6).reshape(2, 3)
    Z = CompositionalMap(n_components=6, random_state=42).fit_transform(X)
    np.testing.assert_allclose(
        Z[0], [1.0, -0.5171751, -0.95119008, -0.17408083, -0.09993401, -2.8325317], atol=1e-7
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": Gaussian()}, "kernel must be a Composed kernel or None"),
        ({"kernel": Composed(Gaussian())}, "kernel must be a dot-product kernel"),
        ({"kernel": Composed("poly", "nonsense")}, "kernel must be a kernel such as"),
        ({"kernel": Composed("poly", "chi2")}, "no inner map is known for"),
        ({"kernel": Composed(VovkInfinite(), "rbf")}, "VovkInfinite needs"),
        ({"allocation": "all"}, "allocation must be one of"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        CompositionalMap(**{"n_components": 8} | parameters).fit(ROWS)


@pytest.mark.parametrize("inner_map", [3, Nystroem])
def test_inner_maps_of_another_type_are_refused(inner_map):
    with pytest.raises(TypeError, match="inner_map must be a transformer"):
        CompositionalMap(inner_map=inner_map).fit(ROWS)


def test_inner_maps_without_a_random_state_are_refused():
    from sklearn.preprocessing import StandardScaler

    with pytest.raises(ValueError, match="inner_map must have a random_state"):
        CompositionalMap(inner_map=StandardScaler()).fit(ROWS)


@parametrize_with_checks([CompositionalMap(n_components=10)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_old_name_of_allocation_works_with_a_warning():
    with pytest.warns(FutureWarning, match="degrees is now called allocation"):
        Z = CompositionalMap(n_components=16, degrees="proportional", random_state=0).fit(ROWS)
    expected = CompositionalMap(n_components=16, allocation="proportional", random_state=0)
    np.testing.assert_array_equal(Z.transform(ROWS), expected.fit(ROWS).transform(ROWS))
