"""Kernels: exact Gram matrices, coefficients, radius, tails, and what they say of bad input."""

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import oracles
from craftmaps import (
    DotProduct,
    Exponential,
    Gaussian,
    Nystroem,
    Polynomial,
    RandomMaclaurin,
    VovkInfinite,
    VovkReal,
)
from craftmaps.kernels import dot_product_kernel

# (kernel, f(t) by hand, a_n by hand)
KERNELS = [
    (Polynomial(), lambda t: (t + 1) ** 3, lambda n: math.comb(3, n)),
    (
        Polynomial(degree=5, gamma=0.5, coef0=2.0),
        lambda t: (0.5 * t + 2) ** 5,
        lambda n: math.comb(5, n) * 0.5**n * 2.0 ** (5 - n) if n <= 5 else 0.0,
    ),
    (Polynomial(degree=4, coef0=0.0), lambda t: t**4, lambda n: float(n == 4)),
    (
        Polynomial(degree=20, gamma=0.3, coef0=0.7),
        lambda t: (0.3 * t + 0.7) ** 20,
        lambda n: math.comb(20, n) * 0.3**n * 0.7 ** (20 - n) if n <= 20 else 0.0,
    ),
    (Exponential(), math.exp, lambda n: 1 / math.factorial(n)),
    (
        Exponential(gamma=1 / 1.5**2),
        lambda t: math.exp(t / 1.5**2),
        lambda n: 1.5 ** (-2 * n) / math.factorial(n),
    ),
    (VovkReal(p=1), lambda t: 1.0, lambda n: float(n < 1)),
    (VovkReal(p=3), lambda t: 1 + t + t**2, None),
    (VovkReal(p=4, gamma=0.4), lambda t: sum((0.4 * t) ** n for n in range(4)), None),
    (VovkReal(p=13, gamma=0.4), lambda t: sum((0.4 * t) ** n for n in range(13)), None),
    (VovkInfinite(gamma=0.3), lambda t: 1 / (1 - 0.3 * t), lambda n: 0.3**n),
    (
        DotProduct([0.5, 0.0, 2.0, 0.25], gamma=0.5),
        lambda t: 0.5 + 2 * (0.5 * t) ** 2 + 0.25 * (0.5 * t) ** 3,
        lambda n: {0: 0.5, 2: 0.5, 3: 0.25 / 8}.get(n, 0.0),
    ),
]
NAMES = [repr(kernel) for kernel, _, _ in KERNELS]


