"""Random Maclaurin: its columns, its truncation, its errors, and frozen outputs."""

import math
import warnings

import numpy as np
import pytest

import oracles
from craftmaps import (
    DotProduct,
    Exponential,
    Polynomial,
    RandomMaclaurin,
    VovkInfinite,
    VovkReal,
)

X = np.random.default_rng(0).normal(0.3, 0.5, size=(6, 5))
X /= np.linalg.norm(X, axis=1, keepdims=True)
PROJECTIONS = ["hadamard", "rademacher", "gaussian"]
OPTIONS = [
    {},
    {"h01": "append"},
    {"complex_to_real": True},
    {"complex_to_real": True, "h01": "append"},
    {"allocation": "geometric"},
    {"allocation": "proportional", "h01": "append"},
]


def expected_features(feature_map, n_exact):
    """Constants, exact columns, then the products by explicit matrices."""
    n = feature_map.n_components
    if feature_map.projection == "hadamard":
        return oracles.hadamard_features(feature_map._products, X, n)[:, n_exact:]
    by_degree = oracles.matrix_features(feature_map._products, X)
    Z = np.zeros((len(X), n))
    for degree, columns in by_degree.items():
        Z[:, feature_map.degrees_ == degree] = columns
    return Z[:, n_exact:]


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kernel", [Polynomial(degree=4), Exponential(gamma=0.5)], ids=repr)
def test_against_explicit_matrices(kernel, options, projection):
    feature_map = RandomMaclaurin(kernel, 90, projection=projection, random_state=0, **options)
    Z = feature_map.fit_transform(X)
    a0, a1 = kernel.maclaurin(1)
    n_constant = int((feature_map.degrees_ == 0).sum())
    n_exact = n_constant + (5 if feature_map.h01 == "append" else 0)
    if feature_map.h01 == "append":
        constant = a0
        np.testing.assert_allclose(Z[:, n_constant:n_exact], math.sqrt(a1) * X, rtol=1e-15)
    elif feature_map.allocation == "geometric":  # 2^(n+1) a_n / D for each constant feature
        constant = n_constant * 2 * a0 / 90
    else:
        constant = a0
    np.testing.assert_allclose((Z[:, :n_constant] ** 2).sum(axis=1), constant)
    np.testing.assert_allclose(Z[:, n_exact:], expected_features(feature_map, n_exact), atol=1e-12)


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_was_drawn_can_be_seen(options, projection):
    feature_map = RandomMaclaurin("exp", 101, projection=projection, random_state=0, **options)
    Z = feature_map.fit_transform(X)
    assert feature_map.kernel_ == Exponential()
    assert feature_map.degrees_.shape == (101,)
    counts = [np.sum(feature_map.degrees_ == n) for n in range(len(feature_map.n_per_degree_))]
    assert feature_map.n_per_degree_.tolist() == counts
    assert feature_map.n_per_degree_.sum() == 101
    assert feature_map.degrees_.max() <= feature_map.max_degree_
    scaled = feature_map.transform(0.5 * X)  # a column of degree n is homogeneous of degree n
    np.testing.assert_allclose(scaled, Z * 0.5**feature_map.degrees_, rtol=1e-9, atol=1e-14)


def test_h01_is_exact_for_a_linear_kernel_and_uses_every_column():
    kernel = Polynomial(degree=1, coef0=2.0)
    for degrees in ("optimized", "geometric", "proportional"):
        for size in (6, 7, 20):
            feature_map = RandomMaclaurin(
                kernel, size, h01="append", allocation=degrees, random_state=0
            )
            Z = feature_map.fit_transform(X)
            assert Z.shape == (6, size)
            np.testing.assert_allclose(Z @ Z.T, kernel(X))


@pytest.mark.parametrize(
    ("kernel", "n_constant", "n_linear"),
    [
        (DotProduct([2.0, 0.0, 1.0]), 1, 0),
        (DotProduct([0.0, 3.0, 1.0]), 0, 5),
        (Polynomial(degree=2), 1, 5),
    ],
)
@pytest.mark.parametrize("is_complex", [False, True])
def test_h01_outputs_the_terms_that_there_are(kernel, n_constant, n_linear, is_complex):
    size = n_constant + n_linear + 40
    feature_map = RandomMaclaurin(
        kernel, size, h01="append", complex_to_real=is_complex, random_state=0
    ).fit(X)
    assert feature_map.n_per_degree_.tolist() == [n_constant, n_linear, 40]
    Z = feature_map.transform(X)
    a0, a1 = kernel.maclaurin(1)
    np.testing.assert_array_equal(Z[:, :n_constant], math.sqrt(a0))
    np.testing.assert_allclose(
        Z[:, n_constant : n_constant + n_linear], math.sqrt(a1) * X[:, :n_linear], rtol=1e-15
    )


