"""Random Maclaurin is unbiased, for every kernel, law, projection, H0/1 and kind of signs.

`check_map` sees a bias of 3 % of the kernel (5 % for the laws that draw degrees, which vary more);
see unbiased.py for the false-alarm rate. Inner products are of order 1, so that no degree hides
behind another.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy import sparse

from craftmaps import (
    DotProduct,
    Exponential,
    Polynomial,
    RandomMaclaurin,
    VovkInfinite,
    VovkReal,
)
from unbiased import Biased, check_map

pytestmark = pytest.mark.slow

KERNELS = {
    "poly": Polynomial(degree=3),
    "homogeneous": Polynomial(degree=2, coef0=0.0),
    "exp": Exponential(),
    "vovk": VovkReal(p=4, gamma=0.6),
    "infinite": VovkInfinite(gamma=0.3),
    "own": DotProduct([0.0, 1.0, 0.5, 0.25]),
    "cosh": DotProduct.from_function(np.cosh),
}
LAWS = [("geometric", 2.0), ("geometric", 3.0), ("proportional", 2.0), ("optimized", 2.0)]
PROJECTIONS = ["hadamard", "rademacher", "gaussian"]
SIZES = {"hadamard": 1024, "rademacher": 8192, "gaussian": 8192}

X = np.random.default_rng(0).normal(0.6, 0.4, size=(4, 11))
X *= 1.1 / np.linalg.norm(X, axis=1, keepdims=True)
PAIRS = [(0, 1), (0, 2), (1, 3), (2, 2)]  # <x, y> = 0.81, 1.05, 0.96, 1.21


def covering():
    """Every kernel with every law, and the other options so that each meets each."""
    for k, name in enumerate(KERNELS):
        for l, law in enumerate(LAWS):
            h01 = bool((k + l // 2) % 2) and name != "homogeneous"
            yield name, law, PROJECTIONS[(k + l) % 3], h01, bool((k + l) % 2)
    for projection in PROJECTIONS:
        for h01 in (False, True):
            for is_complex in (False, True):
                yield "poly", LAWS[3], projection, h01, is_complex


CASES = sorted(set(covering()))


def maker(kernel, law, projection, h01, is_complex, **changes):
    degrees, p = law
    size = SIZES[projection]
    if degrees == "geometric":
        size *= 2 if projection == "hadamard" else 4
    options = {
        "allocation": degrees,
        "p": p,
        "projection": projection,
        "h01": "append" if h01 else "none",
        "complex_to_real": is_complex,
    } | changes
    return lambda seed: RandomMaclaurin(kernel, size, random_state=seed, **options)


@pytest.mark.parametrize(("name", "law", "projection", "h01", "is_complex"), CASES)
def test_unbiased(name, law, projection, h01, is_complex):
    kernel = KERNELS[name]
    smallest = 0.03 if law[0] == "optimized" else 0.05
    check_map(maker(kernel, law, projection, h01, is_complex), kernel, X, PAIRS, smallest)


def test_each_option_meets_each_kernel_and_each_law():
    for place in (0, 1):
        for one in {case[place] for case in CASES}:
            mine = [case for case in CASES if case[place] == one]
            assert {case[2] for case in mine} == set(PROJECTIONS)
            assert {case[3] for case in mine} == (
                {False} if one == "homogeneous" else {False, True}
            )
            assert {case[4] for case in mine} == {False, True}


def test_unbiased_for_sparse_rows_of_mixed_signs():
    dense = np.array([[1.0, 0, 0, -0.5, 0], [0.9, 0, 0, -0.6, 0.1], [0, 0, 1.2, 0, 0]])
    kernel = Polynomial(degree=4)
    make = maker(kernel, LAWS[3], "hadamard", False, False)

    class OfSparseRows:
        def __init__(self, seed):
            self.map = make(seed)

        def fit_transform(self, rows):
            return self.map.fit_transform(sparse.csr_matrix(rows))

    check_map(OfSparseRows, kernel, dense, [(0, 1), (0, 0), (2, 2)])


def test_fewer_components_than_degrees():
    """(1 + t)^3 has four degrees; two columns make a rough estimate, but not a biased one."""
    kernel = Polynomial(degree=3)

    class SideBySide:
        """Five such maps, which are as unbiased as one."""

        def __init__(self, seed):
            seeds = range(5 * seed, 5 * (seed + 1))
            self.maps = [RandomMaclaurin(kernel, 2, random_state=s) for s in seeds]

        def fit_transform(self, rows):
            return np.hstack([m.fit_transform(rows) for m in self.maps]) / math.sqrt(5)

    check_map(SideBySide, kernel, X, PAIRS, smallest=0.7)


@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_odd_numbers_of_components_with_complex_signs(coef0):
    kernel = Polynomial(degree=2, coef0=coef0)

    def make(seed):
        return RandomMaclaurin(kernel, 1001, complex_to_real=True, random_state=seed)

    check_map(make, kernel, X, PAIRS)


# ---- Maps that are wrong on purpose: the same test must find every one of them.


class Changed:
    """A Random Maclaurin map whose drawn products are tampered with before they are applied."""

    def __init__(self, feature_map, tamper):
        self.feature_map, self.tamper = feature_map, tamper

    def fit_transform(self, rows):
        fitted = self.feature_map.fit(rows)
        fitted._products = self.tamper(fitted._products)
        return fitted.transform(rows)


def shared_rotation(products):
    """Two factors of one feature are different rows of H on the same signs and permutation.

    E[product] is c - (N + c - 2q)/(d - 1) instead of c, for d the padded length.
    """
    size = products.gather.shape[1]
    gather, offset = products.gather.copy(), products.offset.copy()
    for first in products.rotations[:-1]:
        gather[first + 1] = gather[first]
    start = len(products.signs)
    offset[:, 1] = (offset[:, 0] - start + 1) % size + start + 2 * size
    return dataclasses.replace(products, gather=gather, offset=offset)


def shared_signs(products):
    """The same for independent projections: w_2 = w_1."""
    matrices = {n: m.copy() for n, m in products.matrices.items()}
    for n in matrices:
        if n > 1:
            matrices[n][:, 1] = matrices[n][:, 0]
    return dataclasses.replace(products, matrices=matrices)


def no_scale(products):
    """sqrt(weight) replaced by the weight itself."""
    return dataclasses.replace(products, scale=products.scale**2)


def without_highest_degree(products):
    keep = products.degree < products.degree.max()
    return dataclasses.replace(products, scale=np.where(keep, products.scale, 0.0))


def real_signs_only(products):
    """Complex features with the imaginary part of one factor left out."""
    gather = products.gather.copy()
    gather[1] = 2 * X.shape[1]
    return dataclasses.replace(products, gather=gather)


@pytest.mark.parametrize(
    ("tamper", "projection", "is_complex"),
    [
        (shared_rotation, "hadamard", False),
        (shared_signs, "rademacher", False),
        (shared_signs, "gaussian", False),
        (no_scale, "hadamard", False),
        (no_scale, "hadamard", True),
        (without_highest_degree, "hadamard", False),
        (real_signs_only, "hadamard", True),
    ],
)
def test_tampered_products_are_caught(tamper, projection, is_complex):
    kernel = Polynomial(degree=3)
    make = maker(kernel, LAWS[3], projection, False, is_complex)
    with pytest.raises(Biased):
        check_map(lambda seed: Changed(make(seed), tamper), kernel, X, PAIRS, smallest=0.15)


@pytest.mark.parametrize(
    "wrong",
    [
        DotProduct((Polynomial(degree=3).maclaurin(3) / [1, 1, 2, 6]).tolist()),  # a_n / n!
        DotProduct([1.0, 3.0, 3.0]),  # the last degree is missing
        Polynomial(degree=3, coef0=1.02),
        Polynomial(degree=3, gamma=1.05),
    ],
    ids=["divided by n!", "truncated", "coef0 off by 2 %", "gamma off by 5 %"],
)
def test_wrong_coefficients_are_caught(wrong):
    make = maker(wrong, LAWS[3], "rademacher", False, False)
    with pytest.raises(Biased):
        check_map(make, Polynomial(degree=3), X, PAIRS)


def test_the_printed_weights_are_wrong_for_p_3_and_caught():
    """sqrt(a_N p^(N+1)) forgets that the law p^-(N+1) does not sum to 1 unless p = 2."""

    class Printed(RandomMaclaurin):
        def transform(self, rows):
            return super().transform(rows) * math.sqrt(self.p - 1)

    kernel = Polynomial(degree=3)

    def make(p):
        options = {"allocation": "geometric", "p": p, "projection": "rademacher"}
        return lambda seed: Printed(kernel, 16384, random_state=seed, **options)

    check_map(make(2.0), kernel, X, PAIRS, smallest=0.05)
    with pytest.raises(Biased):
        check_map(make(3.0), kernel, X, PAIRS, smallest=0.15)