def rows(n=5, d=4, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return 1.2 * X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize(("kernel", "value", "_"), KERNELS, ids=NAMES)
def test_gram_matrix_against_loops(kernel, value, _):
    X, Y = rows(), rows(3, seed=1)
    expected = oracles.gram(value, X, Y)
    for left in (X, X.tolist(), np.asfortranarray(X), sparse.csr_matrix(X), sparse.csr_array(X)):
        for right in (Y, sparse.csr_matrix(Y), sparse.csc_array(Y)):
            gram = kernel(left, right)
            assert type(gram) is np.ndarray
            np.testing.assert_allclose(gram, expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(X), oracles.gram(value, X, X), rtol=1e-12)


@pytest.mark.parametrize(("kernel", "value", "coefficient"), KERNELS, ids=NAMES)
def test_coefficients(kernel, value, coefficient):
    coefficients = kernel.maclaurin(25)
    assert coefficients.shape == (26,)
    if coefficient is not None:
        expected = [coefficient(n) for n in range(26)]
        np.testing.assert_allclose(coefficients, expected, rtol=1e-13)
    for t in (0.0, 0.3, -0.3, 1.0):
        assert oracles.series(kernel.maclaurin(60), t) == pytest.approx(value(t), rel=1e-12)


@pytest.mark.parametrize(("kernel", "value", "_"), KERNELS, ids=NAMES)
def test_highest_degree_is_the_last_positive_coefficient(kernel, value, _):
    coefficients = kernel.maclaurin(30)
    if math.isinf(kernel.highest_degree):
        assert (coefficients > 0).all()
    else:
        assert np.flatnonzero(coefficients)[-1] == kernel.highest_degree


@pytest.mark.parametrize(("kernel", "value", "_"), KERNELS, ids=NAMES)
def test_float32_rows_give_a_float32_gram_matrix(kernel, value, _):
    X = rows().astype(np.float32)
    to_numpy = {"gamma": np.float64, "coef0": np.float64, "degree": np.int64, "p": np.int64}
    given = {k: to_numpy[k](v) for k, v in kernel.get_params().items() if k in to_numpy}
    for same in (kernel, clone(kernel).set_params(**given)):
        assert same(X).dtype == np.float32
        np.testing.assert_allclose(same(X), kernel(X.astype(float)), rtol=1e-4)


@pytest.mark.parametrize(("kernel", "value", "_"), KERNELS, ids=NAMES)
def test_whole_numbers_are_not_rounded_nor_overflow(kernel, value, _):
    """Parameters and inner products may be Python or NumPy integers."""
    whole = clone(kernel)
    if kernel.gamma == 1:
        whole.set_params(gamma=1)
    if getattr(kernel, "coef0", 0.5) == 1:
        whole.set_params(coef0=1)
    assert float(whole.value(1)) == pytest.approx(value(1), rel=1e-14)
    assert whole(np.eye(3, dtype=int)).dtype == np.float64


def test_large_integer_power_does_not_overflow():
    kernel = Polynomial(degree=20, gamma=1, coef0=1)
    assert float(kernel.value(10)) == pytest.approx(11.0**20)
    assert float(kernel.value(np.array([10]))[0]) == pytest.approx(11.0**20)


def test_own_coefficients_are_not_rounded_for_integer_inner_products():
    assert float(DotProduct([0, 1, 0.5], gamma=1).value(np.array(2))) == 4.0


@pytest.mark.parametrize(("kernel", "value", "_"), KERNELS, ids=NAMES)
def test_tail_is_what_the_series_lacks_and_bounds_the_loss(kernel, value, _):
    for degree in (0, 1, 2, 5, 19, 30):
        tail = kernel.tail(degree, 1.44)
        terms = kernel.maclaurin(400) * 1.44 ** np.arange(401)
        assert tail == pytest.approx(terms[degree + 1 :].sum(), rel=1e-6, abs=1e-13 * value(1.44))
        gram = kernel(rows())
        kept = oracles.gram(
            lambda t, n=degree: oracles.series(kernel.maclaurin(n), t), rows(), rows()
        )
        assert np.abs(gram - kept).max() <= tail + 1e-12 * np.abs(gram).max()
        if degree >= kernel.highest_degree:
            assert tail == 0


def test_radius_of_convergence():
    assert VovkInfinite(gamma=0.25).convergence_radius == 4
    assert DotProduct([1.0, 1.0], gamma=2.0, radius=3.0).convergence_radius == 1.5
    for kernel in (Polynomial(), Exponential(gamma=3.0), VovkReal(), DotProduct([1.0])):
        assert math.isinf(kernel.convergence_radius)


@pytest.mark.parametrize("kernel", [VovkInfinite(), DotProduct([1.0, 1.0], radius=1.0)])
def test_rows_outside_the_radius_are_named(kernel):
    name = type(kernel).__name__
    with pytest.raises(ValueError, match=rf"{name} needs .*< 1,.*reach 2\.25.*rescaled"):
        kernel([[1.5]])
    with pytest.raises(ValueError, match=r"reach 1;"):
        kernel([[1.0]])  # the border itself is outside
    with pytest.raises(ValueError, match=r"reach 1\.5"):
        kernel([[0.5]], [[-3.0]])
    with pytest.raises(ValueError, match=r"reach 1\.2"):
        kernel.value(1.2)
    with pytest.raises(ValueError, match=r"\|x\|\^2 < 1.*reach 4"):
        kernel.check_rows(np.array([[0.0, 2.0]]))
    kernel.check_rows(np.array([[0.0, 0.9]]))
    assert kernel.value(np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_rescaled_brings_rows_inside(make):
    X = 3 * rows()
    kernel = VovkInfinite(gamma=0.5)
    for margin in (1.5, 2.0):
        scaled = kernel.rescaled(make(X), margin=margin)
        reach = (X**2).sum(axis=1).max()
        assert scaled.convergence_radius == pytest.approx(margin * reach)
        np.testing.assert_allclose(
            scaled(make(X)), oracles.gram(lambda t, c=scaled.gamma: 1 / (1 - c * t), X, X)
        )
    assert kernel.gamma == 0.5
    inside = kernel.rescaled(make(0.1 * X))
    assert inside == kernel
    assert inside is not kernel
    assert Exponential().rescaled(make(100 * X)) == Exponential()
    limited = DotProduct([1.0, 2.0], radius=1.0).rescaled(make(X))
    assert limited.radius == 1.0
    assert limited(make(X)).shape == (5, 5)


@pytest.mark.parametrize("margin", [1.0, 0.5, math.nan])
def test_rescaled_refuses_a_margin_that_does_not_help(margin):
    with pytest.raises(ValueError, match=rf"margin must be above 1, got {margin}"):
        VovkInfinite().rescaled([[2.0]], margin=margin)


BAD = [
    (Polynomial(degree=0), "Polynomial: degree must be an integer at least 1, got 0"),
    (Polynomial(degree=-2), "degree .* at least 1, got -2"),
    (Polynomial(degree=2.5), "degree must be an integer .*got 2.5"),
    (Polynomial(degree=True), "degree must be an integer .*got True"),
    (Polynomial(degree=math.inf), "degree must be an integer .*got inf"),
    (Polynomial(coef0=-0.5), r"coef0 must be a finite number at least 0, got -0\.5"),
    (Polynomial(coef0=math.nan), "coef0 .* got nan"),
    (Polynomial(gamma=0.0), r"Polynomial: gamma must be a finite number above 0, got 0\.0"),
    (Exponential(gamma=-1.0), r"Exponential: gamma .* above 0, got -1\.0"),
    (Exponential(gamma=math.inf), "gamma must be a finite number .* got inf"),
    (VovkInfinite(gamma="auto"), "VovkInfinite: gamma .* got 'auto'"),
    (VovkReal(gamma=None), "VovkReal: gamma .* got None"),
    (VovkReal(p=0), "VovkReal: p must be an integer at least 1, got 0"),
    (DotProduct([1.0, -0.25]), r"coefficient a_1 is -0\.25, .*finite and >= 0"),
    (DotProduct([1.0, 0.0, math.nan]), "coefficient a_2 is nan"),
    (DotProduct([math.inf]), "coefficient a_0 is inf"),
    (DotProduct([]), "non-empty list"),
    (DotProduct([[1.0, 2.0]]), "non-empty list"),
    (DotProduct(["one"]), "'one'"),
    (DotProduct([0.0, 0.0]), "all coefficients are 0"),
    (DotProduct([1.0], radius=0.0), r"radius must be above 0, got 0\.0"),
    (DotProduct([1.0], radius="wide"), "radius must be above 0, got 'wide'"),
    (DotProduct([1.0], radius=math.nan), "radius must be above 0, got nan"),
    (DotProduct([1.0], gamma=-2), "DotProduct: gamma .* got -2"),
]


@pytest.mark.parametrize(("kernel", "words"), BAD, ids=[words for _, words in BAD])
def test_parameters_without_meaning_are_named(kernel, words):
    """Never in the constructor, always when the kernel is applied to rows or given to a map."""
    for use in (
        kernel.check,
        lambda: kernel([[0.1]]),
        lambda: kernel.rescaled([[0.1]]),
        lambda: dot_product_kernel(kernel),
    ):
        with pytest.raises(ValueError, match=words):
            use()


def test_gram_matrix_refuses_what_scikit_learn_refuses():
    kernel = Polynomial()
    with pytest.raises(ValueError, match="X has 3 columns and Y has 4"):
        kernel(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match="NaN"):
        kernel([[math.nan]])
    with pytest.raises(ValueError, match="infinity"):
        kernel([[1.0]], [[math.inf]])
    with pytest.raises(ValueError, match="2D array"):
        kernel(np.ones(3))
    with pytest.raises(ValueError, match="0 sample"):
        kernel(np.ones((0, 3)))


def test_kernels_by_name():
    assert dot_product_kernel("poly") == Polynomial()
    assert dot_product_kernel("exp") == Exponential()
    for wrong in ("cubic", 3, None, Polynomial):
        with pytest.raises(ValueError, match=r"kernel must be .*'exp', 'poly'.* got "):
            dot_product_kernel(wrong)


@pytest.mark.parametrize(("kernel", "value", "_"), KERNELS, ids=NAMES)
def test_kernels_are_values(kernel, value, _):
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert copy is not kernel
        assert copy == kernel
        assert hash(copy) == hash(kernel)
    other = clone(kernel).set_params(gamma=kernel.gamma * 2)
    assert other != kernel
    assert other.get_params()["gamma"] == kernel.gamma * 2
    assert set(kernel.get_params()) == set(other.get_params())
    assert kernel != "poly"
    assert eval(repr(kernel), {name: globals()[name] for name in CLASSES}) == kernel


CLASSES = ["DotProduct", "Exponential", "Polynomial", "VovkInfinite", "VovkReal"]


def test_equality_sees_every_parameter():
    assert Polynomial() != Polynomial(coef0=0.5)
    assert Polynomial() != VovkReal()
    assert Exponential() != VovkInfinite()
    assert DotProduct([1.0, 2.0]) == DotProduct(np.array([1.0, 2.0]))
    assert DotProduct([1.0, 2.0]) != DotProduct([1.0, 2.5])
    assert DotProduct([1.0, 2.0]) != DotProduct([1.0, 2.0, 3.0])
    assert DotProduct([1.0], radius=2.0) != DotProduct([1.0])


def test_repr_shows_what_differs_from_the_default():
    assert repr(Polynomial(degree=7)) == "Polynomial(degree=7)"
    assert repr(VovkInfinite(gamma=0.5)) == "VovkInfinite(gamma=0.5)"


def test_a_kernel_of_zeros_is_refused_with_a_sentence():
    kernel = DotProduct([0.0, 0.0])
    assert kernel.highest_degree == 0
    with pytest.raises(ValueError, match="all coefficients are 0"):
        RandomMaclaurin(kernel, 8).fit(np.eye(3))


class Counted(Polynomial):
    """A kernel that counts how often its parameters are validated."""

    checks = 0

    def _check(self):
        Counted.checks += 1
        super()._check()


def test_a_kernel_validates_once_per_use():
    Counted.checks = 0
    RandomMaclaurin(Counted(7), 64, random_state=0).fit(np.eye(5)).transform(np.eye(5))
    assert Counted.checks == 1
    Counted(7)(np.eye(5))
    assert Counted.checks == 2


def test_a_class_names_itself():
    class Cosh(DotProduct):
        short_name = "cosh"

        def __init__(self, coefficients=(1.0, 0.0, 0.5), gamma=1.0, radius=math.inf):
            super().__init__(coefficients, gamma, radius)

    assert dot_product_kernel("cosh") == Cosh()
    assert dot_product_kernel("poly") == Polynomial()  # a subclass does not take over the name


@pytest.mark.parametrize("length", [1e-20, 1e20])
@pytest.mark.parametrize("gamma", ["scale", "median"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_bandwidths_of_single_rows_of_any_length(length, gamma, make):
    X = length * np.random.default_rng(0).random((30, 5))
    found = Gaussian(gamma)(make(X.astype(np.float32)))
    np.testing.assert_allclose(found, Gaussian(gamma)(X), atol=1e-5)


@pytest.mark.parametrize("wrong", [Gaussian, [1]])
def test_what_is_no_kernel_is_named(wrong):
    with pytest.raises(ValueError, match="kernel must be a kernel such as"):
        Nystroem(wrong).fit(np.eye(3))


def test_a_vovk_kernel_of_very_many_terms_takes_no_memory_for_them():
    t = np.array([0.5, -0.5, 1.0, -1.0, 0.0])
    expected = [2.0, 2 / 3, 2.0**62, 0.0, 1.0]
    np.testing.assert_allclose(VovkReal(p=2**62).value(t), expected, rtol=1e-15)
