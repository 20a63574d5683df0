"""Terms of low degree that CRAFTMaps write as monomials, without randomness."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import normalize

import craftmaps
from craftmaps import (
    CraftMap,
    DotProduct,
    Exponential,
    OnePassClassifier,
    Polynomial,
    RandomMaclaurin,
)
from craftmaps.maps.parts.exact_terms import ExactTerms, n_monomials
from craftmaps.maps.parts.exact_terms import monomials as table
from oracles import monomials
from unbiased import Biased, check_unbiased, kernel_estimates

PAIRS = [(0, 0), (0, 1), (1, 2)]


def rows(n_rows=40, n_columns=6, seed=0):
    return normalize(np.random.default_rng(seed).normal(size=(n_rows, n_columns)))


def written(terms, X, dtype=np.float64):
    out = np.full((X.shape[0], terms.n_columns + 2), 7.0, dtype)
    terms.fill(X, out)
    assert (out[:, -2:] == 7).all()
    return out[:, :-2]


@pytest.mark.parametrize("n_columns", [1, 2, 5, 17])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_columns_are_the_monomials(n_columns, degree):
    X = rows(300, n_columns)
    a = [0.5, 2.0, 3.0, 0.25, 1.5][: degree + 1]
    terms = ExactTerms(1, n_columns, a[0], a[1], tuple(a[2:]), n_columns)
    expected = [np.full((300, 1), np.sqrt(a[0]))]
    expected += [np.sqrt(a[n]) * monomials(X, n) for n in range(1, degree + 1)]
    np.testing.assert_allclose(written(terms, X), np.concatenate(expected, axis=1), atol=1e-14)
    sparse_rows = written(terms, sparse.csr_matrix(X))
    np.testing.assert_array_equal(sparse_rows, written(terms, X))
    single = written(terms, X.astype(np.float32), np.float32)
    np.testing.assert_allclose(single, written(terms, X), atol=1e-6)


def test_degrees_without_a_term_have_no_columns():
    X = rows(20, 4)
    terms = ExactTerms(0, 0, 0.0, 0.0, (0.0, 2.0), 4)
    assert terms.n_columns == n_monomials(4, 3) == 20
    np.testing.assert_allclose(written(terms, X), np.sqrt(2) * monomials(X, 3), atol=1e-14)


def test_multiplicities_make_powers_of_inner_products():
    """And nothing else would: the table of the loop with one of them off is not the kernel."""
    X = rows(20, 5)
    terms = ExactTerms(0, 0, 0.0, 0.0, (0.0, 0.0, 1.0), 5)
    Z = written(terms, X)
    np.testing.assert_allclose(Z @ Z.T, (X @ X.T) ** 4, atol=1e-13)
    wrong = Z / np.sqrt(table(5, 4)[3].multiplicity)
    assert np.abs(wrong @ wrong.T - (X @ X.T) ** 4).max() > 0.1


@pytest.mark.parametrize("down", ["fold", "srht", "gaussian", "rademacher", "sparse"])
@pytest.mark.parametrize("kernel", [Polynomial(2), Polynomial(3), Polynomial(3, coef0=0.0)])
@pytest.mark.parametrize("spare", [0, 1, 30])
def test_a_map_of_few_columns_is_the_kernel(kernel, down, spare):
    X = rows()
    least = 0 if kernel.coef0 else kernel.degree
    needed = sum(n_monomials(6, n) for n in range(least, kernel.degree + 1))
    feature_map = CraftMap(kernel, needed + spare, h01="auto", down=down, random_state=0).fit(X)
    Z = feature_map.transform(X)
    assert feature_map.exact_degree_ == kernel.degree
    assert feature_map.expected_error_ == 0
    assert Z.shape == (40, needed + spare)
    np.testing.assert_allclose(Z @ Z.T, kernel(X), atol=1e-13)


def test_a_column_less_and_it_is_not():
    X = rows()
    feature_map = CraftMap(Polynomial(2), 27, random_state=0).fit(X)
    assert feature_map.exact_degree_ == 1
    assert feature_map.expected_error_ > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "degree"), [(Polynomial(5), 3), (Exponential(), 3), (Exponential(3.0), 3)]
)
def test_the_error_beside_exact_monomials_is_as_expected(kernel, degree):
    """Of 60 seeds, the root mean square is within 10 % (its own spread is about 3 %)."""
    X = rows(30, 10)
    maps = [CraftMap(kernel, 512, random_state=seed).fit(X) for seed in range(60)]
    assert maps[0].exact_degree_ == degree
    off = ~np.eye(len(X), dtype=bool)
    K = kernel(X)
    errors = []
    for feature_map in maps:
        Z = feature_map.transform(X)
        errors.append(np.mean((Z @ Z.T - K)[off] ** 2) / np.mean(K[off] ** 2))
    assert np.sqrt(np.mean(errors)) == pytest.approx(maps[0].expected_error_, rel=0.1)
    linear = CraftMap(kernel, 512, h01="append", random_state=0).fit(X)
    assert maps[0].expected_error_ < 0.7 * linear.expected_error_
    assert maps[0].n_up_ <= linear.n_up_


class WithoutDegree(CraftMap):
    """One whose plan holds degree 3 for exact, and whose columns do not have it."""

    def fit(self, X, y=None):
        super().fit(X, y)
        *lower, _ = self._exact.higher
        self._exact = dataclasses.replace(self._exact, higher=(*lower, 1e-9))
        return self


@pytest.mark.slow
@pytest.mark.parametrize("kind", [CraftMap, WithoutDegree])
def test_what_is_not_exact_is_unbiased_and_complete(kind):
    """The check calls a right map wrong once in a thousand times (see unbiased.py)."""
    X, kernel = rows(3, 8), Exponential(1.5)

    def make(seed):
        return kind(kernel, 300, random_state=seed)

    assert make(0).fit(X).exact_degree_ == 3
    estimates = kernel_estimates(make, X, PAIRS, range(300))
    truth = [kernel(X)[pair] for pair in PAIRS]
    if kind is CraftMap:
        check_unbiased(estimates, truth, smallest=0.1)
    else:
        with pytest.raises(Biased):
            check_unbiased(estimates, truth, smallest=0.1)


def test_more_columns_are_never_worse():
    X = rows(200, 7)
    sizes = [8, 20, 60, 150, 400, 1000]
    errors = [
        CraftMap(Polynomial(6), size, random_state=0).fit(X).expected_error_ for size in sizes
    ]
    assert errors == sorted(errors, reverse=True)


def test_many_columns_stay_as_they_were():
    feature_map = CraftMap(Polynomial(7), 300, random_state=0).fit(rows(50, 40))
    assert feature_map.exact_degree_ <= 1


def test_a_principal_subspace_has_room_for_itself():
    feature_map = CraftMap(Polynomial(3), 100, down="principal", random_state=0).fit(rows(400, 6))
    assert feature_map.exact_degree_ <= 1


def test_a_kernel_without_low_degrees():
    kernel = DotProduct([0.0, 0.0, 1.0, 0.0, 0.5])
    X = rows(50, 5)
    feature_map = CraftMap(kernel, 90, random_state=0).fit(X)
    assert feature_map.n_exact_ == math.comb(6, 2) + math.comb(8, 4)
    Z = feature_map.transform(X)
    np.testing.assert_allclose(Z @ Z.T, kernel(X), atol=1e-13)


def test_degrees_that_a_kernel_does_not_have_are_not_asked_for():
    kernel = DotProduct([1.0, 0.0, 1.0, 0.0, 0.5])
    feature_map = CraftMap(kernel, 60, random_state=0).fit(rows(50, 5))
    assert feature_map.exact_degree_ == 2
    assert feature_map.n_exact_ == 1 + math.comb(6, 2)


def test_files_keep_monomials_and_are_not_trusted_with_them(tmp_path):
    X = rows(60, 6)
    feature_map = CraftMap(Polynomial(4), 150, random_state=0).fit(X)
    assert feature_map.exact_degree_ >= 2
    feature_map.save(tmp_path / "map.craft")
    again = craftmaps.load(tmp_path / "map.craft")
    np.testing.assert_array_equal(again.transform(X), feature_map.transform(X))
    for change in (
        {"n_inputs": 60},
        {"n_linear": 7},
        {"n_constant": -1},
        {"higher": (1.0,) * 40},
        {"higher": (1.0, *[0.0] * 40)},  # no columns, but as much work
    ):
        wrong = CraftMap(Polynomial(4), 150, random_state=0).fit(X)
        wrong._exact = dataclasses.replace(wrong._exact, **change)
        with pytest.raises(
            ValueError, match=r"arrays of (ExactTerms|CraftMap) do not fit together"
        ):
            wrong._check_stored()
        other = RandomMaclaurin(Polynomial(4), 150, h01="append", random_state=0).fit(X)
        other._exact = wrong._exact
        with pytest.raises(ValueError, match="arrays of ExactTerms do not fit together"):
            other._check_stored()


def test_a_learner_refuses_a_map_of_other_columns():
    """It gives rows to its map without having them checked again."""
    X, y = rows(60, 6), np.arange(60) % 2
    model = OnePassClassifier(CraftMap(Polynomial(4), 60, random_state=0)).fit(X, y)
    model.feature_map_.fit(rows(60, 50))
    with pytest.raises(ValueError, match="expecting 50 features"):
        model.predict(X)