def test_h01_needs_a_term_and_room():
    with pytest.raises(ValueError, match=r"h01='append' .*Polynomial\(.*\) has neither"):
        RandomMaclaurin(Polynomial(degree=2, coef0=0.0), h01="append").fit(X)
    for size, is_complex in ((6, False), (5, False), (7, True)):
        options = {"h01": "append", "complex_to_real": is_complex}
        with pytest.raises(ValueError, match=rf"n_components={size} is too small: 6 columns"):
            RandomMaclaurin("poly", size, **options).fit(X)
    with pytest.raises(ValueError, match=r"n_components=1 is too small.*at least 2"):
        RandomMaclaurin("poly", 1, complex_to_real=True).fit(X)
    assert RandomMaclaurin("poly", 7, h01="append").fit_transform(X).shape == (6, 7)


@pytest.mark.parametrize("size", [3, 4, 5, 100, 101])
def test_complex_columns_in_odd_numbers(size):
    """The column that is left over goes to the constant, or stays 0 where there is none."""
    with_constant = RandomMaclaurin("poly", size, complex_to_real=True, random_state=0)
    Z = with_constant.fit_transform(X)
    assert Z.shape == (6, size)
    without = RandomMaclaurin(
        Polynomial(degree=2, coef0=0.0), size, complex_to_real=True, random_state=0
    )
    Z = without.fit_transform(X)
    assert (np.abs(Z).max(axis=0) == 0).sum() == size % 2


