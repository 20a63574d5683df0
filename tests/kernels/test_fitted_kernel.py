"""kernel="auto": coefficients from targets, by an error that is checked by leaving rows out."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.base import clone

from cases import rows
from craftmaps import (
    CraftMap,
    DotProduct,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
    TensorSketch,
)
from craftmaps.kernels import learned as fitted


def problem(n=40, size=15):
    rng = np.random.default_rng(0)
    X = rows(n, 6)
    powers = fitted._sketched_powers(X @ X.T, size, rng)
    return (
        np.exp(rng.normal(size=len(powers))),
        powers,
        fitted.centred_targets(rng.normal(size=(n, 2))),
    )


def test_the_error_is_that_of_leaving_out_each_row():
    a, powers, Y = problem(12)
    K = np.tensordot(a, powers, axes=1)
    squares = 0.0
    for i in range(len(Y)):
        kept = np.arange(len(Y)) != i
        # minimise |Y - K c - b|^2 + c^T K c over c and an intercept b that is free
        inner = np.linalg.inv(K[np.ix_(kept, kept)] + np.eye(len(Y) - 1))
        b = (inner.sum(axis=0) @ Y[kept]) / inner.sum()
        predicted = K[i, kept] @ inner @ (Y[kept] - b) + b
        squares += np.sum((Y[i] - predicted) ** 2)
    found, _ = fitted._log_left_out_error(a, powers, Y)
    assert found == pytest.approx(np.log(squares / len(Y)))


def test_the_gradient():
    a, powers, Y = problem()

    def value(a):
        return fitted._log_left_out_error(a, powers, Y)[0]

    def gradient(a):
        return fitted._log_left_out_error(a, powers, Y)[1]

    assert check_grad(value, gradient, a) < 1e-5
    assert check_grad(value, lambda a: 1.1 * gradient(a), a) > 1e-4


def test_the_degree_that_makes_the_targets_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = 10 * X[:, 0] * X[:, 1] + 0.01 * rng.normal(size=1500)
    found = fitted.fitted_kernel(X, y, 1024, rng).maclaurin(9)
    assert (found >= 0).all()
    assert found[2] > 0.8 * found.sum()
    odd = fitted.fitted_kernel(X, 10 * X[:, 0] ** 3, 1024, rng).maclaurin(9)
    assert odd[1::2].sum() > 5 * odd[::2].sum()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [CraftMap, RandomMaclaurin])
def test_maps_learn_their_kernel(kind):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 6))
    y = np.sign(X[:, 0] * X[:, 1])

    def score(kernel):
        models = [OnePassClassifier(kind(kernel, 256, random_state=s)) for s in range(3)]
        return np.mean([m.fit(X[:400], y[:400]).score(X[400:], y[400:]) for m in models])

    fixed = [score(Polynomial(degree, gamma=1 / 6)) for degree in (2, 3, 5, 7)]
    assert score("auto") > max(fixed) - 0.02
    assert min(fixed) < max(fixed) - 0.02  # a degree taken at random may be worse than that
    feature_map = kind("auto", 256, random_state=0)
    model = OnePassClassifier(feature_map).fit(X[:400], y[:400])
    assert isinstance(model.feature_map_.kernel_, DotProduct)
    again = clone(feature_map).fit(X[:400], y[:400])
    assert again.kernel_ == model.feature_map_.kernel_
    assert OnePassRegressor(feature_map).fit(X, X[:, 0] * X[:, 1]).score(X, X[:, 0] * X[:, 1]) > 0.9


def test_labels_of_any_kind_and_several_targets():
    X = rows(60)
    labels = np.where(X[:, 1] > 0, "yes", "no")
    kernels = [
        fitted.fitted_kernel(X, y, 64, np.random.default_rng(0))
        for y in (labels, labels == "yes", (labels == "yes").astype(int))
    ]
    assert kernels[0].coefficients == pytest.approx(kernels[2].coefficients)
    assert kernels[0].coefficients == pytest.approx(kernels[1].coefficients)
    fitted.fitted_kernel(X, X[:, :3], 64, np.random.default_rng(0)).check()
    assert fitted.is_continuous(np.arange(200))
    assert fitted.is_continuous([0.5, 1.0])
    assert not fitted.is_continuous(np.arange(60) % 7)


def test_many_classes_of_few_rows_are_no_numbers():
    """A kernel or a metric that is learned from labels must not depend on how they are written."""
    labels = np.arange(120) % 30
    as_text = np.array([f"class {label:02}" for label in labels])
    np.testing.assert_array_equal(fitted.centred_targets(labels), fitted.centred_targets(as_text))
    # Of a file, nothing but the numbers of rows and of different targets is known.
    assert fitted.is_continuous(np.arange(30), n_rows=120)
    assert not fitted.is_continuous(np.arange(30), n_rows=300)
    assert not fitted.is_continuous(np.arange(10), n_rows=12)


def test_what_cannot_be_learnt_is_said():
    X = rows()
    for kind in (CraftMap, RandomMaclaurin):
        with pytest.raises(ValueError, match=r"call fit\(X, y\)"):
            kind("auto", 64).fit(X)
        for y, message in (
            (X[:-1, 0], "inconsistent numbers of samples"),
            (np.full(len(X), np.nan), "y contains NaN"),
        ):
            with pytest.raises(ValueError, match=message):
                kind("auto", 64).fit(X, y)
        for rows_of_zeros, y in ((X, np.ones(len(X))), (0 * X, X[:, 0])):  # nothing to learn from
            assert isinstance(kind("auto", 64).fit(rows_of_zeros, y).kernel_, Polynomial)
    with pytest.raises(ValueError, match="TensorSketch approximates polynomial kernels only"):
        TensorSketch("auto", 64).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="Polynomial kernels"):
        CraftMap("auto", 64, up="tensor-sketch").fit(X, X[:, 0])


def test_other_kernels_do_not_look_at_targets():
    X = rows()
    plain = CraftMap(Polynomial(3), 64, random_state=0).fit_transform(X)
    assert (CraftMap(Polynomial(3), 64, random_state=0).fit_transform(X, X[:, 0]) == plain).all()