@pytest.mark.parametrize("d", [5, 40])
def test_degree_twenty(d):
    rows = np.random.default_rng(1).normal(size=(5, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    kernel = Polynomial(degree=20, gamma=0.2, coef0=0.9)
    for projection in PROJECTIONS:
        feature_map = RandomMaclaurin(kernel, 4000, projection=projection, random_state=0).fit(rows)
        Z = feature_map.transform(rows)
        assert np.abs(Z @ Z.T - kernel(rows)).max() < 0.35 * kernel(rows).max()
    geometric = RandomMaclaurin(kernel, 4000, allocation="geometric", max_degree=20).fit(rows)
    assert geometric.max_degree_ == 20


def test_infinite_series_are_truncated_where_nothing_is_lost():
    for kernel in (Exponential(), VovkInfinite(gamma=0.3), DotProduct.from_function(np.cosh)):
        feature_map = RandomMaclaurin(kernel, 500, random_state=0).fit(X)
        whole = float(kernel.value(1.0))
        assert 0 <= feature_map.tail_ <= 2.0**-24 * whole
        assert 5 < feature_map.max_degree_ < 30
    rescaled = VovkInfinite().rescaled(3 * X)
    feature_map = RandomMaclaurin(rescaled, 2000, random_state=0).fit(3 * X)
    Z = feature_map.transform(3 * X)
    assert np.abs(Z @ Z.T - rescaled(3 * X)).max() < 0.2
    geometric = RandomMaclaurin("exp", 500, allocation="geometric", random_state=0).fit(X)
    assert geometric.tail_ == 0


@pytest.mark.parametrize("max_degree", [3, 5, 12])
@pytest.mark.parametrize("degrees", ["optimized", "geometric", "proportional"])
def test_the_reported_tail_bounds_what_truncation_takes(max_degree, degrees):
    kernel = Exponential()
    feature_map = RandomMaclaurin(
        kernel, 100, max_degree=max_degree, allocation=degrees, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        feature_map.fit(X)
    assert feature_map.max_degree_ == max_degree
    assert feature_map.degrees_.max() <= max_degree
    kept = oracles.gram(lambda t: oracles.series(kernel.maclaurin(max_degree), t), X, X)
    loss = np.abs(kernel(X) - kept)
    assert loss.max() <= feature_map.tail_ * (1 + 1e-9)
    assert loss.max() >= 0.99 * feature_map.tail_  # reached by the longest row
    capped = RandomMaclaurin("poly", 50, max_degree=30, random_state=0).fit(X)
    assert (capped.max_degree_, capped.tail_) == (3, 0.0)


def test_a_large_tail_is_worth_a_warning():
    with pytest.warns(
        UserWarning, match=r"degree 2 loses up to 0\.218 of k\(x, x\), which reaches 2\.72"
    ):
        RandomMaclaurin("exp", 50, max_degree=2).fit(X)
    with pytest.warns(UserWarning, match=r"VovkInfinite\(\) at degree 64"):
        RandomMaclaurin(VovkInfinite(), 200).fit(0.999 * X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RandomMaclaurin("exp", 50, max_degree=5).fit(X)


@pytest.mark.parametrize("degrees", ["optimized", "geometric", "proportional"])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_rows_outside_the_radius(degrees, projection):
    feature_map = RandomMaclaurin(
        VovkInfinite(gamma=0.5), 100, allocation=degrees, projection=projection, random_state=0
    )
    with pytest.raises(ValueError, match=r"VovkInfinite needs \|x\|\^2 < 2.*reach 4.*rescaled"):
        feature_map.fit(2 * X)
    feature_map.fit(X)
    with pytest.raises(ValueError, match=r"< 2.*reach 4"):
        feature_map.transform(2 * X)
    with pytest.raises(ValueError, match=r"< 2.*reach 4"):
        feature_map.transform_into(2 * X, np.empty((6, 100)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"allocation": "even"}, r"allocation must be one of 'optimized', .*got 'even'"),
        ({"allocation": None}, r"allocation must be one of .*got None"),
        ({"projection": "fourier"}, r"projection must be one of 'hadamard', .*got 'fourier'"),
        ({"p": 1.0}, r"p must be a number above 1, got 1\.0"),
        ({"p": 0.5}, r"p must be a number above 1, got 0\.5"),
        ({"p": math.nan}, r"p must be a number above 1, got nan"),
        ({"p": math.inf}, r"p must be a number above 1, got inf"),
        ({"p": "two"}, r"p must be a number above 1, got 'two'"),
        ({"max_degree": 0}, r"max_degree must be None or an integer of at least 1, got 0"),
        ({"max_degree": 2.5}, r"max_degree must be .*got 2\.5"),
        ({"max_degree": True}, r"max_degree must be .*got True"),
        ({"kernel": Polynomial(degree=0)}, r"degree must be an integer at least 1, got 0"),
        ({"kernel": Polynomial(coef0=-1.0)}, r"coef0 .*got -1\.0"),
        ({"kernel": Exponential(gamma=0)}, r"gamma .*above 0, got 0"),
        ({"kernel": DotProduct([1.0, -2.0])}, r"coefficient a_1 is -2\.0"),
    ],
    ids=str,
)
def test_parameters_without_meaning_are_named(options, words):
    feature_map = RandomMaclaurin(**options)
    with pytest.raises(ValueError, match=words):
        feature_map.fit(X)


def test_rows_on_which_the_kernel_overflows():
    for kernel in (Exponential(), Polynomial(degree=30)):
        with pytest.raises(ValueError, match=r"\|x\|\^2 reaches 1e\+12"):
            RandomMaclaurin(kernel, 100).fit(1e6 * X)


def test_kernels_of_one_term():
    constant = RandomMaclaurin(VovkReal(p=1), 7, random_state=0).fit_transform(X)
    np.testing.assert_allclose(constant @ constant.T, 1)
    linear = RandomMaclaurin(DotProduct([0.0, 2.0]), 8, random_state=0).fit_transform(X)
    np.testing.assert_allclose(linear @ linear.T, 2 * X @ X.T, atol=1e-14)


def test_a_map_fitted_on_zeros_serves_other_rows():
    """Without a scale to go by, every degree that the kernel has is drawn."""
    for degrees in ("optimized", "proportional"):
        feature_map = RandomMaclaurin("poly", 400, allocation=degrees, random_state=0)
        feature_map.fit(np.zeros((3, 5)))
        assert (feature_map.n_per_degree_ > 0).all()


FROZEN = {
    "default": (
        {},
        [1.0, -2.5, 0.5, 3.91311896, -0.55901699, -0.3354102, 2.34787138, 0.78262379],
    ),
    "h01": (
        {"h01": "append"},
        [1.0, 1.41421356, -2.82842712, 0.70710678, 6.125, 3.125, -0.125, -1.125],
    ),
    "complex": (
        {"complex_to_real": True},
        [0.70710678, 0.70710678, 0.0, -0.70710678, 0.53033009, 0.1767767, 3.18198052, 0.35355339],
    ),
    "geometric": ({"allocation": "geometric"}, [0.5, 0.5, 0.5, -2.5, -3.5, -1.5, -8.75, 0.0]),
    "rademacher": (
        {"projection": "rademacher"},
        [1.0, -3.5, -2.5, 0.3354102, -5.47836654, 0.55901699, 0.3354102, 0.78262379],
    ),
    "gaussian": (
        {"projection": "gaussian"},
        [1.0, 3.45008457, 0.60147181, 0.23998761, -0.1389254, 4.44475152, 4.65608693, 0.86129902],
    ),
}


@pytest.mark.parametrize("name", FROZEN)
def test_frozen_outputs(name):
    """A change of the random stream or of the layout of columns shows here."""
    options, expected = FROZEN[name]
    feature_map = RandomMaclaurin(Polynomial(degree=2), 8, random_state=0, **options)
    Z = feature_map.fit_transform([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0]])
    np.testing.assert_allclose(Z[0], expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"degrees": "geometric"}, {"allocation": "geometric"}),
        ({"h01": True}, {"h01": "append"}),
        ({"h01": False}, {"h01": "none"}),
    ],
)
def test_names_of_the_first_release_work_with_a_warning(old, new):
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.warns(FutureWarning, match="is now called .* removed in 0.3") as record:
        Z = RandomMaclaurin("poly", 64, random_state=0, **old).fit(X).transform(X)
    assert record[0].filename == __file__
    np.testing.assert_array_equal(
        Z, RandomMaclaurin("poly", 64, random_state=0, **new).fit(X).transform(X)
    )
